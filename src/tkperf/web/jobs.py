"""The jobs of workers, as a table whose keys are the names of the jobs. A job is a function that reads run files. Only
jobs build the rows of the library.
"""

from __future__ import annotations

import hashlib
import io
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec

from tkperf.analysis.batch_verdict import BatchResult
from tkperf.analysis.comparing.comparison import Arrangement, compare_files
from tkperf.analysis.comparing.ranking import shorten_figures
from tkperf.analysis.comparing.run_figures import build_run_figures
from tkperf.analysis.drive_telemetry import place_readings
from tkperf.analysis.results import RunResult, SectionResult
from tkperf.analysis.run_overview import build_overview
from tkperf.batch.batch_watch import WatchedBatch, read_batch_result
from tkperf.batch.drive_finder import MOST_DRIVES
from tkperf.batch.ledger import MOST_BYTES, read_batch, read_log
from tkperf.model.choices import BATCH_SUFFIX, RUN_FILE_SUFFIX
from tkperf.model.errors import RunFileError, UsageError
from tkperf.model.input_files import read_input
from tkperf.model.measurement import samples_of
from tkperf.model.quantity import IOPS
from tkperf.model.record import LogEntry, RunRecord, RunStatus
from tkperf.model.run_info import find_run_id
from tkperf.model.units import format_duration, format_number, on_one_line
from tkperf.model.workload import list_streams
from tkperf.page.batch.batch_progress import build_batch_progress, describe_stages
from tkperf.page.batch.batch_results_page import build_batch_page
from tkperf.page.batch.batch_verdict_texts import build_batch_mail
from tkperf.page.chart import Axis, Point
from tkperf.page.comparison.build_page import build_comparison_page
from tkperf.page.facts import shorten
from tkperf.page.findings import headlines
from tkperf.page.page import ReportView
from tkperf.page.progress import ProgressView
from tkperf.page.progress import build_progress as build_progress_page
from tkperf.page.verdict_texts import describe_verdict
from tkperf.pipeline.result_cache import find_results, read_results
from tkperf.pipeline.run_state import RunState
from tkperf.pipeline.running_runs import FollowedFile, find_clock_s
from tkperf.procedures.write_saturation import TEST as WRITE_SATURATION
from tkperf.render.document import compose
from tkperf.render.export_batch import build_batch_tables, render_batch_json
from tkperf.render.export_comparison import render_comparison_json
from tkperf.render.export_json import render_json
from tkperf.render.export_series import SeriesPoint, build_progress, build_reading, build_second, label_run, label_step
from tkperf.render.export_tables import DataTable, build_comparison_table, build_tables, render_csv
from tkperf.render.html import PageFrame, render_script, render_view
from tkperf.render.pdf import set_document
from tkperf.render.reports import build_run_view
from tkperf.render.terminal.drawings import spread_over
from tkperf.render.terminal.histories import format_short
from tkperf.runfile.reader import RunFile
from tkperf.runner.events import Delta
from tkperf.web.bounds import LISTED_WITHIN_S
from tkperf.web.files import KnownFile, reach
from tkperf.web.index import BatchRow, HeadlineFigure, RunRow, Spark, encode_row
from tkperf.web.live_chart import HEIGHT, WIDTH, draw_cells, draw_seconds, draw_window
from tkperf.web.pages import render_text
from tkperf.web.workers import Jobs

LOOK_EVERY_S = 0.25
# The interval, in s, at which a page is updated even if there is no new event, because clocks and remaining times
# change. Each update also shows the browser that the server is still running.
SHOW_EVERY_S = 5.0


def follow_run(file: KnownFile) -> Iterator[bytes]:
    """Yield the state of a run in progress, as a part of a page, each time its file changes. Stop when no process holds
    the file any more.
    """
    followed = FollowedFile(reach(file))
    reach(file)  # raises an error if the path now leads to another file
    state = RunState()
    events = followed.first_events()
    while True:
        for event in events:
            state.take(event)
        clock_s = find_clock_s(followed.record)
        if clock_s is not None and followed.is_running:
            state.at_s = max(state.at_s, clock_s)
        yield render_progress(build_progress_page(state)).encode(errors="replace")
        if not followed.is_held:
            return
        _wait_for(lambda: followed.has_changed)
        events = followed.new_events()
        reach(file)


def follow_batch(*, ledger: KnownFile, addresses: Mapping[str, str]) -> Iterator[bytes]:
    """Yield the state of a batch in progress, as a part of a page, each time one of its files changes.

    Args:
        addresses: the pages of the runs of the batch, with the names of the runs as the keys.
    """
    watched = WatchedBatch(reach_batch(ledger))
    watched.look_at_all()
    while True:
        view = build_batch_progress(watched.state, watched.runs)
        text = render_text("batch_live.html.j2", view=view, addresses=addresses)
        yield text.encode(errors="replace")
        if not watched.state.is_under_way:
            return
        _wait_for(lambda: bool(watched.look() or watched.news))
        reach_batch(ledger)


def _wait_for(has_news: Callable[[], bool]) -> None:
    """Wait until ``has_news`` returns True. The wait ends at the latest when the page must be updated."""
    until_s = time.monotonic() + SHOW_EVERY_S
    while True:
        time.sleep(LOOK_EVERY_S)
        if has_news() or time.monotonic() > until_s:
            return


def render_progress(view: ProgressView) -> str:
    """Return the part of a page that shows a run in progress: its position, its figures, and its charts so far."""
    return render_text(
        "live.html.j2",
        view=view,
        cells=() if view.cells is None else draw_cells(view.cells),
        seconds=draw_seconds(view.seconds_iops),
        window=None if view.window is None else draw_window(view.window),
        number=format_number,
        short=format_short,
        size=(WIDTH, HEIGHT),
    )


def make_comparison(
    *, order: Sequence[str], arrangement: str, kind: str, frame: Mapping[str, str] | None, **files: KnownFile
) -> bytes:
    """Return a comparison of runs as a page or in another format. ``order`` contains the IDs of the runs in the order
    of the comparison.
    """
    results = [_read(files[run_id]) for run_id in order]
    comparison = compare_files(results, Arrangement(arrangement) if arrangement else None)
    match kind:
        case "csv":
            return "".join(render_csv(build_comparison_table(comparison))).encode()
        case "json":
            return render_comparison_json(comparison).encode()
    return _render(build_comparison_page(comparison), kind, frame)


def make_batch(
    *, ledger: KnownFile, addresses: Mapping[str, str], kind: str, frame: Mapping[str, str] | None, **files: KnownFile
) -> bytes:
    """Return a batch as a page or in another format.

    Args:
        files: the run files, with their names as the keys.
        addresses: the pages of the runs, with the same keys.
    """
    batch_result = _read_batch(ledger, files)
    match kind:
        case "mail":
            return "\n".join((*build_batch_mail(batch_result), "")).encode()
        case "json":
            return render_batch_json(batch_result).encode()
        case "csv":
            return pack_tables(build_batch_tables(batch_result), ledger.name)
    if frame is not None:
        drives = tuple(
            replace(one, report=addresses.get(Path(one.state.run_file).name, "")) for one in batch_result.drives
        )
        batch_result = replace(batch_result, drives=drives)
    return _render(build_batch_page(batch_result), kind, frame)


def _read_batch(ledger: KnownFile, files: Mapping[str, KnownFile]) -> BatchResult:
    """Read a batch with those of its runs that the library contains. No other file that the ledger names is read."""
    state = read_batch(reach_batch(ledger))
    folder = ledger.folder / Path(ledger.place).parent

    def find(run_file: str) -> str:
        known = files.get(Path(run_file).name)
        # A run file that the library does not contain, or does not contain yet, counts as a file without results. For
        # such a file, this function returns the path of the folder, because a folder cannot contain results either.
        return str(folder / ".") if known is None else str(reach(known))

    def load_baseline(path: Path) -> RunResult:
        if not path.resolve().is_relative_to(ledger.folder):
            raise UsageError(f"the baseline {path.name} of the claims is not in the served folder")
        return read_results(path)

    drives = tuple(msgspec.structs.replace(drive, run_file=find(drive.run_file)) for drive in state.drives)
    return read_batch_result(msgspec.structs.replace(state, drives=drives), load=load_baseline)


def _read(known: KnownFile) -> RunResult:
    result = read_results(reach(known))
    reach(known)  # raises an error if the path now leads to another file
    return result


def _render(view: ReportView, kind: str, frame: Mapping[str, str] | None) -> bytes:
    if kind == "pdf":
        return set_document(compose(view))
    return render_view(view, None if frame is None else PageFrame(**frame)).encode()


def pack_tables(tables: Iterable[DataTable], name: str) -> bytes:
    """Return tables as CSV in a ZIP archive."""
    archive = io.BytesIO()
    name = name.encode(errors="replace").decode()  # the name of a file may not be valid text
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for table in tables:
            with packed.open(f"{name}/{table.name}.csv", "w") as member:
                member.writelines(piece.encode() for piece in render_csv(table))
    return archive.getvalue()


def make_page(file: KnownFile, run_id: str, script_address: str, differs: str) -> bytes:
    """Return the report with the frame of the library. ``differs`` is a sentence about other files of this run whose
    content differs. The sentence is empty if there are no such files.
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
    """Return the results in the form of ``tkperf show --json``."""
    with _analysed(file) as (_, _, result):
        return render_json(result).encode()


def make_csv(file: KnownFile) -> bytes:
    """Return the tables of ``tkperf report --csv`` in a ZIP archive."""
    with _analysed(file) as (opened, record, result):
        steps = [(test.name, step) for test in record.tests for step in test.steps]
        tables = build_tables(result, steps, opened.samples_left, tuple(place_readings(record)))
        return pack_tables(tables, file.name)


def make_copy(file: KnownFile) -> bytes:
    """Return a copy of the run file as it is at a single moment, even while the run is writing to the file."""
    with open_known(file) as opened:
        return opened.content()


def make_points(file: KnownFile) -> bytes:
    """Return data points of a run in progress: the current progress of the run, the latest second, and the latest
    telemetry reading of each drive.
    """
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
    if run_now_s is None:  # the clock of a simulated run is simulated too
        return
    began_s = at_s - run_now_s
    for test in record.tests:
        step = test.under_way
        samples = delta.seconds_under_way.samples
        if step is not None and samples:
            for load in (step.workload, *list_streams(step.workload)):
                of_load = labels | label_step(test.name, replace(step, workload=load))
                for second in samples_of(samples[-1:], load):
                    yield build_second(second, load, of_load, began_s + step.started_s)
    for reading in {reading.drive: reading for reading in record.telemetry}.values():
        yield build_reading(reading, labels, began_s + reading.at_s)


def make_script() -> bytes:
    """Return the script that all pages with charts need."""
    return render_script().encode()


def make_row(file: KnownFile) -> bytes:
    """Return the data about a run file or a batch that the library stores."""
    if file.place.endswith(BATCH_SUFFIX):
        return encode_row(read_batch_row(file))
    # Other files wait until this file is read. The library therefore waits only a short time for a locked file, and
    # reads it again later.
    with open_known(file, locked_s=LISTED_WITHIN_S) as opened:
        return encode_row(read_run_row(opened))


@contextmanager
def open_known(known: KnownFile, *, locked_s: float | None = None) -> Iterator[RunFile]:
    """Open the file that the library found. If another file now has this name, raise an error.

    Args:
        locked_s: see ``RunFile``.

    Raises:
        RunFileError: the same errors as in ``RunFile``, or the path now leads to another file.
    """
    with RunFile(reach(known), briefly=True, locked_s=locked_s) as opened:
        reach(known)  # raises an error if the path now leads to another file
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


# The greatest length and the greatest number of texts in a row. A file from another source can contain texts of any
# length and in any number.
_MOST_CHARACTERS, _MOST_TEXTS = 160, 16
_SPARK_POINTS = 60


def read_run_row(opened: RunFile) -> RunRow:
    """Return the row of an open run file.

    Raises:
        RunFileError: the same errors as in ``RunFile``.
    """
    record = opened.record()
    result = find_results(opened, record)
    return build_run_row(record, opened.log(), result, digest=opened.digest())


def build_run_row(record: RunRecord, log: Sequence[LogEntry], result: RunResult, *, digest: bytes) -> RunRow:
    """Return the row of a run. ``result`` contains findings from the one-second samples of the run, so the figures are
    the same as in the report.
    """
    info = record.info
    verdict = describe_verdict(result)
    overview = build_overview(record, log, run_file="", now_s=None, pid=None, user=None, disturbed_steps=None)
    ended = record.status is RunStatus.COMPLETE
    figures = shorten_figures(build_run_figures(result))
    capacity_bytes = figures.device.get("capacity_bytes")
    return RunRow(
        run_id=find_run_id(info),
        name=_text(info.name),
        model=_text(info.device.get("model") or info.device.get("kind")),
        serial=_text(info.device.get("serial")),
        firmware=_text(info.device.get("firmware")),
        host=_text(info.host.get("hostname")),
        tests=_texts(test.title.partition(" (")[0] for test in result.tests),
        profile=_text(info.profile_name),
        started_utc=_text(info.started_utc),
        state=overview.state,
        place="" if ended else _text(overview.place or overview.test),
        verdict=verdict.judged.state.value,
        level=verdict.level,
        reasons=_texts(verdict.reasons),
        simulated=info.is_simulated,
        # Findings are omitted, because a list has no space for them. Figures that were not measured are also omitted.
        figures=tuple(
            HeadlineFigure(_text(one.label), _text(one.text), one.alarm)
            for one in headlines(result)
            if one.value is not None and not one.needs_attention
        ),
        spark=_build_spark(result),
        entries=len(log),
        digest=digest,
        capacity_bytes=capacity_bytes if isinstance(capacity_bytes, int) else None,
        interface=_text(figures.device.get("interface")),
        form_factor=_text(figures.device.get("form_factor")),
        ranks=msgspec.msgpack.encode(figures),
    )


def reach_batch(ledger: KnownFile) -> Path:
    """Return the path of a batch that is to be read. Reading the batch also opens its run files.

    Raises:
        RunFileError: the ledger cannot be read, or one of its run files is a link.
    """
    path = reach(ledger)
    drives = read_log(path).begun.request.drives
    if len(drives) > MOST_DRIVES:
        raise RunFileError(f"{path.name} names {len(drives):,} drives, but a batch has at most {MOST_DRIVES}")
    for drive in drives:
        run_file = path.with_name(f"{drive.name}{RUN_FILE_SUFFIX}")
        if run_file.is_symlink():
            raise RunFileError(f"{run_file.name} is a link, which tkperf does not follow")
    return path


def read_batch_row(ledger: KnownFile) -> BatchRow:
    """Return the row of a batch. The row is built from the ledger of the batch and the state of its run files.

    Raises:
        RunFileError: the same errors as in ``reach_batch``.
    """
    path = reach_batch(ledger)
    state = read_batch(path)
    stages = describe_stages(state)
    began = read_log(path).begun
    identity = msgspec.json.encode((began, state.began_utc))
    return BatchRow(
        batch_id=hashlib.sha256(identity).hexdigest()[:32],
        name=_text(state.name),
        began_utc=_text(state.began_utc),
        verdict=stages.judged.state.value,
        text=_text(stages.text),
        level=stages.level,
        is_running=state.is_under_way,
        runs=tuple(Path(drive.run_file).name for drive in state.drives),
        digest=hashlib.sha256(read_input(path, what="batch", limit_bytes=MOST_BYTES)).digest(),
    )


def _build_spark(result: RunResult) -> Spark | None:
    section = next(
        (
            section
            for test in result.tests
            if test.name == WRITE_SATURATION.name
            for section in test.sections
            if len(section.slices) > 2
        ),
        None,
    )
    return None if section is None else _draw(section)


def _draw(section: SectionResult) -> Spark | None:
    points = [Point(each.start_s, each.values.value(IOPS)) for each in section.slices]
    values = tuple(spread_over(points, Axis(title=""), _SPARK_POINTS))
    known = [value for value in values if value is not None]
    if not known:
        return None
    lasted = format_duration(section.slices[-1].end_s)
    text = f"from {format_number(known[0])} to {format_number(known[-1])} IOPS in {lasted}"
    return Spark(values, text)


def _text(value: object) -> str:
    return "" if value is None else shorten(on_one_line(str(value)), _MOST_CHARACTERS)


def _texts(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(_text, values)))[:_MOST_TEXTS]
