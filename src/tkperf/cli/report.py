"""tkperf report: a run file as a report for people, or as data for other programs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from tkperf.analysis.export_csv import render_samples, render_tables
from tkperf.analysis.export_json import render_json
from tkperf.analysis.export_markdown import render_markdown
from tkperf.analysis.export_tkperf import render_tkperf_xml
from tkperf.analysis.results import RunResult, analyse
from tkperf.errors import UsageError
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
    "--csv",
    "csv_folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Tables as CSV: cells, rounds, slices, verdicts, histograms, every second.",
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
    csv_folder: Path | None,
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
    with RunFile(run_file) as opened:
        record = opened.record()
        result = analyse(record)
        if csv_folder is not None:
            for name, text in render_tables(result).items():
                _write(csv_folder / name, (text,))
            steps = ((test.name, step) for test in record.tests for step in test.steps)
            _write(csv_folder / "samples.csv", render_samples(result, steps, opened.samples))
    if json_file is not None:
        _write(json_file, (render_json(result), "\n"))
    if xml_file is not None:
        _write(xml_file, (render_tkperf_xml(result),))
    if markdown_file is not None:
        _write(markdown_file, (render_markdown(result),))
    if pdf_file is not None:
        _write_bytes(pdf_file, _render_pdf(result))
    others = (pdf_file, csv_folder, json_file, xml_file, markdown_file)
    if html is not None or not any(others):
        _write(html or run_file.with_suffix(".html"), (_render_html(result),))


def _render_html(result: RunResult) -> str:
    try:
        # Reports need more than the base install, so only this command loads it.
        from tkperf.report.html import render_html  # noqa: PLC0415
    except ImportError as error:
        raise _needs_more(error) from error
    return render_html(result)


def _render_pdf(result: RunResult) -> bytes:
    try:
        from tkperf.report.pdf import render_pdf  # noqa: PLC0415
    except ImportError as error:
        raise _needs_more(error) from error
    return render_pdf(result)


def _needs_more(error: ImportError) -> UsageError:
    return UsageError(
        f"reports need more packages ({error.name} is missing): pip install 'tkperf[report]'"
    )


def _write_bytes(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
    click.echo(path)


def _write(path: Path, pieces: Iterable[str]) -> None:
    """Write a file, its folder too, and say its name."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8") as file:
            file.writelines(pieces)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
    click.echo(path)
