"""Results as tables in the terminal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from tkperf.analysis.flags import (
    describe_counts,
    describe_gaps,
    describe_window,
    explain_marks,
    mark,
)
from tkperf.analysis.results import (
    CellResult,
    RunResult,
    SectionResult,
    TestResult,
    describe_stream,
)
from tkperf.cli.output import plain
from tkperf.units import (
    format_block_size_kib,
    format_capacity,
    format_count,
    format_mix,
    format_number,
    format_window,
)
from tkperf.workload import Cell

_LARGE = 1e5


def print_results(result: RunResult, console: Console) -> None:
    """Everything a terminal can show of a run."""
    info = result.info
    console.print(
        f"[bold]{plain(info.name)}[/bold]  {plain(describe_device(info.device))}", highlight=False
    )
    length_bytes = info.active_range_length_bytes
    console.print(
        f"profile {plain(info.profile_name)}: {plain(info.specification or 'not known')}, {plain(info.fio_version or info.engine)}, "
        f"active range {'not known' if length_bytes is None else format_capacity(length_bytes)}, "
        f"started {plain(info.started_utc or 'not known')}",
        highlight=False,
    )
    for notice in info.notices:
        console.print(plain(notice), style="yellow", highlight=False)
    if result.status != "complete":
        console.print(
            f"run {result.status.value}: {plain(result.ended_because or 'still going on')}",
            style="bold red",
            highlight=False,
        )
    for warning in result.warnings:
        console.print(f"warning: {plain(warning.text)}", style="yellow", highlight=False)
    for test in result.tests:
        _print_test(test, console)


def describe_device(facts: dict[str, object]) -> str:
    """One line: what was measured."""
    capacity = facts.get("capacity_bytes")
    size = format_capacity(capacity) if isinstance(capacity, int | float) else "size not known"
    words = [facts.get("model") or facts.get("kind"), facts.get("serial"), facts.get("path"), size]
    return ", ".join(str(word) for word in words if word)


def _print_test(test: TestResult, console: Console) -> None:
    console.print()
    console.rule(f"[bold]{test.title}[/bold]", align="left")
    for section in test.sections:
        _print_section(section, console)
    if test.under_way is not None:
        console.print(plain(test.under_way), highlight=False)
    if test.longest_gap_s is not None:
        console.print(
            "longest gap between two steps, by tkperf's clock: "
            + describe_gaps(test.longest_gap_s, test.disturbed_steps),
            style="dim",
            highlight=False,
        )
    if counts := describe_counts(test.disturbed_steps, test.not_compared_steps):
        style = "yellow" if test.disturbed_steps else "dim"
        console.print(f"disturbed: {counts}", style=style, highlight=False)


def _print_section(section: SectionResult, console: Console) -> None:
    console.print(f"[bold]{plain(section.name)}[/bold]: {_verdict_line(section)}", highlight=False)
    if section.slices:
        _print_stream(section, console)
    elif not section.cells:
        console.print("no round was finished" + ("; what there is of it:" * bool(section.rounds)))
        for each in section.rounds[-1:]:
            _print_cells(replace(section, cells=each.cells), console)
    elif section.areas:
        _print_areas(section, console)
    else:
        _print_cells(section, console)


def _print_cells(section: SectionResult, console: Console) -> None:
    if section.name.startswith("fio"):
        _print_matrix(console, section, "IOPS", _iops, 1)
        _print_matrix(console, section, "MB/s", _megabytes_per_s, 1)
        _print_matrix(console, section, "mean latency in us", lambda cell: cell.latency_mean_us, 1)
    elif section.name.startswith("Throughput"):
        _print_matrix(console, section, "MB/s", lambda cell: cell.megabytes_per_s, 1)
    elif section.name == "Latency":
        _print_matrix(console, section, "mean latency in us", lambda cell: cell.latency_mean_us, 1)
        _print_matrix(
            console, section, "maximum latency in us", lambda cell: cell.latency_max_us, 1
        )
        for name in section.cells[0].percentiles_us:
            if all(cell.percentiles_us[name] is None for cell in section.cells):
                continue  # short steps, or an import
            _print_matrix(console, section, f"{name} latency in us", _percentile(name), 1)
    else:
        _print_matrix(console, section, "IOPS", lambda cell: cell.iops, 1)


def _print_areas(section: SectionResult, console: Console) -> None:
    """Mean, slowest and fastest area of each cell."""
    quantity, value = ("IOPS", _iops)
    if section.name.startswith("Throughput"):
        quantity, value = ("MB/s", _megabytes_per_s)
    table = Table(
        title=f"{quantity} over {len(section.window)} of {format_count(section.areas or 0, 'area')} of the disk",
        title_justify="left", title_style="",
    )  # fmt: skip
    for name in ("KiB", "R/W %", "first area", "last area", "mean", "slowest", "fastest"):
        table.add_column(name, justify="right", overflow="fold")
    for cell in section.cells:
        values = [
            seen
            for area in section.rounds
            if area.complete
            for each in area.cells
            if each.cell == cell.cell and (seen := value(each)) is not None
        ]
        if not values:
            continue
        table.add_row(
            format_block_size_kib(cell.block_size_bytes),
            format_mix(cell.read_percent),
            *(
                format_number(each, 0 if max(values) >= _LARGE else 1)
                for each in (values[0], values[-1], value(cell), min(values), max(values))
            ),
        )
    console.print(table)


def _iops(cell: CellResult) -> float | None:
    return cell.iops


def _megabytes_per_s(cell: CellResult) -> float | None:
    return cell.megabytes_per_s


def _percentile(name: str) -> Callable[[CellResult], float | None]:
    return lambda cell: cell.percentiles_us[name]


def _verdict_line(section: SectionResult) -> str:
    verdict = section.verdict
    if verdict is None:
        return plain(section.ended_because)
    if not verdict.judged:
        return f"not judged, {plain(section.ended_because)}; {plain(verdict.reason)}"
    state = "steady" if verdict.reached else "[bold red]not steady[/bold red]"
    return (
        f"{state}, {plain(section.ended_because)}; {plain(verdict.tracking)}: average "
        f"{format_number(verdict.average, 1)} {plain(verdict.unit)}, range "
        f"{format_number(verdict.data_excursion, 1)} (allowed "
        f"{format_number(verdict.allowed_data_excursion, 1)}), slope "
        f"{format_number(verdict.slope_excursion, 1)} (allowed "
        f"{format_number(verdict.allowed_slope_excursion, 1)})"
        f"{describe_window(section.disturbed_in_window)}"
    )


def _print_matrix(
    console: Console,
    section: SectionResult,
    quantity: str,
    value: Callable[[CellResult], float | None],
    digits: int,
) -> None:
    """Block sizes down, read/write mixes across, as the PTS lays it out."""
    mixes = list(dict.fromkeys(cell.read_percent for cell in section.cells))
    sizes = sorted({cell.block_size_bytes for cell in section.cells})
    window = format_window(section.window) if section.window else "no window"
    console.print(f"\n{quantity}, {window}; KiB down, R/W % across", highlight=False)
    table = Table(box=SIMPLE_HEAD, show_edge=False)
    table.add_column("KiB", justify="right", overflow="fold")
    for mix in mixes:
        table.add_column(format_mix(mix), justify="right", overflow="fold")
    seen = [each for cell in section.cells if (each := value(cell)) is not None]
    # Seven columns of large figures fit a terminal of 80 without the digits that tell least.
    narrow = max(seen, default=0) >= _LARGE
    for size in sizes:
        row = [format_block_size_kib(size)]
        for mix in mixes:
            cell = section.cell(Cell(mix, size))
            seen_here = None if cell is None else value(cell)
            short = narrow and seen_here is not None and seen_here >= _LARGE / 10
            row.append(format_number(seen_here, 0 if short else digits) + mark(cell))
        table.add_row(*row)
    console.print(table)
    for note in explain_marks(section.cells):
        console.print(note, style="dim", highlight=False)


def _print_stream(section: SectionResult, console: Console) -> None:
    """A stream in a few columns: its ends and its whole."""
    first, last = section.slices[0], section.slices[-1]
    columns = [(f"slice {first.number}", first.values)]
    if last is not first:
        columns.append((f"slice {last.number}", last.values))
    if section.cells and last is not first:
        columns.append(("window" if section.window else "whole stream", section.cells[0]))
    table = Table(title=plain(section.workload), title_justify="left", title_style="")
    table.add_column("")
    for name, _ in columns:
        table.add_column(name, justify="right", overflow="fold")
    rows: list[tuple[str, Callable[[CellResult], float | None]]] = [
        ("IOPS", lambda cell: cell.iops),
        ("MB/s", lambda cell: cell.megabytes_per_s),
        ("mean latency in us", lambda cell: cell.latency_mean_us),
        *((f"{name} in us", _percentile(name)) for name in first.values.percentiles_us),
        ("maximum in us", lambda cell: cell.latency_max_us),
    ]
    for name, value in rows:
        table.add_row(
            name, *(format_number(value(values), 1) + mark(values) for _, values in columns)
        )
    console.print(table)
    for note in explain_marks(values for _, values in columns):
        console.print(note, style="dim", highlight=False)
    console.print(describe_stream(section), highlight=False)
