"""The list of runs in the terminal begins with a verdict and contains one line for each run. No word is truncated at
any width.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

import pytest
from rich.console import Console

from tkperf.analysis.run_overview import RunOverview
from tkperf.analysis.verdict import VerdictState
from tkperf.page.status import build_status
from tkperf.page.verdict_texts import NoteLevel
from tkperf.render.terminal.page_text import print_status

RUNNING = RunOverview(
    run_file="D3-S4510.tkperf",
    name="D3-S4510",
    device="Intel S4510, PHYF1234, /dev/sdb",
    simulated=False,
    state="running",
    because=None,
    pid=4711,
    user="root",
    test="iops",
    test_number=2,
    tests=4,
    tests_done=1,
    place="IOPS, round 7 of at most 25, step 3 of 56",
    fill_done=None,
    elapsed_s=8000.0,
    remaining_shortest_s=7800.0,
    remaining_longest_s=72000.0,
    warnings=0,
    disturbed_steps=2,
    verdict=VerdictState.RUNNING,
)
VALID = replace(
    RUNNING,
    run_file="D7.tkperf",
    state="complete",
    pid=None,
    user=None,
    test=None,
    test_number=None,
    tests_done=4,
    place=None,
    remaining_shortest_s=None,
    remaining_longest_s=None,
    verdict=VerdictState.VALID,
)
CAUTIONS = replace(VALID, run_file="D8.tkperf", verdict=VerdictState.CAUTIONS)
INTERRUPTED = replace(
    VALID,
    run_file="D9.tkperf",
    state="interrupted",
    because="stopped by the user",
    test="lat",
    place="Latency, preconditioning",
    fill_done=0.5,
    tests_done=2,
    verdict=VerdictState.INTERRUPTED,
)
FAILED = replace(
    INTERRUPTED,
    run_file="D10.tkperf",
    state="failed",
    because="the purge failed: " + "x" * 90,
    verdict=VerdictState.NOT_VALID,
)
ALL = (RUNNING, VALID, CAUTIONS, INTERRUPTED, FAILED)


def drawn(runs: Sequence[RunOverview], width: int, *, terminal: bool) -> list[str]:
    console = Console(
        file=io.StringIO(), width=width, force_terminal=terminal, color_system=None, soft_wrap=not terminal
    )
    print_status(build_status(runs), console)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


@pytest.mark.parametrize("width", [40, 80, 100, 120, 200])
def test_a_terminal_gets_a_line_for_each_run_of_whole_words(width: int) -> None:
    """A narrow terminal omits whole columns and never truncates words. The columns with the state and the result are
    omitted last.
    """
    runs = (*ALL, replace(RUNNING, run_file="/a/path/as/long/as/they/come/D11.tkperf"))
    lines = drawn(runs, width, terminal=True)
    head, rule, *rows = lines[[line[:4] for line in lines].index("run ") :]
    assert len(rows) == len(runs)
    assert set(rule) == {"─"}
    assert all(len(line) <= width for line in rows)
    assert head.split()[:2] == ["run", "state"]
    for run, row in zip(runs, rows, strict=True):
        assert run.state in row.split()
    assert rows[-1].startswith("…" if width < 200 else "/a/path")
    assert rows[-1].split()[0].endswith("come/D11")
    if width >= 80:
        assert "Valid with cautions  4 of 4" in rows[2]
    if width >= 100:
        assert "1 of 4  2 h 10 min to 20 h 00 min" in rows[0]


def test_at_120_columns_it_says_where_a_run_is() -> None:
    rows = drawn((RUNNING, VALID), 120, terminal=True)
    assert "IOPS, round 7 of at most 25" in rows[4]


def test_piped_lines_have_every_column() -> None:
    """If the list of runs is written to a pipe, it contains every column and whole paths, because programs read it."""
    *_, head, _ = (lines := drawn(ALL, 160, terminal=False))[: -len(ALL)]
    rows = lines[-len(ALL) :]
    assert head.split()[-4:] == ["process", "warnings", "disturbed", "steps"]
    assert all(len(row) > 160 for row in rows)
    assert rows[0].startswith("D3-S4510.tkperf  running")
    assert "4711" in rows[0]
    assert FAILED.because is not None
    assert FAILED.because in rows[4]
    assert "Latency, preconditioning 50%" in rows[3]


@pytest.mark.parametrize(
    ("runs", "says", "level"),
    [
        ((VALID,), "1 run: 1 ended", NoteLevel.INFORMATION),
        ((RUNNING, VALID, FAILED), "3 runs: 1 running, 2 ended, 1 of them not valid", NoteLevel.FAILURE),
        ((RUNNING, INTERRUPTED), "2 runs: 1 running, 1 ended, interrupted", NoteLevel.INFORMATION),
        ((VALID, CAUTIONS), "2 runs: 2 ended, 1 of them valid with cautions", NoteLevel.CAUTION),
        (
            ALL,
            "5 runs: 1 running, 4 ended, 1 of them not valid, 1 interrupted, 1 valid with cautions",
            NoteLevel.FAILURE,
        ),
    ],
)
def test_it_opens_with_a_verdict(runs: Sequence[RunOverview], says: str, level: NoteLevel) -> None:
    view = build_status(runs)
    assert (view.verdict.text, view.verdict.level) == (says, level)
    assert drawn(runs, 120, terminal=True)[0] == says


def test_a_file_that_cannot_be_read_is_counted() -> None:
    verdict = build_status((VALID,), not_read=("a", "b")).verdict
    assert verdict.text == "1 run: 1 ended, 2 more files cannot be read"
    assert verdict.level is NoteLevel.CAUTION


def test_results_are_the_verdicts_in_short() -> None:
    """The result column contains the short verdict of a run. A run that was not judged has none, and a simulated run is
    marked as simulated.
    """
    simulated, unjudged = replace(VALID, simulated=True), replace(VALID, verdict=None)
    view = build_status((*ALL, simulated, unjudged))
    (table,) = view.tables
    assert [row[2] for row in table.rows] == [
        "-",
        "Valid",
        "Valid with cautions",
        "-",
        "Not valid",
        "SIMULATED. Valid",
        "-",
    ]
    assert table.notes
    assert not build_status(ALL).tables[0].notes
