"""The requirements of a test on a device depend only on the phases of this test."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

import tkperf
from tkperf import make_plan
from tkperf.cli.commands.suites import hdd, raid, ssd
from tkperf.device.identity import DeviceIdentity, TargetKind
from tkperf.device.raid.config import RaidConfig
from tkperf.model.errors import UsageError
from tkperf.model.units import GIB, KIB
from tkperf.pipeline.fitted_profile import FittedProfile, fit_profile
from tkperf.pipeline.run_request import RunRequest
from tkperf.pipeline.simulation import SimulatedDriveUnderTest
from tkperf.procedures import Profile, load_profile
from tkperf.procedures.disk_areas import HardDiskTable
from tkperf.procedures.iops import IopsTable
from tkperf.procedures.latency import LatencyTable


def fitted(*, profile: str = "pts-e-1.1", suite: str = "ssd", sector: int = 512, **wishes: object) -> FittedProfile:
    identity = DeviceIdentity(path="/dev/x", kind=TargetKind.BLOCK, capacity_bytes=GIB, logical_block_bytes=sector)
    request = RunRequest(suite=suite, device="/dev/x", **wishes)  # type: ignore[arg-type]
    return fit_profile(request, load_profile(profile), identity)


def test_a_hard_disk_run_speaks_of_its_own_block_sizes_only() -> None:
    """A run of hard disk tests mentions only the block sizes of these tests. SSD tests with the same names use blocks
    of 0.5 KiB, but hard disk tests never measure such blocks.
    """
    assert fitted(profile="quick", suite="hdd", sector=4096).warnings == ()
    left_out = fitted(profile="quick", sector=4096).warnings
    assert [warning.text.partition(":")[0] for warning in left_out] == ["iops", "lat"]


def test_latency_needs_no_room_for_blocks_that_it_never_issues() -> None:
    """The latency test needs space only for its own blocks: 32 threads fill the range, and one thread measures blocks
    of 8 KiB. Blocks of 1 MiB belong to another test.
    """
    run = fitted(tests=("lat",), jobs=32, active_range="16MiB")
    assert [fill.passes for fill in run.tests[0].fills] == [2]
    with pytest.raises(UsageError, match="too small for 32 jobs with blocks of 1024k"):
        fitted(tests=("tp",), jobs=32, active_range="16MiB")


def test_throughput_does_not_care_for_what_another_test_tracks() -> None:
    """The throughput test runs with sectors of 16 KiB, because all block sizes of this test are multiples of 16 KiB.
    The block sizes that the IOPS test tracks do not matter.
    """
    assert fitted(tests=("tp",), sector=16 * KIB).warnings == ()
    with pytest.raises(
        UsageError,
        match=r"test iops .* tracked block size is not a multiple of the device's logical sector of 16384 bytes",
    ):
        fitted(tests=("iops",), sector=16 * KIB)


def test_areas_begin_at_whole_sectors() -> None:
    """The areas of a disk begin at whole sectors. A user's profile that requests a finer alignment is refused."""
    profile = load_profile("quick")
    table = msgspec.structs.replace(profile.table(HardDiskTable), area_alignment_kib=0.5, areas=7)
    identity = DeviceIdentity(path="/dev/x", kind=TargetKind.BLOCK, capacity_bytes=GIB, logical_block_bytes=4096)
    with pytest.raises(UsageError, match="its areas do not begin at a boundary"):
        fit_profile(RunRequest(suite="hdd", device="/dev/x"), profile.with_tables(table), identity)


@pytest.mark.parametrize(
    ("wishes", "says"),
    [
        ({"suite": "sdd"}, "suite 'sdd': choose from ssd, hdd, raid"),
        ({"suite": "raid"}, "needs the configuration of a RAID set"),
        ({"tests": ("speed",)}, "test 'speed': choose from "),
        ({"tests": ("writsat",)}, "; did you mean writesat?"),
        (
            {"suite": "raid", "raid": RaidConfig(devices=("/dev/x",), raidlevel=5, type="sw_mdadm")},
            "key devices: 1 for RAID 5, it takes 3 or more",
        ),
        (
            {"suite": "raid", "raid": RaidConfig(devices=("/dev/x",), raidlevel=4, type="sw_mdadm")},
            "key raidlevel: 4 is not one of",
        ),
        ({"active_range": "12 parsecs"}, "--active-range: '12 parsecs' is not a size"),
        ({"active_range": "120%"}, "--active-range: '120%' is not a share"),
        ({"size": "some"}, "--size: 'some' is not a size"),
        ({"jobs": 0}, "number of threads: 0 is not within 1 to 1024"),
        ({"step_s": float("nan")}, "length of a step"),
        ({"io_depth": 1 << 20}, "queue depth"),
        ({"write_cache": "of"}, "write cache 'of'"),
        ({"ioengine": "sync"}, "I/O engine 'sync'"),
        ({"purge_method": "format"}, "purge method 'format'"),
        ({"no_purge": True, "purge_method": "discard"}, "--no-purge and --purge exclude"),
        ({"suite": "hdd", "no_purge": True}, "tkperf does not purge hard disks"),
    ],
)
def test_what_no_device_could_do_is_refused_before_one_is_looked_at(wishes: dict[str, object], says: str) -> None:
    """A request that no device could fulfil is refused immediately, before tkperf accesses a device."""
    with pytest.raises(UsageError) as raised:
        RunRequest(**{"suite": "ssd", "device": "/dev/x", **wishes})  # type: ignore[arg-type]
    assert says in str(raised.value)


@pytest.mark.parametrize(
    ("wishes", "found"),
    [
        ({}, ()),
        ({"jobs": 4, "io_depth": 32, "step_s": 60, "active_range": "100%"}, ()),
        ({"tests": ["lat"], "step_s": 1}, ("runtime 60 s -> 1 s",)),
        ({"tests": ["iops"], "jobs": 1}, ("threads 4 -> 1",)),
        ({"tests": ["iops"], "io_depth": 8}, ("queue depth 32 -> 8",)),
        ({"tests": ["tp"], "active_range": "1GiB"}, ("active range 100 % -> 1 GiB",)),
        ({"tests": ["lat"], "profile": "pts-2.0-client", "active_range": "75%"}, ()),
        ({"tests": ["lat"], "profile": "pts-2.0-client", "active_range": "100%"}, ("active range 75 % -> 100 %",)),
        # In this profile, the throughput test has its own demand.
        ({"tests": ["tp"], "profile": "pts-2.0", "jobs": 8, "io_depth": 1}, ()),
        ({"tests": ["tp"], "write_cache": "on"}, ("write cache off -> on",)),
        ({"tests": ["tp"], "no_purge": True}, ("purge -> none",)),
        ({"tests": ["writesat"], "step_s": 30}, ("slices of the stream 60 s -> 30 s",)),
        (
            {"tests": ["writesat"], "step_s": 1},
            ("slices of the stream 60 s -> 1 s", "longest stream 24 h 00 min -> 5 h 33 min"),
        ),
    ],
)
def test_each_number_that_options_change_is_named(wishes: dict[str, Any], found: tuple[str, ...]) -> None:
    """Each number that an option changes is named once, together with the number in the profile. A number that the
    selected tests do not use counts as unchanged.
    """
    changes = tkperf.make_plan("ssd", "sim:sata-ssd", **wishes).changes
    assert (*changes.choices, *changes.alterations) == found
    assert all(text.startswith(("threads", "queue depth")) for text in changes.choices)


def test_a_request_is_filled_alike_from_the_command_line_a_file_and_python() -> None:
    """Each field of a request except the suite has the same name as an argument or option of a command that runs tests.
    Users can therefore make the same request on the command line, in a file and in Python.
    """
    params = {param.name for command in (ssd, hdd, raid) for param in command.params}
    assert set(RunRequest.__struct_fields__) - {"suite"} <= params
    asked = {"suite": "ssd", "device": "sim:sata-ssd", "tests": ["lat"], "jobs": 4, "step_s": 2}
    decoded = msgspec.convert(asked, RunRequest)
    assert decoded == RunRequest(**asked)  # type: ignore[arg-type]
    assert RunRequest(suite="ssd", device="x", **decoded.options).jobs == 4  # type: ignore[arg-type]
    with pytest.raises(msgspec.ValidationError, match="dept"):
        msgspec.convert({**asked, "dept": 3}, RunRequest)


NEEDS = (
    "profile pts-c-1.2 tests 16 GiB in 2,048 segments of 80 %, which requires a whole block device, root privileges "
    "and device-mapper. On other targets, pass --active-range 16GiB to test this amount in one piece. The results then "
    "state this change. The reason for this refusal: "
)


def test_segments_are_refused_with_the_reason_and_the_way_out(tmp_path: Path) -> None:
    """If a target cannot be divided into segments with device-mapper, segments are refused with a reason. A single
    piece of the same size is possible and counts as altered.
    """
    file = tmp_path / "file"
    file.write_bytes(bytes(1 << 20))
    raid = RaidConfig(devices=("/dev/sdx", "/dev/sdy"), raidlevel=1, type="sw_mdadm")
    for suite, device, wishes, reason in (
        ("ssd", str(file), {}, f"{file} is a file"),
        ("ssd", str(tmp_path / "new"), {"size": "1GiB"}, f"{tmp_path / 'new'} would be a file"),
        ("ssd", "sim:hdd", {}, "the model of sim:hdd contains no seeks between segments"),
        ("raid", "/dev/md7", {"raid": raid}, "tkperf does not map segments on a RAID set"),
    ):
        with pytest.raises(UsageError) as raised:
            tkperf.make_plan(suite, device, profile="pts-c-1.2", **wishes)
        assert str(raised.value) == NEEDS + reason
    plan = tkperf.make_plan("ssd", "sim:sata-ssd", profile="pts-c-1.2", active_range="16GiB")
    assert plan.alterations == ("active range 16 GiB in 2,048 segments of 80 % -> 16 GiB",)
    assert [each.test.name for each in plan.tests] == ["iops", "lat", "tp"]


@pytest.mark.parametrize(
    ("suite", "device", "text"),
    [
        ("ssd", "sim:hdd", "sim:hdd models a hard disk, which 'tkperf hdd' measures area by area"),
        ("hdd", "sim:sata-ssd", "sim:sata-ssd models an SSD, which has no areas to compare"),
        ("ssd", "sim:sata-ssd", ""),
        ("hdd", "sim:hdd", ""),
    ],
)
def test_a_model_of_the_other_kind_of_drive_has_a_warning(suite: str, device: str, text: str) -> None:
    """If a hard disk model is measured in an SSD suite, or an SSD model in a hard disk suite, every result has a
    warning about this.
    """
    warnings = SimulatedDriveUnderTest(RunRequest(suite=suite, device=device)).warnings
    assert [one.text[: len(text)] for one in warnings] == ([text] if text else [])


def test_altered_numbers_of_a_profile_made_in_python_are_written_out() -> None:
    """Altered numbers are written with all digits, so two numbers that differ only in the seventh digit look different.
    Numbers of a test that does not run do not count as altered.
    """
    profile = load_profile("quick")
    table = msgspec.structs.replace(profile.table(LatencyTable), step_s=1_234_567.0)
    changed = profile.with_tables(table)
    plan = tkperf.make_plan("ssd", "sim:sata-ssd", tests=("lat",), profile=changed)
    assert plan.alterations == ("latency.step_s 1 -> 1234567",)
    other = tkperf.make_plan("ssd", "sim:sata-ssd", tests=("iops",), profile=changed)
    assert other.alterations == ()


def test_segments_are_one_piece_to_a_simulated_flash_drive() -> None:
    """On a simulated flash drive, segments are measured as one piece, because the simulation does not model addresses.
    A warning states this.
    """
    plan = tkperf.make_plan("ssd", "sim:sata-ssd", profile="pts-c-1.2")
    assert plan.alterations == ()
    assert plan.active_range.length_bytes == 16 * GIB
    assert [warning.text for warning in plan.warnings] == [
        "16 GiB in 2,048 segments of 80 %: a simulated flash drive does not model addresses, so segments have no effect"
    ]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"segments": 8192}, "an I/O of 1024k could cross the end of a segment"),
        ({"length": "90%"}, "places segments in 90% of the device but preconditions only 80% of it"),
    ],
)
def test_segments_that_no_test_could_keep_to_are_refused(changes: dict[str, Any], says: str) -> None:
    """Segments are refused if an I/O would cross their boundary, or if they are not filled."""
    profile = load_profile("pts-c-1.2")
    table = msgspec.structs.replace(profile.active_range, **changes)
    if "segments" in changes:
        table = msgspec.structs.replace(table, amount="4GiB")
    with pytest.raises(UsageError, match=re.escape(says)):
        tkperf.make_plan("ssd", "sim:sata-ssd", profile=profile.with_tables(table))


def test_what_is_filled_and_what_is_tested_are_ranges_of_their_own() -> None:
    """The filled range and the tested range are independent. In this run, 80 % of 240 GB is filled twice for each of
    three tests, and 16 GiB are measured.
    """
    plan = tkperf.make_plan("ssd", "sim:sata-ssd", profile="pts-c-1.2", active_range="16GiB")
    filled_bytes = 240_057_409_536 * 8 // 10 // 512 * 512
    assert plan.active_range.length_bytes == 16 * GIB
    assert {fill.length_bytes for test in plan.tests for fill in test.fills} == {filled_bytes}
    assert plan.filled_bytes == 3 * 2 * filled_bytes
    with pytest.raises(UsageError, match=r"active range of 228\.1 GB is more than the 192\.0 GB"):
        tkperf.make_plan("ssd", "sim:sata-ssd", profile="pts-c-1.2", active_range="95%")


def test_an_amount_in_one_piece_is_as_much_as_it_says() -> None:
    """If a profile defines an amount without segments, the active range is one piece that consists of exactly this
    amount. An amount that exceeds the permitted range is refused.
    """
    profile = load_profile("pts-2.0")
    table = msgspec.structs.replace(profile.active_range, length="50%", amount="256MiB")
    assert fit_to_gib(profile.with_tables(table)).active_range.length_bytes == GIB // 4
    share = msgspec.structs.replace(table, amount="25%")
    assert fit_to_gib(profile.with_tables(share)).active_range.length_bytes == GIB // 4
    large = msgspec.structs.replace(table, amount="768MiB")
    with pytest.raises(UsageError, match=r"768MiB is more than 50% of the device \(536\.9 MB\)"):
        fit_to_gib(profile.with_tables(large))
    other = fit_to_gib(profile.with_tables(large), active_range="768MiB")
    assert other.active_range.length_bytes == 3 * GIB // 4


def fit_to_gib(profile: Profile, **wishes: object) -> FittedProfile:
    identity = DeviceIdentity(path="/dev/x", kind=TargetKind.BLOCK, capacity_bytes=GIB, logical_block_bytes=512)
    request = RunRequest(suite="ssd", device="/dev/x", **wishes)  # type: ignore[arg-type]
    return fit_profile(request, profile, identity)


@pytest.mark.parametrize(("wanted", "expected"), [("1GiB", GIB), ("512MiB", GIB // 2), ("100%", GIB)])
def test_a_range_that_was_asked_for_is_measured(wanted: str, expected: int) -> None:
    """If the user requested an active range, this range is measured. The requested range can be as large as the whole
    device.
    """
    assert fitted(tests=("lat",), active_range=wanted).active_range.length_bytes == expected


def test_more_than_the_device_is_not_cut_without_a_word() -> None:
    """If the user requested an active range that exceeds the device, the request is refused. If a profile requests such
    a range, the range is reduced to the size of the device.
    """
    assert fitted(profile="quick").active_range.length_bytes == GIB
    with pytest.raises(UsageError, match=r"--active-range 2GiB is larger than /dev/x, whose capacity is 1.1 GB"):
        fitted(tests=("lat",), active_range="2GiB")


def test_a_changed_profile_does_not_go_by_the_shipped_name() -> None:
    """A changed profile with the name of a shipped profile lists each changed number that the selected tests use. A
    changed profile that has a name of its own does not count as altered.
    """
    shipped = load_profile("pts-e-1.1")
    table = msgspec.structs.replace(shipped.table(IopsTable), step_s=2, read_percents=(100, 0))
    changed = shipped.with_tables(table)

    def alterations(profile: Profile, test: str) -> tuple[str, ...]:
        return make_plan("ssd", "sim:sata-ssd", profile=profile, tests=[test]).alterations

    assert alterations(changed, "iops") == (
        "iops.step_s 60 -> 2",
        "iops.read_percents 100, 95, 65, 50, 35, 5, 0 -> 100, 0",
    )
    assert alterations(changed, "lat") == alterations(shipped, "iops") == ()
    assert alterations(dataclasses.replace(changed, name="mine", title="mine"), "iops") == ()
