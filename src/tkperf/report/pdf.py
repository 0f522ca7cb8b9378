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
from tkperf.report.disclosure import build_page_header
from tkperf.report.drawing import Drawer
from tkperf.report.page import Facts, ReportView
from tkperf.report.wording import shorten
from tkperf.units import drop_controls

# In pixels of Vega; scaled to the width of the page, so they set the size of the text, too.
CHART_WIDTH = 600
# What typst's own fonts lack: all but Latin, Greek, Cyrillic and punctuation.
_OTHER_SCRIPT = re.compile(r"[^\u0000-\u052f\u2000-\u206f]")
_TOO_LONG = re.compile(r"(\S{40})(?=\S)")
# In characters: a line of a page's header, two of a column's.
MOST_OF_BANNER = 120
MOST_OF_FACT = 80
# typst brings it, so charts look the same wherever they are printed.
CHART_FONT = "Libertinus Serif"
CHART_SCALE = 190 / 300  # what a chart is lower in print than on the screen: three fill a page


class Print:
    """A view on its way to paper: its charts are drawn from now on, ``render`` waits for them."""

    def __init__(self, view: ReportView, drawer: Drawer, *, header: Facts, footer: str) -> None:
        """Begin.

        Args:
            header: what stands on top of every page.
            footer: what stands at the bottom of every page.
        """
        self._drawer = drawer
        report: Any = _clean(
            msgspec.to_builtins(replace(view, tests=(), cells=(), cell_charts=None))
        )
        # Every page has these, so they must not fill it; the first pages have them in full.
        report["header"] = _clean([(name, shorten(fact, MOST_OF_FACT)) for name, fact in header])
        report["footer"] = _clean(shorten(footer, MOST_OF_BANNER))
        report["running"] = [shorten(banner, MOST_OF_BANNER) for banner in report["banners"]]
        report["disclosure"] = [
            {"title": title, "facts": pairs} for title, pairs in report["disclosure"]
        ]
        tests: Any = msgspec.to_builtins(view.tests)
        drawer.start([_for_print(chart.pop("spec")) for chart in _charts(tests)])
        report["tests"] = _clean(tests)
        self._report = report

    def render(self) -> bytes:
        """The PDF, fonts embedded. To be called once."""
        charts = _charts(self._report["tests"])
        for chart, svg in zip(charts, self._drawer.finish(), strict=True):
            chart["svg"] = drop_controls(svg)
        template = resources.files("tkperf.report") / "templates/report.typ"
        data = json.dumps(self._report, ensure_ascii=False)
        page: bytes = typst.compile(
            template.read_bytes(),
            sys_inputs={"report": data},
            # Other versions of the same fonts would give other bytes.
            ignore_system_fonts=_OTHER_SCRIPT.search(data) is None,
        )
        return page


def print_run(view: ReportView, result: RunResult, drawer: Drawer) -> Print:
    """A run's view with the PTS's header."""
    return Print(
        view,
        drawer,
        header=build_page_header(result),
        footer=f"{result.info.software}, run {result.info.name}",
    )


def _charts(tests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    views = (view for test in tests for view in (test, *test["sections"]))
    return [chart for view in views for chart in view["charts"]]


def _for_print(spec: Spec) -> Spec:
    height, config = spec["height"], spec["config"]
    assert isinstance(height, int)
    assert isinstance(config, dict)
    return spec | {
        "width": CHART_WIDTH,
        "height": round(height * CHART_SCALE),
        # Texts of every mark for screen readers: they take time and would not reach the PDF.
        "config": config | {"aria": False, "font": CHART_FONT},
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
