"""Segments of an active range. The random places of the segments are drawn from a seed, and no two segments touch each
other.

The places are drawn only with SHA-256. One seed therefore results in the same places with every version of Python.
docs/explanation/method.md describes the procedure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from tkperf.model.errors import UsageError
from tkperf.model.units import MIB, format_capacity, format_count

# This name changes when a new version of tkperf draws other places from the same seed.
LAYOUT = "tkperf-1"
# The start offsets of larger segments are multiples of this size. A segment boundary therefore does not split a block
# of any test.
LARGEST_STEP_BYTES = MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Segments:
    """Pieces of a device that have the same length, in the order of their places. Together, the pieces form the active
    range.

    Attributes:
        seed: the seed from which the places were drawn.
        length_bytes: length of each segment.
        within_bytes: length of the range, from the start of the device, that contains all segments.
        starts_bytes: start of each segment on the device.
    """

    seed: int
    length_bytes: int
    within_bytes: int
    starts_bytes: tuple[int, ...]

    @property
    def amount_bytes(self) -> int:
        return self.length_bytes * len(self.starts_bytes)

    @property
    def table(self) -> str:
        """Return a text with a line ``START LENGTH`` in bytes for each segment."""
        return "".join(f"{start} {self.length_bytes}\n" for start in self.starts_bytes)

    @property
    def check_sum(self) -> str:
        """Return the SHA-256 of the table. Two layouts with the same places have the same digest."""
        return hashlib.sha256(self.table.encode()).hexdigest()

    def facts(self) -> dict[str, object]:
        """Return the data from which the places can be drawn again, as plain data for the run file."""
        return {
            "count": len(self.starts_bytes),
            "length_bytes": self.length_bytes,
            "within_bytes": self.within_bytes,
            "seed": self.seed,
            "layout": LAYOUT,
            "sha256": self.check_sum,
        }


def draw_segments(*, count: int, amount_bytes: int, within_bytes: int, seed: int) -> Segments:
    """Draw the places of segments at random. All layouts in which no two segments touch have the same probability.

    Args:
        within_bytes: length of the range, from the start of the device, in which the segments may lie.
        seed: at least 0 and less than 2**64.

    Raises:
        UsageError: the segments do not fit into the range.
    """
    length_bytes = amount_bytes // count
    # Segments begin at multiples of a unit, ``step_bytes``. The unit is a power of two that divides the length, so a
    # segment consists of a whole number of units.
    step_bytes = min(length_bytes & -length_bytes, LARGEST_STEP_BYTES)
    steps = length_bytes // step_bytes
    # At least one free unit follows each segment except the last. The other free units are distributed at random.
    free = within_bytes // step_bytes - count * steps - (count - 1)
    if free < 0:
        raise UsageError(
            f"{format_count(count, 'segment')} of {format_capacity(length_bytes)} with gaps between them do not fit "
            f"into {format_capacity(within_bytes)}. Choose fewer segments, or a smaller amount"
        )
    chosen = sorted(_choose(free + count, count, _draw(seed)))
    starts = tuple(step_bytes * (place - number + number * (steps + 1)) for number, place in enumerate(chosen))
    return Segments(seed=seed, length_bytes=length_bytes, within_bytes=within_bytes, starts_bytes=starts)


def _choose(size: int, count: int, draws: Iterator[int]) -> set[int]:
    """Return ``count`` different numbers from 0 to ``size`` - 1. Every choice has the same probability (Floyd's
    algorithm).
    """
    chosen: set[int] = set()
    for last in range(size - count, size):
        one = _below(last + 1, draws)
        chosen.add(last if one in chosen else one)
    return chosen


def _below(limit: int, draws: Iterator[int]) -> int:
    """Return a number below a limit. Every number has the same probability, because draws that would favour the low
    numbers are skipped.
    """
    fair = 2**64 - 2**64 % limit
    return next(draw for draw in draws if draw < fair) % limit


def _draw(seed: int) -> Iterator[int]:
    """Yield 64-bit numbers. Each number consists of the first 8 bytes, low byte first, of the SHA-256 of ``SEED:0``,
    ``SEED:1`` and so on.
    """
    number = 0
    while True:
        digest = hashlib.sha256(f"{seed}:{number}".encode()).digest()
        yield int.from_bytes(digest[:8], "little")
        number += 1
