"""What each key of a profile means and which values it takes, from the tables' own types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyExplained:
    """A key of a table: the values that it takes, and what they mean, both in words."""

    name: str
    values: str
    meaning: str


def explain_keys(table: type[msgspec.Struct]) -> tuple[KeyExplained, ...]:
    """All keys of a table in their order."""
    info = msgspec.inspect.type_info(table)
    assert isinstance(info, msgspec.inspect.StructType)
    return tuple(
        KeyExplained(name=field.name, values=_values(_bare(field.type)), meaning=_meaning(field))
        for field in info.fields
    )


def show_value(value: object) -> str:
    """A value as people read it: ``5``, ``yes``, ``100, 65, 0``; a cell as ``65/64``."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return " ".join(f"{name} {show_value(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        joint = "; " if any(isinstance(item, dict | list | tuple) for item in value) else ", "
        return joint.join(map(show_value, value)) or "none"
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _meaning(field: msgspec.inspect.Field) -> str:
    """With what is taken where an optional key is left out, unless its own words say so."""
    if not isinstance(field.type, msgspec.inspect.Metadata):
        return ""
    meaning = str((field.type.extra_json_schema or {}).get("description", ""))
    if field.required or "left out" in meaning:
        return meaning
    return f"{meaning}; left out: {show_value(field.default)}"


def _bare(type_: msgspec.inspect.Type) -> msgspec.inspect.Type:
    return type_.type if isinstance(type_, msgspec.inspect.Metadata) else type_


def _values(type_: msgspec.inspect.Type) -> str:
    match type_:
        case msgspec.inspect.BoolType():
            return "true or false"
        case msgspec.inspect.IntType() | msgspec.inspect.FloatType():
            return _between(type_)
        case msgspec.inspect.LiteralType():
            return _alternatives(
                [f'"{value}"' if isinstance(value, str) else f"{value}" for value in type_.values]
            )
        case msgspec.inspect.EnumType():
            return _alternatives([f'"{member.value}"' for member in type_.cls])
        case msgspec.inspect.VarTupleType():
            item = _values(_bare(type_.item_type))
            return f"list of {type_.min_length or 0} to {type_.max_length}: {item}"
        case msgspec.inspect.DictType():
            return "a table"
        case msgspec.inspect.TupleType():
            return f"[{'; '.join(_values(_bare(item_type)) for item_type in type_.item_types)}]"
        case msgspec.inspect.StructType():
            return "{ " + ", ".join(field.name for field in type_.fields) + " }"
        case msgspec.inspect.UnionType():
            given = [
                alternative
                for alternative in type_.types
                if not isinstance(alternative, msgspec.inspect.NoneType)
            ]
            return _values(_bare(given[0])) if len(given) == 1 else "{ kind, ... }"
        case _:
            return "text"


def _between(number: msgspec.inspect.IntType | msgspec.inspect.FloatType) -> str:
    least = f"{number.ge:,g}" if number.ge is not None else None
    most = f"{number.le:,.12g}" if number.le is not None else None
    if least is not None and number.lt is not None:
        return f"{least} or more, less than {number.lt:g}"
    if least is not None:
        return f"{least} to {most}" if most else f"{least} or more"
    if number.gt is None:
        return "a number"
    above = f"more than {number.gt:g}"
    return f"{above}, at most {most}" if most else above


def _alternatives(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else words[0]
