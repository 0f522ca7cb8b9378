"""Content of a workload file: a test of the user's own as a table of a profile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Annotated, Any, Literal, Self

import msgspec

from tkperf.procedures.own_workloads.faults import find_table_fault, find_unreachable
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
)
from tkperf.procedures.profiles import Profile
from tkperf.procedures.profiles.tables import (
    MOST_SLICES,
    MOST_VALUES,
    Source,
    SteadyStateTable,
    TestTable,
    addressable,
    means,
)

KEY_PREFIX = "own_workload."


class OwnWorkloadTable(TestTable, frozen=True, kw_only=True):
    """A whole workload file."""

    source: Source = "a workload file"
    format: Annotated[Literal[1], means("version of this format")]
    name: Annotated[Name, means("of the test, as --test, claims and comparisons name it")]
    title: Annotated[Title, means("of the test in reports")]
    steady_state: Annotated[
        OwnSteadyState, means("the rule for steady state; left out: the profile's")
    ] = OwnSteadyState()
    loads: Annotated[
        dict[LoadName, Load],
        msgspec.Meta(min_length=1, max_length=MOST_VALUES),
        means("tables [loads.NAME]: what phases name"),
    ]
    phases: Annotated[
        tuple[OwnPhase, ...],
        msgspec.Meta(min_length=1, max_length=MOST_PHASES),
        means("tables [[phases]] in the order of the test, each with its kind"),
    ]

    def fault(self, profile: Profile) -> str | None:
        return find_table_fault(self.loads, self.phases, self.rules(profile), profile)

    def unreachable(self, profile: Profile) -> str | None:
        """Return why a phase could not reach steady state, as a fault; None if all can."""
        return find_unreachable(self.phases, self.rules(profile))

    def rules(self, profile: Profile) -> SteadyStateTable:
        """Return the rule for steady state: the file's own numbers, else the profile's."""
        return self.steady_state.over(profile.steady_state)

    @property
    def measuring(self) -> tuple[Measuring, ...]:
        """Phases that have results."""
        return tuple(phase for phase in self.phases if isinstance(phase, Measuring))

    @property
    def tracked_quantities(self) -> tuple[str, ...]:
        """Keys of all quantities that decide steady state in any phase."""
        quantities: dict[str, None] = {}
        for phase in self.measuring:
            if isinstance(phase, RoundsPhase):
                quantities |= dict.fromkeys(tracked.quantity for tracked in phase.tracked)
            elif phase.tracked is not None:
                quantities[phase.tracked] = None
        return tuple(quantities)

    @property
    def in_sections(self) -> Iterator[tuple[OwnPhase, str]]:
        """Each phase with its section: purges, fills and pauses belong to the next measuring phase."""
        section = ""
        placed: list[tuple[OwnPhase, str]] = []
        for phase in reversed(self.phases):
            section = phase.section if isinstance(phase, Measuring) else section
            placed.append((phase, section))
        return reversed(placed)

    def scaled(self, step_s: float) -> Self:
        """Return the table with steps and slices of another length; streams and warm-ups last as long as before.

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
    """Return the table type of the test of this name: a run may have several."""
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


# Tables for people, in the order of a file.
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
