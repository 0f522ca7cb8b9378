"""Fills a folder with tkperf and the Python packages that uv.lock names, for install.py and archive.py."""

from __future__ import annotations

import csv
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1]
# Where shells and man look, below a prefix.
COMPLETIONS = {
    "bash": "share/bash-completion/completions/tkperf",
    "zsh": "share/zsh/site-functions/_tkperf",
    "fish": "share/fish/vendor_completions.d/tkperf.fish",
}
MAN_PAGES = "share/man/man1"


class InstallError(Exception):
    """What stands in the way, and what to do about it."""


def call(*argv: str | Path, **environment: str) -> str:
    """Standard output of a program.

    Raises:
        InstallError: it failed; with what it said.
    """
    # No bytecode beside the sources: root's files there could not be removed by their owner.
    variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment}
    done = subprocess.run(
        [str(word) for word in argv],
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise InstallError(f"{argv[0]} failed: {(done.stderr or done.stdout).strip()}")
    return done.stdout


@dataclass(frozen=True, kw_only=True)
class Uv:
    """uv for one installation; it leaves nothing in folders of somebody else."""

    program: Path
    folder: Path

    def call(self, *argv: str | Path) -> str:
        return call(
            self.program,
            "--quiet",
            "--no-progress",
            *self._cache(),
            *argv,
            UV_SYSTEM_CERTS=os.environ.get("UV_SYSTEM_CERTS", "1"),
            UV_PROJECT_ENVIRONMENT=str(self.folder / "venv"),
        )

    def _cache(self) -> tuple[str, ...]:
        """With sudo, HOME may be the user's: root's files in that cache would stop the user's uv."""
        try:
            folder = Path(call(self.program, "cache", "dir").strip())
        except InstallError:  # no HOME
            return ("--cache-dir", str(self.folder / "cache"))
        while not folder.exists():
            folder = folder.parent
        if folder.stat().st_uid == os.geteuid() and os.access(folder, os.W_OK):
            return ()
        return ("--cache-dir", str(self.folder / "cache"))


def put_packages(uv: Uv, *where: str | Path, python: Path, extras: tuple[str, ...]) -> None:
    """Install tkperf and its locked packages; ``where`` tells uv pip the place."""
    locked = uv.folder / "locked.txt"
    wanted = [word for extra in extras for word in ("--extra", extra)]
    uv.call(
        "export",
        "--project",
        SOURCES,
        "--frozen",
        "--no-dev",
        "--no-emit-project",
        *wanted,
        "--python",
        python,
        "--output-file",
        locked,
    )
    wheels = uv.folder / "wheel"
    uv.call("build", "--wheel", "--python", python, "--out-dir", wheels, SOURCES)
    # Copies, as links would share the modes of files in the cache. Our wheel by name: given by its
    # path, that path would be kept in the installed tree.
    pip = ("pip", "install", "--link-mode", "copy", "--no-deps", "--python", python, *where)
    uv.call(*pip, "--require-hashes", "--requirement", locked)
    uv.call(*pip, "--no-index", "--find-links", wheels, "tkperf")


def forget_origin(folder: Path) -> None:
    """Take out what uv notes for its own use about the wheel that it found here.

    And from the lists of files what was removed since: a script's checksum differs with the folder
    that it was made in.
    """
    for note in list(folder.rglob("*.dist-info/uv_cache.json")):
        note.unlink()
    for record in list(folder.rglob("*.dist-info/RECORD")):
        with record.open(encoding="utf-8", newline="") as file:
            rows = [row for row in csv.reader(file) if (record.parents[1] / row[0]).exists()]
        with record.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)


def put_documents(python: Path, share_in: Path) -> None:
    """Man pages and shell completion, made by the tkperf that was just installed."""
    call(python, SOURCES / "scripts/man_pages.py", share_in / MAN_PAGES)
    for shell, place in COMPLETIONS.items():
        script = call(python, "-P", "-m", "tkperf", "completion", shell)
        (share_in / place).parent.mkdir(parents=True, exist_ok=True)
        (share_in / place).write_text(script, encoding="utf-8")


def compile_packages(python: Path, folder: Path, *, seen_as: Path) -> None:
    """Bytecode in place, so that no user ever writes any; valid whatever the files' times."""
    call(
        python,
        "-m",
        "compileall",
        "-q",
        "-f",
        "-j",
        "0",
        "--invalidation-mode",
        "unchecked-hash",
        "-s",
        folder,
        "-p",
        seen_as,
        folder,
    )


def open_to_all(folder: Path) -> None:
    """Readable for every user, whatever the umask was and is."""
    for path in (folder, *folder.rglob("*")):
        if path.is_symlink():
            continue
        if path.is_dir():
            path.chmod(0o755)
        else:
            executable = path.stat().st_mode & stat.S_IXUSR
            path.chmod(0o755 if executable else 0o644)


def find_uv(folder: Path) -> Uv:
    return Uv(program=Path(call("sh", SOURCES / "scripts/uv.sh", folder / "uv").strip()).absolute(), folder=folder)


def this_python() -> Path:
    """The Python that runs this, chosen by system-python.sh, without any environment around it."""
    return Path(getattr(sys, "_base_executable", sys.executable))


def main_of(act: Callable[[Path], None]) -> None:
    """Run a script's ``act`` with a folder for what it needs meanwhile; an error is one line."""
    os.umask(0o022)
    try:
        with tempfile.TemporaryDirectory(prefix="tkperf-install-") as folder:
            act(Path(folder))
    except InstallError as error:
        sys.exit(f"install: {error}")
    except KeyboardInterrupt:
        sys.exit("install: stopped by the user")
    except OSError as error:
        sys.exit(f"install: {error.filename or ''}: {error.strerror}")
