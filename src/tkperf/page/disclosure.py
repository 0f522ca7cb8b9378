"""Build the full disclosure of a run according to section 10 of the PTS User Guide.

The disclosure contains facts about the tested device, the test platform and the programs. This module also builds the
header of printed pages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from tkperf.analysis.host_conditions import UNKNOWN, host_findings, tuned_settings
from tkperf.analysis.results import CellResult, RunResult, SectionResult, TestResult
from tkperf.analysis.workload_axes import find_axes
from tkperf.model.batch_state import find_place
from tkperf.model.errors import ProfileError
from tkperf.model.measurement import TOO_FEW_IOS
from tkperf.model.quantity import PERCENTILES
from tkperf.model.record import is_purged
from tkperf.model.run_info import (
    FORM_FACTOR,
    MANUFACTURER,
    MOTHERBOARD,
    NAND_TYPE,
    NO_USER_FACTS,
    NOTE,
    PLATFORM,
    SPONSOR,
    RunInfo,
    UserFacts,
)
from tkperf.model.units import capital, format_block_size_kib, format_count, format_duration
from tkperf.model.workload import Workload
from tkperf.page.facts import (
    MaybeFacts,
    capacity,
    describe_cpu,
    describe_data_pattern,
    describe_load_generator,
    describe_run_demand,
    describe_segments,
    format_moment,
    keep_known,
    list_block_sizes,
    list_device_facts,
    list_mixes,
    list_purges,
    name_test_id,
    name_unknown,
    or_not_known,
    word,
)
from tkperf.page.figures.telemetry import describe_telemetry
from tkperf.page.naming import list_words, name_axes, name_figure
from tkperf.page.page import FactBlocks, Facts
from tkperf.page.tables.cell_tables import WIDE_RANGE, explain_intervals
from tkperf.page.words.run import describe_place
from tkperf.page.words.time_course import describe_timelines, name_rounds
from tkperf.procedures import SUITES, find_test, read_stored_profile
from tkperf.procedures.descriptor import Circumstances

NOT_KNOWN_AT_ALL = "Not known"
_DEMAND = "TC / QD"
_ROUNDS = "Steady state"
_CACHE = "Volatile write cache during the run"
_MOST_DEMANDS = 3


def build_disclosure(result: RunResult, user_facts: UserFacts = NO_USER_FACTS) -> FactBlocks:
    """Return blocks of named facts. If a block contains a single fact without a name, this fact is a long text.

    The last block names all facts that are not known.
    """
    device, host = result.info.device, result.info.host
    blocks = [
        *_list_facts(result, user_facts),
        *((f"Parameters: {test.title}", (*_preconditioning(result, test), *_stimuli(test))) for test in result.tests),
    ]
    # If the target is a file, the audit examined the queue of the disk that contains the file.
    audit = host_findings(host)
    audited = {finding.title.lower() for finding in audit if finding.level != UNKNOWN}
    names = [name for _, facts in blocks for name in name_unknown(facts)]
    names += [_capital(finding.title) for finding in audit if finding.level == UNKNOWN]
    names += [] if audit else ["Host audit"]
    unknown = {name.lower(): name for name in reversed(names) if name.lower() not in audited}
    return (
        *((title, known) for title, facts in blocks if (known := keep_known(facts))),
        *_host_audit(host),
        *_members(device),
        *_long_texts(result),
        *_unknown(tuple(reversed(unknown.values()))),
    )


# Facts in the header of a printed page, with the names that they have in the list. If the header uses another name,
# that name is added.
_HEADER = {
    "Test platform": (
        SPONSOR,
        PLATFORM,
        MOTHERBOARD,
        "CPU",
        "Memory",
        "Operating system",
        "Test software",
        "Load generator",
        "Test ID",
        "Host adapter",
        "Link",
    ),
    "Device under test": (
        MANUFACTURER,
        "Model",
        "Serial number",
        "Firmware",
        "Capacity",
        "Interface",
        NAND_TYPE,
        "Purge method",
        _CACHE,
    ),
}
_IN_HEADER = {_CACHE: "Write cache"}


def build_page_header(result: RunResult, user_facts: UserFacts, test: TestResult) -> FactBlocks:
    """Return the facts for the header of a test in four blocks, like the sample report in SNIA's guide. A fact that is
    not known has a row with the text "not known".
    """
    facts = {name: fact for _, block in _list_facts(result, user_facts, test) for name, fact in block}
    disclosed_range = (("Data pattern", facts["Data pattern"]), ("Active range", word(result.info.active_range_text)))
    segments = ("AR segments", facts["AR segments"])
    stimuli = _stimuli(test)
    second = any(name == "Stimulus 2" for name, _ in stimuli)
    of_test = {
        "Set-up parameters": (*disclosed_range, segments, *_preconditioning(result, test)),
        "Test parameters": (*disclosed_range, *stimuli, *(() if second else (("Stimulus 2", "none"),))),
    }
    chosen = {
        title: tuple((_IN_HEADER.get(name, name), facts[name]) for name in names) for title, names in _HEADER.items()
    }
    return tuple(
        (title, tuple((name, or_not_known(fact)) for name, fact in of_block))
        for title, of_block in (chosen | of_test).items()
    )


def _unknown(names: Sequence[str]) -> FactBlocks:
    """Return one line with the names of all facts that are not known. This line replaces a separate row for each of
    these facts.
    """
    return ((NOT_KNOWN_AT_ALL, ((format_count(len(names), "fact"), ", ".join(names)),)),) * bool(names)


def _list_facts(
    result: RunResult, user_facts: UserFacts, test: TestResult | None = None
) -> tuple[tuple[str, MaybeFacts], ...]:
    """Return all facts about a run in blocks. Each fact is listed once. The purges are those of ``test``, or those of
    all tests if ``test`` is None.
    """
    return (
        ("Test run", _run(result, user_facts)),
        ("Test platform", _platform(result, user_facts)),
        ("Device under test", _device(result.info.device, user_facts)),
        ("Set-up", _set_up(result, test)),
    )


def _run(result: RunResult, user_facts: UserFacts) -> MaybeFacts:
    info = result.info
    missing = _not_in_profile(info)
    return (
        ("Test ID", name_test_id(info)),
        ("Test run date", format_moment(info.started_utc) if info.started_utc else None),
        ("Ended", format_moment(result.ended_utc) if result.ended_utc else None),
        ("Report date", user_facts.report_date),
        (SPONSOR, user_facts.of(SPONSOR)),
        ("Specification", word(info.specification)),
        ("Profile", word(info.profile_name)),
        *((("PTS tests not in the profile", missing),) if missing else ()),
        *((("Operator's choice", ", ".join(info.choices)),) if info.choices else ()),
        *((("Altered", ", ".join(info.alterations)),) if info.alterations else ()),
        ("Test software", word(info.software)),
        ("Load generator", describe_load_generator(info)),
        *((("Program of fio", str(info.host["fio_program"])),) if info.host.get("fio_program") else ()),
        *((("Clock of fio", str(info.host["fio_clock"])),) if info.host.get("fio_clock") else ()),
        *((("Batch", describe_place(place)),) if (place := find_place(info.host)) else ()),
        *(((NOTE, user_facts.of(NOTE)),) if user_facts.of(NOTE) else ()),
        *((("Given by the operator", ", ".join(user_facts.facts)),) if user_facts.facts else ()),
    )


def _not_in_profile(info: RunInfo) -> str | None:
    """Return the tests of the PTS that a PTS profile omits, because the numbers of these tests are not known.

    Return None if the profile runs all tests.
    """
    if info.imported or not (info.specification or "").startswith("SNIA PTS"):
        return None
    profile = read_stored_profile(info.profile)
    missing = [
        test.title
        for test in SUITES.get(info.suite, {}).values()
        if test.source.startswith("PTS") and test.table is not None and not profile.has(test.table)
    ]
    return f"{', '.join(missing)}: not run, no source for their parameters" if missing else None


def _platform(result: RunResult, user_facts: UserFacts) -> MaybeFacts:
    host, device = result.info.host, result.info.device
    return (
        (PLATFORM, user_facts.of(PLATFORM)),
        ("Host", word(host.get("hostname"))),
        (MOTHERBOARD, user_facts.of(MOTHERBOARD, word(host.get("motherboard")))),
        ("CPU", describe_cpu(host)),
        ("Memory", capacity(host.get("memory_bytes"))),
        ("Operating system", word(host.get("operating_system"))),
        ("Kernel", word(host.get("kernel"))),
        ("Virtual machine", "yes" if host.get("virtual_machine") else None),
        ("Host adapter", word(device.get("host_adapter"))),
        ("NUMA node", word(device.get("numa_node"))),
    )


def _device(device: Mapping[str, object], user_facts: UserFacts) -> MaybeFacts:
    return (
        *((label, user_facts.of(label, fact)) for label, _, fact in list_device_facts(device)),
        *(((FORM_FACTOR, form),) if (form := user_facts.of(FORM_FACTOR)) else ()),
        (_CACHE, word(device.get("write_cache_in_run"))),
        ("Other I/O during the run", word(device.get("other_io"))),
        ("Telemetry", word(describe_telemetry(device))),
    )


def _set_up(result: RunResult, test: TestResult | None) -> MaybeFacts:
    info = result.info
    return (
        ("Purge method", list_purges(result, test)),
        ("Data pattern", describe_data_pattern(info)),
        ("Seed of random numbers", word(info.seed)),
        ("Active range", word(info.active_range_place)),
        ("AR segments", describe_segments(info)),
    )


def _host_audit(host: dict[str, object]) -> FactBlocks:
    """Return the settings that tkperf changed for the run, and the findings of the audit before the run. Findings whose
    state is not known are omitted. The result is empty if there are neither changes nor findings.
    """
    findings = tuple(
        (_capital(finding.title), finding.text) for finding in host_findings(host) if finding.level != UNKNOWN
    )
    changes = tuple(("Set for the run", change) for change in tuned_settings(host))
    return (("Host before the run", (*changes, *findings)),) if findings or changes else ()


def _capital(title: str) -> str:
    """Return the title with a capital letter, like the titles of all other facts. The name of a program or an interface
    is not changed.
    """
    is_name = title.partition(" ")[0] in ("io_uring", "irqbalance", "smartd", "udisksd")
    return title if is_name else capital(title)


def _members(device: dict[str, object]) -> FactBlocks:
    """Return the drives of a RAID set as a text with a line for each drive."""
    members = device.get("members")
    if not isinstance(members, list):
        return ()
    lines = tuple((f"Member {number}", ", ".join(_words(member))) for number, member in enumerate(members, start=1))
    return (("RAID set", (("Set", or_not_known(word(device.get("raid")))), *lines)),)


def _words(member: dict[str, object]) -> Sequence[str]:
    names = ("path", "model", "serial", "firmware", "interface", "link")
    size = word(member["size"]) if "size" in member else capacity(member.get("capacity_bytes"))
    words = [word(member.get(name)) for name in names if name in member]
    return [or_not_known(text) for text in (*words, size)]


def _long_texts(result: RunResult) -> FactBlocks:
    """Return the facts that require a separate block. The result is empty if there are no such facts."""
    info = result.info
    texts = (
        ("Command line", info.command_text),
        ("Kernel command line", info.host.get("kernel_command_line")),
        ("Device description", info.device_description),
        ("Feature matrix", info.feature_matrix),
    )
    return tuple((title, (("", str(text)),)) for title, text in texts if text)


# Section: printed pages.


def name_sheet(test: TestResult) -> str:
    """Return the name that the printed pages of a test show: ``IOPS – block size × R/W mix matrix``."""
    measured = [section for section in test.sections if not section.plan.prepares]
    cells = [cell.workload for section in measured if not section.slices for cell in section.cells]
    if any(load.together for load in cells):
        return f"{test.title} – loads at the same time"
    axes = name_axes(axis.title for axis in find_axes(cells))
    if len(axes) > 1:
        return f"{test.title} – {' × '.join(axes)} matrix"
    loads = {name_figure(cell.workload) for section in measured for cell in section.cells}
    return f"{test.title} – {loads.pop()}" if len(loads) == 1 else test.title


def describe_measured_device(result: RunResult, user_facts: UserFacts) -> str:
    """Return the vendor, the model, the serial number, the firmware and the capacity in one line."""
    facts = dict(_device(result.info.device, user_facts))
    names = _HEADER["Device under test"][:5]
    return " · ".join(f"{name} {or_not_known(facts[name])}" for name in names)


def describe_run(result: RunResult, user_facts: UserFacts) -> str:
    """Return the line above the blocks. This line contains the dates, the specification and the sponsor."""
    words = (
        f"Test run date {format_moment(started)}" if (started := result.info.started_utc) else None,
        f"report date {user_facts.report_date}" if user_facts.report_date else None,
        word(result.info.specification),
        f"sponsor {user_facts.facts[SPONSOR]}" if SPONSOR in user_facts.facts else None,
    )
    return " · ".join(filter(None, words))


def summarise_set_up(result: RunResult) -> str:
    """Return the demand, the active range, the preparation and the window of a run on one line.

    Facts that are not known are omitted. The text is empty if nothing was measured.
    """
    sections = [
        section for test in result.tests for section in test.sections if section.cells and not section.plan.prepares
    ]
    if not sections:
        return ""
    prepared = ", ".join(filter(None, (_summarise_purges(result), _summarise_fills(result))))
    return " · ".join(
        filter(
            None, (_summarise_demands(sections), _summarise_range(result.info), prepared, _summarise_window(sections))
        )
    )


def _summarise_demands(sections: Sequence[SectionResult]) -> str:
    """Return the demands of a run. If possible, these are the demands of the judged sections with a single demand. If
    there are no such sections, these are the demands of all sections with a single demand. If every section has several
    demands, these are the demands of all sections.
    """
    of_sections = [(section, {(load.jobs, load.io_depth) for load in section.loads}) for section in sections]
    single = [(section, pairs) for section, pairs in of_sections if len(pairs) == 1]
    judged = [(section, pairs) for section, pairs in single if section.verdict is not None]
    found = {pair for _, pairs in judged or single or of_sections for pair in pairs}
    words = [f"TC{jobs}/QD{depth}" for jobs, depth in sorted(found, key=lambda pair: (-pair[0] * pair[1], pair))]
    return f"Demand {list_words(words) if len(words) <= _MOST_DEMANDS else f'{words[-1]} to {words[0]}'}"


def _summarise_range(info: RunInfo) -> str | None:
    length_bytes, capacity_bytes = info.active_range_length_bytes, info.device.get("capacity_bytes")
    if length_bytes is None:
        return None
    if not isinstance(capacity_bytes, int) or not capacity_bytes:
        return f"active range {info.active_range_text}"
    return f"active range {100 * length_bytes / capacity_bytes:.3g} % ({info.active_range_text})"


def _summarise_purges(result: RunResult) -> str | None:
    """Return whether the device was purged before each test. Return None if this fact is not known, or if the device is
    a hard disk, because a hard disk is never purged.
    """
    if result.info.imported or result.info.suite == "hdd":
        return None
    return _name_exceptions("purged", result, lambda section: is_purged(section.purge))


def _summarise_fills(result: RunResult) -> str | None:
    info = result.info
    if info.imported:
        return None
    length_bytes = info.preconditioned_length_bytes
    filled = {
        f"{section.filled_bytes / length_bytes:.3g}"
        for test in result.tests
        for section in test.sections
        if section.filled_bytes and length_bytes
    }
    if info.fills_members:
        return f"members preconditioned {or_not_known(word(info.table('preconditioning').get('passes')))} ×"
    passes = f"{filled.pop()} × " if len(filled) == 1 else ""
    text = _name_exceptions("preconditioned", result, lambda section: section.fill_workload is not None)
    return text if text.startswith("not ") else f"{passes}{text}"


def _name_exceptions(done: str, result: RunResult, is_done: Callable[[SectionResult], bool]) -> str:
    """Return ``purged``, ``not purged``, or ``purged (except Write Saturation)``. The text takes all measured tests
    into account.
    """
    measured = [test for test in result.tests if any(section.cells for section in test.sections)]
    without = [test.title.split(" (")[0] for test in measured if not any(map(is_done, test.sections))]
    if len(without) == len(measured):
        return f"not {done}"
    if not without:
        return done
    return f"{done} (except {without[0] if len(without) == 1 else format_count(len(without), 'test')})"


def _summarise_window(sections: Sequence[SectionResult]) -> str | None:
    """Return the length of the steady-state window. The window of a stream is used only if no rounds were judged."""
    judged = [section for section in sections if section.verdict is not None and section.verdict.judged]
    of_rounds = [section for section in judged if not section.slices] or judged
    lengths = sorted({len(section.verdict.rounds) for section in of_rounds if section.verdict is not None})
    if not lengths:
        return None
    return f"steady-state window of {' or '.join(map(str, lengths))} rounds"


def _preconditioning(result: RunResult, test: TestResult) -> Iterator[tuple[str, str | None]]:
    """Yield the facts about both kinds of preconditioning.

    Preconditioning of the first kind (1) does not depend on the workload. In the second kind (2), the load of the test
    itself runs until steady state.
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
        yield _DEMAND, describe_run_demand(before)
        if before.verdict is not None:
            yield _ROUNDS, _describe_rounds(before)


def _find_dependent(test: TestResult) -> SectionResult | None:
    """Return the section in which the load of the test itself brought the device into the measured state."""
    prepared = [section for section in test.sections if section.plan.prepares and section.slices]
    judged = [section for section in test.sections if section.verdict and not section.slices]
    return next(iter((*prepared, *judged)), None)


def _describe_rounds(section: SectionResult) -> str | None:
    """Return the window as ``rounds 1–5``, with a note if the window was not steady. Return None if there is no rule
    for steady state.
    """
    if section.verdict is None:
        return None
    if not section.verdict.judged:
        return "not judged"
    rounds = name_rounds(section.verdict.rounds)
    return rounds if section.verdict.reached else f"NOT reached, {rounds}"


def _stimuli(test: TestResult) -> Facts:
    """Return only the first two stimuli, because the header has no space for more stimuli."""
    sections = [section for section in test.sections if not section.plan.prepares]
    facts: list[tuple[str, str | None]] = []
    for number, section in enumerate(sections[:2], start=1):
        facts += [
            (f"Stimulus {number}", section.name),
            ("R/W mix", list_mixes(section)),
            ("Block size (KiB)", list_block_sizes(section)),
            (_DEMAND, describe_run_demand(section)),
            *((("Time", format_duration(section.slices[-1].end_s)),) if section.slices else ()),
            (_ROUNDS, _describe_rounds(section)),
        ]
    if len(sections) > 2:
        facts.append(("Stimuli in all", str(len(sections))))
    return keep_known(facts)


UNITS = (
    "Latency is the time from submission to completion. Block sizes are binary (KiB), capacities and "
    f"rates decimal (1 MB = 1,000,000 bytes). A dash means not measured, or {TOO_FEW_IOS}."
)

OVER_TIME = (
    "tkperf finds phases, drops and spikes in the recorded series, in addition to the specification: a rate may have "
    "settled where the specification's steady-state rule is not met or has too few rounds. A settled rate stays "
    "within a tenth of its level, and changes by at most 3 % in the last quarter of the time. A drop falls at once to "
    "less than half of the level before. Its level is the median of the seconds that follow. Spikes are "
    "reported if there is less than 1 chance in 1,000 that their distances are equal by accident."
)


HEAT = (
    "A table of one quantity is a heat map: the greater a value, the darker its cell, on a logarithmic scale if "
    f"the greatest value is more than {WIDE_RANGE:g} times the least."
)


def explain(result: RunResult) -> tuple[str, ...]:
    """Return the explanations that apply to the sections of the run."""
    sections = [section for test in result.tests for section in test.sections]
    words = []
    if result.info.is_simulated:
        words.append("SIMULATED means that a model gave these figures; no device was measured.")
    if any(section.verdict for section in sections):
        words.append(
            "Steady state is judged on a window of consecutive rounds of the tracking variable. It is "
            "reached when the range of its values is at most 20 % of their average, and when the best "
            "linear fit through them rises or falls by at most 10 % of the average over the window "
            "(a profile may set other limits). Every figure in a table of cells is the mean "
            "over the rounds of that window; a maximum is the greatest of the window."
        )
    if any(section.areas for section in sections):
        words.append(
            "A hard disk is measured area by area from its start to its end, each area once; figures "
            "of a cell are means over the areas, and their spread is that of the disk. Hard disks have no "
            "steady state to wait for."
        )
    if any(section.slices for section in sections):
        words.append(
            (
                "Each slice of a stream was a fio run of its own. "
                if result.info.imported
                else "A stream is one unbroken load, recorded in slices. "
            )
            + "Figures of the whole stream count each I/O once; figures of a steady-state window are means over "
            "its slices."
        )
    if any(describe_timelines(section.timelines) for section in sections):
        words.append(OVER_TIME)
    if any(cell.workload.offered_iops is not None for section in sections for cell in section.cells):
        words.append(
            "At an offered rate, latency counts from submission. An I/O that is due while all TC × QD places "
            "are taken has to wait, and latency does not include that wait: once the device falls behind, latency "
            "levels off and the backlog grows. The backlog is the number of I/Os that were due but not done at the "
            "end of the level. The time behind, backlog / offered rate, is about how late the last I/O was."
        )
    if any(
        cell.value(percentile) is not None
        for section in sections
        for cell in _cells(section)
        for percentile in PERCENTILES
    ):
        words.append("Percentiles come from merged histograms and are exact to within 1/64.")
    return (*words, *explain_intervals(result), UNITS)


def _cells(section: SectionResult) -> Iterator[CellResult]:
    yield from section.cells
    yield from (cell for slice_result in section.slices for cell in slice_result.cells)
    yield from (cell for _, cell in section.cells_of_rounds())


def describe_fill(info: RunInfo, load: str, filled_bytes: int | None = None, *, passes: int | None = None) -> str:
    """Return the amount, the place and the load of the preconditioning in words.

    Args:
        load: the load in words, as ``describe_fill_load`` returns it.
        filled_bytes: the measured amount. Without this argument, the text contains the amount in the profile.
        passes: the requested number of passes, if it differs from the number in the profile.
    """
    times = or_not_known(word(passes or info.table("preconditioning").get("passes")))
    if info.fills_members:
        return f"{times} × each member, all at once, before the set is made, {load} each"
    length_bytes = info.preconditioned_length_bytes
    if filled_bytes is None:
        amount = f"{times} × {info.preconditioned_range}"
    elif not length_bytes:
        amount = or_not_known(capacity(filled_bytes))
    else:
        amount = f"{filled_bytes / length_bytes:.3g} × {info.preconditioned_range}"
    where = ", after the set is made" if info.suite == "raid" else ""
    return f"{amount}{where}, {load}"


def describe_fill_load(fill: Workload) -> str:
    """Return the load in words: ``SEQ 128 KiB writes, TC 4 / QD 32``."""
    size = format_block_size_kib(fill.block_size_bytes)
    return f"SEQ {size} KiB writes, TC {fill.jobs} / QD {fill.io_depth}"


def describe_procedure(info: RunInfo, test: str) -> str:
    """Return the steps of the test, with one step on each line. The text is empty if some numbers of the test are not
    known.
    """
    definition = find_test(info.suite, test, info.profile)
    if definition is None:
        return ""
    circumstances = Circumstances(
        purge=None if info.options.get("no_purge") else "Purge",
        describe_fill=lambda load, passes: describe_fill(info, load, passes=passes),
    )
    try:
        return "\n".join(definition.describe(read_stored_profile(info.profile), circumstances))
    except ProfileError:  # An imported run contains only some numbers of the profile.
        return ""
