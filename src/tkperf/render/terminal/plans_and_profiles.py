"""Print plans, workloads and profiles in the terminal. The output contains the phases of a run, the time, the amount
written, the used endurance, and explanations of keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from tkperf.analysis.estimates import BatchEstimate, RunEstimate
from tkperf.model.choices import DEFAULT_PROFILES, built_in_profiles
from tkperf.model.record import RunNote
from tkperf.page.batch.batch_plan_page import build_batch_plan_page
from tkperf.page.page import ReportView
from tkperf.page.plan import build_plan_page, describe_plan_verdict
from tkperf.pipeline.fitted_profile import find_needs
from tkperf.procedures import (
    SUITES,
    Circumstances,
    Profile,
    Test,
    load_profile,
    own_tests,
    read_profile_text,
    with_workloads,
)
from tkperf.procedures.own_workloads.workload_file import TABLES_BY_PLACE
from tkperf.procedures.profiles import explain_keys, show_value
from tkperf.render.terminal.console import open_console, plain, print_facts, print_lines, print_verdict
from tkperf.render.terminal.page_text import print_page

_CLOCK = "%a %d %b %Y %H:%M"


def print_plan(estimate: RunEstimate) -> None:
    """Print the page of a plan. The page contains the verdict, the time and amount of tests and phases, and the
    conditions.
    """
    _print_page(_build(estimate))


def print_batch_plan(estimate: BatchEstimate) -> None:
    """Print the page with the plan of a batch. The page contains the verdict, a row for each drive, the links that
    drives share, and the conditions.
    """
    is_timed = not all(one.simulated for one in estimate.estimates)
    ends = _describe_end(estimate.bounds_s) if is_timed else ""
    _print_page(build_batch_plan_page(estimate, ends))


def _print_page(page: ReportView) -> None:
    print_page(page, open_console(), titled=False)
    print_lines("nothing was run, written or asked")


def print_plan_on_stderr(estimate: RunEstimate) -> None:
    """Print the verdict and the conditions of a plan on stderr, before tkperf asks for consent.

    If no program reads stderr any more, the run still continues.
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
    """Print two lists on stderr before tkperf asks for consent: the reasons to distrust the result, and the checks that
    were not possible.
    """
    print_facts((("warning", warning.text) for warning in warnings), style="yellow")


def print_workload(file: Path, profile: str, as_json: bool) -> None:
    """Print the steps that the test of a workload file would run."""
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


def list_profiles(*, as_json: bool) -> None:
    """Print a list of the built-in profiles with their tests. For each profile, the list names the commands that use
    this profile by default.
    """
    shipped = [load_profile(name) for name in built_in_profiles()]
    if as_json:
        listed = [
            {
                "name": profile.name,
                "title": profile.title,
                "tests": _names_of_tests(profile),
                "default_of": _default_of(profile),
            }
            for profile in shipped
        ]
        click.echo(json.dumps(listed, indent=2))
        return
    table = Table(box=SIMPLE_HEAD, show_edge=False)
    for column in ("profile", "title", "tests", "default of tkperf"):
        table.add_column(column, overflow="fold")
    for profile in shipped:
        tests = _names_of_tests(profile)
        tests_text = "; ".join(f"{suite}: {', '.join(names)}" for suite, names in tests.items())
        table.add_row(profile.name, plain(profile.title), tests_text, ", ".join(_default_of(profile)))
    open_console().print(table)


def print_profile_text(name: str) -> None:
    """Print the TOML file of a profile unchanged."""
    click.echo(read_profile_text(name), nl=False)


def explain_profile(name: str, *, as_json: bool) -> None:
    """Print an explanation of one profile, key by key, with the steps of each of its tests."""
    profile = load_profile(name)
    needs = find_needs(profile)
    if as_json:
        document = {
            "profile": profile.as_plain_data(),
            "keys": {
                key: {explained.name: explained.meaning for explained in explain_keys(type(table))}
                for key, table in profile.tables.items()
            },
            "tests": {
                suite: {test.name: _course(test, profile) for test in tests} for suite, tests in _tests(profile).items()
            },
            "needs": needs,
        }
        click.echo(json.dumps(document, indent=2))
        return
    console = open_console()
    console.print(f"[bold]{plain(profile.name)}[/bold]  {plain(profile.title)}", highlight=False)
    for line in (profile.notice, needs):
        if line:
            console.print(plain(line), style="yellow", highlight=False)
    _print_keys(profile, console)
    for suite, tests in _tests(profile).items():
        for test in tests:
            option = "" if test.by_default else f", with --test {test.name}"
            console.print(f"\n[bold]tkperf {suite}: {test.name}[/bold], {plain(test.title)}{option}", highlight=False)
            for line in _course(test, profile):
                console.print(f"  {plain(line)}", highlight=False)


def _print_keys(profile: Profile, console: Console) -> None:
    data = profile.as_plain_data()
    for key, table in profile.tables.items():
        console.print(f"\n[bold]\\[{key}][/bold] {plain(table.source)}", highlight=False)
        drawn = Table(box=SIMPLE_HEAD, show_edge=False)
        # The limit of 40 characters applies only to the column of values. A long list of values is therefore broken
        # into lines, but the text that explains the list is not broken.
        for column, widest in (("key", None), ("value", 40), ("meaning", None)):
            drawn.add_column(column, overflow="fold", max_width=widest)
        values = data[key]
        assert isinstance(values, dict)
        for explained in explain_keys(type(table)):
            if explained.name != "source":
                value = show_value(values[explained.name]) if explained.name in values else "-"
                drawn.add_row(explained.name, plain(value), plain(explained.meaning))
        console.print(drawn)


def _tests(profile: Profile) -> dict[str, list[Test]]:
    """Return the tests that a profile defines for each suite. The tests of a RAID set are those of an SSD."""
    by_suite: dict[str, list[Test]] = {}
    for suite, tests in SUITES.items():
        defined = [test for test in tests.values() if test.is_in(profile)]
        if defined and defined not in by_suite.values():
            by_suite[suite] = defined
    return by_suite


def _names_of_tests(profile: Profile) -> dict[str, list[str]]:
    return {suite: [test.name for test in tests] for suite, tests in _tests(profile).items()}


def _default_of(profile: Profile) -> list[str]:
    return [suite for suite, name in DEFAULT_PROFILES.items() if name == profile.name]


def _course(test: Test, profile: Profile) -> list[str]:
    return list(test.describe(profile, Circumstances()))
