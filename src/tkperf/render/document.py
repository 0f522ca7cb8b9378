"""Build the layout of a printed report as plain data: rows of charts with their drawings, and the header that the PTS
requires on each page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import msgspec

from tkperf.model.units import drop_controls
from tkperf.page.chart import Chart, HeatMap
from tkperf.page.facts import bind_units, shorten, typeset
from tkperf.page.marking import find_level, list_stamp
from tkperf.page.page import ChartView, FactBlocks, ReportView, SectionView, TableView, TestView
from tkperf.page.verdict_texts import split_simulated
from tkperf.render.charts.draw import draw
from tkperf.render.charts.frame import Spec, find_colour
from tkperf.render.paper import FAMILY, Document, charts_of, parts_of

# Widths of a chart in pixels of Vega, for half the width of the text and for the full width. At these widths, letters
# of 12 px are printed with a size of 7.5 pt.
HALF_WIDTH, WHOLE_WIDTH = 390, 806
# The number of small charts in a row, the width of each small chart, and its printed height as a multiple of its height
# on the screen.
SMALL_IN_ROW, SMALL_WIDTH, SMALL_SCALE = 4, 190, 100 / 170
_TOO_LONG = re.compile(r"(\S{40})(?=\S)")
# The greatest number of columns of a list.
MOST_COLUMNS = 7
# The greatest lengths of texts, in characters. The footer and the texts at the top of a page must fit on one line. A
# fact must fit on two lines of a column.
MOST_OF_BANNER = 120
MOST_OF_ABOUT = 160
MOST_OF_FACT = 64
# Printed heights as multiples of the heights on the screen. Twelve charts with half the width fill a page. Charts over
# time are lower, because they have no names beside their curves, and because other charts of the same period are below
# them.
CHART_SCALE, LONE_SCALE, TIMELINE_SCALE, OPENING_SCALE = 112 / 300, 80 / 300, 70 / 300, 210 / 300
# Sizes in pixels: an axis, an entry of a legend, a letter, and a capital letter. The texts on a page contain few
# capital letters.
_AXIS_PX, _ENTRY_PX, _LETTER_PX, _CAPITAL_PX = 60, 30, 7, 10


def compose(view: ReportView) -> Document:
    """Return a view as a document for ``pdf.py``."""
    overview = tuple(_narrow(block) if isinstance(block, TableView) else block for block in view.overview)
    report: Document = msgspec.to_builtins(
        replace(
            view,
            overview=overview,
            opening_chart=None,
            lead_charts=(),
            overview_charts=(),
            tests=(),
            cells=(),
            cell_charts=None,
        )
    )
    # The texts at the top and at the bottom of every page are shortened, so that they do not fill the page. The first
    # pages contain the full texts.
    report["device"] = shorten(view.device, MOST_OF_ABOUT)
    report["about"] = shorten(view.about, MOST_OF_ABOUT)
    report["footer"] = shorten(view.footer, MOST_OF_BANNER)
    report["badges"] = [(badge.text, badge.level) for badge in list_stamp(view)]
    simulated, verdict = split_simulated(view.verdict) if view.decision else ("", view.verdict)
    report |= {"simulated": simulated, "shown_verdict_title": verdict.title}
    report["banners"] = [(banner, find_level(banner)) for banner in view.banners]
    report["disclosure"] = [{"title": title, "facts": pairs} for title, pairs in report["disclosure"]]
    for headline in report["headlines"]:
        headline["label"] = bind_units(headline["label"])
    report["tests"] = [_without_charts(test) for test in view.tests]
    opening = () if view.opening_chart is None else view.opening_chart.on_paper[:1]
    report["opening_chart"] = [[_for_print(chart, scale=OPENING_SCALE, width=WHOLE_WIDTH)] for chart in opening]
    if view.decision is not None:
        for row in report["decision"]["rows"]:
            if row["colour"]:
                row["colour"] = find_colour(row["colour"])
    # Unlike on a screen, the first charts need not fit below the matrix. The names beside the curves need more height.
    report["lead_charts"] = _lay_out([_heighten(chart) for chart in view.lead_charts])
    of_overview = [chart.on_paper for chart in view.overview_charts]
    # The first view of each chart is placed first, as on the screen. In this order, a high chart leaves no gap at the
    # end of the first page.
    report["overview_charts"] = _lay_out(
        [*chain(*(views[:1] for views in of_overview)), *chain(*(views[1:] for views in of_overview))]
    )
    charts = [
        of_part
        for test in view.tests
        for of_part in (
            test.charts,
            test.events.charts,
            *(
                () if section.is_brief else _without_repeated(section.charts, test.events.charts)
                for section in test.sections
            ),
        )
    ]
    for test, of_test in zip(report["tests"], view.tests, strict=True):
        for section, of_section in zip(test["sections"], of_test.sections, strict=True):
            section["is_narrow"] = _is_one_of_many(of_test, of_section)
    for part, of_part in zip(parts_of(report), charts, strict=True):
        drawn = [view for chart in of_part if not chart.level for view in chart.on_paper]
        part["charts"] = _lay_out(drawn, narrow=part.get("is_narrow", False))
        part["levels"] = [f"{chart.question} {chart.level}".lstrip() for chart in of_part if chart.level]
    _caption_once(report)
    # The drawings are cleaned separately, because words in a drawing must not be broken.
    specs = [chart.pop("spec") for chart in charts_of(report)]
    document: Any = _clean(report)
    for chart, spec in zip(charts_of(document), specs, strict=True):
        chart["spec"] = spec
    return dict(document)


def _is_one_of_many(test: TestView, section: SectionView) -> bool:
    """Return whether a section has only one chart, and also a row in the table of its test.

    Two such sections fit side by side on the page. The HTML report contains all other values of the section.
    """
    drawn = [view for chart in _without_repeated(section.charts, test.events.charts) for view in chart.on_paper]
    return (
        len(drawn) == 1
        and section.determination is None
        and any(row[0] == section.title for table in test.tables for row in table.rows)
    )


def _caption_once(report: Document) -> None:
    """Remove each caption that repeats the words of an earlier caption."""
    seen: set[str] = set()
    for chart in charts_of(report):
        words = chart["caption"].split(" Workload: ")[0]
        if words in seen:
            chart["caption"] = ""
        seen.add(words)


def _without_repeated(charts: Sequence[ChartView], of_test: Sequence[ChartView]) -> tuple[ChartView, ...]:
    """Return the charts of a section. A chart is omitted if a chart of the whole test already answers the same question
    for the same period.
    """
    covered = {chart.question for chart in of_test if chart.below}
    return tuple(chart for chart in charts if chart.question not in covered)


def _heighten(view: ChartView) -> ChartView:
    chart = view.chart
    return replace(view, chart=replace(chart, low=False) if isinstance(chart, Chart) else chart, others=())


def _without_charts(test: TestView) -> Document:
    """Return a test as plain data without its charts. The charts are added later. Their views are those that the
    specification requires.
    """
    plain = replace(
        test,
        header=_shorten(test.header),
        charts=(),
        events=replace(test.events, charts=()),
        tables=_find_printed(test.tables),
        sections=tuple(
            replace(
                section,
                charts=(),
                tables=() if section.is_brief or _is_one_of_many(test, section) else _find_printed(section.tables),
            )
            for section in test.sections
        ),
    )
    document: Document = msgspec.to_builtins(plain)
    return document


def _find_printed(tables: Sequence[TableView]) -> tuple[TableView, ...]:
    """Return the tables for the printed report. Tables that a page shows only when the user opens them are omitted. The
    HTML report contains all tables.
    """
    return tuple(table.on_paper for table in tables if not table.folded)


def _narrow(table: TableView) -> TableView:
    """Return a table with only as many columns as fit on a page. The priorities of the columns decide which columns are
    omitted.
    """
    columns = range(len(table.columns))
    if not table.priorities or len(columns) <= MOST_COLUMNS:
        return table
    kept = sorted(columns, key=lambda number: table.priorities[number])[:MOST_COLUMNS]
    return table.take(sorted(kept))


def _shorten(blocks: FactBlocks) -> FactBlocks:
    return tuple((title, tuple((name, shorten(fact, MOST_OF_FACT)) for name, fact in facts)) for title, facts in blocks)


def _lay_out(charts: Sequence[ChartView], *, narrow: bool = False) -> list[list[Document]]:
    """Return rows of charts. A row contains two charts with half the width of the page, or a wide chart with charts of
    the same period below it.

    A row can also contain four small charts.

    Args:
        narrow: whether the charts have half of the width, because another section is beside them.
    """
    if narrow:
        return [[_for_print(chart, scale=CHART_SCALE, width=HALF_WIDTH)] for chart in charts]
    small = [_for_print(chart, scale=SMALL_SCALE, width=SMALL_WIDTH) for chart in charts if chart.small]
    rows_of_small = [small[first : first + SMALL_IN_ROW] for first in range(0, len(small), SMALL_IN_ROW)]
    return [*_lay_out_pairs([chart for chart in charts if not chart.small]), *rows_of_small]


def _lay_out_pairs(charts: Sequence[ChartView]) -> list[list[Document]]:
    groups: list[list[ChartView]] = []
    for chart in charts:
        if chart.below and groups:
            # A chart with ``below`` belongs to the latest chart with the same time axis, even if other charts were
            # placed after that chart.
            aligned = (group for group in reversed(groups) if group[0].aligned)
            next(aligned, groups[-1]).append(chart)
        else:
            groups.append([chart])
    rows: list[list[ChartView]] = []
    pairs = False  # Whether the last row has space for a second chart.
    for group in groups:
        if pairs and len(group) == 1:
            rows[-1] += group
            pairs = False
        else:
            rows.append(group)
            pairs = len(group) == 1
    return [_draw_row(row) for row in rows]


def _draw_row(row: Sequence[ChartView]) -> list[Document]:
    paired = len(row) == 2 and not row[1].below
    drawn = []
    for place, chart in enumerate(row):
        wide = not paired and (place == 0 or len(row) == 2)
        scale = TIMELINE_SCALE if wide and len(row) > 1 else LONE_SCALE if wide else CHART_SCALE
        drawn.append(_for_print(chart, scale=scale, width=WHOLE_WIDTH if wide else HALF_WIDTH))
    return drawn


def _for_print(view: ChartView, *, scale: float, width: int) -> Document:
    """Return a chart with its drawing. The title and the flags below the title are removed from the drawing and become
    texts.
    """
    # The keywords apply to every figure. They are printed at the top of the page, so the chart does not repeat them.
    spec: Any = draw(replace(view.chart, keywords=""), scale)
    title, config = spec.pop("title"), spec["config"]
    if isinstance(view.chart, HeatMap):
        # The caption already explains the shades. If the legend has no title, it needs one line less.
        spec["layer"] = [_without_legend_title(layer) for layer in spec["layer"]]
    orient = config["legend"].get("orient", "right")
    drawn = _settle(spec, orient, width) | {
        "width": width,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "height": round(spec["height"] * scale),
        # The texts of marks for screen readers are switched off. Vega would need time for these texts, and the PDF does
        # not contain them.
        "config": config | {"aria": False, "font": FAMILY},
    }
    marked = [title["subtitle"]] if "subtitle" in title else []
    return {
        "title": title["text"],
        "marked": marked,
        "text": view.text,
        "caption": view.caption,
        "wide": width == WHOLE_WIDTH,
        "small": view.small,
        "spec": drawn,
    }


def _without_legend_title(layer: Mapping[str, Any]) -> Spec:
    encoding = layer["encoding"]
    return {**layer, "encoding": {**encoding, "color": {**encoding["color"], "title": None}}}


def _settle(part: Mapping[str, Any], orient: str, width: int) -> Spec:
    """Return a chart or a layer for print. The chart cannot be zoomed, so no clipping is necessary. The legends are not
    wider than the chart.

    Args:
        orient: the position of legends that do not define a position of their own.
    """
    settled = dict(part)
    if "params" in part:
        settled["params"] = [each for each in part["params"] if each.get("bind") != "scales"]
    if "encoding" in part:
        settled["encoding"] = {
            key: _fit_legend(channel, orient, width) if key in ("color", "strokeDash") else channel
            for key, channel in part["encoding"].items()
        }
    if "layer" in part:
        settled["layer"] = [_settle(layer, orient, width) for layer in part["layer"]]
    return settled


def _fit_legend(channel: Any, orient: str, width: int) -> Any:
    """Return the channel. If its legend is above or below the plot, the legend has as many columns as fit."""
    names = channel.get("scale", {}).get("domain", []) if channel else []
    legend = channel.get("legend", {}) if names else None
    if legend is None or legend.get("orient", orient) == "right":
        return channel
    room = width - _AXIS_PX
    lengths = [_ENTRY_PX + sum(map(_letter_px, str(name))) for name in names]
    columns = min(legend.get("columns", len(names)), len(names))
    while columns > 1 and sum(max(lengths[at::columns]) for at in range(columns)) > room:
        columns -= 1
    return channel if columns == len(names) else channel | {"legend": {**legend, "columns": columns}}


def _letter_px(letter: str) -> int:
    return _CAPITAL_PX if letter.isupper() else _LETTER_PX


def _clean(value: object) -> object:
    """Return text from other sources in a form that can be printed. In very long words, the function inserts positions
    at which a word can be broken.
    """
    if isinstance(value, str):
        return _TOO_LONG.sub("\\1\u200b", typeset(drop_controls(value)))
    if isinstance(value, dict):
        return {key: _clean(item) for key, item in value.items()}
    if isinstance(value, Iterable):
        return [_clean(item) for item in value]
    return value
