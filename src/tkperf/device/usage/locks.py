"""Locks and leases on a file; the kernel lists them with the file's numbers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tkperf.device.sysfs import exact_text

_ROW = re.compile(
    r"^\d+: (?:-> )?(\S+) +\S+ +\S+ +(-?\d+) ([0-9a-f]+):([0-9a-f]+):(\d+) ", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock; ``process`` is None if it belongs to an open file, not to a process."""

    kind: str
    process: int | None


def find_locks(proc_root: Path, files: set[tuple[int, int]]) -> Iterator[Lock]:
    """Yield locks on files, given by the number of their file system and their inode."""
    for kind, process, major, minor, inode in _ROW.findall(exact_text(proc_root / "locks") or ""):
        if (os.makedev(int(major, 16), int(minor, 16)), int(inode)) in files:
            yield Lock(kind, int(process) if int(process) > 0 else None)
