"""The content of a workload file, which becomes a table of a profile. This module also contains checks for faults that
the types cannot exclude.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal, Self

import msgspec

from tkperf.model.errors import not_known
from tkperf.model.strict import describe_mistake
from tkperf.model.units import KIB, MIB
from tkperf.model.workload import Access, Arrival, is_reserved_name
from tkperf.procedures.mixes_and_sizes import find_share_fault
from tkperf.procedures.own_workloads.parts import (
    MOST_PHASES,
    MOST_STREAMS,
    MOST_THREADS_TOGETHER,
    SMALLEST_PART_BYTES,
    FillPhase,
    IdlePhase,
    Load,
    LoadName,
    Loop,
    Measuring,
    Name,
    OwnPhase,
    OwnSteadyState,
    OwnTracked,
    PurgePhase,
    RoundsPhase,
    StreamPhase,
    Title,
    at_values,
    count_steps,
    loads_of,
    tracked_load,
)
from tkperf.procedures.profiles import Profile
from tkperf.procedures.profiles.profile_tables import (
    LARGEST_BLOCK_KIB,
    MOST_SLICES,
    MOST_VALUES,
    Source,
    SteadyStateTable,
    TestTable,
    addressable,
    find_size_fault,
    means,
)

KEY_PREFIX = "own_workload."


class OwnWorkloadTable(TestTable, frozen=True, kw_only=True):
    """The content of a workload file, with the keys at the top of the file."""

    source: Source = "a workload file"
    format: Annotated[Literal[1], means("version of this format")]
    name: Annotated[Name, means("name of the test in --test, claims and comparisons")]
    title: Annotated[Title, means("title of the test in reports")]
    steady_state: Annotated[OwnSteadyState, means("steady-state rule; default: the rule in the profile")] = (
        OwnSteadyState()
    )
    loads: Annotated[
        dict[LoadName, Load],
        msgspec.Meta(min_length=1, max_length=MOST_VALUES),
        means("tables [loads.NAME]; phases refer to a load by its name"),
    ]
    phases: Annotated[
        tuple[OwnPhase, ...],
        msgspec.Meta(min_length=1, max_length=MOST_PHASES),
        means("tables [[phases]], in the order in which the phases run; each table has a kind"),
    ]

    def fault(self, profile: Profile) -> str | None:
        """Return the first fault, such as ``load NAME, key K: reason`` or ``phase 2 (rounds), key K: reason``. None
        means that there is no fault.
        """
        rules = self.rules(profile)
        if rules.max_rounds < rules.window_rounds:
            return (
                f"steady_state, key max_rounds: {rules.max_rounds} are fewer than the "
                f"{rules.window_rounds} of a window, steady state cannot be reached"
            )
        for name, load in self.loads.items():
            if fault := _in_load(load, profile):
                return f"load {name}, key {fault}"
        for number, phase in enumerate(self.phases, start=1):
            if fault := _in_phase(phase, self.loads, profile):
                return f"{name_phase(number, phase)}, key {fault}"
        return _in_order(self.phases)

    def unreachable(self, profile: Profile) -> str | None:
        """Return a fault for the first stream that ends before steady state can be judged. None means that there is no
        such stream.
        """
        rules = self.rules(profile)
        for number, phase in enumerate(self.phases, start=1):
            if isinstance(phase, StreamPhase) and phase.tracked is not None:
                judged = 1 + (phase.slices - 1) // phase.judged_every
                if judged < rules.window_rounds:
                    return (
                        f"{name_phase(number, phase)}, key longest_s: only {judged} slices are "
                        "judged, and a "
                        f"window needs {rules.window_rounds}: steady state cannot be reached"
                    )
        return None

    def rules(self, profile: Profile) -> SteadyStateTable:
        """Return the steady-state rule. The profile supplies the numbers that the file does not contain."""
        return self.steady_state.filled_from(profile.steady_state)

    @property
    def measuring(self) -> tuple[Measuring, ...]:
        """The phases that produce results."""
        return tuple(phase for phase in self.phases if isinstance(phase, Measuring))

    @property
    def tracked_quantities(self) -> tuple[str, ...]:
        """The keys of all quantities that decide steady state in a phase."""
        quantities: dict[str, None] = {}
        for phase in self.measuring:
            if isinstance(phase, RoundsPhase):
                quantities |= dict.fromkeys(tracked.quantity for tracked in phase.tracked)
            elif phase.tracked is not None:
                quantities[phase.tracked] = None
        return tuple(quantities)

    @property
    def in_sections(self) -> Iterator[tuple[OwnPhase, str]]:
        """Each phase with the name of its section. Purges, fills and pauses belong to the section of the next measuring
        phase.
        """
        section = ""
        placed: list[tuple[OwnPhase, str]] = []
        for phase in reversed(self.phases):
            section = phase.section if isinstance(phase, Measuring) else section
            placed.append((phase, section))
        return reversed(placed)

    def scaled(self, step_s: float) -> Self:
        """Return the table with a different duration of steps and slices. The durations of streams and warm-ups do not
        change.

        If a stream would have more slices than tkperf can plan, the stream ends earlier.
        """

        def scale(phase: OwnPhase) -> OwnPhase:
            match phase:
                case RoundsPhase():
                    return msgspec.structs.replace(phase, step_s=step_s)
                case StreamPhase():
                    most_s = MOST_SLICES * step_s
                    longest_s = max(step_s, min(phase.longest_s, most_s))
                    return msgspec.structs.replace(phase, slice_s=step_s, longest_s=longest_s)
                case _:
                    return phase

        return msgspec.structs.replace(self, phases=tuple(map(scale, self.phases)))

    def fitted(self, logical_block_bytes: int) -> Self:
        """Return the table without the block sizes in loops that the device cannot address."""

        def fit(phase: OwnPhase) -> OwnPhase:
            if not isinstance(phase, RoundsPhase):
                return phase
            loops = tuple(
                msgspec.structs.replace(loop, values=addressable(loop.values, logical_block_bytes))
                if loop.key == "block_size_kib"
                else loop
                for loop in phase.loops
            )
            return msgspec.structs.replace(phase, loops=loops)

        return msgspec.structs.replace(self, phases=tuple(map(fit, self.phases)))


@cache
def table_type(name: str) -> type[OwnWorkloadTable]:
    """Return the table type of the test with this name. A run may contain several such tests."""
    type_: Any = msgspec.defstruct(
        "OwnWorkloadTable",
        [],
        bases=(OwnWorkloadTable,),
        namespace={"key": f"{KEY_PREFIX}{name}"},
        frozen=True,
        kw_only=True,
    )
    return type_  # type: ignore[no-any-return]


def table_types(keys: Iterable[str]) -> tuple[type[OwnWorkloadTable], ...]:
    """Return the table type of each user-defined test whose key is among the keys of a profile."""
    names = (key.removeprefix(KEY_PREFIX) for key in keys if key.startswith(KEY_PREFIX))
    return tuple(map(table_type, names))


# The headings that the user sees for the tables, in the order of a workload file.
TABLES_BY_PLACE: dict[str, type[msgspec.Struct]] = {
    "Top of the file": OwnWorkloadTable,
    "[steady_state]": OwnSteadyState,
    "[loads.NAME]": Load,
    '[[phases]] with kind = "purge"': PurgePhase,
    '[[phases]] with kind = "fill"': FillPhase,
    '[[phases]] with kind = "idle"': IdlePhase,
    '[[phases]] with kind = "rounds"': RoundsPhase,
    "loops of rounds": Loop,
    "tracked of rounds": OwnTracked,
    '[[phases]] with kind = "stream"': StreamPhase,
}


# the number of steps is limited, because each step becomes a line in the tables of the report
MOST_STEPS_OF_A_ROUND = 1024
_FASTEST_POISSON_IOPS = 1_000_000  # this is the limit for one thread, because fio computes the times in whole µs


def name_phase(number: int, phase: OwnPhase) -> str:
    """Return the name of a phase for messages, such as ``phase 2 (rounds)``. Phases count from 1."""
    return f"phase {number} ({phase.__struct_config__.tag})"


def _in_load(load: Load, profile: Profile) -> str | None:
    if (load.block_size_kib is None) is not bool(load.block_shares):
        return "block_size_kib: either it or block_shares is needed, and not both"
    if load.block_size_kib is not None and (fault := find_size_fault(load.block_size_kib)):
        return f"block_size_kib: {fault}"
    if load.zone_shares and load.access is not Access.RANDOM:
        return "zone_shares: zones are of random accesses only"
    if fault := _in_kind(load):
        return fault
    if fault := _in_range(load):
        return fault
    return find_share_fault(load.block_shares, load.zone_shares) or _in_rate(load, profile)


def _in_range(load: Load) -> str | None:
    if load.range_begin_percent >= load.range_end_percent:
        return "range_end_percent: not more than range_begin_percent"
    for edge, percent, whole in (("begin", load.range_begin_percent, 0), ("end", load.range_end_percent, 100)):
        mib = load.range_begin_mib if edge == "begin" else load.range_end_mib
        if mib is not None and percent != whole:
            return f"range_{edge}_mib: either it or range_{edge}_percent, not both"
        if mib is not None and mib * MIB % SMALLEST_PART_BYTES:
            return f"range_{edge}_mib: {mib:g} MiB are not whole 4 KiB"
    if load.range_end_mib is not None and load.range_end_mib <= (load.range_begin_mib or 0):
        return "range_end_mib: not more than range_begin_mib"
    return None


def _in_kind(load: Load) -> str | None:
    """Return the first fault in the keys for trims, flushes, pauses and partly random access. None means that there is
    no fault.
    """
    sizes_kib = [size_kib for size_kib, _ in load.block_shares] or [load.block_size_kib or 0]
    key = "block_shares" if load.block_shares else "block_size_kib"
    if not load.trims and max(sizes_kib) > LARGEST_BLOCK_KIB:
        return f"{key}: more than {LARGEST_BLOCK_KIB:,} KiB, which only trims may have"
    if load.trims and load.read_percent:
        return "read_percent: trims are never mixed with reads; write 0, and another load for the reads"
    if load.trims and load.compressible_percent:
        return "compressible_percent: trims write no data"
    if load.flush_every is not None and (load.trims or load.read_percent == 100):
        return "flush_every: only writes are flushed"
    if load.trims and (load.io_depth or 1) > 1:
        return "io_depth: fio trims one block at a time: write 1, and more jobs for more load"
    if load.random_percent is not None and load.access is not Access.RANDOM:
        return 'random_percent: access has to be "random"'
    if (load.burst_ios is None) is not (load.burst_pause_s is None):
        return "burst_pause_s: it and burst_ios are needed together"
    if load.offered_megabytes_per_s is not None and load.offered_iops is not None:
        return "offered_megabytes_per_s: either it or offered_iops, not both"
    return None


def _in_rate(load: Load, profile: Profile) -> str | None:
    offered_iops = load.offered_iops
    key = "offered_iops"
    if load.offered_megabytes_per_s is not None:
        key = "offered_megabytes_per_s"
        shares = load.block_shares or ((load.block_size_kib or 0, 100),)
        mean_bytes = sum(size_kib * KIB * percent for size_kib, percent in shares) / 100
        offered_iops = load.offered_megabytes_per_s * 1e6 / mean_bytes
    if offered_iops is None:
        return None
    jobs = load.jobs or profile.demand.jobs
    reads = load.read_percent / 100
    rates = [offered_iops * share / jobs for share in (reads, 1 - reads) if share]
    if min(rates) < 1:
        given = f"{offered_iops:g}" if key == "offered_iops" else f"{offered_iops:.3g} I/Os a second"
        return f"{key}: {given} are less than one a second for each of {jobs} threads and direction"
    if load.arrival is Arrival.POISSON and max(rates) > _FASTEST_POISSON_IOPS:
        return (
            f"{key}: {offered_iops:,.10g} are more than {_FASTEST_POISSON_IOPS:,} a second "
            "for a thread, which fio cannot offer at random times"
        )
    return None


def _in_phase(phase: OwnPhase, loads: Mapping[str, Load], profile: Profile) -> str | None:
    key, names = _names(phase)
    for name in names:
        if name not in loads:
            return f"{key}: {not_known('load', name, loads)}"
    if isinstance(phase, Measuring) and (fault := _in_together(phase, loads, profile)):
        return fault
    if not isinstance(phase, Measuring) or not phase.together:
        for name in names:
            if loads[name].delay_s:
                return f"{key}: load {name} has delay_s, which only loads that run together have"
    match phase:
        case FillPhase():
            return None if phase.load is None else _in_fill(loads[phase.load])
        case RoundsPhase():
            return _in_rounds(phase, loads, profile)
        case StreamPhase():
            return _in_stream(phase, [loads[name] for name in names])
        case _:
            return None


def _names(phase: OwnPhase) -> tuple[str, tuple[str, ...]]:
    """Return the key of a phase that contains the names of loads, and these names."""
    match phase:
        case RoundsPhase() | StreamPhase() if phase.together:
            return "together", phase.together
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
            "rounds: either tracked, whose steady state ends the phase, or a number of rounds is needed, and not both"
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
        return f"loops: {steps:,} steps of a round, all combinations, are more than {MOST_STEPS_OF_A_ROUND:,}"
    return None


def _in_tracked(phase: RoundsPhase, loads: Mapping[str, Load]) -> str | None:
    loops = {loop.key: loop.values for loop in phase.loops}
    names = phase.together or phase.loads
    for tracked in phase.tracked:
        if tracked.load is None and len(phase.loads) > 1:
            return "tracked: load says which of the phase's loads is meant"
        if tracked.load is not None and tracked.load not in names:
            return f"tracked: {not_known('load', tracked.load, names)}"
        for key in (*loops, *tracked.at):
            if key not in tracked.at:
                return f"tracked: at has to say which {key} is meant, as it is looped over"
            if not loops:
                return f"tracked: at says {key}, and the phase has no loops"
            if key not in loops:
                return f"tracked: {not_known('key of at', key, loops)}"
            if tracked.at[key] not in loops[key]:
                return f"tracked: {key} {tracked.at[key]:g} is not one of the values of its loop"
    if phase.together:
        chosen = [(tracked.quantity, tracked.load) for tracked in phase.tracked]
        return "tracked: a variable occurs twice" if len(set(chosen)) < len(chosen) else None
    variables = [(tracked.quantity, tracked_load(tracked, phase, loads)) for tracked in phase.tracked]
    if any(variables.count(variable) > 1 for variable in variables):
        return "tracked: a variable occurs twice"
    return None


def _in_together(phase: Measuring, loads: Mapping[str, Load], profile: Profile) -> str | None:
    given = phase.loads if isinstance(phase, RoundsPhase) else phase.load
    key = "loads" if isinstance(phase, RoundsPhase) else "load"
    if bool(given) is bool(phase.together):
        return f"{key}, together: a phase takes one of these two keys; give exactly one of them"
    if not phase.together:
        return None
    if len(phase.together) < 2:
        return f"together: one load alone cannot run together with others; move its name to the key {key}"
    if len(set(phase.together)) < len(phase.together):
        twice = next(name for name in phase.together if phase.together.count(name) > 1)
        return f"together: load {twice} occurs twice; to run more threads of this load, set its key jobs"
    if len(phase.together) > MOST_STREAMS:
        return f"together: {len(phase.together)} loads are more than the {MOST_STREAMS} that can run at the same time"
    threads = sum(loads[name].jobs or profile.demand.jobs for name in phase.together)
    if threads > MOST_THREADS_TOGETHER:
        return (
            f"together: the loads have {threads:,} threads in all, and at most {MOST_THREADS_TOGETHER} can run at the "
            "same time; lower jobs"
        )
    if isinstance(phase, RoundsPhase) and phase.loops:
        return "loops: a phase with together cannot have loops; write a phase for each value"
    for name in phase.together:
        if is_reserved_name(name):
            return (
                f"together: the name {name} has another meaning in results, where all is the total of the loads, and "
                "NAME, flushes means the flushes of a load; rename the load"
            )
    if earliest_s := min(loads[name].delay_s for name in phase.together):
        return (
            f"together: every load has delay_s, but one load must begin at once; lower each delay_s by {earliest_s:g}"
        )
    lasts_s = phase.step_s if isinstance(phase, RoundsPhase) else phase.slice_s
    for name in phase.together:
        if loads[name].delay_s > lasts_s / 2:
            return (
                f"together: load {name} begins {loads[name].delay_s:g} s after the others, which is more than half of "
                f"the {lasts_s:g} s of a measurement; lower delay_s, or measure for longer"
            )
    return None


def _in_stream(phase: StreamPhase, loads: Sequence[Load]) -> str | None:
    if phase.longest_s < phase.slice_s:
        return "longest_s: shorter than slice_s"
    if phase.judged_every_s is not None and phase.tracked is None:
        return "judged_every_s: nothing is tracked"
    if phase.written_multiple is not None and all(load.read_percent == 100 or load.trims for load in loads):
        return "written_multiple: the load writes nothing"
    return None


def _in_order(phases: Sequence[OwnPhase]) -> str | None:
    if not isinstance(phases[-1], Measuring):
        return f"{name_phase(len(phases), phases[-1])}, key kind: nothing is measured after it"
    sections = [phase.section for phase in phases if isinstance(phase, Measuring)]
    for section in sections:
        if sections.count(section) > 1:
            return f"phases, key section: '{section}' is the section of two phases"
    slices = sum(phase.slices + phase.warm_up_slices for phase in phases if isinstance(phase, StreamPhase))
    if slices > MOST_SLICES:
        return f"phases, key longest_s: {slices:,} slices in all are more than {MOST_SLICES:,}"
    return None
