"""How runs stand: found in milliseconds, and never told what nobody looked for."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import tkperf
from tests.runfile.runs import a_run, a_step
from tkperf.analysis.run_results import analyse
from tkperf.analysis.verdict import judge_run
from tkperf.cli.main import cli
from tkperf.model.disturbance.codes import Disturbance, DisturbanceCode
from tkperf.model.record import RunStatus, StepKind
from tkperf.page.words.run import find_badges
from tkperf.page.words.uncertainty import describe_counts
from tkperf.pipeline.api import run
from tkperf.pipeline.following import read_overview
from tkperf.runfile.reader import read_run
from tkperf.runner.events import RunEnded, StepEnded, TestEnded

SHORT = Path(__file__).parents[1] / "short.toml"
FOREIGN, GAP, REPEATED = (
    Disturbance(code=code, text="others read 3 MB", started_s=0.0, duration_s=1.0)
    for code in (
        DisturbanceCode.FOREIGN_IO,
        DisturbanceCode.IDLE_BEFORE,
        DisturbanceCode.REPEATED,
    )
)


def test_at_a_simulated_drive_nobody_looked_for_disturbances(tmp_path: Path) -> None:
    """Not 0: there is nothing that could have been seen."""
    plan = tkperf.make_plan("ssd", "sim:sata-ssd", profile=str(SHORT), tests=("lat",))
    run(plan, "n", folder=tmp_path)
    state = read_overview(tmp_path / "n.tkperf")
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
    assert read_overview(ended(tmp_path, *disturbed, looked=looked)).disturbed_steps == count


def test_of_a_run_that_is_complete_no_step_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There may be thousands in each of a thousand files."""
    path = ended(tmp_path, False, True, looked=True)
    before = read_overview(path)

    def never(*_: object) -> None:
        raise AssertionError("a step is read")

    monkeypatch.setattr("tkperf.runfile.log_rows.parse_step", never)
    assert read_overview(path) == before
    assert before.elapsed_s == 9.0


def test_the_verdict_is_that_of_the_results(tmp_path: Path) -> None:
    """It is looked for only when asked for, as it needs every step."""
    path = ended(tmp_path, True, False, looked=True)
    assert read_overview(path).verdict is None
    found = read_overview(path, judged=True)
    assert found.verdict is judge_run(analyse(read_run(path))).state
    assert replace(found, verdict=None) == read_overview(path)
    assert (found.tests_done, found.tests) == (1, 1)


def test_of_many_runs_none_is_judged_but_those_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list of an archive must not take minutes."""
    path = ended(tmp_path, False, looked=True)
    for number in range(25):
        shutil.copy(path, tmp_path / f"r{number}.tkperf")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tkperf.pipeline.following.find_running", list)
    for words, judged in (([], False), (["r1.tkperf"], True)):
        done = CliRunner().invoke(cli, ["status", "--json", *words])
        assert done.exit_code == 0, done.output
        verdicts = {run["verdict"] for run in json.loads(done.output)["runs"]}
        assert (verdicts != {None}) is judged
    assert "name those to judge" in CliRunner().invoke(cli, ["status"]).output


def test_every_output_counts_the_same_disturbed_steps(tmp_path: Path) -> None:
    """Fills included, each step once however many kinds there are; a step that was only repeated is none."""
    path, writer = a_run(tmp_path)
    found = [(FOREIGN, GAP), (FOREIGN,), (REPEATED,)]
    for number, disturbances in enumerate(found, 1):
        kind = StepKind.FILL if number == 1 else StepKind.ROUND
        step = a_step(number, kind=kind, disturbances=disturbances, foreign_read_bytes=0)
        writer(StepEnded(test="iops", record=step))
    writer.close()
    result = analyse(read_run(path))
    (badge,) = [text for text in find_badges(result) if text.startswith("DISTURBED")]
    assert "others influenced 2 steps, fills included" in badge
    (test,) = result.tests
    assert describe_counts(test.disturbed_steps, None, test.steps) == (
        "2 steps, fills included: 2 steps with other I/O on the device; 1 step with idle time before "
        "the step; 1 step measured again"
    )
    assert read_overview(path).disturbed_steps == 2
