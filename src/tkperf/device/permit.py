"""The permit to erase a device. Without a permit, tkperf writes to no device and erases no device.

The order is: plan, show, permit, execute. Only this module creates permits. It creates a permit after the safety check,
for one device whose identity the user confirmed. A permit holds the device exclusively, and tkperf checks the permit
again just before each destructive act. The permit for a RAID set is derived from the permits of its members.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Self

from tkperf.device.hold import Handle, Hold, require_shown
from tkperf.device.identity import DeviceIdentity, TargetKind, read_identity
from tkperf.device.safety import find_objections
from tkperf.device.sysfs import find_node, text
from tkperf.model.errors import DeviceError, RefusedError

_MADE_HERE = object()


class ErasePermit:
    """The right to erase one device during one run. Only ``grant_permit`` creates such a permit."""

    def __init__(self, held: Hold, *, made_by: object) -> None:
        if made_by is not _MADE_HERE:
            raise RefusedError(
                "only the function grant_permit, which checks the device first, may create a permit to erase"
            )
        self._held = held
        self._redeemed = False
        # The kernel's name of the set or mapping that tkperf created from the device.
        self.lent_to: str | None = None
        self._shared = False
        self._has_begun = False

    @property
    def identity(self) -> DeviceIdentity:
        return self._held.identity

    @property
    def descriptor(self) -> int:
        """The descriptor of the exclusively opened device, for ioctls."""
        self._require_at_hand()
        if self._held.is_lent:
            raise RefusedError(f"{self.identity.path} is not held exclusively by tkperf at the moment")
        return self._held.exclusive

    @property
    def path(self) -> str:
        """The path to the held device, for programs that accept a path."""
        self._require_at_hand()
        return self._held.path

    @property
    def handle(self) -> Handle:
        """The handle for a program that erases the device."""
        self.require_in_use()
        return self._held.handle

    @property
    def locks(self) -> tuple[int, ...]:
        """The descriptors that a load generator inherits. These descriptors keep the device locked while the
        generator runs.
        """
        return (self._held.anchor,) if self._held.is_open else ()

    def redeem(self) -> Self:
        """Mark the permit as used for this run, and return it.

        Raises:
            RefusedError: the permit was already used or released.
        """
        if self._redeemed or not self._held.is_open:
            raise RefusedError(
                "a permit to erase is valid for one run only, and this permit was used or released before"
            )
        self._redeemed = True
        return self

    def require_in_use(self) -> None:
        """Check that the permit is in use: it was redeemed and not yet released. Otherwise raise RefusedError."""
        if not self._redeemed or not self._held.is_open:
            raise RefusedError(
                f"tkperf must not write to {self.identity.path}, because the permit to erase this device is not in use"
            )

    def _require_at_hand(self) -> None:
        self.require_in_use()
        if self._held.is_lent and not (self._shared and self.lent_to):
            raise RefusedError(
                f"another program is using {self.identity.path} at the moment, so tkperf must not write to it"
            )

    def recheck(self) -> None:
        """Check the held device again, just before a destructive act.

        Before the first act of a run, the method also checks whether other programs have written to the
        device since the first reading.

        Raises:
            DeviceError: the device was removed, or is not the confirmed device.
            RefusedError: other programs use the device now or have written to it, or the permit is
                not in use.
        """
        self.require_in_use()
        self._held.require_same()
        if not self._has_begun:
            refuse_written(self.identity, self._held.describe_write(), begun=True)
        refuse_objections(self.identity, held=self._held.anchor, used_by_us=self.lent_to, begun=True)
        self._has_begun = True

    def require_kernel_name(self) -> str:
        """Return the kernel's own node of the device, for programs that use names.

        While the permit holds the device, the kernel gives this name to no other device.

        Raises:
            DeviceError: the node is missing or belongs to another device.
        """
        path = self._held.kernel_name()
        if path is None:
            raise DeviceError(
                f"{self.identity.path}: the kernel's node in /dev is missing or belongs to another device, so tkperf "
                "cannot pass its name to the purge program. Nothing more is written"
            )
        return path

    def named_handle(self) -> Handle:
        """Return a handle with the kernel's node, for programs that use names.

        For a file, the result is the same as ``handle``.

        Raises:
            DeviceError: the node is missing or belongs to another device.
        """
        if self.identity.kind is not TargetKind.BLOCK:
            return self.handle
        return replace(self.handle, path=self.require_kernel_name())

    def lend(self, *, shared: bool = False) -> None:
        """Release the exclusive hold for another user of the device: mdadm, a vendor's tool, or a mapping.

        Args:
            shared: whether the other user of the device keeps other programs away from the device, but lets tkperf
                write directly to the device.

        Raise the same errors as ``recheck``.
        """
        self.recheck()
        self._held.lend()
        self._shared = shared

    def take_back(self) -> None:
        """Hold the device exclusively again, after a check that it is the same device and that no other program uses
        it. Raise the same errors as ``recheck``.
        """
        if self._held.is_lent:
            self.lent_to, self._shared = None, False
            self.recheck()
            self._held.take_back()

    def release(self) -> None:
        """Release the device."""
        self._held.release()


class SetPermit(ErasePermit):
    """The right to write to a RAID set or mapping that tkperf creates from permitted drives. Each new set needs a new
    permit.
    """

    def __init__(self, identify: Callable[[], DeviceIdentity], *, made_by: object) -> None:
        """Create a permit that holds the set.

        Args:
            identify: a function that returns the identity of the set. The function raises an error unless the set
                consists of the permitted drives.
        """
        super().__init__(self._hold_set(identify), made_by=made_by)
        self._identify = identify
        self._redeemed = True

    @property
    def is_made(self) -> bool:
        """Return whether tkperf has created the set and holds it."""
        return self._held.is_open

    def made(self) -> None:
        """Check that a new set consists exactly of the permitted drives, and hold the set.

        Raises:
            RefusedError: the set has other members, or other programs use it.
        """
        self._held = self._hold_set(self._identify)

    @staticmethod
    def _hold_set(identify: Callable[[], DeviceIdentity]) -> Hold:
        identity = identify()
        refuse_objections(identity, use_only=True)
        held = Hold(identity)
        try:
            refuse_objections(identity, held=held.anchor)
        except BaseException:
            held.release()
            raise
        return held


class ControllerPermit:
    """The right to erase drives behind a RAID controller. The kernel does not show these drives.

    Only ``grant_controller_permit`` creates such a permit. ``serials`` maps the address of each drive on the controller
    to the serial number of the drive.
    """

    def __init__(self, serials: Mapping[str, str], *, made_by: object) -> None:
        if made_by is not _MADE_HERE:
            raise RefusedError("only the function grant_controller_permit may create a permit to erase")
        self.serials = dict(serials)

    def require(self, serials: Mapping[str, str | None]) -> None:
        """Check that these drives are the confirmed drives. Otherwise raise DeviceError."""
        if dict(serials) != self.serials:
            raise DeviceError(
                f"the drives of the RAID set are not the drives that you confirmed. Present drives: {serials}. "
                f"Confirmed drives: {self.serials}. Nothing more is written"
            )


def grant_controller_permit(serials: Mapping[str, str | None], *, confirmed_id: str) -> ControllerPermit:
    """Return the permit for drives behind a RAID controller. The user has confirmed the drives by their serial numbers.

    Raises:
        RefusedError: the confirmed numbers are wrong, or a drive has no serial number.
    """
    serial_of = {address: serial for address, serial in serials.items() if serial}
    if len(serial_of) < len(serials):
        raise RefusedError(
            "a drive behind the controller reports no serial number, so tkperf cannot confirm it. Use another drive. "
            "Nothing was touched"
        )
    expected = ",".join(serial_of.values())
    if confirmed_id != expected:
        raise RefusedError(
            f"'{confirmed_id}' does not confirm the drives. The expected answer is '{expected}'. Nothing was touched"
        )
    return ControllerPermit(serial_of, made_by=_MADE_HERE)


def hold_target(identity: DeviceIdentity) -> Hold:
    """Check for objections to erasing a device, and hold the device exclusively.

    The held device is checked again, because its state may have changed between the check and the hold.

    Raises:
        DeviceError: the device was removed, or is now a different device.
        RefusedError: there are objections. The message lists all of them.
    """
    require_shown(read_identity(identity.path), identity)
    refuse_objections(identity)
    held = Hold(identity)
    try:
        refuse_objections(identity, held=held.anchor)
        held.look()
        members = [signature for signature in held.data if signature.member]
        if members:
            what = ", ".join(map(str, members))
            raise RefusedError(f"{identity.path} must not be erased, because it contains {what}. Nothing was touched")
    except BaseException:
        held.release()
        raise
    return held


def grant_permit(held: Hold, *, confirmed_id: str) -> ErasePermit:
    """Return the permit for a held device if the user confirmed exactly this device. After an error, release the
    device.

    Args:
        confirmed_id: the device to erase, as the user named it. The text must equal the device's ``confirm_id``.

    Raises:
        DeviceError: the device was removed, or is now a different device.
        RefusedError: ``confirmed_id`` is wrong, or other programs use the device now.
    """
    identity = held.identity
    try:
        if confirmed_id != identity.confirm_id:
            raise RefusedError(
                f"'{confirmed_id}' does not confirm {identity.path}. The expected answer is {identity.confirm_id!r}. "
                "Nothing was touched"
            )
        held.require_same()
        # Check for users of the device again. An exclusive hold does not prevent ordinary writes, and the user may have
        # needed hours to answer.
        refuse_objections(identity, held=held.anchor, ask_processes=True)
    except BaseException:
        held.release()
        raise
    return ErasePermit(held, made_by=_MADE_HERE)


def grant_set_permit(find_path: Callable[[], str], members: Sequence[ErasePermit]) -> SetPermit:
    """Return the permit for a set or mapping that was just created from drives whose permits are in use.

    Args:
        find_path: a function that returns the node of the set, which may change each time that a mapping is created.

    Raises:
        RefusedError: the set or mapping uses other drives, or other programs use it.
    """

    def identify() -> DeviceIdentity:
        path = find_path()
        for member in members:
            member.require_in_use()
        identity = read_identity(path)
        slaves = find_node(identity.major_minor or "").glob("slaves/*")
        below = {text(slave / "dev") for slave in slaves}
        if below != {member.identity.major_minor for member in members}:
            raise RefusedError(f"{path} does not consist of the confirmed devices, so tkperf writes nothing to it")
        return identity

    return SetPermit(identify, made_by=_MADE_HERE)


def grant_virtual_drive_permit(path: str, find_naa: Callable[[], str | None]) -> SetPermit:
    """Return the permit for a virtual drive that the controller has just created from permitted drives.

    Args:
        path: the path of the virtual drive, as the user gave it.
        find_naa: a function that asks the controller for the world-wide name of the virtual drive.

    Raises:
        RefusedError: ``path`` leads to another drive, or other programs use the virtual drive.
    """

    def identify() -> DeviceIdentity:
        identity, naa = read_identity(path), find_naa()
        if not naa or naa.lower() != (identity.wwn or "").lower().removeprefix("naa."):
            raise RefusedError(
                f"{path} (world-wide name {identity.wwn or 'not known'}) is not the virtual drive that tkperf created "
                f"({naa or 'not known'}), so tkperf writes nothing to it"
            )
        return identity

    return SetPermit(identify, made_by=_MADE_HERE)


def refuse_written(identity: DeviceIdentity, sign: str | None, *, begun: bool = False) -> None:
    """Raise RefusedError if there is evidence that another program wrote to a device after the first reading.

    Args:
        sign: a text that describes the evidence of the write. None means that there is no evidence.
        begun: the same as in ``refuse_objections``.
    """
    if sign is not None:
        consequence = "Nothing more is written" if begun else "Nothing was touched"
        raise RefusedError(f"a program has written to {identity.path} since tkperf showed it: {sign}. {consequence}")


def refuse_objections(
    identity: DeviceIdentity,
    *,
    held: int | None = None,
    use_only: bool = False,
    used_by_us: str | None = None,
    ask_processes: bool = False,
    begun: bool = False,
) -> None:
    """Raise RefusedError if there are objections to erasing a device. The message contains all objections.

    Args:
        held, use_only, used_by_us, ask_processes: the same as in ``find_objections``.
        begun: whether the run has begun, so that the run may already have written to the device.
    """
    objections = find_objections(
        identity, held=held, use_only=use_only, used_by_us=used_by_us, ask_processes=ask_processes
    )
    if objections:
        reasons = "; ".join(objection.text for objection in objections)
        untouched = "Nothing was touched; free the device first if it is the right one"
        consequence = "Nothing more is written" if begun else untouched
        raise RefusedError(f"{identity.path} must not be erased: {reasons}. {consequence}")
