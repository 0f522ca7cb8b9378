"""A stream as a sentence: its settled rate, its first rate, and the latency of its I/Os."""

from __future__ import annotations

from collections.abc import Iterator

from tkperf.analysis.characteristics import FRESH, RECOVERY, SHARE_OF_FIRST, STEADY, STEADY_FROM
from tkperf.analysis.courses import find_characteristic
from tkperf.analysis.results import CellResult, SectionResult
from tkperf.analysis.timeline.findings import Recorded
from tkperf.model.quantity import Quantity
from tkperf.model.units import capital, format_duration, format_number
from tkperf.page.findings.choice import find_rate_course, find_settled
from tkperf.page.findings.words import name_ios, say, say_tail, say_value


def describe_stream_course(section: SectionResult) -> str:
    """Return ``Random 4 KiB writes settle after 41 min 00 s at 27,000 IOPS (median), 30.4 % of ...``."""
    shown, rate = section.quantities, section.rate
    cell = section.cells[0] if section.cells else section.slices[-1].values
    leads = shown[0] if shown else rate
    load = capital(name_ios(cell.workload))
    settled = _settles(section, cell, rate) if leads is rate else ""
    words = settled or say(cell, leads)
    parts = [f"{load} {words}" if words else f"{load}: {leads.label} not measured"]
    # The settled rate describes the end of the stream, the tail all of it.
    of = "all I/Os" if settled and not section.steady else ""
    parts += filter(None, (say_tail(cell, shown, of),))
    return "; ".join(parts)


def _settles(section: SectionResult, cell: CellResult, rate: Quantity) -> str:
    """Describe the course of the rate; empty if levels were not sought, or if the rate was not measured."""
    course = find_rate_course(section, rate)
    if course is None or find_characteristic(section, STEADY) is None:
        return ""
    value = find_settled(section, cell)
    if value is None:
        mean = say(cell, rate)
        within = ", within the limits of steady state" if section.steady else ""
        return f"{mean} and were still changing at the end{within}" if mean else ""
    start = find_characteristic(section, STEADY_FROM[Recorded.SLICES])
    changes = start is not None and start.value is not None and course.changes
    if not changes and not section.steady:
        return say(cell, rate)
    median = "" if section.steady else " (median)"
    words = f"hold {say_value(value, rate)}{median}"
    if changes:
        after = f" after {format_duration(start.value)}" if start and start.value else ""
        words = f"settle{after} at {say_value(value, rate)}{median}"
    fresh = find_characteristic(section, FRESH)
    if fresh is not None and fresh.value:
        share = format_number(100 * value / fresh.value)
        words += f", {share} % of the {say_value(fresh.value, rate)} fresh out of box"
    return words


def describe_recovery(section: SectionResult, first: str) -> Iterator[str]:
    """Yield the share and the recovery against the first section with the same load, named ``first``."""
    share = find_characteristic(section, SHARE_OF_FIRST)
    if share is not None and share.value is not None:
        yield f"the rate is {format_number(share.value)} % of that of {first}"
    found = find_characteristic(section, RECOVERY)
    if found is None:
        return
    if found.value is not None:
        yield f"reached again after {format_duration(found.value)}"
    elif found.at_least is not None:
        yield f"not reached again within {format_duration(found.at_least)}"
