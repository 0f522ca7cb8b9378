"""Export results with their uncertainty as JSON documents for programs.

docs/reference/results-json.md describes the layout.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from secrets import token_hex
from typing import Any

import msgspec

from tkperf.analysis.estimates import BatchEstimate, RunEstimate
from tkperf.analysis.results import CellResult, RunResult, SectionResult, TestResult
from tkperf.analysis.uncertainty.estimate import Uncertainty
from tkperf.analysis.workload_axes import name_stream
from tkperf.model.quantity import IOS, QUANTITIES, Direction, Measure
from tkperf.model.units import escape_controls
from tkperf.model.workload import Access, Workload
from tkperf.page.batch.batch_plan_page import describe_batch_plan_verdict
from tkperf.page.findings import findings, headlines
from tkperf.page.plan import describe_plan_verdict
from tkperf.page.verdict_texts import Verdict, describe_verdict
from tkperf.page.words.run import (
    describe_progress,
    describe_resumption,
    describe_resumptions,
    describe_step_under_way,
    find_notices,
    find_warnings,
)

Row = Sequence[object]

STREAM_COLUMN = "stream"
# The type of the values in each column. The name of the column is the key.
DRIVE = {"model": str, "serial": str, "firmware": str, "capacity_bytes": int, "interface": str, "form_factor": str}
WORKLOAD = {
    "access": str,
    "read_percent": int,
    "block_size_bytes": int,
    "block_mix": str,
    "threads": int,
    "queue_depth": int,
    "offered_iops": float,
    "arrival": str,
    "zones": str,
    "compressible_percent": int,
    "region_offset_bytes": int,
    "region_length_bytes": int,
    # If no load of a run is a stream, the tables of the run do not contain this column.
    STREAM_COLUMN: str,
}


def workload_row(work: Workload) -> Row:
    return (
        work.access.value,
        work.read_percent,
        work.block_size_bytes,
        work.blocks_text if work.block_mix else None,
        work.jobs,
        work.io_depth,
        work.offered_iops,
        None if work.offered_iops is None else work.arrival.value,
        work.zones_text or None,
        work.compressible_percent,
        work.region and work.region.offset_bytes,
        work.region and work.region.length_bytes,
        name_stream(work) if work.together else None,
    )


def plain_workload(work: Workload) -> dict[str, object]:
    """Return a workload as plain data, with the names of its columns as the keys. A load that runs alone has no
    stream.
    """
    named = dict(zip(WORKLOAD, workload_row(work), strict=True))
    if named[STREAM_COLUMN] is None:
        del named[STREAM_COLUMN]
    return named


def render_json(result: RunResult) -> str:
    """Return the whole result as JSON. The value null means that a value was not measured. Keys and units remain the
    same as long as the schema does not change.
    """
    return "".join(write_json(result))


# The long lists of a section and of a test. If all lists were converted to plain data at once, the data would need ten
# times the memory of the text.
_LISTS_OF_A_SECTION = ("verdicts", "cells", "rounds", "slices", "timelines", "characteristics")
_LISTS_OF_A_TEST = ("steps",)
# The number of spaces before the elements of the long lists, in a section and in a test.
_IN_A_SECTION, _IN_A_TEST = 12, 8
# An element can be a round with 1,000 workloads, so only a few elements are converted at once.
_ELEMENTS_AT_ONCE = 10
_RESUMPTION = (
    "resumed_utc",
    "stopped_s",
    "resumed_s",
    "interrupted",
    "because",
    "test",
    "section",
    "goes_on",
    "again",
    "accepted",
    "set_aside_steps",
    "set_aside_written_bytes",
    "repeated",
    "added",
    "changes",
    "cut_off",
    "replaced",
)


def write_json(result: RunResult) -> Iterator[str]:
    """Yield the text of ``render_json`` in pieces. The elements of a long list are rendered separately."""
    # The mark is random, so that a text in the result cannot contain the mark.
    mark = token_hex(16)
    lists: list[tuple[Sequence[object], int]] = []
    document = _with_words(result, mark, lists)
    text = json.dumps(finite(document), indent=2, allow_nan=False)
    for number, piece in enumerate(text.split(f'"{mark}"')):
        if number:
            yield from _write_list(*lists[number - 1])
        yield piece


def _write_list(elements: Sequence[object], spaces: int) -> Iterator[str]:
    indent = "\n" + " " * spaces
    for first in range(0, len(elements), _ELEMENTS_AT_ONCE):
        texts = (
            msgspec.json.format(_encode(element), indent=2).decode().replace("\n", indent)
            for element in elements[first : first + _ELEMENTS_AT_ONCE]
        )
        yield ("," if first else "[") + indent + f",{indent}".join(texts)
    yield indent[:-2] + "]" if elements else "[]"


def _encode(value: object) -> bytes:
    """Return a value as JSON in ASCII, in the form that ``json.dumps`` writes. Keys that do not exist for a load that
    runs alone are omitted.
    """
    with suppress(UnicodeEncodeError):
        text = msgspec.json.encode(value)
        if text.isascii():
            return text.replace(_OF_A_LOAD_ALONE, b"").replace(_WITHOUT_PARTS, b"")
    return json.dumps(finite(drop_unused(msgspec.to_builtins(value))), allow_nan=False).encode()


def _find_unused() -> dict[str, object]:
    """Return the last fields of a workload, beginning with ``trims``. The values are those of a plain load that runs
    alone.
    """
    plain = Workload(access=Access.RANDOM, read_percent=0, block_size_bytes=512, jobs=1, io_depth=1)
    fields: dict[str, object] = msgspec.to_builtins(plain)
    keys = list(fields)
    return {key: fields[key] for key in keys[keys.index("trims") :]}


_UNUSED = _find_unused()
# The fields of ``_UNUSED`` in the form that msgspec writes. msgspec escapes quotation marks within a text, so no text
# can contain this sequence.
_OF_A_LOAD_ALONE = b"," + msgspec.json.encode(_UNUSED)[1:-1]
# The key ``parts`` of a slice, for a load without streams and flushes.
_WITHOUT_PARTS = b',"parts":[]'
# Keys that exist only in results of streams: the parts of a slice, and the additional values of a headline figure.
_OF_STREAMS = ("parts", "also")


def drop_unused(plain: Any) -> Any:
    """Return plain data in which a workload that runs alone has no keys for streams. The keys for trims, flushes and
    pauses are also omitted if the workload does not use them.
    """
    if isinstance(plain, dict):
        is_alone = all(key in plain and plain[key] == value for key, value in _UNUSED.items())
        unused = {*(_UNUSED if is_alone else ()), *(key for key in _OF_STREAMS if not plain.get(key, True))}
        return {key: drop_unused(value) for key, value in plain.items() if key not in unused}
    return [drop_unused(each) for each in plain] if isinstance(plain, list | tuple) else plain


def _with_words(result: RunResult, mark: str, lists: list[tuple[Sequence[object], int]]) -> dict[str, Any]:
    """Return the result as plain data, with the sentences that every output shows.

    Args:
        mark: a text that replaces each long list.
        lists: receives each long list, in the order of the text, together with the number of spaces before its
            elements.
    """
    bare = replace(result, tests=tuple(map(_without_lists, result.tests)), left_out=())
    plain: dict[str, Any] = drop_unused(msgspec.to_builtins(bare))
    del plain["left_out"]
    plain["info"]["notices"] = find_notices(result)
    plain["warnings"] = msgspec.to_builtins(find_warnings(result))
    plain["verdict"] = build_verdict(describe_verdict(result))
    plain["headlines"] = drop_unused(msgspec.to_builtins(headlines(result)))
    plain["findings"] = msgspec.to_builtins(findings(result))
    plain["resumptions"] = [
        {**{key: msgspec.to_builtins(getattr(one, key)) for key in _RESUMPTION}, "text": describe_resumption(one)}
        for one in result.resumptions
    ]
    for test, of_plain in zip(result.tests, plain["tests"], strict=True):
        of_plain["under_way"] = describe_step_under_way(test, result.status)
        of_plain["progress"] = describe_progress(test)
        of_plain["resumptions"] = describe_resumptions(result, test)
        for section, of_section in zip(test.sections, of_plain["sections"], strict=True):
            _mark_lists(section, of_section, mark, lists, _IN_A_SECTION)
        _mark_lists(test, of_plain, mark, lists, _IN_A_TEST)
    return plain


def _without_lists(test: TestResult) -> TestResult:
    no_lists: dict[str, Any] = dict.fromkeys(_LISTS_OF_A_SECTION, ())
    sections = tuple(replace(section, **no_lists) for section in test.sections)
    return replace(test, under_way=None, sections=sections, steps=())


def _mark_lists(
    of: SectionResult | TestResult,
    plain: dict[str, Any],
    mark: str,
    lists: list[tuple[Sequence[object], int]],
    spaces: int,
) -> None:
    """Replace the long lists in the data of a section or of a test with the mark, in the order of the text."""
    for key in plain:
        if key in (_LISTS_OF_A_SECTION if isinstance(of, SectionResult) else _LISTS_OF_A_TEST):
            plain[key] = mark
            lists.append((getattr(of, key), spaces))


def build_verdict(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as plain data. All documents contain verdicts in this form."""
    judged = verdict.judged
    return {
        "state": judged.state.value,
        "simulated": judged.simulated,
        "text": verdict.text,
        "reasons": [
            {**msgspec.to_builtins(reason), "severity": reason.code.severity.value, "text": text}
            for reason, text in zip(judged.reasons, verdict.texts, strict=True)
        ],
    }


def finite(value: object) -> object:
    """Return the data with None instead of NaN, because JSON has no NaN."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


def encode_json(value: object) -> str:
    """Return a value as one line of JSON without control characters.

    A single half of a surrogate pair is escaped, because it cannot be encoded.
    """
    try:
        return escape_controls(msgspec.json.encode(value).decode())
    except UnicodeEncodeError:
        return json.dumps(finite(msgspec.to_builtins(value)), allow_nan=False)


_UNCERTAIN = tuple(quantity for quantity in QUANTITIES.values() if quantity is not IOS)
# Half of the width of the 95 % interval. Each name ends with the unit.
U95 = {f"u95_{quantity.key}": float for quantity in _UNCERTAIN}
UNCERTAINTY = {
    **WORKLOAD,
    "direction": str,
    "measure": str,
    "key": str,
    "unit": str,
    "value": float,
    "standard_uncertainty": float,
    "low_95": float,
    "high_95": float,
    "degrees_of_freedom": int,
    "basis": str,
    "lower_limit": bool,
    "reason": str,
}


def u95_row(cell: CellResult, direction: Direction) -> Row:
    """Return half of the width of the interval for each quantity except the count. The value is None if there is no
    interval, or if the interval has no upper end.
    """
    of_cell = (cell.uncertainty_of(quantity, direction) for quantity in _UNCERTAIN)
    return tuple(None if known is None else known.expanded for known in of_cell)


def uncertainty_rows(section: SectionResult) -> Iterator[Row]:
    """Yield a row for each figure that has an uncertainty. If the uncertainty is missing and the reason is known, the
    figure also has a row.
    """
    for cell in section.cells:
        mixed = cell.workload.is_mixed
        for direction in Direction if mixed else (Direction.ALL,):
            for quantity in QUANTITIES.values():
                known = cell.uncertainty_of(quantity, direction)
                if known is not None:
                    value = cell.value(quantity, direction)
                    yield _row(cell.workload, direction, quantity, value, known)
    for found in section.characteristics:
        if found.uncertainty is not None:
            yield _row(found.workload, Direction.ALL, found.measure, found.value, found.uncertainty)


def _row(workload: Workload, direction: Direction, measure: Measure, value: float | None, known: Uncertainty) -> Row:
    return (
        *workload_row(workload),
        direction.value,
        measure.label,
        measure.key,
        measure.unit_in_data,
        value,
        known.standard,
        known.low,
        known.high,
        known.degrees_of_freedom,
        known.basis and known.basis.value,
        known.at_least if known.known else None,
        known.reason,
    )


def render_plan_json(estimate: RunEstimate, audit: list[dict[str, object]]) -> str:
    """Return a plan as JSON. Times are in seconds, and amounts are in bytes.

    Args:
        audit: findings about the host.
    """
    return _render_plan({"schema": "tkperf-plan/1", **_build_plan(estimate, audit)})


def render_batch_plan_json(estimate: BatchEstimate) -> str:
    """Return the plan of a batch as JSON. The key ``plan`` of a drive contains the keys of a single plan. The value of
    this key is null if the drive has a fault.
    """
    return _render_plan(
        {
            "schema": "tkperf-batch-plan/1",
            "verdict": build_verdict(describe_batch_plan_verdict(estimate)),
            "name": estimate.name,
            "shortest_s": estimate.bounds_s[0],
            "longest_s": estimate.bounds_s[1],
            "least_written_bytes": estimate.written_bytes[0],
            "most_written_bytes": estimate.written_bytes[1],
            "refused": estimate.refused or None,
            "groups": [
                {
                    "drives": group.drives,
                    "state": group.state,
                    "budgets": [
                        {
                            "part": budget.part,
                            "drives": budget.drives,
                            "demand_bytes_per_s": budget.demand_bytes_per_s,
                            "factor": budget.factor,
                            "state": budget.state,
                        }
                        for budget in group.budgets
                    ],
                    "cpus": cpus,
                }
                for group, cpus in zip(estimate.groups, estimate.cpus, strict=True)
            ],
            "drives": [
                {
                    "number": drive.number,
                    "name": drive.name,
                    "given": drive.given,
                    "path": drive.path,
                    "slot": drive.slot,
                    "refusals": drive.refusals,
                    "plan": drive.estimate and _build_plan(drive.estimate, drive.host),
                }
                for drive in estimate.drives
            ],
        }
    )


def _render_plan(document: dict[str, object]) -> str:
    return json.dumps(msgspec.to_builtins(document), indent=2)


def _build_plan(estimate: RunEstimate, audit: Sequence[Mapping[str, object]]) -> dict[str, object]:
    shares = estimate.shares
    return {
        "verdict": build_verdict(describe_plan_verdict(estimate)),
        "device": estimate.device,
        "profile": estimate.profile.name,
        "choices": estimate.choices,
        "alterations": estimate.alterations,
        "shortest_s": estimate.shortest_s,
        "longest_s": estimate.longest_s,
        "least_written_bytes": estimate.least_bytes,
        "most_written_bytes": estimate.most_bytes,
        "capacity_bytes": estimate.capacity_bytes,
        "rate_bytes_per_s": estimate.rates.bytes_per_s,
        "rate_source": estimate.rates.source,
        "rated_bytes": estimate.rated_bytes,
        "least_share_of_rating": shares and shares[0],
        "most_share_of_rating": shares and shares[1],
        "stages": estimate.stages,
        "host": audit,
        "warnings": estimate.warnings,
    }
