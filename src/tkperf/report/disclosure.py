"""The disclosure header: what was tested, with what, on what (PTS User Guide, section 10)."""

from __future__ import annotations

from collections.abc import Callable

from tkperf.analysis.host import host_findings, tuned_settings
from tkperf.analysis.results import RunResult, TestResult
from tkperf.report.page import Facts
from tkperf.report.preconditioning import describe_fill, describe_load
from tkperf.report.telemetry import describe_telemetry
from tkperf.report.wording import NOT_KNOWN, format_fact, format_known_capacity, format_moment
from tkperf.run_info import RunInfo
from tkperf.units import NOT_MEASURED

DEMAND = "Threads / queue depth"
PRECONDITIONING = "Preconditioning"

Describe = Callable[[RunInfo, TestResult], str | None]


def build_disclosure(result: RunResult) -> tuple[tuple[str, Facts], ...]:
    """Blocks of named facts, a block with one unnamed fact being a long text."""
    info, device, host = result.info, result.info.device, result.info.host
    purges = {
        f"{section.purge.method} ({section.purge.note})"
        if section.purge.note
        else section.purge.method
        for test in result.tests
        for section in test.sections
        if section.purge is not None
    }
    return (
        (
            "Test run",
            (
                ("Test run date", format_moment(info.started_utc)),
                ("Ended", format_moment(result.ended_utc)),
                ("Profile", f"{info.profile_name}: {format_fact(info.specification)}"),
                *((("Altered", ", ".join(info.alterations)),) if info.alterations else ()),
                ("Test software", info.software),
                ("Load generator", _load_generator(info)),
            ),
        ),
        (
            "Device under test",
            (
                ("Manufacturer", format_fact(device.get("vendor"))),
                ("Model", format_fact(device.get("model"))),
                ("Serial number", format_fact(device.get("serial"))),
                ("World-wide name", format_fact(device.get("wwn"))),
                ("Firmware", format_fact(device.get("firmware"))),
                ("Capacity", format_known_capacity(device.get("capacity_bytes"))),
                ("Sector, logical / physical", _sector(device)),
                ("Interface", format_fact(device.get("interface"))),
                ("Link", _link(device)),
                ("Host adapter", format_fact(device.get("host_adapter"))),
                ("NUMA node", format_fact(device.get("numa_node"))),
                ("Rotational", format_fact(device.get("rotational"))),
                ("Discard (TRIM/UNMAP)", format_fact(device.get("discard"))),
                ("Security state", format_fact(device.get("security"))),
                ("Kind", format_fact(device.get("kind"))),
                ("Path", format_fact(device.get("path"))),
                ("Backed by", format_fact(device.get("backing"))),
                ("Volatile write cache during the run", _write_cache(device)),
                ("Write cache (kernel)", format_fact(device.get("write_cache"))),
                ("I/O scheduler", format_fact(device.get("scheduler"))),
                ("Other I/O during the run", format_fact(device.get("other_io"))),
                ("Telemetry", describe_telemetry(device)),
                ("Purge method", ", ".join(sorted(purges)) or _no_purge(info)),
            ),
        ),
        (
            "Set-up",
            (
                (
                    "Data pattern",
                    NOT_KNOWN if info.imported else "random, new for every write",
                ),
                (
                    "Active range",
                    format_fact(info.active_range_place),
                ),
                ("Preconditioning (WIPC)", _by_test(result, _preconditioning)),
                (DEMAND, _by_test(result, describe_demand)),
            ),
        ),
        (
            "Test platform",
            (
                ("Host", format_fact(host.get("hostname"))),
                ("Motherboard", format_fact(host.get("motherboard"))),
                (
                    "CPU",
                    _cpu(host),
                ),
                ("Memory", format_known_capacity(host.get("memory_bytes"))),
                ("Operating system", format_fact(host.get("operating_system"))),
                ("Kernel", format_fact(host.get("kernel"))),
                ("Virtual machine", "yes" if host.get("virtual_machine") else NOT_KNOWN),
            ),
        ),
        *_host_audit(host),
        *_members(device),
        *_long_texts(result),
    )


def build_page_header(result: RunResult) -> Facts:
    """What the PTS wants on every page, in the order of the PTS User Guide's sample (section 10).

    ``build_test_header`` has what differs from test to test.
    """
    info, device, host = result.info, result.info.device, result.info.host
    purges = sorted(
        {
            section.purge.method
            for test in result.tests
            for section in test.sections
            if section.purge is not None
        }
    )
    return (
        ("Test run date", format_moment(info.started_utc)),
        ("Model", format_fact(device.get("model"))),
        ("Specification", format_fact(info.specification)),
        ("Test software", info.software),
        ("Serial number", format_fact(device.get("serial"))),
        (DEMAND, _in_header(result, describe_demand)),
        ("Load generator", _load_generator(info)),
        ("Firmware", format_fact(device.get("firmware"))),
        ("Active range", format_fact(info.active_range_text)),
        ("CPU", format_fact(host.get("cpu_model"))),
        ("Capacity", format_known_capacity(device.get("capacity_bytes"))),
        ("Data pattern", NOT_KNOWN if info.imported else "random"),
        ("Memory", format_known_capacity(host.get("memory_bytes"))),
        ("Interface", _interface(device)),
        ("Purge method", ", ".join(purges) or _no_purge(info)),
        ("Operating system", format_fact(host.get("operating_system"))),
        ("Host adapter", format_fact(device.get("host_adapter"))),
        ("Write cache", _write_cache(device)),
        (PRECONDITIONING, _in_header(result, _preconditioning)),
    )


def build_test_header(result: RunResult, test: TestResult) -> Facts:
    """What a test's pages say in the place of the same facts of the page header."""
    return (
        (DEMAND, describe_demand(result.info, test)),
        (PRECONDITIONING, _preconditioning(result.info, test) or NOT_MEASURED),
    )


def _no_purge(info: RunInfo) -> str:
    if info.imported:
        return NOT_KNOWN
    return "none: hard disks are not purged" if info.suite == "hdd" else "not purged"


def describe_demand(_info: RunInfo, test: TestResult) -> str:
    """Threads and queue depth of what a test measured, as far as that is known."""
    return ", ".join(f"TC {jobs} / QD {depth}" for jobs, depth in test.demands) or NOT_KNOWN


def _preconditioning(info: RunInfo, test: TestResult) -> str | None:
    """What was written before a test's rounds; None if it did not get so far."""
    if info.imported:
        return NOT_KNOWN
    fills = dict.fromkeys(
        describe_fill(info, describe_load(section.fill_workload), section.filled_bytes)
        for section in test.sections
        if section.filled_bytes and section.fill_workload
    )
    if not fills:
        return (
            "none" if any(section.rounds or section.slices for section in test.sections) else None
        )
    return "; ".join(fills)


def _by_test(result: RunResult, describe: Describe) -> str:
    """What may differ from test to test, with the tests that it is so for if it does."""
    titles_by_text: dict[str, list[str]] = {}
    for test in result.tests:
        text = describe(result.info, test)
        if text is not None:
            titles_by_text.setdefault(text, []).append(test.title)
    if len(titles_by_text) < 2:
        return "".join(titles_by_text) or NOT_MEASURED
    return "; ".join(f"{text} ({', '.join(titles)})" for text, titles in titles_by_text.items())


def _in_header(result: RunResult, describe: Describe) -> str:
    """The same where there is little room."""
    texts = {describe(result.info, test) for test in result.tests} - {None}
    return "differs by test" if len(texts) > 1 else _by_test(result, describe)


def _cpu(host: dict[str, object]) -> str:
    model, threads = host.get("cpu_model"), host.get("cpu_threads")
    return f"{format_fact(model)}, {threads} threads" if threads else format_fact(model)


def _host_audit(host: dict[str, object]) -> tuple[tuple[str, Facts], ...]:
    """Everything that the audit before the run found; left out where there was none."""
    findings = tuple((_capital(finding.title), finding.text) for finding in host_findings(host))
    changes = tuple(("Set for the run", change) for change in tuned_settings(host))
    return (("Host before the run", (*changes, *findings)),) if findings or changes else ()


def _capital(title: str) -> str:
    """As the other facts are written; a name of a program or interface keeps its form."""
    is_name = title.partition(" ")[0] in ("io_uring", "irqbalance", "smartd", "udisksd")
    return title if is_name else title[:1].upper() + title[1:]


def _sector(device: dict[str, object]) -> str:
    sizes = [device.get("logical_block_bytes"), device.get("physical_block_bytes")]
    if sizes == [None, None]:
        return NOT_KNOWN
    return " / ".join(NOT_KNOWN if size is None else f"{size} bytes" for size in sizes)


def _load_generator(info: RunInfo) -> str:
    """fio and how it issues I/O; of an imported run only what its file says."""
    if info.fio_version is None:
        return info.ioengine  # simulated, or not known
    engine_recorded = info.ioengine != NOT_KNOWN
    return (
        f"{info.fio_version}, {info.ioengine}, direct I/O" if engine_recorded else info.fio_version
    )


def _interface(device: dict[str, object]) -> str:
    """How the drive is attached, and how fast."""
    facts = (format_fact(device.get("interface")), _link(device))
    return ", ".join(fact for fact in facts if fact != NOT_KNOWN) or NOT_KNOWN


def _link(device: dict[str, object]) -> str:
    """What was negotiated, and what the drive could do if that is more."""
    negotiated = format_fact(device.get("link"))
    if device.get("link_downgraded"):
        return f"{negotiated}: DOWNGRADED, it could do {format_fact(device.get('link_fastest'))}"
    return negotiated


def _write_cache(device: dict[str, object]) -> str:
    return format_fact(device.get("write_cache_in_run"))


def _members(device: dict[str, object]) -> tuple[tuple[str, Facts], ...]:
    """The drives of a RAID set, a line each."""
    members = device.get("members")
    if not isinstance(members, list):
        return ()
    lines = tuple(
        (
            f"Member {number}",
            ", ".join(
                (
                    *(
                        format_fact(member.get(name))
                        for name in ("path", "model", "serial", "firmware", "interface", "link")
                        if name in member
                    ),
                    format_fact(member["size"])
                    if "size" in member
                    else format_known_capacity(member.get("capacity_bytes")),
                )
            ),
        )
        for number, member in enumerate(members, start=1)
    )
    return (("RAID set", (("Set", format_fact(device.get("raid"))), *lines)),)


def _long_texts(result: RunResult) -> tuple[tuple[str, Facts], ...]:
    """Facts that need a block of their own; left out where there are none."""
    info = result.info
    texts = (
        ("Command line", info.command_text),
        ("Kernel command line", info.host.get("kernel_command_line")),
        ("Device description", info.device_description),
        ("Feature matrix", info.feature_matrix),
    )
    return tuple((title, (("", str(text)),)) for title, text in texts if text)
