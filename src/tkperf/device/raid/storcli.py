"""MegaRAID controllers, which tkperf controls through storcli or perccli and their JSON output.

The module follows Broadcom's "StorCLI reference manual" (12Gb/s MegaRAID tri-mode software) and the JSON layout
documented there. The module was tested only with published outputs, which are in ``tests/golden/tools/storcli.toml``,
and never on hardware.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tkperf.device.permit import ControllerPermit
from tkperf.device.raid.config import RaidConfig
from tkperf.device.safety import find_view_objections
from tkperf.device.sysfs import wait_until
from tkperf.model.errors import DeviceError, EngineError, RefusedError, UsageError
from tkperf.model.record import OnProgress
from tkperf.system.process import find_program, run_command

# tkperf uses only the first controller.
CONTROLLER = "/c0"
PROGRAMS = ("storcli64", "storcli", "perccli64", "perccli")
# The folders in which the vendors' packages install the programs. These folders are not on the PATH.
FOLDERS = ("/opt/MegaRAID/storcli", "/opt/MegaRAID/perccli")
STORCLI_LIMIT_S = 120.0
_POLL_S = 5.0
# The longest wait until the kernel shows a virtual drive after its creation.
APPEAR_LIMIT_S = 60.0
# If an initialisation or erase makes no progress during this time, tkperf assumes that it will not end.
CONTROLLER_STALLED_S = 3600.0
# The state of a physical drive that belongs to no set: "unconfigured good".
FREE_STATE = "UGood"
OPTIMAL = "Optl"
# The values in the column DG (drive group) for a drive without a group.
NO_GROUP = ("-", "")
ROWS = "rows"
VD_OPERATIONS = "VD Operation Status"
IN_PROGRESS, NOT_IN_PROGRESS = "in progress", "not in progress"
# An erase or initialisation writes whole drives, so it is still in progress this many seconds after its start.
BEGIN_LIMIT_S = 60.0
# This command overwrites the drives once. Afterwards, the drives are no longer in the state of new drives.
ERASE = "MegaRAID drive erase, simple: overwritten once"
ERASE_NOTE = (
    "the drives and then, by its full initialisation, the set were overwritten by the controller: "
    "written, not in as-new state; not verifiable behind the controller"
)
# The controller prints binary units with decimal names, and reserves a part of each drive. The usable size of a drive
# is therefore not smaller than the decimal size minus one hundredth.
_UNITS = {"TB": 10**12, "GB": 10**9, "MB": 10**6}


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicalDrive:
    """A drive on the controller.

    ``address`` is ``enclosure:slot``. ``group`` is the drive group, or ``F`` for a foreign group.
    """

    address: str
    state: str
    model: str
    serial: str | None
    size: str
    group: str
    sector_bytes: int = 512

    @property
    def least_bytes(self) -> int | None:
        """A lower limit of the capacity, derived from ``size``. None means that ``size`` cannot be parsed."""
        match = re.fullmatch(r"(\d+(?:\.\d+)?) ([TGM]B)", self.size)
        return int(float(match[1]) * _UNITS[match[2]] * 0.99) if match else None


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualDrive:
    """A set on the controller. ``device`` is the kernel's node, and ``naa`` is the world-wide name as in sysfs."""

    number: str
    state: str
    device: str | None
    naa: str | None
    members: tuple[str, ...]


def find_storcli() -> str:
    """Return the path of storcli or, if storcli is not installed, of perccli."""
    for name in PROGRAMS:
        for called in (name, *(f"{folder}/{name}" for folder in FOLDERS)):
            if (path := find_program(called)) is not None:
                return path
    raise DeviceError(
        "sets of type hw_lsi need storcli or perccli, but neither program is installed. Download one of them from "
        "Broadcom or Dell"
    )


class StorcliSet:
    """A virtual drive on one controller.

    This class creates and deletes the virtual drive. It checks permits, but grants no permits.
    """

    def __init__(self, path: Path, config: RaidConfig) -> None:
        self.path = path
        self._config = config = config.completed()
        self._program = find_storcli()
        self._number: str | None = None
        for address in config.devices:
            if not re.fullmatch(r"\d+:\d+", address):
                raise UsageError(
                    f"RAID configuration, key devices: '{address}' does not have the form ENCLOSURE:SLOT, which "
                    "hw_lsi needs"
                )

    @property
    def title(self) -> str:
        config = self._config
        words = [f"MegaRAID RAID {config.level} over {len(config.devices)} drives"]
        words += [word for word in (config.readpolicy, config.writepolicy) if word]
        if config.strip_kib:
            words.append(f"strip {config.strip_kib} KiB")
        return ", ".join(words)

    @property
    def write_policy(self) -> str:
        """The controller's policy for caching writes: ``wt``, ``wb`` or ``awb``."""
        return str(self._config.writepolicy)

    def least_capacity_bytes(self, drives: Sequence[PhysicalDrive]) -> int:
        """Return a lower limit of the capacity that a set of these drives offers. Only the controller can calculate the
        exact capacity.

        Raises:
            DeviceError: the controller does not report the size of a drive.
        """
        stated_bytes = [size for drive in drives if (size := drive.least_bytes) is not None]
        if len(stated_bytes) < len(drives):
            unknown = ", ".join(drive.address for drive in drives if drive.least_bytes is None)
            raise DeviceError(
                f"{self.path}: the controller does not report the size of drive {unknown}. See '{self._program} "
                f"{CONTROLLER}/eall/sall show'. Nothing was touched"
            )
        return int(min(stated_bytes) * self._config.data_members)

    def drives(self) -> tuple[PhysicalDrive, ...]:
        """Return the members in the order of the configuration, as the controller reports them.

        Raises:
            DeviceError: the controller does not report one of the members, or its program fails.
        """
        return tuple(self._drive(address) for address in self._config.devices)

    def _drive(self, address: str) -> PhysicalDrive:
        where = self._where(address)
        data = self._call(where, "show", "all")
        row = _first_row(data.get(f"Drive {where}"), f"{where}: no such drive")
        detail = _table(data.get(f"Drive {where} - Detailed Information"))
        serial = _table(detail.get(f"Drive {where} Device attributes")).get("SN")
        return PhysicalDrive(
            address=address,
            state=str(row.get("State", "")),
            model=str(row.get("Model", "")).strip(),
            serial=str(serial).strip() if serial else None,
            size=str(row.get("Size", "")),
            group=str(row.get("DG", "-")).strip(),
            sector_bytes=4096 if str(row.get("SeSz", "")).startswith("4") else 512,
        )

    def refuse_used_drives(self) -> None:
        """Raise RefusedError if a member belongs to a set or is being erased, or if tkperf could not measure
        the set.
        """
        for objection in find_view_objections():
            raise RefusedError(f"{objection.text}. Nothing was touched")
        for drive in self.drives():
            who = f"drive {drive.address} ({drive.model}, {drive.serial or 'no serial'})"
            if drive.state != FREE_STATE:
                raise RefusedError(
                    f"{who} is in use, because its state is '{drive.state}'. tkperf uses only unconfigured good "
                    "(UGood) drives. Nothing was touched"
                )
            if drive.group not in NO_GROUP:
                raise RefusedError(
                    f"{who} belongs to drive group {drive.group}, where F means a set of another controller. "
                    "If you do not need this group, delete it with storcli first. Nothing was touched"
                )
            share = self._progress(self._where(drive.address), "erase")
            if share is not None:
                raise RefusedError(
                    f"{who} is being erased ({share:.0%} done). An interrupted run of tkperf may have started the "
                    "erase. Wait until the erase has finished. Nothing was touched"
                )

    def refuse_taken_node(self) -> None:
        """Raise RefusedError if the device node for the virtual drive already exists."""
        if os.path.lexists(self.path):
            raise RefusedError(
                f"{self.path} exists already, so the virtual drive would receive another name. Pass the next free "
                "name as DEVICE. Nothing was created"
            )

    def serials(self) -> dict[str, str | None]:
        """Return the serial number of each member. The address of the member is the key."""
        return {drive.address: drive.serial for drive in self.drives()}

    def purge_drives(self, permit: ControllerPermit, on_progress: OnProgress) -> str:
        """Erase the members in parallel, and return the name of the method."""
        permit.require(self.serials())
        self.refuse_used_drives()
        for address in self._config.devices:
            self._call(self._where(address), "start", "erase", "simple")
        self._wait([self._where(address) for address in self._config.devices], "erase", on_progress)
        return ERASE

    def create(self, permit: ControllerPermit) -> None:
        """Create the virtual drive, and read its number from the controller.

        Raises:
            DeviceError: the controller refuses, the kernel assigns another name to the virtual drive, or a drive is not
                one of the confirmed drives.
            RefusedError: a member is in use.
        """
        permit.require(self.serials())
        self.refuse_used_drives()
        config = self._config
        before = {drive.number for drive in self._virtual_drives()}
        # For RAID 10, the controller requires the number of drives in each mirror.
        spans = ["pdperarray=2"] if config.level == 10 else []
        strip = [f"strip={config.strip_kib}"] if config.strip_kib else []
        policies = [word for word in (config.writepolicy, config.readpolicy) if word]
        try:
            self._call(
                CONTROLLER,
                "add",
                "vd",
                f"type=raid{config.level}",
                f"drives={','.join(config.devices)}",
                *spans,
                *policies,
                *strip,
            )
        finally:
            # This code also runs if the program failed, because a virtual drive that the program created must be
            # deleted again.
            new = [
                drive
                for drive in self._virtual_drives()
                if drive.number not in before and (not drive.members or set(drive.members) == set(config.devices))
            ]
            self._number = new[0].number if len(new) == 1 else None
        if self._number is None:
            raise DeviceError(
                f"{self.path}: {len(new)} virtual drives with these members appeared instead of one. See "
                f"'{self._program} {CONTROLLER}/vall show'"
            )
        wait_until(lambda: self.virtual_drive().device is not None, limit_s=APPEAR_LIMIT_S, every_s=_POLL_S)
        drive = self.virtual_drive()
        if drive.device != str(self.path):
            raise DeviceError(
                f"virtual drive {drive.number} is {drive.device or 'not known to the kernel'}, not {self.path}. Pass "
                "the name of the virtual drive as DEVICE"
            )

    def initialise(self, on_progress: OnProgress) -> None:
        """Initialise the whole virtual drive, and wait until the initialisation ends. The state must then be
        optimal.
        """
        self._call(self._vd, "start", "init", "full")
        self._wait([self._vd], "init", on_progress)
        drive = self.virtual_drive()
        if drive.state != OPTIMAL:
            raise DeviceError(f"{self.path}: virtual drive {drive.number} is '{drive.state}'")

    def virtual_drive(self) -> VirtualDrive:
        """Return the set as the controller reports it.

        Raises:
            DeviceError: the set no longer exists.
        """
        for drive in self._virtual_drives():
            if drive.number == self._number:
                return drive
        raise DeviceError(f"{self.path}: the virtual drive no longer exists on the controller")

    def remove(self) -> None:
        """Delete the virtual drive that tkperf created. No other virtual drive is deleted."""
        if self._number is not None:
            self._call(self._vd, "delete", "force")
            self._number = None

    @property
    def _vd(self) -> str:
        if self._number is None:
            raise DeviceError(f"{self.path}: no virtual drive was created")
        return f"{CONTROLLER}/v{self._number}"

    def _where(self, address: str) -> str:
        enclosure, _, slot = address.partition(":")
        return f"{CONTROLLER}/e{enclosure}/s{slot}"

    def _virtual_drives(self) -> list[VirtualDrive]:
        data = self._call(f"{CONTROLLER}/vall", "show", "all", missing_is_empty=True)
        drives = []
        for key, rows in data.items():
            match = re.fullmatch(r"/c\d+/v(\d+)", key)
            if match is None:
                continue
            row = _first_row(rows, f"{key}: no such virtual drive")
            properties = _table(data.get(f"VD{match[1]} Properties"))
            drives.append(
                VirtualDrive(
                    number=match[1],
                    state=str(row.get("State", "")),
                    device=_word(properties.get("OS Drive Name")),
                    naa=_word(properties.get("SCSI NAA Id")),
                    members=_addresses(data.get(f"PDs for VD {match[1]}")),
                )
            )
        return drives

    def _wait(self, places: Sequence[str], operation: str, on_progress: OnProgress) -> None:
        """Wait until an operation that was just started has ended.

        The operation counts as ended on a drive only after it was seen in progress on this drive.
        """
        shares: list[float | None] = []
        at_work: set[str] = set()
        until_s = time.monotonic() + BEGIN_LIMIT_S

        def is_done() -> bool:
            shares[:] = [self._progress(place, operation) for place in places]
            at_work.update(place for place, share in zip(places, shares, strict=True) if share is not None)
            going = [share for share in shares if share is not None]
            if going:
                on_progress(min(going))
            if idle := sorted(set(places) - at_work):
                if time.monotonic() > until_s:
                    raise DeviceError(
                        f"{self.path}: the {operation} of {', '.join(idle)} was started, but the controller does not "
                        "report it in progress"
                    )
                return False
            return not going

        limit_s = CONTROLLER_STALLED_S
        if not wait_until(is_done, limit_s=limit_s, every_s=_POLL_S, progress=lambda: str(shares)):
            raise DeviceError(f"{self.path}: the {operation} makes no progress. The last shares were {shares}")

    def _progress(self, place: str, operation: str) -> float | None:
        """Return the progress of an operation as a share (0..1). None means that the operation is not running."""
        data = self._call(place, "show", operation)
        # For a drive, the response itself is the state of the operation. For a virtual drive, the response
        # contains the state as a table.
        rows = data.get(ROWS, data.get(VD_OPERATIONS))
        states = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
        going: list[float] = []
        for row in states:
            status = str(row.get("Status", ""))
            if status.lower() == IN_PROGRESS:
                done = re.match(r"\d+", str(row.get("Progress%", "")))
                going.append(int(done[0]) / 100 if done else 0.0)
            elif status.lower() != NOT_IN_PROGRESS:
                raise DeviceError(f"{self.path}: the {operation} of {place} is '{status}'")
        if not states:
            raise DeviceError(
                f"{self.path}: '{place} show {operation}' of {self._program} does not report the state of the "
                f"{operation}"
            )
        return min(going, default=None)

    def _call(self, *words: str, missing_is_empty: bool = False) -> dict[str, object]:
        """Run one command and return the data of its response. If the data is a list, the result contains it under the
        key ``ROWS``.
        """
        command = " ".join(words)
        try:
            done = run_command([self._program, *words, "J"], timeout_s=STORCLI_LIMIT_S, must_finish=True)
        except EngineError as error:
            raise DeviceError(f"{self.path}: {error}") from error
        try:
            controller = json.loads(done.stdout)["Controllers"][0]
            status = controller["Command Status"]
            succeeded = status["Status"] == "Success"
        except (ValueError, KeyError, IndexError, TypeError):
            raise DeviceError(
                f"{self.path}: '{command}' of {self._program} did not print JSON of the expected form (status "
                f"{done.exit_status}): {' '.join(done.stdout.split())[:120]}"
            ) from None
        if not succeeded:
            if missing_is_empty and "No VDs" in json.dumps(status):
                return {}
            reasons = status.get("Detailed Status") or status.get("Description", "")
            raise DeviceError(f"{self.path}: '{command}' failed: {json.dumps(reasons)[:300]}")
        data = controller.get("Response Data", {})
        return {ROWS: data} if isinstance(data, list) else _table(data)


def _table(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _word(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _addresses(rows: object) -> tuple[str, ...]:
    """Return ``enclosure:slot`` for each row in a table of drives."""
    listed = rows if isinstance(rows, list) else []
    return tuple(str(row.get("EID:Slt", "")) for row in listed if isinstance(row, dict))


def _first_row(rows: object, otherwise: str) -> dict[str, object]:
    if isinstance(rows, list) and rows and isinstance(rows[0], dict):
        return rows[0]
    raise DeviceError(otherwise)
