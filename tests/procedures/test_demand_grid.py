"""The tests DIRTH and CBW: their procedure at full length, and the points that are selected from the grid
(docs/explanation/method.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources

import msgspec
import pytest

from tests.builders import work
from tests.procedures.test_procedures import drive
from tests.procedures.test_recovery import measure, steps_of
from tkperf.model.errors import ProfileError, UsageError
from tkperf.model.measurement import NO_IO, IoStats, Measurement
from tkperf.model.phases import Continuous, Phase, Purge, Round, SectionOutcome
from tkperf.model.steady_state import SteadyStateVerdict
from tkperf.model.workload import Workload
from tkperf.procedures import SSD_TESTS, fit_to_sector, load_profile, parse_profile
from tkperf.procedures.demand_intensity import GRID, PRECONDITIONING, WRITES_BETWEEN, DemandIntensityTable
from tkperf.procedures.demand_search import CellMeans, DemandPoint, choose_points, choose_saturating, window_means

GIB = 1 << 30
DEMANDS = (32, 16, 8, 6, 4, 2, 1)


def saturating(_phase: Phase, load: Workload) -> float:
    """Return 1,000 IOPS for each outstanding I/O, up to 64,000 IOPS."""
    return 1000.0 * min(64, load.total_outstanding_ios)


@dataclass
class Course:
    phases: list[Phase]
    verdicts: list[SteadyStateVerdict]
    outcomes: tuple[SectionOutcome, ...]

    def of(self, section: str) -> list[Phase]:
        return [phase for phase in self.phases if phase.section == section]


@pytest.fixture(scope="module", params=["dirth", "cbw"])
def course(request: pytest.FixtureRequest) -> Course:
    procedure = SSD_TESTS[request.param].procedure(load_profile("pts-e-1.1"), GIB)
    return Course(*drive(procedure, saturating))


def test_the_order_of_all_phases(course: Course) -> None:
    """The test runs a purge and the preconditioning. It then alternates between writes and the grid. Finally, it runs
    writes and a histogram for each point.
    """
    sections = [
        f"{type(phase).__name__} {phase.section}"
        for place, phase in enumerate(course.phases)
        if not place or phase.section != course.phases[place - 1].section or place == 1
    ]
    turns = [f"Round {WRITES_BETWEEN}", f"Round {GRID}"] * 5
    at_points = [
        f"Continuous {point}{what}"
        for point in ("Maximum", "Middle", "Minimum")
        for what in (": writes before the histogram", ": response times")
    ]
    first = [f"Purge {PRECONDITIONING}", f"Continuous {PRECONDITIONING}"]
    assert sections == [*first, *turns, *at_points]
    assert [each.section for each in course.outcomes] == [
        PRECONDITIONING,
        WRITES_BETWEEN,
        GRID,
        *(each.removeprefix("Continuous ") for each in at_points),
    ]


def test_preconditioning_is_the_workloads_writes_at_32_by_32_until_steady(course: Course) -> None:
    """Preconditioning is one stream of the workload's writes at TC 32 / QD 32, without workload-independent
    preconditioning. The stream continues until five judged minutes are steady. The earliest such minutes are 1, 31, 61,
    91 and 121.
    """
    purge, *stream = course.of(PRECONDITIONING)
    assert isinstance(purge, Purge)
    assert [getattr(phase, "number", 0) for phase in stream] == list(range(1, 122))
    assert {(phase.duration_s, phase.longest_s) for phase in stream if isinstance(phase, Continuous)} == {
        (60.0, 60.0 * 721)
    }
    (load,) = {phase.workload for phase in stream if isinstance(phase, Continuous)}
    assert (load.read_percent, load.jobs, load.io_depth) == (0, 32, 32)
    assert course.outcomes[0].window == (1, 31, 61, 91, 121)


def test_a_round_is_five_minutes_of_writes_and_49_minutes_of_grid(course: Course) -> None:
    """A round consists of five minutes of writes at 32 x 32 and 49 minutes of the grid. The thread count is the outer
    loop and the queue depth is the inner loop. Both loops run from high to low values.
    """
    writes, grid = course.of(WRITES_BETWEEN), course.of(GRID)
    assert [getattr(each, "number", 0) for each in (*writes, *grid)] == [1, 2, 3, 4, 5] * 2
    for each in writes:
        assert isinstance(each, Round)
        (step,) = each.steps
        assert step.duration_s == 300
        assert (step.workload.read_percent, step.workload.jobs, step.workload.io_depth) == (0, 32, 32)
    for each in grid:
        assert isinstance(each, Round)
        assert [(step.workload.jobs, step.workload.io_depth) for step in each.steps] == [
            (jobs, depth) for jobs in DEMANDS for depth in DEMANDS
        ]
        assert {step.duration_s for step in each.steps} == {60.0}


def test_the_histograms_are_ten_minutes_after_an_hour_of_writes(course: Course) -> None:
    """Each histogram of ten minutes follows an hour of writes at the demand of its point. The three points are the
    demand with the highest IOPS, the demand whose IOPS are closest to the middle between the highest and the lowest
    IOPS, and TC 1 / QD 1.
    """
    found = {}
    for point in DemandPoint:
        writes = course.of(f"{point}: writes before the histogram")
        (histogram,) = course.of(f"{point}: response times")
        assert isinstance(histogram, Continuous)
        assert histogram.duration_s == histogram.longest_s == 600
        assert sum(each.duration_s for each in writes if isinstance(each, Continuous)) == 3600
        assert {each.workload for each in writes if isinstance(each, Continuous)} == {
            replace(histogram.workload, read_percent=0)
        }
        found[point] = (histogram.workload.jobs, histogram.workload.io_depth)
    # 64 outstanding I/Os saturate the drive. With 32 outstanding I/Os, the IOPS are nearest to (64,000 + 1,000) / 2.
    assert found == {DemandPoint.MAXIMUM: (2, 32), DemandPoint.MIDDLE: (1, 32), DemandPoint.MINIMUM: (1, 1)}
    grid = course.outcomes[2]
    assert grid.ended_because == (
        "steady state in rounds 1–5; maximum at TC 2 / QD 32: 64,000 IOPS, mean 100.0 µs; middle at "
        "TC 1 / QD 32: 32,000 IOPS, mean 100.0 µs; minimum at TC 1 / QD 1: 1,000 IOPS, mean 100.0 µs"
    )


@pytest.mark.parametrize(("name", "most_off"), [("dirth", 0.0), ("cbw", 5e-4)])
def test_what_is_moved_at_full_length_is_the_workloads(name: str, most_off: float) -> None:
    """In a test on the simulated drive, the transferred bytes equal the number of I/Os times the block size. For a mix
    of block sizes, they equal the number of I/Os times the mean block size. All steps have their full lengths. The test
    has fewer of them: nine demands instead of 49, and fewer writes before the grid and before the histograms.
    """
    test, profile = SSD_TESTS[name], load_profile("pts-e-1.1")
    assert test.table is not None
    table = profile.table(test.table)
    fewer = msgspec.structs.replace(
        table, jobs=(32, 4, 1), io_depths=(32, 4, 1), round_every_slices=10, writes_before_histogram_slices=6
    )
    profile = profile.with_tables(fewer)
    steps = steps_of(measure(test, profile))
    grid = [step for step in steps if step.section == GRID]
    assert len(grid) == 5 * 9
    assert {step.measurement.duration_s for step in grid} == {60.0}
    for step in steps:
        for stats in (step.measurement.read, step.measurement.write):
            assert stats.bytes == pytest.approx(stats.ios * step.workload.mean_block_bytes, rel=most_off, abs=1)
        reads = step.workload.read_percent / 100 * step.measurement.ios
        assert step.measurement.read.ios == pytest.approx(reads, rel=1e-3)


def test_the_workload_is_the_specifications() -> None:
    """The tests use the workloads of the specification. CBW has twelve block sizes. 67 % of its I/Os have 4 KiB, and
    half of its accesses are in 5 % of the range. DIRTH uses the OLTP workload.
    """
    loads = {}
    for name in ("cbw", "dirth"):
        phases, _, _ = drive(SSD_TESTS[name].procedure(load_profile("pts-e-1.1"), GIB), saturating)
        last = phases[-1]
        assert isinstance(last, Continuous)
        loads[name] = last.workload
    cbw, dirth = loads["cbw"], loads["dirth"]
    assert (cbw.read_percent, dirth.read_percent) == (40, 65)
    assert (dirth.block_size_bytes, dirth.block_mix, dirth.zones) == (8192, (), ())
    assert {each.block_size_bytes: each.percent for each in cbw.block_mix} == {
        512: 4,
        1024: 1,
        1536: 1,
        2048: 1,
        2560: 1,
        3072: 1,
        3584: 1,
        4096: 67,
        8192: 10,
        16384: 7,
        32768: 3,
        65536: 3,
    }
    assert cbw.zones_text == "50/5 30/15 20/80"
    assert cbw.mean_block_bytes == pytest.approx(7.635 * 1024)
    assert cbw.blocks_name == "12 sizes 512-64k, mean 7.63k"


def test_without_steady_state_it_ends_by_the_most_rounds_and_says_so() -> None:
    """Without steady state, the test ends after the maximum number of rounds, and the results state that steady state
    was not reached. The test then has 25 judged minutes of preconditioning, 25 rounds, and histograms that were
    measured without steady state.
    """

    def jumps(phase: Phase, load: Workload) -> float:
        number = getattr(phase, "number", 0)
        return saturating(phase, load) * float(2 ** ((number // 30 + number) % 2))

    phases, _, outcomes = drive(SSD_TESTS["dirth"].procedure(load_profile("pts-e-1.1"), GIB), jumps)
    assert len([each for each in phases if each.section == PRECONDITIONING]) == 1 + 721
    assert len([each for each in phases if each.section == GRID]) == 25
    assert outcomes[0].ended_because.startswith("no steady state in 721 slices: ")
    assert outcomes[2].window == (21, 22, 23, 24, 25)
    assert outcomes[-1].ended_because.endswith(", NOT after steady state")


def cell(jobs: int, depth: int, iops: float, mean_us: float | None) -> CellMeans:
    return CellMeans(workload=work(65, 8192, jobs=jobs, io_depth=depth), iops=iops, latency_mean_us=mean_us)


def points(*cells: CellMeans) -> dict[DemandPoint, tuple[int, int]]:
    chosen = choose_points(cells, 5000)
    return {point: (each.workload.jobs, each.workload.io_depth) for point, each in chosen.at.items()}


def test_cells_at_the_ceiling_or_above_are_neither_maximum_nor_middle() -> None:
    """The points "maximum" and "middle" are cells with a latency below 5 ms. The point "minimum" is the least demand,
    even if its latency exceeds this limit. A cell without a measurement is never a point.
    """
    least, low, high = cell(1, 1, 100, 9000), cell(1, 2, 5000, 400), cell(2, 2, 9000, 4999)
    assert points(cell(4, 4, 20_000, 5000), high, low, least, cell(8, 8, 0, None)) == {
        DemandPoint.MAXIMUM: (2, 2),
        DemandPoint.MIDDLE: (1, 2),
        DemandPoint.MINIMUM: (1, 1),
    }


def test_where_all_cells_are_above_the_ceiling_it_chooses_nothing() -> None:
    """If all latencies exceed the limit, as on a slow disk, all cells are considered, and the result states this."""
    slow = (cell(1, 1, 100, 6000), cell(1, 4, 300, 12_000))
    assert points(*slow) == {DemandPoint.MAXIMUM: (1, 4), DemandPoint.MIDDLE: (1, 1), DemandPoint.MINIMUM: (1, 1)}
    chosen = choose_points(slow, 5000)
    assert chosen.all_above_ceiling
    assert str(chosen).endswith("; every cell above the ceiling")


@pytest.mark.parametrize(("within", "found"), [(5, (1, 8)), (4.9, (2, 8)), (0, (2, 8)), (60, (1, 4)), (99, (1, 1))])
def test_the_saturating_demand_is_the_least_within_some_percent(within: float, found: tuple[int, int]) -> None:
    """The saturating demand is the least demand whose result is within the given percentage of the best result. If two
    demands have the same number of outstanding I/Os, the demand with fewer threads counts as less.
    """
    cells = (
        cell(2, 8, 100_000, 160),
        cell(4, 4, 99_999, 160),
        cell(1, 8, 95_000, 84),
        cell(2, 2, 60_000, 66),
        cell(1, 4, 60_000, 66),
        cell(1, 1, 9000, 111),
    )
    enough, best = choose_saturating(cells, within)
    assert (enough.workload.jobs, enough.workload.io_depth) == found
    assert best == cells[0]


def test_means_are_those_of_the_report() -> None:
    """The rate of a cell is the mean of the rates of its rounds. The latency of a cell is the mean of the mean
    latencies of its rounds. The report uses the same means.
    """

    def round_of(iops: int, mean_us: int) -> Mapping[Workload, Measurement]:
        side = IoStats(ios=iops * 2, bytes=0, latency_ios=iops * 2, latency_sum_ns=iops * 2000 * mean_us)
        return {work(): Measurement(duration_s=2, read=NO_IO, write=side)}

    (means,) = window_means([round_of(1000, 100), round_of(3000, 300)])
    assert (means.iops, means.latency_mean_us) == (2000, 200)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("[64, 3]]", "[64, 4]]", "block_shares: the percentages add up to 101, not to 100"),
        ("[20, 80]]", "[20, 70]]", "zone_shares: the parts of the range add up to 90, not to 100"),
        ("[50, 5]", "[40, 5]", "zone_shares: the accesses add up to 90, not to 100"),
        ("[64, 3]]", "[32, 2]]", "block_shares: a block size occurs twice"),
        ("[64, 3]]", "[60.3, 3]]", "block_shares: 61747.2 bytes is not a multiple of 512"),
        ("tracking_jobs = 32", "tracking_jobs = 3", "tracking_jobs: not one of composite_blocks.jobs"),
        ("tracking_io_depth = 32", "tracking_io_depth = 3", "tracking_io_depth: not one of"),
        ("latency_ceiling_ms = 5", "latency_ceiling_ms = 0", "0 is not allowed, it takes a number, more than 0"),
    ],
)
def test_numbers_that_do_not_go_together_are_named(old: str, new: str, reason: str) -> None:
    """Numbers in a profile that contradict each other are refused, and the message names the file, the key and the
    reason.
    """
    text = (resources.files("tkperf.procedures.profiles") / "pts-e-1.1.toml").read_text()
    with pytest.raises(ProfileError, match=r"mine\.toml") as caught:
        parse_profile(text.replace(old, new, 1), file="mine.toml")
    assert reason in str(caught.value)


def test_a_mix_with_blocks_below_the_sector_is_refused_by_their_sizes() -> None:
    """A device with 4 KiB sectors refuses the block mix of CBW. The refusal names the block sizes that are too small.
    The refusal also names the tests that the device can run.
    """
    profile = load_profile("pts-e-1.1")
    sizes = (
        r"its blocks of 0.5, 1, 1.5, 2, 2.5, 3, 3.5 KiB are not a multiple of the device's logical sector of 4096 bytes"
    )
    with pytest.raises(UsageError, match=rf"{sizes}$"):
        fit_to_sector(profile, 4096, (SSD_TESTS["cbw"],))
    tests = tuple(SSD_TESTS[name] for name in ("iops", "cbw", "dirth"))
    with pytest.raises(UsageError, match=rf"{sizes}. Select other tests with --test iops,dirth$"):
        fit_to_sector(profile, 4096, tests)
    _, warnings = fit_to_sector(profile, 4096, (SSD_TESTS["dirth"],))
    assert not warnings


def test_the_profile_decides_every_number() -> None:
    """All numbers of the grid are in the profile, and none of them is fixed in the code."""
    profile = load_profile("pts-e-1.1")
    table = msgspec.structs.replace(
        profile.table(DemandIntensityTable),
        jobs=(2, 1),
        io_depths=(3,),
        tracking_jobs=2,
        tracking_io_depth=3,
        step_s=7.0,
        writes_before_round_s=11.0,
        histogram_s=13.0,
        slice_s=5.0,
        writes_before_histogram_slices=2,
        round_every_slices=1,
        block_size_kib=16,
        read_percent=30,
    )
    phases, _, _ = drive(SSD_TESTS["dirth"].procedure(profile.with_tables(table), GIB), saturating)
    grid = next(each for each in phases if isinstance(each, Round) and each.section == GRID)
    assert [(step.workload.jobs, step.workload.io_depth, step.duration_s) for step in grid.steps] == [
        (2, 3, 7.0),
        (1, 3, 7.0),
    ]
    assert {(step.workload.read_percent, step.workload.block_size_bytes) for step in grid.steps} == {(30, 16384)}
    assert len([each for each in phases if each.section == PRECONDITIONING]) == 1 + 5
    assert phases[-1].duration_s == 13.0  # type: ignore[union-attr]
