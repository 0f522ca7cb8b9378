"""Mark steps during which a drive was throttled, when the run is read, from the data in its file.

A drive's log covers a minute, so its data may arrive only after a step was kept.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, takewhile
from typing import Protocol

from tkperf.model.disturbance.codes import Disturbance, DisturbanceCode
from tkperf.model.record import RunRecord, StepRecord, TestRecord
from tkperf.model.telemetry.judge import Throttled, find_throttling


def with_throttled_steps(record: RunRecord) -> RunRecord:
    """Return the run with a mark on each step in which a drive was throttled, or may have been."""
    stretches = find_stretches(record)
    if not stretches:
        return record
    tests = tuple(_test(test, stretches) for test in record.tests)
    return replace(record, tests=tests)


def find_stretches(record: RunRecord) -> list[list[Throttled]]:
    """Return the stretches in which each drive was throttled."""
    stretches: dict[str, list[Throttled]] = {}
    for stretch in find_throttling(record.telemetry, find_pauses(record.resumptions)):
        stretches.setdefault(stretch.drive, []).append(stretch)
    return list(stretches.values())


def is_throttled(stretches: Sequence[Sequence[Throttled]], began_s: float, ended_s: float) -> bool:
    """Return whether any drive was throttled in this time, or may have been."""
    return any(any(_overlapping(of_drive, began_s, ended_s)) for of_drive in stretches)


class Pause(Protocol):
    """A resumption, as a record or a result has it."""

    @property
    def stopped_s(self) -> float: ...

    @property
    def resumed_s(self) -> float: ...


def find_pauses(resumptions: Iterable[Pause]) -> tuple[tuple[float, float], ...]:
    """Return (begin, end) of each pause of the run."""
    return tuple((resumption.stopped_s, resumption.resumed_s) for resumption in resumptions)


def _test(test: TestRecord, stretches: Sequence[Sequence[Throttled]]) -> TestRecord:
    return replace(test, steps=tuple(_step(step, stretches) for step in test.steps))


def _overlapping(
    stretches: Sequence[Throttled], began_s: float, ended_s: float
) -> Iterator[Throttled]:
    """Yield the overlapping stretches of one drive, which are in order: a day may have one for each minute."""
    first = bisect_right(stretches, began_s, key=lambda stretch: stretch.ended_s)
    yield from takewhile(lambda stretch: stretch.began_s < ended_s, islice(stretches, first, None))


def _step(step: StepRecord, stretches: Sequence[Sequence[Throttled]]) -> StepRecord:
    began_s, duration_s = step.started_s, step.measurement.duration_s
    ended_s = began_s + duration_s
    found = [
        Disturbance(
            code=DisturbanceCode.THROTTLED,
            text=f"{stretch.drive} was throttled between two readings of its log: {stretch.because}",
            started_s=max(began_s, stretch.began_s),
            duration_s=min(ended_s, stretch.ended_s) - max(began_s, stretch.began_s),
            share=(min(ended_s, stretch.ended_s) - max(began_s, stretch.began_s)) / duration_s,
        )
        for of_drive in stretches
        for stretch in _overlapping(of_drive, began_s, ended_s)
    ]
    return replace(step, disturbances=(*(step.disturbances or ()), *found)) if found else step
