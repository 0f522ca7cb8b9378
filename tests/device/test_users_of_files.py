"""A file that is in use is refused. The name of the file, its user and the kind of use do not matter."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.conftest import run_tool, unmount, until, wait_until_free
from tests.device.conftest import Foreign, has_ended, name_of
from tkperf.device.identity import DeviceIdentity, read_identity
from tkperf.device.permit import grant_permit, hold_target
from tkperf.device.safety import find_objections
from tkperf.model.errors import RefusedError

MakeLoop = Callable[..., Path]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def said(path: Path) -> str:
    """Return all objections to a file with their codes."""
    return "; ".join(f"[{each.reason.value}] {each.text}" for each in find_objections(read_identity(path)))


def assert_refused(path: Path, says: str) -> None:
    """Assert that no permit is granted, that the refusal contains the reason, and that the file was not written to."""
    before = path.read_bytes()
    identity = read_identity(path)
    with pytest.raises(RefusedError, match=says):
        grant_permit(hold_target(identity), confirmed_id=identity.confirm_id)
    assert path.read_bytes() == before


def unlinked(image: Path) -> Path:
    """Delete the name of the file, and return a second name of the same file."""
    other = image.with_name("other name")
    os.link(image, other)
    image.unlink()
    return other


def renamed(image: Path) -> Path:
    return image.rename(image.with_name("other name"))


def moved_to_a_folder_gone_by_now(image: Path) -> Path:
    """Move the image away, and create another file under its old name, with which the loop device was attached. Return
    the new path of the image.
    """
    moved = image.rename(image.with_name("elsewhere"))
    image.write_bytes(b"not this one")
    return moved


@pytest.mark.root
@pytest.mark.parametrize("change", [unlinked, renamed, moved_to_a_folder_gone_by_now])
def test_a_mounted_image_by_any_other_name(
    loop_device: MakeLoop, tmp_path: Path, change: Callable[[Path], Path]
) -> None:
    """A mounted image is refused under any name, because tkperf asks the loop driver for the inode of the image."""
    device = loop_device()
    run_tool("mkfs.ext4", "-q", device)
    (tmp_path / "mnt").mkdir()
    run_tool("mount", device, tmp_path / "mnt")
    try:
        image = change(tmp_path / "loop0.img")
        assert f"the file is behind loop device {device.name}" in said(image)
        assert_refused(image, "behind loop device")
    finally:
        unmount(tmp_path / "mnt")


MAP = """
import ctypes
handle = os.open(words[0], os.O_RDWR)
call = ctypes.CDLL(None).mmap
call.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
call(None, 4096, 3, 1, handle, 0)  # to read and write, shared; python's own mmap keeps a descriptor
os.close(handle)
"""


def test_mapped_with_its_descriptor_closed(foreign: Foreign, scratch: Path) -> None:
    """A file that is mapped into memory is in use even if its descriptor is closed. Databases use files in this way."""
    process = foreign(MAP, scratch)
    assert f"[mapped] the file is mapped into memory by process {process} (" in said(scratch)
    assert_refused(scratch, "mapped into memory by process")


def test_mapped_under_a_name_that_is_gone(foreign: Foreign, scratch: Path) -> None:
    """A file that is mapped into memory is recognised after it was renamed, because tkperf compares inodes."""
    foreign(MAP, scratch)
    assert "[mapped]" in said(scratch.rename(scratch.with_name("moved")))


@contextmanager
def orphan(*argv: str | Path, becomes: str, maps: str = "", **environment: str) -> Iterator[int]:
    """Start a program that is not a child of the test, and yield its PID as soon as the program runs.

    Args:
        becomes: the name of the process when the program runs.
        maps: the path of a file that the program opens, maps into memory and closes before it is ready.
    """
    words = " ".join(f"'{word}'" for word in argv)
    process = int(
        subprocess.run(
            ["sh", "-c", f"{words} </dev/null >/dev/null 2>&1 & echo $!"],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, **environment},
        ).stdout
    )

    def runs() -> bool:
        with suppress(OSError):  # the process may end in the meantime
            if name_of(process) == becomes and maps in Path(f"/proc/{process}/maps").read_text():
                return maps not in [os.readlink(each) for each in Path(f"/proc/{process}/fd").iterdir()]
        return False

    try:
        # If the program has failed, this wait also ends, and the assertions of the test then show the failure.
        until(lambda: has_ended(process) or runs(), f"process {process} did not become {becomes}")
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        until(lambda: has_ended(process), f"process {process} did not end")


def test_a_running_program(tmp_path: Path) -> None:
    """A program file is in use while the program runs, although the process has no file descriptor for it."""
    program = Path(shutil.copy("/bin/sleep", tmp_path / "program"))
    with orphan(program, "600", becomes="program") as process:
        assert f"[running] the file is running as process {process} (program)" in said(program)
        with pytest.raises(RefusedError, match="is running as process"):
            grant_permit(hold_target(read_identity(program)), confirmed_id=str(program))
    assert said(program) == ""


def test_a_loaded_library(tmp_path: Path) -> None:
    """A loaded library is in use, although a process only maps the library and has no file descriptor for it."""
    loaded = Path("/proc/self/maps").read_text().split()
    library = tmp_path / "library.so"
    shutil.copy(next(word for word in loaded if "/libc.so" in word), library)
    with orphan("sleep", "600", becomes="sleep", maps=str(library), LD_PRELOAD=str(library)):
        assert "[mapped]" in said(library)
        assert_refused(library, "mapped into memory by process")


@needs_root
@pytest.mark.root
@pytest.mark.parametrize("name", ["a\tb", "a b", "a\nb", "a\\b", "a\\040b", "plain (deleted)"])
def test_swap_files_of_any_name(tmp_path: Path, name: str) -> None:
    """A swap file is recognised by its inode, because the kernel escapes its name in the list of swap files."""
    image = tmp_path / name
    image.write_bytes(bytes(16 << 20))
    image.chmod(0o600)
    run_tool("mkswap", image)
    if subprocess.run(["swapon", image], check=False, capture_output=True).returncode:
        pytest.skip("swapon is not permitted here")
    try:
        assert "[swap] the file is in use as swap space" in said(image)
        assert_refused(image, "swap space")
    finally:
        run_tool("swapoff", image)
    assert said(image) == ""


@needs_root
@pytest.mark.root
def test_a_swap_file_that_the_kernel_does_not_name(tmp_path: Path) -> None:
    """A swap file is recognised even if /proc/swaps does not list it, because the kernel refuses writes to a
    swap file.
    """
    image = tmp_path / "swap"
    image.write_bytes(bytes(16 << 20))
    image.chmod(0o600)
    run_tool("mkswap", image)
    if subprocess.run(["swapon", image], check=False, capture_output=True).returncode:
        pytest.skip("swapon is not permitted here")
    proc = tmp_path / "proc"
    (proc / "self").mkdir(parents=True)
    (proc / "swaps").write_text("Filename Type Size Used Priority\n/gone file 1 0 -2\n")
    try:
        found = find_objections(read_identity(image), proc_root=proc)
        assert [each.reason.value for each in found] == ["swap"]
    finally:
        run_tool("swapoff", image)


@contextmanager
def overlay(lower: str, upper: str, work: str, point: Path) -> Iterator[None]:
    point.mkdir()
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    # If LIBMOUNT_FORCE_MOUNT2 is set, mount(8) uses the old system call. The new system calls would interpret the
    # escapes in the options differently.
    done = subprocess.run(
        ["mount", "-t", "overlay", "overlay", "-o", options, point],
        check=False,
        capture_output=True,
        env={**os.environ, "LIBMOUNT_FORCE_MOUNT2": "always"},
    )
    if done.returncode:
        pytest.skip(f"overlays cannot be mounted here: {done.stderr.decode()}")
    try:
        yield
    finally:
        unmount(point)


@needs_root
@pytest.mark.root
@pytest.mark.parametrize("name", ["plain", "with blank", "with:colon", "tab\tbed"])
def test_files_of_a_mounted_overlay(tmp_path: Path, name: str) -> None:
    """A file in a lower, upper or work folder of a mounted overlay is in use. The name of the folder does not
    matter.
    """
    folders = [tmp_path / f"{kind} {name}" for kind in ("low", "lower", "up", "work")]
    for folder in folders:
        (folder / "deep").mkdir(parents=True)
        (folder / "deep/image").write_bytes(bytes(1 << 20))
    shutil.rmtree(folders[3] / "deep")
    free = tmp_path / "image"
    free.write_bytes(bytes(1 << 20))
    escaped = [str(folder).replace(":", "\\:") for folder in folders]
    with overlay(f"{escaped[0]}:{escaped[1]}", escaped[2], escaped[3], tmp_path / "merged"):
        for folder in folders[:3]:
            found = said(folder / "deep/image")
            assert f"[overlay] the file is part of the overlay mounted at {tmp_path}/merged" in found
        (folders[3] / "image").write_bytes(bytes(1 << 20))
        assert "[overlay]" in said(folders[3] / "image")
        assert_refused(folders[1] / "deep/image", "part of the overlay")
        assert said(free) == ""
        assert said(tmp_path / "merged/deep/image") == ""
    wait_until_free(folders[1] / "deep/image")


@needs_root
@pytest.mark.root
def test_a_layer_that_was_renamed_is_still_part_of_its_overlay(tmp_path: Path) -> None:
    """A file of an overlay is recognised after its folder was renamed, even if another folder has the old name. The
    merged folder of the overlay shows the file.
    """
    for name in ("lower/deep", "upper", "work"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "lower/deep/image").write_bytes(bytes(1 << 20))
    lower, upper, work = (str(tmp_path / name) for name in ("lower", "upper", "work"))
    with overlay(lower, upper, work, tmp_path / "merged"):
        moved = (tmp_path / "lower").rename(tmp_path / "moved")
        (tmp_path / "lower").mkdir()
        assert "[overlay] the file is part of the overlay" in said(moved / "deep/image")


@needs_root
@pytest.mark.root
def test_a_file_of_an_overlay_reached_through_a_bind_mount(tmp_path: Path) -> None:
    """A file of an overlay is also recognised if its path leads through a bind mount, because tkperf compares positions
    within the file system.
    """
    for name in ("lower/deep", "upper", "work", "bound"):
        (tmp_path / name).mkdir(parents=True)
    image = tmp_path / "lower/deep/image"
    image.write_bytes(bytes(1 << 20))
    run_tool("mount", "--bind", image.parent, tmp_path / "bound")
    try:
        lower, upper, work = (str(tmp_path / name) for name in ("lower", "upper", "work"))
        with overlay(lower, upper, work, tmp_path / "merged"):
            assert "[overlay]" in said(tmp_path / "bound/image")
    finally:
        unmount(tmp_path / "bound")


@pytest.mark.root
def test_a_loop_device_on_a_file_of_an_overlay(loop_device: MakeLoop, tmp_path: Path) -> None:
    """A loop device on a file of an overlay is refused, because writes to the loop device would change the content of
    the overlay.
    """
    device = loop_device()
    assert said(device) == ""
    for name in ("upper", "work"):
        (tmp_path / name).mkdir()
    lower = (tmp_path / "lower").absolute()
    lower.mkdir()
    (tmp_path / "loop0.img").rename(lower / "image")
    with overlay(str(lower), f"{tmp_path}/upper", f"{tmp_path}/work", tmp_path / "merged"):
        assert f"[overlay] the file behind {device.name} is part of the overlay" in said(device)


@needs_root
@pytest.mark.root
def test_a_file_of_an_overlay_of_another_mount_namespace(tmp_path: Path) -> None:
    """An overlay in another mount namespace, such as the namespace of a container, is found through the processes in
    that namespace.
    """
    for name in ("lower", "upper", "work", "merged"):
        (tmp_path / name).mkdir()
    image = tmp_path / "lower/image"
    image.write_bytes(bytes(1 << 20))
    options = ",".join(f"{name}dir={tmp_path}/{name}" for name in ("lower", "upper", "work"))
    script = f"mount -t overlay overlay -o '{options}' '{tmp_path}/merged' && exec sleep 600"
    with orphan("unshare", "--mount", "sh", "-c", script.replace("'", '"'), becomes="sleep"):
        found = said(image)
    if "[overlay]" not in found and not Path("/sys/module/overlay").exists():
        pytest.skip("this kernel has no overlays")
    assert "in the mount namespace of process" in found


IN_FLIGHT = """
import array, socket
near, far = socket.socketpair()
handle = os.open(words[0], os.O_RDONLY)
near.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [handle]))])
os.close(handle)
"""


def test_a_descriptor_on_its_way_through_a_socket(foreign: Foreign, scratch: Path) -> None:
    """A file is in use while its descriptor is in transit through a socket, although no process has the file open."""
    foreign(IN_FLIGHT, scratch)
    assert "in use by something that cannot be seen from here" in said(scratch)
    assert_refused(scratch, "something that cannot be seen")


REGISTERED = """
import ctypes
call = ctypes.CDLL(None).syscall
ring = call(425, 4, ctypes.create_string_buffer(120))
handle = os.open(words[0], os.O_RDWR)
if ring >= 0:
    call(427, ring, 2, (ctypes.c_int * 1)(handle), 1)
    os.close(handle)
"""


def test_a_file_registered_with_io_uring(foreign: Foreign, scratch: Path) -> None:
    """A file that is registered with io_uring is in use even if its descriptor is closed."""
    process = foreign(REGISTERED, scratch)
    found = said(scratch)
    if f"open in process {process}" in found:
        pytest.skip("io_uring is not permitted here")
    assert "the file is registered with io_uring in process" in found


THREAD = """
import ctypes, threading
opened = threading.Event()
def alone():
    ctypes.CDLL(None).unshare(0x400)  # CLONE_FILES
    os.open(words[0], os.O_RDONLY)
    opened.set()
    time.sleep(600)
threading.Thread(target=alone, daemon=True).start()
opened.wait()
"""


def test_a_thread_with_descriptors_of_its_own(foreign: Foreign, scratch: Path) -> None:
    """A thread can have its own table of descriptors. tkperf finds the files that such a thread has open, although the
    descriptor list of the process does not contain them.
    """
    process = foreign(THREAD, scratch)
    assert f"[open] the file is open in process {process} (" in said(scratch)


LEADER_ENDS = """
import ctypes, threading
handle = os.open(words[0], os.O_RDONLY)
def go_on():
    time.sleep(600)
threading.Thread(target=go_on, daemon=True).start()
with open(sys.argv[1] + '.new', 'w') as mark:
    mark.write(str(os.getpid()))
os.rename(sys.argv[1] + '.new', sys.argv[1])
ctypes.CDLL(None).syscall(60, 0)  # exit of this thread alone, on x86-64
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of system calls differ")
def test_a_process_whose_first_thread_has_ended(foreign: Foreign, scratch: Path) -> None:
    """If the first thread of a process has ended, tkperf still finds the process as a user of the file. tkperf reads
    the descriptor lists of the other threads.
    """
    process = foreign(LEADER_ENDS, scratch)
    until(lambda: has_ended(process), "the first thread did not end")
    assert f"[open] the file is open in process {process} (" in said(scratch)


def test_a_path_alone_is_no_use(foreign: Foreign, scratch: Path) -> None:
    """A descriptor that was opened with O_PATH does not count as a use, because it allows no reads or writes."""
    foreign("handle = os.open(words[0], os.O_PATH)", scratch)
    assert said(scratch) == ""


def test_names_of_processes_are_harmless(foreign: Foreign, scratch: Path) -> None:
    """If the name of a process contains control characters or line ends, the objection omits these characters."""
    program = "open('/proc/self/comm', 'wb').write(b'a\\n\\x1b[31mb) c'); os.open(words[0], 0)"
    process = foreign(program, scratch)
    assert f"open in process {process} (a [31mb) c)" in said(scratch)


def test_what_tkperf_started_is_its_own(scratch: Path) -> None:
    """Children of tkperf and their children do not count as users of a file. An orphan counts as a user."""
    script = f"sleep 600 < {scratch} > /dev/null & echo $!; wait"
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        helper = int(child.stdout.readline())
        try:
            until(lambda: name_of(helper) == "sleep")  # the shell has then opened the file
            assert said(scratch) == ""
            # When the parent of the helper process ends, the helper process becomes a child of init.
            child.kill()
            child.wait()
            assert f"[open] the file is open in process {helper} (sleep)" in said(scratch)
        finally:
            os.kill(helper, signal.SIGKILL)


def fake_file(scratch: Path) -> tuple[DeviceIdentity, str, int]:
    """Return three values for a file: its identity, its device number in the hexadecimal form of the kernel, and its
    inode number.
    """
    status = scratch.stat()
    numbers = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
    return read_identity(scratch), numbers, status.st_ino


def texts_of(identity: DeviceIdentity, *, proc_root: Path) -> list[str]:
    return [each.text for each in find_objections(identity, proc_root=proc_root)]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("1: POSIX  ADVISORY  WRITE 4711 {file} 0 EOF", "locked (POSIX) by process 4711 (name not"),
        ("1: OFDLCK ADVISORY  READ  -1 {file} 0 EOF", "locked (OFDLCK) by a process that has it open"),
        ("1: LEASE  ACTIVE    WRITE 4711 {file} 0 EOF", "locked (LEASE) by process 4711"),
        ("1: -> FLOCK  ADVISORY  WRITE 4711 {file} 0 EOF", "locked (FLOCK) by process 4711"),
    ],
)
def test_locks_of_processes_that_show_nothing_else(scratch: Path, tmp_path: Path, row: str, says: str) -> None:
    """tkperf finds a lock on a file in the kernel's list of locks. This list identifies the file with its device number
    and its inode number.
    """
    identity, numbers, inode = fake_file(scratch)
    proc = tmp_path / "proc"
    proc.mkdir()
    (proc / "locks").write_text(row.format(file=f"{numbers}:{inode}") + "\n")
    assert any(says in text for text in texts_of(identity, proc_root=proc))
    (proc / "locks").write_text(row.format(file=f"{numbers}:{inode + 1}") + "\n")
    assert texts_of(identity, proc_root=proc) == []


def test_processes_that_vanish_while_they_are_looked_at(scratch: Path, tmp_path: Path) -> None:
    """A process that ends while tkperf inspects it causes no failure. tkperf still finds the other processes."""
    proc = tmp_path / "proc"
    for number in range(101, 108):
        (proc / str(number) / "fd").mkdir(parents=True)
    (proc / "101/fd").rmdir()
    (proc / "102/fd/3").symlink_to("/gone")
    for number in (103, 104, 105):
        (proc / f"{number}/fd/3").symlink_to(scratch)
        (proc / f"{number}/fd/x").symlink_to(scratch)
    (proc / "104/fdinfo").mkdir()
    (proc / "104/fdinfo/3").write_text("pos: 0\nflags:\t0100001\n")
    (proc / "104/comm").write_bytes(b"a\nb\x1b\xff\n")
    (proc / "104/stat").write_text("104 (a) b) S")
    (proc / "105/stat").write_text("105 (x) S 101 rubbish")
    (proc / "106/fd").rmdir()
    (proc / "106/fd").write_text("no folder")
    (proc / "107/maps").write_bytes(b"rubbish \xff\n1-2 rw-s 0 zz:1 7 /x\n")
    found = find_objections(read_identity(scratch), proc_root=proc)
    assert [each.text for each in found] == [
        "the file is open in process 103 (name not known), process 104 (a b�), process 105 (name not known)"
    ]


def test_a_file_open_over_nfs(scratch: Path, tmp_path: Path) -> None:
    """A file that a client of the NFS server has open is in use, although no process of this machine has it open."""
    identity, numbers, inode = fake_file(scratch)
    client = tmp_path / "proc/fs/nfsd/clients/3"
    client.mkdir(parents=True)
    (client / "states").write_text(
        "- 0x0000000146ab5e62a9c5f82a8e5e1600: { type: open, access: rw, deny: --, "
        f'superblock: "{numbers}:{inode}", filename: "img", owner: "open id:x" }}\n'
    )
    assert texts_of(identity, proc_root=tmp_path / "proc") == [
        "a client of this machine's NFS server has the file open"
    ]


def test_a_file_mounted_without_a_loop_device(scratch: Path, tmp_path: Path) -> None:
    """A file can be in use without a loop device. Linux 6.12 and later can mount an erofs directly from a file, and an
    MD RAID can store its bitmap in a file.
    """
    identity, _, _ = fake_file(scratch)
    proc = tmp_path / "proc"
    (proc / "self").mkdir(parents=True)
    row = f"1 0 0:77 / /mnt rw - erofs {scratch} ro\nshort row\n"
    (proc / "self/mountinfo").write_text(row)
    (proc / "mdstat").write_text(
        "Personalities : [raid1]\nmd7 : active raid1 sdb[1] sda[0]\n"
        f"      bitmap: 0/1 pages [0KB], 65536KB chunk, file: {scratch}\n"
    )
    assert texts_of(identity, proc_root=proc) == [
        f"the file is used by the MD RAID md7, as its bitmap ({scratch})",
        f"the file is used by the erofs mounted at /mnt ({scratch})",
    ]


@pytest.mark.parametrize(
    ("source", "refused"),
    [
        ("/there/disk.img", True),
        ("disk.img", True),
        ("/nowhere/disk.img", True),
        ("/nowhere/other.img", False),
        ("/there/other.img", False),
    ],
)
def test_a_file_mounted_in_another_mount_namespace(tmp_path: Path, source: str, refused: bool) -> None:
    """A path of another mount namespace is resolved in that namespace. If the path does not exist or is relative, every
    file with the same name counts as used, to be safe.
    """
    image = tmp_path / "disk.img"
    image.write_bytes(bytes(8192))
    identity, _, _ = fake_file(image)
    other = tmp_path / "proc/103"
    (other / "ns").mkdir(parents=True)
    (other / "ns/mnt").symlink_to("mnt:[1]")
    (other / "mountinfo").write_text(f"1 0 0:77 / /mnt rw - erofs {source} ro\n")
    (other / "root/there").mkdir(parents=True)
    os.link(image, other / "root/there/disk.img")
    (other / "root/there/other.img").write_bytes(b"another image")
    texts = "; ".join(texts_of(identity, proc_root=tmp_path / "proc"))
    assert ("the file is used by the erofs mounted at /mnt" in texts) is refused


def test_the_list_of_mounts_may_hold_anything(tmp_path: Path) -> None:
    """The list of mounts may contain escapes and invalid rows. tkperf decodes all escapes of the kernel and skips
    invalid rows.
    """
    from tkperf.device.usage.mounts import read_mounts

    (tmp_path / "mountinfo").write_bytes(
        b"1 0 8:1 /a\\040b /t\\011n\\012b\\134\\043\xff rw shared:1 - ext4 /dev/s\\040x rw\n\nx\n"
    )
    (mount,) = read_mounts(tmp_path, None)
    assert (mount.root, mount.point, mount.source) == ("/a b", "/t\tn\nb\\#\udcff", "/dev/s x")
