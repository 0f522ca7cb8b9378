"""A block device is refused if tkperf cannot see the processes and mounts of the whole machine, as in a container."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import run_tool, unmount
from tests.device.conftest import make_whole_view
from tkperf.device.identity import DeviceIdentity, TargetKind, read_identity
from tkperf.device.raid.config import RaidConfig
from tkperf.device.raid.storcli import StorcliSet
from tkperf.device.safety import find_objections, find_view_objections
from tkperf.model.errors import RefusedError

MakeLoop = Callable[..., Path]
MIB = 1 << 20
BLOCK = DeviceIdentity(
    path="/dev/sdx", kind=TargetKind.BLOCK, capacity_bytes=1, logical_block_bytes=512, major_minor="8:0"
)
# Rows in the form of /proc/1/stat and /proc/self/mountinfo (proc(5)), as they appear in a container with overlayfs. The
# rows are written by hand and not recorded in a container. The tests below with real namespaces check the same rule.
SHELL_OF_CONTAINER = "1 (sh) S 0 1 1 0 -1 4194560 1077 8513 0 2 1 1 4 6 20 0 1 0 8723\n"
MOUNTS_OF_CONTAINER = (
    "713 665 0:63 / / rw,relatime - overlay overlay rw,lowerdir=/l/A,upperdir=/u,workdir=/w\n"
    "714 713 0:66 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw\n"
)

FIND = """
import json, os, sys
from pathlib import Path
from tkperf.device.identity import read_identity
from tkperf.device.safety import find_objections
identity = read_identity(Path(sys.argv[1]))
if len(sys.argv) > 2:
    os.chroot(sys.argv[2])
    os.chdir("/")
found = find_objections(identity, use_only=True)
print(json.dumps([f"[{each.reason.value}] {each.text}" for each in found]))
"""


def find_through(*argv: str | Path) -> list[str]:
    """Return the objections that a separate process finds. ``argv`` is the command that starts this process in separate
    namespaces.
    """
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    return found


def make_container(proc: Path) -> None:
    (proc / "1").mkdir(parents=True)
    (proc / "self/ns").mkdir(parents=True)
    (proc / "1/stat").write_text(SHELL_OF_CONTAINER)
    (proc / "1/environ").write_text("PATH=/usr/bin:/bin\0container=podman\0")
    (proc / "self/ns/pid").symlink_to("pid:[4026532641]")
    (proc / "self/status").write_text("NSpid:\t1\nCapEff:\t000001ffffffffff\n")
    for name in ("1", "self"):
        (proc / name / "mountinfo").write_text(MOUNTS_OF_CONTAINER)


def test_a_container_with_its_own_processes_is_refused(tmp_path: Path) -> None:
    """In a container with a separate PID namespace, any block device is refused, even with all capabilities."""
    make_container(tmp_path)
    assert [each.text for each in find_view_objections(tmp_path, root=tmp_path)] == [
        "from a container (podman), tkperf sees only the processes and mounts in it, so a use of the device by "
        "the host would not be noticed: run tkperf on the host"
    ]
    assert "narrow-view" in {each.reason for each in find_objections(BLOCK, proc_root=tmp_path, use_only=True)}


def test_an_empty_proc_is_refused(tmp_path: Path) -> None:
    """If /proc contains no information, tkperf cannot know whether it sees the whole machine, and refuses the
    device.
    """
    (found,) = find_view_objections(tmp_path, root=tmp_path)
    assert found.text.startswith("from a PID namespace of its own, tkperf sees only")


def test_the_mounts_of_process_1_must_be_readable(tmp_path: Path) -> None:
    """If tkperf sees all processes but cannot read the mounts of process 1, the mounts of the machine are not known."""
    make_whole_view(tmp_path)
    assert list(find_view_objections(tmp_path)) == []
    (tmp_path / "1/mountinfo").unlink()
    (found,) = find_view_objections(tmp_path)
    assert found.text.startswith("the mounts of process 1 cannot be read")


@pytest.mark.parametrize("number", ["8:0", "8:2"])
def test_the_disk_of_the_host_is_the_system_disk_also_in_a_container(tmp_path: Path, number: str) -> None:
    """A container can share the processes of the host and still have a separate root file system. The disk that
    contains the root file system of process 1 is then refused, with all of its partitions.
    """
    disk = tmp_path / "sys/devices/sda"
    for folder, each in ((disk, "8:0"), (disk / "sda1", "8:1"), (disk / "sda2", "8:2")):
        folder.mkdir(parents=True)
        (folder / "dev").write_text(f"{each}\n")
        entry = tmp_path / "sys/dev/block" / each
        entry.parent.mkdir(parents=True, exist_ok=True)
        entry.symlink_to(folder)
    for name in ("sda1", "sda2"):
        (disk / name / "partition").write_text(f"{name[-1]}\n")
    proc = tmp_path / "proc"
    make_whole_view(proc)
    (proc / "1/comm").write_text("systemd\n")
    (proc / "1/mountinfo").write_text("27 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n")
    (proc / "self/mountinfo").write_text(MOUNTS_OF_CONTAINER)
    identity = DeviceIdentity(
        path="/dev/sda", kind=TargetKind.BLOCK, capacity_bytes=1, logical_block_bytes=512, major_minor=number
    )
    found = find_objections(identity, sys_root=tmp_path / "sys", proc_root=proc, use_only=True)
    texts = [each.text for each in found]
    assert "the running system has / on it" in texts[-1]
    mounted = "sda1 is mounted at / in the mount namespace of process 1 (systemd)"
    assert (mounted in texts) is (number == "8:0")


def test_a_file_is_measured_in_a_container(tmp_path: Path, scratch: Path) -> None:
    """A file can be measured even if tkperf cannot see all processes of the host, because the kernel's lease shows
    whether any other process has the file open.
    """
    make_container(tmp_path / "proc")
    assert find_objections(read_identity(scratch), proc_root=tmp_path / "proc") == ()


def test_a_set_of_a_controller_is_refused_in_a_container(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In a container, tkperf does not erase the members of a virtual drive, because it could not measure the virtual
    drive there.
    """
    make_container(tmp_path)
    monkeypatch.setattr("tkperf.device.raid.storcli.find_storcli", lambda: "storcli64")
    objections = list(find_view_objections(tmp_path, root=tmp_path))
    monkeypatch.setattr("tkperf.device.raid.storcli.find_view_objections", lambda: objections)
    controller = StorcliSet(Path("/dev/sdx"), RaidConfig(type="hw_lsi", devices=("252:0", "252:1"), raidlevel=1))
    with pytest.raises(RefusedError, match=r"from a container \(podman\).*Nothing was touched"):
        controller.refuse_used_drives()


@pytest.mark.root
def test_real_namespaces(loop_device: MakeLoop, tmp_path: Path) -> None:
    """In a real PID namespace, the device is refused. In a real mount namespace with the processes of the host, the
    device is not refused, and tkperf finds a mount outside the namespace.
    """
    device = loop_device()
    python = (sys.executable, "-c", FIND, device)
    (objection,) = find_through("unshare", "--pid", "--fork", "--mount-proc", *python)
    assert objection.startswith("[narrow-view] from ")
    assert find_through("unshare", "--pid", "--fork", *python) == []
    assert find_through("unshare", "--mount", "--propagation", "private", *python) == []
    run_tool("mkfs.ext4", "-q", device)
    folder = tmp_path / "mnt"
    folder.mkdir()
    run_tool("mount", device, folder)
    try:
        gone = ("unshare", "--mount", "--propagation", "private", "sh", "-c", 'umount "$0"; exec "$@"', folder)
        found = find_through(*gone, *python)
        assert any(
            f"[mounted] {device.name} is mounted at {folder} in the mount namespace of" in each for each in found
        )
    finally:
        unmount(folder)


@pytest.mark.root
def test_a_real_chroot(loop_device: MakeLoop, tmp_path: Path) -> None:
    """In a chroot, the kernel hides the mounts outside the chroot from tkperf. tkperf therefore reads the mounts of
    process 1.
    """
    device, root, folder = loop_device(), tmp_path / "root", tmp_path / "mnt"
    run_tool("mkfs.ext4", "-q", device)
    for each in (root / "proc", root / "sys", root / "dev", folder):
        each.mkdir(parents=True)
    os.mknod(root / "dev/null", 0o20666, os.makedev(1, 3))
    os.mknod(root / device.relative_to("/"), 0o60600, device.stat().st_rdev)
    # Within the chroot, the file behind the loop device has the same name.
    image = tmp_path / "loop0.img"
    (root / image.parent.relative_to("/")).mkdir(parents=True)
    os.link(image, root / image.relative_to("/"))
    mounted: list[Path] = []
    try:
        for argv, point in (
            (("-t", "proc", "proc"), root / "proc"),
            (("-t", "sysfs", "-o", "ro", "sysfs"), root / "sys"),
            ((str(device),), folder),
        ):
            run_tool("mount", *argv, point)
            mounted.append(point)
        found = find_through(sys.executable, "-c", FIND, device, root)
        if str(folder) not in Path("/proc/1/mountinfo").read_text():
            pytest.skip("the tests run in another mount namespace than process 1")
        says = f"[mounted] {device.name} is mounted at {folder} in the mount namespace of process 1 "
        assert any(each.startswith(says) for each in found), found
    finally:
        for point in reversed(mounted):
            unmount(point)
