"""Processes that tkperf starts: external programs, and modules of tkperf itself."""

from __future__ import annotations

import locale
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conftest import until
from tkperf.model.errors import EngineError
from tkperf.system import process
from tkperf.system.process import run_command, start_module


def test_a_module_of_ours_loads_nothing_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that runs a module of tkperf loads no file from the current folder. Any user may have created a json.py
    there, and tkperf may run as root.
    """
    (tmp_path / "json.py").write_text("open('strangers file was run', 'w')\n")
    monkeypatch.chdir(tmp_path)
    process = start_module("json.tool")
    process.communicate(b"{}", timeout=60)
    assert process.returncode == 0
    assert not (tmp_path / "strangers file was run").exists()


def test_a_module_of_ours_does_not_outlive_us() -> None:
    """A process that runs a module of tkperf ends when tkperf is killed."""
    program = (
        "import time; from tkperf.system.process import start_module; process = start_module('json.tool');"
        "print(process.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as ours:
        assert ours.stdout is not None
        pid = int(ours.stdout.readline())
        # At first, the new process is a fork of this process, and then it is setpriv. Wait until the new process is
        # neither of them.
        command = Path(f"/proc/{pid}/cmdline")
        until(lambda: command.read_bytes().split(b"\0")[1:4] == [b"-P", b"-m", b"json.tool"])
        os.kill(pid, signal.SIGSTOP)
        ours.kill()
    try:
        until(lambda: not _is_alive(pid))
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("name", ["LC_ALL", "LANG", "LC_NUMERIC", "LANGUAGE"])
def test_programs_run_in_one_locale(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All programs run in one locale. In the locale de_DE, nvme-cli 2.3 prints 2433328 as 2.433.328, json-c prints a
    decimal comma, and wipefs prints German words.
    """
    monkeypatch.setenv(name, "de_DE.UTF-8")
    printed = run_command(["env"], timeout_s=60).stdout.splitlines()
    assert "LC_ALL=C.UTF-8" in printed
    assert not any(line.startswith("LANGUAGE=") for line in printed)
    monkeypatch.setattr(process, "_fixed_locale", lambda: "C")
    assert "LC_ALL=C" in run_command(["env"], timeout_s=60).stdout.splitlines()


def test_a_host_without_c_utf_8_has_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a host without C.UTF-8, such as an old distribution, programs run in the C locale. The locale of tkperf itself
    does not change.
    """
    before = locale.setlocale(locale.LC_ALL)
    assert process._fixed_locale.__wrapped__() == "C.UTF-8"
    assert locale.setlocale(locale.LC_ALL) == before
    real = locale.setlocale

    def without(category: int, name: str | None = None) -> str:
        if name == "C.UTF-8":
            raise locale.Error("unsupported locale setting")
        return real(category, name)

    monkeypatch.setattr(locale, "setlocale", without)
    assert process._fixed_locale.__wrapped__() == "C"


def test_a_module_of_ours_keeps_the_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that runs a module of tkperf keeps the locale of tkperf, so that it reads file names in the same
    manner.
    """
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setenv("TKPERF_SMTP_PASSWORD", "secret")
    environment = process._own_environment()
    assert environment["LC_ALL"] == "C"
    assert "TKPERF_SMTP_PASSWORD" not in environment


def test_a_program_that_prints_without_end_fills_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that prints without end does not fill the memory, because only the beginning of each stream is kept.
    All other output is read and dropped, so that the program can end.
    """
    monkeypatch.setattr(process, "KEPT_OUTPUT_BYTES", 1000)
    done = run_command(
        ["sh", "-c", "head -c 5000000 /dev/zero | tr '\\0' a; head -c 5000000 /dev/zero >&2"], timeout_s=60
    )
    assert (done.exit_status, done.stdout, len(done.stderr)) == (0, "a" * 1000, 1000)


def test_a_program_whose_child_goes_on_has_ended() -> None:
    """A program counts as ended when it exits, even if one of its child processes still holds its pipes. The program's
    own output is returned.
    """
    done = run_command(["sh", "-c", "echo said; sleep 20 & exit 3"], timeout_s=60)
    assert (done.exit_status, done.stdout) == (3, "said\n")


def test_a_program_that_does_not_end_is_ended() -> None:
    """A program that does not end in time is killed, even if it prints continuously."""
    with pytest.raises(EngineError, match="did not end within 1 s"):
        run_command(["sh", "-c", "while :; do echo x; done"], timeout_s=1)


def test_a_program_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    """If a program does not end, its child processes are killed as well. Otherwise a smartctl that a script started
    could continue to use the drive.
    """
    number = tmp_path / "pid"
    number.touch()
    for limit_s in (1, 10, 60):  # on a busy host, the shell may not start its child within the first limit
        with pytest.raises(EngineError, match=f"did not end within {limit_s} s"):
            run_command(["sh", "-c", f"sleep 600 & echo $! > {number}; wait"], timeout_s=limit_s)
        if number.read_text():
            break
    until(lambda: not _is_alive(int(number.read_text())))


def _is_alive(pid: int) -> bool:
    """Return whether the process is still running. A zombie, which has ended but was not waited for, does not count as
    running.
    """
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _make_fio(folder: Path, version: str) -> Path:
    folder.mkdir()
    program = folder / "fio"
    program.write_text(f"#!/bin/sh\necho {version}\n")
    program.chmod(0o755)
    return program


def test_a_variable_names_the_fio_to_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable TKPERF_FIO selects the fio. This variable has priority over PATH, which sudo replaces.

    The variable does not affect programs other than fio.
    """
    on_path = _make_fio(tmp_path / "path", "fio-3.33")
    named = _make_fio(tmp_path / "named", "fio-3.99")
    monkeypatch.setenv("PATH", f"{on_path.parent}{os.pathsep}{os.environ['PATH']}")
    assert run_command(["fio", "--version"], timeout_s=60).stdout == "fio-3.33\n"
    monkeypatch.setenv("TKPERF_FIO", str(named))
    assert run_command(["fio", "--version"], timeout_s=60).stdout == "fio-3.99\n"
    assert process.find_program("sh") != str(named)


@pytest.mark.parametrize("named", ["fio", "./fio", "/nowhere/fio", "/etc/passwd", "/etc"])
def test_a_variable_that_names_no_program_is_an_error(monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    """If TKPERF_FIO does not name a program, tkperf fails and does not use the fio in PATH, because the user requested
    another version.
    """
    monkeypatch.setenv("TKPERF_FIO", named)
    with pytest.raises(EngineError, match=r"TKPERF_FIO is '.*absolute path"):
        run_command(["fio", "--version"], timeout_s=60)


@pytest.mark.parametrize(("user", "trusted"), [(os.geteuid(), True), (4711, False)])
def test_only_root_chooses_the_fio_of_on_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int, trusted: bool
) -> None:
    """For ``on-host``, only root can select the fio, through PATH. No user can select it through TKPERF_FIO. A program
    of a user who called sudo is never started as root.
    """
    program = _make_fio(tmp_path / "own", "fio-3.99; touch ${0}-was-run")
    monkeypatch.setenv("SUDO_UID", str(user))
    monkeypatch.setenv("TKPERF_FIO", str(_make_fio(tmp_path / "named", "fio-3.88; touch ${0}-was-run")))
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    subprocess.run(
        [sys.executable, "-m", "tkperf", "on-host"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=300,
    )
    assert (tmp_path / "own" / "fio-was-run").exists() == trusted
    assert not (tmp_path / "named" / "fio-was-run").exists()
