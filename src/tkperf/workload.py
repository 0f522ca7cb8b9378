"""What to do: workloads, cells and steps. No I/O, no clock, no fio."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from tkperf.units import format_block_size, format_mix


class Access(StrEnum):
    """Order of block addresses, in the PTS's words."""

    RANDOM = "random"
    SEQUENTIAL = "sequential"


class Cell(NamedTuple):
    """Key of a cell in a result table. Cells are found by key, never by position."""

    read_percent: int
    block_size_bytes: int

    def __str__(self) -> str:
        return f"{format_mix(self.read_percent)} {format_block_size(self.block_size_bytes)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One access pattern at one demand intensity: OIO = ``jobs`` x ``io_depth``.

    ``jobs`` is the PTS's thread count (TC), ``io_depth`` its queue depth per thread (QD).
    """

    access: Access
    read_percent: int
    block_size_bytes: int
    jobs: int
    io_depth: int

    def __post_init__(self) -> None:
        if not 0 <= self.read_percent <= 100:
            raise ValueError(f"read_percent {self.read_percent} is not within 0..100")
        if self.block_size_bytes <= 0 or self.block_size_bytes % 512:
            raise ValueError(f"block_size_bytes {self.block_size_bytes} is not a multiple of 512")
        if self.jobs < 1 or self.io_depth < 1:
            raise ValueError(f"jobs {self.jobs} and io_depth {self.io_depth} must be 1 or more")

    @property
    def cell(self) -> Cell:
        return Cell(self.read_percent, self.block_size_bytes)

    @property
    def total_outstanding_ios(self) -> int:
        return self.jobs * self.io_depth

    def __str__(self) -> str:
        order = "RND" if self.access is Access.RANDOM else "SEQ"
        return (
            f"{order} {format_block_size(self.block_size_bytes)} R/W "
            f"{format_mix(self.read_percent)} TC{self.jobs}/QD{self.io_depth}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveRange:
    """The part of the device that a run touches (PTS: active range, AR)."""

    offset_bytes: int
    length_bytes: int

    def __post_init__(self) -> None:
        if self.offset_bytes < 0 or self.length_bytes <= 0:
            raise ValueError(f"active range {self.offset_bytes}+{self.length_bytes} is empty")

    def within(self, outer: ActiveRange) -> ActiveRange:
        """This range, counted from the start of another one, as bytes of the device."""
        return ActiveRange(
            offset_bytes=outer.offset_bytes + self.offset_bytes, length_bytes=self.length_bytes
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One workload for one length of time.

    ``area`` is the part of the active range it stays in, counted from the start of the active
    range; None is all of it.
    """

    workload: Workload
    duration_s: float
    area: ActiveRange | None = None

    def __post_init__(self) -> None:
        if not self.duration_s > 0:
            raise ValueError(f"duration_s {self.duration_s} is not more than 0")
