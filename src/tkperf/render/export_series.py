"""Export a run as series over absolute time, in OpenMetrics and in line protocol. Dashboards read such series from a
database.

The series contain every second of every step, and every reading of the drives. A value that was not measured has no
point, and is never written as 0. ``docs/reference/exports.md`` explains the names and labels.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from tkperf.analysis.results import RunResult
from tkperf.analysis.run_overview import RunOverview
from tkperf.model.measurement import Sample
from tkperf.model.record import StepRecord, UnfinishedStep
from tkperf.model.run_info import RunInfo
from tkperf.model.telemetry.drive_reading import Reading
from tkperf.model.units import drop_controls
from tkperf.model.workload import Workload
from tkperf.render.export_tables import SAMPLE_PERCENTILES, Samples

_BLANKS = str.maketrans("\r\t\v\f", "    ")

Labels = Mapping[str, str]
SampleValues = Mapping[str, float | None]
Steps = Iterable[tuple[str, StepRecord]]
Readings = Iterable[tuple[str | None, Reading]]


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """Values at one time, with the names of families as the keys. None means that a value was not measured."""

    at_s: float
    labels: Labels
    values: SampleValues


@dataclass(frozen=True, slots=True)
class Family:
    """Properties that all series of one quantity have in common. OpenMetrics shows ``meaning`` as the help text. If
    there is a unit, the name of the family ends with the unit.
    """

    unit: str
    meaning: str
    kind: str = "gauge"


def _percentile(percent: float) -> str:
    return f"tkperf_latency_p{percent:g}_seconds".replace(".", "_")


# The units are the base units of OpenMetrics, which are seconds and bytes. Rates have no unit.
SECONDS: dict[str, tuple[Family, Callable[[Sample], float | None]]] = {
    "tkperf_read_iops": (Family("", "I/Os read a second"), lambda of: of.read.ios / of.duration_s),
    "tkperf_write_iops": (Family("", "I/Os written a second"), lambda of: of.write.ios / of.duration_s),
    "tkperf_read_bytes_per_second": (Family("", "Bytes read a second"), lambda of: of.read.bytes / of.duration_s),
    "tkperf_write_bytes_per_second": (Family("", "Bytes written a second"), lambda of: of.write.bytes / of.duration_s),
    "tkperf_latency_mean_seconds": (
        Family("seconds", "Mean latency of the second"),
        lambda of: _seconds(of.both.latency_mean_ns),
    ),
    **{
        _percentile(percent): (
            Family("seconds", f"Latency that {percent:g} % of the second's I/Os did not exceed"),
            lambda of, percent=percent: _seconds(of.both.percentile_ns(percent)),  # type: ignore[misc]
        )
        for percent in SAMPLE_PERCENTILES
    },
}
# Series of trims and of flushes. Only the points of loads that trim or flush contain these values.
TRIMS: dict[str, tuple[Family, Callable[[Sample], float | None]]] = {
    "tkperf_trim_iops": (Family("", "Trims a second"), lambda of: of.trim.ios / of.duration_s),
    "tkperf_trim_bytes_per_second": (Family("", "Bytes trimmed a second"), lambda of: of.trim.bytes / of.duration_s),
}
FLUSHES: dict[str, tuple[Family, Callable[[Sample], float | None]]] = {
    "tkperf_flushes_per_second": (Family("", "Flushes a second"), lambda of: of.flush.ios / of.duration_s),
    "tkperf_flush_latency_mean_seconds": (
        Family("seconds", "Mean latency of the second's flushes"),
        lambda of: _seconds(of.flush.latency_mean_ns),
    ),
    "tkperf_flush_latency_p99_seconds": (
        Family("seconds", "Latency that 99 % of the second's flushes did not exceed"),
        lambda of: _seconds(of.flush.percentile_ns(99)),
    ),
}
_READS_AND_WRITES = tuple(name for name in SECONDS if name.startswith(("tkperf_read", "tkperf_write")))

READINGS: dict[str, tuple[Family, str]] = {
    "tkperf_drive_temperature_celsius": (Family("celsius", "Temperature by the drive"), "temperature_c"),
    "tkperf_drive_host_written_bytes": (
        Family("bytes", "Written by the host, in the drive's life", "counter"),
        "host_written_bytes",
    ),
    "tkperf_drive_nand_written_bytes": (
        Family("bytes", "Written to the flash, in the drive's life", "counter"),
        "nand_written_bytes",
    ),
    "tkperf_drive_media_errors": (Family("", "Media errors, in the drive's life", "counter"), "media_errors"),
    "tkperf_drive_used_ratio": (Family("ratio", "Used up of the life that the maker promises"), "percentage_used"),
}

# Series of a run that is still in progress. The key is the name of the series. The last text of an entry is the name of
# a field in the overview of the run.
PROGRESS: dict[str, tuple[Family, str]] = {
    "tkperf_run_tests": (Family("", "Tests of the run"), "tests"),
    "tkperf_run_tests_done": (Family("", "Tests that are complete"), "tests_done"),
    "tkperf_run_elapsed_seconds": (Family("seconds", "Time since the run began"), "elapsed_s"),
    "tkperf_run_remaining_shortest_seconds": (Family("seconds", "Shortest time until its end"), "remaining_shortest_s"),
    "tkperf_run_remaining_longest_seconds": (Family("seconds", "Longest time until its end"), "remaining_longest_s"),
    "tkperf_run_warnings": (Family("", "Warnings so far"), "warnings"),
    "tkperf_run_disturbed_steps": (Family("", "Disturbed steps so far"), "disturbed_steps"),
}


def build_points(
    result: RunResult, began_s: float, steps: Steps, samples: Samples, readings: Readings = ()
) -> Iterator[SeriesPoint]:
    """Yield the points of each series, one series after the other. The points of a series are in chronological order.
    The readings of the drives are last.

    Args:
        began_s: start of the run, in seconds since 1970 (UTC).
    """
    run = label_run(result.info)
    # The flushes need no separate series, because the points of their load contain the values of the flushes.
    parts = ((test, part) for test, step in steps for part in step.parts if not part.workload.flushes)
    in_series = sorted(parts, key=lambda each: (each[0], each[1].section, str(each[1].workload), each[1].started_s))
    for test, part in in_series:
        labels = run | label_step(test, part)
        for sample in samples(test, part):
            yield build_second(sample, part.workload, labels, began_s + part.started_s)
    for _, reading in sorted(readings, key=lambda each: (each[1].drive, each[1].at_s)):
        yield build_reading(reading, run, began_s + reading.at_s)


def label_run(info: RunInfo) -> dict[str, str]:
    device = info.device
    labels = {"run": info.name, "device": str(device.get("model") or device.get("kind") or "")}
    return labels | ({"serial": str(device["serial"])} if device.get("serial") else {})


def label_step(test: str, step: StepRecord | UnfinishedStep) -> dict[str, str]:
    """Return the labels of a step. Only the streams of a combination have the label ``stream``."""
    workload, kind = str(step.workload), step.kind.value
    labels = {"test": test, "section": step.section, "workload": workload, "kind": kind}
    return labels if step.workload.stream is None else labels | {"stream": step.workload.stream}


def build_second(sample: Sample, workload: Workload, labels: Labels, step_s: float) -> SeriesPoint:
    """Return the point of a one-second sample. The time of the point is the end of the second, because the values were
    known at that time.

    Args:
        step_s: start of the step, in seconds since 1970 (UTC).
    """
    families = SECONDS | (TRIMS if workload.trims else {}) | (FLUSHES if workload.flush_every is not None else {})
    values = {name: value(sample) for name, (_, value) in families.items()}
    if workload.trims:
        values |= dict.fromkeys(_READS_AND_WRITES)
    return SeriesPoint(step_s + sample.start_s + sample.duration_s, labels, values)


def build_reading(reading: Reading, run: Labels, at_s: float) -> SeriesPoint:
    """Return the point that contains a reading of a drive."""
    values = {name: getattr(reading, attribute) for name, (_, attribute) in READINGS.items()}
    used = values["tkperf_drive_used_ratio"]
    values["tkperf_drive_used_ratio"] = None if used is None else used / 100
    return SeriesPoint(at_s, {**run, "drive": reading.drive}, values)


def build_progress(overview: RunOverview, run: Labels, at_s: float) -> SeriesPoint:
    """Return the point that contains the progress of a run."""
    values = {name: getattr(overview, attribute) for name, (_, attribute) in PROGRESS.items()}
    return SeriesPoint(at_s, run, values)


def render_openmetrics(points: Iterable[SeriesPoint]) -> Iterator[str]:
    """Yield the text of OpenMetrics 1.0 with time stamps in pieces. The points are sorted according to family and
    series.
    """
    of_all = (*SECONDS.items(), *TRIMS.items(), *FLUSHES.items(), *READINGS.items(), *PROGRESS.items())
    families = {name: family for name, (family, _) in of_all}
    # In OpenMetrics, all points of a family must be consecutive. Each family is collected in a file, because the points
    # of several days do not fit in memory.
    with ExitStack() as stack:
        spools = {name: stack.enter_context(tempfile.TemporaryFile("w+")) for name in families}
        for point in points:
            labels = ",".join(f'{name}="{_quoted(text)}"' for name, text in point.labels.items())
            for name, value in point.values.items():
                if value is not None:
                    suffix = "_total" if families[name].kind == "counter" else ""
                    spools[name].write(f"{name}{suffix}{{{labels}}} {_number(value)} {point.at_s:.3f}\n")
        for name, spool in spools.items():
            if spool.tell():
                family = families[name]
                yield f"# TYPE {name} {family.kind}\n"
                if family.unit:
                    yield f"# UNIT {name} {family.unit}\n"
                yield f"# HELP {name} {family.meaning}.\n"
                spool.seek(0)
                yield from iter(lambda spool=spool: spool.read(1 << 20), "")  # type: ignore[misc]
    yield "# EOF\n"


def render_line_protocol(points: Iterable[SeriesPoint]) -> Iterator[str]:
    """Yield the text in InfluxDB's line protocol, with a line for each time. Times are in ns.

    The measurements are ``tkperf_second`` and ``tkperf_drive``.
    """
    for point in points:
        known = {name: value for name, value in point.values.items() if value is not None}
        if known:
            measurement = "tkperf_drive" if "drive" in point.labels else "tkperf_second"
            escaped = ((name, _escaped(text)) for name, text in point.labels.items())
            tags = "".join(f",{name}={text}" for name, text in escaped if text)
            fields = ",".join(f"{name.removeprefix('tkperf_')}={_number(value)}" for name, value in known.items())
            yield f"{measurement}{tags} {fields} {round(point.at_s * 1e9)}\n"


def _seconds(value_ns: float | None) -> float | None:
    return None if value_ns is None or not math.isfinite(value_ns) else value_ns / 1e9


def _number(value: float) -> str:
    """Return a number as text. Whole numbers keep all their digits, because counters of bytes can have sixteen
    digits.
    """
    return str(value) if isinstance(value, int) else repr(float(value))


def _quoted(text: str) -> str:
    """Return the value of a label. In OpenMetrics, only the backslash, the quotation mark and the line feed must be
    escaped.
    """
    text = drop_controls(text.translate(_BLANKS))
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _escaped(text: str) -> str:
    """Return a tag of the line protocol. Characters that would end a tag are escaped. A line end cannot be escaped, so
    it is replaced by a blank.
    """
    text = drop_controls(" ".join(text.translate(_BLANKS).split("\n"))).strip(" ").rstrip("\\")
    return "".join(f"\\{letter}" if letter in ",= " else letter for letter in text)
