"""Print a comparison on the terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table

from tkperf.analysis.comparing.comparison import Comparison
from tkperf.analysis.comparing.entries import Change, ComparedRow
from tkperf.page.comparing.findings import find_common_notices, find_findings
from tkperf.page.comparing.headline_tables import build_headline_table
from tkperf.page.comparing.ratios import describe_ratio_uncertainty
from tkperf.page.comparing.tables import (
    ComparedTable,
    build_summary,
    build_values,
)
from tkperf.page.comparing.telemetry import find_telemetry_differences
from tkperf.page.words.conditions import find_conditions
from tkperf.page.words.uncertainty import MEANING_OF_RATIO
from tkperf.render.terminal.console import plain

CHANGE_STYLES = {Change.BETTER: "green", Change.WORSE: "red"}
# Width of a column of values with their ratios, and of the labels before them.
_COLUMN = 24
_LABELS = 32


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print a comparison: the answer, headline figures, sections, conditions."""
    for notice in find_common_notices(comparison):
        console.print(plain(notice), style="bold yellow", highlight=False)
    for finding in find_findings(comparison):
        console.print(plain(finding), highlight=False)
    headlines = build_headline_table(comparison)
    if headlines is not None:
        _print_table(headlines, console)
    for place in dict.fromkeys((row.test, row.section) for row in comparison.rows):
        rows = [row for row in comparison.rows if (row.test, row.section) == place]
        _print_section(comparison, rows, console)
    if any(describe_ratio_uncertainty(entry) for row in comparison.rows for entry in row.entries):
        console.print(MEANING_OF_RATIO, style="dim", highlight=False)
    for group in find_conditions(comparison.names, comparison.results):
        console.print(plain(group.title), style="bold", highlight=False)
        for text in group.texts:
            console.print(f"  {plain(text)}", style="yellow", highlight=False)


def _print_section(comparison: Comparison, rows: list[ComparedRow], console: Console) -> None:
    fits = _LABELS + _COLUMN * len(comparison.names) <= console.width
    values = fits or len(comparison.names) == 2
    table = build_values(comparison, rows) if values else build_summary(comparison, rows)
    _print_table(table, console, title=rows[0].section)
    for each in find_telemetry_differences(comparison.names, comparison.results):
        if each.test == rows[0].test:
            console.print(plain(each.text), style="dim", highlight=False)


def _print_table(table: ComparedTable, console: Console, *, title: str = "") -> None:
    """Print a table: green is better, red is worse, dim is neither."""
    drawn = Table(
        title=plain(title or table.title), title_justify="left", title_style="bold",
        box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0),
    )  # fmt: skip
    for number, name in enumerate(table.head):
        right = number >= table.labels
        drawn.add_column(plain(name), justify="right" if right else "left", overflow="fold")
    for row, changes in zip(table.rows, table.changes, strict=True):
        labels = (plain(label) for label in row[: table.labels])
        cells = (
            plain(text)
            if change is None
            else f"[{CHANGE_STYLES.get(change, 'dim')}]{plain(text)}[/]"
            for text, change in zip(row[table.labels :], changes, strict=True)
        )
        drawn.add_row(*labels, *cells)
    console.print(drawn)
    for note in table.notes:
        console.print(plain(note), style="dim", highlight=False)
