"""What a run file says of the audit of its host, read leniently: files of before it have none."""

from __future__ import annotations

from dataclasses import dataclass

# How a finding's level is called that speaks against trusting the result, or that nobody knows.
DISTURBS, ADVICE, UNKNOWN = "would disturb", "advice", "not known"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFinding:
    """A finding as it was kept; ``remedy`` is a command or advice, if there was one."""

    title: str
    level: str
    found: str
    why: str
    remedy: str | None = None
    is_setting: bool = False

    @property
    def text(self) -> str:
        """What was found, with its level where that is not ok or a note."""
        if self.level in (DISTURBS, ADVICE):
            return f"{self.found} ({'may disturb' if self.level == ADVICE else self.level})"
        return self.found


def host_findings(host: dict[str, object]) -> tuple[HostFinding, ...]:
    """All findings of the audit, in their order; empty where there was none.

    Their titles name the drive where there are several.
    """
    kept = host.get("audit")
    rows = [
        row
        for row in (kept if isinstance(kept, list) else [])
        if isinstance(row, dict) and row.get("subject")
    ]
    several = len({str(row["device"]) for row in rows if row.get("device")}) > 1
    return tuple(_finding(row, named=several) for row in rows)


def found_settings(host: dict[str, object]) -> dict[str, str]:
    """What was set on the host, by title: all that stays as it is until somebody changes it."""
    return {one.title: one.found for one in host_findings(host) if one.is_setting}


def tuned_settings(host: dict[str, object]) -> tuple[str, ...]:
    """What tkperf set for the run, each as ``PATH: BEFORE -> AFTER``."""
    kept = host.get("tuned")
    return tuple(str(row) for row in kept) if isinstance(kept, list) else ()


def _finding(row: dict[str, object], *, named: bool) -> HostFinding:
    device = row.get("device") if named else None
    remedy = row.get("command") or row.get("otherwise")
    return HostFinding(
        title=f"{row['subject']} of {device}" if device else str(row["subject"]),
        level=str(row.get("level")),
        found=str(row.get("found")),
        why=str(row.get("why") or ""),
        remedy=None if remedy is None else str(remedy),
        is_setting=row.get("is_setting") is True,
    )
