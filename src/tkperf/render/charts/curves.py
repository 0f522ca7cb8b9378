"""Styles that tell the curves of a chart apart: colours, and dashes if there are more curves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tkperf.analysis.axes import BLOCKS, Axis, Order
from tkperf.model.workload import Workload
from tkperf.page.naming import Naming
from tkperf.render.charts.colours import colour_values
from tkperf.render.charts.vega import DASHES, PALETTE, Row, Spec, build_chart, name_channel, tooltip

# From cold to warm. Each colour is visible on white and on dark pages, and so is each mix of two neighbours.
RAMP = ("#9A5CF0", "#0B6BB8", "#0A8D6E", "#5F8A12", "#B08F2E", "#C94A16")


def build_curves(
    title: str,
    rows: Sequence[Row],
    encoding: dict[str, object],
    fields: Sequence[tuple[str, str]],
    naming: Naming,
    workloads: Sequence[Workload],
    *,
    bars: bool = False,
) -> Spec:
    """Draw a curve, or bars, for each ``series`` of the rows.

    Args:
        fields: fields of a point's tooltip, with titles.
        naming: names of the curves; without axes there is only one, which needs no name.
        workloads: the workloads of the rows.
    """
    if naming.title:
        encoding |= style_curves(naming, workloads, dashed=not bars)
        fields = (("series", naming.title), *fields)
        if bars:
            encoding["xOffset"] = {"field": "series", "sort": None}
    encoding["tooltip"] = tooltip(*fields)
    mark = {"type": "bar"} if bars else {"type": "line", "point": True}
    return build_chart(title, rows, encoding, mark=mark, words=name_ends(naming, workloads))


def name_ends(naming: Naming, workloads: Iterable[Workload]) -> dict[str, str]:
    """Return the label next to each curve: its name with its unit, ``4 KiB`` for ``4``."""
    return {naming.of(work): naming.words(work) for work in workloads}


def style_curves(
    naming: Naming, workloads: Iterable[Workload], *, dashed: bool = True
) -> dict[str, object]:
    """Return the channels that tell curves apart, no two of them alike, with names in the order of their axes.

    A single axis has a colour for each value. Among several axes the one with the most values has the colours,
    and dashes show the other differences. If there are too few dashes, each curve has a colour of its own: from
    the palette, or for more curves between cold and warm.

    Args:
        dashed: whether the marks can have dashes; bars cannot, and have only colours.
    """
    of_names = {naming.of(workload): workload for workload in reversed(list(workloads))}
    if not naming.axes:
        return {"color": _channel(naming, dict.fromkeys(of_names, PALETTE[0]))}
    main = max(
        naming.axes, key=lambda axis: (len(_values(axis, of_names.values())), axis is BLOCKS)
    )
    others = [axis for axis in naming.axes if axis is not main]
    names = sorted(
        of_names, key=lambda name: [axis.order(of_names[name]) for axis in (*others, main)]
    )
    colours = colour_values(main, of_names.values()) or _ramp(main, of_names.values())
    kinds = sorted({_place(of_names[name], others) for name in names})
    if len(kinds) == 1 and len(colours) <= len(PALETTE):
        return {
            "color": _channel(naming, {name: colours[main.order(of_names[name])] for name in names})
        }
    if dashed and 1 < len(kinds) <= len(DASHES):
        drawn = {name: colours[main.order(of_names[name])] for name in names}
        dashes = {name: DASHES[kinds.index(_place(of_names[name], others))] for name in names}
    else:
        few = len(names) <= len(PALETTE)
        drawn = {
            name: PALETTE[place] if few else _on_ramp(place, len(names))
            for place, name in enumerate(names)
        }
        dashes = {name: DASHES[place % len(DASHES)] for place, name in enumerate(names)}
        if few or not dashed:
            return {"color": _channel(naming, drawn)}
    legend = {"legend": {"symbolType": "stroke", "symbolSize": 400}}
    return {
        "color": _channel(naming, drawn),
        "strokeDash": _channel(naming, dashes) | legend,
    }


def _channel(naming: Naming, style: Mapping[str, object]) -> dict[str, object]:
    return name_channel(naming.title, list(style), list(style.values()))


def _place(work: Workload, axes: Iterable[Axis]) -> tuple[Order, ...]:
    return tuple(axis.order(work) for axis in axes)


def _values(axis: Axis, workloads: Iterable[Workload]) -> list[Order]:
    return sorted({axis.order(work) for work in workloads})


def _ramp(axis: Axis, workloads: Iterable[Workload]) -> dict[Order, str]:
    values = _values(axis, workloads)
    return {value: _on_ramp(place, len(values)) for place, value in enumerate(values)}


def _on_ramp(place: int, count: int) -> str:
    """Return the colour of one of ``count`` places, between the colours of the ramp."""
    at = place / max(1, count - 1) * (len(RAMP) - 1)
    below = min(int(at), len(RAMP) - 2)
    share = at - below
    channels = (
        round(
            (1 - share) * int(RAMP[below][first : first + 2], 16)
            + share * int(RAMP[below + 1][first : first + 2], 16)
        )
        for first in (1, 3, 5)
    )
    return "#" + "".join(f"{channel:02X}" for channel in channels)
