"""What Vega and Vega-Lite have where a specification says nothing."""

from __future__ import annotations

from tkperf.render.svg.known import Spec

PADDING = 5
"""In pixels around all of a chart."""

MARK_COLOUR = "#4c78a8"
RULE_COLOUR = TEXT_COLOUR = "black"
TEXT_PX = 11
LINE_PX = POINT_LINE_PX = 2.0
RULE_PX = 1.0
POINT_SIZE = 30.0
POINT_OPACITY = 0.7
BOX_PX, MEDIAN_PX = 14.0, 1.0
DASHES = ([1, 0], [4, 2], [2, 1], [1, 1], [1, 2, 4, 2])

AXIS: Spec = {
    "gridColor": "#ddd", "domainColor": "#888", "tickColor": "#888", "labelColor": "#000", "titleColor": "#000",
    "labelFontSize": 10, "titleFontSize": 11, "titleFontWeight": "bold", "titlePadding": 4, "labelLimit": 180,
    "minExtent": 0, "labelSeparation": 0,
}  # fmt: skip
MOST_EXTENT_PX = 200
TICK_PX, LABEL_AWAY_PX = 5, 2
FLUSH_PX = 1.0
# Of axes with bands: where a tick and its label stand beside the middle.
BAND_SHIFT = -0.5
# In pixels of an axis there is a tick for each.
TICK_EVERY_PX = 40

LEGEND: Spec = {
    "labelColor": "#000", "titleColor": "#000", "labelFontSize": 10, "titleFontSize": 11, "labelLimit": 160,
    "symbolStrokeWidth": 1.5, "orient": "right", "symbolSize": 100,
}  # fmt: skip
LEGEND_LINE_COLOUR = "#888"
LEGEND_AWAY_PX, LEGEND_MARGIN_PX = 18, 8
LEGEND_COLUMN_PX, LEGEND_ROW_PX, LEGEND_TITLE_PX, LEGEND_LABEL_PX = 10, 2, 5, 4
LEGEND_TITLE_LIMIT_PX = 180
MOST_LEGEND_ENTRIES = 30

POINT_PADDING = 0.5
# Inner padding of bands: of bars; of bands with bars of several series; of other marks.
BAR_PADDING, NESTED_PADDING, RECT_PADDING = 0.1, 0.2, 0.0
LEAST_BAND_PX = 0.25
