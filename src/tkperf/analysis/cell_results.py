"""Build cells, rounds and slices from the measured steps: pure arithmetic on the records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from tkperf.analysis.results import CellResult, RoundResult, SliceResult
from tkperf.model.disturbance.codes import find_codes
from tkperf.model.histogram import Histogram
from tkperf.model.measurement import Measurement, add_all
from tkperf.model.quantity import Direction, combine
from tkperf.model.record import StepKind, StepRecord, key_of
from tkperf.model.workload import Workload


def build_rounds(steps: Iterable[StepRecord], judged: set[int]) -> tuple[RoundResult, ...]:
    """Group steps by round; a round whose number is not in ``judged`` is not complete."""
    by_number: dict[int, list[CellResult]] = {}
    for step in steps:
        by_number.setdefault(step.number, []).append(_of_steps(_key(step), [step]))
    return tuple(
        RoundResult(number=number, complete=number in judged, cells=tuple(cells))
        for number, cells in by_number.items()
    )


def build_slices(
    steps: Sequence[StepRecord], all_steps: Sequence[StepRecord], lost: bool
) -> tuple[SliceResult, ...]:
    """Build the slices in order; if steps are ``lost``, the written bytes have no total.

    Bytes that a warm-up wrote count from the next slice on.
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
    """Return the recorded start of each slice, in seconds from the start of the stream.

    An imported run has no times: its slices follow each other without gaps.
    """
    if not slices:
        return []
    first = slices[0]
    if len(slices) > 1 and slices[-1].started_s <= first.started_s:
        ends_s = accumulate((step.measurement.duration_s for step in slices), initial=0.0)
        return list(ends_s)[:-1]
    # The first slices may be lost: the planned duration gives their time.
    before_s = (first.number - 1) * (first.planned_s or first.measurement.duration_s)
    return [before_s + step.started_s - first.started_s for step in slices]


def build_window_cells(
    steps: Sequence[StepRecord], window: tuple[int, ...], lost: bool
) -> tuple[CellResult, ...]:
    """Average each cell over the window; treat a stream without a window as a single measurement.

    If steps are ``lost``, a cell that lacks a round in the window has no mean, and a stream without a
    window has no cell. Each level of an offered rate is a round of its own and needs no other.
    """
    found = find_window_steps(steps, window)
    if is_whole_stream(steps, window):
        if lost:
            return ()
        ((workload, measured),) = found.items()
        whole = _join([step.measurement for step in measured])
        result = _of_steps(workload, measured, as_one=whole)
        return (replace(result, rounds=len(measured)),)
    return tuple(
        _of_steps(workload, rounds)
        for workload, rounds in found.items()
        if not lost or len(rounds) == len(window) or workload.offered_iops is not None
    )


def is_whole_stream(steps: Sequence[StepRecord], window: tuple[int, ...]) -> bool:
    """Return whether a section is a stream without a window, which counts as a single measurement."""
    first = next(_measured(steps), None)
    return first is not None and first.kind is StepKind.CONTINUOUS and not window


def find_window_steps(
    steps: Sequence[StepRecord], window: tuple[int, ...]
) -> dict[Workload, list[StepRecord]]:
    """Return the steps behind each cell: its rounds in the window, or all slices of a stream without one."""
    measured = list(_measured(steps))
    if is_whole_stream(steps, window):
        return {_key(measured[0]): measured}
    in_window: dict[Workload, list[StepRecord]] = {}
    numbers = set(window)
    for step in measured:
        if step.number in numbers:
            in_window.setdefault(_key(step), []).append(step)
    return in_window


def _measured(steps: Sequence[StepRecord]) -> Iterator[StepRecord]:
    return (step for step in steps if step.kind not in (StepKind.FILL, StepKind.WARM_UP))


def _key(step: StepRecord) -> Workload:
    """Return the workload that identifies a step's result: the same in all areas of a disk."""
    return key_of(step.kind, step.workload)


def _of_steps(
    workload: Workload, steps: Sequence[StepRecord], *, as_one: Measurement | None = None
) -> CellResult:
    """Build the cell of these steps, with their disturbances."""
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
        _summarise(workload, measurements),
        disturbances=codes if codes or watched else None,
        foreign_bytes=sum(foreign) if len(foreign) == len(steps) else None,
    )


def _join(slices: Sequence[Measurement]) -> Measurement:
    """Join slices of a stream into one measurement: each I/O counts the same."""
    return Measurement(
        duration_s=sum(measurement.duration_s for measurement in slices),
        read=add_all(measurement.read for measurement in slices),
        write=add_all(measurement.write for measurement in slices),
        host_limited=any(measurement.host_limited for measurement in slices),
        rates_known=all(measurement.rates_known for measurement in slices),
    )


def _summarise(workload: Workload, rounds: Sequence[Measurement]) -> CellResult:
    """Build one cell from the rounds of its window."""
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


def build_histogram_us(stream: Sequence[StepRecord]) -> tuple[tuple[float, float, int], ...]:
    """Return (lower edge, upper edge, I/Os) of each bucket with I/Os, in us, over all slices together."""
    if not stream:
        return ()
    whole = Histogram.sum_of(step.measurement.both.histogram for step in stream)
    return tuple(
        (lower / 1000, (upper + 1) / 1000, count) for lower, upper, count in whole.buckets()
    )
