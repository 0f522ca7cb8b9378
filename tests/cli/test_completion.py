"""When the user presses Tab, the shell completes tests, profiles, presets and run files. If an argument requires one
kind of file, the shell offers only this kind.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from tests.cli.test_bad_input import ENV, tkperf
from tkperf.cli.main import COMMANDS
from tkperf.model import choices
from tkperf.model.choices import ALL_TESTS, PRESETS, built_in_profiles

SSD = (*choices.tests_of("ssd"), ALL_TESTS)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder with run files, profiles and other files, and return the folder."""
    for name in ("a.tkperf", "b.tkperf", "a.log", "mine.toml", "raid.json", ".hidden.tkperf", "a b.tkperf"):
        (tmp_path / name).write_text("")
    (tmp_path / "results").mkdir()
    (tmp_path / "results/c.tkperf").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def offered(line: str) -> list[str]:
    """Return the kinds and values that tkperf sends to bash. ``line`` is the part of the command line before the
    cursor.
    """
    done = subprocess.run(
        [sys.executable, "-m", "tkperf"],
        env={**ENV, "COMP_LINE": line, "_TKPERF_COMPLETE": "bash_complete"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    return [line for line in done.stdout.split("\n") if line]


def plain(*values: str) -> list[str]:
    return [f"plain,{value}" for value in values]


def paths(*values: str) -> list[str]:
    return [f"path,{value}" for value in values]


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("tkperf ", plain(*COMMANDS)),
        ("tkperf sh", plain("show")),
        ("tkperf plan h", plain("hdd")),
        ("tkperf plan batch n mi", paths("mine.toml")),
        ("tkperf batch n ", [*plain("ssd", "hdd"), *paths("mine.toml")]),
        ("tkperf batch n mi", paths("mine.toml")),
        ("tkperf batch n mine.toml --paral", plain("--parallel")),
        ("tkperf batch n ssd sim:hdd sim:s", plain("sim:sata-ssd", "sim:spikes-13min")),
        ("tkperf batch n ssd x y -ssdt iops l", plain("lat")),
        ("tkperf ssd n sim:s", plain("sim:sata-ssd", "sim:spikes-13min")),
        ("tkperf ssd n s", plain(*(f"sim:{preset}" for preset in PRESETS))),
        ("tkperf ssd n x --test la", plain("lat")),
        ("tkperf ssd n x -ssdt iops,la", plain("iops,lat")),
        ("tkperf ssd n x --test mi", paths("mine.toml")),
        ("tkperf ssd n x -ssdt iops l", plain("lat")),
        ("tkperf ssd n x -ssdt iops lat ", plain(*(name for name in SSD if name not in ("iops", "lat")))),
        ("tkperf ssd n x -ssdt iops,lat,w", plain("iops,lat,writesat")),
        ("tkperf ssd n x -ssdt iops,i", plain("iops,interference")),
        ("tkperf ssd n x -ssdt iops mi", paths("mine.toml")),
        ("tkperf ssd n x -ssdt iops --engine l", plain("libaio")),
        ("tkperf ssd n x --profile ", plain(*built_in_profiles())),
        ("tkperf ssd n x --profile=qu", plain("quick")),
        ("tkperf ssd n x --profile mi", paths("mine.toml")),
        ("tkperf profiles show pts-c", plain("pts-c-1.2")),
        ("tkperf ssd n x --engine ", plain("io_uring", "libaio")),
        ("tkperf ssd n x --purge disc", plain("discard")),
        ("tkperf ssd n x --yes", plain("--yes-destroy")),
        ("tkperf raid n /dev/md0 -c ", paths("raid.json")),
        ("tkperf show ", paths("a b.tkperf", "a.tkperf", "b.tkperf")),
        ("tkperf show b", paths("b.tkperf")),
        ("tkperf show .", paths(".hidden.tkperf")),
        ("tkperf compare a.tkperf b", paths("b.tkperf")),
        ("tkperf show results/", paths("results/c.tkperf")),
        ("tkperf show res", ["dir,res"]),
        ("tkperf show a.l", ["dir,a.l"]),
        ("tkperf check a", paths("a b.tkperf", "a.tkperf")),
        ("tkperf check a.tkperf ", paths("a b.tkperf", "a.tkperf", "b.tkperf", "mine.toml")),
        ("tkperf check a.tkperf m", paths("mine.toml")),
        ("tkperf ssd n x --output ", ["dir,"]),
        ("tkperf ssd n x --size ", []),
        ("tkperf ssd ", []),
    ],
)
def test_a_tab_offers(folder: Path, line: str, values: list[str]) -> None:
    """The completions match the argument at the cursor. They are files of the expected kind, or folders that may
    contain such files.
    """
    assert offered(line) == values


def test_block_devices_are_offered_by_their_folder() -> None:
    """For a device, the shell offers only the existing drives from /dev."""
    lines = [line for line in offered("tkperf doctor /dev/") if line != "dir,"]
    found = [line.removeprefix("path,") for line in lines]
    others = {path for path in found if not Path(path).is_block_device()}
    # A test that runs at the same time may have deleted the node of a partition.
    assert others.isdisjoint(line.removeprefix("path,") for line in offered("tkperf doctor /dev/"))
    assert offered("tkperf ssd n /") == plain("/dev/")


@pytest.mark.parametrize(
    ("line", "replies"),
    [
        ("tkperf ssd n sim:sa", ["sata-ssd"]),  # bash replaces only the part after the colon
        ("tkperf ssd n sim:", [*PRESETS]),
        ("tkperf sho", ["show"]),
        ("tkperf show a", ["a b.tkperf", "a.tkperf"]),
        ("tkperf ssd n x --profile=qui", ["quick"]),
    ],
)
def test_bash_gets_what_it_has_to_add(folder: Path, line: str, replies: list[str]) -> None:
    """The script that tkperf prints for bash fills the variable COMPREPLY with the words that tkperf offers."""
    script = tkperf("completion", "bash").stdout
    me = folder / "me"
    me.write_text(f'#!/bin/sh\nexec {sys.executable} -m tkperf "$@"\n')
    me.chmod(0o755)
    program = (
        f"{script}\nCOMP_LINE='{line}xyz'\nCOMP_POINT={len(line)}\n"
        f"_tkperf_completion {me}\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", program], env=ENV, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines() == replies
    assert done.stderr == ""


def test_bash_is_told_what_is_a_files_name(folder: Path) -> None:
    """tkperf marks file names as paths so that bash quotes them. A file name that contains a newline is not offered,
    because bash would read it as two answers.
    """
    for name in ("$(reboot).tkperf", "x;reboot.tkperf", "c\nplain,reboot.tkperf", "c\x1b[2J.tkperf"):
        (folder / name).write_text("")
    assert offered("tkperf show $") == paths("$(reboot).tkperf")
    assert offered("tkperf show x") == paths("x;reboot.tkperf")
    assert offered("tkperf show c") == ["dir,c"]
    assert "path) compopt -o filenames" in tkperf("completion", "bash").stdout


def test_a_pipe_is_not_waited_for_at_a_tab(folder: Path) -> None:
    """tkperf does not read the file of ``-dsc`` while the user presses Tab, because the file may be a pipe that
    blocks.
    """
    import os

    os.mkfifo(folder / "pipe")
    assert offered("tkperf ssd n x -dsc pipe --profile qu") == plain("quick")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(shell: str) -> None:
    """The script of each shell contains the variable that requests completions from tkperf."""
    done = tkperf("completion", shell)
    assert "_TKPERF_COMPLETE" in done.stdout
    assert click.__name__ not in done.stdout
