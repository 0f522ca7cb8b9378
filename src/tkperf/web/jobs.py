"""Jobs of workers: functions that read run files, by name."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from tkperf.analysis.drive_telemetry import place_readings
from tkperf.analysis.overview import build_overview
from tkperf.analysis.results import RunResult
from tkperf.model.choices import BATCH_SUFFIX
from tkperf.model.record import RunRecord, RunStatus
from tkperf.page.page import ReportView
from tkperf.pipeline.result_cache import find_results
from tkperf.pipeline.running_runs import find_clock_s
from tkperf.render.document import compose
from tkperf.render.export_json import render_json
from tkperf.render.export_series import SeriesPoint, build_progress, build_reading, build_second, label_run, label_step
from tkperf.render.export_tables import build_tables
from tkperf.render.html import PageFrame, render_script, render_view
from tkperf.render.pdf import set_document
from tkperf.render.reports import build_run_view
from tkperf.runfile.reader import RunFile
from tkperf.runner.events import Delta
from tkperf.web.bounds import LISTED_WITHIN_S
from tkperf.web.files import KnownFile, reach
from tkperf.web.index import encode_row
from tkperf.web.live_jobs import follow_batch, follow_run
from tkperf.web.many import make_batch, make_comparison, pack_tables
from tkperf.web.pages import render_text
from tkperf.web.row_reader import read_batch_row, read_run_row
from tkperf.web.workers import Jobs


def make_page(file: KnownFile, run_id: str, script_address: str, differs: str) -> bytes:
    """Return the report in the frame of the library; ``differs``: a sentence about other files of
    this run, if any differ.
    """
    content = {"run_id": run_id, "name": file.name, "differs": differs}
    frame = PageFrame(
        script_address=script_address,
        head=render_text("run_head.html.j2"),
        above=render_text("run_bar.html.j2", **content),
    )
    return render_view(_build_view(file), frame).encode()


def make_html(file: KnownFile) -> bytes:
    """Return the report as one file."""
    return render_view(_build_view(file)).encode()


def make_pdf(file: KnownFile) -> bytes:
    return set_document(compose(_build_view(file)))


def make_json(file: KnownFile) -> bytes:
    """Return the results as ``tkperf show --json`` prints them."""
    with _analysed(file) as (_, _, result):
        return render_json(result).encode()


def make_csv(file: KnownFile) -> bytes:
    """Return the tables of ``tkperf report --csv`` in a ZIP archive."""
    with _analysed(file) as (opened, record, result):
        steps = [(test.name, step) for test in record.tests for step in test.steps]
        tables = build_tables(result, steps, opened.samples_left, tuple(place_readings(record)))
        return pack_tables(tables, file.name)


def make_copy(file: KnownFile) -> bytes:
    """Return the run file itself, all of one moment, even while its run writes to it."""
    with open_known(file) as opened:
        return opened.content()


def make_points(file: KnownFile) -> bytes:
    """Return points of a run under way: its progress now, its latest second, the latest reading of each drive."""
    with open_known(file) as opened:
        delta, disturbed_steps = opened.delta(), opened.outline().disturbed_steps
    return msgspec.msgpack.encode(list(_build_points(delta, disturbed_steps, time.time())))


def _build_points(delta: Delta, disturbed_steps: int | None, at_s: float) -> Iterator[SeriesPoint]:
    record = delta.record
    if record.status is not RunStatus.RUNNING:
        return
    run_now_s = find_clock_s(record)
    overview = build_overview(
        record, delta.log, run_file="", now_s=run_now_s, pid=None, user=None, disturbed_steps=disturbed_steps
    )
    labels = label_run(record.info)
    yield build_progress(overview, labels, at_s)
    if run_now_s is None:  # a simulated run has a clock of its own
        return
    began_s = at_s - run_now_s
    for test in record.tests:
        step = test.under_way
        samples = delta.seconds_under_way.samples
        if step is not None and samples:
            of_step = labels | label_step(test.name, step)
            yield build_second(samples[-1], of_step, began_s + step.started_s)
    for reading in {reading.drive: reading for reading in record.telemetry}.values():
        yield build_reading(reading, labels, began_s + reading.at_s)


def make_script() -> bytes:
    """Return the script of all pages with charts."""
    return render_script().encode()


def make_row(file: KnownFile) -> bytes:
    """Return what the library keeps of a run file or a batch."""
    if file.place.endswith(BATCH_SUFFIX):
        return encode_row(read_batch_row(file))
    # The library reads a locked file again later, and other files wait for it now.
    with open_known(file, locked_s=LISTED_WITHIN_S) as opened:
        return encode_row(read_run_row(opened))


@contextmanager
def open_known(known: KnownFile, *, locked_s: float | None = None) -> Iterator[RunFile]:
    """Open the file that the library found, and no other that has its name now.

    Args:
        locked_s: as for ``RunFile``.

    Raises:
        RunFileError: see RunFile; or it is another file.
    """
    with RunFile(reach(known), briefly=True, locked_s=locked_s) as opened:
        reach(known)  # nor was another one there meanwhile
        yield opened


@contextmanager
def _analysed(known: KnownFile) -> Iterator[tuple[RunFile, RunRecord, RunResult]]:
    with open_known(known) as opened:
        record = opened.record()
        yield opened, record, find_results(opened, record)


def _build_view(known: KnownFile) -> ReportView:
    with _analysed(known) as (opened, record, result):
        return build_run_view(opened, record, result)


JOBS: Jobs = {
    "page": make_page,
    "html": make_html,
    "pdf": make_pdf,
    "json": make_json,
    "csv": make_csv,
    "run": make_copy,
    "points": make_points,
    "script": make_script,
    "row": make_row,
    "comparison": make_comparison,
    "batch": make_batch,
    "follow_run": follow_run,
    "follow_batch": follow_batch,
}
