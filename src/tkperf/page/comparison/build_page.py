"""Build the page of a comparison. The page contains the verdict, sentences, charts, tables and conditions. The
functions of this module have no side effects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tkperf.analysis.comparing.compared_rows import MOST_WITHIN_NOISE, ComparedRow
from tkperf.analysis.comparing.comparison import Arrangement, Comparison
from tkperf.analysis.comparing.decision_figures import build_decision
from tkperf.analysis.results import RunResult, SectionResult
from tkperf.model.quantity import IOPS, LATENCY_MEAN, QUANTITIES, THROUGHPUT, Quantity
from tkperf.model.units import KIB, list_names
from tkperf.page.chart import PALETTE, Axis, Chart, Curve, Mark, Point, Scale
from tkperf.page.comparison.comparison_charts import (
    MEANING_OF_STRIPS,
    build_figure_tiles,
    build_history_charts,
    build_over_time,
    build_spike_charts,
    build_test_charts,
    choose_cohort_figures,
    find_streams,
)
from tkperf.page.comparison.conclusions import (
    describe_comparison_verdict,
    find_comparison_notices,
    find_conclusions,
    find_telemetry_differences,
    find_verdict,
)
from tkperf.page.comparison.decision_texts import build_decision_view, find_title
from tkperf.page.comparison.ratio_tables import (
    MOST_ACROSS,
    build_headline_table,
    build_ratio_matrices,
    build_runs_table,
    build_section_table,
)
from tkperf.page.comparison.ratio_texts import RATIO_MARKS
from tkperf.page.comparison.run_curves import build_lead_charts, call_runs
from tkperf.page.disclosure import UNITS
from tkperf.page.facts import capacity, format_moment, or_not_known, word
from tkperf.page.figures.curves import flag
from tkperf.page.margins import TILES_IN_ROW
from tkperf.page.marking import mark_charts
from tkperf.page.naming import Naming, listing_axes
from tkperf.page.page import ChartView, Facts, Note, NotesView, ReportView, SectionView, TableView, TestView
from tkperf.page.words.conditions import find_conditions
from tkperf.page.words.run import WarningGroup, leave_out_said
from tkperf.page.words.uncertainty import MEANING_OF_RATIO

_FOUR_KIB = 4 * KIB
# Each entry contains the quantity, the name of the file, the title, and the mixes for which the chart shows 4 KiB I/Os.
_BARS: dict[str, tuple[Quantity, str, str, tuple[int, ...]]] = {
    "iops": (IOPS, "compIOPSPlt", "IOPS measurement test, 4 KiB", (100, 50, 0)),
    "lat": (LATENCY_MEAN, "compLATPlt", "LAT measurement test: mean latency, 4 KiB", (100, 65, 0)),
}


def build_tkperf_charts(comparison: Comparison, test: str) -> Iterator[ChartView]:
    """Yield the charts that TKperf draws for a test. Yield nothing for a test that does not exist in TKperf."""
    rows = [row for row in comparison.rows if row.test == test]
    if test == "writesat":
        for sections in list(find_streams(comparison, test).values())[:1]:
            yield build_over_time(comparison, sections, "compWriteSatIOPSPlt", "Write saturation test")
    elif comparison.results[0].info.suite == "hdd":
        return
    elif test == "tp":
        yield from _bars(comparison, "compTPPlt", _of(rows, THROUGHPUT), "TP R/W measurement test")
    elif test in _BARS:
        quantity, key, title, mixes = _BARS[test]
        of_mixes = [
            row
            for row in _of(rows, quantity)
            if row.workload.block_size_bytes == _FOUR_KIB
            and row.workload.read_percent in mixes
            # The histogram run repeats a cell of the latency test. The chart therefore uses only the first section.
            and row.section == rows[0].section
        ]
        yield from _bars(comparison, key, of_mixes, title)


def _of(rows: list[ComparedRow], quantity: Quantity) -> list[ComparedRow]:
    return [row for row in rows if row.quantity is quantity]


def _bars(comparison: Comparison, key: str, rows: list[ComparedRow], title: str) -> Iterator[ChartView]:
    """Yield a chart with a bar for each workload and each run. If there are no rows, yield nothing."""
    if not rows:
        return
    naming = Naming(axes=listing_axes(row.workload for row in rows))
    curves = tuple(
        Curve(
            name=name,
            mark=Mark.BAR,
            colour=PALETTE[number % len(PALETTE)],
            points=tuple(
                Point(naming.name_of(row.workload), entry.value, flag=flag(entry))
                for row in rows
                if (entry := row.entries[number]).value is not None
            ),
        )
        for number, name in enumerate(comparison.names)
    )
    places = dict.fromkeys(naming.name_of(row.workload) for row in rows)
    chart = Chart(
        title=title,
        x=Axis(title=naming.title, scale=Scale.ORDINAL, places=tuple(places)),
        y=Axis(title=rows[0].quantity.title),
        curves=curves,
        series="Run",
        grouped=True,
    )
    yield ChartView(key=key, text=f"{title}: a bar for each run.", chart=chart)


_WORDS = (
    "Values are those of the report of each run: means over its steady-state window, over the areas of a hard "
    "disk, or of a whole stream. A stream that changed its level is compared phase by phase: the "
    f"value of a phase is the median of its slices; for a maximum, the greatest. {MEANING_OF_RATIO} It combines "
    "the intervals of both levels, which come from the spread of the rounds (Student's t) or of the slices. If it "
    f"contains 1, and no value in the interval differs from 1 by more than {100 * (MOST_WITHIN_NOISE - 1):.0f} %, the "
    "difference is within noise; "
    "if it contains 1 and also a greater difference, it cannot be decided. A maximum has no interval: it differs if "
    "the "
    "ranges do not overlap."
)


def build_comparison_page(comparison: Comparison, most_across: int = MOST_ACROSS) -> ReportView:
    """Return the page of a comparison.

    Args:
        most_across: the greatest number of runs for which each run has its own column.
    """
    titles = {test.name: test.title for result in comparison.results for test in result.tests}
    decision = build_decision(comparison)
    opening = build_decision_view(comparison, decision)
    overview = (
        _find_remarks(comparison),
        build_headline_table(comparison, most_across),
        build_runs_table(comparison),
        _runs(comparison),
    )
    called = call_runs(comparison.names)
    groups = find_conditions(comparison.names, comparison.results)
    counts = ", ".join(f"{len(group.texts)} {group.title.lower()}" for group in groups)
    notices, verdict = find_comparison_notices(comparison), find_verdict(comparison, groups)
    view = ReportView(
        title=find_title(comparison, decision),
        device=f"runs {', '.join(comparison.names)}",
        footer="tkperf compare",
        subtitle=_subtitle(comparison),
        banners=leave_out_said(notices, simulated=verdict.simulated),
        stamp=notices,
        verdict=describe_comparison_verdict(comparison, verdict),
        decision=opening,
        headlines=tuple(build_figure_tiles(comparison, choose_cohort_figures(comparison, TILES_IN_ROW), called)),
        lead_charts=build_lead_charts(comparison),
        warnings_line=f"Conditions that differ, and remarks of the runs: {counts}" if counts else "",
        grouped_warnings=tuple(
            WarningGroup(title=group.title, count=len(group.texts), texts=group.texts) for group in groups
        ),
        disclosure=(),
        words=(_WORDS, " ".join(RATIO_MARKS.values()), *([MEANING_OF_STRIPS] if comparison.cohort else []), UNITS),
        overview=tuple(table for table in overview if table is not None),
        overview_charts=(*build_spike_charts(comparison), *build_history_charts(comparison)),
        tests=tuple(_build_tests(comparison, titles, most_across)),
    )
    return mark_charts(view)


def _build_tests(comparison: Comparison, titles: Mapping[str, str], most_across: int) -> Iterator[TestView]:
    """Yield the tests for which all runs have a value. These tests are followed by the tests for which some runs have a
    curve.
    """
    figures, called = choose_cohort_figures(comparison, len(comparison.rows)), call_runs(comparison.names)
    for test in dict.fromkeys((*(row.test for row in comparison.rows), *titles)):
        of_test = [figure for figure in figures if figure.row.test == test]
        view = TestView(
            key=test,
            title=titles.get(test, test),
            facts=_telemetry(comparison, test),
            sections=tuple(_sections(comparison, test, most_across)),
            headlines=tuple(build_figure_tiles(comparison, of_test, called)),
            charts=build_test_charts(comparison, test),
        )
        if view.sections or view.charts:
            yield view


def _find_remarks(comparison: Comparison) -> NotesView | None:
    """Return the findings on the differences between the runs, or None for a cohort or a history. The page of a cohort
    or a history shows the findings at its beginning.
    """
    if comparison.arrangement is not Arrangement.RUNS:
        return None
    notes = tuple(Note(text=sentence) for sentence in find_conclusions(comparison))
    return NotesView(title="Findings", notes=notes) if notes else None


def build_tkperf_plots(comparison: Comparison) -> tuple[ChartView, ...]:
    """Return the charts that the program tkperf-cmp draws. The key of each chart is the file name that tkperf-cmp uses.

    The usual page of a comparison shows headline figures instead.
    """
    tests = dict.fromkeys(row.test for row in comparison.rows)
    charts = tuple(chart for test in tests for chart in build_tkperf_charts(comparison, test))
    page = replace(build_comparison_page(comparison), overview_charts=charts)
    return mark_charts(page).overview_charts


def _runs(comparison: Comparison) -> TableView:
    facts = [_facts(result) for result in comparison.results]
    return TableView(
        title="Runs",
        columns=("Run", *facts[0]),
        rows=tuple(
            (name, *(or_not_known(word(fact)) for fact in of_run.values()))
            for name, of_run in zip(comparison.names, facts, strict=True)
        ),
        folded=True,
    )


def _facts(result: RunResult) -> dict[str, object]:
    """Return the facts that distinguish a run from all other runs. The heading of the column is the key of a fact."""
    device, info = result.info.device, result.info
    return {
        "Model": device.get("model") or device.get("kind"),
        "Serial number": device.get("serial"),
        "Firmware": device.get("firmware"),
        "Capacity": capacity(device.get("capacity_bytes")),
        "Profile": info.profile_name,
        "Began": format_moment(info.started_utc),
        "Write cache": device.get("write_cache_in_run"),
        "fio": (info.fio_version or "").removeprefix("fio-"),
    }


def _telemetry(comparison: Comparison, test: str) -> Facts:
    text = "; ".join(
        each.text for each in find_telemetry_differences(comparison.names, comparison.results) if each.test == test
    )
    return (("By the drives' own logs", text),) if text else ()


def _subtitle(comparison: Comparison) -> str:
    count = len(comparison.names)
    kind = {
        Arrangement.COHORT: f"cohort of {count} runs",
        Arrangement.HISTORY: f"history of {count} runs",
        Arrangement.RUNS: f"{count} runs",
    }
    specifications = list(dict.fromkeys(result.info.specification for result in comparison.results))
    known = [specifications[0]] if len(specifications) == 1 and specifications[0] else []
    repeated = [f"{name} counts once, of {number} files" for name, number in comparison.repeated]
    return ", ".join((kind[comparison.arrangement], *known, *repeated))


def _sections(comparison: Comparison, test: str, most_across: int) -> Iterator[SectionView]:
    of_test = [row for row in comparison.rows if row.test == test]
    for number, name in enumerate(dict.fromkeys(row.section for row in of_test)):
        rows = [row for row in of_test if row.section == name]
        state, summary = _steady_state(comparison, rows[0])
        yield SectionView(
            key=f"{test}{number}",
            title=name,
            state=state,
            summary=summary,
            determination=None,
            tables=_section_tables(comparison, rows, most_across),
            charts=(),
        )


def _section_tables(comparison: Comparison, rows: Sequence[ComparedRow], most_across: int) -> tuple[TableView, ...]:
    """Return the table of values of a section.

    For two runs, the result begins with matrices of ratios, and the table of values below these matrices is folded.
    """
    cells = [row for row in rows if not row.part and row.quantity.key in QUANTITIES]
    matrices = tuple(build_ratio_matrices(comparison, cells)) if len(comparison.names) == 2 else ()
    if not matrices:
        return (build_section_table(comparison, rows, most_across),)
    others = [row for row in rows if row not in cells]
    tables = [build_section_table(comparison, others)] if others else []
    # Matrices are placed side by side. They have no notes, because the end of the page explains the marks.
    tables += [replace(matrix, notes=()) for matrix in matrices]
    tables.append(replace(build_section_table(comparison, cells), folded=True, ids=()))
    return tuple(tables)


def _steady_state(comparison: Comparison, row: ComparedRow) -> tuple[str, str]:
    """Return two texts. The first text contains the state of the section over all runs. The second text states how the
    section ended in each run.

    If the section is steady in all runs, the second text is only ``in every run``.
    """
    by_run = {
        name: section
        for name, result in zip(comparison.names, comparison.results, strict=True)
        for test in result.tests
        for section in test.sections
        if (test.name, section.name) == (row.test, row.section)
    }
    states = {section.steady for section in by_run.values()}
    if states == {True}:
        return "reached", "in every run"
    by_ending: dict[str, list[str]] = {}
    for name, section in by_run.items():
        by_ending.setdefault(_ended(section), []).append(name)
    endings = "; ".join(f"{list_names(names)}: {ended}" for ended, names in by_ending.items())
    return "NOT reached" if False in states else "not judged", endings


def _ended(section: SectionResult) -> str:
    states = {True: "reached", False: "not reached", None: "not judged"}
    return f"{states[section.steady]} ({section.ended_because})"
