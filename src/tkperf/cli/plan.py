"""tkperf plan: estimate time, amount and cost of a run, without running anything."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import click
import msgspec
import rich.table
from rich.box import SIMPLE_HEAD

from tkperf.cli.consent import describe_own_courses, tell_cost, tell_warnings
from tkperf.cli.console import open_console, plain, tell
from tkperf.cli.outlook import describe_outlook, describe_time, given_rates, rating_of
from tkperf.cli.run_options import RunOptions
from tkperf.cli.session import request_of
from tkperf.cli.tables import describe_device
from tkperf.model.units import NOT_MEASURED, format_capacity, format_duration
from tkperf.pipeline.host_check import describe_host
from tkperf.pipeline.outlook import PURGE, Outlook, Stage, look_out
from tkperf.pipeline.rates import ASSUMED, probe_rates
from tkperf.pipeline.run_plan import RunPlan, plan_run


def look_ahead(options: RunOptions, *, probe: bool, as_json: bool) -> None:
    """Show phases, time, amount and cost of a run, without running it."""
    rating = rating_of(options)
    made = plan_run(request_of(options), look_only=True)
    rates = given_rates(options, made)
    if rates is None:
        # Reports an impossible plan before the ten seconds of reading.
        look_out(made, ASSUMED, rating)
        rates = probe_rates(made.subject) if probe else ASSUMED
    outlook = look_out(made, rates, rating)
    if as_json:
        click.echo(render_json(made, outlook))
        return
    _print(made, outlook)


def render_json(made: RunPlan, outlook: Outlook) -> str:
    """Render a plan and its outlook as JSON; times in seconds, amounts in bytes."""
    shares = outlook.shares
    document = {
        "schema": "tkperf-plan/1",
        "device": made.subject.facts.values,
        "profile": made.profile.name,
        "alterations": made.alterations,
        "shortest_s": outlook.shortest_s,
        "longest_s": outlook.longest_s,
        "least_written_bytes": outlook.least_bytes,
        "most_written_bytes": outlook.most_bytes,
        "capacity_bytes": outlook.capacity_bytes,
        "rate_bytes_per_s": outlook.rates.bytes_per_s,
        "rate_source": outlook.rates.source,
        "rated_bytes": outlook.rated_bytes,
        "least_share_of_rating": shares and shares[0],
        "most_share_of_rating": shares and shares[1],
        "stages": outlook.stages,
        "host": made.audit.plain(),
        "warnings": made.warnings,
    }
    return json.dumps(msgspec.to_builtins(document), indent=2)


def _print(made: RunPlan, outlook: Outlook) -> None:
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
