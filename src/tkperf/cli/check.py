"""tkperf check: check a run against claims of a data sheet or an earlier run."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table

from tkperf.analysis.claim_findings import Checked, Finding, State
from tkperf.analysis.results import RunResult
from tkperf.cli.claims import read_and_check
from tkperf.cli.console import OutputConsole, plain
from tkperf.cli.output import STDOUT, Outputs
from tkperf.model.errors import ClaimsNotMetError
from tkperf.model.units import format_count
from tkperf.page.check import find_check_warnings
from tkperf.page.words.run import find_notices
from tkperf.pipeline.api import load
from tkperf.render.export_check import render_check_json, render_junit

STYLES = {
    State.MET: "green",
    State.NOT_MET: "bold red",
    State.NOT_MEASURED: "yellow",
    State.CANNOT_BE_TOLD: "yellow",
}


def check(
    run_file: Path,
    claims_file: Path,
    as_json: bool,
    junit: Path | None,
    require_confidence: bool,
) -> None:
    """Check claims, print the findings, and write the files asked for."""
    outputs = Outputs((junit, STDOUT if as_json else None), inputs=(run_file, claims_file))
    result = load(run_file)
    checked = read_and_check(claims_file, result)
    if as_json:
        click.echo(render_check_json(checked, result))
    elif not outputs.on_stdout:
        print_checked(checked, result, OutputConsole(emoji=False))
    if junit is not None:
        outputs.write(junit, render_junit(checked, result, confirmed=require_confidence))
    doubted = [
        finding
        for finding in checked.findings
        if finding.state is State.MET and not finding.is_confirmed and require_confidence
    ]
    missed = [finding for finding in checked.findings if finding.state is not State.MET]
    if doubted and not missed:
        of = f"{len(doubted)} of {format_count(len(checked.findings), 'claim')}"
        raise ClaimsNotMetError(f"{run_file}: {of} met, but not beyond the uncertainty")
    if missed:
        of = f"{len(missed)} of {format_count(len(checked.findings), 'claim')}"
        raise ClaimsNotMetError(f"{run_file}: {of} not met, not measured or cannot be told")


def print_checked(checked: Checked, result: RunResult, console: Console) -> None:
    """Print notices, warnings and the finding for each claim."""
    for notice in find_notices(result):
        console.print(plain(notice), style="yellow", highlight=False)
    for warning in find_check_warnings(checked):
        console.print(plain(f"warning: {warning}"), style="yellow", highlight=False)
    table = Table()
    for name in ("claim", "limit", "measured", "margin", "state", "note", "source"):
        right = name in ("measured", "margin")
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for finding in checked.findings:
        table.add_row(
            plain(finding.claim),
            finding.limit,
            finding.measured_text,
            finding.margin_text,
            _state(finding),
            plain(finding.note or ""),
            plain(finding.source or ""),
        )
    unlimited = console.options.update(width=10_000)
    if Measurement.get(console, unlimited, table).maximum <= console.width:
        console.print(table)
    else:  # rich would break words to make it fit
        for finding in checked.findings:
            _print_stacked(finding, console)


def _print_stacked(finding: Finding, console: Console) -> None:
    lines = [
        f"claimed {finding.limit}, measured {finding.measured_text}, margin {finding.margin_text}",
        plain(finding.note or ""),
        plain(f"source: {finding.source}" if finding.source else ""),
    ]
    console.print(f"{_state(finding)}: {plain(finding.claim)}", highlight=False)
    for line in filter(None, lines):
        console.print(Padding(line, (0, 0, 0, 4), expand=False), highlight=False)


def _state(finding: Finding) -> str:
    style = "yellow" if finding.certain is False else STYLES[finding.state]
    return f"[{style}]{finding.outcome}[/]"
