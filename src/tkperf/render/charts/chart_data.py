"""Data of a chart by name: the rows of its curves, and of the rules on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from tkperf.page.chart import Chart, Curve, Mark, Point, Rule
from tkperf.render.charts.frame import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveGroup:
    """Curves that are drawn by the same layers, and the name of their data."""

    name: str
    curves: tuple[Curve, ...]
    rows: list[Row]

    @property
    def first(self) -> Curve:
        return self.curves[0]

    @property
    def fields(self) -> list[str]:
        return [f"fact{number}" for number in range(len(self.first.facts))]

    @property
    def is_spread(self) -> bool:
        return any(row.get("high") is not None for row in self.rows)


def group_curves(chart: Chart) -> Iterator[CurveGroup]:
    """Yield the curves of each look, those in the background first, with their rows."""

    def look(curve: Curve) -> tuple[object, ...]:
        return (not curve.muted, curve.mark, curve.dots, curve.has_texts, curve.facts, curve.name == "")

    groups: dict[tuple[object, ...], list[Curve]] = {}
    for curve in chart.curves:
        groups.setdefault(look(curve), []).append(curve)
    # What is measured, with its points, lies on ideal lines.
    ordered = sorted(groups.values(), key=lambda of: (not of[0].muted, of[0].dots))
    middles = _middles(chart)
    for number, curves in enumerate(ordered):
        names = [(curve.name, curve.variant) for curve in curves]
        repeated = len(set(names)) < len(names)
        unsorted = not is_sorted(curves)
        rows: list[Row] = []
        for at, curve in enumerate(curves):
            shared: Row = {"series": curve.name} if any(each.name for each in chart.curves) else {}
            shared |= {"variant": curve.variant} if curve.variant else {}
            shared |= {"curve": at} if repeated else {}
            if chart.filled and len(curve.points) == 1 and curve.mark is Mark.LINE:
                shared["alone"] = True
            for place, point in enumerate(curve.points):
                row = _build_row(point) | shared
                if unsorted:
                    row["place"] = place
                if curve.has_texts:
                    row |= {"label": point.facts[0], "below": (point.y or 0) < middles.get(point.x, 0)}
                rows.append(row)
        yield CurveGroup(name=f"curves{number or ''}", curves=tuple(curves), rows=rows)


def _middles(chart: Chart) -> Mapping[object, float]:
    """Return the median of all points at each place, if any have a text next to them."""
    if not any(curve.has_texts for curve in chart.curves):
        return {}
    of_place: dict[object, list[float]] = {}
    for curve in chart.curves:
        for point in curve.points:
            if point.y is not None and curve.mark is Mark.POINT:
                of_place.setdefault(point.x, []).append(point.y)
    return {place: median(values) for place, values in of_place.items()}


def _build_row(point: Point) -> Row:
    row: Row = {"x": point.x, "value": point.y}
    if point.low is not None or point.high is not None:
        row |= {"low": point.low, "high": point.high}
    row |= {f"fact{number}": fact for number, fact in enumerate(point.facts)}
    row |= {"cell": point.link} if point.link else {}
    return row | ({"flag": point.flag} if point.flag else {})


def build_rule_row(rule: Rule) -> Row:
    row: Row = {"x": rule.x, "value": rule.y, "end": rule.x_end, "name": rule.name}
    row = {key: value for key, value in row.items() if value not in (None, "")}
    if rule.x_end is not None:
        row["below"] = rule.below
    return row | ({"row": rule.row} if rule.x is not None and rule.y is None else {})


def is_sorted(curves: Iterable[Curve]) -> bool:
    """Return whether the points of each curve go to the right; a line follows their order otherwise."""
    for curve in curves:
        places = [point.x for point in curve.points if isinstance(point.x, int | float)]
        if any(after < before for before, after in pairwise(places)):
            return False
    return True
