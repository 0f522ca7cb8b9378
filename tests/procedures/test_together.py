"""Loads that run at the same time. The tests check the phases that a workload file with such loads describes, and the
mistakes that tkperf reports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.procedures.test_own_workloads import own
from tkperf.analysis.estimates import Rates
from tkperf.model.errors import UsageError
from tkperf.model.measurement import IoStats, Measurement, StreamPart
from tkperf.model.phases import Answer, Continuous, Phase, Round, SectionOutcome, Yielded
from tkperf.model.workload import Access, ActiveRange, Arrival, Burst, Stream, Workload, combine
from tkperf.pipeline.estimate_run import ASSUMED, estimate_run, parse_rate
from tkperf.pipeline.run_plan import plan_run
from tkperf.pipeline.run_request import RunRequest
from tkperf.procedures import forecast

MIB, GIB = 1 << 20, 1 << 30
FILE = """
format = 1
name = "mix"
title = "Several loads"

[loads.reader]
access = "random"
read_percent = 100
block_size_kib = 4
jobs = 2
io_depth = 8
offered_iops = 500
arrival = "poisson"
range_end_percent = 50

[loads.log]
access = "sequential"
read_percent = 0
block_size_kib = 4
jobs = 1
flush_every = 8
range_begin_percent = 50

[loads.writer]
access = "random"
read_percent = 0
block_size_kib = 64
jobs = 1
io_depth = 4
offered_megabytes_per_s = 6.5536
random_percent = 25
delay_s = 2

[loads.trimmer]
access = "random"
read_percent = 0
trims = true
block_size_kib = 2097152
jobs = 1
burst_ios = 3
burst_pause_s = 0.5

[[phases]]
kind = "rounds"
section = "Together"
together = ["reader", "log", "writer"]
step_s = 10
tracked = [{ quantity = "latency_mean_us", load = "reader" }, { quantity = "iops" }]

[[phases]]
kind = "stream"
section = "With trims"
together = ["reader", "trimmer"]
slice_s = 10
longest_s = 30
"""
READER = Workload(
    access=Access.RANDOM,
    read_percent=100,
    block_size_bytes=4096,
    jobs=2,
    io_depth=8,
    offered_iops=500,
    arrival=Arrival.POISSON,
    region=ActiveRange(offset_bytes=0, length_bytes=8 * GIB),
)
LOG = Workload(
    access=Access.SEQUENTIAL,
    read_percent=0,
    block_size_bytes=4096,
    jobs=1,
    io_depth=1,
    flush_every=8,
    region=ActiveRange(offset_bytes=8 * GIB, length_bytes=8 * GIB),
)
WRITER = Workload(
    access=Access.RANDOM,
    read_percent=0,
    block_size_bytes=65536,
    jobs=1,
    io_depth=4,
    offered_iops=100,
    random_percent=25,
)
TRIMMER = Workload(
    access=Access.RANDOM, read_percent=0, block_size_bytes=2 * GIB, jobs=1, io_depth=1, trims=True, burst=Burst(3, 0.5)
)
TOGETHER = combine(
    (
        Stream(name="reader", workload=READER),
        Stream(name="log", workload=LOG),
        Stream(name="writer", workload=WRITER, delay_s=2),
    )
)


def asked_of(text: str, tmp_path: Path, latencies_us: tuple[float, ...] = (100,)) -> list[Yielded]:
    """Return all phases and outcomes of the test. The latency of the reader has the given values, one after the
    other.
    """
    test, profile = own(text, tmp_path)
    latencies = list(latencies_us)

    def answer(phase: Phase, _following: Sequence[Phase]) -> Answer:
        latency_us = latencies.pop(0) if len(latencies) > 1 else latencies[0]
        ios = IoStats(ios=1000, bytes=1000, latency_ios=1000, latency_sum_ns=round(latency_us * 1e6))
        names = [stream.name for stream in phase_load(phase).together]
        parts = tuple(StreamPart(name=name, read=ios) for name in names)
        measured = Measurement(duration_s=1.0, read=ios, write=IoStats(), streams=parts)
        return {phase_load(phase): measured} if isinstance(phase, Round) else measured

    return list(forecast.drive(test.procedure(profile, 16 * GIB), answer))


def phase_load(phase: Phase) -> Workload:
    assert isinstance(phase, Round | Continuous)
    return phase.steps[0].workload if isinstance(phase, Round) else phase.workload


def test_streams_are_what_the_file_says(tmp_path: Path) -> None:
    """A combination contains each load under its name, with the delay, pauses, flushes, rate and part of the range from
    the file.
    """
    asked = asked_of(FILE, tmp_path)
    rounds = [phase for phase in asked if isinstance(phase, Round)]
    assert rounds[0].steps[0].workload == TOGETHER
    (stream,) = {phase.workload for phase in asked if isinstance(phase, Continuous)}
    assert stream == combine((Stream(name="reader", workload=READER), Stream(name="trimmer", workload=TRIMMER)))


def test_steady_state_can_be_that_of_one_stream(tmp_path: Path) -> None:
    """If steady state is defined for one stream, rounds continue until the latency of this stream is steady, even if
    the IOPS of all streams become steady earlier.
    """
    outcomes = [one for one in asked_of(FILE, tmp_path, (500, 400, 300, 200, 100)) if isinstance(one, SectionOutcome)]
    assert outcomes[0].verdict is not None
    assert outcomes[0].verdict.reached
    assert outcomes[0].window == (5, 6, 7, 8, 9)
    assert {verdict.tracking for verdict in outcomes[0].verdicts} == {
        "mean latency of reader",
        "reader + log + writer, together IOPS",
    }


def test_a_plan_counts_the_writes_of_all_streams(tmp_path: Path) -> None:
    """A plan counts the writes of all streams. An offered rate limits the writes of a stream. Trims and reads do not
    count as writes.
    """
    only_rated = FILE.replace('together = ["reader", "log", "writer"]', 'together = ["reader", "writer"]')
    only_rated = only_rated.replace('{ quantity = "latency_mean_us", load = "reader" }, ', "")
    (tmp_path / "own.toml").write_text(only_rated)
    plan = plan_run(RunRequest(suite="ssd", device="sim:nvme-4kn", tests=(str(tmp_path / "own.toml"),)))
    stages = estimate_run(plan, ASSUMED).stages
    rated = next(stage for stage in stages if stage.section == "Together")
    assert rated.most_bytes == pytest.approx(rated.longest_s * 6.5536e6)
    assert next(stage for stage in stages if stage.section == "With trims").most_bytes == 0


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"log", "writer"]', '"log", "wirter"]', r"phase 1 \(rounds\), key together: load 'wirter'"),
        ('"log", "writer"]', '"log", "log"]', r"phase 1 \(rounds\), key together: load log occurs twice"),
        (
            'together = ["reader", "trimmer"]',
            'together = ["reader"]',
            "key together: one load alone cannot run together with others",
        ),
        (
            'together = ["reader", "trimmer"]',
            "",
            r"phase 2 \(stream\), key load, together: a phase takes one of these two keys",
        ),
        (
            "[[phases]]",
            '[[phases]]\nkind = "purge"\ntogether = ["reader", "log"]\n[[phases]]',
            r"phase 1 \(purge\), key together: no other key is allowed here",
        ),
        ("jobs = 2", "jobs = 255", "key together: the loads have 257 threads in all, and at most 256"),
        ("trims = true", "trims = true\nio_depth = 2", "load trimmer, key io_depth: fio trims one block at a time"),
        ("trims = true", "", "load trimmer, key block_size_kib: more than 16,384 KiB"),
        ("burst_pause_s = 0.5", "", "load trimmer, key burst_pause_s: it and burst_ios"),
        (
            "delay_s = 2",
            "delay_s = 6",
            "key together: load writer begins 6 s after the others, which is more than half of the 10 s",
        ),
        ("random_percent = 25", "random_percent = 25\noffered_iops = 5", "key offered_megabytes_per_s: either"),
        ("flush_every = 8", "flush_every = 8\nrandom_percent = 5", "load log, key random_percent: access has to be"),
        ('load = "reader"', 'load = "trimmer"', r"phase 1 \(rounds\), key tracked: load 'trimmer'"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, old: str, new: str, says: str) -> None:
    """Each mistake is reported in one line with the load or phase and the key, before a device is opened."""
    with pytest.raises(UsageError, match=says):
        own(FILE.replace(old, new, 1), tmp_path)


@pytest.mark.parametrize("name", ["all", "reader, flushes"])
def test_a_stream_cannot_have_the_name_of_another_row(tmp_path: Path, name: str) -> None:
    """Results use ``all`` for the total and ``NAME, flushes`` for the flushes of a load. A stream with such a name is
    refused, because it could not be distinguished in tables, claims and exports.
    """
    text = FILE.replace("[loads.trimmer]", f'[loads."{name}"]').replace('"trimmer"', f'"{name}"')
    with pytest.raises(UsageError, match=rf"phase 2 \(stream\), key together: the name {name} has another meaning"):
        own(text, tmp_path)


def test_one_stream_begins_at_once(tmp_path: Path) -> None:
    """A combination in which every load has a delay is refused. fio 3.33 reports no runtime for such jobs."""
    text = FILE.replace("trims = true", "trims = true\ndelay_s = 3").replace(
        "io_depth = 8", "io_depth = 8\ndelay_s = 1"
    )
    with pytest.raises(UsageError, match=r"phase 2 .*, key together: every load has delay_s, .* each delay_s by 1$"):
        own(text, tmp_path)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"jobs": 255}, "key together: the loads have 257 threads in all"),
        ({"step_s": 3}, "key together: load writer begins 2 s after the others, which is more than half of the 3 s"),
    ],
)
def test_an_option_that_makes_a_workload_file_impossible_is_refused(
    tmp_path: Path, options: dict[str, Any], says: str
) -> None:
    """If -nj or -rt makes the test of a workload file impossible, the error names the test and the key. No other test
    runs in its place.
    """
    (tmp_path / "own.toml").write_text(FILE.replace("jobs = 2\n", "", 1))
    request = RunRequest(suite="ssd", device="sim:nvme-4kn", tests=(str(tmp_path / "own.toml"),), **options)
    with pytest.raises(UsageError, match=rf"^with these options, the test mix of a workload file .*{says}"):
        plan_run(request)


def test_more_than_16_streams_are_refused(tmp_path: Path) -> None:
    """More than 16 streams are refused, because fio reports on each thread, and these reports would be too
    expensive.
    """
    loads = "".join(
        f'[loads.r{number}]\naccess = "random"\nread_percent = 100\nblock_size_kib = 4\njobs = 1\n'
        for number in range(17)
    )
    names = ", ".join(f'"r{number}"' for number in range(17))
    text = FILE.replace("[[phases]]", loads + "[[phases]]", 1).replace('"reader", "trimmer"', names)
    with pytest.raises(
        UsageError, match=r"phase 2 .*, key together: 17 loads are more than the 16 that can run at the same time"
    ):
        own(text, tmp_path)


def test_trims_need_a_device_that_takes_them(tmp_path: Path) -> None:
    """If a file is to be measured, trims are refused before the file is opened for writing, because fio cannot trim a
    file.
    """
    (tmp_path / "own.toml").write_text(FILE)
    (tmp_path / "disk.img").write_bytes(b"")
    with (tmp_path / "disk.img").open("r+b") as file:
        file.truncate(4 * GIB)
    request = RunRequest(suite="ssd", device=str(tmp_path / "disk.img"), tests=(str(tmp_path / "own.toml"),))
    with pytest.raises(UsageError, match="test mix trims, and fio trims block devices only"):
        plan_run(request)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("block_size_kib = 2097152", "block_size_kib = 2097152\nrange_begin_mib = 10\nrange_end_mib = 100", "trimmer"),
        (
            "jobs = 1\nflush_every = 8\nrange_begin_percent = 50",
            "jobs = 200\nrange_begin_mib = 1\nrange_end_mib = 1.5",
            "log",
        ),
        ("range_end_percent = 50", "range_begin_mib = 99999999\nrange_end_mib = 100000000", "reader"),
    ],
)
def test_a_region_that_does_not_fit_names_its_load(tmp_path: Path, old: str, new: str, says: str) -> None:
    """A region is refused if it is smaller than a block, too small for all threads, or beyond the end of the device.
    The refusal is one line that names the load of the region.
    """
    (tmp_path / "own.toml").write_text(FILE.replace(old, new, 1))
    request = RunRequest(suite="ssd", device="sim:nvme-4kn", tests=(str(tmp_path / "own.toml"),))
    with pytest.raises(UsageError, match=f"load {says}: ") as refused:
        plan_run(request)
    assert "\n" not in str(refused.value)


def test_a_plan_warns_of_streams_that_offer_more_than_the_device_writes(tmp_path: Path) -> None:
    """A plan warns if the offered writes of all streams together exceed a known rate of the device. If the rate is
    assumed, or if the excess is within the rounding of the rates, no warning is printed.
    """
    (tmp_path / "own.toml").write_text(FILE)
    plan = plan_run(RunRequest(suite="ssd", device="sim:nvme-4kn", tests=(str(tmp_path / "own.toml"),)))

    def warned(rates: Rates) -> list[str]:
        return [note.text for note in estimate_run(plan, rates).warnings if note.code == "offer-above-rate"]

    assert not warned(ASSUMED)
    assert not warned(parse_rate("7MB/s"))
    assert not warned(replace(parse_rate("7MB/s"), bytes_per_s=round(6_553_600 / 1.004)))
    (text,) = warned(parse_rate("6MB/s"))
    assert text.startswith("test mix, section 'Together': its streams together offer 6.6 MB/s of writes")
