"""The hold on a device or file. The hold begins before tkperf asks for consent, and ends after the last write. During
the hold, tkperf does not rely on the name of the device.

tkperf opens the device once by its name, without following a link. It then checks that this device is the device that
was shown to the user. All later actions (the search for data, fio, purge tools, each recheck) use the held descriptor,
as ``/proc/PID/fd/N``. If the name later leads to another device, tkperf neither reads nor writes that device.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tkperf.device.content import (
    READ_LIMIT_BYTES,
    Content,
    PartContent,
    Signature,
    describe_unknown_data,
    describe_write,
    find_signatures,
    look_for_written_data,
    read_content,
    read_write_marks,
)
from tkperf.device.identity import DeviceIdentity, TargetKind, file_system_of, identify, is_same_device, open_target
from tkperf.device.sysfs import PROC_ROOT, SYS_ROOT, device_number, find_node, find_parts, major_minor_of, wait_until
from tkperf.device.usage.kernel import find_loops, open_device, open_named
from tkperf.device.usage.processes import find_openers
from tkperf.device.usage.target_nodes import find_file_ranges
from tkperf.model.errors import DeviceError, RefusedError, reason_of
from tkperf.model.units import format_capacity

# The longest wait for the lock. udev locks a device while it reads the device.
LOCK_LIMIT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """A reference to a held device, for a program that changes the device.

    ``name`` is the name of the device in messages. ``path`` leads to the held device. The program inherits
    ``descriptors``, so that the lock lasts as long as the program writes.
    """

    name: str
    path: str
    descriptors: tuple[int, ...] = ()


class Hold:
    """A device or file that is open exclusively and locked.

    The lock belongs to a separate descriptor, the anchor. If another program needs the device for itself, the exclusive
    descriptor is closed, but the anchor stays open. ``exclusive`` is negative during this time. Programs that write
    inherit the anchor, so the lock lasts as long as they run, even if tkperf is killed. ``data`` contains the
    signatures that were found on the device before the first write. ``content`` is the first reading of the content.
    Later readings are compared with the first reading. None means that the content has not been read yet.
    """

    def __init__(self, identity: DeviceIdentity) -> None:
        """Open the device once by its name, compare the device with ``identity``, and lock it.

        Raises:
            DeviceError: the name now leads to another device.
            RefusedError: another program uses the device, the device cannot be opened for writing, or the device no
                longer exists.
        """
        self.identity = identity
        self.anchor = self.exclusive = -1
        self.data: tuple[Signature, ...] = ()
        self.content: Content | None = None
        try:
            self.exclusive = _open_exclusively(Path(identity.path), identity)
            self.anchor = os.open(_link(self.exclusive), os.O_RDONLY | os.O_CLOEXEC)
            self.require_same()
            self._lock()
        except BaseException:
            self.release()
            raise

    @property
    def is_open(self) -> bool:
        return self.anchor >= 0

    @property
    def is_lent(self) -> bool:
        return self.anchor >= 0 and self.exclusive < 0

    @property
    def path(self) -> str:
        """The path to the held device, for this process and its children."""
        return f"/proc/{os.getpid()}/fd/{self.anchor}"

    @property
    def handle(self) -> Handle:
        """The handle for a program that changes the device."""
        return Handle(name=self.identity.path, path=self.path, descriptors=self.descriptors)

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The descriptors that a writing program inherits: the lock and, unless another program currently uses the
        device exclusively, the exclusive claim.
        """
        return tuple(descriptor for descriptor in (self.anchor, self.exclusive) if descriptor >= 0)

    def require_same(self) -> None:
        """Check that the held device is the device that was shown to the user. Otherwise raise DeviceError."""
        require_shown(identify(self.anchor, Path(self.identity.path), again=True), self.identity)

    def kernel_name(self) -> str | None:
        """Return the kernel's node of the held block device. None means that the node is missing or belongs to another
        device.

        Only the kernel's node is used, because the owner of another folder could replace a node in that folder.
        """
        held = os.fstat(self.anchor)
        path = Path("/dev") / find_node(major_minor_of(held.st_rdev)).name
        try:
            named = path.lstat()
        except OSError:
            return None
        same = stat.S_ISBLK(named.st_mode) and named.st_rdev == held.st_rdev
        return str(path) if same else None

    def look(self) -> None:
        """Read the content of the device before the user is asked.

        Raises:
            DeviceError: the device cannot be read, so tkperf does not know which data would be lost.
        """
        self.content = self.read_content()
        self.data = self.find_data()

    def read_content(self) -> Content:
        """Return samples and the kernel's counters of writes, for a comparison with a later reading.

        Raises:
            DeviceError: the device cannot be read.
        """
        try:
            return read_content(self.anchor, self.identity)
        except OSError as error:
            raise self._unreadable(error) from error

    def describe_write(self) -> str | None:
        """Return a text that describes how another program has written to the device since the first reading. None
        means that there is no evidence of such a write.

        This method uses only the kernel's counters. Call the method before tkperf's own first write.

        Raises:
            DeviceError: the kernel cannot write out the data that is still in its cache.
        """
        if self.content is None:
            return None
        try:
            now = read_write_marks(self.anchor, self.identity)
        except OSError as error:
            raise self._unreadable(error) from error
        return describe_write(self.content.marks, now)

    def find_data(self) -> tuple[Signature, ...]:
        """Return the data found on the device: file systems, partition tables, members of sets, or data of any other
        kind.

        Raises:
            DeviceError: the device cannot be read, so tkperf does not know which data would be lost.
        """
        identity = self.identity
        if identity.kind is TargetKind.FILE:
            signatures = find_signatures({identity.path: self.path})
            return signatures or self._find_written(self.anchor, 0, identity.capacity_bytes, identity.path)
        places = {identity.path: self.path}
        with ExitStack() as opened:
            for partition in find_parts(find_node(identity.major_minor or ""))[1:]:
                node = Path("/dev") / partition.name
                number = device_number(partition)
                descriptor = None if number is None else open_device(node, number)
                if descriptor is not None:
                    opened.callback(os.close, descriptor)
                    # The path contains the number of this process. wipefs is another process, so /proc/self would
                    # show the descriptors of wipefs.
                    places[str(node)] = f"/proc/{os.getpid()}/fd/{descriptor}"
            signatures = find_signatures(places)
        return signatures or self._find_unknown_data()

    def _find_unknown_data(self) -> tuple[Signature, ...]:
        """Return data of an unknown kind that samples of a block device contain. For a loop device, the file behind it
        is also searched.
        """
        identity = self.identity
        if self.content is not None and not self.content.is_zero:
            return describe_unknown_data(identity.path, self.path)
        for part in find_file_ranges(
            identity.major_minor or "", identity.capacity_bytes, find_loops(SYS_ROOT), SYS_ROOT
        ):
            descriptor = None if part.file is None else open_named(part.path, part.file)
            if descriptor is None:
                kind = f"unreadable content of the file behind {part.loop}"
                return (Signature(device=identity.path, kind=kind, label=None, member=None),)
            try:
                end_bytes = part.start_bytes + part.length_bytes
                signatures = self._find_written(descriptor, part.start_bytes, end_bytes, str(part.path))
            finally:
                os.close(descriptor)
            if signatures:
                return signatures
        return ()

    def _find_written(self, descriptor: int, start_bytes: int, end_bytes: int, name: str) -> tuple[Signature, ...]:
        """Return the written data that a part of a file contains. The data can be of any kind."""
        try:
            written = look_for_written_data(
                descriptor,
                start_bytes=start_bytes,
                end_bytes=end_bytes,
                file_system=file_system_of(Path(_link(descriptor))),
            )
        except OSError as error:
            raise self._unreadable(error) from error
        if written is PartContent.DATA:
            return describe_unknown_data(self.identity.path, self.path)
        if written is PartContent.UNKNOWN:
            kind = f"more than {format_capacity(READ_LIMIT_BYTES)} of written space, and tkperf did not read the rest"
            return (Signature(device=name, kind=kind, label=None, member=None),)
        return ()

    def _unreadable(self, error: OSError) -> DeviceError:
        return DeviceError(f"tkperf cannot check whether {self.identity.path} contains data: {reason_of(error)}")

    def lend(self) -> None:
        """Release the exclusive claim on the device, but keep the lock."""
        os.close(self.exclusive)
        self.exclusive = -1

    def take_back(self) -> None:
        """Claim the device exclusively again, through the anchor.

        Raises:
            RefusedError: the device cannot be opened exclusively, for example because another program has opened it.
        """
        if self.exclusive < 0:
            self.exclusive = _open_exclusively(Path(_link(self.anchor)), self.identity)

    def release(self) -> None:
        """Release the device. The method may be called more than once."""
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.anchor = self.exclusive = -1

    def _lock(self) -> None:
        """Acquire the lock that udev respects. Otherwise udev would read the device each time that a program closes the
        device.
        """
        if not wait_until(self._try_lock, limit_s=LOCK_LIMIT_S, every_s=0.05):
            openers = ", ".join(find_openers(PROC_ROOT, os.fstat(self.anchor)))
            raise RefusedError(
                f"{self.identity.path} is locked by {openers or 'a process that is not visible here'}. A tkperf that "
                "was killed may have started this program. Wait until the program ends. Nothing was touched"
            )

    def _try_lock(self) -> bool:
        try:
            fcntl.flock(self.anchor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def require_shown(now: DeviceIdentity, shown: DeviceIdentity) -> None:
    """Check that two readings belong to the same device. Otherwise raise DeviceError."""
    if not is_same_device(now, shown):
        raise DeviceError(
            f"{shown.path} is no longer the device that tkperf showed (now {_who(now)}, previously {_who(shown)}), so "
            "tkperf writes nothing to it. Start again"
        )


def _link(descriptor: int) -> str:
    return f"/proc/self/fd/{descriptor}"


def _who(identity: DeviceIdentity) -> str:
    if identity.kind is TargetKind.FILE:
        inode = identity.inode[1] if identity.inode else "not known"
        return f"inode {inode}, {identity.capacity_bytes} bytes"
    behind = f", {identity.loop_backing}" if identity.loop_backing else ""
    return f"serial {identity.serial or 'not known'}, {identity.major_minor}{behind}"


def _open_exclusively(path: Path, identity: DeviceIdentity) -> int:
    """Open a device for writing. A block device is opened with O_EXCL, so that no program can mount the device while it
    is open. Raise RefusedError if the device cannot be opened.
    """
    block = identity.kind is TargetKind.BLOCK
    flags = os.O_RDWR | os.O_CLOEXEC | (os.O_EXCL if block else os.O_NONBLOCK)
    try:
        if str(path) == identity.path:
            return open_target(path, flags)
        return os.open(path, flags)
    except (OSError, DeviceError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        reason = str(error)
        if isinstance(cause, OSError):
            reason = "it is a link now" if cause.errno == errno.ELOOP else reason_of(cause)
        raise RefusedError(f"{identity.path} cannot be opened exclusively: {reason}. Nothing was touched") from error
