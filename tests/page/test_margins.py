"""The beginning of the results of a batch and of a check. The tests cover the title, the order of drives, the matrix of
margins, and the dot charts of values and limits.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from tests.batches import answer_of, checked_answer, claims_of, drive, measured
from tkperf.analysis.batch_verdict import BatchDriveResult, BatchResult, sort_drives
from tkperf.analysis.comparing.arrangements import describe_distribution
from tkperf.model.batch_state import DriveStage
from tkperf.page.batch.batch_results_page import build_batch_page
from tkperf.page.batch.batch_verdict_texts import describe_batch_title
from tkperf.page.batch.drives_matrix import build_batch_tiles
from tkperf.page.check import build_check_page, build_claims_page
from tkperf.page.claim_texts import name_columns
from tkperf.page.margins import MOST_CLAIM_COLUMNS, describe_misses
from tkperf.page.matrix import DecisionView, Sign
from tkperf.page.strip import Dot, Limit, TickKind, build_dot_strip
from tkperf.page.verdict_texts import NoteLevel
from tkperf.render.html import render_view

CLAIMS = claims_of((0, 95.0), (100, 199.0))
# Because of the limit of 200, the margin of the second claim is 0.5 %.
VALUES = (100.0, 101.0, 99.5, 100.5, 99.7)


def many(*odd: float) -> list[BatchDriveResult]:
    return [measured(number, value) for number, value in enumerate((*VALUES, *odd), start=1)]


def decision_of(result: BatchResult) -> DecisionView:
    decision = build_batch_page(result).decision
    assert decision is not None
    return decision


@pytest.mark.parametrize(
    ("odd", "claims", "title"),
    [
        ((), CLAIMS, "All 5 drives pass both claims"),
        ((90.0,), CLAIMS, "1 of 6 drives misses 2 claims, 5 pass"),
        ((90.0, 89.0), CLAIMS, "2 of 7 drives miss 2 claims each, 5 pass"),
        ((90.0, 99.0), CLAIMS, "2 of 7 drives miss 3 claims in all, 5 pass"),
        (
            (),
            claims_of((0, 95.0), (65, 1.0)),
            "No drive of 5 passes both claims; 5 claims of 5 drives were not measured",
        ),
        (
            (90.0,),
            claims_of((0, 95.0), (65, 1.0)),
            "1 of 6 drives misses 1 claim; 6 claims of 6 drives were not measured",
        ),
    ],
)
def test_the_title_counts_what_is_missed_and_what_was_not_measured(
    odd: tuple[float, ...], claims: str, title: str
) -> None:
    assert describe_batch_title(checked_answer(many(*odd), claims)) == title


def test_the_title_names_drives_that_were_not_measured_to_their_end() -> None:
    rest = [
        BatchDriveResult(state=drive(7, DriveStage.FAILED, exit_code=4, text="pulled")),
        BatchDriveResult(state=drive(8, DriveStage.STOPPED)),
        BatchDriveResult(state=drive(9, DriveStage.CONSENT_ENDED)),
    ]
    title = describe_batch_title(checked_answer([*many(90.0), *rest], CLAIMS))
    assert title == (
        "1 of 9 drives misses 2 claims, 5 pass; the run of 1 drive failed; 1 drive did not begin; 1 drive was stopped"
    )
    assert describe_batch_title(answer_of(*many(80.0))) == "1 of 6 drives is unlike the others"
    assert describe_batch_title(answer_of(*many())) == "5 drives measured, none is unlike the others"
    assert describe_batch_title(answer_of(*many()[:2])) == "2 drives measured"


def test_a_stopped_drive_that_misses_a_claim_is_named() -> None:
    """The verdict names a drive that was stopped and misses a claim. A number alone in the title would not help the
    reader to find the drive.
    """
    stopped = replace(measured(6, 90.0), state=drive(6, DriveStage.STOPPED))
    page = build_batch_page(checked_answer([*many(), stopped], CLAIMS))
    assert page.title == "1 of 6 drives misses 2 claims, 5 pass; 1 drive was stopped"
    assert page.verdict.title == "Fail"
    assert page.verdict.reasons[0].startswith("slot 6 (S6) misses ")


def test_what_needs_attention_comes_first_then_the_least_margin() -> None:
    """Drives that need attention come first. The groups, in order, are: failed, missing a claim, not measured to the
    end, not judged, passing, and not done. Within a group, the drive with the smallest margin comes first.
    """
    unread = replace(measured(9, 100.0), not_checked="no test in common")
    drives = [
        *many(90.0, 80.0),
        BatchDriveResult(state=drive(8, DriveStage.FAILED, exit_code=4)),
        unread,
        BatchDriveResult(state=drive(10, DriveStage.KILLED)),
        BatchDriveResult(state=drive(11, DriveStage.RUNNING)),
    ]
    result = checked_answer(drives, CLAIMS)
    without = [replace(one, checked=None) if one.number == 9 else one for one in result.drives]
    ordered = [one.number for one in sort_drives(replace(result, drives=tuple(without)))]
    assert ordered == [8, 7, 6, 10, 9, 3, 5, 1, 4, 2, 11]


def unsteady(number: int, value: float) -> BatchDriveResult:
    one = measured(number, value)
    assert one.result is not None
    (test,) = one.result.tests
    sections = tuple(replace(section, steady=False) for section in test.sections)
    return replace(one, result=replace(one.result, tests=(replace(test, sections=sections),)))


def test_the_least_margin_does_not_hide_a_worse_value_that_is_not_judged() -> None:
    """A line names a drive whose value is far beyond a limit, even if the value is not judged. If the value is on the
    good side of its limit, the line does not appear.
    """
    words = "Beyond its limit, but not judged"
    result = checked_answer([*many(), unsteady(6, 20.0), unsteady(7, 30.0)], CLAIMS)
    lines = dict(decision_of(result).lines)
    assert lines[words] == "slot 6: 4 KiB random read IOPS ≥ 199 (40.0, -79.9 %, not steady); 3 more values"
    page = build_check_page([one.file for one in result.drives])
    assert page.decision is not None
    assert dict(page.decision.lines)[words] == lines[words].replace("slot 6", "lot-06")
    assert words not in dict(decision_of(checked_answer([*many(), unsteady(6, 300.0)], CLAIMS)).lines)


@pytest.mark.parametrize("limit", ["at_most = 0", "at_most = 1e-300", "at_least = 1e-300", "at_least = 0"])
def test_a_limit_next_to_0_has_pages_without_a_number_that_means_nothing(limit: str) -> None:
    """If a limit is 0 or close to 0, the pages contain no meaningless numbers. A distance from 0 cannot be expressed in
    percent, and a limit close to 0 does not lead to a margin of 300 digits.
    """
    claims = claims_of((0, 1.0)).replace("at_least = 1.0", limit)
    result = checked_answer(many(), claims)
    files = [one.file for one in result.drives]
    checked = files[0].checked
    assert checked is not None
    for page in (build_batch_page(result), build_check_page(files), build_claims_page(checked)):
        text = re.sub(r"<(script|style).*?</\1>", "", render_view(page), flags=re.DOTALL)
        found = re.search(r".{20}(\b(NaN|nan|inf|None)\b|e[+]\d\d|(\d,?){15})", re.sub(r"<[^>]*>", " ", text))
        assert not found, found
        assert page.verdict.title.endswith("Fail" if limit.startswith("at_most") else "Pass")


def test_a_claim_without_a_margin_in_percent_is_the_first_of_those_that_are_missed() -> None:
    """Claims and drives are sorted with the same rule. A missed claim with a limit of 0 precedes all claims with
    margins. A met claim with a limit of 0 follows all claims with margins.
    """
    at_most_0 = claims_of((100, 1.0)).replace("at_least = 1.0", "at_most = 0")
    answer = checked_answer(many(90.0), f"{claims_of((0, 95.0))}{at_most_0}")
    last = answer.drives[-1].checked
    assert last is not None
    missed, unlimited = last.claim_results
    assert sorted((missed, unlimited), key=last.rank) == [unlimited, missed]
    assert describe_misses(last, name_columns([answer.drives[-1].file]), 3).startswith("4 KiB random read")
    assert {one.file.order for one in answer.drives} == {(0, -math.inf)}
    met = checked_answer(many(90.0), claims_of((0, 95.0)) + at_most_0.replace("at_most", "at_least")).drives[-1]
    assert met.checked is not None
    assert met.file.order[1] == pytest.approx(100 * (90 / 95 - 1))
    assert [met.checked.rank(one)[1] for one in met.checked.claim_results][-1] == math.inf


def test_a_cell_has_margin_sign_and_value() -> None:
    """Each cell contains a margin, a sign and a value. Missed, close and unjudged claims have different signs, so that
    readers do not need to distinguish colours.
    """
    view = decision_of(checked_answer(many(90.0), claims_of((0, 95.0), (100, 199.0), (65, 1.0))))
    assert [column.detail for column in view.columns[1:]] == ["≥ 95", "≥ 199", "≥ 1"]
    first, *_, last = view.rows
    assert (first.name, first.detail) == ("slot 6", "S6")
    result, missed, _, absent = first.cells
    assert (result.text, result.sign, result.level) == ("misses 2, 1 not judged", Sign.MISSED, NoteLevel.FAILURE)
    assert (missed.text, missed.sign, missed.words) == ("-5.3 %", Sign.MISSED, "90.0")
    assert (absent.text, absent.sign, absent.words) == ("", Sign.NOT_JUDGED, "not measured")
    assert (last.cells[1].sign, last.cells[2].sign) == (Sign.NONE, Sign.CLOSE)
    assert {sign for sign, _ in view.legend} >= {"✗", "○", "!"}


@pytest.mark.parametrize(
    ("value", "certain", "sign"),
    [
        (94.9, False, Sign.MISSED_UNSURE),
        (90.0, True, Sign.MISSED),
        (95.1, False, Sign.MET_UNSURE),
        (96.5, True, Sign.CLOSE),
        (96.5, None, Sign.CLOSE),
    ],
)
def test_missed_and_met_within_the_uncertainty_have_one_mark(value: float, certain: bool | None, sign: Sign) -> None:
    """If a limit lies within the 95 % interval of a value, the result is marked as not certain. The value may lie on
    either side of the limit.
    """
    words = certain is False
    result = checked_answer([*many(), measured(6, value)], claims_of((0, 95.0)))
    last = result.drives[-1]
    assert last.checked is not None
    checked = replace(
        last.checked, claim_results=tuple(replace(one, certain=certain) for one in last.checked.claim_results)
    )
    result = replace(result, drives=(*result.drives[:-1], replace(last, checked=checked)))
    (row,) = (row for row in decision_of(result).rows if row.name == "slot 6")
    assert row.cells[1].sign is sign
    shown = " ".join((build_batch_page(result).verdict.text, *dict(decision_of(result).lines).values()))
    assert ("within the uncertainty" in shown) is words
    check = build_check_page([one.file for one in result.drives])
    if sign in (Sign.MISSED, Sign.MISSED_UNSURE):
        assert ("within the uncertainty" in check.verdict.text) is words
    html = render_view(build_batch_page(result))
    assert ('class="failure unsure"' in html) is (sign is Sign.MISSED_UNSURE)


def test_a_value_that_is_not_steady_is_not_called_within_its_uncertainty() -> None:
    """A value that is not steady is not described as "within its uncertainty". Its interval is computed from rounds
    that differ greatly, so even a distance of 476 % within this interval would be meaningless.
    """
    result = checked_answer([*many(), unsteady(6, 20.0)], claims_of((0, 95.0)))
    last = result.drives[-1]
    assert last.checked is not None
    unsure = tuple(replace(one, certain=False) for one in last.checked.claim_results)
    last = replace(last, checked=replace(last.checked, claim_results=unsure))
    lines = dict(decision_of(replace(result, drives=(*result.drives[:-1], last))).lines)
    words = "slot 6: 4 KiB random write IOPS ≥ 95 (20.0, -78.9 %, not steady)"
    assert lines["Beyond its limit, but not judged"] == words


def test_failed_fails_and_fail_have_three_words() -> None:
    """The texts use three different words: a run "failed", a drive "misses" a claim, and the verdict is "Fail". The
    reason for each number is in the texts.
    """
    drives = [*many(90.0), replace(measured(7, 100.0), state=drive(7, DriveStage.FAILED, exit_code=4, text="pulled"))]
    page = build_batch_page(checked_answer(drives, claims_of((0, 95.0), (65, 1.0))))
    assert page.verdict.title == "Fail"
    assert page.verdict.reasons[0] == "the run of slot 7 (S7) failed, 1 claim was not measured: pulled"
    assert page.decision is not None
    results = {row.name: row.cells[0].text for row in page.decision.rows}
    assert (results["slot 6"], results["slot 7"]) == ("misses 1, 1 not judged", "run failed")


def test_a_strip_has_median_and_range_of_what_is_judged() -> None:
    """A dot chart shows the median and the range of the judged values. A value that is not judged has a dot, but does
    not extend the range.
    """
    tile, _ = build_batch_tiles(checked_answer([*many(), unsteady(6, 20.0)], CLAIMS))
    assert (tile.text, tile.sure) == ("median 200", "199.0 to 202")
    assert tile.strip is not None
    assert "slot 6" in [dot.name for dot in tile.strip.named]
    assert "1 not judged" in tile.strip.text
    assert tile.verdict.startswith("slot 3 ")
    html = render_view(build_batch_page(checked_answer([*many(), unsteady(6, 20.0)], CLAIMS)))
    assert "not judged, not in the median and the range" in html
    assert "</svg> misses it" not in html


def test_a_cell_leads_to_the_seconds_behind_its_value() -> None:
    first, *others = many()
    view = decision_of(checked_answer([replace(first, report="a run.html"), *others], CLAIMS))
    (row,) = (row for row in view.rows if row.name == "slot 1")
    assert row.page == "a run.html"
    assert row.cells[1].target.startswith("a%20run.html#iops0-0-4096")
    assert not any(cell.target for other in view.rows if other is not row for cell in other.cells)


def test_a_drive_unlike_the_others_has_its_page_next_to_the_batch() -> None:
    """In a batch, a drive that differs from the others has a link to its page. On the page of a comparison, the drives
    have no such links.
    """
    answer = answer_of(*many(50.0))
    drives = tuple(replace(one, report=f"{one.state.shown.name}.html") for one in answer.drives)
    page = build_batch_page(replace(answer, drives=drives))
    assert "slot 6 (S6) is unlike the others" in page.verdict.text
    assert page.decision is not None
    assert page.decision.rows[0].page == "lot-06.html"


def test_too_many_claims_leave_the_worst_in_the_matrix_and_all_in_a_table() -> None:
    """If a check has too many claims, as with a baseline of hundreds of claims, the matrix shows only the claims with
    the worst results. A table shows all claims.
    """
    claims = claims_of(*((0, limit) for limit in range(50, 50 + MOST_CLAIM_COLUMNS)), (100, 250.0))
    page = build_batch_page(checked_answer(many(), claims))
    assert page.decision is not None
    titles = [column.detail for column in page.decision.columns[1:]]
    assert len(titles) == MOST_CLAIM_COLUMNS
    assert titles[0] == "≥ 250"
    assert ("Not in the matrix", "1 claim with more to spare; the table has all") in page.decision.lines
    assert any(table.title == "All claims" for table in page.tables)


def test_without_claims_the_matrix_has_the_distance_from_the_median() -> None:
    view = decision_of(answer_of(*many(80.0)))
    first = view.rows[0]
    assert first.name == "slot 6"
    assert (first.cells[0].text, first.cells[0].sign) == ("unlike the others", Sign.OUTLIER)
    assert (first.cells[1].text, first.cells[1].sign) == ("-19.9 %", Sign.OUTLIER)


def test_two_drives_without_claims_are_compared() -> None:
    """A comparison of two drives without claims shows no distribution, because two values are too few for a
    distribution.
    """
    view = decision_of(answer_of(measured(1, 100.0), measured(2, 80.0)))
    assert not view.is_heat_map
    assert not any(cell.target for row in view.rows for cell in row.cells)


def test_a_strip_marks_median_claim_and_limits_of_outliers() -> None:
    (first, second) = build_batch_tiles(checked_answer(many(90.0), CLAIMS))
    assert first.strip is not None
    assert (first.alarm, first.verdict) == (True, "slot 6 -9.5 % ✗")
    assert [dot.name for dot in first.strip.named] == ["slot 6"]
    assert {tick.kind for tick in first.strip.ticks} >= {TickKind.MEDIAN, TickKind.CLAIM, TickKind.OUTLIER}
    assert first.strip.missed is not None
    assert first.strip.missed[0] == 0.0
    assert second.verdict == "slot 6 -5.3 % ✗"


@pytest.mark.parametrize("is_least", [True, False])
@pytest.mark.parametrize("limit", [1.0, 99.0, 10_000.0])
def test_a_dot_lies_in_the_shaded_part_if_and_only_if_its_value_misses_the_claim(limit: float, is_least: bool) -> None:
    """The dot of a value lies in the shaded part of a dot chart if and only if the value misses the claim. This rule
    also applies if the limit is drawn at the end of the scale because it is far away.
    """
    values = [97.0, 98.5, 99.5, 100.0, 101.0]
    strip = build_dot_strip(
        [(value, Dot(share=0.0, name=str(value))) for value in values],
        "",
        cohort=describe_distribution(values),
        limit=Limit(value=limit, is_least=is_least, text=""),
    )
    assert strip.missed is not None
    low, high = strip.missed
    for dot in strip.dots:
        misses = float(dot.name) < limit if is_least else float(dot.name) > limit
        assert (low < dot.share < high) is misses


def test_equal_values_are_dots_next_to_each_other() -> None:
    strip = build_dot_strip([(5.0, Dot(share=0.0))] * 4, "", cohort=None)
    assert {dot.share for dot in strip.dots} == {0.5}
    assert sorted(dot.lane for dot in strip.dots) == [-2, -1, 0, 1]


def test_the_page_of_a_check_has_a_bar_for_each_claim_and_the_worst_comes_first() -> None:
    result = checked_answer(many(96.0), CLAIMS)
    checked = result.drives[-1].checked
    assert checked is not None
    page = build_claims_page(checked)
    (table,) = page.tables
    assert page.title == "1 of 2 claims is missed"
    assert [row[1] for row in table.rows] == ["not met", "met"]
    missed, met = table.strips
    assert missed is not None
    assert met is not None
    assert missed.bar is not None
    assert missed.bar < missed.ticks[0].share
    assert met.bar is not None
    assert met.bar > met.ticks[0].share
    assert (missed.level, met.level) == (NoteLevel.FAILURE, None)


def test_drives_of_several_models_have_no_median() -> None:
    """A dot chart shows a median only if all drives are of one model. If the models differ, no drive is an outlier."""
    for models in ("MMM", "MNN"):
        drives = [measured(number, 100.0 + number, model=model) for number, model in enumerate(models, start=1)]
        result = checked_answer(drives, CLAIMS)
        page = build_check_page([one.file for one in result.drives])
        for tiles in (build_batch_tiles(result), page.headlines):
            strips = [tile.strip for tile in tiles if tile.strip is not None]
            assert len(strips) == 2
            kinds = {tick.kind for strip in strips for tick in strip.ticks}
            assert (TickKind.MEDIAN in kinds) is (models == "MMM")


def test_the_verdict_names_the_worst_misses_first() -> None:
    """If many claims are missed, the verdict names the three claims with the smallest margins. The order in the claims
    file does not matter.
    """
    claims = claims_of((0, 102.0), (0, 110.0), (100, 203.0), (100, 2000.0), (100, 1000.0))
    first, second = (one.file for one in checked_answer(many()[:2], claims).drives)
    worst = "4 KiB random read IOPS ≥ 2,000; 4 KiB random read IOPS ≥ 1,000; 4 KiB random write IOPS ≥ 110; 2 more"
    assert first.checked is not None
    assert build_claims_page(first.checked).verdict.reasons == (f"0 of 5 claims pass; misses 5 claims ({worst})",)
    # Two runs that miss the same claims are listed under one common reason, even if their smallest margins belong to
    # different claims.
    assert build_check_page([first, second]).verdict.reasons[0].count("miss 5 claims") == 1


def test_a_check_of_many_runs_opens_as_a_batch_does() -> None:
    result = checked_answer(many(90.0), CLAIMS)
    page = build_check_page([one.file for one in result.drives])
    assert page.title == "1 of 6 runs misses 2 claims, 5 pass"
    assert page.decision is not None
    assert page.decision.rows[0].cells[0].text == "misses 2"
    assert page.headlines[0].alarm
