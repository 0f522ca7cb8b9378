"""Mounts in each mount namespace that tkperf can see, the folders of overlays, and the disks of the running system."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from uuid import UUID

from tkperf.device.sysfs import exact_text, find_disk, find_node, text, udev_properties
from tkperf.model.input_files import is_there

_OCTAL = re.compile(r"\\([0-7]{3})")
# Mount options that contain one folder each. The last two options exist since Linux 6.8.
_ONE_LAYER_OPTIONS = ("upperdir", "workdir", "lowerdir+", "datadir+")
_LOWER_LAYER = re.compile(r"(?:\\.|[^:\\])+", re.DOTALL)
# The mount points that the running system needs.
SYSTEM_MOUNT_POINTS = ("/", "/usr", "/var", "/boot", "/boot/efi", "/efi")
EFI_GLOBAL_VARIABLES = "8be4df61-93ca-11d2-aa0d-00e098032b8c"
_DEVICE_PATH_HARD_DRIVE = (4, 1)
_SIGNATURE_IS_GUID = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One row of mountinfo. The names contain no escape sequences.

    Attributes:
        root: the folder of the file system that is mounted.
        options: the options of the file system, still escaped, because names in the options may contain commas.
        process: a process of the mount namespace in which the mount was seen.
        seen_by: a description of this process. None means that the namespace is tkperf's own.
    """

    mount_id: int
    major_minor: str
    root: str
    point: str
    kind: str
    source: str
    options: str
    process: Path
    seen_by: str | None

    @property
    def where(self) -> str:
        """Words that follow the mount point in a message, with a leading space. The text is empty for tkperf's own
        namespace.
        """
        return f" in the mount namespace of {self.seen_by}" if self.seen_by else ""


def unescape(field: str) -> str:
    """Return a name without escape sequences. The kernel writes white space and backslashes as octal, such as
    ``\\040``.
    """
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), field)


def read_mounts(process: Path, seen_by: str | None) -> Iterator[Mount]:
    """Yield the mounts that a process sees. If the process has ended or tkperf has no permission to inspect it, yield
    nothing.
    """
    for row in (exact_text(process / "mountinfo") or "").split("\n"):
        before, _, after = row.partition(" - ")
        fields, rest = before.split(" "), after.split(" ")
        if len(fields) < 6 or len(rest) < 3 or not fields[0].isdecimal():
            continue
        yield Mount(
            mount_id=int(fields[0]),
            major_minor=fields[2],
            root=unescape(fields[3]),
            point=unescape(fields[4]),
            kind=rest[0],
            source=unescape(rest[1]),
            options=rest[2],
            process=process,
            seen_by=seen_by,
        )


def find_btrfs_members(sys_root: Path) -> Iterator[tuple[str, str]]:
    """For each device of each mounted btrfs, yield the name of the btrfs with the major:minor of the device.

    The mounts of a btrfs have their own device numbers, so mountinfo does not show the devices.
    """
    for node in sorted(sys_root.glob("fs/btrfs/*/devices/*")):
        major_minor = text(node.resolve() / "dev")
        if major_minor:
            yield node.parent.parent.name, major_minor


@dataclass(frozen=True, slots=True)
class MountedPath:
    """The place of a file: the kernel's number of the file system, the mount, and the path inside the file system."""

    mount: Mount
    inside: PurePosixPath

    @property
    def file_system(self) -> int:
        major, _, minor = self.mount.major_minor.partition(":")
        return os.makedev(int(major), int(minor))


def find_mounted_path(path: str | Path, mounts: Sequence[Mount], proc_root: Path) -> MountedPath | None:
    """Return the place to which a path leads. None means that the path cannot be opened, or that its mount is not
    visible.
    """
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        real = str((proc_root / f"self/fd/{descriptor}").readlink())
        facts = text(proc_root / f"self/fdinfo/{descriptor}") or ""
    except OSError:
        return None
    finally:
        os.close(descriptor)
    match = re.search(r"^mnt_id:\s*(\d+)$", facts, re.MULTILINE)
    for mount in mounts:
        if match and mount.mount_id == int(match[1]):
            try:
                below = PurePosixPath(real).relative_to(mount.point)
            except ValueError:
                return None
            return MountedPath(mount, PurePosixPath(mount.root) / below)
    return None


def find_layers(mounts: Sequence[Mount]) -> Iterator[tuple[Mount, str]]:
    """Yield each overlay with each of its folders. For eCryptfs, yield the folder that contains the encrypted files."""
    for mount in mounts:
        if mount.kind == "ecryptfs":
            yield mount, mount.source
        if mount.kind != "overlay":
            continue
        for option in mount.options.split(","):
            name, _, value = option.partition("=")
            if name in _ONE_LAYER_OPTIONS:
                yield mount, _without_backslashes(unescape(value))
            elif name == "lowerdir":
                yield from ((mount, folder) for folder in parse_lower_layers(value))


def parse_lower_layers(value: str) -> list[str]:
    """Return the folders in a text such as ``/a:/b``. A colon in a name is written as ``\\:``."""
    return [_without_backslashes(path) for path in _LOWER_LAYER.findall(unescape(value))]


def _without_backslashes(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value, flags=re.DOTALL)


def holds(overlay: Mount, layer: str, target: Path, mounts: Sequence[Mount], proc_root: Path) -> bool | None:
    """Return whether a file is in a folder of an overlay. None means that this can no longer be determined.

    The function compares the places of file and folder in their file system, so bind mounts make no difference. If
    these places are not known, it compares the folders above the file.
    """
    ways = [str(overlay.process / "root") + layer, layer]
    reachable = False
    for way in ways if layer.startswith("/") else []:
        try:
            folder = os.stat(way)
        except (OSError, ValueError):
            continue
        reachable = True
        here, there = (find_mounted_path(path, mounts, proc_root) for path in (target, way))
        if here is None or there is None:
            inside = any(os.path.samestat(above.stat(), folder) for above in target.parents)
        else:
            same = here.file_system == there.file_system
            inside = same and here.inside.is_relative_to(there.inside)
        if inside:
            return True
    return False if reachable else None


def shows(overlay: Mount, target: Path) -> bool:
    """Return whether an overlay shows a file at any path that ends like the file's own path.

    The names of an overlay's folders cannot be used if the folders were renamed, or if the names are relative to an
    unknown folder. In the overlay, a file of a lower or upper layer has the same inode number as in its layer.
    """
    root = str(overlay.process / "root") if overlay.seen_by else ""
    try:
        own = target.stat()
        for depth in range(1, len(target.parts)):
            name = Path(root + overlay.point, *target.parts[-depth:])
            try:
                shown = name.stat()
            except (FileNotFoundError, NotADirectoryError):
                continue
            same = (shown.st_ino, shown.st_size, shown.st_mtime_ns)
            if shown.st_dev != own.st_dev and same == (own.st_ino, own.st_size, own.st_mtime_ns):
                return True
    except (OSError, ValueError):
        return False
    return False


def find_system_disks(sys_root: Path, mounts: Iterable[Mount]) -> dict[Path, str]:
    """Return the sysfs folders of the whole disks that the running system uses or from which it was booted. Each folder
    is paired with the reason.

    The mounts of process 1 are used, because tkperf has other mounts if it runs in a chroot or container.
    """
    disks: dict[Path, str] = {}
    for mount in mounts:
        of_the_system = mount.seen_by is None or mount.process.name == "1"
        if of_the_system and mount.point in SYSTEM_MOUNT_POINTS:
            for disk in _disks_below(find_node(mount.major_minor, sys_root)):
                disks.setdefault(disk, f"the running system has {mount.point} on it")
    booted = _booted_partition(sys_root)
    if booted is not None:
        for partition in sorted(sys_root.glob("class/block/*/partition")):
            node = partition.parent.resolve()
            entry = udev_properties(text(node / "dev") or "").get("ID_PART_ENTRY_UUID")
            if entry is not None and entry.lower() == booted:
                disks.setdefault(find_disk(node), "the system was booted from it (UEFI)")
    return disks


def _disks_below(node: Path) -> Iterator[Path]:
    """Yield the physical disks below a node. The number of RAID, LVM and encryption layers between them is not
    limited.
    """
    if not is_there(node):
        return
    disk = find_disk(node)
    slaves = [*(node / "slaves").glob("*"), *(disk / "slaves").glob("*")]
    if not slaves:
        yield disk
    for slave in slaves:
        yield from _disks_below(slave.resolve())


def _booted_partition(sys_root: Path) -> str | None:
    """Return the GUID of the partition from which the firmware booted (UEFI 2.10, 3.1.3 and 10.3.5.1)."""
    variables = sys_root / "firmware/efi/efivars"
    try:
        # The first four bytes of a file in efivars are attributes.
        number = (variables / f"BootCurrent-{EFI_GLOBAL_VARIABLES}").read_bytes()[4:6]
        name = f"Boot{int.from_bytes(number, 'little'):04X}-{EFI_GLOBAL_VARIABLES}"
        option = (variables / name).read_bytes()[4:]
    except OSError:
        return None
    position = 6
    while option[position : position + 2] not in (b"\0\0", b""):
        position += 2
    position += 2
    while position + 4 <= len(option):
        length = int.from_bytes(option[position + 2 : position + 4], "little")
        if (option[position], option[position + 1]) == _DEVICE_PATH_HARD_DRIVE and length >= 42:
            node = option[position : position + length]
            return str(UUID(bytes_le=node[24:40])) if node[41] == _SIGNATURE_IS_GUID else None
        if length < 4:
            return None
        position += length
    return None
