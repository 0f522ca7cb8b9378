"""A user can specify a run file by its file name, by the name of its run or by its folder. A name that matches several
run files is refused with a list of these files.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.test_bad_input import assert_clear, tkperf
from tests.fleets import vary_run_file
from tkperf.cli.kinds import find_run_file
from tkperf.model.errors import UsageError


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("measured")
    done = tkperf("ssd", "demo", "sim:sata-ssd", "--profile", "quick", "-ssdt", "iops", "-q", "--output", folder)
    assert done.returncode == 0, done.stderr
    return folder / "demo.tkperf"


@pytest.fixture
def folder(tmp_path: Path, measured: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder that contains demo.tkperf, and return the folder."""
    shutil.copy(measured, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("demo", "demo.tkperf"),
        ("demo.tkperf", "demo.tkperf"),
        ("./demo", "demo.tkperf"),
        ("results", "results/late.tkperf"),
        ("results/", "results/late.tkperf"),
        ("results/late", "results/late.tkperf"),
        ("copy.db", "copy.db"),
        ("nothing", "nothing"),
        ("scratch", "scratch.tkperf"),
    ],
)
def test_a_run_file_is_found_by(folder: Path, given: str, found: str) -> None:
    """A run file is found by its file name, by the name of the run, or by a folder that contains no other run. If
    another kind of file has the name of the run, the run file is still found.
    """
    (folder / "results").mkdir()
    shutil.copy("demo.tkperf", "results/late.tkperf")
    (folder / "results/late.log").write_text("")
    shutil.copy("demo.tkperf", "copy.db")
    shutil.copy("demo.tkperf", "scratch.tkperf")
    (folder / "scratch").write_bytes(bytes(4096))  # this file is the target that the run measured
    assert find_run_file(given) == Path(found)


def test_several_that_could_be_meant_are_listed(folder: Path) -> None:
    """A name that matches several run files is refused with a list of these files. The full name of a file selects this
    file.
    """
    (folder / "demo").mkdir()
    for name in ("a", "b"):
        shutil.copy("demo.tkperf", f"demo/{name}.tkperf")
    says = "the name 'demo' can mean any of the run files demo.tkperf, demo/a.tkperf, demo/b.tkperf. Name one of them"
    with pytest.raises(UsageError, match=says):
        find_run_file("demo")
    assert find_run_file("demo.tkperf") == Path("demo.tkperf")
    assert_clear(tkperf("show", "demo"), 2, says)


def test_of_very_many_some_are_listed(folder: Path) -> None:
    (folder / "many").mkdir()
    for number in range(8):
        (folder / f"many/{number}.tkperf").write_text("")
    with pytest.raises(UsageError, match=r"many/0\.tkperf, .*many/4\.tkperf and 3 more. Name one"):
        find_run_file("many")


@pytest.mark.parametrize(
    "words",
    [
        ("show", "demo", "--json"),
        ("report", "demo", "--markdown", "-"),
        ("status", "demo"),
        ("attach", "demo"),
        ("compare", "demo", "other.tkperf"),
        ("check", "demo", "claims.toml"),
        ("plan", "ssd", "n", "sim:sata-ssd", "--profile", "quick", "--like", "demo", "--json"),
        ("resume", "demo", "--repeat", "iops"),
    ],
)
def test_every_command_that_takes_one_finds_it(folder: Path, words: tuple[str, ...]) -> None:
    """Every command that accepts a run file finds the file with the name of the run."""
    (folder / "claims.toml").write_text(
        '[[claim]]\ntest = "iops"\nmetric = "iops"\nread_percent = 100\nblock_size = "4k"\nat_least = 1\n'
    )
    vary_run_file(folder / "demo.tkperf", folder / "other.tkperf", device={}, uuid="another")
    done = tkperf(*words)
    assert done.returncode == 0, done.stderr


def test_stop_finds_it_by_its_name(folder: Path) -> None:
    """``tkperf stop`` finds a run by its name. If the run has ended, the command reports the end, as ``tkperf attach``
    does.
    """
    done = tkperf("stop", "demo")
    assert done.returncode == 0
    assert "demo has ended" in done.stderr


def test_a_typo_names_the_closest_run_file(folder: Path) -> None:
    """A typing error in the name of a run file leads to an error that proposes the closest run file in the same folder.
    The exit code is 6, as for any missing run file.
    """
    (folder / "sub").mkdir()
    shutil.copy("demo.tkperf", "sub/later.tkperf")
    for given, closest in (("dmeo", "demo.tkperf"), ("demo2.tkperf", "demo.tkperf"), ("sub/latre", "sub/later.tkperf")):
        done = tkperf("show", given)
        assert_clear(done, 6, f"there is no run file {given}; did you mean {closest}?")
    (folder / "x.tkperf").touch()
    for given in ("else", "nofile", "sub/nofile", f"{folder}/sub/else.tkperf"):
        done = tkperf("show", given)
        assert_clear(done, 6, f"there is no run file {given}")
        assert "did you mean" not in done.stderr
