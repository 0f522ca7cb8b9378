"""Software RAID sets. They are created from purged members, measured after synchronisation, and removed on request."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.device.fakes import STORCLI, FakeTools
from tests.lab.cases.conftest import Drive, shell, tkperf

MIB = 1 << 20


def run(folder: Path, members: list[Drive], level: int, *arguments: object) -> tuple[int, str, dict[str, Any]]:
    config = folder / "raid.json"
    paths = [str(member.path) for member in members]
    config.write_text(json.dumps({"devices": paths, "raidlevel": level, "type": "sw_mdadm"}))
    ended = tkperf(
        "raid",
        "case",
        "/dev/md7",
        "-c",
        config,
        "--output",
        folder,
        "--profile",
        Path(__file__).parent / "lab.toml",
        "--progress",
        "plain",
        "--yes-destroy",
        ",".join(member.serial for member in members),
        *arguments,
    )
    if ended.status:
        return ended.status, ended.stderr, {}
    return 0, ended.stderr, json.loads(tkperf("show", "--json", folder / "case.tkperf").stdout)


@pytest.mark.parametrize(
    ("level", "count", "tests"),
    [
        pytest.param(1, 2, ("lat",), marks=pytest.mark.core),
        (0, 2, ("iops", "writesat")),
        (5, 3, ("tp",)),
        (10, 4, ("iops",)),
    ],
)
def test_level(members: list[Drive], tmp_path: Path, level: int, count: int, tests: tuple[str, ...]) -> None:
    """For each RAID level, the members are purged, each member is written completely twice, and the set is measured. No
    part of the set remains afterwards.
    """
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
def test_a_member_in_use_stops_it_before_anything_is_touched(members: list[Drive], tmp_path: Path) -> None:
    """A mounted member is refused with its name before any write. The other members remain unchanged."""
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
    """If DEVICE is already a RAID set that tkperf did not create, the run is refused and does not change this set."""
    shell(f"mdadm --create /dev/md7 --run --force --level=0 --raid-devices=2 {members[2].path} {members[3].path}")
    try:
        status, said, _ = run(tmp_path, members[:2], 1)
        assert status == 3
        assert "is already a RAID set" in said
    finally:
        shell(f"mdadm --stop /dev/md7; udevadm settle; mdadm --zero-superblock {members[2].path} {members[3].path}")


def test_consent_names_every_member(members: list[Drive], tmp_path: Path) -> None:
    """Consent to a RAID set must name every member. A single serial number for two members is refused."""
    config = tmp_path / "raid.json"
    paths = [str(member.path) for member in members[:2]]
    config.write_text(json.dumps({"devices": paths, "raidlevel": 1, "type": "sw_mdadm"}))
    ended = tkperf("raid", "case", "/dev/md7", "-c", config, "--yes-destroy", members[0].serial, "--output", tmp_path)
    assert ended.status == 3
    assert "expected 'LABRAID1,LABRAID2'" in ended.stderr


def test_megaraid_with_a_stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A set of type hw_lsi is created, measured and removed with a stand-in for storcli. A scsi_debug disk serves as
    the virtual drive.
    """
    shell("modprobe scsi_debug dev_size_mb=96 lbpu=1 delay=0 lbprz=1 && udevadm settle")
    try:
        path = shell("lsblk -nrdo PATH,MODEL | awk '$2 ~ /scsi_debug/ {print $1}'").strip()
        wwid = Path(f"/sys/block/{Path(path).name}/device/wwid").read_text().strip()
        tools = FakeTools(tmp_path / "tools", monkeypatch)
        tools.install("storcli64", STORCLI)
        drives = {f"252:{slot}": {"State": "UGood", "SN": f"SERIAL{slot}"} for slot in range(2)}
        scsi = Path(f"/sys/block/{Path(path).name}/device").resolve()
        host = next(part for part in scsi.parts if re.fullmatch(r"host\d+", part))
        # The disk appears and disappears together with the virtual drive, always with the same name.
        hide = f"echo 1 > {scsi}/delete && udevadm settle"
        show = f"echo '- - -' > /sys/class/scsi_host/{host}/scan && udevadm settle && test -b {path}"
        shell(hide)
        tools.update(
            drives=drives,
            vds={},
            device=path,
            naa=wwid.removeprefix("naa."),
            init_polls=1,
            erase_takes_polls=1,
            on_add=show,
            on_delete=hide,
        )
        config = tmp_path / "raid.json"
        config.write_text(
            json.dumps(
                {
                    "devices": ["252:0", "252:1"],
                    "raidlevel": "1",
                    "type": "hw_lsi",
                    "readpolicy": "nora",
                    "writepolicy": "wt",
                    "stripsize": "256",
                }
            )
        )
        ended = tkperf(
            "raid",
            "case",
            path,
            "-c",
            config,
            "--output",
            tmp_path,
            "-ssdt",
            "iops",
            "--profile",
            Path(__file__).parent / "lab.toml",
            "--progress",
            "plain",
            "--yes-destroy",
            "SERIAL0,SERIAL1",
            "--remove-set",
        )
        assert ended.status == 0, ended.stderr
        results = json.loads(tkperf("show", "--json", tmp_path / "case.tkperf").stdout)
        section = results["tests"][0]["sections"][0]
        assert section["purge"]["method"] == "MegaRAID drive erase, simple: overwritten once"
        assert results["info"]["device"]["raid"].startswith("MegaRAID RAID 1 over 2 drives")
        assert tools.state["vds"] == {}
        commanded = [" ".join(call[1:-1]) for call in tools.calls if "show" not in call]
        assert commanded == [
            "/c0 add vd type=raid1 drives=252:0,252:1 wt nora strip=256",
            "/c0/v3 delete force",
            "/c0/e252/s0 start erase simple",
            "/c0/e252/s1 start erase simple",
            "/c0 add vd type=raid1 drives=252:0,252:1 wt nora strip=256",
            "/c0/v3 start init full",
            "/c0/v3 delete force",
        ]
    finally:
        shell("udevadm settle; modprobe -r scsi_debug")
