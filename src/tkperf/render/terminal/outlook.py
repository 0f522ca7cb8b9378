"""Time, amount and cost of a run in words: before the question, and for ``tkperf plan``."""

from __future__ import annotations

from datetime import datetime, timedelta

from tkperf.model.units import format_capacity, format_durations
from tkperf.pipeline.outlook import MUCH_OF_A_LIFE, Outlook
from tkperf.pipeline.run_plan import RunPlan
from tkperf.procedures import Circumstances

_CLOCK = "%a %d %b %Y %H:%M"


def describe_time(outlook: Outlook) -> str:
    """Describe the duration: ``2 h 10 min to 3 h 05 min, without purging``."""
    without = ", without purging" if outlook.purges else ""
    if outlook.simulated:
        without = " of simulated time"
    return format_durations(outlook.shortest_s, outlook.longest_s) + without


def describe_outlook(outlook: Outlook, now: datetime | None = None) -> list[tuple[str, str]]:
    """Describe end, amount written, speed and share of the drive's life: labels and texts."""
    now = now or datetime.now()  # noqa: DTZ005  # the user's own clock is meant
    ends = [
        (now + timedelta(seconds=seconds)).strftime(_CLOCK)
        for seconds in (outlook.shortest_s, outlook.longest_s)
    ]
    least, most = outlook.least_bytes, outlook.most_bytes
    amounts, fills = (
        _between(form(least), form(most), nothing=least == 0)
        for form in (format_capacity, lambda amount: f"{amount / outlook.capacity_bytes:,.1f}")
    )
    lines = [
        *([] if outlook.simulated else [("ends", f"{_when(*ends)}, if begun now")]),
        ("writes", f"{amounts}, {fills} drive fills"),
        ("rate", str(outlook.rates)),
    ]
    if outlook.shares is not None:
        low, high = outlook.shares
        share = _between(_percent(low), _percent(high), nothing=low == 0)
        lines.append(("life", f"{share} of its rating ({outlook.rated_as})"))
    return lines


def _when(earliest: str, latest: str) -> str:
    return earliest if earliest == latest else f"between {earliest} and {latest}"


def _between(least: str, most: str, *, nothing: bool) -> str:
    """Format a range: ``1.9 TB to 29.0 TB``; only the upper bound if the least is nothing."""
    if nothing:
        return f"at most {most}"
    return most if least == most else f"{least} to {most}"


def warn_of_cost(outlook: Outlook) -> str | None:
    """Return a warning that a run may take a twentieth of a drive's life; None if not, or if not known."""
    if outlook.shares is None or not outlook.costs_much:
        return None
    return (
        f"the run may write {_percent(outlook.shares[1])} of what the drive is rated for "
        f"({outlook.rated_as}), more than {_percent(MUCH_OF_A_LIFE)}"
    )


def _percent(share: float) -> str:
    return f"{100 * share:,.2g} %" if share < 1 else f"{100 * share:,.0f} %"


def describe_own_courses(plan: RunPlan) -> list[tuple[str, str]]:
    """Describe the course of the user's own tests, line by line, as no other place describes it."""
    circumstances = Circumstances(purge=None if plan.request.no_purge else "Purge")
    return [
        ("" if number else "course", line)
        for test in plan.tests
        if test.test.own
        for number, line in enumerate(
            (f"{test.test.title}:", *test.test.describe(plan.profile, circumstances))
        )
    ]
