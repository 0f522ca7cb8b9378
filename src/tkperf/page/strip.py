"""Define values on one line as plain data. The line shows drives as dots around their median, or one value as a bar,
together with limits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from tkperf.analysis.comparing.arrangements import CohortDistribution
from tkperf.page.verdict_texts import NoteLevel

# If the distance between two dots is less than this share of the width, the dots would overlap.
_DOT = 0.026
_MOST_LANES = 5
# Three constants for names: the width of a letter as a share of the line's width, the number of lanes that a name
# covers, and the greatest number of names.
_LETTER, _LANES_OF_NAME, _MOST_LABELS = 0.021, 2, 3
# The share of the width that remains free at each end, so that a dot fits there.
_MARGIN = 0.03
# If the distance between a limit and the values exceeds this multiple of their range, the values would be drawn too
# close together. The limit is then drawn at the end of the line.
_FARTHEST = 2.5
# The line is longer than the longest bar by this factor, so that a bar does not reach the end of the line.
_ROOM = 1.08


class TickKind(StrEnum):
    """The meaning of a tick on the line."""

    MEDIAN = "median"
    CLAIM = "claim"
    OUTLIER = "outlier"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A marked value on the line.

    Attributes:
        share: the position on the line, from 0 to 1.
        text: the value in words, such as ``claim ≥ 45,000``; empty if another text explains the value.
        is_off_scale: whether the value lies beyond the end of the line, so that the tick is drawn at the end.
    """

    kind: TickKind
    share: float
    text: str = ""
    is_off_scale: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """The value of a drive as a dot.

    Attributes:
        share: the position on the line, from 0 to 1.
        lane: the position across the line. Different lanes prevent dots from overlapping: 0 is on the line, -1 is above
            it, and 1 is below it.
        level: the severity of the value; None for a dot without a severity.
        name: the name of the drive, which is written beside a dot with a severity.
        hint: the drive and its value in words.
    """

    share: float
    lane: int = 0
    level: NoteLevel | None = None
    name: str = ""
    hint: str = ""

    @property
    def is_named_before(self) -> bool:
        """Return whether the name is before the dot. This is the case if the space after the dot is too small."""
        return self.share > 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """Values that are shown on one line.

    Attributes:
        text: the content of the strip in words, for screen readers.
        missed: the beginning and the end of the part of the line in which a value misses the claim; None if there is no
            claim.
        bar: the length of the bar of a single value; None if the strip shows dots.
        low, high: the ends of the interval of the single value; None if they are not known.
        level: the severity of the bar.
    """

    text: str
    dots: tuple[Dot, ...] = ()
    ticks: tuple[Tick, ...] = ()
    missed: tuple[float, float] | None = None
    bar: float | None = None
    low: float | None = None
    high: float | None = None
    level: NoteLevel | None = None

    @property
    def named(self) -> tuple[Dot, ...]:
        """Return the dots that have a severity."""
        return tuple(dot for dot in self.dots if dot.level is not None)

    @property
    def labelled(self) -> tuple[Dot, ...]:
        """Return the dots whose names are written beside them. Failures are first.

        A dot is omitted if its name would cover another name or another dot with a name.
        """
        kept: list[Dot] = []
        for dot in sorted(self.named, key=lambda one: one.level is not NoteLevel.FAILURE):
            begin, end = _find_label(dot)
            others = [(one.share, one.share, one) for one in self.named if one is not dot]
            others += [(*_find_label(one), one) for one in kept]
            is_free = all(
                low - _DOT > end or high + _DOT < begin or abs(one.lane - dot.lane) >= _LANES_OF_NAME
                for low, high, one in others
            )
            if is_free and len(kept) < _MOST_LABELS:
                kept.append(dot)
        return tuple(kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The limit of a claim. A value on the good side of the limit meets the claim.

    Attributes:
        text: the limit in words, such as ``≥ 45,000``.
    """

    value: float
    is_least: bool
    text: str


def _find_label(dot: Dot) -> tuple[float, float]:
    """Return the beginning and the end of a name beside its dot, as shares of the width."""
    length = _DOT + _LETTER * len(dot.name)
    return (dot.share - length, dot.share) if dot.is_named_before else (dot.share, dot.share + length)


def build_dot_strip(
    values: Sequence[tuple[float, Dot]], text: str, *, cohort: CohortDistribution | None, limit: Limit | None = None
) -> Strip:
    """Return a strip with a dot for each drive.

    Args:
        values: each value with its dot. This function sets the position of the dot.
        cohort: contains the median and the limits of outliers; None if there are too few drives.
        limit: the limit of the claim; None if there is no claim.
    """
    known = [value for value, _ in values]
    of_cohort = [] if cohort is None else [cohort.median]
    low, high = min((*known, *of_cohort)), max((*known, *of_cohort))
    outlier_ends = [] if cohort is None else [cohort.outlier_low, cohort.outlier_high]
    room = (high - low) or abs(high) * 0.01 or 1.0
    for end in outlier_ends:
        if end is not None and low - room <= end <= high + room:
            low, high = min(low, end), max(high, end)
    room = (high - low) or abs(high) * 0.01 or 1.0
    if limit is not None and low - _FARTHEST * room <= limit.value <= high + _FARTHEST * room:
        low, high = min(low, limit.value), max(high, limit.value)
    width = (high - low) or abs(high) * 0.01 or 1.0

    def place(value: float) -> float:
        if high == low:
            return 0.5
        return min(1.0, max(0.0, _MARGIN + (1 - 2 * _MARGIN) * (value - low) / width))

    ticks = [Tick(kind=TickKind.MEDIAN, share=place(cohort.median))] if cohort is not None else []
    ticks += [
        Tick(kind=TickKind.OUTLIER, share=place(end)) for end in outlier_ends if end is not None and low <= end <= high
    ]
    missed = None
    if limit is not None:
        at = place(limit.value) if high != low else (0.0 if limit.value < low else 1.0)
        is_off_scale = not low <= limit.value <= high
        text_of_limit = _name_limit(limit, low, high)
        ticks.append(Tick(kind=TickKind.CLAIM, share=at, text=text_of_limit, is_off_scale=is_off_scale))
        missed = (0.0, at) if limit.is_least else (at, 1.0)
    dots = [replace(dot, share=place(value)) for value, dot in values]
    return Strip(text=text, dots=tuple(_spread_over_lanes(dots)), ticks=tuple(ticks), missed=missed)


def _name_limit(limit: Limit, low: float, high: float) -> str:
    if limit.value < low:
        return f"◂ claim {limit.text}"
    return f"claim {limit.text} ▸" if limit.value > high else f"claim {limit.text}"


def _spread_over_lanes(dots: Sequence[Dot]) -> Iterator[Dot]:
    """Yield the dots. Each dot is placed in a lane in which it does not cover another dot, if such a lane exists. Of
    these lanes, the lane nearest to the line is used.
    """
    lanes = [(lane + 1) // 2 * (-1 if lane % 2 else 1) for lane in range(_MOST_LANES)]
    last = dict.fromkeys(lanes, -1.0)
    for dot in sorted(dots, key=lambda one: one.share):
        free = (lane for lane in lanes if dot.share - last[lane] >= _DOT)
        lane = next(free, min(lanes, key=lambda one: last[one]))
        last[lane] = dot.share
        yield replace(dot, lane=lane)


def build_bar_strip(
    value: float,
    text: str,
    *,
    limit: Limit,
    interval: tuple[float | None, float | None] = (None, None),
    level: NoteLevel | None,
) -> Strip:
    """Return a strip with a bar from 0 to the value and with the limit. If the interval of the value is known, the
    strip shows the interval too.
    """
    low, high = interval
    whole = _ROOM * max(value, limit.value, high or 0.0) or 1.0
    at = limit.value / whole
    return Strip(
        text=text,
        ticks=(Tick(kind=TickKind.CLAIM, share=at, text=limit.text),),
        missed=(0.0, at) if limit.is_least else (at, 1.0),
        bar=max(0.0, value / whole),
        low=None if low is None else max(0.0, low / whole),
        high=None if high is None else high / whole,
        level=level,
    )
