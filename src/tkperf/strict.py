"""Strict reading of users' files: a mistake is an error that names its key."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from tkperf.errors import InputFileError, UsageError, reason_of

T = TypeVar("T")
# Many times what any key has, and what any list of numbers on one line.
_MOST_DOTS_OF_A_LINE = 2000


def decode_strictly(
    decode: Callable[[], T], *, what: str, language: str, error: type[UsageError] = InputFileError
) -> T:
    """What ``decode`` makes of a file; ``what`` and the key of a mistake are named in errors.

    Raises:
        InputFileError: or ``error``: not that language, a typo, or a value of another type.
    """
    try:
        return decode()
    except msgspec.ValidationError as mistake:
        raise error(f"{what}{describe_mistake(mistake)}") from mistake
    except RecursionError:
        raise error(f"{what}: not valid {language}: it is nested too deeply") from None
    except (msgspec.DecodeError, ValueError) as mistake:
        # Python's own limits, as for digits, are no msgspec errors.
        raise error(f"{what}: not valid {language}: {reason_of(mistake)}") from mistake


def shallow(text: str) -> str:
    """TOML without keys of thousands of parts, for which its parser would take minutes.

    Raises:
        RecursionError: it has one.
    """
    if any(line.count(".") > _MOST_DOTS_OF_A_LINE for line in text.splitlines()):
        raise RecursionError
    return text


def describe_mistake(error: msgspec.ValidationError) -> str:
    """``, key iops.step_s: Expected `float` `` of msgspec's message, which has the path last."""
    reason, _, key = str(error).partition(" - at `$")
    where = f", key {key.strip('`').lstrip('.')}" if key else ""
    return f"{where}: {reason}"
