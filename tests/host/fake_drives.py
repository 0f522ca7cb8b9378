"""Simulated drives. A folder contains the part of sysfs from which tkperf reads the paths of drives."""

from __future__ import annotations

from pathlib import Path

from tkperf.device.identity import DeviceIdentity, TargetKind

ROOT_BUS = "devices/pci0000:00"


class FakeDrives:
    """A sysfs tree to which a test adds bridges, controllers and drives."""

    def __init__(self, root: Path, *, nodes: dict[int, str] | None = None) -> None:
        self.root = root
        self._drives = 0
        for node, cpus in (nodes if nodes is not None else {0: "0-7"}).items():
            self.write(f"devices/system/node/node{node}/cpulist", cpus)

    def write(self, path: str, content: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content + "\n")

    def pci(self, folder: str, kind: str, speed: str | None = None, width: int | None = None, *, node: int = 0) -> str:
        """Add a PCI function with the given class. Without a speed, the PCI function has no link in sysfs."""
        self.write(f"{folder}/class", kind)
        self.write(f"{folder}/numa_node", str(node))
        (self.root / "bus/pci").mkdir(parents=True, exist_ok=True)
        (self.root / folder / "subsystem").symlink_to(self.root / "bus/pci")
        if speed is not None:
            self.write(f"{folder}/current_link_speed", speed)
            self.write(f"{folder}/current_link_width", str(width))
        return folder

    def bridge(self, folder: str, speed: str | None = None, width: int | None = None) -> str:
        return self.pci(folder, "0x060400", speed, width)

    def nvme(
        self, folder: str, number: int, speed: str | None = "16.0 GT/s PCIe", width: int = 4, node: int = 0
    ) -> DeviceIdentity:
        """Add an NVMe drive and its PCI function in a folder."""
        self.pci(folder, "0x010802", speed, width, node=node)
        controller = f"{folder}/nvme/nvme{number}"
        self.write(f"{controller}/transport", "pcie")
        return self.disk(f"{controller}/nvme{number}n1", device=controller)

    def scsi(self, above: str, address: str, name: str) -> DeviceIdentity:
        """Add a SCSI disk below a folder in sysfs: a target, the host of an ATA port, or a SAS end device."""
        device = f"{above}/target{address.rpartition(':')[0]}/{address}"
        return self.disk(f"{device}/block/{name}", device=device)

    def sas_port(self, above: str, host: str, name: str, phys: int, rate: str = "12.0 Gbit") -> str:
        """Add a port with the given number of phys below a host or an expander."""
        port = f"{above}/port-{name}"
        for number in range(phys):
            self.write(f"{port}/phy-{host}:{number}/sas_phy/phy-{host}:{number}/negotiated_linkrate", rate)
        return port

    def disk(self, folder: str, *, device: str | None = None) -> DeviceIdentity:
        """Add a whole disk."""
        self._drives += 1
        major_minor = f"8:{16 * self._drives}"
        self.write(f"{folder}/dev", major_minor)
        if device is not None:
            (self.root / folder / "device").symlink_to(self.root / device)
        links = self.root / "dev/block"
        links.mkdir(parents=True, exist_ok=True)
        (links / major_minor).symlink_to(self.root / folder)
        return DeviceIdentity(
            path=f"/dev/{Path(folder).name}",
            kind=TargetKind.BLOCK,
            capacity_bytes=1 << 40,
            logical_block_bytes=512,
            major_minor=major_minor,
        )


def nvme_behind_switch(fake: FakeDrives, count: int = 4) -> list[DeviceIdentity]:
    """Add PCIe 4.0 x4 drives behind a switch that has a PCIe 4.0 x8 uplink."""
    root = fake.bridge(f"{ROOT_BUS}/0000:00:01.0", "16.0 GT/s PCIe", 8)
    switch = fake.bridge(f"{root}/0000:01:00.0", "16.0 GT/s PCIe", 8)
    drives = []
    for number in range(count):
        port = fake.bridge(f"{switch}/0000:02:0{number}.0", "16.0 GT/s PCIe", 4)
        drives.append(fake.nvme(f"{port}/0000:0{3 + number}:00.0", number))
    return drives


def sata_behind_expander(fake: FakeDrives, count: int = 24) -> list[DeviceIdentity]:
    """Add SATA drives of 6 Gbit/s behind an expander. The expander is connected with four phys of 12 Gbit/s to a PCIe
    3.0 x8 adapter.
    """
    root = fake.bridge(f"{ROOT_BUS}/0000:00:02.0", "8.0 GT/s PCIe", 8)
    adapter = fake.pci(f"{root}/0000:0a:00.0", "0x010700", "8.0 GT/s PCIe", 8)
    port = fake.sas_port(f"{adapter}/host6", "6", "6:0", 4)
    expander = f"{port}/expander-6:0"
    drives = []
    for number in range(count):
        below = fake.sas_port(expander, f"6:0:{number}", f"6:0:{number}", 1, "6.0 Gbit")
        end = f"{below}/end_device-6:0:{number}"
        fake.write(f"{end}/sas_device/end_device-6:0:{number}/bay_identifier", str(number))
        drives.append(fake.scsi(end, f"6:0:{number}:0", f"sd{chr(ord('b') + number)}"))
    return drives


def sata_on_chipset(fake: FakeDrives) -> list[DeviceIdentity]:
    """Add two SATA drives of 6 Gbit/s on ports of the chipset."""
    ahci = fake.pci(f"{ROOT_BUS}/0000:00:17.0", "0x010601")
    drives = []
    for number in (1, 2):
        port = f"{ahci}/ata{number}"
        fake.write(f"{port}/link{number}/ata_link/link{number}/sata_spd", "6.0 Gbps")
        host = number - 1
        drives.append(fake.scsi(f"{port}/host{host}", f"{host}:0:0:0", f"sd{'yz'[host]}"))
    return drives
