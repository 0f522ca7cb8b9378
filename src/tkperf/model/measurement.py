"""Measured values: I/O statistics of an interval, samples of about one second, and whole measurements.

None always means "not measured". Latency is the whole response time in ns, from submission to completion (fio's
``lat``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import ceil
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tkperf.model import histogram
from tkperf.model.disturbance.io import HOST_LIMITED, WORDS, Disturbance, DisturbanceCode, find_doubtful
from tkperf.model.histogram import Histogram
from tkperf.model.reported_percentiles import LEAST_IOS_BEYOND, REPORTED_PERCENTILES
from tkperf.model.workload import WHOLE_LOAD, PartKey, Workload

TOO_FEW_IOS = f"fewer than {LEAST_IOS_BEYOND} I/Os expected beyond that percentile"


def explain_rare(percentiles: Iterable[Mapping[str, float | None]], only: str | None = None) -> tuple[str, ...]:
    """Return the footnote of a table in which a dash marks cells with too few I/Os. If the table has no such dash, the
    result is empty.

    Args:
        percentiles: the percentiles of each cell, keyed by name. A cell without any value was not measured.
        only: the only percentile that the table shows. None means that the table shows all percentiles.
    """
    rare = any(
        any(value is not None for value in cell.values())
        and (None in cell.values() if only is None else cell[only] is None)
        for cell in percentiles
    )
    return (f"- {TOO_FEW_IOS}",) if rare else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IoStats:
    """Statistics of the I/Os of one direction, or of both directions together, over an interval.

    The mean latency is ``latency_sum_ns`` / ``latency_ios``. ``latency_ios`` is a separate field, because fio's count
    of latencies may be a few I/Os behind ``ios`` while a job runs.
    """

    ios: int = 0
    bytes: int = 0
    latency_ios: int = 0
    latency_sum_ns: int = 0
    latency_min_ns: int | None = None
    latency_max_ns: int | None = None
    histogram: Histogram = histogram.EMPTY

    @property
    def latency_mean_ns(self) -> float | None:
        return self.latency_sum_ns / self.latency_ios if self.latency_ios else None

    def percentile_ns(self, percent: float) -> float | None:
        """Return a latency percentile in ns. The result is accurate to one histogram bucket, and lies between the exact
        minimum and maximum.

        The result is None if fewer than ten I/Os are expected beyond the percentile.
        """
        value = self.histogram.percentile_ns(percent)
        if value is None:
            return None
        if self.latency_max_ns is not None:
            value = min(value, self.latency_max_ns)
        if self.latency_min_ns is not None:
            value = max(value, self.latency_min_ns)
        return value

    def __add__(self, other: IoStats) -> IoStats:
        """Return the sum. The mean latency is weighted by the number of I/Os. The minimum and the maximum are those of
        both operands together.
        """
        return add_all((self, other))

    @property
    def is_empty(self) -> bool:
        counts = self.ios or self.bytes or self.latency_ios
        return not counts and self.latency_min_ns is None and self.latency_max_ns is None

    def since(self, earlier: IoStats) -> IoStats:
        """Return the statistics of the interval between two cumulative readings.

        A minimum or maximum that changed in the interval is exact. Otherwise, the result contains the edge of the
        lowest or highest bucket that gained I/Os. This edge is accurate to one bucket (1/64 of the value).

        Raises:
            ValueError: a count decreased.
        """
        if self.ios < earlier.ios or self.bytes < earlier.bytes:
            raise ValueError("the earlier reading contains more I/Os or bytes than the later reading")
        gained = self.histogram - earlier.histogram
        latency_min, latency_max = gained.lowest_ns, gained.highest_ns
        if latency_min is not None and self.latency_min_ns is not None:
            moved = earlier.latency_min_ns is None or self.latency_min_ns < earlier.latency_min_ns
            latency_min = self.latency_min_ns if moved else max(latency_min, self.latency_min_ns)
        if latency_max is not None and self.latency_max_ns is not None:
            moved = earlier.latency_max_ns is None or self.latency_max_ns > earlier.latency_max_ns
            latency_max = self.latency_max_ns if moved else min(latency_max, self.latency_max_ns)
        return IoStats(
            ios=self.ios - earlier.ios,
            bytes=self.bytes - earlier.bytes,
            latency_ios=max(0, self.latency_ios - earlier.latency_ios),
            latency_sum_ns=max(0, self.latency_sum_ns - earlier.latency_sum_ns),
            latency_min_ns=latency_min,
            latency_max_ns=latency_max,
            histogram=gained,
        )


NO_IO = IoStats()


def add_all(stats: Iterable[IoStats]) -> IoStats:
    """Return the sum of all statistics, with the rules of ``IoStats.__add__``. The function is fast enough for the
    1,440 minutes of a day.
    """
    # Most loads only read or only write, and the addition of histograms is slow.
    parts = [part for part in stats if not part.is_empty]
    if len(parts) < 2:
        return parts[0] if parts else NO_IO
    least = [part.latency_min_ns for part in parts if part.latency_min_ns is not None]
    most = [part.latency_max_ns for part in parts if part.latency_max_ns is not None]
    return IoStats(
        ios=sum(part.ios for part in parts),
        bytes=sum(part.bytes for part in parts),
        latency_ios=sum(part.latency_ios for part in parts),
        latency_sum_ns=sum(part.latency_sum_ns for part in parts),
        latency_min_ns=min(least, default=None),
        latency_max_ns=max(most, default=None),
        histogram=Histogram.sum_of(part.histogram for part in parts),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPart:
    """The I/Os of one stream of a combination, over a second or a whole measurement.

    ``host_limited`` means that the threads of the stream used up the CPU time that was available to them, so that the
    host limited the stream.
    """

    name: str
    read: IoStats = NO_IO
    write: IoStats = NO_IO
    trim: IoStats = NO_IO
    flush: IoStats = NO_IO
    host_limited: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """About one second of a step. ``start_s`` counts from the first I/O of the step.

    In a combination, ``streams`` contains the part of each stream, and the other fields are the total of all streams.
    """

    start_s: float
    duration_s: float
    read: IoStats
    write: IoStats
    trim: IoStats = NO_IO
    flush: IoStats = NO_IO
    streams: tuple[StreamPart, ...] = ()

    @property
    def both(self) -> IoStats:
        """Return the statistics of reads and writes together. For a load that only trims, return those of the trims."""
        return _both_or_trims(self)

    @property
    def iops(self) -> float:
        return (self.read.ios + self.write.ios or self.trim.ios) / self.duration_s

    @property
    def bytes_per_s(self) -> float:
        return (self.read.bytes + self.write.bytes or self.trim.bytes) / self.duration_s

    def of_stream(self, name: str) -> Sample:
        """Return a sample that contains only the I/Os of one stream."""
        part = _part_of(self.streams, name)
        # The sample is built directly, because a run has many samples and dataclasses.replace needs several times as
        # long.
        return Sample(
            start_s=self.start_s,
            duration_s=self.duration_s,
            read=part.read,
            write=part.write,
            trim=part.trim,
            flush=part.flush,
        )

    def of_flushes(self) -> Sample:
        """Return a sample that contains the flushes instead of the I/Os."""
        return Sample(start_s=self.start_s, duration_s=self.duration_s, read=NO_IO, write=self.flush)


def add_parts(name: str, parts: Sequence[Sample | StreamPart]) -> StreamPart:
    """Return the sum of parts that ran at the same time, as one part with the given name."""
    return StreamPart(
        name=name,
        read=add_all(part.read for part in parts),
        write=add_all(part.write for part in parts),
        trim=add_all(part.trim for part in parts),
        flush=add_all(part.flush for part in parts),
    )


def _both_or_trims(parts: Sample | Measurement) -> IoStats:
    return parts.trim if parts.read.is_empty and parts.write.is_empty else parts.read + parts.write


def _part_of(parts: Iterable[StreamPart], name: str) -> StreamPart:
    return next(each for each in parts if each.name == name)


def samples_of(samples: Sequence[Sample], workload: Workload) -> tuple[Sample, ...]:
    """Return the samples of one stream, or of flushes. The result is empty if the samples do not distinguish
    streams.
    """
    stream = workload.stream
    if stream is not None:
        samples = [each.of_stream(stream) for each in samples if each.streams]
    return tuple(each.of_flushes() if workload.flushes else each for each in samples)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestSamples:
    """The newest samples of a step, and the number of earlier samples that are omitted."""

    left_out: int = 0
    samples: tuple[Sample, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuUse:
    """CPU time of the load generator's threads, in percent of one CPU."""

    busiest_thread_percent: float
    all_threads_percent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The measurement of one step, or of one slice of a stream.

    ``duration_s`` is the measured duration, not the planned duration. ``samples`` are the seconds of the measurement.
    ``host_limited`` means that the CPUs of the host, and not the device, limited the rate. ``rates_known`` is False if
    the I/Os were not counted, as in an imported latency test. In this case, ``iops`` and ``megabytes_per_s`` have no
    meaning. ``disturbed_by`` contains the codes of disturbances for procedures. The record of the step contains the
    disturbances themselves. In a combination, ``streams`` contains the I/Os of each stream, and the other fields are
    the total of all streams.
    """

    duration_s: float
    read: IoStats
    write: IoStats
    trim: IoStats = NO_IO
    flush: IoStats = NO_IO
    streams: tuple[StreamPart, ...] = ()
    samples: tuple[Sample, ...] = field(default=(), repr=False)
    cpu: CpuUse | None = None
    host_limited: bool = False
    rates_known: bool = True
    disturbed_by: tuple[DisturbanceCode, ...] = ()
    # The sum is stored, because it is read many times and the addition of histograms is slow.
    _both: IoStats | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def doubt(self) -> str | None:
        """Return, in words, the reason why the values may not describe only the device. None means that no reason is
        recorded.
        """
        words = [HOST_LIMITED] if self.host_limited else []
        words += [WORDS[code] for code in self.disturbed_by]
        return ", ".join(words) or None

    @property
    def both(self) -> IoStats:
        """Return the statistics of reads and writes together. For a load that only trims, return those of the trims."""
        if self._both is None:
            object.__setattr__(self, "_both", _both_or_trims(self))
            assert self._both is not None
        return self._both

    @property
    def ios(self) -> int:
        return self.read.ios + self.write.ios or self.trim.ios

    @property
    def bytes(self) -> int:
        return self.read.bytes + self.write.bytes or self.trim.bytes

    def of_stream(self, name: str) -> Measurement:
        """Return the measurement of one stream of a combination."""
        part = _part_of(self.streams, name)
        # The measurement is built directly for the same reason as in ``Sample.of_stream``.
        return Measurement(
            duration_s=self.duration_s,
            read=part.read,
            write=part.write,
            trim=part.trim,
            flush=part.flush,
            samples=tuple(sample.of_stream(name) for sample in self.samples),
            host_limited=part.host_limited,
            rates_known=self.rates_known,
            disturbed_by=self.disturbed_by,
        )

    @property
    def iops(self) -> float:
        return self.ios / self.duration_s

    @property
    def megabytes_per_s(self) -> float:
        """Return the throughput in MB/s (10^6 bytes per second)."""
        return self.bytes / 1e6 / self.duration_s

    @property
    def latency_mean_us(self) -> float | None:
        mean_ns = self.both.latency_mean_ns
        return None if mean_ns is None else mean_ns / 1000

    def changed(self, change: Callable[[IoStats], IoStats]) -> Measurement:
        """Return a copy of the measurement without seconds, in which ``change`` was applied to all I/O statistics,
        including those of each stream.
        """
        streams = tuple(_changed(part, change) for part in self.streams)
        return _changed(replace(self, streams=streams, samples=()), change)

    def of_flushes(self) -> Measurement:
        """Return a measurement of the flushes of a single load or of one stream, instead of the I/Os. Flushes transfer
        no bytes.
        """
        samples = tuple(each.of_flushes() for each in self.samples)
        return replace(self, read=NO_IO, write=self.flush, trim=NO_IO, flush=NO_IO, samples=samples, cpu=None)


Parts = TypeVar("Parts", Measurement, StreamPart)


def _changed(parts: Parts, change: Callable[[IoStats], IoStats]) -> Parts:
    return replace(
        parts, read=change(parts.read), write=change(parts.write), trim=change(parts.trim), flush=change(parts.flush)
    )


def as_answer(measurement: Measurement, disturbances: Iterable[Disturbance] | None) -> Measurement:
    """Return the measurement in the reduced form that a procedure receives. A resumed run sends the same answers to the
    procedure again. The reduced form saves memory, because the answers stay in memory for days.

    The answer contains the totals without samples, and the codes of the disturbances. The histograms of the answer have
    fewer buckets, but the reported percentiles of reads, of writes, and of both together lie in the same buckets as
    before. No other values may be computed from these histograms.
    """
    parts = tuple(_with_few_buckets(part) for part in measurement.streams)
    answer = replace(measurement, streams=parts, samples=(), disturbed_by=find_doubtful(disturbances or ()))
    return _with_few_buckets(answer)


def _with_few_buckets(parts: Parts) -> Parts:
    """Return the I/Os of each kind with histograms in which only the reported percentiles are correct."""
    sides = (parts.read, parts.write, parts.trim, parts.flush)
    histograms: list[Histogram] = [stats.histogram for stats in sides]
    reads, writes = histograms[:2]
    both: list[Histogram] = [reads + writes] if reads.indices.size and writes.indices.size else []
    found = {each.bucket_of_percentile(percent) for each in (*histograms, *both) for percent in REPORTED_PERCENTILES}
    ends = [bucket for bucket in found if bucket is not None]
    return _changed(parts, lambda stats: replace(stats, histogram=stats.histogram.gathered(ends)))


FloatArray = NDArray[np.float64]


def _empty() -> FloatArray:
    return np.empty(0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seconds:
    """The samples as columns of values. Each column has a value for each sample, for reads and writes together. NaN
    means "not measured".

    ``start_s`` counts from the first I/O of the step, or from the first I/O of the first step if several steps were
    joined. Latencies are whole response times. ``parts`` are the seconds of each stream of a combination, and of the
    flushes of each load, keyed by the ``part_key`` of the workload.
    """

    start_s: FloatArray = field(default_factory=_empty)
    duration_s: FloatArray = field(default_factory=_empty)
    iops: FloatArray = field(default_factory=_empty)
    megabytes_per_s: FloatArray = field(default_factory=_empty)
    latency_mean_us: FloatArray = field(default_factory=_empty)
    latency_max_us: FloatArray = field(default_factory=_empty)
    parts: Mapping[PartKey, Seconds] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.start_s.size

    def of(self, workload: Workload) -> Seconds:
        """Return the seconds of one stream or of flushes. For any other workload, return all seconds."""
        if workload.part_key == WHOLE_LOAD:
            return self
        return self.parts.get(workload.part_key, Seconds())

    @property
    def end_s(self) -> float:
        """Return the end of the last sample, in s. If there are no samples, the result is 0."""
        return float(self.start_s[-1] + self.duration_s[-1]) if len(self) else 0.0


def join(pieces: Sequence[Seconds], starts_s: Sequence[float]) -> Seconds:
    """Return the seconds of all pieces in one series. Each piece is moved to its start time. The result has no parts of
    streams.
    """
    if not pieces:
        return Seconds()
    columns: dict[str, Any] = {
        column.name: np.concatenate([getattr(piece, column.name) for piece in pieces])
        for column in fields(Seconds)
        if column.name not in ("start_s", "parts")
    }
    moved = [piece.start_s + start_s for piece, start_s in zip(pieces, starts_s, strict=True)]
    return Seconds(start_s=np.concatenate(moved), **columns)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SecondsColumn:
    """A quantity of a step over time, reduced to a limited number of columns, such as the pixels of a chart.

    ``low``, ``high`` and ``mean`` are the minimum, the maximum and the mean of the samples that begin in a column. The
    minimum and the maximum keep every spike, even if a column contains many samples.
    """

    at_s: FloatArray
    low: FloatArray
    mean: FloatArray
    high: FloatArray


def reduce_to_columns(start_s: FloatArray, values: FloatArray, columns: int) -> SecondsColumn:
    """Return the minimum, mean and maximum of each of ``columns`` equal parts of the time.

    Parts without a measured sample are omitted. If there are no more samples than columns, each sample has its own
    column. The samples may be in any order.

    Raises:
        ValueError: ``columns`` is less than 1.
    """
    if columns < 1:
        raise ValueError("there must be a column")
    order = np.argsort(start_s, kind="stable")
    order = order[~np.isnan(values[order])]
    start_s, values = start_s[order], values[order]
    if values.size <= columns:
        return SecondsColumn(at_s=start_s, low=values, mean=values, high=values)
    span_s = start_s[-1] - start_s[0] or 1.0
    column_of = np.minimum(((start_s - start_s[0]) / span_s * columns).astype(int), columns - 1)
    first = np.flatnonzero(np.diff(column_of, prepend=-1))
    counts = np.diff(first, append=values.size)
    return SecondsColumn(
        at_s=start_s[first],
        low=np.minimum.reduceat(values, first),
        mean=np.add.reduceat(values, first) / counts,
        high=np.maximum.reduceat(values, first),
    )


def places_of_extremes(values: Sequence[float], most: int) -> list[int]:
    """Return the indices of the lowest and the highest value in each group of neighbouring values. The result contains
    no more than ``most`` indices.

    If there are no more than ``most`` values, the result contains all indices. The result always contains the first and
    the last index.

    Raises:
        ValueError: ``most`` is too small for two groups.
    """
    if most < 6:
        raise ValueError(f"the argument 'most' must be 6 or more, but it is {most}")
    if len(values) <= most:
        return list(range(len(values)))
    kept = {0, len(values) - 1}
    size = ceil(2 * len(values) / (most - 2))
    for first in range(0, len(values), size):
        group = range(first, min(first + size, len(values)))
        kept |= {min(group, key=values.__getitem__), max(group, key=values.__getitem__)}
    return sorted(kept)
