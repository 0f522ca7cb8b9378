"""Build the charts of a comparison.

The charts of a test show curves, spikes over time, and the areas of hard disks. A history has charts of the headline
figures over the dates of the runs. A cohort has a line for each figure, with a dot for each drive around the median of
the drives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from tkperf.analysis.comparing.arrangements import OUTLIER_SCORE, CohortValue, History, HistoryValue, find_trend
from tkperf.analysis.comparing.compared_rows import Entry
from tkperf.analysis.comparing.comparison import Comparison
from tkperf.analysis.results import SectionResult
from tkperf.model.quantity import IOPS, LATENCY_MAX, Quantity, find_quantities
from tkperf.model.units import format_count, format_number
from tkperf.page.chart import PALETTE, Axis, Chart, Curve, Mark, Place, Point, Rule, RuleKind, Scale
from tkperf.page.comparison.conclusions import describe_trend
from tkperf.page.comparison.ratio_tables import describe_exactly
from tkperf.page.comparison.ratio_texts import describe_loads, name_headlines, sort_figures, sort_headlines
from tkperf.page.comparison.run_curves import build_run_curves, call_runs, colour_runs, draw_runs
from tkperf.page.figures.curves import StreamAxis, draw_stream, flag, over_time
from tkperf.page.findings.headlines import find_highest_spikes
from tkperf.page.naming import capitalise, find_naming, name_figure
from tkperf.page.page import ChartView, HeadlineView
from tkperf.page.strip import Dot, build_dot_strip
from tkperf.page.verdict_texts import NoteLevel
from tkperf.page.words.uncertainty import INTERVAL

# The results of a section. The name of the run is the key.
Sections = dict[str, SectionResult]


def build_test_charts(comparison: Comparison, test: str) -> tuple[ChartView, ...]:
    """Return the charts of a test. A chart has one curve for each run whose report contains this curve. Charts over the
    areas of hard disks are included.
    """
    return (*build_run_curves(comparison, test), *_areas(comparison, test))


def build_over_time(comparison: Comparison, sections: Sections, key: str, title: str) -> ChartView:
    """Return a chart that shows the IOPS of every slice over time. All runs have the same unit of time."""
    called, colours = call_runs(comparison.names), colour_runs(comparison.names)
    curves = tuple(
        replace(curve, name=called[run], colour=colours[run]) for run, curve in _find_courses(sections, IOPS).items()
    )
    chart = Chart(title=title, x=_find_time(sections), y=Axis(title=IOPS.title), curves=curves, series="Run")
    return ChartView(key=key, text=f"{title}: IOPS of every slice over time, a curve for each run.", chart=chart)


def build_spike_charts(comparison: Comparison) -> Iterator[ChartView]:
    """Yield a chart that shows the maximum latency of all runs over time. The load is the one with the highest periodic
    spikes in any run. If no run has periodic spikes, yield nothing.
    """
    drawn: set[tuple[str, str]] = set()
    for result in comparison.results:
        found = find_highest_spikes(result.tests)
        if found is None:
            continue
        test, section, timeline = found
        sections = find_streams(comparison, test.name).get(section.name)
        if sections is None or (test.name, section.name) in drawn:
            continue
        drawn.add((test.name, section.name))
        title = f"{name_figure(timeline.workload)}: {LATENCY_MAX.label}"
        chart = Chart(title=title, x=_find_time(sections), y=Axis(title=LATENCY_MAX.title, scale=Scale.LOG))
        yield ChartView(
            key=f"spikes{len(drawn)}",
            text=f"{title}: that of the slices over time, a curve for each run.",
            chart=draw_runs(comparison, chart, _find_courses(sections, LATENCY_MAX)),
            question="Which run has latency spikes?",
        )


def find_streams(comparison: Comparison, test: str) -> dict[str, Sections]:
    """Return the streams with several slices that all runs measured. The outer key is the section, and the inner key is
    the run.
    """
    return _in_all(comparison, test, lambda section: len(section.slices) > 1)


def _find_time(sections: Sections) -> Axis:
    return Axis(title=_over_time(sections).title)


def _over_time(sections: Sections) -> StreamAxis:
    return over_time(max(section.slices[-1].end_s for section in sections.values()))


def _find_courses(sections: Sections, quantity: Quantity) -> dict[str, Curve]:
    """Return the curve of a quantity over time for each run. A curve has a point for each slice."""
    time = _over_time(sections)
    return {
        run: replace(curve, dots=False)
        for run, section in sections.items()
        for curve in draw_stream(section, (quantity,), "", time).curves
    }


def _areas(comparison: Comparison, test: str) -> Iterator[ChartView]:
    """Yield a chart over the areas of hard disks, with a view for each workload.

    Disks may have different numbers of areas. The chart therefore shows the position of an area as a share of the disk.
    """
    areas = _in_all(comparison, test, lambda section: bool(section.areas))
    for number, (name, sections) in enumerate(areas.items()):
        plan = next(iter(sections.values())).plan
        for quantity in find_quantities(plan.quantities)[:1]:
            views = list(_draw_areas(comparison, sections, quantity, name))
            if views:
                first = replace(views[0], others=tuple(views[1:]))
                yield replace(first, key=f"{test}areas{number}", question="How do the results change over the disk?")


def _in_all(comparison: Comparison, test: str, wanted: Callable[[SectionResult], bool]) -> dict[str, Sections]:
    """Return the results of the runs for each section that all runs contain."""
    by_section: dict[str, Sections] = {}
    for name, result in zip(comparison.names, comparison.results, strict=True):
        for section in (each for one in result.tests if one.name == test for each in one.sections):
            if wanted(section):
                by_section.setdefault(section.name, {})[name] = section
    runs = len(comparison.names)
    return {name: of_runs for name, of_runs in by_section.items() if len(of_runs) == runs}


def _draw_areas(comparison: Comparison, sections: Sections, quantity: Quantity, title: str) -> Iterator[ChartView]:
    workloads = dict.fromkeys(cell.workload for section in sections.values() for _, cell in section.cells_of_rounds())
    naming = find_naming(workloads)
    of_runs = {run: (section.areas or 1, section.rounds_of_workloads()) for run, section in sections.items()}
    for number, workload in enumerate(workloads):
        curves = {
            run: Curve(
                points=tuple(
                    Point(100 * (area.number - 0.5) / count, cell.value(quantity), flag=flag(cell))
                    for area, cell in areas[workload]
                )
            )
            for run, (count, areas) in of_runs.items()
            if workload in areas
        }
        name = naming.name_of(workload)
        chart = Chart(
            title=f"{title}: {name}",
            x=Axis(title="Place on the device (% of its capacity)"),
            y=Axis(title=quantity.title),
        )
        text = f"{title}: {name}. {capitalise(quantity.title)} over the device, from its start to its end."
        drawn = draw_runs(comparison, chart, curves)
        yield ChartView(key=f"{title}-{number}", text=text, chart=drawn, choice=(name,))


DAY_MS = 86_400_000


def build_history_charts(comparison: Comparison) -> Iterator[ChartView]:
    """Yield a chart for each headline figure of a history. The figure with the greatest trend is first. For all other
    comparisons, yield nothing.
    """
    history = comparison.history
    if history is None:
        return
    loads = describe_loads(comparison)
    for number, figure in enumerate(sort_figures(comparison, history.figures)):
        load, key = loads[figure.row.place], f"headline-history{number}"
        yield _of_figure(comparison, history, figure, load, key)


def _place_value(at: Place, entry: Entry, *facts: str) -> Point:
    """Return the point of a value with the interval of its level. Only the part of the interval above 0 is included."""
    known = None if entry.uncertainty is None else entry.uncertainty.of_level
    low, high = (None, None) if known is None else (known.low, known.high)
    low = None if low is None else max(low, 0.0)
    return Point(at, entry.value, low, high, flag=flag(entry), facts=facts)


def _of_figure(comparison: Comparison, history: History, figure: HistoryValue, load: str, key: str) -> ChartView:
    measure = figure.row.quantity
    points: list[Point] = []
    for name, day, result, entry in zip(
        comparison.names, history.days, comparison.results, figure.row.entries, strict=True
    ):
        if entry.value is None:
            continue
        began, exactly = (result.info.started_utc or "")[:10], describe_exactly(measure, entry)
        points.append(_place_value(day * DAY_MS, entry, name, began, exactly))
    places = [float(point.x) for point in points]
    trend = find_trend(places, [point.y or 0.0 for point in points])
    line = (
        ()
        if trend is None
        else tuple(
            Point(at, trend.level + trend.slope * (at - trend.at))
            for at in (history.days[0] * DAY_MS, history.days[-1] * DAY_MS)
        )
    )
    runs = Curve(points=tuple(points), mark=Mark.POINT, facts=("Run", "Began", "Interval"))
    return ChartView(
        key=key,
        text=f"Each run by its date, with the {INTERVAL}; trend (dashed): "
        f"{describe_trend(figure, history)}, {figure.change}.",
        chart=Chart(
            title=f"{load}: {measure.label}",
            x=Axis(title="", scale=Scale.DATE),
            y=Axis(title=measure.title, zero=False),
            curves=(*((Curve(points=line, colour=PALETTE[1], dash=1),) if line else ()), runs),
            rules=tuple(
                Rule(kind=RuleKind.CHANGE, x=change.day * DAY_MS, name=f"firmware {change.after}")
                for change in history.firmware
            ),
            low=True,
        ),
    )


MEANING_OF_STRIPS = (
    "A strip has a dot for each drive. The line is the median of the drives of one model. Dotted lines are the limits "
    f"of outliers, which are {OUTLIER_SCORE:g} by the modified z-score away from the median."
)
MEANING_OF_CLAIM_LIMITS = "The dashed line is the limit of the claim; values in the shaded part miss it."


def choose_cohort_figures(comparison: Comparison, most: int) -> tuple[CohortValue, ...]:
    """Return the most important figures of a cohort. The order is: figures with outliers, the first figure of each
    test, all other figures.
    """
    figures = () if comparison.cohort is None else comparison.cohort.figures
    by_place = {figure.row.place: figure for figure in figures}
    ordered = [by_place[row.place] for row in sort_headlines(comparison) if row.place in by_place]
    outliers = [figure for figure in ordered if figure.outliers]
    firsts: dict[str, CohortValue] = {}
    for figure in figures:
        firsts.setdefault(figure.row.test, figure)
    chosen = {id(figure): figure for figure in (*outliers, *firsts.values(), *ordered)}
    return tuple(chosen.values())[:most]


def build_figure_tiles(
    comparison: Comparison, figures: Sequence[CohortValue], called: Mapping[str, str]
) -> Iterator[HeadlineView]:
    """Yield a tile for each figure of a cohort.

    Args:
        called: the name of each drive on the page, with the name of the drive's run as the key.
    """
    names = name_headlines(comparison)
    for figure in figures:
        measure, cohort = figure.row.quantity, figure.distribution
        # A possible outlier also has a label. Otherwise the reader would not know which drive the distant dot shows.
        levels = dict.fromkeys((one.name for one in figure.unsure), NoteLevel.INFORMATION)
        levels |= dict.fromkeys((one.name for one in figure.outliers), NoteLevel.CAUTION)
        values = []
        for name, entry in zip(comparison.names, figure.row.entries, strict=True):
            if entry.value is not None:
                hint = f"{called[name]}: {measure.text(entry.value)}"
                values.append((entry.value, Dot(share=0.0, level=levels.get(name), name=called[name], hint=hint)))
        low, high, middle = (
            format_number(each, measure.digits) for each in (cohort.lowest, cohort.highest, cohort.median)
        )
        far = [f"{called[one.name]} {format_distance(one.from_median_percent)} ◆" for one in figure.outliers[:1]]
        title, spread = names[figure.row.place], f"{low} to {high}"
        count = format_count(len(values), "drive")
        yield HeadlineView(
            label=f"{title} ({measure.unit})" if measure.unit and measure.unit not in title else title,
            text=f"median {middle}",
            exact=spread,
            sure=spread,
            verdict="".join(far),
            alarm=False,
            test="",
            section="",
            strip=build_dot_strip(values, f"{title}: {count}, median {middle}, {spread}", cohort=cohort),
        )


def format_distance(percent: float) -> str:
    """Return a distance from the median in percent: ``-11.3 %``."""
    text = f"{percent:+.1f} %"
    return "0.0 %" if text in ("+0.0 %", "-0.0 %") else text
