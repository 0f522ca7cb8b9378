"""What leaves the command line: files, each written whole, and text from outside made harmless."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import click
from rich.markup import escape

from tkperf.errors import UsageError

_START_OF_A_RUN_FILE = b"SQLite format 3\0"


def write_output(
    path: Path,
    content: bytes | str | Iterable[str],
    *,
    say: bool = True,
    inputs: Iterable[Path | None] = (),
) -> None:
    """Write a file, its folder too, and say its name, unless stdout holds something else.

    A file that is there is replaced once the new one is complete.

    Args:
        inputs: what it is made from, so is not overwritten.

    Raises:
        UsageError: it cannot be written, or would replace a run file or an input.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _refuse_to_destroy(path, inputs)
        if path.exists() and not path.is_file():  # /dev/stdout, a pipe
            _write(path, content)
        else:
            _replace(path.resolve(), content)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
    if say:
        click.echo(path)


def plain(text: object) -> str:
    """Text from a drive or a stranger's file, for ``console.print``: no markup, no control characters."""
    return escape("".join(each for each in str(text) if each.isprintable() or each == "\n"))


def _refuse_to_destroy(path: Path, inputs: Iterable[Path | None]) -> None:
    if not path.is_file():
        return
    if any(each is not None and each.exists() and path.samefile(each) for each in inputs):
        raise UsageError(
            f"{path} is read by this command and is not overwritten; name another file"
        )
    with path.open("rb") as file:
        if file.read(len(_START_OF_A_RUN_FILE)) == _START_OF_A_RUN_FILE:
            raise UsageError(f"{path} is a run file and is not overwritten; name another file")


def _replace(path: Path, content: bytes | str | Iterable[str]) -> None:
    unfinished = path.with_name(f".tkperf-{os.getpid()}.part")
    try:
        _write(unfinished, content)
        unfinished.replace(path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise


def _write(path: Path, content: bytes | str | Iterable[str]) -> None:
    if isinstance(content, bytes):
        path.write_bytes(content)
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines((content,) if isinstance(content, str) else content)
