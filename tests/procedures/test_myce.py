"""The tests of Myce/OakGate at full length. The tests check every phase and its order, and the level beyond which a
drive does not sustain the offered rate.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from tests.builders import run_info, simulate, view_of
from tests.charts import curves_of
from tests.procedures.test_procedures import drive, measured
from tkperf.analysis.over_seconds import analyse_opened
from tkperf.analysis.results import SectionResult
from tkperf.model.errors import ProfileError
from tkperf.model.figures import FigureKind
from tkperf.model.measurement import NO_IO, Measurement
from tkperf.model.phases import Continuous, Fill, Phase, Purge, Round, SectionOutcome
from tkperf.model.quantity import Direction, combine
from tkperf.model.units import GIB
from tkperf.model.workload import Access, Arrival, Workload
from tkperf.page.page import TableView
from tkperf.page.shown_section import ShownSection
from tkperf.page.tables.cell_tables import build_listing
from tkperf.procedures import SSD_TESTS, choose_tests, load_profile, parse_profile
from tkperf.procedures.building_blocks import keeps_up
from tkperf.procedures.forecast import Case, forecast, longest_phases
from tkperf.procedures.latency_over_demand import STATE_SECTION, LatencyOverDemandTable, choose_increment
from tkperf.procedures.profiles import Profile
from tkperf.runfile.reader import RunFile

MYCE = load_profile("myce")
DEMAND = MYCE.table(LatencyOverDemandTable)
# The rates of the S3700 in the review for reads, writes and the mix.
ABLE_IOPS = {100: 75_400.0, 0: 32_700.0, 65: 48_000.0}


def s3700(_phase: Phase, workload: Workload) -> float:
    able = ABLE_IOPS.get(workload.read_percent, 30_000.0)
    return min(able, workload.offered_iops or able)


def run(test: str, profile: Profile = MYCE, iops: object = s3700) -> tuple[list[Phase], tuple[SectionOutcome, ...]]:
    phases, verdicts, outcomes = drive(SSD_TESTS[test].procedure(profile, GIB), iops)  # type: ignore[arg-type]
    assert not verdicts, "nothing waits for steady state"
    return phases, outcomes


def offered(phase: Phase) -> float | None:
    assert isinstance(phase, Round)
    (step,) = phase.steps
    return step.workload.offered_iops


def of_section(phases: list[Phase], section: str) -> list[Phase]:
    return [phase for phase in phases if phase.section == section]


def listing_of(section: SectionResult) -> TableView:
    """Return the only listing that the plan of the section requests."""
    (asked,) = (one for one in section.plan.figures if one.kind is FigureKind.LISTING)
    return build_listing(ShownSection(section=section, key=""), asked)


def test_without_names_a_profile_of_its_own_runs_all_that_it_has() -> None:
    """If a profile lacks the default tests and the user names no tests, all tests of the profile run. With other
    profiles, the user must name the tests of Myce.
    """
    assert [test.name for test in choose_tests(MYCE, "ssd")] == ["demand", "qos"]
    assert [test.name for test in choose_tests(load_profile("quick"), "ssd")] == ["iops", "lat", "tp", "writesat"]


def test_demand_is_preconditioning_and_levels_of_9_and_51_seconds() -> None:
    """The demand test runs a purge, a fill and 2 h of random 4 KiB writes at QD 32. Each mix then has levels that are
    1,000 IOPS apart, each with 9 s of warm-up and 51 s of measurement.
    """
    phases, outcomes = run("demand")
    before = of_section(phases, STATE_SECTION)
    assert [type(phase) for phase in before] == [Purge, Fill] + [Continuous] * 120
    fill, *stream = before[1:]
    assert isinstance(fill, Fill)
    assert fill.passes == 1
    for phase in stream:
        assert isinstance(phase, Continuous)
        assert (phase.duration_s, phase.longest_s, phase.warm_up) == (60, 7200, False)
        assert str(phase.workload) == "RND 4k R/W 0/100 TC1/QD32"
    assert [section.section for section in outcomes] == [STATE_SECTION, "Demand 100/0", "Demand 0/100", "Demand 65/35"]
    probe, *levels = of_section(phases, "Demand 100/0")
    assert isinstance(probe, Round)
    assert (probe.warm_up, offered(probe), probe.steps[0].duration_s) == (True, None, 10)
    warm_ups, rounds = levels[::2], levels[1::2]
    # The drive sustains the last level before five missed levels. The drive does not reach 99 % of 77,000 IOPS.
    assert [offered(phase) for phase in rounds] == [1000.0 * level for level in range(1, 82)]
    assert [offered(phase) for phase in warm_ups] == [offered(phase) for phase in rounds]
    for warm_up, level in zip(warm_ups, rounds, strict=True):
        assert isinstance(warm_up, Round)
        assert isinstance(level, Round)
        assert (warm_up.warm_up, warm_up.steps[0].duration_s) == (True, 9)
        assert (level.warm_up, level.steps[0].duration_s) == (False, 51)
        workload = level.steps[0].workload
        assert (workload.access, workload.block_size_bytes) == (Access.RANDOM, 4096)
        assert (workload.jobs, workload.io_depth, workload.arrival) == (32, 1, Arrival.LINEAR)
    assert phases == before + [phase for section in outcomes[1:] for phase in of_section(phases, section.section)]


def test_the_levels_of_a_mix_end_with_those_missed_in_a_row() -> None:
    """The levels of a mix end after five consecutive missed levels. The reason for the end names the rate that was
    missed.
    """
    _, outcomes = run("demand")
    _, reads, writes, mixed = outcomes
    assert [len(each.window) for each in (reads, writes, mixed)] == [81, 38, 53]
    assert writes.verdict is None
    # In this minute, which measured() simulates, 1,300 I/Os per second were not completed.
    assert writes.ended_because == (
        "missed 5 levels in a row: of 34,000 it did 32,700 (96.2 %) and was 78,000 I/Os behind after 60 s"
    )


def test_a_level_missed_once_does_not_end_them() -> None:
    """A single missed level does not end the series of levels, because a drive may do internal work for a minute."""

    def hiccup(phase: Phase, workload: Workload) -> float:
        return 100.0 if workload.offered_iops == 20_000 else s3700(phase, workload)

    _, outcomes = run("demand", iops=hiccup)
    assert len(outcomes[1].window) == 81


def test_a_drive_that_never_keeps_up_or_always_does_ends_them_too() -> None:
    """If the drive sustains no level, the series ends after five consecutive missed levels. If the drive sustains every
    level, the series ends after all levels.
    """
    _, outcomes = run("demand", iops=lambda *_: 3.0)
    assert outcomes[1].window == (1, 2, 3, 4, 5)
    assert outcomes[1].ended_because.startswith("missed 5 levels in a row: of 1,000 it did 3 ")

    def faster_than_it_seemed(_phase: Phase, workload: Workload) -> float:
        return workload.offered_iops or 50_000.0

    phases, outcomes = run("demand", iops=faster_than_it_seemed)
    assert outcomes[1].ended_because == "the last of 120 levels, 120,000 IOPS offered"
    assert len(of_section(phases, "Demand 100/0")) == 1 + 2 * 120


@pytest.mark.parametrize(
    ("saturated_iops", "increment"),
    [(0.0, 1000), (99_999, 1000), (100_001, 2000), (450_000, 5000), (900_000, 10_000), (2.5e6, 50_000)],
)
def test_levels_are_farther_apart_for_a_fast_drive(saturated_iops: float, increment: int) -> None:
    """For a fast drive, the differences between levels are larger. The difference is 1, 2 or 5 times a power of ten,
    and is so large that the highest possible level is at least 1.2 times the rate of the drive.
    """
    assert choose_increment(saturated_iops, DEMAND) == increment


def test_random_arrivals_may_by_chance_be_fewer() -> None:
    """The number of random arrivals may be lower than the offered number by three standard deviations. The number of
    evenly spaced arrivals may not.
    """
    poisson = Workload(
        access=Access.RANDOM,
        read_percent=100,
        block_size_bytes=4096,
        jobs=1,
        io_depth=1,
        offered_iops=100.0,
        arrival=Arrival.POISSON,
    )
    assert keeps_up(poisson, (measured(97.0, 60.0),), 99)
    assert not keeps_up(poisson, (measured(94.0, 60.0),), 99)
    linear = replace(poisson, arrival=Arrival.LINEAR)
    assert not keeps_up(linear, (measured(97.0, 60.0),), 99)
    assert keeps_up(linear, (measured(99.0, 60.0),), 99)


def test_backlog_is_what_was_due_and_not_done() -> None:
    """The backlog is the number of I/Os that were due but not completed. In a mix, each direction has its own share of
    the backlog. A workload without an offered rate has no backlog.
    """
    stats = measured(20_000.0, 10.0).write
    seen = Measurement(duration_s=10.0, read=stats, write=stats)
    workload = Workload(
        access=Access.RANDOM, read_percent=75, block_size_bytes=4096, jobs=1, io_depth=1, offered_iops=50_000.0
    )
    told = {each: combine([seen], workload, each) for each in Direction}
    assert [told[each]["backlog_ios"] for each in Direction] == [100_000, 175_000, 0]
    assert told[Direction.ALL]["behind_us"] == pytest.approx(2e6)
    unbounded = combine([seen], replace(workload, offered_iops=None))
    assert (unbounded["backlog_ios"], unbounded["behind_us"]) == (None, None)
    uncounted = combine([replace(seen, rates_known=False)], workload)
    assert uncounted["backlog_ios"] is None


def test_qos_is_120_rounds_of_9_and_51_seconds_in_one_stream_each() -> None:
    """The QoS test measures sequential reads of a filled drive. After a purge and 2 h of writes, it measures the random
    mix of 50/50. After another purge and 2 h of writes, it measures random writes and random reads.
    """
    phases, outcomes = run("qos")
    names = [
        "QoS sequential 100/0",
        "Random writes before QoS random 50/50",
        "QoS random 50/50",
        "Random writes before QoS random 0/100",
        "QoS random 0/100",
        "QoS random 100/0",
    ]
    assert [section.section for section in outcomes] == names
    sections = [of_section(phases, name) for name in names]
    assert phases == [phase for section in sections for phase in section]
    assert [type(phase) for phase in sections[0][:2]] == [Purge, Fill]
    for before in (sections[1], sections[3]):
        assert [type(phase) for phase in before] == [Purge, Fill] + [Continuous] * 120
    texts = []
    for place in (0, 2, 4, 5):
        stream = [phase for phase in sections[place] if isinstance(phase, Continuous)]
        assert len(stream) == 240
        assert all(later.continues(earlier) for earlier, later in pairwise(stream))
        assert {phase.longest_s for phase in stream} == {7200}
        assert [(phase.number, phase.warm_up, phase.duration_s) for phase in stream] == [
            each for number in range(1, 121) for each in ((number, True, 9), (number, False, 51))
        ]
        texts.append(str(stream[0].workload))
        assert outcomes[place].window == tuple(range(1, 121))
    assert texts == [
        "SEQ 4k R/W 100/0 TC1/QD1",
        "RND 4k R/W 50/50 TC1/QD1",
        "RND 4k R/W 0/100 TC1/QD1",
        "RND 4k R/W 100/0 TC1/QD1",
    ]


def test_looking_ahead_the_worst_drive_is_the_one_that_keeps_up() -> None:
    """In a forecast, the longest case is a drive that sustains every level, because all levels run. In the best case,
    the series of levels ends after the first levels.
    """
    test = SSD_TESTS["demand"]
    rounds = [
        phase
        for phase in longest_phases(test.procedure(MYCE, GIB), active_range_bytes=GIB)
        if isinstance(phase, Round) and not phase.warm_up
    ]
    assert len(rounds) == 3 * 120
    best = forecast(test.procedure(MYCE, GIB), (), Case.BEST, active_range_bytes=0)
    worst = forecast(test.procedure(MYCE, GIB), (), Case.WORST, active_range_bytes=0)
    assert sum(best) == 7200 + 3 * (10 + 5 * 60)
    assert sum(worst) == 7200 + 3 * (10 + 120 * 60)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("increment_iops = 1000", "increment_iops = 50"), "increment_iops: the first level would be less"),
        (("precondition_slice_s = 60", "precondition_slice_s = 9999"), "precondition_slice_s: longer than"),
        (("precondition_slice_s = 60", "precondition_slice_s = 0.1"), "precondition_slice_s: more than 20,000"),
        (('arrival = "linear"', 'arrival = "burst"'), "latency_over_demand.arrival"),
        (("kept_up_percent = 99", "kept_up_percent = 101"), "kept_up_percent"),
    ],
)
def test_a_mistake_in_the_tables_is_named(change: tuple[str, str], reason: str) -> None:
    """A mistake in the tables of these tests is refused before tkperf accesses a device. The message contains the file,
    the key and the reason.
    """
    text = (Path(__file__).parents[2] / "src/tkperf/procedures/profiles/myce.toml").read_text()
    assert change[0] in text
    with pytest.raises(ProfileError) as caught:
        parse_profile(text.replace(*change), file="mine.toml")
    assert "mine.toml" in str(caught.value)
    assert reason in str(caught.value)


@pytest.fixture(scope="module")
def short() -> Profile:
    """Return a profile of both tests with few levels and rounds."""
    profile = load_profile("quick")
    table = profile.table(LatencyOverDemandTable)
    return profile.with_tables(msgspec.structs.replace(table, most_levels=8, read_percents=(100, 65), level_s=8))


def test_a_simulated_drive_is_followed_until_it_saturates(tmp_path: Path, short: Profile) -> None:
    """The chart of a series of levels contains the ideal line and both marks. The table contains a row for each level.
    Beyond saturation, the backlog increases but the latency of the device does not.
    """
    tests = {"demand": SSD_TESTS["demand"]}
    simulate(tmp_path, run_info(), profile=short, suite=tests)
    with RunFile(tmp_path / "run.tkperf") as run_file:
        result = analyse_opened(run_file, run_file.record())
    (test,) = result.tests
    _, reads, _ = test.sections
    no_backlog, saturated = reads.characteristics
    assert (no_backlog.key, saturated.key) == ("no_backlog_iops", "saturated_iops")
    assert no_backlog.value is not None
    assert saturated.value is not None
    levels = [cell.workload.offered_iops for cell in reads.cells]
    increment = levels[0]
    assert increment is not None
    assert levels == [increment * number for number in range(1, len(levels) + 1)]
    most = max(cell.all["iops"] or 0 for cell in reads.cells)
    assert no_backlog.value <= saturated.value <= most
    assert saturated.value - no_backlog.value <= 2 * increment
    listing = listing_of(reads)
    # Each latency is shown in a unit that suits its values.
    names = [column.rpartition(" (")[0] or column for column in listing.columns[:6]]
    assert names == ["Offered IOPS", "IOPS", "backlog", "behind", "mean with wait", "mean"]
    backlogs = [float(row[2].replace(",", "")) for row in listing.rows]
    waited = [(cell.all["latency_with_wait_us"] or 0) - (cell.all["latency_mean_us"] or 0) for cell in reads.cells]
    assert [row[0] for row in listing.rows] == [f"{level:,.0f}" for level in levels]
    kept = levels.index(no_backlog.value)
    assert waited[: kept + 1] == pytest.approx([0] * (kept + 1), abs=1)
    # The backlog increases evenly, so the mean wait is half of the delay of the last I/O.
    assert waited[-1] == pytest.approx(reads.cells[-1].all["behind_us"] / 2, rel=0.1)  # type: ignore[operator]
    assert all(each <= 0.01 * (level or 0) for each, level in zip(backlogs[: kept + 1], levels, strict=False))
    # If the backlog increases evenly, its median over the second half is its value after three quarters of the time.
    assert reads.cells[-1].backlog_median_ios == pytest.approx(0.75 * backlogs[-1], rel=0.1)
    assert backlogs[kept + 1 :] == sorted(backlogs[kept + 1 :])
    view = view_of(tmp_path / "run.tkperf")
    charts = view.tests[0].sections[1].charts
    assert charts[0].text.startswith("Achieved versus offered IOPS: IOPS of every level. Dashed: all that")
    chart = curves_of(charts[0])
    curve, ideal = ([(point.x, point.y) for point in each.points] for each in chart.curves)
    assert ideal == [(0.0, 0.0), (levels[-1], levels[-1])]
    assert [x for x, _ in curve] == levels
    assert [rule.x for rule in chart.rules] == [no_backlog.value, saturated.value]
    assert [chart.switches for chart in charts] == [
        (("IOPS", "backlog", "time behind"),),
        (("mean", "99.9 %", "maximum"),),
    ]
    assert [len(chart.on_paper) for chart in charts] == [1, 3]


def test_reads_and_writes_of_the_mix_are_told_apart(tmp_path: Path, short: Profile) -> None:
    """The reads and the writes of a mix have separate quantiles, curves and histograms. Warm-ups count only as written
    data.
    """
    tests = {"qos": SSD_TESTS["qos"]}
    result = simulate(tmp_path, run_info(), profile=short, suite=tests)
    mix = result.tests[0].sections[2]
    listing = listing_of(mix)
    assert [row[0] for row in listing.rows] == ["reads", "writes", "reads and writes"]
    assert listing.columns[1:3] == ("p50 (µs)", "p90 (µs)")
    (cell,) = mix.cells
    assert cell.rounds == len(mix.slices) == 10
    # Each second follows a warm-up of 0.5 s.
    assert [each.start_s for each in mix.slices] == pytest.approx([1.5 * place for place in range(10)])
    measured_bytes = sum((each.values.write or {})["ios"] or 0 for each in mix.slices) * 4096
    assert mix.slices[-1].total_written_bytes is not None
    assert mix.slices[-1].total_written_bytes > 1.3 * measured_bytes
    view = view_of(tmp_path / "run.tkperf")
    section = view.tests[0].sections[2]
    titles = [view.chart.title for chart in section.charts for view in chart.on_paper]
    histograms = [title for title in titles if "histogram" in title]
    assert histograms == [f"Response time histogram: {of} of RND 4k R/W 50/50 TC1/QD1" for of in ("reads", "writes")]
    assert section.charts[0].switches == (("histogram", "exceedance"), ("reads", "writes"))
    assert set(curves_of(section.charts[1]).names) == {"mean of reads", "mean of writes"}


def test_nothing_is_lost_of_no_io() -> None:
    """A level in which no I/O is completed counts as missed and causes no division by zero."""
    workload = Workload(
        access=Access.RANDOM, read_percent=100, block_size_bytes=4096, jobs=1, io_depth=1, offered_iops=1.0
    )
    nothing = Measurement(duration_s=1.0, read=NO_IO, write=NO_IO)
    assert not keeps_up(workload, (nothing,), 99)
