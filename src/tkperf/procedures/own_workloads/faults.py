"""Faults that no type can rule out: loads and phases of a workload file that conflict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from tkperf.model.errors import not_known
from tkperf.model.strict import describe_mistake
from tkperf.model.workload import Access, Arrival
from tkperf.procedures.own_workloads.parts import (
    FillPhase,
    Load,
    Measuring,
    OwnPhase,
    RoundsPhase,
    StreamPhase,
)
from tkperf.procedures.own_workloads.steps import at_values, count_steps, loads_of, tracked_load
from tkperf.procedures.profiles import Profile
from tkperf.procedures.profiles.tables import MOST_SLICES, SteadyStateTable, find_size_fault
from tkperf.procedures.shares import find_share_fault

MOST_STEPS_OF_A_ROUND = 1024  # each is a line in the report's tables
_FASTEST_POISSON_IOPS = 1_000_000  # of one thread: fio computes the times in whole us


def find_table_fault(
    loads: Mapping[str, Load], phases: Sequence[OwnPhase], rules: SteadyStateTable, profile: Profile
) -> str | None:
    """Return the first fault, as ``load NAME, key K: reason`` or ``phase 2 (rounds), key K: reason``."""
    if rules.max_rounds < rules.window_rounds:
        return (
            f"steady_state, key max_rounds: {rules.max_rounds} are fewer than the "
            f"{rules.window_rounds} of a window, steady state cannot be reached"
        )
    for name, load in loads.items():
        if fault := _in_load(load, profile):
            return f"load {name}, key {fault}"
    for number, phase in enumerate(phases, start=1):
        if fault := _in_phase(phase, loads, profile):
            return f"{name_of(number, phase)}, key {fault}"
    return _in_order(phases)


def name_of(number: int, phase: OwnPhase) -> str:
    """Return ``phase 2 (rounds)``; phases count from 1."""
    return f"phase {number} ({phase.__struct_config__.tag})"


def _in_load(load: Load, profile: Profile) -> str | None:
    if (load.block_size_kib is None) is not bool(load.block_shares):
        return "block_size_kib: either it or block_shares is needed, and not both"
    if load.block_size_kib is not None and (fault := find_size_fault(load.block_size_kib)):
        return f"block_size_kib: {fault}"
    if load.zone_shares and load.access is not Access.RANDOM:
        return "zone_shares: zones are of random accesses only"
    if load.range_begin_percent >= load.range_end_percent:
        return "range_end_percent: not more than range_begin_percent"
    return find_share_fault(load.block_shares, load.zone_shares) or _in_rate(load, profile)


def _in_rate(load: Load, profile: Profile) -> str | None:
    if load.offered_iops is None:
        return None
    jobs = load.jobs or profile.demand.jobs
    reads = load.read_percent / 100
    rates = [load.offered_iops * share / jobs for share in (reads, 1 - reads) if share]
    if min(rates) < 1:
        return (
            f"offered_iops: {load.offered_iops:g} are less than one a second for each of {jobs} "
            "threads and direction"
        )
    if load.arrival is Arrival.POISSON and max(rates) > _FASTEST_POISSON_IOPS:
        return (
            f"offered_iops: {load.offered_iops:g} are more than {_FASTEST_POISSON_IOPS:,} a second "
            "for a thread, which fio cannot offer at random times"
        )
    return None


def _in_phase(phase: OwnPhase, loads: Mapping[str, Load], profile: Profile) -> str | None:
    key, names = _names(phase)
    for name in names:
        if name not in loads:
            return f"{key}: {not_known('load', name, loads)}"
    match phase:
        case FillPhase():
            return None if phase.load is None else _in_fill(loads[phase.load])
        case RoundsPhase():
            return _in_rounds(phase, loads, profile)
        case StreamPhase():
            return _in_stream(phase, loads[phase.load])
        case _:
            return None


def _names(phase: OwnPhase) -> tuple[str, tuple[str, ...]]:
    """Return the key that names loads, and the names."""
    match phase:
        case RoundsPhase():
            return "loads", phase.loads
        case StreamPhase() | FillPhase() if phase.load is not None:
            return "load", (phase.load,)
        case _:
            return "", ()


def _in_fill(load: Load) -> str | None:
    if load.can_fill:
        return None
    return (
        "load: a fill writes all of the range in order: it needs a load of sequential writes of one "
        "block size, without an offered rate and a part of the range"
    )


def _in_rounds(phase: RoundsPhase, loads: Mapping[str, Load], profile: Profile) -> str | None:
    if len(set(phase.loads)) < len(phase.loads):
        return "loads: a load occurs twice"
    if fault := _in_loops(phase, loads):
        return fault
    for load in loads_of(phase, loads):
        if fault := _in_load(load, profile):
            return f"loops: a combination is impossible: {fault}"
    if bool(phase.tracked) is (phase.rounds is not None):
        return (
            "rounds: either tracked, whose steady state ends the phase, or a number of rounds is "
            "needed, and not both"
        )
    return _in_tracked(phase, loads)


def _in_loops(phase: RoundsPhase, loads: Mapping[str, Load]) -> str | None:
    keys = [loop.key for loop in phase.loops]
    for loop in phase.loops:
        if keys.count(loop.key) > 1:
            return f"loops: {loop.key} is looped over twice"
        if len(set(loop.values)) < len(loop.values):
            return f"loops: a value of {loop.key} occurs twice"
        for value in loop.values:
            try:
                at_values(loads[phase.loads[0]], {loop.key: value})
            except msgspec.ValidationError as error:
                given = {loop.key: value}
                return f"loops{describe_mistake(error, Load, given)}"
        if loop.key == "block_size_kib" and any(loads[name].block_shares for name in phase.loads):
            return "loops: block_size_kib is looped over, but a load has block_shares"
    if (steps := count_steps(phase)) > MOST_STEPS_OF_A_ROUND:
        return (
            f"loops: {steps:,} steps of a round, all combinations, are more than "
            f"{MOST_STEPS_OF_A_ROUND:,}"
        )
    return None


def _in_tracked(phase: RoundsPhase, loads: Mapping[str, Load]) -> str | None:
    loops = {loop.key: loop.values for loop in phase.loops}
    for tracked in phase.tracked:
        if tracked.load is None and len(phase.loads) > 1:
            return "tracked: load says which of the phase's loads is meant"
        if tracked.load is not None and tracked.load not in phase.loads:
            return f"tracked: {not_known('load', tracked.load, phase.loads)}"
        for key in (*loops, *tracked.at):
            if key not in tracked.at:
                return f"tracked: at has to say which {key} is meant, as it is looped over"
            if not loops:
                return f"tracked: at says {key}, and the phase has no loops"
            if key not in loops:
                return f"tracked: {not_known('key of at', key, loops)}"
            if tracked.at[key] not in loops[key]:
                return f"tracked: {key} {tracked.at[key]:g} is not one of the values of its loop"
    variables = [
        (tracked.quantity, tracked_load(tracked, phase, loads)) for tracked in phase.tracked
    ]
    if any(variables.count(variable) > 1 for variable in variables):
        return "tracked: a variable occurs twice"
    return None


def _in_stream(phase: StreamPhase, load: Load) -> str | None:
    if phase.longest_s < phase.slice_s:
        return "longest_s: shorter than slice_s"
    if phase.judged_every_s is not None and phase.tracked is None:
        return "judged_every_s: nothing is tracked"
    if phase.written_multiple is not None and load.read_percent == 100:
        return "written_multiple: the load writes nothing"
    return None


def _in_order(phases: Sequence[OwnPhase]) -> str | None:
    if not isinstance(phases[-1], Measuring):
        return f"{name_of(len(phases), phases[-1])}, key kind: nothing is measured after it"
    sections = [phase.section for phase in phases if isinstance(phase, Measuring)]
    for section in sections:
        if sections.count(section) > 1:
            return f"phases, key section: '{section}' is the section of two phases"
    slices = sum(
        phase.slices + phase.warm_up_slices for phase in phases if isinstance(phase, StreamPhase)
    )
    if slices > MOST_SLICES:
        return f"phases, key longest_s: {slices:,} slices in all are more than {MOST_SLICES:,}"
    return None


def find_unreachable(phases: Sequence[OwnPhase], rules: SteadyStateTable) -> str | None:
    """Return the first stream that ends before its steady state could be judged, as a fault."""
    for number, phase in enumerate(phases, start=1):
        if isinstance(phase, StreamPhase) and phase.tracked is not None:
            judged = 1 + (phase.slices - 1) // phase.judged_every
            if judged < rules.window_rounds:
                return (
                    f"{name_of(number, phase)}, key longest_s: only {judged} slices are judged, and a "
                    f"window needs {rules.window_rounds}: steady state cannot be reached"
                )
    return None
