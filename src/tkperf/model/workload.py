"""Workloads and steps of a test. This module contains no I/O, no clock and nothing of fio."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from tkperf.model.errors import UsageError
from tkperf.model.units import KIB, format_block_size, format_capacity, format_count, format_mix

# The name of a mix of more sizes contains only the smallest and the largest size.
LONGEST_MIX_LISTED = 4
# The alignment of the I/Os of a mix of block sizes, including the smaller I/Os.
MIX_ALIGNMENT_BYTES = 4 * KIB


class Access(StrEnum):
    """Order of block addresses, in the PTS's words."""

    RANDOM = "random"
    SEQUENTIAL = "sequential"

    @property
    def order(self) -> str:
        """Return ``RND`` or ``SEQ``."""
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
        """Return the range that this range, counted from the start of ``outer``, occupies on the device."""
        return ActiveRange(offset_bytes=outer.offset_bytes + self.offset_bytes, length_bytes=self.length_bytes)


class Arrival(StrEnum):
    """The arrival of I/Os at an offered rate: evenly spaced, or at random times (Poisson process)."""

    LINEAR = "linear"
    POISSON = "poisson"


class BlockShare(NamedTuple):
    """A block size, and the percentage of all I/Os that have it."""

    block_size_bytes: int
    percent: int


class Zone(NamedTuple):
    """A percentage of the range, and the percentage of all accesses in this part of the range. Zones follow each
    other.
    """

    access_percent: int
    range_percent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The work of the load generator. It is also the key of the results.

    ``jobs`` is the PTS's thread count (TC), ``io_depth`` its queue depth for each thread (QD).

    Attributes:
        block_size_bytes: size of every I/O; with ``block_mix`` the largest size.
        block_mix: several block sizes and the share of each; empty: one size only.
        zones: distribution of random accesses over the range, from its start; empty: even.
        offered_iops: the rate that all jobs together should issue; None: as fast as the device answers.
        arrival: distribution of an offered rate over time.
        compressible_percent: the part of the data written that a drive's compression could save; None:
            fresh random data, which saves nothing.
        region: the part of the active range that is accessed, counted from the start of the active range; None: the
            whole active range.
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
            raise ValueError(f"offered_iops {self.offered_iops} is not more than 0")
        if self.compressible_percent is not None and not 0 <= self.compressible_percent <= 100:
            raise ValueError(f"compressible_percent {self.compressible_percent} is not within 0..100")

    def _check_block_mix(self) -> None:
        sizes = [share.block_size_bytes for share in self.block_mix]
        if any(size <= 0 or size % 512 for size in sizes) or len(set(sizes)) < len(sizes):
            raise ValueError("block_mix needs different sizes, each a multiple of 512")
        if any(share.percent < 1 for share in self.block_mix):
            raise ValueError("block_mix needs at least 1 percent of each size")
        if sum(share.percent for share in self.block_mix) != 100:
            raise ValueError("the percentages of block_mix do not add up to 100")
        if self.block_size_bytes != max(sizes):
            raise ValueError("block_size_bytes is not the largest size of block_mix")

    def _check_zones(self) -> None:
        if self.access is not Access.RANDOM:
            raise ValueError("only random accesses can have zones")
        if any(zone.access_percent < 0 or zone.range_percent < 1 for zone in self.zones):
            raise ValueError("a zone needs at least 1 percent of the range")
        for name in ("access_percent", "range_percent"):
            if sum(getattr(zone, name) for zone in self.zones) != 100:
                raise ValueError(f"the zones' {name} do not add up to 100")

    @property
    def is_mixed(self) -> bool:
        """Return whether the workload reads and writes."""
        return 0 < self.read_percent < 100

    @property
    def total_outstanding_ios(self) -> int:
        return self.jobs * self.io_depth

    @property
    def mean_block_bytes(self) -> float:
        """Return the mean size of an I/O."""
        if not self.block_mix:
            return self.block_size_bytes
        return sum(share.block_size_bytes * share.percent for share in self.block_mix) / 100

    def arrivals_deviation(self, due_ios: float) -> float:
        """Return the standard deviation of the number of I/Os that are offered in a time in which ``due_ios`` are due
        on average.

        The number of random arrivals varies by definition. A mix of block sizes is offered evenly
        in bytes, while fio draws the size of each I/O: the number of I/Os varies with the sizes.
        Otherwise I/Os are evenly spaced.
        """
        if self.arrival is Arrival.POISSON:
            return math.sqrt(due_ios)
        mean_bytes = self.mean_block_bytes
        variance = sum(share.percent / 100 * (share.block_size_bytes - mean_bytes) ** 2 for share in self.block_mix)
        return math.sqrt(due_ios * variance) / mean_bytes

    @property
    def mix_and_size(self) -> str:
        """Return ``0/100 4k``. This text distinguishes the workloads of most tests."""
        return f"{format_mix(self.read_percent)} {self.blocks_name}"

    @property
    def blocks_name(self) -> str:
        """Return ``blocks_text``, or for a long mix its smallest and largest size and the mean: ``12 sizes 512-64k,
        mean 7.6k``.
        """
        if len(self.block_mix) <= LONGEST_MIX_LISTED:
            return self.blocks_text
        sizes = sorted(share.block_size_bytes for share in self.block_mix)
        ends = "-".join(format_block_size(size) for size in (sizes[0], sizes[-1]))
        return f"{len(sizes)} sizes {ends}, mean {self.mean_block_bytes / KIB:.3g}k"

    @property
    def blocks_text(self) -> str:
        """Return ``4k``, or ``4k 60 % + 64k 40 %``."""
        if not self.block_mix:
            return format_block_size(self.block_size_bytes)
        return " + ".join(f"{format_block_size(share.block_size_bytes)} {share.percent} %" for share in self.block_mix)

    def __str__(self) -> str:
        words = [
            f"{self.access.order} {self.blocks_name} R/W {format_mix(self.read_percent)} "
            f"TC{self.jobs}/QD{self.io_depth}"
        ]
        if self.zones:
            words.append(f"zones {self.zones_text}")
        if self.offered_iops is not None:
            words.append(f"{self.offered_iops:,.6g} IOPS offered ({self.arrival.value})")
        if self.compressible_percent is not None:
            words.append(f"{self.compressible_percent} % compressible")
        if self.region is not None:
            words.append(f"within {self.region}")
        return ", ".join(words)

    @property
    def zones_text(self) -> str:
        """Return ``50/5 30/15 20/80``: percent of accesses / percent of the range."""
        return " ".join(f"{zone.access_percent}/{zone.range_percent}" for zone in self.zones)


def split_regions(active_range: ActiveRange, jobs: int, block_size_bytes: int) -> tuple[ActiveRange, ...]:
    """Return separate regions of whole blocks, one for each job. Their sizes differ by at most one block.

    Raises:
        UsageError: the range has fewer blocks than jobs.
    """
    blocks = active_range.length_bytes // block_size_bytes
    if blocks < jobs:
        raise UsageError(
            f"the active range of {format_capacity(active_range.length_bytes)} is too small for "
            f"{format_count(jobs, 'job')} with blocks of {format_block_size(block_size_bytes)}: "
            "choose a larger range or fewer jobs"
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
    """One workload for one length of time."""

    workload: Workload
    duration_s: float

    def __post_init__(self) -> None:
        if not self.duration_s > 0:
            raise ValueError(f"duration_s {self.duration_s} is not more than 0")
