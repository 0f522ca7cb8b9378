"""Files below the served folders. The server does not follow links to files, and never uses a path that a request
contains.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, replace
from pathlib import Path

from tkperf.model.errors import RunFileError
from tkperf.runfile.writers import FileStamp, state_of


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFile:
    """A file that the library found.

    Attributes:
        folder: the served folder that contains the file, without links in its path.
        place: the path of the file, relative to that folder.
        stamp: the state of the file when the library looked at it for the last time.
    """

    folder: Path
    place: str
    stamp: FileStamp

    @property
    def name(self) -> str:
        return Path(self.place).stem


def look_again(known: KnownFile) -> KnownFile:
    """Return a known file with the stamp of its current state. The function opens the folders on the path one by one,
    and follows no link below the served folder.

    Raises:
        RunFileError: the file was removed, or a link or another file has replaced it.
    """
    flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
    opened: list[int] = []
    try:
        opened.append(os.open(known.folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))
        for name in Path(known.place).parts:
            opened.append(os.open(name, flags, dir_fd=opened[-1]))
        status = os.fstat(opened[-1])
    except OSError as error:
        raise _changed(known) from error
    finally:
        for descriptor in opened:
            os.close(descriptor)
    stamp = state_of(status)
    # The inode number becomes free when the file is removed, so a new link or pipe with the same name can receive the
    # same number.
    if stamp[:2] != known.stamp[:2] or not stat.S_ISREG(status.st_mode):
        raise _changed(known)
    return replace(known, stamp=stamp)


def reach(known: KnownFile) -> Path:
    """Check a known file as ``look_again`` does, and return the path of the file.

    Raises:
        RunFileError: the same errors as in ``look_again``.
    """
    look_again(known)
    return known.folder / known.place


def _changed(known: KnownFile) -> RunFileError:
    return RunFileError(f"{known.place} is no longer the file that the list shows. Return to the list of runs")
