"""Writing reports and data: to a file that is named on stdout, or to a terminal, inertly."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click
from rich.markup import escape

from tkperf.errors import UsageError


def write_output(path: Path, content: bytes | str | Iterable[str], *, say: bool = True) -> None:
    """Write a file, its folder too, and say its name, unless stdout holds something else.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            with path.open("w", encoding="utf-8", newline="") as file:
                file.writelines((content,) if isinstance(content, str) else content)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
    if say:
        click.echo(path)


def plain(text: object) -> str:
    """Text from outside as it may be given to ``console.print``: neither markup nor escapes.

    Only line ends are kept of all that is not printable; direction characters are not, either.
    """
    return escape("".join(each for each in str(text) if each.isprintable() or each == "\n"))
