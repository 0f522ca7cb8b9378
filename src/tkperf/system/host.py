"""Facts about the host according to the kernel, for every report. None means that a fact is not known. The module also
reads the time, the memory, the file locks, and the control groups of version 1 and 2, and counts the descriptors that
this process may open.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tkperf.model.errors import EngineError, TkperfError, is_lack_of_resources, reason_of

# If a lock waits for another lock, the line of the waiting lock contains an arrow: "1: -> FLOCK  ADVISORY  WRITE 4711
# fe:00:1234 0 EOF".
_LOCK = re.compile(r"^\d+: (-> )?(\S+) +\S+ +(\S+) +(-?\d+) ([0-9a-f]+):([0-9a-f]+):(\d+) ", re.MULTILINE)


def read_host(*, root: Path = Path("/")) -> dict[str, object]:
    """Return facts about the machine and its system, as plain data."""
    cpu = _pairs((_text(root / "proc/cpuinfo") or "").partition("\n\n")[0], ":")
    system = _pairs(_text(root / "etc/os-release"), "=")
    return {
        "hostname": platform.node() or None,
        "operating_system": system["PRETTY_NAME"].strip('"') if "PRETTY_NAME" in system else None,
        "kernel": platform.release() or None,
        "kernel_command_line": _text(root / "proc/cmdline"),
        "cpu_model": cpu.get("model name"),
        "cpu_threads": os.cpu_count(),
        "cpu_governor": _text(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "memory_bytes": read_memory(root / "proc").get("MemTotal"),
        "motherboard": _joined(
            _text(root / "sys/class/dmi/id/board_vendor"), _text(root / "sys/class/dmi/id/board_name")
        ),
        "bios": _text(root / "sys/class/dmi/id/bios_version"),
        "virtual_machine": "hypervisor" in (cpu.get("flags") or "").split() or None,
    }


def now_utc() -> str:
    """Return the current time in UTC as a whole second, in the form that run files and ledgers use."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def parse_utc(text: str | None) -> datetime | None:
    """Return a time from a run file. If the text contains no time zone, UTC is used. None means that the text is not a
    time.
    """
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def read_memory(proc: Path) -> dict[str, int]:
    """Return the amounts of ``/proc/meminfo`` in bytes."""
    rows = [row.split() for row in (_text(proc / "meminfo") or "").splitlines()]
    return {row[0].rstrip(":"): int(row[1]) * 1024 for row in rows if len(row) >= 2 and row[1].isdecimal()}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLock:
    """A lock on a file.

    Attributes:
        kind: the type of the lock, such as FLOCK, POSIX or LEASE.
        pid: the process that holds the lock. None means that the lock belongs to an open file and not to a process.
        file: the number of the file system that contains the locked file, and the inode of the file.
        waits: whether the lock waits until another lock is released.
    """

    kind: str
    access: str
    pid: int | None
    file: tuple[int, int]
    waits: bool


def read_locks(proc: Path) -> Iterator[FileLock]:
    """Yield the locks in ``/proc/locks`` (proc_locks(5))."""
    for arrow, kind, access, pid, major, minor, inode in _LOCK.findall(_text(proc / "locks") or ""):
        yield FileLock(
            kind=kind,
            access=access,
            pid=int(pid) if int(pid) > 0 else None,
            file=(os.makedev(int(major, 16), int(minor, 16)), int(inode)),
            waits=bool(arrow),
        )


def _pairs(text: str | None, sign: str) -> dict[str, str]:
    pairs = (line.partition(sign) for line in (text or "").splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def _joined(*words: str | None) -> str | None:
    return " ".join(word for word in words if word) or None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlGroups:
    """The folders of a process's control groups, from the process's own group up to the root group, for versions 2 and
    1.
    """

    unified: tuple[Path, ...]
    by_controller: dict[str, tuple[Path, ...]]

    def folders_of(self, controller: str) -> tuple[Path, ...]:
        """Return the folders that contain the files of a controller, nearest first. A limit in any of these folders
        applies.
        """
        return (*self.by_controller.get(controller, ()), *self.unified)


def find_control_groups(root: Path, process: str = "self") -> ControlGroups | None:
    """Return the control groups of a process below a root folder. None means that the kernel shows no control
    groups.
    """
    mounts = root / "sys/fs/cgroup"
    unified: tuple[Path, ...] = ()
    by_controller = {}
    for row in (_text(root / "proc" / process / "cgroup") or "").splitlines():
        _, _, rest = row.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            top = mounts if (mounts / "cgroup.controllers").exists() else mounts / "unified"
            unified = _chain(top, path)
            continue
        for controller in controllers.split(","):
            chain = _chain(mounts / controllers, path) or _chain(mounts / controller, path)
            by_controller[controller] = chain
    if not unified and not any(by_controller.values()):
        return None
    return ControlGroups(unified=unified, by_controller=by_controller)


def _chain(top: Path, path: str) -> tuple[Path, ...]:
    """Return the folders from a group up to the top.

    In a container, the path may be valid only on the host. The result contains only folders that exist in this root.
    """
    if not top.is_dir():
        return ()
    folders = [top]
    for name in path.strip("/").split("/"):
        deeper = folders[-1] / name
        if not name or name == ".." or not deeper.is_dir():
            break
        folders.append(deeper)
    return tuple(reversed(folders))


def require_descriptors(count: int, *, purpose: str, fault: type[TkperfError] = EngineError) -> None:
    """Check that this process can open ``count`` more files now.

    Args:
        purpose: the part of tkperf that needs the files, for the message.

    Raises:
        EngineError: the process cannot open the files. The message contains the reason and the limit to raise. If
            ``fault`` is given, an error of this type is raised instead.
    """
    with ExitStack() as opened:
        for number in range(count):
            try:
                descriptor = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            except OSError as error:
                if not is_lack_of_resources(error):
                    raise
                raise fault(
                    f"{purpose} needs {count} more open files, but only {number} are possible: {reason_of(error)}"
                ) from error
            opened.callback(os.close, descriptor)
