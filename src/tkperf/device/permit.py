"""The permit to erase: nothing destructive runs without one.

plan -> show -> permit -> execute. A permit is made only here, by the safety check, for one device
identity that the user confirmed; it holds the device exclusively and is checked again just before
each act.
"""

from __future__ import annotations

import fcntl
import os
from typing import Self

from tkperf.device.identity import DeviceIdentity, TargetKind, is_same_device, read_identity
from tkperf.device.safety import find_objections
from tkperf.errors import DeviceError, RefusedError

_MADE_HERE = object()


class ErasePermit:
    """The right to erase one device during one run. Made by ``grant_permit`` only."""

    def __init__(self, identity: DeviceIdentity, hold: int, *, made_by: object) -> None:
        if made_by is not _MADE_HERE:
            raise RefusedError("a permit to erase is made by grant_permit, after its checks")
        self.identity = identity
        self._hold = hold
        self._redeemed = False

    @property
    def hold(self) -> int:
        """Descriptor of the exclusively opened device, for ioctls."""
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
        if not self._redeemed or self._hold < 0:
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
        refuse_objections(now, held_by_us=True)

    def release(self) -> None:
        """Give the device back."""
        if self._hold >= 0:
            os.close(self._hold)
            self._hold = -1


def grant_permit(identity: DeviceIdentity, *, confirmed_id: str) -> ErasePermit:
    """Check everything that speaks against erasing a device and hold it exclusively.

    Args:
        confirmed_id: what the user gave as the device to erase; must be its ``confirm_id``.

    Raises:
        RefusedError: the wrong name, or any objection; all of them are listed.
    """
    refuse_objections(identity)
    if confirmed_id != identity.confirm_id:
        raise RefusedError(
            f"'{confirmed_id}' does not confirm {identity.path}: expected {identity.confirm_id!r}. "
            "Nothing was touched"
        )
    return ErasePermit(identity, _hold_exclusively(identity), made_by=_MADE_HERE)


def refuse_objections(identity: DeviceIdentity, *, held_by_us: bool = False) -> None:
    """Raises RefusedError with everything that speaks against erasing a device, if anything."""
    objections = find_objections(identity, held_by_us=held_by_us)
    if objections:
        reasons = "; ".join(objection.text for objection in objections)
        consequence = (
            "Nothing more is written"
            if held_by_us
            else "Nothing was touched; free the device first if it is the right one"
        )
        raise RefusedError(f"{identity.path} must not be erased: {reasons}. {consequence}")


def _hold_exclusively(identity: DeviceIdentity) -> int:
    """Keep others off: block devices cannot be mounted while open with O_EXCL."""
    exclusive = os.O_EXCL if identity.kind is TargetKind.BLOCK else 0
    try:
        hold = os.open(identity.path, os.O_RDWR | exclusive | os.O_CLOEXEC)
        fcntl.flock(hold, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RefusedError(f"{identity.path} is locked by another tkperf or program") from None
    except OSError as error:
        raise RefusedError(
            f"{identity.path} cannot be held exclusively: {error.strerror}; nothing was touched"
        ) from error
    return hold
