"""The facts of a device with their sources, the links of the device, and the disk from which the firmware booted."""

from __future__ import annotations

import json
import struct
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.model.telemetry.documents import text
from tkperf.device.identity import DeviceIdentity, TargetKind, is_same_device
from tkperf.device.inspection import inspect_device
from tkperf.device.links import read_link
from tkperf.device.usage.mounts import EFI_GLOBAL_VARIABLES, find_system_disks, read_mounts
from tkperf.model.errors import EngineError
from tkperf.system.process import Completed


def write(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def pci_function(folder: Path, **attributes: str) -> Path:
    """Create a PCI function in a fake sysfs, and return its folder."""
    bus = folder.parents[1] / "bus/pci"
    bus.mkdir(parents=True, exist_ok=True)
    write(folder / "class", "0x010802\n")
    (folder / "subsystem").symlink_to(bus)
    for name, value in attributes.items():
        write(folder / name, value + "\n")
    return folder


def nvme_disk(root: Path, **attributes: str) -> Path:
    """Create an NVMe namespace behind a PCI function in a fake sysfs, and return the folder of the disk."""
    function = pci_function(root / "devices/pci0000:00/0000:01:00.0", **attributes)
    controller = function / "nvme/nvme0"
    write(controller / "transport", "pcie\n")
    disk = controller / "nvme0n1"
    disk.mkdir()
    write(disk / "dev", "259:0\n")
    (disk / "device").symlink_to(controller)
    (root / "dev/block").mkdir(parents=True)
    (root / "dev/block/259:0").symlink_to(disk)
    return disk


FULL_LINK = {
    "current_link_speed": "16.0 GT/s PCIe",
    "current_link_width": "4",
    "max_link_speed": "16.0 GT/s PCIe",
    "max_link_width": "4",
}


@pytest.mark.parametrize(
    ("changes", "negotiated", "fastest", "downgraded"),
    [
        ({}, "PCIe gen 4 x4", "PCIe gen 4 x4", False),
        ({"current_link_width": "2"}, "PCIe gen 4 x2", "PCIe gen 4 x4", True),
        ({"current_link_speed": "8.0 GT/s PCIe"}, "PCIe gen 3 x4", "PCIe gen 4 x4", True),
        ({"max_link_speed": "Unknown"}, "PCIe gen 4 x4", None, None),
        ({"max_link_speed": "Unknown", "current_link_width": "2"}, "PCIe gen 4 x2", "PCIe x4", True),
        ({"max_link_width": "255", "current_link_speed": "8.0 GT/s PCIe"}, "PCIe gen 3 x4", "PCIe gen 4", True),
        ({"max_link_width": "0", "current_link_speed": "8.0 GT/s PCIe"}, "PCIe gen 3 x4", "PCIe gen 4", True),
        ({"max_link_speed": "", "current_link_width": "2"}, "PCIe gen 4 x2", "PCIe x4", True),
        ({"current_link_speed": "8.0 GT/s PCIe", "current_link_width": "63"}, "PCIe gen 3", "PCIe gen 4 x4", True),
        ({"max_link_width": "255"}, "PCIe gen 4 x4", None, None),
        ({"current_link_width": "63"}, "PCIe gen 4", "PCIe gen 4 x4", None),
        ({"current_link_speed": "Unknown"}, "PCIe x4", "PCIe gen 4 x4", None),
    ],
)
def test_pcie_links(
    tmp_path: Path, changes: dict[str, str], negotiated: str, fastest: str | None, downgraded: bool | None
) -> None:
    """The transfer rate determines the generation of a PCIe link. A link below the best speed or width of the drive is
    reported as downgraded, even if the kernel does not know the other of the two values. A width of 63 or 255 means
    that the width is not known.
    """
    link = read_link(nvme_disk(tmp_path, **{**FULL_LINK, **changes}))
    assert link is not None
    assert (link.negotiated, link.fastest, link.downgraded) == (negotiated, fastest, downgraded)


@pytest.mark.parametrize(
    ("speed", "word", "downgraded"), [("6.0 Gbps", 0b1110, False), ("3.0 Gbps", 0b1110, True), ("3.0 Gbps", 0, None)]
)
def test_sata_links(tmp_path: Path, speed: str, word: int, downgraded: bool | None) -> None:
    """The link speed of a SATA drive is the speed of its port. The link is reported as downgraded if identify word 76
    of the drive contains a higher speed.
    """
    disk = tmp_path / "ata7/host6/target6:0:0/6:0:0:0/block/sda"
    disk.mkdir(parents=True)
    write(tmp_path / "ata7/link7/ata_link/link7/sata_spd", speed + "\n")
    identify = bytearray(60 + 512)
    identify[60 + 152 : 60 + 154] = word.to_bytes(2, "little")
    write(disk.parents[1] / "vpd_pg89", bytes(identify))
    (disk / "device").symlink_to(disk.parents[1])
    link = read_link(disk)
    assert link is not None
    assert link.negotiated == f"SATA {float(speed.split(maxsplit=1)[0]):g} Gbit/s"
    assert link.downgraded is downgraded


def an_nvme_drive(**changes: object) -> DeviceIdentity:
    return DeviceIdentity(
        **{
            "path": "/dev/nvme0n1",
            "kind": TargetKind.BLOCK,
            "capacity_bytes": 1 << 40,
            "logical_block_bytes": 512,
            "serial": "S1",
            "interface": "NVMe",
            "major_minor": "259:0",
            **changes,
        }  # type: ignore[arg-type]
    )


def answering(stdout: str, status: int = 0) -> object:
    def run(_argv: Sequence[str], *, timeout_s: float) -> Completed:
        assert timeout_s > 0
        return Completed(exit_status=status, stdout=stdout, stderr="some words")

    return run


def test_each_fact_has_its_source(tmp_path: Path) -> None:
    """A value of the kernel is preferred to a value of a tool, and each fact has its source. A fact that no source
    provides is listed without a value.
    """
    nvme_disk(tmp_path, **FULL_LINK, numa_node="1", vendor="0x8086", device="0x0a54")
    tool = answering(json.dumps({"mn": "Drive 1 ", "sn": "OTHER", "fr": "F1  ", "oacs": 1}))
    facts = inspect_device(an_nvme_drive(), sys_root=tmp_path, run=tool)  # type: ignore[arg-type]
    assert facts.values["serial"] == "S1"
    assert facts.sources["serial"] == "kernel"
    assert facts.values["model"] == "Drive 1"
    assert facts.sources["model"] == "nvme id-ctrl"
    assert facts.values["numa_node"] == 1
    assert facts.values["security"] == "security commands supported"
    assert facts.values["rotation_rate_rpm"] is None
    assert set(facts.sources) <= set(facts.values)
    json.dumps(facts.as_plain_data())


@pytest.mark.parametrize("version", ["1.16", "2.3", "2.8", "2.13", "2.16", "3.0-rc1"])
def test_every_nvme_cli_tells_the_controller(tmp_path: Path, version: str) -> None:
    """Every supported version of nvme-cli prints the model, the firmware and the security support of the controller.
    tkperf removes the blanks that pad these texts.
    """
    nvme_disk(tmp_path)
    tool = answering(text("nvme", "id-ctrl", version, OACS=3))
    facts = inspect_device(an_nvme_drive(), sys_root=tmp_path, run=tool)  # type: ignore[arg-type]
    assert (facts.values["model"], facts.values["firmware"]) == ("Made Up NVMe 1.92TB", "1.2.3")
    assert facts.values["security"] == "security commands supported"


@pytest.mark.parametrize("version", ["2.8", "2.16", "3.0-rc1"])
def test_an_error_in_json_is_no_controller(tmp_path: Path, version: str) -> None:
    """A JSON object with an error is not used as the data of a controller. nvme-cli prints errors as JSON objects since
    version 2.7.
    """
    nvme_disk(tmp_path)
    tool = answering(text("nvme", "smart-log-while-sanitizing", version), 1)
    facts = inspect_device(an_nvme_drive(), sys_root=tmp_path, run=tool)  # type: ignore[arg-type]
    assert "a sanitize operation is in progress" in facts.gaps[0]


@pytest.mark.parametrize("version", ["7.2", "7.3", "7.4", "7.5"])
def test_every_smartctl_tells_a_sas_drive(tmp_path: Path, version: str) -> None:
    """Every supported version of smartctl provides the facts of a SAS drive, although smartctl 7.2 uses other names for
    the vendor and the firmware.
    """
    disk = tmp_path / "devices/host0/block/sda"
    write(disk / "dev", "8:0\n")
    write(disk / "device/scsi_level", "7\n")
    (tmp_path / "dev/block").mkdir(parents=True)
    (tmp_path / "dev/block/8:0").symlink_to(disk)
    sas = an_nvme_drive(path="/dev/sda", interface="SAS", major_minor="8:0", serial=None)
    tool = answering(text("smartctl", "sas", version))
    facts = inspect_device(sas, sys_root=tmp_path, run=tool)  # type: ignore[arg-type]
    names = ("model", "vendor", "serial", "firmware")
    assert [facts.values[name] for name in names] == ["MADEUP MADE UP SAS", "MADEUP", "MADEUP0003", "0003"]


@pytest.mark.parametrize("stdout", ["", "garbage", "[1]", '{"mn": 5}'])
def test_a_tool_that_prints_rubbish_costs_only_its_facts(tmp_path: Path, stdout: str) -> None:
    """Unusable output of a tool never causes an error. The model is then not known. The list of gaps contains the
    reason, unless the output was a JSON object.
    """
    nvme_disk(tmp_path)
    tool = answering(stdout)
    facts = inspect_device(an_nvme_drive(), sys_root=tmp_path, run=tool)  # type: ignore[arg-type]
    assert facts.values["model"] is None
    assert facts.values["serial"] == "S1"
    assert bool(facts.gaps) is not stdout.startswith("{")


def test_a_missing_or_hanging_tool_is_a_gap(tmp_path: Path) -> None:
    """If a tool is missing, the list of gaps contains the message that names the package."""
    nvme_disk(tmp_path)

    def missing(_argv: Sequence[str], *, timeout_s: float) -> Completed:
        raise EngineError("'nvme' is not installed. Install it with: sudo apt-get install nvme-cli")

    facts = inspect_device(an_nvme_drive(), sys_root=tmp_path, run=missing)
    assert facts.gaps == ["'nvme' is not installed. Install it with: sudo apt-get install nvme-cli"]


@pytest.mark.parametrize(
    "change", [{"serial": "S2"}, {"wwn": "x"}, {"capacity_bytes": 1}, {"disk_sequence": 2}, {"major_minor": "259:1"}]
)
def test_another_drive_under_the_same_name(change: dict[str, object]) -> None:
    """Two drives are different if any of serial number, WWN, size, device number or disk sequence number differs. The
    name and the firmware of one drive may change.
    """
    assert is_same_device(an_nvme_drive(), an_nvme_drive(firmware="new", path="/dev/other"))
    assert not is_same_device(an_nvme_drive(), an_nvme_drive(**change))


def test_a_partition_is_confirmed_by_its_path() -> None:
    """A partition is confirmed with its path. The serial number of the drive would not show which partition the user
    means.
    """
    assert an_nvme_drive().confirm_id == "S1"
    assert an_nvme_drive(partition=2, path="/dev/nvme0n1p2").confirm_id == "/dev/nvme0n1p2"


def test_the_disk_that_uefi_booted_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """tkperf finds the disk from which UEFI booted, although none of its partitions is mounted. BootCurrent names the
    entry Boot001A, and this entry contains the GUID of a partition on the disk. UEFI writes the number of an entry with
    four upper-case hexadecimal digits.
    """
    guid = uuid.UUID("12345678-9abc-def0-1234-56789abcdef0")
    disk = tmp_path / "sys/devices/sdb"
    write(disk / "dev", "8:16\n")
    write(disk / "sdb1/dev", "8:17\n")
    write(disk / "sdb1/partition", "1\n")
    (tmp_path / "sys/class/block").mkdir(parents=True)
    (tmp_path / "sys/class/block/sdb1").symlink_to(disk / "sdb1")
    variables = tmp_path / "sys/firmware/efi/efivars"
    write(variables / f"BootCurrent-{EFI_GLOBAL_VARIABLES}", b"\x06\0\0\0\x1a\0")
    acpi = struct.pack("<BBHII", 2, 1, 12, 0, 0)
    hard_drive = struct.pack("<BBHIQQ16sBB", 4, 1, 42, 1, 2048, 4096, guid.bytes_le, 2, 2)
    name = "debian\0".encode("utf-16-le")
    option = struct.pack("<IH", 1, len(acpi) + len(hard_drive)) + name + acpi + hard_drive
    write(variables / f"Boot001A-{EFI_GLOBAL_VARIABLES}", b"\x07\0\0\0" + option)
    write(tmp_path / "proc/self/mountinfo", "")
    monkeypatch.setattr(
        "tkperf.device.usage.mounts.udev_properties",
        lambda number: {"ID_PART_ENTRY_UUID": str(guid)} if number == "8:17" else {},
    )
    found = find_system_disks(tmp_path / "sys", read_mounts(tmp_path / "proc/self", None))
    assert found == {disk: "the system was booted from it (UEFI)"}


def test_the_disk_below_the_root_file_system(tmp_path: Path) -> None:
    """tkperf finds the disk below / through a logical volume, an encryption layer and a partition."""
    devices = tmp_path / "sys/devices"
    write(devices / "sda/dev", "8:0\n")
    write(devices / "sda/sda3/partition", "3\n")
    write(devices / "sda/sda3/dev", "8:3\n")
    write(devices / "dm-0/dev", "253:0\n")
    write(devices / "dm-1/dev", "253:1\n")
    for upper, lower in (("dm-1", "dm-0"), ("dm-0", "sda/sda3")):
        (devices / upper / "slaves").mkdir()
        (devices / upper / "slaves" / Path(lower).name).symlink_to(devices / lower)
    (tmp_path / "sys/dev/block").mkdir(parents=True)
    (tmp_path / "sys/dev/block/253:1").symlink_to(devices / "dm-1")
    write(tmp_path / "proc/self/mountinfo", "1 0 253:1 / / rw - ext4 /dev/x rw\n")
    found = find_system_disks(tmp_path / "sys", read_mounts(tmp_path / "proc/self", None))
    assert found == {devices / "sda": "the running system has / on it"}
