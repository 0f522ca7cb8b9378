"""Build texts about parts of a comparison: ratios with their certainty, loads of headline figures, and names of
runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import ceil, log
from typing import TypeVar

from tkperf.analysis.comparing.arrangements import CohortValue, HistoryValue
from tkperf.analysis.comparing.compared_rows import (
    BEYOND_NOISE,
    MOST_WITHIN_NOISE,
    STEADY_PART,
    Change,
    ComparedRow,
    Entry,
    is_too_wide,
)
from tkperf.analysis.comparing.comparison import Arrangement, Comparison, find_candidates
from tkperf.analysis.workload_axes import ACCESS, BLOCKS, DEPTH, JOBS, MIX, find_axes
from tkperf.model.units import format_count
from tkperf.page.naming import name_figure
from tkperf.page.words.uncertainty import INTERVAL, describe_share, is_below_digits, is_lopsided

_Figure = TypeVar("_Figure", CohortValue, HistoryValue)
# Two differences count as about equal if the difference between their logarithms does not exceed this value. The value
# corresponds to a factor of 1.25.
_ABOUT_EQUAL = log(1.25)
RATIO_MARKS = {
    Change.WITHIN_NOISE: f"(×1.02): within noise: the {INTERVAL} of the ratio contains 1, and no value "
    f"in it differs from 1 by more than {100 * (MOST_WITHIN_NOISE - 1):.0f} %; for a maximum, the ranges overlap.",
    Change.INCONCLUSIVE: "×1.02?: noise is not known: a value has no uncertainty (it was measured once) or only a "
    "lower "
    "limit of it, and the ranges do not decide. Or it cannot be decided: the interval contains 1, but also a "
    f"difference of more than {100 * (MOST_WITHIN_NOISE - 1):.0f} %.",
}


def name_reference(comparison: Comparison) -> str:
    """Return a text that names the run to which the ratios refer."""
    of_cohort = comparison.arrangement is Arrangement.COHORT
    return "the median" if of_cohort else comparison.names[0]


def sort_rows(rows: Iterable[ComparedRow]) -> list[ComparedRow]:
    """Return the rows in descending order of the difference beyond noise. Rows with about equal differences remain in
    the order of the tests.
    """
    return sorted(rows, key=lambda row: -ceil(row.beyond_noise / _ABOUT_EQUAL))


def list_ratios(comparison: Comparison, row: ComparedRow) -> list[tuple[float, str]]:
    """Return the known ratios of a row, each with the name of its run."""
    ratios = zip(comparison.ratios(row), comparison.names, strict=True)
    return [(ratio, name) for ratio, name in ratios if ratio is not None]


def sort_headlines(comparison: Comparison) -> list[ComparedRow]:
    """Return the headline figures in the order of ``sort_rows``. For a cohort, the outliers determine the order. For a
    history, the trends determine the order.
    """
    headlines: Sequence[ComparedRow] = comparison.headlines
    if comparison.arrangement is Arrangement.RUNS:
        return sort_rows(headlines)
    weights: dict[tuple[object, ...], float] = {}
    if comparison.cohort is not None:
        weights = {
            figure.row.place: max((abs(one.score) for one in figure.outliers), default=0.0)
            for figure in comparison.cohort.figures
        }
    elif comparison.history is not None:
        weights = {
            figure.row.place: abs(figure.trend.slope)
            for figure in comparison.history.figures
            if figure.trend is not None and figure.change in BEYOND_NOISE
        }
        # Figures without a trend are sorted according to the last run, because the last run may differ from the first
        # run.
        headlines = sorted(headlines, key=lambda row: -row.entries[-1].beyond_noise)
    return sorted(headlines, key=lambda row: -weights.get(row.place, 0.0))


def sort_figures(comparison: Comparison, figures: Iterable[_Figure]) -> list[_Figure]:
    """Return the figures of a cohort or a history in the order of the headline figures."""
    by_place = {figure.row.place: figure for figure in figures}
    return [by_place[row.place] for row in sort_headlines(comparison) if row.place in by_place]


def describe_loads(comparison: Comparison) -> dict[tuple[object, ...], str]:
    """Return the load of each headline figure, such as ``4 KiB random write, settled``. The key is ``place`` of the
    figure's row.

    If several figures have the same load and the same measure, the text also contains the section or the test.
    """
    titles = {test.name: test.title for test in comparison.results[0].tests}
    candidates = find_candidates(comparison.results, comparison.rows)
    loads = [
        _describe_load(row, [other for other in candidates if other.test == row.test]) for row in comparison.headlines
    ]
    # A recovery test runs the same load in many sections, one section for each waiting time.
    of_tests = Counter((row.test, load, row.quantity) for load, row in zip(loads, comparison.headlines, strict=True))
    loads = [
        f"{row.section}, {load}" if of_tests[row.test, load, row.quantity] > 1 else load
        for load, row in zip(loads, comparison.headlines, strict=True)
    ]
    figures = [(load, row.quantity) for load, row in zip(loads, comparison.headlines, strict=True)]
    times = Counter(figures)
    return {
        row.place: f"{titles.get(row.test, row.test)}, {load}" if times[load, row.quantity] > 1 else load
        for load, row in zip(loads, comparison.headlines, strict=True)
    }


def name_headlines(comparison: Comparison) -> dict[tuple[object, ...], str]:
    """Return the name of each headline figure, such as ``4 KiB random write, settled: IOPS``. The key is ``place`` of
    the figure's row.
    """
    loads = describe_loads(comparison)
    return {row.place: f"{loads[row.place]}: {row.quantity.label}" for row in comparison.headlines}


def describe_group(comparison: Comparison) -> str:
    """Return the number of drives in a cohort and their model. If several runs may belong to the same drive, return the
    number of runs instead.
    """
    cohort = comparison.cohort
    assert cohort is not None
    count = format_count(len(comparison.names), "drive" if cohort.distinct else "run")
    return f"{count} of model {cohort.model}" if cohort.model is not None else count


def _describe_load(row: ComparedRow, of_test: Sequence[ComparedRow]) -> str:
    # The name of the figure is enough for a stream, because the name of the figure contains the name of the stream.
    if row.workload.together:
        return name_figure(row.workload)
    alike = [other.workload for other in of_test if other.section == row.section]
    # The demand is included, because imported results have a separate section for each demand.
    demands = [axis for axis in find_axes(of.workload for of in of_test) if axis in (JOBS, DEPTH)]
    axes = [axis for axis in find_axes(alike) if axis not in (ACCESS, MIX, BLOCKS, *demands)]
    words = (name_figure(row.workload), *(axis.words(row.workload) for axis in (*demands, *axes)))
    return ", ".join(filter(None, (" ".join(words), name_phase(row.part))))


def name_phase(part: str) -> str:
    """Return the name of a phase in the form that readers see.

    No rule of a specification judged the level of the phase. The name therefore states that the rate settled, and not
    that it is steady.
    """
    return "settled" if part == STEADY_PART else part


def describe_ratio(entry: Entry) -> str:
    """Return a ratio in words: ``×1.034 ± 0.9 %``. A ratio within noise is in parentheses. A question mark follows a
    ratio whose noise is not known.
    """
    if entry.ratio is None:
        return ""
    return mark_certainty(entry, f"×{format_ratio(entry.ratio)}{describe_ratio_uncertainty(entry)}")


def describe_ratio_uncertainty(entry: Entry) -> str:
    """Return the text that follows a ratio: `` ± 0.9 %``, or `` (0.512 to 0.984)`` for an asymmetric interval. The text
    is empty if the interval is not known.
    """
    known = entry.ratio_uncertainty
    if not entry.ratio or known is None or known.expanded is None:
        return ""
    percent = 100 * known.expanded / entry.ratio
    if is_lopsided(entry.ratio, known) and not is_below_digits(percent):
        return f" ({describe_ratio_interval(entry)})"
    return f" {describe_share(percent)}"


def describe_ratio_interval(entry: Entry) -> str:
    """Return the interval of a ratio: ``8.52 to 8.88``, or ``above 8.52`` if the interval has no upper end.

    If the width of the interval is only a lower limit, the text ends with "or wider". The text is empty if there is no
    interval.
    """
    known = entry.ratio_uncertainty
    if entry.ratio is None or known is None or known.low is None:
        return ""
    low = format_ratio(known.low)
    text = f"above {low}" if known.high is None else f"{low} to {format_ratio(known.high)}"
    return f"{text} or wider" if known.at_least else text


def mark_certainty(entry: Entry, text: str) -> str:
    """Return the text about a ratio with a mark. The mark shows how certain the difference is."""
    if entry.change is Change.WITHIN_NOISE:
        return f"({text})"
    return f"{text}?" if entry.change is Change.INCONCLUSIVE else text


def describe_doubt(entry: Entry) -> str:
    """Return the reason why a change is inconclusive. The reason is ``cannot be decided`` for a wide interval, and
    otherwise ``noise not known``.
    """
    return "cannot be decided" if is_too_wide(entry.ratio_uncertainty) else "noise not known"


def format_ratio(ratio: float) -> str:
    """Return a ratio as text: ``1.034``, ``8.70``, ``120``. A ratio from 0.1 to 2 has three digits after the decimal
    point. A ratio above 2 has fewer digits.
    """
    if ratio < 0.1:
        return f"{ratio:.2g}" if ratio > 0 else "0"
    digits = next((digits for limit, digits in ((2, 3), (10, 2), (100, 1)) if ratio < limit), 0)
    return f"{ratio:,.{digits}f}"
