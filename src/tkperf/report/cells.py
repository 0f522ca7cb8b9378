"""What a click on a cell opens, as plain data small enough to travel within the page."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tkperf.analysis.details import CellDetail
from tkperf.analysis.flags import describe_disturbances, explain_marks, mark
from tkperf.analysis.results import CellResult, RoundResult, SliceResult
from tkperf.measurement import REPORTED_PERCENTILES
from tkperf.report.charts.latency import (
    exceedance,
    histogram_rows,
    mark_rows,
    response_time_histogram,
)
from tkperf.report.charts.parts import Spec
from tkperf.report.charts.seconds import (
    IOPS,
    LATENCY,
    THROUGHPUT,
    find_rate,
    over_seconds,
    part_rows,
    window_rows,
)
from tkperf.report.parts import CellView, Facts, TableView
from tkperf.report.section_parts import Subject, Value, iops, throughput
from tkperf.report.wording import format_fact
from tkperf.units import NOT_MEASURED, format_number

# The page draws five digits; what single precision has beyond them would only make it larger.
_FORGOTTEN_BITS = 6


def build_cell_charts() -> dict[str, Spec]:
    """The charts of a cell by name, without data: the page fills them for the cell clicked."""
    return {
        **{
            name: over_seconds([], [], [], quantity, f"{quantity.title}, every second")
            for name, quantity in (
                ("iops", IOPS),
                ("megabytes_per_s", THROUGHPUT),
                ("latency", LATENCY),
            )
        },
        "histogram": response_time_histogram([], [], "Response time histogram"),
        "exceedance": exceedance([], [], "Exceedance"),
    }


def build_cell(subject: Subject, detail: CellDetail) -> CellView:
    """What lies behind a cell of a section, or behind a stream."""
    section = subject.section
    stream = bool(section.slices)
    rate = find_rate(subject.test)
    buckets = histogram_rows(detail.whole)
    seconds = detail.seconds
    return CellView(
        key=subject.link(detail.cell),
        title=f"{section.name}: {detail.workload}",
        facts=_facts(subject, detail),
        rate=rate.series[0][1],
        seconds={
            name: pack(_shorten(getattr(seconds, name)))
            for name in ("start_s", rate.series[0][1], "latency_mean_us", "latency_max_us")
        }
        if len(seconds)
        else {},
        buckets={
            name: pack(np.array([row[name] for row in buckets], dtype=np.float64))
            for name in ("lower", "upper", "count")
        }
        if buckets
        else {},
        marks=tuple(mark_rows(detail.whole)),
        window=tuple(window_rows(detail)),
        parts=tuple(part_rows(detail)),
        rounds=None if stream else _rounds(detail, section.rounds, areas=section.areas),
        words=_words(subject, detail),
        job=detail.job_file,
    )


def _words(subject: Subject, detail: CellDetail) -> str:
    section = subject.section
    if section.slices:
        where, what = "Every second of this stream", "all its slices"
    elif section.areas:
        where, what = "Every second of this cell, areas end to end", "all areas measured"
    else:
        where = "Every second of this cell, rounds end to end"
        what = "the window's rounds" if section.window else "all its rounds"
    shaded = ""
    if any(part.judged for part in detail.parts):
        shaded = " Shaded green: the window that was judged for steady state."
    return (
        f"{where}; where a point stands for several seconds the shade reaches from the lowest to the "
        f"highest, and zooming in (wheel or pinch) shows each.{shaded} The histogram and percentiles "
        f"are of the I/Os of {what}."
    )


def pack(values: NDArray[np.float32] | NDArray[np.float64]) -> str:
    """Numbers as the page unpacks them: little-endian, compressed (zlib), base 64."""
    little_endian = values.astype(values.dtype.newbyteorder("<")).tobytes()
    return base64.b64encode(zlib.compress(little_endian)).decode()


def _shorten(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """Single precision, rounded to the bits that a drawing can show."""
    bits = values.astype(np.float32).view(np.uint32)
    half = np.uint32(1 << (_FORGOTTEN_BITS - 1))
    kept = (bits + half) >> _FORGOTTEN_BITS << _FORGOTTEN_BITS
    # NaN is "not measured" and must stay one.
    return np.where(np.isnan(values), np.float32(np.nan), kept.view(np.float32))


def _facts(subject: Subject, detail: CellDetail) -> Facts:
    section = subject.section
    if section.slices:
        counted = all(each.values.ios is not None for each in section.slices)
        return (
            ("Slices", f"{len(section.slices)}, all of them"),
            ("IOPS", format_number(_mean_rate(section.slices, iops), 1)),
            ("MB/s", format_number(_mean_rate(section.slices, throughput), 2)),
            *_latencies(
                detail.whole.latency_mean_ns,
                {f"{name:g} %": detail.whole.percentile_ns(name) for name in REPORTED_PERCENTILES},
                detail.whole.latency_max_ns,
            ),
            ("I/Os", f"{detail.whole.ios:,}" if counted else NOT_MEASURED),
        )
    cell = section.cell(detail.cell)
    if cell is None:
        return ()
    what = "areas" if section.areas else "rounds"
    window = _list(section.window)
    return (
        (f"Mean of {what}", window),
        ("IOPS", format_number(cell.iops, 1)),
        ("MB/s", format_number(cell.megabytes_per_s, 2)),
        *_latencies(
            _ns(cell.latency_mean_us),
            {f"{name[1:]} %": _ns(value) for name, value in cell.percentiles_us.items()},
            _ns(cell.latency_max_us),
        ),
        ("I/Os", NOT_MEASURED if cell.ios is None else f"{cell.ios:,}"),
        ("Limited by the host's CPUs", format_fact(cell.host_limited)),
        ("Disturbed", describe_disturbances(cell, cell.foreign_bytes)),
    )


def _mean_rate(slices: Sequence[SliceResult], value: Value) -> float | None:
    """Over the whole stream; None if the rate of a slice is not known."""
    rates = [(value(each.values), each.duration_s) for each in slices]
    known = [(rate, duration_s) for rate, duration_s in rates if rate is not None]
    if len(known) < len(rates):
        return None
    return sum(rate * duration_s for rate, duration_s in known) / sum(each for _, each in known)


def _list(numbers: tuple[int, ...]) -> str:
    if len(numbers) > 2 and numbers == tuple(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(str(number) for number in numbers) or "none"


def _latencies(
    mean_ns: float | None, percentiles_ns: dict[str, float | None], max_ns: float | None
) -> Facts:
    return tuple(
        (f"{name} latency (us)", NOT_MEASURED if value is None else f"{value / 1000:,.1f}")
        for name, value in (("Mean", mean_ns), *percentiles_ns.items(), ("Maximum", max_ns))
    )


def _ns(value_us: float | None) -> float | None:
    return None if value_us is None else value_us * 1000


def _rounds(
    detail: CellDetail, rounds: Sequence[RoundResult], *, areas: int | None
) -> TableView | None:
    """The cell in every round, or area, that it was measured in."""
    of_cell: list[tuple[int, CellResult]] = [
        (each.number, cell) for each in rounds for cell in each.cells if cell.cell == detail.cell
    ]
    judged = {part.number for part in detail.parts if part.judged}
    return TableView(
        title="Every area" if areas else "Every round; * in the window",
        columns=("", "IOPS", "MB/s", "Mean (us)", "99.9 % (us)", "Maximum (us)"),
        rows=tuple(
            (
                f"{number}{'*' if number in judged else ''}",
                format_number(cell.iops, 1) + mark(cell),
                format_number(cell.megabytes_per_s, 2),
                format_number(cell.latency_mean_us, 1),
                format_number(cell.percentiles_us["p99.9"], 1),
                format_number(cell.latency_max_us, 1),
            )
            for number, cell in of_cell
        ),
        notes=explain_marks(cell for _, cell in of_cell),
    )
