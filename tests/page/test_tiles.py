"""The tiles at the beginning of a report, which are boxes with one headline figure each. Every report of several tests
shows the same six figures, after the findings that need attention.
"""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from tests.analysis.made_up import made_up_run, made_up_section
from tests.analysis.test_decision import LARGE, READ, SINGLE, WRITE, section_of
from tkperf.analysis.characteristics_search import MOST_CACHED
from tkperf.analysis.comparing.comparison import compare
from tkperf.analysis.comparing.decision_figures import build_decision
from tkperf.analysis.drive_telemetry import DriveTelemetry
from tkperf.analysis.results import RunResult, SectionResult
from tkperf.analysis.timeline.levels import LevelKind, RateLevel
from tkperf.analysis.timeline.timelines import Recorded, Timeline
from tkperf.model.disturbance.io import DisturbanceCode
from tkperf.page.findings import headlines
from tkperf.page.matrix import FIGURE_NAMES, TILES
from tkperf.page.view import build_view
from tkperf.render.export_markdown import render_markdown
from tkperf.render.html import render_view
from tkperf.render.terminal.page_text import print_page

CAPACITY = 1_000_000_000_000
SINGLE_WRITE = replace(SINGLE, read_percent=0)
LARGE_WRITE = replace(LARGE, read_percent=0)
LABELS = ["Random write", "Random read", "Read latency", "Sequential write", "Sequential read", "Write latency"]


def run_of(*, latency: bool = True, stream: SectionResult | None = None) -> RunResult:
    """Return a run that contains the basic tests."""
    tests = {"iops": [section_of({READ: 98_000.0, WRITE: 27_000.0})]}
    if latency:
        tests["lat"] = [section_of({SINGLE: 97.0, SINGLE_WRITE: 276.0}, name="Latency")]
    tests["tp"] = [section_of({LARGE: 521.0, LARGE_WRITE: 520.0}, name="Throughput 1024k")]
    if stream is not None:
        tests["writesat"] = [stream]
    return made_up_run("R", tests, device={"kind": "block device", "capacity_bytes": CAPACITY})


def stream_of(cached_bytes: float, *, throttled: bool = False, at_end: float = 281_000.0) -> SectionResult:
    """Return a stream of writes whose rate falls from one level to another after ``cached_bytes``. At the end of the
    stream, the rate is ``at_end``.
    """
    rates = [281_000.0] * 9 + [at_end]
    section = made_up_section("Write Saturation", {WRITE: rates}, stream=True, window=False, steady=None)
    fresh = RateLevel(kind=LevelKind.FRESH, start=0, end=4, value=586_000, end_bytes=cached_bytes)
    then = RateLevel(kind=LevelKind.STEADY, start=5, end=10, value=281_000, end_bytes=2 * cached_bytes)
    course = Timeline(
        workload=WRITE, quantity="iops", recorded=Recorded.SLICES, values=10, levels=(fresh, then), settled=True
    )
    hot = (DisturbanceCode.THROTTLED,) if throttled else ()
    slices = tuple(replace(one, values=replace(one.values, disturbances=hot)) for one in section.slices)
    return replace(section, timelines=(course,), slices=slices)


def test_every_report_has_the_same_tiles() -> None:
    """Every report has the same tiles in the same order. The tile of a figure that no test measured has no number."""
    whole, without = headlines(run_of()), headlines(run_of(latency=False))
    assert [one.label for one in whole] == [one.label for one in without] == LABELS
    assert [FIGURE_NAMES[key][0] for key in TILES] == LABELS
    assert [one.label for one in without if one.value is None] == ["Read latency", "Write latency"]
    assert {one.text for one in without if one.value is None} == {"not measured"}
    assert all(one.value is not None and one.test and one.section for one in whole)


def test_every_output_has_the_tiles() -> None:
    """The page, Markdown and the terminal show each tile with its load, its unit and its interval."""
    view = build_view(run_of(latency=False))
    drawn = io.StringIO()
    print_page(view, Console(file=drawn, width=160))
    for output in (render_view(view), render_markdown(view), drawn.getvalue()):
        text = re.sub(r"</?span[^>]*>", "", output).replace("\N{NO-BREAK SPACE}", " ")
        for tile in view.headlines:
            assert all(part in text for part in (tile.label, tile.load, tile.text, tile.sure)), tile
        assert text.count("not measured") >= 2
        assert "27,000 IOPS" in text
        assert "± 0.1" in text


def test_a_tile_is_the_cell_of_a_comparison() -> None:
    """A tile shows the same number as the cell of a comparison. For the same load, a reader therefore finds the same
    value in both places.
    """
    run = run_of()
    decision = build_decision(compare([run, replace(run, info=replace(run.info, name="S", uuid=None, seed=2))]))
    cells = {figure.key: figure.cells[0].entry.value for figure in decision.figures}
    assert {key: tile.value for key, tile in zip(TILES, headlines(run), strict=True)} == {
        key: cells[key] for key in TILES
    }


@pytest.mark.parametrize(("half_percent", "alarm"), [(None, False), (19.0, False), (21.0, True)])
def test_a_tile_with_a_wide_interval_is_a_caution(half_percent: float | None, alarm: bool) -> None:
    """If the interval of a tile is wider than 20 % of the value, the tile has the same colour as a tile whose figure
    was not steady.
    """
    run = run_of()
    iops = section_of({READ: 98_000.0, WRITE: 27_000.0}, half_percent=half_percent)
    tests = (replace(run.tests[0], sections=(replace(iops, plan=run.tests[0].sections[0].plan),)), *run.tests[1:])
    tiles = headlines(replace(run, tests=tests))
    assert [one.alarm for one in tiles] == [alarm, alarm, False, False, False, False]


def test_a_run_of_one_test_keeps_its_own_figures() -> None:
    """A run of one test has its own headline figures. The six tiles are not shown, because most of them would
    be empty.
    """
    run = run_of()
    alone = replace(run, tests=run.tests[:1])
    assert not {one.label for one in headlines(alone)} & set(LABELS)


@pytest.mark.parametrize(
    ("share", "throttled", "is_named"), [(0.105, False, True), (0.105, True, False), (MOST_CACHED + 0.1, False, False)]
)
def test_a_cache_is_named_before_the_tiles(share: float, throttled: bool, is_named: bool) -> None:
    """A cache is named before the tiles if the rate falls after less than half of the capacity was written. This rule
    does not apply if the drive was throttled at that time.
    """
    first, *others = headlines(run_of(stream=stream_of(share * CAPACITY, throttled=throttled)))
    assert (first.label == "Cache, 4 KiB random write") is is_named
    if is_named:
        assert first.text == "first 105.0 GB at 586,000 IOPS, then 281,000"
        assert first.needs_attention
        assert [one.label for one in others] == LABELS
    assert not any(one.needs_attention for one in others)


@pytest.mark.parametrize(("at_end", "said"), [(281_000.0, ""), (260_000.0, ""), (48_000.0, ", and 48,000 at the end")])
def test_a_rate_that_falls_further_after_the_cache_is_named(at_end: float, said: str) -> None:
    """If the rate at the end of the stream is more than a tenth below the level after the cache, the tile about the
    cache also names this final rate.
    """
    first, *_ = headlines(run_of(stream=stream_of(0.105 * CAPACITY, at_end=at_end)))
    assert first.text == f"first 105.0 GB at 586,000 IOPS, then 281,000{said}"


def test_a_throttled_drive_says_so_before_the_tiles() -> None:
    """If a drive was throttled, the first tile shows the longest time for which the drive was throttled in a test. A
    drive that reports no throttling has no such tile.
    """
    run = run_of()
    hot = tuple(
        replace(test, telemetry=(DriveTelemetry(drive="a", throttled_s=seconds),))
        for test, seconds in zip(run.tests, (60.0, None, 3600.0), strict=True)
    )
    first, *others = headlines(replace(run, tests=hot))
    assert (first.label, first.text, first.test) == ("Throttled for heat", "1 h 00 min", "tp")
    assert first.verdict == "also in IOPS"
    assert [one.label for one in others] == LABELS
    assert build_view(replace(run, tests=hot)).headlines[0].section == "tp"


def test_a_cache_comes_before_throttling() -> None:
    """The tile about a cache precedes the tile about throttling, because the verdict already mentions the throttling,
    but only the tile mentions the cache.
    """
    run = run_of(stream=stream_of(0.1 * CAPACITY))
    hot = replace(run.tests[0], telemetry=(DriveTelemetry(drive="a", throttled_s=60.0),))
    first, second, *_ = headlines(replace(run, tests=(hot, *run.tests[1:])))
    assert (first.label, second.label) == ("Cache, 4 KiB random write", LABELS[0])
