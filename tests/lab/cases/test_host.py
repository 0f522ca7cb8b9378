"""The audit of a host and its tuning. The real drivers publish the facts about the drives."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.lab import disks
from tests.lab.cases.conftest import Drive, measure, shell, tkperf
from tkperf.analysis.sharing.groups import group_drives
from tkperf.device.identity import read_identity
from tkperf.host.paths import read_path
from tkperf.model.sharing import BudgetState, LinkGap, PartKind


def audit_of(drive: Drive) -> dict[str, dict[str, Any]]:
    """Return the findings of the audit. The key is the subject of a finding."""
    found = tkperf("doctor", drive.path, "--json")
    assert found.status == 0, found.stderr
    return {finding["subject"]: finding for finding in json.loads(found.stdout)["host"]}


def queue_of(drive: Drive) -> dict[str, str]:
    names = ("scheduler", "rq_affinity", "wbt_lat_usec", "nr_requests")
    return {name: drive.sysfs(f"queue/{name}") for name in names}


def test_an_nvme_drive(nvme: Drive) -> None:
    """The audit of an NVMe drive contains the I/O scheduler, the interrupt vectors and the queues of the drive. The
    audit also states that no other device shares the root port of the drive.
    """
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
    """The audit names the other drives of the same AHCI controller, even if they are idle. The audit also names the
    other namespaces of the same NVMe controller.
    """
    second = drive_of(disks.SATA_SECOND)
    users = audit_of(sata)["other users of its link"]
    assert users["level"] in ("note", "advice")
    assert second.name in users["found"]
    assert "on the controller 0000:00:" in users["found"]
    reader = subprocess.Popen(
        ["sh", "-c", f"while dd if={second.path} of=/dev/null bs=1M iflag=direct status=none; do :; done"],
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


def test_paths_of_drives(drive_of: Callable[[disks.Disk], Drive]) -> None:
    """For each bus, tkperf finds the parts of the path to a drive, such as links and shared controllers. If the
    bandwidth of a part is not known, tkperf states the reason.
    """
    listed = (
        disks.NVME,
        disks.NVME_TWO,
        disks.SATA,
        disks.SATA_SECOND,
        disks.SAS,
        disks.VIRTIO_SCSI,
        disks.USB,
        disks.RAID_MEMBERS[0],
    )
    nodes = [drive_of(disk).path for disk in listed]
    nodes.append(Path(f"{str(nodes[1]).removesuffix('n1')}n2"))
    paths = [read_path(read_identity(node)) for node in nodes]
    for path in paths:
        sys.stdout.write(f"{path}\n")
    nvme, two, sata, second, sas, scsi, usb, virtio, sibling = paths
    assert [(part.kind, part.gap) for part in nvme.parts] == [(PartKind.DRIVE_LINK, LinkGap.VIRTUAL)]
    assert two.parts == sibling.parts != nvme.parts
    assert [part.bytes_per_s for part in sata.parts] == [150_000_000, None]
    assert (sata.parts[0].name, sata.parts[1]) == (f"SATA port {sata.slot}", second.parts[1])
    assert sata.parts[1].gap is LinkGap.INTEGRATED
    assert sata.parts[1].name.endswith("(ahci)")
    assert [part.kind for part in sas.parts] == [PartKind.DRIVE_LINK, PartKind.CONTROLLER]
    assert sas.parts[0].name.startswith("SAS link end_device-")
    for virtual in (scsi, virtio):
        assert [part.gap for part in virtual.parts] == [LinkGap.VIRTUAL] * 2
    assert usb.parts[0].name.startswith("USB port ")
    assert {(path.numa_node, path.near_cpus) for path in paths} == {(0, (0, 1))}
    group, *others = group_drives(paths, "auto")
    assert not others
    assert group.state is BudgetState.NOT_KNOWN


def test_tune_and_restore(nvme: Drive, sata: Drive, tmp_path: Path) -> None:
    """``tkperf tune`` and a run with --tune set, verify and restore the settings of the named drive, and of no other
    drive.
    """
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
