import os

import pytest

from tkperf.pipeline.batch import crew


@pytest.fixture
def plain_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork although pytest may have a thread of its own."""
    monkeypatch.setattr(crew, "fork_early", os.fork)
