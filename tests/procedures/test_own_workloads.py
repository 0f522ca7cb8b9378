"""User-defined tests. The tests check the phases that a workload file runs on a device, and the results of these
phases.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.procedures.test_procedures import drive, steadily
from tkperf.model.errors import UsageError
from tkperf.model.phases import Continuous, Fill, Idle, Phase, Purge, Round, SectionOutcome
from tkperf.model.steady_state import SteadyStateVerdict
from tkperf.model.workload import Access, ActiveRange, Arrival, BlockShare, Workload, Zone
from tkperf.pipeline.fitted_profile import choose_profile
from tkperf.pipeline.run_disclosure import Changes, find_changes
from tkperf.pipeline.run_plan import plan_run
from tkperf.pipeline.run_request import RunRequest
from tkperf.procedures import (
    Circumstances,
    Test,
    find_test,
    load_profile,
    own_tests,
    read_stored_profile,
    with_workloads,
)
from tkperf.procedures.own_workloads.parts import Load, workload_of
from tkperf.procedures.profiles import Profile, apply_options

GIB = 1 << 30
MIB = 1 << 20
EXAMPLE = Path(__file__).parents[2] / "docs/examples/database.toml"

EVERYTHING = """
format = 1
name = "everything"
title = "Every kind of phase"

[steady_state]
window_rounds = 3
max_rounds = 4

[loads.fill]
access = "sequential"
read_percent = 0
block_size_kib = 256
jobs = 2

[loads.mixed]
access = "random"
read_percent = 50
block_shares = [[4, 60], [64, 40]]
zone_shares = [[70, 30], [30, 70]]
jobs = 2
io_depth = 3

[loads.paced]
access = "random"
read_percent = 0
block_size_kib = 4
offered_iops = 900
arrival = "poisson"
compressible_percent = 40
range_begin_percent = 25
range_end_percent = 50

[[phases]]
kind = "purge"

[[phases]]
kind = "fill"
load = "fill"
passes = 3

[[phases]]
kind = "rounds"
section = "Loops"
loads = ["mixed", "paced"]
loops = [{ key = "read_percent", values = [100, 0] }, { key = "io_depth", values = [8, 1] }]
step_s = 7
warm_up_rounds = 1
idle_s = 2
tracked = [
    { quantity = "iops", load = "paced", at = { read_percent = 0, io_depth = 8 } },
    { quantity = "latency_mean_us", load = "mixed", at = { read_percent = 0, io_depth = 1 } },
]

[[phases]]
kind = "idle"
idle_s = 30

[[phases]]
kind = "rounds"
section = "Two rounds"
loads = ["paced"]
step_s = 5
rounds = 2

[[phases]]
kind = "stream"
section = "Until steady"
load = "mixed"
slice_s = 10
longest_s = 600
tracked = "megabytes_per_s"
judged_every_s = 30
warm_up_s = 20

[[phases]]
kind = "stream"
section = "Until written"
load = "fill"
slice_s = 10
longest_s = 600
written_multiple = 0.5

[[phases]]
kind = "stream"
section = "Its time"
load = "paced"
slice_s = 10
longest_s = 30
"""


def own(text: str, tmp_path: Path, *, profile: str = "pts-e-1.1", suite: str = "ssd") -> tuple[Test, Profile]:
    """Return the test of a workload file, and the profile with which the test runs."""
    file = tmp_path / "own.toml"
    file.write_text(text)
    with_own = with_workloads(load_profile(profile), suite, (str(file),))
    (test,) = own_tests(with_own)
    return test, with_own


def run(
    text: str, tmp_path: Path, iops: Callable[[Phase, Workload], float] = steadily
) -> tuple[list[Phase], list[SteadyStateVerdict], tuple[SectionOutcome, ...]]:
    test, profile = own(text, tmp_path)
    return drive(test.procedure(profile, GIB), iops)


def test_phases_follow_each_other_as_the_file_has_them(tmp_path: Path) -> None:
    """Phases run in the order of the workload file. A purge, fill or pause belongs to the section that is measured
    next.
    """
    phases, _, outcomes = run(EVERYTHING, tmp_path)
    assert [(type(phase), phase.section) for phase in phases] == [
        (Purge, "Loops"),
        (Fill, "Loops"),
        (Round, "Loops"),
        *[(kind, "Loops") for _ in range(3) for kind in (Idle, Round)],
        (Idle, "Two rounds"),
        *[(Round, "Two rounds")] * 2,
        *[(Continuous, "Until steady")] * (2 + 7),
        (Continuous, "Until written"),
        *[(Continuous, "Its time")] * 3,
    ]
    fill = phases[1]
    assert isinstance(fill, Fill)
    assert (fill.passes, fill.length_bytes) == (3, None)
    assert fill.workload == Workload(
        access=Access.SEQUENTIAL, read_percent=0, block_size_bytes=256 * 1024, jobs=2, io_depth=32
    )
    assert [phase.duration_s for phase in phases if isinstance(phase, Idle)] == [2, 2, 2, 30]
    assert [section.section for section in outcomes] == [
        "Loops",
        "Two rounds",
        "Until steady",
        "Until written",
        "Its time",
    ]


def test_the_first_loop_is_the_outermost_and_the_list_of_loads_the_innermost(tmp_path: Path) -> None:
    """The first loop of a phase is the outermost loop, and the list of loads is the innermost loop. Every key of a load
    becomes part of the workload. A region is a whole number of MiB.
    """
    phases, _, _ = run(EVERYTHING, tmp_path)
    warm_up, first = (
        phase for phase in phases if isinstance(phase, Round) and phase.number == 1 and phase.section == "Loops"
    )
    assert (warm_up.warm_up, first.warm_up) == (True, False)
    assert warm_up.steps == first.steps
    assert {step.duration_s for step in first.steps} == {7}
    mixed = Workload(
        access=Access.RANDOM,
        read_percent=100,
        block_size_bytes=64 * 1024,
        jobs=2,
        io_depth=8,
        block_mix=(BlockShare(4096, 60), BlockShare(65536, 40)),
        zones=(Zone(70, 30), Zone(30, 70)),
    )
    paced = Workload(
        access=Access.RANDOM,
        read_percent=100,
        block_size_bytes=4096,
        jobs=4,
        io_depth=8,
        offered_iops=900,
        arrival=Arrival.POISSON,
        compressible_percent=40,
        region=ActiveRange(offset_bytes=GIB // 4, length_bytes=GIB // 4),
    )
    assert [step.workload for step in first.steps[:2]] == [mixed, paced]
    places = [(step.workload.read_percent, step.workload.io_depth) for step in first.steps]
    assert places == [(100, 8), (100, 8), (100, 1), (100, 1), (0, 8), (0, 8), (0, 1), (0, 1)]


def test_a_phase_ends_when_all_that_is_tracked_is_steady_in_one_window(tmp_path: Path) -> None:
    """A phase ends when all tracked variables are steady in one window according to the rule in the workload file. Each
    variable is judged after each round.
    """
    _, verdicts, outcomes = run(EVERYTHING, tmp_path)
    loops, two, steady, written, time = outcomes
    assert [verdict.tracking for verdict in verdicts[:2]] == [
        "RND 4k R/W 0/100 TC4/QD8, 900 IOPS offered (poisson), 40 % compressible, within 268.4 MB from 268.4 MB IOPS",
        "RND 4k 60 % + 64k 40 % R/W 0/100 TC2/QD1, zones 70/30 30/70 mean latency",
    ]
    assert (loops.window, len(loops.verdicts)) == ((1, 2, 3), 2)
    assert loops.ended_because == "steady state in rounds 1–3"
    assert (two.window, two.verdict, two.ended_because) == ((1, 2), None, "ran its 2 rounds")
    assert (steady.window, steady.ended_because) == ((1, 4, 7), "steady state in slices 1, 4, 7")
    # A slice consists of 600,000 I/Os of 256 KiB, so it writes many times the range.
    assert written.ended_because.startswith("0.5 × the active range written (")
    assert time.ended_because == "ran its full time of 30 s"


def test_an_unsteady_phase_ends_with_the_rounds_of_its_rule(tmp_path: Path) -> None:
    """A phase that never becomes steady ends after the ``max_rounds`` of its own rule. The 25 rounds of the profile do
    not apply.
    """

    def jumping(phase: Phase, _work: Workload) -> float:
        number: int = getattr(phase, "number", 0)
        return float(1000 << number)

    phases, _, outcomes = run(EVERYTHING, tmp_path, jumping)
    numbers = [p.number for p in phases if isinstance(p, Round) and p.section == "Loops" and not p.warm_up]
    assert numbers == [1, 2, 3, 4]
    assert outcomes[0].ended_because.startswith("no steady state in 4 rounds: RND 4k")


def test_what_the_file_leaves_out_is_the_profiles(tmp_path: Path) -> None:
    """If a workload file omits the demand, the preconditioning or the rule for steady state, the values of the profile
    are used.
    """
    text = """
format = 1
name = "least"
title = "Least"
[loads.writes]
access = "random"
read_percent = 0
block_size_kib = 4
[[phases]]
kind = "fill"
[[phases]]
kind = "rounds"
section = "Writes"
loads = ["writes"]
step_s = 60
tracked = [{ quantity = "iops" }]
"""
    phases, _, outcomes = run(text, tmp_path)
    fill, first, *_ = phases
    assert isinstance(fill, Fill)
    assert isinstance(first, Round)
    assert (fill.passes, fill.workload.block_size_bytes) == (2, 128 * 1024)
    assert (first.steps[0].workload.jobs, first.steps[0].workload.io_depth) == (4, 32)
    assert outcomes[0].window == (1, 2, 3, 4, 5)
    assert len(phases) == 1 + 5


def test_a_rate_that_is_not_reached_is_in_the_outcome(tmp_path: Path) -> None:
    """If an offered rate was not reached, the outcome of rounds and of streams names the rate and the share of the rate
    that was completed. A rate of which 99 % was completed counts as reached.
    """

    def slow(phase: Phase, _work: Workload) -> float:
        return 37.5 if isinstance(phase, Round) else 75.0

    text = EXAMPLE.read_text()
    _, _, outcomes = run(text, tmp_path, slow)
    assert outcomes[-1].ended_because == (
        "ran its full time of 10 min 00 s; did not keep up with SEQ 128k R/W 100/0 TC1/QD8, 1,000 "
        "IOPS offered (linear): of 1,000 it did 75 (7.5 %) and was 55,500 I/Os behind after 60 s"
    )
    _, _, enough = run(text, tmp_path, lambda *_: 991.0)
    assert enough[-1].ended_because == "ran its full time of 10 min 00 s"


def test_steps_and_slices_are_of_the_length_asked_for(tmp_path: Path) -> None:
    """The option for the step length changes steps and slices. Streams and warm-ups keep their total length, so the
    number of their slices changes.
    """
    _, profile = own(EVERYTHING, tmp_path)
    (test,) = own_tests(scaled := apply_options(profile, step_s=1))
    phases, _, _ = drive(test.procedure(scaled, GIB), steadily)
    rounds = [phase for phase in phases if isinstance(phase, Round)]
    assert {step.duration_s for phase in rounds for step in phase.steps} == {1}
    streams = [phase for phase in phases if isinstance(phase, Continuous)]
    assert {phase.duration_s for phase in streams} == {1}
    steady = [phase for phase in streams if phase.section == "Until steady"]
    assert [phase.warm_up for phase in steady] == [True] * 20 + [False] * 61
    assert {phase.longest_s for phase in steady} == {620}


def request_of(tmp_path: Path, text: str, device: str, **wishes: object) -> RunRequest:
    file = tmp_path / "own.toml"
    file.write_text(text)
    return RunRequest(suite="ssd", device=device, tests=(str(file),), **wishes)  # type: ignore[arg-type]


LOOPED = """
format = 1
name = "looped"
title = "Block sizes"
[loads.reads]
access = "random"
read_percent = 100
block_size_kib = 4
[[phases]]
kind = "rounds"
section = "Sizes"
loads = ["reads"]
loops = [{ key = "block_size_kib", values = [8, 4, 0.5] }]
step_s = 1
rounds = 1
"""


def test_sizes_of_a_loop_that_the_device_cannot_address_are_left_out(tmp_path: Path) -> None:
    """If the device cannot address some block sizes of a loop, tkperf omits these block sizes and prints a warning. A
    load with a fixed block size that the device cannot address is refused.
    """
    plan = plan_run(request_of(tmp_path, LOOPED, "sim:nvme-4kn"))
    (walked,) = plan.tests
    assert [load.block_size_bytes for load in walked.workloads] == [8192, 4096]
    assert [(warning.code, warning.text[:48]) for warning in plan.warnings] == [
        ("preparation", "looped: block size 0.5 KiB left out, the device'"),
        ("never-written", "Block sizes reads before it writes: a drive answ"),
    ]
    small = LOOPED.replace("block_size_kib = 4", "block_size_kib = 0.5").replace(
        'loops = [{ key = "block_size_kib", values = [8, 4, 0.5] }]', ""
    )
    with pytest.raises(UsageError, match=r"sim:nvme-4kn: test looped .* blocks of 0.5 KiB"):
        plan_run(request_of(tmp_path, small, "sim:nvme-4kn"))


def test_options_alter_the_numbers_of_the_file(tmp_path: Path) -> None:
    """The option ``-rt`` changes the step lengths in the file. The option ``-nj`` changes the thread count of loads for
    which the file gives no thread count.
    """
    request = request_of(tmp_path, LOOPED, "sim:sata-ssd", step_s=5, jobs=2)
    plan = plan_run(request)
    changes = Changes(choices=("threads 4 -> 2",), alterations=("runtime 1 s -> 5 s",))
    assert find_changes(request, plan.fitted) == plan.changes == changes
    as_it_is = plan_run(request_of(tmp_path, LOOPED, "sim:sata-ssd"))
    assert as_it_is.alterations == ()


PART_OF_THE_RANGE = """
format = 1
name = "part"
title = "A stream in a part of the range"

[loads.writes]
access = "ACCESS"
read_percent = 0
block_size_kib = 1024
jobs = 4
range_end_percent = 1

[[phases]]
kind = "fill"

[[phases]]
kind = "stream"
section = "Its time"
load = "writes"
slice_s = 1
longest_s = 10
"""


@pytest.mark.parametrize(
    ("access", "kib", "says"),
    [
        ("sequential", 1024, "range of 2.1 MB is too small for 4 jobs with blocks of 1024k"),
        ("random", 16384, "range of 2.1 MB is smaller than one block of 16384k"),
    ],
)
def test_a_stream_has_to_fit_in_its_part_of_the_range(tmp_path: Path, access: str, kib: int, says: str) -> None:
    """If a stream does not fit into its part of the range, the stream is refused before the range is filled."""
    text = PART_OF_THE_RANGE.replace("ACCESS", access).replace("= 1024", f"= {kib}")
    assert plan_run(request_of(tmp_path, text, "sim:sata-ssd")).fitted.tests
    with pytest.raises(UsageError, match=says):
        plan_run(request_of(tmp_path, text, "sim:sata-ssd", active_range="256MiB"))


@pytest.mark.parametrize(
    ("begin_mib", "end_mib", "first", "size"),
    [(0, 0.25, 0, MIB // 4), (64, 128, 64 * MIB, 64 * MIB), (64, None, 64 * MIB, 192 * MIB)],
)
def test_a_part_of_the_range_in_bytes_is_exact(begin_mib: float, end_mib: float | None, first: int, size: int) -> None:
    """If the file gives a part of the range in MiB, the part begins and ends exactly at the given offsets in the active
    range. If the file gives no end, the part ends at the end of the active range.
    """
    load = Load(
        access=Access.RANDOM, read_percent=0, block_size_kib=4, range_begin_mib=begin_mib, range_end_mib=end_mib
    )
    region = workload_of(load, load_profile("pts-e-1.1"), 256 * MIB).region
    assert region == ActiveRange(offset_bytes=first, length_bytes=size)


def test_a_part_beyond_the_range_is_refused() -> None:
    """If a part of the range in MiB exceeds the active range, tkperf refuses the part and does not shorten it."""
    load = Load(access=Access.RANDOM, read_percent=0, block_size_kib=4, range_end_mib=512)
    with pytest.raises(UsageError, match=r"0 to 512 MiB is beyond the end of the active range of 268\.4 MB"):
        workload_of(load, load_profile("pts-e-1.1"), 256 * MIB)


def test_a_part_of_a_large_drive_is_accepted_before_the_drive_is_known(tmp_path: Path) -> None:
    """A part of the range in MiB is compared with the range of the run, and not with an assumed drive. As long as the
    drive is not known, a part that fits only a large drive is accepted.
    """
    text = PART_OF_THE_RANGE.replace("ACCESS", "random").replace("end_percent = 1\n", "end_mib = 20_000_000\n")
    own(text, tmp_path)
    with pytest.raises(UsageError, match=r"0 to 20,000,000 MiB is beyond the end of the active range of 240\.1 GB"):
        plan_run(request_of(tmp_path, text, "sim:sata-ssd"))


def test_trims_have_blocks_of_two_gib_in_a_mix(tmp_path: Path) -> None:
    """Only trims may have blocks larger than 16 MiB. Such blocks may be used alone or in a mix of sizes."""
    text = PART_OF_THE_RANGE.replace("ACCESS", "sequential").replace("1024", "TRIM")
    text = text.replace("block_size_kib = TRIM", "trims = true\nblock_shares = [[4, 50], [2_097_152, 50]]")
    assert plan_run(request_of(tmp_path, text.replace("_percent = 1\n", "_percent = 90\n"), "sim:sata-ssd")).fitted
    with pytest.raises(UsageError, match="key block_shares: more than 16,384 KiB, which only trims may have"):
        own(text.replace("trims = true", ""), tmp_path)


TRIMMED = """
format = 1
name = "trimmed"
title = "Reads and trims"
[loads.reads]
access = "random"
read_percent = 100
block_size_kib = 4
range_begin_percent = BEGIN
[loads.trims]
access = "random"
read_percent = 0
trims = true
block_size_kib = 1024
jobs = 1
io_depth = 1
range_end_percent = 50
[[phases]]
kind = "fill"
"""
READS, TRIMS, BOTH, IN_TURN = (
    f"""
[[phases]]
kind = "rounds"
section = "{section}"
{loads}
step_s = 1
rounds = 2
"""
    for section, loads in (
        ("Reads", 'loads = ["reads"]'),
        ("Trims", 'loads = ["trims"]'),
        ("Both", 'together = ["reads", "trims"]'),
        ("In turn", 'loads = ["reads", "trims"]'),
    )
)
FILL = """
[[phases]]
kind = "fill"
"""


@pytest.mark.parametrize(
    ("phases", "begin_percent", "warns"),
    [
        (TRIMS + READS, 0, True),
        (TRIMS + READS, 50, False),
        (TRIMS + FILL + READS, 0, False),
        (READS + TRIMS, 0, False),
        (BOTH, 0, False),
        (BOTH + READS, 0, True),
        (IN_TURN, 0, True),
        (IN_TURN.replace("rounds = 2", "rounds = 1"), 0, False),
        (TRIMS + FILL + TRIMS.replace("Trims", "Again") + READS, 0, True),
    ],
    ids=[
        "later",
        "elsewhere",
        "filled",
        "earlier",
        "together",
        "after both",
        "in turn",
        "in one round",
        "trimmed again",
    ],
)
def test_reads_of_trimmed_addresses_are_named(tmp_path: Path, phases: str, begin_percent: int, warns: bool) -> None:
    """If a load reads addresses that an earlier load trimmed, the plan contains a warning, unless a fill wrote these
    addresses again. Loads that run at the same time do not count as earlier.
    """
    text = TRIMMED.replace("BEGIN", str(begin_percent)) + phases
    codes = [warning.code for warning in plan_run(request_of(tmp_path, text, "sim:sata-ssd")).warnings]
    assert ("reads-trimmed" in codes) is warns


def test_a_named_test_and_a_file_run_in_one_run(tmp_path: Path) -> None:
    """A named test and a workload file can run in the same run. The named test runs first."""
    request = request_of(tmp_path, LOOPED, "sim:sata-ssd")
    both = RunRequest(suite="ssd", device="sim:sata-ssd", tests=(*request.tests, "lat"))
    assert [walked.test.name for walked in plan_run(both).tests] == ["lat", "looped"]


def test_the_run_file_has_the_whole_description(tmp_path: Path) -> None:
    """The run file contains the whole description of a user-defined test as plain data. Another host can therefore read
    the same test from the file. If the description is damaged, tkperf finds no test in the file.
    """
    test, profile = own(EVERYTHING, tmp_path)
    stored = msgspec.json.decode(msgspec.json.encode(profile.as_plain_data()))
    found = find_test("ssd", "everything", stored)
    assert found is not None
    read = read_stored_profile(stored)
    assert found.describe(read, Circumstances()) == test.describe(profile, Circumstances())
    assert drive(found.procedure(read, GIB), steadily) == drive(test.procedure(profile, GIB), steadily)
    names = [section.section for section in drive(test.procedure(profile, GIB), steadily)[2]]
    assert found.plan(names) == test.plan(names)
    del stored["own_workload.everything"]["loads"]["mixed"]
    assert find_test("ssd", "everything", stored) is None
    assert find_test("ssd", "everything") is None


def test_the_course_is_told_in_words(tmp_path: Path) -> None:
    """The description lists the procedure phase by phase, including the numbers from the profile."""
    test, profile = own(EVERYTHING, tmp_path)
    assert test.describe(profile, Circumstances()) == (
        "Not a test of a specification, but the user's own: a workload file",
        "Purge",
        "Workload-independent preconditioning: 3 × the active range, SEQ 256 KiB writes, TC 2 / QD 32",
        "Loops:",
        "    1 warm-up round, kept apart, then",
        "    Until steady state, at most 4 rounds:",
        "        No I/O for 2 s",
        "        For R/W mix 100/0, 0/100:",
        "            For QD 8, 1:",
        "                mixed: RND 4k 60 % + 64k 40 %, TC 2, accesses/range in % 70/30 30/70, 7 s",
        "                paced: RND 4k, TC 4, within 25 to 50 % of the range, 900 IOPS offered at random "
        "times (Poisson process), 40 % compressible, 7 s",
        "    Tracking variable: IOPS of paced at R/W mix 0/100, QD 8",
        "    Tracking variable: mean latency (µs) of mixed at R/W mix 0/100, QD 1",
        "No I/O for 30 s",
        "Two rounds:",
        "    2 rounds:",
        "        paced: RND 4k, R/W 0/100, TC 4 / QD 32, within 25 to 50 % of the range, 900 IOPS "
        "offered at random times (Poisson process), 40 % compressible, 5 s",
        "Until steady, until 10 min 00 s have passed or steady state of slices 1, 4, 7 ...:",
        "    mixed: RND 4k 60 % + 64k 40 %, R/W 50/50, TC 2 / QD 3, accesses/range in % 70/30 30/70, "
        "one unbroken stream, recorded in slices of 10 s, the first 20 s kept apart as warm-up",
        "    Tracking variable: throughput (MB/s) of slices 1, 4, 7 ...",
        "Until written, until 0.5 × the active range is written or 10 min 00 s have passed:",
        "    fill: SEQ 256k, R/W 0/100, TC 2 / QD 32, one unbroken stream, recorded in slices of 10 s",
        "Its time, until 30 s have passed:",
        "    paced: RND 4k, R/W 0/100, TC 4 / QD 32, within 25 to 50 % of the range, 900 IOPS offered "
        "at random times (Poisson process), 40 % compressible, one unbroken stream, recorded in "
        "slices of 10 s",
        "Steady state: over 3 rounds, range <= 20 % and best linear fit <= 10 % of the average",
    )


def without(text: str, *lines: str) -> str:
    for line in lines:
        assert line in text
        text = text.replace(line, "")
    return text


def many(count: int) -> str:
    return ", ".join(map(str, range(1, count + 1)))


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("slice_s = 10", "slize_s = 10", "phase 6 (stream), key slize_s: choose from section, load, together, slice_s"),
        ("arrival =", "arival =", "load paced, key arival: choose from access, read_percent"),
        ('"everything"', '"lat"', "key name: 'lat' is the name of another test"),
        ('"everything"', '"all"', "key name: 'all' is the name of another test"),
        ('"everything"', '"../x"', "key name: "),
        ("format = 1", "format = 2", "key format: 2 is not allowed, it takes 1"),
        (
            'kind = "idle"',
            'kind = "idel"',
            "phase 4, key kind: kind 'idel': choose from purge, fill, idle, rounds, stream; did you mean idle?",
        ),
        ("[64, 40]", "[64, 41]", "load mixed, key block_shares: the percentages add up to 101, not to 100"),
        ("[30, 70]]", "[30, 71]]", "load mixed, key zone_shares: the parts of the range add up to 101, not to 100"),
        (
            'loads = ["paced"]',
            'loads = ["pacde"]',
            "phase 5 (rounds), key loads: load 'pacde': choose from fill, mixed, paced; did you mean paced?",
        ),
        ('loads = ["paced"]', 'loads = ["paced", "paced"]', "phase 5 (rounds), key loads: a load occurs twice"),
        ("offered_iops = 900", "offered_iops = 0", "load paced, key offered_iops: 0 is not allowed"),
        ("offered_iops = 900", "offered_iops = -1", "load paced, key offered_iops: -1 is not allowed"),
        ("offered_iops = 900", "offered_iops = nan", "load paced, key offered_iops: nan is not allowed"),
        (
            "offered_iops = 900",
            "offered_iops = inf",
            "load paced, key offered_iops: inf is not allowed, it takes a number, more than 0, at most 1,000,000,000",
        ),
        (
            "offered_iops = 900",
            "offered_iops = 3",
            "load paced, key offered_iops: 3 are less than one a second for each of 4 threads",
        ),
        (
            "offered_iops = 900",
            "offered_iops = 5e6",
            "load paced, key offered_iops: 5,000,000 are more than 1,000,000 a second for a thread",
        ),
        ("max_rounds = 4", "max_rounds = 2", "steady_state, key max_rounds: 2 are fewer than the 3 of a window"),
        ("step_s = 7", "step_s = -7", "phase 3 (rounds), key step_s: -7 is not allowed, it takes a number, 0.1 to"),
        (
            "step_s = 7",
            "step_s = 1e99",
            "phase 3 (rounds), key step_s: 1e+99 is not allowed, it takes a number, 0.1 to 2,592,000",
        ),
        (
            "rounds = 2",
            "rounds = 99999999",
            "phase 5 (rounds), key rounds: 99999999 is not allowed, it takes a whole number, 1 to 10,000",
        ),
        ("rounds = 2", "", "phase 5 (rounds), key rounds: either tracked"),
        ("[100, 0]", "[100, 100]", "phase 3 (rounds), key loops: a value of read_percent occurs twice"),
        (
            "[100, 0]",
            "[100, 101]",
            "phase 3 (rounds), key loops, key read_percent: 101 is not allowed, it takes a whole number, 0 to 100",
        ),
        ('key = "io_depth"', 'key = "read_percent"', "phase 3 (rounds), key loops: read_percent is looped over twice"),
        (
            'key = "io_depth"',
            'key = "block_size_kib"',
            "phase 3 (rounds), key loops: block_size_kib is looped over, but a load has block_shares",
        ),
        (
            "read_percent = 0, io_depth = 8",
            "io_depth = 8",
            "phase 3 (rounds), key tracked: at has to say which read_percent is meant",
        ),
        (
            "read_percent = 0, io_depth = 8",
            "read_percent = 0, io_depth = 9",
            "phase 3 (rounds), key tracked: io_depth 9 is not one of the values of its loop",
        ),
        (
            'quantity = "iops"',
            'quantity = "p99_us"',
            "tracked 1, key quantity 'p99_us': choose from iops, latency_mean_us, megabytes_per_s",
        ),
        ('"Two rounds"', '"Its time"', "phases, key section: 'Its time' is the section of two phases"),
        (
            '"Two rounds"',
            '"Two\\u001b[31m"',
            "key section: the text is empty, or contains characters that cannot be printed",
        ),
        (
            'title = "Every',
            'source = "mine\\nwarning  nothing is written"\ntitle = "Every',
            "key source: the text is empty, or contains characters that cannot be printed",
        ),
        (
            "[loads.paced]",
            '[loads."paced\\nwarning  nothing is written"]',
            "key loads: the text is empty, or contains characters that cannot be printed",
        ),
        ('name = "everything"', 'name = "everything\\n"', "key name: "),
        (
            'load = "fill"\npasses',
            'load = "mixed"\npasses',
            "phase 2 (fill), key load: a fill writes all of the range in order",
        ),
        ("longest_s = 30", "longest_s = 3", "phase 8 (stream), key longest_s: shorter than slice_s"),
        ("longest_s = 30", "longest_s = 2e6", "phases, key longest_s: 200,122 slices in all are more than 20,000"),
        (
            "judged_every_s = 30",
            "judged_every_s = 300",
            "phase 6 (stream), key longest_s: only 2 slices are judged, and a window needs 3",
        ),
        (
            "range_end_percent = 50",
            "range_end_percent = 25",
            "load paced, key range_end_percent: not more than range_begin_percent",
        ),
        (
            "range_end_percent = 50",
            "range_end_mib = 50.001",
            "load paced, key range_end_mib: 50.001 MiB are not whole 4 KiB",
        ),
        (
            "range_end_percent = 50",
            "range_end_percent = 50\nrange_end_mib = 50",
            "load paced, key range_end_mib: either it or range_end_percent, not both",
        ),
        (
            "range_end_percent = 50",
            "range_begin_mib = 50",
            "load paced, key range_begin_mib: either it or range_begin_percent, not both",
        ),
        (
            "offered_iops = 900",
            "offered_megabytes_per_s = 0.01",
            "load paced, key offered_megabytes_per_s: 2.44 I/Os a second are less than one a second for each of 4",
        ),
        (
            "block_size_kib = 256",
            "block_size_kib = 256.1",
            "load fill, key block_size_kib: 262246 bytes is not a multiple of 512 bytes",
        ),
        (
            "block_size_kib = 256",
            "",
            "load fill, key block_size_kib: either it or block_shares is needed, and not both",
        ),
    ],
)
def test_a_slip_is_named_with_file_place_and_reason(tmp_path: Path, old: str, new: str, found: str) -> None:
    """A mistake in a workload file is refused before tkperf accesses a device. The message contains the file, the
    position of the mistake and the reason.
    """
    assert old in EVERYTHING
    with pytest.raises(UsageError) as raised:
        own(EVERYTHING.replace(old, new, 1), tmp_path)
    assert str(raised.value).startswith(f"workload file {tmp_path}/own.toml, ") or "unknown" in found
    assert found in str(raised.value)


def test_lists_that_multiply_to_billions_are_counted_not_made(tmp_path: Path) -> None:
    """Lists whose combinations would lead to billions of steps are refused. The refusal takes no time, because the
    steps are counted and not created.
    """
    loops = ", ".join(
        f"{{ key = '{key}', values = [{many(64)}] }}"
        for key in ("read_percent", "jobs", "io_depth", "offered_iops", "compressible_percent")
    )
    text = EVERYTHING.replace("step_s = 5\n", f"step_s = 5\nloops = [{loops}]\n")
    with pytest.raises(UsageError, match=r"key loops: 1,073,741,824 steps of a round"):
        own(text, tmp_path)


def test_more_steps_than_can_be_run_are_refused(tmp_path: Path) -> None:
    """More than 200,000 steps in all rounds together are refused. Two identical loads are measured only once."""
    loops = f"loops = [{{ key = 'io_depth', values = [{many(64)}] }}]"
    text = EVERYTHING.replace("step_s = 5\nrounds = 2", f"step_s = 5\nrounds = 5000\n{loops}")
    with pytest.raises(UsageError, match=r"own.toml, more than 200,000 steps in all"):
        own(text, tmp_path)
    twins = EVERYTHING.replace(
        "[[phases]]",
        "[loads.twin]\naccess = 'sequential'\nread_percent = 0\nblock_size_kib = 256\njobs = 2\n[[phases]]",
        1,
    )
    twins = twins.replace('loads = ["paced"]', 'loads = ["twin", "fill"]')
    with pytest.raises(UsageError, match=r"SEQ 256k .* is measured twice in a round"):
        own(twins, tmp_path)


def test_nothing_is_measured_after_the_last_phase(tmp_path: Path) -> None:
    """A phase such as a purge is refused if it follows the last measurement."""
    with pytest.raises(UsageError, match=r"phase 9 \(purge\), key kind: nothing is measured after it"):
        own(EVERYTHING + "[[phases]]\nkind = 'purge'\n", tmp_path)


def test_hard_disks_are_not_purged(tmp_path: Path) -> None:
    """A workload file with a purge is refused for hard disks."""
    with pytest.raises(UsageError, match="tkperf does not purge hard disks"):
        own(EVERYTHING, tmp_path, suite="hdd")


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"hello", "not valid TOML: Expected '='"),
        (b"", "required key loads is missing"),
        (bytes(range(256)), "it is not text in UTF-8, from byte 128 on"),
        (b"#" * 300_000, "it is larger than 262.1 kB"),
        (b"x = " + b"[" * 50_000, "not valid TOML: it is nested too deeply"),
        (b"a." * 100_000 + b"b = 1", "not valid TOML: it is nested too deeply"),
        (b"x = 1" + b"0" * 5000, "not valid TOML"),
        (b"loads = 3", "key loads: the value must consist of tables, so write [loads.NAME]"),
        (b"loads = {}\nphases = 3", "key phases: the value must consist of tables, so write [[phases]]"),
        (b"laods = {}", "required key loads is missing; did you write laods for loads?"),
        (
            b"loads = {}\nphases = [3]",
            "phase 1: the key 'kind' is missing. Set 'kind' to one of purge, fill, idle, rounds",
        ),
        (b"loads = {}\nphases = [{knid = 'purge'}]", "rounds, stream; did you write knid for kind?"),
        (b"loads = {x = 3}\nphases = []", "load x: 3 is not allowed, it takes { access, "),
        (b"[loads.a]\n[loads.a]", "not valid TOML"),
    ],
)
def test_what_is_no_workload_file_is_said_at_once(tmp_path: Path, content: bytes, found: str) -> None:
    """A file that is not a workload file is refused with one reason. The content of the file does not matter."""
    (tmp_path / "own.toml").write_bytes(content)
    with pytest.raises(UsageError) as raised:
        with_workloads(load_profile("quick"), "ssd", (f"{tmp_path}/own.toml",))
    assert found in str(raised.value)


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    """If two different files use the same name for a test, they are refused, because their results would seem to belong
    to one test. A file that is given twice counts once.
    """
    for name in ("a", "b"):
        (tmp_path / f"{name}.toml").write_text(EVERYTHING)
    files = [f"{tmp_path}/{name}.toml" for name in ("a", "b")]
    with pytest.raises(UsageError, match=r"b.toml, key name: 'everything' is the name of another"):
        with_workloads(load_profile("quick"), "ssd", files)
    request = RunRequest(suite="ssd", device="sim:sata-ssd", tests=(files[0], files[0]))
    assert len(own_tests(choose_profile(request))) == 1
