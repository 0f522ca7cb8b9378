"""The pages about concepts and charts show the pictures that scripts/docs_charts.py draws."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tkperf.procedures import SUITES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CONCEPTS = (DOCS / "explanation/concepts.md").read_text(encoding="utf-8")
GALLERY = (DOCS / "reference/gallery.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def runs() -> dict[str, str]:
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        return dict(import_module("docs_charts").RUNS)
    finally:
        sys.path.remove(str(ROOT / "scripts"))


@pytest.mark.parametrize(("page", "folder"), [(CONCEPTS, "explanation/concepts"), (GALLERY, "reference/gallery")])
def test_every_picture_is_shown_once_and_has_a_text(page: str, folder: str) -> None:
    """Every picture is shown on a page exactly once and has a text alternative. A picture that no page shows was drawn
    by an earlier version of the script.
    """
    shown = re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", page)
    assert sorted(Path(path).name for _, path in shown) == sorted(each.name for each in (DOCS / folder).iterdir())
    assert all(text for text, _ in shown)


def test_every_chart_of_concepts_says_that_it_is_simulated() -> None:
    for picture in (DOCS / "explanation/concepts").iterdir():
        assert "SIMULATED: sim:" in picture.read_text(encoding="utf-8"), picture.name


def test_the_commands_of_the_pages_are_those_that_measure_the_runs(runs: dict[str, str]) -> None:
    """Each command of the script is on one of the two pages, and the pages contain no other commands that measure."""
    calls = re.findall(r"^(tkperf (?:ssd|hdd|sweep) .*?)(?:\s+#.*)?$", CONCEPTS + GALLERY, re.MULTILINE)
    assert {" ".join(call.split()) for call in calls} == set(runs.values())


def test_the_gallery_answers_every_question_of_the_reference() -> None:
    """The gallery shows a chart for every question of the reference, except the question about the limit of the host,
    because a simulated drive has no host.
    """
    charts = (DOCS / "reference/charts.md").read_text(encoding="utf-8")
    questions = set(re.findall(r"^\| ([^|]+\?) \|", charts, re.MULTILINE))
    assert questions - {"Was the host at its limit?"} <= set(re.findall(r"\*\*([^*]+)\*\*", GALLERY))


def test_every_test_of_tkperf_is_reachable_from_a_question() -> None:
    """For every test of tkperf, a command in the table of questions names the test and its suite."""
    page = (DOCS / "how-to/which-test.md").read_text(encoding="utf-8")
    for suite in ("ssd", "hdd"):
        named = set(re.findall(rf"`sudo tkperf {suite} [^`]*--test ([\w-]+)`", page))
        assert SUITES[suite].keys() - {"sweep"} <= named, suite
    assert "`sudo tkperf sweep " in page
    assert "`sudo tkperf raid " in page
