"""The live view: where the run is, this second's figures, the steady-state window so far.

It redraws when something happened and never by a timer of its own, in the thread of its observer:
drawing takes milliseconds, for which the runner, and with it the device, does not wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from tkperf.cli.background import Abandoned
from tkperf.cli.console import OutputConsole
from tkperf.cli.output import plain
from tkperf.events import (
    Event,
    Judged,
    PhaseStarted,
    RunEnded,
    RunResumed,
    RunStarted,
    SampleSeen,
    StepEnded,
    StepStarted,
    TargetBusy,
    TelemetrySeen,
    TestStarted,
    Warned,
)
from tkperf.measurement import Sample
from tkperf.phases import Phase, Purge
from tkperf.record import StepKind
from tkperf.steady_state import SteadyStateVerdict
from tkperf.units import (
    drop_controls,
    format_capacity,
    format_count,
    format_duration,
    format_durations,
    format_mix,
)

SPARKS = "▁▂▃▄▅▆▇█"
HISTORY = 60
MOST_WARNINGS = 2


class LiveView:
    """Draws on stderr, so that results on stdout stay clean."""

    def __init__(self, console: Console | None = None, *, footer: str = "") -> None:
        """``footer``: the last line, as it stands when something is drawn."""
        self.footer = footer
        # Not redirected: whoever prints to stderr would wait for the terminal in rich's lock.
        self._live = Live(
            console=console or OutputConsole(stderr=True),
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._state = _State()

    def __enter__(self) -> Self:
        with suppress(OSError):  # a terminal that is gone: the first event says so
            self._live.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is Abandoned:
            # Others write to the terminal again: drawn over would be what they say.
            with suppress(OSError):
                self._live.console.show_cursor(True)
            return
        # On a terminal that went away meanwhile rich cannot tidy up, which is nobody's concern.
        with suppress(OSError, IndexError):
            self._live.__exit__(None, None, None)

    def __call__(self, event: Event, at: datetime) -> None:
        self.take(event)
        self.draw()

    def take(self, event: Event) -> None:
        """Know of an event without showing it yet."""
        self._state.take(event)

    def draw(self) -> None:
        """Show what is known."""
        # A terminal shows ^C where the view ends: in a line that was full it would begin another one.
        width = max(1, self._live.console.width - len("^C") - 1)
        self._live.update(render(self._state, self.footer, width=width), refresh=True)

    def pass_time(self, at_s: float) -> None:
        """It is so late in the run, though nothing was told."""
        self._state.at_s = max(self._state.at_s, at_s)


class _State:
    """What the view shows, taken from the events."""

    def __init__(self) -> None:
        self.name = ""
        self.tests: tuple[str, ...] = ()
        self.notices: tuple[str, ...] = ()
        self.test = ""
        self.phase: Phase | None = None
        self.busy: TargetBusy | None = None
        self.step: StepStarted | None = None
        self.sample: Sample | None = None
        self.history: deque[float] = deque(maxlen=HISTORY)
        self.verdict: SteadyStateVerdict | None = None
        self.temperatures_c: dict[str, float] = {}
        self.warnings: list[str] = []
        self.kept_bytes = 0
        self.step_bytes = 0
        self.phase_at_s = 0.0
        self.at_s = 0.0
        self.shortest_s = self.longest_s = 0.0

    def take(self, event: Event) -> None:
        match event:
            case RunStarted() | RunResumed():
                self.name, self.tests = event.info.name, event.tests
                self.notices = tuple(map(drop_controls, event.info.notices))
            case TestStarted():
                self.test, self.verdict, self.step, self.sample = event.test, None, None, None
            case PhaseStarted():
                if self.phase is None or self.phase.section != event.phase.section:
                    self.verdict = None
                self.busy = None
                self.phase, self.phase_at_s, self.at_s = event.phase, event.at_s, event.at_s
                self.shortest_s, self.longest_s = event.shortest_s, event.longest_s
            case TargetBusy():
                self.busy, self.at_s = event, event.at_s
            case StepStarted():
                self.step, self.step_bytes, self.at_s = event, 0, event.at_s
                self.busy = None
            case SampleSeen():
                self.sample, self.at_s = event.sample, event.at_s
                self.step_bytes += event.sample.write.bytes
                self.history.append(event.sample.iops)
            case StepEnded():
                self.kept_bytes += event.record.measurement.write.bytes
                self.step_bytes = 0
            case TelemetrySeen():
                if (celsius := event.reading.temperature_c) is not None:
                    self.temperatures_c[event.reading.drive] = celsius
            case Judged():
                self.verdict = event.verdict
            case Warned():
                self.warnings.append(drop_controls(event.warning.text))
            case RunEnded():
                self.phase = self.step = None

    @property
    def written_bytes(self) -> int:
        return self.kept_bytes + self.step_bytes


def render(state: _State, footer: str = "", *, width: int | None = None) -> RenderableType:
    """The whole view as one panel."""
    lines: list[RenderableType] = [_where(state), _now(state)]
    if state.verdict is not None:
        lines.append(_window(state.verdict))
    lines.append(_totals(state))
    lines += [Text(text, style="yellow") for text in _last_warnings(state.warnings)]
    lines += [Text(notice, style="yellow") for notice in state.notices]
    if footer:
        lines.append(Text(footer, style="dim"))
    return Panel(
        Group(*lines), title=f"tkperf: {plain(state.name)}", title_align="left", width=width
    )


def _last_warnings(warnings: Sequence[str]) -> Iterator[str]:
    """The last ones, each to be told from the next, and how many there were before."""
    if earlier := len(warnings[:-MOST_WARNINGS]):
        yield f"{format_count(earlier, 'earlier warning')} in the log"
    for warning in warnings[-MOST_WARNINGS:]:
        yield f"warning: {warning}"


def _where(state: _State) -> Text:
    tests = Text()
    for test in state.tests:
        tests.append(f"{test} ", style="bold reverse" if test == state.test else "dim")
    phase, step = state.phase, state.step
    if phase is not None and state.busy is not None:
        done = "" if state.busy.done is None else f", {state.busy.done:.0%} done"
        tests.append(f" {phase.section}: {state.busy.doing}{done}")
    elif isinstance(phase, Purge):
        tests.append(f" {phase.section}: purging")
    elif step is not None:
        tests.append(f" {step.section}: {_step_text(step)}")
    return tests


def _step_text(step: StepStarted) -> str:
    workload = step.workload
    cell = f"R/W {format_mix(workload.read_percent)}, {workload.blocks_name}"
    demand = f"{workload.access.value}, TC{workload.jobs}/QD{workload.io_depth}"
    if step.kind is StepKind.FILL:
        return f"preconditioning, {format_capacity(step.planned_bytes or 0)} ({cell}, {demand})"
    if step.kind is StepKind.CONTINUOUS:
        return f"slice {step.number} ({cell}, {demand})"
    if step.kind is StepKind.WARM_UP:
        return f"warm-up {step.number} ({cell}, {demand})"
    return f"round {step.number}, step {step.position + 1} of {step.steps} ({cell}, {demand})"


def _now(state: _State) -> Table:
    grid = Table.grid(padding=(0, 3))
    for _ in range(5):
        grid.add_column(justify="right")
    sample = state.sample
    if sample is None:
        grid.add_row("- IOPS", "- MB/s", "mean -", "p99 -", "")
        return grid
    both = sample.both
    mean_ns, p99_ns = both.latency_mean_ns, both.percentile_ns(99)
    grid.add_row(
        f"[bold]{sample.iops:,.0f}[/bold] IOPS",
        f"[bold]{sample.bytes_per_s / 1e6:,.1f}[/bold] MB/s",
        "mean -" if mean_ns is None else f"mean [bold]{mean_ns / 1000:,.1f}[/bold] us",
        "p99 -" if p99_ns is None else f"p99 [bold]{p99_ns / 1000:,.1f}[/bold] us",
        f"[cyan]{sparkline(list(state.history))}[/cyan]",
    )
    return grid


def sparkline(values: list[float]) -> str:
    """The values as bars between 0 and their greatest."""
    top = max(values, default=0.0)
    if top <= 0:
        return ""
    return "".join(SPARKS[min(7, int(value / top * 7.999))] for value in values)


def _window(verdict: SteadyStateVerdict) -> Group:
    state = Text("steady" if verdict.reached else "not yet steady")
    state.stylize("bold green" if verdict.reached else "bold yellow")
    rounds = ", ".join(str(number) for number in verdict.rounds)
    values = "  ".join(f"{value:,.1f}" for value in verdict.values)
    slope = verdict.slope_excursion
    return Group(
        Text.assemble("window  ", verdict.tracking, ", rounds ", rounds, ": ", state),
        Text(f"        {values}  average {verdict.average:,.1f} {verdict.unit}"),
        Text(
            f"        range {verdict.data_excursion:,.1f} of {verdict.allowed_data_excursion:,.1f} "
            f"allowed, slope {'-' if slope is None else f'{slope:,.1f}'} of "
            f"{verdict.allowed_slope_excursion:,.1f} allowed"
        ),
    )


def _totals(state: _State) -> Text:
    in_phase_s = state.at_s - state.phase_at_s
    shortest_s = max(0.0, state.shortest_s - in_phase_s)
    longest_s = max(shortest_s, state.longest_s - in_phase_s)
    return Text(
        f"written {format_capacity(state.written_bytes)}, elapsed {format_duration(state.at_s)}, "
        f"remaining {format_durations(shortest_s, longest_s)}"
        + (f", {max(state.temperatures_c.values()):.0f} °C" if state.temperatures_c else "")
    )
