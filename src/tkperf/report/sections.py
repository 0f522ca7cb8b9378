"""The sections of each test: its tables and its charts."""

from __future__ import annotations

from collections.abc import Callable

from tkperf.analysis.results import CellResult, SectionResult, TestResult
from tkperf.report import charts
from tkperf.report.charts_hard_disk import box_plot, over_areas
from tkperf.report.parts import ChartView, SectionView, TableView
from tkperf.report.wording import NOT_MEASURED, describe_state, format_number
from tkperf.steady_state import SteadyStateVerdict
from tkperf.units import format_block_size_kib, format_capacity, format_duration, format_mix
from tkperf.workload import Cell

Value = Callable[[CellResult], float | None]


def build_section(test: TestResult, section: SectionResult, key: str) -> SectionView:
    """A section with what its kind of test shows; ``key`` is unique in the report."""
    if section.slices:
        tables, figures = _stream(section, key)
    elif not section.cells:
        tables, figures = (), ()
    elif section.areas:
        tables, figures = _areas(section, key)
    elif test.name == "lat":
        tables, figures = _latency(section, key)
    elif test.name == "fio":
        tables, figures = _of_fio(section, key)
    elif test.name == "tp":
        tables, figures = _throughput(section, key)
    else:
        tables, figures = _iops(section, key)
    return SectionView(
        key=key,
        title=section.name,
        state=describe_state(section),
        summary=section.ended_because,
        determination=_determination(section.verdict) if section.verdict else None,
        tables=tables,
        charts=figures,
    )


Parts = tuple[tuple[TableView, ...], tuple[ChartView, ...]]


def _iops(section: SectionResult, key: str) -> Parts:
    def value(cell: CellResult) -> float | None:
        return cell.iops

    return (
        (_matrix(section, "Average IOPS by block size and R/W mix", value),),
        (
            _convergence(section, key, (0,), value, "IOPS", "Steady state convergence: RND writes"),
            *_window_chart(section, key),
            _chart_2d(section, key, value, "IOPS", "IOPS by block size and R/W mix"),
        ),
    )


def _of_fio(section: SectionResult, key: str) -> Parts:
    """Imported results: rates and latencies, whatever workloads they were."""
    tables, figures = _iops(section, key)
    return (
        (
            *tables,
            _matrix(section, "Average MB/s", lambda cell: cell.megabytes_per_s),
            _matrix(section, "Average latency in us", lambda cell: cell.latency_mean_us),
        ),
        figures,
    )


def _throughput(section: SectionResult, key: str) -> Parts:
    def value(cell: CellResult) -> float | None:
        return cell.megabytes_per_s

    return (
        (_matrix(section, "Average throughput in MB/s (10^6 bytes per second)", value),),
        (
            _convergence(
                section, key, (100, 0), value, "MB/s", "Steady state convergence", log=False
            ),
            *_window_chart(section, key),
        ),
    )


def _latency(section: SectionResult, key: str) -> Parts:
    def mean(cell: CellResult) -> float | None:
        return cell.latency_mean_us

    def maximum(cell: CellResult) -> float | None:
        return cell.latency_max_us

    def at(name: str) -> Value:
        return lambda cell: cell.percentiles_us[name]

    tables = (
        _matrix(section, "Average latency in us", mean),
        _matrix(section, "Maximum latency in us", maximum),
        *(
            _matrix(section, f"{name} latency in us", at(name))
            for name in ("p50", "p99", "p99.9", "p99.99", "p99.999")
            if any(cell.percentiles_us[name] is not None for cell in section.cells)
        ),
    )
    return (
        tables,
        (
            _convergence(
                section,
                key,
                (0,),
                mean,
                "mean latency (us)",
                "Steady state convergence: mean latency of RND writes",
                log=False,
            ),
            _convergence(
                section,
                f"{key}max",
                (0,),
                maximum,
                "maximum latency (us)",
                "Maximum latency of RND writes over the rounds",
            ),
            *_window_chart(section, key),
            _chart_2d(section, key, mean, "mean latency (us)", "Mean latency by block size"),
        ),
    )


def _areas(section: SectionResult, key: str) -> Parts:
    """A hard disk over its areas: what every area did, and how it spreads."""

    def iops(cell: CellResult) -> float | None:
        return cell.iops

    def throughput(cell: CellResult) -> float | None:
        return cell.megabytes_per_s

    quantity, value = ("IOPS", iops)
    if section.name.startswith("Throughput"):
        quantity, value = ("MB/s", throughput)
    return (
        (_matrix(section, f"Average {quantity} over {section.areas} areas", value),),
        (
            ChartView(
                key=f"{key}area",
                text=f"{quantity} of every area from the start of the disk to its end.",
                spec=over_areas(
                    section, title=f"{quantity} over area", value=value, quantity=quantity
                ),
            ),
            ChartView(
                key=f"{key}box",
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


def _stream(section: SectionResult, key: str) -> Parts:
    def iops(cell: CellResult) -> float | None:
        return cell.iops

    latencies: tuple[tuple[str, Value], ...] = (
        ("mean", lambda cell: cell.latency_mean_us),
        ("p99.9", lambda cell: cell.percentiles_us["p99.9"]),
        ("maximum", lambda cell: cell.latency_max_us),
    )
    figures: list[ChartView] = []
    if len(section.slices) > 1:
        figures += [
            ChartView(
                key=f"{key}iops",
                text=f"IOPS of each slice over time: {section.workload}.",
                spec=charts.stream_over_time(
                    section, title="IOPS over time", series=(("IOPS", iops),), quantity="IOPS"
                ),
            ),
            ChartView(
                key=f"{key}tgbw",
                text="IOPS of each slice over the total amount written.",
                spec=charts.stream_over_time(
                    section,
                    title="IOPS over total GB written",
                    series=(("IOPS", iops),),
                    quantity="IOPS",
                    over_bytes=True,
                ),
            ),
            ChartView(
                key=f"{key}latency",
                text="Mean, 99.9 % and maximum latency of each slice over time.",
                spec=charts.stream_over_time(
                    section,
                    title="Latency over time",
                    series=latencies,
                    quantity="Latency (us)",
                    log=True,
                ),
            ),
            *_window_chart(section, key),
        ]
    figures.append(
        ChartView(
            key=f"{key}rth",
            text=(
                "I/Os by response time, and the share of I/Os that took no longer. Buckets are 1/64 of "
                "the response time wide or less, and counts step where the width doubles."
            ),
            spec=charts.response_time_histogram(
                section, f"Response time histogram: {section.workload}"
            ),
        )
    )
    return (_stream_table(section),), tuple(figures)


def _stream_table(section: SectionResult) -> TableView:
    first, last = section.slices[0], section.slices[-1]
    lines = [(f"slice {first.number} (first)", first.values)]
    if last is not first:
        lines.append((f"slice {last.number} (last)", last.values))
    if section.cells:
        over_window = bool(section.window) and len(section.slices) > 1
        lines.append(("steady-state window" if over_window else "whole", section.cells[0]))
    names = tuple(first.values.percentiles_us)
    return TableView(
        title=(
            f"{section.workload}: {len(section.slices)} slices, "
            f"{format_duration(last.start_s + last.duration_s)}, "
            f"{format_capacity(last.total_written_bytes)} written; latencies in us"
        ),
        columns=("", "IOPS", "MB/s", "mean", *names, "max"),
        rows=tuple(
            (
                name,
                format_number(cell.iops, 1),
                format_number(cell.megabytes_per_s, 1),
                format_number(cell.latency_mean_us, 1),
                *(format_number(cell.percentiles_us[each], 1) for each in names),
                format_number(cell.latency_max_us, 1),
            )
            for name, cell in lines
        ),
    )


def _convergence(
    section: SectionResult,
    key: str,
    mixes: tuple[int, ...],
    value: Value,
    quantity: str,
    title: str,
    *,
    log: bool = True,
) -> ChartView:
    return ChartView(
        key=f"{key}convergence",
        text=f"{title}: {quantity} of every round, one curve for each block size.",
        spec=charts.convergence(
            section, title=title, read_percents=mixes, value=value, quantity=quantity, log=log
        ),
    )


def _window_chart(section: SectionResult, key: str) -> tuple[ChartView, ...]:
    verdict = section.verdict
    if verdict is None or len(verdict.rounds) < 2:
        return ()
    x_title = "Slice" if section.slices else "Round"
    spec = charts.steady_state_window(verdict, "Steady state window", x_title)
    text = (
        f"{verdict.tracking} in the window with its average, the lines at 110 % and 90 % of it, "
        "and the best linear fit. The lines are a convention; the criterion is the range."
    )
    return (ChartView(key=f"{key}window", text=text, spec=spec),)


def _chart_2d(
    section: SectionResult, key: str, value: Value, quantity: str, title: str
) -> ChartView:
    return ChartView(
        key=f"{key}2d",
        text=f"{title}: means over the window, one curve for each R/W mix.",
        spec=charts.measurement_2d(section, title=title, value=value, quantity=quantity),
    )


def _determination(verdict: SteadyStateVerdict) -> TableView:
    """The PTS's steady-state determination block."""
    average, fit = verdict.average, verdict.fit
    rows = [
        ("Steady state", "reached" if verdict.reached else "NOT reached"),
        ("Reason", verdict.reason),
        ("Tracking variable", f"{verdict.tracking} ({verdict.unit})"),
        ("Window", ", ".join(str(number) for number in verdict.rounds)),
        ("Values", ", ".join(f"{value:,.1f}" for value in verdict.values)),
        ("Average", f"{average:,.1f}"),
        (
            "Data excursion (max - min)",
            _excursion(verdict.data_excursion, verdict.allowed_data_excursion, average),
        ),
        (
            "Slope excursion",
            _excursion(verdict.slope_excursion, verdict.allowed_slope_excursion, average),
        ),
    ]
    if fit is not None:
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


def _matrix(section: SectionResult, title: str, value: Value) -> TableView:
    """Block sizes down, R/W mixes across."""
    mixes = list(dict.fromkeys(cell.read_percent for cell in section.cells))
    sizes = sorted({cell.block_size_bytes for cell in section.cells})
    rows = []
    for size in sizes:
        cells = [section.cell(Cell(mix, size)) for mix in mixes]
        texts = (
            NOT_MEASURED
            if cell is None
            else format_number(value(cell), 1) + ("*" if cell.host_limited else "")
            for cell in cells
        )
        rows.append((format_block_size_kib(size), *texts))
    limited = any(cell.host_limited for cell in section.cells)
    what = "areas" if section.areas else "rounds"
    window = f"mean of {what} {section.window[0]} to {section.window[-1]}" if section.window else ""
    return TableView(
        title=f"{title}, {window}",
        columns=("Block size (KiB)", *(format_mix(mix) for mix in mixes)),
        rows=tuple(rows),
        notes=("* limited by the host's CPUs",) if limited else (),
    )
