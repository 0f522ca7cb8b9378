"""What leaves the command line: files, each written whole, and text from outside made harmless."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import click
from rich.markup import escape

from tkperf.errors import UsageError
from tkperf.units import drop_controls

STDOUT = Path("-")

_START_OF_A_RUN_FILE = b"SQLite format 3\0"


class Outputs:
    """The files of one command, looked at together before the first of them is written.

    With one of them on stdout nothing else is said there.

    Raises:
        UsageError: two are the same, one is to hold another, or something would be destroyed.
    """

    def __init__(self, files: Iterable[Path | None], *, inputs: Iterable[Path | None] = ()) -> None:
        named = [path for path in files if path is not None]
        self._inputs = tuple(inputs)
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

    def write(self, path: Path, content: bytes | str | Iterable[str]) -> None:
        """As ``write_output``."""
        write_output(path, content, say=not self.on_stdout, inputs=self._inputs)


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
) -> None:
    """Write a file, its folder too, and say its name, unless stdout holds something else.

    ``-`` is stdout. A file that is there is replaced once the new one is complete.

    Args:
        inputs: what it is made from, so is not overwritten.

    Raises:
        UsageError: it cannot be written, or would replace a run file or an input.
    """
    if path == STDOUT:
        for piece in _pieces(content):
            click.echo(piece, nl=False)
        return
    with _clear_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _refuse_to_destroy(path, inputs)
        if path.exists() and not path.is_file():  # /dev/stdout, a pipe
            with path.open("wb") as file:
                _write(file, content)
            return
        _replace(path.resolve(), content)
    if say:
        click.echo(path)


def plain(text: object) -> str:
    """Text from a drive or a stranger's file, for ``console.print``: no markup, no control characters."""
    return escape(drop_controls(str(text)))


@contextmanager
def _clear_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error


def _refuse_to_destroy(path: Path, inputs: Iterable[Path | None]) -> None:
    if path == STDOUT or not path.is_file():
        return
    if any(each is not None and each.exists() and path.samefile(each) for each in inputs):
        raise UsageError(
            f"{path} is read by this command and is not overwritten; name another file"
        )
    with path.open("rb") as file:
        if file.read(len(_START_OF_A_RUN_FILE)) == _START_OF_A_RUN_FILE:
            raise UsageError(f"{path} is a run file and is not overwritten; name another file")


def _replace(path: Path, content: bytes | str | Iterable[str]) -> None:
    # A name nobody can foresee, and a file that is new: others may write to this folder, too.
    unfinished = path.with_name(f".tkperf-{secrets.token_hex(8)}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        with open(os.open(unfinished, flags, 0o666), "wb") as file:
            _write(file, content)
        unfinished.replace(path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise


def _write(file: BinaryIO, content: bytes | str | Iterable[str]) -> None:
    for piece in _pieces(content):
        file.write(piece)


def _pieces(content: bytes | str | Iterable[str]) -> Iterator[bytes]:
    for piece in (content,) if isinstance(content, bytes | str) else content:
        yield piece.encode() if isinstance(piece, str) else piece
