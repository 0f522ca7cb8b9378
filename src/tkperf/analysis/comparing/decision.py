"""The decision of a comparison. The decision contains the most important figures, the ranking of the runs by each
figure, and the kind of use for which each figure matters.

A run ranks before another run only if the difference is beyond noise and at least 3 % (docs/explanation/method.md,
section "Ranking").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tkperf.analysis.comparing.compared_rows import Change, Entry, against_first
from tkperf.model.quantity import Better, Measure
from tkperf.model.workload import Workload

LEAST_DIFFERENCE = 0.03
"""Two values have the same rank if their difference is less than this share of the better value, even if the noise is
smaller than the difference.

The intervals of two runs do not cover the differences between drives of the same model, which may be larger than the
intervals. The limit is therefore a convention (ADR 60).
"""


class Use(StrEnum):
    """A kind of use for which a user buys a drive."""

    WRITES = "sustained random writes"
    READS = "random reads"
    SINGLE_READS = "one read at a time"
    LOG_WRITES = "write log"
    LARGE_FILES = "large files"


class Unranked(StrEnum):
    """Reasons why the value of a run is not ranked."""

    NOT_MEASURED = "not measured"
    NOT_COMPARABLE = "not comparable"
    NOT_COMPLETE = "not complete"
    NOT_STEADY = "not steady"
    DISTURBED = "disturbed"
    THROTTLED = "throttled"
    HOST_LIMITED = "host-limited"
    NO_INTERVAL = "no interval"
    """Other values of the figure have an interval, but this value has none. It is therefore not known whether a
    difference from this value is significant.
    """
    OWN_LOAD = "against its own reads"
    """The rate of the reader is a share of the rate that each drive reaches alone, so a smaller factor does not mean a
    better drive.
    """
    # The following reasons occur only in a ranking of many runs.
    SIMULATED = "SIMULATED"
    OTHER_CONDITIONS = "other conditions"
    OLDER = "an older run of this drive"
    COPY = "another file of this run"


class Standing(StrEnum):
    """The place of a ranked value among all ranked values.

    ``BEST`` and ``WORST`` certainly differ from all other values. ``EQUAL`` means that the difference from the best
    value is within noise or less than 3 %. ``UNDECIDED`` means that the noise is not known, or is too great to
    distinguish the value from the best value.
    """

    BEST = "best"
    EQUAL = "equal to the best"
    UNDECIDED = "not decided"
    BETWEEN = "between"
    WORST = "worst"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionCell:
    """The value of one run for a figure.

    Attributes:
        entry: the value. The ratio of the entry is relative to the best ranked value. The ratio is None if this value
            is the best.
        unranked: the reason why the value is not ranked, or None if the value is ranked.
        standing: the place among the ranked values; None if the value is not ranked, or if it is the only ranked value.
    """

    entry: Entry
    unranked: Unranked | None
    standing: Standing | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionFigure:
    """A figure with the values of all runs.

    Attributes:
        use: the use of a drive for which the figure matters, or None if the figure belongs to no use.
        test, section, workload, part: the test, section, workload and part to which the values belong. The demand of
            the workload is that of the first run with a value.
        same_demand: whether the values of all runs have the same demand.
        cells: a cell for each run.
        ranking: numbers of the ranked runs in groups, the best group first. Within a group, no difference from the
            first run of the group is both certain and at least 3 %.
    """

    key: str
    use: Use | None
    measure: Measure
    test: str
    section: str
    workload: Workload
    part: str
    same_demand: bool
    cells: tuple[DecisionCell, ...]
    ranking: tuple[tuple[int, ...], ...]

    @property
    def measured(self) -> tuple[int, ...]:
        """Return the numbers of the runs that have a value."""
        return tuple(number for number, cell in enumerate(self.cells) if cell.entry.value is not None)

    @property
    def is_ranked(self) -> bool:
        """Return whether the figure ranks at least two runs."""
        return sum(map(len, self.ranking)) > 1

    @property
    def better_unranked(self) -> tuple[int, ...]:
        """Return the numbers of the runs that are not ranked although their values are better than all ranked values.
        The run with the best value is first.
        """
        if not self.ranking:
            return ()
        sign = 1 if self.measure.better is Better.HIGHER else -1
        values = {run: sign * (self.cells[run].entry.value or 0.0) for run in self.measured}
        best = values[self.ranking[0][0]]
        better = [run for run in self.measured if self.cells[run].unranked is not None and values[run] > best]
        return tuple(sorted(better, key=lambda run: -values[run]))

    def find(self, standing: Standing) -> tuple[int, ...]:
        """Return the numbers of the runs whose values have this standing among the ranked values."""
        return tuple(number for number, cell in enumerate(self.cells) if cell.standing is standing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The decision of a comparison.

    Attributes:
        figures: the figures for which at least two runs have a value. These figures are the columns of the matrix.
        alone: the figures for which only one run has a value.
    """

    figures: tuple[DecisionFigure, ...]
    alone: tuple[DecisionFigure, ...]

    @property
    def ranked(self) -> tuple[DecisionFigure, ...]:
        return tuple(figure for figure in self.figures if figure.is_ranked)

    def of_use(self, use: Use) -> tuple[DecisionFigure, ...]:
        """Return the figures for a use, including figures for which only one run has a value."""
        return tuple(figure for figure in (*self.figures, *self.alone) if figure.use is use)

    def count(self, standing: Standing, run: int) -> int:
        """Return the number of figures for which the value of a run has this standing."""
        return sum(run in figure.find(standing) for figure in self.figures)


def rank(
    entries: Sequence[Entry], unranked: Mapping[int, Unranked], measure: Measure
) -> tuple[tuple[DecisionCell, ...], tuple[tuple[int, ...], ...]]:
    """Return a cell for each run, and the numbers of the ranked runs in groups, the best first.

    Args:
        unranked: the reasons why runs must not be ranked, with the numbers of the runs as the keys. A run without a
            value is never ranked. If any run has an interval, a run without an interval is not ranked.
    """
    reasons = {number: Unranked.NOT_MEASURED for number, entry in enumerate(entries) if entry.value is None}
    reasons = {**unranked, **reasons}
    without = [number for number, entry in enumerate(entries) if number not in reasons and not has_interval(entry)]
    if len(reasons) + len(without) < len(entries):
        reasons |= dict.fromkeys(without, Unranked.NO_INTERVAL)
    ranked = [number for number in range(len(entries)) if number not in reasons]
    falling = measure.better is Better.HIGHER
    ranked.sort(key=lambda number: entries[number].value or 0.0, reverse=falling)
    groups: list[list[int]] = []
    left = ranked
    while left:
        # A value that cannot be distinguished from the first value of a group belongs to the group, even if a value
        # between these two values is certainly worse than the first value.
        group = [number for number in left if not is_better(entries[left[0]], entries[number], measure)]
        groups.append(group)
        left = [number for number in left if number not in group]
    standings, others = _find_standings(entries, ranked, measure), set(ranked[1:])
    cells = tuple(
        DecisionCell(
            entry=against_first(entries[ranked[0]], entry, measure) if number in others else entry,
            unranked=reasons.get(number),
            standing=standings.get(number),
        )
        for number, entry in enumerate(entries)
    )
    return cells, tuple(map(tuple, groups))


def has_interval(entry: Entry) -> bool:
    """Return whether the uncertainty of a value is known. If the uncertainty is not known, no difference from another
    value can be certain.
    """
    return entry.uncertainty is not None and entry.uncertainty.known


def is_better(entry: Entry, other: Entry, measure: Measure) -> bool:
    """Return whether the value ``entry`` is better than the value ``other`` beyond noise, and by at least 3 % of the
    better value.
    """
    if not (has_interval(entry) and has_interval(other)):
        return False
    judged = against_first(entry, other, measure)
    if judged.change is not Change.WORSE or not judged.ratio:
        return False
    return abs(1 - judged.ratio) >= LEAST_DIFFERENCE


def _find_standings(entries: Sequence[Entry], ranked: Sequence[int], measure: Measure) -> dict[int, Standing]:
    if len(ranked) < 2:
        return {}
    first, last = ranked[0], ranked[-1]
    standings = dict.fromkeys(ranked, Standing.BETWEEN)
    if all(is_better(entries[number], entries[last], measure) for number in ranked[:-1]):
        standings[last] = Standing.WORST
    standings[first] = Standing.BEST
    for number in ranked[1:]:
        if not is_better(entries[first], entries[number], measure):
            judged = against_first(entries[first], entries[number], measure)
            undecided = judged.change in (Change.INCONCLUSIVE, Change.NOT_COMPARABLE) or not has_interval(
                entries[first]
            )
            standings[number] = Standing.UNDECIDED if undecided else Standing.EQUAL
    near = {standings[number] for number in ranked[1:]} & {Standing.EQUAL, Standing.UNDECIDED}
    if near:
        standings[first] = Standing.EQUAL if Standing.EQUAL in near else Standing.UNDECIDED
    return standings
