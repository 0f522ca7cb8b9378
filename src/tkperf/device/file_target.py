"""Regular files as targets: real I/O without root or a spare drive."""

from __future__ import annotations

import mmap
import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile

from tkperf.device.identity import file_system_of
from tkperf.model.errors import DeviceError, reason_of
from tkperf.model.units import MIB, format_capacity

# Unit of st_blocks, whatever the file system's blocks are.
_STAT_BLOCK_BYTES = 512


def plan_file_target(path: Path) -> int:
    """Check that a scratch file could be created; return its smallest direct I/O block in bytes.

    The check creates a small file without a name in the same folder, so no file remains even if
    tkperf is killed.

    Raises:
        DeviceError: something has that name, or no such file can be created in the folder.
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
        raise DeviceError(f"cannot create the scratch file {path}: {reason_of(error)}") from error


def create_file_target(path: Path, size_bytes: int, *, written: bool = False) -> tuple[int, int]:
    """Create a file with all its blocks allocated. An existing file is never touched.

    Args:
        written: fill the blocks with random data; reads of blocks only allocated cause no I/O.

    Returns:
        Device and inode, as something else may have the file's name later.

    Raises:
        DeviceError: it exists, cannot be created, or the disk is too full.
    """
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        raise DeviceError(f"cannot create the scratch file {path}: {reason_of(error)}") from error
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
            f"cannot give the scratch file {path} {format_capacity(size_bytes)}: {reason_of(error)}"
        ) from error
    finally:
        os.close(descriptor)
    return (status.st_dev, status.st_ino)


def find_shortage(path: Path) -> tuple[int, int] | None:
    """Return the bytes still needed to write a whole file, and the fewer bytes that its file system has free.

    Holes of a sparse file are not allocated before they are written. None: there is room enough, or the file
    system cannot be asked, or the path is not a regular file.
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
        return DeviceError(f"{path} is a directory: name a file in it")
    if is_dangling(path):
        return DeviceError(f"{describe_dangling(path)}: remove the link, or name the file itself")
    return DeviceError(f"{path} exists already: omit --size to use it, which erases its content")


def is_dangling(path: Path) -> bool:
    """Return whether a path is a link to nothing."""
    return path.is_symlink() and not path.exists()


def describe_dangling(path: Path) -> str:
    """Describe a dangling link and its missing target."""
    return f"{path} is a link to {path.readlink()}, which does not exist"


def remove_file_target(path: Path, inode: tuple[int, int] | None) -> None:
    """Remove a scratch file made by tkperf, unless another file has taken its name."""
    with suppress(OSError):
        status = path.lstat()
        if (status.st_dev, status.st_ino) == inode:
            path.unlink()


def find_direct_io_block_bytes(path: str, *, called: str | None = None) -> int:
    """Return the smallest block of direct I/O on a file: 512 bytes, or 4096 on a 4Kn drive.

    Args:
        called: name of the file for messages, if that is not its path.

    Raises:
        DeviceError: the file system has no direct I/O, or the read fails.
    """
    reason = ""
    for block_bytes in (512, 4096):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
            try:
                # An anonymous map is aligned to a page, as direct I/O needs it.
                page = memoryview(mmap.mmap(-1, mmap.PAGESIZE))
                os.preadv(descriptor, [page[:block_bytes]], 0)
            finally:
                os.close(descriptor)
        except OSError as error:
            reason = reason_of(error)
        else:
            return block_bytes
    file_system = file_system_of(Path(path)) or "its"
    raise DeviceError(
        f"{called or path} cannot be read with direct I/O ({reason}): the {file_system} file system does not "
        "support it, and without it the page cache would be measured. Put the file on another file "
        "system (ext4, xfs)"
    )
