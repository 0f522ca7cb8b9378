"""The decision of a comparison: its figures, ranks and texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.analysis.made_up import made_up_cell, made_up_run, made_up_section
from tkperf.analysis.comparing.comparison import Arrangement, Comparison, compare
from tkperf.analysis.comparing.decision import Decision, DecisionFigure, Standing, Unranked, Use
from tkperf.analysis.comparing.decision_figures import build_decision
from tkperf.analysis.comparing.ranking import rank_runs
from tkperf.analysis.comparing.run_figures import build_run_figures
from tkperf.analysis.results import CellUncertainty, RunResult, SectionResult
from tkperf.analysis.uncertainty.estimate import Basis, Uncertainty
from tkperf.model.disturbance.io import DisturbanceCode
from tkperf.model.errors import UsageError
from tkperf.model.quantity import QUANTITIES
from tkperf.model.record import RunStatus
from tkperf.model.units import KIB, MIB
from tkperf.model.workload import Access, Workload
from tkperf.page.comparison.build_page import build_comparison_page
from tkperf.page.comparison.decision_texts import build_decision_view, describe_uses, find_title, format_times
from tkperf.page.comparison.ranking_page import build_ranking_page
from tkperf.page.matrix import Sign
from tkperf.page.words.run import name_notices
from tkperf.render.document import compose
from tkperf.render.export_markdown import render_markdown
from tkperf.render.html import render_view
from tkperf.render.pdf import set_document

READ, WRITE = (
    Workload(access=Access.RANDOM, read_percent=mix, block_size_bytes=4 * KIB, jobs=4, io_depth=32) for mix in (100, 0)
)
SINGLE = replace(READ, jobs=1, io_depth=1)
LARGE = replace(READ, access=Access.SEQUENTIAL, block_size_bytes=MIB)


def section_of(
    values: Mapping[Workload, float], *, half_percent: float | None = 0.1, steady: bool = True, name: str = "IOPS"
) -> SectionResult:
    """Return a section. Its cells have these values in every quantity, each with the same relative interval in
    percent.
    """
    section = made_up_section(name, {work: (value, value) for work, value in values.items()}, steady=steady)
    cells = []
    for work, value in values.items():
        half = 0.0 if half_percent is None else half_percent * value / 100
        known = Uncertainty(standard=half / 2, low=value - half, high=value + half, basis=Basis.ROUNDS)
        uncertainty = None if half_percent is None else CellUncertainty(all=dict.fromkeys(QUANTITIES, known))
        cells.append(replace(made_up_cell(value, work), uncertainty=uncertainty))
    return replace(section, cells=tuple(cells))


def run_of(name: str, values: Mapping[Workload, float], **of_section: object) -> RunResult:
    return made_up_run(name, {"iops": [section_of(values, **of_section)]})  # type: ignore[arg-type]


def decide(*runs: RunResult) -> tuple[Comparison, Decision]:
    comparison = compare(runs, Arrangement.RUNS)
    return comparison, build_decision(comparison)


def figure_of(decision: Decision, key: str) -> DecisionFigure:
    (figure,) = [figure for figure in decision.figures if figure.key == key]
    return figure


def uses_of(*runs: RunResult) -> dict[str, str]:
    return dict(describe_uses(*decide(*runs)))


# ---- the rank of each run


@pytest.mark.parametrize(("value", "title"), [(900.0, "; better but not ranked: X at 1"), (90.0, "")])
@pytest.mark.parametrize("count", [2, 6])
def test_a_better_value_that_is_not_ranked_is_never_hidden(count: int, value: float, title: str) -> None:
    """If a value is better than the best ranked value but is not ranked, the title and the line about the kind of load
    name this value. They also state why the value is not ranked.
    """
    others = [run_of(f"A{n}", {READ: 100.0 * (n + 1)}) for n in range(count)]
    worse = [run_of(f"W{n}", {READ: 1.0}, steady=False) for n in range(3)]
    comparison, decision = decide(*others, *worse, run_of("X", {READ: value}, steady=False))
    assert find_title(comparison, decision).endswith(f" the only figure{title}")
    line = dict(describe_uses(comparison, decision))["Random reads"]
    assert ("; better but not ranked: X (900 IOPS, not steady)" in line) is (value == 900.0)


def test_of_several_better_values_that_are_not_ranked_the_best_is_named() -> None:
    """If several better values are not ranked, the line names the best of them and counts the others. The title names
    two runs, and counts the runs if there are more than two.
    """
    ranked = [run_of("A", {SINGLE: 50.0}), run_of("B", {SINGLE: 60.0})]
    for count, said in ((2, "X0 at 1 and X1 at 1"), (3, "3 runs")):
        others = [run_of(f"X{n}", {SINGLE: 9.0 - n}, steady=False) for n in range(count)]
        comparison, decision = decide(*ranked, *others)
        assert f"better but not ranked: {said}" in find_title(comparison, decision)
        line = dict(describe_uses(comparison, decision))["One read at a time"]
        assert f"better but not ranked: X{count - 1} ({10 - count}.00 µs, not steady) and {count - 1} more" in line


def test_a_value_without_an_interval_is_not_ranked_beside_one_with_an_interval() -> None:
    """A value without an interval is not ranked against a value with an interval, even if the ranges of their rounds do
    not overlap. The difference between such values is not known.
    """
    known, unknown = run_of("A", {READ: 100.0}), run_of("B", {READ: 300.0}, half_percent=None)
    comparison, decision = decide(known, unknown)
    figure = figure_of(decision, "random_read")
    assert (figure.cells[1].unranked, figure.ranking) == (Unranked.NO_INTERVAL, ((0,),))
    assert find_title(comparison, decision) == "A and B cannot be ranked: figures are without an interval"
    cell = build_decision_view(comparison, decision).rows[1].cells[0]
    assert (cell.sign, cell.words) == (Sign.UNRANKED, "no interval")
    # All other runs are still ranked.
    comparison, decision = decide(known, unknown, run_of("C", {READ: 50.0}))
    assert uses_of(known, unknown, run_of("C", {READ: 50.0}))["Random reads"] == (
        "A (100.0 IOPS), then C (2.0 × less); better but not ranked: B (300 IOPS, no interval)"
    )


def test_if_no_value_has_an_interval_none_is_better() -> None:
    """If no value has an interval, no value is ranked, even if the values differ greatly. The title, the line and the
    matrix state the reason.
    """
    runs = [run_of("A", {READ: 100.0}, half_percent=None), run_of("B", {READ: 300.0}, half_percent=None)]
    comparison, decision = decide(*runs)
    assert find_title(comparison, decision) == "A and B cannot be ranked: figures are without an interval"
    assert uses_of(*runs)["Random reads"] == (
        "B (300 IOPS), then A (100.0 IOPS, 3.0 × less); not decided, because no value has an interval"
    )
    view = build_decision_view(comparison, decision)
    assert [(row.cells[0].sign, row.cells[0].interval) for row in view.rows] == [(Sign.UNDECIDED, "no interval")] * 2
    # The legend explains the line that marks an interval only if a bar contains such a line.
    with_interval = build_decision_view(*decide(*(run_of(name, {READ: 100.0}) for name in "AB")))
    assert ["line" in dict(each.legend) for each in (view, with_interval)] == [False, True]


def test_the_best_beyond_noise_ranks_first() -> None:
    """The run that is best beyond noise ranks first. Best means the greatest rate or the least latency."""
    loads = {READ: 100.0, SINGLE: 50.0}
    _, decision = decide(run_of("A", loads), run_of("B", {READ: 200.0, SINGLE: 80.0}), run_of("C", loads))
    read, single = figure_of(decision, "random_read"), figure_of(decision, "single_read")
    assert (read.ranking, single.ranking) == (((1,), (0, 2)), ((0, 2), (1,)))
    assert [cell.standing for cell in read.cells] == [Standing.BETWEEN, Standing.BEST, Standing.BETWEEN]
    assert [cell.standing for cell in single.cells] == [Standing.EQUAL, Standing.WORST, Standing.EQUAL]
    assert read.cells[0].entry.ratio == 0.5
    assert read.cells[1].entry.ratio is None


@pytest.mark.parametrize(
    ("value", "half_percent", "standing", "sign"),
    [
        (102.9, 0.1, Standing.EQUAL, Sign.EQUAL),  # The difference is beyond noise, but below 3 %.
        (103.1, 0.1, Standing.BEST, Sign.BEST),
        (103.1, 4.0, Standing.EQUAL, Sign.EQUAL),  # The difference is within noise.
        (120.0, 20.0, Standing.UNDECIDED, Sign.UNDECIDED),  # The interval contains 1 but also large differences.
        (120.0, None, Standing.UNDECIDED, Sign.UNDECIDED),  # The value was measured only once.
    ],
)
def test_less_than_noise_or_3_percent_is_never_better(
    value: float, half_percent: float | None, standing: Standing, sign: Sign
) -> None:
    """A difference within noise or below 3 % never makes a run the best. The title then describes no run as better."""
    runs = [run_of(name, {READ: of}, half_percent=half_percent) for name, of in (("A", 100.0), ("B", value))]
    if half_percent is None:
        runs = [replace_rounds(run) for run in runs]
    comparison, decision = decide(*runs)
    figure = figure_of(decision, "random_read")
    assert figure.cells[1].standing is standing
    assert build_decision_view(comparison, decision).rows[1].cells[0].sign is sign
    title = find_title(comparison, decision)
    assert ("better" in title) == (standing is Standing.BEST)
    if standing is Standing.BEST:
        assert title == "B is better at the only figure"
    elif half_percent is None:
        assert title == "A and B cannot be ranked: figures are without an interval"
    else:
        assert title == "A and B cannot be told apart at any figure"


def test_a_value_that_cannot_be_told_from_the_best_never_ranks_behind_it() -> None:
    """A value that may equal the best value never ranks behind it. This rule also applies to a value with a wide
    interval, even if another value with a better mean is certainly worse than the best value.
    """
    halves = {"A": (100.0, 0.5), "B": (95.0, 0.5), "C": (94.0, 40.0)}
    runs = [run_of(name, {READ: value}, half_percent=half) for name, (value, half) in halves.items()]
    (figure,) = decide(*runs)[1].figures
    assert figure.ranking == ((0, 2), (1,))
    assert [cell.standing for cell in figure.cells] == [Standing.UNDECIDED, Standing.BETWEEN, Standing.UNDECIDED]
    assert uses_of(*runs)["Random reads"] == "A and C (100.0 to 94.0 IOPS, not decided), then B (5.0 % less)"
    ranking = rank_runs([build_run_figures(run) for run in runs], "random_read")
    assert [(one.run.name, one.place) for one in ranking.ranked] == [("A", 1), ("C", 1), ("B", 3)]
    assert build_ranking_page(ranking).title == "A and C cannot be told apart as the best of 3 drives at random reads"


def replace_rounds(run: RunResult) -> RunResult:
    """Return the run without rounds. With rounds, their ranges would decide the comparison."""
    (test,) = run.tests
    (section,) = test.sections
    return replace(run, tests=(replace(test, sections=(replace(section, rounds=(), window=()),)),))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"disturbances": (DisturbanceCode.FOREIGN_IO,)}, Unranked.DISTURBED),
        ({"disturbances": (DisturbanceCode.THROTTLED,)}, Unranked.THROTTLED),
        ({"disturbances": (DisturbanceCode.THROTTLED, DisturbanceCode.STOPPED)}, Unranked.DISTURBED),
        ({"host_limited": True}, Unranked.HOST_LIMITED),
        # The code REPEATED states that the step was repeated. It does not describe an influence on the step.
        ({"disturbances": (DisturbanceCode.REPEATED,)}, None),
        ({}, None),
    ],
)
def test_what_is_not_the_drives_alone_is_not_ranked(changes: Mapping[str, object], reason: Unranked | None) -> None:
    """If something other than the drive influenced a value, the value is shown with the reason and is not ranked. The
    other runs are still ranked.
    """
    flagged = run_of("B", {READ: 900.0})
    (test,) = flagged.tests
    (section,) = test.sections
    cells = tuple(replace(cell, **changes) for cell in section.cells)  # type: ignore[arg-type]
    flagged = replace(flagged, tests=(replace(test, sections=(replace(section, cells=cells),)),))
    comparison, decision = decide(run_of("A", {READ: 100.0}), flagged, run_of("C", {READ: 200.0}))
    figure = figure_of(decision, "random_read")
    assert figure.cells[1].unranked is reason
    assert figure.ranking == (((1,), (2,), (0,)) if reason is None else ((2,), (0,)))
    cell = build_decision_view(comparison, decision).rows[1].cells[0]
    assert cell.text == "900"
    if reason is not None:
        assert (cell.sign, cell.words) == (Sign.UNRANKED, str(reason))
        assert f"not ranked: B (900 IOPS, {reason})" in uses_of(*comparison.results)["Random reads"]


def test_what_is_not_steady_is_not_ranked() -> None:
    """A value that is not steady is not ranked. If too few values remain to rank, as with two runs, the title states
    this.
    """
    runs = run_of("A", {READ: 100.0}), run_of("B", {READ: 900.0}, steady=False)
    comparison, decision = decide(*runs)
    assert decision.ranked == ()
    assert find_title(comparison, decision) == "A and B cannot be ranked: figures are not steady"
    assert uses_of(*runs)["Random reads"] == "cannot be ranked: A (100.0 IOPS), B (900 IOPS, not steady)"


def test_a_run_that_failed_and_a_model_among_devices_are_not_ranked() -> None:
    """A failed run is not ranked. A model is not ranked among devices. The verdict on a comparison uses the
    same rules.
    """
    good, other = run_of("A", {READ: 100.0}), run_of("C", {READ: 300.0})
    failed = replace(run_of("B", {READ: 900.0}), status=RunStatus.FAILED)
    device = replace(good, info=replace(good.info, ioengine="io_uring"))
    for runs, expected in (
        ((device, failed, replace(other, info=device.info)), {1}),
        ((device, other, device), {1}),
        # All runs are models, so this condition is equal.
        ((good, other, good), set()),
    ):
        _, decision = decide(*(replace(run, info=replace(run.info, name=str(n))) for n, run in enumerate(runs)))
        cells = figure_of(decision, "random_read").cells
        assert {n for n, cell in enumerate(cells) if cell.unranked is Unranked.NOT_COMPARABLE} == (expected or set())


# ---- bars


def test_bars_leave_room_for_the_interval_of_the_longest() -> None:
    """The chart leaves room for the interval of the longest bar. If the interval were cut off, it would seem to have
    only a lower half.
    """
    comparison, decision = decide(*(run_of(n, {READ: v}, half_percent=10.0) for n, v in (("A", 100.0), ("B", 50.0))))
    best, other = (row.cells[0] for row in build_decision_view(comparison, decision).rows)
    assert (best.bar, best.low, best.high) == pytest.approx((1 / 1.1, 0.9 / 1.1, 1.0))
    assert (other.bar, other.high) == pytest.approx((0.5 / 1.1, 0.55 / 1.1))


@pytest.mark.parametrize(
    ("values", "is_cut", "shares"),
    [
        ((680.0, 13.0, 7.0), True, (1.0, 0.25)),
        ((100.0, 13.0, 7.0), False, (1.0, 0.13)),
        # With two runs, the ratio itself is the decision, so the bar is drawn in full length.
        ((680.0, 13.0), False, (1.0, 13 / 680)),
    ],
)
def test_one_bar_that_would_leave_dots_of_the_others_is_cut(
    values: tuple[float, ...], is_cut: bool, shares: tuple[float, ...]
) -> None:
    runs = [run_of(f"R{n}", {SINGLE: value}, half_percent=0.0) for n, value in enumerate(values)]
    comparison, decision = decide(*runs)
    view = build_decision_view(comparison, decision)
    cells = [row.cells[0] for row in view.rows]
    assert [cell.is_cut for cell in cells] == [is_cut, *[False] * (len(values) - 1)]
    assert (cells[0].bar, cells[1].bar) == pytest.approx(shares)
    assert (cells[0].low is None) is is_cut
    assert ("//" in dict(view.legend)) is is_cut
    page = render_view(build_comparison_page(comparison))
    assert ('class="break"' in page) is is_cut
    assert "lower is better</span></th>" in page


# ---- selection of the figures that are compared


def test_runs_that_share_some_tests_rank_where_they_can() -> None:
    """Runs that share only some tests are ranked in the columns of these tests. If a run does not contain a test, the
    column of this test contains a dash with the reason, and the run is omitted from this column only.
    """
    with_large = [
        made_up_run(name, {"iops": [section_of({READ: value})], "tp": [section_of({LARGE: value}, name="TP")]})
        for name, value in (("A", 100.0), ("B", 200.0))
    ]
    comparison, decision = decide(*with_large, run_of("C", {READ: 400.0}))
    large = figure_of(decision, "large_read")
    assert large.ranking == ((1,), (0,))
    cell = build_decision_view(comparison, decision).rows[2].cells[decision.figures.index(large)]
    assert (cell.text, cell.words, cell.bar) == ("-", "not measured", None)
    assert uses_of(*comparison.results)["Large files, reading"] == (
        "B (200 MB/s), then A (2.0 × less); not measured: C"
    )


def test_runs_without_a_common_test_rank_where_two_of_them_can() -> None:
    """If not all runs share a test, the runs are ranked wherever two of them contain the same figure. In this example,
    one run contains all tests and each other run contains some of them. Two runs that share no test are refused.
    """
    more = replace(READ, block_size_bytes=8 * KIB)
    whole = made_up_run(
        "A", {"iops": [section_of({READ: 100.0, more: 90.0})], "tp": [section_of({LARGE: 100.0}, name="TP")]}
    )
    large = made_up_run("C", {"tp": [section_of({LARGE: 400.0}, name="TP")]})
    runs = whole, run_of("B", {READ: 200.0, more: 150.0}), large
    comparison, decision = decide(*runs)
    assert comparison.rows == ()
    assert figure_of(decision, "random_read").ranking == ((1,), (0,))
    assert figure_of(decision, "large_read").ranking == ((2,), (0,))
    page = build_comparison_page(comparison)
    assert [test.key for test in page.tests] == ["iops"]
    assert page.lead_charts
    for render in (render_view, render_markdown):
        assert "B and C are the best" in render(page)
    with pytest.raises(UsageError, match="no test was measured in all of them"):
        compare((runs[1], large))


def test_a_figure_of_a_single_run_has_a_line_and_no_column() -> None:
    first = made_up_run("A", {"iops": [section_of({READ: 1.0})], "tp": [section_of({LARGE: 2.0}, name="TP")]})
    comparison, decision = decide(first, run_of("B", {READ: 4.0}))
    assert [figure.key for figure in decision.alone] == ["large_read"]
    assert decision.of_use(Use.LARGE_FILES) == decision.alone
    assert "large_read" not in {figure.key for figure in decision.figures}
    assert dict(describe_uses(comparison, decision))["Large files, reading"] == "only A was measured (2.00 MB/s)"


def test_a_single_demand_may_differ_and_the_head_says_so() -> None:
    """A figure with one demand in each run is ranked even if the demands differ. The heading of its column then
    contains "own demand".
    """
    comparison, decision = decide(run_of("A", {READ: 1.0}), run_of("B", {replace(READ, jobs=8): 4.0}))
    figure = figure_of(decision, "random_read")
    assert (figure.is_ranked, figure.same_demand) == (True, False)
    assert build_decision_view(comparison, decision).columns[0].detail == "4 KiB, own demand, IOPS"


def test_of_several_demands_the_greatest_that_all_have_is_compared() -> None:
    """A figure with several demands is compared at the greatest demand that all runs share. Values at different queue
    depths are never compared.
    """
    deep = replace(READ, io_depth=64)
    _, decision = decide(run_of("A", {READ: 1.0, deep: 9.0}), run_of("B", {READ: 2.0, replace(READ, io_depth=8): 1.0}))
    figure = figure_of(decision, "random_read")
    assert figure.workload == READ
    assert [cell.entry.value for cell in figure.cells] == [1.0, 2.0]


def test_other_loads_have_their_headline_figures() -> None:
    """If a run has none of the fixed loads, the matrix shows the figures of the headline table instead."""
    odd = replace(READ, block_size_bytes=16 * KIB, read_percent=30)
    comparison, decision = decide(run_of("A", {odd: 1.0}), run_of("B", {odd: 4.0}))
    view = build_decision_view(comparison, decision)
    assert view.columns[0].title == "16 KiB random, 30 % reads"
    assert view.rows[1].cells[0].sign is Sign.BEST


# ---- wording of the decision


def test_the_title_names_who_is_best_and_how_often() -> None:
    """With two runs, the title names the better run. With more runs, the title names the best run, or the runs that are
    most often equal to the best. The numbers in a title add up to the number of figures.
    """
    loads = READ, WRITE, SINGLE
    values = {
        "pair": ((10.0, 10.0, 10.0), (20.0, 20.0, 20.0)),
        "several": ((10.0, 10.0, 10.0), (20.0, 20.0, 20.0), (5.0, 5.0, 15.0)),
        "shared": ((20.0, 10.0, 10.0), (20.0, 20.0, 20.0), (5.0, 20.0, 15.0)),
        "one pair": ((20.0, 20.0, 10.0), (20.0, 20.0, 10.0), (5.0, 5.0, 5.0)),
        "never alone": ((20.0, 10.0, 20.0), (20.0, 10.0, 10.0), (5.0, 10.0, 10.0)),
        "alike": ((20.0, 10.0, 10.0),) * 3,
    }
    titles = {}
    for name, of_runs in values.items():
        runs = [run_of(run, dict(zip(loads, each, strict=True))) for run, each in zip("ABC", of_runs, strict=False)]
        titles[name] = find_title(*decide(*runs))
    assert titles == {
        "pair": "B is better at 2 of 3 figures, A at 1",
        "several": "B is the best at 2 of 3 figures, A at 1",
        "shared": "A is the best at 1 of 3 figures; 2 are equal",
        "one pair": "C is the best at 1 of 3 figures; A and B are equal at 2",
        "never alone": "B is the best or equal to the best at all 3 figures",
        "alike": "These 3 runs cannot be told apart at any figure",
    }


def test_of_two_runs_the_lines_say_where_each_is_better() -> None:
    lines = uses_of(
        run_of("A", {READ: 100.0, WRITE: 300.0, SINGLE: 10.0}), run_of("B", {READ: 650.0, WRITE: 246.0, SINGLE: 10.1})
    )
    assert lines == {
        "A": "better at random writes (1.2 ×)",
        "B": "better at random reads (6.5 ×)",
        "Equal": "mean read latency (1.0 % apart)",
        "Random writes": "too short to be sustained: A (300 IOPS), then B (246 IOPS, 1.2 × less)",
        "Random reads": "B (650 IOPS), then A (100.0 IOPS, 6.5 × less)",
        "One read at a time": "A and B (10.00 to 10.10 µs, equal)",
    }


def test_a_line_of_many_runs_names_the_first_and_the_last() -> None:
    """A line about many runs names the last run, the first three runs, and as many more runs as fit on a screen of
    1,440 pixels.
    """
    for name, said in (
        ("lab", "lab-09 (4.0 × less), lab-08 (8.0 × less), lab-07 (16 × less), 6 more"),
        ("in-the-laboratory-behind-the-yard", "in-the-la…e-yard-09 (4.0 × less), 8 more"),
    ):
        runs = [run_of(f"{name}-{n:02}", {READ: 100.0 * 2**n}) for n in range(12)]
        line = uses_of(*runs)["Random reads"]
        assert f", {said}, last " in line


def test_the_distance_of_a_group_is_that_of_all_its_runs() -> None:
    """A group of runs is described by the distances of all its runs from the best run. A line that contained only the
    distance of the best run in the group would contradict the cells of the other runs in the group.
    """
    values = {"A": 100.0, "B": 94.3, "C": 92.5, "D": 84.0, "E": 82.0, "F": 30.0, "G": 29.8}
    line = uses_of(*(run_of(name, {READ: value}) for name, value in values.items()))["Random reads"]
    assert line == (
        "A (100.0 IOPS), then B and C (5.7 to 7.5 % less), D and E (16 % to 1.2 × less), F and G (3.3 to 3.4 × less)"
    )


def test_a_title_counts_what_is_undecided() -> None:
    runs = [
        made_up_run(name, {"iops": [section_of({READ: of})], "lat": [section_of({SINGLE: of}, half_percent=20.0)]})
        for name, of in (("A", 100.0), ("B", 120.0))
    ]
    assert find_title(*decide(*runs)) == "B is better at 1 of 3 figures; 2 are undecided"


def test_only_runs_that_are_long_enough_say_sustained() -> None:
    """Only runs with a long profile are called sustained. In a short run, all drives reach the speed of their
    interface, which is far above their sustained rate.
    """
    short = [run_of(name, {WRITE: of}) for name, of in (("A", 1.0), ("B", 2.0))]
    long = [replace(run, info=replace(run.info, profile_name="pts-2.0")) for run in short]
    assert "Sustained random writes" in uses_of(*long)
    for runs in (short, (long[0], short[1])):
        lines = uses_of(*runs)
        assert not any("ustained" in name for name in lines)
        assert lines["Random writes"].startswith("too short to be sustained: ")


def test_writes_of_a_log_have_a_line() -> None:
    """Single writes at queue depth 1 have a separate line for their p99.9 latency, because a program that writes a log
    waits for each write.
    """
    one_write = replace(WRITE, jobs=1, io_depth=1)
    lines = uses_of(*(run_of(name, {one_write: of}) for name, of in (("A", 95.0), ("B", 276.0))))
    assert lines["Write log, p99.9"] == "A (95.0 µs), then B (276 µs, 2.9 × more)"


def test_a_badge_names_the_runs_that_it_concerns() -> None:
    """A badge that applies to only some runs names these runs. A badge without a name would seem to apply to all runs.
    A notice that applies to all runs needs no name.
    """
    hot, wrong = "THROTTLED: hot in IOPS", "MEDIA ERRORS: 3"
    several = [
        ("A", ("QUICK PROFILE: short", hot)),
        ("B", ("QUICK PROFILE: short", wrong)),
        ("C", ("QUICK PROFILE: short",)),
    ]
    assert name_notices(several) == ("QUICK PROFILE: short", "THROTTLED (A): hot in IOPS", "MEDIA ERRORS (B): 3")
    many = [(name, (f"THROTTLED: {name}",)) for name in "ABC"]
    assert name_notices([*many, ("D", ())]) == ("THROTTLED (3 of 4 runs): A: A; B: B; C: C",)
    assert name_notices(many) == ("THROTTLED: A: A; B: B; C: C",)


@pytest.mark.parametrize(("fact", "values"), [("capacity", (10**12, 2 * 10**12)), ("interface", ("SATA", "NVMe"))])
def test_cautions_name_another_capacity_and_interface(fact: str, values: tuple[object, object]) -> None:
    key = "capacity_bytes" if fact == "capacity" else fact
    runs = [
        made_up_run(f"R{n}", {"iops": [section_of({READ: 1.0 + n})]}, device={key: value})
        for n, value in enumerate(values)
    ]
    page = build_comparison_page(compare(runs, Arrangement.RUNS))
    assert re.search(rf"different [^;]*\b{fact}\b", page.verdict.text)


def test_a_simulated_comparison_says_so_before_its_title() -> None:
    """SIMULATED precedes the title of the page, because this word is a more serious caution than all others. The
    verdict does not repeat the word.
    """
    runs = [run_of(n, {READ: v}) for n, v in (("A", 1.0), ("B", 2.0))]
    page = build_comparison_page(compare(runs, Arrangement.RUNS))
    assert page.verdict.title.startswith("SIMULATED. ")
    html = render_view(page)
    assert '<h1><span class="simulated">SIMULATED</span> B is better' in html
    assert "<strong>SIMULATED. " not in html
    assert set_document(compose(page)).startswith(b"%PDF")


def test_a_reason_of_all_runs_names_none_of_them() -> None:
    runs = [run_of(f"R{n}", {READ: 1.0 + n}) for n in range(12)]
    page = build_comparison_page(compare(runs, Arrangement.RUNS))
    assert "all 12 runs: the profile quick" in page.verdict.text
    assert "R0" not in page.verdict.text


def test_long_names_are_short_in_the_lines_and_whole_in_the_matrix() -> None:
    names = ["x" * 59 + end for end in "ab"]
    comparison, decision = decide(*(run_of(name, {READ: 1.0 + n}) for n, name in enumerate(names)))
    view = build_decision_view(comparison, decision)
    assert [row.whole_name for row in view.rows] == names
    assert len({row.name for row in view.rows}) == 2
    assert max(len(row.name) for row in view.rows) < 22
    assert len(find_title(comparison, decision)) < 60


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        *((1.0, "0.0 %"), (1.017, "1.7 %"), (1.19, "19 %"), (1.2, "1.2 ×"), (4.44, "4.4 ×"), (28.7, "29 ×")),
        # "Less than the best" is a share of the best value. For example, 1/1.12 of the best value is 11 % less, and not
        # 12 % less.
        *((1 / 1.017, "1.7 %"), (1 / 1.12, "11 %"), (1 / 1.21, "1.2 ×"), (1 / 4.44, "4.4 ×")),
    ],
)
def test_small_ratios_are_told_in_percent(ratio: float, text: str) -> None:
    assert format_times(ratio) == text


def test_percent_are_of_the_value_that_a_sentence_compares_with() -> None:
    """A percentage refers to the value with which the sentence compares. A cell compares its run with the best run, and
    the line of a run compares the run with the other run.
    """
    runs = run_of("A", {READ: 112.0, SINGLE: 100.0}), run_of("B", {READ: 100.0, SINGLE: 112.0})
    comparison, decision = decide(*runs)
    cells = build_decision_view(comparison, decision).rows[1].cells[:2]
    assert [cell.words for cell in cells] == ["11 % less", "12 % more"]
    lines = uses_of(*runs)
    assert lines["A"] == "better at random reads (12 % more) and mean read latency (11 % less)"
    assert lines["Random reads"] == "A (112.0 IOPS), then B (100.0 IOPS, 11 % less)"


@pytest.mark.parametrize(
    ("load", "worse", "is_best"), [(READ, 97.05, False), (READ, 96.9, True), (SINGLE, 103.1, True)]
)
def test_the_least_difference_is_that_of_the_cell(load: Workload, worse: float, is_best: bool) -> None:
    """The percentage in a cell decides whether a difference reaches the limit of 3 %. No cell therefore contains "2.9 %
    less" while another cell of the row is marked as the best.
    """
    _, decision = decide(run_of("A", {load: 100.0}), run_of("B", {load: worse}))
    figure = figure_of(decision, "single_read" if load is SINGLE else "random_read")
    assert figure.cells[0].standing is (Standing.BEST if is_best else Standing.EQUAL)


@pytest.mark.parametrize(("count", "said"), [(4, "X (90.0 IOPS, not steady)"), (5, "X (not steady)")])
def test_a_line_has_the_value_that_is_not_ranked_if_it_has_room(count: int, said: str) -> None:
    """A line contains a value that is not ranked only if the line has enough space. Otherwise the lines of five drives
    would wrap and would move the charts below the first screen.
    """
    runs = [run_of(f"A{n}", {READ: 100.0 * 2**n}) for n in range(count - 1)]
    line = uses_of(*runs, run_of("X", {READ: 90.0}, steady=False))["Random reads"]
    assert line.endswith(f"; not ranked: {said}")


def test_the_best_runs_are_named_if_a_line_has_room_for_them() -> None:
    """Up to four equal best runs are named if their names fit into the line. If the names are too long, the line
    contains only the number of runs.
    """
    values = [100.0] * 4 + [50.0] * 8
    for name, expected in (("ssd", "ssd-00, ssd-01, ssd-02 and ssd-03 ("), ("enterprise-ssd", "4 runs (")):
        line = uses_of(*(run_of(f"{name}-{n:02}", {READ: value}) for n, value in enumerate(values)))["Random reads"]
        assert line.startswith(expected)
