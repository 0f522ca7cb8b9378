"""Estimates of runs and batches before they begin: time, bytes written, and whether tkperf would refuse them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from operator import attrgetter
from typing import Any

from tkperf.analysis.verdict import Judgement, NamedReason, VerdictCode, VerdictState, judge_by_gravest
from tkperf.model.record import RunNote
from tkperf.model.sharing import BudgetState, CpuPlan, DriveGroup, PartBudget
from tkperf.model.workload import Workload
from tkperf.procedures import Profile, Test

# tkperf warns before a run that may take this share of a drive's life or more.
MUCH_OF_A_LIFE = 0.05
PURGE = "purge"
REFUSAL = "would-be-refused"
"""Code of the warning that tkperf would refuse a run."""
# Codes of warnings that are facts about the device and the profile.
_PREPARATION = "preparation"


class RateSource(StrEnum):
    ASSUMED = "assumed"
    GIVEN = "given"
    PROBE = "read probe"
    RUN = "earlier run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Rates in bytes per second: of large sequential writes, and of each workload that was measured before.

    ``note`` describes the source of the rates, and the reason why there is no better source.
    """

    bytes_per_s: float
    source: RateSource
    note: str
    measured: Mapping[Workload, float] = field(default_factory=dict)

    def rate_of(self, workload: Workload) -> float:
        """Return the rate of a workload. If the workload was never measured, return the rate of large sequential
        writes, which is not exceeded.
        """
        return self.measured.get(replace(workload, region=None), self.bytes_per_s)

    def knows(self, workload: Workload) -> bool:
        """Return whether the workload was measured."""
        return replace(workload, region=None) in self.measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Consecutive phases of one kind in a section.

    Attributes:
        what: description, such as ``fill 2 × 240.1 GB``.
        shortest_s, longest_s: bounds of the time; 0 for a purge, whose time is not known.
        least_bytes, most_bytes: bounds of the bytes that the phases write.
    """

    test: str
    section: str
    what: str
    shortest_s: float
    longest_s: float
    least_bytes: float
    most_bytes: float


def sum_times_s(stages: Sequence[Stage]) -> tuple[float, float]:
    """Return the shortest and the longest time of stages, without purges."""
    return sum(one.shortest_s for one in stages), sum(one.longest_s for one in stages)


def sum_bytes(stages: Sequence[Stage]) -> tuple[float, float]:
    """Return the least and the greatest amount that stages write."""
    return sum(one.least_bytes for one in stages), sum(one.most_bytes for one in stages)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """Stages that follow each other ``least`` to ``most`` times, such as rounds that alternate. ``stages`` contains
    each of them.
    """

    once: tuple[Stage, ...]
    stages: tuple[Stage, ...]

    @property
    def least(self) -> int:
        """Return the number of times in the shortest course."""
        starts = range(0, len(self.stages), len(self.once))
        each = (self.stages[at : at + len(self.once)] for at in starts)
        return sum(any(stage.shortest_s for stage in stages) for stages in each)

    @property
    def most(self) -> int:
        return len(self.stages) // len(self.once)


def fold(stages: Sequence[Stage]) -> Iterator[Repeated]:
    """Yield stages in their order. Consecutive equal stages become one entry."""
    at = 0
    while at < len(stages):
        size, times = 1, 1
        for wanted in range(1, (len(stages) - at) // 2 + 1):
            if (found := _count_alike(stages, at, wanted)) > 1:
                size, times = wanted, found
                break
        once, end = stages[at : at + size], at + size * times
        yield Repeated(once=tuple(once), stages=tuple(stages[at:end]))
        at = end


def _count_alike(stages: Sequence[Stage], at: int, size: int) -> int:
    """Return how often the ``size`` stages from a place on are repeated."""
    end = at + size
    while end < len(stages) and _key(stages[end]) == _key(stages[end - size]):
        end += 1
    return (end - at) // size


# Stages are equal even if only the first of them are certain.
_key = attrgetter("test", "section", "longest_s", "most_bytes")


class PlanCode(VerdictCode):
    """Reasons for the verdict on a plan."""

    REFUSED = "would-be-refused", VerdictState.REFUSED
    COSTS_MUCH = "costs-much", VerdictState.CAN_RUN_WITH_CAUTIONS
    SLOW_LINK = "slow-link", VerdictState.CAN_RUN_WITH_CAUTIONS
    OVER_BUDGET = "over-budget", VerdictState.CAN_RUN_WITH_CAUTIONS
    WARNINGS = "warnings", VerdictState.CAN_RUN_WITH_CAUTIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEstimate:
    """Everything that is known about a run before it begins.

    Attributes:
        target: the DEVICE argument.
        device: facts of the device.
        profile: the profile of the run.
        active_range_bytes: length of the active range; for a RAID set that was not made yet, the least length.
        choices, alterations: changes of the profile by the options.
        purges_first: a purge precedes each test.
        conditions: further facts, each with its label: purge method, segments, members, host.
        asks: whether the user must confirm the loss of data before anything is written.
        rated_bytes: bytes that may be written to the drive, or to all drives of a set together; None: no rating was
            given.
        rated_as: the rating in words.
        simulated: whether the time is that of a simulated drive. The user does not wait for this time.
    """

    target: str
    device: Mapping[str, object]
    profile: Profile
    tests: tuple[Test, ...]
    active_range_bytes: int
    stages: tuple[Stage, ...]
    rates: Rates
    capacity_bytes: int
    choices: tuple[str, ...] = ()
    alterations: tuple[str, ...] = ()
    purges_first: bool = True
    conditions: tuple[tuple[str, str], ...] = ()
    warnings: tuple[RunNote, ...] = ()
    asks: bool = False
    rated_bytes: float | None = None
    rated_as: str | None = None
    simulated: bool = False

    @property
    def shortest_s(self) -> float:
        return sum_times_s(self.stages)[0]

    @property
    def longest_s(self) -> float:
        return sum_times_s(self.stages)[1]

    @property
    def least_bytes(self) -> float:
        """Least number of bytes that are written. Without the rates of an earlier run, this is the exact number of
        bytes of the fills.
        """
        return sum_bytes(self.stages)[0]

    @property
    def most_bytes(self) -> float:
        return sum_bytes(self.stages)[1]

    @property
    def purge_count(self) -> int:
        return sum(stage.what == PURGE for stage in self.stages)

    @property
    def shares(self) -> tuple[float, float] | None:
        """Least and greatest share of the rating; None if no rating was given."""
        if self.rated_bytes is None:
            return None
        return self.least_bytes / self.rated_bytes, self.most_bytes / self.rated_bytes

    @property
    def costs_much(self) -> bool:
        """Return whether the run may use a twentieth of the drive's life or more."""
        return self.shares is not None and self.shares[1] >= MUCH_OF_A_LIFE

    @property
    def has_slow_link(self) -> bool:
        """Return whether the link of the device is slower than possible."""
        return bool(self.device.get("link_downgraded"))

    @property
    def refusals(self) -> tuple[str, ...]:
        """The reasons why tkperf would refuse a run now."""
        return tuple(one.text for one in self.warnings if one.code == REFUSAL)

    @property
    def cautions(self) -> tuple[str, ...]:
        """Warnings of circumstances that would make the result doubtful or the run fail."""
        return tuple(one.text for one in self.warnings if one.code not in (REFUSAL, _PREPARATION))

    @property
    def remarks(self) -> tuple[str, ...]:
        """Facts about the device and the profile that are not cautions."""
        return tuple(one.text for one in self.warnings if one.code == _PREPARATION)


def judge_plan(estimate: RunEstimate) -> Judgement[NamedReason]:
    """Return whether the run could begin, and with which cautions."""
    found = {
        PlanCode.REFUSED: estimate.refusals,
        PlanCode.COSTS_MUCH: estimate.costs_much,
        PlanCode.SLOW_LINK: estimate.has_slow_link,
        PlanCode.WARNINGS: estimate.cautions,
    }
    reasons = [NamedReason(code=code, names=of if isinstance(of, tuple) else ()) for code, of in found.items() if of]
    return judge_by_gravest(reasons, VerdictState.CAN_RUN, simulated=estimate.simulated)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveEstimate:
    """A drive of a batch and the estimate of its run.

    Attributes:
        number: the number of the drive in the batch, from 1.
        name: the name of the run.
        given: the drive as the user named it.
        path: the path of the drive; None: the name leads to no drive.
        fault: the reason why nothing more is known about the drive; empty: no fault was found so far.
        estimate: the estimate of the run; None: the drive has a fault.
        host: findings about the host and about the drive in this host.
    """

    number: int
    name: str
    given: str
    path: str | None
    slot: str | None = None
    fault: str = ""
    estimate: RunEstimate | None = None
    host: Sequence[Mapping[str, Any]] = ()

    @property
    def refusals(self) -> tuple[str, ...]:
        """The reasons why tkperf would refuse the drive, and therefore the batch, now."""
        if self.estimate is None:
            return (self.fault,)
        return self.estimate.refusals


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchEstimate:
    """Everything that is known about a batch before it begins.

    Attributes:
        groups: the drives without a fault, by their names, in the groups in which they would be measured.
        cpus: the CPUs of each group; None: its drives share all CPUs.
        bounds_s: shortest and longest time of all groups, one after the other.
        refused: the reason why tkperf would refuse the whole batch; empty: it would not.
        settings: descriptions of the course of the batch, each with its label.
    """

    name: str
    drives: tuple[DriveEstimate, ...]
    groups: tuple[DriveGroup, ...] = ()
    cpus: tuple[CpuPlan | None, ...] = ()
    bounds_s: tuple[float, float] = (0.0, 0.0)
    refused: str = ""
    settings: tuple[tuple[str, str], ...] = field(default=())

    @property
    def estimates(self) -> tuple[RunEstimate, ...]:
        """The estimates of the drives without a fault."""
        return tuple(drive.estimate for drive in self.drives if drive.estimate is not None)

    @property
    def refused_drives(self) -> tuple[DriveEstimate, ...]:
        return tuple(drive for drive in self.drives if drive.refusals)

    @property
    def written_bytes(self) -> tuple[float, float]:
        """The least and the greatest amount that would be written to all drives."""
        estimates = self.estimates
        return sum(one.least_bytes for one in estimates), sum(one.most_bytes for one in estimates)

    @property
    def shares(self) -> tuple[float, float] | None:
        """Least and greatest share of a drive's rating, over all drives; None if no rating was given."""
        shares = [one.shares for one in self.estimates if one.shares is not None]
        if not shares:
            return None
        return min(least for least, _ in shares), max(most for _, most in shares)

    @property
    def lost(self) -> int:
        """Number of drives whose data would be lost."""
        return sum(one.asks for one in self.estimates)

    @property
    def simulated(self) -> bool:
        """Return whether all drives are simulated."""
        found = [drive.estimate for drive in self.drives]
        return all(estimate is not None and estimate.simulated for estimate in found)

    @property
    def over_budget(self) -> tuple[PartBudget, ...]:
        """Parts that the drives of a group may overload, each once."""
        found = {
            budget.part.key: budget
            for group in self.groups
            for budget in group.budgets
            if budget.state is BudgetState.OVER
        }
        return tuple(found.values())


def judge_batch_plan(estimate: BatchEstimate) -> Judgement[NamedReason]:
    """Return whether the batch could begin, and with which cautions. A reason names its drives or parts."""
    names: dict[VerdictCode, list[str]] = {}
    for drive in estimate.drives:
        if drive.refusals:
            names.setdefault(PlanCode.REFUSED, []).append(drive.name)
        if drive.estimate is not None:
            for reason in judge_plan(drive.estimate).reasons:
                if reason.code is not PlanCode.REFUSED:
                    names.setdefault(reason.code, []).append(drive.name)
    if estimate.refused:
        names.setdefault(PlanCode.REFUSED, [])
    if estimate.over_budget:
        names[PlanCode.OVER_BUDGET] = [budget.part.name for budget in estimate.over_budget]
    reasons = [NamedReason(code=code, names=tuple(found)) for code, found in names.items()]
    return judge_by_gravest(reasons, VerdictState.CAN_RUN, simulated=estimate.simulated)
