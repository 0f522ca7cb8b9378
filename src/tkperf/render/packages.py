"""Define the packages that the base installation does not contain, and how to install them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tkperf.model.errors import UsageError
from tkperf.system.installation import how_to_install


@contextmanager
def packages_of(extra: str, *, whose: str) -> Iterator[None]:
    """Return a context in which a missing package of an extra raises a UsageError.

    Args:
        extra: the name of the extra in ``pyproject.toml``.
        whose: the subject and the verb of the error message, such as ``Parquet needs``.

    Raises:
        UsageError: a package is missing.
    """
    try:
        yield
    except ImportError as error:
        raise UsageError(f"{whose} more packages ({error.name} is missing): {how_to_install(extra)}") from error
