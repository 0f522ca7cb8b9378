"""Loads of a fio job and the part of the device that they use. A job becomes one load for all its threads, or one load
for each thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import msgspec

from tkperf.interop.fio_jobfile.job_options import JobOptions
from tkperf.interop.fio_jobfile.job_sections import (
    DEFAULT_BLOCKS,
    NOTHING,
    Amount,
    Blocks,
    Sides,
    read_amount,
    read_arrival,
    read_blocks,
    read_needed_flag,
    read_pause_s,
    read_percents,
    read_rates,
    read_sizes_bytes,
    read_split,
    read_time_s,
    read_zones,
)
from tkperf.model.choices import DEEPEST_QUEUE, MOST_JOBS
from tkperf.model.units import KIB, MIB, format_block_size
from tkperf.model.workload import MIX_ALIGNMENT_BYTES, Access, Arrival, Zone
from tkperf.procedures.own_workloads.parts import LARGEST_TRIM_KIB, LONGEST_PAUSE_S, Load
from tkperf.procedures.profiles.profile_tables import LARGEST_BLOCK_KIB, LONGEST_S

# fio's default on Linux. An engine that waits for each I/O has a queue depth of 1, regardless of the option iodepth.
DEFAULT_IOENGINE = "psync"
WAITING_IOENGINES = ("psync", "sync", "vsync", "pvsync", "pvsync2", "libhdfs")
# Engines that keep several I/Os outstanding. They work on devices, on images, and on the storage pools and file systems
# of servers.
QUEUEING_IOENGINES = ("io_uring", "libaio", "posixaio", "windowsaio", "solarisaio", "libblkio")
REMOTE_IOENGINES = ("rbd", "nbd", "libiscsi", "nfs", "dfs")
READ_PERCENT = {"read": 100, "write": 0, "randread": 100, "randwrite": 0, "trim": 0, "randtrim": 0}
MIXED = ("rw", "readwrite", "randrw")
# fio's default percentage of reads in a mix.
DEFAULT_READ_PERCENT = 50
MOST_BURST_IOS = 1_000_000_000
_MOST_LOOPS = (1 << 32) - 1

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """Settings from the user that replace or complete settings of the job file.

    Attributes:
        direct: whether I/O is direct, regardless of the jobs' options.
        align_4k: whether the I/Os of a mix of block sizes begin at multiples of 4 KiB, regardless of the jobs' options.
        runtime_s: the runtime in s of jobs for which the job file contains no runtime. None means that the user gave no
            runtime.
    """

    direct: bool = False
    align_4k: bool = False
    runtime_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pattern:
    access: Access
    read_percent: int
    trims: bool = False

    def used(self, sides: Sides[T]) -> list[T]:
        """Return the values of the directions that the job uses."""
        if self.trims:
            return [sides[2]]
        shares = (self.read_percent, 100 - self.read_percent)
        return [side for side, share in zip(sides[:2], shares, strict=True) if share]

    @property
    def is_random(self) -> bool:
        return self.access is Access.RANDOM

    @property
    def writes(self) -> bool:
        return not self.trims and self.read_percent < 100


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLoad:
    """The loads of a job, and their length.

    Attributes:
        loads: one load with all threads, or a load for each thread.
        runtime_s: the runtime. None means that the job ends after a given amount.
        passes: number of passes over the range of the job, if it has no runtime.
        delay_s: time from the start of fio to the first I/O of the job.
        files_end_bytes: end of a part of the range. This part replaces the files that only this job uses.
    """

    options: JobOptions
    loads: tuple[Load, ...]
    runtime_s: float | None
    ramp_s: float
    passes: int
    delay_s: float
    files_end_bytes: int


def read_load(options: JobOptions, wishes: Wishes, files_begin_bytes: int = 0) -> JobLoad:
    """Return the load of a job. ``options`` records the outcome of each option.

    Args:
        files_begin_bytes: start of a part of the range. This part replaces the files that only this job uses. No other
            job of the phase uses this part.
    """
    _check_direct(options, wishes)
    pattern = _read_pattern(options)
    blocks = _read_blocks(options, pattern, wishes)
    shares = tuple((size_bytes / KIB, percent) for size_bytes, percent in blocks)
    threads = options.count("numjobs", 1, least=1, most=MOST_JOBS)
    io_depth = _read_io_depth(options, pattern)
    load = Load(
        access=pattern.access,
        read_percent=pattern.read_percent,
        trims=pattern.trims,
        block_size_kib=shares[0][0] if len(shares) == 1 else None,
        block_shares=shares if len(shares) > 1 else (),
        zone_shares=tuple((*zone,) for zone in _read_zones(options, pattern)),
        io_depth=io_depth,
        random_percent=_read_random_percent(options, pattern),
        flush_every=_read_flush_every(options, pattern, io_depth),
        compressible_percent=_read_compressible(options, pattern),
    )
    load = _with_rate(_with_burst(load, options), options, pattern)
    regions, files_end_bytes = _read_regions(options, threads, files_begin_bytes)
    runtime_s, ramp_s = _read_times(options)
    delay_s = options.value("startdelay", read_time_s, 0.0)
    return JobLoad(
        options=options,
        loads=_in_regions(load, regions),
        runtime_s=runtime_s,
        ramp_s=ramp_s,
        passes=options.count("loops", 1, least=1, most=_MOST_LOOPS),
        delay_s=delay_s,
        files_end_bytes=files_end_bytes,
    )


def _check_direct(options: JobOptions, wishes: Wishes) -> None:
    """Refuse I/O through the page cache. If both ``direct`` and ``buffered`` are given, the later option applies."""
    given = options.given("direct", "buffered")
    is_direct = False
    for name in given:
        is_on = options.value(name, read_needed_flag, name == "buffered")
        is_direct = is_on is (name == "direct")
    if is_direct:
        return
    if wishes.direct:
        options.leave_out(*given, why="--direct asks for direct=1")
        options.assume(f"direct=1 in place of {'buffered I/O' if given else 'the default of fio, direct=0'} (--direct)")
        return
    options.refuse(
        given[-1] if given else "direct",
        "buffered I/O measures the memory of the host, and the I/O of tkperf is always direct: write direct=1 in the "
        "job file, or pass --direct",
        default="direct=0 (fio's default)",
    )


def _read_pattern(options: JobOptions) -> _Pattern:
    """Return the access, and the percentage of reads."""
    name, colon, _ = (options.text("rw") or "read").partition(":")
    if name in ("trimwrite", "randtrimwrite"):
        options.refuse("rw", "trims and writes are never mixed in one load; write two jobs, rw=trim and rw=write")
    elif name not in (*READ_PERCENT, *MIXED):
        options.refuse("rw", f"it is one of {', '.join((*READ_PERCENT, *MIXED))}")
    elif colon:
        options.refuse("rw", "addresses of tkperf are random or sequential; it skips none")
    access = Access.RANDOM if name.startswith("rand") else Access.SEQUENTIAL
    mix_percent = _read_mix(options, is_mixed=name in MIXED)
    read_percent = mix_percent if name in MIXED else READ_PERCENT.get(name, 100)
    return _Pattern(access=access, read_percent=read_percent, trims=name in ("trim", "randtrim"))


def _read_mix(options: JobOptions, *, is_mixed: bool) -> int:
    names = options.given("rwmixread", "rwmixwrite")
    percents = [options.count(name, 50, least=0, most=100) for name in names]
    if not is_mixed:
        options.leave_out(*names, why="the job does not mix reads and writes")
    elif len(percents) == 2 and sum(percents) != 100:
        options.refuse("rwmixwrite", "it and rwmixread do not add up to 100: leave one out")
    if not names:
        return DEFAULT_READ_PERCENT
    return percents[-1] if names[-1] == "rwmixread" else 100 - percents[-1]


def _read_blocks(options: JobOptions, pattern: _Pattern, wishes: Wishes) -> Blocks:
    """Return the sizes and shares of the used directions, which must be equal.

    If both ``bs`` and ``bsrange`` are given, the later option applies. ``bssplit`` overrides both in the directions
    that it names.
    """
    name, *others = [*reversed(options.given("bs", "bsrange"))] or ["bs"]
    options.leave_out(*others, why=f"a later {name} counts")
    default = DEFAULT_BLOCKS
    of_bs = options.value(name, lambda text: read_blocks(name, text, options.kb_base), (default,) * 3)
    none: Sides[Blocks | None] = (None, None, None)
    of_split = options.value("bssplit", lambda text: read_split(text, options.kb_base), none)
    reads, writes, trims = (split or plain for split, plain in zip(of_split, of_bs, strict=True))
    blocks, *differing = pattern.used((reads, writes, trims))
    if all(pattern.used(of_split)):
        options.leave_out(name, why="bssplit counts")
        name = "bssplit"
    elif not any(pattern.used(of_split)):
        options.leave_out("bssplit", why="it has no sizes for the I/Os of this job")
    if any(other != blocks for other in differing):
        options.refuse(name, "reads and writes of a load have the same block sizes in tkperf")
    most_kib, words = (LARGEST_TRIM_KIB, "2 GiB") if pattern.trims else (LARGEST_BLOCK_KIB, "16 MiB")
    if any(size % 512 or size > most_kib * KIB for size, _ in blocks):
        options.refuse(name, f"a block size is a multiple of 512 bytes, {words} at most")
        blocks = default
    _check_alignment(options, pattern, blocks, wishes)
    return blocks


def _check_alignment(options: JobOptions, pattern: _Pattern, blocks: Blocks, wishes: Wishes) -> None:
    """Refuse a job if tkperf would align its I/Os differently from fio. fio begins random I/Os at multiples of the
    smallest block.

    tkperf aligns the I/Os of a random mix to 4 KiB if the mix has blocks of 4 KiB or more.
    """
    sizes = [size_bytes for size_bytes, _ in blocks]
    default = min(sizes)
    sides = options.value("ba", lambda text: read_sizes_bytes(text, options.kb_base), (default,) * 3)
    if not pattern.is_random:
        options.leave_out("ba", why="fio aligns random I/Os only")
        return
    aligned = set(pattern.used(sides))
    is_4k = len(sizes) > 1 and max(sizes) >= MIX_ALIGNMENT_BYTES
    ours = MIX_ALIGNMENT_BYTES if is_4k else default
    if aligned == {ours}:
        return
    theirs = format_block_size(max(aligned))
    if wishes.align_4k and is_4k:
        options.leave_out("ba", why="--align-4k asks for blockalign=4k")
        given = "" if options.given("ba") else ", the default of fio"
        options.assume(f"blockalign=4k in place of {theirs}{given} (--align-4k)")
        return
    way_out = ", or pass --align-4k" if is_4k else ""
    options.refuse(
        "ba",
        f"I/Os begin at multiples of {theirs}, those of tkperf at multiples of {format_block_size(ours)}: write "
        f"blockalign={format_block_size(ours)}{way_out}",
        default=f"blockalign={format_block_size(default)} (fio's default)",
    )


def _read_io_depth(options: JobOptions, pattern: _Pattern) -> int:
    depth = options.count("iodepth", 1, least=1, most=DEEPEST_QUEUE)
    engine = options.text("ioengine") or DEFAULT_IOENGINE
    if engine in WAITING_IOENGINES:
        options.keep("ioengine", "io_depth, which is 1 because the engine waits for each I/O")
        options.leave_out("iodepth", why=f"{engine} waits for each I/O")
        return 1
    if engine in REMOTE_IOENGINES:
        options.leave_out("ioengine", why="tkperf does the same I/Os on the DEVICE of the run")
    elif engine in QUEUEING_IOENGINES:
        options.leave_out("ioengine", why="tkperf uses io_uring or libaio")
    else:
        options.refuse("ioengine", "tkperf uses io_uring or libaio")
    if pattern.trims and depth > 1:
        options.keep("iodepth", "io_depth = 1: fio before 3.38 trims one block at a time whatever the depth")
        return 1
    return depth


def _read_zones(options: JobOptions, pattern: _Pattern) -> tuple[Zone, ...]:
    if not pattern.is_random:
        options.leave_out("random_distribution", why="the job has no random addresses")
        return ()
    none: tuple[Zone, ...] = ()
    zones = options.value("random_distribution", read_zones, none)
    # With zones, fio draws every address independently, as it does with norandommap.
    if not zones and not options.flag("norandommap"):
        options.leave_out("norandommap", why="tkperf draws every address anew")
        options.assume("norandommap: every address is drawn anew, where fio takes each block once before any again")
    return zones


def _read_random_percent(options: JobOptions, pattern: _Pattern) -> int | None:
    name = "percentage_random"
    if not pattern.is_random:
        options.leave_out(name, why="fio takes it for random jobs only")
        return None
    percent, *others = pattern.used(options.value(name, read_percents, (100, 100, 100)))
    if any(other != percent for other in others):
        options.refuse(name, "reads and writes of a load have the same share of random addresses in tkperf")
    return None if percent == 100 else percent


def _read_flush_every(options: JobOptions, pattern: _Pattern, io_depth: int) -> int | None:
    """Return the number of writes between flushes. On a block device, ``fsync`` and ``fdatasync`` both cause a
    flush.
    """
    counts = {name: options.count(name, 0, least=0, most=MOST_BURST_IOS) for name in ("fsync", "fdatasync")}
    given = [name for name, number in counts.items() if number]
    options.leave_out(*(name for name in counts if name not in given), why="0 asks for no flushes")
    if not pattern.writes:
        options.leave_out(*given, why="fio flushes after writes, and the job has none")
        return None
    if not given:
        return None
    if len(given) > 1:
        options.refuse("fdatasync", "on a block device it is the same flush as fsync: leave one out")
    if io_depth > 1:
        options.keep(given[0], f"flush_every, which needs fio 3.38 or newer at a queue depth of {io_depth}")
    elif pattern.read_percent:
        options.keep(given[0], "flush_every, which needs fio 3.38 or newer in a load that also reads")
    return counts[given[0]]


def _read_compressible(options: JobOptions, pattern: _Pattern) -> int:
    percent = options.count("buffer_compress_percentage", 0, least=0, most=100)
    if not pattern.writes:
        options.leave_out("buffer_compress_percentage", why="the job writes no data")
        return 0
    return percent


def _with_burst(load: Load, options: JobOptions) -> Load:
    """Return the load with the pauses of ``thinktime``. A pause follows after ``thinktime_blocks`` I/Os, which is 1 by
    default.
    """
    pause_s = options.value("thinktime", read_pause_s, 0.0)
    ios = options.count("thinktime_blocks", 1, least=1, most=MOST_BURST_IOS)
    if not pause_s:
        options.leave_out("thinktime", "thinktime_blocks", why="without thinktime nothing pauses")
        return load
    if pause_s > LONGEST_PAUSE_S:
        options.refuse("thinktime", f"a pause of tkperf is {LONGEST_PAUSE_S} s at most: fio reports nothing meanwhile")
        return load
    return msgspec.structs.replace(load, burst_ios=ios, burst_pause_s=pause_s)


def _with_rate(load: Load, options: JobOptions, pattern: _Pattern) -> Load:
    """Return the load with the rate of one thread. The rate is the sum of reads and writes."""
    rates = {name: options.value(name, lambda text: read_rates(text, options.kb_base), (0, 0, 0)) for name in _RATES}
    used = {name: pattern.used(sides) for name, sides in rates.items()}
    arrival = options.value("rate_process", read_arrival, Arrival.LINEAR)
    unused = [name for name, sides in used.items() if not any(sides)]
    options.leave_out(*unused, why="it limits no I/Os of this job")
    if not options.given(*(name for name in _RATES if name not in unused)):
        options.leave_out("rate_process", why="the job has no rate")
        return load
    if not unused:
        options.refuse("rate", "fio takes rate or rate_iops, not both")
        return load
    name = next(name for name in _RATES if name not in unused)
    total = sum(used[name])
    if len(used[name]) == 2 and rates[name][0] * 100 != pattern.read_percent * total:
        options.refuse(
            name,
            f"{rates[name][0]:,} of reads and {rates[name][1]:,} of writes are not {pattern.read_percent} % reads, as "
            "the mix has it",
        )
        return load
    shares = load.block_shares or ((load.block_size_kib or 0, 100),)
    mean_bytes = sum(size_kib * KIB * percent for size_kib, percent in shares) / 100
    least_iops = min(used[name]) / (1 if name == "rate_iops" else mean_bytes)
    if least_iops < 1:
        options.refuse(name, f"{least_iops:.3g} I/Os a second of a thread; tkperf offers one at least")
        return load
    if name == "rate_iops":
        return msgspec.structs.replace(load, offered_iops=total, arrival=arrival)
    if arrival is Arrival.POISSON and load.block_shares:
        options.refuse("rate", "fio makes random arrivals of the smallest block's I/Os a second: write rate_iops")
        return load
    return msgspec.structs.replace(load, offered_megabytes_per_s=total / 1e6, arrival=arrival)


_RATES = ("rate", "rate_iops")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Region:
    """A part of the range. Each edge is in percent of the device, or in bytes."""

    begin: Amount
    end: Amount

    def length_after(self, before: _Region) -> bool:
        """Return whether the region directly follows ``before`` and has the same length."""
        for unit in ("percent", "bytes"):
            values = [getattr(edge, unit) for edge in (before.begin, before.end, self.begin, self.end)]
            if None not in values:
                return bool(values[1] == values[2] and values[1] - values[0] == values[3] - values[2])
        return False


_ALL = _Region(begin=NOTHING, end=Amount(percent=100))


def _read_regions(options: JobOptions, threads: int, files_begin_bytes: int) -> tuple[list[_Region], int]:
    """Return the part of the range that each thread uses, and the end of the parts that replace files of this job."""
    read = {name: options.value(name, lambda text: read_amount(text, options.kb_base), NOTHING) for name in _PLACES}
    offset, increment, size = (read[name] for name in ("offset", "offset_increment", "size"))
    if read["filesize"] != NOTHING:
        if size != NOTHING:
            options.refuse("filesize", "it and size are two ends of the load: leave one out")
        size = Amount(bytes=(read["filesize"].bytes or 0) - (offset.bytes or 0))
    options.leave_out(*(name for name in _PLACES if read[name] == NOTHING), why="0 is fio's default")
    for name, edge in (("offset", "begin"), ("size", "end")):
        unit = "mib" if read[name].percent is None else "percent, rounded to 1 MiB"
        options.keep(name, f"range_{edge}_{unit}")
    has_files = options.text("filename") is None and size != NOTHING and size.percent is None
    regions = []
    for thread in range(threads):
        region = _region(options, offset, increment, size, thread)
        if region is None:
            return [_ALL] * threads, files_begin_bytes
        if has_files and (region.end.bytes or 0) > 0 and region.begin.bytes is not None:
            shift = files_begin_bytes
            files_begin_bytes += region.end.bytes or 0
            begin = shift + region.begin.bytes
            region = _Region(
                begin=NOTHING if not begin else Amount(bytes=begin), end=Amount(bytes=shift + (region.end.bytes or 0))
            )
        regions.append(region)
    if has_files and regions[-1].begin != NOTHING:
        options.assume("parts of the range, one after the other, in place of files of its own, which have no filename")
    return regions, files_begin_bytes


_PLACES = ("offset", "offset_increment", "size", "filesize")


def _region(options: JobOptions, offset: Amount, increment: Amount, size: Amount, thread: int) -> _Region | None:
    """Return the part of the range that one thread uses. None means that the options that describe the part are
    refused.

    As in fio, a size in percent is cut off at the end of the device.
    """
    step = NOTHING
    if thread and increment != NOTHING:
        step = Amount(
            percent=None if increment.percent is None else increment.percent * thread,
            bytes=None if increment.bytes is None else increment.bytes * thread,
        )
    begin = _sum(offset, step)
    if begin is None:
        options.refuse("offset_increment", "the offset has another unit: write both in percent, or both in bytes")
        return None
    if size == NOTHING or size.percent == 100:
        end: Amount | None = Amount(percent=100)
    else:
        end = _sum(begin, size)
    if end is None:
        options.refuse("size", "the offset has another unit: write both in percent, or both in bytes")
        return None
    if (size.percent or 0) > 100:
        options.keep("size", "range_end_percent = 100: fio ends at the end of the device")
    if begin.percent is not None and begin.percent >= 100:
        options.refuse("offset", f"{begin.percent} % is the end of the device, or beyond it")
        return None
    if end.percent is not None and end.percent > 100:
        end = Amount(percent=100)
    return _Region(begin=begin, end=end)


def _sum(one: Amount, other: Amount) -> Amount | None:
    """Return the sum of two amounts. None means that their units differ."""
    if one == NOTHING:
        return other
    if other == NOTHING:
        return one
    if one.percent is not None and other.percent is not None:
        return Amount(percent=one.percent + other.percent)
    if one.bytes is not None and other.bytes is not None:
        return Amount(bytes=one.bytes + other.bytes)
    return None


def _in_regions(load: Load, regions: Sequence[_Region]) -> tuple[Load, ...]:
    """Return one load for all threads if its threads would use the same parts as in fio. Otherwise return a load for
    each thread.

    In tkperf, the random threads of a load share the range of the load, and each sequential thread uses an equal part
    of the range. In fio, threads use such parts only with a matching ``offset_increment``.
    """
    first, last = regions[0], regions[-1]
    if load.access is Access.RANDOM:
        is_one = all(region == first for region in regions)
    else:
        is_one = all(region.length_after(before) for before, region in pairwise(regions))
    if not is_one:
        return tuple(_placed(load, region, jobs=1) for region in regions)
    return (_placed(load, _Region(begin=first.begin, end=last.end), jobs=len(regions)),)


def _placed(load: Load, region: _Region, jobs: int) -> Load:
    """Return the load with ``jobs`` threads in the given part of the range."""
    iops, megabytes_per_s = load.offered_iops, load.offered_megabytes_per_s
    begin, end = region.begin, region.end
    return msgspec.structs.replace(
        load,
        jobs=jobs,
        offered_iops=None if iops is None else iops * jobs,
        offered_megabytes_per_s=None if megabytes_per_s is None else round(megabytes_per_s * jobs, 6),
        range_begin_percent=begin.percent or 0,
        range_begin_mib=None if begin.percent is not None else (begin.bytes or 0) / MIB,
        range_end_percent=100 if end.percent is None else end.percent,
        range_end_mib=None if end.percent is not None else (end.bytes or 0) / MIB,
    )


def _read_times(options: JobOptions) -> tuple[float | None, float]:
    """Return the runtime in s, and the warm-up in s. If there is no runtime, the first value is None."""
    times = []
    for name in ("runtime", "ramp_time"):
        time_s = options.value(name, read_time_s, 0.0)
        if round(time_s * 1000) % 100 or time_s > LONGEST_S:
            options.refuse(name, "tkperf's times are multiples of 0.1 s, 30 days at most")
            time_s = 0.0
        times.append(time_s)
    runtime_s, ramp_s = times
    is_time_based = options.flag("time_based")
    if runtime_s and not is_time_based:
        options.assume("time_based: the whole runtime, where fio ends earlier once it has done its size and loops")
    if not ramp_s:
        options.leave_out("ramp_time", why="0 is no warm-up")
    if not runtime_s:
        options.leave_out("runtime", why="0 is no limit")
        return None, ramp_s
    options.leave_out("loops", why="the runtime ends the load")
    return runtime_s, ramp_s
