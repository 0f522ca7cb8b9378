"""A check of claims in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding

from tkperf.model.units import NOT_MEASURED
from tkperf.page.page import ReportView
from tkperf.page.verdict import NoteLevel
from tkperf.render.terminal.console import plain, print_verdict
from tkperf.render.terminal.page import colour, measure_width, print_notes, print_table

# Most claims of a run below it; failures come first.
_MOST_LINES = 10


def print_check(view: ReportView, console: Console, *, brief: bool = False) -> None:
    """Print the page of a check: the verdict, a table, and what a reader must know.

    Args:
        brief: where the table is too wide for the terminal, only cautions and failures are shown of each row.
    """
    print_verdict(view.verdict, console)
    for banner in view.banners:
        console.print(plain(banner), style="yellow", highlight=False)
    for table in view.tables:
        if measure_width(table) <= console.width:
            print_table(table, console)
            continue
        for row, levels in zip(table.rows, table.levels, strict=True):
            _print_block(table.columns, row, levels, console, brief=brief)
        print_notes(table, console)


def _print_block(
    columns: Sequence[str],
    row: Sequence[str],
    levels: Sequence[NoteLevel | None],
    console: Console,
    *,
    brief: bool,
) -> None:
    """Print the name and first cell of a row on a line, the other cells below."""
    name, first, *others = row
    console.print(f"{plain(name)}: {colour(first, levels[0])}", highlight=False)
    cells = [
        (level, f"{plain(column)}: {colour(cell, level)}")
        for column, cell, level in zip(columns[2:], others, levels[1:], strict=True)
        if cell not in ("", NOT_MEASURED) and (level is not None or not brief)
    ]
    cells.sort(key=lambda cell: cell[0] is not NoteLevel.FAILURE)
    lines = [line for _, line in cells]
    if not brief:
        lines = ["; ".join(lines)]
    elif len(lines) > _MOST_LINES:
        more = f"... and {len(lines) - _MOST_LINES} more, which --html and --json have"
        lines[_MOST_LINES:] = [more]
    for line in lines:
        console.print(Padding(line, (0, 0, 0, 4), expand=False), highlight=False)
