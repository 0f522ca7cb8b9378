"""A check of claims in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding

from tkperf.model.units import NOT_MEASURED
from tkperf.page.page import ReportView, TableView
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
        _print_blocks(table, console, brief=brief)
        print_notes(table, console)


def _print_blocks(table: TableView, console: Console, *, brief: bool) -> None:
    """Print the name and first cell of each row on a line, the other cells below.

    Rows whose text is the same share a block; of a brief page, rows without cautions and failures share the last one.
    """
    blocks: dict[tuple[str, ...], list[str]] = {}
    passed = []
    for (name, first, *others), levels in zip(table.rows, table.levels, strict=True):
        if brief and not any(levels):
            passed.append(f"{plain(name)} {plain(first)}")
            continue
        lines = _describe_cells(table.columns[2:], others, levels[1:], brief=brief)
        blocks.setdefault((colour(first, levels[0]), *lines), []).append(plain(name))
    for (first, *lines), names in blocks.items():
        console.print(f"{', '.join(names)}: {first}", highlight=False)
        for line in lines:
            console.print(Padding(line, (0, 0, 0, 4), expand=False), highlight=False)
    if passed:
        console.print("; ".join(passed), highlight=False)


def _describe_cells(
    columns: Sequence[str],
    cells: Sequence[str],
    levels: Sequence[NoteLevel | None],
    *,
    brief: bool,
) -> list[str]:
    """Return a line for each cell, failures first; all cells are one line unless the page is brief."""
    named = [
        (level, f"{plain(column)}: {colour(cell, level)}")
        for column, cell, level in zip(columns, cells, levels, strict=True)
        if cell not in ("", NOT_MEASURED) and (level is not None or not brief)
    ]
    named.sort(key=lambda cell: cell[0] is not NoteLevel.FAILURE)
    lines = [line for _, line in named]
    if not brief:
        return ["; ".join(lines)]
    if len(lines) > _MOST_LINES:
        more = f"... and {len(lines) - _MOST_LINES} more, which --html and --json have"
        lines[_MOST_LINES:] = [more]
    return lines
