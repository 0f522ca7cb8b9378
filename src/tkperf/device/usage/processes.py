"""A survey of all processes: the files that they have open, mapped or running, and their mount namespaces.

Processes start and end during the survey, so tkperf skips processes that have ended. tkperf counts the processes that
it has no permission to inspect.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from tkperf.device.sysfs import exact_text, major_minor_of, process_fields, text
from tkperf.device.usage.mounts import unescape
from tkperf.device.usage.target_nodes import TargetNodes
from tkperf.model.units import on_one_line

# This flag in /proc/PID/stat means that the process is a kernel thread (linux/sched.h).
PF_KTHREAD = 0x00200000
KCMP_FILES = 2
_KCMP_CALL = {"x86_64": 312, "aarch64": 272, "riscv64": 272}
_IO_URING = "anon_inode:[io_uring]"
_REGISTERED = re.compile(r"^ *\d+: (.+)$", re.MULTILINE)
# Fields of a line: address range, mode, device, inode and name (proc(5)). Only writes to shared mappings reach the
# file.
_MAPPING = re.compile(rb"^([0-9a-f]+-[0-9a-f]+) (\S{4}) \S+ ([0-9a-f]+):([0-9a-f]+) (\d+) *(.*)$", re.MULTILINE)
_SHARED_WRITABLE = re.compile(rb"^.{1,40} .w.s ", re.MULTILINE)
_LIBC = ctypes.CDLL(None)


class How(StrEnum):
    """The kinds of use of a target by a process. The strongest kind is the first."""

    RUNNING = "runs"
    OPEN = "has open"
    REGISTERED = "has registered with io_uring"
    MAPPED = "has mapped into memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A use of the target by a process. ``what`` is the name of the used part of the target."""

    process: str
    what: str
    how: How
    writes: bool


@dataclass(slots=True)
class ProcessSurvey:
    """The results of one survey of all processes.

    Attributes:
        uses: the uses by processes other than tkperf and its children.
        own: the process ids of tkperf and its children, if they use the target.
        namespaces: one process of each mount namespace.
        closed: the number of processes that tkperf has no permission to inspect.
    """

    uses: list[Use] = field(default_factory=list)
    own: list[str] = field(default_factory=list)
    namespaces: dict[str, Path] = field(default_factory=dict)
    closed: int = 0


def look_at_processes(proc_root: Path, target: TargetNodes, *, file_systems: set[int]) -> ProcessSurvey:
    """Examine every process once, and return the uses of the target.

    Args:
        target: the target. If the target is empty, the result contains only mount namespaces.
        file_systems: the kernel's numbers of the file systems that contain the target's files. On btrfs and overlays,
            these numbers differ from the numbers that stat returns.
    """
    processes = ProcessSurvey()
    for name in sorted((name for name in os.listdir(proc_root) if name.isdecimal()), key=int):
        process = proc_root / name
        with suppress(OSError):
            processes.namespaces.setdefault(os.readlink(f"{process}/ns/mnt"), process)
        if not (target.nodes or target.files):
            continue
        try:
            uses = list(_uses_of(process, target, file_systems))
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ESRCH):
                processes.closed += not is_kernel_thread(process)
            continue
        if uses and is_ours(process):
            processes.own.append(name)
        elif uses:
            processes.uses += _first_of_each(process, uses)
    return processes


def find_openers(proc_root: Path, held: os.stat_result) -> list[str]:
    """Return the processes, except tkperf's own, that use the file or device with this status."""
    if stat.S_ISBLK(held.st_mode):
        target = TargetNodes(nodes={held.st_rdev: Path(major_minor_of(held.st_rdev))})
    else:
        target = TargetNodes(files={(held.st_dev, held.st_ino): "the file"})
    processes = look_at_processes(proc_root, target, file_systems=set())
    return list(dict.fromkeys(use.process for use in processes.uses))


# The name of the used part of the target, the kind of use, and True if the process writes to the part.
_Found = tuple[str, How, bool]


def _first_of_each(process: Path, uses: list[_Found]) -> Iterator[Use]:
    """Yield the strongest use of each part of the target by a process."""
    ranks = list(How)
    named = set()
    for what, how, writes in sorted(uses, key=lambda use: (ranks.index(use[1]), not use[2])):
        if what not in named:
            named.add(what)
            yield Use(process=describe_process(process), what=what, how=how, writes=writes)


def _uses_of(process: Path, target: TargetNodes, file_systems: set[int]) -> Iterator[_Found]:
    if target.files and (what := target.name_of_path(f"{process}/exe")):
        yield what, How.RUNNING, False
    for task in (process, *_tasks_of_their_own(process)):
        yield from _descriptors(task, target)
        yield from _mappings(task, target, file_systems)


def _tasks_of_their_own(process: Path) -> Iterator[Path]:
    """Yield threads whose descriptors differ from the descriptors of their process, or cannot be compared with them.

    The result includes threads that still run although the main thread of their process has ended.
    """
    try:
        # The link count of the folder is two plus the number of threads. Most processes have only one thread.
        if os.stat(f"{process}/task").st_nlink <= 3:
            return
        tasks = [name for name in os.listdir(f"{process}/task") if name != process.name]
    except OSError:
        return
    comparable = can_compare(process.parent)
    for task in tasks:
        if not comparable or not _same_files(int(process.name), int(task)):
            yield process / "task" / task


def can_compare(proc_root: Path) -> bool:
    """Return whether the process numbers in this /proc are the same numbers that system calls use."""
    try:
        return os.readlink(proc_root / "self") == str(os.getpid())
    except OSError:
        return False


def _same_files(process: int, task: int) -> bool:
    """Return whether the kernel reports that two tasks share their table of descriptors (kcmp(2))."""
    call = _KCMP_CALL.get(os.uname().machine)
    return call is not None and _LIBC.syscall(call, process, task, KCMP_FILES, 0, 0) == 0


def _descriptors(task: Path, target: TargetNodes) -> Iterator[_Found]:
    """Yield the parts of the target that a task has opened or has registered with io_uring."""
    folder = os.open(f"{task}/fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in os.listdir(folder):
            try:
                status = os.stat(name, dir_fd=folder)
            except OSError:
                continue
            what = target.name_of(status)
            if what is not None:
                mode = _open_mode(task, name)
                # A descriptor that was opened only for the path (O_PATH) does not use the file.
                if mode is not None:
                    yield what, How.OPEN, mode
            elif not stat.S_IFMT(status.st_mode):
                yield from _registered(task, folder, name, target)
    finally:
        os.close(folder)


def _open_mode(task: Path, descriptor: str) -> bool | None:
    """Return whether a descriptor is open for writing. None means that the descriptor was opened only for the path
    (O_PATH).
    """
    for row in (text(task / "fdinfo" / descriptor) or "").splitlines():
        if row.startswith("flags:"):
            flags = int(row.split()[1], 8)
            if flags & os.O_PATH:
                return None
            return flags & os.O_ACCMODE != os.O_RDONLY
    return False


def _registered(task: Path, folder: int, name: str, target: TargetNodes) -> Iterator[_Found]:
    """Yield files of the target that were registered with io_uring. Their descriptors may have been closed.

    The kernel shows the paths of these files, and before Linux 6.9 only their names. To be safe, a file with the same
    name counts as the target's file. The kernel does not show whether the files are open for writing.
    """
    try:
        if os.readlink(name, dir_fd=folder) != _IO_URING:
            return
    except OSError:
        return
    facts = (exact_text(task / "fdinfo" / name) or "").partition("UserFiles:")[2]
    for path in map(unescape, _REGISTERED.findall(facts.partition("UserBufs:")[0])):
        find = target.name_of_path if path.startswith("/") else target.name_of_base
        if (what := find(path)) is not None:
            yield what, How.REGISTERED, True


def _mappings(task: Path, target: TargetNodes, file_systems: set[int]) -> Iterator[_Found]:
    """Yield the parts of the target that a task has mapped. For a file, every mapping is a use. For a device, a mapping
    is a use only if writes reach the device.
    """
    try:
        with open(f"{task}/maps", "rb") as opened:
            maps = opened.read()
    except OSError:
        return
    inodes = {inode for _, inode in target.files}
    devices = bool(target.nodes) and _SHARED_WRITABLE.search(maps) is not None
    if not devices and not any(b" %d " % inode in maps for inode in inodes):
        return
    for span, mode, major, minor, inode, name in _MAPPING.findall(maps):
        writes = mode[1:2] == b"w" and mode[3:4] == b"s"
        if int(inode) not in inodes and not (devices and writes and int(inode)):
            continue
        device = os.makedev(int(major, 16), int(minor, 16))
        way = f"{task}/map_files/{os.fsdecode(span)}"
        what = _name_of_mapped(way, os.fsdecode(name), (device, int(inode)), target, file_systems)
        if what is not None:
            yield what, How.MAPPED, writes


def _name_of_mapped(
    way: str, name: str, file: tuple[int, int], target: TargetNodes, file_systems: set[int]
) -> str | None:
    """Return the name of a mapped file. The function follows the link of the mapping if it has the permission (root).
    Otherwise it uses the kernel's list.
    """
    with suppress(OSError):
        return target.name_of(os.stat(way))
    if file in target.files:
        return target.files[file]
    with suppress(OSError, ValueError):
        return target.name_of(os.stat(name))
    # The name leads to none of the target's files. On btrfs and overlays, only the inode can be compared.
    same = (known for known in target.files if known[1] == file[1] and file[0] in file_systems)
    return next((target.files[known] for known in same), None)


def is_kernel_thread(process: Path) -> bool:
    """Return whether a process is a kernel thread. A kernel thread has no descriptors."""
    words = process_fields(process)
    return len(words) > 6 and words[6].isdecimal() and bool(int(words[6]) & PF_KTHREAD)


def describe_process(process: Path) -> str:
    """Return a description of a process, such as ``process 4711 (qemu)``."""
    name = on_one_line(text(process / "comm") or "")
    return f"process {process.name} ({name or 'name not known'})"


def is_ours(process: Path) -> bool:
    """Return whether a process is tkperf or one of its descendants, such as a running fio."""
    try:
        own = (process.parent / "self").readlink().name
    except OSError:
        own = str(os.getpid())
    while process.name != own:
        words = process_fields(process)
        if len(words) < 2 or words[1] == "0":
            return False
        process = process.parent / words[1]
    return True
