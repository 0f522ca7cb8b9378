"""State of a regular file as a whole, from the kernel: open at all, in use as swap space.

The kernel counts all who have a file open, in any way: processes of other users and containers, loop
devices and other parts of the kernel, memory maps, descriptors on their way through a socket. It
gives a write lease (fcntl(2), F_SETLEASE) only to a process that is alone with a file, so the answer
to a request for one shows if others have it open.
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

# The files of a process that ended may take a moment to close.
PATIENCE_S = 1.0
# Kernels before this version also counted descriptors that only look at the name.
_COUNTS_SINCE = (5, 3)
# On these, a server grants leases, and may refuse them for its own reasons.
_SERVER_FILE_SYSTEMS = ("cifs", "smb3")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileState:
    """State of a file; None means not known.

    Attributes:
        swap: the kernel uses it as swap space.
        open_elsewhere: others have it open, mapped or running.
    """

    swap: bool | None = None
    open_elsewhere: bool | None = None


def ask_file_state(
    path: str, file: FileId, *, count: bool, swap: bool, file_system: str | None
) -> FileState:
    """Ask the kernel about a file; writes nothing, and its times stay.

    Args:
        file: its device and inode, in case the name leads to another file by now.
        count: ask if others have it open; the caller must not have it open.
        swap: ask if it is swap space, which needs it opened for writing.
        file_system: the type of its file system.
    """
    # An overlay would copy the file up, and has no swap files.
    swap = swap and file_system != "overlay"
    mode = os.O_WRONLY if swap else os.O_RDONLY
    try:
        descriptor = os.open(path, mode | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        # The file is a running program, or another process has a lease on it.
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
    """Return whether a file is swap space: the kernel refuses even empty writes (ETXTBSY, see write(2))."""
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
    # Another open of the file in that instant would send SIGIO, which ends a process; SIGURG does not.
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
