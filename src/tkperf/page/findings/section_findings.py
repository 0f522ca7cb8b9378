"""Build sentences about the findings of a section, and about the changes of a stream over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tkperf.analysis.characteristics import (
    AFTER_RECOVERY,
    FRESH,
    NO_BACKLOG,
    RECOVERY,
    SATURATED,
    SHARE_OF_FIRST,
    STEADY,
    STEADY_FROM,
    Characteristic,
)
from tkperf.analysis.characteristics_search import RECOVERED_WITHIN, find_characteristic
from tkperf.analysis.results import CellResult, RoundResult, SectionResult
from tkperf.analysis.section_results import find_variation
from tkperf.analysis.timeline.timelines import Recorded
from tkperf.analysis.workload_axes import DEPTH, JOBS
from tkperf.model.figures import TAIL
from tkperf.model.quantity import LATENCY_MAX, LATENCY_MEAN, LATENCY_WITH_WAIT, PERCENTILES, Better, Direction, Quantity
from tkperf.model.units import capital, format_duration, format_latency, format_number
from tkperf.model.workload import Workload
from tkperf.page.findings.choice import choose_cells, choose_peaks, find_rate_series, find_settled, find_single, is_grid
from tkperf.page.findings.stream_findings import describe_streams
from tkperf.page.naming import ORDERS, list_words, name_blocks
from tkperf.page.words.time_course import describe_still_changing, name_rounds


def name_direction(workload: Workload) -> str:
    """Return the direction of a workload in words: ``reads``, ``writes``, ``mixed I/Os (65 % reads)``."""
    if workload.flushes or workload.trims:
        return "flushes" if workload.flushes else "trims"
    return {100: "reads", 0: "writes"}.get(workload.read_percent, f"mixed I/Os ({workload.read_percent} % reads)")


def name_ios(workload: Workload) -> str:
    """Return the I/Os of a workload in words: ``random 4 KiB writes``, ``random writes of 12 block sizes``, ``the I/Os
    of all streams``.
    """
    if workload.is_combination:
        return "the I/Os of all streams"
    order, direction = ORDERS[workload.access], name_direction(workload)
    if workload.block_mix:
        return f"{order} {direction} of {name_blocks(workload)}"
    return f"{order} {name_blocks(workload)} {direction}"


def name_demand(workload: Workload) -> str:
    """Return the demand of a workload: ``TC4 QD32``."""
    return f"{JOBS.words(workload)} {DEPTH.words(workload)}"


def say_value(value: float, quantity: Quantity) -> str:
    """Return a value with its unit: ``27,000 IOPS``, ``1.204 ms``."""
    if quantity.unit == LATENCY_MEAN.unit:
        return format_latency(value)
    return quantity.text(value)


def say(cell: CellResult, quantity: Quantity) -> str:
    """Return the result of a load in the form that ends a sentence: ``run at 27,000 IOPS``, ``take 37.2 µs on
    average``. The text is empty if the quantity was not measured.
    """
    value = cell.value(quantity)
    if value is None:
        return ""
    if quantity is LATENCY_MEAN:
        return f"take {format_latency(value)} on average"
    if quantity.better is Better.HIGHER:
        return f"run at {say_value(value, quantity)}"
    return f"have a {quantity.label} of {say_value(value, quantity)}"


def say_tail(cell: CellResult, shown: Sequence[Quantity], of: str = "") -> str:
    """Return the tail of the latency: ``99.9 % complete within 1.204 ms, the slowest in 35.1 ms``.

    For a mix, the text names reads and writes separately. The text is empty if the section does not show latencies of
    the tail.

    Args:
        of: the name of the I/Os, if the sentence must contain the name.
    """
    parts = []
    asked = [quantity for quantity in shown if quantity in PERCENTILES]
    if asked:
        limits = [limit for direction in _directions(cell) if (limit := _within(cell, direction, of)) is not None]
        if limits:
            parts.append(_join(limits))
    slowest = cell.value(LATENCY_MAX)
    if slowest is not None and (asked or LATENCY_MAX in shown):
        parts.append(f"the slowest {'in' if parts else 'completes in'} {format_latency(slowest)}")
    return ", ".join(parts)


def _join(limits: Sequence[tuple[str, str, str]]) -> str:
    """Return several limits as one text: ``99.9 % of the reads complete within 354 µs, of the writes within 305
    µs``.
    """
    share, of, time = limits[0]
    words = f"{share}{of} complete within {time}"
    for other, of_other, its_time in limits[1:]:
        words += f",{of_other} within {its_time}" if other == share else (f", {other}{of_other} within {its_time}")
    return words


def _directions(cell: CellResult) -> tuple[Direction, ...]:
    apart = (Direction.READ, Direction.WRITE)
    mixed = cell.workload.is_mixed
    known = all(cell.value(LATENCY_MEAN, direction) is not None for direction in apart)
    return apart if mixed and known else (Direction.ALL,)


def _within(cell: CellResult, direction: Direction, of: str) -> tuple[str, str, str] | None:
    """Return the highest known share of I/Os, the name of the I/Os, and the time within which this share completes."""
    names = [quantity.key for quantity in PERCENTILES]
    # Percentiles above this tail are based on few I/Os, so the search begins at this tail.
    for quantity in reversed(PERCENTILES[: names.index(TAIL) + 1]):
        value = cell.value(quantity, direction)
        if value is not None:
            apart = of if direction is Direction.ALL else f"the {direction.value}s"
            share = quantity.short.removeprefix("p") + " %"
            return share, f" of {apart}" if apart else "", format_latency(value)
    return None


def describe_stream_course(section: SectionResult) -> str:
    """Return a text about how a stream changes over time: ``Random 4 KiB writes settle after 41 min 00 s at 27,000 IOPS
    (median), 30.4 % of ...``.
    """
    shown, rate = section.quantities, section.rate
    cell = section.cells[0] if section.cells else section.slices[-1].values
    leads = shown[0] if shown else rate
    load = capital(name_ios(cell.workload))
    settled = _settles(section, cell, rate) if leads is rate else ""
    words = settled or say(cell, leads)
    parts = [f"{load} {words}" if words else f"{load}: {leads.label} not measured"]
    # The settled rate describes the end of the stream, whereas the tail latency describes the whole stream.
    of = "all I/Os" if settled and not section.steady else ""
    parts += filter(None, (say_tail(cell, shown, of),))
    return "; ".join(parts)


def _settles(section: SectionResult, cell: CellResult, rate: Quantity) -> str:
    """Return a text about how the rate changes over time. The text is empty if tkperf did not search for levels, or if
    the rate was not measured.
    """
    series = find_rate_series(section, cell.workload, rate)
    if series is None or find_characteristic(section, STEADY) is None:
        return ""
    value = find_settled(section, cell)
    if value is None:
        mean = say(cell, rate)
        within = ", within the limits of steady state" if section.steady else ""
        fresh = find_characteristic(section, FRESH)
        falls = series.still_changes_percent is not None
        if falls and fresh is not None and fresh.value:
            within = f", after {say_value(fresh.value, rate)} fresh out of box{within}"
        if not mean:
            return ""
        # The rate is the mean over the whole stream or over a window. The rate at the end of the stream is different.
        return f"{mean} on average and were {describe_still_changing(series)}{within}"
    start = find_characteristic(section, STEADY_FROM[Recorded.SLICES])
    changes = start is not None and start.value is not None and series.changes
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
    """Yield texts about the recovery of a rate, as a share of the rate in the first section with the same load.

    Args:
        first: the name of the first section with the same load.
    """
    share = find_characteristic(section, SHARE_OF_FIRST)
    if share is not None and share.value is not None:
        yield f"the rate is {format_number(share.value)} % of that of {first}"
    found = find_characteristic(section, RECOVERY)
    if found is None:
        return
    if found.value is not None:
        yield f"reached again after {format_duration(found.value)}{_describe_fall(section)}"
    elif found.at_least is not None:
        yield f"not reached again within {format_duration(found.at_least)}"


def _describe_fall(section: SectionResult) -> str:
    """Return ``, then down to 60 % of that rate`` if the rate fell again after it had been reached. Otherwise return an
    empty text.
    """
    least = find_characteristic(section, AFTER_RECOVERY)
    if least is None or least.value is None or least.value >= _FELL_AGAIN_PERCENT:
        return ""
    return f", then down to {format_number(least.value)} % of that rate"


_MOST_RIVALS = 2
# Below this percentage, a rate that was reached has fallen again. The distance from 100 % is twice the distance within
# which a rate counts as reached, because the lowest of many slices is lower than a typical slice.
_FELL_AGAIN_PERCENT = 100 * (1 - 2 * RECOVERED_WITHIN)
_THE_HIGHEST = "the highest rate "
_NEGLIGIBLE_WAIT = 0.01  # as a share of the mean latency


def describe_section(section: SectionResult) -> str:
    """Return a text about the results of the section. The text is empty if the section has no results."""
    if together := describe_streams(section):
        return together
    if section.slices:
        return describe_stream_course(section) + ("; steady state was reached" if section.steady else "")
    if not section.cells or not section.quantities:
        return ""
    no_backlog = find_characteristic(section, NO_BACKLOG)
    if no_backlog is not None:
        return _describe_offered(section, no_backlog)
    if section.areas:
        return _describe_areas(section)
    words = _describe_grid(section) if is_grid(section) else _describe_cells(section)
    return words + _describe_window(section) if words else ""


def _describe_window(section: SectionResult) -> str:
    """Return ``; steady in rounds 4–8, in which reads varied by 76 %``. If there is no steady state, return an empty
    text.
    """
    if not section.steady:
        return ""
    shown = [peak.cell for peak in choose_peaks(section)] if is_grid(section) else choose_cells(section.cells)
    quantity = section.rate if is_grid(section) else section.quantities[0]
    varied = [
        f"{name_direction(cell.workload)} varied by {variation.percent:.0f} %"
        for cell in shown
        if (variation := find_variation(section, cell, quantity)) is not None and variation.exceeds_rule
    ]
    in_which = f", in which {list_words(varied)}" if varied else ""
    return f"; steady in {name_rounds(section.window)}{in_which}"


def _describe_cells(section: SectionResult) -> str:
    """Return a text about the results of the cells of a section: ``Random 4 KiB writes run at 27,000 IOPS, reads at
    98,000 IOPS``.
    """
    shown = section.quantities
    lead, *others = choose_cells(section.cells)
    words = say(lead, shown[0])
    if not words:
        return ""
    sentence = f"{capital(name_ios(lead.workload))} {words}"
    for cell in others:
        value = cell.value(shown[0])
        if value is not None:
            at = "at " if words.startswith("run at") else ""
            sentence += f", {name_direction(cell.workload)} {at}{say_value(value, shown[0])}"
    tail = say_tail(lead, shown, of=f"the {name_direction(lead.workload)}" if others else "")
    return "; ".join(filter(None, (sentence, tail)))


def _describe_grid(section: SectionResult) -> str:
    """Return a text about the maximum of a grid: ``Random 4 KiB writes reach 98,000 IOPS at TC32 QD32 (10.4 ms on
    average), and 9,800 IOPS with ...``.
    """
    rate = section.rate
    sentences = []
    for peak in choose_peaks(section):
        cell = peak.cell
        words = (
            f"{capital(name_ios(cell.workload))} reach {_at(cell, rate)} at {name_demand(cell.workload)}{_mean(cell)}"
        )
        if peak.below:
            words += f", {_THE_HIGHEST * (not peak.none_below)}{peak.below}"
        if peak.rivals:
            words += f", within noise of {_name_rivals(peak.rivals)}"
        single = find_single(section, cell)
        if single is not None and single is not cell and single.value(rate) is not None:
            words += f", and {_at(single, rate)} with a single outstanding I/O{_mean(single)}"
        sentences.append(words)
    return "; ".join((*sentences[:1], *(words[0].lower() + words[1:] for words in sentences[1:])))


def _name_rivals(rivals: Sequence[CellResult]) -> str:
    """Return the demands of the rivals: ``TC16 QD32``. If there are many rivals, return their number."""
    if len(rivals) > _MOST_RIVALS:
        return f"{len(rivals)} other demands"
    return " and ".join(name_demand(cell.workload) for cell in rivals)


def _at(cell: CellResult, quantity: Quantity) -> str:
    return quantity.text(cell.value(quantity))


def _mean(cell: CellResult) -> str:
    """Return the mean latency in words: ``(10.4 ms on average)``. The text is empty if the mean latency was not
    measured.
    """
    mean = cell.value(LATENCY_MEAN)
    return "" if mean is None else f" ({format_latency(mean)} on average)"


def _describe_offered(section: SectionResult, found: Characteristic) -> str:
    """Return a text about the results at offered rates: ``Random 4 KiB reads have no backlog up to 91,000 IOPS and
    saturate at 93,900 IOPS; ...``.
    """
    load = capital(name_ios(found.workload))
    saturated = find_characteristic(section, SATURATED)
    at = ""
    if saturated is not None and saturated.value is not None:
        at = f"saturate at {saturated.text()} {SATURATED.unit}"
    reached = found.value if found.value is not None else found.at_least
    if reached is None:
        if found.at_most is None:
            return ""
        lowest = f"have a backlog at the lowest rate offered, {found.at_most:,.6g} IOPS"
        return f"{load} {lowest}" + f", and {at}" * bool(at)
    tried = "" if found.value is not None else ", the highest rate offered"
    words = f"{load} have no backlog up to {reached:,.6g} IOPS{tried}" + f" and {at}" * bool(at)
    cell = section.cell(replace(found.workload, offered_iops=reached))
    if cell is None:
        return words
    takes = _with_wait(cell) or say(cell, LATENCY_MEAN)
    there = ", ".join(filter(None, (takes, say_tail(cell, section.quantities))))
    return f"{words}; at {reached:,.6g} IOPS they {there}" if takes else words


def _with_wait(cell: CellResult) -> str:
    """Return ``take 60.3 ms on average including the wait to be issued, 345 µs once issued``. The text is empty if the
    I/Os hardly waited.
    """
    issued_us, whole_us = cell.value(LATENCY_MEAN), cell.value(LATENCY_WITH_WAIT)
    if issued_us is None or whole_us is None or whole_us <= (1 + _NEGLIGIBLE_WAIT) * issued_us:
        return ""
    return (
        f"take {format_latency(whole_us)} on average including the wait to be issued, "
        f"{format_latency(issued_us)} once issued"
    )


def _describe_areas(section: SectionResult) -> str:
    """Return a text about the results over the areas of a disk: ``Random 64 KiB reads run at 180 IOPS on average over
    the disk (220 in its first area, ...), ...``.
    """
    quantity = section.quantities[0]
    words = ""
    areas = section.rounds_of_workloads()
    for cell in choose_cells(section.cells):
        value, ends = cell.value(quantity), _ends(areas.get(cell.workload, ()), quantity)
        if value is None:
            continue
        if not words:
            first = f" ({ends[0]} in its first area, {ends[1]} in its last)" if ends else ""
            load = capital(name_ios(cell.workload))
            words = f"{load} {say(cell, quantity)} on average over the disk{first}"
        else:
            at = f" ({', '.join(ends)})" if ends else ""
            words += f", {name_direction(cell.workload)} at {say_value(value, quantity)}{at}"
    return words


def _ends(areas: Sequence[tuple[RoundResult, CellResult]], quantity: Quantity) -> tuple[str, ...]:
    """Return the values in the first and the last area. The result is empty if there are fewer than two areas."""
    values = [value for area, cell in areas if area.complete and (value := cell.value(quantity)) is not None]
    return tuple(map(format_number, (values[0], values[-1]))) if len(values) > 1 else ()
