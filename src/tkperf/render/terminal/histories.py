"""Values of each cell round after round, as a table of sparklines that fits a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rich.text import Text

from tkperf.model.units import NOT_MEASURED
from tkperf.model.workload import Workload
from tkperf.page.layout import arrange
from tkperf.render.terminal.blocks import UNICODE, BlockLetters, Values, sparkline, squeeze

# Bars of one cell: more of them show no more of a few rounds. In less room first the number next to them goes, then
# columns.
WIDEST, FEWEST, NARROWEST = 40, 6, 3
_NUMBER = 5
_GAP = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Values of each cell over time, in rows and columns.

    Attributes:
        values: of each row's cells; None where nothing was measured.
        row_title, column_title: what rows and columns are.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[Values | None, ...], ...]
    row_title: str = ""
    column_title: str = ""

    @property
    def longest(self) -> int:
        """Return the number of values of the cell that has most."""
        return max((len(values) for row in self.values for values in row if values), default=1)


def draw_histories(
    title: str,
    histories: Mapping[Workload, Values],
    width: int,
    *,
    most_lines: int | None = None,
    current: Workload | None = None,
    blocks: BlockLetters = UNICODE,
) -> list[Text]:
    """Return the newest values of each cell of a run under way: a heading and a line for each row of cells.

    Args:
        title: name of the values.
        histories: values of each cell, in the order of the run; empty: nothing yet.
        most_lines: if not all rows fit, only rows around ``current`` are shown; with too few lines none.
        current: the cell under way.
    """
    layout = arrange(histories)
    several = len(histories) > 1
    grid = Grid(
        rows=tuple(" ".join(layout.row_text(row)) if several else "" for row in layout.rows),
        columns=tuple(layout.column_axis.text(column) for column in layout.columns),
        values=tuple(
            tuple(None if work is None else histories[work] for work in row) for row in layout.at
        ),
        row_title=", ".join(layout.row_titles),
        column_title=layout.column_axis.title,
    )
    at = next(
        (
            (number, row.index(current))
            for number, row in enumerate(layout.at)
            if current is not None and current in row
        ),
        None,
    )
    return draw_grid(
        title, grid, width, most_lines=most_lines, current=at, blocks=blocks, newest=True
    )


def draw_grid(
    title: str,
    grid: Grid,
    width: int,
    *,
    most_lines: int | None = None,
    current: tuple[int, int] | None = None,
    blocks: BlockLetters = UNICODE,
    newest: bool = False,
) -> list[Text]:
    """Return a heading and a line for each row.

    A cell shows its values as bars and, if it fits, the last value as a number.

    Args:
        current: row and column of the cell under way.
        newest: if not all values fit, show the newest ones instead of all, squeezed.
    """
    table = _Table(grid, width, blocks, newest=newest)
    head = table.head(title)
    most_rows = len(grid.rows) if most_lines is None else most_lines - len(head)
    if most_rows < 1:
        return []
    rows = _around(len(grid.rows), current[0] if current else 0, most_rows)
    return [*head, *(table.row(row, current) for row in rows)]


def _around(count: int, at: int, most: int) -> range:
    """Return the rows to show: all, or as many as fit around the one under way."""
    first = max(0, min(at - most // 2, count - most))
    return range(first, min(count, first + most))


class _Table:
    def __init__(self, grid: Grid, width: int, blocks: BlockLetters, *, newest: bool) -> None:
        self._grid, self._blocks, self._newest = grid, blocks, newest
        self._label = max(map(len, grid.rows), default=0)
        count, room = len(grid.columns), width - self._label
        self._number = 1 + _NUMBER
        if room // count - _GAP - self._number < FEWEST and room // count - _GAP >= FEWEST:
            self._number = 0
        # At least one column, then as many as fit.
        narrowest = _GAP + NARROWEST + self._number
        if count * narrowest > room:
            room -= len(f" +{count}")
        self._columns = max(1, min(count, room // narrowest))
        fitting = room // self._columns - _GAP - self._number
        widest = WIDEST if count > 1 else fitting
        self._bars = max(NARROWEST, min(widest, fitting, max(grid.longest, 2 * FEWEST)))

    def head(self, title: str) -> list[Text]:
        """Return the heading with the meaning of rows and columns; the names of columns, if there are several."""
        grid, several = self._grid, len(self._grid.columns) > 1
        down = f"{grid.row_title} down" if len(grid.rows) > 1 and grid.row_title else ""
        across = f"{grid.column_title} across" if several and grid.column_title else ""
        meaning = ", ".join(filter(None, (down, across)))
        heading = Text(f"{title}; {meaning}" if meaning else title, style="dim")
        if not several:
            return [heading]
        text = Text(" " * self._label, style="dim")
        for name in grid.columns[: self._columns]:
            room = self._bars + self._number
            text.append(" " * _GAP + name[:room].rjust(room))
        if left_out := len(grid.columns) - self._columns:
            text.append(f" +{left_out}")
        return [heading, text]

    def row(self, row: int, current: tuple[int, int] | None) -> Text:
        text = Text(self._grid.rows[row].rjust(self._label))
        for column, values in enumerate(self._grid.values[row][: self._columns]):
            text.append(" " * _GAP)
            for part, style in self._draw(values, is_current=(row, column) == current):
                text.append(part, style=style)
        return text

    def _draw(self, values: Values | None, *, is_current: bool) -> Iterator[tuple[str, str]]:
        every = values or ()
        shown = every[-self._bars :] if self._newest else squeeze(every, self._bars)
        last = next((value for value in reversed(every) if value is not None), None)
        style = "reverse" if is_current and values is not None else "cyan"
        yield sparkline(shown, self._blocks).rjust(self._bars), style
        if self._number:
            number = "" if values is None else format_short(last)
            yield f" {number:>{_NUMBER}}", ""


def format_short(value: float | None) -> str:
    """Return a number in five characters at most: ``88.8k``, ``1.2M``, ``350``, ``12.3``."""
    if value is None:
        return NOT_MEASURED
    for factor, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor * 0.9995:
            scaled = value / factor
            return f"{scaled:.0f}{unit}" if scaled >= 99.95 else f"{scaled:.1f}{unit}"
    return f"{value:.0f}" if abs(value) >= 99.95 else f"{value:.1f}"
