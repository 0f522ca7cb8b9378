"""Telemetry of drives. The results are numbers for each test, and series over a period for charts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from tkperf.model.record import RunNote, RunRecord, TestRecord
from tkperf.model.telemetry.drive_reading import DriveFacts, Reading, count, read_temperature, read_word, rows
from tkperf.model.throttling import (
    EDGE_S,
    LEAST_UNITS,
    Throttled,
    by_drive,
    counter_delta,
    find_amplification,
    find_edges,
    find_pauses,
    find_throttling,
)

# Limits for a ratio: the bytes written according to the drive's counter, divided by the bytes written according to fio.
# If the ratio is outside these limits, the counter or its unit is wrong.
_LEAST_RATIO, _MOST_RATIO = 0.5, 2.0
# Smaller amounts are not compared, because the counter of a drive may use a large unit.
_LEAST_WRITTEN_BYTES = 100_000_000
# A reading that is at most this time, in s, before or after a period is still used for the start or the end of the
# period.
_BEYOND_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Bytes written between two readings, or None if not known."""

    began_s: float
    ended_s: float
    host_bytes: int
    nand_bytes: int | None
    amplification: float | None

    def megabytes_per_s(self, amount_bytes: int) -> float:
        return amount_bytes / (self.ended_s - self.began_s) / 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveSeries:
    """The series of one drive. ``temperatures`` contains pairs of time in s and degrees Celsius."""

    facts: DriveFacts
    temperatures: tuple[tuple[float, float], ...]
    written: tuple[Written, ...]
    throttled: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySeries:
    """The series of all drives over a period with the length ``length_s``."""

    drives: tuple[DriveSeries, ...]
    length_s: float


def find_telemetry_series(
    readings: Iterable[Reading],
    facts: Mapping[str, DriveFacts],
    began_s: float,
    ended_s: float,
    pauses: Sequence[tuple[float, float]] = (),
) -> TelemetrySeries | None:
    """Return the series of all drives between two times of the run, or None if there is nothing to draw.

    Args:
        pauses: start and end of each pause of the run, in s.
    """
    near = [reading for reading in readings if began_s - _BEYOND_S <= reading.at_s <= ended_s + _BEYOND_S]
    drives = tuple(
        _course_of(of_drive, facts.get(drive, DriveFacts(drive=drive)), began_s, ended_s, pauses)
        for drive, of_drive in by_drive(near).items()
    )
    drawn = tuple(drive for drive in drives if len(drive.temperatures) > 1 or drive.written)
    return TelemetrySeries(drives=drawn, length_s=ended_s - began_s) if drawn else None


def _course_of(
    readings: list[Reading], facts: DriveFacts, began_s: float, ended_s: float, pauses: Sequence[tuple[float, float]]
) -> DriveSeries:
    full = [reading for reading in readings if reading.is_full]
    return DriveSeries(
        facts=facts,
        temperatures=tuple(
            (reading.at_s - began_s, reading.temperature_c) for reading in readings if reading.temperature_c is not None
        ),
        written=tuple(
            Written(
                began_s=before.at_s - began_s,
                ended_s=after.at_s - began_s,
                host_bytes=host_bytes,
                nand_bytes=counter_delta(before, after, "nand_written_bytes"),
                amplification=find_amplification(before, after, facts),
            )
            for before, after in pairwise(full)
            if (host_bytes := counter_delta(before, after, "host_written_bytes")) is not None
            and after.at_s - before.at_s >= 1.0
            and before.at_s < ended_s
            and after.at_s > began_s
        ),
        throttled=tuple(
            (stretch.began_s - began_s, stretch.ended_s - began_s) for stretch in find_throttling(readings, pauses)
        ),
    )


def parse_drives(device: Mapping[str, object]) -> dict[str, DriveFacts]:
    """Return the telemetry facts of the drives. The keys are the names of the drives. ``device`` contains the facts
    about the device in the run file.
    """
    return {
        drive: DriveFacts(
            drive=drive,
            model=read_word(row.get("model")),
            serial=read_word(row.get("serial")),
            firmware=read_word(row.get("firmware")),
            sources=_texts(row.get("sources")),
            warning_c=read_temperature(row.get("warning_c")),
            critical_c=read_temperature(row.get("critical_c")),
            host_unit_bytes=count(row.get("host_unit_bytes")),
            nand_unit_bytes=count(row.get("nand_unit_bytes")),
            gaps=_texts(row.get("gaps")),
            contradictions=_texts(row.get("contradictions")),
        )
        for row in rows(device.get("telemetry"))
        if (drive := read_word(row.get("drive"))) is not None
    }


def _texts(value: object) -> tuple[str, ...]:
    return tuple(entry for entry in value if isinstance(entry, str)) if isinstance(value, list | tuple) else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveTelemetry:
    """Telemetry of one drive during a test. A value of None means that the drive does not report the value, or that the
    value was not read.

    Attributes:
        temperature_least_c, temperature_mean_c, temperature_most_c: temperatures in the test. The mean is weighted by
            time.
        load_written_bytes: bytes that the steps of the test wrote, according to fio, or None if not known, as for
            members of a RAID set.
        host_written_bytes, nand_written_bytes: amounts according to the counters of the drive.
        write_amplification: the ratio of these two amounts.
        throttled_s: total time, within the test, of the periods between two readings in which the drive was throttled.
        media_errors, unsafe_shutdowns, warning_minutes, critical_minutes, thermal_1_count, thermal_2_count,
            thermal_1_s, thermal_2_s, throttle_events: increase of these counters during the test.
        percentage_used_growth: increase of ``percentage_used`` during the test, in percentage points.
        percentage_used, spare_percent, power_on_hours, power_state: values at the end of the test.
    """

    drive: str
    temperature_least_c: float | None = None
    temperature_mean_c: float | None = None
    temperature_most_c: float | None = None
    load_written_bytes: int | None = None
    host_written_bytes: int | None = None
    nand_written_bytes: int | None = None
    write_amplification: float | None = None
    throttled_s: float | None = None
    media_errors: int | None = None
    unsafe_shutdowns: int | None = None
    warning_minutes: int | None = None
    critical_minutes: int | None = None
    thermal_1_count: int | None = None
    thermal_2_count: int | None = None
    thermal_1_s: int | None = None
    thermal_2_s: int | None = None
    throttle_events: int | None = None
    percentage_used_growth: int | None = None
    percentage_used: int | None = None
    spare_percent: int | None = None
    power_on_hours: int | None = None
    power_state: int | None = None


_GROWN = (
    "host_written_bytes",
    "nand_written_bytes",
    "media_errors",
    "unsafe_shutdowns",
    "warning_minutes",
    "critical_minutes",
    "thermal_1_count",
    "thermal_2_count",
    "thermal_1_s",
    "thermal_2_s",
    "throttle_events",
)
_AT_THE_END = ("percentage_used", "spare_percent", "power_on_hours", "power_state")


def find_telemetry(record: RunRecord) -> Iterator[tuple[DriveTelemetry, ...]]:
    """Yield the telemetry of all drives for each test, in the order of the tests. The tuple of a test is empty if the
    test has no telemetry.
    """
    drives, facts = by_drive(record.telemetry), parse_drives(record.info.device)
    pauses = find_pauses(record.resumptions)
    throttling = {drive: tuple(find_throttling(readings, pauses)) for drive, readings in drives.items()}
    for test in record.tests:
        found = (
            _of_drive(drive, readings, facts.get(drive), test, throttling[drive], alone=len(drives) == 1)
            for drive, readings in drives.items()
        )
        yield tuple(telemetry for telemetry in found if telemetry is not None)


def place_readings(record: RunRecord) -> Iterator[tuple[str | None, Reading]]:
    """Yield each reading together with the name of the test that was running at that time, or with None if no test was
    running.
    """
    for reading in record.telemetry:
        names = (
            test.name
            for test in record.tests
            if test.started_s <= reading.at_s and (test.ended_s is None or reading.at_s <= test.ended_s)
        )
        yield next(names, None), reading


def _last_moment(test: TestRecord) -> float:
    ends_s = [step.started_s + step.measurement.duration_s for step in test.steps]
    return max(ends_s, default=test.started_s)


def _of_drive(
    drive: str,
    readings: Sequence[Reading],
    facts: DriveFacts | None,
    test: TestRecord,
    throttling: Sequence[Throttled],
    *,
    alone: bool,
) -> DriveTelemetry | None:
    ended_s = test.ended_s if test.ended_s is not None else _last_moment(test)
    temperatures = [
        (reading.at_s, reading.temperature_c)
        for reading in readings
        if test.started_s <= reading.at_s <= ended_s and reading.temperature_c is not None
    ]
    celsius = [value for _, value in temperatures]
    warmth = DriveTelemetry(
        drive=drive,
        temperature_least_c=min(celsius, default=None),
        temperature_mean_c=_mean(temperatures),
        temperature_most_c=max(celsius, default=None),
    )
    edges = find_edges(readings, test.started_s, ended_s)
    if edges is None:
        return warmth if celsius else None
    first, last = edges
    throttled_s = sum(
        (
            min(stretch.ended_s, ended_s) - max(stretch.began_s, test.started_s)
            for stretch in throttling
            if stretch.began_s < ended_s and test.started_s < stretch.ended_s
        ),
        0.0,
    )
    reports_heat = any(
        getattr(last, name) is not None
        for name in ("critical_warning", "thermal_1_count", "throttle_events", "throttling")
    )
    deltas: dict[str, Any] = {name: counter_delta(first, last, name) for name in _GROWN}
    return replace(
        warmth,
        load_written_bytes=_written_by_load(test, first, last) if alone else None,
        write_amplification=find_amplification(first, last, facts),
        throttled_s=throttled_s if reports_heat else None,
        percentage_used_growth=counter_delta(first, last, "percentage_used"),
        **deltas,
        **{name: getattr(last, name) for name in _AT_THE_END},
    )


def _mean(temperatures: Sequence[tuple[float, float]]) -> float | None:
    """Return the mean temperature, weighted by time. An unweighted mean would be wrong, because a reading is stored
    only if the temperature changed.
    """
    if not temperatures:
        return None
    lasted_s = temperatures[-1][0] - temperatures[0][0]
    if lasted_s <= 0:
        return temperatures[-1][1]
    area = sum(
        (after_s - before_s) * (before + after) / 2 for (before_s, before), (after_s, after) in pairwise(temperatures)
    )
    return area / lasted_s


def _written_by_load(test: TestRecord, first: Reading, last: Reading) -> int:
    """Return the bytes that the steps of a test wrote between two readings. Steps that were replaced by a later
    measurement also count.
    """
    steps = (*test.steps, *(step for _, step in test.set_aside))
    return sum(
        step.measurement.write.bytes
        for step in steps
        if first.at_s - EDGE_S <= step.started_s and step.started_s + step.measurement.duration_s <= last.at_s + EDGE_S
    )


def warn_of_counters(record: RunRecord) -> Iterator[RunNote]:
    """Yield a warning for each test in which a counter of a drive differs greatly from the amount that fio wrote.

    There is no warning for the members of a RAID set, because fio does not count the writes of each member.
    """
    drives, facts = by_drive(record.telemetry), parse_drives(record.info.device)
    if len(drives) != 1:
        return
    ((drive, readings),) = drives.items()
    unit_bytes = (facts[drive].host_unit_bytes if drive in facts else None) or 1
    for test in record.tests:
        ended_s = test.ended_s if test.ended_s is not None else _last_moment(test)
        edges = find_edges(readings, test.started_s, ended_s)
        if edges is None:
            continue
        counted = counter_delta(*edges, "host_written_bytes")
        written = _written_by_load(test, *edges)
        if counted is None or written < max(_LEAST_WRITTEN_BYTES, LEAST_UNITS * unit_bytes):
            continue
        ratio = counted / written
        if ratio < _LEAST_RATIO:
            why = "the unit of the counter may be wrong, or the drive may update it rarely"
        elif ratio > _MOST_RATIO and _covers(test, edges, record):
            why = "the unit of the counter may be wrong, or another program wrote to the drive"
        else:
            continue
        yield RunNote(
            code="telemetry",
            text=f"{drive} counted {counted:,} bytes from the host while fio wrote {written:,} bytes "
            f"(ratio {ratio:.2g}): {why}. The amounts from the log of the drive and the write "
            "amplification are therefore doubtful",
            test=test.name,
        )


def _covers(test: TestRecord, edges: tuple[Reading, Reading], record: RunRecord) -> bool:
    """Return whether the recorded steps contain all bytes that fio wrote between two readings.

    The recorded steps are incomplete if a step was interrupted, is still running, or began before the first reading.
    """
    first, last = edges
    return (
        test.ended_s is not None
        and not record.resumptions
        and first.at_s <= test.started_s + EDGE_S
        and last.at_s >= test.ended_s - EDGE_S
    )


def count_media_errors(record: RunRecord) -> int:
    """Return how often the drives failed to read or keep data during the run, according to the logs of the drives."""
    errors = 0
    for readings in by_drive(record.telemetry).values():
        full = [reading for reading in readings if reading.media_errors is not None]
        errors += sum(counter_delta(before, after, "media_errors") or 0 for before, after in pairwise(full))
    return errors
