"""The use of the host during a step. tkperf reads this use from files in the format of the kernel, compares the
readings and judges the differences.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tkperf.device.kernel_watch import KernelLog, find_names
from tkperf.model.disturbance.host_activity import find_trouble, judge_host
from tkperf.model.disturbance.io import WORDS, DisturbanceCode
from tkperf.model.host_use import CpuTimes, HostLook, HostUse, Program, compare_looks
from tkperf.model.measurement import NO_IO, Sample
from tkperf.model.record import StepKind
from tkperf.runfile.step_rows import render_host_use
from tkperf.runner.run_watch import RunWatch
from tkperf.system.host_looks import ProcHostLooks


def cpus(busy_s: float, idle_s: float, steal_s: float = 0.0) -> CpuTimes:
    return CpuTimes(cpus=2, user_s=busy_s, system_s=0, interrupts_s=0, idle_s=idle_s, iowait_s=0, steal_s=steal_s)


def test_what_lies_between_two_looks() -> None:
    """The use of the host between two readings is computed as shares of the time, of the requested CPU time and of one
    CPU.
    """
    before = HostLook(
        at_s=100,
        cpus=cpus(50, 500),
        allowed_cpus=cpus(50, 500, 1),
        own_cpu_s=7,
        processes={5: Program(name="cron", with_children_s=30)},
        threads={9: (1.0, 0.5)},
        pressure_s={"cpu some": 3.0},
        throttled_s=0.0,
        throttled_times=0,
        heat_events=4,
        kernel_lines=("sdb: before the step",),
    )
    within = HostLook(at_s=108, threads={9: (5.0, 1.3)})
    after = HostLook(
        at_s=110,
        cpus=cpus(65, 505),
        allowed_cpus=cpus(65, 505, 6),
        own_cpu_s=12,
        processes={5: Program(name="cron", with_children_s=31), 6: Program(name="burner", with_children_s=8)},
        pressure_s={"cpu some": 8.0},
        throttled_s=2.5,
        throttled_times=10,
        heat_events=4,
        kernel_lines=("sdb: reset",),
    )
    assert compare_looks([before, within, after]) == HostUse(
        seen_s=10,
        cpu_busy_percent=75,
        cpu_iowait_percent=0,
        allowed_cpu_busy_percent=75,
        allowed_cpus=2,
        steal_percent=25,
        own_cpu_percent=50,
        others_cpu_percent=90,
        others=("burner 80 %", "cron 10 %"),
        fio_wait_percent=10,
        pressure_percent={"cpu some": 50},
        throttled_percent=25,
        throttled_times=10,
        heat_events=0,
        kernel_lines=("sdb: reset",),
    )


def test_nothing_is_known_of_a_host_that_tells_nothing() -> None:
    """If a host reports no values, its use is not known (None, not 0). Such a host leads to no disturbance, and no
    value is stored as 0.
    """
    use = compare_looks([HostLook(at_s=1), HostLook(at_s=2)])
    assert use == HostUse(seen_s=1)
    assert judge_host(use, 0, 1) == ()
    assert render_host_use(HostUse(seen_s=1.5)) == '{"seen_s":1.5,"others":[],"pressure_percent":{}}'
    assert compare_looks([HostLook(at_s=1)]) is None


def test_programs_that_nobody_looked_through_are_what_is_left_of_user_mode() -> None:
    """The CPU time of programs that were not examined is the remaining time in user mode. Kernel threads work for fio
    in system mode and do not count as other programs.
    """
    before = HostLook(at_s=0, cpus=cpus(0, 0), own_user_s=0.0)
    after = HostLook(at_s=10, cpus=cpus(9, 11), own_user_s=4.0)
    use = compare_looks([before, after])
    assert use is not None
    assert use.others_cpu_percent == 50


def codes(use: HostUse) -> list[str]:
    return [found.code.value for found in judge_host(use, 0, 10)]


CLEAN = HostUse(
    seen_s=10,
    allowed_cpus=2,
    others_cpu_percent=1,
    fio_wait_percent=1,
    steal_percent=0.5,
    throttled_percent=0,
    heat_events=0,
    pressure_percent={"cpu some": 60, "memory some": 1},
    kernel_lines=(),
)


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, []),
        ({"others_cpu_percent": 6, "fio_wait_percent": 3}, ["host-cpu"]),
        ({"others_cpu_percent": 150, "fio_wait_percent": 2.9}, []),
        ({"others_cpu_percent": 5.9, "fio_wait_percent": 80}, []),
        # If the threads of fio were not examined, the waiting time of any process counts.
        ({"others_cpu_percent": 6, "fio_wait_percent": None}, ["host-cpu"]),
        ({"throttled_percent": 1}, ["cpu-quota"]),
        ({"steal_percent": 3}, ["steal"]),
        ({"pressure_percent": {"memory some": 5}}, ["memory-pressure"]),
        ({"pressure_percent": {"memory some": 9, "own memory some": 1}}, []),
        ({"heat_events": 1}, ["cpu-heat"]),
        ({"kernel_lines": ("sd 2:0:0:0: [sdb] attached SCSI disk",)}, []),
        ({"kernel_lines": ("ata3.00: exception Emask", "ata3: hard resetting link")}, ["device-error"]),
    ],
)
def test_limits(changes: dict[str, object], found: list[str]) -> None:
    """A disturbance of the host is reported if a value equals its limit, and not if it is just below the limit."""
    assert codes(replace(CLEAN, **changes)) == found  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("nvme nvme0: I/O 12 QID 3 timeout, aborting", "device-error"),
        ("blk_update_request: I/O error, dev sdb, sector 0", "device-error"),
        ("ata3: SATA link down (SStatus 0 SControl 300)", "link-change"),
        ("pcieport 0000:00:01.0: AER: Corrected error received: 0000:01:00.0", "link-change"),
        ("nvme 0000:01:00.0: 7.876 Gb/s available PCIe bandwidth", "link-change"),
        ("sdb: sdb1 sdb2", None),
        ("loop0: detected capacity change from 0 to 131072", None),
    ],
)
def test_lines_of_the_kernel(line: str, code: str | None) -> None:
    """A line of the kernel's log counts as a problem if it contains the words that drivers use for resets, timeouts,
    errors and links.
    """
    found = find_trouble(line)
    assert (None if found is None else found.value) == code


def sysfs_of_a_sata_disk(root: Path) -> Path:
    place = root / "devices/pci0000:00/0000:00:1f.2/ata3/host2/target2:0:0/2:0:0:0/block/sdb/sdb1"
    place.mkdir(parents=True)
    (root / "dev/block").mkdir(parents=True)
    for node, target in (("8:16", place.parent), ("8:17", place)):
        (root / "dev/block" / node).symlink_to(target)
    return root


def test_names_of_a_device_in_the_log(tmp_path: Path) -> None:
    """The log identifies a disk by its name, the port of its controller, its SCSI address or its PCI function. The
    names of a partition include the names of its disk.
    """
    root = sysfs_of_a_sata_disk(tmp_path)
    disk = {"sdb", "ata3", "ata3.00", "host2", "2:0:0:0", "0000:00:1f.2"}
    assert set(find_names(root / "dev/block/8:16")) == disk
    assert set(find_names(root / "dev/block/8:17")) == {*disk, "sdb1"}
    assert list(find_names(root / "dev/block/9:9")) == []


def test_a_log_that_may_not_be_read_is_not_known(tmp_path: Path) -> None:
    """If tkperf may not read the kernel log, its content is not known (None), which is different from an empty log."""
    log = KernelLog(["8:16"], sys_root=sysfs_of_a_sata_disk(tmp_path), kmsg=tmp_path / "none")
    assert log.read() is None


@pytest.mark.root
def test_lines_about_the_device_alone_are_taken(tmp_path: Path) -> None:
    """The result contains only new lines of the log in which a name of the device occurs as a whole word. This test
    writes to the real kernel log.
    """
    log = KernelLog(["8:16"], sys_root=sysfs_of_a_sata_disk(tmp_path))
    if log.read() is None:
        pytest.skip("the kernel's log cannot be read here")
    lines = (
        "ata3.00: tkperf's test",
        "ata33.00: tkperf's test",
        "sdbc: tkperf's test",
        "sd 2:0:0:0: [sdb] tkperf's test",
        "host2: tkperf's test",
        "host22: tkperf's test",
    )
    for line in lines:
        Path("/dev/kmsg").write_text(f"<7>{line}\n")
    assert log.read() == (lines[0], lines[3], lines[4])
    assert log.read() == ()
    log.close()


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """Return the root of a host with two CPUs and a cgroup of version 2, which only this test uses."""
    files = {
        "proc/stat": "cpu  9 9 9 9 9 9 9 9 0 0\n"
        + "".join(f"cpu{cpu} 100 50 30 800 10 5 5 20 0 0\n" for cpu in range(256)),
        "proc/pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=2500000\n",
        "proc/self/cgroup": "0::/user.slice/tkperf.scope\n",
        "sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
        "sys/fs/cgroup/cpu.stat": "usage_usec 5\n",
        "sys/fs/cgroup/user.slice/cpu.stat": "nr_throttled 3\nthrottled_usec 500000\n",
        "sys/fs/cgroup/user.slice/tkperf.scope/cgroup.type": "domain\n",
        "sys/fs/cgroup/user.slice/tkperf.scope/cpu.stat": "nr_throttled 1\nthrottled_usec 250000\n",
        "sys/fs/cgroup/user.slice/tkperf.scope/memory.pressure": "some avg10=0 total=1000000\nfull avg10=0 total=7\n",
        "proc/77/stat": "77 (a (b) c) S 1 1 1 0 -1 4194560 0 0 0 0 200 100 40 10 20 0 1 0 1 1 1",
        "proc/78/stat": "78 (kworker/0:1) S 2 0 0 0 -1 69238880 0 0 0 0 900 900 0 0 20 0 1 0 1 1 1",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_a_look_at_proc_and_sys(proc: Path) -> None:
    """tkperf interprets ticks in /proc and /sys as hundredths of a second. A reading includes the limits of all parent
    cgroups and skips kernel threads.
    """
    looks = ProcHostLooks(lambda: ("sdb: x",), root=proc, clock=lambda: 12.5)
    look = looks.look()
    assert look.at_s == 12.5
    assert look.cpus == CpuTimes(
        cpus=256, user_s=384.0, system_s=76.8, interrupts_s=25.6, idle_s=2048.0, iowait_s=25.6, steal_s=51.2
    )
    assert look.processes == {77: Program(name="a (b) c", with_children_s=3.5)}
    assert look.pressure_s == {"cpu some": 2.5, "own memory some": 1.0, "own memory full": 7e-6}
    assert (look.throttled_s, look.throttled_times) == (0.0, 0)
    assert (look.heat_events, look.frequency_mhz, look.frequency_max_mhz) == (None, None, None)
    assert look.kernel_lines == ("sdb: x",)
    assert looks.look().processes is None, "not looked through again at once"
    looks.close()


@dataclass(frozen=True)
class Groups:
    """A version of control groups. It contains the row in /proc/PID/cgroup, the folder of the groups, and the format of
    cpu.stat.
    """

    row: str
    top: str
    unit_of_a_second: int
    counter: str

    def place(self, root: Path, process: str, group: str) -> None:
        """Move a process to a control group."""
        (root / "proc" / process).mkdir(parents=True, exist_ok=True)
        (root / "proc" / process / "cgroup").write_text(self.row.format(group))

    def throttled(self, root: Path, group: str, lasted_s: float, times: int) -> None:
        folder = root / self.top / group
        folder.mkdir(parents=True, exist_ok=True)
        lasted = round(lasted_s * self.unit_of_a_second)
        (folder / "cpu.stat").write_text(f"nr_throttled {times}\n{self.counter} {lasted}\n")


VERSION1 = Groups("3:memory:/\n1:cpu:/{}\n0::/\n", "sys/fs/cgroup/cpu", 10**9, "throttled_time")
VERSION2 = Groups("0::/{}\n", "sys/fs/cgroup", 10**6, "throttled_usec")


@pytest.mark.parametrize("groups", [VERSION1, VERSION2])
@pytest.mark.parametrize("moved", ["tkperf", "fio"])
def test_a_quota_set_while_a_run_goes_on_is_counted(tmp_path: Path, groups: Groups, moved: str) -> None:
    """Throttling by a CPU quota that is set during a run is counted, even if the process is moved to another group. The
    throttling of the old group counts only until the process leaves it. The throttling of the new group counts only
    after the process has entered it.
    """
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    if groups is VERSION2:
        (tmp_path / "sys/fs/cgroup/cgroup.controllers").write_text("cpu\n")
    pid = os.getpid()
    children = tmp_path / f"proc/{pid}/task/{pid}/children"
    children.parent.mkdir(parents=True)
    children.write_text("77\n")
    for process in ("self", "77"):
        groups.place(tmp_path, process, "free")
    groups.throttled(tmp_path, "free", 100.0, 1000)
    groups.throttled(tmp_path, "slow", 7.0, 70)
    looks = ProcHostLooks(root=tmp_path, clock=iter(range(100)).__next__)

    seen = [looks.look()]
    groups.place(tmp_path, {"tkperf": "self", "fio": "77"}[moved], "slow")
    seen.append(looks.look_at_threads())
    groups.throttled(tmp_path, "slow", 13.5, 147)
    seen.append(looks.look())
    use = compare_looks(seen)
    assert use is not None
    assert use.throttled_times == 77
    assert use.throttled_percent == pytest.approx(100 * 6.5 / use.seen_s)

    groups.place(tmp_path, {"tkperf": "self", "fio": "77"}[moved], "free")
    groups.throttled(tmp_path, "slow", 99.0, 999)
    after = compare_looks([seen[-1], looks.look()])
    looks.close()
    assert after is not None
    assert (after.throttled_times, after.throttled_percent) == (0, 0.0)


def test_pressure_of_two_groups_is_not_compared(proc: Path) -> None:
    """If the process was moved from one group to another, the pressure totals of the two groups are not compared with
    each other.
    """
    looks = ProcHostLooks(root=proc, clock=iter(range(100)).__next__)
    first = looks.look()
    pressure = proc / "sys/fs/cgroup/other/memory.pressure"
    pressure.parent.mkdir()
    (pressure.parent / "cgroup.type").write_text("domain\n")
    pressure.write_text("some avg10=0 total=9000000\n")
    (proc / "proc/self/cgroup").write_text("0::/other\n")
    entered, second = looks.look(), looks.look()
    looks.close()
    assert first.pressure_s["own memory some"] == 1.0
    assert set(entered.pressure_s) == {"cpu some"}
    assert second.pressure_s["own memory some"] == 9.0


@pytest.mark.parametrize(
    ("name", "rubbish", "unknown"),
    [
        ("proc/stat", "cpu0 1 2 three\n", {"cpus": None, "allowed_cpus": None}),
        ("proc/pressure/cpu", "some total=<unknown>\n", {"pressure_s": {}}),
        ("sys/fs/cgroup/user.slice/cpu.stat", "throttled_usec 5\n", {"throttled_s": None, "throttled_times": None}),
        ("proc/77/stat", "77 (x) S 1 1 1 0 -1 x 0 0 0 0 x x x x 20 0", {"processes": None}),
    ],
)
def test_what_the_kernel_says_and_nobody_expects_is_not_known(
    proc: Path, name: str, rubbish: str, unknown: dict[str, object]
) -> None:
    """If the kernel provides an unexpected text, only the affected value is unknown. A run of several days must not end
    for this reason.
    """
    looks = ProcHostLooks(root=proc, clock=lambda: 1.0)
    before = looks.look()
    looks.close()
    (proc / name).write_text(rubbish)
    looks = ProcHostLooks(root=proc, clock=lambda: 1.0)
    look = looks.look()
    looks.close()
    assert look == replace(before, **unknown)  # type: ignore[arg-type]
    assert look != before


def test_an_empty_root_is_a_host_of_which_nothing_is_known(tmp_path: Path) -> None:
    """In a container without /proc and /sys, a reading is empty and causes no error."""
    look = ProcHostLooks(root=tmp_path, clock=lambda: 1.0).look()
    assert look == HostLook(at_s=1.0)


def test_kinds_are_disturbances() -> None:
    """Each kind of disturbance has a description."""
    assert set(WORDS) == set(DisturbanceCode)


class Looked:
    """A host that records the times at which tkperf reads it."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.threads_at_s: list[float] = []

    def look(self) -> HostLook:
        return HostLook(at_s=self.now_s)

    def look_at_threads(self) -> HostLook:
        self.threads_at_s.append(self.now_s)
        return HostLook(at_s=self.now_s)


@pytest.mark.parametrize(
    ("planned_s", "looked_at_s"), [(60.0, [1, 11, 21, 31, 41, 51, 58, 59, 60]), (None, [*range(1, 61)])]
)
def test_threads_are_looked_at_when_it_matters(planned_s: float | None, looked_at_s: list[float]) -> None:
    """tkperf examines threads when a step begins, every ten seconds during the step, and in the last seconds of the
    step. If the end of the step is not known, the threads are examined in every reading.
    """
    host = Looked()
    watch = RunWatch(0.0, host=host)
    watch.step_begins(StepKind.ROUND, 0.0, planned_s)
    for second in range(60):
        host.now_s = second + 1.0
        watch.sample(Sample(start_s=float(second), duration_s=1.0, read=NO_IO, write=NO_IO), host.now_s)
    assert host.threads_at_s == looked_at_s


def test_programs_that_are_named_use_no_more_than_all_together() -> None:
    """The CPU time of the named programs never exceeds the CPU time of all programs other than the run. A program that
    has ended is not named, because it may have used its CPU time before the first reading.
    """
    before = HostLook(
        at_s=0, processes={1: Program(name="shell", with_children_s=0), 2: Program(name="ended", with_children_s=10)}
    )
    after = HostLook(
        at_s=10, processes={1: Program(name="shell", with_children_s=14), 3: Program(name="other", with_children_s=6)}
    )
    use = compare_looks([before, after])
    assert use is not None
    assert (use.others_cpu_percent, use.others) == (100, ("shell 100 %",))
