"""tkperf recognises how it was installed, and reports which functions this kind of installation does not provide."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from tkperf.system import installation
from tkperf.system.installation import SECURE_PATH, Installation, Way, read_installation


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the environment of a tkperf that an ordinary user calls as PREFIX/bin/tkperf."""
    folder = tmp_path / "prefix"
    (folder / "bin").mkdir(parents=True)
    program(folder / "bin")
    monkeypatch.setattr(sys, "prefix", str(folder))
    monkeypatch.setattr(sys, "argv", [str(folder / "bin/tkperf")])
    monkeypatch.setattr("tkperf.system.installation.os.geteuid", lambda: 1000)
    monkeypatch.delenv("SUDO_USER", raising=False)
    return folder


def program(folder: Path) -> Path:
    path = folder / "tkperf"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def texts(found: Installation) -> str:
    return "\n".join(f"{gap.text} [{gap.command}]" for gap in found.gaps)


@pytest.mark.parametrize(
    ("file", "content", "way"),
    [
        ("more-packages.txt", "make install PREFIX=/usr/local EXTRAS='report {extra}'", Way.MAKE_INSTALL),
        ("more-packages.txt", "make archive EXTRAS='report {extra}' in tkperf's sources", Way.ARCHIVE),
        ("more-packages.txt", "make deb EXTRAS='report {extra}' in tkperf's sources", Way.DEBIAN_PACKAGE),
        ("uv-receipt.toml", "", Way.UV_TOOL),
        ("pipx_metadata.json", "{}", Way.PIPX),
        ("pyvenv.cfg", "", Way.VIRTUAL_ENVIRONMENT),
    ],
)
def test_each_way_of_installing_is_recognised(prefix: Path, tmp_path: Path, file: str, content: str, way: Way) -> None:
    """tkperf recognises the installer by the files that the installer leaves in the environment."""
    (prefix / file).write_text(content)
    found = read_installation(tmp_path)
    assert (found.way, found.place, found.program) == (way, prefix, prefix / "bin/tkperf")
    assert not found.in_container
    complete = way in {Way.MAKE_INSTALL, Way.DEBIAN_PACKAGE}
    assert ("tkperf completion --help" not in texts(found)) == complete
    assert ("man" not in texts(found)) == complete


def test_pipx_without_man_pages_is_noticed(prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An old pipx links only the program, not the man pages. The message then contains the command that shows the page
    in the environment. A newer pipx links the pages next to the folder of the programs, or in PIPX_MAN_DIR.
    """
    (prefix / "pipx_metadata.json").write_text("{}")
    monkeypatch.delenv("PIPX_MAN_DIR", raising=False)
    local = tmp_path / "local"
    (local / "bin").mkdir(parents=True)
    monkeypatch.setattr(sys, "argv", [str(program(local / "bin"))])
    assert f"did not install the man pages [man -l {prefix}/share/man/man1/tkperf.1]" in texts(read_installation())
    for folder in (tmp_path / "pages", local / "share/man"):
        (folder / "man1").mkdir(parents=True)
        (folder / "man1/tkperf.1").touch()
        monkeypatch.setenv("PIPX_MAN_DIR", str(tmp_path / "pages"))
        assert "man pages" not in texts(read_installation())
        monkeypatch.delenv("PIPX_MAN_DIR")
    assert "man pages" not in texts(read_installation())


def test_a_checkout_is_recognised(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The environment .venv in the folder of the sources belongs to a checkout. The message proposes ``make install``,
    which makes tkperf available to all users.
    """
    monkeypatch.setattr(sys, "prefix", str(Path(installation.__file__).parents[3] / ".venv"))
    found = read_installation(tmp_path)
    assert found.way is Way.CHECKOUT
    assert "sudo make install" in texts(found)


def test_the_python_of_the_system_is_recognised(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A tkperf outside any virtual environment belongs to the packages of its Python."""
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    assert read_installation(tmp_path).way is Way.PYTHON


def test_missing_extras_are_named(prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a package of an extra is missing, the extra is named together with the command that installs it for this kind
    of installation.
    """
    (prefix / "more-packages.txt").write_text("make install EXTRAS='report {extra}'")
    present = ModuleSpec("present", None)
    monkeypatch.setattr("tkperf.system.installation.find_spec", lambda name: None if name == "pyarrow" else present)
    said = texts(read_installation(tmp_path))
    assert "Parquet files need more packages: make install EXTRAS='report parquet'" in said
    assert "reports need" not in said
    assert "tkperf serve needs" not in said


@pytest.mark.parametrize("mark", ["run/.containerenv", ".dockerenv", "run/systemd/container"])
def test_a_container_is_recognised(prefix: Path, tmp_path: Path, mark: str) -> None:
    """A file that the container manager creates shows that tkperf runs in a container, where it may not see the
    host.
    """
    (tmp_path / mark).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / mark).touch()
    found = read_installation(tmp_path)
    assert found.in_container
    assert "in a container" in texts(found)


def test_an_ordinary_user_reads_how_to_call_sudo(prefix: Path, tmp_path: Path) -> None:
    """If sudo does not find a tkperf in a user's folder, the message contains the command with the whole path."""
    said = texts(read_installation(tmp_path))
    assert f"its secure_path ({SECURE_PATH}) does not contain {prefix / 'bin'} [sudo {prefix / 'bin/tkperf'}]" in said


def test_sudo_that_finds_another_tkperf_is_noticed(
    prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With sudo, PATH is the secure_path. If this path contains another tkperf, such as TKperf 2.2, the message names
    this other tkperf.
    """
    monkeypatch.setattr("tkperf.system.installation.os.geteuid", lambda: 0)
    monkeypatch.setenv("SUDO_USER", "somebody")
    (tmp_path / "sbin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "sbin"))
    assert f"does not contain {prefix / 'bin'} [sudo {prefix / 'bin/tkperf'}]" in texts(read_installation(tmp_path))
    other = program(tmp_path / "sbin")
    assert f"sudo calls {other}, which is another tkperf" in texts(read_installation(tmp_path))


def test_a_tkperf_that_sudo_finds_has_no_gap(prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If sudo finds tkperf through a link in a folder of secure_path, no message is printed. tkperf also prints no
    message if root runs it without sudo.
    """
    monkeypatch.setattr("tkperf.system.installation.os.geteuid", lambda: 0)
    assert "sudo" not in texts(read_installation(tmp_path))
    monkeypatch.setenv("SUDO_USER", "somebody")
    (tmp_path / "sbin").mkdir()
    (tmp_path / "sbin/tkperf").symlink_to(prefix / "bin/tkperf")
    monkeypatch.setenv("PATH", str(tmp_path / "sbin"))
    assert "sudo" not in texts(read_installation(tmp_path))
