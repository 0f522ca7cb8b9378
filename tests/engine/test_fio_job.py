"""Workloads as fio jobs. A reader of a report can run these jobs again."""

from __future__ import annotations

import configparser
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tkperf.engine.fio_job import FioTarget, find_poisson_setting, poisson_iops, render_fill_job, render_step_job
from tkperf.model.errors import UsageError
from tkperf.model.workload import Access, ActiveRange, Arrival, BlockShare, Step, Workload, Zone, split_regions

RANGE = ActiveRange(offset_bytes=0, length_bytes=1 << 30)
TARGET = FioTarget(path="/dev/sdx", ioengine="libaio", active_range=RANGE)


def workload(**changes: object) -> Workload:
    facts: dict[str, object] = {
        "access": Access.RANDOM,
        "read_percent": 65,
        "block_size_bytes": 4096,
        "jobs": 4,
        "io_depth": 32,
    }
    return Workload(**(facts | changes))  # type: ignore[arg-type]


def parse(text: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text)
    return parser


def test_a_random_step_is_direct_time_based_and_never_repeats() -> None:
    """The fio job of a random step uses direct I/O, random data and, at each start, different random addresses. The job
    neither drops caches nor creates files.
    """
    job = parse(render_step_job(Step(workload=workload(), duration_s=60), TARGET))["global"]
    expected = {
        "filename": "/dev/sdx",
        "ioengine": "libaio",
        "direct": "1",
        "rw": "randrw",
        "rwmixread": "65",
        "bs": "4096",
        "iodepth": "32",
        "numjobs": "4",
        "time_based": "1",
        "runtime": "60000ms",
        "randrepeat": "0",
        "refill_buffers": "1",
        "norandommap": "1",
        "invalidate": "0",
        "allow_file_create": "0",
        "random_generator": "tausworthe64",
        "offset": "0",
        "size": str(1 << 30),
    }
    assert {key: job[key] for key in expected} == expected


@pytest.mark.parametrize("clocksource", ["cpu", None])
def test_the_clock_is_chosen_once_for_steps_and_fills(clocksource: str | None) -> None:
    """The clock source is selected once for all steps and fills. Otherwise, each start of fio would test the clock with
    a thread on every CPU.
    """
    target = replace(TARGET, clocksource=clocksource)
    for text in (
        render_step_job(Step(workload=workload(), duration_s=60), target),
        render_fill_job(workload(read_percent=0), 2, [target]),
    ):
        assert parse(text)["global"].get("clocksource") == clocksource


@pytest.mark.parametrize(
    ("access", "read_percent", "rw"),
    [
        (Access.RANDOM, 100, "randread"),
        (Access.RANDOM, 0, "randwrite"),
        (Access.SEQUENTIAL, 100, "read"),
        (Access.SEQUENTIAL, 0, "write"),
    ],
)
def test_pure_reads_and_writes_have_no_mix(access: Access, read_percent: int, rw: str) -> None:
    """A workload that consists only of reads or only of writes uses fio's pure patterns and no mix."""
    step = Step(workload=workload(access=access, read_percent=read_percent), duration_s=1)
    job = parse(render_step_job(step, TARGET))["global"]
    assert job["rw"] == rw
    assert "rwmixread" not in job


def test_sequential_jobs_own_disjoint_regions_and_go_on_where_they_stopped() -> None:
    """Each sequential job has a separate region. The job starts at the position where its previous step ended, and
    continues to the end of its region.
    """
    step = Step(workload=workload(access=Access.SEQUENTIAL, read_percent=0), duration_s=1)
    quarter = (1 << 30) // 4
    job = parse(render_step_job(step, TARGET, starts_bytes=(0, 4096, 8192, 0)))
    places = [(int(job[f"step{n}"]["offset"]), int(job[f"step{n}"]["size"])) for n in range(4)]
    assert places == [
        (0, quarter),
        (quarter + 4096, quarter - 4096),
        (2 * quarter + 8192, quarter - 8192),
        (3 * quarter, quarter),
    ]


@given(
    st.integers(min_value=1, max_value=64),
    st.integers(min_value=0, max_value=1 << 40),
    st.integers(min_value=64 * 256, max_value=1 << 32),
    st.integers(min_value=1, max_value=4),
)
def test_a_fill_writes_every_byte_of_the_range_exactly_passes_times(
    jobs: int, offset_blocks: int, length_blocks: int, passes: int
) -> None:
    """If a fill has several passes, it writes every byte of the range in each pass. This applies to any number of jobs.
    The regions of the jobs cover the range without overlap.
    """
    active = ActiveRange(offset_bytes=offset_blocks * 512, length_bytes=length_blocks * 512)
    filling = workload(access=Access.SEQUENTIAL, read_percent=0, block_size_bytes=131072, jobs=jobs)
    target = FioTarget(path="/dev/sdx", ioengine="libaio", active_range=active)
    job = parse(render_fill_job(filling, passes, [target]))
    parts = sorted(
        (int(job[name]["offset"]), int(job[name]["size"]), int(job[name]["io_size"]))
        for name in job.sections()
        if name != "global"
    )
    position = active.offset_bytes
    for offset, size, io_size in parts:
        assert offset == position
        assert io_size == passes * size
        position += size
    assert position == active.offset_bytes + active.length_bytes
    for name in job.sections():
        block = int(job[name].get("bs", "131072"))
        if name != "global":
            assert int(job[name]["size"]) % block == 0


def test_a_gate_stands_before_the_first_io() -> None:
    """The command that waits at the gate is part of the job that is executed. This command is not part of the job in
    the report.
    """
    step = Step(workload=workload(), duration_s=1)
    assert "exec_prerun=wait here\n" in render_step_job(step, TARGET, prerun="wait here")
    assert "exec_prerun" not in render_step_job(step, TARGET)


def test_a_colon_in_a_path_is_not_a_list_of_files() -> None:
    """A colon in a path is escaped, because fio would otherwise split the path into a list of files."""
    target = FioTarget(path="/tmp/a:b", ioengine="libaio", active_range=RANGE)
    assert "filename=/tmp/a\\:b\n" in render_step_job(Step(workload=workload(), duration_s=1), target)


def test_more_jobs_than_blocks_is_a_clear_error() -> None:
    """A range that is too small for its jobs is refused before fio starts."""
    with pytest.raises(UsageError, match="too small for 4 jobs"):
        split_regions(ActiveRange(offset_bytes=0, length_bytes=1 << 20), 4, 1 << 20)


def test_several_targets_are_filled_apart() -> None:
    """If several targets are filled, each job names its own device. If [global] named a device, all jobs would also
    write to this device.
    """
    targets = [
        FioTarget(
            path=f"/dev/{name}",
            ioengine="libaio",
            active_range=ActiveRange(offset_bytes=0, length_bytes=(1 << 20) + 4096),
        )
        for name in ("a", "b")
    ]
    workload = Workload(access=Access.SEQUENTIAL, read_percent=0, block_size_bytes=131072, jobs=2, io_depth=1)
    job = parse(render_fill_job(workload, 2, targets))
    assert "filename" not in job["global"]
    sections = [job[name] for name in job.sections() if name != "global"]
    for target in targets:
        own = [section for section in sections if section["filename"] == target.path]
        assert sum(int(section["io_size"]) for section in own) == 2 * ((1 << 20) + 4096)
    assert len(sections) == 6


def test_a_mix_of_blocks_is_aligned_to_4_kib() -> None:
    """The addresses of a mix of block sizes are aligned to 4 KiB. fio would align them to the smallest block of the
    mix, so 4 KiB I/Os would cross the page boundaries of drives.
    """
    mix = (BlockShare(512, 4), BlockShare(4096, 96))
    zones = (Zone(50, 5), Zone(50, 95))
    load = workload(block_mix=mix, zones=zones)
    job = parse(render_step_job(Step(workload=load, duration_s=1), TARGET))["global"]
    assert job["bssplit"] == "512/4:4096/96"
    assert job["blockalign"] == "4096"
    assert job["random_distribution"] == "zoned:50/5:50/95"
    assert "bs" not in job
    small = workload(block_size_bytes=1024, block_mix=(BlockShare(512, 4), BlockShare(1024, 96)))
    for one_size in (workload(), small):
        job = parse(render_step_job(Step(workload=one_size, duration_s=1), TARGET))["global"]
        assert "blockalign" not in job


def rate_lines(**changes: object) -> list[str]:
    step = Step(workload=workload(**changes), duration_s=1.0)
    lines = render_step_job(step, TARGET).splitlines()
    return [line for line in lines if line.startswith("rate")]


def test_evenly_offered_ios_are_asked_for_in_bytes() -> None:
    """Evenly offered I/Os are requested in bytes per second, because fio's rate in IOPS is a whole number. For example,
    1,000 IOPS over 32 jobs are 31.25 IOPS for each job, and whole numbers would add up to only 992 IOPS.
    """
    rates = {"read_percent": 100, "jobs": 32, "io_depth": 1, "offered_iops": 1000.0}
    assert rate_lines(**rates) == [f"rate={int(31.25 * 4096)},", "rate_process=linear"]
    mixed = rate_lines(**(rates | {"read_percent": 65}))
    assert mixed == ["rate=83200,44800", "rate_process=linear"]
    assert rate_lines(**(rates | {"read_percent": 0}))[0] == "rate=,128000"
    assert rate_lines(**(rates | {"offered_iops": None})) == []
    blocks = (BlockShare(4096, 60), BlockShare(512, 40))
    # The rate is computed from the mean block size, because fio before 3.42 interprets rate_iops of a mix as a rate of
    # I/Os of the smallest size.
    assert rate_lines(**(rates | {"block_mix": blocks}))[0] == f"rate={31.25 * 2662.4:.0f},"
    with pytest.raises(
        UsageError, match="in each of 32 jobs, the rate of the reads or of the writes would be below one I/O per second"
    ):
        rate_lines(**(rates | {"offered_iops": 31.0}))


@pytest.mark.parametrize(
    ("asked", "setting"),
    [(1.0, 1), (50.0, 50), (1000.0, 1000), (2343.75, 2341), (20_000.0, 19_607), (66_000.0, 62_500)],
)
def test_random_arrivals_come_at_the_rate_asked(asked: float, setting: int) -> None:
    """Random arrivals have the requested rate. The setting that tkperf passes to fio compensates for an error: fio 3.33
    truncates fractions of a microsecond. With a setting of 66,666 IOPS, fio issued 69,002 IOPS (null engine, 5 s).
    """
    rates = {"read_percent": 100, "jobs": 1, "offered_iops": asked, "arrival": Arrival.POISSON}
    found = find_poisson_setting(asked)
    assert poisson_iops(found) == pytest.approx(asked, rel=0.01 if asked < 60_000 else 0.03)
    assert abs(poisson_iops(found) - asked) <= abs(poisson_iops(setting) - asked) + 1e-9
    assert rate_lines(**rates) == [f"rate_iops={found},", "rate_process=poisson"]
    assert poisson_iops(66_666) == pytest.approx(69_002, rel=0.002)
