"""The page of a plan shows the result of the estimate and each test. Repeated phases are shown only once."""

from __future__ import annotations

from dataclasses import replace

import tkperf
from tkperf.analysis.estimates import REFUSAL, RunEstimate, judge_plan
from tkperf.analysis.verdict import VerdictState
from tkperf.model.record import RunNote
from tkperf.page.plan import build_plan_page, describe_plan_verdict
from tkperf.pipeline.estimate_run import ASSUMED, estimate_run, parse_rating


def estimate_of(*tests: str, rated: str | None = None) -> RunEstimate:
    plan = tkperf.make_plan("ssd", "sim:sata-ssd", tests=tests)
    return estimate_run(plan, ASSUMED, None if rated is None else parse_rating(rated))


def test_the_answer_has_time_amount_and_share_of_a_life() -> None:
    """The verdict on a plan contains the time, the written amount and the share of the rated endurance. For a simulated
    drive, SIMULATED precedes the verdict, and no confirmation is mentioned.
    """
    verdict = describe_plan_verdict(estimate_of("iops", "tp", rated="600TBW"))
    assert verdict.text == (
        "SIMULATED. Can run: 2 tests, 5 h 48 min to 25 h 48 min of simulated time, writes 1.4 TB to 23.9 TB, "
        "0.24 % to 4 % of the rated endurance"
    )


def test_the_gravest_reason_decides() -> None:
    """The most serious reason decides the verdict on a plan. A refusal precedes all other reasons. A warning or a high
    cost is a caution. A block size that was left out is not a caution.
    """
    estimate = replace(estimate_of("tp"), simulated=False, asks=True)
    confirm = "; nothing is written before you confirm"
    assert judge_plan(estimate).state is VerdictState.CAN_RUN
    assert describe_plan_verdict(estimate).text.endswith(f" plus purging, writes 960.2 GB to 2.5 TB{confirm}")
    known = RunNote(code="preparation", text="block size 0.5 KiB left out")
    assert judge_plan(replace(estimate, warnings=(known,))).state is VerdictState.CAN_RUN
    slow = replace(estimate, device={**estimate.device, "link_downgraded": True})
    assert judge_plan(slow).state is VerdictState.CAN_RUN_WITH_CAUTIONS
    assert "; its link runs below what it could do;" in describe_plan_verdict(slow).text
    dear = estimate_of("tp", rated="20TBW")
    assert judge_plan(dear).state is VerdictState.CAN_RUN_WITH_CAUTIONS
    assert "4.8 % to 12 % of the rated endurance (more than 5 %)" in describe_plan_verdict(dear).text
    busy = RunNote(code="host-disturbs", text="the host is busy")
    assert describe_plan_verdict(replace(estimate, warnings=(busy,))).text.endswith(f"; 1 warning below{confirm}")
    used = RunNote(code=REFUSAL, text="/dev/sdb is mounted")
    refused = describe_plan_verdict(replace(estimate, warnings=(busy, used)))
    assert refused.text.startswith("Would be refused: /dev/sdb is mounted; 1 test, ")
    assert "confirm" not in refused.text


def test_rounds_that_alternate_are_one_row() -> None:
    """Alternating rounds are one row of the table with the sums of their times. The data contain the separate
    stages.
    """
    estimate = estimate_of("cbw")
    (phases,) = build_plan_page(estimate).tables
    assert phases.rows[0] == ("Composite Block Workload (CBW, ECW)", "10 h 01 min to 38 h 01 min", "at most 53.4 TB")
    rows = [row for row in phases.rows if "times: " in row[0] and row[0].strip()[0].isdigit()]
    assert rows == [
        (
            "\N{NO-BREAK SPACE}\N{NO-BREAK SPACE}5 to 25 times: Writes before each round (1 round of 1 step), Demand "
            "grid (1 round of 49 steps)",
            "4 h 30 min to 22 h 30 min",
            "at most 25.8 TB",
        )
    ]
    assert sum(stage.section == "Demand grid" for stage in estimate.stages) == 25


def test_sections_of_other_names_or_amounts_stay_rows_of_their_own() -> None:
    """Sections with different names or amounts have separate rows, because the throughput test purges, fills and
    measures for each block size.
    """
    (phases,) = build_plan_page(estimate_of("tp")).tables
    assert [row[0].strip() for row in phases.rows[1:]] == [
        f"Throughput {size}: {what}"
        for size in ("1024k", "128k")
        for what in ("purge", "fill 2 × 240.1 GB", "5 to 25 rounds of 2 steps")
    ]


def test_warm_ups_are_not_counted_as_rounds() -> None:
    """The plan of a grid counts the cells as rounds, and mentions the warm-ups before them separately. The log of the
    run uses the same counts.
    """
    (phases,) = build_plan_page(estimate_of("interference")).tables
    rows = [row[0].strip() for row in phases.rows]
    assert "120 rounds of 1 step, each after a warm-up" in rows
    assert "First cell again: 1 round of 1 step, after a warm-up" in rows


def test_a_demand_that_no_test_uses_is_not_mentioned() -> None:
    """The conditions contain the demand of the profile only if a test uses it. A test of loads that run at the same
    time defines its own demands.
    """

    def profile_of(*tests: str) -> str:
        ((_, facts),) = build_plan_page(estimate_of(*tests)).disclosure
        return dict(facts)["profile"]

    assert "TC4/QD32" not in profile_of("interference")
    assert "TC4/QD32" in profile_of("iops")
    assert "TC4/QD32" in profile_of("iops", "interference")
