"""The purge methods that a device supports, in order of preference. The module also chooses and executes a
method.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tkperf.device.identity import DeviceIdentity, TargetKind, find_interface
from tkperf.device.permit import ErasePermit
from tkperf.device.purge.ata import find_ata_sanitize, in_order, offer_ata
from tkperf.device.purge.base import NO_WATCH, Offer, PurgeMethod, PurgeRefusal, PurgeWatch, sample_content
from tkperf.device.purge.generic import offer_command, offer_discard, offer_hole_punching
from tkperf.device.purge.nvme import find_nvme_sanitize, offer_nvme
from tkperf.device.purge.scsi import find_scsi_erase, offer_scsi
from tkperf.device.sysfs import find_disk, find_node, find_nvme_controller, is_scsi
from tkperf.model.errors import DeviceError, EngineError, RefusedError, UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgePlan:
    """The methods that can purge a device, in order of preference, and the rejected methods with the reasons."""

    methods: tuple[PurgeMethod, ...]
    refusals: tuple[PurgeRefusal, ...]

    def choose(self, name: str | None, *, device: str) -> PurgeMethod:
        """Return the method with this name. If no name is given, return the first method that tkperf may choose without
        a request.

        Raises:
            UsageError: the device does not support the named method.
            DeviceError: the device supports no automatic method.
        """
        by_name = {method.name: method for method in self.methods}
        if name is not None:
            if name in by_name:
                return by_name[name]
            why = {refusal.name: refusal.because for refusal in self.refusals}.get(name, "not offered")
            has = ", ".join(by_name) or "none"
            raise UsageError(f"{device} cannot be purged with {name} ({why}). The methods of the device are: {has}")
        for method in self.methods:
            if method.automatic:
                return method
        because = "; ".join(f"{refusal.name}: {refusal.because}" for refusal in self.refusals)
        raise DeviceError(
            f"{device} offers no purge method that tkperf can use ({because}). Pass a --purge-command, or purge the "
            "device yourself and pass --no-purge. Every result will then state that tkperf did not purge the device"
        )


def plan_purge(identity: DeviceIdentity, *, command: str | None = None) -> PurgePlan:
    """Return the purge methods of the device. Nothing is changed.

    Args:
        command: a vendor's tool to use instead. The command must contain ``{device}``.

    Raises:
        UsageError: the command cannot be used.
    """
    if command is not None:
        return PurgePlan(methods=(offer_command(command),), refusals=())
    offers = list(_offers(identity))
    return PurgePlan(
        methods=tuple(offer for offer in offers if isinstance(offer, PurgeMethod)),
        refusals=tuple(offer for offer in offers if isinstance(offer, PurgeRefusal)),
    )


def _offers(identity: DeviceIdentity) -> tuple[Offer, ...]:
    if identity.kind is TargetKind.FILE:
        return (offer_hole_punching(),)
    if identity.major_minor is None:
        return ()
    node = find_node(identity.major_minor)
    disk = find_disk(node)
    generic = offer_discard(disk)
    if identity.partition is not None:
        # The drive's own commands would also erase the other partitions.
        return generic
    if find_nvme_controller(disk) is not None:
        return (*offer_nvme(identity, disk), *generic)
    if identity.interface == "SATA":
        return in_order(offer_ata(identity), generic, disk)
    if is_scsi(disk):
        return (*offer_scsi(identity), *generic)
    return generic


def refuse_purge_under_way(identity: DeviceIdentity) -> None:
    """Raise an error if a drive is still erasing itself, even if another program started the erase.

    If the target is a partition, a volume or a RAID set, the function asks the drives that the target uses.

    Raises:
        RefusedError: a drive is erasing itself.
        DeviceError: the last erase of a drive failed, so that the drive accepts no reads and writes. The error is also
            raised if tkperf cannot interpret the status in the drive's sanitize log.
    """
    if identity.major_minor is None:
        return
    disk = find_disk(find_node(identity.major_minor))
    for drive in _find_drives(disk):
        if drive == disk and identity.partition is None:
            path, interface = identity.path, identity.interface
        else:
            path, interface = f"/dev/{drive.name}", find_interface(drive)
        share: float | None = None
        with suppress(EngineError):  # the drive does not report its state
            share = _find_erase_under_way(path, interface, drive)
        if share is not None:
            raise RefusedError(
                f"{path} is erasing itself ({share:.0%} done). An interrupted run of tkperf may have started the "
                "erase. Wait until the erase has finished. Nothing was touched"
            )


def _find_drives(disk: Path) -> Iterator[Path]:
    """Yield the folder of a disk in sysfs. For a volume or a RAID set, also yield the folders of all disks
    that it uses.
    """
    yield disk
    for lower in sorted(disk.glob("slaves/*")):
        yield from _find_drives(find_disk(lower))


def _find_erase_under_way(path: str, interface: str | None, disk: Path) -> float | None:
    """Return the progress of an erase that a drive is executing, as a share (0..1). None means that no erase is
    running.
    """
    if find_nvme_controller(disk) is not None:
        return find_nvme_sanitize(path)
    if interface == "SATA":
        return find_ata_sanitize(path)
    if interface != "USB" and is_scsi(disk):
        return find_scsi_erase(path)
    return None


def run_purge(permit: ErasePermit, method: PurgeMethod, *, watch: PurgeWatch = NO_WATCH) -> str:
    """Erase the whole permitted target, and check that it is erased. Return the result of the check as a text.

    Raises:
        DeviceError: the method failed, took too long, or did not erase all data.
        RefusedError: the permit is no longer valid.
    """
    permit.recheck()
    before = sample_content(permit)
    method.act(permit, watch)
    permit.recheck()
    after = sample_content(permit)
    return before.compare(after, method=method.title, reads_zero=method.reads_zero)
