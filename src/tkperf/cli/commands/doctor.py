"""tkperf doctor: show facts about a device and about this host before a measurement."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from tkperf.cli.calling import Command
from tkperf.cli.kinds import Device
from tkperf.cli.suite_options import json_option
from tkperf.model.errors import UsageError
from tkperf.model.units import drop_controls

if TYPE_CHECKING:
    from tkperf.page.page import ReportView


@click.command(cls=Command)
@click.argument("device", required=False, type=Device())
@click.option("--unlock", is_flag=True, help="Clear an ATA password that an interrupted purge left on DEVICE.")
@json_option
def doctor(device: str | None, unlock: bool, as_json: bool) -> None:
    """Show the facts of DEVICE, state whether tkperf can test DEVICE, and list what is missing on this machine.

    tkperf writes nothing to the device, except that --unlock clears tkperf's own ATA password.

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
        show_document(diagnosis.diagnose_host().as_plain_data(), build_host_page, as_json=as_json)
    else:
        show_document(diagnosis.diagnose_device(device).as_plain_data(), build_device_page, as_json=as_json)


def show_document(
    document: dict[str, object], build_page: Callable[[dict[str, object]], ReportView], *, as_json: bool
) -> None:
    """Print a document as JSON with its verdict, or as the page that ``build_page`` builds from the document."""
    page = build_page(document)
    if as_json:
        from tkperf.render.export_json import build_verdict

        click.echo(json.dumps({**document, "verdict": build_verdict(page.verdict)}, indent=2))
        return
    from tkperf.render.terminal.console import open_console
    from tkperf.render.terminal.page_text import print_page

    print_page(page, open_console(), titled=False)
