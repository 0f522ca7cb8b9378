"""Every figure of a run has an uncertainty, or a reason why the uncertainty is missing. Every output shows the
uncertainty.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

import tkperf
from tests.analysis.made_up import made_up_run, made_up_section
from tests.builders import run_info, simulate, work
from tkperf.analysis.claim_results import LOWER_LIMIT, ClaimResult, ClaimState
from tkperf.analysis.claims import check_claims
from tkperf.analysis.claims_file import parse_claims
from tkperf.analysis.comparing.compared_rows import Change, ComparedRow, Entry
from tkperf.analysis.comparing.comparison import compare
from tkperf.analysis.results import CellUncertainty, RunResult
from tkperf.analysis.uncertainty.estimate import COUNT, EXTREME, Basis, Interval, Uncertainty
from tkperf.analysis.uncertainty.means import ONCE
from tkperf.cli.main import cli
from tkperf.model.measurement import TOO_FEW_IOS
from tkperf.model.quantity import IOPS, IOS, LATENCY_MAX, LATENCY_MEAN, QUANTITIES, Direction, percentile
from tkperf.page.claim_texts import describe_claim
from tkperf.page.comparison.conclusions import find_conclusions
from tkperf.page.comparison.ratio_texts import describe_ratio
from tkperf.page.disclosure import explain
from tkperf.page.shown_section import ShownSection
from tkperf.page.tables.cell_tables import build_matrix, explain_intervals
from tkperf.page.view import build_view
from tkperf.page.words.uncertainty import (
    INTERVAL,
    add_interval,
    describe_interval,
    describe_share,
    describe_value,
    summarise,
    two_digits,
)
from tkperf.render.export_check import render_junit
from tkperf.render.export_json import render_json
from tkperf.render.export_markdown import render_markdown
from tkperf.render.export_tables import build_comparison_table, build_tables, render_csv
from tkperf.render.terminal.page_text import print_page

TESTS = {"iops": "IOPS", "lat": "Latency"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


@pytest.fixture(scope="module")
def result(folder: Path) -> RunResult:
    simulate(folder, run_info())
    return tkperf.load(folder / "run.tkperf")


def even(value: float, half: float, basis: Basis = Basis.ROUNDS) -> Uncertainty:
    return Uncertainty(standard=half / 2, low=value - half, high=value + half, basis=basis)


def run_with(values: Sequence[float | None], uncertainty: Uncertainty | None, test: str = "iops") -> RunResult:
    """Return a run with one cell. All figures of the cell have the given uncertainty."""
    section = made_up_section(TESTS[test], {work(): values})
    (cell,) = section.cells
    known = None
    if uncertainty is not None:
        known = CellUncertainty(all=dict.fromkeys(QUANTITIES, uncertainty))
    section = replace(section, cells=(replace(cell, uncertainty=known),))
    return made_up_run("made up", {test: [section]})


def test_every_figure_has_an_uncertainty_or_a_reason(result: RunResult) -> None:
    for test in result.tests:
        for section in test.sections:
            for cell in section.cells:
                for direction in Direction:
                    for quantity in QUANTITIES.values():
                        known = cell.uncertainty_of(quantity, direction)
                        value = cell.value(quantity, direction)
                        assert (known is None) == (value is None)
                        if known is not None and value is not None and known.low is not None:
                            assert known.low <= value
                            assert known.high is None or value <= known.high


def test_means_of_a_window_have_that_of_their_rounds(result: RunResult) -> None:
    section = result.tests[0].sections[0]
    cell = section.cells[0]
    known = cell.uncertainty_of(IOPS)
    assert known is not None
    assert (known.basis, known.degrees_of_freedom) == (Basis.ROUNDS, len(section.window) - 1)


def test_extremes_and_counts_have_none(result: RunResult) -> None:
    cell = result.tests[0].sections[0].cells[0]
    of_greatest, of_count = (cell.uncertainty_of(quantity) for quantity in (LATENCY_MAX, IOS))
    assert of_greatest == Uncertainty(reason=EXTREME)
    assert of_count == Uncertainty(reason=COUNT)


def test_characteristics_have_one_or_a_reason(result: RunResult) -> None:
    found = [one for test in result.tests for section in test.sections for one in section.characteristics]
    assert all((one.uncertainty is None) == (one.value is None) for one in found)


def test_json_has_it_with_the_cell(result: RunResult) -> None:
    section = json.loads(render_json(result))["tests"][0]["sections"][0]
    cell = section["cells"][0]
    assert set(cell["uncertainty"]["all"]) == {key for key, value in cell["all"].items() if value is not None}
    assert set(cell["uncertainty"]["all"]["iops"]) == {
        "standard",
        "low",
        "high",
        "level",
        "degrees_of_freedom",
        "basis",
        "at_least",
        "reason",
    }
    assert cell["uncertainty"]["all"]["iops"]["basis"] == "rounds"
    assert section["rounds"][0]["cells"][0]["uncertainty"] is None


def test_every_output_says_once_what_an_interval_means(result: RunResult) -> None:
    """Every output explains the meaning of an interval exactly once. A run without intervals has no explanation."""
    console = Console(file=io.StringIO(), width=400)
    print_page(build_view(result), console)
    assert isinstance(console.file, io.StringIO)
    for text in (console.file.getvalue(), render_markdown(build_view(result)), "\n".join(explain(result))):
        assert text.count("twice as long right after") == 1
    assert explain_intervals(run_with([100, 100], None)) == ()


def test_csv_has_it_beside_the_figure_and_in_a_table_of_its_own(result: RunResult) -> None:
    tables = {table.name: table for table in build_tables(result, (), lambda *_: ())}
    rows = {
        name: list(csv.DictReader(io.StringIO("".join(render_csv(tables[name])))))
        for name in ("cells", "uncertainties")
    }
    cell = result.tests[0].sections[0].cells[0]
    known = cell.uncertainty_of(IOPS)
    assert known is not None
    assert float(rows["cells"][0]["u95_iops"]) == known.expanded
    assert rows["cells"][0]["u95_latency_max_us"] == ""
    alone = {row["key"]: row for row in reversed(rows["uncertainties"])}  # keep only the first row of each key
    assert float(alone["iops"]["standard_uncertainty"]) == known.standard
    assert (alone["iops"]["unit"], alone["iops"]["basis"]) == ("IOPS", "rounds")
    assert (alone["latency_max_us"]["low_95"], alone["latency_max_us"]["reason"]) == ("", EXTREME)


def test_a_table_says_how_far_its_figures_can_be_trusted(result: RunResult) -> None:
    dut = ShownSection(section=result.tests[0].sections[0], key="")
    table = build_matrix(dut, IOPS)
    assert any(note.startswith(f"Uncertainty ({INTERVAL}): ± ") for note in table.notes)
    # The note below a table of maxima does not mention an uncertainty.
    assert not any("ncertainty" in note for note in build_matrix(dut, LATENCY_MAX).notes)


def compared(first: RunResult, second: RunResult) -> tuple[ComparedRow, Entry]:
    row = compare([first, second]).rows[0]
    return row, row.entries[1]


@pytest.mark.parametrize(
    ("second", "half", "change", "text"),
    [
        (110, 2.0, Change.BETTER, "×1.100 ± 2.8 %"),
        (102, 2.0, Change.WITHIN_NOISE, "(×1.020 ± 2.8 %)"),
        (102, 5.0, Change.WITHIN_NOISE, "(×1.020 ± 7.1 %)"),
        (110, 8.0, Change.INCONCLUSIVE, "×1.100 ± 11 %?"),
        (100, 8.0, Change.INCONCLUSIVE, "×1.000 ± 11 %?"),
        (300, 90.0, Change.INCONCLUSIVE, "×3.00 (0.840 to 10.7)?"),
    ],
)
def test_a_ratio_is_within_noise_if_its_interval_contains_one(
    second: float, half: float, change: Change, text: str
) -> None:
    """A ratio is within noise if its interval contains 1, even if the ranges of the rounds do not overlap. If the
    interval also contains a ratio that differs from 1 by more than 10 %, the comparison is not decided.
    """
    _, entry = compared(
        run_with([100, 100], even(100, half)), run_with([second, second], even(second, half * second / 100))
    )
    assert (entry.change, describe_ratio(entry)) == (change, text)
    assert entry.within_noise is {Change.BETTER: False, Change.WITHIN_NOISE: True}.get(change)


def test_an_interval_that_is_too_wide_is_no_equality() -> None:
    """If an interval is too wide, the sentences state that the difference cannot be decided. They do not state that no
    difference exists.
    """
    sentences = tuple(
        find_conclusions(compare([run_with([100, 100], even(100, 90)), run_with([300, 300], even(300, 270))]))
    )
    assert "within noise" not in " ".join(sentences)
    assert any("cannot be decided" in sentence for sentence in sentences)


def test_without_uncertainty_the_ranges_of_steady_windows_decide() -> None:
    of_extreme = Uncertainty(reason=EXTREME)
    _, apart = compared(run_with([90, 110], of_extreme), run_with([120, 140], of_extreme))
    _, meeting = compared(run_with([90, 110], of_extreme), run_with([100, 140], of_extreme))
    _, alone = compared(run_with([100], of_extreme), run_with([140], of_extreme))
    changes = [entry.change for entry in (apart, meeting, alone)]
    assert changes == [Change.BETTER, Change.WITHIN_NOISE, Change.INCONCLUSIVE]


def test_a_comparison_as_csv_has_the_interval_of_the_ratio() -> None:
    comparison = compare([run_with([100, 100], even(100, 3)), run_with([110, 110], even(110, 3.3))])
    text = "".join(render_csv(build_comparison_table(comparison)))
    first, second, *_ = csv.DictReader(io.StringIO(text))
    assert (first["u95"], first["ratio_low_95"]) == ("3.0", "")
    assert float(second["u95"]) == pytest.approx(3.3)
    assert float(second["ratio_low_95"]) == pytest.approx(1.1 * 0.958, abs=0.001)
    assert float(second["ratio_high_95"]) == pytest.approx(1.1 * 1.0440, abs=0.001)


def test_a_run_is_within_noise_of_itself(result: RunResult) -> None:
    entries = [row.entries[1] for row in compare([result, result]).rows if row.entries[1].ratio]
    known = [entry for entry in entries if entry.ratio_uncertainty and entry.ratio_uncertainty.known]
    assert known
    assert {entry.change for entry in known} == {Change.WITHIN_NOISE}


CLAIM = """
[[claim]]
test = "iops"
metric = "iops"
read_percent = 0
block_size = "4k"
{limit}
"""


def found(limit: str, uncertainty: Uncertainty | None) -> ClaimResult:
    claims = parse_claims(CLAIM.format(limit=limit), file="claims.toml")
    run = run_with([100, 100], uncertainty)
    (finding,) = check_claims(claims, run, load=lambda path: pytest.fail(f"no {path}"), folder=Path()).claim_results
    return finding


@pytest.mark.parametrize(
    ("limit", "state", "certain", "sigmas", "text"),
    [
        ("at_least = 90", ClaimState.MET, True, 2.5, "+11.1 %, 2.5 sigma"),
        ("at_least = 92", ClaimState.MET, True, 2.0, "+8.7 %, 2.0 sigma"),
        ("at_least = 95", ClaimState.MET, False, 1.25, "+5.3 %, 1.2 sigma"),
        ("at_least = 104", ClaimState.NOT_MET, False, -1.0, "-3.8 %, 1.0 sigma"),
        ("at_least = 110", ClaimState.NOT_MET, True, -2.5, "-9.1 %, 2.5 sigma"),
        ("at_most = 110", ClaimState.MET, True, 2.5, "+9.1 %, 2.5 sigma"),
        ("at_most = 99", ClaimState.NOT_MET, False, -0.25, "-1.0 %, 0.2 sigma"),
        ("at_least = 10", ClaimState.MET, True, 22.5, "+900.0 %, over 10 sigma"),
    ],
)
def test_the_value_decides_and_the_uncertainty_says_how_surely(
    limit: str, state: ClaimState, certain: bool, sigmas: float, text: str
) -> None:
    """The value decides whether a claim is met. The uncertainty decides whether this result is certain. In these cases,
    the value is 100 ± 8, so the standard uncertainty is 4.
    """
    finding = found(limit, even(100, 8))
    assert (finding.state, finding.certain, describe_claim(finding).margin) == (state, certain, text)
    assert finding.margin_sigmas == pytest.approx(sigmas)
    told = f"{state.value}, within the uncertainty" if not certain else state.value
    assert describe_claim(finding).state == told
    doubt = "the limit lies within the uncertainty (95 %)"
    assert finding.note == (None if certain else doubt)


def test_a_value_without_uncertainty_is_judged_all_the_same() -> None:
    finding = found("at_least = 90", Uncertainty(reason=ONCE))
    assert (finding.state, finding.certain, finding.margin_sigmas) == (ClaimState.MET, None, None)
    assert describe_claim(finding).margin == "+11.1 %"
    assert finding.note == f"no uncertainty: {ONCE}"
    assert not finding.is_confirmed


def test_a_lower_limit_of_the_uncertainty_can_show_doubt_alone() -> None:
    """A lower limit of the uncertainty can show that the result of a claim is in doubt, but never that the result is
    certain.
    """
    limit = replace(even(100, 8), at_least=True)
    beyond, within = found("at_least = 80", limit), found("at_least = 95", limit)
    assert (beyond.state, beyond.certain, within.certain) == (ClaimState.MET, None, False)
    assert not beyond.is_confirmed
    assert beyond.note == "only a lower limit of the uncertainty is known"
    greater = replace(even(200, 8), at_least=True)
    for ranges, change in (
        (([95, 105], [195, 205]), Change.BETTER),
        (([50, 195], [190, 205]), Change.WITHIN_NOISE),
        (([100], [200]), Change.INCONCLUSIVE),
    ):
        _, entry = compared(run_with(ranges[0], limit), run_with(ranges[1], greater))
        assert entry.change is change


@pytest.mark.parametrize(
    ("rounds", "certain", "doubt"),
    [
        ([90.0, 105.0], True, ""),
        ([90.0, 111.0], None, ", and 1 of 2 rounds alone do not meet the limit"),
        ([90.0, None], None, f", and 1 of 2 rounds alone: {TOO_FEW_IOS}"),
        ([100.0], None, ", and there is only one round"),
    ],
)
def test_a_tail_is_sure_if_every_round_meets_the_limit_by_itself(
    rounds: list[float | None], certain: bool | None, doubt: str
) -> None:
    """A claim about a tail latency is certain only if every single round meets the limit. Slow I/Os occur in bursts, so
    the interval is only a lower limit of the uncertainty.
    """
    run = run_with(rounds, replace(even(100, 8), at_least=True))
    (section,) = run.tests[0].sections
    (cell,) = section.cells
    cell = replace(cell, all=dict.fromkeys(cell.all, 100.0))
    section = replace(section, cells=(cell,))
    run = replace(run, tests=(replace(run.tests[0], sections=(section,)),))
    text = CLAIM.format(limit="at_most = 110").replace('"iops"\nread', '"p99.9_us"\nread')
    (finding,) = check_claims(
        parse_claims(text, file="claims.toml"), run, load=lambda _: run, folder=Path()
    ).claim_results
    assert (finding.state, finding.certain) == (ClaimState.MET, certain)
    assert finding.note == (f"{LOWER_LIMIT}{doubt}" if doubt else None)


def test_a_value_that_can_only_be_on_the_good_side_is_sure() -> None:
    """A claim is certain if the whole interval meets the limit, even if one end equals the limit. For example, a
    recovery time of at most 100 s certainly meets a limit of 100 s.
    """
    finding = found("at_most = 100", Uncertainty(standard=1.0, low=95.0, high=100.0))
    assert (finding.state, finding.certain) == (ClaimState.MET, True)


def test_a_baseline_is_as_uncertain_as_the_run() -> None:
    """The uncertainty of the baseline is as important as the uncertainty of the run. If either of them is not known,
    the certainty of the claim is not known.
    """
    claims = parse_claims('[baseline]\nrun = "b.tkperf"\nwithin_percent = 0.001', file="claims.toml")
    run, earlier = run_with([110, 110], even(110, 8)), run_with([100, 100], even(100, 8))
    findings = check_claims(claims, run, load=lambda _: earlier, folder=Path()).claim_results
    assert [(finding.state, finding.certain) for finding in findings] == [(ClaimState.MET, False)]
    of_unknown = run_with([100, 100], None)
    findings = check_claims(claims, run, load=lambda _: of_unknown, folder=Path()).claim_results
    assert [(finding.state, finding.certain) for finding in findings] == [(ClaimState.MET, None)]


def test_a_baseline_is_compared_by_levels() -> None:
    """A baseline is judged with the interval of the level. A fixed limit is judged with the wider interval of the next
    measurement.
    """
    narrow = replace(even(100, 30), level=Interval(low=98, high=102))
    earlier = run_with([100, 100], narrow)
    text = '[baseline]\nrun = "b.tkperf"\nwithin_percent = 10'
    for claims, certain in ((text, True), (CLAIM.format(limit="at_least = 90"), False)):
        (finding,) = check_claims(
            parse_claims(claims, file="claims.toml"), earlier, load=lambda _: earlier, folder=Path()
        ).claim_results
        assert (finding.state, finding.certain) == (ClaimState.MET, certain)
        assert finding.uncertainty == narrow


def test_a_gate_can_ask_for_more_than_luck(folder: Path, result: RunResult) -> None:
    """The exit code of a check depends only on the values, unless ``--require-confidence`` is given."""
    cell = next(
        cell
        for cell in result.tests[0].sections[0].cells
        if (cell.workload.read_percent, cell.workload.block_size_bytes) == (0, 4096)
    )
    value, known = cell.value(IOPS), cell.uncertainty_of(IOPS)
    assert value is not None
    assert known is not None
    assert known.low is not None
    path, run = folder / "claims.toml", str(folder / "run.tkperf")
    for limit, code in ((known.low * 0.99, 0), ((known.low + value) / 2, 1)):
        path.write_text(CLAIM.format(limit=f"at_least = {limit}"))
        assert CliRunner().invoke(cli, ["check", run, str(path)]).exit_code == 0
        asked = CliRunner().invoke(cli, ["check", run, str(path), "--require-confidence"])
        assert asked.exit_code == code
    claims = parse_claims(path.read_text(), file="claims.toml")
    checked = check_claims(claims, result, load=lambda _: result, folder=folder)
    assert 'errors="0"' in render_junit(checked)
    assert 'errors="1"' in render_junit(checked, confirmed=True)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.0123, "0.012"),
        (0.35, "0.35"),
        (1.44, "1.4"),
        (9.96, "10"),
        (14.2, "14"),
        (310.4, "310"),
        (12345, "12,000"),
        (float("inf"), "inf"),
    ],
)
def test_an_uncertainty_is_given_to_two_digits(value: float, text: str) -> None:
    assert two_digits(value) == text


def test_it_is_told_in_words() -> None:
    rounds = replace(even(1000, 12.0), degrees_of_freedom=4)
    text = f"1,000 IOPS; {INTERVAL}: ± 12 (1.2 %) IOPS, from the spread of the rounds, 4 degrees of freedom"
    assert describe_value(1000, rounds, IOPS) == text
    p99 = Uncertainty(low=90.0, high=None, basis=Basis.COUNTS, at_least=True)
    text = f"100 µs; {INTERVAL}: above 90.0 or wider µs, from the number of I/Os"
    assert describe_value(100, p99, percentile(99.0)) == text
    assert describe_value(100, Uncertainty(reason=EXTREME), LATENCY_MAX) == (f"100 µs; no uncertainty: {EXTREME}")
    assert (describe_value(None, rounds, IOPS), describe_value(1.5, None, IOPS)) == ("", "1.5 IOPS")
    assert add_interval(93_883.4, replace(even(93_883.4, 12.0), degrees_of_freedom=4)) == ("93,883 ±\u00a012")
    uneven = Uncertainty(standard=1.0, low=99.0, high=103.0, basis=Basis.COUNTS)
    assert add_interval(100, uneven) == "100.0 (99.0 to 103.0)"
    assert add_interval(None, None) == "-"
    assert add_interval(1000, replace(rounds, at_least=True)) == "1,000, at least ±\u00a012"
    assert add_interval(100, replace(uneven, at_least=True)) == "100.0 (99.0 to 103.0 or wider)"
    assert add_interval(100.44, None) == "100.4"


def test_a_table_of_several_measures_names_each() -> None:
    figures = [
        (IOPS, 100.0, even(100, 1)),
        (IOPS, 100.0, even(100, 3)),
        (LATENCY_MEAN, 10.0, replace(even(10, 1), at_least=True)),
        (LATENCY_MAX, 10.0, Uncertainty(reason=EXTREME)),
    ]
    limit = "IOPS ± 1.0 to 3.0 %; mean latency ± 10 %; some are lower limits"
    assert summarise(figures) == (f"Uncertainty ({INTERVAL}): {limit}",)
    once = [(IOPS, 100.0, Uncertainty(reason=ONCE))]
    assert summarise(once) == (f"Uncertainty not known: {ONCE}",)
    assert summarise([(IOPS, 100.0, None), (IOPS, None, None)]) == ()


def test_measures_that_are_as_uncertain_are_named_together() -> None:
    """Quantities with the same uncertainty are named together. Otherwise the line below the table of a stream would
    contain the same phrase seven times.
    """
    open_ended = Uncertainty(low=9.0, high=None, basis=Basis.COUNTS)
    figures = [
        (IOPS, 100.0, Uncertainty(reason=ONCE)),
        (LATENCY_MEAN, 10.0, even(10, 1)),
        *((percentile(share), 10.0, open_ended) for share in (50.0, 99.0, 99.9)),
    ]
    text = "mean latency ± 10 %; p50, p99, p99.9 latency without an upper end"
    assert summarise(figures) == (f"Uncertainty ({INTERVAL}): {text}", f"Not known for the others: {ONCE}")
    assert summarise([*figures, (IOPS, 100.0, even(100, 10))])[0] == (
        f"Uncertainty ({INTERVAL}): IOPS, mean latency ± 10 %; p50, p99, p99.9 latency without an upper end"
    )


def test_an_uncertainty_as_great_as_the_figure_gives_no_number() -> None:
    """An uncertainty above 100 % is shown as "at least ± 100 %", because a greater number contains no more information.
    The data contain the exact number.
    """
    vague = even(10, 1000)
    assert describe_interval(10, vague) == "at least ± 100 %"
    assert add_interval(10, vague) == "10.00, at least ±\u00a0100 %"
    assert describe_share(3600) == "at least ± 100 %"
    assert describe_share(99, at_least=True) == "at least ± 99 %"
    (line,) = summarise([(IOPS, 10.0, even(10, 1)), (IOPS, 10.0, vague)])
    assert line == f"Uncertainty ({INTERVAL}): ± 10 % to at least ± 100 %"
    entry = Entry(value=10.0, ratio=1.0, ratio_uncertainty=even(1, 36))
    assert describe_ratio(entry) == "×1.000 at least ± 100 %"


def test_an_uneven_interval_has_no_sigma() -> None:
    """A claim with an asymmetric interval has no margin in standard deviations. The note states only whether the
    interval contains the limit.
    """
    finding = found("at_most = 41", Uncertainty(standard=300.0, low=30.0, high=1200.0))
    assert (finding.state, finding.certain) == (ClaimState.NOT_MET, False)
    assert (finding.margin_sigmas, describe_claim(finding).margin) == (None, "-143.9 %")
    assert finding.note == "the limit lies within the uncertainty (95 %)"
