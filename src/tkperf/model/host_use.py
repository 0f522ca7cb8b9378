"""The activity of the host during a step: readings of the host's counters ("looks"), and the difference between two
readings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

# Programs that use a smaller percentage of a CPU are not named.
LEAST_NAMED_PERCENT = 1.0
MOST_PROCESSES_NAMED = 3
# The kernel repeats the same message about a defective device. The first lines are sufficient to show the problem.
MOST_LINES = 8
# A thread that used a CPU for a smaller share of the time was only waiting for the start of its step.
_AT_WORK = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuTimes:
    """The total time of ``cpus`` CPUs since the host started, in s, by activity (proc(5), stat)."""

    cpus: int
    user_s: float
    system_s: float
    interrupts_s: float
    idle_s: float
    iowait_s: float
    steal_s: float

    @property
    def busy_s(self) -> float:
        return self.user_s + self.system_s + self.interrupts_s

    def since(self, earlier: CpuTimes) -> CpuTimes:
        """Return the increase of each time since an earlier reading. No result is negative, although the kernel
        sometimes decreases the times of iowait and idle.
        """
        grown = {
            name: max(0.0, getattr(self, name) - getattr(earlier, name))
            for name in ("user_s", "system_s", "interrupts_s", "idle_s", "iowait_s", "steal_s")
        }
        return CpuTimes(cpus=self.cpus, **grown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """CPU time, in s, of a process and of the child processes that have ended."""

    name: str
    with_children_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLook:
    """One reading of the host's counters. The times accumulate from the start of the host. None means that the value is
    not known.

    Attributes:
        at_s: time of the reading on the run's clock.
        cpus, allowed_cpus: times of all CPUs, and of the CPUs on which tkperf and fio may run.
        own_cpu_s, own_user_s: whole CPU time, and CPU time in user mode, of tkperf, of fio, and of all processes that
            these programs started.
        processes: all other processes except kernel threads, keyed by their numbers. On a host with many processes, not
            every reading contains the processes. None means that the reading does not contain them.
        threads: the time on a CPU and the time of waiting for a CPU, in s, of each thread of fio, keyed by the number
            of the thread.
        pressure_s: totals of the kernel's pressure stall information in s. For example, ``cpu some`` is a total of the
            whole host, and ``own cpu some`` is a total of the cgroup of tkperf.
        throttled_s, throttled_times: the time for which the cgroups of tkperf and fio had to wait because they had used
            up their CPU time, and the number of such waits, as far as the readings show.
        heat_events: number of times that CPUs slowed down because of heat.
        frequency_mhz, frequency_max_mhz: present and maximum frequency, as the mean of the examined CPUs.
        kernel_lines: lines about the device that the kernel logged since the previous reading.
    """

    at_s: float
    cpus: CpuTimes | None = None
    allowed_cpus: CpuTimes | None = None
    own_cpu_s: float | None = None
    own_user_s: float | None = None
    processes: Mapping[int, Program] | None = None
    threads: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    pressure_s: Mapping[str, float] = field(default_factory=dict)
    throttled_s: float | None = None
    throttled_times: int | None = None
    heat_events: int | None = None
    frequency_mhz: float | None = None
    frequency_max_mhz: float | None = None
    kernel_lines: tuple[str, ...] | None = None


class HostLooks(Protocol):
    """A reader of the host's counters. A reading takes between less than one millisecond and a few milliseconds."""

    def look(self) -> HostLook:
        """Read all counters of the host."""
        ...

    def look_at_threads(self) -> HostLook:
        """Read only the counters of fio's threads, which disappear when the step ends."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HostUse:
    """The activity of the host during a step, as the run file stores it. None means that the value is not known.

    Attributes:
        seen_s: the time between the two readings. Each reading may be some tenths of a second late.
        cpu_busy_percent, cpu_iowait_percent: shares of the time of all CPUs.
        allowed_cpu_busy_percent: share of the time of the CPUs on which tkperf and fio may run.
        steal_percent: share of the requested CPU time that the hypervisor gave to other machines.
        own_cpu_percent, others_cpu_percent: CPU time of tkperf and fio together, and of all other programs. 100 % is
            one whole CPU.
        others: names of the other programs, largest CPU time first, such as ``stress-ng 96 %``.
        fio_wait_percent: share of the step's time in which threads of fio were ready to run and had no CPU.
        pressure_percent: shares of the time, keyed by the names in ``HostLook.pressure_s``.
        throttled_percent, throttled_times: the share of the time in which the cgroups of tkperf and fio had used up
            their CPU time, and the number of such periods.
        heat_events: number of times that CPUs slowed down.
        frequency_mhz, frequency_max_mhz: present and maximum CPU frequency at the end of the step.
        kernel_lines: lines of the kernel's log about the device.
    """

    seen_s: float
    cpu_busy_percent: float | None = None
    cpu_iowait_percent: float | None = None
    allowed_cpu_busy_percent: float | None = None
    allowed_cpus: int | None = None
    steal_percent: float | None = None
    own_cpu_percent: float | None = None
    others_cpu_percent: float | None = None
    others: tuple[str, ...] = ()
    fio_wait_percent: float | None = None
    pressure_percent: dict[str, float] = field(default_factory=dict)
    throttled_percent: float | None = None
    throttled_times: int | None = None
    heat_events: int | None = None
    frequency_mhz: float | None = None
    frequency_max_mhz: float | None = None
    kernel_lines: tuple[str, ...] | None = None


def compare_looks(looks: Sequence[HostLook]) -> HostUse | None:
    """Return the difference between the first and the last reading. None means that there are fewer than two
    readings.
    """
    if len(looks) < 2 or looks[-1].at_s <= looks[0].at_s:
        return None
    before, after = looks[0], looks[-1]
    seen_s = after.at_s - before.at_s

    def percent(amount_s: float | None, of_s: float = seen_s) -> float | None:
        return None if amount_s is None or of_s <= 0 else _rounded(100 * max(0.0, amount_s) / of_s)

    cpus, allowed = (_between(getattr(before, key), getattr(after, key)) for key in _CPUS)
    others_s, others = _others(looks, cpus)
    throttled_s = _grown(before.throttled_s, after.throttled_s)
    heat_events = _grown(before.heat_events, after.heat_events)
    throttled_times = _grown(before.throttled_times, after.throttled_times)
    return HostUse(
        seen_s=round(seen_s, 3),
        cpu_busy_percent=None if cpus is None else percent(cpus.busy_s, cpus.cpus * seen_s),
        cpu_iowait_percent=None if cpus is None else percent(cpus.iowait_s, cpus.cpus * seen_s),
        allowed_cpu_busy_percent=None if allowed is None else percent(allowed.busy_s, allowed.cpus * seen_s),
        allowed_cpus=None if allowed is None else allowed.cpus,
        steal_percent=None if allowed is None else percent(allowed.steal_s, allowed.busy_s + allowed.steal_s),
        own_cpu_percent=percent(_grown(before.own_cpu_s, after.own_cpu_s)),
        others_cpu_percent=percent(others_s),
        others=others,
        fio_wait_percent=_wait_percent(looks),
        pressure_percent={
            name: _rounded(100 * max(0.0, after.pressure_s[name] - begun_s) / seen_s)
            for name, begun_s in before.pressure_s.items()
            if name in after.pressure_s
        },
        throttled_percent=percent(throttled_s),
        throttled_times=None if throttled_times is None else round(throttled_times),
        heat_events=None if heat_events is None else round(heat_events),
        frequency_mhz=after.frequency_mhz,
        frequency_max_mhz=after.frequency_max_mhz,
        kernel_lines=_lines(looks[1:]),
    )


_CPUS = ("cpus", "allowed_cpus")


def _rounded(percent: float) -> float:
    return round(percent, 2)


def _grown(before: float | None, after: float | None) -> float | None:
    """Return the increase of a counter. None means that the value is not known, or that the counter restarted, for
    example in another cgroup.
    """
    return None if before is None or after is None or after < before else after - before


def _between(before: CpuTimes | None, after: CpuTimes | None) -> CpuTimes | None:
    """Return the CPU times between two readings. None means that the value is not known, or that CPUs were added or
    removed.
    """
    if before is None or after is None or before.cpus != after.cpus:
        return None
    return after.since(before)


def _others(looks: Sequence[HostLook], cpus: CpuTimes | None) -> tuple[float | None, tuple[str, ...]]:
    """Return the CPU time of other programs in s, and the names of the programs that used most of this time.

    If fewer than two readings contain the processes, the result is the time in user mode of all programs except tkperf
    and fio. User mode excludes kernel threads, which may work for fio.
    """
    walked = [look for look in looks if look.processes is not None]
    before, after = looks[0], looks[-1]
    if len(walked) < 2:
        own_s = _grown(before.own_user_s, after.own_user_s)
        return None if cpus is None or own_s is None else max(0.0, cpus.user_s - own_s), ()
    first, last = walked[0].processes or {}, walked[-1].processes or {}
    # When a process ends, the kernel adds its time to that of the parent process.
    total_s = sum(program.with_children_s for program in last.values())
    total_s = max(0.0, total_s - sum(program.with_children_s for program in first.values()))
    seen_s = walked[-1].at_s - walked[0].at_s
    grown = (
        (program.with_children_s - (first[pid].with_children_s if pid in first else 0.0), program)
        for pid, program in last.items()
    )
    used = sorted(((100 * used_s / seen_s, program.name) for used_s, program in grown), reverse=True)
    named = _name_greatest(used, 100 * total_s / seen_s)
    return total_s * (after.at_s - before.at_s) / seen_s, named


def _name_greatest(used: Sequence[tuple[float, str]], total: float) -> tuple[str, ...]:
    """Return the programs that used the most time, until the sum of their times would exceed the total. The comparison
    uses the sum and the total as they are printed.

    The time of a process may include children that began long before the first reading, so a single process can exceed
    the total.
    """
    named: list[str] = []
    left = round(total)
    for percent, name in used[:MOST_PROCESSES_NAMED]:
        whole = min(round(percent), round(total))
        if percent < LEAST_NAMED_PERCENT or whole > left:
            break
        left -= whole
        named.append(f"{name} {whole} %")
    return tuple(named)


def _wait_percent(looks: Sequence[HostLook]) -> float | None:
    """Return the share of time for which fio's threads waited for a CPU, in percent. The result is the mean over all
    threads that used a CPU and that occur in at least two readings.
    """
    first: dict[int, tuple[float, tuple[float, float]]] = {}
    last: dict[int, tuple[float, tuple[float, float]]] = {}
    for look in looks:
        for thread, times in look.threads.items():
            first.setdefault(thread, (look.at_s, times))
            last[thread] = look.at_s, times
    shares = []
    for thread, (at_s, (ran_s, waited_s)) in last.items():
        began_s, (ran_before_s, waited_before_s) = first[thread]
        seen_s = at_s - began_s
        if seen_s > 0 and ran_s - ran_before_s >= _AT_WORK * seen_s:
            shares.append(100 * (waited_s - waited_before_s) / seen_s)
    return _rounded(sum(shares) / len(shares)) if shares else None


def _lines(looks: Iterable[HostLook]) -> tuple[str, ...] | None:
    logged = [look.kernel_lines for look in looks if look.kernel_lines is not None]
    return tuple(line for lines in logged for line in lines)[:MOST_LINES] if logged else None
