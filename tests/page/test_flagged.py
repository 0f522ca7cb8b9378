"""A flagged step is flagged in every table and chart that contains its values. The tests cover reports, comparisons and
exports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.builders import view_of
from tests.busy_host import run_beside
from tests.charts import curves_of
from tests.runfile.runs import a_step
from tkperf.analysis.comparing.comparison import compare
from tkperf.analysis.details import TimedStep
from tkperf.analysis.run_results import analyse
from tkperf.engine.simulated import SimulatedEngine
from tkperf.engine.simulation.models import PRESET_MODELS
from tkperf.model.disturbance.io import HOST_LIMITED, DisturbanceCode
from tkperf.model.disturbance.io import WORDS as WORD
from tkperf.model.measurement import Seconds
from tkperf.model.quantity import IOPS
from tkperf.model.record import RunRecord, StepKind
from tkperf.page.chart import Axis, Chart, Curve, Point
from tkperf.page.comparison.build_page import build_comparison_page
from tkperf.page.figures.timeline import Stretch, draw_test
from tkperf.page.page import ChartView, ReportView, SectionView, TableView
from tkperf.page.view import build_view
from tkperf.page.words.uncertainty import join_flags
from tkperf.procedures import HDD_TESTS, SSD_TESTS, Test, load_profile
from tkperf.procedures.profiles import Profile
from tkperf.render.charts.draw import draw
from tkperf.render.export_markdown import render_markdown
from tkperf.render.export_tables import build_tables
from tkperf.runfile.reader import read_run
from tkperf.runfile.writer import RunFileWriter
from tkperf.runner.events import StepStarted

WORDS = "disturbed: others on the CPUs that fio waited for"
Chosen = Callable[[StepStarted], bool]


def keep(path: Path, tests: list[Test], chosen: Chosen, profile: Profile | None = None) -> RunRecord:
    engine = SimulatedEngine(PRESET_MODELS["hdd" if "hdd" in tests[0].suites else "sata-ssd"], 1 << 30)
    writer = RunFileWriter(path)
    run_beside(engine, tests, profile or load_profile("quick"), chosen, writer)
    writer.close()
    return read_run(path)


def charts_of(view: ReportView) -> Iterator[ChartView]:
    for test in view.tests:
        yield from (view for chart in (*test.charts, *test.events.charts) for view in chart.views)
        for section in test.sections:
            yield from (view for chart in section.charts for view in chart.views)


def sections_of(view: ReportView) -> Iterator[SectionView]:
    for test in view.tests:
        yield from test.sections


def subtitle(chart: ChartView) -> str:
    title: Any = draw(chart.chart)["title"]
    return str(title.get("subtitle", ""))


def rings(chart: ChartView) -> list[dict[str, Any]]:
    """Return the data rows around which the chart draws rings."""
    datasets: Any = draw(chart.chart)["datasets"]
    return [row for name, rows in datasets.items() if name.startswith("rings") for row in rows]


SUITES = {
    **{name: [test] for name, test in SSD_TESTS.items()},
    **{f"hdd-{name}": [test] for name, test in HDD_TESTS.items()},
}


@pytest.mark.parametrize("name", SUITES)
def test_every_chart_of_a_run_that_was_always_disturbed_says_so(name: str, tmp_path: Path) -> None:
    """If every step of a run was disturbed, every chart and every table of figures shows this. The rule applies to each
    test of the suite.
    """
    path = tmp_path / "run.tkperf"
    keep(path, SUITES[name], lambda _: True)
    view = view_of(path)
    charts = list(charts_of(view))
    assert charts
    unmarked = [chart.key for chart in charts if WORDS not in subtitle(chart)]
    assert unmarked == []
    for section in sections_of(view):
        for table in section.tables:
            told = any(WORDS in note for note in table.notes) or any(
                WORDS in cell for row in table.rows for cell in row
            )
            assert told or not _has_figures(table), table.title


def _has_figures(table: TableView) -> bool:
    """Return whether a table contains results. Tables with findings about results do not count."""
    return any(link for row in table.links for link in row)


@pytest.mark.parametrize("name", ["iops", "writesat", "dirth", "hdd-iops"])
def test_no_chart_of_a_run_that_nobody_disturbed_is_marked(name: str, tmp_path: Path) -> None:
    """In a run without disturbances, no chart contains a ring around a point, and no chart mentions disturbances."""
    path = tmp_path / "run.tkperf"
    keep(path, SUITES[name], lambda _: False)
    for chart in charts_of(view_of(path)):
        assert "disturbed" not in subtitle(chart)
        assert rings(chart) == []


def one_step(step: StepStarted) -> bool:
    """Return whether the step is the second-last step of round 2. The workload of this step is R/W 0/100 with 4 KiB."""
    return (step.kind, step.number, step.position) == (StepKind.ROUND, 2, 10)


def test_one_flagged_step_has_one_ring_over_the_rounds(tmp_path: Path) -> None:
    """In the charts over rounds, a flagged step has one ring at its round and its value. It also has one ring in each
    chart over the window, because the step belongs to the window.
    """
    path = tmp_path / "run.tkperf"
    keep(path, [SSD_TESTS["iops"]], one_step)
    charts = {chart.key: chart for chart in charts_of(view_of(path))}
    (over_rounds,) = rings(charts["iops0convergence"])
    assert (over_rounds["x"], over_rounds["flag"]) == (2, WORDS)
    (in_window,) = rings(charts["iops0window"])
    assert (in_window["x"], in_window["value"]) == (2, over_rounds["value"])
    (over_axis,) = rings(charts["iops02d"])
    assert over_axis["x"] == "4"
    (shade,) = curves_of(charts["iopstimeline"]).shades
    assert shade.text == WORDS


def test_both_runs_of_a_comparison_tell_what_was_disturbed(tmp_path: Path) -> None:
    """If one of two compared runs was disturbed, every chart of the comparison states this."""
    tests = [SSD_TESTS["iops"], SSD_TESTS["writesat"]]
    disturbed = analyse(keep(tmp_path / "a.tkperf", tests, lambda _: True))
    quiet = analyse(keep(tmp_path / "b.tkperf", tests, lambda _: False))
    named = [replace(result, info=replace(result.info, name=name)) for result, name in ((disturbed, "a"), (quiet, "b"))]
    comparison = compare(named)
    charts = list(charts_of(build_comparison_page(comparison)))
    assert charts
    assert [chart.key for chart in charts if WORDS not in subtitle(chart)] == []


def test_exports_tell_the_step_and_what_the_host_did(tmp_path: Path) -> None:
    """The CSV export has a row for each step with the disturbances and the use of the host. JSON contains the same
    data, and Markdown contains the marks with their meanings.
    """
    record = keep(tmp_path / "run.tkperf", [SSD_TESTS["iops"]], one_step)
    result = analyse(record)
    (table,) = [each for each in build_tables(result, [], lambda *_: ()) if each.name == "host"]
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    assert len(rows) == len(record.tests[0].steps)
    (flagged,) = [row for row in rows if row["disturbances"]]
    assert (flagged["number"], flagged["position"], flagged["disturbances"]) == (2, 10, "host-cpu")
    assert flagged["others_cpu_percent"] == pytest.approx(100)
    assert flagged["fio_wait_percent"] == pytest.approx(50)
    assert flagged["others"] == "burner 100 %"
    assert flagged["heat_events"] is None
    (told,) = [step for step in result.tests[0].steps if step.disturbances]
    assert told.host is not None
    assert told.host.others == ("burner 100 %",)
    assert f"! {WORDS}" in render_markdown(build_view(result))


def test_the_dialog_of_a_cell_has_the_host_of_each_round(tmp_path: Path) -> None:
    """The dialog of a cell has a row for each round and a column for each known fact about the host. The seconds of a
    flagged round are shaded.
    """
    path = tmp_path / "run.tkperf"
    keep(path, [SSD_TESTS["iops"]], one_step)
    cells = view_of(path).cells
    (flagged,) = [cell for cell in cells if cell.flagged]
    assert flagged.title.endswith("R/W 0/100 TC2/QD16")
    assert [shade.text for shade in flagged.flagged] == [WORDS]
    table = flagged.host
    assert table is not None
    at = table.columns.index("other programs (% of a CPU)")
    assert [row[0] for row in table.rows] == ["1", "2", "3", "4", "5"]
    assert [row[at] for row in table.rows] == ["0.0", "100.0", "0.0", "0.0", "0.0"]
    assert "slow-downs by heat" not in table.columns


def test_each_reason_is_listed_once_below_a_chart() -> None:
    """Below a chart, each reason for flags is listed once, even if the points have different combinations of
    reasons.
    """
    quota, heat, cpu = (
        WORD[code] for code in (DisturbanceCode.CPU_QUOTA, DisturbanceCode.CPU_HEAT, DisturbanceCode.HOST_CPU)
    )
    told = [f"disturbed: {quota}", f"{HOST_LIMITED}; disturbed: {heat}, {quota}", f"disturbed: {cpu}"]
    assert join_flags(told) == f"{HOST_LIMITED}; disturbed: {cpu}, {quota}, {heat}"
    assert join_flags([HOST_LIMITED]) == HOST_LIMITED
    for code, words in WORD.items():
        assert join_flags([f"disturbed: {words}"]) == f"disturbed: {words}", code


def test_a_chart_lists_the_reasons_of_all_its_points_together() -> None:
    points = (
        Point(1, 1, flag="disturbed: memory short on the host"),
        Point(2, 1, flag="disturbed: tkperf stood still, memory short on the host"),
    )
    axis = Axis(title="X")
    chart = Chart(title="T", x=axis, y=axis, curves=(Curve(points=points),))
    assert chart.flag_words == "disturbed: tkperf stood still, memory short on the host"


def test_no_line_is_drawn_over_an_interruption() -> None:
    """A curve has a gap where the run was interrupted. If only a single step lies between two interruptions, this step
    is drawn as a point.
    """
    starts_s = [*range(0, 100, 10), *range(20_000, 20_300, 10), 40_000]
    record = a_step()
    loads = tuple(
        TimedStep(
            step=replace(record, measurement=replace(record.measurement, duration_s=10.0)),
            start_s=float(start_s),
            seconds=Seconds(),
        )
        for start_s in starts_s
    )
    first, _, alone = draw_test((Stretch(name="IOPS", loads=loads),), (IOPS,), "T").curves
    assert all(float(point.x) < 1 for point in first.points)
    assert [point.x for point in alone.points] == [pytest.approx(40_005 / 3600)]
