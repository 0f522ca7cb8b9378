"""Streams that run together, and loads that trim, flush, pause or are partly random, are read back unchanged from the
run file.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.builders import io_stats, work
from tests.runfile.runs import a_run, a_step
from tkperf.model.errors import RunFileError
from tkperf.model.histogram import coarsen
from tkperf.model.measurement import Measurement, Sample, StreamPart
from tkperf.model.record import StepKind, StepRecord
from tkperf.model.workload import Access, ActiveRange, BlockShare, Burst, Stream, Workload, combine
from tkperf.runfile.reader import RunFile, read_run
from tkperf.runner.events import SampleSeen, StepEnded, StepStarted

READS, WRITES = io_stats([1000, 2000, 3000]), io_stats([40_000, 50_000])
TRIMS, FLUSHES = io_stats([100_000]), replace(io_stats([7_000_000, 9_000_000]), bytes=0)
LOG = Workload(access=Access.SEQUENTIAL, read_percent=0, block_size_bytes=4096, jobs=1, io_depth=1, flush_every=4)
TRIMMER = Workload(
    access=Access.RANDOM,
    read_percent=0,
    block_size_bytes=1 << 31,
    jobs=2,
    io_depth=1,
    trims=True,
    burst=Burst(3, 0.5),
    region=ActiveRange(offset_bytes=1 << 32, length_bytes=1 << 32),
)
MIXED = replace(
    work(),
    read_percent=100,
    random_percent=5,
    block_size_bytes=8192,
    block_mix=(BlockShare(4096, 60), BlockShare(8192, 40)),
)
COMBINATION = combine(
    (
        Stream(name="reader", workload=MIXED),
        Stream(name="log", workload=LOG, delay_s=2.5),
        Stream(name="trimmer", workload=TRIMMER),
    )
)
PARTS = (
    StreamPart(name="reader", read=READS, host_limited=True),
    StreamPart(name="log", write=WRITES, flush=FLUSHES),
    StreamPart(name="trimmer", trim=TRIMS),
)
SECOND = Sample(start_s=2.5, duration_s=1.0, read=READS, write=WRITES, trim=TRIMS, flush=FLUSHES, streams=PARTS)


def write_and_read(tmp_path: Path, step: StepRecord) -> tuple[tuple[Sample, ...], StepRecord]:
    """Write a run with this step. Return the samples and the step that were read back from its file."""
    path, writer = a_run(tmp_path)
    writer(StepEnded(test="iops", record=step))
    writer.close()
    with RunFile(path) as file:
        (read,) = file.record().tests[0].steps
        return file.samples("iops", read), read


def combined_step() -> StepRecord:
    measured = Measurement(
        duration_s=2.0,
        read=READS,
        write=WRITES,
        trim=TRIMS,
        flush=FLUSHES,
        streams=PARTS,
        samples=(SECOND, replace(SECOND, start_s=3.5)),
    )
    return replace(a_step(1), workload=COMBINATION, measurement=measured)


def test_streams_come_back_with_all_their_ios(tmp_path: Path) -> None:
    """Each stream is read back with its load, delay, I/Os, flushes and trims, and with the mark that the host limited
    it. The values of every second are also read back.
    """
    step = combined_step()
    (first, second), read = write_and_read(tmp_path, step)
    assert read.workload == COMBINATION
    assert read.measurement == replace(step.measurement, samples=())
    assert (first.start_s, second.start_s) == (2.5, 3.5)
    for name, part in (("reader", READS), ("log", WRITES), ("trimmer", TRIMS)):
        own = first.of_stream(name)
        assert (own.both.ios, own.both.bytes) == (part.ios, part.bytes)
        assert own.both.histogram == coarsen(part.histogram)
    assert first.of_stream("log").flush.latency_max_ns == FLUSHES.latency_max_ns
    assert (first.trim.bytes, first.flush.ios) == (TRIMS.bytes, FLUSHES.ios)


def test_a_load_alone_that_trims_comes_back(tmp_path: Path) -> None:
    """If a load that trims runs alone, its trims are recorded in the step and in every second."""
    seconds = (Sample(start_s=0.0, duration_s=1.0, read=io_stats([]), write=io_stats([]), trim=TRIMS),)
    measured = Measurement(duration_s=1.0, read=io_stats([]), write=io_stats([]), trim=TRIMS, samples=seconds)
    (second,), read = write_and_read(tmp_path, replace(a_step(1), workload=TRIMMER, measurement=measured))
    assert read.workload == TRIMMER
    assert read.measurement == replace(measured, samples=())
    assert second.iops == TRIMS.ios
    assert not second.streams


def test_a_step_that_lost_a_stream_is_left_out(tmp_path: Path) -> None:
    """If a step lacks one of its streams, the step is left out, because the load of the step is not known. The step
    must not count as another load.
    """
    write_and_read(tmp_path, combined_step())
    with closing(sqlite3.connect(tmp_path / "a.tkperf")) as db, db:
        path = db.execute("PRAGMA database_list").fetchone()[2]
        db.execute("DELETE FROM stream WHERE name = 'log'")
    db.close()
    record = read_run(Path(path))
    assert record.tests[0].steps == ()
    assert any("has 3 streams, but only 2 of them" in lost.reason for lost in record.left_out)


@pytest.mark.parametrize(
    "job",
    ["[global]\nbs=4k\n\n[reader]\n\n[log_0]\n\n[_global]\n", "; SIMULATED step: reader + log 0 + global, together\n"],
)
def test_a_step_whose_streams_were_renamed_is_left_out(tmp_path: Path, job: str) -> None:
    """If the name of a stream differs from the name in the job of its step, the step is left out, because tests find
    their streams by name. tkperf replaces some characters of a name in the job, for example spaces. Such a difference
    is accepted.
    """
    names = ("reader", "log 0", "global")
    streams = tuple(replace(one, name=name) for one, name in zip(COMBINATION.together, names, strict=True))
    parts = tuple(replace(part, name=name) for part, name in zip(PARTS, names, strict=True))
    step = combined_step()
    measured = Measurement(
        duration_s=2.0, read=READS, write=WRITES, trim=TRIMS, flush=FLUSHES, streams=parts, samples=()
    )
    _, read = write_and_read(tmp_path, replace(step, workload=combine(streams), measurement=measured, job_file=job))
    assert [part.name for part in read.measurement.streams] == list(names)
    path = tmp_path / "a.tkperf"
    assert read_run(path).left_out == ()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE stream SET name = 'x' WHERE name = 'reader'")
    record = read_run(path)
    assert record.tests[0].steps == ()
    assert any("the job of the step has no stream named x" in lost.reason for lost in record.left_out)


def test_more_streams_than_any_step_has_are_not_read(tmp_path: Path) -> None:
    """A file with more streams than a step can have is refused before the streams fill the memory."""
    write_and_read(tmp_path, combined_step())
    db = sqlite3.connect(tmp_path / "a.tkperf")
    columns = ", ".join(row[1] for row in db.execute("PRAGMA table_info(stream)") if row[1] != "number")
    for number in range(3, 100):
        db.execute(
            f"INSERT INTO stream ({columns}, number) SELECT {columns}, ? FROM stream WHERE number = 0", (number,)
        )
    db.execute("UPDATE step SET streams = 100")
    db.commit()
    db.close()
    with pytest.raises(RunFileError, match="rows of table stream of one step"):
        read_run(tmp_path / "a.tkperf")


def test_fio_output_of_a_combination_is_kept_once(tmp_path: Path) -> None:
    """If several steps have the same streams, only the newest step keeps the last output of fio, because this output
    has a size of half a megabyte.
    """
    path, writer = a_run(tmp_path)
    for number in (1, 2):
        writer(StepEnded(test="iops", record=replace(combined_step(), number=number, engine_output=b"{}")))
    writer.close()
    db = sqlite3.connect(path)
    rows = db.execute("SELECT number, fio_json IS NOT NULL FROM step ORDER BY number").fetchall()
    db.close()
    assert rows == [(1, 0), (2, 1)]


def test_a_file_without_streams_is_read(tmp_path: Path) -> None:
    """An older version of tkperf ran only one load at a time. Its run files lack the column and the tables of streams,
    but the current version can read these files.
    """
    path, writer = a_run(tmp_path, steps=1)
    writer.close()
    db = sqlite3.connect(path)
    for statement in (
        "ALTER TABLE step DROP COLUMN streams",
        "ALTER TABLE under_way DROP COLUMN streams",
        "DROP TABLE stream",
        "DROP TABLE under_way_stream_part",
        "DROP TABLE under_way_stream",
    ):
        db.execute(statement)
    db.close()
    with RunFile(path) as file:
        (step,) = file.record().tests[0].steps
        assert file.samples("iops", step)
        assert file.left_out == ()


def test_the_seconds_of_a_running_combination_are_read_with_its_streams(tmp_path: Path) -> None:
    """If another process measures a run, the view of this run reads the load and the newest seconds of each stream. At
    the end of the step, the tables of the running step are emptied.
    """
    path, writer = a_run(tmp_path)
    begun = StepStarted(
        test="iops",
        section="IOPS",
        kind=StepKind.ROUND,
        number=1,
        position=0,
        steps=1,
        workload=COMBINATION,
        planned_s=200.0,
        planned_bytes=None,
        at_s=0.5,
    )
    writer(begun)
    for at_s in range(100):
        writer(SampleSeen(test="iops", sample=replace(SECOND, start_s=float(at_s)), at_s=1.0 + at_s))
    with RunFile(path) as file:
        delta = file.delta()
    under_way = delta.record.tests[0].under_way
    assert under_way is not None
    assert under_way.workload == COMBINATION
    seconds = delta.seconds_under_way.samples
    assert len(seconds) >= 50
    assert [part.name for part in seconds[-1].streams] == ["reader", "log", "trimmer"]
    assert [part.flush.ios for part in seconds[-1].streams] == [0, 2, 0]
    assert seconds[-1].streams[2].trim.histogram == coarsen(TRIMS.histogram)
    writer(StepEnded(test="iops", record=combined_step()))
    writer.close()
    with RunFile(path) as file:
        ended = file.delta(delta)
    (newest,) = ended.seconds.values()
    assert [part.name for part in newest.samples[-1].streams] == ["reader", "log", "trimmer"]
    db = sqlite3.connect(path)
    assert db.execute("SELECT count(*) FROM under_way_stream_part").fetchone() == (0,)
    db.close()
