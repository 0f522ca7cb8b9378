"""Time without activity: idle time of the device, or a stop of tkperf or the host."""

from __future__ import annotations

from collections.abc import Iterable

from tkperf.model.disturbance.codes import Disturbance, DisturbanceCode

# Shorter times without I/O come from a host on which fio waits for a CPU, and do not matter.
LEAST_IDLE_S = 0.2
IDLE_SHARE = 0.02
# tkperf looks five to fifty times a second; on a busy host it waits for some tenths of a second.
LEAST_STOP_S = 1.0
LEAST_SUSPENDED_S = 0.5
# The PTS wants no time between steps. tkperf needs some 20 ms, with quick steps on a busy host
# some 100 ms; only a host with several times more work than CPUs comes near this limit.
HANDOVER_LIMIT_S = 1.0
# Without preparation fio starts within a third of a second, on a busy host
# within several times that.
COLD_START_LIMIT_S = 3.0


def judge_gap(gap_s: float | None, limit_s: float, started_s: float) -> tuple[Disturbance, ...]:
    """Return a disturbance if the device was idle too long before a step that began at ``started_s``."""
    if gap_s is None or gap_s <= limit_s:
        return ()
    text = f"the device stood idle for {gap_s:.1f} s before the step"
    return (
        Disturbance(
            code=DisturbanceCode.IDLE_BEFORE,
            text=text,
            started_s=started_s - gap_s,
            duration_s=gap_s,
        ),
    )


def judge_idle(
    stretches: Iterable[tuple[float, float]], started_s: float, ended_s: float
) -> tuple[Disturbance, ...]:
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
