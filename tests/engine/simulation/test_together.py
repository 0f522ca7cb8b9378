"""Streams on simulated drives. The results of every preset are plausible, and the streams share the drive."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from tkperf.engine import Execution
from tkperf.engine.simulated import SimulatedEngine
from tkperf.engine.simulation.flash_drive import FlashDrive
from tkperf.engine.simulation.models import PRESET_MODELS, FlashModel
from tkperf.model.phases import Continuous, Fill
from tkperf.model.plausibility import RequestedLoad, why_implausible
from tkperf.model.workload import Access, ActiveRange, Arrival, Burst, Step, Stream, Workload, combine

GIB = 1 << 30
RANGE_BYTES = 16 * GIB
READER = Workload(access=Access.RANDOM, read_percent=100, block_size_bytes=4096, jobs=2, io_depth=16)
RATED = replace(READER, jobs=1, io_depth=4, offered_iops=60, arrival=Arrival.POISSON)
WRITER = replace(READER, read_percent=0)
LOG = Workload(
    access=Access.SEQUENTIAL,
    read_percent=0,
    block_size_bytes=4096,
    jobs=1,
    io_depth=1,
    flush_every=4,
    region=ActiveRange(offset_bytes=0, length_bytes=GIB),
)
TRIMMER = Workload(
    access=Access.RANDOM,
    read_percent=0,
    block_size_bytes=GIB // 16,
    jobs=1,
    io_depth=1,
    trims=True,
    burst=Burst(4, 0.5),
    region=ActiveRange(offset_bytes=8 * GIB, length_bytes=8 * GIB),
)


def ignore(*_: object) -> None:
    """Ignore the seconds of a measurement."""


def filled(preset: str) -> SimulatedEngine:
    engine = SimulatedEngine(PRESET_MODELS[preset], RANGE_BYTES)
    pass_ = replace(WRITER, access=Access.SEQUENTIAL, block_size_bytes=131072)
    engine.fill(Fill(section="S", workload=pass_, passes=1), then=None, on_sample=lambda *_: None)
    return engine


def run(engine: SimulatedEngine, *streams: Stream, duration_s: float = 10) -> Execution:
    step = Step(workload=combine(streams), duration_s=duration_s)
    execution = engine.measure(step, then=None, on_sample=lambda *_: None)
    requested = RequestedLoad(workload=step.workload, duration_s=duration_s)
    assert why_implausible(execution.with_lead_in, requested, execution.evidence) is None
    return execution


@pytest.mark.parametrize("preset", PRESET_MODELS)
def test_every_drive_runs_streams_plausibly(preset: str) -> None:
    """For every preset, the counts, bytes, latencies and flushes of each stream are consistent, and the stream with an
    offered rate reaches this rate.
    """
    streams = (
        Stream(name="rated", workload=RATED),
        Stream(name="log", workload=LOG, delay_s=2),
        Stream(name="trimmer", workload=TRIMMER),
    )
    measured = run(filled(preset), *streams).measurement
    assert measured.duration_s == pytest.approx(8)
    assert measured.of_stream("rated").iops == pytest.approx(60, rel=0.1)
    log = measured.of_stream("log")
    assert log.write.ios > 0
    assert abs(log.flush.ios - log.write.ios / 4) <= 2
    # The trimming stream issues 4 trims and then pauses for half a second.
    assert measured.of_stream("trimmer").trim.ios / 8 == pytest.approx(8, rel=0.2)
    assert measured.read.ios + measured.write.ios == sum(part.read.ios + part.write.ios for part in measured.streams)


@pytest.mark.parametrize(("delay_s", "duration_s"), [(0.05, 0.1), (0.5, 1.0), (0.4, 5.0), (2.3, 5.0)])
def test_a_measurement_begins_with_the_last_stream(delay_s: float, duration_s: float) -> None:
    """The measurement begins exactly when the last stream begins, even if this moment is not at the start of a second.
    Before this moment, only the other streams issue I/Os.
    """
    late = Stream(name="log", workload=LOG, delay_s=delay_s)
    execution = run(filled("nvme-4kn"), Stream(name="reader", workload=READER), late, duration_s=duration_s)
    measured = execution.measurement
    assert measured.duration_s == pytest.approx(duration_s - delay_s)
    assert execution.lead_in_s == pytest.approx(delay_s)
    assert measured.samples[0].start_s == pytest.approx(delay_s)
    assert all(sample.of_stream("log").write.ios for sample in measured.samples)
    assert execution.with_lead_in.write.ios == measured.write.ios
    assert execution.with_lead_in.read.ios > measured.read.ios


def test_streams_slow_each_other_down() -> None:
    """Reads take longer together with an unlimited writer than without it, and the writer is slower together with the
    reads than without them.
    """
    engine = filled("nvme-4kn")
    both = run(engine, Stream(name="reader", workload=READER), Stream(name="writer", workload=WRITER)).measurement
    alone = engine.measure(Step(workload=READER, duration_s=10), then=None, on_sample=lambda *_: None).measurement
    writes = engine.measure(Step(workload=WRITER, duration_s=10), then=None, on_sample=lambda *_: None).measurement
    reader, writer = both.of_stream("reader"), both.of_stream("writer")
    assert (reader.latency_mean_us or 0) > 1.2 * (alone.latency_mean_us or 0)
    assert writer.iops < 0.95 * writes.iops


def test_streams_that_need_little_do_not_disturb_each_other() -> None:
    """At low rates, two streams reach their offered rates, and each of them has the latency of a single I/O."""
    engine = filled("nvme-4kn")
    other = replace(RATED, read_percent=0, offered_iops=100)
    both = run(engine, Stream(name="reader", workload=RATED), Stream(name="writer", workload=other)).measurement
    alone = engine.measure(Step(workload=RATED, duration_s=10), then=None, on_sample=lambda *_: None).measurement
    assert both.of_stream("reader").latency_mean_us == pytest.approx(alone.latency_mean_us, rel=0.2)


@pytest.mark.parametrize("preset", ["nvme-4kn", "client-tlc", "hdd"])
@pytest.mark.parametrize("share", [0.3, 0.7])
def test_a_neighbour_that_does_nothing_changes_nothing(preset: str, share: float) -> None:
    """While a stream of two trims a second runs, reads at an offered rate take as long as they take alone."""
    rested = replace(READER, io_depth=1) if preset == "hdd" else READER
    full_iops = (
        filled(preset).measure(Step(workload=rested, duration_s=5), then=None, on_sample=ignore).measurement.iops
    )
    reader = replace(rested, offered_iops=share * full_iops, arrival=Arrival.POISSON)
    engine = filled(preset)
    alone = engine.measure(Step(workload=reader, duration_s=10), then=None, on_sample=ignore).measurement
    idle = replace(TRIMMER, block_size_bytes=4096, offered_iops=2, burst=None)
    next_to = run(engine, Stream(name="r", workload=reader), Stream(name="t", workload=idle)).measurement.of_stream("r")
    assert alone.latency_mean_us is not None
    assert next_to.latency_mean_us == pytest.approx(alone.latency_mean_us, rel=0.05)


def test_reads_wait_longer_the_busier_the_drive_is() -> None:
    """Reads at an offered rate take longer as this rate increases, even while another stream runs."""
    engine = filled("nvme-4kn")
    writer = Stream(name="w", workload=replace(WRITER, offered_iops=5000, arrival=Arrival.POISSON))
    means_us = []
    for iops in (100_000, 300_000, 500_000):
        reader = replace(READER, jobs=8, io_depth=32, offered_iops=iops, arrival=Arrival.POISSON)
        measured = run(engine, Stream(name="r", workload=reader), writer).measurement.of_stream("r")
        assert measured.iops == pytest.approx(iops, rel=0.02)
        assert measured.latency_mean_us is not None
        means_us.append(measured.latency_mean_us)
    assert means_us[0] < means_us[1] < means_us[2]


def test_trims_free_space() -> None:
    """After its whole range was trimmed, a drive with garbage collection has less mapped data, so it copies less when
    it writes.
    """
    engine = filled("sata-ssd")
    for _ in range(3):
        engine.measure(Step(workload=WRITER, duration_s=600), then=None, on_sample=lambda *_: None)
    before = engine.drive.translation.mapped_bytes  # type: ignore[attr-defined]
    trims = replace(TRIMMER, region=None, burst=None)
    engine.measure(Step(workload=trims, duration_s=1), then=None, on_sample=lambda *_: None)
    assert engine.drive.translation.mapped_bytes < before / 2  # type: ignore[attr-defined]


def test_slices_of_streams_begin_once() -> None:
    """Only the first slice contains the time before a late stream begins."""
    engine = filled("sata-ssd")
    combination = combine((Stream(name="reader", workload=READER), Stream(name="log", workload=LOG, delay_s=2)))
    phase = Continuous(section="S", number=1, workload=combination, duration_s=5.0, longest_s=10.0)
    first, second = (engine.measure_slice(phase, then=None, on_sample=lambda *_: None) for _ in range(2))
    assert first.measurement.duration_s == pytest.approx(3)
    assert second.measurement.duration_s == pytest.approx(5)
    assert second.whole is None
    assert second.measurement.of_stream("log").write.ios


def test_a_simulated_drive_does_not_remember_every_rate() -> None:
    """Streams of several days need no more memory than streams of minutes, although streams ask the drive for another
    rate each second.
    """
    model = PRESET_MODELS["sata-ssd"]
    assert isinstance(model, FlashModel)
    drive = FlashDrive(model, RANGE_BYTES, np.random.default_rng(1))

    def grow_bytes(rates: range) -> int:
        before, _ = tracemalloc.get_traced_memory()
        for rate in rates:
            drive.serve(replace(RATED, offered_iops=rate), 1e-6)
        return tracemalloc.get_traced_memory()[0] - before

    tracemalloc.start()
    try:
        first_bytes = grow_bytes(range(1, 501))
        assert grow_bytes(range(501, 2501)) < first_bytes
    finally:
        tracemalloc.stop()
