"""Marks of the clicked figure in the charts of the response times that it comes from."""

from __future__ import annotations

from tkperf.render.charts.vega import Spec, tooltip

CLICKED = "#9467BD"
"""Distinct from every curve, with a contrast of more than 4 on light and on dark pages."""


def with_clicked(spec: Spec) -> Spec:
    """Return the chart with a line at each row (``mark``, ``us``) of data set ``clicked``, which the page fills."""
    datasets = spec["datasets"]
    assert isinstance(datasets, dict)
    x = {"field": "us", "type": "quantitative"}
    tip = tooltip(("mark", "Clicked"), ("us", "µs"))
    layers: list[Spec] = [
        {
            "data": {"name": "clicked"},
            "mark": {"type": "rule", "color": CLICKED, "strokeWidth": 2},
            "encoding": {"x": x, "tooltip": tip},
        },
        {
            "data": {"name": "clicked"},
            "mark": {
                "type": "point", "shape": "triangle-down", "filled": True, "size": 90,
                "opacity": 1, "color": CLICKED,
            },
            "encoding": {"x": x, "y": {"value": 4}, "tooltip": tip},
        },
    ]  # fmt: skip
    drawn = spec["layer"]
    assert isinstance(drawn, list)
    return spec | {"datasets": datasets | {"clicked": []}, "layer": [*drawn, *layers]}
