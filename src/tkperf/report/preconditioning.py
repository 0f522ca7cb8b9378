"""What was written before a test's rounds, in the words of every header, table and procedure."""

from __future__ import annotations

from collections.abc import Mapping

from tkperf.record import RunInfo
from tkperf.report.wording import NOT_KNOWN, format_fact, format_known_capacity
from tkperf.units import KIB
from tkperf.workload import Workload


def describe_fill(
    info: RunInfo, filled_bytes: int | None = None, filled_with: Workload | None = None
) -> str:
    """How much was written, where, how, and with which threads and queue depth.

    Args:
        filled_bytes: what was measured; without, what the profile asks for.
        filled_with: the load that was measured; without, that of the profile.
    """
    table = info.table("preconditioning")
    if filled_with is None:
        load = _load(table.get("block_size_kib"), info.table("demand"))
    else:
        demand = {"jobs": filled_with.jobs, "io_depth": filled_with.io_depth}
        load = _load(filled_with.block_size_bytes / KIB, demand)
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


def _load(block_size_kib: object, demand: Mapping[str, object]) -> str:
    load = f"SEQ {_plain_number(block_size_kib)} KiB writes"
    return f"{load}, TC {demand.get('jobs')} / QD {demand.get('io_depth')}" if demand else load


def _plain_number(value: object) -> str:
    """128 for 128.0."""
    return f"{value:g}" if isinstance(value, int | float) else NOT_KNOWN
