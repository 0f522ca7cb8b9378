"""Choose the headline figures of a run. The headline figures are the most important figures, each with a verdict. A run
has no more than six headline figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tkperf.analysis.characteristics import (
    FRESH,
    NO_BACKLOG,
    RECOVERY,
    SATURATED,
    SHARE_OF_FIRST,
    STEADY,
    Characteristic,
)
from tkperf.analysis.characteristics_search import find_characteristic
from tkperf.analysis.loads_together import find_rate
from tkperf.analysis.results import CellResult, SectionResult, TestResult
from tkperf.analysis.section_results import Variation, find_variation
from tkperf.analysis.timeline.timelines import Timeline, preferred
from tkperf.analysis.uncertainty.estimate import Uncertainty
from tkperf.model.quantity import IOPS, LATENCY_MAX, LATENCY_MEAN, Better, Quantity, percentile
from tkperf.model.reported_percentiles import TAIL_PERCENT
from tkperf.model.units import format_duration, format_number
from tkperf.model.workload import Workload
from tkperf.page.findings.choice import (
    Peak,
    choose_cells,
    choose_peaks,
    find_peaks_of_sections,
    find_rate_series,
    find_settled,
    find_shared,
    is_grid,
)
from tkperf.page.findings.interference_findings import label_grid, label_neighbours
from tkperf.page.findings.section_findings import name_demand, say_value
from tkperf.page.findings.stream_findings import StreamFigures, find_streams
from tkperf.page.naming import name_figure
from tkperf.page.words.time_course import describe_period, describe_still_changing, without_totals
from tkperf.page.words.uncertainty import describe_ends, describe_flags, describe_share, is_below_digits, is_lopsided

MOST = 6
_WIDE = 0.20
_TAIL = percentile(TAIL_PERCENT)
_LEAST_SPIKE_HEIGHT = 2.0  # height of a spike; lower spikes are listed only in the section


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """A headline figure, which is a figure that a reader wants to see first.

    Attributes:
        test, section: empty for a figure that was not measured. For a whole test, only ``section`` is empty.
        label: load and additional words, such as ``4 KiB random write``. For a fixed figure, the label is the name of
            the figure, such as ``Random write``.
        load: the load of a fixed figure, such as ``4 KiB, TC2/QD16``; empty if the label contains the load.
        key: key of the quantity or characteristic.
        unit: unit in data files.
        value: value with all its digits.
        text: value with its unit, in the form that readers see. If the value lies beyond all values that were tried,
            the text is a bound.
        sure: the 95 % interval in percent, such as ``± 0.35 %``. If the width is only a lower limit, the text is ``at
            least ± 0.35 %``. For an asymmetric interval, the text contains both ends, such as ``0.0759 to 44.8``. The
            text is empty if the interval is not known.
        verdict: verdict on steady state in words. For a stream that was not judged, the text states whether the rate
            still changed at the end. The text is empty if the section has no rule for steady state.
        alarm: whether the reader must be warned. Reasons are: the section did not reach steady state or did not
            complete, the figure varied by more than the rule allows, its interval is wide, or the figure itself needs
            attention.
        workload: measured workload; None if the figure has no single workload, or was not measured.
        also: values that belong to the figure of a stream, such as ``p99 281 µs``; empty if the load ran alone.
        needs_attention: whether this is the finding that a reader must know together with the six figures of a run.
        varied_percent: variation of the figure within the window in which the tracking variables were steady; None if
            the figure is a tracking variable itself, or if no such window exists.
    """

    test: str
    section: str
    label: str
    key: str
    unit: str
    value: float | None
    text: str
    sure: str
    verdict: str
    alarm: bool
    workload: Workload | None
    varied_percent: float | None = None
    load: str = ""
    needs_attention: bool = False
    also: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """A candidate for a headline.

    Attributes:
        rank: 0 for the test's main figure, 1 for a second rate, 2 for other figures.
        like: identity of the figure. Of several figures with the same identity, only one is shown. None means that the
            label and the key are the identity.
    """

    rank: int
    headline: Headline
    like: tuple[str, str] | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.like or (self.headline.label, self.headline.key)


def build_headlines(tests: Sequence[TestResult]) -> tuple[Headline, ...]:
    """Return one headline of each test as long as there is space. Then add second headlines in the order of the tests.

    A figure that another test already provides is not repeated. A headline about periodic latency spikes precedes all
    other headlines.
    """
    of_tests = [list(_of_test(test)) for test in tests]
    headlines: dict[tuple[str, str], tuple[int, Headline]] = {}
    rest: list[tuple[int, _Candidate]] = []
    for place, candidates in enumerate(of_tests):
        first = next((one for one in candidates if one.key not in headlines), None)
        for one in candidates:
            if one is first:
                headlines[one.key] = (place, one.headline)
            else:
                rest.append((place, one))
    for place, one in sorted(rest, key=lambda of: (of[1].rank, of[0])):
        headlines.setdefault(one.key, (place, one.headline))
    spikes = tuple(headline_spikes(tests))
    first_ones = list(headlines.values())[: MOST - len(spikes)]
    return (*spikes, *(headline for _, headline in sorted(first_ones, key=lambda one: one[0])))


def headline_spikes(tests: Sequence[TestResult]) -> Iterator[Headline]:
    """Yield the maximum latency under the load with the highest periodic spikes. If there are no high spikes, yield
    nothing.
    """
    found = find_highest_spikes(tests)
    if found is None:
        return
    test, section, timeline = found
    cells = (cell for cell in section.cells if cell.workload == timeline.workload)
    value = next((cell.value(LATENCY_MAX) for cell in cells), None)
    if value is None:
        return
    yield Headline(
        test=test.name,
        section=section.name,
        label=f"{name_figure(timeline.workload)}, latency spikes {describe_period(timeline)}",
        key=LATENCY_MAX.key,
        unit=LATENCY_MAX.unit_in_data,
        value=value,
        text=say_value(value, LATENCY_MAX),
        sure="",
        verdict=judge_section(section),
        alarm=is_doubtful(section),
        workload=timeline.workload,
    )


def find_highest_spikes(tests: Sequence[TestResult]) -> tuple[TestResult, SectionResult, Timeline] | None:
    """Return the test, the section and the timeline with the highest periodic spikes of the maximum latency.

    The height of a spike is relative to the values around the spike. Return None if there are no high spikes.
    """
    found = [
        (timeline.spikes.height, (test, section, timeline))
        for test in tests
        for section in test.sections
        for timeline in without_totals(preferred(section.timelines))
        if timeline.quantity == LATENCY_MAX.key
        and timeline.spikes is not None
        and timeline.spikes.height >= _LEAST_SPIKE_HEIGHT
    ]
    return max(found, key=lambda one: one[0])[1] if found else None


def _of_test(test: TestResult) -> Iterator[_Candidate]:
    """Yield the candidates of a test, sorted by rank. Candidates with the same rank are in the order of the sections.

    In a test with several demands, each figure names its own demand.
    """
    sections = [section for section in test.sections if not section.plan.prepares]
    together = list(_of_loads_together(test, sections))
    if together:
        yield from together
        return
    of_sections = [list(_of_section(test, section)) for section in sections]
    if find_shared(test):  # All sections have the same quantity, so the first section represents all of them.
        of_sections[1:] = [[replace(one, rank=2) for one in of] for of in of_sections[1:]]
    peaks = find_peaks_of_sections(sections)
    demands = {(cell.workload.jobs, cell.workload.io_depth) for section in sections for cell in section.cells}
    # ``peaks`` does not contain streams, although a stream can have the same load and demand as other sections.
    works = {workload: peak for (_, workload), (_, peak) in peaks.items()}
    by_name = {section.name: section for section in sections}
    every = [candidate for candidates in of_sections for candidate in candidates]

    def rank(candidate: _Candidate) -> tuple[int, bool]:
        # Figures of loads with cautions, such as buffered I/O, are placed after other figures.
        return candidate.rank, bool(by_name[candidate.headline.section].plan.cautions)

    for candidate in sorted(every, key=rank):
        work, section = candidate.headline.workload, by_name[candidate.headline.section]
        # A combination has no single demand, because each of its streams has its own demand. The label therefore does
        # not contain a demand.
        if work is None or work.together:
            yield candidate
            continue
        place = section.name, work
        is_of_several, is_peak = place in peaks, peaks.get(place, place) == place
        if section.slices or section.areas:
            is_of_several, is_peak = work in works, works.get(work, work) == work
        if is_peak or name_demand(work) in candidate.headline.label:
            yield _named(candidate, section, is_of_several=is_of_several, demands=len(demands))


def _of_loads_together(test: TestResult, sections: Sequence[SectionResult]) -> Iterator[_Candidate]:
    """If the test measures the effect of one load on another load, yield this effect. All other figures of such a test
    are only intermediate results.
    """
    for section in sections:
        labelled = label_grid(test, section)
        if labelled is not None:
            found, label, text, doubt = labelled
            headline = _made(test, section, found, label, text, value=found.value)
            sure = "" if found.value is None else describe_interval(found.value, found.uncertainty)
            yield _Candidate(rank=0, headline=_with_doubt(replace(headline, sure=sure), doubt))
    factors = [(one, section) for section in sections for one in label_neighbours(section)]
    factors.sort(key=lambda one: -(one[0][3].factor or 0.0))
    for place, ((found, label, text, effect), section) in enumerate(factors):
        headline = _made(test, section, found, label, text, value=found.value)
        sure = "" if found.value is None else describe_interval(found.value, found.uncertainty)
        doubt = describe_flags(effect.reader) or describe_flags(effect.alone)
        # Each neighbour has a separate figure.
        like = (label, found.key)
        yield _Candidate(rank=min(place, 2), headline=_with_doubt(replace(headline, sure=sure), doubt), like=like)


def _with_doubt(headline: Headline, doubt: str) -> Headline:
    return replace(headline, verdict=doubt, alarm=True) if doubt else headline


def _named(candidate: _Candidate, section: SectionResult, *, is_of_several: bool, demands: int) -> _Candidate:
    """Return the candidate with the state of its section. If the test has several demands, the demand is also added."""
    headline = candidate.headline
    label, like = headline.label, candidate.key
    demand = "" if headline.workload is None else name_demand(headline.workload)
    if demand in label:
        return candidate
    state = "" if section.slices else section.plan.state
    if is_of_several and (demands > 1 or state):
        label += ", highest"
    if demands > 1:
        label += f", at {demand}"
    if state:
        label += f", {state}"
        like = (f"{like[0]}, {', '.join(section.plan.cautions)}", like[1])
    return replace(candidate, headline=replace(headline, label=label), like=like)


def _of_section(test: TestResult, section: SectionResult) -> Iterator[_Candidate]:
    yield from _sought(test, section)
    if streams := find_streams(section):
        yield from _of_streams(test, section, streams)
        return
    shown = section.quantities
    if not section.cells or not shown or find_characteristic(section, NO_BACKLOG) is not None:
        return
    if section.slices:
        for one in _of_stream(test, section, shown):
            yield _with_state(one, section.plan.state)
        return
    grid = is_grid(section) and not section.areas
    first = section.rate if grid else shown[0]
    if grid:
        for number, peak in enumerate(choose_peaks(section)):
            most = f"{_name_peak(peak)} at {name_demand(peak.cell.workload)}"
            yield from _figure(test, section, peak.cell, first, rank=number, most=most)
        return
    cells = choose_cells(section.cells)
    for number, cell in enumerate(cells):
        # A second latency is less important than a second rate.
        later = number if first.better is Better.HIGHER else 2
        yield from _figure(test, section, cell, first, rank=later if number else 0)
    if _TAIL in shown:
        yield from _figure(test, section, cells[0], _TAIL, rank=2)


def _of_streams(test: TestResult, section: SectionResult, streams: Sequence[StreamFigures]) -> Iterator[_Candidate]:
    """Yield the main figure of each stream of a combination. If a combination ran in several sections, each section has
    separate figures.
    """
    for stream in streams:
        work = stream.cell.workload
        headline = build_headline(test, section, stream.cell, stream.main, label=stream.name, load=stream.load)
        if headline is None:
            continue
        is_latency = stream.main is not find_rate(work)
        text = f"{stream.main.short} {headline.text}" if is_latency else headline.text
        alarm = headline.alarm or stream.missed_percent is not None
        headline = replace(headline, text=text, also=stream.rest, alarm=alarm)
        state = section.plan.state
        like = f"{work}, {state}" if state else str(work)
        yield _with_state(_Candidate(rank=0, headline=headline, like=(like, stream.main.key)), state)


def _of_stream(test: TestResult, section: SectionResult, shown: Sequence[Quantity]) -> Iterator[_Candidate]:
    cell = section.cells[0]
    name = name_figure(cell.workload)
    fresh, steady = (find_characteristic(section, measure) for measure in (FRESH, STEADY))
    settled, series = find_settled(section, cell), find_rate_series(section, cell.workload, IOPS)
    changes = series is not None and series.changes
    if shown[0] is IOPS and steady is not None and settled and changes and not section.steady:
        # The mean over the whole stream would combine the fresh part with the settled part. This mean would also differ
        # from the number in the sentence about the stream.
        level = _made(test, section, steady, f"{name}, settled (median)", say_value(settled, IOPS), value=settled)
        sure = describe_interval(settled, steady.uncertainty)
        yield _Candidate(rank=0, headline=replace(level, sure=sure), like=(name, IOPS.key))
    else:
        for one in _figure(test, section, cell, shown[0], rank=0):
            yield _with_series(one, series) if shown[0] is IOPS else one
    if fresh is not None and steady is not None and fresh.value and settled:
        share = 100 * settled / fresh.value
        headline = _made(
            test,
            section,
            steady,
            f"{name}, share of the {say_value(fresh.value, IOPS)} fresh out of box",
            f"{format_number(share)} %",
            value=share,
        )
        share_of_fresh = replace(headline, key="share_of_fresh_percent", unit="%")
        yield _Candidate(rank=1, headline=share_of_fresh, like=(name, "share_of_fresh_percent"))
    if _TAIL in shown and shown[0] is not _TAIL:
        yield from _figure(test, section, cell, _TAIL, rank=2)


def _with_series(candidate: _Candidate, series: Timeline | None) -> _Candidate:
    """Return the candidate with a remark that the rate was still changing at the end.

    The remark is added only if the figure is the mean of a stream that was not judged by a rule for steady state.
    """
    headline = candidate.headline
    if series is None or series.settled is not False or headline.verdict:
        return candidate
    verdict = describe_still_changing(series).partition(", ")[0]
    return replace(candidate, headline=replace(headline, verdict=verdict))


def _with_state(candidate: _Candidate, state: str) -> _Candidate:
    """Return the candidate with the state in its label. If figures differ only in the state, they count as equal, and
    only the first of them is used.
    """
    if not state:
        return candidate
    headline = candidate.headline
    named = replace(headline, label=f"{headline.label}, {state}")
    return replace(candidate, headline=named, like=candidate.key)


def _sought(test: TestResult, section: SectionResult) -> Iterator[_Candidate]:
    """Yield the results for which the test searched. These results are the highest offered rates, a recovery time, and
    the rate of a section as a share of the rate of the first section.
    """
    for measure, of in ((NO_BACKLOG, NO_BACKLOG.label), (SATURATED, SATURATED.label), (RECOVERY, "recovery")):
        found = find_characteristic(section, measure)
        if found is None:
            continue
        text = f"{found.text()} {measure.unit}"
        if measure is RECOVERY:
            at_least = found.at_least or 0.0
            text = f"over {format_duration(at_least)}" if found.value is None else format_duration(found.value)
        label = f"{name_figure(found.workload)}, {of}"
        headline = _made(test, section, found, label, text, value=found.value)
        yield _Candidate(rank=1 if measure is SATURATED else 0, headline=headline)
    share = find_characteristic(section, SHARE_OF_FIRST)
    if share is not None and share.value:
        mean = section.cells[0].value(section.rate)
        first = "" if mean is None else f", {say_value(100 * mean / share.value, section.rate)}"
        label, text = f"{section.name}, share of the first rate{first}", f"{share.text()} %"
        headline = _made(test, section, share, label, text, value=share.value)
        sure = describe_interval(share.value, share.uncertainty)
        yield _Candidate(rank=2, headline=replace(headline, sure=sure))


def _made(
    test: TestResult, section: SectionResult, found: Characteristic, label: str, text: str, *, value: float | None
) -> Headline:
    return Headline(
        test=test.name,
        section=section.name,
        label=label,
        key=found.key,
        unit=found.measure.unit_in_data,
        value=value,
        text=text,
        sure="",
        verdict=judge_section(section),
        alarm=is_doubtful(section),
        workload=found.workload,
    )


def _figure(
    test: TestResult, section: SectionResult, cell: CellResult, quantity: Quantity, *, rank: int, most: str = ""
) -> Iterator[_Candidate]:
    """Yield the figure if it was measured.

    Args:
        most: a text about how the figure was chosen from a grid of demands.
    """
    what = "" if quantity.better is Better.HIGHER else f", {_short(quantity)}"
    label = name_figure(cell.workload) + what + (f", {most}" if most else "")
    headline = build_headline(test, section, cell, quantity, label=label)
    if headline is not None:
        yield _Candidate(rank=rank, headline=headline)


def build_headline(
    test: TestResult, section: SectionResult, cell: CellResult, quantity: Quantity, *, label: str, load: str = ""
) -> Headline | None:
    """Return the figure of a cell with its verdict, or None if the figure was not measured."""
    value = cell.value(quantity)
    if value is None:
        return None
    variation = find_variation(section, cell, quantity)
    apart = variation is not None and not variation.is_judged
    return Headline(
        test=test.name,
        section=section.name,
        label=label,
        load=load,
        key=quantity.key,
        unit=quantity.unit_in_data,
        value=value,
        text=say_value(value, quantity),
        sure=describe_interval(value, cell.uncertainty_of(quantity), quantity),
        verdict=_judge_figure(section, variation),
        alarm=is_doubtful(section)
        or (variation is not None and variation.exceeds_rule)
        or has_wide_interval(value, cell.uncertainty_of(quantity)),
        workload=cell.workload,
        varied_percent=variation.percent if variation is not None and apart else None,
    )


def _name_peak(peak: Peak) -> str:
    """Return the name of the maximum. ``MaxIOPS`` is the name in the PTS for the highest rate with a mean latency below
    the ceiling.
    """
    if not peak.below:
        return "highest,"
    return f"highest, {peak.below}," if peak.none_below else "MaxIOPS"


def _short(quantity: Quantity) -> str:
    if quantity is LATENCY_MEAN:
        return "mean"
    return quantity.short.replace("p", "") + " %" if quantity.short[:1] == "p" else quantity.label


def describe_interval(value: float, known: Uncertainty | None, quantity: Quantity | None = None) -> str:
    """Return the 95 % interval in the form of ``Headline.sure``.

    Args:
        quantity: the quantity of the value. For a latency, both ends of an asymmetric interval contain the unit. None
            means that the value is a plain number.
    """
    if known is None or known.expanded is None or not value:
        return ""
    percent = 100 * known.expanded / abs(value)
    if is_below_digits(percent):
        return "" if known.at_least else describe_share(percent)
    if not is_lopsided(value, known):
        return describe_share(percent, at_least=known.at_least)
    if quantity is None or quantity.unit != LATENCY_MEAN.unit:
        return describe_ends(known)
    ends = " to ".join(say_value(end, quantity) for end in (known.low, known.high) if end is not None)
    return f"{ends} or wider" if known.at_least else ends


def has_wide_interval(value: float, known: Uncertainty | None) -> bool:
    """Return whether the half-width of the interval exceeds a fifth of the value."""
    return known is not None and known.expanded is not None and known.expanded > _WIDE * abs(value)


def judge_section(section: SectionResult) -> str:
    """Return the verdict on a section, in the form of ``Headline.verdict``."""
    if not section.complete:
        return "so far"
    if section.verdict is None:
        return ""
    if section.steady is None:
        # A stream ends after an amount or a time, and not after a number of rounds. A missing verdict therefore does
        # not mean that the stream did not reach steady state.
        return "" if section.slices else "not judged"
    return "steady state" if section.steady else "NOT steady"


def _judge_figure(section: SectionResult, variation: Variation | None) -> str:
    """Return the verdict on a figure. The rule judges only the tracking variables. For all other figures, the text
    contains their variation.
    """
    if not section.complete or not section.steady:
        return judge_section(section)
    if variation is None or not variation.is_judged:
        varied = variation is not None and variation.exceeds_rule
        by = f", varied by {variation.percent:.0f} %" if variation and varied else ""
        return f"in the steady window{by}"
    return judge_section(section)


def is_doubtful(section: SectionResult) -> bool:
    """Return whether a section did not reach steady state, or did not complete."""
    return section.steady is False or not section.complete
