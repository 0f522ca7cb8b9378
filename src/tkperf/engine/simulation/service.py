"""The seconds of a simulated drive as data, and the properties that all kinds of drives share: queueing, block sizes
and faults.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil, sqrt
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tkperf.engine import OnSample
from tkperf.engine.simulation.models import Misbehaviour
from tkperf.model.errors import EngineError
from tkperf.model.histogram import BUCKET_MIDDLE_NS, BUCKET_UPPER_NS, BUCKETS, Histogram, bucket_of_ns
from tkperf.model.measurement import NO_IO, IoStats, Sample
from tkperf.model.telemetry.drive_reading import Reading
from tkperf.model.workload import Access, Arrival, BlockShare, Workload

# On every drive, ``_RARE_SHARE`` of all I/Os take ``_RARE_TIMES`` as long as the other I/Os, because of retries, writes
# of tables, and interrupts of the host. The additional time is limited.
_RARE_SHARE, _RARE_TIMES, _RARE_SPREAD, _RARE_MOST_NS = 2e-4, 8.0, 5.0, 100e6
# The number of simulated seconds whose I/Os are drawn together from random numbers.
_DRAWN_TOGETHER = 60
# The spread of the share of unusually slow I/Os, from second to second.
_RARE_NOISE = 0.8
_UPPER_LN = np.log(BUCKET_UPPER_NS + 1.0)

Ints = NDArray[np.int64]


class Draw:
    """The I/Os of a load: samples, which are drawn for many seconds together, and the statistics of all I/Os."""

    def __init__(
        self, drive: SimulatedDrive, workload: Workload, random: np.random.Generator, on_sample: OnSample
    ) -> None:
        self._drive = drive
        self._workload = workload
        self._random = random
        self._on_sample = on_sample
        self.samples: list[Sample] = []
        self._seconds: list[Second] = []
        self._durations_s: list[float] = []
        self._dense: dict[str, Ints] = {side: np.zeros(BUCKETS, dtype=np.int64) for side in ("read", "write")}
        self._bytes = {"read": 0, "write": 0}
        self._sums_ns = {"read": 0, "write": 0}
        self._owed = 0.0

    def add(self, second: Second, duration_s: float) -> None:
        """Add the next second of the load, or the last part of a second."""
        if len(self._seconds) == _DRAWN_TOGETHER:
            self._draw()
        self._seconds.append(second)
        self._durations_s.append(duration_s)

    def finish(self, amount_bytes: int | None = None) -> tuple[IoStats, IoStats]:
        """Draw the remaining seconds. Return the statistics of all reads and of all writes.

        If ``amount_bytes`` is given, the sum of the writes equals this amount.
        """
        self._draw(amount_bytes)
        read, write = (
            _io_stats(Histogram.from_dense(self._dense[side]), self._bytes[side], self._sums_ns[side])
            for side in ("read", "write")
        )
        return read, write if amount_bytes is None else replace(write, bytes=amount_bytes)

    def _draw(self, amount_bytes: int | None = None) -> None:
        """Draw the samples of the collected seconds. If ``amount_bytes`` is given, the last sample is adjusted so that
        the sum of the writes equals this amount.
        """
        seconds, durations_s = self._seconds, self._durations_s
        counts = [self._count(second, long_s) for second, long_s in zip(seconds, durations_s, strict=True)]
        block_bytes = self._workload.block_size_bytes
        ios = 0 if amount_bytes is None else -(-amount_bytes // block_bytes)
        if amount_bytes is not None:
            counts[-1] = max(0, ios - self._ios - sum(counts[:-1]))
        reads = [self._share_of(count) for count in counts]
        writes = [count - read for count, read in zip(counts, reads, strict=True)]
        read = self._stats("read", seconds, reads, self._drive.read_spread)
        write = self._stats("write", seconds, writes, self._drive.write_spread)
        if amount_bytes is not None:
            # The last block of a fill may be smaller than the other blocks.
            beyond = ios * block_bytes - amount_bytes
            write[-1] = replace(write[-1], bytes=write[-1].bytes - beyond)
        before = self.samples[-1:]
        start_s = before[0].start_s + before[0].duration_s if before else 0.0
        starts_s = start_s + np.concatenate(([0.0], np.cumsum(durations_s)[:-1]))
        drawn = [
            Sample(start_s=at_s, duration_s=long_s, read=r, write=w)
            for at_s, long_s, r, w in zip(starts_s.tolist(), durations_s, read, write, strict=True)
        ]
        self.samples.extend(drawn)
        self._seconds, self._durations_s = [], []
        for sample in drawn:
            self._on_sample(sample, None)

    @property
    def _ios(self) -> int:
        return int(sum(dense.sum() for dense in self._dense.values()))

    def _count(self, second: Second, duration_s: float) -> int:
        """Return the number of whole I/Os in a second. The remaining fraction is added to the next second."""
        expected = second.rate * duration_s + self._owed
        count = int(expected)
        self._owed = expected - count
        return count

    def _share_of(self, ios: int) -> int:
        reads = ios * self._workload.read_percent / 100
        return min(ios, int(reads + self._random.random()))

    def _stats(self, side: str, seconds: Sequence[Second], counts: Sequence[int], spread: float) -> list[IoStats]:
        if not any(counts):
            return [NO_IO] * len(counts)
        stalled = [min(count, second.stalled_ios) for second, count in zip(seconds, counts, strict=True)]
        free: Ints = np.array(counts, dtype=np.int64) - stalled
        latencies = [second.read if side == "read" else second.write for second in seconds]
        first, table = _table(latencies, free, spread, self._random)
        stats = []
        for number, (row, count) in enumerate(zip(table, counts, strict=True)):
            if not count:
                stats.append(NO_IO)
                continue
            places = np.flatnonzero(row)
            indices, times = places + first, row[places]
            if stalled[number]:
                indices, times = _with(indices, times, seconds[number].stall_s, stalled[number])
            self._dense[side][indices] += times
            sum_ns = int(times @ BUCKET_MIDDLE_NS[indices])
            moved = self._moved(count)
            self._bytes[side] += moved
            self._sums_ns[side] += sum_ns
            stats.append(_io_stats(Histogram(indices, times), moved, sum_ns))
        return stats

    def _moved(self, ios: int) -> int:
        """Return the number of bytes in ``ios`` I/Os, according to the share of each block size. Fractions are rounded
        at random.
        """
        first, *others = block_shares(self._workload)
        left, moved = ios, 0
        for share in others:
            count = min(left, int(ios * share.percent / 100 + self._random.random()))
            left, moved = left - count, moved + count * share.block_size_bytes
        return moved + left * first.block_size_bytes


def _io_stats(histogram: Histogram, moved: int, sum_ns: int) -> IoStats:
    ios = histogram.total
    if not ios:
        return NO_IO
    return IoStats(
        ios=ios,
        bytes=moved,
        latency_ios=ios,
        latency_sum_ns=sum_ns,
        latency_min_ns=int(BUCKET_MIDDLE_NS[histogram.indices[0]]),
        latency_max_ns=int(BUCKET_MIDDLE_NS[histogram.indices[-1]]),
        histogram=histogram,
    )


def _with(indices: Ints, times: Ints, stall_s: float, ios: int) -> tuple[Ints, Ints]:
    """Add to the histogram the I/Os that waited for the end of a stall."""
    bucket = bucket_of_ns(int(stall_s * 1e9))
    place = int(np.searchsorted(indices, bucket))
    if place < indices.size and indices[place] == bucket:
        times[place] += ios
        return indices, times
    return np.insert(indices, place, bucket), np.insert(times, place, ios)


def _table(latencies: Sequence[Latency], counts: Ints, spread: float, random: np.random.Generator) -> tuple[int, Ints]:
    """Return the index of the first bucket, and the I/Os in this bucket and the following buckets for each second."""
    mean_ns, slow_share, slow_times = np.array(latencies, dtype=np.float64).T
    rare = _RARE_SHARE * random.lognormal(-(_RARE_NOISE**2) / 2, _RARE_NOISE, counts.size)
    rare_times = 1 + np.minimum(_RARE_TIMES - 1, _RARE_MOST_NS / mean_ns)
    usual_ns = mean_ns / (1 + slow_share * (slow_times - 1) + rare * (rare_times - 1))
    components = (
        (1 - slow_share - rare, usual_ns, spread),
        (slow_share, usual_ns * slow_times, spread),
        (rare, usual_ns * rare_times, _RARE_SPREAD),
    )
    least, most = np.log(usual_ns.min()), np.log((usual_ns * slow_times).max())
    ios = max(2.0, float(counts.max()))
    # Less than half an I/O is expected below this bucket.
    first = int(np.searchsorted(_UPPER_LN, least - np.log(2 * ios) / spread - 0.2))
    rarest = np.log((usual_ns * rare_times).max()) + np.log(2 * ios * _RARE_SHARE + 2) / _RARE_SPREAD
    last = int(np.searchsorted(_UPPER_LN, max(most + np.log(2 * ios) / spread, rarest) + 0.2))
    first, last = min(first, BUCKETS - 1), min(max(last, first + 1), BUCKETS - 1)
    upper = _UPPER_LN[first : last + 1]
    below = sum(share[:, np.newaxis] * _cumulated_share(upper, scale, shape) for share, scale, shape in components)
    expected = counts[:, np.newaxis] * np.asarray(below)
    expected[:, -1] = counts
    steps = np.floor(expected + random.random((counts.size, 1))).astype(np.int64)
    return first, np.diff(steps, axis=1, prepend=0)


def _cumulated_share(upper_ln: Floats, mean_ns: Floats, spread: float) -> Floats:
    """Return the share of I/Os up to the upper edge of each bucket, for a log-logistic distribution with this mean."""
    scale_ln = np.log(mean_ns * np.sin(np.pi / spread) / (np.pi / spread))
    distance = np.clip(spread * (upper_ln - scale_ln[:, np.newaxis]), -60, 60)
    return np.asarray(1 / (1 + np.exp(-distance)))


Floats = NDArray[np.float64]

# The level of an unsteady drive changes with every new load, and at these intervals under the same load. For any length
# of a round or slice, at least one of the three levels therefore differs between two rounds or slices.
_SCALES_S = (1.0, 8.0, 60.0)
# The n-th level is the fractional part of n times this number. For the distances that tests use, no five levels at
# equal distances are close together.
_GOLDEN = (sqrt(5) - 1) / 2
_LEAST_SHARE = 0.02


class Latency(NamedTuple):
    """The latency of one direction in one second. ``slow_share`` of the I/Os take ``slow_times`` as long as the other
    I/Os.
    """

    mean_ns: float
    slow_share: float = 0.0
    slow_times: float = 1.0


class Second(NamedTuple):
    """A second of a load, or a part of a second.

    ``rate`` is the number of I/Os per second. ``stalled_ios`` of these I/Os also had to wait for ``stall_s``.
    """

    rate: float
    read: Latency
    write: Latency
    stalled_ios: int = 0
    stall_s: float = 0.0


class SimulatedDrive(Protocol):
    """A running model of a drive. Its methods raise EngineError after the drive has failed permanently.

    Attributes:
        warning_c: the drive's own temperature limit in degrees Celsius. None means that the drive has no limit.
        flush_s: the time of a flush of the write cache.
        reads_go_first: whether reads overtake writes. Reads still wait ``suspend_s`` for a die that programs.
    """

    read_spread: float
    write_spread: float
    warning_c: float | None
    flush_s: float
    suspend_s: float
    reads_go_first: bool

    def serve(self, workload: Workload, duration_s: float) -> Second:
        """Serve the load for ``duration_s``, which is limited to a second. The call changes the state of the drive."""
        ...

    def idle(self, duration_s: float) -> None:
        """Change the state of the drive to the state after ``duration_s`` without I/O."""
        ...

    def trim(self, workload: Workload, amount_bytes: float) -> None:
        """Discard the data of a random part of the load's region. In this method, a trim is not an I/O and needs no
        time.
        """
        ...

    def purge(self) -> None:
        """Put the drive into "as new" state."""
        ...

    def read_log(self, at_s: float) -> Reading | None:
        """Return the log of the drive at the time ``at_s``. None means that the drive has no log."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A rate in I/Os per second, and the mean response times in us that belong to this rate."""

    rate: float
    read_us: float
    write_us: float


def balance(
    workload: Workload,
    most: float,
    response_us: Callable[[float], tuple[float, float]],
    *,
    places: int,
    writes_wait: bool,
) -> Response:
    """Return the rate at which the load keeps its I/Os outstanding (Little's law), limited to ``most``.

    Args:
        workload: if the workload has ``offered_iops`` and the drive can reach this rate, this rate is returned.
        most: the rate at which one part of the drive is always busy.
        response_us: a function that returns the response times of a read and of a write at a rate, in µs. The times do
            not decrease when the rate grows.
        places: number of I/Os that the drive accepts at the same time. Other I/Os wait in the host.
        writes_wait: whether only writes wait longer than ``response_us`` at the rate ``most``. This is the case if the
            flash limits the rate, because the write buffer is then full. Otherwise all I/Os wait.
    """
    reads = workload.read_percent / 100
    outstanding = workload.total_outstanding_ios
    inside = min(outstanding, places)

    def mean_us(rate: float) -> float:
        read_us, write_us = response_us(rate)
        return reads * read_us + (1 - reads) * write_us

    rate = most
    if most * mean_us(most) > inside * 1e6:
        low, high = 0.0, most
        for _ in range(30):
            rate = (low + high) / 2
            low, high = (rate, high) if rate * mean_us(rate) < inside * 1e6 else (low, rate)
        rate = low
    offered = workload.offered_iops
    if offered is not None and offered < rate:
        return _below(workload, offered, most, response_us)
    read_us, write_us = response_us(rate)
    outside_us = (outstanding - inside) * 1e6 / rate
    beyond_us = max(0.0, inside * 1e6 / rate - mean_us(rate))
    if writes_wait and reads < 1:
        write_us += beyond_us / (1 - reads)
    else:
        read_us, write_us = read_us + beyond_us, write_us + beyond_us
    return Response(rate=rate, read_us=read_us + outside_us, write_us=write_us + outside_us)


def _below(
    workload: Workload, offered: float, most: float, response_us: Callable[[float], tuple[float, float]]
) -> Response:
    """Return the response at an offered rate that the drive can reach.

    At such a rate the drive is sometimes idle, and an I/O may wait for other I/Os.
    """
    use = min(offered / most, 0.999)
    # At a single server, I/Os that arrive at random times wait twice as long as evenly spaced I/Os.
    waits_us = use / (1 - use) * 1e6 / most * (1.0 if workload.arrival is Arrival.POISSON else 0.5)
    read_us, write_us = (time_us + waits_us for time_us in response_us(offered))
    reads = workload.read_percent / 100
    mean_us = reads * read_us + (1 - reads) * write_us
    # A full queue limits the mean of all I/Os (Little's law), but not the mean of reads or of writes alone.
    fits = min(1.0, workload.total_outstanding_ios * 1e6 / offered / mean_us)
    return Response(rate=offered, read_us=fits * read_us, write_us=fits * write_us)


def block_shares(workload: Workload) -> tuple[BlockShare, ...]:
    """Return the block sizes of a workload with their shares, even if there is only one size."""
    return workload.block_mix or (BlockShare(workload.block_size_bytes, 100),)


def mean_units(workload: Workload, unit_bytes: int) -> float:
    """Return the mean number of units that an I/O touches. A random I/O touches whole units. Sequential I/Os share
    units.
    """
    return sum(
        share.percent
        / 100
        * (
            ceil(share.block_size_bytes / unit_bytes)
            if workload.access is Access.RANDOM
            else share.block_size_bytes / unit_bytes
        )
        for share in block_shares(workload)
    )


class Moods:
    """The faults of one drive over time. ``at_s`` is the time in seconds since the drive was switched on."""

    def __init__(self, misbehaviour: Misbehaviour) -> None:
        self._does = misbehaviour
        self._loads: dict[Workload, int] = {}
        self._load: Workload | None = None
        self._since_s = 0.0

    def share(self, workload: Workload, at_s: float, fills: float) -> float:
        """Return the share of the drive's rate that remains under a load, after ``fills`` writes of the capacity."""
        does = self._does
        share = self._level(workload, at_s) if does.unrest else 1.0
        # The first fall occurs at the end of an interval, so that the fall is visible in the results.
        every_s, lasts_s = does.cliff_every_s, does.cliff_lasts_s
        if every_s is not None and at_s % every_s >= every_s - lasts_s:
            share *= does.cliff_share
        left: float = (1 - does.weaker_per_fill) ** fills
        return max(_LEAST_SHARE, share * left)

    def stall_s(self, at_s: float, duration_s: float) -> float:
        """Return the time for which the drive does not answer within the next ``duration_s``."""
        every_s = self._does.stall_every_s
        if every_s is None or (at_s + duration_s) // every_s == at_s // every_s:
            return 0.0
        return min(self._does.stall_s, 0.9 * duration_s)

    def require_alive(self, fills: float) -> None:
        """Raise EngineError if the drive has failed after ``fills`` writes of its capacity."""
        end = self._does.fails_after_fills
        if end is not None and fills >= end:
            raise EngineError(
                "Input/output error: the simulated drive has failed, because a drive of this preset "
                f"fails when {end:g} times its capacity has been written (SIMULATED)"
            )

    def _level(self, workload: Workload, at_s: float) -> float:
        if workload != self._load:
            self._load, self._since_s = workload, at_s
            self._loads[workload] = self._loads.get(workload, 0) + 1
        level = 1.0
        for scale_s in _SCALES_S:
            number = self._loads[workload] + int((at_s - self._since_s) / scale_s + 1e-6)
            level *= (1 - self._does.unrest) ** (number * _GOLDEN % 1)
        return level
