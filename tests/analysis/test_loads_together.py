"""Conclusions about loads that run together: the limit up to which the drive can sustain the offered rates, and the
factors by which neighbours slow a reader.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from tests.analysis.made_up import made_up_cell, made_up_run, made_up_section
from tests.builders import work
from tkperf.analysis.characteristics import LATENCY_FACTOR, READS_WITHIN_LIMIT
from tkperf.analysis.characteristics_search import with_characteristics
from tkperf.analysis.comparing.compared_rows import Change, build_rows
from tkperf.analysis.comparing.comparison import compare as compare_runs
from tkperf.analysis.comparing.decision import Unranked
from tkperf.analysis.comparing.decision_figures import build_decision
from tkperf.analysis.loads_together import CellState, InterferenceGrid, build_grid, find_drift_percent, find_neighbours
from tkperf.analysis.results import CellResult, CellUncertainty, GridRules, RunResult, SectionResult
from tkperf.analysis.uncertainty.estimate import Uncertainty, build_between
from tkperf.model.figures import Figure, FigureKind
from tkperf.model.workload import ActiveRange, Arrival, Stream, Workload, combine, key_of_stream
from tkperf.page.chart import GridEdge
from tkperf.page.comparison.decision_texts import build_decision_view, find_title
from tkperf.page.figures.interference_charts import find_edges
from tkperf.page.findings import headlines
from tkperf.page.findings.interference_findings import describe_factor, describe_grid, describe_neighbours
from tkperf.procedures.interference import FIRST_CELL_AGAIN, GRID

CELL_S = 60
READS = work(100, jobs=8, io_depth=32)
WRITES = work(0, 128 * 1024, jobs=8, io_depth=32)
LEVELS = range(5)
READ_STEP, WRITE_STEP = 10_000, 1000
RULES = GridRules(latency_limit_us=1000, kept_up_percent=99, levels=5, max_drift_percent=10)


def offered(load: Workload, iops: float) -> Workload:
    return replace(load, offered_iops=float(iops), arrival=Arrival.POISSON)


def cell(load: Workload, done_iops: float, p99_us: float) -> CellResult:
    one = made_up_cell(done_iops, load)
    return replace(
        one, all={**one.all, "ios": round(done_iops * CELL_S), "p99_us": p99_us, "latency_mean_us": p99_us / 2}
    )


def grid_section(*, able: int = 4, slow_from: int = 9) -> SectionResult:
    """Return a grid of 5 x 5 rates. The drive completes all offered I/Os if the sum of both levels is at most ``able``.

    Reads take longer than 1 ms if the sum of both levels is at least ``slow_from``. A cell that was not reached has a
    latency of 1 µs.
    """
    cells: list[CellResult] = []
    for reads, writes in product(LEVELS, LEVELS):
        reached, total = reads + writes <= able, reads + writes
        p99_us = 1.0 if not reached else 100.0 * total if total < slow_from else 2000.0
        share = 1.0 if reached else 0.9
        reader, writer = offered(READS, reads * READ_STEP or 1), offered(WRITES, writes * WRITE_STEP or 1)
        if reads and writes:
            both = combine((Stream(name="reader", workload=reader), Stream(name="writer", workload=writer)))
            cells += (
                cell(both, share * (reads * READ_STEP + writes * WRITE_STEP), p99_us),
                cell(key_of_stream(both, "reader"), share * reads * READ_STEP, p99_us),
                cell(key_of_stream(both, "writer"), share * writes * WRITE_STEP, 50.0),
            )
        elif reads or writes:
            alone = reader if reads else writer
            cells.append(cell(alone, share * (alone.offered_iops or 0), p99_us))
    section = made_up_section(GRID, {READS: [1.0]}, steady=None)
    return replace(section, cells=tuple(cells), grid_rules=RULES)


def grid_of(section: SectionResult) -> InterferenceGrid:
    grid = build_grid(section)
    assert grid is not None
    return grid


def most_reads(grid: InterferenceGrid) -> list[float | None]:
    return [point.read_iops for point in grid.limit]


def test_cells_that_were_not_reached_never_count() -> None:
    """A cell that was not reached never counts as good, even if its latency is 1 µs. In overload, the queue depth
    limits the latency, so the latency does not show whether the drive is fast enough.
    """
    grid = grid_of(grid_section())
    assert most_reads(grid) == [40_000, 30_000, 20_000, 10_000, None]
    assert [point.next_read_iops for point in grid.limit] == [None, 40_000, 30_000, 20_000, 10_000]
    assert grid.cells[40_000, 4000].reached is False


def test_the_limit_cuts_off_slow_cells() -> None:
    """A cell in which reads take longer than the latency limit is beyond the limit of the drive, even if the drive
    completes all offered I/Os.
    """
    assert most_reads(grid_of(grid_section(able=8, slow_from=4))) == [30_000, 20_000, 10_000, None, None]


def test_a_gap_in_the_grid_ends_the_frontier() -> None:
    """A good cell above a bad cell does not count, because "up to" means that all lower rates are good as well."""
    section = grid_section()
    slow = key_of_both = next(
        one.workload for one in section.cells if one.workload.stream == "reader" and one.workload.offered_iops == 20_000
    )
    assert key_of_both.together[1].workload.offered_iops == 1000
    cells = tuple(
        replace(one, all={**one.all, "p99_us": 3000.0}) if one.workload == slow else one for one in section.cells
    )
    assert most_reads(grid_of(replace(section, cells=cells)))[1] == 10_000


def test_levels_with_the_same_rate_are_one_measured_cell() -> None:
    """If a slow drive is offered the same rate at several levels, the grid is still complete, and its limit is known.
    If one of these measurements is missing, the grid is not complete.
    """
    section = grid_section()
    kept = [one for one in section.cells if _writes_iops(one.workload) != 3000]
    cells = tuple(replace(one, rounds=2) if _writes_iops(one.workload) == 4000 else one for one in kept)
    grid = grid_of(replace(section, cells=cells))
    assert (grid.measured, len(grid.cells)) == (24, 19)
    assert most_reads(grid) == [40_000, 30_000, 20_000, None]
    assert not grid_of(replace(section, cells=tuple(kept))).is_complete


def _writes_iops(load: Workload) -> float | None:
    """Return the offered rate of the writes in a cell of the grid."""
    writes = [one.workload for one in load.together or load.streams if not one.workload.reads]
    return writes[0].offered_iops if writes else None


def test_a_drive_that_reaches_nothing_is_described_without_an_invented_rate() -> None:
    """If the drive completes no I/O, no cell is reached, and the finding does not state the lowest offered rate as a
    rate that the drive reaches.
    """
    reader, writer = offered(READS, 1), offered(WRITES, 1)
    both = combine((Stream(name="reader", workload=reader), Stream(name="writer", workload=writer)))
    loads = (reader, writer, both, key_of_stream(both, "reader"), key_of_stream(both, "writer"))
    cells = tuple(replace(cell(load, 0, 0.0), rounds=4 if load in (reader, writer) else 16) for load in loads)
    section = replace(grid_section(), cells=cells)
    grid = grid_of(section)
    assert grid.is_complete
    assert not any(one.reached for one in grid.cells.values())
    (test,) = made_up_run("run", {"interference": [section]}).tests
    text = describe_grid(test, section)
    assert "alone, the drive reads less than 1.000 IOPS and writes less than 0.1311 MB/s" in text


def test_random_arrivals_may_be_fewer_by_chance() -> None:
    """By chance, the number of random arrivals can be lower than planned. If 600 I/Os are due, 575 are within the
    scatter of a Poisson process. If 600,000 I/Os are due, the limit is 99 % of them minus three standard deviations.
    """
    reader = offered(READS, 10)
    section = grid_section()

    def reached(load: Workload, done_iops: float) -> bool:
        grid = grid_of(replace(section, cells=(cell(load, done_iops, 10.0),)))
        return grid.cells[load.offered_iops or 0.0, 0.0].reached

    assert reached(reader, 575 / CELL_S)
    assert not reached(reader, 500 / CELL_S)
    many = offered(READS, 10_000)
    assert reached(many, 9_899)
    assert not reached(many, 9_800)


def test_the_headline_is_at_half_of_the_writes() -> None:
    """The headline figure is the greatest read rate within the latency limit while the drive writes at half of its
    greatest write rate. The interval of the figure extends to the next offered read rate, which exceeded the limit. The
    first screen shows this interval.
    """
    run = made_up_run("run", {"interference": [grid_section()]})
    test = run.tests[0]
    (found,) = with_characteristics(test).sections[0].characteristics
    assert (found.key, found.value) == (READS_WITHIN_LIMIT.key, 20_000)
    assert found.workload.offered_iops == 2000
    assert found.uncertainty is not None
    assert (found.uncertainty.low, found.uncertainty.high) == (20_000, 30_000)
    (headline,) = headlines(replace(run, tests=(with_characteristics(test),)))
    assert (headline.text, headline.sure) == ("20,000 IOPS", "20,000 to 30,000")


@pytest.mark.parametrize(
    ("able", "slow_from", "bounds"),
    [(4, 1, (None, None, 10_000)), (8, 9, (None, 40_000, None)), (4, 9, (20_000, None, None))],
)
def test_a_figure_beyond_the_grid_has_a_bound(able: int, slow_from: int, bounds: tuple[float | None, ...]) -> None:
    """A figure beyond the grid has only one bound. The bound is an upper bound if even the lowest read rate is too
    slow, and a lower bound if even the highest read rate is fast enough.
    """
    test = made_up_run("run", {"interference": [grid_section(able=able, slow_from=slow_from)]}).tests[0]
    (found,) = with_characteristics(test).sections[0].characteristics
    assert (found.value, found.at_least, found.at_most) == bounds


def test_drives_are_compared_at_the_same_writes() -> None:
    """Drives are compared at the same rate of writes. Half of the write rate of a fast drive is more than half of the
    write rate of a slow drive, so both drives are compared at half of the write rate of the slow drive.
    """

    def run(name: str, factor: int) -> RunResult:
        section = grid_section()
        cells = tuple(_faster(one, factor) for one in section.cells)
        return made_up_run(name, {"interference": [replace(section, cells=cells)]})

    (row,) = build_rows([run("slow", 1), run("fast", 3)])
    assert "during writes at 262 MB/s" in row.title
    slow, fast = row.entries
    # For the fast drive, the rate of 2,000 writes per second lies between the offered rates of 0 and 3,000 writes per
    # second. At this rate, the fast drive reads at least 90,000 IOPS.
    assert (slow.value, fast.value) == (20_000, 90_000)
    assert fast.uncertainty is not None
    assert (fast.uncertainty.low, fast.uncertainty.high) == (90_000, 120_000)


def _faster(one: CellResult, factor: int) -> CellResult:
    load = one.workload
    together = tuple(replace(stream, workload=_times(stream.workload, factor)) for stream in load.together)
    figures = {**one.all, "ios": factor * (one.all["ios"] or 0), "iops": factor * (one.all["iops"] or 0)}
    return replace(one, workload=replace(_times(load, factor), together=together), all=figures)


def _times(load: Workload, factor: int) -> Workload:
    return load if load.offered_iops is None else replace(load, offered_iops=factor * load.offered_iops)


def changed(section: SectionResult, place: tuple[float, float], **figures: float) -> SectionResult:
    """Return the section with other figures for the reads of one cell. The offered reads and writes identify the
    cell.
    """
    grid = grid_of(section)
    reads = grid.cells[place].reads
    assert reads is not None
    cells = (replace(one, all={**one.all, **figures}) if one is reads else one for one in section.cells)
    return replace(section, cells=tuple(cells))


def compare(*sections: SectionResult) -> list[tuple[float | None, str | None]]:
    """Return the entries of the row that compares these grids, or an empty list if no such row exists."""
    runs = [made_up_run(str(number), {"interference": [one]}) for number, one in enumerate(sections)]
    return [(entry.value, entry.not_found) for row in build_rows(runs) for entry in row.entries]


def test_a_single_slow_cell_contradicts_no_comparison() -> None:
    """If a single slow cell contradicts other cells, the figure of the run is unknown. The contradiction does not cause
    an exception. In this grid, reads are slow together with 1,000 writes per second, but not together with 2,000 writes
    per second.
    """
    slow = changed(grid_section(), (10_000.0, 1000.0), p99_us=5000.0)
    assert most_reads(grid_of(slow)) == [40_000, None, 20_000, 10_000, None]
    (first, second) = compare(grid_section(), slow)
    assert first == (20_000, None)
    assert second == (None, "not known: cells contradict each other")


def test_drives_that_reach_the_ends_of_the_grid_have_bounds() -> None:
    """If all offered read rates are within the limit, the greatest read rate is a lower bound. Two lower bounds do not
    decide a comparison. If even the lowest read rate exceeds the limit, the run has no value.
    """
    fast, slow = grid_section(able=8, slow_from=9), grid_section(slow_from=1)
    assert compare(fast, fast) == [(40_000, "at least 40,000")] * 2
    assert compare(slow, slow) == [(None, "below 10,000")] * 2
    (row,) = build_rows([made_up_run(name, {"interference": [fast]}) for name in "ab"])
    assert [entry.change for entry in row.entries] == [None, Change.INCONCLUSIVE]


def test_a_lower_bound_decides_between_two_drives() -> None:
    """A drive that reads at least 40,000 IOPS within the limit is better than a drive that reads 20,000 to 30,000
    IOPS.
    """
    fast, middle = grid_section(able=8, slow_from=9), grid_section()
    for first, second, change in ((fast, middle, Change.WORSE), (middle, fast, Change.BETTER)):
        runs = [made_up_run(name, {"interference": [one]}) for name, one in (("a", first), ("b", second))]
        (row,) = build_rows(runs)
        assert row.entries[1].change is change
    comparison = compare_runs(runs)
    (figure,) = build_decision(comparison).figures
    assert figure.ranking == ((1,), (0,))
    assert find_title(comparison, build_decision(comparison)) == "b is better at the only figure"
    matrix = build_decision_view(comparison, build_decision(comparison))
    assert [row.cells[0].text for row in matrix.rows] == ["20,000", "≥ 40,000"]


def test_grids_of_other_loads_are_not_compared() -> None:
    """Grids are compared only if they are complete and have the same block sizes, the same latency limit, and the same
    required share of the offered rates.
    """
    section = grid_section()
    for other in (
        replace(section, grid_rules=replace(RULES, latency_limit_us=2000)),
        replace(section, grid_rules=replace(RULES, kept_up_percent=90)),
        replace(section, cells=section.cells[:-3]),
        replace(section, cells=tuple(_with_blocks(one, 65536) for one in section.cells)),
    ):
        assert compare(section, other) == []
    assert len(compare(section, section)) == 2


def _with_blocks(one: CellResult, block_size_bytes: int) -> CellResult:
    def larger(load: Workload) -> Workload:
        return replace(load, block_size_bytes=block_size_bytes) if load.reads and not load.writes else load

    together = tuple(replace(stream, workload=larger(stream.workload)) for stream in one.workload.together)
    return replace(one, workload=replace(larger(one.workload), together=together))


def test_a_grid_with_missing_cells_has_no_limit() -> None:
    """A grid with missing cells has no limit and no headline, because cells that were not measured are not beyond the
    limit. The text states how many cells were measured.
    """
    section = grid_section()
    partial = replace(section, cells=section.cells[: len(section.cells) // 2])
    grid = grid_of(partial)
    assert grid.limit == ()
    assert grid.at_middle_writes is None
    test = made_up_run("run", {"interference": [partial]}).tests[0]
    assert with_characteristics(test).sections[0].characteristics == ()
    assert "of 24 cells of reads and writes were measured" in describe_grid(test, partial)


def test_the_reason_beyond_the_limit_is_named() -> None:
    """There are three different conclusions: reads are too slow, reads do not reach the offered rate, or writes do not
    reach the offered rate.
    """
    section = grid_section(able=8, slow_from=9)
    place = (10_000.0, 2000.0)
    states = {
        CellState.TOO_SLOW: changed(section, place, p99_us=5000.0),
        CellState.READS_SHORT: changed(section, place, iops=9000.0, ios=9000.0 * CELL_S),
        CellState.WRITES_SHORT: _with_few_writes(section, place),
    }
    words = {
        CellState.TOO_SLOW: "even 10,000 IOPS of 4 KiB random reads do not keep p99 ≤ 1 ms",
        CellState.READS_SHORT: "the drive does not do 10,000 IOPS of 4 KiB random reads",
        CellState.WRITES_SHORT: "the drive does not do 262 MB/s of writes",
    }
    for state, of_state in states.items():
        point = grid_of(of_state).at_middle_writes
        assert point is not None
        assert (point.read_iops, point.why_not) == (None, state)
        test = made_up_run("run", {"interference": [of_state]}).tests[0]
        assert words[state] in describe_grid(test, of_state)


def _with_few_writes(section: SectionResult, place: tuple[float, float]) -> SectionResult:
    writes = grid_of(section).cells[place].writes
    few = {"iops": 1900.0, "ios": 1900.0 * CELL_S}
    return replace(
        section, cells=tuple(replace(one, all={**one.all, **few}) if one is writes else one for one in section.cells)
    )


def test_the_line_of_the_limit_is_unbroken() -> None:
    """The line of the limit is unbroken: each edge begins where another edge ends, from the upper border of the grid to
    the lower border.
    """
    edges = list(find_edges(grid_of(grid_section())))
    assert GridEdge(2, 3, 2, 4) in edges
    ends = [{(edge.x, edge.y), (edge.x_end, edge.y_end)} for edge in edges]
    corners = [corner for pair in ends for corner in pair]
    alone = [corner for corner in corners if corners.count(corner) == 1]
    assert len(alone) == 2, "one line with two ends"


@pytest.mark.parametrize(("factor", "words"), [(1.2, "+20 %"), (2.34, "+134 %"), (0.9967, "-0.33 %")])
def test_the_first_cell_shows_the_drift(factor: float, words: str) -> None:
    """The drift of an interference section is the change of the mean read latency between the first and the repeated
    measurement of the first cell. The finding states the drift without an exponent.
    """
    section = grid_section()
    first = next(one for one in section.cells if one.workload.stream == "reader")
    again = replace(first, all={**first.all, "latency_mean_us": factor * (first.all["latency_mean_us"] or 0)})
    last = replace(made_up_section(FIRST_CELL_AGAIN, {READS: [1.0]}, steady=None), cells=(again,))
    assert find_drift_percent(section, last) == pytest.approx(100 * (factor - 1))
    assert find_drift_percent(section, replace(last, cells=())) is None
    test = made_up_run("run", {"interference": [section, last]}).tests[0]
    assert describe_grid(test, section).endswith(f"the mean read latency of the first cell changed by {words}")


def known(value: float, half: float) -> dict[str, Uncertainty]:
    return {"p99_us": Uncertainty(standard=half / 2, low=value - half, high=value + half)}


def test_a_neighbour_that_shares_nothing_has_a_factor_of_1_within_its_interval() -> None:
    """The factor of a neighbour is the latency of the reader together with this neighbour, divided by the latency of
    the reader alone in the same section. A neighbour that shares no part of the drive has a factor whose interval
    contains 1.
    """
    reader = offered(READS, 1000)
    idle, busy = (
        combine((Stream(name="reader", workload=reader), Stream(name=name, workload=WRITES)))
        for name in ("idle", "busy")
    )
    latencies = {reader: 100.0, key_of_stream(idle, "reader"): 101.0, key_of_stream(busy, "reader"): 300.0}
    cells = [cell(load, 1000, p99_us) for load, p99_us in latencies.items()]
    cells = [replace(one, uncertainty=made_up_uncertainty(known(one.all["p99_us"] or 0.0, 3.0))) for one in cells]
    cells += [cell(load, 2000, 1.0) for load in (idle, busy)]
    section = made_up_section("Reader during other loads", {READS: [1.0]}, steady=None)
    plan = replace(section.plan, figures=(Figure(kind=FigureKind.NEIGHBOURS, quantities=("p99_us",)),))
    found = {one.name: one for one in find_neighbours([replace(section, cells=tuple(cells), plan=plan)])}
    assert found["busy"].factor == pytest.approx(3)
    nothing, much = found["idle"].uncertainty, found["busy"].uncertainty
    assert nothing is not None
    assert much is not None
    assert nothing.covers(1)
    assert not much.covers(1)


@pytest.mark.parametrize(
    ("half_us", "words"),
    [(2.0, "the reader is not measurably changed while the idle runs"), (10.0, "while the idle runs")],
)
def test_only_a_narrow_interval_around_1_is_called_no_change(half_us: float, words: str) -> None:
    """The finding states that the latency is not measurably changed only if the interval of the factor contains 1 and
    is narrow. In all other cases, the finding contains the factor with its interval.
    """
    reader = offered(READS, 1000)
    both = combine((Stream(name="reader", workload=reader), Stream(name="idle", workload=WRITES)))
    cells = [cell(reader, 1000, 100.0), cell(key_of_stream(both, "reader"), 1000, 101.0)]
    cells = [replace(one, uncertainty=made_up_uncertainty(known(one.all["p99_us"] or 0.0, half_us))) for one in cells]
    section = made_up_section("Reader during other loads", {READS: [1.0]}, steady=None)
    plan = replace(section.plan, figures=(Figure(kind=FigureKind.NEIGHBOURS, quantities=("p99_us",)),))
    section = replace(section, cells=(*cells, cell(both, 2000, 1.0)), plan=plan)
    (effect,) = find_neighbours([section])
    assert effect.uncertainty is not None
    assert effect.uncertainty.covers(1)
    said = describe_neighbours(section)
    assert said.endswith(words)
    assert ("not measurably changed" in said) is (half_us < 5)
    assert (describe_factor(effect) in said) is (half_us > 5)


def test_a_reader_that_falls_short_has_a_lower_bound() -> None:
    """A reader that reached only 81 % of its offered rate has a lower bound for its factor. Its I/Os waited for a free
    place in the queue, and the queue depth limits the measured latency.
    """
    reader = offered(READS, 1000)
    both = combine((Stream(name="reader", workload=reader), Stream(name="busy", workload=WRITES)))
    cells = (cell(reader, 1000, 100.0), cell(key_of_stream(both, "reader"), 810, 2000.0), cell(both, 2000, 1.0))
    section = made_up_section("Reader during other loads", {READS: [1.0]}, steady=None)
    plan = replace(section.plan, figures=(Figure(kind=FigureKind.NEIGHBOURS, quantities=("p99_us",)),))
    section = replace(section, cells=cells, plan=plan)
    (effect,) = find_neighbours([section])
    assert effect.factor == 20.0
    assert effect.uncertainty is None
    assert effect.kept_share == pytest.approx(0.81)
    assert describe_factor(effect) == "at least 20 ×, as the reader did 81 % of its rate"
    test = made_up_run("run", {"neighbours": [section]}).tests[0]
    (found,) = with_characteristics(test).sections[0].characteristics
    assert (found.value, found.at_least) == (None, 20.0)


def neighbours_section(*, alone_us: float, next_us: float, neighbour_iops: float) -> SectionResult:
    reader = offered(READS, 1000)
    both = combine((Stream(name="reader", workload=reader), Stream(name="writer", workload=WRITES)))
    cells = [cell(reader, 1000, alone_us), cell(key_of_stream(both, "reader"), 1000, next_us)]
    cells = [replace(one, uncertainty=made_up_uncertainty(known(one.all["p99_us"] or 0.0, 1.0))) for one in cells]
    cells += [cell(key_of_stream(both, "writer"), neighbour_iops, 1.0), cell(both, 2000, 1.0)]
    section = made_up_section("Reader during other loads", {READS: [1.0]}, steady=None)
    plan = replace(section.plan, figures=(Figure(kind=FigureKind.NEIGHBOURS, quantities=("p99_us",)),))
    return replace(section, cells=tuple(cells), plan=plan)


def test_factors_of_neighbours_are_listed_and_rank_no_drive() -> None:
    """Factors of neighbours are listed for each drive. They are not used to rank the drives, because each drive ran at
    a share of its own read rate. The rates of the neighbours are not compared, because each neighbour ran together with
    a different reader.
    """
    sections = (
        neighbours_section(alone_us=100, next_us=300, neighbour_iops=1000),
        neighbours_section(alone_us=50, next_us=100, neighbour_iops=5000),
    )
    runs = [made_up_run(name, {"neighbours": [one]}) for name, one in zip("ab", sections, strict=True)]
    runs = [replace(run, tests=(with_characteristics(run.tests[0]),)) for run in runs]
    comparison = compare_runs(runs)
    assert {row.quantity.key for row in comparison.rows} == {LATENCY_FACTOR.key, "p99_us"}
    assert {entry.change for row in comparison.rows for entry in row.entries[1:]} == {Change.DIFFERENT}
    decision = build_decision(comparison)
    (figure,) = decision.figures
    assert [one.entry.value for one in figure.cells] == [pytest.approx(3), pytest.approx(2)]
    assert {one.unranked for one in figure.cells} == {Unranked.OWN_LOAD}
    title = "a and b cannot be ranked: figures are relative to the reads of each drive alone"
    assert find_title(comparison, decision) == title
    (column,) = build_decision_view(comparison, decision).columns
    assert column.title == "with writer"


def made_up_uncertainty(of: dict[str, Uncertainty]) -> CellUncertainty:
    return CellUncertainty(all=of)


def test_streams_in_the_same_share_of_two_drives_are_compared() -> None:
    """A stream that uses a tenth of its drive covers another range of bytes on a larger drive. A comparison matches
    such streams by their names, and matches loads that run alone by the kind of load.
    """

    def of_drive(size_bytes: int) -> SectionResult:
        part = ActiveRange(offset_bytes=0, length_bytes=size_bytes // 10)
        loads = [Stream(name=name, workload=replace(READS, region=part)) for name in ("queries", "pages")]
        both = combine(loads)
        cells = [
            cell(load, 1000, 100.0) for load in (both, key_of_stream(both, "queries"), key_of_stream(both, "pages"))
        ]
        cells.append(cell(replace(READS, region=part), 1000, 100.0))
        return replace(made_up_section("Mix", {READS: [1.0]}, steady=None), cells=tuple(cells))

    runs = [made_up_run(name, {"mix": [of_drive(size)]}) for name, size in (("a", 10 << 30), ("b", 40 << 30))]
    found = {row.workload.stream for row in build_rows(runs)}
    assert found == {None, "queries", "pages"}
    assert any(not row.workload.together for row in build_rows(runs))


def test_the_total_of_different_streams_is_not_better() -> None:
    """If a stream of the second run offers twice the rate, the total of this run is greater, but not better."""

    def of_rate(iops: float) -> SectionResult:
        streams = [Stream(name="reader", workload=offered(READS, iops)), Stream(name="writer", workload=WRITES)]
        both = combine(streams)
        loads = {both: iops + 1000, key_of_stream(both, "reader"): iops, key_of_stream(both, "writer"): 1000.0}
        cells = [cell(load, done, 100.0) for load, done in loads.items()]
        cells = [
            replace(one, uncertainty=made_up_uncertainty({"iops": build_between(value - 1, value + 1)}))
            for one, value in zip(cells, loads.values(), strict=True)
        ]
        return replace(made_up_section("Mix", {READS: [1.0]}, steady=None), cells=tuple(cells))

    rows = list(build_rows([made_up_run(name, {"mix": [of_rate(iops)]}) for name, iops in (("a", 800), ("b", 1600))]))
    totals = {row.entries[1].change for row in rows if row.workload.is_combination and row.quantity.key == "iops"}
    assert totals == {Change.DIFFERENT}
