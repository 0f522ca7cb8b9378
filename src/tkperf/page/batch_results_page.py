"""Page of a batch's results: verdict, a row for each drive, claims, distributions, write saturation, what differed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from shlex import quote
from urllib.parse import quote as quote_address

from tkperf.analysis.batch_verdict import (
    BatchCode,
    BatchDriveResult,
    BatchResult,
    ModelGroup,
    is_simulated,
    judge_batch,
)
from tkperf.analysis.claim_results import ClaimKind, ClaimResult
from tkperf.analysis.comparing.arrangements import FEWEST_SCORED, CohortValue, Outlier
from tkperf.analysis.comparing.comparison import Arrangement, compare
from tkperf.analysis.results import RunResult, SectionResult
from tkperf.analysis.verdict import NamedReason, judge_run
from tkperf.model.batch_state import IN_TROUBLE, DriveStage
from tkperf.model.errors import UsageError
from tkperf.model.measurement import places_of_extremes
from tkperf.model.quantity import IOPS
from tkperf.model.units import (
    NOT_MEASURED,
    drop_controls,
    format_capacity,
    format_count,
    format_duration,
    format_number,
    list_names,
)
from tkperf.page.batch_progress import describe_stages, level_of_stage
from tkperf.page.chart import PALETTE, Axis, Chart, Curve, Legend, Point
from tkperf.page.check import build_claims_matrix, describe_outcome, name_columns
from tkperf.page.comparison.conclusions import find_conclusions
from tkperf.page.comparison.headline_charts import build_headline_charts
from tkperf.page.comparison.ratio_tables import build_headline_table
from tkperf.page.comparison.ratio_texts import describe_loads, name_headlines, sort_headlines
from tkperf.page.disclosure import UNITS
from tkperf.page.facts import format_moment
from tkperf.page.figures.curves import find_time_unit
from tkperf.page.marking import mark_charts
from tkperf.page.naming import name_links
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
from tkperf.page.shown_section import find_section_key
from tkperf.page.verdict_texts import NoteLevel, Verdict, describe_reason, level_of, word_verdict
from tkperf.page.words.conditions import find_conditions
from tkperf.page.words.run import WarningGroup, describe_sharing, leave_out_said
from tkperf.page.words.uncertainty import two_digits

# More sentences or names make a verdict no clearer: the tables have all.
_MOST_REASONS, _MOST_CLAIMS, _MOST_FIGURES = 6, 3, 2
_MOST_COLUMNS = 4
_LONGEST_KEPT, _NO_BREAK = 24, "\N{NO-BREAK SPACE}"
# More points than a chart of a few centimetres can show.
_MOST_POINTS = 160
MOST_MAIL_LINES = 12
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
    """Return the page of a batch's results."""
    state = batch_result.state
    results = [one.result for one in batch_result.drives if one.result is not None]
    notices = _find_notices(results)
    tables = (
        build_drives_table(batch_result),
        build_drives_matrix(batch_result),
        _rest(batch_result),
        _measured_again(batch_result),
    )
    groups = _find_differences(batch_result)
    counts = ", ".join(f"{len(group.texts)} {group.title.lower()}" for group in groups)
    verdict = describe_batch_verdict(batch_result)
    page = ReportView(
        title=drop_controls(state.name),
        subtitle=_subtitle(batch_result, results),
        device=f"batch {drop_controls(state.name)}",
        footer="tkperf report",
        banners=leave_out_said(notices, simulated=is_simulated(state)),
        stamp=notices,
        verdict=verdict,
        answer=tuple(_find_sentences(batch_result)),
        warnings_line=f"Differences, and remarks of the runs: {counts}" if counts else "",
        grouped_warnings=tuple(groups),
        words=(*_WORDS, UNITS),
        overview=tuple(each for each in tables if each is not None),
        tests=(*_build_figures(batch_result), *_build_small_multiples(batch_result)),
    )
    return mark_charts(page)


def _find_differences(batch_result: BatchResult) -> list[WarningGroup]:
    """Return the conditions that differ among the drives of each model."""
    texts: dict[str, dict[str, None]] = {}
    for group in batch_result.groups:
        for found in find_conditions(group.compared.names, group.compared.results):
            texts.setdefault(found.title, {}).update(dict.fromkeys(found.texts))
    return [WarningGroup(title=title, count=len(of_title), texts=tuple(of_title)) for title, of_title in texts.items()]


def _find_notices(results: Sequence[RunResult]) -> tuple[str, ...]:
    notices = (notice for result in results for notice in result.info.notices)
    return tuple(dict.fromkeys(notices))


def _subtitle(batch_result: BatchResult, results: Sequence[RunResult]) -> str:
    models = Counter(one.state.shown.model for one in batch_result.drives)
    count = format_count(len(batch_result.drives), "drive")
    model, _ = models.most_common(1)[0] if models else (None, 0)
    parts = [f"{count} of {drop_controls(model)}" if model and len(models) == 1 else count]
    if results:
        tests = dict.fromkeys(test.title for result in results for test in result.tests)
        profiles = dict.fromkeys(result.info.profile_name for result in results)
        parts += [", ".join(tests), f"profile {', '.join(profiles)}"]
    if batch_result.state.began_utc:
        parts.append(f"began {format_moment(batch_result.state.began_utc)}")
    return "; ".join(filter(None, parts))


# ---- the verdict


def describe_batch_verdict(batch_result: BatchResult) -> Verdict:
    """Return the verdict on a batch: ``Fail: 23 of 24 drives pass; slot 7 (S4510-17) fails 3 claims (...)``.

    Without claims: ``24 drives measured: slot 7 (S4510-17) is unlike the others: 4 KiB random read: IOPS 12 % lower``.
    """
    judged = judge_batch(batch_result)
    drives = {str(one.number): one for one in batch_result.drives}
    texts = [_describe(reason, batch_result, drives) for reason in judged.reasons]
    shown = list(texts)
    if batch_result.has_claims:
        shown.insert(0, f"{len(batch_result.passing)} of {format_count(len(batch_result.drives), 'drive')} pass")
    if (more := len(shown) - _MOST_REASONS) > 1:
        shown[_MOST_REASONS:] = [f"and {more} more remarks"]
    return replace(word_verdict(judged, texts, title=_title(batch_result), reasons=shown), level=level_of(judged.state))


def _title(batch_result: BatchResult) -> str:
    simulated = "SIMULATED. " if is_simulated(batch_result.state) else ""
    count, done = len(batch_result.drives), len(batch_result.done)
    if not batch_result.has_claims:
        of = format_count(count, "drive") if done == count else f"{done} of {format_count(count, 'drive')}"
        return f"{simulated}{of} measured"
    kinds = {
        one.checked.judge(finding)
        for one in batch_result.drives
        if one.checked is not None
        for finding in one.checked.not_passed
    }
    if len(batch_result.passing) == count:
        return f"{simulated}Pass"
    return f"{simulated}{'Fail' if ClaimKind.FAILED in kinds else 'Not judged'}"


def _describe(reason: NamedReason, batch_result: BatchResult, drives: Mapping[str, BatchDriveResult]) -> str:
    about = [drives[number] for number in reason.names]
    everyone = 1 < len(about) == len(batch_result.drives)
    names = "all" if everyone else list_names([_label(one) for one in about])
    match reason.code:
        case BatchCode.DRIVE_FAILED | BatchCode.NOT_ENDED:
            stages = dict.fromkeys(one.state.stage.value for one in about)
            reasons = dict.fromkeys(one.state.text for one in about)
            # The commands that may follow are given with the drive.
            because = f": {next(iter(reasons)).split('; ')[0]}" if len(reasons) == 1 else ""
            return drop_controls(f"{names} {' or '.join(stages)}{because}".rstrip(": "))
        case BatchCode.UNDER_WAY:
            counts = Counter(one.state.stage.value for one in about)
            return ", ".join(f"{count} {stage}" for stage, count in counts.items())
        case BatchCode.CLAIM_FAILED:
            return "; ".join(_describe_failures(about))
        case BatchCode.CLAIM_NOT_JUDGED:
            return f"{names}: claims not judged ({', '.join(_find_doubts(about))})"
        case BatchCode.NOT_CHECKED:
            return f"{names} could not be checked"
        case BatchCode.OUTLIER:
            return "; ".join(_describe_outlier(one, batch_result) for one in about)
    return _describe_runs(about)


def _label(one: BatchDriveResult) -> str:
    return one.state.shown.label


def _describe_failures(drives: Sequence[BatchDriveResult]) -> Iterator[str]:
    """Yield ``slot 7 (S4510-17) fails 3 claims (4 KiB random read IOPS ≥ 75,000; ...)``, drives with the same claims
    together.
    """
    alike: dict[tuple[str, ...], list[BatchDriveResult]] = {}
    for one in drives:
        if (checked := one.checked) is not None:
            failed = tuple(
                finding.title for finding in checked.not_passed if checked.judge(finding) is ClaimKind.FAILED
            )
            alike.setdefault(failed, []).append(one)
    for titles, of_drives in alike.items():
        columns = _name_claims(of_drives)
        claims = [columns[title] for title in titles]
        if (more := len(claims) - _MOST_CLAIMS) > 1:
            claims[_MOST_CLAIMS:] = [f"{more} more"]
        fails = "fails" if len(of_drives) == 1 else "fail"
        count = format_count(len(titles), "claim")
        yield f"{list_names([_label(one) for one in of_drives])} {fails} {count} ({'; '.join(claims)})"


def _find_doubts(drives: Sequence[BatchDriveResult]) -> dict[str, None]:
    """Return the reasons why claims are not judged, each once."""
    return dict.fromkeys(
        doubt.value
        for one in drives
        if one.checked is not None
        for finding in one.checked.not_passed
        for doubt in one.checked.find_doubts(finding)
    )


def _describe_outlier(one: BatchDriveResult, batch_result: BatchResult) -> str:
    """Return ``slot 7 (S4510-17) is unlike the others: 4 KiB random read: IOPS 12 % lower and 3 more figures``."""
    (group,) = (group for group in batch_result.groups if one in group.drives)
    names, found = name_headlines(group.compared), batch_result.outliers[one.number]
    parts = [
        f"{_in_sentence(names[figure.row.place])} {describe_distance(outlier)}"
        for outlier, figure in found[:_MOST_FIGURES]
    ]
    if more := len(found) - _MOST_FIGURES:
        parts += [format_count(more, "more figure")] if more > 0 else []
    return f"{_label(one)} is unlike the others: {', '.join(parts)}"


def _in_sentence(name: str) -> str:
    """Return the name of a figure as a part of a sentence: ``4 KiB random read IOPS``."""
    return name if "," in name else name.replace(": ", " ")


def describe_distance(outlier: Outlier) -> str:
    """Return ``12 % lower``, or above 100 % ``3.1 times as high``."""
    percent = outlier.from_median_percent
    if percent >= 100:
        return f"{1 + percent / 100:.1f} times as high"
    return f"{two_digits(abs(percent))} % {'higher' if percent > 0 else 'lower'}"


def _describe_runs(drives: Sequence[BatchDriveResult]) -> str:
    """Return the gravest reason of the runs' own verdicts; drives with the same reason together."""
    alike: dict[str, list[str]] = {}
    for one in drives:
        if one.result is not None:
            reason = judge_run(one.result).reasons[0]
            alike.setdefault(describe_reason(reason, one.result), []).append(_label(one))
    several = len(drives) > 1
    return "; ".join(
        f"{'all' if several and len(names) == len(drives) else list_names(names)}: {text}"
        for text, names in alike.items()
    )


# ---- sentences and remarks


def _find_sentences(batch_result: BatchResult) -> Iterator[str]:
    """Yield the first answers: the spread of the figures, heat, drives at once."""
    if batch_result.groups:
        # The verdict names the outliers.
        left_out = ("Outlier ", "No outlier") if batch_result.outliers else "Outlier "
        found = (text for group in batch_result.groups for text in find_conclusions(group.compared))
        yield from dict.fromkeys(text for text in found if not text.startswith(left_out))
        if others := [_label(one) for one in batch_result.without_group if one not in batch_result.damaged]:
            yield f"Not compared, as of another model or capacity: {list_names(others)}."
    elif batch_result.not_compared:
        yield f"The drives are not compared with each other: {batch_result.not_compared}."
    if damaged := [_label(one) for one in batch_result.damaged]:
        yield f"Not compared, as the run file is damaged: {list_names(damaged)}."
    hot = [(one.hottest_c, one) for one in batch_result.drives if one.hottest_c is not None]
    if hot:
        most, hottest = max(hot, key=lambda pair: pair[0])
        least = min(heat for heat, _ in hot)
        rest = f"; the coolest reached {least:.0f} °C" if len(hot) > 1 else ""
        yield f"Hottest: {_label(hottest)}, {most:.0f} °C{rest}."
    throttled = [one for one in batch_result.drives if one.throttled_s]
    if throttled:
        times = (f"{_label(one)} ({format_duration(one.throttled_s or 0)})" for one in throttled)
        yield f"Throttled for heat: {', '.join(times)}."
    yield from (drop_controls(note) for note in batch_result.state.notes)


def _rest(batch_result: BatchResult) -> NotesView | None:
    """Return the drives that were not measured to their end, with the reason and what to do."""
    notes = []
    for one in batch_result.drives:
        drive = one.state
        if one.error:
            notes.append(Note(text=f"{_label(one)}: {drop_controls(one.error)}", level=NoteLevel.FAILURE))
        if one.not_checked:
            text = f"{_label(one)} could not be checked: {drop_controls(one.not_checked)}"
            notes.append(Note(text=text, level=NoteLevel.CAUTION))
        if drive.stage in IN_TROUBLE:
            text = f"{_label(one)} {drive.outcome}"
            notes.append(Note(text=text, level=level_of_stage(drive.stage)))
    if not notes:
        return None
    if any(one.state.stage in IN_TROUBLE for one in batch_result.drives):
        notes.append(Note(text="Continue these drives:", command=f"tkperf resume {quote(batch_result.state.path)}"))
    return NotesView(title="Not measured to their end", notes=tuple(notes))


def _measured_again(batch_result: BatchResult) -> NotesView | None:
    """Return the drives that were measured once more, alone, and the comparison of both runs."""
    notes = tuple(
        Note(
            text=f"{_label(one)}: both runs compared:",
            command=f"tkperf compare {quote(one.state.run_file)} {quote(one.state.again_file)}",
        )
        for one in batch_result.drives
        if one.state.again_file is not None
    )
    return NotesView(title="Measured once more, alone", notes=notes) if notes else None


# ---- tables


def _sort(batch_result: BatchResult) -> list[BatchDriveResult]:
    """Return the drives: those that failed anything, those unlike the others, the rest; each in their order."""

    def rank(one: BatchDriveResult) -> tuple[bool, bool, int]:
        fails = batch_result.has_claims and one not in batch_result.passing
        return one.is_done and not fails, one.number not in batch_result.outliers, one.number

    return sorted(batch_result.drives, key=rank)


def build_drives_table(batch_result: BatchResult) -> TableView:
    """Return a row for each drive: what it came to, its first headline figures, its heat, what differs among them."""
    drives = _sort(batch_result)
    return build_table(
        "Drives",
        drives,
        [Column("Drive", _label), *map(_keep_cells_together, _find_columns(batch_result))],
        pages=[one.report for one in drives],
        notes=tuple(_find_common(batch_result)),
    )


def _find_columns(batch_result: BatchResult) -> Iterator[Column[BatchDriveResult]]:
    if batch_result.has_claims:
        yield Column("Claims", lambda one: describe_outcome(one.checked) if one.is_done else _NOTHING, 1)
    yield Column("Measurement", _describe_measurement, 2)
    if batch_result.outliers:
        yield Column("Unlike the others", lambda one: _describe_strays(one, batch_result), 3)
    yield from _find_figure_columns(batch_result)
    yield Column("Hottest (°C)", lambda one: NOT_MEASURED if one.hottest_c is None else f"{one.hottest_c:.0f}", 5)
    yield Column("Throttled", _describe_throttled, 10)
    for rank, (title, fact) in enumerate(_FACTS.items(), start=11):
        if len({fact(one) for one in batch_result.drives}) > 1:
            yield Column(title, partial(_describe_fact, fact), rank)
    if any(_label(one) != one.state.shown.name for one in batch_result.drives):
        yield Column("Run", lambda one: one.state.shown.name, 20)


def _keep_cells_together(column: Column[BatchDriveResult]) -> Column[BatchDriveResult]:
    """Return a column whose short texts no line breaks."""

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
    """Return a function that finds a fact of a drive, as its run or else its batch has it."""

    def find(one: BatchDriveResult) -> object:
        measured = None if one.result is None else one.result.info.device.get(key)
        return measured or getattr(one.state.shown, key)

    return find


# Facts of a drive that have a column if they differ.
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
        for figure in _choose_figures(group):
            quantity, place = figure.row.quantity, figure.row.place
            column = cells.setdefault(f"{loads[place]}: {quantity.title}", {})
            for number, values in alone.items():
                column.setdefault(number, (format_number(values.get(place), quantity.digits), None))
            for one, entry in zip(group.drives, figure.row.entries, strict=True):
                is_outlier = any(of is figure for _, of in batch_result.outliers.get(one.number, ()))
                level = NoteLevel.CAUTION if is_outlier else None
                column[one.number] = format_number(entry.value, quantity.digits), level
    for rank, (title, column) in enumerate(list(cells.items())[:_MOST_COLUMNS], start=6):
        yield Column(title, partial(_find_cell, column), rank)


def _find_cell(column: Mapping[int, Cell], one: BatchDriveResult) -> Cell:
    return column.get(one.number, _NOTHING)


def _find_values(one: BatchDriveResult, group: ModelGroup) -> Mapping[tuple[object, ...], float | None]:
    """Return the values of a drive without a group by the places of the rows that it has in common with one."""
    assert one.result is not None
    try:
        pair = compare((group.compared.results[0], one.result), Arrangement.RUNS)
    except UsageError:
        return {}
    return {row.place: row.entries[1].value for row in pair.rows}


def _choose_figures(group: ModelGroup) -> tuple[CohortValue, ...]:
    """Return the figures that get a column: those with outliers, then the first of each test."""
    by_place = {figure.row.place: figure for figure in group.figures}
    ordered = [by_place[row.place] for row in sort_headlines(group.compared) if row.place in by_place]
    outliers = [figure for figure in ordered if figure.outliers]
    firsts: dict[str, CohortValue] = {}
    for figure in group.figures:
        firsts.setdefault(figure.row.test, figure)
    chosen = {id(figure): figure for figure in (*outliers, *firsts.values(), *ordered)}
    return tuple(chosen.values())[:_MOST_COLUMNS]


def _describe_measurement(one: BatchDriveResult) -> Cell:
    stage = one.state.stage
    if stage is not DriveStage.DONE:
        level = level_of_stage(stage)
        return stage.value, None if level is NoteLevel.INFORMATION else level
    if one.result is None:
        return "cannot be read", NoteLevel.FAILURE
    judged = judge_run(one.result)
    level = level_of(judged.state)
    return judged.state.value, None if level is NoteLevel.INFORMATION else level


def _describe_throttled(one: BatchDriveResult) -> Cell:
    if one.throttled_s is None:
        return _NOTHING
    return (format_duration(one.throttled_s), NoteLevel.CAUTION) if one.throttled_s else ("no", None)


def _find_common(batch_result: BatchResult) -> Iterator[str]:
    """Yield how it was judged whether drives that were measured at once disturb each other."""
    for title, fact in _FACTS.items():
        known = {fact(one) for one in batch_result.drives}
        if len(known) == 1 and len(batch_result.drives) > 1 and None not in known:
            yield f"{title}: {known.pop()} (all drives)."
    alike: dict[str, list[str]] = {}
    for one in batch_result.drives:
        if (place := one.state.place) is not None and place.others:
            alike.setdefault(describe_sharing(place.sharing), []).append(_label(one))
    measured = sum(len(names) for names in alike.values())
    for text, names in alike.items():
        who = "Drives measured at once" if len(names) == measured else list_names(names)
        yield f"{who}: {text}."


def _name_claims(drives: Sequence[BatchDriveResult]) -> dict[str, str]:
    return name_columns([one.file for one in drives])


def build_drives_matrix(batch_result: BatchResult) -> TableView | None:
    """Return drives and claims; None without claims on any drive."""
    checked = [one for one in _sort(batch_result) if one.checked is not None]
    if not checked:
        return None
    return build_claims_matrix(
        "Drives and claims",
        checked,
        lambda one: one.file,
        [Column("Drive", _label)],
        pages=[one.report for one in checked],
        links=[tuple(_find_addresses(one)) for one in checked],
    )


def _find_addresses(one: BatchDriveResult) -> Iterator[str]:
    """Yield for each claim the address of the seconds behind its value, on the drive's own page; empty:
    there is none.
    """
    findings = () if one.checked is None else one.checked.claim_results
    for finding in {finding.title: finding for finding in findings}.values():
        key = _find_cell_key(one.result, finding)
        yield f"{quote_address(one.report)}#{key}" if one.report and key else ""


def _find_cell_key(result: RunResult | None, finding: ClaimResult) -> str:
    for test in () if result is None or finding.workload is None else result.tests:
        for number, section in enumerate(test.sections):
            is_meant = test.name == finding.about.test and finding.about.section in (None, section.name)
            workloads = [cell.workload for cell in section.cells]
            if is_meant and finding.workload in workloads and not section.plan.prepares:
                return name_links(find_section_key(test, number), workloads)[finding.workload]
    return ""


# ---- charts


def _build_figures(batch_result: BatchResult) -> Iterator[TestView]:
    """Yield the part of the headline figures of each model: their distributions, all drives on one axis first."""
    for number, group in enumerate(batch_result.groups):
        table = build_headline_table(group.compared)
        if table is None:
            continue
        of, suffix = _name_model(batch_result, group), f"-{number + 1}" if number else ""
        title = f"Distribution over {format_count(len(group.drives), 'drive')}{of}"
        *bars, spread = (_with_suffix(view, suffix) for view in build_headline_charts(group.compared))
        yield TestView(
            key=f"figures{suffix}",
            title=f"Headline figures{of}",
            facts=(),
            sections=(),
            tables=(replace(table, title=title, targets=()),),
            charts=(spread,),
        )
        if bars:
            yield TestView(
                key=f"bars{suffix}",
                title=f"Headline figures of each drive{of}",
                facts=(),
                sections=(),
                charts=tuple(bars),
            )


def _name_model(batch_result: BatchResult, group: ModelGroup) -> str:
    """Return the model of a group and its capacity as an end of a title; empty: all groups are one."""
    if len(batch_result.groups) < 2:
        return ""
    device = group.compared.results[0].info.device
    capacity = device.get("capacity_bytes")
    size = format_capacity(capacity) if isinstance(capacity, int) else None
    model = drop_controls(str(device.get("model") or "unknown model"))
    return f": {', '.join(filter(None, (model, size)))}"


def _with_suffix(view: ChartView, suffix: str) -> ChartView:
    """Return a chart with a key that no other group's chart has."""
    others = tuple(_with_suffix(other, suffix) for other in view.others)
    return replace(view, key=view.key + suffix, others=others)


def _build_small_multiples(batch_result: BatchResult) -> Iterator[TestView]:
    """Yield a part for each section that is a stream: a small chart of its IOPS for each drive, all with
    the same axes.
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
                    text=f"{_label(one)}: IOPS over time",
                    small=True,
                    chart=Chart(
                        title=_label(one),
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
    """Return the IOPS of as many slices as a small chart can show, with the extremes."""
    measured = [(each, value) for each in section.slices if (value := each.values.value(IOPS)) is not None]
    places = places_of_extremes([value for _, value in measured], _MOST_POINTS)
    return tuple(
        Point(round((each.start_s + each.duration_s / 2) / unit_s, 4), round(value))
        for each, value in (measured[place] for place in sorted(places))
    )


# ---- a mail


def build_batch_mail(batch_result: BatchResult) -> tuple[str, ...]:
    """Return the results as at most twelve lines for a mail."""
    verdict = describe_batch_verdict(batch_result)
    lines = [f"{drop_controls(batch_result.state.name)}: {verdict.title}", *(f"- {text}" for text in verdict.reasons)]
    stages = describe_stages(batch_result.state)
    if len(batch_result.done) < len(batch_result.drives):
        lines.insert(1, "; ".join(stages.reasons))
    rest = [text for text in _find_sentences(batch_result) if not text.startswith("Headline")]
    figures = []
    for group in batch_result.groups:
        names, of = name_headlines(group.compared), _name_model(batch_result, group).removeprefix(": ")
        for figure in _choose_figures(group)[: _MOST_COLUMNS // len(batch_result.groups) or 1]:
            found, measure = figure.distribution, figure.row.quantity
            ends = [format_number(end, measure.digits) for end in (found.lowest, found.highest)]
            median = format_number(found.median, measure.digits)
            text = f"{names[figure.row.place]}: median {median}, {ends[0]} to {ends[1]}"
            figures.append(f"{of}: {text}" if of else text)
    del figures[_MOST_COLUMNS:]
    end = f"Page: tkperf report {quote(batch_result.state.path)}"
    if any(one.state.stage in IN_TROUBLE for one in batch_result.drives):
        end += f"; continue: tkperf resume {quote(batch_result.state.path)}"
    lines = lines[: MOST_MAIL_LINES - 4] + figures + rest
    return (*lines[: MOST_MAIL_LINES - 1], end)
