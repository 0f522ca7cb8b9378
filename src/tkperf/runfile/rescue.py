"""The last resort of a run whose file cannot be written: the whole run, saved somewhere else."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

from tkperf.runfile.schema import migrate

# The last is memory: gone with the next boot, but not with tkperf.
_FURTHER_FOLDERS = ("/var/tmp", "/dev/shm")  # noqa: S108 - mkdtemp makes a private folder in them

Fill = Callable[[sqlite3.Connection], None]


def write_rescue(db: sqlite3.Connection, name: str, frame: Fill, rest: Fill) -> Path | None:
    """A run file of what is in ``db`` and what waits to be. None where no folder takes it.

    It is a run file like any other, so nothing has to be put together again.

    Args:
        name: of the file, in a new folder of its own.
        frame: makes an empty database one of this run, for where ``db`` cannot even be read.
        rest: writes what waits.
    """
    for folder in _folders():
        try:
            return _write(folder, db, name, frame, rest)
        except (sqlite3.Error, OSError):
            continue
    return None


def _folders() -> Iterable[str]:
    try:
        yield tempfile.gettempdir()
    except OSError:  # not one folder that can be written to
        return
    yield from _FURTHER_FOLDERS


def _write(folder: str, db: sqlite3.Connection, name: str, frame: Fill, rest: Fill) -> Path:
    place = Path(tempfile.mkdtemp(prefix="tkperf-rescued-", dir=folder))
    path = place / name
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as copy:
            try:
                db.backup(copy)
            except sqlite3.Error:
                path.unlink(missing_ok=True)
                copy.close()
                return _from_frame(path, frame, rest)
            rest(copy)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    return path


def _from_frame(path: Path, frame: Fill, rest: Fill) -> Path:
    with closing(sqlite3.connect(path, isolation_level=None)) as fresh:
        migrate(fresh)
        frame(fresh)
        rest(fresh)
    return path
