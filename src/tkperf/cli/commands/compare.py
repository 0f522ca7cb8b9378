"""tkperf compare: compare runs, drives of one model, or one drive over time."""

from __future__ import annotations

from typing import Any

import click

from tkperf.cli.calling import Command
from tkperf.cli.kinds import OUTPUT_FILE, OUTPUT_FOLDER, RUN_FILE, OneOf

# Names from the analysis, which --help need not load.
ARRANGEMENTS = ("runs", "cohort", "history")


@click.command("compare", cls=Command)
@click.argument("run_files", nargs=-1, required=True, type=RUN_FILE)
@click.option(
    "--as",
    "wanted",
    type=OneOf(ARRANGEMENTS),
    help="How to compare them: each against the first (runs), drives of one model (cohort), one "
    "drive over its dates (history). By default from three runs on by their models and serial numbers.",
)
@click.option(
    "--csv",
    "csv_file",
    type=OUTPUT_FILE,
    metavar="FILE",
    help="Also as CSV. Of each FILE: - is stdout.",
)
@click.option(
    "--html",
    "html_file",
    type=OUTPUT_FILE,
    metavar="FILE",
    help="Also as one HTML file with plots.",
)
@click.option(
    "--pdf",
    "pdf_file",
    type=OUTPUT_FILE,
    metavar="FILE",
    help="Also as PDF.",
)
@click.option("--json", "json_file", type=OUTPUT_FILE, metavar="FILE", help="Also as JSON.")
@click.option(
    "--markdown",
    "markdown_file",
    type=OUTPUT_FILE,
    metavar="FILE",
    help="Also as Markdown, for wikis and mails.",
)
@click.option(
    "-f",
    "--folder",
    type=OUTPUT_FOLDER,
    metavar="DIR",
    help="All of them into this folder, whatever else is asked for: comparison.html, .pdf, .csv, .json, .md, "
    "and TKperf's plots as PNG.",
)
@click.option(
    "-z", "--zip", "zipped", is_flag=True, help="With -f: what it holds as comparison.zip, too."
)
def compare_runs(**options: Any) -> None:
    """Compare RUN_FILES: with the first of them; three or more of one model as a cohort, of one drive as a history.

    Ratios have the 95 % interval of the ratio of both levels. One in parentheses is within noise: its interval contains 1. Of one
    with a question mark that cannot be told: not both values have an uncertainty. Conditions that
    differ are named.

    \b
    Examples:
      tkperf compare old.tkperf new.tkperf
      tkperf compare a.tkperf b.tkperf c.tkperf --html abc.html --csv abc.csv
      tkperf compare S4510-*.tkperf --html cohort.html       same model, other drives
      tkperf compare --as history D3-2026-*.tkperf           one drive over time
      tkperf compare a.tkperf b.tkperf -f comparison -z
    """
    from tkperf.cli.compare import compare_runs as act

    act(**options)
