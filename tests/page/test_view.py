"""The report as data. Every figure, point and bar equals the value in the run file."""

from __future__ import annotations

import base64
import itertools
import os
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

import tkperf
from tests.analysis.made_up import FOUR_KIB_WRITES, made_up_run, made_up_section
from tests.builders import at, number_of, run_info, simulate, view_of
from tests.charts import distribution_of, rows_of
from tkperf.analysis.results import RunResult, SectionResult
from tkperf.model.quantity import IOPS, IOS, LATENCY_MAX, LATENCY_MEAN, PERCENTILES, THROUGHPUT, percentile
from tkperf.model.run_info import IMPORTED
from tkperf.model.steady_state import Fit, judge
from tkperf.model.units import KIB, format_block_size_kib, format_mix, format_number
from tkperf.page.chart import Bars3D, Distribution, GridMap, HeatMap
from tkperf.page.facts import shorten
from tkperf.page.naming import capitalise
from tkperf.page.page import CellView, ChartView, ReportView, SectionView, TableView
from tkperf.page.sections import describe_fit
from tkperf.page.tables.verdict_tables import build_section_tables, merge_sections
from tkperf.page.view import build_view
from tkperf.procedures import HDD_TESTS, SSD_TESTS, load_profile
from tkperf.procedures.latency import LatencyTable
from tkperf.render.charts.axes import log_axis
from tkperf.render.charts.draw import draw

GOLDEN = Path(__file__).parents[1] / "golden/report.txt"

TAILS = tuple(percentile(percent) for percent in (50, 99, 99.9, 99.99, 99.999))
P99 = percentile(99)
TABLES = {capitalise(quantity.title): quantity for quantity in (IOPS, THROUGHPUT, LATENCY_MEAN, LATENCY_MAX, *TAILS)}


@pytest.mark.parametrize(
    ("fit", "text"),
    [
        (Fit(slope=-12.154, intercept=47_625.52, correlation=None), "-12.15 × round + 47,625.5"),
        (Fit(slope=11_104.2, intercept=-3954.54, correlation=None), "11,104 × round - 3,954.54"),
        (Fit(slope=-0.00077, intercept=2_345_678.9, correlation=None), "-0.00077 × round + 2,345,679"),
    ],
)
def test_a_line_is_told_in_plain_figures(fit: Fit, text: str) -> None:
    """A fitted line is described with plain numbers, without powers of ten and without two consecutive signs."""
    assert describe_fit(fit) == text


@pytest.fixture(scope="module")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    simulate(folder, run_info(profile=load_profile("quick").as_plain_data()))
    return folder / "run.tkperf"


@pytest.fixture(scope="module")
def view(run_file: Path) -> ReportView:
    return view_of(run_file)


@pytest.fixture(scope="module")
def result(run_file: Path) -> RunResult:
    return tkperf.load(run_file)


def sections(view: ReportView, result: RunResult) -> list[tuple[SectionView, SectionResult]]:
    shown = [section for test in view.tests for section in test.sections]
    measured = [section for test in result.tests for section in test.sections]
    return list(zip(shown, measured, strict=True))


def chart(view: ReportView, key: str) -> ChartView:
    charts = [
        each
        for test in view.tests
        for part in (test.charts, test.events.charts, *(section.charts for section in test.sections))
        for shown in part
        for each in shown.views
    ]
    return next(each for each in charts if each.key == key)


def rows_in(view: ReportView, key: str) -> list[dict[str, Any]]:
    return rows_of(chart(view, key))


def unpack(text: str) -> NDArray[Any]:
    """Return numbers that are unpacked in the same manner as in the script of the page."""
    head, _, packed = text.rpartition(":")
    plain = zlib.decompress(base64.b64decode(packed))
    kind, *numbers = head.split(",")
    if not kind:
        return np.frombuffer(plain, dtype="<f8")
    if kind == "f":
        return np.frombuffer(plain, dtype="<f4")
    words = np.frombuffer(np.frombuffer(plain, dtype=np.uint8).reshape(4, -1).T.tobytes(), dtype="<u4")
    if kind == "s":
        return words.view("<f4")
    stride, divisor = map(int, numbers)
    steps = (words >> 1).astype(np.int64) ^ -(words & 1).astype(np.int64)
    rows = np.concatenate([steps, np.zeros(-len(steps) % stride, dtype=np.int64)]).reshape(-1, stride)
    return rows.cumsum(axis=0).ravel()[: len(steps)] / divisor


def test_every_cell_of_every_table_is_the_results(view: ReportView, result: RunResult) -> None:
    """Every cell of every table equals the result for its block size and mix."""
    checked = 0
    for shown, measured in sections(view, result):
        for table in shown.tables:
            if not measured.slices and not table.folded:
                checked += check_matrix(table, measured)
    # The block sizes of the throughput test share one table.
    (shared,) = view.tests[2].tables
    together = merge_sections(result.tests[2])
    assert together is not None
    checked += check_matrix(shared, together)
    assert checked == 12 + 9 * 6 + 2 * 2 - missing_percentiles(result)


def missing_percentiles(result: RunResult) -> int:
    """Return the number of values that the tables of percentiles omit because no cell had enough I/Os."""
    latency = result.tests[1].sections[0]
    shown = [tail for tail in TAILS if any(cell.value(tail) for cell in latency.cells)]
    return 9 * (4 - len(shown))


def check_matrix(table: TableView, section: SectionResult) -> int:
    name = table.title.split(" by ")[0]
    quantity, length_us = TABLES[name.replace("(ms)", "(µs)")], 1000 if "(ms)" in name else 1
    count = 0
    for row in table.rows:
        for mix, text in zip(table.columns[1:], row[1:], strict=True):
            cell = at(section, int(mix.split("/")[0]), round(float(row[0]) * KIB))
            known = cell.value(quantity)
            assert text.rstrip("*") == format_number(None if known is None else known / length_us)
            count += 1
    return count


def test_a_stream_shows_its_first_and_last_slice(view: ReportView, result: RunResult) -> None:
    """The table of a stream shows its first and its last slice with rates, mean, percentiles and maximum."""
    for shown, measured in sections(view, result):
        if measured.slices:
            (table,) = shown.tables
            lines = [measured.slices[0].values, measured.slices[-1].values, measured.cells[0]]
            for row, cell in zip(table.rows, lines[-len(table.rows) :], strict=True):
                quantities = (IOPS, THROUGHPUT, LATENCY_MEAN, *PERCENTILES, LATENCY_MAX)
                lengths = (1000 if "(ms)" in name else 1 for name in table.columns[1:])
                values = [(cell.value(quantity), length) for quantity, length in zip(quantities, lengths, strict=True)]
                told = tuple(format_number(None if value is None else value / length) for value, length in values)
                assert row[1:] == told


def test_every_linked_cell_opens_what_was_measured(view: ReportView, run_file: Path) -> None:
    """Each link in a table opens a cell. The opened cell contains the recorded seconds, rounded to five digits, and the
    exact buckets of the histogram.
    """
    cells = {cell.key: cell for cell in view.cells}
    links = {
        link
        for test in view.tests
        for part in (test.tables, *(section.tables for section in test.sections))
        for table in part
        for row in table.links
        for link in row
        if link
    }
    assert {link.split("/")[0] for link in links} == set(cells)
    with tkperf.open_run(run_file) as opened:
        for test in opened.record().tests:
            seconds = opened.seconds(test)
            for number, section in enumerate(dict.fromkeys(step.section for step in test.steps)):
                of_cell: dict[str, list[int]] = {}
                for at, step in enumerate(test.steps):
                    if step.section == section and step.kind != "fill":
                        work = step.workload
                        key = f"{test.name}{number}-{work.read_percent}-{work.block_size_bytes}"
                        of_cell.setdefault(key, []).append(at)
                for key, steps in of_cell.items():
                    shown = cells[key]
                    for name in (shown.rate, "latency_mean_us", "latency_max_us"):
                        there = unpack(shown.seconds[name])
                        kept = np.concatenate([getattr(seconds[at], name) for at in steps])
                        np.testing.assert_allclose(there, kept, rtol=2e-5)
                    assert shown.job == test.steps[steps[0]].job_file


def test_a_cells_histogram_and_marks_are_the_windows(view: ReportView, result: RunResult) -> None:
    """The histogram of a cell contains all I/Os of its window. Its percentiles equal those in the table and are all
    marked.
    """
    cells = {cell.key: cell for cell in view.cells}
    (iops,) = result.tests[0].sections
    for cell in iops.cells:
        shown = cells[f"iops0-{cell.workload.read_percent}-{cell.workload.block_size_bytes}"]
        assert unpack(shown.buckets["count"]).sum() == cell.value(IOS)
        window = shown.scopes[0]
        assert window.key == shown.buckets_of
        facts = dict(window.facts)
        assert number_of(facts["IOPS"]) == pytest.approx(cell.value(IOPS), rel=0.02)
        assert number_of(facts["p99 latency (µs)"]) == pytest.approx(cell.value(P99), rel=0.02)
        marks = {mark.mark: mark.us for mark in window.marks}
        assert marks["99 %"] == cell.value(P99)
        assert marks["MRT"] == cell.value(LATENCY_MAX)
        assert len(shown.rounds.rows if shown.rounds else ()) == len(iops.rounds)


def test_a_streams_histogram_holds_all_its_ios(view: ReportView, result: RunResult) -> None:
    """The histogram of a stream contains all its I/Os. The chart, its cell and the results agree on every bucket."""
    (section,) = result.tests[3].sections
    buckets = distribution_of(chart(view, "writesat0rth")).buckets
    assert buckets == section.histogram_us
    shown = next(cell for cell in view.cells if cell.key.startswith("writesat0"))
    for name in ("lower", "upper", "count"):
        assert unpack(shown.buckets[name]).tolist() == [getattr(each, name) for each in buckets]
    assert buckets == distribution_of(chart(view, "writesat0exceedance")).buckets


def test_convergence_is_every_round(view: ReportView, result: RunResult) -> None:
    """The convergence chart contains the writes of each block size in every round."""
    (iops,) = result.tests[0].sections
    expected = {
        (each.number, format_block_size_kib(cell.workload.block_size_bytes), cell.value(IOPS))
        for each in iops.rounds
        for cell in each.cells
        if cell.workload.read_percent == 0
    }
    rows = rows_in(view, "iops0convergence")
    assert {(row["x"], row["series"], row["value"]) for row in rows} == expected
    assert len(rows) == len(expected)


def test_bars_are_as_high_as_their_values(view: ReportView, result: RunResult) -> None:
    """The heights of bars are proportional to their values. Bars in the foreground are drawn last."""
    (iops,) = result.tests[0].sections
    spec: Any = draw(chart(view, "iops03d").chart)
    faces = spec["datasets"]["faces"]
    bars: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in faces:
        bars.setdefault((row["column"], row["row"]), []).append(row)
    assert len(bars) == len(iops.cells)
    heights = {}
    for cell in iops.cells:
        work = cell.workload
        rows = bars[format_mix(work.read_percent), format_block_size_kib(work.block_size_bytes)]
        assert {row["value"] for row in rows} == {cell.value(IOPS)}
        left = [row["y"] for row in rows if row["face"].endswith("/left")]
        heights[work] = (left[3] - left[0]) / (cell.value(IOPS) or 1)
    assert max(heights.values()) == pytest.approx(min(heights.values()), rel=0.05)
    order = list(dict.fromkeys(row["face"].rsplit("/", 1)[0] for row in faces))
    places = [tuple(int(part) for part in place.split("/")) for place in order]
    for before, after in itertools.combinations(places, 2):
        assert not (before[0] <= after[0] and before[1] <= after[1])


def test_streams_over_time_amount_and_fills(view: ReportView, result: RunResult) -> None:
    """Each slice of a stream is drawn at three positions: at the middle of its time, at the amount that was written by
    its end, and at the corresponding number of drive fills.
    """
    (section,) = result.tests[3].sections
    slices = section.slices
    length_bytes = result.info.active_range_length_bytes or 0
    expected = {
        "time": [each.start_s + each.duration_s / 2 for each in slices],
        "tgbw": [(each.total_written_bytes or 0) / 1e9 for each in slices],
        "fills": [(each.total_written_bytes or 0) / length_bytes for each in slices],
    }
    for name, places in expected.items():
        rows = rows_in(view, f"writesat0{name}")
        assert [row["x"] for row in rows] == places
        assert [row["value"] for row in rows] == [each.values.value(IOPS) for each in slices]
    tail = [row["value"] for row in rows_in(view, "writesat0time4") if row["series"] == "p99"]
    assert tail == [each.values.value(P99) for each in slices]


def test_seconds_are_drawn_with_their_extremes(view: ReportView, run_file: Path) -> None:
    """The chart of a stream over time contains the highest latency of all seconds."""
    with tkperf.open_run(run_file) as opened:
        saturation = opened.record().tests[3]
        highest = max(seconds.latency_max_us.max() for seconds in opened.seconds(saturation))
    rows = rows_in(view, "writesat0seconds2")
    assert max(row["high"] for row in rows) == highest
    assert {row["series"] for row in rows} == {"mean of a second", "maximum of a second"}


def test_a_run_without_seconds_is_reported_all_the_same(run_file: Path, result: RunResult) -> None:
    """A run without recorded seconds, such as an imported run, has a report with all tables. The report has no cells
    that can be opened and no charts of seconds.
    """
    from tkperf.page.view import build_view

    view = build_view(result)
    assert list(view.cells) == []
    for test in view.tests:
        for section in test.sections:
            views = [each for chart in section.charts for each in chart.views]
            assert not any("seconds" in each.key for each in views)
            assert all(not any(row) for table in section.tables for row in table.links)


def test_hard_disks_open_their_areas(tmp_path: Path) -> None:
    """When a reader opens a cell of a hard disk, the dialog shows the values of all its areas."""
    simulate(tmp_path, run_info(suite="hdd"), suite=HDD_TESTS)
    view = view_of(tmp_path / "run.tkperf")
    assert len(list(view.cells)) == 9 + 2 * 2
    for cell in view.cells:
        assert isinstance(cell, CellView)
        assert cell.rounds is not None
        assert len(cell.rounds.rows) == 8


def test_the_header_says_which_fact_is_not_known() -> None:
    """If the capacity of the device is not known, as in an imported run, the header states this."""
    run = made_up_run("R", {"iops": [made_up_section("IOPS", {FOUR_KIB_WRITES: (100.0,) * 5})]})
    imported = replace(run, info=replace(run.info, device={"kind": IMPORTED}))
    assert build_view(imported).subtitle == "imported result, capacity not known"


def outline(view: ReportView) -> str:
    """Return the texts of the report and, for each chart, its title, its number of points, and its first and last
    point.
    """
    lines = [view.title, view.subtitle, *view.banners]
    lines += [f"{each.label}: {each.text} {each.sure}, {each.verdict} ({each.test})" for each in view.headlines]
    for found in view.findings:
        lines += [f"found in {found.title}", *(f"  {text}" for text, _ in found.sentences)]
    for test in view.tests:
        lines += ["", f"test {test.title}", test.procedure, *map(describe, test.charts)]
        for section in test.sections:
            lines.append(f"section {section.title}: {section.state}; {section.summary}")
            tables = (*section.tables, *((section.determination,) if section.determination else ()))
            for table in tables:
                lines += [f"table {table.title}", " | ".join(table.columns), *map(" | ".join, table.rows)]
            lines += map(describe, section.charts)
        lines += map(describe, test.events.charts)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def describe(chart: ChartView) -> str:
    """Return a description of each view of a chart. The description states which views are printed."""
    alone = [view.key for view in chart.on_paper]
    told = [
        f"  view {', '.join(view.choice)}{' (printed)' * (view.key in alone)}\n{describe_view(view)}"
        for view in chart.views
    ]
    return "\n".join((f"question {chart.question}", *told))


def describe_view(chart: ChartView) -> str:
    drawn = chart.chart
    if isinstance(drawn, Distribution):
        rows: list[dict[str, Any]] = [each._asdict() for each in drawn.buckets]
        rows += [each._asdict() for each in drawn.marks]
    elif isinstance(drawn, Bars3D):
        rows = [
            {"row": drawn.rows[back], "column": drawn.columns[right], "value": bar.y}
            for bar, (back, right) in zip(drawn.bars, drawn.places, strict=True)
        ]
    elif isinstance(drawn, HeatMap):
        rows = [{"from": each.begin, "to": each.end, "ios": sum(each.ios)} for each in drawn.slices]
    elif isinstance(drawn, GridMap):
        rows = [{"across": each.column, "up": each.row, "text": each.text} for each in drawn.squares]
        rows += [each._asdict() for each in drawn.edges]
    else:
        rows = [{name: value for name, value in row.items() if value not in (None, "")} for row in rows_of(drawn)]
        rows += [
            {"kind": each.kind, "name": each.name, "x": each.x or 0.0, "value": each.y or 0.0} for each in drawn.rules
        ]
        rows += [{"kind": each.kind, "from": each.begin, "to": each.end} for each in drawn.shades]
    told = f"{len(rows)}: {brief(rows[0])} ... {brief(rows[-1])}"
    return f"chart {chart.key}: {drawn.title}: {chart.text}\n  {told}"


def brief(row: dict[str, object]) -> str:
    """Return a point whose numbers have six digits. The last digits of exact numbers differ between machines."""
    return " ".join(
        f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value}" for name, value in row.items()
    )


def test_the_report_reads_as_before(view: ReportView) -> None:
    """The texts and chart data of a simulated run equal the stored text, word for word.

    After an intended change: TKPERF_UPDATE_GOLDEN=1 pytest tests/page/test_view.py
    """
    text = outline(view)
    if os.environ.get("TKPERF_UPDATE_GOLDEN"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_a_stream_without_a_window_counts_each_io_once(view: ReportView, result: RunResult) -> None:
    """In the mean of a stream without a window, each I/O has the same weight, although the slices have different rates.
    The table and the cell have the same mean.
    """
    (section,) = result.tests[3].sections
    assert not section.window
    (whole,) = section.cells
    ios = sum(each.values.value(IOS) or 0 for each in section.slices)
    total_us = sum((each.values.value(LATENCY_MEAN) or 0) * (each.values.value(IOS) or 0) for each in section.slices)
    assert whole.value(IOS) == ios
    assert whole.value(IOPS) == pytest.approx(ios / sum(each.duration_s for each in section.slices))
    assert whole.value(LATENCY_MEAN) == pytest.approx(total_us / ios)
    shown = next(cell for cell in view.cells if cell.key.startswith("writesat0"))
    mean = dict(shown.scopes[0].facts)["Mean latency (µs)"]
    assert number_of(mean) == pytest.approx(whole.value(LATENCY_MEAN), rel=0.02)


def test_a_first_round_that_was_cut_off_is_shown(result: RunResult) -> None:
    """A first round that was interrupted is shown in a table that states the interruption. No value is described as the
    mean of a window.
    """
    test = result.tests[0]
    (section,) = test.sections
    cut = replace(section.rounds[0], complete=False, cells=section.rounds[0].cells[:5])
    section = replace(section, rounds=(cut,), cells=(), window=(), verdict=None, verdicts=(), steady=None)
    result = replace(result, tests=(replace(test, sections=(section,)),))
    (shown,) = build_view(result).tests[0].sections
    (table,) = shown.tables
    assert table.title == "Round 1, cut off before its end: IOPS by block size and R/W mix"
    told = [text for row in table.rows for text in row[1:] if text != "-"]
    assert sorted(told) == sorted(format_number(cell.value(IOPS)) for cell in cut.cells)


def test_too_few_rounds_are_not_judged(result: RunResult) -> None:
    """If a section has too few rounds, its state is "not judged" with the reason, and no chart of a window is drawn."""
    test = result.tests[3]
    (section,) = test.sections
    verdict = judge([1], [100.0], tracking="RND 4k IOPS", unit="IOPS")
    section = replace(section, verdict=verdict, verdicts=(verdict,), steady=None)
    result = replace(result, tests=(replace(test, sections=(section,)),))
    view = build_view(result)
    (shown,) = view.tests[0].sections
    assert shown.state == "not judged"
    assert shown.summary.endswith("1 of the 5 rounds a window needs")
    assert not any(chart.key.endswith("window") for chart in shown.charts)


def test_the_set_up_is_what_was_done(tmp_path: Path) -> None:
    """The set-up on a page describes only the tests that ran, not other tests of the profile."""
    quick = load_profile("quick")
    latency = msgspec.structs.replace(quick.table(LatencyTable), jobs=3, io_depth=7)
    profile = quick.with_tables(latency)
    info = run_info()
    simulate(tmp_path, info, profile=profile, suite={"writesat": SSD_TESTS["writesat"]})
    facts = dict(pair for _, block in view_of(tmp_path / "run.tkperf").disclosure for pair in block)
    assert facts["Precondition 1"] == "none"
    assert facts["TC / QD"] == "TC 2 / QD 16"
    (tmp_path / "both").mkdir()
    both = {name: SSD_TESTS[name] for name in ("lat", "writesat")}
    simulate(tmp_path / "both", info, profile=profile, suite=both)
    view = view_of(tmp_path / "both/run.tkperf")
    blocks = {title: dict(block) for title, block in view.disclosure}
    of_tests = [blocks["Parameters: Latency"], blocks["Parameters: Write Saturation"]]
    filled = "2 × the active range, SEQ 128 KiB writes, TC 2 / QD 16"
    assert [facts["Precondition 1"] for facts in of_tests] == [filled, "none"]
    assert [facts["TC / QD"] for facts in of_tests] == ["TC 3 / QD 7", "TC 2 / QD 16"]
    headers = [dict(dict(test.header)["Set-up parameters"]) for test in view.tests]
    assert [header["Precondition 1"] for header in headers] == [filled, "none"]


def test_sections_have_the_order_of_the_specifications_reports(tmp_path: Path) -> None:
    """The report of a run with a TKperf profile shows throughput before latency, as TKperf does. The report of a run
    with another profile keeps the order of the run.
    """
    result = simulate(tmp_path, run_info(suite="ssd"))
    measured = [test.name for test in result.tests]
    for profile, order in (
        ("pts-e-1.1", measured),
        ("tkperf-2.2", ["iops", "tp", "lat", "writesat"]),
        ("TKperf XML", ["iops", "tp", "lat", "writesat"]),
    ):
        view = build_view(replace(result, info=replace(result.info, profile_name=profile)))
        assert [test.key for test in view.tests][:4] == order[:4]
        assert sorted(test.key for test in view.tests) == sorted(measured)


@pytest.mark.parametrize(
    ("values", "steps"),
    [
        ((210.0, 290.0), [200.0, 220.0, 240.0, 260.0, 280.0, 300.0]),
        ((120.0, 480.0), [100.0, 200.0, 300.0, 400.0, 500.0]),
        ((120.0, 4800.0), [100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0]),
    ],
)
def test_a_logarithmic_axis_has_lines_within_a_decade(values: tuple[float, ...], steps: list[float]) -> None:
    axis: Any = log_axis(values)
    assert axis["axis"]["values"] == pytest.approx(steps)
    assert axis["scale"]["domain"] == pytest.approx([steps[0], steps[-1]])


@pytest.mark.parametrize(
    ("text", "short"),
    [("as it is", "as it is"), ("IMPORTED from 10 files", "IMPORTED from …"), ("W" * 99, "W" * 15 + "…")],
)
def test_a_long_text_is_cut_between_words(text: str, short: str) -> None:
    assert shorten(text, 16) == short


def test_the_opening_says_what_the_test_was_made_to_find(tmp_path: Path) -> None:
    """The first screen shows the main result of the test. For offered rates, the main result is the highest rate
    without a backlog. The first levels are not shown, because every device reaches them easily.
    """
    result = simulate(tmp_path, run_info(), suite={"demand": SSD_TESTS["demand"]})
    table = next(build_section_tables(result.tests[0], None))
    limits = [one for one in view_of(tmp_path / "run.tkperf").headlines if one.label.endswith(", no backlog up to")]
    assert [headline.text for headline in limits] == [f"{row[1]} IOPS" for row in table.rows]
    assert len(limits) == len(table.rows) > 1


@pytest.mark.parametrize(
    ("test", "part"), [("iops", "IOPS test"), ("writesat", "Write Saturation test, 4 KiB random write")]
)
def test_the_first_chart_names_its_test(tmp_path: Path, test: str, part: str) -> None:
    """The first chart is far from the heading of its test. The titles of all its views therefore name the test and, if
    the test has only one load, also the load. The same chart in the section keeps its title. The saved pictures of both
    charts have the same name.
    """
    simulate(tmp_path, run_info(), suite={test: SSD_TESTS[test]})
    view = view_of(tmp_path / "run.tkperf")
    first, own = view.opening_chart, view.tests[0].sections[0].charts[0]
    assert first is not None
    assert [one.chart.title for one in first.views] == [f"{part}: {one.chart.title}" for one in own.views]
    assert [one.caption for one in first.views] == [one.caption for one in own.views]
    assert first.file_name == own.file_name


def test_the_first_chart_is_marked_like_all_others(tmp_path: Path) -> None:
    """The first chart and its views are marked SIMULATED like all other charts, because a reader may save the chart
    alone.
    """
    notice = "SIMULATED: these numbers come from a model"
    simulate(tmp_path, run_info(notices=(notice,)))
    view = view_of(tmp_path / "run.tkperf")
    assert view.opening_chart is not None
    for chart in view.opening_chart.views:
        assert chart.chart.keywords == "SIMULATED"
        assert chart.key.startswith("story-")
