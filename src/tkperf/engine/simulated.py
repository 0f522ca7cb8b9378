"""A simulated drive behind the engine's seam: for rehearsals and tests, without any I/O.

Its numbers come from a small model, not from a device; every result made with it says SIMULATED.
Time is simulated too: an hour of measurement takes no time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tkperf.engine import Execution, Load, Next, OnSample
from tkperf.errors import UsageError
from tkperf.histogram import BUCKETS, Histogram, bucket_of_ns
from tkperf.measurement import NO_IO, IoStats, Measurement, Sample
from tkperf.phases import Continuous, Fill
from tkperf.workload import Access, Step, Workload

SAMPLE_S = 1.0
# Of the logarithm of latencies; their mean is then what Little's law wants.
_SIGMA = 0.35


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveModel:
    """A drive that is fast when empty and slows down as random writes fill it.

    ``read_us``/``write_us`` is the service time of a 4 KiB I/O; ``parallel_ios`` how many are
    served at once; ``bytes_per_s`` the interface's limit. Random writes slow down to
    ``steady_share`` over the first ``settle_passes`` of the capacity. ``noise`` is the relative
    spread of a second's rate; ``swing`` an alternation from round to round that no steady-state
    window accepts if large. ``cold_start_s`` is how long the drive waits for a load that was not made
    ready and let go in time.
    """

    capacity_bytes: int
    logical_block_bytes: int = 512
    read_us: float = 90.0
    write_us: float = 25.0
    parallel_ios: int = 8
    bytes_per_s: float = 530e6
    steady_share: float = 0.3
    settle_passes: float = 1.5
    noise: float = 0.02
    swing: float = 0.0
    cold_start_s: float = 0.0


PRESETS = {
    "sata-ssd": DriveModel(capacity_bytes=240_057_409_536),
    "nvme-4kn": DriveModel(
        capacity_bytes=960_197_124_096,
        logical_block_bytes=4096,
        read_us=75.0,
        write_us=12.0,
        parallel_ios=64,
        bytes_per_s=3.4e9,
    ),
    "unsteady": DriveModel(capacity_bytes=120_034_123_776, swing=0.5),
}


def find_preset(name: str) -> DriveModel:
    """The model of ``sim:NAME``.

    Raises:
        UsageError: no such preset.
    """
    try:
        return PRESETS[name]
    except KeyError:
        raise UsageError(
            f"there is no simulated drive '{name}'; known are {', '.join(sorted(PRESETS))}"
        ) from None


class SimulatedEngine:
    """Runs a DriveModel. Deterministic for a seed."""

    name = "simulated"
    version: str | None = None

    def __init__(self, model: DriveModel, active_range_bytes: int, *, seed: int = 1) -> None:
        self._model = model
        self._active_range_bytes = active_range_bytes
        self._random = np.random.default_rng(seed)
        self._clock_s = 0.0
        self._written_bytes = 0
        self._steps = 0
        self._ready: tuple[Load, ...] = ()
        self._let_go: tuple[Load, float] | None = None
        self._begins_s = 0.0
        self._stream: Continuous | None = None

    def clock(self) -> float:
        """Simulated monotonic time in seconds."""
        return self._clock_s

    def purge(self) -> None:
        self._written_bytes = 0

    def fill(self, phase: Fill, *, then: Next | None, on_sample: OnSample) -> Execution:
        self.rest()
        self._begins_s = self._clock_s + self._model.cold_start_s
        amount = phase.passes * (phase.length_bytes or self._active_range_bytes)
        duration_s = amount / self._model.bytes_per_s
        ios = -(-amount // phase.workload.block_size_bytes)
        stats = self._stats(phase.workload, ios, 1.0)
        stats = replace(stats, bytes=amount)
        self._written_bytes += amount
        return self._hand_over(
            self._end(phase.workload, duration_s, NO_IO, stats, (), "fill"), then
        )

    def measure(self, step: Step, *, then: Next | None, on_sample: OnSample) -> Execution:
        self._stream = None
        self._begin(step)
        return self._hand_over(self._run(step.workload, step.duration_s, on_sample), then)

    def measure_slice(
        self, phase: Continuous, *, then: Next | None, on_sample: OnSample
    ) -> Execution:
        if not phase.goes_on(self._stream):
            self._begin(phase)
        self._stream = phase
        return self._hand_over(self._run(phase.workload, phase.duration_s, on_sample), then)

    def idle(self, duration_s: float, *, then: Next | None) -> None:
        self._stream, self._let_go = None, None
        self._clock_s += duration_s
        self._ready = then.loads if then else ()
        if then and then.certain:
            self.start_next(then.loads[0])

    def start_next(self, load: Load) -> None:
        if load in self._ready:
            self._let_go, self._stream = (load, self._clock_s), None

    def rest(self) -> None:
        self._ready, self._let_go, self._stream = (), None, None

    def close(self) -> None:
        self.rest()

    def _begin(self, load: Load) -> None:
        if self._let_go is not None and self._let_go[0] == load:
            self._begins_s = self._let_go[1]
        else:
            self._begins_s = self._clock_s + self._model.cold_start_s
        self._ready, self._let_go = (), None

    def _hand_over(self, execution: Execution, then: Next | None) -> Execution:
        """Let go what follows, if that can be told by now."""
        self._ready = then.loads if then else ()
        load = then.choose(execution.measurement) if then else None
        if load is None:
            return execution
        self.start_next(load)
        return replace(execution, handed_over_s=self._let_go and self._let_go[1])

    def _run(self, workload: Workload, duration_s: float, on_sample: OnSample) -> Execution:
        self._steps += 1
        factor = 1 + self._model.swing * (-1) ** self._steps
        read, write, samples, at_s = NO_IO, NO_IO, [], 0.0
        while at_s < duration_s - 1e-9:
            second_s = min(SAMPLE_S, duration_s - at_s)
            ios = max(1, round(self._rate(workload, factor) * second_s))
            reads = round(ios * workload.read_percent / 100)
            sample = Sample(
                start_s=at_s,
                duration_s=second_s,
                read=self._stats(workload, reads, factor),
                write=self._stats(workload, ios - reads, factor),
            )
            self._written_bytes += sample.write.bytes
            read, write, at_s = read + sample.read, write + sample.write, at_s + second_s
            samples.append(sample)
            on_sample(sample)
        return self._end(workload, duration_s, read, write, tuple(samples), "step")

    def _end(
        self,
        workload: Workload,
        duration_s: float,
        read: IoStats,
        write: IoStats,
        samples: tuple[Sample, ...],
        kind: str,
    ) -> Execution:
        started_s, self._begins_s = self._begins_s, self._begins_s + duration_s
        # Something may have been waited for while it went on.
        self._clock_s = max(self._clock_s, self._begins_s)
        return Execution(
            measurement=Measurement(duration_s=duration_s, read=read, write=write, samples=samples),
            started_s=started_s,
            ended_s=self._begins_s,
            job_file=f"; SIMULATED {kind}: {workload}, no fio job was run\n",
        )

    def _iops(self, workload: Workload) -> float:
        model = self._model
        read_share = workload.read_percent / 100
        worn = min(1.0, self._written_bytes / (model.settle_passes * self._active_range_bytes))
        slow = 1 - (1 - model.steady_share) * worn if workload.access is Access.RANDOM else 1.0
        service_us = read_share * model.read_us + (1 - read_share) * model.write_us / slow
        service_us *= 0.7 + 0.3 * workload.mean_block_bytes / 4096
        at_once = min(workload.total_outstanding_ios, model.parallel_ios)
        return min(at_once * 1e6 / service_us, model.bytes_per_s / workload.mean_block_bytes)

    def _rate(self, workload: Workload, factor: float) -> float:
        """What is done in a second: no more than is offered."""
        able = self._iops(workload) * factor * self._random.normal(1, self._model.noise)
        return able if workload.offered_iops is None else min(able, workload.offered_iops)

    def _stats(self, workload: Workload, ios: int, factor: float) -> IoStats:
        """A log-normal latency distribution whose mean follows Little's law."""
        if not ios:
            return NO_IO
        able = self._iops(workload) * factor
        outstanding = float(workload.total_outstanding_ios)
        if workload.offered_iops is not None and workload.offered_iops < able:
            at_once = min(outstanding, self._model.parallel_ios)
            # A queue in front of it grows as what is offered nears what it can do.
            load = workload.offered_iops / able
            outstanding = min(outstanding, at_once * (1 + load / (1 - load) / at_once))
        mean_ns = outstanding / able * 1e9
        drawn = min(ios, 400)
        values = (
            np.sort(self._random.lognormal(-(_SIGMA**2) / 2, _SIGMA, drawn) * mean_ns).astype(
                np.int64
            )
            + 1
        )
        dense = np.zeros(BUCKETS, dtype=np.int64)
        weights = np.full(drawn, ios // drawn)
        weights[: ios % drawn] += 1
        np.add.at(dense, [bucket_of_ns(int(value)) for value in values], weights)
        return IoStats(
            ios=ios,
            bytes=round(ios * workload.mean_block_bytes),
            latency_ios=ios,
            latency_sum_ns=int((values * weights).sum()),
            latency_min_ns=int(values[0]),
            latency_max_ns=int(values[-1]),
            histogram=Histogram.from_dense(dense),
        )
