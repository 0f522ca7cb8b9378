"""The fio engine: steps handed over without idle time, streams cut into slices.

Separate fio processes would leave the device idle for a third of a second between steps. So the
next step's fio is started some seconds early and waits at its gate; when the current step's
planned end comes, the gate opens while the old fio is still writing its report.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tkperf.device.permit import ErasePermit
from tkperf.engine import Execution, Next, OnSample, fio_process
from tkperf.engine.fio_job import (
    FioTarget,
    count_threads,
    planned_bytes,
    render_fill_job,
    render_step_job,
)
from tkperf.engine.fio_output import NOTHING_YET, SHORTEST_SAMPLE_S, Reading
from tkperf.engine.fio_process import FioProcess
from tkperf.engine.gate import Gate
from tkperf.engine.recorder import Recorder
from tkperf.engine.sequential import SequentialCursors
from tkperf.engine.witness import StreamWatch, witness_fill, witness_step
from tkperf.engine.work_folder import WorkFolder
from tkperf.errors import EngineError, LostAtGateError
from tkperf.phases import Continuous, Fill
from tkperf.plausibility import Witness
from tkperf.workload import Access, ActiveRange, Step, Workload

# fio needs a third of a second from its start to the gate, and several times that on a host whose
# CPUs the step under way keeps busy.
PREPARE_AHEAD_S = 3.0
# Output is not read in the last moments before a hand-over, so that parsing cannot delay it.
QUIET_BEFORE_HANDOVER_S = 0.02
# How often threads that should wait at their gate by now are looked for.
GATE_POLL_S = 0.005
# The interval of fio's reports.
STATUS_INTERVAL_S = 1.0
# How long after its last slice a stream would end by itself.
STREAM_MARGIN_S = 10.0


def _held(target: FioTarget, permit: ErasePermit) -> FioTarget:
    """The very device that a permit holds, whatever its name may come to stand for.

    Raises:
        RefusedError: the permit is not in use.
    """
    return replace(target, path=permit.path)


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
    watch: StreamWatch
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
        self._folder = WorkFolder()
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
        process = self._begin(lambda: self._start_fill(phase))
        recorder = Recorder(on_sample)
        total_bytes = phase.passes * sum(
            target.active_range.length_bytes for target in self._fill_targets
        )
        # What follows the preconditioning of members is a set that does not exist yet.
        then = then if self._fill_targets == (self._target,) else None

        tried: list[bool] = []

        def on_reading(reading: Reading) -> None:
            recorder(reading)
            # The end of a fill is not known beforehand: prepare when it is about two seconds off.
            rate = reading.write.bytes / reading.elapsed_s if reading.elapsed_s else 0.0
            nearly_done = total_bytes - reading.write.bytes < 2 * PREPARE_AHEAD_S * rate
            if then and nearly_done and not tried:
                tried.append(True)
                self._prepare_ahead(then.step)

        process.read_to_end(on_reading, still_s=fio_process.LONGEST_OVERRUN_S)
        job_text = render_fill_job(phase.workload, phase.passes, self._fill_targets)
        witness = witness_fill(process, planned_bytes(job_text))
        return self._execution(process, recorder, job_text, witness)

    def measure(self, step: Step, *, then: Next | None, on_sample: OnSample) -> Execution:
        self._end_stream()
        prepared = self._take_prepared(step)
        process = prepared.process
        recorder = Recorder(on_sample)
        if then and process.read_until(
            process.began_s + step.duration_s - PREPARE_AHEAD_S, recorder
        ):
            self._prepare_next(then, step)
        if self._run_to_planned_end(process, step, recorder) and then and then.certain:
            self._hand_over(process, recorder)
        process.read_to_end(
            recorder,
            until_s=process.began_s + step.duration_s + fio_process.LONGEST_OVERRUN_S,
        )
        if step.workload.access is Access.SEQUENTIAL:
            job_bytes = [job.bytes for job in process.last.jobs]
            self._cursors.advance(step, prepared.starts_bytes, job_bytes)
        job_text = render_step_job(step, self._target, starts_bytes=prepared.starts_bytes)
        witness = witness_step(process, step, self._target.active_range)
        return self._execution(process, recorder, job_text, witness)

    def _hand_over(self, process: FioProcess, recorder: Recorder) -> None:
        """Start the next step as soon as all its threads wait, while the old fio still reports.

        Should they come later still, ``measure`` waits for them.
        """
        until_s = time.monotonic() + PREPARE_AHEAD_S
        while self._prepared and not self._prepared.process.at_gate:
            if time.monotonic() > until_s:
                return
            if not process.read_until(time.monotonic() + GATE_POLL_S, recorder):
                return
        self.start_next()

    def _run_to_planned_end(self, process: FioProcess, step: Step, recorder: Recorder) -> bool:
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
        prepared = self._prepared
        if prepared and prepared.process.released_s is None and prepared.process.at_gate:
            with suppress(LostAtGateError):  # measure starts it again
                prepared.process.release()

    def measure_slice(self, phase: Continuous, *, on_sample: OnSample) -> Execution:
        stream = self._stream_for(phase)
        process, origin = stream.process, stream.cut
        stream.slices += 1
        recorder = Recorder(on_sample, origin)
        # fio reports each second by its own clock: cut at the report nearest to the slice's end.
        cut_s = stream.slices * phase.duration_s - STATUS_INTERVAL_S / 2
        # After a report that came late, the one to cut at may be over: take the next.
        earliest_s = origin.elapsed_s + SHORTEST_SAMPLE_S
        process.read_while(
            lambda: process.last.elapsed_s < max(cut_s, earliest_s),
            recorder,
            until_s=time.monotonic() + phase.duration_s + fio_process.LONGEST_OVERRUN_S,
        )
        if process.ended_s is not None:
            process.read_to_end(recorder)  # raises if fio did not end well
        stream.cut = process.last
        # By now it is known when fio really began.
        started_s = process.began_s + origin.elapsed_s
        measurement = recorder.measurement(process.last, self._cpus)
        return Execution(
            measurement=measurement,
            started_s=started_s,
            ended_s=started_s + measurement.duration_s,
            job_file=stream.job_text,
            output=process.document,
            witness=stream.watch.witness_slice(process, origin),
        )

    def rest(self) -> None:
        self._end_stream()
        self._discard_prepared()
        if self._current is not None:
            self._current.stop()
            self._current = None

    def close(self) -> None:
        self.rest()
        self._folder.close()

    # What runs: at most one process measuring, one waiting at its gate, or one stream.

    def _start(self, render: Callable[[str], str]) -> FioProcess:
        """Start fio, on its way to its gate. ``render`` makes the job from the gate's command."""
        self._started += 1
        name = f"{self._started:05d}"
        permits = {id(each): each for each in (self._permit, *self._fill_permits)}
        inherit = [lock for each in permits.values() for lock in each.locks]

        def start_in(work: Path) -> FioProcess:
            folder = work / name
            folder.mkdir(exist_ok=True)
            gate = Gate(folder, "gate")
            try:
                job_text = render(gate.command)
                threads = count_threads(job_text)
                return FioProcess(
                    job_text, folder, gate, self._device, threads=threads, inherit=inherit
                )
            except BaseException:
                gate.close()
                raise

        return self._folder.write(start_in)

    def _start_fill(self, phase: Fill) -> FioProcess:
        targets = [
            _held(target, permit)
            for target, permit in zip(self._fill_targets, self._fill_permits, strict=True)
        ]
        return self._start(
            lambda prerun: render_fill_job(phase.workload, phase.passes, targets, prerun=prerun)
        )

    def _start_step(self, step: Step, starts_bytes: tuple[int, ...] = ()) -> FioProcess:
        held = _held(self._target, self._permit)
        return self._start(
            lambda prerun: render_step_job(step, held, starts_bytes=starts_bytes, prerun=prerun)
        )

    def _begin(
        self, start: Callable[[], FioProcess], started: FioProcess | None = None
    ) -> FioProcess:
        """Let fio go once all its threads wait; one killed before its first I/O is started again.

        Once: what is killed twice is killed for a reason.
        """
        self._current = started or start()
        try:
            self._current.come_to_gate()
            self._current.release()
        except LostAtGateError:
            self._current.stop()
            self._current = start()
            self._current.come_to_gate()
            self._current.release()
        return self._current

    def _prepare(self, step: Step) -> _Prepared:
        starts_bytes = self._cursors.starts_bytes(step)
        process = self._start_step(step, starts_bytes)
        self._prepared = _Prepared(step=step, starts_bytes=starts_bytes, process=process)
        return self._prepared

    def _prepare_ahead(self, step: Step) -> None:
        """Start what follows; what does not succeed now is tried again when its time has come."""
        with suppress(EngineError), self._folder.impatient():
            self._prepare(step)

    def _prepare_next(self, then: Next, under_way: Step) -> None:
        """Start what follows, unless it goes on where the stream under way has yet to stop."""
        sequential = then.step.workload.access is Access.SEQUENTIAL
        if not (sequential and then.step.workload == under_way.workload):
            self._prepare_ahead(then.step)

    def _take_prepared(self, step: Step) -> _Prepared:
        """The step's process, let go by now."""
        prepared = self._prepared
        if prepared is None or prepared.step != step:
            self._discard_prepared()
            prepared = self._prepare(step)
        self._prepared, self._current = None, prepared.process
        if prepared.process.released_s is None:
            starts_bytes = prepared.starts_bytes
            prepared.process = self._begin(
                lambda: self._start_step(step, starts_bytes), prepared.process
            )
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
        process = self._begin(lambda: self._start_step(step))
        self._current = None
        self._stream = _Stream(
            section=phase.section,
            workload=phase.workload,
            process=process,
            job_text=render_step_job(step, self._target),
            watch=StreamWatch(),
        )
        return self._stream

    def _end_stream(self) -> None:
        if self._stream is not None:
            self._stream.process.stop()
            self._stream = None

    def _execution(
        self, process: FioProcess, recorder: Recorder, job_text: str, witness: Witness
    ) -> Execution:
        measurement = recorder.measurement(process.last, self._cpus)
        process.stop()
        self._current = None
        return Execution(
            measurement=measurement,
            started_s=process.began_s,
            ended_s=process.began_s + measurement.duration_s,
            job_file=job_text,
            output=process.document,
            witness=witness,
        )
