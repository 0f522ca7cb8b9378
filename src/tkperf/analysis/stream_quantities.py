"""The quantities that answer for a stream of a combination, in reports and comparisons alike."""

from __future__ import annotations

from tkperf.model.quantity import IOPS, THROUGHPUT, Quantity, percentile
from tkperf.model.units import KIB
from tkperf.model.workload import Workload

TAIL = percentile(99)
# The rate of larger blocks is a throughput to readers of data sheets.
_LEAST_LARGE_BYTES = 64 * KIB


def find_rate(workload: Workload) -> Quantity:
    """Return the rate by which readers know a load: MB/s of large blocks, else IOPS."""
    return THROUGHPUT if workload.mean_block_bytes >= _LEAST_LARGE_BYTES and not workload.flushes else IOPS


def is_latency_sought(workload: Workload) -> bool:
    """Return whether the rate of a load was given, so that its latency is the answer."""
    return workload.offered_iops is not None or workload.flushes


def find_main_quantity(workload: Workload) -> Quantity:
    """Return the quantity by which runs with this stream are compared."""
    return TAIL if is_latency_sought(workload) else find_rate(workload)
