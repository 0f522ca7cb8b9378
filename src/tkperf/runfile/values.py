"""Allowed values in a column of a run file, checked by msgspec, for every kind of row."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import msgspec

from tkperf.model.strict import describe_mistake

T = TypeVar("T")
Columns = Mapping[str, Any]
# msgspec has no "finite".
_MOST = sys.float_info.max
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Number = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
Flag = Annotated[int, msgspec.Meta(ge=0, le=1)]
Moment = Annotated[float, msgspec.Meta(ge=-_MOST, le=_MOST)]
Amount = Annotated[float, msgspec.Meta(ge=0, le=_MOST)]
Length = Annotated[float, msgspec.Meta(gt=0, le=_MOST)]


def convert(table: str, value: object, type_: type[T]) -> T:
    """Return a row, or the content of its JSON, as a record.

    Raises:
        ValueError: the value is not of that type; the text names the table and the key.
    """
    try:
        return msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        raise ValueError(f"table {table}{describe_mistake(error, type_, value)}") from error


# Exceptions from damaged bytes, before any check notices: wrong types, numbers, names, lengths, depths.
BAD_ROW = (ValueError, LookupError, TypeError, ArithmeticError, MemoryError, RecursionError)
