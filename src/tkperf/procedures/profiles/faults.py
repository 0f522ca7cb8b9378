"""Faults that no type can rule out: conflicting values of a profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tkperf.procedures.profiles.tables import find_size_fault

if TYPE_CHECKING:
    from tkperf.procedures.profiles.tables import Profile, ProfileTable


def find_fault(profile: Profile) -> str | None:
    """Return the first fault, as ``key: reason``."""
    for key, table in profile.tables.items():
        fault = _in_any_table(table) or table.fault(profile)
        if fault:
            return f"{key}.{fault}"
    return None


def _in_any_table(table: ProfileTable) -> str | None:
    """Return a fault of any kind of table: a list with a value twice, or an impossible block size."""
    for field in msgspec.structs.fields(table):
        value = getattr(table, field.name)
        values = value if isinstance(value, tuple) else (value,)
        if field.name.endswith("_kib"):
            for size_kib in values:
                if fault := find_size_fault(size_kib):
                    return f"{field.name}: {fault}"
        # Loads of a sequence may be repeated.
        plain = not any(isinstance(entry, msgspec.Struct | dict) for entry in values)
        if plain and len(set(values)) < len(values):
            return f"{field.name}: a value occurs twice"
    return None
