"""Drives and files as the pipeline opens them. The pipeline removes every file that it created for a run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import tkperf
from tkperf.device.identity import TargetKind, read_identity
from tkperf.device.inspection import DeviceFacts
from tkperf.device.targets import find_shortage
from tkperf.model.errors import DeviceError, EngineError, RefusedError
from tkperf.pipeline import drive
from tkperf.pipeline.consent import Consent
from tkperf.pipeline.device_under_test import warn_of_link, warn_of_room


def no_engine(*_: object, **__: object) -> None:
    raise EngineError("fio cannot read it")


@pytest.mark.fio
def test_a_scratch_file_goes_where_no_run_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scratch file is created only when the pipeline opens it for a run, and is removed if no run begins."""
    plan = tkperf.make_plan("ssd", tmp_path / "s", size="64MiB", profile="quick", tests=["lat"])
    with plan.dut.open(plan.fitted, Consent()) as equipment:
        assert (tmp_path / "s").stat().st_size == 64 << 20
        assert equipment.fitted.identity.inode is not None
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(drive, "find_ioengine", no_engine)
    with pytest.raises(EngineError, match="fio cannot read it"):
        tkperf.run(plan, "n", folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.fio
def test_a_sparse_file_without_room_is_warned_of(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the run would fill the file system, tkperf warns about a sparse file, because other programs also write to
    this file system. The warning is printed before the consent question.
    """
    os.truncate(scratch, 1 << 30)
    assert find_shortage(scratch) is None
    usage = shutil.disk_usage(scratch)._replace(free=100_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    (warning,) = warn_of_room(read_identity(scratch))
    assert "takes 1.0 GB more, but its file system has only 100.0 MB free" in warning.text
    behind = replace(read_identity(scratch), kind=TargetKind.BLOCK, path="/dev/loop7", backing=str(scratch))
    assert f"{scratch}, behind /dev/loop7, is sparse" in warn_of_room(behind)[0].text
    plan = tkperf.make_plan("ssd", scratch, profile="quick", tests=["lat"])
    assert warning in plan.warnings
    scratch.write_bytes(bytes(1 << 26))  # a file without holes cannot grow any further
    assert warn_of_room(read_identity(scratch)) == ()


@pytest.mark.fio
def test_a_file_that_came_in_the_place_of_the_planned_one_stays(tmp_path: Path) -> None:
    """If another user created a file under the planned name after the plan was made, this file is not overwritten."""
    plan = tkperf.make_plan("ssd", tmp_path / "s", size="64MiB", profile="quick", tests=["lat"])
    (tmp_path / "s").write_text("precious")
    with pytest.raises(DeviceError, match="already exists"):
        tkperf.run(plan, "n", folder=tmp_path, confirm=str(tmp_path / "s"))
    assert (tmp_path / "s").read_text() == "precious"


@pytest.mark.fio
def test_another_file_than_the_one_planned_is_not_erased(scratch: Path, tmp_path: Path) -> None:
    """If another file replaced the planned file, the new file is not erased, even if it has the same name and size and
    was confirmed by this name.
    """
    plan = tkperf.make_plan("ssd", scratch, profile="quick", tests=["lat"])
    scratch.rename(tmp_path / "before")
    scratch.write_bytes(b"\x5a" * (64 << 20))
    with pytest.raises(DeviceError, match="is no longer the device that tkperf showed"):
        tkperf.run(plan, "n", folder=tmp_path, confirm=str(scratch))
    assert set(scratch.read_bytes()) == {0x5A}


@pytest.mark.fio
def test_a_file_that_somebody_took_since_the_plan_is_not_erased(scratch: Path) -> None:
    """When tkperf opens a file for a run, it checks the file again. A file that another program began to use after the
    plan was made is therefore not erased.
    """
    plan = tkperf.make_plan("ssd", scratch, profile="quick", tests=["lat"])
    link = scratch.with_name("link")
    link.hardlink_to(scratch)
    with pytest.raises(RefusedError, match="hard links"), plan.dut.open(plan.fitted, Consent(confirm=str(scratch))):
        pass
    assert set(scratch.read_bytes()) == {0xA5}


def test_a_purge_that_overwrites_does_not_make_it_as_new(scratch: Path) -> None:
    """After its purge, a file counts as new, because the purge punches holes and does not overwrite the file."""
    plan = tkperf.make_plan("ssd", scratch, profile="quick", tests=["writesat"])
    assert plan.dut.overwritten_by is None
    assert [warning for warning in plan.warnings if warning.code == "not-as-new"] == []


@pytest.mark.root
def test_zeroes_written_are_said_to_be(loop_device: object) -> None:
    """If a purge writes zeros, tkperf prints a warning for write saturation, because that test begins with the device
    as the purge left it. The other tests fill the device first.
    """
    device = loop_device()  # type: ignore[operator]
    plan = tkperf.make_plan("ssd", device, profile="quick", purge_method="write-zeroes")
    found = [warning for warning in plan.warnings if warning.code == "not-as-new"]
    assert [warning.test for warning in found] == ["writesat"]
    assert "zeroes written to the whole device" in found[0].text


@pytest.mark.fio
@pytest.mark.parametrize("confirm", ["./x", "{folder}/x", None])
def test_a_scratch_file_is_confirmed_by_its_path_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, confirm: str | None
) -> None:
    """An existing scratch file is confirmed by its path, either in the form that the user typed as DEVICE or as the
    full path. A new scratch file needs no confirmation.
    """
    monkeypatch.chdir(tmp_path)
    plan = tkperf.make_plan("ssd", "./x", size="64MiB", profile="quick", tests=["lat"])
    given = None if confirm is None else confirm.format(folder=tmp_path)
    with plan.dut.open(plan.fitted, Consent(confirm=given)):
        assert (tmp_path / "x").stat().st_size == 64 << 20
    assert list(tmp_path.iterdir()) == []


@pytest.mark.fio
@pytest.mark.parametrize("confirm", ["x", "./y", "/dev/sda", ""])
def test_a_scratch_file_with_anothers_confirmation_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, confirm: str
) -> None:
    """An answer that belongs to another target does not confirm a scratch file. A new scratch file is then removed."""
    monkeypatch.chdir(tmp_path)
    plan = tkperf.make_plan("ssd", "./x", size="64MiB", profile="quick", tests=["lat"])
    opening = plan.dut.open(plan.fitted, Consent(confirm=confirm))
    with pytest.raises(RefusedError, match=f"'{confirm}' does not confirm {tmp_path}/x"), opening:
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.root
@pytest.mark.parametrize("model", ["none", "host-aware"])
def test_a_host_aware_zoned_disk_is_measured_with_a_warning(
    loop_device: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    """A host-aware zoned disk is measured with a warning. Unlike a host-managed disk, it accepts random writes, but
    such writes may be slow.
    """
    monkeypatch.setattr("tkperf.pipeline.device_under_test.find_zone_model", lambda _: model)
    plan = tkperf.make_plan("ssd", str(loop_device()), profile="quick")
    texts = [warning.text for warning in plan.dut.warnings]
    assert any("is zoned and host-aware" in text for text in texts) is (model == "host-aware")


def test_a_downgraded_link_is_warned_of() -> None:
    facts = DeviceFacts()
    facts.add("sysfs", link="PCIe gen 3 x2", link_fastest="PCIe x4", link_downgraded=True)
    (warning,) = warn_of_link(facts)
    assert "runs at PCIe gen 3 x2, it could do PCIe x4" in warning.text
    facts.values["link_downgraded"] = False
    assert warn_of_link(facts) == ()
