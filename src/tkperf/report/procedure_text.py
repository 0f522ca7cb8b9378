"""Each test's procedure as pseudo code, with the numbers of the run's own profile."""

from __future__ import annotations

import msgspec

from tkperf.profiles import Profile, tracked_cell
from tkperf.record import RunInfo
from tkperf.report.preconditioning import describe_fill
from tkperf.units import format_duration


def describe_procedure(info: RunInfo, test: str) -> str:
    """What the test does, line by line; empty where the run's profile is not a whole one."""
    try:
        profile = msgspec.convert(info.profile, Profile)
    except msgspec.ValidationError:
        return ""  # an imported run: only some of its numbers are known
    describe = {
        ("hdd", "iops"): _hard_disk_iops,
        ("hdd", "tp"): _hard_disk_throughput,
    }.get((info.suite, test)) or {
        "iops": _iops,
        "lat": _latency,
        "tp": _throughput,
        "writesat": _write_saturation,
    }.get(test)
    return "\n".join(describe(profile, _preconditioning(info))) if describe else ""


def _iops(profile: Profile, fill: str) -> tuple[str, ...]:
    table = profile.iops
    return (
        "Purge",
        fill,
        f"Until steady state, at most {profile.steady_state.max_rounds} rounds:",
        f"    For R/W mix {_mixes(table.read_percents)}:",
        f"        For block size {_sizes(table.block_sizes_kib)} KiB:",
        f"            RND, TC {profile.demand.jobs} / QD {profile.demand.io_depth}, "
        f"{table.step_s:g} s",
        f"Tracking variable: IOPS of RND {tracked_cell(table)}",
        _steady_state(profile),
    )


def _latency(profile: Profile, fill: str) -> tuple[str, ...]:
    table = profile.latency
    tracked = tracked_cell(table)
    lines = (
        "Purge",
        fill,
        f"Until steady state, at most {profile.steady_state.max_rounds} rounds:",
        f"    For R/W mix {_mixes(table.read_percents)}:",
        f"        For block size {_sizes(table.block_sizes_kib)} KiB:",
        f"            RND, TC {table.jobs} / QD {table.io_depth}, {table.step_s:g} s",
        f"Tracking variable: mean latency of RND {tracked}",
        _steady_state(profile),
    )
    if not table.histogram_s:
        return lines
    return (*lines, f"Then RND {tracked} for {table.histogram_s:g} s: response time histogram")


def _throughput(profile: Profile, fill: str) -> tuple[str, ...]:
    table = profile.throughput
    which = "each block size" if table.steady_state == "each" else "the first block size"
    return (
        f"For block size {_sizes(table.block_sizes_kib)} KiB:",
        "    Purge",
        *((f"    {fill}",) if table.precondition else ()),
        f"    Until steady state, at most {profile.steady_state.max_rounds} rounds:",
        f"        SEQ read, then SEQ write, TC {profile.demand.jobs} / QD "
        f"{profile.demand.io_depth}, {table.step_s:g} s each",
        f"Tracking variable: MB/s of SEQ writes of {which}",
        _steady_state(profile),
    )


def _write_saturation(profile: Profile, _fill: str) -> tuple[str, ...]:
    table = profile.write_saturation
    ends = (
        f"Until {table.capacity_multiple:g} x the active range is written, "
        f"{format_duration(table.max_slices * table.slice_s)} have passed"
    )
    judged = (
        f", or steady state of every {table.round_every_slices}th slice:"
        if table.round_every_slices
        else ":"
    )
    return (
        "Purge",
        ends + judged,
        f"    RND {table.block_size_kib:g} KiB, {table.read_percent} % reads, TC "
        f"{profile.demand.jobs} / QD {profile.demand.io_depth}, one unbroken stream, recorded in "
        f"slices of {table.slice_s:g} s",
        *((_steady_state(profile),) if table.round_every_slices else ()),
    )


def _hard_disk_iops(profile: Profile, _fill: str) -> tuple[str, ...]:
    table = profile.hard_disk
    assert table is not None
    return (
        f"For each of {table.areas} equal areas of the disk, from its start:",
        f"    For R/W mix {_mixes(table.iops_read_percents)}:",
        f"        For block size {_sizes(table.iops_block_sizes_kib)} KiB:",
        f"            RND within the area, TC {profile.demand.jobs} / QD "
        f"{profile.demand.io_depth}, {table.step_s:g} s",
    )


def _hard_disk_throughput(profile: Profile, _fill: str) -> tuple[str, ...]:
    table = profile.hard_disk
    assert table is not None
    return (
        f"For block size {_sizes(table.throughput_block_sizes_kib)} KiB:",
        f"    For each of {table.areas} equal areas of the disk, from its start:",
        f"        SEQ read, then SEQ write within the area, TC {profile.demand.jobs} / QD "
        f"{profile.demand.io_depth}, {table.step_s:g} s each",
    )


def _preconditioning(info: RunInfo) -> str:
    return f"Workload-independent preconditioning: {describe_fill(info)}"


def _steady_state(profile: Profile) -> str:
    table = profile.steady_state
    return (
        f"Steady state: over {table.window_rounds} rounds, range <= "
        f"{table.max_data_excursion_percent:g} % and best linear fit <= "
        f"{table.max_slope_excursion_percent:g} % of the average"
    )


def _mixes(read_percents: tuple[int, ...]) -> str:
    return ", ".join(f"{percent}/{100 - percent}" for percent in read_percents)


def _sizes(sizes_kib: tuple[float, ...]) -> str:
    return ", ".join(f"{size:g}" for size in sizes_kib)
