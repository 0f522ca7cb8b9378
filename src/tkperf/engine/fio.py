"""The fio engine, which starts the next load without idle time and divides streams into slices.

If each fio process started only after the previous process had ended, the device would be idle for a third of a second
between two processes. The engine therefore starts a fio process for each possible next load some seconds early. This
process waits at its gate. At the planned end of the current load, the engine opens the gate while the old fio process
still writes its report. If the end cannot be predicted, or if the next load depends on the totals, the engine opens the
gate after the last I/O.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tkperf.engine import EngineLoad, Execution, Next, OnSample, fio_process
from tkperf.engine.device_jobs import DeviceJobs, Seeds, StreamWatch, earliest_s, fill_evidence, step_evidence
from tkperf.engine.fio_job import SequentialCursors, planned_bytes
from tkperf.engine.fio_output import NOTHING_YET, SHORTEST_SAMPLE_S, FioReading, Recorder
from tkperf.engine.fio_process import FioProcess, ignore
from tkperf.engine.waiting import Waiting, step_of
from tkperf.model.errors import LostAtGateError
from tkperf.model.measurement import Measurement
from tkperf.model.phases import Continuous, Fill
from tkperf.model.plausibility import Evidence
from tkperf.model.workload import Access, Step, Workload

# During this last period before the release of the next load, the engine reads no output, so that parsing causes no
# delay.
QUIET_BEFORE_HANDOVER_S = 0.02
# The time before the planned end at which the engine asks which load follows, if the answer depends on the measurement.
# fio reports within 2 ms of a request, and the choice of the next load takes up to 50 ms on a busy host.
CHOOSE_AHEAD_S = 0.15
# The longest time that a report on request may take. A later report would delay the planned end.
LONGEST_REPORT_S = 0.05
# The longest wait for the last I/O after the planned end. After this wait, the engine waits for the exit of fio.
LONGEST_DRAIN_S = 2.0
# While a load uses all CPU time, tkperf delays I/Os each time that tkperf wakes up, because the code and data of tkperf
# are then no longer in the CPU caches. Within a step, tkperf therefore reads fio's status documents of this many
# seconds together.
GATHER_S = 4.5
# If the threads of fio use this share of the time of all CPUs, no CPU time is left for other programs.
NO_SPARE_CPU_SHARE = 0.9
# The interval of fio's reports.
STATUS_INTERVAL_S = 1.0
# A fast drive writes this amount in the time that the next fio process needs to start. If a fill writes less, the
# engine prepares the next load immediately.
SHORT_FILL_BYTES = 8 << 30


@dataclass(slots=True)
class _Stream:
    """A running stream.

    Attributes:
        step: the step with which the fio process of the stream was started.
        planned_s: the total duration of the slices that were requested so far.
    """

    phase: Continuous
    process: FioProcess
    step: Step
    watch: StreamWatch
    planned_s: float = 0.0
    cut: FioReading = NOTHING_YET


class FioEngine:
    """An engine for one device. It is not thread-safe. One step runs at a time, and other steps wait at their gates.

    The engine's jobs are created with a permit. The engine writes only to the device that the permit names, and only
    while the permit is valid.
    """

    name = "fio"

    def __init__(self, jobs: DeviceJobs, *, version: str, cpus: int, seeds: Seeds, io_clock: str | None = None) -> None:
        self.version: str | None = version
        self.io_clock = io_clock
        self.seeds = seeds
        self._jobs = jobs
        self._cpus = cpus
        self._waiting = Waiting(lambda load: self._start_load(load, wait=False))
        self._then: Next | None = None
        self._last_io_s: float | None = None
        self._current: FioProcess | None = None
        self._stream: _Stream | None = None
        self._cursors = SequentialCursors(jobs.active_range)

    def fill(self, phase: Fill, *, then: Next | None, on_sample: OnSample) -> Execution:
        self.rest()
        seed = self.seeds.take(phase)
        process = self._begin(lambda: self._jobs.start_fill(phase, seed))
        self._waiting.note_start(process)
        recorder = Recorder(on_sample)
        planned = planned_bytes(process.shown_job)
        total_bytes = sum(planned)
        # The members are preconditioned before the set is created. The next load needs the set, so it cannot be
        # prepared.
        then = None if self._jobs.fills_members else then

        def on_reading(reading: FioReading) -> None:
            recorder(reading)
            # The end of a fill cannot be predicted exactly, so the engine prepares the next load twice as early.
            rate = reading.write.bytes / reading.elapsed_s if reading.elapsed_s else 0.0
            if total_bytes - reading.write.bytes < 2 * self._waiting.ahead_s * rate:
                self._prepare(_loads_of(then), phase.workload)

        if total_bytes <= SHORT_FILL_BYTES:
            self._prepare(_loads_of(then), phase.workload)
        process.read_while(
            lambda: not process.jobs_ended,
            on_reading,
            still_s=fio_process.LONGEST_OVERRUN_S,
            every_s=lambda: fio_process.TASKS_POLL_S if self._waiting else 0.5,
        )
        self._choose_by_totals(process, recorder, then)
        process.read_to_end(recorder, still_s=fio_process.LONGEST_OVERRUN_S)
        self._prepare_after_next(then)
        return self._ended(process, recorder, fill_evidence(process, planned))

    def measure(self, step: Step, *, then: Next | None, on_sample: OnSample) -> Execution:
        self._end_stream()
        process = self._current = self._take(step, then)
        recorder = Recorder(on_sample, lead_in_s=step.workload.lead_in_s)
        self._run_out(process, step, then, recorder)
        self._cursors.advance(step, process.starts_bytes, [job.bytes for job in process.last.jobs])
        self._prepare_after_next(then)
        evidence = step_evidence(process, step, self._jobs.active_range)
        return self._ended(process, recorder, evidence)

    def measure_slice(self, phase: Continuous, *, then: Next | None, on_sample: OnSample) -> Execution:
        stream = self._stream_for(phase, then)
        process, origin = stream.process, stream.cut
        stream.planned_s += phase.duration_s
        lead_in_s = 0.0 if origin.jobs else phase.workload.lead_in_s
        recorder = Recorder(on_sample, origin, lead_in_s=lead_in_s)
        is_last = stream.planned_s >= stream.step.duration_s
        if is_last:
            self._run_out(process, stream.step, then, recorder)
        else:
            self._run_to_cut(stream, phase.duration_s, then, recorder)
        stream.cut = process.last
        measurement = recorder.measurement(process.last, self._cpus)
        if then and not is_last and (load := then.choose(measurement)):
            process.interrupt(LONGEST_REPORT_S)
            self._let_go(load, process, ignore)
        self._prepare_after_next(then)
        evidence = stream.watch.slice_evidence(process, origin)
        return self._execution(process, measurement, evidence, origin, recorder.whole(process.last))

    def idle(self, duration_s: float, *, then: Next | None) -> None:
        self._end_stream()
        self._waiting.stop_io()
        began_s = time.monotonic() if self._last_io_s is None else self._last_io_s
        ends_s = began_s + duration_s
        _sleep_until(ends_s - self._waiting.ahead_s)
        for load in _loads_of(then):
            self._waiting.prepare(load)
        _sleep_until(ends_s)
        if then and then.certain:
            self._waiting.let_go(then.loads[0], lambda _: False)

    def start_next(self, load: EngineLoad) -> None:
        if self._stream is not None:
            self._stream.process.interrupt(LONGEST_REPORT_S)
        self._waiting.let_go(load, lambda _: False)
        self._prepare_after_next(self._then)

    def rest(self) -> None:
        self._end_stream()
        self._waiting.discard()
        if self._current is not None:
            self._current.stop()
            self._current = None

    def close(self) -> None:
        self.rest()
        self._jobs.close()

    # Section: the end of the current load, and the beginning of the next load.

    def _run_out(self, process: FioProcess, step: Step, then: Next | None, recorder: Recorder) -> None:
        """Run a step to its end. Release the next load at the planned end, or as soon as it is chosen."""

        def left_s() -> float:
            # A reading may show that the step began late. In this case, the step also ends late.
            return process.began_s + step.duration_s - time.monotonic()

        self._read_until_left(process, left_s, self._waiting.ahead_s, recorder, gather=True)
        self._prepare(_loads_of(then), step.workload)
        load = self._choose_early(process, left_s, then, recorder)
        if self._read_until_left(process, left_s, QUIET_BEFORE_HANDOVER_S, recorder):
            time.sleep(max(0.0, left_s()))
            if load is not None:
                self._let_go(load, process, recorder)
            elif then and process.wait_for_jobs(time.monotonic() + LONGEST_DRAIN_S, recorder):
                self._choose_by_totals(process, recorder, then)
        process.read_to_end(recorder, until_s=process.began_s + step.duration_s + fio_process.LONGEST_OVERRUN_S)

    def _read_until_left(
        self,
        process: FioProcess,
        left_s: Callable[[], float],
        until_s: float,
        recorder: Recorder,
        *,
        gather: bool = False,
    ) -> bool:
        """Accept readings until the load has only ``until_s`` seconds left. Return False if fio ended earlier."""
        gather_s = self._gather_s(process) if gather else fio_process.at_once
        while not process.ended and (more_s := left_s() - until_s) > 0:
            process.read_until(time.monotonic() + more_s, recorder, gather_s=gather_s)
        return not process.ended

    def _gather_s(self, process: FioProcess) -> Callable[[], float]:
        """Return a function that computes how long fio's status documents may wait in the pipe. The function uses the
        size of the newest document. The first document never waits, because it shows whether the load began late.
        """

        def gather_s() -> float:
            cpu = process.last.cpu
            return (
                GATHER_S
                if cpu is not None and cpu.all_threads_percent >= 100 * NO_SPARE_CPU_SHARE * self._cpus
                else 0.0
            )

        return gather_s

    def _choose_early(
        self, process: FioProcess, left_s: Callable[[], float], then: Next | None, recorder: Recorder
    ) -> EngineLoad | None:
        """Return the load that follows, if the engine can choose it shortly before the planned end."""
        if then is None or then.certain:
            return then.loads[0] if then else None
        self._read_until_left(process, left_s, CHOOSE_AHEAD_S, recorder)
        if left_s() < LONGEST_REPORT_S + QUIET_BEFORE_HANDOVER_S:
            return None
        return self._choose_now(process, recorder, then)

    def _choose_now(self, process: FioProcess, recorder: Recorder, then: Next) -> EngineLoad | None:
        """Return the load that follows, if the current counters are sufficient to choose it."""
        process.report_now(time.monotonic() + LONGEST_REPORT_S, ignore)
        so_far = recorder.so_far(process.last)
        return then.choose(so_far) if so_far else None

    def _choose_by_totals(self, process: FioProcess, recorder: Recorder, then: Next | None) -> None:
        """Choose and release the next load after the last I/O, while fio still prepares its last document."""
        if then is None or process.ended:
            return
        load = then.loads[0] if then.certain else self._choose_now(process, recorder, then)
        if load is not None:
            self._let_go(load, process, recorder)

    def _let_go(self, load: EngineLoad, process: FioProcess, on_reading: fio_process.OnReading) -> None:
        self._waiting.let_go(load, lambda until_s: process.read_until(until_s, on_reading))

    def _run_to_cut(self, stream: _Stream, slice_s: float, then: Next | None, recorder: Recorder) -> None:
        """Run a stream up to the report that is nearest to the end of the slice. fio schedules its reports according to
        its own clock.

        If the slice is shorter than the interval between reports, the engine requests a report at the end of the slice.
        """
        process, origin = stream.process, stream.cut
        if then:
            ahead_s = stream.planned_s - self._waiting.ahead_s
            process.read_until(process.began_s + ahead_s, recorder, gather_s=self._gather_s(process))
            self._prepare(then.loads, stream.phase.workload)
        cut_s = stream.planned_s - STATUS_INTERVAL_S / 2
        if slice_s < STATUS_INTERVAL_S:
            process.read_until(process.began_s + stream.planned_s, recorder)
            process.report_now(time.monotonic() + LONGEST_DRAIN_S, recorder)
            cut_s = origin.elapsed_s
        # If a report was late, the time at which the slice should end may already have passed. In this case, use the
        # next report.
        earliest_s = origin.elapsed_s + SHORTEST_SAMPLE_S
        process.read_while(
            lambda: process.last.elapsed_s < max(cut_s, earliest_s),
            recorder,
            until_s=time.monotonic() + slice_s + fio_process.LONGEST_OVERRUN_S,
        )
        if process.ended:
            process.read_to_end(recorder)  # this call raises an error if fio did not end successfully

    # Section: the running processes. No more than one process measures or runs a stream. All other processes wait at
    # gates.

    def _begin(self, start: Callable[[], FioProcess], started: FioProcess | None = None) -> FioProcess:
        """Open the gate when all threads of fio wait there. If fio was killed before its first I/O, start fio again.

        fio is restarted only once. If fio is killed a second time, the cause is probably permanent.
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

    def _start_load(self, load: EngineLoad, *, wait: bool = True) -> FioProcess:
        step = step_of(load)
        # The jobs of a stream begin at the start of their regions. A step continues where the preceding step ended.
        starts_bytes = self._cursors.starts_bytes(step) if load is step else ()
        return self._jobs.start_step(step, self.seeds.next_of(load), starts_bytes, wait=wait)

    def _prepare(self, loads: Sequence[EngineLoad], under_way: Workload) -> None:
        """Prepare loads that may follow, except loads that begin at the address where the current load stops."""
        for load in loads:
            continues = isinstance(load, Step) and load.workload == under_way
            if not (continues and under_way.access is Access.SEQUENTIAL):
                self._waiting.prepare(load)

    def _prepare_after_next(self, then: Next | None) -> None:
        """Prepare the loads that follow the load that was just released, if the released load is so short that the
        following loads are needed immediately.

        The caller would request these loads too late, because the caller first writes the last results to a disk. If a
        test loads this disk with a deep queue, the write may take half a second.
        """
        self._then = then
        under_way = self._waiting.let_go_load
        if then is None or under_way is None:
            return
        step = step_of(under_way)
        if step.duration_s <= self._waiting.ahead_s:
            self._prepare(then.afterwards.get(under_way, ()), step.workload)

    def _take(self, load: EngineLoad, then: Next | None) -> FioProcess:
        """Return the process of a load after its gate was opened. Discard all processes that cannot follow this
        load.
        """
        process = self._waiting.take(load)
        self._waiting.stop_io()
        if process is None or process.released_s is None:
            process = self._begin(lambda: self._start_load(load), process)
        self.seeds.take(load)
        self._waiting.note_start(process)
        self._waiting.discard(but=_loads_of(then))
        return process

    def _stream_for(self, phase: Continuous, then: Next | None) -> _Stream:
        stream = self._stream
        step = step_of(phase)
        if stream and phase.continues(stream.phase):
            if stream.step.duration_s - stream.cut.elapsed_s >= SHORTEST_SAMPLE_S:
                return stream
            # The device did not answer. fio therefore reported nothing for a slice or longer, and the planned duration
            # of this fio process is over.
            step = replace(step, duration_s=stream.step.duration_s - stream.planned_s)
            phase = replace(phase, longest_s=step.duration_s)
        self._end_stream()
        process = self._take(phase, then)
        self._current = None
        self._stream = _Stream(phase=phase, process=process, step=step, watch=StreamWatch())
        return self._stream

    def _end_stream(self) -> None:
        if self._stream is None:
            return
        process, self._stream = self._stream.process, None
        if not process.ended and not process.jobs_ended:
            process.interrupt(LONGEST_DRAIN_S)
            self._last_io_s = time.monotonic()
        process.stop()

    def _ended(self, process: FioProcess, recorder: Recorder, evidence: Evidence) -> Execution:
        measurement = recorder.measurement(process.last, self._cpus)
        process.stop()
        self._current = None
        return self._execution(process, measurement, evidence, whole=recorder.whole(process.last))

    def _execution(
        self,
        process: FioProcess,
        measurement: Measurement,
        evidence: Evidence,
        origin: FioReading = NOTHING_YET,
        whole: Measurement | None = None,
    ) -> Execution:
        # By now, fio has reported the time at which its I/O really began.
        started_s = process.began_s + origin.elapsed_s
        self._last_io_s = started_s + (whole or measurement).duration_s
        return Execution(
            measurement=measurement,
            whole=whole,
            started_s=started_s,
            ended_s=self._last_io_s,
            job_file=process.shown_job,
            output=process.document,
            evidence=evidence,
            handed_over_s=self._waiting.let_go_s,
            earliest_s=earliest_s(process, origin),
        )


def _loads_of(then: Next | None) -> tuple[EngineLoad, ...]:
    return then.loads if then else ()


def _sleep_until(moment_s: float) -> None:
    time.sleep(max(0.0, moment_s - time.monotonic()))
