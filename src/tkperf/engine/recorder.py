"""The conversion of readings into samples, and in the end into a measurement."""

from __future__ import annotations

from tkperf.engine import OnSample
from tkperf.engine.fio_output import NOTHING_YET, SHORTEST_SAMPLE_S, FioReading, build_sample
from tkperf.model.errors import StepFailedError
from tkperf.model.measurement import Measurement, Sample

# A thread that uses this share of a CPU, or a fio that uses this share of all CPUs, is out of CPU time.
CPU_EXHAUSTED = 0.95


class Recorder:
    """A recorder that turns readings into samples as they come, and keeps them."""

    def __init__(self, on_sample: OnSample, origin: FioReading = NOTHING_YET) -> None:
        self._on_sample = on_sample
        self._origin = self._newest = self._before_newest = origin
        self.samples: list[Sample] = []

    def __call__(self, reading: FioReading) -> None:
        if reading.elapsed_s - self._newest.elapsed_s >= SHORTEST_SAMPLE_S:
            sample = self._sample(self._newest, reading)
            self._before_newest, self._newest = self._newest, reading
            self.samples.append(sample)
            self._on_sample(sample)

    def _sample(self, earlier: FioReading, later: FioReading) -> Sample:
        return build_sample(earlier, later, origin_s=self._origin.elapsed_s)

    def so_far(self, now: FioReading) -> Measurement | None:
        """Return the measurement from the origin to a reading of the running fio; None before the first."""
        if now.elapsed_s <= self._origin.elapsed_s:
            return None
        whole = build_sample(self._origin, now)
        return Measurement(duration_s=whole.duration_s, read=whole.read, write=whole.write)

    def _all_samples(self, last: FioReading) -> tuple[Sample, ...]:
        """Return the samples, made to add up to ``last``: nothing may lie between them.

        A document shortly after the one before has its share added to that one's sample.
        """
        if last is self._newest:
            return tuple(self.samples)
        if last.elapsed_s - self._newest.elapsed_s >= SHORTEST_SAMPLE_S:
            return (*self.samples, self._sample(self._newest, last))
        return (*self.samples[:-1], self._sample(self._before_newest, last))

    def measurement(self, last: FioReading, cpus: int) -> Measurement:
        """Return the measurement from the origin to ``last``.

        Raises:
            StepFailedError: no time passed between them.
        """
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
            samples=self._all_samples(last),
            cpu=cpu,
            host_limited=limited,
        )
