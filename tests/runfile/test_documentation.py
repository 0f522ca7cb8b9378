"""docs/run-file.md is true."""

from __future__ import annotations

import itertools
import lzma
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.builders import io_stats, run_info
from tests.runfile.runs import a_step
from tkperf.events import (
    Judged,
    RunStarted,
    StepEnded,
    TestStarted,
)
from tkperf.measurement import NO_IO, Measurement, Sample
from tkperf.runfile.encoding import encode_histogram
from tkperf.runfile.kept_seconds import (
    KeptSeconds,
    encode_second_histograms,
    encode_seconds,
    read_samples,
)
from tkperf.runfile.schema import VERSION
from tkperf.runfile.writer import RunFileWriter
from tkperf.steady_state import judge

DOCUMENT = Path(__file__).parents[2] / "docs" / "run-file.md"


def documented(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)


def run_documented_python(**given: object) -> dict[str, object]:
    """What is defined by the Python of the page, run in its order beside these names."""
    names: dict[str, object] = {"lzma": lzma, "itertools": itertools, **given}
    for code in documented("python"):
        exec(code, names)
    return names


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A run of five rounds, of reads and writes and of writes alone; each has 150 seconds."""
    path = tmp_path / "a.tkperf"
    writer = RunFileWriter(path)
    writer(RunStarted(info=run_info(), tests=("iops",)))
    writer(TestStarted(test="iops", at_s=0))
    for number in range(1, 6):
        writer(StepEnded(test="iops", record=a_step(number, measurement=measured(number > 2))))
    writer(Judged(test="iops", section="IOPS", number=1,
                  verdict=judge([1], [1.0], tracking="t", unit="u")))  # fmt: skip
    writer.close()
    with closing(sqlite3.connect(path)) as connection:
        yield connection


def measured(reads: bool) -> Measurement:
    samples = tuple(
        Sample(
            start_s=at * 1.0005,
            duration_s=1 + at % 7 / 1e6,
            read=io_stats([at + 1000, 90_000 + at] * (at % 3)) if reads else NO_IO,
            write=io_stats([1000 + 7 * at, 2_000_000, 40_000] * (1 + at % 5)),
        )
        for at in range(150)
    )
    stats = [sum((getattr(each, side) for each in samples), NO_IO) for side in ("read", "write")]
    return Measurement(duration_s=151.0, read=stats[0], write=stats[1], samples=samples)


def test_the_queries_of_the_documentation_work(database: sqlite3.Connection) -> None:
    """Every SQL example in docs/run-file.md runs on a run file and finds something."""
    run_documented_python(db=database)
    queries = documented("sql")
    assert len(queries) >= 3
    for query in queries:
        assert database.execute(query).fetchall(), query


def test_every_table_is_documented(tmp_path: Path) -> None:
    """docs/run-file.md names every table and column of the schema."""
    path = tmp_path / "a.tkperf"
    RunFileWriter(path).close()
    document = DOCUMENT.read_text()
    with sqlite3.connect(path) as database:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            assert f"`{table}`" in document
            for column in database.execute(f"PRAGMA table_info({table})"):
                name = re.sub(r"^(read|write)_", "", column[1])
                assert f"`{column[1]}`" in document or f"`*_{name}`" in document, (table, column[1])
    database.close()


def test_the_version_is_documented() -> None:
    """docs/run-file.md names the version of the schema that is written."""
    document = DOCUMENT.read_text()
    assert f"the version of the schema, now {VERSION}." in document


def test_the_decoder_of_the_documentation_works(database: sqlite3.Connection) -> None:
    """The few lines of Python in docs/run-file.md decode a histogram without tkperf."""
    latencies_ns = [1000, 1000, 2000, 50_000, 7_000_000] + [90_000] * 70_000
    histogram = io_stats(latencies_ns).histogram
    names = run_documented_python(db=database)
    found = dict(zip(histogram.indices.tolist(), histogram.counts.tolist(), strict=True))
    assert names["read_histogram"](encode_histogram(histogram)) == found  # type: ignore[operator]


@pytest.mark.parametrize("reads", [True, False])
def test_the_seconds_are_decoded_by_the_documentation(
    database: sqlite3.Connection, reads: bool
) -> None:
    """Every number and every histogram of every second, as tkperf itself reads them."""
    names = run_documented_python(db=database)
    samples = measured(reads).samples
    seconds = list(names["read_seconds"](encode_seconds(samples)))  # type: ignore[operator]
    histograms = names["read_second_histograms"](encode_second_histograms(samples), seconds)  # type: ignore[operator]
    kept = KeptSeconds(
        seconds=encode_seconds(samples), histograms=encode_second_histograms(samples)
    )
    for sample, second, buckets in zip(read_samples(kept), seconds, histograms, strict=True):
        assert (second[0] / 1e6, second[1] / 1e6) == (sample.start_s, sample.duration_s)
        for side, columns, counts in (
            (sample.read, second[2:8], buckets[0]),
            (sample.write, second[8:], buckets[1]),
        ):
            assert tuple(value or 0 for value in columns) == (
                side.ios, side.bytes, side.latency_ios, side.latency_sum_ns,
                side.latency_min_ns or 0, side.latency_max_ns or 0,
            )  # fmt: skip
            assert counts == dict(
                zip(side.histogram.indices.tolist(), side.histogram.counts.tolist(), strict=True)
            )
