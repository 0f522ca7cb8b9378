"""The run files below folders. Links below a folder are not followed, and the number of files is limited."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG

from tkperf.model.choices import RUN_FILE_SUFFIX
from tkperf.model.errors import RunFileError, UsageError, reason_of

MOST_RUN_FILES = 20_000
"""The largest number of run files that one command reads."""
_MOST_ENTRIES = 500_000


def walk_folder(folder: Path) -> Iterator[tuple[os.DirEntry[str], str]]:
    """Yield each entry below a folder with its path relative to this folder. A folder that cannot be read counts as
    empty.
    """
    waiting = [""]
    while waiting:
        below = waiting.pop()
        with suppress(OSError), os.scandir(folder / below) as entries:
            for entry in entries:
                place = f"{below}/{entry.name}" if below else entry.name
                yield entry, place
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(place)


def expand_folders(given: Sequence[Path]) -> list[Path]:
    """Return the named files, and the run files below the named folders, sorted by name. Each file is included once.

    Raises:
        RunFileError: a folder cannot be read.
        UsageError: a folder contains no run file, or there are too many run files.
    """
    found: dict[Path, None] = {}
    for path in given:
        if not path.is_dir():
            found[path] = None
            continue
        below = sorted(_find_below(path))
        if not below:
            raise UsageError(f"there is no run file (NAME{RUN_FILE_SUFFIX}) in {path} or below it")
        found |= dict.fromkeys(below)
    if len(found) > MOST_RUN_FILES:
        raise UsageError(
            f"tkperf found {len(found):,} run files, but a command reads at most {MOST_RUN_FILES:,}. "
            "Name fewer run files"
        )
    return list(found)


def _find_below(folder: Path) -> Iterator[Path]:
    try:
        os.scandir(folder).close()
    except OSError as error:
        raise RunFileError(f"the folder {folder} cannot be read: {reason_of(error)}") from error
    for count, (entry, place) in enumerate(walk_folder(folder)):
        if count > _MOST_ENTRIES:
            raise UsageError(
                f"{folder} contains more than {_MOST_ENTRIES:,} files and folders. Name subfolders instead"
            )
        if entry.name.endswith(RUN_FILE_SUFFIX):
            with suppress(OSError):
                if S_ISREG(entry.stat(follow_symlinks=False).st_mode):
                    yield folder / place
