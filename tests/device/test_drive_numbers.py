"""An answer to the consent question names exactly one target, even if several disks of a host report the same serial
number.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tkperf.device.identity import DeviceIdentity, TargetKind, find_distinction
from tkperf.model.errors import RefusedError
from tkperf.pipeline.consent import Consent, Question, obtain


def make_disks(sys_root: Path, *disks: dict[str, str]) -> list[Path]:
    """Create disks with these attributes in a fake sysfs, and return their folders.

    ``lun`` is the last part of the SCSI address. ``hidden`` marks a disk without a node in /dev.
    """
    folders = []
    for number, attributes in enumerate(disks):
        folder = sys_root / "block" / attributes.get("name", f"disk{number}")
        (folder / "queue").mkdir(parents=True)
        if "hidden" not in attributes:
            (folder / "dev").write_text(f"250:{number}\n")
        device = folder / "device"
        device.mkdir()
        if "lun" in attributes:
            device.rmdir()
            device = sys_root / f"devices/{number}:0:0:{attributes['lun']}"
            device.mkdir(parents=True)
            (device / "scsi_level").write_text("7\n")
            (folder / "device").symlink_to(device)
        for name in ("serial", "nsid", "wwid"):
            if name in attributes:
                (folder / name).write_text(f"{attributes[name]}\n")
        folders.append(folder)
    return folders


EUI = {"wwid": "eui.0025385b0140a3c1"}


@pytest.mark.parametrize(
    ("disks", "found"),
    [
        ([{"serial": "A", "nsid": "1"}], [None]),
        ([{"serial": "A", "nsid": "1"}, {"serial": "B", "nsid": "1"}], [None, None]),
        ([{}, {}], [None, None]),
        # Two namespaces of an NVMe drive, and two LUNs of a drive with two actuators.
        ([{"serial": "A", "nsid": "1"}, {"serial": "A", "nsid": "2"}], ["namespace-1", "namespace-2"]),
        ([{"serial": "A", "lun": "0"}, {"serial": "A", "lun": "1"}], ["LUN-0", "LUN-1"]),
        # Two paths to one namespace. They are either two visible disks, or hidden paths of the kernel's NVMe multipath.
        ([{"serial": "A", "nsid": "1", **EUI}, {"serial": "A", "nsid": "1", **EUI}], [None, None]),
        ([{"serial": "A", "nsid": "1"}, {"serial": "A", "nsid": "1", "hidden": "1"}], [None]),
        # Docking stations and cheap drives may report the same serial number for all disks.
        ([{"serial": "A", "lun": "0", "wwid": f"naa.500{number}"} for number in (1, 2)], ["naa.5001", "naa.5002"]),
        ([{"serial": "A", "lun": "0", "wwid": "t10.ATA DOCK"} for _ in (1, 2)], ["disk0", "disk1"]),
        # Each boot area of an eMMC drive has a distinct name, so the serial number alone identifies the drive itself.
        (
            [
                {"serial": "A", "name": "mmcblk0"},
                {"serial": "A", "name": "mmcblk0boot0"},
                {"serial": "A", "name": "mmcblk0boot1"},
            ],
            [None, "boot-area-0", "boot-area-1"],
        ),
    ],
)
def test_what_an_answer_names_besides_the_serial_number(
    tmp_path: Path, disks: list[dict[str, str]], found: list[str | None]
) -> None:
    """If no other disk reports the serial number, the serial number alone is the answer. Otherwise the answer also
    needs the namespace, LUN, world-wide name or name of the disk.
    """
    folders = make_disks(tmp_path, *disks)
    shown = [find_distinction(folder, sys_root=tmp_path) for folder in folders]
    assert shown[: len(found)] == found


SECOND = DeviceIdentity(
    path="/dev/nvme0n2",
    kind=TargetKind.BLOCK,
    capacity_bytes=1 << 30,
    logical_block_bytes=512,
    serial="S1",
    unit="namespace 2",
    distinction="namespace-2",
)


def test_the_serial_number_of_two_namespaces_confirms_neither() -> None:
    """A serial number that two namespaces share confirms neither namespace. The error contains the expected answer. A
    partition is confirmed with its path.
    """
    assert SECOND.confirm_id == "S1/namespace-2"
    assert replace(SECOND, partition=1, path="/dev/nvme0n2p1").confirm_id == "/dev/nvme0n2p1"
    question = Question(devices=(SECOND.path,), ids=(SECOND.confirm_id,), shares_serial=True)
    with pytest.raises(RefusedError) as refused:
        obtain(question, Consent(confirm="S1"))
    assert str(refused.value) == (
        "'S1' does not confirm /dev/nvme0n2. The expected answer is 'S1/namespace-2'. Other disks of this host report "
        "the same serial number, so the answer must name one disk. Nothing was touched"
    )
    with pytest.raises(RefusedError, match=r"Other disks .* --yes-destroy S1/namespace-2$"):
        obtain(question, Consent(way="--yes-destroy"))
    assert obtain(question, Consent(confirm="S1/namespace-2")) == ("S1/namespace-2",)
