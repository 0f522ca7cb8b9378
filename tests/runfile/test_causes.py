"""SQLite hides the kernel's reason for a failure. tkperf finds this reason, and waits only if the reason is a lack of
free space.
"""

from __future__ import annotations

import errno
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from tests.builders import run_info
from tests.runfile.runs import a_run, a_step, sqlite_error
from tkperf.model.errors import RunFileError
from tkperf.model.record import RunStatus
from tkperf.runfile import backlog
from tkperf.runfile.backlog import Backlog
from tkperf.runfile.reader import read_run
from tkperf.runfile.salvage import find_read_cause, find_write_cause, may_pass
from tkperf.runfile.writer import RunFileWriter, create_run_file, write_whole
from tkperf.runner.events import RunEnded, RunStarted, StepEnded, TestStarted

CANTOPEN = sqlite_error(sqlite3.SQLITE_CANTOPEN)


@contextmanager
def few_descriptors() -> Iterator[None]:
    """Prevent the process from opening any further file."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_lack_of_descriptors_is_found_behind_the_words_of_sqlite(tmp_path: Path) -> None:
    """tkperf detects a lack of file descriptors although SQLite reports only 'unable to open database file'. SQLite
    also reports this text if it cannot open the journal.
    """
    path = tmp_path / "a.tkperf"
    path.touch()
    for find in (find_write_cause, find_read_cause):
        with few_descriptors():
            cause = find(CANTOPEN, path)
        assert isinstance(cause, OSError)
        assert cause.errno == errno.EMFILE
        assert not may_pass(cause)


def test_without_a_cause_the_error_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.tkperf"
    path.touch()
    assert find_write_cause(CANTOPEN, path) is CANTOPEN
    assert find_read_cause(CANTOPEN, path) is CANTOPEN
    assert may_pass(CANTOPEN)
    for code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL):
        with few_descriptors():
            assert may_pass(find_write_cause(sqlite_error(code), path))
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize(
    ("number", "passes"),
    [
        (errno.ENOSPC, True),
        (errno.EDQUOT, True),
        (errno.EROFS, False),
        (errno.EIO, False),
        (errno.EMFILE, False),
        (errno.ENFILE, False),
        (errno.EACCES, False),
        (errno.ENODEV, False),
    ],
)
def test_a_run_waits_for_room_and_for_nothing_else(
    number: int, passes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run waits for free space, but not after any other failure. SQLite also reports 'disk I/O error' for a full
    quota. Any failure that waiting cannot remove ends the run, and tkperf saves the whole run in another folder.
    """
    saved = tmp_path / "saved"
    saved.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(saved))
    path = tmp_path / "run/a.tkperf"
    path.parent.mkdir()
    writer = RunFileWriter(path)
    writer(RunStarted(info=run_info(), tests=("iops",)))
    writer(TestStarted(test="iops", at_s=0))
    make = tempfile.TemporaryFile

    def fail(db: sqlite3.Connection, statements: object) -> NoReturn:
        db.execute("ROLLBACK")
        raise sqlite_error(sqlite3.SQLITE_IOERR)

    def probe(*args: object, dir: object = None, **kwargs: object) -> object:  # noqa: A002 - tempfile's own name
        if dir == path.parent:
            raise OSError(number, os.strerror(number))
        return make(*args, dir=dir, **kwargs)  # type: ignore[call-overload]

    with monkeypatch.context() as trouble:
        trouble.setattr(tempfile, "TemporaryFile", probe)
        with monkeypatch.context() as first:
            first.setattr(backlog, "run_statements", fail)
            if passes:
                writer(StepEnded(test="iops", record=a_step(1)))
            else:
                with pytest.raises(RunFileError, match=os.strerror(number)):
                    writer(StepEnded(test="iops", record=a_step(1)))
        assert not writer.keeps_up
        if not passes:
            # In this test, tkperf can write the rescued copy, but not the run file.
            error = sqlite_error(sqlite3.SQLITE_IOERR)
            trouble.setattr(Backlog, "_try", lambda *_, **__: error)
            with pytest.raises(RunFileError, match="the whole run is saved as"):
                writer(RunEnded(status=RunStatus.FAILED, because="x", ended_utc="u"))
            (copy,) = saved.glob("*/a.tkperf")
            assert len(read_run(copy).tests[0].steps) == 1
    writer.close()


def test_a_run_is_saved_in_memory_if_no_folder_on_disk_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If tempfile finds no folder that can be written, tkperf still tries the further folders, and saves the run in
    memory.
    """
    memory = tmp_path / "memory"
    memory.mkdir()
    path = tmp_path / "a.tkperf"
    writer = RunFileWriter(path)
    writer(RunStarted(info=run_info(), tests=("iops",)))
    writer(TestStarted(test="iops", at_s=0))

    def no_folder() -> NoReturn:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    with monkeypatch.context() as trouble:
        trouble.setattr(tempfile, "gettempdir", no_folder)
        trouble.setattr(backlog, "_FURTHER_FOLDERS", (tmp_path / "full", memory))
        trouble.setattr(Backlog, "_try", lambda *_, **__: sqlite_error(sqlite3.SQLITE_FULL))
        trouble.setattr(backlog, "LAST_WAIT_S", 0.0)
        with pytest.raises(RunFileError, match=f"the whole run is saved as {memory}"):
            writer(RunEnded(status=RunStatus.FAILED, because="x", ended_utc="u"))
    (copy,) = memory.glob("*/a.tkperf")
    assert read_run(copy).status is RunStatus.FAILED
    writer.close()


@pytest.mark.parametrize("free", range(7))
def test_a_run_file_that_cannot_be_created_says_why_and_leaves_nothing(free: int, tmp_path: Path) -> None:
    code = (
        "import resource, sys; from pathlib import Path\n"
        "from tkperf.model.errors import RunFileError\n"
        "from tkperf.runfile.writer import create_run_file\n"
        "import tempfile, random\n"
        "free = 3 + int(sys.argv[2]); resource.setrlimit(resource.RLIMIT_NOFILE, (free, free))\n"
        "try:\n"
        "    create_run_file(Path(sys.argv[1]) / 'a.tkperf')\n"
        "    print('made')\n"
        "except RunFileError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path, str(free)], capture_output=True, text=True, check=True)
    if done.stdout == "made\n":
        return
    assert "Too many open files (raise the limit of this shell: ulimit -n)" in done.stdout
    assert not [*tmp_path.iterdir()]


def test_a_run_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    path, writer = a_run(tmp_path)
    writer.close()
    with few_descriptors(), pytest.raises(RunFileError, match="Too many open files"):
        read_run(path)


def test_what_a_killed_import_left_goes_with_the_next_one(tmp_path: Path) -> None:
    """An import removes the unfinished file of another import only if that import was killed, and never if that import
    is still running.
    """
    path = tmp_path / "a.tkperf"
    dead, living = tmp_path / ".a.tkperf.1.part", tmp_path / ".a.tkperf.2.part"
    dead.write_bytes(b"x")
    lock, db = create_run_file(living)
    with write_whole(path) as write:
        write(RunStarted(info=run_info(), tests=("iops",)))
    db.close()
    os.close(lock)
    assert sorted(tmp_path.iterdir()) == [living, path]


@pytest.mark.parametrize("exists", [False, True])
def test_an_import_without_hard_links_replaces_no_file(
    exists: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a file system without hard links, such as FAT, a finished import is renamed. If another program has created a
    file with this name in the meantime, this file remains.
    """

    def no_hard_links(*_: object) -> NoReturn:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(Path, "hardlink_to", no_hard_links)
    path = tmp_path / "a.tkperf"

    def write_run() -> None:
        with write_whole(path) as write:
            write(RunStarted(info=run_info(), tests=("iops",)))
            if exists:
                path.write_text("precious")

    if exists:
        with pytest.raises(RunFileError, match="exists"):
            write_run()
        assert path.read_text() == "precious"
    else:
        write_run()
        assert read_run(path).tests == ()
    assert [*tmp_path.iterdir()] == [path]
