"""The verdict on a measurement is the most serious of its reasons, according to the table in
docs/explanation/method.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.analysis.made_up import FOUR_KIB_WRITES, made_up_run, made_up_section
from tkperf.analysis.batch_verdict import BatchCode
from tkperf.analysis.comparing.comparison import ComparisonCode
from tkperf.analysis.drive_telemetry import DriveTelemetry
from tkperf.analysis.estimates import PlanCode
from tkperf.analysis.readiness import DeviceCode, HostCode, RestoreCode, TuneCode
from tkperf.analysis.results import END_LOST, ResumptionResult, RunResult, StepHost
from tkperf.analysis.run_overview import StatusCode
from tkperf.analysis.verdict import (
    CODES_OF_LOADS,
    CheckCode,
    ReasonCode,
    VerdictCode,
    VerdictReason,
    VerdictState,
    judge_run,
)
from tkperf.model.disturbance.io import Disturbance, DisturbanceCode
from tkperf.model.figures import LoadCaution
from tkperf.model.record import GoesOn, LeftOut, PurgeRecord, RunStatus, StepKind
from tkperf.model.run_info import IMPORTED
from tkperf.model.steady_state import judge
from tkperf.page.marking import find_level
from tkperf.page.verdict_texts import NoteLevel, describe_reason, describe_verdict, level_of
from tkperf.page.words.run import BADGES

KINDS: tuple[type[VerdictCode], ...] = (
    ReasonCode,
    CheckCode,
    ComparisonCode,
    PlanCode,
    DeviceCode,
    HostCode,
    TuneCode,
    RestoreCode,
    StatusCode,
    BatchCode,
)
METHOD = Path(__file__).parents[2] / "docs/explanation/method.md"
STEADY = made_up_section("IOPS", {FOUR_KIB_WRITES: (100.0,) * 5})
STEP = StepHost(
    section="IOPS",
    kind=StepKind.ROUND,
    number=1,
    position=0,
    workload=FOUR_KIB_WRITES,
    started_s=0.0,
    duration_s=60.0,
    host_limited=False,
    host=None,
    disturbances=(Disturbance(code=DisturbanceCode.FOREIGN_IO, text="", started_s=0, duration_s=1),),
)
RESUMED = ResumptionResult(
    resumed_utc="2026-01-01T00:00:00+00:00",
    stopped_s=1.0,
    resumed_s=2.0,
    status=RunStatus.INTERRUPTED,
    because=None,
    test="iops",
    section="IOPS",
    goes_on=GoesOn.WHERE_IT_STOPPED,
    set_aside_steps=0,
    set_aside_written_bytes=0,
)


def a_run(**changes: object) -> RunResult:
    run = made_up_run("R", {"iops": [STEADY]})
    info = replace(
        run.info, profile_name="pts-e-1.1", ioengine="io_uring", device={"kind": "block device"}, alterations=()
    )
    return replace(replace(run, info=info), **changes)  # type: ignore[arg-type]


def with_info(**changes: object) -> RunResult:
    run = a_run()
    return replace(run, info=replace(run.info, **changes))  # type: ignore[arg-type]


def with_section(**changes: object) -> RunResult:
    run = a_run()
    (test,) = run.tests
    section = replace(test.sections[0], **changes)  # type: ignore[arg-type]
    return replace(run, tests=(replace(test, sections=(section,)),))


def with_test(**changes: object) -> RunResult:
    run = a_run()
    return replace(run, tests=(replace(run.tests[0], **changes),))  # type: ignore[arg-type]


def limited() -> RunResult:
    cells = tuple(replace(cell, host_limited=True) for cell in STEADY.cells)
    return with_section(cells=cells)


def with_caution(caution: LoadCaution) -> RunResult:
    return with_section(plan=replace(STEADY.plan, cautions=(caution,)))


MADE: dict[ReasonCode, Callable[[], RunResult]] = {
    ReasonCode.FAILED: lambda: a_run(status=RunStatus.FAILED, ended_because="purge: it failed"),
    ReasonCode.NOTHING_MEASURED: lambda: a_run(tests=()),
    ReasonCode.RUNNING: lambda: a_run(status=RunStatus.RUNNING),
    ReasonCode.INTERRUPTED: lambda: a_run(status=RunStatus.INTERRUPTED),
    ReasonCode.IMPORTED: lambda: with_info(device={"kind": IMPORTED}),
    ReasonCode.SHORT_PROFILE: lambda: with_info(profile_name="quick"),
    ReasonCode.NOT_STEADY: lambda: with_section(steady=False),
    ReasonCode.STEADY_STATE_NOT_JUDGED: lambda: with_section(
        steady=None, verdict=judge((1, 2), (100.0, 100.0), tracking="IOPS", unit="IOPS")
    ),
    ReasonCode.DISTURBED: lambda: with_test(steps=(STEP,)),
    ReasonCode.HOST_LIMITED: limited,
    ReasonCode.THROTTLED: lambda: with_test(telemetry=(DriveTelemetry(drive="/dev/x", throttled_s=3.0),)),
    ReasonCode.MEDIA_ERRORS: lambda: a_run(media_errors=2),
    ReasonCode.NOT_PURGED: lambda: with_section(
        purge=PurgeRecord(section="IOPS", started_s=0.0, duration_s=0.0, method="none")
    ),
    **{code: partial(with_caution, caution) for caution, code in CODES_OF_LOADS.items()},
    ReasonCode.ALTERED: lambda: with_info(alterations=("runtime 60 s -> 1 s",)),
    ReasonCode.SPANS_INTERRUPTION: lambda: a_run(resumptions=(RESUMED,)),
    ReasonCode.DAMAGED: lambda: a_run(left_out=(LeftOut(what="a step", reason="damaged"),)),
    ReasonCode.FILE_TARGET: lambda: with_info(device={"kind": "file"}),
}


def test_a_run_without_any_reason_is_valid() -> None:
    assert judge_run(a_run()).state is VerdictState.VALID
    assert describe_verdict(a_run()).text == "Valid"


@pytest.mark.parametrize("code", ReasonCode)
def test_each_reason_alone_leads_to_its_state(code: ReasonCode) -> None:
    """Each reason alone leads to the verdict that the reason requires, and the verdict also states the reason in
    words.
    """
    run = MADE[code]()
    verdict = judge_run(run)
    assert [reason.code for reason in verdict.reasons] == [code]
    assert verdict.state is code.severity
    (said,) = describe_verdict(run).reasons
    assert said


def test_the_gravest_reason_decides_and_comes_first() -> None:
    run = replace(with_section(steady=False), status=RunStatus.FAILED, media_errors=1)
    verdict = judge_run(run)
    assert verdict.state is VerdictState.NOT_VALID
    assert [reason.code for reason in verdict.reasons] == [
        ReasonCode.FAILED,
        ReasonCode.NOT_STEADY,
        ReasonCode.MEDIA_ERRORS,
    ]


def test_a_section_whose_end_is_lost_is_damage() -> None:
    """A section without a recorded end counts as damaged. Rows of the section may have been deleted. Such a deletion
    damages no page of the file, so only the missing end shows the deletion.
    """
    (reason,) = judge_run(with_section(steady=None, ended_because=END_LOST)).reasons
    assert (reason.code, reason.count) == (ReasonCode.DAMAGED, 1)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("Latency",), "Latency has too few rounds to judge steady state"),
        (("IOPS", "Latency"), "IOPS, Latency have too few rounds to judge steady state"),
        (
            ("RND, with reads", "SEQ, with writes"),
            "'RND, with reads', 'SEQ, with writes' have too few rounds to judge steady state",
        ),
    ],
)
def test_a_reason_keeps_the_names_of_sections_apart(names: tuple[str, ...], words: str) -> None:
    """If the name of a section contains a comma, a reason quotes the name. The names of several sections therefore
    remain distinguishable.
    """
    reason = VerdictReason(code=ReasonCode.STEADY_STATE_NOT_JUDGED, sections=names)
    assert describe_reason(reason, a_run()) == words


def test_a_model_is_named_before_everything() -> None:
    run = with_info(ioengine="simulated")
    assert describe_verdict(run).text == "SIMULATED. Valid"


def test_the_method_has_the_table_of_severities() -> None:
    text = METHOD.read_text(encoding="utf-8")
    table = text[text.index("## The verdict") :].split("\n## ")[0]
    listed = re.findall(r"^\|.* `([a-z-]+)` \| ([a-z ]+) \|", table, re.M)
    codes = [code for kind in KINDS for code in kind]
    assert listed == [(code.value, code.severity.value) for code in codes]
    assert set(KINDS) == set(VerdictCode.__subclasses__())


@pytest.mark.parametrize("code", BADGES)
def test_a_badge_has_the_weight_of_its_reason(code: ReasonCode) -> None:
    """A badge has the same severity as its reason. A file target is a caution in both, because the file system
    influences the results.
    """
    said = find_level(f"{BADGES[code]}: why")
    assert said is level_of(code.severity)
    assert code is not ReasonCode.FILE_TARGET or said is NoteLevel.CAUTION
