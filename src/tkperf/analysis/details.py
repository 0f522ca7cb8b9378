"""Details behind each cell: its seconds, round after round, and its latency histogram."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tkperf.analysis.cell_results import starts_of_slices
from tkperf.analysis.results import RunResult, SectionResult
from tkperf.model.disturbance.codes import DisturbanceCode, find_codes
from tkperf.model.host_use import HostUse
from tkperf.model.measurement import NO_IO, IoStats, Measurement, add_all
from tkperf.model.quantity import Direction
from tkperf.model.record import RunRecord, StepKind, StepRecord, key_of
from tkperf.model.seconds import Seconds, join
from tkperf.model.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A round, area or slice within the time of a cell, with the use of the host meanwhile.

    Attributes:
        judged: it is in the verdict's window.
        host: use of the host; None: not recorded.
    """

    number: int
    start_s: float
    end_s: float
    judged: bool
    read: IoStats = NO_IO
    write: IoStats = NO_IO
    host_limited: bool | None = None
    disturbances: tuple[DisturbanceCode, ...] | None = None
    host: HostUse | None = None
    rates_known: bool = True

    @property
    def measurement(self) -> Measurement:
        """Return the whole measurement of the part."""
        return Measurement(
            duration_s=self.end_s - self.start_s,
            read=self.read,
            write=self.write,
            rates_known=self.rates_known,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CellDetail:
    """One cell of a section, or its stream.

    Attributes:
        seconds: seconds of all steps without gaps: the time that other cells took between two rounds is
            left out. A stream's seconds keep their recorded places; its warm-ups are left out.
        read, write: all I/Os of the parts ``counted``.
        job_file: the first fio job, which can be run again; empty if there is none.
        counted: the window's rounds, or all parts of a stream or of a cell without a window.
    """

    test: str
    section: str
    workload: Workload
    parts: tuple[Part, ...]
    seconds: Seconds
    read: IoStats
    write: IoStats
    job_file: str
    counted: tuple[Part, ...] = ()

    @property
    def whole(self) -> IoStats:
        """Return reads and writes together."""
        return self.read + self.write

    def of(self, direction: Direction) -> IoStats:
        """Return the I/Os of one direction, or all."""
        return {Direction.READ: self.read, Direction.WRITE: self.write}.get(direction, self.whole)


def build_details(
    result: RunResult, record: RunRecord, seconds: Mapping[str, Sequence[Seconds]]
) -> tuple[CellDetail, ...]:
    """Return the details of every measured cell.

    Args:
        result: the analysis of ``record``.
        seconds: the samples of each step of each test, in their order; none for a test without kept
            samples, such as an imported one.
    """
    sections = {
        (test.name, section.name): section for test in result.tests for section in test.sections
    }
    return tuple(
        detail
        for test in record.tests
        for detail in _details(
            test.name, test.steps, seconds.get(test.name) or [Seconds()] * len(test.steps), sections
        )
    )


def _details(
    test: str,
    steps: Sequence[StepRecord],
    seconds: Sequence[Seconds],
    sections: Mapping[tuple[str, str], SectionResult],
) -> Iterator[CellDetail]:
    by_cell: dict[tuple[str, Workload], list[tuple[StepRecord, Seconds]]] = {}
    for step, samples in zip(steps, seconds, strict=True):
        if step.kind not in (StepKind.FILL, StepKind.WARM_UP):
            key = (step.section, key_of(step.kind, step.workload))
            by_cell.setdefault(key, []).append((step, samples))
    for (name, workload), members in by_cell.items():
        window, verdict = sections[test, name].window, sections[test, name].verdict
        # All I/Os of a stream count, also its slices outside the window.
        stream = members[0][0].kind is StepKind.CONTINUOUS
        whole = stream or not window
        counted = [step for step, _ in members if whole or step.number in window]
        steps_of_cell = [step for step, _ in members]
        starts_s = (starts_of_slices if stream else _starts_s)(steps_of_cell)
        parts = tuple(
            Part(
                number=step.number,
                start_s=start_s,
                end_s=start_s + step.measurement.duration_s,
                judged=verdict is not None and verdict.judged and step.number in verdict.rounds,
                read=step.measurement.read,
                write=step.measurement.write,
                host_limited=step.measurement.host_limited,
                disturbances=None
                if step.disturbances is None
                else find_codes(disturbance.code for disturbance in step.disturbances),
                host=step.host,
                rates_known=step.measurement.rates_known,
            )
            for (step, _), start_s in zip(members, starts_s, strict=True)
        )
        yield CellDetail(
            test=test,
            section=name,
            workload=workload,
            parts=parts,
            seconds=join([samples for _, samples in members], starts_s),
            read=add_all(step.measurement.read for step in counted),
            write=add_all(step.measurement.write for step in counted),
            job_file=members[0][0].job_file,
            counted=tuple(part for part in parts if whole or part.number in window),
        )


def _starts_s(steps: Sequence[StepRecord]) -> list[float]:
    """Return the start of each step when all follow each other without gaps."""
    starts_s, at_s = [], 0.0
    for step in steps:
        starts_s.append(at_s)
        at_s += step.measurement.duration_s
    return starts_s
