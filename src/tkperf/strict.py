"""Strict reading of users' files: a mistake is an error that names its key."""

from __future__ import annotations

import msgspec


def describe_mistake(error: msgspec.ValidationError) -> str:
    """``, key iops.step_s: Expected `float` `` of msgspec's message, which has the path last."""
    reason, _, key = str(error).partition(" - at `$")
    where = f", key {key.strip('`').lstrip('.')}" if key else ""
    return f"{where}: {reason}"
