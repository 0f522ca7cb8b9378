"""Where fio's job files and gates lie while a run goes on: in memory, with another place to go.

A run of days must not end because /dev/shm was cleaned or full for a moment. And a run that was
killed leaves its folder: the next one takes it away, if nobody lives in it any more.
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
# Locked for as long as its owner lives, by the kernel's word.
OWNER_LOCK = "owner.lock"
# How long a place to write to is waited for, and how often it is tried.
LONGEST_WAIT_S = 300.0
RETRY_EVERY_S = 0.5


def _places() -> tuple[Path, ...]:
    """In memory first: opening a gate must not wait for a busy disk's journal."""
    places = (Path("/dev/shm"), Path(tempfile.gettempdir()))  # noqa: S108 - private folders in it
    return tuple(dict.fromkeys(places))


class WorkFolder:
    """A private folder, made anew elsewhere when it cannot be written to."""

    def __init__(self, places: Sequence[Path] | None = None) -> None:
        self._places = _places() if places is None else tuple(places)
        self._made: list[tuple[Path, int]] = []
        self._patience_s = LONGEST_WAIT_S
        for place in self._places:
            remove_dead(place)

    @contextmanager
    def impatient(self) -> Iterator[None]:
        """Within, every place is tried only once: there will be another time."""
        self._patience_s = 0.0
        try:
            yield
        finally:
            self._patience_s = LONGEST_WAIT_S

    def write(self, make: Callable[[Path], T]) -> T:
        """What ``make`` makes in a folder that takes it; tried everywhere, again and again.

        Raises:
            EngineError: nowhere could be written to for LONGEST_WAIT_S.
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
            time.sleep(RETRY_EVERY_S)

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
    """A new folder and its lock, held. It gets its name when the lock is held, never before."""
    # tempfile chooses names; one beginning with a dot is nobody's leftover to remove.
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
    """Remove the folders here that runs of this user, which are dead for certain, left behind.

    Links are never followed, and what cannot be told or removed is left alone.
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
