"""The reader of result XML files of TKperf 1.x to 2.2, which contain the four SSD tests (sources: TKperf 2.2's code,
and files from it).

The text of every element is JSON. TKperf counts rounds from 0, and tkperf counts them from 1. Throughput is in KiB/s. A
latency result contains [min, max, mean] in us and no count of I/Os, so the rates remain unknown. tkperf judges steady
state again according to its own rule. If TKperf's verdict differs, a warning reports this difference.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, TypeAlias, TypeVar
from xml.etree.ElementTree import Element, ParseError

import msgspec
from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring
from msgspec import Meta

from tkperf.interop import (
    IOPS_MIXES,
    IOPS_SIZES_KIB,
    LATENCY_MIXES,
    LATENCY_SIZES_KIB,
    THROUGHPUT_SIZES_KIB,
    TKPERF_PROFILE,
    TKPERF_TABLES,
)
from tkperf.interop.imported import (
    LARGEST_DEMAND,
    ImportedRun,
    describe_rounds,
    imported_test,
    one_line,
    readable,
    require_room,
)
from tkperf.model.decoding import decode_json
from tkperf.model.errors import InputFileError
from tkperf.model.measurement import NO_IO, IoStats, Measurement
from tkperf.model.phases import SectionOutcome
from tkperf.model.record import RunNote, StepKind, StepRecord, TestRecord, VerdictRecord
from tkperf.model.steady_state import judge
from tkperf.model.units import KIB, MIB, format_block_size, format_capacity, format_window
from tkperf.model.workload import Access, Workload
from tkperf.procedures import load_profile
from tkperf.procedures.building_blocks import mean_latency_us

# Limits of plausible values. No drive is faster, no response takes longer, and no step is longer.
LARGEST_IOPS, LARGEST_KIB_PER_S, LONGEST_US, LONGEST_STEP_S = 1e10, 1e12, 3.6e9, 1e7
# This limit is many times the size of a file with four tests and a day of write saturation. In memory, elements and
# values need up to 40 times their size in the file.
MOST_BYTES = 4 * MIB
# TKperf's default length of a step, used if the file does not contain the length.
DEFAULT_STEP_S = 60.0
# TKperf uses the writes with this block size to judge steady state.
TRACKED_BYTES = 4 * KIB
# A placeholder for a number of I/Os that is not known. It is so large that a mean keeps all its digits.
UNKNOWN_IOS = 1_000_000
# Beginnings of tkperf's own notices. tkperf's export puts them above the description of the device.
NOTICE = re.compile(r"(SIMULATED|FILE TARGET|NOT PURGED|ALTERED|QUICK PROFILE|IMPORTED)(:| from ) *\S.*")
NOTICE_LINES = 8

_Count: TypeAlias = Annotated[int, Meta(ge=1, le=LARGEST_DEMAND)]
_StepS: TypeAlias = Annotated[float, Meta(gt=0, le=LONGEST_STEP_S)]
_Iops: TypeAlias = Annotated[float, Meta(ge=0, le=LARGEST_IOPS)]
_KibPerS: TypeAlias = Annotated[float, Meta(ge=0, le=LARGEST_KIB_PER_S)]
_Us: TypeAlias = Annotated[float, Meta(ge=0, le=LONGEST_US)]
# The order is minimum, maximum, mean.
_Times: TypeAlias = tuple[_Us, _Us, _Us]
# The type of ``roundmat`` in each test. A round contains, for each mix, the values of each block size. The last size is
# missing on a 4Kn device.
_IopsRound: TypeAlias = Annotated[
    list[Annotated[list[_Iops], Meta(min_length=7, max_length=8)]], Meta(min_length=7, max_length=7)
]
_LatencyRound: TypeAlias = Annotated[
    list[Annotated[list[_Times], Meta(min_length=2, max_length=3)]], Meta(min_length=3, max_length=3)
]
# For each block size: the throughput of the reads in each round, and the throughput of the writes in each round, in
# KiB/s.
_Throughput: TypeAlias = Annotated[list[tuple[list[_KibPerS], list[_KibPerS]]], Meta(min_length=1, max_length=5)]
_Stream: TypeAlias = tuple[list[_Iops], list[_Times]]

T = TypeVar("T")


class _Element:
    """The XML element of a test. The children of the element contain JSON texts. Errors name the file, the element and
    the child.
    """

    def __init__(self, file: str, element: Element) -> None:
        self._file, self._element = file, element
        self.name = element.tag
        # None means that the file contains no such element.
        self.jobs = self.decode("numjobs", _Count | None)
        self.io_depth = self.decode("iodepth", _Count | None)
        self.runtime_s = self.decode("runtime", _StepS | None)
        self.step_s = self.runtime_s or DEFAULT_STEP_S

    def decode(self, child: str, kind: Any) -> Any:
        """Return the value of a child, converted to a type with limits."""
        try:
            return decode_json(self._element.findtext(child, "null"), kind)
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
            raise self.error(child, str(error)) from None

    def roundmat(self, kind: Any) -> Any:
        if self._element.find("roundmat") is None:
            raise self.error("roundmat", "it is missing")
        return self.decode("roundmat", kind)

    def text(self, child: str) -> str | None:
        """Return the text of a child, with unprintable characters replaced. None means that the child has no text."""
        try:
            value = json.loads(self._element.findtext(child, "null"))
        except (ValueError, RecursionError) as error:
            raise self.error(child, str(error)) from None
        return readable(value) if isinstance(value, str) and value else None

    def line(self, child: str) -> str | None:
        return one_line(self.text(child) or "") or None

    def error(self, child: str, reason: str) -> InputFileError:
        return InputFileError(f"{self._file}, {self.name}/{child}: {reason}")

    def step(self, section: str, number: int, workload: Workload, measurement: Measurement, **more: Any) -> StepRecord:
        given: dict[str, Any] = {"kind": StepKind.ROUND, "position": 0, **more}
        return StepRecord(
            section=section,
            number=number,
            workload=workload,
            planned_s=self.step_s,
            started_s=0.0,
            gap_s=None,
            measurement=measurement,
            job_file=f"; imported from {readable(self._file.rpartition('/')[2])}, no fio job was kept\n",
            **given,
        )

    def workload(self, access: Access, read_percent: int, block_size_kib: float) -> Workload:
        return Workload(
            access=access,
            read_percent=read_percent,
            block_size_bytes=round(block_size_kib * KIB),
            jobs=self.jobs or 1,
            io_depth=self.io_depth or 1,
        )

    def times(self, times: tuple[float, float, float], *, ios: int) -> IoStats:
        """Return the response times for ``ios`` I/Os. This number is a weight, not a number of measured I/Os."""
        low_us, high_us, mean_us = times
        if not low_us <= mean_us <= high_us:
            raise self.error("roundmat", f"{list(times)} is not minimum, maximum, mean")
        return IoStats(
            latency_ios=ios,
            latency_sum_ns=round(mean_us * 1000 * ios),
            latency_min_ns=round(low_us * 1000),
            latency_max_ns=round(high_us * 1000),
        )


def parse_tkperf_xml(text: bytes, *, file: str) -> ImportedRun:
    """Return the run that a result file contains.

    Raises:
        InputFileError: the text is not XML, is dangerous XML, or was not written by TKperf. The error names the file
            and the place.
    """
    if len(text) > MOST_BYTES:
        raise InputFileError(
            f"{file}: the file contains {format_capacity(len(text))} of XML, but a result of TKperf "
            f"has at most {format_capacity(MOST_BYTES)}"
        )
    try:
        root = fromstring(text, forbid_dtd=True)
    except DefusedXmlException as error:
        raise InputFileError(
            f"{file}: tkperf does not read this XML file, because it declares document types or entities: {error}"
        ) from None
    except (ParseError, ValueError, LookupError) as error:
        raise InputFileError(f"{file}: not XML: {error}") from None
    found = [element.tag for element in root if element.tag in TKPERF_TABLES]
    if not found:
        raise InputFileError(
            f"{file}: the file is not a result of TKperf, because it contains none of the elements "
            f"{', '.join(TKPERF_TABLES)}"
        )
    if len(set(found)) < len(found):
        raise InputFileError(f"{file}: the file contains the same test twice")
    elements = [_Element(file, element) for element in root if element.tag in TKPERF_TABLES]
    elements.sort(key=lambda element: list(TKPERF_TABLES).index(element.name))
    tests, warnings = [], []
    for element in elements:
        test = _PARSERS[element.name](element)
        require_room(test.steps, place=f"{file}, {element.name}/roundmat")
        tests.append(test)
        warnings += [*_missing(element), *_disagreements(element, test)]
    header = _Element(file, root)
    tool = header.line("ioperfversion") or "TKperf"
    if not tool.startswith(("tkperf ", "TKperf ")) and tool != "TKperf":  # TKperf writes only its name and version
        tool = f"TKperf {tool}"
    notices, description = _notices(header.text("devinfo"))
    versions = (element.line("fioversion") for element in elements)
    return ImportedRun(
        name=root.tag,
        date=header.line("testdate"),
        tool=tool,
        profile_name=TKPERF_PROFILE,
        profile=_profile(tool, elements),
        fio_version=next((version for version in versions if version), None),
        command_line=header.text("cmdline"),
        description=description,
        feature_matrix=header.text("featmatrix"),
        host={
            "kernel": header.line("kernel"),
            "operating_system": one_line((header.text("lsb") or "").removeprefix("Description:")) or None,
        },
        notices=notices,
        tests=tuple(tests),
        warnings=tuple(warnings),
    )


def _profile(tool: str, elements: Sequence[_Element]) -> dict[str, object]:
    """Return the numbers of a profile that the file contains. The result has the same tables as runs of tkperf."""
    profile: dict[str, object] = {"title": f"{tool} result XML"}
    for element in elements:
        demand = {"jobs": element.jobs, "io_depth": element.io_depth}
        is_complete = None not in demand.values()
        table: dict[str, object] = {}
        if element.runtime_s is not None:
            table["slice_s" if element.name == "writesat" else "step_s"] = element.runtime_s
        if is_complete and element.name == "lat":
            table |= demand
        elif is_complete:
            profile.setdefault("demand", demand)
        if table:
            profile[TKPERF_TABLES[element.name]] = table
    return profile


def _notices(devinfo: str | None) -> tuple[tuple[str, ...], str | None]:
    """Return the notices of a run that tkperf exported, and the description that follows them."""
    lines = (devinfo or "").split("\n")
    notices = [line for line in lines[:NOTICE_LINES] if NOTICE.fullmatch(line)]
    rest = [line for line in lines[:NOTICE_LINES] if not NOTICE.fullmatch(line)]
    return tuple(notices), "\n".join([*rest, *lines[NOTICE_LINES:]]) or None


def _iops(element: _Element) -> TestRecord:
    steps = [
        element.step("IOPS", number, workload, _rate(workload, iops, element.step_s), position=at)
        for number, mixes in enumerate(element.roundmat(list[_IopsRound]), start=1)
        for at, workload, iops in _cells(element, mixes, IOPS_MIXES, IOPS_SIZES_KIB)
    ]
    return _judged(element, steps, "RND 0/100 4k IOPS", "IOPS", lambda seen: seen.iops)


def _latency(element: _Element) -> TestRecord:
    steps = []
    for number, mixes in enumerate(element.roundmat(list[_LatencyRound]), start=1):
        for at, workload, triple in _cells(element, mixes, LATENCY_MIXES, LATENCY_SIZES_KIB):
            times = element.times(triple, ios=UNKNOWN_IOS)
            read, write = (times, NO_IO) if workload.read_percent else (NO_IO, times)
            measurement = Measurement(duration_s=element.step_s, read=read, write=write, rates_known=False)
            steps.append(element.step("Latency", number, workload, measurement, position=at))
    return _judged(element, steps, "RND 0/100 4k mean latency", "us", mean_latency_us)


def _throughput(element: _Element) -> TestRecord:
    tests = []
    for size_kib, both in zip(THROUGHPUT_SIZES_KIB, element.roundmat(_Throughput), strict=False):
        size = format_block_size(round(size_kib * KIB))
        if len(both[0]) != len(both[1]):
            raise element.error("roundmat", "not reads and writes of equal length")
        steps = []
        for number, rates in enumerate(zip(*both, strict=True), start=1):
            for at, (mix, kib_per_s) in enumerate(zip((100, 0), rates, strict=True)):
                workload = element.workload(Access.SEQUENTIAL, mix, size_kib)
                measurement = _rate(workload, kib_per_s / size_kib, element.step_s)
                steps.append(element.step(f"Throughput {size}", number, workload, measurement, position=at))
        tests.append(_judged(element, steps, f"SEQ 0/100 {size} MB/s", "MB/s", lambda seen: seen.megabytes_per_s))
    return imported_test(
        "tp",
        [step for test in tests for step in test.steps],
        [verdict for test in tests for verdict in test.verdicts],
        [outcome for test in tests for outcome in test.outcomes],
    )


def _write_saturation(element: _Element) -> TestRecord:
    rates, latencies = element.roundmat(_Stream)
    if len(rates) != len(latencies):
        raise element.error("roundmat", "not IOPS and latencies of equal length")
    if not rates:
        raise element.error("roundmat", "no rounds")
    workload = element.workload(Access.RANDOM, 0, 4)
    section, steps = "Write Saturation", []
    for number, (iops, triple) in enumerate(zip(rates, latencies, strict=True), start=1):
        rate = _rate(workload, iops, element.step_s)
        # In the mean of the whole stream, the weight of each slice is the number of its I/Os.
        times = element.times(triple, ios=max(1, rate.ios))
        seen = replace(rate, write=replace(times, ios=rate.ios, bytes=rate.bytes))
        steps.append(element.step(section, number, workload, seen, kind=StepKind.CONTINUOUS))
    ended = SectionOutcome(
        section=section, window=(), verdict=None, ended_because=f"{len(steps)} rounds in the imported file"
    )
    return imported_test("writesat", steps, (), (ended,))


_PARSERS = {"iops": _iops, "lat": _latency, "tp": _throughput, "writesat": _write_saturation}


def _cells(
    element: _Element, mixes: Sequence[Sequence[T]], shares: Sequence[int], sizes: Sequence[float]
) -> Iterator[tuple[int, Workload, T]]:
    """Yield the cells of a round. A cell consists of the position, the workload (mix and block size) and the value."""
    cells = [
        (element.workload(Access.RANDOM, share, size_kib), value)
        for share, row in zip(shares, mixes, strict=True)
        for size_kib, value in zip(sizes, row, strict=False)
    ]
    return ((at, *cell) for at, cell in enumerate(cells))


def _rate(workload: Workload, iops: float, duration_s: float) -> Measurement:
    """Return a measurement with exactly this rate. The number of I/Os is a whole number, and the duration is adjusted
    so that the rate is exact.
    """
    ios = round(iops * duration_s)
    stats = IoStats(ios=ios, bytes=ios * workload.block_size_bytes)
    read, write = (stats, NO_IO) if workload.read_percent else (NO_IO, stats)
    return Measurement(duration_s=ios / iops if ios else duration_s, read=read, write=write)


def _judged(
    element: _Element, steps: list[StepRecord], tracking: str, unit: str, value_of: Callable[[Measurement], float]
) -> TestRecord:
    """Return the test with tkperf's verdict after each round."""
    tracked = [
        step
        for step in steps
        if step.workload.read_percent == 0 and (element.name == "tp" or step.workload.block_size_bytes == TRACKED_BYTES)
    ]
    if not tracked:
        raise element.error("roundmat", "no rounds")
    section = tracked[0].section
    criteria = load_profile("tkperf-2.2").steady_state.criteria
    values = [value_of(step.measurement) for step in tracked]
    rounds = [step.number for step in tracked]
    verdicts = [
        judge(rounds[:last], values[:last], tracking=tracking, unit=unit, criteria=criteria)
        for last in range(1, len(rounds) + 1)
    ]
    ended = SectionOutcome(
        section=section,
        window=verdicts[-1].rounds,
        verdict=verdicts[-1],
        ended_because=describe_rounds(len(tracked), "file", verdicts[-1]),
    )
    records = [VerdictRecord(section=section, number=verdict.rounds[-1], verdict=verdict) for verdict in verdicts]
    return imported_test(element.name, steps, records, (ended,))


def _missing(element: _Element) -> Iterator[RunNote]:
    """Yield warnings about missing values that the records of a run need."""
    test, demand = element.name, {"numjobs": element.jobs, "iodepth": element.io_depth}
    lacks = [name for name, value in demand.items() if value is None]
    if lacks:
        text = f"{test}: the file has no {' and no '.join(lacks)}: 1 is taken"
        yield RunNote(code="demand-missing", test=test, text=text)
    if element.runtime_s is None and test != "lat":
        text = (
            f"{test}: the file does not say how long a step took: TKperf's {DEFAULT_STEP_S:g} s "
            "are taken; times follow from that"
        )
        yield RunNote(code="runtime-missing", test=test, text=text)


def _disagreements(element: _Element, test: TestRecord) -> Iterator[RunNote]:
    """Yield a warning if TKperf's verdict differs from tkperf's verdict. In the throughput test, TKperf's verdict is
    the verdict on the first block size.
    """
    ours, theirs = test.outcomes[0].verdict, element.decode("reachstdystate", Any)
    if ours is not None and isinstance(theirs, bool) and theirs is not ours.reached:
        reached = {True: "reached", False: "not reached"}
        text = (
            f"{test.name}: TKperf says that steady state was {reached[theirs]}; by the rule it was "
            f"{reached[ours.reached]} in {format_window(ours.rounds)} (counted from 1)"
        )
        yield RunNote(code="verdict-differs", test=test.name, text=text)
