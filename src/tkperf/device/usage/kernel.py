"""Users of a device or file inside the kernel, which are not visible as processes: loop devices, swap space, exports,
locks and leases.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import signal
import stat
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tkperf.device.sysfs import device_number, exact_text, major_minor_of, text
from tkperf.device.usage.mounts import Mount, unescape
from tkperf.model.input_files import is_there

# Device and inode number of a file.
FileId = tuple[int, int]
DEV_ROOT = Path("/dev")
LOOP_GET_STATUS64 = 0x4C05
# struct loop_info64 in linux/loop.h. It begins with lo_device, lo_inode, lo_rdevice, lo_offset and lo_sizelimit.
_INFO = struct.Struct("=3Q 2Q 4I 64s 64s 32s 2Q")
DELETED = " (deleted)"
# Attributes in sysfs and configfs that contain the path of a device or file. The second value names the user of this
# device or file.
EXPORTED_PATHS = {
    "kernel/config/nvmet/subsystems/*/namespaces/*/device_path": "an NVMe target (nvmet)",
    "kernel/config/nvmet/subsystems/*/passthru/device_path": "an NVMe target (nvmet)",
    "kernel/config/target/core/*/*/udev_path": "a SCSI target (LIO)",
    "kernel/config/usb_gadget/*/functions/mass_storage.*/lun.*/file": "a USB gadget",
    "class/udc/*/device/gadget*/lun*/file": "a USB gadget",
    "kernel/scst_tgt/devices/*/filename": "a SCSI target (SCST)",
    "block/zram*/backing_dev": "zram, as its backing device",
}
LIO_INFO = "kernel/config/target/core/*/*/info"
RNBD_LINKS = "class/rnbd-server/ctl/devices/*/block_dev"
# Patterns for the texts of the drivers (target_core_file.c, target_core_iblock.c, target_core_pscsi.c).
_LIO_FILE = re.compile(r" File: (.+?)  Size: ", re.DOTALL)
_LIO_NUMBERS = re.compile(r"Major: (\d+) Minor: (\d+)")
_LIO_ADDRESS = re.compile(r"Channel ID: (\d+) Target ID: (\d+) LUN: (\d+) Host ID: (\d+)")
_MD_BITMAP = re.compile(r"^(md\S*) :|, file: (\S+)$", re.MULTILINE)
# The constants EROFS_SUPER_MAGIC_V1 and EROFS_SUPER_OFFSET of fs/erofs/erofs_fs.h.
_EROFS_MAGIC, _EROFS_OFFSET_BYTES = 0xE0F5E1E2.to_bytes(4, "little"), 1024
_NFS_OPEN = re.compile(r'superblock: "([0-9a-f]+):([0-9a-f]+):(\d+)"')
# Kernel modules that export devices, and the folders that show the exports of each module.
EXPORTING_MODULES = {
    "nvmet": "kernel/config/nvmet",
    "target_core_mod": "kernel/config/target",
    "usb_f_mass_storage": "kernel/config/usb_gadget",
}
# After a process has ended, the kernel may need this long to close the files of the process.
PATIENCE_S = 1.0
# Kernels before this version also counted descriptors that were opened only for the name (O_PATH).
_COUNTS_SINCE = (5, 3)
# On these file systems, the server grants leases. The server may refuse a lease although no program uses the file.
_SERVER_FILE_SYSTEMS = ("cifs", "smb3")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopBacking:
    """The file or device that a loop device reads and writes, as the loop driver reports it.

    Attributes:
        file: device and inode of the file. None means that the loop device uses a block device.
        device: device number of the block device. None means that the loop device uses a file.
        offset_bytes: the place in the file or device at which the loop device begins.
        size_limit_bytes: the size of the used part. 0 means the part up to the end of the file or device.
    """

    file: FileId | None
    device: int | None
    offset_bytes: int
    size_limit_bytes: int

    def __str__(self) -> str:
        if self.file is not None:
            what = f"inode {self.file[1]} on {major_minor_of(self.file[0])}"
        else:
            what = f"block device {major_minor_of(self.device or 0)}"
        limit = f", {self.size_limit_bytes} bytes of it" if self.size_limit_bytes else ""
        return f"{what} from byte {self.offset_bytes}{limit}"


@dataclass(frozen=True, slots=True)
class LoopDevice:
    """A loop device in use.

    Attributes:
        number: the device number of the loop device itself.
        backing: the file or device that the loop device uses. None means that this file or device is not known.
        says: the name of this file or device, as the kernel stored it, for messages.
        asked: whether the loop driver itself reported ``backing``. If not, tkperf found ``backing`` by its name.
    """

    name: str
    number: int
    backing: LoopBacking | None
    says: str
    asked: bool


def find_loops(sys_root: Path, dev_root: Path = DEV_ROOT) -> tuple[LoopDevice, ...]:
    """Return all loop devices that use a file or device."""
    loops = []
    for entry in sorted(sys_root.glob("block/loop*/loop/backing_file")):
        folder = entry.parent.parent
        number = device_number(folder)
        if number is not None:
            asked, says = ask_loop(dev_root / folder.name, number), exact_text(entry) or ""
            backing = _look_up(says) if asked is None else asked
            loops.append(LoopDevice(folder.name, number, backing, says, asked is not None))
    return tuple(loops)


def ask_loop(node: Path, number: int) -> LoopBacking | None:
    """Return the driver's report on the loop device with this number. None means that the driver does not answer."""
    descriptor = open_device(node, number)
    if descriptor is None:
        return None
    try:
        return ask_backing(descriptor)
    finally:
        os.close(descriptor)


def open_device(node: Path, number: int) -> int | None:
    """Open a node of the block device with this number for reading. Return None if the node is missing or belongs to
    another device.
    """
    try:
        descriptor = os.open(node, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    status = os.fstat(descriptor)
    if stat.S_ISBLK(status.st_mode) and status.st_rdev == number:
        return descriptor
    os.close(descriptor)
    return None


def ask_backing(descriptor: int) -> LoopBacking | None:
    """Return the backing of an open loop device or of its partition. None means that the device is not a loop device,
    or does not answer.

    In struct loop_info64, the kernel encodes device numbers (huge_encode_dev) in the same format as for stat.
    """
    try:
        answer = fcntl.ioctl(descriptor, LOOP_GET_STATUS64, bytes(_INFO.size))
    except OSError:
        return None
    device, inode, block_device, offset_bytes, size_limit_bytes = _INFO.unpack(answer)[:5]
    return LoopBacking(
        file=None if block_device else (device, inode),
        device=block_device or None,
        offset_bytes=offset_bytes,
        size_limit_bytes=size_limit_bytes,
    )


def _look_up(says: str) -> LoopBacking | None:
    """Return the backing to which the name in sysfs leads."""
    status = _find_status(says)
    if status is None:
        return None
    device = status.st_rdev if stat.S_ISBLK(status.st_mode) else None
    file = (status.st_dev, status.st_ino) if device is None else None
    return LoopBacking(file=file, device=device, offset_bytes=0, size_limit_bytes=0)


def stat_named(path: Path, file: FileId) -> os.stat_result | None:
    """Return the status of a file if this name leads to the file in tkperf's mount namespace. None means that the name
    leads to another file or to no file.

    The name of the file behind a loop device may have been removed, or a mount may hide the name.
    """
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status if (status.st_dev, status.st_ino) == file else None


def open_named(path: Path, file: FileId) -> int | None:
    """Open a regular file for reading. Return None if this name does not lead to the file, or if this process has no
    permission to read the file.
    """
    status = stat_named(path, file)
    # Opening a file that is not a regular file may have side effects.
    if status is None or not stat.S_ISREG(status.st_mode):
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    opened = os.fstat(descriptor)
    if (opened.st_dev, opened.st_ino) == file:
        return descriptor
    os.close(descriptor)
    return None


def _find_status(name: str) -> os.stat_result | None:
    """Return the status of a file whose name the kernel shows. The name may be the name of a deleted file. None means
    that the file no longer exists.
    """
    for path in (name, name.removesuffix(DELETED)):
        try:
            return os.stat(path)
        except (OSError, ValueError):
            continue
    return None


@dataclass(frozen=True, slots=True)
class Swap:
    """A file or device that is used as swap space. ``stat`` is None if the name cannot be resolved, for example because
    it is the name of a file in another namespace.
    """

    name: str
    stat: os.stat_result | None
    is_file: bool


def find_swaps(proc_root: Path) -> tuple[Swap, ...]:
    """Return the devices and files that are used as swap space. Each row of the kernel's list contains the escaped name
    and the kind.
    """
    rows = (row.split() for row in (exact_text(proc_root / "swaps") or "").split("\n")[1:])
    named = ((unescape(row[0]), row[1] != "partition") for row in rows if len(row) > 1)
    return tuple(Swap(name, _find_status(name), is_file) for name, is_file in named)


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """A use of a device or file inside the kernel. The kernel reports the path, the number or the SCSI address of the
    device or file.

    ``root`` is the root folder of a process in the mount namespace of the path. None means that the path is in tkperf's
    own namespace. ``superblock`` is the kernel's number of a file system that is mounted from a file without a loop
    device. ``offset_bytes`` is the beginning of this file system in the file.
    """

    user: str
    path: str | None = None
    root: Path | None = None
    device: int | None = None
    scsi_address: str | None = None
    superblock: str | None = None
    offset_bytes: int = 0

    def find_path(self) -> str | None:
        """Return a path that this process can open. None means that no such path exists, for example because the path
        is relative.
        """
        if self.path is None or not self.path.startswith("/"):
            return None
        ways = (self.path,) if self.root is None else (f"{self.root}{self.path}", self.path)
        return next((way for way in ways if os.path.exists(way)), None)

    def __str__(self) -> str:
        return f"{self.user} ({self.path})" if self.path else self.user


def find_exports(sys_root: Path, proc_root: Path, mounts: tuple[Mount, ...]) -> Iterator[Export]:
    """Yield all files and devices that the kernel exports or uses, even if an export is currently switched off."""
    for pattern, user in EXPORTED_PATHS.items():
        for attribute in sorted(sys_root.glob(pattern)):
            # SCST adds a second line, which states whether the value is the default.
            path = (exact_text(attribute) or "").split("\n")[0]
            if path.startswith("/"):
                yield Export(user=user, path=path)
    for attribute in sorted(sys_root.glob(LIO_INFO)):
        yield from _parse_lio(exact_text(attribute) or "")
    for link in sorted(sys_root.glob(RNBD_LINKS)):
        yield Export(user="a network block device server (rnbd)", device=device_number(link))
    array = ""
    for name, path in _MD_BITMAP.findall(exact_text(proc_root / "mdstat") or ""):
        array = name or array
        if path:
            yield Export(user=f"the MD RAID {array}, as its bitmap", path=unescape(path))
    for mount in mounts:
        if mount.kind == "erofs":
            yield _erofs(mount)


def _erofs(mount: Mount) -> Export:
    """Return how an erofs file system uses a file or block device. An erofs file system can be mounted from a file
    without a loop device.
    """
    options = dict(option.partition("=")[::2] for option in mount.options.split(","))
    offset = options.get("fsoffset", "")
    # Such a mount has no block device in the kernel. If the option fsid is used, the source is not a path.
    is_of_file = mount.major_minor.startswith("0:") and "fsid" not in options
    return Export(
        user=f"the erofs mounted at {mount.point}{mount.where}",
        path=mount.source,
        root=mount.process / "root",
        superblock=mount.major_minor if is_of_file else None,
        offset_bytes=int(offset) if offset.isdecimal() else 0,
    )


def holds_erofs(descriptor: int, offset_bytes: int) -> bool:
    """Return whether an erofs file system begins in a file at an offset. If the file cannot be read, return True."""
    try:
        magic = os.pread(descriptor, len(_EROFS_MAGIC), offset_bytes + _EROFS_OFFSET_BYTES)
    except OSError:
        return True
    return magic == _EROFS_MAGIC


def _parse_lio(info: str) -> Iterator[Export]:
    user = "a SCSI target (LIO)"
    for path in _LIO_FILE.findall(info):
        yield Export(user=user, path=path)
    for major, minor in _LIO_NUMBERS.findall(info):
        yield Export(user=user, device=os.makedev(int(major), int(minor)))
    for channel, target, unit, host in _LIO_ADDRESS.findall(info):
        yield Export(user=user, scsi_address=f"{host}:{channel}:{target}:{unit}")


def find_nfs_opens(proc_root: Path) -> set[tuple[int, int]]:
    """Return the numbers of the file system and the inode for each file that clients of the NFS server have open."""
    files = set()
    for states in proc_root.glob("fs/nfsd/clients/*/states"):
        for major, minor, inode in _NFS_OPEN.findall(text(states) or ""):
            files.add((os.makedev(int(major, 16), int(minor, 16)), int(inode)))
    return files


def find_silent_modules(sys_root: Path) -> list[str]:
    """Return loaded modules that may export devices, but whose exports are not visible because configfs is not
    mounted.
    """
    return [
        module
        for module, folder in EXPORTING_MODULES.items()
        if is_there(sys_root / "module" / module) and not is_there(sys_root / folder)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileUse:
    """The state of a file according to the kernel. None means that a value is not known.

    Attributes:
        swap: whether the kernel uses the file as swap space.
        open_elsewhere: whether other programs have the file open, mapped or running.
    """

    swap: bool | None = None
    open_elsewhere: bool | None = None


def ask_file_state(path: str, file: FileId, *, count: bool, swap: bool, file_system: str | None) -> FileUse:
    """Return what the kernel reports about a file. Nothing is written, and the times of the file do not change.

    Args:
        file: device and inode of the file. The function checks both, because the name may now lead to another file.
        count: whether to ask if other programs have the file open. The caller must not have the file open.
        swap: whether to ask if the file is swap space. For this question, the file is opened for writing.
        file_system: the type of the file system that contains the file.
    """
    # Opening a file of an overlay for writing would copy the file. An overlay contains no swap files.
    swap = swap and file_system != "overlay"
    mode = os.O_WRONLY if swap else os.O_RDONLY
    try:
        descriptor = os.open(path, mode | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        # The error means that the file is a running program, or that another process has a lease on the file.
        busy = error.errno in (errno.ETXTBSY, errno.EWOULDBLOCK)
        return FileUse(open_elsewhere=True if busy else None)
    try:
        status = os.fstat(descriptor)
        if (status.st_dev, status.st_ino) != file:
            return FileUse()
        count = count and file_system not in _SERVER_FILE_SYSTEMS
        return FileUse(
            swap=_is_swap(descriptor) if swap else None, open_elsewhere=is_open_elsewhere(descriptor) if count else None
        )
    finally:
        os.close(descriptor)


def _is_swap(descriptor: int) -> bool | None:
    """Return whether a file is swap space. The kernel refuses even empty writes to swap space (ETXTBSY, see
    write(2)).
    """
    try:
        os.pwrite(descriptor, b"", 0)
    except OSError as error:
        return True if error.errno == errno.ETXTBSY else None
    return False


def is_open_elsewhere(descriptor: int) -> bool | None:
    """Return whether a file is open through another descriptor in addition to this one. None means that the answer is
    not known.

    The kernel grants a write lease only if the file is not open elsewhere.
    """
    version = re.match(r"(\d+)\.(\d+)", os.uname().release)
    if version is None or (int(version[1]), int(version[2])) < _COUNTS_SINCE:
        return None
    until_s = time.monotonic() + PATIENCE_S
    # If another process opens the file at this moment, the kernel sends a signal. The default signal SIGIO would end
    # this process, but SIGURG does not.
    fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
    try:
        while True:
            try:
                fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            except OSError as error:
                if error.errno != errno.EAGAIN:
                    return None
                if time.monotonic() > until_s:
                    return True
                time.sleep(0.02)
            else:
                fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
                return False
    finally:
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, 0)
