"""fio's stream as readings: golden output of fio 3.33, and hostile output."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tkperf.engine.fio_output import (
    NOTHING_YET,
    DocumentSplitter,
    build_sample,
    parse_document,
    require_whole_ios,
)
from tkperf.errors import DeviceError, EngineError
from tkperf.workload import Access, Workload

GOLDEN = Path(__file__).parent.parent / "golden" / "fio-3.33-randrw-2jobs.txt.xz"
STREAM = lzma.decompress(GOLDEN.read_bytes())


def documents() -> list[bytes]:
    return list(DocumentSplitter().feed(STREAM))


def test_text_before_the_json_is_kept_apart() -> None:
    """fio prints lines about the prerun first; they are notes, not errors."""
    splitter = DocumentSplitter()
    assert len(list(splitter.feed(STREAM))) == 5
    assert splitter.notes == ["step : Saving output of prerun in step.prerun.txt"] * 2


@given(st.integers(min_value=1, max_value=len(STREAM) - 1))
def test_it_does_not_matter_where_the_pipe_cuts(cut: int) -> None:
    """Output arrives in pieces of any size."""
    splitter = DocumentSplitter()
    found = [*splitter.feed(STREAM[:cut]), *splitter.feed(STREAM[cut:])]
    assert found == documents()


def test_a_document_gives_fios_own_numbers() -> None:
    """I/Os, bytes, mean, extremes and percentiles of all jobs together are fio's."""
    raw = json.loads(documents()[-1])
    reading = parse_document(documents()[-1])
    jobs = raw["jobs"]
    assert reading.read.ios == sum(job["read"]["total_ios"] for job in jobs)
    assert reading.write.bytes == sum(job["write"]["io_bytes"] for job in jobs)
    assert reading.read.latency_max_ns == max(job["read"]["lat_ns"]["max"] for job in jobs)
    assert reading.read.latency_min_ns == min(job["read"]["lat_ns"]["min"] for job in jobs)
    total = sum(job["read"]["lat_ns"]["mean"] * job["read"]["lat_ns"]["N"] for job in jobs)
    assert reading.read.latency_mean_ns == pytest.approx(total / reading.read.ios)
    assert reading.elapsed_s == pytest.approx(3.0, abs=0.01)
    assert reading.errors == (0, 0)


def test_percentiles_of_one_job_are_those_fio_prints() -> None:
    """Our percentile from the buckets is the value fio computes itself."""
    raw = json.loads(documents()[-1])
    raw["jobs"] = raw["jobs"][:1]
    stats = parse_document(json.dumps(raw).encode()).write
    for percent, value in raw["jobs"][0]["write"]["lat_ns"]["percentile"].items():
        assert stats.histogram.percentile_ns(float(percent)) == value


def test_the_seconds_add_up_to_the_whole() -> None:
    """Differences of consecutive documents sum to the last document, histogram and all."""
    readings = [parse_document(document) for document in documents()]
    samples = [build_sample(a, b) for a, b in zip([NOTHING_YET, *readings], readings, strict=False)]
    whole = samples[0].write
    for sample in samples[1:]:
        whole = whole + sample.write
    assert whole.ios == readings[-1].write.ios
    assert whole.histogram == readings[-1].write.histogram
    assert whole.latency_sum_ns == readings[-1].write.latency_sum_ns
    assert sum(sample.duration_s for sample in samples) == pytest.approx(readings[-1].elapsed_s)


@pytest.mark.parametrize(
    "document",
    [
        b"{}",
        b'{"jobs": []}',
        b'{"jobs": [{}]}',
        b'{"jobs": 3}',
        b"\x00\xff",
        b'{"jobs": [{"jobname',
    ],
)
def test_what_is_not_fios_status_is_our_error(document: bytes) -> None:
    """A parser returns a value or raises our error, never a traceback."""
    with pytest.raises(EngineError):
        parse_document(document)


@given(st.binary(max_size=2000))
def test_no_rubbish_breaks_the_parser(data: bytes) -> None:
    """Any bytes at all: documents or notes, and each document parsed or refused by our error."""
    for document in DocumentSplitter().feed(data + b"\n"):
        with pytest.raises(EngineError):
            parse_document(document)


def test_counters_that_run_backwards_are_refused() -> None:
    """A later document can only count more."""
    first, last = parse_document(documents()[1]), parse_document(documents()[-1])
    with pytest.raises(EngineError, match="backwards"):
        build_sample(last, first)


def test_ios_without_bytes_mean_the_device_is_gone() -> None:
    """A removed NVMe drive yields reads of 0 bytes with exit status 0: refused (LAB.md)."""
    raw = json.loads(documents()[-1])
    for job in raw["jobs"]:
        job["read"]["io_bytes"] //= 20
    workload = Workload(
        access=Access.RANDOM, read_percent=65, block_size_bytes=4096, jobs=2, io_depth=16
    )
    require_whole_ios(parse_document(documents()[-1]), workload, "/dev/x")
    with pytest.raises(DeviceError, match="failed or was removed"):
        require_whole_ios(parse_document(json.dumps(raw).encode()), workload, "/dev/x")


@pytest.mark.parametrize(
    "latency",
    [
        '{"N": 1, "bins": {"5": ' + "9" * 30 + "}}",
        '{"N": ' + "9" * 400 + ', "mean": 1.5}',
        '{"x": ' + "[" * 100_000,
    ],
)
def test_numbers_and_depths_beyond_all_measure_are_no_status(latency: str) -> None:
    """Found by fuzzing: Python's own errors for them are not ValueErrors."""
    side = '{"io_bytes": 1, "total_ios": 1, "runtime": 1, "lat_ns": ' + latency + "}"
    job = '{"jobname": "j", "error": 0, "read": ' + side + ', "write": ' + side + "}"
    with pytest.raises(EngineError):
        parse_document(f'{{"jobs": [{job}]}}'.encode())
