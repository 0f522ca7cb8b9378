"""Open consoles on stdout and stderr, and define how they behave if the program that reads the output ends.

The package rich is slow to import. Functions that a command needs before its work are therefore in
``standard_streams.py``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from errno import EPIPE
from itertools import accumulate
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from tkperf.model.units import drop_controls, is_copied, wrap_words

if TYPE_CHECKING:
    from tkperf.page.verdict_texts import Verdict

# The width of drawings and headings if the output does not go to a terminal.
_WIDE = 160
# The style of each level of remarks. Information has no style, cautions are yellow, and failures are red.
LEVEL_STYLES = {"information": "", "caution": "yellow", "failure": "red"}


class OutputConsole(Console):
    """A console that raises BrokenPipeError if no program reads the output any more.

    Without this class, rich would end the process with status 1, even in the middle of a run. Status 1 would also mean
    that claims were not met.
    """

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(EPIPE, os.strerror(EPIPE))


def open_console(*, stderr: bool = False) -> Console:
    """Return a console on stdout or stderr.

    If the output goes to a program or a file instead of a terminal, each text is one line, so that a search can find
    consecutive words. In this case, the attribute ``soft_wrap`` of the console is True.
    """
    is_terminal = (sys.stderr if stderr else sys.stdout).isatty()
    width = None if is_terminal else _WIDE
    return OutputConsole(emoji=False, stderr=stderr, width=width, soft_wrap=not is_terminal)


def plain(text: object) -> str:
    """Return text from a drive or from a file of another source in a form that is safe for ``console.print``. The text
    contains no markup and no control characters.
    """
    return escape(drop_controls(str(text)))


def print_verdict(verdict: Verdict, console: Console) -> None:
    """Print a verdict. A verdict is the first text that a reader should see."""
    style = f"bold {LEVEL_STYLES[verdict.level]}"
    lines = wrap_words(verdict.text, console.width) if console.is_terminal else [verdict.text]
    console.print(plain("\n".join(lines)), style=style, highlight=False)


def choose_progress(progress: str) -> str:
    """Return the view that suits stderr if ``progress`` is ``auto``. Otherwise return ``progress``."""
    if progress != "auto":
        return progress
    return "live" if can_redraw() else "plain"


def can_redraw() -> bool:
    """Return whether stderr is a terminal on which tkperf can overwrite lines."""
    return sys.stderr.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")


def print_lines(*lines: str) -> None:
    """Print lines with markup on stderr. On a terminal, lines are broken between words.

    If no program reads stderr any more, the run still continues.
    """
    console = OutputConsole(stderr=True)
    with suppress(OSError):
        for line in lines:
            whole = not console.is_terminal or is_copied(line)
            for part in [line] if whole else _wrap_markup(line, console.width):
                console.print(part, highlight=False, soft_wrap=True)


def _wrap_markup(lines: str, width: int) -> Iterator[Text]:
    """Yield texts with markup as lines. Words and commands are not broken."""
    for line in map(Text.from_markup, lines.split("\n")):
        parts = wrap_words(line.plain, width) if line.cell_len > width else []
        ends = accumulate(len(part) + 1 for part in parts[:-1])
        yield from line.divide(list(ends))


# The width of the labels before facts.
_LABEL = 9


def print_facts(facts: Iterable[tuple[str, str]], *, style: str = "bold") -> None:
    """Print texts with labels on stderr. If no program reads stderr any more, the run still continues."""
    print_lines(*format_facts(facts, OutputConsole(stderr=True), style=style))


def format_facts(facts: Iterable[tuple[str, str]], console: Console, *, style: str = "bold") -> Iterator[str]:
    """Yield texts with labels as markup. On a terminal, each text is beside its label, and lines are broken between
    words.
    """
    width = max(1, console.width - _LABEL) if console.is_terminal else sys.maxsize
    for label, text in facts:
        lines = [text] if len(text) <= width else wrap_words(text, width)
        hanging = f"\n{'':{_LABEL}}".join(map(plain, lines))
        yield f"[{style}]{label}[/{style}]{'':{max(1, _LABEL - len(label))}}{hanging}"
