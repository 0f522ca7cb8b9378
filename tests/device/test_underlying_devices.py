"""A run resumes only on the device or file on which it was measured."""

from __future__ import annotations

import fcntl
import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import attach_again, until
from tkperf.device.identity import describe_underlying, read_identity, read_unit
from tkperf.device.inspection import inspect_device
from tkperf.device.permit import grant_permit, hold_target
from tkperf.device.usage.kernel import LOOP_GET_STATUS64
from tkperf.model.errors import DeviceError
from tkperf.model.same_device import require_same_device

MakeLoop = Callable[..., Path]
MIB = 1 << 20
LOOP_SET_STATUS64 = 0x4C04


def facts_of(device: Path) -> dict[str, object]:
    """Return the facts of a device in the form that a run file contains."""
    facts: dict[str, object] = json.loads(json.dumps(inspect_device(read_identity(device)).values))
    return facts


@contextmanager
def attached_again(device: Path, image: Path, *options: str) -> Iterator[None]:
    """Attach another part of the image to a loop device. After the ``with`` statement, attach the first 32 MiB of the
    image.
    """
    attach_again(device, *options, image)
    yield
    attach_again(device, "--sizelimit", str(32 * MIB), image)


@pytest.mark.root
@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--offset", str(MIB), "--sizelimit", str(32 * MIB)), "from byte 1048576, 33554432 bytes"),
        (("--offset", str(32 * MIB)), "from byte 33554432, not"),
        ((), "it has grown"),
    ],
)
def test_another_part_behind_a_loop_device(
    options: tuple[str, ...], says: str, loop_device: MakeLoop, tmp_path: Path
) -> None:
    """If another part of the image is behind the loop device, a resumption is refused. The path and the name of the
    image are unchanged in this test. The size changes only if the part has grown.
    """
    device, image = loop_device("--sizelimit", str(32 * MIB)), tmp_path / "loop0.img"
    recorded = facts_of(device)
    with attached_again(device, image, *options), pytest.raises(DeviceError, match=says):
        require_same_device(recorded, facts_of(device))
    require_same_device(recorded, facts_of(device))


@pytest.mark.root
def test_another_image_behind_a_loop_device(loop_device: MakeLoop, tmp_path: Path) -> None:
    """If another image with the same name and size is behind the loop device, a resumption is refused, because the
    inode differs. Without this rule, tkperf would erase the other image.
    """
    device, image = loop_device(), tmp_path / "loop0.img"
    recorded = facts_of(device)
    inode = image.stat().st_ino
    image.rename(tmp_path / "kept.img")
    image.write_bytes(bytes(64 * MIB))
    attach_again(device, image)
    with pytest.raises(DeviceError, match=rf"it uses inode .*, not inode {inode} made at "):
        require_same_device(recorded, facts_of(device))


@pytest.mark.root
def test_another_device_behind_a_loop_device(loop_device: MakeLoop) -> None:
    """If another block device is behind the loop device, a resumption is refused."""
    first, second, upper = loop_device(), loop_device(), loop_device()
    attach_again(upper, first)
    recorded = facts_of(upper)
    assert f"block device 7:{first.name.removeprefix('loop')} from" in str(recorded["loop_backing"])
    require_same_device(recorded, facts_of(upper))
    attach_again(upper, second)
    with pytest.raises(DeviceError, match="it uses inode"):
        require_same_device(recorded, facts_of(upper))


@pytest.mark.root
def test_a_part_that_is_moved_under_a_run(loop_device: MakeLoop) -> None:
    """If root changes the offset of a loop device while tkperf holds the device, the next check refuses to continue.

    The hold does not prevent such a change.
    """
    device = loop_device("--sizelimit", str(32 * MIB))
    identity = read_identity(device)
    permit = grant_permit(hold_target(identity), confirmed_id=identity.confirm_id).redeem()
    try:
        permit.recheck()
        status = bytearray(fcntl.ioctl(permit.descriptor, LOOP_GET_STATUS64, bytes(232)))
        status[24:32] = MIB.to_bytes(8, "little")
        fcntl.ioctl(permit.descriptor, LOOP_SET_STATUS64, bytes(status))
        with pytest.raises(DeviceError, match="no longer the device that tkperf showed"):
            permit.recheck()
    finally:
        permit.release()


@pytest.mark.root
def test_a_loop_device_may_have_another_number(loop_device: MakeLoop, tmp_path: Path) -> None:
    """A run may resume on a loop device with another number. The file behind a loop device identifies the device,
    because the kernel numbers loop devices in the order in which they were attached.
    """
    first, second = loop_device(), loop_device()
    image = tmp_path / "loop0.img"
    recorded = facts_of(first)
    attach_again(first, tmp_path / "loop1.img")
    attach_again(second, image)
    require_same_device(recorded, facts_of(second))
    with pytest.raises(DeviceError, match="it uses inode"):
        require_same_device(recorded, facts_of(first))


@pytest.mark.root
def test_a_loop_device_on_a_new_file_of_the_same_inode(loop_device: MakeLoop, tmp_path: Path) -> None:
    """If the file behind a loop device has the recorded inode number but another birth time, a resumption is refused. A
    file system may reuse the inode number of a removed file.
    """
    device, image = loop_device(), tmp_path / "loop0.img"
    recorded = facts_of(device)
    recorded["beneath"] = [
        text.replace("made at 1", "made at 2", 1)
        for text in recorded["beneath"]  # type: ignore[attr-defined]
    ]
    with pytest.raises(DeviceError, match="it uses inode"):
        require_same_device(recorded, facts_of(device))
    assert str(image.stat().st_ino) in str(recorded["beneath"])


@pytest.mark.root
def test_a_sibling_partition_of_the_same_size(loop_device: MakeLoop) -> None:
    """A run does not resume on a sibling partition, although both partitions have the same serial number, size, model
    and drive.
    """
    disk = loop_device()
    with with_partitions(disk, ((1, 2048, 60000), (2, 65536, 60000))):
        first, second = (Path(f"{disk}p{number}") for number in (1, 2))
        recorded = facts_of(first)
        require_same_device(recorded, facts_of(first))
        with pytest.raises(DeviceError, match="partition 2, not 1; start of the partition"):
            require_same_device(recorded, facts_of(second))


@contextmanager
def with_partitions(disk: Path, parts: tuple[tuple[int, int, int], ...]) -> Iterator[None]:
    """Create partitions that exist only in the kernel, each with number, start and length in sectors. The disk has no
    partition table.
    """
    made = []
    try:
        for number, start, length in parts:
            subprocess.run(["addpart", disk, str(number), str(start), str(length)], check=True)
            made.append(number)
            until(Path(f"{disk}p{number}").exists, f"no node {disk}p{number}")
        yield
    finally:
        for number in made:
            subprocess.run(["delpart", disk, str(number)], check=True)


def test_a_new_file_of_the_same_name_and_inode(tmp_path: Path) -> None:
    """A new file with the recorded name and inode number is refused, because its birth time differs. ext4 may reuse an
    inode number immediately.
    """
    path = tmp_path / "a.img"
    path.write_bytes(bytes(MIB))
    recorded = facts_of(path)
    assert recorded["birth_time_ns"] is not None
    path.write_bytes(b"x" * MIB)
    path.touch()
    renamed = path.rename(tmp_path / "b.img")
    require_same_device(recorded, facts_of(renamed))
    renamed.unlink()
    renamed.write_bytes(bytes(MIB))
    now = facts_of(renamed)
    inode = recorded["inode"]
    with pytest.raises(DeviceError, match=r"it is another file .*time when the file was made"):
        require_same_device(recorded, now | {"inode": inode})


def make_node(sys_root: Path, name: str, number: str, **attributes: str) -> Path:
    """Create a block device in a fake sysfs, and return its folder."""
    folder = sys_root / "devices" / name
    folder.mkdir(parents=True)
    (folder / "dev").write_text(f"{number}\n")
    for attribute, text in attributes.items():
        path = folder / attribute.replace("__", "/")
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{text}\n")
    link = sys_root / "dev/block" / number
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(folder)
    return folder


def put_under(upper: Path, lower: Path) -> None:
    (upper / "slaves").mkdir(exist_ok=True)
    (upper / "slaves" / lower.name).symlink_to(lower)


def test_drives_beneath_a_layer_are_named_by_their_own_numbers(tmp_path: Path) -> None:
    """The drives below a layer are identified with their serial numbers. The number of layers, and the order in which
    tkperf finds the drives, do not matter.

    Two paths to one drive count as one drive.
    """

    def beneath(*letters: str, serials: tuple[str, ...] = ("A", "B")) -> tuple[str, ...]:
        root = tmp_path / "".join((*letters, *serials))
        volume, set_ = make_node(root, "dm-0", "254:0"), make_node(root, "md127", "9:127")
        put_under(volume, set_)
        for place, (letter, serial) in enumerate(zip(letters, serials, strict=True)):
            drive = make_node(root, f"sd{letter}", f"8:{place * 16}", size="2048", serial=serial)
            part = drive / f"sd{letter}1"
            part.mkdir()
            for name, text in (("partition", "1"), ("start", "2048"), ("size", "1024")):
                (part / name).write_text(text)
            put_under(set_, part)
        return describe_underlying(volume, sys_root=root)

    first = beneath("a", "b")
    assert first == tuple(f"serial number {serial} partition 1 at byte 1048576 of 524288 bytes" for serial in "AB")
    assert beneath("d", "c") == first
    assert beneath("c", "d", serials=("B", "A")) == first
    assert beneath("e", "f", serials=("A", "A")) == first[:1]
    assert beneath("g", "h", serials=("A", "C")) != first


def test_units_of_one_drive_are_told_apart(tmp_path: Path) -> None:
    """Units of one drive are distinguished by their namespace, LUN or boot area, because such units may have the same
    serial number.
    """
    namespace = make_node(tmp_path, "nvme0n2", "259:1", nsid="2")
    boot = make_node(tmp_path, "mmcblk0boot1", "179:16")
    bay = make_node(tmp_path, "sdb", "8:16")
    target = tmp_path / "devices/2:0:0:1"
    target.mkdir()
    (target / "scsi_level").write_text("7")
    (bay / "device").symlink_to(target)
    units = [read_unit(disk) for disk in (namespace, boot, bay, make_node(tmp_path, "sdc", "8:32"))]
    assert units == ["namespace 2", "boot area 1", "LUN 1", None]
