"""The sections of each test: its tables and its charts."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite

from tkperf.analysis.results import TestResult
from tkperf.report.charts import rounds
from tkperf.report.charts.hard_disk import box_plot, over_areas
from tkperf.report.charts.parts import has_values
from tkperf.report.parts import ChartView, SectionView, TableView
from tkperf.report.section_parts import (
    Parts,
    Subject,
    Value,
    bars_chart,
    convergence_chart,
    iops,
    latency_max,
    latency_mean,
    matrix,
    measurement_chart,
    percentile_matrix,
    throughput,
    window_chart,
)
from tkperf.report.sections_stream import PERCENTILES, build_stream
from tkperf.report.wording import describe_end, describe_state
from tkperf.steady_state import SteadyStateVerdict
from tkperf.units import NOT_MEASURED, format_mix, format_number


def build_section(subject: Subject, capacity_bytes: float | None) -> SectionView:
    """A section with what its kind of test shows.

    Args:
        capacity_bytes: what a drive fill is; None is not known.
    """
    section = subject.section
    if section.slices:
        tables, figures = build_stream(subject, capacity_bytes)
    elif not section.cells:
        tables, figures = _cut_off(subject)
    elif section.areas:
        tables, figures = _areas(subject)
    elif subject.test == "lat":
        tables, figures = _latency(subject)
    elif subject.test == "fio":
        tables, figures = _of_fio(subject)
    elif subject.test == "tp":
        tables, figures = _throughput(subject)
    else:
        tables, figures = _iops(subject)
    return SectionView(
        key=subject.key,
        title=section.name,
        state=describe_state(section.steady),
        summary=describe_end(section),
        determination=_determination(section.verdict) if section.verdict else None,
        tables=tables,
        charts=tuple(chart for chart in figures if has_values(chart.spec)),
    )


def build_test_charts(test: TestResult) -> tuple[ChartView, ...]:
    """Charts over all sections of a test: throughput by block size."""
    measured = [section for section in test.sections if section.cells]
    if test.name != "tp" or len(measured) < 2 or any(section.areas for section in measured):
        return ()
    return (
        ChartView(
            key="tp2d",
            text="Means over the window of each block size, reads and writes.",
            spec=rounds.throughput_bars(
                [cell for section in measured for cell in section.cells],
                title="Throughput by block size",
            ),
        ),
    )


def _iops(subject: Subject) -> Parts:
    return (
        (matrix(subject, "Average IOPS by block size and R/W mix", iops),),
        (
            convergence_chart(
                subject, "convergence", (0,), iops, "IOPS", "Steady state convergence: RND writes"
            ),
            *window_chart(subject),
            measurement_chart(subject, iops, "IOPS", "IOPS by block size and R/W mix"),
            bars_chart(subject, "3d", iops, "IOPS", "IOPS by block size and R/W mix, 3-D"),
        ),
    )


def _of_fio(subject: Subject) -> Parts:
    """Imported results: rates and latencies, whatever workloads they were."""
    tables, (_, *others) = _iops(subject)
    # The importer's names of sections: access, threads and depth.
    access = "SEQ" if " SEQ " in subject.section.name else "RND"
    mixes = sorted({cell.read_percent for cell in subject.section.cells})
    return (
        (
            *tables,
            matrix(subject, "Average MB/s", throughput),
            matrix(subject, "Average latency in us", latency_mean),
        ),
        (
            *(
                convergence_chart(
                    subject,
                    f"convergence{mix}",
                    (mix,),
                    iops,
                    "IOPS",
                    f"Steady state convergence: {access} "
                    + {0: "writes", 100: "reads"}.get(mix, f"R/W {format_mix(mix)}"),
                )
                for mix in mixes
            ),
            *others,
        ),
    )


def _throughput(subject: Subject) -> Parts:
    return (
        (matrix(subject, "Average throughput in MB/s (10^6 bytes per second)", throughput),),
        (
            *(
                convergence_chart(
                    subject,
                    f"convergence{name}",
                    (mix,),
                    throughput,
                    "MB/s",
                    f"Steady state convergence: SEQ {name}",
                    log=False,
                )
                for mix, name in ((0, "writes"), (100, "reads"))
            ),
            *window_chart(subject),
        ),
    )


def _latency(subject: Subject) -> Parts:
    section = subject.section
    mixes = tuple(dict.fromkeys(cell.read_percent for cell in section.cells))
    tables = (
        matrix(subject, "Average latency in us", latency_mean),
        matrix(subject, "Maximum latency in us", latency_max, over="greatest"),
        *(
            percentile_matrix(subject, name)
            for name in PERCENTILES
            if any(cell.percentiles_us[name] is not None for cell in section.cells)
        ),
    )
    return (
        tables,
        (
            *(
                convergence_chart(
                    subject,
                    f"convergence{mix}",
                    (mix,),
                    latency_mean,
                    "mean latency (us)",
                    f"Steady state convergence: mean latency, R/W {format_mix(mix)}",
                    log=False,
                )
                for mix in sorted(mixes)
            ),
            convergence_chart(
                subject,
                "convergencemax",
                (0,),
                latency_max,
                "maximum latency (us)",
                "Maximum latency of RND writes over the rounds",
            ),
            *window_chart(subject),
            measurement_chart(
                subject, latency_mean, "mean latency (us)", "Mean latency by block size and R/W mix"
            ),
            bars_chart(
                subject, "3dmean", latency_mean, "mean latency (us)",
                "Mean latency (us) by block size and R/W mix, 3-D",
            ),
            bars_chart(
                subject, "3dmax", latency_max, "maximum latency (us)",
                "Maximum latency (us) by block size and R/W mix, 3-D",
            ),
        ),
    )  # fmt: skip


def _areas(subject: Subject) -> Parts:
    """A hard disk over its areas: what every area did, and how it spreads."""
    section = subject.section
    quantity, value = ("IOPS", iops)
    if section.name.startswith("Throughput"):
        quantity, value = ("MB/s", throughput)
    return (
        (
            matrix(subject, f"Average {quantity}", value),
            _extremes(subject, quantity, value),
        ),
        (
            ChartView(
                key=f"{subject.key}area",
                text=f"{quantity} of every area from the start of the disk to its end.",
                spec=over_areas(
                    section, title=f"{quantity} over area", value=value, quantity=quantity
                ),
            ),
            ChartView(
                key=f"{subject.key}box",
                text=(
                    f"Spread of {quantity} over the areas: median, quartiles, and whiskers to the "
                    "slowest and the fastest area."
                ),
                spec=box_plot(
                    section, title=f"{quantity}, spread over areas", value=value, quantity=quantity
                ),
            ),
        ),
    )


def _extremes(subject: Subject, quantity: str, value: Value) -> TableView:
    """Each cell's first and last area, its slowest and its fastest."""
    section = subject.section
    rows = []
    for cell in section.cells:
        values = [
            seen
            for area in section.rounds
            if area.complete
            for each in area.cells
            if each.cell == cell.cell and (seen := value(each)) is not None
        ]
        if values:
            figures = (values[0], values[-1], min(values), max(values))
            rows.append((str(cell.cell), *(format_number(each, 1) for each in figures)))
    return TableView(
        title=f"{quantity} of single areas; {len(section.window)} of {section.areas} areas measured",
        columns=("Cell", "First", "Last", "Slowest", "Fastest"),
        rows=tuple(rows),
    )


def _cut_off(subject: Subject) -> Parts:
    """What there is of a first round that was never finished."""
    if not subject.section.rounds:
        return (), ()
    last = subject.section.rounds[-1]
    quantity, value = {
        "lat": ("mean latency in us", latency_mean),
        "tp": ("MB/s", throughput),
    }.get(subject.test, ("IOPS", iops))
    part = replace(subject, section=replace(subject.section, cells=last.cells))
    return (matrix(part, f"Round {last.number}, cut off before its end: {quantity}", value),), ()


def _determination(verdict: SteadyStateVerdict) -> TableView:
    """The PTS's steady-state determination block."""
    average, fit = verdict.average, verdict.fit
    rows = [
        ("Steady state", describe_state(verdict.reached if verdict.judged else None)),
        ("Reason", verdict.reason),
        ("Tracking variable", f"{verdict.tracking} ({verdict.unit})"),
        ("Window", ", ".join(str(number) for number in verdict.rounds)),
        ("Values", ", ".join(format_number(value, 1) for value in verdict.values)),
        ("Average", format_number(average, 1)),
        (
            "Data excursion (max - min)",
            _excursion(verdict.data_excursion, verdict.allowed_data_excursion, average),
        ),
        (
            "Slope excursion",
            _excursion(verdict.slope_excursion, verdict.allowed_slope_excursion, average),
        ),
    ]
    if fit is not None and isfinite(fit.slope):
        rows.append(("Best linear fit", f"{fit.slope:,.4g} x round + {fit.intercept:,.6g}"))
        correlation = "undefined" if fit.correlation is None else f"{fit.correlation:.3f}"
        rows.append(("Correlation", correlation))
    return TableView(title="Steady state determination", columns=("", ""), rows=tuple(rows))


def _excursion(measured: float | None, allowed: float, average: float) -> str:
    if measured is None or not average > 0:
        return NOT_MEASURED
    return (
        f"{measured:,.1f} ({measured / average:.1%}), allowed {allowed:,.1f} "
        f"({allowed / average:.0%})"
    )
