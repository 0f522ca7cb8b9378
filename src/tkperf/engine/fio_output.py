"""The conversion of fio's JSON documents to readings, samples and a measurement, and the evaluation of fio's exit. This
module does no I/O.

With ``--output-format=json+ --status-interval=1`` fio prints a cumulative document each second. The difference between
two documents contains the values of that second: I/Os, bytes, the sum of latencies, and the whole histogram.
"""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Annotated

import msgspec

from tkperf.engine import OnSample
from tkperf.model.decoding import decode_json
from tkperf.model.errors import EngineError, LostAtGateError, StepFailedError
from tkperf.model.histogram import Histogram
from tkperf.model.measurement import NO_IO, CpuUse, IoStats, Measurement, Sample, StreamPart, add_all, add_parts
from tkperf.model.plausibility import MOST_CPU_PERCENT
from tkperf.model.workload import Workload

# Two status documents of fio are merged if the time between them is shorter than this value, because fio may print an
# additional document directly at its start or end.
SHORTEST_SAMPLE_S = 0.05
# A status document of fio contains up to 60 KB for each job. fio accepts up to 4,096 jobs, but runs of tkperf have only
# a few dozen.
LARGEST_DOCUMENT_BYTES = 32 << 20
# In addition to JSON documents, fio prints a few lines for each job.
LARGEST_NOTES_BYTES = 16 << 20
MOST_NOTES, LONGEST_NOTE = 100, 500
# The lines of fio's JSON are shorter than the longest possible path.
LONGEST_LINE_BYTES = 1 << 20
# If a thread uses this share of a CPU, or fio uses this share of all CPUs, no CPU time is left for more I/O.
CPU_EXHAUSTED = 0.95

# The exit status of fio after SIGTERM or SIGINT. The status means that a signal ended fio early, not that fio failed.
_ENDED_BY_SIGNAL = 128
# When a thread of fio ends, it may have to wait for fio's report of all threads. After about 5 s, the thread ends with
# EDEADLK ("stuck grabbing stat_sem" in fio's ``backend.c``).
_ADVICE_ON_DEADLOCK = (
    ". A thread of fio waited 5 s for the report of all threads. Either the CPUs of the host were too busy for this "
    "number of threads, or the device did not answer; check the kernel log"
)

# This limit is far above the counts of any device, and so small that sums fit a 64-bit integer.
_Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 52)]
_Nanoseconds = Annotated[int, msgspec.Meta(ge=0, le=1 << 60)]
_Mean = Annotated[float, msgspec.Meta(ge=0, le=float(1 << 60))]
_ErrorNumber = Annotated[int, msgspec.Meta(ge=-(1 << 31), lt=1 << 31)]


class _Latency(msgspec.Struct):
    min: _Nanoseconds = 0
    max: _Nanoseconds = 0
    mean: _Mean = 0.0
    N: _Count = 0
    bins: dict[_Nanoseconds, _Count] = {}


class _Direction(msgspec.Struct):
    io_bytes: Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
    total_ios: _Count
    runtime: _Count
    lat_ns: _Latency


class _Flushes(msgspec.Struct):
    """The counters of flushes (``sync``) in fio's output. ``total_ios`` omits some kinds of flushes, but the latencies
    contain all kinds.
    """

    lat_ns: _Latency


class _Job(msgspec.Struct):
    jobname: str
    error: _ErrorNumber
    read: _Direction
    write: _Direction
    trim: _Direction | None = None
    sync: _Flushes | None = None
    job_start: _Count = 0
    usr_cpu: float | None = None
    sys_cpu: float | None = None
    iodepth_level: dict[str, float] = {}


class _Document(msgspec.Struct):
    jobs: list[_Job]
    timestamp_ms: _Count = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReading:
    """The part of a reading that belongs to one job. The keys of ``depth_percents`` are the depths in fio's form, such
    as ``8`` or ``>=64``.
    """

    ios: int
    bytes: int
    elapsed_s: float
    depth_percents: Mapping[str, float]

    def reached(self, io_depth: int) -> bool | None:
        """Return whether ``io_depth`` I/Os were outstanding at any time. ``io_depth`` is first rounded down to a power
        of two, and to no more than 64, because fio reports only these depths. None means that the answer is not known.
        """
        if not self.depth_percents:
            return None
        name = ">=64" if io_depth >= 64 else str(1 << (io_depth.bit_length() - 1))
        return self.depth_percents.get(name, 0.0) > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FioReading:
    """The cumulative counters of fio at one moment.

    Attributes:
        elapsed_s: the time since the first I/O.
        wall_clock_s: the time of the reading on the wall clock, according to fio.
        arrived_s: the time at which fio made the reading or tkperf read it, on the monotonic clock. None means that the
            value is not known.
        began_wall_clock_s: the time at which the first job passed its gate, on the wall clock. None means that the
            value is not known, because fio before 3.36 does not report this time.
        cpu: the CPU use. None means that fio reported impossible numbers.
        streams: the parts of the streams that run together. An empty value means that one load runs alone.
    """

    elapsed_s: float = 0.0
    wall_clock_s: float = 0.0
    arrived_s: float | None = None
    began_wall_clock_s: float | None = None
    read: IoStats = NO_IO
    write: IoStats = NO_IO
    trim: IoStats = NO_IO
    flush: IoStats = NO_IO
    streams: tuple[StreamPart, ...] = field(default=(), repr=False)
    jobs: tuple[JobReading, ...] = field(default=(), repr=False)
    errors: tuple[int, ...] = ()
    cpu: CpuUse | None = None

    @property
    def moved_bytes(self) -> int:
        """Return the total number of bytes that were read, written and trimmed."""
        return self.read.bytes + self.write.bytes + self.trim.bytes

    def with_bytes_of_counts(self, load: Workload) -> FioReading:
        """Return a copy of the reading in which the bytes are computed from the counts of I/Os.

        For a mix of block sizes, the copy keeps fio's bytes, which fio may have read a moment before the counts.
        """
        own = self.streams or (StreamPart(name="", read=self.read, write=self.write, trim=self.trim),)
        pairs = zip(own, load.streams, strict=True)
        parts = tuple(_with_bytes_of_counts(part, stream.workload) for part, stream in pairs)
        read, write, trim = (sum(getattr(part, side).bytes for part in parts) for side in ("read", "write", "trim"))
        return replace(
            self,
            read=replace(self.read, bytes=read),
            write=replace(self.write, bytes=write),
            trim=replace(self.trim, bytes=trim),
            streams=parts if self.streams else (),
        )


def _with_bytes_of_counts(part: StreamPart, load: Workload) -> StreamPart:
    if load.block_mix:
        return part
    read, write, trim = (
        replace(stats, bytes=stats.ios * load.block_size_bytes) for stats in (part.read, part.write, part.trim)
    )
    return replace(part, read=read, write=write, trim=trim)


NOTHING_YET = FioReading()


class DocumentSplitter:
    """A splitter, which divides fio's standard output into JSON documents and keeps other lines as ``notes``.

    Regardless of the amount of output, the splitter keeps no more than one document and the first notes in memory.
    """

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._pending = b""
        self._document: bytearray | None = None
        self._notes_bytes = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the documents that this piece of output completes.

        Raises:
            EngineError: the output is larger than fio's output can be.
        """
        text, begins = self._pending + data, 0
        whole_lines = text.rfind(b"\n") + 1
        while begins < whole_lines:
            if self._document is None:
                ends = text.index(b"\n", begins)
                if text[begins:ends] == b"{":
                    self._document = bytearray(b"{\n")
                else:
                    self._note(text[begins:ends])
                begins = ends + 1
                continue
            # Search the data as a whole. A search line by line would take as long as it takes to decode the document.
            ends = begins if text.startswith(b"}\n", begins) else text.find(b"\n}\n", begins) + 1
            is_over = ends > 0 or text.startswith(b"}\n", begins)
            self._document += text[begins : ends if is_over else whole_lines]
            self._refuse_flood(len(self._document), LARGEST_DOCUMENT_BYTES, "in one status")
            begins = ends + 2 if is_over else whole_lines
            if is_over:
                yield bytes(self._document) + b"}"
                self._document = None
        self._pending = text[whole_lines:]
        if self._document is not None:
            self._refuse_flood(len(self._pending), LONGEST_LINE_BYTES, "in one line")
        elif len(self._pending) > LONGEST_NOTE:
            self._note(self._pending)
            self._pending = b"..."  # the rest of this line is also a note

    def _note(self, line: bytes) -> None:
        if line.strip() and len(self.notes) < MOST_NOTES:
            self.notes.append(line[:LONGEST_NOTE].decode(errors="replace"))
        self._notes_bytes += len(line) + 1
        self._refuse_flood(self._notes_bytes, LARGEST_NOTES_BYTES, "next to its status")

    def _refuse_flood(self, size_bytes: int, most_bytes: int, where: str) -> None:
        if size_bytes > most_bytes:
            raise EngineError(f"fio printed more than {most_bytes >> 20} MiB {where}")


def parse_document(
    document: bytes, *, read_s: float | None = None, wall_ahead_s: float | None = None, load: Workload | None = None
) -> FioReading:
    """Return one status document as a reading of all jobs together, and of each stream.

    Args:
        load: the load that fio runs. None means that the load is not known. The document is then read as the document
            of one load that runs alone.
        read_s: the time at which tkperf read the document, on the monotonic clock.
        wall_ahead_s: the wall clock minus the monotonic clock, in seconds. fio's documents contain the time of the wall
            clock. If the value is given, the reading contains the time at which fio made the document, but never a time
            after ``read_s``.
    """
    try:
        decoded = decode_json(document, _Document)
        jobs = decoded.jobs
        if not jobs:
            raise EngineError("fio printed a status that contains no jobs")
        streams = () if load is None else tuple(_sum_streams(jobs, load))
        # Convert the histograms of all threads only once, because the load cannot use the CPU time of this function.
        are_all_threads = load is not None and load.is_combination and load.jobs == len(jobs)
        whole = add_parts("", streams) if are_all_threads else _sum_jobs("", jobs)
    except (msgspec.DecodeError, ValueError, ArithmeticError, RecursionError) as error:
        raise EngineError(f"tkperf cannot read the JSON status that fio printed: {error}") from error
    readings = tuple(_job_reading(job) for job in jobs)
    return FioReading(
        elapsed_s=_elapsed_s(readings, load),
        wall_clock_s=decoded.timestamp_ms / 1000,
        arrived_s=_arrived_s(decoded.timestamp_ms, read_s, wall_ahead_s),
        began_wall_clock_s=min(job.job_start for job in jobs) / 1000 or None,
        read=whole.read,
        write=whole.write,
        trim=whole.trim,
        flush=whole.flush,
        streams=streams,
        jobs=readings,
        errors=tuple(job.error for job in jobs),
        cpu=_cpu_use(jobs),
    )


def _sum_streams(jobs: Sequence[_Job], load: Workload) -> Iterator[StreamPart]:
    threads = iter(jobs)
    for stream in load.together:
        yield _sum_jobs(stream.name, list(islice(threads, stream.workload.jobs)))


def _elapsed_s(readings: Sequence[JobReading], load: Workload | None) -> float:
    """Return the longest running time of the threads. A thread that pauses may notice late that its time is over."""
    streams = () if load is None else load.streams
    threads = iter(readings)
    awake = [
        reading
        for stream in streams
        for reading in islice(threads, stream.workload.jobs)
        if stream.workload.burst is None
    ]
    return max(reading.elapsed_s for reading in awake or readings)


def _sum_jobs(name: str, jobs: Sequence[_Job]) -> StreamPart:
    busiest = max((job.usr_cpu or 0.0) + (job.sys_cpu or 0.0) for job in jobs)
    return StreamPart(
        name=name,
        read=add_all(_io_stats(job.read) for job in jobs),
        write=add_all(_io_stats(job.write) for job in jobs),
        trim=add_all(_io_stats(job.trim) for job in jobs if job.trim is not None),
        flush=add_all(_flush_stats(job.sync) for job in jobs if job.sync is not None),
        host_limited=busiest >= 100 * CPU_EXHAUSTED,
    )


def _arrived_s(timestamp_ms: int, read_s: float | None, wall_ahead_s: float | None) -> float | None:
    if read_s is None or wall_ahead_s is None or not timestamp_ms:
        return read_s
    return min(read_s, timestamp_ms / 1000 - wall_ahead_s)


def _job_reading(job: _Job) -> JobReading:
    directions = [side for side in (job.read, job.write, job.trim) if side is not None]
    return JobReading(
        ios=sum(side.total_ios for side in directions),
        bytes=sum(side.io_bytes for side in directions),
        elapsed_s=max(side.runtime for side in directions) / 1000,
        depth_percents=job.iodepth_level,
    )


def _cpu_use(jobs: list[_Job]) -> CpuUse | None:
    """Return the CPU use of the jobs. The result is None (not measured) if the value of a job is impossible."""
    percents = []
    for job in jobs:
        for percent in (job.usr_cpu, job.sys_cpu):
            if percent is None or not 0 <= percent <= MOST_CPU_PERCENT:
                return None
        percents.append((job.usr_cpu or 0.0) + (job.sys_cpu or 0.0))
    if max(percents) > MOST_CPU_PERCENT:
        return None
    return CpuUse(busiest_thread_percent=max(percents), all_threads_percent=math.fsum(percents))


def _io_stats(direction: _Direction) -> IoStats:
    if not direction.total_ios:
        return NO_IO
    return _latencies(direction.lat_ns, ios=direction.total_ios, moved_bytes=direction.io_bytes)


def _flush_stats(flushes: _Flushes) -> IoStats:
    count = flushes.lat_ns.N
    return _latencies(flushes.lat_ns, ios=count, moved_bytes=0) if count else NO_IO


def _latencies(latency: _Latency, *, ios: int, moved_bytes: int) -> IoStats:
    return IoStats(
        ios=ios,
        bytes=moved_bytes,
        latency_ios=latency.N,
        latency_sum_ns=round(latency.mean * latency.N),
        latency_min_ns=latency.min if latency.N else None,
        latency_max_ns=latency.max if latency.N else None,
        histogram=Histogram.from_bins(latency.bins),
    )


def build_sample(earlier: FioReading, later: FioReading, *, origin_s: float = 0.0) -> Sample:
    """Return the sample between two readings. The times of the sample count from ``origin_s``."""
    try:
        return Sample(
            start_s=round(earlier.elapsed_s - origin_s, 6),
            duration_s=round(later.elapsed_s - earlier.elapsed_s, 6),
            read=later.read.since(earlier.read),
            write=later.write.since(earlier.write),
            trim=later.trim.since(earlier.trim),
            flush=later.flush.since(earlier.flush),
            streams=tuple(_streams_since(earlier, later)),
        )
    except ValueError as error:
        raise EngineError(f"fio's counters went backwards: {error}") from error


def _streams_since(earlier: FioReading, later: FioReading) -> Iterator[StreamPart]:
    before = earlier.streams or tuple(StreamPart(name=part.name) for part in later.streams)
    for part, old in zip(later.streams, before, strict=True):
        yield replace(
            part,
            read=part.read.since(old.read),
            write=part.write.since(old.write),
            trim=part.trim.since(old.trim),
            flush=part.flush.since(old.flush),
        )


class Recorder:
    """A recorder, which converts readings to samples as soon as they arrive, and keeps the samples.

    A combination is measured from the moment at which all streams run. The recorder reports the seconds before
    ``lead_in_s`` to observers, but these seconds are not part of the measurement.
    """

    def __init__(self, on_sample: OnSample, origin: FioReading = NOTHING_YET, *, lead_in_s: float = 0.0) -> None:
        self._on_sample = on_sample
        self._lead_in_ends_s = origin.elapsed_s + lead_in_s
        self._start = self._origin = self._newest = self._before_newest = origin
        self.samples: list[Sample] = []

    def __call__(self, reading: FioReading) -> None:
        if reading.elapsed_s - self._newest.elapsed_s >= SHORTEST_SAMPLE_S:
            sample = self._sample(self._newest, reading)
            self._before_newest, self._newest = self._newest, reading
            if self._origin.elapsed_s < self._lead_in_ends_s:
                self._origin = self._before_newest = reading
            else:
                self.samples.append(sample)
            self._on_sample(sample, reading.arrived_s)

    def _sample(self, earlier: FioReading, later: FioReading) -> Sample:
        return build_sample(earlier, later, origin_s=self._start.elapsed_s)

    def so_far(self, now: FioReading) -> Measurement | None:
        """Return the measurement from the origin to a reading of the running fio process. None means that no reading
        has arrived yet.
        """
        if now.elapsed_s <= self._origin.elapsed_s:
            return None
        return _totals(build_sample(self._origin, now))

    def _all_samples(self, last: FioReading) -> tuple[Sample, ...]:
        """Return the samples up to ``last``. The totals of the samples equal the totals of ``last``.

        If a document follows shortly after the previous document, its I/Os are added to the previous sample.
        """
        if last is self._newest:
            return tuple(self.samples)
        if last.elapsed_s - self._newest.elapsed_s >= SHORTEST_SAMPLE_S:
            return (*self.samples, self._sample(self._newest, last))
        return (*self.samples[:-1], self._sample(self._before_newest, last))

    def whole(self, last: FioReading) -> Measurement | None:
        """Return the totals up to ``last``, including the time before all streams ran. None means that all streams ran
        from the beginning.
        """
        if self._origin is self._start:
            return None
        return _totals(build_sample(self._start, last))

    def measurement(self, last: FioReading, cpus: int) -> Measurement:
        """Return the measurement to ``last`` from the origin, or from the moment at which all streams ran.

        Raises:
            StepFailedError: no time passed between the beginning of the measurement and ``last``.
        """
        if last.elapsed_s <= self._origin.elapsed_s:
            raise StepFailedError("fio ran, but reported no runtime, so nothing was measured")
        totals = _totals(build_sample(self._origin, last))
        cpu = last.cpu
        limited = cpu is not None and (
            cpu.busiest_thread_percent >= 100 * CPU_EXHAUSTED or cpu.all_threads_percent >= 100 * CPU_EXHAUSTED * cpus
        )
        return replace(totals, samples=self._all_samples(last), cpu=cpu, host_limited=limited)


def _totals(whole: Sample) -> Measurement:
    """Return a measurement that contains the totals of the sample, but no samples of single seconds."""
    return Measurement(
        duration_s=whole.duration_s,
        read=whole.read,
        write=whole.write,
        trim=whole.trim,
        flush=whole.flush,
        streams=whole.streams,
    )


def find_fio_fault(
    status: int, job_errors: Sequence[int], *, device: str, has_result: bool, ended_at_gate: bool, output: str
) -> EngineError | None:
    """Return the error that makes a measurement unusable. None means that fio ended without a fault.

    A status of 0 is no proof of success. Jobs report errors separately, and a program that is not fio may also exit
    with 0.

    Args:
        status: fio's exit status, which is negative if a signal ended fio.
        job_errors: an error number for each job. 0 means that the job had no error.
        has_result: whether fio printed at least one document.
        ended_at_gate: whether fio ended before its first I/O, while it waited at its gate.
        output: the output of fio, for the message.
    """
    failed = sorted({error for error in job_errors if error})
    if status < 0 or (status == _ENDED_BY_SIGNAL and not failed):
        by = "a signal" if status > 0 else f"signal {-status}"
        killed = f"fio on {device} was killed by {by}{output}"
        return LostAtGateError(killed) if ended_at_gate else StepFailedError(killed)
    if failed:
        names = ", ".join(f"{error} ({os.strerror(abs(error))})" for error in failed)
        advice = _ADVICE_ON_DEADLOCK if errno.EDEADLK in failed else ""
        return EngineError(f"fio failed on {device} with job error {names}{output}{advice}")
    if status:
        return EngineError(f"fio failed on {device} with exit status {status}{output}")
    if ended_at_gate:
        return LostAtGateError(f"fio on {device} ended before its first I/O{output}")
    if not has_result:
        return EngineError(
            f"fio on {device} ended without printing a result{output}. Check that the program that tkperf finds "
            "(through TKPERF_FIO or PATH) is really fio"
        )
    return None
