"""Properties of all charts: contrast, text size, units, axes, colours and the order of names."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
import vl_convert
from hypothesis import given
from hypothesis import strategies as st

import tkperf
from tests.builders import run_info, simulate, view_of, work
from tkperf.analysis.workload_axes import BLOCKS
from tkperf.model.units import KIB
from tkperf.page.cell_dialog import build_cell_charts
from tkperf.page.chart import AnyChart, Axis, Chart, Curve, Legend, Mark, Point, warmth
from tkperf.page.figures.curves import colour_values
from tkperf.page.page import ReportView
from tkperf.procedures import HDD_TESTS, SSD_TESTS
from tkperf.render import document
from tkperf.render.charts.axes import linear_axis, log_axis
from tkperf.render.charts.draw import MOST_DIRECT, draw
from tkperf.render.charts.frame import (
    BRIGHTER,
    CLICKED,
    COLOURS,
    FLAGGED,
    INK,
    RULES,
    SHADES,
    SPOTS,
    TEXT_PX,
    find_colour,
)

TEMPLATES = Path(tkperf.__file__).parent / "render/templates"
LIGHT_PAGE = "#FFFFFF"
DARK_PAGE = re.findall(
    r"prefers-color-scheme: dark.*?--paper: (#[0-9a-f]{6})", (TEMPLATES / "styles.css.j2").read_text("utf-8"), re.DOTALL
)[0]
OF_MARKS, OF_TEXT = 3.0, 4.5  # the minimum contrasts according to WCAG 2.2, criteria 1.4.11 and 1.4.3
# Titles of axes without a unit, because the axes show counts or names. In a heat map, the labels of the response times
# contain the unit.
NO_UNIT = re.compile(
    r"IOPS|Round|Slice|TC|QD|I/Os|Offered IOPS|Workload|R/W %|R/W %, .*|Zones|Access|Drive fills|Response time"
)
COLOUR = re.compile(r"#[0-9A-Fa-f]{6}")

Charts = Mapping[str, Any]


def charts_of(view: ReportView) -> Iterator[tuple[str, AnyChart]]:
    for test in view.tests:
        for part in (test.charts, test.events.charts, *(section.charts for section in test.sections)):
            yield from ((each.key, each.chart) for chart in part for each in chart.views)
    yield from ((f"cell {name}", each) for name, each in (view.cell_charts or {}).items())


@pytest.fixture(scope="module")
def drawings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, AnyChart]:
    """Return the charts of every existing test, so that every kind of figure is included."""
    found: dict[str, AnyChart] = {}
    for preset, suite in (("sata-ssd", SSD_TESTS), ("hdd", HDD_TESTS)):
        for name, test in suite.items():
            folder = tmp_path_factory.mktemp(f"{preset}-{name}")
            simulate(folder, run_info(), preset=preset, suite={name: test})
            view = view_of(folder / "run.tkperf")
            found |= {f"{preset} {key}": chart for key, chart in charts_of(view)}
    assert len(found) > 50
    return found


@pytest.fixture(scope="module")
def charts(drawings: dict[str, AnyChart]) -> Charts:
    """Return the charts as a page draws them."""
    return {key: draw(chart) for key, chart in drawings.items()}


def parts_of(spec: Any) -> list[Any]:
    """Return the layers of a chart."""
    return list(spec["layer"])


def find_curve(spec: Any) -> Any:
    """Return the first layer with an x axis and a y axis for its data."""
    return next(
        (
            layer
            for layer in spec["layer"]
            if all("field" in layer["encoding"].get(channel, ()) for channel in ("x", "y"))
        ),
        spec,
    )


def kind_of(part: Any) -> str:
    mark = part["mark"]
    return str(mark["type"] if isinstance(mark, dict) else mark)


def colours_within(value: object) -> Iterator[str]:
    if isinstance(value, str) and COLOUR.fullmatch(value):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from colours_within(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from colours_within(inner)


def sizes_within(value: object) -> Iterator[float]:
    """Yield the font sizes that a chart sets at any level of its specification."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key.lower().endswith("fontsize"):
                yield inner
            yield from sizes_within(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from sizes_within(inner)


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, from 1 to 21 (WCAG 2.2)."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    """Return the relative luminance of a colour, from 0 to 1 (WCAG 2.2)."""
    shares = (int(colour[first : first + 2], 16) / 255 for first in (1, 3, 5))
    linear = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in shares)
    return sum(weight * each for weight, each in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def seen(colour: str) -> float:
    """Return the lower of two contrasts of a colour: its contrast to a light page, and its contrast to a dark page."""
    return min(contrast(colour, LIGHT_PAGE), contrast(colour, DARK_PAGE))


def test_contrast_is_that_of_wcag() -> None:
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.005)
    assert contrast("#FFFFFF", "#777777") == contrast("#777777", "#FFFFFF")


def test_every_colour_can_be_seen_on_light_and_on_dark_pages() -> None:
    ramp = [find_colour(warmth(place, 40)) for place in range(40)]
    marks = [
        FLAGGED,
        CLICKED,
        *SPOTS.values(),
        *(str(rule["color"]) for rule in RULES.values()),
        *(colour for colour, _ in SHADES.values()),
    ]
    faint = {colour: seen(colour) for colour in (*COLOURS.values(), *ramp, *marks)}
    assert {colour: value for colour, value in faint.items() if value < OF_MARKS} == {}


def test_curves_have_the_contrast_of_text_on_dark_pages() -> None:
    """On dark pages, the contrast of curves is not lower than that of text. The style sheet makes the curves brighter
    in the plot and in the legend.
    """
    style = (TEMPLATES / "styles.css.j2").read_text("utf-8")
    assert ".role-mark, .role-legend-symbol) { filter: brightness({{ brighter }}); }" in style
    for colour in (*COLOURS.values(), *(find_colour(warmth(place, 40)) for place in range(40))):
        channels = (int(colour[first : first + 2], 16) for first in (1, 3, 5))
        bright = "#" + "".join(f"{min(255, int(BRIGHTER * channel)):02X}" for channel in channels)
        assert contrast(bright, DARK_PAGE) >= OF_TEXT, colour


def test_letters_can_be_read_on_light_and_on_dark_pages() -> None:
    """The letters of a chart have enough contrast in the text colour of the chart on white paper, and in the text
    colour of the page on a dark page.
    """
    style = (TEMPLATES / "styles.css.j2").read_text("utf-8")
    (dark_ink,) = re.findall(r"prefers-color-scheme: dark.*?--ink: (#[0-9a-f]{6})", style, re.DOTALL)
    assert contrast(INK, LIGHT_PAGE) >= OF_TEXT
    assert contrast(dark_ink, DARK_PAGE) >= OF_TEXT
    # These parts of a chart use the text colour of the page: the letters of the frame, and letters that are drawn in
    # the chart's own text colour.
    (parts,) = re.findall(r":is\((.*?)\) text { fill: var\(--ink\); }", style)
    for part in ("title-text", "title-subtitle", "axis-label", "axis-title", "legend-label", "legend-title"):
        assert f".role-{part}" in parts
    assert f'text[fill="{INK}" i] {{ fill: var(--ink); }}' in style


def test_marks_of_all_charts_can_be_seen(charts: Charts) -> None:
    """Lines, bars and points of all charts have enough contrast. Shaded areas may be fainter, because they lie behind
    the marks.
    """
    faint = {
        (key, kind_of(part), colour)
        for key, spec in charts.items()
        for part in parts_of(spec)
        if kind_of(part) in ("line", "bar", "point", "rule", "boxplot")
        for colour in colours_within((part["mark"], part["encoding"]))
        if seen(colour) < OF_MARKS
    }
    assert faint == set()


def test_texts_of_all_charts_can_be_read(charts: Charts) -> None:
    """The texts of all charts use the text colour of the page, light or dark. They set no colour of their own."""
    for key, spec in charts.items():
        for part in parts_of(spec):
            if kind_of(part) != "text":
                continue
            assert part["encoding"].get("color") is None, key
            assert not list(colours_within(part["mark"])), key
        assert "subtitleColor" not in spec["title"], key


def test_letters_of_all_charts_are_large_enough(charts: Charts) -> None:
    """In all charts, letters are at least 12 px high on the screen, where a chart is drawn at its displayed width."""
    for key, spec in charts.items():
        config = spec["config"]
        assert min(sizes_within(spec)) >= TEXT_PX >= 12, key
        for part, names in (
            ("axis", ("labelFontSize", "titleFontSize")),
            ("legend", ("labelFontSize", "titleFontSize")),
            ("title", ("fontSize", "subtitleFontSize")),
            ("text", ("fontSize",)),
        ):
            assert set(names) <= config[part].keys(), (key, part)


def test_letters_are_large_enough_in_print() -> None:
    """Letters of charts are large enough in print. Two charts together are as wide as the text of an A4 page, so 12 px
    become 7.5 pt, like the text of the tables.
    """
    (margin_mm,) = re.findall(r"x: (\d+)mm", (TEMPLATES / "report.typ").read_text("utf-8"))
    width_pt = (210 - 2 * int(margin_mm)) / 25.4 * 72
    (gutter_mm,) = re.findall(
        r"column-gutter: .*?(\d+)mm }?, row-gutter: 5pt, ..row", (TEMPLATES / "report.typ").read_text("utf-8")
    )
    half_pt = (width_pt - int(gutter_mm) / 25.4 * 72) / 2
    assert TEXT_PX * half_pt / document.HALF_WIDTH >= 7.45
    assert TEXT_PX * width_pt / document.WHOLE_WIDTH >= 7.45


def test_every_axis_names_its_unit(charts: Charts) -> None:
    for key, spec in charts.items():
        for part in parts_of(spec):
            for channel in ("x", "y"):
                axis = part["encoding"].get(channel) or {}
                if axis.get("type") != "quantitative" or axis.get("axis", True) is None:
                    continue
                if "title" not in axis:
                    continue  # this mark uses the axis of another layer
                title = str(axis["title"])
                # If no unit suits all latencies, each tick has its own unit.
                ticks = str((axis.get("axis") or {}).get("labelExpr", ""))
                assert "(" in title or NO_UNIT.fullmatch(title) or "µs" in ticks, (key, title)


def test_axes_reach_beyond_the_data(charts: Charts) -> None:
    """No line, bar or point touches an end of its vertical axis, except a value of 0 at the lower end. The ticks are
    round numbers.
    """
    checked = 0
    for key, spec in charts.items():
        part = find_curve(spec)
        y = part.get("encoding", {}).get("y") or {}
        scale = y.get("scale") or {}
        # The ticks of a grid are its rows, which have names and not numbers.
        if "values" not in (y.get("axis") or ()) or "squares" in spec["datasets"]:
            continue
        low, high = scale["domain"]
        rows = spec["datasets"][part["data"]["name"]]
        for row in rows:
            for field in ("value", "low", "high"):
                value = row.get(field)
                if isinstance(value, int | float) and math.isfinite(value):
                    assert value < high, key
                    assert value > low or value == low == 0, key
                    checked += 1
        check_ticks(y["axis"]["values"], log=scale.get("type") == "log")
    assert checked > 1000


def check_ticks(ticks: list[float], *, log: bool) -> None:
    """Require round ticks. The ticks of a logarithmic axis must be one digit times a power of ten. On all other axes,
    the distance between two ticks must be 1, 2 or 5 times a power of ten.
    """
    digits = {f"{tick:.10e}".split("e")[0].rstrip("0").rstrip(".") for tick in ticks}
    if log and digits <= {str(digit) for digit in range(1, 10)}:
        return
    steps = {float(f"{after - before:.6g}") for before, after in pairwise(ticks)}
    (step,) = steps
    assert f"{step:.4e}"[:6] in ("1.0000", "2.0000", "5.0000")
    assert all(math.isclose(tick / step, round(tick / step), abs_tol=1e-6) for tick in ticks)


@given(st.lists(st.floats(min_value=-1e12, max_value=1e12), min_size=1, max_size=5), st.booleans())
def test_linear_axes(values: list[float], zero: bool) -> None:
    """All values lie inside a linear axis, and only 0 may lie at an end. The axis has two to ten ticks, including its
    ends.
    """
    values = [float(f"{value:.6g}") for value in values if value == 0 or abs(value) > 1e-6]
    if not values:
        return
    axis: Any = linear_axis(values, zero=zero)
    (low, high), ticks = axis["scale"]["domain"], axis["axis"]["values"]
    assert (ticks[0], ticks[-1]) == (low, high)
    assert 2 <= len(ticks) <= 10
    for value in values:
        assert low < value < high or value == 0
    if zero:
        assert low <= 0 <= high


@given(st.lists(st.floats(min_value=1e-3, max_value=1e9), min_size=1, max_size=5))
def test_logarithmic_axes(values: list[float]) -> None:
    axis: Any = log_axis(values)
    low, high = axis["scale"]["domain"]
    assert low < min(values)
    assert max(values) < high
    check_ticks(axis["axis"]["values"], log=True)


def test_the_same_block_size_has_the_same_colour_in_all_charts(drawings: dict[str, AnyChart]) -> None:
    """If the curves of a chart differ only in the block size, only in the mix or only in the percentile, each value has
    the same colour in all such charts.
    """
    known: dict[tuple[str, str], set[str]] = {}
    for chart in drawings.values():
        if not isinstance(chart, Chart) or any(curve.dash for curve in chart.curves):
            continue
        if chart.series in ("Block size (KiB)", "R/W %", "QD", "TC", ""):
            for curve in chart.curves:
                if chart.series or re.fullmatch(r"p[\d.]+|mean|max|min", curve.name):
                    known.setdefault((chart.series, curve.name), set()).add(curve.colour)
    assert {of for of, _ in known} >= {"Block size (KiB)", "R/W %", ""}
    assert {key: colours for key, colours in known.items() if len(colours) > 1} == {}


def test_colours_of_block_sizes_are_their_own() -> None:
    """The colour of a block size does not depend on the other block sizes in the chart. Block sizes that no
    specification contains have distinct colours too.
    """
    several = [work(block_size_bytes=size * KIB) for size in (4, 12, 64, 1024)]
    alone = [work(block_size_bytes=1024 * KIB)]
    of_several, of_one = colour_values(BLOCKS, several), colour_values(BLOCKS, alone)
    assert of_one.items() <= of_several.items()
    assert len(set(of_several.values())) == 4


def ends_of(chart: Chart) -> list[str]:
    """Return the names of a chart's curves in the order of the curves' right ends, from the top."""
    order = [*chart.x.places]
    last: dict[str, float] = {}
    for curve in chart.curves:
        ends = [point for point in curve.points if point.y is not None]
        if ends and curve.name:
            end = max(ends, key=lambda point: order.index(point.x) if order else point.x)
            last[curve.name] = end.y or 0.0
    return [name for name, _ in sorted(last.items(), key=lambda item: -item[1])]


def test_few_curves_have_labels_and_many_a_legend(drawings: dict[str, AnyChart]) -> None:
    """If a chart has only a few curves, they have labels. If it has many curves, it has a legend. Labels and legends
    list the names in the order in which the curves end.
    """
    labelled, in_legends = 0, 0
    for key, chart in drawings.items():
        if not isinstance(chart, Chart) or chart.legend is not Legend.AUTO or chart.grouped:
            continue
        names = ends_of(chart)
        if not names or chart.curves[0].mark is not Mark.LINE:
            continue
        spec: Any = draw(chart)
        channel = find_curve(spec)["encoding"]["color"]
        labels = [row["series"] for row in spec["datasets"].get("ends", ())]
        if len(names) <= MOST_DIRECT:
            assert labels == names, key
            assert channel["legend"] is None, key
            labelled += 1
        else:
            assert not labels, key
            assert channel["scale"]["domain"][: len(names)] == names, key
            assert channel.get("legend", True) is not None, key
            in_legends += 1
    assert labelled > 5
    assert in_legends > 2


def draw_lines(values: list[float], scale: float = 1) -> Any:
    curves = tuple(
        Curve(name=f"s{number}", points=(Point(0, value), Point(1, value))) for number, value in enumerate(values)
    )
    return draw(Chart(title="t", x=Axis(title="x (s)"), y=Axis(title="y (s)"), curves=curves), scale)


@given(st.lists(st.floats(min_value=0, max_value=100), min_size=1, max_size=4))
def test_labels_do_not_cover_each_other(values: list[float]) -> None:
    """Labels are at least 15 px apart, even in print. They are inside the plot, in the order in which their
    curves end.
    """
    spec = draw_lines(values, document.CHART_SCALE)
    low, high = spec["layer"][0]["encoding"]["y"]["scale"]["domain"]
    rows = spec["datasets"]["ends"]
    places = [(row["at"] - low) / (high - low) * 300 * document.CHART_SCALE for row in rows]
    assert all(above - below >= 15 - 1e-6 for above, below in pairwise(places))
    assert -1e-6 <= places[-1] <= places[0] <= 300 * document.CHART_SCALE + 1e-6
    ends = [values[int(row["series"][1:])] for row in rows]
    assert ends == sorted(ends, reverse=True)


def test_points_of_a_chart_carry_short_names() -> None:
    """The points of a chart contain short names. When each point repeated a long drive name, a report needed 1.3 GB of
    memory.
    """
    names = ["x" * 4000 + end for end in "ab"] + ["sda"]
    curves = tuple(Curve(name=name, points=(Point(0, 1.0), Point(1, 2.0))) for name in names)
    chart = Chart(title="", x=Axis(title="Time (s)"), y=Axis(title="Temperature (°C)"), curves=curves)
    spec: Any = draw(chart)
    series = list(dict.fromkeys(row["series"] for row in spec["datasets"]["curves"]))
    assert list(map(len, series)) == [201, 201, 3]
    assert len(set(series)) == 3
    assert len(json.dumps(spec)) < 10_000


def test_bars_of_three_dimensions_keep_the_order_of_block_sizes(charts: Charts) -> None:
    """In a 3D chart, the bars are in ascending or descending order of the block sizes, and never in the order of their
    values. Each bar shows its interval.
    """
    spec = charts["sata-ssd iops03d"]
    faces = spec["datasets"]["faces"]
    rows = [float(size) for size in dict.fromkeys(face["row"] for face in faces)]
    assert len(rows) > 3
    assert rows in (sorted(rows), sorted(rows, reverse=True))
    tips = [part["encoding"]["tooltip"] for part in parts_of(spec) if kind_of(part) == "line"]
    assert [field["title"] for field in tips[0]][-1].startswith("Interval")
    assert all(face["fact0"] for face in faces)
    assert len({face["fact0"] for face in faces}) > 3


def test_names_of_bars_can_be_read_in_print(charts: Charts) -> None:
    """In print, the names of bars are slanted. The distance between their lines is at least the height of a letter."""
    spec = charts["sata-ssd iops03d"]
    height = round(spec["height"] * document.CHART_SCALE)
    size = {"width": document.HALF_WIDTH, "height": height, "autosize": {"type": "fit-x"}}
    svg = vl_convert.vegalite_to_svg(spec | size)
    for slant in (40, -40):
        found = re.findall(rf"translate\(([-0-9.]+),([-0-9.]+)\) rotate\({slant}\)", svg)
        turn = math.radians(slant)
        lines = [float(x) * math.sin(turn) - float(y) * math.cos(turn) for x, y in found]
        assert len(lines) >= 3
        assert all(abs(one - other) > 10 for one, other in pairwise(lines))


def test_charts_are_plain_data(drawings: dict[str, AnyChart]) -> None:
    """The charts of a page can be stored as JSON. The JSON contains no content that is specific to Vega-Lite."""
    for key, chart in drawings.items():
        text = msgspec.json.encode(chart)
        assert json.loads(text)["title"] == chart.title, key
        for word in (b"encoding", b"vega", b"#"):
            assert word not in text, key


def test_the_dialogs_histogram_has_the_same_bins(charts: Charts) -> None:
    """The histogram in the dialog has the same bins as the printed histogram, because the chart itself computes the
    bars from the data.
    """
    of_cells: Any = draw(build_cell_charts()["histogram"])
    for key in [key for key in charts if key.endswith("rth")]:
        assert charts[key]["layer"][0]["transform"] == of_cells["layer"][0]["transform"]


@pytest.mark.parametrize(("series", "in_order_of_ends"), [("R/W %", False), ("QD", True)])
def test_mixes_have_one_order_in_every_legend(series: str, in_order_of_ends: bool) -> None:
    """A legend of mixes lists them in the order of the specification, from reads to writes. Any other legend uses the
    order in which the curves end, from the highest to the lowest.
    """
    names = ["100/0", "95/5", "65/35", "50/50", "35/65", "5/95", "0/100"]
    curves = tuple(
        Curve(name=name, points=(Point(1.0, 1.0), Point(2.0, float(end)))) for end, name in enumerate(names, start=1)
    )
    chart = Chart(title="T", x=Axis(title="X"), y=Axis(title="Y"), curves=curves, series=series)
    expected = names[::-1] if in_order_of_ends else names
    assert json.dumps({"domain": expected})[1:-1] in json.dumps(draw(chart))
