"""Check claims against a run. A claim is a promise of a data sheet, or the requirement that a result is not worse than
in an earlier run.

A claims file is TOML (docs/reference/claims.md). Every claim is met, not met, not measured or inconclusive. The state
depends only on the value. The result also contains the margin, and states whether the opposite state is possible within
the uncertainty of the value. A claim is never met if the cell was not measured or if the section of the cell did not
end. If a baseline was measured under other conditions, the check gives a warning for each difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from tkperf.analysis.characteristics import AFTER_RECOVERY, CHARACTERISTICS, RECOVERY, Characteristic
from tkperf.analysis.claim_results import (
    Checked,
    ClaimResult,
    ClaimState,
    build_finding,
    explain_not_measured,
    judge_claim,
    limit_of,
)
from tkperf.analysis.claims_file import METRICS, Baseline, Claim, ClaimsFile
from tkperf.analysis.comparing.comparison import explain_nothing_common
from tkperf.analysis.loads_together import is_latency_sought
from tkperf.analysis.results import CellResult, RunResult, SectionResult, TestResult
from tkperf.analysis.uncertainty.estimate import NOT_KNOWN, Uncertainty, scale
from tkperf.analysis.workload_axes import (
    ACCESS,
    ARRIVAL,
    COMPRESSIBLE,
    DEPTH,
    JOBS,
    OFFERED,
    REGION,
    STREAM,
    ZONES,
    WorkloadAxis,
    find_axes,
    name_stream,
)
from tkperf.interop import FIO_TEST
from tkperf.model.disturbance.io import HOST_LIMITED, describe_disturbed
from tkperf.model.errors import UsageError
from tkperf.model.figures import CAUTION_WORDS
from tkperf.model.measurement import TOO_FEW_IOS
from tkperf.model.quantity import LATENCY_MEAN, PERCENTILES, QUANTITIES, Better, Direction, Quantity
from tkperf.model.units import NOT_FOUND, format_block_size, format_mix
from tkperf.model.workload import Workload
from tkperf.procedures import TESTS

# Fields that distinguish workloads with the same mix and block size. For each field, the mapping contains the form in
# which the name of a claim shows the field. A claims file uses these fields as keys.
_CONDITIONS: dict[WorkloadAxis, tuple[Callable[[Workload], object], str]] = {
    STREAM: (lambda work: name_stream(work) if work.together else None, "of stream {}"),
    ACCESS: (lambda work: work.access, "{}"),
    ZONES: (lambda work: work.zones_text or "even", "zones {}"),
    COMPRESSIBLE: (lambda work: work.compressible_percent or 0, "{} % compressible"),
    REGION: (lambda work: str(work.region or "all"), "within {}"),
    OFFERED: (lambda work: work.offered_iops, "at {:,.6g} IOPS offered"),
    ARRIVAL: (lambda work: work.arrival, "{}"),
    JOBS: (lambda work: work.jobs, "TC{}"),
    DEPTH: (lambda work: work.io_depth, "QD{}"),
}


NOT_ENDED = "the section did not end: figures so far"


def check_claims(claims: ClaimsFile, result: RunResult, *, load: Callable[[Path], RunResult], folder: Path) -> Checked:
    """Check every claim, and then every cell of the baseline.

    Args:
        load: the function that reads the run file of the baseline.
        folder: the folder to which the path of the baseline is relative.

    Raises:
        UsageError, RunFileError: a claim names an unknown test, or the baseline cannot be used. The baseline cannot be
            used if its run file cannot be read, contains no result to check, or has no test in common with the run.
    """
    _require_tests(claims, result)
    cells = _by_place(result)
    findings = [
        _check_course(claim, result) if claim.metric in CHARACTERISTICS else _check(claim, result, cells)
        for claim in claims.claim
    ]
    earlier: RunResult | None = None
    left = 0
    if claims.baseline is not None:
        path = folder / claims.baseline.run
        earlier = load(path)
        promises = list(_promises_of(earlier, claims.baseline))
        if not promises:
            raise UsageError(
                f"baseline {path}: nothing could be checked, because the baseline run has no result. Name a run that "
                "has finished a test"
            )
        if because := explain_nothing_common((earlier, result)):
            raise UsageError(f"baseline {path}: this run and the checked run have no test in common{because}")
        findings += [_check(promise, result, cells, note, of_limit) for promise, note, of_limit in promises]
        left = sum(len(section.cells) for test in earlier.tests for section in _judged_sections(test))
        left -= len(promises)
    return Checked(claim_results=tuple(findings), result=result, baseline=earlier, not_checked=left)


def _require_tests(claims: ClaimsFile, result: RunResult) -> None:
    """Refuse the name of an unknown test, which is a typing error. A known test that this run lacks is accepted,
    because one claims file can be used for several runs.
    """
    tests = dict.fromkeys((*(t.name for t in TESTS), *(t.name for t in result.tests), FIO_TEST))
    for number, claim in enumerate(claims.claim, start=1):
        if claim.test not in tests:
            names = ", ".join(tests)
            raise UsageError(
                f"claim {number}, key test: '{claim.test}' is not the name of a test. Choose one of {names}"
            )


def _promises_of(earlier: RunResult, baseline: Baseline) -> Iterator[tuple[Claim, str | None, Uncertainty]]:
    """Yield a claim for each cell of an earlier run, with a note and the uncertainty of the limit.

    The measure of each claim is the main quantity of the test. For a stream with an offered rate and for flushes, the
    measure is the mean latency, because the rate of these I/Os is set in advance.
    """
    share = baseline.within_percent / 100
    source = f"{earlier.info.name} within {baseline.within_percent:g} %"
    for test in earlier.tests:
        for section in _judged_sections(test):
            of_test = next(key for key in (*section.plan.quantities, "iops") if key in METRICS)
            conditions = _conditions_of(section)
            for cell in section.cells:
                unsteady = section.steady_of(cell.workload) is False
                note = "the baseline was not steady" if unsteady else None
                note = note if section.complete else "of the baseline, too, " + NOT_ENDED
                of_load = [f"of the baseline: {text}" for text in _describe_cautions(section)]
                note = "; ".join(filter(None, (note, *of_load))) or None
                is_paced = cell.workload.stream is not None and is_latency_sought(cell.workload)
                metric = LATENCY_MEAN.key if is_paced else of_test
                quantity = QUANTITIES[metric]
                value = _value(cell, quantity)
                if value is None:
                    continue
                is_latency = quantity.better is Better.LOWER
                of_limit = scale(cell.uncertainty_of(quantity), 1 + share if is_latency else 1 - share)
                claim = Claim(
                    test=test.name,
                    section=section.name,
                    metric=metric,
                    read_percent=cell.workload.read_percent,
                    block_size=str(cell.workload.block_size_bytes),
                    **conditions(cell.workload),
                    at_least=None if is_latency else value * (1 - share),
                    at_most=value * (1 + share) if is_latency else None,
                    source=source,
                )
                yield claim, note, of_limit or Uncertainty(reason=NOT_KNOWN)


def _conditions_of(section: SectionResult) -> Callable[[Workload], dict[str, Any]]:
    """Return a function that returns, for a workload, the keys that identify the cell in a claim. These keys are needed
    in addition to the mix and the block size.
    """
    axes = [axis for axis in find_axes(cell.workload for cell in section.cells) if axis in _CONDITIONS]
    return lambda workload: {axis.key: _CONDITIONS[axis][0](workload) for axis in axes}


_WHOLE_STREAM = "of the whole stream, its fresh beginning included"


def _check(
    claim: Claim, result: RunResult, cells: Places, note: str | None = None, of_limit: Uncertainty | None = None
) -> ClaimResult:
    """Check a claim about a cell.

    Args:
        note: a remark that begins the note of the result.
        of_limit: the uncertainty of the limit, or None if the limit is exact.
    """
    several = [candidate for candidate in _find_place(claim, cells) if _is_meant(claim, candidate[1].workload)]
    measured = several[0] if len(several) == 1 else None
    quantity = QUANTITIES[claim.metric]
    value = None if measured is None else _value(measured[1], quantity, claim.direction)
    state, notes = ClaimState.NOT_MEASURED, [note, *_several(cell.workload for _, cell in several)]
    if not several:
        notes.append(explain_not_measured(claim, result))
    elif measured is not None and value is None and quantity in PERCENTILES:
        commonest = _value(measured[1], PERCENTILES[0], claim.direction)
        notes.append(TOO_FEW_IOS if commonest is not None else None)
    if value is not None and measured is not None:
        section, cell = measured
        state = judge_claim(claim, value) if section.complete else ClaimState.INCONCLUSIVE
        notes.append(None if section.complete else NOT_ENDED)
        unsteady = section.steady_of(cell.workload) is False
        notes.append("steady state was not reached" if unsteady else None)
        notes += _describe_cautions(section)
        notes.append(_WHOLE_STREAM if len(section.slices) > 1 and not section.window else None)
        notes.append(HOST_LIMITED if cell.host_limited else None)
        notes.append(describe_disturbed(cell.disturbances) if cell.disturbances else None)
    known = None if measured is None else measured[1].uncertainty_of(quantity, claim.direction)
    by_round: list[float | None] = []
    if measured is not None and quantity in PERCENTILES:
        by_round = _by_round(*measured, quantity, claim.direction)
    workload = None if measured is None else measured[1].workload
    finding = build_finding(
        _name(claim), claim, quantity, state, value, notes, known, of_limit, by_round, workload=workload
    )
    if measured is None:
        return finding
    section, cell = measured
    return replace(finding, is_steady=section.steady_of(cell.workload), load_cautions=section.plan.cautions)


def _find_place(claim: Claim, cells: Places) -> Sequence[tuple[SectionResult, CellResult]]:
    """Return the cells that a claim can mean. The cells are found by mix and block size. If the claim lacks one of
    these keys, the function searches all cells of the section.
    """
    read_percent, size_bytes = claim.read_percent, claim.size_bytes()
    if None not in (read_percent, size_bytes):
        return cells.get((claim.test, claim.section, read_percent, size_bytes), ())
    return [
        (section, cell)
        for section, cell in cells.get((claim.test, claim.section, None, None), ())
        if read_percent in (None, cell.workload.read_percent) and size_bytes in (None, cell.workload.block_size_bytes)
    ]


def _describe_cautions(section: SectionResult) -> Iterator[str]:
    """Yield the cautions about the load of a section, in the words that the note of a claim's result uses."""
    return (CAUTION_WORDS[caution] for caution in section.plan.cautions)


def _by_round(section: SectionResult, cell: CellResult, quantity: Quantity, direction: Direction) -> list[float | None]:
    """Return the value of a cell in each round or slice of the window. If there is no window, return the values of all
    rounds.
    """
    parts = [
        *((one.number, of_round) for one in section.rounds for of_round in one.cells),
        *((one.number, one.values) for one in section.slices),
    ]
    window = frozenset(section.window)
    return [
        of_part.value(quantity, direction)
        for number, of_part in parts
        if of_part.workload == cell.workload and (not window or number in window)
    ]


def _check_course(claim: Claim, result: RunResult) -> ClaimResult:
    """Check a claim about a characteristic of a section over time.

    If the characteristic was not found, the bounds of its value may still decide the claim.
    """
    meant = _find_meant(claim, result)
    names = list(dict.fromkeys(section.name for section, _ in meant))
    measure = CHARACTERISTICS[claim.metric]
    notes: list[str | None]
    if len(meant) != 1:
        if len(names) > 1:
            notes = [f"found in several sections: name section, one of {', '.join(names)}"]
        else:
            notes = [*_several(found.workload for _, found in meant)]
            notes.append(None if meant else explain_not_measured(claim, result))
        return build_finding(_name(claim), claim, measure, ClaimState.NOT_MEASURED, None, notes)
    ((section, found),) = meant
    if claim.not_found:
        state = ClaimState.MET if found.value is None else ClaimState.NOT_MET
    elif found.value is not None:
        state = judge_claim(claim, found.value)
    else:
        state = _judge_bounds(claim, found)
    notes = [None if found.value is not None else _describe_not_found(found)]
    notes += _describe_cautions(section)
    if not section.complete:
        notes.append(NOT_ENDED)
        if state is ClaimState.NOT_MEASURED or not _holds(claim, found, state):
            state = ClaimState.INCONCLUSIVE
    finding = build_finding(
        _name(claim), claim, measure, state, found.value, notes, found.uncertainty, workload=found.workload
    )
    return replace(finding, load_cautions=section.plan.cautions)


def _holds(claim: Claim, found: Characteristic, state: ClaimState) -> bool:
    """Return whether a result from an unfinished section is final. A final result is one that no later measurement
    could have changed.

    A result is final if the recovery was observed or took longer than the claim allows. A result is also final if a
    rate fell below the limit of the claim.
    """
    if found.measure is RECOVERY:
        return not (claim.not_found and found.value is None)
    return found.measure is AFTER_RECOVERY and state is ClaimState.NOT_MET and not claim.not_found


def _find_meant(claim: Claim, result: RunResult) -> list[tuple[SectionResult, Characteristic]]:
    """Return the characteristics that a claim can mean. If the claim names a section, return only those of this
    section.
    """
    size_bytes = claim.size_bytes()
    return [
        (section, found)
        for test in result.tests
        for section in _judged_sections(test)
        if test.name == claim.test and claim.section in (None, section.name)
        for found in section.characteristics
        if found.key == claim.metric
        and claim.read_percent in (None, found.workload.read_percent)
        and size_bytes in (None, found.workload.block_size_bytes)
        and _is_meant(claim, found.workload)
    ]


def _judge_bounds(claim: Claim, found: Characteristic) -> ClaimState:
    """Judge a characteristic without a value. The judgement uses the bounds: the true value is at or above ``at_least``
    and below ``at_most``.
    """
    limit = limit_of(claim)
    if found.at_least is not None and found.at_least >= limit:
        return ClaimState.MET if claim.at_least is not None else ClaimState.NOT_MET
    if found.at_most is not None and found.at_most <= limit:
        return ClaimState.NOT_MET if claim.at_least is not None else ClaimState.MET
    return ClaimState.NOT_MEASURED


def _describe_not_found(found: Characteristic) -> str:
    bounded = found.at_least is not None or found.at_most is not None
    return f"{NOT_FOUND}: {found.text()} {found.measure.unit}".rstrip() if bounded else NOT_FOUND


def _several(workloads: Iterable[Workload]) -> Iterator[str]:
    several = list(workloads)
    if len(several) > 1:
        differing = [axis.key for axis in find_axes(several)]
        yield f"measured of several workloads: name {', '.join(differing)}"


def _name(claim: Claim) -> str:
    """Return the claim in words, such as ``iops 0/100 4k p99_us of writes QD1``."""
    size_bytes = claim.size_bytes()
    words = [
        claim.test,
        "" if claim.read_percent is None else format_mix(claim.read_percent),
        "" if size_bytes is None else format_block_size(size_bytes),
        claim.metric,
        "" if claim.direction is Direction.ALL else f"of {claim.direction}s",
        *(
            form.format(value)
            for axis, (_, form) in _CONDITIONS.items()
            if (value := getattr(claim, axis.key)) is not None
        ),
    ]
    return " ".join(filter(None, words))


def _is_meant(claim: Claim, workload: Workload) -> bool:
    if workload.is_combination and claim.stream is None:
        # The mix and the block size of a combination are only bounds, and do not describe the I/Os of the combination.
        return False
    return all(getattr(claim, axis.key) in (None, value(workload)) for axis, (value, _) in _CONDITIONS.items())


def _judged_sections(test: TestResult) -> list[SectionResult]:
    return [section for section in test.sections if not section.plan.prepares]


Places = dict[tuple[str, str | None, int | None, int | None], list[tuple[SectionResult, CellResult]]]


def _by_place(result: RunResult) -> Places:
    """Return all cells that a claim can mean, with the places of the cells as keys. The cells of preconditioning are
    omitted.

    If a claim does not name a section, the claim means the first section that contains such cells.
    """
    by_place: Places = {}
    for test in result.tests:
        for section in _judged_sections(test):
            here: Places = {}
            for cell in section.cells:
                work = cell.workload
                loads = [(work.read_percent, work.block_size_bytes), *([(None, None)] if work.together else ())]
                for name, load in product((section.name, None), loads):
                    here.setdefault((test.name, name, *load), []).append((section, cell))
            for place, cells in here.items():
                by_place.setdefault(place, cells)
    return by_place


def _value(cell: CellResult, quantity: Quantity, direction: Direction = Direction.ALL) -> float | None:
    value = cell.value(quantity, direction)
    return value if value is not None and math.isfinite(value) else None
