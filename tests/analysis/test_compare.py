"""Comparisons: ratios to the first run, differences within noise, and conditions that differ between runs."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from tests.analysis.made_up import FOUR_KIB_WRITES, made_up_run, made_up_section
from tests.builders import at, run_info, simulate, work
from tests.charts import rows_of
from tkperf.analysis.comparing.compared_rows import Change, ComparedRow, Entry, Span
from tkperf.analysis.comparing.comparison import Comparison, compare
from tkperf.analysis.results import CellResult, RunResult, SectionResult
from tkperf.cli.main import cli
from tkperf.model.errors import RunFileError, UsageError
from tkperf.model.quantity import IOPS
from tkperf.model.record import PurgeRecord, RunStatus
from tkperf.model.workload import Access, Workload
from tkperf.page.comparison.build_page import build_comparison_page, build_tkperf_plots
from tkperf.page.comparison.conclusions import find_conclusions
from tkperf.page.comparison.ratio_texts import describe_ratio, format_ratio, mark_certainty
from tkperf.page.words.conditions import ConditionGroup, find_conditions
from tkperf.procedures import HDD_TESTS, load_profile
from tkperf.render.export_tables import build_comparison_table, render_csv
from tkperf.render.html import render_view
from tkperf.render.terminal.comparison_text import MOST_LINES, MOST_LINES_BESIDE_FILES
from tkperf.render.terminal.page_text import print_page


def conditions_of(comparison: Comparison) -> tuple[ConditionGroup, ...]:
    return find_conditions(comparison.names, comparison.results)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def slow(folder: Path) -> RunResult:
    (folder / "slow").mkdir()
    return simulate(folder / "slow", run_info(name="slow"))


@pytest.fixture(scope="module")
def fast(folder: Path) -> RunResult:
    (folder / "fast").mkdir()
    info = run_info(name="fast", fio_version="fio-3.36")
    profile = replace(load_profile("quick"), name="tkperf-2.2")
    return simulate(folder / "fast", info, "nvme-4kn", profile)


def texts(comparison: Comparison) -> tuple[str, ...]:
    """Return the texts of all groups of conditions."""
    return tuple(text for group in conditions_of(comparison) for text in group.texts)


def row_of(rows: tuple[ComparedRow, ...], test: str) -> ComparedRow:
    return next(row for row in rows if row.test == test)


def test_a_run_beside_itself_is_all_noise(slow: RunResult) -> None:
    """A run that is compared with itself has the ratio 1 in every cell. Each difference whose spread is known is within
    noise, and no condition differs.
    """
    twice = compare([slow, slow])
    assert twice.names == ("slow (1)", "slow (2)")
    for row in twice.rows:
        assert row.entries[1].ratio in (None, 1.0)
        assert row.entries[1].within_noise in (None, True)
    assert not [warning for warning in texts(twice) if "differs" in warning]


def test_each_value_is_the_results_own(slow: RunResult, fast: RunResult) -> None:
    """Each value of a comparison is the mean over the window of the result. Its spread is the spread of the rounds, and
    the ratio is the quotient of the two means.
    """
    both = compare([slow, fast])
    row = row_of(both.rows, "iops")
    sections = [result.tests[0].sections[0] for result in (slow, fast)]
    for entry, section in zip(row.entries, sections, strict=True):
        cell = section.cell(row.workload)
        assert isinstance(cell, CellResult)
        assert entry.value == cell.value(IOPS)
        seen = [
            value
            for one in section.rounds
            if one.number in section.window
            for each in one.cells
            if each.workload == row.workload and (value := each.value(IOPS)) is not None
        ]
        assert (entry.low, entry.high) == (min(seen), max(seen))
    first, second = row.entries
    assert second.value is not None
    assert first.value is not None
    assert second.ratio == pytest.approx(second.value / first.value)
    assert second.within_noise is False


def test_different_conditions_are_named(slow: RunResult, fast: RunResult) -> None:
    """A comparison names a profile and a fio version that differ, together with both values. It does not mention
    conditions that are equal.
    """
    warnings = texts(compare([slow, fast]))
    assert any(each.startswith("profile differs (slow: quick, fast: tkperf") for each in warnings)
    assert any(each.startswith("fio is not known of every run (slow: not known, fast") for each in warnings)
    assert not any(each.startswith("suite differs") for each in warnings)


def test_a_run_that_is_not_steady_or_not_complete_is_named(slow: RunResult) -> None:
    """If a run is not steady, it is still compared. The comparison names the section that did not reach steady
    state.
    """
    test = slow.tests[0]
    broken = replace(slow, tests=(replace(test, sections=(replace(test.sections[0], steady=False),)),))
    assert any("IOPS did not reach steady state" in each for each in texts(compare([slow, broken])))


def test_what_cannot_be_compared_is_refused(slow: RunResult) -> None:
    """A comparison of a single run is refused. A comparison is also refused if it would compare areas of a disk with
    steady states, or if the runs share no results.
    """
    with pytest.raises(UsageError, match="at least two runs"):
        compare([slow])
    areas = replace(slow, info=replace(slow.info, suite="hdd"))
    with pytest.raises(UsageError, match="tkperf cannot compare them"):
        compare([slow, areas])
    with pytest.raises(UsageError, match=r"no test was measured in all of them$"):
        compare([slow, replace(slow, tests=())])
    deeper = made_up_run("d", {"iops": [made_up_section("IOPS", {work(65, 512): (1.0,)})]})
    with pytest.raises(UsageError, match=r"no load of iops was measured in all of them$"):
        compare([made_up_run("a", {"iops": [made_up_section("IOPS", {work(0, 4096): (1.0,)})]}), deeper])
    of_fio = made_up_run("f", {"fio": [made_up_section("fio", {work(0, 4096): (1.0,)})]})
    with pytest.raises(UsageError, match="files of fio can be compared only with each other, not"):
        compare([slow, of_fio])


def compare_values(test: str, first: Sequence[float | None], second: Sequence[float | None], **section: Any) -> Entry:
    """Return the entry of the second run in a comparison of these rounds."""
    runs = [
        made_up_run(name, {test: [made_up_section("S", {FOUR_KIB_WRITES: values}, **section)]})
        for name, values in (("a", first), ("b", second))
    ]
    return compare(runs).rows[0].entries[1]


@pytest.mark.parametrize(
    ("test", "first", "second", "change"),
    [
        # For these quantities, a higher value is better.
        ("iops", (100, 110), (120, 130), Change.BETTER),
        ("iops", (120, 130), (100, 110), Change.WORSE),
        ("tp", (100, 110), (120, 130), Change.BETTER),
        # For these quantities, a lower value is better.
        ("lat", (100, 110), (120, 130), Change.WORSE),
        ("lat", (120, 130), (100, 110), Change.BETTER),
        # These ranges overlap at one end, or one range contains the other.
        ("iops", (100, 110), (110, 130), Change.WITHIN_NOISE),
        ("iops", (110, 130), (100, 110), Change.WITHIN_NOISE),
        ("lat", (100, 110), (109, 130), Change.WITHIN_NOISE),
        ("lat", (109, 130), (100, 110), Change.WITHIN_NOISE),
        ("iops", (100, 200), (120, 130), Change.WITHIN_NOISE),
        ("iops", (120, 130), (100, 200), Change.WITHIN_NOISE),
        # A single round cannot form a range.
        ("iops", (100,), (120, 130), Change.INCONCLUSIVE),
        ("iops", (100, 110), (120,), Change.INCONCLUSIVE),
        # These values cannot form a ratio.
        ("iops", (0, 0), (120, 130), Change.NOT_COMPARABLE),
        ("iops", (None, None), (120, 130), Change.NOT_COMPARABLE),
        ("iops", (120, 130), (None, None), Change.NOT_COMPARABLE),
    ],
)
def test_noise_is_where_ranges_overlap(
    test: str, first: Sequence[float], second: Sequence[float], change: Change
) -> None:
    """Two values differ within noise if their ranges overlap. The expected changes were calculated by hand, both for
    quantities of which a higher value is better and for quantities of which a lower value is better.
    """
    entry = compare_values(test, first, second)
    assert entry.change is change
    assert entry.within_noise is {Change.BETTER: False, Change.WORSE: False, Change.WITHIN_NOISE: True}.get(change)
    assert (entry.ratio is None) == (change is Change.NOT_COMPARABLE)


@pytest.mark.parametrize(
    ("section", "span"),
    [
        ({"areas": True, "steady": None}, Span.AREAS),
        ({"stream": True, "steady": False, "window": False}, Span.STREAM),
        ({"stream": True, "steady": None, "window": False}, Span.STREAM),
        ({"stream": True, "steady": False}, Span.UNSTEADY),
        ({"steady": False}, Span.UNSTEADY),
        ({"steady": None}, Span.UNSTEADY),
    ],
)
def test_only_a_steady_window_knows_noise(section: dict[str, Any], span: Span) -> None:
    """Ranges that overlap mean "within noise" only in a steady window. Overlapping ranges are inconclusive for the
    areas of a disk, for a stream from fresh to saturated, and for rounds that are not steady.

    Ranges that do not overlap always show a difference.
    """
    test = "writesat" if "stream" in section else "iops"
    entry = compare_values(test, (100, 200, 300), (50, 100, 140), **section)
    assert (entry.low, entry.high, entry.span) == (50, 140, span)
    assert entry.within_noise is None
    assert entry.change is Change.INCONCLUSIVE
    steady = compare_values(test, (100, 200, 300), (50, 100, 140), stream="stream" in section)
    assert (steady.span, steady.change) == (Span.WINDOW, Change.WITHIN_NOISE)
    apart = compare_values(test, (100, 200, 300), (820, 900, 950), **section)
    assert (apart.span, apart.change, apart.within_noise) == (span, Change.BETTER, False)


def made_up_pair() -> tuple[RunResult, RunResult]:
    """Return two runs whose comparison contains each kind of change. Each kind occurs a different number of times."""
    values: dict[str, tuple[tuple[float | None, ...], ...]] = {
        "first": ((10, 11), (10, 11), (10, 11), (10, 11), (10, 11), (10, 11), (0, 0)),
        "second": ((20, 21), (20, 21), (20, 21), (5, 6), (5, 6), (10, 12), (20, 21)),
    }
    first, second = (
        made_up_run(
            name,
            {
                "iops": [made_up_section("IOPS", {work(10 * at, 4096): each for at, each in enumerate(of_run)})],
                "tp": [made_up_section("Throughput 4k", {FOUR_KIB_WRITES: of_run[0]}, steady=name == "first")],
                "lat": [made_up_section("Latency", {FOUR_KIB_WRITES: of_run[0]}, steady=None)],
            },
            notices=(f"SIMULATED {name}",),
        )
        for name, of_run in values.items()
    )
    return first, second


def test_each_change_is_counted() -> None:
    """A comparison counts each figure as better, worse, within noise or not comparable. The tables mark each figure
    accordingly.
    """
    both = compare(made_up_pair())
    counted = "Of 11 figures of second: 4 better, 5 worse, 1 within noise, 1 not comparable."
    assert counted in tuple(find_conclusions(both))
    view = build_comparison_page(both)
    (section,) = view.tests[0].sections
    # The row with the largest difference comes first.
    assert [row[4:6] for row in section.tables[0].rows] == [
        ("20.5", "×1.952"),
        ("20.5", "×1.952"),
        ("20.5", "×1.952"),
        ("5.50", "×0.524"),
        ("5.50", "×0.524"),
        ("11.00", "(×1.048)"),
        ("20.5", ""),
    ]
    assert view.tests[1].sections[0].tables[0].rows[0][4:6] == ("20.5", "×1.952")


def test_every_runs_notices_are_banners() -> None:
    """The notices of all runs appear as banners on the page and on its charts. A notice that several runs share appears
    once. If only some runs have a notice, the banner names these runs.
    """
    first, second = made_up_pair()
    view = build_comparison_page(compare([first, second, first]))
    assert view.banners == ("SIMULATED first (first (1), first (3))", "SIMULATED second (second)")
    page = render_view(view)
    for banner in view.banners:
        assert f"<li>{banner}</li>" in page


PROFILE: dict[str, object] = {
    "steady_state": {"source": "x", "window_rounds": 5},
    "preconditioning": {"passes": 2.0},
    "iops": {"source": "x", "step_s": 60, "block_sizes_kib": (4, 0.5)},
    "write_saturation": {"slice_s": 60, "max_slices": 360},
}


def made_up_warnings(first: dict[str, Any], second: dict[str, Any], tests: dict[str, list[SectionResult]]) -> list[str]:
    """Return the texts about the conditions of two runs of the same tests."""
    runs = [made_up_run("a", tests, **first), made_up_run("b", tests, **second)]
    return list(texts(compare(runs)))


def iops_section(**changes: Any) -> SectionResult:
    return replace(made_up_section("IOPS", {FOUR_KIB_WRITES: (10.0, 11.0)}), **changes)


def test_profiles_of_one_name_with_other_numbers_are_named() -> None:
    """Two profiles with the same name are compared number by number. A difference is named if a common test uses the
    number, and ignored if only other tests use it.
    """
    tests = {"iops": [iops_section()]}
    same = {
        **PROFILE,
        "preconditioning": {"passes": 2},
        "iops": {"source": "y", "step_s": 60.0, "block_sizes_kib": [4, 0.5]},
        "write_saturation": {"slice_s": 1, "max_slices": 30},
    }
    assert made_up_warnings({"profile": PROFILE}, {"profile": same}, tests) == []
    short = {**PROFILE, "iops": {"step_s": 1, "block_sizes_kib": [4]}}
    assert made_up_warnings({"profile": PROFILE}, {"profile": short}, tests) == [
        "numbers of the profiles differ: iops.step_s (a: 60, b: 1), iops.block_sizes_kib (a: 4/0.5, b: 4)"
    ]
    longer = {**PROFILE, "steady_state": {"window_rounds": 7}, "preconditioning": {"passes": 1}}
    assert made_up_warnings({"profile": PROFILE}, {"profile": longer}, tests) == [
        "numbers of the profiles differ: steady_state.window_rounds (a: 5, b: 7), preconditioning.passes (a: 2, b: 1)"
    ]
    many: dict[str, object] = {"iops": {f"number_{at}": at for at in range(9)}}
    (said,) = made_up_warnings({"profile": many}, {"profile": {}}, tests)
    assert "iops.number_4 (a: 4, b: not known) and 4 more numbers" in said
    assert "number_5" not in said


def test_hard_disks_are_compared_by_their_own_table() -> None:
    """Runs of hard disks differ if the numbers in the hard disk tables of their profiles differ. Numbers for tests that
    did not run do not count.
    """
    tests = {"iops": [iops_section(areas=2, steady=None)]}
    table = {"areas": 128, "step_s": 10, "throughput_block_sizes_kib": [1024]}
    short = {"areas": 128, "step_s": 1, "throughput_block_sizes_kib": [4]}
    first = {"suite": "hdd", "profile": {"hard_disk": table, "iops": {"step_s": 60}}}
    second = {"suite": "hdd", "profile": {"hard_disk": short, "iops": {"step_s": 1}}}
    assert made_up_warnings(first, second, tests) == ["numbers of the profiles differ: hard_disk.step_s (a: 10, b: 1)"]


def test_other_purges_and_fills_are_named() -> None:
    """Differences in purge and fill are named for each section. Sections with the same difference share a sentence. The
    amount of the fill is stated as a multiple of the active range.
    """
    fills: dict[str, Any] = {"filled_bytes": 2 << 30}
    purge = PurgeRecord(section="", started_s=0, duration_s=1, method="nvme-format")
    names = ("Throughput 1024k", "Throughput 128k")
    cells = {FOUR_KIB_WRITES: (10.0,)}
    first = [replace(made_up_section(name, cells), purge=purge, **fills) for name in names]
    second = [replace(section, purge=None) for section in first]
    third = [replace(section, filled_bytes=1 << 30) for section in first]

    def warnings(one: list[SectionResult], other: list[SectionResult]) -> tuple[str, ...]:
        return texts(compare([made_up_run("a", {"tp": one}), made_up_run("b", {"tp": other})]))

    assert warnings(first, first) == ()
    assert warnings(first, second) == ("purge differs (a: nvme-format, b: none) in Throughput 1024k, Throughput 128k",)
    assert warnings(first, third) == (
        "preconditioning differs (a: 2.0 × the active range, b: 1.0 × the active range) in "
        "Throughput 1024k, Throughput 128k",
    )
    alone = Workload(access=Access.SEQUENTIAL, read_percent=0, block_size_bytes=131072, jobs=1, io_depth=1)
    shallow, deep = (
        [replace(each, fill_workload=replace(alone, io_depth=depth)) for each in first] for depth in (1, 32)
    )
    assert warnings(shallow, deep) == (
        "preconditioning differs (a: 2.0 × the active range, SEQ 128k R/W 0/100 TC1/QD1, "
        "b: 2.0 × the active range, SEQ 128k R/W 0/100 TC1/QD32) in Throughput 1024k, Throughput 128k",
    )


def test_what_only_some_runs_have_is_named() -> None:
    """A comparison names tests, sections and cells that only some runs have. If there are many such cells, only a few
    are listed.
    """
    few = {FOUR_KIB_WRITES: (10.0,)}
    many = {work(mix, 4096): (10.0,) for mix in range(8)}
    stream = made_up_section("Write Saturation", few, stream=True)
    runs = [
        made_up_run("a", {"iops": [made_up_section("IOPS", few)], "writesat": [stream]}),
        made_up_run("b", {"iops": [made_up_section("IOPS", few), made_up_section("X", few)]}),
        made_up_run("c", {"iops": [made_up_section("IOPS", many)], "writesat": [stream]}),
    ]
    assert texts(compare(runs)) == (
        "only in a, c: test Write Saturation",
        "only in b: X",
        "only in c: "
        + ", ".join(f"IOPS {work(mix, 4096).mix_and_size}" for mix in range(1, 6))
        + " and 2 more results",
    )


def test_what_a_run_says_of_itself_is_said_beside_others() -> None:
    """A comparison lists the notices, the status and the warnings of a run together with the name of the run. A value
    that the host limited is marked.
    """
    facts: dict[str, Any] = {
        "notices": ("FILE TARGET",),
        "status": RunStatus.INTERRUPTED,
        "warnings": [f"warning {number}" for number in range(7)],
    }
    section = made_up_section("IOPS", {FOUR_KIB_WRITES: (10.0, 11.0)})
    slowed = made_up_section("IOPS", {FOUR_KIB_WRITES: (10.0, 11.0)}, host_limited=True)
    plain = made_up_run("a", {"iops": [section]})
    limited = made_up_run("b", {"iops": [slowed]}, **facts)
    both = compare([plain, limited])
    assert texts(both) == (
        "b: FILE TARGET",
        "b: the run is interrupted",
        *(f"b: warning {number}" for number in range(5)),
        "b: and 2 more warnings in its own report",
        "b: 1 of 1 result limited by the host's CPUs",
    )
    (table,) = build_comparison_page(both).tests[0].sections[0].tables
    assert table.rows[0][3:] == ("10.50", "10.50*", "(×1.000)", "within\u00a0noise")
    assert table.notes[-1] == "* limited by the host's CPUs"
    file = io.StringIO()
    print_page(build_comparison_page(both), Console(file=file, width=200))
    assert "10.50*   (×1.000)   within\u00a0noise" in file.getvalue()
    assert "* limited by the host's CPUs" in file.getvalue()
    assert "*" not in "".join(build_comparison_page(compare([plain, plain])).tests[0].sections[0].tables[0].rows[0])


def test_a_section_says_what_each_run_did() -> None:
    """A section that is steady in every run has one common summary. Otherwise the summary states the result of each
    run.
    """
    view = build_comparison_page(compare(made_up_pair()))
    assert [(each.state, each.summary) for test in view.tests for each in test.sections] == [
        ("reached", "in every run"),
        ("NOT reached", "first: reached (made up of 2); second: not reached (made up of 2)"),
        ("not judged", "first, second: not judged (made up of 2)"),
    ]


def test_the_report_counts_what_the_comparison_says(slow: RunResult, fast: RunResult) -> None:
    """The tables of values contain each entry of the comparison, and the tables of ratios contain each ratio."""
    both = compare([slow, fast])
    view = build_comparison_page(both)
    sections = [section for test in view.tests for section in test.sections]
    tables = [table for section in sections for table in section.tables]
    listed = [row for table in tables if table.columns[-3:] == ("fast", "Ratio", "Change") for row in table.rows]
    assert len(listed) == len(both.rows)
    told = {text.replace("\u00a0", " ") for row in listed for text in row}
    for row in both.rows:
        assert describe_ratio(row.entries[1]) in told
    (matrix,) = [table for table in tables if table.title.startswith("IOPS: fast / slow")]
    by_load = {
        (row.workload.read_percent, row.workload.block_size_bytes): row.entries[1]
        for row in both.rows
        if (row.test, row.quantity) == ("iops", IOPS)
    }
    column, line = matrix.columns.index("0/100"), next(row for row in matrix.rows if row[0] == "4")
    writes = by_load[0, 4096]
    assert writes.ratio is not None
    assert line[column] == mark_certainty(writes, format_ratio(writes.ratio))


def test_tkperfs_four_plots(slow: RunResult, fast: RunResult) -> None:
    """The charts for tkperf-cmp have the same names and cells as the plots of tkperf-cmp. Each drawn value equals the
    value in the results.
    """
    both = compare([slow, fast])
    charts = {chart.key: chart for chart in build_tkperf_plots(both)}
    cells = [at(result.tests[0].sections[0], 0, 4096) for result in (slow, fast)]
    writes = [bar["value"] for bar in rows_of(charts["compIOPSPlt"]) if bar["x"] == "0/100 4k"]
    assert writes == [cell.value(IOPS) for cell in cells if cell is not None]
    assert {bar["x"] for bar in rows_of(charts["compLATPlt"])} == {f"{mix} 4k" for mix in ("100/0", "65/35", "0/100")}
    assert len(rows_of(charts["compTPPlt"])) == 8  # the chart has bars for two block sizes, two directions and two runs
    slices = [result.tests[3].sections[0].slices for result in (slow, fast)]
    assert [point["value"] for point in rows_of(charts["compWriteSatIOPSPlt"])] == [
        each.values.value(IOPS) for run in slices for each in run
    ]


def test_streams_are_compared_over_drive_fills_and_by_their_tails(slow: RunResult, fast: RunResult) -> None:
    """Streams are compared over drive fills. The position of each slice is the written amount divided by the range. The
    exceedance curve falls and begins below 1 %.
    """
    view = build_comparison_page(compare([slow, fast]))
    charts = {each.key: each for test in view.tests for chart in test.charts for each in chart.views}
    last = slow.tests[3].sections[0].slices[-1]
    points = [point for point in rows_of(charts["writesat0-over_fills"]) if point["series"] == "slow"]
    assert points[-1]["x"] == (last.total_written_bytes or 0) / (slow.info.active_range_length_bytes or 0)
    for run in ("slow", "fast"):
        beyond = [row["value"] for row in rows_of(charts["writesat0-exceedance"]) if row["series"] == run]
        assert beyond == sorted(beyond, reverse=True)
        assert 0 < beyond[-1] < 1


def test_hard_disks_are_compared_over_their_areas(tmp_path: Path) -> None:
    """A comparison of hard disks draws one point for each area and cell. The position of the point is the position of
    the area as a share of the disk.
    """
    results = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        info = run_info(name=name, suite="hdd")
        results.append(simulate(tmp_path / name, info, suite=HDD_TESTS))
    view = build_comparison_page(compare(results))
    charts = {chart.key: chart for test in view.tests for chart in test.charts}
    points = [point for view in charts["iopsareas0"].views for point in rows_of(view)]
    assert len(points) == 2 * 8 * 9
    assert sorted({point["x"] for point in points}) == [6.25 + 12.5 * area for area in range(8)]
    values = [
        cell.value(IOPS) for result in results for area in result.tests[0].sections[0].rounds for cell in area.cells
    ]
    assert sorted(point["value"] for point in points) == sorted(filter(None, values))


def test_names_from_outside_are_text_in_the_terminal() -> None:
    """Markup, escape sequences and direction characters in a run file have no effect in the terminal."""
    hostile = "[/b][red]x\x1b[2J\x07\u202e:bomb:\\"
    section = iops_section(name=hostile)
    runs = [
        made_up_run(hostile, {"iops": [section]}, fio_version=hostile, notices=(hostile,)),
        made_up_run("b", {"iops": [section]}, warnings=[hostile]),
    ]
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, emoji=False, width=300)
    print_page(build_comparison_page(compare(runs)), console)
    said = file.getvalue()
    for inert in ("b: [/b][red]x[2J:bomb:\\", "fio is not known of every run ([/b][red]x[2J:bomb:\\: [/b]"):
        assert inert in said
    assert not {"\x07", "\u202e"} & set(said)
    assert "\x1b[2J" not in said


def test_the_csv_has_every_value_with_its_run() -> None:
    """The CSV file of a comparison has a row for each value of each run. A text that a spreadsheet would execute as a
    formula is escaped.
    """
    hostile = '=HYPERLINK("x")'
    section = iops_section(name="+S")
    runs = [
        made_up_run(hostile, {"iops": [section]}, device={"kind": "@file"}),
        made_up_run("b", {"iops": [iops_section(name="+S")]}, device={"kind": "block device"}),
    ]
    table = build_comparison_table(compare(runs))
    first, second = csv.DictReader(io.StringIO("".join(render_csv(table))))
    assert tuple(first)[:4] == ("run", "target", "test", "section")
    assert (first["run"], first["target"], first["section"]) == (f"'{hostile}", "'@file", "'+S")
    assert [value for value in second.values() if value] == [
        "b",
        "block device",
        "iops",
        "'+S",
        "random",
        "0",
        "4096",
        "1",
        "1",
        "IOPS",
        "IOPS",
        "10.5",
        "10.0",
        "11.0",
        "the steady-state window",
        "1.0",
        "1",
        "within noise",
        "0",
    ]
    assert (first["ratio_to_first"], first["within_noise"], first["change"]) == ("", "", "")


def test_the_command(slow: RunResult, fast: RunResult, folder: Path, tmp_path: Path) -> None:
    """The command ``tkperf compare`` writes a table, a CSV file and a page. A missing run file causes one clear
    error.
    """
    files = [str(folder / name / "run.tkperf") for name in ("slow", "fast")]
    table, page = tmp_path / "c.csv", tmp_path / "c.html"
    ran = CliRunner().invoke(cli, ["compare", *files, "--csv", str(table), "--html", str(page)])
    assert ran.exit_code == 0, ran.output
    with table.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    both = compare([slow, fast])
    assert len(rows) == 2 * len(both.rows)
    assert float(rows[1]["ratio_to_first"]) == both.rows[0].entries[1].ratio
    assert "</span> fast is better at " in page.read_text(encoding="utf-8")
    assert len(ran.output.splitlines()) <= 2 + MOST_LINES_BESIDE_FILES
    short, full = (CliRunner().invoke(cli, ["compare", *files, *option]).output for option in ([], ["--full"]))
    assert len(short.splitlines()) <= MOST_LINES < len(full.splitlines())
    assert [text for text in (short, full) if "Headline figures" in text] == [full]
    missing = CliRunner().invoke(cli, ["compare", files[0], str(tmp_path / "none.tkperf")])
    assert "there is no run file" in str(missing.exception)


def test_a_folder_with_everything(slow: RunResult, fast: RunResult, folder: Path, tmp_path: Path) -> None:
    """The option ``-f`` writes every format into a folder, and ``-z`` packs the files. The option ``-z`` without ``-f``
    is refused.
    """
    files = [str(folder / name / "run.tkperf") for name in ("slow", "fast")]
    ran = CliRunner().invoke(cli, ["compare", *files, "-f", str(tmp_path / "out"), "-z"])
    assert ran.exit_code == 0, ran.exception
    with zipfile.ZipFile(tmp_path / "out/comparison.zip") as archive:
        assert sorted(archive.namelist()) == [
            "compIOPSPlt.png",
            "compLATPlt.png",
            "compTPPlt.png",
            "compWriteSatIOPSPlt.png",
            "comparison.csv",
            "comparison.html",
            "comparison.json",
            "comparison.md",
            "comparison.pdf",
        ]
        assert archive.read("compIOPSPlt.png").startswith(b"\x89PNG")
        assert archive.read("comparison.pdf").startswith(b"%PDF")
    alone = CliRunner().invoke(cli, ["compare", *files, "-z"])
    assert isinstance(alone.exception, UsageError)


def test_the_demand_that_differs_is_that_of_the_tests_in_common() -> None:
    """A comparison uses the demands at which each common test really ran, even if the profiles state other demands."""

    def run_at(name: str, jobs: int) -> RunResult:
        made = made_up_run(name, {"iops": [iops_section()], "lat": [iops_section(name="Latency")]})
        iops, lat = made.tests
        tests = (replace(iops, demands=((4, 32),)), replace(lat, demands=((jobs, 1),)))
        return replace(made, tests=tests)

    demand = "demand (thread count, queue depth) differs (a: TC1/QD1, b: TC2/QD1) in Latency"
    assert demand in texts(compare([run_at("a", 1), run_at("b", 2)]))
    same = texts(compare([run_at("a", 1), run_at("b", 1)]))
    assert not any("demand" in each for each in same)


def test_all_files_that_cannot_be_read_are_named_at_once(tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.tkperf" for name in "ab"]
    for path in files:
        path.write_text("no run file")
    ran = CliRunner().invoke(cli, ["compare", *map(str, files)])
    assert isinstance(ran.exception, RunFileError)
    first, second = str(ran.exception), "".join(ran.exception.__notes__)
    assert ("a.tkperf" in first, "b.tkperf" in second) == (True, True)
