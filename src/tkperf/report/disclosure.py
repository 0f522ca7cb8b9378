"""The disclosure header: what was tested, with what, on what (PTS.md 4)."""

from __future__ import annotations

from tkperf.analysis.results import RunResult
from tkperf.record import RunInfo
from tkperf.report.parts import Facts
from tkperf.report.wording import (
    NOT_KNOWN,
    format_fact,
    format_known_capacity,
    format_moment,
)


def build_disclosure(result: RunResult) -> tuple[tuple[str, Facts], ...]:
    """Blocks of named facts, a block with one unnamed fact being a long text."""
    info, device, host = result.info, result.info.device, result.info.host
    profile = info.profile
    purges = {
        f"{section.purge.method} ({section.purge.note})"
        if section.purge.note
        else section.purge.method
        for test in result.tests
        for section in test.sections
        if section.purge is not None
    }
    demand = _table(profile, "demand")
    wipc = _table(profile, "preconditioning")
    sector = f"{format_fact(device.get('logical_block_bytes'))} / "
    sector += f"{format_fact(device.get('physical_block_bytes'))} bytes"
    return (
        (
            "Test run",
            (
                ("Test run date", format_moment(info.started_utc)),
                ("Ended", format_moment(result.ended_utc)),
                ("Profile", f"{info.profile_name}: {format_fact(profile.get('title'))}"),
                ("Test software", f"tkperf {info.tkperf_version}"),
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
                ("Sector, logical / physical", sector),
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
                    f"{format_known_capacity(info.active_range_length_bytes)} from byte "
                    f"{format_fact(info.active_range_offset_bytes)}",
                ),
                ("Preconditioning (WIPC)", _preconditioning(info, wipc)),
                ("Threads / queue depth", _demand(demand)),
                *_latency_demand(info, profile),
            ),
        ),
        (
            "Test platform",
            (
                ("Host", format_fact(host.get("hostname"))),
                ("Motherboard", format_fact(host.get("motherboard"))),
                (
                    "CPU",
                    f"{format_fact(host.get('cpu_model'))}, {format_fact(host.get('cpu_threads'))} threads",
                ),
                ("Memory", format_known_capacity(host.get("memory_bytes"))),
                ("Operating system", format_fact(host.get("operating_system"))),
                ("Kernel", format_fact(host.get("kernel"))),
                ("Virtual machine", "yes" if host.get("virtual_machine") else NOT_KNOWN),
            ),
        ),
        *_members(device),
        *_long_texts(result),
    )


def build_page_header(result: RunResult) -> Facts:
    """What the PTS wants on every page, in the order of its sample reports (PTS.md, section 4)."""
    info, device, host = result.info, result.info.device, result.info.host
    demand = _table(info.profile, "demand")
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
        ("Specification", format_fact(info.profile.get("title"))),
        ("Test software", f"tkperf {info.tkperf_version}"),
        ("Serial number", format_fact(device.get("serial"))),
        ("Threads / queue depth", _demand(demand)),
        ("Load generator", _load_generator(info)),
        ("Firmware", format_fact(device.get("firmware"))),
        ("Active range", format_known_capacity(info.active_range_length_bytes)),
        ("CPU", format_fact(host.get("cpu_model"))),
        ("Capacity", format_known_capacity(device.get("capacity_bytes"))),
        ("Data pattern", NOT_KNOWN if info.imported else "random"),
        ("Memory", format_known_capacity(host.get("memory_bytes"))),
        ("Interface", _interface(device)),
        ("Purge method", ", ".join(purges) or _no_purge(info)),
        ("Operating system", format_fact(host.get("operating_system"))),
        ("Host adapter", format_fact(device.get("host_adapter"))),
        ("Write cache", _write_cache(device)),
    )


def _no_purge(info: RunInfo) -> str:
    if info.imported:
        return NOT_KNOWN
    return "none: hard disks are not purged" if info.suite == "hdd" else "not purged"


def _demand(table: dict[str, object]) -> str:
    return f"TC {table.get('jobs')} / QD {table.get('io_depth')}" if table else NOT_KNOWN


def _preconditioning(info: RunInfo, wipc: dict[str, object]) -> str:
    if info.imported:
        return NOT_KNOWN
    amount = (
        f"{format_fact(wipc.get('passes'))} x {{}}, SEQ "
        f"{_plain_number(wipc.get('block_size_kib'))} KiB writes"
    )
    match info.suite:
        case "hdd":
            return "none"
        case "raid":
            return amount.format("each member, all at once, before the set is made")
        case _:
            return amount.format("the active range")


def _latency_demand(info: RunInfo, profile: dict[str, object]) -> Facts:
    if info.suite == "hdd":
        return ()
    if info.imported:
        return (("Latency test", _demand(_table(profile, "latency"))),)
    return (("Latency test", "TC 1 / QD 1" if _latency_is_single(profile) else "see profile"),)


def _load_generator(info: RunInfo) -> str:
    """fio and how it issues I/O; of an imported run only what its file says."""
    if info.fio_version is None:
        return info.engine  # simulated, or not known
    known = info.engine != NOT_KNOWN
    return f"{info.fio_version}, {info.engine}, direct I/O" if known else info.fio_version


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
                format_fact(member.get(name))
                for name in ("path", "model", "serial", "firmware", "interface", "link")
            )
            + f", {format_known_capacity(member.get('capacity_bytes'))}",
        )
        for number, member in enumerate(members, start=1)
    )
    return (("RAID set", (("Set", format_fact(device.get("raid"))), *lines)),)


def _long_texts(result: RunResult) -> tuple[tuple[str, Facts], ...]:
    """Facts that need a block of their own; left out where there are none."""
    info = result.info
    texts = (
        ("Command line", " ".join(info.command_line)),
        ("Kernel command line", info.host.get("kernel_command_line")),
        ("Device description", info.device_description),
        ("Feature matrix", info.feature_matrix),
    )
    return tuple((title, (("", str(text)),)) for title, text in texts if text)


def _table(profile: dict[str, object], name: str) -> dict[str, object]:
    table = profile.get(name)
    return table if isinstance(table, dict) else {}


def _latency_is_single(profile: dict[str, object]) -> bool:
    table = _table(profile, "latency")
    return (table.get("jobs"), table.get("io_depth")) == (1, 1)


def _plain_number(value: object) -> str:
    """128 for 128.0."""
    return f"{value:g}" if isinstance(value, int | float) else NOT_KNOWN
