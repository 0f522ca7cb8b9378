"""Export results in the XML format of TKperf 2.2, so that tkperf-cmp and scripts that read this format still work.

The root element has the name of the run. Every text is JSON. Rounds are counted from 0. Throughput is in KiB/s, and
latencies are in µs. The description of the format is based on the source code of TKperf 2.2 and on files that TKperf
wrote. Data that the format cannot contain are omitted: percentiles, samples, additional verdicts, and other block
sizes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from tkperf.analysis.results import CellResult, RunResult, SectionResult, TestResult
from tkperf.interop import (
    IOPS_MIXES,
    IOPS_SIZES_KIB,
    LATENCY_MIXES,
    LATENCY_SIZES_KIB,
    THROUGHPUT_SIZES_KIB,
    TKPERF_TABLES,
)
from tkperf.model.errors import UsageError
from tkperf.model.quantity import IOPS, LATENCY_MAX, LATENCY_MEAN, LATENCY_MIN, THROUGHPUT
from tkperf.model.steady_state import SteadyStateVerdict
from tkperf.model.units import KIB
from tkperf.page.words.run import find_notices
from tkperf.render.export_json import finite


@dataclass(frozen=True, slots=True, kw_only=True)
class TkperfXml:
    """A document in the format of TKperf. ``left_out`` names the parts of the run that the document does not
    contain.
    """

    text: str
    left_out: tuple[str, ...]


def render_tkperf_xml(result: RunResult) -> TkperfXml:
    """Return the run in the format of TKperf. In this format, the position of a value in TKperf's loops identifies the
    value.

    Raises:
        UsageError: the format of TKperf cannot contain the run.
    """
    if result.info.suite == "hdd":
        raise UsageError(
            "tkperf cannot write runs of hard disks in TKperf's XML, because this format is not documented. Use --csv "
            "or --json"
        )
    if result.tests and not any(test.name in TKPERF_TABLES for test in result.tests):
        raise UsageError("TKperf's XML cannot contain results that were imported from fio. Use --csv or --json")
    # The name of an XML element can contain fewer kinds of characters than the name of a run.
    root = ET.Element(re.sub(r"^(?![A-Za-z_])", "_", re.sub(r"[^A-Za-z0-9._-]", "_", result.info.name)))
    info, host = result.info, result.info.host
    _add(root, "testdate", (info.started_utc or "")[:10])
    described = info.device_description or str(info.device.get("model") or "not known")
    _add(root, "devinfo", "\n".join((*find_notices(result), described)))
    if info.feature_matrix:
        _add(root, "featmatrix", info.feature_matrix)
    _add(root, "kernel", host.get("kernel"))
    _add(root, "lsb", host.get("operating_system"))
    _add(root, "ioperfversion", info.software)
    _add(root, "cmdline", info.command_text)
    left_out, written = [], 0
    for test in result.tests:
        rounds, missing = _rounds(test)
        left_out += [f"{test.name}: {reason}" for reason in missing]
        if rounds is not None:
            _add_test(ET.SubElement(root, test.name), test, rounds, result)
            written += 1
    if not written:
        raise UsageError(f"nothing for TKperf's XML: {'; '.join(left_out) or 'no test was run'}")
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode") + "\n"
    return TkperfXml(text=text, left_out=tuple(left_out))


def _rounds(test: TestResult) -> tuple[object, tuple[str, ...]]:
    """Return ``roundmat`` of a test, and the names of the parts that are omitted. ``roundmat`` is None if the test has
    no such matrix.
    """
    if test.name not in TKPERF_TABLES:
        return None, ("no test of TKperf",)
    if not any(section.cells for section in test.sections):
        return None, ("no round was finished",)
    first = test.sections[0]
    more = tuple(f"{section.name} has no place there" for section in test.sections[1:])
    match test.name:
        case "iops":
            rounds = _by_round(first, IOPS_MIXES, IOPS_SIZES_KIB, lambda cell: cell.value(IOPS))
        case "lat":
            rounds = _by_round(first, LATENCY_MIXES, LATENCY_SIZES_KIB, _latencies)
        case "tp":
            return _throughput_rounds(test.sections)
        case "writesat":
            return [
                [slice_result.values.value(IOPS) for slice_result in first.slices],
                [_latencies(slice_result.values) for slice_result in first.slices],
            ], more
        case unknown:
            raise NotImplementedError(f"TKperf's format of test {unknown}")
    if rounds is None:
        return None, ("its cells are not those that TKperf measures",)
    return rounds, more


def _add_test(element: ET.Element, test: TestResult, rounds: object, result: RunResult) -> None:
    jobs, io_depth = test.demands[0] if len(test.demands) == 1 else (None, None)
    _add(element, "fioversion", result.info.fio_version)
    _add(element, "numjobs", jobs)
    _add(element, "iodepth", io_depth)
    _add(element, "runtime", _step_s(test.name, result))
    _add(element, "xargs", ["refill_buffers"])
    first = test.sections[0]
    _add(element, "roundmat", rounds)
    _add_steady_state(element, first.verdict, test.name, len(first.rounds or first.slices))


def _add_steady_state(element: ET.Element, verdict: SteadyStateVerdict | None, test: str, rounds: int) -> None:
    if verdict is None or test == "writesat":
        _add(element, "rndnr", rounds - 1)
        return
    # This factor converts MB/s (10^6 bytes/s) to KiB/s.
    scale = 1e6 / KIB if test == "tp" else 1.0
    fit = verdict.fit
    _add(element, "stdyrounds", [number - 1 for number in verdict.rounds])
    _add(element, "stdyvalues", [value * scale for value in verdict.values])
    # TKperf fits the line with rounds that are counted from 0.
    slope = [fit.slope * scale, (fit.intercept + fit.slope) * scale] if fit else []
    _add(element, "stdyslope", slope)
    _add(element, "stdyavg", verdict.average * scale)
    _add(element, "reachstdystate", verdict.reached)
    _add(element, "rndnr", rounds - 1)


def _by_round(
    section: SectionResult, mixes: Sequence[int], sizes_kib: Sequence[float], value: Callable[[CellResult], object]
) -> list[object] | None:
    """Return the values as lists [round][mix][block size] in the order of TKperf's loops. Return None if a cell is
    missing.
    """
    rounds: list[object] = []
    measured = {cell.workload.block_size_bytes for cell in section.cells}
    sizes_bytes = [round(size_kib * KIB) for size_kib in sizes_kib]
    if sizes_bytes[-1] not in measured:  # the drive has sectors of 4 KiB
        sizes_bytes.pop()
    for round_result in section.rounds:
        cells = {_place(cell): cell for cell in round_result.cells}
        if not round_result.complete:
            continue
        if any((mix, size) not in cells for mix in mixes for size in sizes_bytes):
            return None
        rounds.append([[value(cells[mix, size]) for size in sizes_bytes] for mix in mixes])
    return rounds


def _throughput_rounds(sections: Sequence[SectionResult]) -> tuple[list[object] | None, tuple[str, ...]]:
    """Return two results: the throughput, and the names of the parts that are omitted. The throughput is a list [block
    size][reads, writes] for the block sizes of TKperf. The list ends before the first missing block size.
    """
    by_size = {cell.workload.block_size_bytes: section for section in sections for cell in section.cells}
    rounds: list[object] = []
    for size_kib in THROUGHPUT_SIZES_KIB:
        section = by_size.pop(round(size_kib * KIB), None)
        if section is None:
            break
        rounds.append(_throughput(section))
    left_out = tuple(f"{section.name} has no place there" for section in by_size.values())
    return rounds or None, left_out


def _throughput(section: SectionResult) -> list[list[float | None]]:
    """Return the lists [reads, writes] of one block size. Each list contains a value for each round."""
    return [
        [
            None if (value := cell.value(THROUGHPUT)) is None else value * 1e6 / KIB
            for round_result in section.rounds
            if round_result.complete
            for cell in round_result.cells
            if cell.workload.read_percent == mix
        ]
        for mix in (100, 0)
    ]


def _latencies(cell: CellResult) -> list[float | None]:
    return [cell.value(latency) for latency in (LATENCY_MIN, LATENCY_MAX, LATENCY_MEAN)]


def _place(cell: CellResult) -> tuple[int, int]:
    return cell.workload.read_percent, cell.workload.block_size_bytes


def _step_s(test: str, result: RunResult) -> object:
    return result.info.table(TKPERF_TABLES[test]).get("slice_s" if test == "writesat" else "step_s")


def _add(parent: ET.Element, name: str, value: object) -> None:
    ET.SubElement(parent, name).text = json.dumps(finite(value), allow_nan=False)
