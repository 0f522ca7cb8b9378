"""Workloads and steps of a test. This module does no I/O, reads no clock, and does not depend on fio."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from tkperf.model.errors import UsageError
from tkperf.model.units import KIB, format_block_size, format_capacity, format_count, format_mix

# The name of a mix lists up to this number of block sizes. The name of a larger mix contains only the smallest and the
# largest size.
LONGEST_MIX_LISTED = 4
# All I/Os of a mix of block sizes have this alignment, including the smaller I/Os.
MIX_ALIGNMENT_BYTES = 4 * KIB


# A part of a load: the name of a stream, and a flag that is true if the part consists of the flushes instead of the
# I/Os. The name is None for a single load and for a whole combination.
PartKey = tuple[str | None, bool]
WHOLE_LOAD: PartKey = (None, False)


class Access(StrEnum):
    """The order of block addresses, with the terms of the PTS."""

    RANDOM = "random"
    SEQUENTIAL = "sequential"

    @property
    def order(self) -> str:
        """Return the abbreviation of the PTS for the order, ``RND`` or ``SEQ``."""
        return "RND" if self is Access.RANDOM else "SEQ"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveRange:
    """The part of the device that a run uses (PTS: active range, AR)."""

    offset_bytes: int
    length_bytes: int

    def __post_init__(self) -> None:
        if self.offset_bytes < 0 or self.length_bytes <= 0:
            raise ValueError(f"active range {self.offset_bytes}+{self.length_bytes} is empty")

    def __str__(self) -> str:
        return f"{format_capacity(self.length_bytes)} from {format_capacity(self.offset_bytes)}"

    def within(self, outer: ActiveRange) -> ActiveRange:
        """Return where this range lies on the device. The offset of this range counts from the start of ``outer``."""
        return ActiveRange(offset_bytes=outer.offset_bytes + self.offset_bytes, length_bytes=self.length_bytes)


class Arrival(StrEnum):
    """The distribution of I/Os over time at an offered rate: evenly spaced, or at random times (Poisson process)."""

    LINEAR = "linear"
    POISSON = "poisson"


class BlockShare(NamedTuple):
    """A block size, and the percentage of all I/Os that have this size."""

    block_size_bytes: int
    percent: int


class Zone(NamedTuple):
    """A part of the range in percent, and the percentage of all accesses that this part receives. Each zone begins
    where the previous zone ends.
    """

    access_percent: int
    range_percent: int


class Burst(NamedTuple):
    """A number of I/Os that a job issues, and the length in s of the pause after these I/Os (fio: thinktime_blocks and
    thinktime).
    """

    ios: int
    pause_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A description of the I/O that the load generator issues. A workload is also the key of the results.

    ``jobs`` is the thread count (TC) of the PTS. ``io_depth`` is the queue depth (QD) of each thread.

    Attributes:
        block_size_bytes: size of every I/O. With ``block_mix``, the value is the largest size.
        block_mix: several block sizes and the share of each. ``block_mix`` is empty if there is only one size.
        zones: distribution of random accesses over the range, from the start of the range. An empty value means an even
            distribution.
        offered_iops: the rate at which all jobs together should issue I/Os, in I/Os per second. None means that the
            jobs issue I/Os as fast as the device completes them.
        arrival: distribution of the offered I/Os over time.
        compressible_percent: the share of the written data, in %, that compression in the drive could save. None means
            that the data is new random data, which cannot be compressed.
        region: the part of the active range in which the accesses stay. The offset of the region counts from the start
            of the active range. None means the whole active range.
        trims: whether all I/Os are trims (discards), without reads and writes.
        random_percent: for random access, the share of accesses at a random address, in %. Each other access continues
            at the end of the previous access. None means that all accesses are random.
        burst: the number of I/Os after which each job pauses, and the length of the pause. None means that no job
            pauses.
        flush_every: each job flushes the write cache of the device after this number of its own writes. None means that
            no job flushes the cache.
        together: the streams of a combination, which start and stop together. ``together`` is empty for a single load.
        stream: the name, if this workload is a stream of a combination. None means that this workload is a single load
            or the combination itself.
        flushes: whether this workload is the key of the results of the flushes of a load, and not of its I/Os. Such a
            workload is only a key.
    """

    access: Access
    read_percent: int
    block_size_bytes: int
    jobs: int
    io_depth: int
    block_mix: tuple[BlockShare, ...] = ()
    zones: tuple[Zone, ...] = ()
    offered_iops: float | None = None
    arrival: Arrival = Arrival.LINEAR
    compressible_percent: int | None = None
    region: ActiveRange | None = None
    trims: bool = False
    random_percent: int | None = None
    burst: Burst | None = None
    flush_every: int | None = None
    together: tuple[Stream, ...] = ()
    stream: str | None = None
    flushes: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.read_percent <= 100:
            raise ValueError(f"read_percent {self.read_percent} is not within 0..100")
        if self.block_size_bytes <= 0 or self.block_size_bytes % 512:
            raise ValueError(f"block_size_bytes {self.block_size_bytes} is not a multiple of 512")
        if self.jobs < 1 or self.io_depth < 1:
            raise ValueError(f"jobs {self.jobs} and io_depth {self.io_depth} must be 1 or more")
        if self.block_mix:
            self._check_block_mix()
        if self.zones:
            self._check_zones()
        if self.offered_iops is not None and not self.offered_iops > 0:
            raise ValueError(f"offered_iops must be more than 0, but it is {self.offered_iops}")
        if self.compressible_percent is not None and not 0 <= self.compressible_percent <= 100:
            raise ValueError(f"compressible_percent {self.compressible_percent} is not within 0..100")
        self._check_kind()

    def _check_kind(self) -> None:
        if self.trims and self.read_percent:
            raise ValueError("a load with trims must not contain reads")
        if self.random_percent is not None and (
            self.access is not Access.RANDOM or not 0 <= self.random_percent <= 100
        ):
            raise ValueError(
                f"random_percent must be within 0..100 and requires random accesses, but it is {self.random_percent}"
            )
        if self.burst is not None and (self.burst.ios < 1 or not self.burst.pause_s > 0):
            raise ValueError(
                "a burst needs at least 1 I/O and a pause of more than 0 s, but this burst has "
                f"{self.burst.ios} I/Os and a pause of {self.burst.pause_s} s"
            )
        if self.flush_every is not None and (self.flush_every < 1 or self.trims or self.read_percent == 100):
            raise ValueError("flush_every must be 1 or more, and only a load with writes can be flushed")
        if self.together or self.stream is not None:
            names = [stream.name for stream in self.together]
            if len(set(names)) < len(names) or (self.stream is not None and self.stream not in names):
                raise ValueError("the streams of a combination must have different names")

    def _check_block_mix(self) -> None:
        sizes = [share.block_size_bytes for share in self.block_mix]
        if any(size <= 0 or size % 512 for size in sizes) or len(set(sizes)) < len(sizes):
            raise ValueError("the sizes of block_mix must be different multiples of 512 bytes")
        if any(share.percent < 1 for share in self.block_mix):
            raise ValueError("each size of block_mix needs a share of at least 1 percent")
        if sum(share.percent for share in self.block_mix) != 100:
            raise ValueError("the percentages of block_mix must add up to 100")
        if self.block_size_bytes != max(sizes):
            raise ValueError("block_size_bytes must be the largest size of block_mix")

    def _check_zones(self) -> None:
        if self.access is not Access.RANDOM:
            raise ValueError("only random accesses can have zones")
        if any(zone.access_percent < 0 or zone.range_percent < 1 for zone in self.zones):
            raise ValueError(
                "a zone must cover at least 1 percent of the range, and its share of accesses must not be negative"
            )
        for name in ("access_percent", "range_percent"):
            if sum(getattr(zone, name) for zone in self.zones) != 100:
                raise ValueError(f"the values of {name} of all zones must add up to 100")

    @property
    def is_mixed(self) -> bool:
        """Return whether the workload reads and writes."""
        return 0 < self.read_percent < 100

    @property
    def is_combination(self) -> bool:
        """Return whether this workload is a whole combination of streams that run together."""
        return bool(self.together) and self.stream is None

    @property
    def part_key(self) -> PartKey:
        """Return the part of a step that this workload describes: all I/O, a stream, or flushes."""
        return self.stream, self.flushes

    @property
    def is_plain(self) -> bool:
        """Return whether this workload is a single load of reads or writes without trims, flushes, pauses and partly
        random access.
        """
        kinds = (self.together, self.trims, self.random_percent, self.burst, self.flush_every)
        return kinds == ((), False, None, None, None)

    @property
    def kind_texts(self) -> tuple[str, ...]:
        """Return a description of partly random access, pauses and flushes, if this workload has them."""
        texts = []
        if self.random_percent is not None:
            texts.append(f"{self.random_percent} % of the accesses random")
        if self.burst is not None:
            texts.append(f"{self.burst.pause_s:g} s pause after {format_count(self.burst.ios, 'I/O')}")
        if self.flush_every is not None:
            texts.append(f"a flush after {format_count(self.flush_every, 'write')}")
        return tuple(texts)

    @property
    def streams(self) -> tuple[Stream, ...]:
        """Return the streams of a combination. For a single load, return the load as the only stream."""
        return self.together if self.is_combination else (Stream(name="", workload=self),)

    @property
    def writes(self) -> bool:
        """Return whether some of the I/Os are writes."""
        if self.is_combination:
            return any(each.workload.writes for each in self.together)
        return not self.trims and self.read_percent < 100

    @property
    def reads(self) -> bool:
        """Return whether some of the I/Os are reads."""
        if self.is_combination:
            return any(each.workload.reads for each in self.together)
        return self.read_percent > 0

    @property
    def total_outstanding_ios(self) -> int:
        if self.is_combination:
            return sum(each.workload.total_outstanding_ios for each in self.together)
        return self.jobs * self.io_depth

    @property
    def flushes_from_queue(self) -> bool:
        """Return whether a thread issues flushes while other I/Os of this thread are outstanding."""
        return self.flush_every is not None and self.io_depth > 1

    @property
    def flushes_between_reads(self) -> bool:
        """Return whether a thread that flushes after its writes also reads."""
        return self.flush_every is not None and self.is_mixed

    @property
    def random_arrivals_iops(self) -> frozenset[float]:
        """Return the rates, in I/Os per second, of the random arrivals in each thread: one rate for the reads and one
        for the writes. For a combination, the result contains the rates of all streams.
        """
        loads = [each.workload for each in self.streams]
        return frozenset(
            load.offered_iops * percent / 100 / load.jobs
            for load in loads
            for percent in (load.read_percent, 100 - load.read_percent)
            if load.offered_iops is not None and load.arrival is Arrival.POISSON and percent
        )

    @property
    def outstanding_bytes(self) -> int:
        """Return the largest number of bytes that reads and writes can have outstanding at the same time."""
        loads = (each.workload for each in self.streams)
        return sum(load.jobs * load.io_depth * load.block_size_bytes for load in loads if not load.trims)

    @property
    def lead_in_s(self) -> float:
        """Return the time, in s, from the start until all streams of a combination run. For a single load, the result
        is 0.
        """
        return max(each.delay_s for each in self.streams)

    @property
    def pauses(self) -> bool:
        """Return whether a time without I/O is planned for some threads, because these threads issue bursts or start
        later.
        """
        return any(each.delay_s > 0 or each.workload.burst is not None for each in self.streams)

    @property
    def mean_block_bytes(self) -> float:
        """Return the mean size of an I/O in bytes."""
        if not self.block_mix:
            return self.block_size_bytes
        return sum(share.block_size_bytes * share.percent for share in self.block_mix) / 100

    def arrivals_deviation(self, due_ios: float) -> float:
        """Return the standard deviation of the number of offered I/Os, if ``due_ios`` I/Os are due on average.

        The number of random arrivals varies according to the Poisson process. A mix of block sizes is offered evenly in
        bytes, but fio draws the size of each I/O at random, so the number of I/Os varies. In all other cases, the I/Os
        are evenly spaced and the result is 0.
        """
        if self.arrival is Arrival.POISSON:
            return math.sqrt(due_ios)
        mean_bytes = self.mean_block_bytes
        variance = sum(share.percent / 100 * (share.block_size_bytes - mean_bytes) ** 2 for share in self.block_mix)
        return math.sqrt(due_ios * variance) / mean_bytes

    @property
    def mix_and_size(self) -> str:
        """Return the mix and the block size, such as ``0/100 4k``, which distinguish the workloads of most tests. For a
        combination, return the streams.
        """
        if self.is_combination or self.flushes:
            return str(self)
        if self.trims:
            return f"trims of {self.blocks_name}"
        return f"{format_mix(self.read_percent)} {self.blocks_name}"

    @property
    def blocks_name(self) -> str:
        """Return ``blocks_text``. For a mix of many sizes, return the number, the range and the mean of the sizes, such
        as ``12 sizes 512-64k, mean 7.6k``.
        """
        if len(self.block_mix) <= LONGEST_MIX_LISTED:
            return self.blocks_text
        sizes = sorted(share.block_size_bytes for share in self.block_mix)
        ends = "-".join(format_block_size(size) for size in (sizes[0], sizes[-1]))
        return f"{len(sizes)} sizes {ends}, mean {self.mean_block_bytes / KIB:.3g}k"

    @property
    def blocks_text(self) -> str:
        """Return the block size or the mix of block sizes, such as ``4k`` or ``4k 60 % + 64k 40 %``."""
        if not self.block_mix:
            return format_block_size(self.block_size_bytes)
        return " + ".join(f"{format_block_size(share.block_size_bytes)} {share.percent} %" for share in self.block_mix)

    def __str__(self) -> str:
        if self.is_combination:
            return " + ".join(each.name for each in self.together) + ", together"
        if self.flushes:
            load = self.stream or f"{format_mix(self.read_percent)} {self.blocks_name}"
            return f"{load}: a flush after {format_count(self.flush_every or 1, 'write')}"
        kind = "trims" if self.trims else f"R/W {format_mix(self.read_percent)}"
        words = [f"{self.access.order} {self.blocks_name} {kind} TC{self.jobs}/QD{self.io_depth}"]
        if self.stream is not None:
            words[0] = f"{self.stream}: {words[0]}"
        words += self.kind_texts
        if self.zones:
            words.append(f"zones {self.zones_text}")
        if self.offered_iops is not None:
            words.append(f"{self.offered_iops:,.6g} IOPS offered ({self.arrival.value})")
        if self.compressible_percent is not None:
            words.append(f"{self.compressible_percent} % compressible")
        if self.region is not None:
            words.append(f"within {self.region}")
        if self.stream is not None:
            others = ", ".join(each.name for each in self.together if each.name != self.stream)
            words.append(f"together with {others}")
        return ", ".join(words)

    @property
    def zones_text(self) -> str:
        """Return the zones as text, such as ``50/5 30/15 20/80``. Each pair consists of the percentage of the accesses
        and the percentage of the range.
        """
        return " ".join(f"{zone.access_percent}/{zone.range_percent}" for zone in self.zones)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """One of several loads that run at the same time. ``delay_s`` is the time from the common start to the first I/O of
    this load.
    """

    name: str
    workload: Workload
    delay_s: float = 0.0

    def __post_init__(self) -> None:
        if self.workload.together:
            raise ValueError("a stream is one load")
        if not 0 <= self.delay_s < math.inf:
            raise ValueError(f"delay_s must be 0 or more, but it is {self.delay_s}")


NAME_OF_TOTAL = "all"
SUFFIX_OF_FLUSHES = ", flushes"
_NOT_IN_A_SECTION = re.compile(r"[^A-Za-z0-9._-]")


def is_reserved_name(name: str) -> bool:
    """Return whether a stream cannot have this name, because results use it for the total or for flushes."""
    return name == NAME_OF_TOTAL or name.endswith(SUFFIX_OF_FLUSHES)


def name_section(stream: str) -> str:
    """Return the name of a stream's section in a job of fio. The name of the stream is from a user's file.

    fio treats a section whose name begins with "global" as options for the sections below it. For ``exec_prerun``, fio
    inserts the name without quotes into a shell command (``exec_string`` in fio's ``backend.c``). A space would
    therefore add arguments to the command, and the threads would not wait.
    """
    plain = _NOT_IN_A_SECTION.sub("_", stream)
    return f"_{plain}" if plain.startswith("global") else plain


def combine(streams: Sequence[Stream]) -> Workload:
    """Return the combination of streams that start and stop together.

    The fields of the combination are upper limits: the sum of the jobs, the deepest queue and the largest block size. A
    combination that reads and writes has a ``read_percent`` of 50, because the real mix is known only after the
    measurement.

    Raises:
        ValueError: there are fewer than two streams, or two streams have the same name.
    """
    if len(streams) < 2:
        raise ValueError("a combination needs at least two streams")
    loads = [each.workload for each in streams]
    reads, writes = any(load.reads for load in loads), any(load.writes for load in loads)
    return Workload(
        access=Access.RANDOM if any(load.access is Access.RANDOM for load in loads) else Access.SEQUENTIAL,
        read_percent=50 if reads and writes else 100 * reads,
        block_size_bytes=max(load.block_size_bytes for load in loads),
        jobs=sum(load.jobs for load in loads),
        io_depth=max(load.io_depth for load in loads),
        trims=all(load.trims for load in loads),
        together=tuple(streams),
    )


# The steps of a run that takes a day request the keys of the same few workloads thousands of times, so the keys are
# cached.
@lru_cache(maxsize=256)
def key_of_flushes(workload: Workload) -> Workload:
    """Return the key under which the results of the flushes of a load are listed."""
    return replace(workload, flushes=True, offered_iops=None, burst=None)


def key_of_stream(combination: Workload, name: str) -> Workload:
    """Return the key under which the results of a stream are listed: the workload of the stream, marked as a part of
    the combination.
    """
    stream = next(each for each in combination.together if each.name == name)
    return replace(stream.workload, together=combination.together, stream=name)


@lru_cache(maxsize=256)
def list_streams(combination: Workload) -> tuple[Workload, ...]:
    """Return the keys of the streams of a combination in order. For any other load, the result is empty."""
    if not combination.is_combination:
        return ()
    return tuple(key_of_stream(combination, stream.name) for stream in combination.together)


def list_loads(workload: Workload) -> tuple[Workload, ...]:
    """Return the keys of a load and of all its streams. The key of the flushes follows directly after the key of each
    load with flushes.
    """
    loads = (workload, *list_streams(workload))
    return tuple(key for load in loads for key in ((load, key_of_flushes(load)) if load.flush_every else (load,)))


def split_regions(active_range: ActiveRange, jobs: int, block_size_bytes: int) -> tuple[ActiveRange, ...]:
    """Return separate regions of whole blocks, one for each job. The sizes of the regions differ by no more than one
    block.

    Raises:
        UsageError: the range has fewer blocks than jobs.
    """
    blocks = active_range.length_bytes // block_size_bytes
    if blocks < jobs:
        raise UsageError(
            f"the active range of {format_capacity(active_range.length_bytes)} is too small for "
            f"{format_count(jobs, 'job')} with blocks of {format_block_size(block_size_bytes)}. Choose a larger range "
            "or fewer jobs"
        )
    edges = [blocks * job // jobs for job in range(jobs + 1)]
    return tuple(
        ActiveRange(
            offset_bytes=active_range.offset_bytes + first * block_size_bytes,
            length_bytes=(last - first) * block_size_bytes,
        )
        for first, last in pairwise(edges)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One workload that runs for a given time."""

    workload: Workload
    duration_s: float

    def __post_init__(self) -> None:
        if not self.duration_s > 0:
            raise ValueError(f"duration_s must be more than 0, but it is {self.duration_s}")
