"""plan -> show -> permit: what is about to happen, the question, and the permit it yields."""

from __future__ import annotations

import sys

import click

from tkperf.cli.console import complain, tell
from tkperf.cli.options import RunOptions
from tkperf.cli.output import plain
from tkperf.cli.preparation import Preparation
from tkperf.cli.tables import describe_device
from tkperf.device.identity import DeviceIdentity
from tkperf.device.permit import ErasePermit, grant_permit
from tkperf.device.safety import find_data
from tkperf.errors import RefusedError
from tkperf.plan import Case, forecast
from tkperf.units import format_capacity, format_duration


def show_plan(options: RunOptions, preparation: Preparation) -> None:
    """What is about to happen, on stderr, before the question."""
    if options.quiet or options.progress == "json":
        return
    length_bytes = preparation.active_range.length_bytes
    shortest_s, longest_s = (
        sum(
            forecast(
                test.procedure(preparation.profile, length_bytes),
                (),
                case,
                active_range_bytes=length_bytes,
            ).duration_s
            for test in preparation.tests
        )
        for case in (Case.BEST, Case.WORST)
    )
    demand = preparation.profile.demand
    lines = [
        f"[bold]device[/bold]   {plain(describe_device(preparation.facts.values))}",
        f"[bold]profile[/bold]  {plain(preparation.profile.title)}, TC{demand.jobs}/QD{demand.io_depth}, "
        f"active range {format_capacity(length_bytes)}",
        f"[bold]tests[/bold]    {', '.join(test.title for test in preparation.tests)}: "
        f"{format_duration(shortest_s)} to {format_duration(longest_s)}, without purging",
    ]
    if preparation.purge is not None:
        lines.append(f"[bold]purge[/bold]    {plain(preparation.purge.title)}")
    elif options.no_purge:
        lines.append("[bold]purge[/bold]    none (--no-purge)")
    if preparation.write_cache != "keep":
        lines.append(
            f"[bold]cache[/bold]    volatile write cache {preparation.write_cache} during the run"
        )
    lines += [f"[yellow]warning[/yellow]  {plain(warning)}" for warning in preparation.warnings]
    tell(*lines)


def ask_permit(
    options: RunOptions, identity: DeviceIdentity, *, confirmed_id: str | None, created: bool
) -> ErasePermit:
    """Ask whether a device may be erased, and let the safety check make the permit.

    Args:
        confirmed_id: what the user confirmed beforehand.
        created: a scratch file made just now holds nothing that could be lost.

    Raises:
        RefusedError: the answer is wrong, nobody is there to ask, or the check objects.
    """
    if confirmed_id is not None:
        return grant_permit(identity, confirmed_id=confirmed_id)
    data = "" if created else ", ".join(str(each) for each in find_data(identity))
    # Forcing may waive the question, but not where there is something to lose.
    if created or (options.force and not data):
        return grant_permit(identity, confirmed_id=identity.confirm_id)
    what = "path" if identity.confirm_id == identity.path else "serial number"
    answer = ask_for(identity.confirm_id, what, identity.path, data)
    return grant_permit(identity, confirmed_id=answer)


def ask_for(expected: str, what: str, device: str, data: str) -> str:
    """Ask the user to type a confirmation, and return what was typed.

    Args:
        expected: shown as what to type; whether it was is for the safety check to say.
        what: what that is, e.g. ``serial number``.
        data: what was recognised on the device, for people; empty if nothing.

    Raises:
        RefusedError: nobody is there to ask.
    """
    holds = f" It holds: {data}." if data else ""
    if not sys.stdin.isatty():
        raise RefusedError(
            f"all data on {device} will be destroyed and nobody is there to ask.{holds} "
            f"Confirm with --yes-destroy {expected}"
        )
    try:
        answer = click.prompt(
            f"ALL DATA on {device} will be destroyed.{holds} Type its {what} ({expected}) to go on",
            err=True,
            default="",
            show_default=False,
        )
    except click.Abort:
        complain(f"\ntkperf: {device}: nothing was touched")
        raise
    return str(answer).strip()
