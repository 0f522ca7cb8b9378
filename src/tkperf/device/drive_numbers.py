"""The numbers by which a drive identifies itself, and the other disks of this host that report the same
serial number.
"""

from __future__ import annotations

import os
from pathlib import Path

from tkperf.device.sysfs import SYS_ROOT, binary, number, text, udev_properties
from tkperf.model.same_device import is_unique_name


def read_serial(disk: Path, properties: dict[str, str]) -> str | None:
    """Return the serial number from NVMe, virtio, the SCSI page of the unit serial number, udev, or the UUID of an MD
    set.
    """
    page = binary(disk / "device/vpd_pg80")[4:]
    return (
        text(disk / "device/serial")
        or text(disk / "serial")
        or page.decode("ascii", errors="replace").strip(" \0")
        or properties.get("ID_SERIAL_SHORT")
        or (text(disk / "md/uuid") if disk.name.startswith("md") else None)
        or None
    )


def read_wwn(disk: Path, properties: dict[str, str]) -> str | None:
    """Return the world-wide name from NVMe, SCSI, or udev."""
    return text(disk / "wwid") or text(disk / "device/wwid") or properties.get("ID_WWN")


def read_unit(disk: Path) -> str | None:
    """Return the part of a drive that the kernel shows as this disk: a namespace, a LUN, or a boot area of eMMC.

    Several such parts may have the same serial number, for example the two bays of a USB dock.
    """
    if (namespace := number(disk / "nsid")) is not None:
        return f"namespace {namespace}"
    _, boot, area = disk.name.partition("boot")
    if disk.name.startswith("mmcblk") and boot:
        return f"boot area {area}"
    if (disk / "device/scsi_level").exists():
        address = os.path.realpath(disk / "device").rpartition("/")[2].split(":")
        if len(address) == 4 and address[-1].isdecimal():  # host:channel:target:LUN
            return f"LUN {address[-1]}"
    return None


def find_distinction(disk: Path, *, sys_root: Path = SYS_ROOT) -> str | None:
    """Return what an answer must contain besides the serial number of a disk, so that the answer fits no other disk of
    this host.

    This is the unit, if no other disk with that serial number has the same unit, otherwise the
    world-wide name, otherwise the kernel's name of the disk. Return None if the serial number is
    enough: no other disk reports it, or the other disks are units of the drive, each of which has
    its own distinction.
    """
    own = udev_properties(text(disk / "dev") or "")
    serial, unit, wwn = read_serial(disk, own), read_unit(disk), read_wwn(disk, own)
    if serial is None:
        return None
    others = []
    for entry in sorted((sys_root / "block").glob("*")):
        other = entry.resolve()
        device = text(other / "dev")
        # A disk without a node in /dev is a path of a multipath drive.
        if other == disk.resolve() or device is None:
            continue
        properties = udev_properties(device)
        if read_serial(other, properties) == serial:
            others.append((read_unit(other), read_wwn(other, properties)))
    # The same unit on another path of the drive contains the same data.
    others = [pair for pair in others if pair != (unit, wwn) or not is_unique_name(wwn)]
    if not others:
        return None
    if all(other_unit != unit for other_unit, _ in others):
        return None if unit is None else unit.replace(" ", "-")
    if wwn is not None and all(other_wwn != wwn for _, other_wwn in others):
        return wwn.replace(" ", "-")
    return disk.name
