"""Charts as data: axes, curves, and the marks on them.

A renderer draws the charts. This module does not know Vega, terminals, or the results from which the values come.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from tkperf.page.words.uncertainty import join_flags


class Scale(StrEnum):
    """How the values of an axis are spread. ``CLOCK`` is ms since the start, ``DATE`` is ms since 1970."""

    LINEAR = "linear"
    LOG = "log"
    ORDINAL = "ordinal"
    CLOCK = "clock"
    DATE = "date"


class Mark(StrEnum):
    """Kinds of marks. ``BOX`` shows the spread of the points of each place."""

    LINE = "line"
    BAR = "bar"
    POINT = "point"
    BOX = "box"


class Legend(StrEnum):
    """Place of the names of curves. ``AUTO``: a few names are at the ends of their curves, more are next to the
    plot.
    """

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


# Names of colours. The colours of curves are easy to distinguish in this order.
PALETTE = ("blue", "vermilion", "green", "amber", "violet", "sky", "pink", "brown", "olive", "crimson", "slate", "teal")
MANY_COLOURS = (*PALETTE, "orange", "azure", "leaf", "plum")
"""Colours of parts of a chart that do not overlap. They are more than in ``PALETTE``, and harder to distinguish."""
NEUTRAL = "neutral"
"""Colour of everything except curves, such as ideals and edges."""
DASH_COUNT = 4
"""Number of kinds of lines. 0 is solid."""

Place = float | str


def warmth(place: int, count: int) -> str:
    """Return the colour of one of ``count`` places between cold and warm, for more curves than colours."""
    return f"warmth {place / max(1, count - 1):.4g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis, whose title contains the unit.

    Attributes:
        places: the places of an ordinal axis in their order.
        domain: the ends of the axis; None: slightly beyond the smallest and the greatest value.
        includes: values that the axis always includes.
        ticks: the values with a tick; None: round values.
        zero: whether the axis begins at 0.
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
        flag: the reason why the value may not describe the device alone.
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
        name: the name in the legend. Several parts of a curve share the name and the colour.
        variant: the meaning of the dash pattern, in a separate legend.
        label: the name at the end of the curve, where no title is above it; empty: ``name``.
        dots: whether each point is visible on the line.
        muted: whether the curve is one of many in the background.
        facts: titles of the values that are shown for a point, without the place of the point.
        has_texts: whether the first fact of each point of a line is written next to the point.
        column: the column of a cell's seconds that the curve draws.
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
    """A shaded part of the x axis. ``text`` gives the reason."""

    kind: ShadeKind
    begin: float
    end: float
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A line across the plot at ``x`` or at ``y``. If ``x``, ``y`` and ``x_end`` are given, the line at ``y`` extends
    from ``x`` to ``x_end``.

    Attributes:
        name: the text next to the line.
        below: whether the text is below the line.
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
    """A place that was found. Without ``y``, the mark is at the top of the plot."""

    kind: SpotKind
    x: float
    y: float | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """The parts that all charts have in common.

    Attributes:
        keywords: banners that apply to every figure, in a few words.
        flags: reasons why figures may not show the device alone, besides those of points and shades.
    """

    title: str
    keywords: str = ""
    flags: tuple[str, ...] = ()

    @property
    def flag_words(self) -> str:
        """Return all reasons why a value on the chart may not describe the device alone, each once; empty: there is
        none.
        """
        words = dict.fromkeys(word for word in (*self.flags, *self._flags()) if word)
        return join_flags(words) if words else ""

    @property
    def drawable(self) -> bool:
        """Return whether there is anything to draw."""
        raise NotImplementedError

    def _flags(self) -> Iterable[str]:
        """Return the flags of everything that is drawn."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart(Picture):
    """Curves, or bars, over an axis.

    Attributes:
        series: title of the legend: the field by which the curves differ.
        variants: meanings of the dash patterns.
        series_word: the word for a curve in the facts of a point.
        grouped: whether marks of different curves at one place are next to each other.
        low: whether the chart has half the height, because it belongs to the chart above.
        aligned: whether its time axis begins at the same place as those of other aligned charts.
        filled: whether the chart contains its data. If not, a page inserts the data, and the data in the chart are only
            examples.
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
    grouped: bool = False
    low: bool = False
    aligned: bool = False
    filled: bool = True

    @property
    def drawable(self) -> bool:
        return any(point.y is not None for curve in self.curves for point in curve.points)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the curves, each once, without empty names and names of background curves."""
        return tuple(dict.fromkeys(each.name for each in self.curves if each.name and not each.muted))

    def _flags(self) -> Iterator[str]:
        yield from (each.text for each in self.shades if each.kind is ShadeKind.FLAGGED)
        yield from (point.flag for curve in self.curves for point in curve.points)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars3D(Picture):
    """Bars over two axes: columns to the right, and rows to the back with the first row in front.

    Attributes:
        colours: the colours of the rows.
        bars: a point for each cell with a value. ``x`` and ``y`` are the name and the value of the cell.
        places: the row and the column of each bar.
        facts: titles of the facts about a bar: column, row, value, and the facts of its point.
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
    """The number of I/Os in a bucket of response times in us."""

    lower: float
    upper: float
    count: int  # type: ignore[assignment]  # hides tuple.count, which is not used


class Marked(NamedTuple):
    """A response time in us. ``label`` is written next to it; it is empty if the label of the next one suffices."""

    mark: str
    us: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution(Picture):
    """Response times: the I/Os in each bucket, and the share of I/Os that took no longer, or the share that took
    longer.

    Attributes:
        buckets: the filled buckets in ascending order.
        exceedance: whether only the share that took longer is shown.
        filled: whether the chart contains its data. If not, a page inserts the data.
    """

    buckets: tuple[Bucket, ...]
    marks: tuple[Marked, ...]
    exceedance: bool = False
    filled: bool = True

    @property
    def drawable(self) -> bool:
        return bool(self.buckets)


class Slice(NamedTuple):
    """A column of a heat map: its start and its end on the axis, and the I/Os of each band."""

    begin: float
    end: float
    ios: tuple[int, ...]


SHARES_PERCENT = (10.0, 1.0, 0.1, 0.01, 0.0)
"""The least share of the I/Os of a time slice in each class of a heat map, in percent."""
SHARE_NAMES = ("from 10 %", "from 1 %", "from 0.1 %", "from 0.01 %", "less")


def find_share_class(ios: int, of: int) -> int:
    """Return the class of a share above 0. Class 0 is the greatest. The computation uses integers, so limits are
    exact.
    """
    return next(at for at, least in enumerate(SHARES_PERCENT) if 10_000 * ios >= round(100 * least) * of)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap(Picture):
    """I/Os by time and response time. The shade is the share of the I/Os of a time slice.

    Attributes:
        edges_us: lower edge of each band of response time, then the upper edge of the last.
        slices: the slices in ascending order. Between two of them there may be time that was not measured.
    """

    x: Axis
    edges_us: tuple[float, ...]
    slices: tuple[Slice, ...]

    @property
    def drawable(self) -> bool:
        return bool(self.slices)


@dataclass(frozen=True, slots=True, kw_only=True)
class GridSquare:
    """A square of a grid of two rates, counted from the lower left corner.

    Attributes:
        text: what is written in it.
        strength: the strength of its colour, 0 to 1; None: it does not count, and has a dashed edge.
        link, flag: the same as in ``Point``.
        facts: values of the grid's ``facts``.
    """

    column: int
    row: int
    text: str
    strength: float | None
    link: str = ""
    flag: str = ""
    facts: tuple[str, ...] = ()


class GridEdge(NamedTuple):
    """A side of a square that is part of a limit, from one corner to another. Corners count from 0."""

    x: int
    y: int
    x_end: int
    y_end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GridMap(Picture):
    """Squares over two offered rates, shaded by a value, with a limit as a line between the squares.

    Attributes:
        x, y: axes with a place for each column and each row, the lowest first.
        facts: titles of the facts about a square.
        limit: the meaning of the line; empty: there is no line.
    """

    x: Axis
    y: Axis
    squares: tuple[GridSquare, ...]
    facts: tuple[str, ...]
    edges: tuple[GridEdge, ...] = ()
    limit: str = ""

    @property
    def drawable(self) -> bool:
        return any(square.strength is not None for square in self.squares)

    def _flags(self) -> Iterator[str]:
        return (square.flag for square in self.squares)


AnyChart = Chart | Bars3D | Distribution | HeatMap | GridMap
