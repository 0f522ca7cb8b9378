"""The flags of the earlier TKperf keep their spelling and their meaning."""

from __future__ import annotations

import click
import pytest

from tests.cli.test_bad_input import tkperf
from tkperf.cli.commands.suites import ssd
from tkperf.cli.main import cli
from tkperf.cli.suite_options import expand_lists
from tkperf.procedures import SUITES, choose_tests, load_profile

TESTS = ("iops", "lat", "tp", "writesat")


@pytest.mark.parametrize(
    ("given", "expanded"),
    [
        (["n", "d", "-ssdt", "iops", "lat"], ["n", "d", "-ssdt", "iops", "-ssdt", "lat"]),
        (["-ssdt", "tp", "n", "d"], ["-ssdt", "tp", "n", "d"]),
        (["-ssdt", "tp", "lat", "-q"], ["-ssdt", "tp", "-ssdt", "lat", "-q"]),
        (["-ssdt", "tp", "-ssdt", "lat"], ["-ssdt", "tp", "-ssdt", "lat"]),
        (["iops", "d", "-nj", "4"], ["iops", "d", "-nj", "4"]),
    ],
)
def test_several_tests_may_follow_one_flag(given: list[str], expanded: list[str]) -> None:
    """``-ssdt iops lat`` means ``-ssdt iops -ssdt lat``. A NAME that is also the name of a test remains the NAME."""
    assert expand_lists(given, ("-ssdt", "--ssd-type"), TESTS) == expanded


@pytest.mark.parametrize("suite", SUITES)
def test_the_help_names_every_test_of_the_suite(suite: str) -> None:
    """The help lists the tests of the suite from the registry: first the tests that run by default, then the other
    tests.
    """
    # The help may break a line after a hyphen in the name of a test.
    said = " ".join(tkperf(suite, "-h").stdout.split()).replace("- ", "-")
    names = [name for name, test in SUITES[suite].items() if test.by_default]
    others = [name for name, test in SUITES[suite].items() if not test.by_default]
    also = f"; also {', '.join(others)}" if others else ""
    assert f"Tests to run: {', '.join(names)} by default{also}. The word all means every test of the profile" in said


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        ((), ("iops", "lat", "tp", "writesat")),
        (("--test", "lat"), ("lat",)),
        (("--test", "tp,iops"), ("iops", "tp")),
        (("--test", "tp", "--test", "iops"), ("iops", "tp")),
        (("--test", "tp", "iops"), ("iops", "tp")),
        (("-ssdt", "tp, lat"), ("lat", "tp")),
        (("--ssd-type", "all"), ("iops", "lat", "tp", "writesat")),
        (("--test", "lat,all"), ("iops", "lat", "tp", "writesat")),
    ],
)
def test_tests_are_chosen_by_name(words: tuple[str, ...], chosen: tuple[str, ...]) -> None:
    """The user can choose tests with one option or several options, with or without commas. Each chosen test runs once,
    and the tests run in the order of the suite.
    """
    parent = click.Context(cli, **cli.context_settings)
    given = ["n", "sim:sata-ssd", "--profile", "quick", *words]
    with ssd.make_context("ssd", given, parent) as context:
        tests = context.params["tests"]
    found = choose_tests(load_profile("quick"), "ssd", tests)
    default = [name for name, test in SUITES["ssd"].items() if not test.by_default]
    assert [test.name for test in found if test.name not in default] == list(chosen)


@pytest.mark.parametrize("suite", SUITES)
def test_a_typo_in_a_test_names_the_closest_one(suite: str) -> None:
    """A typing error in a list of tests is refused with exit code 2 in each suite. The error proposes the closest name,
    and tkperf accesses no device.
    """
    config = ["-c", "none.json"] if suite == "raid" else []
    done = tkperf(suite, "n", "/dev/none", *config, "--test", "iops,ipos")
    assert done.returncode == 2
    line, *_ = done.stderr.splitlines()
    assert line.startswith(f"tkperf: test 'ipos': choose from {', '.join(SUITES[suite])}, ")
    assert line.endswith("; did you mean iops?")


@pytest.mark.parametrize(
    ("begun", "offered"), [("w", ["writesat"]), ("lat,w", ["lat,writesat"]), ("al", ["all"]), ("no-such", [])]
)
def test_completion_offers_the_suites_tests(begun: str, offered: list[str]) -> None:
    """Shell completion offers the tests of the suite, even after a comma."""
    (option,) = (each for each in ssd.params if each.name == "tests")
    found = option.shell_complete(click.Context(ssd, **cli.context_settings), begun)
    assert [item.value for item in found if item.type == "plain"] == offered


def test_completion_offers_profiles() -> None:
    """Completion offers the shipped profiles by name. For a path, tkperf lets the shell complete files in a folder."""
    (option,) = (each for each in ssd.params if each.name == "profile")
    context = click.Context(ssd, **cli.context_settings)
    assert [item.value for item in option.shell_complete(context, "pts-2")] == ["pts-2.0", "pts-2.0-client"]
    assert [item.type for item in option.shell_complete(context, "./m")] == ["dir"]


@pytest.mark.parametrize(
    "command", [[], ["ssd"], ["show"], ["report"], ["profiles"], ["profiles", "show"], ["completion"]]
)
def test_every_command_explains_itself_with_examples(command: list[str]) -> None:
    """With ``-h``, every command prints its description and an example, and exits with 0."""
    done = tkperf(*command, "-h")
    assert done.returncode == 0
    assert "Example" in done.stdout


@pytest.mark.parametrize("flag", ["-nj", "-iod", "-rt", "-rfb", "-dsc", "-fm", "-ft", "-ssdt", "-q", "-d"])
def test_tkperfs_flags_are_there_each_with_a_long_form(flag: str) -> None:
    """The flags of TKperf 2.2 are accepted with their old spelling, and each flag has a readable long form."""
    (line,) = [line for line in tkperf("ssd", "-h").stdout.splitlines() if line.strip().startswith(f"{flag},")]
    assert f"{flag}, --" in line
