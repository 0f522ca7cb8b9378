"""Run files are written with the setting of tkperf."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _sync_after_each_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore the setting that tests/conftest.py changes."""
    monkeypatch.setattr("tkperf.runfile.writer.SYNCHRONOUS", "EXTRA")
