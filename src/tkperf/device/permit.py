"""The permit to erase: nothing destructive runs without one.

plan -> show -> permit -> execute. A permit is made only here, by the safety check, for one device
identity that the user confirmed; it holds the device exclusively and is checked again just before
each act. A permit for a RAID set follows from those of its members.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from tkperf.device.identity import DeviceIdentity, TargetKind, is_same_device, read_identity
from tkperf.device.safety import find_objections
from tkperf.device.sysfs import find_node, text
from tkperf.errors import DeviceError, RefusedError

_MADE_HERE = object()
# udev locks a device for as long as it looks at it.
LOCK_LIMIT_S = 5.0


class ErasePermit:
    """The right to erase one device during one run. Made by ``grant_permit`` only."""

    def __init__(self, identity: DeviceIdentity, hold: int, *, made_by: object) -> None:
        if made_by is not _MADE_HERE:
            raise RefusedError("a permit to erase is made by grant_permit, after its checks")
        self.identity = identity
        self._hold = hold
        self._redeemed = False
        self._lent = False
        self.lent_to: str | None = None

    @property
    def hold(self) -> int:
        """Descriptor of the exclusively opened device, for ioctls."""
        self.require_in_use()
        if self._lent:
            raise RefusedError(f"{self.identity.path} is in the hands of another program just now")
        return self._hold

    def redeem(self) -> Self:
        """Take the permit for a run.

        Raises:
            RefusedError: it was used or released before.
        """
        if self._redeemed or self._hold < 0:
            raise RefusedError("a permit to erase is good for one run")
        self._redeemed = True
        return self

    def require_in_use(self) -> None:
        """Raises RefusedError unless the permit was redeemed and not yet given back."""
        if not self._redeemed or (self._hold < 0 and not self._lent):
            raise RefusedError(
                f"{self.identity.path} is written to only while a permit to erase it is in use"
            )

    def recheck(self) -> None:
        """Look again, just before a destructive act.

        Raises:
            DeviceError: the device is gone or is another one than was confirmed.
            RefusedError: somebody has begun to use it.
        """
        self.require_in_use()
        now = read_identity(self.identity.path)
        if not is_same_device(now, self.identity):
            raise DeviceError(
                f"{self.identity.path} is no longer the device that was confirmed (serial "
                f"{now.serial or 'not known'}, before {self.identity.serial or 'not known'}): "
                "nothing more is written"
            )
        refuse_objections(now, held_by_us=True, used_by_us=self.lent_to)

    def lend(self) -> None:
        """Let go of the exclusive hold for a program that must have it: mdadm, a vendor's tool."""
        self.recheck()
        os.close(self._hold)
        self._hold, self._lent = -1, True

    def take_back(self) -> None:
        """Hold the device exclusively again; it must be the same and free.

        Raises:
            DeviceError, RefusedError: as ``recheck``.
        """
        if self._lent:
            self.lent_to = None
            self.recheck()
            self._hold, self._lent = _hold_exclusively(self.identity), False

    def release(self) -> None:
        """Give the device back."""
        self._lent = False
        if self._hold >= 0:
            os.close(self._hold)
            self._hold = -1


class SetPermit(ErasePermit):
    """The right to write to a RAID set that tkperf makes of permitted drives, each time anew."""

    def __init__(self, identify: Callable[[], DeviceIdentity], *, made_by: object) -> None:
        """``identify`` reads who the set is, and raises unless it is of the permitted drives."""
        super().__init__(identify(), -1, made_by=made_by)
        self._identify = identify
        self._redeemed = True
        self.made()

    @property
    def is_made(self) -> bool:
        """Whether the set exists and is held."""
        return self._hold >= 0

    def made(self) -> None:
        """The set was made anew: check that it is of just the permitted drives, and hold it.

        Raises:
            RefusedError: it has other members, or somebody uses it.
        """
        self.identity = self._identify()
        refuse_objections(self.identity, held_by_us=True)
        self._hold = _hold_exclusively(self.identity)


class ControllerPermit:
    """The right to erase drives behind a RAID controller, which the kernel does not see.

    Made by ``grant_controller_permit`` only. ``serials`` has the serial number of each drive by
    its address on the controller.
    """

    def __init__(self, serials: Mapping[str, str], *, made_by: object) -> None:
        if made_by is not _MADE_HERE:
            raise RefusedError("a permit to erase is made by grant_controller_permit")
        self.serials = dict(serials)

    def require(self, serials: Mapping[str, str | None]) -> None:
        """Raises DeviceError unless these are the drives that were confirmed."""
        if dict(serials) != self.serials:
            raise DeviceError(
                f"the drives of the RAID set are not those that were confirmed any more: {serials},"
                f" before {self.serials}; nothing more is written"
            )


def grant_controller_permit(
    serials: Mapping[str, str | None], *, confirmed_id: str
) -> ControllerPermit:
    """The permit for drives behind a RAID controller that the user confirmed by serial numbers.

    Raises:
        RefusedError: the wrong numbers, or a drive without one.
    """
    known = {address: serial for address, serial in serials.items() if serial}
    if len(known) < len(serials):
        raise RefusedError("a drive behind the controller tells no serial number: not touched")
    expected = ",".join(known.values())
    if confirmed_id != expected:
        raise RefusedError(
            f"'{confirmed_id}' does not confirm the drives: expected '{expected}'. "
            "Nothing was touched"
        )
    return ControllerPermit(known, made_by=_MADE_HERE)


def grant_permit(identity: DeviceIdentity, *, confirmed_id: str) -> ErasePermit:
    """Check everything that speaks against erasing a device and hold it exclusively.

    Args:
        confirmed_id: what the user gave as the device to erase; must be its ``confirm_id``.

    Raises:
        DeviceError: it is gone, or another one by now.
        RefusedError: the wrong name, or any objection; all of them are listed.
    """
    now = read_identity(identity.path)
    if not is_same_device(now, identity):
        raise DeviceError(
            f"{identity.path} is not the device any more that was shown (serial "
            f"{now.serial or 'not known'}, before {identity.serial or 'not known'}): nothing was "
            "touched"
        )
    refuse_objections(identity)
    if confirmed_id != identity.confirm_id:
        raise RefusedError(
            f"'{confirmed_id}' does not confirm {identity.path}: expected {identity.confirm_id!r}. "
            "Nothing was touched"
        )
    return ErasePermit(identity, _hold_exclusively(identity), made_by=_MADE_HERE)


def grant_set_permit(path: str, members: Sequence[ErasePermit]) -> SetPermit:
    """The permit for a set just made of members whose permits are in use.

    Raises:
        RefusedError: it has other members, or somebody uses it.
    """
    return SetPermit(lambda: _identify_set(path, members), made_by=_MADE_HERE)


def grant_virtual_drive_permit(path: str, find_naa: Callable[[], str | None]) -> SetPermit:
    """The permit for a virtual drive that the controller just made of permitted drives.

    Args:
        find_naa: asks the controller for the drive's world-wide name.

    Raises:
        RefusedError: DEVICE is another drive, or somebody uses it.
    """

    def identify() -> DeviceIdentity:
        identity, naa = read_identity(path), find_naa()
        if not naa or naa.lower() not in (identity.wwn or "").lower():
            raise RefusedError(
                f"{path} (world-wide name {identity.wwn or 'not known'}) is not the virtual drive "
                f"that was made ({naa or 'not known'}): nothing is written to it"
            )
        return identity

    return SetPermit(identify, made_by=_MADE_HERE)


def _identify_set(path: str, members: Sequence[ErasePermit]) -> DeviceIdentity:
    for member in members:
        member.require_in_use()
    identity = read_identity(path)
    below = {
        text(slave / "dev") for slave in find_node(identity.major_minor or "").glob("slaves/*")
    }
    if below != {member.identity.major_minor for member in members}:
        raise RefusedError(f"{path} is not made of the confirmed devices: nothing is written to it")
    return identity


def refuse_objections(
    identity: DeviceIdentity, *, held_by_us: bool = False, used_by_us: str | None = None
) -> None:
    """Raises RefusedError with everything that speaks against erasing a device, if anything."""
    objections = find_objections(identity, held_by_us=held_by_us, used_by_us=used_by_us)
    if objections:
        reasons = "; ".join(objection.text for objection in objections)
        consequence = (
            "Nothing more is written"
            if held_by_us
            else "Nothing was touched; free the device first if it is the right one"
        )
        raise RefusedError(f"{identity.path} must not be erased: {reasons}. {consequence}")


def _hold_exclusively(identity: DeviceIdentity) -> int:
    """Keep others off: block devices cannot be mounted while open with O_EXCL.

    The lock on top is what udev respects, so that it does not probe the device whenever fio or a
    tool closes it.
    """
    exclusive = os.O_EXCL if identity.kind is TargetKind.BLOCK else 0
    try:
        hold = os.open(Path(identity.path), os.O_RDWR | exclusive | os.O_CLOEXEC)
    except OSError as error:
        raise RefusedError(
            f"{identity.path} cannot be held exclusively: {error.strerror}; nothing was touched"
        ) from error
    until_s = time.monotonic() + LOCK_LIMIT_S
    while True:
        try:
            fcntl.flock(hold, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() < until_s:
                time.sleep(0.05)
                continue
            os.close(hold)
            raise RefusedError(f"{identity.path} is locked by another tkperf or program") from None
        return hold
