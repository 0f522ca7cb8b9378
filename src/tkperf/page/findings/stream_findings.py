"""Build texts about each stream of a combination. The texts describe the rate, the latency and the flushes of the
stream, and the trims of the region that the stream reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tkperf.analysis.characteristics_search import has_backlog
from tkperf.analysis.loads_together import TAIL, find_rate, is_latency_sought
from tkperf.analysis.results import CellResult, SectionResult
from tkperf.analysis.uncertainty.estimate import build_ratio
from tkperf.model.figures import FigureKind
from tkperf.model.quantity import IOPS, LATENCY_MEAN, Quantity
from tkperf.model.units import format_count, format_latency, format_number
from tkperf.model.workload import ActiveRange, Workload
from tkperf.page.naming import list_words, name_figure
from tkperf.page.words.time_course import name_rounds
from tkperf.page.words.uncertainty import describe_factor_with_ends

# If there are more streams, a sentence about all of them would be too long.
_MOST_STREAMS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFigures:
    """The results of a stream in a combination. If the stream flushes, ``flushes`` contains the results of the
    flushes.
    """

    cell: CellResult
    flushes: CellResult | None

    @property
    def name(self) -> str:
        return self.cell.workload.stream or ""

    @property
    def load(self) -> str:
        """Return the load of the stream without the name of the stream: ``4 KiB random read, TC2/QD8``."""
        work = self.cell.workload
        of_name = name_figure(work).removeprefix(f"{self.name}: ")
        return f"{of_name}, TC{work.jobs}/QD{work.io_depth}"

    @property
    def missed_percent(self) -> float | None:
        """Return the completed share of the offered rate in percent. Return None if the stream reached the offered
        rate, or if no rate was offered.
        """
        offered, done = self.cell.workload.offered_iops, self.cell.value(IOPS)
        if offered is None or done is None or not has_backlog(self.cell):
            return None
        return 100 * done / offered

    @property
    def main(self) -> Quantity:
        """Return the main quantity of the stream. The main quantity is the tail latency if the stream reached an
        offered rate, and otherwise the rate.
        """
        work = self.cell.workload
        is_tail = is_latency_sought(work) and self.missed_percent is None and self.cell.value(TAIL) is not None
        return TAIL if is_tail else find_rate(work)

    @property
    def rate(self) -> str:
        """Return the rate in words: ``65.5 MB/s``, ``21.0 MB/s of trims``."""
        rate = find_rate(self.cell.workload)
        return rate.text(self.cell.value(rate)) + (" of trims" if self.cell.workload.trims else "")

    @property
    def latency(self) -> str:
        """Return the latency in words: ``p99 281 µs``, or ``mean 62.6 µs`` if there are too few I/Os for a percentile.
        The text is empty if no latency was measured.
        """
        return describe_latency(self.cell)

    @property
    def rest(self) -> str:
        """Return the values that a reader needs in addition to the main figure."""
        words = [self.rate] if self.main is TAIL else []
        if (missed := self.missed_percent) is not None:
            words.append(f"{format_number(missed)} % of the offered rate")
        elif self.main is TAIL:
            words[0] += " as offered"
        if self.main is not TAIL and self.latency:
            words.append(self.latency)
        if self.flushes is not None and (latency := describe_latency(self.flushes)):
            words.append(f"flushes {latency}")
        return ", ".join(words)


def describe_latency(cell: CellResult) -> str:
    """Return the tail of the latency, or the mean if the tail is not known. The text is empty if neither value is
    known.
    """
    for quantity in (TAIL, LATENCY_MEAN):
        value = cell.value(quantity)
        if value is not None:
            return f"{quantity.short} {format_latency(value)}"
    return ""


def find_streams(section: SectionResult) -> tuple[StreamFigures, ...]:
    """Return the streams of a section in the order of their combination. The result is empty if the section has no
    combination.
    """
    cells = {cell.workload.part_key: cell for cell in section.cells if cell.workload.stream is not None}
    return tuple(
        StreamFigures(cell=cell, flushes=cells.get((name, True)))
        for (name, is_flushes), cell in cells.items()
        if not is_flushes
    )


def describe_streams(section: SectionResult) -> str:
    """Return a text about streams that run together: ``reader runs at 83,900 IOPS (p99 281 µs) together with writer at
    65.5 MB/s (p99 578 µs)``. The text is empty if there are no streams.
    """
    streams = find_streams(section)
    if not streams:
        return ""
    first, *others = streams[:_MOST_STREAMS]
    words = f"{first.name} runs at {_describe(first)} together with "
    named = [f"{each.name} at {_describe(each)}" for each in others]
    if left := len(streams) - _MOST_STREAMS:
        named += [format_count(left, "more stream")] if left > 0 else []
    return words + list_words(named) + _describe_window(section)


def describe_against_alone(sections: Sequence[SectionResult]) -> Iterator[tuple[SectionResult, str]]:
    """Yield a sentence for each section with streams whose loads also ran alone in another section of the test:
    ``compared with Queries alone, the p99 latency of queries is 2.41 × (2.3 to 2.5)``.

    The sections of the test ``neighbours`` are omitted, because their findings already contain the factors.
    """
    complete = [one for one in sections if one.complete and not one.plan.draws(FigureKind.NEIGHBOURS)]
    alone = {cell.workload: (one.name, cell) for one in complete for cell in one.cells if not cell.workload.together}
    for section in complete:
        effects: dict[str, list[str]] = {}
        for stream in find_streams(section):
            load = next(one.workload for one in stream.cell.workload.together if one.name == stream.name)
            name, cell = alone.get(load, (section.name, None))
            if cell is not None and name != section.name and (words := _describe_change(stream, cell)):
                effects.setdefault(name, []).append(words)
        for name, words_ in effects.items():
            yield section, f"compared with {name}, {list_words(words_)}"


def _describe_change(stream: StreamFigures, alone: CellResult) -> str:
    """Return a text that compares a stream with a section in which the same load runs alone. The text contains the
    factor of the latency if the stream reached its offered rate, and otherwise the share of the rate.
    """
    quantity, cell = stream.main, stream.cell
    value, before = cell.value(quantity), alone.value(quantity)
    if value is None or not before:
        return ""
    if quantity is not TAIL:
        return f"{stream.name} reaches {format_number(100 * value / before)} % of its {quantity.label}"
    known = build_ratio(value, cell.uncertainty_of(quantity), before, alone.uncertainty_of(quantity))
    return f"the p99 latency of {stream.name} is {describe_factor_with_ends(value / before, known)}"


def _describe(stream: StreamFigures) -> str:
    facts: Sequence[str] = [
        "" if (missed := stream.missed_percent) is None else f"{format_number(missed)} % of its offered rate",
        stream.latency,
        "" if stream.flushes is None else f"flushes {describe_latency(stream.flushes)}",
    ]
    known = ", ".join(filter(None, facts))
    return f"{stream.rate} ({known})" if known else stream.rate


def _describe_window(section: SectionResult) -> str:
    if not section.steady:
        return ""
    return "; steady state was reached" if section.slices else f"; steady in {name_rounds(section.window)}"


def describe_trimmed(workloads: Iterable[Workload], range_length_bytes: int | None) -> Iterator[str]:
    """Yield, for each stream that reads, the share of its region that the trims of the combination cover.

    Args:
        range_length_bytes: length of the active range, which a load without a region uses; None if the length is not
            known.
    """
    for combination in dict.fromkeys(work for work in workloads if work.is_combination):
        whole = None if range_length_bytes is None else ActiveRange(offset_bytes=0, length_bytes=range_length_bytes)
        regions = {stream.name: stream.workload.region or whole for stream in combination.together}
        trimming = [stream.name for stream in combination.together if stream.workload.trims]
        for reader in (stream.name for stream in combination.together if stream.workload.reads):
            percent = _covered_percent(regions[reader], [regions[name] for name in trimming])
            trimmers = [name for name in trimming if _covered_percent(regions[reader], [regions[name]])]
            if percent:
                verb = "covers" if len(trimmers) == 1 else "cover"
                yield (
                    f"{list_words(trimmers)} {verb} {format_number(percent)} % of the region of {reader}: "
                    "reads of trimmed blocks do not touch the flash"
                )


def _covered_percent(region: ActiveRange | None, others: Sequence[ActiveRange | None]) -> float | None:
    """Return the percentage of a region that is covered by the union of other regions. Return None if a region is not
    known.
    """
    if region is None or None in others:
        return None
    covered_bytes, at_bytes = 0, region.offset_bytes
    for other in sorted((each for each in others if each is not None), key=lambda each: each.offset_bytes):
        begin = max(at_bytes, other.offset_bytes)
        end = min(region.offset_bytes + region.length_bytes, other.offset_bytes + other.length_bytes)
        if end > begin:
            covered_bytes, at_bytes = covered_bytes + end - begin, end
    return 100 * covered_bytes / region.length_bytes
