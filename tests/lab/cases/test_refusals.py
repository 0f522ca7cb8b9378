"""Every reason to refuse a drive, under each name of the drive: its path, a by-id link, another device node, and a
partition.

Each case is a ``Refusal`` record. The record contains the function that changes the drive, and the reason that the
refusal must name. The function also registers the command that undoes the change. Both the plain command and the
command with ``-ft`` must refuse the drive and change nothing.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.lab import disks
from tests.lab.cases.conftest import Drive, shell, tkperf
from tkperf.cli.main import cli
from tkperf.device.identity import read_identity
from tkperf.model.errors import RefusedError
from tkperf.pipeline.consent import Consent, Question, permitted


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A reason for a refusal. ``arrange`` brings the drive into a state in which it must be refused. The message must
    contain the text in ``says``.

    Most reasons are also tested on a partition. The partition and its whole disk must then be refused.
    """

    name: str
    arrange: Callable[[Drive, ExitStack], None]
    says: str
    on_partition: bool = True


def _undo(stack: ExitStack, command: str) -> None:
    stack.callback(shell, command)


def mounted(drive: Drive, stack: ExitStack) -> None:
    shell(f"mkfs.ext4 -q -F {drive.path} && mkdir -p /mnt/case && mount -o ro {drive.path} /mnt/case")
    _undo(stack, "umount /mnt/case")


def mounted_in_another_namespace(drive: Drive, stack: ExitStack) -> None:
    shell(f"mkfs.ext4 -q -F {drive.path} && mkdir -p /mnt/case")
    holder = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", f"mount -o ro {drive.path} /mnt/case && exec sleep 600"]
    )
    stack.callback(holder.wait)
    stack.callback(holder.kill)
    shell(
        f"for i in $(seq 100); do grep -q {drive.path} /proc/{holder.pid}/mountinfo && exit 0; sleep 0.1; done; exit 1"
    )


def swap(drive: Drive, stack: ExitStack) -> None:
    shell(f"mkswap {drive.path} && swapon {drive.path}")
    _undo(stack, f"swapoff {drive.path}")


def md_member(drive: Drive, stack: ExitStack) -> None:
    shell(f"mdadm --create /dev/md77 --run --force --level=1 --raid-devices=2 --metadata=1.2 {drive.path} missing")
    _undo(stack, f"mdadm --stop /dev/md77; udevadm settle; mdadm --zero-superblock {drive.path}")


def md_member_not_assembled(drive: Drive, stack: ExitStack) -> None:
    shell(
        f"mdadm --create /dev/md77 --run --force --level=1 --raid-devices=2 --metadata=1.2 "
        f"{drive.path} missing && mdadm --stop /dev/md77 && udevadm settle; "
        "mdadm --stop /dev/md77 || true"
    )
    _undo(stack, f"mdadm --zero-superblock {drive.path}")


def lvm(drive: Drive, stack: ExitStack) -> None:
    shell(f"vgcreate -qq case {drive.path} && lvcreate -qq -an -Zn -L 16M -n volume case && vgchange -qq -ay case")
    _undo(stack, "vgremove -qq -f case")


def lvm_not_active(drive: Drive, stack: ExitStack) -> None:
    shell(f"pvcreate -qq {drive.path}")
    _undo(stack, f"pvremove -qq {drive.path}")


def encryption(drive: Drive, stack: ExitStack) -> None:
    shell(
        "printf word >/run/key; cryptsetup -q luksFormat --pbkdf pbkdf2 "
        f"--pbkdf-force-iterations 1000 --key-file /run/key {drive.path} && "
        f"cryptsetup open --key-file /run/key {drive.path} case"
    )
    _undo(stack, "cryptsetup close case")


def device_mapper(drive: Drive, stack: ExitStack) -> None:
    shell(f"echo 0 2048 linear {drive.path} 0 | dmsetup create case")
    _undo(stack, "dmsetup remove case")


def multipath(drive: Drive, stack: ExitStack) -> None:
    shell(f"echo 0 2048 multipath 0 0 1 1 round-robin 0 1 1 {drive.path} 1 | dmsetup create case --uuid mpath-case")
    _undo(stack, "dmsetup remove case")


def btrfs_of_two(drive: Drive, stack: ExitStack) -> None:
    other = shell("lsblk -nrdo PATH,SERIAL | awk '$2 == \"LABRAID1\" {print $1}'").strip()
    shell(f"mkfs.btrfs -q -f {drive.path} {other}")
    _undo(stack, f"wipefs -qa {drive.path} {other}")


def btrfs_of_two_mounted(drive: Drive, stack: ExitStack) -> None:
    btrfs_of_two(drive, stack)
    shell(f"modprobe btrfs; btrfs device scan; mkdir -p /mnt/case; mount -o ro {drive.path} /mnt/case")
    _undo(stack, "umount /mnt/case")


def zfs_member(drive: Drive, stack: ExitStack) -> None:
    _signature(drive, "zfs_member")


def bcache_member(drive: Drive, stack: ExitStack) -> None:
    _signature(drive, "bcache")


def ceph_member(drive: Drive, stack: ExitStack) -> None:
    _signature(drive, "ceph_bluestore")


def _signature(drive: Drive, kind: str) -> None:
    """Write only the bytes by which libblkid recognises a format (superblocks/*.c of libblkid), because the lab has no
    tools that create these formats.
    """
    with drive.path.open("r+b") as device:
        if kind == "ceph_bluestore":
            device.write(b"bluestore block device\n" + b"0" * 36 + b"\n")
        elif kind == "bcache":
            device.seek(0x1000 + 24)
            magic = bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81")
            device.write(magic)
            device.seek(0x1000 + 8)
            device.write((8).to_bytes(8, "little"))
        else:
            uberblock = (0x00BAB10C).to_bytes(8, "little") + (28).to_bytes(8, "little")
            for index in range(4, 40):
                device.seek(128 * 1024 + index * 1024)
                device.write(uberblock)
    shell("sync; udevadm settle")


def opened_exclusively(drive: Drive, stack: ExitStack) -> None:
    _open_elsewhere(drive, stack, "os.O_RDWR | os.O_EXCL")


def opened_for_writing(drive: Drive, stack: ExitStack) -> None:
    _open_elsewhere(drive, stack, "os.O_WRONLY")


def _open_elsewhere(drive: Drive, stack: ExitStack, flags: str) -> None:
    """Open the drive in a process that is not a child of this process, because tkperf does not count its own child
    processes as users.
    """
    mark = Path("/run/opened")
    mark.unlink(missing_ok=True)
    program = (
        f"import os, time; os.open('{drive.path}', {flags}); "
        f"open('{mark}', 'w').write(str(os.getpid())); time.sleep(600)"
    )
    shell(
        f'setsid -f python3 -c "{program}" </dev/null >/dev/null 2>&1; '
        f"for i in $(seq 100); do [ -s {mark} ] && exit 0; sleep 0.1; done; exit 1"
    )
    _undo(stack, f"kill $(cat {mark}); while kill -0 $(cat {mark}) 2>/dev/null; do sleep 0.1; done")


def system_disk(drive: Drive, stack: ExitStack) -> None:
    shell(f"mkfs.ext4 -q -F {drive.path} && mount -o ro {drive.path} /boot")
    _undo(stack, "umount /boot")


def read_only(drive: Drive, stack: ExitStack) -> None:
    shell(f"blockdev --setro {drive.path}")
    _undo(stack, f"blockdev --setrw {drive.path}")


REFUSALS = [
    Refusal(name="mounted", arrange=mounted, says="is mounted at /mnt/case"),
    Refusal(
        name="mounted in another namespace",
        arrange=mounted_in_another_namespace,
        says="in the mount namespace of process",
    ),
    Refusal(name="swap", arrange=swap, says="in use as swap space"),
    Refusal(name="MD member", arrange=md_member, says="MD RAID, raid1"),
    Refusal(name="MD member, not assembled", arrange=md_member_not_assembled, says="MD RAID member"),
    Refusal(name="LVM", arrange=lvm, says="LVM volume case-volume"),
    Refusal(name="LVM, not active", arrange=lvm_not_active, says="LVM physical volume"),
    Refusal(name="encryption", arrange=encryption, says="encryption case"),
    Refusal(name="device mapper", arrange=device_mapper, says="is used by dm-"),
    Refusal(name="multipath", arrange=multipath, says="multipath case", on_partition=False),
    Refusal(name="btrfs of two", arrange=btrfs_of_two, says="btrfs over several devices"),
    Refusal(name="btrfs of two, mounted", arrange=btrfs_of_two_mounted, says="belongs to the mounted btrfs"),
    Refusal(name="ZFS", arrange=zfs_member, says="ZFS pool member"),
    Refusal(name="bcache", arrange=bcache_member, says="bcache"),
    Refusal(name="Ceph", arrange=ceph_member, says="Ceph OSD"),
    Refusal(name="opened exclusively", arrange=opened_exclusively, says="(python3) has it open"),
    Refusal(name="opened for writing", arrange=opened_for_writing, says="open for writing in"),
    Refusal(name="system disk", arrange=system_disk, says="the running system has /boot on it"),
    Refusal(name="read-only", arrange=read_only, says="read-only", on_partition=False),
]


# The core contains one case for each kind of use. The full lab also contains all other cases.
CORE_ON_PARTITION = ("mounted", "swap", "MD member", "LVM, not active", "opened exclusively")


@contextmanager
def arranged(refusal: Refusal, drive: Drive) -> Iterator[None]:
    with ExitStack() as stack:
        _undo(stack, f"wipefs -qaf {drive.path}")
        refusal.arrange(drive, stack)
        shell("udevadm settle")
        yield


@contextmanager
def partition_of(drive: Drive) -> Iterator[Drive]:
    shell(f"echo 'size=200MiB' | sfdisk -q {drive.path} && udevadm settle")
    yield Drive(drive.serial, Path(f"{drive.path}1"))
    shell(f"udevadm settle; wipefs -qaf {drive.path}; partx -d {drive.path} || true")


def names_of(drive: Drive, folder: Path) -> list[Path]:
    """Return the names of the drive: its path, a by-id link, and a node with its device number in another folder."""
    node = folder / "own-node"
    os.mknod(node, 0o60600, drive.path.stat().st_rdev)
    links = [link for link in Path("/dev/disk/by-id").iterdir() if link.resolve() == drive.path]
    return [drive.path, links[0], node]


def some_of(names: list[Path], refusal: Refusal) -> list[Path]:
    """Return all names in the full lab. In the core cases, each refusal is tested with only one of the names, in
    rotation, because each name costs two seconds.
    """
    full = os.environ["TKPERF_LAB"] == "full"
    return names if full else [names[REFUSALS.index(refusal) % len(names)]]


def refuse(*arguments: str) -> str:
    """Run the command line in this process and require a refusal. A separate process would need several seconds to
    start Python.
    """
    with pytest.raises(RefusedError) as refused:
        cli.main(list(arguments), standalone_mode=False)
    return str(refused.value)


@pytest.mark.core
@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.name)
def test_refused(refusal: Refusal, drive_of: Callable[..., Drive], tmp_path: Path) -> None:
    """A device in use is refused under each of its names, even with ``-ft``. The device receives no writes, and no file
    remains.
    """
    drive = drive_of(disks.SATA_SECOND)
    with arranged(refusal, drive):
        check_refused(refusal, drive, some_of(names_of(drive, tmp_path), refusal), tmp_path)


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param(refusal, id=refusal.name, marks=[pytest.mark.core] if refusal.name in CORE_ON_PARTITION else [])
        for refusal in REFUSALS
        if refusal.on_partition
    ],
)
def test_refused_on_a_partition(refusal: Refusal, drive_of: Callable[..., Drive], tmp_path: Path) -> None:
    """If a partition is in use, the partition is refused under each of its names. The whole disk is also refused."""
    drive = drive_of(disks.SATA_SECOND)
    with partition_of(drive) as part, arranged(refusal, part):
        names = some_of(names_of(part, tmp_path), refusal)
        check_refused(refusal, part, [*names, drive.path], tmp_path)


def check_refused(refusal: Refusal, drive: Drive, names: list[Path], folder: Path) -> None:
    before = drive.written_bytes()
    for name in names:
        refused = refuse("ssd", "case", str(name), "-ft", "--output", str(folder))
        assert refusal.says in refused
        assert str(name.resolve()) in refused
    assert not (folder / "case.tkperf").exists()
    assert drive.written_bytes() == before


@pytest.mark.core
def test_a_free_partition_of_a_used_disk(drive_of: Callable[..., Drive], tmp_path: Path) -> None:
    """A mounted partition and its disk are refused. A free partition on the same disk can be tested."""
    drive = drive_of(disks.SATA_SECOND)
    shell(f"printf 'size=100MiB\\nsize=100MiB\\n' | sfdisk -q {drive.path} && udevadm settle")
    first, second = Path(f"{drive.path}1"), Path(f"{drive.path}2")
    shell(f"mkfs.ext4 -q -F {first} && mkdir -p /mnt/case && mount {first} /mnt/case")
    try:
        refused = tkperf("ssd", "a", first, "-ft", "--output", tmp_path)
        assert refused.status == 3
        assert "is mounted at" in refused.stderr
        found = tkperf("doctor", second, "--json")
        assert '"could_be_tested": true' in found.stdout, found.stdout
        assert f'"confirm_id": "{second}"' in found.stdout
        whole = tkperf("doctor", drive.path, "--json")
        assert '"could_be_tested": false' in whole.stdout
    finally:
        shell("umount /mnt/case")


@pytest.mark.core
def test_a_write_to_a_partition_while_the_question_is_open(drive_of: Callable[..., Drive]) -> None:
    """If data is written through the node of the whole disk while the consent question is open, the partition is
    refused.

    Writes to another partition, which is in use, do not cause a refusal. The kernel adds both kinds of writes to the
    counters of the disk.
    """
    drive = drive_of(disks.SATA_SECOND)
    shell(f"printf 'size=100MiB\\nsize=100MiB\\n' | sfdisk -q {drive.path} && udevadm settle")
    first, second = Path(f"{drive.path}1"), Path(f"{drive.path}2")
    shell(f"mkfs.ext4 -q -F {first} && mkdir -p /mnt/case && mount {first} /mnt/case")

    def open_while(command: str) -> None:
        def ask(question: Question) -> str:
            shell(command)
            return question.expected

        with permitted([read_identity(second)], Consent(ask=ask)) as (permit,):
            permit.recheck()

    try:
        before = drive.written_bytes()
        open_while("dd if=/dev/urandom of=/mnt/case/a bs=1M count=8 conv=fsync status=none; sync")
        assert drive.written_bytes() - before >= 8 << 20
        start = int(Path(f"/sys/class/block/{second.name}/start").read_text())
        # This write replaces zeros between two samples with zeros.
        place = start + (64 << 20) // 512 + 8
        with pytest.raises(RefusedError, match=r"the kernel counts 512 B written or discarded"):
            open_while(f"dd if=/dev/zero of={drive.path} seek={place} count=1 oflag=direct status=none")
    finally:
        shell("umount /mnt/case")


def test_the_answer_names_one_of_two_namespaces(drive_of: Callable[..., Drive], tmp_path: Path) -> None:
    """The serial number of a drive with two namespaces confirms neither namespace, because both report this number."""
    drive = drive_of(disks.NVME_TWO)
    other = Path(f"{str(drive.path)[:-1]}2")
    answers = [f"{drive.serial}/namespace-1", f"{drive.serial}/namespace-2"]
    for path, answer in zip((drive.path, other), answers, strict=True):
        assert f'"confirm_id": "{answer}"' in tkperf("doctor", path, "--json").stdout
    for given in (drive.serial, answers[1]):
        refused = tkperf("ssd", "a", drive.path, "--yes-destroy", given, "--output", tmp_path, "--no-purge")
        assert refused.status == 3
        assert f"'{given}' does not confirm {drive.path}. The expected answer is '{answers[0]}'" in refused.stderr
    with permitted([read_identity(drive.path)], Consent(confirm=answers[0])) as (permit,):
        permit.recheck()


def test_a_host_managed_zoned_disk_is_refused(tmp_path: Path) -> None:
    """A host-managed zoned disk (null_blk with zones) is refused, even through a linear mapping. The same disk without
    zones is accepted.
    """
    shell(
        "modprobe configfs; mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config; "
        "modprobe null_blk nr_devices=0"
    )
    for zoned in (1, 0):
        shell(
            "cd /sys/kernel/config/nullb && mkdir zoned && cd zoned && echo 64 >size && echo 1 >memory_backed && "
            f"echo {zoned} >zoned && echo 4 >zone_size && echo 1 >power && udevadm settle"
        )
        try:
            found = tkperf("doctor", "/dev/zoned", "--json").stdout
            assert ("it is zoned and host-managed" in found) is bool(zoned), found
            if zoned:
                refused = tkperf("ssd", "a", "/dev/zoned", "-ft", "--output", tmp_path)
                assert refused.status == 3
                assert "it is zoned and host-managed" in refused.stderr
                shell("modprobe dm-mod; dmsetup create zones --table '0 131072 linear /dev/zoned 0'")
                try:
                    mapped = tkperf("doctor", "/dev/mapper/zones", "--json").stdout
                    assert "it is zoned and host-managed" in mapped, mapped
                finally:
                    shell("dmsetup remove zones")
        finally:
            shell("udevadm settle; rmdir /sys/kernel/config/nullb/zoned")
    shell("modprobe -r null_blk")


@pytest.mark.core
def test_data_that_nobody_uses_needs_the_serial(drive_of: Callable[..., Drive], tmp_path: Path) -> None:
    """Even a file system that is not in use protects its drive. A call with only ``-ft`` is refused, and so is a call
    with a wrong serial number.
    """
    drive = drive_of(disks.SATA_SECOND)
    shell(f"mkfs.ext4 -q -F {drive.path}")
    forced = tkperf("ssd", "case", drive.path, "-ft", "--output", tmp_path)
    assert forced.status == 3
    assert "It holds: ext4" in forced.stderr
    wrong = tkperf("ssd", "case", drive.path, "--yes-destroy", "LABSATA1", "--output", tmp_path)
    assert wrong.status == 3
    assert "does not confirm" in wrong.stderr
    shell(f"fsck.ext4 -fn {drive.path}")


def test_other_namespaces_are_not_formatted(drive_of: Callable[..., Drive], tmp_path: Path) -> None:
    """A purge of one namespace does not change the data of another namespace of the same controller."""
    drive_of(disks.NVME_TWO)
    names = shell("lsblk -nrdo PATH,SERIAL | awk '$2 == \"LABNVMETWO\" {print $1}'").split()
    first, second = sorted(names)
    shell(f"mkfs.ext4 -q -F {second}")
    ended = tkperf(
        "ssd",
        "case",
        first,
        "--yes-destroy",
        "LABNVMETWO",
        "-ssdt",
        "writesat",
        "--profile",
        Path(__file__).parent / "lab.toml",
        "--output",
        tmp_path,
    )
    assert ended.status == 0, ended.stderr
    shell(f"fsck.ext4 -fn {second}")
