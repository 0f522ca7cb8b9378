"""Colours of block sizes, mixes and quantities: each value has the same one in every chart, of any report."""

from __future__ import annotations

from collections.abc import Iterable

from tkperf.analysis.axes import BLOCKS, DEPTH, JOBS, MIX, Axis, Order
from tkperf.model.quantity import IOPS, LATENCY_MAX, LATENCY_MEAN, LATENCY_MIN, THROUGHPUT
from tkperf.model.units import KIB
from tkperf.model.workload import Workload
from tkperf.render.charts.vega import PALETTE

(
    _BLUE, _VERMILION, _GREEN, _AMBER, _VIOLET, _SKY, _PINK, _BROWN, _OLIVE, _CRIMSON, _SLATE, _TEAL,
) = PALETTE  # fmt: skip

# The sizes of the specifications' matrices have the eight most distinct colours.
_BLOCK_SIZES = {
    512: _VIOLET, 1 * KIB: _CRIMSON, 2 * KIB: _OLIVE, 4 * KIB: _BLUE, 8 * KIB: _SKY, 16 * KIB: _GREEN,
    32 * KIB: _AMBER, 64 * KIB: _PINK, 128 * KIB: _VERMILION, 256 * KIB: _SLATE, 512 * KIB: _TEAL,
    1024 * KIB: _BROWN,
}  # fmt: skip
_MIXES = {
    100: _BLUE, 95: _SKY, 90: _TEAL, 70: _OLIVE, 65: _GREEN, 50: _AMBER, 35: _PINK, 30: _SLATE, 10: _CRIMSON,
    5: _VIOLET, 0: _VERMILION,
}  # fmt: skip
_DEMANDS = {
    1: _BLUE, 2: _SKY, 4: _GREEN, 8: _AMBER, 16: _PINK, 32: _VERMILION, 64: _VIOLET, 128: _BROWN,
    256: _CRIMSON, 512: _OLIVE, 1024: _SLATE, 2048: _TEAL,
}  # fmt: skip
_QUANTITIES = {
    IOPS.key: _BLUE, THROUGHPUT.key: _BLUE, LATENCY_MEAN.key: _BLUE, LATENCY_MAX.key: _VERMILION,
    LATENCY_MIN.key: _SLATE, "p50_us": _BROWN, "p90_us": _SKY, "p95_us": _OLIVE, "p99_us": _GREEN,
    "p99.9_us": _AMBER, "p99.99_us": _PINK, "p99.999_us": _VIOLET,
}  # fmt: skip


def colour_quantity(key: str) -> str:
    """Return the colour of a quantity by its key."""
    return _QUANTITIES.get(key, _BLUE)


def colour_values(axis: Axis, workloads: Iterable[Workload]) -> dict[Order, str]:
    """Return a colour for each value that these workloads have on an axis, by ``axis.order``.

    Each value that specifications use has a fixed colour; the others get the colours that are left. Empty if there
    are more values than colours.
    """
    values = {axis.order(work): work for work in workloads}
    if len(values) > len(PALETTE):
        return {}
    known = {order: found for order, work in values.items() if (found := _find(axis, work))}
    left = [colour for colour in PALETTE if colour not in known.values()]
    others = sorted(values.keys() - known.keys())
    return known | dict(zip(others, left, strict=False))


def _find(axis: Axis, work: Workload) -> str | None:
    if axis is BLOCKS:
        return None if work.block_mix else _BLOCK_SIZES.get(work.block_size_bytes)
    if axis is MIX:
        return _MIXES.get(work.read_percent)
    if axis in (DEPTH, JOBS):
        return _DEMANDS.get(work.io_depth if axis is DEPTH else work.jobs)
    return None
