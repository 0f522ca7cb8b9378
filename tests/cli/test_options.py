"""TKperf's flags: spelling and meaning."""

from __future__ import annotations

import pytest

from tests.cli.test_bad_input import tkperf
from tkperf.cli.options import expand_lists

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
    """``-ssdt iops lat`` is ``-ssdt iops -ssdt lat``; a NAME that is a test's name stays one."""
    assert expand_lists(given, ("-ssdt", "--ssd-type"), TESTS) == expanded


@pytest.mark.parametrize("command", [[], ["ssd"], ["show"], ["report"], ["completion"]])
def test_every_command_explains_itself_with_examples(command: list[str]) -> None:
    """-h prints help with an example, exit code 0."""
    done = tkperf(*command, "-h")
    assert done.returncode == 0
    assert "Example" in done.stdout


@pytest.mark.parametrize(
    "flag", ["-nj", "-iod", "-rt", "-rfb", "-dsc", "-fm", "-ft", "-ssdt", "-q", "-d"]
)
def test_tkperfs_flags_are_there_each_with_a_long_form(flag: str) -> None:
    """Spelling kept, readable long form beside it."""
    (line,) = [
        line
        for line in tkperf("ssd", "-h").stdout.splitlines()
        if line.strip().startswith(f"{flag},")
    ]
    assert f"{flag}, --" in line


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(shell: str) -> None:
    """Each shell gets its script."""
    assert "_TKPERF_COMPLETE" in tkperf("completion", shell).stdout
