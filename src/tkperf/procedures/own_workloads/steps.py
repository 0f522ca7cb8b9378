"""Loads of a workload file as workloads, and the steps of its rounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from math import prod

import msgspec

from tkperf.model.errors import InputFileError
from tkperf.model.units import KIB, MIB, format_capacity
from tkperf.model.workload import ActiveRange, Step, Workload
from tkperf.procedures.own_workloads.parts import Load, OwnTracked, RoundsPhase
from tkperf.procedures.profiles import Profile
from tkperf.procedures.shares import block_mix_of, zones_of


def workload_of(load: Load, profile: Profile, active_range_bytes: int) -> Workload:
    """Return a load on an active range of this length; missing TC and QD come from the profile.

    Raises:
        InputFileError: its part of the range is less than 1 MiB.
    """
    sizes_kib = [size_kib for size_kib, _ in load.block_shares] or [load.block_size_kib or 0]
    return Workload(
        access=load.access,
        read_percent=load.read_percent,
        block_size_bytes=round(max(sizes_kib) * KIB),
        jobs=load.jobs or profile.demand.jobs,
        io_depth=load.io_depth or profile.demand.io_depth,
        block_mix=block_mix_of(load.block_shares),
        zones=zones_of(load.zone_shares),
        offered_iops=load.offered_iops,
        arrival=load.arrival,
        # 0 % means fresh random data, the default.
        compressible_percent=load.compressible_percent or None,
        region=_region_of(load, active_range_bytes),
    )


def _region_of(load: Load, active_range_bytes: int) -> ActiveRange | None:
    """Return the load's part of the range in whole MiB, which suit all block sizes; None for all of it."""
    begin, end = load.range_begin_percent, load.range_end_percent
    if (begin, end) == (0, 100):
        return None
    first, last = (int(active_range_bytes * share / 100) // MIB * MIB for share in (begin, end))
    last = active_range_bytes if end == 100 else last
    if last <= first:
        raise InputFileError(
            f"{begin:g} to {end:g} % of the active range of {format_capacity(active_range_bytes)} "
            "are less than 1 MiB: take a larger part, or a larger range"
        )
    return ActiveRange(offset_bytes=first, length_bytes=last - first)


def count_steps(phase: RoundsPhase) -> int:
    """Return the number of steps in a round, without making any."""
    return len(phase.loads) * prod(len(loop.values) for loop in phase.loops)


def loads_of(phase: RoundsPhase, loads: Mapping[str, Load]) -> Iterator[Load]:
    """Yield the load of each step of a round: loops from the outermost, then the list of loads."""
    for values in product(*(loop.values for loop in phase.loops)):
        at: dict[str, float] = {
            loop.key: value for loop, value in zip(phase.loops, values, strict=True)
        }
        for name in phase.loads:
            yield at_values(loads[name], at)


def at_values(load: Load, values: Mapping[str, float]) -> Load:
    """Return a load with these values of loops in place.

    Raises:
        msgspec.ValidationError: a value is impossible.
    """
    # In a TOML list with fractions, whole numbers may be floats as well.
    given = {
        key: int(value) if float(value).is_integer() else value for key, value in values.items()
    }
    return msgspec.convert(msgspec.to_builtins(load) | given, Load)


def steps_of(
    phase: RoundsPhase, loads: Mapping[str, Load], profile: Profile, active_range_bytes: int
) -> tuple[Step, ...]:
    """Return the steps of a round."""
    return tuple(
        Step(workload=workload_of(load, profile, active_range_bytes), duration_s=phase.step_s)
        for load in loads_of(phase, loads)
    )


def tracked_load(tracked: OwnTracked, phase: RoundsPhase, loads: Mapping[str, Load]) -> Load:
    """Return the load of the step that a tracking variable belongs to."""
    return at_values(loads[tracked.load or phase.loads[0]], tracked.at)
