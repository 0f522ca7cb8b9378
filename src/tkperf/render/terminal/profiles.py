"""tkperf profiles: list the specifications, or explain one key by key."""

from __future__ import annotations

import json

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from tkperf.model.choices import DEFAULT_PROFILES, built_in_profiles
from tkperf.pipeline.fitted_profile import find_needs
from tkperf.procedures import SUITES, Circumstances, Profile, Test, load_profile
from tkperf.procedures.profiles import explain_keys, show_value
from tkperf.render.terminal.console import open_console, plain


def list_profiles(*, as_json: bool) -> None:
    """List the built-in profiles with their tests, and the commands that use them by default."""
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


def explain_profile(name: str, *, as_json: bool) -> None:
    """Explain one profile key by key, and the steps of each of its tests."""
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
        # Breaks a list of cells rather than the words that explain the list.
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
    """Return the tests that a profile defines for each suite. A RAID set has the tests of an SSD."""
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
