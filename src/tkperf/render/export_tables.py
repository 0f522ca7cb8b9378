"""Export results as flat tables for spreadsheets and statistics. The column names contain the units.

An empty field means "not measured". ``docs/reference/exports.md`` explains the columns.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from tkperf.analysis.host_conditions import HOST_FACTS
from tkperf.analysis.results import CellResult, RunResult, SectionResult, TestResult
from tkperf.model.disturbance.io import DisturbanceCode, find_codes
from tkperf.model.measurement import Sample
from tkperf.model.quantity import IOS, QUANTITIES, Direction, to_us
from tkperf.model.record import StepRecord
from tkperf.model.reported_percentiles import PercentileUse, find_percentiles
from tkperf.model.telemetry.drive_reading import Reading
from tkperf.model.units import drop_controls
from tkperf.render.export_json import (
    STREAM_COLUMN,
    U95,
    UNCERTAINTY,
    WORKLOAD,
    Row,
    u95_row,
    uncertainty_rows,
    workload_row,
)

# The module of comparisons is imported only for type checkers, because the export of the tables of a run does not need
# this module.
if TYPE_CHECKING:
    from tkperf.analysis.comparing.comparison import Comparison

SAMPLE_PERCENTILES = find_percentiles(PercentileUse.SECONDS)
_PIECE_CHARACTERS = 1 << 20
_BLANKS = str.maketrans("\n\r\t\v\f", "     ")
# A pattern that matches the start of a formula. The pattern also matches after a semicolon, because some spreadsheets
# separate fields with semicolons.
_FORMULA = re.compile(r"(^|;)(?=\s*[=+\-@\t\r])")

Samples = Callable[[str, StepRecord], Iterable[Sample]]

# The types of columns. The key is the name that annotations use for the type.
_TYPES = {kind.__name__: kind for kind in (str, bool, int, float)}

# The type of the values in each column. The name of the column is the key.
_PLACE = {"run": str, "target": str, "test": str, "section": str}
# The table has one row for all I/Os of a cell. A mix also has a row for its reads and a row for its writes.
_CELL = {
    **WORKLOAD,
    "direction": str,
    **{key: int if quantity is IOS else float for key, quantity in QUANTITIES.items()},
    "host_limited": bool,
    "disturbances": str,
    "foreign_bytes": int,
}
_SAMPLE = {
    "kind": str,
    "number": int,
    "position": int,
    **WORKLOAD,
    "step_started_s": float,
    "start_s": float,
    "duration_s": float,
    "read_iops": float,
    "write_iops": float,
    "read_megabytes_per_s": float,
    "write_megabytes_per_s": float,
    "latency_mean_us": float,
    **{f"p{percent:g}_us": float for percent in SAMPLE_PERCENTILES},
}
_VERDICT = {
    "last_round": int,
    "tracking": str,
    "unit": str,
    "window_rounds": int,
    "needed_rounds": int,
    "average": float,
    "data_excursion": float,
    "allowed_data_excursion": float,
    "slope_excursion": float,
    "allowed_slope_excursion": float,
    "slope": float,
    "intercept": float,
    "correlation": float,
    "reached": bool,
    "reason": str,
}
_VERDICT_VALUE = {"last_round": int, "tracking": str, "unit": str, "round": int, "value": float, "fitted": float}

_SECTION = {"test_status": str, "section_complete": bool, "steady": bool, "window": str, "ended_because": str}
_RESUMPTION = {
    "resumed_utc": str,
    "stopped_s": float,
    "resumed_s": float,
    "interrupted": bool,
    "because": str,
    "goes_on": str,
    "again": str,
    "accepted": bool,
    "set_aside_steps": int,
    "set_aside_written_bytes": int,
    "repeated": str,
    "added": str,
    "changes": str,
}

# The state of the host during each step. If tkperf did not watch a step, the table has no row for it.
_HOST = {
    "kind": str,
    "number": int,
    "position": int,
    **WORKLOAD,
    "step_started_s": float,
    "duration_s": float,
    "host_limited": bool,
    "disturbances": str,
    "disturbed_by": str,
    "seen_s": float,
    **{fact.key: fact.value_type for fact in HOST_FACTS},
    "throttled_times": int,
    "others": str,
    "kernel_log": str,
}
_TELEMETRY = {attribute.name: _TYPES[str(attribute.type).removesuffix(" | None")] for attribute in fields(Reading)}

_COMPARISON = {
    **WORKLOAD,
    "part": str,
    "measure": str,
    "unit": str,
    "value": float,
    "low": float,
    "high": float,
    "range_over": str,
    "u95": float,
    "ratio_to_first": float,
    "ratio_low_95": float,
    "ratio_high_95": float,
    "within_noise": bool,
    "change": str,
    "host_limited": bool,
    "disturbances": str,
    "not_found": str,
}
_CHARACTERISTIC = {
    **WORKLOAD,
    "measure": str,
    "key": str,
    "unit": str,
    "value": float,
    "found": bool,
    "at_least": float,
    "at_most": float,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTable:
    """A table with named and typed columns.

    Attributes:
        types: the type of the values of each column: ``str``, ``bool``, ``int`` or ``float``. ``object`` means any of
            these types, in a table that is written only as CSV.
        rows: the rows. It may be possible to read the rows only once, because the one-second samples of a long run do
            not fit in memory.
    """

    name: str
    types: Mapping[str, type]
    rows: Iterable[Row]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.types)


def build_tables(
    result: RunResult,
    steps: Iterable[tuple[str, StepRecord]],
    samples: Samples,
    telemetry: Iterable[tuple[str | None, Reading]] = (),
) -> Iterator[DataTable]:
    """Yield every table of a run. The tables of results are first, followed by the table of the one-second samples of
    every step.

    Args:
        result: the results of the run.
        steps: each step with the name of its test.
        samples: returns the one-second samples of a step.
        telemetry: the readings of the drives, each with the name of its test.
    """
    has_streams = _has_streams(result)
    for name, types, rows in (
        ("cells", {**_CELL, "rounds": int, "section_complete": bool, **U95}, _cells(result)),
        ("sections", _SECTION, _ends(result)),
        ("rounds", {"round_or_area": int, "complete": bool, **_CELL}, _rounds(result)),
        (
            "slices",
            {"slice": int, "start_s": float, "duration_s": float, "total_written_bytes": int, **_CELL},
            _slices(result),
        ),
        ("verdicts", _VERDICT, _verdicts(result)),
        ("verdict_values", _VERDICT_VALUE, _verdict_values(result)),
        ("characteristics", _CHARACTERISTIC, _characteristics(result)),
        ("uncertainties", UNCERTAINTY, _uncertainties(result)),
        ("histograms", {"latency_from_us": float, "latency_to_us": float, "ios": int}, _histograms(result)),
        ("host", _HOST, _host(result)),
        ("resumptions", _RESUMPTION, _resumptions(result)),
        ("telemetry", _TELEMETRY, _telemetry(result, telemetry)),
        ("samples", _SAMPLE, _seconds(result, steps, samples)),
    ):
        table = DataTable(name=name, types={**_PLACE, **types}, rows=rows)
        yield table if has_streams else _without_streams(table)


def _has_streams(result: RunResult) -> bool:
    return any(cell.workload.together for _, section in _sections(result) for cell in section.cells)


def _without_streams(table: DataTable) -> DataTable:
    """Return a table without the column of streams. Call this function only if no load of the run was a stream."""
    if STREAM_COLUMN not in table.types:
        return table
    place = table.columns.index(STREAM_COLUMN)
    types = {name: type_ for name, type_ in table.types.items() if name != STREAM_COLUMN}
    rows = ((*row[:place], *row[place + 1 :]) for row in table.rows)
    return replace(table, types=types, rows=tuple(rows) if isinstance(table.rows, tuple) else rows)


def build_comparison_table(comparison: Comparison) -> DataTable:
    """Return a comparison as a table with a row for each value of each run."""
    table = DataTable(name="comparison", types={**_PLACE, **_COMPARISON}, rows=tuple(_comparison(comparison)))
    return table if any(row.workload.together for row in comparison.rows) else _without_streams(table)


def render_csv(table: DataTable) -> Iterator[str]:
    """Yield the pieces of the CSV text for the table."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    for row in table.rows:
        writer.writerow([_field(value) for value in row])
        if text.tell() > _PIECE_CHARACTERS:
            yield text.getvalue()
            text.seek(0)
            text.truncate()
    yield text.getvalue()


def _seconds(result: RunResult, steps: Iterable[tuple[str, StepRecord]], samples: Samples) -> Iterator[Row]:
    for test, step in steps:
        place = (
            *_target(result),
            test,
            step.section,
            step.kind.value,
            step.number,
            step.position,
            *workload_row(step.workload),
            step.started_s,
        )
        for sample in samples(test, step):
            yield (*place, *_sample(sample))


def _sample(sample: Sample) -> Row:
    both, duration_s = sample.both, sample.duration_s
    return (
        sample.start_s,
        duration_s,
        sample.read.ios / duration_s,
        sample.write.ios / duration_s,
        sample.read.bytes / duration_s / 1e6,
        sample.write.bytes / duration_s / 1e6,
        to_us(both.latency_mean_ns),
        *(to_us(both.percentile_ns(percent)) for percent in SAMPLE_PERCENTILES),
    )


def _sections(result: RunResult) -> Iterator[tuple[TestResult, SectionResult]]:
    for test in result.tests:
        for section in test.sections:
            yield test, section


def _target(result: RunResult) -> Row:
    return (result.info.name, result.info.device.get("kind"))


def _place(result: RunResult, test: TestResult) -> Row:
    return (*_target(result), test.name)


def _cell(cell: CellResult) -> Iterator[Row]:
    """Yield a row for all I/Os of a cell. For a mix, also yield a row for its reads and a row for its writes."""
    mixed = cell.workload.is_mixed
    for direction in Direction if mixed else (Direction.ALL,):
        yield (
            *workload_row(cell.workload),
            direction.value,
            *(cell.value(quantity, direction) for quantity in QUANTITIES.values()),
            cell.host_limited,
            _disturbances(cell.disturbances),
            cell.foreign_bytes,
        )


def _cells(result: RunResult) -> Iterator[Row]:
    for test, section in _sections(result):
        for cell in section.cells:
            for row in _cell(cell):
                direction = Direction(str(row[len(WORKLOAD)]))
                yield (
                    *_place(result, test),
                    section.name,
                    *row,
                    cell.rounds,
                    section.complete,
                    *u95_row(cell, direction),
                )


def _uncertainties(result: RunResult) -> Iterator[Row]:
    for test, section in _sections(result):
        for row in uncertainty_rows(section):
            yield (*_place(result, test), section.name, *row)


def _ends(result: RunResult) -> Iterator[Row]:
    """Yield a row for each section. The row states how the section ended. For a test that did not complete, also yield
    a row for each section that was not measured.
    """
    for test in result.tests:
        place = _place(result, test)
        for section in test.sections:
            window = " ".join(map(str, section.window)) or None
            yield (
                *place,
                section.name,
                test.status.value,
                section.complete,
                section.steady,
                window,
                section.ended_because,
            )
        for name in test.not_measured:
            yield (*place, name, test.status.value, False, None, None, "not measured")


def _rounds(result: RunResult) -> Iterator[Row]:
    for test, section in _sections(result):
        for round_result in section.rounds:
            for row in (row for cell in round_result.cells for row in _cell(cell)):
                yield (*_place(result, test), section.name, round_result.number, round_result.complete, *row)


def _slices(result: RunResult) -> Iterator[Row]:
    for test, section in _sections(result):
        for slice_result in section.slices:
            for row in (row for cell in slice_result.cells for row in _cell(cell)):
                yield (
                    *_place(result, test),
                    section.name,
                    slice_result.number,
                    slice_result.start_s,
                    slice_result.duration_s,
                    slice_result.total_written_bytes,
                    *row,
                )


def _verdicts(result: RunResult) -> Iterator[Row]:
    for test, section in _sections(result):
        for verdict in section.verdicts:
            fit = verdict.fit
            yield (
                *_place(result, test),
                section.name,
                verdict.rounds[-1],
                verdict.tracking,
                verdict.unit,
                len(verdict.rounds),
                verdict.needed_rounds,
                verdict.average,
                verdict.data_excursion,
                verdict.allowed_data_excursion,
                verdict.slope_excursion,
                verdict.allowed_slope_excursion,
                *((fit.slope, fit.intercept, fit.correlation) if fit else (None, None, None)),
                verdict.reached,
                verdict.reason,
            )


def _verdict_values(result: RunResult) -> Iterator[Row]:
    """Yield a row for each round in the window of each verdict. A reader can compute the verdict again from these
    rows.
    """
    for test, section in _sections(result):
        for verdict in section.verdicts:
            for number, value in zip(verdict.rounds, verdict.values, strict=True):
                yield (
                    *_place(result, test),
                    section.name,
                    verdict.rounds[-1],
                    verdict.tracking,
                    verdict.unit,
                    number,
                    value,
                    verdict.fit.at(number) if verdict.fit else None,
                )


def _characteristics(result: RunResult) -> Iterator[Row]:
    """Yield the characteristics that describe the course of each section. A characteristic that was not found has no
    value.
    """
    for test, section in _sections(result):
        for found in section.characteristics:
            measure = found.measure
            yield (
                *_place(result, test),
                section.name,
                *workload_row(found.workload),
                measure.label,
                found.key,
                measure.unit_in_data,
                found.value,
                found.value is not None,
                found.at_least,
                found.at_most,
            )


def _host(result: RunResult) -> Iterator[Row]:
    for test in result.tests:
        for step in test.steps:
            use, disturbances = step.host, step.disturbances or ()
            yield (
                *_place(result, test),
                step.section,
                step.kind.value,
                step.number,
                step.position,
                *workload_row(step.workload),
                step.started_s,
                step.duration_s,
                step.host_limited,
                _disturbances(find_codes(disturbance.code for disturbance in disturbances)),
                "; ".join(disturbance.text for disturbance in disturbances),
                use and use.seen_s,
                *(None if use is None else fact.value(use) for fact in HOST_FACTS),
                use and use.throttled_times,
                None if use is None else ", ".join(use.others),
                None if use is None or use.kernel_lines is None else "; ".join(use.kernel_lines),
            )


def _resumptions(result: RunResult) -> Iterator[Row]:
    """Yield a row for each resumption of the run. A row contains the names of the test and the section that were
    interrupted.
    """
    for each in result.resumptions:
        yield (
            *_target(result),
            each.test,
            each.section,
            each.resumed_utc,
            each.stopped_s,
            each.resumed_s,
            each.interrupted,
            each.because,
            each.goes_on.value,
            each.again,
            each.accepted,
            each.set_aside_steps,
            each.set_aside_written_bytes,
            ", ".join(each.repeated),
            ", ".join(each.added),
            ", ".join(each.changes),
        )


def _telemetry(result: RunResult, readings: Iterable[tuple[str | None, Reading]]) -> Iterator[Row]:
    for test, reading in readings:
        yield (*_target(result), test, None, *(getattr(reading, column) for column in _TELEMETRY))


def _histograms(result: RunResult) -> Iterator[Row]:
    for test, section in _sections(result):
        for lower_us, upper_us, ios in section.histogram_us:
            yield (*_place(result, test), section.name, lower_us, upper_us, ios)


def _comparison(comparison: Comparison) -> Iterator[Row]:
    for row in comparison.rows:
        for name, result, entry in zip(comparison.names, comparison.results, row.entries, strict=True):
            yield (
                name,
                result.info.device.get("kind"),
                row.test,
                row.section,
                *workload_row(row.workload),
                row.part or None,
                row.quantity.label,
                row.quantity.unit_in_data,
                entry.value,
                entry.low,
                entry.high,
                entry.span,
                entry.uncertainty and entry.uncertainty.expanded,
                entry.ratio,
                entry.ratio_uncertainty and entry.ratio_uncertainty.low,
                entry.ratio_uncertainty and entry.ratio_uncertainty.high,
                entry.within_noise,
                entry.change,
                entry.host_limited,
                _disturbances(entry.disturbances),
                entry.not_found,
            )


def _disturbances(codes: tuple[DisturbanceCode, ...] | None) -> str | None:
    """Return the codes of the disturbances of a step, separated by blanks.

    An empty text means that there was no disturbance. None is written as an empty field, and means that tkperf did not
    watch the step.
    """
    return None if codes is None else " ".join(codes)


def _field(value: object) -> object:
    """Return the value of a field. Booleans become 0 or 1, and a text becomes one line. A quote is inserted before text
    that a spreadsheet would interpret as a formula.

    RFC 4180 does not define an escape for control characters, and many programs split a row at line ends within a
    field. Control characters and line ends are therefore removed. In countries with decimal commas, a spreadsheet may
    also separate fields at semicolons.
    """
    if isinstance(value, bool):
        return int(value)
    return _FORMULA.sub(r"\1'", one_line(value)) if isinstance(value, str) else value


def one_line(text: str) -> str:
    """Return text from other sources without control characters. A blank replaces each line end and each tab."""
    return drop_controls(text.translate(_BLANKS))
