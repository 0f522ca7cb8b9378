"""The run file: nothing lost, nothing invented, nothing overwritten."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.builders import io_stats, latency_lists, run_info
from tkperf.errors import RunFileError
from tkperf.events import (
    Judged,
    PurgeEnded,
    RunEnded,
    RunStarted,
    StepEnded,
    TestEnded,
    TestStarted,
    Warned,
)
from tkperf.measurement import NO_IO, CpuUse, Measurement, Sample
from tkperf.phases import Outcome, SectionOutcome
from tkperf.record import PurgeRecord, RunStatus, RunWarning, StepKind, StepRecord
from tkperf.runfile.reader import KILLED, RunFile, read_run
from tkperf.runfile.writer import RunFileWriter
from tkperf.steady_state import judge
from tkperf.workload import Access, Workload

seconds = st.integers(min_value=0, max_value=10**9).map(lambda us: us / 1e6)
stats = st.one_of(st.just(NO_IO), latency_lists.map(io_stats))
samples = st.lists(
    st.builds(
        Sample,
        start_s=seconds,
        duration_s=seconds.filter(lambda s: s > 0),
        read=stats,
        write=stats,
    ),
    max_size=5,
)
steps = st.builds(
    StepRecord,
    section=st.sampled_from(["IOPS", "Throughput 4k", "Ünïcode ''\"; --"]),
    kind=st.sampled_from(StepKind),
    number=st.integers(min_value=1, max_value=2000),
    position=st.integers(min_value=0, max_value=60),
    workload=st.builds(
        Workload,
        access=st.sampled_from(Access),
        read_percent=st.integers(min_value=0, max_value=100),
        block_size_bytes=st.integers(min_value=1, max_value=2048).map(lambda n: n * 512),
        jobs=st.integers(min_value=1, max_value=64),
        io_depth=st.integers(min_value=1, max_value=256),
    ),
    planned_s=st.none() | seconds,
    started_s=seconds,
    gap_s=st.none() | seconds,
    measurement=st.builds(
        Measurement,
        duration_s=seconds.filter(lambda s: s > 0),
        read=stats,
        write=stats,
        samples=samples.map(tuple),
        cpu=st.none() | st.builds(CpuUse, busiest_thread_percent=seconds, all_threads_percent=seconds),
        host_limited=st.booleans(),
    ),
    job_file=st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=200),
    engine_output=st.binary(max_size=500),
)  # fmt: skip


def a_step(number: int = 1, **changes: object) -> StepRecord:
    step = StepRecord(
        section="IOPS",
        kind=StepKind.ROUND,
        number=number,
        position=0,
        workload=Workload(
            access=Access.RANDOM, read_percent=0, block_size_bytes=4096, jobs=1, io_depth=1
        ),
        planned_s=1.0,
        started_s=0.5,
        gap_s=None,
        measurement=Measurement(
            duration_s=1.0,
            read=NO_IO,
            write=io_stats([1000, 2000]),
            samples=(Sample(start_s=0, duration_s=1, read=NO_IO, write=io_stats([1000, 2000])),),
        ),
        job_file="[global]\n",
        engine_output=b"{}",
    )
    return replace(step, **changes)  # type: ignore[arg-type]


def coarse(sample: Sample) -> Sample:
    """A sample as the file keeps it."""
    read = replace(sample.read, histogram=sample.read.histogram.coarsened())
    write = replace(sample.write, histogram=sample.write.histogram.coarsened())
    return replace(sample, read=read, write=write)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(step=steps)
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, step: StepRecord
) -> None:
    """Any step returns equal: totals and histograms in full, samples with coarse histograms."""
    path = tmp_path_factory.mktemp("run") / "a.tkperf"
    info = run_info(notices=("SIMULATED",), device={"model": "\x00<b>"})
    verdict = judge([1, 2], [5.0, 6.0], tracking="t", unit="u")
    purge = PurgeRecord(section="IOPS", started_s=0.1, duration_s=2.0, method="m", note=None)
    warning = RunWarning(code="c", text="t", test="iops", at_s=1.5)
    outcome = Outcome(
        sections=(
            SectionOutcome(section="IOPS", window=(1, 2), verdict=verdict, ended_because="b"),
        )
    )
    writer = RunFileWriter(path)
    for event in (
        RunStarted(info=info, tests=("iops",)),
        TestStarted(test="iops", at_s=0.0),
        PurgeEnded(test="iops", record=purge),
        StepEnded(test="iops", record=step),
        Judged(test="iops", section="IOPS", number=2, verdict=verdict),
        Warned(warning=warning),
        TestEnded(test="iops", status=RunStatus.COMPLETE, outcome=outcome, at_s=9.0),
        RunEnded(status=RunStatus.COMPLETE, because=None, ended_utc="u"),
    ):
        writer(event)
    writer.close()

    with RunFile(path) as run_file:
        record = run_file.record()
        (test,) = record.tests
        assert record.info == info
        assert record.status is RunStatus.COMPLETE
        assert record.warnings == (warning,)
        assert (test.purges, test.outcome) == ((purge,), outcome)
        assert [each.verdict for each in test.verdicts] == [verdict]
        without = replace(step, engine_output=b"")
        assert test.steps == (replace(without, measurement=replace(step.measurement, samples=())),)
        assert run_file.engine_output("iops", test.steps[0]) == step.engine_output
        found = run_file.samples("iops", test.steps[0])
        assert found == tuple(coarse(sample) for sample in step.measurement.samples)


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    """A NAME that exists is refused and stays as it is."""
    path = tmp_path / "a.tkperf"
    path.write_text("precious")
    with pytest.raises(RunFileError, match="not overwritten"):
        RunFileWriter(path)
    assert path.read_text() == "precious"


def test_a_folder_that_does_not_exist_is_a_clear_error(tmp_path: Path) -> None:
    """The error names the file and the reason."""
    with pytest.raises(RunFileError, match=r"cannot create .*none/a.tkperf: No such file"):
        RunFileWriter(tmp_path / "none" / "a.tkperf")


def test_a_stream_keeps_only_its_newest_document(tmp_path: Path) -> None:
    """fio's document of a stream is cumulative: one is enough, 1,440 would be 1,440 times as many."""
    path = tmp_path / "a.tkperf"
    writer = RunFileWriter(path)
    writer(RunStarted(info=run_info(), tests=("writesat",)))
    writer(TestStarted(test="writesat", at_s=0))
    for number in (1, 2, 3):
        record = a_step(number, kind=StepKind.CONTINUOUS, engine_output=b"document %d" % number)
        writer(StepEnded(test="writesat", record=record))
    writer.close()
    with RunFile(path) as run_file:
        slices = run_file.record().tests[0].steps
        outputs = [run_file.engine_output("writesat", each) for each in slices]
    assert outputs == [b"", b"", b"document 3"]


WRITE_FOR_EVER = """
import sys; from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.runfile.test_run_file import a_step, run_info
from tkperf.events import *; from tkperf.runfile.writer import RunFileWriter
writer = RunFileWriter(Path(sys.argv[1]))
writer(RunStarted(info=run_info(), tests=("iops",)))
writer(TestStarted(test="iops", at_s=0))
for number in range(1, 100000):
    writer(StepEnded(test="iops", record=a_step(number)))
    print(number, flush=True)
"""


@pytest.mark.parametrize("after", [1, 7, 40])
def test_kill_9_loses_at_most_the_step_under_way(tmp_path: Path, after: int) -> None:
    """Whatever was acknowledged before the kill is there, and the file says what happened."""
    path = tmp_path / "a.tkperf"
    root = str(Path(__file__).parents[2])
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITE_FOR_EVER, path, root], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    acknowledged = 0
    while acknowledged < after:
        acknowledged = int(writer.stdout.readline())
    assert read_run(path).status is RunStatus.RUNNING
    os.kill(writer.pid, signal.SIGKILL)
    acknowledged = max([acknowledged, *map(int, writer.stdout.read().split())])
    writer.wait()
    writer.stdout.close()
    record = read_run(path)
    assert record.status is RunStatus.INTERRUPTED
    assert record.ended_because == KILLED
    assert record.tests[0].status is RunStatus.INTERRUPTED
    numbers = [step.number for step in record.tests[0].steps]
    assert numbers == list(range(1, len(numbers) + 1))
    assert acknowledged <= len(numbers) <= acknowledged + 1


def test_a_full_disk_keeps_what_was_there(tmp_path: Path) -> None:
    """When no more can be written the error says so and the file stays readable."""
    path = tmp_path / "a.tkperf"
    writer = RunFileWriter(path)
    writer(RunStarted(info=run_info(), tests=("iops",)))
    writer(TestStarted(test="iops", at_s=0))
    writer(StepEnded(test="iops", record=a_step(1)))
    writer._db.execute("PRAGMA max_page_count = 1")  # as full as a disk can be
    large = a_step(2, engine_output=os.urandom(100_000))
    with pytest.raises(RunFileError, match="full; what was measured before is kept"):
        writer(StepEnded(test="iops", record=large))
    writer.close()
    assert read_run(path).tests[0].steps[0].number == 1


def test_a_run_is_readable_while_it_is_written(tmp_path: Path) -> None:
    """tkperf show works during a run."""
    path = tmp_path / "a.tkperf"
    writer = RunFileWriter(path)
    writer(RunStarted(info=run_info(), tests=("iops",)))
    writer(TestStarted(test="iops", at_s=0))
    writer(StepEnded(test="iops", record=a_step(1)))
    assert len(read_run(path).tests[0].steps) == 1
    writer(StepEnded(test="iops", record=a_step(2)))
    assert len(read_run(path).tests[0].steps) == 2
    writer.close()


def test_the_lock_tells_a_running_run_from_a_killed_one(tmp_path: Path) -> None:
    """The writer holds the file's lock for as long as it lives."""
    path = tmp_path / "a.tkperf"
    writer = RunFileWriter(path)
    with path.open("rb") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    writer.close()
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)


def test_files_that_are_not_runs_are_named_as_such(tmp_path: Path) -> None:
    """Missing, empty, foreign, cut short, newer: each a clear error."""
    path = tmp_path / "a.tkperf"
    with pytest.raises(RunFileError, match="there is no run file"):
        RunFile(path)
    path.write_bytes(b"")
    with pytest.raises(RunFileError, match="not a run file"):
        RunFile(path)
    path.write_bytes(os.urandom(10000))
    with pytest.raises(RunFileError, match="cannot read"):
        RunFile(path)
    path.unlink()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE t (x)")
    other.close()
    with pytest.raises(RunFileError, match="not a run file"):
        RunFile(path)
    path.unlink()
    writer = RunFileWriter(path)
    writer.close()
    with RunFile(path) as run_file, pytest.raises(RunFileError, match="holds no run"):
        run_file.record()
    with sqlite3.connect(path) as newer:
        newer.execute("PRAGMA user_version = 999")
    newer.close()
    with pytest.raises(RunFileError, match="newer tkperf"):
        RunFile(path)


def test_a_file_cut_short_is_a_clear_error(tmp_path: Path) -> None:
    """A copy that lost its end does not become a traceback."""
    path = tmp_path / "a.tkperf"
    writer = RunFileWriter(path)
    writer(RunStarted(info=run_info(), tests=("iops",)))
    writer(TestStarted(test="iops", at_s=0))
    for number in range(30):
        writer(StepEnded(test="iops", record=a_step(number + 1, engine_output=os.urandom(3000))))
    writer.close()
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 3])
    with pytest.raises(RunFileError), RunFile(path) as run_file:
        run_file.record()


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
