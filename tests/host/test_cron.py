"""When a line of a cron table is due, by crontab(5)."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.host.fake_host import NOW_S
from tkperf.host.audit.cron import next_due_s

HOUR_S, DAY_S = 3600.0, 86_400.0


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


# It is Monday, 5 January 2026, 12:00.
@pytest.mark.parametrize(
    ("row", "due_s"),
    [
        ("30 12 * * * root x", HOUR_S / 2),
        ("0 12 * * * root x", DAY_S),
        ("*/20 * * * * root x", HOUR_S / 3),
        ("0 6 * * 0 root x", 5.75 * DAY_S),
        ("0 6 * * 7 root x", 5.75 * DAY_S),
        ("0 6 * * sun root x", 5.75 * DAY_S),
        ("0 12 7 * 2 root x", DAY_S),  # the 7th or a Tuesday, whichever is first
        ("0 12 7 * * root x", 2 * DAY_S),
        ("0 0 1 feb * root x", None),
        ("@daily root x", DAY_S / 2),
        ("@reboot root x", None),
        ("MAILTO=root", None),
        ("61 * * * * root x", 0.0),  # not understood: once too often
        ("fstrim", 0.0),
    ],
)
def test_the_next_time(row: str, due_s: float | None) -> None:
    """Within a week, in seconds; what is not understood counts as due."""
    assert next_due_s(row, NOW_S, 7 * DAY_S, has_user=True) == due_s
