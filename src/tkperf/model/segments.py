"""Where the segments of an active range lie: random places that do not touch, from a seed. Pure.

The layout is drawn with SHA-256 alone, so that the same seed has the same places with every version
of Python: docs/method.md has the course of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from tkperf.model.errors import UsageError
from tkperf.model.units import MIB, format_capacity, format_count

# Changes with whatever changes the places that a seed stands for.
LAYOUT = "tkperf-1"
# Places of larger segments are multiples of this, so that no block of any test is split in two.
LARGEST_STEP_BYTES = MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Segments:
    """Equal pieces of a device in the order of their places; one behind the other they are the active range.

    Attributes:
        seed: what the places were drawn from.
        length_bytes: of each.
        within_bytes: of the range, from the start of the device, that they lie in.
        starts_bytes: where each begins on the device.
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
        """A line ``START LENGTH`` in bytes for each."""
        return "".join(f"{start} {self.length_bytes}\n" for start in self.starts_bytes)

    @property
    def check_sum(self) -> str:
        """SHA-256 of the table, which tells two layouts apart."""
        return hashlib.sha256(self.table.encode()).hexdigest()

    def facts(self) -> dict[str, object]:
        """All that the places can be drawn from again, as plain data for the run file."""
        return {
            "count": len(self.starts_bytes),
            "length_bytes": self.length_bytes,
            "within_bytes": self.within_bytes,
            "seed": self.seed,
            "layout": LAYOUT,
            "sha256": self.check_sum,
        }


def draw_segments(*, count: int, amount_bytes: int, within_bytes: int, seed: int) -> Segments:
    """Draw one of all layouts in which no two segments touch, each as likely as any other.

    Args:
        within_bytes: the range from the start of the device that they may lie in.
        seed: at least 0 and less than 2**64.

    Raises:
        UsageError: they do not fit.
    """
    length_bytes = amount_bytes // count
    # The largest power of two in the length: what a whole number of goes into each segment.
    step_bytes = min(length_bytes & -length_bytes, LARGEST_STEP_BYTES)
    steps = length_bytes // step_bytes
    # Each segment but the last is followed by one step at least; the other free ones are dealt out.
    free = within_bytes // step_bytes - count * steps - (count - 1)
    if free < 0:
        raise UsageError(
            f"{format_count(count, 'segment')} of {format_capacity(length_bytes)}, no two of them "
            f"touching, do not fit in {format_capacity(within_bytes)}: take fewer, or less in all"
        )
    chosen = sorted(_choose(free + count, count, _draw(seed)))
    starts = tuple(
        step_bytes * (place - number + number * (steps + 1)) for number, place in enumerate(chosen)
    )
    return Segments(
        seed=seed, length_bytes=length_bytes, within_bytes=within_bytes, starts_bytes=starts
    )


def _choose(size: int, count: int, draws: Iterator[int]) -> set[int]:
    """``count`` of the numbers below ``size``, every choice as likely (Floyd's algorithm)."""
    chosen: set[int] = set()
    for last in range(size - count, size):
        one = _below(last + 1, draws)
        chosen.add(last if one in chosen else one)
    return chosen


def _below(limit: int, draws: Iterator[int]) -> int:
    """A whole number below a limit, each as likely: what would favour the low ones is drawn again."""
    fair = 2**64 - 2**64 % limit
    return next(draw for draw in draws if draw < fair) % limit


def _draw(seed: int) -> Iterator[int]:
    """64-bit numbers: the first 8 bytes of SHA-256 of ``SEED:0``, ``SEED:1`` ..., low byte first."""
    number = 0
    while True:
        digest = hashlib.sha256(f"{seed}:{number}".encode()).digest()
        yield int.from_bytes(digest[:8], "little")
        number += 1
