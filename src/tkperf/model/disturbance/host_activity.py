"""The assessment of the host's activity during a step: CPU time, resources that fio did not receive, errors of the
device, and idle time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from tkperf.model.disturbance.io import Disturbance, DisturbanceCode
from tkperf.model.host_use import HostUse

# CPU time of other programs, in percent of the time of the CPUs on which fio may run. Daemons, timers and an idle
# desktop use less.
OTHERS_PERCENT = 3.0
# The time for which the threads of fio wait for a CPU, in percent of the time of the step. A load that needs a whole
# CPU loses this time. A thread that only shares two CPUs with other threads of fio and with the interrupts of a drive
# waits less.
WAIT_PERCENT = 3.0
# The time for which the CPU limit of a cgroup stops fio, in percent of the time of the step. All threads stop at the
# same moment, so the measured rate is too low by the same percentage.
THROTTLED_PERCENT = 1.0
# CPU time that the hypervisor withheld, in percent of the requested CPU time. A hypervisor with free CPUs withholds a
# few tenths of a percent.
STEAL_PERCENT = 3.0
# The share of the step's time in which a program waited for memory, in percent. A lower limit is not necessary, because
# the memory of fio is locked before the step begins.
MEMORY_PERCENT = 5.0

_LINK = re.compile(
    r"link (is )?(down|up|reset)|\blink\b.*\b(speed|slow|degraded|lost)|\bAER\b|PCIe Bus Error|surprise|"
    r"\b(un)?corrected\b|\b(un)?correctable\b|SError|bandwidth",
    re.IGNORECASE,
)
_ERROR = re.compile(
    r"reset|time[d -]?out|abort|error|fail|exception|frozen|offline|not ready|dead|removed|rejecting|sense key|"
    r"timing out|quiesc|unresponsive",
    re.IGNORECASE,
)


def judge_host(use: HostUse | None, started_s: float, duration_s: float) -> tuple[Disturbance, ...]:
    """Return the disturbances of a step that are visible in the activity of the host during the step."""
    if use is None:
        return ()
    return tuple(
        Disturbance(code=code, text=text, started_s=started_s, duration_s=duration_s, share=share)
        for code, text, share in (*_contention(use), *_shares(use), *_heat(use), *_logged(use.kernel_lines or ()))
    )


_Found = tuple[DisturbanceCode, str, float | None]


def _contention(use: HostUse) -> Iterator[_Found]:
    """Yield contention for CPUs if other programs used CPU time and fio waited for a CPU. Only the two conditions
    together prove contention: other programs may run on CPUs that fio does not use, and fio may wait for its own
    threads.
    """
    cpus, others = use.allowed_cpus, use.others_cpu_percent
    waited = find_wait_percent(use)
    if cpus is None or others is None or waited is None:
        return
    if others / cpus < OTHERS_PERCENT or waited < WAIT_PERCENT:
        return
    who = f" ({', '.join(use.others)})" if use.others else ""
    yield (
        DisturbanceCode.HOST_CPU,
        f"other programs used {others:.0f} % of a CPU{who} while fio waited for one {waited:.1f} % of the time",
        waited / 100,
    )


def find_wait_percent(use: HostUse) -> float | None:
    """Return the share of time for which fio waited for a CPU, in percent. If the threads of fio were not observed,
    return the share of time for which any program waited for a CPU.
    """
    if use.fio_wait_percent is not None:
        return use.fio_wait_percent
    pressure = use.pressure_percent
    return pressure.get("own cpu some", pressure.get("cpu some"))


def _shares(use: HostUse) -> Iterator[_Found]:
    pressure = use.pressure_percent
    for code, percent, limit, text in (
        (
            DisturbanceCode.CPU_QUOTA,
            use.throttled_percent,
            THROTTLED_PERCENT,
            "tkperf and fio had used up the CPU time of their cgroup for {} of the time",
        ),
        (
            DisturbanceCode.STEAL,
            use.steal_percent,
            STEAL_PERCENT,
            "the hypervisor gave {} of the CPU time that was wanted to others",
        ),
        (
            DisturbanceCode.MEMORY_PRESSURE,
            pressure.get("own memory some", pressure.get("memory some")),
            MEMORY_PERCENT,
            "programs waited for memory {} of the time",
        ),
    ):
        if percent is not None and percent >= limit:
            yield code, text.format(f"{percent:.1f} %"), percent / 100


def _heat(use: HostUse) -> Iterator[_Found]:
    if use.heat_events:
        text = f"CPUs were slowed down by heat, {use.heat_events} times"
        yield DisturbanceCode.CPU_HEAT, text, None


def _logged(lines: Sequence[str]) -> Iterator[_Found]:
    """For each kind of trouble, yield the first line of the kernel log, with the number of further lines of the same
    kind.
    """
    by_code: dict[DisturbanceCode, list[str]] = {}
    for line in lines:
        if (code := find_trouble(line)) is not None:
            by_code.setdefault(code, []).append(line)
    for code, of_code in by_code.items():
        more = f", and {len(of_code) - 1} more lines" if len(of_code) > 1 else ""
        yield code, f"the kernel's log: {of_code[0]}{more}", None


def find_trouble(line: str) -> DisturbanceCode | None:
    """Return the kind of trouble that a line of the kernel log reports about the device. None means that the line
    reports nothing important.
    """
    if _LINK.search(line):
        return DisturbanceCode.LINK_CHANGE
    return DisturbanceCode.DEVICE_ERROR if _ERROR.search(line) else None


# Shorter times without I/O occur whenever fio waits for a CPU. Such short times do not change a result.
LEAST_IDLE_S = 0.2
IDLE_SHARE = 0.02
# tkperf reads the counters five to fifty times a second. On a busy host, a few tenths of a second may pass between two
# readings.
LEAST_STOP_S = 1.0
LEAST_SUSPENDED_S = 0.5
# The PTS allows no time between steps. tkperf needs about 20 ms, and about 100 ms with short steps on a busy host.
# Times near this limit occur only on a host with several times more work than its CPUs can process.
HANDOVER_LIMIT_S = 1.0
# If fio was not started in advance, its I/O begins within a third of a second, or within one or two seconds on a busy
# host.
COLD_START_LIMIT_S = 3.0


def judge_gap(gap_s: float | None, limit_s: float, started_s: float) -> tuple[Disturbance, ...]:
    """Return a disturbance if the device was idle too long before a step that began at ``started_s``."""
    if gap_s is None or gap_s <= limit_s:
        return ()
    text = f"the device was idle for {gap_s:.1f} s before the step"
    return (Disturbance(code=DisturbanceCode.IDLE_BEFORE, text=text, started_s=started_s - gap_s, duration_s=gap_s),)


def judge_idle(stretches: Iterable[tuple[float, float]], started_s: float, ended_s: float) -> tuple[Disturbance, ...]:
    """Return a disturbance if the device was idle during part of a step. ``stretches`` contains the start and the end
    of each idle time, in s.
    """
    within = [(max(begin, started_s), min(end, ended_s)) for begin, end in stretches]
    idle = [(begin, end) for begin, end in within if end - begin >= LEAST_IDLE_S]
    idle_s, duration_s = sum(end - begin for begin, end in idle), ended_s - started_s
    if not idle or idle_s <= IDLE_SHARE * duration_s:
        return ()
    share = idle_s / duration_s
    return (
        Disturbance(
            code=DisturbanceCode.IDLE_INSIDE,
            text=f"the device did nothing for {idle_s:.1f} s of the step ({share:.1%})",
            started_s=idle[0][0],
            duration_s=idle_s,
            share=share,
        ),
    )


def judge_stops(
    stops: Iterable[tuple[float, float]], sleeps: Iterable[tuple[float, float]], ended_s: float
) -> tuple[Disturbance, ...]:
    """Return one disturbance if tkperf did not run for some time (``stops``), and another disturbance if the host was
    suspended (``sleeps``). Both arguments contain the start and the duration of each such period, in s.
    """
    of_step = [(begin, lasted_s) for begin, lasted_s in stops if begin < ended_s]
    slept = [(begin, lasted_s) for begin, lasted_s in sleeps if begin < ended_s]
    return tuple(
        Disturbance(
            code=code,
            text=f"{who} for {sum(lasted_s for _, lasted_s in times):.1f} s",
            started_s=times[0][0],
            duration_s=sum(lasted_s for _, lasted_s in times),
        )
        for code, who, times in (
            (DisturbanceCode.STOPPED, "tkperf was stopped or got no CPU", of_step),
            (DisturbanceCode.SUSPENDED, "the host was suspended", slept),
        )
        if times
    )
