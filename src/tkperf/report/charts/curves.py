"""How the curves of a chart are told apart: by colours, and by dashes where there are more of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tkperf.analysis.layout import Axis
from tkperf.report.charts.vega import DASHES, PALETTE, Row, Spec, build_chart, colour, tooltip
from tkperf.report.naming import Naming
from tkperf.workload import Workload

# From cold to warm; each can be seen on white and on black.
_RAMP = ("#6A3D9A", "#2B6CB0", "#2A9D8F", "#8AB17D", "#E9A23B", "#D1495B")


def build_curves(
    title: str,
    rows: Sequence[Row],
    encoding: dict[str, object],
    fields: Sequence[tuple[str, str]],
    naming: Naming,
    workloads: Sequence[Workload],
    *,
    bars: bool = False,
    ordered: bool = False,
) -> Spec:
    """A curve, or bars, for each ``series`` of the rows.

    Args:
        fields: what is told of a point, with titles.
        naming: of the curves; without axes there is one only, which needs no legend.
        workloads: those of the rows.
        ordered: in the legend, in the order of their axes; else as they come.
    """
    if naming.title:
        encoding |= style_curves(naming, workloads, dashed=not bars, ordered=ordered)
        fields = (("series", naming.title), *fields)
        if bars:
            encoding["xOffset"] = {"field": "series", "sort": None}
    encoding["tooltip"] = tooltip(*fields)
    mark = {"type": "bar"} if bars else {"type": "line", "point": True}
    return build_chart(title, rows, encoding, mark=mark)


def style_curves(
    naming: Naming, workloads: Iterable[Workload], *, dashed: bool = True, ordered: bool = False
) -> dict[str, object]:
    """The channels that tell curves apart, no two of them alike.

    As many as there are colours have one each. Of more, colours follow the axis of most values in
    its order and dashes what else differs.

    Args:
        dashed: whether marks can be; bars cannot, and have a scale of colours alone.
        ordered: named in the order of their axes; else as they come.
    """
    of_names = {naming.of(workload): workload for workload in reversed(list(workloads))}
    names = list(reversed(of_names))
    channel = colour(naming.title)
    if len(names) <= len(PALETTE):
        if ordered:
            names.sort(key=lambda name: [axis.order(of_names[name]) for axis in naming.axes])
            channel["sort"] = names
        return {"color": channel}
    main = max(naming.axes, key=lambda axis: len(_values(axis, of_names.values())))
    others = [axis for axis in naming.axes if axis is not main]
    along = _values(main, of_names.values())
    kinds = sorted({tuple(axis.order(work) for axis in others) for work in of_names.values()})
    if dashed and 1 < len(kinds) <= len(DASHES):
        names.sort(key=lambda name: [axis.order(of_names[name]) for axis in (*others, main)])
        colours = [_on_ramp(along.index(main.order(of_names[name])), len(along)) for name in names]
        kind_of = [
            kinds.index(tuple(axis.order(of_names[name]) for axis in others)) for name in names
        ]
        dashes = [DASHES[kind] for kind in kind_of]
    else:
        if not others:
            names.sort(key=lambda name: main.order(of_names[name]))
        colours = [_on_ramp(place, len(names)) for place in range(len(names))]
        dashes = [DASHES[place % len(DASHES)] for place in range(len(names))]
    style: dict[str, object] = {
        "color": channel | {"sort": names, "scale": {"domain": names, "range": colours}}
    }
    if dashed:
        style["strokeDash"] = channel | {
            "sort": names,
            "scale": {"domain": names, "range": dashes},
            "legend": {"symbolType": "stroke", "symbolSize": 400},
        }
    return style


def _values(axis: Axis, workloads: Iterable[Workload]) -> list[tuple[float, str]]:
    return sorted({axis.order(work) for work in workloads})


def _on_ramp(place: int, count: int) -> str:
    """The colour of one of ``count`` places, between those of the ramp."""
    at = place / max(1, count - 1) * (len(_RAMP) - 1)
    below = min(int(at), len(_RAMP) - 2)
    share = at - below
    channels = (
        round(
            (1 - share) * int(_RAMP[below][first : first + 2], 16)
            + share * int(_RAMP[below + 1][first : first + 2], 16)
        )
        for first in (1, 3, 5)
    )
    return "#" + "".join(f"{channel:02X}" for channel in channels)
