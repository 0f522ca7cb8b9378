"""What lies behind each cell: its seconds, round after round, and its latency histogram."""

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
    """A round, area or slice within the time of a cell, with what it was like on the host meanwhile.

    ``judged``: in the verdict's window. ``host`` is None where nobody looked.
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
        """All that was measured of it."""
        return Measurement(
            duration_s=self.end_s - self.start_s,
            read=self.read,
            write=self.write,
            rates_known=self.rates_known,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CellDetail:
    """One cell of a section, or its stream.

    ``seconds`` are those of all its steps end to end: the time that other cells took between two
    rounds is left out. A stream's are where they were recorded, without those of its warm-ups. ``read``
    and ``write`` are all I/Os of the window's rounds, or of a whole stream, which are the parts ``counted``; ``job_file`` is its first fio
    job as it can be run again (empty if none).
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
        """Reads and writes together."""
        return self.read + self.write

    def of(self, direction: Direction) -> IoStats:
        """The I/Os of one direction, or all."""
        return {Direction.READ: self.read, Direction.WRITE: self.write}.get(direction, self.whole)


def build_details(
    result: RunResult, record: RunRecord, seconds: Mapping[str, Sequence[Seconds]]
) -> tuple[CellDetail, ...]:
    """The details of every cell that has been measured.

    Args:
        result: the analysis of ``record``.
        seconds: of each test, the samples of each of its steps in their order; none for a test
            whose samples nobody kept, such as an imported one.
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
        # Of a stream all I/Os count: its slices outside the window are as much of it.
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
    """Where each step starts when all are set end to end."""
    starts_s, at_s = [], 0.0
    for step in steps:
        starts_s.append(at_s)
        at_s += step.measurement.duration_s
    return starts_s
