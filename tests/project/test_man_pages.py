"""The man pages describe every command and option of the command line, and man reports no errors in them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tkperf.cli.main import COMMANDS, cli

SCRIPT = Path(__file__).parents[2] / "scripts/man_pages.py"


def make_pages(folder: Path, **environment: str) -> dict[str, str]:
    subprocess.run(
        [sys.executable, SCRIPT, folder], check=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment}
    )
    return {path.name: path.read_text(encoding="ascii") for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("man")
    make_pages(path)
    return path


def shown(page: Path) -> str:
    """Return the text of a page as a reader sees it. Each sequence of spaces is replaced with one space."""
    done = subprocess.run(
        ["mandoc", "-T", "utf8", "-O", "width=1000", page], check=True, capture_output=True, text=True
    )
    return re.sub(r" +", " ", re.sub(r".\x08", "", done.stdout))


def test_there_is_a_page_of_each_command(folder: Path) -> None:
    """Each command has a man page, and tkperf(1) refers to all of them."""
    expected = {"tkperf.1", *(f"tkperf-{name}.1" for name in COMMANDS)}
    assert {path.name for path in folder.iterdir()} == expected
    overview = shown(folder / "tkperf.1")
    for name in COMMANDS:
        assert f"tkperf-{name}(1)" in overview
    assert "EXIT STATUS" in overview
    assert re.search(r"^ 3 refused for safety$", overview, re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_option_is_in_its_page_as_it_is_in_the_help(folder: Path, name: str) -> None:
    """The man page contains each option with all its spellings, its value and the text of ``--help``."""
    context = click.Context(cli, info_name="tkperf", **cli.context_settings)
    command = cli.get_command(context, name)
    assert command is not None
    own = click.Context(command, info_name=name, parent=context, **command.context_settings)
    page = shown(folder / f"tkperf-{name}.1")
    for option in command.get_params(own):
        record = option.get_help_record(own)
        if isinstance(option, click.Option) and record is not None:
            flags, meaning = (re.sub(r"\s+", " ", text) for text in record)
            assert f"\n {flags}" in page
            assert meaning in page
    for line in re.findall(r"^ +(tkperf .*)$", command.help or "", re.MULTILINE):
        assert re.sub(r" +", " ", line) in page


def test_no_page_has_a_fault_of_roff(folder: Path) -> None:
    """mandoc and groff, the programs that display man pages, find no error in any page."""
    pages = sorted(folder.iterdir())
    lint = subprocess.run(
        ["mandoc", "-T", "lint", "-W", "warning", *pages], check=False, capture_output=True, text=True
    )
    # The pages contain no date, because a date would differ from build to build.
    complaints = [line for line in lint.stdout.splitlines() if "missing date" not in line]
    assert complaints == []
    for page in pages:
        groff = subprocess.run(["groff", "-ww", "-man", "-T", "utf8", page], check=True, capture_output=True, text=True)
        assert groff.stderr == ""


def test_pages_are_the_same_each_time(folder: Path, tmp_path: Path) -> None:
    """The pages do not depend on the terminal, the language, the time zone or the order of hashing."""
    again = make_pages(tmp_path / "again", COLUMNS="40", LC_ALL="C", TZ="Asia/Tokyo", PYTHONHASHSEED="7", TERM="dumb")
    assert again == {path.name: path.read_text(encoding="ascii") for path in folder.iterdir()}


def test_what_roff_would_take_as_a_command_is_text(tmp_path: Path) -> None:
    """In a man page, a point or an apostrophe at the beginning of a line, a backslash and a hyphen are shown as text.
    roff does not interpret them as commands.
    """
    (tmp_path / "odd.py").write_text(
        f"import sys; sys.path.insert(0, {str(SCRIPT.parent)!r})\n"
        "import man_pages\n"
        'text = ".SH x \'a \\\\fB -b ~c ^d é"\n'
        "print('.TH X 1 2026-01-01'); print('.SH NAME'); print(man_pages._escaped(text))\n"
        'print(man_pages._escaped("\'quoted"))\n'
    )
    page = tmp_path / "odd.1"
    with page.open("wb") as out:
        subprocess.run([sys.executable, "-B", tmp_path / "odd.py"], check=True, stdout=out)
    assert ".SH x 'a \\fB -b ~c ^d é 'quoted" in shown(page)
