"""How the curves of a chart are told apart: by colours, and by dashes where there are more of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tkperf.analysis.layout import BLOCKS, Axis, Order
from tkperf.model.workload import Workload
from tkperf.page.naming import Naming
from tkperf.render.charts.colours import colour_values
from tkperf.render.charts.vega import DASHES, PALETTE, Row, Spec, build_chart, name_channel, tooltip

# From cold to warm; each can be seen on white and on a dark page, and so can what lies between two.
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
    """A curve, or bars, for each ``series`` of the rows.

    Args:
        fields: what is told of a point, with titles.
        naming: of the curves; without axes there is one only, which needs no name.
        workloads: those of the rows.
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
    """What stands beside each curve: its name with what it is of, ``4k`` for ``4``."""
    return {naming.of(work): naming.words(work) for work in workloads}


def style_curves(
    naming: Naming, workloads: Iterable[Workload], *, dashed: bool = True
) -> dict[str, object]:
    """The channels that tell curves apart, no two of them alike; they are named in the order of their axes.

    Of one axis each value has its colour. Of several the one of most values has the colours, and dashes tell what
    else differs; where these are too few, each curve has a colour of its own between cold and warm.

    Args:
        dashed: whether marks can be; bars cannot, and have a scale of colours alone.
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
    """The colour of one of ``count`` places, between those of the ramp."""
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
