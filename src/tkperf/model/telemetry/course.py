"""Readings of drives over a stretch of time, for drawing: times count from its beginning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tkperf.model.telemetry.judge import by_drive, find_amplification, find_throttling, growth
from tkperf.model.telemetry.reading import (
    DriveFacts,
    Reading,
    count,
    read_temperature,
    read_word,
    rows,
)

# A reading a little outside the stretch is still valid at its ends.
_BEYOND_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Bytes written between two readings; None: not known."""

    began_s: float
    ended_s: float
    host_bytes: int
    nand_bytes: int | None
    amplification: float | None

    def megabytes_per_s(self, amount_bytes: int) -> float:
        return amount_bytes / (self.ended_s - self.began_s) / 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveCourse:
    """One drive; ``temperatures`` are (time in s, degrees Celsius)."""

    facts: DriveFacts
    temperatures: tuple[tuple[float, float], ...]
    written: tuple[Written, ...]
    throttled: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetryCourse:
    """All drives over ``length_s``."""

    drives: tuple[DriveCourse, ...]
    length_s: float


def find_telemetry_course(
    readings: Iterable[Reading],
    facts: Mapping[str, DriveFacts],
    began_s: float,
    ended_s: float,
    pauses: Sequence[tuple[float, float]] = (),
) -> TelemetryCourse | None:
    """Return the course between two times; None if there is nothing to draw.

    Args:
        pauses: (begin, end) of each pause of the run.
    """
    near = [
        reading
        for reading in readings
        if began_s - _BEYOND_S <= reading.at_s <= ended_s + _BEYOND_S
    ]
    drives = tuple(
        _drive(of_drive, facts.get(drive, DriveFacts(drive=drive)), began_s, ended_s, pauses)
        for drive, of_drive in by_drive(near).items()
    )
    drawn = tuple(drive for drive in drives if len(drive.temperatures) > 1 or drive.written)
    return TelemetryCourse(drives=drawn, length_s=ended_s - began_s) if drawn else None


def _drive(
    readings: list[Reading],
    facts: DriveFacts,
    began_s: float,
    ended_s: float,
    pauses: Sequence[tuple[float, float]],
) -> DriveCourse:
    full = [reading for reading in readings if reading.is_full]
    return DriveCourse(
        facts=facts,
        temperatures=tuple(
            (reading.at_s - began_s, reading.temperature_c)
            for reading in readings
            if reading.temperature_c is not None
        ),
        written=tuple(
            Written(
                began_s=before.at_s - began_s,
                ended_s=after.at_s - began_s,
                host_bytes=host_bytes,
                nand_bytes=growth(before, after, "nand_written_bytes"),
                amplification=find_amplification(before, after, facts),
            )
            for before, after in pairwise(full)
            if (host_bytes := growth(before, after, "host_written_bytes")) is not None
            and after.at_s - before.at_s >= 1.0
            and before.at_s < ended_s
            and after.at_s > began_s
        ),
        throttled=tuple(
            (stretch.began_s - began_s, stretch.ended_s - began_s)
            for stretch in find_throttling(readings, pauses)
        ),
    )


def parse_drives(device: Mapping[str, object]) -> dict[str, DriveFacts]:
    """Return the drives of a run by their names, from the device facts in its file."""
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
        )
        for row in rows(device.get("telemetry"))
        if (drive := read_word(row.get("drive"))) is not None
    }


def _texts(value: object) -> tuple[str, ...]:
    return (
        tuple(entry for entry in value if isinstance(entry, str))
        if isinstance(value, list | tuple)
        else ()
    )
