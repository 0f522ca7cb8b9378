"""Readers of the kernel's description of block devices (sysfs) and of udev's database, and the loop that waits for
changes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

SYS_ROOT = Path("/sys")
PROC_ROOT = Path("/proc")
# The kernel's unit of sizes and places, whatever the sector size of the device is.
SECTOR_BYTES = 512
# Values of ``queue/zoned`` (Documentation/ABI/stable/sysfs-block of Linux 6.1): a disk whose zones take only
# sequential writes, and a disk that accepts any writes, but may be slow with them.
HOST_MANAGED, HOST_AWARE = "host-managed", "host-aware"


def text(path: Path) -> str | None:
    """Return an attribute without white space around it; None if it is missing, unreadable or empty."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip(" \n\0") or None
    except OSError:
        return None


def number(path: Path) -> int | None:
    """Return an attribute as a whole number; None if it is missing or not a whole number."""
    try:
        return int(text(path) or "")
    except ValueError:
        return None


def binary(path: Path) -> bytes:
    """Return a binary attribute, such as a VPD page; empty if it is missing."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def exact_text(path: Path) -> str | None:
    """Return an attribute that is a path, byte for byte without its line end; None if it is missing or empty."""
    return os.fsdecode(binary(path)).removesuffix("\n") or None


def find_selected(words: str | None) -> str | None:
    """Return the word in brackets: ``none`` for ``mq-deadline [none]``. A text without brackets is returned
    unchanged.
    """
    if words is None or "[" not in words:
        return words
    return words.partition("[")[2].partition("]")[0]


def device_number(folder: Path) -> int | None:
    """Return the device number of a node's folder; None if it has none."""
    major, _, minor = (text(folder / "dev") or "").partition(":")
    return os.makedev(int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else None


def major_minor_of(device: int) -> str:
    """Return a device number in the kernel's form: ``259:0``."""
    return f"{os.major(device)}:{os.minor(device)}"


def process_fields(process: Path) -> list[str]:
    """Return the fields of ``/proc/PID/stat`` from the third on (proc(5)); empty if there is no such process.

    The command in parentheses before these fields may contain spaces and parentheses.
    """
    return (text(process / "stat") or "").rpartition(")")[2].split()


def find_node(major_minor: str, sys_root: Path = SYS_ROOT) -> Path:
    """Return the sysfs folder of a block device or partition."""
    return (sys_root / "dev/block" / major_minor).resolve()


def find_disk(node: Path) -> Path:
    """Return the sysfs folder of the whole disk to which a node (perhaps a partition) belongs."""
    resolved = node.resolve()
    return resolved.parent if (resolved / "partition").exists() else resolved


def find_parts(node: Path) -> tuple[Path, ...]:
    """Return a node and, for a whole disk, its partitions."""
    resolved = node.resolve()
    return (resolved, *sorted(entry.parent for entry in resolved.glob("*/partition")))


def find_zone_model(node: Path) -> str | None:
    """Return how the disk of a node is zoned: ``none``, ``host-aware`` or ``host-managed``; None if not known."""
    return text(find_disk(node) / "queue/zoned")


def takes_discards(node: Path) -> bool:
    """Return whether the kernel passes discards (TRIM, UNMAP) to the disk of a node."""
    return bool(number(find_disk(node) / "queue/discard_max_bytes"))


def takes_flushes(node: Path) -> bool:
    """Return whether the kernel sends flushes to the disk of a node. A cache that writes through receives none
    (Documentation/block/writeback_cache_control.rst in Linux).
    """
    return text(find_disk(node) / "queue/write_cache") != "write through"


def find_pci_function(node: Path) -> Path | None:
    """Return the nearest PCI function above a disk: the NVMe drive itself, or the host adapter."""
    for folder in (node.resolve(), *node.resolve().parents):
        if (folder / "class").exists() and (folder / "subsystem").resolve().name == "pci":
            return folder
    return None


def find_nvme_controller(disk: Path) -> Path | None:
    """Return the folder of the controller of an NVMe namespace; with multipath, that of its first path."""
    device = (disk / "device").resolve()
    if (device / "transport").exists():
        return device
    paths = sorted(entry for entry in device.glob("nvme[0-9]*") if (entry / "transport").exists())
    return paths[0].resolve() if paths else None


def udev_properties(major_minor: str) -> dict[str, str]:
    """Return the properties that udev's rules found for a device; empty without udev."""
    try:
        database = Path(f"/run/udev/data/b{major_minor}").read_text("utf-8", errors="replace")
    except OSError:
        return {}
    pairs = (line[2:].partition("=") for line in database.splitlines() if line.startswith("E:"))
    return {key: value for key, _, value in pairs}


def wait_until(
    is_done: Callable[[], bool], *, limit_s: float, every_s: float, progress: Callable[[], object] = lambda: None
) -> bool:
    """Ask repeatedly until the condition is true. Return False if this takes longer than the limit.

    Args:
        progress: a function that is called after ``is_done``. The limit starts again whenever its result changes.
    """
    last, since_s = progress(), monotonic()
    while not is_done():
        if (now := progress()) != last:
            last, since_s = now, monotonic()
        if monotonic() - since_s > limit_s:
            return False
        sleep(every_s)
    return True
