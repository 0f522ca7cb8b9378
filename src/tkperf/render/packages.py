"""Packages that the base installation lacks, and the way to install them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tkperf.model.errors import UsageError
from tkperf.system.installation import how_to_install


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
        raise UsageError(f"{whose} more packages ({error.name} is missing): {how_to_install(extra)}") from error
