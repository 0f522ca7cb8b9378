"""Consoles on stdout and stderr, and what becomes of words that nobody takes any more."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from errno import EPIPE
from io import TextIOWrapper
from typing import TextIO

import click
from rich.console import Console

from tkperf.units import drop_controls

_WIDE = 160


class OutputConsole(Console):
    """A console that leaves it to us what a lost reader means.

    rich would end the process with 1, in the middle of a run, or as if claims were not met.
    """

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(EPIPE, os.strerror(EPIPE))


def open_console() -> Console:
    """stdout; wide enough for every table where it is no terminal, which says how wide it is."""
    return OutputConsole() if sys.stdout.isatty() else OutputConsole(width=_WIDE)


def tell(*lines: str) -> None:
    """Lines with markup on stderr. That nobody can read them must not end a run."""
    console = OutputConsole(stderr=True)
    with suppress(OSError):
        for line in lines:
            console.print(line, highlight=False, soft_wrap=True)


def complain(text: str) -> None:
    """A line on stderr, without what a terminal would obey, if somebody takes it."""
    with suppress(OSError):
        click.echo(drop_controls(text), err=True)


def prepare_streams() -> None:
    """Streams that take any text; something to be for those that tkperf was started without.

    Otherwise the next file to be opened, such as a run file, would have their number. A path may
    hold bytes that are no characters: they are spelled out.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def let_go(stream: TextIO) -> None:
    """Drop what a stream could not write; Python would try again at its end, and exit with 120."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
