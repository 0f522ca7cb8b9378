"""tkperf check: claims of a data sheet or an earlier run against a run."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import click
import msgspec
from rich.console import Console
from rich.table import Table

from tkperf.analysis.claims import Finding, State, check_claims, parse_claims
from tkperf.analysis.results import RunResult, analyse
from tkperf.cli.output import plain, write_output
from tkperf.errors import ClaimsNotMetError, UsageError
from tkperf.runfile.reader import read_run

STYLES = {State.MET: "green", State.NOT_MET: "bold red", State.NOT_MEASURED: "yellow"}


@click.command(short_help="Check a data sheet's or an earlier run's numbers.")
@click.argument("run_file", type=click.Path(path_type=Path))
@click.argument("claims_file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="As a JSON document for programs.")
@click.option(
    "--junit",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also as JUnit XML, for CI systems.",
)
def check(run_file: Path, claims_file: Path, as_json: bool, junit: Path | None) -> None:
    """Check the claims in CLAIMS_FILE against RUN_FILE: met, not met, or not measured.

    Ends with 0 if all are met, else with 1. docs/claims.md describes the file.

    \b
    Example of a claims file:
      [[claim]]
      test = "iops"
      metric = "iops"
      read_percent = 100
      block_size = "4k"
      at_least = 75000
      source = "data sheet"
      [baseline]
      run = "last-firmware.tkperf"
      within_percent = 5
    """
    result = analyse(read_run(run_file))
    findings = read_and_check(claims_file, result)
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(findings), indent=2))
    else:
        print_findings(findings, result, Console(emoji=False))
    if junit is not None:
        write_output(junit, _junit(findings, result), say=not as_json)
    missed = [finding for finding in findings if finding.state is not State.MET]
    if missed:
        raise ClaimsNotMetError(
            f"{run_file}: {len(missed)} of {len(findings)} claims are not met or not measured"
        )


def read_and_check(claims_file: Path, result: RunResult) -> tuple[Finding, ...]:
    """Read a claims file and check it.

    Raises:
        UsageError, RunFileError: it, or the baseline it names, cannot be read.
    """
    try:
        text = claims_file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the claims {claims_file}: {error}") from error
    return check_claims(
        parse_claims(text, file=str(claims_file)),
        result,
        load=lambda path: analyse(read_run(path)),
        folder=claims_file.parent,
    )


def print_findings(findings: tuple[Finding, ...], result: RunResult, console: Console) -> None:
    """Everything a terminal can show of claims."""
    for notice in result.info.notices:
        console.print(plain(notice), style="yellow", highlight=False)
    table = Table()
    for name in ("claim", "limit", "measured", "margin", "state", "note", "source"):
        right = name in ("measured", "margin")
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for finding in findings:
        value = "-" if finding.value is None else f"{finding.value:,.1f} {finding.unit}"
        margin = "-" if finding.margin_percent is None else f"{finding.margin_percent:+.1f} %"
        table.add_row(
            plain(finding.claim),
            finding.limit,
            value,
            margin,
            f"[{STYLES[finding.state]}]{finding.state.value}[/]",
            plain(finding.note or ""),
            plain(finding.source or ""),
        )
    console.print(table)


def _junit(findings: tuple[Finding, ...], result: RunResult) -> str:
    """A test suite named after the run, a test case a claim."""
    failures = sum(finding.state is State.NOT_MET for finding in findings)
    skipped = sum(finding.state is State.NOT_MEASURED for finding in findings)
    suite = ET.Element(
        "testsuite",
        name=f"tkperf check {result.info.name}",
        tests=str(len(findings)),
        failures=str(failures),
        skipped=str(skipped),
        errors="0",
    )
    for finding in findings:
        case = ET.SubElement(suite, "testcase", classname=result.info.name, name=finding.claim)
        said = f"{finding.state.value}: {finding.value} {finding.unit}, claimed {finding.limit}"
        if finding.state is State.NOT_MET:
            ET.SubElement(case, "failure", message=said)
        elif finding.state is State.NOT_MEASURED:
            ET.SubElement(case, "skipped", message=said)
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
