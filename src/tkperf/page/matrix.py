"""Define the matrix of drives and figures or claims as plain data, and the columns of the fixed figures.

A comparison, a batch and a check begin with such a matrix. The fixed figures have the same names in a report, a
comparison and a ranking.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tkperf.model.quantity import Better, Measure
from tkperf.model.units import MIB, format_block_size_kib, format_mix
from tkperf.model.workload import Workload
from tkperf.page.verdict_texts import NoteLevel


class Sign(StrEnum):
    """The sign of a cell, such as better, worse, missed or not judged. Because of the sign, a reader does not depend on
    the colour alone.
    """

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
"""The sign on a bar that is cut because its value is many times greater than all other values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixCell:
    """A value in a matrix, shown in relation to the other values of its column.

    Attributes:
        text: the value without its unit, because the heading of the column contains the unit. In a heat map, the text
            is the margin to the claim or the distance from the median.
        words: the ratio to the best value, or the reason why the value is not ranked; empty for the best value. In a
            heat map, the text is the value or the reason why the value is not judged.
        bar: the length of the bar as a share of the column's width; None if the value was not measured.
        is_cut: whether the value is greater than the end of the scale, so that its bar is cut.
        low, high: the ends of the interval on the scale of the bar; None if they are not known.
        interval: half of the width of the interval, such as ``± 0.35 %``, or "".
        hint: the value with all its digits.
        target: the ID of the place on the page that shows the full value, or "". A target with ``#`` is the address of
            another page.
        heat: in a heat map, the strength of the colour from 0 to 1, or None for a cell without colour.
        level: in a heat map, the severity of the content, or None for content without severity.
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
        """Return the line without words that the heading of the column already contains: ``47,600 ▽ 4.4 ×``."""
        return self.line.removesuffix(" less").removesuffix(" more")


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixColumn:
    """A column of a matrix. The heading consists of the name of a figure, and its load with the unit.

    Attributes:
        unit: the unit without the load, for places with little space.
        direction: ``lower is better`` if the longest bar is the worst; otherwise empty.
    """

    title: str
    detail: str
    unit: str = ""
    direction: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRow:
    """A row of a matrix, which shows one drive. The row contains the short name, the colour in every chart, the full
    name, the capacity and the interface.

    Attributes:
        colour: the name of the colour; empty if charts do not distinguish the drives with colours.
        page: the file, in the folder of the page, to which the name of the drive links, or "".
    """

    name: str
    colour: str
    whole_name: str
    detail: str
    cells: tuple[MatrixCell, ...]
    page: str = ""


MOST_SPACIOUS = 5
"""The greatest number of rows for which each ratio has a separate line. If there are more rows, two charts would no
longer fit on the screen.
"""
MOST_ON_SCREEN = 12
"""The greatest number of matrix rows that fit on a screen together with two charts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionView:
    """The content at the beginning of a comparison, a batch or a check.

    Attributes:
        lines: a sentence for each use or for each drive, with the name of the use or drive.
        legend: the signs that occur, each with its meaning.
        is_heat_map: whether the cells have colours according to their margins instead of bars. In a heat map, the first
            column contains the result of each row, and the page shows all other parts below the matrix. Otherwise the
            page shows the other parts only when the user opens them.
        title: the name of the matrix for screen readers.
    """

    lines: tuple[tuple[str, str], ...]
    columns: tuple[MatrixColumn, ...]
    rows: tuple[MatrixRow, ...]
    legend: tuple[tuple[str, str], ...]
    is_heat_map: bool = False
    title: str = "All figures"

    @property
    def has_charts_first(self) -> bool:
        """Return whether the charts are above the matrix. This is the case if the matrix is too high for a screen with
        two charts.
        """
        return len(self.rows) > MOST_ON_SCREEN

    @property
    def is_dense(self) -> bool:
        """Return whether the matrix has so many rows that each cell has only one line of text."""
        return len(self.rows) > MOST_SPACIOUS


# The names of each fixed figure: the title in a tile and in a column, and the name in a sentence.
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
"""The figures at the beginning of the report of a run, in their order."""
# The latency that is shown for loads with a single outstanding I/O.
_MEASURED = {"single_read": "mean", "single_write": "p99.9"}


def describe_load(key: str, work: Workload, *, same_demand: bool = True) -> str:
    """Return the load of a fixed figure: ``4 KiB, TC2/QD16``. For single I/Os, return ``4 KiB, QD1, p99.9``.

    Args:
        same_demand: whether all values of the figure have the demand of ``work``.
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
    """Return the sign of a measure for which a lower value is better."""
    return " ↓" if measure.better is Better.LOWER else ""


def describe_direction(measure: Measure) -> str:
    """Return ``lower is better`` for a measure for which the longest bar is the worst. For all other measures, return
    an empty text.
    """
    return "lower is better" if measure.better is Better.LOWER else ""
