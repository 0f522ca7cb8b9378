"""Find conditions that differ between several runs, and parts that only some of the runs contain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tkperf.analysis.comparing.measured_conditions import (
    describe_preconditioning,
    describe_purge,
    describe_share_of_range,
    describe_write_cache,
    find_numbers,
)
from tkperf.analysis.results import RunResult, SectionResult, TestResult
from tkperf.model.batch_state import find_place
from tkperf.model.disturbance.io import HOST_LIMITED, describe_disturbed, find_codes
from tkperf.model.record import RunStatus
from tkperf.model.units import format_capacity, format_count, list_names
from tkperf.page.words.run import describe_progress, find_notices, find_warnings

# The greatest number of entries that a text lists. If there are more entries, the text contains the number of the
# remaining entries.
MOST_LISTED = 5
# If more runs than this number have a flaw, the text does not contain the extent of the flaw.
_MOST_WITH_EXTENT = 3

Of = Callable[[RunResult], object]
ResultPlace = tuple[str, ...]
# The places of one kind, such as sections, for each run. The place is the key, and its title is the value.
PlacesOfRuns = tuple[dict[ResultPlace, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionGroup:
    """A group of conditions of one kind. ``texts`` describes the conditions with their values.

    Attributes:
        names: names of the conditions that differ, for a text on a single line.
        not_known: names of the conditions that may differ, because they are not known for every run.
    """

    title: str
    names: tuple[str, ...]
    texts: tuple[str, ...]
    not_known: tuple[str, ...] = ()


class Difference(NamedTuple):
    """A condition that differs or may differ: its name and its description."""

    name: str
    text: str
    is_known: bool = True


def find_conditions(names: Sequence[str], results: Sequence[RunResult]) -> tuple[ConditionGroup, ...]:
    """Return all groups of conditions that a reader of a comparison must know. Empty groups are omitted."""
    other_texts = {
        "Only in some runs": tuple(find_gaps(names, results)),
        "Remarks of the runs": tuple(_join_remarks(names, results)),
    }
    return (
        *find_differences(names, results),
        *(ConditionGroup(title=title, names=(), texts=texts) for title, texts in other_texts.items() if texts),
    )


def find_differences(names: Sequence[str], results: Sequence[RunResult]) -> tuple[ConditionGroup, ...]:
    """Return the conditions that differ, or that are not known for every run. Only conditions that affect tests of all
    runs are included.
    """
    of_one_model = _OF_ONE_MODEL if _is_one_model(results) else {}
    groups: dict[str, list[Difference]] = {
        "Specification": [*_facts(names, results, _SPECIFICATION), *_profile_differences(names, results)],
        "Drive and host": list(_facts(names, results, of_one_model | _SURROUNDINGS)),
        "Preparation": [
            *_section_differences(names, results, "purge", describe_purge),
            *_section_differences(names, results, "preconditioning", describe_preconditioning),
        ],
        "Load": list(_demand_differences(names, results)),
    }
    return tuple(
        ConditionGroup(
            title=title,
            names=_names(found, known=True),
            not_known=_names(found, known=False),
            texts=tuple(one.text for one in found),
        )
        for title, found in groups.items()
        if found
    )


def _names(found: Sequence[Difference], *, known: bool) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.name for one in found if one.is_known is known))


def _is_one_model(results: Sequence[RunResult]) -> bool:
    return len({str(result.info.device.get("model")) for result in results}) == 1


def _facts(names: Sequence[str], results: Sequence[RunResult], conditions: dict[str, Of]) -> Iterator[Difference]:
    for condition, of in conditions.items():
        values = [of(result) for result in results]
        known = {str(value) for value in values if value is not None}
        if condition in _DIFFER_IF_KNOWN and len(known) < 2:
            continue
        if len({str(value) for value in values}) > 1:
            how, is_known = _how(values)
            text = f"{condition} {how} ({_list_values(names, values)})"
            yield Difference(condition, text, is_known)


def _how(values: Iterable[object]) -> tuple[str, bool]:
    """Return words for unequal values, such as ``differs``. Also return whether it is certain that the values differ.

    A value that is not known may be equal to the other values.
    """
    known = {str(value) for value in values if value is not None}
    return ("differs", True) if len(known) > 1 else ("is not known of every run", False)


def find_gaps(names: Sequence[str], results: Sequence[RunResult]) -> Iterator[str]:
    """Yield the tests, sections and cells that only some runs contain. One text describes all parts that exactly the
    same runs contain.

    If a whole test is missing, its sections are not listed. If a whole section is missing, its cells are not listed.
    """
    tests: PlacesOfRuns = tuple({(test.name,): f"test {test.title}" for test in result.tests} for result in results)
    sections: PlacesOfRuns = tuple(
        {place: place[1] for place in _sections(result) if _all_have(tests, place[:1])} for result in results
    )
    cells: PlacesOfRuns = tuple(
        {
            (*place, cell.workload.mix_and_size): f"{place[1]} {cell.workload.mix_and_size}"
            for place, section in _sections(result).items()
            if _all_have(sections, place)
            for cell in section.cells
        }
        for result in results
    )
    only: dict[str, list[str]] = {}
    for level in (tests, sections, cells):
        everywhere = {place: title for of_run in level for place, title in of_run.items()}
        for place, title in everywhere.items():
            if not _all_have(level, place):
                owners = [name for name, of in zip(names, level, strict=True) if place in of]
                only.setdefault(list_names(owners), []).append(title)
    for owners_text, titles in only.items():
        yield f"only in {owners_text}: {_handful(titles, 'result')}"


def find_remarks(name: str, result: RunResult) -> Iterator[str]:
    """Yield the remarks that every reader of the values of this run must know."""
    yield from (f"{name}: {text}" for text in _remarks(result))


def _join_remarks(names: Sequence[str], results: Sequence[RunResult]) -> Iterator[str]:
    """Yield the remarks of several runs. Equal remarks are yielded once. A notice that applies to all runs is omitted,
    because the page shows it elsewhere.
    """
    by_text: dict[str, list[str]] = {}
    for name, result in zip(names, results, strict=True):
        for text in dict.fromkeys(_remarks(result)):
            by_text.setdefault(text, []).append(name)
    everywhere = set.intersection(*(set(find_notices(result)) for result in results))
    for text, of_runs in by_text.items():
        if text not in everywhere:
            yield f"{list_names(of_runs)}: {text}"


def _remarks(result: RunResult) -> Iterator[str]:
    yield from find_notices(result)
    yield from _cut_short(result)
    warnings = find_warnings(result)
    for warning in warnings[:MOST_LISTED]:
        yield warning.text
    if len(warnings) > MOST_LISTED:
        more = format_count(len(warnings) - MOST_LISTED, "more warning")
        yield f"and {more} in its own report"
    sections = [section for test in result.tests for section in test.sections]
    cells = [cell for section in sections for cell in section.cells]
    limited = sum(cell.host_limited is True for cell in cells)
    if limited:
        of = f"{limited} of {format_count(len(cells), 'result')}"
        yield f"{of} {HOST_LIMITED}"
    disturbed = [cell for cell in cells if cell.disturbances]
    if disturbed:
        of = f"{len(disturbed)} of {format_count(len(cells), 'result')}"
        codes = find_codes(code for cell in disturbed for code in cell.disturbances or ())
        yield f"{of} {describe_disturbed(codes)}"
    for section in sections:
        if section.steady is False:
            yield f"{section.name} did not reach steady state"


def find_flaws(names: Sequence[str], results: Sequence[RunResult]) -> Iterator[tuple[str, str]]:
    """Yield each flaw that makes values of the runs doubtful, with the runs that have the flaw: ``("Not steady", "A
    (Throughput 128k), B (all 5 sections)")``.

    If many runs have the flaw, the text contains only the names of the runs, and not the extent of the flaw.
    """
    flaws: dict[str, dict[str, str]] = {}
    for name, result in zip(names, results, strict=True):
        sections = [section for test in result.tests for section in test.sections]
        cells = [cell for section in sections for cell in section.cells]
        unsteady = [section.name for section in sections if section.steady is False]
        found = {
            "Not measured to the end": result.status.value if result.status is not RunStatus.COMPLETE else "",
            "Not steady": _count_unsteady(unsteady, len(sections)),
            "Disturbed": _count_of(sum(bool(cell.disturbances) for cell in cells), len(cells)),
            "Limited by the host": _count_of(sum(cell.host_limited is True for cell in cells), len(cells)),
        }
        for flaw, extent in found.items():
            if extent:
                flaws.setdefault(flaw, {})[name] = extent
    for flaw, extents in flaws.items():
        texts = [f"{name} ({extent})" for name, extent in extents.items()]
        yield flaw, list_names(texts if len(texts) <= _MOST_WITH_EXTENT else list(extents))


def _count_unsteady(unsteady: Sequence[str], count: int) -> str:
    if len(unsteady) < 2:
        return "".join(unsteady)
    return f"all {count} sections" if len(unsteady) == count else f"{len(unsteady)} of {count} sections"


def _count_of(number: int, count: int) -> str:
    return f"{number} of {format_count(count, 'result')}" if number else ""


def find_cut_short(name: str, result: RunResult) -> Iterator[str]:
    """Yield a remark and the progress of each test if the run did not complete. Otherwise yield nothing."""
    yield from (f"{name}: {text}" for text in _cut_short(result))


def _cut_short(result: RunResult) -> Iterator[str]:
    if result.status is RunStatus.COMPLETE:
        return
    yield f"the run is {result.status.value}"
    for test in result.tests:
        if (progress := describe_progress(test)) is not None:
            yield f"{test.title}: {progress}"


def _list_values(names: Sequence[str], values: Iterable[object]) -> str:
    """Return a list of the value of each run: ``A: 4, B: 1``. If there are many runs, return a list of the runs with
    each value: ``4: A, B, C, D and 12 more; 1: E``.
    """
    texts = ["not known" if value is None else str(value) for value in values]
    if len(texts) <= MOST_LISTED:
        return ", ".join(f"{name}: {text}" for name, text in zip(names, texts, strict=True))
    by_text: dict[str, list[str]] = {}
    for name, text in zip(names, texts, strict=True):
        by_text.setdefault(text, []).append(name)
    return "; ".join(f"{text}: {list_names(alike)}" for text, alike in by_text.items())


def _handful(items: Sequence[str], more: str) -> str:
    text = ", ".join(items[:MOST_LISTED])
    left = len(items) - MOST_LISTED
    return f"{text} and {format_count(left, f'more {more}')}" if left > 0 else text


def describe_demand(test: TestResult) -> str | None:
    """Return the thread count and queue depth of a test's measurements, or the ranges of both. Return None if they are
    not known.
    """
    if not test.demands:
        return None
    jobs, depths = zip(*test.demands, strict=True)
    return f"TC{_span(jobs)}/QD{_span(depths)}"


def _span(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low}\N{EN DASH}{high}"


_SPECIFICATION: dict[str, Of] = {
    "profile": lambda result: result.info.profile_name,
    "suite": lambda result: result.info.suite,
    "active range": describe_share_of_range,
}


def _find_drives_at_once(result: RunResult) -> int | None:
    if result.info.imported:
        return None
    place = find_place(result.info.host)
    return 1 if place is None else 1 + place.others


def _find_own_cpus(result: RunResult) -> str | None:
    if result.info.imported:
        return None
    place = find_place(result.info.host)
    if place is None or not place.others:
        return "no other drive"
    return f"{len(place.cpus)} of its own" if place.cpus else "shared with other drives"


def _find_capacity(result: RunResult) -> str | None:
    capacity_bytes = result.info.device.get("capacity_bytes")
    return format_capacity(capacity_bytes) if isinstance(capacity_bytes, int | float) else None


# Facts that distinguish drives. If such a fact is not known, as in imported runs, the measurement is still not
# doubtful.
_DIFFER_IF_KNOWN = ("capacity", "interface")
_SURROUNDINGS: dict[str, Of] = {
    "capacity": _find_capacity,
    "interface": lambda result: result.info.device.get("interface"),
    "kind of target": lambda result: result.info.device.get("kind"),
    "write cache": describe_write_cache,
    "fio": lambda result: result.info.fio_version,
    "I/O engine": lambda result: result.info.ioengine,
    "link": lambda result: result.info.device.get("link"),
    "CPU": lambda result: result.info.host.get("cpu_model"),
    "kernel": lambda result: result.info.host.get("kernel"),
    "drives at once": _find_drives_at_once,
    "CPUs": _find_own_cpus,
}


_OF_ONE_MODEL: dict[str, Of] = {"firmware": lambda result: result.info.device.get("firmware")}


def _demand_differences(names: Sequence[str], results: Sequence[RunResult]) -> Iterator[Difference]:
    """Yield the differences in demand. Tests that differ in the same way are reported as one difference."""
    by_run = [{test.name: describe_demand(test) for test in result.tests} for result in results]
    differing: dict[tuple[str | None, ...], list[str]] = {}
    for test in _common_tests(results):
        demands = tuple(of_run[test.name] for of_run in by_run)
        if len(set(demands)) > 1:
            differing.setdefault(demands, []).append(test.title)
    for demands, tests in differing.items():
        how, is_known = _how(demands)
        yield Difference(
            "threads and queue depth",
            f"demand (thread count, queue depth) {how} ({_list_values(names, demands)}) in {_handful(tests, 'test')}",
            is_known,
        )


def _common_tests(results: Sequence[RunResult]) -> list[TestResult]:
    """Return those tests of the first run that all other runs contain too."""
    others = [{test.name for test in result.tests} for result in results]
    return [test for test in results[0].tests if all(test.name in names for names in others)]


def _profile_differences(names: Sequence[str], results: Sequence[RunResult]) -> Iterator[Difference]:
    """Yield the differences between the numbers in the profiles for the tests that all runs contain. Profiles with the
    same name can contain different numbers.
    """
    tests = [test.name for test in _common_tests(results)]
    numbers = [find_numbers(result, tests) for result in results]
    differing = []
    for key in dict.fromkeys(key for of_run in numbers for key in of_run):
        values = [of_run.get(key) for of_run in numbers]
        if len(set(values)) > 1:
            differing.append(f"{key} ({_list_values(names, values)})")
    if differing:
        yield Difference("numbers of the profile", f"numbers of the profiles differ: {_handful(differing, 'number')}")


def _section_differences(
    names: Sequence[str],
    results: Sequence[RunResult],
    condition: str,
    of: Callable[[RunResult, SectionResult], str | None],
) -> Iterator[Difference]:
    """Yield the differences in one condition of the sections. Sections that differ in the same way are reported as one
    difference.
    """
    by_run = [_sections(result) for result in results]
    differing: dict[tuple[str | None, ...], list[str]] = {}
    for place in by_run[0]:
        if all(place in sections for sections in by_run):
            descriptions = tuple(of(result, sections[place]) for result, sections in zip(results, by_run, strict=True))
            if len(set(descriptions)) > 1:
                differing.setdefault(descriptions, []).append(place[1])
    for descriptions, alike in differing.items():
        listed = _handful(alike, "section")
        how, is_known = _how(descriptions)
        text = f"{condition} {how} ({_list_values(names, descriptions)}) in {listed}"
        yield Difference(condition, text, is_known)


def _sections(result: RunResult) -> dict[tuple[str, str], SectionResult]:
    return {(test.name, section.name): section for test in result.tests for section in test.sections}


def _all_have(level: PlacesOfRuns, place: ResultPlace) -> bool:
    return all(place in of_run for of_run in level)
