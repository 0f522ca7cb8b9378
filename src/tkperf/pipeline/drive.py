"""A drive, a partition, a loop device or a file as the device under test. The device exists already, or is a file that
is created for the run.

The tests of a profile may be limited to segments of a drive, which are random places that do not touch each other. Only
a mapping by the kernel's device-mapper keeps fio exactly within the segments without causing pauses (docs/adr/0027). A
mapping requires a whole block device, root privileges, and the device-mapper of the kernel. tkperf reports missing
requirements before it asks a question.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from tkperf.device.device_mapper import require_device_mapper
from tkperf.device.identity import DeviceIdentity, TargetKind, file_system_of, read_identity, require_named
from tkperf.device.inspection import DeviceFacts, inspect_device
from tkperf.device.permit import ErasePermit, refuse_objections
from tkperf.device.purge import PurgeMethod, plan_purge, refuse_purge_under_way
from tkperf.device.purge.ata import clear_left_password
from tkperf.device.targets import (
    DriveTarget,
    SegmentMapping,
    SegmentsTarget,
    create_file_target,
    describe_dangling,
    find_direct_io_block_bytes,
    is_dangling,
    mapping_name,
    plan_file_target,
    remove_file_target,
)
from tkperf.device.write_cache import WriteCache, restoring
from tkperf.engine.device_engine import PermittedDevice
from tkperf.engine.registry import find_engine
from tkperf.model.errors import DeviceError, RefusedError, TkperfError, UsageError
from tkperf.model.input_files import is_there
from tkperf.model.record import RunNote
from tkperf.model.segments import Segments, draw_segments
from tkperf.pipeline.consent import Consent, permitted
from tkperf.pipeline.device_under_test import (
    NO_PURGE_LINE,
    DeviceUnderTest,
    Equipment,
    equipment_on,
    find_ioengine,
    find_unseen,
    warn_of_link,
    warn_of_room,
    warn_of_zones,
    would_be_refused,
)
from tkperf.pipeline.fitted_profile import FittedProfile, refuse_segments
from tkperf.pipeline.run_request import RunRequest
from tkperf.procedures.profiles import Profile, resolve_active_range, resolve_range

SEED_BITS = 32


class DriveUnderTest(DeviceUnderTest):
    """An existing block device or file."""

    def __init__(self, request: RunRequest, *, look_only: bool = False) -> None:
        """Examine the device. If an earlier purge by tkperf left a password on a drive, remove this password.

        Args:
            look_only: whether to leave the password on the drive, and to turn a reason to refuse a run into a warning.
        """
        self._request = request
        self.identity = self._identify()
        refusals: list[RunNote] = []
        try:
            _refuse_use(self.identity, look_only=look_only)
        except RefusedError as error:
            if not look_only:
                raise
            refusals.append(would_be_refused(error))
        self.facts = inspect_device(self.identity)
        self._method = choose_purge(request, self.identity)
        self.warnings = (
            *self._unseen(),
            *warn_of_room(self.identity),
            *warn_of_zones(self.identity),
            *warn_of_link(self.facts),
            *refusals,
        )
        self.drives = (self.identity,)
        self.confirm_id = self.identity.confirm_id
        if self._method is not None:
            self.lines = (("purge", self._method.title),)
            self.overwritten_by = self._method.title if self._method.overwrites else None
        elif request.no_purge:
            self.lines = (NO_PURGE_LINE,)

    def _identify(self) -> DeviceIdentity:
        path = Path(self._request.device)
        try:
            return measurable(path)
        except DeviceError as error:
            if is_there(path):
                raise
            if is_dangling(path):
                raise DeviceError(describe_dangling(path)) from None
            if _is_among_devices(path):  # tkperf would also refuse to create a file in this folder
                raise
            advice = "to measure a scratch file of that name, give its --size"
            raise DeviceError(f"{error}; {advice}") from None

    def _unseen(self) -> tuple[RunNote, ...]:
        return find_unseen([self.identity])

    @contextmanager
    def open(self, fitted: FittedProfile, consent: Consent) -> Iterator[Equipment]:
        version = find_engine(self._request.ioengine).find_version()
        with (
            permitted([self.identity], consent, given_as=self._request.device) as (permit,),
            self._equip(permit, fitted, version, self.facts) as equipment,
        ):
            yield equipment

    @contextmanager
    def _equip(
        self, permit: ErasePermit, fitted: FittedProfile, version: str, facts: DeviceFacts
    ) -> Iterator[Equipment]:
        ioengine = find_ioengine(self._request.ioengine, fitted, permit, shown_path=self._request.device)
        cache = WriteCache(permit, fitted.profile.write_cache.setting)
        with (
            restoring(cache),
            equipment_on(
                self._request,
                PermittedDevice(permit=permit, ioengine=ioengine, active_range=fitted.active_range),
                DriveTarget(permit, self._method, cache),
                fitted,
                facts,
                version=version,
                write_cache=cache.apply(),
                drives=[permit.identity],
            ) as equipment,
        ):
            yield equipment


class ScratchFileUnderTest(DriveUnderTest):
    """A file that is created for the run. If no run begins, the file is removed again."""

    def _identify(self) -> DeviceIdentity:
        path = Path(self._request.device)
        real = Path(os.path.realpath(path))
        if not os.path.lexists(path) and _is_among_devices(path):
            raise DeviceError(
                f"{path} does not exist, and tkperf does not create a scratch file in /dev. Choose a path in another "
                "folder"
            )
        size_bytes = self._request.size_bytes
        assert size_bytes is not None, "something without a size has that name already"
        with suppress(OSError):  # a missing folder is reported below
            require_named(path.parent, real.parent, path.parent.stat())
        return DeviceIdentity(
            path=str(real),
            kind=TargetKind.FILE,
            capacity_bytes=size_bytes,
            logical_block_bytes=plan_file_target(path),
            backing=file_system_of(real),
        )

    def _unseen(self) -> tuple[RunNote, ...]:
        """Return no warnings, because a file that does not exist yet has no users."""
        return ()

    @contextmanager
    def open(self, fitted: FittedProfile, consent: Consent) -> Iterator[Equipment]:
        version = find_engine(self._request.ioengine).find_version()
        path = Path(self._request.device)
        # The hard disk suite reads addresses that it has not written, so the file must be written first.
        written = self._request.suite == "hdd"
        made = create_file_target(path, self.identity.capacity_bytes, written=written)
        began = False
        try:
            identity = measurable(path)
            planned = (self.identity.capacity_bytes, self.identity.logical_block_bytes)
            if identity.inode != made or planned != (identity.capacity_bytes, identity.logical_block_bytes):
                raise DeviceError(
                    f"{path} is no longer the scratch file that tkperf just created, because another program has "
                    "replaced or changed it"
                )
            facts = inspect_device(identity)
            fitted = replace(fitted, identity=identity)
            with (
                permitted([identity], consent, empty=True, given_as=self._request.device) as (permit,),
                self._equip(permit, fitted, version, facts) as equipment,
            ):
                try:
                    yield equipment
                finally:
                    began = equipment.began
        finally:
            # A scratch file without results has no use.
            if not began:
                remove_file_target(Path(os.path.realpath(path)), made)


def measurable(path: Path) -> DeviceIdentity:
    """Return the identity of a device or file. For a file, the identity contains a block size that direct I/O
    accepts.
    """
    identity = read_identity(path)
    if identity.kind is not TargetKind.FILE:
        return identity
    block_bytes = find_direct_io_block_bytes(identity.path)
    return replace(identity, logical_block_bytes=block_bytes)


def choose_purge(request: RunRequest, identity: DeviceIdentity) -> PurgeMethod | None:
    """Return the purge method for a device. None means that the device is not purged."""
    if request.no_purge or request.suite == "hdd":
        return None
    plan = plan_purge(identity, command=request.purge_command)
    return plan.choose(request.purge_method, device=identity.path)


def _refuse_use(identity: DeviceIdentity, *, look_only: bool) -> None:
    """Raise RefusedError if there is a reason not to erase the device."""
    is_block = identity.kind is TargetKind.BLOCK
    if is_block and not look_only:
        # Uses are checked first, because a drive that remains locked after an interrupted purge cannot be read.
        refuse_objections(identity, use_only=True)
    if is_block:
        refuse_purge_under_way(identity)
    if is_block and not look_only:
        clear_left_password(identity)
    if is_block or identity.inode is not None:
        refuse_objections(identity)


def _is_among_devices(path: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to("/dev")


class SegmentsUnderTest(DriveUnderTest):
    """A block device, with a profile that tests only segments of this device."""

    def __init__(self, request: RunRequest, plain: Profile, *, look_only: bool = False) -> None:
        """Examine the device, and draw the places of the segments. Nothing is changed."""
        if request.raid is not None:
            raise refuse_segments(plain, "tkperf does not map segments on a RAID set")
        if request.size is not None:
            raise refuse_segments(plain, f"{request.device} would be a file")
        super().__init__(request, look_only=look_only)
        reason = _find_hindrance(self)
        if reason is not None:
            refusal = refuse_segments(plain, reason)
            if not look_only:
                raise refusal
            self.warnings = (*self.warnings, would_be_refused(refusal))
        self.segments = _draw(plain, self)
        self.facts.add("tkperf", segments=self.segments.facts())
        places = f"{len(self.segments.starts_bytes):,} random places, seed {self.segments.seed}"
        self.lines = (*self.lines, ("segments", f"{places}, by device-mapper"))

    @contextmanager
    def _equip(
        self, permit: ErasePermit, fitted: FittedProfile, version: str, facts: DeviceFacts
    ) -> Iterator[Equipment]:
        cache = WriteCache(permit, fitted.profile.write_cache.setting)
        with restoring(cache):
            disclosed = cache.apply()
            mapping = SegmentMapping(permit, self.segments)
            target = SegmentsTarget(mapping, DriveTarget(permit, self._method, cache))
            with _taken_away(target):
                device = PermittedDevice(
                    permit=target.permit,
                    ioengine=find_ioengine(
                        self._request.ioengine, fitted, target.permit, shown_path=self._request.device
                    ),
                    active_range=fitted.active_range,
                    drive_permit=permit,
                    shown_path=f"/dev/mapper/{mapping_name(permit.identity)}",
                )
                facts.add("tkperf", layer="device-mapper (linear)")
                with equipment_on(
                    self._request,
                    device,
                    target,
                    # The counters of the drive also include I/O outside the mapping.
                    replace(fitted, identity=permit.identity),
                    facts,
                    version=version,
                    write_cache=disclosed,
                    drives=[permit.identity],
                ) as equipment:
                    yield equipment


def _find_hindrance(dut: DriveUnderTest) -> str | None:
    """Return the missing requirement. None means that no requirement is missing."""
    identity = dut.identity
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


def _draw(profile: Profile, dut: DriveUnderTest) -> Segments:
    table, identity = profile.active_range, dut.identity
    device = (identity.capacity_bytes, identity.logical_block_bytes)
    try:
        amount_bytes = resolve_active_range(profile, *device).length_bytes
        if amount_bytes % (table.segments * identity.logical_block_bytes):
            raise UsageError(
                f"profile {profile.name}, key active_range.segments: {table.amount} cannot be divided into "
                f"{table.segments:,} equal segments, because each segment must consist of whole sectors "
                f"({identity.logical_block_bytes} bytes). Choose another number of segments"
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
    """Remove the mapping at the end of the run. An error that ended the run takes precedence over an error during the
    removal.
    """
    try:
        yield
    except BaseException as error:
        try:
            target.take_away()
        except TkperfError as trouble:
            error.add_note(str(trouble))
        raise
    target.take_away()
