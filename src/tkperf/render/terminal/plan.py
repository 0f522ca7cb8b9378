"""Plans, outlooks and workloads in the terminal: phases, time, amount and cost of a run."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

import click
import rich.table
from rich.box import SIMPLE_HEAD
from rich.table import Table

from tkperf.model.record import RunWarning
from tkperf.model.units import NOT_MEASURED, format_capacity, format_duration, format_durations
from tkperf.pipeline.host_check import describe_host
from tkperf.pipeline.outlook import MUCH_OF_A_LIFE, PURGE, Outlook, Stage
from tkperf.pipeline.run_plan import RunPlan
from tkperf.procedures import Circumstances, load_profile, own_tests, with_workloads
from tkperf.procedures.own_workloads.tables import TABLES_BY_PLACE
from tkperf.procedures.profiles import explain_keys
from tkperf.render.terminal.console import open_console, plain, tell
from tkperf.render.terminal.results import describe_device

_CLOCK = "%a %d %b %Y %H:%M"


def describe_time(outlook: Outlook) -> str:
    """Describe the duration: ``2 h 10 min to 3 h 05 min, without purging``."""
    without = ", without purging" if outlook.purges else ""
    if outlook.simulated:
        without = " of simulated time"
    return format_durations(outlook.shortest_s, outlook.longest_s) + without


def describe_outlook(outlook: Outlook, now: datetime | None = None) -> list[tuple[str, str]]:
    """Describe end, amount written, speed and share of the drive's life: labels and texts."""
    now = now or datetime.now()  # noqa: DTZ005  # the user's own clock is meant
    ends = [
        (now + timedelta(seconds=seconds)).strftime(_CLOCK)
        for seconds in (outlook.shortest_s, outlook.longest_s)
    ]
    least, most = outlook.least_bytes, outlook.most_bytes
    amounts, fills = (
        _between(form(least), form(most), nothing=least == 0)
        for form in (format_capacity, lambda amount: f"{amount / outlook.capacity_bytes:,.1f}")
    )
    lines = [
        *([] if outlook.simulated else [("ends", f"{_when(*ends)}, if begun now")]),
        ("writes", f"{amounts}, {fills} drive fills"),
        ("rate", str(outlook.rates)),
    ]
    if outlook.shares is not None:
        low, high = outlook.shares
        share = _between(_percent(low), _percent(high), nothing=low == 0)
        lines.append(("life", f"{share} of its rating ({outlook.rated_as})"))
    return lines


def _when(earliest: str, latest: str) -> str:
    return earliest if earliest == latest else f"between {earliest} and {latest}"


def _between(least: str, most: str, *, nothing: bool) -> str:
    """Format a range: ``1.9 TB to 29.0 TB``; only the upper bound if the least is nothing."""
    if nothing:
        return f"at most {most}"
    return most if least == most else f"{least} to {most}"


def warn_of_cost(outlook: Outlook) -> str | None:
    """Return a warning that a run may take a twentieth of a drive's life; None if not, or if not known."""
    if outlook.shares is None or not outlook.costs_much:
        return None
    return (
        f"the run may write {_percent(outlook.shares[1])} of what the drive is rated for "
        f"({outlook.rated_as}), more than {_percent(MUCH_OF_A_LIFE)}"
    )


def _percent(share: float) -> str:
    return f"{100 * share:,.2g} %" if share < 1 else f"{100 * share:,.0f} %"


def describe_own_courses(plan: RunPlan) -> list[tuple[str, str]]:
    """Describe the course of the user's own tests, line by line, as no other place describes it."""
    circumstances = Circumstances(purge=None if plan.request.no_purge else "Purge")
    return [
        ("" if number else "course", line)
        for test in plan.tests
        if test.test.own
        for number, line in enumerate(
            (f"{test.test.title}:", *test.test.describe(plan.profile, circumstances))
        )
    ]


def print_plan(made: RunPlan, outlook: Outlook) -> None:
    """Print the phases of a plan, its time, amount and cost."""
    console = open_console()
    device = describe_device(made.subject.facts.values)
    console.print(f"[bold]device[/bold]  {plain(device)}", highlight=False)
    drawn = rich.table.Table(box=SIMPLE_HEAD, show_edge=False)
    for name in ("test", "phase", "begins, earliest", "shortest", "longest", "writes at most"):
        drawn.add_column(name, justify="left" if name in ("test", "phase") else "right")
    at, before = datetime.now(), ""  # noqa: DTZ005  # the user's own clock is meant
    for stage in outlook.stages:
        drawn.add_row(*_row(stage, at, before))
        at, before = at + timedelta(seconds=stage.shortest_s), stage.test
    console.print(drawn)
    lines = [
        ("time", describe_time(outlook)),
        *describe_own_courses(made),
        *describe_outlook(outlook),
        *made.subject.lines,
        *(("choice", choice) for choice in made.changes.choices),
        *(("altered", alteration) for alteration in made.alterations),
    ]
    host = describe_host(made.audit, made.request.device)
    if host is not None:
        lines.append(("host", host))
    for label, text in lines:
        console.print(f"[bold]{label:<8}[/bold]{plain(text)}", highlight=False)
    tell_warnings(made.warnings)
    tell_cost(outlook)
    tell("nothing was run, written or asked")


def _row(stage: Stage, at: datetime, before: str) -> tuple[str, ...]:
    purge = stage.what == PURGE
    section = "" if stage.section == stage.test else f"{stage.section}: "
    return (
        "" if stage.test == before else stage.test,
        section + stage.what,
        at.strftime("%a %H:%M"),
        "not known" if purge else format_duration(stage.shortest_s),
        "not known" if purge else format_duration(stage.longest_s),
        format_capacity(stage.most_bytes) if stage.most_bytes else NOT_MEASURED,
    )


def tell_cost(outlook: Outlook) -> None:
    """Warn if the run may take much of a drive's life."""
    if (cost := warn_of_cost(outlook)) is not None:
        tell(f"[yellow]warning[/yellow]  {plain(cost)}")


def tell_warnings(warnings: Iterable[RunWarning]) -> None:
    """Show reasons not to trust the result, and checks that were not possible, before the question."""
    tell(*(f"[yellow]warning[/yellow]  {plain(warning.text)}" for warning in warnings))


def print_workload(file: Path, profile: str, as_json: bool) -> None:
    """Print what the test of a workload file would do."""
    chosen = with_workloads(load_profile(profile), "ssd", (str(file.absolute()),))
    (test,) = own_tests(chosen)
    lines = test.describe(chosen, Circumstances())
    if as_json:
        (table,) = test.tables
        described = {"name": test.name, "title": test.title, "profile": chosen.name}
        data = {"course": lines, "workload": chosen.as_plain_data()[table.key]}
        click.echo(json.dumps(described | data, indent=2))
        return
    console = open_console()
    console.print(f"[bold]{plain(test.name)}[/bold]  {plain(test.title)}", highlight=False)
    console.print(f"with profile {plain(chosen.name)}: {plain(chosen.title)}", highlight=False)
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
