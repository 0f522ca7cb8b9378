"""Copy a Python into any folder. The copy needs only the C library of the system."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from packages import InstallError, call

# Libraries of the C library and of the compiler's runtime. Every Linux system contains these libraries, and they depend
# on the kernel and the loader of the system.
SYSTEM_LIBRARIES = re.compile(
    r"^(ld-linux.*|lib(c|m|dl|rt|pthread|util|resolv|nsl|anl|gcc_s|stdc\+\+)\.so.*|linux-vdso.*)$"
)
# Modules that tkperf never imports, and files that are specific to the machine from which Python is copied.
LEFT_OUT = shutil.ignore_patterns(
    "__pycache__",
    "test",
    "tests",
    "idlelib",
    "tkinter",
    "turtledemo",
    "lib2to3",
    "ensurepip",
    "site-packages",
    "dist-packages",
    "config-*",
    "sitecustomize.py",
    "EXTERNALLY-MANAGED",
    "nis.*.so",
    "_tkinter.*.so",
    "_test*.so",
    "xxlimited*.so",
    "_dbm.*.so",
    "_gdbm.*.so",
    "readline.*.so",
    "_curses*.so",
)
LICENSES = Path("licenses")


def copy_python(python: Path, folder: Path) -> Path:
    """Copy an interpreter with its standard library and its shared libraries. Return the path of the copied
    interpreter.
    """
    facts = json.loads(
        call(
            python,
            "-I",
            "-c",
            "import json, sys, sysconfig as s; print(json.dumps([s.get_path('stdlib'), "
            "s.get_python_version(), s.get_config_var('DESTSHARED')]))",
        )
    )
    library, version, modules = Path(facts[0]), str(facts[1]), Path(facts[2])
    (folder / "bin").mkdir(parents=True)
    (folder / "lib").mkdir()
    own = folder / f"bin/python{version}"
    shutil.copy(python.resolve(), own)
    (folder / "bin/python3").symlink_to(own.name)
    shutil.copytree(library, folder / f"lib/python{version}", ignore=LEFT_OUT)
    here = folder / f"lib/python{version}/lib-dynload"
    if not here.exists():
        shutil.copytree(modules, here, ignore=LEFT_OUT)
    _bring_license(python.resolve(), folder / LICENSES)
    _bring_libraries([own, *here.glob("*.so")], folder)
    return own


def _bring_libraries(programs: list[Path], folder: Path) -> None:
    """Copy the libraries that programs load next to these programs, and let the programs find the libraries through a
    relative path.
    """
    waiting, brought = list(programs), set[str]()
    while waiting:
        program = waiting.pop()
        for name, path in _loaded(program):
            if name not in brought:
                brought.add(name)
                shutil.copy(path, folder / "lib" / name)
                _bring_license(path, folder / LICENSES)
                waiting.append(folder / "lib" / name)
        up = "../" * (len(program.relative_to(folder).parents) - 1)
        call("patchelf", "--set-rpath", f"$ORIGIN/{up}lib", program)


def _loaded(program: Path) -> Iterator[tuple[str, Path]]:
    for line in call("ldd", program).splitlines():
        name = line.split()[0]
        if "not found" in line:
            raise InstallError(f"{program}: {name} not found on this machine")
        found = re.search(r"=> (/\S+)", line)
        if found and not SYSTEM_LIBRARIES.match(name):
            yield name, Path(found[1])


def _bring_license(library: Path, licenses: Path) -> None:
    """Copy Debian's copyright file of a library. Pythons of other systems contain their own copyright files."""
    try:
        package = call("dpkg", "-S", library.resolve()).split(":")[0]
    except (InstallError, OSError):
        try:
            package = call("dpkg", "-S", str(library.resolve()).removeprefix("/usr")).split(":")[0]
        except (InstallError, OSError):
            return
    record = Path("/usr/share/doc") / package / "copyright"
    if record.exists():
        licenses.mkdir(exist_ok=True)
        shutil.copy(record, licenses / f"{package}.txt")
