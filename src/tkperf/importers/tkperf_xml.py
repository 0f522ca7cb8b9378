"""Result XML of TKperf 1.x to 2.2: the four SSD tests (PTS.md, section 9).

Every text is JSON. Rounds count from 0 there, from 1 here. Throughput is in KiB/s. A latency
result has [min, max, mean] in us and no count of I/Os, so its rates stay unknown. Steady state is
judged anew by the rule; where TKperf came to another verdict, a warning says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring

from tkperf.errors import UsageError
from tkperf.importers.imported import ImportedRun, imported_test
from tkperf.measurement import NO_IO, IoStats, Measurement
from tkperf.phases import SectionOutcome
from tkperf.procedures.parts import mean_latency_us
from tkperf.profiles import load_profile
from tkperf.record import RunWarning, StepKind, StepRecord, TestRecord, VerdictRecord
from tkperf.steady_state import SteadyStateVerdict, judge
from tkperf.units import KIB, format_block_size
from tkperf.workload import Access, Cell, Workload

TESTS = ("iops", "lat", "tp", "writesat")
# In the order of TKperf's loops; a 4Kn device has no last one.
IOPS_MIXES, IOPS_SIZES_KIB = (100, 95, 65, 50, 35, 5, 0), (1024, 128, 64, 32, 16, 8, 4, 0.5)
LATENCY_MIXES, LATENCY_SIZES_KIB = (100, 65, 0), (8, 4, 0.5)
THROUGHPUT_SIZES_KIB = (1024, 64, 8, 4, 0.5)
TRACKED = Cell(0, 4 * KIB)
# Stands for a number of I/Os that nobody knows, so that a mean keeps all its digits.
UNKNOWN_IOS = 1_000_000
# No rate or time is larger; NaN and infinity are none.
LARGEST = 1e15


def parse_tkperf_xml(text: bytes, *, file: str) -> ImportedRun:
    """Decode a result file.

    Raises:
        UsageError: it is no XML, dangerous XML, or none that TKperf writes; names file and place.
    """
    try:
        root = fromstring(text, forbid_dtd=True)
    except DefusedXmlException as error:
        raise UsageError(
            f"{file}: refused, it declares document types or entities: {error}"
        ) from None
    except ParseError as error:
        raise UsageError(f"{file}: not XML: {error}") from None
    found = [element for element in root if element.tag in TESTS]
    if not found:
        raise UsageError(f"{file}: no result of TKperf: it has none of {', '.join(TESTS)}")
    tests, warnings = [], []
    for element in sorted(found, key=lambda each: TESTS.index(each.tag)):
        source = _Source(file, element)
        test = _PARSERS[element.tag](source)
        tests.append(test)
        warnings += list(_disagreements(source, test))
    header = _Source(file, root)
    first = _Source(file, found[0])
    version = header.text("ioperfversion")
    return ImportedRun(
        name=root.tag,
        date=header.text("testdate"),
        tool=f"TKperf {version}" if version else "TKperf",
        profile_name="tkperf-2.2",
        fio_version=(first.text("fioversion") or "").strip() or None,
        command_line=header.text("cmdline"),
        description=header.text("devinfo"),
        feature_matrix=header.text("featmatrix"),
        host={
            "kernel": _stripped(header.text("kernel")),
            "operating_system": _stripped((header.text("lsb") or "").removeprefix("Description:")),
        },
        demand={"jobs": first.number("numjobs"), "io_depth": first.number("iodepth")},
        step_s=first.step_s,
        tests=tuple(tests),
        warnings=tuple(warnings),
    )


@dataclass(frozen=True, slots=True)
class _Source:
    """An element whose children are JSON texts; errors name file and element."""

    file: str
    element: Element

    def value(self, name: str) -> Any:
        text = self.element.findtext(name)
        if text is None:
            return None
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{self.file}, {self.element.tag}/{name}: not JSON: {error}") from None

    def text(self, name: str) -> str | None:
        value = self.value(name)
        return value if isinstance(value, str) and value else None

    def number(self, name: str) -> float | None:
        value = self.value(name)
        return value if isinstance(value, int | float) else None

    def matrix(self, depth: int) -> Any:
        """``roundmat``: lists nested ``depth`` times, finite numbers in them."""
        matrix = self.value("roundmat")
        if not _is_matrix(matrix, depth):
            raise UsageError(
                f"{self.file}, {self.element.tag}/roundmat: not the lists of numbers that TKperf "
                "writes"
            )
        return matrix

    @property
    def step_s(self) -> float:
        runtime = self.number("runtime")
        return float(runtime) if runtime and runtime > 0 else 60.0

    def workload(self, access: Access, read_percent: int, block_size_kib: float) -> Workload:
        try:
            return Workload(
                access=access,
                read_percent=read_percent,
                block_size_bytes=round(block_size_kib * KIB),
                jobs=int(self.number("numjobs") or 1),
                io_depth=int(self.number("iodepth") or 1),
            )
        except ValueError as error:
            raise UsageError(f"{self.file}, {self.element.tag}: {error}") from None


def _is_matrix(value: object, depth: int) -> bool:
    if depth == 0:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and 0 <= value <= LARGEST  # type: ignore[operator]
    return isinstance(value, list) and all(_is_matrix(each, depth - 1) for each in value)


def _iops(source: _Source) -> TestRecord:
    steps = []
    for number, mixes in enumerate(source.matrix(3), start=1):
        cells = _named(source, mixes, IOPS_MIXES, IOPS_SIZES_KIB)
        for position, (mix, size_kib, iops) in enumerate(cells):
            workload = source.workload(Access.RANDOM, mix, size_kib)
            seen = _rate(workload, iops, source.step_s)
            steps.append(_step("IOPS", number, position, workload, source, seen))
    return _judged(source, "iops", "IOPS", steps, f"RND {TRACKED} IOPS", "IOPS")


def _latency(source: _Source) -> TestRecord:
    steps = []
    for number, mixes in enumerate(source.matrix(4), start=1):
        cells = _named(source, mixes, LATENCY_MIXES, LATENCY_SIZES_KIB)
        for position, (mix, size_kib, triple) in enumerate(cells):
            workload = source.workload(Access.RANDOM, mix, size_kib)
            seen = _times(source, workload, triple)
            steps.append(_step("Latency", number, position, workload, source, seen))
    return _judged(source, "lat", "Latency", steps, f"RND {TRACKED} mean latency", "us")


def _throughput(source: _Source) -> TestRecord:
    tests = []
    matrix = source.matrix(3)
    if not 1 <= len(matrix) <= len(THROUGHPUT_SIZES_KIB):
        raise UsageError(
            f"{source.file}, tp/roundmat: {len(matrix)} block sizes, TKperf has up to "
            f"{len(THROUGHPUT_SIZES_KIB)}"
        )
    for size_kib, both in zip(THROUGHPUT_SIZES_KIB, matrix, strict=False):
        if len(both) != 2 or len(both[0]) != len(both[1]):
            raise UsageError(f"{source.file}, tp/roundmat: not reads and writes of equal length")
        section = f"Throughput {format_block_size(round(size_kib * KIB))}"
        steps = []
        for number, rates in enumerate(zip(*both, strict=True), start=1):
            for position, (mix, kib_per_s) in enumerate(zip((100, 0), rates, strict=True)):
                workload = source.workload(Access.SEQUENTIAL, mix, size_kib)
                iops = kib_per_s / size_kib
                seen = _rate(workload, iops, source.step_s)
                steps.append(_step(section, number, position, workload, source, seen))
        tracking = f"SEQ {Cell(0, round(size_kib * KIB))} MB/s"
        tests.append(_judged(source, "tp", section, steps, tracking, "MB/s"))
    return _merged(tests)


def _write_saturation(source: _Source) -> TestRecord:
    matrix = source.value("roundmat")
    if (
        not isinstance(matrix, list)
        or len(matrix) != 2
        or not _is_matrix(matrix[0], 1)
        or not _is_matrix(matrix[1], 2)
        or len(matrix[0]) != len(matrix[1])
    ):
        raise UsageError(
            f"{source.file}, writesat/roundmat: not IOPS and latencies of equal length"
        )
    workload = source.workload(Access.RANDOM, 0, 4)
    steps = []
    for number, (iops, triple) in enumerate(zip(*matrix, strict=True), start=1):
        rate, times = _rate(workload, iops, source.step_s), _times(source, workload, triple)
        both = IoStats(
            ios=rate.write.ios,
            bytes=rate.write.bytes,
            latency_ios=times.write.latency_ios,
            latency_sum_ns=times.write.latency_sum_ns,
            latency_min_ns=times.write.latency_min_ns,
            latency_max_ns=times.write.latency_max_ns,
        )
        seen = Measurement(duration_s=rate.duration_s, read=NO_IO, write=both)
        steps.append(
            _step("Write Saturation", number, 0, workload, source, seen, kind=StepKind.CONTINUOUS)
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
    source: _Source, mixes: Sequence[Any], names: Sequence[int], sizes_kib: Sequence[float]
) -> Iterator[tuple[int, float, Any]]:
    """Cells by mix and block size; a 4Kn device lacks the last size."""
    if len(mixes) != len(names) or any(
        len(row) not in (len(sizes_kib), len(sizes_kib) - 1) for row in mixes
    ):
        raise UsageError(
            f"{source.file}, {source.element.tag}/roundmat: a round is not {len(names)} mixes of "
            f"{len(sizes_kib)} block sizes"
        )
    for mix, row in zip(names, mixes, strict=True):
        for size_kib, value in zip(sizes_kib, row, strict=False):
            yield mix, size_kib, value


def _rate(workload: Workload, iops: float, duration_s: float) -> Measurement:
    """A measurement of just this rate: whole I/Os, in the time that makes the rate exact."""
    ios = round(iops * duration_s)
    stats = IoStats(ios=ios, bytes=ios * workload.block_size_bytes)
    exact_s = ios / iops if ios else duration_s
    if workload.read_percent:
        return Measurement(duration_s=exact_s, read=stats, write=NO_IO)
    return Measurement(duration_s=exact_s, read=NO_IO, write=stats)


def _times(source: _Source, workload: Workload, triple: Sequence[float]) -> Measurement:
    """A measurement of which only the response times are known."""
    if len(triple) != 3 or not triple[0] <= triple[2] <= triple[1]:
        raise UsageError(
            f"{source.file}, {source.element.tag}/roundmat: {triple} is not minimum, maximum, mean"
        )
    low_us, high_us, mean_us = triple
    stats = IoStats(
        latency_ios=UNKNOWN_IOS,
        latency_sum_ns=round(mean_us * 1000 * UNKNOWN_IOS),
        latency_min_ns=round(low_us * 1000),
        latency_max_ns=round(high_us * 1000),
    )
    read, write = (stats, NO_IO) if workload.read_percent else (NO_IO, stats)
    return Measurement(duration_s=source.step_s, read=read, write=write, rates_known=False)


def _step(
    section: str,
    number: int,
    position: int,
    workload: Workload,
    source: _Source,
    seen: Measurement,
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
        measurement=seen,
        job_file=f"; imported from {source.file.rpartition('/')[2]}, no fio job was kept\n",
    )


def _judged(
    source: _Source, test: str, section: str, steps: list[StepRecord], tracking: str, unit: str
) -> TestRecord:
    """The test with our verdict after each round."""
    values_of: dict[str, Callable[[Measurement], float]] = {
        "IOPS": lambda seen: seen.iops,
        "us": mean_latency_us,
        "MB/s": lambda seen: seen.megabytes_per_s,
    }
    tracked = [
        step
        for step in steps
        if step.workload.read_percent == 0 and (test == "tp" or step.workload.cell == TRACKED)
    ]
    if not tracked:
        raise UsageError(f"{source.file}, {test}: no rounds")
    criteria = load_profile("tkperf-2.2").steady_state.criteria
    verdicts: list[SteadyStateVerdict] = []
    for last in range(1, len(tracked) + 1):
        values = [values_of[unit](step.measurement) for step in tracked[:last]]
        rounds = [step.number for step in tracked[:last]]
        verdicts.append(judge(rounds, values, tracking=tracking, unit=unit, criteria=criteria))
    final = verdicts[-1]
    reached = "reached" if final.reached else f"not reached: {final.reason}"
    ended = SectionOutcome(
        section=section,
        window=final.rounds,
        verdict=final,
        ended_because=f"{len(tracked)} rounds in the imported file, steady state {reached}",
    )
    records = tuple(
        VerdictRecord(section=section, number=verdict.rounds[-1], verdict=verdict)
        for verdict in verdicts
    )
    return imported_test(test, steps, records, (ended,))


def _merged(tests: Sequence[TestRecord]) -> TestRecord:
    """One test of several sections."""
    sections = [section for test in tests if test.outcome for section in test.outcome.sections]
    return imported_test(
        tests[0].name,
        [step for test in tests for step in test.steps],
        tuple(verdict for test in tests for verdict in test.verdicts),
        tuple(sections),
    )


def _disagreements(source: _Source, test: TestRecord) -> Iterator[RunWarning]:
    """Where TKperf's own verdict, window or average is another than ours."""
    ours = test.verdicts[-1].verdict if test.name in ("iops", "lat") and test.verdicts else None
    if test.name == "tp":
        first = test.steps[0].section
        ours = [each.verdict for each in test.verdicts if each.section == first][-1]
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


def _stripped(text: str | None) -> str | None:
    return text.strip() or None if text else None
