"""Scrubs, checks, fstrim: systemd's timers that are due within the run; cron jobs, whenever they are due."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from tkperf.host.audit.finding import Finding, Level, not_known
from tkperf.host.audit.site import TOOL_LIMIT_S, Site
from tkperf.model.errors import EngineError
from tkperf.model.units import format_duration

_TIMERS, _CRON = "timers due within the run", "cron jobs that work on drives"
_WHY = (
    "scrubs, checks, trims and indexing read or write drives, and take CPUs, links and controllers"
)
# Work on drives, by the name of its timer, command or script.
_HEAVY = re.compile(
    r"fstrim|mdcheck|mdadm-?scrub|mdmonitor-oneshot|raid-check|checkarray|e2scrub|xfs_scrub|scrub|"
    r"btrfs-(balance|defrag|trim)|updatedb|mlocate|plocate|apt-daily|unattended-upgrade|dnf-makecache|"
    r"dnf-automatic|snapper|restic|borg|backup|rsnapshot|smartctl|fwupd"
)
# For a script whose name says nothing, only its commands count.
_HEAVY_COMMAND = re.compile(
    r"\bfstrim\b|checkarray|raid-check|mdcheck|e2scrub|\bscrub\b|updatedb|smartctl|sync_action"
)
_LONGEST_CRON_BYTES = 1 << 20
_CRON_SERVICES = ("cron", "crond", "cronie", "fcron", "anacron")


def audit_timers(site: Site, *, shares: bool) -> Iterator[Finding]:
    """Yield findings on timers and cron jobs.

    Args:
        shares: untested drives share a controller or link with a tested one.
    """
    level = Level.DISTURBS if shares else Level.ADVICE
    yield _audit_systemd(site, level)
    yield _audit_cron(site)


def _audit_systemd(site: Site, level: Level) -> Finding:
    try:
        done = site.run(
            ["systemctl", "list-timers", "--all", "--no-pager", "--output=json"],
            timeout_s=TOOL_LIMIT_S,
        )
        timers = _parse_timers(done.stdout)
    except EngineError as error:
        because = "there is no systemctl" if "not installed" in str(error) else str(error)
        return not_known(_TIMERS, because, _WHY)
    except (ValueError, RecursionError):
        words = " ".join(done.stderr.split()) or "it printed what is no list of timers"
        return not_known(_TIMERS, f"systemctl: {words[:120]}", _WHY)
    due_s = {unit: at_s - site.now_s for unit, at_s in timers.items() if at_s is not None}
    due = sorted(
        (max(left_s, 0.0), unit) for unit, left_s in due_s.items() if left_s <= site.lasts_s
    )
    heavy = [(left_s, unit) for left_s, unit in due if _HEAVY.search(unit)]
    within = f"within {format_duration(site.lasts_s)}"
    if not heavy:
        others = f"; {len(due)} of other kinds" if due else ""
        return Finding(
            subject=_TIMERS,
            level=Level.OK,
            found=f"none that works on drives {within}{others}",
            why=_WHY,
            is_setting=False,
        )
    return Finding(
        subject=_TIMERS,
        level=level,
        found=", ".join(f"{unit} in {format_duration(left_s)}" for left_s, unit in heavy),
        why=_WHY,
        command=f"sudo systemctl stop {' '.join(unit for _, unit in heavy)}",
        is_setting=False,
    )


def _parse_timers(printed: str) -> dict[str, float | None]:
    """Return the next moment of each timer, in seconds since 1970; None: not planned.

    Raises:
        ValueError: the text is no list of timers.
    """
    rows = json.loads(printed)
    if not isinstance(rows, list):
        raise ValueError("not a list")  # noqa: TRY004  # as what is no JSON is
    timers: dict[str, float | None] = {}
    for row in rows:
        if not isinstance(row, dict) or not isinstance(row.get("unit"), str):
            raise ValueError("not a timer")  # noqa: TRY004  # likewise
        next_us = row.get("next")
        is_planned = isinstance(next_us, int) and 0 < next_us < 2**63
        timers[row["unit"]] = next_us / 1e6 if is_planned and isinstance(next_us, int) else None
    return timers


def _audit_cron(site: Site) -> Finding:
    if site.processes is None:
        return not_known(_CRON, "/proc shows no processes, such as cron", _WHY)
    service = next((name for name in _CRON_SERVICES if name in site.processes), None)
    if service is None:
        return Finding(
            subject=_CRON,
            level=Level.OK,
            found="no cron runs",
            why=_WHY,
            is_setting=False,
        )
    due: list[str] = []
    closed: list[str] = []
    for path in _cron_files(site.root, closed):
        if any(_HEAVY_COMMAND.search(row) for row in _lines(path, closed)):
            due.append(path.name)
    for period in ("hourly", "daily", "weekly", "monthly"):
        for script in sorted((site.root / f"etc/cron.{period}").glob("[!.]*")):
            named = _HEAVY.search(script.name)
            if named or any(_HEAVY_COMMAND.search(row) for row in _lines(script, closed)):
                due.append(f"{script.name} ({period})")
    if due:
        return Finding(
            subject=_CRON,
            level=Level.ADVICE,
            found=f"work on drives in {', '.join(due)}; when it is due was not looked at",
            why=_WHY,
            command=f"sudo systemctl stop {service}",
            is_setting=False,
        )
    if closed:
        return not_known(_CRON, f"{', '.join(closed)} cannot be read", _WHY)
    return Finding(
        subject=_CRON,
        level=Level.OK,
        found="none that works on drives",
        why=_WHY,
        is_setting=False,
    )


def _cron_files(root: Path, closed: list[str]) -> Iterator[Path]:
    """Yield the tables of cron: the system's, and users' own. Unreadable folders go to ``closed``."""
    if (root / "etc/crontab").exists():
        yield root / "etc/crontab"
    for folder in ("etc/cron.d", "var/spool/cron/crontabs", "var/spool/cron"):
        try:
            yield from (
                path
                for path in sorted((root / folder).iterdir())
                if path.is_file() and not path.name.startswith(".")
            )
        except FileNotFoundError:
            continue
        except OSError:
            closed.append(f"/{folder}")


def _lines(path: Path, closed: list[str]) -> list[str]:
    """Return the lines of a file without comments; none for other things than files, such as a pipe."""
    try:
        if not path.is_file():
            return []
        with path.open("rb") as file:
            content = file.read(_LONGEST_CRON_BYTES).decode(errors="replace")
    except OSError:
        closed.append(path.name)
        return []
    rows = (row.strip() for row in content.splitlines())
    return [row for row in rows if row and not row.startswith("#")]
