"""A search for the drives of a batch by the names that the user gave: paths, links or serial numbers. The module opens
no drive for writing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tkperf.device.identity import read_serial
from tkperf.device.sysfs import SYS_ROOT, find_disk, find_node, major_minor_of, number, text, udev_properties
from tkperf.device.usage.kernel import DEV_ROOT, LoopDevice, find_loops
from tkperf.device.usage.target_nodes import TargetNodes, find_target_nodes
from tkperf.model.choices import SIMULATED
from tkperf.model.errors import DeviceError, TkperfError, UsageError, closest

# The greatest number of drives in a batch. No host has bays for more drives, and each drive needs a process.
MOST_DRIVES = 256
_MOST_LISTED = 8
_BY_ID = "disk/by-id"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDrive:
    """A drive that was found by its name.

    Attributes:
        path: the path of the drive or, if the drive has a fault, the name that the user gave.
        serial: the serial number, if the drive is a whole drive and reports one.
        fault: the reason why the batch cannot contain the drive. None means that no fault was found so far.
    """

    path: str
    serial: str | None = None
    fault: TkperfError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """The properties by which a drive is recognised. These properties are the same for all names of the drive.

    Attributes:
        status: the status of the file or device. None means that the name does not exist yet.
        disk: the whole disk in sysfs. None means that the target is a file. ``is_whole`` states whether the drive is
            the whole disk, and not a partition of the disk.
        serial: the serial number together with the model, because different models may have the same serial numbers.
    """

    name: str
    status: os.stat_result | None = None
    nodes: TargetNodes = field(default_factory=TargetNodes)
    disk: Path | None = None
    is_whole: bool = False
    wwn: str | None = None
    serial: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveFinder:
    """A finder of drives on this host. Relative paths start at ``folder``."""

    folder: Path
    sys_root: Path = SYS_ROOT
    dev_root: Path = DEV_ROOT

    def find(self, given: Sequence[tuple[str, bool]]) -> tuple[FoundDrive, ...]:
        """Return a drive for each name. If two names refer to the same drive, the later name has a fault.

        Args:
            given: the names. Each name is paired with a flag that states whether it is the name of a file that will be
                created.

        Raises:
            UsageError: there is no drive, or there are more drives than a host can have.
        """
        if not 1 <= len(given) <= MOST_DRIVES:
            many = f"{len(given):,} drives" if given else "no drive"
            raise UsageError(f"{many}: a batch has 1 to {MOST_DRIVES}")
        serials = self._read_serials()
        loops = find_loops(self.sys_root, self.dev_root)
        found: list[FoundDrive] = []
        earlier: list[tuple[int, _Place]] = []
        for place, (name, is_new) in enumerate(given, start=1):
            drive = self._find_one(name, serials, is_new=is_new)
            if drive.fault is None and not name.startswith(SIMULATED):
                located = self._locate(drive, loops)
                if located.serial is not None and located.is_whole:
                    drive = replace(drive, serial=located.serial[1])
                for other_place, other in earlier:
                    if same := _find_same(other, located):
                        both = f"{located.name} and drive {other_place}, {other.name}, {same}"
                        drive = replace(drive, fault=UsageError(both))
                        break
                earlier.append((place, located))
            found.append(drive)
        return tuple(found)

    def find_again(self, path: str, serial: str) -> str:
        """Return the present path of the whole drive with this serial number. The path differs from the given path if
        the kernel has renamed the drive.
        """
        place = self._locate(FoundDrive(path=path), ())
        if place.serial is not None and place.is_whole and place.serial[1] == serial:
            return path
        serials = self._read_serials()
        names = [name for name, other in serials if other == serial]
        if not names:
            raise self._none(serial, serials)
        if len(names) > 1:
            raise DeviceError(
                f"several devices report the serial number '{serial}': {', '.join(names)}. Write the path of "
                "the drive instead of the serial number"
            )
        return str(self.dev_root / names[0])

    def _find_one(self, given: str, serials: Sequence[tuple[str, str]], *, is_new: bool) -> FoundDrive:
        if given.startswith(SIMULATED):
            return FoundDrive(path=given)
        if "\0" in given:
            raise UsageError("a path or serial number cannot contain a zero byte")
        path = str(self.folder.absolute() / given)
        if "/" in given:
            return FoundDrive(path=path)
        nodes = [name for name, serial in serials if serial == given]
        by_id = self.dev_root / _BY_ID / given
        names = [str(self.dev_root / name) for name in nodes]
        names += [str(by_id)] if os.path.lexists(by_id) else []
        names += [path] if os.path.lexists(path) else []
        if len(names) == 1 or (is_new and not names):
            return FoundDrive(path=names[0] if names else path)
        fault = _several(given, names, of_drives=len(nodes) > 1) if names else self._none(given, serials)
        return FoundDrive(path=given, fault=fault)

    def _none(self, given: str, serials: Sequence[tuple[str, str]]) -> DeviceError:
        if os.path.lexists(self.dev_root / given):
            return DeviceError(
                f"no drive has the serial number '{given}', but a device has this name. Write {self.dev_root}/{given} "
                "to choose this device"
            )
        near = closest(given, [serial for _, serial in serials])
        found = [f"{serial} ({name})" for name, serial in serials]
        listed = ", ".join(found[:_MOST_LISTED]) or "none that reports one"
        more = f" and {len(found) - _MOST_LISTED} more" if len(found) > _MOST_LISTED else ""
        meant = f". Did you mean {near}?" if near else ""
        return DeviceError(
            f"no drive has the serial number '{given}', and no file has this name. The serial numbers of this host "
            f"are: {listed}{more}{meant}"
        )

    def _read_serials(self) -> list[tuple[str, str]]:
        """Return the kernel name and the serial number of each whole drive, without sets, volumes and loop devices."""
        serials = []
        for entry in sorted((self.sys_root / "block").glob("*")):
            disk = entry.resolve()
            is_layer = disk.name.startswith("loop") or any(disk.glob("slaves/*"))
            if is_layer or not number(disk / "size") or number(disk / "hidden"):
                continue
            serial = self._serial_of(disk)
            if serial is not None:
                serials.append((disk.name.replace("!", "/"), serial))
        return serials

    def _serial_of(self, disk: Path) -> str | None:
        return read_serial(disk, udev_properties(text(disk / "dev") or ""))

    def _locate(self, drive: FoundDrive, loops: tuple[LoopDevice, ...]) -> _Place:
        try:
            status = os.stat(drive.path)  # noqa: PTH116 # a name that no file system accepts raises ValueError
        except (OSError, ValueError):
            # The file will be created, or a later check reports that the drive is missing.
            return _Place(name=drive.path)
        if not stat.S_ISBLK(status.st_mode):
            files = {(status.st_dev, status.st_ino): drive.path}
            return _Place(name=drive.path, status=status, nodes=TargetNodes(files=files))
        major_minor = major_minor_of(status.st_rdev)
        node = find_node(major_minor, self.sys_root)
        disk = find_disk(node)
        serial = self._serial_of(disk)
        return _Place(
            name=drive.path,
            status=status,
            nodes=find_target_nodes(major_minor, loops, self.sys_root),
            disk=disk,
            is_whole=disk == node,
            wwn=text(disk / "wwid") or text(disk / "device/wwid"),
            serial=(text(disk / "device/model") or "", serial) if serial else None,
        )


def _find_same(one: _Place, other: _Place) -> str | None:
    """Return the property that two names share, as the end of a sentence about the two names. None means that the names
    refer to different drives.
    """
    if one.status is None or other.status is None:
        same = os.path.realpath(one.name) == os.path.realpath(other.name)
        return "are one file" if same else None
    if one.status.st_rdev and one.status.st_rdev == other.status.st_rdev:
        return "are one device"
    if one.disk is not None and one.disk == other.disk:
        return f"are on one drive, {one.disk.name}"
    if one.wwn is not None and one.wwn == other.wwn:
        return f"are two paths to one drive: both have the world-wide name {one.wwn}"
    if one.serial is not None and one.serial == other.serial:
        return f"have the same serial number, {one.serial[1]}: they are one drive, or cannot be distinguished"
    if shared := sorted(set(one.nodes.files) & set(other.nodes.files)):
        paths = {**one.nodes.paths, **other.nodes.paths}
        return f"are both on the file {paths[shared[0]]}" if shared[0] in paths else "are one file"
    names = {node.name for node in one.nodes.devices}
    common = sorted(names & {node.name for node in other.nodes.devices})
    return f"are both on {common[0]}" if common else None


def _several(given: str, names: Sequence[str], *, of_drives: bool) -> UsageError:
    listed = ", ".join(names[:_MOST_LISTED])
    if of_drives:
        return UsageError(
            f"{len(names)} devices report the serial number '{given}': {listed}. They may be several paths to one "
            "drive. Name one of them by its path"
        )
    return UsageError(f"'{given}' can mean any of {listed}. Name the drive by its path")
