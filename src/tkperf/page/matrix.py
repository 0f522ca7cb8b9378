"""A matrix of drives and figures as plain data: what opens a comparison."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Sign(StrEnum):
    """Sign of a cell. Colour means the drive, so better and worse have signs."""

    BEST = "▲"
    EQUAL = "≈"
    UNDECIDED = "?"
    WORST = "▽"
    UNRANKED = "◌"
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
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixCell:
    """A value among those of its column.

    Attributes:
        text: the value; its unit is in the head of the column.
        words: the ratio to the best value, or why it is not ranked; empty: it is the best.
        bar: the length of its bar as a share of the column's longest; None: not measured.
        low, high: the ends of its interval on the same scale; None: not known.
        interval: half its interval: ``± 0.35 %``, or "".
        hint: the value in full.
        target: the id of the place on the page that has the value in full, or "".
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

    @property
    def line(self) -> str:
        """Return the cell as a line of text: ``47,600 ▽ 4.4 × less``."""
        return " ".join(filter(None, (self.text, self.sign.value, self.words)))


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixColumn:
    """A figure: its name, and its load with the unit."""

    title: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRow:
    """A drive: its short name, its colour in every chart, its whole name, and its capacity and interface."""

    name: str
    colour: str
    whole_name: str
    detail: str
    cells: tuple[MatrixCell, ...]


MOST_SPACIOUS = 5
"""Most rows with a line of their own for each ratio: a screen has room for so many and two charts."""
MOST_ON_SCREEN = 12
"""Most rows of a matrix that a screen has room for, together with two charts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionView:
    """What opens a comparison.

    Attributes:
        lines: a sentence for each use, or for each drive, after its name.
        legend: the meaning of the signs that occur, each sign with its words.
    """

    lines: tuple[tuple[str, str], ...]
    columns: tuple[MatrixColumn, ...]
    rows: tuple[MatrixRow, ...]
    legend: tuple[tuple[str, str], ...]

    @property
    def has_charts_first(self) -> bool:
        """Return whether the charts come before the matrix, which alone is higher than the screen."""
        return len(self.rows) > MOST_ON_SCREEN

    @property
    def is_dense(self) -> bool:
        """Return whether a cell has one line of text, because the rows are many."""
        return len(self.rows) > MOST_SPACIOUS
