"""Functions that read the kernel's description of block devices (sysfs) and udev's database, and a loop that waits for
changes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

from tkperf.model.input_files import is_there

SYS_ROOT = Path("/sys")
PROC_ROOT = Path("/proc")
# The unit of the kernel's sizes and offsets. It does not depend on the sector size of the device.
SECTOR_BYTES = 512
# Values of ``queue/zoned`` (Documentation/ABI/stable/sysfs-block of Linux 6.1). The zones of a host-managed disk accept
# only sequential writes. A host-aware disk accepts all writes, but may be slow if they are not sequential.
HOST_MANAGED, HOST_AWARE = "host-managed", "host-aware"


def text(path: Path) -> str | None:
    """Return an attribute without surrounding white space. None means that the attribute is missing, unreadable or
    empty.
    """
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip(" \n\0") or None
    except OSError:
        return None


def is_scsi(disk: Path) -> bool:
    """Return whether the SCSI layer drives a disk, as it drives SATA, SAS and USB drives. ``disk`` is the folder of the
    disk in sysfs.

    Raises:
        OSError: sysfs does not answer.
    """
    return is_there(disk / "device/scsi_level")


def number(path: Path) -> int | None:
    """Return an attribute as an integer. None means that the attribute is missing or not an integer."""
    try:
        return int(text(path) or "")
    except ValueError:
        return None


def binary(path: Path) -> bytes:
    """Return a binary attribute, such as a VPD page. An empty value means that the attribute is missing."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def exact_text(path: Path) -> str | None:
    """Return an attribute that is a path, unchanged except for the final line break. None means that the attribute is
    missing or empty.
    """
    return os.fsdecode(binary(path)).removesuffix("\n") or None


def find_selected(words: str | None) -> str | None:
    """Return the word in brackets, such as ``none`` in ``mq-deadline [none]``. If the text contains no brackets, return
    the whole text.
    """
    if words is None or "[" not in words:
        return words
    return words.partition("[")[2].partition("]")[0]


def device_number(folder: Path) -> int | None:
    """Return the device number in a node's folder. None means that the folder contains no number."""
    major, _, minor = (text(folder / "dev") or "").partition(":")
    return os.makedev(int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else None


def major_minor_of(device: int) -> str:
    """Return a device number in the kernel's form, such as ``259:0``."""
    return f"{os.major(device)}:{os.minor(device)}"


def process_fields(process: Path) -> list[str]:
    """Return the fields of ``/proc/PID/stat``, beginning with the third field (proc(5)). The result is empty if the
    process does not exist.

    The first two fields are omitted, because the name of the command may contain spaces and parentheses.
    """
    return (text(process / "stat") or "").rpartition(")")[2].split()


def find_node(major_minor: str, sys_root: Path = SYS_ROOT) -> Path:
    """Return the sysfs folder of a block device or partition."""
    return (sys_root / "dev/block" / major_minor).resolve()


def find_disk(node: Path) -> Path:
    """Return the sysfs folder of the whole disk to which a node belongs. The node may be a partition."""
    resolved = node.resolve()
    return resolved.parent if is_there(resolved / "partition") else resolved


def find_parts(node: Path) -> tuple[Path, ...]:
    """Return a node in sysfs. If the node is a whole disk, also return its partitions."""
    resolved = node.resolve()
    return (resolved, *sorted(entry.parent for entry in resolved.glob("*/partition")))


def find_zone_model(node: Path) -> str | None:
    """Return how the disk of a node is zoned: ``none``, ``host-aware`` or ``host-managed``. None means that the kernel
    does not report how the disk is zoned.
    """
    return text(find_disk(node) / "queue/zoned")


def takes_discards(node: Path) -> bool:
    """Return whether the kernel passes discards (TRIM, UNMAP) to the disk of a node."""
    return bool(number(find_disk(node) / "queue/discard_max_bytes"))


def takes_flushes(node: Path) -> bool:
    """Return whether the kernel sends flushes to the disk of a node. A disk with a write-through cache receives no
    flushes (Documentation/block/writeback_cache_control.rst in Linux).
    """
    return text(find_disk(node) / "queue/write_cache") != "write through"


def find_pci_function(node: Path) -> Path | None:
    """Return the nearest PCI function above a disk, which is the NVMe drive itself or the host adapter."""
    for folder in (node.resolve(), *node.resolve().parents):
        if is_there(folder / "class") and (folder / "subsystem").resolve().name == "pci":
            return folder
    return None


def find_nvme_controller(disk: Path) -> Path | None:
    """Return the folder of an NVMe namespace's controller. With multipath, return the controller of the first path."""
    device = (disk / "device").resolve()
    if is_there(device / "transport"):
        return device
    paths = sorted(entry for entry in device.glob("nvme[0-9]*") if is_there(entry / "transport"))
    return paths[0].resolve() if paths else None


def udev_properties(major_minor: str) -> dict[str, str]:
    """Return the properties that udev's rules determined for a device. An empty value means that udev has no data about
    the device.
    """
    try:
        database = Path(f"/run/udev/data/b{major_minor}").read_text("utf-8", errors="replace")
    except OSError:
        return {}
    pairs = (line[2:].partition("=") for line in database.splitlines() if line.startswith("E:"))
    return {key: value for key, _, value in pairs}


def wait_until(
    is_done: Callable[[], bool], *, limit_s: float, every_s: float, progress: Callable[[], object] = lambda: None
) -> bool:
    """Call ``is_done`` repeatedly until the result is True. Return False if this takes longer than the limit.

    Args:
        progress: a function that is called after ``is_done``. Whenever its result changes, the time limit starts again.
    """
    last, since_s = progress(), monotonic()
    while not is_done():
        if (now := progress()) != last:
            last, since_s = now, monotonic()
        if monotonic() - since_s > limit_s:
            return False
        sleep(every_s)
    return True
