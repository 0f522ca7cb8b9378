"""Draw charts from the logs of the drives. A page shows these charts below the charts that show the performance of the
drives during the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median

from tkperf.analysis.details import LoadsOfTest, TimedStep
from tkperf.analysis.drive_telemetry import TelemetrySeries, find_telemetry_series, parse_drives
from tkperf.analysis.results import RunResult
from tkperf.analysis.timeline.levels import HELD_BAND
from tkperf.model.record import StepKind
from tkperf.model.telemetry.drive_reading import Reading
from tkperf.model.throttling import find_pauses
from tkperf.model.units import format_number
from tkperf.page.chart import MANY_COLOURS, Axis, Chart, Curve, Legend, Point, Rule, RuleKind, Shade, ShadeKind
from tkperf.page.facts import NOT_KNOWN_TEXT
from tkperf.page.figures.curves import find_time_unit
from tkperf.page.figures.timeline import MOST_DOTTED
from tkperf.page.naming import list_words
from tkperf.page.page import ChartView

_FLASH = "How much was written to the flash?"
# The smallest range of the temperature axis. With this range, a nearly constant temperature is shown as a level line,
# and small changes are not magnified.
LEAST_SPAN_C = 10.0


def show_drive_reports(series: TelemetrySeries, of: str) -> Iterator[ChartView]:
    """Yield the charts that contain data. All of these charts have the same time axis.

    Args:
        of: name of the period that the charts cover, for the captions.
    """
    charts = list(_charts(series, of))
    for chart in charts:
        yield replace(chart, below=chart.question != charts[0].question)


def show_drive_reports_below(series: TelemetrySeries) -> Iterator[ChartView]:
    """Yield the charts that are shown below a chart of the drive's performance. These charts show values from the logs
    of the drives.
    """
    for chart in _charts(series, "the same time"):
        yield replace(chart, below=True)


def _charts(series: TelemetrySeries, of: str) -> Iterator[ChartView]:
    """Yield the charts that contain data. If all curves of a chart are level, the chart contains a sentence that states
    this.
    """
    for chart in _draw_all(series, of):
        drawn = chart.chart
        assert isinstance(drawn, Chart)
        yield replace(chart, level=_describe_level(drawn))


def _describe_level(chart: Chart) -> str:
    """Return ``Temperature (°C): level at 41.2.`` if every curve is level and the chart contains no marks. Otherwise
    return an empty text.
    """
    curves = [[point.y for point in curve.points if point.y is not None] for curve in chart.curves]
    if chart.shades or not all(values and _is_level(values) for values in curves):
        return ""
    words = [
        f"{curve.name} {format_number(median(values))}".lstrip()
        for curve, values in zip(chart.curves, curves, strict=True)
    ]
    return f"{chart.y.title}: level at {list_words(words)}."


def _is_level(values: Sequence[float]) -> bool:
    """Return whether all values are close enough to their median to form a level. docs/explanation/method.md defines
    this distance.
    """
    middle = median(values)
    return all(abs(value - middle) <= HELD_BAND * abs(middle) for value in values)


def _draw_all(series: TelemetrySeries, of: str) -> Iterator[ChartView]:
    drives = series.drives
    if any(len(drive.temperatures) > 1 for drive in drives):
        text = f"Temperature by the drive's own sensor over {of}"
        if any(drive.facts.warning_c is not None for drive in drives):
            text += "; dashed: its own limits"
        if any(drive.throttled for drive in drives):
            text += "; shaded: between two readings that say that it was throttled"
        yield ChartView(
            key="temperature",
            text=f"{text}.",
            chart=_draw_temperature(series),
            question="How warm did the drive become?",
        )
    parts = [part for drive in drives for part in drive.written]
    if any(part.nand_bytes is not None for part in parts):
        yield ChartView(
            key="flash",
            text="Written by the host, and to the flash, by the drive's own counters, from reading to reading, over "
            f"{of}.",
            chart=_draw_written(series),
            question=_FLASH,
            choice=("MB/s",),
        )
    if any(part.amplification is not None for part in parts):
        yield ChartView(
            key="amplification",
            text="Bytes written to the flash for each byte of the host's, from reading to reading; none where too "
            "little was written.",
            chart=_draw_amplification(series),
            question=_FLASH,
            choice=("bytes per byte of the host",),
            printed=True,
        )


def align(chart: Chart, length: float) -> Chart:
    """Return a chart over time. Its time axis matches the axis of another chart of the same period."""
    axis = replace(chart.x, domain=(0.0, length))
    return replace(chart, x=axis, aligned=True, legend=Legend.TOP)


def _draw(
    series: TelemetrySeries,
    title: str,
    y: Axis,
    values: Mapping[str, Sequence[tuple[float, float | None]]],
    shades: Iterable[Shade] = (),
    rules: Iterable[Rule] = (),
) -> Chart:
    """Return a chart over time with a small height.

    Args:
        values: pairs of the time in s and the value. The name of the curve is the key.
    """
    unit, unit_s = find_time_unit(series.length_s)
    known = {
        name: tuple(Point(at_s / unit_s, value) for at_s, value in each if value is not None)
        for name, each in values.items()
    }
    drawn = {name: points for name, points in known.items() if points}
    few = sum(map(len, drawn.values())) <= MOST_DOTTED
    chart = Chart(
        title=title,
        x=Axis(title=f"Time ({unit})"),
        y=y,
        curves=tuple(
            Curve(
                name=name if len(drawn) > 1 else "",
                points=points,
                dots=few,
                colour=MANY_COLOURS[number % len(MANY_COLOURS)],
            )
            for number, (name, points) in enumerate(drawn.items())
        ),
        shades=tuple(shades),
        rules=tuple(rules),
        series_word="Drive",
        low=True,
    )
    return align(chart, series.length_s / unit_s)


def _draw_temperature(series: TelemetrySeries) -> Chart:
    """Return a chart that shows the temperatures and the limits of the drives. The times during which a drive was
    throttled are shaded.
    """
    values = {drive.facts.drive: drive.temperatures for drive in series.drives}
    rules = tuple(_limits(series))
    every = [celsius for each in values.values() for _, celsius in each]
    every += [rule.y for rule in rules if rule.y is not None]
    beyond = max(0.0, LEAST_SPAN_C - (max(every) - min(every))) / 2
    reached = (min(every) - beyond, max(every) + beyond)
    y = Axis(title="Temperature (°C)", zero=False, includes=reached)
    return _draw(series, "Temperature", y, values, _throttled(series), rules)


def _throttled(series: TelemetrySeries) -> Iterator[Shade]:
    unit_s = find_time_unit(series.length_s)[1]
    for drive in series.drives:
        for began_s, ended_s in drive.throttled:
            if began_s < series.length_s and ended_s > 0:
                begin, end = max(0.0, began_s) / unit_s, min(series.length_s, ended_s) / unit_s
                yield Shade(kind=ShadeKind.THROTTLED, begin=begin, end=end)


def _limits(series: TelemetrySeries) -> Iterator[Rule]:
    """Yield a line for each temperature limit of any drive."""
    facts = [drive.facts for drive in series.drives]
    for kind, limits in (
        (RuleKind.WARNING, {limits.warning_c for limits in facts}),
        (RuleKind.CRITICAL, {limits.critical_c for limits in facts}),
    ):
        for celsius in sorted(limit for limit in limits if limit is not None):
            yield Rule(kind=kind, y=celsius, name=f"{kind} {celsius:g} °C")


def _draw_written(series: TelemetrySeries) -> Chart:
    """Return a chart that shows the bytes written by the host and the bytes written to the flash. The values are those
    of the counters of the drives.
    """
    values: dict[str, list[tuple[float, float | None]]] = {}
    for drive in series.drives:
        for what, amount in (("host", "host_bytes"), ("flash", "nand_bytes")):
            name = what if len(series.drives) == 1 else f"{drive.facts.drive} {what}"
            values[name] = [
                (at_s, part.megabytes_per_s(bytes_))
                for part in drive.written
                if (bytes_ := getattr(part, amount)) is not None
                for at_s in (part.began_s, part.ended_s)
            ]
    title, y = "Written, as the drive counts", Axis(title="Written (MB/s)")
    return _draw(series, title, y, values)


def _draw_amplification(series: TelemetrySeries) -> Chart:
    """Return a chart of the write amplification between readings. The write amplification is the number of bytes
    written to the flash, divided by the number of bytes written by the host.
    """
    values = {
        drive.facts.drive: [
            (at_s, part.amplification) for part in drive.written for at_s in (part.began_s, part.ended_s)
        ]
        for drive in series.drives
    }
    y = Axis(title="Write amplification (flash/host)")
    return _draw(series, "Write amplification", y, values)


def find_test_course(
    result: RunResult, loads: LoadsOfTest | None, readings: Sequence[Reading]
) -> TelemetrySeries | None:
    """Return the readings of the drives from the first to the last I/O of a test, or None if there are no readings."""
    if loads is None or not loads.loads:
        return None
    return _find(result, loads.loads, readings)


def find_section_courses(
    result: RunResult, loads: LoadsOfTest | None, readings: Sequence[Reading]
) -> dict[str, TelemetrySeries]:
    """Return the readings of the drives for each section that is a stream. The name of the section is the key."""
    streams: dict[str, list[TimedStep]] = {}
    for load in () if loads is None else loads.loads:
        if load.step.kind is StepKind.CONTINUOUS:
            streams.setdefault(load.step.section, []).append(load)
    found = {name: _find(result, of_stream, readings) for name, of_stream in streams.items()}
    return {name: series for name, series in found.items() if series is not None}


def _find(result: RunResult, loads: Sequence[TimedStep], readings: Sequence[Reading]) -> TelemetrySeries | None:
    ends_s = [load.step.started_s + load.step.measurement.duration_s for load in loads]
    facts = parse_drives(result.info.device)
    pauses = find_pauses(result.resumptions)
    return find_telemetry_series(readings, facts, loads[0].step.started_s, max(ends_s), pauses)


def describe_telemetry(device: Mapping[str, object]) -> str:
    """Return the sources of the log of each drive, and the gaps in the log."""
    drives = parse_drives(device)
    if not drives:
        return "none" if "telemetry" in device else NOT_KNOWN_TEXT
    texts: dict[str, list[str]] = {}
    for facts in drives.values():
        sources = ", ".join(facts.sources) or "none"
        text = f"{sources} ({'; '.join(facts.gaps)})" if facts.gaps else sources
        texts.setdefault(text, []).append(facts.drive)
    if len(texts) == 1:
        return next(iter(texts))
    return "; ".join(f"{', '.join(names)}: {text}" for text, names in texts.items())
