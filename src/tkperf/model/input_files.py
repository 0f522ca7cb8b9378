"""Reading of complete input files, with limits on the size of the file and on the waiting time.

A user may name an endless device, a pipe without a writer, or a file that is larger than the memory. Each of these
mistakes causes one clear error, within seconds and with a few MB of memory.
"""

from __future__ import annotations

import errno
import os
import select
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

from tkperf.model.errors import InputFileError, UsageError, closest, reason_of
from tkperf.model.units import KIB, MIB, format_capacity

# These limits are many times larger than any file that a person writes.
SETTINGS_BYTES = 256 * KIB
CLAIMS_BYTES = 4 * MIB
TEXT_BYTES = MIB
# The largest output files of fio contain a status with histograms for every second of an hour.
RESULTS_BYTES = 256 * MIB
START_OF_A_RUN_FILE = b"SQLite format 3\0"
# The longest times, in s, to wait for the writer of a pipe such as <(...), and for the next bytes from the pipe.
NO_WRITER_S = 5
SILENT_WRITER_S = 60
_PIECE_BYTES = MIB
# The number of names in a folder that are compared with the name of a missing file, to suggest a similar name.
_MOST_COMPARED = 1000


_confined_to: tuple[str, ...] = ()


def confine(folders: Iterable[Path]) -> None:
    """Restrict this process: from now on, the process may read users' files only below these folders.

    Args:
        folders: the paths of the folders, without links.
    """
    global _confined_to  # noqa: PLW0603 - the setting belongs to the whole process, like a memory limit
    _confined_to = tuple(f"{str(folder).rstrip('/')}/" for folder in folders)


def require_confined(descriptor: int) -> None:
    """Refuse an open file outside the folders to which this process is confined.

    A check of the path before opening is not enough. An attacker with write permission for the folder can replace the
    file with a link after that check, and restore the file before the next check.

    Raises:
        OSError: the file is outside these folders.
    """
    if _confined_to:
        _require_below(os.readlink(f"/proc/self/fd/{descriptor}"))  # noqa: PTH115 # may be no path


@contextmanager
def only_confined() -> Iterator[None]:
    """Refuse files outside the permitted folders during the ``with`` block, even if a library opens the files by their
    paths. The library must keep the files open until the end of the block.

    Raises:
        OSError: one of the files is outside the permitted folders.
    """
    before = _find_opened() if _confined_to else {}
    yield
    if _confined_to:
        for _, opened in _find_opened().items() - before.items():
            _require_below(opened)


def _find_opened() -> dict[str, str]:
    """Return the paths of the open files of this process, keyed by their descriptors."""
    opened = {}
    for descriptor in os.listdir("/proc/self/fd"):  # noqa: PTH208
        with suppress(FileNotFoundError):  # the descriptor that this listing itself uses
            opened[descriptor] = os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 # may be no path
    return opened


def _require_below(opened: str) -> None:
    if not opened.startswith(_confined_to):
        raise OSError(errno.ELOOP, "a symbolic link leads to a place outside the served folders")


def is_there(path: Path) -> bool:
    """Return whether a path exists, and raise the error if the file system does not answer this question.

    ``Path.exists`` in Python 3.14 returns False after every error. tkperf must not overlook a use of a device because
    of such an error.

    Raises:
        OSError: the file system did not answer, for example because a security module denied access.
    """
    try:
        path.stat()
    except ValueError:  # the name contains a null character
        return False
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return False
        raise
    return True


def is_toml_path(name_or_path: str) -> bool:
    """Return whether a profile or test is given as a path to a file. A path contains a ``/`` or ends with ``.toml``."""
    return "/" in name_or_path or name_or_path.endswith(".toml")


def read_input(
    path: Path,
    *,
    what: str,
    limit_bytes: int,
    error: type[UsageError] = InputFileError,
    check: Callable[[os.stat_result], object] = lambda _: None,
) -> bytes:
    """Return the whole content of a regular file or a pipe.

    Args:
        what: the kind of file in the user's words, for errors: ``profile``, ``claims``.
        check: receives the status of the opened file before the file is read, and raises an error if the file is not
            trusted.

    Raises:
        InputFileError: the file is of another kind, too large, endless or unreadable. If ``error`` is given, that
            exception is raised instead.
    """
    try:
        _require_readable_kind(path.stat().st_mode)
        # The file is opened without blocking, because neither a pipe nor a file under /proc may delay tkperf.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            require_confined(descriptor)
            status = os.fstat(descriptor)
            _require_readable_kind(status.st_mode)
            if stat.S_ISREG(status.st_mode) and _is_database(descriptor):
                raise _UnfitError(
                    "this file is a run file or another database of SQLite. Pass run files to the commands "
                    "show, report and compare"
                )
            if status.st_size > limit_bytes:
                raise _UnfitError(_too_large(limit_bytes))
            check(status)
            return _read_to_end(descriptor, limit_bytes, is_pipe=stat.S_ISFIFO(status.st_mode))
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        reason = f"it does not exist{_hint(path)}"
    except OSError as trouble:
        reason = reason_of(trouble)
    except (_UnfitError, ValueError) as trouble:  # ValueError means that the path contains a NUL
        reason = str(trouble)
    raise error(f"cannot read {what} {path}: {reason}")


def read_text_input(
    path: Path,
    *,
    what: str,
    limit_bytes: int,
    error: type[UsageError] = InputFileError,
    check: Callable[[os.stat_result], object] = lambda _: None,
) -> str:
    """Return the content of a file as text in UTF-8. In all other respects, the function behaves as ``read_input``
    does.
    """
    content = read_input(path, what=what, limit_bytes=limit_bytes, error=error, check=check)
    try:
        return content.decode()
    except UnicodeDecodeError as trouble:
        raise error(f"cannot read {what} {path}: {reason_of(trouble)}") from None


def _hint(path: Path) -> str:
    """Return advice for a file that does not exist. The advice is to use the file with the closest name in that folder,
    or to check the folder.
    """
    with suppress(OSError):
        alike = (each.name for each in path.parent.iterdir() if each.suffix == path.suffix and each.is_file())
        if meant := closest(path.name, islice(alike, _MOST_COMPARED)):
            return f"; did you mean {path.with_name(meant)}?"
    return f"; check its name and its folder, {Path(os.path.abspath(path)).parent}"  # noqa: PTH100  # follow no links


class _UnfitError(Exception):
    """The reason why a file cannot be an input file."""


def _require_readable_kind(mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise _UnfitError("it is a directory")
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
        raise _UnfitError("this path leads to neither a file nor a pipe")


def _is_database(descriptor: int) -> bool:
    with suppress(OSError):  # some files under /proc cannot be read from another offset
        return os.pread(descriptor, len(START_OF_A_RUN_FILE), 0) == START_OF_A_RUN_FILE
    return False


def _read_to_end(descriptor: int, limit_bytes: int, *, is_pipe: bool) -> bytes:
    pieces: list[bytes] = []
    left_bytes = limit_bytes + 1
    if is_pipe and not _has_something(descriptor, NO_WRITER_S):
        raise _UnfitError(
            f"this path leads to a pipe, and no program opened the pipe for writing within {NO_WRITER_S} s"
        )
    while left_bytes:
        try:
            piece = os.read(descriptor, min(_PIECE_BYTES, left_bytes))
        except BlockingIOError:
            if not is_pipe:
                raise _UnfitError("this file has no end, and it contains no data at the moment") from None
            if not _has_something(descriptor, SILENT_WRITER_S):
                raise _UnfitError(
                    f"this path leads to a pipe, and the writer of the pipe sent nothing for {SILENT_WRITER_S} s"
                ) from None
            continue
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        left_bytes -= len(piece)
    raise _UnfitError(_too_large(limit_bytes))


def _has_something(descriptor: int, wait_s: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(wait_s * 1000))


def _too_large(limit_bytes: int) -> str:
    return f"it is larger than {format_capacity(limit_bytes)}, the limit of such a file"
