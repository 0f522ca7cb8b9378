"""A simulated host. A folder contains the part of sysfs and procfs that the audit reads. All settings have the values
that the audit recommends.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.printed_forms import load_forms
from tkperf.host.audit import Audit, AuditedDrive, AuditResult, audit_host
from tkperf.host.audit.audited_host import AuditedHost
from tkperf.model.choices import FIO_IO_ENGINES
from tkperf.model.errors import EngineError
from tkperf.system.process import Completed

# Monday, 5 January 2026, 12:00 UTC.
NOW_S = 1_767_614_400.0
BRIDGE = "sys/devices/pci0000:00/0000:00:01.0"
FUNCTION = f"{BRIDGE}/0000:01:00.0"
NVME = f"{FUNCTION}/nvme/nvme0/nvme0n1"
AHCI = "sys/devices/pci0000:00/0000:00:1f.2"
SATA = f"{AHCI}/ata1/host0/target0:0:0/0:0:0:0/block/sda"
SATA_TWO = f"{AHCI}/ata2/host1/target1:0:0/1:0:0:0/block/sdb"
POLICY = "sys/devices/system/cpu/cpufreq/policy"
CPU = "sys/devices/system/cpu"
STAT = "10 0 800 5 20 0 1600 9 0 10 14 0 0 0 0"

Files = Mapping[str, str | None]


def _queue(disk: str, number: str, *, rotates: bool = False) -> dict[str, str]:
    return {
        f"{disk}/dev": number,
        f"{disk}/diskseq": "7",
        f"{disk}/stat": STAT,
        f"{disk}/queue/scheduler": "[none] mq-deadline kyber bfq",
        f"{disk}/queue/nr_requests": "1023",
        f"{disk}/queue/rq_affinity": "1",
        f"{disk}/queue/nomerges": "0",
        f"{disk}/queue/wbt_lat_usec": "2000",
        f"{disk}/queue/io_poll": "0",
        f"{disk}/queue/read_ahead_kb": "128",
        f"{disk}/queue/max_sectors_kb": "1280",
        f"{disk}/queue/max_hw_sectors_kb": "2048",
        f"{disk}/queue/iostats": "1",
        f"{disk}/queue/rotational": str(int(rotates)),
    }


GOOD: dict[str, str] = {
    **_queue(NVME, "259:0"),
    f"{FUNCTION}/nvme/nvme0/transport": "pcie",
    f"{FUNCTION}/class": "0x010802",
    f"{FUNCTION}/numa_node": "0",
    f"{FUNCTION}/current_link_speed": "16.0 GT/s PCIe",
    f"{FUNCTION}/max_link_speed": "16.0 GT/s PCIe",
    f"{FUNCTION}/current_link_width": "4",
    f"{FUNCTION}/max_link_width": "4",
    f"{FUNCTION}/msi_irqs/40": "msix",
    f"{FUNCTION}/msi_irqs/41": "msix",
    f"{FUNCTION}/msi_irqs/42": "msix",
    f"{BRIDGE}/class": "0x060400",
    f"{BRIDGE}/current_link_speed": "16.0 GT/s PCIe",
    f"{BRIDGE}/current_link_width": "4",
    f"{BRIDGE}/max_link_speed": "16.0 GT/s PCIe",
    f"{BRIDGE}/max_link_width": "16",
    f"{NVME}/mq/0/cpu_list": "0",
    f"{NVME}/mq/1/cpu_list": "1",
    **{f"sys/kernel/irq/{irq}/actions": f"nvme0q{irq - 40}" for irq in (40, 41, 42)},
    "proc/irq/40/effective_affinity_list": "0",
    "proc/irq/41/effective_affinity_list": "0",
    "proc/irq/42/effective_affinity_list": "1",
    **_queue(SATA, "8:0"),
    **_queue(SATA_TWO, "8:16", rotates=True),
    f"{AHCI}/class": "0x010601",
    f"{AHCI}/irq": "24",
    "sys/kernel/irq/24/actions": "ahci",
    "proc/irq/24/effective_affinity_list": "1",
    f"{AHCI}/numa_node": "0",
    f"{AHCI}/ata1/host0/scsi_host/host0/link_power_management_policy": "max_performance",
    **{
        f"{POLICY}{cpu}/{name}": value
        for cpu in (0, 1)
        for name, value in {
            "scaling_governor": "performance",
            "scaling_available_governors": "performance powersave",
            "scaling_driver": "intel_pstate",
            "energy_performance_preference": "performance",
            "energy_performance_available_preferences": "default performance power",
            "scaling_max_freq": "3600000",
            "cpuinfo_max_freq": "3600000",
        }.items()
    },
    f"{CPU}/online": "0-1",
    f"{CPU}/intel_pstate/no_turbo": "0",
    f"{CPU}/cpuidle/current_driver": "intel_idle",
    f"{CPU}/cpu0/cpuidle/state1/name": "C1",
    f"{CPU}/cpu0/cpuidle/state1/latency": "2",
    f"{CPU}/cpu0/cpuidle/state1/disable": "0",
    f"{CPU}/vulnerabilities/meltdown": "Mitigation: PTI",
    f"{CPU}/vulnerabilities/mds": "Not affected",
    "sys/devices/system/node/node0/cpulist": "0-1",
    "sys/devices/system/node/node0/distance": "10",
    "sys/kernel/security/lockdown": "[none] integrity confidentiality",
    "sys/fs/cgroup/cgroup.controllers": "cpu io memory pids",
    "sys/fs/cgroup/user.slice/cpu.max": "max 100000",
    "sys/fs/cgroup/user.slice/memory.max": "max",
    "sys/fs/cgroup/user.slice/pids.max": "max",
    "sys/fs/cgroup/user.slice/io.max": "",
    "proc/self/cgroup": "0::/user.slice",
    "proc/self/limits": "Max processes             60000                60000                processes\n"
    "Max open files            1048576              1048576              files\n"
    "Max locked memory         8388608              8388608              bytes",
    "proc/cpuinfo": "processor : 0\nflags\t\t: fpu sse2",
    "proc/stat": "cpu  100 0 100 800 0 0 0 0 0 0",
    "proc/loadavg": "0.10 0.10 0.10 1/200 4000",
    "proc/pressure/cpu": "some avg10=0.20 avg60=0.10 avg300=0.00 total=1",
    "proc/pressure/io": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1",
    "proc/pressure/memory": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1",
    "proc/meminfo": "MemTotal: 16000000 kB\nMemAvailable: 12000000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB",
    "proc/swaps": "Filename Type Size Used Priority",
    "proc/sys/kernel/io_uring_disabled": "0",
    "proc/sys/kernel/random/boot_id": "boot-1",
    "proc/1/comm": "systemd",
    "proc/900/comm": "cron",
    "etc/crontab": "# nothing\n17 * * * * root cd / && run-parts --report /etc/cron.hourly",
}
_LINKS = {
    "sys/dev/block/259:0": NVME,
    "sys/dev/block/8:0": SATA,
    "sys/dev/block/8:16": SATA_TWO,
    "sys/block/nvme0n1": NVME,
    "sys/block/sda": SATA,
    "sys/block/sdb": SATA_TWO,
    f"{NVME}/device": f"{FUNCTION}/nvme/nvme0",
    f"{SATA}/device": SATA.removesuffix("/block/sda"),
    f"{SATA_TWO}/device": SATA_TWO.removesuffix("/block/sdb"),
    **{f"{folder}/subsystem": "sys/bus/pci" for folder in (BRIDGE, FUNCTION, AHCI)},
}


def list_timers(next_s: dict[str, float | None]) -> str:
    """Return the output of systemctl for timers that are due at these times in seconds since 1970. A timer with None
    has no next time.
    """
    rows = []
    for unit, at_s in next_s.items():
        moment = "null" if at_s is None else str(int(at_s * 1e6))
        rows.append(
            f'{{"next":{moment},"left":{moment},"last":null,"passed":null,"unit":"{unit}",'
            f'"activates":"{unit.removesuffix(".timer")}.service"}}'
        )
    return load_forms("systemctl")["timers"].fill(ROWS=",".join(rows)).stdout


TIMERS = list_timers({"man-db.timer": None})


def make_host(root: Path, changes: Files | None = None) -> Path:
    """Create a well-configured host with the given changes. A change maps a path to its text, or to None for a file
    that does not exist.
    """
    (root / "sys/bus/pci").mkdir(parents=True, exist_ok=True)
    for name, content in {**GOOD, **(changes or {})}.items():
        path = root / name
        if content is None:
            path.unlink(missing_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content + "\n" if content else "")
    for name, target in _LINKS.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_symlink():
            path.symlink_to(os.path.relpath(root / target, path.parent))
    return root


def answering(*answers: Completed | EngineError) -> Callable[..., Completed]:
    """Return a function that replaces the call of an external tool. Each call of this function returns the next answer.
    After the last answer, each further call returns the last answer again.
    """
    left = list(answers)

    def run(argv: list[str], *, timeout_s: float) -> Completed:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, EngineError):
            raise answer
        return answer

    return run


def site_of(root: Path, **settings: object) -> AuditedHost:
    given: dict[str, object] = {
        "engine": "fio",
        "ioengines": FIO_IO_ENGINES,
        "cpus": frozenset({0, 1}),
        "now_s": NOW_S,
        "ioengine": "io_uring",
        "run": answering(Completed(exit_status=0, stdout=TIMERS, stderr="")),
        **settings,
    }
    return AuditedHost(root=root, **given)  # type: ignore[arg-type]


def drive_of(root: Path, disk: str = NVME, name: str = "/dev/nvme0n1") -> AuditedDrive:
    return AuditedDrive(name=name, disk=root / disk)


def audit(root: Path, *, disk: str = NVME, meanwhile: Callable[[], None] = lambda: None, **settings: object) -> Audit:
    """Return the audit of a run on one drive. ``meanwhile`` is called while the audit watches the neighbours of the
    drive.
    """
    return audit_host(
        site_of(root, **settings),
        [drive_of(root, disk)],
        pause=lambda _: meanwhile(),
        clock=iter([float(i) for i in range(100)]).__next__,
    )


def find(audited: Audit, subject: str) -> AuditResult:
    (finding,) = [one for one in audited.findings if one.subject == subject]
    return finding
