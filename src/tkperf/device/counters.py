"""The kernel's own counts of a device's I/O, looked at all the time by a thread of their own."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tkperf.device.identity import DeviceIdentity
from tkperf.device.sysfs import SYS_ROOT, find_disk, number
from tkperf.disturbance import Counts, Glance

# fio's documents are compared with the counters of their moment: a fiftieth of a second tells it
# well enough, and costs less than half a percent of a CPU.
LOOK_EVERY_S = 0.02
# Whether the kernel is to count is set by hand, and stays so.
ASK_EVERY_S = 1.0
# Nobody takes glances while a device is purged for hours: only the latest can matter then.
MOST_GLANCES = 30_000
# The unit of sysfs's stat, whatever the device's own sectors are.
SECTOR_BYTES = 512


def read_counts(majors_minors: Sequence[str], sys_root: Path = SYS_ROOT) -> Counts | None:
    """The counts of devices, added up; None if one cannot be read.

    Of a single partition ``others_bytes`` is what the rest of its disk moved.
    """
    nodes = [sys_root / "dev/block" / major_minor for major_minor in majors_minors]
    fields = [_read_stat(node) for node in nodes]
    if not nodes or not all(fields):
        return None
    whole = [sum(column) for column in zip(*fields, strict=False)]
    others_bytes = None
    if len(nodes) == 1 and (nodes[0] / "partition").exists():
        disk = _read_stat(nodes[0].resolve().parent)
        if disk:
            others_bytes = SECTOR_BYTES * (disk[2] + disk[6] - whole[2] - whole[6])
    return Counts(
        read_bytes=SECTOR_BYTES * whole[2],
        write_bytes=SECTOR_BYTES * whole[6],
        discard_bytes=SECTOR_BYTES * whole[13] if len(whole) > 13 else 0,
        # With those merged into another, so that none is missed.
        ios=whole[0] + whole[1] + whole[4] + whole[5],
        in_flight=whole[8],
        others_bytes=others_bytes,
        flushes=whole[15] if len(whole) > 15 else 0,
    )


def read_counting(majors_minors: Sequence[str], sys_root: Path = SYS_ROOT) -> bool | None:
    """Whether the kernel is to count the I/O of all these devices; None if one does not say."""
    disks = [find_disk(sys_root / "dev/block" / major_minor) for major_minor in majors_minors]
    asked = [number(disk / "queue/iostats") for disk in disks]
    return None if not asked or None in asked else all(asked)


def _read_stat(node: Path) -> list[int]:
    """Documentation/block/stat.rst: reads, merged, sectors, ms; writes, ...; in flight; ...; discards ..."""
    try:
        return [int(field) for field in (node / "stat").read_bytes().split()]
    except (OSError, ValueError):
        return []


class DeviceCounters:
    """Looks at devices until closed. Of none it keeps time only: tkperf itself may be stopped."""

    def __init__(self, majors_minors: Sequence[str], sys_root: Path = SYS_ROOT) -> None:
        self._names, self._sys_root = tuple(majors_minors), sys_root
        self._glances: deque[Glance] = deque(maxlen=MOST_GLANCES)
        # So that glances lie in the order of their time.
        self._looking = threading.Lock()
        self._closed = threading.Event()
        self._counting: bool | None = None
        self._asked_s = -ASK_EVERY_S
        self._thread = threading.Thread(target=self._look_on, name="counters", daemon=True)
        self._thread.start()

    def take(self) -> Sequence[Glance]:
        """As the protocol has it."""
        with self._looking:
            taken = [*self._glances, self._look()]
            self._glances.clear()
        return taken

    def close(self) -> None:
        self._closed.set()
        self._thread.join()

    def _look_on(self) -> None:
        while not self._closed.wait(LOOK_EVERY_S):
            with self._looking:
                self._glances.append(self._look())

    def _look(self) -> Glance:
        counts = read_counts(self._names, self._sys_root) if self._names else None
        now_s = time.monotonic()
        if now_s - self._asked_s >= ASK_EVERY_S:
            self._counting, self._asked_s = read_counting(self._names, self._sys_root), now_s
        return Glance(
            at_s=now_s,
            suspended_s=time.clock_gettime(time.CLOCK_BOOTTIME) - now_s,
            counts=counts,
            counting=self._counting,
        )


@contextmanager
def watching(*identities: DeviceIdentity) -> Iterator[DeviceCounters]:
    """Counters of devices for as long as the block lasts; a file has none of its own."""
    names = [identity.major_minor for identity in identities if identity.major_minor]
    counters = DeviceCounters(names)
    try:
        yield counters
    finally:
        counters.close()
