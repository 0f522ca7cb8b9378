"""What a report shows, as plain data: texts, tables, charts. Pure; a template renders it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tkperf.analysis.results import CellResult, RunResult, SectionResult, TestResult
from tkperf.report import charts
from tkperf.steady_state import SteadyStateVerdict
from tkperf.units import (
    format_block_size_kib,
    format_capacity,
    format_duration,
    format_mix,
)
from tkperf.workload import Cell

NOT_KNOWN = "not known"
NOT_MEASURED = "-"
Value = Callable[[CellResult], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView:
    """A table; ``cells`` hold text, ``marks`` are footnotes below."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartView:
    """A chart; ``key`` is unique in the report, ``text`` says in words what it shows."""

    key: str
    text: str
    spec: charts.Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionView:
    key: str
    title: str
    state: str
    summary: str
    determination: TableView | None
    tables: tuple[TableView, ...]
    charts: tuple[ChartView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TestView:
    __test__ = False

    key: str
    title: str
    facts: tuple[tuple[str, str], ...]
    sections: tuple[SectionView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportView:
    """The whole report. ``banners`` stand on top of every page."""

    title: str
    subtitle: str
    banners: tuple[str, ...]
    warnings: tuple[str, ...]
    disclosure: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    overview: TableView
    tests: tuple[TestView, ...]


def build_view(result: RunResult) -> ReportView:
    """Everything the report of a run says."""
    banners = list(result.info.notices)
    if result.status.value != "complete":
        banners.insert(
            0, f"RUN {result.status.value.upper()}: {result.ended_because or 'going on'}"
        )
    return ReportView(
        title=result.info.name,
        subtitle=_device_line(result),
        banners=tuple(banners),
        warnings=tuple(warning.text for warning in result.warnings),
        disclosure=_disclosure(result),
        overview=_overview(result),
        tests=tuple(_test(test) for test in result.tests),
    )


def _device_line(result: RunResult) -> str:
    device = result.info.device
    words = [device.get("model") or device.get("kind"), _capacity(device.get("capacity_bytes"))]
    return ", ".join(str(word) for word in words if word)


def _disclosure(result: RunResult) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    info, device, host = result.info, result.info.device, result.info.host
    profile = info.profile
    purges = {
        section.purge.method
        for test in result.tests
        for section in test.sections
        if section.purge is not None
    }
    demand = _table(profile, "demand")
    wipc = _table(profile, "preconditioning")
    sector = f"{_text(device.get('logical_block_bytes'))} / "
    sector += f"{_text(device.get('physical_block_bytes'))} bytes"
    return (
        (
            "Test run",
            (
                ("Test run date", _moment(info.started_utc)),
                ("Ended", _moment(result.ended_utc)),
                ("Profile", f"{info.profile_name}: {_text(profile.get('title'))}"),
                ("Test software", f"tkperf {info.tkperf_version}"),
                ("Load generator", f"{_text(info.fio_version)}, {info.engine}, direct I/O"),
            ),
        ),
        (
            "Device under test",
            (
                ("Model", _text(device.get("model"))),
                ("Serial number", _text(device.get("serial"))),
                ("Firmware", _text(device.get("firmware"))),
                ("Capacity", _capacity(device.get("capacity_bytes"))),
                ("Sector, logical / physical", sector),
                ("Interface", _text(device.get("interface"))),
                ("Kind", _text(device.get("kind"))),
                ("Path", _text(device.get("path"))),
                ("Backed by", _text(device.get("backing"))),
                ("Write cache (kernel)", _text(device.get("write_cache"))),
                ("I/O scheduler", _text(device.get("scheduler"))),
                ("Purge method", ", ".join(sorted(purges)) or "not purged"),
            ),
        ),
        (
            "Set-up",
            (
                ("Data pattern", "random, new for every write"),
                (
                    "Active range",
                    f"{format_capacity(info.active_range_length_bytes)} from byte "
                    f"{info.active_range_offset_bytes}",
                ),
                (
                    "Preconditioning (WIPC)",
                    f"{_text(wipc.get('passes'))} x the active range, SEQ "
                    f"{_text(wipc.get('block_size_kib'))} KiB writes",
                ),
                ("Threads / queue depth", f"TC {demand.get('jobs')} / QD {demand.get('io_depth')}"),
                ("Latency test", "TC 1 / QD 1" if _latency_is_single(profile) else "see profile"),
            ),
        ),
        (
            "Test platform",
            (
                ("Host", _text(host.get("hostname"))),
                ("Motherboard", _text(host.get("motherboard"))),
                (
                    "CPU",
                    f"{_text(host.get('cpu_model'))}, {_text(host.get('cpu_threads'))} threads",
                ),
                ("Memory", _capacity(host.get("memory_bytes"))),
                ("Operating system", _text(host.get("operating_system"))),
                ("Kernel", _text(host.get("kernel"))),
                ("Virtual machine", "yes" if host.get("virtual_machine") else NOT_KNOWN),
            ),
        ),
        *_long_texts(result),
    )


def _long_texts(result: RunResult) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    """Facts that need a block of their own; left out where there are none."""
    info = result.info
    texts = (
        ("Command line", " ".join(info.command_line)),
        ("Kernel command line", info.host.get("kernel_command_line")),
        ("Device description", info.device_description),
        ("Feature matrix", info.feature_matrix),
    )
    return tuple((title, (("", str(text)),)) for title, text in texts if text)


def _overview(result: RunResult) -> TableView:
    rows = []
    for test in result.tests:
        for section in test.sections:
            rows.append((section.name, _state(section), section.ended_because, _headline(section)))
    return TableView(
        title="Overview",
        columns=("Test", "Steady state", "Ended", "Headline"),
        rows=tuple(rows),
    )


def _headline(section: SectionResult) -> str:
    verdict = section.verdict
    if section.slices:
        last = section.slices[-1].values
        return f"last slice: {last.iops:,.0f} IOPS, mean {_number(last.latency_mean_us, 1)} us"
    if verdict is None:
        return NOT_MEASURED
    return f"{verdict.tracking}: {verdict.average:,.1f} {verdict.unit}"


def _state(section: SectionResult) -> str:
    if section.verdict is None:
        return "no rule"
    return "reached" if section.verdict.reached else "NOT reached"


def _test(test: TestResult) -> TestView:
    duration = NOT_MEASURED if test.duration_s is None else format_duration(test.duration_s)
    gap = test.longest_gap_s
    facts = [
        ("Status", test.status.value),
        ("Duration", duration),
        ("Written", format_capacity(test.written_bytes)),
    ]
    if gap is not None:
        facts.append(("Longest gap between steps of a round", f"{_gap(gap)} by tkperf's clock"))
    return TestView(
        key=test.name,
        title=test.title,
        facts=tuple(facts),
        sections=tuple(
            _section(test, section, f"{test.name}{number}")
            for number, section in enumerate(test.sections)
        ),
    )


def _section(test: TestResult, section: SectionResult, key: str) -> SectionView:
    if section.slices:
        tables, figures = _stream(section, key)
    elif not section.cells:
        tables, figures = (), ()
    elif test.name == "lat":
        tables, figures = _latency(section, key)
    elif test.name == "tp":
        tables, figures = _throughput(section, key)
    else:
        tables, figures = _iops(section, key)
    return SectionView(
        key=key,
        title=section.name,
        state=_state(section),
        summary=section.ended_because,
        determination=_determination(section.verdict) if section.verdict else None,
        tables=tables,
        charts=figures,
    )


Parts = tuple[tuple[TableView, ...], tuple[ChartView, ...]]


def _iops(section: SectionResult, key: str) -> Parts:
    def value(cell: CellResult) -> float:
        return cell.iops

    return (
        (_matrix(section, "Average IOPS by block size and R/W mix", value),),
        (
            _convergence(section, key, (0,), value, "IOPS", "Steady state convergence: RND writes"),
            *_window_chart(section, key),
            _chart_2d(section, key, value, "IOPS", "IOPS by block size and R/W mix"),
        ),
    )


def _throughput(section: SectionResult, key: str) -> Parts:
    def value(cell: CellResult) -> float:
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


def _stream(section: SectionResult, key: str) -> Parts:
    def iops(cell: CellResult) -> float:
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
            text="I/Os by response time, and the share of I/Os that took no longer.",
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
                _number(cell.iops, 1),
                _number(cell.megabytes_per_s, 1),
                _number(cell.latency_mean_us, 1),
                *(_number(cell.percentiles_us[each], 1) for each in names),
                _number(cell.latency_max_us, 1),
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
            else _number(value(cell), 1) + ("*" if cell.host_limited else "")
            for cell in cells
        )
        rows.append((format_block_size_kib(size), *texts))
    limited = any(cell.host_limited for cell in section.cells)
    window = f"mean of rounds {section.window[0]} to {section.window[-1]}" if section.window else ""
    return TableView(
        title=f"{title}, {window}",
        columns=("Block size (KiB)", *(format_mix(mix) for mix in mixes)),
        rows=tuple(rows),
        notes=("* limited by the host's CPUs",) if limited else (),
    )


def _table(profile: dict[str, object], name: str) -> dict[str, object]:
    table = profile.get(name)
    return table if isinstance(table, dict) else {}


def _latency_is_single(profile: dict[str, object]) -> bool:
    table = _table(profile, "latency")
    return (table.get("jobs"), table.get("io_depth")) == (1, 1)


def _moment(utc: str | None) -> str:
    """``2026-11-20 23:41:40 UTC`` of an ISO 8601 time in UTC."""
    return NOT_KNOWN if utc is None else f"{utc[:10]} {utc[11:19]} UTC"


def _gap(gap_s: float) -> str:
    """The longest time between two steps; steps may overlap by a moment."""
    return "none" if gap_s <= 0 else f"{gap_s * 1000:.1f} ms"


def _text(value: object) -> str:
    return NOT_KNOWN if value is None or value == "" else str(value)


def _capacity(value: object) -> str:
    return format_capacity(value) if isinstance(value, int | float) else NOT_KNOWN


def _number(value: float | None, digits: int) -> str:
    return NOT_MEASURED if value is None else f"{value:,.{digits}f}"
