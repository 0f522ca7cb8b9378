"""Each question is answered by one chart. Figures with the same question are views of this chart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.builders import run_info, simulate, view_of
from tests.charts import curves_of, rows_of
from tkperf.analysis.results import RunResult
from tkperf.analysis.run_results import analyse
from tkperf.analysis.timeline.spikes import PeriodicSpikes
from tkperf.analysis.timeline.timelines import Recorded, Timeline
from tkperf.model.figures import TABLE_KINDS, WHOLE_TEST, Figure, FigureKind, TestPlan, asking, drawn, generic_section
from tkperf.model.quantity import QUANTITIES
from tkperf.model.units import GIB
from tkperf.page.chart import Axis, Chart, Curve, Point
from tkperf.page.figures.section_figures import join_charts, name_views
from tkperf.page.findings.section_findings import say_value
from tkperf.page.page import ChartView, ReportView
from tkperf.page.tables.cell_tables import shade
from tkperf.procedures import SSD_TESTS, TESTS, Test, load_profile
from tkperf.procedures.forecast import section_names
from tkperf.runfile.reader import RunFile
from tkperf.runfile.row_records import parse_plan

PROFILES = ("quick", "pts-2.0")


@cache
def plan_of(test: Test) -> TestPlan:
    """Return the plan of a test. It contains all sections that the test has in any of these profiles."""
    profiles = (load_profile(name) for name in PROFILES)
    names = [
        name
        for profile in profiles
        if test.is_in(profile)
        for name in section_names(test.procedure(profile, GIB), active_range_bytes=GIB)
    ]
    return test.plan(dict.fromkeys(names))


def charts_of(figures: tuple[Figure, ...]) -> dict[str, list[Figure]]:
    """Return the figures for each question, in order."""
    questions: dict[str, list[Figure]] = {}
    for figure in figures:
        if figure.kind not in TABLE_KINDS:
            questions.setdefault(figure.question, []).append(figure)
    return questions


def name_of(test: Test) -> str:
    return f"{test.suites[0]}-{test.name}"


@pytest.mark.parametrize("test", TESTS, ids=name_of)
def test_every_chart_of_every_test_answers_a_question(test: Test) -> None:
    """Every chart of every test has a question. The names of the views of a chart are distinct. Each name has as many
    parts as the chart has switches.
    """
    plan = plan_of(test)
    for figures in (plan.figures, *(section.figures for section in plan.sections)):
        for question, views in charts_of(figures).items():
            assert question.endswith("?")
            names = [view.view for view in views]
            several = [view for view in views if view.kind is not FigureKind.PRECONDITIONING]
            assert len({view.view for view in several}) == len(several), question
            assert len({len(name) for name in names if name}) <= 1, question


@pytest.mark.parametrize("generic", [{}, {"areas": True}, {"stream": True}])
def test_an_unknown_section_has_one_chart_a_question(generic: dict[str, bool]) -> None:
    assert "" not in charts_of(generic_section("Unknown", **generic).figures)


PRINTED = {
    "iops": ["iops02d", "iops03d", "iops0convergence", "iops0window", "iopstimeline"],
    "lat": [
        "lat03d",
        "lat03d3",
        "lat0convergence",
        "lat0convergence2",
        "lat0convergence3",
        "lat0convergence4",
        "lat0window",
        "lat1rth",
        "lat1seconds",
        "lattimeline",
    ],
    "tp": ["tp2d", "tpconvergence", "tpconvergence2", "tpwindow", "tpwindow1", "tptimeline"],
    "writesat": [
        "writesat0time",
        "writesat0time2",
        "writesat0tgbw",
        "writesat0tgbw2",
        "writesat0fills",
        "writesat0time3",
        "writesat0time4",
        "writesat0rth",
    ],
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    simulate(folder, run_info(profile=load_profile("quick").as_plain_data()))
    return folder / "run.tkperf"


@pytest.fixture(scope="module")
def view(run: Path) -> ReportView:
    return view_of(run)


def shown(view: ReportView) -> Iterator[tuple[str, ChartView]]:
    for test in view.tests:
        of_sections = (chart for section in test.sections for chart in section.charts)
        yield from ((test.key, chart) for chart in (*of_sections, *test.charts, *test.events.charts))


def test_the_plots_of_the_specification_are_printed(view: ReportView) -> None:
    """The printed report contains each plot that PTS 1.1 requires for the four tests of TKperf."""
    printed: dict[str, list[str]] = {}
    for test, chart in shown(view):
        printed.setdefault(test, []).extend(each.key for each in chart.on_paper)
    assert printed == PRINTED


def test_a_run_of_four_tests_has_half_as_many_charts(view: ReportView) -> None:
    """A run of four tests has 17 charts. All other plots are views of these charts."""
    charts = [chart for _, chart in shown(view)]
    assert len(charts) == 17
    questions = {(test, chart.question) for test, chart in shown(view)}
    assert len(questions) == len({(test, chart.key) for test, chart in shown(view)})
    (stream,) = [chart for chart in charts if chart.key == "writesat0time"]
    assert stream.switches == (("time", "every second", "total written", "drive fills"), ("linear", "logarithmic"))


def test_block_sizes_share_one_table_and_one_convergence_chart(view: ReportView) -> None:
    """The block sizes of a test share one table and one convergence chart, with a row and a curve for each size. Each
    section keeps its own determination of steady state.
    """
    (test,) = [each for each in view.tests if each.key == "tp"]
    (table,) = test.tables
    assert [row[0] for row in table.rows] == ["128", "1024"]
    assert all(link for links in table.links for link in links)
    (convergence,) = [view for chart in test.charts for view in chart.views if view.key == "tpconvergence"]
    assert set(curves_of(convergence).names) == {"1024", "128"}
    for section in test.sections:
        assert (section.tables, section.charts) == ((), ())
        assert section.determination is not None


def test_a_block_size_that_is_not_complete_is_named(run: Path) -> None:
    """If a block size is not complete, the table names it as incomplete and contains its figures so far. The bars show
    only complete block sizes.
    """
    with RunFile(run) as file:
        record = file.record()
    result = analyse(record)
    tp = result.tests[2]
    first, second = tp.sections
    cut = replace(second, complete=False)
    result = replace(result, tests=(replace(tp, sections=(first, cut)),))
    (test,) = _view(result).tests
    assert "Throughput 128k is not complete: its figures so far" in test.tables[0].notes
    assert len(test.tables[0].rows) == 2
    assert "tp2d" in [chart.key for chart in test.charts]
    assert {row["x"] for row in rows_of(test.charts[0])} == {"0/100", "100/0"}


def test_periodic_spikes_come_first(tmp_path: Path) -> None:
    """If periodic spikes were found, they are the first headline figure, and the first chart of the page shows the
    maximum latency.
    """
    result = simulate(tmp_path, run_info(), suite={"writesat": SSD_TESTS["writesat"]})
    (test,) = result.tests
    (section,) = test.sections
    workload = section.cells[0].workload
    spikes = PeriodicSpikes(period=780.0, first=60.0, expected=5, places=(60.0, 840.0), height=22.8, chance=1e-9)
    of_maximum = Timeline(
        workload=workload, quantity="latency_max_us", recorded=Recorded.SECONDS, values=4000, spikes=spikes
    )
    of_mean = replace(of_maximum, quantity="latency_mean_us")
    spiking = replace(section, timelines=(of_mean, of_maximum))
    found = replace(result, tests=(replace(test, sections=(spiking,)),))
    view = _view(found)
    assert view.headlines[0].label == "4 KiB random write, latency spikes every 13 min"
    assert view.headlines[0].text == say_value(
        section.cells[0].value(QUANTITIES["latency_max_us"]) or 0.0, QUANTITIES["latency_max_us"]
    )
    assert view.opening_chart is not None
    assert view.opening_chart.figure is not None
    assert view.opening_chart.figure.quantities[-1] == "latency_max_us"
    assert len(view.opening_chart.views) > 1
    events = [words for words, _ in view.findings[0].sentences if "spikes every" in words]
    assert len(events) == 1, "the mean rises with the maximum: one sentence"
    low = replace(of_maximum, spikes=replace(spikes, height=1.5))
    calm = replace(found, tests=(replace(test, sections=(replace(section, timelines=(low,)),)),))
    assert "spikes" not in _view(calm).headlines[0].label


def _view(result: RunResult) -> ReportView:
    from tkperf.page.view import build_view

    return build_view(result)


def test_a_fill_of_a_single_second_has_no_chart_of_its_own(tmp_path: Path) -> None:
    """A fill that lasts a single second has no separate chart. Its single point would add no information to the chart
    of the whole test.
    """
    simulate(tmp_path, run_info(active_range_length_bytes=64 << 20), suite={"iops": SSD_TESTS["iops"]})
    keys = [each.key for _, chart in shown(view_of(tmp_path / "run.tkperf")) for each in chart.views]
    assert "iopstimeline" in keys
    assert "iopspreconditioning" not in keys


def test_a_plan_without_questions_has_a_chart_for_each_figure(run: Path) -> None:
    """If a plan contains no questions, each figure becomes a separate chart. An unknown test is shown according to the
    plan in its file.
    """
    stored = {
        "title": "Of another version",
        "sections": [
            {
                "name": "Throughput 1024k",
                "quantities": ["megabytes_per_s"],
                "figures": [
                    {
                        "kind": "matrix",
                        "quantities": ["megabytes_per_s"],
                        "title": "",
                        "read_percents": None,
                        "log": False,
                        "apart": False,
                        "axis": "",
                        "most_threads": False,
                        "groups": [],
                    },
                    {"kind": "over rounds", "quantities": ["megabytes_per_s"], "title": "W", "read_percents": [0]},
                    {"kind": "over rounds", "quantities": ["megabytes_per_s"], "title": "R", "read_percents": [100]},
                ],
            }
        ],
        "figures": [{"kind": "timeline", "quantities": ["megabytes_per_s"]}],
    }
    plan = parse_plan(json.dumps(stored))
    with RunFile(run) as file:
        record = file.record()
    tp = replace(record.tests[2], plan=plan)
    (test,) = _view(analyse(replace(record, tests=(tp,)))).tests
    assert [len(section.tables) for section in test.sections] == [1, 3]
    first, _ = test.sections
    assert [chart.key for chart in first.charts] == ["tp0convergence", "tp0convergence2"]
    assert all(not chart.others for chart in first.charts)


def chart(key: str, *choice: str, below: bool = False) -> ChartView:
    axis = Axis(title="X")
    curve = Curve(points=(Point(0.0, 1.0),))
    drawn = Chart(title=f"Title of {key}", x=axis, y=axis, curves=(curve,))
    return ChartView(key=key, text=key, chart=drawn, choice=choice, below=below)


def test_charts_of_one_question_are_views_of_the_first() -> None:
    first, second = asking(
        "Why?",
        drawn(FigureKind.OVER_TIME, view=("time",)),
        drawn(FigureKind.OVER_WRITTEN, view=("written",), printed=True),
    )
    charts = [
        *name_views(first, [chart("a", "reads"), chart("a", "writes"), chart("under", below=True)]),
        chart("own"),
        *name_views(second, [chart("b", "reads"), chart("b", "writes")]),
    ]
    joined, under, own = join_charts(charts, "x0")
    assert (joined.key, under.key, own.key) == ("x0a", "x0under", "x0own")
    assert [each.key for each in joined.views] == ["x0a", "x0a2", "x0b", "x0b2"]
    assert joined.switches == (("time", "written"), ("reads", "writes"))
    assert [each.key for each in joined.on_paper] == ["x0b", "x0b2"]
    assert [each.key for each in own.on_paper] == ["x0own"]


def test_views_whose_names_are_the_same_are_numbered() -> None:
    """Views with the same name are numbered. A plan that a user wrote in Python may contain such views."""
    (figure,) = asking("Why?", drawn(FigureKind.OVER_TIME))
    (joined,) = join_charts(name_views(figure, [chart("a"), chart("b")]), "")
    assert joined.switches == (("1: Title of a", "2: Title of b"),)


@pytest.mark.parametrize(
    ("values", "shades"),
    [
        ((0.0, 5.0, 10.0), (0.0, 0.5, 1.0)),
        # The colour scale is logarithmic, because the greatest value is 100 times the least value.
        ((1.0, 10.0, 100.0), (0.0, 0.5, 1.0)),
        ((0.0, None, 100.0), (0.0, None, 1.0)),
        ((500.0, 505.0, 510.0), (0.0, 0.01, 0.02)),  # a difference of 2 % hardly changes the colour
        ((7.0, 7.0, 7.0), (None, None, None)),
        ((None, None, None), (None, None, None)),
    ],
)
def test_a_cell_is_shaded_by_its_value(values: tuple[float | None, ...], shades: tuple[float | None, ...]) -> None:
    """A cell is shaded according to its value. A cell without a value has no colour. If all cells have equal values,
    they also have no colour.
    """
    assert [list(row) for row in shade([values])] == [pytest.approx(list(shades))]


def test_the_whole_test_is_one_chart() -> None:
    assert list(charts_of(WHOLE_TEST)) == ["What was done to the device, and when?"]
