"""Build reports as pages, and start the process that writes a PDF.

The packages for the renderers are not part of the base installation. Only this module imports the renderers, and only
when they are needed.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tkperf.analysis.claim_results import Checked
from tkperf.analysis.details import ON_PAGE, build_details, loads_by_test, with_latency_bands
from tkperf.analysis.results import RunResult
from tkperf.analysis.run_results import is_of_usual_size
from tkperf.analysis.selected_part import PartSelection, find_selected_parts
from tkperf.model.record import RunRecord
from tkperf.model.run_info import UserFacts
from tkperf.render.packages import packages_of
from tkperf.render.paper import Document
from tkperf.runfile.reader import RunFile
from tkperf.system.process import Worker

if TYPE_CHECKING:
    from tkperf.analysis.comparing.comparison import Comparison
    from tkperf.page.page import ReportView
    from tkperf.render.html import PageFrame


_LONGEST_EPOCH = 11  # Number of digits of a time in seconds since 1970. Eleven digits are enough until the year 5138.


class Printer(Worker):
    """A writer of one PDF in a separate process. Create a printer early: the process loads the libraries while the main
    process reads results and renders the page for the screen.
    """

    def __init__(self) -> None:
        super().__init__("tkperf.render.pdf")
        self._document = b""

    def start(self, document: Document) -> None:
        """Send the document to the process. Call this method only once."""
        self._document = pickle.dumps(document)
        self.send(self._document)

    def finish(self) -> bytes:
        """Return the PDF. If the process failed, this method writes the PDF itself. Call this method only once."""
        made = self.receive()
        if made is not None:
            return made
        from tkperf.render.pdf import set_document  # noqa: PLC0415 - only then

        return set_document(pickle.loads(self._document))  # noqa: S301 - from this process


@contextmanager
def start_printer() -> Iterator[Printer]:
    """Start a printer that writes a PDF. Its process loads the libraries while the main process reads results.

    Raises:
        UsageError: the packages for reports are missing. All functions below that need these packages raise the same
            error.
    """
    with _packages():
        import typst  # noqa: F401, PLC0415 - a missing package is reported before anything is written
    with Printer() as printer:
        yield printer


def require_packages() -> None:
    """Check that the packages for reports are installed. Raise UsageError if a package is missing. Call this function
    before tkperf writes anything.
    """
    with _packages():
        import tkperf.render.html  # noqa: F401, PLC0415


def find_report_date() -> str:
    """Return today's date. If SOURCE_DATE_EPOCH is set, return the date in this variable
    (reproducible-builds.org/docs/source-date-epoch).
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    is_set = epoch.isdecimal() and len(epoch) <= _LONGEST_EPOCH
    moment = datetime.fromtimestamp(int(epoch), UTC) if is_set else datetime.now(UTC)
    return moment.date().isoformat()


def build_run_view(
    opened: RunFile,
    record: RunRecord,
    result: RunResult,
    checked: Checked | None = None,
    selections: Sequence[PartSelection] = (),
    user_facts: UserFacts | None = None,
) -> ReportView:
    """Build the report of a run, with the details of its figures and the histograms that the user requested.

    If a run has more workloads or steps than any sweep, its report does not contain the details and the charts of whole
    tests. Building these parts takes milliseconds for each workload, and more for a workload with many steps.

    Raises:
        UsageError: the run does not contain a histogram that the user requested.
    """
    with _packages():
        from tkperf.page.view import build_view  # noqa: PLC0415
    seconds = {test.name: opened.seconds(test) for test in record.tests}
    result = replace(result, left_out=tuple(opened.left_out))
    is_small = is_of_usual_size(record)
    details = build_details(result, record, seconds) if is_small or selections else ()
    if is_small:
        details = with_latency_bands(details, result, opened.samples_left, ON_PAGE)
    selected = find_selected_parts(selections, result, details, opened.samples_left)
    loads = loads_by_test(record, seconds) if is_small else {}
    return build_view(
        result,
        checked,
        details if is_small else (),
        loads,
        selected,
        record.telemetry,
        user_facts or UserFacts(report_date=find_report_date()),
    )


def render_html(view: ReportView, frame: PageFrame | None = None) -> str:
    with _packages():
        from tkperf.render.html import render_view  # noqa: PLC0415
    return render_view(view, frame)


def render_styles() -> str:
    """Return the style sheet of reports, for other pages that have the same appearance."""
    with _packages():
        from tkperf.render.html import render_styles as render  # noqa: PLC0415
    return render()


def print_pdf(view: ReportView, printer: Printer) -> None:
    """Start a process that writes the PDF of a page."""
    with _packages():
        from tkperf.render.document import compose  # noqa: PLC0415
    printer.start(compose(view))


def render_tkperf_plots(comparison: Comparison) -> dict[str, bytes]:
    """Return the pictures of tkperf-cmp as PNG. The file names that tkperf-cmp uses are the keys."""
    with _packages():
        from tkperf.page.comparison.build_page import build_tkperf_plots  # noqa: PLC0415
        from tkperf.render.charts.draw import draw  # noqa: PLC0415
        from tkperf.render.pdf import draw_png  # noqa: PLC0415
    return {f"{chart.key}.png": draw_png(draw(chart.chart)) for chart in build_tkperf_plots(comparison)}


def _packages() -> AbstractContextManager[None]:
    return packages_of("report", whose="reports need")
