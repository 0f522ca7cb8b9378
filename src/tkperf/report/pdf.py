"""The report for print: typst sets the same view as the HTML, with the PTS's header on each page.

The same run file gives the same bytes: nothing in it comes from the clock or the machine that
prints.
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
from tkperf.report.charts.parts import Spec
from tkperf.report.disclosure import build_page_header
from tkperf.report.drawing import Drawer
from tkperf.report.parts import Facts, ReportView

# In pixels of Vega; scaled to the width of the page, so they set the size of the text, too.
CHART_WIDTH = 600
_TOO_LONG = re.compile(r"(\S{40})(?=\S)")
CHART_SCALE = 190 / 300  # what a chart is lower in print than on the screen: three fill a page


def render_run_pdf(view: ReportView, result: RunResult, drawer: Drawer) -> bytes:
    """The PDF of a run's view, fonts embedded."""
    return render_view_pdf(
        view,
        drawer,
        header=build_page_header(result),
        footer=f"tkperf {result.info.tkperf_version}, run {result.info.name}",
    )


def render_view_pdf(view: ReportView, drawer: Drawer, *, header: Facts, footer: str) -> bytes:
    """A view as a PDF.

    Args:
        header: what stands on top of every page.
        footer: what stands at the bottom of every page.
    """
    report: Any = _clean(msgspec.to_builtins(replace(view, tests=(), cells=(), cell_charts=None)))
    report["header"], report["footer"] = _clean(header), _clean(footer)
    report["disclosure"] = [
        {"title": title, "facts": pairs} for title, pairs in report["disclosure"]
    ]
    tests: Any = msgspec.to_builtins(view.tests)
    drawn = drawer.draw([_for_print(chart.pop("spec")) for chart in _charts(tests)])
    report["tests"] = _clean(tests)
    for chart, svg in zip(_charts(report["tests"]), drawn, strict=True):
        chart["svg"] = _visible(svg)
    template = resources.files("tkperf.report") / "templates/report.typ"
    page: bytes = typst.compile(template.read_bytes(), sys_inputs={"report": json.dumps(report)})
    return page


def _charts(tests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    parts = (part for test in tests for part in (test, *test["sections"]))
    return [chart for part in parts for chart in part["charts"]]


def _for_print(spec: Spec) -> Spec:
    height, config = spec["height"], spec["config"]
    assert isinstance(height, int)
    assert isinstance(config, dict)
    return spec | {
        "width": CHART_WIDTH,
        "height": round(height * CHART_SCALE),
        # Texts of every mark for screen readers: they take time and would not reach the PDF.
        "config": config | {"aria": False},
    }


def _clean(value: object) -> object:
    """Text from outside as it can be printed; words may break where they are too long."""
    if isinstance(value, str):
        return _TOO_LONG.sub("\\1\u200b", _visible(value))
    if isinstance(value, dict):
        return {key: _clean(each) for key, each in value.items()}
    if isinstance(value, Iterable):
        return [_clean(each) for each in value]
    return value


def _visible(text: str) -> str:
    """Without control and direction characters."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(each for each in text if each.isprintable() or each == "\n")
