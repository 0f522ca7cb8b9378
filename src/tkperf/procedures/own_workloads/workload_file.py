"""Content of a workload file: a test of the user as a table of a profile, and faults that the types cannot exclude."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal, Self

import msgspec

from tkperf.model.errors import not_known
from tkperf.model.strict import describe_mistake
from tkperf.model.workload import Access, Arrival
from tkperf.procedures.mixes_and_sizes import find_share_fault
from tkperf.procedures.own_workloads.parts import (
    MOST_PHASES,
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
    """A whole workload file."""

    source: Source = "a workload file"
    format: Annotated[Literal[1], means("version of this format")]
    name: Annotated[Name, means("name of the test in --test, claims and comparisons")]
    title: Annotated[Title, means("title of the test in reports")]
    steady_state: Annotated[OwnSteadyState, means("rule for steady state; default: that of the profile")] = (
        OwnSteadyState()
    )
    loads: Annotated[
        dict[LoadName, Load],
        msgspec.Meta(min_length=1, max_length=MOST_VALUES),
        means("tables [loads.NAME]; phases refer to them by name"),
    ]
    phases: Annotated[
        tuple[OwnPhase, ...],
        msgspec.Meta(min_length=1, max_length=MOST_PHASES),
        means("tables [[phases]] in the order of the test; each has a kind"),
    ]

    def fault(self, profile: Profile) -> str | None:
        """Return the first fault, as ``load NAME, key K: reason`` or ``phase 2 (rounds), key K: reason``."""
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
        """Return the first stream that ends before its steady state could be judged, as a fault; None if there is no
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
        """Return the rule for steady state: the numbers of the file, or else those of the profile."""
        return self.steady_state.filled_from(profile.steady_state)

    @property
    def measuring(self) -> tuple[Measuring, ...]:
        """The phases that have results."""
        return tuple(phase for phase in self.phases if isinstance(phase, Measuring))

    @property
    def tracked_quantities(self) -> tuple[str, ...]:
        """The keys of all quantities that decide steady state in any phase."""
        quantities: dict[str, None] = {}
        for phase in self.measuring:
            if isinstance(phase, RoundsPhase):
                quantities |= dict.fromkeys(tracked.quantity for tracked in phase.tracked)
            elif phase.tracked is not None:
                quantities[phase.tracked] = None
        return tuple(quantities)

    @property
    def in_sections(self) -> Iterator[tuple[OwnPhase, str]]:
        """Each phase with its section. Purges, fills and pauses belong to the next measuring phase."""
        section = ""
        placed: list[tuple[OwnPhase, str]] = []
        for phase in reversed(self.phases):
            section = phase.section if isinstance(phase, Measuring) else section
            placed.append((phase, section))
        return reversed(placed)

    def scaled(self, step_s: float) -> Self:
        """Return the table with steps and slices of another length. The lengths of streams and warm-ups do not change.

        A stream with more slices than the look-ahead allows ends earlier.
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
    """Return the types of the own-workload tables among the keys of a profile."""
    names = (key.removeprefix(KEY_PREFIX) for key in keys if key.startswith(KEY_PREFIX))
    return tuple(map(table_type, names))


# The tables for people, in the order of a file.
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


MOST_STEPS_OF_A_ROUND = 1024  # each step is a line in the tables of the report
_FASTEST_POISSON_IOPS = 1_000_000  # for one thread: fio computes the times in whole us


def name_phase(number: int, phase: OwnPhase) -> str:
    """Return ``phase 2 (rounds)``. Phases count from 1."""
    return f"phase {number} ({phase.__struct_config__.tag})"


def _in_load(load: Load, profile: Profile) -> str | None:
    if (load.block_size_kib is None) is not bool(load.block_shares):
        return "block_size_kib: either it or block_shares is needed, and not both"
    if load.block_size_kib is not None and (fault := find_size_fault(load.block_size_kib)):
        return f"block_size_kib: {fault}"
    if load.zone_shares and load.access is not Access.RANDOM:
        return "zone_shares: only random accesses can have zones"
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
            f"offered_iops: {load.offered_iops:g} are less than one a second for each of {jobs} threads and direction"
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
    """Return the key that names loads, and the names of these loads."""
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
    variables = [(tracked.quantity, tracked_load(tracked, phase, loads)) for tracked in phase.tracked]
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
        return f"{name_phase(len(phases), phases[-1])}, key kind: nothing is measured after it"
    sections = [phase.section for phase in phases if isinstance(phase, Measuring)]
    for section in sections:
        if sections.count(section) > 1:
            return f"phases, key section: '{section}' is the section of two phases"
    slices = sum(phase.slices + phase.warm_up_slices for phase in phases if isinstance(phase, StreamPhase))
    if slices > MOST_SLICES:
        return f"phases, key longest_s: {slices:,} slices in all are more than {MOST_SLICES:,}"
    return None
