"""Compare two or more runs: their differences, and which of these exceed the noise.

Each value has an uncertainty, and so has the ratio of two values: if its 95 % interval contains 1, the
difference is reported as within noise. Where a value can have no uncertainty, such as a maximum, the ranges of
the rounds decide. Separate ranges are a difference. Overlapping ranges are noise if both are over a
window that was judged steady or over one phase of a stream. Other overlapping ranges, over areas of a disk, a
stream's slices or unsteady rounds, are no noise and predict nothing about a second measurement.

Runs are compared with the first; drives of one model are a cohort, runs of one drive a history.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tkperf.analysis.comparing.arrangement import Arrangement, arrange_runs, find_day
from tkperf.analysis.comparing.cohort import build_cohort
from tkperf.analysis.comparing.comparison import Comparison
from tkperf.analysis.comparing.headlines import find_headlines
from tkperf.analysis.comparing.history import build_history
from tkperf.analysis.comparing.rows import build_rows
from tkperf.analysis.results import RunResult
from tkperf.model.errors import UsageError
from tkperf.procedures import find_test


def compare(results: Sequence[RunResult], wanted: Arrangement | None = None) -> Comparison:
    """Compare runs with each other; their drives decide the arrangement unless one is ``wanted``.

    Raises:
        UsageError: there are fewer than two runs, they have nothing in common, or they do not allow the
            wanted arrangement.
    """
    if len(results) < 2:
        raise UsageError("a comparison takes two runs or more")
    suites = {result.info.suite for result in results}
    if "hdd" in suites and len(suites) > 1:
        raise UsageError(
            "hard disk runs measure areas, the others steady states: they cannot be compared"
        )
    arrangement, ordered = arrange_runs(results, wanted)
    rows = tuple(build_rows(ordered))
    if not rows:
        raise UsageError(
            f"these runs have no {_lacking(ordered)} in common that was measured in all of them"
            + explain_nothing_common(ordered)
        )
    names = _names(ordered)
    comparison = Comparison(
        names=names,
        results=ordered,
        arrangement=arrangement,
        rows=rows,
        headlines=find_headlines(ordered, rows),
    )
    return _with_arrangement(comparison)


def _lacking(results: Sequence[RunResult]) -> str:
    """Name the thing that the runs do not share: a test, or a load of common tests, such as a mix or queue depth."""
    common = set.intersection(*({test.name for test in result.tests} for result in results))
    return f"load of {', '.join(sorted(common))}" if common else "test"


def explain_nothing_common(results: Sequence[RunResult]) -> str:
    """Explain why runs have no test in common, as far as this is known; else empty."""
    kinds = {
        find_test(result.info.suite, test.name, result.info.profile) is None
        for result in results
        for test in result.tests
    }
    if len(kinds) < 2:
        return ""
    return (
        "; runs made of fio's files compare with each other, by workload, not with tkperf's tests"
    )


def _names(results: Sequence[RunResult]) -> tuple[str, ...]:
    """Return the runs' names, numbered where two are equal, so that no two are the same."""
    names = [result.info.name for result in results]
    return tuple(_tell_apart(name, number, names) for number, name in enumerate(names, start=1))


def _tell_apart(name: str, number: int, names: Sequence[str]) -> str:
    if names.count(name) == 1:
        return name
    numbered = f"{name} ({number})"
    while numbered in names:
        numbered += f" ({number})"
    return numbered


def _with_arrangement(comparison: Comparison) -> Comparison:
    devices = [result.info.device for result in comparison.results]
    serials = [device.get("serial") for device in devices]
    match comparison.arrangement:
        case Arrangement.COHORT:
            models = [device.get("model") for device in devices]
            cohort = build_cohort(comparison.names, models, serials, comparison.headlines)
            return replace(comparison, cohort=cohort)
        case Arrangement.HISTORY:
            days = [day for result in comparison.results if (day := find_day(result)) is not None]
            history = build_history(
                comparison.names,
                serials,
                [device.get("firmware") for device in devices],
                days,
                comparison.headlines,
            )
            return replace(comparison, history=history)
        case Arrangement.RUNS:
            return comparison
