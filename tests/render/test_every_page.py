"""Every renderer can draw the pages about a device, the host, a plan and a list of runs in the same manner as the page
of a run.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import tkperf
from tests.cli.test_doctor import ADVICE, DISTURBS, OK, a_device
from tests.render.terminal.test_status_lines import ALL
from tkperf.analysis.estimates import PlanCode
from tkperf.model.record import RunNote
from tkperf.page.doctor import build_device_page
from tkperf.page.page import NotesView, ReportView, TableView
from tkperf.page.plan import build_plan_page
from tkperf.page.status import build_status
from tkperf.pipeline.estimate_run import ASSUMED, estimate_run
from tkperf.render.document import compose
from tkperf.render.export_markdown import inert, render_markdown
from tkperf.render.pdf import set_document
from tkperf.render.reports import render_html

COMMAND = "echo performance | sudo tee /sys/governor"


def a_plan() -> ReportView:
    estimate = estimate_run(tkperf.make_plan("ssd", "sim:sata-ssd", tests=["tp"]), ASSUMED, None)
    warning = RunNote(code="host-disturbs", text="the host is busy")
    page = build_plan_page(replace(estimate, warnings=(warning,)))
    assert [reason.code for reason in page.verdict.judged.reasons] == [PlanCode.WARNINGS]
    return page


PAGES = {
    "device": build_device_page(a_device(OK, ADVICE, replace(DISTURBS, command=COMMAND))),
    "plan": a_plan(),
    "runs": build_status(ALL),
}


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_drawn_by_every_renderer(name: str) -> None:
    """HTML and Markdown contain the verdict and each text of the tables and lists of a page. The page can also be
    printed.
    """
    page = PAGES[name]
    texts = [page.verdict.title]
    for block in page.overview:
        if isinstance(block, TableView):
            texts += [cell for row in block.rows for cell in row]
        else:
            texts += [block.title, *(text for note in block.notes for text in (note.text, *note.details))]
    html, words = render_html(page), render_markdown(page)
    shown = re.sub(r"\W+", "", re.sub(r"<[^>]*>|&\w+;|&#\d+;", "", html))
    for text in texts:
        assert re.sub(r"\W+", "", text) in shown
        assert inert(text) in words
    assert set_document(compose(page)).startswith(b"%PDF")


def test_a_page_of_one_part_has_no_navigation() -> None:
    """A page with a single part has no navigation. A figure in a cell is on the same line as its unit."""
    page = PAGES["runs"]
    assert not page.tests
    table = TableView(title="Claims", columns=("Drive", "IOPS"), rows=(("A", "fails, -29.5 %"),))
    html = render_html(replace(page, overview=(table,)))
    assert "<nav" not in html
    assert '<span class="figure">' in html.split("<tbody>")[1]


def test_commands_are_copied_as_they_are() -> None:
    assert any(isinstance(block, NotesView) for block in PAGES["device"].overview)
    assert f"<pre>{COMMAND}</pre>" in render_html(PAGES["device"])
    assert f"      {COMMAND}\n" in render_markdown(PAGES["device"])
