"""Build texts about claims: their names, limits and values, the distance between a value and its limit, and the result
of a run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tkperf.analysis.characteristics import CHARACTERISTICS
from tkperf.analysis.claim_results import Checked, CheckedFile, ClaimKind, ClaimResult, Doubt, limit_of
from tkperf.analysis.workload_axes import ACCESS, AXES, BLOCKS, COMBINATION, MIX, STREAM
from tkperf.model.quantity import QUANTITIES, Direction, Measure
from tkperf.model.units import (
    NOT_FOUND,
    NOT_MEASURED,
    find_digit_place,
    format_block_size_kib,
    format_to_place,
    unit_for_people,
)
from tkperf.page.naming import name_figure, name_load
from tkperf.page.verdict_texts import NoteLevel

NOT_CHECKED = "could not be checked"
_SMALLEST_MARGIN = 0.05  # in percent
_GREATEST_MARGIN = 100_000  # in percent; a larger distance is possible only if the limit is close to 0
_MOST_SIGMAS = 10  # a larger number would not tell the reader more
_MOST_FINER = 6  # digits that are added to the usual digits to show that a value differs from its limit
WITHIN_UNCERTAINTY = "within the uncertainty"


class ClaimText(NamedTuple):
    """The finding about a claim in words."""

    limit: str
    measured: str
    margin: str
    state: str


def describe_claim(finding: ClaimResult) -> ClaimText:
    """Return the finding about a claim in words. The text begins with the state, for example ``met`` or ``met, within
    the uncertainty``.
    """
    state = finding.state.value
    margin = describe_margin(finding.margin_percent)
    sigmas = finding.margin_sigmas
    if sigmas is not None:
        many = f"{abs(sigmas):.1f}" if abs(sigmas) <= _MOST_SIGMAS else f"over {_MOST_SIGMAS}"
        margin = f"{margin}, {many} sigma"
    return ClaimText(
        limit=describe_limit(finding),
        measured=describe_measured(finding),
        margin=margin,
        state=f"{state}, {WITHIN_UNCERTAINTY}" if finding.certain is False else state,
    )


def name_claims(findings: Iterable[ClaimResult]) -> dict[str, str]:
    """Return the name of each claim, with the title of the claim in the file as the key: ``4 KiB random read IOPS``.

    If two names would be equal, each of them also contains the section or the test.
    """
    by_claim: dict[str, ClaimResult] = {}
    for finding in findings:
        known = by_claim.get(finding.claim)
        if known is None or known.workload is None:
            by_claim[finding.claim] = finding
    names = {claim: _name(finding) for claim, finding in by_claim.items()}
    places = {claim: one.about.section or one.about.test for claim, one in by_claim.items()}
    for more in (places, {claim: claim for claim in by_claim}):
        times = Counter(names.values())
        names = {claim: f"{name} ({more[claim]})" if times[name] > 1 else name for claim, name in names.items()}
    return names


def _name(finding: ClaimResult) -> str:
    claim, workload = finding.about, finding.workload
    measure = measure_of(finding)
    size_bytes = claim.size_bytes()
    if workload is not None:
        load = name_figure(workload)
        conditions = [
            axis.words(workload)
            for axis in AXES
            if axis not in (COMBINATION, STREAM, ACCESS, BLOCKS, MIX) and getattr(claim, axis.key, None) is not None
        ]
    else:
        blocks = "" if size_bytes is None else f"{format_block_size_kib(size_bytes)} KiB"
        load, conditions = name_load(blocks, claim.access, claim.read_percent), []
        load = load or claim.stream or claim.section or claim.test
    joined = ", " if "," in load or claim.metric in CHARACTERISTICS else " "
    of = "" if claim.direction is Direction.ALL else f" of {claim.direction}s"
    return ", ".join((joined.join(filter(None, (load, measure.label + of))), *conditions))


def measure_of(finding: ClaimResult) -> Measure:
    return QUANTITIES.get(finding.about.metric) or CHARACTERISTICS[finding.about.metric]


def describe_limit(finding: ClaimResult, after: str = "") -> str:
    """Return the limit of a claim with its unit: ``≥ 500 MB/s``. If the name before the limit already ends with the
    unit, return ``≥ 75,000``.
    """
    claim, unit = finding.about, measure_of(finding).unit
    if claim.not_found:
        return NOT_FOUND
    limit = limit_of(claim)
    number = f"{limit:,.6g}" if limit < 10**6 else f"{limit:,.0f}"
    sign = "≤" if claim.at_least is None else "≥"
    return " ".join(filter(None, (sign, number, "" if after.endswith(unit) else unit)))


def describe_measured(finding: ClaimResult) -> str:
    """Return the value with its unit. The value has enough digits to show whether it lies above or below the limit."""
    if finding.value is None:
        return NOT_MEASURED
    return f"{format_measured(finding)} {unit_for_people(finding.unit)}".rstrip()


def format_measured(finding: ClaimResult) -> str:
    """Return the value in the form of ``describe_measured``, without its unit."""
    if finding.value is None:
        return NOT_MEASURED
    place = find_digit_place(finding.value)
    gap = abs(finding.value * (finding.margin_percent or 0) / 100)
    if gap:
        place = max(min(place, find_digit_place(gap) + 2), place - _MOST_FINER)
    return format_to_place(finding.value, place)


def describe_margin(margin: float | None) -> str:
    """Return a margin in words: ``+12.3 %``. A margin below 0.05 % is shown with one significant digit. A very large
    margin is shown without decimals.
    """
    if margin is None:
        return NOT_MEASURED
    if not margin:
        return "0.0 %"
    if abs(margin) > _GREATEST_MARGIN:
        return f"beyond {math.copysign(_GREATEST_MARGIN, margin):+,.0f} %"
    return f"{margin:+,.1f} %" if abs(margin) >= _SMALLEST_MARGIN else f"{margin:+.1g} %"


def name_columns(files: Sequence[CheckedFile]) -> dict[str, str]:
    """Return the column heading of each claim, with the title of the claim as the key: ``4 KiB random read IOPS ≥
    75,000``.
    """
    findings = [finding for one in files if one.checked for finding in one.checked.claim_results]
    names = name_claims(findings)
    return {
        finding.title: f"{names[finding.claim]} {describe_limit(finding, names[finding.claim])}" for finding in findings
    }


def describe_cells(checked: Checked | None) -> list[tuple[str, ClaimKind]]:
    """Return the text of each finding, such as ``not steady, met +12.3 %``, with its outcome. Findings about claims
    with the same title count as one finding. The result is empty if the run was not checked.
    """
    if checked is None:
        return []
    return [(_describe_cell(checked, one), checked.judge(one)) for one in checked.by_title.values()]


def _describe_cell(checked: Checked, finding: ClaimResult) -> str:
    state = finding.state.value
    if finding.margin_percent is not None:
        state += f" {describe_margin(finding.margin_percent)}"
    return ", ".join((*list_doubts(checked, finding), state))


def list_doubts(checked: Checked, finding: ClaimResult) -> Iterator[Doubt]:
    """Yield the reasons to doubt the value of a claim. Reasons that the state of the claim already contains are
    omitted.
    """
    return (doubt for doubt in checked.find_doubts(finding) if doubt != finding.state.value)


def describe_outcome(checked: Checked | None) -> tuple[str, NoteLevel | None]:
    """Return the result of a run with its severity: ``passes by 1.3 %`` with the smallest margin, or ``misses 3, 1 not
    judged``.
    """
    if checked is None:
        return NOT_CHECKED, NoteLevel.CAUTION
    failed, open_ = checked.count(ClaimKind.FAILED), checked.count(ClaimKind.NOT_JUDGED)
    if failed or open_:
        words = (f"misses {failed}" * bool(failed), f"{open_} not judged" * bool(open_))
        return ", ".join(filter(None, words)), NoteLevel.FAILURE if failed else NoteLevel.CAUTION
    by = "" if checked.worst is None else f" by {describe_margin(checked.worst.margin_percent).lstrip('+')}"
    return f"passes{by}", None
