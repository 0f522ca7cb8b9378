"""The procedures of the tests: the phases that each test requests, their order, and the condition that ends the test
(docs/explanation/method.md).
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from tkperf.model.choices import built_in_profiles
from tkperf.model.measurement import NO_IO, IoStats, Measurement
from tkperf.model.phases import Answer, Continuous, Fill, Phase, Procedure, Purge, Round, SectionOutcome
from tkperf.model.steady_state import SteadyStateVerdict
from tkperf.model.workload import Access, Workload
from tkperf.procedures import SSD_TESTS, TESTS, choose_tests, fit_to_sector, forecast, load_profile
from tkperf.procedures.descriptor import Circumstances
from tkperf.procedures.forecast import find_workloads
from tkperf.procedures.iops import IopsTable
from tkperf.procedures.profiles import Profile

GIB = 1 << 30


def measured(iops: float, duration_s: float = 60.0, block: int = 4096) -> Measurement:
    ios = round(iops * duration_s)
    stats = IoStats(ios=ios, bytes=ios * block, latency_ios=ios, latency_sum_ns=ios * 100_000)
    return Measurement(duration_s=duration_s, read=NO_IO, write=stats)


def drive(
    procedure: Procedure, iops: Callable[[Phase, Workload], float]
) -> tuple[list[Phase], list[SteadyStateVerdict], tuple[SectionOutcome, ...]]:
    """Run a procedure with a function that returns the rate of each cell."""
    phases: list[Phase] = []
    verdicts: list[SteadyStateVerdict] = []
    outcomes: list[SectionOutcome] = []

    def perform(phase: Phase) -> Answer:
        phases.append(phase)
        match phase:
            case Round():
                return {
                    step.workload: measured(iops(phase, step.workload), block=step.workload.block_size_bytes)
                    for step in phase.steps
                }
            case Fill() | Continuous():
                cell = phase.workload
                return measured(iops(phase, cell), block=cell.block_size_bytes)
            case _:
                return None

    for asked in forecast.drive(procedure, lambda phase, _: perform(phase)):
        if isinstance(asked, SteadyStateVerdict):
            verdicts.append(asked)
        elif isinstance(asked, SectionOutcome):
            outcomes.append(asked)
    return phases, verdicts, tuple(outcomes)


def rounds(phases: list[Phase]) -> list[Round]:
    return [phase for phase in phases if isinstance(phase, Round)]


def _place(workload: Workload) -> tuple[int, int]:
    return workload.read_percent, workload.block_size_bytes


def steadily(_phase: Phase, _work: Workload) -> float:
    return 1000.0


def run(
    test: str, profile: str = "pts-e-1.1", iops: Callable[[Phase, Workload], float] = steadily, range_bytes: int = GIB
) -> tuple[list[Phase], list[SteadyStateVerdict], tuple[SectionOutcome, ...]]:
    procedure = SSD_TESTS[test].procedure(load_profile(profile), range_bytes)
    return drive(procedure, iops)


def test_iops_is_purge_fill_and_rounds_of_56_cells_in_the_mandatory_order() -> None:
    """The IOPS test of the PTS runs a purge, two sequential 128 KiB fills, and rounds of 56 cells of 60 s at TC 4 / QD
    32. The mix is the outer loop and the block size is the inner loop.
    """
    phases, _, outcomes = run("iops")
    assert isinstance(phases[0], Purge)
    assert isinstance(phases[1], Fill)
    assert (phases[1].passes, phases[1].workload.block_size_bytes) == (2, 128 * 1024)
    assert phases[1].workload.access is Access.SEQUENTIAL
    assert [phase.number for phase in rounds(phases)] == [1, 2, 3, 4, 5]
    steps = rounds(phases)[0].steps
    assert [_place(step.workload) for step in steps] == [
        (mix, round(kib * 1024)) for mix in (100, 95, 65, 50, 35, 5, 0) for kib in (1024, 128, 64, 32, 16, 8, 4, 0.5)
    ]
    assert {step.duration_s for step in steps} == {60.0}
    assert {(step.workload.jobs, step.workload.io_depth) for step in steps} == {(4, 32)}
    assert outcomes[0].window == (1, 2, 3, 4, 5)


def test_iops_tracks_random_4k_writes_by_key() -> None:
    """Only the cell of random 4 KiB writes determines steady state. Variation in this cell prevents steady state, but
    variation in other cells does not.
    """

    def others_jump(phase: Phase, cell: Workload) -> float:
        number = getattr(phase, "number", 0)
        return 1000.0 if cell.mix_and_size == "0/100 4k" else 1000.0 * 2**number

    assert len(rounds(run("iops", iops=others_jump)[0])) == 5

    def tracked_jumps(phase: Phase, cell: Workload) -> float:
        number = getattr(phase, "number", 0)
        return 1000.0 * (1 + number % 2) if cell.mix_and_size == "0/100 4k" else 1000.0

    phases, _, outcomes = run("iops", iops=tracked_jumps)
    assert len(rounds(phases)) == 25
    assert outcomes[0].window == (21, 22, 23, 24, 25)
    assert outcomes[0].verdict is not None
    assert not outcomes[0].verdict.reached
    assert "no steady state in 25 rounds" in outcomes[0].ended_because


def test_steady_exactly_in_the_last_round_counts() -> None:
    """A window that becomes steady exactly in round 25, the last round, is steady. TKperf 2.2 did not treat it as
    steady.
    """

    def settles(phase: Phase, cell: Workload) -> float:
        number = getattr(phase, "number", 0)
        return 1000.0 if number > 20 else 1000.0 * 2 ** (1 + number % 2)

    phases, _, outcomes = run("iops", iops=settles)
    assert len(rounds(phases)) == 25
    assert outcomes[0].verdict is not None
    assert outcomes[0].verdict.reached


def test_a_4kn_device_drops_512_and_still_tracks_4k() -> None:
    """On a device with 4 KiB sectors, smaller block sizes are left out with a warning. Random 4 KiB writes are still
    tracked.
    """
    basic = choose_tests(load_profile("pts-e-1.1"), "ssd")
    profile, warnings = fit_to_sector(load_profile("pts-e-1.1"), 4096, basic)
    phases, verdicts, _ = drive(
        SSD_TESTS["iops"].procedure(profile, GIB),
        lambda phase, cell: 777.0 if cell.mix_and_size == "0/100 4k" else 10.0,
    )
    assert warnings["iops"].startswith("iops: block size 0.5 KiB left out")
    assert len(rounds(phases)[0].steps) == 49
    assert verdicts[-1].average == 777.0


def test_throughput_purges_and_preconditions_before_each_block_size() -> None:
    """The throughput test of the PTS runs a purge, a fill and rounds of reads and writes with 1024 KiB. It then repeats
    these phases with 128 KiB. Each block size has a separate verdict.
    """
    phases, _, outcomes = run("tp")
    kinds = [type(phase).__name__ for phase in phases]
    assert kinds == (["Purge", "Fill"] + ["Round"] * 5) * 2
    steps = rounds(phases)[0].steps
    assert [step.workload.read_percent for step in steps] == [100, 0]
    assert {step.workload.access for step in steps} == {Access.SEQUENTIAL}
    assert [section.section for section in outcomes] == ["Throughput 1024k", "Throughput 128k"]


def test_tkperf_throughput_copies_the_rounds_of_1024k_without_fill() -> None:
    """The profile tkperf-2.2 measures throughput with five block sizes and without a fill. The other sizes run as many
    rounds as the size of 1024 KiB.
    """

    def slow_start(phase: Phase, cell: Workload) -> float:
        number = getattr(phase, "number", 0)
        return 500.0 * 2 ** max(0, 4 - number) if cell.block_size_bytes == 1 << 20 else 1000.0

    phases, _, outcomes = run("tp", "tkperf-2.2", slow_start)
    assert not [phase for phase in phases if isinstance(phase, Fill)]
    by_section = {section.section: section.window for section in outcomes}
    assert len(by_section) == 5
    assert set(by_section.values()) == {(4, 5, 6, 7, 8)}
    first, *others = outcomes
    assert first.verdict is not None
    assert first.verdict.reached
    assert all(section.verdict is None for section in others), "judged by the first alone"
    assert "as many as Throughput 1024k" in others[0].ended_because
    assert len(rounds(phases)) == 5 * 8


def test_latency_runs_at_one_outstanding_io_and_ends_with_the_histogram_run() -> None:
    """The latency test of the PTS runs 9 cells with one outstanding I/O and tracks the mean latency. It ends with 20
    min of random 4 KiB writes for the histogram.
    """
    phases, verdicts, outcomes = run("lat")
    steps = rounds(phases)[0].steps
    assert [_place(step.workload) for step in steps] == [
        (mix, round(kib * 1024)) for mix in (100, 65, 0) for kib in (8, 4, 0.5)
    ]
    assert {step.workload.total_outstanding_ios for step in steps} == {1}
    last = phases[-1]
    assert isinstance(last, Continuous)
    assert (last.duration_s, last.workload.mix_and_size) == (1200.0, "0/100 4k")
    assert verdicts[-1].average == pytest.approx(100.0)
    assert verdicts[-1].unit == "us"
    assert len(outcomes) == 2
    assert outcomes[1].ended_because == "ran its full time"


def test_a_histogram_run_says_that_steady_state_was_missed() -> None:
    """If steady state was not reached before a histogram run, the outcome of the histogram run states this fact. The
    percentiles of the histogram run then describe a drive that was not judged steady.
    """
    _, _, outcomes = run("lat", iops=lambda phase, cell: 0.0)
    rounds_, histogram = outcomes
    assert rounds_.verdict is not None
    assert not rounds_.verdict.reached
    assert histogram.ended_because == "ran its full time, NOT after steady state"


def test_latency_of_tkperf_has_no_histogram_run() -> None:
    """With the profile tkperf-2.2, the latency test has no histogram run, as in TKperf."""
    assert not [phase for phase in run("lat", "tkperf-2.2")[0] if isinstance(phase, Continuous)]


def test_a_silent_device_is_never_steady() -> None:
    """A device that completes no I/O is never steady. The test ends after the largest permitted number of rounds."""
    _, _, outcomes = run("lat", iops=lambda phase, cell: 0.0)
    assert outcomes[0].verdict is not None
    assert not outcomes[0].verdict.reached


def test_write_saturation_samples_minutes_1_31_61() -> None:
    """Write saturation of PTS-E 1.1 judges minutes 1, 31, 61, 91 and 121, so it lasts at least 121 minutes."""
    phases, verdicts, outcomes = run("writesat", range_bytes=10**15)
    slices = [phase for phase in phases if isinstance(phase, Continuous)]
    assert [phase.number for phase in slices] == list(range(1, 122))
    assert verdicts[-1].rounds == (1, 31, 61, 91, 121)
    assert outcomes[0].window == (1, 31, 61, 91, 121)
    assert not [phase for phase in phases if isinstance(phase, Fill)]


def test_write_saturation_ends_at_four_times_the_range_by_bytes_written() -> None:
    """Write saturation ends when four times the range was written. tkperf uses the number of written bytes, and not the
    rate multiplied by the nominal minutes.
    """
    per_slice = (1000 * 60) * 4096
    phases, _, outcomes = run("writesat", range_bytes=per_slice * 10 // 4)
    assert len([phase for phase in phases if isinstance(phase, Continuous)]) == 10
    assert outcomes[0].ended_because.startswith("4 × the active range written")
    assert outcomes[0].window == ()


def test_write_saturation_ends_after_24_hours() -> None:
    """Write saturation on a slow, unsteady device ends after 1,440 minutes."""

    def jumps(phase: Phase, cell: Workload) -> float:
        return 1000.0 * 2.0 ** int(getattr(phase, "number", 0) % 7)

    phases, _, outcomes = run("writesat", iops=jumps, range_bytes=10**18)
    assert len(phases) == 1441
    assert "longest time" in outcomes[0].ended_because


def test_every_slice_belongs_to_one_stream() -> None:
    """Write saturation is one uninterrupted stream, so all its slices have the same workload and section."""
    phases, _, _ = run("writesat", "quick", range_bytes=10**15)
    slices = [phase for phase in phases if isinstance(phase, Continuous)]
    assert len({(phase.section, phase.workload, phase.longest_s) for phase in slices}) == 1


def test_the_profile_decides_every_number() -> None:
    """All numbers of every test are in the profile, and none of them is fixed in the code."""
    profile = load_profile("pts-e-1.1")
    replace = msgspec.structs.replace
    profile = profile.with_tables(
        replace(profile.table(IopsTable), read_percents=(0,), block_sizes_kib=(4,), step_s=7),
        replace(profile.preconditioning, passes=3, block_size_kib=64),
        replace(profile.steady_state, window_rounds=3, max_rounds=3),
    )
    phases, _, _ = drive(SSD_TESTS["iops"].procedure(profile, GIB), lambda phase, cell: 1.0)
    assert isinstance(phases[1], Fill)
    assert (phases[1].passes, phases[1].workload.block_size_bytes) == (3, 65536)
    assert [[step.duration_s for step in phase.steps] for phase in rounds(phases)] == [[7.0]] * 3


def text_of(test: str, profile: Profile, *, purge: str | None = "Purge") -> str:
    return "\n".join(SSD_TESTS[test].describe(profile, Circumstances(purge=purge)))


@pytest.mark.parametrize("test", SSD_TESTS)
def test_the_text_says_purge_only_where_one_is_done(test: str) -> None:
    """The description of a test mentions a purge only if the run purges the device. With ``--no-purge``, it mentions no
    purge.
    """
    profile = load_profile("quick")
    assert "Purge" in text_of(test, profile)
    assert "Purge" not in text_of(test, profile, purge=None)


def test_the_text_names_the_judged_minutes() -> None:
    """The description names the judged minutes 1, 31 and 61. Slices with another length are not called minutes."""
    assert "steady state of minutes 1, 31, 61 ...:" in text_of("writesat", load_profile("pts-e-1.1"))
    assert "steady state of slices 1, 6, 11 ...:" in text_of("writesat", load_profile("quick"))
    assert "steady" not in text_of("writesat", load_profile("tkperf-2.2"))


def test_the_text_says_which_block_sizes_are_judged() -> None:
    """The description states which block sizes are judged. With the profile tkperf-2.2, only the first of five sizes is
    judged.
    """
    said = "of 1024 KiB; the other block sizes run as many rounds and are not judged"
    assert said in text_of("tp", load_profile("tkperf-2.2"))
    assert "of each block size" in text_of("tp", load_profile("pts-e-1.1"))


@pytest.mark.parametrize("profile", built_in_profiles())
def test_walking_a_test_finds_every_workload(profile: str) -> None:
    """The workloads of a test are exactly those of its rounds, fills and streams, each listed once. Only these
    workloads need space on the device.
    """
    loaded = load_profile(profile)
    for test in TESTS:
        if test.is_in(loaded):
            found = find_workloads(test, loaded, GIB)
            assert len(set(found)) == len(found) > 0
    if not SSD_TESTS["lat"].is_in(loaded):
        return
    sizes = {each.block_size_bytes for each in find_workloads(SSD_TESTS["lat"], loaded, GIB)}
    assert sizes == {512, 4096, 8192, 128 * 1024}, "no 1 MiB block, which only other tests issue"


def test_three_variables_of_pts_2_0_have_to_be_steady_in_one_window() -> None:
    """PTS 2.0 requires three steady variables in one window: random 4 KiB 0/100, 64 KiB 65/35 and 1024 KiB 100/0. Each
    variable is judged in every round.
    """

    def one_settles_late(phase: Phase, cell: Workload) -> float:
        number = getattr(phase, "number", 0)
        jumps = cell.mix_and_size == "65/35 64k" and number < 4
        return 1000.0 * 2**number if jumps else 1000.0

    phases, verdicts, outcomes = run("iops", "pts-2.0", one_settles_late)
    assert [phase.number for phase in rounds(phases)] == [1, 2, 3, 4, 5, 6, 7, 8]
    tracked = ["RND 0/100 4k IOPS", "RND 65/35 64k IOPS", "RND 100/0 1024k IOPS"]
    assert [verdict.tracking for verdict in verdicts] == tracked * 8
    assert [verdict.reached for verdict in verdicts[-6:]] == [True, False, True, True, True, True]
    (section,) = outcomes
    assert section.window == (4, 5, 6, 7, 8)
    assert [verdict.tracking for verdict in section.verdicts] == tracked
    assert all(verdict.reached for verdict in section.verdicts)


def test_a_variable_that_never_settles_is_named() -> None:
    """If one of the three variables never settles, the reason after 25 rounds names this variable."""

    def wild(phase: Phase, cell: Workload) -> float:
        number = getattr(phase, "number", 0)
        return 1000.0 * (1 + number % 2) if cell.mix_and_size == "100/0 1024k" else 1000.0

    phases, _, outcomes = run("iops", "pts-2.0", wild)
    assert len(rounds(phases)) == 25
    assert "25 rounds: RND 100/0 1024k IOPS: " in outcomes[0].ended_because


@pytest.mark.parametrize(("profile", "sizes_kib"), [("pts-2.0", [1024, 128]), ("pts-2.0-client", [1024])])
def test_throughput_of_pts_2_0_fills_in_its_block_size_at_its_demand(profile: str, sizes_kib: list[int]) -> None:
    """The throughput test of PTS 2.0 runs all phases at TC 1 / QD 32. For each block size it runs a purge, a fill of
    two passes with this size, and the rounds.
    """
    phases, _, outcomes = run("tp", profile)
    fills = [phase for phase in phases if isinstance(phase, Fill)]
    assert [fill.workload.block_size_bytes for fill in fills] == [kib * 1024 for kib in sizes_kib]
    assert {fill.passes for fill in fills} == {2}
    loads = {step.workload for phase in rounds(phases) for step in phase.steps}
    assert {(load.jobs, load.io_depth) for load in loads} == {(1, 32)}
    assert {(fill.workload.jobs, fill.workload.io_depth) for fill in fills} == {(1, 32)}
    assert len(outcomes) == len(sizes_kib)
    assert [type(phase) for phase in phases] == [Purge, Fill, *[Round] * 5] * len(sizes_kib)


@pytest.mark.parametrize(("profile", "demand"), [("pts-2.0", (4, 32)), ("pts-2.0-client", (2, 16))])
def test_write_saturation_of_pts_2_0_ends_after_six_hours(profile: str, demand: tuple[int, int]) -> None:
    """Write saturation of PTS 2.0 ends after 360 slices of a minute. It ends earlier if it becomes steady or has
    written four times the range. The histogram run follows.
    """

    def unsteady(phase: Phase, cell: Workload) -> float:
        return 1.0 + getattr(phase, "number", 0) % 60 // 30

    phases, _, outcomes = run("writesat", profile, unsteady, range_bytes=1 << 50)
    *slices, histogram_run = [phase for phase in phases if isinstance(phase, Continuous)]
    assert (len(slices), sum(each.duration_s for each in slices)) == (360, 6 * 3600)
    assert (histogram_run.duration_s, histogram_run.section) == (1200, "Response time histogram")
    for each in (*slices, histogram_run):
        assert (each.workload.jobs, each.workload.io_depth) == demand
    assert outcomes[0].ended_because == "longest time of 360 slices"


def test_a_profile_may_fill_another_range_than_it_tests() -> None:
    """A profile may fill a larger or smaller range than it tests. After the profile was adapted to a device, the length
    of the fill is given in bytes.
    """
    profile = load_profile("pts-c-1.2")
    fitted = profile.with_tables(msgspec.structs.replace(profile.preconditioning, length="3000000"))
    for each, length_bytes in ((profile, None), (fitted, 3_000_000)):
        phases, _, _ = drive(SSD_TESTS["lat"].procedure(each, GIB), steadily)
        assert isinstance(phases[1], Fill)
        assert phases[1].length_bytes == length_bytes


def test_the_text_says_what_is_tracked_filled_and_with_which_demand() -> None:
    """If a profile has more than one tracked variable, fill or demand, the description lists the tracked variables and
    the fills with their demands.
    """
    assert "Tracking variables, all steady in one window: IOPS of RND 0/100 4k, 65/35 64k, 100/0 1024k" in text_of(
        "iops", load_profile("pts-2.0")
    )
    throughput = text_of("tp", load_profile("pts-2.0"))
    assert "2 × the active range, SEQ writes of that block size, TC 1 / QD 32" in throughput
    assert "SEQ read, then SEQ write, TC 1 / QD 32, 60 s each" in throughput
    assert "2 × the first 80 % of the device, SEQ 128 KiB writes, TC 2 / QD 16" in text_of(
        "lat", load_profile("pts-c-1.2")
    )
