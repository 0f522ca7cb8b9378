"""The statements in docs/reference/run-file.md agree with the code."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.builders import io_stats, run_info
from tests.runfile.runs import a_step
from tkperf.model.histogram import coarsen
from tkperf.model.measurement import NO_IO, Measurement, Sample
from tkperf.model.steady_state import judge
from tkperf.runfile.columns import encode_histogram
from tkperf.runfile.reader import RunFile
from tkperf.runfile.schema import VERSION
from tkperf.runfile.writer import RunFileWriter
from tkperf.runner.events import Judged, RunStarted, StepEnded, TestStarted

DOCUMENT = Path(__file__).parents[2] / "docs/reference/run-file.md"


def documented(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a run with five rounds. Each round has two steps of 150 seconds. One step has reads and writes, and the
    other has only writes.
    """
    path = tmp_path / "run.tkperf"
    writer = RunFileWriter(path)
    writer(RunStarted(info=run_info(), tests=("iops",)))
    writer(TestStarted(test="iops", at_s=0))
    for number in range(1, 6):
        writer(StepEnded(test="iops", record=a_step(number, measurement=measured(number > 2))))
    writer(Judged(test="iops", section="IOPS", number=1, verdict=judge([1], [1.0], tracking="t", unit="u")))
    writer.close()
    return path


@pytest.fixture
def page(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Yield the names that the Python code on the page defines. The code runs on a run file with the name that the page
    uses.
    """
    monkeypatch.chdir(path.parent)
    names: dict[str, Any] = {}
    for code in documented("python"):
        exec(code, names)
    yield names
    names["db"].close()


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


def test_the_queries_of_the_documentation_work(page: dict[str, Any]) -> None:
    """Every SQL example in docs/reference/run-file.md can be executed on a run file and returns rows."""
    queries = documented("sql")
    assert len(queries) >= 3
    for query in queries:
        assert page["db"].execute(query).fetchall(), query


def test_every_table_is_documented(tmp_path: Path) -> None:
    """docs/reference/run-file.md names every table and column of the schema."""
    path = tmp_path / "a.tkperf"
    RunFileWriter(path).close()
    document = DOCUMENT.read_text()
    with closing(sqlite3.connect(path)) as database, database:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            assert f"`{table}`" in document
            for column in database.execute(f"PRAGMA table_info({table})"):
                name = re.sub(r"^(read|write|trim|flush)_", "", column[1])
                assert f"`{column[1]}`" in document or f"`*_{name}`" in document, (table, column[1])
    database.close()


def test_the_version_is_documented() -> None:
    """docs/reference/run-file.md names the schema version that tkperf writes."""
    document = DOCUMENT.read_text()
    assert f"the version of the schema. The current version is {VERSION}." in " ".join(document.split())


def test_histograms_of_steps_are_decoded_by_the_documentation(page: dict[str, Any]) -> None:
    """The documented function that decodes every blob of integers also decodes the histograms of steps."""
    latencies_ns = [1000, 1000, 2000, 50_000, 7_000_000] + [90_000] * 70_000
    histogram = io_stats(latencies_ns).histogram
    assert page["integers"](encode_histogram(histogram)).tolist() == histogram.dense().tolist()


def test_ten_lines_of_the_documentation_read_every_second(path: Path, page: dict[str, Any]) -> None:
    """Ten lines of Python from the documentation read every number and every histogram of every second. The result is
    the same as in tkperf itself.
    """
    lines = [line for line in documented("python")[0].splitlines() if line.strip()]
    assert len(lines) <= 10
    steps = page["steps"]
    assert len(steps) == 5
    with RunFile(path) as run_file:
        (test,) = run_file.record().tests
        read = [run_file.samples("iops", step) for step in test.steps]
    for number, (samples, (table, buckets, ios)) in enumerate(zip(read, steps.values(), strict=True)):
        written = measured(number > 1).samples
        for second, (sample, original) in enumerate(zip(samples, written, strict=True)):
            row = table[:, second].tolist()
            assert (row[0] / 1e6, row[1] / 1e6) == (sample.start_s, sample.duration_s)
            assert row[:2] == [round(original.start_s * 1e6), round(original.duration_s * 1e6)]
            for first, side, was, place in (
                (2, sample.read, original.read, second),
                (8, sample.write, original.write, len(samples) + second),
            ):
                known = [None if value == -1 else value for value in row[first : first + 6]]
                for stats in (side, was):
                    assert known == [
                        stats.ios,
                        stats.bytes,
                        stats.latency_ios,
                        stats.latency_sum_ns,
                        stats.latency_min_ns,
                        stats.latency_max_ns,
                    ]
                assert buckets[place].tolist() == side.histogram.indices.tolist()
                assert ios[place].tolist() == side.histogram.counts.tolist()
                assert side.histogram == coarsen(was.histogram)
