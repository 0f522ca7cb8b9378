"""Many runs in one chart: the median, a band with the middle half, and the outliers with their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import log
from statistics import fmean

import numpy as np

from tkperf.analysis.comparing.arrangements import OUTLIER_SCORE, describe_distribution
from tkperf.page.chart import NEUTRAL, PALETTE, Curve, Place, Point, Scale

_GRID_POINTS = 120
_MOST_OUTLIERS = 6
# The median should cover the same runs everywhere, because it would jump where runs begin or end. If this leaves fewer
# than half of the places, the median is drawn where most of the runs have a value.
_LEAST_SHARES = (1.0, 0.9, 0.5)
_LEAST_PLACES = 0.5
# A curve whose distance from the band is this many times the height of the band lies beyond the fences of Tukey's box
# plot.
_FENCE = 1.5

Courses = Mapping[str, Sequence[Point]]
_Columns = dict[str, dict[Place, float]]


def draw_band(courses: Courses, numbers: Mapping[str, int], scale: Scale) -> tuple[Curve, ...]:
    """Return the median of the curves with its band, then the outliers, the farthest first.

    Args:
        courses: the points of each run, with its name as the key.
        numbers: the place of each run among all, which decides the colour of an outlier.
        scale: scale of the axis of places. Curves over time or amounts have different places, so their values are
            interpolated at common places.
    """
    columns = _read_at_places(courses) if scale is Scale.ORDINAL else _read_at_grid(courses, scale)
    places = list(dict.fromkeys(place for column in columns.values() for place in column))
    by_place = {place: [column[place] for column in columns.values() if place in column] for place in places}
    kept: dict[Place, list[float]] = {}
    for share in _LEAST_SHARES:
        if len(kept) < _LEAST_PLACES * len(places):
            kept = {place: values for place, values in by_place.items() if len(values) >= share * len(courses)}
    if scale is not Scale.ORDINAL:
        kept = dict(sorted(kept.items(), key=lambda one: float(one[0])))
    band = tuple(Point(place, *_find_middle(values)) for place, values in kept.items())
    medians = {point.x: point.y or 0.0 for point in band}
    outliers = list(_find_outliers(columns, medians))
    return (
        Curve(name=f"median of {len(courses)}", points=band, colour=NEUTRAL),
        *(
            Curve(name=name, points=tuple(courses[name]), colour=PALETTE[numbers[name] % len(PALETTE)])
            for name in outliers[:_MOST_OUTLIERS]
        ),
    )


def _find_middle(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the median and the quartiles."""
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    return float(middle), float(low), float(high)


def _read_at_places(courses: Courses) -> _Columns:
    return {name: {point.x: point.y for point in points if point.y is not None} for name, points in courses.items()}


def _read_at_grid(courses: Courses, scale: Scale) -> _Columns:
    """Return each curve at common places between its own first and last place."""
    known = {
        name: [(float(point.x), point.y) for point in points if point.y is not None] for name, points in courses.items()
    }
    every = [place for points in known.values() for place, _ in points]
    if not every:
        return {}
    low, high = min(every), max(every)
    if scale is Scale.LOG and low > 0:
        grid = np.geomspace(low, high, _GRID_POINTS)
    else:
        grid = np.linspace(low, high, _GRID_POINTS)
    columns: _Columns = {}
    for name, points in known.items():
        if not points:
            continue
        points.sort()
        at, values = ([pair[part] for pair in points] for part in (0, 1))
        within = [place for place in grid if at[0] <= place <= at[-1]]
        read = np.interp(within, at, values)
        columns[name] = {float(f"{place:.6g}"): float(value) for place, value in zip(within, read, strict=True)}
    return columns


def _find_outliers(columns: _Columns, medians: Mapping[Place, float]) -> Iterator[str]:
    """Yield the curves whose mean distance from the median, as a logarithm, is an outlier, the farthest first.

    If the drives form two groups, the smaller group does not consist of outliers: an outlier is also far from the
    middle half.
    """
    distances = {}
    for name, column in columns.items():
        pairs = [(value, medians.get(place, 0.0)) for place, value in column.items()]
        ratios = [log(value / middle) for value, middle in pairs if value > 0 and middle > 0]
        if ratios:
            distances[name] = fmean(ratios)
    if len(distances) < 2 or not any(distances.values()):
        return
    _, low, high = _find_middle(list(distances.values()))
    fence = _FENCE * (high - low)
    scores = describe_distribution(list(distances.values())).scores or ()
    far = [
        (abs(score), name)
        for score, (name, distance) in zip(scores, distances.items(), strict=False)
        if abs(score) > OUTLIER_SCORE and not low - fence <= distance <= high + fence
    ]
    yield from (name for _, name in sorted(far, key=lambda one: -one[0]))
