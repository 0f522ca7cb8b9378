"""tkperf never erases a device that is in use, under any name of the device. The kernel's information decides whether a
device is in use.
"""

from __future__ import annotations

import ast
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import loop_numbers, run_tool, unmount, until, wait_until_free
from tests.device.conftest import has_ended, make_whole_view, name_of
from tkperf import device
from tkperf.device.identity import DeviceIdentity, TargetKind, identify, is_same_device, read_identity
from tkperf.device.permit import ErasePermit, grant_permit, hold_target
from tkperf.device.purge import plan_purge, run_purge
from tkperf.device.safety import Reason, find_objections
from tkperf.engine import ChosenEngine
from tkperf.engine.device_engine import PermittedDevice
from tkperf.engine.device_jobs import DeviceJobs, Seeds
from tkperf.engine.fio import FioEngine
from tkperf.model.errors import DeviceError, RefusedError
from tkperf.model.input_files import is_there
from tkperf.model.phases import Fill
from tkperf.model.workload import Access, ActiveRange, Workload

MakeLoop = Callable[..., Path]


def test_a_path_that_cannot_be_examined_is_not_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the file system does not say whether a path exists, the error is raised. Path.exists() of Python 3.14 returns
    False in this case, so the code in tkperf.device does not call it.
    """
    assert is_there(tmp_path)
    assert not is_there(tmp_path / "none")
    with pytest.raises(OSError, match="File name too long"):
        is_there(tmp_path / ("n" * 5000))

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(PermissionError):
        is_there(tmp_path)
    monkeypatch.undo()
    calls = [
        f"{path}:{node.lineno}"
        for path in sorted(Path(device.__file__).parent.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "exists"
        # MdadmSet has its own method with this name. os.path.exists is used only to select a path that can be opened.
        if ast.unparse(node.func.value) not in ("self", "os.path")
    ]
    assert calls == []


def reasons(path: Path) -> set[Reason]:
    return {objection.reason for objection in find_objections(read_identity(path))}


def purge(permit: ErasePermit) -> str:
    """Purge the target with the method that tkperf would choose."""
    method = plan_purge(permit.identity).choose(None, device=permit.identity.path)
    return run_purge(permit, method)


def assert_refused(path: Path, says: str) -> None:
    """Assert that no permit is granted and that the refusal contains the reason."""
    identity = read_identity(path)
    with pytest.raises(RefusedError, match=says):
        grant_permit(hold_target(identity), confirmed_id=identity.confirm_id)


@contextmanager
def mounted(device: Path, folder: Path) -> Iterator[None]:
    folder.mkdir()
    run_tool("mkfs.ext4", "-q", device)
    run_tool("mount", device, folder)
    try:
        yield
    finally:
        unmount(folder)


def test_a_free_device_has_nothing_against_it(loop_device: MakeLoop) -> None:
    """A device that no other program uses is permitted and then purged. This test is the counterpart of all
    refusals.
    """
    device = loop_device()
    identity = read_identity(device)
    assert find_objections(identity) == ()
    permit = grant_permit(hold_target(identity), confirmed_id=str(device)).redeem()
    assert "all 128 samples read as zeros" in purge(permit)
    permit.release()
    assert device.read_bytes().count(0) == 64 << 20


def test_a_mounted_device_is_refused_by_every_name(loop_device: MakeLoop, tmp_path: Path) -> None:
    """A mounted device is refused. The user may specify its path, a link, or a link to a link. The refusal names the
    mount point.
    """
    device = loop_device()
    link, second = tmp_path / "link", tmp_path / "second"
    link.symlink_to(device)
    second.symlink_to(link)
    with mounted(device, tmp_path / "mnt"):
        for name in (device, link, second):
            assert Reason.MOUNTED in reasons(name)
            assert_refused(name, f"mounted at {tmp_path}/mnt")
    wait_until_free(device)


def test_a_disk_with_a_mounted_partition_is_refused(loop_device: MakeLoop, tmp_path: Path) -> None:
    """If one partition is mounted, the whole disk is refused. A free partition of the same disk can still be
    measured.
    """
    device = loop_device("--partscan")
    subprocess.run(["sfdisk", "--quiet", device], input="size=20MiB\nsize=20MiB\n", text=True, check=True)
    first, second = Path(f"{device}p1"), Path(f"{device}p2")
    if not first.exists():
        pytest.skip("partitions of loop devices get no nodes here (no udev)")
    with mounted(first, tmp_path / "mnt"):
        assert Reason.MOUNTED in reasons(device)
        assert_refused(device, "mounted at")
        assert reasons(second) == set()


def test_a_file_with_another_name_is_refused_behind_a_loop_device_too(
    loop_device: MakeLoop, scratch: Path, tmp_path: Path
) -> None:
    """A file with several hard links is refused, even behind a loop device, because another user may need the data
    under the other name.
    """
    device = loop_device()
    images = [scratch, next(tmp_path.glob("loop*.img"))]
    for target, image in zip([scratch, device], images, strict=True):
        assert Reason.HARD_LINKS not in reasons(target)
        image.with_suffix(".other").hardlink_to(image)
        assert reasons(target) == {Reason.HARD_LINKS}


@pytest.mark.root
def test_swap_space_is_refused(loop_device: MakeLoop) -> None:
    """A device that is used as swap space is refused."""
    device = loop_device()
    run_tool("mkswap", device)
    if subprocess.run(["swapon", device], check=False, capture_output=True).returncode:
        pytest.skip("swapon is not permitted here")
    try:
        assert Reason.SWAP in reasons(device)
        assert_refused(device, "swap")
    finally:
        run_tool("swapoff", device)


def test_a_device_somebody_holds_exclusively_is_refused(loop_device: MakeLoop) -> None:
    """A device that another program opened with O_EXCL is refused. The kind of program does not matter."""
    device = loop_device()
    holder = os.open(device, os.O_RDWR | os.O_EXCL)
    try:
        assert reasons(device) == {Reason.BUSY}
        assert_refused(device, "in use")
    finally:
        os.close(holder)


def test_a_read_only_device_is_refused(loop_device: MakeLoop) -> None:
    """A read-only device is refused, and the refusal states that the device is read-only."""
    device = loop_device("--read-only")
    assert Reason.READ_ONLY in reasons(device)
    assert_refused(device, "read-only")


def test_holders_and_mounted_partitions_are_found_in_sysfs(tmp_path: Path) -> None:
    """From the kernel's tables alone, tkperf learns which RAID set uses a partition and which partition is mounted."""
    disk = tmp_path / "sys/devices/disk"
    partition = disk / "sdx1"
    (partition / "holders/md7/md").mkdir(parents=True)
    (partition / "holders/md7/md/level").write_text("raid1\n")
    (disk / "holders").mkdir()
    (disk / "dev").write_text("8:0\n")
    (partition / "dev").write_text("8:1\n")
    (partition / "partition").write_text("1\n")
    (tmp_path / "sys/dev/block").mkdir(parents=True)
    (tmp_path / "sys/dev/block/8:0").symlink_to(disk)
    make_whole_view(tmp_path / "proc")
    (tmp_path / "proc/self/mountinfo").write_text("1 0 8:1 / /with\\040blank rw - ext4 /dev/x rw\n")
    identity = DeviceIdentity(
        path="/dev/sdx", kind=TargetKind.BLOCK, capacity_bytes=1, logical_block_bytes=512, major_minor="8:0"
    )
    found = find_objections(identity, sys_root=tmp_path / "sys", proc_root=tmp_path / "proc", use_only=True)
    assert [objection.text for objection in found] == [
        "sdx1 is mounted at /with blank",
        "sdx1 is used by md7 (MD RAID, raid1)",
    ]


def test_only_the_holder_that_tkperf_made_is_no_objection(tmp_path: Path) -> None:
    """While tkperf has lent a drive to its own RAID set or mapping, any other holder of the drive still causes an
    objection.
    """
    disk = tmp_path / "sys/devices/disk"
    for holder in ("dm-0", "dm-1"):
        (disk / "holders" / holder).mkdir(parents=True)
    (disk / "dev").write_text("8:0\n")
    (tmp_path / "sys/dev/block").mkdir(parents=True)
    (tmp_path / "sys/dev/block/8:0").symlink_to(disk)
    make_whole_view(tmp_path / "proc")
    identity = DeviceIdentity(
        path="/dev/sdx", kind=TargetKind.BLOCK, capacity_bytes=1, logical_block_bytes=512, major_minor="8:0"
    )
    found = find_objections(
        identity, sys_root=tmp_path / "sys", proc_root=tmp_path / "proc", use_only=True, used_by_us="dm-0"
    )
    assert [objection.text for objection in found] == ["disk is used by dm-1 (a layer above it)"]


def test_a_file_in_use_is_refused(scratch: Path, tmp_path: Path) -> None:
    """A file that is open in another process, or that has several hard links, is refused. The content of the file
    remains unchanged.
    """
    before = scratch.read_bytes()
    # The shell ends immediately, so the reader is an orphan. Child processes of tkperf would not count as users of the
    # file.
    reader = int(run_tool("sh", "-c", f"sleep 600 < {scratch} > /dev/null 2>&1 & echo $!"))
    try:
        until(lambda: name_of(reader) == "sleep")  # the shell has then opened the file
        assert Reason.OPEN in reasons(scratch)
        assert_refused(scratch, r"open in process \d+ \(sleep\)")
    finally:
        os.kill(reader, signal.SIGKILL)
    until(lambda: has_ended(reader), "the reader did not end")
    os.link(scratch, tmp_path / "second name")
    assert_refused(scratch, "hard links")
    (tmp_path / "second name").unlink()
    assert reasons(scratch) == set()
    assert scratch.read_bytes() == before


def test_a_file_behind_a_loop_device_is_refused(loop_device: MakeLoop, tmp_path: Path) -> None:
    """A file behind a loop device is refused, because another program may use the loop device as a disk."""
    loop_device()
    assert_refused(tmp_path / "loop0.img", "behind loop device")


def test_the_wrong_confirmation_is_refused_and_touches_nothing(scratch: Path) -> None:
    """A wrong answer is refused, and no data is changed. The right answer is the serial number or the path of the
    device.
    """
    with pytest.raises(RefusedError, match="does not confirm"):
        grant_permit(hold_target(read_identity(scratch)), confirmed_id="yes")
    assert set(scratch.read_bytes()) == {0xA5}


def test_a_permit_cannot_be_made_by_hand(scratch: Path) -> None:
    """Only grant_permit, which runs the safety check, can create a permit."""
    with pytest.raises(RefusedError, match="grant_permit"):
        ErasePermit(hold_target(read_identity(scratch)), made_by=object())


def test_there_is_no_load_without_a_permit_in_use(scratch: Path) -> None:
    """tkperf does not start fio with a permit that was not redeemed yet or that was already released."""
    permit = grant_permit(hold_target(read_identity(scratch)), confirmed_id=str(scratch))
    workload = Workload(access=Access.SEQUENTIAL, read_percent=0, block_size_bytes=131072, jobs=1, io_depth=1)
    engine = FioEngine(
        DeviceJobs(
            PermittedDevice(
                permit=permit,
                ioengine=ChosenEngine(name="libaio"),
                active_range=ActiveRange(offset_bytes=0, length_bytes=1 << 20),
            )
        ),
        version="",
        cpus=1,
        seeds=Seeds(1),
    )
    fill = Fill(section="s", workload=workload, passes=1)
    with pytest.raises(RefusedError, match="the permit to erase this device is not in use"):
        engine.fill(fill, then=None, on_sample=lambda *_: None)
    permit.redeem()
    permit.release()
    with pytest.raises(RefusedError, match="the permit to erase this device is not in use"):
        engine.fill(fill, then=None, on_sample=lambda *_: None)
    engine.close()
    assert set(scratch.read_bytes()) == {0xA5}


def test_a_permit_is_good_for_one_run(scratch: Path) -> None:
    """A permit can be redeemed only once. After its release, it permits no action."""
    permit = grant_permit(hold_target(read_identity(scratch)), confirmed_id=str(scratch))
    permit.redeem()
    with pytest.raises(RefusedError, match="one run"):
        permit.redeem()
    permit.release()
    with pytest.raises(RefusedError, match="the permit to erase this device is not in use"):
        purge(permit)
    assert set(scratch.read_bytes()) == {0xA5}


def test_two_runs_cannot_hold_one_target(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one tkperf holds a file, a second tkperf on the same file is refused."""
    monkeypatch.setattr("tkperf.device.hold.LOCK_LIMIT_S", 0.1)
    identity = read_identity(scratch)
    permit = grant_permit(hold_target(identity), confirmed_id=identity.confirm_id)
    with pytest.raises(RefusedError, match="is locked by"):
        grant_permit(hold_target(identity), confirmed_id=identity.confirm_id)
    permit.release()


def test_another_device_under_the_same_name_is_refused_before_the_act(scratch: Path, tmp_path: Path) -> None:
    """If another file has the name of the confirmed file after consent, neither file is purged."""
    permit = grant_permit(hold_target(read_identity(scratch)), confirmed_id=str(scratch)).redeem()
    other = tmp_path / "other"
    other.write_bytes(b"\x5a" * (64 << 20))
    other.rename(scratch)
    with pytest.raises(DeviceError, match="was deleted"):
        purge(permit)
    assert set(scratch.read_bytes()) == {0x5A}
    permit.release()


@pytest.mark.parametrize("change", [{"serial": "B"}, {"capacity_bytes": 9}, {"wwn": "w"}])
def test_identity_is_more_than_a_name(change: dict[str, object]) -> None:
    """Two devices with different serial numbers, WWNs or sizes are different devices, even if their names are
    the same.
    """
    one = DeviceIdentity(path="/dev/sdx", kind=TargetKind.BLOCK, capacity_bytes=8, logical_block_bytes=512, serial="A")
    assert is_same_device(one, replace(one, path="/dev/sdy"))
    assert not is_same_device(one, replace(one, **change))  # type: ignore[arg-type]


def test_the_confirmation_is_the_serial_where_there_is_one() -> None:
    """The user confirms a drive with its serial number. A device without a serial number is confirmed with its path."""
    drive = DeviceIdentity(path="/dev/sdx", kind=TargetKind.BLOCK, capacity_bytes=8, logical_block_bytes=512)
    assert drive.confirm_id == "/dev/sdx"
    assert replace(drive, serial="S1").confirm_id == "S1"


@pytest.mark.parametrize(
    ("path", "says"),
    [("/nowhere/at/all", "there is no device"), ("/tmp", "is a directory"), ("/dev/null", "is a character device")],
)
def test_what_cannot_be_a_target_is_named(path: str, says: str) -> None:
    """If a path cannot be a target, the error states the reason: the path does not exist, is a directory, or is a
    character device.
    """
    with pytest.raises(DeviceError, match=says):
        read_identity(path)


def test_an_unused_loop_device_has_no_capacity() -> None:
    """A device node without a medium has no capacity and is refused."""
    with loop_numbers():
        free = subprocess.run(["losetup", "--find"], capture_output=True, text=True, check=False)
        if free.returncode or not Path(free.stdout.strip()).exists() or os.geteuid():
            pytest.skip("no unused loop device here")
        with pytest.raises(DeviceError, match="no capacity"):
            read_identity(free.stdout.strip())
        # The device had a capacity when tkperf showed it, but now the device has no capacity. The drive was therefore
        # removed in the meantime.
        descriptor = os.open(free.stdout.strip(), os.O_RDONLY)
        with pytest.raises(DeviceError, match=r"^/dev/loop\d+ no longer exists: the drive was removed"):
            identify(descriptor, Path(free.stdout.strip()), again=True)
        os.close(descriptor)


def test_a_target_gone_or_exchanged_before_consent_is_refused(scratch: Path, tmp_path: Path) -> None:
    """If the target disappears before consent, or another target with the same name replaces it, the run is refused."""
    shown = read_identity(scratch)
    other = tmp_path / "other"
    other.write_bytes(b"\x5a" * (64 << 20))
    other.rename(scratch)
    with pytest.raises(DeviceError, match="no longer the device that tkperf showed"):
        grant_permit(hold_target(shown), confirmed_id=shown.confirm_id)
    scratch.unlink()
    with pytest.raises(DeviceError, match="there is no device"):
        grant_permit(hold_target(shown), confirmed_id=shown.confirm_id)
