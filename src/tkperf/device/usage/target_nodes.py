"""The target in a search for users, with all device numbers that refer to the target.

A whole disk includes its partitions, and a partition includes its disk. A loop device includes the file or device that
it uses. A drive includes its other paths and its SCSI and NVMe character devices. tkperf compares numbers, not names,
except if the kernel reports only a name.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tkperf.device.sysfs import (
    SECTOR_BYTES,
    device_number,
    find_disk,
    find_node,
    find_nvme_controller,
    find_parts,
    major_minor_of,
    number,
    text,
)
from tkperf.device.usage.kernel import FileId, LoopDevice


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetNodes:
    """All devices and files that count as the target.

    Attributes:
        nodes: sysfs folders of block devices. The device number is the key.
        underlying: sysfs folders of the devices that RAID sets, volumes and mappings of the target use. The device
            number is the key. These sets, volumes and mappings have a claim on the devices, so tkperf ignores uses with
            a claim.
        exact: the numbers in ``nodes`` of the target itself and of the devices that the target uses. A write to the
            target reaches these devices.
        characters: names of character devices of the same drive. The device number is the key.
        files: names of regular files for messages. Device and inode are the key.
        bases: names of the files. The last part of the path is the key. These entries are used if the kernel shows only
            the last part of a path.
        paths: the path of each file.
        unasked: names of the target's loop devices whose driver did not report the file that they
            use.
    """

    nodes: Mapping[int, Path] = field(default_factory=dict)
    underlying: Mapping[int, Path] = field(default_factory=dict)
    exact: tuple[int, ...] = ()
    characters: Mapping[int, str] = field(default_factory=dict)
    files: Mapping[FileId, str] = field(default_factory=dict)
    bases: Mapping[str, str] = field(default_factory=dict)
    paths: Mapping[FileId, Path] = field(default_factory=dict)
    unasked: tuple[str, ...] = ()

    @property
    def devices(self) -> tuple[Path, ...]:
        """The sysfs folders of all block devices, even if a layer above has a claim on them."""
        return (*self.nodes.values(), *self.underlying.values())

    def name_of(self, status: os.stat_result) -> str | None:
        """Return the name of a file or node that is part of the target. None means that the file or node is not part of
        the target.
        """
        kind = stat.S_IFMT(status.st_mode)
        if kind == stat.S_IFREG:
            return self.files.get((status.st_dev, status.st_ino))
        if kind == stat.S_IFBLK:
            return self.name_of_device(status.st_rdev)
        return self.characters.get(status.st_rdev) if kind == stat.S_IFCHR else None

    def name_of_path(self, path: str) -> str | None:
        """Return the name of the file or node to which a path leads. None means that the path does not exist, or leads
        to no part of the target.
        """
        try:
            return self.name_of(os.stat(path))
        except (OSError, ValueError):
            return None

    def name_of_device(self, device: int) -> str | None:
        node = self.nodes.get(device) or self.underlying.get(device)
        return node.name if node else None

    def name_of_base(self, base: str) -> str | None:
        """Return the name of the part of the target whose path ends with ``base``. None means that there is no such
        part.
        """
        named = (node.name for node in self.devices if node.name == base)
        return self.bases.get(base) or next(named, None)

    def is_name_of_file(self, name: str) -> bool:
        """Return whether a name belongs to a file of the target.

        No other program may have this file open, while other programs may read a device.
        """
        return name in self.files.values()

    def is_part(self, loop: LoopDevice) -> bool:
        """Return whether a loop device is the target itself or a layer below the target."""
        return loop.number in self.nodes or loop.number in self.underlying

    def name_behind(self, loop: LoopDevice) -> str | None:
        """Return the name of the part of the target that a loop device uses. None means that the loop device uses no
        part of the target.
        """
        backing = loop.backing
        if backing is None:
            return None
        if backing.device is not None:
            return self.name_of_device(backing.device)
        return self.files.get(backing.file) if backing.file else None


def find_target_nodes(major_minor: str, loops: tuple[LoopDevice, ...], sys_root: Path) -> TargetNodes:
    """Return a block device and all devices and files that belong to it, including those that loop devices use."""
    layers = _Layers(loops, sys_root)
    layers.add(os.makedev(*map(int, major_minor.split(":"))), claimed=False)
    disks = {find_disk(folder) for folder in (*layers.nodes.values(), *layers.underlying.values())}
    return TargetNodes(
        nodes=layers.nodes,
        underlying=layers.underlying,
        exact=tuple(layers.exact),
        characters=_character_devices(disks),
        files=layers.files,
        bases={layers.paths[file].name: name for file, name in layers.files.items()},
        paths=layers.paths,
        unasked=tuple(layers.unasked),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRange:
    """The part of a file that a block device uses through loop devices.

    Attributes:
        loop: the loop device that uses the file.
        file: device and inode of the file. None means that the driver did not report them.
        path: the name of the file, as the kernel stored it.
    """

    loop: str
    file: FileId | None
    path: Path
    start_bytes: int
    length_bytes: int


def find_file_ranges(
    major_minor: str, capacity_bytes: int, loops: tuple[LoopDevice, ...], sys_root: Path
) -> Iterator[FileRange]:
    """Yield the parts of files that a block device uses. The block device may be a loop device, its
    partition, or a RAID set, volume or mapping that uses loop devices.

    Each member of a RAID set, volume or mapping counts as a whole, because tkperf does not read the
    layout of such sets.
    """

    def walk(device: int, start_bytes: int, length_bytes: int) -> Iterator[FileRange]:
        node = find_node(major_minor_of(device), sys_root)
        disk = find_disk(node)
        if node != disk:
            start_bytes += (number(node / "start") or 0) * SECTOR_BYTES
        for loop in loops:
            if loop.number not in (device, device_number(disk)):
                continue
            backing = loop.backing
            offset_bytes = start_bytes + (backing.offset_bytes if backing else 0)
            if backing is not None and backing.device is not None:
                yield from walk(backing.device, offset_bytes, length_bytes)
                continue
            yield FileRange(
                loop=loop.name,
                file=backing.file if backing is not None and loop.asked else None,
                path=Path(loop.says),
                start_bytes=offset_bytes,
                length_bytes=length_bytes,
            )
        for slave in sorted(disk.glob("slaves/*")):
            if (below := device_number(slave)) is not None:
                yield from walk(below, 0, (number(slave / "size") or 0) * SECTOR_BYTES)

    yield from walk(os.makedev(*map(int, major_minor.split(":"))), 0, capacity_bytes)


def find_written_layers(
    major_minor: str, loops: tuple[LoopDevice, ...], sys_root: Path
) -> tuple[tuple[Path, ...], FileRange | None]:
    """Return the places where the kernel counts or records each write that may reach a block device. A place is the
    sysfs folder of a device, or a file.

    The places belong to the device itself and, for a loop device or a partition of a loop device, to the devices and
    the file that the loop device uses. A write to another partition of this loop device is also counted, because it
    cannot be distinguished from a write to this partition. The members of a volume are not included, because other
    volumes may be on them.
    """
    folders: list[Path] = []
    device = os.makedev(*map(int, major_minor.split(":")))
    while True:
        node = find_node(major_minor_of(device), sys_root)
        folders.append(node)
        either = (device, device_number(find_disk(node)))
        loop = next((loop for loop in loops if loop.number in either), None)
        if loop is None or loop.backing is None:
            return tuple(folders), None
        if loop.backing.device is None:
            file = loop.backing.file
            end = FileRange(loop=loop.name, file=file, path=Path(loop.says), start_bytes=0, length_bytes=0)
            return tuple(folders), end
        device = loop.backing.device


@dataclass(slots=True)
class _Layers:
    """A collector that adds the layers of a target from top to bottom."""

    loops: tuple[LoopDevice, ...]
    sys_root: Path
    nodes: dict[int, Path] = field(default_factory=dict)
    underlying: dict[int, Path] = field(default_factory=dict)
    exact: list[int] = field(default_factory=list)
    claimed: set[int] = field(default_factory=set)
    files: dict[FileId, str] = field(default_factory=dict)
    paths: dict[FileId, Path] = field(default_factory=dict)
    unasked: list[str] = field(default_factory=list)

    def add(self, device: int, *, claimed: bool) -> None:
        """Add a device and the layers below it. ``claimed`` states whether the layer above has a claim on the
        device.
        """
        if device in (self.claimed if claimed else self.exact):
            return
        if claimed:
            self.claimed.add(device)
        else:
            self.exact.append(device)
        node = find_node(major_minor_of(device), self.sys_root)
        disk = find_disk(node)
        layer = self.underlying if claimed else self.nodes
        # If sysfs does not list the device, the device number is sufficient.
        layer.setdefault(device, node)
        for folder in _related(node, disk, self.sys_root):
            if (related := device_number(folder)) is not None:
                layer.setdefault(related, folder)
        for slave in sorted(disk.glob("slaves/*")):
            if (below := device_number(slave)) is not None:
                self.add(below, claimed=True)
        for loop in self.loops:
            if loop.number in (device, device_number(disk)):
                self._add_behind(loop)

    def _add_behind(self, loop: LoopDevice) -> None:
        if not loop.asked:
            self.unasked.append(loop.name)
        if loop.backing is None:
            return
        if loop.backing.device is not None:
            self.add(loop.backing.device, claimed=False)
        elif loop.backing.file is not None:
            self.files[loop.backing.file] = f"the file behind {loop.name}"
            self.paths[loop.backing.file] = Path(loop.says)


def _related(node: Path, disk: Path, sys_root: Path) -> list[Path]:
    """Return all nodes that share data with a node: its partitions, its whole disk, the partitions that overlap it, and
    other paths to the same drive.
    """
    related = [*find_parts(node), disk, *_overlapping(node, disk)]
    for alias in find_other_paths(disk, sys_root):
        related += find_parts(alias)
    return related


def find_other_paths(disk: Path, sys_root: Path) -> list[Path]:
    """Return other disks of this host with the same world-wide name, which are other paths to the same drive."""

    def name_of(folder: Path) -> str | None:
        return text(folder / "wwid") or text(folder / "device/wwid")

    own = name_of(disk)
    if own is None:
        return []
    others = (entry.resolve() for entry in sorted((sys_root / "block").glob("*")))
    return [other for other in others if other != disk and name_of(other) == own]


def _overlapping(partition: Path, disk: Path) -> list[Path]:
    """Return other partitions that share sectors with a partition. Such partitions exist in damaged or hybrid
    tables.
    """
    if partition == disk:
        return []
    disjoint = find_disjoint_partitions(partition, disk)
    return [other for other in find_parts(disk)[1:] if other not in (partition, *disjoint)]


def find_disjoint_partitions(node: Path, disk: Path) -> tuple[Path, ...]:
    """Return the partitions of a disk that share no sector with ``node``. ``node`` is a partition of this disk, or of
    the same drive on another path. For a whole disk, the result is empty.
    """
    if find_disk(node) == node:
        return ()

    def sectors(folder: Path) -> tuple[int, int]:
        start = number(folder / "start") or 0
        return start, start + (number(folder / "size") or 0)

    first, end = sectors(node)
    return tuple(part for part in find_parts(disk)[1:] if sectors(part)[0] >= end or sectors(part)[1] <= first)


def _character_devices(disks: set[Path]) -> dict[int, str]:
    """Return SCSI generic nodes and NVMe controllers by device number. Programs can write through them without the
    block device and without its claim.
    """
    folders: list[Path] = []
    for disk in disks:
        for pattern in ("device/scsi_generic/*", "device/bsg/*", "device/ng*n*"):
            folders += disk.glob(pattern)
        controller = find_nvme_controller(disk)
        if controller is not None:
            folders += [controller, *controller.glob("ng*n*")]
    numbers = ((device_number(folder), folder.name) for folder in folders)
    return {device: name for device, name in numbers if device is not None}
