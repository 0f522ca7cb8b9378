"""The report for print: typst sets the same view as the HTML, with the PTS's header on each page.

The same run file gives the same bytes: nothing in it comes from the clock or the machine that
prints.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib import resources

import msgspec
import typst
import vl_convert

from tkperf.analysis.claims import Finding
from tkperf.analysis.results import RunResult
from tkperf.report.disclosure import Facts, build_page_header
from tkperf.report.parts import ReportView
from tkperf.report.view import build_view

# In pixels of Vega; scaled to the width of the page, so they set the size of the text, too.
CHART_WIDTH, CHART_HEIGHT = 600, 230


def render_pdf(result: RunResult, findings: tuple[Finding, ...] = ()) -> bytes:
    """The PDF of a run, fonts embedded, with claims checked against it."""
    return render_view_pdf(
        build_view(result, findings),
        header=build_page_header(result),
        footer=f"tkperf {result.info.tkperf_version}, run {result.info.name}",
    )


def render_view_pdf(view: ReportView, *, header: Facts, footer: str) -> bytes:
    """A view as a PDF.

    Args:
        header: what stands on top of every page.
        footer: what stands at the bottom of every page.
    """
    report = msgspec.to_builtins(view)
    report["header"], report["footer"] = header, footer
    report["disclosure"] = [
        {"title": title, "facts": pairs} for title, pairs in report["disclosure"]
    ]
    for section in (section for test in report["tests"] for section in test["sections"]):
        for chart in section["charts"]:
            spec = chart.pop("spec") | {"width": CHART_WIDTH, "height": CHART_HEIGHT}
            chart["svg"] = vl_convert.vegalite_to_svg(spec)
    template = resources.files("tkperf.report") / "templates/report.typ"
    page: bytes = typst.compile(
        template.read_bytes(), sys_inputs={"report": json.dumps(_clean(report))}
    )
    return page


def _clean(value: object) -> object:
    """Text from outside without control and direction characters, which print could not show."""
    if isinstance(value, str):
        return "".join(each for each in value if each.isprintable() or each == "\n")
    if isinstance(value, dict):
        return {key: _clean(each) for key, each in value.items()}
    if isinstance(value, Iterable):
        return [_clean(each) for each in value]
    return value
