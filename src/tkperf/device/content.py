"""Marks of the content of a device or file. tkperf compares the marks of two readings to find out whether the content
has changed.

The marks show a write between two readings if the kernel counts or records the write, or if the write changes a sample.
The marks do not depend on whether libblkid recognises the data.
"""

from __future__ import annotations

import errno
import json
import mmap
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import Path

from tkperf.device.identity import DeviceIdentity
from tkperf.device.sysfs import SECTOR_BYTES, SYS_ROOT, device_number, find_disk, number, text
from tkperf.device.usage.kernel import DEV_ROOT, find_loops, open_device, stat_named
from tkperf.device.usage.target_nodes import (
    TargetNodes,
    find_disjoint_partitions,
    find_other_paths,
    find_target_nodes,
    find_written_layers,
)
from tkperf.model.errors import DeviceError, EngineError
from tkperf.model.units import MIB, format_capacity, on_one_line
from tkperf.system.process import Completed, find_program, run_command

# The greatest number of bytes that tkperf reads from a file. A hard disk needs up to a minute to read this amount.
READ_LIMIT_BYTES = 4 << 30
READ_BYTES = 4 * MIB
# File systems whose map (SEEK_DATA and SEEK_HOLE, see lseek(2)) lists all data that this machine wrote. Other file
# systems have no map, return the map of another machine or program, or have returned incomplete maps in the past. On
# these file systems, tkperf reads the whole file.
MAPPING_FILE_SYSTEMS = frozenset({"ext3", "ext4", "xfs", "btrfs", "f2fs", "bcachefs", "tmpfs"})
_ZEROS = bytes(READ_BYTES)


class PartContent(StrEnum):
    """The kinds of content that a part of a file can have."""

    NOTHING = "nothing but zeros"
    DATA = "data"
    UNKNOWN = "zeros as far as it was read"


def look_for_written_data(descriptor: int, *, start_bytes: int, end_bytes: int, file_system: str | None) -> PartContent:
    """Return what a part of a file contains: data, only zeros, or only zeros as far as the part was read.

    Reading ends at the first byte that is not zero, or after ``READ_LIMIT_BYTES``. The function does not rely on
    samples. It skips a section of the part only if the file system reports that this section was never written.

    Args:
        file_system: the type of the file system. None means that the type is not known.
    """
    # If another program has written data for which the file system has not yet allocated blocks, the map lists the data
    # only after this call.
    sync(descriptor)
    # Reading puts bytes into the page cache, and some file systems list cached bytes as data.
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    left_bytes = READ_LIMIT_BYTES
    buffer = memoryview(bytearray(READ_BYTES))
    for extent_start, extent_end in _extents(descriptor, start_bytes, end_bytes, file_system):
        place = extent_start
        while place < extent_end:
            if left_bytes <= 0:
                return PartContent.UNKNOWN
            wanted = min(READ_BYTES, extent_end - place, left_bytes)
            count = os.preadv(descriptor, [buffer[:wanted]], place)
            if not count:
                # Another program has shortened the file while this function read it.
                break
            if buffer[:count] != _ZEROS[:count]:
                return PartContent.DATA
            # Remove these zeros from the page cache, so that they do not displace the user's files from the cache.
            os.posix_fadvise(descriptor, place, count, os.POSIX_FADV_DONTNEED)
            place += count
            left_bytes -= count
    return PartContent.NOTHING


def sync(descriptor: int) -> None:
    """Make the kernel write out the data that other programs wrote to a file or device. Afterwards, such data can no
    longer change the content of the file or device.

    Raises:
        OSError: the data cannot be written out.
    """
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EROFS, errno.ENOTSUP):
            raise


def _extents(descriptor: int, start_bytes: int, end_bytes: int, file_system: str | None) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each section that may contain data."""
    if file_system not in MAPPING_FILE_SYSTEMS:
        yield start_bytes, end_bytes
        return
    place = start_bytes
    while place < end_bytes:
        try:
            data = os.lseek(descriptor, place, os.SEEK_DATA)
        except OSError as error:
            # This error means that the file contains no data after this place.
            if error.errno == errno.ENXIO:
                return
            raise
        if data >= end_bytes:
            return
        place = min(os.lseek(descriptor, data, os.SEEK_HOLE), end_bytes)
        yield data, place


FIRST_BYTES, SAMPLE_BYTES = 1 << 20, 4096
# A hard disk needs about 10 ms for each sample.
SAMPLES, SAMPLES_OF_HARD_DISK = 1024, 256
# A worn drive may have one or two bad blocks. A failing drive needs many seconds for each error, so sampling stops
# after this number of bad samples.
MOST_BAD_SAMPLES = 3
# Numbers of two fields of /sys/block/DEVICE/stat (Documentation/block/stat.rst of Linux 6.1), counted from 0.
_WRITTEN_SECTORS, _DISCARDED_SECTORS = 6, 13
# The counters are read again if another program writes to another partition during the reading. tkperf reads the
# counters no more than this number of times, which takes up to 0.1 s.
_MOST_READINGS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteMarks:
    """Values that the kernel counts or records when a program writes. Reading these values takes almost no time.

    Attributes:
        written_bytes: bytes written to the device, and to the devices that a loop device uses, since the kernel created
            them. Discarded bytes are included. For a partition, the number includes bytes written through the node of
            the whole disk and to overlapping partitions. None means that the target is a file, or that the kernel does
            not count these bytes.
        size_and_mtime: the size of the file, or of the file behind a loop device, and the time of its last write (ns).
            None means that there is no such file, or that its name leads to another file.
        change_time_ns: the ctime of this file, which a new name or owner also changes. No program can set the ctime.
    """

    written_bytes: int | None
    size_and_mtime: tuple[int, int] | None = None
    change_time_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The content of a device or file, represented by samples and marks.

    Attributes:
        digest: a digest of the beginning, of samples from the whole device, and of the end.
        is_zero: whether the beginning and all samples read as zeros. If a place cannot be read, the value is False,
            because this place may contain data.
        marks: the write marks. They are read before the samples, so that a change during the sampling is detected.
    """

    digest: str
    is_zero: bool
    marks: WriteMarks


def read_content(descriptor: int, identity: DeviceIdentity, *, sys_root: Path = SYS_ROOT) -> Content:
    """Return samples and marks of a held device or file.

    Raises:
        OSError: more than ``MOST_BAD_SAMPLES`` places cannot be read.
    """
    marks = read_write_marks(descriptor, identity, sys_root=sys_root)
    # The page cache may be outdated, because a program can write to the drive without this cache (SCSI generic, a
    # second path).
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    size_bytes = identity.capacity_bytes
    samples = SAMPLES_OF_HARD_DISK if identity.rotational else SAMPLES
    places = [(0, FIRST_BYTES)]
    places += [(size_bytes * index // samples, SAMPLE_BYTES) for index in range(1, samples)]
    places.append((max(0, size_bytes - SAMPLE_BYTES), SAMPLE_BYTES))
    digest = sha256()
    is_zero = True
    bad_samples = 0
    for _, data in read_samples(descriptor, places):
        if isinstance(data, OSError):
            bad_samples += 1
            if bad_samples > MOST_BAD_SAMPLES:
                raise data
            digest.update(b"unreadable")
            is_zero = False
        else:
            digest.update(data)
            is_zero = is_zero and data.count(0) == len(data)
    return Content(digest=digest.hexdigest(), is_zero=is_zero, marks=marks)


def read_samples(descriptor: int, places: Iterable[tuple[int, int]]) -> Iterator[tuple[int, bytes | OSError]]:
    """Read samples of a device or file. Yield the offset of each sample with its content, or with the
    error of the read.

    Args:
        descriptor: the descriptor may be open with ``O_DIRECT``. In this case, all offsets and counts
            must be multiples of a logical block.
        places: the offset and the number of bytes of each sample. The number is at most ``FIRST_BYTES``.
    """
    # With O_DIRECT, the memory must start at the beginning of a page.
    memory = memoryview(mmap.mmap(-1, FIRST_BYTES))
    for offset, count in places:
        try:
            length = os.preadv(descriptor, [memory[:count]], offset)
        except OSError as error:
            yield offset, error
        else:
            yield offset, bytes(memory[:length])


def read_write_marks(descriptor: int, identity: DeviceIdentity, *, sys_root: Path = SYS_ROOT) -> WriteMarks:
    """Return the kernel's counters and times for a held device or file."""
    # The kernel counts writes to a device's page cache only when the kernel writes them out.
    sync(descriptor)
    status = os.fstat(descriptor)
    if not stat.S_ISBLK(status.st_mode):
        return _marks_of_file(status, written_bytes=None)
    loops = find_loops(sys_root)
    _sync_other_nodes(find_target_nodes(identity.major_minor or "", loops, sys_root), status)
    folders, file = find_written_layers(identity.major_minor or "", loops, sys_root)
    behind = None
    if file is not None and file.file is not None:
        behind = stat_named(file.path, file.file)
    counts = [_written_bytes(folder, sys_root) for folder in folders]
    known = [count for count in counts if count is not None]
    return _marks_of_file(behind, written_bytes=sum(known) if len(known) == len(counts) else None)


def _sync_other_nodes(target: TargetNodes, held: os.stat_result) -> None:
    """Make the kernel write out data that was written through other nodes of the drive: its partitions, or the whole
    disk.

    Each node has its own page cache. Data in the cache of one node is not on the drive yet, so a read through another
    node does not return this data.
    """
    for device in target.nodes.keys() - {held.st_rdev}:
        descriptor = open_device(DEV_ROOT / target.nodes[device].name, device)
        if descriptor is not None:
            try:
                sync(descriptor)
            finally:
                os.close(descriptor)


def describe_write(before: WriteMarks, now: WriteMarks) -> str | None:
    """Return a text that describes how another program has written to a device between two readings. None means that
    there is no evidence of such a write.
    """
    if before.written_bytes is not None:
        if now.written_bytes is None:
            return "the kernel no longer counts the bytes that programs write to it"
        written_bytes = now.written_bytes - before.written_bytes
        if written_bytes > 0:
            return f"the kernel counts {format_capacity(written_bytes)} written or discarded"
        if written_bytes < 0:
            return "the kernel's counters of writes were reset"
    if before.size_and_mtime != now.size_and_mtime:
        return "the size of the file or the time of its last write has changed"
    return None


def describe_change(before: Content, now: Content) -> str | None:
    """Return a text that describes the change between two readings. None means that no change was found."""
    if before.digest != now.digest:
        return "the content of some samples has changed"
    written = describe_write(before.marks, now.marks)
    if written is None and before.marks.change_time_ns != now.marks.change_time_ns:
        return "the change time of the file (ctime) is different"
    return written


def _marks_of_file(status: os.stat_result | None, *, written_bytes: int | None) -> WriteMarks:
    if status is None:
        return WriteMarks(written_bytes=written_bytes)
    return WriteMarks(
        written_bytes=written_bytes,
        size_and_mtime=(status.st_size, status.st_mtime_ns),
        change_time_ns=status.st_ctime_ns,
    )


def _written_bytes(node: Path, sys_root: Path) -> int | None:
    """Return the number of bytes that may have been written to or discarded from a device or partition, through any
    node of the drive. None means that the kernel does not count these bytes.

    If a program writes through the node of the whole disk, the kernel counts the write only for the disk, although the
    write may reach a partition. All writes therefore count, except writes that the kernel counted for a partition
    elsewhere on the disk.
    """
    disk = find_disk(node)
    # A disk without a node in /dev is a path of a multipath drive. Without a node, no program can write through this
    # path.
    paths = [path for path in find_other_paths(disk, sys_root) if device_number(path) is not None]
    sectors = 0
    for path in (disk, *paths):
        counted = _count_sectors(path, find_disjoint_partitions(node, path))
        if counted is None:
            return None
        sectors += counted
    return sectors * SECTOR_BYTES


def _count_sectors(disk: Path, without: tuple[Path, ...]) -> int | None:
    """Return the number of sectors written to or discarded from a disk, without the sectors of the partitions in
    ``without``.

    Other programs may use these partitions. If the counters of the partitions change during a reading, the function
    reads all counters again.
    """
    if number(disk / "queue/iostats") == 0:
        return None
    for _ in range(_MOST_READINGS):
        before = [_read_sectors(partition) for partition in without]
        whole = _read_sectors(disk)
        others = [_read_sectors(partition) for partition in without]
        if before == others:
            break
    known = [count for count in others if count is not None]
    return None if whole is None or len(known) < len(others) else whole - sum(known)


def _read_sectors(folder: Path) -> int | None:
    """Return the number of sectors written to or discarded from a disk or partition, according to the kernel."""
    fields = (text(folder / "stat") or "").split()
    if len(fields) <= _WRITTEN_SECTORS:
        return None
    # Before Linux 4.18, the kernel counted discards as writes.
    return sum(int(fields[place]) for place in (_WRITTEN_SECTORS, _DISCARDED_SECTORS) if place < len(fields))


CONTENT_LIMIT_S = 60.0
# The question that asks for consent contains at most this number of characters of a text from a device or file.
_MOST_CHARACTERS = 200
# libblkid's names for members of sets. If one member is erased, the data of the whole set may be lost.
MEMBER_TYPES = {
    "LVM2_member": "LVM physical volume",
    "LVM1_member": "LVM physical volume",
    "zfs_member": "ZFS pool member",
    "bcache": "bcache device",
    "ceph_bluestore": "Ceph OSD",
    "drbd": "DRBD device",
    "mpath_member": "multipath member",
    "stratis": "Stratis pool member",
    "VMFS_volume_member": "VMFS member",
}
RAID_SUFFIX = "_raid_member"
# The superblock of btrfs is 64 KiB from the start. The number of devices is at byte 0x88 of the superblock.
BTRFS_DEVICES_OFFSET = 0x10000 + 0x88


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """Data found on a device. ``member`` names the set (RAID, volume group, pool) if the data is part of a set."""

    device: str
    kind: str
    label: str | None
    member: str | None

    def __str__(self) -> str:
        named = f" '{self.label}'" if self.label else ""
        return f"{self.member or self.kind}{named} on {self.device}"


def find_signatures(places: Mapping[str, str]) -> tuple[Signature, ...]:
    """Return all signatures that libblkid finds on a disk and its partitions, or in a file.

    Args:
        places: the paths to read. The keys are the names that messages use for these paths.
    """
    signatures: list[Signature] = []
    for name, path in places.items():
        try:
            done = run_command(["wipefs", "--json", "--no-act", path], timeout_s=CONTENT_LIMIT_S)
            if done.exit_status != 0:
                reason = _quote(done.stderr.replace(path, name))
                raise DeviceError(f"tkperf cannot check whether {name} contains data: {reason}")
            listed = json.loads(done.stdout or '{"signatures": []}')["signatures"]
        except EngineError as error:
            raise DeviceError(f"tkperf cannot check whether {name} contains data: {error}") from error
        except (ValueError, KeyError, TypeError):
            raise DeviceError(
                f"tkperf cannot check whether {name} contains data, because wipefs did not print a list of signatures"
            ) from None
        # A partition table has several signatures with the same meaning, so they are merged.
        kinds = {str(entry["type"]): entry.get("label") for entry in listed}
        signatures += [
            Signature(
                device=name,
                kind=_quote(kind),
                label=None if label is None else _quote(str(label)),
                member=_member(kind, path),
            )
            for kind, label in kinds.items()
        ]
    return tuple(signatures)


def describe_unknown_data(name: str, path: str) -> tuple[Signature, ...]:
    """Return a description of data that libblkid does not recognise. The program ``file`` may recognise the data.

    Args:
        name: the name of the device or file for messages.
        path: the path to read.
    """
    kind = "data of no known kind"
    if find_program("file") is not None:
        try:
            answer = run_command(
                ["file", "--brief", "--dereference", "--special-files", path], timeout_s=CONTENT_LIMIT_S
            )
        except EngineError:
            answer = Completed(exit_status=1, stdout="", stderr="")
        recognised = _quote(answer.stdout)
        if answer.exit_status == 0 and recognised not in ("", "data"):
            kind = f"data that looks like {recognised}"
    return (Signature(device=name, kind=kind, label=None, member=None),)


def _quote(text: str) -> str:
    """Return a text from a device or file as one short line that can be printed.

    Other people may have written the labels and titles. The user of ``on-host`` may also have no permission to read the
    file.
    """
    return on_one_line(text)[:_MOST_CHARACTERS]


def _member(kind: str, path: str) -> str | None:
    if kind.endswith(RAID_SUFFIX):
        name = "MD" if kind == "linux_raid_member" else kind.removesuffix(RAID_SUFFIX)
        return f"{name} RAID member"
    if kind == "btrfs" and _btrfs_devices(path) > 1:
        return "member of a btrfs over several devices"
    return MEMBER_TYPES.get(kind)


def _btrfs_devices(path: str) -> int:
    try:
        with Path(path).open("rb") as device:
            device.seek(BTRFS_DEVICES_OFFSET)
            return int.from_bytes(device.read(8), "little")
    except OSError:
        return 1
