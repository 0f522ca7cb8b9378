"""A run's readings as they arrive: decides which are kept, and which need a warning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tkperf.model.telemetry.judge import find_heat, growth
from tkperf.model.telemetry.reading import Reading

# A constant temperature is kept this often; a change by a degree is kept at once.
STILL_S = 60.0
LEAST_CHANGE_C = 1.0

THROTTLED = "throttled"
MEDIA_ERRORS = "media-errors"


@dataclass(slots=True)
class TelemetryLog:
    """Receives each reading in the order of its time."""

    _kept: dict[str, Reading] = field(default_factory=dict)
    _full: dict[str, Reading] = field(default_factory=dict)
    _warned: set[tuple[str, str]] = field(default_factory=set)

    def test_begins(self) -> None:
        """Begin a test: each drive and kind gives one warning in a test."""
        self._warned = set()

    def is_news(self, reading: Reading) -> bool:
        """Return whether a reading is worth keeping; if so, it counts as kept."""
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
        """Yield code and text of the news in a full reading since the full one before, once a test."""
        if not reading.is_full:
            return
        before = self._full.get(reading.drive)
        self._full[reading.drive] = reading
        if before is None:
            return
        for code, text in _find(before, reading):
            if (reading.drive, code) not in self._warned:
                self._warned.add((reading.drive, code))
                yield code, f"{reading.drive} {text}"


def _find(before: Reading, after: Reading) -> Iterable[tuple[str, str]]:
    if because := find_heat(before, after):
        yield (
            THROTTLED,
            f"was throttled between {before.at_s:.0f} s and {after.at_s:.0f} s after the run's start: "
            f"{because}; steps of that time are marked",
        )
    if errors := growth(before, after, "media_errors"):
        yield (
            MEDIA_ERRORS,
            f"counted {errors:,} more media error{'s' * (errors != 1)} between {before.at_s:.0f} s and "
            f"{after.at_s:.0f} s after the run's start: data that it could not read or keep whole",
        )
