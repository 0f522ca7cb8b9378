"""Devices and files in use as swap space."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tkperf.device.sysfs import exact_text
from tkperf.device.usage.loops import DELETED
from tkperf.device.usage.mounts import unescape


@dataclass(frozen=True, slots=True)
class Swap:
    """Swap space; ``status`` is None if the name leads nowhere, as for a file of another namespace."""

    name: str
    status: os.stat_result | None
    is_file: bool


def find_swaps(proc_root: Path) -> tuple[Swap, ...]:
    """Return devices and files in use as swap space; each row has the name, escaped, and the kind."""
    rows = (row.split() for row in (exact_text(proc_root / "swaps") or "").split("\n")[1:])
    return tuple(_look_up(unescape(row[0]), row[1] != "partition") for row in rows if len(row) > 1)


def _look_up(name: str, is_file: bool) -> Swap:
    for path in (name, name.removesuffix(DELETED)):
        try:
            return Swap(name, os.stat(path), is_file)
        except (OSError, ValueError):
            continue
    return Swap(name, None, is_file)
