"""plan -> show -> permit: what is about to happen, the question, and the permit it yields."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack

import click

from tkperf.cli.console import complain, tell
from tkperf.cli.options import RunOptions
from tkperf.cli.output import plain
from tkperf.cli.preparation import USERS_NOT_VISIBLE, Preparation
from tkperf.cli.tables import describe_device
from tkperf.device.identity import DeviceIdentity, TargetKind
from tkperf.device.permit import ErasePermit, grant_permit, hold_target
from tkperf.errors import RefusedError
from tkperf.plan import Case, forecast
from tkperf.record import RunWarning
from tkperf.units import format_capacity, format_duration


def show_plan(options: RunOptions, preparation: Preparation) -> None:
    """What is about to happen, on stderr, before the question."""
    if options.quiet or options.progress == "json":
        tell_warnings(
            warning for warning in preparation.warnings if warning.code == USERS_NOT_VISIBLE
        )
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
    is_device = preparation.identity.kind is not TargetKind.FILE
    if preparation.write_cache != "keep" and is_device:
        lines.append(
            f"[bold]cache[/bold]    volatile write cache {preparation.write_cache} during the run"
        )
    tell(*lines)
    tell_warnings(preparation.warnings)


def tell_warnings(warnings: Iterable[RunWarning]) -> None:
    """What speaks against trusting the result, or could not be looked at, before the question."""
    tell(*(f"[yellow]warning[/yellow]  {plain(warning.text)}" for warning in warnings))


def ask_permits(
    options: RunOptions, identities: Sequence[DeviceIdentity], *, created: bool = False
) -> list[ErasePermit]:
    """Ask once whether devices may be erased, and let the safety check make the permits.

    They are held before the question, so that what is asked about is what will be erased. The
    answer has the identifier of each, with commas between.

    Args:
        created: scratch files made just now hold nothing that could be lost.

    Raises:
        RefusedError: the answer is wrong, nobody is there to ask, or the check objects.
    """
    with ExitStack() as held:
        holds = []
        for identity in identities:
            holds.append(hold_target(identity))
            held.callback(holds[-1].release)
        expected = ",".join(identity.confirm_id for identity in identities)
        given = options.yes_destroy
        if given is None:
            data = [] if created else [str(each) for hold in holds for each in hold.data]
            # Forcing may waive the question, but not where there is something to lose.
            if created or (options.force and not data):
                given = expected
            else:
                paths = ", ".join(identity.path for identity in identities)
                given = ask_for(expected, _what(identities), paths, ", ".join(data))
        answers = [word.strip() for word in given.split(",")] if len(holds) > 1 else [given]
        # Where a path confirms, the one that the user gave as DEVICE does, too.
        if answers == [options.device] and expected == identities[0].path:
            answers = [expected]
        if len(answers) != len(holds):
            raise RefusedError(
                f"'{given}' does not confirm the members: expected '{expected}'. "
                "Nothing was touched"
            )
        permits = [
            grant_permit(hold, confirmed_id=answer)
            for hold, answer in zip(holds, answers, strict=True)
        ]
        held.pop_all()
    return permits


def _what(identities: Sequence[DeviceIdentity]) -> str:
    """What people have to type, in words."""
    serial = all(identity.confirm_id != identity.path for identity in identities)
    return ("serial number" if serial else "path") + "s" * (len(identities) > 1)


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
