"""Help, completion and incorrect calls load none of the modules that are needed only for the work of a command. tkperf
therefore answers immediately.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tkperf.cli.main import COMMANDS

# The test checks which modules were loaded, and not how long a call takes, because a time would depend on the machine.
# bench/start_up.py measures the times.
WATCHED = """
import sys
before = set(sys.modules)
import json, os
from tkperf.cli.main import main
ours = []
for words in json.loads(sys.argv[1]):
    sys.argv = ["tkperf", *words]
    try:
        main()
    except SystemExit as ended:
        ours.append(ended.code)
new = {name for name in sys.modules if name not in before}
print(json.dumps([ours, sorted(new)]), file=sys.__stderr__)
"""
# These modules of Python's library take milliseconds to load. The list omits modules that click loads, or that Python
# loads before tkperf.
HEAVY = {
    "asyncio",
    "concurrent",
    "difflib",
    "email",
    "fractions",
    "http",
    "multiprocessing",
    "smtplib",
    "socket",
    "sqlite3",
    "ssl",
    "subprocess",
    "tomllib",
    "unittest",
    "xml",
    "zoneinfo",
}
# Modules of tkperf that help and completion need.
LIGHT = {
    "tkperf",
    "tkperf.model",
    "tkperf.model.built_version",  # only a wheel or an editable installation contains this module
    "tkperf.model.version",
    "tkperf.model.choices",
    "tkperf.model.errors",
    "tkperf.model.input_files",
    "tkperf.model.units",
    "tkperf.model.workload",
    "tkperf.cli",
    "tkperf.cli.calling",
    "tkperf.cli.kinds",
    "tkperf.cli.main",
    "tkperf.cli.suite_options",
    "tkperf.cli.standard_streams",
}


def loaded_by(calls: list[list[str]], **environment: str) -> tuple[list[int], set[str]]:
    """Return the exit code of each call, and the names of all modules that at least one of the calls loaded."""
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, json.dumps(calls)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    codes, names = json.loads(done.stderr.splitlines()[-1])
    return codes, set(names)


def assert_light(names: set[str]) -> None:
    ours = {name for name in names if name.partition(".")[0] == "tkperf"}
    assert {name for name in ours if not name.startswith("tkperf.cli.commands")} <= LIGHT
    first = {name.partition(".")[0] for name in names - ours}
    others = {name for name in first if name not in sys.stdlib_module_names}
    assert others <= {"click"}
    assert not first & HEAVY


def test_the_list_of_commands_loads_none_of_them() -> None:
    """tkperf --help and tkperf --version load none of the modules of the commands."""
    codes, names = loaded_by([["--help"], ["--version"]])
    assert codes == [0, 0]
    assert_light(names)
    assert not {name for name in names if name.startswith("tkperf.cli.commands")}


def test_the_help_of_no_command_loads_what_it_works_with() -> None:
    """The help of every command, and an incorrect call, load no module that is needed only for the work of the
    command.
    """
    calls = [[name, "--help"] for name in COMMANDS]
    calls += [["batch", "n", "ssd", "--help"], ["batch", "n", "x.toml", "--help"]]
    calls += [["plan", "batch", "n", "ssd", "--help"], ["plan", "ssd", "--help"], ["workload", "from-fio", "--help"]]
    codes, names = loaded_by([*calls, ["ssd", "--test"], ["show"]])
    assert codes == [0] * len(calls) + [2, 2]
    assert {f"tkperf.cli.commands.{module}" for module, _ in COMMANDS.values()} <= names
    assert_light(names - {"difflib"})


@pytest.mark.parametrize(
    "line",
    [
        "tkperf s",
        "tkperf ssd n sim:",
        "tkperf ssd n x --test iops,",
        "tkperf ssd n x --profile ",
        "tkperf ssd n x --purge ",
        "tkperf show ",
        "tkperf resume run.tkperf --te",
        "tkperf plan hdd n x -hddt ",
        "tkperf batch n x.toml --par",
        "tkperf batch n ssd x y -ssdt ",
    ],
)
def test_a_tab_loads_nothing_but_names(tmp_path: Path, line: str) -> None:
    """Completion loads only light modules, regardless of the word that is completed."""
    codes, names = loaded_by([[]], COMP_LINE=line, _TKPERF_COMPLETE="bash_complete")
    assert codes == [0]
    assert_light(names)


def test_what_is_loaded_is_seen() -> None:
    """The check that the other tests use detects heavy modules. The check fails for a command that does its work,
    because such a command loads more than the light modules.
    """
    _, names = loaded_by([["profiles", "--json"]])
    assert "msgspec" in names
    with pytest.raises(AssertionError):
        assert_light(names)
