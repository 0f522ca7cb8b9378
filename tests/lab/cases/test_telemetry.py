"""Telemetry of emulated drives during a run, read with the real tools."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lab import disks
from tests.lab.cases.conftest import Drive, Monitor, measure, shell, tkperf
from tests.lab.disks import Disk

# Bit 1 of the critical warning means that the temperature is beyond a limit.
TEMPERATURE_WARNING = 2
# NVMe counts in data units of this size. Each reported value is rounded up to a whole unit.
DATA_UNIT_BYTES = 512_000


def told(results: dict[str, Any]) -> dict[str, Any]:
    """Return the telemetry of the only drive in the first test."""
    (drive,) = results["tests"][0]["telemetry"]
    assert isinstance(drive, dict)
    return drive


def test_an_nvme_drive_tells(nvme: Drive, tmp_path: Path) -> None:
    """The telemetry of an NVMe drive contains its temperature and the amount that the host wrote. This amount equals
    the amount that fio wrote.
    """
    results = measure(tmp_path, nvme, "-ssdt", "iops")
    drive, (facts,) = told(results), results["info"]["device"]["telemetry"]
    assert (facts["drive"], facts["serial"]) == (str(nvme.path), nvme.serial)
    assert facts["sources"][0].startswith("nvme-cli ")
    assert drive["temperature_most_c"] == 50  # QEMU reports 323 K
    beside = drive["host_written_bytes"] - drive["load_written_bytes"]
    assert abs(beside) <= 2 * DATA_UNIT_BYTES, drive
    assert (drive["media_errors"], drive["percentage_used_growth"], drive["power_state"]) == (0, 0, 0)
    assert (drive["nand_written_bytes"], drive["write_amplification"]) == (None, None)
    assert drive["throttled_s"] == 0
    assert "telemetry" not in {warning["code"] for warning in results["warnings"]}


def test_a_sata_drive_tells(sata: Drive, tmp_path: Path) -> None:
    """The telemetry of a SATA drive contains its temperature. No database contains the units of the counters of the
    emulated drive, so no amount is computed from them.
    """
    results = measure(tmp_path, sata, "-ssdt", "iops")
    drive, (facts,) = told(results), results["info"]["device"]["telemetry"]
    assert facts["serial"] == sata.serial
    assert facts["sources"][0].startswith("smartctl 7")
    assert 0 < drive["temperature_most_c"] < 100
    assert drive["host_written_bytes"] is None
    assert drive["power_on_hours"] is not None


@pytest.mark.parametrize("disk", [disks.USB, disks.VIRTIO_SCSI], ids=["usb", "scsi"])
def test_a_drive_without_a_log_is_measured_all_the_same(
    drive_of: Callable[[Disk], Drive], disk: Disk, tmp_path: Path
) -> None:
    """A drive without a log, such as a USB stick or an emulated SCSI disk, is measured without a warning about
    telemetry.
    """
    results = measure(tmp_path, drive_of(disk), "-ssdt", "iops", "--no-purge")
    assert results["status"] == "complete"
    assert "telemetry" not in {warning["code"] for warning in results["warnings"]}


def test_a_hot_drive_is_called_throttled(nvme: Drive, tmp_path: Path, monitor: Monitor) -> None:
    """If the temperature bit in the critical warning of a drive is set, all steps are marked as throttled, and the
    results contain a THROTTLED notice.
    """
    path = f"/machine/peripheral/{nvme.serial}"
    how = {"path": path, "property": "smart_critical_warning"}
    monitor("qom-set", **how, value=TEMPERATURE_WARNING)
    try:
        results = measure(tmp_path, nvme, "-ssdt", "iops")
    finally:
        monitor("qom-set", **how, value=0)
    assert any(notice.startswith("THROTTLED") for notice in results["info"]["notices"])
    assert "throttled" in {warning["code"] for warning in results["warnings"]}
    (test,) = results["tests"]
    assert test["disturbed_steps"]["throttled"] > 0
    assert told(results)["throttled_s"] > 0


def test_members_tell_each_for_itself(nvme: Drive, nvme_pulled: Drive, tmp_path: Path) -> None:
    """The results contain the counter of each NVMe drive of a mirror. Each counter shows the amount that was written to
    the set.
    """
    config = {"type": "sw_mdadm", "devices": [str(nvme.path), str(nvme_pulled.path)], "raidlevel": 1}
    (tmp_path / "raid.json").write_text(json.dumps(config))
    ended = tkperf(
        "raid",
        "set",
        "/dev/md7",
        "-c",
        tmp_path / "raid.json",
        "--profile",
        Path(__file__).parent / "lab.toml",
        "-ssdt",
        "iops",
        "--output",
        tmp_path,
        "--yes-destroy",
        f"{nvme.serial},{nvme_pulled.serial}",
        "--remove-set",
        "--progress",
        "plain",
    )
    assert ended.status == 0, ended.stderr
    results = json.loads(tkperf("show", "--json", tmp_path / "set.tkperf").stdout)
    drives = {drive["drive"]: drive for drive in results["tests"][0]["telemetry"]}
    assert set(drives) == {str(nvme.path), str(nvme_pulled.path)}
    for drive in drives.values():
        assert drive["temperature_most_c"] == 50
        assert drive["load_written_bytes"] is None
        assert drive["host_written_bytes"] > 0


def test_doctor_says_what_there_would_be(nvme: Drive, sata: Drive) -> None:
    """``tkperf doctor`` names the same sources of telemetry that a run would use."""
    assert "smart-log" in tkperf("doctor", nvme.path).stdout
    assert "smartctl 7" in tkperf("doctor", sata.path).stdout
    document = json.loads(tkperf("doctor", "--json", nvme.path).stdout)
    assert document["telemetry"]["facts"]["serial"] == nvme.serial
    assert document["telemetry"]["reading"]["temperature_c"] == 50


def test_what_a_reading_costs_can_be_measured(nvme: Drive) -> None:
    """bench/telemetry.py prints the cost of a reading as ratios. Its output is stored with the output of the lab."""
    printed = shell(f"python bench/telemetry.py {nvme.path} --pairs 3 --seconds 3 2>&1")
    (Path("/lab") / "telemetry.txt").write_text(printed)
    assert "a reading of the log: " in printed
    assert printed.count("ratio to without: with ") == 2 * 5
