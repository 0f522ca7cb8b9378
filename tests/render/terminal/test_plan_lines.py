"""The plan of a run in the terminal."""

from __future__ import annotations

from io import StringIO

import pytest

import tkperf
from tkperf.page.plan import build_plan_page
from tkperf.pipeline.estimate_run import ASSUMED, estimate_run, parse_rating
from tkperf.render.terminal.console import OutputConsole
from tkperf.render.terminal.plans_and_profiles import print_plan


def test_80_columns_break_no_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a terminal of 80 columns, no word in the names of tests, phases and conditions is broken."""
    shown = StringIO()
    console = OutputConsole(file=shown, width=80, force_terminal=True, color_system=None)
    monkeypatch.setattr("tkperf.render.terminal.plans_and_profiles.open_console", lambda: console)
    plan = tkperf.make_plan("ssd", "sim:sata-ssd", tests=["lat", "cbw", "hir"])
    estimate = estimate_run(plan, ASSUMED, parse_rating("600TBW"))
    print_plan(estimate)
    page = build_plan_page(estimate)
    cells = [cell for table in page.tables for row in table.rows for cell in row]
    facts = [text for _, texts in page.disclosure for _, text in texts]
    words = {word for text in (*cells, *facts) for word in text.split()}
    assert words <= set(shown.getvalue().split())
    assert max(map(len, shown.getvalue().splitlines())) <= 80
