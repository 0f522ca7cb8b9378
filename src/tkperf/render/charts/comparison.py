"""Charts of comparisons: few runs side by side, a colour each; among many runs only the notable ones have names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from tkperf.analysis.comparing.entries import ComparedRow
from tkperf.analysis.results import SectionResult
from tkperf.model.histogram import COARSE_WIDTH
from tkperf.model.quantity import Measure, Quantity
from tkperf.page.comparison.tables import MOST_ACROSS
from tkperf.page.layout import listing_axes
from tkperf.page.naming import Naming, find_naming
from tkperf.render.charts.flagged import flag, with_flags
from tkperf.render.charts.latency import exceedance_points
from tkperf.render.charts.rounds import Over
from tkperf.render.charts.vega import (
    NEUTRAL,
    PALETTE,
    Row,
    Spec,
    build_chart,
    build_frame,
    colour,
    length_axis,
    log_axis,
    quantity_axis,
    tooltip,
    with_layers,
)

# Lower and upper edge in us, I/Os.
Bucket = tuple[float, float, int]

# Characters of a name; a legend shows no more.
_LONGEST_NAME = 40
_TAIL_PERCENT = 0.1


def compared_bars(
    rows: Sequence[ComparedRow], names: Sequence[str], quantity: Measure, title: str
) -> Spec:
    """Draw a bar for each run of each workload, on paper: without tooltips."""
    naming = Naming(axes=listing_axes(row.workload for row in rows))
    values: list[Row] = [
        {"cell": naming.of(row.workload), "run": name, "value": entry.value, **flag(entry)}
        for row in rows
        for name, entry in zip(names, row.entries, strict=True)
        if entry.value is not None
    ]
    x = {
        "field": "cell", "type": "nominal", "title": naming.title, "sort": None,
        "axis": {"labelAngle": -40},
    }  # fmt: skip
    y = {"field": "value", "type": "quantitative", "title": quantity.title}
    colours = {
        "field": "run", "type": "nominal", "title": "Run", "sort": list(names),
        "scale": {"range": PALETTE},
    }  # fmt: skip
    return {
        **build_frame(title),
        "data": {"values": values},
        "encoding": {"x": x, "xOffset": {"field": "run", "sort": list(names)}},
        "layer": [
            {"mark": {"type": "bar"}, "encoding": {"y": y, "color": colours}},
            *(_marks_layer() if any("flag" in value for value in values) else ()),
        ],
    }


def _marks_layer() -> list[Spec]:
    """Return a layer with a mark above each flagged bar."""
    return [
        {
            "transform": [{"filter": "isValid(datum.flag)"}],
            "mark": {
                "type": "text", "text": "!", "dy": -7, "fontSize": 14, "fontWeight": "bold",
            },
            "encoding": {
                "y": {"field": "value", "type": "quantitative"},
                "tooltip": {"field": "flag", "type": "nominal"},
            },
        }
    ]  # fmt: skip


def compared_streams(
    sections: Mapping[str, SectionResult],
    quantity: Quantity,
    *,
    title: str,
    over: Mapping[str, Over],
    x_title: str,
) -> Spec:
    """Draw a quantity of every slice, a curve for each run.

    Args:
        sections: the section of each run, by the run's name.
        over: the place of each run's slices; ``x_title`` names it with its unit.
    """
    called = shorten_names(sections)
    rows: list[Row] = [
        {
            "x": over[name].at(slice_result),
            "value": slice_result.values.value(quantity),
            "series": called[name],
            **flag(slice_result.values),
        }
        for name, section in sections.items()
        for slice_result in section.slices
    ]
    encoding = _encode(rows, x_title, quantity.title)
    return _curves(title, rows, encoding, _ends(rows))


def _encode(
    rows: Sequence[Row], x_title: str, y_title: str, *shown: tuple[str, str], log: bool = False
) -> dict[str, object]:
    """Return the axes of curves; ``shown`` are more fields of the tooltip."""
    axis = log_axis if log else length_axis
    return {
        "x": {
            "field": "x", "type": "quantitative", "title": x_title,
            **axis(row["x"] for row in rows),
        },
        "y": quantity_axis(rows, y_title, log=log),
        "tooltip": tooltip(("series", "Run"), *shown, ("x", x_title), ("value", y_title)),
    }  # fmt: skip


def _curves(
    title: str, rows: Sequence[Row], encoding: dict[str, object], ranks: Mapping[str, float]
) -> Spec:
    """Draw a curve for each run; among many runs all are grey but the first, the lowest and the highest by rank."""
    names = list(dict.fromkeys(str(row["series"]) for row in rows))
    mark = {"type": "line"}
    if len(names) <= MOST_ACROSS or not ranks:
        return build_chart(title, rows, encoding | {"color": colour("Run")}, mark=mark)
    named = find_named(ranks)
    shown = [row for row in rows if row["series"] in named]
    spec = build_chart(title, shown, encoding | {"color": colour("Run")}, mark=mark)
    others: Spec = {
        "data": {"values": [row for row in rows if row["series"] not in named]},
        "mark": {"type": "line", "color": NEUTRAL, "strokeWidth": 1, "opacity": 0.45},
        "encoding": {**encoding, "detail": {"field": "series", "type": "nominal"}},
    }
    spec = with_layers(spec, ())
    layers = spec["layer"]
    assert isinstance(layers, list)
    return spec | {"layer": [others, *layers]}


def find_named(ranks: Mapping[str, float]) -> tuple[str, ...]:
    """Return the names of the first curve, the lowest and the highest."""
    lowest, highest = (
        min(ranks, key=lambda name: ranks[name]),
        max(ranks, key=lambda name: ranks[name]),
    )
    return tuple(dict.fromkeys((next(iter(ranks)), lowest, highest)))


def _ends(rows: Sequence[Row]) -> dict[str, float]:
    """Return each curve's mean over its last quarter."""
    of_names: dict[str, list[float]] = {}
    for row in rows:
        if isinstance(value := row["value"], int | float):
            of_names.setdefault(str(row["series"]), []).append(float(value))
    return {
        name: fmean(values[-(-3 * len(values) // 4) :] or values)
        for name, values in of_names.items()
    }


def _tails(rows: Sequence[Row]) -> dict[str, float]:
    """Return for each run the longest response time that at least a thousandth of its I/Os exceed."""
    found: dict[str, float] = {}
    for row in rows:
        at, share = row["x"], row["value"]
        if (
            isinstance(at, int | float)
            and isinstance(share, int | float)
            and share >= _TAIL_PERCENT
        ):
            name = str(row["series"])
            found[name] = max(found.get(name, 0.0), float(at))
    return found


def compared_exceedance(sections: Mapping[str, SectionResult], *, title: str) -> Spec:
    """Draw the share of a stream's I/Os that took longer than a response time, a curve for each run."""
    many, called = len(sections) > MOST_ACROSS, shorten_names(sections)
    rows: list[Row] = [
        {"x": us, "value": _rounded(beyond_percent), "series": called[name]}
        for name, section in sections.items()
        for us, beyond_percent in exceedance_points(
            _gather(section.histogram_us) if many else section.histogram_us
        )
    ]
    encoding = _encode(rows, "Response time (µs)", "I/Os that took longer (%)", log=True)
    spec = _curves(title, rows, encoding, _tails(rows))
    slices = (each.values for section in sections.values() for each in section.slices)
    return with_flags(spec, slices)


def shorten_names(names: Iterable[str]) -> dict[str, str]:
    """Return the runs' names at their curves: a long name keeps both ends, with a number if these are alike.

    Each point of a curve carries the name, so a name of 200 letters would be most of the page.
    """
    called: dict[str, str] = {}
    for number, name in enumerate(names, start=1):
        short = name
        if len(name) > _LONGEST_NAME:
            short = f"{name[: _LONGEST_NAME // 2]}\N{HORIZONTAL ELLIPSIS}{name[-(_LONGEST_NAME // 2) :]}"
        called[name] = f"{short} ({number})" if short in called.values() else short
    return called


def _rounded(value: float) -> float:
    """Return the value in seven digits, more than a chart shows.

    Each digit is a byte, and many runs have thousands of points.
    """
    return float(f"{value:.7g}")


def _gather(buckets: Iterable[Bucket]) -> list[Bucket]:
    """Return the buckets with neighbours merged, up to a sixteenth of the response time wide.

    A curve of many runs is a few pixels off at most.
    """
    gathered: list[Bucket] = []
    for lower, upper, count in buckets:
        if gathered:
            first, last, before = gathered[-1]
            if lower == last and upper <= first * (1 + COARSE_WIDTH):
                gathered[-1] = (first, upper, before + count)
                continue
        gathered.append((lower, upper, count))
    return gathered


def compared_areas(
    sections: Mapping[str, SectionResult], quantity: Quantity, *, title: str
) -> Spec:
    """Draw a quantity over the areas of hard disks: a colour for each run, a dash for each workload.

    Disks may have different numbers of areas, so each area's place is its share of the disk.
    """
    naming = find_naming(
        cell.workload
        for section in sections.values()
        for area in section.rounds
        for cell in area.cells
    )
    called = shorten_names(sections)
    rows: list[Row] = [
        {
            "x": 100 * (area.number - 0.5) / section.areas,
            "value": cell.value(quantity),
            "series": called[name],
            "cell": naming.of(cell.workload),
            **flag(cell),
        }
        for name, section in sections.items()
        if section.areas
        for area in section.rounds
        for cell in area.cells
    ]
    encoding = _encode(
        rows, "Place on the device (% of its capacity)", quantity.title, ("cell", naming.title)
    )
    encoding["strokeDash"] = {"field": "cell", "type": "nominal", "title": naming.title}
    return _curves(title, rows, encoding, _ends(rows))
