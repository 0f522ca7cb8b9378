"""Output of the command line. Files are written completely or not at all, and text from other sources is made
harmless.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from tkperf.model.errors import RunFileError, UsageError, reason_of
from tkperf.model.input_files import START_OF_A_RUN_FILE
from tkperf.model.units import drop_controls
from tkperf.system.output_files import reach, replace_file

STDOUT = Path("-")


class Outputs:
    """The output files of one command. All of them are checked before the first file is written.

    If one of the outputs is stdout, no other text is printed on stdout.

    Args:
        folders: output folders, which are created if they do not exist. No other folder is created.

    Raises:
        UsageError: two outputs are the same file, one output would be inside another output, an output would destroy a
            drive, an input or a run file, or a folder does not exist.
    """

    def __init__(
        self, files: Iterable[Path | None], *, inputs: Iterable[Path | None] = (), folders: Iterable[Path | None] = ()
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
                    f"two outputs would be written to the same file, {path}. Nothing was written. Give each output "
                    "its own file"
                )
            places[place] = path
        for place, path in places.items():
            if not places.keys().isdisjoint(place.parents) and path != STDOUT:
                raise UsageError(
                    f"{path} would be inside another output, but that output is a file. Nothing was written. Choose "
                    "another path for one of the two outputs"
                )
            if path != STDOUT:
                makes_folder = path.parent in self._folders
                with _clear_errors(path), reach(path, makes_folder=makes_folder, look_only=True):
                    pass

    def write(self, path: Path, content: bytes | str | Iterable[str]) -> None:
        """Write one of the files. See ``write_output``."""
        write_output(
            path, content, say=not self.on_stdout, inputs=self._inputs, makes_folder=path.parent in self._folders
        )


def files_in(folder: Path | None, names: Iterable[str]) -> list[Path]:
    """Return the paths of files in an output folder."""
    if folder == STDOUT:
        raise UsageError("several files cannot be written to stdout. Name a folder instead of -")
    return [] if folder is None else [folder / name for name in names]


def write_output(
    path: Path,
    content: bytes | str | Iterable[str],
    *,
    say: bool = True,
    inputs: Iterable[Path | None] = (),
    makes_folder: bool = False,
) -> None:
    """Write a file. Print its name, unless stdout contains other output.

    ``-`` means stdout. An existing file is replaced only when the new file is complete.

    Args:
        inputs: input files of the command. They are never overwritten.
        makes_folder: whether to create the folder of the file if it does not exist. The parent of this folder must
            exist.
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
    """Print the name of a written file on stdout."""
    click.echo(drop_controls(str(path)))


def open_log(path: Path) -> int:
    """Open a log for appending, and return the file descriptor. The function opens only a regular file, because another
    user may have replaced the log.
    """
    # The log is opened in non-blocking mode. If another user replaced the log with a pipe, opening the pipe would
    # otherwise block.
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


def open_log_or_null(path: Path) -> int:
    """Open a log for the text that a run writes. If the log cannot be written, return the null device, and the run
    continues.
    """
    try:
        return open_log(path)
    except Exception:  # every error is caught, because a run does not need its log
        return os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)


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
        raise UsageError(f"{path} is a drive, so tkperf does not overwrite it. Name a file")
    if not path.is_file():
        return
    if any(source is not None and source.exists() and path.samefile(source) for source in inputs):
        raise UsageError(f"{path} is an input of this command, so tkperf does not overwrite it. Name another file")
    with path.open("rb") as file:
        if file.read(len(START_OF_A_RUN_FILE)) == START_OF_A_RUN_FILE:
            raise UsageError(f"{path} is a run file, so tkperf does not overwrite it. Name another file")


def _pieces(content: bytes | str | Iterable[str]) -> Iterator[bytes]:
    for piece in (content,) if isinstance(content, bytes | str) else content:
        # A name can contain bytes that are not characters. Such bytes are escaped.
        yield piece.encode(errors="backslashreplace") if isinstance(piece, str) else piece
