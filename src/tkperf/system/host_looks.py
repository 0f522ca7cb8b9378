"""Readings of the activity of the host: CPUs, pressure, tkperf's own control group, other programs, the threads of fio,
and heat.

Files that exist as long as the host runs stay open, so that a reading needs one system call for each file. If a file
cannot be read, its values are not known, and tkperf does not try to read the file again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

from tkperf.model.host_use import CpuTimes, HostLook, Program
from tkperf.system.host import ControlGroups, find_control_groups

ROOT = Path("/")
MOST_BYTES = 1 << 18
# To read the activity of other programs, tkperf may use up to this share of one CPU. One program needs about 20 µs, so
# two thousand programs are examined every 8 s.
WALK_SHARE = 0.005
# The greatest number of fio's threads, and of CPU frequencies, in one reading. On a large host, a reading covers only a
# part of the threads and CPUs.
MOST_THREADS = 64
MOST_FREQUENCIES = 8
# The frequency of a CPU is read rarely, because each read interrupts this CPU.
FREQUENCY_EVERY_S = 10.0
# The prefix of the kinds of pressure in tkperf's own control group.
OWN = "own"
HEAT_COUNTS = ("core_throttle_count", "package_throttle_count")
SIBLINGS = "the batch's other drives"
# This limit is generous: the processes of fio are no more than three levels below tkperf.
_MOST_ANCESTORS = 8
_KERNEL_THREAD = 0x00200000  # PF_KTHREAD, include/linux/sched.h
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_NS, _US = 1e-9, 1e-6

T = TypeVar("T")
Otherwise = TypeVar("Otherwise")


class ProcHostLooks:
    """A reader of the host's activity through /proc and /sys.

    ``read_kernel_lines`` returns the kernel's log lines about the device since the last call. ``siblings`` are the
    processes that measure other drives of the same batch. The siblings and all processes that they started count as one
    program.
    """

    def __init__(
        self,
        read_kernel_lines: Callable[[], tuple[str, ...] | None] = lambda: None,
        *,
        siblings: Collection[int] = (),
        root: Path = ROOT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._siblings = frozenset(siblings)
        self._root, self._clock, self._read_kernel_lines = root, clock, read_kernel_lines
        self._pid = os.getpid()
        # The path is stored as text, because each reading builds hundreds of paths from it.
        self._proc = str(root / "proc")
        self._allowed = frozenset(os.sched_getaffinity(0))
        self._files: dict[Path, int | None] = {}
        # Processes can move between control groups, so the groups of the last reading may be outdated.
        self._own_group: bytes | None = None
        self._cpu_stats: dict[bytes, tuple[Path, ...]] = {}
        self._throttled_before: dict[Path, tuple[float, int]] = {}
        self._throttled_s, self._throttled_times = 0.0, 0
        self._pressure: dict[str, Path] = {}
        cpus = root / "sys/devices/system/cpu"
        self._heat = [
            cpus / f"cpu{cpu}/thermal_throttle" / name for cpu in sorted(self._allowed) for name in HEAT_COUNTS
        ]
        self._frequencies = [cpus / f"cpu{cpu}/cpufreq" for cpu in islice(sorted(self._allowed), MOST_FREQUENCIES)]
        self._frequency: tuple[float | None, float | None] = (None, None)
        self._asked_frequency_s = self._walk_again_s = float("-inf")

    def look(self) -> HostLook:
        at_s = self._clock()
        cpus, allowed = _readable(self._cpu_times, (None, None))
        descendants = _readable(self._descendants, ())
        own_cpu_s, own_user_s = _readable(lambda: self._own_times(descendants), (None, None))
        throttled_s, throttled_times = _readable(lambda: self._throttled(descendants), (None, None))
        frequency_mhz, frequency_max_mhz = _readable(lambda: self._look_at_frequency(at_s), (None, None))
        return HostLook(
            at_s=at_s,
            cpus=cpus,
            allowed_cpus=allowed,
            own_cpu_s=own_cpu_s,
            own_user_s=own_user_s,
            processes=_readable(lambda: self._walk({self._pid, *descendants}), None),
            threads=_readable(lambda: self._threads(descendants), {}),
            pressure_s=_readable(lambda: dict(self._stalls()), {}),
            throttled_s=throttled_s,
            throttled_times=throttled_times,
            heat_events=_readable(self._heat_events, None),
            frequency_mhz=frequency_mhz,
            frequency_max_mhz=frequency_max_mhz,
            kernel_lines=self._read_kernel_lines(),
        )

    def look_at_threads(self) -> HostLook:
        at_s = self._clock()
        descendants = _readable(self._descendants, ())
        # If a process entered a group after the last reading, the count for this group begins now.
        _readable(lambda: self._throttled(descendants), None)
        return HostLook(at_s=at_s, threads=_readable(lambda: self._threads(descendants), {}))

    def close(self) -> None:
        for file in self._files.values():
            if file is not None:
                os.close(file)
        self._files.clear()

    def _read(self, path: Path) -> bytes:
        """Return the content of a file that stays open. The result is empty if the file does not exist or cannot be
        read.
        """
        if path not in self._files:
            try:
                self._files[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                self._files[path] = None
        file = self._files[path]
        if file is None:
            return b""
        try:
            return os.pread(file, MOST_BYTES, 0)
        except OSError:  # pressure stall information is switched off, or the control group was removed
            os.close(file)
            self._files[path] = None
            return b""

    def _read_once(self, path: str) -> bytes:
        """Return the content of a file of a process or control group that may no longer exist. A relative path is below
        /proc.
        """
        try:
            file = os.open(path if path[0] == "/" else f"{self._proc}/{path}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return b""
        try:
            return os.read(file, MOST_BYTES)
        except OSError:
            return b""
        finally:
            os.close(file)

    def _cpu_times(self) -> tuple[CpuTimes | None, CpuTimes | None]:
        """Return the times of all CPUs, and of the CPUs that tkperf may use."""
        rows = [
            line.split()
            for line in self._read(self._root / "proc/stat").splitlines()
            if line.startswith(b"cpu") and line[3:4].isdigit()
        ]
        allowed = [row for row in rows if int(row[0][3:]) in self._allowed]
        return _add_up(rows), _add_up(allowed)

    def _descendants(self) -> tuple[int, ...]:
        """Return fio and all other processes that tkperf started, according to the kernel's lists of children."""
        found: list[int] = []
        waiting = [self._pid]
        while waiting and len(found) < MOST_THREADS:
            parent = waiting.pop()
            for thread in self._threads_of(parent):
                text = self._read_once(f"{parent}/task/{thread}/children")
                children = [int(word) for word in text.split()]
                found += children
                waiting += children
        return tuple(found)

    def _threads_of(self, pid: int) -> Sequence[int]:
        try:
            names = os.listdir(f"{self._proc}/{pid}/task")  # noqa: PTH208 - called each second; paths are slower
        except OSError:
            return ()
        return [int(name) for name in names][:MOST_THREADS]

    def _own_times(self, descendants: Sequence[int]) -> tuple[float | None, float | None]:
        """Return the CPU time and the CPU time in user mode, in s. Both include children that have ended."""
        ticks = [_times_of(self._read_once(f"{pid}/stat")) for pid in (self._pid, *descendants)]
        known = [times for times in ticks if times is not None]
        if not known:
            return None, None
        users = sum(times.user + times.children_user for times in known)
        return _TICK_S * sum(times.all for times in known), _TICK_S * users

    def _threads(self, descendants: Sequence[int]) -> dict[int, tuple[float, float]]:
        """Return, for each thread, the time on a CPU and the time for which the thread waited for a CPU, in s.

        The kernel reports both times in ns (Documentation/scheduler/sched-stats.rst).
        """
        times: dict[int, tuple[float, float]] = {}
        for pid in descendants:
            for thread in self._threads_of(pid)[: MOST_THREADS - len(times)]:
                fields = self._read_once(f"{pid}/task/{thread}/schedstat").split()
                if len(fields) >= 2:
                    times[thread] = (_NS * int(fields[0]), _NS * int(fields[1]))
        return times

    def _walk(self, own: set[int]) -> dict[int, Program] | None:
        """Return all processes except kernel threads and the processes in ``own``. None means that the next examination
        is not due yet.
        """
        now_s = time.monotonic()
        if now_s < self._walk_again_s:
            return None
        began_s = time.thread_time()
        used: dict[int, Program] = {}
        parents: dict[int, int] = {}
        try:
            names = os.listdir(self._proc)  # noqa: PTH208 - thousands of names; paths are slower
        except OSError:
            return None
        for name in names:
            if name.isdigit() and int(name) not in own:
                stat = self._read_once(f"{name}/stat")
                times = _times_of(stat)
                if times is not None and not times.flags & _KERNEL_THREAD:
                    parents[int(name)] = times.parent
                    used[int(name)] = Program(name=_name_of(stat), with_children_s=_TICK_S * times.all)
        if self._siblings:
            used = self._put_siblings_together(used, parents)
        self._walk_again_s = now_s + (time.thread_time() - began_s) / WALK_SHARE
        return used

    def _put_siblings_together(self, used: Mapping[int, Program], parents: Mapping[int, int]) -> dict[int, Program]:
        """Return the programs. The processes that measure other drives of the batch count as one program, together with
        all processes that they started.
        """
        family = {pid for pid in used if self._is_of_sibling(pid, parents)}
        others = {pid: program for pid, program in used.items() if pid not in family}
        if family:
            with_children_s = sum(used[pid].with_children_s for pid in family)
            others[min(family)] = Program(name=SIBLINGS, with_children_s=with_children_s)
        return others

    def _is_of_sibling(self, pid: int, parents: Mapping[int, int]) -> bool:
        for _ in range(_MOST_ANCESTORS):
            if pid in self._siblings:
                return True
            if pid not in parents:
                return False
            pid = parents[pid]
        return False

    def _stalls(self) -> Iterator[tuple[str, float]]:
        """Yield the total stall time of each kind of pressure, in s. The files contain ``some avg10=0.00 ...
        total=123``, in µs.

        If tkperf has just moved to another control group, the pressure of this group is skipped, because its total
        cannot be compared with the total of the previous group. Source: Documentation/accounting/psi.rst.
        """
        before, self._own_group = self._own_group, self._read_once("self/cgroup")
        entered = self._own_group != before
        if entered:
            self._pressure = dict(_pressure_files(self._root, find_control_groups(self._root)))
        for kind, path in self._pressure.items():
            if entered and before is not None and kind.startswith(OWN):
                continue
            for line in self._read(path).splitlines():
                words = line.split()
                name, _, total = words[-1].partition(b"=")
                if name == b"total":
                    yield f"{kind} {words[0].decode()}", _US * int(total)

    def _throttled(self, descendants: Sequence[int]) -> tuple[float | None, int | None]:
        """Return the throttled time in s, and the number of times that throttling occurred. Both values are sums over
        all readings so far.

        The values include the groups of tkperf and fio, and all groups above these groups. The kernel reports the time
        in µs (version 2, cgroup-v2.rst) or in ns (version 1, sched-bwc.rst).
        """
        now: dict[Path, tuple[float, int]] = {}
        for path in self._find_cpu_stats(descendants):
            values = dict(line.split(None, 1) for line in self._read_once(str(path)).splitlines())
            for key, unit in ((b"throttled_usec", _US), (b"throttled_time", _NS)):
                if key in values:
                    now[path] = unit * int(values[key]), int(values[b"nr_throttled"])
        for path, (lasted_s, times) in now.items():
            # If the process has just moved to this control group, or if the group was created again, its earlier values
            # are not known.
            before_s, before_times = self._throttled_before.get(path, (lasted_s, times))
            if lasted_s >= before_s and times >= before_times:
                self._throttled_s += lasted_s - before_s
                self._throttled_times += times - before_times
        self._throttled_before = now
        return (self._throttled_s, self._throttled_times) if now else (None, None)

    def _find_cpu_stats(self, descendants: Sequence[int]) -> Sequence[Path]:
        """Return each cpu.stat file only once, because usually all processes belong to the same group."""
        found: dict[Path, None] = {}
        for process in ("self", *map(str, descendants)):
            group = self._read_once(f"{process}/cgroup")
            if group and group not in self._cpu_stats:
                groups = find_control_groups(self._root, process)
                folders = () if groups is None else groups.folders_of("cpu")
                self._cpu_stats[group] = tuple(folder / "cpu.stat" for folder in folders)
            found |= dict.fromkeys(self._cpu_stats.get(group, ()))
        return tuple(found)

    def _heat_events(self) -> int | None:
        counts = [int(text) for path in self._heat if (text := self._read(path))]
        return sum(counts) if counts else None

    def _look_at_frequency(self, at_s: float) -> tuple[float | None, float | None]:
        if at_s - self._asked_frequency_s >= FREQUENCY_EVERY_S:
            self._asked_frequency_s = at_s
            now, most = (
                [int(text) / 1000 for folder in self._frequencies if (text := self._read(folder / name))]
                for name in ("scaling_cur_freq", "cpuinfo_max_freq")
            )
            self._frequency = _mean(now), _mean(most)
        return self._frequency


def _pressure_files(root: Path, groups: ControlGroups | None) -> Iterator[tuple[str, Path]]:
    """Yield the pressure files of the system and of tkperf's own control group.

    If tkperf's own group is the group of the whole host, it is omitted, because its pressure equals the pressure of the
    system.
    """
    own = groups.unified[0] if groups is not None and groups.unified else None
    for kind in ("cpu", "io", "memory"):
        yield kind, root / "proc/pressure" / kind
        if own is not None and (own / "cgroup.type").exists():
            yield f"{OWN} {kind}", own / f"{kind}.pressure"


def _readable(read: Callable[[], T], otherwise: Otherwise) -> T | Otherwise:
    """Return the value that ``read`` returns, or ``otherwise`` after an error, because an unexpected text from the
    kernel must not end a run.
    """
    try:
        return read()
    except (OSError, ValueError, LookupError):
        return otherwise


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values)) if values else None


def _add_up(rows: Sequence[Sequence[bytes]]) -> CpuTimes | None:
    """Return the sum of CPU times from /proc/stat (proc(5)): user nice system idle iowait irq softirq steal.

    The user time includes the time of guests.
    """
    if not rows:
        return None
    columns = [_TICK_S * sum(int(row[place]) for row in rows) for place in range(1, 9)]
    user_s, nice_s, system_s, idle_s, iowait_s, irq_s, softirq_s, steal_s = columns
    return CpuTimes(
        cpus=len(rows),
        user_s=user_s + nice_s,
        system_s=system_s,
        interrupts_s=irq_s + softirq_s,
        idle_s=idle_s,
        iowait_s=iowait_s,
        steal_s=steal_s,
    )


class _Times(NamedTuple):
    """CPU times, in clock ticks, of a process and of its children that have ended."""

    parent: int
    flags: int
    user: int
    system: int
    children_user: int
    children_system: int

    @property
    def all(self) -> int:
        return self.user + self.system + self.children_user + self.children_system


def _times_of(stat: bytes) -> _Times | None:
    """Return the times in /proc/PID/stat (proc(5)). None means that the process no longer exists."""
    fields = stat.rpartition(b")")[2].split()
    return _Times(*(int(fields[place]) for place in (1, 6, 11, 12, 13, 14))) if fields[14:] else None


def _name_of(stat: bytes) -> str:
    name = stat.partition(b"(")[2].rpartition(b")")[0].decode(errors="replace")
    return "".join(letter if letter.isprintable() else "?" for letter in name)
