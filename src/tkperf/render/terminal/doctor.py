"""Facts of a device or of this host in the terminal, as tkperf doctor finds them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from rich.console import Console
from rich.table import Table

from tkperf.device.identity import TargetKind
from tkperf.device.purge import PurgePlan
from tkperf.host.audit import Audit, AuditLevel
from tkperf.model.units import format_capacity
from tkperf.pipeline.diagnosis import TOOLS, DeviceDiagnosis, HostDiagnosis
from tkperf.render.terminal.console import plain

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
    AuditLevel.OK: "",
    AuditLevel.NOTE: "",
    AuditLevel.ADVICE: "yellow",
    AuditLevel.DISTURBS: "bold red",
    AuditLevel.NOT_KNOWN: "dim",
}
HIDDEN = ("inode", "disk_sequence", "partition", "backing", "loop_backing")


def print_device(diagnosis: DeviceDiagnosis, console: Console) -> None:
    """Print whether a device could be tested, then its facts, its purges and what would disturb a measurement."""
    _print_answer(diagnosis, console)
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


def _print_answer(diagnosis: DeviceDiagnosis, console: Console) -> None:
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
    remarkable = (*audit.at_levels(AuditLevel.DISTURBS), *audit.at_levels(AuditLevel.ADVICE))
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
    for level in (AuditLevel.NOTE, AuditLevel.OK, AuditLevel.NOT_KNOWN):
        for finding in audit.at_levels(level):
            # The text of such a finding says so itself.
            head = "" if level is AuditLevel.NOT_KNOWN else f"{level.value}, "
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


def _describe_telemetry(diagnosis: DeviceDiagnosis) -> Iterator[str]:
    """Yield the telemetry sources that a run would read, and their values now."""
    facts, reading = diagnosis.telemetry, diagnosis.reading
    if facts is None:
        return
    yield f"telemetry: {', '.join(facts.sources) or 'none'}"
    for gap in facts.gaps:
        yield f"telemetry, not known: {gap}"
    if reading is None:
        return
    values = {name: value for name, value in asdict(reading).items() if value is not None}
    words = [
        f"{name.replace('_', ' ')} {value:g}"
        if isinstance(value, float)
        else f"{name.replace('_', ' ')} {value:,}"
        for name, value in values.items()
        if name not in ("at_s", "drive", "source")
    ]
    yield f"readings now: {', '.join(words)}"


def _say(name: str, value: object) -> str:
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name == "capacity_bytes" and isinstance(value, int):
        return f"{format_capacity(value)} ({value:,} bytes)"
    return str(value)


def print_host(diagnosis: HostDiagnosis, console: Console) -> None:
    """Print what is missing on this host, then the programs that tkperf uses and what would disturb a measurement."""
    for remark in diagnosis.remarks:
        console.print(remark, style="yellow", highlight=False, soft_wrap=True)
    if diagnosis.packages:
        packages = " ".join(diagnosis.packages)
        console.print(f"install what is missing: sudo apt-get install {packages}")
    elif not diagnosis.remarks:
        console.print("nothing is missing", style="green")
    table = Table(title="what tkperf uses", title_justify="left")
    for column in ("program", "for", "state"):
        table.add_column(column)
    for name, purpose in TOOLS.items():
        missing = name in diagnosis.missing
        state = "MISSING" if missing else (plain(diagnosis.fio) if name == "fio" else "there")
        table.add_row(name, purpose, state, style="red" if missing else "")
    console.print(table)
    show_audit(diagnosis.audit, console)
