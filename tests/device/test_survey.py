"""Under some conditions, tkperf cannot see every user of a target. tkperf describes each such blind spot in one
sentence, but only if an unseen user would matter.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.device.conftest import Foreign, loop_on
from tkperf.device.identity import DeviceIdentity, TargetKind, file_system_of, read_identity
from tkperf.device.safety import find_objections
from tkperf.device.survey import BlindSpotCode, find_blind_spots

NOBODY = 65534
KERNEL_THREAD = "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0\n"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

BLOCK = DeviceIdentity(
    path="/dev/sdx", kind=TargetKind.BLOCK, capacity_bytes=1, logical_block_bytes=512, major_minor="8:0"
)


@pytest.fixture
def trees(tmp_path: Path) -> dict[str, Path]:
    """Return the folders of a fake machine on which tkperf can see all users. The process is in the first PID
    namespace, and the kernel exports no target.
    """
    roots = {name: tmp_path / name for name in ("sys_root", "proc_root", "root")}
    for root in roots.values():
        root.mkdir()
    proc = roots["proc_root"]
    write(proc / "2/stat", KERNEL_THREAD)
    write(proc / "self/status", "NSpid:\t77\nCapEff:\t000001ffffffffff\n")
    write(roots["sys_root"] / "dev/block/8:0/dev", "8:0\n")
    return roots


def write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def spots(identity: DeviceIdentity, trees: dict[str, Path]) -> dict[str, str]:
    return {each.code.value: each.text for each in find_blind_spots(identity, **trees)}


def test_nothing_is_said_where_everything_can_be_seen(trees: dict[str, Path]) -> None:
    """If tkperf can see all users, it names no blind spot. A sign of a container is not sufficient for a blind spot,
    because a container may share the machine's processes.
    """
    write(trees["root"] / ".dockerenv", "")
    assert spots(BLOCK, trees) == {}
    assert spots(replace(BLOCK, kind=TargetKind.SIMULATED, major_minor=None), trees) == {}


@pytest.mark.parametrize(
    ("mark", "content", "says"),
    [
        ("root/run/systemd/container", "podman\n", "a container (podman)"),
        ("root/.dockerenv", "", "a container (Docker)"),
        ("root/run/.containerenv", "", "a container (Podman)"),
        ("proc_root/1/environ", "A=1\0container=lxc\0B=2", "a container (lxc)"),
        ("proc_root/1/environ", "A=1", "a PID namespace of its own"),
    ],
)
def test_a_private_pid_namespace(trees: dict[str, Path], mark: str, content: str, says: str) -> None:
    """A private PID namespace is named as a blind spot. tkperf recognises such a namespace by its missing kernel
    threads, because only the first namespace contains them. The kind of container is named if it is known.
    """
    write(trees["proc_root"] / "2/stat", "2 (kthreadd) S 1 0 0 0 -1 4194304 0 0\n")
    write(trees["root"].parent / mark, content)
    assert spots(BLOCK, trees) == {
        "pid-namespace": f"tkperf runs in {says} and sees only the processes in it, so it would not notice if a "
        "process outside of it used /dev/sdx"
    }


@pytest.mark.parametrize(
    ("namespace", "numbers", "seen"),
    [
        ("pid:[4026531836]", "77", True),
        ("pid:[4026532001]", "77", False),
        # /proc belongs to a parent namespace, which is not necessarily the first one.
        ("pid:[4026531836]", "77\t1", False),
    ],
)
def test_the_first_pid_namespace_by_its_number(
    trees: dict[str, Path], namespace: str, numbers: str, seen: bool
) -> None:
    """If the kernel threads are hidden, the inode number of the PID namespace shows whether it is the first
    namespace.
    """
    (trees["proc_root"] / "2/stat").unlink()
    write(trees["proc_root"] / "self/status", f"NSpid:\t{numbers}\nCapEff:\t1ffffffffff\n")
    (trees["proc_root"] / "self/ns").mkdir()
    (trees["proc_root"] / "self/ns/pid").symlink_to(namespace)
    assert ("pid-namespace" not in spots(BLOCK, trees)) is seen


@pytest.mark.parametrize("option", ["hidepid=2", "hidepid=invisible", "hidepid=1", "subset=pid"])
def test_hidden_processes(trees: dict[str, Path], option: str) -> None:
    """If /proc hides the processes of other users, tkperf names this as a blind spot, unless tkperf has permission to
    trace any process.
    """
    proc = trees["proc_root"]
    write(proc / "self/mountinfo", f"1 0 0:5 / {proc} rw - proc proc rw,gid=4,{option}\n")
    assert spots(BLOCK, trees) == {}
    write(proc / "self/status", "NSpid:\t77\nCapEff:\t0000000000000000\n")
    assert list(spots(BLOCK, trees)) == ["hidden-processes"]
    ptrace = 1 << 19  # CAP_SYS_PTRACE in linux/capability.h
    write(proc / "self/status", f"NSpid:\t77\nCapEff:\t{ptrace:016x}\n")
    assert spots(BLOCK, trees) == {}
    write(proc / "self/status", f"NSpid:\t77\nCapEff:\t{0x1FFFFFFFFFF & ~ptrace:016x}\n")
    assert list(spots(BLOCK, trees)) == ["hidden-processes"]


def test_loop_devices_that_cannot_be_asked(trees: dict[str, Path]) -> None:
    """Loop devices without a node, and loop devices that tkperf has no permission to query, are each named as a blind
    spot.
    """
    for name, number in (("loop901", "7:901"), ("loop902", "7:902")):
        write(trees["sys_root"] / f"block/{name}/loop/backing_file", "/gone (deleted)\n")
        write(trees["sys_root"] / f"block/{name}/dev", f"{number}\n")
    assert spots(BLOCK, trees) == {
        "loop-devices": "tkperf could find the files behind loop901, loop902 only by their names, because a query "
        "to the loop driver requires root privileges and the node of the loop device in /dev"
    }


def test_a_device_that_sysfs_does_not_have(trees: dict[str, Path]) -> None:
    """If sysfs does not contain a disk, a blind spot states that the partitions and the layers above the disk are not
    known.
    """
    shutil.rmtree(trees["sys_root"] / "dev")
    assert spots(BLOCK, trees) == {
        "sysfs": "the kernel does not describe /dev/sdx here (/sys is missing or incomplete), so tkperf could not "
        "check its partitions and the devices that use the partitions"
    }


@pytest.mark.parametrize(
    ("module", "folder"), [("nvmet", "nvmet"), ("target_core_mod", "target"), ("usb_f_mass_storage", "usb_gadget")]
)
def test_exports_without_configfs(trees: dict[str, Path], module: str, folder: str) -> None:
    """If the module of an export is loaded but configfs is not mounted, the exports are named as a blind spot."""
    (trees["sys_root"] / "module" / module).mkdir(parents=True)
    assert f"which devices and files the kernel exports through {module}, because" in spots(BLOCK, trees)["exports"]
    (trees["sys_root"] / "kernel/config" / folder).mkdir(parents=True)
    assert spots(BLOCK, trees) == {}


def test_exports_of_what_cannot_be_found(trees: dict[str, Path]) -> None:
    """If an exported path does not exist in tkperf's namespace, the path is named as a blind spot, because the export
    may use the target.
    """
    entry = "kernel/config/nvmet/subsystems/a/namespaces/1/device_path"
    write(trees["sys_root"] / entry, "/gone\x1b\n")
    assert spots(BLOCK, trees) == {
        "exports": "tkperf cannot find the file or device that is used by an NVMe target (nvmet) (/gone), because the "
        "name does not exist here"
    }


def test_a_file_that_nobody_else_has_open_needs_none_of_that(trees: dict[str, Path], scratch: Path) -> None:
    """If no other process has a file open, loop devices, exports and swap files are not blind spots. A use by any of
    these would keep the file open, and the kernel counts how often a file is open.
    """
    write(trees["sys_root"] / "block/loop901/loop/backing_file", "/gone (deleted)\n")
    write(trees["sys_root"] / "block/loop901/dev", "7:901\n")
    (trees["sys_root"] / "module/nvmet").mkdir(parents=True)
    write(trees["proc_root"] / "swaps", "Filename Type Size Used Priority\n/gone file 1 0 -2\n")
    trees["proc_root"] = Path("/proc")
    codes = set(spots(read_identity(scratch), trees))
    assert codes <= {"pid-namespace", "other-users", "hidden-processes"}


def test_swap_space_that_cannot_be_found_is_not_passed_over(
    trees: dict[str, Path], loop_device: Callable[..., Path]
) -> None:
    """If a swap file cannot be found, it is named as a blind spot for a loop device, because the file behind the loop
    device may be this swap file.
    """
    device = loop_device()
    shutil.rmtree(trees["sys_root"] / "dev")
    (trees["sys_root"] / "dev").symlink_to("/sys/dev")
    (trees["sys_root"] / "block").symlink_to("/sys/block")
    write(trees["proc_root"] / "swaps", "Filename Type Size Used Priority\n/gone\\040x file 1 0\n")
    found = spots(read_identity(device), trees)
    assert found["swap"] == "tkperf cannot find the swap file /gone x, because the name does not exist here"


def test_an_overlay_whose_folders_cannot_be_reached(trees: dict[str, Path], scratch: Path) -> None:
    """An overlay is named as a blind spot if its folders are relative paths or belong to another namespace."""
    row = "1 0 0:9 / /merged rw - overlay overlay rw,lowerdir=l/A:/gone,upperdir=/gone\n"
    write(trees["proc_root"] / "self/mountinfo", row)
    found = spots(read_identity(scratch), trees)
    assert found["overlays"].startswith("it is not known whether the file is part of the overlay mounted at /merged")


@pytest.mark.parametrize("kind", ["nfs4", "fuse.sshfs", "9p"])
def test_a_file_on_a_file_system_of_several_machines(trees: dict[str, Path], scratch: Path, kind: str) -> None:
    """A file on a network file system is named as a blind spot, because the kernel knows only the users on this
    machine.
    """
    proc = trees["proc_root"]
    # All descriptors report the same facts, so every descriptor seems to be on this mount.
    (proc / "self/fd").symlink_to("/proc/self/fd")
    for number in range(200):
        write(proc / f"self/fdinfo/{number}", "mnt_id:\t77\n")
    write(proc / "self/mountinfo", f"77 0 0:9 / / rw - {kind} server:/x rw\n")
    assert spots(read_identity(scratch), trees) == {
        "other-machines": f"{scratch} is on {kind.partition('.')[0]}: tkperf cannot see whether "
        "another machine uses the file"
    }


def test_a_loop_device_on_a_file_that_other_machines_share(
    loop_device: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loop device on a file of a network file system is named as a blind spot, because another machine may use this
    file.
    """
    device = loop_device()
    assert BlindSpotCode.OTHER_MACHINES not in {spot.code for spot in find_blind_spots(read_identity(device))}
    kind = file_system_of(tmp_path / "loop0.img")
    monkeypatch.setattr("tkperf.device.survey._SHARED", (kind,))
    assert f"the file behind {device.name} is on {kind}: tkperf cannot see whether another machine" in " ".join(
        spot.text for spot in find_blind_spots(read_identity(device))
    )


REAL = """
import json, sys
from tkperf.device.survey import find_blind_spots
from tkperf.device.identity import read_identity
print(json.dumps({each.code: each.text for each in find_blind_spots(read_identity(sys.argv[1]))}))
"""


@needs_root
@pytest.mark.root
@pytest.mark.parametrize("options", [("--mount-proc",), ()])
def test_a_real_pid_namespace(scratch: Path, loop_device: Callable[..., Path], options: tuple[str, ...]) -> None:
    """In a PID namespace with its own /proc, the processes outside are invisible and named as a blind spot. With the
    machine's /proc, all processes are visible.
    """
    for target in (scratch, loop_device()):
        argv = ["unshare", "--pid", "--fork", *options, sys.executable, "-c", REAL, str(target)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        if not options:
            assert "pid-namespace" not in found
            continue
        assert "sees only the processes in it" in found["pid-namespace"]
        assert ("At the moment, nothing else has" in found["pid-namespace"]) is (target == scratch)


def as_nobody(job: Callable[[], list[list[str]]]) -> list[list[str]]:
    """Run a job as an ordinary user in a separate process, and return its result."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            os.write(send, json.dumps(job()).encode())
        except BaseException:  # the forked process must end here and never continue with the tests
            os.write(send, json.dumps(traceback.format_exc()).encode())
        finally:
            os._exit(0)
    os.close(send)
    with os.fdopen(receive, "rb") as answer:
        found: list[list[str]] = json.loads(answer.read())
    os.waitpid(child, 0)
    return found


@pytest.fixture
def own_file() -> Iterator[Path]:
    """Yield a scratch file of an ordinary user, in a folder that this user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="tkperf-test-", dir="/var/tmp"))
    path = folder / "scratch.img"
    path.write_bytes(b"\xa5" * (1 << 20))
    for each in (folder, path):
        os.chown(each, NOBODY, NOBODY)
    yield path
    shutil.rmtree(folder)


@needs_root
@pytest.mark.root
def test_an_ordinary_user_on_his_own_file(own_file: Path, foreign: Foreign) -> None:
    """If an ordinary user measures a file that this user owns, tkperf names one blind spot and raises no objection. The
    sentence about the blind spot adds that no other process has the file open now.
    """

    def look() -> list[list[str]]:
        identity = read_identity(own_file)
        # Another test may mount an overlay at any moment, and an ordinary user cannot reach the folders of the overlay.
        shown = [each for each in find_blind_spots(identity) if each.code is not BlindSpotCode.OVERLAYS]
        return [[each.text for each in shown], [each.text for each in find_objections(identity)]]

    sentences, objections = as_nobody(look)
    (sentence,) = sentences
    assert objections == []
    assert sentence.startswith("tkperf cannot inspect ")
    assert sentence.endswith(
        f" processes of other users, so it would not notice if one of these processes used {own_file}. At the moment, "
        f"nothing else has {own_file} open"
    )
    foreign("os.open(words[0], os.O_RDONLY)", own_file)
    _, objections = as_nobody(look)
    assert objections == [
        "the file is in use by something that cannot be seen from here: the kernel, or a "
        "process of another user or container, has it open, mapped or running"
    ]


@needs_root
@pytest.mark.root
def test_an_ordinary_user_on_the_image_behind_a_loop_device(own_file: Path) -> None:
    """An ordinary user has no permission to query the loop driver. If the file is behind a loop device, tkperf still
    objects, because the kernel counts the file as open.
    """
    with loop_on(own_file):
        hidden = own_file.rename(own_file.with_name("other"))
        os.link(hidden, own_file)
        hidden.unlink()
        (found,) = as_nobody(lambda: [[each.text for each in find_objections(read_identity(own_file))]])
    assert any("behind loop device" in text or "cannot be seen" in text for text in found)
