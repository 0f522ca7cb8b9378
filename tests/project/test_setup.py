"""scripts/setup.sh. The tests check its output, the cases in which it changes nothing, and the set-up of a checkout
that was moved.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2]
# This stand-in for uv creates the two programs that setup needs in an environment, and records its arguments.
UV = """#!/bin/sh
echo "$@" >>"$ASKED"
mkdir -p .venv/bin
for name in tkperf python; do
    printf '#!/bin/sh\\n' >".venv/bin/$name"
    chmod +x ".venv/bin/$name"
done
"""


class Checkout:
    """The scripts in a folder with a space in its name, and a stand-in for uv that downloads no files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "my checkout"
        shutil.copytree(SOURCES / "scripts", self.folder / "scripts")
        for name in ("uv.lock", "pyproject.toml"):
            shutil.copy(SOURCES / name, self.folder)
        (self.folder / "src").mkdir()
        (folder / "bin").mkdir()
        (folder / "bin/uv").write_text(UV)
        (folder / "bin/uv").chmod(0o755)
        self.asked = folder / "asked"
        path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path, "ASKED": str(self.asked)}

    def set_up(self, purpose: str = "run") -> str:
        done = subprocess.run(
            ["sh", "scripts/setup.sh", purpose],
            cwd=self.folder,
            env=self.environment,
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return done.stdout

    def calls(self) -> list[str]:
        return self.asked.read_text().splitlines() if self.asked.exists() else []


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_it_says_once_how_to_call_tkperf(checkout: Checkout) -> None:
    """The first set-up prints once how to call tkperf. The second set-up prints nothing and changes nothing."""
    said = checkout.set_up()
    assert said.count(".venv/bin/tkperf") == 1
    assert "sudo make install" in said
    assert checkout.set_up() == ""
    assert len(checkout.calls()) == 1


def test_a_checkout_that_moved_is_set_up_anew(checkout: Checkout) -> None:
    """A checkout that was moved is set up again with all extras that it had before, because scripts contain the full
    path of their Python.
    """
    checkout.set_up("parquet")
    checkout.set_up()
    moved = checkout.folder.with_name("moved")
    checkout.folder.rename(moved)
    checkout.folder = moved
    (moved / ".venv/of the old place").touch()
    assert "has moved" in checkout.set_up()
    assert not (moved / ".venv/of the old place").exists()
    assert "--extra parquet" in checkout.calls()[-1]
    assert checkout.set_up() == ""


def test_set_up_brings_what_reports_and_serve_need(checkout: Checkout) -> None:
    """After the set-up, a user can call every command in README, because the set-up includes the packages for reports
    and for ``tkperf serve``.
    """
    checkout.set_up()
    assert {"report", "serve"} <= set(checkout.calls()[-1].split())


def test_system_packages_alone_leave_the_checkout_as_it_is(checkout: Checkout) -> None:
    """If only the system packages are installed, the checkout does not change. ``sudo make install`` uses this mode.
    Root must not create files in a user's checkout.
    """
    before = set(checkout.folder.rglob("*"))
    checkout.set_up("system")
    assert set(checkout.folder.rglob("*")) == before
    assert checkout.calls() == []


def test_the_pages_say_how_tkperf_comes_on_the_path() -> None:
    """README and the demo script contain the usual command that puts tkperf on the PATH. The page about installation
    contains all such commands.
    """
    assert "sudo make install" in (SOURCES / "README.md").read_text(encoding="utf-8")
    page = (SOURCES / "docs/how-to/install.md").read_text(encoding="utf-8")
    for words in (
        "sudo make install",
        "make uninstall",
        "pipx install",
        "uv tool install",
        "make archive",
        ".venv/bin/tkperf",
    ):
        assert words in page
    demo = (SOURCES / "scripts/demo.sh").read_text(encoding="utf-8")
    assert "/.venv/bin/tkperf" in demo
    assert "sudo make install" in demo


def test_downloaded_programs_have_hashes() -> None:
    """uv and the packages that build tkperf run with the rights of root if root installs tkperf. A fixed version and
    hashes of the files therefore protect their download, and pyproject.toml names the same versions.
    """
    locked = {name: (SOURCES / f"scripts/{name}.txt").read_text(encoding="utf-8") for name in ("uv", "build")}
    for text in locked.values():
        packages = re.split(r"^(?=\w)", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE), flags=re.MULTILINE)[1:]
        assert packages
        assert all(re.match(r"\S+==\S+ \\\n    --hash=sha256:[0-9a-f]{64}", package) for package in packages)
    project = tomllib.loads((SOURCES / "pyproject.toml").read_text(encoding="utf-8"))
    for requirement in project["tool"]["uv"]["build-constraint-dependencies"]:
        assert f"\n{requirement} \\\n" in locked["build"]
    assert '--require-hashes --requirement "$locked"' in (SOURCES / "scripts/uv.sh").read_text(encoding="utf-8")
    for caller in ("scripts/wheel.sh", "scripts/packages.py"):
        assert "--require-hashes" in (SOURCES / caller).read_text(encoding="utf-8")
