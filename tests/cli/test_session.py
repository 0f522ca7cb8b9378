"""Conditions around a run: enough space for the run file, and a host that does not sleep."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.cli.test_bad_input import ENV, assert_clear
from tkperf.cli.main import cli
from tkperf.cli.session import kept_awake
from tkperf.model.errors import RunFileError
from tkperf.runner.events import Event

RUN = [sys.executable, "-m", "tkperf", "ssd", "n", "sim:sata-ssd", "-ssdt", "iops"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a mounted file system of 1 MiB."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a file system")
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tkperf-test", str(folder)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("may not mount a tmpfs here")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.root
def test_a_disk_too_small_for_the_run_file_is_refused_before_the_start(small_disk: Path) -> None:
    """If the run file may not fit on the disk, the run is refused before tkperf asks for consent or creates a file. The
    error contains the free space and the space that the run file may need.
    """
    done = subprocess.run(
        [*RUN, "--output", small_disk],
        env=ENV,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert_clear(done, 6, "1.0 MB of free space", "the run file may need 33.5 MB if the run takes")
    assert list(small_disk.iterdir()) == []


INHIBITS = """#!/bin/sh
while [ "${1#--}" != "$1" ]; do echo "$1" >> "$INHIBITED"; shift; done
"$@"
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set PATH to a folder that contains only the programs that are needed to start a child process. Return this
    folder.
    """
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("setpriv", "sh", "sleep", "echo"):
        (folder / name).symlink_to(shutil.which(name) or "/bin/false")
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("INHIBITED", str(tmp_path / "inhibited"))
    return folder


def install(folder: Path, script: str) -> None:
    program = folder / "systemd-inhibit"
    program.write_text(script)
    program.chmod(0o755)


def sleepers() -> int:
    done = subprocess.run(["/usr/bin/pgrep", "-c", "-P", str(os.getpid())], capture_output=True, check=False)
    return int(done.stdout)


def test_the_host_is_kept_awake_as_long_as_the_run(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """tkperf keeps the host awake as long as the run lasts. Afterwards, the process that prevents sleep has ended."""
    monkeypatch.setattr("tkperf.cli.session.ANSWER_S", 60.0)
    install(programs, INHIBITS)
    told: list[Event] = []
    before = sleepers()
    with kept_awake("name", on_note=told.append):
        assert sleepers() == before + 1
        said = (tmp_path / "inhibited").read_text().split("\n")
        assert "--what=sleep:idle:handle-lid-switch" in said
        assert "--why=measuring name" in said
    assert sleepers() == before
    assert told == []


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (None, "there is no systemd-inhibit"),
        ("#!/bin/sh\necho 'Failed to connect to bus' >&2; exit 1\n", "Failed to connect to bus"),
        ("#!/bin/sh\necho nonsense; sleep 60\n", "does not answer"),
        ("not a program", "does not answer"),
    ],
)
def test_a_host_that_may_sleep_is_said_to(
    programs: Path, script: str | None, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If tkperf cannot keep the host awake, the run continues, and a note gives the reason."""
    monkeypatch.setattr("tkperf.cli.session.ANSWER_S", 60.0)
    if script is not None:
        install(programs, script)
    told: list[Event] = []
    with kept_awake("name", on_note=told.append):
        pass
    (note,) = told
    assert says in str(note) or script == "not a program"
    assert "from sleeping" in str(note)


@pytest.mark.parametrize("target", ["n.tkperf", "n.log", "n.tkperf-wal", "./n.tkperf-journal"])
def test_the_target_is_none_of_tkperfs_own_files(tmp_path: Path, target: str) -> None:
    """The target of a run must not have the name of the run file, the log or a file of SQLite. Otherwise tkperf would
    write its log to the target, or SQLite would delete the target.
    """
    ran = CliRunner().invoke(cli, ["ssd", "n", str(tmp_path / target), "--size", "64MiB", "--output", str(tmp_path)])
    assert isinstance(ran.exception, RunFileError), ran.output
    assert not (tmp_path / target).exists()


def test_what_a_killed_run_left_beside_its_file_is_not_taken(tmp_path: Path) -> None:
    """If a killed run left a journal without its run file, a new run with the same NAME is refused. SQLite would delete
    the journal, which contains the last steps of the killed run.
    """
    left = tmp_path / "n.tkperf-journal"
    left.write_bytes(b"the last steps")
    ran = CliRunner().invoke(cli, ["ssd", "n", "sim:sata-ssd", "--output", str(tmp_path)])
    assert isinstance(ran.exception, RunFileError), ran.output
    assert left.read_bytes() == b"the last steps"
