"""What the base install lacks, and how to get it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tkperf
from tkperf.errors import UsageError


@contextmanager
def packages_of(extra: str, *, whose: str) -> Iterator[None]:
    """Imports from an extra's packages.

    Args:
        extra: its name in ``pyproject.toml``.
        whose: what needs them, as the subject of a sentence.

    Raises:
        UsageError: one is missing.
    """
    try:
        yield
    except ImportError as error:
        raise UsageError(
            f"{whose} more packages ({error.name} is missing): {_how_to_install(extra)}"
        ) from error


def _how_to_install(extra: str) -> str:
    """The command that fits how tkperf itself was installed: the set-up's .venv has no pip."""
    checkout = Path(tkperf.__file__).parents[2]
    script = checkout / "scripts/setup.sh"
    if script.is_file() and Path(sys.prefix) == checkout / ".venv":
        return f"sh {script} {extra}"
    return f"pip install 'tkperf[{extra}]'"
