"""What tkperf show draws: courses and histograms that say what the tables do."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from tests.builders import run_info, simulate
from tkperf.analysis.results import RunResult, SectionResult
from tkperf.render.terminal.blocks import ASCII, UNICODE
from tkperf.render.terminal.drawings import (
    draw_course,
    draw_histogram,
    print_drawings,
    spread_in_bins,
)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    return simulate(tmp_path_factory.mktemp("run"), run_info())


def stream_of(result: RunResult) -> SectionResult:
    return next(
        section
        for test in result.tests
        for section in test.sections
        if len(section.slices) > 1 and section.histogram_us
    )


def test_spread_ios_stay_as_many_and_a_bin_is_as_wide_as_the_next() -> None:
    """Half of a bucket across two bins is in each; ten bins are a decade."""
    first, ios = spread_in_bins([(10.0, 1000.0, 200), (1000.0, 1100.0, 7)], 1)
    assert first == 1
    assert ios == pytest.approx([100, 100, 7])
    first, ios = spread_in_bins([(1.0, 10.0, 1000)], 10)
    assert (first, len(ios)) == (0, 10)
    assert ios == pytest.approx([100] * 10)


def test_a_wide_bucket_makes_no_step() -> None:
    """Buckets of fio are twice as wide from one power of two to the next; even I/Os are drawn even."""
    buckets = [(edge, edge * 1.02, 2) for edge in (1.02**n for n in range(0, 200, 2))]
    wide = [(edge, edge * 1.02**2, 2) for edge in (1.02**n for n in range(1, 200, 2))]
    _, ios = spread_in_bins([*buckets[:50], *wide[50:]], 8)
    inner = ios[1:-1]
    assert max(inner) / min(inner) < 1.4


def test_no_ios_in_between_are_an_empty_place() -> None:
    first, ios = spread_in_bins([(1.0, 1.01, 5), (100.0, 101.0, 5)], 2)
    assert (first, len(ios)) == (0, 5)
    assert [round(value, 6) for value in ios[1:4]] == [0, 0, 0]


def test_a_histogram_has_its_scale_below_and_the_greatest_share_beside(result: RunResult) -> None:
    """As many bars as bins from the first to the last bucket, a name below each power of ten."""
    section = stream_of(result)
    lines = [line.plain for line in draw_histogram(section, 80, UNICODE)]
    assert (
        lines[1]
        == "Response times of all I/Os; share of them in each bin of equal logarithmic width"
    )
    bars, axis = lines[2:-1], lines[-1]
    assert len(bars) == 6
    assert bars[0].split()[1] == "%"
    assert "|100 µs" in axis or "|1 ms" in axis
    assert max(map(len, lines)) <= 80


def test_a_stream_is_drawn_over_its_time(result: RunResult) -> None:
    section = stream_of(result)
    lines = [line.plain for line in draw_course(section, 80, UNICODE)]
    assert lines[1].startswith("Over ")
    assert f", {len(section.slices)} slices, from 0 to the greatest" in lines[1]
    assert lines[2].startswith("IOPS")
    assert max(map(len, lines)) <= 80


def test_rounds_are_drawn_cell_by_cell(result: RunResult) -> None:
    section = result.tests[0].sections[0]
    lines = [line.plain for line in draw_course(section, 80, UNICODE)]
    assert lines[1] == "IOPS, round by round; Block size (KiB) down, R/W % across"
    assert len(lines) == 3 + len({cell.workload.block_size_bytes for cell in section.cells})
    assert max(map(len, lines)) <= 80


def test_one_round_or_none_has_no_course(result: RunResult) -> None:
    section = result.tests[0].sections[0]
    assert list(draw_course(replace(section, rounds=section.rounds[:1]), 80, UNICODE)) == []
    assert list(draw_histogram(replace(section, histogram_us=()), 80, UNICODE)) == []


def test_a_terminal_without_blocks_or_colours_gets_neither(
    result: RunResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    class Plain(io.StringIO):
        encoding = "ascii"

    for section in (stream_of(result), result.tests[0].sections[0]):
        file = Plain()
        print_drawings(section, Console(file=file, width=80, force_terminal=True))
        drawn = file.getvalue()
        assert drawn.isascii()
        assert any(character in drawn for character in ASCII.heights)
        assert "\x1b[3" not in drawn  # a colour


def test_a_run_under_way_says_where_it_is_and_nothing_else(tmp_path: Path) -> None:
    """No section is said to have ended, no test to have failed."""
    from tests.runfile.runs import a_run
    from tkperf.cli.results import print_run

    path, writer = a_run(tmp_path, steps=2)
    with pytest.MonkeyPatch.context() as changed:
        file = io.StringIO()
        changed.setattr("tkperf.cli.results.open_console", lambda: Console(file=file, width=100))
        print_run(path)
        writer.close()
    shown = file.getvalue()
    (line,) = [line for line in shown.splitlines() if line.startswith("going on: ")]
    assert line.startswith("going on: test 1 of 1, ")
    for wrong in ("did not end", "still going on", "interrupted", "nobody knows", "run running"):
        assert wrong not in shown
    assert "it is going on" in shown
