"""One job of fio's JSON: what it was by its options, and what it measured.

fio 2.x counts bytes in KiB and latencies in us, fio 3.x in bytes and ns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tkperf.errors import UsageError
from tkperf.histogram import Histogram
from tkperf.importers.fio_documents import is_unified, pattern_of
from tkperf.importers.imported import LARGEST_DEMAND, readable
from tkperf.measurement import NO_IO, IoStats, Measurement
from tkperf.record import RunWarning
from tkperf.units import KIB, format_block_size, parse_size_bytes
from tkperf.workload import Access, Workload

# More is no result of fio's: ten million I/Os a second for 115 days, an exabyte, 11 days in ns,
# 31 years in ms.
LARGEST_IOS, LARGEST_BYTES, LONGEST_NS, LONGEST_MS = 1e14, 1e18, 1e15, 1e12
LARGEST_BLOCK_BYTES = 1 << 40
# fio's, where a list of sizes leaves one out.
DEFAULT_BLOCK_SIZE = "4k"


def build_workload(
    job: Mapping[str, Any], options: Mapping[str, Any], file: str, warnings: dict[str, RunWarning]
) -> Workload | None:
    """What the job was, by its options; None if it moved nothing."""
    reads, writes = _ios(job, "read", file), _ios(job, "write", file)
    if not reads + writes:
        return None
    pattern = pattern_of(options)
    if not options:
        warnings["options"] = RunWarning(
            code="job-options-missing",
            text=(
                f"{readable(file)}: this fio did not write its job options; access is taken as random, mix "
                "and block size as they came out, threads and depth as 1"
            ),
        )
    sequential = bool(pattern) and not pattern.startswith("rand")
    # A mixed job's nominal mix; without options the one that came out.
    mix = 0 if writes else 100
    if reads > 0 and writes > 0:
        mix = round(100 * reads / (reads + writes))
        if options:
            mix = _nominal_mix(job, options, file)
    size = _block_size(options, "write" if writes else "read")
    moved = (_bytes(job, "read", file) + _bytes(job, "write", file)) / (reads + writes)
    jobs = _option(job, options, "numjobs", 1, file)
    io_depth = _option(job, options, "iodepth", 1, file)
    try:
        size_bytes = parse_size_bytes(size) if size else max(512, round(moved / 512) * 512)
        if size_bytes > LARGEST_BLOCK_BYTES:
            raise UsageError(f"bs={shown(size)} is more than any block")
        return Workload(
            access=Access.SEQUENTIAL if sequential else Access.RANDOM,
            read_percent=mix,
            block_size_bytes=size_bytes,
            jobs=jobs,
            io_depth=io_depth,
        )
    except (ValueError, OverflowError, UsageError) as error:
        raise UsageError(f"{name_job(file, job)}: {readable(str(error))}") from None


def why_left_out(job: Mapping[str, Any], options: Mapping[str, Any], file: str) -> str | None:
    """Why the result of a job belongs to no cell, which is one mix and one block size."""
    if is_unified(job):
        return (
            "unified_rw_reporting counted its reads and writes together; run fio without it, or with "
            "unified_rw_reporting=both"
        )
    for name in ("bssplit", "bsrange", "blocksize_range"):
        if name in options:
            return f"{name}={shown(options[name])} is I/Os of several sizes"
    ios = {side: _ios(job, side, file) for side in ("read", "write")}
    sizes = {_block_size(options, side) for side in ios if ios[side]}
    if len(sizes) > 1:
        return f"reads and writes are of different sizes ({' and '.join(sorted(sizes))})"
    return None


def why_not_of(job: Mapping[str, Any], workload: Workload, file: str) -> str | None:
    """Why the result of a job cannot be that of the workload its options tell.

    fio shows jobs of one group (group_reporting) as one, with the options of the last.
    """
    ios = _ios(job, "read", file) + _ios(job, "write", file)
    moved = _bytes(job, "read", file) + _bytes(job, "write", file)
    # I/Os that were on their way at the end may be counted without their bytes.
    tolerated_ios = 0.05 * ios + workload.jobs * workload.io_depth + 1
    if abs(moved / workload.block_size_bytes - ios) <= tolerated_ios:
        return None
    return (
        f"its I/Os are not of {format_block_size(workload.block_size_bytes)} as its options say; "
        "jobs of several block sizes, reported as one group?"
    )


def _block_size(options: Mapping[str, Any], side: str) -> str:
    """Of ``8k,32k`` the first for reads, the second for writes; empty if it is not known."""
    given = options.get("bs", options.get("blocksize"))
    if given is None:
        return ""
    sizes = str(given).split(",")
    return sizes[1 if side == "write" and len(sizes) > 1 else 0].strip() or DEFAULT_BLOCK_SIZE


def _nominal_mix(job: Mapping[str, Any], options: Mapping[str, Any], file: str) -> int:
    """The share of reads in percent; of both shares the one that was given last counts."""
    names = [name for name in options if name in ("rwmixread", "rwmixwrite")] or ["rwmixread"]
    share = _option(job, options, names[-1], 50, file, most=100, least=0)
    return share if names[-1] == "rwmixread" else 100 - share


def _option(
    job: Mapping[str, Any],
    options: Mapping[str, Any],
    name: str,
    default: int,
    file: str,
    *,
    least: int = 1,
    most: int = LARGEST_DEMAND,
) -> int:
    """A whole number among a job's options; fio writes them as text."""
    value = options.get(name, default)
    try:
        number = int(value)
    except (ValueError, TypeError, OverflowError):
        number = least - 1
    if not least <= number <= most:
        raise UsageError(
            f"{name_job(file, job)}: {name}={shown(value)} is not a number from {least} to {most:,}"
        )
    return number


def name_job(file: str, job: Mapping[str, Any]) -> str:
    return f"{file}, job {shown(job.get('jobname'))}"


def shown(value: object) -> str:
    """A value of the file's within an error, however long it is."""
    return readable(str(value)[:40])


def build_measurement(jobs: Sequence[Mapping[str, Any]], file: str) -> Measurement:
    """Jobs that ran at the same time, together."""
    read, write, runtime_ms = NO_IO, NO_IO, 0.0
    for job in jobs:
        read, write = read + _stats(job, "read", file), write + _stats(job, "write", file)
        for side in ("read", "write"):
            if isinstance(job.get(side), dict):
                runtime_ms = max(runtime_ms, _number(job, side, "runtime", LONGEST_MS, file))
    if runtime_ms < 1:
        raise UsageError(f"{name_job(file, jobs[0])}: a job without a runtime")
    return Measurement(duration_s=runtime_ms / 1000, read=read, write=write)


def _stats(job: Mapping[str, Any], side: str, file: str) -> IoStats:
    ios = _ios(job, side, file)
    direction = job.get(side)
    if not ios or not isinstance(direction, dict):
        return NO_IO
    # fio 3.x: lat_ns; fio 2.x: lat, in us.
    name, scale = ("lat_ns", 1) if "lat_ns" in direction else ("lat", 1000)
    latency = direction.get(name)
    latency = latency if isinstance(latency, dict) else {}

    def known_ns(which: str) -> float:
        place = f"{name_job(file, job)}, {side}/{name}/{which}"
        return _bounded(latency.get(which), LONGEST_NS / scale, place) * scale

    mean_ns = known_ns("mean")
    return IoStats(
        ios=ios,
        bytes=_bytes(job, side, file),
        latency_ios=ios if mean_ns else 0,
        latency_sum_ns=round(mean_ns * ios),
        latency_min_ns=round(known_ns("min")) if mean_ns else None,
        latency_max_ns=round(known_ns("max")) if mean_ns else None,
        histogram=_histogram(
            latency.get("bins") if scale == 1 else None,
            f"{name_job(file, job)}, {side}/{name}/bins",
        ),
    )


def _histogram(bins: object, place: str) -> Histogram:
    """Of json+; other results have none, so no percentiles of our own."""
    if not isinstance(bins, dict):
        return NO_IO.histogram
    try:
        counts = {int(key): int(count) for key, count in bins.items()}
        if sum(map(abs, counts.values())) > LARGEST_IOS:
            raise ValueError("more I/Os than fio counts")
        return Histogram.from_bins(counts)
    except (ValueError, TypeError, OverflowError) as error:
        raise UsageError(f"{place}: fio's latency bins cannot be read: {shown(error)}") from None


def _ios(job: Mapping[str, Any], side: str, file: str) -> int:
    direction = job.get(side)
    if not isinstance(direction, dict):
        return 0
    if "total_ios" in direction:
        return int(_number(job, side, "total_ios", LARGEST_IOS, file))
    # Early 2.x versions count no I/Os.
    iops = _number(job, side, "iops", LARGEST_IOS, file)
    ios = iops * _number(job, side, "runtime", LONGEST_MS, file) / 1000
    return round(_bounded(ios, LARGEST_IOS, f"{name_job(file, job)}, {side}/iops x runtime"))


def _bytes(job: Mapping[str, Any], side: str, file: str) -> int:
    direction = job.get(side)
    if not isinstance(direction, dict):
        return 0
    unit = 1 if "lat_ns" in direction else KIB
    return int(_number(job, side, "io_bytes", LARGEST_BYTES / unit, file)) * unit


def _number(job: Mapping[str, Any], side: str, name: str, largest: float, file: str) -> float:
    """A number of one direction of a job; 0 where there is none."""
    return _bounded(job[side].get(name), largest, f"{name_job(file, job)}, {side}/{name}")


def _bounded(value: object, largest: float, place: str) -> float:
    """A number from 0 to ``largest``, 0 for None.

    Raises:
        UsageError: it is something else, such as Infinity; names ``place``.
    """
    if value is None:
        return 0.0
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= largest:  # type: ignore[operator]
        raise UsageError(f"{place}: {shown(value)} is not a number from 0 to {largest:g}")
    return float(value)  # type: ignore[arg-type]
