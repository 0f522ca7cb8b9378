"""What leaves the command line: files, each written whole, and text from outside made harmless."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from tkperf.model.errors import RunFileError, UsageError, reason_of
from tkperf.model.units import drop_controls
from tkperf.system.output_files import reach, replace_file

STDOUT = Path("-")

_START_OF_A_RUN_FILE = b"SQLite format 3\0"


class Outputs:
    """The files of one command, looked at together before the first of them is written.

    With one of them on stdout nothing else is said there.

    Args:
        folders: output folders, which are made where they are not there; no other is.

    Raises:
        UsageError: two are the same, one is to hold another, something would be destroyed, or a
            folder does not exist.
    """

    def __init__(
        self,
        files: Iterable[Path | None],
        *,
        inputs: Iterable[Path | None] = (),
        folders: Iterable[Path | None] = (),
    ) -> None:
        named = [path for path in files if path is not None]
        self._inputs, self._folders = tuple(inputs), tuple(folders)
        self.on_stdout = STDOUT in named
        places: dict[Path, Path] = {}
        for path in named:
            with _clear_errors(path):
                _refuse_to_destroy(path, self._inputs)
                place = path if path == STDOUT else path.resolve()
            if place in places:
                raise UsageError(
                    f"{path} is named for two outputs; nothing was written: give each its own"
                )
            places[place] = path
        for place, path in places.items():
            if not places.keys().isdisjoint(place.parents) and path != STDOUT:
                raise UsageError(f"{path} would lie in another output, a file; nothing was written")
            if path != STDOUT:
                makes_folder = path.parent in self._folders
                with _clear_errors(path), reach(path, makes_folder=makes_folder, look_only=True):
                    pass

    def write(self, path: Path, content: bytes | str | Iterable[str]) -> None:
        """As ``write_output``."""
        write_output(
            path,
            content,
            say=not self.on_stdout,
            inputs=self._inputs,
            makes_folder=path.parent in self._folders,
        )


def files_in(folder: Path | None, names: Iterable[str]) -> list[Path]:
    """The files of an output folder.

    Raises:
        UsageError: it is ``-``, but stdout holds one file only.
    """
    if folder == STDOUT:
        raise UsageError("several files do not fit on stdout: name a folder, not -")
    return [] if folder is None else [folder / name for name in names]


def write_output(
    path: Path,
    content: bytes | str | Iterable[str],
    *,
    say: bool = True,
    inputs: Iterable[Path | None] = (),
    makes_folder: bool = False,
) -> None:
    """Write a file and say its name, unless stdout holds something else.

    ``-`` is stdout. A file that is there is replaced once the new one is complete.

    Args:
        inputs: what it is made from, so is not overwritten.
        makes_folder: make its folder where that is not there, in one that is.

    Raises:
        UsageError: it cannot be written, its folder does not exist, others laid a link on the way, or
            it would replace a run file or an input.
    """
    if path == STDOUT:
        for piece in _pieces(content):
            click.echo(piece, nl=False)
        return
    with _clear_errors(path):
        _refuse_to_destroy(path, inputs)
        is_device = path.exists() and not path.is_file()  # /dev/stdout, a pipe
        replace_file(path, _pieces(content), makes_folder=makes_folder)
    if say and not is_device:
        say_path(path)


def say_path(path: Path) -> None:
    """The name of what was written, on stdout."""
    click.echo(drop_controls(str(path)))


def open_log(path: Path) -> int:
    """Descriptor of a log to add to, which others may have laid something in the place of.

    Raises:
        OSError: it cannot be opened.
        RunFileError: it is something else than a file of its own.
    """
    # Not blocking: a pipe in its place would be waited for.
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK
    if path.is_symlink():
        raise RunFileError(_no_log(path))
    try:
        with reach(path) as place:
            descriptor = place.open(flags, 0o644)
    except UsageError as error:
        raise RunFileError(str(error)) from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise RunFileError(_no_log(path)) from None
        raise
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(descriptor)
        raise RunFileError(_no_log(path))
    return descriptor


def _no_log(path: Path) -> str:
    return (
        f"{path} is a link, a pipe or a device, or has another name elsewhere: nothing is written "
        "to it; move it away, or choose another NAME or --output folder"
    )


@contextmanager
def _clear_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"cannot write {path}: {reason_of(error)}") from error


def _refuse_to_destroy(path: Path, inputs: Iterable[Path | None]) -> None:
    if path == STDOUT:
        return
    if path.is_block_device():
        raise UsageError(f"{path} is a drive and is not overwritten; name a file")
    if not path.is_file():
        return
    if any(source is not None and source.exists() and path.samefile(source) for source in inputs):
        raise UsageError(
            f"{path} is read by this command and is not overwritten; name another file"
        )
    with path.open("rb") as file:
        if file.read(len(_START_OF_A_RUN_FILE)) == _START_OF_A_RUN_FILE:
            raise UsageError(f"{path} is a run file and is not overwritten; name another file")


def _pieces(content: bytes | str | Iterable[str]) -> Iterator[bytes]:
    for piece in (content,) if isinstance(content, bytes | str) else content:
        # A name may hold bytes that are no characters: they are spelled out.
        yield piece.encode(errors="backslashreplace") if isinstance(piece, str) else piece
