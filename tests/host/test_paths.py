"""Paths of drives according to sysfs. A path contains the parts between the drive and the CPU. Each part has its
bandwidth, or states that the bandwidth is not known.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from tests.host.fake_drives import ROOT_BUS, FakeDrives, nvme_behind_switch, sata_behind_expander, sata_on_chipset
from tkperf.analysis.sharing.groups import group_drives, judge_sharing
from tkperf.device.identity import DeviceIdentity, TargetKind
from tkperf.host.paths import read_cores, read_path
from tkperf.model.sharing import DrivePath, LinkGap, Part, PartKind, PathGap, SharingState


def shown(path: DrivePath) -> list[tuple[str, str | None, object]]:
    """Return the kind, the link and the MB/s of each part of a path."""
    return [
        (part.kind.value, part.link, None if part.bytes_per_s is None else part.bytes_per_s / 1e6)
        for part in path.parts
    ]


def test_each_link_of_a_switch_counts_once(tmp_path: Path) -> None:
    """Each link of a switch counts once, although both of its ends show it. The link of the drive and the uplink of the
    switch are two parts.
    """
    fake = FakeDrives(tmp_path)
    path = read_path(nvme_behind_switch(fake)[1], sys_root=tmp_path)
    assert shown(path) == [
        ("drive's link", "PCIe gen 4 x4", pytest.approx(7876.9, abs=0.1)),
        ("PCIe switch", "PCIe gen 4 x8", pytest.approx(15753.8, abs=0.1)),
    ]
    assert [part.key for part in path.parts] == ["pci 0000:04", "pci 0000:01"]
    assert path.gap is None
    assert (path.numa_node, path.near_cpus) == (0, tuple(range(8)))


def test_phys_of_a_wide_port_add_up(tmp_path: Path) -> None:
    """The bandwidths of the phys in a wide port are added. The path consists of the drive, the expander with all phys
    of its port to the adapter, and the PCIe link of the adapter.
    """
    path = read_path(sata_behind_expander(FakeDrives(tmp_path))[11], sys_root=tmp_path)
    assert shown(path) == [
        ("drive's link", "SAS 6 Gbit/s x1", 600),
        ("SAS expander", "SAS 12 Gbit/s x4", 4800),
        ("controller", "PCIe gen 3 x8", pytest.approx(7876.9, abs=0.1)),
    ]
    assert path.slot == "bay 11"
    assert path.parts[2].name == "SAS controller 0000:0a:00.0"


def test_expanders_one_after_the_other(tmp_path: Path) -> None:
    """Each of two consecutive expanders is a part of the path. If some phys of an expander's link are down, the
    bandwidth of the link is not known.
    """
    fake = FakeDrives(tmp_path)
    adapter = fake.pci(f"{ROOT_BUS}/0000:00:02.0", "0x010700", "8.0 GT/s PCIe", 8)
    first = f"{fake.sas_port(f'{adapter}/host6', '6', '6:0', 8)}/expander-6:0"
    second = f"{fake.sas_port(first, '6:0', '6:0:9', 4, 'Unknown')}/expander-6:1"
    end = f"{fake.sas_port(second, '6:1:0', '6:1:0', 2)}/end_device-6:1:0"
    path = read_path(fake.scsi(end, "6:0:0:0", "sdb"), sys_root=tmp_path)
    assert [(part.name, part.bytes_per_s, part.gap) for part in path.parts[:3]] == [
        ("SAS link end_device-6:1:0", 2_400_000_000, None),
        ("SAS expander expander-6:1", None, LinkGap.NOT_SHOWN),
        ("SAS expander expander-6:0", 9_600_000_000, None),
    ]


def test_a_chipset_does_not_show_its_way_to_the_cpu(tmp_path: Path) -> None:
    """Drives on a chipset share its controller. The bandwidth from the chipset to the CPU is not known, and the path
    names the reason.
    """
    first, second = (read_path(drive, sys_root=tmp_path) for drive in sata_on_chipset(FakeDrives(tmp_path)))
    assert shown(first) == [("drive's link", "SATA 6 Gbit/s", 600), ("controller", None, None)]
    assert first.parts[1].gap is LinkGap.INTEGRATED
    assert first.parts[1] == second.parts[1]
    assert first.parts[0].key != second.parts[0].key
    assert (first.slot, second.slot) == ("ata1", "ata2")


@pytest.mark.parametrize(
    ("speed", "width", "above", "mb_s"),
    [
        ("16.0 GT/s PCIe", 2, None, 3938),
        ("2.5 GT/s PCIe", 4, None, 1000),
        ("5.0 GT/s PCIe", 1, None, 500),
        ("32.0 GT/s PCIe", 4, None, 15754),
        ("64.0 GT/s PCIe", 4, None, 29500),
        ("Unknown", 4, None, None),
        ("Unknown", 4, "8.0 GT/s PCIe", 3938),
        (None, 4, None, None),
        ("16.0 GT/s PCIe", 63, None, None),
        ("16.0 GT/s PCIe", 0, None, None),
        ("17.0 GT/s PCIe", 4, None, None),
    ],
)
def test_what_was_negotiated_counts(
    tmp_path: Path, speed: str | None, width: int, above: str | None, mb_s: float | None
) -> None:
    """tkperf uses the negotiated speed and width of the drive's link. If the drive reports no values, tkperf uses the
    values of the port.
    """
    fake = FakeDrives(tmp_path)
    port = fake.bridge(f"{ROOT_BUS}/0000:00:01.0", above, 4)
    path = read_path(fake.nvme(f"{port}/0000:01:00.0", 0, speed, width), sys_root=tmp_path)
    (part,) = path.parts
    assert part.kind is PartKind.DRIVE_LINK
    if mb_s is None:
        assert (part.bytes_per_s, part.gap) == (None, LinkGap.NOT_SHOWN)
        assert path.link_bytes_per_s is None
    else:
        assert part.gap is None
        assert path.link_bytes_per_s == pytest.approx(mb_s * 1e6, rel=1e-3)


def test_functions_of_one_card_share_its_link(tmp_path: Path) -> None:
    """The functions of one adapter card share the link of the card."""
    fake = FakeDrives(tmp_path)
    port = fake.bridge(f"{ROOT_BUS}/0000:00:03.0", "8.0 GT/s PCIe", 8)
    keys = set()
    for number in (0, 1):
        card = fake.pci(f"{port}/0000:05:00.{number}", "0x010700", "8.0 GT/s PCIe", 8)
        path = read_path(fake.scsi(f"{card}/host{number}", f"{number}:0:0:0", f"sd{number}"), sys_root=tmp_path)
        keys.add(path.parts[-1].key)
    assert keys == {"pci 0000:05"}


def test_a_port_multiplier_shares_its_port(tmp_path: Path) -> None:
    """Drives behind a port multiplier share the link of their SATA port."""
    fake = FakeDrives(tmp_path)
    port = f"{fake.pci(f'{ROOT_BUS}/0000:00:17.0', '0x010601')}/ata7"
    fake.write(f"{port}/link7/ata_link/link7/sata_spd", "3.0 Gbps")
    first, second = (read_path(fake.scsi(f"{port}/host6", f"6:{n}:0:0", f"sd{n}"), sys_root=tmp_path) for n in (0, 1))
    assert first.parts == second.parts
    assert first.link_bytes_per_s == 300_000_000


def test_drives_behind_a_volume_management_device(tmp_path: Path) -> None:
    """The bridges of a volume management device are in a separate PCI domain. The function that creates this domain is
    not a bridge of the path.
    """
    fake = FakeDrives(tmp_path)
    domain = f"{fake.pci(f'{ROOT_BUS}/0000:64:05.5', '0x010400')}/pci10000:00"
    port = fake.bridge(f"{domain}/10000:00:02.0", "16.0 GT/s PCIe", 4)
    path = read_path(fake.nvme(f"{port}/10000:01:00.0", 0), sys_root=tmp_path)
    assert [part.key for part in path.parts] == ["pci 10000:01"]


def test_slots_of_enclosures(tmp_path: Path) -> None:
    """The name of a slot is the name that the enclosure reports. Without an enclosure, the name is the number that the
    expander reports.
    """
    fake = FakeDrives(tmp_path)
    drive = sata_behind_expander(fake, 1)[0]
    (device,) = tmp_path.glob("devices/**/6:0:0:0")
    (device / "enclosure_device:Slot 05").mkdir()
    assert read_path(drive, sys_root=tmp_path).slot == "Slot 05"


def test_slots_of_pcie(tmp_path: Path) -> None:
    """The slot of a PCIe drive is the number on the chassis, if the firmware provides it."""
    fake = FakeDrives(tmp_path)
    port = fake.bridge(f"{ROOT_BUS}/0000:00:01.0")
    drive = fake.nvme(f"{port}/0000:01:00.0", 0)
    assert read_path(drive, sys_root=tmp_path).slot is None
    fake.write("bus/pci/slots/7/address", "0000:01:00")
    assert read_path(drive, sys_root=tmp_path).slot == "PCIe slot 7"


def test_virtual_drives_show_no_bandwidth(tmp_path: Path) -> None:
    """Virtual drives show no bandwidth, because the links that a virtual machine shows for its devices do not exist in
    hardware.
    """
    fake = FakeDrives(tmp_path)
    port = fake.bridge(f"{ROOT_BUS}/0000:00:04.0", "16.0 GT/s PCIe", 32)
    function = fake.pci(f"{port}/0000:01:00.0", "0x010000", "2.5 GT/s PCIe", 1)
    fake.write(f"{function}/vendor", "0x1af4")
    path = read_path(fake.disk(f"{function}/virtio1/block/vda"), sys_root=tmp_path)
    assert [(part.kind, part.bytes_per_s, part.gap) for part in path.parts] == [
        (PartKind.DRIVE_LINK, None, LinkGap.VIRTUAL),
        (PartKind.CONTROLLER, None, LinkGap.VIRTUAL),
    ]
    nvme = fake.nvme(f"{port}/0000:02:00.0", 0, "2.5 GT/s PCIe", 1)
    fake.write(f"{port}/0000:02:00.0/vendor", "0x1b36")
    (part,) = read_path(nvme, sys_root=tmp_path).parts
    assert (part.kind, part.gap) == (PartKind.DRIVE_LINK, LinkGap.VIRTUAL)


def test_usb_hubs_are_shared(tmp_path: Path) -> None:
    """The link of a USB hub is a shared part. The root hub has the same bandwidth as its ports."""
    fake = FakeDrives(tmp_path)
    xhci = fake.pci(f"{ROOT_BUS}/0000:00:14.0", "0x0c0330")
    for place, kind, mbps in (("usb2", "09", 10000), ("usb2/2-1", "09", 5000), ("usb2/2-1/2-1.3", "00", 5000)):
        fake.write(f"{xhci}/{place}/bDeviceClass", kind)
        fake.write(f"{xhci}/{place}/speed", str(mbps))
    drive = fake.scsi(f"{xhci}/usb2/2-1/2-1.3/2-1.3:1.0/host9", "9:0:0:0", "sdq")
    path = read_path(drive, sys_root=tmp_path)
    assert [(part.key, part.bytes_per_s) for part in path.parts] == [
        ("usb 2-1.3", 500_000_000),
        ("usb 2-1", 500_000_000),
        ("pci 0000:00:14.0", None),
    ]


def test_a_controller_that_hides_its_links(tmp_path: Path) -> None:
    """A RAID controller hides the links of its drives and reports only its own link."""
    fake = FakeDrives(tmp_path)
    port = fake.bridge(f"{ROOT_BUS}/0000:00:03.0", "8.0 GT/s PCIe", 8)
    adapter = fake.pci(f"{port}/0000:05:00.0", "0x010400", "8.0 GT/s PCIe", 8)
    path = read_path(fake.scsi(f"{adapter}/host0", "0:2:0:0", "sda"), sys_root=tmp_path)
    assert [(part.name, part.gap) for part in path.parts] == [
        ("link of sda", LinkGap.NOT_SHOWN),
        ("RAID controller 0000:05:00.0", None),
    ]


@pytest.mark.parametrize(
    ("folder", "files", "gap"),
    [
        ("devices/virtual/block/loop3", (), PathGap.LOOP),
        ("devices/virtual/block/dm-0", ("dm/name",), PathGap.MAPPED),
        ("devices/virtual/block/md0", ("md/level",), PathGap.ARRAY),
        ("devices/virtual/block/zram0", (), PathGap.NO_HARDWARE),
        ("devices/pci0000:00/0000:00:17.0/ata1/host0/block/sda", ("holders/md0/x",), PathGap.MEMBER),
        ("devices/pci0000:00/0000:00:17.0/ata1/host0/block/sda/sda1", ("partition",), PathGap.PARTITION),
    ],
)
def test_what_has_no_path(tmp_path: Path, folder: str, files: tuple[str, ...], gap: PathGap) -> None:
    """Devices that are not separate drives have no path, and the reason is stated."""
    fake = FakeDrives(tmp_path)
    identity = fake.disk(folder)
    for file in files:
        fake.write(f"{folder}/{file}", "1")
    path = read_path(identity, sys_root=tmp_path)
    assert (path.parts, path.gap) == ((), gap)


def test_drives_over_a_network_have_no_path(tmp_path: Path) -> None:
    """A network drive has no path, because the kernel does not show the network adapter that the drive uses."""
    fake = FakeDrives(tmp_path)
    controller = "devices/virtual/nvme-fabrics/ctl/nvme2"
    fake.write(f"{controller}/transport", "tcp")
    identity = fake.disk(f"{controller}/nvme2n1", device=controller)
    assert read_path(identity, sys_root=tmp_path).gap is PathGap.NETWORK


@pytest.mark.parametrize(("kind", "gap"), [(TargetKind.FILE, PathGap.FILE), (TargetKind.SIMULATED, PathGap.SIMULATED)])
def test_files_and_simulated_drives_have_no_path(tmp_path: Path, kind: TargetKind, gap: PathGap) -> None:
    """Files and simulated drives have no path, because their load uses no known link."""
    identity = DeviceIdentity(path="x", kind=kind, capacity_bytes=1 << 30, logical_block_bytes=512)
    assert read_path(identity, sys_root=tmp_path) == DrivePath(drive="x", gap=gap)


def test_a_drive_that_is_gone(tmp_path: Path) -> None:
    """A drive without a folder in sysfs, because it was removed, has no path."""
    identity = FakeDrives(tmp_path).disk("devices/virtual/block/nothing")
    gone = replace(identity, major_minor="9:9")
    assert read_path(gone, sys_root=tmp_path).gap is PathGap.NO_HARDWARE


@pytest.mark.parametrize(
    ("nodes", "node", "expected"),
    [
        ({0: "0-3"}, -1, (0, (0, 1, 2, 3))),
        ({0: "0-3", 1: "4-7"}, 1, (1, (4, 5, 6, 7))),
        ({0: "0-3", 1: "4-7"}, -1, (None, ())),
        ({}, 0, (None, ())),
    ],
)
def test_cpus_near_a_drive(
    tmp_path: Path, nodes: dict[int, str], node: int, expected: tuple[int | None, tuple[int, ...]]
) -> None:
    """On a host with one NUMA node, every drive belongs to this node. On a host with several nodes, the firmware must
    report the node of each drive.
    """
    fake = FakeDrives(tmp_path, nodes=nodes)
    path = read_path(fake.nvme(f"{ROOT_BUS}/0000:00:01.0", 0, node=node), sys_root=tmp_path)
    assert (path.numa_node, path.near_cpus) == expected


def test_paths_can_be_kept(tmp_path: Path) -> None:
    """A path is unchanged after it was written and read."""
    path = read_path(sata_behind_expander(FakeDrives(tmp_path), 1)[0], sys_root=tmp_path)
    assert msgspec.json.decode(msgspec.json.encode(path), type=DrivePath) == path


def test_cores(tmp_path: Path) -> None:
    """The CPUs of one core are grouped. A CPU that is offline belongs to no core."""
    fake = FakeDrives(tmp_path)
    for cpu, siblings in ((0, "0,4"), (4, "0,4"), (1, "1")):
        fake.write(f"devices/system/cpu/cpu{cpu}/topology/thread_siblings_list", siblings)
    os.mkdir(tmp_path / "devices/system/cpu/cpu2")
    assert read_cores(tmp_path) == {0: (0, 4), 4: (0, 4), 1: (1,)}


def test_slots_of_a_chipset_share_its_link_which_is_not_seen(tmp_path: Path) -> None:
    """Slots of an Intel chipset, which have fixed addresses, share a link that the kernel does not report. Slots of the
    CPU do not share this link.
    """
    fake = FakeDrives(tmp_path)
    paths = []
    for number, slot in enumerate(("0000:00:1d.0", "0000:00:1b.4", "0000:00:01.0")):
        port = fake.bridge(f"{ROOT_BUS}/{slot}", "16.0 GT/s PCIe", 4)
        fake.write(f"{port}/vendor", "0x8086")
        drive = fake.nvme(f"{port}/0000:0{number + 1}:00.0", number)
        paths.append(read_path(drive, sys_root=tmp_path))
    chipset = Part(
        key="chipset 0000", kind=PartKind.CHIPSET, name="link of the chipset to the CPU", gap=LinkGap.INTEGRATED
    )
    assert [path.parts[1:] for path in paths] == [(chipset,), (chipset,), ()]
    (group,) = group_drives(paths, "auto")
    assert judge_sharing(group, {}) == {
        paths[0].drive: SharingState.NOT_KNOWN,
        paths[1].drive: SharingState.NOT_KNOWN,
        paths[2].drive: SharingState.WITHIN_BUDGET,
    }
