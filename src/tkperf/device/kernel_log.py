"""The kernel's log lines about a device, its controller, or the bridge that it hangs on."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tkperf.device.sysfs import SYS_ROOT

KMSG = Path("/dev/kmsg")
# Documentation/ABI/testing/dev-kmsg: each read returns one record.
MOST_RECORD_BYTES = 8192
# A driver that logs without end must not keep tkperf reading.
MOST_RECORDS = 2000
LONGEST_LINE = 200
_PCI = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]")
_SCSI = re.compile(r"\d+:\d+:\d+:\d+")
_NAMED = re.compile(r"(ata|nvme|host|mmc|virtio|usb)\d+|\d+-[\d.]+")
# The device's own function and the port above it.
MOST_PCI = 2


class KernelLog:
    """Reader of the records that the kernel logs after the log was opened."""

    def __init__(
        self, majors_minors: Sequence[str], *, sys_root: Path = SYS_ROOT, kmsg: Path = KMSG
    ) -> None:
        names = {name for node in majors_minors
                 for name in find_names(sys_root / "dev/block" / node)}  # fmt: skip
        longest_first = sorted(names, key=lambda name: (-len(name), name))
        self._about = (
            re.compile(rf"(?<![\w:.-])({'|'.join(map(re.escape, longest_first))})(?![\w-]|[:.]\w)")
            if names
            else None
        )
        self._file: int | None = None
        try:
            self._file = os.open(kmsg, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._file, 0, os.SEEK_END)
        except OSError:
            self.close()

    def read(self) -> tuple[str, ...] | None:
        """Return the lines about the devices since the last call.

        None: the log may not be read, or no device is to be looked for.
        """
        if self._file is None or self._about is None:
            return None
        return tuple(line for line in self._records(self._file) if self._about.search(line))

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _records(self, file: int) -> Iterator[str]:
        """Yield the text of each record, which is ``priority,sequence,us,flags;text`` and further lines."""
        for _ in range(MOST_RECORDS):
            try:
                record = os.read(file, MOST_RECORD_BYTES)
            except BlockingIOError:
                return
            except BrokenPipeError:  # some were overwritten before they could be read
                continue
            except OSError:
                return
            if not record:
                return
            text = record.partition(b";")[2].partition(b"\n")[0].decode(errors="replace")
            yield "".join(c if c.isprintable() else "?" for c in text)[:LONGEST_LINE]


def find_names(node: Path) -> Iterator[str]:
    """Yield the names that the kernel may log for a device; for a set or mapping, its members' too."""
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
    """Yield the names in a sysfs path: ``sdb``, ``2:0:0:0``, ``ata3``, ``0000:00:1f.2``; for a partition, its disk."""
    yield parts[-1]
    if "block" in parts[:-2]:
        yield parts[parts.index("block") + 1]
    for part in parts:
        if _SCSI.fullmatch(part) or _NAMED.fullmatch(part):
            yield part
        if re.fullmatch(r"ata\d+", part):
            yield f"{part}.00"  # the first drive of the port
    yield from [part for part in parts if _PCI.fullmatch(part)][-MOST_PCI:]
