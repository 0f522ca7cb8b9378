"""Marks that a chart needs outside its report: SIMULATED, IMPORTED ..., disturbed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tkperf.page.chart import AnyChart
from tkperf.page.facts import shorten
from tkperf.page.page import ChartView, Note, ReportView
from tkperf.page.verdict_texts import NoteLevel, level_of
from tkperf.page.words.run import BADGES

_MOST_CHARACTERS = 40
# Badges that describe how the result was made, and badges that state a reason of the verdict. The latter have the
# severity of the reason.
_LEVELS = dict.fromkeys(("SIMULATED", "IMPORTED", "OWN WORKLOAD", "REPEATED", "ADDED"), NoteLevel.INFORMATION) | {
    keyword: level_of(code.severity) for code, keyword in BADGES.items()
}


def mark_charts(view: ReportView) -> ReportView:
    """Return the view with its stamp below the title of each chart."""
    keywords = find_keywords(view)
    if not keywords:
        return view

    def mark(chart: AnyChart) -> AnyChart:
        return replace(chart, keywords=keywords)

    def mark_all(charts: tuple[ChartView, ...]) -> tuple[ChartView, ...]:
        return tuple(replace(chart, chart=mark(chart.chart), others=mark_all(chart.others)) for chart in charts)

    return replace(
        view,
        opening_chart=None if view.opening_chart is None else mark_all((view.opening_chart,))[0],
        lead_charts=mark_all(view.lead_charts),
        overview_charts=mark_all(view.overview_charts),
        tests=tuple(
            replace(
                test,
                charts=mark_all(test.charts),
                events=replace(test.events, charts=mark_all(test.events.charts)),
                sections=tuple(replace(section, charts=mark_all(section.charts)) for section in test.sections),
            )
            for test in view.tests
        ),
        cell_charts=view.cell_charts and {name: mark(chart) for name, chart in view.cell_charts.items()},
    )


def find_keywords(view: ReportView) -> str:
    """Return the stamp as one text; empty if there is no stamp."""
    return " · ".join(badge.text for badge in list_stamp(view))


def list_stamp(view: ReportView) -> tuple[Note, ...]:
    """Return the badges of everything that can be separated from the page: printed pages, charts, dialogs."""
    return list_badges(view.stamp or view.banners)


def list_badges(banners: Sequence[str]) -> tuple[Note, ...]:
    """Return a badge for each banner, which is the banner in a few words. Equal badges appear once."""
    badges = (
        Note(text=shorten(banner.split(":")[0], _MOST_CHARACTERS), level=find_level(banner)) for banner in banners
    )
    return tuple(dict.fromkeys(badges))


def find_level(banner: str) -> NoteLevel:
    """Return the level of a banner. It is a caution unless ``_LEVELS`` has the keyword of the banner."""
    levels = (level for keyword, level in _LEVELS.items() if banner.startswith(keyword))
    return next(levels, NoteLevel.CAUTION)
