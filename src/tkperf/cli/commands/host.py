"""tkperf doctor and tkperf tune: facts of a device and of the host before a measurement, and the host's settings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from tkperf.cli.calling import Command
from tkperf.cli.kinds import Device
from tkperf.cli.options import json_option
from tkperf.model.errors import DeviceError, UsageError


@click.command(cls=Command)
@click.argument("device", required=False, type=Device(simulated=False))
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
    from tkperf.pipeline import diagnosis
    from tkperf.pipeline.simulation import refuse_simulated
    from tkperf.render.terminal.console import OutputConsole, plain
    from tkperf.render.terminal.doctor import print_device, print_host

    console = OutputConsole()
    if device is None:
        if unlock:
            raise UsageError("--unlock needs a DEVICE")
        of_host = diagnosis.diagnose_host()
        if as_json:
            click.echo(json.dumps(of_host.plain(), indent=2))
        else:
            print_host(of_host, console)
        return
    refuse_simulated(device)
    if unlock:
        cleared = diagnosis.unlock(device)
        state = "the password is cleared" if cleared else "no password is set, nothing to do"
        console.print(f"{plain(device)}: {state}", highlight=False)
        return
    of_device = diagnosis.diagnose_device(device)
    if as_json:
        click.echo(json.dumps(of_device.plain(), indent=2))
    else:
        print_device(of_device, console)


@click.command(cls=Command)
@click.argument("device", required=False, type=Device(simulated=False))
@click.option(
    "--apply", "apply_", is_flag=True, help="Apply the settings, as root, until --restore."
)
@click.option("--restore", is_flag=True, help="Restore the previous settings; needs no DEVICE.")
@json_option
def tune(device: str | None, apply_: bool, restore: bool, as_json: bool) -> None:
    """Show what tkperf would set on this host to measure DEVICE; --apply sets it, --restore puts it back.

    Governor and energy preference of the CPUs, and scheduler, completions and throttling of DEVICE's
    queue. No data, no other drive and no service is touched; a reboot forgets it all. For a single run
    'tkperf ssd ... --tune' does the same and puts it back in the end.

    \b
    Examples:
      tkperf tune /dev/nvme1n1
      sudo tkperf tune /dev/nvme1n1 --apply
      sudo tkperf tune --restore
    """
    from tkperf.device.identity import TargetKind, read_identity
    from tkperf.host.audit.site import DAY_S
    from tkperf.host.settings import find_settings
    from tkperf.host.tuning import apply_settings
    from tkperf.pipeline.host_check import audit_for, find_drives, make_site
    from tkperf.pipeline.simulation import refuse_simulated
    from tkperf.render.terminal.console import open_console
    from tkperf.render.terminal.tune import print_changes, print_rest, print_settings

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
        print_changes(changes, console)
    else:
        print_settings(settings, console)
        if identity.kind is TargetKind.FILE:
            console.print(
                "the queue of a file's drive is left alone: it has other users", highlight=False
            )
    print_rest(audit, settings, console)
    if not apply_:
        console.print("nothing was set", highlight=False)


def _restore(*, as_json: bool) -> None:
    from tkperf.host.tuning import release_settings
    from tkperf.render.terminal.tune import print_restored

    restored = release_settings()
    if as_json:
        click.echo(json.dumps(asdict(restored), indent=2))
    else:
        print_restored(restored)
    if restored.failed:
        raise DeviceError("; ".join(restored.failed))
