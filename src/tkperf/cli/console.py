"""Consoles on stdout and stderr, and what becomes of words that nobody takes any more.

rich takes its time to load: what is needed before a command does its work is in ``streams.py``.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from errno import EPIPE

from rich.console import Console
from rich.markup import escape

from tkperf.model.units import drop_controls

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


def plain(text: object) -> str:
    """Text from a drive or a stranger's file, for ``console.print``: no markup, no control characters."""
    return escape(drop_controls(str(text)))


def choose_progress(progress: str) -> str:
    """What ``auto`` means here."""
    if progress != "auto":
        return progress
    return "live" if can_redraw() else "plain"


def can_redraw() -> bool:
    """Whether stderr is a terminal on which lines can be drawn over each other."""
    return sys.stderr.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")


def tell(*lines: str) -> None:
    """Lines with markup on stderr. That nobody can read them must not end a run."""
    console = OutputConsole(stderr=True)
    with suppress(OSError):
        for line in lines:
            console.print(line, highlight=False, soft_wrap=True)
