"""The targets of a run: a drive with its permit, or segments of a drive.

On some drives, tkperf measures only segments (docs/adr/0027). A linear mapping joins the segments. fio writes to and
reads from the mapping. All I/O therefore reaches only the segments, and a random access reaches each place in the
segments with the same probability. While the mapping exists, it has the kernel's claim on the drive. During this time,
preconditioning writes to the drive itself.
"""

from __future__ import annotations

import mmap
import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile

from tkperf.device.device_mapper import NAME_PREFIX, Mapping, Target, create_mapping
from tkperf.device.identity import DeviceIdentity, file_system_of
from tkperf.device.permit import ErasePermit, SetPermit, grant_set_permit
from tkperf.device.purge import PurgeMethod, PurgeWatch, run_purge
from tkperf.device.sysfs import SECTOR_BYTES, SYS_ROOT, find_node, wait_until
from tkperf.device.write_cache import WriteCache
from tkperf.model.errors import DeviceError, reason_of
from tkperf.model.input_files import is_there
from tkperf.model.record import NO_PURGE, OnNote, OnProgress, PurgeResult
from tkperf.model.segments import Segments
from tkperf.model.units import MIB, format_capacity

NOT_PURGED = PurgeResult(method=NO_PURGE, note="--no-purge")
# The longest wait until a mapping is removed. udev may keep the mapping open for a moment, and the kernel removes the
# mapping when udev closes it.
GONE_LIMIT_S = 30.0


class DriveTarget:
    """A drive or file as the target of one run."""

    def __init__(self, permit: ErasePermit, method: PurgeMethod | None, cache: WriteCache) -> None:
        """Store the permit for this run. ``method`` is None if the user does not want a purge."""
        self._permit = permit
        self._method = method
        self._cache = cache

    @property
    def can_purge(self) -> bool:
        """Return whether a purge of this target has any effect."""
        return self._method is not None

    def recheck(self) -> None:
        self._permit.recheck()

    def make_ready_to_fill(self) -> None:
        """Do nothing, because a drive is always ready."""

    def make_ready(self, *, on_progress: OnProgress) -> None:
        """Do nothing, because a drive is always ready."""

    def purge(self, *, on_progress: OnProgress, on_note: OnNote) -> PurgeResult:
        if self._method is None:
            return NOT_PURGED
        watch = PurgeWatch(progress=on_progress, note=on_note)
        verified = run_purge(self._permit, self._method, watch=watch)
        # The erase may have reset the settings of the drive, so tkperf sets the write cache again.
        self._cache.apply()
        return PurgeResult(method=self._method.title, note=verified)


class SegmentMapping:
    """The mapping that joins the segments of a permitted drive. This class creates and removes the mapping."""

    def __init__(self, drive: ErasePermit, segments: Segments) -> None:
        self.drive = drive
        self._segments = segments
        self._mapping: Mapping | None = None
        self._name = mapping_name(drive.identity)

    def find_path(self) -> str:
        """Return the device node of the current mapping."""
        if self._mapping is None:
            raise DeviceError(f"{self.drive.identity.path}: the segments are not mapped at the moment")
        return str(self._mapping.node)

    def create(self) -> None:
        """Map the segments. The exclusive hold on the drive passes to the mapping. Nothing is written.

        For some milliseconds, neither tkperf nor the mapping holds the drive. If another program claims the drive in
        this time, the kernel refuses to create the mapping.

        Raises:
            RefusedError: other programs use the drive.
            DeviceError: the drive was removed, or the kernel does not create the mapping.
        """
        identity = self.drive.identity
        table = build_table(self._segments, identity.major_minor or "")
        self.drive.lend(shared=True)
        try:
            self._mapping = create_mapping(self._name, table)
        except DeviceError as error:
            raise DeviceError(
                f"{identity.path}: tkperf cannot create the device-mapper mapping of the segments: {error}. Nothing "
                "more is written"
            ) from error
        self.drive.lent_to = self._mapping.node.name

    def remove(self) -> None:
        """Remove the mapping if it exists.

        Raises:
            DeviceError: another program keeps the mapping open.
        """
        if self._mapping is None:
            return
        mapping, self._mapping = self._mapping, None
        mapping.let_go()
        node = SYS_ROOT / "dev/block" / mapping.number
        if not wait_until(lambda: not is_there(node), limit_s=GONE_LIMIT_S, every_s=0.01):
            raise DeviceError(
                f"another program still uses {mapping.node}, the mapping of the segments of "
                f"{self.drive.identity.path}. Find the program with 'fuser -v {mapping.node}'. When the "
                "program closes the mapping, the kernel removes the mapping, and the drive is free"
            )


def mapping_name(drive: DeviceIdentity) -> str:
    """Return the name of the mapping, which contains the kernel's name of the drive: ``tkperf-segments-nvme0n1``."""
    return f"{NAME_PREFIX}segments-{find_node(drive.major_minor or '').name}"


def build_table(segments: Segments, major_minor: str) -> tuple[Target, ...]:
    """Return a device-mapper table, in sectors, that joins the segments of a device in their order."""
    length = segments.length_bytes // SECTOR_BYTES
    return tuple(
        Target(number * length, length, "linear", f"{major_minor} {start // SECTOR_BYTES}")
        for number, start in enumerate(segments.starts_bytes)
    )


class SegmentsTarget:
    """The segments of a drive as the target of a run. tkperf purges the whole drive. For preconditioning and
    measurement, it maps the segments.

    No set has to be created between preconditioning and measurement, so a load that waits for the end of a fill can
    start immediately.
    """

    def __init__(self, mapping: SegmentMapping, drive: DriveTarget) -> None:
        """Create the mapping for the first time.

        Raises:
            RefusedError, DeviceError: the same errors as in ``SegmentMapping.create``.
        """
        self._mapping = mapping
        self._drive = drive
        mapping.create()
        try:
            self.permit: SetPermit = grant_set_permit(mapping.find_path, (mapping.drive,))
        except BaseException:
            mapping.remove()
            raise

    def recheck(self) -> None:
        self._drive.recheck()
        if self.permit.is_made:
            self.permit.recheck()

    def make_ready_to_fill(self) -> None:
        """Map the segments. The mapping remains for the steps after the fill."""
        self._map()

    def make_ready(self, *, on_progress: OnProgress) -> None:
        """Map the segments, unless the mapping already exists."""
        self._map()

    def purge(self, *, on_progress: OnProgress, on_note: OnNote) -> PurgeResult:
        """Purge the whole drive. During the purge, tkperf holds the drive itself instead of the mapping."""
        if self._drive.can_purge and self.permit.is_made:
            self.take_away()
            self._mapping.drive.take_back()
        return self._drive.purge(on_progress=on_progress, on_note=on_note)

    def take_away(self) -> None:
        """Release the mapping, and remove it if it exists.

        Raises:
            DeviceError: another program keeps the mapping open.
        """
        self.permit.release()
        self._mapping.remove()

    def _map(self) -> None:
        if not self.permit.is_made:
            self._mapping.create()
            self.permit.made()


# The unit of st_blocks in bytes. The unit does not depend on the block size of the file system.
_STAT_BLOCK_BYTES = 512


def plan_file_target(path: Path) -> int:
    """Check that a file target can be created. Return the smallest block for direct I/O on this file, in bytes.

    The check creates a small file without a name in the same folder, so no file remains even if tkperf is killed.

    Raises:
        DeviceError: the name is in use, or no file of this kind can be created in the folder.
    """
    if os.path.lexists(path):
        raise _exists(path)
    try:
        with TemporaryFile(dir=path.parent, prefix=".tkperf-") as probe:
            probe.write(bytes(mmap.PAGESIZE))
            probe.flush()
            name = f"/proc/self/fd/{probe.fileno()}"
            return find_direct_io_block_bytes(name, called=str(path))
    except OSError as error:
        raise DeviceError(f"the scratch file {path} cannot be created: {reason_of(error)}") from error


def create_file_target(path: Path, size_bytes: int, *, written: bool = False) -> tuple[int, int]:
    """Create a file with all its blocks allocated. The function does not change an existing file.

    Args:
        written: whether to fill the blocks with random data. Reads of blocks that are only allocated cause no I/O.

    Returns:
        The device and the inode of the file. These numbers identify the file even if another file has the same name
        later.

    Raises:
        DeviceError: the file already exists or cannot be created, or the file system has too little free space.
    """
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        raise DeviceError(f"the scratch file {path} cannot be created: {reason_of(error)}") from error
    try:
        os.posix_fallocate(descriptor, 0, size_bytes)
        for start in range(0, size_bytes if written else 0, MIB):
            os.write(descriptor, os.urandom(min(MIB, size_bytes - start)))
        os.fsync(descriptor)
        status = os.fstat(descriptor)
    except OSError as error:
        made = os.fstat(descriptor)
        remove_file_target(path, (made.st_dev, made.st_ino))
        raise DeviceError(
            f"{format_capacity(size_bytes)} cannot be reserved for the scratch file {path}: {reason_of(error)}"
        ) from error
    finally:
        os.close(descriptor)
    return (status.st_dev, status.st_ino)


def find_shortage(path: Path) -> tuple[int, int] | None:
    """If a file system has too little free space to write a whole file, return how many bytes are necessary and how
    many bytes are free.

    The holes of a sparse file are allocated only when they are written. None means that the free space is sufficient,
    that the file system does not report its free space, or that the path is not a regular file.
    """
    try:
        status = path.stat()
        free_bytes = shutil.disk_usage(path).free
    except (OSError, ValueError):
        return None
    needed_bytes = status.st_size - status.st_blocks * _STAT_BLOCK_BYTES
    if not stat.S_ISREG(status.st_mode) or needed_bytes <= free_bytes:
        return None
    return needed_bytes, free_bytes


def _exists(path: Path) -> DeviceError:
    if path.is_dir():
        return DeviceError(f"{path} is a directory. Pass the path of a file in this directory")
    if is_dangling(path):
        return DeviceError(f"{describe_dangling(path)}. Remove the link, or name the file itself")
    return DeviceError(
        f"{path} already exists. Omit --size to use the existing file. The run then erases the content of this file"
    )


def is_dangling(path: Path) -> bool:
    """Return whether a path is a link whose target does not exist."""
    return path.is_symlink() and not is_there(path)


def describe_dangling(path: Path) -> str:
    """Return a text that describes a link and the missing target of the link."""
    return f"{path} is a link to {path.readlink()}, which does not exist"


def remove_file_target(path: Path, inode: tuple[int, int] | None) -> None:
    """Remove a scratch file that tkperf created, unless another file now has its name."""
    with suppress(OSError):
        status = path.lstat()
        if (status.st_dev, status.st_ino) == inode:
            path.unlink()


def find_direct_io_block_bytes(path: str, *, called: str | None = None) -> int:
    """Return the smallest block for direct I/O on a file: 512 bytes, or 4096 on a 4Kn drive.

    Args:
        called: the name of the file in messages, if the name differs from the path.

    Raises:
        DeviceError: the file system does not support direct I/O, or the read fails.
    """
    reason = ""
    for block_bytes in (512, 4096):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
            try:
                # An anonymous map is aligned to a page, which direct I/O requires.
                page = memoryview(mmap.mmap(-1, mmap.PAGESIZE))
                os.preadv(descriptor, [page[:block_bytes]], 0)
            finally:
                os.close(descriptor)
        except OSError as error:
            reason = reason_of(error)
        else:
            return block_bytes
    file_system = file_system_of(Path(path)) or "present"
    raise DeviceError(
        f"{called or path} cannot be read with direct I/O ({reason}), because the {file_system} file system does "
        "not support direct I/O. Without direct I/O, tkperf would measure the page cache. Put the file on another "
        "file system, such as ext4 or xfs"
    )
