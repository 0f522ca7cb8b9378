"""A simulation of a hard disk second by second: the position of its heads, and the distance that they must move."""

from __future__ import annotations

from math import sqrt

import numpy as np

from tkperf.engine.simulation.models import DiskModel
from tkperf.engine.simulation.service import Latency, Moods, Second, balance
from tkperf.model.workload import Access, ActiveRange, Workload, Zone

# The mean of the square root of the distance between two random places, relative to the square root of the whole
# distance.
_MEAN_ROOT = 8 / 15


class HardDisk:
    """A hard disk that is simulated according to a ``DiskModel``."""

    def __init__(self, model: DiskModel, active_range_bytes: int, random: np.random.Generator) -> None:
        self._model = model
        self._range = ActiveRange(offset_bytes=0, length_bytes=active_range_bytes)
        self._capacity = max(model.capacity_bytes, active_range_bytes)
        self._random = random
        self._moods = Moods(model.misbehaviour)
        self.read_spread = self.write_spread = model.spread
        self.warning_c: float | None = None
        # The write cache is off, so it contains no data to flush.
        self.flush_s, self.suspend_s, self.reads_go_first = model.command_us / 1e6, 0.0, False
        self._at_s = 0.0
        self._written = 0.0
        self._positions: dict[Workload, float] = {}

    def trim(self, workload: Workload, amount_bytes: float) -> None:
        """Do nothing, because trimmed data does not change the speed of a disk."""

    def purge(self) -> None:
        """Do nothing, because the data on a disk does not change its speed."""

    def read_log(self, at_s: float) -> None:
        """Return None, because the model has neither heat nor counters."""

    def idle(self, duration_s: float) -> None:
        self._at_s += duration_s

    def bytes_per_s(self, position: float) -> float:
        """Return the rate of the media at an address, in bytes per second. This is the rate at which bytes pass the
        head.

        All tracks are equally wide, so an address is proportional to the area outside the track of this address.
        """
        model = self._model
        shrunk = 1 - (model.inner_bytes_per_s / model.outer_bytes_per_s) ** 2
        return model.outer_bytes_per_s * sqrt(1 - min(1.0, position / self._capacity) * shrunk)

    def serve(self, workload: Workload, duration_s: float) -> Second:
        fills = self._written / self._capacity
        self._moods.require_alive(fills)
        if workload.access is Access.RANDOM:
            busy_us = self._random_us(workload)
        else:
            busy_us = self._sequential_us(workload)
        share = self._moods.share(workload, self._at_s, fills)
        share *= min(1.5, max(0.5, self._random.normal(1, self._model.noise)))
        busy_us /= share
        answer = balance(
            workload, 1e6 / busy_us, lambda _: (busy_us, busy_us), places=self._model.queue_places, writes_wait=False
        )
        stall_s = self._moods.stall_s(self._at_s, duration_s)
        rate = answer.rate * (1 - stall_s / duration_s)
        self._at_s += duration_s
        moved = rate * duration_s * workload.mean_block_bytes
        self._written += moved * (1 - workload.read_percent / 100)
        if workload.access is Access.SEQUENTIAL:
            self._move(workload, moved)
        return Second(
            rate=rate,
            read=Latency(answer.read_us * 1e3),
            write=Latency(answer.write_us * 1e3),
            stalled_ios=workload.total_outstanding_ios if stall_s else 0,
            stall_s=stall_s,
        )

    @property
    def _turn_us(self) -> float:
        return 60e6 / self._model.turns_per_minute

    def _seek_us(self, root_of_way: float) -> float:
        """Return the seek time in µs. The heads accelerate and brake, so the seek time grows with the square root of
        the distance.
        """
        shortest, longest = self._model.shortest_seek_ms, self._model.longest_seek_ms
        return 1e3 * (shortest + (longest - shortest) * root_of_way)

    def _settle_us(self, workload: Workload) -> float:
        return 1e3 * self._model.write_settle_ms * (1 - workload.read_percent / 100)

    def _random_us(self, workload: Workload) -> float:
        """Return the time of one I/O in µs, counted from the end of the preceding I/O.

        If the drive can choose among n I/Os, the heads move like an elevator with n stops. The drive first serves the
        I/O whose place on the platter reaches the head first.
        """
        region = workload.region or self._range
        choice = min(workload.total_outstanding_ios, self._model.queue_places)
        places = _places(workload.zones) * region.length_bytes / self._capacity
        root = float(np.sqrt(np.abs(places[:, np.newaxis] - places)).mean())
        middle = region.offset_bytes + float(places.mean()) * self._capacity
        return (
            self._model.command_us
            + self._seek_us(root * sqrt(3 / (choice + 2)))
            + self._turn_us / (1 + sqrt(choice))
            + self._settle_us(workload)
            + workload.mean_block_bytes * 1e6 / self.bytes_per_s(middle)
        )

    def _sequential_us(self, workload: Workload) -> float:
        region = workload.region or self._range
        position = self._positions.get(workload, float(region.offset_bytes))
        block_bytes = workload.mean_block_bytes
        busy_us = block_bytes * 1e6 / self.bytes_per_s(position)
        if workload.jobs > 1:
            way = _MEAN_ROOT * sqrt(region.length_bytes / self._capacity)
            between_us = self._seek_us(way) + self._turn_us / 2 + self._settle_us(workload)
            busy_us += between_us * min(1.0, block_bytes / self._model.stream_bytes)
        if workload.total_outstanding_ios == 1:
            # The next write arrives just after its place has passed the head, so the write waits for one rotation.
            # Reads are served from the buffer, so they do not wait.
            missed_us = self._turn_us * (1 - workload.read_percent / 100)
            return busy_us + self._model.command_us + missed_us
        return max(busy_us, self._model.command_us)

    def _move(self, workload: Workload, moved: float) -> None:
        region = workload.region or self._range
        position = self._positions.get(workload, float(region.offset_bytes)) + moved
        past = (position - region.offset_bytes) % region.length_bytes
        self._positions[workload] = region.offset_bytes + past


def _places(zones: tuple[Zone, ...]) -> np.ndarray:
    """Return a hundred places that are accessed equally often, as shares of the region."""
    percentiles, begin, places = np.arange(100) + 0.5, 0.0, []
    accesses = 0.0
    for zone in zones or (Zone(100, 100),):
        inside = percentiles[(percentiles >= accesses) & (percentiles < accesses + zone.access_percent)]
        if zone.access_percent:
            places.append(begin + (inside - accesses) / zone.access_percent * zone.range_percent)
        accesses, begin = accesses + zone.access_percent, begin + zone.range_percent
    return np.concatenate(places) / 100
