"""The analysis of drive readings: changes between two readings, throttled times and steps, write amplification, and
warnings.

A reading of a drive's log covers about the last minute, so a reading may arrive after the step was stored. Therefore,
tkperf marks steps as throttled only when it reads a run file.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, islice, pairwise, takewhile
from operator import attrgetter
from typing import Protocol

from tkperf.model.disturbance.io import Disturbance, DisturbanceCode
from tkperf.model.record import RunRecord, StepRecord, TestRecord
from tkperf.model.telemetry.drive_reading import TEMPERATURE_WARNING, DriveFacts, Reading

# The growth of a counter may be wrong by one unit. If a counter grows by fewer units than this limit, a ratio may be
# wrong by more than 5 %.
LEAST_UNITS = 20
# The values of a reading that show throttling because of heat. The text states what an increase of the value means.
_HEAT = {
    "thermal_1_count": "it slowed down for heat, lightly",
    "thermal_2_count": "it slowed down for heat, heavily",
    "thermal_1_s": "it continued to slow down for heat, lightly",
    "thermal_2_s": "it continued to slow down for heat, heavily",
    "throttle_events": "it counted thermal throttling",
    "warning_minutes": "its time above its warning temperature grew",
    "critical_minutes": "its time above its critical temperature grew",
}
_heat_values = attrgetter(*_HEAT)


class Intervals:
    """A set of intervals that may overlap. A search is fast even with many intervals, because the time for a search
    grows with the logarithm of the number of intervals.
    """

    def __init__(self, pairs: Iterable[tuple[float, float]]) -> None:
        ordered = sorted(pairs)
        self._begins = [begin for begin, _ in ordered]
        # Each entry is the latest end among an interval and all earlier intervals.
        self._ends = list(accumulate((end for _, end in ordered), max))

    def overlap(self, begin: float, end: float) -> bool:
        """Return whether an interval overlaps the range from ``begin`` to ``end``. An interval and a range that only
        share a border do not overlap.
        """
        before = bisect_left(self._begins, end)
        return before > 0 and self._ends[before - 1] > begin

    def contain(self, value: float) -> bool:
        """Return whether a value lies within an interval, or on the border of an interval."""
        before = bisect_right(self._begins, value)
        return before > 0 and self._ends[before - 1] >= value


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttled:
    """A period between two readings in which a drive was throttled, and the evidence for the throttling."""

    drive: str
    began_s: float
    ended_s: float
    because: str


def by_drive(readings: Iterable[Reading]) -> dict[str, list[Reading]]:
    """Return the readings of each drive in the order of time, keyed by the names of the drives."""
    drives: dict[str, list[Reading]] = {}
    for reading in sorted(readings, key=lambda reading: reading.at_s):
        drives.setdefault(reading.drive, []).append(reading)
    return drives


def find_throttling(readings: Iterable[Reading], pauses: Sequence[tuple[float, float]] = ()) -> Iterator[Throttled]:
    """Yield each period between two readings in which a drive was throttled.

    Args:
        pauses: start and end of each pause of the run, in s. A reading before a pause is not compared with a reading
            after the pause.
    """
    paused = Intervals(pauses)
    for of_drive in by_drive(readings).values():
        for before, after in pairwise(reading for reading in of_drive if reading.is_full):
            if not paused.overlap(before.at_s, after.at_s) and (because := find_heat(before, after)):
                yield Throttled(drive=after.drive, began_s=before.at_s, ended_s=after.at_s, because=because)


def find_heat(before: Reading, after: Reading) -> str:
    """Return, in words, the evidence that a drive was throttled between two readings. If there is no evidence, the
    result is empty.
    """
    reasons = []
    # this cheap comparison is made first, because a day has many readings
    if _heat_values(before) != _heat_values(after):
        reasons = [words for name, words in _HEAT.items() if (counter_delta(before, after, name) or 0) > 0]
    warned = (before.critical_warning or 0) | (after.critical_warning or 0)
    if warned & TEMPERATURE_WARNING:
        reasons.append("its critical warning says that its temperature is beyond a limit")
    if before.throttling or after.throttling:
        reasons.append("it says that it is throttled")
    return ", ".join(reasons)


def counter_delta(before: Reading, after: Reading, name: str) -> int | None:
    """Return the increase of a counter. None means that the value is not known, or that the counter decreased, for
    example after a reset.
    """
    first, last = getattr(before, name), getattr(after, name)
    return None if first is None or last is None or last < first else int(last - first)


def find_amplification(before: Reading, after: Reading, facts: DriveFacts | None = None) -> float | None:
    """Return the write amplification between two readings: the bytes written to the flash for each byte from
    the host.

    None means that the drive does not count both values, or wrote too few counting units for a reliable ratio.
    """
    host, nand = (counter_delta(before, after, name) for name in ("host_written_bytes", "nand_written_bytes"))
    if not host or nand is None:
        return None
    units = (1, 1) if facts is None else (facts.host_unit_bytes or 1, facts.nand_unit_bytes or 1)
    if host < LEAST_UNITS * units[0] or nand < LEAST_UNITS * units[1]:
        return None
    return nand / host


# A reading that was made within this time, in s, still counts as the reading at the beginning or end of a test.
EDGE_S = 30.0


def find_edges(readings: Sequence[Reading], began_s: float, ended_s: float) -> tuple[Reading, Reading] | None:
    """Return the two full readings of a drive that are nearest to the beginning and the end of a period, such as a
    test.

    If no reading was made near the beginning or the end, the first or last full reading within the period is used
    instead. None means that the period does not have two such readings.
    """
    beyond_s = EDGE_S + 1.0
    full = [
        reading for reading in readings if began_s - beyond_s <= reading.at_s <= ended_s + beyond_s and reading.is_full
    ]
    first, last = _nearest(full, began_s), _nearest(full, ended_s)
    inside = [reading for reading in full if began_s <= reading.at_s <= ended_s]
    if inside:
        first, last = first or inside[0], last or inside[-1]
    if first is None or last is None or first.at_s >= last.at_s:
        return None
    return first, last


def _nearest(readings: Sequence[Reading], at_s: float) -> Reading | None:
    """Return the reading that is nearest to a moment. None means that no reading was made within ``EDGE_S`` of this
    moment.
    """
    near = [reading for reading in readings if abs(reading.at_s - at_s) <= EDGE_S]
    return min(near, key=lambda reading: abs(reading.at_s - at_s), default=None)


def with_throttled_steps(record: RunRecord) -> RunRecord:
    """Return the run with a mark on each step in which a drive was throttled or may have been throttled."""
    stretches = find_stretches(record)
    if not stretches:
        return record
    tests = tuple(_test(test, stretches) for test in record.tests)
    return replace(record, tests=tests)


def count_throttled_steps(record: RunRecord, *, most: int) -> int:
    """Return the number of marks that ``with_throttled_steps`` would set. Counting stops as soon as the number exceeds
    ``most``.
    """
    stretches, count = find_stretches(record), 0
    for test in record.tests if stretches else ():
        for step in test.steps:
            ended_s = step.started_s + step.measurement.duration_s
            for of_drive in stretches:
                first = bisect_right(of_drive, step.started_s, key=lambda one: one.ended_s)
                last = bisect_left(of_drive, ended_s, key=lambda one: one.began_s)
                count += max(0, last - first)
            if count > most:
                return count
    return count


def find_stretches(record: RunRecord) -> list[list[Throttled]]:
    """Return the periods in which drives were throttled, as one list for each throttled drive."""
    stretches: dict[str, list[Throttled]] = {}
    for stretch in find_throttling(record.telemetry, find_pauses(record.resumptions)):
        stretches.setdefault(stretch.drive, []).append(stretch)
    return list(stretches.values())


def is_throttled(stretches: Sequence[Sequence[Throttled]], began_s: float, ended_s: float) -> bool:
    """Return whether a drive was throttled, or may have been throttled, between ``began_s`` and ``ended_s``."""
    return any(any(_overlapping(of_drive, began_s, ended_s)) for of_drive in stretches)


class Pause(Protocol):
    """A resumption of a run, in the form of a record or of a result."""

    @property
    def stopped_s(self) -> float: ...

    @property
    def resumed_s(self) -> float: ...


def find_pauses(resumptions: Iterable[Pause]) -> tuple[tuple[float, float], ...]:
    """Return the start and the end of each pause of the run, in s."""
    return tuple((resumption.stopped_s, resumption.resumed_s) for resumption in resumptions)


def _test(test: TestRecord, stretches: Sequence[Sequence[Throttled]]) -> TestRecord:
    return replace(test, steps=tuple(_step(step, stretches) for step in test.steps))


def _overlapping(stretches: Sequence[Throttled], began_s: float, ended_s: float) -> Iterator[Throttled]:
    """Yield the throttled periods of one drive that overlap the time from ``began_s`` to ``ended_s``. ``stretches``
    must be in the order of time. A binary search finds the first period, because a day may have one period for each
    minute.
    """
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


# A constant temperature is stored once every ``STILL_S`` seconds. A change of at least ``LEAST_CHANGE_C`` degrees is
# stored immediately.
STILL_S = 60.0
LEAST_CHANGE_C = 1.0

THROTTLED = "throttled"
MEDIA_ERRORS = "media-errors"


@dataclass(slots=True)
class TelemetryLog:
    """The state that decides which readings are stored and which warnings are new. The caller must give all readings in
    the order of time.
    """

    _kept: dict[str, Reading] = field(default_factory=dict)
    _full: dict[str, Reading] = field(default_factory=dict)
    _warned: set[tuple[str, str]] = field(default_factory=set)

    def test_begins(self) -> None:
        """Begin a test. In each test, a drive causes each kind of warning only once."""
        self._warned = set()

    def is_news(self, reading: Reading) -> bool:
        """Return whether a reading must be stored. If the result is true, later calls treat the reading as stored."""
        kept = self._kept.get(reading.drive)
        temperature_c = reading.temperature_c
        if kept is not None and reading.is_full and kept.is_full and reading.at_s <= kept.at_s:
            return False
        still = (
            not reading.is_full
            and kept is not None
            and kept.temperature_c is not None
            and temperature_c is not None
            and abs(temperature_c - kept.temperature_c) < LEAST_CHANGE_C
            and reading.at_s - kept.at_s < STILL_S
        )
        if not still:
            self._kept[reading.drive] = reading
        return not still

    def find_warnings(self, reading: Reading) -> Iterator[tuple[str, str]]:
        """Yield the code and the text of each new warning. A warning results from a comparison of a full reading with
        the previous full reading of the drive, and is yielded once in each test.
        """
        if not reading.is_full:
            return
        before = self._full.get(reading.drive)
        self._full[reading.drive] = reading
        if before is None:
            return
        for code, text in _find_news(before, reading):
            if (reading.drive, code) not in self._warned:
                self._warned.add((reading.drive, code))
                yield code, f"{reading.drive} {text}"


def _find_news(before: Reading, after: Reading) -> Iterable[tuple[str, str]]:
    if because := find_heat(before, after):
        yield (
            THROTTLED,
            f"was throttled between {before.at_s:.0f} s and {after.at_s:.0f} s after the run's start: "
            f"{because}; steps of that time are marked",
        )
    if errors := counter_delta(before, after, "media_errors"):
        yield (
            MEDIA_ERRORS,
            f"counted {errors:,} more media error{'s' * (errors != 1)} between {before.at_s:.0f} s and "
            f"{after.at_s:.0f} s after the run's start: data that it could not read or keep whole",
        )
