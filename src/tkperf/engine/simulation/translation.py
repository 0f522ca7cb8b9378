"""A flash translation layer as a mean field: the valid share of each superblock, not of each page.

Superblocks are so large that random writes fall on them in proportion: ``w`` bytes of writes over ``u`` bytes
of addresses leave the share exp(-w/u) of the valid data of an address slice. Garbage collection
is greedy: the superblock with the least valid data is next. Its valid data are copied into
superblocks of copies, apart from the host's writes, as drives do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tkperf.engine.simulation.service import Floats
from tkperf.model.workload import ActiveRange

SUPERBLOCKS = 256
# Slices of the active range: the zones of the PTS's composite workload (5, 15 and 80 %) are whole slices.
SLICES = 40
# Share of the flash written at once. Only drives that are written in full within seconds need more, in
# tests; they settle all the same, over more seconds.
_MOST_AT_ONCE = 0.25
_NOTHING = 1e-6
# Above this share of valid data, copying a superblock while idle is not worth it.
_WORTH_COLLECTING = 0.98


@dataclass(frozen=True, slots=True, eq=False)
class WriteSpread:
    """The spread of random writes over the slices.

    Each slice gets ``share`` of them, on ``span_bytes`` of addresses, which are ``of_slice`` of the slice's.
    """

    share: Floats
    span_bytes: Floats
    of_slice: Floats


class FlashTranslation:
    """The places of the valid data. All amounts are bytes; addresses count from the active range's start."""

    def __init__(self, user_bytes: float, spare_share: float, active_bytes: float) -> None:
        self.superblock_bytes = user_bytes * (1 + spare_share) / SUPERBLOCKS
        self._slice_bytes = active_bytes / SLICES
        # By slice and superblock. The last slice has the writes of a sequential pass within the slice that it is in.
        self._valid: Floats = np.zeros((SLICES + 1, SUPERBLOCKS))
        self.host_bytes = 0.0
        self.copied_bytes = 0.0
        self.forget_all()

    def forget_all(self) -> None:
        """Erase every superblock, as in a new drive."""
        self._valid[:] = 0.0
        self._free = list(range(1, SUPERBLOCKS))
        self._open, self._room = 0, self.superblock_bytes
        self._copies: int | None = None
        self._copies_room = 0.0
        self._pass_slice, self._passed = 0, 0.0
        # Random writes that are not in ``_valid`` yet: one exponential for all of them is faster.
        self._scattered: tuple[float, WriteSpread | None] = 0.0, None
        self.amplification = 1.0

    @property
    def mapped_bytes(self) -> float:
        self._scatter()
        return float(self._valid.sum())

    @property
    def free_bytes(self) -> float:
        """Return the bytes that are erased and ready to be written."""
        return len(self._free) * self.superblock_bytes + self._room

    def write_random(self, amount: float, spread: WriteSpread) -> None:
        self._end_pass()
        amount = min(amount, _MOST_AT_ONCE * SUPERBLOCKS * self.superblock_bytes)
        while amount > _NOTHING:
            chunk_bytes = min(amount, self._make_room())
            if self._scattered[1] is not spread:
                self._scatter()
            self._scattered = self._scattered[0] + chunk_bytes, spread
            self._wrote(chunk_bytes)
            amount -= chunk_bytes

    def write_sequential(self, amount: float, position: float, region: ActiveRange) -> float:
        """Write sequentially and return the position after it. The position starts again at the region's end."""
        self._scatter()
        begin, end = float(region.offset_bytes), float(region.offset_bytes + region.length_bytes)
        amount = min(amount, 2 * SUPERBLOCKS * self.superblock_bytes)
        while amount > _NOTHING:
            if not begin <= position < end - _NOTHING:
                position = begin
            number = min(int(position / self._slice_bytes + 1e-9), SLICES - 1)
            slice_end = self._slice_bytes * (number + 1) if number < SLICES - 1 else end
            if number != self._pass_slice:
                self._end_pass()
                self._pass_slice = number
            left = self._slice_bytes - self._passed
            chunk_bytes = min(amount, self._make_room(), slice_end - position, end - position, left)
            self._valid[number] *= max(0.0, 1 - chunk_bytes / left)
            self._valid[SLICES, self._open] += chunk_bytes
            self._wrote(chunk_bytes)
            self._passed += chunk_bytes
            if self._slice_bytes - self._passed <= _NOTHING:
                self._end_pass()
            position, amount = position + chunk_bytes, amount - chunk_bytes
        return position

    def collect(self, copy_bytes: float, free_bytes: float) -> float:
        """Collect garbage while idle: copy at most so much, until so much is free.

        Returns:
            The bytes that were copied.
        """
        self._scatter()
        copied = 0.0
        while copied < copy_bytes and self.free_bytes < free_bytes:
            valid = self._collect_one(_WORTH_COLLECTING * self.superblock_bytes)
            if valid is None:
                break
            copied += valid
        return copied

    def _collect_one(self, most: float = np.inf) -> float | None:
        """Copy the valid data of the next victim to the other copies.

        Returns:
            The bytes copied; None if no superblock has as little as ``most`` of them.
        """
        victim, valid = self._find_victim()
        if valid > most:
            return None
        moved = 0.0
        if self._copies is not None and valid > 0:
            moved = min(valid, self._copies_room)
            self._valid[:, self._copies] += self._valid[:, victim] * (moved / valid)
            self._valid[:, victim] *= 1 - moved / valid
            self._copies_room -= moved
        if valid - moved > _NOTHING:
            # The rest begins the next superblock of copies, a spare one. It takes the victim's place.
            self._copies, self._copies_room = victim, self.superblock_bytes - valid + moved
        else:
            self._valid[:, victim] = 0.0
            self._free.append(victim)
        self.copied_bytes += valid
        self.amplification = self.superblock_bytes / (self.superblock_bytes - valid)
        return valid

    def _find_victim(self) -> tuple[int, float]:
        """Return the superblock with the least valid data, and their bytes."""
        totals = self._valid.sum(axis=0)
        totals[self._free] = totals[self._open] = np.inf
        if self._copies is not None:
            totals[self._copies] = np.inf
        victim = int(totals.argmin())
        return victim, float(totals[victim])

    def _make_room(self) -> float:
        """Return the room in the open superblock. Open another one if it is full."""
        if self._room > _NOTHING:
            return self._room
        self._scatter()
        self.amplification = 1.0
        while not self._free:
            self._collect_one()
        self._open, self._room = self._free.pop(), self.superblock_bytes
        return self._room

    def _scatter(self) -> None:
        """Apply the random writes since the last call, all of them to the open superblock."""
        amount, spread = self._scattered
        self._scattered = 0.0, None
        if spread is None:
            return
        hit = -np.expm1(-amount * spread.share / spread.span_bytes)
        self._valid[:SLICES] *= (1 - hit * spread.of_slice)[:, np.newaxis]
        self._valid[:SLICES, self._open] += hit * spread.span_bytes

    def _wrote(self, amount: float) -> None:
        self._room -= amount
        self.host_bytes += amount

    def _end_pass(self) -> None:
        """Turn the writes of a sequential pass into data of its slice like any other."""
        if self._passed:
            self._valid[self._pass_slice] += self._valid[SLICES]
            self._valid[SLICES] = 0.0
            self._passed = 0.0
