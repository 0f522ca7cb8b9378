"""The drives of the lab machine. Each drive has one entry, and the machine identifies the drive by its serial
number.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """A drive of the lab machine. ``devices`` contains arguments for QEMU devices, in which ``{drive}`` stands for the
    name of the disk's storage.

    ``root_port`` is a PCIe slot that only this drive uses. A case can pull the drive out of this slot with its ``id``.
    """

    serial: str
    size_bytes: int
    devices: tuple[str, ...]
    root_port: str | None = None

    def arguments(self, image: Path) -> list[str]:
        drive = f"drive-{self.serial}"
        arguments = ["-blockdev", f"driver=file,filename={image},node-name={drive},discard=unmap,detect-zeroes=off"]
        for device in self.devices:
            arguments += ["-device", device.format(drive=drive, serial=self.serial)]
        return arguments


def _nvme(serial: str, block_bytes: int, *, port: str) -> Disk:
    return Disk(
        serial=serial,
        size_bytes=256 * MIB,
        root_port=port,
        devices=(
            f"nvme,id={serial},serial={serial},bus={port}",
            f"nvme-ns,id={serial}-1,drive={{drive}},bus={serial},nsid=1,"
            f"logical_block_size={block_bytes},physical_block_size={block_bytes}",
        ),
    )


def _sata(serial: str, unit: int) -> Disk:
    device = f"ide-hd,drive={{drive}},serial={{serial}},bus=ide.{unit},wwn=0x5000c500a000000{unit}"
    return Disk(serial=serial, size_bytes=256 * MIB, devices=(device,))


def _virtio(serial: str) -> Disk:
    device = "virtio-blk-pci,drive={drive},serial={serial}"
    return Disk(serial=serial, size_bytes=96 * MIB, devices=(device,))


NVME = _nvme("LABNVME512", 512, port="port1")
NVME_4KN = _nvme("LABNVME4KN", 4096, port="port2")
NVME_PULLED = _nvme("LABNVMEPULL", 512, port="port3")
NVME_PULLED_OF_BATCH = _nvme("LABNVMEBATCH", 512, port="port5")
NVME_TWO = Disk(
    serial="LABNVMETWO",
    size_bytes=128 * MIB,
    root_port="port4",
    devices=("nvme,id=LABNVMETWO,serial=LABNVMETWO,bus=port4", "nvme-ns,drive={drive},bus=LABNVMETWO,nsid=1"),
)
NVME_TWO_SIBLING = Disk(
    serial="LABNVMETWO2", size_bytes=128 * MIB, devices=("nvme-ns,drive={drive},bus=LABNVMETWO,nsid=2",)
)
SATA = _sata("LABSATA1", 0)
SATA_SECOND = _sata("LABSATA2", 1)
SAS = Disk(
    serial="LABSAS1",
    size_bytes=256 * MIB,
    devices=(
        "mptsas1068,id=sas",
        "scsi-hd,drive={drive},bus=sas.0,scsi-id=0,serial={serial},wwn=0x5000c500b0000001,vendor=LAB,product=SASDISK",
    ),
)
VIRTIO_SCSI = Disk(
    serial="LABSCSI1",
    size_bytes=256 * MIB,
    devices=(
        "virtio-scsi-pci,id=vscsi",
        "scsi-hd,drive={drive},id=LABSCSI1,bus=vscsi.0,scsi-id=0,serial={serial},vendor=LAB,product=SCSIDISK",
    ),
)
USB = Disk(
    serial="LABUSB1",
    size_bytes=128 * MIB,
    devices=("qemu-xhci,id=xhci", "usb-storage,drive={drive},bus=xhci.0,serial={serial}"),
)
RAID_MEMBERS = tuple(_virtio(f"LABRAID{number}") for number in range(1, 5))

DISKS = (
    NVME,
    NVME_4KN,
    NVME_PULLED,
    NVME_PULLED_OF_BATCH,
    NVME_TWO,
    NVME_TWO_SIBLING,
    SATA,
    SATA_SECOND,
    SAS,
    VIRTIO_SCSI,
    USB,
    *RAID_MEMBERS,
)
