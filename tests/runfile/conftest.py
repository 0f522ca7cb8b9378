"""Fixtures that make the tests of run files use tkperf's own setting for syncs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="package")
def _sync_after_each_commit() -> Iterator[None]:
    """Restore the setting that ``stop_syncs`` changes."""
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr("tkperf.runfile.writer.SYNCHRONOUS", "EXTRA")
        yield
