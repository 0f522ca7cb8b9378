"""How runs stand: found in milliseconds, and never told what nobody looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

import tkperf
from tests.runfile.runs import a_run, a_step
from tkperf.cli.status import read_state
from tkperf.model.disturbance.codes import Disturbance, DisturbanceCode
from tkperf.model.record import RunStatus
from tkperf.pipeline.api import run
from tkperf.runner.events import RunEnded, StepEnded, TestEnded

SHORT = Path(__file__).parents[1] / "short.toml"
FOREIGN = Disturbance(
    code=DisturbanceCode.FOREIGN_IO, text="others read 3 MB", started_s=0.0, duration_s=1.0
)


def test_at_a_simulated_drive_nobody_looked_for_disturbances(tmp_path: Path) -> None:
    """Not 0: there is nothing that could have been seen."""
    plan = tkperf.make_plan("ssd", "sim:sata-ssd", profile=str(SHORT), tests=("lat",))
    run(plan, "n", folder=tmp_path)
    state = read_state(tmp_path / "n.tkperf")
    assert state.state == "complete"
    assert state.disturbed_steps is None
    assert (state.test, state.tests) == (None, 1)


def ended(folder: Path, *disturbed: bool, looked: bool) -> Path:
    """A run that has ended, of steps of which some were disturbed."""
    path, writer = a_run(folder)
    for number, is_disturbed in enumerate(disturbed, 1):
        step = a_step(
            number,
            disturbances=(FOREIGN,) if is_disturbed else (),
            foreign_read_bytes=0 if looked else None,
            foreign_write_bytes=0 if looked else None,
        )
        writer(StepEnded(test="iops", record=step))
    writer(TestEnded(test="iops", status=RunStatus.COMPLETE, at_s=9.0))
    writer(RunEnded(status=RunStatus.COMPLETE, because=None, ended_utc="2026-01-01T00:00:09+00:00"))
    writer.close()
    return path


@pytest.mark.parametrize(
    ("disturbed", "looked", "count"),
    [
        ((False, False), False, None),
        ((False, False), True, 0),
        ((True, False, True), True, 2),
        ((True, False), False, 1),
    ],
)
def test_disturbed_steps_are_counted(
    tmp_path: Path, disturbed: tuple[bool, ...], looked: bool, count: int | None
) -> None:
    assert read_state(ended(tmp_path, *disturbed, looked=looked)).disturbed_steps == count


def test_of_a_run_that_is_complete_no_step_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There may be thousands in each of a thousand files."""
    path = ended(tmp_path, False, True, looked=True)
    before = read_state(path)

    def never(*_: object) -> None:
        raise AssertionError("a step is read")

    monkeypatch.setattr("tkperf.runfile.log_rows.parse_step", never)
    assert read_state(path) == before
    assert before.elapsed_s == 9.0
