"""Strict decoding of users' files. Each error message contains the key, the value and the allowed values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

import msgspec

from tkperf.model.decoding import convert
from tkperf.model.errors import InputFileError, UsageError, choose_from, reason_of

T = TypeVar("T")
# This limit is many times the number of dots in any useful key, or in any list of numbers on one line.
_MOST_DOTS_OF_A_LINE = 2000
_LONGEST_QUOTED = 40
# This pattern matches one step of a path in a msgspec error, such as $.claim[0].within_us[...]. A step is a key, or a
# place in a list or table.
_STEP_OF_A_PATH = re.compile(r"\.([^.\[]+)|\[([^\]]*)\]")
_SLIP = re.compile("Object (contains unknown|missing required) field `(.*)`", re.DOTALL)
_OF_VALUES = ("Expected ", "Invalid enum value", "Integer value out of range")
_TABLES = (msgspec.inspect.StructType, msgspec.inspect.DataclassType)
_UNSEEN = object()


def decode_strictly(
    parse: Callable[[], object], type_: type[T], *, what: str, language: str, error: type[UsageError] = InputFileError
) -> T:
    """Parse a file with ``parse`` and return the data as an object of the type ``type_``. Error messages contain
    ``what`` and the key.

    Raises:
        InputFileError: the file is not valid in this language, or contains an unknown key or a value of another type.
            If ``error`` is given, that exception is raised instead.
    """
    try:
        return convert_strictly(parse(), type_, what=what, error=error)
    except RecursionError:
        raise error(f"{what}: not valid {language}: it is nested too deeply") from None
    except (msgspec.DecodeError, ValueError) as mistake:
        # A number that exceeds Python's limit on digits raises ValueError and not an exception of msgspec.
        raise error(f"{what}: not valid {language}: {reason_of(mistake)}") from mistake


def convert_strictly(value: object, type_: type[T], *, what: str, error: type[UsageError] = InputFileError) -> T:
    """Return plain data as an object of the type ``type_``. Error messages contain ``what`` and the key.

    Raises:
        InputFileError: the data contains an unknown key or a value of another type. If ``error`` is given, that
            exception is raised instead.
    """
    try:
        return convert(value, type_)
    except msgspec.ValidationError as mistake:
        raise error(f"{what}{describe_mistake(mistake, type_, value)}") from None


def shallow(text: str) -> str:
    """Return the TOML text unchanged, after a check that no key has thousands of parts. The parser would need minutes
    for such a key.

    Raises:
        RecursionError: the text contains a key with thousands of parts.
    """
    if any(line.count(".") > _MOST_DOTS_OF_A_LINE for line in text.splitlines()):
        raise RecursionError
    return text


@cache
def _inspect(type_: Any) -> msgspec.inspect.Type:
    """Return the description of a type. The description is stored, because a damaged file may have thousands of rows of
    that type.
    """
    return _bare(msgspec.inspect.type_info(type_))


def describe_mistake(mistake: msgspec.ValidationError, type_: Any, value: object) -> str:
    """Return the place and the reason of a mistake, such as
    ``, claim 1, key read_percent: 101 is not allowed, it takes a whole number, 0 to 100``.

    ``value`` is the whole document, which could not be converted to ``type_``.
    """
    reason, _, path = str(mistake).partition(" - at `$")
    info = _inspect(type_)
    tables, names = "", list[str]()
    for name, place in _STEP_OF_A_PATH.findall(path.rstrip("`")):
        info, value = _below(info, value, name or place)
        if name:
            names.append(name)
        elif isinstance(info, _TABLES) and place.isdigit():
            tables += f", {'.'.join(names)} {int(place) + 1}"
            names = []
    if slip := _SLIP.match(reason):
        key = ".".join([*names, slip[2]])
        if slip[1] == "missing required":
            return f"{tables}: required key {key} is missing"
        keys = _keys(info)
        choices = choose_from(slip[2], keys) if keys else "no other key is allowed here"
        return f"{tables}, key {key[:_LONGEST_QUOTED]}: {choices}"
    where = f"{tables}, key {'.'.join(names)}" if names else tables
    words = [word for word in _words(info) if isinstance(word, str)]
    if words and isinstance(value, str):
        return f"{where} '{value[:_LONGEST_QUOTED]}': {choose_from(value, words)}"
    if not reason.startswith(_OF_VALUES) or isinstance(info, msgspec.inspect.AnyType):
        # Either the reason from msgspec already explains the mistake, or the values that this place accepts are not
        # known.
        return f"{where}: {reason}"
    given = "a value" if value is _UNSEEN else quote_value(value)
    return f"{where}: {given} is not allowed, it takes {_with_kind(info)}"


def quote_value(value: object) -> str:
    """Return a value as shortened JSON text for an error message. A table or list is described by the number of
    entries, and a very large number is not written out.
    """
    if isinstance(value, dict):
        return f"a table of {len(value):,}"
    if isinstance(value, list | tuple):
        return f"a list of {len(value):,}"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, int) and abs(value) >= 1 << 64:
        return "a number that large"
    shortened = value[:_LONGEST_QUOTED] if isinstance(value, str) else value
    return json.dumps(shortened, default=lambda other: str(other)[:_LONGEST_QUOTED])


def describe_values(type_: msgspec.inspect.Type) -> str:
    """Return the values that a type accepts, in words: ``0 to 100``, ``true or false``, ``"on", "off" or "keep"``."""
    match bare := _bare(type_):
        case msgspec.inspect.BoolType():
            return "true or false"
        case msgspec.inspect.IntType() | msgspec.inspect.FloatType():
            return _between(bare)
        case msgspec.inspect.LiteralType() | msgspec.inspect.EnumType():
            return _alternatives([f'"{word}"' if isinstance(word, str) else f"{word}" for word in _words(bare)])
        case msgspec.inspect.VarTupleType(max_length=None):
            return f"list of {bare.min_length or 0} or more values: {describe_values(bare.item_type)}"
        case msgspec.inspect.VarTupleType():
            item = describe_values(bare.item_type)
            return f"list of {bare.min_length or 0} to {bare.max_length} values: {item}"
        case msgspec.inspect.DictType():
            return "a table"
        case msgspec.inspect.TupleType():
            return f"[{'; '.join(map(describe_values, bare.item_types))}]"
        case msgspec.inspect.StructType() | msgspec.inspect.DataclassType():
            return "{ " + ", ".join(_keys(bare)) + " }"
        case msgspec.inspect.UnionType():
            if all(isinstance(_bare(one), msgspec.inspect.StructType) for one in bare.types):
                return "{ kind, ... }"
            return _alternatives([_with_kind(one) for one in bare.types])
        case _:
            return "text"


def _with_kind(type_: msgspec.inspect.Type) -> str:
    """Return the values that a type accepts, in words. For numbers and texts, the result also contains the kind, such
    as ``a whole number``.
    """
    values = describe_values(type_)
    match _bare(type_):
        case msgspec.inspect.IntType():
            kind = "a whole number"
        case msgspec.inspect.FloatType():
            kind = "a number"
        case msgspec.inspect.VarTupleType():
            return f"a {values}"
        case msgspec.inspect.DictType(min_length=least, max_length=most) if least and most:
            return f"a table of {least} to {most}"
        case msgspec.inspect.StrType() as text:
            # Among the texts in input files, only names have a pattern.
            content = "letters, digits, '.', '_' and '-', first a letter or a digit"
            kind = content if text.pattern else "text"
            if text.max_length is not None:
                return f"{kind}, {text.min_length or 1} to {text.max_length} characters"
            return f"{kind}, not empty" if text.min_length else kind
        case _:
            return values
    return kind if values == "a number" else f"{kind}, {values}"


def _bare(type_: msgspec.inspect.Type) -> msgspec.inspect.Type:
    """Return the type without metadata. For an optional value, return the type without None."""
    if isinstance(type_, msgspec.inspect.Metadata):
        return _bare(type_.type)
    if isinstance(type_, msgspec.inspect.UnionType):
        given = [one for one in type_.types if not isinstance(one, msgspec.inspect.NoneType)]
        return _bare(given[0]) if len(given) == 1 else msgspec.inspect.UnionType(tuple(given))
    return type_


def _below(type_: msgspec.inspect.Type, value: object, step: str) -> tuple[msgspec.inspect.Type, object]:
    """Return the type and the value at a key of a table, or at a place in a list. If a value cannot be found, the
    result contains ``_UNSEEN`` instead.
    """
    match type_:
        case msgspec.inspect.StructType() | msgspec.inspect.DataclassType():
            below = next(field.type for field in type_.fields if field.encode_name == step)
            return _bare(below), value.get(step, _UNSEEN) if isinstance(value, Mapping) else _UNSEEN
        case msgspec.inspect.DictType():
            return _bare(type_.value_type), _UNSEEN
        case msgspec.inspect.TupleType():
            below = type_.item_types[int(step)]
        case msgspec.inspect.VarTupleType():
            below = type_.item_type
        case _:
            return msgspec.inspect.AnyType(), _UNSEEN
    return _bare(below), value[int(step)] if isinstance(value, list | tuple) else _UNSEEN


def _keys(type_: msgspec.inspect.Type) -> list[str]:
    fields = type_.fields if isinstance(type_, _TABLES) else ()
    return [field.encode_name for field in fields]


def _words(type_: msgspec.inspect.Type) -> Sequence[object]:
    """Return all values of a type that accepts only certain values, such as an enumeration."""
    match type_:
        case msgspec.inspect.LiteralType():
            return type_.values
        case msgspec.inspect.EnumType():
            return [member.value for member in type_.cls]
        case _:
            return ()


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
