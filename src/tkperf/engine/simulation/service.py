"""The seconds of a drive as data, and what all kinds of drives share: queueing, block sizes, misbehaviour."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, sqrt
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tkperf.engine.simulation.models import Misbehaviour
from tkperf.model.errors import EngineError
from tkperf.model.telemetry.drive_reading import Reading
from tkperf.model.workload import Access, Arrival, BlockShare, Workload

Floats = NDArray[np.float64]

# An unsteady drive takes another level at every new load, and at these intervals under the same one: with
# any length of a round or slice, one of the three differs from one to the next.
_SCALES_S = (1.0, 8.0, 60.0)
# The n-th level is the fraction of n times this: for the distances that tests use, no five levels with the same
# distance lie close together.
_GOLDEN = (sqrt(5) - 1) / 2
_LEAST_SHARE = 0.02


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


class SimulatedDrive(Protocol):
    """A running model of a drive. It raises EngineError where it fails for good.

    Attributes:
        warning_c: its own temperature limit; None: it has none.
    """

    read_spread: float
    write_spread: float
    warning_c: float | None

    def serve(self, workload: Workload, duration_s: float) -> Second:
        """Serve the load for a time, a second at most. The call changes the drive's state."""
        ...

    def idle(self, duration_s: float) -> None:
        """Do no I/O for a time."""
        ...

    def purge(self) -> None:
        """Put the drive into "as new" state."""
        ...

    def read_log(self, at_s: float) -> Reading | None:
        """Return the drive's log, read at this time; None: it keeps none."""
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
    workload: Workload, offered: float, most: float, response_us: Callable[[float], tuple[float, float]]
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


class Moods:
    """One drive's misbehaviour. ``at_s`` is the time since it was switched on."""

    def __init__(self, misbehaviour: Misbehaviour) -> None:
        self._does = misbehaviour
        self._loads: dict[Workload, int] = {}
        self._load: Workload | None = None
        self._since_s = 0.0

    def share(self, workload: Workload, at_s: float, fills: float) -> float:
        """Return the share of its rate that is left now under a load, after so many capacities of writes."""
        does = self._does
        share = self._level(workload, at_s) if does.unrest else 1.0
        # It begins at its full rate, so that it has something to fall from.
        every_s, lasts_s = does.cliff_every_s, does.cliff_lasts_s
        if every_s is not None and at_s % every_s >= every_s - lasts_s:
            share *= does.cliff_share
        left: float = (1 - does.weaker_per_fill) ** fills
        return max(_LEAST_SHARE, share * left)

    def stall_s(self, at_s: float, duration_s: float) -> float:
        """Return how long the drive answers nothing within the coming ``duration_s``."""
        every_s = self._does.stall_every_s
        if every_s is None or (at_s + duration_s) // every_s == at_s // every_s:
            return 0.0
        return min(self._does.stall_s, 0.9 * duration_s)

    def require_alive(self, fills: float) -> None:
        """Require that the drive has not failed yet.

        Raises:
            EngineError: the drive has failed.
        """
        end = self._does.fails_after_fills
        if end is not None and fills >= end:
            raise EngineError(
                f"the simulated drive has failed, as this one does after {end:g} capacities of "
                "writes: Input/output error; SIMULATED"
            )

    def _level(self, workload: Workload, at_s: float) -> float:
        if workload != self._load:
            self._load, self._since_s = workload, at_s
            self._loads[workload] = self._loads.get(workload, 0) + 1
        level = 1.0
        for scale_s in _SCALES_S:
            number = self._loads[workload] + int((at_s - self._since_s) / scale_s + 1e-6)
            level *= (1 - self._does.unrest) ** (number * _GOLDEN % 1)
        return level
