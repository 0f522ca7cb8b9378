"""The telemetry of a simulated drive, in simulated time; every result with it says SIMULATED."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from tkperf.engine.simulation.service import SimulatedDrive
from tkperf.model.telemetry.reading import DriveFacts, Reading

NAME = "simulated drive"
# The same intervals as for real drives.
TEMPERATURE_EVERY_S, LOG_EVERY_S = 10.0, 60.0


class SimulatedTelemetry:
    """Telemetry of a simulated drive, read as time passes; ``clock`` is the simulated one."""

    def __init__(self, drive: SimulatedDrive, clock: Callable[[], float]) -> None:
        self._drive, self._clock = drive, clock
        self._readings: deque[Reading] = deque()
        self._temperature_s = self._log_s = 0.0

    @property
    def facts(self) -> tuple[DriveFacts, ...]:
        """Return the facts of the drive; empty where the model has no heat and counts nothing."""
        report = self._drive.report()
        if report is None:
            return ()
        return (
            DriveFacts(
                drive=NAME,
                sources=("model",),
                warning_c=report.warning_c,
                host_unit_bytes=1,
                nand_unit_bytes=1,
            ),
        )

    def pass_to(self, now_s: float) -> None:
        """Read the drive, now in its state at this time, if a reading is due."""
        if now_s - self._log_s >= LOG_EVERY_S:
            self._look(now_s)
        elif now_s - self._temperature_s >= TEMPERATURE_EVERY_S:
            self._temperature_s = now_s
            self._read(now_s, whole=False)

    def take(self) -> Sequence[Reading]:
        """Return the new readings, as the protocol has it."""
        taken = list(self._readings)
        self._readings.clear()
        return taken

    def take_troubles(self) -> Sequence[str]:
        """Return nothing: a model has no troubles."""
        return ()

    def ask(self) -> None:
        """Read the drive at once, as the protocol has it; it takes no time."""
        self._look(self._clock())

    def paused(self) -> AbstractContextManager[None]:
        """Return an empty context: reading a model disturbs nothing."""
        return nullcontext()

    def finish(self) -> None:
        """Read the drive for the last time, as the protocol has it."""
        self.ask()

    def _look(self, now_s: float) -> None:
        self._log_s = self._temperature_s = now_s
        self._read(now_s, whole=True)

    def _read(self, now_s: float, *, whole: bool) -> None:
        """Read the whole log, or the temperature alone."""
        report = self._drive.report()
        if report is None:
            return
        reading = Reading(
            at_s=now_s,
            drive=NAME,
            source="simulated",
            temperature_c=round(report.temperature_c, 1),
        )
        if whole:
            reading = replace(
                reading,
                host_read_bytes=round(report.host_read_bytes),
                host_written_bytes=round(report.host_written_bytes),
                nand_written_bytes=round(report.nand_written_bytes),
                thermal_1_count=report.throttled_count,
                throttling=report.throttled,
            )
        self._readings.append(reading)
