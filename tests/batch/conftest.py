import os

import pytest

from tkperf.batch import drive_processes


@pytest.fixture
def plain_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork although pytest may have a thread of its own."""
    monkeypatch.setattr(drive_processes, "fork_early", os.fork)
