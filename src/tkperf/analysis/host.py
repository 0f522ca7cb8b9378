"""Read the audit of the host from a run file, leniently: older files have none."""

from __future__ import annotations

from dataclasses import dataclass

# Names of levels: the first two cast doubt on the result, the third is for a finding that is not known.
DISTURBS, ADVICE, UNKNOWN = "would disturb", "advice", "not known"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFinding:
    """A finding of the audit from the run file; ``remedy`` is a command or advice, if there is one."""

    title: str
    level: str
    found: str
    why: str
    remedy: str | None = None
    is_setting: bool = False

    @property
    def text(self) -> str:
        """Return the finding; a level that disturbs or may disturb follows it."""
        if self.level in (DISTURBS, ADVICE):
            return f"{self.found} ({'may disturb' if self.level == ADVICE else self.level})"
        return self.found


def host_findings(host: dict[str, object]) -> tuple[HostFinding, ...]:
    """Return all findings of the audit, in their order; empty: there was no audit.

    Titles name the drive if there are several.
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
    """Return the host's settings by title: values that stay until a user changes them."""
    return {one.title: one.found for one in host_findings(host) if one.is_setting}


def tuned_settings(host: dict[str, object]) -> tuple[str, ...]:
    """Return the settings that tkperf made for the run, each as ``PATH: BEFORE -> AFTER``."""
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
