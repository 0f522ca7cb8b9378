"""Comparison of runs. A comparison consists of the arrangement of the runs, the rows for which all runs have values,
and the headline figures among these rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations
from statistics import median

import numpy as np

from tkperf.analysis.characteristics import LATENCY_FACTOR, SOUGHT_ALWAYS
from tkperf.analysis.comparing.arrangements import Cohort, History, build_cohort, build_history
from tkperf.analysis.comparing.compared_rows import ComparedRow, build_rows
from tkperf.analysis.loads_together import TAIL, find_main_quantity
from tkperf.analysis.results import RunResult, count_steps, group_by_run, is_same_run
from tkperf.analysis.verdict import Judgement, VerdictCode, VerdictReason, VerdictState, judge_by_gravest, judge_run
from tkperf.model.errors import UsageError
from tkperf.model.figures import FigureKind
from tkperf.model.quantity import PERCENTILES, QUANTITIES
from tkperf.model.same_device import find_measured_part
from tkperf.model.units import KIB
from tkperf.model.workload import Workload
from tkperf.procedures import find_test


class ComparisonCode(VerdictCode):
    """Reasons for the verdict on a comparison."""

    MODEL_AND_DEVICE = "model-and-device", VerdictState.NOT_COMPARABLE
    RUN_NOT_VALID = "run-not-valid", VerdictState.NOT_COMPARABLE
    CONDITIONS_DIFFER = "conditions-differ", VerdictState.COMPARABLE_WITH_CAUTIONS
    CONDITIONS_NOT_KNOWN = "conditions-not-known", VerdictState.COMPARABLE_WITH_CAUTIONS
    RUN_NOT_JUDGED = "run-not-judged", VerdictState.COMPARABLE_WITH_CAUTIONS
    RUN_WITH_CAUTIONS = "run-with-cautions", VerdictState.COMPARABLE_WITH_CAUTIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonReason:
    """A reason for a verdict on a comparison.

    Attributes:
        names: the conditions, or the runs, that the reason concerns.
        of_run: the most serious reason for the verdict on the run; None if the reason does not concern a single run.
    """

    code: ComparisonCode
    names: tuple[str, ...]
    of_run: VerdictReason | None = None


def judge_comparison(
    comparison: Comparison, differing: Sequence[str], not_known: Sequence[str]
) -> Judgement[ComparisonReason]:
    """Return the verdict on a comparison.

    Args:
        differing: names of the conditions that differ.
        not_known: names of the conditions that may differ, because they are not known for every run.
    """
    reasons = _reasons(comparison, tuple(differing), tuple(not_known))
    simulated = any(result.info.is_simulated for result in comparison.results)
    return judge_by_gravest(reasons, VerdictState.COMPARABLE, simulated=simulated)


def _reasons(
    comparison: Comparison, differing: tuple[str, ...], not_known: tuple[str, ...]
) -> Iterator[ComparisonReason]:
    runs = list(zip(comparison.names, comparison.results, strict=True))
    simulated = tuple(name for name, result in runs if result.info.is_simulated)
    if 0 < len(simulated) < len(runs):
        yield ComparisonReason(code=ComparisonCode.MODEL_AND_DEVICE, names=simulated)
    if differing:
        yield ComparisonReason(code=ComparisonCode.CONDITIONS_DIFFER, names=differing)
    if not_known:
        yield ComparisonReason(code=ComparisonCode.CONDITIONS_NOT_KNOWN, names=not_known)
    for name, result in runs:
        verdict = judge_run(result)
        if verdict.reasons:
            code = _CODES.get(verdict.state, ComparisonCode.RUN_NOT_JUDGED)
            yield ComparisonReason(code=code, names=(name,), of_run=verdict.reasons[0])


_CODES = {VerdictState.NOT_VALID: ComparisonCode.RUN_NOT_VALID, VerdictState.CAUTIONS: ComparisonCode.RUN_WITH_CAUTIONS}


# Data sheets state the IOPS of 4 KiB I/Os for reads, for the 65/35 mix and for writes.
_BLOCK_SIZE_BYTES = 4 * KIB
_MIXES = (100, 65, 0)
_MOST_OF_TEST = 6
_MOST_CELLS = 3


def find_headlines(results: Sequence[RunResult], rows: Sequence[ComparedRow]) -> tuple[ComparedRow, ...]:
    """Return the most important rows of each test, in the order of the tests."""
    candidates = find_candidates(results, rows)
    return tuple(
        row
        for test in dict.fromkeys(row.test for row in candidates)
        for row in list(_most_important([row for row in candidates if row.test == test]))[:_MOST_OF_TEST]
    )


def find_candidates(results: Sequence[RunResult], rows: Sequence[ComparedRow]) -> tuple[ComparedRow, ...]:
    """Return the rows that have a ratio for at least one run. Rows of sections that only prepare the device are
    omitted.
    """
    preparing = {
        (test.name, section.name) for test in results[0].tests for section in test.sections if section.plan.prepares
    }
    # The rate of the reader differs from drive to drive. For such a test, only the factors of the neighbours are
    # therefore used as headline figures.
    of_own_readers = {
        (test.name, section.name)
        for test in results[0].tests
        for section in test.sections
        if section.plan.draws(FigureKind.NEIGHBOURS)
    }
    return tuple(
        row
        for row in rows
        if (row.test, row.section) not in preparing
        and ((row.test, row.section) not in of_own_readers or row.quantity.key == LATENCY_FACTOR.key)
        and any(entry.ratio is not None for entry in row.entries[1:])
    )


def _most_important(rows: Sequence[ComparedRow]) -> Iterator[ComparedRow]:
    """Yield rows in the order of importance. The order is: characteristics that a test is designed to find, phases of
    the first stream, cells of the first section with several workloads.
    """
    always = {measure.key for measure in SOUGHT_ALWAYS}
    sought = [row for row in rows if row.quantity.key in always]
    # The total of different loads has no useful meaning, so rows with such a total are omitted.
    rows = [row for row in rows if not row.workload.is_combination]
    of_cells = [row for row in rows if row.quantity.key in QUANTITIES]
    streams = [row.section for row in of_cells if row.part]
    phases = [row for row in of_cells if row.section in streams[:1]]
    cells = [row for row in of_cells if row.section not in streams]
    workloads: dict[str, set[Workload]] = {}
    for row in cells:
        workloads.setdefault(row.section, set()).add(row.workload)
    several = [row for row in cells if len(workloads[row.section]) > 1]
    yield from sought
    yield from _of_phases(phases)
    if several or not (sought or phases):
        candidates = several or cells
        first = [row for row in candidates if row.section == candidates[0].section]
        yield from _of_streams(first) if any(row.workload.stream for row in first) else _of_cells(first)


def _of_streams(rows: Sequence[ComparedRow]) -> Iterator[ComparedRow]:
    """Yield first the rows with the main quantity of each stream, then the rows of the flushes, and last the rows with
    the tail latencies of the other streams.
    """
    streams = [row for row in rows if row.workload.stream is not None]
    main = [row for row in streams if row.quantity is find_main_quantity(row.workload)]
    yield from sorted(main, key=lambda row: row.workload.flushes)
    yield from (row for row in streams if row.quantity is TAIL and row not in main)


def _of_phases(rows: Sequence[ComparedRow]) -> Iterator[ComparedRow]:
    """Yield the row with the first quantity for each phase of a stream. Also yield the row with the tail latency of the
    last phase.
    """
    for part in dict.fromkeys(row.part for row in rows):
        yield next(row for row in rows if row.part == part)
    if rows:
        yield from _tail([row for row in rows if row.part == rows[-1].part])


def _of_cells(rows: Sequence[ComparedRow]) -> Iterator[ComparedRow]:
    """Yield the rows with the first quantity of the cells that data sheets usually state, and the row with the tail
    latency of the last of these cells.
    """
    if not rows:
        return
    first = [row for row in rows if row.quantity is rows[0].quantity]
    of_mixes = [row for mix in _MIXES for row in _ends([row for row in first if _is_of(row.workload, mix)])]
    sheet_rows = (of_mixes or first)[:_MOST_CELLS]
    yield from sheet_rows
    yield from _tail([row for row in rows if row.workload == sheet_rows[-1].workload])


def _ends(rows: Sequence[ComparedRow]) -> Sequence[ComparedRow]:
    """Return the first and the last row. If there are fewer than two rows, return all rows."""
    return rows if len(rows) < 2 else (rows[0], rows[-1])


def _is_of(workload: Workload, mix: int) -> bool:
    return (workload.read_percent, workload.block_size_bytes) == (mix, _BLOCK_SIZE_BYTES)


def _tail(rows: Sequence[ComparedRow]) -> Iterator[ComparedRow]:
    """Yield the row with the highest percentile, if the rows contain a percentile."""
    yield from [row for row in rows if row.quantity in PERCENTILES][-1:]


# The recorded time is always UTC. For an imported run, the recorded time may consist of the date only.
_DATE = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d)?(?!\d)", re.ASCII)
FEWEST_TOGETHER = 3
"""The smallest number of runs in a cohort or a history. Two runs always form a pair."""


class Arrangement(StrEnum):
    RUNS = "runs"
    """Each run is compared with the first run."""
    COHORT = "cohort"
    """Each figure is shown as a distribution over several drives of one model."""
    HISTORY = "history"
    """Each figure of one drive is shown as a change over time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A comparison of runs.

    Attributes:
        names: distinct names of the runs, in the order of ``results``.
        headlines: the most important rows of each test, such as the figures of a data sheet.
        repeated: the runs for which the user gave several files, with the number of files.
        cohort, history: the cohort or the history; None in any other arrangement.
    """

    names: tuple[str, ...]
    results: tuple[RunResult, ...]
    arrangement: Arrangement
    rows: tuple[ComparedRow, ...]
    headlines: tuple[ComparedRow, ...]
    repeated: tuple[tuple[str, int], ...] = ()
    cohort: Cohort | None = None
    history: History | None = None

    def ratios(self, row: ComparedRow) -> tuple[float | None, ...]:
        """Return the ratio of each run's value to the value of the first run. In a cohort, the value is divided by the
        median of the row instead. None means that there is no ratio.
        """
        if self.arrangement is not Arrangement.COHORT:
            first, *others = row.entries
            return (1.0 if first.value else None, *(entry.ratio for entry in others))
        values = [entry.value for entry in row.entries if entry.value is not None]
        middle = median(values) if values else 0.0
        return tuple(entry.value / middle if middle and entry.value is not None else None for entry in row.entries)


def compare_files(results: Sequence[RunResult], wanted: Arrangement | None = None) -> Comparison:
    """Compare the runs of several files. If several files contain the same run, the run is compared once.

    Raises:
        UsageError: all files belong to the same run, or ``compare`` refuses the runs.
    """
    runs = group_by_run(results, is_same_run)
    if len(runs) == 1 and len(results) > 1:
        raise UsageError(
            f"a comparison needs at least two runs, but these {len(results)} files belong to one run, "
            f"{results[0].info.name}. Also name a file of another run"
        )
    fullest = [max(run, key=count_steps) for run in runs]
    comparison = compare(fullest, wanted)
    # Runs are counted as objects and not by name, because distinct runs may have the same name, and because a history
    # changes the order of the runs.
    counts = {id(result): len(run) for result, run in zip(fullest, runs, strict=True)}
    repeated = [
        (name, counts[id(result)])
        for name, result in zip(comparison.names, comparison.results, strict=True)
        if counts[id(result)] > 1
    ]
    return replace(comparison, repeated=tuple(repeated))


def compare(results: Sequence[RunResult], wanted: Arrangement | None = None) -> Comparison:
    """Compare distinct runs with each other. If ``wanted`` is None, the drives of the runs determine the arrangement.

    Raises:
        UsageError: there are fewer than two runs, the runs have nothing in common, or the wanted arrangement is not
            possible.
    """
    if len(results) < 2:
        raise UsageError("a comparison needs at least two runs")
    suites = {result.info.suite for result in results}
    if "hdd" in suites and len(suites) > 1:
        raise UsageError(
            "runs of the suite hdd measure areas of a disk, but the other runs measure steady states, so tkperf "
            "cannot compare them. Compare only runs of one kind"
        )
    arrangement, ordered = _arrange(results, wanted)
    rows = tuple(build_rows(ordered))
    if not rows and not _does_any_pair_share(ordered):
        raise UsageError(
            f"these runs cannot be compared, because no {_lacking(ordered)} was measured in all of them"
            + explain_nothing_common(ordered)
        )
    names, headlines = _names(ordered), find_headlines(ordered, rows)
    devices = [result.info.device for result in ordered]
    is_cohort, is_history = (arrangement is one for one in (Arrangement.COHORT, Arrangement.HISTORY))
    return Comparison(
        names=names,
        results=ordered,
        arrangement=arrangement,
        rows=rows,
        headlines=headlines,
        cohort=build_cohort(names, devices, headlines) if is_cohort else None,
        history=build_history(names, devices, _days(ordered), headlines) if is_history else None,
    )


def _does_any_pair_share(results: Sequence[RunResult]) -> bool:
    """Return whether at least two of the runs have a value in common.

    If so, the matrix and the curves of the comparison show the values of these runs, and a dash for all other runs.
    """
    return len(results) > 2 and any(next(build_rows(pair), None) is not None for pair in combinations(results, 2))


def _days(results: Sequence[RunResult]) -> tuple[float, ...]:
    return tuple(day for result in results if (day := find_day(result)) is not None)


def _lacking(results: Sequence[RunResult]) -> str:
    """Return, in words, what the runs do not have in common: a test, or a load of the common tests, such as a mix or a
    queue depth.
    """
    common = set.intersection(*({test.name for test in result.tests} for result in results))
    return f"load of {', '.join(sorted(common))}" if common else "test"


def explain_nothing_common(results: Sequence[RunResult]) -> str:
    """Return, in words, the reason why runs have no test in common. If the reason is not known, the result is empty."""
    kinds = {
        find_test(result.info.suite, test.name, result.info.profile) is None
        for result in results
        for test in result.tests
    }
    if len(kinds) < 2:
        return ""
    return ". Runs that were imported from files of fio can be compared only with each other, not with tests of tkperf"


def _names(results: Sequence[RunResult]) -> tuple[str, ...]:
    """Return the names of the runs. Equal names receive a number, so that every name is unique."""
    names = [result.info.name for result in results]
    return tuple(_tell_apart(name, number, names) for number, name in enumerate(names, start=1))


def _tell_apart(name: str, number: int, names: Sequence[str]) -> str:
    if names.count(name) == 1:
        return name
    numbered = f"{name} ({number})"
    while numbered in names:
        numbered += f" ({number})"
    return numbered


# ---- arrangement


def find_day(result: RunResult) -> float | None:
    """Return the start of a run in days since 1970, or None if the start is not known."""
    text = result.info.started_utc
    if not text:
        return None
    # The pattern is checked first, because numpy would also accept "now" and "NaT" as dates.
    written = _DATE.match(text)
    if written is None:
        return None
    try:
        moment = np.datetime64(written[0])
    except ValueError:
        return None
    return float(moment.astype("datetime64[s]").astype(np.int64)) / 86_400


def _arrange(results: Sequence[RunResult], wanted: Arrangement | None) -> tuple[Arrangement, tuple[RunResult, ...]]:
    """Return the arrangement, and the runs in the order of the arrangement.

    If ``wanted`` is None, the models and serial numbers of the drives determine the arrangement.
    """
    arrangement = wanted or _choose(results)
    if arrangement is Arrangement.RUNS:
        return arrangement, tuple(results)
    if len(results) < FEWEST_TOGETHER:
        raise UsageError(
            f"a {arrangement} needs at least {FEWEST_TOGETHER} runs, but there are only "
            f"{len(results)}. Omit --as to compare the other runs with the first run"
        )
    if arrangement is Arrangement.COHORT:
        return arrangement, tuple(results)
    days = [find_day(result) for result in results]
    unknown = [result.info.name for result, day in zip(results, days, strict=True) if day is None]
    if unknown:
        raise UsageError(
            f"a history needs the date of each run, but the date of {', '.join(dict.fromkeys(unknown))} is not known. "
            "Omit these runs, or use --as runs"
        )
    ordered = sorted(zip(days, results, strict=True), key=lambda pair: pair[0] or 0.0)
    return arrangement, tuple(result for _, result in ordered)


def _choose(results: Sequence[RunResult]) -> Arrangement:
    """Choose an arrangement according to the drives of the runs. An unknown model or serial number counts as different
    from every other model or serial number.
    """
    models = {
        (result.info.device.get("kind"), result.info.device.get("model"), result.info.device.get("capacity_bytes"))
        for result in results
    }
    serials = [result.info.device.get("serial") for result in results]
    one_model = len(models) == 1 and all(result.info.device.get("model") for result in results)
    if len(results) < FEWEST_TOGETHER or not one_model or not all(serials):
        return Arrangement.RUNS
    if len(set(serials)) == len(serials):
        return Arrangement.COHORT
    days = [find_day(result) for result in results]
    dated = None not in days and len(set(days)) == len(days)
    # Results of different partitions or namespaces of a drive do not form the history of one device.
    parts = {find_measured_part(result.info.device) for result in results}
    return Arrangement.HISTORY if len(parts) == 1 and dated else Arrangement.RUNS
