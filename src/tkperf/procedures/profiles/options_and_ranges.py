"""Functions that apply the user's options to a profile, and that compute the ranges of a profile on a device."""

from __future__ import annotations

import msgspec

from tkperf.model.errors import UsageError
from tkperf.model.units import format_capacity, parse_size_bytes
from tkperf.model.workload import ActiveRange
from tkperf.procedures.profiles.profile_tables import Profile, TestTable


def apply_options(
    profile: Profile,
    *,
    jobs: int | None = None,
    io_depth: int | None = None,
    auto_demand: bool = False,
    step_s: float | None = None,
    write_cache: str | None = None,
    active_range: str | None = None,
    accept_disturbed: bool = False,
) -> Profile:
    """Return the profile with the user's options (-nj, -iod, -rt ...).

    ``active_range`` is one piece, even if the profile defines an amount and segments. ``step_s`` is the duration of
    each step and of each slice of write saturation, in s. The total times of write saturation do not change (see
    ``WriteSaturationTable.scaled``).
    """
    demand = msgspec.structs.replace(
        profile.demand,
        jobs=jobs or profile.demand.jobs,
        io_depth=io_depth or profile.demand.io_depth,
        searched=auto_demand or profile.demand.searched,
    )
    cache = msgspec.structs.replace(profile.write_cache, setting=write_cache or profile.write_cache.setting)
    used = profile.active_range
    if active_range is not None:
        used = msgspec.structs.replace(used, length=active_range, amount=None, segments=1)
    steady_state = profile.steady_state
    if accept_disturbed:
        steady_state = msgspec.structs.replace(steady_state, accept_disturbed=True)
    profile = profile.with_tables(demand, cache, used, steady_state)
    if step_s is None:
        return profile
    tests = (table for table in profile.tables.values() if isinstance(table, TestTable))
    return profile.with_tables(*(table.scaled(step_s) for table in tests))


def resolve_range(text: str, capacity_bytes: int, alignment_bytes: int) -> ActiveRange:
    """Return the range on a device that a text such as ``100%``, ``75%`` or ``16GiB`` describes. The range begins at
    the start of the device.

    A size larger than the device means the whole device. The end is rounded down to whole logical blocks.

    Raises:
        UsageError: the text is neither a share within 0..100 % nor a size, or the range is smaller than a logical
            block.
    """
    if text.strip().endswith("%"):
        try:
            percent = float(text.strip()[:-1])
        except ValueError:
            percent = 0.0
        if not 0 < percent <= 100:
            raise UsageError(
                f"'{text[:40]}' is not a share of the device. Write more than 0% and at most 100%, or a size"
            )
        length_bytes = int(capacity_bytes * percent / 100)
    else:
        length_bytes = min(parse_size_bytes(text), capacity_bytes)
    length_bytes -= length_bytes % alignment_bytes
    if length_bytes <= 0:
        raise UsageError(
            f"active range '{text[:40]}' is less than one logical block of the device. Choose a larger range"
        )
    return ActiveRange(offset_bytes=0, length_bytes=length_bytes)


def resolve_active_range(profile: Profile, capacity_bytes: int, alignment_bytes: int) -> ActiveRange:
    """Return the range that the tests use. The range begins at the start of the allowed range, and its length is the
    amount that the profile specifies. If the profile has no amount, the tests use the whole allowed range.

    Raises:
        UsageError: the device has no such range, or the allowed range is smaller than the amount.
    """
    table = profile.active_range
    limit = resolve_range(table.length, capacity_bytes, alignment_bytes)
    if table.amount is None:
        return limit
    # The amount is computed for a huge device, because an amount larger than the device would otherwise be reduced to
    # the size of the device.
    amount_bytes = resolve_range(table.amount, 2**62, alignment_bytes).length_bytes
    if table.amount.strip().endswith("%"):
        amount_bytes = resolve_range(table.amount, capacity_bytes, alignment_bytes).length_bytes
    if amount_bytes > limit.length_bytes:
        raise UsageError(
            f"profile {profile.name}, key active_range.amount: {table.amount} is more than "
            f"{table.length} of the device ({format_capacity(limit.length_bytes)}). Choose a smaller "
            "range with --active-range"
        )
    return ActiveRange(offset_bytes=0, length_bytes=amount_bytes)


def with_range_to_fill(profile: Profile, capacity_bytes: int, alignment_bytes: int) -> Profile:
    """Return the profile in which the length of the range to precondition is converted to bytes on this device.

    Raises:
        UsageError: the tests would use blocks outside this range.
    """
    table, used_table = profile.preconditioning, profile.active_range
    if table.length is None and used_table.segments == 1:
        return profile
    # Segments may lie anywhere in the range, so the fill must cover the whole range.
    length = table.length or used_table.length
    filled = resolve_range(length, capacity_bytes, alignment_bytes)
    if used_table.segments > 1:
        within = resolve_range(used_table.length, capacity_bytes, alignment_bytes)
        if within.length_bytes > filled.length_bytes:
            raise UsageError(
                f"profile {profile.name} places segments in {used_table.length} of the device but preconditions only "
                f"{length} of it. The tests would read addresses that were never written"
            )
    used = resolve_active_range(profile, capacity_bytes, alignment_bytes)
    if used.length_bytes > filled.length_bytes:
        raise UsageError(
            f"the active range of {format_capacity(used.length_bytes)} is more than the "
            f"{format_capacity(filled.length_bytes)} that profile {profile.name} preconditions ({length}). The tests "
            "would read addresses that were never written"
        )
    return profile.with_tables(msgspec.structs.replace(table, length=str(filled.length_bytes)))
