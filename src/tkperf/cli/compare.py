"""tkperf compare: runs beside each other."""

from __future__ import annotations

import csv
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from tkperf.analysis.compare import ComparedRow, Comparison, Entry, compare
from tkperf.analysis.results import analyse
from tkperf.errors import UsageError
from tkperf.runfile.reader import read_run
from tkperf.units import format_block_size_kib, format_mix


@click.command("compare", short_help="Runs beside each other, with ratios and noise.")
@click.argument("run_files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--csv",
    "csv_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also as CSV.",
)
@click.option(
    "--html",
    "html_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also as one HTML file with plots.",
)
def compare_runs(
    run_files: tuple[Path, ...], csv_file: Path | None, html_file: Path | None
) -> None:
    """Compare RUN_FILES with the first of them.

    A ratio in parentheses is within noise: the rounds of both runs' windows overlap; one with a
    question mark rests on a single measurement. Conditions that differ are named.

    \b
    Examples:
      tkperf compare old.tkperf new.tkperf
      tkperf compare a.tkperf b.tkperf c.tkperf --html abc.html --csv abc.csv
    """
    comparison = compare([analyse(read_run(path)) for path in run_files])
    _show(comparison, Console())
    if csv_file is not None:
        _write_csv(comparison, csv_file)
    if html_file is not None:
        _write(html_file, _render_html(comparison))


def _show(comparison: Comparison, console: Console) -> None:
    for warning in comparison.warnings:
        console.print(f"warning: {warning}", style="yellow", highlight=False)
    for section in dict.fromkeys((row.test, row.section) for row in comparison.rows):
        rows = [row for row in comparison.rows if (row.test, row.section) == section]
        table = Table(title=section[1], title_justify="left", title_style="bold")
        for name in ("KiB", "R/W %", ""):
            table.add_column(name, justify="right")
        for name in comparison.names:
            table.add_column(name, justify="right", overflow="fold")
        for row in rows:
            table.add_row(
                format_block_size_kib(row.cell.block_size_bytes),
                format_mix(row.cell.read_percent),
                f"{row.measure.name} {row.measure.unit}",
                *(_entry(row, entry) for entry in row.entries),
            )
        console.print(table)


def _entry(row: ComparedRow, entry: Entry) -> str:
    """A value with its ratio to the first run; green is better, red is worse, dim is noise."""
    if entry.value is None:
        return "-"
    text = f"{entry.value:,.1f}"
    if entry.ratio is None:
        return text
    if entry.within_noise is not False:
        mark = f"(x{entry.ratio:.3f})" if entry.within_noise else f"x{entry.ratio:.3f}?"
        return f"{text} [dim]{mark}[/]"
    colour = "green" if (entry.ratio > 1) == row.measure.higher_is_better else "red"
    return f"{text} [{colour}]x{entry.ratio:.3f}[/]"


def _write_csv(comparison: Comparison, path: Path) -> None:
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(
                ("test", "section", "read_percent", "block_size_bytes", "measure", "unit", "run",
                 "value", "window_low", "window_high", "ratio_to_first", "within_noise")
            )  # fmt: skip
            for row in comparison.rows:
                for name, entry in zip(comparison.names, row.entries, strict=True):
                    noise = "" if entry.within_noise is None else int(entry.within_noise)
                    writer.writerow(
                        (row.test, row.section, row.cell.read_percent, row.cell.block_size_bytes,
                         row.measure.name, row.measure.unit, name, entry.value, entry.low,
                         entry.high, entry.ratio, noise)
                    )  # fmt: skip
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
    click.echo(path)


def _render_html(comparison: Comparison) -> str:
    try:
        # As in tkperf report: only who wants a page needs its packages.
        from tkperf.report.comparison import build_comparison_view  # noqa: PLC0415
        from tkperf.report.html import render_view  # noqa: PLC0415
    except ImportError as error:
        raise UsageError(
            f"reports need more packages ({error.name} is missing): pip install 'tkperf[report]'"
        ) from error
    return render_view(build_comparison_view(comparison))


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
    click.echo(path)
