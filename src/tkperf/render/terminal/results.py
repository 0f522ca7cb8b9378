"""Results as tables in the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import rich.table
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.rule import Rule

from tkperf.analysis.host import ADVICE, DISTURBS, UNKNOWN, host_findings, tuned_settings
from tkperf.analysis.results import RunResult, SectionResult, TestResult
from tkperf.model.figures import matrix_keys
from tkperf.model.quantity import QUANTITIES
from tkperf.model.record import RunStatus
from tkperf.model.seconds import Seconds
from tkperf.model.units import format_count
from tkperf.page.facts import describe_device
from tkperf.page.tables.results import (
    ResultTable,
    TableNumber,
    build_areas,
    build_directions,
    build_listings,
    build_matrices,
    build_stream,
    explain_intervals,
    transpose,
)
from tkperf.page.tables.sections import build_section_tables, build_telemetry_table
from tkperf.page.verdict import describe_verdict
from tkperf.page.words.flags import describe_counts, describe_gaps, describe_window
from tkperf.page.words.run import describe_resumptions, describe_step_under_way
from tkperf.page.words.steady_state import describe_tracked
from tkperf.page.words.timeline import describe_timelines
from tkperf.render.terminal.console import plain, print_verdict
from tkperf.render.terminal.drawings import print_drawings
from tkperf.render.terminal.opening import (
    print_badges,
    print_opening,
    print_warnings,
)

NO_SECONDS: Mapping[tuple[str, str], Seconds] = MappingProxyType({})
_HEADING_WIDTH = 80


def print_results(
    result: RunResult,
    console: Console,
    *,
    going_on: str | None = None,
    seconds: Mapping[tuple[str, str], Seconds] = NO_SECONDS,
) -> None:
    """Print everything that a terminal can show of a run.

    Args:
        going_on: place of a run that has not ended.
        seconds: seconds of sections that are short streams, by test and section.
    """
    info = result.info
    console.print(
        f"[bold]{plain(info.name)}[/bold]  {plain(describe_device(info.device))}", highlight=False
    )
    console.print(
        f"profile {plain(info.profile_name)}: {plain(info.specification or 'not known')}, "
        f"{plain(info.fio_version or _load_generator(info.ioengine))}, "
        f"active range {info.active_range_text or 'not known'}, "
        f"started {plain(info.started_utc or 'not known')}",
        highlight=False,
    )
    print_verdict(describe_verdict(result), console)
    print_badges(result, console)
    if result.status is RunStatus.RUNNING:
        console.print(
            f"going on: {plain(going_on or 'it has not ended')}", style="bold", highlight=False
        )
    print_opening(result, console)
    print_warnings(result, console)
    _print_host(info.host, console)
    for test in result.tests:
        _print_test(result, test, console, seconds)
    for text in explain_intervals(result):
        console.print(text, style="dim", highlight=False)


def _print_host(host: dict[str, object], console: Console) -> None:
    """Print settings and advice of the host's audit, a line each, and unknown subjects; count the rest."""
    findings = host_findings(host)
    for change in tuned_settings(host):
        console.print(f"set for the run: {plain(change)}", highlight=False)
    for finding in findings:
        if finding.level == ADVICE:
            console.print(f"host: {plain(finding.title)}: {plain(finding.text)}", highlight=False)
    rest = sum(one.level not in (ADVICE, DISTURBS, UNKNOWN) for one in findings)
    unknown = [one.title for one in findings if one.level == UNKNOWN]
    if rest:
        found = format_count(rest, "more finding")
        console.print(f"host: {found} in the report and in --json", style="dim", highlight=False)
    if unknown:
        console.print(f"host, not known: {plain(', '.join(unknown))}", style="dim", highlight=False)


def _load_generator(ioengine: str) -> str:
    return "load generator not known" if ioengine == "not known" else ioengine


def _print_test(
    result: RunResult,
    test: TestResult,
    console: Console,
    seconds: Mapping[tuple[str, str], Seconds],
) -> None:
    console.print()
    # A piped console is wide enough for every table, so wider than a heading needs.
    heading = Rule(f"[bold]{test.title}[/bold]", align="left")
    console.print(heading, width=min(console.width, _HEADING_WIDTH))
    for text in describe_resumptions(result, test):
        console.print(plain(text), style="yellow", highlight=False)
    for section in test.sections:
        _print_section(section, console)
        print_drawings(section, console, seconds.get((test.name, section.name)))
    for table in build_section_tables(test):
        print_table(table, console)
    if (telemetry := build_telemetry_table(test.telemetry)) is not None:
        print_table(telemetry, console)
    if (under_way := describe_step_under_way(test, result.status)) is not None:
        console.print(plain(under_way), highlight=False)
    if test.longest_gap_s is not None:
        console.print(
            "longest gap between two steps, by tkperf's clock: "
            + describe_gaps(test.longest_gap_s, test.disturbed_steps),
            style="dim",
            highlight=False,
        )
    counts = describe_counts(test.disturbed_steps, test.not_compared_steps, test.steps)
    if counts and not test.disturbed_steps:  # disturbed steps are a finding
        console.print(f"disturbed: {counts}", style="dim", highlight=False)


def _print_section(section: SectionResult, console: Console) -> None:
    console.print(f"[bold]{plain(section.name)}[/bold]: {_verdict_line(section)}", highlight=False)
    for finding in describe_timelines(section.timelines):
        console.print(f"over time: {plain(finding)}", highlight=False)
    if section.slices:
        _print_stream(section, console)
    elif not section.cells:
        console.print("no round is complete" + ("; what there is of it:" * bool(section.rounds)))
        for last_round in section.rounds[-1:]:
            so_far = replace(section, cells=last_round.cells)
            _print_cells(so_far, console, matrix_keys(section.plan) or section.plan.quantities[:1])
    elif section.areas:
        for key in section.plan.quantities[:1]:
            print_table(build_areas(section, QUANTITIES[key]), console)
    else:
        _print_cells(section, console, matrix_keys(section.plan))


def _print_cells(section: SectionResult, console: Console, keys: Sequence[str]) -> None:
    shown = [QUANTITIES[key] for key in keys]
    for table in build_matrices(section, shown):
        print_table(table, console)
    _print_listings(section, console)
    for quantity in shown[:1]:
        mixed = build_directions(section, quantity)
        if mixed is not None:
            print_table(mixed, console)


def _verdict_line(section: SectionResult) -> str:
    verdict = section.verdict
    if verdict is None:
        return plain(section.ended_because)
    if not verdict.judged:
        return f"not judged, {plain(section.ended_because)}; {plain(verdict.reason)}"
    unsteady = "[bold red]not steady[/bold red]" if section.complete else "not steady so far"
    state = "steady" if verdict.reached else unsteady
    tracked = [plain(describe_tracked(verdict)) for verdict in section.window_verdicts]
    between = "; " if len(tracked) == 1 else "\n  "
    return (
        f"{state}, {plain(section.ended_because)}{between}{between.join(tracked)}"
        f"{describe_window(section.disturbed_in_window)}"
    )


def print_table(table: ResultTable, console: Console) -> None:
    """Print a table of figures."""
    if table.title:
        words = [table.title, *([table.over] if table.over else [])]
        across = f"; {table.across} across" if table.across else ""
        console.print(f"\n{plain(', '.join(words))}{across}", highlight=False)
    drawn = rich.table.Table(box=SIMPLE_HEAD, show_edge=False)
    for name in table.head:
        drawn.add_column(plain(name), justify="right", overflow="fold")
    for row in table.rows:
        drawn.add_row(*(_text(cell) for cell in row))
    console.print(drawn)
    for note in table.notes:
        console.print(note, style="dim", highlight=False)


def _text(cell: str | TableNumber) -> str:
    return cell.text() if isinstance(cell, TableNumber) else plain(cell)


def _print_stream(section: SectionResult, console: Console) -> None:
    """Print a stream's ends and its whole as a narrow table."""
    print_table(transpose(build_stream(section)), console)
    _print_listings(section, console)


def _print_listings(section: SectionResult, console: Console) -> None:
    for table in build_listings(section):
        narrow = table.labels == 1 and len(table.rows) < len(table.head)
        print_table(transpose(table) if narrow else table, console)
