"""tkperf doctor: show the facts of a device, whether it could be tested, and what the host lacks."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from tkperf.cli.console import OutputConsole, plain
from tkperf.device.identity import DeviceIdentity, TargetKind, read_identity
from tkperf.device.inspection import DeviceFacts, inspect_device
from tkperf.device.purge import PurgePlan, plan_purge
from tkperf.device.purge.ata import clear_left_password
from tkperf.device.safety import Objection, find_data, find_objections
from tkperf.device.telemetry.watch import look_at_telemetry
from tkperf.engine.fio_setup import find_fio_version
from tkperf.host.audit import Audit, Level
from tkperf.host.audit.site import DAY_S
from tkperf.model.errors import DeviceError, EngineError, RefusedError, UsageError
from tkperf.model.telemetry.reading import DriveFacts, Reading
from tkperf.model.units import format_capacity
from tkperf.pipeline.host_check import audit_for
from tkperf.pipeline.simulation import refuse_simulated
from tkperf.system.host import read_host
from tkperf.system.process import PACKAGES, find_program

# Programs that tkperf calls, with their purpose. Every measurement needs the first three.
TOOLS = {
    "fio": "all I/O",
    "setpriv": "ending fio with tkperf",
    "flock": "handing over between steps",
    "wipefs": "recognising data on a device",
    "nvme": "NVMe: identity, purge, write cache, telemetry",
    "hdparm": "SATA: security state, purge",
    "smartctl": "SATA, SAS, USB: identity, telemetry",
    "sg_format": "SAS: purge",
    "mdadm": "software RAID",
    "file": "recognising what an existing file holds",
}
LABELS = {
    "capacity_bytes": "capacity",
    "logical_block_bytes": "logical sector (bytes)",
    "physical_block_bytes": "physical sector (bytes)",
    "link_fastest": "link, fastest",
    "link_downgraded": "link downgraded",
    "numa_node": "NUMA node",
    "host_adapter": "host adapter",
    "write_cache": "write cache (kernel)",
    "rotation_rate_rpm": "rotation rate (1/min)",
    "major_minor": "major:minor",
    "wwn": "WWN",
}
LEVEL_STYLES = {
    Level.OK: "",
    Level.NOTE: "",
    Level.ADVICE: "yellow",
    Level.DISTURBS: "bold red",
    Level.NOT_KNOWN: "dim",
}
HIDDEN = ("inode", "disk_sequence", "partition", "backing", "loop_backing")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Diagnosis:
    identity: DeviceIdentity
    facts: DeviceFacts
    objections: tuple[Objection, ...]
    data: tuple[str, ...]
    purge: PurgePlan
    audit: Audit
    telemetry: DriveFacts | None
    reading: Reading | None


def doctor(device: str | None, unlock: bool, as_json: bool) -> None:
    """Show the facts of a device or of the host, or unlock a drive."""
    console = OutputConsole()
    if device is None:
        if unlock:
            raise UsageError("--unlock needs a DEVICE")
        _show_host(console, as_json=as_json)
        return
    refuse_simulated(device)
    if unlock:
        _unlock(device, console)
        return
    diagnosis = _diagnose(device)
    if as_json:
        click.echo(json.dumps(_plain(diagnosis), indent=2))
    else:
        _show_device(diagnosis, console)


def _diagnose(device: str) -> _Diagnosis:
    identity = read_identity(Path(device))
    try:
        data = tuple(str(signature) for signature in find_data(identity))
    except DeviceError as error:
        data = (str(error),)
    telemetry, reading = look_at_telemetry(identity)
    return _Diagnosis(
        identity=identity,
        facts=inspect_device(identity),
        objections=find_objections(identity),
        data=data,
        purge=plan_purge(identity),
        audit=audit_for([identity], lasts_s=DAY_S),
        telemetry=telemetry,
        reading=reading,
    )


def _show_device(diagnosis: _Diagnosis, console: Console) -> None:
    facts = diagnosis.facts
    # A file does not have most of these facts, so they are not shown as unknown.
    is_file = diagnosis.identity.kind is TargetKind.FILE
    table = Table(title=plain(diagnosis.identity.path), title_justify="left")
    for column in ("fact", "value", "source"):
        table.add_column(column, overflow="fold")
    for name, value in facts.values.items():
        if value is not None or not (is_file or name in HIDDEN):
            table.add_row(
                LABELS.get(name, name.replace("_", " ")),
                plain(_say(name, value)),
                plain(facts.sources.get(name, "")),
            )
    console.print(table)
    for gap in facts.gaps:
        console.print(f"not known because: {plain(gap)}", style="yellow", highlight=False)
    if facts.values.get("link_downgraded"):
        console.print("the link runs below what the drive could do", style="bold yellow")
    _show_purge(diagnosis.purge, console, head="method" if is_file else "--purge")
    show_audit(diagnosis.audit, console)
    for line in _describe_telemetry(diagnosis):
        console.print(plain(line), highlight=False)
    if diagnosis.data:
        console.print(
            f"it holds: {plain(', '.join(diagnosis.data))}", style="bold yellow", highlight=False
        )
    if diagnosis.objections:
        console.print("could NOT be tested:", style="bold red")
        for objection in diagnosis.objections:
            console.print(f"  {objection.reason.value}: {plain(objection.text)}", highlight=False)
    else:
        console.print(
            f"could be tested; to confirm its erasure: --yes-destroy "
            f"{plain(diagnosis.identity.confirm_id)}",
            style="green",
            highlight=False,
            soft_wrap=True,
        )


def show_audit(audit: Audit, console: Console) -> None:
    """Print findings that disturb or may disturb, with their remedy; then every other finding, a line each."""
    table = Table(title="the host, were a run of a day to begin now", title_justify="left")
    for column in ("subject", "level", "found", "what to do"):
        table.add_column(column, overflow="fold")
    remarkable = (*audit.of(Level.DISTURBS), *audit.of(Level.ADVICE))
    for finding in remarkable:
        table.add_row(
            plain(finding.title),
            finding.level.value,
            plain(finding.found),
            plain(finding.remedy),
            style=LEVEL_STYLES[finding.level],
        )
    console.print(
        table if remarkable else f"{table.title}: nothing is seen that would disturb it",
        highlight=False,
    )
    for reason in dict.fromkeys(f"{finding.subject}: {finding.why}" for finding in remarkable):
        console.print(f"why {plain(reason)}", highlight=False)
    for level in (Level.NOTE, Level.OK, Level.NOT_KNOWN):
        for finding in audit.of(level):
            # The text of such a finding says so itself.
            head = "" if level is Level.NOT_KNOWN else f"{level.value}, "
            text = f"{finding.title}: {head}{finding.found}"
            console.print(plain(text), style=LEVEL_STYLES[level], highlight=False, soft_wrap=True)


def _show_purge(plan: PurgePlan, console: Console, *, head: str) -> None:
    table = Table(title="ways to purge it, in order of preference", title_justify="left")
    table.add_column(head)
    table.add_column("what it does", overflow="fold")
    for method in plan.methods:
        only = "" if method.automatic else " (only when asked for)"
        table.add_row(method.name, plain(method.title) + only)
    for refusal in plan.refusals:
        table.add_row(refusal.name, f"not possible: {plain(refusal.because)}", style="dim")
    console.print(table)


def _describe_telemetry(diagnosis: _Diagnosis) -> Iterator[str]:
    """Yield the telemetry sources that a run would read, and their values now."""
    facts, reading = diagnosis.telemetry, diagnosis.reading
    if facts is None:
        return
    yield f"telemetry: {', '.join(facts.sources) or 'none'}"
    for gap in facts.gaps:
        yield f"telemetry, not known: {gap}"
    if reading is None:
        return
    told = {name: value for name, value in asdict(reading).items() if value is not None}
    words = [
        f"{name.replace('_', ' ')} {value:g}"
        if isinstance(value, float)
        else f"{name.replace('_', ' ')} {value:,}"
        for name, value in told.items()
        if name not in ("at_s", "drive", "source")
    ]
    yield f"it tells now: {', '.join(words)}"


def _say(name: str, value: object) -> str:
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name == "capacity_bytes" and isinstance(value, int):
        return f"{format_capacity(value)} ({value:,} bytes)"
    return str(value)


def _plain(diagnosis: _Diagnosis) -> dict[str, object]:
    return {
        "facts": diagnosis.facts.plain(),
        "could_be_tested": not diagnosis.objections,
        "objections": [
            {"reason": objection.reason.value, "text": objection.text}
            for objection in diagnosis.objections
        ],
        "data": list(diagnosis.data),
        "purge_methods": [
            {"name": method.name, "title": method.title, "automatic": method.automatic}
            for method in diagnosis.purge.methods
        ],
        "purge_refusals": [asdict(refusal) for refusal in diagnosis.purge.refusals],
        "confirm_id": diagnosis.identity.confirm_id,
        "host": diagnosis.audit.plain(),
        "telemetry": {
            "facts": None if diagnosis.telemetry is None else asdict(diagnosis.telemetry),
            "reading": None if diagnosis.reading is None else asdict(diagnosis.reading),
        },
    }


def _show_host(console: Console, *, as_json: bool) -> None:
    missing = [name for name in TOOLS if find_program(name) is None]
    try:
        fio = find_fio_version()
    except EngineError as error:
        fio = str(error)
    host = read_host()
    audit = audit_for([], lasts_s=DAY_S)
    remarks = list(_remarks())
    packages = sorted({PACKAGES[name] for name in missing})
    if as_json:
        document = {
            "host": host,
            "fio": fio,
            "missing": missing,
            "remarks": remarks,
            "audit": audit.plain(),
        }
        click.echo(json.dumps(document, indent=2))
        return
    table = Table(title="what tkperf uses", title_justify="left")
    for column in ("program", "for", "state"):
        table.add_column(column)
    for name, purpose in TOOLS.items():
        state = "MISSING" if name in missing else (plain(fio) if name == "fio" else "there")
        table.add_row(name, purpose, state, style="red" if name in missing else "")
    console.print(table)
    show_audit(audit, console)
    for remark in remarks:
        console.print(remark, style="yellow", highlight=False, soft_wrap=True)
    if packages:
        console.print(f"install what is missing: sudo apt-get install {' '.join(packages)}")
    elif not remarks:
        console.print("nothing is missing", style="green")


def _remarks() -> list[str]:
    """Return circumstances that limit what tkperf can test."""
    remarks = []
    if os.geteuid() != 0:
        remarks.append("not root: block devices cannot be tested, files and sim: can")
    return remarks


def _unlock(device: str, console: Console) -> None:
    """Clear the password of an interrupted Security Erase, under the same checks as an erase."""
    identity = read_identity(Path(device))
    if identity.kind is not TargetKind.BLOCK or identity.interface != "SATA":
        raise UsageError(f"{device} is no SATA drive: it can have no ATA password")
    # A locked drive cannot be read, so it cannot be checked for data.
    objections = find_objections(identity, use_only=True)
    if objections:
        raise RefusedError(f"{device} is not touched: {objections[0].text}")
    if clear_left_password(identity):
        console.print(f"{plain(device)}: the password is cleared", highlight=False)
    else:
        console.print(f"{plain(device)}: no password is set, nothing to do", highlight=False)
