"""A drive with tests in segments only: random places that do not touch each other.

Only a mapping keeps fio to them exactly and without pauses (docs/adr/0027). It takes a whole block device,
root and the kernel's device-mapper. Missing requirements are reported before any question.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from tkperf.device.device_mapper import require_device_mapper
from tkperf.device.identity import TargetKind
from tkperf.device.inspection import DeviceFacts
from tkperf.device.kernel_watch import watching
from tkperf.device.permit import ErasePermit
from tkperf.device.targets import DriveTarget, SegmentMapping, SegmentsTarget, mapping_name
from tkperf.device.telemetry import reading_logs
from tkperf.device.write_cache import WriteCache, restoring
from tkperf.engine.device_jobs import Mapped
from tkperf.model.errors import DeviceError, TkperfError, UsageError
from tkperf.model.record import RunWarning
from tkperf.model.segments import Segments, draw_segments
from tkperf.pipeline.drive import DriveSubject
from tkperf.pipeline.equipment import Equipment, find_ioengine, fio_equipment
from tkperf.pipeline.fitting import Fitted, refuse_segments
from tkperf.pipeline.request import RunRequest
from tkperf.procedures.profiles import Profile
from tkperf.procedures.profiles.ranges import resolve_active_range, resolve_range

SEED_BITS = 32


class SegmentsSubject(DriveSubject):
    """A block device with a profile that tests segments of it."""

    def __init__(self, request: RunRequest, plain: Profile, *, look_only: bool = False) -> None:
        """Look at the device, and draw the places. Touches nothing.

        Raises:
            UsageError: its segments cannot be measured, with the reason; or they do not fit in it.
            DeviceError, RefusedError: see ``DriveSubject``.
        """
        if request.raid is not None:
            raise refuse_segments(plain, "of a RAID set the layers below are not tkperf's to map")
        if request.size is not None:
            raise refuse_segments(plain, f"{request.device} is to be a file")
        super().__init__(request, look_only=look_only)
        reason = _find_hindrance(self)
        if reason is not None and not look_only:
            raise refuse_segments(plain, reason)
        if reason is not None:
            text = f"a run would be refused now: {refuse_segments(plain, reason)}"
            self.warnings = (*self.warnings, RunWarning(code="would-be-refused", text=text))
        self.segments = _draw(plain, self)
        self.facts.add("tkperf", segments=self.segments.facts())

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        text = f"{len(self.segments.starts_bytes):,} random places, seed {self.segments.seed}"
        return (*super().lines, ("segments", f"{text}, by device-mapper"))

    @contextmanager
    def _equip(
        self, permit: ErasePermit, fitted: Fitted, version: str, facts: DeviceFacts
    ) -> Iterator[Equipment]:
        cache = WriteCache(permit, fitted.profile.write_cache.setting)
        with (
            restoring(cache),
            watching(permit.identity) as counters,
            reading_logs(permit.identity, wanted=self._request.telemetry) as telemetry,
        ):
            disclosed = cache.apply()
            mapping = SegmentMapping(permit, self.segments)
            target = SegmentsTarget(mapping, DriveTarget(permit, self._method, cache))
            with _taken_away(target):
                name = f"/dev/mapper/{mapping_name(permit.identity)}"
                ioengine = find_ioengine(self._request.ioengine, fitted, target.permit)
                facts.add("tkperf", layer="device-mapper (linear)")
                equipment = fio_equipment(
                    target.permit,
                    target,
                    replace(fitted, identity=permit.identity),
                    facts,
                    ioengine,
                    version=version,
                    write_cache=disclosed,
                    mapped=Mapped(drive=permit, path=name),
                )
                # The drive's own counters also see I/O outside the mapping.
                equipment.counters = counters
                equipment.telemetry, equipment.drives = telemetry, telemetry.facts
                yield equipment


def _find_hindrance(subject: DriveSubject) -> str | None:
    """Return the missing requirement; None if nothing is missing."""
    identity = subject.identity
    if identity.kind is not TargetKind.BLOCK:
        return f"{identity.path} is a file"
    if identity.partition is not None:
        return f"{identity.path} is a partition"
    if os.geteuid():
        return "tkperf is not run as root"
    try:
        require_device_mapper()
    except DeviceError as error:
        return str(error)
    return None


def _draw(profile: Profile, subject: DriveSubject) -> Segments:
    table, identity = profile.active_range, subject.identity
    device = (identity.capacity_bytes, identity.logical_block_bytes)
    try:
        amount_bytes = resolve_active_range(profile, *device).length_bytes
        if amount_bytes % (table.segments * identity.logical_block_bytes):
            raise UsageError(
                f"profile {profile.name}, key active_range.segments: {table.amount} cannot be cut "
                f"into {table.segments:,} equal pieces of whole sectors of "
                f"{identity.logical_block_bytes} bytes"
            )
        return draw_segments(
            count=table.segments,
            amount_bytes=amount_bytes,
            within_bytes=resolve_range(table.length, *device).length_bytes,
            seed=secrets.randbits(SEED_BITS),
        )
    except UsageError as error:
        raise UsageError(f"{identity.path}: {error}") from None


@contextmanager
def _taken_away(target: SegmentsTarget) -> Iterator[None]:
    """Remove the mapping in the end. An error that ended the run matters more than an error in removing."""
    try:
        yield
    except BaseException as error:
        try:
            target.take_away()
        except TkperfError as trouble:
            error.add_note(str(trouble))
        raise
    target.take_away()
