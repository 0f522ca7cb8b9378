"""Full disclosure of what was tested, with what and on what (PTS User Guide, section 10)."""

from __future__ import annotations

from collections.abc import Sequence

from tkperf.analysis.host import UNKNOWN, host_findings, tuned_settings
from tkperf.analysis.results import RunResult
from tkperf.model.batch import find_place
from tkperf.model.run_info import RunInfo
from tkperf.model.units import capital, format_count
from tkperf.model.user_facts import (
    MOTHERBOARD,
    NO_USER_FACTS,
    NOTE,
    PLATFORM,
    SPONSOR,
    UserFacts,
)
from tkperf.page.facts import (
    NOT_KNOWN_TEXT,
    MaybeFacts,
    capacity,
    describe_cpu,
    describe_data_pattern,
    describe_load_generator,
    describe_segments,
    format_moment,
    keep_known,
    list_device_facts,
    list_purges,
    name_test_id,
    name_unknown,
    word,
)
from tkperf.page.figures.telemetry import describe_telemetry
from tkperf.page.page import FactBlocks
from tkperf.page.page_header import build_parameters, build_preconditioning
from tkperf.page.words.run import describe_place
from tkperf.procedures import SUITES, read_stored_profile

NOT_KNOWN_AT_ALL = "Not known"


def build_disclosure(result: RunResult, user_facts: UserFacts = NO_USER_FACTS) -> FactBlocks:
    """Return blocks of named facts; a block with one unnamed fact is a long text.

    One block at the end names all unknown facts.
    """
    device, host = result.info.device, result.info.host
    blocks: list[tuple[str, MaybeFacts]] = [
        ("Test run", _run(result, user_facts)),
        ("Test platform", _platform(result, user_facts)),
        ("Device under test", _device(result, user_facts)),
        ("Set-up", _set_up(result)),
        *(
            (
                f"Parameters: {test.title}",
                (*build_preconditioning(result, test), *build_parameters(test)),
            )
            for test in result.tests
        ),
    ]
    # For a file the audit knows the queue of the disk below it.
    audit = host_findings(host)
    audited = {finding.title.lower() for finding in audit if finding.level != UNKNOWN}
    names = [name for _, facts in blocks for name in name_unknown(facts)]
    names += [_capital(finding.title) for finding in audit if finding.level == UNKNOWN]
    names += [] if audit else ["Host audit"]
    unknown = {name.lower(): name for name in reversed(names) if name.lower() not in audited}
    return (
        *((title, keep_known(facts)) for title, facts in blocks if keep_known(facts)),
        *_host_audit(host),
        *_members(device),
        *_long_texts(result),
        *_unknown(tuple(reversed(unknown.values()))),
    )


def _unknown(names: Sequence[str]) -> FactBlocks:
    """Return one line for all unknown facts, instead of a row for each."""
    return ((NOT_KNOWN_AT_ALL, ((format_count(len(names), "fact"), ", ".join(names)),)),) * bool(
        names
    )


def _run(result: RunResult, user_facts: UserFacts) -> MaybeFacts:
    info = result.info
    missing = _not_in_profile(info)
    return (
        ("Test ID", name_test_id(info)),
        ("Test run date", _moment(info.started_utc)),
        ("Ended", _moment(result.ended_utc)),
        ("Report date", user_facts.report_date),
        (SPONSOR, user_facts.of(SPONSOR)),
        ("Specification", word(info.specification)),
        ("Profile", word(info.profile_name)),
        *((("PTS tests not in the profile", missing),) if missing else ()),
        *((("Operator's choice", ", ".join(info.choices)),) if info.choices else ()),
        *((("Altered", ", ".join(info.alterations)),) if info.alterations else ()),
        ("Test software", word(info.software)),
        ("Load generator", describe_load_generator(info)),
        *((("Clock of fio", str(info.host["fio_clock"])),) if info.host.get("fio_clock") else ()),
        *((("Batch", describe_place(place)),) if (place := find_place(info.host)) else ()),
        *(((NOTE, user_facts.of(NOTE)),) if user_facts.of(NOTE) else ()),
        *((("Given by the operator", ", ".join(user_facts.facts)),) if user_facts.facts else ()),
    )


def _not_in_profile(info: RunInfo) -> str | None:
    """Return the PTS tests that a PTS profile leaves out, as their numbers were not seen; None if it runs all."""
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


def _device(result: RunResult, user_facts: UserFacts) -> MaybeFacts:
    device = result.info.device
    return (
        *((label, user_facts.of(label, fact)) for label, _, fact in list_device_facts(device)),
        ("Volatile write cache during the run", word(device.get("write_cache_in_run"))),
        ("Other I/O during the run", word(device.get("other_io"))),
        ("Telemetry", word(describe_telemetry(device))),
    )


def _set_up(result: RunResult) -> MaybeFacts:
    info = result.info
    return (
        ("Purge method", list_purges(result)),
        ("Data pattern", describe_data_pattern(info)),
        ("Seed of random numbers", word(info.seed)),
        ("Active range", word(info.active_range_place)),
        ("AR segments", describe_segments(info)),
    )


def _moment(utc: str | None) -> str | None:
    text = format_moment(utc)
    return None if text == NOT_KNOWN_TEXT else text


def _host_audit(host: dict[str, object]) -> FactBlocks:
    """Return everything that the audit before the run found; empty without an audit."""
    findings = tuple(
        (_capital(finding.title), finding.text)
        for finding in host_findings(host)
        if finding.level != UNKNOWN
    )
    changes = tuple(("Set for the run", change) for change in tuned_settings(host))
    return (("Host before the run", (*changes, *findings)),) if findings or changes else ()


def _capital(title: str) -> str:
    """Return the title with a capital, like the other facts; a name of a program or interface keeps its form."""
    is_name = title.partition(" ")[0] in ("io_uring", "irqbalance", "smartd", "udisksd")
    return title if is_name else capital(title)


def _members(device: dict[str, object]) -> FactBlocks:
    """Return the drives of a RAID set, a line each."""
    members = device.get("members")
    if not isinstance(members, list):
        return ()
    lines = tuple(
        (f"Member {number}", ", ".join(_words(member)))
        for number, member in enumerate(members, start=1)
    )
    return (("RAID set", (("Set", word(device.get("raid")) or NOT_KNOWN_TEXT), *lines)),)


def _words(member: dict[str, object]) -> Sequence[str]:
    names = ("path", "model", "serial", "firmware", "interface", "link")
    size = word(member["size"]) if "size" in member else capacity(member.get("capacity_bytes"))
    words = [word(member.get(name)) for name in names if name in member]
    return [text or NOT_KNOWN_TEXT for text in (*words, size)]


def _long_texts(result: RunResult) -> FactBlocks:
    """Return the facts that need a block of their own; empty without any."""
    info = result.info
    texts = (
        ("Command line", info.command_text),
        ("Kernel command line", info.host.get("kernel_command_line")),
        ("Device description", info.device_description),
        ("Feature matrix", info.feature_matrix),
    )
    return tuple((title, (("", str(text)),)) for title, text in texts if text)
