"""The view of a run in progress reads only the newest seconds, because a step in a file from another user may contain
millions of seconds.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.builders import io_stats
from tests.fuzz.run import run_limited
from tests.runfile.runs import a_run, a_step
from tkperf.model.errors import LockedRunFileError, RunFileError
from tkperf.model.measurement import NO_IO, NewestSamples, Sample, add_all
from tkperf.pipeline import running_runs
from tkperf.pipeline.running_runs import FollowedFile, look, read_overview
from tkperf.runfile import limits, reader
from tkperf.runfile.columns import (
    SECOND_COLUMNS,
    decode_newest_samples,
    decode_samples,
    decode_total,
    encode_second_histograms,
    encode_seconds,
    pack_integers,
)
from tkperf.runfile.limits import MOST_NEWEST_SECONDS
from tkperf.runfile.reader import RunFile
from tkperf.runner.events import Delta, SampleSeen, StepEnded
from tkperf.runner.run_log import Follower, _sum_before, find_progress


def seconds_from(first: int, count: int) -> tuple[Sample, ...]:
    return tuple(
        Sample(start_s=n, duration_s=1, read=NO_IO, write=io_stats([1000] * (1 + n % 7)))
        for n in range(first, first + count)
    )


def packed(samples: tuple[Sample, ...]) -> tuple[bytes | None, bytes | None]:
    return encode_seconds(samples), encode_second_histograms(samples)


@contextmanager
def held(path: Path) -> Iterator[sqlite3.Connection]:
    """Hold the lock of a run file as its writer does. The run in the file was killed."""
    with path.open("rb") as file, closing(sqlite3.connect(path, isolation_level=None)) as db:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield db


def begun_step(db: sqlite3.Connection, parts: list[tuple[bytes | None, bytes | None]]) -> None:
    """Replace the only step with an unfinished step that has the given parts."""
    names = [row[1] for row in db.execute("PRAGMA table_info(under_way)")]
    chosen = ", ".join("NULL" if name == "planned_bytes" else name for name in names)
    db.execute(f"INSERT INTO under_way SELECT {chosen} FROM step LIMIT 1")
    db.execute("DELETE FROM step")
    db.executemany("INSERT INTO under_way_part VALUES (NULL, 1, ?, ?)", parts)


@pytest.mark.parametrize("most", [1, 7, 100])
def test_the_newest_seconds_are_the_last_ones(most: int) -> None:
    """The newest seconds equal the last seconds of the whole step. The number of all other seconds is known."""
    samples = tuple(replace(each, read=each.write) for each in seconds_from(0, 40))
    newest = decode_newest_samples(*packed(samples), most)
    assert newest == NewestSamples(left_out=max(0, 40 - most), samples=decode_samples(*packed(samples))[-most:])
    assert decode_newest_samples(None, None, most) == NewestSamples()


def test_the_sum_of_seconds_is_that_of_their_records() -> None:
    """The total of several seconds that tkperf computes from columns equals the sum of their records. It has no
    histogram, because no output needs a histogram.
    """
    samples = seconds_from(3, 50)
    total = decode_total(packed(samples)[0], 50)
    assert (total.count, total.end_s, total.read) == (50, 53.0, NO_IO)
    assert total.write == replace(add_all(each.write for each in samples), histogram=NO_IO.histogram)
    with pytest.raises(ValueError, match="50 seconds in one part"):
        decode_total(packed(samples)[0], 49)


def test_the_beginning_of_a_long_step_is_one_sample(tmp_path: Path) -> None:
    """The beginning of a long step is one sample that contains all bytes of the earlier seconds. If a user attaches
    late, only the newest seconds are shown individually.
    """
    path, writer = a_run(tmp_path, 1)
    parts = [seconds_from(60 * n, 60) for n in range(30)]
    writer.close()
    with held(path) as db:
        begun_step(db, [packed(part) for part in parts])
        delta = look(path)
        newest = delta.seconds_under_way
        assert newest.left_out == 1800 - MOST_NEWEST_SECONDS
        assert len(newest.samples) == MOST_NEWEST_SECONDS
        assert newest.samples[-1].start_s == 1799
    (kept,) = [test.under_way for test in delta.record.tests]
    assert kept is not None
    before = _sum_before(kept, newest)
    assert (before.start_s, before.duration_s) == (0.0, newest.left_out)
    assert before.write.bytes == sum(each.write.bytes for part in parts[:10] for each in part)


def test_seconds_that_were_seen_under_way_are_not_told_again(tmp_path: Path) -> None:
    """Seconds that were reported while a step was running are not reported again. If a step has more seconds than one
    reading returns, only the seconds after the last part are new at the end of the step.
    """
    path, writer = a_run(tmp_path)
    samples = seconds_from(0, MOST_NEWEST_SECONDS + 500)
    step = a_step()
    step = replace(step, measurement=replace(step.measurement, samples=samples))
    follower = Follower()
    list(follower.take(look(path)))
    follower._seen = len(samples) - 20
    since = look(path)
    writer(StepEnded(test="iops", record=step))
    seen = [e for e in follower.take(look(path, since)) if isinstance(e, SampleSeen)]
    assert [event.sample.start_s for event in seen] == [each.start_s for each in samples[-20:]]
    writer.close()


def test_parts_of_the_next_step_are_read_from_the_first(tmp_path: Path) -> None:
    """The parts of a step are read from the first part, because each step numbers its parts from the start. The newest
    part of the preceding step does not count.
    """
    path, writer = a_run(tmp_path, 1)
    writer.close()
    with held(path) as db:
        begun_step(db, [packed(seconds_from(0, 60)), packed(seconds_from(60, 60))])
        since = look(path)
        assert since.part == 2
        db.execute("UPDATE under_way SET started_s = started_s + 200")
        db.execute("DELETE FROM under_way_part")
        db.execute("INSERT INTO under_way_part VALUES (NULL, 1, ?, ?)", packed(seconds_from(0, 5)))
        assert len(look(path, since).seconds_under_way.samples) == 5


def test_a_step_under_way_with_millions_of_seconds_is_shown(tmp_path: Path) -> None:
    """A process with little memory can show a running step with millions of seconds. One record for each second would
    need gigabytes.
    """
    path, writer = a_run(tmp_path, 1)
    writer.close()
    seconds = 1000
    table = np.zeros((len(SECOND_COLUMNS), seconds), dtype=np.int64)
    table[0], table[1], table[2], table[3] = 10**6 * np.arange(seconds), 10**6, 1, 4096
    part = pack_integers(table), pack_integers(np.zeros(2 * seconds, dtype=np.int64))
    with held(path) as db:
        db.execute("BEGIN")
        begun_step(db, [part] * 950)
        db.execute("COMMIT")
        assert run_limited(lambda: str(read_overview(path).state)) == "running"
        assert run_limited(lambda: str(look(path).seconds_under_way.left_out)) == str(950_000 - MOST_NEWEST_SECONDS)


def test_thousands_of_new_steps_have_no_seconds(tmp_path: Path) -> None:
    """Only the newest steps are read with their seconds. The number of rows that a writer adds between two readings
    does not matter.
    """
    path, writer = a_run(tmp_path, 1)
    writer.close()
    with held(path) as db:
        since = look(path)
        names = ", ".join("n + 1" if row[1] == "sequence" else row[1] for row in db.execute("PRAGMA table_info(step)"))
        db.execute(
            "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 2000) "
            f"INSERT INTO step SELECT {names} FROM step, c WHERE sequence = 1"
        )
        delta = look(path, since)
    assert len(delta.log) == 2000
    assert list(delta.seconds) == list(range(2001, 1941, -1))


def test_the_limit_of_memory_is_for_all_looks_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory limit applies to all readings together, because a view keeps the log of earlier readings. If each
    reading contains a new job file of a megabyte, the log would otherwise grow by a megabyte per reading.
    """
    path, writer = a_run(tmp_path, 1)
    writer.close()
    monkeypatch.setattr(limits, "MEMORY_BYTES", 10_000_000)
    with held(path) as db:
        columns = [row[1] for row in db.execute("PRAGMA table_info(step)")]

        def add_step(number: int, job_characters: int) -> None:
            db.execute("INSERT INTO job VALUES (?, ?)", (number, f"{number:x>{job_characters}}"))
            changed = {"sequence": str(number), "job_id": str(number)}
            values = ", ".join(changed.get(name, name) for name in columns)
            db.execute(f"INSERT INTO step SELECT {values} FROM step WHERE sequence = 1")

        since = look(path)
        for number in range(100, 120):
            add_step(number, 1000)
            since = look(path, since)
            assert len(since.log) == 1
        for number in range(200, 206):
            add_step(number, 1_000_000)
            since = look(path, since)
        for number in range(206, 210):
            add_step(number, 1_000_000)
        with pytest.raises(
            RunFileError,
            match=r"it is too large: in total, the rows of the run need more memory than the limit of 10.0 MB",
        ):
            look(path, since)


def test_a_file_that_grows_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that grows while it is read does not exhaust the memory, because the copy in memory has a limit."""
    path, writer = a_run(tmp_path, 1)
    size = path.stat().st_size
    read_at_once = reader._read_at_once

    def grown(db: sqlite3.Connection, path: Path) -> bytes:
        with path.open("ab") as file:
            file.write(bytes(5000))
        return read_at_once(db, path)

    monkeypatch.setattr(reader, "_read_at_once", grown)
    monkeypatch.setattr(reader, "MOST_COPIED_BYTES", size + 4999)
    with pytest.raises(RunFileError, match="the file grew to"):
        RunFile(path, briefly=True)
    writer.close()


def test_a_run_whose_active_range_is_lost_has_no_place(tmp_path: Path) -> None:
    """If a run has no recorded active range, it has no position in its procedure, and no exception occurs. A row of the
    table ``run`` may disappear between two readings.
    """
    path, writer = a_run(tmp_path, 1)
    delta = look(path)
    writer.close()
    info = replace(delta.record.info, active_range_length_bytes=None)
    progress = find_progress(replace(delta.record, info=info), delta.log)
    assert (progress.test, progress.phase) == ("iops", None)


def test_a_file_that_changes_all_the_time_is_not_read_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that changes continuously is not read continuously. After a reading of ten seconds, tkperf waits ten
    seconds before the next reading. The end of the run is still noticed immediately.
    """
    path, writer = a_run(tmp_path, 1)
    followed = FollowedFile(path)
    now_s, looks = 100.0, list[Delta | None]()

    def slow_look(path: Path, since: Delta | None = None) -> Delta:
        nonlocal now_s
        now_s += 10
        looks.append(since)
        return look(path, since)

    monkeypatch.setattr("tkperf.pipeline.running_runs.time.monotonic", lambda: now_s)
    monkeypatch.setattr(running_runs, "look", slow_look)
    followed.new_events()
    for _ in range(10):
        os.utime(path, (now_s, now_s))
        assert not followed.has_changed
        assert not followed.new_events()
        now_s += 1
    assert followed.has_changed
    followed.new_events()
    assert len(looks) == 2
    writer.close()
    assert followed.has_changed
    followed.new_events()
    assert len(looks) == 3


def test_a_file_that_stays_locked_is_read_again_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a busy disk delays a commit of a run, the file is locked. A later reading returns the events of the run. If
    no process writes the file, the lock is an error, because another program holds it.
    """
    # If readings took a measurable time, the next reading would not be due immediately.
    monkeypatch.setattr("tkperf.pipeline.running_runs.time.monotonic", lambda: 100.0)
    path, writer = a_run(tmp_path, 1)
    followed = FollowedFile(path)
    followed.first_events()
    followed.new_events()
    writer(StepEnded(test="iops", record=a_step(2)))
    tried: list[Path] = []

    def find_locked(path: Path, since: Delta | None = None) -> Delta:
        tried.append(path)
        raise LockedRunFileError("another program has locked it")

    with monkeypatch.context() as locked:
        locked.setattr(running_runs, "look", find_locked)
        assert followed.new_events() == []
    assert tried
    assert [type(event) for event in followed.new_events()] == [SampleSeen, StepEnded]
    writer.close()
    monkeypatch.setattr(running_runs, "look", find_locked)
    with pytest.raises(LockedRunFileError):
        followed.new_events()
