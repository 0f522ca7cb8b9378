"""Facts about the host during a step, as columns: the same in the report and in every export."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter

from tkperf.model.host_use import HostUse


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFact:
    """One number: its key in exports with the unit, its title for people, and the function that finds it.

    The function returns None if the number is not known.
    """

    key: str
    title: str
    value: Callable[[HostUse], float | None]
    digits: int = 1


def _pressure(kind: str) -> Callable[[HostUse], float | None]:
    return lambda use: use.pressure_percent.get(kind)


def _fact(key: str, title: str, digits: int = 1) -> HostFact:
    """Return the fact that has the name of an attribute of ``HostUse``."""
    return HostFact(key=key, title=title, value=attrgetter(key), digits=digits)


HOST_FACTS: tuple[HostFact, ...] = (
    _fact("cpu_busy_percent", "CPUs busy (%)"),
    _fact("allowed_cpu_busy_percent", "CPUs that fio may use busy (%)"),
    _fact("cpu_iowait_percent", "iowait (%)"),
    _fact("steal_percent", "steal (% of CPU time wanted)"),
    _fact("own_cpu_percent", "tkperf and fio (% of a CPU)"),
    _fact("others_cpu_percent", "other programs (% of a CPU)"),
    _fact("fio_wait_percent", "fio waiting for a CPU (%)"),
    *(
        HostFact(
            key=f"{prefix.replace(' ', '_')}pressure_{resource}_{kind}_percent",
            title=f"{prefix}pressure {resource} {kind} (%)",
            value=_pressure(f"{prefix}{resource} {kind}"),
        )
        for prefix in ("", "own ")
        for resource in ("cpu", "io", "memory")
        for kind in ("some", "full")
        # The kernel gives no such number for the whole system.
        if (prefix, resource, kind) != ("", "cpu", "full")
    ),
    _fact("throttled_percent", "stopped by a CPU limit (%)"),
    _fact("heat_events", "slow-downs by heat", digits=0),
    _fact("frequency_mhz", "CPU clock (MHz)", digits=0),
    _fact("frequency_max_mhz", "highest CPU clock (MHz)", digits=0),
)
