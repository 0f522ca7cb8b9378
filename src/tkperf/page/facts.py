"""Build texts about the facts of a run, for headers and lists. A fact is None if it is not known."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from tkperf.analysis.results import RunResult, SectionResult, TestResult
from tkperf.analysis.workload_axes import MIX
from tkperf.model.run_info import MANUFACTURER, NAND_TYPE, RunInfo
from tkperf.model.units import NOT_MEASURED, format_block_size_kib, format_capacity
from tkperf.page.page import Facts
from tkperf.page.words.uncertainty import describe_window

NOT_KNOWN_TEXT = "not known"


def format_moment(utc: str | None) -> str:
    """Return an ISO 8601 time in UTC as ``2026-11-20 23:41:40 UTC``."""
    if not utc:
        return NOT_KNOWN_TEXT
    # An imported run contains only the day and no time.
    return f"{utc[:10]} {utc[11:19]} UTC" if len(utc) > 10 else utc


def or_not_known(fact: str | None) -> str:
    """Return the fact. If it is None, return the words for a fact that is not known."""
    return NOT_KNOWN_TEXT if fact is None else fact


def format_written(written_bytes: int | None) -> str:
    return NOT_MEASURED if written_bytes is None else format_capacity(written_bytes)


def shorten(text: str, most: int) -> str:
    """Return the text, shortened to ``most`` characters. If possible, the text is cut between two words."""
    if len(text) <= most:
        return text
    between_words = textwrap.shorten(text, most, placeholder=" …")
    return f"{text[: most - 1]}…" if between_words == "…" else between_words


def describe_state(steady: bool | None) -> str:
    """Return, in words, whether a section reached steady state. ``steady`` is ``SectionResult.steady``."""
    if steady is None:
        return "not judged"
    return "reached" if steady else "NOT reached"


def describe_end(section: SectionResult) -> str:
    """Return the reason why a section ended. If the section has a rule but no verdict, also return the reason for the
    missing verdict.

    This text follows the words about steady state and does not repeat these words.
    """
    ended = re.sub("^(no )?steady state (?=in )", "", section.ended_because)
    verdict = section.verdict
    if verdict is None or verdict.judged:
        return ended + describe_window(section.disturbed_in_window)
    return f"{ended}; {verdict.reason}"


def bind_units(text: str) -> str:
    """Return the text with no-break spaces, so that each number and its unit stay on the same line.

    Use this form only in outputs from which users do not copy text.
    """
    return re.sub(r"(?<=\d) (?=%|[KMGT]iB\b|[mµ]?s\b)", "\N{NO-BREAK SPACE}", text)


SLOW_LINK = "its link runs below what it could do"

MaybeFacts = Sequence[tuple[str, str | None]]


def describe_device(facts: Mapping[str, object]) -> str:
    """Return the measured device in one line: model, serial number, path and capacity."""
    size = capacity(facts.get("capacity_bytes")) or "size not known"
    words = [facts.get("model") or facts.get("kind"), facts.get("serial"), facts.get("path"), size]
    return ", ".join(str(word) for word in words if word)


def keep_known(facts: Iterable[tuple[str, str | None]]) -> Facts:
    """Return only the facts that are known."""
    return tuple((name, fact) for name, fact in facts if fact is not None)


def name_unknown(facts: Iterable[tuple[str, str | None]]) -> tuple[str, ...]:
    return tuple(name for name, fact in facts if fact is None)


def word(value: object) -> str | None:
    """Return a recorded fact in words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return None if value is None or value in ("", NOT_KNOWN_TEXT) else str(value)


def capacity(value: object) -> str | None:
    return format_capacity(value) if isinstance(value, int | float) else None


def name_test_id(info: RunInfo) -> str:
    """Return the ID of the raw data: the name of the run file and the start time of the run."""
    begun = (info.started_utc or "").partition("+")[0].replace("-", "").replace(":", "")
    return "-".join(filter(None, (info.name, begun)))


def describe_cpu(host: Mapping[str, object]) -> str | None:
    model, threads = word(host.get("cpu_model")), host.get("cpu_threads")
    return f"{model}, {threads} threads" if model and threads else model


def describe_sector(device: Mapping[str, object]) -> str | None:
    sizes = {name: device.get(f"{name}_block_bytes") for name in ("logical", "physical")}
    known = [f"{size} bytes {name}" for name, size in sizes.items() if size is not None]
    return " / ".join(known) or None


def describe_load_generator(info: RunInfo) -> str | None:
    """Return the version of fio and the I/O engine, in words. The text also states whether the engine bypasses the page
    cache.

    For an imported run, return only the facts that the imported file contains.
    """
    if info.fio_version is None:
        return word(info.ioengine)  # The engine is simulated or not known.
    engine = word(info.ioengine)
    return f"{info.fio_version}, {engine}, direct I/O" if engine else info.fio_version


def describe_link(device: Mapping[str, object]) -> str | None:
    """Return the negotiated link. If the drive supports a faster link, also return the fastest link of the drive."""
    negotiated = word(device.get("link"))
    if device.get("link_downgraded"):
        fastest = or_not_known(word(device.get("link_fastest")))
        return f"{or_not_known(negotiated)}: DOWNGRADED, it could do {fastest}"
    return negotiated


def list_device_facts(device: Mapping[str, object]) -> tuple[tuple[str, str, str | None], ...]:
    """Return the facts about a device. Each fact consists of a label, the key among the recorded facts, and a text. The
    text is None if the fact is not known.
    """
    return (
        (MANUFACTURER, "vendor", word(device.get("vendor"))),
        ("Model", "model", word(device.get("model"))),
        ("Serial number", "serial", word(device.get("serial"))),
        ("World-wide name", "wwn", word(device.get("wwn"))),
        ("Firmware", "firmware", word(device.get("firmware"))),
        ("Capacity", "capacity_bytes", capacity(device.get("capacity_bytes"))),
        (NAND_TYPE, "", None),
        ("Sector", "logical_block_bytes", describe_sector(device)),
        ("Interface", "interface", word(device.get("interface"))),
        ("Link", "link", describe_link(device)),
        ("Rotational", "rotational", word(device.get("rotational"))),
        ("Discard (TRIM/UNMAP)", "discard", word(device.get("discard"))),
        ("Security state", "security", word(device.get("security"))),
        ("Kind", "kind", word(device.get("kind"))),
        ("Path", "path", word(device.get("path"))),
        ("Backed by", "backing", word(device.get("backing"))),
        ("Write cache (kernel)", "write_cache", word(device.get("write_cache"))),
        ("I/O scheduler", "scheduler", word(device.get("scheduler"))),
    )


def describe_data_pattern(info: RunInfo) -> str | None:
    return None if info.imported else "random, new for every write"


def describe_segments(info: RunInfo) -> str | None:
    """Return the number of segments of the active range, or a text that states that the active range is one piece."""
    count = info.table("active_range").get("segments")
    if isinstance(count, int) and count > 1:
        return f"{count:,}"
    return None if info.active_range_length_bytes is None else "none, one range"


def list_purges(result: RunResult, test: TestResult | None = None) -> str | None:
    """Return the purge methods of ``test``, or of all tests if ``test`` is None."""
    tests = result.tests if test is None else (test,)
    purges = {
        f"{section.purge.method} ({section.purge.note})" if section.purge.note else section.purge.method
        for each in tests
        for section in each.sections
        if section.purge is not None
    }
    if purges:
        return "; ".join(sorted(purges))
    info = result.info
    if info.imported:
        return None
    return "none: hard disks are not purged" if info.suite == "hdd" else "not purged"


def describe_run_demand(section: SectionResult) -> str | None:
    """Return the thread count and the queue depth of a section: ``TC 4 / QD 32``. If there are many pairs, return the
    first and the last pair in the order of the outstanding I/Os.
    """
    pairs = dict.fromkeys((load.jobs, load.io_depth) for load in section.loads)
    return describe_demands(tuple(pairs))


def describe_demands(pairs: Sequence[tuple[int, int]]) -> str | None:
    if not pairs:
        return None
    most = 3
    if len(pairs) > most:
        # The pairs are sorted by outstanding I/Os, as the points of a grid are.
        pairs = sorted(pairs, key=lambda pair: (pair[0] * pair[1], pair[0]))
    demands = [f"TC {jobs} / QD {depth}" for jobs, depth in pairs]
    return ", ".join(demands) if len(demands) <= most else f"{demands[0]} to {demands[-1]}, {len(demands)} of them"


def list_mixes(section: SectionResult) -> str | None:
    mixes = dict.fromkeys(MIX.text(load) for load in section.loads) if section.cells else ()
    return ", ".join(mixes) or None


def list_block_sizes(section: SectionResult) -> str | None:
    """Return the block sizes in KiB, in the order in which the run used them."""
    sizes = dict.fromkeys(
        load.blocks_name if load.block_mix else f"{format_block_size_kib(load.block_size_bytes)}"
        for load in (section.loads if section.cells else ())
    )
    return ", ".join(sizes) or None


_MINUS = re.compile(r"(?<![^\s(])-(?=\s?\d)|(?<=\(max )-(?= min\))")
_POWER = re.compile(r"(?<=\b10)\^(\d+)")
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def typeset(text: str) -> str:
    """Return a text in the form that readers see. Negative numbers have a minus sign, and the exponents of powers of
    ten are superscripts.

    Do not use this form in documents for programs, in Markdown, or in texts that users copy. These texts contain only
    characters that a user can type on a keyboard.
    """
    signed = _MINUS.sub("\N{MINUS SIGN}", text)
    return _POWER.sub(lambda power: power[1].translate(_RAISED), signed)
