"""tkperf doctor and tkperf tune: facts of a device and of the host before a measurement, and the host's settings."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tkperf.cli.calling import Command
from tkperf.cli.kinds import Device
from tkperf.cli.suite_options import json_option
from tkperf.model.errors import DeviceError, UsageError
from tkperf.model.units import drop_controls

if TYPE_CHECKING:
    from tkperf.page.page import ReportView


@click.command(cls=Command)
@click.argument("device", required=False, type=Device())
@click.option("--unlock", is_flag=True, help="Clear an ATA password left by an interrupted purge.")
@json_option
def doctor(device: str | None, unlock: bool, as_json: bool) -> None:
    """Show the facts of DEVICE, whether it could be tested, and what this machine lacks.

    Nothing is written to the device, except that --unlock clears tkperf's own ATA password.

    \b
    Examples:
      tkperf doctor
      tkperf doctor /dev/nvme0n1
      tkperf doctor /dev/sdb --unlock
    """
    from tkperf.page.doctor import build_device_page, build_host_page
    from tkperf.pipeline import diagnosis
    from tkperf.pipeline.simulation import refuse_simulated

    if unlock:
        if device is None:
            raise UsageError("--unlock needs a DEVICE")
        refuse_simulated(device)
        cleared = diagnosis.unlock(device)
        state = "the password is cleared" if cleared else "no password is set, nothing to do"
        click.echo(drop_controls(f"{device}: {state}"))
    elif device is None:
        _show(diagnosis.diagnose_host().as_plain_data(), build_host_page, as_json=as_json)
    else:
        _show(diagnosis.diagnose_device(device).as_plain_data(), build_device_page, as_json=as_json)


def _show(document: dict[str, object], build_page: Callable[[dict[str, object]], ReportView], *, as_json: bool) -> None:
    """Print a document with its verdict, or the page that it makes."""
    page = build_page(document)
    if as_json:
        from tkperf.render.export_json import build_verdict

        click.echo(json.dumps({**document, "verdict": build_verdict(page.verdict)}, indent=2))
        return
    from tkperf.render.terminal.console import open_console
    from tkperf.render.terminal.page_text import print_page

    print_page(page, open_console(), titled=False)


@click.command(cls=Command)
@click.argument("device", required=False, type=Device(simulated=False))
@click.option("--apply", "apply_", is_flag=True, help="Apply the settings, as root, until --restore.")
@click.option("--restore", is_flag=True, help="Restore the previous settings; needs no DEVICE.")
@json_option
def tune(device: str | None, apply_: bool, restore: bool, as_json: bool) -> None:
    """Show what tkperf would set on this host to measure DEVICE; --apply sets it, --restore restores it.

    The settings are governor and energy preference of the CPUs, and scheduler, completions and throttling of DEVICE's
    queue. tkperf touches no data, no other drive and no service; a reboot undoes all settings. For a single run,
    'tkperf ssd ... --tune' does the same and restores the settings at the end.

    \b
    Examples:
      tkperf tune /dev/nvme1n1
      sudo tkperf tune /dev/nvme1n1 --apply
      sudo tkperf tune --restore
    """
    from tkperf.device.identity import TargetKind, read_identity
    from tkperf.host.audit.audited_host import DAY_S
    from tkperf.host.settings import find_settings
    from tkperf.host.tuning import apply_settings
    from tkperf.page.doctor import build_tune_page
    from tkperf.pipeline.host_check import audit_for, describe_audited_host, find_drives
    from tkperf.pipeline.simulation import refuse_simulated

    if restore:
        if apply_ or device is not None:
            raise UsageError("--restore puts back everything: give it neither DEVICE nor --apply")
        _restore(as_json=as_json)
        return
    if device is None:
        raise UsageError("tune needs a DEVICE, or --restore")
    refuse_simulated(device)
    identity = read_identity(Path(device))
    settings = find_settings(describe_audited_host(), find_drives([identity]))
    changes: Sequence[str] = apply_settings(settings) if apply_ else ()
    audit = audit_for([identity], lasts_s=DAY_S)
    document: dict[str, object] = {
        "schema": "tkperf-tune/1",
        "device": identity.path,
        "settings": [asdict(setting) for setting in settings],
        "changed": list(changes),
        "host": audit.as_plain_data(),
    }
    _show(document, partial(build_tune_page, applied=apply_, is_file=identity.kind is TargetKind.FILE), as_json=as_json)


def _restore(*, as_json: bool) -> None:
    from tkperf.host.tuning import release_settings
    from tkperf.page.doctor import build_restored_page

    restored = release_settings()
    _show(asdict(restored), build_restored_page, as_json=as_json)
    if restored.failed:
        raise DeviceError("; ".join(restored.failed))
