"""The sweep, and the search that determines the demand for later tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

import tkperf
from tests.builders import run_info, simulate
from tests.procedures.test_procedures import drive
from tkperf.cli.main import cli
from tkperf.model.errors import UsageError
from tkperf.model.phases import Demand, Fill, Phase, Purge, Round
from tkperf.model.workload import Workload
from tkperf.pipeline.run_request import RunRequest
from tkperf.procedures import SSD_TESTS, Circumstances, choose_tests, load_profile, with_numbers
from tkperf.procedures.demand_search import DemandSearchTable
from tkperf.procedures.workload_sweep import SweepTable
from tkperf.runfile.reader import read_run

GIB = 1 << 30
QUICK = load_profile("quick")


def saturating(_phase: Phase, load: Workload) -> float:
    return 1000.0 * min(8, load.total_outstanding_ios)


def test_a_search_is_purge_fill_and_rounds_over_all_demands() -> None:
    """A search runs a purge, a fill and rounds over all demands, with steps of 5 s of random 4 KiB writes. It finds the
    least demand that reaches the best result.
    """
    phases, verdicts, outcomes = drive(SSD_TESTS["auto-demand"].procedure(load_profile("pts-e-1.1"), GIB), saturating)
    assert [type(phase) for phase in phases] == [Purge, Fill, *[Round] * 5]
    assert isinstance(phases[2], Round)
    assert [(step.workload.jobs, step.workload.io_depth, step.duration_s) for step in phases[2].steps] == [
        (jobs, depth, 5.0) for jobs in (8, 4, 2, 1) for depth in (128, 64, 32, 16, 8, 4, 1)
    ]
    assert {step.workload.mix_and_size for step in phases[2].steps} == {"0/100 4k"}
    assert verdicts[-1].tracking == "RND 4k R/W 0/100 TC8/QD128 IOPS"
    assert outcomes[0].demand == Demand(jobs=1, io_depth=8)
    assert outcomes[0].ended_because == (
        "steady state in rounds 1–5; found TC 1 / QD 8: 8,000 IOPS, mean 100.0 µs, the fewest "
        "outstanding I/Os within 5 % of the best, TC 1 / QD 8: 8,000 IOPS, mean 100.0 µs"
    )


def test_tests_after_a_search_are_run_at_what_it_found(tmp_path: Path) -> None:
    """The IOPS test and write saturation run at the demand that the search found. The latency test keeps its own
    demand, and the run file contains the found demand.
    """
    names = ("auto-demand", "iops", "lat", "writesat")
    table = msgspec.structs.replace(QUICK.table(DemandSearchTable), jobs=(3,), io_depths=(7,))
    simulate(tmp_path, run_info(), profile=QUICK.with_tables(table), suite={name: SSD_TESTS[name] for name in names})
    record = read_run(tmp_path / "run.tkperf")
    assert record.tests[0].outcomes[0].demand == Demand(jobs=3, io_depth=7)
    found = {test.name: {(step.workload.jobs, step.workload.io_depth) for step in test.steps} for test in record.tests}
    assert found == {
        "auto-demand": {(2, 16), (3, 7)},  # the search fills the drive at the demand of the profile
        "iops": {(3, 7)},
        "lat": {(3, 7), (1, 1)},
        "writesat": {(3, 7)},
    }


def test_auto_demand_is_disclosed(tmp_path: Path) -> None:
    """If a search will determine the demand, this is disclosed in three places: as a changed number in the plan, in the
    text of each test, and with all measurements.
    """
    plan = tkperf.make_plan("ssd", "sim:sata-ssd", profile="quick", tests=("writesat",), auto_demand=True)
    assert [each.test.name for each in plan.tests] == ["auto-demand", "writesat"]
    assert plan.changes.choices == ("threads and queue depth -> found by a search",)
    text = SSD_TESTS["writesat"].describe(plan.profile, Circumstances())
    assert any("TC and QD as the demand search found them" in line for line in text)
    result = tkperf.run(plan, "found", folder=tmp_path)
    search, saturation = result.tests
    assert len(search.sections[0].cells) == 9
    jobs, depth = saturation.demands[0]
    assert f"found TC {jobs} / QD {depth}: " in search.sections[0].ended_because


@pytest.mark.parametrize(
    ("wishes", "reason"),
    [
        ({"jobs": 4}, "-nj would have no effect"),
        ({"jobs": 4, "io_depth": 4}, "-nj and -iod would have no effect"),
        ({"suite": "hdd"}, "the suite hdd cannot search"),
    ],
)
def test_a_search_beside_a_given_demand_is_refused(wishes: dict[str, object], reason: str) -> None:
    """If a call requests a demand search and also gives a demand, the call is refused, because tkperf would have to
    ignore one of the two.
    """
    wishes = {"suite": "ssd", "device": "sim:sata-ssd", "auto_demand": True} | wishes
    with pytest.raises(UsageError, match=reason):
        RunRequest(**wishes)  # type: ignore[arg-type]


def test_a_search_that_nothing_would_use_is_refused() -> None:
    """A demand search is refused in two cases: no selected test would use its result, or the profile does not define
    the search.
    """
    with pytest.raises(UsageError, match="--auto-demand: lat would not use the demand that the search finds"):
        tkperf.make_plan("ssd", "sim:sata-ssd", profile="quick", tests=("lat",), auto_demand=True)
    with pytest.raises(UsageError, match=r"no table demand_search\. .* test auto-demand with"):
        choose_tests(load_profile("tkperf-2.2"), "ssd", find_demand=True)


def steps_of(**numbers: Sequence[object] | str) -> tuple[Workload, ...]:
    profile = with_numbers(QUICK, SweepTable, **numbers)
    phases, _, _ = drive(SSD_TESTS["sweep"].procedure(profile, GIB), saturating)
    assert [type(phase) for phase in phases] == [Purge, Fill, *[Round] * 5]
    first = phases[2]
    assert isinstance(first, Round)
    return tuple(step.workload for step in first.steps)


def test_a_sweep_has_every_combination_once() -> None:
    """A sweep contains every combination once. The mix is the outermost loop. The block size, the compressibility, the
    threads and the queue depth follow in the given order.
    """
    loads = steps_of(
        read_percents=(100, 0), block_sizes_kib=(16, 4), compressible_percents=(0, 50), jobs=(2, 1), io_depths=(8, 1)
    )
    assert len(set(loads)) == len(loads) == 32
    assert [str(load) for load in loads[:5]] == [
        "RND 16k R/W 100/0 TC2/QD8",
        "RND 16k R/W 100/0 TC2/QD1",
        "RND 16k R/W 100/0 TC1/QD8",
        "RND 16k R/W 100/0 TC1/QD1",
        "RND 16k R/W 100/0 TC2/QD8, 50 % compressible",
    ]
    assert str(loads[-1]) == "RND 4k R/W 0/100 TC1/QD1, 50 % compressible"


def test_a_sweep_tracks_what_is_hardest_on_the_drive() -> None:
    """A sweep tracks only its heaviest load. This is the load with the fewest reads, the most outstanding I/Os and the
    smallest block.
    """
    profile = with_numbers(QUICK, SweepTable, read_percents=(100, 70), block_sizes_kib=(4, 64))

    def others_jump(phase: Phase, load: Workload) -> float:
        tracked = str(load) == "RND 4k R/W 70/30 TC2/QD16"
        return 1000.0 * float(2 ** (0 if tracked else getattr(phase, "number", 0)))

    _, verdicts, outcomes = drive(SSD_TESTS["sweep"].procedure(profile, GIB), others_jump)
    assert verdicts[-1].tracking == "RND 4k R/W 70/30 TC2/QD16 IOPS"
    assert outcomes[0].window == (1, 2, 3, 4, 5)


def test_a_sequential_sweep_is_sequential() -> None:
    """A sweep with sequential access contains only sequential workloads."""
    assert {str(load)[:3] for load in steps_of(access="sequential")} == {"SEQ"}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--threads 1,x", "'--threads': '1,x': 'x' is not a whole number"),
        ("--threads 0", "table sweep, key jobs: 0 is not allowed, it takes a whole number, 1 to"),
        ("--threads 1,1", "table sweep.jobs: a value occurs twice"),
        ("--depth 65537", "table sweep, key io_depths: 65537 is not allowed, it takes a whole number, 1 to 65,536"),
        ("--block-size 4", "'4': the block size must be a multiple of 512 bytes"),
        ("--mix 65/45", "the shares of reads and writes in '65/45' do not add up to 100"),
        ("--mix 101", "table sweep, key read_percents: 101 is not allowed, it takes a whole number, 0 to 100"),
        ("--compressibility 101", "key compressible_percents: 101 is not allowed"),
        (f"--threads {','.join(map(str, range(1, 41)))} --depth {','.join(map(str, range(1, 41)))}", "more than 1,024"),
        ("--profile tkperf-2.2", "no table sweep. To run test sweep with tkperf ssd"),
    ],
)
def test_values_that_nobody_means_are_refused(options: str, reason: str, tmp_path: Path) -> None:
    """Invalid values are refused before tkperf accesses a device, and no data is written."""
    args = ["sweep", "s", "sim:sata-ssd", "--profile", "quick", "--output", str(tmp_path / "o")]
    result = CliRunner().invoke(cli, [*args, *options.split()])
    assert result.exit_code != 0
    assert reason in str(result.exception) + result.output
    assert not (tmp_path / "o").exists()


def test_a_sweep_of_billions_is_refused_at_once() -> None:
    """A sweep with billions of combinations is refused immediately. The combinations are counted and not created,
    because a list of all combinations would fill the memory.
    """
    longest = {
        "read_percents": tuple(range(101)),
        "block_sizes_kib": tuple(range(4, 68)),
        "compressible_percents": tuple(range(40)),
        "jobs": tuple(range(1, 65)),
        "io_depths": tuple(range(1, 65)),
    }
    with pytest.raises(UsageError, match=r"1,059,061,760 combinations .* more than 1,024"):
        with_numbers(QUICK, SweepTable, **longest)


def test_a_sweep_from_the_command_line(tmp_path: Path) -> None:
    """On the command line, a sweep accepts block sizes in fio's notation and mixes in the notation of the PTS. The run
    file contains each combination.
    """
    args = "sweep s sim:sata-ssd --profile quick -q --threads 2,1 --depth 4 --mix 65/35 --block-size 4k,512"
    result = CliRunner().invoke(cli, [*args.split(), "--output", str(tmp_path)])
    assert result.exit_code == 0, result.output
    (section,) = tkperf.load(tmp_path / "s.tkperf").tests[0].sections
    assert [str(cell.workload) for cell in section.cells] == [
        "RND 4k R/W 65/35 TC2/QD4",
        "RND 4k R/W 65/35 TC1/QD4",
        "RND 512 R/W 65/35 TC2/QD4",
        "RND 512 R/W 65/35 TC1/QD4",
    ]
    assert section.steady


@pytest.mark.parametrize(("jobs", "io_depth"), [(0, 1), (1025, 1), (1, 0), (1, 65_537)])
def test_a_demand_is_one_that_tests_can_be_run_at(jobs: int, io_depth: int) -> None:
    """A demand outside the limits is refused, even if a run file contains it, because fio would start as many threads
    as the demand states.
    """
    with pytest.raises(ValueError, match="a test cannot run at"):
        Demand(jobs=jobs, io_depth=io_depth)


@pytest.mark.parametrize(
    ("keys", "phase", "fault"),
    [
        ("offered_iops = 6", 'load = "a"', r"8 threads: load a, key offered_iops: 6 are less than one a second"),
        ("offered_iops = 6\njobs = 4", 'load = "a"', None),
        ("offered_iops = 8", 'load = "a"', None),
        ("", 'together = ["a", "b"]', r"8 threads: phase 1 \(stream\), key together: the loads have 258 threads"),
        ("jobs = 4", 'together = ["a", "b"]', None),
    ],
)
def test_a_search_never_finds_a_demand_that_a_workload_file_cannot_use(
    tmp_path: Path, keys: str, phase: str, fault: str | None
) -> None:
    """If a run contains a demand search and a workload file, the loads of the file must be possible with every number
    of threads that the search can find. Otherwise tkperf refuses the run before the search, which takes hours.
    """
    file = tmp_path / "own.toml"
    load = 'access = "random"\nread_percent = 100\nblock_size_kib = 4\n'
    file.write_text(
        f'format = 1\nname = "own"\ntitle = "Own"\n[loads.a]\n{load}{keys}\n[loads.b]\n{load}jobs = 250\n'
        f'[[phases]]\nkind = "stream"\nsection = "Own"\n{phase}\nslice_s = 1\nlongest_s = 5\n',
        encoding="utf-8",
    )

    def plan() -> object:
        return tkperf.make_plan("ssd", "sim:sata-ssd", tests=("iops", str(file)), auto_demand=True)

    assert tkperf.make_plan("ssd", "sim:sata-ssd", tests=(str(file),)).tests
    if fault is None:
        assert plan()
    else:
        with pytest.raises(UsageError, match=fault):
            plan()
