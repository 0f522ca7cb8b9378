"""Packages that the base installation lacks, and the way to install them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tkperf.model.errors import UsageError
from tkperf.model.version import __version__


@contextmanager
def packages_of(extra: str, *, whose: str) -> Iterator[None]:
    """Guard imports from the packages of an extra.

    Args:
        extra: the name of the extra in ``pyproject.toml``.
        whose: subject and verb of the error's sentence, such as ``Parquet needs``.

    Raises:
        UsageError: a package is missing.
    """
    try:
        yield
    except ImportError as error:
        raise UsageError(f"{whose} more packages ({error.name} is missing): {_how_to_install(extra)}") from error


def _how_to_install(extra: str) -> str:
    """Return the command for this kind of installation. Only tkperf's own installations have a separate pip."""
    checkout = Path(__file__).parents[3]
    script = checkout / "scripts/setup.sh"
    if script.is_file() and Path(sys.prefix) == checkout / ".venv":
        return f"sh {shlex.quote(str(script))} {extra}"
    try:
        # make install and make archive write this file.
        command = (Path(sys.prefix) / "more-packages.txt").read_text(encoding="utf-8").strip()
    except OSError:
        extras = ",".join(dict.fromkeys(("report", extra)))
        wheel = f"tkperf-{__version__}-py3-none-any.whl"
        return f"install tkperf's wheel again as '{wheel}[{extras}]'"
    return command.replace("{extra}", extra)
