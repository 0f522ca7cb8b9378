"""The steps at the end of a run, after the device was released. tkperf writes the report and notifies the user.

Nothing in this module changes the outcome of the run. A failure only prints a line on stderr. Ctrl-C ends only the
current step, such as sending the mail.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tkperf.analysis.details import IN_TERMINAL, CellDetail, build_details, with_latency_bands
from tkperf.analysis.over_seconds import Read
from tkperf.analysis.results import RunResult
from tkperf.cli.output import write_output
from tkperf.cli.run_options import CallOptions, RunOptions, smtp_login
from tkperf.cli.standard_streams import complain, ended_by_signals, warning_of
from tkperf.model.errors import EngineError, UsageError, reason_of
from tkperf.model.measurement import Seconds
from tkperf.model.record import LogEntry, RunRecord, RunStatus
from tkperf.model.units import format_capacity, format_duration, format_durations
from tkperf.page.view import build_view
from tkperf.pipeline.result_cache import find_results
from tkperf.pipeline.running_runs import find_clock_s
from tkperf.render.export_markdown import render_markdown
from tkperf.render.terminal.console import can_redraw, open_console, plain, print_lines
from tkperf.render.terminal.one_screen import RUN_FILE, print_one_screen
from tkperf.render.terminal.page_text import print_end, print_page
from tkperf.render.terminal.progress_lines import format_end
from tkperf.runfile.reader import RunFile
from tkperf.runner.run_log import describe_place, find_progress
from tkperf.system import own_files
from tkperf.system.process import run_command

if TYPE_CHECKING:
    import smtplib


FEW_SLICES = 30


def describe_going_on(record: RunRecord, log: Sequence[LogEntry]) -> str:
    """Return the position of a run in progress in words: ``test 1 of 4, IOPS, round 3 of at most 25; 1 h gone,
    ...``.
    """
    progress = find_progress(record, log)
    place = describe_place(progress) or progress.test or "about to begin"
    text = f"test {progress.number} of {progress.tests}, {place}" if progress.test else place
    now_s = find_clock_s(record)
    if now_s is None:
        return text
    text += f"; {format_duration(now_s)} gone"
    remaining_s = progress.remaining_s(now_s)
    if remaining_s is not None:
        ends = format_end(datetime.now(UTC), *remaining_s)
        text += f", {format_durations(*remaining_s)} left, ends {ends}"
    return text


def describe_ended(path: Path, record: RunRecord) -> tuple[str, ...]:
    """Return lines about a run to which no process is writing. They describe how the run ended, and which commands the
    user can use next. The lines contain markup.
    """
    name, file = plain(record.info.name), plain(path)
    results = f"results: tkperf show {file}; as a page: tkperf report {file}"
    if record.info.imported:
        return (f"{name} is an imported result: another tool measured it", results)
    because = f": {plain(record.ended_because)}" if record.ended_because else ""
    if record.status is RunStatus.COMPLETE:
        ended = f" at {record.ended_utc}" if record.ended_utc else ""
        return (f"{name} has ended{ended}: complete, all of its tests were measured", results)
    go_on = f"resume:  tkperf resume {file}"
    return (f"{name} has ended: {record.status.value}{because}", results, go_on)


_FULL = f"tkperf show {RUN_FILE} --full"
_POINTERS = (
    (f"tkperf report {RUN_FILE}", "the HTML page; --pdf FILE: for print"),
    ("tkperf report --help", "CSV, JSON, Markdown and other formats"),
)


def print_run(path: Path, *, full: bool = False) -> None:
    """Print the results of a run file on stdout. The output fits on one screen, or contains everything if ``full`` is
    True.
    """
    details: Sequence[CellDetail] = ()
    with RunFile(path) as opened:
        record = opened.record()
        result = find_results(opened, record)
        if full:
            details = build_details(result, record, _read_short_streams(result, record, opened.seconds))
            details = with_latency_bands(details, result, opened.samples_left, IN_TERMINAL)
        running = record.status is RunStatus.RUNNING
        going_on = describe_going_on(record, opened.log()) if running else None
    view = build_view(result, details=details)
    if full:
        print_page(view, open_console(), going_on=going_on)
        return
    # The headline figure of a test with a grid covers only one write rate of the grid.
    grid = any(section.grid_rules is not None for test in result.tests for section in test.sections)
    everything = "all tables and charts, here, with all rates of writes" if grid else "all tables and charts, here"
    pointers = [(_FULL, everything), *_POINTERS]
    if running:
        pointers.append((f"tkperf attach {RUN_FILE}", "watch the run until it ends"))
    elif record.status is not RunStatus.COMPLETE and not record.info.imported:
        pointers.append((f"tkperf resume {RUN_FILE}", "continue the run"))
    print_one_screen(view, open_console(), going_on=going_on, run_file=shlex.quote(str(path)), pointers=pointers)


def print_ended(path: Path) -> None:
    """Print the verdict and the headline figures of a finished run on stdout."""
    with RunFile(path) as opened:
        result = find_results(opened, opened.record())
    print_end(build_view(result), open_console())


def _read_short_streams(result: RunResult, record: RunRecord, read: Read) -> dict[str, Sequence[Seconds]]:
    """Return the one-second samples of those tests that contain a stream with too few slices to draw. Reading the
    samples of all tests would take much longer.
    """
    short = {
        test.name for test in result.tests if any(0 < len(section.slices) < FEW_SLICES for section in test.sections)
    }
    return {test.name: read(test) for test in record.tests if test.name in short}


# A text near the beginning of each page that tkperf writes. The text identifies such pages.
OWN_PAGE = b'<meta name="generator" content="tkperf'
_WITHIN_BYTES = 4096
WRITING = "writing the report; Ctrl-C skips it"
SMTP_LIMIT_S = 60.0
COMMAND_LIMIT_S = 300.0
# Mail servers usually refuse mails above 20 to 25 MB. The encoding of attachments increases their size by a third.
MOST_ATTACHED_BYTES = 14_000_000
PORTS = {"none": 25, "starttls": 587, "tls": 465}

Page = str | Exception
"""A report, or the error that explains why no report exists."""


class Ending:
    """The steps after a run: the report and the notification. A run that did not begin has no report."""

    def __init__(self) -> None:
        self._options: RunOptions | None = None
        self.report: Path | None = None

    def ran(self, options: RunOptions) -> None:
        """Record that the run has ended, with or without success, and that its run file is closed."""
        self._options = options

    @property
    def has_run(self) -> bool:
        """Return whether a run began. If a run began, the run file contains results, or the reason why there are no
        results.
        """
        return self._options is not None

    def conclude(self) -> None:
        """Write the report and notify the user as the options request. This method never raises an error."""
        options = self._options
        notified = options is not None and (options.mail or options.notify_command)
        if options is None or (options.no_report and not notified):
            return
        with warning_of("nothing was done with its results"), ended_by_signals(once=False):
            result, page = _read(options)
            if not options.no_report and any(test.sections for test in result.tests):
                with warning_of(f"no report was written to {options.report_path}"):
                    write_report(options, page)
                    self.report = options.report_path
            if notified:
                notify(options, result, page)

    def say_where(self) -> None:
        """If a report was written, print the path of the report."""
        if self.report is not None:
            print_lines(f"report:   {plain(self.report)}")


@contextmanager
def concluded() -> Iterator[Ending]:
    """Yield an object for the steps after a run. When a run that begins in this context has ended, the object writes
    the report and notifies the user.
    """
    ending = Ending()
    try:
        yield ending
    finally:
        ending.conclude()


def write_report(options: RunOptions, page: Page) -> None:
    """Write a page to the folder of the run file. If a file with this name exists and tkperf did not write this file,
    the file is kept.
    """
    if isinstance(page, Exception):
        raise page
    write_own_page(options.report_path, page, options.run_path)


def write_own_page(path: Path, page: str, source: Path) -> None:
    """Write the page of a run or a batch to the folder of its file."""
    if os.path.lexists(path) and not _is_own_page(path):
        raise UsageError(
            "another program wrote the file of that name, so tkperf does not replace it. To write "
            f"the report to another file, use: tkperf report {source} -o FILE"
        )
    write_output(path, page, say=False, inputs=(source,))


def _is_own_page(path: Path) -> bool:
    """Return whether tkperf wrote this page. If so, tkperf may replace it."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return OWN_PAGE in file.read(_WITHIN_BYTES)
    except OSError:
        return False


def _read(options: RunOptions) -> tuple[RunResult, Page]:
    """Return the results of the run with their findings, and also return the page of the report."""
    with RunFile(options.run_path) as opened, _transient(WRITING):
        record = opened.record()
        result = find_results(opened, record)
        try:
            if own_files.were_replaced():
                return result, own_files.render_with_new_files(options.run_path)
            from tkperf.render import reports  # noqa: PLC0415 - its packages may be missing

            return result, reports.render_html(reports.build_run_view(opened, record, result))
        except KeyboardInterrupt:
            return result, UsageError("stopped by the user")
        except Exception as error:
            return result, error


@contextmanager
def _transient(text: str) -> Iterator[None]:
    """Show a line on the terminal until the ``with`` block ends."""

    def write(words: str) -> None:
        if can_redraw():
            with suppress(OSError):
                sys.stderr.write(words)
                sys.stderr.flush()

    write(text)
    try:
        yield
    finally:
        write("\r\x1b[K")


def notify(options: RunOptions, result: RunResult, page: Page) -> None:
    """Send a mail and run the command that the user requested for a finished run. This function never raises an error.

    Ctrl-C ends only the current mail or command. The outcome of the run does not change.
    """
    if options.mail is not None:
        with warning_of(f"the mail to {options.mail} was not sent through {options.smtp}"):
            send_mail(options, build_mail(options, result, page))
    if options.notify_command is not None:
        values = {
            "{name}": options.name,
            "{status}": result.status.value,
            "{run_file}": str(options.run_path.resolve()),
        }
        with warning_of("--notify-command did not end"):
            run_notify_command(options.notify_command, values)


def build_mail(options: RunOptions, result: RunResult, page: Page) -> EmailMessage:
    """Return a mail that contains the results as text. The report and the run file are attached if they are not too
    large for a mailbox.
    """
    missing: list[str] = []
    attached: list[tuple[str, str, bytes]] = []
    left_bytes = MOST_ATTACHED_BYTES
    # The report is attached first, because most readers of the mail open it.
    for name, kind, read in (
        (f"{options.name}.html", "text/html", partial(_encoded, page)),
        (options.run_path.name, "application/vnd.sqlite3", options.run_path.read_bytes),
    ):
        try:
            content = read()
        except Exception as error:  # every error is caught, because the mail must be sent in any case
            missing.append(f"{name} is not attached: {reason_of(error)}")
            continue
        if len(content) > left_bytes:
            size = format_capacity(len(content))
            missing.append(f"{name} is not attached: {size} are too much for a mail")
            continue
        left_bytes -= len(content)
        attached.append((name, kind, content))
    dut = f"{result.info.name} {result.status.value}"
    lines = (render_markdown(build_view(result)), *missing)
    message = begin_mail(options, dut, "\n".join(lines))
    for name, kind, content in attached:
        maintype, subtype = kind.split("/")
        message.add_attachment(content, maintype=maintype, subtype=subtype, filename=name)
    return message


def begin_mail(options: CallOptions, dut: str, text: str) -> EmailMessage:
    """Return a mail without attachments."""
    message = EmailMessage()
    message["Subject"] = f"tkperf: {dut}"
    message["From"] = options.mail_from or f"tkperf@{os.uname().nodename}"
    message["To"] = options.mail
    message["Date"] = format_datetime(datetime.now(UTC))
    message["Message-ID"] = make_msgid(domain=os.uname().nodename)
    message.set_content(text)
    return message


def _encoded(page: Page) -> bytes:
    if isinstance(page, Exception):
        raise page
    return page.encode()


def send_mail(options: CallOptions, message: EmailMessage) -> None:
    """Send a mail through the server that the options name. This function can raise any kind of error."""
    import smtplib  # noqa: PLC0415 - few need it
    import ssl  # noqa: PLC0415

    host, _, port_text = options.smtp.partition(":")
    port = int(port_text) if port_text else PORTS[options.smtp_tls]
    context = ssl.create_default_context()
    server: smtplib.SMTP
    if options.smtp_tls == "tls":
        server = smtplib.SMTP_SSL(host, port, timeout=SMTP_LIMIT_S, context=context)
    else:
        server = smtplib.SMTP(host, port, timeout=SMTP_LIMIT_S)
    with server:
        if options.smtp_tls == "starttls":
            server.starttls(context=context)
        login = smtp_login()
        if login is not None and (options.smtp_tls != "none" or options.smtp_plain_login):
            _log_in(server, *login)
        server.send_message(message)


def _log_in(server: smtplib.SMTP, user: str, password: str) -> None:
    """Log in to the mail server."""
    import smtplib  # noqa: PLC0415

    try:
        server.login(user, password)
    except UnicodeError:
        reason = "only ASCII can be sent"
    except smtplib.SMTPResponseException as error:
        reason = f"it answered {error.smtp_code}"
    except smtplib.SMTPException as error:
        reason = type(error).__name__
    else:
        return
    raise UsageError(f"the mail server rejected the login with TKPERF_SMTP_USER and TKPERF_SMTP_PASSWORD: {reason}")


def run_notify_command(command: str, values: Mapping[str, str]) -> None:
    """Run the command of the user. ``values`` replace the placeholders in the command."""
    words = shlex.split(command)
    for placeholder, value in values.items():
        words = [word.replace(placeholder, value) for word in words]
    try:
        done = run_command(words, timeout_s=COMMAND_LIMIT_S)
    except EngineError as error:
        complain(f"tkperf: warning: --notify-command: {error}")
        return
    if done.exit_status != 0:
        said = done.words[:200]
        complain(f"tkperf: warning: --notify-command ended with status {done.exit_status}: {said}")
