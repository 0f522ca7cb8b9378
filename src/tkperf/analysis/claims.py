"""Claims: what a data sheet or an earlier run promises, checked against a run.

A claims file is TOML (docs/claims.md). Every claim ends as met, not met or not measured, with its
margin; a claim about a cell that was not measured is never met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from tkperf.analysis.results import CellResult, RunResult, SectionResult
from tkperf.errors import UsageError
from tkperf.measurement import REPORTED_PERCENTILES
from tkperf.strict import describe_mistake
from tkperf.units import format_block_size, format_mix, parse_size_bytes

RATES = ("iops", "megabytes_per_s")
LATENCIES = (
    "latency_mean_us",
    "latency_max_us",
    *(f"p{percent:g}_us" for percent in REPORTED_PERCENTILES),
)
TESTS = Literal["iops", "lat", "tp", "writesat"]


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One promise about one cell: ``metric`` is at least or at most a value."""

    test: TESTS
    metric: str
    read_percent: Annotated[int, msgspec.Meta(ge=0, le=100)]
    block_size: str
    at_least: float | None = None
    at_most: float | None = None
    section: str | None = None
    source: str | None = None


class Baseline(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An earlier run: each of its cells must not be worse by more than ``within_percent``."""

    run: str
    within_percent: Annotated[float, msgspec.Meta(gt=0)]


class ClaimsFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    claim: tuple[Claim, ...] = ()
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


def parse_claims(text: str, *, file: str) -> ClaimsFile:
    """Decode a claims file; ``file`` is named in errors.

    Raises:
        UsageError: not TOML, a typo, or a claim that says nothing.
    """
    try:
        claims = msgspec.toml.decode(text, type=ClaimsFile)
    except msgspec.ValidationError as error:
        raise UsageError(f"claims {file}{describe_mistake(error)}") from error
    except msgspec.DecodeError as error:
        raise UsageError(f"claims {file}: not valid TOML: {error}") from error
    if not claims.claim and claims.baseline is None:
        raise UsageError(f"claims {file}: holds no [[claim]] and no [baseline]")
    for number, claim in enumerate(claims.claim, start=1):
        where = f"claims {file}, claim {number}"
        if claim.metric not in (*RATES, *LATENCIES):
            known = ", ".join((*RATES, *LATENCIES))
            raise UsageError(f"{where}, key metric: '{claim.metric}' is not one of {known}")
        if (claim.at_least is None) == (claim.at_most is None):
            raise UsageError(f"{where}: give either at_least or at_most")
        try:
            parse_size_bytes(claim.block_size)
        except UsageError as error:
            raise UsageError(f"{where}, key block_size: {error}") from None
    return claims


def check_claims(
    claims: ClaimsFile, result: RunResult, *, load: Callable[[Path], RunResult], folder: Path
) -> tuple[Finding, ...]:
    """Every claim checked, then the baseline's.

    Args:
        load: reads the baseline's run file.
        folder: what the baseline's path is relative to.

    Raises:
        UsageError, RunFileError: the baseline cannot be read.
    """
    findings = [_check(claim, result) for claim in claims.claim]
    if claims.baseline is not None:
        earlier = load(folder / claims.baseline.run)
        promises = _promises_of(earlier, claims.baseline)
        findings += [_check(promise, result) for promise in promises]
    return tuple(findings)


def _promises_of(earlier: RunResult, baseline: Baseline) -> Iterator[Claim]:
    """A claim for each cell of an earlier run, in the measure that its test is about."""
    share = baseline.within_percent / 100
    source = f"{earlier.info.name} within {baseline.within_percent:g} %"
    metrics = {"lat": "latency_mean_us", "tp": "megabytes_per_s"}
    for test in earlier.tests:
        metric = metrics.get(test.name, "iops")
        for section in test.sections:
            for cell in section.cells:
                value = _value(cell, metric)
                if value is None or test.name not in ("iops", "lat", "tp", "writesat"):
                    continue
                is_latency = metric in LATENCIES
                yield Claim(
                    test=test.name,  # type: ignore[arg-type]
                    section=section.name,
                    metric=metric,
                    read_percent=cell.read_percent,
                    block_size=str(cell.block_size_bytes),
                    at_least=None if is_latency else value * (1 - share),
                    at_most=value * (1 + share) if is_latency else None,
                    source=source,
                )


def _check(claim: Claim, result: RunResult) -> Finding:
    size_bytes = parse_size_bytes(claim.block_size)
    named = f"{claim.test} {format_mix(claim.read_percent)} {format_block_size(size_bytes)} "
    named += claim.metric
    sign, limit = ("<=", claim.at_most) if claim.at_least is None else (">=", claim.at_least)
    assert limit is not None
    found = _find(claim, size_bytes, result)
    value = None if found is None else _value(found[1], claim.metric)
    unit = "us" if claim.metric in LATENCIES else {"iops": "IOPS"}.get(claim.metric, "MB/s")
    state, margin, note = State.NOT_MEASURED, None, None
    if value is not None and found is not None:
        good = value <= limit if sign == "<=" else value >= limit
        state = State.MET if good else State.NOT_MET
        gap = limit - value if sign == "<=" else value - limit
        margin = 100 * gap / limit if limit else None
        if found[0].steady is False:
            note = "steady state was not reached"
    return Finding(
        claim=f"{claim.section}: {named}" if claim.section else named,
        source=claim.source,
        state=state,
        limit=f"{sign} {limit:,.6g} {unit}",
        value=value,
        unit=unit,
        margin_percent=margin,
        note=note,
    )


def _find(
    claim: Claim, size_bytes: int, result: RunResult
) -> tuple[SectionResult, CellResult] | None:
    """The cell a claim is about: in the section it names, else in the first that has it."""
    for test in result.tests:
        for section in test.sections:
            if test.name != claim.test or claim.section not in (None, section.name):
                continue
            for cell in section.cells:
                if (cell.read_percent, cell.block_size_bytes) == (claim.read_percent, size_bytes):
                    return section, cell
    return None


def _value(cell: CellResult, metric: str) -> float | None:
    if metric.startswith("p"):
        return cell.percentiles_us[metric.removesuffix("_us")]
    value: float | None = getattr(cell, metric)
    return value
