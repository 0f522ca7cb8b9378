"""tkperf compare: compare several runs, several drives of one model, or one drive over time."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Collection, Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tkperf.cli.calling import Command
from tkperf.cli.kinds import OUTPUT_FOLDER, RUN_FILE
from tkperf.cli.suite_options import output_file
from tkperf.model.choices import BATCH_SUFFIX
from tkperf.model.errors import RunFileError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from tkperf.analysis.comparing.comparison import Comparison

PICTURE_SUFFIX = ".png"
# Widths in characters on a terminal. The first width is that of a column of values with their ratios. The second width
# is that of the labels before the columns.
_COLUMN, _LABELS = 18, 32
# Names of the files that -f writes. The kind of file is the key.
_NAMES = {
    "html": "comparison.html",
    "pdf": "comparison.pdf",
    "csv": "comparison.csv",
    "json": "comparison.json",
    "markdown": "comparison.md",
}
# Names that also exist in the analysis. They are repeated in this module, so that --help does not load the analysis.
ARRANGEMENTS = ("runs", "cohort", "history")


@click.command("compare", cls=Command)
@click.argument("run_files", nargs=-1, required=True, type=RUN_FILE)
@click.option(
    "--as",
    "wanted",
    type=click.Choice(ARRANGEMENTS),
    help="How to compare the runs: each run with the first run (runs), drives of one model (cohort), or one drive "
    "over time (history). By default, tkperf decides according to the models and serial numbers of three or more runs.",
)
@output_file("csv", "Also write the comparison as CSV. If a FILE is -, tkperf writes to stdout.")
@output_file("html", "Also write the comparison as one HTML file with plots.")
@output_file("pdf", "Also write the comparison as PDF.")
@output_file("json", "Also write the comparison as JSON.")
@output_file("markdown", "Also write the comparison as Markdown for wikis and mails.")
@click.option(
    "-f",
    "--folder",
    type=OUTPUT_FOLDER,
    metavar="DIR",
    help="Also write all formats into this folder: comparison.html, .pdf, .csv, .json, .md, and TKperf's plots as PNG.",
)
@click.option("-z", "--zip", "zipped", is_flag=True, help="With -f, also pack the files into comparison.zip.")
@click.option("--full", is_flag=True, help="Print everything instead of one screen.")
def compare(
    run_files: tuple[Path, ...], wanted: str | None, folder: Path | None, zipped: bool, full: bool, **files: Path | None
) -> None:
    """Compare all RUN_FILES with the first RUN_FILE. Three or more runs on drives of one model are a cohort, and three
    or more runs on one drive are a history.

    Ratios have 95 % intervals. A ratio in parentheses is within noise: the interval contains 1, and no value in the
    interval differs from 1 by more than 10 %. A question mark means that a difference is undecided, because a value has
    no uncertainty, or because the interval contains both 1 and a difference of more than 10 %. The output lists
    conditions that differ. If you name a batch (NAME.batch), tkperf compares all runs of the batch.

    \b
    Examples:
      tkperf compare old.tkperf new.tkperf
      tkperf compare a.tkperf b.tkperf c.tkperf --html abc.html --csv abc.csv
      tkperf compare S4510-*.tkperf --html cohort.html       same model, other drives
      tkperf compare --as history D3-2026-*.tkperf           one drive over time
      tkperf compare a.tkperf b.tkperf -f comparison -z
    """
    from tkperf.analysis.comparing.comparison import Arrangement, compare_files
    from tkperf.cli.output import Outputs, files_in
    from tkperf.pipeline.api import load
    from tkperf.render.terminal.console import open_console

    if any(run_file.suffix == BATCH_SUFFIX for run_file in run_files):
        from tkperf.cli.batch_output import expand_batches

        run_files = expand_batches(run_files)
    if zipped and folder is None:
        raise UsageError("-z packs the files that -f writes. Also pass -f DIR")
    asked = [(kind, files[f"{kind}_file"]) for kind in _NAMES]
    wanted_files = [(kind, path) for kind, path in asked if path is not None]
    in_folder = files_in(folder, _NAMES.values())
    wanted_files += list(zip(_NAMES, in_folder, strict=False))
    packed = files_in(folder, ["comparison.zip"]) if zipped else []
    # The outputs are checked at this point, because the comparison takes a long time. They are checked again when the
    # names of the pictures are known.
    planned = Outputs([*(path for _, path in wanted_files), *packed], inputs=run_files, folders=[folder])
    results, unreadable = [], []
    for path in run_files:
        try:
            results.append(load(path))
        except RunFileError as error:
            unreadable.append(error)
    if unreadable:  # a single message contains the names of all files, because there may be many files
        for other in unreadable[1:]:
            unreadable[0].add_note(str(other))
        raise unreadable[0]
    comparison = compare_files(results, None if wanted is None else Arrangement(wanted))
    contents = _render(comparison, {kind for kind, _ in wanted_files}, plots=folder is not None)
    wanted_files += [(path.name, path) for path in files_in(folder, contents) if path.suffix == PICTURE_SUFFIX]
    outputs = Outputs([*(path for _, path in wanted_files), *packed], inputs=run_files, folders=[folder])
    for kind, path in wanted_files:
        outputs.write(path, contents[kind])
    for path in packed:
        outputs.write(path, _zip(written for _, written in wanted_files if written.parent == folder))
    # stdout is written last. All files then exist even if the program that reads stdout, such as head, ends early.
    if not planned.on_stdout:
        if full:
            _print_all(comparison, open_console())
        else:
            _print(comparison, open_console(), beside_files=bool(wanted_files))


def _print(comparison: Comparison, console: Console, *, beside_files: bool) -> None:
    """Print the most important part of the comparison on one screen."""
    from tkperf.page.comparison.build_page import build_comparison_page
    from tkperf.page.words.conditions import find_flaws
    from tkperf.render.terminal.comparison_text import print_comparison

    flaws = tuple(find_flaws(comparison.names, comparison.results))
    print_comparison(build_comparison_page(comparison), flaws, console, beside_files=beside_files)


def _print_all(comparison: Comparison, console: Console) -> None:
    from tkperf.page.comparison.build_page import build_comparison_page
    from tkperf.render.terminal.page_text import print_page

    most_across = max(2, (console.width - _LABELS) // _COLUMN)
    view = build_comparison_page(comparison, most_across)
    if len(comparison.names) > most_across:  # the part of the overview that describes each run would be too wide
        view = replace(view, overview=view.overview[:1])
    print_page(view, console)


def _render(comparison: Comparison, kinds: Collection[str], *, plots: bool) -> dict[str, bytes | str]:
    """Return the content of each kind of file, and the content of each plot with the name of the plot as the key."""
    from tkperf.page.comparison.build_page import build_comparison_page
    from tkperf.render.export_comparison import render_comparison_json
    from tkperf.render.export_markdown import render_markdown
    from tkperf.render.export_tables import build_comparison_table, render_csv
    from tkperf.render.reports import print_pdf, render_html, render_tkperf_plots, start_printer

    contents: dict[str, bytes | str] = {}
    if "csv" in kinds:
        contents["csv"] = "".join(render_csv(build_comparison_table(comparison)))
    if "json" in kinds:
        contents["json"] = render_comparison_json(comparison) + "\n"
    if "markdown" in kinds:
        contents["markdown"] = render_markdown(build_comparison_page(comparison))
    if "html" not in kinds and "pdf" not in kinds:
        return contents
    with ExitStack() as stack:
        printer = stack.enter_context(start_printer()) if "pdf" in kinds else None
        view = build_comparison_page(comparison)
        if printer is not None:
            print_pdf(view, printer)
        if "html" in kinds:
            contents["html"] = render_html(view)
        if printer is not None:
            contents["pdf"] = printer.finish()
    return contents | (render_tkperf_plots(comparison) if plots else {})


def _zip(files: Iterable[Path]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files:
            archive.write(path, path.name)
    return packed.getvalue()
