"""Values of each cell round after round, as a table of sparklines that fits a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.text import Text

from tkperf.model.units import NOT_MEASURED
from tkperf.model.workload import Workload
from tkperf.page.layout import Layout, arrange
from tkperf.render.terminal.blocks import UNICODE, BlockLetters, Values, sparkline, squeeze

# Bars of one cell: more of them show no more of a few rounds. In less room first the number next to them goes, then
# columns.
WIDEST, FEWEST, NARROWEST = 40, 6, 3
_NUMBER = 5
_GAP = 2


def draw_histories(
    title: str,
    histories: Mapping[Workload, Values],
    width: int,
    *,
    most_lines: int | None = None,
    current: Workload | None = None,
    blocks: BlockLetters = UNICODE,
    newest: bool = False,
) -> list[Text]:
    """Return a heading and a line for each row of cells.

    A cell shows its values as bars and, if it fits, the last value as a number.

    Args:
        title: name of the values.
        histories: values of each cell, in the order of the run; empty: nothing yet.
        most_lines: if not all rows fit, only rows around ``current`` are shown; with too few lines none.
        current: the cell under way.
        newest: if not all values fit, show the newest ones instead of all, squeezed.
    """
    layout = arrange(histories)
    table = _Table(layout, histories, width, blocks, newest=newest)
    head = table.head(title)
    most_rows = len(layout.rows) if most_lines is None else most_lines - len(head)
    if most_rows < 1:
        return []
    rows = _around(layout, current, most_rows)
    return [*head, *(table.row(row, current) for row in rows)]


def _around(layout: Layout, current: Workload | None, most: int) -> range:
    """Return the rows to show: all, or as many as fit around the one under way."""
    count = len(layout.rows)
    at = next((row for row, works in enumerate(layout.at) if current in works), 0)
    first = max(0, min(at - most // 2, count - most))
    return range(first, min(count, first + most))


class _Table:
    def __init__(
        self,
        layout: Layout,
        histories: Mapping[Workload, Values],
        width: int,
        blocks: BlockLetters,
        *,
        newest: bool,
    ) -> None:
        self._layout, self._histories, self._blocks = layout, histories, blocks
        self._newest = newest
        self._names = [
            " ".join(layout.row_text(row)) if len(histories) > 1 else "" for row in layout.rows
        ]
        self._label = max(map(len, self._names), default=0)
        count, room = len(layout.columns), width - self._label
        self._number = 1 + _NUMBER
        if room // count - _GAP - self._number < FEWEST and room // count - _GAP >= FEWEST:
            self._number = 0
        # At least one column, then as many as fit.
        narrowest = _GAP + NARROWEST + self._number
        if count * narrowest > room:
            room -= len(f" +{count}")
        self._columns = max(1, min(count, room // narrowest))
        longest = max((len(values) for values in histories.values()), default=1)
        fitting = room // self._columns - _GAP - self._number
        widest = WIDEST if count > 1 else fitting
        self._bars = max(NARROWEST, min(widest, fitting, max(longest, 2 * FEWEST)))

    def head(self, title: str) -> list[Text]:
        """Return the heading with the meaning of rows and columns; the names of columns, if there are several."""
        layout, several = self._layout, len(self._layout.columns) > 1
        down = f"; {', '.join(layout.row_titles)} down" if len(layout.rows) > 1 else ""
        across = f"{',' if down else ';'} {layout.column_axis.title} across" if several else ""
        heading = Text(f"{title}{down}{across}", style="dim")
        if not several:
            return [heading]
        text = Text(" " * self._label, style="dim")
        for column in layout.columns[: self._columns]:
            name = layout.column_axis.text(column)
            text.append(" " * _GAP + name.rjust(self._bars + self._number))
        if left_out := len(layout.columns) - self._columns:
            text.append(f" +{left_out}")
        return [heading, text]

    def row(self, row: int, current: Workload | None) -> Text:
        text = Text(self._names[row].rjust(self._label))
        for workload in self._layout.at[row][: self._columns]:
            text.append(" " * _GAP)
            for part, style in self._draw(workload, is_current=workload == current):
                text.append(part, style=style)
        return text

    def _draw(self, workload: Workload | None, *, is_current: bool) -> Iterator[tuple[str, str]]:
        values = self._histories[workload] if workload is not None else ()
        shown = values[-self._bars :] if self._newest else squeeze(values, self._bars)
        last = next((value for value in reversed(values) if value is not None), None)
        style = "reverse" if is_current and workload is not None else "cyan"
        yield sparkline(shown, self._blocks).rjust(self._bars), style
        if self._number:
            number = "" if workload is None else format_short(last)
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
