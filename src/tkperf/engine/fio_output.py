"""fio's JSON stream as readings and samples. Pure: bytes in, values or our error out.

With ``--output-format=json+ --status-interval=1`` fio prints a cumulative document each second.
The difference of two is that second: I/Os, bytes, latency sum, the whole histogram.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from tkperf.errors import DeviceError, EngineError
from tkperf.histogram import Histogram
from tkperf.measurement import NO_IO, CpuUse, IoStats, Sample
from tkperf.units import format_block_size
from tkperf.workload import Workload

# Documents closer together than this are merged: fio may print one right at the start or end.
SHORTEST_SAMPLE_S = 0.05
# fio counts reads of a vanished NVMe drive as I/Os of 0 bytes; the share of whole I/Os tells.
LEAST_SHARE_OF_BYTES = 0.99
# While a job runs, fio's byte count may trail its I/O count by what its threads have in hand.
TRAILING_IOS = 64


class _Latency(msgspec.Struct):
    min: int = 0
    max: int = 0
    mean: float = 0.0
    N: int = 0
    bins: dict[int, int] = {}


class _Direction(msgspec.Struct):
    io_bytes: int
    total_ios: int
    runtime: int
    lat_ns: _Latency


class _Job(msgspec.Struct):
    jobname: str
    error: int
    read: _Direction
    write: _Direction
    usr_cpu: float = 0.0
    sys_cpu: float = 0.0


class _Document(msgspec.Struct):
    jobs: list[_Job]
    timestamp_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """fio's cumulative counters at one moment.

    ``elapsed_s`` counts from the first I/O; ``wall_clock_s`` is when fio took the reading.
    """

    elapsed_s: float
    wall_clock_s: float
    read: IoStats
    write: IoStats
    job_bytes: tuple[int, ...]
    errors: tuple[int, ...]
    cpu: CpuUse


NOTHING_YET = Reading(
    elapsed_s=0.0,
    wall_clock_s=0.0,
    read=NO_IO,
    write=NO_IO,
    job_bytes=(),
    errors=(),
    cpu=CpuUse(busiest_thread_percent=0.0, all_threads_percent=0.0),
)


class DocumentSplitter:
    """Cuts fio's standard output into JSON documents; other lines are kept as ``notes``."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._pending = b""
        self._document: list[bytes] | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Documents completed by this piece of output."""
        *lines, self._pending = (self._pending + data).split(b"\n")
        for line in lines:
            if self._document is None:
                if line == b"{":
                    self._document = [line]
                elif line.strip():
                    self.notes.append(line.decode(errors="replace"))
            else:
                self._document.append(line)
                if line == b"}":
                    yield b"\n".join(self._document)
                    self._document = None


def parse_document(document: bytes) -> Reading:
    """One status document as a reading, all jobs together.

    Raises:
        EngineError: not a document of fio's, or one without the histogram this needs.
    """
    try:
        decoded = msgspec.json.decode(document, type=_Document)
        jobs = decoded.jobs
        if not jobs:
            raise EngineError("fio printed a status without jobs")
        read, write = NO_IO, NO_IO
        for job in jobs:
            read, write = read + _io_stats(job.read), write + _io_stats(job.write)
    except (msgspec.DecodeError, ValueError, OverflowError, RecursionError) as error:
        raise EngineError(f"fio printed something that is not its JSON status: {error}") from error
    cpu_percents = [job.usr_cpu + job.sys_cpu for job in jobs]
    return Reading(
        elapsed_s=max(max(job.read.runtime, job.write.runtime) for job in jobs) / 1000,
        wall_clock_s=decoded.timestamp_ms / 1000,
        read=read,
        write=write,
        job_bytes=tuple(job.read.io_bytes + job.write.io_bytes for job in jobs),
        errors=tuple(job.error for job in jobs),
        cpu=CpuUse(busiest_thread_percent=max(cpu_percents), all_threads_percent=sum(cpu_percents)),
    )


def _io_stats(direction: _Direction) -> IoStats:
    latency = direction.lat_ns
    if not direction.total_ios:
        return NO_IO
    return IoStats(
        ios=direction.total_ios,
        bytes=direction.io_bytes,
        latency_ios=latency.N,
        latency_sum_ns=round(latency.mean * latency.N),
        latency_min_ns=latency.min if latency.N else None,
        latency_max_ns=latency.max if latency.N else None,
        histogram=Histogram.from_bins(latency.bins),
    )


def build_sample(earlier: Reading, later: Reading, *, origin_s: float = 0.0) -> Sample:
    """What happened between two readings; ``origin_s`` is where the sample's clock starts.

    Raises:
        EngineError: the later reading counts less than the earlier one.
    """
    try:
        return Sample(
            start_s=round(earlier.elapsed_s - origin_s, 6),
            duration_s=round(later.elapsed_s - earlier.elapsed_s, 6),
            read=later.read.since(earlier.read),
            write=later.write.since(earlier.write),
        )
    except ValueError as error:
        raise EngineError(f"fio's counters went backwards: {error}") from error


def require_whole_ios(
    reading: Reading, workload: Workload, device: str, *, running: bool = False
) -> None:
    """Refuse a result in which I/Os moved fewer bytes than their block size.

    With an NVMe drive removed under reads fio 3.33 exits 0 and counts failed reads as fast I/Os.

    Raises:
        DeviceError: the device did not deliver whole blocks.
    """
    ios = reading.read.ios + reading.write.ios
    moved_bytes = reading.read.bytes + reading.write.bytes
    trailing = TRAILING_IOS + workload.total_outstanding_ios if running else 0
    if moved_bytes < LEAST_SHARE_OF_BYTES * (ios - trailing) * workload.block_size_bytes:
        raise DeviceError(
            f"{device} moved {moved_bytes / ios:.0f} bytes an I/O where blocks of "
            f"{format_block_size(workload.block_size_bytes)} were asked: it has failed or was "
            "removed. This step is not kept; check the device and the kernel log"
        )
