"""The list of runs in the terminal, a line each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from tkperf.model.choices import RUN_FILE_SUFFIX
from tkperf.model.units import NOT_MEASURED
from tkperf.page.status import StatusColumn, StatusView
from tkperf.render.terminal.console import LEVEL_STYLES, plain, print_verdict

# Longest path on the narrowest terminal.
_LEAST_PATH = 20
_GAP = 2


def print_status(view: StatusView, console: Console) -> None:
    """Print the runs: on a terminal the columns that fit, otherwise all, on lines as long as they need."""
    columns = view.columns
    if console.is_terminal:
        names = _shorten(columns[0], max(_LEAST_PATH, console.width // 4))
        columns = _choose((names, *columns[1:]), console.width)
    console.width = max(console.width, _width(columns))
    print_verdict(view.verdict, console)
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        table.add_column(column.title, justify="right" if column.numeric else "left", no_wrap=True)
    for number, level in enumerate(view.levels):
        cells = (column.cells[number] for column in columns)
        table.add_row(*map(plain, cells), style=LEVEL_STYLES[level])
    console.print(table)
    for note in view.notes:
        console.print(note, style="dim", highlight=False)


def _shorten(paths: StatusColumn, most: int) -> StatusColumn:
    """Shorten paths at their beginning, as their ends distinguish runs; commands find a run without the suffix."""
    names = (path.removesuffix(RUN_FILE_SUFFIX) for path in paths.cells)
    return replace(
        paths,
        cells=tuple(
            name if len(name) <= most else f"\N{HORIZONTAL ELLIPSIS}{name[-most + 1 :]}"
            for name in names
        ),
    )


def _choose(columns: tuple[StatusColumn, ...], width: int) -> tuple[StatusColumn, ...]:
    """Return the columns that fit, by priority; a column without a single value comes last."""
    kept: list[StatusColumn] = []
    for column in sorted(columns, key=lambda one: (set(one.cells) == {NOT_MEASURED}, one.priority)):
        if not column.priority or _width((*kept, column)) <= width:
            kept.append(column)
    return tuple(column for column in columns if column in kept)


def _width(columns: Sequence[StatusColumn]) -> int:
    widths = (max(map(cell_len, (column.title, *column.cells))) for column in columns)
    return sum(widths) + _GAP * (len(columns) - 1)
