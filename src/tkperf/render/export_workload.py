"""Columns of a workload, the same in every table."""

from __future__ import annotations

from collections.abc import Sequence

from tkperf.model.workload import Workload

Row = Sequence[object]

WORKLOAD = (
    "access",
    "read_percent",
    "block_size_bytes",
    "block_mix",
    "threads",
    "queue_depth",
    "offered_iops",
    "arrival",
    "zones",
    "compressible_percent",
    "region_offset_bytes",
    "region_length_bytes",
)


def workload_row(work: Workload) -> Row:
    return (
        work.access.value,
        work.read_percent,
        work.block_size_bytes,
        work.blocks_text if work.block_mix else None,
        work.jobs,
        work.io_depth,
        work.offered_iops,
        None if work.offered_iops is None else work.arrival.value,
        work.zones_text or None,
        work.compressible_percent,
        work.region and work.region.offset_bytes,
        work.region and work.region.length_bytes,
    )
