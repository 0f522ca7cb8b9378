"""Findings of the audit on well-configured hosts and on hosts with unsuitable settings."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.host.fake_host import (
    AHCI,
    BRIDGE,
    CPU,
    FUNCTION,
    NOW_S,
    NVME,
    POLICY,
    SATA,
    SATA_TWO,
    TIMERS,
    Files,
    answering,
    audit,
    drive_of,
    find,
    list_timers,
    make_host,
    site_of,
)
from tests.printed_forms import load_forms
from tkperf.host.audit import AuditLevel, audit_host
from tkperf.host.audit.audited_host import AuditedHost
from tkperf.model.choices import FIO_IO_ENGINES
from tkperf.model.errors import EngineError
from tkperf.system.process import Completed

OK, NOTE, ADVICE, DISTURBS, UNKNOWN = (
    AuditLevel.OK,
    AuditLevel.NOTE,
    AuditLevel.ADVICE,
    AuditLevel.DISTURBS,
    AuditLevel.NOT_KNOWN,
)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A host whose files differ by ``changes``. ``found`` is the beginning of the expected finding, and ``command`` is
    part of the command that corrects the setting.
    """

    subject: str
    changes: Files = field(default_factory=dict)
    level: AuditLevel
    found: str
    command: str | None = None
    disk: str = NVME
    settings: dict[str, Any] = field(default_factory=dict)


def timers(*rows: tuple[str, float]) -> dict[str, object]:
    listed = list_timers({unit: NOW_S + in_s for unit, in_s in rows})
    return {"run": answering(Completed(exit_status=0, stdout=listed, stderr=""))}


def prints(text: str) -> dict[str, object]:
    return {"run": answering(Completed(exit_status=1, stdout="", stderr=text))}


CASES = (
    Case(subject="CPU governor", level=OK, found="performance"),
    Case(
        subject="CPU governor",
        changes={f"{POLICY}1/scaling_governor": "powersave"},
        level=ADVICE,
        found="performance (1 of 2 policies), powersave (1 of 2 policies)",
        command="echo performance | sudo tee /sys/devices/system/cpu/cpufreq/policy*/scaling_governor",
    ),
    Case(
        subject="CPU governor",
        changes={
            f"{POLICY}{n}/{key}": value
            for n in (0, 1)
            for key, value in (("scaling_governor", "powersave"), ("scaling_driver", "acpi-cpufreq"))
        },
        level=DISTURBS,
        found="powersave, which holds the lowest frequency",
    ),
    Case(
        subject="CPU governor",
        changes={f"{POLICY}{n}/scaling_governor": None for n in (0, 1)},
        level=UNKNOWN,
        found="not known: the kernel shows no frequency control",
    ),
    Case(subject="energy preference", level=OK, found="performance"),
    Case(
        subject="energy preference",
        changes={f"{POLICY}{n}/energy_performance_preference": "power" for n in (0, 1)},
        level=ADVICE,
        found="power",
        command="energy_performance_preference",
    ),
    Case(subject="CPU frequency limit", level=OK, found="none"),
    Case(
        subject="CPU frequency limit",
        changes={f"{POLICY}1/scaling_max_freq": "1200000"},
        level=ADVICE,
        found="1200 MHz of 3600 MHz in 1 of 2 policies",
        command="scaling_max_freq",
    ),
    Case(
        subject="CPU frequency limit",
        changes={f"{POLICY}1/scaling_max_freq": "rubbish"},
        level=UNKNOWN,
        found="not known: policy1 does not show it",
    ),
    Case(subject="turbo", level=NOTE, found="on"),
    Case(subject="turbo", changes={f"{CPU}/intel_pstate/no_turbo": None}, level=UNKNOWN, found="not known"),
    Case(subject="idle states", level=OK, found="as deep as C1, 2 µs"),
    Case(
        subject="idle states",
        changes={
            f"{CPU}/cpu1/cpuidle/state3/name": "C6",
            f"{CPU}/cpu1/cpuidle/state3/latency": "133",
            f"{CPU}/cpu1/cpuidle/state3/disable": "0",
        },
        level=ADVICE,
        found="as deep as C6, 133 µs to wake up (driver intel_idle)",
        command="sudo cpupower idle-set --disable-by-latency 20",
    ),
    Case(
        subject="idle states",
        changes={
            f"{CPU}/cpu1/cpuidle/state3/name": "C6",
            f"{CPU}/cpu1/cpuidle/state3/latency": "133",
            f"{CPU}/cpu1/cpuidle/state3/disable": "1",
        },
        level=OK,
        found="as deep as C1",
    ),
    Case(subject="CPU mitigations", level=NOTE, found="1 in use: meltdown"),
    Case(
        subject="CPU mitigations",
        changes={f"{CPU}/vulnerabilities/mds": "Vulnerable"},
        level=NOTE,
        found="1 in use: meltdown; vulnerable: mds",
    ),
    Case(subject="I/O scheduler", level=OK, found="none"),
    Case(
        subject="I/O scheduler",
        changes={f"{NVME}/queue/scheduler": "none [bfq]"},
        level=ADVICE,
        found="bfq",
        command="echo none | sudo tee /sys/block/nvme0n1/queue/scheduler",
    ),
    Case(
        subject="I/O scheduler",
        changes={f"{SATA_TWO}/queue/scheduler": "none [mq-deadline]"},
        level=OK,
        found="mq-deadline",
        disk=SATA_TWO,
    ),
    Case(subject="I/O scheduler", changes={f"{NVME}/queue/scheduler": None}, level=UNKNOWN, found="not known"),
    Case(
        subject="requests of the queue",
        level=OK,
        found="1023 in each of 2 hardware queues",
        settings={"outstanding": 2046},
    ),
    Case(
        subject="requests of the queue",
        level=ADVICE,
        settings={"outstanding": 2047},
        found="1023 in each of 2 hardware queues, 2047 I/Os will be outstanding",
        command="echo 2047 | sudo tee /sys/block/nvme0n1/queue/nr_requests",
    ),
    Case(subject="completion affinity", level=NOTE, found="rq_affinity 1: a CPU near"),
    Case(subject="merging", changes={f"{NVME}/queue/nomerges": "2"}, level=NOTE, found="off (nomerges 2)"),
    Case(subject="writeback throttling", level=NOTE, found="target 2000 µs"),
    Case(
        subject="writeback throttling", changes={f"{NVME}/queue/wbt_lat_usec": None}, level=UNKNOWN, found="not known"
    ),
    Case(subject="largest request", level=OK, found="1280 KiB, the hardware takes 2048 KiB"),
    Case(subject="largest request", changes={f"{NVME}/queue/max_sectors_kb": "512"}, level=NOTE, found="512 KiB"),
    Case(
        subject="I/O statistics",
        changes={f"{NVME}/queue/iostats": "0"},
        level=ADVICE,
        found="off",
        command="echo 1 | sudo tee /sys/block/nvme0n1/queue/iostats",
    ),
    Case(subject="other queue settings", level=NOTE, found="polling off, read-ahead 128 KiB"),
    Case(subject="interrupts", level=OK, found="3 vectors (IRQ 40-42) on CPUs 0-1"),
    Case(
        subject="interrupts",
        changes={"proc/irq/42/effective_affinity_list": "0"},
        level=ADVICE,
        found="3 vectors (IRQ 40-42) on CPU 0",
        command="for i in 40 41 42; do echo 0-1",
    ),
    Case(
        subject="interrupts",
        level=ADVICE,
        settings={"cpus": frozenset({7})},
        found="3 vectors (IRQ 40-42) on CPUs 0-1; tkperf may run on CPUs 7 only",
    ),
    Case(subject="interrupts", disk=SATA, level=OK, found="1 vector (IRQ 24) on CPU 1"),
    Case(subject="interrupts", changes={f"{AHCI}/irq": "0"}, disk=SATA, level=UNKNOWN, found="not known"),
    Case(subject="NVMe queues", level=OK, found="2 for 2 CPUs"),
    Case(subject="NVMe queues", changes={f"{CPU}/online": "0-7"}, level=NOTE, found="2 for 8 CPUs"),
    Case(subject="irqbalance", level=OK, found="does not run"),
    Case(subject="irqbalance", changes={"proc/77/comm": "irqbalance"}, level=OK, found="runs, but"),
    Case(
        subject="irqbalance",
        changes={"proc/77/comm": "irqbalance"},
        disk=SATA,
        level=ADVICE,
        found="runs",
        command="sudo systemctl stop irqbalance",
    ),
    Case(subject="NUMA node", level=OK, found="the host has one"),
    Case(
        subject="NUMA node",
        level=ADVICE,
        settings={"cpus": frozenset({0, 1, 2})},
        changes={"sys/devices/system/node/node1/cpulist": "2-3", "sys/devices/system/node/node0/distance": "10 21"},
        found="drive at node 0; 2 of the 3 CPUs that may run are there, the others at distance up to 21",
        command="numactl --cpunodebind=0 --membind=0 tkperf",
    ),
    Case(
        subject="NUMA node",
        level=DISTURBS,
        settings={"cpus": frozenset({2})},
        changes={"sys/devices/system/node/node1/cpulist": "2-3"},
        found="drive at node 0; 0 of the 1 CPUs",
    ),
    Case(
        subject="NUMA node",
        level=UNKNOWN,
        found="not known: the firmware does not give it",
        changes={"sys/devices/system/node/node1/cpulist": "2-3", f"{FUNCTION}/numa_node": "-1"},
    ),
    Case(subject="link", level=OK, found="PCIe gen 4 x4, its fastest"),
    Case(
        subject="link",
        changes={f"{FUNCTION}/current_link_width": "2"},
        level=ADVICE,
        found="PCIe gen 4 x2, the drive could do PCIe gen 4 x4",
    ),
    Case(subject="link", changes={f"{FUNCTION}/current_link_speed": None}, level=UNKNOWN, found="not known"),
    Case(
        subject="link",
        changes={f"{FUNCTION}/current_link_speed": "Unknown"},
        level=NOTE,
        found="PCIe x4, its current speed or width is not known",
    ),
    Case(
        subject="link",
        changes={f"{FUNCTION}/max_link_speed": "Unknown"},
        level=NOTE,
        found="PCIe gen 4 x4, its fastest rate is not known",
    ),
    Case(
        subject="link",
        changes={f"{FUNCTION}/max_link_width": "255"},
        level=NOTE,
        found="PCIe gen 4 x4, its fastest rate is not known",
    ),
    Case(
        subject="link",
        changes={f"{FUNCTION}/max_link_speed": "Unknown", f"{FUNCTION}/current_link_width": "2"},
        level=ADVICE,
        found="PCIe gen 4 x2, the drive could do PCIe x4",
    ),
    Case(
        subject="link upstream",
        changes={f"{BRIDGE}/current_link_speed": "5.0 GT/s PCIe"},
        level=ADVICE,
        found="PCIe gen 2 x4 at bridge 0000:00:01.0, less than",
    ),
    Case(subject="link power management", disk=SATA, level=OK, found="max_performance"),
    Case(
        subject="link power management",
        disk=SATA,
        level=ADVICE,
        found="med_power_with_dipm",
        changes={f"{AHCI}/ata1/host0/scsi_host/host0/link_power_management_policy": "med_power_with_dipm"},
        command="tee /sys/class/scsi_host/host0/link_power_management_policy",
    ),
    Case(
        subject="link power management",
        level=ADVICE,
        found="PCIe ASPM policy powersupersave",
        changes={"sys/module/pcie_aspm/parameters/policy": "default performance powersave [powersupersave]"},
        command="pcie_aspm",
    ),
    Case(subject="other users of its link", level=OK, found="no other drive"),
    Case(
        subject="other users of its link",
        disk=SATA,
        level=NOTE,
        found="idle for the moment (sdb on the controller 0000:00:1f.2)",
    ),
    Case(
        subject="other users of its link",
        disk=SATA,
        changes={f"{SATA_TWO}/stat": "rubbish"},
        level=UNKNOWN,
        found="idle for the moment; not known of sdb",
    ),
    Case(subject="virtual machine", level=OK, found="no"),
    Case(
        subject="virtual machine",
        changes={"proc/cpuinfo": "flags : fpu hypervisor", "sys/class/dmi/id/sys_vendor": "QEMU"},
        level=NOTE,
        found="yes (QEMU); 0 % of CPU time stolen since boot",
    ),
    Case(
        subject="virtual machine",
        changes={"proc/cpuinfo": "flags : fpu hypervisor", "proc/stat": "cpu 100 0 100 780 0 0 0 20 0 0"},
        level=ADVICE,
        found="yes; 2 % of CPU time",
    ),
    Case(subject="virtual machine", changes={"proc/cpuinfo": None}, level=UNKNOWN, found="not known"),
    Case(subject="io_uring", level=OK, found="fio can use it; open to all (io_uring_disabled 0)"),
    Case(
        subject="io_uring",
        changes={"proc/sys/kernel/io_uring_disabled": "2"},
        level=ADVICE,
        settings={"ioengine": "libaio", "instead_of": "io_uring: Operation not permitted"},
        found="io_uring cannot be used, so libaio will be used: switched off (io_uring_disabled 2)",
        command="sudo sysctl kernel.io_uring_disabled=0",
    ),
    Case(
        subject="io_uring",
        changes={"proc/sys/kernel/io_uring_disabled": "2"},
        level=ADVICE,
        settings={"ioengine": None},
        found="switched off",
        command="io_uring_disabled=0",
    ),
    Case(
        subject="io_uring",
        changes={"proc/sys/kernel/io_uring_disabled": "1"},
        level=OK,
        found="fio can use it; open to privileged",
    ),
    Case(
        subject="io_uring",
        changes={"proc/sys/kernel/io_uring_disabled": "1"},
        level=ADVICE,
        found="open to privileged",
        settings={"is_root": False, "ioengine": None},
    ),
    Case(
        subject="io_uring",
        level=UNKNOWN,
        settings={"ioengine": None},
        found="not known: fio could not try it; open to all",
    ),
    Case(
        subject="io_uring",
        level=ADVICE,
        command="seccomp profile",
        settings={"ioengine": "libaio", "instead_of": "io_uring: Operation not permitted"},
        found="io_uring cannot be used, so libaio will be used: Operation not permitted",
    ),
    Case(
        subject="io_uring",
        level=ADVICE,
        command="ulimit -l",
        settings={"ioengine": "libaio", "instead_of": "io_uring: Cannot allocate memory"},
        found="io_uring cannot be used, so libaio will be used: Cannot allocate memory",
    ),
    Case(
        subject="io_uring",
        level=ADVICE,
        changes={"proc/sys/kernel/io_uring_disabled": None},
        settings={"ioengine": "libaio", "instead_of": "io_uring: Function not implemented"},
        command="a kernel with io_uring",
        found="io_uring cannot be used, so libaio will be used: Function not implemented",
    ),
    Case(subject="kernel lockdown", level=NOTE, found="none"),
    Case(subject="services that change settings", level=OK, found="none runs"),
    Case(
        subject="services that change settings",
        level=ADVICE,
        found="tuned, power-profiles-daemon",
        changes={"proc/5/comm": "tuned", "proc/6/comm": "power-profiles-"},
        command="sudo systemctl stop tuned power-profiles-daemon",
    ),
    Case(
        subject="smartd",
        changes={"proc/5/comm": "smartd"},
        level=ADVICE,
        found="runs",
        command="sudo systemctl stop smartmontools",
    ),
    Case(subject="limit of CPU time", level=OK, found="none"),
    Case(
        subject="limit of CPU time",
        changes={"sys/fs/cgroup/user.slice/cpu.max": "150000 100000"},
        level=DISTURBS,
        found="1.5 CPUs (group user.slice)",
        command="cpu.max",
    ),
    Case(
        subject="limit of CPU time",
        level=DISTURBS,
        found="0.5 CPUs (group box)",
        changes={
            "proc/self/cgroup": "3:cpu,cpuacct:/box",
            "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us": "50000",
            "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us": "100000",
        },
        command="echo -1 | sudo tee",
    ),
    Case(
        subject="limit of memory",
        changes={"sys/fs/cgroup/user.slice/memory.max": "500000000"},
        level=ADVICE,
        found="500.0 MB (memory.max of group user.slice)",
        command="echo max",
    ),
    Case(
        subject="limit of memory",
        changes={"sys/fs/cgroup/user.slice/memory.max": "8000000000"},
        level=NOTE,
        found="8.0 GB",
    ),
    Case(
        subject="limit of tasks",
        level=ADVICE,
        found="100, 60 of them free",
        changes={"sys/fs/cgroup/user.slice/pids.max": "100", "sys/fs/cgroup/user.slice/pids.current": "40"},
        command="pids.max",
    ),
    Case(subject="limit of I/O", level=OK, found="none"),
    Case(
        subject="limit of I/O",
        changes={"sys/fs/cgroup/user.slice/io.max": "8:0 rbps=1000 wbps=max riops=max wiops=max"},
        level=OK,
        found="none",
    ),
    Case(
        subject="limit of I/O",
        changes={"sys/fs/cgroup/user.slice/io.max": "259:0 rbps=1000000 wbps=max riops=max wiops=max"},
        level=DISTURBS,
        found="rbps=1000000",
        command='echo "259:0 rbps=max wbps=max riops=max wiops=max" | sudo tee',
    ),
    Case(subject="limits of control groups", changes={"proc/self/cgroup": None}, level=UNKNOWN, found="not known"),
    Case(subject="limits of the process", level=OK, found="open files 1048576, locked memory 8388608 bytes"),
    Case(
        subject="limits of the process",
        changes={"proc/self/limits": "Max open files  256 4096 files"},
        level=ADVICE,
        found="open files 256",
        command="ulimit -n 1024",
    ),
    Case(subject="CPU pressure", level=OK, found="tasks waited for 0.2 % of the last 10 s"),
    Case(
        subject="CPU pressure",
        changes={"proc/pressure/cpu": "some avg10=5.00 avg60=0"},
        level=ADVICE,
        found="tasks waited for 5 %",
    ),
    Case(
        subject="CPU pressure",
        changes={"proc/pressure/cpu": "some avg10=12.5 avg60=0"},
        level=DISTURBS,
        found="tasks waited for 12.5 %",
    ),
    Case(
        subject="CPU pressure",
        changes={"proc/pressure/cpu": None, "proc/loadavg": "3.10 1 1"},
        level=ADVICE,
        found="load average 3.1 on 2 CPUs",
    ),
    Case(subject="I/O pressure", changes={"proc/pressure/io": "rubbish"}, level=UNKNOWN, found="not known"),
    Case(subject="swap", level=OK, found="none"),
    Case(
        subject="swap",
        level=ADVICE,
        found="1.0 GB of 2.0 GB in use on /dev/sda2",
        changes={
            "proc/meminfo": "MemTotal: 16000000 kB\nMemAvailable: 12000000 kB\n"
            "SwapTotal: 2000000 kB\nSwapFree: 1000000 kB",
            "proc/swaps": "Filename Type\n/dev/sda2 partition",
        },
        command="sudo swapoff --all",
    ),
    Case(subject="swap", changes={"proc/meminfo": "MemTotal: 16000000 kB"}, level=UNKNOWN, found="not known"),
    Case(subject="timers due within the run", level=OK, found="none that works on drives"),
    Case(
        subject="timers due within the run",
        level=ADVICE,
        found="fstrim.timer in 2 h 00 min",
        settings=timers(("fstrim.timer", 7200), ("logrotate.timer", 60), ("mdcheck_start.timer", 1e6)),
        command="sudo systemctl stop fstrim.timer",
    ),
    Case(
        subject="timers due within the run",
        level=DISTURBS,
        found="fstrim.timer in 2 h 00 min",
        disk=SATA,
        settings=timers(("fstrim.timer", 7200)),
    ),
    Case(
        subject="timers due within the run",
        level=OK,
        found="none that works on drives within 1 h",
        settings={**timers(("fstrim.timer", 7200)), "lasts_s": 3600.0},
    ),
    Case(
        subject="timers due within the run",
        level=UNKNOWN,
        found="not known: systemctl: System has not been booted with systemd",
        settings=prints(load_forms("systemctl")["no-systemd"].fill(WHY="Host is down").stderr),
    ),
    Case(
        subject="timers due within the run",
        level=UNKNOWN,
        found="not known: there is no systemctl",
        settings={"run": answering(EngineError("'systemctl' is not installed"))},
    ),
    Case(
        subject="timers due within the run",
        level=UNKNOWN,
        found="not known: 'systemctl' did not end within 2 s",
        settings={"run": answering(EngineError("'systemctl' did not end within 2 s"))},
    ),
    Case(
        subject="timers due within the run",
        level=UNKNOWN,
        found="not known: systemctl",
        settings={"run": answering(Completed(exit_status=0, stdout='{"a": [1]}', stderr=""))},
    ),
    Case(subject="cron jobs that work on drives", level=OK, found="none that works on drives"),
    Case(
        subject="cron jobs that work on drives",
        level=OK,
        found="no cron runs",
        changes={"proc/900/comm": None, "etc/cron.d/mdadm": "* * * * * root /usr/share/mdadm/checkarray"},
    ),
    Case(
        subject="cron jobs that work on drives",
        level=ADVICE,
        found="work on drives in mdadm",
        changes={"etc/cron.d/mdadm": "57 * * * * root /usr/share/mdadm/checkarray --cron"},
        command="sudo systemctl stop cron",
    ),
    Case(
        subject="cron jobs that work on drives",
        level=ADVICE,
        found="work on drives in trim (weekly)",
        changes={"etc/cron.weekly/trim": "#!/bin/sh\nfstrim --all"},
    ),
    Case(
        subject="check of md0",
        changes={"sys/block/md0/md/sync_action": "check", "sys/block/md0/md/sync_completed": "1000 / 9000"},
        level=ADVICE,
        found="runs on drives not known (1000 / 9000 sectors done)",
        command="echo idle | sudo tee /sys/block/md0/md/sync_action",
    ),
    Case(subject="work on drives under way", level=OK, found="none is seen"),
    Case(subject="work on drives under way", changes={"proc/5/comm": "fstrim"}, level=ADVICE, found="fstrim runs"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.subject}: {case.found}"[:60])
def test_a_host_is_found_as_it_is(case: Case, tmp_path: Path) -> None:
    """Each finding of an audit has a level, the found value with its unit, and the command that corrects the
    setting.
    """
    audited = audit(make_host(tmp_path, case.changes), disk=case.disk, **case.settings)
    finding = find(audited, case.subject)
    assert finding.level is case.level, finding
    assert finding.found.startswith(case.found)
    assert len(finding.why) > 20
    if case.command is not None:
        assert case.command in finding.remedy
    if finding.level in (ADVICE, DISTURBS):
        assert finding.remedy


def test_of_a_good_host_nothing_is_advised_or_unknown(tmp_path: Path) -> None:
    """An audit of a well-configured host contains no advice and no unknown finding. The findings in other cases are
    therefore caused by their changes.
    """
    audited = audit(make_host(tmp_path))
    assert audited.at_levels(ADVICE, DISTURBS) == ()
    assert audited.at_levels(UNKNOWN) == ()


def test_of_nothing_nothing_is_ok(tmp_path: Path) -> None:
    """If nothing can be read, the audit does not fail and calls no setting OK."""
    host = AuditedHost(
        engine="fio", ioengines=FIO_IO_ENGINES, root=tmp_path, cpus=frozenset({0}), run=answering(EngineError("gone"))
    )
    audited = audit_host(host, ())
    named = {one.subject for one in audited.at_levels(OK, NOTE)}
    assert named == set()
    assert {one.subject for one in audited.at_levels(UNKNOWN)} >= {
        "CPU governor",
        "turbo",
        "idle states",
        "io_uring",
        "swap",
        "limits of control groups",
        "timers due within the run",
        "cron jobs that work on drives",
        "virtual machine",
    }


@pytest.mark.parametrize(
    ("stat", "level", "found"),
    [
        ("12 0 816 5 20 0 1600 9", ADVICE, "busy now: sdb 1 IOPS, 0.0 MB/s"),
        ("410 0 800 5 20 0 1600 9", DISTURBS, "busy now: sdb 200 IOPS, 0.0 MB/s"),
        ("12 0 800 5 20 0 9600 9", DISTURBS, "busy now: sdb 1 IOPS, 2.0 MB/s"),
    ],
)
def test_neighbours_are_watched_for_a_moment(stat: str, level: AuditLevel, found: str, tmp_path: Path) -> None:
    """The audit watches neighbours for a short time. For another drive on the same controller, the audit reports the
    I/O between two readings that are two seconds apart.
    """
    make_host(tmp_path)

    def meanwhile() -> None:
        (tmp_path / SATA_TWO / "stat").write_text(stat)

    finding = find(audit(tmp_path, disk=SATA, meanwhile=meanwhile), "other users of its link")
    assert (finding.level, finding.is_setting) == (level, False)
    assert finding.found == f"{found} (sdb on the controller 0000:00:1f.2)"


def test_a_neighbour_that_is_tested_as_well_is_watched(tmp_path: Path) -> None:
    """A neighbour that is also being tested is watched too. Drives of a set, or drives that are tested at the same
    time, share the bandwidth of their controller.
    """
    make_host(tmp_path)
    drives = [drive_of(tmp_path, SATA, "/dev/sda"), drive_of(tmp_path, SATA_TWO, "/dev/sdb")]

    def meanwhile(_seconds: float) -> None:
        (tmp_path / SATA_TWO / "stat").write_text("5000 0 800 5 20 0 1600 9")

    audited = audit_host(site_of(tmp_path), drives, pause=meanwhile, clock=iter(range(100)).__next__)
    found = {one.device: one for one in audited.findings if one.subject == "other users of its link"}
    assert found["/dev/sda"].level is DISTURBS
    assert found["/dev/sda"].found.startswith("busy now: sdb ")
    assert found["/dev/sdb"].found == "idle for the moment (sda on the controller 0000:00:1f.2)"
    timers_due = find(audited, "timers due within the run")
    assert timers_due.level is not DISTURBS, "it cannot work on a drive that is held for the test"


def test_an_md_check_of_neighbours_disturbs(tmp_path: Path) -> None:
    """The check of an MD set is reported as a disturbance if a member shares the controller of the tested drive.
    Otherwise the finding is only advice.
    """
    make_host(tmp_path, {"sys/block/md0/md/sync_action": "resync"})
    slaves = tmp_path / "sys/block/md0/slaves"
    slaves.mkdir()
    (slaves / "sdb").symlink_to(os.path.relpath(tmp_path / SATA_TWO, slaves))
    near = find(audit(tmp_path, disk=SATA), "resync of md0")
    assert (near.level, near.command) == (DISTURBS, None)
    assert near.remedy == "wait until it has ended: cat /proc/mdstat"
    assert find(audit(tmp_path, disk=NVME), "resync of md0").level is ADVICE


def test_a_scrub_of_zfs_is_found(tmp_path: Path) -> None:
    make_host(tmp_path, {"proc/spl/kstat/zfs/arcstats": "1"})
    status = load_forms("zpool")["status"].fill(
        POOL="tank",
        SCAN="scrub in progress since Mon Nov 23 03:00:01 2026",
        DONE="1.2T scanned at 1.1G/s, 800G issued at 700M/s, 4T total",
    )
    run = answering(
        Completed(exit_status=0, stdout=TIMERS, stderr=""), Completed(exit_status=0, stdout=status.stdout, stderr="")
    )
    finding = find(audit(tmp_path, run=run), "scrub of tank")
    assert (finding.level, finding.command) == (ADVICE, "sudo zpool scrub -p tank")


def test_rubbish_of_an_odd_kernel_is_not_known(tmp_path: Path) -> None:
    """If an unusual kernel reports unreadable values, only the affected findings are unknown."""
    make_host(tmp_path, {"sys/devices/system/node/node1/cpulist": "four", "proc/irq/40/effective_affinity_list": "x-y"})
    audited = audit(tmp_path)
    assert find(audited, "NUMA node").level is UNKNOWN
    assert find(audited, "interrupts").found.startswith("not known: a value that cannot be read")
    assert find(audited, "I/O scheduler").level is OK


@pytest.mark.parametrize(
    ("stdout", "stderr", "found"),
    [
        ("nonsense", " \n", "not known: systemctl: it printed no list of timers"),
        ("[" * 200_000, "", "not known: systemctl: it printed no list of timers"),
        ('[{"next": 1, "unit": "fstrim\\u001b[31m\\ud800.timer"}]', "", "fstrim[31m.timer in 0 s"),
    ],
)
def test_what_systemctl_prints_harms_no_run(stdout: str, stderr: str, found: str, tmp_path: Path) -> None:
    """Unusual output of systemctl never ends the audit. No part of this output reaches a file or a terminal in a
    harmful form.
    """
    run = answering(Completed(exit_status=0, stdout=stdout, stderr=stderr))
    make_host(tmp_path)
    assert find(audit(tmp_path, run=run), "timers due within the run").found == found


def test_a_pipe_among_crons_scripts_is_not_waited_for(tmp_path: Path) -> None:
    make_host(tmp_path)
    (tmp_path / "etc/cron.daily").mkdir(parents=True, exist_ok=True)
    os.mkfifo(tmp_path / "etc/cron.daily/pipe")
    assert find(audit(tmp_path), "cron jobs that work on drives").level is OK


def test_plain_data_says_all(tmp_path: Path) -> None:
    """The findings in a run file are plain data. The findings consist of texts and other types that JSON supports."""
    rows = audit(make_host(tmp_path)).as_plain_data()
    scheduler = next(row for row in rows if row["subject"] == "I/O scheduler")
    assert scheduler == {
        "subject": "I/O scheduler",
        "level": "ok",
        "found": "none",
        "device": "/dev/nvme0n1",
        "why": "a scheduler may reorder, merge and delay what the drive is to be measured with",
        "command": None,
        "otherwise": None,
        "is_setting": True,
    }


def test_every_subject_is_on_the_page() -> None:
    """docs/how-to/host.md lists each subject of the audit as the audit prints it, without the name of the device."""
    page = (Path(__file__).parents[2] / "docs/how-to/host.md").read_text(encoding="utf-8").lower()
    subjects = {re.sub(r" of md\d+$", " of", case.subject).lower() for case in CASES}
    assert {subject for subject in subjects if subject not in page} == set()
