"""The drives of a batch are found by path, link and serial number. A drive that is given twice, in any form, is refused
with both names.
"""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import attach_loop
from tkperf.batch.draft import BatchDraft, DraftedDrive, find_again
from tkperf.batch.drive_finder import MOST_DRIVES, DriveFinder, FoundDrive
from tkperf.batch.request import BatchDrive, BatchRequest
from tkperf.model.errors import DeviceError, UsageError
from tkperf.pipeline.run_request import RunRequest


class Host:
    """A host with disks in a separate sysfs tree. No test opens the device nodes of these disks."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.finder = DriveFinder(folder=root / "here", sys_root=root / "sys", dev_root=root / "dev")
        for folder in ("here", "sys/block", "sys/dev/block", "sys/devices", "dev/disk/by-id"):
            (root / folder).mkdir(parents=True)
        self._count = 0

    def add(self, name: str, *, under: str = "", **attributes: str | None) -> Path:
        """Add a disk, or a partition of the disk ``under``. Return the device node of the new disk or partition."""
        self._count += 1
        number = f"4000:{self._count}"
        folder = self.root / "sys/devices" / under / name
        texts = {"dev": number, "size": "2048", **attributes}
        texts |= {"partition": "1"} if under else {}
        for key, value in texts.items():
            if value is not None:
                path = folder / key.replace("__", "/")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"{value}\n")
        (self.root / "sys/dev/block" / number).symlink_to(folder)
        if not under:
            (self.root / "sys/block" / name).symlink_to(folder)
        node = self.root / "dev" / name
        try:
            os.mknod(node, stat.S_IFBLK | 0o600, os.makedev(4000, self._count))
        except PermissionError:
            pytest.skip("device nodes cannot be made here")
        return node

    def find(self, *given: str) -> tuple[FoundDrive, ...]:
        return self.finder.find([(one, False) for one in given])


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def assert_fault(drive: FoundDrive, kind: type[Exception], *words: str) -> None:
    assert type(drive.fault) is kind
    for word in words:
        assert word in str(drive.fault)


def test_names_of_every_kind(host: Host) -> None:
    """Each form of name identifies the right drive. For a whole drive, its serial number is also found."""
    disks = [host.add(name, device__serial=f"S{name}") for name in ("sda", "sdb", "sdc")]
    link = host.root / "dev/disk/by-id/ata-C"
    link.symlink_to(disks[2])
    (host.root / "here/scratch.img").write_bytes(bytes(4096))
    names = ("Ssda", str(disks[1]), "ata-C", "scratch.img", "sim:sata-ssd", "sim:sata-ssd")
    found = host.find(*names)
    here = f"{host.root}/here"
    assert [one.path for one in found] == [
        str(disks[0]),
        str(disks[1]),
        str(link),
        f"{here}/scratch.img",
        "sim:sata-ssd",
        "sim:sata-ssd",
    ]
    assert [one.serial for one in found] == ["Ssda", "Ssdb", "Ssdc", None, None, None]
    assert not any(one.fault for one in found)
    assert host.find("./scratch.img")[0].path == f"{here}/scratch.img"


def test_a_serial_number_that_no_drive_has(host: Host) -> None:
    """If no drive has the given serial number, the message lists the serial numbers that were found, and names the most
    similar one.
    """
    host.add("sda", device__serial="PHYH850500YA")
    (drive,) = host.find("PHYH850500YB")
    assert_fault(drive, DeviceError, "PHYH850500YA (sda)", "Did you mean PHYH850500YA?")
    assert_fault(host.find("sda")[0], DeviceError, f"Write {host.root}/dev/sda")


def test_a_serial_number_of_several(host: Host) -> None:
    """A serial number that two devices share selects neither device. The error names both devices."""
    host.add("sda", device__serial="X1")
    host.add("sdb", device__serial="X1")
    assert_fault(host.find("X1")[0], UsageError, "2 devices report", "/dev/sda", "/dev/sdb")


def test_a_serial_number_names_whole_drives_only(host: Host) -> None:
    """Only whole drives are found by serial number. RAID sets, hidden paths, slots without a medium and partitions are
    not found.
    """
    host.add("md0", md__uuid="U1", slaves__sda__dev="1:1")
    host.add("nvme0c0n1", device__serial="N1", hidden="1")
    host.add("nvme0n1", device__serial="N1")
    host.add("sdr", device__serial="R1", size="0")
    part = host.add("nvme0n1p1", under="nvme0n1")
    assert host.find("N1")[0].path.endswith("/nvme0n1")
    assert_fault(host.find("R1")[0], DeviceError, "are: N1 (nvme0n1)")
    assert_fault(host.find("U1")[0], DeviceError)
    (drive,) = host.find(str(part))
    assert drive.serial is None
    assert drive.fault is None


def test_a_word_that_is_a_file_and_a_serial_number(host: Host) -> None:
    """A word that is both the name of a file and a serial number is refused, because tkperf does not guess which drive
    to erase.
    """
    host.add("sda", device__serial="X1")
    (host.root / "here/X1").write_bytes(b"x")
    assert_fault(host.find("X1")[0], UsageError, "can mean any of", "/dev/sda", "/here/X1")
    (drive,) = host.finder.find([("X2", True)])
    assert drive.path == f"{host.root}/here/X2"


def twice_by_link(host: Host) -> tuple[str, str, str]:
    disk = host.add("sda")
    link = host.root / "dev/disk/by-id/wwn-1"
    link.symlink_to(disk)
    return str(disk), str(link), "are one device"


def twice_by_serial(host: Host) -> tuple[str, str, str]:
    disk = host.add("sda", device__serial="X1")
    return str(disk), "X1", "are one device"


def same_wwn(host: Host) -> tuple[str, str, str]:
    first, second = (host.add(name, device__wwid="naa.5") for name in ("sda", "sdb"))
    return (str(first), str(second), "are two paths to one drive: both have the world-wide name naa.5")


def same_serial(host: Host) -> tuple[str, str, str]:
    first, second = (host.add(name, device__serial="X1", device__model="M") for name in ("sda", "sdb"))
    return str(first), str(second), "have the same serial number, X1"


def partition_and_disk(host: Host) -> tuple[str, str, str]:
    return str(host.add("sda")), str(host.add("sda1", under="sda")), "are on one drive, sda"


def set_and_member(host: Host) -> tuple[str, str, str]:
    disk = host.add("sda")
    upper = host.add("dm-0", slaves__sda__dev="4000:1")
    return str(upper), str(disk), "are both on sda"


def one_file_by_two_names(host: Host) -> tuple[str, str, str]:
    file = host.root / "here/a.img"
    file.write_bytes(b"x")
    os.link(file, host.root / "here/b.img")
    return "./a.img", "./b.img", "are one file"


def one_new_file_by_two_names(host: Host) -> tuple[str, str, str]:
    return "./a.img", "../here/a.img", "are one file"


@pytest.mark.parametrize(
    "make",
    [
        twice_by_link,
        twice_by_serial,
        same_wwn,
        same_serial,
        partition_and_disk,
        set_and_member,
        one_file_by_two_names,
        one_new_file_by_two_names,
    ],
)
def test_a_drive_given_twice(host: Host, make: Callable[[Host], tuple[str, str, str]]) -> None:
    """A drive that is given twice is refused, and the message contains both names. The second name can have any
    form.
    """
    first, second, reason = make(host)
    other, drive = host.find(first, second)
    assert other.fault is None
    assert_fault(drive, UsageError, reason, "drive 1, ", other.path, drive.path)


def test_equal_serial_numbers_of_two_models(host: Host) -> None:
    """Equal serial numbers of two models do not identify the same drive, because each manufacturer assigns its serial
    numbers independently.
    """
    first, second = (host.add(name, device__serial="0001", device__model=f"M{name}") for name in ("sda", "sdb"))
    assert not any(drive.fault for drive in host.find(str(first), str(second)))


@pytest.mark.root
def test_two_loop_devices_on_one_file(loop_device: Callable[..., Path], tmp_path: Path) -> None:
    first = loop_device()
    backing = Path(Path(f"/sys/block/{first.name}/loop/backing_file").read_text().strip())
    second = attach_loop(backing)
    try:
        finder = DriveFinder(folder=tmp_path)
        for one, other in ((first, second), (first, backing), (backing, second)):
            _, drive = finder.find([(str(one), False), (str(other), False)])
            assert_fault(drive, UsageError, str(backing), str(other))
    finally:
        subprocess.run(["losetup", "--detach", second], check=True)


def test_names_of_runs(host: Host) -> None:
    """The name of a run contains the serial number. Characters that a file name does not permit are replaced with a
    hyphen. If the serial number is missing, too long or not unique, the name contains the number of the drive in the
    batch instead.
    """
    serials = ("PHYH 85/1", "PHYH.85.1", "PHYH-85-1", None, "\u00e4", "X" * 300)
    disks = [host.add(f"sd{letter}", device__serial=serial) for letter, serial in zip("abcdef", serials, strict=True)]
    draft = BatchDraft(
        common={"suite": "ssd", "profile": "quick"}, drives=tuple(DraftedDrive(drive=str(disk)) for disk in disks)
    )
    settled = draft.settle("lab", host.finder)
    assert [drive.name for drive in settled.request.drives] == [
        "lab-PHYH-85-1",
        "lab-PHYH.85.1",
        "lab-03",
        "lab-04",
        "lab-05",
        "lab-06",
    ]
    assert settled.require_sound() is settled.request


def test_a_drive_given_twice_in_a_batch(host: Host) -> None:
    """If a drive is given twice in a batch, the error names the drive, and does not complain about two runs with the
    same name.
    """
    disk = host.add("sda", device__serial="PHYH1")
    draft = BatchDraft(
        common={"suite": "ssd", "profile": "quick"},
        drives=tuple(DraftedDrive(drive=given) for given in ("PHYH1", str(disk))),
    )
    with pytest.raises(UsageError, match=r"^drive 2: .*/sda and drive 1, .*/sda, are one device$"):
        draft.settle("lab", host.finder).require_sound()


def test_a_drive_that_the_kernel_has_named_anew(host: Host) -> None:
    """A resumed batch finds a renamed drive by its serial number, and never mistakes a partition for its disk."""
    disks = [host.add(name, device__serial=f"S{name}") for name in ("sda", "sdb")]
    part = host.add("sda1", under="sda")
    drives = tuple(
        BatchDrive(name=name, given=name, serial=serial, request=RunRequest(suite="ssd", device=device))
        for name, serial, device in (
            ("same", "Ssda", str(disks[0])),
            ("moved", "Ssdb", str(disks[0])),
            ("gone-from-its-path", "Ssdb", f"{host.root}/dev/sdq"),
            ("was-a-disk", "Ssda", str(part)),
            ("without-serial", None, f"{host.root}/dev/loop7"),
            ("not-needed", "S-is-away", "/dev/sdx"),
        )
    )
    request = BatchRequest(name="lab", drives=drives)
    names = {drive.name for drive in drives} - {"not-needed"}
    again = find_again(request, names, host.finder)
    assert [drive.request.device for drive in again.drives] == [
        str(disks[0]),
        str(disks[1]),
        str(disks[1]),
        str(disks[0]),
        f"{host.root}/dev/loop7",
        "/dev/sdx",
    ]
    with pytest.raises(DeviceError, match=r"not-needed: no drive .* 'S-is-away'.* --without"):
        find_again(request, {"not-needed"}, host.finder)
    host.add("sdc", device__serial="Ssdb")
    with pytest.raises(DeviceError, match=r"moved: several devices report the serial number .*: sdb, sdc"):
        find_again(request, {"moved"}, host.finder)


@pytest.mark.parametrize("count", [0, MOST_DRIVES + 1])
def test_how_many(host: Host, count: int) -> None:
    with pytest.raises(UsageError, match=f"1 to {MOST_DRIVES}"):
        host.find(*["sim:sata-ssd"] * count)


def test_names_that_no_file_system_takes(host: Host) -> None:
    """A name that no file system accepts causes an error about this name, not an exception."""
    with pytest.raises(UsageError, match="zero byte"):
        host.find("a\0b")
    assert_fault(host.find("x" * 5000)[0], DeviceError)
    assert host.find(f"/{'x' * 5000}")[0].fault is None
