"""Compute the results of a section from its steps and verdicts. The results are cells, rounds, slices, the window, and
the reason why the section ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import isclose, isfinite

from tkperf.analysis.results import END_LOST, CellResult, GridRules, RoundResult, SectionResult, SliceResult
from tkperf.analysis.timeline.timelines import SEARCHED, Recorded, Timeline, find_timelines
from tkperf.model.disturbance.io import find_codes
from tkperf.model.figures import SectionPlan
from tkperf.model.histogram import Histogram
from tkperf.model.measurement import Measurement, add_all
from tkperf.model.phases import Round, SectionOutcome
from tkperf.model.quantity import Direction, Figures, Quantity, combine
from tkperf.model.record import (
    LeftOut,
    PurgeRecord,
    RunStatus,
    StepKind,
    StepRecord,
    TestRecord,
    VerdictRecord,
    is_as_new,
    is_purged,
)
from tkperf.model.steady_state import Criteria, SteadyStateVerdict, judge
from tkperf.model.workload import Workload


def build_rounds(steps: Iterable[StepRecord], judged: set[int]) -> tuple[RoundResult, ...]:
    """Return steps in groups. Each group is a round. If the number of a round is not in ``judged``, the round is marked
    as not complete.
    """
    by_number: dict[int, list[CellResult]] = {}
    for step in steps:
        by_number.setdefault(step.number, []).extend(_build_cell([part]) for part in step.parts)
    return tuple(
        RoundResult(number=number, complete=number in judged, cells=tuple(cells)) for number, cells in by_number.items()
    )


def build_slices(steps: Sequence[StepRecord], all_steps: Sequence[StepRecord], lost: bool) -> tuple[SliceResult, ...]:
    """Return the slices of a stream in order. If steps are ``lost`` (cannot be read), the total of the written bytes is
    not known.

    The total includes the bytes that a warm-up wrote. These bytes are added at the next slice.
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
                values=_build_cell([step]),
                parts=tuple(_build_cell([part]) for part in step.parts[1:]),
            )
        )
    return tuple(slices)


def starts_of_slices(slices: Sequence[StepRecord]) -> list[float]:
    """Return the recorded start of each slice, in seconds from the start of the stream.

    An imported run contains no times, so its slices follow each other without gaps.
    """
    if not slices:
        return []
    first = slices[0]
    if len(slices) > 1 and slices[-1].started_s <= first.started_s:
        return starts_without_gaps(slices)
    # If the first slices cannot be read, their planned duration is used.
    before_s = (first.number - 1) * (first.planned_s or first.measurement.duration_s)
    return [before_s + step.started_s - first.started_s for step in slices]


def starts_without_gaps(steps: Sequence[StepRecord]) -> list[float]:
    """Return the start of each step if all steps follow each other without gaps."""
    ends_s = accumulate((step.measurement.duration_s for step in steps), initial=0.0)
    return list(ends_s)[:-1]


def build_window_cells(
    steps: Sequence[StepRecord], window: tuple[int, ...], lost: bool, *, figures: bool = True
) -> tuple[CellResult, ...]:
    """Compute the cells of a section as averages over the window. A stream without a window counts as a single
    measurement.

    If steps are ``lost`` (cannot be read), a cell that lacks a round of the window has no mean. A stream without a
    window then has no cell. Each level of an offered rate is a separate round, so a level does not depend on other
    rounds.
    """
    found = find_window_steps(steps, window)
    if is_whole_stream(steps, window):
        if lost:
            return ()
        return tuple(_build_cell(slices, as_one=True, figures=figures) for slices in found.values())
    return tuple(
        _build_cell(rounds, figures=figures)
        for workload, rounds in found.items()
        if not lost or len(rounds) == len(window) or workload.offered_iops is not None
    )


def is_whole_stream(steps: Sequence[StepRecord], window: tuple[int, ...]) -> bool:
    """Return whether a section is a stream without a window, which counts as a single measurement."""
    first = next(_measured(steps), None)
    return first is not None and first.kind is StepKind.CONTINUOUS and not window


def find_window_steps(steps: Sequence[StepRecord], window: tuple[int, ...]) -> dict[Workload, list[StepRecord]]:
    """Return the steps from which each cell is computed: the rounds in the window, or all slices of a stream without a
    window.
    """
    in_window: dict[Workload, list[StepRecord]] = {}
    numbers = None if is_whole_stream(steps, window) else set(window)
    for step in _measured(steps):
        if numbers is None or step.number in numbers:
            for part in step.parts:
                in_window.setdefault(part.key, []).append(part)
    return in_window


def _measured(steps: Sequence[StepRecord]) -> Iterator[StepRecord]:
    return (step for step in steps if step.is_in_results)


def _build_cell(steps: Sequence[StepRecord], *, as_one: bool = False, figures: bool = True) -> CellResult:
    """Return the cell of one workload, computed from its rounds, with the disturbances of the rounds. ``as_one`` means
    that the steps are slices of a single measurement.
    """
    workload, rounds = steps[0].key, [step.measurement for step in steps]
    whole, read, write = Figures(), Figures(), Figures()
    if figures:
        measured = [_join(rounds)] if as_one else rounds
        whole = read = write = combine(measured, workload)
        if workload.is_mixed:
            read, write = (combine(measured, workload, side) for side in (Direction.READ, Direction.WRITE))
    codes = find_codes(code for step in steps for code in step.disturbance_codes or ())
    watched = all(step.disturbances is not None for step in steps)
    foreign = [foreign_bytes for step in steps if (foreign_bytes := step.foreign_bytes) is not None]
    return CellResult(
        workload=workload,
        all=whole,
        read=read if workload.read_percent else None,
        write=write if workload.writes else None,
        rounds=len(rounds),
        host_limited=any(measurement.host_limited for measurement in rounds),
        disturbances=codes if codes or watched else None,
        foreign_bytes=sum(foreign) if len(foreign) == len(steps) else None,
    )


def _join(slices: Sequence[Measurement]) -> Measurement:
    """Return one measurement that combines the slices of a stream. Each I/O has the same weight."""
    return Measurement(
        duration_s=sum(measurement.duration_s for measurement in slices),
        read=add_all(measurement.read for measurement in slices),
        write=add_all(measurement.write for measurement in slices),
        trim=add_all(measurement.trim for measurement in slices),
        rates_known=all(measurement.rates_known for measurement in slices),
    )


def build_histogram_us(stream: Sequence[StepRecord]) -> tuple[tuple[float, float, int], ...]:
    """Return the latency histogram of all slices of a stream together. Each entry contains the lower edge and the upper
    edge of a bucket in µs, and the number of I/Os. Only buckets that contain I/Os are included.
    """
    if not stream:
        return ()
    whole = Histogram.sum_of(step.measurement.both.histogram for step in stream)
    return tuple((lower / 1000, (upper + 1) / 1000, count) for lower, upper, count in whole.buckets())


IN_ROUNDS = (StepKind.ROUND, StepKind.AREA)


def build_section(
    test: TestRecord,
    plan: SectionPlan,
    all_steps: Sequence[StepRecord],
    planned: Round | None,
    lost_steps: Sequence[LeftOut],
    latency_ceiling_us: float | None,
    grid_rules: GridRules | None,
    *,
    figures: bool = True,
    courses: bool = True,
) -> SectionResult:
    """Compute the results of one section of a test.

    Args:
        planned: the planned first area of a section that tests areas of a hard disk, from the profile, or None if not
            known.
        lost_steps: the rows of the steps of this test that cannot be read.
        latency_ceiling_us: highest allowed mean latency in µs, or None if the section has no such limit.
        grid_rules: rules for a grid of offered reads and writes, or None if the section has no such grid.
        figures: whether to compute figures, rounds, histograms and findings over time. The verdict does not need these
            results.
        courses: whether to search for findings over time. If ``figures`` is False, there is never a search.
    """
    name = plan.name
    # Warm-ups count towards the bytes written, but no result is computed from them.
    steps = [step for step in all_steps if step.kind is not StepKind.WARM_UP]
    given = [record for record in test.verdicts if record.section == name]
    ended = next((outcome for outcome in test.outcomes if outcome.section == name), None)
    stream = [step for step in steps if step.kind is StepKind.CONTINUOUS]
    in_areas = [step for step in steps if step.kind is StepKind.AREA]
    in_rounds = [step for step in steps if step.kind is StepKind.ROUND]
    # A round without a verdict is complete if another round followed it.
    whole = _complete_areas(in_areas, planned) or (() if given else _complete_rounds(in_rounds))
    lost = [row for row in lost_steps if row.section in (name, None)]
    # The judged slices of a stream may be far apart. These slices are therefore a window only if the stream is steady.
    verdicts = () if stream else tuple(record.verdict for record in given)
    window, because = _window(ended, verdicts, whole, test)
    in_window = frozenset(window)
    judged = {record.number for record in given} | set(whole)
    if ended is not None:  # If the section has ended, rounds without a verdict also count.
        judged |= {step.number for step in in_rounds}
    if lost:
        judged = _without_holes(steps, judged, lost)
    in_results = [step for step in steps if step.kind in IN_ROUNDS]
    rounds = build_rounds(in_results, judged) if figures else ()
    # To judge the run, it is enough to know whether a section has slices. A single slice is therefore enough if no
    # figures are computed.
    slices = build_slices(stream if figures else stream[:1], all_steps, bool(lost))
    verdict = ended.verdict if ended else (given[-1].verdict if given else None)
    purge = next((purge for purge in reversed(test.purges) if purge.section == name), None)
    fills = _last_fills(steps, purge)
    filled_bytes = sum(fill.measurement.write.bytes for fill in fills) if fills else None
    return SectionResult(
        name=name,
        plan=plan,
        steady=verdict.reached if verdict is not None and verdict.judged else None,
        window=window,
        ended_because=because,
        verdict=verdict,
        verdicts=tuple(record.verdict for record in given),
        complete=ended is not None or test.status is RunStatus.COMPLETE,
        cells=build_window_cells(steps, window, bool(lost), figures=figures),
        rounds=rounds,
        areas=((planned and planned.areas) or len(whole)) if in_areas else None,
        slices=slices,
        workload=str(stream[0].workload) if stream else None,
        purge=purge,
        filled_bytes=filled_bytes,
        filled_s=sum(fill.measurement.duration_s for fill in fills) if fills else None,
        histogram_us=build_histogram_us(stream) if figures and not lost else (),
        disturbed_in_window=_disturbed_in(
            [step for step in steps if step.kind is not StepKind.FILL and step.number in in_window]
        ),
        fill_workload=fills[-1].workload if fills else None,
        window_verdicts=_window_verdicts(ended, given),
        latency_ceiling_us=latency_ceiling_us,
        grid_rules=grid_rules,
        # Areas are not a series in time, so no timeline is built from them.
        timelines=tuple(_find_timelines(() if in_areas else rounds, slices, as_new=is_as_new(purge, filled_bytes)))
        if figures and courses
        else (),
    )


def _last_fills(steps: Sequence[StepRecord], purge: PurgeRecord | None) -> list[StepRecord]:
    """Return the fills that preconditioned the section. The result contains all fills after the purge that have the
    same workload as the last fill.

    A test that a user defined can also contain a fill before a purge, and fills with several workloads.
    """
    since_s = purge.started_s if purge is not None and is_purged(purge) else 0.0
    fills = [step for step in steps if step.kind is StepKind.FILL and step.started_s >= since_s]
    return [fill for fill in fills if fill.workload == fills[-1].workload]


def _window_verdicts(ended: SectionOutcome | None, given: Sequence[VerdictRecord]) -> tuple[SteadyStateVerdict, ...]:
    """Return the verdicts on the window. Each tracking variable has one verdict.

    If the section has no outcome, the result contains the verdicts on the last judged round. In an imported run, each
    cell is judged separately and has no window.
    """
    if ended is not None:
        return ended.verdicts or ((ended.verdict,) if ended.verdict else ())
    return tuple(record.verdict for record in given if record.number == given[-1].number)


def _find_timelines(
    rounds: Sequence[RoundResult], slices: Sequence[SliceResult], *, as_new: bool
) -> Iterator[Timeline]:
    """For each workload, yield the findings over time. tkperf derives these findings from the series of the workload's
    slices or rounds.
    """
    courses: dict[tuple[Workload, Recorded], list[tuple[float, float, Figures]]] = {}
    for one in slices:
        for cell in one.cells:
            of_slice = one.start_s, one.duration_s, cell.all
            courses.setdefault((cell.workload, Recorded.SLICES), []).append(of_slice)
    for one_round in rounds:
        for cell in one_round.cells:
            of_round = float(one_round.number), 0.0, cell.all
            courses.setdefault((cell.workload, Recorded.ROUNDS), []).append(of_round)
    for (workload, recorded), measured in courses.items():
        place, width, figures = zip(*measured, strict=True)
        values = {key: [each[key] for each in figures] for key in SEARCHED}
        yield from find_timelines(workload, recorded, place, width, values, as_new=as_new)


def _disturbed_in(steps: Sequence[StepRecord]) -> int | None:
    if any(step.disturbances is None for step in steps):
        return None
    return sum(bool(step.disturbances) for step in steps)


def _window(
    ended: SectionOutcome | None, verdicts: Sequence[SteadyStateVerdict], whole: tuple[int, ...], test: TestRecord
) -> tuple[tuple[int, ...], str]:
    """Return the rounds from which the mean results are computed, and the reason why the section ended."""
    if ended is not None:
        return ended.window, ended.ended_because + _describe_rest(test.status)
    # The section was interrupted. The last judged rounds are complete, so they provide the results so far.
    window = verdicts[-1].rounds if verdicts else whole
    if test.status is RunStatus.COMPLETE:
        return window, END_LOST
    if test.status is RunStatus.RUNNING:
        return window, "it is going on"
    return window, f"the test did not end: {test.status.value}"


def _describe_rest(status: RunStatus) -> str:
    """Return, in words, the state of an incomplete test. The text is shown with a complete section of the test. If the
    test is complete, the result is empty.
    """
    match status:
        case RunStatus.COMPLETE:
            return ""
        case RunStatus.RUNNING:
            return "; the test continues, this section is complete"
        case _:
            return f"; test {status.value}, this section is complete"


def _complete_rounds(steps: Sequence[StepRecord]) -> tuple[int, ...]:
    """Return the numbers of the rounds that are complete. A round is complete if it has as many steps as a round that
    is followed by another round.

    A single round does not count, because it may be incomplete.
    """
    ran = Counter(step.number for step in steps)
    *earlier, _ = sorted(ran) or (0,)
    most = max((ran[number] for number in earlier), default=0)
    return tuple(number for number in sorted(ran) if ran[number] == most)


def _without_holes(steps: Sequence[StepRecord], judged: set[int], lost: Sequence[LeftOut]) -> set[int]:
    """Return the judged rounds that are complete. All other rounds of the section may lack steps that could not be
    read.
    """
    ran: dict[int, set[int]] = {}
    for step in steps:
        if step.kind in IN_ROUNDS:
            ran.setdefault(step.number, set()).add(step.position)
    every = set().union(*ran.values())
    named = {row.number for row in lost}
    return {number for number in judged if ran.get(number) == every and number not in named}


def _complete_areas(steps: Sequence[StepRecord], planned: Round | None) -> tuple[int, ...]:
    """Return the numbers of the areas in which every step ran."""
    ran = Counter(step.number for step in steps)
    whole = max(ran.values(), default=0) if planned is None else len(planned.steps)
    return tuple(number for number, count in ran.items() if count == whole)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """The variation of a figure over the rounds of a steady window.

    Attributes:
        percent: range of the values, in percent of their mean. If only the slope exceeds the limit, the value is the
            change of the least-squares line instead.
        is_judged: whether the figure is a tracking variable, so that the verdict is about this figure.
        exceeds_rule: whether the range or the slope exceeds the limits of the section's rule.
    """

    percent: float
    is_judged: bool
    exceeds_rule: bool


def find_variation(section: SectionResult, cell: CellResult, quantity: Quantity) -> Variation | None:
    """Return the variation of a figure in the steady window. None means that there is no steady window, or that a round
    has no value.
    """
    verdict = section.verdict
    if not section.steady or verdict is None or not verdict.average > 0:
        return None
    measured = dict(_values(section, cell, quantity))
    values = [value for number in section.window if (value := measured.get(number)) is not None]
    if len(values) < 2 or len(values) < len(section.window):
        return None
    # The limits are those of the section's rule. The verdict contains these limits in the unit of the tracking
    # variable, so the limits are divided by the average of the tracking variable.
    criteria = Criteria(
        window_rounds=len(values),
        max_data_excursion=verdict.allowed_data_excursion / verdict.average,
        max_slope_excursion=verdict.allowed_slope_excursion / verdict.average,
    )
    own = judge(section.window, values, tracking=quantity.label, unit=quantity.unit, criteria=criteria)
    if not own.average > 0:
        return None
    is_judged = any(_is_about(each, measured) for each in (verdict, *section.window_verdicts))
    slope_alone = own.data_excursion <= own.allowed_data_excursion and not own.reached
    amount = (own.slope_excursion or 0.0) if slope_alone else own.data_excursion
    return Variation(
        percent=100 * amount / own.average, is_judged=is_judged, exceeds_rule=not is_judged and not own.reached
    )


def _values(section: SectionResult, cell: CellResult, quantity: Quantity) -> Iterator[tuple[int, float | None]]:
    """Yield the number of each round or slice of a cell, with the value of the figure in this round or slice."""
    for each, of_round in section.cells_of_rounds():
        if of_round.workload == cell.workload:
            yield each.number, of_round.value(quantity)
    for one in section.slices:
        if one.values.workload == cell.workload:
            yield one.number, one.values.value(quantity)


def _is_about(verdict: SteadyStateVerdict, measured: dict[int, float | None]) -> bool:
    """Return whether a verdict judged these values.

    The unit of the verdict, such as ms, may differ from the unit of these values.
    """
    values = [measured.get(number) for number in verdict.rounds]
    ratios = [judged / value for judged, value in zip(verdict.values, values, strict=True) if value]
    return len(ratios) == len(values) and all(
        isfinite(ratio) and isclose(ratio, ratios[0], rel_tol=1e-9) for ratio in ratios
    )
