"""Invented results that contain only the few numbers on which a rule depends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tests.builders import run_info, work
from tkperf.analysis.results import CellResult, RoundResult, RunResult, SectionResult, SliceResult, TestResult
from tkperf.model.figures import TestPlan, generic_section
from tkperf.model.quantity import QUANTITIES
from tkperf.model.record import RunNote, RunStatus
from tkperf.model.workload import Workload
from tkperf.procedures import known_plan

FOUR_KIB_WRITES = work()


def made_up_cell(
    value: float | None, workload: Workload = FOUR_KIB_WRITES, *, host_limited: bool = False
) -> CellResult:
    """Return a cell that has the same value in every quantity. With an offered rate, the cell also contains the number
    of I/Os that the drive does not complete in each second.
    """
    figures = {key: (None if value is None else 1000) if key == "ios" else value for key in QUANTITIES}
    if workload.offered_iops is not None and value is not None:
        figures["backlog_ios"] = max(0.0, workload.offered_iops - value)
    return CellResult(
        workload=workload,
        all=figures,
        read=figures if workload.read_percent else None,
        write=figures if workload.read_percent < 100 else None,
        rounds=1,
        host_limited=host_limited,
    )


def made_up_section(
    name: str,
    cells: Mapping[Workload, Sequence[float | None]],
    *,
    steady: bool | None = True,
    areas: bool = False,
    stream: bool = False,
    window: bool = True,
    host_limited: bool = False,
) -> SectionResult:
    """Return a section. Its cells have the given value for each round, area or slice of the window."""
    count = len(next(iter(cells.values())))
    rounds = tuple(
        RoundResult(
            number=number,
            complete=True,
            cells=tuple(
                made_up_cell(values[number - 1], cell, host_limited=host_limited) for cell, values in cells.items()
            ),
        )
        for number in range(1, count + 1)
    )
    slices = tuple(
        SliceResult(
            number=each.number,
            start_s=each.number - 1.0,
            duration_s=1.0,
            total_written_bytes=each.number,
            values=each.cells[0],
        )
        for each in rounds
    )
    return SectionResult(
        name=name,
        plan=generic_section(name, areas=areas, stream=stream),
        steady=steady,
        window=tuple(range(1, count + 1)) if window else (),
        ended_because=f"made up of {count}",
        verdict=None,
        verdicts=(),
        cells=tuple(made_up_cell(mean(values), cell, host_limited=host_limited) for cell, values in cells.items()),
        rounds=() if stream else rounds,
        areas=count if areas else None,
        slices=slices if stream else (),
        workload=None,
        purge=None,
        filled_bytes=None,
        filled_s=None,
        histogram_us=(),
    )


def mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _plan(test: str, sections: Sequence[SectionResult]) -> TestPlan:
    """Return the plan of the SSD test with this name, or of an unknown test."""
    plan = known_plan("ssd", test, (each.name for each in sections))
    return plan or TestPlan(title=test, sections=tuple(each.plan for each in sections))


def made_up_run(
    name: str,
    tests: Mapping[str, Sequence[SectionResult]],
    *,
    warnings: Sequence[str] = (),
    status: RunStatus = RunStatus.COMPLETE,
    **info: object,
) -> RunResult:
    """Return a run that contains these tests. ``info`` replaces facts of the run."""
    return RunResult(
        schema="made up",
        info=run_info(name=name, **info),
        status=status,
        ended_utc=None,
        ended_because=None,
        warnings=tuple(RunNote(code="made-up", text=text) for text in warnings),
        tests=tuple(
            TestResult(
                name=test,
                title=_plan(test, sections).title,
                status=RunStatus.COMPLETE,
                duration_s=None,
                written_bytes=0,
                longest_gap_s=None,
                sections=tuple(
                    replace(section, plan=plan)
                    for section, plan in zip(sections, _plan(test, sections).sections, strict=True)
                ),
            )
            for test, sections in tests.items()
        ),
    )
