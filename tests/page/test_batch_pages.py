"""The pages of a batch, which show its progress and its result."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

import msgspec
import pytest

from tests.batches import answer_of, batch, drive, measured
from tkperf.analysis.batch_verdict import BatchDriveResult
from tkperf.model.batch_state import DriveStage, DriveState
from tkperf.model.record import LeftOut
from tkperf.page.batch.batch_progress import build_batch_progress
from tkperf.page.batch.batch_results_page import build_batch_page
from tkperf.page.batch.batch_verdict_texts import MOST_MAIL_LINES, build_batch_mail, describe_heat
from tkperf.page.verdict_texts import NoteLevel
from tkperf.pipeline.run_state import Brief, RunState
from tkperf.render.export_batch import build_batch_tables, render_batch_json, render_batch_junit
from tkperf.render.export_markdown import render_markdown
from tkperf.render.terminal.progress_lines import TURN_EVERY_S, render_batch_lines

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
STAGES = (DriveStage.WAITING, DriveStage.DONE, DriveStage.RUNNING, DriveStage.FAILED)


def lines_of(count: int, *, width: int = 79, height: int = 23, passed_s: float = 0.0) -> list[str]:
    drives = [drive(number, STAGES[number % 4]) for number in range(1, count + 1)]
    view = build_batch_progress(batch(*drives, supervisor=1), {})
    rendered = render_batch_lines(view, width=width, height=height, now=NOW, passed_s=passed_s)
    return [line.plain for line in rendered]


def test_trouble_comes_first_then_what_runs_waits_is_done() -> None:
    stages = (*STAGES, DriveStage.RUNNING, DriveStage.KILLED)
    # The slots are in reverse order, so the test shows that the stage of a drive determines the order.
    drives = [drive(number, stage) for number, stage in enumerate(stages)]
    runs = {2: RunState(), 4: RunState(throttled={"/dev/sdz"})}
    view = build_batch_progress(batch(*drives, supervisor=1), runs)
    assert view.stages == (
        DriveStage.FAILED,
        DriveStage.KILLED,
        DriveStage.RUNNING,
        DriveStage.RUNNING,
        DriveStage.WAITING,
        DriveStage.DONE,
    )
    assert view.troubled == 3
    assert view.levels[:4] == (NoteLevel.FAILURE, NoteLevel.FAILURE, NoteLevel.CAUTION, NoteLevel.INFORMATION)
    assert any(note.text == "slot 4 (S4): throttled for heat" for note in view.remarks)


@pytest.mark.parametrize("width", [39, 79, 199])
@pytest.mark.parametrize("height", [10, 23, 50])
@pytest.mark.parametrize("count", [1, 24, 100])
def test_a_batch_fits_any_terminal(count: int, width: int, height: int) -> None:
    lines = lines_of(count, width=width, height=height)
    assert len(lines) <= height
    assert max(map(len, lines)) <= width


def test_each_drive_is_on_one_of_the_pages_and_trouble_on_all() -> None:
    seen: set[str] = set()
    for turn in range(20):
        lines = lines_of(100, passed_s=turn * TURN_EVERY_S)
        rows = [line.split() for line in lines[3:] if line.split()[:1] and line.split()[0].isdigit()]
        assert rows[0][0] == "3"
        seen |= {row[0] for row in rows}
        assert any("more drives:" in line for line in lines)
    assert seen == {str(number) for number in range(1, 101)}


BUSY = Brief(
    test="wsat",
    round="1,234 of 1,440",
    load="65/35 4k",
    newest="123,456 IOPS",
    hottest_c=61.0,
    throttled=True,
    disturbed_steps=3,
    left_s=(3600.0, 86_000.0),
)


@pytest.mark.parametrize("width", [39, 79, 99, 119, 199])
def test_the_columns_do_not_depend_on_the_values_of_the_moment(width: int) -> None:
    stages = (DriveStage.RUNNING, DriveStage.WAITING, DriveStage.DONE)
    heads = set()
    for run in ({}, {1: Brief()}, {1: BUSY}):
        for stage in stages:
            drives = (drive(1, stages[0]), drive(2, stage))
            view = build_batch_progress(batch(*drives, supervisor=1), run)
            lines = render_batch_lines(view, width=width, height=23, now=NOW)
            head = next(line.plain for line in lines if line.plain.startswith("slot"))
            heads.add(tuple(head.split()))
    assert len(heads) == 1
    if width == 79:
        assert {"serial", "round", "newest", "heat", "max"} <= set(next(iter(heads)))


def test_serial_numbers_are_as_long_as_they_have_to_be() -> None:
    drives = [drive(number, slot=None, serial=f"PHYF80{number:02}Y240AGN") for number in range(1, 12)]
    table = build_batch_progress(batch(*drives), {}).table
    serials = [row[table.columns.index("serial")] for row in table.rows]
    assert serials[0] == "…01Y240AGN"
    assert len(set(serials)) == 11


def test_drives_without_slot_and_serial_number_are_told_apart_by_their_runs() -> None:
    drives = [replace_shown(drive(number, slot=None)) for number in range(1, 31)]
    view = build_batch_progress(batch(*drives), {})
    lines = [line.plain for line in render_batch_lines(view, width=79, height=23, now=NOW)]
    assert "lot-01" in lines[4]
    assert "…" not in lines[3]


def replace_shown(one: DriveState) -> DriveState:
    return msgspec.structs.replace(one, shown=msgspec.structs.replace(one.shown, serial=None))


def six(*, odd: float = 80.0) -> list[BatchDriveResult]:
    values = (100.0, 101.0, 99.0, 100.5, 99.5)
    return [*(measured(number, value) for number, value in enumerate(values, start=1)), measured(6, odd)]


def test_a_drive_unlike_the_others_is_named_by_slot_and_serial_number() -> None:
    page = build_batch_page(answer_of(*six()))
    assert page.verdict.title == "6 drives measured"
    assert any(
        "slot 6 (S6) is unlike the others: 4 KiB random read IOPS 20 % lower" in text for text in page.verdict.reasons
    )
    drives = page.tables[0]
    assert drives.rows[0][0] == "slot 6 (S6)"


def test_like_drives_are_not_named() -> None:
    page = build_batch_page(answer_of(*six(odd=100.0)))
    assert not any("unlike" in text for text in page.verdict.reasons)


def test_what_was_not_measured_has_its_reason_and_the_next_command() -> None:
    failed = BatchDriveResult(state=drive(7, DriveStage.FAILED, exit_code=4, text="pulled; see dmesg"))
    ended = BatchDriveResult(state=drive(8, DriveStage.CONSENT_ENDED))
    answer = answer_of(*six(), failed, ended)
    page = build_batch_page(answer)
    assert page.verdict.title == "6 of 8 drives measured"
    assert page.verdict.reasons[0] == "the run of slot 7 (S7) failed: pulled"
    assert page.verdict.level is NoteLevel.FAILURE
    text = render_markdown(page)
    assert "pulled; see dmesg" in text
    assert "tkperf resume lot.batch" in text
    suite = ET.fromstring(render_batch_junit(answer))
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("8", "1", "1")


def test_heat_and_consent_are_told_in_plain_english() -> None:
    """The hottest and the coolest drive are named unless their temperatures round to the same degree. The mail states
    in words how many drives need consent again, and why.
    """
    assert list(describe_heat([(54.4, "slot 1"), (53.6, "slot 2")])) == ["Each of 2 drives reached 54 °C."]
    assert list(describe_heat([(53.0, "slot 1"), (55.0, "slot 2")])) == [
        "The hottest drive, slot 2, reached 55 °C; the coolest drive reached 53 °C."
    ]
    assert list(describe_heat([(54.0, "slot 1")])) == ["Slot 1 reached 54 °C."]
    assert not list(describe_heat([]))
    waited = [BatchDriveResult(state=drive(n, DriveStage.CONSENT_ENDED, text="it waited")) for n in (8, 9)]
    mail = build_batch_mail(answer_of(measured(1, 100.0), *waited))
    assert "2 need your consent again, 1 done" in mail
    assert any(line.endswith(" need your consent again: it waited") for line in mail)
    assert mail[0].count("1 of 3 drives measured") == 1


def test_simulated_is_said_first_in_every_output() -> None:
    answer = answer_of(BatchDriveResult(state=drive(1, path="sim:sata-ssd")))
    assert build_batch_page(answer).verdict.title.startswith("SIMULATED. ")
    assert build_batch_mail(answer)[0].startswith("lot: SIMULATED. ")
    assert json.loads(render_batch_json(answer))["verdict"]["simulated"] is True
    assert build_batch_progress(answer.state, {}).verdict.title == "SIMULATED. 1 drive"


def test_a_mail_has_at_most_twelve_lines() -> None:
    many = [
        *six(),
        *(BatchDriveResult(state=drive(n, DriveStage.FAILED, exit_code=4, text=f"fault {n}")) for n in range(7, 30)),
    ]
    lines = build_batch_mail(answer_of(*many))
    assert len(lines) <= MOST_MAIL_LINES
    assert lines[-1] == "Page: tkperf report lot.batch; continue: tkperf resume lot.batch"


def test_each_row_leads_to_the_report_that_is_there() -> None:
    first, *others = six()
    page = build_batch_page(answer_of(replace(first, report="lot-01.html"), *others))
    drives = page.tables[0]
    by_drive = {row[0]: target for row, target in zip(drives.rows, drives.pages, strict=True)}
    assert by_drive["slot 1 (S1)"] == "lot-01.html"
    assert by_drive["slot 2 (S2)"] == ""


def test_the_tables_for_programs_have_every_drive() -> None:
    drives, figures = build_batch_tables(answer_of(*six(), BatchDriveResult(state=drive(7, DriveStage.STOPPED))))
    assert len(tuple(drives.rows)) == 7
    assert {row[0] for row in figures.rows} == {1, 2, 3, 4, 5, 6}


def test_each_model_has_its_own_distribution_and_outliers() -> None:
    values = (10.0, 10.1, 9.9, 10.05, 20.0)
    others = [measured(n, value, model="another") for n, value in enumerate(values, start=11)]
    answer = answer_of(*six(), *others)
    page = build_batch_page(answer)
    reasons = " ".join(page.verdict.reasons)
    assert "slot 6 (S6) is unlike the others: 4 KiB random read IOPS 20 % lower" in reasons
    assert "slot 15 (S15) is unlike the others: 4 KiB random read IOPS 99 % higher" in reasons
    tables = [test.tables[0].title for test in page.tests if test.title.startswith("Headline figures: ")]
    assert tables == ["Distribution over 6 drives: MODEL, 1.0 GB", "Distribution over 5 drives: another, 1.0 GB"]
    charts = [chart.key for test in page.tests for chart in test.charts]
    assert len(charts) == len(set(charts))
    _, figures = build_batch_tables(answer)
    assert {row[0] for row in figures.rows} == {1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15}
    assert {one["model"] for one in json.loads(render_batch_json(answer))["figures"]} == {"MODEL", "another"}
    assert any(line.startswith("another, 1.0 GB: ") for line in build_batch_mail(answer))


def test_a_damaged_run_file_takes_no_figure_from_the_others() -> None:
    whole = measured(7, 100.0)
    assert whole.result is not None
    (test,) = whole.result.tests
    (section,) = test.sections
    rounds = tuple(replace(each, cells=each.cells[:1]) for each in section.rounds)
    less = replace(section, rounds=rounds, cells=section.cells[:1])
    result = replace(
        whole.result,
        tests=(replace(test, sections=(less,)),),
        left_out=(LeftOut(what="step 7", reason="its row is damaged"),),
    )
    answer = answer_of(*six(), replace(whole, result=result))
    assert list(build_batch_tables(answer))[1] == list(build_batch_tables(answer_of(*six())))[1]
    page = render_markdown(build_batch_page(answer))
    assert "Not compared, as the run file is damaged: slot 7 (S7)." in page
    assert "as of another model" not in page
    too_few = answer_of(*six()[:2], replace(whole, result=result))
    assert "as the run file is damaged: slot 7" in render_markdown(build_batch_page(too_few))


def test_a_drive_of_another_model_has_no_part_in_the_distribution() -> None:
    """A drive of another model is not part of the distribution. Its row still contains its figures."""
    odd = measured(7, 10.0, model="another")
    alone, mixed = (build_batch_page(answer_of(*six(odd=100.0), *more)) for more in ((), (odd,)))
    assert not any("unlike" in text for text in mixed.verdict.reasons)
    text = "Not compared, as of another model or capacity: slot 7 (S7)."
    assert text in render_markdown(mixed)
    assert text not in render_markdown(alone)
    (row,) = (row for row in mixed.tables[0].rows if row[0] == "slot 7 (S7)")
    assert {"10.00", "20.0"} <= set(row)
