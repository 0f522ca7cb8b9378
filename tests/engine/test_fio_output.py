"""Parsing of fio's output into readings. The tests use recorded output of each tested version, and hostile output."""

from __future__ import annotations

import json
import lzma
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine import fake_fio
from tkperf.engine import fio_output
from tkperf.engine.fio_output import NOTHING_YET, DocumentSplitter, JobReading, build_sample, parse_document
from tkperf.model.errors import EngineError
from tkperf.model.measurement import Measurement
from tkperf.model.plausibility import Evidence, RequestedLoad, why_implausible
from tkperf.model.workload import Access, Workload

# The standard output of each version of fio for the same job, which waited at a gate.
STREAMS = {
    version: lzma.decompress((Path(__file__).parents[1] / f"golden/fio-{version}-randrw-2jobs.txt.xz").read_bytes())
    for version in ("3.33", "3.39", "3.42")
}
STREAM = STREAMS["3.33"]
# Since version 3.36 (commit 12d325ca), fio reports when its jobs began.
SAYS_BEGINNING = [version for version in STREAMS if version != "3.33"]


def documents(stream: bytes = STREAM) -> list[bytes]:
    return list(DocumentSplitter().feed(stream))


@pytest.mark.parametrize("version", STREAMS)
def test_each_version_is_read_alike(version: str) -> None:
    """tkperf reads the notes, the seconds and the totals from the output of each version. The measured values are
    plausible.
    """
    splitter = DocumentSplitter()
    readings = [parse_document(document) for document in splitter.feed(STREAMS[version])]
    assert splitter.notes == ["step : Saving output of prerun in step.prerun.txt"] * 2
    assert len(readings) == 5
    last, raw = readings[-1], json.loads(documents(STREAMS[version])[-1])
    assert raw["fio version"] == f"fio-{version}"
    for side, stats in (("read", last.read), ("write", last.write)):
        jobs = [job[side] for job in raw["jobs"]]
        assert stats.ios == sum(job["total_ios"] for job in jobs)
        assert stats.bytes == sum(job["io_bytes"] for job in jobs)
        assert stats.histogram.total == sum(job["lat_ns"]["N"] for job in jobs) == stats.ios
        assert stats.latency_max_ns == max(job["lat_ns"]["max"] for job in jobs)
    assert last.elapsed_s == pytest.approx(3.0, abs=0.01)
    samples = [build_sample(a, b) for a, b in pairwise([NOTHING_YET, *readings])]
    assert sum(sample.read.ios for sample in samples) == last.read.ios
    assert last.cpu is not None
    assert all(job.reached(16) for job in last.jobs)
    measurement = Measurement(duration_s=last.elapsed_s, read=last.read, write=last.write)
    workload = Workload(access=Access.RANDOM, read_percent=65, block_size_bytes=4096, jobs=2, io_depth=16)
    assert why_implausible(measurement, RequestedLoad(workload=workload, duration_s=3.0), Evidence()) is None


@pytest.mark.parametrize("version", SAYS_BEGINNING)
def test_a_document_says_when_its_jobs_began(version: str) -> None:
    """A document of fio 3.36 or newer contains the time at which the jobs began. This time uses the same clock as the
    time stamp of the document, and is the same in each document.

    The runtime of the jobs counts from this time.
    """
    readings = [parse_document(document) for document in documents(STREAMS[version])]
    (began_s,) = {reading.began_wall_clock_s for reading in readings}
    assert began_s is not None
    for reading in readings:
        assert began_s + reading.elapsed_s == pytest.approx(reading.wall_clock_s, abs=0.3)
    assert parse_document(documents()[-1]).began_wall_clock_s is None


def forms(value: object, *place: str) -> set[tuple[str, ...]]:
    """Return the position of each value in the JSON, with the type of the value."""
    if isinstance(value, dict):
        inner = [("*" if place[-1:] == ("bins",) else key, each) for key, each in value.items()]
        return {form for key, each in inner for form in forms(each, *place, key)}
    if isinstance(value, list):
        return {form for each in value for form in forms(each, *place, "[]")}
    return {(*place, type(value).__name__)}


@pytest.mark.parametrize("version", STREAMS)
def test_the_scripted_fio_prints_only_what_the_real_one_does(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripted fio prints only fields and types that the real fio prints. Other fields would hide a defect of the
    parser.
    """
    if version in SAYS_BEGINNING:
        monkeypatch.setattr(fake_fio, "BEGAN_MS", [1])
    job = {"jobs": 2, "rw": "randwrite", "block": 4096, "depth": 16, "amounts": []}
    real = forms([json.loads(document) for document in documents(STREAMS[version])])
    assert forms([fake_fio.document(job, 1.0)]) <= real


def test_text_before_the_json_is_kept_apart() -> None:
    """The lines that fio prints about the prerun become notes and not errors."""
    splitter = DocumentSplitter()
    assert len(list(splitter.feed(STREAM))) == 5
    assert splitter.notes == ["step : Saving output of prerun in step.prerun.txt"] * 2


@given(st.integers(min_value=1, max_value=len(STREAM) - 1))
def test_it_does_not_matter_where_the_pipe_cuts(cut: int) -> None:
    """The documents do not depend on the positions at which the pipe divides the output."""
    splitter = DocumentSplitter()
    found = [*splitter.feed(STREAM[:cut]), *splitter.feed(STREAM[cut:])]
    assert found == documents()


def test_a_document_gives_fios_own_numbers() -> None:
    """For all jobs together, a reading contains the I/Os, bytes, mean, minimum, maximum and runtime that fio
    reports.
    """
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
    """Percentiles that are computed from the buckets equal the percentiles that fio prints. Percentiles with too few
    I/Os beyond them are left out.
    """
    raw = json.loads(documents()[-1])
    raw["jobs"] = raw["jobs"][:1]
    stats = parse_document(json.dumps(raw).encode()).write
    told = raw["jobs"][0]["write"]["lat_ns"]["percentile"]
    ours = {percent: stats.histogram.percentile_ns(float(percent)) for percent in told}
    given = {percent: value for percent, value in ours.items() if value is not None}
    assert given == {percent: told[percent] for percent in given}
    assert stats.ios == 82_562
    assert set(told) - set(given) == {"99.990000"}  # about eight I/Os lie beyond this percentile


def test_the_seconds_add_up_to_the_whole() -> None:
    """The sum of the differences between consecutive documents equals the last document, including the histogram."""
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
    "document", [b"{}", b'{"jobs": []}', b'{"jobs": [{}]}', b'{"jobs": 3}', b"\x00\xff", b'{"jobs": [{"jobname']
)
def test_what_is_not_fios_status_is_our_error(document: bytes) -> None:
    """If a document is not a status document of fio, the parser raises an EngineError and no other exception."""
    with pytest.raises(EngineError):
        parse_document(document)


@given(st.binary(max_size=2000))
def test_no_rubbish_breaks_the_parser(data: bytes) -> None:
    """The parser accepts any bytes and divides them into documents and notes. Each document is refused with an
    EngineError, because random bytes are no status of fio.
    """
    within = list(DocumentSplitter().feed(b"{\n" + data + b"\n}\n"))
    assert within
    for document in (*within, *DocumentSplitter().feed(data + b"\n")):
        with pytest.raises(EngineError):
            parse_document(document)


def test_counters_that_run_backwards_are_refused() -> None:
    """If the counters of a later document are smaller, the parser raises an EngineError, because the counters of a
    working fio never decrease.
    """
    first, last = parse_document(documents()[1]), parse_document(documents()[-1])
    with pytest.raises(EngineError, match="backwards"):
        build_sample(last, first)


def test_what_is_printed_without_end_is_not_kept() -> None:
    """If the output outside documents never ends, only a limited number of lines and a limited length of each line are
    kept.
    """
    splitter = DocumentSplitter()
    assert not list(splitter.feed(b"x" * 5000 + b"\n" + b"y\n" * 5000))
    assert len(splitter.notes) == 100
    assert max(map(len, splitter.notes)) == 500


@pytest.mark.parametrize("piece", [b"noise\n" * 1000, b"noise" * 1000, b"\n" * 5000])
@pytest.mark.parametrize("start", [b"", b"{\n"])
def test_a_flood_is_refused_before_it_fills_the_memory(
    start: bytes, piece: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too much output is refused before it fills the memory. This applies inside and outside documents, and with and
    without line ends.
    """
    monkeypatch.setattr(fio_output, "LARGEST_DOCUMENT_BYTES", 1 << 20)
    monkeypatch.setattr(fio_output, "LARGEST_NOTES_BYTES", 1 << 20)
    splitter = DocumentSplitter()
    assert not list(splitter.feed(start))

    def flood() -> None:
        for _ in range(10_000):
            list(splitter.feed(piece * 10))

    with pytest.raises(EngineError, match="printed more than 1 MiB"):
        flood()


def test_cpu_time_that_cannot_be_is_not_measured() -> None:
    """If fio reports a negative or impossible CPU share for one thread, the sum over all threads is unknown. The
    reading then has no CPU time (None).
    """
    for impossible in (-0.1, 250.0):
        raw = json.loads(documents()[-1])
        raw["jobs"][1]["sys_cpu"] = impossible
        assert parse_document(json.dumps(raw).encode()).cpu is None
    assert parse_document(documents()[-1]).cpu is not None


def change(value: object, path: list[str], to: object) -> None:
    """Set the value at a path of keys and indices, or delete the value if ``to`` is None."""
    *places, last = path
    for place in places:
        value = value[int(place) if isinstance(value, list) else place]  # type: ignore[index]
    if to is None:
        del value[last]  # type: ignore[attr-defined]
    else:
        value[last] = to  # type: ignore[index]


@pytest.mark.parametrize("to", [None, -1, 10**40, 1e308, "", [], {}, True, {"1": -1}, {"-1": 1}])
@pytest.mark.parametrize(
    "key",
    [
        "error",
        "read",
        "read lat_ns",
        "read lat_ns min",
        "read lat_ns mean",
        "read lat_ns N",
        "read lat_ns bins",
        "read io_bytes",
        "read total_ios",
        "read runtime",
        "usr_cpu",
    ],
)
def test_a_number_that_cannot_be_is_refused_in_words(key: str, to: object) -> None:
    """An impossible number is refused with an EngineError, or read as a count that is not negative."""
    raw = json.loads(documents()[-1])
    change(raw, ["jobs", "0", *key.split()], to)
    with suppress(EngineError):
        reading = parse_document(json.dumps(raw).encode())
        assert min(reading.read.ios, reading.read.bytes, reading.read.latency_sum_ns) >= 0
        assert (reading.read.latency_min_ns or 0) >= 0


def test_what_fio_reports_is_plausible_and_its_changes_are_not() -> None:
    """A recorded step is plausible. The same step with the numbers of a vanished drive is not plausible
    (docs/adr/0014).
    """
    workload = Workload(access=Access.RANDOM, read_percent=65, block_size_bytes=4096, jobs=2, io_depth=16)
    raw = json.loads(documents()[-1])

    def judge() -> str | None:
        whole = build_sample(NOTHING_YET, parse_document(json.dumps(raw).encode()))
        measurement = Measurement(duration_s=whole.duration_s, read=whole.read, write=whole.write)
        plan = RequestedLoad(workload=workload, duration_s=3.0)
        return why_implausible(measurement, plan, Evidence())

    assert judge() is None
    for job in raw["jobs"]:
        job["read"]["io_bytes"] //= 20
    assert "failed or was removed" in (judge() or "")


@pytest.mark.parametrize(
    "latency",
    ['{"N": 1, "bins": {"5": ' + "9" * 30 + "}}", '{"N": ' + "9" * 400 + ', "mean": 1.5}', '{"x": ' + "[" * 100_000],
)
def test_numbers_and_depths_beyond_all_measure_are_no_status(latency: str) -> None:
    """Numbers and nesting depths beyond all limits lead to an EngineError. Fuzzing showed that Python raises exceptions
    other than ValueError for such values.
    """
    side = '{"io_bytes": 1, "total_ios": 1, "runtime": 1, "lat_ns": ' + latency + "}"
    job = '{"jobname": "j", "error": 0, "read": ' + side + ', "write": ' + side + "}"
    with pytest.raises(EngineError):
        parse_document(f'{{"jobs": [{job}]}}'.encode())


@pytest.mark.parametrize(
    ("io_depth", "name"), [(1, "1"), (3, "2"), (8, "8"), (32, "32"), (63, "32"), (64, ">=64"), (256, ">=64")]
)
def test_the_depth_that_was_reached_has_fios_name(io_depth: int, name: str) -> None:
    """A queue depth was reached if the share of I/Os in fio's range for this depth is not zero. fio groups depths by
    powers of two, and all depths from 64 on belong to one range. If the ranges are missing, the answer is not known.
    """
    depths = dict.fromkeys(("1", "2", "4", "8", "16", "32", ">=64"), 0.0)

    def reached(percents: dict[str, float]) -> bool | None:
        return JobReading(ios=1, bytes=1, elapsed_s=1.0, depth_percents=percents).reached(io_depth)

    assert reached({**depths, name: 0.1}) is True
    assert reached(depths) is False
    assert reached({}) is None
