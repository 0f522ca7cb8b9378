"""Fill a folder with tkperf and the Python packages in uv.lock, for install.py and archive.py."""

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
# Folders below a prefix in which shells and man search for files.
COMPLETIONS = {
    "bash": "share/bash-completion/completions/tkperf",
    "zsh": "share/zsh/site-functions/_tkperf",
    "fish": "share/fish/vendor_completions.d/tkperf.fish",
}
MAN_PAGES = "share/man/man1"


class InstallError(Exception):
    """An error that states what prevents the installation and what the user can do."""


def call(*argv: str | Path, cwd: Path | None = None, **environment: str) -> str:
    """Return the standard output of a program.

    Raises:
        InstallError: the program failed; the error contains its output.
    """
    # Python must write no bytecode into the folder of the sources, because the owner of the sources could not remove
    # files of root. git reports the version, and it must not write its index, because the index would then belong to
    # root.
    variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "GIT_OPTIONAL_LOCKS": "0", **environment}
    done = subprocess.run(
        [str(word) for word in argv],
        env=variables,
        cwd=cwd,
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
    """The tool uv for one installation. It leaves no files in folders of other users."""

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
        """Return the option for the cache. With sudo, HOME may belong to the user. If files in the cache of this user
        belong to root, the user's uv fails.
        """
        try:
            folder = Path(call(self.program, "cache", "dir").strip())
        except InstallError:  # the variable HOME is not set
            return ("--cache-dir", str(self.folder / "cache"))
        while not folder.exists():
            folder = folder.parent
        if folder.stat().st_uid == os.geteuid() and os.access(folder, os.W_OK):
            return ()
        return ("--cache-dir", str(self.folder / "cache"))


def put_packages(uv: Uv, *where: str | Path, python: Path, extras: tuple[str, ...]) -> None:
    """Install tkperf and its locked packages. ``where`` contains the options that tell uv pip where to install the
    packages.
    """
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
    # The build runs code of other packages, possibly as root, so their hashes are checked like those of the packages.
    locked_build = ("--build-constraints", SOURCES / "scripts/build.txt", "--require-hashes")
    uv.call("build", "--wheel", *locked_build, "--python", python, "--out-dir", wheels, SOURCES)
    # Packages are copied, because linked files would have the file modes of the cache. The wheel of tkperf is installed
    # by its name, because the installed tree would otherwise contain the path of the wheel.
    pip = ("pip", "install", "--link-mode", "copy", "--no-deps", "--python", python, *where)
    uv.call(*pip, "--require-hashes", "--requirement", locked)
    uv.call(*pip, "--no-index", "--find-links", wheels, "tkperf")


def forget_origin(folder: Path) -> None:
    """Remove the records about the wheel that uv makes for its own use.

    Also remove deleted files from the lists of files, because the checksum of a script depends on the folder in which
    the script was made.
    """
    for note in list(folder.rglob("*.dist-info/uv_cache.json")):
        note.unlink()
    for record in list(folder.rglob("*.dist-info/RECORD")):
        with record.open(encoding="utf-8", newline="") as file:
            rows = [row for row in csv.reader(file) if (record.parents[1] / row[0]).exists()]
        with record.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)


def put_documents(python: Path, share_in: Path) -> None:
    """Use the tkperf that was just installed to write the man pages and the shell completions."""
    call(python, SOURCES / "scripts/man_pages.py", share_in / MAN_PAGES)
    for shell, place in COMPLETIONS.items():
        script = call(python, "-P", "-m", "tkperf", "completion", shell)
        (share_in / place).parent.mkdir(parents=True, exist_ok=True)
        (share_in / place).write_text(script, encoding="utf-8")


def compile_packages(python: Path, folder: Path, *, seen_as: Path) -> None:
    """Compile bytecode in the folder, so that no user has to write bytecode later. The bytecode remains valid if the
    times of the files change.
    """
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
    """Make the files readable for every user. The umask of the caller does not matter."""
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
    """Return the Python that runs this script, outside any virtual environment. system-python.sh chose this Python."""
    return Path(getattr(sys, "_base_executable", sys.executable))


def main_of(act: Callable[[Path], None]) -> None:
    """Call the function ``act`` of a script with a temporary folder. Print an error as one line."""
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
