"""tkperf notices each change that occurs on a device between the consent question and the first write, even if tkperf
does not recognise the kind of the data.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from tests.conftest import run_tool
from tests.device.conftest import loop_on
from tkperf.device.content import WriteMarks, _written_bytes, describe_write, read_content
from tkperf.device.identity import read_identity
from tkperf.device.permit import grant_permit, hold_target
from tkperf.model.errors import RefusedError
from tkperf.pipeline.consent import Consent, Question, permitted

MIB = 1 << 20
MakeLoop = Callable[..., Path]
# This position lies between two samples.
BETWEEN = 32 * MIB + 8192


def write(path: Path, place: int = BETWEEN) -> None:
    with path.open("r+b", buffering=0) as file:
        file.seek(place)
        file.write(os.urandom(4096))


def open_while(path: Path, act: Callable[[], object]) -> None:
    """Let tkperf ask the consent question about a target, call ``act``, and then answer the question."""

    def ask(question: Question) -> str:
        act()
        return question.expected

    with permitted([read_identity(path)], Consent(ask=ask)) as (permit,):
        permit.recheck()


def with_old_times(path: Path) -> None:
    """Write to a file and then restore its times, as a copy program does when it preserves times."""
    status = path.stat()
    write(path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("act", [write, with_old_times, lambda path: write(path, 0)])
def test_other_data_in_a_file_is_a_change(scratch: Path, act: Callable[[Path], object]) -> None:
    """If random bytes replace other random bytes in a file, tkperf reports the write, both at samples and between them.
    libblkid recognises neither the old nor the new bytes.
    """
    with pytest.raises(
        RefusedError, match=r"a program has written to .* since tkperf showed it: .*Nothing was touched"
    ):
        open_while(scratch, lambda: act(scratch))


@pytest.mark.root
@pytest.mark.parametrize("through_file", [True, False])
def test_other_data_behind_a_loop_device_is_a_change(loop_device: MakeLoop, tmp_path: Path, through_file: bool) -> None:
    """Data written to a loop device, or to the file behind the device, counts as a change."""
    device = loop_device()
    target = tmp_path / "loop0.img" if through_file else device
    with pytest.raises(RefusedError, match="since tkperf showed it: "):
        open_while(device, lambda: write(target))


@pytest.mark.root
def test_writes_to_a_block_device_are_counted(loop_device: MakeLoop) -> None:
    """A write between the samples counts as a change even if it repeats the old bytes, because the kernel's counter
    shows the write.
    """
    under = loop_device()
    data = under.read_bytes()[BETWEEN : BETWEEN + 4096]

    def write_the_same() -> None:
        with under.open("r+b", buffering=0) as file:
            file.seek(BETWEEN)
            file.write(data)

    with loop_on(under) as device:
        with pytest.raises(RefusedError, match=r"the kernel counts 4\.1 kB written or discarded"):
            open_while(device, write_the_same)
        with pytest.raises(RefusedError, match="since tkperf showed it: "):
            open_while(device, lambda: run_tool("blkdiscard", "-o", "33554432", "-l", "4096", under))


@contextmanager
def partitions_of(disk: Path) -> Iterator[tuple[Path, Path]]:
    """Yield two partitions of 16 MiB, which begin at 8 MiB and 32 MiB."""
    starts = 8 * MIB, 32 * MIB
    for number, start in enumerate(starts, 1):
        run_tool("addpart", disk, str(number), str(start // 512), str(16 * MIB // 512))
    try:
        first, second = Path(f"{disk}p1"), Path(f"{disk}p2")
        if not first.exists():
            pytest.skip("partitions of loop devices get no nodes here")
        yield first, second
    finally:
        for number in (1, 2):
            run_tool("delpart", disk, str(number))


@pytest.mark.root
@pytest.mark.parametrize("way", ["whole disk", "image file", "device below", "other partition"])
def test_a_write_that_reaches_a_partition_in_another_way_is_a_change(
    loop_device: MakeLoop, tmp_path: Path, way: str
) -> None:
    """A write that reaches a partition through another node counts as a change, even if the write repeats the old
    bytes, and even if these bytes lie between the samples.

    The kernel's counter of the partition does not count such a write. A write to another partition of a loop device
    also counts, because the file behind the device may have changed at the measured partition.
    """
    below = loop_device()
    with (
        loop_on(below) if way == "device below" else nullcontext(below) as disk,
        partitions_of(disk) as (first, second),
    ):
        target = {"image file": tmp_path / "loop0.img", "device below": below}.get(way, disk)
        place = 8 * MIB + 3 * MIB + 8192
        if way == "other partition":
            target, place = second, 3 * MIB + 8192

        def write_the_same() -> None:
            with target.open("r+b", buffering=0) as file:
                data = os.pread(file.fileno(), 4096, place)
                os.pwrite(file.fileno(), data, place)

        with pytest.raises(RefusedError, match="since tkperf showed it: "):
            open_while(first, write_the_same)
        open_while(first, lambda: (first.read_bytes(), second.read_bytes(), disk.read_bytes()))


def a_disk(sys_root: Path, name: str, number: str, **partitions: tuple[int, int, int]) -> Path:
    """Return a disk in a fake sysfs.

    Args:
        partitions: partition number, start and size in sectors.
    """
    disk = sys_root / "block" / name
    (disk / "queue").mkdir(parents=True)
    (disk / "queue/iostats").write_text("1\n")
    (disk / "dev").write_text(f"{number}\n")
    (disk / "wwid").write_text("naa.5000\n")
    for part, (place, start, size) in partitions.items():
        (disk / part).mkdir()
        for attribute, value in (("partition", place), ("start", start), ("size", size)):
            (disk / part / attribute).write_text(f"{value}\n")
    for node in (disk, *(disk / part for part in partitions)):
        count(node)
    return disk


def count(node: Path, *, written: int = 0, discarded: int = 0) -> None:
    """Set the kernel's counters of a node. Both counts are in sectors."""
    (node / "stat").write_text(f"9 9 9 9 9 9 {written} 9 9 9 9 9 9 {discarded} 9 9 9\n")


def test_writes_through_other_nodes_of_a_drive_count_for_a_partition(tmp_path: Path) -> None:
    """For a partition, tkperf counts the writes to the partition, to the whole disk and to overlapping partitions. It
    does not count the writes to other partitions of the disk.

    The kernel counts a write twice: for the node through which the data was written, and for the whole disk.
    """
    parts = {"sda1": (1, 2048, 1000), "sda2": (2, 4096, 1000), "sda3": (3, 2500, 100)}
    disk = a_disk(tmp_path, "sda", "8:0", **parts)
    other = a_disk(tmp_path, "sdb", "8:16", sdb1=(1, 2048, 1000), sdb2=(2, 4096, 1000))

    def counted() -> tuple[int | None, int | None]:
        return _written_bytes(disk / "sda1", tmp_path), _written_bytes(disk, tmp_path)

    assert counted() == (0, 0)
    count(disk / "sda2", written=70)
    count(disk, written=70)
    assert counted() == (0, 70 * 512)
    count(disk, written=71, discarded=2)
    assert counted() == (3 * 512, 73 * 512)
    count(disk / "sda3", written=4)
    count(disk, written=75, discarded=2)
    assert counted() == (7 * 512, 77 * 512)
    count(other / "sdb2", written=10)
    count(other, written=10)
    assert counted() == (7 * 512, 87 * 512)
    count(other, written=11)
    assert counted() == (8 * 512, 88 * 512)
    (other / "dev").unlink()
    assert counted() == (7 * 512, 77 * 512)
    (disk / "queue/iostats").write_text("0\n")
    assert counted() == (None, None)


def test_a_partition_that_is_in_use_is_read_until_its_counters_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If another partition is written to while tkperf reads the counters, the write does not count as a write to the
    measured partition.
    """
    disk = a_disk(tmp_path, "sda", "8:0", sda1=(1, 2048, 1000), sda2=(2, 4096, 1000))
    whole = iter((10, 20, 30))

    def read(folder: Path) -> str:
        if folder == disk / "stat" and (written := next(whole, None)) is not None:
            count(disk, written=written)
            count(disk / "sda2", written=written)
        return folder.read_text()

    monkeypatch.setattr("tkperf.device.content.text", read)
    assert _written_bytes(disk / "sda1", tmp_path) == 0


@pytest.mark.root
def test_what_only_reads_is_no_change(loop_device: MakeLoop, scratch: Path) -> None:
    """A program that only reads the target while the consent question is open does not prevent the run."""
    device = loop_device()
    for target in (scratch, device):

        def read(target: Path = target) -> None:
            target.read_bytes()
            run_tool("wipefs", "--no-act", target)
            os.sync()

        open_while(target, read)


@pytest.mark.root
def test_a_write_after_the_answer_is_noticed_before_the_first_phase(loop_device: MakeLoop, scratch: Path) -> None:
    """A write between the answer and the first phase is refused. After the check before the first phase, tkperf no
    longer compares the content, because the run itself writes data.
    """
    for target in (scratch, loop_device()):
        for begun in (False, True):
            identity = read_identity(target)
            permit = grant_permit(hold_target(identity), confirmed_id=identity.confirm_id).redeem()
            try:
                if begun:
                    permit.recheck()
                write(target)
                if begun:
                    permit.recheck()
                else:
                    with pytest.raises(RefusedError, match=r"a program has written to .*Nothing more is written"):
                        permit.recheck()
            finally:
                permit.release()


def test_a_new_name_after_the_answer_is_no_change_of_content(scratch: Path) -> None:
    """If the confirmed file is renamed after the answer, the run continues with this file."""
    identity = read_identity(scratch)
    permit = grant_permit(hold_target(identity), confirmed_id=identity.confirm_id).redeem()
    scratch.rename(scratch.with_name("moved"))
    permit.recheck()
    permit.release()


def test_counters_that_do_not_count_are_not_compared() -> None:
    """Missing counters are not compared. If the iostats of a device are switched off, the kernel does not count the
    writes to the device, and tkperf uses samples and times to find a change.

    If a counter disappears or decreases, tkperf assumes a change, because a write may be missing from the counter.
    """
    marks = WriteMarks(written_bytes=None)
    assert describe_write(marks, WriteMarks(written_bytes=5)) is None
    assert describe_write(WriteMarks(written_bytes=5), marks) is not None
    assert describe_write(WriteMarks(written_bytes=5), WriteMarks(written_bytes=4)) is not None
    assert describe_write(WriteMarks(written_bytes=4), WriteMarks(written_bytes=5)) is not None


def test_a_drive_gives_its_samples_in_one_digest(tmp_path: Path) -> None:
    """The digest is computed from the beginning, the end and the samples of a drive. If any of these parts contains
    data, the content does not count as zeros.
    """
    image = tmp_path / "image"
    subprocess.run(["truncate", "-s", "64M", image], check=True)
    digests = set()
    for place in (None, 0, 64 * MIB - 1, 64 * MIB // 1024 * 7):
        if place is not None:
            write_byte(image, place)
        descriptor = os.open(image, os.O_RDONLY)
        content = read_content(descriptor, read_identity(image))
        os.close(descriptor)
        digests.add(content.digest)
        assert content.is_zero is (place is None)
    assert len(digests) == 4


def test_a_few_bad_blocks_may_hold_data(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few unreadable blocks do not prevent the measurement of a worn drive, but these blocks count as possible data.

    A drive with more unreadable blocks is refused.
    """
    scratch.write_bytes(bytes(64 * MIB))
    preadv = os.preadv

    def fail(bad: set[int]) -> Callable[[int, list[memoryview], int], int]:
        def read(descriptor: int, buffers: list[memoryview], place: int) -> int:
            if place // 65536 in bad:
                raise OSError(5, "Input/output error")
            return preadv(descriptor, buffers, place)

        return read

    descriptor = os.open(scratch, os.O_RDONLY)
    try:
        monkeypatch.setattr("tkperf.device.content.os.preadv", fail({500}))
        assert not read_content(descriptor, read_identity(scratch)).is_zero
        monkeypatch.setattr("tkperf.device.content.os.preadv", fail({500, 501, 502, 503}))
        with pytest.raises(OSError, match="Input/output"):
            read_content(descriptor, read_identity(scratch))
    finally:
        os.close(descriptor)


def write_byte(path: Path, place: int) -> None:
    with path.open("r+b", buffering=0) as file:
        file.seek(place)
        file.write(b"x")
