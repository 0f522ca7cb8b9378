"""Settings of the host in the terminal, as tkperf tune shows, sets and puts them back."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from tkperf.host.audit import Audit, AuditLevel
from tkperf.host.settings import Setting
from tkperf.host.tuning import Restored
from tkperf.render.terminal.console import open_console, plain
from tkperf.render.terminal.doctor import LEVEL_STYLES


def print_settings(settings: Sequence[Setting], console: Console) -> None:
    """Print the settings, with one row for settings that are alike on all CPUs."""
    rows: dict[tuple[object, ...], list[Setting]] = {}
    for setting in settings:
        if setting.wanted is not None:
            key = (setting.subject, setting.drive, setting.now, setting.wanted, setting.offered)
            rows.setdefault(key, []).append(setting)
    if not rows:
        console.print("there is nothing here that tkperf could set", highlight=False)
        return
    table = Table(title="what tkperf would set", title_justify="left")
    for column in ("setting", "now", "would be", "where", "for"):
        table.add_column(column, overflow="fold")
    for alike in rows.values():
        first = alike[0]
        wanted = first.wanted if first.is_changed else "stays"
        if first.offered is False:
            wanted = f"stays ({first.wanted} is not offered)"
        where = first.path if len(alike) == 1 else f"{first.path} and {len(alike) - 1} more"
        table.add_row(
            first.subject,
            plain(first.now or "not known"),
            plain(str(wanted)),
            plain(where),
            first.why,
        )
    console.print(table)


def print_changes(changes: Sequence[str], console: Console) -> None:
    for change in changes:
        console.print(f"set {plain(change)}", highlight=False)
    if changes:
        console.print("verified; to put it back: sudo tkperf tune --restore", style="green")
    else:
        console.print("everything that tkperf sets was as it should be", style="green")


def print_rest(audit: Audit, settings: Sequence[Setting], console: Console) -> None:
    """Print other findings that matter, which only the user may change."""
    own = {setting.subject for setting in settings if setting.wanted is not None}
    rest = [
        one
        for one in audit.at_levels(AuditLevel.DISTURBS, AuditLevel.ADVICE)
        if one.subject not in own
    ]
    if not rest:
        return
    table = Table(title="what tkperf leaves to you", title_justify="left")
    for column in ("subject", "found", "what to do"):
        table.add_column(column, overflow="fold")
    for finding in rest:
        table.add_row(
            plain(finding.title),
            plain(finding.found),
            plain(finding.remedy),
            style=LEVEL_STYLES[finding.level],
        )
    console.print(table)


def print_restored(restored: Restored) -> None:
    console = open_console()
    for change in restored.put_back:
        console.print(f"put back {plain(change)}", highlight=False)
    for reason in restored.left:
        console.print(f"left as it is: {plain(reason)}", style="yellow", highlight=False)
    for path in restored.kept_for:
        console.print(f"stays while a run goes on: {plain(path)}", highlight=False)
    if restored.rebooted:
        console.print("this host was started anew since: its settings are its own again")
    elif restored == Restored():
        console.print("there is nothing to put back")
