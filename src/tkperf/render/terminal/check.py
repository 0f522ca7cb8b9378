"""A check of claims in the terminal."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table

from tkperf.analysis.claim_findings import Checked, ClaimFinding, ClaimState
from tkperf.analysis.results import RunResult
from tkperf.page.check import CheckMatrix, ClaimText, describe_claim, find_check_warnings
from tkperf.page.words.run import find_notices
from tkperf.render.terminal.console import plain

CLAIM_STYLES = {
    ClaimState.MET: "green",
    ClaimState.NOT_MET: "bold red",
    ClaimState.NOT_MEASURED: "yellow",
    ClaimState.CANNOT_BE_TOLD: "yellow",
}


def print_checked(checked: Checked, result: RunResult, console: Console) -> None:
    """Print notices, warnings and the finding for each claim."""
    for notice in find_notices(result):
        console.print(plain(notice), style="yellow", highlight=False)
    for warning in find_check_warnings(checked):
        console.print(plain(f"warning: {warning}"), style="yellow", highlight=False)
    table = Table()
    for name in ClaimText._fields:
        right = name in ("measured", "margin")
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    texts = [_style(finding) for finding in checked.findings]
    for text in texts:
        table.add_row(*text)
    unlimited = console.options.update(width=10_000)
    if Measurement.get(console, unlimited, table).maximum <= console.width:
        console.print(table)
    else:  # rich would break words to make it fit
        for text in texts:
            _print_stacked(text, console)


def _style(finding: ClaimFinding) -> ClaimText:
    """Return the finding in words that are safe to print, its state with a colour."""
    text = ClaimText(*map(plain, describe_claim(finding)))
    style = "yellow" if finding.certain is False else CLAIM_STYLES[finding.state]
    return text._replace(state=f"[{style}]{text.state}[/]")


def _print_stacked(text: ClaimText, console: Console) -> None:
    lines = [
        f"claimed {text.limit}, measured {text.measured}, margin {text.margin}",
        text.note,
        f"source: {text.source}" if text.source else "",
    ]
    console.print(f"{text.state}: {text.claim}", highlight=False)
    for line in filter(None, lines):
        console.print(Padding(line, (0, 0, 0, 4), expand=False), highlight=False)


def print_matrix(matrix: CheckMatrix, console: Console) -> None:
    """Print the answer for many drives, a line for each of them, and notes."""
    passed = all(row.passes for row in matrix.rows)
    console.print(
        plain(matrix.banner), style="bold green" if passed else "bold red", highlight=False
    )
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("run", overflow="fold")
    for number in range(len(matrix.claims)):
        table.add_column(f"claim {number + 1}", overflow="fold")
    for row in matrix.rows:
        cells = [
            plain(cell.text) if cell.passes else f"[bold red]{plain(cell.text)}[/]"
            for cell in row.cells
        ] or ["[bold red]could not be checked[/]"]
        table.add_row(plain(row.name), *cells)
    console.print(table)
    for number, claim in enumerate(matrix.claims, start=1):
        console.print(plain(f"claim {number}: {claim}"), highlight=False)
    for note in matrix.notes:
        console.print(plain(note), style="yellow", highlight=False)
