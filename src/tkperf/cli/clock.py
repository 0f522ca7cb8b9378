"""Times of day in words, by the host's clock."""

from __future__ import annotations

from datetime import datetime, timedelta


def format_end(now: datetime, shortest_s: float, longest_s: float) -> str:
    """Format the earliest and latest end of a run by the host's clock: ``18:05 to Tue 02:10``."""
    local = now.astimezone()
    return from_to(
        *(_clock(local, local + timedelta(seconds=left_s)) for left_s in (shortest_s, longest_s))
    )


def _clock(now: datetime, then: datetime) -> str:
    """Format a time of day; on another day with the weekday, from a week on with the date."""
    days = (then.date() - now.date()).days
    if days == 0:
        return f"{then:%H:%M}"
    return f"{then:%a %H:%M}" if days < 7 else f"{then:%a %d %b %H:%M}"


def from_to(first: str, last: str) -> str:
    """Join two texts, ``18:05 to 19:00``; return one of them if they are equal."""
    return first if first == last else f"{first} to {last}"
