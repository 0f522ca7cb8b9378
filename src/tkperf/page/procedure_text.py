"""Procedure of each test in words, with the numbers of the run's own profile; its preconditioning."""

from __future__ import annotations

from tkperf.model.errors import ProfileError
from tkperf.model.run_info import RunInfo
from tkperf.model.units import format_block_size_kib
from tkperf.model.workload import Workload
from tkperf.page.wording import format_fact, format_known_capacity
from tkperf.procedures import find_test, read_stored_profile
from tkperf.procedures.descriptor import Circumstances


def describe_fill(
    info: RunInfo, load: str, filled_bytes: int | None = None, *, passes: int | None = None
) -> str:
    """Return amount, place and load of the preconditioning.

    Args:
        load: in words, as ``describe_fill_load`` returns them.
        filled_bytes: the measured amount; without it the text has the profile's amount.
        passes: the requested passes, if they differ from the profile's.
    """
    times = format_fact(passes or info.table("preconditioning").get("passes"))
    if info.fills_members:
        return f"{times} × each member, all at once, before the set is made, {load} each"
    length_bytes = info.preconditioned_length_bytes
    if filled_bytes is None:
        amount = f"{times} × {info.preconditioned_range}"
    elif not length_bytes:
        amount = format_known_capacity(filled_bytes)
    else:
        amount = f"{filled_bytes / length_bytes:.3g} × {info.preconditioned_range}"
    where = ", after the set is made" if info.suite == "raid" else ""
    return f"{amount}{where}, {load}"


def describe_fill_load(fill: Workload) -> str:
    """Return the load in words: ``SEQ 128 KiB writes, TC 4 / QD 32``."""
    size = format_block_size_kib(fill.block_size_bytes)
    return f"SEQ {size} KiB writes, TC {fill.jobs} / QD {fill.io_depth}"


def describe_procedure(info: RunInfo, test: str) -> str:
    """Return the test's steps, line by line; empty if its table is not known in full."""
    definition = find_test(info.suite, test, info.profile)
    if definition is None:
        return ""
    circumstances = Circumstances(
        purge=None if info.options.get("no_purge") else "Purge",
        describe_fill=lambda load, passes: describe_fill(info, load, passes=passes),
    )
    try:
        return "\n".join(definition.describe(read_stored_profile(info.profile), circumstances))
    except ProfileError:  # an imported run: only some of its numbers are known
        return ""
