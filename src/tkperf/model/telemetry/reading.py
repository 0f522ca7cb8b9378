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
    """What a drive told at one moment; None: it does not tell, or nobody asked.

    Counters are of the drive's life; minutes, seconds and counts of them grow and never fall.

    Attributes:
        at_s: when it was read, on the run's clock.
        drive: its node, such as ``/dev/nvme0n1``; of a set each member has its own readings.
        source: ``nvme``, ``smartctl``, ``hwmon`` (temperature alone) or ``simulated``.
        host_read_bytes, host_written_bytes: by the drive's count of what the host asked for.
        nand_written_bytes: what it wrote to its flash, its own copies included.
        media_errors: data that it could not read or keep whole.
        percentage_used: of the life that its maker promises; may exceed 100.
        spare_percent: spare blocks that are left, of those it had as new.
        critical_warning: bits as NVM Express has them; 0: none.
        warning_minutes, critical_minutes: time above its own temperature limits.
        thermal_1_count, thermal_2_count: how often it slowed itself down a little, and a lot, to
            keep to the temperatures that the host set (NVM Express: host controlled thermal management).
        thermal_1_s, thermal_2_s: for how long.
        throttle_events: how often it slowed itself down for heat (OCP's log).
        throttling: whether it does so now.
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
        """Whether it is of the drive's log, not of its temperature alone."""
        return any(getattr(self, name) is not None for name in _VALUES if name != "temperature_c")

    @property
    def is_empty(self) -> bool:
        return all(getattr(self, name) is None for name in _VALUES)


_VALUES = tuple(attribute.name for attribute in fields(Reading) if attribute.default is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveFacts:
    """What is fixed about a drive's telemetry.

    Attributes:
        model, serial, firmware: as its own log says.
        sources: each with its version, such as ``nvme-cli 2.3: smart-log, OCP log``.
        warning_c, critical_c: its own limits.
        host_unit_bytes, nand_unit_bytes: what it counts host and flash writes in.
        gaps: what is not known, and why.
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
    """Reads drives' logs beside a run and never holds it up. Times are those of the run's clock."""

    def take(self) -> Sequence[Reading]:
        """What was read since the last call, oldest first."""
        ...

    def take_troubles(self) -> Sequence[str]:
        """What could not be read since the last call, each said once."""
        ...

    def ask(self) -> None:
        """Read all there is as soon as possible, in the background."""
        ...

    def paused(self) -> AbstractContextManager[None]:
        """Nothing is read in the block, such as a purge, but what was asked for before it first."""
        ...

    def finish(self) -> None:
        """Read all there is once more, waiting for it for some seconds, then no more."""
        ...
