"""The name of a run, which becomes the name of its files."""

from __future__ import annotations

import re

from tkperf.model.errors import UsageError

# File systems take 255 bytes, including the text before and after NAME in file names.
LONGEST_NAME = 200


def require_name(name: str) -> None:
    """Raise UsageError if a run cannot have this name."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", name):
        raise UsageError(
            f"NAME '{name}' becomes a file name: use letters, digits and . _ + - only, "
            "beginning with a letter or digit"
        )
    refuse_long_name("NAME", name)


def refuse_long_name(what: str, name: str) -> None:
    """Raise UsageError if a name is too long for a file name."""
    if len(name) > LONGEST_NAME:
        raise UsageError(
            f"{what} has {len(name)} characters; it becomes a file name: use {LONGEST_NAME} at most"
        )
