"""The overview of a run is read in milliseconds. It contains no count of disturbances if tkperf did not check for
disturbances.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import tkperf
from tests.builders import run_info
from tests.runfile.runs import a_run, a_step
from tkperf.analysis.run_results import analyse
from tkperf.analysis.verdict import judge_run
from tkperf.cli.main import cli
from tkperf.model.disturbance.io import Disturbance, DisturbanceCode
from tkperf.model.errors import RunFileError
from tkperf.model.record import GoesOn, Resumption, RunStatus, StepKind
from tkperf.page.words.run import find_badges
from tkperf.page.words.uncertainty import describe_counts
from tkperf.pipeline.api import run
from tkperf.pipeline.running_runs import read_overview
from tkperf.runfile.reader import read_run
from tkperf.runfile.writer import RunFileWriter
from tkperf.runfile.writers import Writer
from tkperf.runner.events import RunEnded, RunResumed, StepEnded, TestEnded, TestStarted

SHORT = Path(__file__).parents[1] / "short.toml"
FOREIGN, GAP, REPEATED = (
    Disturbance(code=code, text="others read 3 MB", started_s=0.0, duration_s=1.0)
    for code in (DisturbanceCode.FOREIGN_IO, DisturbanceCode.IDLE_BEFORE, DisturbanceCode.REPEATED)
)


def test_at_a_simulated_drive_nobody_looked_for_disturbances(tmp_path: Path) -> None:
    """The overview of a simulated run has no count of disturbed steps. A count of 0 would mean that tkperf checked for
    disturbances.
    """
    plan = tkperf.make_plan("ssd", "sim:sata-ssd", profile=str(SHORT), tests=("lat",))
    run(plan, "n", folder=tmp_path)
    state = read_overview(tmp_path / "n.tkperf")
    assert state.state == "complete"
    assert state.disturbed_steps is None
    assert (state.test, state.tests) == (None, 1)


def ended(folder: Path, *disturbed: bool, looked: bool) -> Path:
    """Write a run that has ended, and return the path of its file. Each element of ``disturbed`` stands for a step, and
    is true if the step is disturbed.
    """
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


def test_of_a_run_that_is_complete_no_step_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No step is read for the overview of a complete run, because an archive may contain a thousand run files with
    thousands of steps each.
    """
    path = ended(tmp_path, False, True, looked=True)
    before = read_overview(path)

    def never(*_: object) -> None:
        raise AssertionError("a step is read")

    monkeypatch.setattr("tkperf.runfile.log_rows.parse_step", never)
    assert read_overview(path) == before
    assert before.elapsed_s == 9.0


def test_the_verdict_is_that_of_the_results(tmp_path: Path) -> None:
    """The verdict of a run's overview equals the verdict of its results. The overview contains the verdict only on
    request, because tkperf needs every step to compute it.
    """
    path = ended(tmp_path, True, False, looked=True)
    assert read_overview(path).verdict is None
    found = read_overview(path, judged=True)
    assert found.verdict is judge_run(analyse(read_run(path))).state
    assert replace(found, verdict=None) == read_overview(path)
    assert (found.tests_done, found.tests) == (1, 1)


def test_of_many_runs_none_is_judged_but_those_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If many runs exist, ``tkperf status`` judges only the runs that the user names, because judging all runs of an
    archive would take minutes.
    """
    path = ended(tmp_path, False, looked=True)
    for number in range(25):
        shutil.copy(path, tmp_path / f"r{number}.tkperf")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tkperf.pipeline.running_runs.find_running", list)
    for words, judged in (([], False), (["r1.tkperf"], True)):
        done = CliRunner().invoke(cli, ["status", "--json", *words])
        assert done.exit_code == 0, done.output
        verdicts = {run["verdict"] for run in json.loads(done.output)["runs"]}
        assert (verdicts != {None}) is judged
    assert "name those to judge" in CliRunner().invoke(cli, ["status"]).output


def test_every_output_counts_the_same_disturbed_steps(tmp_path: Path) -> None:
    """Every output counts the same disturbed steps. Fills are included, and each step counts once. A step that was
    repeated but not disturbed does not count.
    """
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


def test_a_disturbed_step_that_was_set_aside_does_not_count(tmp_path: Path) -> None:
    """If a disturbed step was measured again after an interruption, this step does not count as disturbed, because no
    result is computed from the disturbed step.
    """
    path, writer = a_run(tmp_path)
    writer(StepEnded(test="iops", record=a_step(1, disturbances=(FOREIGN,), foreign_read_bytes=0)))
    writer.close()
    assert read_overview(path).disturbed_steps == 1
    writer = RunFileWriter(path, appends=True)
    resumption = Resumption(
        resumed_utc="u",
        stopped_s=2.0,
        resumed_s=3.0,
        status=RunStatus.INTERRUPTED,
        because="killed",
        goes_on=GoesOn.ROUND,
        test="iops",
        test_id=1,
        section="IOPS",
        set_aside_from=1,
        set_aside_to=1,
        again="IOPS, round 1",
    )
    writer(RunResumed(info=run_info(), tests=("iops",), resumption=resumption))
    writer(TestStarted(test="iops", at_s=3.0, goes_on=True))
    writer(StepEnded(test="iops", record=a_step(1, disturbances=(), foreign_read_bytes=0)))
    writer.close()
    assert read_overview(path).disturbed_steps == 0


OF_ROOT = Writer(pid=4321, user="root")


@pytest.fixture
def run_of_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a run file in the current folder while a process of root writes to it. The test sees the run as an ordinary
    user would see it.
    """
    path, writer = a_run(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr("tkperf.pipeline.running_runs.find_writer", lambda _: OF_ROOT)
    monkeypatch.setattr("tkperf.pipeline.running_runs.find_running", lambda: [OF_ROOT])
    yield path
    writer.close()


def test_status_names_the_command_that_ends_the_run_of_another_user(run_of_root: Path) -> None:
    """For a run of another user, ``tkperf status`` prints the ``sudo`` command that stops the run. ``tkperf status``
    also lists processes whose run files it cannot see. This list does not contain the process of this run again.
    """
    done = CliRunner().invoke(cli, ["status"])
    assert f"'sudo tkperf stop {run_of_root.name}' ends it" in done.stderr
    assert "runs tkperf, too" not in done.stderr
    assert json.loads(CliRunner().invoke(cli, ["status", "--json"]).stdout)["not_visible"] == []


def test_status_names_the_command_that_shows_runs_out_of_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tkperf.pipeline.running_runs.find_running", lambda: [OF_ROOT])
    assert "'sudo tkperf status'" in CliRunner().invoke(cli, ["status"]).stderr


def test_stop_names_the_command_that_ends_the_run_of_another_user(run_of_root: Path) -> None:
    done = CliRunner().invoke(cli, ["stop", run_of_root.name])
    assert done.exit_code != 0
    assert f"'sudo tkperf stop {run_of_root.name}'" in str(done.exception)


def test_a_view_names_the_command_that_ends_the_run(run_of_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the run belongs to another user, the view names a stop command that begins with sudo. The stop command for the
    user's own run does not contain sudo.
    """

    def left_by_the_user(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tkperf.cli.run_views.follow", left_by_the_user)
    done = CliRunner().invoke(cli, ["attach", run_of_root.name])
    assert f"'sudo tkperf stop {run_of_root.name}' ends it" in done.output
    own = Writer(pid=4321, user="me", program="python3", is_tkperf=True)
    monkeypatch.setattr("tkperf.pipeline.running_runs.find_writer", lambda _: own)
    done = CliRunner().invoke(cli, ["attach", run_of_root.name])
    assert f"'tkperf stop {run_of_root.name}' ends it" in done.output


@pytest.mark.parametrize("command", ["attach", "status", "stop"])
@pytest.mark.parametrize("name", ["run.tkperf", "run.batch"])
def test_a_file_that_only_root_may_read_is_tried_with_sudo(
    command: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If only root can read a file, the error proposes sudo. If root runs the command, the error does not
    mention sudo.
    """

    def refuse(*_: object, **__: object) -> None:
        raise RunFileError("cannot read it") from PermissionError()

    for reading in (
        "tkperf.pipeline.running_runs.look_first",
        "tkperf.pipeline.running_runs.outline_first",
        "tkperf.batch.ledger.read_batch",
        "tkperf.batch.batch_watch.read_batch",
    ):
        monkeypatch.setattr(reading, refuse)
    monkeypatch.setattr("tkperf.pipeline.running_runs._judge_ended", refuse)
    path = tmp_path / name
    for user, expected in ((1000, True), (0, False)):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        done = CliRunner().invoke(cli, [command, str(path)])
        assert (f"'sudo tkperf {command} {path}'" in f"{done.exception}{done.output}") is expected
