"""Numbers in other programs' documents: whole, not negative, of a size that a counter can have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tkperf.model.units import drop_controls

Document = Mapping[str, Any]
# What a run file's columns take; no drive counts farther.
_MOST = 2**63 - 1
# Beyond these nobody reads a thermometer: a drive that tells 0 K does not know.
LEAST_C, MOST_C = -60.0, 250.0
# Of a name, a number or an error more is of no use to anybody.
_LONGEST = 200


def count(value: object) -> int | None:
    """A counter. Numbers of 128 bits are texts in some versions, with or without separators."""
    if isinstance(value, str):
        digits = value.replace(",", "").replace(" ", "")
        value = int(digits) if digits.isdecimal() and len(digits) < 40 else None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= _MOST else None


def scaled(value: object, unit_bytes: int) -> int | None:
    """A counter in bytes; None where that is more than any drive could have."""
    number = count(value)
    return None if number is None else count(number * unit_bytes)


def temperature(value: object) -> float | None:
    """Degrees Celsius, where a drive can have them."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if LEAST_C <= value <= MOST_C else None


def table(value: object) -> Document:
    """A JSON object; an empty one where there is something else."""
    return value if isinstance(value, dict) else {}


def rows(value: object) -> list[Document]:
    """The objects of a JSON list."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def word(value: object) -> str | None:
    """A text, of which a run file and a terminal take every character; JSON has others, too."""
    if not isinstance(value, str):
        return None
    return drop_controls(value[:_LONGEST]).replace("\n", " ").strip() or None
