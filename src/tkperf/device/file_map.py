"""Search for written data in a part of a file: the map of the file system shows where data was
written, and tkperf then reads these places.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from enum import StrEnum

from tkperf.model.units import MIB

# A file is read only up to this amount, which takes at most a minute on a hard disk.
READ_LIMIT_BYTES = 4 << 30
READ_BYTES = 4 * MIB
# File systems whose map (SEEK_DATA and SEEK_HOLE, see lseek(2)) lists all data that this machine
# wrote. Other file systems have no map, pass on the map of another machine or program, or had
# faults in the map. On these file systems, tkperf reads the whole file.
MAPPING_FILE_SYSTEMS = frozenset({"ext3", "ext4", "xfs", "btrfs", "f2fs", "bcachefs", "tmpfs"})
_ZEROS = bytes(READ_BYTES)


class PartContent(StrEnum):
    """The content of a part of a file."""

    NOTHING = "nothing but zeros"
    DATA = "data"
    UNKNOWN = "zeros as far as it was read"


def look_for_written_data(descriptor: int, *, start_bytes: int, end_bytes: int, file_system: str | None) -> PartContent:
    """Read all written data of a part of a file, up to the first byte that is not zero.

    No samples are taken: a part of the file is left out only if the file system reports that it was never written.
    Reading ends after ``READ_LIMIT_BYTES``.

    Args:
        file_system: type of the file system; None if not known.

    Raises:
        OSError: the file cannot be read.
    """
    # Only after this call does the map list data that other programs wrote and for which the file
    # system has allocated no place yet.
    sync(descriptor)
    # Reading puts bytes into the page cache, and some file systems take cached bytes for data.
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
                # Another program has shortened the file during the search.
                break
            if buffer[:count] != _ZEROS[:count]:
                return PartContent.DATA
            # The page cache should keep the user's files rather than these zeros.
            os.posix_fadvise(descriptor, place, count, os.POSIX_FADV_DONTNEED)
            place += count
            left_bytes -= count
    return PartContent.NOTHING


def sync(descriptor: int) -> None:
    """Make the kernel write out what other programs wrote to a file or device, so that no later
    write-out changes the file or device.

    Raises:
        OSError: the data cannot be written out.
    """
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EROFS, errno.ENOTSUP):
            raise


def _extents(descriptor: int, start_bytes: int, end_bytes: int, file_system: str | None) -> Iterator[tuple[int, int]]:
    """Yield the parts that may hold data."""
    if file_system not in MAPPING_FILE_SYSTEMS:
        yield start_bytes, end_bytes
        return
    place = start_bytes
    while place < end_bytes:
        try:
            data = os.lseek(descriptor, place, os.SEEK_DATA)
        except OSError as error:
            # The file contains no data from there to its end.
            if error.errno == errno.ENXIO:
                return
            raise
        if data >= end_bytes:
            return
        place = min(os.lseek(descriptor, data, os.SEEK_HOLE), end_bytes)
        yield data, place
