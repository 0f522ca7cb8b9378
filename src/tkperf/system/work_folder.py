"""Private folders for files that are not part of a result. The folders are in memory if possible, and tkperf always
removes them.

If /dev/shm was cleaned, or was full for a moment, a run of several days must not end. A folder may therefore move to
another place. If a process is killed, its folder remains. The next process of the same user removes this folder,
because the kernel has released the lock in the folder.
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

from tkperf.model.errors import EngineError, is_full, is_lack_of_resources, reason_of

Made = TypeVar("Made")

PREFIX = "tkperf-"
# The kernel holds the lock on this file as long as the process that owns the folder exists.
OWNER_LOCK = "owner.lock"
# The longest wait, in seconds, for a place to which tkperf can write.
PLACE_WAIT_S = 300.0
TRY_EVERY_S = 0.5
# A new folder is locked and then receives its final name within milliseconds. If a folder has no lock and is older than
# this time, the process that created the folder was killed before it could lock the folder.
NASCENT_S = 600.0
# A tree of folders cannot be removed without descriptors, and the process may have no free descriptors left.
_SPARE_DESCRIPTORS = 4


class WorkFolder:
    """A private folder. If tkperf cannot write to the folder, tkperf creates another folder in another place."""

    def __init__(self, places: Sequence[Path] | None = None) -> None:
        self._places = _places() if places is None else tuple(places)
        self._made: list[_LockedFolder] = []
        for place in self._places:
            remove_dead(place)

    def write(self, make: Callable[[Path], Made], *, wait: bool = True) -> Made:
        """Return the result of ``make`` in the first place to which this process can write.

        Args:
            wait: whether to wait for free space if a place is full.

        Raises:
            EngineError: this process can write to no place. If a place is full, the error is raised after PLACE_WAIT_S.
                Otherwise it is raised immediately.
        """
        patience_s = PLACE_WAIT_S if wait else 0.0
        until_s = time.monotonic() + patience_s
        while True:
            reasons, may_have_room = [], False
            for place in self._places:
                try:
                    return make(self._folder_in(place))
                except OSError as error:
                    if is_lack_of_resources(error):
                        raise EngineError(
                            f"the job file of fio cannot be written to {place}: {reason_of(error)}"
                        ) from error
                    may_have_room |= is_full(error)
                    reasons.append(f"{place}: {reason_of(error)}")
            tried = ""
            if may_have_room:
                tried = f", tried for {patience_s:.0f} s: free some space there"
            if not may_have_room or time.monotonic() >= until_s:
                raise EngineError(f"the job file of fio cannot be written to any folder ({'; '.join(reasons)}){tried}")
            time.sleep(TRY_EVERY_S)

    def close(self) -> None:
        for folder in self._made:
            folder.remove()
        self._made = []

    def _folder_in(self, place: Path) -> Path:
        for folder in self._made:
            if folder.path.parent == place and (folder.path / OWNER_LOCK).exists():
                return folder.path
        made = _LockedFolder(place)
        self._made.append(made)
        return made.path


@contextmanager
def private_folder(place: Path | None = None) -> Iterator[Path]:
    """Yield a private folder in ``place``, or in the folder for temporary files. Remove the private
    folder afterwards.

    Raises:
        OSError: the folder cannot be created.
    """
    place = Path(tempfile.gettempdir()) if place is None else place
    remove_dead(place)
    folder = _LockedFolder(place)
    try:
        yield folder.path
    finally:
        folder.remove()


class _LockedFolder:
    """A new folder with its lock. The folder receives its final name only when the lock is held."""

    def __init__(self, place: Path) -> None:
        """Create the folder. If an error occurs, no file or folder remains."""
        # tempfile chooses a name that begins with a dot. Other processes do not remove such a folder until it is older
        # than NASCENT_S.
        nascent = Path(tempfile.mkdtemp(prefix=f".{PREFIX}", dir=place))
        self.path = place / nascent.name.removeprefix(".")
        self._descriptors: list[int] = []
        try:
            lock = os.open(nascent / OWNER_LOCK, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
            self._descriptors.append(lock)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # These descriptors are closed before the folder is removed, so that enough descriptors are
            # free for the removal.
            for _ in range(_SPARE_DESCRIPTORS):
                self._descriptors.append(os.dup(lock))
            nascent.rename(self.path)
        except BaseException:
            # This call needs no descriptor. The process may have no free descriptor left.
            with suppress(OSError):
                (nascent / OWNER_LOCK).unlink(missing_ok=True)
                nascent.rmdir()
            self._close()
            raise

    def remove(self) -> None:
        lock, *spares = self._descriptors
        for descriptor in spares:
            os.close(descriptor)
        self._descriptors = [lock]
        shutil.rmtree(self.path, ignore_errors=True)
        self._close()

    def _close(self) -> None:
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors = []


def remove_dead(place: Path) -> None:
    """Remove the folders in ``place`` that processes of this user left behind when they died.

    The function follows no links. The function leaves a folder unchanged if the state of the folder is not clear, or if
    the folder cannot be removed.
    """
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if not entry.name.removeprefix(".").startswith(PREFIX):
                continue
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    _remove_if_dead(Path(entry.path))


def _remove_if_dead(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(opened)
        if status.st_uid != os.geteuid():
            return
        if folder.name.startswith(".") and time.time() - status.st_mtime < NASCENT_S:
            return
        try:
            lock = os.open(OWNER_LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=opened)
        except FileNotFoundError:
            if folder.name.startswith("."):
                folder.rmdir()  # this call removes the folder only if it is empty
            return
        try:
            # this call raises an error while the owner of the folder exists
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(folder.lstat(), status):
                shutil.rmtree(folder)
        finally:
            os.close(lock)
    finally:
        os.close(opened)


def _places() -> tuple[Path, ...]:
    """Return the possible places. Places in memory are first, because tkperf must not wait for the journal of a busy
    disk when it opens a gate.
    """
    places = (Path("/dev/shm"), Path(tempfile.gettempdir()))  # noqa: S108 - private folders in it
    return tuple(dict.fromkeys(places))
