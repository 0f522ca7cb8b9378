"""A plan in the terminal: phases, time, amount and cost of a run."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import rich.table
from rich.box import SIMPLE_HEAD

from tkperf.model.record import RunWarning
from tkperf.model.units import NOT_MEASURED, format_capacity, format_duration
from tkperf.pipeline.host_check import describe_host
from tkperf.pipeline.outlook import PURGE, Outlook, Stage
from tkperf.pipeline.run_plan import RunPlan
from tkperf.render.terminal.console import open_console, plain, tell
from tkperf.render.terminal.outlook import (
    describe_outlook,
    describe_own_courses,
    describe_time,
    warn_of_cost,
)
from tkperf.render.terminal.results import describe_device


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
