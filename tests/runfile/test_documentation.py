"""docs/run-file.md is true."""

from __future__ import annotations

import itertools
import lzma
import re
import sqlite3
from pathlib import Path

from tests.builders import io_stats, run_info
from tests.runfile.runs import a_step
from tkperf.events import (
    Judged,
    RunStarted,
    StepEnded,
    TestStarted,
)
from tkperf.runfile.encoding import encode_histogram
from tkperf.runfile.schema import VERSION
from tkperf.runfile.writer import RunFileWriter
from tkperf.steady_state import judge


def test_the_queries_of_the_documentation_work(tmp_path: Path) -> None:
    """Every SQL example in docs/run-file.md runs on a run file and finds something."""
    path = tmp_path / "a.tkperf"
    writer = RunFileWriter(path)
    writer(RunStarted(info=run_info(), tests=("iops",)))
    writer(TestStarted(test="iops", at_s=0))
    for number in range(1, 6):
        writer(StepEnded(test="iops", record=a_step(number)))
    writer(Judged(test="iops", section="IOPS", number=1,
                  verdict=judge([1], [1.0], tracking="t", unit="u")))  # fmt: skip
    writer.close()
    document = (Path(__file__).parents[2] / "docs" / "run-file.md").read_text()
    queries = re.findall(r"```sql\n(.*?)```", document, re.DOTALL)
    assert len(queries) >= 3
    with sqlite3.connect(path) as database:
        for query in queries:
            assert database.execute(query).fetchall(), query
    database.close()


def test_every_table_is_documented(tmp_path: Path) -> None:
    """docs/run-file.md names every table and column of the schema."""
    path = tmp_path / "a.tkperf"
    RunFileWriter(path).close()
    document = (Path(__file__).parents[2] / "docs" / "run-file.md").read_text()
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
    document = (Path(__file__).parents[2] / "docs" / "run-file.md").read_text()
    assert f"the version of the schema, now {VERSION}." in document


def test_the_decoder_of_the_documentation_works(tmp_path: Path) -> None:
    """The few lines of Python in docs/run-file.md decode a histogram without tkperf."""
    latencies_ns = [1000, 1000, 2000, 50_000, 7_000_000] + [90_000] * 70_000
    histogram = io_stats(latencies_ns).histogram
    document = (Path(__file__).parents[2] / "docs" / "run-file.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", document, re.DOTALL)
    names: dict[str, object] = {
        "lzma": lzma,
        "itertools": itertools,
        "blob": encode_histogram(histogram),
    }
    exec(code, names)
    found = dict(zip(histogram.indices.tolist(), histogram.counts.tolist(), strict=True))
    assert names["histogram"] == found
