"""The audit of a host and its tuning, by what the real drivers show of a drive."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.lab import disks
from tests.lab.cases.conftest import Drive, measure, shell, tkperf


def audit_of(drive: Drive) -> dict[str, dict[str, Any]]:
    """Findings by subject."""
    found = tkperf("doctor", drive.path, "--json")
    assert found.status == 0, found.stderr
    return {finding["subject"]: finding for finding in json.loads(found.stdout)["host"]}


def queue_of(drive: Drive) -> dict[str, str]:
    names = ("scheduler", "rq_affinity", "wbt_lat_usec", "nr_requests")
    return {name: drive.sysfs(f"queue/{name}") for name in names}


def test_an_nvme_drive(nvme: Drive) -> None:
    """Its queue, its vectors and queues, and that nobody else hangs on its root port."""
    shell(f"echo mq-deadline > /sys/block/{nvme.name}/queue/scheduler")
    findings = audit_of(nvme)
    scheduler = findings["I/O scheduler"]
    assert (scheduler["level"], scheduler["found"]) == ("advice", "mq-deadline")
    assert scheduler["command"] == f"echo none | sudo tee /sys/block/{nvme.name}/queue/scheduler"
    assert findings["interrupts"]["level"] in ("ok", "advice")
    assert "vector" in findings["interrupts"]["found"]
    cpus = len(shell("ls -d /sys/devices/system/cpu/cpu[0-9]*").split())
    assert findings["NVMe queues"]["found"] == f"{cpus} for {cpus} CPUs"
    assert findings["other users of its link"]["found"].startswith("no other drive")
    assert findings["link"]["found"].startswith("PCIe gen 1 x1")
    assert findings["virtual machine"]["found"].startswith("yes")
    assert findings["timers due within the run"]["level"] == "not known"
    shell(scheduler["command"].replace("sudo ", ""))
    assert audit_of(nvme)["I/O scheduler"]["level"] == "ok"


def test_who_shares_a_controller(sata: Drive, drive_of: Callable[[disks.Disk], Drive]) -> None:
    """Drives of one AHCI controller, idle and busy, and namespaces of one NVMe controller."""
    second = drive_of(disks.SATA_SECOND)
    users = audit_of(sata)["other users of its link"]
    assert users["level"] in ("note", "advice")
    assert second.name in users["found"]
    assert "on the controller 0000:00:" in users["found"]
    reader = subprocess.Popen(
        [
            "sh",
            "-c",
            f"while dd if={second.path} of=/dev/null bs=1M iflag=direct status=none; do :; done",
        ],
        start_new_session=True,
    )
    try:
        users = audit_of(sata)["other users of its link"]
    finally:
        subprocess.run(["pkill", "-g", str(reader.pid)], check=False)
        reader.wait()
    assert users["level"] == "would disturb"
    assert users["found"].startswith(f"busy now: {second.name} ")
    two = drive_of(disks.NVME_TWO)
    assert two.name.endswith("n1")
    users = audit_of(two)["other users of its link"]
    assert two.name.removesuffix("n1") + "n2" in users["found"]


def test_tune_and_restore(nvme: Drive, sata: Drive, tmp_path: Path) -> None:
    """By the command and by a run: the named drive alone is set, verified, and put back."""
    for drive in (nvme, sata):
        shell(f"echo mq-deadline > /sys/block/{drive.name}/queue/scheduler")
    shell(f"echo 64 > /sys/block/{nvme.name}/queue/nr_requests")
    before, other = queue_of(nvme), queue_of(sata)
    shown = tkperf("tune", nvme.path)
    assert "nothing was set" in shown.stdout
    assert queue_of(nvme) == before
    applied = tkperf("tune", nvme.path, "--apply")
    assert applied.status == 0, applied.stderr
    tuned = queue_of(nvme)
    assert tuned["scheduler"].startswith("[none]")
    assert (tuned["rq_affinity"], tuned["wbt_lat_usec"]) == ("2", "0")
    assert queue_of(sata) == other
    restored = tkperf("tune", "--restore")
    assert restored.status == 0, restored.stderr
    assert queue_of(nvme) == before
    assert "nothing to put back" in tkperf("tune", "--restore").stdout
    results = measure(tmp_path, nvme, "-ssdt", "lat", "--tune")
    host = results["info"]["hosts"][0]
    path = f"/sys/block/{nvme.name}/queue/scheduler"
    assert f"{path}: mq-deadline -> none" in host["tuned"]
    found = {row["subject"]: row["found"] for row in host["audit"]}
    assert found["I/O scheduler"] == "none"
    assert queue_of(nvme) == before
    shell(f"echo none > /sys/block/{nvme.name}/queue/scheduler")
