"""tkperf tune: show, apply and restore the settings of the host for a measurement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import click

from tkperf.cli.calling import Command
from tkperf.cli.commands.doctor import show_document
from tkperf.cli.kinds import Device
from tkperf.cli.suite_options import json_option
from tkperf.model.errors import DeviceError, UsageError


@click.command(cls=Command)
@click.argument("device", required=False, type=Device(simulated=False))
@click.option(
    "--apply",
    "apply_",
    is_flag=True,
    help="Change the settings. The settings remain changed until you call --restore. This option requires root "
    "privileges.",
)
@click.option("--restore", is_flag=True, help="Restore the previous settings. Omit DEVICE with this option.")
@json_option
def tune(device: str | None, apply_: bool, restore: bool, as_json: bool) -> None:
    """Show the settings that tkperf would change on this host to measure DEVICE. --apply changes these settings, and
    --restore restores the previous settings.

    The settings are the governor and the energy preference of the CPUs and, for DEVICE's queue, the I/O scheduler, the
    choice of the CPU that completes an I/O, and writeback throttling. tkperf touches no data, no other drive and no
    service. A reboot undoes all settings. For a single run, 'tkperf ssd ... --tune' changes the same settings and
    restores the previous settings at the end of the run.

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
            raise UsageError("--restore restores all settings. Use it without DEVICE and without --apply")
        _restore(as_json=as_json)
        return
    if device is None:
        raise UsageError("pass a DEVICE, or --restore")
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
    show_document(
        document, partial(build_tune_page, applied=apply_, is_file=identity.kind is TargetKind.FILE), as_json=as_json
    )


def _restore(*, as_json: bool) -> None:
    from tkperf.host.tuning import release_settings
    from tkperf.page.doctor import build_restored_page

    restored = release_settings()
    show_document(asdict(restored), build_restored_page, as_json=as_json)
    if restored.failed:
        raise DeviceError("; ".join(restored.failed))
