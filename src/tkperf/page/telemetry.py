"""Drives' own reports of themselves, below the charts of their work in the same time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tkperf.analysis.details import LoadsOfTest, TimedStep
from tkperf.analysis.results import RunResult
from tkperf.analysis.telemetry import TelemetryCourse, find_telemetry_course, parse_drives
from tkperf.model.record import StepKind
from tkperf.model.telemetry.judge import find_pauses
from tkperf.model.telemetry.reading import Reading
from tkperf.page.page import ChartView
from tkperf.page.wording import NOT_KNOWN_TEXT
from tkperf.render.charts import telemetry
from tkperf.render.charts.rounds import find_time_unit

_FLASH = "How much went to the flash?"


def show_course(course: TelemetryCourse, of: str) -> Iterator[ChartView]:
    """Yield the charts that have data, each on the time axis of the chart before it.

    Args:
        of: name of that time, for captions.
    """
    charts = list(_charts(course, of))
    for chart in charts:
        yield replace(chart, below=chart.question != charts[0].question)


def show_course_below(course: TelemetryCourse) -> Iterator[ChartView]:
    """Yield the charts of the course below a chart of the drive's work."""
    for chart in _charts(course, "the same time"):
        yield replace(chart, below=True)


def _charts(course: TelemetryCourse, of: str) -> Iterator[ChartView]:
    unit, unit_s = find_time_unit(course.length_s)
    drives = course.drives
    if any(len(drive.temperatures) > 1 for drive in drives):
        text = f"Temperature by the drive's own sensor over {of}"
        if any(drive.facts.warning_c is not None for drive in drives):
            text += "; dashed: its own limits"
        if any(drive.throttled for drive in drives):
            text += "; shaded: between two readings that say that it was throttled"
        yield ChartView(
            key="temperature",
            text=f"{text}.",
            spec=telemetry.temperature(course, "Temperature", unit, unit_s),
            question="How warm did it get?",
        )
    parts = [part for drive in drives for part in drive.written]
    if any(part.nand_bytes is not None for part in parts):
        yield ChartView(
            key="flash",
            text=f"Written by the host, and to the flash, by the drive's own counters, from reading to reading, over {of}.",
            spec=telemetry.written(course, "Written, as the drive counts", unit, unit_s),
            question=_FLASH,
            choice=("MB/s",),
        )
    if any(part.amplification is not None for part in parts):
        yield ChartView(
            key="amplification",
            text="Bytes written to the flash for each byte of the host's, from reading to reading; none where too "
            "little was written.",
            spec=telemetry.amplification(course, "Write amplification", unit, unit_s),
            question=_FLASH,
            choice=("bytes for each of the host's",),
            printed=True,
        )


def find_test_course(
    result: RunResult, loads: LoadsOfTest | None, readings: Sequence[Reading]
) -> TelemetryCourse | None:
    """Return the drives' reports from the first I/O of a test to its last; None without any."""
    if loads is None or not loads.loads:
        return None
    return _find(result, loads.loads, readings)


def find_section_courses(
    result: RunResult, loads: LoadsOfTest | None, readings: Sequence[Reading]
) -> dict[str, TelemetryCourse]:
    """Return the drives' reports of each section that is a stream, by its name."""
    streams: dict[str, list[TimedStep]] = {}
    for load in () if loads is None else loads.loads:
        if load.step.kind is StepKind.CONTINUOUS:
            streams.setdefault(load.step.section, []).append(load)
    found = {name: _find(result, of_stream, readings) for name, of_stream in streams.items()}
    return {name: course for name, course in found.items() if course is not None}


def _find(
    result: RunResult, loads: Sequence[TimedStep], readings: Sequence[Reading]
) -> TelemetryCourse | None:
    ends_s = [load.step.started_s + load.step.measurement.duration_s for load in loads]
    facts = parse_drives(result.info.device)
    pauses = find_pauses(result.resumptions)
    return find_telemetry_course(readings, facts, loads[0].step.started_s, max(ends_s), pauses)


def describe_telemetry(device: Mapping[str, object]) -> str:
    """Return the sources of each drive's log, and the gaps in it."""
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
