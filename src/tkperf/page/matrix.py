"""A matrix of drives and figures or claims as plain data, with which a comparison, a batch and a check begin; and the
columns of the fixed figures, which a report, a comparison and a ranking name alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tkperf.model.quantity import Better, Measure
from tkperf.model.units import MIB, format_block_size_kib, format_mix
from tkperf.model.workload import Workload
from tkperf.page.verdict_texts import NoteLevel


class Sign(StrEnum):
    """Sign of a cell. Better, worse, missed and not judged have signs, so that colour is never the only difference."""

    BEST = "▲"
    EQUAL = "≈"
    UNDECIDED = "?"
    WORST = "▽"
    UNRANKED = "◌"
    MISSED = "✗"
    MISSED_UNSURE = "✗±"
    MET_UNSURE = "±"
    CLOSE = "!"
    NOT_JUDGED = "○"
    OUTLIER = "◆"
    NONE = ""

    @property
    def words(self) -> str:
        """Return the meaning of the sign."""
        return SIGN_WORDS.get(self, "")


SIGN_WORDS = {
    Sign.BEST: "best",
    Sign.EQUAL: "within noise or 3 % of the best",
    Sign.UNDECIDED: "cannot be told from the best",
    Sign.WORST: "worst",
    Sign.UNRANKED: "not ranked",
    Sign.MISSED: "missed",
    Sign.MISSED_UNSURE: "missed, within the uncertainty",
    Sign.MET_UNSURE: "met, within the uncertainty",
    Sign.CLOSE: "met with less than 2 % to spare",
    Sign.NOT_JUDGED: "not judged or not measured",
    Sign.OUTLIER: "unlike the others",
}


CUT = "//"
"""Sign on a bar that is cut, because its value is many times greater than all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixCell:
    """A value among those of its column.

    Attributes:
        text: the value. Its unit is in the head of the column. In a heat map, this is the margin to the claim or the
            distance from the median.
        words: the ratio to the best value, or the reason why the value is not ranked; empty: it is the best. In a heat
            map, the value or the reason why it is not judged.
        bar: the length of the bar as a share of the room in the column; None: not measured.
        is_cut: the value is greater than the end of the scale, so its bar is cut.
        low, high: the ends of the interval on the same scale; None: not known.
        interval: half of the interval: ``± 0.35 %``, or "".
        hint: the value in full.
        target: the id of the place on the page that shows the full value, or "". If it contains ``#``, it is the
            address of another page.
        heat: in a heat map, the strength of the colour, 0 to 1; None: no colour.
        level: in a heat map, the severity of the content; None: none.
    """

    text: str
    sign: Sign
    words: str
    bar: float | None = None
    is_cut: bool = False
    low: float | None = None
    high: float | None = None
    interval: str = ""
    hint: str = ""
    target: str = ""
    heat: float | None = None
    level: NoteLevel | None = None

    @property
    def line(self) -> str:
        """Return the cell as a line of text: ``47,600 ▽ 4.4 × less``."""
        return " ".join(filter(None, (self.text, self.sign.value, self.words)))

    @property
    def short_line(self) -> str:
        """Return the line without the words that follow from the head of the column: ``47,600 ▽ 4.4 ×``."""
        return self.line.removesuffix(" less").removesuffix(" more")


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixColumn:
    """A figure: its name, and its load with the unit.

    Attributes:
        unit: the unit without the load, for places with little room.
        direction: ``lower is better`` if the longest bar is the worst; else empty.
    """

    title: str
    detail: str
    unit: str = ""
    direction: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRow:
    """A drive: its short name, its colour in every chart, its full name, and its capacity and interface.

    Attributes:
        colour: the name of the colour; empty: charts do not distinguish the drives by colours.
        page: the file next to the page to which the name leads, or "".
    """

    name: str
    colour: str
    whole_name: str
    detail: str
    cells: tuple[MatrixCell, ...]
    page: str = ""


MOST_SPACIOUS = 5
"""Most rows in which each ratio has a separate line. A screen has room for so many rows and two charts."""
MOST_ON_SCREEN = 12
"""Most rows of a matrix for which a screen has room together with two charts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionView:
    """The beginning of a comparison, a batch or a check.

    Attributes:
        lines: a sentence for each use, or for each drive, after its name.
        legend: the signs that occur, each with its meaning.
        is_heat_map: whether the cells have colours according to their margins, and no bars. The first column then
            contains the result of each row, and the rest of the page follows. Otherwise the rest is shown on demand.
        title: the name of the matrix, for readers who cannot see it.
    """

    lines: tuple[tuple[str, str], ...]
    columns: tuple[MatrixColumn, ...]
    rows: tuple[MatrixRow, ...]
    legend: tuple[tuple[str, str], ...]
    is_heat_map: bool = False
    title: str = "All figures"

    @property
    def has_charts_first(self) -> bool:
        """Return whether the charts precede the matrix, because the matrix alone is higher than the screen."""
        return len(self.rows) > MOST_ON_SCREEN

    @property
    def is_dense(self) -> bool:
        """Return whether each cell has only one line of text, because there are many rows."""
        return len(self.rows) > MOST_SPACIOUS


# Title of the tile and the column, and the name in a sentence.
FIGURE_NAMES = {
    "random_read": ("Random read", "random reads"),
    "random_write": ("Random write", "random writes"),
    "random_mix": ("Mixed", "mixed I/O"),
    "large_read": ("Sequential read", "sequential reads"),
    "large_write": ("Sequential write", "sequential writes"),
    "single_read": ("Read latency", "mean read latency"),
    "single_write": ("Write latency", "p99.9 write latency"),
    "kept_rate": ("Kept rate", "kept rate"),
}
TILES = ("random_write", "random_read", "single_read", "large_write", "large_read", "single_write")
"""The figures that open the report of a run, in their order."""
# What is measured of single I/Os.
_MEASURED = {"single_read": "mean", "single_write": "p99.9"}


def describe_load(key: str, work: Workload, *, same_demand: bool = True) -> str:
    """Return the load of a fixed figure: ``4 KiB, TC2/QD16``; ``4 KiB, QD1, p99.9`` of single I/Os.

    Args:
        same_demand: all values of the figure have this demand.
    """
    size = f"{work.block_size_bytes // MIB} MiB" if work.block_size_bytes >= MIB else ""
    size = size or f"{format_block_size_kib(work.block_size_bytes)} KiB"
    if key in _MEASURED:
        return f"{size}, QD1, {_MEASURED[key]}"
    return f"{size}, {f'TC{work.jobs}/QD{work.io_depth}' if same_demand else 'own demand'}"


def build_column(key: str, work: Workload, measure: Measure, *, same_demand: bool) -> MatrixColumn:
    """Return the column of a fixed figure: its name, and its load with the unit."""
    unit = ", ".join(filter(None, (_MEASURED.get(key), measure.unit))) + mark_falling(measure)
    if key == "kept_rate":
        return MatrixColumn(title=FIGURE_NAMES[key][0], detail="last quarter / fresh, %", unit=unit)
    mix = f" {format_mix(work.read_percent)}" if work.is_mixed else ""
    load = describe_load(key, work, same_demand=same_demand)
    detail = f"{load}, {measure.unit}{mark_falling(measure)}"
    return MatrixColumn(
        title=f"{FIGURE_NAMES[key][0]}{mix}", detail=detail, unit=unit, direction=describe_direction(measure)
    )


def mark_falling(measure: Measure) -> str:
    """Return the sign of a measure of which a lower value is better."""
    return " ↓" if measure.better is Better.LOWER else ""


def describe_direction(measure: Measure) -> str:
    """Return ``lower is better`` for a measure whose longest bar is the worst; empty for all others."""
    return "lower is better" if measure.better is Better.LOWER else ""
