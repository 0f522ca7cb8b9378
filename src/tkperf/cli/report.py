"""tkperf report: a run file as a report for people, or as data for other programs."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path

import click

from tkperf.analysis.details import build_details
from tkperf.analysis.export_json import render_json
from tkperf.analysis.export_markdown import render_markdown
from tkperf.analysis.export_tables import build_tables, render_csv
from tkperf.analysis.export_tkperf import render_tkperf_xml
from tkperf.analysis.results import analyse
from tkperf.cli.check import read_and_check
from tkperf.cli.output import write_output
from tkperf.cli.parquet import render_parquet
from tkperf.cli.rendering import build_run_view, print_run, render_html, start_drawer
from tkperf.runfile.reader import RunFile

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(short_help="The report of RUN_FILE as HTML or PDF, or its data.")
@click.argument("run_file", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    "html",
    type=_FILE,
    metavar="FILE",
    help="The HTML file; by default beside the run file, if nothing else is asked for.",
)
@click.option(
    "--pdf", "pdf_file", type=_FILE, metavar="FILE", help="For print, with the PTS's page header."
)
@click.option(
    "--claims",
    "claims_file",
    type=_FILE,
    metavar="FILE",
    help="Claims to check, as tkperf check does; a section of the HTML and PDF.",
)
@click.option(
    "--csv",
    "csv_folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Tables as CSV: cells, rounds, slices, verdicts, histograms, every second.",
)
@click.option(
    "--parquet",
    "parquet_folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="The same tables as Parquet.",
)
@click.option("--json", "json_file", type=_FILE, metavar="FILE", help="As tkperf show --json.")
@click.option(
    "--xml", "xml_file", type=_FILE, metavar="FILE", help="TKperf's format, for tkperf-cmp."
)
@click.option(
    "--markdown", "markdown_file", type=_FILE, metavar="FILE", help="For wikis and mails."
)
def report(
    run_file: Path,
    html: Path | None,
    pdf_file: Path | None,
    claims_file: Path | None,
    csv_folder: Path | None,
    parquet_folder: Path | None,
    json_file: Path | None,
    xml_file: Path | None,
    markdown_file: Path | None,
) -> None:
    """Write the report of RUN_FILE as one HTML file that needs no network, or its data.

    \b
    Examples:
      tkperf report D3-S4510.tkperf                          writes D3-S4510.html
      tkperf report D3-S4510.tkperf --pdf D3-S4510.pdf -o D3-S4510.html
      tkperf report D3-S4510.tkperf --csv tables --xml D3-S4510.xml
      tkperf report D3-S4510.tkperf -o /srv/www/d3.html --json d3.json
    """
    others = (csv_folder, parquet_folder, json_file, xml_file, markdown_file, pdf_file)
    write = partial(write_output, inputs=(run_file, claims_file))
    with ExitStack() as stack:
        drawer = stack.enter_context(start_drawer()) if pdf_file else None
        opened = stack.enter_context(RunFile(run_file))
        record = opened.record()
        if html is None and not any(others):
            html = run_file.with_suffix(".html")
        result = analyse(record)
        checked = None if claims_file is None else read_and_check(claims_file, result)
        steps = [(test.name, step) for test in record.tests for step in test.steps]
        # First, as TKperf's format has no place for some runs: then nothing is written.
        xml = render_tkperf_xml(result) if xml_file is not None else None
        if csv_folder is not None:
            for table in build_tables(result, steps, opened.samples):
                write(csv_folder / f"{table.name}.csv", render_csv(table))
        if parquet_folder is not None:
            for table in build_tables(result, steps, opened.samples):
                write(parquet_folder / f"{table.name}.parquet", render_parquet(table))
        if json_file is not None:
            write(json_file, (render_json(result), "\n"))
        if xml is not None and xml_file is not None:
            write(xml_file, xml.text)
            for missing in xml.left_out:
                click.echo(f"left out of {xml_file}: {missing}", err=True)
        if markdown_file is not None:
            write(markdown_file, (render_markdown(result),))
        if html is not None or pdf_file is not None:
            seconds = {test.name: opened.seconds(test) for test in record.tests}
            view = build_run_view(result, checked, build_details(result, record, seconds))
            printed = None if drawer is None else print_run(view, result, drawer)
            if html is not None:
                write(html, render_html(view))
            if pdf_file is not None and printed is not None:
                write(pdf_file, printed.render())
