"""``make install`` and ``make uninstall``: install a self-contained tkperf below PREFIX, and remove it again.

PREFIX/lib/tkperf contains a folder (a tree) for each installation that is in use, and ``current``, a link to the newest
tree. All other files, such as PREFIX/bin/tkperf and man pages, are links into ``current``. An upgrade therefore
replaces a single link. The target of each link shows whether the link belongs to tkperf. ``installed.json`` lists every
file and folder before it is created, and only listed files are ever removed.
"""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from packages import (
    COMPLETIONS,
    MAN_PAGES,
    SOURCES,
    InstallError,
    call,
    compile_packages,
    find_uv,
    forget_origin,
    main_of,
    open_to_all,
    put_documents,
    put_packages,
    this_python,
)

HOME = Path("lib/tkperf")
CURRENT = HOME / "current"
LIST = HOME / "installed.json"
# The name of a file in each tree. The file lists all files that were built with the tree.
FILES = "files.json"
MORE_PACKAGES = "more-packages.txt"


@dataclass
class Installed:
    """Files and folders that the installation created below a prefix. All paths are relative to the prefix.

    Attributes:
        folders: missing folders that the installation created, beginning with the outermost folder.
    """

    trees: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Place:
    """The place of an installation.

    Attributes:
        prefix: the folder from which the files will be used.
        root: the folder into which the files are written now. It is either the prefix or the folder of a packager.
    """

    prefix: Path
    root: Path

    def read(self) -> Installed:
        try:
            installed = Installed(**json.loads((self.root / LIST).read_text()))
            for name in (*installed.trees, *installed.links, *installed.folders):
                if Path(name).is_absolute() or ".." in Path(name).parts:
                    raise ValueError(f"{name} is not below the prefix")
            for tree in installed.trees:
                if Path(tree).parent != HOME:
                    raise ValueError(f"{tree} is no tree")
        except FileNotFoundError:
            return Installed()
        except (ValueError, TypeError) as error:
            raise InstallError(
                f"{self.root / LIST} is damaged ({error}): what make install made is not known"
            ) from error
        return installed

    def write(self, installed: Installed) -> None:
        new = self.root / f"{LIST}.new"
        new.write_text(json.dumps(vars(installed), indent=1) + "\n")
        new.replace(self.root / LIST)


def install(temporary: Path) -> None:
    place, extras = _place(), tuple(os.environ.get("EXTRAS", "report serve").split())
    _refuse_foreign_files(place)
    python = this_python()
    _refuse_private_python(python, place.prefix)
    # Only folders may be created before they are listed, because an empty folder causes no harm.
    made = _make_folders(place.root, HOME)
    with _locked(place):
        installed = place.read()
        installed.folders += [name for name in made if name not in installed.folders]
        tree = _free_name(place)
        installed.trees.append(tree)
        place.write(installed)
        _say(f"installing into {place.prefix / tree}")
        try:
            _build(place.root / tree, place.prefix / tree, python, temporary, extras)
        except BaseException:  # also catch Ctrl-C, so that the earlier installation still works
            _remove_tree(place, tree, installed)
            raise
        _switch(place, tree)
        _link(place, installed)
        for old in installed.trees[:-1]:
            if _is_free(place, old):
                _remove_tree(place, old, installed)
    _say_how_to_call(place)


def _place() -> Place:
    prefix = Path(os.path.normpath(os.environ.get("PREFIX") or "/usr/local"))
    if not prefix.is_absolute():
        raise InstallError(f"PREFIX={prefix} must begin with /")
    gathered = os.environ.get("DESTDIR")
    root = Path(gathered).absolute() / prefix.relative_to("/") if gathered else prefix
    return Place(prefix=prefix, root=root)


def _wanted_links(tree: Path) -> Iterator[str]:
    """Yield the paths below the prefix that become links to the same path in the tree."""
    yield "bin/tkperf"
    yield from sorted(f"{MAN_PAGES}/{page.name}" for page in (tree / MAN_PAGES).iterdir())
    yield from COMPLETIONS.values()


def _target(link: str) -> str:
    """Return the target of a link that the installation creates. The target is relative, so it is also correct below
    DESTDIR.
    """
    return os.path.relpath(CURRENT / link, Path(link).parent)


def _is_ours(place: Place, link: str) -> bool:
    path = place.root / link
    return path.is_symlink() and str(path.readlink()) == _target(link)


def _refuse_foreign_files(place: Place) -> None:
    """Refuse to replace files of other programs. For example, TKperf 2.2 installs a tkperf into the same folder. This
    check runs before any file is created.
    """
    for link in ("bin/tkperf", *COMPLETIONS.values()):
        path = place.root / link
        if os.path.lexists(path) and not _is_ours(place, link):
            raise InstallError(f"{path} exists and was not made by make install: move it away first")
    home = place.root / HOME
    if home.exists() and any(home.iterdir()) and not (place.root / LIST).exists():
        raise InstallError(f"{home} exists and was not made by make install: move it away first")


def _refuse_private_python(python: Path, prefix: Path) -> None:
    """Refuse a Python in a home folder. Other users may not be able to read this Python, and the Python disappears if
    the account is deleted. A Python in the home folder into which tkperf is installed is permitted.
    """
    real = python.resolve()
    for user in pwd.getpwall():
        home = Path(user.pw_dir).resolve()
        is_person = user.pw_uid == 0 or 1000 <= user.pw_uid < 65534
        if is_person and len(home.parts) > 1 and home in real.parents and home not in prefix.parents:
            raise InstallError(
                f"{real} is below {home}, where others cannot rely on it: "
                "install the system's (apt-get install python3 python3-venv) or name another: "
                "make install PYTHON=/path/to/python3"
            )


def _make_folders(root: Path, folder: Path) -> list[str]:
    """Create a folder below root. Return the names of the folders that were missing, beginning with the outermost
    folder.
    """
    missing = [name for name in (folder, *folder.parents) if not (root / name).is_dir()]
    (root / folder).mkdir(parents=True, exist_ok=True)
    return [str(name) for name in reversed(missing)]


@contextmanager
def _locked(place: Place) -> Iterator[None]:
    """Hold a lock, so that only one installation or removal runs at a time."""
    handle = os.open(place.root / HOME, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InstallError(f"another installation is under way in {place.root / HOME}") from None
    try:
        yield
    finally:
        os.close(handle)


def _free_name(place: Place) -> str:
    number = 1
    while os.path.lexists(place.root / HOME / f"tree-{number}"):
        number += 1
    return str(HOME / f"tree-{number}")


def _build(tree: Path, seen_as: Path, python: Path, temporary: Path, extras: tuple[str, ...]) -> None:
    """Build the tree of an installation, with the list of its files."""
    build_tree(tree, seen_as, python, temporary, extras)
    (tree / MORE_PACKAGES).write_text(
        f"make install PREFIX={shlex.quote(str(seen_as.parents[2]))} EXTRAS='{' '.join(extras)} {{extra}}' "
        "in tkperf's sources\n"
    )
    open_to_all(tree)
    files = sorted(str(path.relative_to(tree)) for path in tree.rglob("*") if not _is_folder(path))
    (tree / FILES).write_text(json.dumps([*files, FILES]))
    (tree / FILES).chmod(0o644)


def build_tree(tree: Path, seen_as: Path, python: Path, temporary: Path, extras: tuple[str, ...]) -> None:
    """Build a tree that works both in its present place and in its final place.

    Args:
        seen_as: the final place of the tree.
    """
    uv = find_uv(temporary)
    uv.call("venv", "--relocatable", "--no-project", "--python", python, tree)
    own = tree / "bin/python"
    put_packages(uv, python=own, extras=extras)
    put_documents(own, tree)
    compile_packages(own, tree / "lib", seen_as=seen_as / "lib")
    for script in (tree / "bin").iterdir():
        if not script.name.startswith("python") and script.name != "tkperf":
            script.unlink()
    forget_origin(tree)
    (tree / "CACHEDIR.TAG").unlink(missing_ok=True)  # with this file, backup programs leave out the folder
    shutil.copy(SOURCES / "LICENSE", tree)
    open_to_all(tree)
    call(tree / "bin/tkperf", "--version")


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _switch(place: Place, tree: str) -> None:
    """Make the new tree the current tree. The link is replaced in a single step."""
    new = place.root / HOME / "current.new"
    new.unlink(missing_ok=True)
    new.symlink_to(Path(tree).name)
    new.rename(place.root / CURRENT)


def _link(place: Place, installed: Installed) -> None:
    wanted = list(_wanted_links(place.root / CURRENT))
    for link in wanted:
        made = _make_folders(place.root, Path(link).parent)
        installed.folders += [name for name in made if name not in installed.folders]
        if link not in installed.links:
            installed.links.append(link)
        place.write(installed)
        path = place.root / link
        if not os.path.lexists(path):
            path.symlink_to(_target(link))
        elif not _is_ours(place, link):
            _say(f"{path} was not made by make install: left as it is")
    for link in [link for link in installed.links if link not in wanted]:
        _unlink(place, link)
        installed.links.remove(link)


def _unlink(place: Place, link: str) -> None:
    if _is_ours(place, link):
        (place.root / link).unlink()
    elif os.path.lexists(place.root / link):
        _say(f"{place.root / link} was not made by make install: left as it is")


def _is_free(place: Place, tree: str) -> bool:
    """Return True if no process uses a tree. Otherwise print the processes that use the tree. The first word of the
    command of such a process is the Python of the tree.
    """
    users = [pid for pid, word in _first_words() if (place.root / tree) in Path(word).parents]
    if users:
        _say(
            f"process {', '.join(users)} still runs from {place.root / tree}, which is therefore "
            "kept; the next make install or make uninstall removes it"
        )
    return not users


def _first_words() -> Iterator[tuple[str, str]]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            yield (folder.name, (folder / "cmdline").read_bytes().split(b"\0")[0].decode("utf-8", "replace"))
        except OSError:  # the process has ended in the meantime
            continue


def _remove_tree(place: Place, tree: str, installed: Installed) -> None:
    """Remove a tree file by file. If the installation was interrupted, remove all files that the installation may have
    created. Otherwise remove all listed files.
    """
    folder = place.root / tree
    try:
        files = json.loads((folder / FILES).read_text())
    except (OSError, ValueError):
        shutil.rmtree(folder, ignore_errors=True)
    else:
        for name in files:
            (folder / name).unlink(missing_ok=True)
        for below in sorted((path for path in folder.rglob("*") if _is_folder(path)), reverse=True):
            _remove_if_empty(below)
        _remove_if_empty(folder)
    if folder.exists():
        _say(f"{folder} holds files that make install did not make: left as they are")
    installed.trees.remove(tree)
    place.write(installed)


def _remove_if_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:  # the folder is not empty or no longer exists
        return


def _say_how_to_call(place: Place) -> None:
    command = place.prefix / "bin/tkperf"
    if place.root != place.prefix:
        _say(f"done, to be used as {command}")
        return
    found = shutil.which("tkperf")
    if found is None:
        _say(f"done: {command}; {command.parent} is not on this PATH")
    elif Path(found).resolve() != command.resolve():
        _say(f"done: {command}; 'tkperf' alone calls {found}, which comes first on this PATH")
    else:
        _say(f"done: call tkperf, or man tkperf ({command})")


def uninstall(_temporary: Path) -> None:
    place = _place()
    installed = place.read()
    if not installed.trees:
        raise InstallError(f"nothing in {place.root} was made by make install")
    with _locked(place):
        # All trees are checked before the first file is removed.
        if not all([_is_free(place, tree) for tree in installed.trees]):  # noqa: C419
            raise InstallError("let it end or end it first; nothing was removed")
        for link in installed.links:
            _unlink(place, link)
        (place.root / CURRENT).unlink(missing_ok=True)
        for tree in list(installed.trees):
            _remove_tree(place, tree, installed)
        (place.root / LIST).unlink()
        for folder in reversed(installed.folders):
            _remove_if_empty(place.root / folder)
    _say(f"removed from {place.prefix}")


def _say(text: str) -> None:
    print(f"install: {text}", flush=True)


if __name__ == "__main__":
    main_of({"install": install, "uninstall": uninstall}[sys.argv[1]])
