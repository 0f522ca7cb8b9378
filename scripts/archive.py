"""``make archive``: write tkperf, its packages and a separate Python into one file, for machines without network."""

from __future__ import annotations

import gzip
import os
import platform
import re
import shutil
import stat
import sys
import tarfile
from pathlib import Path
from urllib.parse import urlsplit

from packages import (
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
from private_python import LICENSES, copy_python

LAUNCHER = """#!/bin/sh
# Links to this file may be anywhere; the folder may be moved as a whole. -I: tkperf is the same
# whoever calls it from wherever.
here=$(dirname -- "$(readlink -f -- "$0")")
exec "$here/../python/bin/python3" -I -c \\
    'import sys; del sys.argv[0]; from tkperf.cli.main import main; main()' "$0" "$@"
"""


def archive(temporary: Path) -> None:
    target = Path(sys.argv[1])
    tree = build_tree(temporary)
    target.mkdir(exist_ok=True)
    _pack(tree, target / f"{tree.name}.tar.gz")
    print(f"{target / tree.name}.tar.gz")


def build_tree(temporary: Path) -> Path:
    """Build the folder that becomes the archive and return its path. The folder works at any location."""
    extras = tuple(os.environ.get("EXTRAS", "report serve").split())
    python = this_python()
    uv = find_uv(temporary)
    tree = temporary / "tree"
    own = copy_python(python, tree / "python")
    packages = Path(call(own, "-I", "-c", "import site; print(site.getsitepackages()[-1])").strip())
    if tree not in packages.parents:
        raise InstallError(f"{python} cannot be moved: its packages would be in {packages}")
    put_packages(uv, "--target", packages, python=own, extras=extras)
    for leftover in ("bin", "share", ".lock"):
        _remove(packages / leftover)
    forget_origin(packages)
    put_documents(own, tree)
    (tree / "bin").mkdir()
    (tree / "bin/tkperf").write_text(LAUNCHER)
    (tree / "bin/tkperf").chmod(0o755)
    (tree / "python/more-packages.txt").write_text(
        f"make archive EXTRAS='{' '.join(extras)} {{extra}}' in tkperf's sources\n"
    )
    version = call(own, "-IB", "-m", "tkperf", "--version").split()[-1]
    name = f"tkperf-{version}-linux-{platform.machine()}"
    _say_what_it_is(tree, version, name)
    compile_packages(own, tree / "python/lib", seen_as=Path("/tkperf/python/lib"))
    open_to_all(tree)
    _refuse_private_words(tree, _private_words(temporary))
    return tree.rename(temporary / name)


def _say_what_it_is(tree: Path, version: str, name: str) -> None:
    shutil.copy(SOURCES / "LICENSE", tree)
    if (tree / "python" / LICENSES).exists():
        shutil.move(tree / "python" / LICENSES, tree / LICENSES)
    c_library = os.confstr("CS_GNU_LIBC_VERSION") or "glibc"
    (tree / "README.txt").write_text(
        f"tkperf {version} with all it needs but fio.\n\n"
        "Unpack it anywhere and call bin/tkperf, or have it on the PATH, also root's:\n\n"
        f"    sudo tar -C /opt -xzf {name}.tar.gz\n"
        f"    sudo ln -s /opt/{name}/bin/tkperf /usr/local/bin/tkperf\n\n"
        "The pages of man are in share/man: man -l share/man/man1/tkperf.1.\n\n"
        f"The machine needs {c_library} or newer (ldd --version), fio 3.33 or newer, and util-linux\n"
        "(setpriv, flock), which every Debian and Ubuntu has. Purging needs what the drive's bus\n"
        "needs: nvme-cli, hdparm, sg3-utils; 'bin/tkperf doctor' says what is missing.\n"
        "licenses/ has the licenses of the libraries that Python brings, the packages' are beside them.\n"
    )


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _private_words(temporary: Path) -> list[str]:
    """Return the folders of this build, and the servers from which packages were downloaded."""
    words = [str(SOURCES), str(temporary)]
    home = os.path.expanduser("~")  # noqa: PTH111 # root's may be missing
    # Many texts contain /root as a separate word, so the check does not search for this path.
    words += [home] if home.count("/") > 1 else [f"{home}/.cache", f"{home}/.local"]
    for variable in ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"):
        server = urlsplit(os.environ.get(variable, "")).hostname
        words += [server] if server and server != "pypi.org" else []
    return words


def _refuse_private_words(tree: Path, words: list[str]) -> None:
    """Fail if a file of the archive contains a path of this machine. Such a file would be a defect of this script."""
    pattern = re.compile(b"|".join(re.escape(word.encode()) + rb"(?![\w-])" for word in words))
    for path in tree.rglob("*"):
        if path.name in {"direct_url.json", "uv_cache.json"}:
            raise InstallError(f"{path.relative_to(tree)} says where the archive was built")
        if path.is_file() and (found := pattern.search(path.read_bytes())):
            raise InstallError(f"{path.relative_to(tree)} names {found[0].decode()}")


def _pack(tree: Path, file: Path) -> None:
    """Write one file. The same content always leads to the same bytes, because the file contains no times and no
    owners.
    """

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mtime = 0
        return entry

    new = file.with_suffix(".new")
    with (
        new.open("wb") as raw,
        gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path in [tree, *sorted(tree.rglob("*"))]:
            place = path.relative_to(tree.parent)
            tar.add(path, str(place), recursive=False, filter=plain)
    new.chmod(stat.S_IRUSR | stat.S_IWUSR | stat.S_IRGRP | stat.S_IROTH)
    new.rename(file)


if __name__ == "__main__":
    main_of(archive)
