"""The answers of a drive: its seconds as data, and the calculations that all kinds of drives share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tkperf.model.workload import Access, Arrival, BlockShare, Workload

Floats = NDArray[np.float64]


class Latency(NamedTuple):
    """Latency of one direction in one second. ``slow_share`` of the I/Os take ``slow_times`` as long as the others."""

    mean_ns: float
    slow_share: float = 0.0
    slow_times: float = 1.0


class Second(NamedTuple):
    """A second of a load, or less.

    ``rate`` counts I/Os a second; ``stalled_ios`` of them had to wait for ``stall_s`` in addition.
    """

    rate: float
    read: Latency
    write: Latency
    stalled_ios: int = 0
    stall_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveReport:
    """A drive's report on itself: bytes since it was made; ``warning_c`` is None where it has no limit."""

    temperature_c: float
    host_read_bytes: float
    host_written_bytes: float
    nand_written_bytes: float
    throttled: bool
    throttled_count: int
    warning_c: float | None


class SimulatedDrive(Protocol):
    """A running model of a drive. It raises EngineError where it fails for good."""

    read_spread: float
    write_spread: float

    def serve(self, workload: Workload, duration_s: float) -> Second:
        """Serve the load for so long, a second at most. The call changes the drive's state."""
        ...

    def idle(self, duration_s: float) -> None:
        """Do no I/O for so long."""
        ...

    def purge(self) -> None:
        """Put the drive into "as new" state."""
        ...

    def report(self) -> DriveReport | None:
        """Return the drive's report on itself; None: it has none."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """Rate and mean response times that belong together, in I/Os a second and us."""

    rate: float
    read_us: float
    write_us: float


def balance(
    workload: Workload,
    most: float,
    response_us: Callable[[float], tuple[float, float]],
    *,
    places: int,
    writes_wait: bool,
) -> Response:
    """Return the rate at which the load keeps its I/Os outstanding (Little's law), ``most`` at the most.

    Args:
        workload: with ``offered_iops``, that is the rate, if the drive can do it.
        most: the rate at which something in the drive is busy all the time.
        response_us: gives the times of a read and a write at a rate; does not fall with the rate.
        places: how many I/Os the drive takes at once; the others wait in the host.
        writes_wait: only writes wait longer than ``response_us`` at ``most``, in front of a full buffer; else
            all I/Os do.
    """
    reads = workload.read_percent / 100
    outstanding = workload.total_outstanding_ios
    inside = min(outstanding, places)

    def mean_us(rate: float) -> float:
        read_us, write_us = response_us(rate)
        return reads * read_us + (1 - reads) * write_us

    rate = most
    if most * mean_us(most) > inside * 1e6:
        low, high = 0.0, most
        for _ in range(30):
            rate = (low + high) / 2
            low, high = (rate, high) if rate * mean_us(rate) < inside * 1e6 else (low, rate)
        rate = low
    offered = workload.offered_iops
    if offered is not None and offered < rate:
        return _below(workload, offered, most, response_us)
    read_us, write_us = response_us(rate)
    outside_us = (outstanding - inside) * 1e6 / rate
    beyond_us = max(0.0, inside * 1e6 / rate - mean_us(rate))
    if writes_wait and reads < 1:
        write_us += beyond_us / (1 - reads)
    else:
        read_us, write_us = read_us + beyond_us, write_us + beyond_us
    return Response(rate=rate, read_us=read_us + outside_us, write_us=write_us + outside_us)


def _below(
    workload: Workload,
    offered: float,
    most: float,
    response_us: Callable[[float], tuple[float, float]],
) -> Response:
    """Return the answer at an offered rate that the drive keeps up with.

    The drive waits for I/Os, or some I/Os wait for others.
    """
    use = min(offered / most, 0.999)
    # One server: I/Os at random times wait twice as long as evenly spaced ones.
    waits_us = use / (1 - use) * 1e6 / most * (1.0 if workload.arrival is Arrival.POISSON else 0.5)
    read_us, write_us = (time_us + waits_us for time_us in response_us(offered))
    reads = workload.read_percent / 100
    mean_us = reads * read_us + (1 - reads) * write_us
    # A full queue bounds the mean of all I/Os (Little's law), not reads or writes by themselves.
    fits = min(1.0, workload.total_outstanding_ios * 1e6 / offered / mean_us)
    return Response(rate=offered, read_us=fits * read_us, write_us=fits * write_us)


def block_shares(workload: Workload) -> tuple[BlockShare, ...]:
    """Return the block sizes of a workload with their shares, also if it has only one."""
    return workload.block_mix or (BlockShare(workload.block_size_bytes, 100),)


def mean_units(workload: Workload, unit_bytes: int) -> float:
    """Return the mean number of units that an I/O touches: whole ones at random, sequential I/Os share them."""
    return sum(
        share.percent
        / 100
        * (
            ceil(share.block_size_bytes / unit_bytes)
            if workload.access is Access.RANDOM
            else share.block_size_bytes / unit_bytes
        )
        for share in block_shares(workload)
    )
