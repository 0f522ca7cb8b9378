"""One look at a drive's own log, in units that do not depend on its bus or maker."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields
from typing import Protocol

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
        return any(getattr(self, name) is not None for name in _VALUES if name != "temperature_c")

    @property
    def is_empty(self) -> bool:
        return all(getattr(self, name) is None for name in _VALUES)


_VALUES = tuple(attribute.name for attribute in fields(Reading) if attribute.default is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveFacts:
    """Fixed facts about a drive's telemetry.

    Attributes:
        model, serial, firmware: from its own log.
        sources: each with its version, such as ``nvme-cli 2.3: smart-log, OCP log``.
        warning_c, critical_c: its own limits.
        host_unit_bytes, nand_unit_bytes: its counting units for host and flash writes.
        gaps: unknown values, with the reason.
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
