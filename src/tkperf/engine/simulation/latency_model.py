"""I/Os with their latencies, drawn from rates and means, in fio's buckets; many seconds at once.

Latencies follow the log-logistic distribution, whose tail falls like a power as drives' do. Most I/Os,
slow ones and few very slow ones are mixed. Counts are drawn systematically: one random number
places the steps of the expected counts, so that they add up and the mean is the one
that Little's law asks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tkperf.engine import OnSample
from tkperf.engine.simulation.service import Floats, Latency, Second, SimulatedDrive, block_shares
from tkperf.model.histogram import BUCKET_MIDDLE_NS, BUCKET_UPPER_NS, BUCKETS, Histogram, bucket_of_ns
from tkperf.model.measurement import NO_IO, IoStats, Sample
from tkperf.model.workload import Workload

# This share of all I/Os takes so many times as long on every drive (retries, tables written, host
# interrupts), but only so much longer at the most.
_RARE_SHARE, _RARE_TIMES, _RARE_SPREAD, _RARE_MOST_NS = 2e-4, 8.0, 5.0, 100e6
# Seconds drawn at a time.
_DRAWN_TOGETHER = 60
# The spread of that share from second to second.
_RARE_NOISE = 0.8
_UPPER_LN = np.log(BUCKET_UPPER_NS + 1.0)

Ints = NDArray[np.int64]


class Draw:
    """The I/Os of a load: its samples, drawn many seconds at a time, and the statistics of all of them."""

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
        """Take in the next second, or the part of it that the load lasted."""
        if len(self._seconds) == _DRAWN_TOGETHER:
            self._draw()
        self._seconds.append(second)
        self._durations_s.append(duration_s)

    def finish(self, amount_bytes: int | None = None) -> tuple[IoStats, IoStats]:
        """Draw the rest. Return the statistics of all reads and of all writes, of ``amount_bytes`` if given."""
        self._draw(amount_bytes)
        read, write = (
            _io_stats(Histogram.from_dense(self._dense[side]), self._bytes[side], self._sums_ns[side])
            for side in ("read", "write")
        )
        return read, write if amount_bytes is None else replace(write, bytes=amount_bytes)

    def _draw(self, amount_bytes: int | None = None) -> None:
        """Draw the samples of the seconds at hand. The last one completes the sum to ``amount_bytes`` of writes."""
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
            # The last block of a fill may be smaller.
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
        """Return the whole I/Os of a second; the remaining fraction is owed to the next one."""
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
        """Return the bytes of ``ios`` I/Os, each size with its share of them; chance decides on fractions."""
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
    """Add I/Os that waited for a stall to end."""
    bucket = bucket_of_ns(int(stall_s * 1e9))
    place = int(np.searchsorted(indices, bucket))
    if place < indices.size and indices[place] == bucket:
        times[place] += ios
        return indices, times
    return np.insert(indices, place, bucket), np.insert(times, place, ios)


def _table(latencies: Sequence[Latency], counts: Ints, spread: float, random: np.random.Generator) -> tuple[int, Ints]:
    """Return the first bucket, and for each second the I/Os in it and the following buckets."""
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
    # Less than half an I/O lies outside these buckets.
    first = int(np.searchsorted(_UPPER_LN, least - np.log(2 * ios) / spread - 0.2))
    rarest = np.log((usual_ns * rare_times).max()) + np.log(2 * ios * _RARE_SHARE + 2) / _RARE_SPREAD
    last = int(np.searchsorted(_UPPER_LN, max(most + np.log(2 * ios) / spread, rarest) + 0.2))
    first, last = min(first, BUCKETS - 1), min(max(last, first + 1), BUCKETS - 1)
    upper = _UPPER_LN[first : last + 1]
    below = sum(share[:, np.newaxis] * _below(upper, scale, shape) for share, scale, shape in components)
    expected = counts[:, np.newaxis] * np.asarray(below)
    expected[:, -1] = counts
    steps = np.floor(expected + random.random((counts.size, 1))).astype(np.int64)
    return first, np.diff(steps, axis=1, prepend=0)


def _below(upper_ln: Floats, mean_ns: Floats, spread: float) -> Floats:
    """Return the share of I/Os up to each bucket's upper edge: a log-logistic distribution with that mean."""
    scale_ln = np.log(mean_ns * np.sin(np.pi / spread) / (np.pi / spread))
    distance = np.clip(spread * (upper_ln - scale_ln[:, np.newaxis]), -60, 60)
    return np.asarray(1 / (1 + np.exp(-distance)))
