"""What must be known beside numbers of several runs: conditions that differ, what only some have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from tkperf.analysis.flags import describe_disturbed
from tkperf.analysis.results import RunResult, SectionResult, TestResult
from tkperf.disturbance.codes import HOST_LIMITED, find_codes
from tkperf.procedures import find_test
from tkperf.record import RunStatus
from tkperf.units import format_count

# Of a long list only the first are said.
MOST_LISTED = 5

Of = Callable[[RunResult], object]
Place = tuple[str, ...]
# Of each run the places of one kind that it has, and what they are called.
Level = tuple[dict[Place, str], ...]


def find_differences(names: Sequence[str], results: Sequence[RunResult]) -> Iterator[str]:
    """Conditions that are not the same in all runs, as far as they matter to tests in common."""
    conditions: dict[str, Of] = {
        "profile": lambda result: result.info.profile_name,
        "suite": lambda result: result.info.suite,
        "active range": _share,
        "write cache": lambda result: _first_word(result.info.device.get("write_cache_in_run")),
        "fio": lambda result: result.info.fio_version,
        "I/O engine": lambda result: result.info.ioengine,
        "kind of target": lambda result: result.info.device.get("kind"),
        "kernel": lambda result: result.info.host.get("kernel"),
    }
    for condition, of in conditions.items():
        values = [of(result) for result in results]
        if len({str(value) for value in values}) > 1:
            yield f"{condition} differs ({_list_values(names, values)})"
    yield from _demand_differences(names, results)
    yield from _profile_differences(names, results)
    yield from _section_differences(names, results, "purge", describe_purge)
    yield from _section_differences(names, results, "preconditioning", describe_preconditioning)


def explain_nothing_common(results: Sequence[RunResult]) -> str:
    """Why runs without a common test have none, as far as that can be said; else empty."""
    kinds = {
        find_test(result.info.suite, test.name, result.info.profile) is None
        for result in results
        for test in result.tests
    }
    if len(kinds) < 2:
        return ""
    return (
        "; runs made of fio's files compare with each other, by workload, not with tkperf's tests"
    )


def find_gaps(names: Sequence[str], results: Sequence[RunResult]) -> Iterator[str]:
    """Tests, sections and cells that not all runs have, by the runs that have them.

    Of a test that is missing somewhere its sections are not told, too; of a section not its cells.
    """
    tests: Level = tuple(
        {(test.name,): f"test {test.title}" for test in result.tests} for result in results
    )
    sections: Level = tuple(
        {place: place[1] for place in _sections(result) if _all_have(tests, place[:1])}
        for result in results
    )
    cells: Level = tuple(
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
                only.setdefault(", ".join(owners), []).append(title)
    for owners_text, titles in only.items():
        yield f"only in {owners_text}: {_handful(titles, 'result')}"


def find_remarks(name: str, result: RunResult) -> Iterator[str]:
    """What a reader of this run's numbers must know, wherever they stand."""
    for notice in result.info.notices:
        yield f"{name}: {notice}"
    yield from find_cut_short(name, result)
    for warning in result.warnings[:MOST_LISTED]:
        yield f"{name}: {warning.text}"
    if len(result.warnings) > MOST_LISTED:
        more = format_count(len(result.warnings) - MOST_LISTED, "more warning")
        yield f"{name}: and {more} in its own report"
    sections = [section for test in result.tests for section in test.sections]
    cells = [cell for section in sections for cell in section.cells]
    limited = sum(cell.host_limited is True for cell in cells)
    if limited:
        of = f"{limited} of {format_count(len(cells), 'result')}"
        yield f"{name}: {of} {HOST_LIMITED}"
    disturbed = [cell for cell in cells if cell.disturbances]
    if disturbed:
        of = f"{len(disturbed)} of {format_count(len(cells), 'result')}"
        codes = find_codes(code for cell in disturbed for code in cell.disturbances or ())
        yield f"{name}: {of} {describe_disturbed(codes)}"
    for section in sections:
        if section.steady is False:
            yield f"{name}: {section.name} did not reach steady state"


def find_cut_short(name: str, result: RunResult) -> Iterator[str]:
    """Whether the run did not come to its end."""
    if result.status is RunStatus.COMPLETE:
        return
    yield f"{name}: the run is {result.status.value}"
    for test in result.tests:
        if test.progress is not None:
            yield f"{name}: {test.title}: {test.progress}"


def _list_values(names: Sequence[str], values: Iterable[object]) -> str:
    return ", ".join(
        f"{name}: {'not known' if value is None else value}"
        for name, value in zip(names, values, strict=True)
    )


def _handful(items: Sequence[str], more: str) -> str:
    text = ", ".join(items[:MOST_LISTED])
    left = len(items) - MOST_LISTED
    return f"{text} and {format_count(left, f'more {more}')}" if left > 0 else text


def describe_demand(test: TestResult) -> str | None:
    """Thread count and queue depth of what a test measured, or their ranges; None is not known."""
    if not test.demands:
        return None
    jobs, depths = zip(*test.demands, strict=True)
    return f"TC{_span(jobs)}/QD{_span(depths)}"


def _span(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low}-{high}"


def _share(result: RunResult) -> str | None:
    """Of the capacity: drives of different sizes are compared at the same share."""
    capacity = result.info.device.get("capacity_bytes")
    length_bytes = result.info.active_range_length_bytes
    if not isinstance(capacity, int) or not capacity or length_bytes is None:
        return None
    return f"{100 * length_bytes / capacity:.3g} %"


def _first_word(value: object) -> str | None:
    return str(value).split(",")[0] if value is not None else None


def _demand_differences(names: Sequence[str], results: Sequence[RunResult]) -> Iterator[str]:
    """Tests whose demand differs alike are said together."""
    differing: dict[tuple[str | None, ...], list[str]] = {}
    for test in _common_tests(results):
        demands = tuple(
            describe_demand(
                next(candidate for candidate in result.tests if candidate.name == test.name)
            )
            for result in results
        )
        if len(set(demands)) > 1:
            differing.setdefault(demands, []).append(test.title)
    for demands, tests in differing.items():
        yield (
            f"demand (thread count, queue depth) differs ({_list_values(names, demands)}) in "
            f"{_handful(tests, 'test')}"
        )


def _common_tests(results: Sequence[RunResult]) -> list[TestResult]:
    """The first run's tests that all runs have."""
    others = [{test.name for test in result.tests} for result in results]
    return [test for test in results[0].tests if all(test.name in names for names in others)]


def _profile_differences(names: Sequence[str], results: Sequence[RunResult]) -> Iterator[str]:
    """The profiles' numbers behind the tests that all runs have; profiles of one name may differ."""
    tests = [test.name for test in _common_tests(results)]
    numbers = [_numbers(result, tests) for result in results]
    differing = []
    for key in dict.fromkeys(key for of_run in numbers for key in of_run):
        values = [of_run.get(key) for of_run in numbers]
        if len(set(values)) > 1:
            differing.append(f"{key} ({_list_values(names, values)})")
    if differing:
        yield f"numbers of the profiles differ: {_handful(differing, 'number')}"


def _numbers(result: RunResult, tests: Sequence[str]) -> dict[str, str]:
    """The run's profile as far as these tests use it, as flat keys such as ``iops.step_s``.

    Demand, active range and write cache are compared as they were in the run.
    """
    lookups = (find_test(result.info.suite, name, result.info.profile) for name in tests)
    definitions = [test for test in lookups if test is not None]
    shared = dict.fromkeys(table.key for test in definitions for table in test.shared)
    numbers = {f"{key}.{name}": value for key in shared for name, value in _table(result, key)}
    for test in definitions:
        numbers |= {
            f"{table.key}.{name}": value
            for table in test.tables
            for name, value in _table(result, table.key)
            if name not in test.not_used
        }
    return numbers


def _table(result: RunResult, name: str) -> Iterator[tuple[str, str]]:
    for key, value in result.info.table(name).items():
        if key != "source":
            yield from _flat(key, value)


def _flat(key: str, value: object) -> Iterator[tuple[str, str]]:
    """Tables within a table, and lists of them counted from 1, key by key: ``phases.2.step_s``."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _flat(f"{key}.{name}", inner)
    elif isinstance(value, list | tuple) and any(isinstance(inner, dict) for inner in value):
        for number, inner in enumerate(value, start=1):
            yield from _flat(f"{key}.{number}", inner)
    else:
        yield key, _text(value)


def _text(value: object) -> str:
    """The same for 1 and 1.0, list and tuple."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list | tuple):
        return "/".join(_text(item) for item in value)
    return str(value)


def _section_differences(
    names: Sequence[str],
    results: Sequence[RunResult],
    condition: str,
    of: Callable[[RunResult, SectionResult], str | None],
) -> Iterator[str]:
    """A condition that each section has of its own; sections that differ alike are said together."""
    by_run = [_sections(result) for result in results]
    differing: dict[tuple[str | None, ...], list[str]] = {}
    for place in by_run[0]:
        if all(place in sections for sections in by_run):
            descriptions = tuple(
                of(result, sections[place])
                for result, sections in zip(results, by_run, strict=True)
            )
            if len(set(descriptions)) > 1:
                differing.setdefault(descriptions, []).append(place[1])
    for descriptions, alike in differing.items():
        listed = _handful(alike, "section")
        yield f"{condition} differs ({_list_values(names, descriptions)}) in {listed}"


def _sections(result: RunResult) -> dict[tuple[str, str], SectionResult]:
    return {
        (test.name, section.name): section for test in result.tests for section in test.sections
    }


def describe_purge(result: RunResult, section: SectionResult) -> str | None:
    """The method; None is not known."""
    if section.purge is None:
        return None if result.info.imported else "none"
    return section.purge.method


def describe_preconditioning(result: RunResult, section: SectionResult) -> str | None:
    """How much, in multiples of its range as specifications have it, and with what load.

    None is not known.
    """
    if section.filled_bytes is None:
        return None if result.info.imported else "none"
    length_bytes = result.info.preconditioned_length_bytes
    if result.info.fills_members:
        amount = f"{_text(result.info.table('preconditioning').get('passes'))} x each member"
    elif not length_bytes:
        amount = f"{section.filled_bytes} bytes"
    else:
        amount = f"{section.filled_bytes / length_bytes:.1f} x {result.info.preconditioned_range}"
    return amount if section.fill_workload is None else f"{amount}, {section.fill_workload}"


def _all_have(level: Level, place: Place) -> bool:
    return all(place in of_run for of_run in level)
