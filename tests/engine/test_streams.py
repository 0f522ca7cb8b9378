"""Several loads at the same time with the real fio. The tests cover the streams of a combination, flushes, trims,
pauses and delays.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.engine.conftest import workload
from tkperf.engine import Execution, Next
from tkperf.engine.fio import FioEngine
from tkperf.engine.fio_job import FioTarget, SequentialCursors, count_threads, render_step_job
from tkperf.model.measurement import Sample
from tkperf.model.phases import Continuous
from tkperf.model.plausibility import RequestedLoad, why_implausible
from tkperf.model.workload import Access, ActiveRange, Burst, Step, Stream, Workload, combine

MIB = 1 << 20
READER = Stream(name="reader", workload=workload(read_percent=100, jobs=2, io_depth=4))
LOG = Stream(
    name="log",
    workload=Workload(
        access=Access.SEQUENTIAL,
        read_percent=0,
        block_size_bytes=4096,
        jobs=1,
        io_depth=1,
        flush_every=4,
        region=ActiveRange(offset_bytes=16 * MIB, length_bytes=16 * MIB),
    ),
)
PAUSING = Stream(name="pausing", workload=replace(workload(jobs=1, io_depth=1), burst=Burst(5, 0.1)))


def run(engine: FioEngine, step: Step, then: Next | None = None) -> tuple[Execution, list[Sample]]:
    seen: list[Sample] = []
    execution = engine.measure(step, then=then, on_sample=lambda sample, _: seen.append(sample))
    return execution, seen


def require_plausible(execution: Execution, step: Step) -> None:
    requested = RequestedLoad(workload=step.workload, duration_s=step.duration_s)
    assert why_implausible(execution.with_lead_in, requested, execution.evidence) is None


@pytest.mark.fio
def test_streams_run_together_and_each_has_its_own_figures(make_engine: Callable[..., FioEngine]) -> None:
    """Each stream has its own I/Os, latencies and flushes, both in total and in every second. The total is the sum of
    the streams. The name of a stream may contain spaces.
    """
    combination = combine((READER, LOG, replace(PAUSING, name="pausing now")))
    step = Step(workload=combination, duration_s=3.0)
    execution, _ = run(make_engine(), step)
    require_plausible(execution, step)
    measured = execution.measurement
    assert [part.name for part in measured.streams] == ["reader", "log", "pausing now"]
    reader, log, pausing = (measured.of_stream(name) for name in ("reader", "log", "pausing now"))
    assert reader.read.ios == reader.read.histogram.total == measured.read.ios
    assert not reader.write.ios
    assert log.write.ios + pausing.write.ios == measured.write.ios
    assert abs(log.flush.ios - log.write.ios / 4) <= 1
    assert log.flush.latency_mean_ns
    assert measured.flush == log.flush
    # The stream issues 5 writes and then pauses for 0.1 s, so its rate is limited to about 50 writes a second. On a
    # busy host, the pauses are longer.
    assert 5 < pausing.write.ios <= 5 * (measured.duration_s / 0.1 + 2)
    for name, whole in (("reader", reader), ("log", log), ("pausing now", pausing)):
        seconds = [sample.of_stream(name) for sample in measured.samples]
        assert sum(second.both.ios for second in seconds) == whole.ios
        assert sum(second.flush.ios for second in seconds) == whole.flush.ios


@pytest.mark.fio
def test_a_delayed_stream_is_measured_when_all_run(make_engine: Callable[..., FioEngine]) -> None:
    """If a stream begins late, no result contains the seconds before its start. Views show these seconds, and the
    counters of the device include their I/Os.
    """
    combination = combine((READER, replace(PAUSING, delay_s=1.5)))
    step = Step(workload=combination, duration_s=4.0)
    execution, seen = run(make_engine(), step)
    require_plausible(execution, step)
    # fio reports every second. The first second begins when fio starts, not when the gate opens. The measurement begins
    # with the first report after the delay.
    whole_s, origin_s = execution.with_lead_in.duration_s, execution.measurement.samples[0].start_s
    assert 3.7 <= whole_s <= 34
    assert origin_s == min(sample.start_s for sample in seen if sample.start_s >= 1.5)
    assert execution.measurement.duration_s == pytest.approx(whole_s - origin_s, abs=0.01)
    assert execution.with_lead_in.read.ios > execution.measurement.read.ios
    lead_in = [sample for sample in seen if sample.start_s < origin_s]
    assert sum(sample.read.ios for sample in lead_in) > 0
    bursts = (origin_s - 1.5) / 0.1 + 3
    assert sum(sample.of_stream("pausing").both.ios for sample in lead_in) <= 5 * bursts


@pytest.mark.fio
def test_a_combination_follows_without_a_pause_and_in_slices(make_engine: Callable[..., FioEngine]) -> None:
    """A combination begins without a pause after the previous load, as a single load does. The combination is divided
    into slices, and no I/O is lost between them.
    """
    engine = make_engine()
    combination = combine((READER, LOG))
    phase = Continuous(section="S", number=1, workload=combination, duration_s=2.0, longest_s=4.0)
    first = Step(workload=workload(), duration_s=1.5)
    # On a busy host, fio may exit before tkperf notices the planned end. The combination then still waits at its gate.
    for _ in range(10):
        execution = run(engine, first, Next.for_certain(phase))[0]
        if execution.handed_over_s is not None:
            break
    assert execution.handed_over_s is not None
    slices = [engine.measure_slice(phase, then=None, on_sample=lambda *_: None) for _ in range(2)]
    # The combination was released before its measurement was requested, and the same fio was measured.
    assert slices[0].earliest_s == execution.handed_over_s
    assert 0 <= slices[0].started_s - execution.handed_over_s < 30
    for each in slices:
        requested = RequestedLoad(workload=combination, duration_s=2.0, running=True)
        assert why_implausible(each.measurement, requested, each.evidence) is None
    assert sum(each.measurement.of_stream("reader").read.ios for each in slices) > 0
    assert sum(each.measurement.of_stream("log").flush.ios for each in slices) > 0


def test_the_job_of_a_combination_names_each_stream() -> None:
    """In the fio job of a combination, each stream has separate sections. fio itself applies the delays, unless the
    stream waits at a gate. The number of threads includes the threads of all streams.
    """
    combination = combine((READER, LOG, replace(PAUSING, delay_s=2.0)))
    target = FioTarget(path="/x", ioengine="libaio", active_range=ActiveRange(offset_bytes=0, length_bytes=64 * MIB))
    step = Step(workload=combination, duration_s=10.0)
    text = render_step_job(step, target, seed=1)
    shared, reader, log, pausing = text.split("\n[")
    assert "exit_what=all" in shared
    assert reader.startswith("reader]\nrw=randread\n")
    assert "runtime=10000ms" in reader
    assert "fsync=4\n" in log
    assert f"offset={16 * MIB}\n" in log
    assert "startdelay=2.000s" in pausing
    assert "runtime=8000ms" in pausing
    assert count_threads(text) == 4
    held = render_step_job(step, target, prerun="wait", seed=1)
    assert "exec_prerun=wait && sleep 2.000" in held
    assert "startdelay" not in held


def test_a_sequential_stream_goes_on_where_it_stopped() -> None:
    """Each sequential stream of a combination has its own position within its region, and continues there."""
    combination = combine((READER, LOG))
    cursors = SequentialCursors(ActiveRange(offset_bytes=0, length_bytes=64 * MIB))
    step = Step(workload=combination, duration_s=1.0)
    assert cursors.starts_bytes(step) == (0,)
    cursors.advance(step, (0,), (100, 200, MIB))
    assert cursors.starts_bytes(step) == (MIB,)


@pytest.mark.parametrize("name", ["a]\nfilename=/dev/other", "global", "global2", "[x", "ä\r\nsize=1", "a;b#c", "a b"])
def test_the_name_of_a_stream_is_never_an_option(name: str) -> None:
    """The name of a load changes no option of the job file, even if the name contains special characters. Each stream
    has a separate section.
    """
    target = FioTarget(path="/x", ioengine="libaio", active_range=ActiveRange(offset_bytes=0, length_bytes=64 * MIB))
    plain, named = (
        render_step_job(
            Step(workload=combine((replace(READER, name=of_reader), LOG)), duration_s=1.0), target, seed=1
        ).splitlines()
        for of_reader in ("plain", name)
    )
    differing = [(old, new) for old, new in zip(plain, named, strict=True) if old != new]
    assert len(differing) == 1
    ((_, head),) = differing
    assert re.fullmatch(r"\[(?!global)[A-Za-z0-9._-]+\]", head)
