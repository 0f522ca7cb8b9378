"""A block device is refused if another program uses it, even if this program holds no exclusive claim."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import run_tool, unmount, until, wait_until_free
from tests.device.conftest import Foreign, loop_on, make_whole_view
from tkperf.device.identity import DeviceIdentity, TargetKind, read_identity
from tkperf.device.permit import grant_permit, hold_target
from tkperf.device.safety import find_objections
from tkperf.device.usage.kernel import LoopBacking, LoopDevice
from tkperf.model.errors import RefusedError

MakeLoop = Callable[..., Path]
MIB = 1 << 20


def said(path: Path) -> str:
    """Return all objections to a device with their codes."""
    return "; ".join(f"[{each.reason.value}] {each.text}" for each in find_objections(read_identity(path)))


def assert_refused(path: Path, says: str) -> None:
    identity = read_identity(path)
    with pytest.raises(RefusedError, match=says):
        grant_permit(hold_target(identity), confirmed_id=identity.confirm_id)


@contextmanager
def partition_of(device: Path, number: int, first: int, sectors: int) -> Iterator[Path]:
    """Yield a partition that was created only in the kernel. The device has no partition table."""
    run_tool("addpart", device, str(number), str(first), str(sectors))
    try:
        part = Path(f"{device}p{number}")
        if not part.exists():
            pytest.skip("partitions of loop devices get no nodes here")
        yield part
    finally:
        run_tool("delpart", device, str(number))


@contextmanager
def mounted(device: Path, folder: Path) -> Iterator[None]:
    folder.mkdir()
    run_tool("mkfs.ext4", "-q", device)
    run_tool("mount", device, folder)
    (folder / "file").write_text("precious")
    try:
        yield
        run_tool("sync")
        assert (folder / "file").read_text() == "precious"
    finally:
        unmount(folder)


def claim(device: Path) -> int:
    """Open a device exclusively after it was unmounted. Try again while the device is still mounted in the mount
    namespace of another test.
    """

    def open_exclusively() -> int | None:
        try:
            return os.open(device, os.O_RDWR | os.O_EXCL)
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
        return None

    return until(open_exclusively, f"{device} is busy")


@pytest.mark.root
def test_a_loop_device_with_a_file_system_on_a_block_device(loop_device: MakeLoop, tmp_path: Path) -> None:
    """A device below a mounted loop device is refused. tkperf asks the loop driver, because this driver neither claims
    the device nor holds a file descriptor for it.
    """
    under = loop_device()
    with loop_on(under, "-o", str(8 * MIB)) as upper, mounted(upper, tmp_path / "mnt"):
        assert f"[loop-backing] {under.name} is behind loop device {upper.name}" in said(under)
        assert_refused(under, "is behind loop device")
    wait_until_free(under)


@pytest.mark.root
def test_the_command_line_refuses_it_though_forced(loop_device: MakeLoop, tmp_path: Path) -> None:
    """If a loop device uses the target, a call with ``-ft`` is also refused. The command exits with code 3, and the
    file system of the loop device is not damaged.
    """
    under = loop_device()
    tkperf = shutil.which("tkperf") or str(Path(sys.executable).with_name("tkperf"))
    with loop_on(under, "-o", str(8 * MIB)) as upper, mounted(upper, tmp_path / "mnt"):
        done = subprocess.run(
            [tkperf, "ssd", "x", under, "-ft", "-ssdt", "writesat", "--profile", "quick", "--output", tmp_path],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=300,
        )
        assert done.returncode == 3, done.stderr
        assert f"is behind loop device {upper.name}" in " ".join(done.stderr.split())


@pytest.mark.root
def test_a_loop_device_not_mounted_is_a_user_too(loop_device: MakeLoop) -> None:
    """A device behind a loop device is refused even if the loop device is not mounted. The owner of the loop device may
    use it at any moment.
    """
    under = loop_device()
    with loop_on(under, "--read-only"):
        assert_refused(under, "is behind loop device")


@pytest.mark.root
def test_a_loop_device_during_a_run(loop_device: MakeLoop) -> None:
    """tkperf checks for loop devices again before each destructive act, because its exclusive hold does not prevent the
    loop driver from using the device.
    """
    under = loop_device()
    identity = read_identity(under)
    permit = grant_permit(hold_target(identity), confirmed_id=identity.confirm_id).redeem()
    try:
        permit.recheck()
        with loop_on(under), pytest.raises(RefusedError, match="is behind loop device"):
            permit.recheck()
        permit.recheck()
    finally:
        permit.release()


@pytest.mark.root
def test_loop_devices_on_partitions_and_their_disk(loop_device: MakeLoop) -> None:
    """If a loop device uses a partition, this partition and its disk are refused, but another partition is not. If a
    loop device uses the disk, the disk and all its partitions are refused.
    """
    disk = loop_device()
    with partition_of(disk, 1, 2048, 20480) as first, partition_of(disk, 2, 40960, 20480) as second:
        with loop_on(first) as upper:
            expected = f"{first.name} is behind loop device {upper.name}"
            assert expected in said(first)
            assert expected in said(disk)
            assert said(second) == ""
        with loop_on(disk) as upper:
            for target in (first, second, disk):
                assert f"{disk.name} is behind loop device {upper.name}" in said(target)
        assert said(disk) == ""


@pytest.mark.root
def test_two_loop_devices_on_one_file(loop_device: MakeLoop, tmp_path: Path) -> None:
    """If two loop devices use the same file, each of them is refused, because writes to one would change the data of
    the other. The names of the file do not matter.
    """
    one = loop_device()
    image = tmp_path / "loop0.img"
    os.link(image, tmp_path / "second name")
    with loop_on(tmp_path / "second name", "--offset", str(MIB)) as two:
        image.unlink()
        assert f"the file behind {one.name} is behind loop device {two.name}" in said(one)
        assert f"the file behind {two.name} is behind loop device {one.name}" in said(two)
        assert_refused(one, "is behind loop device")
    assert "[loop-backing]" not in said(one)


@pytest.mark.root
def test_two_loop_devices_on_one_block_device(loop_device: MakeLoop) -> None:
    """If two loop devices use the same block device, each of them is refused. The same rule applies if the loop devices
    are on lower layers.
    """
    under = loop_device()
    with loop_on(under) as one:
        assert said(one) == ""
        with loop_on(under, "--offset", str(MIB)) as two:
            assert f"{under.name} is behind loop device {two.name}" in said(one)
        with loop_on(one) as three:
            assert said(three) == ""
            assert f"{one.name} is behind loop device {three.name}" in said(one)
            with loop_on(Path(run_tool("losetup", "-nO", "BACK-FILE", under))) as four:
                assert f"the file behind {under.name} is behind loop device {four.name}" in said(three)


MAP = """
import ctypes
handle = os.open(words[0], os.O_RDWR)
call = ctypes.CDLL(None).mmap
call.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
call(None, 4096, 3, 1, handle, 0)
os.close(handle)
"""


@pytest.mark.root
@pytest.mark.parametrize(
    ("program", "use"),
    [
        ("os.open(words[0], os.O_RDONLY)", "[open] the file behind {} is open in process {}"),
        ("os.open(words[0], os.O_WRONLY)", "[open] the file behind {} is open in process {}"),
        (MAP, "[mapped] the file behind {} is mapped into memory by process {}"),
        (
            MAP.replace("O_RDWR", "O_RDONLY").replace("4096, 3, 1", "4096, 1, 2"),
            "[mapped] the file behind {} is mapped into memory by process {}",
        ),
    ],
)
def test_what_is_behind_a_loop_device_is_used_by_others(
    loop_device: MakeLoop, tmp_path: Path, foreign: Foreign, program: str, use: str
) -> None:
    """If another process has the file behind a loop device open or mapped, even only for reading, the loop device is
    refused. The name that the process used for the file does not matter.
    """
    device = loop_device()
    image = tmp_path / "loop0.img"
    assert said(device) == ""
    os.link(image, tmp_path / "second name")
    process = foreign(program, tmp_path / "second name")
    (tmp_path / "second name").unlink()
    expected = use.format(device.name, process)
    assert expected in said(device)
    assert_refused(device, expected.partition("] ")[2])
    with loop_on(device) as upper:
        assert expected in said(upper)


@pytest.mark.root
def test_a_lock_on_the_file_behind_a_loop_device(tmp_path: Path, loop_device: MakeLoop) -> None:
    """A lock on the file behind a loop device causes an objection, because the lock reveals a user that no list of
    processes contains.
    """
    device = loop_device()
    status = (tmp_path / "loop0.img").stat()
    proc = tmp_path / "proc"
    make_whole_view(proc)
    number = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    (proc / "locks").write_text(f"1: OFDLCK ADVISORY  WRITE -1 {number} 0 EOF\n")
    found = find_objections(read_identity(device), proc_root=proc)
    assert [each.text for each in found] == [
        f"the file behind {device.name} is locked (OFDLCK) by a process that has it open"
    ]


def hidden_by_a_mount(image: Path) -> None:
    run_tool("mount", "-t", "tmpfs", "none", image.parent)


def unlinked(image: Path) -> None:
    image.unlink()


def replaced(image: Path) -> None:
    """Create another file with the name that the file behind the loop device had when the device was attached."""
    image.unlink()
    image.write_bytes(bytes(MIB))


@pytest.mark.root
@pytest.mark.parametrize("change", [unlinked, hidden_by_a_mount, replaced])
@pytest.mark.parametrize("links", [1, 2])
def test_a_loop_device_whose_file_cannot_be_found(tmp_path: Path, change: Callable[[Path], None], links: int) -> None:
    """If the file behind a loop device cannot be found under its name, the device is refused. The file may have another
    name that tkperf cannot find.
    """
    folder = tmp_path / "folder"
    folder.mkdir()
    image = folder / "disk.img"
    image.write_bytes(b"\xa5" * 8 * MIB)
    if links == 2:
        os.link(image, tmp_path / "precious")
    with loop_on(image) as device, loop_on(device) as upper:
        try:
            assert ("[hard-links]" in said(device)) is (links == 2)
            change(image)
            for target in (device, upper):
                expected = f"[backing-file] the file behind {device.name} cannot be found at {image}"
                assert expected in said(target)
            assert_refused(device, "its other names and its content are not known")
        finally:
            if change is hidden_by_a_mount:
                unmount(folder)
    if links == 2:
        assert set((tmp_path / "precious").read_bytes()) == {0xA5}


@pytest.mark.root
def test_a_loop_device_by_a_name_that_a_bind_mount_gave(tmp_path: Path) -> None:
    """If the file behind a loop device was named through a bind mount, the device counts as free, because the name
    leads to the file that the driver reports.
    """
    for name in ("folder", "bound"):
        (tmp_path / name).mkdir()
    (tmp_path / "folder/disk.img").write_bytes(bytes(MIB))
    run_tool("mount", "--bind", tmp_path / "folder", tmp_path / "bound")
    try:
        with loop_on(tmp_path / "bound/disk.img") as device:
            assert said(device) == ""
    finally:
        unmount(tmp_path / "bound")


EROFS_MAGIC = 0xE0F5E1E2.to_bytes(4, "little")


def make_erofs(image: Path) -> None:
    """Write the magic number that distinguishes an erofs from other content (fs/erofs/erofs_fs.h)."""
    with image.open("r+b") as file:
        file.seek(1024)
        file.write(EROFS_MAGIC)


@pytest.mark.root
@pytest.mark.parametrize(
    ("rows", "refused"),
    [
        # The mount shows a name that does not exist, that is relative, or that belongs to another file. No process has
        # this other file open, or the file contains no erofs.
        (["0:77 / /mnt ro - erofs {folder}/gone ro"], True),
        (["0:77 / /mnt ro - erofs image.erofs ro"], True),
        (["0:77 / /mnt ro - erofs {folder}/unused ro"], True),
        (["0:77 / /mnt ro - erofs {folder}/other ro"], True),
        # If two mounts show the same name, only one of them can use the file that has this name now.
        (["0:77 / /mnt ro - erofs {folder}/used ro", "0:78 / /n ro - erofs {folder}/used ro"], True),
        # In the first case, the name leads to the mounted file. In the second case, no file is mounted.
        (["0:77 / /mnt ro - erofs {folder}/used ro", "0:77 / /n ro - erofs {folder}/used ro"], False),
        (["0:77 / /mnt ro - erofs none ro,fsid=x"], False),
        (["259:1 / /mnt ro - erofs /dev/nowhere ro"], False),
        (["8:1 / /mnt ro - ext4 {folder}/gone ro"], False),
    ],
)
def test_an_image_that_an_erofs_uses_under_a_former_name(
    loop_device: MakeLoop, tmp_path: Path, rows: list[str], refused: bool
) -> None:
    """If an erofs is mounted from a file that cannot be found, every image with an erofs is refused. A file may be
    renamed after it was mounted, and the kernel shows only the former name.

    An image with other content is accepted.
    """
    device, image = loop_device(), tmp_path / "loop0.img"
    for name in ("unused", "used", "other"):
        (tmp_path / name).write_bytes(bytes(8192))
        if name != "other":
            make_erofs(tmp_path / name)
    proc = tmp_path / "proc"
    (proc / "self").mkdir(parents=True)
    (proc / "self/mountinfo").write_text(
        "".join(f"{number} 0 {row.format(folder=tmp_path)}\n" for number, row in enumerate(rows, 1))
    )

    def objections() -> str:
        return "; ".join(each.text for each in find_objections(read_identity(device), proc_root=proc))

    with (tmp_path / "used").open("rb"), (tmp_path / "other").open("rb"):
        assert "erofs" not in objections()
        make_erofs(image)
        says = f"the file behind {device.name} contains an erofs and may be the file that the erofs mounted at"
        assert (says in objections()) is refused


@pytest.mark.root
def test_a_block_device_below_a_loop_device_is_used(loop_device: MakeLoop, tmp_path: Path) -> None:
    """A loop device is in use if the block device below it is mounted or claimed."""
    under = loop_device()
    with loop_on(under) as upper:
        with mounted(under, tmp_path / "mnt"):
            assert f"[mounted] {under.name} is mounted at {tmp_path}/mnt" in said(upper)
        holder = claim(under)
        try:
            assert f"[busy] {under.name}, which this device uses, is in use" in said(upper)
        finally:
            os.close(holder)


@pytest.mark.root
def test_a_block_device_mapped_for_writing(loop_device: MakeLoop, foreign: Foreign) -> None:
    """A block device that is mapped into memory for writing is in use even if its descriptor is closed, because the
    kernel still writes the mapped pages to the device.
    """
    device = loop_device()
    process = foreign(MAP, device)
    assert f"[mapped] it is mapped into memory by process {process} (" in said(device)


@pytest.mark.root
def test_the_whole_disk_is_open_for_writing(loop_device: MakeLoop, foreign: Foreign) -> None:
    """A partition is in use while another process has the whole disk open for writing, as a virtual machine does."""
    disk = loop_device()
    with partition_of(disk, 1, 2048, 20480) as part:
        process = foreign("os.open(words[0], os.O_RDWR)", disk)
        assert f"[open] {disk.name} is open for writing in process {process} (" in said(part)


@pytest.mark.root
def test_a_writer_that_comes_while_the_question_is_open(loop_device: MakeLoop, foreign: Foreign) -> None:
    """If a process opens the device for writing while the consent question is open, the run is refused. A writer needs
    no claim, so the exclusive hold does not prevent the write access. A process that only reads causes no objection.
    """
    device = loop_device()
    identity = read_identity(device)
    held = hold_target(identity)
    foreign("os.open(words[0], os.O_RDONLY)", device)
    writer = foreign("os.open(words[0], os.O_WRONLY)", device)
    with pytest.raises(RefusedError, match=f"it is open for writing in process {writer} "):
        grant_permit(held, confirmed_id=identity.confirm_id)
    assert not held.is_open


@pytest.mark.root
def test_a_device_opened_through_a_node_of_another_name(
    loop_device: MakeLoop, tmp_path: Path, foreign: Foreign
) -> None:
    """A device that is open through a node with another name counts as in use, because tkperf compares device numbers
    and not names. Containers have their own nodes.
    """
    device = loop_device()
    os.mknod(tmp_path / "disk", 0o60600, device.stat().st_rdev)
    process = foreign("os.open(words[0], os.O_WRONLY)", tmp_path / "disk")
    assert f"[open] it is open for writing in process {process} (" in said(device)


# The following tests use fake folders in the form of the kernel's /sys and /proc.


@pytest.fixture
def fake_disk(tmp_path: Path) -> Path:
    """Return the folder of a disk 8:0 with one partition 8:1 in a fake sysfs."""
    disk = tmp_path / "sys/devices/disk"
    for folder, number in ((disk, "8:0"), (disk / "sdx1", "8:1")):
        folder.mkdir(parents=True)
        (folder / "dev").write_text(f"{number}\n")
        entry = tmp_path / "sys/dev/block" / number
        entry.parent.mkdir(parents=True, exist_ok=True)
        entry.symlink_to(folder)
    (disk / "sdx1/partition").write_text("1\n")
    make_whole_view(tmp_path / "proc")
    return disk


def objections_to(tmp_path: Path, number: str) -> list[str]:
    identity = DeviceIdentity(
        path="/dev/sdx", kind=TargetKind.BLOCK, capacity_bytes=1, logical_block_bytes=512, major_minor=number
    )
    found = find_objections(identity, sys_root=tmp_path / "sys", proc_root=tmp_path / "proc", use_only=True)
    return [each.text for each in found]


LIO_FILE = (
    "Status: ACTIVATED  Max Queue Depth: 0  SectorSize: 512  HwMaxSectors: 16384\n"
    "        TCM FILEIO ID: 0        File: {path}  Size: 67108864  Mode: O_DSYNC Async: 0\n"
)
LIO_BLOCK = (
    "Status: DEACTIVATED  Max Queue Depth: 0  SectorSize: 512  HwMaxSectors: 16384\n"
    "        iBlock device: sdx  UDEV PATH: /dev/sdx  readonly: 0\n"
    "        Major: 8 Minor: 0  CLAIMED: IBLOCK\n"
)
LIO_SCSI = (
    "        SCSI Device Bus Location: Channel ID: 1 Target ID: 2 LUN: 3 Host ID: 4\n"
    "        Vendor: ATA      Model: DISK             Rev: 1.0\n"
)
PATH_ATTRIBUTES = [
    ("kernel/config/nvmet/subsystems/a/namespaces/1/device_path", "an NVMe target (nvmet)"),
    ("kernel/config/nvmet/subsystems/a/passthru/device_path", "an NVMe target (nvmet)"),
    ("kernel/config/target/core/iblock_0/disk/udev_path", "a SCSI target (LIO)"),
    ("kernel/config/target/core/fileio_7/disk/udev_path", "a SCSI target (LIO)"),
    ("kernel/config/target/core/pscsi_0/disk/udev_path", "a SCSI target (LIO)"),
    ("kernel/config/usb_gadget/g/functions/mass_storage.0/lun.0/file", "a USB gadget"),
    ("class/udc/dummy.0/device/gadget.0/lun0/file", "a USB gadget"),
    ("kernel/scst_tgt/devices/disk/filename", "a SCSI target (SCST)"),
    ("block/zram0/backing_dev", "zram, as its backing device"),
]


@pytest.mark.parametrize(("attribute", "user"), PATH_ATTRIBUTES)
@pytest.mark.parametrize("name", ["plain", "of another name", " trailing blank "])
def test_what_the_kernel_exports_by_path(tmp_path: Path, scratch: Path, attribute: str, user: str, name: str) -> None:
    """A file that the kernel exports is refused, even if the export is disabled. tkperf compares the file to which the
    exported path leads, and not the path itself.
    """
    link = tmp_path / name
    link.symlink_to(scratch)
    entry = tmp_path / "sys" / attribute
    entry.parent.mkdir(parents=True)
    (entry.parent / "enable").write_text("0\n")
    entry.write_text(f"{link}\n")
    identity = read_identity(scratch)
    (found,) = find_objections(identity, sys_root=tmp_path / "sys")
    assert found.reason.value == "exported"
    assert found.text.startswith(f"the file is used by {user} (")
    other = tmp_path / "other"
    other.write_bytes(bytes(1024))
    assert find_objections(read_identity(other), sys_root=tmp_path / "sys") == ()


@pytest.mark.root
@pytest.mark.parametrize("attribute", [PATH_ATTRIBUTES[0][0], PATH_ATTRIBUTES[3][0]])
def test_a_block_device_exported_under_another_name(loop_device: MakeLoop, tmp_path: Path, attribute: str) -> None:
    """A block device that is exported through another node is in use. A disk is also in use if one of its partitions is
    exported.
    """
    device = loop_device()
    os.mknod(tmp_path / "node", 0o60600, device.stat().st_rdev)
    entry = tmp_path / "sys" / attribute
    entry.parent.mkdir(parents=True)
    entry.write_text(f"{tmp_path}/node\n")
    (tmp_path / "sys/dev").symlink_to("/sys/dev")
    (found,) = find_objections(read_identity(device), sys_root=tmp_path / "sys")
    assert found.text.startswith(f"{device.name} is used by a")


def test_what_lio_says_of_a_file(tmp_path: Path, scratch: Path) -> None:
    """If udev_path is missing, tkperf finds the exported file in the info text of LIO."""
    info = tmp_path / "sys/kernel/config/target/core/fileio_0/disk/info"
    info.parent.mkdir(parents=True)
    info.write_text(LIO_FILE.format(path=scratch))
    found = find_objections(read_identity(scratch), sys_root=tmp_path / "sys")
    assert [each.text for each in found] == [f"the file is used by a SCSI target (LIO) ({scratch})"]


def test_what_lio_says_of_a_disk(tmp_path: Path, fake_disk: Path) -> None:
    """In LIO's info text, tkperf finds an exported disk by its device number or its SCSI address. A partition of the
    exported disk also counts as exported.
    """
    info = tmp_path / "sys/kernel/config/target/core/iblock_0/disk/info"
    info.parent.mkdir(parents=True)
    info.write_text(LIO_BLOCK)
    assert objections_to(tmp_path, "8:0") == ["disk is used by a SCSI target (LIO)"]
    assert objections_to(tmp_path, "8:1") == ["disk is used by a SCSI target (LIO)"]
    info.write_text(LIO_SCSI)
    assert objections_to(tmp_path, "8:0") == []
    (tmp_path / "sys/devices/4:1:2:3").mkdir()
    (fake_disk / "device").symlink_to(tmp_path / "sys/devices/4:1:2:3")
    assert objections_to(tmp_path, "8:0") == ["disk is used by a SCSI target (LIO)"]


def test_a_network_block_device_server_of_the_kernel(tmp_path: Path, fake_disk: Path) -> None:
    """A device that rnbd serves is refused. sysfs contains a link from rnbd to this device."""
    entry = tmp_path / "sys/class/rnbd-server/ctl/devices/x"
    entry.mkdir(parents=True)
    (entry / "block_dev").symlink_to(fake_disk)
    assert objections_to(tmp_path, "8:1") == ["disk is used by a network block device server (rnbd)"]


@pytest.mark.parametrize("model", ["none", "host-aware", "host-managed"])
def test_a_host_managed_zoned_disk(tmp_path: Path, fake_disk: Path, model: str) -> None:
    """A host-managed disk is refused. fio would write at random positions, but a zone accepts writes only sequentially
    from its start to its end.
    """
    (fake_disk / "queue").mkdir()
    (fake_disk / "queue/zoned").write_text(f"{model}\n")
    for number in ("8:0", "8:1"):
        found = objections_to(tmp_path, number)
        if model == "host-managed":
            assert len(found) == 1
            assert found[0].startswith("it is zoned and host-managed: ")
        else:
            assert found == []


def test_a_layer_on_a_zoned_disk_decides_for_itself(tmp_path: Path, fake_disk: Path) -> None:
    """For a layer on a zoned disk, the zone model of the layer decides. A linear mapping has the same zone model as its
    disk, whereas dm-zoned accepts random writes.
    """
    (fake_disk / "queue").mkdir()
    (fake_disk / "queue/zoned").write_text("host-managed\n")
    volume = tmp_path / "sys/devices/dm-0"
    (volume / "slaves").mkdir(parents=True)
    (volume / "queue").mkdir()
    (volume / "slaves/disk").symlink_to(fake_disk)
    (volume / "dev").write_text("253:0\n")
    (tmp_path / "sys/dev/block/253:0").symlink_to(volume)
    for model, count in (("none", 0), ("host-managed", 1)):
        (volume / "queue/zoned").write_text(f"{model}\n")
        assert len(objections_to(tmp_path, "253:0")) == count


def test_what_a_volume_lies_on(tmp_path: Path, fake_disk: Path) -> None:
    """A logical volume is refused if another program uses the disk below the volume, even without a claim. Other
    volumes on the same disk do not count as users of this volume.
    """
    volume = tmp_path / "sys/devices/dm-0"
    (volume / "slaves").mkdir(parents=True)
    (volume / "slaves/sdx1").symlink_to(fake_disk / "sdx1")
    (volume / "dev").write_text("253:0\n")
    (tmp_path / "sys/dev/block/253:0").symlink_to(volume)
    (fake_disk / "sdx1/holders").mkdir()
    for name in ("dm-0", "dm-1"):
        (fake_disk / "sdx1/holders" / name).symlink_to(volume)
    assert objections_to(tmp_path, "253:0") == []
    entry = tmp_path / "sys/class/rnbd-server/ctl/devices/x"
    entry.mkdir(parents=True)
    (entry / "block_dev").symlink_to(fake_disk / "sdx1")
    assert objections_to(tmp_path, "253:0") == ["sdx1 is used by a network block device server (rnbd)"]


@pytest.mark.parametrize("number", ["7:9", "259:7"], ids=["loop device", "its partition"])
def test_a_loop_device_on_another_partition_of_the_system_disk(
    tmp_path: Path, fake_disk: Path, monkeypatch: pytest.MonkeyPatch, number: str
) -> None:
    """A loop device is refused if it is stored on the system disk. This rule also applies if the system uses a
    partition other than the one below the loop device.
    """
    loop_disk = tmp_path / "sys/devices/loop9"
    folders = {"8:2": fake_disk / "sdx2", "7:9": loop_disk, "259:7": loop_disk / "loop9p1"}
    for device, folder in folders.items():
        folder.mkdir(parents=True)
        (folder / "dev").write_text(f"{device}\n")
        (tmp_path / "sys/dev/block" / device).symlink_to(folder)
    for partition in (folders["8:2"], folders["259:7"]):
        (partition / "partition").write_text("2\n")
    backing = LoopBacking(file=None, device=os.makedev(8, 1), offset_bytes=0, size_limit_bytes=0)
    loop = LoopDevice("loop9", os.makedev(7, 9), backing, "/dev/sdx1", True)
    monkeypatch.setattr("tkperf.device.survey.find_loops", lambda _: (loop,))
    assert objections_to(tmp_path, number) == []
    (tmp_path / "proc/self/mountinfo").write_text("1 0 8:2 / / rw - ext4 /dev/sdx2 rw\n")
    assert objections_to(tmp_path, number) == ["it uses disk, and the running system has / on it"]


def test_partitions_that_overlap(tmp_path: Path, fake_disk: Path) -> None:
    """A partition is in use if an overlapping partition is mounted. Partitions that do not overlap do not affect each
    other.
    """
    (tmp_path / "sys/dev/block/8:2").symlink_to(fake_disk / "sdx2")
    (fake_disk / "sdx2").mkdir()
    rows = {"sdx1": ("8:1", 100, 100), "sdx2": ("8:2", 150, 100)}
    for name, (number, start, size) in rows.items():
        for attribute, value in (("dev", number), ("start", start), ("size", size)):
            (fake_disk / name / attribute).write_text(f"{value}\n")
        (fake_disk / name / "partition").write_text(f"{name[-1]}\n")
    mounts = tmp_path / "proc/self/mountinfo"
    mounts.write_text("1 0 8:2 / /mnt rw - ext4 /dev/sdx2 rw\n")
    # The first partition contains the sectors 100 to 199. The second partition is also 100 sectors long.
    for start, overlaps in ((150, True), (199, True), (200, False), (1, True), (0, False)):
        (fake_disk / "sdx2/start").write_text(f"{start}\n")
        assert objections_to(tmp_path, "8:1") == (["sdx2 is mounted at /mnt"] if overlaps else []), start


def test_a_loop_device_that_cannot_be_asked_is_known_by_name(tmp_path: Path) -> None:
    """If the loop driver cannot be queried, tkperf reads the path of the file behind a loop device from sysfs. This
    also works if the path is marked as deleted.
    """
    from tkperf.device.usage.kernel import find_loops

    image = tmp_path / "image"
    image.write_bytes(b"x")
    status = image.stat()
    entry = tmp_path / "sys/block/loop9/loop/backing_file"
    entry.parent.mkdir(parents=True)
    (entry.parent.parent / "dev").write_text("7:9\n")
    for says in (f"{image}", f"{image} (deleted)"):
        entry.write_text(f"{says}\n")
        (loop,) = find_loops(tmp_path / "sys", dev_root=tmp_path)
        assert (loop.asked, loop.backing and loop.backing.file) == (False, (status.st_dev, status.st_ino))
    entry.write_text("/gone (deleted)\n")
    (loop,) = find_loops(tmp_path / "sys", dev_root=tmp_path)
    assert (loop.asked, loop.backing) == (False, None)


@pytest.mark.root
def test_a_node_that_is_not_the_loop_device_is_not_believed(loop_device: MakeLoop, tmp_path: Path) -> None:
    """A node with the name of a loop device but another device number is not queried, because the answer would describe
    another device.
    """
    from tkperf.device.usage.kernel import find_loops

    device = loop_device()
    os.mknod(tmp_path / "loop9", 0o60600, device.stat().st_rdev)
    entry = tmp_path / "sys/block/loop9/loop/backing_file"
    entry.parent.mkdir(parents=True)
    (entry.parent.parent / "dev").write_text("7:9\n")
    entry.write_text("/gone\n")
    (loop,) = find_loops(tmp_path / "sys", dev_root=tmp_path)
    assert not loop.asked
    rdev = device.stat().st_rdev
    (entry.parent.parent / "dev").write_text(f"{os.major(rdev)}:{os.minor(rdev)}\n")
    (loop,) = find_loops(tmp_path / "sys", dev_root=tmp_path)
    status = (tmp_path / "loop0.img").stat()
    assert (loop.asked, loop.backing and loop.backing.file) == (True, (status.st_dev, status.st_ino))
