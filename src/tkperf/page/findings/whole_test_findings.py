"""Build sentences about the findings of a run, test by test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tkperf.analysis.characteristics import SHARE_OF_FIRST
from tkperf.analysis.characteristics_search import find_characteristic
from tkperf.analysis.results import CellResult, SectionResult, TestResult
from tkperf.model.figures import LoadCaution
from tkperf.model.quantity import Quantity
from tkperf.model.record import RunStatus
from tkperf.model.units import capital, format_number
from tkperf.page.findings.choice import choose_cells, find_peaks_of_sections, find_shared
from tkperf.page.findings.interference_findings import describe_grid, describe_neighbours
from tkperf.page.findings.section_findings import describe_recovery, describe_section, name_direction, name_ios
from tkperf.page.findings.stream_findings import describe_against_alone, describe_trimmed
from tkperf.page.naming import name_blocks
from tkperf.page.words.run import describe_progress
from tkperf.page.words.time_course import describe_events, describe_excess
from tkperf.page.words.uncertainty import describe_counts

# If more sections than this number report a share of a rate, one sentence contains all shares.
_MOST_SHARES = 3
# If more sections than this number have the same quantity, one sentence covers all of these sections.
_MOST_ALIKE = 2
_MOST_EVENTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A sentence about a test, without a full stop.

    Attributes:
        test: name of the test.
        section: name of the section; None for the whole test.
        alarm: whether the sentence qualifies a figure or names missing figures.
    """

    test: str
    section: str | None
    text: str
    alarm: bool = False


# Conditions of a measurement. If a figure was measured under such a condition, a sentence must name the condition
# together with the figure.
_CONDITIONS = {
    LoadCaution.BUFFERED: "through the host's page cache",
    LoadCaution.NO_DEVICE: "without a device",
    LoadCaution.RATE_LIMITED: "with a limit on the rate",
    LoadCaution.SHARED_LOAD: "with other loads at the same time",
    LoadCaution.ENDED_EARLY: "until it ended early",
}


def build_findings(tests: Sequence[TestResult], range_length_bytes: int | None = None) -> tuple[Finding, ...]:
    """Return the findings of each test. The sentences about the figures of a test are first, followed by the doubts
    about the test.

    Args:
        range_length_bytes: length of the active range; None if the length is not known.
    """
    return tuple(finding for test in tests for finding in _of_test(test, range_length_bytes))


def _of_test(test: TestResult, range_length_bytes: int | None) -> Iterator[Finding]:
    sections = [section for section in test.sections if not section.plan.prepares]
    firsts = _find_firsts(test)
    several = _several_alike(test, sections)
    if several:
        yield Finding(test=test.name, section=None, text=several)
    # If a load ran in several sections, the sentences name the sections, because the names of these sections contain
    # the demand or the drive.
    loads = {name_ios(workload) for _, workload in find_peaks_of_sections(sections)}
    for section in sections:
        many = section.name in firsts and len(firsts) > _MOST_SHARES
        if not several and not many:
            yield from _of_section(test, section, firsts.get(section.name), loads)
    for section, text in describe_against_alone(sections):
        yield Finding(test=test.name, section=section.name, text=f"{section.name}: {text}")
    loads_of_test = [cell.workload for section in sections for cell in section.cells]
    for text in describe_trimmed(loads_of_test, range_length_bytes):
        yield Finding(test=test.name, section=None, text=text)
    if len(firsts) > _MOST_SHARES:
        text = _describe_shares(test, firsts)
        if text:
            yield Finding(test=test.name, section=None, text=text)
    yield from _events(test, sections)
    for section in test.sections:
        yield from _doubts(test, section)
    yield from _whole(test)


def _of_section(test: TestResult, section: SectionResult, first: str | None, loads: set[str]) -> Iterator[Finding]:
    """Yield the finding of the section.

    Args:
        loads: the loads that ran in several sections or in an earlier section. A sentence about such a load must name
            its section. The function adds the load of this section.
    """
    effect = describe_grid(test, section) or describe_neighbours(section)
    if effect:
        yield Finding(test=test.name, section=section.name, text=capital(effect))
        return
    text = describe_section(section)
    if not text:
        return
    cell = choose_cells(section.cells)[0] if section.cells else None
    load = name_ios(cell.workload) if cell is not None else ""
    # The name of a section already contains its conditions.
    conditions = capital(", ".join(_CONDITIONS[caution] for caution in section.plan.cautions))
    if load in loads or conditions:
        # A sentence about streams begins with the name of a stream. The spelling of this name is not changed.
        rest = text if cell is not None and cell.workload.together else f"{text[0].lower()}{text[1:]}"
        text = f"{section.name if load in loads else conditions}: {rest}"
    loads.add(load)
    if first is not None:
        recovery = ", ".join(describe_recovery(section, first))
        text = "; ".join(filter(None, (text, recovery)))
    so_far = " (figures so far)" if not section.complete else ""
    yield Finding(test=test.name, section=section.name, text=text + so_far)


def _find_firsts(test: TestResult) -> dict[str, str]:
    """Return the sections whose rate is reported as a share of the rate of another section. The name of the section is
    the key, and the name of the other section is the value.
    """
    found: dict[str, str] = {}
    first_of: dict[object, str] = {}
    for section in test.sections:
        if not section.cells or not section.slices:
            continue
        first = first_of.setdefault(section.cells[0].workload, section.name)
        if find_characteristic(section, SHARE_OF_FIRST) is not None:
            found[section.name] = first
    return found


def _describe_shares(test: TestResult, firsts: dict[str, str]) -> str:
    """Return a text about shares of a rate: ``Random 4 KiB writes run at 98.1 % (State 1) to 132 % (State 10) of the
    ...``.
    """
    shares = {
        section.name: share.value
        for section in test.sections
        if section.complete
        and (share := find_characteristic(section, SHARE_OF_FIRST)) is not None
        and share.value is not None
    }
    first = next((one for one in test.sections if one.name in firsts.values() and one.cells), None)
    if not shares or first is None:
        return ""
    rate, cell = first.rate, first.cells[0]
    least, most = (pick(shares, key=lambda name: shares[name]) for pick in (min, max))
    return capital(
        f"{name_ios(cell.workload)} run at {format_number(shares[least])} % ({least}) to "
        f"{format_number(shares[most])} % ({most}) of the {rate.text(cell.value(rate))} of {first.name}"
    )


def _several_alike(test: TestResult, sections: Sequence[SectionResult]) -> str:
    """Return a text about sections with the same quantity and several block sizes, from the largest to the smallest
    block size.
    """
    quantity = find_shared(test)
    measured = [section for section in sections if section.cells and section.complete]
    if quantity is None or len(measured) <= _MOST_ALIKE or any(one.areas for one in measured):
        return ""
    cells = [cell for section in measured for cell in section.cells]
    words = [
        f"{name_direction(of_mix[0].workload)} {_from_to(of_mix, quantity)}"
        for percent in sorted({cell.workload.read_percent for cell in cells})
        if (of_mix := [c for c in cells if c.workload.read_percent == percent and c.value(quantity) is not None])
    ]
    order = {cell.workload.access.value for cell in cells}
    return capital(" ".join((*order, ", ".join(words)))) if len(order) == 1 and words else ""


def _from_to(cells: Sequence[CellResult], quantity: Quantity) -> str:
    """Return the first and the last value in words: ``run at 510 MB/s with 1024 KiB blocks and 12.3 MB/s with 0.5
    KiB``.
    """
    ordered = sorted(cells, key=lambda cell: -cell.workload.mean_block_bytes)
    largest, smallest = ordered[0], ordered[-1]
    words = f"run at {quantity.text(largest.value(quantity))} with {name_blocks(largest.workload)} blocks"
    if largest is smallest:
        return words
    return f"{words} and {quantity.text(smallest.value(quantity))} with {name_blocks(smallest.workload)}"


def _events(test: TestResult, sections: Sequence[SectionResult]) -> Iterator[Finding]:
    """Yield sentences about the first few drops and spikes. The pages of the sections list all drops and spikes."""
    found = [(section, text) for section in sections for text in describe_events(section.timelines)]
    for section, text in found[:_MOST_EVENTS]:
        named = f"{section.name}: {text}" if len(sections) > 1 else text
        yield Finding(test=test.name, section=section.name, text=named)
    if len(found) > _MOST_EVENTS:
        text = f"{len(found) - _MOST_EVENTS} more drops or spikes are listed with its sections"
        yield Finding(test=test.name, section=None, text=text)


def _doubts(test: TestResult, section: SectionResult) -> Iterator[Finding]:
    """Yield the doubts about a section. The doubts follow from the verdict on the section."""
    verdict = section.verdict
    if verdict is None or section.steady or not (section.complete or verdict.judged):
        return
    if verdict.judged:
        missed = [one for one in section.window_verdicts if not one.reached] or [verdict]
        why = "; ".join(describe_excess(one) for one in missed)
        text = f"{section.name} did not reach steady state: {why}"
    else:
        text = f"{section.name} has too few rounds for the steady-state rule: {verdict.reason}"
    yield Finding(test=test.name, section=section.name, text=text, alarm=verdict.judged)


def _whole(test: TestResult) -> Iterator[Finding]:
    """Yield the progress of a test that did not complete, and the number of disturbed steps."""
    if (progress := describe_progress(test)) is not None:
        going_on = test.status is RunStatus.RUNNING
        text = f"Test {progress}"
        yield Finding(test=test.name, section=None, text=text, alarm=not going_on)
    if test.disturbed_steps:
        counts = describe_counts(test.disturbed_steps, test.not_compared_steps, test.steps)
        yield Finding(test=test.name, section=None, text=f"Disturbed: {counts}", alarm=True)
