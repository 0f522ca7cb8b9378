"""The method by which tkperf was installed, and the parts that this method does not provide."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

from tkperf.model.version import __version__

# The secure_path in /etc/sudoers on Debian and Ubuntu. tkperf assumes this value, because only root can read the file.
SECURE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# The commands make install, make archive and make deb write this file. It contains the command that installs the
# packages of an extra.
MORE_PACKAGES = "more-packages.txt"
# The purpose of each extra of pyproject.toml, and the modules that the extra installs.
EXTRAS = {
    "report": ("reports need", ("jinja2", "typst", "vl_convert")),
    "serve": ("tkperf serve needs", ("starlette", "uvicorn")),
    "parquet": ("Parquet files need", ("pyarrow",)),
}
_IN_MAN = "man1/tkperf.1"
# The man page of the program, relative to the prefix of an installation.
_MAIN_PAGE = f"share/man/{_IN_MAN}"
# Files that container managers create in each container, with the name of the manager.
CONTAINER_FILES = {".dockerenv": "Docker", "run/.containerenv": "Podman"}
# This file contains the name of the container manager.
NAMED_CONTAINER_FILE = "run/systemd/container"


class Way(StrEnum):
    """The methods to install tkperf that docs/how-to/install.md describes."""

    CHECKOUT = "a checkout of the sources"
    MAKE_INSTALL = "make install"
    ARCHIVE = "the archive"
    DEBIAN_PACKAGE = "the Debian package"
    UV_TOOL = "uv tool install"
    PIPX = "pipx install"
    VIRTUAL_ENVIRONMENT = "a virtual environment"
    PYTHON = "packages of this Python"


_COMPLETE = (Way.MAKE_INSTALL, Way.DEBIAN_PACKAGE)
"""The methods that install the man pages and the shell completion in the folders where man and the shells search for
them.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A part that this method of installation does not provide, with the command that provides it."""

    text: str
    command: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """The installation of the tkperf that is running.

    Attributes:
        place: the folder of the installation's Python environment.
        program: the path with which the user can call tkperf.
        in_container: whether tkperf runs in a container.
    """

    way: Way
    place: Path
    program: Path
    in_container: bool
    gaps: tuple[Gap, ...]

    def as_plain_data(self) -> dict[str, object]:
        return {
            "way": self.way.value,
            "place": str(self.place),
            "program": str(self.program),
            "in_container": self.in_container,
            "gaps": [{"text": gap.text, "command": gap.command} for gap in self.gaps],
        }


def read_installation(root: Path = Path("/")) -> Installation:
    """Return how the running tkperf was installed. ``root`` is the root of the file system."""
    way, program = _find_way(), _find_program()
    in_container = any((root / mark).exists() for mark in (*CONTAINER_FILES, NAMED_CONTAINER_FILE))
    return Installation(
        way=way,
        place=Path(sys.prefix),
        program=program,
        in_container=in_container,
        gaps=(*_find_gaps(way, program, in_container=in_container), *_look_at_sudo(program)),
    )


def how_to_install(extra: str) -> str:
    """Return the command that installs the packages of an extra, for this method of installation. The command never
    installs tkperf itself from a package index, because another project may use the name tkperf there.
    """
    if _is_checkout():
        return f"sh {shlex.quote(str(_sources() / 'scripts/setup.sh'))} {extra}"
    if command := _read_more_packages():
        return command.replace("{extra}", extra)
    extras = ",".join(dict.fromkeys(("report", extra)))
    return f"install tkperf's wheel again as 'tkperf-{__version__}-py3-none-any.whl[{extras}]'"


def _sources() -> Path:
    return Path(__file__).parents[3]


def _is_checkout() -> bool:
    return (_sources() / "scripts/setup.sh").is_file() and Path(sys.prefix) == _sources() / ".venv"


def _read_more_packages() -> str:
    try:
        return (Path(sys.prefix) / MORE_PACKAGES).read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _find_way() -> Way:
    prefix, command = Path(sys.prefix), _read_more_packages()
    if _is_checkout():
        return Way.CHECKOUT
    for word, way in (
        ("make install", Way.MAKE_INSTALL),
        ("make archive", Way.ARCHIVE),
        ("make deb", Way.DEBIAN_PACKAGE),
    ):
        if command.startswith(word):
            return way
    if (prefix / "uv-receipt.toml").is_file():
        return Way.UV_TOOL
    if (prefix / "pipx_metadata.json").is_file():
        return Way.PIPX
    return Way.PYTHON if sys.prefix == sys.base_prefix else Way.VIRTUAL_ENVIRONMENT


def _find_program() -> Path:
    """Return the path of the program that was called. For python -m tkperf, return the program of the environment."""
    called = Path(sys.argv[0])
    if called.name == "tkperf" and called.is_file():
        return called.absolute()
    return Path(sys.prefix) / "bin/tkperf"


def _has_linked_pages(program: Path) -> bool:
    """Return whether pipx linked the man pages of its environment. pipx 1.1.0 of Debian 12 links only the programs."""
    folder = os.environ.get("PIPX_MAN_DIR")
    # By default, pipx links the pages next to the folder of the programs: ~/.local/bin and ~/.local/share/man.
    return (program.parents[1] / _MAIN_PAGE).exists() or (folder is not None and (Path(folder) / _IN_MAN).exists())


def _find_gaps(way: Way, program: Path, *, in_container: bool) -> Iterator[Gap]:
    for extra, (what, modules) in EXTRAS.items():
        if any(find_spec(module) is None for module in modules):
            yield Gap(text=f"{what} more packages: {how_to_install(extra)}")
    if way is Way.CHECKOUT:
        text = "the checkout may change during a run, and its tkperf is on no PATH: install it for all users"
        yield Gap(text=text, command="sudo make install")
    elif way is Way.ARCHIVE:
        pages = Path(sys.prefix).parent / _MAIN_PAGE
        yield Gap(text="man does not find the man pages of the archive", command=f"man -l {shlex.quote(str(pages))}")
    elif way is Way.PIPX:
        if not _has_linked_pages(program):
            pages = Path(sys.prefix) / _MAIN_PAGE
            text = "this version of pipx did not install the man pages"
            yield Gap(text=text, command=f"man -l {shlex.quote(str(pages))}")
    elif way not in _COMPLETE:
        yield Gap(text="no man pages are installed: read the same text with --help", command="tkperf ssd --help")
    if way not in _COMPLETE:
        yield Gap(text="shells do not complete the words of tkperf yet", command="tkperf completion --help")
    if in_container:
        yield Gap(
            text="in a container, tkperf measures block devices only if it sees the processes and mounts of the host; "
            "simulated drives, reports, comparisons and tkperf serve work"
        )


def _look_at_sudo(program: Path) -> Iterator[Gap]:
    """Yield an explanation of how to call tkperf with sudo, if sudo does not find the program by its name."""
    by_sudo = os.geteuid() == 0 and "SUDO_USER" in os.environ
    if os.geteuid() == 0 and not by_sudo:
        return
    # sudo replaces PATH with its secure_path.
    path = os.environ.get("PATH", "") if by_sudo else SECURE_PATH
    found = shutil.which("tkperf", path=path)
    if found is not None and Path(found).resolve() == program.resolve():
        return
    if found is None:
        text = f"sudo does not find tkperf, because its secure_path ({path}) does not contain {program.parent}"
    else:
        text = f"sudo calls {found}, which is another tkperf, because its secure_path is {path}"
    yield Gap(text=text, command=f"sudo {shlex.quote(str(program))}")
