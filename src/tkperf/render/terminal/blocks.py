"""Numbers drawn with characters: lines of bars, shares, histograms.

Bars are blocks of eighths if the terminal's encoding has them, otherwise plain ASCII. An unmeasured
value is a gap, never a bar of no height.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

Values = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class BlockLetters:
    """Characters to draw with.

    Attributes:
        heights: bars from the least to the full height of a line.
        done, perhaps, left: parts of a horizontal bar.
        line: fills up the line of a heading.
    """

    heights: str
    done: str
    perhaps: str
    left: str
    line: str

    def spell(self, text: str) -> str:
        """Return a text with the available characters."""
        return text if self is UNICODE else text.replace("µ", "u").replace("°", "")


UNICODE = BlockLetters("▁▂▃▄▅▆▇█", "█", "▒", "░", "─")
ASCII = BlockLetters(".:-=+*%#", "#", "=", ".", "-")


def blocks_for(encoding: str | None) -> BlockLetters:
    """Return the characters that an encoding can show."""
    try:
        (UNICODE.heights + UNICODE.perhaps + UNICODE.left + UNICODE.line).encode(
            encoding or "ascii"
        )
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE


def sparkline(values: Values, blocks: BlockLetters = UNICODE) -> str:
    """Return a bar for each value, between 0 and the greatest of them."""
    top = max((value for value in values if value is not None), default=0.0)
    return "".join(_bar(value, top, blocks) for value in values)


def _bar(value: float | None, top: float, blocks: BlockLetters) -> str:
    if value is None:
        return " "
    most = len(blocks.heights) - 1
    return blocks.heights[0 if top <= 0 else min(most, int(max(0.0, value) / top * (most + 0.999)))]


def squeeze(values: Values, width: int) -> list[float | None]:
    """Return at most ``width`` values; if there are more, each is the mean of a stretch of them."""
    if len(values) <= width:
        return list(values)
    edges = [round(place * len(values) / width) for place in range(width + 1)]
    return [mean(values[first:last]) for first, last in pairwise(edges)]


def mean(values: Values) -> float | None:
    """Return the mean of the measured values; None without any."""
    measured = [value for value in values if value is not None]
    return sum(measured) / len(measured) if measured else None


def share_bar(
    share: float, width: int, blocks: BlockLetters = UNICODE, *, perhaps: float = 0.0
) -> str:
    """Return a bar of the share done, from 0 to 1; ``perhaps``: possibly done up to this share."""
    done = int(min(1.0, max(0.0, share)) * width)
    maybe = max(0, int(min(1.0, perhaps) * width) - done)
    return blocks.done * done + blocks.perhaps * maybe + blocks.left * (width - done - maybe)


def columns(values: Sequence[float], height: int, blocks: BlockLetters = UNICODE) -> Iterator[str]:
    """Yield upright bars over ``height`` lines, from the top; every value above 0 is visible."""
    top = max(values, default=0.0)
    steps = len(blocks.heights)
    heights = [0 if value <= 0 else max(1, round(value / top * height * steps)) for value in values]
    for line in range(height - 1, -1, -1):
        filled = (min(steps, max(0, height_ - line * steps)) for height_ in heights)
        yield "".join(blocks.heights[part - 1] if part else " " for part in filled).rstrip()
