"""docs/reference/pts-pages.md refers to charts and sections that reports contain."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reference/pts-pages.md").read_text(encoding="utf-8")
CHARTS = (DOCS / "reference/charts.md").read_text(encoding="utf-8")


def test_every_question_of_the_page_is_one_of_a_chart() -> None:
    """Every question on the page is the question of an existing chart, so the page quotes no outdated question."""
    questions = set(re.findall(r"\*([^*|]+\?)\*", PAGE))
    assert len(questions) > 10
    assert {each for each in questions if each not in CHARTS} == set()


def test_every_page_of_the_demand_tests_is_listed() -> None:
    """The page lists the report pages P1 to P15, as the plan of the test does."""
    listed = {int(each) for each in re.findall(r"\bP(\d+)\b", PAGE)}
    assert listed == set(range(1, 16))
