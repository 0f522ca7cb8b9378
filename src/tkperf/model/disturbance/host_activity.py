"""The host during a step: its CPUs, resources taken from fio, a device in trouble; time without activity."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from tkperf.model.disturbance.io import Disturbance, DisturbanceCode
from tkperf.model.host_use import HostUse

# Percent of the time of the CPUs that fio may run on. Daemons, timers and an idle desktop stay below it.
OTHERS_PERCENT = 3.0
# Percent of the step's time. A load that needs its CPU loses the time that fio's threads wait for one. A
# thread that shares two CPUs with other fio threads and a drive's interrupts waits less than this.
WAIT_PERCENT = 3.0
# Percent of the step's time. All threads stop at once, so a result loses the same share.
THROTTLED_PERCENT = 1.0
# Percent of the CPU time wanted; a hypervisor with free CPUs takes some tenths.
STEAL_PERCENT = 3.0
# Percent of the step's time in which any program waited for memory; fio's own is locked before it begins.
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
    """Return the influences of the host on a step's result, from its activity meanwhile."""
    if use is None:
        return ()
    return tuple(
        Disturbance(code=code, text=text, started_s=started_s, duration_s=duration_s, share=share)
        for code, text, share in (*_contention(use), *_shares(use), *_heat(use), *_logged(use.kernel_lines or ()))
    )


_Found = tuple[DisturbanceCode, str, float | None]


def _contention(use: HostUse) -> Iterator[_Found]:
    """Require both: others alone may run on CPUs without fio, and fio alone may wait for its own threads."""
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
    """Return the share of time that fio waited for a CPU, or any program did if fio's threads were not seen."""
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
    """Yield the first line of each kind, and the number of further lines."""
    by_code: dict[DisturbanceCode, list[str]] = {}
    for line in lines:
        if (code := find_trouble(line)) is not None:
            by_code.setdefault(code, []).append(line)
    for code, of_code in by_code.items():
        more = f", and {len(of_code) - 1} more lines" if len(of_code) > 1 else ""
        yield code, f"the kernel's log: {of_code[0]}{more}", None


def find_trouble(line: str) -> DisturbanceCode | None:
    """Return the kind of trouble in a kernel log line about the device; None: nothing that matters."""
    if _LINK.search(line):
        return DisturbanceCode.LINK_CHANGE
    return DisturbanceCode.DEVICE_ERROR if _ERROR.search(line) else None


# Shorter times without I/O come from a host on which fio waits for a CPU, and do not matter.
LEAST_IDLE_S = 0.2
IDLE_SHARE = 0.02
# tkperf looks five to fifty times a second; on a busy host it waits for some tenths of a second.
LEAST_STOP_S = 1.0
LEAST_SUSPENDED_S = 0.5
# The PTS wants no time between steps. tkperf needs some 20 ms, with quick steps on a busy host
# some 100 ms; only a host with several times more work than CPUs comes near this limit.
HANDOVER_LIMIT_S = 1.0
# Without preparation fio starts within a third of a second, and on a busy host within one or two seconds.
COLD_START_LIMIT_S = 3.0


def judge_gap(gap_s: float | None, limit_s: float, started_s: float) -> tuple[Disturbance, ...]:
    """Return a disturbance if the device was idle too long before a step that began at ``started_s``."""
    if gap_s is None or gap_s <= limit_s:
        return ()
    text = f"the device was idle for {gap_s:.1f} s before the step"
    return (Disturbance(code=DisturbanceCode.IDLE_BEFORE, text=text, started_s=started_s - gap_s, duration_s=gap_s),)


def judge_idle(stretches: Iterable[tuple[float, float]], started_s: float, ended_s: float) -> tuple[Disturbance, ...]:
    """Return a disturbance if the device did nothing for part of a step, from (begin, end) of each such stretch."""
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
    """Return the stops of tkperf and the host, from (begin, duration) of each stop."""
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
