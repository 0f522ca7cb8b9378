"""The state of the host in the results. The state consists of the findings of the host audit, the settings, and the
load on the host during each step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter

from tkperf.model.host_use import HostUse

# Levels of a finding. A finding with one of the first two levels makes the result doubtful. The third level means that
# tkperf could not determine the state.
DISTURBS, ADVICE, UNKNOWN = "would disturb", "advice", "not known"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCondition:
    """A finding of the audit, from the run file or from a diagnosis of the host. ``remedy`` is a command or advice.
    None means that no remedy is known.
    """

    title: str
    level: str
    found: str
    why: str
    remedy: str | None = None
    is_command: bool = False
    is_setting: bool = False

    @property
    def text(self) -> str:
        """Return the finding as text. If the finding disturbs or may disturb the measurement, the text states this
        too.
        """
        if self.level in (DISTURBS, ADVICE):
            return f"{self.found} ({'may disturb' if self.level == ADVICE else self.level})"
        return self.found


def host_findings(host: dict[str, object]) -> tuple[HostCondition, ...]:
    """Return all findings of the audit, in the order of the audit. If there was no audit, the result is empty.

    If there are several drives, the titles contain the name of the drive.
    """
    kept = host.get("audit")
    rows = [row for row in (kept if isinstance(kept, list) else []) if isinstance(row, dict) and row.get("subject")]
    several = len({str(row["device"]) for row in rows if row.get("device")}) > 1
    return tuple(_finding(row, named=several) for row in rows)


def found_settings(host: dict[str, object]) -> dict[str, str]:
    """Return the settings of the host. The title of a setting is the key. Settings are values that remain the same
    until a user changes them.
    """
    return {one.title: one.found for one in host_findings(host) if one.is_setting}


def tuned_settings(host: dict[str, object]) -> tuple[str, ...]:
    """Return the settings that tkperf changed for the run, each as ``PATH: BEFORE -> AFTER``."""
    kept = host.get("tuned")
    return tuple(str(row) for row in kept) if isinstance(kept, list) else ()


def _finding(row: dict[str, object], *, named: bool) -> HostCondition:
    device = row.get("device") if named else None
    remedy = row.get("command") or row.get("otherwise")
    return HostCondition(
        title=f"{row['subject']} of {device}" if device else str(row["subject"]),
        level=str(row.get("level")),
        found=str(row.get("found")),
        why=str(row.get("why") or ""),
        remedy=None if remedy is None else str(remedy),
        is_command=bool(row.get("command")),
        is_setting=row.get("is_setting") is True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFact:
    """A number about the host. ``key`` is the name in exports and contains the unit. ``title`` is the name that people
    read. ``value`` is the function that computes the number.

    The function returns None if the number is not known.
    """

    key: str
    title: str
    value: Callable[[HostUse], float | None]
    digits: int = 1
    value_type: type = float


def _pressure(kind: str) -> Callable[[HostUse], float | None]:
    return lambda use: use.pressure_percent.get(kind)


def _fact(key: str, title: str, digits: int = 1, value_type: type = float) -> HostFact:
    """Return the number that an attribute of ``HostUse`` contains. The key of the number is the name of the
    attribute.
    """
    return HostFact(key=key, title=title, value=attrgetter(key), digits=digits, value_type=value_type)


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
        # The values for "cpu full" of the whole system are omitted, because the kernel does not report them.
        if (prefix, resource, kind) != ("", "cpu", "full")
    ),
    _fact("throttled_percent", "stopped by a CPU limit (%)"),
    _fact("heat_events", "slow-downs by heat", digits=0, value_type=int),
    _fact("frequency_mhz", "CPU clock (MHz)", digits=0),
    _fact("frequency_max_mhz", "highest CPU clock (MHz)", digits=0),
)
