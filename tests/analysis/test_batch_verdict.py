"""The verdict on a batch: its exit code, its remaining time, and the cohort of its drives."""

from __future__ import annotations

import pytest

from tests.batches import batch, drive, measured
from tkperf.analysis.batch_verdict import BatchDriveResult, compare_drives, exit_code_of, find_batch_remaining_s
from tkperf.model.batch_state import DriveStage
from tkperf.model.errors import ExitCode

HOUR = 3600.0


def test_a_batch_whose_drives_are_all_done_ends_with_0_or_as_its_claims() -> None:
    state = batch(drive(1), drive(2))
    assert exit_code_of(state) == ExitCode.DONE
    assert exit_code_of(state, claims_pass=True) == ExitCode.DONE
    assert exit_code_of(state, claims_pass=False) == ExitCode.CLAIMS_NOT_MET


@pytest.mark.parametrize(
    ("codes", "expected"), [((5, 4), 4), ((4, 3), 3), ((130, 2), 2), ((6, 2), 6), ((3, 70), 70), ((70, 137), 137)]
)
def test_the_worst_drive_decides(codes: tuple[int, int], expected: int) -> None:
    failed = [drive(number, DriveStage.FAILED, exit_code=code) for number, code in enumerate(codes, start=1)]
    assert exit_code_of(batch(*failed, drive(3)), claims_pass=False) == expected


@pytest.mark.parametrize("stage", sorted(set(DriveStage) - {DriveStage.DONE, DriveStage.FAILED}))
def test_what_goes_on_with_resume_counts_as_stopped(stage: DriveStage) -> None:
    assert exit_code_of(batch(drive(1), drive(2, stage))) == ExitCode.STOPPED


def test_each_drive_that_waits_begins_when_one_that_runs_has_ended() -> None:
    running = [(1 * HOUR, 2 * HOUR), (3 * HOUR, 3 * HOUR)]
    assert find_batch_remaining_s(running, 0, []) == (3 * HOUR, 3 * HOUR)
    assert find_batch_remaining_s(running, 2, [(4 * HOUR, 5 * HOUR)]) == (7 * HOUR, 8 * HOUR)


def test_the_remaining_time_is_not_known_without_that_of_each_drive() -> None:
    assert find_batch_remaining_s([(1.0, 2.0), None], 0, []) is None
    assert find_batch_remaining_s([(1.0, 2.0)], 1, []) is None
    assert find_batch_remaining_s([], 0, []) == (0.0, 0.0)


def test_drives_are_compared_with_those_of_their_model() -> None:
    others = [measured(number, 10.0, model="another") for number in (7, 8, 9)]
    odd = measured(10, 10.0, model="a third")
    drives = [*others, *(measured(number, 100.0 + number) for number in range(1, 7)), odd]
    names = {one.number: one.state.shown.label for one in drives}
    groups, why = compare_drives(drives, names)
    assert not why
    assert [[one.number for one in group.drives] for group in groups] == [[1, 2, 3, 4, 5, 6], [7, 8, 9]]
    assert groups[0].compared.names[0] == "slot 1 (S1)"


def test_fewer_than_three_drives_are_not_compared() -> None:
    drives = [measured(1, 1.0), measured(2, 1.0), BatchDriveResult(state=drive(3))]
    groups, why = compare_drives(drives, {1: "a", 2: "b", 3: "c"})
    assert groups == ()
    assert "fewer than 3 drives" in why


def test_a_stopped_drive_repeats_no_commands_of_its_run() -> None:
    text = "stopped by the user; everything is kept; continue: tkperf resume a.tkperf"
    assert drive(1, DriveStage.STOPPED, text=text).outcome == "stopped by the user"
    assert drive(1, DriveStage.FAILED, text="pulled; see dmesg").outcome == "failed: pulled; see dmesg"
