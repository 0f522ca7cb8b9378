"""Read numbers in other programs' documents: whole, not negative, of a size that a counter can have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tkperf.model.units import drop_controls

LogDocument = Mapping[str, Any]
# The limit of a run file's columns; no drive counts farther.
_MOST = 2**63 - 1
# No thermometer reads beyond these: a drive that reports 0 K does not know its temperature.
LEAST_C, MOST_C = -60.0, 250.0
# The longest useful name, number or error.
_LONGEST = 200


def count(value: object) -> int | None:
    """Return a counter. Some versions write numbers of 128 bits as text, with or without separators."""
    if isinstance(value, str):
        digits = value.replace(",", "").replace(" ", "")
        value = int(digits) if digits.isdecimal() and len(digits) < 40 else None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= _MOST else None


def scaled(value: object, unit_bytes: int) -> int | None:
    """Return a counter in bytes; None if no drive could have as many."""
    number = count(value)
    return None if number is None else count(number * unit_bytes)


def read_temperature(value: object) -> float | None:
    """Return degrees Celsius; None if no drive can have them."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if LEAST_C <= value <= MOST_C else None


def table(value: object) -> LogDocument:
    """Return a JSON object; an empty one in place of anything else."""
    return value if isinstance(value, dict) else {}


def rows(value: object) -> list[LogDocument]:
    """Return the objects of a JSON list."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def read_word(value: object) -> str | None:
    """Return a text without the characters that a run file or a terminal cannot take; JSON may have them."""
    if not isinstance(value, str):
        return None
    return drop_controls(value[:_LONGEST]).replace("\n", " ").strip() or None
