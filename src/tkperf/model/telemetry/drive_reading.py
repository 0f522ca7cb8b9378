"""One look at a drive's own log, in units that do not depend on its bus or maker; lenient reading of its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, Protocol

from tkperf.model.units import drop_controls

KELVIN_OF_0_C = 273
# NVM Express 1.4, 5.14.1.2: a data unit is a thousand units of 512 bytes.
DATA_UNIT_BYTES = 512_000
# Bit 1 of the critical warning: at or above an over temperature threshold, or below an under one.
TEMPERATURE_WARNING = 1 << 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A drive's log at one moment; None: the drive does not report the value, or it was not read.

    Counters are of the drive's life; minutes, seconds and counts of them grow and never fall.

    Attributes:
        at_s: time of the reading on the run's clock.
        drive: its node, such as ``/dev/nvme0n1``; each member of a set has its own readings.
        source: ``nvme``, ``smartctl``, ``hwmon`` (temperature alone) or ``simulated``.
        host_read_bytes, host_written_bytes: by the drive's count of the host's requests.
        nand_written_bytes: written to its flash, including its own copies.
        media_errors: data that it could not read or keep whole.
        percentage_used: of the life that its maker promises; may exceed 100.
        spare_percent: spare blocks left, of those in the new drive.
        critical_warning: bits as in NVM Express; 0: none.
        warning_minutes, critical_minutes: time above its own temperature limits.
        thermal_1_count, thermal_2_count: number of times that it slowed itself down lightly, and heavily, to
            keep to the temperatures that the host set (NVM Express: host controlled thermal management).
        thermal_1_s, thermal_2_s: duration of that.
        throttle_events: number of times that it slowed itself down for heat (OCP's log).
        throttling: it does so now.
        power_state: by its number, 0 is the fastest.
    """

    at_s: float
    drive: str
    source: str
    temperature_c: float | None = None
    host_read_bytes: int | None = None
    host_written_bytes: int | None = None
    nand_written_bytes: int | None = None
    media_errors: int | None = None
    percentage_used: int | None = None
    spare_percent: int | None = None
    unsafe_shutdowns: int | None = None
    power_on_hours: int | None = None
    critical_warning: int | None = None
    warning_minutes: int | None = None
    critical_minutes: int | None = None
    thermal_1_count: int | None = None
    thermal_2_count: int | None = None
    thermal_1_s: int | None = None
    thermal_2_s: int | None = None
    throttle_events: int | None = None
    throttling: bool | None = None
    power_state: int | None = None

    @property
    def is_full(self) -> bool:
        """Return whether it is a reading of the drive's log, not only of its temperature."""
        # This is written out because a loop over the names takes five times as long.
        return _values_of_log(self) != _NONE_OF_LOG

    @property
    def is_empty(self) -> bool:
        return all(getattr(self, name) is None for name in _VALUES)


_VALUES = tuple(attribute.name for attribute in fields(Reading) if attribute.default is None)
_OF_LOG = tuple(name for name in _VALUES if name != "temperature_c")
_values_of_log = attrgetter(*_OF_LOG)
_NONE_OF_LOG = (None,) * len(_OF_LOG)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveFacts:
    """Fixed facts about a drive's telemetry.

    Attributes:
        model, serial, firmware: from its own log.
        sources: each with its version, such as ``nvme-cli 2.3: smart-log, OCP log``.
        warning_c, critical_c: its own limits.
        host_unit_bytes, nand_unit_bytes: its counting units for host and flash writes.
        gaps: unknown values, with the reason.
        contradictions: counters of the drive that contradict each other, and which of them is used.
    """

    drive: str
    model: str | None = None
    serial: str | None = None
    firmware: str | None = None
    sources: tuple[str, ...] = ()
    warning_c: float | None = None
    critical_c: float | None = None
    host_unit_bytes: int | None = None
    nand_unit_bytes: int | None = None
    gaps: tuple[str, ...] = field(default_factory=tuple)
    contradictions: tuple[str, ...] = ()


class Telemetry(Protocol):
    """Reads drives' logs during a run and never delays it. Times are those of the run's clock."""

    def take(self) -> Sequence[Reading]:
        """Return the readings since the last call, oldest first."""
        ...

    def take_troubles(self) -> Sequence[str]:
        """Return the read failures since the last call; each is reported once."""
        ...

    def ask(self) -> None:
        """Read all logs as soon as possible, in the background."""
        ...

    def paused(self) -> AbstractContextManager[None]:
        """Pause reading during the block, such as a purge; earlier requests are read first."""
        ...

    def finish(self) -> None:
        """Read all logs once more, wait some seconds for that, then stop reading."""
        ...


LogDocument = Mapping[str, Any]
# The limit of a run file's columns; no drive counts farther.
_MOST = 2**63 - 1
# No thermometer reads beyond these: a drive that reports 0 K does not know its temperature.
LEAST_C, MOST_C = -60.0, 250.0
# The longest useful name, number or error.
_LONGEST = 200


def count(value: object) -> int | None:
    """Return a counter. Some versions write numbers of 128 bits as text, with or without separators."""
    if isinstance(value, str):
        digits = value.replace(",", "").replace(" ", "")
        value = int(digits) if digits.isdecimal() and len(digits) < 40 else None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= _MOST else None


def scaled(value: object, unit_bytes: int) -> int | None:
    """Return a counter in bytes; None if no drive could have as many."""
    number = count(value)
    return None if number is None else count(number * unit_bytes)


def read_temperature(value: object) -> float | None:
    """Return degrees Celsius; None if no drive can have them."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if LEAST_C <= value <= MOST_C else None


def table(value: object) -> LogDocument:
    """Return a JSON object; an empty one in place of anything else."""
    return value if isinstance(value, dict) else {}


def rows(value: object) -> list[LogDocument]:
    """Return the objects of a JSON list."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def read_word(value: object) -> str | None:
    """Return a text without the characters that a run file or a terminal cannot take; JSON may have them."""
    if not isinstance(value, str):
        return None
    return drop_controls(value[:_LONGEST]).replace("\n", " ").strip() or None
