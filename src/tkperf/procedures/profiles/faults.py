"""What no type can rule out: values of a profile that do not go together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tkperf.procedures.profiles.tables import find_size_fault

if TYPE_CHECKING:
    from tkperf.procedures.profiles.tables import Profile, Table


def find_fault(profile: Profile) -> str | None:
    """The first of them, as ``key: reason``."""
    for key, table in profile.tables.items():
        fault = _in_any_table(table) or table.fault(profile)
        if fault:
            return f"{key}.{fault}"
    return None


def _in_any_table(table: Table) -> str | None:
    """A list with a value twice, or a block size that no device has."""
    for field in msgspec.structs.fields(table):
        value = getattr(table, field.name)
        values = value if isinstance(value, tuple) else (value,)
        if field.name.endswith("_kib"):
            for size_kib in values:
                if fault := find_size_fault(size_kib):
                    return f"{field.name}: {fault}"
        # Loads of a sequence may come again; what stands by name cannot.
        plain = not any(isinstance(entry, msgspec.Struct | dict) for entry in values)
        if plain and len(set(values)) < len(values):
            return f"{field.name}: a value occurs twice"
    return None
