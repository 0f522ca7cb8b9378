"""Estimates of a run. tkperf adds the durations of all phases at given rates. An estimate is never more certain than
these rates.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tkperf
from tkperf.analysis.estimates import PURGE, RateSource
from tkperf.engine.fio_setup import read_bytes_per_s
from tkperf.model.errors import EngineError, UsageError
from tkperf.pipeline.estimate_run import ASSUMED, estimate_run, parse_rate, parse_rating, probe_rates, read_rates
from tkperf.pipeline.run_plan import RunPlan
from tkperf.system.process import Completed, run_command

CAPACITY_BYTES = 240_057_409_536  # the capacity of sim:sata-ssd


def plan_of(*tests: str, profile: str = "pts-e-1.1") -> RunPlan:
    return tkperf.make_plan("ssd", "sim:sata-ssd", profile=profile, tests=tests)


def test_fills_take_the_time_that_the_rate_says() -> None:
    """The duration of a fill is the time that two passes over the drive take at the given rate. Only the bytes of these
    two passes are certain to be written.
    """
    estimate = estimate_run(plan_of("iops"), parse_rate("1GB/s"))
    purge, fill, rounds = estimate.stages
    assert purge.what == PURGE
    assert fill.shortest_s == fill.longest_s == pytest.approx(2 * CAPACITY_BYTES / 1e9)
    assert fill.least_bytes == fill.most_bytes == estimate.least_bytes == 2 * CAPACITY_BYTES
    assert (rounds.shortest_s, rounds.longest_s) == (5 * 56 * 60, 25 * 56 * 60)
    assert rounds.what == "5 to 25 rounds of 56 steps"
    # The test has seven mixes with eight block sizes each: 100, 95, 65, 50, 35, 5 and 0 % reads.
    writing_s = 25 * 60 * 8 * (0 + 0.05 + 0.35 + 0.5 + 0.65 + 0.95 + 1)
    assert rounds.most_bytes == pytest.approx(1e9 * writing_s)
    assert rounds.least_bytes == 0


def test_a_stream_writes_no_more_than_the_amount_that_ends_it() -> None:
    """A stream writes at most four drive fills, plus the slice in which this amount is reached. The maximum duration of
    the stream is 24 hours.
    """
    _, stream = estimate_run(plan_of("writesat"), parse_rate("500MB/s")).stages
    slice_bytes = 60 * 500e6
    assert 4 * CAPACITY_BYTES <= stream.most_bytes < 4 * CAPACITY_BYTES + slice_bytes
    assert stream.shortest_s == 33 * 60
    assert stream.longest_s == 24 * 3600
    # At 5 MB/s, the stream becomes steady before it has written this amount, but not before minute 121.
    _, slow = estimate_run(plan_of("writesat"), parse_rate("5MB/s")).stages
    assert slow.shortest_s == 121 * 60
    assert slow.most_bytes == pytest.approx(24 * 3600 * 5e6)


def test_an_earlier_run_of_the_model_tells_each_workloads_rate(tmp_path: Path) -> None:
    """An earlier run of the same model provides the rate of each workload. If the write saturation of this run ended
    because of the written amount, the estimate assumes the same duration.
    """
    plan = plan_of("writesat")
    before = tkperf.run(plan, "before", folder=tmp_path)
    (section,) = before.tests[0].sections
    rates = read_rates(tmp_path / "before.tkperf", plan.dut)
    assert rates.source is RateSource.RUN
    estimate = estimate_run(plan, rates)
    took_s = section.slices[-1].start_s + section.slices[-1].duration_s
    assert estimate.shortest_s == estimate.longest_s == pytest.approx(took_s)
    assert estimate.most_bytes == pytest.approx(before.tests[0].written_bytes or 0, rel=0.03)
    assert estimate.least_bytes == estimate.most_bytes
    # If the earlier run does not contain a test, the rate of this test is only a bound.
    assert estimate_run(plan_of("tp"), rates).stages[2].least_bytes == 0
    other = tkperf.make_plan("ssd", "sim:nvme-4kn", tests=["writesat"])
    with pytest.raises(UsageError, match="this run measured simulated sata-ssd, but the device is simulated"):
        read_rates(tmp_path / "before.tkperf", other.dut)


def test_the_share_of_a_drives_life() -> None:
    """The used share of a drive's life is the written amount divided by the rated amount. The rated amount is the TBW
    rating, or the DWPD rating times the capacity and the days of the warranty.
    """
    plan = plan_of("tp")
    estimate = estimate_run(plan, ASSUMED, parse_rating("100TBW"))
    least, most = estimate.shares or (0, 0)
    assert least == pytest.approx(4 * CAPACITY_BYTES / 100e12)
    assert most == pytest.approx(estimate.most_bytes / 100e12)
    assert not estimate.costs_much
    years = estimate_run(plan, ASSUMED, parse_rating("0.5DWPD", 3.0))
    assert years.rated_bytes == pytest.approx(0.5 * CAPACITY_BYTES * 365 * 3)
    assert estimate_run(plan, ASSUMED, parse_rating("20TBW")).costs_much


@pytest.mark.parametrize("text", ["0TBW", "TBW", "-1DWPD", "5", "1e3TBW", "2000DWPD", "1nDWPD"])
def test_what_is_no_rating(text: str) -> None:
    """A text that is not a rating is refused, and the message lists the accepted forms."""
    with pytest.raises(UsageError, match="--rated"):
        parse_rating(text)


@pytest.mark.parametrize("text", ["0.1TBW", "900000PBW"])
def test_a_rating_that_no_drive_of_this_size_has(text: str) -> None:
    """A rating is refused if it permits less than one write of the whole drive, or more than a thousand a day."""
    with pytest.raises(UsageError, match=r"impossible for a drive of 240\.1 GB"):
        estimate_run(plan_of("tp"), ASSUMED, parse_rating(text))


@pytest.mark.parametrize("text", ["0", "0MB/s", "fast", "2TB/s", "-5MB/s", ""])
def test_what_is_no_rate(text: str) -> None:
    """A rate is refused if it is not a number, is zero, or is higher than the rate of any drive."""
    with pytest.raises(UsageError, match="--rate"):
        parse_rate(text)


def test_what_is_not_there_yet_is_not_read(tmp_path: Path) -> None:
    """The rate of a scratch file that does not exist yet cannot be measured. The estimate states that the rate of this
    file is an assumption.
    """
    plan = tkperf.make_plan("ssd", tmp_path / "scratch", size="64MiB", profile="quick")
    rates = probe_rates(plan.dut)
    assert rates.source is RateSource.ASSUMED
    assert "nothing yet to read from" in rates.note
    assert list(tmp_path.iterdir()) == []


@pytest.mark.fio
def test_the_probe_reads_and_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """tkperf reads a file to measure the rate of reads. The result equals the rate that fio reports.
    This measurement also works without write permission, and it changes no data.
    """
    answers: list[Completed] = []

    def run_and_record(words: list[str], *, timeout_s: float) -> Completed:
        answers.append(run_command(words, timeout_s=timeout_s))
        return answers[-1]

    monkeypatch.setattr("tkperf.engine.fio_setup.run_command", run_and_record)
    path = tmp_path / "scratch.img"
    path.write_bytes(bytes(range(256)) * 32_768)
    path.chmod(0o444)
    before = path.read_bytes(), path.stat().st_mtime_ns
    rate = read_bytes_per_s(str(path), path.stat().st_size, seconds=1)
    (job,) = json.loads(answers[-1].stdout)["jobs"]
    assert rate == pytest.approx(job["read"]["bw_bytes"], rel=0.01)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    with pytest.raises(EngineError, match="fio cannot read"):
        read_bytes_per_s(str(tmp_path / "none"), 1 << 20, seconds=1)
    assert [each.name for each in tmp_path.iterdir()] == ["scratch.img"]


def test_bursts_and_pauses_are_one_row() -> None:
    """The bursts and pauses of a host idle recovery section form one row of the estimate. The row contains the number
    of bursts and the number of pauses, and its duration includes all bursts and pauses.
    """
    stages = estimate_run(plan_of("hir", profile="quick"), parse_rate("500MB/s")).stages
    assert [stage.section for stage in stages] == [
        "Steady-state preconditioning",
        "Steady-state preconditioning",
        "Wait state 1 s",
        "Baseline after 1 s",
        "Wait state 2 s",
        "Baseline after 2 s",
    ]
    second = stages[4]
    assert second.what == "3 times a stream of RND 4k R/W 0/100 TC2/QD16, with 3 pauses"
    assert (second.shortest_s, second.longest_s) == (9.0, 9.0)
