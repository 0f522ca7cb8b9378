"""Make rows of the library from run files and batches. Only workers do this."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from tkperf.analysis.comparing.ranking import shorten_figures
from tkperf.analysis.comparing.run_figures import build_run_figures
from tkperf.analysis.results import RunResult, SectionResult
from tkperf.analysis.run_overview import build_overview
from tkperf.batch.drive_finder import MOST_DRIVES
from tkperf.batch.ledger import MOST_BYTES, read_batch, read_log
from tkperf.model.choices import RUN_FILE_SUFFIX
from tkperf.model.errors import RunFileError
from tkperf.model.input_files import read_input
from tkperf.model.quantity import IOPS
from tkperf.model.record import LogEntry, RunRecord, RunStatus
from tkperf.model.run_info import find_run_id
from tkperf.model.units import format_duration, format_number, on_one_line
from tkperf.page.batch.batch_progress import describe_stages
from tkperf.page.chart import Axis, Point
from tkperf.page.facts import shorten
from tkperf.page.findings import headlines
from tkperf.page.verdict_texts import describe_verdict
from tkperf.pipeline.result_cache import find_results
from tkperf.procedures.write_saturation import TEST as WRITE_SATURATION
from tkperf.render.terminal.drawings import spread_over
from tkperf.runfile.reader import RunFile
from tkperf.web.files import KnownFile, reach
from tkperf.web.library_rows import BatchRow, HeadlineFigure, RunRow, Spark

# A file from outside may contain texts of any length and number.
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
    """Return the row of a run. ``result`` contains findings from its seconds, so the figures are those of the
    report.
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
        # A finding has no room in a list, and what was not measured says nothing there.
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
    """Return the path of a batch to read. Reading the batch opens its run files.

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
    """Return the row of a batch, from its ledger and the state of its run files.

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
