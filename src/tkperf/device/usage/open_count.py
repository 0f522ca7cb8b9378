"""What the kernel says of a regular file as a whole: open at all, in use as swap space.

It counts who has a file open, in whatever way: processes of other users and containers, loop
devices and other parts of the kernel, memory maps, descriptors on their way through a socket. It
gives a write lease (fcntl(2), F_SETLEASE) only to who is alone with a file, so asking for one tells.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import signal
import time
from dataclasses import dataclass

from tkperf.device.usage.loops import FileId

# What was closed by a process that ended may take a moment to go.
PATIENCE_S = 1.0
# Before, the kernel also counted who just looks at the name.
_COUNTS_SINCE = (5, 3)
# Their leases are promises of a server, refused for reasons of its own.
_SERVER_FILE_SYSTEMS = ("cifs", "smb3")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileState:
    """None is not known.

    Attributes:
        swap: the kernel uses it as swap space.
        open_elsewhere: somebody has it open, mapped or running, whoever that is.
    """

    swap: bool | None = None
    open_elsewhere: bool | None = None


def ask_file_state(
    path: str, file: FileId, *, count: bool, swap: bool, file_system: str | None
) -> FileState:
    """Ask about a file; nothing is written, its times stay.

    Args:
        file: its device and inode, in case the name leads to another one by now.
        count: whether to ask if others have it open; whoever asks must not have it open himself.
        swap: whether to ask if it is swap space, for which it has to be opened for writing.
        file_system: the type of the file system that it is on.
    """
    # An overlay would copy the file up, and has no swap files.
    swap = swap and file_system != "overlay"
    mode = os.O_WRONLY if swap else os.O_RDONLY
    try:
        descriptor = os.open(path, mode | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        # A program that runs, or somebody's lease.
        busy = error.errno in (errno.ETXTBSY, errno.EWOULDBLOCK)
        return FileState(open_elsewhere=True if busy else None)
    try:
        status = os.fstat(descriptor)
        if (status.st_dev, status.st_ino) != file:
            return FileState()
        count = count and file_system not in _SERVER_FILE_SYSTEMS
        return FileState(
            swap=_is_swap(descriptor) if swap else None,
            open_elsewhere=_is_open_elsewhere(descriptor) if count else None,
        )
    finally:
        os.close(descriptor)


def _is_swap(descriptor: int) -> bool | None:
    """The kernel refuses to write to swap space, even nothing (ETXTBSY, see write(2))."""
    try:
        os.pwrite(descriptor, b"", 0)
    except OSError as error:
        return True if error.errno == errno.ETXTBSY else None
    return False


def _is_open_elsewhere(descriptor: int) -> bool | None:
    version = re.match(r"(\d+)\.(\d+)", os.uname().release)
    if version is None or (int(version[1]), int(version[2])) < _COUNTS_SINCE:
        return None
    until_s = time.monotonic() + PATIENCE_S
    # Whoever opens the file in that instant would send SIGIO, which ends a process; SIGURG does not.
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
