"""Draw the values of each cell over the rounds as a table of sparklines that fits into a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rich.text import Text

from tkperf.model.units import NOT_MEASURED
from tkperf.model.workload import Workload
from tkperf.page.naming import arrange

Values = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class BlockLetters:
    """The characters for drawings.

    Attributes:
        heights: bars from the lowest height to the full height of a line.
        done, perhaps, left: parts of a horizontal bar.
        line: character that fills the rest of a line with a heading.
        shades: parts of a heat map, beginning with the greatest share.
        limit: character for a limit between two squares.
    """

    heights: str
    done: str
    perhaps: str
    left: str
    line: str
    shades: str
    limit: str

    def spell(self, text: str) -> str:
        """Return the text in characters of this set. For ASCII, "u" replaces "µ", and the degree sign is removed."""
        return text if self is UNICODE else text.replace("µ", "u").replace("°", "")


UNICODE = BlockLetters("▁▂▃▄▅▆▇█", "█", "▒", "░", "─", "█▓▒░·", "┃")
ASCII = BlockLetters(".:-=+*%#", "#", "=", ".", "-", "#*+:.", "|")


def blocks_for(encoding: str | None) -> BlockLetters:
    """Return the characters for drawings that an encoding can show."""
    try:
        (UNICODE.heights + UNICODE.perhaps + UNICODE.left + UNICODE.line + UNICODE.shades + UNICODE.limit).encode(
            encoding or "ascii"
        )
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE


def sparkline(values: Values, blocks: BlockLetters = UNICODE) -> str:
    """Return a bar for each value. The scale extends from 0 to the greatest value."""
    top = max((value for value in values if value is not None), default=0.0)
    return "".join(_bar(value, top, blocks) for value in values)


def _bar(value: float | None, top: float, blocks: BlockLetters) -> str:
    if value is None:
        return " "
    most = len(blocks.heights) - 1
    return blocks.heights[0 if top <= 0 else min(most, int(max(0.0, value) / top * (most + 0.999)))]


def squeeze(values: Values, width: int) -> list[float | None]:
    """Return the values, reduced to ``width`` values. If there are more values, each returned value is the mean of
    several values.
    """
    if len(values) <= width:
        return list(values)
    edges = [round(place * len(values) / width) for place in range(width + 1)]
    return [mean(values[first:last]) for first, last in pairwise(edges)]


def mean(values: Values) -> float | None:
    """Return the mean of the measured values, or None if no value was measured."""
    measured = [value for value in values if value is not None]
    return sum(measured) / len(measured) if measured else None


def share_bar(share: float, width: int, blocks: BlockLetters = UNICODE, *, perhaps: float = 0.0) -> str:
    """Return a bar of the completed share, from 0 to 1.

    Args:
        perhaps: the share that may already be complete.
    """
    done = int(min(1.0, max(0.0, share)) * width)
    maybe = max(0, int(min(1.0, perhaps) * width) - done)
    return blocks.done * done + blocks.perhaps * maybe + blocks.left * (width - done - maybe)


def columns(values: Sequence[float], height: int, blocks: BlockLetters = UNICODE) -> Iterator[str]:
    """Yield the lines of vertical bars, from top to bottom. The height is given in lines. A bar is visible for every
    value above 0.
    """
    top = max(values, default=0.0)
    steps = len(blocks.heights)
    heights = [0 if value <= 0 else max(1, round(value / top * height * steps)) for value in values]
    for line in range(height - 1, -1, -1):
        filled = (min(steps, max(0, height_ - line * steps)) for height_ in heights)
        yield "".join(blocks.heights[part - 1] if part else " " for part in filled).rstrip()


# The number of bars for one cell. More bars would not show more about a few rounds. If there is not enough space, the
# number beside the bars is omitted first, and then columns are omitted.
WIDEST, FEWEST, NARROWEST = 40, 6, 3
_NUMBER = 5
_GAP = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The values of each cell over time, arranged in rows and columns.

    Attributes:
        values: the values of each cell, row by row; None for a cell that was not measured.
        row_title, column_title: titles of the rows and of the columns.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[Values | None, ...], ...]
    row_title: str = ""
    column_title: str = ""

    @property
    def longest(self) -> int:
        """Return the number of values of the cell that has the most values."""
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
    """Return lines that show the newest values of each cell while a run is in progress. The result consists of a
    heading, and a line for each row of cells.

    Args:
        title: name of the values.
        histories: values of each cell, in the order of the run; empty if there are no values yet.
        most_lines: greatest number of lines. If not all rows fit, only the rows around ``current`` are shown. If no row
            fits, no row is shown.
        current: the cell that tkperf measures now.
    """
    layout = arrange(histories)
    several = len(histories) > 1
    grid = Grid(
        rows=tuple(" ".join(layout.row_text(row)) if several else "" for row in layout.rows),
        columns=tuple(layout.column_axis.text(column) for column in layout.columns),
        values=tuple(tuple(None if work is None else histories[work] for work in row) for row in layout.at),
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
    return draw_grid(title, grid, width, most_lines=most_lines, current=at, blocks=blocks, newest=True)


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

    A cell shows its values as bars and, if there is enough space, the last value as a number.

    Args:
        current: row and column of the cell that tkperf measures now.
        newest: whether to show only the newest values if not all values fit. Otherwise each bar is the mean of several
            values.
    """
    table = _Table(grid, width, blocks, newest=newest)
    head = table.head(title)
    most_rows = len(grid.rows) if most_lines is None else most_lines - len(head)
    if most_rows < 1:
        return []
    rows = choose_around(len(grid.rows), current[0] if current else 0, most_rows)
    return [*head, *(table.row(row, current) for row in rows)]


def choose_around(count: int, at: int, most: int) -> range:
    """Return the numbers of the rows or columns that are shown. If not all of them fit, these are the numbers around
    the place ``at``.
    """
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
        # One column is always shown. Further columns are shown if they fit.
        narrowest = _GAP + NARROWEST + self._number
        if count * narrowest > room:
            room -= len(f" +{count}")
        self._columns = max(1, min(count, room // narrowest))
        fitting = room // self._columns - _GAP - self._number
        widest = WIDEST if count > 1 else fitting
        self._bars = max(NARROWEST, min(widest, fitting, max(grid.longest, 2 * FEWEST)))

    def head(self, title: str) -> list[Text]:
        """Return the heading, which states the meaning of rows and columns. If there are several columns, also return
        their names.
        """
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
    """Return a number as text with no more than five characters: ``88.8k``, ``1.2M``, ``350``, ``12.3``."""
    if value is None:
        return NOT_MEASURED
    for factor, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor * 0.9995:
            scaled = value / factor
            return f"{scaled:.0f}{unit}" if scaled >= 99.95 else f"{scaled:.1f}{unit}"
    return f"{value:.0f}" if abs(value) >= 99.95 else f"{value:.1f}"
