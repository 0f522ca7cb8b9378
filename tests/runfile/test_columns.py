"""Seconds and histograms are stored as blobs. The blobs are read back unchanged, need little space, and damage to them
is detected.
"""

from __future__ import annotations

import lzma
import tracemalloc
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import io_stats
from tkperf.model.histogram import coarsen
from tkperf.model.measurement import NO_IO, IoStats, Sample
from tkperf.runfile.columns import (
    SECOND_COLUMNS,
    as_seconds,
    compress_output,
    decode_histogram,
    decode_samples,
    decode_seconds,
    decompress_output,
    encode_histogram,
    encode_second_histograms,
    encode_seconds,
    pack_integers,
    unpack_integers,
)
from tkperf.runfile.row_records import parse_json

Blobs = tuple[bytes | None, bytes | None]

MOST = 2**63 - 1


def noise(seconds: int, ios: int = 30_000) -> tuple[Sample, ...]:
    """Return the seconds of a drive. Their numbers of I/Os and their times vary randomly."""
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
                write=replace(found, latency_sum_ns=found.latency_sum_ns + int(chance.integers(9999))),
            )
        )
        start_us += duration_us
    return tuple(samples)


def kept(samples: Sequence[Sample]) -> Blobs:
    return encode_seconds(samples), encode_second_histograms(samples)


def coarse(stats: IoStats) -> IoStats:
    return replace(stats, histogram=coarsen(stats.histogram))


@given(st.lists(st.integers(-(2**63), MOST), max_size=50))
def test_integers_come_back_as_they_were(numbers: list[int]) -> None:
    """Integers are read back unchanged, and other programs can read them as 64 bits, little-endian."""
    blob = pack_integers(np.array(numbers, dtype=np.int64))
    assert unpack_integers(blob, len(numbers)).tolist() == numbers
    planes = zlib.decompress(blob)
    count = len(numbers)
    for place, number in enumerate(numbers):
        assert planes[place::count] == number.to_bytes(8, "little", signed=True)


@pytest.mark.parametrize("seconds", [1, 60, 250])
def test_seconds_come_back_as_they_were(seconds: int) -> None:
    """The seconds of a step of any length are read back unchanged. The columns contain the same seconds as the
    records.
    """
    samples = noise(seconds, ios=200)
    blobs = kept(samples)
    assert decode_samples(*blobs) == tuple(replace(each, write=coarse(each.write)) for each in samples)
    columns = as_seconds(decode_seconds(blobs[0]))
    np.testing.assert_array_equal(columns.start_s, [sample.start_s for sample in samples])
    np.testing.assert_array_equal(columns.iops, [sample.iops for sample in samples])
    np.testing.assert_array_equal(columns.latency_max_us, [(each.write.latency_max_ns or 0) / 1000 for each in samples])


def test_a_direction_may_begin_late() -> None:
    """A direction may begin late. Seconds without reads have no minimum and maximum, which is different from extremes
    of 0.
    """
    reads = [NO_IO] * 15 + [io_stats([1000, 5000])] * 10 + [NO_IO] * 15
    samples = tuple(Sample(start_s=at, duration_s=1, read=read, write=NO_IO) for at, read in enumerate(reads))
    blobs = kept(samples)
    assert [each.read for each in decode_samples(*blobs)] == [coarse(each) for each in reads]
    idle = np.isnan(as_seconds(decode_seconds(blobs[0])).latency_max_us)
    assert idle.tolist() == [True] * 15 + [False] * 10 + [True] * 15


@given(st.lists(st.integers(0, 10**12), max_size=30))
def test_histograms_come_back_as_they_were(latencies_ns: list[int]) -> None:
    """Histograms are read back in fio's full resolution. A step without I/O has no histogram blob."""
    histogram = io_stats(latencies_ns).histogram if latencies_ns else NO_IO.histogram
    blob = encode_histogram(histogram)
    assert (blob is None) == (not latencies_ns)
    assert decode_histogram(blob) == histogram


def test_noise_takes_little_more_than_it_must() -> None:
    """Histograms of noise need at most twice the size of their entropy. No compression method needs less than the
    entropy.
    """
    samples = noise(60)
    counts = np.array([coarsen(sample.write.histogram).dense() for sample in samples])
    expected = counts[:, counts.any(axis=0)].mean(axis=0)
    least_bytes = sum(0.5 * np.log2(2 * np.pi * np.e * mean) for mean in expected if mean > 1) / 8
    seconds, histograms = kept(samples)
    assert seconds is not None
    assert histograms is not None
    assert least_bytes < len(histograms) / 60 < 2 * least_bytes
    assert len(seconds) / 60 < 20


def test_equal_seconds_take_hardly_anything() -> None:
    """Equal seconds, as in a fill of several hours at one rate, need nearly no space."""
    one = io_stats([100_000] * 500)
    samples = [Sample(start_s=at, duration_s=1, read=NO_IO, write=one) for at in range(7200)]
    seconds, histograms = kept(samples)
    assert len(seconds or b"") + len(histograms or b"") < 4 * 7200
    assert len(decode_samples(seconds, histograms)) == 7200


@given(st.integers(0, 10**6), st.binary(min_size=0, max_size=6), st.integers(0, 6), st.booleans())
def test_damage_is_an_error_or_other_seconds(at: int, put: bytes, gone: int, inside: bool) -> None:
    """A damaged blob causes an error or leads to other seconds. The damage may be in the compressed bytes of the blob,
    or in the data before compression.
    """
    whole = kept(noise(3, ios=200))
    for which, blob in enumerate(whole):
        assert blob is not None
        data = zlib.decompress(blob) if inside else blob
        place = at % len(data)
        data = data[:place] + put + data[place + gone :]
        blobs = list(whole)
        blobs[which] = zlib.compress(data) if inside else data
        for read in (lambda one, two: as_seconds(decode_seconds(one)), decode_samples):
            try:
                read(*blobs)
            except ValueError:
                continue


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda seconds, _: (seconds, None), "lack their histograms"),
        (lambda _, histograms: (None, histograms), "lack their histograms"),
        (lambda seconds, histograms: (seconds + b"x", histograms), "does not end where it should"),
        (lambda seconds, histograms: (seconds[:-1], histograms), "does not end where it should"),
        (lambda seconds, _: (seconds, kept(noise(4))[1]), "do not fit"),
        (lambda seconds, _: (seconds, kept(noise(2))[1]), "do not fit"),
        (lambda _, histograms: (pack_integers(np.zeros(13, dtype=np.int64)), histograms), "reshape"),
    ],
)
def test_pieces_that_do_not_belong_together_are_noticed(change: Callable[[bytes, bytes], Blobs], says: str) -> None:
    """If the parts of a step do not belong together, tkperf detects this. If one second were missing or added, all
    following seconds would be read as wrong values.
    """
    seconds, histograms = kept(noise(3))
    assert seconds is not None
    assert histograms is not None
    with pytest.raises(ValueError, match=says):
        decode_samples(*change(seconds, histograms))


def test_none_are_none() -> None:
    """If the seconds of a step were not stored, as in an import, the step has no seconds."""
    assert kept(()) == (None, None)
    assert decode_samples(None, None) == ()
    assert decode_seconds(None).shape == (len(SECOND_COLUMNS), 0)


def test_half_a_surrogate_becomes_a_question_mark() -> None:
    """A lone half of a surrogate pair becomes a question mark, because no output could contain a lone half. Whole pairs
    remain characters.
    """
    assert parse_json(r'{"model": "a\ud800b \ud83d\ude00", "n": NaN}')["model"] == "a?b \N{GRINNING FACE}"


def test_packing_the_output_of_a_step_takes_little_memory() -> None:
    """Compressing the output of a step needs at most 100 times the memory of the output. This limit is necessary
    because the output is compressed while the load is running. An earlier version needed 97 MB.
    """
    output = b'"clat_ns" : {"bins" : {"%d" : 17}}\n' * 1000
    tracemalloc.start()
    try:
        packed = compress_output(output)
        assert tracemalloc.get_traced_memory()[1] < 100 * len(output)
    finally:
        tracemalloc.stop()
    assert decompress_output(packed) == output
    assert len(packed or b"") <= len(lzma.compress(output))
