"""Charts over a whole test of a comparison: streams, their tails, areas of hard disks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from tkperf.analysis.comparing.comparison import Comparison
from tkperf.analysis.results import SectionResult
from tkperf.model.histogram import COARSE_WIDTH
from tkperf.model.quantity import IOPS, LATENCY_MAX, Quantity, find_quantities
from tkperf.page.chart import DASH_COUNT, NEUTRAL, PALETTE, Axis, Chart, Curve, Point, Scale
from tkperf.page.comparison.ratio_tables import MOST_ACROSS
from tkperf.page.figures.curves import StreamAxis, draw_stream, drive_fills, exceedance_points, flag, over_time
from tkperf.page.findings.headlines import find_highest_spikes
from tkperf.page.naming import capitalise, find_naming, name_figure, shorten_names
from tkperf.page.page import ChartView

# Lower and upper edge in us, I/Os.
Bucket = tuple[float, float, int]
# Characters of a name; a legend shows no more.
_LONGEST_NAME = 40
_TAIL_PERCENT = 0.1

# Results of a section by run.
Sections = dict[str, SectionResult]


def build_test_charts(comparison: Comparison, test: str) -> tuple[ChartView, ...]:
    """Return the charts of any test whose sections are streams or areas."""
    return (*_courses(comparison, test), *_exceedances(comparison, test), *_areas(comparison, test))


def build_over_time(sections: Sections, key: str, title: str) -> ChartView:
    """Return the chart of IOPS over time of the runs' streams, all in one unit of time."""
    time = over_time(max(section.slices[-1].end_s for section in sections.values()))
    return ChartView(
        key=key,
        text=f"{title}: IOPS of every slice over time, a curve for each run.",
        chart=_draw_streams(sections, title, dict.fromkeys(sections, time)),
    )


def build_spike_charts(comparison: Comparison) -> Iterator[ChartView]:
    """Yield the maximum latency over time where a run has its highest periodic spikes, of all runs; none without
    spikes.
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
        time = over_time(max(each.slices[-1].end_s for each in sections.values()))
        title = f"{name_figure(timeline.workload)}: {LATENCY_MAX.label}"
        over = dict.fromkeys(sections, time)
        yield ChartView(
            key=f"spikes{len(drawn)}",
            text=f"{title}: that of every slice over time, a curve for each run.",
            chart=_draw_streams(sections, title, over, LATENCY_MAX, log=True),
            question="Which run has latency spikes?",
        )


def find_streams(comparison: Comparison, test: str) -> dict[str, Sections]:
    """Return the streams of several slices that every run has: by section, then by run."""
    return _in_all(comparison, test, lambda section: len(section.slices) > 1)


def _courses(comparison: Comparison, test: str) -> Iterator[ChartView]:
    """Yield one chart per stream: over time and, if every run recorded what it wrote, over drive fills."""
    lengths = {
        name: result.info.active_range_length_bytes
        for name, result in zip(comparison.names, comparison.results, strict=True)
    }
    for number, (name, sections) in enumerate(find_streams(comparison, test).items()):
        fills = {
            run: drive_fills(length)
            for run, section in sections.items()
            if (length := lengths[run]) and section.slices[-1].total_written_bytes
        }
        over_fills = ChartView(
            key=f"{test}fills{number or ''}",
            text=f"{name}: IOPS of every slice over the amount written, in multiples of the capacity in use, "
            "so that drives of different sizes are compared in the same state.",
            choice=("drive fills",),
            chart=_draw_streams(sections, f"{name}, over drive fills", fills),
        )
        yield replace(
            build_over_time(sections, f"{test}time{number or ''}", name),
            question=f"{name}: how do the runs continue?",
            choice=("time",),
            others=(over_fills,) if len(fills) == len(sections) else (),
        )


def _exceedances(comparison: Comparison, test: str) -> Iterator[ChartView]:
    streams = _in_all(comparison, test, lambda section: bool(section.slices))
    for number, (name, sections) in enumerate(streams.items()):
        title = f"Exceedance: {name}"
        if all(section.histogram_us for section in sections.values()):
            yield ChartView(
                key=f"{test}exceedance{number}",
                text=f"{title}, the share of all I/Os that took longer than a response time.",
                chart=draw_exceedance(sections, title),
            )


def _areas(comparison: Comparison, test: str) -> Iterator[ChartView]:
    areas = _in_all(comparison, test, lambda section: bool(section.areas))
    for number, (name, sections) in enumerate(areas.items()):
        plan = next(iter(sections.values())).plan
        for quantity in find_quantities(plan.quantities)[:1]:
            text = f"{capitalise(quantity.title)} over the device, from its start to its end."
            yield ChartView(
                key=f"{test}areas{number}", text=f"{name}: {text}", chart=_draw_areas(sections, quantity, name)
            )


def _in_all(comparison: Comparison, test: str, wanted: Callable[[SectionResult], bool]) -> dict[str, Sections]:
    """Return the runs' results by section; only sections that every run has."""
    by_section: dict[str, Sections] = {}
    for name, result in zip(comparison.names, comparison.results, strict=True):
        for section in (each for one in result.tests if one.name == test for each in one.sections):
            if wanted(section):
                by_section.setdefault(section.name, {})[name] = section
    runs = len(comparison.names)
    return {name: of_runs for name, of_runs in by_section.items() if len(of_runs) == runs}


def _draw_streams(
    sections: Sections, title: str, over: Mapping[str, StreamAxis], quantity: Quantity = IOPS, *, log: bool = False
) -> Chart:
    """Return a quantity of every slice, a curve for each run; ``over`` is the place of each run's slices."""
    called = shorten_names(sections, _LONGEST_NAME)
    charts = {called[run]: draw_stream(sections[run], (quantity,), title, of) for run, of in over.items()}
    curves = [replace(curve, name=name, dots=False) for name, chart in charts.items() for curve in chart.curves]
    axis = Axis(title=next((of.title for of in over.values()), ""))
    y = Axis(title=quantity.title, scale=Scale.LOG if log else Scale.LINEAR)
    return _add_runs(Chart(title=title, x=axis, y=y), curves, _end)


def _add_runs(chart: Chart, curves: Sequence[Curve], rank: Callable[[Sequence[Point]], float]) -> Chart:
    """Return the chart with a colour for each run; among many runs only the first, the lowest and the highest by rank
    have one.
    """
    names = list(dict.fromkeys(curve.name for curve in curves))
    named = names
    if len(names) > MOST_ACROSS:
        every = {name: [p for each in curves if each.name == name for p in each.points] for name in names}
        named = list(find_named({name: rank(points) for name, points in every.items()}))
    colours = {name: PALETTE[place % len(PALETTE)] for place, name in enumerate(named)}
    drawn = tuple(
        replace(each, colour=colours[each.name]) if each.name in colours else replace(each, colour=NEUTRAL, muted=True)
        for each in curves
    )
    return replace(chart, curves=drawn, series="Run")


def find_named(ranks: Mapping[str, float]) -> tuple[str, ...]:
    """Return the names of the first curve, the lowest and the highest."""
    lowest, highest = (min(ranks, key=lambda name: ranks[name]), max(ranks, key=lambda name: ranks[name]))
    return tuple(dict.fromkeys((next(iter(ranks)), lowest, highest)))


def _end(points: Sequence[Point]) -> float:
    """Return a curve's mean over its last quarter."""
    values = [point.y for point in points if point.y is not None]
    return fmean(values[-(-3 * len(values) // 4) :] or values or [0.0])


def _tail(points: Sequence[Point]) -> float:
    """Return the longest response time that at least a thousandth of a run's I/Os exceed."""
    return max((float(point.x) for point in points if (point.y or 0.0) >= _TAIL_PERCENT), default=0.0)


def draw_exceedance(sections: Mapping[str, SectionResult], title: str) -> Chart:
    """Return the share of a stream's I/Os that took longer than a response time, a curve for each run."""
    many, called = len(sections) > MOST_ACROSS, shorten_names(sections, _LONGEST_NAME)
    curves = [
        Curve(
            name=called[name],
            points=tuple(
                Point(us, _rounded(beyond_percent))
                for us, beyond_percent in exceedance_points(
                    _gather(section.histogram_us) if many else section.histogram_us
                )
            ),
        )
        for name, section in sections.items()
    ]
    flags = (flag(each.values) for section in sections.values() for each in section.slices)
    chart = Chart(
        title=title,
        x=Axis(title="Response time (µs)", scale=Scale.LOG),
        y=Axis(title="I/Os that took longer (%)", scale=Scale.LOG),
        flags=tuple(dict.fromkeys(filter(None, flags))),
    )
    return _add_runs(chart, curves, _tail)


def _rounded(value: float) -> float:
    """Return the value in seven digits, more than a chart shows.

    Each digit is a byte, and many runs have thousands of points.
    """
    return float(f"{value:.7g}")


def _gather(buckets: Iterable[Bucket]) -> list[Bucket]:
    """Return the buckets with neighbours merged, up to a sixteenth of the response time wide.

    A curve of many runs is a few pixels off at most.
    """
    gathered: list[Bucket] = []
    for lower, upper, count in buckets:
        if gathered:
            first, last, before = gathered[-1]
            if lower == last and upper <= first * (1 + COARSE_WIDTH):
                gathered[-1] = (first, upper, before + count)
                continue
        gathered.append((lower, upper, count))
    return gathered


def _draw_areas(sections: Mapping[str, SectionResult], quantity: Quantity, title: str) -> Chart:
    """Return a quantity over the areas of hard disks: a colour for each run, a dash for each workload.

    Disks may have different numbers of areas, so each area's place is its share of the disk.
    """
    workloads = dict.fromkeys(cell.workload for section in sections.values() for _, cell in section.cells_of_rounds())
    naming, called = find_naming(workloads), shorten_names(sections, _LONGEST_NAME)
    curves = [
        Curve(
            name=called[name],
            variant=naming.name_of(workload),
            dash=dash % DASH_COUNT,
            points=tuple(
                Point(100 * (area.number - 0.5) / section.areas, cell.value(quantity), flag=flag(cell))
                for area, cell in areas.get(workload, ())
            ),
        )
        for name, section in sections.items()
        if section.areas
        for areas in (section.rounds_of_workloads(),)
        for dash, workload in enumerate(workloads)
    ]
    chart = Chart(
        title=title,
        x=Axis(title="Place on the device (% of its capacity)"),
        y=Axis(title=quantity.title),
        variants=naming.title,
    )
    return _add_runs(chart, curves, _end)
