"""Compute the results of a run from the record of the run: the measured part of each test, and the resumptions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields, replace
from typing import Any

from tkperf.analysis.characteristics_search import with_characteristics
from tkperf.analysis.drive_telemetry import DriveTelemetry, count_media_errors, find_telemetry, warn_of_counters
from tkperf.analysis.loads_together import find_grid_rules
from tkperf.analysis.results import (
    RESULTS_SCHEMA,
    CellResult,
    ReplacedTest,
    ResumptionResult,
    RunResult,
    StepHost,
    TestResult,
)
from tkperf.analysis.section_results import build_section
from tkperf.interop import TKPERF_PROFILE
from tkperf.model.disturbance.io import find_codes
from tkperf.model.errors import ProfileError
from tkperf.model.figures import FigureKind, SectionPlan, TestPlan, generic_section
from tkperf.model.phases import Round
from tkperf.model.quantity import IOS, Direction
from tkperf.model.record import Resumption, RunNote, RunRecord, RunStatus, StepKind, StepRecord, TestRecord
from tkperf.model.run_info import RunInfo
from tkperf.procedures import demand_intensity, find_test, known_plan, read_stored_profile
from tkperf.procedures.forecast import first_rounds
from tkperf.procedures.profiles.profile_tables import ProfileTable

# The greatest number of workloads. A sweep has up to 1,024 workloads (MOST_COMBINATIONS in
# procedures/workload_sweep.py). All other tests together have about a hundred workloads.
MOST_SEARCHED_WORKLOADS = 1200
# The greatest number of steps. With a shipped profile, a run of one day has up to 6,000 steps. A sweep of 1,024
# workloads with 25 rounds has 25,600 steps.
MOST_SEARCHED_STEPS = 30_000
_NOT_SEARCHED = RunNote(
    code="not-searched",
    text="tkperf did not search this run for levels, drops and spikes over time, because the run has more than "
    f"{MOST_SEARCHED_WORKLOADS:,} workloads or {MOST_SEARCHED_STEPS:,} steps. The report of this run contains "
    "neither details of workloads nor charts of a whole test",
)


def analyse(record: RunRecord, *, figures: bool = True) -> RunResult:
    """Return all results of a run. The run may still be incomplete.

    If ``figures`` is False, only the data for the verdict are computed, which takes a tenth of the time. In this case,
    cells have no figures, and sections have no rounds, histograms or findings over time. The record then needs no
    histograms.
    """
    resumptions = tuple(_resumption(record, resumption) for resumption in record.resumptions)
    courses = is_of_usual_size(record)
    tests = tuple(
        _test(record, test, resumptions, telemetry, figures=figures, courses=courses)
        for test, telemetry in zip(record.tests, find_telemetry(record), strict=True)
    )
    # A run without facts about the device can also be an imported run.
    if record.info.imported or not record.info.device:
        tests = tuple(_without_guesses(test, record.info) for test in tests)
    begun = {test.name for test in record.tests}
    return RunResult(
        schema=RESULTS_SCHEMA,
        info=record.info,
        status=record.status,
        ended_utc=record.ended_utc or None,
        ended_because=record.ended_because,
        warnings=(*record.warnings, *warn_of_counters(record), *(() if courses else (_NOT_SEARCHED,))),
        resumptions=resumptions,
        not_begun=tuple(name for name in record.planned if name not in begun),
        tests=tests,
        left_out=tuple(record.left_out),
        media_errors=count_media_errors(record),
    )


def is_of_usual_size(record: RunRecord) -> bool:
    """Return whether tkperf searches for findings over time in a run. The search takes milliseconds for each workload,
    and more time for a workload with many steps.
    """
    steps = sum(len(test.steps) for test in record.tests)
    workloads = {(test.name, step.section, step.key) for test in record.tests for step in test.steps}
    return steps <= MOST_SEARCHED_STEPS and len(workloads) <= MOST_SEARCHED_WORKLOADS


def _without_guesses(test: TestResult, info: RunInfo) -> TestResult:
    """Remove the values of an imported test that the original tool did not record. The steps contain such values only
    because the import computed them.
    """
    # The XML files of TKperf contain only rates. The import computed numbers of I/Os that match these rates.
    counted = info.profile_name != TKPERF_PROFILE
    demand_known = any("jobs" in table for table in info.profile.values() if isinstance(table, dict))

    def cells(of: Iterable[CellResult]) -> tuple[CellResult, ...]:
        return tuple(replace(cell, host_limited=None, **({} if counted else _without_counts(cell))) for cell in of)

    return replace(
        test,
        duration_s=None,
        written_bytes=None,
        demands=test.demands if demand_known else (),
        sections=tuple(
            replace(
                section,
                cells=cells(section.cells),
                rounds=tuple(replace(round_result, cells=cells(round_result.cells)) for round_result in section.rounds),
                slices=tuple(
                    replace(
                        slice_result,
                        total_written_bytes=None,
                        values=cells([slice_result.values])[0],
                        parts=cells(slice_result.parts),
                    )
                    for slice_result in section.slices
                ),
            )
            for section in test.sections
        ),
    )


def _without_counts(cell: CellResult) -> dict[str, Any]:
    """Return the figures of a cell without counts. For a mix, the figures of reads and of writes are also removed.

    The source contained only rates of all I/Os together. The counts and directions were computed from these rates.
    """
    mixed = cell.workload.is_mixed
    return {
        direction: None if figures is None or (mixed and direction is not Direction.ALL) else {**figures, IOS.key: None}
        for direction in Direction
        for figures in (getattr(cell, direction),)
    }


def _plan(suite: str, test: TestRecord) -> TestPlan:
    """Return the plan that determines how outputs show the test. If a section has no plan, a plan is made from its
    recorded steps.
    """
    kinds: dict[str, set[StepKind]] = {}
    for step in test.steps:
        kinds.setdefault(step.section, set()).add(step.kind)
    plan = test.plan or known_plan(suite, test.name, list(kinds)) or TestPlan(title=test.name)
    sections = tuple(plan.section(name) or _recorded(name, kinds[name]) for name in kinds)
    return replace(plan, sections=sections)


def _recorded(name: str, kinds: Collection[StepKind]) -> SectionPlan:
    return generic_section(name, areas=StepKind.AREA in kinds, stream=StepKind.CONTINUOUS in kinds)


def _find_table(info: RunInfo, test: str) -> ProfileTable | None:
    """Return the table of a test in the profile of the run, or None if the profile does not contain the table."""
    definition = find_test(info.suite, test, info.profile)
    if definition is None or definition.table is None:
        return None
    return read_stored_profile(info.profile).tables.get(definition.table.key)


def _find_ceiling_us(table: ProfileTable | None) -> float | None:
    """Return the highest allowed mean latency, in µs, for a test with a grid of demands, or None if the test has no
    such grid.
    """
    return table.latency_ceiling_ms * 1000 if isinstance(table, demand_intensity.DemandGridTable) else None


def _planned_areas(info: RunInfo, test: TestRecord) -> dict[str, Round]:
    """Return the planned first area of each section, according to the profile of the run. If the profile does not
    contain the test, the result is empty.
    """
    definition = find_test(info.suite, test.name, info.profile)
    if definition is None or not any(step.kind is StepKind.AREA for step in test.steps):
        return {}
    try:
        profile = read_stored_profile(info.profile)
        return first_rounds(definition, profile, info.active_range_length_bytes or 0)
    except (ProfileError, ValueError):
        return {}


def _test(
    record: RunRecord,
    test: TestRecord,
    resumptions: Sequence[ResumptionResult],
    telemetry: tuple[DriveTelemetry, ...],
    *,
    figures: bool,
    courses: bool,
) -> TestResult:
    info, plan = record.info, _plan(record.info.suite, test)
    planned, table = _planned_areas(info, test), _find_table(info, test.name)
    ceiling_us, grid_rules = _find_ceiling_us(table), find_grid_rules(table)
    lost = [row for row in record.left_out if row.is_step and row.test == test.name]
    sections: dict[str, list[StepRecord]] = {}
    for step in test.steps:
        sections.setdefault(step.section, []).append(step)
    # Planned pauses, such as a purge or the creation of a RAID set, do not count as gaps, because their length is not
    # limited.
    gaps = [step.gap_s for step in test.steps if step.gap_s is not None and not step.planned_pause]
    watched = [step for step in test.steps if step.disturbances is not None]
    disturbed = Counter(code for step in watched for code in step.disturbance_codes or ())
    unwatched = bool(test.steps) and not watched
    alone = info.is_simulated or info.imported
    interruptions = [each for each in resumptions if each.test == test.name]
    again_bytes = sum(each.set_aside_written_bytes for each in interruptions)
    written_bytes = sum(step.measurement.write.bytes for step in test.steps) + again_bytes
    duration_s = None if test.ended_s is None else test.ended_s - test.started_s
    if duration_s is not None:  # The time in which no process ran is not included.
        duration_s -= sum(each.pause_s for each in interruptions)
    # The result of an unfinished test also contains the names of sections without measurements.
    unfinished = test.plan if test.status is not RunStatus.COMPLETE else None
    result = TestResult(
        name=test.name,
        title=plan.title,
        status=test.status,
        duration_s=duration_s,
        written_bytes=None if lost else written_bytes,
        written_again_bytes=again_bytes,
        longest_gap_s=None if lost or not gaps else max(0.0, *gaps),
        sections=tuple(
            build_section(
                test,
                section,
                sections[section.name],
                planned.get(section.name),
                lost,
                ceiling_us if section.name == demand_intensity.GRID else None,
                grid_rules if section.draws(FigureKind.INTERFERENCE) else None,
                figures=figures,
                courses=courses,
            )
            for section in plan.sections
        ),
        figures=plan.figures,
        demands=tuple(
            dict.fromkeys(
                (step.workload.jobs, step.workload.io_depth) for step in test.steps if step.kind is not StepKind.FILL
            )
        ),
        disturbed_steps=None if unwatched else {code: disturbed[code] for code in find_codes(disturbed)},
        not_compared_steps=None if unwatched else sum(not alone and step.foreign_bytes is None for step in watched),
        steps=tuple(_host_of(step) for step in watched),
        under_way=test.under_way,
        not_measured=()
        if unfinished is None
        else tuple(each.name for each in unfinished.sections if each.name not in sections),
        telemetry=telemetry,
    )
    return with_characteristics(result) if figures else result


def _host_of(step: StepRecord) -> StepHost:
    return StepHost(
        section=step.section,
        kind=step.kind,
        number=step.number,
        position=step.position,
        workload=step.workload,
        started_s=step.started_s,
        duration_s=step.measurement.duration_s,
        host_limited=step.measurement.host_limited,
        disturbances=step.disturbances,
        host=step.host,
    )


def _resumption(record: RunRecord, resumption: Resumption) -> ResumptionResult:
    set_aside = _set_aside(record, resumption)
    earlier = [test for test in record.earlier if test.id in resumption.repeated_ids]
    written_bytes = resumption.cut_off_written_bytes + sum(step.measurement.write.bytes for step in set_aside)
    return ResumptionResult(
        **{each.name: getattr(resumption, each.name) for each in fields(Resumption)},
        set_aside_steps=len(set_aside),
        set_aside_written_bytes=written_bytes,
        replaced=tuple(
            ReplacedTest(
                name=test.name,
                complete=test.status is RunStatus.COMPLETE,
                outcomes=test.outcomes,
                written_bytes=sum(step.measurement.write.bytes for step in test.steps),
            )
            for test in earlier
        ),
    )


def _set_aside(record: RunRecord, resumption: Resumption) -> tuple[StepRecord, ...]:
    """Return the steps that were set aside because of this interruption. Steps that were already set aside because of
    an earlier interruption are not included.
    """
    for test in (*record.tests, *record.earlier):
        if test.id == resumption.test_id:
            return tuple(step for sequence, step in test.set_aside if resumption.sets_aside(sequence))
    return ()
