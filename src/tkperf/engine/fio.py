"""The fio engine: steps handed over without idle time, streams cut into slices.

Separate fio processes would leave the device idle for a third of a second between steps. So the
next step's fio is started some seconds early and waits at its gate; when the current step's
planned end comes, the gate opens while the old fio is still writing its report.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tkperf.device.permit import ErasePermit
from tkperf.engine import Execution, Next, OnSample
from tkperf.engine.fio_job import FioTarget, count_threads, render_fill_job, render_step_job
from tkperf.engine.fio_output import (
    NOTHING_YET,
    SHORTEST_SAMPLE_S,
    Reading,
    build_sample,
    require_whole_ios,
)
from tkperf.engine.fio_process import FioProcess
from tkperf.engine.gate import Gate
from tkperf.engine.sequential import SequentialCursors
from tkperf.errors import EngineError
from tkperf.measurement import Measurement, Sample
from tkperf.phases import Continuous, Fill
from tkperf.workload import Access, ActiveRange, Step, Workload

# fio needs a third of a second from its start to the gate, and several times that on a host whose
# CPUs the step under way keeps busy.
PREPARE_AHEAD_S = 3.0
# Output is not read in the last moments before a hand-over, so that parsing cannot delay it.
QUIET_BEFORE_HANDOVER_S = 0.02
# The interval of fio's reports.
STATUS_INTERVAL_S = 1.0
# How long after its last slice a stream would end by itself.
STREAM_MARGIN_S = 10.0
# Share of a CPU at which a thread, or of all CPUs at which fio, is taken to be out of CPU time.
CPU_EXHAUSTED = 0.95


def _memory_folder() -> str | None:
    """Where files live in memory: opening a gate must not wait for a busy disk's journal."""
    folder = "/dev/shm"  # noqa: S108 - mkdtemp makes a private folder in it
    return folder if os.access(folder, os.W_OK | os.X_OK) else None


def _held(target: FioTarget, permit: ErasePermit) -> FioTarget:
    """The very device that a permit holds, whatever its name may come to stand for.

    Raises:
        RefusedError: the permit is not in use.
    """
    return replace(target, path=permit.path)


class _Recorder:
    """Turns readings into samples as they come and keeps them."""

    def __init__(self, on_sample: OnSample, origin: Reading = NOTHING_YET) -> None:
        self._on_sample = on_sample
        self._origin = self._newest = origin
        self.samples: list[Sample] = []

    def __call__(self, reading: Reading) -> None:
        if reading.elapsed_s - self._newest.elapsed_s >= SHORTEST_SAMPLE_S:
            sample = build_sample(self._newest, reading, origin_s=self._origin.elapsed_s)
            self._newest = reading
            self.samples.append(sample)
            self._on_sample(sample)

    def measurement(self, last: Reading, cpus: int) -> Measurement:
        """Everything between the origin and ``last``."""
        if last.elapsed_s <= self._origin.elapsed_s:
            raise EngineError("fio ran but reported no time: nothing was measured")
        whole = build_sample(self._origin, last)
        cpu = last.cpu
        return Measurement(
            duration_s=whole.duration_s,
            read=whole.read,
            write=whole.write,
            samples=tuple(self.samples),
            cpu=cpu,
            host_limited=(
                cpu.busiest_thread_percent >= 100 * CPU_EXHAUSTED
                or cpu.all_threads_percent >= 100 * CPU_EXHAUSTED * cpus
            ),
        )


@dataclass(slots=True)
class _Prepared:
    step: Step
    starts_bytes: tuple[int, ...]
    process: FioProcess


@dataclass(slots=True)
class _Stream:
    section: str
    workload: Workload
    process: FioProcess
    job_text: str
    slices: int = 0
    cut: Reading = NOTHING_YET


class FioEngine:
    """Runs one device. Not thread-safe; one step at a time, plus one waiting at its gate.

    There is no engine without a permit: it writes to the device that the permit names, and only
    while the permit is in use.
    """

    name = "fio"

    def __init__(
        self,
        permit: ErasePermit,
        *,
        ioengine: str,
        active_range: ActiveRange,
        version: str,
        cpus: int,
        fill_permits: Sequence[ErasePermit] = (),
    ) -> None:
        """``fill_permits``: what is preconditioned instead, each whole: the members of a set."""
        self.version: str | None = version
        self._permit = permit
        self._device = permit.identity.path
        # As anyone can run it again; fio itself is given the device that the permit holds.
        self._target = FioTarget(path=self._device, ioengine=ioengine, active_range=active_range)
        self._cpus = cpus
        self._folder = Path(tempfile.mkdtemp(prefix="tkperf-", dir=_memory_folder()))
        self._started = 0
        self._prepared: _Prepared | None = None
        self._current: FioProcess | None = None
        self._stream: _Stream | None = None
        self._cursors = SequentialCursors(active_range)
        self._fill_permits = tuple(fill_permits) or (permit,)
        self._fill_targets = tuple(
            FioTarget(
                path=each.identity.path,
                ioengine=ioengine,
                active_range=ActiveRange(offset_bytes=0, length_bytes=each.identity.capacity_bytes),
            )
            for each in fill_permits
        ) or (self._target,)

    def fill(self, phase: Fill, *, then: Next | None, on_sample: OnSample) -> Execution:
        self.rest()
        process = self._start(
            lambda prerun: render_fill_job(
                phase.workload,
                phase.passes,
                [
                    _held(target, permit)
                    for target, permit in zip(self._fill_targets, self._fill_permits, strict=True)
                ],
                prerun=prerun,
            )
        )
        self._current = process
        process.wait_at_gate()
        process.release()
        recorder = _Recorder(on_sample)
        total_bytes = phase.passes * sum(
            target.active_range.length_bytes for target in self._fill_targets
        )
        # What follows the preconditioning of members is a set that does not exist yet.
        then = then if self._fill_targets == (self._target,) else None

        def on_reading(reading: Reading) -> None:
            recorder(reading)
            # The end of a fill is not known beforehand: prepare when it is about two seconds off.
            rate = reading.write.bytes / reading.elapsed_s if reading.elapsed_s else 0.0
            nearly_done = total_bytes - reading.write.bytes < 2 * PREPARE_AHEAD_S * rate
            if then and nearly_done and not self._prepared:
                self._prepare(then.step)

        process.read_to_end(on_reading)
        if process.last.write.bytes != total_bytes:
            raise EngineError(
                f"fio wrote {process.last.write.bytes} bytes to {self._device} where "
                f"preconditioning asks for exactly {total_bytes}"
            )
        return self._execution(
            process,
            recorder.measurement(process.last, self._cpus),
            render_fill_job(phase.workload, phase.passes, self._fill_targets),
        )

    def measure(self, step: Step, *, then: Next | None, on_sample: OnSample) -> Execution:
        self._end_stream()
        prepared = self._take_prepared(step)
        process = self._current = prepared.process
        if process.released_s is None:
            process.wait_at_gate()
            process.release()
        recorder = _Recorder(on_sample)
        if then and process.read_until(
            process.began_s + step.duration_s - PREPARE_AHEAD_S, recorder
        ):
            self._prepare_next(then, step)
        if self._run_to_planned_end(process, step, recorder) and then and then.certain:
            self.start_next()
        process.read_to_end(recorder)
        require_whole_ios(process.last, step.workload, self._device)
        if step.workload.access is Access.SEQUENTIAL:
            self._cursors.advance(step, prepared.starts_bytes, process.last.job_bytes)
        return self._execution(
            process,
            recorder.measurement(process.last, self._cpus),
            render_step_job(step, self._target, starts_bytes=prepared.starts_bytes),
        )

    def _run_to_planned_end(self, process: FioProcess, step: Step, recorder: _Recorder) -> bool:
        """Take in readings until just before the end, then wait; False if fio ended before."""

        def left_s() -> float:
            # A reading may tell that the step began late and so ends late.
            return process.began_s + step.duration_s - time.monotonic()

        while left_s() > QUIET_BEFORE_HANDOVER_S:
            until_s = time.monotonic() + left_s() - QUIET_BEFORE_HANDOVER_S
            if not process.read_until(until_s, recorder):
                return False
        time.sleep(max(0.0, left_s()))
        return True

    def start_next(self) -> None:
        if self._prepared is not None and self._prepared.process.released_s is None:
            self._prepared.process.release()

    def measure_slice(self, phase: Continuous, *, on_sample: OnSample) -> Execution:
        stream = self._stream_for(phase)
        process, origin = stream.process, stream.cut
        stream.slices += 1
        recorder = _Recorder(on_sample, origin)
        started_s = process.began_s + origin.elapsed_s
        # fio reports each second by its own clock: cut at the report nearest to the slice's end.
        cut_s = stream.slices * phase.duration_s - STATUS_INTERVAL_S / 2
        process.read_while(lambda: process.last.elapsed_s < cut_s, recorder)
        if process.ended_s is not None:
            process.read_to_end(recorder)  # raises if fio did not end well
        stream.cut = process.last
        require_whole_ios(process.last, phase.workload, self._device, running=True)
        measurement = recorder.measurement(process.last, self._cpus)
        return Execution(
            measurement=measurement,
            started_s=started_s,
            ended_s=started_s + measurement.duration_s,
            job_file=stream.job_text,
            output=process.document,
        )

    def rest(self) -> None:
        self._end_stream()
        self._discard_prepared()

    def close(self) -> None:
        self.rest()
        if self._current is not None:
            self._current.stop()
            self._current = None
        shutil.rmtree(self._folder, ignore_errors=True)

    # What runs: at most one process measuring, one waiting at its gate, or one stream.

    def _start(self, render: Callable[[str], str]) -> FioProcess:
        """Start fio, waiting at its gate. ``render`` makes the job from the gate's command."""
        self._started += 1
        name = f"{self._started:05d}"
        gate = Gate(self._folder, name)
        job_text = render(gate.command)
        return FioProcess(
            job_text,
            self._folder / name,
            gate,
            self._device,
            threads=count_threads(job_text),
        )

    def _prepare(self, step: Step) -> None:
        starts_bytes = self._cursors.starts_bytes(step)
        process = self._start(
            lambda prerun: render_step_job(
                step, _held(self._target, self._permit), starts_bytes=starts_bytes, prerun=prerun
            )
        )
        self._prepared = _Prepared(step=step, starts_bytes=starts_bytes, process=process)

    def _prepare_next(self, then: Next, under_way: Step) -> None:
        """Start what follows, unless it goes on where the stream under way has yet to stop."""
        sequential = then.step.workload.access is Access.SEQUENTIAL
        if not (sequential and then.step.workload == under_way.workload):
            self._prepare(then.step)

    def _take_prepared(self, step: Step) -> _Prepared:
        """The step's process, waiting at its gate or already let go."""
        if self._prepared is None or self._prepared.step != step:
            self._discard_prepared()
            self._prepare(step)
        prepared, self._prepared = self._prepared, None
        assert prepared is not None
        return prepared

    def _discard_prepared(self) -> None:
        if self._prepared is not None:
            self._prepared.process.stop()
            self._prepared = None

    def _stream_for(self, phase: Continuous) -> _Stream:
        stream = self._stream
        if stream and (stream.section, stream.workload) == (phase.section, phase.workload):
            return stream
        self.rest()
        # tkperf ends the stream after its last slice; fio's own end is only a safety net.
        step = Step(workload=phase.workload, duration_s=phase.longest_s + STREAM_MARGIN_S)
        process = self._start(
            lambda prerun: render_step_job(step, _held(self._target, self._permit), prerun=prerun)
        )
        process.wait_at_gate()
        process.release()
        self._stream = _Stream(
            section=phase.section,
            workload=phase.workload,
            process=process,
            job_text=render_step_job(step, self._target),
        )
        return self._stream

    def _end_stream(self) -> None:
        if self._stream is not None:
            self._stream.process.stop()
            self._stream = None

    def _execution(self, process: FioProcess, measurement: Measurement, job_text: str) -> Execution:
        process.stop()
        self._current = None
        return Execution(
            measurement=measurement,
            started_s=process.began_s,
            ended_s=process.began_s + measurement.duration_s,
            job_file=job_text,
            output=process.document,
        )
