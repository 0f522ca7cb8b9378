"""A simulated drive with the interface of an engine, for rehearsals and tests, without any I/O.

The numbers are computed with a model (``simulation/``, docs/explanation/simulated-drive.md) and not measured on a
device, so every result is marked SIMULATED. Time is simulated as well: an hour of measurement needs no real time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import numpy as np

from tkperf.engine import EngineLoad, Execution, Next, OnSample
from tkperf.engine.simulation.flash_drive import FlashDrive
from tkperf.engine.simulation.hard_disk_drive import HardDisk
from tkperf.engine.simulation.models import DiskModel, DriveModel, FlashModel
from tkperf.engine.simulation.service import Draw, Second, SimulatedDrive
from tkperf.engine.simulation.together import TogetherDraw
from tkperf.model.measurement import Measurement
from tkperf.model.phases import Continuous, Fill
from tkperf.model.telemetry.drive_reading import DriveFacts, Reading
from tkperf.model.workload import ActiveRange, Step, Workload

# The intervals, in s, at which telemetry is read. Real drives are read at the same intervals.
TEMPERATURE_EVERY_S, LOG_EVERY_S = 10.0, 60.0
SAMPLE_S = 1.0
# Remainders of a second, or of an amount, that are smaller than this are rounding errors of sums.
_NO_TIME_S = 1e-9
_NO_BYTE = 0.5


class SimulatedEngine:
    """An engine that runs a DriveModel. The same seed always produces the same results."""

    name = "simulated"
    version: str | None = None
    io_clock: str | None = None

    def __init__(self, model: DriveModel, active_range_bytes: int, *, seed: int = 1, cold_start_s: float = 0.0) -> None:
        """Create the simulated drive.

        Args:
            cold_start_s: the delay of a load that was not prepared and released in time.
        """
        self._random = np.random.default_rng(seed)
        self.drive = _build_drive(model, active_range_bytes, self._random)
        self._active_range_bytes = active_range_bytes
        self._cold_start_s = cold_start_s
        self._clock_s = 0.0
        self._ready: tuple[EngineLoad, ...] = ()
        self._let_go: tuple[EngineLoad, float] | None = None
        self._begins_s = 0.0
        # The stream that is running, and the length of its slices so far.
        self._stream: Continuous | None = None
        self._stream_s = 0.0
        # The state of the drive has been computed up to this moment.
        self._lived_s = 0.0
        self.telemetry = SimulatedTelemetry(self.drive, self.clock)

    def clock(self) -> float:
        """Return the simulated monotonic time in seconds."""
        return self._clock_s

    def wait_until(self, clock_s: float) -> None:
        """Let time pass without I/O until the given moment on the simulated clock."""
        self.rest()
        self._clock_s = max(self._clock_s, clock_s)

    def purge(self) -> None:
        self.drive.purge()

    def fill(self, phase: Fill, *, then: Next | None, on_sample: OnSample) -> Execution:
        self.rest()
        self._begins_s = self._clock_s + self._cold_start_s
        length = phase.length_bytes or self._active_range_bytes
        region = ActiveRange(offset_bytes=0, length_bytes=length)
        filled = replace(phase.workload, region=region)
        execution = self._run(filled, None, on_sample, amount_bytes=phase.passes * length)
        return self._hand_over(execution, then)

    def measure(self, step: Step, *, then: Next | None, on_sample: OnSample) -> Execution:
        self._stream, self._stream_s = None, 0.0
        self._begin(step)
        return self._hand_over(self._run(step.workload, step.duration_s, on_sample), then)

    def measure_slice(self, phase: Continuous, *, then: Next | None, on_sample: OnSample) -> Execution:
        if not phase.continues(self._stream):
            self._begin(phase)
            self._stream_s = 0.0
        self._stream = phase
        execution = self._run(phase.workload, phase.duration_s, on_sample)
        self._stream_s += phase.duration_s
        return self._hand_over(execution, then)

    def idle(self, duration_s: float, *, then: Next | None) -> None:
        self._stream, self._let_go = None, None
        self._clock_s += duration_s
        self._ready = then.loads if then else ()
        if then and then.certain:
            self.start_next(then.loads[0])

    def start_next(self, load: EngineLoad) -> None:
        if load in self._ready:
            self._let_go, self._stream = (load, self._clock_s), None

    def rest(self) -> None:
        self._ready, self._let_go, self._stream = (), None, None

    def close(self) -> None:
        self.rest()

    def _begin(self, load: EngineLoad) -> None:
        if self._let_go is not None and self._let_go[0] == load:
            self._begins_s = self._let_go[1]
        else:
            self._begins_s = self._clock_s + self._cold_start_s
        self._ready, self._let_go = (), None

    def _hand_over(self, execution: Execution, then: Next | None) -> Execution:
        """Release the load that follows if it can already be chosen. Return the execution with the release time."""
        self._ready = then.loads if then else ()
        load = then.choose(execution.measurement) if then else None
        if load is None:
            return execution
        self.start_next(load)
        return replace(execution, handed_over_s=self._let_go and self._let_go[1])

    def _run(
        self, workload: Workload, duration_s: float | None, on_sample: OnSample, amount_bytes: int | None = None
    ) -> Execution:
        """Run a workload for ``duration_s``, or until ``amount_bytes`` are written."""
        began_s = self._begins_s
        if began_s - self._lived_s > _NO_TIME_S:
            self.drive.idle(began_s - self._lived_s)
            self.telemetry.pass_to(began_s)
        if not workload.is_plain:
            assert duration_s is not None
            return self._run_together(workload, duration_s, on_sample)
        draw = Draw(self.drive, workload, self._random, on_sample)
        lasted_s = 0.0
        if amount_bytes is None:
            assert duration_s is not None
            going = self._for_time(workload, duration_s)
        else:
            going = self._for_amount(workload, amount_bytes)
        for second, second_s in going:
            draw.add(second, second_s)
            lasted_s += second_s
            self.telemetry.pass_to(began_s + lasted_s)
        read, write = draw.finish(amount_bytes)
        lasted_s = duration_s if duration_s is not None else lasted_s
        ended_s = self._begins_s = self._lived_s = began_s + lasted_s
        # The clock may already be later than the end, because time also passes if another part of tkperf waits during
        # the load.
        self._clock_s = max(self._clock_s, ended_s)
        kind = "fill" if amount_bytes is not None else "step"
        return Execution(
            measurement=Measurement(duration_s=lasted_s, read=read, write=write, samples=tuple(draw.samples)),
            started_s=began_s,
            ended_s=ended_s,
            job_file=f"; SIMULATED {kind}: {workload}, no fio job was run\n",
        )

    def _run_together(self, workload: Workload, duration_s: float, on_sample: OnSample) -> Execution:
        """Run a combination, or a load with flushes, pauses, trims or partly random access, for ``duration_s``."""
        began_s = self._begins_s
        draw = TogetherDraw(self.drive, workload, self._random, on_sample, since_s=self._stream_s)
        lasted_s = 0.0
        while duration_s - lasted_s > _NO_TIME_S:
            second_s = draw.advance(min(SAMPLE_S, duration_s - lasted_s))
            lasted_s += second_s
            self.telemetry.pass_to(began_s + lasted_s)
        ended_s = self._begins_s = self._lived_s = began_s + duration_s
        self._clock_s = max(self._clock_s, ended_s)
        measurement, whole = draw.finish(duration_s)
        return Execution(
            measurement=measurement,
            whole=whole,
            started_s=began_s,
            ended_s=ended_s,
            job_file=f"; SIMULATED step: {workload}, no fio job was run\n",
        )

    def _for_time(self, workload: Workload, duration_s: float) -> Iterator[tuple[Second, float]]:
        left_s = duration_s
        while left_s > _NO_TIME_S:
            second_s = min(SAMPLE_S, left_s)
            yield self._serve(workload, second_s), second_s
            left_s -= second_s

    def _for_amount(self, workload: Workload, amount_bytes: int) -> Iterator[tuple[Second, float]]:
        block_bytes, left = workload.mean_block_bytes, float(amount_bytes)
        while left > _NO_BYTE:
            second = self._serve(workload, SAMPLE_S)
            second_s = min(SAMPLE_S, left / (second.rate * block_bytes))
            yield second, second_s
            left -= second.rate * block_bytes * second_s

    def _serve(self, workload: Workload, duration_s: float) -> Second:
        """Return the drive's next second of the workload, or the next part of a second."""
        return self.drive.serve(workload, duration_s)


def _build_drive(model: DriveModel, active_range_bytes: int, random: np.random.Generator) -> SimulatedDrive:
    match model:
        case FlashModel():
            return FlashDrive(model, active_range_bytes, random)
        case DiskModel():
            return HardDisk(model, active_range_bytes, random)


class SimulatedTelemetry:
    """The telemetry of a simulated drive, which is read as simulated time passes. ``clock`` returns the
    simulated time.
    """

    def __init__(self, drive: SimulatedDrive, clock: Callable[[], float]) -> None:
        self._drive, self._clock = drive, clock
        self._readings: list[Reading] = []
        self._temperature_s = self._log_s = 0.0

    @property
    def facts(self) -> tuple[DriveFacts, ...]:
        """Return the facts about the drive. The result is empty if the model has neither heat nor counters."""
        log = self._drive.read_log(0.0)
        if log is None:
            return ()
        return (
            DriveFacts(
                drive=log.drive,
                sources=("model",),
                warning_c=self._drive.warning_c,
                host_unit_bytes=1,
                nand_unit_bytes=1,
            ),
        )

    def pass_to(self, now_s: float) -> None:
        """Read the drive if a reading is due. The caller must already have computed the drive's state at ``now_s``."""
        if now_s - self._log_s >= LOG_EVERY_S:
            self._look(now_s)
        elif now_s - self._temperature_s >= TEMPERATURE_EVERY_S:
            self._temperature_s = now_s
            self._read(now_s, whole=False)

    def take(self) -> Sequence[Reading]:
        """Return the readings since the last call."""
        taken, self._readings = self._readings, []
        return taken

    def take_troubles(self) -> Sequence[str]:
        """Return an empty result, because a reading of a model never fails."""
        return ()

    def ask(self) -> None:
        """Read the drive immediately. The reading needs no simulated time."""
        self._look(self._clock())

    def paused(self) -> AbstractContextManager[None]:
        """Return an empty context, because a reading of a model disturbs no measurement."""
        return nullcontext()

    def finish(self) -> None:
        """Read the drive for the last time."""
        self.ask()

    def _look(self, now_s: float) -> None:
        self._log_s = self._temperature_s = now_s
        self._read(now_s, whole=True)

    def _read(self, now_s: float, *, whole: bool) -> None:
        """Read the whole log, or only the temperature."""
        log = self._drive.read_log(now_s)
        if log is not None and not whole:
            log = Reading(at_s=now_s, drive=log.drive, source=log.source, temperature_c=log.temperature_c)
        if log is not None:
            self._readings.append(log)
