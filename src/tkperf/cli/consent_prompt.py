"""Show the plan of a run on the terminal, and ask for consent."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace

import click

from tkperf.analysis.estimates import RunEstimate
from tkperf.cli.run_options import RunOptions
from tkperf.cli.standard_streams import complain, in_whole_words
from tkperf.page.facts import describe_device
from tkperf.page.plan import warn_of_cost
from tkperf.pipeline.consent import Consent, Question, ask_again, confirmed_by, nobody_to_ask
from tkperf.pipeline.device_under_test import SAID_ALWAYS
from tkperf.pipeline.resume_plan import ResumePlan
from tkperf.render.terminal.console import print_facts
from tkperf.render.terminal.plans_and_profiles import print_plan_on_stderr, print_plan_warnings

WAY = "--yes-destroy"
# The number of times that tkperf repeats the question after a wrong answer. By then, a user who means another device
# has noticed the mistake.
ASKED_AGAIN = 2


def show_plan(options: RunOptions, estimate: RunEstimate) -> None:
    """Show on stderr what the run will do. tkperf asks the question afterwards."""
    if options.quiet or options.progress == "json":
        print_plan_warnings(warning for warning in estimate.warnings if warning.code in SAID_ALWAYS)
        if (cost := warn_of_cost(estimate)) is not None:
            print_facts([("warning", cost)], style="yellow")
        return
    print_plan_on_stderr(replace(estimate, asks=False))  # the next output is the question itself


def show_resumption(options: RunOptions, resumed: ResumePlan) -> None:
    """Show on stderr at which point the run will continue. tkperf asks the question afterwards."""
    plan, record = resumed.plan, resumed.record
    if not options.quiet and options.progress != "json":
        titles = {test.name: test.title for test in resumed.tests}
        missing = ", ".join(titles[name] for name in resumed.missing)
        because = record.ended_because or record.status.value
        lines = [
            ("run", f"{options.name}: {because}"),
            ("device", describe_device(plan.dut.facts.values)),
            *((("again", resumed.replayed.again),) if resumed.replayed.again else ()),
            ("tests", f"{missing or 'all have ended'}, as the run was begun with"),
            *plan.dut.lines,
        ]
        print_facts(lines)
    print_plan_warnings(resumed.warnings)


def consent_of(options: RunOptions) -> Consent:
    """Return how the user consents: in advance, with --force, or by typing an answer."""
    return Consent(confirm=options.yes_destroy, force=options.force, ask=ask_on_terminal, way=WAY)


def ask_on_terminal(question: Question) -> str:
    """Ask the user to type a confirmation. Ask no more than three times in total, and return the last answer."""
    if not sys.stdin.isatty():
        raise nobody_to_ask(question, WAY)
    asked = (
        f"ALL DATA on {question.where} will be destroyed.{question.loss}{question.why_more} Type its "
        f"{question.what} ({question.expected}) to continue"
    )
    try:
        return type_answer(asked, question.expected, lambda answer: confirmed_by(question, answer) is not None)
    except click.Abort:
        complain(f"\ntkperf: {question.where}: nothing was touched")
        raise


def type_answer(asked: str, expected: str, is_confirmed: Callable[[str], bool]) -> str:
    """Ask for a text until an answer confirms the erasure. Ask no more than three times in total, and return the last
    answer.
    """
    answer = _type_in(asked)
    for _ in range(ASKED_AGAIN):
        if is_confirmed(answer):
            break
        answer = _type_in(ask_again(expected, answer))
    return answer


def _type_in(asked: str) -> str:
    return str(click.prompt(in_whole_words(asked), err=True, default="", show_default=False)).strip()
