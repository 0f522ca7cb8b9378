"""Times of day for people, by the host's clock."""

from __future__ import annotations

from datetime import datetime, timedelta


def format_end(now: datetime, shortest_s: float, longest_s: float) -> str:
    """When a run ends that goes on for so long, by the host's clock: ``18:05 to Tue 02:10``."""
    local = now.astimezone()
    return from_to(
        *(_clock(local, local + timedelta(seconds=left_s)) for left_s in (shortest_s, longest_s))
    )


def _clock(now: datetime, then: datetime) -> str:
    """A time of day; of another day with its name, of one that is far with its date."""
    days = (then.date() - now.date()).days
    if days == 0:
        return f"{then:%H:%M}"
    return f"{then:%a %H:%M}" if days < 7 else f"{then:%a %d %b %H:%M}"


def from_to(first: str, last: str) -> str:
    """``18:05 to 19:00``; one of them where they read alike."""
    return first if first == last else f"{first} to {last}"
