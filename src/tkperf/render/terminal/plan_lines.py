"""Plans, estimates and workloads in the terminal: phases, time, amount and cost of a run."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

import click
from rich.box import SIMPLE_HEAD
from rich.table import Table

from tkperf.analysis.estimates import BatchEstimate, RunEstimate
from tkperf.model.record import RunNote
from tkperf.page.batch.batch_plan_page import build_batch_plan_page
from tkperf.page.page import ReportView
from tkperf.page.plan import build_plan_page, describe_plan_verdict
from tkperf.procedures import Circumstances, load_profile, own_tests, with_workloads
from tkperf.procedures.own_workloads.workload_file import TABLES_BY_PLACE
from tkperf.procedures.profiles import explain_keys
from tkperf.render.terminal.console import open_console, plain, print_facts, print_lines, print_verdict
from tkperf.render.terminal.page_text import print_page

_CLOCK = "%a %d %b %Y %H:%M"


def print_plan(estimate: RunEstimate) -> None:
    """Print the page of a plan: its verdict, the time and amount of tests and phases, then the conditions."""
    _print_page(_build(estimate))


def print_batch_plan(estimate: BatchEstimate) -> None:
    """Print the page of a batch's plan: its verdict, a row for each drive, the links that they share,
    the conditions.
    """
    is_timed = not all(one.simulated for one in estimate.estimates)
    ends = _describe_end(estimate.bounds_s) if is_timed else ""
    _print_page(build_batch_plan_page(estimate, ends))


def _print_page(page: ReportView) -> None:
    print_page(page, open_console(), titled=False)
    print_lines("nothing was run, written or asked")


def print_plan_on_stderr(estimate: RunEstimate) -> None:
    """Show the verdict and the conditions of a plan on stderr, before the question. A stderr that nobody reads must not
    end a run.
    """
    page = _build(estimate)
    with suppress(OSError):
        print_verdict(describe_plan_verdict(estimate), open_console(stderr=True))
    print_facts(fact for _, facts in page.disclosure for fact in facts)
    print_facts((("warning", text) for text in (*estimate.refusals, *estimate.cautions)), style="yellow")


def _build(estimate: RunEstimate) -> ReportView:
    ends = _describe_end((estimate.shortest_s, estimate.longest_s))
    return build_plan_page(estimate, "" if estimate.simulated else ends)


def _describe_end(bounds_s: tuple[float, float]) -> str:
    now = datetime.now()  # noqa: DTZ005  # the user's own clock is meant
    earliest, latest = ((now + timedelta(seconds=seconds)).strftime(_CLOCK) for seconds in bounds_s)
    when = earliest if earliest == latest else f"between {earliest} and {latest}"
    return f"{when}, if begun now"


def print_plan_warnings(warnings: Iterable[RunNote]) -> None:
    """Show the reasons not to trust the result, and the checks that were not possible, before the question."""
    print_facts((("warning", warning.text) for warning in warnings), style="yellow")


def print_workload(file: Path, profile: str, as_json: bool) -> None:
    """Print what the test of a workload file would do."""
    with_workload = with_workloads(load_profile(profile), "ssd", (str(file.absolute()),))
    (test,) = own_tests(with_workload)
    lines = test.describe(with_workload, Circumstances())
    if as_json:
        (table,) = test.tables
        described = {"name": test.name, "title": test.title, "profile": with_workload.name}
        data = {"course": lines, "workload": with_workload.as_plain_data()[table.key]}
        click.echo(json.dumps(described | data, indent=2))
        return
    console = open_console()
    console.print(f"[bold]{plain(test.name)}[/bold]  {plain(test.title)}", highlight=False)
    console.print(f"with profile {plain(with_workload.name)}: {plain(with_workload.title)}", highlight=False)
    for line in lines:
        console.print(f"  {plain(line)}", highlight=False)


def list_keys() -> None:
    """Print every key of a workload file, table by table."""
    console = open_console()
    for place, table in TABLES_BY_PLACE.items():
        console.print(f"[bold]{plain(place)}[/bold]", highlight=False)
        drawn = Table(box=SIMPLE_HEAD, show_edge=False)
        for column in ("key", "values", "meaning"):
            drawn.add_column(column, overflow="fold")
        for key in explain_keys(table):
            drawn.add_row(key.name, plain(key.values), plain(key.meaning))
        if drawn.row_count:
            console.print(drawn)
        console.print()
