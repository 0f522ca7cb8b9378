"""Where the audit looks: a root folder, a drive in it, the CPUs that may run, and how long a run takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tkperf.device.sysfs import find_disk, find_node, find_nvme_controller, text
from tkperf.system.process import Completed, run_command

# Nobody waits longer for a tool whose answer is only advice.
TOOL_LIMIT_S = 2.0
DAY_S = 86_400.0


@dataclass(frozen=True, kw_only=True)
class Site:
    """A host as it is looked at; tests give a root folder of their own.

    Attributes:
        cpus: numbers of those that tkperf and fio may run on.
        lasts_s: how long a run may take at most: what is due within it counts.
        outstanding: I/Os that the heaviest load has outstanding; None is not known.
        is_root: whether tkperf runs as root.
        now_s: seconds since 1970.
    """

    root: Path = Path("/")
    cpus: frozenset[int] = frozenset()
    lasts_s: float = DAY_S
    outstanding: int | None = None
    is_root: bool = True
    now_s: float = field(default_factory=time.time)
    run: Callable[..., Completed] = run_command

    @property
    def sys(self) -> Path:
        return self.root / "sys"

    @property
    def proc(self) -> Path:
        return self.root / "proc"

    @property
    def cpu_folder(self) -> Path:
        return self.sys / "devices/system/cpu"

    @cached_property
    def processes(self) -> frozenset[str] | None:
        """Names of all programs that run, cut by the kernel to 15 characters; None if not known."""
        names = {text(process / "comm") for process in self.proc.glob("[0-9]*")}
        found = frozenset(name for name in names if name)
        return found or None


@dataclass(frozen=True, kw_only=True)
class Drive:
    """A drive that a run would load: its name, and the sysfs folder of the whole disk.

    ``is_file``: a file on it is measured, so that its file system's drive is looked at.
    """

    name: str
    disk: Path
    is_file: bool = False

    @property
    def major_minor(self) -> str | None:
        return text(self.disk / "dev")

    @property
    def is_nvme(self) -> bool:
        return find_nvme_controller(self.disk) is not None

    @property
    def rotates(self) -> bool:
        return text(self.disk / "queue/rotational") == "1"


def find_drive(
    name: str, major_minor: str | None, sys_root: Path, *, is_file: bool = False
) -> Drive | None:
    """A drive by its device number; None where the kernel describes none."""
    if major_minor is None:
        return None
    node = find_node(major_minor, sys_root)
    if not node.exists():
        return None
    return Drive(name=name, disk=find_disk(node), is_file=is_file)


def place_of(disk: Path) -> Path:
    """Where in the tree of devices a disk hangs; of an NVMe drive where its controller does."""
    return find_nvme_controller(disk) or disk.resolve()


def parse_list(words: str | None) -> frozenset[int]:
    """The numbers of a kernel's list such as ``0-3,8``; empty if there is none.

    Raises:
        ValueError: it is no list.
    """
    numbers: set[int] = set()
    for word in (words or "").split(","):
        first, _, last = word.strip().partition("-")
        if first:
            numbers.update(range(int(first), int(last or first) + 1))
    return frozenset(numbers)


def format_list(numbers: frozenset[int] | set[int]) -> str:
    """``0-3,8`` from numbers."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    return ",".join("-".join(str(end) for end in run) for run in runs)
