"""Results in the XML format of TKperf 2.2, so that tkperf-cmp and scripts around it go on working.

The root element is named after the run; every text is JSON; rounds count from 0; throughput is in
KiB/s, latencies in us (PTS.md, section 9, and files written by TKperf 2.2). What TKperf has no
place for (percentiles, samples, more than one verdict) is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from xml.etree import ElementTree as ET

from tkperf.analysis.results import CellResult, RunResult, SectionResult, TestResult
from tkperf.errors import UsageError
from tkperf.steady_state import SteadyStateVerdict
from tkperf.units import KIB

TESTS = ("iops", "lat", "tp", "writesat")


def render_tkperf_xml(result: RunResult) -> str:
    """The XML document.

    Raises:
        UsageError: TKperf's format has no place for the run.
    """
    if result.info.suite == "hdd":
        raise UsageError("TKperf's XML of hard disk runs is not documented: use --csv or --json")
    if result.tests and not any(test.name in TESTS for test in result.tests):
        raise UsageError("TKperf's XML has no place for results of fio: use --csv or --json")
    # Names of elements are narrower than names of runs.
    root = ET.Element(
        re.sub(r"^(?![A-Za-z_])", "_", re.sub(r"[^A-Za-z0-9._-]", "_", result.info.name))
    )
    info, host = result.info, result.info.host
    _add(root, "testdate", (info.started_utc or "")[:10])
    described = info.device_description or str(info.device.get("model") or "not known")
    _add(root, "devinfo", "\n".join((*info.notices, described)))
    if info.feature_matrix:
        _add(root, "featmatrix", info.feature_matrix)
    _add(root, "kernel", host.get("kernel"))
    _add(root, "lsb", host.get("operating_system"))
    _add(root, "ioperfversion", f"tkperf {info.tkperf_version}")
    _add(root, "cmdline", " ".join(info.command_line))
    for test in result.tests:
        if test.name in TESTS and any(section.cells for section in test.sections):
            _add_test(ET.SubElement(root, test.name), test, result)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


def _add_test(element: ET.Element, test: TestResult, result: RunResult) -> None:
    demand = result.info.profile.get("latency" if test.name == "lat" else "demand")
    demand = demand if isinstance(demand, dict) else {}
    _add(element, "fioversion", result.info.fio_version)
    _add(element, "numjobs", demand.get("jobs"))
    _add(element, "iodepth", demand.get("io_depth"))
    _add(element, "runtime", _step_s(test.name, result))
    _add(element, "xargs", ["refill_buffers"])
    first = test.sections[0]
    rounds: object
    match test.name:
        case "iops":
            rounds = _by_round(first, lambda cell: cell.iops)
        case "lat":
            rounds = _by_round(first, _latencies)
        case "tp":
            rounds = [_throughput(section) for section in test.sections]
        case _:
            rounds = [
                [each.values.iops for each in first.slices],
                [_latencies(each.values) for each in first.slices],
            ]
    _add(element, "roundmat", rounds)
    _add_steady_state(element, first.verdict, test.name, len(first.rounds or first.slices))


def _add_steady_state(
    element: ET.Element, verdict: SteadyStateVerdict | None, test: str, rounds: int
) -> None:
    if verdict is None or test == "writesat":
        _add(element, "rndnr", rounds - 1)
        return
    # MB/s of 10^6 bytes to KiB/s.
    scale = 1e6 / KIB if test == "tp" else 1.0
    fit = verdict.fit
    _add(element, "stdyrounds", [number - 1 for number in verdict.rounds])
    _add(element, "stdyvalues", [value * scale for value in verdict.values])
    # The line is fitted over rounds from 0 there.
    slope = [fit.slope * scale, (fit.intercept + fit.slope) * scale] if fit else []
    _add(element, "stdyslope", slope)
    _add(element, "stdyavg", verdict.average * scale)
    _add(element, "reachstdystate", verdict.reached)
    _add(element, "rndnr", rounds - 1)


def _by_round(section: SectionResult, value: Callable[[CellResult], object]) -> list[object]:
    """[round][mix][block size] in the order of the test."""
    return [
        [
            [value(cell) for cell in each.cells if cell.read_percent == mix]
            for mix in dict.fromkeys(cell.read_percent for cell in each.cells)
        ]
        for each in section.rounds
        if each.complete
    ]


def _throughput(section: SectionResult) -> list[list[float | None]]:
    """[reads, writes] of one block size, a value a round."""
    return [
        [
            None if cell.megabytes_per_s is None else cell.megabytes_per_s * 1e6 / KIB
            for each in section.rounds
            if each.complete
            for cell in each.cells
            if cell.read_percent == mix
        ]
        for mix in (100, 0)
    ]


def _latencies(cell: CellResult) -> list[float | None]:
    return [cell.latency_min_us, cell.latency_max_us, cell.latency_mean_us]


def _step_s(test: str, result: RunResult) -> object:
    tables = {"iops": "iops", "lat": "latency", "tp": "throughput", "writesat": "write_saturation"}
    table = result.info.profile.get(tables[test])
    if not isinstance(table, dict):
        return None
    return table.get("slice_s" if test == "writesat" else "step_s")


def _add(parent: ET.Element, name: str, value: object) -> None:
    ET.SubElement(parent, name).text = json.dumps(value)
