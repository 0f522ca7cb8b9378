"""Opening of a run's results in the terminal: headline figures, findings, grouped warnings."""

from __future__ import annotations

import rich.table
from rich.console import Console
from rich.padding import Padding

from tkperf.analysis.results import RunResult
from tkperf.model.units import format_count
from tkperf.page.findings import findings, headlines
from tkperf.page.remarks import find_badges, group_warnings, summarise_warnings
from tkperf.page.verdict import describe_verdict
from tkperf.render.terminal.console import plain, print_verdict

# More alarms make an end no clearer; tkperf show has them all.
_MOST_ALARMS = 5


def print_badges(result: RunResult, console: Console) -> None:
    """Print the badges, without which no figure may be read."""
    for badge in find_badges(result):
        style = "bold red" if badge.startswith("RUN ") else "yellow"
        console.print(plain(badge), style=style, highlight=False)


def print_end(result: RunResult, console: Console) -> None:
    """Print what a user must know when a run has ended: verdict, headline figures, and what to look at."""
    console.print(f"[bold]{plain(result.info.name)}[/bold]", highlight=False)
    print_verdict(describe_verdict(result), console)
    print_headlines(result, console)
    titles = {test.name: test.title for test in result.tests}
    alarms = [finding for finding in findings(result) if finding.alarm]
    lines = [
        f"{one.text}." if one.section else f"{titles.get(one.test, one.test)}: {one.text}."
        for one in alarms[:_MOST_ALARMS]
    ]
    if len(alarms) > _MOST_ALARMS:
        lines.append(f"... and {format_count(len(alarms) - _MOST_ALARMS, 'more finding')}")
    if groups := group_warnings(result):
        lines.append(summarise_warnings(groups))
    if lines:
        console.print()
    for line in lines:
        console.print(plain(line), style="yellow", highlight=False)


def print_headlines(result: RunResult, console: Console) -> None:
    """Print the headline figures, each with its uncertainty, state and test."""
    if shown := headlines(result):
        drawn = rich.table.Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        drawn.add_column()
        drawn.add_column(justify="right", style="bold", no_wrap=True)
        drawn.add_column(style="dim", no_wrap=True)
        drawn.add_column()
        drawn.add_column(style="dim")
        titles = {test.name: test.title for test in result.tests}
        for each in shown:
            verdict = f"[bold red]{each.verdict}[/bold red]" if each.alarm else each.verdict
            # Names the test: latencies of one load under two tests' demands are two measurements.
            of = plain(titles.get(each.test, each.test))
            drawn.add_row(plain(each.label), plain(each.text), each.sure, verdict, of)
        console.print()
        console.print(drawn)


def print_opening(result: RunResult, console: Console) -> None:
    """Print headline figures and findings, before the tables that they come from."""
    print_headlines(result, console)
    found_in_run = findings(result)
    for test in result.tests:
        found = [finding for finding in found_in_run if finding.test == test.name]
        if found:
            console.print()
            console.print(f"[bold]{plain(test.title)}[/bold]", highlight=False)
        for finding in found:
            style = "bold red" if finding.alarm else ""
            console.print(
                Padding(f"{plain(finding.text)}.", (0, 0, 0, 2), expand=False), style=style
            )


def print_warnings(result: RunResult, console: Console) -> None:
    """Print each warning once, under its subject."""
    groups = group_warnings(result)
    if not groups:
        return
    console.print()
    console.print(summarise_warnings(groups), style="yellow", highlight=False)
    for group in groups:
        for text in group.texts:
            line = f"{group.title}: {plain(text)}"
            console.print(Padding(line, (0, 0, 0, 2), expand=False), style="yellow")
