"""The result of a job in fio's JSON: its measurement, and its workload. The workload is read from the options and
checked against the measurement.

fio 2.x reports latencies in us, and fio 3.x in ns. In early versions, ``io_bytes`` is in KiB. In versions that also
write ``io_kbytes``, such as 2.21, ``io_bytes`` is in bytes. ``bw`` is in KiB/s in all versions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tkperf.interop.fio_documents import is_unified
from tkperf.interop.fio_options import (
    Options,
    block_sizes_of,
    is_size_given,
    kb_base_of,
    name_sizes,
    parse_number,
    pattern_of,
)
from tkperf.interop.imported import LARGEST_COUNT, LARGEST_DEMAND, Remarks, Unusable, readable
from tkperf.model.histogram import Histogram
from tkperf.model.measurement import NO_IO, IoStats, Measurement
from tkperf.model.units import KIB, format_block_size
from tkperf.model.workload import Access, Workload

Job = Mapping[str, Any]

SIDES = ("read", "write")
# The name of a job without ``jobname``, such as an empty job that fio reports in addition to the sum of its group
# (group_reporting).
NO_NAME = "(no name)"
# FIO_JOBNAME_SIZE in fio's stat.h, without the final NUL. fio may cut the name in the middle of a character that
# consists of several bytes.
LONGEST_JOB_NAME_BYTES = 127
# No result of fio contains larger numbers. The order is: ten million I/Os a second for 115 days, an exabyte, 11 days in
# ns, 31 years in ms.
LARGEST_IOS, LARGEST_BYTES, LONGEST_NS, LONGEST_MS = 1e14, 1e18, 1e15, 1e12
LARGEST_BLOCK_BYTES = 1 << 40
# The shortest runtime in ms for which a rate is checked. fio reports whole ms, which are not exact enough for shorter
# runtimes.
SHORTEST_CHECKED_MS = 100.0
# The largest difference between the bytes and the I/Os times the block size, as a share. The difference between 4,000
# and 4,096 is larger.
SIZE_TOLERANCE = 0.01
# The largest difference between the I/Os in latency bins and all I/Os, as a share of all I/Os.
BINS_TOLERANCE = 0.01
# The mixes in specifications are multiples of this percentage. A measured mix varies around the nominal mix by chance.
USUAL_MIX_STEP = 5
# The largest difference between the nominal and the measured mix: in percent of all I/Os, and in standard deviations of
# a randomly drawn mix.
MIX_TOLERANCE_PERCENT, MIX_TOLERANCE_SIGMA = 5.0, 6.0
_LIKELY_SIZES = tuple(512 << power for power in range(16))
# The option that the importer itself adds to fio's sum over its servers.
_ADDED = frozenset({"numjobs"})
# Levels of the distribution of queue depths that fio reports. Each level contains the depths up to the next level.
_DEPTH_LEVELS = ("1", "2", "4", "8", "16", "32", ">=64")
# The first number is the number of fio's latency bins (FIO_IO_U_PLAT_NR in its stat.h). The second number is the
# largest number of bins that tkperf reads, because a bin in memory needs 20 times the size of its text.
_FIO_BINS = 1856
_MOST_BINS = 10 * _FIO_BINS


@dataclass(frozen=True, slots=True)
class _Clone:
    """Counters of one job, or of a group of clones that fio reports as one job."""

    job: Job
    read: IoStats
    write: IoStats
    runtime_ms: float

    @property
    def total_ms(self) -> int | None:
        """The total time for which all clones ran, if the job is a group of clones. None means that this time is not
        known.
        """
        total_ms = self.job.get("job_runtime")
        is_known = isinstance(total_ms, int) and self.runtime_ms >= SHORTEST_CHECKED_MS
        return total_ms if is_known else None


def job_name(job: Job) -> str:
    return str(job.get("jobname", NO_NAME))


def shorten_value(value: object) -> str:
    """Return a value of the file in shortened form, for an error message."""
    return readable(str(value)[:40])


def read_result(
    jobs: Sequence[Job], options: Options, file: str, remarks: Remarks
) -> tuple[Workload, Measurement, str | None]:
    """Return the workload and the measurement of a job and its clones. The rate is the sum of their I/Os divided by the
    longest runtime, as in fio's own groups.

    The third value contains the times of the clones if the clones ended at different times. Otherwise, it is None.
    """
    _require_plain(jobs, options)
    clones = [_read_clone(job) for job in jobs]
    if any(_has_other_bins(clone) for clone in clones):
        remarks.say(
            "percentiles-left-out",
            "the latency bins of a job hold more or fewer I/Os than the job did: percentiles are left out",
            file,
            f" (job {shorten_value(job_name(jobs[0]))})",
        )
        clones = [_without_histograms(clone) for clone in clones]
    _require_no_verification(clones, options)
    _require_io(clones)
    _require_one_job(clones, options)
    threads = _threads(clones, options, file, remarks)
    io_depth = _io_depth(jobs[0], options, file, remarks)
    try:
        workload = Workload(
            access=_access(clones, options, file),
            read_percent=_mix(clones, options),
            block_size_bytes=_block_size(clones, options, threads * io_depth, file, remarks),
            jobs=threads,
            io_depth=io_depth,
        )
    except ValueError as error:
        raise Unusable(readable(str(error))) from None
    return workload, _measure(clones, file, remarks), _uneven(clones, threads)


def _require_plain(jobs: Sequence[Job], options: Options) -> None:
    """Refuse jobs that failed, and jobs that issued I/O other than plain reads and writes."""
    for job in jobs:
        if job.get("error"):
            raise Unusable("it failed with an error of fio's", f": {shorten_value(job['error'])}")
        failed = job.get("total_err")
        if isinstance(failed, int) and failed > 0:
            raise Unusable("some of its I/Os failed (continue_on_error)", f": {failed:,}")
    job, pattern = jobs[0], pattern_of(options)
    if "read_iolog" in options:
        raise Unusable("it replays a recorded sequence of I/Os (read_iolog), which is not a defined workload")
    if is_unified(job):
        raise Unusable(
            "unified_rw_reporting counted its reads and writes together; run fio without it, or with "
            "unified_rw_reporting=both"
        )
    if "trim" in pattern and pattern not in ("trim", "randtrim"):
        raise Unusable(f"rw={shorten_value(pattern)} trims blocks and writes them: no plain writing")
    own = job.get("job options")
    if isinstance(own, dict) and "name" in own and not _is_named(job, str(own["name"])):
        raise Unusable(
            "fio shows several jobs as one (group_reporting), with the first one's name and the last one's options"
        )


def _is_named(job: Job, name: str) -> bool:
    """Return whether a name is among the options of a job. fio shortens ``jobname``, but not the option ``name``."""
    listed = job_name(job)
    cut = len(listed.encode(errors="replace")) >= LONGEST_JOB_NAME_BYTES - 3
    return listed == name or (cut and name.startswith(listed.rstrip("\N{REPLACEMENT CHARACTER}")))


def _require_no_verification(clones: Sequence[_Clone], options: Options) -> None:
    verifies = str(options.get("verify", "0")).strip() not in ("0", "")
    reads_back = str(options.get("do_verify", "1")).strip() != "0"
    has_read = pattern_of(options).endswith("write") and clones[0].read.ios
    if verifies and (reads_back or has_read):
        raise Unusable("it verifies what it reads: I/Os of the check are among its own")


def _require_io(clones: Sequence[_Clone]) -> None:
    idle = [clone for clone in clones if not clone.read.ios and not clone.write.ios]
    if 0 < len(idle) < len(clones):
        raise Unusable("one of its clones did nothing", f": {len(idle)} of {len(clones)}")
    if idle:
        trims = idle[0].job.get("trim")
        if isinstance(trims, dict) and trims.get("total_ios"):
            raise Unusable("it only trimmed: trims are no reads and no writes")
        raise Unusable("it moved no data")
    if min(clone.runtime_ms for clone in clones) < 1:
        raise Unusable("a job without a runtime")


def _require_one_job(clones: Sequence[_Clone], options: Options) -> None:
    """Refuse a result that evidently covers a group of several jobs. The evidence is that the job read and wrote,
    although its options name only one direction.
    """
    side = pattern_of(options).removeprefix("rand")
    if side in SIDES and any(clone.read.ios and clone.write.ios for clone in clones):
        raise Unusable(
            "fio shows several jobs as one (group_reporting): it read and wrote, but its options say "
            f"only rw={pattern_of(options)}; run fio without group_reporting"
        )


def _read_clone(job: Job) -> _Clone:
    read, read_ms = _read_side(job.get("read"), "read")
    write, write_ms = _read_side(job.get("write"), "write")
    return _Clone(job, read, write, max(read_ms, write_ms))


def _read_side(direction: object, side: str) -> tuple[IoStats, float]:
    """Return the I/Os of a direction, and their runtime in ms."""
    if not isinstance(direction, dict):
        return NO_IO, 0.0

    def number(name: str, largest: float) -> float:
        return _bounded(direction.get(name), largest, f"{side}/{name}")

    ios = int(number("total_ios", LARGEST_IOS))
    is_counted = "total_ios" in direction
    if is_counted and not ios:
        return NO_IO, 0.0
    runtime_ms, iops = number("runtime", LONGEST_MS), number("iops", LARGEST_IOS)
    runtime_s, is_checked = runtime_ms / 1000, runtime_ms >= SHORTEST_CHECKED_MS
    if not is_counted:
        # Early 2.x versions report only the rate, as a truncated whole number of I/Os per second.
        ios = round(_bounded(iops * runtime_s, LARGEST_IOS, f"{side}/iops x runtime"))
        if not ios:
            return NO_IO, 0.0
    elif iops and is_checked and abs(iops * runtime_s - ios) > 0.02 * ios + iops / 100 + 2:
        raise Unusable("its IOPS, I/Os and runtime contradict each other")
    is_bytes = any(name in direction for name in ("io_kbytes", "bw_bytes", "lat_ns", "clat_ns"))
    units = [1, KIB] if is_bytes else [KIB, 1]
    given, kib_per_s = int(number("io_bytes", LARGEST_BYTES)), number("bw", LARGEST_BYTES)
    # bw is in whole KiB/s, so small values are too coarse for a check.
    if is_checked and kib_per_s > 64:
        expected = kib_per_s * KIB * runtime_s
        units = [unit for unit in units if 0.5 < given * unit / expected < 2]
        if not units:
            raise Unusable("its bytes, bandwidth and runtime contradict each other")
    moved = round(_bounded(given * units[0], LARGEST_BYTES, f"{side}/io_bytes"))
    if not is_counted and iops == int(iops):
        # If the bytes and the rate agree for exactly one power of two as block size, this power of two is the size of
        # the I/Os.
        sizes = [size for size in _LIKELY_SIZES if iops <= moved / size / runtime_s < iops + 1]
        ios = round(moved / sizes[0]) if len(sizes) == 1 else ios
    return _with_latency(direction, side, ios, moved), runtime_ms


def _with_latency(direction: Mapping[str, Any], side: str, ios: int, moved: int) -> IoStats:
    # fio 3.x writes lat_ns. fio 2.x writes lat, which is in us.
    name, scale = ("lat_ns", 1) if "lat_ns" in direction else ("lat", 1000)
    latency = direction.get(name)
    latency = latency if isinstance(latency, dict) else {}

    def read_ns(key: str) -> float:
        return _bounded(latency.get(key), LONGEST_NS / scale, f"{side}/{name}/{key}") * scale

    mean_ns = read_ns("mean")
    if mean_ns * ios > LARGEST_COUNT:
        raise Unusable(f"{side}/{name}: its I/Os took longer than a run file can hold")
    return IoStats(
        ios=ios,
        bytes=moved,
        latency_ios=ios if mean_ns else 0,
        latency_sum_ns=round(mean_ns * ios),
        latency_min_ns=round(read_ns("min")) if mean_ns else None,
        latency_max_ns=round(read_ns("max")) if mean_ns else None,
        histogram=_histogram(latency.get("bins") if scale == 1 else None, f"{side}/{name}/bins"),
    )


def _has_other_bins(clone: _Clone) -> bool:
    """Return whether the bins of a direction contradict its number of I/Os."""
    kept = [stats for stats in (clone.read, clone.write) if stats.histogram.total]
    return any(abs(one.histogram.total - one.ios) > BINS_TOLERANCE * one.ios + 2 for one in kept)


def _without_histograms(clone: _Clone) -> _Clone:
    read, write = (replace(stats, histogram=NO_IO.histogram) for stats in (clone.read, clone.write))
    return replace(clone, read=read, write=write)


def _histogram(bins: object, place: str) -> Histogram:
    """Return the histogram from json+. Results in other formats contain no histogram, and therefore no percentiles."""
    if not isinstance(bins, dict):
        return NO_IO.histogram
    if len(bins) > _MOST_BINS:
        raise Unusable(f"{place}: {len(bins):,} latency bins, fio has {_FIO_BINS:,} at most")
    try:
        counts = dict(zip(map(int, bins), map(int, bins.values()), strict=True))
        if sum(map(abs, counts.values())) > LARGEST_IOS:
            raise ValueError("the number of I/Os is larger than the largest number that fio can count")
        return Histogram.from_bins(counts)
    except (ValueError, TypeError, OverflowError) as error:
        raise Unusable(f"{place}: fio's latency bins cannot be read", f": {shorten_value(error)}") from None


def _bounded(value: object, largest: float, place: str) -> float:
    """Return a number from 0 to ``largest``. None counts as 0."""
    if value is None:
        return 0.0
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= largest:  # type: ignore[operator]
        raise Unusable(f"{place}: not a number from 0 to {largest:g}", f" ({shorten_value(value)})")
    return float(value)  # type: ignore[arg-type]


def _measure(clones: Sequence[_Clone], file: str, remarks: Remarks) -> Measurement:
    longest_ms = max(clone.runtime_ms for clone in clones)
    if longest_ms < SHORTEST_CHECKED_MS:
        remarks.say(
            "very-short",
            "a job ran for less than 0.1 s: in whole ms, as fio counts, its rates are coarse",
            file,
            f" ({longest_ms:.0f} ms)",
        )
    return Measurement(
        duration_s=longest_ms / 1000,
        read=sum((clone.read for clone in clones), NO_IO),
        write=sum((clone.write for clone in clones), NO_IO),
    )


def _uneven(clones: Sequence[_Clone], threads: int) -> str | None:
    """Return the times of clones that ended at different times. None means that the clones ended together."""
    longest_ms = max(clone.runtime_ms for clone in clones)
    shortest_ms = min(clone.runtime_ms for clone in clones)
    if len(clones) > 1:
        if longest_ms - shortest_ms <= max(0.05 * longest_ms, SHORTEST_CHECKED_MS):
            return None
        return f"{len(clones)} clones, from {shortest_ms / 1000:.1f} s to {longest_ms / 1000:.1f} s"
    total_ms = clones[0].total_ms
    if total_ms is None or not 1.05 < total_ms / longest_ms < 0.95 * threads:
        return None
    return f"{threads} clones for {total_ms / 1000:.1f} s together, the longest {longest_ms / 1000:.1f} s"


def _access(clones: Sequence[_Clone], options: Options, file: str) -> Access:
    """Return the access according to the options. If the option is missing, fio uses ``rw=read``."""
    if pattern := pattern_of(options):
        return Access.RANDOM if pattern.startswith("rand") else Access.SEQUENTIAL
    if options.keys() - _ADDED:
        if any(clone.write.ios for clone in clones):
            raise Unusable("it wrote, but none of its options is rw: some of its options are missing")
        return Access.SEQUENTIAL
    names = (job_name(clones[0].job), file.rpartition("/")[2])
    return Access.SEQUENTIAL if any("seq" in name.lower() for name in names) else Access.RANDOM


def _mix(clones: Sequence[_Clone], options: Options) -> int:
    """Return the share of reads in percent: the nominal share, or the measured share if the options are not known."""
    reads, writes = (sum(clone.read.ios for clone in clones), sum(clone.write.ios for clone in clones))
    if not writes or not reads:
        return 100 if reads else 0
    share = reads / (reads + writes)
    if not options:
        usual = USUAL_MIX_STEP * round(100 * share / USUAL_MIX_STEP)
        is_near = 0 < usual < 100 and abs(100 * share - usual) <= 1
        return usual if is_near else min(99, max(1, round(100 * share)))
    # If both options are given, the later option applies.
    names = [name for name in options if name in ("rwmixread", "rwmixwrite")] or ["rwmixread"]
    given = _option(options, names[-1], 50, most=100, least=0)
    nominal = given if names[-1] == "rwmixread" else 100 - given
    sigma = 100 * (share * (1 - share) / (reads + writes)) ** 0.5
    if abs(100 * share - nominal) > max(MIX_TOLERANCE_PERCENT, MIX_TOLERANCE_SIGMA * sigma):
        raise Unusable(
            "its reads are not the share of its I/Os that its options say",
            f": {100 * share:.0f} % instead of {nominal} %",
        )
    return nominal


def _block_size(clones: Sequence[_Clone], options: Options, demand: int, file: str, remarks: Remarks) -> int:
    """Return the single size of the I/Os in bytes. The size in the options is used if the measured bytes and I/Os agree
    with this size.
    """
    sides = [side for side in SIDES if any(getattr(clone, side).ios for clone in clones)]
    if not is_size_given(options):
        return _measured_size(clones, demand)
    kb_base = kb_base_of(options)
    size = _stated_size(options, sides, kb_base)
    if not _is_of_size(clones, size, demand):
        # Other versions of fio may have exchanged the meanings of kB and KiB.
        other = _stated_size(options, sides, 2024 - kb_base)
        if not _is_of_size(clones, other, demand):
            raise Unusable(
                f"its I/Os are not of {format_block_size(size)} as its options say; jobs of several "
                "block sizes, reported as one group?"
            )
        remarks.say(
            "block-size-measured",
            f"{shorten_value(name_sizes(options))} is {size:,} bytes by fio's documentation, but the bytes and "
            f"I/Os it counted are of {other:,}: that is taken",
            file,
        )
        size = other
    if size % 512:
        raise Unusable(
            f"its I/Os are of {size:,} bytes, no multiple of 512",
            f" ({shorten_value(name_sizes(options))}; with kb_base={kb_base} fio reads kB as {kb_base:,} and "
            f"KiB as {2024 - kb_base:,})",
        )
    return size


def _stated_size(options: Options, sides: Sequence[str], kb_base: int) -> int:
    quoted = shorten_value(name_sizes(options))
    sizes_bytes = []
    for side in sides:
        sizes = block_sizes_of(options, side, kb_base)
        if len(sizes) > 1:
            raise Unusable(f"{quoted} is I/Os of several sizes")
        size = sizes[0] if sizes else None
        if not size:
            raise Unusable(f"{quoted} is not a size")
        if size > LARGEST_BLOCK_BYTES:
            raise Unusable(f"{quoted} is more than any block")
        sizes_bytes.append(size)
    if len(set(sizes_bytes)) > 1:
        different = " and ".join(format_block_size(size) for size in sizes_bytes)
        raise Unusable(f"reads and writes are of different sizes ({different})")
    return sizes_bytes[0]


def _measured_size(clones: Sequence[_Clone], demand: int) -> int:
    used = [stats for clone in clones for stats in (clone.read, clone.write)]
    mean = sum(stats.bytes for stats in used) / sum(stats.ios for stats in used)
    size = max(512, round(mean / 512) * 512)
    if not _is_of_size(clones, size, demand):
        raise Unusable("its I/Os are of several sizes, or of none that is a multiple of 512")
    return size


def _is_of_size(clones: Sequence[_Clone], size: int, demand: int) -> bool:
    """Return whether bytes and I/Os agree with this block size, except for I/Os that were outstanding at the end."""
    for clone in clones:
        for side, stats in zip(SIDES, (clone.read, clone.write), strict=True):
            short = clone.job[side].get("short_ios") if stats.ios else None
            slack = SIZE_TOLERANCE * stats.ios + demand + 1
            slack += short if isinstance(short, int) else 0
            if abs(stats.bytes / size - stats.ios) > slack:
                return False
    return True


def _threads(clones: Sequence[_Clone], options: Options, file: str, remarks: Remarks) -> int:
    """Return the number of clones, according to the number of jobs in the list or to the options. For a group, the
    number follows from the total runtime.
    """
    stated = _option(options, "numjobs", 1)
    total_ms = clones[0].total_ms
    if len(clones) > 1 or total_ms is None:
        # Two jobs with the same name are also clones, regardless of the value of numjobs.
        return max(stated, len(clones))
    ran = total_ms / clones[0].runtime_ms
    if stated == 1 and 1.5 < ran <= LARGEST_DEMAND and abs(ran - round(ran)) < 0.05 * ran:
        remarks.say(
            "threads-counted",
            "fio did not write numjobs: threads are counted by the time that they ran together, so many "
            "times the runtime",
            file,
            f" ({round(ran)})",
        )
        return round(ran)
    return stated


def _io_depth(job: Job, options: Options, file: str, remarks: Remarks) -> int:
    levels = job.get("iodepth_level")
    levels = levels if isinstance(levels, dict) else {}
    shares = {name: share for name, share in levels.items() if isinstance(share, int | float)}
    if not options:
        remarks.say(
            "job-options-missing",
            "this fio did not write its job options: access is taken as random, unless a name says seq, mix "
            "and block size as they came out, queue depth from fio's depth levels (to a power of two), threads as "
            "listed; "
            "files are rounds of one series if their names differ in numbers only",
            file,
        )
        most = max(_DEPTH_LEVELS, key=lambda name: shares.get(name, 0.0))
        return int(most.removeprefix(">=")) if shares.get(most) else 1
    io_depth = _option(options, "iodepth", 1)
    if io_depth > 1 and shares.get("1", 0.0) > 99:
        remarks.say(
            "depth-not-reached",
            "options say a queue depth that fio did not see, it saw 1: an I/O engine that waits for each "
            "I/O, or a rate that was held back",
            file,
            f" (iodepth={io_depth})",
        )
    return io_depth


def _option(options: Options, name: str, default: int, *, least: int = 1, most: int = LARGEST_DEMAND) -> int:
    """Return a whole number from a job's options. fio writes the values of options as text."""
    if name not in options:
        return default
    number = parse_number(options[name], kb_base_of(options))
    if number is None or not least <= number <= most:
        raise Unusable(f"{name}={shorten_value(options[name])} is not a number from {least} to {most:,}")
    return number
