"""If a run is stopped before it has begun, no file remains, because it would look like the file of a killed run."""

from __future__ import annotations

from pathlib import Path

import pytest

import tkperf
from tkperf.model.errors import EngineError, Interrupted
from tkperf.model.record import RunStatus
from tkperf.pipeline import run_to_file
from tkperf.pipeline.api import resume
from tkperf.pipeline.resume_plan import ResumeRequest, make_resume_plan
from tkperf.runfile import backlog, writer


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def begin(folder: Path) -> None:
    plan = tkperf.make_plan("ssd", "sim:sata-ssd", profile="quick", tests=["iops"])
    tkperf.run(plan, "n", folder=folder)


@pytest.mark.parametrize("at", ["build_run_info", "_looking_at_host", "execute_run"])
def test_a_stop_before_the_beginning_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    """If a run is stopped between the creation of its file and its first event, no file remains."""
    monkeypatch.setattr(run_to_file, at, interrupt)
    with pytest.raises(Interrupted, match="before the run began; nothing was kept") as stopped:
        begin(tmp_path)
    assert stopped.value.exit_code == 130
    assert list(tmp_path.iterdir()) == []


def test_a_stop_while_the_file_is_made_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a run is stopped while its file is created, no file remains."""
    monkeypatch.setattr(writer, "connect_to_write", interrupt)
    with pytest.raises(KeyboardInterrupt):
        begin(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_run_file_that_is_gone_is_not_said_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the file of a run is removed or moved during the run, the run fails, and the message does not propose to
    resume the run.
    """

    def lose_file_and_fail(*_: object, **__: object) -> None:
        (tmp_path / "n.tkperf").unlink()
        raise EngineError("fio failed")

    monkeypatch.setattr("tkperf.runner.runner._TestRun.execute", lose_file_and_fail)
    monkeypatch.setattr(backlog, "REWRITE_EVERY_S", 0.01)
    monkeypatch.setattr(backlog, "RESCUE_AFTER_S", 0.1)
    monkeypatch.setattr(backlog, "LAST_WAIT_S", 0.5)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(EngineError, match=r"n\.tkperf no longer exists") as failed:
        begin(tmp_path)
    assert "continue:" not in str(failed.value)


def test_a_stop_after_the_beginning_keeps_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a run is stopped after it began, its file is kept and records the run as interrupted."""
    monkeypatch.setattr("tkperf.runner.runner._TestRun.execute", interrupt)
    with pytest.raises(Interrupted, match="everything measured so far is kept"):
        begin(tmp_path)
    with tkperf.open_run(tmp_path / "n.tkperf") as run_file:
        record = run_file.record()
    assert (record.status.value, record.ended_because) == ("interrupted", "stopped by the user")


def test_a_stop_before_a_resumed_run_goes_on_leaves_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a resumed run is stopped before it continues, no byte of its file changes, because the file contains the
    earlier measurements.
    """
    begin(tmp_path)
    run_file = tmp_path / "n.tkperf"
    before = run_file.read_bytes()
    monkeypatch.setattr(run_to_file, "build_resumed", interrupt)
    plan = make_resume_plan(ResumeRequest(path=run_file, repeat=("iops",)))
    with pytest.raises(KeyboardInterrupt):
        resume(plan)
    assert run_file.read_bytes() == before
    assert tkperf.load(run_file).status is RunStatus.COMPLETE
