"""Laws that every simulated drive obeys, and the typical behaviour of each kind of drive."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from tests.engine.simulation.settled import settled_amplification
from tkperf.engine.simulated import SimulatedEngine
from tkperf.engine.simulation.flash_drive import FlashDrive
from tkperf.engine.simulation.models import PRESET_MODELS, DiskModel, DriveModel, FlashModel
from tkperf.model.measurement import Measurement
from tkperf.model.phases import Fill
from tkperf.model.workload import Access, ActiveRange, Arrival, BlockShare, Step, Workload, Zone

SATA, TLC, DISK = PRESET_MODELS["sata-ssd"], PRESET_MODELS["client-tlc"], PRESET_MODELS["hdd"]
RANDOM_WRITES = Workload(access=Access.RANDOM, read_percent=0, block_size_bytes=4096, jobs=4, io_depth=32)
SEQUENTIAL_WRITES = Workload(access=Access.SEQUENTIAL, read_percent=0, block_size_bytes=131072, jobs=1, io_depth=32)
READS = replace(RANDOM_WRITES, read_percent=100)
MIXED = replace(RANDOM_WRITES, read_percent=65)


def make(model: DriveModel) -> SimulatedEngine:
    return SimulatedEngine(model, model.capacity_bytes)


def measure(engine: SimulatedEngine, work: Workload, duration_s: float = 20.0) -> Measurement:
    step = Step(workload=work, duration_s=duration_s)
    return engine.measure(step, then=None, on_sample=lambda *_: None).measurement


def settle(engine: SimulatedEngine, seconds: float = 2 * 3600) -> None:
    measure(engine, RANDOM_WRITES, seconds)


@cache
def _settled() -> SimulatedEngine:
    engine = make(SATA)
    settle(engine)
    return engine


def steady_sata() -> SimulatedEngine:
    """Return a simulated SATA drive after two hours of random writes."""
    return deepcopy(_settled())


@pytest.mark.parametrize("preset", PRESET_MODELS)
@pytest.mark.parametrize("read_percent", [0, 65, 100])
@pytest.mark.parametrize(("jobs", "io_depth"), [(1, 1), (2, 4), (4, 32), (32, 32)])
def test_littles_law(preset: str, read_percent: int, jobs: int, io_depth: int) -> None:
    """On a simulated drive, the number of outstanding I/Os equals the rate times the mean latency (Little's law). This
    applies to the whole measurement and to each second.
    """
    work = replace(RANDOM_WRITES, read_percent=read_percent, jobs=jobs, io_depth=io_depth)
    seen = measure(make(PRESET_MODELS[preset]), work)
    outstanding = seen.both.latency_sum_ns / 1e9 / seen.duration_s
    assert outstanding == pytest.approx(jobs * io_depth, rel=0.02)
    for each in seen.samples:
        outstanding = each.both.latency_sum_ns / 1e9 / each.duration_s
        assert outstanding == pytest.approx(jobs * io_depth, rel=0.2)


@pytest.mark.parametrize("preset", ["sata-ssd", "nvme-4kn", "client-tlc", "client-qlc"])
def test_fresh_out_of_the_box_is_faster_than_steady(preset: str) -> None:
    """A new drive is at least 1.5 times as fast at random writes as the same drive in steady state."""
    engine = make(PRESET_MODELS[preset])
    fresh = measure(engine, RANDOM_WRITES, 60).iops
    settle(engine)
    assert measure(engine, RANDOM_WRITES, 60).iops < fresh / 1.5


def test_a_steady_drive_has_the_analytic_amplification() -> None:
    """The simulated engine has the same write amplification as a translation layer that runs without the engine. The
    rate of the simulated drive is the rate that the dies achieve with this write amplification.
    """
    engine = steady_sata()
    assert isinstance(engine.drive, FlashDrive)
    assert isinstance(SATA, FlashModel)
    amplification = settled_amplification(SATA.spare_percent / 100)
    assert engine.drive.translation.amplification == pytest.approx(amplification, rel=0.02)
    die_us = amplification * SATA.program_us / SATA.program_bytes
    die_us += (amplification - 1) * SATA.read_us / SATA.page_bytes
    iops = SATA.dies * 1e6 / (4096 * die_us)
    assert measure(engine, RANDOM_WRITES, 60).iops == pytest.approx(iops, rel=0.03)


def test_a_purge_makes_it_as_new() -> None:
    engine = make(SATA)
    fresh = measure(engine, RANDOM_WRITES).iops
    engine = steady_sata()
    engine.purge()
    assert measure(engine, RANDOM_WRITES).iops == pytest.approx(fresh, rel=0.02)


def test_it_recovers_while_idle_and_only_for_a_while() -> None:
    """After a minute of rest, a drive writes in a burst above its steady rate. After the burst, the rate is the same as
    before.
    """
    engine = steady_sata()
    steady = measure(engine, RANDOM_WRITES, 60).iops
    engine.idle(60.0, then=None)
    burst = measure(engine, RANDOM_WRITES, 10).iops
    assert burst > 1.5 * steady
    measure(engine, RANDOM_WRITES, 300)
    assert measure(engine, RANDOM_WRITES, 60).iops == pytest.approx(steady, rel=0.05)


def test_a_longer_rest_recovers_more() -> None:
    """After a longer rest, more data is written at the high speed, until all of the spare flash is free."""
    written = []
    for rest_s in (0.05, 10.0, 60.0, 120.0):
        engine = steady_sata()
        engine.idle(rest_s, then=None)
        written.append(measure(engine, RANDOM_WRITES, 60).ios)
    assert written[0] < written[1] < written[2]
    assert written[3] == pytest.approx(written[2], rel=0.02)


def test_a_cache_of_one_bit_cells_is_full_some_time_and_folded_while_idle() -> None:
    """Sequential writes are fast until the SLC cache is full, and then as slow as the flash behind the cache. After a
    rest, they are fast again.
    """
    qlc = PRESET_MODELS["client-qlc"]
    engine = make(qlc)
    seen = measure(engine, SEQUENTIAL_WRITES, 600)
    rates = [each.bytes_per_s for each in seen.samples]
    assert min(rates[:60]) > 6 * max(rates[-60:])
    engine.idle(1800.0, then=None)
    again = measure(engine, SEQUENTIAL_WRITES, 10).bytes
    assert again > 0.8 * sum(rates[:10])
    # The cache does not contain data from before the rest.
    assert isinstance(engine.drive, FlashDrive)
    assert 0.5 * again < engine.drive.cached_bytes <= again


def test_a_small_map_costs_random_reads_of_a_wide_range_only() -> None:
    """If the memory for the map is small, random reads of a wide range are slower, because many of them miss this
    memory. Sequential reads, and random reads of a range that the memory covers, are not slower.
    """
    wide = measure(make(TLC), replace(READS, jobs=1, io_depth=1)).latency_mean_us or 0
    narrow_region = ActiveRange(offset_bytes=0, length_bytes=32 * 10**9)
    narrow = replace(READS, jobs=1, io_depth=1, region=narrow_region)
    near = measure(make(TLC), narrow).latency_mean_us or 0
    assert isinstance(TLC, FlashModel)
    missed = 1 - (TLC.map_cached_bytes or 0) / TLC.capacity_bytes
    assert wide - near == pytest.approx(missed * TLC.read_us, rel=0.1)
    hot = replace(READS, jobs=1, io_depth=1, zones=(Zone(95, 5), Zone(5, 95)))
    assert near < (measure(make(TLC), hot).latency_mean_us or 0) < wide


def test_a_deeper_queue_brings_more_until_the_drive_is_busy() -> None:
    """A deeper queue never leads to slower reads. The rate is nearly proportional to the depth for short queues, and
    constant for long queues.
    """
    engine = make(SATA)
    rates = [measure(engine, replace(READS, jobs=1, io_depth=depth)).iops for depth in (1, 2, 4, 8, 16, 32, 64)]
    assert all(after > 0.98 * before for before, after in pairwise(rates))
    assert rates[1] > 1.8 * rates[0]
    assert rates[-1] == pytest.approx(rates[-2], rel=0.03)


def test_writes_beside_them_slow_reads_down() -> None:
    """Writes slow down simultaneous reads, because a read from a die that is being programmed has to wait."""
    engine = steady_sata()
    alone = measure(engine, replace(READS, jobs=1, io_depth=4)).read
    beside = measure(engine, replace(MIXED, jobs=1, io_depth=4)).read
    assert beside.latency_mean_ns is not None
    assert alone.latency_mean_ns is not None
    assert beside.latency_mean_ns > 1.2 * alone.latency_mean_ns
    assert (beside.percentile_ns(99) or 0) > 1.5 * (alone.percentile_ns(99) or 0)


@pytest.mark.parametrize("arrival", Arrival)
def test_an_offered_rate_is_kept_up_with_or_not(arrival: Arrival) -> None:
    """The drive sustains an offered rate up to its own rate. At higher offered rates, the latency increases up to the
    latency of a full queue.
    """
    engine = steady_sata()
    most = measure(engine, RANDOM_WRITES).iops
    latencies = []
    for share in (0.1, 0.5, 0.9):
        work = replace(RANDOM_WRITES, offered_iops=share * most, arrival=arrival)
        seen = measure(engine, work)
        assert seen.iops == pytest.approx(share * most, rel=0.001)
        latencies.append(seen.latency_mean_us or 0)
    beyond = measure(engine, replace(RANDOM_WRITES, offered_iops=2 * most, arrival=arrival))
    assert beyond.iops == pytest.approx(most, rel=0.03)
    assert [*latencies, beyond.latency_mean_us] == sorted([*latencies, beyond.latency_mean_us or 0])
    assert (beyond.latency_mean_us or 0) > 10 * latencies[-1]


def test_reads_of_a_mix_wait_longer_the_more_is_offered() -> None:
    """The reads of a mix wait longer if the offered rate is higher. If the queue is full, its depth limits the mean
    latency of all I/Os, but not the latency of the reads, which take longest.
    """
    engine = make(SATA)
    mixed = replace(MIXED, jobs=4, io_depth=1)
    most = measure(engine, mixed).iops
    reads = [
        measure(engine, replace(mixed, offered_iops=share * most)).read.latency_mean_ns or 0.0
        for share in (0.3, 0.6, 0.8, 0.9, 0.95)
    ]
    assert all(after > 0.99 * before for before, after in pairwise(reads))


def test_a_mix_of_blocks_moves_each_size_as_often_as_asked() -> None:
    """A mix of 60 % of 4 KiB and 40 % of 64 KiB has the mean block size that these shares predict."""
    mix = (BlockShare(4096, 60), BlockShare(65536, 40))
    work = replace(RANDOM_WRITES, block_size_bytes=65536, block_mix=mix)
    seen = measure(make(SATA), work)
    assert seen.bytes / seen.ios == pytest.approx(0.6 * 4096 + 0.4 * 65536, rel=1e-3)


def test_a_hot_drive_is_throttled_and_cools_down() -> None:
    """A drive without cooling is throttled during long sequential reads. The rate falls immediately to the share of the
    full rate that the model of the drive specifies. After a rest, the drive has its full rate again.
    """
    engine = make(TLC)
    work = replace(SEQUENTIAL_WRITES, read_percent=100)
    rates = np.array([each.bytes_per_s for each in measure(engine, work, 1200).samples])
    assert isinstance(TLC, FlashModel)
    ratio = rates.min() / np.median(rates[:60])
    assert ratio == pytest.approx(TLC.throttle_share, rel=0.15)
    engine.idle(1800.0, then=None)
    assert measure(engine, work, 10).bytes / 10 == pytest.approx(np.median(rates[:60]), rel=0.05)


def test_housekeeping_comes_at_its_times() -> None:
    """If the flash limits the writes, housekeeping slows them down in single seconds that are 60 s apart."""
    engine = make(TLC)
    settle(engine, 2 * 3600)
    assert isinstance(TLC, FlashModel)
    rates = np.array([each.iops for each in measure(engine, RANDOM_WRITES, 600).samples])
    slow = np.flatnonzero(rates < 0.85 * np.median(rates))
    assert 15 <= slow.size <= 22
    assert set(np.diff(slow)) <= {1, 58, 59, 60, 61}


def test_a_disk_is_faster_outside() -> None:
    """The ratio between the sequential read rates of the first and the last hundredth of a disk equals the ratio
    between the two rates in its model.
    """
    assert isinstance(DISK, DiskModel)
    hundredth = DISK.capacity_bytes // 100

    def rate(offset: int) -> float:
        region = ActiveRange(offset_bytes=offset, length_bytes=hundredth)
        return measure(make(DISK), replace(SEQUENTIAL_WRITES, read_percent=100, region=region)).iops

    ratio = rate(0) / rate(DISK.capacity_bytes - hundredth)
    assert ratio == pytest.approx(DISK.outer_bytes_per_s / DISK.inner_bytes_per_s, rel=0.03)


def test_a_disk_reads_at_random_as_its_mechanics_allow() -> None:
    """A random read of a whole disk takes a mean seek and half a revolution. The mean seek time is the shortest seek
    time plus 8/15 of the difference between the longest and the shortest.
    """
    assert isinstance(DISK, DiskModel)
    shortest, longest = DISK.shortest_seek_ms, DISK.longest_seek_ms
    expected_ms = shortest + (longest - shortest) * 8 / 15 + 30e3 / DISK.turns_per_minute
    one = measure(make(DISK), replace(READS, jobs=1, io_depth=1), 60)
    assert (one.latency_mean_us or 0) / 1e3 == pytest.approx(expected_ms, rel=0.02)
    deep = measure(make(DISK), replace(READS, jobs=1, io_depth=32), 60)
    assert 2 * one.iops < deep.iops < 4 * one.iops
    area = ActiveRange(offset_bytes=0, length_bytes=DISK.capacity_bytes // 128)
    near = measure(make(DISK), replace(READS, jobs=1, io_depth=1, region=area), 60)
    assert near.iops > 1.5 * one.iops


def test_the_same_seed_is_the_same_drive() -> None:
    """Two simulated drives with the same seed yield the same measurements. With different seeds, the measurements
    differ within the noise.
    """
    first, second = (measure(SimulatedEngine(SATA, 1 << 30, seed=7), MIXED) for _ in range(2))
    other = measure(SimulatedEngine(SATA, 1 << 30, seed=8), MIXED)
    assert first == second
    assert other != first
    assert other.iops == pytest.approx(first.iops, rel=0.02)


def test_a_fill_writes_its_amount_in_seconds() -> None:
    """A fill writes exactly its planned amount in the planned seconds, even if the amount is not a multiple of the
    block size.
    """
    length = (1 << 30) + 4096
    fill = Fill(section="S", workload=SEQUENTIAL_WRITES, passes=2)
    engine = SimulatedEngine(SATA, length)
    seen = engine.fill(fill, then=None, on_sample=lambda *_: None).measurement
    assert seen.bytes == 2 * length == sum(each.write.bytes for each in seen.samples)
    assert seen.ios == -(-2 * length // 131072) == sum(each.write.ios for each in seen.samples)
    assert isinstance(engine.drive, FlashDrive)
    assert engine.drive.translation.mapped_bytes == pytest.approx(length, rel=1e-6)
