"""Seconds as blobs: every one comes back as it was, little is taken, damage is noticed."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import io_stats
from tkperf.histogram import IntArray, coarsen
from tkperf.measurement import NO_IO, IoStats, Sample
from tkperf.runfile.kept_seconds import (
    BLOCK_SECONDS,
    KeptSeconds,
    encode_second_histograms,
    encode_seconds,
    read_samples,
    read_seconds,
)
from tkperf.runfile.packed import pack, put_numbers
from tkperf.runfile.proportional import Blocks, Packing, Rows, Unpacking, build_trend
from tkperf.seconds import Seconds

MOST = 2**63 - 1
values = st.integers(min_value=0, max_value=MOST) | st.integers(min_value=-5, max_value=3000)


def array(numbers: Sequence[int] | Sequence[list[int]]) -> IntArray:
    return np.array(numbers, dtype=np.int64)


def noise(seconds: int, ios: int = 30_000) -> tuple[Sample, ...]:
    """A drive's seconds: counts that differ by chance, as do their times."""
    chance = np.random.default_rng(1)
    latencies_ns = chance.lognormal(12, 0.3, 200).astype(int)
    samples = []
    start_us = 0
    for _ in range(seconds):
        duration_us = int(chance.normal(1e6, 300))
        found = io_stats(np.repeat(latencies_ns, chance.poisson(ios / 200, 200)).tolist())
        samples.append(
            Sample(
                start_s=start_us / 1e6,
                duration_s=duration_us / 1e6,
                read=NO_IO,
                write=replace(
                    found, latency_sum_ns=found.latency_sum_ns + int(chance.integers(9999))
                ),
            )
        )
        start_us += duration_us
    return tuple(samples)


def kept(samples: Sequence[Sample]) -> KeptSeconds:
    return KeptSeconds(
        seconds=encode_seconds(samples), histograms=encode_second_histograms(samples)
    )


def read_one(of_step: KeptSeconds) -> Seconds:
    """As columns."""
    (seconds,) = read_seconds([of_step])
    if isinstance(seconds, Exception):
        raise seconds
    return seconds


def coarse(stats: IoStats) -> IoStats:
    return replace(stats, histogram=coarsen(stats.histogram))


@given(
    data=st.data(),
    rows=st.integers(1, 6),
    first=st.integers(1, 4),
    second=st.integers(0, 3),
    trends=st.booleans(),
)
def test_columns_come_back_as_they_were(
    data: st.DataObject, rows: int, first: int, second: int, trends: bool
) -> None:
    """Whatever they hold, and whatever they were expected to be in proportion to."""
    whole = st.integers(min_value=0, max_value=MOST)
    groups = []
    for columns in (first, second):
        table = data.draw(
            st.lists(
                st.lists(values, min_size=rows, max_size=rows), min_size=columns, max_size=columns
            )
        )
        weights = data.draw(st.lists(whole, min_size=rows, max_size=rows))
        trend = None
        if trends:
            sums = data.draw(st.lists(whole, min_size=rows, max_size=rows))
            trend = build_trend(array(weights), array(sums))
        of_rows = Rows(weights=array(weights), trend=trend)
        groups.append((array(table).reshape(columns, rows), of_rows))
    packing = Packing()
    packing.columns(*groups)
    packing.number(7)
    blob = packing.blob()
    unpacking = Unpacking(blob, 10_000)
    blocks = Blocks([unpacking.block(first + second, rows, trend=trends)])
    for put, of_rows in groups:
        each = Rows(
            weights=of_rows.weights[np.newaxis],
            trend=None if of_rows.trend is None else of_rows.trend[np.newaxis],
        )
        np.testing.assert_array_equal(blocks.group(len(put), each), [put])
    assert unpacking.one() == 7
    unpacking.end()


@pytest.mark.parametrize("seconds", [1, BLOCK_SECONDS, BLOCK_SECONDS + 1, 3 * BLOCK_SECONDS])
def test_blocks_are_joined(seconds: int) -> None:
    """A step of any length; the columns are the same seconds as the records."""
    samples = noise(seconds, ios=200)
    found = read_samples(kept(samples))
    assert found == tuple(replace(each, write=coarse(each.write)) for each in samples)
    columns = read_one(kept(samples))
    np.testing.assert_array_equal(columns.start_s, [sample.start_s for sample in samples])
    np.testing.assert_array_equal(columns.iops, [sample.iops for sample in samples])


@pytest.mark.parametrize("at_once", [1, 150, 10_000])
def test_many_steps_are_read_as_each_alone(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of any length and direction, in their order, also beside some that are damaged, lost or were not kept."""
    monkeypatch.setattr("tkperf.runfile.kept_seconds._SECONDS_AT_ONCE", at_once)
    lengths = (60, 1, 60, 0, BLOCK_SECONDS, 250, 60, 61, BLOCK_SECONDS + 60, 60)
    whole = [kept(noise(seconds, ios=50 * (step + 1))) for step, seconds in enumerate(lengths)]
    reads = [Sample(start_s=0.5, duration_s=2, read=io_stats([9000] * 40), write=NO_IO)]
    mixed = [replace(sample, read=reads[0].read) for sample in noise(60, ios=200)]
    steps = [*whole, kept(reads), kept(mixed)]
    expected = [read_one(step) for step in steps]
    lost, short = ValueError("no such step"), steps[5].seconds or b""
    damaged = KeptSeconds(seconds=short[:-3], histograms=None)
    impossible = KeptSeconds(seconds=encode_seconds([negative()]), histograms=None)
    found = list(read_seconds([*steps[:4], lost, damaged, *steps[4:], impossible]))
    assert found[4] is lost
    assert [str(error) for error in (found[5], found[-1])] == [
        "a histogram ends early",
        "a sample has an impossible time or count",
    ]
    for seconds, alone in zip([*found[:4], *found[6:-1]], expected, strict=True):
        assert isinstance(seconds, Seconds)
        for column in fields(Seconds):
            np.testing.assert_array_equal(
                getattr(seconds, column.name), getattr(alone, column.name)
            )


def test_a_step_takes_little_more_memory_than_its_table() -> None:
    """However long: 14 numbers a second, twice while blocks are joined, and what a part of them takes."""
    count = 400_000
    # Reads and writes; totals of 0; 8 low bits of each duration, which are 2 us; the rest is 0.
    block = bytes([1, 1, *bytes(14), 0, 8, *bytes(12)]) + bytes(14 * BLOCK_SECONDS)
    packed = pack(put_numbers([count]) + count // BLOCK_SECONDS * block)
    durations = bytes([4]) * count
    tracemalloc.start()
    seconds = read_one(KeptSeconds(seconds=packed + durations, histograms=None))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(seconds) == count
    assert set(seconds.duration_s) == {2e-6}
    assert peak < 3 * 14 * 8 * count


def negative() -> Sample:
    """What no drive does."""
    return Sample(start_s=0, duration_s=1, read=NO_IO, write=replace(io_stats([5000]), bytes=-9))


def test_a_direction_may_begin_late() -> None:
    """Seconds without reads beside some with, in one block and in blocks of their own."""
    reads = [NO_IO] * 150 + [io_stats([1000, 5000])] * 100 + [NO_IO] * 150
    samples = tuple(
        Sample(start_s=at, duration_s=1, read=read, write=NO_IO) for at, read in enumerate(reads)
    )
    assert [sample.read.ios for sample in read_samples(kept(samples))] == [0] * 150 + [2] * 100 + [
        0
    ] * 150


def test_noise_takes_little_more_than_it_must() -> None:
    """Counts of Poisson's distribution cannot be packed below their entropy; rates and times are beside them."""
    samples = noise(60)
    counts = np.array([coarsen(sample.write.histogram).dense() for sample in samples])
    expected = counts[:, counts.any(axis=0)].mean(axis=0)
    least_bits = sum(0.5 * np.log2(2 * np.pi * np.e * mean) for mean in expected if mean > 1)
    histograms, seconds = kept(samples).histograms, kept(samples).seconds
    assert histograms is not None
    assert seconds is not None
    assert least_bits / 8 < len(histograms) / 60 < 1.3 * least_bits / 8 + 4
    assert len(seconds) / 60 < 14


def test_equal_seconds_take_hardly_anything() -> None:
    """A fill of hours at one rate."""
    one = io_stats([100_000] * 500)
    samples = [Sample(start_s=at, duration_s=1, read=NO_IO, write=one) for at in range(7200)]
    found = kept(samples)
    assert found.seconds is not None
    assert found.histograms is not None
    assert len(found.seconds) + len(found.histograms) < 7200


@given(st.integers(0, 10**6), st.binary(min_size=0, max_size=6), st.integers(0, 6), st.booleans())
def test_damage_is_an_error_or_other_seconds(at: int, put: bytes, gone: int, of_all: bool) -> None:
    """Never anything else, wherever the blob is damaged: behind its stream, and in what was packed."""
    whole = kept(noise(3, ios=200))
    for name, kept_blob in (("seconds", whole.seconds), ("histograms", whole.histograms)):
        assert kept_blob is not None
        if of_all:
            unpacking = Unpacking(kept_blob, 1 << 20)
            data, behind = unpacking._data, unpacking._behind
            place = at % len(data)
            blob = pack(data[:place] + put + data[place + gone :]) + behind
        else:
            place = at % len(kept_blob)
            blob = kept_blob[:place] + put + kept_blob[place + gone :]
        damaged = (
            replace(whole, seconds=blob) if name == "seconds" else replace(whole, histograms=blob)
        )
        for read in (read_samples, read_one):
            try:
                read(damaged)
            except ValueError:
                continue


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda k: replace(k, histograms=None), "samples lack their details"),
        (lambda k: replace(k, seconds=None), "samples lack their details"),
        (lambda k: replace(k, seconds=(k.seconds or b"") + b"x"), "do not fit their rows"),
        (lambda k: replace(k, seconds=(k.seconds or b"")[:-1]), "ends early"),
        (lambda k: replace(k, histograms=kept(noise(4)).histograms), "."),
        (lambda k: replace(k, seconds=pack(put_numbers([0]))), "more than its size can hold"),
        (lambda k: replace(k, seconds=pack(put_numbers([1 << 30]))), "more than its size can hold"),
    ],
)
def test_pieces_that_do_not_belong_together_are_noticed(change, says: str) -> None:  # type: ignore[no-untyped-def]
    """A second more or less would be read as another."""
    with pytest.raises(ValueError, match=says):
        read_samples(change(kept(noise(3))))


def test_none_are_none() -> None:
    """A step whose seconds were not kept, as of an import."""
    nothing = kept(())
    assert nothing == KeptSeconds(seconds=None, histograms=None)
    assert read_samples(nothing) == ()
    assert len(read_one(nothing)) == 0


def test_a_long_step_takes_no_more_room_than_many() -> None:
    """It may be one that somebody made, a few bytes for each hundred seconds: they are taken apart some at a time."""
    blocks = 1300
    packing = Packing()
    packing.number(blocks * BLOCK_SECONDS)
    durations = array([[1_000_000] * BLOCK_SECONDS])
    columns = np.vstack([0 * durations, durations, *[0 * durations] * 12])
    equal = Rows(weights=array([1] * BLOCK_SECONDS))
    for _ in range(blocks):
        packing.put(bytes([1, 1]))
        packing.columns((columns, equal))
    step = KeptSeconds(seconds=packing.blob(), histograms=None)
    tracemalloc.start()
    seconds = read_one(step)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seconds.end_s == blocks * BLOCK_SECONDS
    assert peak < 400 * len(seconds)
