"""Sections that are one unbroken stream: write saturation, the response time histogram."""

from __future__ import annotations

from tkperf.analysis.details import CellDetail
from tkperf.analysis.flags import explain_marks, mark
from tkperf.analysis.results import CellResult, describe_stream
from tkperf.measurement import TOO_FEW_IOS, explain_rare
from tkperf.report.charts import rounds
from tkperf.report.charts.latency import (
    exceedance,
    histogram_rows,
    mark_rows,
    response_time_histogram,
)
from tkperf.report.charts.seconds import (
    IOPS,
    LATENCY,
    Quantity,
    over_seconds,
    part_rows,
    seconds_rows,
    window_rows,
)
from tkperf.report.parts import ChartView, TableView
from tkperf.report.section_parts import (
    Parts,
    Subject,
    Value,
    iops,
    latency_max,
    latency_mean,
    percentile,
    window_chart,
)
from tkperf.units import format_capacity, format_number

PERCENTILES = ("p50", "p99", "p99.9", "p99.99", "p99.999")


def build_stream(subject: Subject, capacity_bytes: float | None) -> Parts:
    """A stream's table and charts.

    Args:
        capacity_bytes: of the device or of the part of it in use; None is not known.
    """
    figures: list[ChartView] = []
    if len(subject.section.slices) > 1:
        figures += _over_slices(subject, capacity_bytes)
    for detail in subject.details.values():
        figures += _of_detail(subject, detail)
    return (_table(subject),), tuple(figures)


def _over_slices(subject: Subject, capacity_bytes: float | None) -> list[ChartView]:
    of_slices = "of each slice"
    charted = [
        _rate(subject, "iops", "IOPS over time", f"IOPS {of_slices} over time."),
        _rate(subject, "iopslog", "IOPS over time, logarithmic", f"IOPS {of_slices} over time, "
              "the axis logarithmic.", log=True),
    ]  # fmt: skip
    written_known = subject.section.slices[-1].total_written_bytes is not None
    if written_known:
        charted += [
            _rate(subject, "tgbw", "IOPS over total GB written", f"IOPS {of_slices} over the total "
                  "amount written (TGBW).", over=rounds.TOTAL_WRITTEN),
            _rate(subject, "tgbwlog", "IOPS over total GB written, logarithmic", f"IOPS "
                  f"{of_slices} over the total amount written (TGBW), the axis logarithmic.",
                  over=rounds.TOTAL_WRITTEN, log=True),
        ]  # fmt: skip
    if capacity_bytes and written_known:
        charted.append(
            _rate(subject, "fills", "IOPS over drive fills", f"IOPS {of_slices} over the amount "
                  f"written in multiples of {format_capacity(capacity_bytes)}, the capacity in use.",
                  over=rounds.drive_fills(capacity_bytes))
        )  # fmt: skip
    charted += [
        _latencies(
            subject,
            "latency",
            "Latency over time",
            "Average (ART), 99.9 % and maximum (MRT) latency of each slice over time.",
            (("ART", latency_mean), ("99.9 %", percentile("p99.9")), ("MRT", latency_max)),
        ),
        _latencies(
            subject,
            "percentiles",
            "Latency percentiles over time",
            f"Latency percentiles of each slice over time; none where a slice had {TOO_FEW_IOS}.",
            tuple((f"{name[1:]} %", percentile(name)) for name in PERCENTILES),
        ),
    ]
    # An imported stream has no percentiles.
    drawn = [chart for chart in charted if chart.spec["data"]["values"]]  # type: ignore[index]
    return [*drawn, *window_chart(subject)]


def _rate(
    subject: Subject,
    name: str,
    title: str,
    text: str,
    *,
    over: rounds.Over = rounds.TIME,
    log: bool = False,
) -> ChartView:
    return ChartView(
        key=f"{subject.key}{name}",
        text=f"{text} Workload: {subject.section.workload}.",
        spec=rounds.stream(
            subject.section,
            title=title,
            series=(("IOPS", iops),),
            quantity="IOPS",
            over=over,
            log=log,
        ),
    )


def _latencies(
    subject: Subject, name: str, title: str, text: str, series: tuple[tuple[str, Value], ...]
) -> ChartView:
    spec = rounds.stream(
        subject.section, title=title, series=series, quantity="Latency (us)", log=True
    )
    return ChartView(key=f"{subject.key}{name}", text=text, spec=spec)


def _of_detail(subject: Subject, detail: CellDetail) -> list[ChartView]:
    """Every second, and how the response times of all I/Os are distributed."""
    figures = []
    if len(detail.seconds):
        for quantity, name in ((IOPS, "seconds"), (LATENCY, "secondslatency")):
            figures.append(_seconds(subject, detail, quantity, name))
    rows, marked = histogram_rows(detail.whole), mark_rows(detail.whole)
    if rows:
        title = f"Response time histogram: {subject.section.workload}"
        figures += [
            ChartView(
                key=f"{subject.key}rth",
                text=(
                    "All I/Os by response time, and the share of them that took no longer "
                    "(confidence level). Marked: average (ART), percentiles, maximum (MRT). Buckets "
                    "are 1/64 of the response time wide or less; counts step where the width "
                    "doubles. The curve is exact at a bucket's edges, straight within."
                ),
                spec=response_time_histogram(rows, marked, title),
            ),
            ChartView(
                key=f"{subject.key}exceedance",
                text="The share of all I/Os that took longer than a response time: exact at a "
                "bucket's edges, straight within.",
                spec=exceedance(rows, marked, f"Exceedance: {subject.section.workload}"),
            ),
        ]
    return figures


def _seconds(subject: Subject, detail: CellDetail, quantity: Quantity, name: str) -> ChartView:
    return ChartView(
        key=f"{subject.key}{name}",
        text=(
            f"{quantity.title} of every second: where a point stands for several, the shade reaches "
            "from the lowest to the highest."
            + (
                " Shaded green: the window that was judged."
                if any(part.judged for part in detail.parts)
                else ""
            )
        ),
        spec=over_seconds(
            seconds_rows(detail, quantity),
            window_rows(detail),
            part_rows(detail),
            quantity,
            f"{quantity.title}, every second",
        ),
        cell=subject.link(detail.cell),
    )


def _table(subject: Subject) -> TableView:
    section = subject.section
    first, last = section.slices[0], section.slices[-1]
    lines: list[tuple[str, CellResult]] = [(f"slice {first.number} (first)", first.values)]
    if last is not first:
        lines.append((f"slice {last.number} (last)", last.values))
    if section.cells:
        over_window = bool(section.window) and len(section.slices) > 1
        lines.append(("steady-state window" if over_window else "whole", section.cells[0]))
    names = tuple(first.values.percentiles_us)
    rows = tuple(
        (
            name,
            format_number(cell.iops, 1) + mark(cell),
            format_number(cell.megabytes_per_s, 1),
            format_number(cell.latency_mean_us, 1),
            *(format_number(cell.percentiles_us[each], 1) for each in names),
            format_number(cell.latency_max_us, 1),
        )
        for name, cell in lines
    )
    link = subject.link(first.values.cell)
    return TableView(
        title=(f"{section.workload}: {describe_stream(section)}; latencies in us"),
        columns=("", "IOPS", "MB/s", "mean", *names, "max"),
        rows=rows,
        notes=(
            *explain_marks(cell for _, cell in lines),
            *explain_rare(cell.percentiles_us for _, cell in lines),
        ),
        links=tuple((link,) * (len(row) - 1) for row in rows),
    )
