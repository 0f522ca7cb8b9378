"""Readings as they come, turned into samples and in the end into a measurement."""

from __future__ import annotations

from tkperf.engine import OnSample
from tkperf.engine.fio_output import NOTHING_YET, SHORTEST_SAMPLE_S, Reading, build_sample
from tkperf.errors import StepFailedError
from tkperf.measurement import Measurement, Sample

# Share of a CPU at which a thread, or of all CPUs at which fio, is taken to be out of CPU time.
CPU_EXHAUSTED = 0.95


class Recorder:
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
            raise StepFailedError("fio ran but reported no time: nothing was measured")
        whole = build_sample(self._origin, last)
        cpu = last.cpu
        limited = cpu is not None and (
            cpu.busiest_thread_percent >= 100 * CPU_EXHAUSTED
            or cpu.all_threads_percent >= 100 * CPU_EXHAUSTED * cpus
        )
        return Measurement(
            duration_s=whole.duration_s,
            read=whole.read,
            write=whole.write,
            samples=tuple(self.samples),
            cpu=cpu,
            host_limited=limited,
        )
