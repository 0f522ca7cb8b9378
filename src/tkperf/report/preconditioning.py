"""What was written before a test's rounds, in the words of every header, table and procedure."""

from __future__ import annotations

from tkperf.record import RunInfo
from tkperf.report.wording import NOT_KNOWN, format_fact, format_known_capacity


def describe_fill(info: RunInfo, filled_bytes: int | None = None) -> str:
    """How much was written, where, how, and with which threads and queue depth.

    Args:
        filled_bytes: what was measured; without, what the profile asks for.
    """
    table, demand = info.table("preconditioning"), info.table("demand")
    load = f"SEQ {_plain_number(table.get('block_size_kib'))} KiB writes"
    if demand:
        load += f", TC {demand.get('jobs')} / QD {demand.get('io_depth')}"
    passes = format_fact(table.get("passes"))
    if info.fills_members:
        return f"{passes} x each member, all at once, before the set is made, {load} each"
    length_bytes = info.active_range_length_bytes
    if filled_bytes is None:
        amount = f"{passes} x the active range"
    elif not length_bytes:
        amount = format_known_capacity(filled_bytes)
    else:
        amount = f"{filled_bytes / length_bytes:.3g} x the active range"
    where = ", after the set is made" if info.suite == "raid" else ""
    return f"{amount}{where}, {load}"


def _plain_number(value: object) -> str:
    """128 for 128.0."""
    return f"{value:g}" if isinstance(value, int | float) else NOT_KNOWN
