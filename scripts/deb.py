"""``make deb``: write a Debian package of tkperf for the release of Debian or Ubuntu on which the script runs.

debhelper makes the package. This script fills the folder from which debhelper takes the files, and writes what
debhelper cannot know: the version, the range of Python versions, the date, and the record of copyrights.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from pathlib import Path

from debian_copyright import write_copyright
from install import MORE_PACKAGES, build_tree
from packages import COMPLETIONS, SOURCES, InstallError, call, main_of, this_python

HOME = Path("usr/lib/tkperf")
# Debian's zsh searches this folder, but it does not search share/zsh/site-functions below /usr.
ZSH = "share/zsh/vendor-completions/_tkperf"
SYSTEM_PYTHON = Path("/usr/bin/python3")
# The project has not published a mail address yet, so the package contains a placeholder that is not a valid address.
MAINTAINER = ("tkperf contributors", "tkperf@invalid.invalid")


# The package is always installed in the same folder, so the program needs no shell to find its Python. With -I, the
# environment of the caller has no effect.
PROGRAM = """#!/usr/lib/tkperf/bin/python3 -I
import sys

from tkperf.cli.main import main

sys.exit(main())
"""


def deb(temporary: Path) -> None:
    target = Path(sys.argv[1]).absolute()
    python = this_python()
    if python.resolve() != SYSTEM_PYTHON.resolve():
        raise InstallError(f"a Debian package uses {SYSTEM_PYTHON}, but PYTHON names {python}")
    epoch = find_epoch()
    build = temporary / "build"
    tree = build / HOME
    extras = tuple(os.environ.get("EXTRAS", "report serve").split())
    build_tree(tree, Path("/") / HOME, python, temporary, extras)
    release = platform.freedesktop_os_release()
    version = debian_version(call(tree / "bin/tkperf", "--version").split()[-1], release)
    _sort_into_folders(tree, build / "usr")
    (tree / MORE_PACKAGES).write_text("make deb EXTRAS='{} {{extra}}' in tkperf's sources\n".format(" ".join(extras)))
    _write_control(build, version, epoch, release.get("VERSION_CODENAME", "unstable"))
    for path in (*build.rglob("*"), build):
        os.utime(path, (epoch, epoch), follow_symlinks=False)
    call(build / "debian/rules", "binary", cwd=build, SOURCE_DATE_EPOCH=str(epoch), DH_VERBOSE="")
    target.mkdir(exist_ok=True)
    (package,) = temporary.glob("tkperf_*.deb")
    shutil.copyfile(package, target / package.name)
    print(target / package.name)


def find_epoch() -> int:
    """Return the time in SOURCE_DATE_EPOCH (reproducible-builds.org), or otherwise the time of the commit."""
    text = os.environ.get("SOURCE_DATE_EPOCH") or ""
    if not text:
        owned = f"safe.directory={SOURCES}"  # with sudo make deb, the checkout can belong to another user
        try:
            text = call("git", "-c", owned, "-C", SOURCES, "log", "-1", "--format=%ct").strip()
        except (InstallError, OSError) as error:
            raise InstallError(
                "git does not know the time of this version; name it: make deb SOURCE_DATE_EPOCH=SECONDS"
            ) from error
    if not text.isdecimal():
        raise InstallError(f"SOURCE_DATE_EPOCH={text} is not a number of seconds")
    return int(text)


def debian_version(version: str, release: dict[str, str]) -> str:
    """Return the version of the package in Debian's form. ``version`` has the form that Python prescribes. Debian sorts
    a version with ``~`` before the same version without it. The last part names the release of Debian or Ubuntu,
    because each release has a different Python. An upgrade of the system then also upgrades tkperf.
    """
    public, plus, commit = version.partition("+")
    upstream = re.sub(r"\.?(a|b|rc|dev)(\d+)", r"~\1\2", public) + plus + commit
    name = {"debian": "deb"}.get(release["ID"], release["ID"])
    return f"{upstream}-1+{name}{release.get('VERSION_ID', '')}"


def _sort_into_folders(tree: Path, usr: Path) -> None:
    """Move the man pages and completions to Debian's folders, and create a link to the program."""
    shutil.move(tree / "share", usr / "share")
    (usr / ZSH).parent.mkdir(parents=True)
    shutil.move(usr / COMPLETIONS["zsh"], usr / ZSH)
    shutil.rmtree(usr / "share/zsh/site-functions")
    (tree / "bin/tkperf").write_text(PROGRAM)
    (usr / "bin").mkdir()
    (usr / "bin/tkperf").symlink_to("../lib/tkperf/bin/tkperf")
    for leftover in (".gitignore", ".lock", "LICENSE"):
        (tree / leftover).unlink(missing_ok=True)


def _write_control(build: Path, version: str, epoch: int, suite: str) -> None:
    debian = build / "debian"
    shutil.copytree(SOURCES / "packaging/debian", debian)
    shutil.copy(SOURCES / "NOTICE", build)
    shutil.copy(SOURCES / "CHANGELOG.md", build / "CHANGELOG")
    shutil.copytree(SOURCES / "docs/examples", build / "examples", ignore=shutil.ignore_patterns("*.html", "*.ipynb"))
    name, address = (
        os.environ.get(key) or own for key, own in zip(("DEBFULLNAME", "DEBEMAIL"), MAINTAINER, strict=True)
    )
    maintainer = f"{name} <{address}>"
    now, following = sys.version_info[1], sys.version_info[1] + 1
    control = (debian / "control").read_text()
    control = control.replace("@MAINTAINER@", maintainer)
    control = control.replace("@PYTHON@", f"python3 (>= 3.{now}~),\n python3 (<< 3.{following}~)")
    (debian / "control").write_text(control)
    date = call("date", "--utc", "--rfc-email", f"--date=@{epoch}").strip()
    (debian / "changelog").write_text(
        f"tkperf ({version}) {suite}; urgency=medium\n\n"
        "  * /usr/share/doc/tkperf/changelog.gz lists what changed in tkperf.\n\n"
        f" -- {maintainer}  {date}\n"
    )
    write_copyright(debian / "copyright", build)


if __name__ == "__main__":
    main_of(deb)
