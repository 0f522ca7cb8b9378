"""Software RAID: made of purged members, measured in sync, taken down on request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.lab.cases.conftest import Drive, shell, tkperf

MIB = 1 << 20


def run(
    folder: Path, members: list[Drive], level: int, *arguments: object
) -> tuple[int, str, dict[str, Any]]:
    config = folder / "raid.json"
    paths = [str(member.path) for member in members]
    config.write_text(json.dumps({"devices": paths, "raidlevel": level, "type": "sw_mdadm"}))
    ended = tkperf(
        "raid", "case", "/dev/md7", "-c", config, "--output", folder,
        "--profile", Path(__file__).parent / "lab.toml", "--progress", "plain",
        "--yes-destroy", ",".join(member.serial for member in members), *arguments,
    )  # fmt: skip
    if ended.status:
        return ended.status, ended.stderr, {}
    return 0, ended.stderr, json.loads(tkperf("show", "--json", folder / "case.tkperf").stdout)


@pytest.mark.parametrize(
    ("level", "count", "tests"),
    [
        pytest.param(1, 2, ("iops",), marks=pytest.mark.core),
        (0, 2, ("iops", "writesat")),
        (5, 3, ("tp",)),
        (10, 4, ("iops",)),
    ],
)
def test_level(
    members: list[Drive], tmp_path: Path, level: int, count: int, tests: tuple[str, ...]
) -> None:
    """Members purged and written twice in full, the set measured, nothing left of it in the end."""
    used = members[:count]
    before = [member.written_bytes() for member in used]
    options = [word for test in tests for word in ("-ssdt", test)]
    status, said, results = run(tmp_path, used, level, *options, "--remove-set")
    assert status == 0, said
    assert results["status"] == "complete"
    section = results["tests"][0]["sections"][0]
    assert section["purge"]["method"].startswith(f"{count} members in parallel: block discard")
    assert section["filled_bytes"] == 2 * sum(member.size_bytes for member in used)
    for member, earlier in zip(used, before, strict=True):
        assert member.written_bytes() - earlier >= 2 * member.size_bytes
    device = results["info"]["device"]
    assert device["raid"].startswith(f"MD RAID {level} over {count} devices")
    assert [member["serial"] for member in device["members"]] == [each.serial for each in used]
    assert not Path("/sys/block/md7/md").exists()
    assert "linux_raid_member" not in shell(f"wipefs --json --no-act {used[0].path}")


@pytest.mark.core
def test_a_member_in_use_stops_it_before_anything_is_touched(
    members: list[Drive], tmp_path: Path
) -> None:
    """One mounted member: refused by name, the others untouched."""
    used = members[1]
    shell(f"mkfs.ext4 -q -F {used.path} && mkdir -p /mnt/case && mount {used.path} /mnt/case")
    before = [member.written_bytes() for member in members]
    try:
        status, said, _ = run(tmp_path, members[:2], 1)
    finally:
        shell("umount /mnt/case")
    assert status == 3
    assert f"{used.name} is mounted at /mnt/case" in said
    assert members[0].written_bytes() == before[0]


@pytest.mark.core
def test_a_set_that_exists_is_not_touched(members: list[Drive], tmp_path: Path) -> None:
    """DEVICE is somebody's set already."""
    shell(f"mdadm --create /dev/md7 --run --force --level=0 --raid-devices=2 "
          f"{members[2].path} {members[3].path}")  # fmt: skip
    try:
        status, said, _ = run(tmp_path, members[:2], 1)
        assert status == 3
        assert "is a RAID set already" in said
    finally:
        shell(f"mdadm --stop /dev/md7; udevadm settle; "
              f"mdadm --zero-superblock {members[2].path} {members[3].path}")  # fmt: skip


def test_consent_names_every_member(members: list[Drive], tmp_path: Path) -> None:
    """One serial for two members does not do."""
    config = tmp_path / "raid.json"
    paths = [str(member.path) for member in members[:2]]
    config.write_text(json.dumps({"devices": paths, "raidlevel": 1, "type": "sw_mdadm"}))
    ended = tkperf("raid", "case", "/dev/md7", "-c", config, "--yes-destroy", members[0].serial,
                   "--output", tmp_path)  # fmt: skip
    assert ended.status == 3
    assert "expected 'LABRAID1,LABRAID2'" in ended.stderr
