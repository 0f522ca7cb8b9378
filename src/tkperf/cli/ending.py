"""End of a run, after its device is released: write the report and notify.

Nothing here changes the outcome of the run. A failure is a line on stderr, and Ctrl-C ends only the work that is
under way here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tkperf.cli.output import write_output
from tkperf.cli.run_options import RunOptions
from tkperf.cli.signals import ended_by_signals
from tkperf.cli.streams import warning_of
from tkperf.model.errors import UsageError
from tkperf.render.terminal.console import can_redraw, plain, tell

if TYPE_CHECKING:
    from tkperf.analysis.results import RunResult
    from tkperf.cli.notify import Page
    from tkperf.model.record import RunRecord
    from tkperf.runfile.reader import RunFile

# Text in the first bytes of each page that tkperf writes.
OWN_PAGE = b'<meta name="generator" content="tkperf'
_WITHIN_BYTES = 4096
WRITING = "writing the report; Ctrl-C skips it"


class Ending:
    """The end of a run, as far as it has come. A run that never began gets no report."""

    def __init__(self) -> None:
        self._options: RunOptions | None = None
        self.report: Path | None = None

    def ran(self, options: RunOptions) -> None:
        """Note that the run file is closed, with any outcome."""
        self._options = options

    def conclude(self) -> None:
        """Write the report and notify as the options ask. Never raises."""
        options = self._options
        notified = options is not None and (options.mail or options.notify_command)
        if options is None or (options.no_report and not notified):
            return
        with warning_of("nothing was done with its results"), ended_by_signals(once=False):
            result, page = _read(options)
            if not options.no_report and _has_measured(result):
                with warning_of(f"no report was written to {options.report_path}"):
                    write_report(options, page)
                    self.report = options.report_path
            if notified:
                from tkperf.cli.notify import notify  # noqa: PLC0415 - few need it

                notify(options, result, page)

    def say_where(self) -> None:
        """Print the path of the report, if there is one."""
        if self.report is not None:
            tell(f"report:   {plain(self.report)}")


@contextmanager
def concluded() -> Iterator[Ending]:
    """Conclude a run that begins in this context, when it is over. If it failed, print the path of the report."""
    ending = Ending()
    try:
        yield ending
    except BaseException:
        ending.conclude()
        ending.say_where()
        raise
    ending.conclude()


def write_report(options: RunOptions, page: Page) -> None:
    """Write a page next to the run file. A file that tkperf did not write stays.

    Raises:
        Exception: there is no page, it cannot be written, or tkperf did not write the file of its name.
    """
    path = options.report_path
    if isinstance(page, Exception):
        raise page
    if os.path.lexists(path) and not _is_own_page(path):
        raise UsageError(
            "there is a file of that name that tkperf did not write, which stays as it is; tkperf "
            f"report {options.run_path} -o FILE writes it elsewhere"
        )
    write_output(path, page, say=False, inputs=(options.run_path,))


def _is_own_page(path: Path) -> bool:
    """Return whether tkperf wrote this page, so that it may be replaced."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return OWN_PAGE in file.read(_WITHIN_BYTES)
    except OSError:
        return False


def _has_measured(result: RunResult) -> bool:
    return any(test.sections for test in result.tests)


def _read(options: RunOptions) -> tuple[RunResult, Page]:
    """Return the results with their findings, and the page."""
    from tkperf.analysis.over_seconds import analyse_opened  # noqa: PLC0415 - only for an end
    from tkperf.runfile.reader import RunFile  # noqa: PLC0415

    with RunFile(options.run_path) as opened, _transient(WRITING):
        record = opened.record()
        result = analyse_opened(opened, record)
        return result, _render(opened, record, result)


def _render(opened: RunFile, record: RunRecord, result: RunResult) -> Page:
    from tkperf.render import reports  # noqa: PLC0415

    try:
        return reports.render_html(reports.build_run_view(opened, record, result))
    except KeyboardInterrupt:
        return UsageError("stopped by the user")
    except Exception as error:
        return error


@contextmanager
def _transient(text: str) -> Iterator[None]:
    """Show a line on the terminal while this context lasts."""
    write: Callable[[str], object] = sys.stderr.write if can_redraw() else lambda _: None
    with suppress(OSError):
        write(text)
        sys.stderr.flush()
    try:
        yield
    finally:
        with suppress(OSError):
            write("\r\x1b[K")
            sys.stderr.flush()
