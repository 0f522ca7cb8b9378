"""Marks of the content of a device or file.

The marks differ after the content has changed, even if libblkid does not recognise the data.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tkperf.device.file_map import sync
from tkperf.device.identity import DeviceIdentity
from tkperf.device.sysfs import SECTOR_BYTES, SYS_ROOT, find_disk, number, text
from tkperf.device.usage.kernel import DEV_ROOT, find_loops, open_device, stat_named
from tkperf.device.usage.subject import Subject, find_device_subject, find_owned_layers
from tkperf.model.units import format_capacity

FIRST_BYTES, SAMPLE_BYTES = 1 << 20, 4096
# A hard disk needs about 10 ms for a sample.
SAMPLES, SAMPLES_OF_HARD_DISK = 1024, 256
# A worn drive may have one or two bad blocks. A drive that is failing needs many seconds for each
# error.
MOST_BAD_SAMPLES = 3
# Fields of /sys/block/DEVICE/stat (Documentation/block/stat.rst of Linux 6.1), from 0.
_WRITTEN_SECTORS, _DISCARDED_SECTORS = 6, 13


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteMarks:
    """What the kernel counts or notes when a program writes; reading these values costs nothing.

    Attributes:
        written_bytes: bytes written to the device, and to the devices below a loop device, since they exist;
            discarded bytes count, too. None for a file, or if the kernel does not count them.
        size_and_mtime: size and time of the last write (ns) of the file, or of the file behind a
            loop device; None if no file exists, or if its name no longer leads to the file.
        change_time_ns: its ctime, which a new name or owner also changes, and which no program can set.
    """

    written_bytes: int | None
    size_and_mtime: tuple[int, int] | None = None
    change_time_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Readings of the content of a device or file.

    Attributes:
        digest: of the beginning, of samples all over the device, and of its end.
        is_zero: the beginning and all samples read as zeros; a place that cannot be read may
            contain data.
        marks: taken before the samples, so that a change during the sampling is found as well.
    """

    digest: str
    is_zero: bool
    marks: WriteMarks


def read_content(
    descriptor: int, identity: DeviceIdentity, *, sys_root: Path = SYS_ROOT
) -> Content:
    """Read samples and marks of a held device or file.

    Raises:
        OSError: more than a few places cannot be read.
    """
    marks = read_write_marks(descriptor, identity, sys_root=sys_root)
    # A program that reaches the drive in another way (SCSI generic, a second path) bypasses the
    # page cache.
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    size_bytes = identity.capacity_bytes
    samples = SAMPLES_OF_HARD_DISK if identity.rotational else SAMPLES
    places = [(0, FIRST_BYTES)]
    places += [(size_bytes * index // samples, SAMPLE_BYTES) for index in range(1, samples)]
    places.append((max(0, size_bytes - SAMPLE_BYTES), SAMPLE_BYTES))
    digest = sha256()
    is_zero = True
    bad_samples = 0
    for place, count in places:
        try:
            data = os.pread(descriptor, count, place)
        except OSError:
            bad_samples += 1
            if bad_samples > MOST_BAD_SAMPLES:
                raise
            data = b"unreadable"
        digest.update(data)
        is_zero = is_zero and data.count(0) == len(data)
    return Content(digest=digest.hexdigest(), is_zero=is_zero, marks=marks)


def read_write_marks(
    descriptor: int, identity: DeviceIdentity, *, sys_root: Path = SYS_ROOT
) -> WriteMarks:
    """Read the kernel's counters and times of a held device or file.

    Raises:
        OSError: the kernel cannot write out data that was written to it.
    """
    # The kernel counts writes to the page cache of a device only when it writes them out.
    sync(descriptor)
    status = os.fstat(descriptor)
    if not stat.S_ISBLK(status.st_mode):
        return _marks_of_file(status, written_bytes=None)
    loops = find_loops(sys_root)
    _sync_other_nodes(find_device_subject(identity.major_minor or "", loops, sys_root), status)
    folders, file = find_owned_layers(identity.major_minor or "", loops, sys_root)
    behind = None
    if file is not None and file.file is not None:
        behind = stat_named(file.path, file.file)
    counts = [_written_bytes(folder) for folder in folders]
    known = [count for count in counts if count is not None]
    return _marks_of_file(behind, written_bytes=sum(known) if len(known) == len(counts) else None)


def _sync_other_nodes(subject: Subject, held: os.stat_result) -> None:
    """Make the kernel write out data that was written through other nodes of the drive: its
    partitions, or the whole disk.

    Each node has its own page cache. Data in that cache is not on the drive yet, so a reading
    through another node does not find the data.
    """
    for device in subject.nodes.keys() - {held.st_rdev}:
        descriptor = open_device(DEV_ROOT / subject.nodes[device].name, device)
        if descriptor is not None:
            try:
                sync(descriptor)
            finally:
                os.close(descriptor)


def describe_write(before: WriteMarks, now: WriteMarks) -> str | None:
    """Describe how another program has written to a device between two readings; None: no program
    has.
    """
    if before.written_bytes is not None and now.written_bytes is not None:
        written_bytes = now.written_bytes - before.written_bytes
        if written_bytes:
            return f"the kernel counts {format_capacity(written_bytes)} written or discarded"
    if before.size_and_mtime != now.size_and_mtime:
        return "the size of the file or the time of its last write has changed"
    return None


def describe_change(before: Content, now: Content) -> str | None:
    """Describe the change between two readings; None if nothing shows a change."""
    if before.digest != now.digest:
        return "samples of it have other content than before"
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


def _written_bytes(folder: Path) -> int | None:
    """Return the bytes written to or discarded on a device or partition; None if the kernel does not count them."""
    if number(find_disk(folder) / "queue/iostats") == 0:
        return None
    fields = (text(folder / "stat") or "").split()
    if len(fields) <= _WRITTEN_SECTORS:
        return None
    # Before Linux 4.18 discards counted as writes.
    sectors = [
        int(fields[place])
        for place in (_WRITTEN_SECTORS, _DISCARDED_SECTORS)
        if place < len(fields)
    ]
    return sum(sectors) * SECTOR_BYTES
