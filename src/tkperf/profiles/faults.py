"""What no schema can rule out: values of a profile that do not go together, or add up to too much."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tkperf.units import KIB

if TYPE_CHECKING:
    from tkperf.profiles import HardDiskTable, IopsTable, LatencyTable, Profile

MOST_STEPS = 200_000  # of one test, all rounds or areas together
_LONGEST_STREAM_S = 366 * 86400


def find_fault(profile: Profile) -> str | None:
    """The first value that no schema can rule out, as ``key: reason``."""
    tables: tuple[tuple[str, IopsTable | LatencyTable], ...] = (
        ("iops", profile.iops),
        ("latency", profile.latency),
    )
    for name, table in tables:
        if table.tracking_read_percent not in table.read_percents:
            return f"{name}.tracking_read_percent: not one of {name}.read_percents"
        if table.tracking_block_size_kib not in table.block_sizes_kib:
            return f"{name}.tracking_block_size_kib: not one of {name}.block_sizes_kib"
        if len(set(table.read_percents)) < len(table.read_percents):
            return f"{name}.read_percents: a value occurs twice"
    lists: tuple[tuple[str, Sequence[float]], ...] = (
        ("preconditioning.block_size_kib", (profile.preconditioning.block_size_kib,)),
        ("iops.block_sizes_kib", profile.iops.block_sizes_kib),
        ("throughput.block_sizes_kib", profile.throughput.block_sizes_kib),
        ("latency.block_sizes_kib", profile.latency.block_sizes_kib),
        ("write_saturation.block_size_kib", (profile.write_saturation.block_size_kib,)),
        *_hard_disk_lists(profile.hard_disk),
    )
    for key, sizes_kib in lists:
        for size_kib in sizes_kib:
            if size_kib * KIB % 512:
                return f"{key}: {size_kib * KIB:g} bytes is not a multiple of 512 bytes"
        if len(set(sizes_kib)) < len(sizes_kib):
            return f"{key}: a value occurs twice"
    if profile.steady_state.max_rounds < profile.steady_state.window_rounds:
        return "steady_state.max_rounds: fewer than window_rounds, steady state cannot be reached"
    return _find_excess(profile)


def _find_excess(profile: Profile) -> str | None:
    """Numbers that are each possible, but together no test that anybody means."""
    rounds, iops, latency = profile.steady_state.max_rounds, profile.iops, profile.latency
    disk = profile.hard_disk
    steps = {
        "iops": rounds * len(iops.read_percents) * len(iops.block_sizes_kib),
        "latency": rounds * len(latency.read_percents) * len(latency.block_sizes_kib),
        "throughput": rounds * len(profile.throughput.block_sizes_kib) * 2,
    }
    if disk is not None:
        sizes = len(disk.iops_read_percents) * len(disk.iops_block_sizes_kib)
        sizes = max(sizes, 2 * len(disk.throughput_block_sizes_kib))
        steps["hard_disk"] = disk.areas * sizes
    for table, count in steps.items():
        if count > MOST_STEPS:
            return f"{table}: {count:,} steps in all, {MOST_STEPS:,} at most can be run"
    stream = profile.write_saturation
    if stream.slice_s * stream.max_slices > _LONGEST_STREAM_S:
        return f"write_saturation: {stream.max_slices:,} slices of {stream.slice_s:,.0f} s are longer than a year"
    return None


def _hard_disk_lists(table: HardDiskTable | None) -> tuple[tuple[str, Sequence[float]], ...]:
    if table is None:
        return ()
    return (
        ("hard_disk.area_alignment_kib", (table.area_alignment_kib,)),
        ("hard_disk.iops_block_sizes_kib", table.iops_block_sizes_kib),
        ("hard_disk.throughput_block_sizes_kib", table.throughput_block_sizes_kib),
    )
