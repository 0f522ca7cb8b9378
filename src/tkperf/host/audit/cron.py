"""When a line of a cron table is due next (crontab(5)); pure."""

from __future__ import annotations

from datetime import datetime, timedelta

_NAMES = {
    name: number
    for names, first in (
        (("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1),
        (("sun", "mon", "tue", "wed", "thu", "fri", "sat"), 0),
    )
    for number, name in enumerate(names, start=first)
}
_LIMITS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_SHORT = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_MINUTE_S = 60.0
# No run is longer than this, and what is due later is of no interest.
_MOST_MINUTES = 366 * 24 * 60


def next_due_s(row: str, now_s: float, within_s: float, *, has_user: bool) -> float | None:
    """Seconds until a line's command runs, by local time; None: not within that time, or no such line.

    A line whose times cannot be understood is due at once: better once too often.

    Args:
        now_s: seconds since 1970.
        has_user: whether the line names a user after its times, as the system's own do.
    """
    words = row.split()
    if words[0] == "@reboot" or "=" in words[0]:
        return None
    if words[0].startswith("@"):
        fields = _SHORT.get(words[0], "").split()
    else:
        fields = words[:5] if len(words) > 5 + has_user else []
    try:
        minutes, hours, days, months, weekdays = (
            _parse_field(field, *limits) for field, limits in zip(fields, _LIMITS, strict=True)
        )
    except ValueError:
        return 0.0
    # Sunday is 0 or 7; where both days are limited, either will do.
    weekdays |= {0} if 7 in weekdays else set()
    either = not fields[2].startswith("*") and not fields[4].startswith("*")
    moment = datetime.fromtimestamp(now_s).replace(second=0, microsecond=0)  # noqa: DTZ006  # cron's own
    for _ in range(min(_MOST_MINUTES, int(within_s / _MINUTE_S) + 1)):
        moment += timedelta(minutes=1)
        on_date, on_weekday = moment.day in days, moment.isoweekday() % 7 in weekdays
        right_day = on_date or on_weekday if either else on_date and on_weekday
        if (
            moment.minute in minutes
            and moment.hour in hours
            and moment.month in months
            and right_day
        ):
            return max(0.0, moment.timestamp() - now_s)
    return None


def _parse_field(field: str, lowest: int, highest: int) -> set[int]:
    """The numbers that ``*/5`` or ``mon-fri`` stand for.

    Raises:
        ValueError: it is none of a cron table's.
    """
    found: set[int] = set()
    for part in field.lower().split(","):
        span, _, step = part.partition("/")
        if span == "*":
            first, last = lowest, highest
        else:
            begin, _, end = span.partition("-")
            first = _number(begin)
            last = _number(end) if end else highest if step else first
        every = int(step) if step else 1
        if every < 1 or not lowest <= first <= last <= highest:
            raise ValueError(field)
        found.update(range(first, last + 1, every))
    return found


def _number(word: str) -> int:
    return _NAMES[word] if word in _NAMES else int(word)
