"""RAID sets that tkperf creates for the run from confirmed drives, with mdadm or with a MegaRAID controller.

Before a set is created, the run is fitted to a stand-in with the least possible capacity of the set and the sector size
of its members, and all phases are simulated. tkperf thus finds every foreseeable fault before the members lose their
data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tkperf.device.identity import DeviceIdentity, TargetKind, read_identity
from tkperf.device.inspection import DeviceFacts, inspect_device
from tkperf.device.permit import ErasePermit, grant_set_permit, grant_virtual_drive_permit, refuse_objections
from tkperf.device.purge import PurgeMethod, refuse_purge_under_way
from tkperf.device.raid.config import RaidConfig
from tkperf.device.raid.mdadm import MdadmSet
from tkperf.device.raid.storcli import ERASE, StorcliSet
from tkperf.device.raid.target import MdadmTarget, Member, StorcliTarget, create_of
from tkperf.device.write_cache import WriteCache, restoring
from tkperf.engine.device_engine import PermittedDevice
from tkperf.engine.registry import find_engine
from tkperf.model.errors import DeviceError, Interrupted, TkperfError, UsageError
from tkperf.model.record import RunNote
from tkperf.pipeline.consent import Consent, permit_controller_drives, permitted
from tkperf.pipeline.device_under_test import (
    NO_PURGE_LINE,
    DeviceUnderTest,
    Equipment,
    equipment_on,
    find_ioengine,
    find_unseen,
    warn_of_zones,
)
from tkperf.pipeline.drive import choose_purge
from tkperf.pipeline.fitted_profile import FittedProfile, fit_profile
from tkperf.pipeline.run_request import RunRequest


class SoftwareRaidUnderTest(DeviceUnderTest):
    """A RAID set that mdadm will create from whole drives."""

    def __init__(self, request: RunRequest, config: RaidConfig) -> None:
        """Examine the members. Nothing is changed."""
        path = Path(request.device)
        if not path.is_absolute() or not path.name.startswith("md") or path.parent != Path("/dev"):
            raise UsageError(f"DEVICE {path} cannot be the node of a software RAID set. Pass a name such as /dev/md0")
        self._request = request
        self._raid = MdadmSet(path, config)
        looks = [_look_at(request, device) for device in config.devices]
        self.drives = tuple(identity for identity, _ in looks)
        # A method is None if the member is not purged.
        self._methods = tuple(method for _, method in looks)
        self._raid.refuse_taken_node()
        self._raid.require_program()
        members = self.drives
        self.warnings = (
            *find_unseen(members),
            *(warning for member in members for warning in warn_of_zones(member)),
            *_unused_policies(config),
        )
        self.identity = _stand_in(
            path,
            self._raid.least_capacity_bytes([member.capacity_bytes for member in members]),
            max(member.logical_block_bytes for member in members),
        )
        self.facts = _describe(
            self.identity, self._raid.title, "members", [inspect_device(member).as_plain_data() for member in members]
        )
        methods = [method for method in self._methods if method]
        titles = ", ".join(sorted({method.title for method in methods}))
        overwriting = {method.title for method in methods if method.overwrites}
        self.confirm_id = ",".join(member.confirm_id for member in members)
        self.overwritten_by = ", ".join(sorted(overwriting)) or None
        self.filled_bytes = sum(member.capacity_bytes for member in members)
        self.lines = (*_member_lines(self.facts), ("purge", titles) if titles else NO_PURGE_LINE)

    @contextmanager
    def open(self, fitted: FittedProfile, consent: Consent) -> Iterator[Equipment]:
        version = find_engine(self._request.ioengine).find_version()
        opened: list[Equipment] = []
        with ExitStack() as undo:
            permits = undo.enter_context(permitted(self.drives, consent))
            # The I/O engine is tried on a member now, before any member is erased. If the I/O engine fails, all data
            # still exists.
            find_ioengine(self._request.ioengine, fitted, permits[0])
            caches = [WriteCache(member_permit, fitted.profile.write_cache.setting) for member_permit in permits]
            undo.enter_context(restoring(*caches))
            disclosed = [cache.apply() for cache in caches]
            undo.enter_context(_cleared_away(self._request, opened, lambda: _remove(self._raid, permits)))
            create_of(self._raid, permits)
            permit = grant_set_permit(lambda: str(self._raid.path), permits)
            undo.callback(permit.release)
            members = [
                Member(permit=member_permit, method=method, cache=cache)
                for member_permit, method, cache in zip(permits, self._methods, caches, strict=True)
            ]
            # The size of the set is known now.
            fitted, facts = _fit_to_set(self._request, fitted, permit.identity, self.facts)
            device = PermittedDevice(
                permit=permit,
                ioengine=find_ioengine(self._request.ioengine, fitted, permit),
                active_range=fitted.active_range,
                member_permits=tuple(permits),
            )
            equipment = undo.enter_context(
                equipment_on(
                    self._request,
                    device,
                    MdadmTarget(self._raid, permit, members),
                    fitted,
                    facts,
                    version=version,
                    write_cache="members: " + ", ".join(sorted(set(disclosed))),
                    drives=[member_permit.identity for member_permit in permits],
                )
            )
            opened.append(equipment)
            yield equipment


class MegaRaidUnderTest(DeviceUnderTest):
    """A virtual drive that a MegaRAID controller will create. Only the controller can see the members."""

    def __init__(self, request: RunRequest, config: RaidConfig) -> None:
        """Query the controller. Nothing is changed."""
        for option, given, instead in (
            ("--purge", request.purge_method, "the controller erases its drives"),
            ("--purge-command", request.purge_command, "the controller erases its drives"),
            ("--write-cache", request.write_cache, "writepolicy in raid.json determines the cache of the set"),
        ):
            if given is not None:
                raise UsageError(
                    f"{option} does not work with drives behind a controller, because {instead}. Omit this option"
                )
        self._request = request
        self._raid = StorcliSet(Path(request.device), config)
        self._raid.refuse_taken_node()
        self._raid.refuse_used_drives()
        drives = self._raid.drives()
        self._serials = {drive.address: drive.serial for drive in drives}
        self.identity = _stand_in(
            self._raid.path, self._raid.least_capacity_bytes(drives), max(drive.sector_bytes for drive in drives)
        )
        self.facts = _describe(
            self.identity,
            self._raid.title,
            "set",
            [
                {"path": drive.address, "model": drive.model, "serial": drive.serial, "size": drive.size}
                for drive in drives
            ],
        )
        self.confirm_id = ",".join(serial or "" for serial in self._serials.values())
        self.overwritten_by = None if request.no_purge else ERASE
        purge = NO_PURGE_LINE if request.no_purge else ("purge", f"by the controller: {ERASE}")
        self.lines = (*_member_lines(self.facts), purge)

    @contextmanager
    def open(self, fitted: FittedProfile, consent: Consent) -> Iterator[Equipment]:
        version = find_engine(self._request.ioengine).find_version()
        opened: list[Equipment] = []
        drives = permit_controller_drives(self._raid.title, self._serials, consent)
        # The node is checked again, because a long time may have passed before the user answered.
        self._raid.refuse_taken_node()
        with ExitStack() as undo:
            undo.enter_context(_cleared_away(self._request, opened, self._raid.remove))
            self._raid.create(drives)
            permit = grant_virtual_drive_permit(str(self._raid.path), lambda: self._raid.virtual_drive().naa)
            undo.callback(permit.release)
            fitted, facts = _fit_to_set(self._request, fitted, permit.identity, self.facts)
            ioengine = find_ioengine(self._request.ioengine, fitted, permit)
            equipment = undo.enter_context(
                equipment_on(
                    self._request,
                    PermittedDevice(permit=permit, ioengine=ioengine, active_range=fitted.active_range),
                    StorcliTarget(self._raid, permit, drives, no_purge=self._request.no_purge),
                    fitted,
                    facts,
                    version=version,
                    write_cache=f"controller: {self._raid.write_policy}",
                )
            )
            opened.append(equipment)
            yield equipment


def _look_at(request: RunRequest, device: str) -> tuple[DeviceIdentity, PurgeMethod | None]:
    """Return a member and its purge method. None means that the member is not purged."""
    identity = read_identity(device)
    if identity.kind is not TargetKind.BLOCK:
        raise DeviceError(f"{device} is a file, but members of a RAID set must be block devices")
    refuse_purge_under_way(identity)
    refuse_objections(identity)
    return identity, choose_purge(request, identity)


def _unused_policies(config: RaidConfig) -> Iterator[RunNote]:
    """Yield a warning about keys in raid.json that only controllers use."""
    given = [key for key in ("readpolicy", "writepolicy") if getattr(config, key) is not None]
    if given:
        text = f"{' and '.join(given)} in raid.json: mdadm has no such thing, they change nothing"
        yield RunNote(code="preparation", text=text)


def _stand_in(path: Path, capacity_bytes: int, sector_bytes: int) -> DeviceIdentity:
    """Return the expected identity of a set that is not created yet."""
    return DeviceIdentity(
        path=str(path), kind=TargetKind.BLOCK, capacity_bytes=capacity_bytes, logical_block_bytes=sector_bytes
    )


def _describe(identity: DeviceIdentity, title: str, filled: str, members: list[dict[str, object]]) -> DeviceFacts:
    facts = DeviceFacts()
    facts.add("tkperf", path=identity.path, capacity_bytes=identity.capacity_bytes)
    facts.add("tkperf", raid=title, preconditioned=filled)
    facts.values["members"] = members
    return facts


def _fit_to_set(
    request: RunRequest, fitted: FittedProfile, identity: DeviceIdentity, planned: DeviceFacts
) -> tuple[FittedProfile, DeviceFacts]:
    """Return the run, fitted to the new set, and the facts about the set and its members."""
    facts = inspect_device(identity)
    facts.add("tkperf", **{name: planned.values[name] for name in ("raid", "preconditioned")})
    facts.values["members"] = planned.values["members"]
    return fit_profile(request, fitted.unaltered, identity), facts


def _member_lines(facts: DeviceFacts) -> tuple[tuple[str, str], ...]:
    members = facts.values["members"]
    assert isinstance(members, list)
    return tuple(
        ("member", ", ".join(str(member[key]) for key in ("path", "model", "serial", "size") if member.get(key)))
        for member in members
    )


@contextmanager
def _cleared_away(request: RunRequest, opened: Sequence[Equipment], remove: Callable[[], None]) -> Iterator[None]:
    """Remove the set when the run has ended, if the user requested the removal or if no run began on the set."""

    def is_to_go() -> bool:
        return request.remove_set or not (opened and opened[0].began)

    try:
        yield
    except BaseException as error:
        if is_to_go():
            try:
                remove()
            except TkperfError as trouble:
                # The error that ended the run takes precedence over an error during the removal.
                text = f"{request.device} could not be taken away again: {trouble}"
                if isinstance(error, TkperfError):
                    raise type(error)(f"{error}; {text}") from error
                if isinstance(error, KeyboardInterrupt):
                    raise Interrupted(f"stopped by the user; {text}") from error
                error.add_note(text)
        raise
    if is_to_go():
        remove()


def _remove(raid: MdadmSet, permits: Sequence[ErasePermit]) -> None:
    for permit in permits:
        permit.recheck()
    raid.remove([permit.handle for permit in permits])
