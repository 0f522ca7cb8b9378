"""``make install``, ``make uninstall`` and ``make archive`` provide a tkperf that does not need its sources."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tkperf.cli.main import COMMANDS

SOURCES = Path(__file__).parents[2]
SHORT = SOURCES / "tests/short.toml"
HOME = Path("lib/tkperf")


@dataclass(frozen=True, kw_only=True)
class Made:
    """A prefix into which tkperf was installed, with the output of make. The record also contains the files in the
    checkout before the installation.
    """

    prefix: Path
    said: str
    sources_before: set[Path]
    index_before: tuple[int, int] | None


def make(target: str, *, check: bool = True, **variables: str | Path) -> str:
    """Run make, and return what it prints on both output streams. The umask is strict, because some administrators use
    such a umask.
    """
    done = subprocess.run(
        [
            *("sh", "-c", 'umask 077; exec make -C "$0" "$@"', str(SOURCES)),
            *("--no-print-directory", target),
            *(f"{name}={value}" for name, value in variables.items()),
        ],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert not check or done.returncode == 0, done.stdout
    assert check or done.returncode != 0, done.stdout
    return done.stdout


def run(*argv: str | Path, cwd: Path) -> str:
    """Return the output of a program that runs in the environment of a new user."""
    done = subprocess.run(
        [str(word) for word in argv],
        check=False,
        capture_output=True,
        text=True,
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", "HOME": str(cwd)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def source_files() -> set[Path]:
    """Return the files in the checkout to which only the owner of the checkout should write. Compiled modules are left
    out, because other tests may compile modules at the same time.
    """
    below = {path for name in ("scripts", "src") for path in (SOURCES / name).rglob("*")}
    return {path for path in below if "__pycache__" not in path.parts} | {*SOURCES.iterdir()}


def index_file() -> tuple[int, int] | None:
    """Return the identity and the modification time of git's index. The index belongs to the user who wrote it last."""
    try:
        facts = (SOURCES / ".git/index").stat()
    # the checkout is an archive of the sources or an additional work tree
    except (FileNotFoundError, NotADirectoryError):
        return None
    return facts.st_ino, facts.st_mtime_ns


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Return an installation into a new folder. Root installs tkperf from the checkout of another user, for which git
    reports "dubious ownership".
    """
    folder = tmp_path_factory.mktemp("make install")
    prefix = folder / "a prefix"
    before, index_before = source_files(), index_file()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
        patch.setenv("TMPDIR", str(folder))
        said = make("install", PREFIX=prefix)
    return Made(prefix=prefix, said=said, sources_before=before, index_before=index_before)


def test_what_was_installed_measures_and_reports(made: Made, tmp_path: Path) -> None:
    """An installed tkperf measures and reports without the checkout and without the environment of the user."""
    tkperf = made.prefix / "bin/tkperf"
    assert f"done: {tkperf}" in made.said
    assert run(tkperf, "--version", cwd=tmp_path).startswith("tkperf, version ")
    run(tkperf, "ssd", "look", "sim:sata-ssd", "--profile", SHORT, "-q", cwd=tmp_path)
    run(tkperf, "report", "look.tkperf", "-o", "look.html", "--pdf", "look.pdf", cwd=tmp_path)
    assert (tmp_path / "look.pdf").read_bytes().startswith(b"%PDF-")
    done = subprocess.run(
        [tkperf, "report", "look.tkperf", "--parquet", "tables"],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )
    assert f"make install PREFIX='{made.prefix}' EXTRAS='report serve parquet'" in done.stderr


def test_all_users_can_read_it(made: Made) -> None:
    """All users can read an installation. The umask of the user who installed tkperf does not matter."""
    for path in (made.prefix, *made.prefix.rglob("*")):
        if not path.is_symlink():
            wanted = 0o755 if path.is_dir() else 0o644
            assert path.stat().st_mode & wanted == wanted, path


def test_nothing_installed_depends_on_the_checkout(made: Made) -> None:
    """No installed file refers to the checkout or to the build folder, and the checkout does not change."""
    words = [str(SOURCES).encode(), b"tkperf-install-"]
    for path in made.prefix.rglob("*"):
        assert path.name not in {"direct_url.json", "uv_cache.json"}
        if path.is_file():
            content = path.read_bytes()
            assert not [word for word in words if word in content], path
        if path.is_symlink() and made.prefix / HOME not in path.parents:
            assert path.resolve().is_relative_to(made.prefix)
    assert source_files() <= made.sources_before
    assert index_file() == made.index_before


def test_the_version_is_that_of_the_commit(made: Made, tmp_path: Path) -> None:
    """An installation by root has the version of the commit, even if the checkout belongs to another user."""
    git = ("git", "--git-dir", SOURCES / ".git")
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=False, capture_output=True, text=True).stdout[:7]
    tag = subprocess.run(
        [*git, "describe", "--exact-match", "--match", "v*"], check=False, capture_output=True, text=True
    ).stdout.strip()
    version = run(made.prefix / "bin/tkperf", "--version", cwd=tmp_path).split()[-1]
    if commit:
        assert f"+g{commit}" in version or version.partition("+")[0] == tag.removeprefix("v")


def test_man_and_shells_find_their_files(made: Made, tmp_path: Path) -> None:
    """The man pages and shell completions are in the folders below the prefix in which man and the shells search for
    them.
    """
    for page in ("tkperf", *(f"tkperf-{name}" for name in COMMANDS)):
        assert (made.prefix / f"share/man/man1/{page}.1").read_text().startswith(".TH TKPERF")
    bash = made.prefix / "share/bash-completion/completions/tkperf"
    run("bash", "-n", bash, cwd=tmp_path)
    assert (made.prefix / "share/zsh/site-functions/_tkperf").read_text().startswith("#compdef")
    assert (made.prefix / "share/fish/vendor_completions.d/tkperf.fish").is_file()
    # The shell executes these commands when the user presses the tab key.
    words = f"PATH='{made.prefix}/bin':$PATH; . '{bash}'; COMP_LINE='tkperf do'; COMP_POINT=9; "
    words += '_tkperf_completion tkperf; printf "%s\\n" "${COMPREPLY[@]}"'
    assert run("bash", "-c", words, cwd=tmp_path).split() == ["doctor"]


def test_a_run_under_way_keeps_its_tree(made: Made) -> None:
    """During an upgrade, a running tkperf keeps its installation, so that it can load further modules. This
    installation is not removed.
    """
    old = (made.prefix / HOME / "current").resolve()
    reading, writing = os.pipe()
    process = None
    try:
        _fill(writing)  # the pipe is full and no process reads it, so tkperf does not end
        process = subprocess.Popen([made.prefix / "bin/tkperf", "--help"], stdout=writing)
        while Path(f"/proc/{process.pid}/cmdline").read_bytes().startswith(b"/bin/sh"):
            os.sched_yield()
        said = make("install", PREFIX=made.prefix)
        assert f"process {process.pid} still runs from {old}" in said
        new = (made.prefix / HOME / "current").resolve()
        assert new != old
        assert (old / "bin/tkperf").exists()
        assert (made.prefix / "bin/tkperf").resolve() == new / "bin/tkperf"
        refusal = make("uninstall", check=False, PREFIX=made.prefix)
        assert f"process {process.pid} still runs" in refusal
        assert "nothing was removed" in refusal
        assert (made.prefix / "bin/tkperf").exists()
    finally:
        if process is not None:
            process.kill()
            process.wait()
        os.close(reading)
        os.close(writing)


def _fill(pipe: int) -> None:
    """Fill a pipe so that not a single byte can be written to it."""
    os.set_blocking(pipe, False)
    for chunk in (b"." * 4096, b"."):
        try:
            while True:
                os.write(pipe, chunk)
        except BlockingIOError:
            continue
    os.set_blocking(pipe, True)


def test_uninstall_leaves_nothing_of_its_own_and_all_else(made: Made) -> None:
    """``make uninstall`` removes all installed files, and keeps files that other users created. A second call finds no
    files to remove.
    """
    tree = (made.prefix / HOME / "current").resolve()
    theirs = [made.prefix / "bin/other", tree / "notes.txt"]
    for path in theirs:
        path.write_text("not by make install")
    man_page = made.prefix / "share/man/man1/tkperf-ssd.1"
    man_page.unlink()
    man_page.write_text("somebody's own")
    said = make("uninstall", PREFIX=made.prefix)
    assert f"{man_page} was not made by make install: left" in said
    assert f"{tree} holds files that make install did not make" in said
    left = {path for path in made.prefix.rglob("*") if not path.is_dir()}
    assert left == {*theirs, man_page}
    assert "was made by make install" in make("uninstall", check=False, PREFIX=made.prefix)


def test_uninstall_takes_the_folders_that_it_made(tmp_path: Path) -> None:
    """If an installation was first written below the folder DESTDIR, it runs from PREFIX and does not contain the path
    of the DESTDIR folder. After it is removed, no folder of the installation remains.
    """
    gathered = tmp_path / "gathered"
    said = make("install", DESTDIR=gathered, PREFIX="/opt/x y", EXTRAS="")
    assert "to be used as /opt/x y/bin/tkperf" in said
    prefix = gathered / "opt/x y"
    run(prefix / "bin/tkperf", "--version", cwd=tmp_path)
    for path in gathered.rglob("*"):
        assert not path.is_file() or str(gathered).encode() not in path.read_bytes(), path
        assert not path.is_symlink() or str(gathered) not in str(path.readlink())
    assert not list(prefix.rglob("vl_convert"))
    make("uninstall", DESTDIR=gathered, PREFIX="/opt/x y")
    assert list(gathered.rglob("*")) == [gathered / "opt"] or not list(gathered.rglob("*"))


@pytest.mark.parametrize("name", ["bin/tkperf", "lib/tkperf/bin", "share/zsh/site-functions/_tkperf"])
def test_files_of_others_are_not_replaced(tmp_path: Path, name: str) -> None:
    """An installation does not replace files of other programs, such as the tkperf of TKperf 2.2. In this case, the
    installation creates no files.
    """
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_text("of somebody else")
    said = make("install", check=False, PREFIX=tmp_path)
    assert "was not made by make install: move it away first" in said
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / name]
    assert "nothing in" in make("uninstall", check=False, PREFIX=tmp_path)
    assert (tmp_path / name).read_text() == "of somebody else"


def test_an_installation_that_failed_leaves_what_worked(tmp_path: Path) -> None:
    """If an installation fails, in this test because its packages are missing, the working installation remains. The
    files of the failed installation are removed. The files of an installation that a power failure interrupted are also
    removed.
    """
    old = tmp_path / HOME / "tree-1"
    (old / "half").mkdir(parents=True)
    (old / "half/made").touch()
    listed = {"trees": [str(HOME / "tree-1")], "links": [], "folders": ["lib", str(HOME)]}
    (tmp_path / HOME / "installed.json").write_text(json.dumps(listed))
    assert "failed" in make("install", check=False, PREFIX=tmp_path, EXTRAS="nonsense")
    assert [path.name for path in (tmp_path / HOME).iterdir() if path.is_dir()] == ["tree-1"]
    make("uninstall", PREFIX=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_damaged_list_is_not_guessed_at(tmp_path: Path) -> None:
    """If the list of installed files cannot be read, no files are removed, because tkperf does not guess which files
    ``make install`` created.
    """
    (tmp_path / HOME / "tree-1").mkdir(parents=True)
    (tmp_path / HOME / "installed.json").write_text("{")
    for target in ("install", "uninstall"):
        assert "is damaged" in make(target, check=False, PREFIX=tmp_path)
    assert (tmp_path / HOME / "tree-1").is_dir()


@pytest.mark.parametrize("path", ["../../etc", "/etc", "lib/tkperf/../../x", "lib/tkperf"])
def test_a_list_that_leads_elsewhere_removes_nothing(tmp_path: Path, path: str) -> None:
    """Only folders directly in lib/tkperf are ever removed, even if the list of installed files contains other
    folders.
    """
    (tmp_path / "prefix" / HOME).mkdir(parents=True)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/precious").touch()
    listed = {"trees": [path], "links": [], "folders": []}
    (tmp_path / "prefix" / HOME / "installed.json").write_text(json.dumps(listed))
    assert "is damaged" in make("uninstall", check=False, PREFIX=tmp_path / "prefix")
    assert (tmp_path / "etc/precious").exists()


def test_a_python_in_a_home_is_refused(tmp_path: Path) -> None:
    """A Python in the home folder of a user is refused. Other users may lack access to this Python, and it disappears
    if the user is removed.
    """
    own = tmp_path / "python3"
    own.symlink_to(Path(sys.executable).resolve())
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path; import install, pwd\n"
        "home = Path(pwd.getpwuid(0).pw_dir)\n"
        "install._refuse_private_python(home / '.pyenv/bin/python3', home / '.local')\n"
        "install._refuse_private_python(Path('/usr/bin/python3'), Path('/usr/local'))\n"
        "try: install._refuse_private_python(home / '.pyenv/bin/python3', Path('/usr/local'))\n"
        "except install.InstallError as error: print(error)\n"
    )
    said = run(sys.executable, "-B", "-c", script, SOURCES / "scripts", cwd=tmp_path)
    assert "where others cannot rely on it" in said


def test_the_archives_tree_runs_wherever_it_is_put(tmp_path: Path) -> None:
    """The folder from the archive runs with its own Python after it was moved to a path with a space, even through a
    link. The folder contains no path of the machine on which the archive was built. scripts/try-archive.sh tests the
    whole archive without network.
    """
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path; import archive\n"
        "print(archive.build_tree(Path(sys.argv[2])))\n"
    )
    built = subprocess.run(
        ["/usr/bin/python3", "-B", "-c", script, SOURCES / "scripts", tmp_path],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "EXTRAS": ""},
    )
    tree = Path(built.stdout.strip()).rename(tmp_path / "moved to")
    (tmp_path / "tkperf").symlink_to(tree / "bin/tkperf")
    # A module in the current folder must not replace a module of Python.
    (tmp_path / "json.py").write_text("raise SystemExit('a stranger file was run')")
    tkperf = tmp_path / "tkperf"
    assert run(tkperf, "--version", cwd=tmp_path).startswith("tkperf, version ")
    run(tkperf, "ssd", "look", "sim:sata-ssd", "--profile", SHORT, "-q", cwd=tmp_path)
    document = json.loads(run(tkperf, "show", "look.tkperf", "--json", cwd=tmp_path))
    assert document
    maps = run(
        tree / "python/bin/python3",
        "-I",
        "-c",
        "import numpy, sqlite3, ssl, tkperf; print(open('/proc/self/maps').read())",
        cwd=tmp_path,
    )
    loaded = {line.split(maxsplit=5)[5] for line in maps.splitlines() if ".so" in line}
    of_the_system = {Path(path).name for path in loaded if not path.startswith(str(tree))}
    assert {"libc.so.6"} <= of_the_system
    assert not {
        name
        for name in of_the_system
        if not name.startswith(("ld-", "libc.", "libm.", "libdl.", "librt.", "libpthread.", "libgcc_s.", "libstdc++."))
    }
    words = [str(SOURCES).encode(), str(tmp_path).encode(), b"tkperf-install-"]
    for path in tree.rglob("*"):
        if path.is_file() and path != tmp_path / "json.py":
            assert not [word for word in words if word in path.read_bytes()], path
