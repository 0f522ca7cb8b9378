"""Charts for print are drawn as Vega draws them, to a fiftieth of a pixel; what is not known is left to Vega."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count, pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import run_info, simulate, view_of, work
from tests.page.test_comparison import drives
from tests.page.test_flagged import SUITES, keep
from tests.render.made_up_charts import make_up_chart
from tests.render.svg_compared import differences, see
from tests.runner.test_telemetry_runs import run_cli
from tkperf.analysis.compare import compare
from tkperf.analysis.comparing.arrangement import Arrangement
from tkperf.analysis.timeline.drops import Drop
from tkperf.analysis.timeline.findings import Recorded, Timeline
from tkperf.analysis.timeline.levels import Level, LevelKind
from tkperf.analysis.timeline.spikes import PeriodicSpikes
from tkperf.model.quantity import IOPS, LATENCY_MAX
from tkperf.page.comparison import build_comparison_view
from tkperf.page.page import ChartView, ReportView
from tkperf.render import drawing
from tkperf.render.charts.labels import with_legend_on_top
from tkperf.render.charts.over_time import mark_over_time
from tkperf.render.charts.vega import (
    PALETTE,
    Row,
    build_chart,
    build_frame,
    colour,
    length_axis,
    linear_axis,
    log_axis,
)
from tkperf.render.document import _for_print, compose
from tkperf.render.drawing import ask_vega, draw_all, draw_png
from tkperf.render.paper import charts_of
from tkperf.render.svg import defaults
from tkperf.render.svg.chart import draw
from tkperf.render.svg.expressions import compile_expression
from tkperf.render.svg.formats import format_number
from tkperf.render.svg.known import NotDrawnError
from tkperf.render.svg.ticks import linear_ticks, utc_ticks
from tkperf.render.svg.type_metrics import measure_text

Spec = dict[str, Any]
HOSTILE = "</text><script>&\"'\x00\x1b[31m\u202eRTL\u200b\ud800 \U0001f600 日本 " + "W" * 300


def printed(view: ReportView) -> Sequence[Spec]:
    """The charts of a PDF."""
    return [chart["spec"] for chart in charts_of(compose(view, footer=""))]


def for_print(chart: ChartView) -> Spec:
    """A chart of the page, as wide as the print."""
    return dict(_for_print({"spec": chart.spec, "wide": True, "low": False}, ""))


def by_vega(specs: Sequence[Spec]) -> Sequence[str]:
    """As the process draws them that is there for what is not known."""
    return ask_vega(list(specs))


def apart(specs: Sequence[Spec]) -> dict[int, list[str]]:
    """What differs between the two drawings of each chart, by its number; all by one process, which takes long to start."""
    found = {
        number: differences(draw(spec), vega)
        for number, (spec, vega) in enumerate(zip(specs, by_vega(specs), strict=True))
    }
    return {number: told[:3] for number, told in found.items() if told}


def disturbed(name: str, folder: Path) -> ReportView:
    """One of all tests that there are, each third step of it disturbed."""
    numbers = count()
    keep(folder / "run.tkperf", list(SUITES[name]), lambda _: next(numbers) % 3 == 0)
    return view_of(folder / "run.tkperf")


def of_preset(preset: str, folder: Path) -> ReportView:
    simulate(folder, run_info(), preset)
    return view_of(folder / "run.tkperf")


def throttled(folder: Path) -> ReportView:
    """With telemetry: temperatures, limits, what was written."""
    run_cli(
        "ssd", "hot", "--no-report", "sim:client-tlc", "--profile", "pts-2.0", "--active-range", "200GiB", "-ssdt", "tp",
        "--output", folder, "-q",
    )  # fmt: skip
    return view_of(folder / "hot.tkperf")


def compared(arrangement: Arrangement, number: int) -> ReportView:
    return build_comparison_view(compare(drives(number), arrangement))


def history(step: timedelta = timedelta(days=1)) -> ReportView:
    """One drive whose firmware changes."""
    began = [
        (datetime(1999, 12, 31, 22, 58, tzinfo=UTC) + at * step).isoformat() for at in range(7)
    ]
    runs = [
        replace(
            run,
            info=replace(
                run.info,
                started_utc=began[at],
                device={**run.info.device, "firmware": f"{at // 3}.0"},
            ),
        )
        for at, run in enumerate(drives(7, serial="S1"))
    ]
    return build_comparison_view(compare(runs, Arrangement.HISTORY))


def dates() -> Iterator[Spec]:
    """Axes of seconds, minutes, hours, days, weeks, months and years."""
    for each in ("20 s", "3 min", "50 min", "5 h", "9 d", "40 d", "130 d", "4000 d"):
        number, unit = each.split()
        s = {"s": 1, "min": 60, "h": 3600, "d": 86_400}[unit]
        yield printed(history(timedelta(seconds=int(number) * s)))[0]


def found_over_time() -> Iterator[Spec]:
    """Levels, a sudden drop and spikes that come back, each with its marks."""
    rows: list[Row] = [{"x": at, "value": 900 if at < 30 else 300} for at in range(100)]
    x = {"field": "x", "type": "quantitative", "title": "s", **length_axis(range(100))}
    y = {"field": "value", "type": "quantitative", "title": "IOPS", **linear_axis([0, 900])}
    levels = (
        Level(kind=LevelKind.FRESH, start=0, end=30, value=900),
        Level(kind=LevelKind.STEADY, start=40, end=100, value=300),
    )
    drop = Drop(start=60, end=62, before=300, least=20, recovered=True)
    spikes = PeriodicSpikes(
        period=20, first=5, expected=5, places=(5, 25, 65, 85), height=9, chance=1e-9
    )
    kept: dict[str, Any] = {"workload": work(), "recorded": Recorded.SECONDS, "values": 100}
    timelines = (
        Timeline(**kept, quantity=IOPS.key, levels=levels, settled=True, drops=(drop,)),
        Timeline(**kept, quantity=LATENCY_MAX.key, spikes=spikes),
    )
    spec = build_chart("t", rows, {"x": x, "y": y}, mark="line")
    marked = mark_over_time(spec, timelines, (IOPS, LATENCY_MAX))
    yield for_print(ChartView(key="k", text="", spec=marked))


def collect(name: str, folder: Path) -> Sequence[Spec]:
    """The charts of one of ``COLLECTIONS``."""
    kind, _, which = name.partition(" ")
    match kind:
        case "disturbed":
            return printed(disturbed(which, folder))
        case "simulated":
            return printed(of_preset(which, folder))
        case "throttled":
            return printed(throttled(folder))
        case "firmware":
            return printed(history())
        case "dates":
            return list(dates())
        case "found":
            return list(found_over_time())
        case _:
            return printed(compared(Arrangement(which), int(kind)))


COLLECTIONS = (
    *(f"disturbed {name}" for name in SUITES), "simulated nvme-4kn", "simulated unsteady", "throttled", "firmware", "dates", "found over time",
    *(f"{number} {each}" for each in Arrangement for number in (3, 12)),
)  # fmt: skip


@pytest.mark.parametrize("name", COLLECTIONS)
def test_each_chart_is_as_vega_draws_it(name: str, tmp_path: Path) -> None:
    """The same texts, lines, areas, points, colours and dashes, in the same order at the same places, none by Vega."""
    specs = collect(name, tmp_path)
    assert specs
    assert apart(specs) == {}


@pytest.mark.parametrize("first", range(0, 60, 12))
def test_made_up_charts_are_as_vega_draws_them(first: int) -> None:
    """Numbers of any magnitude, names of any length, dates, gaps: ticks, labels and marks are the same."""
    charts = (
        ChartView(key="k", text="", spec=make_up_chart(seed)) for seed in range(first, first + 12)
    )
    specs = [for_print(chart) for chart in charts]
    drawn = zip(specs, by_vega(specs), strict=True)
    found = {
        first + number: differences(draw(spec), vega) for number, (spec, vega) in enumerate(drawn)
    }
    assert {seed: told[:3] for seed, told in found.items() if told} == {}


def test_every_view_of_the_page_could_be_printed(tmp_path: Path) -> None:
    """Also those that only a click shows: none asks for what is not known."""
    view = of_preset("sata-ssd", tmp_path)
    charts = [chart for test in view.tests for chart in test.charts]
    charts += [chart for test in view.tests for part in test.sections for chart in part.charts]
    for chart in charts:
        for each in chart.views:
            draw(for_print(each))


def test_what_the_comparison_would_not_see_it_tells() -> None:
    """A shift, another colour, a label more, a mark less: each is a difference."""
    spec = line_chart([1.0, 3.0, 2.0])
    svg = draw(spec)
    assert differences(svg, svg) == []
    assert "<circle" in svg
    for one, other in (
        ("translate(", "translate(1"), ("#0B6BB8", "#0B6BB9"), (">Round<", ">Runde<"), ("<circle", "<circles"),
        ('stroke-width="2"', 'stroke-width="2.5"'), ('text-anchor="middle"', 'text-anchor="end"'),
        ('height="', 'height="1'), ("#E1E5EA", "none"), (' y="', ' y="1'),
    ):  # fmt: skip
        assert one in svg
        assert differences(svg.replace(one, other), svg), one


def line_chart(
    values: Sequence[object], *, log: bool = False, names: Sequence[str] = ("a", "b")
) -> Spec:
    """A curve for each name over rounds, for print."""
    rows = [
        {"round": number, "value": value, "series": name}
        for number, value in enumerate(values, start=1)
        for name in names
    ]
    spec = build_chart(
        "title",
        rows,
        {
            "x": {"field": "round", "type": "ordinal", "title": "Round", "axis": {"labelAngle": 0}},
            "y": {
                "field": "value", "type": "quantitative", "title": "IOPS",
                **(log_axis if log else linear_axis)(values),
            },
            "color": colour("Name"),
        },
        mark={"type": "line", "point": True},
    )  # fmt: skip
    return for_print(ChartView(key="k", text="", spec=spec))


NAMES = (
    "AVATAR Ty",
    "µs 100/0",
    "\u22120.5",
    "a  b",
    " lead",
    "日本",
    "Gera\u0308t, Le\u0301on",  # as some keyboards and file systems have it
    "Привет",
    "ΔΩ",
    "x<y & z",
    "",
    "i" * 70,
)


def named(name: str) -> Sequence[Spec]:
    """In a legend beside curves; on an axis, as its title and in a legend of points."""
    names = [name, *(f"{name} {letter}" for letter in "bcdef")]
    rows = [{"n": each, "value": place, "series": each} for place, each in enumerate(names)]
    y = {"field": "n", "type": "nominal", "title": name or "y", "sort": names}
    x = {"field": "value", "type": "quantitative", "title": "x", "scale": {"domain": [0, 9]}}
    spec = build_chart("t", rows, {"x": x, "y": y, "color": colour(name or "c")}, mark="point")
    chart = ChartView(key="k", text="", spec=spec)
    return line_chart([1.0, 2.0], names=names[:2]), for_print(chart)


def test_texts_have_the_room_that_vega_gives_them() -> None:
    """Kerning, spaces, cut ends, letters that the fonts lack: at the plot, in a legend, on an axis."""
    assert apart([spec for name in NAMES for spec in named(name)]) == {}


ODD = [
    None,
    float("nan"),
    float("inf"),
    -float("inf"),
    1e300,
    -1e300,
    1e-300,
    0.0,
    -0.0,
    5e-324,
    3,
    True,
]


GAPS: Sequence[list[object]] = (
    [1.0, None, 3.0], [None, 2.0], [None, None, 4.0, None], [7.0], [5.0, 5.0], [0.0, 0.0], [-4.0, 3.0], [1e-6, 3e-6],
    [1e12, 4e12],
)  # fmt: skip


def test_gaps_and_extremes_are_as_vega_draws_them() -> None:
    """Of values that are missing, alike, tiny or huge; on both kinds of axes."""
    assert apart([line_chart(values, log=log) for values in GAPS for log in (False, True)]) == {}


AXES: Spec = {
    "x": {"field": "x", "type": "quantitative", "title": "x"},
    "y": {"field": "value", "type": "quantitative", "title": "y"},
}


def test_what_has_no_colour_of_its_own_has_the_first() -> None:
    """Also the points of a curve that has one: Vega has another blue for these."""
    rows: list[Row] = [{"x": number, "value": number % 3} for number in range(9)]
    marks: Sequence[Spec] = (
        {"type": "line", "color": PALETTE[1], "point": True}, {"type": "line", "point": {"size": 40}}, {"type": "point"},
    )  # fmt: skip
    charts = [build_chart("t", rows, {**AXES}, mark=mark) for mark in marks]
    specs = [for_print(ChartView(key="k", text="", spec=chart)) for chart in charts]
    assert apart(specs) == {}
    for spec in specs:
        svg = draw(spec)
        assert PALETTE[0] in svg
        assert defaults.MARK_COLOUR not in svg


@pytest.mark.parametrize("longest", [1, 4, 12, 28])
@pytest.mark.parametrize("number", [2, 5, 12])
def test_a_legend_is_no_wider_than_its_chart(longest: int, number: int) -> None:
    """Above or below the plot, on half a page or all of it."""
    words = "Samsung-PM9A3-RND-1024k-R/W-0/100-TC4/QD32-p99.999"
    names = [f"{place} {words[place : place + 1 + place % longest]}" for place in range(number)]
    chart: Any = with_legend_on_top(line_chart([1.0, 2.0], names=names))
    specs = []
    for orient in ("top", "bottom"):
        config = {**chart["config"], "legend": {**chart["config"]["legend"], "orient": orient}}
        colours = chart["encoding"]["color"] | {"legend": {"orient": orient}}
        spec = {**chart, "title": {"text": "t"}, "height": 300, "config": config}
        spec["encoding"] = chart["encoding"] | {"color": colours}
        specs += [
            dict(_for_print({"spec": spec, "wide": wide, "low": False}, ""))
            for wide in (True, False)
        ]
    assert apart(specs) == {}
    for spec in specs:
        seen = see(draw(spec))
        shown = [told for told in seen.words if told.text in names]
        assert len(shown) >= number
        for told in shown:
            assert told.at[0] + 12 * measure_text(told.text, False) <= seen.size[0]


def test_what_is_printed_is_not_clipped() -> None:
    """Nobody zooms it; the name of a level at the top of its plot is whole."""
    rows: list[Row] = [{"x": at, "value": 99 if at < 5 else 50} for at in range(10)]
    y = {"field": "value", "type": "quantitative", "title": "y", "scale": {"domain": [0, 100]}}
    levels = (
        Level(kind=LevelKind.FRESH, start=0, end=4, value=99),
        Level(kind=LevelKind.STEADY, start=5, end=9, value=50),
    )
    timeline = Timeline(
        workload=work(), recorded=Recorded.SECONDS, values=10, quantity=IOPS.key, levels=levels, settled=True
    )  # fmt: skip
    chart = build_chart("t", rows, {"x": AXES["x"], "y": y}, mark="line")
    spec = for_print(ChartView(key="k", text="", spec=mark_over_time(chart, [timeline], [IOPS])))
    assert apart([spec]) == {}
    assert "clip-path" not in draw(spec)


def test_boxes_of_one_value_show_it() -> None:
    """As of a hard disk's first areas, or of a sequential test that varies little."""
    values: dict[str, list[float]] = {
        "one": [3.0],
        "two": [1.0, 5.0],
        "alike": [2.0, 2.0, 2.0],
        "four": [1, 2, 2, 9],
    }
    rows = [{"n": name, "value": each} for name, own in values.items() for each in own]
    x = {"field": "n", "type": "nominal", "title": "x", "sort": list(values)}
    y = {"field": "value", "type": "quantitative", "title": "y"}
    mark = {"type": "boxplot", "extent": "min-max", "color": "#0B6BB8"}
    spec = for_print(
        ChartView(key="k", text="", spec=build_chart("t", rows, {"x": x, "y": y}, mark=mark))
    )
    (vega,) = by_vega([spec])
    own = draw(spec)
    assert differences(own, vega) == []
    assert len([shape for shape in see(own).shapes if shape.look["fill"] == "white"]) == 1 + 2


@settings(max_examples=150)
@given(
    values=st.lists(st.one_of(st.sampled_from(ODD), st.floats(), st.integers()), max_size=6),
    log=st.booleans(),
)
def test_whatever_the_numbers_a_chart_is_drawn_or_refused(values: list[object], log: bool) -> None:
    """And what is drawn has no place that is not a number."""
    try:
        spec = line_chart(values, log=log)
    except (OverflowError, ValueError, StopIteration):
        return  # the axis itself has no ticks of such numbers
    try:
        svg = draw(spec)
    except NotDrawnError:
        return
    ET.fromstring(svg)
    assert "nan" not in svg
    assert "inf" not in svg


def test_hostile_texts_are_texts() -> None:
    """No markup, no control characters, nothing endless; names are cut at their limits."""
    svg = draw(line_chart([1.0, 2.0], names=[HOSTILE, f"{HOSTILE}2", "<b>", "&amp;", "x"]))
    seen = see(svg)
    assert "<script" not in svg
    assert not set(svg) & set("\0\x1b\u202e\u200b\ud800")
    assert {"<b>", "&amp;"} <= {words.text for words in seen.words}
    assert max(len(words.text) for words in seen.words) < 60


def objects(part: object, path: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    """The path of each object of a specification in which a key means something."""
    if isinstance(part, Mapping):
        yield path
        for key, value in part.items():
            # Rows have any fields; what is told on the screen, and notes for the page, are not drawn.
            if key not in ("values", "datasets", "tooltip", "usermeta"):
                yield from objects(value, (*path, key))
    elif isinstance(part, list):
        for number, value in enumerate(part):
            yield from objects(value, (*path, number))


def at(part: Any, path: tuple[object, ...]) -> Any:
    for key in path:
        part = part[key]
    return part


def is_refused(spec: Spec) -> bool:
    try:
        draw(spec)
    except NotDrawnError:
        return True
    return False


@contextmanager
def changed(part: dict[str, Any], key: str, value: object) -> Iterator[None]:
    """An object of a specification with another value for a moment."""
    before = dict(part)
    part[key] = value
    yield
    part.clear()
    part.update(before)


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Spec]:
    """A chart of each kind that there is, told apart by the keys that they have."""
    specs: list[Spec] = []
    for name in ("tp", "iops", "lat", "writesat", "demand", "xsr", "hdd-tp"):
        specs += printed(disturbed(name, tmp_path_factory.mktemp(name)))
    for view in (compared(Arrangement.COHORT, 3), compared(Arrangement.RUNS, 3), history()):
        specs += printed(view)
    found: dict[str, Spec] = {}
    for spec in specs:
        found.setdefault(json.dumps([path for path in objects(spec) if path], default=str), spec)
    return list(found.values())


def test_a_key_that_is_not_known_is_refused_wherever_it_stands(kinds: Sequence[Spec]) -> None:
    """So no property of a chart is ever left out without a word."""
    assert len(kinds) >= 15
    tried = 0
    for spec in kinds:
        draw(spec)
        for path in list(objects(spec)):
            with changed(at(spec, path), "surprise", 1):
                assert is_refused(spec), path
            tried += 1
    assert tried > 1000


OTHER_VALUES: Mapping[str, Sequence[object]] = {
    "type": ["arc", "sqrt", "geojson", 3, None, {}], "shape": ["square", None], "orient": ["top-left", "left", None, 1],
    "labelOverlap": ["sometimes", [], 7], "align": ["justify"], "baseline": ["hanging"], "resolve": [{}, {"axis": {}}],
    "autosize": ["fit", None], "width": ["container", None, 0, -1, float("nan")], "height": [{"step": 3}],
    "font": ["Comic Sans", None], "stroke": [3, {}], "sort": ["-y", {"field": "x"}, "descending"], "labelExpr": ["f()", "1 +"],
    "format": ["$.2f", ".3", "q"], "fontWeight": [650, "lighter"], "symbolType": ["cross"], "symbolOpacity": [0.5], "nice": [5, "day"],
    "filter": [{"field": "x", "gt": 1}, "datum.x in [1]"], "extent": [1.5], "op": ["stdev"], "expr": ["height / 2", "x"],
    "bind": ["slider"], "aria": [True], "field": [["a"], {}],
}  # fmt: skip


def test_a_value_that_is_not_known_is_refused(kinds: Sequence[Spec]) -> None:
    """Of what has a few values: each other one."""
    tried, drawn = set(), []
    for spec in kinds:
        for path in list(objects(spec)):
            part = at(spec, path)
            for key in part.keys() & OTHER_VALUES.keys():
                if path and path[-1] in ("title", "select"):
                    continue
                for value in OTHER_VALUES[key]:
                    with changed(part, key, value):
                        drawn += [] if is_refused(spec) else [(path, key, value)]
                    tried.add(key)
    assert drawn == []
    assert len(tried) > 15, tried


POINT = {"x": 1, "n": "a", "c": "#123456"}
X, N = (
    {"field": "x", "type": "quantitative", "title": "x"},
    {"field": "n", "type": "nominal", "title": "n"},
)


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        ("point", {"x": X | {"scale": {"range": [0, 9]}}, "y": X}),
        ("point", {"x": X, "y": X, "xOffset": {"field": "n"}}),
        ("point", {"x": N, "y": X, "xOffset": {"field": "x", "type": "quantitative"}}),
        ("point", {"x": X, "y": X, "color": N | {"scale": {"range": ["red"], "nice": True}}}),
        ("line", {"x": X, "y": X, "fill": {"field": "c", "type": "nominal"}}),
        ("line", {"x": X, "y": X, "xOffset": {"field": "n"}}),
        ("text", {"x": X, "y": X, "text": {"field": "x", "type": "quantitative"}}),
        ("text", {"x": X, "y": X}),
        ("point", {"x": X | {"scale": {"domain": [9, 0]}}, "y": X}),
    ],
)
def test_what_would_be_left_out_is_refused(mark: str, encoding: Spec) -> None:
    """Known keys where they have no meaning here: another range, offsets along numbers, formats of texts."""
    spec: Spec = {**build_frame("t"), "data": {"values": [POINT]}}
    plain = spec | {"mark": "point", "encoding": {"x": X, "y": X}}
    assert not is_refused(for_print(ChartView(key="k", text="", spec=plain)))
    other = spec | {"mark": mark, "encoding": encoding}
    assert is_refused(for_print(ChartView(key="k", text="", spec=other)))


ARC: Spec = {
    "data": {"values": [{"a": 1}]},
    "mark": "arc",
    "encoding": {"theta": {"field": "a", "type": "quantitative"}},
}


def test_vega_draws_what_is_not_known_and_only_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process of its own, in the order of the charts."""
    monkeypatch.setattr(drawing, "_draw_by_vega", None)
    known = line_chart([1.0, 2.0])
    first, other, last = draw_all([known, ARC, known])
    assert first == last == draw(known)
    assert "mark-arc" in other


def test_vega_is_given_no_text_that_ends_it() -> None:
    """A NUL aborted the whole process, half a surrogate was a defect: names are in run files of strangers."""
    hostile = f"{HOSTILE}\ufffe"
    (drawn,) = draw_all([{**ARC, "title": hostile}])
    assert "mark-arc" in drawn
    assert draw_png(line_chart([1.0], names=[hostile])).startswith(b"\x89PNG")


def test_no_process_is_started_without_need(monkeypatch: pytest.MonkeyPatch) -> None:
    """V8 takes longer to start than all charts."""
    monkeypatch.setattr(drawing, "Aside", None)
    assert len(draw_all([line_chart([1.0])])) == 1


def test_what_the_process_fails_to_draw_is_drawn_all_the_same(failing_asides: None) -> None:
    """It costs time and nothing else."""
    (drawn,) = draw_all([ARC])
    assert "mark-arc" in drawn


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (1234.5, ",.10~f", "1,234.5"), (0.1 + 0.2, ",.10~f", "0.3"), (-5, "d", "\u22125"), (2.5, "d", "3"), (1500, "~s", "1.5k"),
        (1e-6, "~s", "1\u00b5"), (0.00012345678, "~r", "0.000123457"), (1e-7, "~g", "1e-7"), (0.0001, "~g", "0.0001"),
        (1e21, "~g", "1e+21"), (1.5e301, ",f", "1.5e+301"), (9e20, ",.0f", "900,000,000,000,000,000,000"), (0, "~s", "0"), (1e6, ",", "1,000,000"),
    ],
)  # fmt: skip
def test_numbers_are_written_as_d3_writes_them(value: float, form: str, text: str) -> None:
    assert format_number(value, form) == text


@given(low=st.floats(-1e6, 1e6), span=st.floats(1e-3, 1e9), most=st.integers(1, 12))
def test_ticks_are_within_and_evenly_apart(low: float, span: float, most: int) -> None:
    found = linear_ticks(low, low + span, most)
    assert len(found) <= 2.5 * most + 2
    assert all(low - 1e-6 * span <= tick <= low + span + 1e-6 * span for tick in found)
    steps = [after - before for before, after in pairwise(found)]
    assert all(step == pytest.approx(steps[0], rel=1e-3) for step in steps)


@given(start=st.floats(-1e13, 4e12), length=st.floats(1, 1e12), most=st.integers(2, 12))
def test_ticks_of_times_are_within(start: float, length: float, most: int) -> None:
    found = utc_ticks(start, start + length, most)
    assert found == sorted(found)
    assert all(start <= tick <= start + length for tick in found)
    assert len(found) <= 4 * most


DATUM = {"x": 3, "n": None, "t": "a, b: c"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7), ("(1 + 2) * 3", 9), ("datum.x > 1 ? 'a' : 'b'", "a"), ("datum.n || 0", 0), ("floor(7 / 2) + 'h'", "3h"),
        ("split(replace(datum.t, /, /g, ': '), ': ')", ["a", "b", "c"]), ("isValid(datum.n) && datum.x", False),
        ("max(1, datum.x, 2) - -1", 4), ("sequence(1, 4)", [1, 2, 3]), ("-datum.x % 2", -1), ("1 / 0", float("inf")),
        ("datum.t === 'a, b: c'", True), ("datum.x !== 3", False), ("utcFormat(90061000, ':%M:%S')", ":01:01"),
    ],
)  # fmt: skip
def test_expressions_have_vegas_meaning(text: str, value: object) -> None:
    assert compile_expression(text)(DATUM) == value


@pytest.mark.parametrize(
    "text",
    [
        "datum.x && true", "datum.x == 3", "-datum.t", "datum.t < 'b'", "datum.n + 1", "datum.n + 'a'", "datum.missing * 2",
        "'3' * 1", "(1 > 0) + 1", "datum['x']", "datum.x in [3]", "abs(datum.x)", "1 +", "replace(datum.t, ', ', '')",
    ],
)  # fmt: skip
def test_what_javascript_would_convert_is_refused(text: str) -> None:
    """As is all else that charts do not use: nothing has another value here than in the page."""
    with pytest.raises(NotDrawnError):
        compile_expression(text)(DATUM)
