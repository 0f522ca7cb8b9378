"""The report for print: typst sets the same view as the HTML, with the PTS's header on each page.

The same run file gives the same bytes: nothing in it comes from the clock or the machine that
prints. Only texts in scripts that typst has no fonts for are set in the system's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from importlib import resources
from typing import Any

import msgspec
import typst

from tkperf.analysis.results import RunResult
from tkperf.report.charts.vega import Spec
from tkperf.report.drawing import Drawer
from tkperf.report.fonts import FAMILY, FOLDER
from tkperf.report.marking import find_keywords
from tkperf.report.page import Blocks, ChartView, ReportView, TestView
from tkperf.report.wording import shorten
from tkperf.units import drop_controls

# In pixels of Vega, all of a chart, for half the width of the text and for all of it: in both its letters of 12 px get 7.5 pt.
HALF_WIDTH, WHOLE_WIDTH = 390, 806
# What typst's own fonts lack: all but Latin, Greek, Cyrillic and punctuation.
_OTHER_SCRIPT = re.compile(r"[^\u0000-\u052f\u2000-\u206f]")
_TOO_LONG = re.compile(r"(\S{40})(?=\S)")
# In characters: a line of a page's header, two of a column's.
MOST_OF_BANNER = 120
MOST_OF_ABOUT = 160
MOST_OF_FACT = 64
# What charts are lower in print than on the screen, so that six of half the width fill a page; names beside curves need as much.
# Those over time have none, and others of the same time below them.
CHART_SCALE, TIMELINE_SCALE = 190 / 300, 110 / 300


class Print:
    """A view on its way to paper: its charts are drawn from now on, ``render`` waits for them."""

    def __init__(self, view: ReportView, drawer: Drawer, *, footer: str) -> None:
        """Begin.

        Args:
            footer: what stands at the bottom of every page.
        """
        self._drawer = drawer
        report: Any = _clean(
            msgspec.to_builtins(
                replace(view, overview_charts=(), tests=(), cells=(), cell_charts=None)
            )
        )
        # Every page has these, so they must not fill it; the first pages have them in full.
        report["header"] = _clean(_shorten(view.header))
        report["about"] = _clean(shorten(view.about, MOST_OF_ABOUT))
        report["footer"] = _clean(shorten(footer, MOST_OF_BANNER))
        report["keywords"] = find_keywords(view)
        report["disclosure"] = [
            {"title": title, "facts": pairs} for title, pairs in report["disclosure"]
        ]
        drawn: Any = msgspec.to_builtins(
            {"overview_charts": view.overview_charts, "tests": _on_paper(view.tests)}
        )
        drawn["overview_charts"] = _lay_out(drawn["overview_charts"])
        for part in _parts(drawn):
            part["charts"] = _lay_out(part["charts"])
        drawer.start([_for_print(chart, report["keywords"]) for chart in _charts(drawn)])
        report |= {name: _clean(part) for name, part in drawn.items()}
        self._report = report

    def render(self) -> bytes:
        """The PDF, fonts embedded. To be called once."""
        charts = _charts(self._report)
        for chart, svg in zip(charts, self._drawer.finish(), strict=True):
            chart["svg"] = drop_controls(svg)
        template = resources.files("tkperf.report") / "templates/report.typ"
        data = json.dumps(self._report, ensure_ascii=False)
        page: bytes = typst.compile(
            template.read_bytes(),
            sys_inputs={"report": data},
            font_paths=typst.Fonts(
                # Other versions of the same fonts would give other bytes.
                include_system_fonts=_OTHER_SCRIPT.search(data) is not None,
                font_paths=[FOLDER],
            ),
        )
        return page


def print_run(view: ReportView, result: RunResult, drawer: Drawer) -> Print:
    """A run's view with the PTS's header."""
    return Print(
        view,
        drawer,
        footer=f"{result.info.software}, run {result.info.name}",
    )


def _on_paper(tests: tuple[TestView, ...]) -> tuple[TestView, ...]:
    """The tests, each chart in the views that the specification asks for."""

    def lay_out(charts: tuple[ChartView, ...]) -> tuple[ChartView, ...]:
        return tuple(view for chart in charts for view in chart.on_paper)

    return tuple(
        replace(
            test,
            header=_shorten(test.header),
            charts=lay_out(test.charts),
            course=replace(test.course, charts=lay_out(test.course.charts)),
            sections=tuple(
                replace(section, charts=lay_out(section.charts)) for section in test.sections
            ),
        )
        for test in tests
    )


def _shorten(blocks: Blocks) -> Blocks:
    return tuple(
        (title, tuple((name, shorten(fact, MOST_OF_FACT)) for name, fact in facts))
        for title, facts in blocks
    )


def _parts(report: dict[str, Any]) -> list[dict[str, Any]]:
    """All that has charts."""
    return [part for test in report["tests"] for part in (test, test["course"], *test["sections"])]


def _charts(report: dict[str, Any]) -> list[dict[str, Any]]:
    rows = (row for part in _parts(report) for row in part["charts"])
    return [chart for row in (*report["overview_charts"], *rows) for chart in row]


def _lay_out(charts: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Rows of charts: two that are half as wide as the page; or a wide one, below it those of the same time."""
    groups: list[list[dict[str, Any]]] = []
    for chart in charts:
        if chart["below"] and groups:
            # Below the view that has its time axis, which others may follow.
            aligned = (group for group in reversed(groups) if group[0]["aligned"])
            next(aligned, groups[-1]).append(chart)
        else:
            groups.append([chart])
    rows: list[list[dict[str, Any]]] = []
    pairs = False  # whether the last row may take a second one
    for group in groups:
        if pairs and len(group) == 1:
            rows[-1] += group
            pairs = False
        else:
            rows.append(group)
            pairs = len(group) == 1
    paired = {id(row[0]) for row in rows if len(row) == 2 and not row[1]["below"]}
    for row in rows:
        for place, chart in enumerate(row):
            chart["wide"] = id(row[0]) not in paired and (place == 0 or len(row) == 2)
            chart["low"] = chart["wide"] and len(row) > 1
    return rows


def _for_print(chart: dict[str, Any], keywords: str) -> Spec:
    """What is drawn of a chart; its title and what is marked below it are set as texts."""
    spec: Spec = chart.pop("spec")
    height, config, title = spec["height"], spec["config"], spec["title"]
    assert isinstance(height, int)
    assert isinstance(config, dict)
    assert isinstance(title, dict)
    chart["title"] = title["text"]
    marked = title.get("subtitle", [])
    lines = [marked] if isinstance(marked, str) else marked
    # What every figure is to be read with stands on top of the page.
    chart["marked"] = [line for line in lines if line != keywords]
    return {key: value for key, value in spec.items() if key != "title"} | {
        "width": WHOLE_WIDTH if chart["wide"] else HALF_WIDTH,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "height": round(height * (TIMELINE_SCALE if chart.pop("low") else CHART_SCALE)),
        # Texts of every mark for screen readers: they take time and would not reach the PDF.
        "config": config | {"aria": False, "font": FAMILY},
    }


def _clean(value: object) -> object:
    """Text from outside as it can be printed; words may break where they are too long."""
    if isinstance(value, str):
        return _TOO_LONG.sub("\\1\u200b", drop_controls(value))
    if isinstance(value, dict):
        return {key: _clean(item) for key, item in value.items()}
    if isinstance(value, Iterable):
        return [_clean(item) for item in value]
    return value
