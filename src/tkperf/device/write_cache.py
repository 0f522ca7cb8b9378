"""The volatile write cache of a drive. tkperf sets and verifies its state for a run, and restores it after the run.

According to the PTS, the cache must be off for enterprise drives and on for client drives (PTS User Guide, section 7).
For NVMe, tkperf uses feature 06h. For SCSI and, through libata, for ATA, tkperf uses the sysfs attribute cache_type,
which changes the caching mode page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tkperf.device.identity import DeviceIdentity
from tkperf.device.permit import ErasePermit
from tkperf.device.sysfs import find_disk, find_node, find_nvme_controller, text
from tkperf.model.errors import DeviceError, EngineError, TkperfError, reason_of
from tkperf.model.input_files import is_there
from tkperf.system.process import Completed, run_command

CACHE_LIMIT_S = 30.0
ON_OFF = {True: "on", False: "off"}


@dataclass(frozen=True, slots=True)
class NvmeSwitch:
    """A switch for the write cache that uses the NVMe feature of the controller. ``path`` is the path of the
    controller.
    """

    path: str

    def read(self) -> bool | None:
        """Return whether the cache is on. None means that the drive has no cache or does not report the state of the
        cache.
        """
        done = self._nvme("get-feature", "--feature-id=6")
        value = re.search(r"Current value:\s*(?:0x)?([0-9a-fA-F]+)", done.stdout)
        return None if done.exit_status or value is None else bool(int(value[1], 16) & 1)

    def write(self, on: bool) -> None:
        """Switch the cache on or off. Raise DeviceError if the drive refuses."""
        done = self._nvme("set-feature", "--feature-id=6", f"--value={int(on)}")
        if done.exit_status:
            raise DeviceError(f"{self.path} does not allow tkperf to set its write cache: {done.words[:200]}")

    def _nvme(self, command: str, *options: str) -> Completed:
        try:
            return run_command(["nvme", command, self.path, *options], timeout_s=CACHE_LIMIT_S)
        except EngineError as error:
            raise DeviceError(f"write cache of {self.path}: {error}") from error


@dataclass(frozen=True, slots=True)
class SysfsSwitch:
    """A switch for the write cache that uses ``attribute``, the cache_type of a SCSI or virtio disk. After a write to
    the attribute, the kernel queries the drive again.
    """

    path: str
    attribute: Path

    def read(self) -> bool | None:
        mode = text(self.attribute) or ""
        return mode.startswith("write back") if mode else None

    def write(self, on: bool) -> None:
        try:
            self.attribute.write_text("write back" if on else "write through")
        except OSError as error:
            raise DeviceError(
                f"{self.path} does not allow tkperf to set its write cache: {reason_of(error)}"
            ) from error


Switch = NvmeSwitch | SysfsSwitch


def find_switch(identity: DeviceIdentity) -> Switch | None:
    """Return the switch for the write cache of a drive. None means that the target has no such switch. For example, a
    file, a set or a partition has no switch.
    """
    if identity.major_minor is None or identity.partition is not None:
        return None
    disk = find_disk(find_node(identity.major_minor))
    controller = find_nvme_controller(disk)
    if controller is not None:
        return NvmeSwitch(f"/dev/{controller.name}")
    for attribute in (*sorted(disk.glob("device/scsi_disk/*/cache_type")), disk / "cache_type"):
        if is_there(attribute):
            return SysfsSwitch(identity.path, attribute)
    return None


@contextmanager
def restoring(*caches: WriteCache) -> Iterator[None]:
    """Restore the caches after the ``with`` block. If a drive is missing, the error must not hide the reason why the
    run ended.

    Raises:
        DeviceError: a drive refuses. If the block raised a TkperfError, the refusal is added to that error.
    """
    ended: BaseException | None = None
    try:
        yield
    except BaseException as error:
        ended = error
    failures = []
    for cache in caches:
        try:
            cache.restore()
        except DeviceError as error:
            failures.append(str(error))
    if failures and ended is None:
        raise DeviceError("; ".join(failures))
    if failures and isinstance(ended, TkperfError):
        raise type(ended)("; ".join((str(ended), *failures))) from ended
    if ended is not None:
        raise ended


class WriteCache:
    """The write cache of a drive during one run."""

    def __init__(self, permit: ErasePermit, wanted: str) -> None:
        """Store the permit for the drive. ``wanted`` is ``on``, ``off`` or ``keep``."""
        self._permit = permit
        self._path = permit.identity.path
        self._wanted = {"on": True, "off": False}.get(wanted)
        self._switch = find_switch(permit.identity)
        self._before: bool | None = None
        self._changed = False

    def apply(self) -> str:
        """Set the cache to the wanted state. Return the state as a text for the report. The method may be
        called again.

        Raises:
            DeviceError: the drive refuses, or does not change the state.
        """
        self._permit.require_in_use()
        now = self._switch.read() if self._switch else None
        if self._switch is None or now is None:
            return "none that could be set" if self._wanted is not None else "not known"
        if self._wanted is None:
            return f"{ON_OFF[now]}, as found"
        if not self._changed:
            self._before = now
        if now is not self._wanted:
            self._set(self._wanted)
            self._changed = True
        if self._before is self._wanted:
            return ON_OFF[self._wanted]
        return f"{ON_OFF[self._wanted]}, set for the run (was {ON_OFF[bool(self._before)]})"

    def restore(self) -> None:
        """Restore the state that the cache had before the run.

        Raises:
            DeviceError: the drive refuses. The message contains the state before the run and the current state.
        """
        if not self._changed or self._before is None:
            return
        try:
            self._set(self._before)
        except DeviceError as error:
            raise DeviceError(
                f"{error}. The write cache of {self._path} was {ON_OFF[self._before]} before the run and is now "
                f"{ON_OFF[not self._before]}"
            ) from error
        self._changed = False

    def _set(self, on: bool) -> None:
        assert self._switch is not None
        self._switch.write(on)
        if self._switch.read() is not on:
            raise DeviceError(
                f"the write cache of {self._path} could not be switched {ON_OFF[on]}. Pass --write-cache keep to "
                "measure with the present setting. Every result will then state this setting"
            )
