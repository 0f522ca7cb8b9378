"""The run file after failures. Examples are a killed or interrupted run, a full disk, a locked or damaged file, and a
file of another program.
"""

from __future__ import annotations

import fcntl
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.builders import run_info
from tests.runfile.runs import a_run, a_step
from tkperf.analysis.run_results import analyse
from tkperf.model.errors import LockedRunFileError, RunFileError
from tkperf.model.record import RunStatus
from tkperf.runfile import limits, statements, writer
from tkperf.runfile.reader import RunFile, read_run
from tkperf.runfile.run_rows import ENDED_BY_KILL
from tkperf.runfile.writer import RunFileWriter, require_resumable
from tkperf.runner.events import RunEnded, RunStarted, StepEnded, TestStarted


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    """If a file with this name exists, a new run is refused and the file does not change."""
    path = tmp_path / "a.tkperf"
    path.write_text("precious")
    with pytest.raises(RunFileError, match="not overwritten"):
        RunFileWriter(path)
    assert path.read_text() == "precious"


def test_a_folder_that_does_not_exist_is_a_clear_error(tmp_path: Path) -> None:
    """A folder that does not exist causes an error that names the file and the reason."""
    with pytest.raises(RunFileError, match=r"none/a.tkperf cannot be created: No such file"):
        RunFileWriter(tmp_path / "none" / "a.tkperf")


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    """If a folder cannot be written to, the error is clear and tells the user what to do. The test uses a path that
    even root cannot write to.
    """
    (tmp_path / "file").touch()
    with pytest.raises(RunFileError, match=r"cannot be created: Not a directory. Choose a folder"):
        RunFileWriter(tmp_path / "file" / "a.tkperf")


def test_a_file_that_could_not_be_made_does_not_stand_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a run file could not be created, the same name can be used again."""

    def fail(_: sqlite3.Connection) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(writer, "create_tables", fail)
        with pytest.raises(RunFileError, match=r"cannot create .*disk is full"):
            RunFileWriter(tmp_path / "a.tkperf")
    assert list(tmp_path.iterdir()) == []
    RunFileWriter(tmp_path / "a.tkperf").close()


WRITE_FOR_EVER = """
import sys; from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.runfile.runs import a_step; from tests.builders import run_info
from tkperf.runner.events import *; from tkperf.runfile.writer import RunFileWriter
from tkperf.runfile import backlog
backlog.READER_WAIT_S = 600  # on a busy host, the test may read the file for a long time
writer = RunFileWriter(Path(sys.argv[1]))
writer(RunStarted(info=run_info(), tests=("iops",)))
writer(TestStarted(test="iops", at_s=0))
for number in range(1, 100000):
    writer(StepEnded(test="iops", record=a_step(number)))
    print(number, flush=True)
"""


@pytest.mark.parametrize("after", [1, 7, 40])
def test_kill_9_loses_at_most_the_step_under_way(tmp_path: Path, after: int) -> None:
    """After ``kill -9``, the run file contains every step that was acknowledged before the kill. tkperf then reads the
    run as interrupted, with the kill as the reason.
    """
    path = tmp_path / "a.tkperf"
    root = str(Path(__file__).parents[2])
    writer = subprocess.Popen([sys.executable, "-c", WRITE_FOR_EVER, path, root], stdout=subprocess.PIPE, text=True)
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
    assert record.ended_because == ENDED_BY_KILL
    assert record.tests[0].status is RunStatus.INTERRUPTED
    numbers = [step.number for step in record.tests[0].steps]
    assert numbers == list(range(1, len(numbers) + 1))
    assert acknowledged <= len(numbers) <= acknowledged + 1


KILLED_WHILE_WRITING = """
import os, signal, sys; from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.runfile.runs import a_run, a_step
from tkperf.runner.events import StepEnded
from tkperf.runfile import schema
from tkperf.runfile import backlog
def all_but_the_commit(db, statements):
    for sql, rows in statements:
        db.executemany(sql, rows)
    os.kill(os.getpid(), signal.SIGKILL)
path, writer = a_run(Path(sys.argv[1]), steps=3)
writer._db.execute("PRAGMA cache_size = 1")  # pages reach the file before the commit
backlog.run_statements = all_but_the_commit
writer(StepEnded(test="iops", record=a_step(4, engine_output=os.urandom(3_000_000))))
"""


@pytest.fixture
def half_written(tmp_path: Path) -> Path:
    """Return a file that was only partly written. Its writer was killed while it wrote the fourth step."""
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-c", KILLED_WHILE_WRITING, str(tmp_path), root]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert (tmp_path / "a.tkperf-journal").stat().st_size > 0
    assert (tmp_path / "a.tkperf").stat().st_size > 1_000_000
    return tmp_path / "a.tkperf"


def test_a_step_half_written_is_taken_back(half_written: Path) -> None:
    """A step that was being written when the writer was killed is rolled back. The file then contains the earlier steps
    and has no journal.
    """
    with RunFile(half_written) as run_file:
        numbers = [step.number for step in run_file.record().tests[0].steps]
    assert numbers == [1, 2, 3]
    assert [path.name for path in half_written.parent.iterdir()] == ["a.tkperf"]


def test_a_half_written_file_that_cannot_be_mended_says_what_to_do(
    half_written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the reader has no permission to repair a partly written file, tkperf reports an error. The error tells the
    user to copy the journal together with the file.
    """
    monkeypatch.setattr(os, "access", lambda *_: False)  # without this replacement, root could always write to the file
    with pytest.raises(RunFileError, match=r"a\.tkperf-journal next to it belongs to it: copy both"):
        read_run(half_written)


@pytest.mark.parametrize("moment", ["encode_seconds", "encode_second_histograms"])
def test_ctrl_c_while_writing_loses_no_finished_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """If Ctrl-C interrupts the writing of a finished step, the step is written with the next event. The file then
    contains the step exactly once.
    """
    path, writer = a_run(tmp_path, steps=1)

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(statements, moment, interrupt)
        with pytest.raises(KeyboardInterrupt):
            writer(StepEnded(test="iops", record=a_step(2)))
    writer(RunEnded(status=RunStatus.INTERRUPTED, because="stopped by the user", ended_utc="u"))
    writer.close()
    record = read_run(path)
    assert [step.number for step in record.tests[0].steps] == [1, 2]
    assert record.ended_because == "stopped by the user"


def test_a_lock_of_another_program_has_its_own_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If another program has locked a file, this causes a specific error. When that program ends, the file becomes
    readable, so tkperf must not store that the file is unreadable.
    """
    monkeypatch.setattr(limits, "LOCKED_S", 0.0)
    path, writer = a_run(tmp_path, 1)
    writer.close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("BEGIN EXCLUSIVE")
        with pytest.raises(LockedRunFileError, match="locked"):
            read_run(path)
        monkeypatch.setattr(limits, "LOCKED_S", 3600.0)
        with pytest.raises(LockedRunFileError, match="locked"):
            RunFile(path, locked_s=0.0)
    assert read_run(path).tests


def test_the_lock_tells_a_running_run_from_a_killed_one(tmp_path: Path) -> None:
    """The lock on the file distinguishes a running run from a killed run, because the writer holds the lock until it
    ends.
    """
    path = tmp_path / "a.tkperf"
    writer = RunFileWriter(path)
    with path.open("rb") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    writer.close()
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)


def test_a_file_has_one_writer(tmp_path: Path) -> None:
    """A run file has only one writer, because two writers would mix two runs. After the first writer has closed the
    file, another writer may open it.
    """
    path, writer = a_run(tmp_path, steps=1)
    with pytest.raises(RunFileError, match="is being written"):
        RunFileWriter(path, appends=True)
    writer.close()
    RunFileWriter(path, appends=True).close()


def test_files_that_are_not_runs_are_named_as_such(tmp_path: Path) -> None:
    """A file that is missing, empty, truncated, written by a newer version or not a run file causes a clear error."""
    path = tmp_path / "a.tkperf"
    with pytest.raises(RunFileError, match="there is no run file"):
        RunFile(path)
    path.write_bytes(b"")
    with pytest.raises(RunFileError, match="not a run file"):
        RunFile(path)
    path.write_bytes(os.urandom(10000))
    with pytest.raises(RunFileError, match="not a run file"):
        RunFile(path)
    path.unlink()
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("CREATE TABLE t (x)")
    other.close()
    with pytest.raises(RunFileError, match="not a run file"):
        RunFile(path)
    path.unlink()
    RunFileWriter(path).close()
    with closing(sqlite3.connect(path)) as newer, newer:
        newer.execute("PRAGMA user_version = 999")
    newer.close()
    with pytest.raises(
        RunFileError, match=r"by tkperf .*, which is newer \(format 999, but this version of tkperf reads"
    ):
        RunFile(path)


def test_a_refused_file_is_closed_immediately(tmp_path: Path) -> None:
    """tkperf closes a file that it refuses to read. The exception must not keep the database open."""
    path = tmp_path / "a.tkperf"
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("CREATE TABLE t (x)")
    with pytest.raises(RunFileError, match="not a run file") as refused:
        RunFile(path)
    opened = [os.path.realpath(descriptor) for descriptor in Path("/proc/self/fd").iterdir()]
    assert str(path) not in opened, refused.value


def test_a_format_of_before_the_first_release_is_named(tmp_path: Path) -> None:
    """A file in a format from before the first release is refused, and the error names the version that wrote the file.
    The file is refused even if its format has the same number as the format of the release.
    """
    path, writer = a_run(tmp_path, steps=1)
    writer.close()
    with closing(sqlite3.connect(path)) as older, older:
        older.execute("CREATE TABLE migration (number INTEGER PRIMARY KEY, name TEXT NOT NULL)")
    says = f"was written by tkperf {run_info().tkperf_version} in a format that was never released"
    for opened in (RunFile, require_resumable):
        with pytest.raises(RunFileError, match=re.escape(says)):
            opened(path)


def test_a_file_cut_short_is_a_clear_error(tmp_path: Path) -> None:
    """A truncated copy of a run file causes a clear error and no traceback."""
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


def test_damaged_bytes_never_become_a_traceback(tmp_path: Path) -> None:
    """Changed bytes in a file lead to other values or to an error of tkperf, but never to a traceback."""
    path, writer = a_run(tmp_path, steps=6)
    writer.close()
    whole = path.read_bytes()
    chance, refused = random.Random(1), 0
    for _ in range(400):
        damaged = bytearray(whole)
        for _ in range(chance.choice([1, 3, 30])):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        path.write_bytes(damaged)
        try:
            with RunFile(path) as run_file:
                record = run_file.record()
                analyse(record)
                for test in record.tests:
                    run_file.seconds(test)
                for step in record.tests[0].steps if record.tests else ():
                    run_file.samples("iops", step)
                    run_file.engine_output("iops", step)
        except RunFileError:
            refused += 1
    assert refused > 20
