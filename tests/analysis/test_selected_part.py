"""A user requests a histogram of a part of a run. tkperf finds exactly this part, or refuses the request with a
one-line message.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path

import pytest

from tests.builders import run_info, simulate
from tkperf.analysis.details import CellDetail, build_details
from tkperf.analysis.results import RunResult
from tkperf.analysis.run_results import analyse
from tkperf.analysis.selected_part import SelectedPart, find_selected_parts, parse_selection
from tkperf.model.errors import UsageError
from tkperf.model.histogram import EMPTY, Histogram
from tkperf.model.record import RunRecord, StepKind, StepRecord
from tkperf.page.sections import build_selected_parts
from tkperf.page.view import build_view
from tkperf.procedures import SSD_TESTS
from tkperf.runfile.reader import RunFile


@pytest.fixture(scope="module")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunFile]:
    """Return a file with short runs of the latency test and of Myce's levels and streams."""
    folder = tmp_path_factory.mktemp("chosen")
    simulate(folder, run_info(), suite={name: SSD_TESTS[name] for name in ("lat", "demand", "qos")})
    with RunFile(folder / "run.tkperf") as opened:
        yield opened


@pytest.fixture(scope="module")
def known(run_file: RunFile) -> tuple[RunResult, RunRecord, tuple[CellDetail, ...]]:
    record = run_file.record()
    result = analyse(record)
    seconds = {test.name: run_file.seconds(test) for test in record.tests}
    return result, record, build_details(result, record, seconds)


Known = tuple[RunResult, RunRecord, tuple[CellDetail, ...]]


def choose(run_file: RunFile, known: Known, text: str) -> SelectedPart:
    (chosen,) = find_selected_parts([parse_selection(text)], known[0], known[2], run_file.samples)
    return chosen


def steps(known: Known, section: str, kind: StepKind) -> list[StepRecord]:
    found = [step for test in known[1].tests for step in test.steps if step.section == section]
    return [step for step in found if step.kind is kind]


def whole(pieces: Iterator[Histogram]) -> Histogram:
    return reduce(add, pieces, EMPTY)


def test_a_round_is_the_measurement_of_its_step(run_file: RunFile, known: Known) -> None:
    """The histogram of a round has the full resolution of fio and contains every I/O of the step. The histograms of
    several rounds are added.
    """
    slices = steps(known, "QoS random 50/50", StepKind.CONTINUOUS)
    third = choose(run_file, known, "QoS random 50/50: 3")
    assert (third.words, third.coarse) == ("round 3", False)
    assert third.measurement.read == slices[2].measurement.read
    assert third.measurement.write == slices[2].measurement.write
    several = choose(run_file, known, "qos random 50/50:3-5").measurement.both
    assert several.histogram == whole(each.measurement.both.histogram for each in slices[2:5])
    everything = choose(run_file, known, "QoS random 50/50").measurement.both
    assert everything.histogram == whole(each.measurement.both.histogram for each in slices)


def test_a_level_is_found_by_what_it_offered(run_file: RunFile, known: Known) -> None:
    """A level can be selected by its offered rate or by the number of its round. Both ways select the same level."""
    levels = steps(known, "Demand 100/0", StepKind.ROUND)
    offered = levels[3].workload.offered_iops
    by_rate = choose(run_file, known, f"Demand 100/0:{offered:.0f}iops")
    assert by_rate.workload == levels[3].workload
    assert by_rate.measurement.read == levels[3].measurement.read
    assert replace(choose(run_file, known, "Demand 100/0:4"), words=by_rate.words) == by_rate


def test_seconds_are_those_of_the_charts(run_file: RunFile, known: Known) -> None:
    """Selected seconds are the seconds that the charts show. In this stream, only one second of every 1.5 s is
    recorded, because warm-ups are left out.
    """
    slices = steps(known, "QoS sequential 100/0", StepKind.CONTINUOUS)
    # These steps begin at 3.0, 4.5 and 6.0 s.
    chosen = choose(run_file, known, "QoS sequential 100/0:3-7s")
    samples = [run_file.samples("qos", step) for step in slices[2:5]]
    assert [len(each) for each in samples] == [1, 1, 1]
    assert chosen.measurement.both.histogram == whole(each[0].both.histogram for each in samples)
    assert (chosen.coarse, chosen.words) == (True, "seconds 3\N{EN DASH}7")
    assert chosen.measurement.duration_s == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "give NAME"),
        (":3", "give NAME"),
        ("lat:", "give NAME"),
        ("lat:x", "give NAME"),
        ("lat:5-3", "ends before it begins"),
        ("lat:5-5s", "ends before it begins"),
    ],
)
def test_what_has_not_the_form_is_refused(text: str, reason: str) -> None:
    """A selection with a wrong form is refused before the run file is opened."""
    with pytest.raises(UsageError, match=reason) as caught:
        parse_selection(text)
    assert str(caught.value).startswith(f"--histogram '{text}'")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("iops:3", "no part of the run has this name. The names are lat, Latency; "),
        (
            "Latency:3",
            "several workloads contain this part. Add the name of one of these workloads, such as 'Latency, 100/0 8k'",
        ),
        ("demand:2", "several workloads contain this part"),
        ("Latency, 0/100 4k:99", "does not contain this part. The last round is 5"),
        ("Latency, 0/100 4k:900-901s", "does not contain this part. The last round is"),
        ("Demand 100/0:7iops", "does not contain this part. The levels are "),
        ("Latency, 0/100 4k:7iops", "does not contain this part. The run has no offered rate"),
        ("QoS sequential 100/0:1.2-1.4s", "does not contain this part"),
        ("QoS sequential 100/0:0.2-0.4s", "the run file contains no samples of these seconds"),
    ],
)
def test_what_is_not_there_or_not_the_only_one_is_refused(
    run_file: RunFile, known: Known, text: str, reason: str
) -> None:
    """A selection that does not exist or is ambiguous is refused. The message lists the existing names, so that the
    user can correct the selection.
    """
    with pytest.raises(UsageError) as caught:
        choose(run_file, known, text)
    assert reason in str(caught.value)


def test_a_cell_of_many_is_named_with_its_section(run_file: RunFile, known: Known) -> None:
    """If several sections contain a cell, the user can put the name of the section before the name of the cell. If the
    name of the section is missing, the error proposes this form.
    """
    chosen = choose(run_file, known, "Latency, 0/100 4k: 2")
    (step,) = [
        step
        for step in steps(known, "Latency", StepKind.ROUND)
        if step.number == 2 and step.workload.mix_and_size == "0/100 4k"
    ]
    assert chosen.measurement.write == step.measurement.write


def test_a_report_shows_what_was_chosen_with_its_quantiles(run_file: RunFile, known: Known) -> None:
    """A selected part becomes a section of its test, with quantiles. A mix has one histogram for reads and one for
    writes.
    """
    chosen = (choose(run_file, known, "QoS random 50/50:3"), choose(run_file, known, "QoS sequential 100/0:3-7s"))
    assert build_selected_parts("lat", chosen) == ()
    view = build_view(known[0], details=known[2], selected=chosen)
    mix, seconds = view.tests[2].sections[-2:]
    assert mix.title == "QoS random 50/50, round 3"
    assert [row[0] for row in mix.tables[0].rows] == ["reads", "writes", "reads and writes"]
    ios = chosen[0].measurement
    assert [row[-1] for row in mix.tables[0].rows] == [f"{count:,}" for count in (ios.read.ios, ios.write.ios, ios.ios)]
    assert [len(chart.on_paper) for chart in mix.charts] == [2, 2]
    assert seconds.charts[0].text.endswith("up to 1/16 of the response time.")


def test_the_page_has_the_histogram_of_every_round(known: Known) -> None:
    """The page contains the histogram of every round of a cell. The width of a bucket is at most 1/16 of its latency,
    and no I/O is lost.
    """
    from tests.page.test_view import unpack

    view = build_view(known[0], details=known[2])
    (cell,) = (each for each in view.cells if each.title.startswith("QoS random 50/50: "))
    apart = cell.apart
    assert apart is not None
    assert (apart.name, apart.numbers) == ("slice", tuple(range(1, 11)))
    lower, upper = unpack(apart.lower), unpack(apart.upper)
    counts = unpack(apart.counts).reshape(-1, lower.size)
    slices = steps(known, "QoS random 50/50", StepKind.CONTINUOUS)
    assert counts.sum(axis=1)[:10].tolist() == [each.measurement.ios for each in slices]
    assert counts.sum(axis=1)[10:].tolist() == [
        sum(each.measurement.read.ios for each in slices),
        sum(each.measurement.write.ios for each in slices),
    ]
    assert (upper > lower).all()
    assert (upper - lower <= lower / 16 + 1e-3 + 1e-9).all()
    marks = unpack(apart.marks).reshape(-1, len(apart.mark_names))
    greatest = [(each.measurement.both.latency_max_ns or 0) / 1000 for each in slices]
    assert marks[:10, -1].tolist() == pytest.approx(greatest, rel=2e-5)


def test_the_command_refuses_before_it_writes(tmp_path: Path) -> None:
    """If a selection does not exist, the command refuses it before it writes a report."""
    from click.testing import CliRunner

    from tkperf.cli.main import cli

    simulate(tmp_path, run_info(), suite={"demand": SSD_TESTS["demand"]})
    run = str(tmp_path / "run.tkperf")
    refused = CliRunner().invoke(cli, ["report", run, "--histogram", "Demand 100/0:99"])
    assert refused.exit_code != 0
    assert not (tmp_path / "run.html").exists()
    done = CliRunner().invoke(cli, ["report", run, "--histogram", "Demand 100/0:1"])
    assert done.exit_code == 0, done.output
    assert "Demand 100/0, round 1" in (tmp_path / "run.html").read_text()
