"""Print a comparison on the terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table

from tkperf.analysis.comparing.comparison import Comparison
from tkperf.analysis.comparing.entries import Change
from tkperf.page.comparison.tables import ComparedTable
from tkperf.page.comparison.text import build_comparison_text
from tkperf.page.page import TableView
from tkperf.render.terminal.console import plain, print_verdict

CHANGE_STYLES = {Change.BETTER: "green", Change.WORSE: "red"}
# Width of a column of values with their ratios, and of the labels before them.
_COLUMN = 18
_LABELS = 32


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print a comparison: the answer, headline figures, sections, conditions."""
    most_across = max(2, (console.width - _LABELS) // _COLUMN)
    view = build_comparison_text(comparison, most_across)
    if view.verdict is not None:
        print_verdict(view.verdict, console)
    for notice in view.banners:
        console.print(plain(notice), style="yellow", highlight=False)
    for finding in view.answer:
        console.print(plain(finding), highlight=False)
    for table in view.overview[:1]:  # a row for each run would be too wide
        _print_table(table, console)
    for test in view.tests:
        for section in test.sections:
            for table in section.tables:
                _print_table(table, console, title=section.title)
        for _, fact in test.facts:
            console.print(plain(fact), style="dim", highlight=False)
    for text in view.words:
        console.print(text, style="dim", highlight=False)
    for group in view.grouped_warnings:
        console.print(plain(group.title), style="bold", highlight=False)
        for text in group.texts:
            console.print(f"  {plain(text)}", style="yellow", highlight=False)


def _print_table(table: TableView, console: Console, *, title: str = "") -> None:
    """Print a table: green is better, red is worse, dim is neither."""
    drawn = Table(
        title=plain(title or table.title), title_justify="left", title_style="bold",
        box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0),
    )  # fmt: skip
    for number, name in enumerate(table.columns):
        right = number >= table.labels
        drawn.add_column(
            plain(name), justify="right" if right else "left", overflow="fold", no_wrap=right
        )
    changes = table.changes if isinstance(table, ComparedTable) else ((),) * len(table.rows)
    for row, of_row in zip(table.rows, changes, strict=True):
        labels = (plain(label) for label in row[: table.labels])
        cells = (
            text if change is None else f"[{CHANGE_STYLES.get(change, 'dim')}]{text}[/]"
            for text, change in zip(map(_spaced, row[table.labels :]), of_row, strict=True)
        )
        drawn.add_row(*labels, *cells)
    console.print(drawn)
    for note in table.notes:
        console.print(plain(note), style="dim", highlight=False)


def _spaced(cell: str) -> str:
    """Return the text of a cell with plain spaces; its column keeps it on one line."""
    return plain(cell.replace("\u00a0", " "))
