"""What is asked about when users are looked for: all numbers that stand for one target.

A whole disk stands for its partitions, too, a partition for its disk, a loop device for what is
behind it, a drive for its other paths and its SCSI and NVMe character devices. Nothing is compared
by name.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tkperf.device.sysfs import (
    device_number,
    find_disk,
    find_node,
    find_nvme_controller,
    find_parts,
    number,
    text,
)
from tkperf.device.usage.loops import FileId, Loop


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Everything that counts as the target.

    Attributes:
        nodes: sysfs folders of block devices by their device numbers.
        beneath: the same of what RAID sets, volumes and other layers of the target lie on. They are
            claimed by those layers, so that only users without a claim count.
        exact: those of ``nodes`` that are written to: the target, and what lies under it.
        characters: names of character devices of the same drive by their numbers.
        files: what regular files are called in messages, by device and inode.
        bases: the same by the last part of their paths, where the kernel tells no more.
        paths: where each of the files can be found.
        readers_count: whether somebody who only reads is a user, too.
    """

    nodes: Mapping[int, Path] = field(default_factory=dict)
    beneath: Mapping[int, Path] = field(default_factory=dict)
    exact: tuple[int, ...] = ()
    characters: Mapping[int, str] = field(default_factory=dict)
    files: Mapping[FileId, str] = field(default_factory=dict)
    bases: Mapping[str, str] = field(default_factory=dict)
    paths: Mapping[FileId, Path] = field(default_factory=dict)
    readers_count: bool = False

    @property
    def devices(self) -> tuple[Path, ...]:
        """All block devices, claimed by a layer above or not."""
        return (*self.nodes.values(), *self.beneath.values())

    def name_of(self, status: os.stat_result) -> str | None:
        """What a file or node is called if it is part of the target."""
        kind = stat.S_IFMT(status.st_mode)
        if kind == stat.S_IFREG:
            return self.files.get((status.st_dev, status.st_ino))
        if kind == stat.S_IFBLK:
            return self.name_of_device(status.st_rdev)
        return self.characters.get(status.st_rdev) if kind == stat.S_IFCHR else None

    def name_of_path(self, path: str | os.PathLike[str]) -> str | None:
        """The same for what a path leads to.

        Raises:
            OSError: it leads nowhere.
        """
        return self.name_of(os.stat(path))

    def name_of_device(self, device: int) -> str | None:
        node = self.nodes.get(device) or self.beneath.get(device)
        return node.name if node else None

    def name_of_base(self, base: str) -> str | None:
        """What has this last part of a path."""
        named = (node.name for node in self.devices if node.name == base)
        return self.bases.get(base) or next(named, None)

    def is_part(self, loop: Loop) -> bool:
        """Whether a loop device is the target itself or lies under it."""
        return loop.number in self.nodes or loop.number in self.beneath

    def name_behind(self, loop: Loop) -> str | None:
        """What part of the target is behind a loop device."""
        if loop.backing_device is not None:
            return self.name_of_device(loop.backing_device)
        return self.files.get(loop.backing) if loop.backing else None


def find_device_subject(major_minor: str, loops: tuple[Loop, ...], sys_root: Path) -> Subject:
    """A block device with all that belongs to it, down to what is behind loop devices."""
    layers = _Layers(loops, sys_root)
    layers.add(os.makedev(*map(int, major_minor.split(":"))), claimed=False)
    disks = {find_disk(folder) for folder in (*layers.nodes.values(), *layers.beneath.values())}
    return Subject(
        nodes=layers.nodes,
        beneath=layers.beneath,
        exact=tuple(layers.exact),
        characters=_character_devices(disks),
        files=layers.files,
        bases={layers.paths[file].name: name for file, name in layers.files.items()},
        paths=layers.paths,
    )


@dataclass(slots=True)
class _Layers:
    """What a subject is collected in, layer by layer downwards."""

    loops: tuple[Loop, ...]
    sys_root: Path
    nodes: dict[int, Path] = field(default_factory=dict)
    beneath: dict[int, Path] = field(default_factory=dict)
    exact: list[int] = field(default_factory=list)
    claimed: set[int] = field(default_factory=set)
    files: dict[FileId, str] = field(default_factory=dict)
    paths: dict[FileId, Path] = field(default_factory=dict)

    def add(self, device: int, *, claimed: bool) -> None:
        """Add a device and the layers under it; ``claimed`` if the layer above has a claim on it."""
        if device in (self.claimed if claimed else self.exact):
            return
        if claimed:
            self.claimed.add(device)
        else:
            self.exact.append(device)
        node = find_node(f"{os.major(device)}:{os.minor(device)}", self.sys_root)
        disk = find_disk(node)
        layer = self.beneath if claimed else self.nodes
        # Where sysfs does not have it, its number still stands for it.
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

    def _add_behind(self, loop: Loop) -> None:
        if loop.backing_device is not None:
            self.add(loop.backing_device, claimed=False)
        elif loop.backing is not None:
            self.files[loop.backing] = f"the file behind {loop.name}"
            self.paths[loop.backing] = Path(loop.says)


def _related(node: Path, disk: Path, sys_root: Path) -> list[Path]:
    """Partitions, the whole disk, and the same drive by other paths."""
    related = [*find_parts(node), disk, *_overlapping(node, disk)]
    for alias in find_other_paths(disk, sys_root):
        related += find_parts(alias)
    return related


def find_other_paths(disk: Path, sys_root: Path) -> list[Path]:
    """Other disks of the kernel with the same world-wide name: the same drive by another path."""

    def name_of(folder: Path) -> str | None:
        return text(folder / "wwid") or text(folder / "device/wwid")

    own = name_of(disk)
    if own is None:
        return []
    others = (entry.resolve() for entry in sorted((sys_root / "block").glob("*")))
    return [other for other in others if other != disk and name_of(other) == own]


def _overlapping(partition: Path, disk: Path) -> list[Path]:
    """Other partitions that share sectors with a partition: a damaged or hybrid table has such."""

    def sectors(folder: Path) -> tuple[int, int]:
        start = number(folder / "start") or 0
        return start, start + (number(folder / "size") or 0)

    if partition == disk:
        return []
    first, end = sectors(partition)
    others = (other for other in find_parts(disk)[1:] if other != partition)
    return [other for other in others if sectors(other)[0] < end and first < sectors(other)[1]]


def _character_devices(disks: set[Path]) -> dict[int, str]:
    """SCSI generic nodes and NVMe controllers: they write past the block device, with no claim."""
    folders: list[Path] = []
    for disk in disks:
        for pattern in ("device/scsi_generic/*", "device/bsg/*", "device/ng*n*"):
            folders += disk.glob(pattern)
        controller = find_nvme_controller(disk)
        if controller is not None:
            folders += [controller, *controller.glob("ng*n*")]
    numbers = ((device_number(folder), folder.name) for folder in folders)
    return {device: name for device, name in numbers if device is not None}
