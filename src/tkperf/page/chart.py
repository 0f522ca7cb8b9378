"""Charts as data: axes, curves and what is marked on them.

A renderer draws them. Nothing here knows Vega, a terminal, or the results that the values come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from tkperf.page.words.uncertainty import join_flags


class Scale(StrEnum):
    """Spread of the values of an axis. ``CLOCK`` is ms since the start, ``DATE`` ms since 1970.

    ``RATIO`` is logarithmic around 1.
    """

    LINEAR = "linear"
    LOG = "log"
    ORDINAL = "ordinal"
    CLOCK = "clock"
    DATE = "date"
    RATIO = "ratio"


class Mark(StrEnum):
    """Kinds of marks. ``BOX`` is the spread of the points of each place, ``RANGE`` a band from low to high."""

    LINE = "line"
    BAR = "bar"
    POINT = "point"
    BOX = "box"
    RANGE = "range"


class Legend(StrEnum):
    """Place of the names of curves; ``AUTO``: a few at the ends of their curves, more next to the plot."""

    AUTO = "auto"
    ENDS = "ends"
    TOP = "top"
    NONE = "none"


class ShadeKind(StrEnum):
    """Meaning of a shaded part of the x axis."""

    JUDGED = "judged"
    FLAGGED = "flagged"
    THROTTLED = "throttled"


class RuleKind(StrEnum):
    """Meaning of a straight line."""

    PART = "part"
    LEVEL = "level"
    BOUNDARY = "boundary"
    RATE = "rate"
    REFERENCE = "reference"
    CHANGE = "change"
    WARNING = "warning"
    CRITICAL = "critical"


class SpotKind(StrEnum):
    """Meaning of a marked place."""

    DROP = "drop"
    SPIKE = "spike"


# Names of colours; those of curves are easy to distinguish in this order.
PALETTE = ("blue", "vermilion", "green", "amber", "violet", "sky", "pink", "brown", "olive", "crimson", "slate", "teal")
MANY_COLOURS = (*PALETTE, "orange", "azure", "leaf", "plum")
"""Colours of parts of a chart that do not overlap: more than in ``PALETTE``, so harder to distinguish."""
NEUTRAL = "neutral"
"""Colour of all but curves: ideals, edges."""
DASH_COUNT = 4
"""Number of kinds of lines; 0 is solid."""

Place = float | str


def warmth(place: int, count: int) -> str:
    """Return the colour of one of ``count`` places between cold and warm, for more curves than colours."""
    return f"warmth {place / max(1, count - 1):.4g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis with its unit in the title.

    Attributes:
        places: the places of an ordinal axis in their order.
        domain: the ends of the axis; None: a little beyond the smallest and the greatest value.
        includes: values that the axis includes in any case.
        ticks: the values with a tick; None: round values.
        zero: the axis begins at 0.
    """

    title: str
    scale: Scale = Scale.LINEAR
    places: tuple[Place, ...] = ()
    domain: tuple[float, float] | None = None
    includes: tuple[float, ...] = ()
    ticks: tuple[float, ...] | None = None
    zero: bool = True


class Point(NamedTuple):
    """A point of a curve.

    Attributes:
        low, high: the ends of the interval of the value.
        link: the address that a click opens.
        flag: the reason why the value may not be the device's alone.
        facts: values of the curve's ``facts``.
    """

    x: Place
    y: float | None
    low: float | None = None
    high: float | None = None
    link: str = ""
    flag: str = ""
    facts: tuple[Place | None, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Points that belong together.

    Attributes:
        name: name in the legend; several parts of one curve share it, and its colour.
        variant: meaning of its dash, in a legend of its own.
        label: name at its end, where no title is above it; empty: its name.
        dots: each point can be seen on the line.
        muted: one of many in the background.
        facts: titles of the values shown for a point, without its place.
        has_texts: each point's first fact is written next to it.
        column: the column of a cell's seconds that it draws.
    """

    name: str = ""
    points: tuple[Point, ...] = ()
    mark: Mark = Mark.LINE
    colour: str = PALETTE[0]
    dash: int = 0
    variant: str = ""
    label: str = ""
    dots: bool = False
    muted: bool = False
    facts: tuple[str, ...] = ()
    has_texts: bool = False
    column: str = ""

    @property
    def values(self) -> tuple[float | None, ...]:
        return tuple(point.y for point in self.points)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shade:
    """A shaded part of the x axis; ``text`` gives the reason."""

    kind: ShadeKind
    begin: float
    end: float
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A line across the plot at ``x`` or at ``y``. If ``x``, ``y`` and ``x_end`` are set, the line at ``y`` is limited
    to ``x`` to ``x_end``.

    Attributes:
        name: the text next to the line.
        below: the text is below the line.
        row: the line of text, from the top, for the name of an upright rule.
    """

    kind: RuleKind
    x: float | None = None
    y: float | None = None
    x_end: float | None = None
    name: str = ""
    below: bool = False
    row: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A place that was found; without ``y`` at the top of the plot."""

    kind: SpotKind
    x: float
    y: float | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Common parts of all charts.

    Attributes:
        keywords: banners that apply to every figure, in a few words.
        flags: reasons why figures may not show the device alone, besides those of points and shades.
    """

    title: str
    keywords: str = ""
    flags: tuple[str, ...] = ()

    @property
    def flag_words(self) -> str:
        """Return all reasons why something on it may not show the device alone, each once; empty: none."""
        words = dict.fromkeys(word for word in (*self.flags, *self._flags()) if word)
        return join_flags(words) if words else ""

    @property
    def drawable(self) -> bool:
        """Return whether there is anything to draw."""
        raise NotImplementedError

    def _flags(self) -> Iterable[str]:
        """Return the flags of what is drawn."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart(Picture):
    """Curves, or bars, over an axis.

    Attributes:
        series: title of the legend: the field by which the curves differ.
        variants: meanings of their dashes.
        series_word: the name for a curve, in a point's facts.
        flat: the places are below each other, and the values go to the right.
        grouped: marks of different curves at one place are next to each other.
        low: it is half as high, as it belongs to the chart above it.
        aligned: its time axis begins where those of other aligned charts do.
        filled: False: a page brings the data; those here only show what there may be.
    """

    x: Axis
    y: Axis
    curves: tuple[Curve, ...] = ()
    shades: tuple[Shade, ...] = ()
    rules: tuple[Rule, ...] = ()
    spots: tuple[Spot, ...] = ()
    series: str = ""
    series_word: str = "Series"
    variants: str = ""
    legend: Legend = Legend.AUTO
    flat: bool = False
    grouped: bool = False
    low: bool = False
    aligned: bool = False
    filled: bool = True

    @property
    def drawable(self) -> bool:
        return any(point.y is not None for curve in self.curves for point in curve.points)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the curves, each once; none that is empty or in the background."""
        return tuple(dict.fromkeys(each.name for each in self.curves if each.name and not each.muted))

    def _flags(self) -> Iterator[str]:
        yield from (each.text for each in self.shades if each.kind is ShadeKind.FLAGGED)
        yield from (point.flag for curve in self.curves for point in curve.points)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars3D(Picture):
    """Bars over two axes: columns to the right, rows to the back, the first in front.

    Attributes:
        colours: of the rows.
        bars: a point for each cell that has a value, ``x`` and ``y`` being its name and its value.
        places: the row and the column of each.
        facts: titles of what is shown of a bar: column, row, value, and those of its point.
    """

    columns: tuple[str, ...]
    rows: tuple[str, ...]
    colours: tuple[str, ...]
    column_title: str
    row_title: str
    value_title: str
    bars: tuple[Point, ...]
    places: tuple[tuple[int, int], ...]
    facts: tuple[str, ...] = ()

    @property
    def drawable(self) -> bool:
        return bool(self.bars)

    def _flags(self) -> Iterator[str]:
        return (bar.flag for bar in self.bars)


class Bucket(NamedTuple):
    """I/Os by their response time in us."""

    lower: float
    upper: float
    count: int  # type: ignore[assignment]  # hides tuple.count, which is not used


class Marked(NamedTuple):
    """A response time in us; ``label`` is written at it, empty where that of the next is enough."""

    mark: str
    us: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution(Picture):
    """Response times: I/Os in each bin and the share that took no longer, or the share that took longer.

    Attributes:
        buckets: filled ones in ascending order.
        exceedance: the share that took longer, alone.
        filled: False: a page brings the data.
    """

    buckets: tuple[Bucket, ...]
    marks: tuple[Marked, ...]
    exceedance: bool = False
    filled: bool = True

    @property
    def drawable(self) -> bool:
        return bool(self.buckets)


class Slice(NamedTuple):
    """A column of a heat map: its start and end on the axis, and the I/Os of each band."""

    begin: float
    end: float
    ios: tuple[int, ...]


SHARES_PERCENT = (10.0, 1.0, 0.1, 0.01, 0.0)
"""Least share of a time slice's I/Os that each class of a heat map has, in percent."""
SHARE_NAMES = ("from 10 %", "from 1 %", "from 0.1 %", "from 0.01 %", "less")


def find_share_class(ios: int, of: int) -> int:
    """Return the class of a share that is above 0; 0 is the greatest. Integers keep limits exact."""
    return next(at for at, least in enumerate(SHARES_PERCENT) if 10_000 * ios >= round(100 * least) * of)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap(Picture):
    """I/Os by time and response time; the shade is the share of a time slice's I/Os.

    Attributes:
        edges_us: lower edge of each band of response time, then the upper edge of the last.
        slices: in ascending order; between two there may be time that was not measured.
    """

    x: Axis
    edges_us: tuple[float, ...]
    slices: tuple[Slice, ...]

    @property
    def drawable(self) -> bool:
        return bool(self.slices)


AnyChart = Chart | Bars3D | Distribution | HeatMap
