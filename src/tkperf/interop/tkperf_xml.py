"""Result XML of TKperf 1.x to 2.2: the four SSD tests (sources: TKperf 2.2's code, and files from it).

Every text is JSON. Its rounds count from 0, tkperf's from 1. Throughput is in KiB/s. A latency
result has [min, max, mean] in us and no count of I/Os, so its rates stay unknown. Steady state is
judged anew by the rule; a warning reports a different verdict of TKperf.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring

from tkperf.interop.imported import (
    LARGEST_DEMAND,
    ImportedRun,
    describe_rounds,
    imported_test,
    one_line,
    readable,
    require_room,
)
from tkperf.model.errors import InputFileError
from tkperf.model.measurement import NO_IO, IoStats, Measurement
from tkperf.model.phases import SectionOutcome
from tkperf.model.record import RunWarning, StepKind, StepRecord, TestRecord, VerdictRecord
from tkperf.model.steady_state import SteadyStateVerdict, judge
from tkperf.model.tkperf_loops import (
    IOPS_MIXES,
    IOPS_SIZES_KIB,
    LATENCY_MIXES,
    LATENCY_SIZES_KIB,
    PROFILE_NAME,
    TABLES,
    THROUGHPUT_SIZES_KIB,
)
from tkperf.model.units import KIB, format_block_size
from tkperf.model.workload import Access, Workload
from tkperf.procedures import load_profile
from tkperf.procedures.building_blocks import mean_latency_us

# Limit of the length of a step.
LONGEST_STEP_S = 1e7
# TKperf's default, for a file without the length of a step.
DEFAULT_STEP_S = 60.0


@dataclass(frozen=True, slots=True)
class Source:
    """An element with JSON texts in its children; errors name file and element."""

    file: str
    element: Element
    _values: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def value(self, name: str) -> Any:
        """Return the value of a child, decoded once: every cell of every round needs some."""
        if name not in self._values:
            self._values[name] = self._decoded(name)
        return self._values[name]

    def _decoded(self, name: str) -> Any:
        text = self.element.findtext(name)
        if text is None:
            return None
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputFileError(
                f"{self.file}, {self.element.tag}/{name}: not JSON: {error}"
            ) from None

    def text(self, name: str) -> str | None:
        value = self.value(name)
        return readable(value) if isinstance(value, str) and value else None

    def count(self, name: str) -> int | None:
        """Return threads or queue depth; None if the file has none."""
        value = self.value(name)
        if value is None:
            return None
        if not _is_number(value) or value != int(value) or not 1 <= value <= LARGEST_DEMAND:
            raise InputFileError(
                f"{self.file}, {self.element.tag}/{name}: {_shown_json(value)} is not a number; it must "
                f"be 1 or more, up to {LARGEST_DEMAND:,}"
            )
        return int(value)

    @property
    def runtime_s(self) -> float | None:
        """Length of a step in s; None if the file has none."""
        value = self.value("runtime")
        if value is None:
            return None
        if not _is_number(value) or not 0 < value <= LONGEST_STEP_S:
            raise InputFileError(
                f"{self.file}, {self.element.tag}/runtime: {_shown_json(value)} is not a length of time "
                f"in seconds, up to {LONGEST_STEP_S:,.0f}"
            )
        return float(value)

    def matrix(self, depth: int, largest: float) -> Any:
        """Return ``roundmat``: lists nested ``depth`` times, with numbers up to ``largest``."""
        return self.checked(self.value("roundmat"), depth, largest)

    def checked(self, matrix: object, depth: int, largest: float) -> Any:
        """Check such lists, or a part of them."""
        if not _is_matrix(matrix, depth):
            raise InputFileError(
                f"{self.file}, {self.element.tag}/roundmat: not the lists of numbers that TKperf "
                "writes"
            )
        too_large = _find_larger(matrix, largest)
        if too_large is not None:
            raise InputFileError(
                f"{self.file}, {self.element.tag}/roundmat: {_shown_json(too_large)} is more than any "
                f"drive does (up to {largest:g})"
            )
        return matrix

    @property
    def step_s(self) -> float:
        runtime_s = self.runtime_s
        return DEFAULT_STEP_S if runtime_s is None else runtime_s

    def workload(self, access: Access, read_percent: int, block_size_kib: float) -> Workload:
        try:
            return Workload(
                access=access,
                read_percent=read_percent,
                block_size_bytes=round(block_size_kib * KIB),
                jobs=self.count("numjobs") or 1,
                io_depth=self.count("iodepth") or 1,
            )
        except ValueError as error:
            raise InputFileError(f"{self.file}, {self.element.tag}: {error}") from None


def _is_matrix(value: object, depth: int) -> bool:
    if depth == 0:
        return _is_number(value) and value >= 0
    return isinstance(value, list) and all(_is_matrix(row, depth - 1) for row in value)


def _is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a finite number; Python's JSON may hold NaN and infinity."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) or math.isfinite(value)


def _find_larger(value: Any, largest: float) -> float | None:
    """Return the first number in nested lists above ``largest``."""
    if not isinstance(value, list):
        return value if value > largest else None
    return next(
        (larger for item in value if (larger := _find_larger(item, largest)) is not None), None
    )


def _shown_json(value: object) -> str:
    """Return a value from the file for an error message, shortened."""
    return readable(json.dumps(value))[:40]


# TKperf tracks this read percentage and block size.
TRACKED = (0, 4 * KIB)
# Placeholder for an unknown number of I/Os, so that a mean keeps all its digits.
UNKNOWN_IOS = 1_000_000
# Limits: no drive is faster, no response slower.
LARGEST_IOPS, LARGEST_KIB_PER_S, LONGEST_US = 1e10, 1e12, 3.6e9
# Beginnings of tkperf's own notices: its export puts them above the device's description.
NOTICE = re.compile(
    r"(SIMULATED|FILE TARGET|NOT PURGED|ALTERED|QUICK PROFILE|IMPORTED)(:| from ) *\S.*"
)
NOTICE_LINES = 8


def parse_tkperf_xml(text: bytes, *, file: str) -> ImportedRun:
    """Decode a result file.

    Raises:
        InputFileError: it is no XML, dangerous XML, or not from TKperf; names file and place.
    """
    try:
        root = fromstring(text, forbid_dtd=True)
    except DefusedXmlException as error:
        raise InputFileError(
            f"{file}: refused, it declares document types or entities: {error}"
        ) from None
    except (ParseError, ValueError, LookupError) as error:
        raise InputFileError(f"{file}: not XML: {error}") from None
    sources = {element.tag: Source(file, element) for element in root if element.tag in TABLES}
    if not sources:
        raise InputFileError(f"{file}: no result of TKperf: it has none of {', '.join(TABLES)}")
    if len(sources) < sum(element.tag in TABLES for element in root):
        raise InputFileError(f"{file}: a test is in it twice")
    tests, warnings = [], []
    for name in (tag for tag in TABLES if tag in sources):
        test = _PARSERS[name](sources[name])
        require_room(test.steps, place=f"{file}, {name}/roundmat")
        tests.append(test)
        warnings += [*_missing(sources[name]), *_disagreements(sources[name], test)]
    header = Source(file, root)
    tool = _tool(_line(header.text("ioperfversion")))
    versions = (_line(source.text("fioversion")) for source in sources.values())
    notices, description = _notices(header.text("devinfo"))
    return ImportedRun(
        name=root.tag,
        date=_line(header.text("testdate")),
        written_s=None,
        tool=tool,
        profile_name=PROFILE_NAME,
        profile=_profile(tool, sources),
        fio_version=next((version for version in versions if version), None),
        command_line=header.text("cmdline"),
        description=description,
        feature_matrix=header.text("featmatrix"),
        host={
            "kernel": _line(header.text("kernel")),
            "operating_system": _line((header.text("lsb") or "").removeprefix("Description:")),
        },
        notices=notices,
        tests=tuple(tests),
        warnings=tuple(warnings),
    )


def _tool(version: str | None) -> str:
    """Return the program that wrote the file; tkperf's exports name it, TKperf gives only its version."""
    if version is None:
        return "TKperf"
    return version if version.startswith(("tkperf ", "TKperf ")) else f"TKperf {version}"


def _profile(tool: str, sources: Mapping[str, Source]) -> dict[str, object]:
    """Return the file's numbers of a profile, in the tables that hold them in tkperf's runs."""
    profile: dict[str, object] = {"title": f"{tool} result XML"}
    for name, source in sources.items():
        demand = {"jobs": source.count("numjobs"), "io_depth": source.count("iodepth")}
        is_complete = None not in demand.values()
        table: dict[str, object] = {}
        if source.runtime_s is not None:
            table["slice_s" if name == "writesat" else "step_s"] = source.runtime_s
        if is_complete and name == "lat":
            table |= demand
        elif is_complete:
            profile.setdefault("demand", demand)
        if table:
            profile[TABLES[name]] = table
    return profile


def _notices(devinfo: str | None) -> tuple[tuple[str, ...], str | None]:
    """Return the notices of a run that tkperf exported, and the description below them."""
    lines = (devinfo or "").split("\n")
    notices = [line for line in lines[:NOTICE_LINES] if NOTICE.fullmatch(line)]
    rest = [line for line in lines[:NOTICE_LINES] if not NOTICE.fullmatch(line)]
    return tuple(notices), "\n".join([*rest, *lines[NOTICE_LINES:]]) or None


def _iops(source: Source) -> TestRecord:
    steps = []
    for number, mixes in enumerate(source.matrix(3, LARGEST_IOPS), start=1):
        cells = _named(source, mixes, IOPS_MIXES, IOPS_SIZES_KIB)
        for position, (mix, size_kib, iops) in enumerate(cells):
            workload = source.workload(Access.RANDOM, mix, size_kib)
            measurement = _rate(workload, iops, source.step_s)
            steps.append(_step("IOPS", number, position, workload, source, measurement))
    return _judged(source, "iops", "IOPS", steps, "RND 0/100 4k IOPS", "IOPS")


def _latency(source: Source) -> TestRecord:
    steps = []
    for number, mixes in enumerate(source.matrix(4, LONGEST_US), start=1):
        cells = _named(source, mixes, LATENCY_MIXES, LATENCY_SIZES_KIB)
        for position, (mix, size_kib, triple) in enumerate(cells):
            workload = source.workload(Access.RANDOM, mix, size_kib)
            times = _times(source, triple, ios=UNKNOWN_IOS)
            read, write = (times, NO_IO) if mix else (NO_IO, times)
            measurement = Measurement(
                duration_s=source.step_s, read=read, write=write, rates_known=False
            )
            steps.append(_step("Latency", number, position, workload, source, measurement))
    return _judged(source, "lat", "Latency", steps, "RND 0/100 4k mean latency", "us")


def _throughput(source: Source) -> TestRecord:
    tests = []
    matrix = source.matrix(3, LARGEST_KIB_PER_S)
    if not 1 <= len(matrix) <= len(THROUGHPUT_SIZES_KIB):
        raise InputFileError(
            f"{source.file}, tp/roundmat: {len(matrix)} block sizes, TKperf has up to "
            f"{len(THROUGHPUT_SIZES_KIB)}"
        )
    for size_kib, both in zip(THROUGHPUT_SIZES_KIB, matrix, strict=False):
        if len(both) != 2 or len(both[0]) != len(both[1]):
            raise InputFileError(
                f"{source.file}, tp/roundmat: not reads and writes of equal length"
            )
        section = f"Throughput {format_block_size(round(size_kib * KIB))}"
        steps = []
        for number, rates in enumerate(zip(*both, strict=True), start=1):
            for position, (mix, kib_per_s) in enumerate(zip((100, 0), rates, strict=True)):
                workload = source.workload(Access.SEQUENTIAL, mix, size_kib)
                iops = kib_per_s / size_kib
                measurement = _rate(workload, iops, source.step_s)
                steps.append(_step(section, number, position, workload, source, measurement))
        tracking = f"SEQ 0/100 {format_block_size(round(size_kib * KIB))} MB/s"
        tests.append(_judged(source, "tp", section, steps, tracking, "MB/s"))
    return _merged(tests)


def _write_saturation(source: Source) -> TestRecord:
    matrix = source.value("roundmat")
    if not isinstance(matrix, list) or len(matrix) != 2:
        raise InputFileError(f"{source.file}, writesat/roundmat: not IOPS and latencies")
    rates = source.checked(matrix[0], 1, LARGEST_IOPS)
    latencies = source.checked(matrix[1], 2, LONGEST_US)
    if len(rates) != len(latencies):
        raise InputFileError(
            f"{source.file}, writesat/roundmat: not IOPS and latencies of equal length"
        )
    if not rates:
        raise InputFileError(f"{source.file}, writesat: no rounds")
    workload = source.workload(Access.RANDOM, 0, 4)
    steps = []
    for number, (iops, triple) in enumerate(zip(rates, latencies, strict=True), start=1):
        measurement = _rate(workload, iops, source.step_s)
        # The weight of a slice in the mean of the whole stream is its I/Os.
        times = _times(source, triple, ios=max(1, measurement.ios))
        measurement = replace(
            measurement, write=replace(times, ios=measurement.ios, bytes=measurement.bytes)
        )
        steps.append(
            _step(
                "Write Saturation",
                number,
                0,
                workload,
                source,
                measurement,
                kind=StepKind.CONTINUOUS,
            )
        )
    ended = SectionOutcome(
        section="Write Saturation",
        window=(),
        verdict=None,
        ended_because=f"{len(steps)} rounds in the imported file",
    )
    return imported_test("writesat", steps, (), (ended,))


_PARSERS = {"iops": _iops, "lat": _latency, "tp": _throughput, "writesat": _write_saturation}


def _named(
    source: Source, mixes: Sequence[Any], names: Sequence[int], sizes_kib: Sequence[float]
) -> Iterator[tuple[int, float, Any]]:
    """Yield cells by mix and block size; a 4Kn device lacks the last size."""
    if len(mixes) != len(names) or any(
        len(row) not in (len(sizes_kib), len(sizes_kib) - 1) for row in mixes
    ):
        raise InputFileError(
            f"{source.file}, {source.element.tag}/roundmat: a round is not {len(names)} mixes of "
            f"{len(sizes_kib)} block sizes"
        )
    for mix, row in zip(names, mixes, strict=True):
        for size_kib, value in zip(sizes_kib, row, strict=False):
            yield mix, size_kib, value


def _rate(workload: Workload, iops: float, duration_s: float) -> Measurement:
    """Return a measurement of exactly this rate: whole I/Os, and a time that makes the rate exact."""
    ios = round(iops * duration_s)
    stats = IoStats(ios=ios, bytes=ios * workload.block_size_bytes)
    exact_s = ios / iops if ios else duration_s
    if workload.read_percent:
        return Measurement(duration_s=exact_s, read=stats, write=NO_IO)
    return Measurement(duration_s=exact_s, read=NO_IO, write=stats)


def _times(source: Source, triple: Sequence[float], *, ios: int) -> IoStats:
    """Return response times of so many I/Os, which do not count as I/Os."""
    if len(triple) != 3 or not triple[0] <= triple[2] <= triple[1]:
        raise InputFileError(
            f"{source.file}, {source.element.tag}/roundmat: {triple} is not minimum, maximum, mean"
        )
    low_us, high_us, mean_us = triple
    return IoStats(
        latency_ios=ios,
        latency_sum_ns=round(mean_us * 1000 * ios),
        latency_min_ns=round(low_us * 1000),
        latency_max_ns=round(high_us * 1000),
    )


def _step(
    section: str,
    number: int,
    position: int,
    workload: Workload,
    source: Source,
    measurement: Measurement,
    *,
    kind: StepKind = StepKind.ROUND,
) -> StepRecord:
    return StepRecord(
        section=section,
        kind=kind,
        number=number,
        position=position,
        workload=workload,
        planned_s=source.step_s,
        started_s=0.0,
        gap_s=None,
        measurement=measurement,
        job_file=f"; imported from {readable(source.file.rpartition('/')[2])}, no fio job was kept\n",
    )


def _judged(
    source: Source, test: str, section: str, steps: list[StepRecord], tracking: str, unit: str
) -> TestRecord:
    """Return the test with tkperf's verdict after each round."""
    values_of: dict[str, Callable[[Measurement], float]] = {
        "IOPS": lambda measurement: measurement.iops,
        "us": mean_latency_us,
        "MB/s": lambda measurement: measurement.megabytes_per_s,
    }
    tracked = [
        step
        for step in steps
        if step.workload.read_percent == 0
        and (
            test == "tp" or (step.workload.read_percent, step.workload.block_size_bytes) == TRACKED
        )
    ]
    if not tracked:
        raise InputFileError(f"{source.file}, {test}: no rounds")
    criteria = load_profile("tkperf-2.2").steady_state.criteria
    verdicts: list[SteadyStateVerdict] = []
    for last in range(1, len(tracked) + 1):
        values = [values_of[unit](step.measurement) for step in tracked[:last]]
        rounds = [step.number for step in tracked[:last]]
        verdicts.append(judge(rounds, values, tracking=tracking, unit=unit, criteria=criteria))
    final = verdicts[-1]
    ended = SectionOutcome(
        section=section,
        window=final.rounds,
        verdict=final,
        ended_because=describe_rounds(len(tracked), "file", final),
    )
    records = tuple(
        VerdictRecord(section=section, number=verdict.rounds[-1], verdict=verdict)
        for verdict in verdicts
    )
    return imported_test(test, steps, records, (ended,))


def _merged(tests: Sequence[TestRecord]) -> TestRecord:
    """Return one test of several sections."""
    return imported_test(
        tests[0].name,
        [step for test in tests for step in test.steps],
        tuple(verdict for test in tests for verdict in test.verdicts),
        [outcome for test in tests for outcome in test.outcomes],
    )


def _missing(source: Source) -> Iterator[RunWarning]:
    """Yield warnings about missing values that the records of a run need."""
    test = source.element.tag
    lacks = [name for name in ("numjobs", "iodepth") if source.count(name) is None]
    if lacks:
        yield RunWarning(
            code="demand-missing",
            test=test,
            text=f"{test}: the file has no {' and no '.join(lacks)}: 1 is taken",
        )
    if source.runtime_s is None and test != "lat":
        yield RunWarning(
            code="runtime-missing",
            test=test,
            text=(
                f"{test}: the file does not say how long a step took: TKperf's {DEFAULT_STEP_S:g} s "
                "are taken; times follow from that"
            ),
        )


def _disagreements(source: Source, test: TestRecord) -> Iterator[RunWarning]:
    """Yield a warning if TKperf's own verdict differs from tkperf's."""
    ours = test.verdicts[-1].verdict if test.name in ("iops", "lat") and test.verdicts else None
    if test.name == "tp":
        first = test.steps[0].section
        ours = [record.verdict for record in test.verdicts if record.section == first][-1]
    theirs = source.value("reachstdystate")
    if ours is not None and isinstance(theirs, bool) and theirs is not ours.reached:
        yield RunWarning(
            code="verdict-differs",
            test=test.name,
            text=(
                f"{test.name}: TKperf says that steady state was "
                f"{'reached' if theirs else 'not reached'}; by the rule it was "
                f"{'reached' if ours.reached else 'not reached'} in rounds "
                f"{ours.rounds[0]}-{ours.rounds[-1]} (counted from 1)"
            ),
        )


def _line(text: str | None) -> str | None:
    return one_line(text) or None if text else None
