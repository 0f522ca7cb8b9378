"""Users inside the kernel that hold neither a claim nor a descriptor: exports to others."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tkperf.device.sysfs import device_number, exact_text, text
from tkperf.device.usage.mounts import Mount, unescape

# Attributes below sysfs and configfs that name a device or file, with their users.
PATHS = {
    "kernel/config/nvmet/subsystems/*/namespaces/*/device_path": "an NVMe target (nvmet)",
    "kernel/config/nvmet/subsystems/*/passthru/device_path": "an NVMe target (nvmet)",
    "kernel/config/target/core/*/*/udev_path": "a SCSI target (LIO)",
    "kernel/config/usb_gadget/*/functions/mass_storage.*/lun.*/file": "a USB gadget",
    "class/udc/*/device/gadget*/lun*/file": "a USB gadget",
    "kernel/scst_tgt/devices/*/filename": "a SCSI target (SCST)",
    "block/zram*/backing_dev": "zram, as its backing device",
}
LIO_INFO = "kernel/config/target/core/*/*/info"
RNBD_LINKS = "class/rnbd-server/ctl/devices/*/block_dev"
# Texts of the drivers (target_core_file.c, target_core_iblock.c, target_core_pscsi.c).
_LIO_FILE = re.compile(r" File: (.+?)  Size: ", re.DOTALL)
_LIO_NUMBERS = re.compile(r"Major: (\d+) Minor: (\d+)")
_LIO_ADDRESS = re.compile(r"Channel ID: (\d+) Target ID: (\d+) LUN: (\d+) Host ID: (\d+)")
_MD_BITMAP = re.compile(r"^(md\S*) :|, file: (\S+)$", re.MULTILINE)
_NFS_OPEN = re.compile(r'superblock: "([0-9a-f]+):([0-9a-f]+):(\d+)"')
# Modules that export, and the folders that show their exports.
EXPORTING_MODULES = {
    "nvmet": "kernel/config/nvmet",
    "target_core_mod": "kernel/config/target",
    "usb_f_mass_storage": "kernel/config/usb_gadget",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """A user in the kernel of a device or file, which it has by path, number or SCSI address."""

    user: str
    path: str | None = None
    device: int | None = None
    scsi_address: str | None = None

    def __str__(self) -> str:
        return f"{self.user} ({self.path})" if self.path else self.user


def find_exports(sys_root: Path, proc_root: Path, mounts: tuple[Mount, ...]) -> Iterator[Export]:
    """Yield all that the kernel exports or uses in this way, whether switched on or not."""
    for pattern, user in PATHS.items():
        for attribute in sorted(sys_root.glob(pattern)):
            # SCST adds a line about whether this is the default.
            path = (exact_text(attribute) or "").split("\n")[0]
            if path.startswith("/"):
                yield Export(user=user, path=path)
    for attribute in sorted(sys_root.glob(LIO_INFO)):
        yield from _parse_lio(exact_text(attribute) or "")
    for link in sorted(sys_root.glob(RNBD_LINKS)):
        yield Export(user="a network block device server (rnbd)", device=device_number(link))
    array = ""
    for name, path in _MD_BITMAP.findall(exact_text(proc_root / "mdstat") or ""):
        array = name or array
        if path:
            yield Export(user=f"the MD RAID {array}, as its bitmap", path=unescape(path))
    for mount in mounts:
        # Mounted from a file without a loop device.
        if mount.kind == "erofs" and mount.source.startswith("/"):
            where = f" in the mount namespace of {mount.seen_by}" if mount.seen_by else ""
            yield Export(user=f"the erofs mounted at {mount.point}{where}", path=mount.source)


def _parse_lio(info: str) -> Iterator[Export]:
    user = "a SCSI target (LIO)"
    for path in _LIO_FILE.findall(info):
        yield Export(user=user, path=path)
    for major, minor in _LIO_NUMBERS.findall(info):
        yield Export(user=user, device=os.makedev(int(major), int(minor)))
    for channel, target, unit, host in _LIO_ADDRESS.findall(info):
        yield Export(user=user, scsi_address=f"{host}:{channel}:{target}:{unit}")


def find_nfs_opens(proc_root: Path) -> set[tuple[int, int]]:
    """Return file system and inode of each file that clients of the NFS server have open."""
    files = set()
    for states in proc_root.glob("fs/nfsd/clients/*/states"):
        for major, minor, inode in _NFS_OPEN.findall(text(states) or ""):
            files.add((os.makedev(int(major, 16), int(minor, 16)), int(inode)))
    return files


def find_silent_modules(sys_root: Path) -> list[str]:
    """Return loaded modules that export devices, if configfs is not mounted to show which devices."""
    return [
        module
        for module, folder in EXPORTING_MODULES.items()
        if (sys_root / "module" / module).exists() and not (sys_root / folder).exists()
    ]
