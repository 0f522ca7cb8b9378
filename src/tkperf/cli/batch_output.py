"""Print the results of a batch, write the results to files, and check the results against claims."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from tkperf.analysis.batch_verdict import BatchResult
from tkperf.batch.batch_watch import read_batch_result, with_reports
from tkperf.batch.ledger import read_batch
from tkperf.cli.ending import MOST_ATTACHED_BYTES, begin_mail, run_notify_command, send_mail, write_own_page
from tkperf.cli.output import Outputs, files_in
from tkperf.cli.run_options import BatchOptions
from tkperf.cli.standard_streams import complain, ended_by_signals, warning_of
from tkperf.model.batch_state import BatchState, DriveStage
from tkperf.model.choices import BATCH_SUFFIX
from tkperf.model.errors import TkperfError, UsageError
from tkperf.model.units import format_count
from tkperf.page.batch.batch_results_page import build_batch_page
from tkperf.page.batch.batch_verdict_texts import build_batch_mail
from tkperf.pipeline.api import read_claims
from tkperf.pipeline.result_cache import find_results
from tkperf.render.export_batch import build_batch_tables, render_batch_json, render_batch_junit
from tkperf.render.export_markdown import render_markdown
from tkperf.render.export_tables import render_csv
from tkperf.render.reports import build_run_view, print_pdf, render_html, require_packages, start_printer
from tkperf.render.terminal.console import open_console, print_facts
from tkperf.render.terminal.page_text import print_batch_end, print_page
from tkperf.runfile.reader import RunFile
from tkperf.system import own_files


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFiles:
    """Files for the results of a batch. None means that a file was not requested."""

    html: Path | None = None
    pdf: Path | None = None
    json: Path | None = None
    markdown: Path | None = None
    junit: Path | None = None
    mail: Path | None = None
    csv_folder: Path | None = None


def load_batch_result(path: Path, claims_file: Path | None = None) -> BatchResult:
    """Read a batch and its runs. A claims file, if one is given, replaces the claims of the batch."""
    claims = None if claims_file is None else read_claims(claims_file)
    folder = None if claims_file is None else claims_file.parent
    return read_batch_result(read_batch(path), claims=claims, folder=folder)


def show_batch(path: Path, *, as_json: bool) -> None:
    """Print the results of a batch on stdout."""
    batch_result = load_batch_result(path)
    if as_json:
        click.echo(render_batch_json(batch_result))
    else:
        print_page(build_batch_page(batch_result), open_console())


def end_batch(state: BatchState, options: BatchOptions) -> BatchResult:
    """Print a summary when a batch has ended. Write the reports of its drives and the page of the batch to the folder
    of the run files.
    """
    batch_result = read_batch_result(state)
    if not options.quiet and options.progress != "json":
        print_batch_end(build_batch_page(batch_result), open_console())
    if options.no_report:
        return batch_result
    with _warning_of("not all reports were written"):
        if own_files.were_replaced():
            raise UsageError(
                "tkperf was upgraded or removed during the batch. Write the reports with 'tkperf report "
                f"{options.path}'"
            )
        require_packages()
        for one in batch_result.drives:
            if one.result is not None:
                _write_run_report(Path(one.state.run_file))
            if one.state.again_file is not None:
                _write_run_report(Path(one.state.again_file))
        page = render_html(build_batch_page(with_reports(batch_result, options.folder)))
        write_own_page(options.report_path, page, options.path)
        if not options.quiet:
            print_facts([("page", str(options.report_path))])
    return batch_result


def _write_run_report(run_file: Path) -> None:
    with RunFile(run_file) as opened:
        record = opened.record()
        view = build_run_view(opened, record, find_results(opened, record))
        write_own_page(run_file.with_suffix(".html"), render_html(view), run_file)


@contextmanager
def _warning_of(text: str) -> Iterator[None]:
    """Convert an error to a warning. No measurement is lost, because the run files contain all measurements."""
    try:
        yield
    except (TkperfError, OSError) as error:
        complain(f"tkperf: {text}: {error}")


def write_batch(path: Path, files: BatchFiles, claims_file: Path | None = None) -> BatchResult:
    """Write the results of a batch to the requested files. If no file is requested, write the page of the batch to the
    folder of its ledger.
    """
    if not any(getattr(files, name) for name in BatchFiles.__slots__):
        files = BatchFiles(html=path.with_suffix(".html"))
    with ExitStack() as stack:
        if files.html or files.pdf:
            require_packages()
        printer = stack.enter_context(start_printer()) if files.pdf else None
        batch_result = load_batch_result(path, claims_file)
        if files.html is not None:
            batch_result = with_reports(batch_result, files.html.parent)
        paged = files.html or files.pdf or files.markdown
        page = build_batch_page(batch_result) if paged else None
        tables = tuple(build_batch_tables(batch_result)) if files.csv_folder else ()
        csv_files = files_in(files.csv_folder, (f"{table.name}.csv" for table in tables))
        outputs = Outputs(
            (files.html, files.pdf, files.json, files.markdown, files.junit, files.mail, *csv_files),
            inputs=(path, claims_file),
            folders=(files.csv_folder,),
        )
        for file, table in zip(csv_files, tables, strict=True):
            outputs.write(file, render_csv(table))
        if files.json is not None:
            outputs.write(files.json, (render_batch_json(batch_result), "\n"))
        if files.junit is not None:
            outputs.write(files.junit, render_batch_junit(batch_result))
        if files.mail is not None:
            outputs.write(files.mail, "\n".join((*build_batch_mail(batch_result), "")))
        if page is not None:
            if files.markdown is not None:
                outputs.write(files.markdown, render_markdown(page))
            if printer is not None:
                print_pdf(page, printer)
            if files.html is not None:
                outputs.write(files.html, render_html(page))
            if printer is not None and files.pdf is not None:
                outputs.write(files.pdf, printer.finish())
    return batch_result


def expand_batches(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Return the named run files. For a batch, return the files of those runs that have begun."""
    found: list[Path] = []
    for path in paths:
        if path.suffix != BATCH_SUFFIX:
            found.append(path)
            continue
        runs = [Path(drive.run_file) for drive in read_batch(path).drives if drive.stage.has_begun]
        if not runs:
            raise UsageError(f"{path} contains no results yet, because no run of the batch has begun")
        found += runs
    return tuple(found)


def notify_of_batch(options: BatchOptions, state: BatchState, lines: Sequence[str]) -> None:
    """Send a mail with the page of the batch, and run the command that the user requested. This function never raises
    an error.

    Ctrl-C ends only the current mail or command.

    Args:
        lines: text of the mail.
    """
    if options.mail is not None:
        with (
            warning_of(f"the mail to {options.mail} was not sent through {options.smtp}"),
            ended_by_signals(once=False),
        ):
            dut = f"{state.name} {describe_outcome(state)}"
            message = begin_mail(options, dut, "\n".join(lines))
            page = options.report_path
            has_page = not options.no_report and page.is_file()
            if has_page and page.stat().st_size <= MOST_ATTACHED_BYTES:
                message.add_attachment(page.read_text("utf-8"), subtype="html", filename=page.name)
            send_mail(options, message)
    if options.notify_command is not None:
        values = {
            "{name}": options.name,
            "{status}": describe_outcome(state),
            "{run_file}": str(options.path.resolve()),
        }
        with warning_of("--notify-command did not end"), ended_by_signals(once=False):
            run_notify_command(options.notify_command, values)


def describe_outcome(state: BatchState) -> str:
    """Return the progress of a batch in words, such as ``complete`` or ``22 of 24 drives done``."""
    done = sum(drive.stage is DriveStage.DONE for drive in state.drives)
    if done == len(state.drives):
        return "complete"
    return f"{done} of {format_count(len(state.drives), 'drive')} done"
