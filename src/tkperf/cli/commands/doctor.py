"""tkperf doctor: show the facts of a device, whether it could be tested, and what the host lacks."""

from __future__ import annotations

import json

import click

from tkperf.cli.calling import Command
from tkperf.cli.kinds import Device
from tkperf.model.errors import UsageError


@click.command(cls=Command)
@click.argument("device", required=False, type=Device(simulated=False))
@click.option("--unlock", is_flag=True, help="Clear an ATA password that a cut-off purge left.")
@click.option("--json", "as_json", is_flag=True, help="As a JSON document for programs.")
def doctor(device: str | None, unlock: bool, as_json: bool) -> None:
    """What tkperf knows of DEVICE, whether it could be tested, and what this machine lacks.

    Nothing is written to the device, save that --unlock takes tkperf's own ATA password away.

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
