"""A run goes on only on what it was measured on."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import attach_again
from tkperf.device.identity import read_identity
from tkperf.device.inspection import inspect_device
from tkperf.device.permit import grant_permit, hold_target
from tkperf.device.usage.kernel import LOOP_GET_STATUS64
from tkperf.model.errors import DeviceError
from tkperf.pipeline.same_device import require_same_device

MakeLoop = Callable[..., Path]
MIB = 1 << 20
LOOP_SET_STATUS64 = 0x4C04


def facts_of(device: Path) -> dict[str, object]:
    """As a run file has them."""
    facts: dict[str, object] = json.loads(json.dumps(inspect_device(read_identity(device)).values))
    return facts


@contextmanager
def attached_again(device: Path, image: Path, *options: str) -> Iterator[None]:
    """The loop device as it is while something else is behind it."""
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
    """Path, name of the image and size are the same."""
    device, image = loop_device("--sizelimit", str(32 * MIB)), tmp_path / "loop0.img"
    recorded = facts_of(device)
    with attached_again(device, image, *options), pytest.raises(DeviceError, match=says):
        require_same_device(recorded, read_identity(device), facts_of(device))
    require_same_device(recorded, read_identity(device), facts_of(device))


@pytest.mark.root
def test_another_image_behind_a_loop_device(loop_device: MakeLoop, tmp_path: Path) -> None:
    """Of the same name and size: another inode, which would have been erased."""
    device, image = loop_device(), tmp_path / "loop0.img"
    recorded = facts_of(device)
    inode = image.stat().st_ino
    image.rename(tmp_path / "kept.img")
    image.write_bytes(bytes(64 * MIB))
    attach_again(device, image)
    with pytest.raises(DeviceError, match=rf"behind it is inode .*, not inode {inode} on "):
        require_same_device(recorded, read_identity(device), facts_of(device))


@pytest.mark.root
def test_another_device_behind_a_loop_device(loop_device: MakeLoop) -> None:
    """One that lies on a block device."""
    first, second, upper = loop_device(), loop_device(), loop_device()
    attach_again(upper, first)
    recorded = facts_of(upper)
    assert f"block device 7:{first.name.removeprefix('loop')} from" in str(recorded["loop_backing"])
    require_same_device(recorded, read_identity(upper), facts_of(upper))
    attach_again(upper, second)
    with pytest.raises(DeviceError, match="behind it is block device"):
        require_same_device(recorded, read_identity(upper), facts_of(upper))


@pytest.mark.root
def test_a_part_that_is_moved_under_a_run(loop_device: MakeLoop) -> None:
    """While it is held the kernel lets root set another offset: the next recheck sees it."""
    device = loop_device("--sizelimit", str(32 * MIB))
    identity = read_identity(device)
    permit = grant_permit(hold_target(identity), confirmed_id=identity.confirm_id).redeem()
    try:
        permit.recheck()
        status = bytearray(fcntl.ioctl(permit.descriptor, LOOP_GET_STATUS64, bytes(232)))
        status[24:32] = MIB.to_bytes(8, "little")
        fcntl.ioctl(permit.descriptor, LOOP_SET_STATUS64, bytes(status))
        with pytest.raises(DeviceError, match="no longer the device that was shown"):
            permit.recheck()
    finally:
        permit.release()
