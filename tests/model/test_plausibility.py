"""Impossible values are reported. Values from a correct run on a busy host or on a slow device are accepted."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import io_stats
from tkperf.engine.simulated import SimulatedEngine
from tkperf.engine.simulation.models import PRESET_MODELS
from tkperf.model.histogram import Histogram
from tkperf.model.measurement import NO_IO, CpuUse, IoStats, Measurement
from tkperf.model.phases import Continuous, Fill
from tkperf.model.plausibility import Evidence, JobSeen, RequestedLoad, why_implausible
from tkperf.model.workload import Access, Arrival, BlockShare, Step, Workload

QUICK = Workload(access=Access.RANDOM, read_percent=0, block_size_bytes=4096, jobs=2, io_depth=16)
STEP = RequestedLoad(workload=QUICK, duration_s=1.0)
SLICE = RequestedLoad(workload=QUICK, duration_s=1.0, running=True)


def writes(ios: int, latency_ns: int) -> IoStats:
    if not ios:
        return NO_IO
    return IoStats(
        ios=ios,
        bytes=ios * 4096,
        latency_ios=ios,
        latency_sum_ns=ios * latency_ns,
        latency_min_ns=latency_ns,
        latency_max_ns=latency_ns,
        histogram=Histogram.from_bins({latency_ns: ios}),
    )


def honest(*, iops: float = 10_000, duration_s: float = 1.0, planned_s: float = 1.0) -> tuple[Measurement, Evidence]:
    """Return a step that keeps its queues full until its planned end and then completes the remaining I/Os."""
    ios = max(32, round(iops * planned_s))
    seen = writes(ios, round(32 * duration_s / ios * 1e9))
    job = JobSeen(ios=ios // 2, bytes=seen.bytes // 2, elapsed_s=duration_s, reached_depth=True)
    evidence = Evidence(jobs=(job, job), own_clock_s=duration_s + 0.1, wall_clock_s=duration_s + 0.1)
    return Measurement(duration_s=duration_s, read=NO_IO, write=seen), evidence


def test_an_honest_step_is_believed() -> None:
    measurement, evidence = honest()
    assert why_implausible(measurement, STEP, evidence) is None
    assert why_implausible(measurement, STEP, Evidence()) is None


SLOW = {
    "1 IOPS, 32 s to drain": (1.0, 32.0),
    "resets of an NVMe drive: ends 69 s late": (1.0, 70.0),
    "a tenth of a second late": (10_000.0, 1.1),
    "null_blk of 5 ms": (6_400.0, 1.005),
}


@pytest.mark.parametrize(("iops", "duration_s"), SLOW.values(), ids=SLOW)
def test_a_slow_device_is_believed(iops: float, duration_s: float) -> None:
    """The result of a slow device is accepted. A step may end later by the duration of its longest I/O, and the queue
    may be empty for a time.
    """
    measurement, evidence = honest(iops=iops, duration_s=duration_s)
    assert why_implausible(measurement, STEP, evidence) is None


def test_one_stuck_io_is_believed() -> None:
    """A step with one stuck I/O is accepted: 31 I/Os end within a second, and one I/O ends after a reset of the
    controller.
    """
    seen = io_stats([10**9] * 31 + [61 * 10**9])
    job = JobSeen(ios=16, bytes=16 * 4096, elapsed_s=61.0, reached_depth=True)
    evidence = Evidence(jobs=(job, replace(job, elapsed_s=1.0)), own_clock_s=61.2)
    measurement = Measurement(duration_s=61.0, read=NO_IO, write=seen)
    assert why_implausible(measurement, STEP, evidence) is None


def test_a_step_judged_late_is_believed() -> None:
    """A deviation on a single clock proves nothing. A result is therefore accepted if tkperf was stopped for an hour or
    if the wall clock was set.
    """
    measurement, evidence = honest()
    for late in (
        replace(evidence, own_clock_s=3600.0),
        replace(evidence, wall_clock_s=-7e6),
        replace(evidence, wall_clock_s=7e6),
        replace(evidence, wall_clock_s=None),
    ):
        assert why_implausible(measurement, STEP, late) is None


def change_write(measurement: Measurement, **changes: object) -> Measurement:
    return replace(measurement, write=replace(measurement.write, **changes))  # type: ignore[arg-type]


HONEST, WITNESS = honest()
FIRST, SECOND = WITNESS.jobs or ()
IMPOSSIBLE: dict[str, tuple[Measurement, Evidence, str]] = {
    "stopped": (HONEST, replace(WITNESS, stopped=True), "stopped by a signal"),
    "too short": (replace(HONEST, duration_s=0.01), WITNESS, "instead of 1 s"),
    "longer than since its start": (replace(HONEST, duration_s=1e6), WITNESS, "only 1.10 s after"),
    "long without a long I/O": (
        replace(HONEST, duration_s=30.0),
        replace(WITNESS, own_clock_s=31.0),
        "no I/O took longer",
    ),
    "no time": (replace(HONEST, duration_s=0.0), WITNESS, "lasted 0"),
    "no number": (replace(HONEST, duration_s=math.nan), WITNESS, "lasted nan"),
    "infinite": (replace(HONEST, duration_s=math.inf), WITNESS, "lasted inf"),
    "negative count": (change_write(HONEST, ios=-1), WITNESS, "negative"),
    "negative latency": (change_write(HONEST, latency_min_ns=-1), WITNESS, "latencies lie between"),
    "minimum above maximum": (
        change_write(HONEST, latency_min_ns=2, latency_max_ns=1),
        WITNESS,
        "latencies lie between",
    ),
    "negative CPU": (replace(HONEST, cpu=CpuUse(busiest_thread_percent=-1.0, all_threads_percent=0.0)), WITNESS, "CPU"),
    "reads in a write step": (replace(HONEST, read=HONEST.write), WITNESS, "direction"),
    "nothing": (replace(HONEST, write=NO_IO), WITNESS, "no I/O was done"),
    "an idle job": (
        HONEST,
        replace(WITNESS, jobs=(FIRST, JobSeen(ios=0, bytes=0, elapsed_s=1.0))),
        "job 2 of 2 did no I/O",
    ),
    "a job that ended early": (
        HONEST,
        replace(WITNESS, jobs=(replace(FIRST, elapsed_s=0.4), SECOND)),
        "job 1 of 2 ran for 0.4 s",
    ),
    "a depth never reached": (
        HONEST,
        replace(WITNESS, jobs=(replace(FIRST, reached_depth=False),) * 2),
        "never had 16",
    ),
    "too few bytes": (change_write(HONEST, bytes=10**6), WITNESS, "failed or was removed"),
    "too many bytes": (change_write(HONEST, bytes=10**9), WITNESS, "bytes an I/O"),
    "a latency missing": (change_write(HONEST, latency_ios=9_999), WITNESS, "have a latency"),
    "a histogram of fewer": (
        change_write(HONEST, histogram=Histogram.from_bins({3_200_000: 9_000})),
        WITNESS,
        "9000 are in the histogram",
    ),
    "a mean outside": (change_write(HONEST, latency_sum_ns=10_000), WITNESS, "does not lie between"),
    "an extreme outside": (change_write(HONEST, latency_max_ns=10**9), WITNESS, "not those of the"),
    "a mean not of the histogram": (
        replace(HONEST, write=replace(io_stats([10**5] * 9_999 + [10**8]), latency_sum_ns=9 * 10**11)),
        WITNESS,
        "is not that of the histogram",
    ),
    "more outstanding than asked": (
        replace(HONEST, write=writes(10_000, 5_000_000)),
        WITNESS,
        "would be 50 I/Os outstanding",
    ),
    "fewer outstanding than asked": (
        replace(HONEST, write=writes(10_000, 100_000)),
        WITNESS,
        "are 1.0 I/Os outstanding",
    ),
    "more than threads can do": (
        replace(HONEST, write=writes(8_400_000, 3_800)),
        WITNESS,
        "more than 2 threads can do",
    ),
}


@pytest.mark.parametrize(("measurement", "evidence", "says"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_what_cannot_be_is_told(measurement: Measurement, evidence: Evidence, says: str) -> None:
    """The message about each implausible result names the implausible value."""
    assert says in (why_implausible(measurement, STEP, evidence) or "believed")


def test_at_a_depth_of_one_idle_time_between_ios_is_no_proof() -> None:
    """At a queue depth of one, idle time between I/Os does not make a result implausible. The time that the host needs
    between I/Os has no known limit.
    """
    plan = RequestedLoad(workload=replace(QUICK, jobs=1, io_depth=1), duration_s=1.0)
    job = JobSeen(ios=100, bytes=409_600, elapsed_s=1.0, reached_depth=True)
    measurement = Measurement(duration_s=1.0, read=NO_IO, write=writes(100, 20_000))
    assert why_implausible(measurement, plan, Evidence(jobs=(job,))) is None


def at_rate(offered_iops: float, ios: int) -> tuple[Measurement, RequestedLoad, Evidence]:
    """Return a second at an offered rate, with a queue depth of 16. The device needs only one place in the queue."""
    workload = replace(QUICK, jobs=2, io_depth=16, offered_iops=offered_iops)
    job = JobSeen(ios=ios // 2, bytes=ios // 2 * 4096, elapsed_s=1.0, reached_depth=False)
    measurement = Measurement(duration_s=1.0, read=NO_IO, write=writes(ios, 20_000))
    return measurement, RequestedLoad(workload=workload, duration_s=1.0), Evidence(jobs=(job, job))


def test_at_an_offered_rate_the_queue_need_not_be_full() -> None:
    """At an offered rate, the queue may be nearly empty, because the device completes the I/Os as fast as they arrive.
    Without an offered rate, the queue must have been full.
    """
    measurement, plan, evidence = at_rate(1000.0, 1000)
    assert why_implausible(measurement, plan, evidence) is None
    reached = tuple(replace(job, reached_depth=True) for job in evidence.jobs or ())
    assert why_implausible(measurement, plan, replace(evidence, jobs=reached)) is None
    unbounded = replace(plan, workload=replace(plan.workload, offered_iops=None))
    assert "never had 16" in str(why_implausible(measurement, unbounded, evidence))
    said = why_implausible(measurement, unbounded, replace(evidence, jobs=reached))
    assert "outstanding on average, where 32 were asked" in str(said)


def test_the_number_of_offered_ios_varies_only_by_chance() -> None:
    """The number of offered I/Os does not vary if they are evenly spaced and have one size.

    A mix of block sizes is offered in bytes, so the number of I/Os varies with their sizes.
    """
    evenly = replace(QUICK, block_size_bytes=65536, offered_iops=100.0)
    assert evenly.arrivals_deviation(400.0) == 0
    assert replace(evenly, arrival=Arrival.POISSON).arrivals_deviation(400.0) == 20.0
    blocks = (BlockShare(4096, 50), BlockShare(65536, 50))
    mix = replace(evenly, block_mix=blocks)
    # The standard deviation of two equally frequent sizes is half of their difference.
    assert mix.arrivals_deviation(400.0) == pytest.approx(20.0 * 30720 / 34816)


def test_no_more_than_is_offered_can_be_done() -> None:
    """A result with more I/Os than were offered is refused, because fio must have run another workload. With random
    arrivals, the number may exceed the offered number within its scatter.
    """
    measurement, plan, evidence = at_rate(1000.0, 1200)
    assert why_implausible(measurement, plan, evidence) is None
    measurement, plan, evidence = at_rate(1000.0, 1400)
    said = why_implausible(measurement, plan, evidence)
    assert said == "1,400 IOPS were done where 1,000 were offered"


# Slices of streams.


def slice_of(ios: tuple[int, ...], silent_s: float) -> tuple[Measurement, Evidence]:
    seen = writes(sum(ios), 32 * 10**9 // max(1, sum(ios)))
    jobs = tuple(
        JobSeen(ios=each, bytes=each * 4096, elapsed_s=9.0, silent_s=0.0 if each else silent_s) for each in ios
    )
    measurement = Measurement(duration_s=1.0, read=NO_IO, write=seen)
    return measurement, Evidence(jobs=jobs, own_clock_s=1.1, wall_clock_s=1.1)


@pytest.mark.parametrize(
    ("ios", "silent_s", "believed"),
    [
        ((20_000, 0), math.inf, False),  # the job never completed an I/O
        # for 60 s, the job completed no I/O, which is longer than a disk needs for repeated attempts to read a sector
        ((20_000, 0), 60.0, False),
        ((20_000, 0), 1.0, True),  # one bad sector blocks the whole queue of the job
        ((100, 0), math.inf, True),  # the device is so slow that the job could not be expected to complete an I/O yet
        ((0, 0), math.inf, True),  # the device hangs
        ((9_000, 9_000), 0.0, True),
    ],
)
def test_a_job_of_a_stream_is_missed_when_it_could_be_expected(
    ios: tuple[int, ...], silent_s: float, believed: bool
) -> None:
    """A slice in which a job completed no I/O is refused only if the job would have completed I/O if it were still
    running. Streams cannot be repeated, so tkperf requires proof.
    """
    assert (why_implausible(*_reorder(slice_of(ios, silent_s))) is None) is believed


def _reorder(seen: tuple[Measurement, Evidence]) -> tuple[Measurement, RequestedLoad, Evidence]:
    return seen[0], SLICE, seen[1]


@given(st.floats(0, 0.4), st.floats(0, 0.4), st.integers(0, 32))
def test_counters_of_a_running_job_may_trail(bytes_s: float, latencies_s: float, in_flight: int) -> None:
    """The counters of a running job may omit the I/Os in flight. On a host without a free CPU, they may also be up to
    0.4 s behind.
    """
    measurement, evidence = slice_of((10_000, 10_000), 0.0)
    trailing = round(latencies_s * 20_000) + in_flight
    fewer = writes(20_000 - trailing, 1_600_000)
    measurement = change_write(
        measurement,
        bytes=measurement.bytes - round(bytes_s * 20_000) * 4096,
        latency_ios=fewer.ios,
        latency_sum_ns=fewer.latency_sum_ns,
        histogram=fewer.histogram,
    )
    assert why_implausible(measurement, SLICE, evidence) is None
    if trailing:  # after the end of a step, its counters must be exact
        assert why_implausible(measurement, STEP, evidence) is not None


@given(st.floats(0.05, 200.0))
def test_a_slice_may_be_short_or_long(duration_s: float) -> None:
    """A slice may be shorter or longer than planned, because a device that does not answer for minutes delays the
    report that ends the slice.
    """
    seen = writes(64, round(duration_s / 2 * 1e9))
    measurement = Measurement(duration_s=duration_s, read=NO_IO, write=seen)
    jobs = (JobSeen(ios=32, bytes=32 * 4096, elapsed_s=duration_s),) * 2
    evidence = Evidence(jobs=jobs, own_clock_s=duration_s + 100, wall_clock_s=duration_s + 100)
    assert why_implausible(measurement, SLICE, evidence) is None


def test_a_vanished_drive_is_noticed_within_a_slice_of_a_minute() -> None:
    """If a drive vanishes, tkperf detects this within one slice of 60 s. fio counts reads of 0 bytes as I/Os. tkperf
    detects the failure if such reads continue for a third of the slice.
    """
    measurement, evidence = slice_of((10_000, 10_000), 0.0)
    measurement = change_write(replace(measurement, duration_s=60.0), bytes=20_000 * 4096 * 2 // 3)
    evidence = replace(evidence, own_clock_s=60.0, wall_clock_s=60.0)
    assert "failed or was removed" in (why_implausible(measurement, SLICE, evidence) or "")


# The following rules apply to fills and to the simulated engine.


def test_a_fill_is_its_jobs_bytes() -> None:
    """Each job of a fill must write exactly its planned bytes, including the job that writes the remainder with another
    block size.
    """
    workload = Workload(access=Access.SEQUENTIAL, read_percent=0, block_size_bytes=131072, jobs=1, io_depth=4)
    seen = replace(writes(802, 4_000_000), bytes=800 * 131072 + 2 * 36_864)
    measurement = Measurement(duration_s=1.0, read=NO_IO, write=seen)
    whole = JobSeen(ios=800, bytes=800 * 131072, planned_bytes=800 * 131072, elapsed_s=1.0)
    rest = JobSeen(ios=2, bytes=2 * 36_864, planned_bytes=2 * 36_864, elapsed_s=0.1)
    plan = RequestedLoad(workload=workload, duration_s=None)
    assert why_implausible(measurement, plan, Evidence(jobs=(whole, rest))) is None
    short = replace(rest, bytes=36_864)
    reason = why_implausible(measurement, plan, Evidence(jobs=(whole, short)))
    assert reason == "job 2 of 2 moved 36864 bytes where exactly 73728 were asked"


@pytest.mark.parametrize("preset", PRESET_MODELS)
@pytest.mark.parametrize("read_percent", [0, 65, 100])
@pytest.mark.parametrize("io_depth", [1, 32])
def test_a_simulated_drive_is_believed(preset: str, read_percent: int, io_depth: int) -> None:
    """The results of a simulated drive pass the same plausibility check as the results of every engine."""
    engine = SimulatedEngine(PRESET_MODELS[preset], 1 << 30)
    for block_size_bytes in (512, 4096, 1 << 20):
        workload = Workload(
            access=Access.RANDOM,
            read_percent=read_percent,
            block_size_bytes=block_size_bytes,
            jobs=4,
            io_depth=io_depth,
        )
        for duration_s in (1.0, 1.5, 60.0):
            step = Step(workload=workload, duration_s=duration_s)
            seen = engine.measure(step, then=None, on_sample=lambda *_: None).measurement
            plan = RequestedLoad(workload=workload, duration_s=duration_s)
            assert why_implausible(seen, plan, Evidence()) is None
            phase = Continuous(section="S", number=1, workload=workload, duration_s=duration_s, longest_s=60)
            seen = engine.measure_slice(phase, then=None, on_sample=lambda *_: None).measurement
            assert why_implausible(seen, replace(plan, running=True), Evidence()) is None
    fill = Fill(section="S", workload=replace(workload, access=Access.SEQUENTIAL, read_percent=0), passes=2)
    seen = engine.fill(fill, then=None, on_sample=lambda *_: None).measurement
    assert why_implausible(seen, RequestedLoad(workload=fill.workload, duration_s=None), Evidence()) is None


@pytest.mark.parametrize(
    ("ios", "mean_bytes", "believed"),
    [
        (100_000, 2304, True),
        (100_000, 2304 * 1.03, False),  # the difference exceeds the random variation
        (100, 2304 * 1.2, True),  # with so few I/Os, this difference can be random
        (100_000, 4096, False),
        (100_000, 0, False),
    ],
)
def test_bytes_of_a_mix_go_by_its_mean_block(ios: int, mean_bytes: float, believed: bool) -> None:
    """The bytes of a mix must agree with its mean block size. Deviations of up to six standard deviations plus one
    percent count as random.
    """
    mix = (BlockShare(512, 50), BlockShare(4096, 50))
    load = replace(STEP.workload, block_mix=mix, block_size_bytes=4096)
    seen = replace(writes(ios, 100_000), bytes=round(ios * mean_bytes))
    measurement = Measurement(duration_s=1, read=NO_IO, write=seen)
    reason = why_implausible(measurement, replace(STEP, workload=load), Evidence())
    assert (reason is None) is believed, reason
    assert reason is None or "2304 bytes on average were asked" in reason
