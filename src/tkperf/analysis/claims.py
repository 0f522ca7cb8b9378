"""Claims: what a data sheet or an earlier run promises, checked against a run.

A claims file is TOML (docs/claims.md). Every claim ends as met, not met or not measured, with its
margin; a claim about a cell that was not measured is never met. A baseline under other conditions is
judged with a warning for each difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec

from tkperf.analysis.conditions import (
    explain_nothing_common,
    find_cut_short,
    find_differences,
    find_remarks,
)
from tkperf.analysis.flags import HOST_LIMITED, describe_disturbed
from tkperf.analysis.layout import (
    ACCESS,
    ARRIVAL,
    COMPRESSIBLE,
    DEPTH,
    JOBS,
    OFFERED,
    REGION,
    ZONES,
    Axis,
    find_axes,
)
from tkperf.analysis.results import CellResult, RunResult, SectionResult
from tkperf.errors import UsageError
from tkperf.importers import FIO_TEST
from tkperf.measurement import REPORTED_PERCENTILES
from tkperf.procedures import TESTS
from tkperf.quantity import LATENCY_MIN, QUANTITIES, Better, Direction, Quantity
from tkperf.strict import decode_strictly, shallow
from tkperf.units import format_block_size, format_count, format_mix, parse_size_bytes
from tkperf.workload import Access, Arrival, Workload

METRICS = tuple(
    key
    for key, quantity in QUANTITIES.items()
    if quantity.better is not Better.NEITHER and quantity != LATENCY_MIN
)
_PERCENTS = tuple(f"{percent:g}" for percent in REPORTED_PERCENTILES)
# Each is looked for in all of a run.
MOST_CLAIMS = 10_000


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One promise about one workload: ``metric`` is at least or at most a value.

    ``access`` to ``io_depth`` are needed only where a section has the same mix and block size with
    several of them; ``direction`` asks of a mix for its reads or writes alone.
    """

    test: Annotated[str, msgspec.Meta(min_length=1)]
    metric: str
    read_percent: Annotated[int, msgspec.Meta(ge=0, le=100)]
    block_size: str | Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
    at_least: float | None = None
    at_most: float | None = None
    section: str | None = None
    access: Access | None = None
    zones: str | None = None
    compressible_percent: Annotated[int, msgspec.Meta(ge=0, le=100)] | None = None
    region: str | None = None
    offered_iops: Annotated[float, msgspec.Meta(gt=0)] | None = None
    arrival: Arrival | None = None
    jobs: Annotated[int, msgspec.Meta(ge=1)] | None = None
    io_depth: Annotated[int, msgspec.Meta(ge=1)] | None = None
    direction: Direction = Direction.ALL
    source: str | None = None


class Quantiles(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a maker promises of a workload's latency: ``within_us`` by percent, one claim for each.

    ``{"99" = 500, "99.9" = 1000}``: 99 % of the I/Os take at most 500 us, 99.9 % at most 1,000 us.
    """

    test: Annotated[str, msgspec.Meta(min_length=1)]
    read_percent: Annotated[int, msgspec.Meta(ge=0, le=100)]
    block_size: str | Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
    within_us: Annotated[dict[str, float], msgspec.Meta(min_length=1)]
    section: str | None = None
    jobs: Annotated[int, msgspec.Meta(ge=1)] | None = None
    io_depth: Annotated[int, msgspec.Meta(ge=1)] | None = None
    offered_iops: Annotated[float, msgspec.Meta(gt=0)] | None = None
    direction: Direction = Direction.ALL
    source: str | None = None

    def claims(self) -> Iterator[Claim]:
        """In ascending order of the percentiles."""
        same = {
            key: getattr(self, key)
            for key in Claim.__struct_fields__
            if key in self.__struct_fields__
        }
        for percent in sorted(self.within_us, key=float):
            key = f"p{float(percent):g}_us"
            yield Claim(**same, metric=key, at_most=self.within_us[percent])


# What tells apart workloads of the same mix and block size, by the keys of a claim.
_CONDITIONS: dict[Axis, Callable[[Workload], object]] = {
    ACCESS: lambda work: work.access,
    ZONES: lambda work: work.zones_text or "even",
    COMPRESSIBLE: lambda work: work.compressible_percent or 0,
    REGION: lambda work: str(work.region or "all"),
    OFFERED: lambda work: work.offered_iops,
    ARRIVAL: lambda work: work.arrival,
    JOBS: lambda work: work.jobs,
    DEPTH: lambda work: work.io_depth,
}


class Baseline(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An earlier run: each of its cells must not be worse by more than ``within_percent``."""

    run: str
    within_percent: Annotated[float, msgspec.Meta(gt=0, lt=100)]


class ClaimsFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    claim: Annotated[tuple[Claim, ...], msgspec.Meta(max_length=MOST_CLAIMS)] = ()
    quantiles: Annotated[tuple[Quantiles, ...], msgspec.Meta(max_length=MOST_CLAIMS)] = ()
    baseline: Baseline | None = None


class State(StrEnum):
    MET = "met"
    NOT_MET = "not met"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What became of a claim.

    ``margin_percent`` is how far the value lies on the good side of the limit (negative: on the
    bad one), in percent of the limit. ``note`` says what a reader must know, such as that steady
    state was not reached.
    """

    claim: str
    source: str | None
    state: State
    limit: str
    value: float | None
    unit: str
    margin_percent: float | None
    note: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What became of all claims; ``warnings`` are what a reader of the findings must know."""

    findings: tuple[Finding, ...]
    warnings: tuple[str, ...]


def parse_claims(text: str, *, file: str) -> ClaimsFile:
    """Decode a claims file; ``file`` is named in errors. Quantiles become claims after the others.

    Raises:
        UsageError: not TOML, a typo, or a claim that says nothing.
    """
    claims = decode_strictly(
        lambda: msgspec.toml.decode(shallow(text), type=ClaimsFile),
        what=f"claims {file}",
        language="TOML",
    )
    for number, promised in enumerate(claims.quantiles, start=1):
        for percent in promised.within_us:
            if percent not in _PERCENTS:
                raise UsageError(
                    f"claims {file}, quantiles {number}, key within_us: '{percent}' is not one of "
                    f"{', '.join(_PERCENTS)}"
                )
    of_quantiles = [claim for quantiles in claims.quantiles for claim in quantiles.claims()]
    claims = msgspec.structs.replace(claims, claim=(*claims.claim, *of_quantiles), quantiles=())
    if not claims.claim and claims.baseline is None:
        raise UsageError(f"claims {file}: holds no [[claim]], no [[quantiles]] and no [baseline]")
    written = len(claims.claim) - len(of_quantiles)
    for number, claim in enumerate(claims.claim, start=1):
        where = f"claims {file}, " + (
            f"claim {number}" if number <= written else f"quantiles, {claim.metric}"
        )
        if claim.metric not in METRICS:
            metrics = ", ".join(METRICS)
            raise UsageError(f"{where}, key metric: '{claim.metric}' is not one of {metrics}")
        if (claim.at_least is None) == (claim.at_most is None):
            raise UsageError(f"{where}: give either at_least or at_most")
        for key, limit in (("at_least", claim.at_least), ("at_most", claim.at_most)):
            if limit is not None and not (math.isfinite(limit) and limit >= 0):
                raise UsageError(f"{where}, key {key}: {limit} is not a finite number from 0 on")
        try:
            parse_size_bytes(str(claim.block_size))
        except UsageError as error:
            raise UsageError(f"{where}, key block_size: {error}") from None
    return claims


def check_claims(
    claims: ClaimsFile, result: RunResult, *, load: Callable[[Path], RunResult], folder: Path
) -> Checked:
    """Every claim checked, then the baseline's.

    Args:
        load: reads the baseline's run file.
        folder: what the baseline's path is relative to.

    Raises:
        UsageError, RunFileError: a test that nobody knows, or the baseline cannot be read, or has
            nothing to check or to check with.
    """
    _require_tests(claims, result)
    cells = _by_place(result)
    findings = [_check(claim, cells) for claim in claims.claim]
    warnings = [*find_cut_short("run", result)]
    if claims.baseline is not None:
        path = folder / claims.baseline.run
        earlier = load(path)
        promises = list(_promises_of(earlier, claims.baseline))
        if not promises:
            raise UsageError(
                f"baseline {path}: nothing could be checked, it holds no result; give a run that "
                "has finished a test"
            )
        if because := explain_nothing_common((earlier, result)):
            raise UsageError(f"baseline {path}: it has no test in common with the run{because}")
        findings += [_check(promise, cells, note) for promise, note in promises]
        warnings += find_differences(("baseline", "run"), (earlier, result))
        warnings += find_remarks("baseline", earlier)
        left = sum(len(section.cells) for test in earlier.tests for section in test.sections)
        left -= len(promises)
        if left:
            warnings.append(
                f"baseline: {format_count(left, 'result')} without a value, so not checked"
            )
    return Checked(findings=tuple(findings), warnings=tuple(warnings))


def _require_tests(claims: ClaimsFile, result: RunResult) -> None:
    """A test that the run has not may be one of another run; a name that nobody knows is a typo."""
    tests = dict.fromkeys((*(t.name for t in TESTS), *(t.name for t in result.tests), FIO_TEST))
    for number, claim in enumerate(claims.claim, start=1):
        if claim.test not in tests:
            names = ", ".join(tests)
            raise UsageError(f"claim {number}, key test: '{claim.test}' is not one of {names}")


def _promises_of(earlier: RunResult, baseline: Baseline) -> Iterator[tuple[Claim, str | None]]:
    """A claim for each cell of an earlier run, in the measure that its test is about, and a note."""
    share = baseline.within_percent / 100
    source = f"{earlier.info.name} within {baseline.within_percent:g} %"
    for test in earlier.tests:
        for section in test.sections:
            metric = next(key for key in (*section.plan.quantities, "iops") if key in METRICS)
            conditions = _conditions_of(section)
            for cell in section.cells:
                unsteady = section.steady_of(cell.workload) is False
                note = "the baseline was not steady" if unsteady else None
                quantity = QUANTITIES[metric]
                value = _value(cell, quantity)
                if value is None:
                    continue
                is_latency = quantity.better is Better.LOWER
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
                yield claim, note


def _conditions_of(section: SectionResult) -> Callable[[Workload], dict[str, Any]]:
    """What a claim must say beside mix and block size to be of one cell of the section."""
    told_apart_by = [
        axis for axis in find_axes(cell.workload for cell in section.cells) if axis in _CONDITIONS
    ]
    return lambda workload: {axis.key: _CONDITIONS[axis](workload) for axis in told_apart_by}


_NAMED = {
    ACCESS: "{}", ZONES: "zones {}", COMPRESSIBLE: "{} % compressible", REGION: "within {}",
    OFFERED: "{:,.6g} IOPS offered", ARRIVAL: "{}", JOBS: "TC{}", DEPTH: "QD{}",
}  # fmt: skip
_WHOLE_STREAM = "of the whole stream, its fresh beginning included"


def _check(claim: Claim, cells: Places, note: str | None = None) -> Finding:
    """What became of a claim; ``note`` is what is known before."""
    size_bytes = parse_size_bytes(str(claim.block_size))
    named = f"{claim.test} {format_mix(claim.read_percent)} {format_block_size(size_bytes)} "
    named += (
        claim.metric
        if claim.direction is Direction.ALL
        else f"{claim.metric} of {claim.direction}s"
    )
    named += "".join(
        f" {_NAMED[axis].format(value)}"
        for axis in _CONDITIONS
        if (value := getattr(claim, axis.key)) is not None
    )
    named += "" if claim.offered_iops is None else f" at {claim.offered_iops:,.6g} IOPS offered"
    sign, limit = ("<=", claim.at_most) if claim.at_least is None else (">=", claim.at_least)
    assert limit is not None
    place = (claim.test, claim.section, claim.read_percent, size_bytes)
    several = [
        candidate for candidate in cells.get(place, ()) if _is_meant(claim, candidate[1].workload)
    ]
    measured = several[0] if len(several) == 1 else None
    quantity = QUANTITIES[claim.metric]
    value = None if measured is None else _value(measured[1], quantity, claim.direction)
    state, margin, notes = State.NOT_MEASURED, None, [note]
    if len(several) > 1:
        differing = [axis.key for axis in find_axes(cell.workload for _, cell in several)]
        notes.append(f"measured of several workloads: name {', '.join(differing)}")
    if value is not None and measured is not None:
        good = value <= limit if sign == "<=" else value >= limit
        state = State.MET if good else State.NOT_MET
        margin = _margin_percent(limit - value if sign == "<=" else value - limit, limit)
        section, cell = measured
        unsteady = section.steady_of(cell.workload) is False
        notes.append("steady state was not reached" if unsteady else None)
        notes.append(_WHOLE_STREAM if len(section.slices) > 1 and not section.window else None)
        notes.append(HOST_LIMITED if cell.host_limited else None)
        notes.append(describe_disturbed(cell.disturbances) if cell.disturbances else None)
    return Finding(
        claim=f"{claim.section}: {named}" if claim.section else named,
        source=claim.source,
        state=state,
        limit=f"{sign} {limit:,.6g} {quantity.unit}",
        value=value,
        unit=quantity.unit,
        margin_percent=margin,
        note="; ".join(text for text in notes if text) or None,
    )


def _margin_percent(gap: float, limit: float) -> float | None:
    margin = 100 * gap / limit if limit else math.inf
    return margin if math.isfinite(margin) else None


def _is_meant(claim: Claim, workload: Workload) -> bool:
    return all(
        getattr(claim, axis.key) in (None, value(workload)) for axis, value in _CONDITIONS.items()
    )


Places = dict[tuple[str, str | None, int, int], list[tuple[SectionResult, CellResult]]]


def _by_place(result: RunResult) -> Places:
    """The cells that claims are about: in the section one names, else in the first that has it."""
    by_place: Places = {}
    for test in result.tests:
        for section in test.sections:
            here: Places = {}
            for cell in section.cells:
                work = cell.workload
                for name in (section.name, None):
                    place = (test.name, name, work.read_percent, work.block_size_bytes)
                    here.setdefault(place, []).append((section, cell))
            for place, cells in here.items():
                by_place.setdefault(place, cells)
    return by_place


def _value(
    cell: CellResult, quantity: Quantity, direction: Direction = Direction.ALL
) -> float | None:
    value = cell.value(quantity, direction)
    return value if value is not None and math.isfinite(value) else None
