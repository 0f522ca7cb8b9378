"""Views that report on a running batch line by line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.batches import batch, drive
from tests.runfile.runs import a_run
from tkperf.batch.batch_watch import BatchFollower, DriveEvent, WatchedHosts
from tkperf.cli.batch_view import BatchJson, BatchLines
from tkperf.model.batch_state import DriveStage
from tkperf.runfile.reader import read_run
from tkperf.runner.events import TestStarted

FULL = "/results is full: new results wait in memory"


def look_three_times(view: Callable[[BatchFollower], None]) -> None:
    """Report to the view that a disk becomes full, remains full, and then has free space again."""
    state = batch(drive(1, DriveStage.RUNNING), supervisor=1)
    watched = WatchedHosts(state)
    for notes in ((), (FULL,), (FULL,), ()):
        watched.state = msgspec.structs.replace(state, notes=notes)
        view(watched)


def test_plain_lines_name_a_full_disk_once(capsys: pytest.CaptureFixture[str]) -> None:
    look_three_times(BatchLines(every_s=None, steps=False))
    text = capsys.readouterr().err
    assert text.count(f" lot: {FULL}\n") == text.count("is full") == 1


def test_json_has_an_event_for_a_full_disk(capsys: pytest.CaptureFixture[str]) -> None:
    look_three_times(BatchJson())
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["event"] for event in events] == ["DriveStageChanged", "BatchNoted"]
    assert events[1].keys() - {"event"} == {"drive", "name", "slot", "host", "text"}
    assert events[1]["text"] == FULL
    assert events[1]["drive"] is None


def test_json_has_the_events_of_a_run_that_has_ended_before_the_first_reading(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A short run may begin and end before tkperf reads the batch for the first time. Its events precede its end."""
    path, writer = a_run(tmp_path)
    writer.close()
    watched = WatchedHosts(batch(drive(1), drive(2)))
    watched.news = [DriveEvent(1, TestStarted(test="iops", at_s=0), read_run(path))]
    watched.passed_on = [(2, {"event": "TestStarted", "test": "iops"})]
    BatchJson()(watched)
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(event["event"], event["drive"]) for event in events] == [
        ("TestStarted", 1),
        ("TestStarted", 2),
        ("DriveStageChanged", 1),
        ("DriveStageChanged", 2),
    ]
