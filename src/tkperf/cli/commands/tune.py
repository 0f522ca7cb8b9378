"""tkperf tune: show, set and put back settings of the host for a measurement."""

from __future__ import annotations

from typing import Any

import click

from tkperf.cli.calling import Command
from tkperf.cli.kinds import Device


@click.command(cls=Command)
@click.argument("device", required=False, type=Device(simulated=False))
@click.option("--apply", "apply_", is_flag=True, help="Set them, as root, until --restore.")
@click.option("--restore", is_flag=True, help="Put back what was before; needs no DEVICE.")
@click.option("--json", "as_json", is_flag=True, help="As a JSON document for programs.")
def tune(**options: Any) -> None:
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
    from tkperf.cli.tune import tune as act

    act(**options)
