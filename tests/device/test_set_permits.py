"""A set, mapping or virtual drive is written to only if it consists of exactly the drives that the user confirmed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tkperf.device import permit
from tkperf.device.identity import DeviceIdentity, read_identity
from tkperf.device.permit import ErasePermit, grant_set_permit, grant_virtual_drive_permit
from tkperf.model.errors import DeviceError, RefusedError

SET = "9:7"
NAA = "600605b00f00000012345678deadbeef"


@pytest.fixture
def identity(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> DeviceIdentity:
    """Return the identity of a set that no other program uses. Its folder in sysfs is next to ``scratch``."""
    identity = replace(read_identity(scratch), major_minor=SET, wwn=f"naa.{NAA}")
    monkeypatch.setattr(permit, "read_identity", lambda _: identity)
    monkeypatch.setattr(permit, "find_node", lambda _: scratch.parent / "node")
    monkeypatch.setattr(permit, "refuse_objections", lambda *_, **__: None)
    monkeypatch.setattr(permit, "Hold", lambda identity: SimpleNamespace(identity=identity, anchor=None, is_open=True))
    return identity


def confirmed(number: str, *, in_use: bool = True) -> ErasePermit:
    """Return the permit of a drive with this device number."""

    def require_in_use() -> None:
        if not in_use:
            raise DeviceError("the drive was removed")

    drive = SimpleNamespace(identity=SimpleNamespace(major_minor=number), require_in_use=require_in_use)
    return cast("ErasePermit", drive)


def make_set(scratch: Path, *numbers: str) -> None:
    """Let the set consist of the drives with these device numbers."""
    for number in numbers:
        slave = scratch.parent / "node/slaves" / number.replace(":", "-")
        slave.mkdir(parents=True)
        (slave / "dev").write_text(f"{number}\n")


@pytest.mark.parametrize(
    "below",
    [("8:0", "8:16", "8:32"), ("8:0",), ("8:0", "8:32"), ()],
    ids=["one drive more", "one drive missing", "another drive", "no drive"],
)
def test_a_set_of_other_drives_is_refused(scratch: Path, identity: DeviceIdentity, below: tuple[str, ...]) -> None:
    """A set gets no permit if it contains a drive that was not confirmed, or lacks a confirmed drive."""
    make_set(scratch, *below)
    with pytest.raises(RefusedError, match="does not consist of the confirmed devices, so tkperf writes nothing to it"):
        grant_set_permit(lambda: "/dev/md7", [confirmed("8:0"), confirmed("8:16")])


def test_a_set_of_the_confirmed_drives_gets_a_permit(scratch: Path, identity: DeviceIdentity) -> None:
    """A set of exactly the confirmed drives gets a permit. If the set consists of other drives when it is created
    again, the set is refused.
    """
    make_set(scratch, "8:0", "8:16")
    permitted = grant_set_permit(lambda: "/dev/md7", [confirmed("8:0"), confirmed("8:16")])
    assert permitted.identity == identity
    # tkperf creates the set again for the next test of the run. The set now contains a further drive.
    make_set(scratch, "8:32")
    with pytest.raises(RefusedError, match="does not consist of the confirmed devices"):
        permitted.made()


def test_no_set_is_permitted_if_a_member_was_removed(scratch: Path, identity: DeviceIdentity) -> None:
    """A set gets no permit if the permit of one of its drives is no longer valid."""
    make_set(scratch, "8:0", "8:16")
    with pytest.raises(DeviceError, match="the drive was removed"):
        grant_set_permit(lambda: "/dev/md7", [confirmed("8:0"), confirmed("8:16", in_use=False)])


def test_only_the_virtual_drive_that_was_created_gets_a_permit(identity: DeviceIdentity) -> None:
    """A virtual drive gets a permit only if its world-wide name is the whole name that the controller reports. If the
    controller reports no name, the drive is refused.
    """
    assert grant_virtual_drive_permit("/dev/sdz", NAA.upper).identity == identity
    for other in (NAA[:-1] + "0", NAA[1:], NAA[:8], "", None):
        with pytest.raises(RefusedError, match="is not the virtual drive that tkperf created"):
            grant_virtual_drive_permit("/dev/sdz", lambda naa=other: naa)  # type: ignore[misc]
