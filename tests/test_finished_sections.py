"""A test of several sections that was cut off: what had ended is as in a run that came to its end."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.resuming import cuts, find_faults
from tests.test_own_workloads import EVERYTHING
from tkperf import load, make_plan
from tkperf.analysis.export_json import render_json
from tkperf.analysis.results import RunResult, SectionResult, TestResult
from tkperf.errors import EngineError
from tkperf.events import Event, SectionEnded
from tkperf.pipeline.api import resume, run
from tkperf.pipeline.resume import ResumeRequest, make_resume_plan
from tkperf.pipeline.run_plan import RunPlan

SHORT = Path(__file__).parent / "short.toml"
OWN = "own"
SUITES = [
    ("hdd", "sim:hdd", "tp"),
    *(
        ("ssd", "sim:sata-ssd", test)
        for test in ("tp", "lat", "dirth", "cbw", "hir", "xsr", "qos", "demand", OWN)
    ),
]
every_test = pytest.mark.parametrize(
    ("suite", "drive", "test"), SUITES, ids=[f"{suite}-{test}" for suite, _, test in SUITES]
)


def plan_of(suite: str, drive: str, test: str, folder: Path) -> RunPlan:
    if test == OWN:
        file = folder / "own.toml"
        file.write_text(EVERYTHING)
        test = str(file)
    if suite == "ssd":
        return make_plan(suite, drive, profile="quick", tests=(test,))
    profile = folder / "hdd.toml"
    profile.write_text(
        SHORT.read_text().replace(
            "throughput_block_sizes_kib = [128]", "throughput_block_sizes_kib = [128, 64]"
        )
    )
    return make_plan(suite, drive, profile=profile, tests=(test,))


def only_test(result: RunResult) -> TestResult:
    (test,) = result.tests
    return test


def as_if_ended(section: SectionResult, status: str = "interrupted") -> SectionResult:
    """Without the remark that its test did not end, which must be there."""
    mark = f"; test {status}, this section is complete"
    assert section.ended_because.endswith(mark)
    return replace(section, ended_because=section.ended_because.removesuffix(mark))


@every_test
def test_what_had_ended_is_as_in_the_whole_run(
    suite: str, drive: str, test: str, tmp_path: Path
) -> None:
    """After a kill behind each section: verdict, window, figures; what is missing is said; it goes on."""
    path = tmp_path / "run.tkperf"
    whole = run(
        plan_of(suite, drive, test, tmp_path), "run", folder=tmp_path,
        observers=(cuts(path, tmp_path / "cuts"),),
    )  # fmt: skip
    sections = only_test(whole).sections
    assert len(sections) > 1
    assert all(section.complete for section in sections)
    assert only_test(whole).progress is None
    names = [section.name for section in sections]

    # Sections may end together, as the grid and the writes before its rounds: the order is the test's.
    ended = sorted((tmp_path / "cuts").glob("*-SectionEnded.tkperf"))
    assert len(ended) == len(sections)
    for count, moment in enumerate(ended[:-1], start=1):
        found = only_test(load(moment))
        complete = [section for section in found.sections if section.complete]
        assert len(complete) == count
        for section in complete:
            assert as_if_ended(section) == sections[names.index(section.name)]
        assert found.progress is not None
        assert found.progress.startswith(
            f"interrupted; complete: {', '.join(each.name for each in complete)}; "
        )
        others = [each.name for each in found.sections if not each.complete]
        assert {*found.not_measured, *others} >= set(names) - {each.name for each in complete}
        assert not {*found.not_measured} & {section.name for section in found.sections}
    assert only_test(load(ended[-1])).progress == f"interrupted; complete: {', '.join(names)}"

    again = Path(shutil.copy(ended[0], path))
    resumed = resume(make_resume_plan(ResumeRequest(path=again)))
    assert find_faults(path, ended[0], passes=3 if test == OWN else None) == []
    assert [section.name for section in only_test(resumed).sections] == names
    if resumed.resumptions[0].goes_on == "next":
        assert only_test(resumed).sections == sections


@every_test
def test_a_failure_leaves_what_had_ended(suite: str, drive: str, test: str, tmp_path: Path) -> None:
    """Not only a kill: an error of the engine within the second section, too."""
    told: list[str] = []

    def fail(event: Event) -> None:
        if isinstance(event, SectionEnded):
            told.append(event.outcome.section)
        elif told:
            raise EngineError("fio failed")

    with pytest.raises(EngineError):
        run(plan_of(suite, drive, test, tmp_path), "run", folder=tmp_path, observers=(fail,))
    result = load(tmp_path / "run.tkperf")
    found = only_test(result)
    first = found.sections[0]
    assert [section.name for section in found.sections if section.complete] == told[:1]
    assert as_if_ended(first, "failed").name == told[0]
    (warning,) = [warning for warning in result.warnings if warning.code == "unfinished-test"]
    assert warning.text == f"{found.title}: {found.progress}"
    as_data = json.loads(render_json(result))["tests"][0]
    assert [section["complete"] for section in as_data["sections"]][:1] == [True]
    assert as_data["progress"] == found.progress
