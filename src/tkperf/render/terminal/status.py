"""The page of runs in the terminal, a line each."""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console

from tkperf.model.choices import RUN_FILE_SUFFIX
from tkperf.page.page import Block, ReportView, TableView
from tkperf.render.terminal.page_text import print_page

# Longest path on the narrowest terminal.
_LEAST_PATH = 20


def print_status(view: ReportView, console: Console) -> None:
    """Print the runs: on a terminal with short paths and the columns that fit, otherwise all, on lines as long as they
    need.
    """
    if console.is_terminal:
        most = max(_LEAST_PATH, console.width // 4)
        view = replace(view, overview=tuple(_shorten(block, most) for block in view.overview))
    print_page(view, console, titled=False)


def _shorten(block: Block, most: int) -> Block:
    """Shorten paths at their beginning, as their ends distinguish runs; commands find a run without the suffix."""
    if not isinstance(block, TableView):
        return block
    rows = ((row[0].removesuffix(RUN_FILE_SUFFIX), *row[1:]) for row in block.rows)
    return replace(
        block,
        rows=tuple(
            row if len(row[0]) <= most else (f"\N{HORIZONTAL ELLIPSIS}{row[0][-most + 1 :]}", *row[1:]) for row in rows
        ),
    )
