"""The source code, the documentation page and the help contain the same exit codes. For each code, the tests run a
command that ends with it.
"""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import tkperf as tkperf_
from tests.cli.test_bad_input import ENV, tkperf
from tkperf.cli.main import COMMANDS, cli
from tkperf.model.errors import ExitCode, TkperfError

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/tkperf"
PAGE = (ROOT / "docs/reference/exit-codes.md").read_text(encoding="utf-8")
UNMET = """
[[claim]]
test = "iops"
metric = "iops"
read_percent = 100
block_size = "4k"
at_least = 1e12
"""
TKPERF = [sys.executable, "-m", "tkperf"]
QUICK = ("--profile", "quick", "-ssdt", "iops", "-q", "--no-report")


def rows() -> dict[int, tuple[str, str]]:
    """Return the rows of the page's table. The key is the exit code, and the value contains the meaning of the code and
    the commands that return the code.
    """
    found = re.findall(r"^\| (\d+) \| ([^|]+) \| ([^|]+) \| [^|]+", PAGE, re.MULTILINE)
    return {int(code): (meaning, given) for code, meaning, given in found}


def kinds_of_errors(kind: type[TkperfError] = TkperfError) -> Iterator[type[TkperfError]]:
    for below in kind.__subclasses__():
        if below.__module__.startswith("tkperf."):  # errors that test modules define do not count
            yield below
            yield from kinds_of_errors(below)


def test_the_page_and_the_help_have_the_table_of_the_code() -> None:
    """The documented table and the help contain the exit codes of the program and their meanings. The table names only
    existing commands.
    """
    assert {code: meaning for code, (meaning, _) in rows().items()} == {code.value: code.meaning for code in ExitCode}
    for _, given in rows().values():
        assert set(re.findall(r"`(\w+)[^`]*`", given)) <= set(COMMANDS)
    said = " ".join(CliRunner().invoke(cli, ["--help"]).output.split())
    codes = ", ".join(f"{code.value} {code.meaning}" for code in ExitCode)
    assert f"Exit codes: {codes}." in said


def test_every_error_ends_with_one_of_them() -> None:
    """Each kind of error has its own exit code or the code of its parent class. No error has the code of success, and
    only ClaimsNotMetError has code 1.
    """
    found = {kind.exit_code for kind in kinds_of_errors()}
    assert found == set(ExitCode) - {ExitCode.DONE, ExitCode.DEFECT, ExitCode.READER_GONE}
    assert [kind.__name__ for kind in kinds_of_errors() if kind.exit_code == 1] == ["ClaimsNotMetError"]
    assert TkperfError.exit_code is ExitCode.DEFECT, "raised bare it would be no kind of error"


def test_nothing_else_ends_the_process() -> None:
    """Only cli/main.py and the main functions of child processes end a process. They exit only with codes from the
    table. No other module contains the number of an exit code.
    """
    exits: dict[str, list[str]] = {}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if name in ("sys.exit", "exit", "quit", "SystemExit", "os._exit", "ctx.exit", "os.abort"):
                assert isinstance(node, ast.Call)
                where = path.relative_to(SOURCE).as_posix()
                exits.setdefault(where, []).extend(map(ast.unparse, node.args))
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "exit_code":
                assert not isinstance(node.value, ast.Constant), path
    assert {where: sorted(codes) for where, codes in exits.items()} == {
        # The process of a drive in a batch ends with os._exit. It must not clean up resources that belong to its
        # parent.
        "cli/batch_drive.py": ["code"],
        "cli/main.py": ["ExitCode.READER_GONE", "exit_code"],
        "batch/drive_processes.py": ["ExitCode.DEFECT"],
        # A forked worker ends after it has sent its answer. It must not clean up resources that belong to its parent.
        "web/worker_process.py": ["ExitCode.DONE"],
    }


# ---- Each exit code, caused by a command as a user runs it


@pytest.fixture(scope="module")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("measured")
    done = tkperf("ssd", "n", "sim:sata-ssd", *QUICK, "--output", folder)
    assert done.returncode == ExitCode.DONE, done.stderr
    return folder / "n.tkperf"


def done(run_file: Path, folder: Path) -> int:
    return tkperf("show", run_file).returncode


def claims_not_met(run_file: Path, folder: Path) -> int:
    claims = folder / "claims.toml"
    claims.write_text(UNMET, encoding="utf-8")
    return tkperf("check", run_file, claims).returncode


def wrong_use(run_file: Path, folder: Path) -> int:
    return tkperf("show", run_file, "--no-such-option").returncode


def refused(run_file: Path, folder: Path) -> int:
    """Return the exit code of a run on a file with a user's data, without a terminal for the consent question."""
    target = folder / "data.img"
    target.write_bytes(b"somebody's" * 200_000)
    ended = tkperf("ssd", "n", target, *QUICK, "--output", folder)
    assert target.read_bytes() == b"somebody's" * 200_000
    return ended.returncode


def device(run_file: Path, folder: Path) -> int:
    return tkperf("doctor", folder / "nowhere").returncode


def fio(run_file: Path, folder: Path) -> int:
    """Return the exit code of a run for which fio is not installed."""
    target = folder / "scratch.img"
    argv = ("ssd", "n", target, "--size", "8MiB", *QUICK, "--output", folder)
    ended = tkperf(*argv, path=str(folder))
    assert not target.exists()
    return ended.returncode


def damaged(run_file: Path, folder: Path) -> int:
    other = folder / "other.tkperf"
    other.write_bytes(run_file.read_bytes()[:3000])
    return tkperf("show", other).returncode


def defect(run_file: Path, folder: Path) -> int:
    """Return the exit code after a defect. In this test, the function that prints results divides by zero."""
    program = (
        "import sys, tkperf.cli.ending as show; from tkperf.cli.main import main\n"
        "show.print_run = lambda path, full: 1 / 0\n"
        f"sys.argv = ['tkperf', 'show', {str(run_file)!r}]; main()"
    )
    ended = subprocess.run([sys.executable, "-c", program], env=ENV, capture_output=True, text=True, check=False)
    assert "ZeroDivisionError" in ended.stderr
    assert ended.stderr.splitlines()[-1].startswith("tkperf: this is a defect of tkperf")
    return ended.returncode


def stopped(run_file: Path, folder: Path) -> int:
    """Return the exit code after SIGINT (the signal of Ctrl-C) in a run that would take hours."""
    argv = [*TKPERF, "ssd", "long", str(folder / "scratch.img"), "--size", "64MiB", "-q"]
    argv += ["-ssdt", "iops", "--profile", "pts-e-1.1", "--output", str(folder)]
    with subprocess.Popen(argv, env=ENV, stderr=subprocess.PIPE, text=True) as running:
        until_s = time.monotonic() + 180
        try:
            while not has_begun(folder / "long.tkperf"):
                assert time.monotonic() < until_s
                time.sleep(0.05)
        finally:  # otherwise, a failed test would wait for the end of the run
            running.send_signal(signal.SIGINT)
        running.communicate(timeout=180)
    return running.returncode


def has_begun(path: Path) -> bool:
    """Return whether the first test of a run has begun. If a run is stopped before its first test, no file remains."""
    try:
        with tkperf_.open_run(path) as run_file:
            return bool(run_file.record().tests)
    except TkperfError:
        return False


def reader_gone(run_file: Path, folder: Path) -> int:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        argv = [*TKPERF, "show", str(run_file), "--json"]
        return subprocess.run(argv, env=ENV, stdout=writing, check=False).returncode
    finally:
        os.close(writing)


GIVEN: dict[ExitCode, Callable[[Path, Path], int]] = {
    ExitCode.DONE: done,
    ExitCode.CLAIMS_NOT_MET: claims_not_met,
    ExitCode.WRONG_USE: wrong_use,
    ExitCode.REFUSED: refused,
    ExitCode.DEVICE: device,
    ExitCode.FIO: fio,
    ExitCode.RUN_FILE: damaged,
    ExitCode.DEFECT: defect,
    ExitCode.STOPPED: stopped,
    ExitCode.READER_GONE: reader_gone,
}


@pytest.mark.parametrize("code", ExitCode, ids=lambda code: code.name)
def test_each_code_is_given(code: ExitCode, run_file: Path, tmp_path: Path) -> None:
    """For each exit code of the page, at least one command returns this code."""
    assert GIVEN[code](run_file, tmp_path) == code


def test_what_the_page_says_is_no_error(run_file: Path, tmp_path: Path) -> None:
    """Showing a stopped run is not an error. Claims that were not measured count as not met. An import of two files
    succeeds if at least one of them is imported.
    """
    assert stopped(run_file, tmp_path) == ExitCode.STOPPED
    cut_off = tmp_path / "long.tkperf"
    assert tkperf("show", cut_off).returncode == ExitCode.DONE
    assert tkperf("report", cut_off).returncode == ExitCode.DONE
    assert claims_not_met(cut_off, tmp_path) == ExitCode.CLAIMS_NOT_MET
    golden = ROOT / "tests/golden/tkperf-2.2-tp.xml"
    some = tkperf("import", golden, tmp_path / "none.xml", "--output", tmp_path)
    assert some.returncode == ExitCode.DONE
    assert "none.xml" in some.stderr
    assert tkperf("import", tmp_path / "none.xml").returncode == ExitCode.WRONG_USE
    used = tmp_path / "used.img"
    used.write_bytes(bytes(64 << 20))
    os.link(used, tmp_path / "another name")
    assert tkperf("plan", "ssd", "n", used, *QUICK[:2]).returncode == ExitCode.DONE
    assert tkperf("doctor", used).returncode == ExitCode.DONE
    assert tkperf("ssd", "u", used, *QUICK, "-ft", "--output", tmp_path).returncode == 3
