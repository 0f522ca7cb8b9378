"""Headline figures of a cohort: each figure has a strip with a dot for each drive around the median of the drives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tkperf.analysis.comparing.arrangements import OUTLIER_SCORE, CohortValue
from tkperf.analysis.comparing.comparison import Comparison
from tkperf.model.units import format_count, format_number
from tkperf.page.comparison.ratio_texts import name_headlines, sort_headlines
from tkperf.page.page import HeadlineView
from tkperf.page.strip import Dot, build_dot_strip
from tkperf.page.verdict_texts import NoteLevel

MEANING_OF_STRIPS = (
    "A strip has a dot for each drive. The line is the median of the drives of one model. Dotted lines are the limits "
    f"of outliers, which are {OUTLIER_SCORE:g} by the modified z-score away from the median."
)
MEANING_OF_CLAIM_LIMITS = "The dashed line is the limit of the claim; values in the shaded part miss it."


def choose_cohort_figures(comparison: Comparison, most: int) -> tuple[CohortValue, ...]:
    """Return the most important figures of a cohort: those with outliers, then the first figure of each test, then the
    others.
    """
    figures = () if comparison.cohort is None else comparison.cohort.figures
    by_place = {figure.row.place: figure for figure in figures}
    ordered = [by_place[row.place] for row in sort_headlines(comparison) if row.place in by_place]
    outliers = [figure for figure in ordered if figure.outliers]
    firsts: dict[str, CohortValue] = {}
    for figure in figures:
        firsts.setdefault(figure.row.test, figure)
    chosen = {id(figure): figure for figure in (*outliers, *firsts.values(), *ordered)}
    return tuple(chosen.values())[:most]


def build_figure_tiles(
    comparison: Comparison, figures: Sequence[CohortValue], called: Mapping[str, str]
) -> Iterator[HeadlineView]:
    """Yield a tile for each figure of a cohort.

    Args:
        called: name of each drive on the page, with the name of its run as the key.
    """
    names = name_headlines(comparison)
    for figure in figures:
        measure, cohort = figure.row.quantity, figure.distribution
        # A possible outlier is also labelled with its name: otherwise nobody knows which drive the distant dot is.
        levels = dict.fromkeys((one.name for one in figure.unsure), NoteLevel.INFORMATION)
        levels |= dict.fromkeys((one.name for one in figure.outliers), NoteLevel.CAUTION)
        values = []
        for name, entry in zip(comparison.names, figure.row.entries, strict=True):
            if entry.value is not None:
                hint = f"{called[name]}: {measure.text(entry.value)}"
                values.append((entry.value, Dot(share=0.0, level=levels.get(name), name=called[name], hint=hint)))
        low, high, middle = (
            format_number(each, measure.digits) for each in (cohort.lowest, cohort.highest, cohort.median)
        )
        far = [f"{called[one.name]} {format_distance(one.from_median_percent)} ◆" for one in figure.outliers[:1]]
        title, spread = names[figure.row.place], f"{low} to {high}"
        count = format_count(len(values), "drive")
        yield HeadlineView(
            label=f"{title} ({measure.unit})" if measure.unit and measure.unit not in title else title,
            text=f"median {middle}",
            exact=spread,
            sure=spread,
            verdict="".join(far),
            alarm=False,
            test="",
            section="",
            strip=build_dot_strip(values, f"{title}: {count}, median {middle}, {spread}", cohort=cohort),
        )


def format_distance(percent: float) -> str:
    """Return a distance from the median in percent: ``-11.3 %``."""
    text = f"{percent:+.1f} %"
    return "0.0 %" if text in ("+0.0 %", "-0.0 %") else text
