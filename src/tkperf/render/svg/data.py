"""A specification's transforms, applied to its rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate, groupby
from typing import Any, TypeGuard

from tkperf.render.svg.expressions import compile_expression, is_true
from tkperf.render.svg.known import NotDrawnError, Row, Spec, check_keys

Rows = Sequence[Row]
Number = int | float


def transform(rows: Rows, transforms: object) -> Rows:
    """The rows after all of these.

    Raises:
        NotDrawnError: one that is not known.
    """
    if not isinstance(transforms, list):
        raise NotDrawnError(f"transform {transforms!r:.60}")
    for each in transforms:
        kind = next((key for key in _KINDS if isinstance(each, Mapping) and key in each), None)
        if kind is None:
            raise NotDrawnError(f"transform {each!r:.60}")
        known, act = _KINDS[kind]
        check_keys(each, known, "a transform")
        rows = act(rows, each)
    return rows


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a place on a scale can be told from it."""
    if isinstance(value, str):
        raise NotDrawnError("text as a number")
    return isinstance(value, int | float) and math.isfinite(value)


def column(rows: Rows, field: str) -> list[int | float | None]:
    """A field's numbers, None of what is none."""
    values: list[Any] = [row.get(field) for row in rows]
    with suppress(TypeError):  # nearly always all are numbers
        if all(map(math.isfinite, values)):
            return values
    return [value if is_number(value) else None for value in values]


def quantile(values: Iterable[Number], share: float) -> float:
    """Between the nearest two in order, as d3 has it."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def group_rows(rows: Rows, fields: Sequence[str]) -> dict[tuple[object, ...], list[Row]]:
    """By what they have in these fields, in the order in which that first appears."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(field) for field in fields), []).append(row)
    return groups


def _filter(rows: Rows, spec: Spec) -> Rows:
    if not isinstance(spec["filter"], str):
        raise NotDrawnError(f"filter {spec['filter']!r:.60}")
    holds = compile_expression(spec["filter"])
    return [row for row in rows if is_true(holds(row))]


def _calculate(rows: Rows, spec: Spec) -> Rows:
    find, field = compile_expression(spec["calculate"]), spec["as"]
    return [{**row, field: find(row)} for row in rows]


def _flatten(rows: Rows, spec: Spec) -> Rows:
    fields: list[str] = spec["flatten"]
    return [
        {**row, **dict(zip(fields, values, strict=True))}
        for row in rows
        for values in zip(*(row[field] for field in fields), strict=True)
    ]


def _sums(parts: object, known: Sequence[str]) -> list[Mapping[str, str]]:
    if not isinstance(parts, list):
        raise NotDrawnError(f"a transform's {parts!r:.60}")
    for part in parts:
        check_keys(part, ("op", "field", "as"), "a transform's sum")
        if part["op"] not in known:
            raise NotDrawnError(f"{part['op']} of a transform")
    return parts


def _aggregate(rows: Rows, spec: Spec) -> Rows:
    sums = _sums(spec["aggregate"], ("sum",))
    fields = spec.get("groupby", [])
    return [
        {
            **dict(zip(fields, key, strict=True)),
            **{each["as"]: sum(row[each["field"]] for row in group) for each in sums},
        }
        for key, group in group_rows(rows, fields).items()
    ]


def _join_aggregate(rows: Rows, spec: Spec) -> Rows:
    totals = {
        each["as"]: sum(row[each["field"]] for row in rows)
        for each in _sums(spec["joinaggregate"], ("sum",))
    }
    return [{**row, **totals} for row in rows]


def _window(rows: Rows, spec: Spec) -> Rows:
    """Sums from the first row on, and values of the row before, in an order; rows alike in it are summed together."""
    (order,) = spec["sort"]
    check_keys(order, ("field",), "a transform's order")

    def place(row: Row) -> Any:
        return row[order["field"]]

    found: list[dict[str, Any]] = [dict(row) for row in sorted(rows, key=place)]
    for each in _sums(spec["window"], ("sum", "lag")):
        field, name = each["field"], each["as"]
        if each["op"] == "lag":
            before = [None, *(row[field] for row in found)]
            for row, value in zip(found, before, strict=False):
                row[name] = value
            continue
        alike = [list(group) for _, group in groupby(found, place)]
        sums = accumulate(sum(row[field] for row in group) for group in alike)
        for group, total in zip(alike, sums, strict=True):
            for row in group:
                row[name] = total
    return found


_Act = Callable[[Rows, Spec], Rows]
_KINDS: dict[str, tuple[tuple[str, ...], _Act]] = {
    "filter": (("filter",), _filter),
    "calculate": (("calculate", "as"), _calculate),
    "flatten": (("flatten",), _flatten),
    "aggregate": (("aggregate", "groupby"), _aggregate),
    "joinaggregate": (("joinaggregate",), _join_aggregate),
    "window": (("window", "sort"), _window),
}
