"""Build the page of a run in progress. The page shows the position within the run, the newest figures, the history of
each cell, and the window so far.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tkperf.analysis.loads_together import CellState
from tkperf.analysis.workload_axes import name_stream
from tkperf.model.disturbance.io import WORDS, find_codes
from tkperf.model.measurement import Sample, samples_of
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
    unit_for_people,
)
from tkperf.model.workload import Workload, key_of_stream, list_loads
from tkperf.page.findings.section_findings import say_value
from tkperf.page.naming import name_figure
from tkperf.pipeline.run_state import MOST_VALUES, LeftSection, RunState
from tkperf.runner.events import StepStarted, describe_phase

_KINDS = {StepKind.FILL: "filling", StepKind.CONTINUOUS: "slice"}
_MOST_WARNINGS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The completed share of a run or a step, from 0 to 1. ``most`` is the completed share if the run or the step takes
    the shortest possible time.
    """

    label: str
    done: float
    most: float
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """The figures of the newest second. None means that no second is complete yet, or that the figure was not measured.

    Attributes:
        name: the stream of a combination to which the figures belong, or the stream's flushes; empty for all reads and
            writes.
        offered_iops: the rate that fio offers to the device; None if fio issues I/Os as fast as the device completes
            them.
    """

    name: str = ""
    offered_iops: float | None = None
    iops: float | None = None
    megabytes_per_s: float | None = None
    latency_mean_us: float | None = None
    latency_p99_us: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CellHistories:
    """The values of the main quantity of a section, for each cell. ``current`` is the cell that tkperf measures now.

    Attributes:
        names: the name of each cell, for loads whose parameters do not distinguish the cells. ``names`` is empty if the
            parameters determine rows and columns.
        part: word for the part in which a value was measured: round, slice or area.
        unit: unit of the values.
        most: greatest number of values that are kept for a cell. If a cell has this many values, earlier values may be
            missing.
    """

    title: str
    values: Mapping[Workload, Sequence[float | None]]
    current: Workload | None
    names: tuple[str, ...] = ()
    part: str = "round"
    unit: str = ""
    most: int = MOST_VALUES


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSquare:
    """A measured cell of the grid of offered reads and writes.

    Attributes:
        latency_us: the 99th percentile of the read latency in µs. None means that ``word`` is shown instead.
        word: the word that is shown if the cell has no latency, or if its latency is not valid.
        is_within: whether the latency is within the limit.
    """

    latency_us: float | None = None
    word: str = ""
    is_within: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveGrid:
    """The grid of offered reads and writes so far. The highest rate of writes is the first row, as in the report.

    Attributes:
        rows: offered writes in MB/s.
        columns: offered reads in IOPS.
        squares: the cells, row by row; None for a cell that has not been measured.
        current: row and column of the cell that tkperf is measuring.
        words: the meaning of the words in the squares.
    """

    title: str
    rows: tuple[float, ...]
    columns: tuple[float, ...]
    squares: tuple[tuple[LiveSquare | None, ...], ...]
    current: tuple[int, int] | None
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSoFar:
    """The window of the latest verdict. The record contains the name of the tracking variable, the figures as text and
    as numbers, and the state, which tells whether the window is steady.
    """

    title: str
    state: str
    reached: bool
    missing: str
    figures: str
    verdict: SteadyStateVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressView:
    """The state of a run in the form that every view of the run shows.

    Attributes:
        test: the running test, one of ``tests``; empty before the first test.
        number: the number of the test, counted from 1.
        place: the position within the test.
        load: the load at this position.
        known: whether the position is known.
        run: the completed share of the run; None if it is not known.
        step: the completed share of the step; None while no step runs.
        ends_s: the shortest and the longest time until the run ends, in seconds. From these values, a view computes
            when the run will end according to the clock of the host. None if the time is not known, or if the run is
            simulated.
        streams: the figures of each stream of the running combination and of its flushes; empty for a single load.
        seconds_iops: IOPS of the last seconds.
        left: the sections that the run has finished, each with its test and its outcome in words.
        totals: elapsed and remaining time, temperature in degrees Celsius, and amount written.
        disturbed: the number of disturbed steps in words; empty if there are none.
        remarks: notices, followed by the newest warnings.
        warned: whether there is a warning.
    """

    name: str
    tests: tuple[str, ...]
    test: str
    number: int
    place: str
    load: str = ""
    known: bool = True
    run: Share | None = None
    ends_s: tuple[float, float] | None = None
    step: Share | None = None
    now: Now = Now()
    streams: tuple[Now, ...] = ()
    seconds_iops: tuple[float, ...] = ()
    cells: CellHistories | None = None
    grid: LiveGrid | None = None
    left: tuple[tuple[str, str], ...] = ()
    window: WindowSoFar | None = None
    totals: tuple[str, ...] = ()
    disturbed: str = ""
    remarks: tuple[str, ...] = ()
    warned: bool = False


def build_progress(state: RunState) -> ProgressView:
    """Return the content of the page for the state of a run."""
    place, load, known = _place(state)
    done, remaining_s = state.run_done, state.remaining_s
    run = None
    if done is not None and remaining_s is not None:
        percents = dict.fromkeys(f"{share * 100:.0f}" for share in done)
        run = Share(label="run", done=done[0], most=done[1], words=f"{' to '.join(percents)} %")
    return ProgressView(
        name=drop_controls(state.name) or "tkperf",
        tests=tuple(map(drop_controls, state.tests)),
        test=drop_controls(state.progress.test or ""),
        number=state.progress.number,
        place=place,
        load=load,
        known=known,
        run=run,
        ends_s=remaining_s if run is not None and not state.simulated else None,
        step=_step(state),
        now=Now() if state.sample is None else _describe_second(state.sample),
        streams=tuple(_streams(state)),
        seconds_iops=tuple(state.seconds_iops),
        cells=_cells(state),
        grid=_grid(state),
        left=tuple(_describe_left(section) for section in state.left.values()),
        window=None if state.verdict is None else _window(state.verdict),
        totals=tuple(_totals(state)),
        disturbed=_disturbed(state),
        remarks=tuple(_remarks(state)),
        warned=bool(state.warnings),
    )


def _place(state: RunState) -> tuple[str, str, bool]:
    """Return the position within the test and the load at this position. Also return whether the position is known."""
    phase, step = state.progress.phase, state.step
    if state.ended:
        return f"run {state.ended}", "", True
    if phase is None:
        return ("between two tests" if state.progress.test else "about to begin"), "", False
    if state.busy is not None:
        done = "" if state.busy.done is None else f", {state.busy.done:.0%} done"
        return f"{phase.section}, {state.busy.doing}{done}", "", True
    place = describe_phase(phase, state.progress.at_most, None if step is None else step.position)
    runs = step is not None and not isinstance(phase, Purge | Idle)
    return place, str(step.workload) if step is not None and runs else "", True


def _step(state: RunState) -> Share | None:
    step, done = state.step, state.step_done
    if step is None or done is None or state.busy is not None:
        return None
    words = f"{done * 100:.0f} % of {_describe_share(state, step, done)}"
    return Share(label=_KINDS.get(step.kind, "step"), done=done, most=done, words=words)


def _describe_share(state: RunState, step: StepStarted, done: float) -> str:
    if step.planned_bytes is None:
        planned_s = step.planned_s or 0.0
        return f"{planned_s:.2g} s" if planned_s < 1 else format_duration(planned_s)
    text = format_capacity(step.planned_bytes)
    passed_s = state.at_s - step.at_s
    if 0 < done < 1 and passed_s > 0:
        text += f", {format_duration(passed_s / done - passed_s)} left at this pace"
    return text


def _streams(state: RunState) -> Iterator[Now]:
    """Yield the figures of each stream, followed by the figures of the stream's flushes."""
    if state.step is None or state.sample is None:
        return
    for work in list_loads(state.step.workload)[1:]:
        for second in samples_of((state.sample,), work):
            figures = _describe_second(second)
            yield replace(
                figures,
                name=name_stream(work) if work.together else "flushes",
                offered_iops=work.offered_iops,
                megabytes_per_s=None if work.flushes else figures.megabytes_per_s,
            )


def _describe_second(second: Sample) -> Now:
    both = second.both
    mean_ns, p99_ns = both.latency_mean_ns, both.percentile_ns(99)
    return Now(
        iops=second.iops,
        megabytes_per_s=second.bytes_per_s / 1e6,
        latency_mean_us=None if mean_ns is None else mean_ns / 1000,
        latency_p99_us=None if p99_ns is None else p99_ns / 1000,
    )


def _cells(state: RunState) -> CellHistories | None:
    if not state.histories or (state.grid_rules is not None and state.compares_reads):
        return None
    phase = state.progress.phase
    in_areas = isinstance(phase, Round) and phase.areas
    several = "slice" if isinstance(phase, Continuous) else "area" if in_areas else "round"
    title = f"{state.quantity.title}, {several} by {several}"
    shown, current = state.histories, state.current_cell
    names: tuple[str, ...] = ()
    if state.compares_reads:
        title = f"Reads, {state.quantity.title}, {several} by {several}"
        # A neighbour can also be a stream that only reads, but the reader is always the first stream.
        loads = _list_whole_loads(shown)
        names = tuple(_name_row_of_reads(load, state.cell_states.get(load)) for load in loads)
        shown = {_read_key(load): state.histories.get(_read_key(load), []) for load in loads}
        current = None if current is None else _read_key(current)
    elif any(load.together for load in shown):
        several_loads = len({load.together for load in shown}) > 1
        names = tuple(_name_row(load, several=several_loads) for load in shown)
    return CellHistories(
        title=title, values=shown, current=current, names=names, part=several, unit=unit_for_people(state.quantity.unit)
    )


def _list_whole_loads(loads: Iterable[Workload]) -> list[Workload]:
    """Return the loads, but not their single streams and flushes."""
    return [load for load in loads if load.stream is None and not load.flushes]


def _read_key(load: Workload) -> Workload:
    """Return the key of the first stream in a combination that only reads. If there is no such stream, return the
    load.
    """
    reader = next((stream for stream in load.together if stream.workload.read_percent == 100), None)
    return load if reader is None else key_of_stream(load, reader.name)


def _name_row_of_reads(load: Workload, state: CellState | None) -> str:
    others = " + ".join(stream.name for stream in load.together[1:])
    name = f"with {others}" if others else "alone"
    return f"{name} (rate not reached)" if state is CellState.READS_SHORT else name


def _name_row(load: Workload, *, several: bool) -> str:
    if not load.together:
        return name_figure(load)
    together = " + ".join(stream.name for stream in load.together)
    return f"{together}: {name_stream(load)}" if several else name_stream(load)


# The words that squares of the grid can contain instead of a latency, with their meanings.
_NOT_REACHED, _FEW, _DONE = "-", "few", "done"
_MEANINGS = {_NOT_REACHED: "offered rates not reached", _FEW: "too few reads for p99", _DONE: "all writes done"}


def _grid(state: RunState) -> LiveGrid | None:
    """Return the grid of offered reads and writes so far, or None if the section has no such grid."""
    rules = state.grid_rules
    if rules is None or not state.compares_reads:
        return None
    at = {_find_rates(load): load for load in _list_whole_loads(state.histories)}
    now = None if state.current_cell is None else _find_rates(state.current_cell)
    if now is not None and state.current_cell is not None:
        at.setdefault(now, state.current_cell)
    across = sorted({reads for reads, _ in at})
    up = sorted({writes for _, writes in at}, reverse=True)
    rows = [[at.get((reads, writes)) for reads in across] for writes in up]
    squares = tuple(tuple(None if load is None else _square(state, load) for load in row) for row in rows)
    words = {square.word for row in squares for square in row if square is not None}
    return LiveGrid(
        title=f"Reads, {state.quantity.title}, limit {format_number(rules.latency_limit_us)}",
        rows=tuple(up),
        columns=tuple(across),
        squares=squares,
        current=None if now is None else (up.index(now[1]), across.index(now[0])),
        words="; ".join(f"{word}: {meaning}" for word, meaning in _MEANINGS.items() if word in words),
    )


def _find_rates(load: Workload) -> tuple[float, float]:
    """Return the offered reads in IOPS and the offered writes in MB/s."""
    read_iops = written = 0.0
    for one in (stream.workload for stream in load.together) if load.together else (load,):
        if one.read_percent == 100:
            read_iops = one.offered_iops or 0.0
        else:
            written = one.mean_block_bytes * (one.offered_iops or 0.0) / 1e6
    return read_iops, written


def _square(state: RunState, load: Workload) -> LiveSquare | None:
    values = state.histories.get(_read_key(load), [])
    match state.cell_states.get(load):
        case None | CellState.NOT_MEASURED:
            return None
        case CellState.READS_SHORT | CellState.WRITES_SHORT:
            return LiveSquare(word=_NOT_REACHED)
        case CellState.NO_PERCENTILE:
            return LiveSquare(word=_FEW)
        case cell_state:
            if not load.together and load.read_percent != 100:
                return LiveSquare(word=_DONE)
            return LiveSquare(latency_us=values[-1], is_within=cell_state is CellState.WITHIN)


def _window(verdict: SteadyStateVerdict) -> WindowSoFar:
    missing = f", {len(verdict.rounds)} of {verdict.needed_rounds} rounds"
    return WindowSoFar(
        title=f"{verdict.tracking}, {format_window(verdict.rounds)}",
        state="steady" if verdict.reached else "not yet steady",
        reached=verdict.reached,
        missing="" if verdict.judged else missing,
        figures=(
            f"average {format_number(verdict.average, 1)} {unit_for_people(verdict.unit)}, "
            f"range {format_number(verdict.data_excursion, 1)} "
            f"(allowed {format_number(verdict.allowed_data_excursion, 1)}), "
            f"slope {format_number(verdict.slope_excursion, 1)} "
            f"(allowed {format_number(verdict.allowed_slope_excursion, 1)})"
        ),
        verdict=verdict,
    )


def _describe_left(section: LeftSection) -> tuple[str, str]:
    """Return two texts about a section that the run has finished. The first text is the name of the section. The second
    text contains the outcome: the state and the average of the window, or the newest value.
    """
    is_named = section.section.lower() != section.test
    name = ", ".join(filter(None, (section.test, section.section if is_named else "")))
    verdict, newest = section.verdict, section.newest
    if verdict is not None:
        state = "steady" if verdict.reached else "not steady"
        unit = "" if verdict.tracking.endswith(verdict.unit) else unit_for_people(verdict.unit)
        average = f"{verdict.tracking} {format_number(verdict.average)} {unit}".rstrip()
        words = f"{state}, {format_window(verdict.rounds)}: {average}"
    elif newest is not None:
        words = f"last {say_value(newest.value, newest.quantity)}, {newest.workload}"
    else:
        words = "measured"
    return drop_controls(name), drop_controls(words)


def _totals(state: RunState) -> list[str]:
    remaining_s = state.remaining_s
    left = "not known" if remaining_s is None else format_durations(*remaining_s)
    parts = [f"{format_duration(state.at_s)} gone", f"{left} left"]
    if state.temperatures_c:
        parts.append(f"{max(state.temperatures_c.values()):.0f} °C")
    return [*parts, f"{format_capacity(state.written_bytes)} written"]


def _disturbed(state: RunState) -> str:
    last = state.last_disturbed
    if last is None:
        return ""
    codes = find_codes(one.code for one in last.disturbances or ())
    kinds = ", ".join(WORDS[code] for code in codes)
    where = f"{last.section} {last.number}, {last.workload.mix_and_size}"
    return f"disturbed: {format_count(state.disturbed_steps, 'step')}, last {where}: {kinds}"


def _remarks(state: RunState) -> list[str]:
    texts = [f"warning: {warning}" for warning in state.warnings[-_MOST_WARNINGS:]]
    if earlier := len(state.warnings[:-_MOST_WARNINGS]):
        texts.insert(0, f"{format_count(earlier, 'earlier warning')} in the log")
    # The newest warning is the last line, as in a log.
    return [*state.notices, *texts]
