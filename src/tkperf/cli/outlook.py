"""Time, amount and cost of a run in words: before the question, and for ``tkperf plan``."""

from __future__ import annotations

from datetime import datetime, timedelta

from tkperf.cli.run_options import RunOptions
from tkperf.model.units import format_capacity, format_durations
from tkperf.pipeline.endurance import MUCH_OF_A_LIFE, Rating, parse_rating
from tkperf.pipeline.outlook import Outlook, look_out
from tkperf.pipeline.rates import ASSUMED, Rates, parse_rate, read_rates
from tkperf.pipeline.run_plan import RunPlan

_CLOCK = "%a %d %b %Y %H:%M"


def rating_of(options: RunOptions) -> Rating | None:
    """Return the drive's rating by the options, or None.

    Raises:
        UsageError: ``--rated`` is no rating.
    """
    return None if options.rated is None else parse_rating(options.rated, options.warranty_years)


def given_rates(options: RunOptions, plan: RunPlan) -> Rates | None:
    """Return the device's speed by the options; None if they do not give it.

    Raises:
        UsageError: ``--rate`` is no rate, or the earlier run is of another model.
    """
    if options.rate is not None:
        return parse_rate(options.rate)
    return None if options.like is None else read_rates(options.like, plan.subject)


def outlook_of(options: RunOptions, plan: RunPlan) -> Outlook:
    """Return the outlook of a plan, by the options or an assumed speed; nothing is read from the device."""
    return look_out(plan, given_rates(options, plan) or ASSUMED, rating_of(options))


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
