"""tkperf tune: show, set and put back settings of the host for a measurement."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from tkperf.cli.console import open_console, plain
from tkperf.cli.doctor import LEVEL_STYLES
from tkperf.device.identity import TargetKind, read_identity
from tkperf.host.audit import Audit, Level
from tkperf.host.audit.site import DAY_S
from tkperf.host.tuning.applying import Restored, apply_settings, release_settings
from tkperf.host.tuning.settings import Setting, find_settings
from tkperf.model.errors import DeviceError, UsageError
from tkperf.pipeline.host_check import audit_for, find_drives, make_site
from tkperf.pipeline.simulation import refuse_simulated


def tune(device: str | None, apply_: bool, restore: bool, as_json: bool) -> None:
    """Show, set or put back settings of the host."""
    if restore:
        if apply_ or device is not None:
            raise UsageError("--restore puts back everything: give it neither DEVICE nor --apply")
        _restore(as_json=as_json)
        return
    if device is None:
        raise UsageError("tune needs a DEVICE, or --restore")
    refuse_simulated(device)
    identity = read_identity(Path(device))
    settings = find_settings(make_site(), find_drives([identity]))
    changes: Sequence[str] = apply_settings(settings) if apply_ else ()
    audit = audit_for([identity], lasts_s=DAY_S)
    if as_json:
        document = {
            "schema": "tkperf-tune/1",
            "device": identity.path,
            "settings": [asdict(setting) for setting in settings],
            "changed": list(changes),
            "host": audit.plain(),
        }
        click.echo(json.dumps(document, indent=2))
        return
    console = open_console()
    if apply_:
        _show_changes(changes, console)
    else:
        _show_settings(settings, console)
        if identity.kind is TargetKind.FILE:
            console.print(
                "the queue of a file's drive is left alone: it has other users", highlight=False
            )
    _show_rest(audit, settings, console)
    if not apply_:
        console.print("nothing was set", highlight=False)


def _show_settings(settings: Sequence[Setting], console: Console) -> None:
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


def _show_changes(changes: Sequence[str], console: Console) -> None:
    for change in changes:
        console.print(f"set {plain(change)}", highlight=False)
    if changes:
        console.print("verified; to put it back: sudo tkperf tune --restore", style="green")
    else:
        console.print("everything that tkperf sets was as it should be", style="green")


def _show_rest(audit: Audit, settings: Sequence[Setting], console: Console) -> None:
    """Print other findings that matter, which only the user may change."""
    own = {setting.subject for setting in settings if setting.wanted is not None}
    rest = [one for one in audit.of(Level.DISTURBS, Level.ADVICE) if one.subject not in own]
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


def _restore(*, as_json: bool) -> None:
    restored = release_settings()
    if as_json:
        click.echo(json.dumps(asdict(restored), indent=2))
    else:
        _tell_restored(restored)
    if restored.failed:
        raise DeviceError("; ".join(restored.failed))


def _tell_restored(restored: Restored) -> None:
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
