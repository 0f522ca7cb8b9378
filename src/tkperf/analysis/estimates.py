"""Estimates of runs and batches before their start. An estimate contains the time and the bytes written, and states
whether tkperf would refuse the run.
"""

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

# tkperf warns before a run if the run may consume at least this share of a drive's rated life.
MUCH_OF_A_LIFE = 0.05
PURGE = "purge"
REFUSAL = "would-be-refused"
"""The code of the warning that tkperf would refuse a run."""
# Warnings with this code only state facts about the device and the profile.
_PREPARATION = "preparation"


class RateSource(StrEnum):
    ASSUMED = "assumed"
    GIVEN = "given"
    PROBE = "read probe"
    RUN = "earlier run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Rates in bytes per second. The record contains the rate of large sequential writes, and the rate of each workload
    that was measured before.

    ``note`` describes the source of the rates. If the rates are assumed, ``note`` also contains the reason why no
    better source exists.
    """

    bytes_per_s: float
    source: RateSource
    note: str
    measured: Mapping[Workload, float] = field(default_factory=dict)

    def rate_of(self, workload: Workload) -> float:
        """Return the rate of a workload in bytes per second. If the workload was not measured before, return the rate
        of large sequential writes as an upper limit.
        """
        return self.measured.get(replace(workload, region=None), self.bytes_per_s)

    def knows(self, workload: Workload) -> bool:
        """Return whether the rate of the workload was measured before."""
        return replace(workload, region=None) in self.measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Consecutive phases of the same kind in a section.

    Attributes:
        what: description of the phases, such as ``fill 2 × 240.1 GB``.
        shortest_s, longest_s: bounds of the time. Both bounds are 0 for a purge, because the time of a purge is not
            known.
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
    """Return the shortest and the longest time of all stages together, in s. Purges are not included."""
    return sum(one.shortest_s for one in stages), sum(one.longest_s for one in stages)


def sum_bytes(stages: Sequence[Stage]) -> tuple[float, float]:
    """Return the smallest and the greatest number of bytes that all stages together can write."""
    return sum(one.least_bytes for one in stages), sum(one.most_bytes for one in stages)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """A sequence of stages that is repeated between ``least`` and ``most`` times, such as alternating rounds. ``once``
    contains the stages of one repetition. ``stages`` contains the stages of all repetitions.
    """

    once: tuple[Stage, ...]
    stages: tuple[Stage, ...]

    @property
    def least(self) -> int:
        """Return the number of repetitions in the shortest possible run."""
        starts = range(0, len(self.stages), len(self.once))
        each = (self.stages[at : at + len(self.once)] for at in starts)
        return sum(any(stage.shortest_s for stage in stages) for stages in each)

    @property
    def most(self) -> int:
        return len(self.stages) // len(self.once)


def fold(stages: Sequence[Stage]) -> Iterator[Repeated]:
    """Yield the stages in order. Equal stages that follow each other become one entry, and so do equal sequences of
    stages.
    """
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
    """Return how often a sequence of stages is repeated without a gap. The sequence contains ``size`` stages and begins
    at the index ``at``.
    """
    end = at + size
    while end < len(stages) and _key(stages[end]) == _key(stages[end - size]):
        end += 1
    return (end - at) // size


# The shortest times are not compared. Stages are equal even if only the first repetitions are certain to run.
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
    """All facts and estimates that are known about a run before the run begins.

    Attributes:
        target: the DEVICE argument.
        device: facts of the device.
        profile: the profile of the run.
        uses_demand: whether any test uses the demand of the profile. The other tests define their own demands.
        active_range_bytes: length of the active range. For a RAID set that does not exist yet, the smallest possible
            length is used.
        choices, alterations: changes that the options make to the profile.
        purges_first: whether a purge precedes each test.
        conditions: additional facts about the purge method, the segments, the members and the host, each with its
            label.
        asks: whether the user must confirm the loss of data before anything is written.
        rated_bytes: rated number of bytes that can be written to the drive, or to all drives of a set together. None
            means that no rating was given.
        rated_as: the rating in words.
        simulated: whether the drive is simulated. The estimated time is then simulated time, for which the user does
            not wait.
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
    uses_demand: bool = True

    @property
    def shortest_s(self) -> float:
        return sum_times_s(self.stages)[0]

    @property
    def longest_s(self) -> float:
        return sum_times_s(self.stages)[1]

    @property
    def least_bytes(self) -> float:
        """The smallest number of bytes that the run writes. If no earlier run provides the rates, this number is
        exactly the number of bytes of the fills.
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
        """The smallest and the greatest share of the rated bytes that the run writes, or None if no rating was
        given.
        """
        if self.rated_bytes is None:
            return None
        return self.least_bytes / self.rated_bytes, self.most_bytes / self.rated_bytes

    @property
    def costs_much(self) -> bool:
        """Return whether the run may consume a twentieth or more of the rated life of the drive."""
        return self.shares is not None and self.shares[1] >= MUCH_OF_A_LIFE

    @property
    def has_slow_link(self) -> bool:
        """Return whether the link of the device is slower than the link that the device supports."""
        return bool(self.device.get("link_downgraded"))

    @property
    def refusals(self) -> tuple[str, ...]:
        """The reasons why tkperf would refuse a run now."""
        return tuple(one.text for one in self.warnings if one.code == REFUSAL)

    @property
    def cautions(self) -> tuple[str, ...]:
        """Warnings about conditions that would make the result doubtful or would cause the run to fail."""
        return tuple(one.text for one in self.warnings if one.code not in (REFUSAL, _PREPARATION))

    @property
    def remarks(self) -> tuple[str, ...]:
        """Facts about the device and the profile that are not warnings."""
        return tuple(one.text for one in self.warnings if one.code == _PREPARATION)


def judge_plan(estimate: RunEstimate) -> Judgement[NamedReason]:
    """Return the verdict on a planned run. The verdict states whether the run could begin, and with which cautions."""
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
    """A drive of a batch together with the estimate of its run.

    Attributes:
        number: the number of the drive in the batch, from 1.
        name: the name of the run.
        given: the name of the drive as the user wrote it.
        path: the path of the drive, or None if no drive has this name.
        fault: the reason why the drive could not be examined further; empty if no fault was found so far.
        estimate: the estimate of the run, or None if the drive has a fault.
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
    """All facts and estimates that are known about a batch before the batch begins.

    Attributes:
        groups: the names of the drives without a fault, divided into the groups that would be measured one after the
            other.
        cpus: the CPUs of each group, or None if the drives of the group share all CPUs.
        bounds_s: shortest and longest time of all groups, which run one after the other.
        refused: the reason why tkperf would refuse the whole batch; empty if tkperf would not refuse the batch.
        settings: the settings with which the batch would run, in words, each with a label.
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
        """The smallest and the greatest number of bytes that would be written to all drives together."""
        estimates = self.estimates
        return sum(one.least_bytes for one in estimates), sum(one.most_bytes for one in estimates)

    @property
    def shares(self) -> tuple[float, float] | None:
        """The smallest share of its rated bytes that the run writes to any drive, and the greatest such share. None
        means that no rating was given.
        """
        shares = [one.shares for one in self.estimates if one.shares is not None]
        if not shares:
            return None
        return min(least for least, _ in shares), max(most for _, most in shares)

    @property
    def lost(self) -> int:
        """The number of drives that contain data that would be lost."""
        return sum(one.asks for one in self.estimates)

    @property
    def simulated(self) -> bool:
        """Return whether all drives are simulated."""
        found = [drive.estimate for drive in self.drives]
        return all(estimate is not None and estimate.simulated for estimate in found)

    @property
    def over_budget(self) -> tuple[PartBudget, ...]:
        """The shared parts of the host that the drives of a group may overload. Each part is listed once."""
        found = {
            budget.part.key: budget
            for group in self.groups
            for budget in group.budgets
            if budget.state is BudgetState.OVER
        }
        return tuple(found.values())


def judge_batch_plan(estimate: BatchEstimate) -> Judgement[NamedReason]:
    """Return the verdict on a planned batch. The verdict states whether the batch could begin, and with which cautions.
    Each reason contains the names of the drives or parts.
    """
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
