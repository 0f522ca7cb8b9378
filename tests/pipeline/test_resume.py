"""A run that was interrupted can be resumed. Its results are then complete. No measurement is lost, and no measurement
is counted twice.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from tests.procedures.test_own_workloads import EVERYTHING
from tests.resuming import cuts, find_faults, written_bytes
from tkperf import load, make_plan
from tkperf.analysis.results import RunResult
from tkperf.model.disturbance.io import DisturbanceCode
from tkperf.model.errors import EngineError, RefusedError, TkperfError
from tkperf.model.units import format_number
from tkperf.page.words.run import describe_resumptions, find_notices
from tkperf.pipeline.api import resume, run
from tkperf.pipeline.resume_plan import ResumeRequest, make_resume_plan
from tkperf.runner.events import Event, StepEnded

SHORT = Path(__file__).parents[1] / "short.toml"
TESTS = ("iops", "lat", "tp", "writesat")


def go_on(path: Path, folder: Path | None = None, **wishes: object) -> RunResult:
    """Resume a run. If a folder is given, store a copy of the files at each moment at which this run could be
    interrupted again.
    """
    observers = () if folder is None else (cuts(path, folder),)
    plan = make_resume_plan(ResumeRequest(path=path, **wishes))  # type: ignore[arg-type]
    return resume(plan, observers=observers)


@pytest.fixture(scope="module")
def moments(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return copies of the file of a simulated run. Each copy has the state that a kill would leave after a change of
    the file.
    """
    folder = tmp_path_factory.mktemp("whole")
    plan = make_plan("ssd", "sim:sata-ssd", profile=SHORT, tests=TESTS)
    run(plan, "run", folder=folder, observers=(cuts(folder / "run.tkperf", folder / "cuts"),))
    return sorted((folder / "cuts").iterdir())


def copied(moment: Path, folder: Path) -> Path:
    return Path(shutil.copy(moment, folder / "run.tkperf"))


@pytest.mark.parametrize("seed", range(12))
def test_a_run_that_was_killed_goes_on(seed: int, moments: list[Path], tmp_path: Path) -> None:
    """If a run is killed at any moment, and killed again after a resumption, its final results are complete and contain
    every measurement.
    """
    chance = random.Random(seed)
    # The last copy is not used, because the run in it has already ended and no measurement is missing.
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
    assert find_notices(result)[-1].startswith("INTERRUPTED: the run stopped 2 times")


def moment_of(moments: list[Path], event: str, nth: int) -> Path:
    return [moment for moment in moments if moment.stem.endswith(event)][nth]


def test_nothing_is_measured_again_between_tests(moments: list[Path], tmp_path: Path) -> None:
    """If a run was interrupted between two tests, no step is measured again, and finished results do not change."""
    path = copied(moment_of(moments, "TestEnded", 0), tmp_path)
    result = go_on(path)
    assert [each.again for each in result.resumptions] == [""]
    assert load(path).tests[0].written_again_bytes == 0


def test_a_round_that_was_cut_off_is_measured_again(moments: list[Path], tmp_path: Path) -> None:
    """A round that was interrupted is measured again. The rows of the interrupted measurement remain in the run file,
    but they count only towards the amount of data written. The search for steady state continues with the repeated
    round.
    """
    # The chosen moment is during the second step of round 2. Rows 1 and 2 are the purge and the fill, and a round has
    # six steps and a verdict.
    path = copied(moment_of(moments, "StepEnded", 1 + 6 + 1), tmp_path)
    result = go_on(path)
    (resumption,) = result.resumptions
    assert (resumption.goes_on, resumption.again) == ("round", "IOPS, round 2")
    assert resumption.set_aside_steps == 2
    (section,) = result.tests[0].sections
    assert section.window == (2, 3)
    assert [round_result.number for round_result in section.rounds] == [1, 2, 3]
    assert result.tests[0].written_again_bytes == resumption.set_aside_written_bytes
    # The window is not affected by the interruption.
    assert section.disturbed_in_window == 0


def test_a_fill_that_was_cut_off_begins_with_its_purge(moments: list[Path], tmp_path: Path) -> None:
    """A fill that was interrupted begins again with its purge, because an incomplete fill does not precondition the
    drive.
    """
    path = copied(moment_of(moments, "PurgeEnded", 1), tmp_path)
    (resumption,) = go_on(path).resumptions
    assert resumption.goes_on == "purge"
    assert resumption.again == "Latency: all from its purge on"
    assert find_faults(path) == []


def test_a_stream_that_was_cut_off_begins_with_its_purge(moments: list[Path], tmp_path: Path) -> None:
    """A stream that was interrupted begins again with its purge. Write saturation shows how a purged drive changes over
    time, so its stream cannot be composed of two parts.
    """
    path = copied(moment_of(moments, "StepEnded", -3), tmp_path)
    result = go_on(path)
    (resumption,) = result.resumptions
    assert resumption.goes_on == "purge"
    (section,) = result.tests[3].sections
    assert [each.number for each in section.slices] == [1, 2, 3, 4, 5, 6]
    assert section.slices[0].start_s == 0
    assert find_faults(path) == []


def test_an_accepted_interruption_is_marked(moments: list[Path], tmp_path: Path) -> None:
    """If the user accepts the interruption, a stream continues without a purge. The first slice after the interruption
    is marked, and so is every page of the report.
    """
    path = copied(moment_of(moments, "StepEnded", -3), tmp_path)
    result = go_on(path, accept=True)
    (resumption,) = result.resumptions
    assert resumption.accepted
    assert resumption.again == "Write Saturation, slice 5"
    (section,) = result.tests[3].sections
    assert [each.values.disturbances for each in section.slices] == [(), (), (), (), (DisturbanceCode.INTERRUPTED,), ()]
    assert "RESULTS SPAN IT" in find_notices(result)[-1]


def test_an_accepted_interruption_leaves_the_window_as_it_was(moments: list[Path], tmp_path: Path) -> None:
    """If the user accepts the interruption of a round, the round is completed. The earlier rounds count towards the
    window.
    """
    path = copied(moment_of(moments, "StepEnded", 1 + 6 + 1), tmp_path)
    result = go_on(path, accept=True)
    (section,) = result.tests[0].sections
    assert section.window == (1, 2)
    assert section.disturbed_in_window == 1


def test_a_test_that_is_repeated_is_kept_and_named(moments: list[Path], tmp_path: Path) -> None:
    path = copied(moments[-1], tmp_path)
    before = load(path)
    result = go_on(path, repeat=("lat",))
    assert find_faults(path, moments[-1]) == []
    assert [test.name for test in result.tests] == list(TESTS)
    assert [test.sections == earlier.sections for test, earlier in zip(result.tests, before.tests, strict=True)] == [
        True,
        False,
        True,
        True,
    ]
    (text,) = describe_resumptions(result, result.tests[1])
    verdict = before.tests[1].sections[0].verdict
    assert verdict is not None
    assert f"{verdict.tracking} {format_number(verdict.average)} µs in rounds 1–2" in text
    assert find_notices(result)[-1] == "REPEATED: measured again on request: lat"


def test_a_test_that_is_added_follows_the_runs_own_options(tmp_path: Path) -> None:
    """A test that is added to a run uses the options of this run. The notices name the numbers that these options
    change.
    """
    facts = {"Note": "lab 2"}
    plan = make_plan("ssd", "sim:sata-ssd", profile="quick", tests=("tp",), jobs=3, facts=facts)
    run(plan, "run", folder=tmp_path)
    result = go_on(tmp_path / "run.tkperf", add=("lat", "iops"))
    assert [test.name for test in result.tests] == ["iops", "lat", "tp"]
    assert {cell.workload.jobs for cell in result.tests[0].sections[0].cells} == {3}
    assert find_notices(result)[-1] == "ADDED: measured after the run had ended: lat, iops"
    assert "threads 2 -> 3" in result.info.choices
    assert result.info.options["facts"] == facts


@pytest.mark.parametrize(
    ("suite", "drive", "tests"),
    [
        ("hdd", "sim:hdd", ("iops", "tp")),
        ("ssd", "sim:sata-ssd", ("auto-demand", "iops")),
        ("ssd", "sim:sata-ssd", ("dirth",)),
        ("ssd", "sim:sata-ssd", ("hir",)),
        ("ssd", "sim:sata-ssd", ("xsr",)),
        ("ssd", "sim:sata-ssd", ("qos",)),
        ("ssd", "sim:sata-ssd", ("demand",)),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else value,
)
def test_every_kind_of_test_goes_on(suite: str, drive: str, tests: tuple[str, ...], tmp_path: Path) -> None:
    """A run of any kind of test can be resumed after an interruption. The test covers areas, idle times, warm-ups,
    writes before a round and a demand search.
    """
    plan = make_plan(suite, drive, profile=SHORT if suite == "hdd" else "quick", tests=tests)
    run(plan, "run", folder=tmp_path, observers=(cuts(tmp_path / "run.tkperf", tmp_path / "cuts"),))
    made = sorted((tmp_path / "cuts").iterdir())
    for place in (len(made) // 3, len(made) - 4):
        path = copied(made[place], tmp_path)
        go_on(path)
        assert find_faults(path, made[place]) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt(), EngineError("fio failed"), OSError("a defect")])
def test_a_run_that_was_stopped_or_failed_goes_on(error: BaseException, tmp_path: Path) -> None:
    """A run that was stopped or that failed can be resumed in the same manner as a run that was killed. A finished test
    can also be repeated.
    """
    ended = []

    def stop(event: Event) -> None:
        ended.append(isinstance(event, StepEnded))
        if sum(ended) == 10 and ended[-1]:
            raise error

    plan = make_plan("ssd", "sim:sata-ssd", profile=SHORT, tests=("iops", "lat"))
    with pytest.raises((TkperfError, OSError)):
        run(plan, "run", folder=tmp_path, observers=(stop,))
    path = tmp_path / "run.tkperf"
    before = Path(shutil.copy(path, tmp_path / "before.tkperf"))
    result = go_on(path)
    assert find_faults(path, before) == []
    (resumption,) = result.resumptions
    assert resumption.again == "IOPS, round 2"
    assert resumption.because is not None


def test_a_test_of_the_users_own_goes_on(tmp_path: Path) -> None:
    """A user-defined test can be resumed without its workload file, because the run file contains a copy."""
    file = tmp_path / "own.toml"
    file.write_text(EVERYTHING)
    plan = make_plan("ssd", "sim:sata-ssd", profile="quick", tests=(str(file),))
    run(plan, "run", folder=tmp_path, observers=(cuts(tmp_path / "run.tkperf", tmp_path / "cuts"),))
    file.unlink()
    made = sorted((tmp_path / "cuts").iterdir())
    for moment in random.Random(1).sample(made[2:-2], 6):
        path = copied(moment, tmp_path)
        go_on(path)
        assert find_faults(path, moment, passes=3) == []


@pytest.fixture(scope="module")
def on_a_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with copies of the file of a run with real fio on a scratch file. Each copy has the state that an
    interruption would leave.
    """
    folder = tmp_path_factory.mktemp("real")
    scratch = folder / "scratch"
    plan = make_plan("ssd", scratch, profile=SHORT, tests=("lat", "writesat"), size="32MiB")
    run(plan, "run", folder=folder, confirm=str(scratch), observers=(cuts(folder / "run.tkperf", folder / "cuts"),))
    return folder


@pytest.mark.fio
@pytest.mark.parametrize("seed", range(3))
def test_a_run_with_real_fio_goes_on(seed: int, on_a_file: Path) -> None:
    """If the user confirms the target again, a run with real fio on a file can be resumed."""
    made = sorted((on_a_file / "cuts").iterdir())
    moment = random.Random(seed).choice(made[2:-2])
    path = copied(moment, on_a_file)
    plan = make_resume_plan(ResumeRequest(path=path))
    with pytest.raises(RefusedError, match=r"tkperf would destroy all data on "):
        resume(plan)
    result = resume(plan, confirm=str(on_a_file / "scratch"))
    assert find_faults(path, moment) == []
    (resumption,) = result.resumptions
    assert resumption.resumed_s >= resumption.stopped_s > 0
    assert sum(test.written_bytes or 0 for test in result.tests) == written_bytes(path)
