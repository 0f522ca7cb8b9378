"""A matrix of drives and figures or claims as plain data: what opens a comparison, a batch and a check."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tkperf.page.verdict_texts import NoteLevel


class Sign(StrEnum):
    """Sign of a cell. Better and worse, missed and not judged have signs, so that colour is never the only one."""

    BEST = "▲"
    EQUAL = "≈"
    UNDECIDED = "?"
    WORST = "▽"
    UNRANKED = "◌"
    MISSED = "✗"
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
    Sign.CLOSE: "met with less than 2 % to spare",
    Sign.NOT_JUDGED: "not judged",
    Sign.OUTLIER: "unlike the others",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixCell:
    """A value among those of its column.

    Attributes:
        text: the value, whose unit is in the head of the column; in a heat map the margin to the claim, or the distance
            from the median.
        words: the ratio to the best value, or why it is not ranked; empty: it is the best. In a heat map the value, or
            why it is not judged.
        bar: the length of its bar as a share of the column's longest; None: not measured.
        low, high: the ends of its interval on the same scale; None: not known.
        interval: half its interval: ``± 0.35 %``, or "".
        hint: the value in full.
        target: the id of the place on the page that has the value in full, or ""; with ``#`` in it, the address of
            another page.
        heat: in a heat map the strength of its colour, 0 to 1; None: it has none.
        level: in a heat map the weight of what it shows; None: none.
    """

    text: str
    sign: Sign
    words: str
    bar: float | None = None
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
        """Return the line without the words that the head of the column implies: ``47,600 ▽ 4.4 ×``."""
        return self.line.removesuffix(" less").removesuffix(" more")


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixColumn:
    """A figure: its name, and its load with the unit."""

    title: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRow:
    """A drive: its short name, its colour in every chart, its whole name, and its capacity and interface.

    Attributes:
        colour: empty: charts do not tell the drives apart by colours.
        page: the file that its name leads to, next to the page, or "".
    """

    name: str
    colour: str
    whole_name: str
    detail: str
    cells: tuple[MatrixCell, ...]
    page: str = ""


MOST_SPACIOUS = 5
"""Most rows with a line of their own for each ratio: a screen has room for so many and two charts."""
MOST_ON_SCREEN = 12
"""Most rows of a matrix that a screen has room for, together with two charts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionView:
    """What opens a comparison, a batch and a check.

    Attributes:
        lines: a sentence for each use, or for each drive, after its name.
        legend: the meaning of the signs that occur, each sign with its words.
        is_heat_map: the cells have colours by their margins, and no bars. The first column has each row's result, and
            the rest of the page follows; otherwise the rest is shown on demand.
        title: the name of the matrix, for readers who do not see it.
    """

    lines: tuple[tuple[str, str], ...]
    columns: tuple[MatrixColumn, ...]
    rows: tuple[MatrixRow, ...]
    legend: tuple[tuple[str, str], ...]
    is_heat_map: bool = False
    title: str = "All figures"

    @property
    def has_charts_first(self) -> bool:
        """Return whether the charts come before the matrix, which alone is higher than the screen."""
        return len(self.rows) > MOST_ON_SCREEN

    @property
    def is_dense(self) -> bool:
        """Return whether a cell has one line of text, because the rows are many."""
        return len(self.rows) > MOST_SPACIOUS
