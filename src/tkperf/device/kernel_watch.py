"""Facts from the kernel about a device during a run. The facts are lines of the kernel log, and the I/O counters that a
separate thread reads.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tkperf.device.identity import DeviceIdentity
from tkperf.device.sysfs import SECTOR_BYTES, SYS_ROOT, find_disk
from tkperf.model.disturbance.io import Counts, DeviceLook
from tkperf.model.input_files import is_there

# tkperf compares the byte counts of fio with the kernel's counters at the same moment. With an interval of 0.02 s
# between readings, this comparison is exact enough.
LOOK_EVERY_S = 0.02
# Inside a step, an event is relevant only if it lasts at least a fiftieth of the step. Each reading of the counters
# takes CPU time from a load that uses all CPUs. With 16 outstanding I/Os per thread, fifty readings a second delay
# nearly a thousandth of the I/Os, and so change the 99.9th percentile. A reading takes a sixth of a millisecond of CPU
# time, because its data is not in the CPU's caches.
SELDOM_SHARE = 0.02
LEAST_SELDOM_S, MOST_SELDOM_S = 0.1, 0.2
# Only users change the settings that decide whether the kernel counts I/O, so a check at this interval is sufficient.
ASK_EVERY_S = 1.0
# During a purge of several hours, frequent readings are not needed. After the purge, only the latest readings are used.
MOST_DEVICE_LOOKS = 30_000
# Seventeen numbers of up to twenty digits each fit into this number of bytes.
LONGEST_STAT_BYTES = 1024
KMSG = Path("/dev/kmsg")
# Each read of the kernel log returns one record, whose size is limited to this number of bytes
# (Documentation/ABI/testing/dev-kmsg).
MOST_RECORD_BYTES = 8192
# A driver may log without end. Because of this limit, tkperf nevertheless stops reading.
MOST_RECORDS = 2000
LONGEST_LINE = 200
_PCI = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]")
_SCSI = re.compile(r"\d+:\d+:\d+:\d+")
_NAMED = re.compile(r"(ata|nvme|host|mmc|virtio|usb)\d+|\d+-[\d.]+")
# tkperf searches the log for two PCI names: the PCI function of the device, and the port above this function.
MOST_PCI = 2


def seldom_every_s(from_s: float, until_s: float) -> float:
    """Return the interval in seconds between readings inside a step that begins and ends at these times."""
    return min(max(SELDOM_SHARE * (until_s - from_s), LEAST_SELDOM_S), MOST_SELDOM_S)


def look_again_s(at_s: float, from_s: float, until_s: float) -> float:
    """Return how many seconds to wait after a reading at ``at_s``. The inside of a step lasts from ``from_s`` to
    ``until_s``.
    """
    every_s = seldom_every_s(from_s, until_s)
    return every_s if from_s <= at_s < until_s - every_s else LOOK_EVERY_S


class StatFiles:
    """The kernel's files with the I/O counters of devices. The files stay open, so that a reading needs one system call
    for each file.

    Opening, reading and parsing the files for each reading would change the 99.9th percentile of a load that uses all
    CPUs.
    """

    def __init__(self, majors_minors: Sequence[str], sys_root: Path = SYS_ROOT) -> None:
        self._nodes = [sys_root / "dev/block" / major_minor for major_minor in majors_minors]
        self._open: list[int] = []

    def read(self) -> tuple[bytes, ...]:
        """Return the texts of the kernel's files. An empty result means that one of the files cannot be read.

        For a single partition, the text of its disk is added.
        """
        try:
            if not self._open:
                self._open_all()
            # this is the usual case, and it must be fast because each reading takes CPU time from the load
            if len(self._open) == 1:
                return (os.pread(self._open[0], LONGEST_STAT_BYTES, 0),)
            return tuple(os.pread(stat, LONGEST_STAT_BYTES, 0) for stat in self._open)
        except OSError:
            self.close()  # a RAID set that was created again is another device, although it has the same number
            return ()

    def _open_all(self) -> None:
        for node in self._nodes:
            self._open.append(os.open(node / "stat", os.O_RDONLY))
        if len(self._nodes) == 1 and is_there(self._nodes[0] / "partition"):
            self._open.append(os.open(self._nodes[0].resolve().parent / "stat", os.O_RDONLY))

    def counts(self, texts: Sequence[bytes]) -> Counts | None:
        """Return the sum of the counters in the texts that ``read`` returned. None means that there are no texts.

        For a single partition, ``others_bytes`` is the traffic on the rest of the disk that contains the partition.
        """
        devices = len(self._nodes)
        fields = [parse_stat(text) for text in texts]
        if not fields or not all(fields):
            return None
        whole = [sum(column) for column in zip(*fields[:devices], strict=False)]
        others_bytes = None
        for disk in fields[devices:]:
            others_bytes = SECTOR_BYTES * (disk[2] + disk[6] - whole[2] - whole[6])
        return Counts(
            read_bytes=SECTOR_BYTES * whole[2],
            write_bytes=SECTOR_BYTES * whole[6],
            discard_bytes=SECTOR_BYTES * whole[13] if len(whole) > 13 else 0,
            # The sum includes I/Os that the kernel merged into other I/Os, so that no I/O is missing.
            ios=whole[0] + whole[1] + whole[4] + whole[5],
            in_flight=whole[8],
            others_bytes=others_bytes,
            flushes=whole[15] if len(whole) > 15 else 0,
        )

    def close(self) -> None:
        """Close the files. The next call of ``read`` opens the files again."""
        while self._open:
            os.close(self._open.pop())


class CountingFiles:
    """The kernel's settings that decide whether the kernel counts the I/O of devices. The files of these settings stay
    open, as they do in ``StatFiles``.
    """

    def __init__(self, majors_minors: Sequence[str], sys_root: Path = SYS_ROOT) -> None:
        self._nodes = [sys_root / "dev/block" / major_minor for major_minor in majors_minors]
        self._open: list[int] = []

    def read(self) -> bool | None:
        """Return whether the kernel counts the I/O of all devices. None means that a setting cannot be read."""
        try:
            if not self._open:
                for node in self._nodes:
                    self._open.append(os.open(find_disk(node) / "queue/iostats", os.O_RDONLY))
            asked = [int(os.pread(setting, LONGEST_STAT_BYTES, 0)) for setting in self._open]
        except (OSError, ValueError):
            self.close()  # a RAID set that was created again may have another folder
            return None
        return all(asked) if asked else None

    def close(self) -> None:
        """Close the files. The next call of ``read`` opens the files again."""
        while self._open:
            os.close(self._open.pop())


def parse_stat(stat: bytes) -> list[int]:
    """Return the numbers in a stat file (Documentation/block/stat.rst). The result is empty if the file contains other
    text as well.

    The fields are: reads, merged, sectors, ms; the same for writes; in flight and times; the same for discards.
    """
    try:
        return [int(field) for field in stat.split()]
    except ValueError:
        return []


class _Look(NamedTuple):  # a NamedTuple is created faster than a frozen dataclass
    """A reading whose counts ``take`` parses later."""

    at_s: float
    suspended_s: float
    texts: tuple[bytes, ...]
    counting: bool | None


class DeviceCounters:
    """A reader of the I/O counters of devices, which works until it is closed. Without devices, it measures only time,
    to detect that tkperf itself was stopped.
    """

    def __init__(self, majors_minors: Sequence[str], sys_root: Path = SYS_ROOT) -> None:
        self._stat_files = StatFiles(majors_minors, sys_root)
        self._counting_files = CountingFiles(majors_minors, sys_root)
        self._looks: deque[_Look] = deque(maxlen=MOST_DEVICE_LOOKS)
        # The lock keeps the readings in chronological order.
        self._looking = threading.Lock()
        self._closed = False
        self._seldom_from_s = self._seldom_until_s = 0.0
        self._counting: bool | None = None
        self._asked_s = -ASK_EVERY_S
        self._thread = threading.Thread(target=self._look_on, name="counters", daemon=True)
        self._thread.start()

    def take(self) -> Sequence[DeviceLook]:
        with self._looking:
            taken = [*self._looks, self._look()]
            self._looks.clear()
        return [
            DeviceLook(
                at_s=look.at_s,
                suspended_s=look.suspended_s,
                counts=self._stat_files.counts(look.texts),
                counting=look.counting,
            )
            for look in taken
        ]

    def look_seldom(self, from_s: float, until_s: float) -> None:
        self._seldom_from_s, self._seldom_until_s = from_s, until_s

    def close(self) -> None:
        self._closed = True
        self._thread.join()
        self._stat_files.close()
        self._counting_files.close()

    def _look_on(self) -> None:
        while not self._closed:
            with self._looking:
                look = self._look()
                self._looks.append(look)
            time.sleep(look_again_s(look.at_s, self._seldom_from_s, self._seldom_until_s))

    def _look(self) -> _Look:
        texts = self._stat_files.read()
        now_s = time.monotonic()
        if now_s - self._asked_s >= ASK_EVERY_S:
            self._counting, self._asked_s = self._counting_files.read(), now_s
        return _Look(
            at_s=now_s,
            suspended_s=time.clock_gettime(time.CLOCK_BOOTTIME) - now_s,
            texts=texts,
            counting=self._counting,
        )


@contextmanager
def watching(*identities: DeviceIdentity) -> Iterator[DeviceCounters]:
    """Yield a reader of the counters of devices, and close the reader after the ``with`` block. A file has no
    counters.
    """
    names = [identity.major_minor for identity in identities if identity.major_minor]
    counters = DeviceCounters(names)
    try:
        yield counters
    finally:
        counters.close()


class KernelLog:
    """A reader of the records that the kernel logs after this reader has opened the log."""

    def __init__(self, majors_minors: Sequence[str], *, sys_root: Path = SYS_ROOT, kmsg: Path = KMSG) -> None:
        names = {name for node in majors_minors for name in find_names(sys_root / "dev/block" / node)}
        longest_first = sorted(names, key=lambda name: (-len(name), name))
        self._about = (
            re.compile(rf"(?<![\w:.-])({'|'.join(map(re.escape, longest_first))})(?![\w-]|[:.]\w)") if names else None
        )
        self._file: int | None = None
        try:
            self._file = os.open(kmsg, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._file, 0, os.SEEK_END)
        except OSError:
            self.close()

    def read(self) -> tuple[str, ...] | None:
        """Return the lines about the devices that the kernel has logged since the last call.

        None means that tkperf has no permission to read the log, or that there is no device to search for.
        """
        if self._file is None or self._about is None:
            return None
        return tuple(line for line in self._records(self._file) if self._about.search(line))

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _records(self, file: int) -> Iterator[str]:
        """Yield the text of each record. A record consists of ``priority,sequence,us,flags;text`` and
        additional lines.
        """
        for _ in range(MOST_RECORDS):
            try:
                record = os.read(file, MOST_RECORD_BYTES)
            except BlockingIOError:
                return
            except BrokenPipeError:  # the kernel overwrote some records before they could be read
                continue
            except OSError:
                return
            if not record:
                return
            text = record.partition(b";")[2].partition(b"\n")[0].decode(errors="replace")
            yield "".join(c if c.isprintable() else "?" for c in text)[:LONGEST_LINE]


def find_names(node: Path) -> Iterator[str]:
    """Yield the names that the kernel may use for a device in its log. For a set or mapping, include the names of its
    members.
    """
    try:
        place = node.resolve(strict=True)
    except OSError:
        return
    yield from _of_path(place.parts)
    try:
        members = sorted((place / "slaves").iterdir())
    except OSError:
        return
    for member in members:
        yield from find_names(member)


def _of_path(parts: Sequence[str]) -> Iterator[str]:
    """Yield the names in a sysfs path, such as ``sdb``, ``2:0:0:0``, ``ata3`` and ``0000:00:1f.2``. For a partition,
    include the name of its disk.
    """
    yield parts[-1]
    if "block" in parts[:-2]:
        yield parts[parts.index("block") + 1]
    for part in parts:
        if _SCSI.fullmatch(part) or _NAMED.fullmatch(part):
            yield part
        if re.fullmatch(r"ata\d+", part):
            yield f"{part}.00"  # the first drive of the port
    yield from [part for part in parts if _PCI.fullmatch(part)][-MOST_PCI:]
