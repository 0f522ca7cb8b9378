"""A drive of which only segments are measured, as the runner sees it (docs/adr/0027).

A linear mapping puts the segments one behind the other, so that whatever fio does to it falls into them
alone, and any place in them is as likely as any other. The mapping has the kernel's claim on the drive while
it exists; what is preconditioned is written to the drive itself meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tkperf.device.device_mapper import (
    NAME_PREFIX,
    Mapping,
    Target,
    create_mapping,
)
from tkperf.device.identity import DeviceIdentity
from tkperf.device.permit import ErasePermit, SetPermit, grant_mapping_permit
from tkperf.device.sysfs import SECTOR_BYTES, SYS_ROOT, find_node
from tkperf.device.target import DriveTarget
from tkperf.model.errors import DeviceError
from tkperf.model.record import PurgeResult
from tkperf.model.segments import Segments

# udev may look at a mapping for a moment; the kernel then takes it away by itself.
GONE_LIMIT_S = 30.0


class SegmentMapping:
    """Makes the mapping of a permitted drive's segments, and takes it away again."""

    def __init__(self, drive: ErasePermit, segments: Segments) -> None:
        self.drive = drive
        self._segments = segments
        self._mapping: Mapping | None = None
        self._name = mapping_name(drive.identity)

    def find_path(self) -> str:
        """Of the mapping that is there.

        Raises:
            DeviceError: there is none.
        """
        if self._mapping is None:
            raise DeviceError(f"{self.drive.identity.path}: its segments are not mapped just now")
        return str(self._mapping.node)

    def create(self) -> None:
        """Map the segments; the drive's exclusive hold goes over to the mapping. Nothing is written.

        Between the two holds lie some milliseconds. Who takes the drive in them keeps it: then the
        kernel makes no mapping of it.

        Raises:
            RefusedError: the drive is used by somebody.
            DeviceError: it is gone, or the kernel makes no mapping of it.
        """
        identity = self.drive.identity
        table = build_table(self._segments, identity.major_minor or "")
        self.drive.lend(shared=True)
        try:
            self._mapping = create_mapping(self._name, table)
        except DeviceError as error:
            raise DeviceError(
                f"{identity.path}: its segments cannot be mapped: {error}; nothing more is written"
            ) from error
        self.drive.lent_to = self._mapping.node.name

    def remove(self) -> None:
        """Take the mapping away; nothing where there is none.

        Raises:
            DeviceError: somebody keeps it open.
        """
        if self._mapping is None:
            return
        mapping, self._mapping = self._mapping, None
        mapping.let_go()
        until_s = time.monotonic() + GONE_LIMIT_S
        while (SYS_ROOT / "dev/block" / mapping.number).exists():
            if time.monotonic() > until_s:
                raise DeviceError(
                    f"{mapping.node}, the segments of {self.drive.identity.path}, is still open in "
                    f"another program (see 'fuser -v {mapping.node}'): when that lets it go, the "
                    "kernel takes it away and the drive is free"
                )
            time.sleep(0.01)


def mapping_name(drive: DeviceIdentity) -> str:
    """``tkperf-segments-nvme0n1``, by the kernel's name of the drive."""
    return f"{NAME_PREFIX}segments-{find_node(drive.major_minor or '').name}"


def build_table(segments: Segments, major_minor: str) -> tuple[Target, ...]:
    """The mapping that puts segments of a device one behind the other, in sectors."""
    length = segments.length_bytes // SECTOR_BYTES
    return tuple(
        Target(number * length, length, "linear", f"{major_minor} {start // SECTOR_BYTES}")
        for number, start in enumerate(segments.starts_bytes)
    )


class SegmentsTarget:
    """Purged as a drive; the mapping is there while it is preconditioned and measured.

    So nothing has to be made between the two, and what follows a fill is let go at its end.
    """

    def __init__(self, mapping: SegmentMapping, drive: DriveTarget) -> None:
        """Make the mapping for the first time.

        Raises:
            RefusedError, DeviceError: as ``SegmentMapping.create``.
        """
        self._mapping = mapping
        self._drive = drive
        mapping.create()
        try:
            self.permit: SetPermit = grant_mapping_permit(mapping.find_path, mapping.drive)
        except BaseException:
            mapping.remove()
            raise

    def recheck(self) -> None:
        self._drive.recheck()
        if self.permit.is_made:
            self.permit.recheck()

    def make_ready_to_fill(self) -> None:
        """Also for what follows the fill."""
        self._map()

    def make_ready(self, *, on_progress: Callable[[float | None], None]) -> None:
        """The segments are mapped."""
        self._map()

    def purge(
        self,
        *,
        on_progress: Callable[[float | None], None],
        on_note: Callable[[str, str], None],
    ) -> PurgeResult:
        """Of the whole drive, which is then held by tkperf itself."""
        if self._drive.purges and self.permit.is_made:
            self.take_away()
            self._mapping.drive.take_back()
        return self._drive.purge(on_progress=on_progress, on_note=on_note)

    def take_away(self) -> None:
        """Remove the mapping, if it is there.

        Raises:
            DeviceError: somebody keeps it open.
        """
        self.permit.release()
        self._mapping.remove()

    def _map(self) -> None:
        if not self.permit.is_made:
            self._mapping.create()
            # What it is made of is looked at again.
            self.permit.made()
