"""What is told of the host beside a step, as columns: the same in the report and in every export."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tkperf.host_use import HostUse


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFact:
    """One number: its name in exports with its unit, its title for people, how it is found; None: not known."""

    key: str
    title: str
    value: Callable[[HostUse], float | None]
    digits: int = 1


def _pressure(kind: str) -> Callable[[HostUse], float | None]:
    return lambda use: use.pressure_percent.get(kind)


HOST_FACTS: tuple[HostFact, ...] = (
    HostFact(key="cpu_busy_percent", title="CPUs busy (%)", value=lambda use: use.cpu_busy_percent),
    HostFact(
        key="allowed_cpu_busy_percent",
        title="CPUs that fio may use busy (%)",
        value=lambda use: use.allowed_cpu_busy_percent,
    ),
    HostFact(
        key="cpu_iowait_percent", title="iowait (%)", value=lambda use: use.cpu_iowait_percent
    ),
    HostFact(
        key="steal_percent",
        title="steal (% of CPU time wanted)",
        value=lambda use: use.steal_percent,
    ),
    HostFact(
        key="own_cpu_percent",
        title="tkperf and fio (% of a CPU)",
        value=lambda use: use.own_cpu_percent,
    ),
    HostFact(
        key="others_cpu_percent",
        title="other programs (% of a CPU)",
        value=lambda use: use.others_cpu_percent,
    ),
    HostFact(
        key="fio_wait_percent",
        title="fio waiting for a CPU (%)",
        value=lambda use: use.fio_wait_percent,
    ),
    *(
        HostFact(
            key=f"{prefix.replace(' ', '_')}pressure_{resource}_{kind}_percent",
            title=f"{prefix}pressure {resource} {kind} (%)",
            value=_pressure(f"{prefix}{resource} {kind}"),
        )
        for prefix in ("", "own ")
        for resource in ("cpu", "io", "memory")
        for kind in ("some", "full")
        # The kernel tells none of the whole system.
        if (prefix, resource, kind) != ("", "cpu", "full")
    ),
    HostFact(
        key="throttled_percent",
        title="stopped by a CPU limit (%)",
        value=lambda use: use.throttled_percent,
    ),
    HostFact(
        key="heat_events",
        title="slow-downs by heat",
        value=lambda use: use.heat_events,
        digits=0,
    ),
    HostFact(
        key="frequency_mhz", title="CPU clock (MHz)", value=lambda use: use.frequency_mhz, digits=0
    ),
    HostFact(
        key="frequency_max_mhz",
        title="highest CPU clock (MHz)",
        value=lambda use: use.frequency_max_mhz,
        digits=0,
    ),
)
