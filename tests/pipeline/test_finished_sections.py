"""Interrupted tests with several sections. Each section that had ended before the interruption is the same as in a
complete run.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.procedures.test_own_workloads import EVERYTHING
from tests.resuming import cuts, find_faults
from tkperf import load, make_plan
from tkperf.analysis import characteristics_search
from tkperf.analysis.claim_results import ClaimState
from tkperf.analysis.claims import check_claims
from tkperf.analysis.claims_file import parse_claims
from tkperf.analysis.results import RunResult, SectionResult, TestResult
from tkperf.model.errors import EngineError
from tkperf.page.words.run import describe_progress, find_warnings
from tkperf.pipeline.api import resume, run
from tkperf.pipeline.resume_plan import ResumeRequest, make_resume_plan
from tkperf.pipeline.run_plan import RunPlan
from tkperf.render.export_json import render_json
from tkperf.render.export_tables import build_tables
from tkperf.runner.events import Event, SectionEnded

SHORT = Path(__file__).parents[1] / "short.toml"
OWN = "own"
SUITES = [
    ("hdd", "sim:hdd", "tp"),
    *(("ssd", "sim:sata-ssd", test) for test in ("tp", "lat", "dirth", "cbw", "hir", "xsr", "qos", "demand", OWN)),
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
        SHORT.read_text().replace("throughput_block_sizes_kib = [128]", "throughput_block_sizes_kib = [128, 64]")
    )
    return make_plan(suite, drive, profile=profile, tests=(test,))


def only_test(result: RunResult) -> TestResult:
    (test,) = result.tests
    return test


def as_if_ended(section: SectionResult, status: str = "interrupted") -> SectionResult:
    """Return the section without the remark that its test did not end. Require that the remark is present."""
    mark = f"; test {status}, this section is complete"
    assert section.ended_because.endswith(mark)
    return replace(section, ended_because=section.ended_because.removesuffix(mark))


@every_test
def test_what_had_ended_is_as_in_the_whole_run(suite: str, drive: str, test: str, tmp_path: Path) -> None:
    """A section that ended before the run was killed has the same verdict, window and figures as in the whole run. The
    results name the missing sections, and the run can be resumed.
    """
    path = tmp_path / "run.tkperf"
    whole = run(
        plan_of(suite, drive, test, tmp_path), "run", folder=tmp_path, observers=(cuts(path, tmp_path / "cuts"),)
    )
    sections = only_test(whole).sections
    assert len(sections) > 1
    assert all(section.complete for section in sections)
    assert describe_progress(only_test(whole)) is None
    names = [section.name for section in sections]

    # Several sections may end at the same time, such as the grid and the writes before the rounds of the grid. Their
    # order is the order in the test.
    ended = sorted((tmp_path / "cuts").glob("*-SectionEnded.tkperf"))
    assert len(ended) == len(sections)
    for count, moment in enumerate(ended[:-1], start=1):
        found = only_test(load(moment))
        complete = [section for section in found.sections if section.complete]
        assert len(complete) == count
        for section in complete:
            assert as_if_ended(section) == sections[names.index(section.name)]
        assert (describe_progress(found) or "").startswith(
            f"interrupted; complete: {', '.join(each.name for each in complete)}; "
        )
        others = [each.name for each in found.sections if not each.complete]
        assert {*found.not_measured, *others} >= set(names) - {each.name for each in complete}
        assert not {*found.not_measured} & {section.name for section in found.sections}
    assert describe_progress(only_test(load(ended[-1]))) == f"interrupted; complete: {', '.join(names)}"

    again = Path(shutil.copy(ended[0], path))
    resumed = resume(make_resume_plan(ResumeRequest(path=again)))
    assert find_faults(path, ended[0], passes=3 if test == OWN else None) == []
    assert [section.name for section in only_test(resumed).sections] == names
    if resumed.resumptions[0].goes_on == "next":
        assert only_test(resumed).sections == sections


@every_test
def test_a_failure_leaves_what_had_ended(suite: str, drive: str, test: str, tmp_path: Path) -> None:
    """A section that ended before an error of the engine keeps its results, as it does after a kill."""
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
    (warning,) = [warning for warning in find_warnings(result) if warning.code == "unfinished-test"]
    assert warning.text == f"{found.title}: {describe_progress(found)}"
    as_data = json.loads(render_json(result))["tests"][0]
    assert [section["complete"] for section in as_data["sections"]][:1] == [True]
    assert as_data["progress"] == describe_progress(found)


@pytest.fixture(scope="module")
def cut_off(tmp_path_factory: pytest.TempPathFactory) -> list[RunResult]:
    """Return the results of a run that was killed after each step. The run first contains groups of loads, and then
    levels of a demand.

    In such a short run, the drive recovers within the first slice. In this test, a slice must therefore reach the
    earlier rate completely. Because of noise, the recovery then takes longer, so some runs end before the recovery.
    """
    folder = tmp_path_factory.mktemp("cut")
    path = folder / "run.tkperf"
    plan = make_plan("ssd", "sim:sata-ssd", profile="quick", tests=("xsr", "demand"))
    run(plan, "run", folder=folder, observers=(cuts(path, folder / "cuts"),))
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(characteristics_search, "RECOVERED_WITHIN", 0.0)
        return [load(cut) for cut in sorted((folder / "cuts").glob("*-StepEnded.tkperf"))]


def in_section(results: list[RunResult], name: str) -> Iterator[SectionResult]:
    """Yield the named section of each result if the section has begun but not ended."""
    for result in results:
        for test in result.tests:
            yield from (each for each in test.sections if each.name == name and not each.complete)


def test_levels_of_a_demand_that_was_cut_off_are_shown(cut_off: list[RunResult]) -> None:
    """If a run was interrupted while it measured the levels of a demand, the levels are shown but not judged. A level
    is complete if a warm-up or another level follows it.
    """
    sections = list(in_section(cut_off, "Demand 100/0"))
    levels = [len(section.cells) for section in sections]
    assert levels == sorted(levels)
    assert levels[-1] > 3
    last = sections[-1]
    assert [each.complete for each in last.rounds] == [True] * len(last.cells)
    assert last.window == tuple(range(1, len(last.cells) + 1))
    assert last.steady is None
    assert last.ended_because == "the test did not end: interrupted"


def checked(result: RunResult, *claims: str) -> list[tuple[ClaimState, str | None]]:
    text = "".join(f"[[claim]]\n{claim}\n" for claim in claims)
    read = parse_claims(text, file="claims.toml")
    findings = check_claims(read, result, load=load, folder=Path()).claim_results
    return [(finding.state, finding.note) for finding in findings]


SO_FAR = "the section did not end: figures so far"


def test_a_claim_on_what_did_not_end_cannot_be_told(cut_off: list[RunResult]) -> None:
    """A claim about a section that did not end cannot be judged. This rule applies to claims that an event does not
    occur and to claims about a mean. A claim about a section that ended is judged.
    """
    first, second, third = "AG1 SEQ 1024k", "AG2 RND 8k", "AG3 SEQ 1024k"
    in_third = [each for each in cut_off if any(in_section([each], third))]
    result = in_third[3]
    sections = {section.name: section for test in result.tests for section in test.sections}
    assert [sections[name].complete for name in (first, second, third)] == [True, True, False]
    of_first = f'test = "xsr"\nread_percent = 0\nblock_size = "1024k"\nsection = "{first}"\n'
    of_third = of_first.replace(first, third)
    mean = 'metric = "megabytes_per_s"\nat_least = 1'
    whole = "of the whole stream, its fresh beginning included"
    assert checked(
        result,
        of_first + mean,
        of_third + mean,
        of_third + 'metric = "share_of_first_percent"\nat_least = 1',
        of_third + 'metric = "sudden_drops"\nat_most = 0',
    ) == [
        (ClaimState.MET, f"{whole}; only a lower limit of the uncertainty is known"),
        (ClaimState.INCONCLUSIVE, f"{SO_FAR}; {whole}"),
        (ClaimState.INCONCLUSIVE, SO_FAR),
        (ClaimState.NOT_MEASURED, "tkperf did not look for it there"),
    ]
    before = next(each for each in cut_off if any(in_section([each], second)))
    assert checked(before, of_third + mean, f'test = "demand"\n{mean}\nblock_size = "4k"\nread_percent = 0') == [
        (ClaimState.NOT_MEASURED, f"the run was interrupted before {third}"),
        (ClaimState.NOT_MEASURED, "the run was interrupted before test demand"),
    ]


def test_what_cannot_change_any_more_is_judged(cut_off: list[RunResult]) -> None:
    """A claim about a recovery is judged as soon as no later slice can change the result. Until then, the claim cannot
    be judged.
    """
    third = "AG3 SEQ 1024k"
    results = [each for each in cut_off if any(in_section([each], third))]
    claim = f'test = "xsr"\nsection = "{third}"\nmetric = "recovery_s"\n'
    claims = [f"{claim}{limit}" for limit in ("at_most = 1.5", "at_most = 60", "not_found = true")]
    recoveries = [
        found
        for section in in_section(results, third)
        for found in section.characteristics
        if found.key == "recovery_s"
    ]
    assert (recoveries[1].value, recoveries[1].at_least) == (None, 2.0)
    cannot = ClaimState.INCONCLUSIVE
    assert [state for state, _ in checked(results[1], *claims)] == [ClaimState.NOT_MET, cannot, cannot]
    assert recoveries[3].value == 4.0
    assert [state for state, _ in checked(results[3], *claims)] == [
        ClaimState.NOT_MET,
        ClaimState.MET,
        ClaimState.NOT_MET,
    ]


def test_tables_name_what_did_not_end(cut_off: list[RunResult]) -> None:
    """The table of sections has a row for each section, even for a section without a measurement. The table of cells
    states for each cell whether its section is complete.
    """
    result = next(each for each in cut_off if any(in_section([each], "Demand 100/0")))
    tables = {table.name: table for table in build_tables(result, (), lambda *_: ())}
    columns = tables["sections"].columns
    rows = [dict(zip(columns, row, strict=True)) for row in tables["sections"].rows]
    rows = [row for row in rows if row["test"] == "demand"]
    assert [(row["section"], row["section_complete"], row["test_status"]) for row in rows] == [
        ("Random writes before demand", True, "interrupted"),
        ("Demand 100/0", False, "interrupted"),
        ("Demand 0/100", False, "interrupted"),
        ("Demand 65/35", False, "interrupted"),
    ]
    assert rows[-1]["ended_because"] == "not measured"
    of_cells = tables["cells"]
    found = {row[3]: row[of_cells.columns.index("section_complete")] for row in of_cells.rows}
    assert found["Random writes before demand"] is True
