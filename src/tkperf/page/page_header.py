"""Header of printed pages, as in the PTS User Guide's sample (section 10): its band, and the four blocks of a test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tkperf.analysis.axes import find_axes
from tkperf.analysis.results import RunResult, SectionResult, TestResult
from tkperf.model.units import format_duration
from tkperf.model.user_facts import (
    MANUFACTURER,
    MOTHERBOARD,
    NAND_TYPE,
    PLATFORM,
    SPONSOR,
    UserFacts,
)
from tkperf.page.explanation import describe_fill, describe_fill_load
from tkperf.page.facts import (
    NOT_KNOWN_TEXT,
    capacity,
    describe_cpu,
    describe_data_pattern,
    describe_link,
    describe_load_generator,
    describe_run_demand,
    describe_segments,
    format_moment,
    keep_known,
    list_block_sizes,
    list_mixes,
    list_purges,
    name_test_id,
    word,
)
from tkperf.page.naming import name_axes, name_figure
from tkperf.page.page import FactBlocks, Facts
from tkperf.page.words.courses import name_rounds

DEMAND = "TC / QD"
_ROUNDS = "Steady state"


def build_page_header(result: RunResult, user_facts: UserFacts, test: TestResult) -> FactBlocks:
    """Return the facts of a test's four blocks."""
    return (
        ("Test platform", _platform(result, user_facts)),
        ("Device under test", _device(result, user_facts, test)),
        ("Set-up parameters", _set_up(result, test)),
        ("Test parameters", _test_parameters(result, test)),
    )


def name_sheet(test: TestResult) -> str:
    """Return the name of a test's sheets: ``IOPS – block size × R/W mix matrix``."""
    measured = [section for section in test.sections if not section.plan.prepares]
    cells = [cell.workload for section in measured if not section.slices for cell in section.cells]
    axes = name_axes(axis.title for axis in find_axes(cells))
    if len(axes) > 1:
        return f"{test.title} – {' × '.join(axes)} matrix"
    loads = {name_figure(cell.workload) for section in measured for cell in section.cells}
    return f"{test.title} – {loads.pop()}" if len(loads) == 1 else test.title


def describe_measured_device(result: RunResult, user_facts: UserFacts) -> str:
    """Return vendor, model, serial number, firmware and capacity on one line."""
    return " · ".join(f"{name} {fact}" for name, fact in _device(result, user_facts)[:5])


def describe_run(result: RunResult, user_facts: UserFacts) -> str:
    """Return the line above the blocks: dates, specification, sponsor."""
    words = (
        f"Test run date {format_moment(started)}" if (started := result.info.started_utc) else None,
        f"report date {user_facts.report_date}" if user_facts.report_date else None,
        word(result.info.specification),
        f"sponsor {user_facts.facts[SPONSOR]}" if SPONSOR in user_facts.facts else None,
    )
    return " · ".join(filter(None, words))


def _platform(result: RunResult, user_facts: UserFacts) -> Facts:
    info, host, device = result.info, result.info.host, result.info.device
    return _keep_all(
        (
            (SPONSOR, user_facts.of(SPONSOR)),
            (PLATFORM, user_facts.of(PLATFORM)),
            (MOTHERBOARD, user_facts.of(MOTHERBOARD, word(host.get("motherboard")))),
            ("CPU", describe_cpu(host)),
            ("Memory", capacity(host.get("memory_bytes"))),
            ("Operating system", word(host.get("operating_system"))),
            ("Test software", word(info.software)),
            ("Load generator", describe_load_generator(info)),
            ("Test ID", name_test_id(info)),
            ("Host adapter", word(device.get("host_adapter"))),
            ("Link", describe_link(device)),
        )
    )


def _device(result: RunResult, user_facts: UserFacts, test: TestResult | None = None) -> Facts:
    device = result.info.device
    return _keep_all(
        (
            (MANUFACTURER, user_facts.of(MANUFACTURER, word(device.get("vendor")))),
            ("Model", word(device.get("model"))),
            ("Serial number", word(device.get("serial"))),
            ("Firmware", word(device.get("firmware"))),
            ("Capacity", capacity(device.get("capacity_bytes"))),
            ("Interface", word(device.get("interface"))),
            (NAND_TYPE, user_facts.of(NAND_TYPE)),
            ("Purge method", list_purges(result, test)),
            ("Write cache", word(device.get("write_cache_in_run"))),
        )
    )


def _keep_all(facts: Iterable[tuple[str, str | None]]) -> Facts:
    """Return all facts, as the guide's sample does: a row also for what is not known."""
    return tuple((name, NOT_KNOWN_TEXT if fact is None else fact) for name, fact in facts)


def _test_parameters(result: RunResult, test: TestResult) -> Facts:
    """Return data pattern and range again, as the guide's sample does, then the stimuli, also where there is no second."""
    parameters = build_parameters(test)
    second = any(name == "Stimulus 2" for name, _ in parameters)
    return (
        *_disclose_range(result),
        *parameters,
        *(() if second else (("Stimulus 2", "none"),)),
    )


def _disclose_range(result: RunResult) -> Facts:
    return _keep_all(
        (
            ("Data pattern", describe_data_pattern(result.info)),
            ("Active range", word(result.info.active_range_text)),
        )
    )


def _set_up(result: RunResult, test: TestResult) -> Facts:
    return (
        *_disclose_range(result),
        *_keep_all(
            (
                ("AR segments", describe_segments(result.info)),
                *build_preconditioning(result, test),
            )
        ),
    )


def build_preconditioning(result: RunResult, test: TestResult) -> Iterator[tuple[str, str | None]]:
    """Yield the facts of both preconditionings.

    The first (1) does not depend on the workload. The second (2) is the test's own load until steady state.
    """
    if result.info.imported:
        yield "Precondition 1", None
        return
    filled = [section for section in test.sections if section.fill_workload is not None]
    fills = dict.fromkeys(
        describe_fill(result.info, describe_fill_load(section.fill_workload), section.filled_bytes)
        for section in filled
        if section.fill_workload is not None
    )
    if fills:
        yield "Precondition 1", "; ".join(fills)
        yield "Duration", format_duration(sum(section.filled_s or 0 for section in filled))
    else:
        measured = any(section.rounds or section.slices for section in test.sections)
        yield "Precondition 1", "none" if measured else "not done yet"
    before = _find_dependent(test)
    if before is not None:
        rounds = "the stream" if before.slices else "the rounds"
        yield "Precondition 2", f"{rounds} of {before.name}"
        yield DEMAND, describe_run_demand(before)
        if before.verdict is not None:
            yield _ROUNDS, describe_header_rounds(before)


def _find_dependent(test: TestResult) -> SectionResult | None:
    """Return the section whose load, the test's own, brought the device into its measured state."""
    prepared = [section for section in test.sections if section.plan.prepares and section.slices]
    judged = [section for section in test.sections if section.verdict and not section.slices]
    return next(iter((*prepared, *judged)), None)


def describe_header_rounds(section: SectionResult) -> str | None:
    """Return the window as ``rounds 1–5``, with a note if it was not steady; None without a steady-state rule."""
    if section.verdict is None:
        return None
    if not section.verdict.judged:
        return "not judged"
    rounds = name_rounds(section.verdict.rounds)
    return rounds if section.verdict.reached else f"NOT reached, {rounds}"


def build_parameters(test: TestResult) -> Facts:
    """Return the first two stimuli; a header has no room for more."""
    sections = [section for section in test.sections if not section.plan.prepares]
    facts: list[tuple[str, str | None]] = []
    for number, section in enumerate(sections[:2], start=1):
        facts += [
            (f"Stimulus {number}", section.name),
            ("R/W mix", list_mixes(section)),
            ("Block size (KiB)", list_block_sizes(section)),
            (DEMAND, describe_run_demand(section)),
            *((("Time", format_duration(section.slices[-1].end_s)),) if section.slices else ()),
            (_ROUNDS, describe_header_rounds(section)),
        ]
    if len(sections) > 2:
        facts.append(("Stimuli in all", str(len(sections))))
    return keep_known(facts)
