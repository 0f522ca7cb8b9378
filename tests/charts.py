"""Charts of pages as rows that tests can compare."""

from __future__ import annotations

from typing import Any

from tkperf.page.chart import Chart, Distribution
from tkperf.page.page import ChartView


def curves_of(view: ChartView) -> Chart:
    assert isinstance(view.chart, Chart)
    return view.chart


def distribution_of(view: ChartView) -> Distribution:
    assert isinstance(view.chart, Distribution)
    return view.chart


def rows_of(chart: ChartView | Chart) -> list[dict[str, Any]]:
    """Return one row for each point of the curves of a chart. The row also contains the facts that the chart displays
    about the point. The key of each fact is its title.
    """
    drawn = curves_of(chart) if isinstance(chart, ChartView) else chart
    return [
        {
            "series": curve.name,
            "variant": curve.variant,
            "x": point.x,
            "value": point.y,
            "low": point.low,
            "high": point.high,
            "link": point.link,
            "flag": point.flag,
            **dict(zip(curve.facts, point.facts, strict=False)),
        }
        for curve in drawn.curves
        for point in curve.points
    ]
