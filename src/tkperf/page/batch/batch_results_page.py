"""Build the page with the results of a batch. The page contains the verdict, the table of drives, claims,
distributions, write saturation and differences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from shlex import quote

from tkperf.analysis.batch_verdict import BatchDriveResult, BatchResult, ModelGroup, is_simulated, sort_drives
from tkperf.analysis.comparing.arrangements import FEWEST_SCORED
from tkperf.analysis.comparing.comparison import Arrangement, compare
from tkperf.analysis.results import RunResult, SectionResult
from tkperf.model.batch_state import IN_TROUBLE
from tkperf.model.errors import UsageError
from tkperf.model.measurement import places_of_extremes
from tkperf.model.quantity import IOPS
from tkperf.model.units import NOT_MEASURED, drop_controls, format_count, format_duration, format_number, list_names
from tkperf.page.batch.batch_progress import level_of_stage
from tkperf.page.batch.batch_verdict_texts import (
    describe_batch_title,
    describe_batch_verdict,
    find_sentences,
    name_model,
)
from tkperf.page.batch.drives_matrix import (
    build_batch_decision,
    build_batch_tiles,
    build_group_tiles,
    describe_measurement,
)
from tkperf.page.chart import PALETTE, Axis, Chart, Curve, Legend, Point
from tkperf.page.check import build_claims_matrix
from tkperf.page.claim_texts import describe_outcome, name_columns
from tkperf.page.comparison.comparison_charts import MEANING_OF_CLAIM_LIMITS, MEANING_OF_STRIPS, choose_cohort_figures
from tkperf.page.comparison.ratio_tables import build_headline_table
from tkperf.page.comparison.ratio_texts import describe_loads
from tkperf.page.disclosure import UNITS
from tkperf.page.facts import format_moment
from tkperf.page.figures.curves import find_time_unit
from tkperf.page.marking import mark_charts
from tkperf.page.matrix import DecisionView
from tkperf.page.page import (
    Cell,
    ChartView,
    Column,
    Note,
    NotesView,
    ReportView,
    TableView,
    TestView,
    build_table,
    weigh,
)
from tkperf.page.verdict_texts import NoteLevel
from tkperf.page.words.conditions import find_conditions
from tkperf.page.words.run import WarningGroup, describe_sharing, leave_out_said, name_notices
from tkperf.page.words.uncertainty import two_digits

# The greatest number of points of a small chart. A chart with a width of a few centimetres cannot show more points.
_MOST_POINTS = 160
_WORDS = (
    "A drive passes if it was measured to its end and meets every claim; a value that was not measured or did not "
    "reach steady "
    "state passes none. Without claims nothing passes or fails: the drives are compared with each other.",
    "Unlike the others: a headline figure farther from the median of the drives than 3.5 by the modified z-score "
    "(0.6745 × the "
    "distance from the median / median absolute deviation), and farther than its own uncertainty; "
    f"sought among {FEWEST_SCORED} drives of one model or more.",
)


def build_batch_page(batch_result: BatchResult) -> ReportView:
    """Return the page with the results of a batch. The page contains the decision, the drives, the figures of each
    model, and the conditions that differ.
    """
    state = batch_result.state
    results = [one.result for one in batch_result.drives if one.result is not None]
    notices = name_notices(
        [(one.label, one.result.info.notices) for one in batch_result.drives if one.result is not None]
    )
    decision = build_batch_decision(batch_result)
    overview = (
        _rest(batch_result),
        _find_remarks(batch_result),
        build_drives_table(batch_result),
        _build_claims_table(batch_result, decision),
        _measured_again(batch_result),
    )
    groups = _find_differences(batch_result)
    counts = ", ".join(f"{len(group.texts)} {group.title.lower()}" for group in groups)
    page = ReportView(
        title=describe_batch_title(batch_result),
        subtitle=_subtitle(batch_result, results),
        device=f"batch {drop_controls(state.name)}",
        footer="tkperf report",
        banners=leave_out_said(notices, simulated=is_simulated(state)),
        stamp=notices,
        verdict=describe_batch_verdict(batch_result),
        decision=decision,
        headlines=build_batch_tiles(batch_result),
        warnings_line=f"Differences, and remarks of the runs: {counts}" if counts else "",
        grouped_warnings=tuple(groups),
        words=(*_WORDS, f"{MEANING_OF_STRIPS} {MEANING_OF_CLAIM_LIMITS}", UNITS),
        overview=tuple(each for each in overview if each is not None),
        tests=(*_build_figures(batch_result), *_build_small_multiples(batch_result)),
    )
    return mark_charts(page)


def _find_remarks(batch_result: BatchResult) -> NotesView | None:
    """Return sentences about the spread of the figures and about the temperatures, and the notes of the batch
    itself.
    """
    notes = tuple(Note(text=sentence) for sentence in find_sentences(batch_result))
    return NotesView(title="Findings", notes=notes) if notes else None


def _build_claims_table(batch_result: BatchResult, decision: DecisionView | None) -> TableView | None:
    """Return a table of drives and claims in words. Return None if the matrix has enough space for all claims, or if
    there are no claims.
    """
    checked = [one for one in sort_drives(batch_result) if one.checked is not None]
    if not checked or decision is None or len(name_columns([one.file for one in checked])) < len(decision.columns):
        return None
    table = build_claims_matrix(
        "All claims",
        checked,
        lambda one: one.file,
        [Column("Drive", lambda one: one.label)],
        pages=[one.report for one in checked],
    )
    return replace(table, folded=True)


def _find_differences(batch_result: BatchResult) -> list[WarningGroup]:
    """Return the conditions that differ among the drives of each model."""
    texts: dict[str, dict[str, None]] = {}
    for group in batch_result.groups:
        for found in find_conditions(group.compared.names, group.compared.results):
            texts.setdefault(found.title, {}).update(dict.fromkeys(found.texts))
    return [WarningGroup(title=title, count=len(of_title), texts=tuple(of_title)) for title, of_title in texts.items()]


def _subtitle(batch_result: BatchResult, results: Sequence[RunResult]) -> str:
    models = Counter(one.state.shown.model for one in batch_result.drives)
    count = format_count(len(batch_result.drives), "drive")
    model, _ = models.most_common(1)[0] if models else (None, 0)
    drives = f"{count} of {drop_controls(model)}" if model and len(models) == 1 else count
    parts = [f"{drop_controls(batch_result.state.name)}: {drives}"]
    if results:
        tests = dict.fromkeys(test.title for result in results for test in result.tests)
        profiles = dict.fromkeys(result.info.profile_name for result in results)
        parts += [", ".join(tests), f"profile {', '.join(profiles)}"]
    if batch_result.state.began_utc:
        parts.append(f"began {format_moment(batch_result.state.began_utc)}")
    return "; ".join(filter(None, parts))


# Functions for the sentences and remarks.


def _rest(batch_result: BatchResult) -> NotesView | None:
    """Return the drives whose measurement did not end normally, each with the reason and the remedy."""
    notes = []
    for one in batch_result.drives:
        drive = one.state
        if one.error:
            notes.append(Note(text=f"{one.label}: {drop_controls(one.error)}", level=NoteLevel.FAILURE))
        if one.not_checked:
            text = f"{one.label} could not be checked: {drop_controls(one.not_checked)}"
            notes.append(Note(text=text, level=NoteLevel.CAUTION))
        if drive.stage in IN_TROUBLE:
            text = f"{one.label} {drive.outcome}"
            notes.append(Note(text=text, level=level_of_stage(drive.stage)))
    if not notes:
        return None
    if any(one.state.stage in IN_TROUBLE for one in batch_result.drives):
        notes.append(Note(text="Continue these drives:", command=f"tkperf resume {quote(batch_result.state.path)}"))
    return NotesView(title="Not measured to their end", notes=tuple(notes))


def _measured_again(batch_result: BatchResult) -> NotesView | None:
    """Return the drives that tkperf measured a second time while no other drive was measured, each with the command
    that compares the two runs of the drive.
    """
    notes = tuple(
        Note(
            text=f"{one.label}: both runs compared:",
            command=f"tkperf compare {quote(one.state.run_file)} {quote(one.state.again_file)}",
        )
        for one in batch_result.drives
        if one.state.again_file is not None
    )
    return NotesView(title="Measured once more, alone", notes=notes) if notes else None


# Section: charts.


def _build_figures(batch_result: BatchResult) -> Iterator[TestView]:
    """Yield a part of the page for each model, with its headline figures. For each figure, the part shows the
    distribution of the values, and a line with a dot for each drive.
    """
    for number, group in enumerate(batch_result.groups):
        table = build_headline_table(group.compared)
        if table is None:
            continue
        of, suffix = name_model(batch_result, group), f"-{number + 1}" if number else ""
        title = f"Distribution over {format_count(len(group.drives), 'drive')}{of}"
        yield TestView(
            key=f"figures{suffix}",
            title=f"Headline figures{of}",
            facts=(),
            sections=(),
            headlines=tuple(build_group_tiles(group, len(group.figures))),
            tables=(replace(table, title=title, targets=()),),
        )


def _build_small_multiples(batch_result: BatchResult) -> Iterator[TestView]:
    """Yield a part of the page for each section that is a stream. The part contains a small chart of the IOPS for each
    drive. All charts have the same axes.
    """
    by_section: dict[tuple[str, str], list[tuple[BatchDriveResult, SectionResult]]] = {}
    for one in batch_result.drives:
        for test in () if one.result is None else one.result.tests:
            for section in test.sections:
                if len(section.slices) > 1 and not section.plan.prepares:
                    by_section.setdefault((test.name, section.name), []).append((one, section))
    for number, ((test_name, title), drives) in enumerate(by_section.items()):
        longest_s = max(section.slices[-1].end_s for _, section in drives)
        unit, unit_s = find_time_unit(longest_s)
        courses = [(one, _course(section, unit_s)) for one, section in drives]
        most = max((point.y or 0.0 for _, points in courses for point in points), default=0.0)
        yield TestView(
            key=f"{test_name}-drives{number or ''}",
            title=f"{title} of each drive",
            facts=(("Axes", f"IOPS to {format_number(most)}, time to {format_number(longest_s / unit_s)} {unit}"),),
            sections=(),
            charts=tuple(
                ChartView(
                    key=f"{test_name}{number or ''}-drive{one.number}",
                    text=f"{one.label}: IOPS over time",
                    small=True,
                    chart=Chart(
                        title=one.label,
                        x=Axis(title=unit, domain=(0.0, longest_s / unit_s)),
                        y=Axis(title="IOPS", includes=(most,)),
                        curves=(Curve(points=points, colour=PALETTE[one.number in batch_result.outliers]),),
                        legend=Legend.NONE,
                        low=True,
                    ),
                )
                for one, points in courses
            ),
        )


def _course(section: SectionResult, unit_s: float) -> tuple[Point, ...]:
    """Return the IOPS of a stream over time. The number of slices is limited to the number that a small chart can show,
    and the extremes are included.
    """
    measured = [(each, value) for each in section.slices if (value := each.values.value(IOPS)) is not None]
    places = places_of_extremes([value for _, value in measured], _MOST_POINTS)
    return tuple(
        Point(round((each.start_s + each.duration_s / 2) / unit_s, 4), round(value))
        for each, value in (measured[place] for place in sorted(places))
    )


MOST_COLUMNS = 4
_LONGEST_KEPT, _NO_BREAK = 24, "\N{NO-BREAK SPACE}"


def build_drives_table(batch_result: BatchResult) -> TableView:
    """Return a table with a row for each drive. A row contains the result, the first headline figures, the temperature,
    and the facts in which the drives differ.
    """
    drives = sort_drives(batch_result)
    return build_table(
        "Drives",
        drives,
        [Column("Drive", lambda one: one.label), *map(_keep_cells_together, _find_columns(batch_result))],
        pages=[one.report for one in drives],
        notes=tuple(_find_common(batch_result)),
    )


def _find_columns(batch_result: BatchResult) -> Iterator[Column[BatchDriveResult]]:
    if batch_result.has_claims:
        yield Column("Claims", lambda one: describe_outcome(one.checked) if one.is_done else _NOTHING, 1)
    yield Column("Measurement", describe_measurement, 2)
    if batch_result.outliers:
        yield Column("Unlike the others", lambda one: _describe_strays(one, batch_result), 3)
    yield from _find_figure_columns(batch_result)
    yield Column("Hottest (°C)", lambda one: NOT_MEASURED if one.hottest_c is None else f"{one.hottest_c:.0f}", 5)
    yield Column("Throttled", _describe_throttled, 10)
    for rank, (title, fact) in enumerate(_FACTS.items(), start=11):
        if len({fact(one) for one in batch_result.drives}) > 1:
            yield Column(title, partial(_describe_fact, fact), rank)
    if any(one.label != one.state.shown.name for one in batch_result.drives):
        yield Column("Run", lambda one: one.state.shown.name, 20)


def _keep_cells_together(column: Column[BatchDriveResult]) -> Column[BatchDriveResult]:
    """Return a column whose short texts are never divided into several lines."""

    def find_cell(one: BatchDriveResult) -> Cell:
        text, level = weigh(column.cell(one))
        text = drop_controls(text)
        return (text.replace(" ", _NO_BREAK) if len(text) <= _LONGEST_KEPT else text), level

    return replace(column, cell=find_cell)


_NOTHING: Cell = (NOT_MEASURED, None)


def _describe_fact(fact: Callable[[BatchDriveResult], object], one: BatchDriveResult) -> Cell:
    known = fact(one)
    return (NOT_MEASURED if known is None else str(known)), None


def _of_device(key: str) -> Callable[[BatchDriveResult], object]:
    """Return a function that searches for a fact about a drive, first in the drive's run and then in the batch."""

    def find(one: BatchDriveResult) -> object:
        measured = None if one.result is None else one.result.info.device.get(key)
        return measured or getattr(one.state.shown, key)

    return find


# Facts about a drive. The table has a column for a fact only if the drives differ in this fact.
_FACTS: dict[str, Callable[[BatchDriveResult], object]] = {
    "Model": _of_device("model"),
    "Firmware": _of_device("firmware"),
    "Link": _of_device("link"),
    "Host": lambda one: one.state.shown.host,
    "Others at once": lambda one: None if one.state.place is None else one.state.place.others,
}


def _describe_strays(one: BatchDriveResult, batch_result: BatchResult) -> Cell:
    outliers = batch_result.outliers.get(one.number, ())
    if not outliers:
        return _NOTHING
    most = max(abs(outlier.from_median_percent) for outlier, _ in outliers)
    return f"{format_count(len(outliers), 'figure')}, up to {two_digits(most)} %", NoteLevel.CAUTION


def _find_figure_columns(batch_result: BatchResult) -> Iterator[Column[BatchDriveResult]]:
    cells: dict[str, dict[int, Cell]] = {}
    for group in batch_result.groups:
        loads = describe_loads(group.compared)
        alone = {one.number: _find_values(one, group) for one in batch_result.without_group}
        for figure in choose_cohort_figures(group.compared, MOST_COLUMNS):
            quantity, place = figure.row.quantity, figure.row.place
            column = cells.setdefault(f"{loads[place]}: {quantity.title}", {})
            for number, values in alone.items():
                column.setdefault(number, (format_number(values.get(place), quantity.digits), None))
            for one, entry in zip(group.drives, figure.row.entries, strict=True):
                is_outlier = any(of is figure for _, of in batch_result.outliers.get(one.number, ()))
                level = NoteLevel.CAUTION if is_outlier else None
                column[one.number] = format_number(entry.value, quantity.digits), level
    for rank, (title, column) in enumerate(list(cells.items())[:MOST_COLUMNS], start=6):
        yield Column(title, partial(_find_cell, column), rank)


def _find_cell(column: Mapping[int, Cell], one: BatchDriveResult) -> Cell:
    return column.get(one.number, _NOTHING)


def _find_values(one: BatchDriveResult, group: ModelGroup) -> Mapping[tuple[object, ...], float | None]:
    """Return the values of a drive that belongs to no group. The result contains only values of rows for which a group
    also has values. The keys are the attributes ``place`` of these rows.
    """
    assert one.result is not None
    try:
        pair = compare((group.compared.results[0], one.result), Arrangement.RUNS)
    except UsageError:
        return {}
    return {row.place: row.entries[1].value for row in pair.rows}


def _describe_throttled(one: BatchDriveResult) -> Cell:
    if one.throttled_s is None:
        return _NOTHING
    return (format_duration(one.throttled_s), NoteLevel.CAUTION) if one.throttled_s else ("no", None)


def _find_common(batch_result: BatchResult) -> Iterator[str]:
    """Yield the sentences that explain how tkperf judged whether drives that were measured at the same time disturbed
    each other.
    """
    for title, fact in _FACTS.items():
        known = {fact(one) for one in batch_result.drives}
        if len(known) == 1 and len(batch_result.drives) > 1 and None not in known:
            yield f"{title}: {known.pop()} (all drives)."
    alike: dict[str, list[str]] = {}
    for one in batch_result.drives:
        if (place := one.state.place) is not None and place.others:
            alike.setdefault(describe_sharing(place.sharing), []).append(one.label)
    measured = sum(len(names) for names in alike.values())
    for text, names in alike.items():
        who = "Drives measured at once" if len(names) == measured else list_names(names)
        yield f"{who}: {text}."
