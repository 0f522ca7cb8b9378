"""tkperf writes only to the device or file that the user confirmed, even if the name later refers to another file or
device.
"""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conftest import run_tool
from tkperf.device import hold
from tkperf.device.hold import Hold
from tkperf.device.identity import read_identity
from tkperf.device.permit import ErasePermit, grant_permit, hold_target
from tkperf.device.purge import plan_purge, run_purge
from tkperf.device.targets import create_file_target, remove_file_target
from tkperf.model.errors import DeviceError, RefusedError, TkperfError
from tkperf.pipeline.drive import ScratchFileUnderTest
from tkperf.pipeline.run_request import RunRequest

MIB = 1 << 20


def permit_for(path: Path) -> ErasePermit:
    identity = read_identity(path)
    return grant_permit(hold_target(identity), confirmed_id=identity.confirm_id).redeem()


def purge(permit: ErasePermit) -> None:
    run_purge(permit, plan_purge(permit.identity).choose(None, device=permit.identity.path))


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """Return a file that the user did not confirm."""
    path = tmp_path / "secret"
    path.write_bytes(b"\x5a" * (64 * MIB))
    return path


def test_a_link_that_took_the_place_of_a_file_is_not_followed(scratch: Path, secret: Path) -> None:
    """If a link replaces the shown file before the hold, tkperf does not follow the link to another file."""
    shown = read_identity(scratch)
    scratch.unlink()
    scratch.symlink_to(secret)
    with pytest.raises(DeviceError, match="no longer the device that tkperf showed"):
        hold_target(shown)
    with pytest.raises(RefusedError, match="it is a link now"):
        Hold(shown)
    assert set(secret.read_bytes()) == {0x5A}


def test_another_file_of_the_same_size_is_not_held(scratch: Path, secret: Path) -> None:
    """If another file of the same size has the name of the shown file, tkperf refuses to hold the other file. The user
    confirmed the inode and not the name.
    """
    shown = read_identity(scratch)
    secret.rename(scratch)
    with pytest.raises(DeviceError, match="no longer the device that tkperf showed"):
        Hold(shown)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """Yield the root folder of a process with another mount namespace. In this namespace, another folder is mounted at
    ``tmp_path``.
    """
    if os.geteuid():
        pytest.skip("needs root for a mount namespace")
    other = tmp_path / "other"
    other.mkdir()
    script = 'mount --bind "$0" "$1" && echo mounted && exec cat'
    with subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", script, other, tmp_path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        if process.stdout.readline() != "mounted\n":
            pytest.skip("no mount namespace can be made here")
        yield Path(f"/proc/{process.pid}/root")
        process.terminate()


def test_a_file_of_another_mount_namespace_is_not_taken_for_that_of_the_same_path(
    scratch: Path, elsewhere: Path
) -> None:
    """A file in another mount namespace is refused. The link in /proc contains the path of the file in that namespace,
    but in tkperf's own namespace the same path belongs to another file.
    """
    (scratch.parent / "other" / scratch.name).write_bytes(b"theirs" * MIB)
    theirs = elsewhere / scratch.relative_to("/")
    with pytest.raises(DeviceError, match="is not the same file as"):
        read_identity(theirs)
    # Another path through /proc is accepted if it leads to the same file.
    own = Path(f"/proc/{os.getpid()}/root") / scratch.relative_to("/")
    assert read_identity(own) == read_identity(scratch)


def test_no_scratch_file_is_made_in_another_mount_namespace(tmp_path: Path, elsewhere: Path) -> None:
    """tkperf creates no scratch file in another mount namespace, because the path may belong to another file in
    tkperf's own namespace.
    """
    request = RunRequest(suite="ssd", device=str(elsewhere / tmp_path.relative_to("/") / "new.img"), size="16MiB")
    with pytest.raises(DeviceError, match="is not the same file as"):
        ScratchFileUnderTest(request)
    assert not list(tmp_path.rglob("new.img"))


def test_a_file_without_a_name_is_not_taken_for_one_that_has_its_text_as_a_name(scratch: Path) -> None:
    """tkperf refuses a deleted file. The kernel shows such a file as ``PATH (deleted)``, and another file may have this
    name.
    """
    with scratch.open("rb") as file:
        way = Path(f"/proc/{os.getpid()}/fd/{file.fileno()}")
        assert read_identity(way) == read_identity(scratch)
        scratch.unlink()
        scratch.with_name(f"{scratch.name} (deleted)").write_bytes(b"another file" * MIB)
        with pytest.raises(DeviceError, match="is not the same file as"):
            read_identity(way)


def test_what_is_held_is_erased_and_not_what_has_its_name(scratch: Path, secret: Path) -> None:
    """If the name refers to another file after consent, tkperf still purges the confirmed file."""
    permit = permit_for(scratch)
    moved = scratch.rename(scratch.with_name("moved"))
    scratch.symlink_to(secret)
    purge(permit)
    permit.release()
    assert set(secret.read_bytes()) == {0x5A}
    assert not any(moved.read_bytes())


def test_swapping_all_the_time_never_gets_an_unconfirmed_file_written(tmp_path: Path, secret: Path) -> None:
    """An unconfirmed file is never written to, even if a program continuously swaps the scratch file and a link during
    60 purges.
    """
    name, own, link = tmp_path / "s.img", tmp_path / "own", tmp_path / "link"
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            with suppress(OSError):
                name.rename(own)
                link.rename(name)
                name.rename(link)
                own.rename(name)

    def purge_named() -> None:
        identity = read_identity(name)
        if identity.capacity_bytes != MIB:
            # The name now leads to the other file. tkperf would show this file to the user, and the user would not
            # confirm it.
            return
        permit = grant_permit(hold_target(identity), confirmed_id=identity.confirm_id)
        try:
            purge(permit.redeem())
        finally:
            permit.release()

    name.write_bytes(b"\xa5" * MIB)
    link.symlink_to(secret)
    purge_named()
    assert not any(name.read_bytes())  # without the swaps, the same calls purge the file
    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        for _ in range(60):
            with suppress(TkperfError, FileNotFoundError):
                purge_named()
    finally:
        over.set()
        swapper.join()
    assert set(secret.read_bytes()) == {0x5A}


def test_another_node_of_the_same_name_is_not_held(loop_device: Callable[..., Path], tmp_path: Path) -> None:
    """A node of the same name is held only if it has the device number and the disk sequence number that tkperf showed
    to the user.
    """
    first, second = loop_device(size=8 * MIB), loop_device(size=8 * MIB)
    node = tmp_path / "disk"
    os.mknod(node, 0o600 | stat.S_IFBLK, first.stat().st_rdev)
    shown = read_identity(node)
    node.unlink()
    os.mknod(node, 0o600 | stat.S_IFBLK, second.stat().st_rdev)
    with pytest.raises(DeviceError, match="no longer the device that tkperf showed"):
        Hold(shown)
    assert set(second.read_bytes()) == {0xA5}


def test_a_device_is_written_to_by_its_descriptor(loop_device: Callable[..., Path], tmp_path: Path) -> None:
    """If the node is replaced after consent, the confirmed device is still purged, because tkperf writes through the
    descriptor of this device.
    """
    first, second = loop_device(size=8 * MIB), loop_device(size=8 * MIB)
    node = tmp_path / "disk"
    os.mknod(node, 0o600 | stat.S_IFBLK, first.stat().st_rdev)
    permit = permit_for(node)
    node.unlink()
    os.mknod(node, 0o600 | stat.S_IFBLK, second.stat().st_rdev)
    purge(permit)
    assert permit.require_kernel_name() == str(first)
    permit.release()
    assert set(second.read_bytes()) == {0xA5}
    assert not any(first.read_bytes())


def test_a_held_device_is_claimed_except_while_it_is_lent(loop_device: Callable[..., Path]) -> None:
    """A held device is claimed with O_EXCL, so that mounts, RAID sets and other programs that claim devices cannot use
    it. While the device is lent, it is not claimed.
    """
    device = loop_device(size=8 * MIB)
    permit = permit_for(device)

    def claim() -> None:
        os.close(os.open(device, os.O_RDONLY | os.O_EXCL))

    with pytest.raises(OSError, match="busy"):
        claim()
    permit.lend()
    claim()
    permit.take_back()
    with pytest.raises(OSError, match="busy"):
        claim()
    permit.release()
    claim()


def test_a_lent_device_is_taken_back_by_its_descriptor(scratch: Path, secret: Path) -> None:
    """A lent device cannot be used until tkperf takes it back. The permit then refers to the same device, even if
    another file now has the name of the device.
    """
    permit = permit_for(scratch)
    permit.lend()
    with pytest.raises(RefusedError, match="another program is using"):
        _ = permit.path
    moved = scratch.rename(scratch.with_name("moved"))
    secret.rename(scratch)
    permit.take_back()
    purge(permit)
    permit.release()
    assert set(scratch.read_bytes()) == {0x5A}
    assert not any(moved.read_bytes())


def test_the_lock_stays_while_the_device_is_lent(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second tkperf is refused even while the first tkperf has lent the device to the purge tool."""
    monkeypatch.setattr("tkperf.device.hold.LOCK_LIMIT_S", 0.1)
    permit = permit_for(scratch)
    permit.lend()
    with pytest.raises(RefusedError, match="is locked by"):
        Hold(read_identity(scratch))
    permit.release()


def test_data_on_a_partition_is_found_by_its_descriptor(
    loop_device: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """wipefs reads a partition through a file descriptor of tkperf. wipefs finds this descriptor under tkperf's PID in
    /proc. wipefs is another process, so /proc/self would lead to the descriptors of wipefs.
    """
    device = loop_device(size=8 * MIB)
    run_tool("mkswap", "-q", device)
    held = Hold(read_identity(device))
    try:
        monkeypatch.setattr(hold, "find_parts", lambda node: [node, Path("partition")])
        monkeypatch.setattr(hold, "device_number", lambda _: 0)
        monkeypatch.setattr(hold, "open_device", lambda *_: os.open(device, os.O_RDONLY))
        found = [(each.device, each.kind) for each in held.find_data()]
    finally:
        held.release()
    assert found == [(str(device), "swap"), ("/dev/partition", "swap")]


def test_a_scratch_file_exchanged_after_it_was_made_is_not_removed(tmp_path: Path) -> None:
    """If another file replaced the scratch file after tkperf had created it, tkperf does not remove the other file."""
    path = tmp_path / "s.img"
    made = create_file_target(path, MIB)
    path.rename(tmp_path / "moved")
    path.write_text("somebody else's")
    remove_file_target(path, made)
    assert path.read_text() == "somebody else's"
    remove_file_target(tmp_path / "moved", made)
    assert not (tmp_path / "moved").exists()


def found_in(path: Path) -> str:
    held = hold_target(read_identity(path))
    held.release()
    return ", ".join(str(each) for each in held.data)


def test_an_existing_file_is_looked_into(tmp_path: Path) -> None:
    """Content in an existing file counts as data. Holes in a file do not count as data."""
    path = tmp_path / "x"
    path.write_bytes(b"%PDF-1.4\n" + os.urandom(MIB))
    assert found_in(path).endswith(f"on {path}")
    path.write_bytes(b"\x01\xff" * (MIB // 2))
    assert "data " in found_in(path)
    subprocess.run(["mkfs.ext4", "-q", path], check=True)
    assert "ext4" in found_in(path)
    with path.open("wb") as file:
        file.truncate(MIB)
    assert found_in(path) == ""


def test_a_loop_device_is_looked_into_like_the_file_behind_it(loop_device: Callable[..., Path]) -> None:
    """Any content of a loop device except zeros counts as data, even if libblkid does not recognise the content."""
    device = loop_device(size=8 * MIB)
    assert "data " in found_in(device)
    device.write_bytes(bytes(8 * MIB))
    assert found_in(device) == ""


def test_a_scratch_file_is_asked_for_once_it_was_written_to(tmp_path: Path) -> None:
    """A scratch file needs consent as soon as it contains a written byte, because tkperf cannot know who wrote this
    byte. Allocated blocks alone contain no data.
    """
    path = tmp_path / "s.img"
    create_file_target(path, MIB)
    assert found_in(path) == ""
    with path.open("r+b") as file:
        file.write(b"diary")
    assert found_in(path)


def start_tkperf(*words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tkperf", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        stdin=subprocess.DEVNULL,
    )


def children_of(pid: int) -> set[int]:
    found = set[int]()
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # the thread may have ended
            found |= set(map(int, task.read_text().split()))
    return found


@pytest.mark.fio
def test_a_purge_that_outlives_tkperf_keeps_its_lock(scratch: Path, tmp_path: Path) -> None:
    """If tkperf is killed with kill -9 during a purge, the purge tool continues and keeps the lock. The next start is
    refused, and the message names the tool.
    """
    words = (
        scratch,
        "--profile",
        "quick",
        "-ssdt",
        "iops",
        "--output",
        tmp_path,
        "--yes-destroy",
        scratch,
        "--purge-command",
        "sleep 300 {device}",
    )
    script = tmp_path / "bin" / "sleep"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\nexec /bin/sleep 3000\n")
    script.chmod(0o755)
    words = (*words[:-1], f"{script} {{device}}")
    first = start_tkperf("ssd", "first", *words)
    tool: int | None = None
    try:
        until_s = time.monotonic() + 300
        while tool is None and time.monotonic() < until_s and first.poll() is None:
            for child in children_of(first.pid):
                with suppress(OSError):
                    if Path(f"/proc/{child}/comm").read_text().strip() == "sleep":
                        tool = child
            time.sleep(0.05)
        assert tool is not None, first.communicate()[0]
        first.send_signal(signal.SIGKILL)
        first.wait()
        os.kill(tool, 0)
        second = start_tkperf("ssd", "second", *words)
        said, _ = second.communicate(timeout=300)
        assert second.returncode == 3, said
        assert f"process {tool} (sleep)" in said
        assert set(scratch.read_bytes()) == {0xA5}
    finally:
        if tool is not None:
            os.kill(tool, signal.SIGKILL)
        first.kill()
        first.communicate()


@pytest.mark.fio
@pytest.mark.parametrize("content", [b"%PDF-1.4\n", b"\xa5"])
def test_force_does_not_erase_a_file_of_the_users(tmp_path: Path, content: bytes) -> None:
    """``-ft`` skips the consent question only if no data can be lost. For a file with data, tkperf still asks."""
    path = tmp_path / "thesis.pdf"
    path.write_bytes(content + b"\xa5" * (64 * MIB))
    done = start_tkperf("ssd", "n", path, "-ft", "--profile", "quick", "--output", tmp_path)
    said, _ = done.communicate(timeout=300)
    assert done.returncode == 3, said
    assert "tkperf cannot ask for consent, because there is no terminal" in said
    assert path.read_bytes() == content + b"\xa5" * (64 * MIB)


@pytest.mark.fio
def test_what_could_not_be_looked_at_is_said_before_the_question(scratch: Path, tmp_path: Path) -> None:
    """In a private PID namespace, tkperf cannot see users of the device outside the namespace. Before the consent
    question, a warning states that tkperf sees only some of the processes.
    """
    words = ("tkperf", "ssd", "n", str(scratch), "-q", "--output", str(tmp_path))
    unshare = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc")
    done = subprocess.run(
        [*unshare, sys.executable, "-m", *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    if "unshare" in done.stderr:
        pytest.skip("this kernel lets nobody make a PID namespace")
    assert done.returncode == 3, done.stderr
    assert re.search(r"sees only the processes", done.stderr)
    assert done.stderr.index("warning") < done.stderr.index("would destroy all data")


@pytest.mark.fio
def test_a_path_is_confirmed_as_it_was_given(scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The relative path of DEVICE confirms the device if it is spelled as in the call. Another spelling is refused."""
    monkeypatch.chdir(scratch.parent)
    words = ("--profile", "quick", "-ssdt", "iops", "--purge-command", "false {device}")
    for given, status in ((scratch.name, 4), (f"./{scratch.name}", 3)):
        done = start_tkperf("ssd", f"n{status}", scratch.name, "--yes-destroy", given, "--output", tmp_path, *words)
        said, _ = done.communicate(timeout=300)
        assert done.returncode == status, said
    assert set(scratch.read_bytes()) == {0xA5}
