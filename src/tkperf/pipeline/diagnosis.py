"""The diagnosis of a device or of this host. A diagnosis states whether the device can be tested, or whether the host
can measure, and which parts are missing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from tkperf.device.identity import DeviceIdentity, TargetKind, read_identity
from tkperf.device.inspection import DeviceFacts, inspect_device
from tkperf.device.purge import PurgePlan, plan_purge, refuse_purge_under_way
from tkperf.device.purge.ata import clear_left_password
from tkperf.device.safety import Objection, Reason, find_data, find_objections, find_view_objections
from tkperf.device.telemetry_watch import look_at_telemetry
from tkperf.engine.registry import find_engine
from tkperf.host.audit import Audit
from tkperf.host.audit.audited_host import DAY_S
from tkperf.model.choices import SIMULATED
from tkperf.model.errors import DeviceError, EngineError, RefusedError, UsageError
from tkperf.model.telemetry.drive_reading import DriveFacts, Reading
from tkperf.pipeline.host_check import audit_for
from tkperf.pipeline.simulation import identify_simulated
from tkperf.system.host import read_host
from tkperf.system.installation import Installation, read_installation
from tkperf.system.process import PACKAGES, find_program

_NOT_ROOT = ("not root: block devices cannot be tested, files and sim: can",)

# The programs that tkperf calls, with their purpose. Without the programs of the engine, tkperf cannot measure.
TOOLS = {
    **find_engine().programs,
    "wipefs": "recognising data on a device",
    "nvme": "NVMe: identity, purge, write cache, telemetry",
    "hdparm": "SATA: security state, purge",
    "smartctl": "SATA, SAS, USB: identity, telemetry",
    "sg_format": "SAS: purge",
    "mdadm": "software RAID",
    "file": "recognising what an existing file holds",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceDiagnosis:
    """Facts about a device, and the reasons why it cannot be tested.

    Attributes:
        objections: reasons why the device cannot be tested.
        data: the data that was recognised on the device.
        reading: the present telemetry of the device. None means that the device reports no telemetry.
    """

    identity: DeviceIdentity
    facts: DeviceFacts
    objections: tuple[Objection, ...]
    data: tuple[str, ...]
    purge: PurgePlan
    audit: Audit
    telemetry: DriveFacts | None
    reading: Reading | None

    def as_plain_data(self) -> dict[str, object]:
        return {
            "facts": self.facts.as_plain_data(),
            "could_be_tested": not self.objections,
            "objections": [{"reason": objection.reason.value, "text": objection.text} for objection in self.objections],
            "data": list(self.data),
            "purge_methods": [
                {"name": method.name, "title": method.title, "automatic": method.automatic}
                for method in self.purge.methods
            ],
            "purge_refusals": [asdict(refusal) for refusal in self.purge.refusals],
            "confirm_id": self.identity.confirm_id,
            "host": self.audit.as_plain_data(),
            "telemetry": {
                "facts": None if self.telemetry is None else asdict(self.telemetry),
                "reading": None if self.reading is None else asdict(self.reading),
            },
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class HostDiagnosis:
    """The abilities and shortcomings of this host for measurements.

    Attributes:
        engine: the version of the engine, or the reason why it is not known.
        could_measure: whether all programs that a measurement needs are installed.
        missing: missing programs. ``packages`` are the names of packages that contain these programs.
        remarks: circumstances that limit which tests are possible.
        engine_limits: functions that this version of the engine lacks.
    """

    host: dict[str, object]
    engine: str
    could_measure: bool
    missing: tuple[str, ...]
    packages: tuple[str, ...]
    remarks: tuple[str, ...]
    audit: Audit
    installation: Installation
    engine_limits: tuple[str, ...] = ()

    def as_plain_data(self) -> dict[str, object]:
        return {
            "host": self.host,
            "fio": self.engine,
            "fio_limits": list(self.engine_limits),
            "could_measure": self.could_measure,
            "missing": list(self.missing),
            "packages": list(self.packages),
            "programs": [
                {"name": name, "purpose": purpose, "state": self._state_of(name)} for name, purpose in TOOLS.items()
            ],
            "remarks": list(self.remarks),
            "installation": self.installation.as_plain_data(),
            "audit": self.audit.as_plain_data(),
        }

    def _state_of(self, program: str) -> str | None:
        if program in self.missing:
            return None
        engine = find_engine()
        if program != engine.name:
            return "there"
        named = engine.find_named_program()
        return self.engine if named is None else f"{self.engine} ({engine.variable}={named})"


def diagnose_device(device: str) -> DeviceDiagnosis:
    """Return the diagnosis of a device. The function does not write to the device. For a simulated drive, only the
    facts of its model are known.

    Raises:
        DeviceError: there is no such device.
        UsageError: there is no such simulated drive.
    """
    if device.startswith(SIMULATED):
        identity = identify_simulated(device)
        return DeviceDiagnosis(
            identity=identity,
            facts=inspect_device(identity),
            objections=(),
            data=(),
            purge=PurgePlan(methods=(), refusals=()),
            audit=Audit(),
            telemetry=None,
            reading=None,
        )
    identity = read_identity(Path(device))
    try:
        data = tuple(str(signature) for signature in find_data(identity))
    except DeviceError as error:
        data = (str(error),)
    telemetry, reading = look_at_telemetry(identity)
    objections = (*find_objections(identity), *_find_erase(identity))
    return DeviceDiagnosis(
        identity=identity,
        facts=inspect_device(identity),
        objections=objections,
        data=data,
        purge=plan_purge(identity),
        # The device is read only if there are no objections, because reads would disturb another program that uses or
        # measures the drive.
        audit=audit_for([identity], lasts_s=DAY_S, read_device=not objections),
        telemetry=telemetry,
        reading=reading,
    )


def _find_erase(identity: DeviceIdentity) -> tuple[Objection, ...]:
    """Return an objection if the drive is erasing itself, or if tkperf cannot determine whether the drive is erasing
    itself.
    """
    try:
        refuse_purge_under_way(identity)
    except (DeviceError, RefusedError) as error:
        return (Objection(Reason.ERASING, str(error)),)
    return ()


def diagnose_host() -> HostDiagnosis:
    """Return the diagnosis of this host: the programs that tkperf calls, and the circumstances that would disturb a run
    that lasts a day.
    """
    missing = tuple(name for name in TOOLS if find_program(name) is None)
    could_measure = not set(missing) & set(find_engine().programs)
    try:
        version, limits = find_engine().find_version(), find_engine().find_limits()
    except EngineError as error:
        version, limits, could_measure = str(error), (), False
    return HostDiagnosis(
        host=read_host(),
        engine=version,
        could_measure=could_measure,
        missing=missing,
        packages=tuple(sorted({PACKAGES[name] for name in missing if not _is_named(name)})),
        remarks=(*(_NOT_ROOT if os.geteuid() else ()), *_find_view_remarks()),
        engine_limits=limits,
        audit=audit_for([], lasts_s=DAY_S),
        installation=read_installation(),
    )


def _find_view_remarks() -> Iterator[str]:
    for objection in find_view_objections():
        yield f"block devices cannot be tested from here, files and sim: can: {objection.text}"


def _is_named(program: str) -> bool:
    """Return whether the user chose a program that belongs to no package."""
    return program == find_engine().name and find_engine().find_named_program() is not None


def unlock(device: str) -> bool:
    """Clear the password of an interrupted Security Erase, after the same checks as before an erase. Return False if no
    password is set.

    Raises:
        UsageError: the device is not a SATA drive.
        RefusedError: the device is in use.
    """
    identity = read_identity(Path(device))
    if identity.kind is not TargetKind.BLOCK or identity.interface != "SATA":
        raise UsageError(f"{device} is not a SATA drive, so it has no ATA password")
    # A locked drive cannot be read, so it cannot be checked for data.
    objections = find_objections(identity, use_only=True)
    if objections:
        raise RefusedError(f"{device} is not touched: {objections[0].text}")
    return clear_left_password(identity)
