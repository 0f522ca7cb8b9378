"""tkperf finds written data at any position in a file, because it reads all allocated parts."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import run_tool
from tests.device.conftest import loop_on
from tkperf.device import content
from tkperf.device.content import PartContent, look_for_written_data
from tkperf.device.identity import file_system_of, read_identity
from tkperf.device.permit import hold_target
from tkperf.device.usage.kernel import LoopBacking, LoopDevice
from tkperf.device.usage.target_nodes import FileRange, find_file_ranges

MIB = 1 << 20
GIB = 1 << 30
# This position lies between two of the 1,024 samples of a device of 4 GiB. The samples are 4 MiB apart.
BETWEEN = 2049 * MIB


def data_on(path: Path) -> str:
    held = hold_target(read_identity(path))
    held.release()
    return ", ".join(map(str, held.data))


@pytest.fixture
def sparse(tmp_path: Path) -> Path:
    """Return an empty image of 4 GiB."""
    image = tmp_path / "disk.img"
    with image.open("wb") as file:
        file.truncate(4 * GIB)
    return image


def write(path: Path, place: int, data: bytes = b"diary") -> None:
    with path.open("r+b", buffering=0) as file:
        file.seek(place)
        file.write(data)


def map_and_write(path: Path, place: int) -> None:
    """Write through a memory mapping, so that the kernel has not written the data to the file system yet."""
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 4 * GIB) as memory:
        memory[place : place + 5] = b"diary"


def preallocate_and_write(path: Path, place: int) -> None:
    """Write five bytes in the middle of a part of the file that is allocated but was never written."""
    with path.open("r+b") as file:
        os.posix_fallocate(file.fileno(), place - MIB, 3 * MIB)
    write(path, place)


@pytest.mark.parametrize("way", [write, map_and_write, preallocate_and_write])
def test_a_few_bytes_between_samples_are_found(sparse: Path, way: Callable[[Path, int], object]) -> None:
    """A few bytes between two samples are found in a file and behind a loop device. They are found even if the kernel
    has not written them to the file system yet.
    """
    assert data_on(sparse) == ""
    way(sparse, BETWEEN + 77)
    assert data_on(sparse)
    with loop_on(sparse) as device:
        assert "data of no known kind" in data_on(device)


def test_an_empty_image_holds_nothing(sparse: Path) -> None:
    """A sparse, preallocated or zero-filled image contains no data, so tkperf does not need to ask for consent."""
    image = sparse.with_name("small.img")
    image.write_bytes(bytes(8 * MIB))
    with image.open("r+b") as file:
        file.truncate(16 * MIB)
        os.posix_fallocate(file.fileno(), 12 * MIB, 4 * MIB)
    for empty in (sparse, image):
        assert data_on(empty) == ""
        with loop_on(empty) as device:
            assert data_on(device) == ""


def test_what_was_written_to_a_loop_device_is_found(sparse: Path) -> None:
    """Data that was written to a loop device is found, even if it is only in the page cache of the loop device."""
    with loop_on(sparse) as device:
        write(device, BETWEEN)
        assert data_on(device)


def test_only_the_part_that_a_loop_device_shows_counts(sparse: Path) -> None:
    """If a loop device has an offset and a size limit, tkperf searches only the part of the file that begins at the
    offset and has the size of the limit. A run cannot write outside this part.
    """
    for place, found in ((0, False), (3 * GIB, False), (BETWEEN, True)):
        write(sparse, place)
        with loop_on(sparse, "--offset", str(GIB), "--sizelimit", str(2 * GIB)) as device:
            assert bool(data_on(device)) is found, place


def test_data_is_found_through_layers(sparse: Path) -> None:
    """For a loop device on a loop device and for a partition, tkperf searches only the part of the file that belongs to
    the measured device.
    """
    with loop_on(sparse) as under, loop_on(under, "--offset", str(GIB)) as upper:
        write(sparse, MIB)
        assert data_on(upper) == ""
        write(sparse, BETWEEN)
        assert data_on(upper)
    with partitioned(sparse, (1, GIB), (2, 3 * GIB)) as disk:
        write(sparse, 3 * GIB + 2 * MIB + 1)
        assert data_on(Path(f"{disk}p1")) == ""
        assert data_on(Path(f"{disk}p2"))


@contextmanager
def partitioned(image: Path, *parts: tuple[int, int]) -> Iterator[Path]:
    """Yield a loop device with partitions of 3 MiB. Each element of ``parts`` contains the number and the first byte of
    a partition.
    """
    with loop_on(image) as disk:
        for number, start in parts:
            run_tool("addpart", disk, str(number), str(start // 512), str(3 * MIB // 512))
        try:
            if not Path(f"{disk}p{parts[0][0]}").exists():
                pytest.skip("partitions of loop devices get no nodes here")
            yield disk
        finally:
            for number, _ in parts:
                run_tool("delpart", disk, str(number))


def test_a_whole_disk_is_searched_with_its_partitions(sparse: Path) -> None:
    """If a whole disk is measured, data that libblkid recognises on a partition is reported with the name of the
    partition.

    An empty disk with partitions contains no data.
    """
    with partitioned(sparse, (1, GIB), (2, 3 * GIB)) as disk:
        assert data_on(disk) == ""
        run_tool("mkswap", f"{disk}p2")
        assert data_on(disk) == f"swap on {disk}p2"


@pytest.mark.parametrize(("written", "measured"), [("", "p1"), ("p1", "")])
def test_what_was_written_through_another_node_is_found(sparse: Path, written: str, measured: str) -> None:
    """Data that was written through another node of the same disk is found. A disk and its partition have separate page
    caches, and the kernel keeps written data in the cache while a program has the node open.
    """
    with partitioned(sparse, (1, GIB)) as disk, Path(f"{disk}{written}").open("rb"):
        target = Path(f"{disk}{measured}")
        assert data_on(target) == ""
        write(Path(f"{disk}{written}"), (0 if written else GIB) + 2 * MIB + 12288)
        assert data_on(target)


def look(path: Path, file_system: str | None) -> PartContent:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return look_for_written_data(descriptor, start_bytes=0, end_bytes=path.stat().st_size, file_system=file_system)
    finally:
        os.close(descriptor)


def test_the_map_of_an_unknown_file_system_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """tkperf trusts the map of holes only on known local file systems. A network file system or FUSE may report a hole
    although another machine has written data at this position.
    """
    image = tmp_path / "image"
    write_holes(image, 64 * MIB)
    write(image, 48 * MIB)
    monkeypatch.setattr("tkperf.device.content.os.lseek", claims_a_hole_everywhere)
    for file_system in ("nfs4", "fuse", "9p", "overlay", "zfs", None):
        assert look(image, file_system) is PartContent.DATA


def claims_a_hole_everywhere(descriptor: int, place: int, whence: int) -> int:
    raise OSError(6, "No such device or address")


def write_holes(image: Path, size: int) -> None:
    with image.open("wb") as file:
        file.truncate(size)


def test_what_was_not_read_to_its_end_counts_as_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If tkperf did not read a file to its end, the file counts as possible data, even if it begins with zeros. Data in
    the part that tkperf reads is recognised as data.
    """
    monkeypatch.setattr(content, "READ_LIMIT_BYTES", 8 * MIB)
    image = tmp_path / "image"
    image.write_bytes(bytes(8 * MIB))
    own = file_system_of(image)
    assert look(image, own) is PartContent.NOTHING
    image.write_bytes(bytes(8 * MIB + 1))
    assert look(image, own) is PartContent.UNKNOWN
    assert "and tkperf did not read the rest" in data_on(image)
    write(image, 7 * MIB)
    assert look(image, own) is PartContent.DATA


def test_a_volume_on_a_loop_device_leads_to_the_whole_file(tmp_path: Path) -> None:
    """For a logical volume on a loop device, any data in the file behind the loop device counts, because tkperf does
    not read the layout of the volume.

    If the driver of a loop device does not answer, no file is found.
    """
    sys_root = tmp_path / "sys"
    loop, volume = sys_root / "devices/loop7", sys_root / "devices/dm-0"
    (volume / "slaves").mkdir(parents=True)
    loop.mkdir()
    (volume / "slaves/loop7").symlink_to(loop)
    (loop / "size").write_text("4096\n")
    (sys_root / "dev/block").mkdir(parents=True)
    for folder, number in ((loop, "7:7"), (volume, "253:0")):
        (folder / "dev").write_text(f"{number}\n")
        (sys_root / "dev/block" / number).symlink_to(folder)
    backing = LoopBacking(file=(1, 2), device=None, offset_bytes=512, size_limit_bytes=0)
    for asked in (True, False):
        device = LoopDevice("loop7", os.makedev(7, 7), backing, "/disk.img", asked)
        assert list(find_file_ranges("253:0", MIB, (device,), sys_root)) == [
            FileRange(
                loop="loop7",
                file=(1, 2) if asked else None,
                path=Path("/disk.img"),
                start_bytes=512,
                length_bytes=4096 * 512,
            )
        ]


@pytest.mark.root
def test_a_block_device_with_data_in_a_sample_is_recognised(loop_device: Callable[..., Path], tmp_path: Path) -> None:
    """A block device counts as empty only if its beginning, its end and all samples read as zeros."""
    under = loop_device(size=8 * MIB)
    with loop_on(under) as device:
        assert data_on(device)
        under.write_bytes(bytes(8 * MIB))
        assert data_on(device) == ""
        write(under, 8 * MIB - 3, b"end")
        assert data_on(device)
