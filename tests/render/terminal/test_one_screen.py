"""The terminal shows the result of a run on one screen. The result has at most 40 lines, and no line is wider than the
terminal. A command prints the remaining results.
"""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from tests.builders import run_info, simulate
from tkperf.analysis.results import RunResult
from tkperf.page.page import FindingsView, ReportView
from tkperf.page.view import build_view
from tkperf.render.terminal.one_screen import MOST_LINES, RUN_FILE, choose_findings, print_one_screen
from tkperf.render.terminal.page_text import print_page

POINTERS = ((f"tkperf show {RUN_FILE} --full", "all tables and charts"), (f"tkperf report {RUN_FILE}", "the page"))
LONG_NAME = "a-drive-with-a-name-that-" + "goes-on-" * 30


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    return simulate(tmp_path_factory.mktemp("run"), run_info())


def draw(view: ReportView, width: int, run_file: str = "D3.tkperf", *, piped: bool = False) -> list[str]:
    file = io.StringIO()
    console = Console(file=file, width=width, soft_wrap=piped)
    print_one_screen(view, console, going_on="test 1 of 4, IOPS", run_file=run_file, pointers=POINTERS)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def with_findings(view: ReportView, count: int) -> ReportView:
    sentence = "Random 4 KiB writes run at 47,600 IOPS, reads at 93,900 IOPS; steady in rounds 1–5"
    findings = (
        FindingsView(key=f"t{number}", title=f"Test {number}", sentences=((sentence, False), (sentence, False)))
        for number in range(count)
    )
    return replace(view, findings=tuple(findings))


@pytest.mark.parametrize("tests", [0, 1, 4, 12, 60])
@pytest.mark.parametrize("width", [60, 80, 200])
def test_one_screen_holds_the_answer(result: RunResult, width: int, tests: int) -> None:
    """The verdict, the headline figures, the findings and the commands of a run fit into 40 lines. The number of tests
    in the run does not matter.
    """
    view = with_findings(build_view(result), tests)
    lines = draw(view, width)
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= width
    said = " ".join(" ".join(lines).split())
    assert view.verdict.text in said
    assert all(each.text in said for each in view.headlines)
    assert "tkperf show D3.tkperf --full" in said
    assert ("more finding" in said) == (said.count("Random 4 KiB writes run") < 2 * tests)


@pytest.mark.parametrize("width", [60, 80, 200])
def test_long_names_are_no_wider_than_the_terminal(result: RunResult, width: int) -> None:
    """Names of runs, drives and files that are longer than a line are wrapped or replaced, so that no line is wider
    than the terminal.
    """
    info = replace(result.info, name=LONG_NAME, device={**result.info.device, "model": LONG_NAME})
    view = build_view(replace(result, info=info))
    lines = draw(view, width, f"{LONG_NAME}.tkperf")
    assert max(map(len, lines)) <= width
    assert len(lines) <= MOST_LINES
    assert f"tkperf show {RUN_FILE} --full" in " ".join(lines)
    file = io.StringIO()
    print_page(view, Console(file=file, width=width))
    assert max(len(line) for line in file.getvalue().splitlines()) <= width


def test_programs_get_each_text_on_one_line(result: RunResult) -> None:
    """Output that is not printed on a terminal contains the same findings as a terminal of 80 columns, each on one
    line.
    """
    view = build_view(result)
    lines = draw(view, 160, piped=True)
    wide = [text for found in view.findings for text, _ in found.sentences if len(text) > 80]
    assert wide
    assert any(f"{text}." in line for text in wide for line in lines)
    joined = " ".join(" ".join(draw(view, 80)).split())
    assert all(" ".join(line.split()) in joined for line in lines if line.startswith(("IOPS", "Latency", "Through")))


def test_alarms_are_the_last_findings_to_be_left_out() -> None:
    """If not all findings fit, the terminal shows the alarms and the first finding of each test, in the order of the
    report page.
    """
    calm = ("Something usual was found here; its second clause needs a second line on this terminal", False)
    alarm = ("The drive was throttled", True)
    tests = [FindingsView(key=name, title=name, sentences=(calm, calm, alarm)) for name in ("A", "B", "C")]
    texts = [one.text for one in choose_findings(tests, 7, 60)]
    assert [text for text in texts if "throttled" in text] == [f"{name}: The drive was throttled." for name in "ABC"]
    assert [text[0] for text in texts] == ["A", "A", "B", "B", "C", "C", "."]
    assert texts[0] == "A: Something usual was found here."
    assert texts[-1] == "... and 3 more findings"
    assert len(choose_findings(tests, 99, 60)) == 9
