"""Live view: the place of the run, this second's figures, each cell's history, the window so far.

It redraws when something happened and never by a timer of its own, in the thread of its observer. Drawing takes
milliseconds, and neither the runner nor the device waits for it. New lines replace old ones that are not erased
first, so nothing flickers. The cursor stays below them and is never hidden, so that the terminal works even after
a kill.
"""

from __future__ import annotations

import textwrap
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil
from typing import Self

from rich.console import Console
from rich.text import Text

from tkperf.cli.background import Abandoned
from tkperf.cli.results import format_end, from_to
from tkperf.model.disturbance.codes import WORDS, find_codes
from tkperf.model.phases import Continuous, Idle, Purge, Round
from tkperf.model.record import StepKind
from tkperf.model.steady_state import SteadyStateVerdict
from tkperf.model.units import (
    drop_controls,
    format_capacity,
    format_count,
    format_duration,
    format_durations,
    format_number,
    format_window,
    on_one_line,
    unit_for_people,
)
from tkperf.pipeline.run_state import RunState
from tkperf.render.terminal.blocks import ASCII, BlockLetters, blocks_for, share_bar, sparkline
from tkperf.render.terminal.console import OutputConsole
from tkperf.render.terminal.histories import draw_histories
from tkperf.runner.events import Event, StepStarted, describe_phase

_MOST_WARNINGS = 2
_MOST_LINES_OF_A_REMARK = 3
_LABEL = 8
_WIDEST_BAR = 40


# For a simulated run, in which a second takes a millisecond.
DRAW_EVERY_S = 0.1


class LiveView:
    """View that draws on stderr, so that results on stdout stay clean."""

    def __init__(self, console: Console | None = None, *, footer: str = "") -> None:
        """Keep ``footer``, the last line, which each drawing reads again."""
        self.footer = footer
        self._frame = Frame(console or OutputConsole(stderr=True))
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
            self._state,
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


class Frame:
    """Last lines of a terminal, drawn over the previous ones. The cursor stays below."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._widths: list[int] = []

    def show(self, lines: Sequence[Text]) -> None:
        """Draw in one write; a line ends one column before the terminal does."""
        with self.console.capture() as captured:
            for line in lines:
                self.console.print(line, no_wrap=True, crop=False, highlight=False, soft_wrap=True)
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


@dataclass(frozen=True, slots=True)
class _Part:
    """Lines that belong together. Parts of the highest ``rank`` are left out first."""

    rank: int
    lines: Sequence[Text]


def render_lines(
    state: RunState,
    *,
    width: int,
    height: int,
    now: datetime,
    encoding: str | None = "utf-8",
    footer: str = "",
) -> list[Text]:
    """Return the view: at most ``height`` lines of at most ``width`` columns.

    Args:
        now: time by the host's clock, for the time of the end.
    """
    view = _View(state, max(20, width), blocks_for(encoding), now)
    above, below = view.above(), view.below(footer)
    taken, left = set[int](), max(1, height)
    for part in sorted((*above, *below), key=lambda part: part.rank):
        if len(part.lines) <= left:
            taken.add(id(part))
            left -= len(part.lines)
    # The newest warning gets at least one line. The rest goes to the cells first.
    cells = view.cells(left - bool(state.warnings))
    remarks = view.remarks(left - len(cells))
    lines = [
        *(line for part in above if id(part) in taken for line in part.lines),
        *cells,
        *(line for part in below[:-1] if id(part) in taken for line in part.lines),
        *remarks,
        *(line for part in below[-1:] if id(part) in taken for line in part.lines),
    ]
    for line in lines:
        line.plain = view.blocks.spell(line.plain)
        line.truncate(width, overflow="crop" if view.blocks is ASCII else "ellipsis")
    return lines


class _View:
    def __init__(self, state: RunState, width: int, blocks: BlockLetters, now: datetime) -> None:
        self._state, self._width, self.blocks, self._now = state, width, blocks, now

    def above(self) -> list[_Part]:
        """Return the parts above the cells."""
        return [
            _Part(1, [self._title()]),
            _Part(0, [self._place()]),
            _Part(4, self._whole_run()),
            _Part(3, self._step()),
            _Part(0, [self._now_line()]),
            _Part(2, [self._seconds()]),
        ]

    def below(self, footer: str) -> list[_Part]:
        """Return the parts below the cells, the footer last."""
        verdict = self._state.verdict
        return [
            _Part(7, [] if verdict is None else self._window(verdict)),
            _Part(5, [self._totals()]),
            _Part(6, self._disturbed()),
            _Part(5, [Text(footer, style="dim")] if footer else []),
        ]

    def _title(self) -> Text:
        state, line = self._state, self.blocks.line
        text = Text(f"{line * 2} ", style="dim")
        text.append(drop_controls(state.name) or "tkperf", style="bold not dim")
        progress = state.progress
        if progress.number and progress.tests > 1:
            text.append(f" {line * 2} test {progress.number} of {progress.tests}:", style="dim")
        for test in state.tests:
            text.append(" ")
            text.append(
                drop_controls(test), "bold reverse not dim" if test == progress.test else ""
            )
        text.append(" ")
        text.append(line * max(0, self._width - text.cell_len), style="dim")
        return text

    def _place(self) -> Text:
        state = self._state
        phase, step = state.progress.phase, state.step
        if state.ended:
            return Text(f"run {state.ended}", style="bold")
        if phase is None:
            return Text(
                "about to begin" if not state.progress.test else "between two tests", style="dim"
            )
        if state.busy is not None:
            done = "" if state.busy.done is None else f", {state.busy.done:.0%} done"
            return Text(f"{phase.section}, {state.busy.doing}{done}")
        place = describe_phase(
            phase, state.progress.at_most, None if step is None else step.position
        )
        text = Text(place, style="bold")
        if step is not None and not isinstance(phase, Purge | Idle):
            text.append(f"  {step.workload}", style="not bold")
        return text

    def _labelled(self, label: str, *pieces: Text | str | tuple[str, str]) -> Text:
        return Text.assemble((label.ljust(_LABEL), "dim"), *pieces)

    def _whole_run(self) -> list[Text]:
        done, remaining_s = self._state.run_done, self._state.remaining_s
        if done is None or remaining_s is None:
            return []
        percents = from_to(*(f"{share * 100:.0f}" for share in done))
        text = self._labelled("run", self._bar(*done), f" {percents} %")
        if not self._state.simulated:
            text.append(f"   ends {format_end(self._now, *remaining_s)}")
        return [text]

    def _bar(self, share: float, perhaps: float = 0.0) -> Text:
        width = min(_WIDEST_BAR, max(5, self._width // 4))
        return Text(share_bar(share, width, self.blocks, perhaps=perhaps), style="green")

    def _step(self) -> list[Text]:
        state, step, done = self._state, self._state.step, self._state.step_done
        if step is None or done is None or state.busy is not None:
            return []
        words = _describe_share(state, step, done)
        return [self._labelled(_kind(step), self._bar(done), f" {done * 100:.0f} % of {words}")]

    def _now_line(self) -> Text:
        sample = self._state.sample
        if sample is None:
            return self._labelled("now", ("- IOPS   - MB/s   mean -   p99 -"))
        both = sample.both
        mean_ns, p99_ns = both.latency_mean_ns, both.percentile_ns(99)
        text = self._labelled("now", Text(f"{sample.iops:>11,.0f}", style="bold"), " IOPS")
        text.append(f" {sample.bytes_per_s / 1e6:>9,.1f}", style="bold").append(" MB/s")
        for name, value_ns in (("mean", mean_ns), ("p99", p99_ns)):
            text.append(f"   {name} ")
            us = None if value_ns is None else value_ns / 1000
            text.append(f"{format_number(us, 1):>9}", style="bold").append(f" {self.blocks.us}")
        return text

    def _seconds(self) -> Text:
        """Draw the IOPS of each second, the newest at the right; a new second moves the others to the left."""
        room = self._width - _LABEL
        shown = list(self._state.seconds_iops)[-room:]
        label = f"{len(shown)} s" if shown else "seconds"
        return self._labelled(label, Text(sparkline(shown, self.blocks), style="cyan"))

    def cells(self, most_lines: int) -> list[Text]:
        """Draw each cell's history, with as many rows as there is room for."""
        state = self._state
        if not state.histories:
            return []
        phase = state.progress.phase
        in_areas = isinstance(phase, Round) and phase.areas
        several = "slice" if isinstance(phase, Continuous) else "area" if in_areas else "round"
        return draw_histories(
            f"{state.quantity.title}, {several} by {several}",
            state.histories,
            self._width,
            most_lines=most_lines,
            current=state.current_cell,
            blocks=self.blocks,
        )

    def _window(self, verdict: SteadyStateVerdict) -> list[Text]:
        state = ("steady", "bold green") if verdict.reached else ("not yet steady", "bold")
        rounds = format_window(verdict.rounds)
        text = self._labelled("window", f"{verdict.tracking}, {rounds}: ", state)
        if not verdict.judged:
            text.append(f", {len(verdict.rounds)} of {verdict.needed_rounds} rounds")
        numbers = (
            f"average {format_number(verdict.average, 1)} {unit_for_people(verdict.unit)}, "
            f"range {format_number(verdict.data_excursion, 1)} "
            f"(allowed {format_number(verdict.allowed_data_excursion, 1)}), "
            f"slope {format_number(verdict.slope_excursion, 1)} "
            f"(allowed {format_number(verdict.allowed_slope_excursion, 1)})"
        )
        indent = " " * _LABEL
        lines = textwrap.wrap(numbers, self._width, initial_indent=indent, subsequent_indent=indent)
        return [text, *map(Text, lines)]

    def _totals(self) -> Text:
        state = self._state
        remaining_s = state.remaining_s
        left = "not known" if remaining_s is None else format_durations(*remaining_s)
        parts = [f"{format_duration(state.at_s)} gone", f"{left} left"]
        if state.temperatures_c:
            parts.append(f"{max(state.temperatures_c.values()):.0f} {self.blocks.celsius}")
        return Text(", ".join((*parts, f"{format_capacity(state.written_bytes)} written")))

    def _disturbed(self) -> list[Text]:
        state, last = self._state, self._state.last_disturbed
        if last is None:
            return []
        codes = find_codes(one.code for one in last.disturbances or ())
        kinds = ", ".join(WORDS[code] for code in codes)
        where = f"{last.section} {last.number}, {last.workload.mix_and_size}"
        count = format_count(state.disturbed_steps, "step")
        return [Text(f"disturbed: {count}, last {where}: {kinds}", style="yellow")]

    def remarks(self, most_lines: int) -> list[Text]:
        """Return notices and the last warnings, set apart by indents: whole if there is room, else a line each."""
        warnings = self._state.warnings
        texts = [f"warning: {warning}" for warning in warnings[-_MOST_WARNINGS:]]
        if earlier := len(warnings[:-_MOST_WARNINGS]):
            texts.insert(0, f"{format_count(earlier, 'earlier warning')} in the log")
        # The newest warning goes last, as it would in a log.
        texts = [*self._state.notices, *texts]
        whole = [line for text in texts for line in self._wrapped(text)]
        lines = whole if len(whole) <= most_lines else [*map(on_one_line, texts)]
        return [Text(line, style="yellow") for line in lines[max(0, len(lines) - most_lines) :]]

    def _wrapped(self, text: str) -> list[str]:
        return textwrap.wrap(
            text, self._width, max_lines=_MOST_LINES_OF_A_REMARK, placeholder=" ...",
            subsequent_indent="  ",
        )  # fmt: skip


def _kind(step: StepStarted) -> str:
    match step.kind:
        case StepKind.FILL:
            return "filling"
        case StepKind.CONTINUOUS:
            return "slice"
        case _:
            return "step"


def _describe_share(state: RunState, step: StepStarted, done: float) -> str:
    if step.planned_bytes is None:
        return format_duration(step.planned_s or 0.0)
    text = format_capacity(step.planned_bytes)
    passed_s = state.at_s - step.at_s
    if 0 < done < 1 and passed_s > 0:
        text += f", {format_duration(passed_s / done - passed_s)} left at this pace"
    return text
