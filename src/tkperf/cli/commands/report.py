"""tkperf report: write a run file as a report for people, or as data for other programs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from datetime import datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tkperf.cli.calling import Command, HeadedOption, Heading
from tkperf.cli.kinds import RUN_FILE, InputFile
from tkperf.cli.standard_streams import complain, without_garbage_collection
from tkperf.cli.suite_options import FACT, FACT_FILE, json_option, output_file, output_folder
from tkperf.model.choices import BATCH_SUFFIX
from tkperf.model.errors import UsageError

if TYPE_CHECKING:
    from tkperf.analysis.results import RunResult
    from tkperf.render.export_tkperf import TkperfXml


@click.command(cls=Command)
@click.argument("run_file", type=RUN_FILE)
@output_file(
    "html",
    "Name of the HTML file. Default: a file next to the run file. If you name only other outputs, tkperf writes an "
    "HTML file only if --histogram needs one.",
    "-o",
    "--output",
)
@output_file("pdf", "PDF for print, with the page header of the PTS.")
@click.option(
    "--claims",
    "claims_file",
    cls=HeadedOption,
    heading=Heading.CONTENT,
    type=InputFile(".toml"),
    metavar="FILE",
    help="Add a section in which tkperf checks the claims in this file, as 'tkperf check' does.",
)
@click.option(
    "--histogram",
    "histograms",
    cls=HeadedOption,
    heading=Heading.CONTENT,
    multiple=True,
    metavar="NAME:PART",
    help="Add the histogram of a part of the run to the HTML and PDF. You can repeat this option. NAME is a test, a "
    "section, a workload, or several of these names separated by commas. PART is a round (28), several rounds (3-7), "
    "seconds (12-40s) or a level (70000iops).",
)
@click.option("--fact", "facts", cls=HeadedOption, heading=Heading.CONTENT, **FACT)
@click.option("--fact-file", cls=HeadedOption, heading=Heading.CONTENT, **FACT_FILE)
@output_folder("csv", "Tables as CSV files: cells, rounds, slices, verdicts, histograms, values of every second.")
@output_folder("parquet", "Tables as Parquet files. The tables are the same as with --csv.", heading=Heading.FORMATS)
@output_file("json", "Results as JSON, in the form of 'tkperf show --json'.")
@output_file("xml", "Results in TKperf's XML format, for tkperf-cmp.", heading=Heading.FORMATS)
@output_file("markdown", "Report as Markdown for wikis and mails.")
@output_file(
    "openmetrics", "Values of every second, with time stamps, for Prometheus and Grafana.", heading=Heading.FORMATS
)
@output_file(
    "line-protocol",
    "Values of every second in line protocol, for InfluxDB and other programs.",
    heading=Heading.FORMATS,
)
@output_file(
    "junit", "Drives of a batch and the outcomes of their claims, as JUnit XML for CI systems.", heading=Heading.FORMATS
)
@output_file("mail", "Results of a batch, in at most twelve lines of text.", heading=Heading.FORMATS)
def report(
    run_file: Path,
    html_file: Path | None,
    pdf_file: Path | None,
    claims_file: Path | None,
    histograms: tuple[str, ...],
    facts: tuple[str, ...],
    fact_file: str | None,
    csv_folder: Path | None,
    parquet_folder: Path | None,
    json_file: Path | None,
    xml_file: Path | None,
    markdown_file: Path | None,
    openmetrics_file: Path | None,
    line_protocol_file: Path | None,
    junit_file: Path | None,
    mail_file: Path | None,
) -> None:
    """Write the report of RUN_FILE as one HTML file that needs no network, or write the results as data.

    For a batch, RUN_FILE is NAME.batch. The report of a batch is one page with all drives and the outcomes of their
    claims. For this page, you can use --html, --pdf, --csv, --json, --markdown, --junit and --mail.

    \b
    Examples:
      tkperf report D3-S4510.tkperf                          writes D3-S4510.html
      tkperf report D3-S4510.tkperf --pdf D3-S4510.pdf -o D3-S4510.html
      tkperf report D3-S4510.tkperf --csv tables --json -    - is stdout
      tkperf report D3-S4510.tkperf --histogram "lat, 0/100 4k: 3"
      tkperf report D3-S4510.tkperf --histogram "Demand 100/0: 70000iops"
      tkperf report rack7.batch --pdf rack7.pdf --mail -
    """
    if run_file.suffix == BATCH_SUFFIX:
        of_runs = (
            *((histograms, "--histogram"), (facts, "--fact"), (fact_file, "--fact-file")),
            *((parquet_folder, "--parquet"), (xml_file, "--xml")),
            *((openmetrics_file, "--openmetrics"), (line_protocol_file, "--line-protocol")),
        )
        if given := [option for value, option in of_runs if value]:
            raise UsageError(f"{given[0]} works only with a single run, not with a batch. Name the run file of a drive")
        from tkperf.cli.batch_output import BatchFiles, write_batch

        asked = BatchFiles(
            html=html_file,
            pdf=pdf_file,
            json=json_file,
            markdown=markdown_file,
            junit=junit_file,
            mail=mail_file,
            csv_folder=csv_folder,
        )
        write_batch(run_file, asked, claims_file)
        return
    if junit_file is not None or mail_file is not None:
        raise UsageError(
            "--junit and --mail work only with a batch: pass NAME.batch as RUN_FILE. For a single run, use tkperf "
            "check --junit"
        )
    from tkperf.analysis.drive_telemetry import place_readings
    from tkperf.analysis.selected_part import parse_selection
    from tkperf.cli.output import Outputs, files_in
    from tkperf.model.run_info import UserFacts, find_run_id, parse_facts
    from tkperf.page.view import build_view
    from tkperf.pipeline.api import read_and_check
    from tkperf.pipeline.result_cache import find_results
    from tkperf.render.export_json import write_json
    from tkperf.render.export_markdown import render_markdown
    from tkperf.render.export_series import build_points, render_line_protocol, render_openmetrics
    from tkperf.render.export_tables import build_tables, render_csv
    from tkperf.render.parquet import render_parquet, require_parquet
    from tkperf.render.reports import (
        build_run_view,
        find_report_date,
        print_pdf,
        render_html,
        require_packages,
        start_printer,
    )
    from tkperf.runfile.reader import RunFile

    selections = [parse_selection(text) for text in histograms]
    user_facts = UserFacts(report_date=find_report_date(), facts=parse_facts(facts, fact_file or ""))
    series_files = (openmetrics_file, line_protocol_file)
    files = (pdf_file, json_file, xml_file, markdown_file, *series_files)
    others = (csv_folder, parquet_folder, *files)
    if html_file is None and (not any(others) or (selections and pdf_file is None)):
        html_file = run_file.with_suffix(".html")
    with ExitStack() as stack:
        stack.enter_context(without_garbage_collection())
        # All steps that can fail are executed before the first output, so that nothing is written if one of these steps
        # fails.
        if html_file is not None or pdf_file is not None:
            require_packages()
        if parquet_folder is not None:
            require_parquet()
        opened = stack.enter_context(RunFile(run_file))
        # The printer starts early, so that it loads Vega while tkperf reads the results.
        printer = stack.enter_context(start_printer()) if pdf_file else None
        record = opened.record()
        result = find_results(opened, record)
        steps = [(test.name, step) for test in record.tests for step in test.steps]
        readings = tuple(place_readings(record))
        tables = partial(build_tables, result, steps, opened.samples_left, readings)
        csv_files = files_in(csv_folder, (f"{table.name}.csv" for table in tables()))
        parquet_files = files_in(parquet_folder, (f"{table.name}.parquet" for table in tables()))
        outputs = Outputs(
            (html_file, *files, *csv_files, *parquet_files),
            inputs=(run_file, claims_file),
            folders=(csv_folder, parquet_folder),
        )
        run_id = find_run_id(result.info)
        if parquet_folder is not None:
            _refuse_tables_of_others(parquet_folder, parquet_files, run_id)
        checked = None if claims_file is None else read_and_check(claims_file, result)
        paged = html_file is not None or pdf_file is not None
        view = None
        if paged:
            view = build_run_view(opened, record, result, checked, selections, user_facts)
        elif markdown_file is not None:  # Markdown contains no charts, so the one-second samples are not read
            view = build_view(result, checked, user_facts=user_facts)
        xml = None if xml_file is None else _render_xml(result)
        began_s = require_time(result) if any(series_files) else 0.0

        for path, table in zip(csv_files, tables(), strict=False):
            outputs.write(path, render_csv(table))
        for path, table in zip(parquet_files, tables(), strict=False):
            outputs.write(path, render_parquet(table, run_id))
        for file, render in zip(series_files, (render_openmetrics, render_line_protocol), strict=True):
            if file is not None:
                points = build_points(result, began_s, steps, opened.samples_left, readings)
                outputs.write(file, render(points))
        for left_out in dict.fromkeys(opened.left_out[len(record.left_out) :]):
            complain(f"left out of the tables: {left_out}")
        if json_file is not None:
            outputs.write(json_file, chain(write_json(result), "\n"))
        if xml is not None and xml_file is not None:
            outputs.write(xml_file, xml.text)
            for missing in xml.left_out:
                complain(f"left out of {xml_file}: {missing}")
        if view is not None:
            if markdown_file is not None:
                outputs.write(markdown_file, (render_markdown(view),))
            if printer is not None:
                print_pdf(view, printer)
            if html_file is not None:
                outputs.write(html_file, render_html(view))
            if printer is not None and pdf_file is not None:
                outputs.write(pdf_file, printer.finish())


def _render_xml(result: RunResult) -> TkperfXml:
    """Return the results in the format of TKperf."""
    from tkperf.render.export_tkperf import render_tkperf_xml

    try:
        return render_tkperf_xml(result)
    except UsageError as error:
        raise UsageError(f"{error}. tkperf wrote none of the outputs") from error


def _refuse_tables_of_others(folder: Path, files: Sequence[Path], run_id: str) -> None:
    """Refuse a folder that contains a data set or the tables of another run. The tables of this run would replace the
    existing files.
    """
    from tkperf.render.dataset import MARKER
    from tkperf.render.parquet import is_of_run

    advice = "Name another folder, or write a data set of many runs: tkperf export RUN_FILE --parquet DATASET"
    if (folder / MARKER).exists():
        raise UsageError(f"{folder} is a data set that 'tkperf export' wrote. Nothing was written. {advice}")
    for file in files:
        if file.exists() and not is_of_run(file, run_id):
            raise UsageError(
                f"{file} is not a table of this run, so tkperf does not overwrite it. Nothing was written. {advice}"
            )


def require_time(result: RunResult) -> float:
    """Return the start of the run, in seconds since 1970."""
    began = None
    with suppress(ValueError):
        began = datetime.fromisoformat(result.info.started_utc or "")
    if began is None or began.tzinfo is None:  # imported runs may contain only a day, or no time zone
        raise UsageError(
            f"{result.info.name} has no series over time, because the start of the run is not known. For example, the "
            "start of an imported run is not known. Use --csv to write the tables of the run"
        )
    return began.timestamp()


@click.command(cls=Command)
@click.argument("run_file", type=RUN_FILE)
@click.option("--full", is_flag=True, help="Print everything instead of one screen.")
@json_option
def show(run_file: Path, full: bool, as_json: bool) -> None:
    """Print the verdict, the headline figures and the findings of RUN_FILE on one screen. The command also works while
    the run has not ended.

    For a batch, RUN_FILE is NAME.batch, and the command prints everything.

    \b
    Examples:
      tkperf show D3-S4510.tkperf
      tkperf show D3-S4510.tkperf --full | less -R           all tables and charts
      tkperf show D3-S4510.tkperf --json | jq '.tests[].sections[].steady'
    """
    if run_file.suffix == BATCH_SUFFIX:
        from tkperf.cli.batch_output import show_batch

        show_batch(run_file, as_json=as_json)
        return
    if not as_json:
        from tkperf.cli.ending import print_run

        print_run(run_file, full=full)
        return
    from tkperf.pipeline.api import load
    from tkperf.render.export_json import write_json

    for piece in chain(write_json(load(run_file)), "\n"):
        click.echo(piece, nl=False)
