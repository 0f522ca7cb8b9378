"""The keys of a profile's tables in words."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from tkperf.model.strict import describe_values


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyExplained:
    """A key of a table, with its possible values and its meaning in words."""

    name: str
    values: str
    meaning: str


def explain_keys(table: type[msgspec.Struct]) -> tuple[KeyExplained, ...]:
    """Return all keys of a table in their order."""
    info = msgspec.inspect.type_info(table)
    assert isinstance(info, msgspec.inspect.StructType)
    return tuple(
        KeyExplained(name=field.name, values=describe_values(field.type), meaning=_meaning(field))
        for field in info.fields
    )


def show_value(value: object) -> str:
    """Return a value for people: ``5``, ``yes``, ``100, 65, 0``. A cell becomes ``65/64``."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return " ".join(f"{name} {show_value(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        joint = "; " if any(isinstance(item, dict | list | tuple) for item in value) else ", "
        return joint.join(map(show_value, value)) or "none"
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _meaning(field: msgspec.inspect.Field) -> str:
    """Return the meaning of a key. For an optional key, add the default unless the text already contains it."""
    if not isinstance(field.type, msgspec.inspect.Metadata):
        return ""
    meaning = str((field.type.extra_json_schema or {}).get("description", ""))
    if field.required or "default: " in meaning:
        return meaning
    return f"{meaning}; default: {show_value(field.default)}"
