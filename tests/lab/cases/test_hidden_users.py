"""Users of a drive that have neither an exclusive claim nor a file descriptor, with the real drivers: loop, nvmet, LIO,
gadget, zram, sg and MD.

Each case is a ``Refusal`` record, as in test_refusals.py. The record contains the change to the drive and the words
that the refusal must contain.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.lab import disks
from tests.lab.cases.conftest import Drive, shell
from tests.lab.cases.test_refusals import Refusal, arranged, check_refused, names_of, partition_of, refuse

CONFIGFS = "/sys/kernel/config"


def _undo(stack: ExitStack, command: str) -> None:
    stack.callback(shell, command)


def loop_mounted(drive: Drive, stack: ExitStack) -> None:
    loop = shell(f"losetup -o 8M --find --show {drive.path}").strip()
    _undo(stack, f"losetup -d {loop}; udevadm settle")
    shell(f"mkfs.ext4 -q -F {loop} && mkdir -p /mnt/case && mount -o ro {loop} /mnt/case && sync")
    _undo(stack, "umount /mnt/case")


def nvme_target(drive: Drive, stack: ExitStack) -> None:
    _export_nvme(drive.path, stack)
    shell(f"echo 1 > {CONFIGFS}/nvmet/subsystems/case/namespaces/1/enable")
    _undo(stack, f"echo 0 > {CONFIGFS}/nvmet/subsystems/case/namespaces/1/enable")


def nvme_target_off(drive: Drive, stack: ExitStack) -> None:
    _export_nvme(drive.path, stack)


def _export_nvme(path: Path, stack: ExitStack) -> None:
    folder = f"{CONFIGFS}/nvmet/subsystems/case"
    shell(
        f"modprobe configfs; mountpoint -q {CONFIGFS} || mount -t configfs none {CONFIGFS}; "
        f"modprobe nvmet && mkdir -p {folder} && mkdir {folder}/namespaces/1 && "
        f"printf %s '{path}' > {folder}/namespaces/1/device_path"
    )
    _undo(stack, f"rmdir {folder}/namespaces/1 {folder}")


def lio_block(drive: Drive, stack: ExitStack) -> None:
    _export_scsi("iblock", f"udev_path={drive.path}", stack)


def lio_file_on_a_device(drive: Drive, stack: ExitStack) -> None:
    _export_scsi("fileio", f"fd_dev_name={drive.path},fd_dev_size=67108864", stack)


def _export_scsi(kind: str, control: str, stack: ExitStack) -> None:
    folder = f"{CONFIGFS}/target/core/{kind}_0"
    module = {"iblock": "target_core_iblock", "fileio": "target_core_file"}[kind]
    shell(
        f"modprobe configfs; mountpoint -q {CONFIGFS} || mount -t configfs none {CONFIGFS}; "
        f"modprobe target_core_mod && modprobe {module} && mkdir -p /var/target/pr {folder}/case && "
        f"printf %s '{control}' > {folder}/case/control && echo 1 > {folder}/case/enable"
    )
    _undo(stack, f"rmdir {folder}/case {folder}")


def gadget(drive: Drive, stack: ExitStack) -> None:
    folder = f"{CONFIGFS}/usb_gadget/case"
    function = f"{folder}/functions/mass_storage.0"
    shell(
        f"modprobe configfs; mountpoint -q {CONFIGFS} || mount -t configfs none {CONFIGFS}; "
        f"modprobe usb_f_mass_storage && mkdir -p {folder} && mkdir {function} && "
        f"printf %s '{drive.path}' > {function}/lun.0/file"
    )
    _undo(stack, f"echo > {function}/lun.0/file; rmdir {function} {folder}")


def zram(drive: Drive, stack: ExitStack) -> None:
    shell(f"modprobe zram && printf %s {drive.path} > /sys/block/zram0/backing_dev")
    _undo(stack, "echo 1 > /sys/block/zram0/reset")


def scsi_generic(drive: Drive, stack: ExitStack) -> None:
    """Open the generic SCSI device of a drive, as a virtual machine does for a drive that is passed through to it."""
    shell("modprobe sg; udevadm settle")
    (generic,) = Path(f"/sys/block/{drive.name}/device/scsi_generic").iterdir()
    mark = Path("/run/opened")
    mark.unlink(missing_ok=True)
    program = (
        f"import os, time; os.open('/dev/{generic.name}', os.O_RDWR); "
        f"open('{mark}', 'w').write(str(os.getpid())); time.sleep(600)"
    )
    shell(
        f'setsid -f python3 -c "{program}" </dev/null >/dev/null 2>&1; '
        f"for i in $(seq 100); do [ -s {mark} ] && exit 0; sleep 0.1; done; exit 1"
    )
    _undo(stack, f"kill $(cat {mark}); while kill -0 $(cat {mark}) 2>/dev/null; do sleep 0.1; done")


DRIVES = [
    Refusal(name="loop device, mounted", arrange=loop_mounted, says="is behind loop device loop"),
    Refusal(name="NVMe target", arrange=nvme_target, says="used by an NVMe target (nvmet)"),
    Refusal(name="NVMe target, off", arrange=nvme_target_off, says="used by an NVMe target (nvmet)"),
    Refusal(name="LIO block", arrange=lio_block, says="used by a SCSI target (LIO)"),
    Refusal(name="LIO file", arrange=lio_file_on_a_device, says="used by a SCSI target (LIO)"),
    Refusal(name="USB gadget", arrange=gadget, says="used by a USB gadget"),
    Refusal(name="zram", arrange=zram, says="used by zram, as its backing device"),
    Refusal(name="SCSI generic", arrange=scsi_generic, says="is open for writing in process", on_partition=False),
]


@pytest.mark.parametrize("refusal", DRIVES, ids=lambda refusal: refusal.name)
def test_hidden_user_of_a_drive(refusal: Refusal, drive_of: Callable[..., Drive], tmp_path: Path) -> None:
    """A drive with a hidden user is refused under each of its names, even with ``-ft``. The drive receives no
    writes.
    """
    drive = drive_of(disks.SATA_SECOND)
    with arranged(refusal, drive):
        check_refused(refusal, drive, names_of(drive, tmp_path), tmp_path)


@pytest.mark.parametrize("refusal", [each for each in DRIVES if each.on_partition], ids=lambda refusal: refusal.name)
def test_hidden_user_of_a_partition(refusal: Refusal, drive_of: Callable[..., Drive], tmp_path: Path) -> None:
    """If a partition has a hidden user, the partition and its disk are refused."""
    drive = drive_of(disks.SATA_SECOND)
    with partition_of(drive) as part:
        with arranged(refusal, part):
            check_refused(refusal, part, [part.path, drive.path], tmp_path)
        if refusal.arrange is not loop_mounted:
            return
        with ExitStack() as stack:
            loop = shell(f"losetup --find --show {drive.path}").strip()
            _undo(stack, f"losetup -d {loop}; udevadm settle")
            check_refused(refusal, part, [part.path], tmp_path)


def test_a_loop_device_under_a_volume(drive_of: Callable[..., Drive], tmp_path: Path) -> None:
    """A logical volume is refused if a loop device uses the drive below it. The volume claims its drive, but this claim
    does not prevent a loop device.
    """
    drive = drive_of(disks.SATA_SECOND)
    with ExitStack() as stack:
        shell(f"echo 0 204800 linear {drive.path} 2048 | dmsetup create case; udevadm settle")
        _undo(stack, "dmsetup remove --retry case")
        loop = shell(f"losetup --find --show {drive.path}").strip()
        _undo(stack, f"losetup -d {loop}; udevadm settle")
        target = "/dev/mapper/case"
        refused = refuse("ssd", "case", target, "-ft", "--output", str(tmp_path))
        assert f"{drive.name} is behind loop device {Path(loop).name}" in refused


def nvme_target_of_a_file(path: Path, stack: ExitStack) -> None:
    _export_nvme(path, stack)
    shell(f"echo 1 > {CONFIGFS}/nvmet/subsystems/case/namespaces/1/enable")
    _undo(stack, f"echo 0 > {CONFIGFS}/nvmet/subsystems/case/namespaces/1/enable")


def lio_of_a_file(path: Path, stack: ExitStack) -> None:
    _export_scsi("fileio", f"fd_dev_name={path},fd_dev_size=67108864", stack)


def bitmap_of_a_set(path: Path, stack: ExitStack) -> None:
    member = shell("lsblk -nrdo PATH,SERIAL | awk '$2 == \"LABRAID1\" {print $1}'").strip()
    path.unlink()
    shell(
        f"mdadm --create /dev/md77 --run --force --level=1 --raid-devices=2 --metadata=1.2 "
        f"--bitmap={path} --bitmap-chunk=4K {member} missing"
    )
    _undo(stack, f"mdadm --stop /dev/md77; udevadm settle; mdadm --zero-superblock {member}")
    shell(f"chmod 600 {path}")


@pytest.mark.parametrize(
    ("arrange", "says"),
    [
        (nvme_target_of_a_file, "used by an NVMe target (nvmet)"),
        (lio_of_a_file, "used by a SCSI target (LIO)"),
        (bitmap_of_a_set, "as its bitmap"),
    ],
)
def test_hidden_user_of_a_file(
    arrange: Callable[[Path, ExitStack], None], says: str, drive_of: Callable[..., Drive], tmp_path: Path
) -> None:
    """If a file on ext4 has a hidden user, the file is refused under its name. After a change of its name, the file is
    also refused under the new name, which the hidden user does not know.
    """
    drive = drive_of(disks.SATA_SECOND)
    folder = Path("/mnt/files")
    with ExitStack() as stack:
        _undo(stack, f"wipefs -qaf {drive.path}")
        shell(f"mkfs.ext4 -q -F {drive.path} && mkdir -p {folder} && mount {drive.path} {folder}")
        _undo(stack, f"umount {folder}")
        image = folder / "image"
        shell(f"fallocate -l 64M {image} && chmod 600 {image}")
        arrange(image, stack)
        refused = refuse("ssd", "case", str(image), "-ft", "--output", str(tmp_path))
        assert says in refused
        if arrange is bitmap_of_a_set:
            return
        moved = image.rename(folder / "moved")
        try:
            refused = refuse("ssd", "case", str(moved), "-ft", "--output", str(tmp_path))
            assert says in refused or "something that cannot be seen" in refused
        finally:
            moved.rename(image)
