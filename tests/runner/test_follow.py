"""A follower reads only the file of a run. It reports the same events as the run itself and finds the same position in
the procedure.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.procedures.test_own_workloads import EVERYTHING
from tests.resuming import cuts
from tkperf import make_plan
from tkperf.model.phases import Idle, Round
from tkperf.model.record import RunStatus
from tkperf.pipeline.api import resume, run
from tkperf.pipeline.resume_plan import ResumeRequest, make_resume_plan
from tkperf.pipeline.running_runs import look
from tkperf.runfile.reader import RunFile
from tkperf.runner.events import (
    Delta,
    Event,
    Judged,
    PhaseStarted,
    PurgeEnded,
    RunEnded,
    RunResumed,
    SampleSeen,
    SectionEnded,
    StepEnded,
    StepStarted,
    TelemetrySeen,
    TestEnded,
    TestStarted,
    Warned,
)
from tkperf.runner.run_log import Follower, describe_place, find_progress

SHORT = Path(__file__).parents[1] / "short.toml"
KEPT = (TestStarted, PurgeEnded, StepEnded, Judged, SectionEnded, TestEnded, RunEnded)


class Watching:
    """An observer that follows the file of a run after each event of the run, faster than any user could."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.follower = Follower()
        self.delta: Delta | None = None
        self.happened: list[Event] = []
        self.followed: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.happened.append(event)
        if not isinstance(event, SampleSeen):
            self.delta = look(self.path, self.delta)
            self.followed += self.follower.take(self.delta)
        if isinstance(event, StepEnded) and len(self.happened) % 11 == 0:
            # The position within a round is known without a replay. A replay reads the whole log, so the test compares
            # both positions only at intervals.
            log = look(self.path).log
            assert self.delta is not None
            assert self.follower.progress == find_progress(self.delta.record, log)


def of(events: list[Event], *kinds: type) -> list[Event]:
    return [_comparable(event) for event in events if isinstance(event, kinds)]


def _comparable(event: Event) -> Event:
    if isinstance(event, StepEnded):
        # In this test, samples are separate events, and the output of fio is not read.
        measurement = replace(event.record.measurement, samples=())
        record = replace(event.record, measurement=measurement, engine_output=b"")
        return replace(event, record=record)
    return event


@pytest.fixture
def watch(tmp_path: Path) -> Callable[..., Watching]:
    def followed(*tests: str, **wishes: object) -> Watching:
        watching = Watching(tmp_path / "run.tkperf")
        plan = make_plan("ssd", "sim:sata-ssd", tests=tests, **{"profile": SHORT, **wishes})
        run(plan, "run", folder=tmp_path, observers=(watching,))
        return watching

    return followed


def test_what_is_kept_is_told_in_its_order(watch: Callable[..., Watching]) -> None:
    """A follower receives each stored event once and in order, with all information that the run itself reported about
    the event.
    """
    watching = watch("iops", "lat", "writesat")
    assert of(watching.followed, *KEPT) == of(watching.happened, *KEPT)
    assert of(watching.followed, Warned) == of(watching.happened, Warned)


def test_what_drives_tell_is_told(watch: Callable[..., Watching]) -> None:
    """A follower receives each reading of the drive's telemetry once."""
    watching = watch("iops", "lat")
    told = of(watching.happened, TelemetrySeen)
    assert told
    assert of(watching.followed, TelemetrySeen) == told


def test_every_second_is_told_once(watch: Callable[..., Watching]) -> None:
    """A follower receives every second once, either together with its step or while the step is running."""
    watching = watch("iops", "writesat")
    assert [event.sample.both.ios for event in watching.followed if isinstance(event, SampleSeen)] == [
        event.sample.both.ios for event in watching.happened if isinstance(event, SampleSeen)
    ]


def test_phases_steps_and_remaining_times_are_found(watch: Callable[..., Watching]) -> None:
    """The follower knows the same phases, steps and remaining times as the runner. The follower determines them only by
    replaying the run file.
    """
    watching = watch("iops", "lat", "tp", "writesat")
    told = [event for event in watching.happened if isinstance(event, PhaseStarted)]
    found = [event for event in watching.followed if isinstance(event, PhaseStarted)]
    assert [(each.test, each.phase, each.at_most) for each in found] == [
        (each.test, each.phase, each.at_most) for each in told
    ]
    assert {each.at_most for each in told if isinstance(each.phase, Round)} == {2}
    for one, other in zip(found, told, strict=True):
        assert one.shortest_s == pytest.approx(other.shortest_s)
        assert one.longest_s == pytest.approx(other.longest_s)
    steps = [event for event in watching.happened if isinstance(event, StepStarted)]
    followed = [event for event in watching.followed if isinstance(event, StepStarted)]
    assert [replace(each, at_s=0.0) for each in followed] == [replace(each, at_s=0.0) for each in steps]


def test_a_test_of_the_users_own_and_a_search_are_followed(watch: Callable[..., Watching], tmp_path: Path) -> None:
    """A follower needs only the run file to find the procedures of a user-defined test and of a demand search. Idle
    times are not stored as rows, so the follower does not report them.
    """
    own = tmp_path / "own.toml"
    own.write_text(EVERYTHING)
    watching = watch(str(own), "lat", profile="quick", auto_demand=True)
    told = [
        (event.test, event.phase)
        for event in watching.happened
        if isinstance(event, PhaseStarted) and not isinstance(event.phase, Idle)
    ]
    found = [(event.test, event.phase) for event in watching.followed if isinstance(event, PhaseStarted)]
    assert found == told


def test_a_run_that_goes_on_again_is_followed(tmp_path: Path) -> None:
    """If a run was resumed, the results that a follower reports do not contain the steps that the resumption replaced.
    The follower shows the round that is measured again.
    """
    folder, path = tmp_path / "first", tmp_path / "run.tkperf"
    plan = make_plan("ssd", "sim:sata-ssd", profile=SHORT, tests=("iops", "lat"))
    folder.mkdir()
    run(plan, "run", folder=folder, observers=(cuts(folder / "run.tkperf", folder / "cuts"),))
    moments = [each for each in sorted((folder / "cuts").iterdir()) if "StepEnded" in each.stem]
    shutil.copy(moments[1 + 6 + 1], path)

    watching = Watching(path)
    # Like a follower that began before the run was killed, this follower has read all rows that were stored before the
    # kill.
    watching.delta = look(path)
    before = list(watching.follower.take(watching.delta))
    assert isinstance(before[-1], RunEnded)
    assert before[-1].status is RunStatus.INTERRUPTED
    assert watching.follower.progress is not None
    assert describe_place(watching.follower.progress) == "IOPS, round 2 of at most 2, step 3 of 6"

    resume(make_resume_plan(ResumeRequest(path=path)), observers=(watching,))
    (resumed,) = [event for event in watching.followed if isinstance(event, RunResumed)]
    assert resumed.resumption.again == "IOPS, round 2"
    assert of(watching.followed, StepEnded, PurgeEnded, Judged) == of(watching.happened, StepEnded, PurgeEnded, Judged)
    followed = [event for event in watching.followed if isinstance(event, PhaseStarted)]
    happened = [event for event in watching.happened if isinstance(event, PhaseStarted)]
    assert [event.phase for event in followed] == [event.phase for event in happened]
    # After the interruption, at most two rounds may follow: round 2, which is measured again, and round 3.
    rounds = [event for event in (*followed, *happened) if isinstance(event.phase, Round)]
    assert {event.at_most for event in rounds if event.phase.section == "IOPS"} == {3}


def test_a_copy_of_a_file_that_is_written_is_as_old_as_what_it_says(tmp_path: Path) -> None:
    """If a run ends after tkperf has copied its file and before it checks whether the run is still running, the run is
    not shown as killed.
    """
    plan = make_plan("ssd", "sim:sata-ssd", profile=SHORT, tests=("iops",))
    opened: list[RunFile] = []

    def open_once(event: Event) -> None:
        if isinstance(event, StepEnded) and not opened:
            opened.append(RunFile(tmp_path / "run.tkperf", briefly=True))

    run(plan, "run", folder=tmp_path, observers=(open_once,))
    with opened[0] as run_file:
        delta = run_file.delta()
    assert (delta.record.status, len(delta.log)) == (RunStatus.RUNNING, 2)
    assert look(tmp_path / "run.tkperf").record.status is RunStatus.COMPLETE


def test_a_file_of_a_course_nobody_knows_leaves_the_place_open(tmp_path: Path) -> None:
    """If a log does not match the procedure of its test, the follower shows the test, but no position in the
    procedure.
    """
    import sqlite3
    from contextlib import closing

    folder = tmp_path / "first"
    plan = make_plan("ssd", "sim:sata-ssd", profile=SHORT, tests=("iops",))
    folder.mkdir()
    run(plan, "run", folder=folder, observers=(cuts(folder / "run.tkperf", folder / "cuts"),))
    path = sorted((folder / "cuts").iterdir())[12]
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE step SET number = number + 1 WHERE kind = 'round'")
    follower = Follower()
    list(follower.take(look(path)))
    progress = follower.progress
    assert progress is not None
    assert (progress.test, progress.phase, progress.remaining_s(0.0)) == ("iops", None, None)
    assert describe_place(progress) == ""
