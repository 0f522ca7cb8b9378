import os

import pytest

from tkperf.batch import drive_processes


@pytest.fixture
def plain_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """Permit a fork even if the process of pytest has other threads."""
    monkeypatch.setattr(drive_processes, "fork_early", os.fork)
