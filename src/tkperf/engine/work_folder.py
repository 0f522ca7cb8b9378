"""The folder of fio's job files and gates during a run: in memory, with another place to go.

A run of days must not end because /dev/shm was cleaned or full for a moment. A run that was
killed leaves its folder: the next run removes it, if its owner is dead.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from tkperf.model.errors import EngineError, reason_of

T = TypeVar("T")

PREFIX = "tkperf-"
# The kernel keeps this file locked for as long as its owner lives.
OWNER_LOCK = "owner.lock"
# The longest wait for a place to write to, and the interval of the tries.
PLACE_WAIT_S = 300.0
TRY_EVERY_S = 0.5


def _places() -> tuple[Path, ...]:
    """Return the places, memory first: opening a gate must not wait for a busy disk's journal."""
    places = (Path("/dev/shm"), Path(tempfile.gettempdir()))  # noqa: S108 - private folders in it
    return tuple(dict.fromkeys(places))


class WorkFolder:
    """A private folder. If it cannot be written to, another one is made elsewhere."""

    def __init__(self, places: Sequence[Path] | None = None) -> None:
        self._places = _places() if places is None else tuple(places)
        self._made: list[tuple[Path, int]] = []
        self._patience_s = PLACE_WAIT_S
        for place in self._places:
            remove_dead(place)

    @contextmanager
    def impatient(self) -> Iterator[None]:
        """Try every place only once within this context: there will be another time."""
        self._patience_s = 0.0
        try:
            yield
        finally:
            self._patience_s = PLACE_WAIT_S

    def write(self, make: Callable[[Path], T]) -> T:
        """Return the result of ``make`` in a folder that takes it. Try all places, again and again.

        Raises:
            EngineError: no place could be written to for LONGEST_WAIT_S.
        """
        patience_s = self._patience_s
        until_s = time.monotonic() + patience_s
        while True:
            reasons = []
            for place in self._places:
                try:
                    return make(self._folder_in(place))
                except OSError as error:
                    reasons.append(f"{place}: {reason_of(error)}")
            if time.monotonic() >= until_s:
                raise EngineError(
                    f"fio's job cannot be written anywhere ({'; '.join(reasons)}), tried for "
                    f"{patience_s:.0f} s: make room there"
                )
            time.sleep(TRY_EVERY_S)

    def close(self) -> None:
        for folder, lock in self._made:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)
        self._made = []

    def _folder_in(self, place: Path) -> Path:
        for folder, _ in self._made:
            if folder.parent == place and (folder / OWNER_LOCK).exists():
                return folder
        made = _make_locked(place)
        self._made.append(made)
        return made[0]


def _make_locked(place: Path) -> tuple[Path, int]:
    """Make a new folder. Return it with its lock, held. It gets its name when the lock is held, never before."""
    # tempfile chooses the name. The dot at its beginning keeps other runs from removing it as a leftover.
    nascent = Path(tempfile.mkdtemp(prefix=f".{PREFIX}", dir=place))
    try:
        lock = os.open(nascent / OWNER_LOCK, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            folder = place / nascent.name.removeprefix(".")
            nascent.rename(folder)
        except OSError:
            os.close(lock)
            raise
    except OSError:
        shutil.rmtree(nascent, ignore_errors=True)
        raise
    return folder, lock


def remove_dead(place: Path) -> None:
    """Remove the folders that dead runs of this user left behind here.

    It follows no links, and leaves alone all folders that it cannot judge or remove.
    """
    with suppress(OSError):
        for entry in os.scandir(place):
            if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    _remove_if_dead(Path(entry.path))


def _remove_if_dead(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(opened).st_uid != os.geteuid():
            return
        lock = os.open(
            OWNER_LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=opened
        )
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises while its owner lives
            here = folder.lstat()
            if os.path.samestat(here, os.fstat(opened)):
                shutil.rmtree(folder)
        finally:
            os.close(lock)
    finally:
        os.close(opened)
