"""The report of a comparison. The tests cover its first charts, its colours, its folded parts, and comparisons of many
runs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.analysis.made_up import made_up_run, made_up_section
from tests.builders import work
from tests.charts import curves_of
from tkperf.analysis.comparing.comparison import Arrangement, compare, compare_files
from tkperf.analysis.results import RunResult
from tkperf.model.errors import UsageError
from tkperf.page.chart import PALETTE, Chart, Point, RuleKind, Scale
from tkperf.page.comparison.build_page import build_comparison_page
from tkperf.page.comparison.run_curves import draw_band
from tkperf.page.margins import TILES_IN_ROW
from tkperf.page.naming import shorten_names
from tkperf.page.page import ChartView, ReportView
from tkperf.page.strip import TickKind
from tkperf.render.document import compose
from tkperf.render.html import render_view
from tkperf.render.pdf import set_document

CELLS = [work(mix, size) for mix in (100, 65, 50, 0) for size in (4096, 8192)]


def run_of(name: str, factor: float, **info: Any) -> RunResult:
    """Return a run with eight cells and a stream."""
    cells = dict.fromkeys(CELLS, (100 * factor, 101 * factor, 102 * factor))
    stream = {work(): [factor * value for value in (50.0, 51.0, 52.0, 50.0, 49.0)]}
    return made_up_run(
        name,
        {
            "iops": [made_up_section("IOPS", cells)],
            "writesat": [made_up_section("Write Saturation", stream, stream=True)],
        },
        **info,
    )


def drives(count: int, *, serial: str = "S{}", firmware: str = "1.0") -> list[RunResult]:
    return [
        run_of(
            f"lab-{number:02}",
            1 + number / 10,
            device={
                "kind": "block device",
                "model": "M",
                "serial": serial.format(number),
                "firmware": firmware,
                "capacity_bytes": 10**9,
            },
            started_utc=f"2026-03-{number + 1:02}T00:00:00+00:00",
        )
        for number in range(count)
    ]


def chart_of(view: ReportView, key: str) -> ChartView:
    return next(chart for test in view.tests for chart in test.charts if chart.key == key)


def test_a_run_counts_once_however_many_of_its_files_are_given() -> None:
    """Files with the same UUID belong to one run, for example a copy or an earlier state of the file. The file with the
    most steps counts.

    Runs that differ only in their UUIDs are two runs, because a second measurement may have exactly the same results.
    """
    run, other = run_of("A", 1, uuid="one"), run_of("B", 2, uuid="two")
    comparison = compare_files((run, other, run))
    assert (comparison.names, comparison.repeated) == (("A", "B"), (("A", 2),))
    assert "A counts once, of 2 files" in build_comparison_page(comparison).subtitle
    fuller = replace(run, tests=tuple(replace(test, steps=(Any,)) for test in run.tests))  # type: ignore[arg-type]
    assert compare_files((run, other, fuller)).results[0] is fuller
    with pytest.raises(UsageError, match="these 2 files belong to one run, A"):
        compare_files([run, run])
    assert not compare_files([run, run_of("A", 1, uuid="two")]).repeated


def test_two_runs_have_matrices_of_ratios() -> None:
    """The report of two runs has one matrix of ratios for each measure. The values themselves are in a folded part."""
    view = build_comparison_page(compare([run_of("A", 1), run_of("B", 8)]))
    assert view.overview_charts == ()
    matrix, values = view.tests[0].sections[0].tables
    assert matrix.columns == ("Block size (KiB)", "100/0", "65/35", "50/50", "0/100")
    assert matrix.rows[0] == ("4", "8.00", "8.00", "8.00", "8.00")
    assert (values.folded, len(values.rows)) == (True, len(CELLS))


def test_a_ratio_within_noise_is_in_parentheses() -> None:
    """A ratio within noise is shown in parentheses. The full value appears when the mouse pointer is over the ratio."""
    first = run_of("A", 1)
    page = render_view(build_comparison_page(compare([first, run_of("B", 8), first])))
    assert re.search(r'<td[^>]* title="[^"]*">[^<]*\(×1\.000[^<]*\)</td>', page)


def test_the_decision_comes_first_and_the_rest_is_behind_one_select() -> None:
    """A comparison begins with the verdict, a line for each kind of load, the matrix and the charts. A select box shows
    the other parts.
    """
    runs = [run_of("A", 1, fio_version="fio-3.33"), run_of("B", 8, fio_version="fio-3.36")]
    page = render_view(build_comparison_page(compare(runs)))
    places = [
        page.index(text)
        for text in (
            'class="verdict caution"',
            '<dl class="uses">',
            '<table class="drives">',
            '<select id="chapter"',
            'id="lead0"',
            '<section id="overview" data-chapter>',
            "Headline figures</span>",
            '<section id="conditions" data-chapter>',
            "fio differs (A: fio-3.33, B: fio-3.36)",
        )
    ]
    assert places == sorted(places)
    offered = re.findall(r'<option value="([^"]*)"', page)
    assert set(offered) == {"", *re.findall(r'<section id="([^"]*)" data-chapter>', page)}
    assert page.count("<select") == 1


@pytest.mark.parametrize(
    ("runs", "arrangement", "title", "charts"),
    [
        (drives(8), Arrangement.COHORT, "8 drives of model M: no outlier", []),
        (
            drives(5, serial="S1"),
            Arrangement.HISTORY,
            "Drive S1 over 5 runs",
            [f"headline-history{number}" for number in range(5)],
        ),
        (drives(8), Arrangement.RUNS, "These 8 runs cannot be ranked: figures are without an interval", []),
    ],
)
def test_each_arrangement_has_its_chart(
    runs: Sequence[RunResult], arrangement: Arrangement, title: str, charts: list[str]
) -> None:
    view = build_comparison_page(compare(runs, arrangement))
    assert view.title == title
    assert [chart.key for chart in view.overview_charts] == charts
    assert "<!DOCTYPE html>" in render_view(view)


def test_a_history_of_a_drive_that_is_not_known_has_a_title() -> None:
    runs = [run_of(f"r{n}", 1, started_utc=f"2026-03-0{n + 1}T00:00:00+00:00") for n in range(3)]
    view = build_comparison_page(compare(runs, Arrangement.HISTORY))
    assert view.title == "3 runs in order of date"


def test_a_history_marks_its_firmware_and_trend() -> None:
    """The chart of a history has a vertical rule where the firmware changed, a trend line, and a point for each run."""
    runs = [*drives(3, serial="S1"), *drives(6, serial="S1", firmware="1.2")[3:]]
    chart = build_comparison_page(compare(runs)).overview_charts[0]
    trend, values = curves_of(chart).curves
    assert trend.values == pytest.approx([101, 151.5])
    assert len(values.points) == 6
    (rule,) = curves_of(chart).rules
    assert (rule.kind, rule.name) == (RuleKind.CHANGE, "firmware 1.2")


def test_more_runs_than_colours_have_a_median_a_band_and_named_outliers() -> None:
    """If a comparison has more runs than colours, its charts show the median, and a band that contains the middle half
    of the runs. A run that is far from all other runs has a separate curve.
    """
    factors = [1 + number / 100 for number in range(13)] + [9.0]
    runs = [run_of(f"lab-{number:02}", factor) for number, factor in enumerate(factors)]
    view = build_comparison_page(compare(runs, Arrangement.RUNS))
    over_size = chart_of(view, "iops0-2d")
    middle, outlier = curves_of(over_size).curves
    assert (middle.name, outlier.name) == ("median of 14", "lab-13")
    first = middle.points[0]
    assert (first.low, first.y, first.high) == pytest.approx((101 * 1.0325, 101 * 1.065, 101 * 1.0975))
    assert outlier.points[0].y == 101 * 9
    # Each of twelve runs has a separate curve.
    few = build_comparison_page(compare(runs[:12], Arrangement.RUNS))
    assert len(curves_of(chart_of(few, "iops0-2d")).curves) == 12


def test_courses_of_other_lengths_are_read_at_common_places() -> None:
    """Runs of different lengths are compared at common times. A run does not contribute to the median after its end,
    and no median is drawn after most runs have ended.
    """
    long = {f"a{n}": tuple(Point(float(x), 100.0) for x in range(0, 101, 10)) for n in range(4)}
    short = {f"b{n}": tuple(Point(float(x), 10.0) for x in range(0, 51, 7)) for n in range(10)}
    curves = draw_band(long | short, {name: n for n, name in enumerate(long | short)}, Scale.LINEAR)
    places = [float(point.x) for point in curves[0].points]
    assert places == sorted(places)
    assert 48 < places[-1] <= 50
    assert {point.y for point in curves[0].points} == {10.0}


def test_a_median_is_of_the_same_runs_everywhere() -> None:
    """A median is computed from the same runs at every point. Otherwise fast runs that begin late, or slow runs that
    end early, would raise the median although no drive changed.
    """
    places = range(0, 101, 10)
    slow = {f"slow{n}": tuple(Point(float(x), 10.0) for x in places if x <= 90) for n in range(7)}
    fast = {f"fast{n}": tuple(Point(float(x), 90.0) for x in places if x >= 10) for n in range(6)}
    courses = slow | fast
    middle, *outliers = draw_band(courses, {name: n for n, name in enumerate(courses)}, Scale.LINEAR)
    assert {point.y for point in middle.points} == {10.0}
    assert float(middle.points[0].x) == pytest.approx(10, abs=1)
    assert float(middle.points[-1].x) == pytest.approx(90, abs=1)
    assert outliers == []


def test_a_second_group_of_drives_is_no_outlier() -> None:
    """A second, smaller group of drives is not an outlier. The band of the middle half of the runs extends to this
    group, so its runs are close to the band. A single run that is far from both groups is an outlier.
    """
    values = [100.0 + n / 10 for n in range(12)] + [20.0 + n / 10 for n in range(6)] + [1.0]
    courses = {f"d{n}": (Point(1.0, value), Point(2.0, value)) for n, value in enumerate(values)}
    _, *outliers = draw_band(courses, {name: n for n, name in enumerate(courses)}, Scale.LINEAR)
    assert [curve.name for curve in outliers] == ["d18"]


def test_a_curve_has_a_view_for_each_name_that_a_report_has() -> None:
    """A chart of a comparison has views of IOPS and MB/s over the block size and over the mix. Each curve in the report
    of a single run becomes a view.
    """
    view = build_comparison_page(compare([run_of("A", 1), run_of("B", 8)]))
    choices = {one.choice for one in chart_of(view, "iops0-2d").views}
    mixes, sizes = ("R/W 100/0", "R/W 65/35", "R/W 50/50", "R/W 0/100"), ("4 KiB", "8 KiB")
    assert choices == {
        *((measure, "over block size", mix) for measure in ("IOPS", "MB/s") for mix in mixes),
        *((measure, "over mix", size) for measure in ("IOPS", "MB/s") for size in sizes),
    }


def test_long_names_are_told_apart_by_their_ends() -> None:
    """Long names are shortened to about 40 characters and remain distinct. Each point of a curve contains a name.
    Without this rule, the page of twenty runs with names of 240 characters had 62 MB.
    """
    long = ["x" * 240, "x" * 239 + "y", "x" * 241, "short"]
    called = list(shorten_names(long, 40).values())
    assert len(set(called)) == 4
    assert max(map(len, called)) <= 45
    assert called[3] == "short"
    assert called[1].endswith("xy")


def test_a_run_has_one_colour_and_one_place_everywhere() -> None:
    """A run has the same colour and the same position in the matrix and in every chart. Runs are in the order in which
    the user named them.
    """
    view = build_comparison_page(compare([run_of(name, 1) for name in "CAB"]))
    assert view.decision is not None
    assert [(row.name, row.colour) for row in view.decision.rows] == list(zip("CAB", PALETTE, strict=False))
    charts = [*view.lead_charts, *(chart for test in view.tests for chart in test.charts)]
    drawn = [each for chart in charts for each in chart.views if isinstance(each.chart, Chart)]
    assert len(drawn) > 2
    for each in drawn:
        assert [(curve.name, curve.colour) for curve in curves_of(each).curves] == list(
            zip("CAB", PALETTE, strict=False)
        )


def test_rows_that_differ_most_come_first_and_lead_to_their_cells() -> None:
    """Rows with the largest differences come first and link to their cells. Rows with nearly equal differences keep the
    order of the tests.
    """

    def run(name: str, *values: float) -> RunResult:
        cells = {work(mix): (value,) * 5 for mix, value in zip((100, 65, 0), values, strict=True)}
        return made_up_run(name, {"iops": [made_up_section("IOPS", cells)]})

    for others in (1, 2):
        runs = [run("A", 10, 20, 30), *(run(f"B{n}", 10, 5, 29) for n in range(others))]
        view = build_comparison_page(compare(runs))
        table, *_ = view.tables
        first = [row[0] for row in table.rows]
        assert first[0] == "4 KiB random, 65 % reads"
        page = render_view(view)
        for target in table.targets:
            assert f'<a href="#{target}">' in page
            assert page.count(f' id="{target}"') == 1
        (section,) = view.tests[0].sections
        assert [row[1] for row in section.tables[0].rows] == ["65/35", "0/100", "100/0"]


def test_cells_of_comparisons_are_not_broken() -> None:
    """Each value in a comparison is on the same line as its ratio."""
    page = build_comparison_page(compare([run_of("A", 1), run_of("B", 8), run_of("C", 1)]))
    tables = [*page.tables[:1], *(each for test in page.tests for each in test.sections[0].tables)]
    cells = [cell for table in tables for row in table.rows for cell in row[table.labels :]]
    assert any("×8.00" in cell for cell in cells)
    assert not [cell for cell in cells if " " in cell]


def test_a_cohort_opens_with_strips_around_the_median() -> None:
    """The page of a cohort begins with dot charts, and not with bars of nearly equal length. A dot chart contains a dot
    for each drive, and shows the distance of each drive from the median. The first dot charts show the figures with
    outliers. The part about each test shows the dot charts of all its figures.
    """
    runs = list(drives(8))
    runs[5] = replace(runs[5], tests=run_of(runs[5].info.name, 9).tests)
    view = build_comparison_page(compare(runs, Arrangement.COHORT))
    assert view.title == f"8 drives of model M: {runs[5].info.name} is an outlier"
    assert len(view.headlines) == TILES_IN_ROW
    strip = view.headlines[0].strip
    assert strip is not None
    assert [dot.name for dot in strip.named] == [runs[5].info.name]
    assert len(strip.dots) == 8
    assert {tick.kind for tick in strip.ticks} == {TickKind.MEDIAN, TickKind.OUTLIER}
    in_tests = [tile.label for test in view.tests for tile in test.headlines]
    assert len(in_tests) == len(set(in_tests)) >= len(view.headlines)
    assert not build_comparison_page(compare(runs, Arrangement.RUNS)).headlines


def test_a_cohort_with_a_median_of_0_has_a_page() -> None:
    """A cohort with a median of 0 still has a page. Distances from a median of 0 cannot be expressed in percent, so
    such a figure has no dot chart.
    """
    runs = [
        replace(run, tests=run_of(run.info.name, factor).tests)
        for run, factor in zip(drives(3), (1, 0, 0), strict=True)
    ]
    view = build_comparison_page(compare(runs, Arrangement.COHORT))
    assert view.headlines == ()


@pytest.mark.parametrize("arrangement", list(Arrangement))
def test_twenty_runs_fit_on_paper(arrangement: Arrangement) -> None:
    """A comparison of twenty runs can be printed as PDF in every arrangement."""
    runs = [
        replace(run, info=replace(run.info, device={**run.info.device, "serial": f"S{number}"}))
        for number, run in enumerate(drives(20))
    ]
    comparison = compare(runs, arrangement)
    view = build_comparison_page(comparison)
    page = set_document(compose(view))
    assert page.startswith(b"%PDF")
