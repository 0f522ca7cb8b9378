"""Outlook on a run, from a walk through it: time, bytes written, share of the drive's life."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tkperf.device.identity import TargetKind
from tkperf.model.phases import Continuous, Fill, Idle, Phase, Purge, Round
from tkperf.model.units import format_capacity, format_count
from tkperf.pipeline.endurance import MUCH_OF_A_LIFE, Rating
from tkperf.pipeline.fitting import TestPhases
from tkperf.pipeline.rates import Rates, RateSource
from tkperf.pipeline.run_plan import RunPlan
from tkperf.procedures.plan import Case, phases_ahead


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Consecutive phases of one kind in a section.

    Attributes:
        what: in words, as ``fill 2 x 240.1 GB``.
        shortest_s, longest_s: 0 for a purge, whose time is unknown.
        least_bytes, most_bytes: bytes that it writes.
    """

    test: str
    section: str
    what: str
    shortest_s: float
    longest_s: float
    least_bytes: float
    most_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """Outlook on all stages of a run.

    ``rated_bytes``: bytes that the drive, or all drives of a set together, may take; None: no rating given.
    """

    stages: tuple[Stage, ...]
    rates: Rates
    capacity_bytes: int
    rated_bytes: float | None = None
    rated_as: str | None = None
    simulated: bool = False
    """The time is the simulated drive's own; the user does not wait for it."""

    @property
    def shortest_s(self) -> float:
        return sum(stage.shortest_s for stage in self.stages)

    @property
    def longest_s(self) -> float:
        return sum(stage.longest_s for stage in self.stages)

    @property
    def least_bytes(self) -> float:
        """Least bytes written. Without the rates of an earlier run: the bytes of the fills, exactly."""
        return sum(stage.least_bytes for stage in self.stages)

    @property
    def most_bytes(self) -> float:
        return sum(stage.most_bytes for stage in self.stages)

    @property
    def purges(self) -> int:
        return sum(stage.what == PURGE for stage in self.stages)

    @property
    def shares(self) -> tuple[float, float] | None:
        """Least and most share of the rating; None without one."""
        if self.rated_bytes is None:
            return None
        return self.least_bytes / self.rated_bytes, self.most_bytes / self.rated_bytes

    @property
    def costs_much(self) -> bool:
        """Return whether the run may take a twentieth of the drive's life or more."""
        return self.shares is not None and self.shares[1] >= MUCH_OF_A_LIFE


PURGE = "purge"


def look_out(plan: RunPlan, rates: Rates, rating: Rating | None = None) -> Outlook:
    """Walk every test of a plan at these rates.

    Raises:
        UsageError: no such device has this rating.
    """
    identity = plan.subject.identity
    members = plan.subject.facts.values.get("members")
    drives = len(members) if isinstance(members, list | tuple) and members else 1
    drive_bytes = identity.capacity_bytes
    if plan.subject.filled_bytes is not None and drives > 1:
        drive_bytes = plan.subject.filled_bytes // drives
    rated_bytes = None if rating is None else rating.bytes_of(drive_bytes) * drives
    rated_as = None if rating is None else rating.describe(drive_bytes)
    if rated_as is not None and drives > 1:
        rated_as += f" of each of {drives} drives, parity and mirrors not counted"
    return Outlook(
        stages=tuple(stage for test in plan.tests for stage in _stages(plan, test, rates)),
        rates=rates,
        capacity_bytes=identity.capacity_bytes,
        rated_bytes=rated_bytes,
        rated_as=rated_as,
        simulated=identity.kind is TargetKind.SIMULATED,
    )


def _stages(plan: RunPlan, test: TestPhases, rates: Rates) -> Iterator[Stage]:
    rates_known = rates.source is RateSource.RUN and all(map(rates.knows, test.workloads))
    best = _grouped(_walk(plan, test, rates, Case.BEST))
    unsteady = _grouped(_walk(plan, test, rates, Case.UNSTEADY))
    # With rates that are only bounds, the writes may never reach an amount.
    longest = unsteady if rates_known else _grouped(_walk(plan, test, rates, Case.WORST))

    def pass_bytes(fill: Fill) -> int:
        """Return the bytes of one pass: all members of a set, the fill's own range, or the active range."""
        return plan.subject.filled_bytes or fill.length_bytes or plan.active_range.length_bytes

    for key, phases in longest.items():
        most, least = unsteady.get(key, phases), best.get(key, [])
        written = [_written(group, rates, pass_bytes) for group in (least, most)]
        if not rates_known and key[1] is not Fill:
            written[0] = 0.0
        yield Stage(
            test=test.test.title,
            section=key[0],
            what=_describe(least, phases, pass_bytes),
            shortest_s=sum(duration_s for _, duration_s in least),
            longest_s=sum(duration_s for _, duration_s in phases),
            least_bytes=written[0],
            most_bytes=max(written),
        )


_Walked = list[tuple[Phase, float]]
_PassBytes = Callable[[Fill], int]


def _walk(
    plan: RunPlan, test: TestPhases, rates: Rates, case: Case
) -> Iterable[tuple[Phase, float]]:
    length_bytes = plan.active_range.length_bytes
    procedure = test.test.procedure(plan.profile, length_bytes)
    return phases_ahead(procedure, case, active_range_bytes=length_bytes, pace=rates.of)


def _grouped(walked: Iterable[tuple[Phase, float]]) -> dict[tuple[str, type[Phase], int], _Walked]:
    """Group consecutive phases of one kind: by section, kind, and number of earlier such rows.

    A pause belongs to the phase before it, so thousands of bursts and pauses are one row.
    """
    groups: dict[tuple[str, type[Phase], int], _Walked] = {}
    before: tuple[str, type[Phase], int] | None = None
    for phase, duration_s in walked:
        pauses = isinstance(phase, Idle) and before is not None and before[0] == phase.section
        if not pauses and (before is None or before[:2] != (phase.section, type(phase))):
            count = sum(key[:2] == (phase.section, type(phase)) for key in groups)
            before = phase.section, type(phase), count
        assert before is not None, "a row has begun"
        groups.setdefault(before, []).append((phase, duration_s))
    return groups


def _written(walked: _Walked, rates: Rates, pass_bytes: _PassBytes) -> float:
    whole = 0.0
    for phase, duration_s in walked:
        match phase:
            case Fill():
                whole += phase.passes * pass_bytes(phase)
            case Continuous():
                share = 1 - phase.workload.read_percent / 100
                whole += share * rates.of(phase.workload) * duration_s
            case Round():
                whole += sum(
                    (1 - step.workload.read_percent / 100)
                    * rates.of(step.workload)
                    * step.duration_s
                    for step in phase.steps
                )
            case Purge() | Idle():
                pass
    return whole


def _describe(least: _Walked, most: _Walked, pass_bytes: _PassBytes) -> str:
    """Describe a row; with pauses, their number and the phases between them."""
    pauses = sum(isinstance(phase, Idle) for phase, _ in most)
    if 0 < pauses < len(most):
        least = [entry for entry in least if not isinstance(entry[0], Idle)]
        most = [entry for entry in most if not isinstance(entry[0], Idle)]
        between = _describe(least, most, pass_bytes)
        if isinstance(most[0][0], Continuous):
            between = f"{len(most):,} times a {between}"
        return f"{between}, with {format_count(pauses, 'pause')}"
    first = most[0][0]
    match first:
        case Purge():
            return PURGE
        case Idle():
            return "idle"
        case Fill():
            times = sum(phase.passes for phase, _ in most if isinstance(phase, Fill))
            return f"fill {times} x {format_capacity(pass_bytes(first))}"
        case Round():
            steps = format_count(len(first.steps), "step")
            if first.areas is not None:
                return f"{format_count(len(most), 'area')} of {steps}"
            return f"{_range(len(least), len(most))} of {steps}"
        case Continuous():
            return f"stream of {first.workload}"


def _range(least: int, most: int) -> str:
    if least == most:
        return format_count(most, "round")
    return f"{least} to {format_count(most, 'round')}"
