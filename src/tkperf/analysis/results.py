"""What a run found, as plain data: the one source of every table, chart and export.

Rules (PTS section 2.2 and 3.3): a reported number is the mean over the rounds of the steady-state
window; a mean latency is the mean of the rounds' means; a maximum is the greatest of the window;
percentiles come from the merged histograms of the window. A stream without a window is one single
measurement. None is "not measured".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import accumulate
from operator import add
from typing import Any

from tkperf.analysis.incomplete import (
    DAMAGED,
    IN_ROUNDS,
    describe_under_way,
    name_left_out,
    without_holes,
)
from tkperf.disturbance import DisturbanceCode, find_codes
from tkperf.measurement import REPORTED_PERCENTILES, IoStats, Measurement
from tkperf.phases import SectionOutcome
from tkperf.record import (
    LeftOut,
    PurgeRecord,
    RunInfo,
    RunRecord,
    RunStatus,
    RunWarning,
    StepKind,
    StepRecord,
    TestRecord,
)
from tkperf.steady_state import SteadyStateVerdict
from tkperf.units import format_capacity, format_count, format_duration
from tkperf.workload import Cell

TITLES = {
    "iops": "IOPS",
    "lat": "Latency",
    "tp": "Throughput",
    "writesat": "Write Saturation",
    "fio": "Results of fio",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """One cell of a table. Rates per second, latencies in us, all I/Os of the cell together.

    ``percentiles_us`` maps ``p50`` ... ``p99.999`` to a latency, or to None where there were too
    few I/Os. ``rounds`` says how many rounds the values are averaged over. ``host_limited`` and
    ``disturbances``, the kinds of what disturbed any of its steps, are None where nobody watched, as
    in an imported run; ``foreign_bytes``, what others moved meanwhile, where it was not compared.
    """

    read_percent: int
    block_size_bytes: int
    iops: float | None
    megabytes_per_s: float | None
    latency_mean_us: float | None
    latency_min_us: float | None
    latency_max_us: float | None
    percentiles_us: dict[str, float | None]
    ios: int | None
    rounds: int
    host_limited: bool | None
    disturbances: tuple[DisturbanceCode, ...] | None = None
    foreign_bytes: int | None = None

    @property
    def cell(self) -> Cell:
        return Cell(self.read_percent, self.block_size_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundResult:
    """One round of a section; ``complete`` unless the run ended within it or a step is lost."""

    number: int
    complete: bool
    cells: tuple[CellResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceResult:
    """One slice of a continuous stream. Times and amounts count from the stream's start.

    ``total_written_bytes`` is None in an imported run, which has rates only.
    """

    number: int
    start_s: float
    duration_s: float
    total_written_bytes: int | None
    values: CellResult


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionResult:
    """A part of a test with its own purge and verdict.

    ``cells`` are the results: means over ``window``. ``verdict`` is the last one given, None if
    the section has no steady-state rule. ``workload`` describes a stream's workload. With
    ``areas``, ``rounds`` are the areas of a hard disk from its start, not rounds in time.
    ``disturbed_in_window`` counts the window's steps that were disturbed, None where nobody watched.
    """

    name: str
    steady: bool | None
    window: tuple[int, ...]
    ended_because: str
    verdict: SteadyStateVerdict | None
    verdicts: tuple[SteadyStateVerdict, ...]
    cells: tuple[CellResult, ...]
    rounds: tuple[RoundResult, ...]
    areas: int | None
    slices: tuple[SliceResult, ...]
    workload: str | None
    purge: PurgeRecord | None
    filled_bytes: int | None
    filled_s: float | None
    histogram_us: tuple[tuple[float, float, int], ...]
    """Of a stream: (lower edge, upper edge, I/Os) of each bucket with I/Os, in us."""
    disturbed_in_window: int | None = 0

    def cell(self, cell: Cell) -> CellResult | None:
        return next((each for each in self.cells if each.cell == cell), None)

    def steady_of(self, cell: Cell) -> bool | None:
        """Whether a cell was steady by its own rounds, where it was judged by them; else the section.

        None: nothing was judged.
        """
        own = [each for each in self.verdicts if each.tracking.startswith(f"{cell} ")]
        if not own:
            return self.steady
        return own[-1].reached if own[-1].judged else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TestResult:
    """``longest_gap_s`` lies between two steps; ``disturbed_steps`` counts steps for each kind.

    ``not_compared_steps`` are those in which I/O of others could not be told. Both are None where
    nobody watched.
    """

    __test__ = False

    name: str
    title: str
    status: RunStatus
    duration_s: float | None
    written_bytes: int | None
    longest_gap_s: float | None
    sections: tuple[SectionResult, ...]
    disturbed_steps: dict[DisturbanceCode, int] | None = field(default_factory=dict)
    not_compared_steps: int | None = 0
    under_way: str | None = None
    """The step that did not end, in words: it is no result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """Everything a report may show. ``schema`` names this layout for programs."""

    schema: str
    info: RunInfo
    status: RunStatus
    ended_utc: str | None
    ended_because: str | None
    warnings: tuple[RunWarning, ...]
    tests: tuple[TestResult, ...]


SCHEMA = "tkperf-results/1"


def analyse(record: RunRecord) -> RunResult:
    """All results of a run, as far as it got."""
    tests = tuple(
        _test(
            test,
            record.info.table("hard_disk"),
            [each for each in record.left_out if each.step and each.test == test.name],
            record.status,
        )
        for test in record.tests
    )
    result = RunResult(
        schema=SCHEMA,
        info=record.info,
        status=record.status,
        ended_utc=record.ended_utc or None,
        ended_because=record.ended_because,
        warnings=(*record.warnings, *_cut_off(tests, record.status)),
        tests=(
            tuple(_without_guesses(test) for test in tests)
            # A run whose device is not known may be an imported one.
            if record.info.imported or not record.info.device
            else tests
        ),
    )
    return with_left_out(result, record.left_out)


def _cut_off(tests: Iterable[TestResult], status: RunStatus) -> Iterator[RunWarning]:
    for test in tests:
        if test.under_way is not None and status is not RunStatus.RUNNING:
            text = f"{test.title}: {test.under_way}"
            yield RunWarning(code="unfinished-step", text=text, test=test.name)


def with_left_out(result: RunResult, left_out: Sequence[LeftOut]) -> RunResult:
    """The result with a notice on each of its pages that something could not be read, and what."""
    if not left_out:
        return result
    notices = (*(each for each in result.info.notices if each != DAMAGED), DAMAGED)
    before = tuple(each for each in result.warnings if each.code != "left-out")
    info = replace(result.info, notices=notices)
    return replace(result, info=info, warnings=(*before, *name_left_out(left_out)))


def _without_guesses(test: TestResult) -> TestResult:
    """An imported test: what its tool did not record is not known, whatever the steps add up to."""
    # TKperf's XML has rates; counts were made of them so that rates are what they were.
    counted = test.name == "fio"

    def cells(of: Iterable[CellResult]) -> tuple[CellResult, ...]:
        return tuple(
            replace(
                cell,
                host_limited=None,
                ios=cell.ios if counted else None,
            )
            for cell in of
        )

    return replace(
        test,
        duration_s=None,
        written_bytes=None,
        sections=tuple(
            replace(
                section,
                cells=cells(section.cells),
                rounds=tuple(replace(each, cells=cells(each.cells)) for each in section.rounds),
                slices=tuple(
                    replace(each, total_written_bytes=None, values=cells([each.values])[0])
                    for each in section.slices
                ),
            )
            for section in test.sections
        ),
    )


def _test(
    test: TestRecord, disk: dict[str, Any], lost: Sequence[LeftOut], status: RunStatus
) -> TestResult:
    sections: dict[str, list[StepRecord]] = {}
    for step in test.steps:
        if step.kind is not StepKind.WARM_UP:  # kept, and part of no result
            sections.setdefault(step.section, []).append(step)
    # After a purge, or the making of a set, nothing is promised.
    gaps = [step.gap_s for step in test.steps if step.gap_s is not None and not step.planned_pause]
    watched = [step for step in test.steps if step.disturbances is not None]
    kinds = [find_codes(each.code for each in step.disturbances or ()) for step in watched]
    disturbed = Counter(code for codes in kinds for code in codes)
    nobody_watched = bool(test.steps) and not watched
    return TestResult(
        name=test.name,
        title=TITLES.get(test.name, test.name),
        status=test.status,
        duration_s=None if test.ended_s is None else test.ended_s - test.started_s,
        written_bytes=None if lost else sum(step.measurement.write.bytes for step in test.steps),
        longest_gap_s=None if lost else max(gaps, default=None),
        sections=tuple(_section(test, name, of, disk, lost) for name, of in sections.items()),
        disturbed_steps=None
        if nobody_watched
        else {code: disturbed[code] for code in find_codes(disturbed)},
        not_compared_steps=None
        if nobody_watched
        else sum(not _is_compared(step) for step in watched),
        under_way=None if test.under_way is None else describe_under_way(test.under_way, status),
    )


def _section(
    test: TestRecord,
    name: str,
    steps: Sequence[StepRecord],
    disk: dict[str, Any],
    lost_steps: Sequence[LeftOut],
) -> SectionResult:
    given = [each for each in test.verdicts if each.section == name]
    ended = None
    if test.outcome is not None:
        ended = next((each for each in test.outcome.sections if each.section == name), None)
    stream = [step for step in steps if step.kind is StepKind.CONTINUOUS]
    in_areas = [step for step in steps if step.kind is StepKind.AREA]
    areas = _complete_areas(in_areas, _steps_an_area(test.name, disk))
    lost = [each for each in lost_steps if each.section in (name, None)]
    # The rounds of a stream's verdict may lie far apart: they say nothing unless it is steady.
    verdicts = () if stream else tuple(each.verdict for each in given)
    window, because = _window(ended, verdicts, areas, test)
    judged = {each.number for each in given} | set(areas)
    if lost:
        judged = without_holes(steps, judged, lost)
    rounds = _rounds([step for step in steps if step.kind in IN_ROUNDS], judged)
    slices = _slices(stream, bool(lost))
    fill = next((step for step in steps if step.kind is StepKind.FILL), None)
    verdict = ended.verdict if ended else (given[-1].verdict if given else None)
    return SectionResult(
        name=name,
        steady=verdict.reached if verdict is not None and verdict.judged else None,
        window=window,
        ended_because=because,
        verdict=verdict,
        verdicts=tuple(each.verdict for each in given),
        cells=_window_cells(steps, window, bool(lost)),
        rounds=rounds,
        areas=disk.get("areas", len(areas)) if in_areas else None,
        slices=slices,
        workload=str(stream[0].workload) if stream else None,
        purge=next((purge for purge in test.purges if purge.section == name), None),
        filled_bytes=fill.measurement.write.bytes if fill else None,
        filled_s=fill.measurement.duration_s if fill else None,
        histogram_us=() if lost else _histogram_us(stream),
        disturbed_in_window=_disturbed_in(
            [step for step in steps if step.kind is not StepKind.FILL and step.number in window]
        ),
    )


def _disturbed_in(steps: Sequence[StepRecord]) -> int | None:
    if any(step.disturbances is None for step in steps):
        return None
    return sum(bool(step.disturbances) for step in steps)


def _is_compared(step: StepRecord) -> bool:
    """Whether the I/O of others could be told from the step's own."""
    return step.foreign_read_bytes is not None and step.foreign_write_bytes is not None


def _window(
    ended: SectionOutcome | None,
    verdicts: Sequence[SteadyStateVerdict],
    complete_areas: tuple[int, ...],
    test: TestRecord,
) -> tuple[tuple[int, ...], str]:
    """Rounds that results are averaged over, and why the section ended."""
    if ended is not None:
        return ended.window, ended.ended_because
    # Cut short: the last rounds that were judged, so complete, say what is known so far.
    window = verdicts[-1].rounds if verdicts else complete_areas
    if test.status is RunStatus.COMPLETE:
        return window, "how it ended cannot be read"
    return window, f"the test did not end: {test.status.value}"


def _steps_an_area(test: str, disk: dict[str, object]) -> int | None:
    """How many steps each area of a hard disk gets; None is not known."""
    if test == "tp":
        return 2
    mixes, sizes = disk.get("iops_read_percents"), disk.get("iops_block_sizes_kib")
    if not (isinstance(mixes, Sequence) and isinstance(sizes, Sequence)):
        return None
    return len(mixes) * len(sizes)


def _complete_areas(steps: Sequence[StepRecord], expected: int | None) -> tuple[int, ...]:
    """Numbers of the areas in which every step was run."""
    ran = Counter(step.number for step in steps)
    whole = expected or max(ran.values(), default=0)
    return tuple(number for number, count in ran.items() if count == whole)


def _rounds(steps: Iterable[StepRecord], judged: set[int]) -> tuple[RoundResult, ...]:
    by_number: dict[int, list[CellResult]] = {}
    for step in steps:
        by_number.setdefault(step.number, []).append(_of_steps(step.workload.cell, [step]))
    return tuple(
        RoundResult(number=number, complete=number in judged, cells=tuple(cells))
        for number, cells in by_number.items()
    )


def _slices(steps: Sequence[StepRecord], lost: bool) -> tuple[SliceResult, ...]:
    """Slices one after the other; where some are ``lost``, what was written cannot be added up."""
    slices: list[SliceResult] = []
    written_bytes = 0
    for step, start_s in zip(steps, _starts_s(steps), strict=True):
        written_bytes += step.measurement.write.bytes
        slices.append(
            SliceResult(
                number=step.number,
                start_s=start_s,
                duration_s=step.measurement.duration_s,
                total_written_bytes=None if lost else written_bytes,
                values=_of_steps(step.workload.cell, [step]),
            )
        )
    return tuple(slices)


def _starts_s(slices: Sequence[StepRecord]) -> list[float]:
    """When each slice began, from the start of the stream, as it was recorded.

    An imported run has no times: then they are set end to end.
    """
    if not slices:
        return []
    first = slices[0]
    if len(slices) > 1 and slices[-1].started_s <= first.started_s:
        ends_s = accumulate((step.measurement.duration_s for step in slices), initial=0.0)
        return list(ends_s)[:-1]
    # The first slices may be lost.
    before_s = (first.number - 1) * (first.planned_s or first.measurement.duration_s)
    return [before_s + step.started_s - first.started_s for step in slices]


def _window_cells(
    steps: Sequence[StepRecord], window: tuple[int, ...], lost: bool
) -> tuple[CellResult, ...]:
    """Means over the window; a stream without one is taken as a single measurement.

    With steps ``lost``, a cell that lacks one in the window has no mean, and a stream no whole.
    """
    measured = [step for step in steps if step.kind is not StepKind.FILL]
    if measured and measured[0].kind is StepKind.CONTINUOUS and not window:
        if lost:
            return ()
        whole = _join([step.measurement for step in measured])
        result = _of_steps(measured[0].workload.cell, measured, as_one=whole)
        return (replace(result, rounds=len(measured)),)
    in_window: dict[Cell, list[StepRecord]] = {}
    numbers = set(window)
    for step in measured:
        if step.number in numbers:
            in_window.setdefault(step.workload.cell, []).append(step)
    return tuple(
        _of_steps(cell, rounds)
        for cell, rounds in in_window.items()
        if not lost or len(rounds) == len(window)
    )


def _of_steps(
    cell: Cell, steps: Sequence[StepRecord], *, as_one: Measurement | None = None
) -> CellResult:
    """A cell of these steps, with what disturbed them."""
    seen = [step.measurement for step in steps] if as_one is None else [as_one]
    codes = find_codes(each.code for step in steps for each in step.disturbances or ())
    watched = all(step.disturbances is not None for step in steps)
    foreign = [
        step.foreign_read_bytes + step.foreign_write_bytes
        for step in steps
        if step.foreign_read_bytes is not None and step.foreign_write_bytes is not None
    ]
    return replace(
        summarise(cell, seen),
        disturbances=codes if codes or watched else None,
        foreign_bytes=sum(foreign) if len(foreign) == len(steps) else None,
    )


def _join(slices: Sequence[Measurement]) -> Measurement:
    """Slices of a stream as if they had been one: each I/O counts the same."""
    return Measurement(
        duration_s=sum(each.duration_s for each in slices),
        read=reduce(add, (each.read for each in slices)),
        write=reduce(add, (each.write for each in slices)),
        host_limited=any(each.host_limited for each in slices),
        rates_known=all(each.rates_known for each in slices),
    )


def summarise(cell: Cell, rounds: Sequence[Measurement]) -> CellResult:
    """One cell from the rounds of its window."""
    counted = all(seen.rates_known for seen in rounds)
    whole: IoStats = reduce(add, (seen.both for seen in rounds))
    means = [seen.latency_mean_us for seen in rounds if seen.latency_mean_us is not None]
    sides = [side for seen in rounds for side in (seen.read, seen.write) if side.latency_ios]
    # An extreme or percentile of some rounds would pass for one of all.
    counted_in = [side.histogram.total > 0 for side in sides]
    known_min = all(side.latency_min_ns is not None for side in sides)
    known_max = all(side.latency_max_ns is not None for side in sides)
    return CellResult(
        read_percent=cell.read_percent,
        block_size_bytes=cell.block_size_bytes,
        iops=sum(seen.iops for seen in rounds) / len(rounds) if counted else None,
        megabytes_per_s=(
            sum(seen.megabytes_per_s for seen in rounds) / len(rounds) if counted else None
        ),
        latency_mean_us=sum(means) / len(means) if means else None,
        latency_min_us=_us(whole.latency_min_ns) if known_min else None,
        latency_max_us=_us(whole.latency_max_ns) if known_max else None,
        percentiles_us={
            f"p{percent:g}": _us(whole.percentile_ns(percent)) if all(counted_in) else None
            for percent in REPORTED_PERCENTILES
        },
        ios=whole.ios if counted else None,
        rounds=len(rounds),
        host_limited=any(seen.host_limited for seen in rounds),
    )


def describe_stream(section: SectionResult) -> str:
    """How long a stream was: ``62 slices, 1 h 02 min, 514.8 GB written``."""
    last = section.slices[-1]
    said = f"{format_count(len(section.slices), 'slice')}, "
    said += format_duration(last.start_s + last.duration_s)
    if last.total_written_bytes is None:
        return said
    return f"{said}, {format_capacity(last.total_written_bytes)} written"


def _histogram_us(stream: Sequence[StepRecord]) -> tuple[tuple[float, float, int], ...]:
    if not stream:
        return ()
    whole = reduce(add, (step.measurement.both.histogram for step in stream))
    return tuple(
        (lower / 1000, (upper + 1) / 1000, count) for lower, upper, count in whole.buckets()
    )


def _us(value_ns: float | None) -> float | None:
    return None if value_ns is None else value_ns / 1000
