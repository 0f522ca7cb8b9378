"""What a run found, as plain data: the one source of every table, chart and export.

A cell is what was measured of one workload over the rounds of a window (``quantity.py`` has the
rules); a stream without a window is one single measurement. None is "not measured".
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
from tkperf.analysis.timeline.findings import Recorded, Timeline
from tkperf.analysis.timeline.search import Track, find_timelines
from tkperf.disturbance import DisturbanceCode, find_codes
from tkperf.errors import ProfileError
from tkperf.figures import Figure, SectionPlan, TestPlan, generic_section
from tkperf.measurement import Measurement
from tkperf.phases import Knee, Round, SectionOutcome
from tkperf.procedures import find_test, known_plan, read_stored_profile
from tkperf.procedures.walk import first_rounds
from tkperf.quantity import IOS, Direction, Figures, Quantity, combine
from tkperf.record import (
    NO_PURGE,
    LeftOut,
    PurgeRecord,
    RunInfo,
    RunRecord,
    RunStatus,
    RunWarning,
    StepKind,
    StepRecord,
    TestRecord,
    VerdictRecord,
    key_of,
)
from tkperf.steady_state import SteadyStateVerdict
from tkperf.tkperf_loops import PROFILE_NAME
from tkperf.units import format_capacity, format_count, format_duration
from tkperf.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """What was measured of one workload of a section: a cell of its tables.

    ``all`` has every quantity by its key, None where it was not measured; ``read`` and ``write`` the
    same of one direction, None where the workload has none of it. ``rounds`` says how many rounds the
    values are of. ``host_limited`` and ``disturbances``, the kinds of what disturbed any of its steps,
    are None where nobody watched, as in an imported run; ``foreign_bytes``, what others moved
    meanwhile, where it was not compared.
    """

    workload: Workload
    all: Figures
    read: Figures | None
    write: Figures | None
    rounds: int
    host_limited: bool | None
    disturbances: tuple[DisturbanceCode, ...] | None = None
    foreign_bytes: int | None = None

    def value(self, quantity: Quantity, direction: Direction = Direction.ALL) -> float | None:
        """A quantity's value; None: not measured."""
        figures: Figures | None = getattr(self, direction)
        return None if figures is None else figures[quantity.key]


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

    ``plan`` is how it is shown.
    ``cells`` are the results: means over ``window``. ``verdict`` is the last one given, None if
    the section has no steady-state rule. ``workload`` describes a stream's workload. With
    ``areas``, ``rounds`` are the areas of a hard disk from its start, not rounds in time.
    ``disturbed_in_window`` counts the window's steps that were disturbed, None where nobody watched.
    """

    name: str
    plan: SectionPlan
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
    fill_workload: Workload | None = None
    """What preconditioning wrote with."""
    window_verdicts: tuple[SteadyStateVerdict, ...] = ()
    """``verdict``, or with several tracking variables those of all in the same rounds, in their order."""
    timelines: tuple[Timeline, ...] = ()
    """What each series of enough values shows over time, whether anything was found in it or not."""
    knee: Knee | None = None
    """Where an offered rate was raised: how far the device kept up."""

    def cell(self, workload: Workload) -> CellResult | None:
        return next((cell for cell in self.cells if cell.workload == workload), None)

    def steady_of(self, workload: Workload) -> bool | None:
        """Whether a cell was steady by its own rounds, where it was judged by them; else the section.

        None: nothing was judged.
        """
        own = [
            verdict
            for verdict in self.verdicts
            if verdict.tracking.startswith(f"{workload.mix_and_size} ")
        ]
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
    over_sections: tuple[str, ...] = ()
    """Quantities that are drawn over all sections, by their keys."""
    figures: tuple[Figure, ...] = ()
    """Of the whole test, as its plan has them."""
    demands: tuple[tuple[int, int], ...] = ()
    """(Threads, queue depth) of what was measured, in order; empty: not known."""


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


SCHEMA = "tkperf-results/2"


def analyse(record: RunRecord) -> RunResult:
    """All results of a run, as far as it got."""
    tests = tuple(
        _test(
            test,
            _plan(record.info.suite, test),
            _planned_areas(record.info, test),
            [row for row in record.left_out if row.step and row.test == test.name],
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
            tuple(_without_guesses(test, record.info) for test in tests)
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
    notices = (*(notice for notice in result.info.notices if notice != DAMAGED), DAMAGED)
    before = tuple(warning for warning in result.warnings if warning.code != "left-out")
    info = replace(result.info, notices=notices)
    return replace(result, info=info, warnings=(*before, *name_left_out(left_out)))


def _without_guesses(test: TestResult, info: RunInfo) -> TestResult:
    """An imported test: what its tool did not record is not known, whatever the steps add up to."""
    # TKperf's XML has rates; counts were made of them so that rates are what they were.
    counted = info.profile_name != PROFILE_NAME
    demand_known = any(
        "jobs" in table for table in info.profile.values() if isinstance(table, dict)
    )

    def cells(of: Iterable[CellResult]) -> tuple[CellResult, ...]:
        return tuple(
            replace(
                cell,
                host_limited=None,
                **({} if counted else _without_counts(cell)),
            )
            for cell in of
        )

    return replace(
        test,
        duration_s=None,
        written_bytes=None,
        demands=test.demands if demand_known else (),
        sections=tuple(
            replace(
                section,
                cells=cells(section.cells),
                rounds=tuple(
                    replace(round_result, cells=cells(round_result.cells))
                    for round_result in section.rounds
                ),
                slices=tuple(
                    replace(
                        slice_result,
                        total_written_bytes=None,
                        values=cells([slice_result.values])[0],
                    )
                    for slice_result in section.slices
                ),
            )
            for section in test.sections
        ),
    )


def _without_counts(cell: CellResult) -> dict[str, Any]:
    """Rates were told, of all I/Os together: how many there were, and which, was made of them."""
    mixed = cell.workload.read_percent not in (0, 100)
    return {
        direction: None
        if figures is None or (mixed and direction is not Direction.ALL)
        else {**figures, IOS.key: None}
        for direction in Direction
        for figures in (getattr(cell, direction),)
    }


def _plan(suite: str, test: TestRecord) -> TestPlan:
    """How the test is shown; a section that no plan knows by what was recorded."""
    names = list(dict.fromkeys(step.section for step in test.steps))
    plan = test.plan or known_plan(suite, test.name, names) or TestPlan(title=test.name)
    return replace(
        plan,
        sections=tuple(plan.section(name) or _recorded(test.steps, name) for name in names),
    )


def _recorded(steps: Sequence[StepRecord], name: str) -> SectionPlan:
    kinds = {step.kind for step in steps if step.section == name}
    return generic_section(name, areas=StepKind.AREA in kinds, stream=StepKind.CONTINUOUS in kinds)


def _planned_areas(info: RunInfo, test: TestRecord) -> dict[str, Round]:
    """The first area of each section, as the run's own profile has them; empty if it does not say."""
    definition = find_test(info.suite, test.name)
    if definition is None or not any(step.kind is StepKind.AREA for step in test.steps):
        return {}
    try:
        profile = read_stored_profile(info.profile)
        return first_rounds(definition, profile, info.active_range_length_bytes or 0)
    except (ProfileError, ValueError):
        return {}


def _test(
    test: TestRecord,
    plan: TestPlan,
    planned: dict[str, Round],
    lost: Sequence[LeftOut],
    status: RunStatus,
) -> TestResult:
    sections: dict[str, list[StepRecord]] = {}
    for step in test.steps:
        sections.setdefault(step.section, []).append(step)
    # After a purge, or the making of a set, nothing is promised.
    gaps = [step.gap_s for step in test.steps if step.gap_s is not None and not step.planned_pause]
    watched = [step for step in test.steps if step.disturbances is not None]
    kinds = [
        find_codes(disturbance.code for disturbance in step.disturbances or ()) for step in watched
    ]
    disturbed = Counter(code for codes in kinds for code in codes)
    nobody_watched = bool(test.steps) and not watched
    return TestResult(
        name=test.name,
        title=plan.title,
        status=test.status,
        duration_s=None if test.ended_s is None else test.ended_s - test.started_s,
        written_bytes=None if lost else sum(step.measurement.write.bytes for step in test.steps),
        longest_gap_s=None if lost else max(gaps, default=None),
        sections=tuple(
            _section(test, section, sections[section.name], planned.get(section.name), lost)
            for section in plan.sections
        ),
        over_sections=plan.over_sections,
        figures=plan.figures,
        demands=tuple(
            dict.fromkeys(
                (step.workload.jobs, step.workload.io_depth)
                for step in test.steps
                if step.kind is not StepKind.FILL
            )
        ),
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
    plan: SectionPlan,
    all_steps: Sequence[StepRecord],
    planned: Round | None,
    lost_steps: Sequence[LeftOut],
) -> SectionResult:
    name = plan.name
    # Warm-ups are kept, and part of no result but of what was written.
    steps = [step for step in all_steps if step.kind is not StepKind.WARM_UP]
    given = [record for record in test.verdicts if record.section == name]
    ended = None
    if test.outcome is not None:
        ended = next(
            (outcome for outcome in test.outcome.sections if outcome.section == name), None
        )
    stream = [step for step in steps if step.kind is StepKind.CONTINUOUS]
    in_areas = [step for step in steps if step.kind is StepKind.AREA]
    areas = _complete_areas(in_areas, planned)
    lost = [row for row in lost_steps if row.section in (name, None)]
    # The rounds of a stream's verdict may lie far apart: they say nothing unless it is steady.
    verdicts = () if stream else tuple(record.verdict for record in given)
    window, because = _window(ended, verdicts, areas, test)
    judged = {record.number for record in given} | set(areas)
    if ended is not None:  # also rounds that nobody judged
        judged |= {step.number for step in steps if step.kind is StepKind.ROUND}
    if lost:
        judged = without_holes(steps, judged, lost)
    rounds = _rounds([step for step in steps if step.kind in IN_ROUNDS], judged)
    slices = _slices(stream, all_steps, bool(lost))
    fill = next((step for step in steps if step.kind is StepKind.FILL), None)
    verdict = ended.verdict if ended else (given[-1].verdict if given else None)
    purge = next((purge for purge in test.purges if purge.section == name), None)
    as_new = fill is None and purge is not None and purge.method != NO_PURGE
    return SectionResult(
        name=name,
        plan=plan,
        steady=verdict.reached if verdict is not None and verdict.judged else None,
        window=window,
        ended_because=because,
        verdict=verdict,
        verdicts=tuple(record.verdict for record in given),
        cells=_window_cells(steps, window, bool(lost)),
        rounds=rounds,
        areas=((planned and planned.areas) or len(areas)) if in_areas else None,
        slices=slices,
        workload=str(stream[0].workload) if stream else None,
        purge=purge,
        filled_bytes=fill.measurement.write.bytes if fill else None,
        filled_s=fill.measurement.duration_s if fill else None,
        histogram_us=() if lost else _histogram_us(stream),
        disturbed_in_window=_disturbed_in(
            [step for step in steps if step.kind is not StepKind.FILL and step.number in window]
        ),
        fill_workload=fill.workload if fill else None,
        window_verdicts=_window_verdicts(ended, given),
        timelines=find_timelines(_tracks(rounds, slices, areas=bool(in_areas)), as_new=as_new),
        knee=ended.knee if ended is not None else None,
    )


def _window_verdicts(
    ended: SectionOutcome | None, given: Sequence[VerdictRecord]
) -> tuple[SteadyStateVerdict, ...]:
    """Of each tracking variable; an imported run's cells are judged one by one and have no window."""
    if ended is not None:
        return ended.verdicts or ((ended.verdict,) if ended.verdict else ())
    return tuple(record.verdict for record in given if record.number == given[-1].number)


def _tracks(
    rounds: Sequence[RoundResult], slices: Sequence[SliceResult], *, areas: bool
) -> Iterator[Track]:
    """The cells of each workload over its rounds, or over its slices; areas are no time."""
    for stream in dict.fromkeys(slice_result.values.workload for slice_result in slices):
        of_stream = [
            slice_result for slice_result in slices if slice_result.values.workload == stream
        ]
        yield Track(
            workload=stream,
            recorded=Recorded.SLICES,
            place=tuple(slice_result.start_s for slice_result in of_stream),
            width=tuple(slice_result.duration_s for slice_result in of_stream),
            figures=tuple(slice_result.values.all for slice_result in of_stream),
        )
    by_workload: dict[Workload, list[tuple[int, Figures]]] = {}
    for round_result in () if areas else rounds:
        for cell in round_result.cells:
            by_workload.setdefault(cell.workload, []).append((round_result.number, cell.all))
    for workload, numbered in by_workload.items():
        yield Track(
            workload=workload,
            recorded=Recorded.ROUNDS,
            place=tuple(float(number) for number, _ in numbered),
            width=(0.0,) * len(numbered),
            figures=tuple(figures for _, figures in numbered),
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


def _complete_areas(steps: Sequence[StepRecord], planned: Round | None) -> tuple[int, ...]:
    """Numbers of the areas in which every step was run."""
    ran = Counter(step.number for step in steps)
    whole = max(ran.values(), default=0) if planned is None else len(planned.steps)
    return tuple(number for number, count in ran.items() if count == whole)


def _rounds(steps: Iterable[StepRecord], judged: set[int]) -> tuple[RoundResult, ...]:
    by_number: dict[int, list[CellResult]] = {}
    for step in steps:
        by_number.setdefault(step.number, []).append(_of_steps(_key(step), [step]))
    return tuple(
        RoundResult(number=number, complete=number in judged, cells=tuple(cells))
        for number, cells in by_number.items()
    )


def _slices(
    steps: Sequence[StepRecord], all_steps: Sequence[StepRecord], lost: bool
) -> tuple[SliceResult, ...]:
    """Slices one after the other; where some are ``lost``, what was written cannot be added up.

    What warm-ups wrote counts from the next slice on.
    """
    slices: list[SliceResult] = []
    written_bytes = 0
    in_order = iter(step for step in all_steps if step.kind is not StepKind.FILL)
    for step, start_s in zip(steps, starts_of_slices(steps), strict=True):
        for ran in in_order:
            written_bytes += ran.measurement.write.bytes
            if ran is step:
                break
        slices.append(
            SliceResult(
                number=step.number,
                start_s=start_s,
                duration_s=step.measurement.duration_s,
                total_written_bytes=None if lost else written_bytes,
                values=_of_steps(_key(step), [step]),
            )
        )
    return tuple(slices)


def starts_of_slices(slices: Sequence[StepRecord]) -> list[float]:
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

    With steps ``lost``, a cell that lacks one in the window has no mean, and a stream no whole. A
    level of an offered rate is a round of its own.
    """
    measured = [step for step in steps if step.kind is not StepKind.FILL]
    if measured and measured[0].kind is StepKind.CONTINUOUS and not window:
        if lost:
            return ()
        whole = _join([step.measurement for step in measured])
        result = _of_steps(_key(measured[0]), measured, as_one=whole)
        return (replace(result, rounds=len(measured)),)
    in_window: dict[Workload, list[StepRecord]] = {}
    numbers = set(window)
    for step in measured:
        if step.number in numbers:
            in_window.setdefault(_key(step), []).append(step)
    return tuple(
        _of_steps(workload, rounds)
        for workload, rounds in in_window.items()
        if not lost or len(rounds) == len(window) or workload.offered_iops is not None
    )


def _key(step: StepRecord) -> Workload:
    """The workload that a step's result is found by: the same in all areas of a disk."""
    return key_of(step.kind, step.workload)


def _of_steps(
    workload: Workload, steps: Sequence[StepRecord], *, as_one: Measurement | None = None
) -> CellResult:
    """A cell of these steps, with what disturbed them."""
    measurements = [step.measurement for step in steps] if as_one is None else [as_one]
    codes = find_codes(
        disturbance.code for step in steps for disturbance in step.disturbances or ()
    )
    watched = all(step.disturbances is not None for step in steps)
    foreign = [
        step.foreign_read_bytes + step.foreign_write_bytes
        for step in steps
        if step.foreign_read_bytes is not None and step.foreign_write_bytes is not None
    ]
    return replace(
        summarise(workload, measurements),
        disturbances=codes if codes or watched else None,
        foreign_bytes=sum(foreign) if len(foreign) == len(steps) else None,
    )


def _join(slices: Sequence[Measurement]) -> Measurement:
    """Slices of a stream as if they had been one: each I/O counts the same."""
    return Measurement(
        duration_s=sum(measurement.duration_s for measurement in slices),
        read=reduce(add, (measurement.read for measurement in slices)),
        write=reduce(add, (measurement.write for measurement in slices)),
        host_limited=any(measurement.host_limited for measurement in slices),
        rates_known=all(measurement.rates_known for measurement in slices),
    )


def summarise(workload: Workload, rounds: Sequence[Measurement]) -> CellResult:
    """One cell from the rounds of its window."""
    whole = combine(rounds, workload)
    mixed = 0 < workload.read_percent < 100
    return CellResult(
        workload=workload,
        all=whole,
        read=combine(rounds, workload, Direction.READ)
        if mixed
        else (whole if workload.read_percent else None),
        write=combine(rounds, workload, Direction.WRITE)
        if mixed
        else (None if workload.read_percent else whole),
        rounds=len(rounds),
        host_limited=any(measurement.host_limited for measurement in rounds),
    )


def describe_stream(section: SectionResult) -> str:
    """How long a stream was: ``62 slices, 1 h 02 min, 514.8 GB written``."""
    last = section.slices[-1]
    text = f"{format_count(len(section.slices), 'slice')}, "
    text += format_duration(last.start_s + last.duration_s)
    if last.total_written_bytes is None:
        return text
    return f"{text}, {format_capacity(last.total_written_bytes)} written"


def _histogram_us(stream: Sequence[StepRecord]) -> tuple[tuple[float, float, int], ...]:
    if not stream:
        return ()
    whole = reduce(add, (step.measurement.both.histogram for step in stream))
    return tuple(
        (lower / 1000, (upper + 1) / 1000, count) for lower, upper, count in whole.buckets()
    )
