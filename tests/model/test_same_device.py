"""A difference in any compared fact means a different device. Changes that a reboot can cause are permitted."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tkperf.model.errors import DeviceError
from tkperf.model.same_device import COMPARED, When, find_differences, find_measured_part, require_same_device

PAGE = (Path(__file__).parents[2] / "docs/how-to/resume.md").read_text(encoding="utf-8")

DRIVE: dict[str, Any] = {
    "kind": "block device",
    "path": "/dev/sdb",
    "capacity_bytes": 960_197_124_096,
    "logical_block_bytes": 512,
    "model": "INTEL SSDSC2KB96",
    "serial": "PHYF1",
    "wwn": "naa.55cd2e4150f0ad3e",
    "firmware": "XCV10100",
    "major_minor": "8:16",
    "disk_sequence": 9,
    "partition": None,
    "partition_start_bytes": None,
    "unit": "LUN 0",
    "mapping_uuid": None,
    "mapping_name": None,
    "inode": None,
    "birth_time_ns": None,
    "backing": None,
    "loop_backing": None,
    "beneath": (),
}
WITHOUT_NUMBERS = DRIVE | {"serial": None, "wwn": None}
BAY = DRIVE | {"wwn": "t10.ATA     ASMT    2115", "serial": "00000000000000000000"}
PARTITION = DRIVE | {"path": "/dev/sdb1", "partition": 1, "partition_start_bytes": 1 << 20}
FILE = DRIVE | {
    "kind": "file",
    "path": "/data/a.img",
    "model": None,
    "serial": None,
    "wwn": None,
    "firmware": None,
    "unit": None,
    "major_minor": None,
    "disk_sequence": None,
    "inode": (66306, 4711),
    "birth_time_ns": 1_795_857_413_945_651_800,
    "backing": "ext4",
}
LOOP = FILE | {
    "kind": "block device",
    "path": "/dev/loop3",
    "inode": None,
    "birth_time_ns": None,
    "major_minor": "7:3",
    "disk_sequence": 12,
    "backing": "/data/a.img",
    "loop_backing": "inode 4711 on 259:2 from byte 0",
    "beneath": ("inode 4711 made at 1 ns from byte 0",),
}
MD_SET = WITHOUT_NUMBERS | {
    "path": "/dev/md127",
    "serial": "01234567-89ab",
    "unit": None,
    "model": None,
    "firmware": None,
    "beneath": ("serial number A of 960197124096 bytes", "serial number B of 960197124096 bytes"),
}
MAPPING = MD_SET | {"path": "/dev/dm-0", "serial": None, "mapping_uuid": "LVM-x", "mapping_name": "vg-lv"}
PLAIN_MAPPING = MAPPING | {"mapping_uuid": None}
SIMULATED = WITHOUT_NUMBERS | {"kind": "simulated drive", "path": "sim:sata-ssd"}

KINDS = {
    "whole drive": DRIVE,
    "drive without numbers": WITHOUT_NUMBERS,
    "bay of a dock": BAY,
    "partition": PARTITION,
    "file": FILE,
    "loop device": LOOP,
    "MD set": MD_SET,
    "mapping with a UUID": MAPPING,
    "mapping without a UUID": PLAIN_MAPPING,
}
REFUSED: dict[str, dict[str, Any]] = {
    "whole drive": {
        "kind": "file",
        "capacity_bytes": 1 << 30,
        "logical_block_bytes": 4096,
        "serial": "PHYF2",
        "wwn": "naa.55cd2e4150f0ad3f",
        "model": "other",
        "firmware": "2",
        "partition": 1,
        "partition_start_bytes": 0,
        "mapping_uuid": "x",
        "inode": (1, 1),
        "birth_time_ns": 1,
        "beneath": ("serial number A",),
    },
    "drive without numbers": {"path": "/dev/sdc", "serial": "PHYF2", "wwn": "x", "unit": "LUN 1", "backing": "x"},
    "bay of a dock": {"unit": "LUN 1", "serial": None},
    "partition": {"partition": 2, "partition_start_bytes": 2 << 20, "capacity_bytes": 1 << 30, "serial": "PHYF2"},
    "file": {
        "inode": (66306, 4712),
        "birth_time_ns": 1_795_857_413_945_651_801,
        "capacity_bytes": 1 << 20,
        "kind": "block device",
    },
    "loop device": {
        "beneath": ("inode 4711 made at 2 ns from byte 0",),
        "capacity_bytes": 1 << 20,
        "partition": 1,
        "serial": "x",
    },
    "MD set": {"beneath": ("serial number A of 960197124096 bytes",), "serial": "fedcba98"},
    "mapping with a UUID": {"mapping_uuid": "LVM-y", "beneath": ()},
    "mapping without a UUID": {"mapping_name": "vg-other", "mapping_uuid": "x", "beneath": ()},
}
# Facts of a device that may change after a reboot, in another slot or under a new name.
ALLOWED: dict[str, dict[str, Any]] = {
    "whole drive": {
        "path": "/dev/nvme3n1",
        "major_minor": "8:32",
        "disk_sequence": 30,
        "unit": "LUN 7",
        "scheduler": "none",
        "link": "6.0 Gb/s",
    },
    "drive without numbers": {"major_minor": "8:32", "disk_sequence": 30},
    "bay of a dock": {"path": "/dev/sdf", "major_minor": "8:80"},
    "partition": {"path": "/dev/sdk1", "major_minor": "8:161", "disk_sequence": 3},
    "file": {"path": "/mnt/b.img", "inode": (66307, 4711), "backing": "xfs"},
    "loop device": {
        "path": "/dev/loop9",
        "major_minor": "7:9",
        "disk_sequence": 50,
        "backing": "/mnt/b.img",
        "loop_backing": "inode 4711 on 8:3 from byte 0",
    },
    "MD set": {"path": "/dev/md0", "major_minor": "9:0"},
    "mapping with a UUID": {"path": "/dev/dm-4", "mapping_name": "vg-new"},
    "mapping without a UUID": {"path": "/dev/dm-4"},
}


def recorded(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the facts in the form that a run file contains."""
    read: dict[str, Any] = json.loads(json.dumps(facts))
    return read


def pairs(table: dict[str, dict[str, Any]]) -> list[tuple[str, str, Any]]:
    return [(kind, name, value) for kind, row in table.items() for name, value in row.items()]


@pytest.mark.parametrize(("kind", "name", "value"), pairs(REFUSED))
def test_each_compared_fact_alone_is_another_device(kind: str, name: str, value: Any) -> None:
    with pytest.raises(DeviceError, match="is not the device of the run, or has changed since the run"):
        require_same_device(recorded(KINDS[kind]), KINDS[kind] | {name: value})


@pytest.mark.parametrize(("kind", "name", "value"), pairs(ALLOWED))
def test_what_a_boot_changes_is_the_same_device(kind: str, name: str, value: Any) -> None:
    require_same_device(recorded(KINDS[kind]), KINDS[kind] | {name: value})


@pytest.mark.parametrize("kind", KINDS)
def test_a_device_is_itself(kind: str) -> None:
    require_same_device(recorded(KINDS[kind]), KINDS[kind])
    require_same_device(recorded(KINDS[kind]), KINDS[kind] | ALLOWED[kind])
    assert not [*find_differences(KINDS[kind], KINDS[kind], When.WITHIN_RUN)]


@pytest.mark.parametrize("fact", [fact for fact in COMPARED if fact.within_run], ids=lambda one: str(one.name))
def test_within_a_run_each_compared_fact_alone_is_another_device(fact: Any) -> None:
    """Within a run, a difference in a single compared fact means another device. tkperf holds the device, so the
    numbers that the kernel assigned to it cannot change. These numbers are therefore compared as well.
    """
    for facts in KINDS.values():
        assert [*find_differences(facts, facts | {fact.name: "other"}, When.WITHIN_RUN)]


@pytest.mark.parametrize("name", ["path", "model", "firmware", "scheduler", "backing"])
def test_within_a_run_names_and_what_a_tool_may_read_otherwise_do_not_count(name: str) -> None:
    assert not [*find_differences(DRIVE, DRIVE | {name: "other"}, When.WITHIN_RUN)]


@pytest.mark.parametrize("name", ["model", "firmware", "serial", "wwn", "logical_block_bytes"])
def test_what_was_not_known_then_may_be_known_now(name: str) -> None:
    """A fact that was unknown when the run began may be known when the run is resumed, for example because another tool
    is now installed. The other facts still identify the drive. A fact that was known at the beginning must also be
    known when the run is resumed.
    """
    require_same_device(recorded(DRIVE | {name: None}), DRIVE)


def test_the_known_numbers_of_a_drive_may_not_be_unknown_now() -> None:
    for name in ("serial", "wwn", "model", "firmware"):
        with pytest.raises(DeviceError, match="not known, not"):
            require_same_device(recorded(DRIVE), DRIVE | {name: None})


@pytest.mark.parametrize(
    ("kind", "name"), [("file", "birth_time_ns"), ("partition", "partition_start_bytes"), ("loop device", "beneath")]
)
def test_a_run_file_without_a_fact_is_not_resumed(kind: str, name: str) -> None:
    """If a run file lacks a compared fact, the run is not resumed. Older versions of tkperf wrote such files. Without
    the fact, it is not certain that the run belongs to this device.
    """
    old = {key: value for key, value in recorded(KINDS[kind]).items() if key != name}
    with pytest.raises(DeviceError, match=r"does not contain the .*: start a new run"):
        require_same_device(old, KINDS[kind])


def test_a_run_file_without_facts_that_the_device_does_not_have_is_resumed() -> None:
    old = {key: value for key, value in recorded(DRIVE).items() if key not in ("beneath", "mapping_uuid")}
    require_same_device(old, DRIVE)


def test_simulated_drives_are_compared_by_their_preset() -> None:
    require_same_device(recorded(SIMULATED), SIMULATED)
    with pytest.raises(DeviceError, match="path sim:nvme-4kn, not sim:sata-ssd"):
        require_same_device(recorded(SIMULATED), SIMULATED | {"path": "sim:nvme-4kn"})


def test_results_of_two_partitions_are_no_results_of_one_thing() -> None:
    """Results of two partitions or of two namespaces belong to different devices. A drive without a serial number never
    counts as the same drive as another drive.
    """
    other = PARTITION | {"partition": 2, "partition_start_bytes": 2 << 20}
    assert find_measured_part(PARTITION) != find_measured_part(other)
    assert find_measured_part(DRIVE | {"unit": "namespace 2"}) != find_measured_part(DRIVE)
    assert find_measured_part(recorded(DRIVE) | {"firmware": "new"}) == find_measured_part(DRIVE)
    assert find_measured_part(WITHOUT_NUMBERS) is None


def test_the_page_lists_every_compared_fact() -> None:
    """The table in docs/how-to/resume.md has a row for each compared fact. The row contains the moments at which tkperf
    compares this fact.
    """
    section = PAGE.split("\n## Comparison of the device\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \|.*\| (yes|no) \| (yes|no)[^|]*\|$", section, re.MULTILINE)
    shown = {name: (within == "yes", resume == "yes") for name, within, resume in rows}
    assert shown == {fact.name: (fact.within_run, fact.at_resume) for fact in COMPARED}
