"""Loads that run at the same time. In every output, each stream has the same information as a load that runs alone."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.builders import view_of
from tkperf.analysis.comparing.comparison import compare
from tkperf.analysis.comparing.run_figures import find_values
from tkperf.analysis.over_seconds import analyse_opened
from tkperf.analysis.results import RunResult, SectionResult
from tkperf.analysis.timeline.timelines import Recorded
from tkperf.analysis.workload_axes import name_stream
from tkperf.cli.lines import JsonLines, PlainLines
from tkperf.cli.main import cli
from tkperf.model.quantity import BACKLOG, IOPS, IOS, LATENCY_MEAN, percentile
from tkperf.model.record import RunRecord
from tkperf.model.units import format_number
from tkperf.page.comparison.build_page import build_comparison_page
from tkperf.page.comparison.ratio_tables import build_section_table
from tkperf.page.findings import findings, headlines
from tkperf.page.findings.stream_findings import find_streams
from tkperf.page.page import SectionView
from tkperf.page.view import build_view
from tkperf.runfile.reader import RunFile
from tkperf.runner.events import StepEnded

FILE = """
format = 1
name = "host"
title = "A host"
[loads.reader]
access = "random"
read_percent = 100
block_size_kib = 4
jobs = 2
io_depth = 8
[loads.log]
access = "sequential"
read_percent = 0
block_size_kib = 4
jobs = 1
offered_iops = 400
flush_every = 4
range_begin_percent = 90
[loads.trimmer]
access = "random"
trims = true
read_percent = 0
block_size_kib = 1024
jobs = 1
offered_iops = 20
range_begin_percent = 20
range_end_percent = 40
[[phases]]
kind = "fill"
passes = 1
[[phases]]
kind = "rounds"
section = "Rounds"
together = ["reader", "log", "trimmer"]
step_s = 5
rounds = 2
[[phases]]
kind = "stream"
section = "Long"
together = ["reader", "log", "trimmer"]
slice_s = 20
longest_s = 140
"""
NAMES = ("all", "reader", "log", "log, flushes", "trimmer")


def call(*argv: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in argv], catch_exceptions=False)


@pytest.fixture(scope="module")
def run_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("streams")
    file = folder / "host.toml"
    file.write_text(FILE)
    done = call("ssd", "host", "sim:client-tlc", "--test", file, "--output", folder, "--no-report", "--quiet")
    assert done.exit_code == 0, done.output
    return folder / "host.tkperf"


def read(path: Path) -> tuple[RunResult, RunRecord]:
    with RunFile(path) as opened:
        record = opened.record()
        return analyse_opened(opened, record), record


def section_of(path: Path, name: str) -> SectionResult:
    result, _ = read(path)
    return next(section for section in result.tests[0].sections if section.name == name)


ALONE_AND_TOGETHER = """
format = 1
name = "mix"
title = "Mix"
[loads.reader]
access = "random"
read_percent = 100
block_size_kib = 16
jobs = 2
io_depth = 8
offered_iops = 4000
[loads.writer]
access = "random"
read_percent = 0
block_size_kib = 16
jobs = 2
io_depth = 8
[[phases]]
kind = "fill"
passes = 1
[[phases]]
kind = "rounds"
section = "Reader alone"
loads = ["reader"]
step_s = 5
rounds = 3
[[phases]]
kind = "rounds"
section = "Writer alone"
loads = ["writer"]
step_s = 5
rounds = 3
[[phases]]
kind = "rounds"
section = "Both"
together = ["reader", "writer"]
step_s = 5
rounds = 3
"""


def test_a_load_that_also_runs_alone_is_compared_with_itself(tmp_path: Path) -> None:
    """If a load of a combination also ran alone in another section, a finding compares both results. For a load with an
    offered rate, the finding states by which factor the other loads increase the latency. For a load without an offered
    rate, the finding states the rate as a share of the rate that the load reached when it ran alone.
    """
    (tmp_path / "mix.toml").write_text(ALONE_AND_TOGETHER)
    done = call(
        "ssd", "mix", "sim:client-tlc", "--test", tmp_path / "mix.toml", "--output", tmp_path, "--no-report", "--quiet"
    )
    assert done.exit_code == 0, done.output
    result, _ = read(tmp_path / "mix.tkperf")
    alone, writer, both = result.tests[0].sections
    texts = [one.text for one in findings(result) if " compared with " in one.text]
    p99 = percentile(99)
    reads = next(cell for cell in both.cells if cell.workload.stream == "reader")
    writes = next(cell for cell in both.cells if cell.workload.stream == "writer")
    factor, share = (
        (after.value(quantity) or 0.0) / (before.value(quantity) or 1.0)
        for quantity, before, after in ((p99, alone.cells[0], reads), (IOPS, writer.cells[0], writes))
    )
    assert len(texts) == 2
    assert texts[0].startswith(f"Both: compared with Reader alone, the p99 latency of reader is {factor:.3g} × (")
    words = f"writer reaches {format_number(100 * share)} % of its IOPS"
    assert texts[1] == f"Both: compared with Writer alone, {words}"


def view_of_section(path: Path, name: str) -> SectionView:
    return next(section for section in view_of(path).tests[0].sections if section.title == name)


def test_the_seconds_of_streams_add_up_to_those_of_the_step(run_path: Path) -> None:
    """In each second, the reads and writes of all streams add up to the reads and writes of the step. Trims and flushes
    are counted separately.
    """
    with RunFile(run_path) as opened:
        (test,) = opened.record().tests
        for step, seconds in zip(test.steps, opened.seconds(test), strict=True):
            if not step.workload.together:
                assert not seconds.parts
                continue
            parts = {name_stream(part.workload): seconds.of(part.workload) for part in step.parts}
            assert tuple(parts) == NAMES
            assert all(len(part) == len(seconds) > 0 for part in parts.values())
            np.testing.assert_allclose(parts["reader"].iops + parts["log"].iops, seconds.iops)
            for name, stats in (("trimmer", step.measurement.trim), ("log, flushes", step.measurement.flush)):
                assert np.sum(parts[name].iops * parts[name].duration_s) == pytest.approx(stats.ios, abs=1)


@pytest.mark.parametrize("name", ["Rounds", "Long"])
def test_every_stream_has_intervals(run_path: Path, name: str) -> None:
    """The means of a stream, of its trims and of its flushes have intervals. The mean of a load that runs alone also
    has an interval.
    """
    cells = {name_stream(cell.workload): cell for cell in section_of(run_path, name).cells}
    assert tuple(cells) == NAMES
    for of_stream, cell in cells.items():
        for quantity in (IOPS, LATENCY_MEAN):
            known = cell.uncertainty_of(quantity)
            assert known is not None, (of_stream, quantity.key)
            assert known.expanded is not None, (of_stream, quantity.key, known.reason)


def test_every_stream_has_a_course_over_time(run_path: Path) -> None:
    """The slices contain the values of each stream. The seconds of each stream are searched for levels, drops and
    spikes.
    """
    section = section_of(run_path, "Long")
    for one in section.slices:
        assert tuple(name_stream(cell.workload) for cell in one.cells) == NAMES
        whole, reader, log, *_ = (cell.value(IOPS) or 0.0 for cell in one.cells)
        assert reader + log == pytest.approx(whole)
    searched = {
        name_stream(timeline.workload)
        for timeline in section.timelines
        if timeline.recorded is Recorded.SECONDS and timeline.quantity == IOPS.key
    }
    assert searched == set(NAMES)


def test_the_page_draws_each_stream(run_path: Path) -> None:
    """A chart over time has a view for each stream. The response times of different loads are never combined in one
    histogram.
    """
    section = view_of_section(run_path, "Long")
    names = ("reader", "log", "log, flushes", "trimmer")
    by_question = {chart.question: chart for chart in section.charts}
    course = by_question["How does the stream change?"]
    assert {view.stream for view in course.views if view.choice[0] == "IOPS over time"} == {*names, "all streams"}
    assert all(view.chart.title.endswith(f": {view.choice[-1]}") for view in course.views)
    histograms = by_question["How long did single I/Os take?"]
    assert {view.choice[-1] for view in histograms.views} == set(names)


def test_every_stream_opens(run_path: Path) -> None:
    """A click on a figure of a stream opens the seconds and the histogram of this stream."""
    cells = [cell for cell in view_of(run_path).cells if cell.title.startswith("Long: ")]
    assert len({cell.key for cell in cells}) == len(NAMES)
    assert all(cell.seconds and cell.buckets for cell in cells)


def test_tables_have_the_slices_of_each_stream(run_path: Path, tmp_path: Path) -> None:
    assert call("report", run_path, "--csv", tmp_path).exit_code == 0
    with (tmp_path / "slices.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["stream"] for row in rows} == set(NAMES)
    by_slice = {(row["slice"], row["stream"]) for row in rows}
    assert len(by_slice) == 7 * len(NAMES)


@pytest.mark.parametrize("name", ["Long: 1", "Long, log: 1", "Long, log, flushes: 20-40s", "Long, trimmer"])
def test_a_histogram_may_be_that_of_a_stream(run_path: Path, tmp_path: Path, name: str) -> None:
    """If a histogram request names no stream, it refers to all streams. If it names a stream, it refers to the I/Os of
    this stream without its flushes.
    """
    made = call("report", run_path, "-o", tmp_path / "page.html", "--histogram", f"host, {name}")
    assert made.exit_code == 0, made.output


def test_series_have_the_label_of_the_stream(run_path: Path, tmp_path: Path) -> None:
    """A point of a stream has the label of the stream, and a point of all streams has no stream label. Trims and
    flushes have separate families of metrics. These families contain only the loads that trim or flush.
    """
    file = tmp_path / "host.om"
    assert call("report", run_path, "--openmetrics", file).exit_code == 0
    parsed = text_string_to_metric_families(file.read_text())  # type: ignore[no-untyped-call]
    families = {family.name: family.samples for family in parsed}

    def labels(name: str) -> set[str | None]:
        in_streams = (sample for sample in families[name] if sample.labels["section"] == "Long")
        return {sample.labels.get("stream") for sample in in_streams}

    assert labels("tkperf_read_iops") == labels("tkperf_write_iops") == {None, "reader", "log"}
    assert labels("tkperf_latency_mean_seconds") == {None, "reader", "log", "trimmer"}
    assert labels("tkperf_trim_iops") == {"trimmer"}
    assert labels("tkperf_flushes_per_second") == {"log"}
    lines = tmp_path / "host.line"
    assert call("report", run_path, "--line-protocol", lines).exit_code == 0
    text = lines.read_text()
    assert ",stream=trimmer " in text
    assert "stream=" not in "".join(line for line in text.splitlines() if "kind=fill" in line)


def test_the_first_screen_names_each_stream_with_its_answer(run_path: Path) -> None:
    """The headline of a stream that runs as fast as possible is its rate. The headline of a stream with an offered rate
    is its latency. If the stream flushes, the latency of its flushes is also a headline. No headline is a total of
    different loads.
    """
    result, _ = read(run_path)
    found = {one.label: one for one in headlines(result)}
    assert list(found) == ["reader", "log", "trimmer"]
    assert found["reader"].key == "iops"
    assert found["reader"].also.startswith("p99 ")
    assert found["log"].key == "p99_us"
    assert " IOPS as offered, flushes p99 " in found["log"].also
    assert found["trimmer"].text.startswith("p99 ")
    assert found["trimmer"].also == "21.0 MB/s of trims as offered"
    sentences = [finding.text for finding in findings(result)]
    assert any(
        text.startswith("reader runs at ") and " together with log at 400 IOPS (p99 " in text for text in sentences
    )
    shown = call("show", run_path).output
    assert "all streams" not in shown
    assert "trimmer, 1024 KiB random trim, TC1/QD1" in shown


def test_a_stream_that_missed_its_offered_rate_says_so(run_path: Path) -> None:
    """If a stream has a backlog, its headline is an alarm. The headline contains the rate of the stream and states
    which share of the offered rate this is.
    """
    section = section_of(run_path, "Rounds")
    (log,) = (stream for stream in find_streams(section) if stream.name == "log")
    assert log.missed_percent is None
    slow = {**log.cell.all, IOPS.key: 100.0, BACKLOG.key: 1500, IOS.key: 500}
    behind = replace(log, cell=replace(log.cell, all=slow, backlog_median_ios=1500.0))
    assert behind.main is IOPS
    assert behind.rest.startswith("25.0 % of the offered rate, p99 ")


def test_streams_are_compared_by_their_names(run_path: Path) -> None:
    """Streams are compared by their names. A comparison contains the figures of each stream, but not their total. The
    random reads of a stream do not count as the headline figure "random reads" of a drive.
    """
    result, _ = read(run_path)
    again = replace(result, info=replace(result.info, uuid="another"))
    comparison = compare([result, again])
    named = {(row.workload.stream, row.workload.flushes, row.quantity.key) for row in comparison.headlines}
    assert named >= {("reader", False, "iops"), ("log", False, "p99_us"), ("log", True, "p99_us")}
    assert not any(row.workload.is_combination for row in comparison.headlines)
    assert not any(value.key == "random_read" for value in find_values(result))
    decision = build_comparison_page(comparison).decision
    assert decision is not None
    assert "IOPS of reader" in "; ".join(sentence for _, sentence in decision.lines)


@pytest.mark.parametrize(
    ("claim", "met"),
    [
        ('stream = "reader"\nmetric = "iops"\nat_least = 1000', True),
        ('stream = "log, flushes"\nmetric = "p99_us"\nat_most = 1', False),
    ],
)
def test_claims_name_a_stream(run_path: Path, tmp_path: Path, claim: str, met: bool) -> None:
    claims = tmp_path / "claims.toml"
    claims.write_text(f'[[claim]]\ntest = "host"\nsection = "Long"\n{claim}\n')
    checked = CliRunner().invoke(cli, ["check", str(run_path), str(claims)])
    assert (checked.exit_code == 0) is met, checked.output
    name = claim.partition("\n")[0].removeprefix("stream = ").strip('"')
    assert f"{name}: 4 KiB " in checked.output


def test_a_claim_about_an_unknown_stream_lists_the_streams(run_path: Path, tmp_path: Path) -> None:
    claims = tmp_path / "claims.toml"
    claims.write_text('[[claim]]\ntest = "host"\nstream = "logg"\nmetric = "iops"\nat_least = 1\n')
    checked = CliRunner().invoke(cli, ["check", str(run_path), str(claims)])
    assert checked.exit_code == 1
    assert "no stream has that name; there are 'all', 'reader', 'log', 'log, flushes'" in " ".join(
        checked.output.split()
    )


def test_a_claim_without_a_stream_never_means_the_total(run_path: Path, tmp_path: Path) -> None:
    """The mix and the block size of the total are only bounds, so a claim about 50 % reads does not refer to
    the total.
    """
    claims = tmp_path / "claims.toml"
    load = 'read_percent = 50\nblock_size = "1024k"\n'
    claims.write_text(f'[[claim]]\ntest = "host"\nsection = "Long"\n{load}metric = "iops"\nat_least = 1\n')
    checked = CliRunner().invoke(cli, ["check", str(run_path), str(claims)])
    assert checked.exit_code == 1
    assert "that mix and block size was not run there, but 100/0 4k" in " ".join(checked.output.split())


def test_a_baseline_judges_the_latency_of_an_offered_stream(run_path: Path, tmp_path: Path) -> None:
    """The IOPS of a stream with an offered rate only repeat the offered rate, so a baseline compares its mean
    latency.
    """
    claims = tmp_path / "claims.toml"
    claims.write_text(f'[baseline]\nrun = "{run_path}"\nwithin_percent = 5\n')
    checked = call("check", run_path, claims)
    output = " ".join(checked.output.split())
    assert "log: 4 KiB sequential write mean latency" in output
    assert "log, flushes: 4 KiB sequential write, mean latency" in output
    assert "reader: 4 KiB random read IOPS" in output
    assert "log: 4 KiB sequential write IOPS" not in output


def test_a_comparison_gives_the_total_no_mix(run_path: Path) -> None:
    """The tables of a comparison show a dash for the mix and the block size of the total, as the report of a single run
    does.
    """
    result, _ = read(run_path)
    comparison = compare([result, replace(result, info=replace(result.info, uuid="another"))])
    table = build_section_table(comparison, [row for row in comparison.rows if row.section == "Long"])
    places = [table.columns.index(title) for title in ("Block size (KiB)", "R/W %")]
    totals = [row for row in table.rows if row[0] == "all"]
    assert totals
    assert {row[place] for row in totals for place in places} == {"-"}


def test_every_form_says_what_a_trimmer_covers_and_who_flushed(run_path: Path, tmp_path: Path) -> None:
    """The terminal, the page and Markdown state the share of a reader's region that a load trims. The version of fio is
    a condition for flushes and trims, but a simulated drive does not use fio.
    """
    covers = "trimmer covers 20.0 % of the region of reader"
    assert covers in call("show", run_path).output
    made = call("report", run_path, "-o", tmp_path / "a.html", "--markdown", tmp_path / "a.md")
    assert made.exit_code == 0, made.output
    assert covers in (tmp_path / "a.md").read_text()
    assert covers in (tmp_path / "a.html").read_text()
    result, _ = read(run_path)
    label = "Flushes and trims issued by"
    assert label not in dict(build_view(result).tests[0].facts)
    by_fio = replace(result, info=replace(result.info, fio_version="fio-3.33", ioengine="io_uring"))
    assert dict(build_view(by_fio).tests[0].facts)[label] == "fio-3.33, io_uring, direct I/O"


def test_lines_and_json_of_progress_have_each_stream(run_path: Path) -> None:
    """The progress output reports the end of a step with the figures of each stream and of its flushes, in words and as
    JSON.
    """
    with RunFile(run_path) as opened:
        (test,) = opened.record().tests
    step = next(step for step in test.steps if step.section == "Long")
    stream = io.StringIO()
    PlainLines(stream, every_s=None)(StepEnded(test="host", record=step), datetime(2026, 1, 2, tzinfo=UTC))
    (line,) = stream.getvalue().splitlines()
    assert [part.split(" IOPS")[0].rpartition(" ")[0] for part in line.split("together: ")[1].split("; ")] == [
        "reader",
        "log",
        "log, flushes",
        "trimmer",
    ]
    stream = io.StringIO()
    JsonLines(stream)(StepEnded(test="host", record=step), datetime(2026, 1, 2, tzinfo=UTC))
    told = json.loads(stream.getvalue())["streams"]
    assert told["trimmer"]["iops"] == pytest.approx(20, rel=0.01)
    assert told["log, flushes"]["iops"] == pytest.approx(100, rel=0.01)
