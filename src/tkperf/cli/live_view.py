"""Live view: the place of the run, this second's figures, each cell's history, the window so far.

It redraws when something happened and never by a timer of its own, in the thread of its observer. Drawing takes
milliseconds, and neither the runner nor the device waits for it. New lines replace old ones that are not erased
first, so nothing flickers. The cursor stays below them and is never hidden, so that the terminal works even after
a kill.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from math import ceil
from typing import Self

from rich.console import Console
from rich.text import Text

from tkperf.cli.background import Abandoned
from tkperf.page.progress import build_progress
from tkperf.pipeline.run_state import RunState
from tkperf.render.terminal.console import OutputConsole
from tkperf.render.terminal.progress_lines import render_lines
from tkperf.runner.events import Event

# For a simulated run, in which a second takes a millisecond.
DRAW_EVERY_S = 0.1


class LiveView:
    """View that draws on stderr, so that results on stdout stay clean."""

    def __init__(self, console: Console | None = None, *, footer: str = "") -> None:
        """Keep ``footer``, the last line, which each drawing reads again."""
        self.footer = footer
        self._frame = RedrawnLines(console or OutputConsole(stderr=True))
        self._state = RunState()
        self._drawn_s = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is Abandoned:
            return  # others write to the terminal again: clearing would erase their text
        # A lost terminal cannot be cleared, and need not be.
        with suppress(OSError):
            self._frame.clear()

    def __call__(self, event: Event, at: datetime) -> None:
        self.take(event)
        if self._state.simulated and time.monotonic() - self._drawn_s < DRAW_EVERY_S:
            return
        self.draw()

    def take(self, event: Event) -> None:
        """Take an event without drawing it yet."""
        self._state.take(event)

    def draw(self) -> None:
        """Draw the current state, unless the output is no terminal, where frames cannot replace each other."""
        if not self._frame.console.is_terminal:
            return
        self._drawn_s = time.monotonic()
        console = self._frame.console
        lines = render_lines(
            build_progress(self._state),
            width=console.width - 1,
            height=console.height - 1,
            encoding=console.encoding,
            now=datetime.now(UTC),
            footer=self.footer,
        )
        self._frame.show(lines)

    def pass_time(self, at_s: float) -> None:
        """Advance the run's own time to ``at_s`` without an event."""
        self._state.at_s = max(self._state.at_s, at_s)


class RedrawnLines:
    """Last lines of a terminal, drawn over the previous ones. The cursor stays below."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._widths: list[int] = []

    def show(self, lines: Sequence[Text]) -> None:
        """Draw in one write; a line ends one column before the terminal does."""
        with self.console.capture() as captured:
            text = Text("\n").join(lines)
            self.console.print(text, no_wrap=True, crop=False, highlight=False, soft_wrap=True)
        drawn = captured.get().splitlines()
        above = self._to_first_line()
        self._widths = [line.cell_len for line in lines]
        # Erases old text to the end of each line and below the last one.
        self._write(above + "".join(f"{line}\x1b[K\r\n" for line in drawn) + "\x1b[J")

    def clear(self) -> None:
        """Erase everything that was drawn."""
        if self._widths:
            above, rows = self._to_first_line(), self._rows()
            self._widths = []
            # Row by row: if all are erased at once from the first row of its screen, tmux keeps them as history.
            self._write(above + "\x1b[K\r\n" * rows + f"\x1b[K\x1b[{rows}A")

    def _to_first_line(self) -> str:
        return "\r" + (f"\x1b[{self._rows()}A" if self._widths else "")

    def _rows(self) -> int:
        """Count the rows of the drawn lines. A terminal that has become narrower breaks a line into several rows."""
        width = max(1, self.console.width)
        return sum(max(1, ceil(cells / width)) for cells in self._widths)

    def _write(self, text: str) -> None:
        self.console.file.write(text)
        self.console.file.flush()
