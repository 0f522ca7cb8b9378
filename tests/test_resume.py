"""A run that was cut off goes on: complete, with nothing lost and nothing counted twice."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from tests.resuming import cuts, find_faults, written_bytes
from tkperf import load, make_plan
from tkperf.analysis.results import RunResult
from tkperf.pipeline.api import resume, run
from tkperf.pipeline.resume import ResumeRequest, make_resume_plan

SHORT = Path(__file__).parent / "short.toml"
TESTS = ("iops", "lat", "tp", "writesat")


def go_on(path: Path, folder: Path | None = None, **wishes: object) -> RunResult:
    """Resume a run; with a folder, files of each moment at which that could be cut off again."""
    observers = () if folder is None else (cuts(path, folder),)
    plan = make_resume_plan(ResumeRequest(path=path, **wishes))  # type: ignore[arg-type]
    return resume(plan, observers=observers)


@pytest.fixture(scope="module")
def moments(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A simulated run as a kill would leave it, at each moment at which its file changed."""
    folder = tmp_path_factory.mktemp("whole")
    plan = make_plan("ssd", "sim:sata-ssd", profile=SHORT, tests=TESTS)
    run(plan, "run", folder=folder, observers=(cuts(folder / "run.tkperf", folder / "cuts"),))
    return sorted((folder / "cuts").iterdir())


def copied(moment: Path, folder: Path) -> Path:
    return Path(shutil.copy(moment, folder / "run.tkperf"))


@pytest.mark.parametrize("seed", range(12))
def test_a_run_that_was_killed_goes_on(seed: int, moments: list[Path], tmp_path: Path) -> None:
    """At any moment, and killed again while it goes on: the result is complete, nothing is lost."""
    chance = random.Random(seed)
    # The last moments are the run's end: nothing is missing any more.
    moment = chance.choice(moments[1:-1])
    path = copied(moment, tmp_path)
    go_on(path, tmp_path / "again")
    assert find_faults(path, moment) == []

    again = chance.choice(sorted((tmp_path / "again").iterdir())[:-1])
    path = copied(again, tmp_path)
    result = go_on(path)
    assert find_faults(path, again) == []
    assert sum(test.written_bytes or 0 for test in result.tests) == written_bytes(path)
    assert [each.interrupted for each in result.resumptions] == [True, True]
    assert result.info.notices[-1].startswith("INTERRUPTED: the run stopped 2 times")


def moment_of(moments: list[Path], event: str, nth: int) -> Path:
    return [moment for moment in moments if moment.stem.endswith(event)][nth]


def test_nothing_is_measured_again_between_tests(moments: list[Path], tmp_path: Path) -> None:
    """What has ended stays as it is."""
    path = copied(moment_of(moments, "TestEnded", 0), tmp_path)
    result = go_on(path)
    assert [each.again for each in result.resumptions] == [""]
    assert load(path).tests[0].written_again_bytes == 0
