"""Characteristics: numbers that describe how a section changes over time. A characteristic is found, not found, or not
searched for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.analysis.made_up import made_up_run, made_up_section
from tests.builders import work
from tkperf.analysis.characteristics import CHARACTERISTICS, Characteristic
from tkperf.analysis.characteristics_search import with_characteristics
from tkperf.analysis.claim_results import ClaimState
from tkperf.analysis.claims import check_claims
from tkperf.analysis.claims_file import METRICS, parse_claims
from tkperf.analysis.comparing.comparison import compare
from tkperf.analysis.results import RunResult, SectionResult
from tkperf.analysis.timeline.levels import Drop, LevelKind, RateLevel
from tkperf.analysis.timeline.spikes import PeriodicSpikes
from tkperf.analysis.timeline.timelines import Recorded, Timeline
from tkperf.model.errors import UsageError
from tkperf.model.figures import FigureKind, drawn
from tkperf.model.record import PurgeRecord
from tkperf.page.tables.verdict_tables import build_section_tables
from tkperf.render.export_tables import build_tables

WORK = work()
OTHER = work(block_size_bytes=8192)
SPIKES = PeriodicSpikes(period=13.0, first=7.0, expected=9, places=(7.0, 20.0), height=4.0, chance=1e-5)
PURGED = PurgeRecord(section="A", method="simulated", duration_s=0.0, note="", started_s=0.0)


def run_of(*sections: SectionResult, test: str = "xsr") -> RunResult:
    """Return a run of one test. According to the plan of the test, one chart shows all sections."""
    made = made_up_run("run", {test: sections})
    of_test = replace(made.tests[0], figures=(drawn(FigureKind.SECTIONS, "iops"),))
    return replace(made, tests=(with_characteristics(of_test),))


def stream(name: str, rates: Sequence[float], workload: object = WORK) -> SectionResult:
    return made_up_section(name, {workload: rates}, stream=True, window=False)  # type: ignore[dict-item]


def found_in(run: RunResult, section: int = 0) -> dict[str, Characteristic]:
    return {found.key: found for found in run.tests[0].sections[section].characteristics}


def demand(*rates_done: float) -> RunResult:
    """Return levels of 1,000, 2,000 ... offered IOPS, with the number of completed I/Os for each level."""
    levels = {replace(WORK, offered_iops=1000.0 * number): (rate,) for number, rate in enumerate(rates_done, start=1)}
    return run_of(made_up_section("Demand 0/100", levels), test="demand")


def timeline(**found: object) -> Timeline:
    given = {"recorded": Recorded.SLICES, "quantity": "iops", "values": 100} | found
    return Timeline(workload=WORK, **given)  # type: ignore[arg-type]


def check(run: RunResult, test: str, metric: str, limit: str) -> tuple[ClaimState, float | None, str]:
    text = f'[[claim]]\ntest = "{test}"\nmetric = "{metric}"\n{limit}\n'
    claims = parse_claims(text, file="claims.toml")
    (finding,) = check_claims(claims, run, load=lambda _: run, folder=Path()).claim_results
    return finding.state, finding.value, finding.note or ""


@pytest.mark.parametrize(
    ("done", "words", "saturated"),
    [
        ((1000.0, 1500.0), "1,000", "1,500"),
        ((1000.0, 2000.0), "at least 2,000", "at least 2,000"),
        ((600.0, 600.0), "below 1,000", "600"),
    ],
)
def test_a_limit_that_was_not_found_is_bounded(done: tuple[float, ...], words: str, saturated: str) -> None:
    """If the measurement did not find a limit, the result is a bound: the limit lies above the highest level, which has
    no backlog, or below the lowest level, which has a backlog. The result is never a limit of 0.
    """
    assert found_in(demand(*done))["no_backlog_iops"].workload == WORK
    *_, table = build_section_tables(demand(*done).tests[0], None)
    assert (table.columns[1], table.columns[-1]) == ("no backlog up to (IOPS)", "saturates at (IOPS)")
    (row,) = table.rows
    assert (row[1], row[-1]) == (words, saturated)


def test_claims_on_an_offered_rate_use_its_bounds() -> None:
    """A claim on a limit uses the bounds of the limit. If the bounds do not decide the claim, the claim counts as not
    measured.
    """
    key = "no_backlog_iops"
    assert check(demand(1000, 1500), "demand", key, "at_least = 1000")[0] is ClaimState.MET
    assert check(demand(1000, 1500), "demand", key, "at_least = 1001")[0] is ClaimState.NOT_MET
    assert check(demand(1000, 1500), "demand", "saturated_iops", "at_least = 1500")[0] is ClaimState.MET
    kept_all = demand(1000, 2000)
    note = "not found: at least 2,000 IOPS"
    assert check(kept_all, "demand", key, "at_least = 2000") == (ClaimState.MET, None, note)
    assert check(kept_all, "demand", key, "at_least = 2001")[0] is ClaimState.NOT_MEASURED
    assert check(kept_all, "demand", key, "at_most = 2000")[0] is ClaimState.NOT_MET
    none = demand(600, 600)
    assert check(none, "demand", key, "at_least = 1000")[0] is ClaimState.NOT_MET
    assert check(none, "demand", key, "at_least = 500")[0] is ClaimState.NOT_MEASURED
    # tkperf did not search for the limit of another mix.
    wrong = check(demand(1000, 1500), "demand", key, "read_percent = 100\nat_least = 1")
    why = "that mix and block size was not run there, but 0/100 4k"
    assert wrong == (ClaimState.NOT_MEASURED, None, why)


def test_recovery_ends_with_the_first_slice_at_the_earlier_mean() -> None:
    """A stream has recovered at the end of the first slice whose rate reaches the mean rate of the first stream.

    Streams before the other load have no recovery. In this run, the mean rate of the first stream is 100, and the third
    slice exceeds this rate.
    """
    run = run_of(stream("A", [100, 100]), stream("B", [7, 7], OTHER), stream("C", [10, 99, 100, 191]))
    assert found_in(run, 0) == found_in(run, 1) == {}
    third = found_in(run, 2)
    assert (third["recovery_s"].value, third["recovery_s"].at_least) == (3.0, None)
    assert third["share_of_first_percent"].value == 100.0
    assert third["least_after_recovery_percent"].value == 191.0
    falls = run_of(stream("A", [100]), stream("B", [7], OTHER), stream("C", [400, 21, 23]))
    assert found_in(falls, 2)["recovery_s"].value == 1.0
    assert found_in(falls, 2)["least_after_recovery_percent"].value == 21.0
    slow = run_of(stream("A", [100, 100]), stream("B", [7], OTHER), stream("C", [10, 99]))
    recovery = found_in(slow, 2)["recovery_s"]
    assert (recovery.value, recovery.at_least, recovery.text()) == (None, 2.0, "at least 2.0")
    assert check(slow, "xsr", "recovery_s", "at_most = 2")[0] is ClaimState.NOT_MET
    assert check(slow, "xsr", "recovery_s", "at_most = 3")[0] is ClaimState.NOT_MEASURED
    assert check(run, "xsr", "recovery_s", "at_most = 3") == (ClaimState.MET, 3.0, "")


def test_recovery_is_to_within_five_percent_where_the_rate_varied() -> None:
    """If the earlier rate varied, a rate has recovered as soon as it is within 5 % of the earlier rate. Noise therefore
    does not decide in which slice the rate recovers. The earlier rate is a median, so a single slice does not change
    it.
    """
    earlier = [300.0, *[99.0, 101.0] * 10]
    run = run_of(stream("A", earlier), stream("B", [7, 7], OTHER), stream("C", [94, 96, 98, 99, 102]))
    assert found_in(run, 2)["recovery_s"].value == 2.0
    assert found_in(run, 2)["least_after_recovery_percent"].value == pytest.approx(98 / 1.01)


def test_a_claim_that_several_sections_have_an_answer_to_names_one() -> None:
    """If several sections of a run could meet or miss a claim, the claim must name its section. Otherwise a section
    that meets the claim would hide a section that misses it.
    """
    run = run_of(stream("A", [100]), stream("B", [100]), stream("C", [30]))
    limit = "at_least = 90"
    note = "found in several sections: name section, one of B, C"
    found = check(run, "xsr", "share_of_first_percent", limit)
    assert found == (ClaimState.NOT_MEASURED, None, note)
    found = check(run, "xsr", "share_of_first_percent", f'{limit}\nsection = "C"')
    assert found == (ClaimState.NOT_MET, 30.0, "")


def test_levels_drops_and_spikes_have_their_numbers() -> None:
    """Levels, drops and spikes become characteristics. A fresh level is searched for only after a purge. Positions of
    slices are given in seconds.
    """
    phases = (
        RateLevel(kind=LevelKind.FRESH, start=0, end=540, value=88_800),
        RateLevel(kind=LevelKind.SECOND, start=540, end=900, value=60_000),
        RateLevel(kind=LevelKind.TRANSITION, start=900, end=2460, value=50_000),
        RateLevel(kind=LevelKind.STEADY, start=2460, end=6000, value=27_000),
    )
    drop = Drop(start=9, end=12, before=100.0, after=2.0, least=1.0, recovered=True)
    timelines = (
        timeline(levels=phases, settled=True, drops=(drop,)),
        timeline(quantity="latency_max_us", spikes=SPIKES),
        timeline(quantity="latency_mean_us"),
    )
    section = replace(stream("A", [1, 2]), purge=PURGED, filled_bytes=None, timelines=timelines)
    found = found_in(run_of(section))
    assert {key: one.value for key, one in found.items()} == {
        "fresh_iops": 88_800,
        "fresh_until_s": 540,
        "after_fresh_iops": 60_000,
        "after_fresh_until_s": 900,
        "steady_iops": 27_000,
        "steady_from_s": 2460,
        "sudden_drops": 1,
        "latency_max_spike_period_s": 13,
        "latency_mean_spike_period_s": None,
    }
    run = run_of(section)
    assert check(run, "xsr", "latency_mean_spike_period_s", "not_found = true")[0] is ClaimState.MET
    assert check(run, "xsr", "latency_max_spike_period_s", "not_found = true")[0] is ClaimState.NOT_MET
    assert "fresh_iops" not in found_in(run_of(replace(section, purge=None)))


def test_what_never_settled_is_steady_later_than_was_measured() -> None:
    phases = (RateLevel(kind=LevelKind.TRANSITION, start=1, end=25, value=1),)
    section = replace(
        made_up_section("A", {WORK: [1.0, 2.0]}),
        timelines=(timeline(recorded=Recorded.ROUNDS, levels=phases, settled=False),),
    )
    found = found_in(run_of(section))
    assert found["steady_iops"].text() == "not found"
    assert found["steady_from_round"].text() == "at least 25"
    assert check(run_of(section), "xsr", "steady_iops", "at_least = 1") == (ClaimState.NOT_MEASURED, None, "not found")


def test_every_characteristic_can_be_claimed_and_is_in_the_tables() -> None:
    assert set(CHARACTERISTICS) <= set(METRICS)
    tables = {table.name: table for table in build_tables(demand(1000, 2000), [], lambda *_: [])}
    table = tables["characteristics"]
    row, _ = table.rows
    shown = dict(zip(table.columns, row, strict=True))
    assert (shown["key"], shown["unit"]) == ("no_backlog_iops", "IOPS")
    assert (shown["value"], shown["found"], shown["at_least"]) == (None, False, 2000.0)
    assert shown["offered_iops"] is None


def test_compared_runs_say_what_was_not_found() -> None:
    """If the offered rates of a run did not reach a limit, the limit has a lower bound. In a comparison, this lower
    bound is the value of the run.
    """
    (row,) = [
        row for row in compare([demand(1000, 1500), demand(1000, 2000)]).rows if row.quantity.key == "no_backlog_iops"
    ]
    assert [entry.value for entry in row.entries] == [1000.0, 2000.0]
    assert [entry.not_found for entry in row.entries] == [None, "at least 2,000"]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ('metric = "no_backlog_iops"', "give one of at_least, at_most or not_found"),
        ('metric = "no_backlog_iops"\nat_most = 1\nnot_found = true', "give one of"),
        ('metric = "sudden_drops"\nnot_found = true', "key not_found: this key does not apply to 'sudden_drops'"),
        ('metric = "no_backlog_iops"\nat_most = 1\ndirection = "read"', "key direction: 'no_backlog_iops'"),
        ('metric = "iops"\nat_most = 1', "key read_percent: 'iops' needs it"),
        (
            'metric = "iops"\nread_percent = 0\nblock_size = "4k"\nnot_found = true',
            "key not_found: this key applies only to characteristics that tkperf searches for, and 'iops' is not",
        ),
    ],
)
def test_a_claim_that_says_nothing_is_refused(lines: str, reason: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_claims(f'[[claim]]\ntest = "demand"\n{lines}\n', file="claims.toml")
    assert "claims claims.toml, claim 1" in str(refused.value)
    assert reason in str(refused.value)
