"""Add to each chart the parts that a picture of the chart needs outside the report: a stamp such as SIMULATED, the
source, and a file name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from tkperf.page.chart import AnyChart
from tkperf.page.facts import shorten
from tkperf.page.page import ChartView, Note, ReportView
from tkperf.page.verdict_texts import NoteLevel, level_of
from tkperf.page.words.run import BADGES

_MOST_CHARACTERS = 40
_NOT_IN_A_NAME = re.compile(r"[^\w.]+")
LEAD = "story-"
"""The beginning of the key of each chart that is a copy at the beginning of the page."""
# Badges about how the result was produced, and badges about a reason of the verdict. A badge about a reason has the
# severity of this reason.
_LEVELS = dict.fromkeys(("SIMULATED", "IMPORTED", "OWN WORKLOAD", "REPEATED", "ADDED"), NoteLevel.INFORMATION) | {
    keyword: level_of(code.severity) for code, keyword in BADGES.items()
}


def mark_charts(view: ReportView) -> ReportView:
    """Return the view with its stamp below the title of each chart, and with the file name and the source of each
    picture.
    """
    marker = _Marker(view)
    tests = tuple(
        replace(
            test,
            charts=marker.mark_all(test.charts, test.title, test.load),
            events=replace(test.events, charts=marker.mark_all(test.events.charts, test.title, test.load)),
            sections=tuple(
                replace(section, charts=marker.mark_all(section.charts, section.title, section.load))
                for section in test.sections
            ),
        )
        for test in view.tests
    )
    return replace(
        view,
        opening_chart=None if view.opening_chart is None else marker.mark(view.opening_chart),
        lead_charts=marker.mark_all(view.lead_charts),
        overview_charts=marker.mark_all(view.overview_charts),
        tests=tests,
        cell_charts=view.cell_charts and {name: marker.stamp(chart) for name, chart in view.cell_charts.items()},
    )


class _Marker:
    """A marker that adds the stamp, the file name and the source to the charts of a page.

    The copy of a chart at the beginning of the page has the same file name and source as the chart.
    """

    def __init__(self, view: ReportView) -> None:
        self._keywords = find_keywords(view)
        self._page, self._view = name_pictures(view), view
        self._names: dict[str, str] = {}
        """The key of the first chart that uses a file name. The file name is the key of the dictionary."""
        self._marked: dict[str, ChartView] = {}

    def stamp(self, chart: AnyChart) -> AnyChart:
        return replace(chart, keywords=self._keywords) if self._keywords else chart

    def mark_all(self, charts: tuple[ChartView, ...], *part: str) -> tuple[ChartView, ...]:
        return tuple(self.mark(chart, *part) for chart in charts)

    def mark(self, chart: ChartView, *part: str) -> ChartView:
        """Return the chart with its marks. The other views of the chart receive marks too.

        Args:
            part: the title and the load of the chart's test or section.
        """
        original = self._marked.get(chart.key.removeprefix(LEAD))
        name = self._name(chart, *part) if original is None else original.file_name
        marked = replace(
            chart,
            chart=self.stamp(chart.chart),
            others=tuple(self.mark(other, *part) for other in chart.others),
            file_name=name,
            source=describe_source(self._view, *part) if original is None else original.source,
        )
        self._marked[chart.key] = marked
        return marked

    def _name(self, chart: ChartView, *part: str) -> str:
        """Return a file name that consists of the name of the run and the title of the chart.

        If another chart already has this name, the title of the test or section is added. If this name is not unique
        either, the key of the chart is added instead.
        """
        title = _slug(chart.chart.title)
        for name in (title, f"{_slug(part[0]) if part else chart.key}-{title}", f"{title}-{_slug(chart.key)}"):
            whole = f"{self._page}-{name}"
            if self._names.setdefault(whole, chart.key) == chart.key:
                return whole
        return whole


def name_pictures(view: ReportView) -> str:
    """Return the beginning of the file names for all pictures of a page. This beginning is the name of the run, or
    "comparison".
    """
    if view.decision is not None and not view.decision.is_heat_map:
        return "comparison"
    return _NOT_IN_A_NAME.sub("-", view.title).strip("-.") or "run"


def describe_source(view: ReportView, *part: str) -> str:
    """Return the source of a chart as one text: ``Model, 960.2 GB · IOPS · random, TC2/QD16 · 2026-11-29``."""
    return " · ".join(filter(None, (view.subtitle or view.device, *part, view.date)))


def _slug(text: str) -> str:
    return _NOT_IN_A_NAME.sub("-", text).strip("-.").lower()


def find_keywords(view: ReportView) -> str:
    """Return the badges of the stamp as one text. The text is empty if there is no stamp."""
    return " · ".join(badge.text for badge in list_stamp(view))


def list_stamp(view: ReportView) -> tuple[Note, ...]:
    """Return the badges for the parts of a page that a user can separate from the page: printed pages, charts and
    dialogs.
    """
    return list_badges(view.stamp or view.banners)


def list_badges(banners: Sequence[str]) -> tuple[Note, ...]:
    """Return a badge for each banner. The badge is a short form of the banner. Equal badges are shown once."""
    badges = (
        Note(text=shorten(banner.split(":")[0], _MOST_CHARACTERS), level=find_level(banner)) for banner in banners
    )
    return tuple(dict.fromkeys(badges))


def find_level(banner: str) -> NoteLevel:
    """Return the severity of a banner. If the keyword of a banner is not in ``_LEVELS``, the banner is a caution."""
    levels = (level for keyword, level in _LEVELS.items() if banner.startswith(keyword))
    return next(levels, NoteLevel.CAUTION)
