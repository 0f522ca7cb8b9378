"""tkperf report: write a run file as a report for people, or as data for other programs."""

from __future__ import annotations

from typing import Any

import click

from tkperf.cli.calling import Command
from tkperf.cli.kinds import OUTPUT_FILE, OUTPUT_FOLDER, RUN_FILE, InputFile


@click.command(cls=Command)
@click.argument("run_file", type=RUN_FILE)
@click.option(
    "-o",
    "--output",
    "--html",
    "html",
    type=OUTPUT_FILE,
    metavar="FILE",
    help="The HTML file; by default next to the run file, if nothing else is asked for.",
)
@click.option(
    "--pdf",
    "pdf_file",
    type=OUTPUT_FILE,
    metavar="FILE",
    help="For print, with the PTS's page header.",
)
@click.option(
    "--claims",
    "claims_file",
    type=InputFile(".toml"),
    metavar="FILE",
    help="Claims to check, as tkperf check does; a section of the HTML and PDF.",
)
@click.option(
    "--histogram",
    "histograms",
    multiple=True,
    metavar="NAME:PART",
    help="Histogram of a chosen part, in the HTML and PDF; may be repeated. NAME is a test, a section, a "
    "workload, or several of these with commas; PART a round (28), rounds (3-7), seconds (12-40s) "
    "or a level (70000iops).",
)
@click.option(
    "--fact",
    "facts",
    multiple=True,
    metavar="NAME=TEXT",
    help="A fact that no tool can find out, in the HTML and PDF; may be repeated. NAME is Test sponsor, "
    "Reference test platform, Manufacturer, NAND type, Motherboard or Note.",
)
@click.option(
    "--csv",
    "csv_folder",
    type=OUTPUT_FOLDER,
    metavar="DIR",
    help="Tables as CSV: cells, rounds, slices, verdicts, histograms, every second.",
)
@click.option(
    "--parquet",
    "parquet_folder",
    type=OUTPUT_FOLDER,
    metavar="DIR",
    help="The same tables as Parquet.",
)
@click.option(
    "--json", "json_file", type=OUTPUT_FILE, metavar="FILE", help="As tkperf show --json."
)
@click.option(
    "--xml", "xml_file", type=OUTPUT_FILE, metavar="FILE", help="TKperf's format, for tkperf-cmp."
)
@click.option(
    "--markdown", "markdown_file", type=OUTPUT_FILE, metavar="FILE", help="For wikis and mails."
)
@click.option(
    "--openmetrics",
    "openmetrics_file",
    type=OUTPUT_FILE,
    metavar="FILE",
    help="Every second with its time, for Prometheus and Grafana.",
)
@click.option(
    "--line-protocol",
    "line_protocol_file",
    type=OUTPUT_FILE,
    metavar="FILE",
    help="The same for InfluxDB and others.",
)
def report(**options: Any) -> None:
    """Write the report of RUN_FILE as one HTML file that needs no network, or its data.

    \b
    Examples:
      tkperf report D3-S4510.tkperf                          writes D3-S4510.html
      tkperf report D3-S4510.tkperf --pdf D3-S4510.pdf -o D3-S4510.html
      tkperf report D3-S4510.tkperf --csv tables --xml D3-S4510.xml
      tkperf report D3-S4510.tkperf -o /srv/www/d3.html --json d3.json
      tkperf report D3-S4510.tkperf --markdown - | wl-copy   - is stdout
      tkperf report D3-S4510.tkperf --histogram "lat, 0/100 4k: 3"
      tkperf report D3-S4510.tkperf --histogram "Demand 100/0: 70000iops"
    """
    from tkperf.cli.report import report as act

    act(**options)
