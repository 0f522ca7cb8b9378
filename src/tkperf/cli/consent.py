"""Show the plan of a run on the terminal, and ask there for consent."""

from __future__ import annotations

import sys

import click

from tkperf.cli.run_options import RunOptions
from tkperf.cli.streams import complain
from tkperf.device.identity import TargetKind
from tkperf.model.units import format_capacity
from tkperf.pipeline.consent import Consent, Question, confirmed_by, nobody_to_ask
from tkperf.pipeline.host_check import describe_host
from tkperf.pipeline.outlook import Outlook
from tkperf.pipeline.resume import ResumePlan
from tkperf.pipeline.run_plan import RunPlan
from tkperf.pipeline.subject import SAID_ALWAYS
from tkperf.render.terminal.console import plain, tell
from tkperf.render.terminal.plan import (
    describe_outlook,
    describe_own_courses,
    describe_time,
    tell_cost,
    tell_warnings,
)
from tkperf.render.terminal.results import describe_device

WAY = "--yes-destroy"
# Repetitions of the question: a user who means another device notices it by then.
ASKED_AGAIN = 2


def show_plan(options: RunOptions, plan: RunPlan, outlook: Outlook) -> None:
    """Show on stderr what the run will do, before the question."""
    if options.quiet or options.progress == "json":
        tell_warnings(warning for warning in plan.warnings if warning.code in SAID_ALWAYS)
        tell_cost(outlook)
        return
    demand = plan.profile.demand
    at = "TC and QD found first" if demand.searched else f"TC{demand.jobs}/QD{demand.io_depth}"
    facts = plan.subject.facts.values
    raid = facts.get("raid")
    lines = [
        ("set", f"{plan.request.device}: {raid}") if raid else ("device", describe_device(facts)),
        (
            "profile",
            f"{plan.profile.title}, {at}, active range "
            f"{'at least ' if raid else ''}{format_capacity(plan.active_range.length_bytes)}{_filled(plan)}",
        ),
        *(("choice", choice) for choice in plan.changes.choices),
        *(("altered", alteration) for alteration in plan.alterations),
        (
            "tests",
            f"{', '.join(test.test.title for test in plan.tests)}: {describe_time(outlook)}",
        ),
        *describe_own_courses(plan),
        *describe_outlook(outlook),
        *plan.subject.lines,
    ]
    cache = plan.profile.write_cache.setting
    if cache != "keep" and plan.subject.identity.kind is not TargetKind.FILE and not raid:
        lines.append(("cache", f"volatile write cache {cache} during the run"))
    host = describe_host(plan.audit, plan.request.device)
    if host is not None:
        lines.append(("host", host))
    tell(*(f"[bold]{label:<8}[/bold] {plain(text)}" for label, text in lines))
    tell_warnings(plan.warnings)
    tell_cost(outlook)


def show_resumption(options: RunOptions, resumed: ResumePlan) -> None:
    """Show on stderr where the run will go on, before the question."""
    plan, record = resumed.plan, resumed.record
    if not options.quiet and options.progress != "json":
        titles = {test.name: test.title for test in resumed.tests}
        missing = ", ".join(titles[name] for name in resumed.missing)
        because = record.ended_because or record.status.value
        lines = [
            ("run", f"{options.name}: {because}"),
            ("device", describe_device(plan.subject.facts.values)),
            *((("again", resumed.replayed.again),) if resumed.replayed.again else ()),
            ("tests", f"{missing or 'all have ended'}, as the run was begun with"),
            *plan.subject.lines,
        ]
        tell(*(f"[bold]{label:<8}[/bold] {plain(text)}" for label, text in lines))
    tell_warnings(resumed.warnings)


def _filled(plan: RunPlan) -> str:
    """Return the preconditioned range if it is not the tested one, as users do not expect that."""
    table = plan.profile.preconditioning
    return "" if table.length is None else f"; preconditioning writes {table.range_text}"


def consent_of(options: RunOptions) -> Consent:
    """Return the consent of the command line's user: given beforehand, by force, or by typing."""
    return Consent(confirm=options.yes_destroy, force=options.force, ask=ask_on_terminal, way=WAY)


def ask_on_terminal(question: Question) -> str:
    """Ask the user to type a confirmation, up to three times, and return the last answer.

    Raises:
        RefusedError: stdin is no terminal, so nobody can answer.
    """
    if not sys.stdin.isatty():
        raise nobody_to_ask(question, WAY)
    asked = (
        f"ALL DATA on {question.where} will be destroyed.{question.loss} Type its "
        f"{question.what} ({question.expected}) to go on"
    )
    answer = _ask(question, asked)
    for _ in range(ASKED_AGAIN):
        if confirmed_by(question, answer) is not None:
            break
        given = f"'{answer[:40]}' does not confirm it" if answer else "nothing was typed"
        answer = _ask(question, f"{given}. Type {question.expected} to go on, Ctrl-C to leave it")
    return answer


def _ask(question: Question, asked: str) -> str:
    try:
        return str(click.prompt(asked, err=True, default="", show_default=False)).strip()
    except click.Abort:
        complain(f"\ntkperf: {question.where}: nothing was touched")
        raise
