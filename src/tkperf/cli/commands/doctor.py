"""tkperf doctor: show the facts of a device, whether it could be tested, and what the host lacks."""

from __future__ import annotations

from typing import Any

import click

from tkperf.cli.calling import Command
from tkperf.cli.kinds import Device


@click.command(cls=Command)
@click.argument("device", required=False, type=Device(simulated=False))
@click.option("--unlock", is_flag=True, help="Clear an ATA password that a cut-off purge left.")
@click.option("--json", "as_json", is_flag=True, help="As a JSON document for programs.")
def doctor(**options: Any) -> None:
    """What tkperf knows of DEVICE, whether it could be tested, and what this machine lacks.

    Nothing is written to the device, save that --unlock takes tkperf's own ATA password away.

    \b
    Examples:
      tkperf doctor
      tkperf doctor /dev/nvme0n1
      tkperf doctor /dev/sdb --unlock
    """
    from tkperf.cli.doctor import doctor as act

    act(**options)
