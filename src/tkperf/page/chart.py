"""Define charts as data: axes, curves, and the marks on them.

A renderer draws the charts. This module does not depend on Vega, on terminals, or on the results that contain the
values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from tkperf.page.words.uncertainty import join_flags


class Scale(StrEnum):
    """The scale of an axis. ``CLOCK`` is the time since the start in ms. ``DATE`` is the time since 1970 in ms."""

    LINEAR = "linear"
    LOG = "log"
    ORDINAL = "ordinal"
    CLOCK = "clock"
    DATE = "date"


class Mark(StrEnum):
    """Kinds of marks. ``BOX`` shows the spread of the points at each place of the x axis."""

    LINE = "line"
    BAR = "bar"
    POINT = "point"
    BOX = "box"


class Legend(StrEnum):
    """Position of the names of curves. With ``AUTO``, a few names are placed at the ends of their curves, and many
    names are placed beside the plot.
    """

    AUTO = "auto"
    ENDS = "ends"
    TOP = "top"
    NONE = "none"


class ShadeKind(StrEnum):
    """The reason why a part of the x axis is shaded."""

    JUDGED = "judged"
    FLAGGED = "flagged"
    THROTTLED = "throttled"


class RuleKind(StrEnum):
    """Meaning of a straight line in a chart."""

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


# Names of colours. The first colours are the easiest to distinguish.
PALETTE = ("blue", "vermilion", "green", "amber", "violet", "sky", "pink", "brown", "olive", "crimson", "slate", "teal")
MANY_COLOURS = (*PALETTE, "orange", "azure", "leaf", "plum")
"""Colours for parts of a chart that do not overlap. This list contains more colours than ``PALETTE``, but its colours
are harder to distinguish.
"""
NEUTRAL = "neutral"
"""Colour of everything that is not a curve, such as edges and lines of ideal values."""
DASH_COUNT = 4
"""Number of line styles (dash patterns). Style 0 is solid."""

Place = float | str


def warmth(place: int, count: int) -> str:
    """Return the colour of a place on a scale of ``count`` colours from cold to warm. The scale is used if there are
    more curves than colours in ``PALETTE``.
    """
    return f"warmth {place / max(1, count - 1):.4g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis. Its title contains the unit.

    Attributes:
        places: the places of an ordinal axis in their order.
        domain: the ends of the axis. None means that the axis extends slightly beyond the smallest and the greatest
            value.
        includes: values that the axis always includes.
        ticks: the values with a tick. None means that the ticks are at round values.
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
        link: the address that opens when a user clicks on the point.
        flag: the reason why the value may show more than the performance of the device.
        facts: the values that belong to the titles in ``facts`` of the curve.
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
    """A curve, which consists of points that belong together.

    Attributes:
        name: the name in the legend. If a curve consists of several parts, all parts have the same name and colour.
        variant: the meaning of the dash pattern, which a separate legend shows.
        label: the name at the end of the curve, which is shown without the title of the legend; empty to use ``name``.
        dots: whether each point is visible on the line.
        muted: whether the curve is one of many in the background.
        facts: titles of the values that are shown for a point, in addition to its coordinates.
        has_texts: whether the first fact of each point of a line is written beside the point.
        column: the column that the curve shows, if the points are one-second samples of a cell; otherwise empty.
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
    """A shaded part of the x axis. ``text`` states the reason for the shade."""

    kind: ShadeKind
    begin: float
    end: float
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A straight line across the plot at ``x`` or at ``y``. If ``x``, ``y`` and ``x_end`` are given, the line at ``y``
    extends from ``x`` to ``x_end``.

    Attributes:
        name: the text beside the line.
        below: whether the text is below the line.
        row: for a vertical line, the row in which its name is written, counted from the top.
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
    """A marked place in a chart. If ``y`` is None, the mark is at the top of the plot."""

    kind: SpotKind
    x: float
    y: float | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """The attributes that all kinds of charts have in common.

    Attributes:
        keywords: notices that apply to every figure, such as SIMULATED, in a few words.
        flags: reasons why figures may not show the performance of the device alone, in addition to the flags of points
            and shades.
    """

    title: str
    keywords: str = ""
    flags: tuple[str, ...] = ()

    @property
    def flag_words(self) -> str:
        """Return all reasons why a value on the chart may not show the performance of the device alone. Each reason is
        listed once. The result is empty if there is no reason.
        """
        words = dict.fromkeys(word for word in (*self.flags, *self._flags()) if word)
        return join_flags(words) if words else ""

    @property
    def drawable(self) -> bool:
        """Return whether the chart contains anything that can be drawn."""
        raise NotImplementedError

    def _flags(self) -> Iterable[str]:
        """Return the flags of all parts of the chart that are drawn."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart(Picture):
    """A chart of curves or bars over an axis.

    Attributes:
        series: title of the legend, which is the property in which the curves differ.
        variants: meanings of the dash patterns.
        series_word: the word for a curve in the facts of a point.
        grouped: whether the marks of different curves at the same place are drawn side by side.
        low: whether the chart has half the usual height. Such a chart belongs to the chart above.
        aligned: whether the time axis of the chart begins at the same horizontal position as the time axes of other
            aligned charts.
        filled: whether the chart contains its final data. Otherwise the data are only examples, and a page inserts the
            real data.
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
        """Return the names of the curves, each name once. Empty names and the names of background curves are
        omitted.
        """
        return tuple(dict.fromkeys(each.name for each in self.curves if each.name and not each.muted))

    def _flags(self) -> Iterator[str]:
        yield from (each.text for each in self.shades if each.kind is ShadeKind.FLAGGED)
        yield from (point.flag for curve in self.curves for point in curve.points)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars3D(Picture):
    """A chart with bars in three dimensions. Columns extend to the right, and rows extend to the back. The first row is
    in front.

    Attributes:
        colours: the colours of the rows.
        bars: a point for each cell with a value. ``x`` and ``y`` are the name and the value of the cell.
        places: the row and the column of each bar.
        facts: titles of the facts about a bar. The facts are the column, the row, the value, and the facts of the
            point.
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
    """A bucket of response times with its edges in µs and its number of I/Os."""

    lower: float
    upper: float
    count: int  # type: ignore[assignment]  # hides tuple.count, which is not used


class Marked(NamedTuple):
    """A marked response time in µs. ``label`` is the text beside the mark. The label is empty if the label of the
    following mark also covers this mark.
    """

    mark: str
    us: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution(Picture):
    """A distribution of response times. It shows the number of I/Os in each bucket, the share of I/Os that were
    completed within a given time, and the share of I/Os that needed a longer time.

    Attributes:
        buckets: the buckets that contain I/Os, in ascending order.
        exceedance: whether the chart shows only the share of I/Os that needed a longer time.
        filled: whether the chart contains its data. Otherwise a page inserts the data.
    """

    buckets: tuple[Bucket, ...]
    marks: tuple[Marked, ...]
    exceedance: bool = False
    filled: bool = True

    @property
    def drawable(self) -> bool:
        return bool(self.buckets)


class Slice(NamedTuple):
    """A column of a heat map. It consists of the start and the end on the time axis, and the number of I/Os in each
    band.
    """

    begin: float
    end: float
    ios: tuple[int, ...]


SHARES_PERCENT = (10.0, 1.0, 0.1, 0.01, 0.0)
"""The lower limit of each class of a heat map. The limit is a share, in percent, of the I/Os of a time slice."""
SHARE_NAMES = ("from 10 %", "from 1 %", "from 0.1 %", "from 0.01 %", "less")


def find_share_class(ios: int, of: int) -> int:
    """Return the class of a share greater than 0. Class 0 contains the greatest shares.

    The computation uses integers, so the limits between the classes are exact.
    """
    return next(at for at, least in enumerate(SHARES_PERCENT) if 10_000 * ios >= round(100 * least) * of)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap(Picture):
    """A heat map of I/Os over time and response time. The shade shows the share of the I/Os of a time slice.

    Attributes:
        edges_us: the lower edge of each band of response time in µs, followed by the upper edge of the last band.
        slices: the slices in ascending order. The time between two slices may not have been measured.
    """

    x: Axis
    edges_us: tuple[float, ...]
    slices: tuple[Slice, ...]

    @property
    def drawable(self) -> bool:
        return bool(self.slices)


@dataclass(frozen=True, slots=True, kw_only=True)
class GridSquare:
    """A square in a grid of two rates. Columns and rows are counted from the lower left corner.

    Attributes:
        text: the text in the square.
        strength: the strength of the colour of the square, from 0 to 1. None means that the square has no valid value.
            Such a square has a dashed edge.
        link, flag: the same as in ``Point``.
        facts: the values that belong to the titles in ``facts`` of the grid.
    """

    column: int
    row: int
    text: str
    strength: float | None
    link: str = ""
    flag: str = ""
    facts: tuple[str, ...] = ()


class GridEdge(NamedTuple):
    """A side of a square. The side is part of the line that shows a limit, and connects two corners. Corners are
    counted from 0.
    """

    x: int
    y: int
    x_end: int
    y_end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GridMap(Picture):
    """A map of squares over two offered rates. The shade shows a value, and a line between squares shows a limit.

    Attributes:
        x, y: axes with a place for each column and each row. The lowest rate is first.
        facts: titles of the facts about a square.
        limit: the meaning of the line; empty if there is no line.
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
