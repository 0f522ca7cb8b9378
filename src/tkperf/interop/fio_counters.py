"""Counters of the jobs in fio's JSON, in tkperf's units: I/Os, bytes, runtimes, latencies.

fio 2.x counts latencies in us, fio 3.x in ns. ``io_bytes`` was KiB at first; since versions such as 2.21,
which write ``io_kbytes`` next to it, it is bytes. ``bw`` is KiB/s in all versions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tkperf.interop.imported import LARGEST_COUNT, readable
from tkperf.interop.left_out import Remarks, Unusable
from tkperf.model.histogram import Histogram
from tkperf.model.measurement import NO_IO, IoStats, Measurement
from tkperf.model.units import KIB

Job = Mapping[str, Any]

SIDES = ("read", "write")
# Larger numbers are no result of fio: ten million I/Os a second for 115 days, an exabyte, 11 days in ns,
# 31 years in ms.
LARGEST_IOS, LARGEST_BYTES, LONGEST_NS, LONGEST_MS = 1e14, 1e18, 1e15, 1e12
# Shorter runtimes are too coarse in whole ms to check a rate.
SHORTEST_CHECKED_MS = 100.0
_LIKELY_SIZES = tuple(512 << power for power in range(16))


def shown(value: object) -> str:
    """Return a value from the file for an error message, shortened."""
    return readable(str(value)[:40])


def name_of(job: Job) -> str:
    return str(job.get("jobname"))


def build_measurement(jobs: Sequence[Job], file: str, remarks: Remarks) -> Measurement:
    """Add up the clones of a job: their I/Os over the longest runtime, as in fio's own groups.

    Raises:
        Unusable: a job has no runtime, a value is not a number, or numbers contradict each other.
    """
    read, write = NO_IO, NO_IO
    for job in jobs:
        for side in SIDES:
            _require_agreement(job, side)
        read, write = read + _stats(job, "read"), write + _stats(job, "write")
    runtimes_ms = [runtime_ms_of(job) for job in jobs]
    if min(runtimes_ms) < 1:
        raise Unusable("a job without a runtime")
    longest_ms = max(runtimes_ms)
    if longest_ms < SHORTEST_CHECKED_MS:
        remarks.say(
            "very-short",
            "a job ran for less than 0.1 s: in whole ms, as fio counts, its rates are coarse",
            file,
            f" ({longest_ms:.0f} ms)",
        )
    return Measurement(duration_s=longest_ms / 1000, read=read, write=write)


def describe_uneven_clones(jobs: Sequence[Job], threads: int) -> str | None:
    """Return the times of clones that ended at different times; None: they ended together.

    Args:
        jobs: the clones, or the one group of them.
        threads: number of clones that fio counted as one group, if ``jobs`` is that group.
    """
    runtimes_ms = [runtime_ms_of(job) for job in jobs]
    longest_ms, shortest_ms = max(runtimes_ms), min(runtimes_ms)
    if len(jobs) > 1:
        if shortest_ms >= 0.95 * longest_ms or longest_ms - shortest_ms <= SHORTEST_CHECKED_MS:
            return None
        return f"{len(jobs)} clones, from {shortest_ms / 1000:.1f} s to {longest_ms / 1000:.1f} s"
    together_ms = jobs[0].get("job_runtime")
    if not isinstance(together_ms, int) or longest_ms < SHORTEST_CHECKED_MS:
        return None
    if not 1.05 < together_ms / longest_ms < 0.95 * threads:
        return None
    return (
        f"{threads} clones for {together_ms / 1000:.1f} s together, the longest "
        f"{longest_ms / 1000:.1f} s"
    )


def runtime_ms_of(job: Job) -> float:
    return max(
        (_number(job, side, "runtime", LONGEST_MS) for side in SIDES if ios_of(job, side)),
        default=0.0,
    )


def _require_agreement(job: Job, side: str) -> None:
    """Require that I/Os agree with fio's rate and runtime."""
    if not (ios := ios_of(job, side)) or "total_ios" not in job[side]:
        return
    runtime_s = _number(job, side, "runtime", LONGEST_MS) / 1000
    iops = _number(job, side, "iops", LARGEST_IOS)
    if (
        iops
        and runtime_s >= SHORTEST_CHECKED_MS / 1000
        and abs(iops * runtime_s - ios) > 0.02 * ios + iops / 100 + 2
    ):
        raise Unusable("its IOPS, I/Os and runtime contradict each other")


def _stats(job: Job, side: str) -> IoStats:
    ios = ios_of(job, side)
    direction = job.get(side)
    if not ios or not isinstance(direction, dict):
        return NO_IO
    # fio 3.x: lat_ns; fio 2.x: lat, in us.
    name, scale = ("lat_ns", 1) if "lat_ns" in direction else ("lat", 1000)
    latency = direction.get(name)
    latency = latency if isinstance(latency, dict) else {}

    def known_ns(which: str) -> float:
        return _bounded(latency.get(which), LONGEST_NS / scale, f"{side}/{name}/{which}") * scale

    mean_ns = known_ns("mean")
    if mean_ns * ios > LARGEST_COUNT:
        raise Unusable(f"{side}/{name}: its I/Os took longer than a run file can hold")
    return IoStats(
        ios=ios,
        bytes=bytes_of(job, side),
        latency_ios=ios if mean_ns else 0,
        latency_sum_ns=round(mean_ns * ios),
        latency_min_ns=round(known_ns("min")) if mean_ns else None,
        latency_max_ns=round(known_ns("max")) if mean_ns else None,
        histogram=_histogram(latency.get("bins") if scale == 1 else None, f"{side}/{name}/bins"),
    )


def _histogram(bins: object, place: str) -> Histogram:
    """Return the histogram from json+; other results have none, so no percentiles."""
    if not isinstance(bins, dict):
        return NO_IO.histogram
    try:
        counts = dict(zip(map(int, bins), map(int, bins.values()), strict=True))
        if sum(map(abs, counts.values())) > LARGEST_IOS:
            raise ValueError("more I/Os than fio counts")
        return Histogram.from_bins(counts)
    except (ValueError, TypeError, OverflowError) as error:
        raise Unusable(f"{place}: fio's latency bins cannot be read", f": {shown(error)}") from None


def ios_of(job: Job, side: str) -> int:
    direction = job.get(side)
    if not isinstance(direction, dict):
        return 0
    if "total_ios" in direction:
        return int(_number(job, side, "total_ios", LARGEST_IOS))
    # Early 2.x versions do not count I/Os; they give the rate in whole I/Os a second, truncated.
    iops = _number(job, side, "iops", LARGEST_IOS)
    runtime_s = _number(job, side, "runtime", LONGEST_MS) / 1000
    ios = round(_bounded(iops * runtime_s, LARGEST_IOS, f"{side}/iops x runtime"))
    if not ios or iops != int(iops):
        return ios
    # If exactly one power of two turns the bytes into such a rate, it is the size of the I/Os.
    moved = bytes_of(job, side)
    sizes = [size for size in _LIKELY_SIZES if iops <= moved / size / runtime_s < iops + 1]
    return round(moved / sizes[0]) if len(sizes) == 1 else ios


def bytes_of(job: Job, side: str) -> int:
    """Return the bytes of a direction, in the unit that agrees with the bandwidth (KiB/s in all versions).

    Raises:
        Unusable: neither unit agrees.
    """
    direction = job.get(side)
    if not isinstance(direction, dict):
        return 0
    is_bytes = any(name in direction for name in ("io_kbytes", "bw_bytes", "lat_ns", "clat_ns"))
    given = int(_number(job, side, "io_bytes", LARGEST_BYTES))
    runtime_s = _number(job, side, "runtime", LONGEST_MS) / 1000
    expected = _number(job, side, "bw", LARGEST_BYTES) * KIB * runtime_s
    # bw is in whole KiB/s, so a small one proves nothing; most documents have no contradiction.
    unit = 1 if is_bytes else KIB
    checked = runtime_s >= SHORTEST_CHECKED_MS / 1000 and expected > 64 * KIB * runtime_s
    if checked and not 0.5 < given * unit / expected < 2:
        unit = KIB if is_bytes else 1
        if not 0.5 < given * unit / expected < 2:
            raise Unusable("its bytes, bandwidth and runtime contradict each other")
    return round(_bounded(given * unit, LARGEST_BYTES, f"{side}/io_bytes"))


def _number(job: Job, side: str, name: str, largest: float) -> float:
    """Return a number of one direction of a job; 0 if it is missing."""
    return _bounded(job[side].get(name), largest, f"{side}/{name}")


def _bounded(value: object, largest: float, place: str) -> float:
    """Return a number from 0 to ``largest``, 0 for None.

    Raises:
        Unusable: it is something else, such as Infinity; names ``place``.
    """
    if value is None:
        return 0.0
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= largest:  # type: ignore[operator]
        raise Unusable(f"{place}: not a number from 0 to {largest:g}", f" ({shown(value)})")
    return float(value)  # type: ignore[arg-type]
