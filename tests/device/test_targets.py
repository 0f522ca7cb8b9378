"""Scratch files are created completely, never replace an existing file, and are measured only with direct I/O."""

from __future__ import annotations

from pathlib import Path

import pytest

from tkperf import make_plan
from tkperf.device.targets import create_file_target, find_direct_io_block_bytes
from tkperf.model.errors import DeviceError


def test_a_scratch_file_has_all_its_blocks(tmp_path: Path) -> None:
    """All blocks of a scratch file are allocated, so reads of blocks that were never written behave like all other
    reads.
    """
    path = tmp_path / "a"
    create_file_target(path, 8 << 20)
    assert path.stat().st_size == 8 << 20
    assert path.stat().st_blocks * 512 >= 8 << 20


def test_an_existing_file_is_never_touched(tmp_path: Path) -> None:
    """``--size`` for an existing file is refused, and the file remains unchanged."""
    path = tmp_path / "a"
    path.write_text("precious")
    with pytest.raises(DeviceError, match="already exists"):
        create_file_target(path, 1 << 20)
    assert path.read_text() == "precious"


def test_a_disk_too_small_leaves_no_file_behind(tmp_path: Path) -> None:
    """A size that exceeds the free space is an error, and no file remains."""
    path = tmp_path / "a"
    with pytest.raises(DeviceError, match="cannot be reserved for the scratch file"):
        create_file_target(path, 1 << 60)
    assert not path.exists()


def test_direct_io_is_tried_for_real(scratch: Path) -> None:
    """The block size for direct I/O is found with a real read. If direct I/O is not possible, the error names the file
    system.
    """
    assert find_direct_io_block_bytes(str(scratch)) in (512, 4096)
    with pytest.raises(DeviceError, match="proc file system does not support direct I/O"):
        find_direct_io_block_bytes("/proc/cpuinfo")


def test_no_size_is_asked_for_of_a_device_that_is_not_there(tmp_path: Path) -> None:
    """For a missing path, the message asks for --size only if the path could be a scratch file. The message for a path
    below /dev does not mention --size.
    """
    told = {}
    for path in (Path("/dev/nvme99n9"), tmp_path / "scratch.img"):
        with pytest.raises(DeviceError) as refused:
            make_plan("ssd", path, profile="quick")
        told[path.name] = str(refused.value)
    assert told["nvme99n9"].endswith("there is no device or file /dev/nvme99n9. List the devices with 'lsblk'")
    assert told["scratch.img"].endswith("to measure a scratch file of that name, give its --size")


def test_a_link_to_nothing_is_called_one(tmp_path: Path) -> None:
    """If the path is a link without a target, the error names the link and the missing target, with and without a size.
    No file is created at the target.
    """
    link, loop = tmp_path / "link.img", tmp_path / "loop.img"
    link.symlink_to("nowhere.img")
    loop.symlink_to("loop.img")
    for path, target in ((link, "nowhere.img"), (loop, "loop.img")):
        for size in ("1GiB", None):
            with pytest.raises(DeviceError) as refused:
                make_plan("ssd", path, size=size, profile="quick")
            assert f"{path} is a link to {target}, which does not exist" in str(refused.value)
    assert not (tmp_path / "nowhere.img").exists()
