"""tkperf compare: runs beside each other."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Collection, Iterable
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from tkperf import load
from tkperf.analysis.compare import Change, Comparison, Entry, compare
from tkperf.analysis.export_tables import build_comparison_table, render_csv
from tkperf.analysis.flags import explain_marks, mark
from tkperf.analysis.layout import listing_axes
from tkperf.cli.console import OutputConsole
from tkperf.cli.output import Outputs, files_in, plain
from tkperf.cli.rendering import (
    build_comparison_view,
    render_comparison_pdf,
    render_html,
    render_tkperf_plots,
    start_drawer,
)
from tkperf.errors import UsageError

PICTURE_SUFFIX = ".png"
STYLES = {Change.BETTER: "green", Change.WORSE: "red"}


@click.command("compare", short_help="Runs beside each other, with ratios and noise.")
@click.argument("run_files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--csv",
    "csv_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also as CSV. Of each FILE: - is stdout.",
)
@click.option(
    "--html",
    "html_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also as one HTML file with plots.",
)
@click.option(
    "--pdf",
    "pdf_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also as PDF.",
)
@click.option(
    "-f",
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="All of them into this folder, whatever else is asked for: comparison.html, .pdf, .csv, and "
    "TKperf's plots as PNG.",
)
@click.option(
    "-z", "--zip", "zipped", is_flag=True, help="With -f: what it holds as comparison.zip, too."
)
def compare_runs(
    run_files: tuple[Path, ...],
    csv_file: Path | None,
    html_file: Path | None,
    pdf_file: Path | None,
    folder: Path | None,
    zipped: bool,
) -> None:
    """Compare RUN_FILES with the first of them.

    Ratios have their uncertainty (95 %). One in parentheses is within noise: its interval contains 1. Of one
    with a question mark that cannot be told: not both values have an uncertainty. Conditions that
    differ are named.

    \b
    Examples:
      tkperf compare old.tkperf new.tkperf
      tkperf compare a.tkperf b.tkperf c.tkperf --html abc.html --csv abc.csv
      tkperf compare a.tkperf b.tkperf -f comparison -z
    """
    if zipped and folder is None:
        raise UsageError("-z packs what -f writes: give -f DIR, too")
    asked = (("csv", csv_file), ("html", html_file), ("pdf", pdf_file))
    wanted = [(kind, path) for kind, path in asked if path is not None]
    names = [f"comparison.{kind}" for kind, _ in asked]
    wanted += [(path.suffix[1:], path) for path in files_in(folder, names)]
    packed = files_in(folder, ["comparison.zip"]) if zipped else []
    # Once now, as the rest takes its time; and once when the pictures are known.
    planned = Outputs([*(path for _, path in wanted), *packed], inputs=run_files)
    comparison = compare([load(path) for path in run_files])
    if not planned.on_stdout:
        print_comparison(comparison, OutputConsole(emoji=False))
    contents = _render(comparison, {kind for kind, _ in wanted}, plots=folder is not None)
    wanted += [
        (path.name, path) for path in files_in(folder, contents) if path.suffix == PICTURE_SUFFIX
    ]
    outputs = Outputs([*(path for _, path in wanted), *packed], inputs=run_files)
    for kind, path in wanted:
        outputs.write(path, contents[kind])
    for path in packed:
        outputs.write(path, _zip(written for _, written in wanted if written.parent == folder))


def _render(
    comparison: Comparison, kinds: Collection[str], *, plots: bool
) -> dict[str, bytes | str]:
    """The comparison by kind of file, and its plots by their names."""
    contents: dict[str, bytes | str] = {}
    if "csv" in kinds:
        contents["csv"] = "".join(render_csv(build_comparison_table(comparison)))
    if "html" not in kinds and "pdf" not in kinds:
        return contents
    view = build_comparison_view(comparison)
    if "html" in kinds:
        contents["html"] = render_html(view)
    if "pdf" in kinds:
        with start_drawer() as drawer:
            contents["pdf"] = render_comparison_pdf(view, comparison, drawer)
    return contents | (render_tkperf_plots(view) if plots else {})


def _zip(files: Iterable[Path]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files:
            archive.write(path, path.name)
    return packed.getvalue()


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Everything a terminal can show of a comparison."""
    for warning in comparison.warnings:
        console.print(plain(f"warning: {warning}"), style="yellow", highlight=False)
    for section in dict.fromkeys((row.test, row.section) for row in comparison.rows):
        rows = [row for row in comparison.rows if (row.test, row.section) == section]
        table = Table(title=plain(section[1]), title_justify="left", title_style="bold")
        axes = listing_axes(row.workload for row in rows)
        for name in (*(axis.title for axis in axes), ""):
            table.add_column(name, justify="right")
        for name in comparison.names:
            table.add_column(plain(name), justify="right", overflow="fold")
        for row in rows:
            table.add_row(
                *(axis.text(row.workload) for axis in axes),
                row.quantity.title,
                *(_entry(entry) for entry in row.entries),
            )
        console.print(table)
        for note in explain_marks(entry for row in rows for entry in row.entries):
            console.print(note, style="dim", highlight=False)


def _entry(entry: Entry) -> str:
    """A value with its ratio to the first run; green is better, red is worse, dim neither."""
    if entry.value is None:
        return entry.not_found or "-"
    text = f"{entry.value:,.1f}{mark(entry)}"
    if entry.ratio is None or entry.change is None:
        return text
    return f"{text} [{STYLES.get(entry.change, 'dim')}]{entry.ratio_text}[/]"
