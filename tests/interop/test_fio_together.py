"""Imports of fio loads that ran at the same time. The loads of one drive are a combination. The other loads are part of
the identity of each result.
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from tests.interop.fio_files import FIRST_MS, document, job
from tests.interop.test_fio_rounds import rounds_of, run_of
from tests.interop.test_pts_rounds import imported
from tkperf.interop.fio_together import group_jobs
from tkperf.model.figures import LoadCaution
from tkperf.model.measurement import NO_IO
from tkperf.model.quantity import IOPS
from tkperf.model.record import StepRecord
from tkperf.procedures.own_workloads.parts import LONGEST_LOAD_NAME

GOLDEN = Path(__file__).parents[1] / "golden"


def load(rw: str, iops: int = 100, **more: Any) -> dict[str, Any]:
    """Return a job of ten seconds. ``options`` are added to ``rw`` and ``bs``."""
    counted: dict[str, Any] = {"reads" if "read" in rw else "writes": iops * 10}
    options = {"rw": rw, "bs": "4k"} | more.pop("options", {})
    return job(name=more.pop("name", rw), options=options, **counted, **more)


def together(number: int, *jobs: dict[str, Any], **more: Any) -> tuple[str, str]:
    return f"r{number}.json", json.dumps(document(*jobs, at_s=60.0 * number, **more))


@pytest.mark.parametrize(
    "other",
    [
        {"iodepth": "{}"},
        {"numjobs": "{}", "group_reporting": ""},
        {"rate_iops": "{}00"},
        {"bs": "{}k"},
        {"filename": "/dev/sd{}"},
        {"rwmixread": "{}", "rw": "randrw"},
        {"thinktime": "{}"},
    ],
)
def test_rounds_beside_different_loads_are_different_series(other: dict[str, str]) -> None:
    """If a reader ran together with five different writers, one after the other, the results are five series. tkperf
    never computes a mean over these five conditions.
    """
    files = [
        together(
            each,
            load("randread", 1000),
            load("write", options={key: value.format(each) for key, value in other.items()}),
        )
        for each in (1, 2, 4, 8, 16)
    ]
    run = run_of(*files)
    reads = [
        step.section
        for step in run.tests[0].steps
        for part in (step.measurement.streams or [step.measurement])
        if part.read.ios == 10_000
    ]
    assert len(reads) == len(set(reads)) == 5


def test_rounds_beside_the_same_loads_are_one_series() -> None:
    """Rounds of the same loads are one series, even if one load continues at the address where its previous round
    ended, or if the number in the name of a load counts the rounds.
    """
    files = [
        together(
            each,
            load("randread", 1000 + each),
            load("write", name=f"writer-round{each}", options={"offset": str(each << 30), "iodepth": "4"}),
        )
        for each in range(1, 6)
    ]
    assert rounds_of(run_of(*files)) == {"fio randread + writer-round": [1100 + each for each in range(1, 6)]}


def test_a_load_that_is_left_out_ran_beside_others_nevertheless() -> None:
    """A load that is not imported still counts as a load that ran at the same time. For example, trims are not
    imported, but the section of the reads names the trims.
    """
    trims = job(name="t", options={"rw": "randtrim", "bs": "32k"}, trim={"total_ios": 9, "runtime": 10_000})
    assert list(rounds_of(run_of(together(1, load("randread"), trims)))) == [
        "fio RND TC1/QD1, at once with RND 32k trims TC1/QD1"
    ]


def test_drives_at_once_have_a_section_each() -> None:
    """If the same load runs on two drives at the same time, the results have one section for each drive.

    The value of the option ``filename`` distinguishes the sections, and each section names the load of the other drive.
    """
    drives = [
        load("randread", iops, name=f"d{iops}", options={"filename": f"/dev/sd{letter}"})
        for letter, iops in (("a", 50), ("b", 60))
    ]
    assert rounds_of(run_of(together(1, *drives))) == {
        "fio RND TC1/QD1, filename=/dev/sda, at once with RND 4k reads TC1/QD1 on /dev/sdb": [50],
        "fio RND TC1/QD1, filename=/dev/sdb, at once with RND 4k reads TC1/QD1 on /dev/sda": [60],
    }


@pytest.mark.parametrize(
    "names", [("/dev/sda:/dev/sdb", "/dev/sdc:/dev/sdd"), ("/dev/disk/by-id/a", "/dev/disk/by-id/b")]
)
def test_any_file_names_separate_series(names: tuple[str, str]) -> None:
    files = [
        together(10 * at + each, load("randread", 10 * at + each, options={"filename": name}))
        for at, name in enumerate(names)
        for each in range(1, 6)
    ]
    assert sorted(map(len, rounds_of(run_of(*files)).values())) == [5, 5]


def test_jobs_that_waited_are_no_company() -> None:
    """Loads of different groups ran one after the other, as with stonewall, so each load ran alone."""
    files = [
        together(each, load("randread", 1000), load("write", group=1, options={"iodepth": str(each)}))
        for each in range(1, 6)
    ]
    assert rounds_of(run_of(*files))["fio RND TC1/QD1"] == [1000] * 5


@pytest.mark.parametrize("version", ["3.33", "3.42"])
def test_new_groups_without_waiting_ran_together(version: str) -> None:
    """Jobs with ``new_group`` ran at the same time. ``new_group`` begins a new group as ``stonewall`` does, but does
    not wait. Only the times in the result show the difference (fio 3.33, 3.42).
    """
    found = document(
        load("randread", runtime_ms=60_000, version=version),
        load("write", runtime_ms=60_000, version=version, group=1),
        version=version,
    )
    assert len(group_jobs(found)) == 2
    for one in found["jobs"]:
        one["elapsed"] = 61
        if "job_start" in one:
            one["job_start"] = FIRST_MS
    assert len(group_jobs(found)) == 1


def test_a_short_load_beside_a_long_one_ran_together() -> None:
    """If two groups of jobs run one after the other, fio's total time is at least the sum of their times. If the total
    time is even slightly shorter, the groups ran at the same time.
    """
    found = document(load("randread", runtime_ms=600_000), load("write", runtime_ms=10_000, group=1))
    assert len(group_jobs(found)) == 2
    for one in found["jobs"]:
        one["elapsed"] = 601
    assert len(group_jobs(found)) == 1


def test_only_the_job_that_waits_begins_later() -> None:
    """A job with ``wait_for`` begins later than the other jobs of its group, which begin together. Jobs that wait for
    the same job also begin together.
    """
    found = document(
        load("randread", name="a"),
        load("write", name="b", options={"wait_for": "a"}),
        load("randwrite", name="c"),
        load("randwrite", name="d", options={"wait_for": "a", "bs": "8k"}, block_bytes=8192),
    )
    for one in found["jobs"]:
        one["elapsed"] = 21
    groups = [[one["jobname"] for one in group] for group in group_jobs(found)]
    assert groups == [["a", "c"], ["b", "d"]]


@pytest.mark.parametrize("depths", [("1", "2", "4"), ("4", "4", "4")])
def test_loads_of_other_hosts_are_part_of_the_key(depths: tuple[str, ...]) -> None:
    """If a load on another server runs at the same time and differs from round to round, the name of the section
    contains this load.
    """
    files = []
    for each, depth in enumerate(depths, start=1):
        reader = load("randread", 1000 + each, hostname="h1", port=8765)
        writer = load("write", hostname="h2", port=8765, options={"iodepth": depth})
        found = document(at_s=60.0 * each)
        del found["jobs"]
        files.append((f"r{each}.json", json.dumps(found | {"client_stats": [reader, writer]})))
    found_rounds = rounds_of(run_of(*files))
    reads = {name: values for name, values in found_rounds.items() if "RND" in name}
    if len(set(depths)) == 1:
        assert reads == {"fio RND TC1/QD1": [1001, 1002, 1003]}
    else:
        assert reads == {
            f"fio RND TC1/QD1, at once with SEQ 4k writes TC1/QD{depth} on h2": [1000 + each]
            for each, depth in enumerate(depths, start=1)
        }


def test_mixes_at_once_are_told_by_their_mix() -> None:
    mixes = [
        job(
            name=f"m{mix}",
            reads=mix * 100,
            writes=(100 - mix) * 100,
            options={"rw": "randrw", "bs": "4k", "rwmixread": str(mix)},
        )
        for mix in (70, 30)
    ]
    mixes[1]["job options"]["startdelay"] = "1"
    assert list(rounds_of(run_of(together(1, *mixes)))) == [
        "fio RND TC1/QD1, at once with RND 4k R/W 30/70 TC1/QD1",
        "fio RND TC1/QD1, at once with RND 4k R/W 70/30 TC1/QD1",
    ]


@pytest.mark.parametrize("version", ["3.33", "3.42"])
@pytest.mark.parametrize(
    ("delay", "ramp", "is_at_once"),
    [
        ("10", "0", False),
        ("15s", "0", False),
        ("5", "0", True),
        ("12", "5", True),
        ("10-20", "0", True),
        ("0", "0", True),
    ],
)
def test_a_job_that_began_after_the_end_of_another_is_no_company(
    version: str, delay: str, ramp: str, is_at_once: bool
) -> None:
    """A job that began after the end of another job did not run at the same time as the other job. The job's start time
    shows when the job began. Versions of fio before 3.36 do not report this time, so ``startdelay`` shows when the job
    began. If ``startdelay`` is a range, the beginning is not known.
    """
    first = load("randread", version=version, options={"ramp_time": ramp})
    second = load("write", version=version, options={"startdelay": delay, "bs": "64k"})
    found = document(first, second, version=version)
    for one in found["jobs"]:
        one["elapsed"] = 26
    if "job_start" in second:
        second["job_start"] = FIRST_MS + 1000 * int(delay.partition("-")[0].rstrip("s"))
        is_at_once &= delay != "10-20"
    assert len(group_jobs(found)) == (1 if is_at_once else 2)


def test_clones_are_one_load() -> None:
    """The clones of a job are one load. With numjobs and without group_reporting, two entries with the same name do not
    count as two loads that ran at the same time.
    """
    clones = [load("randread", options={"numjobs": "2"}) for _ in range(2)]
    assert list(rounds_of(run_of(together(1, *clones)))) == ["fio RND TC2/QD1"]
    (step,) = run_of(together(1, load("write"), *clones)).tests[0].steps
    assert [(stream.name, stream.workload.jobs) for stream in step.workload.together] == [("write", 1), ("randread", 2)]


def streams_of(step: StepRecord) -> dict[str, float]:
    """Return the IOPS of each stream of a step."""
    return {part.name: step.measurement.of_stream(part.name).iops for part in step.measurement.streams}


def test_loads_on_one_drive_are_a_combination() -> None:
    """Loads on one drive are a combination. Each load is a stream with its own figures, and the total is the sum of the
    streams. Five documents are five rounds.
    """
    files = [
        together(
            each,
            load("randread", 1000 + each, name="reader", bins=True),
            load("write", 200, name="writer", options={"iodepth": "4"}, bins=True),
        )
        for each in range(1, 6)
    ]
    (test,) = run_of(*files).tests
    assert [streams_of(step) for step in test.steps] == [{"reader": 1000 + each, "writer": 200} for each in range(1, 6)]
    for step in test.steps:
        read, write = (step.measurement.of_stream(name) for name in ("reader", "writer"))
        assert (read.write, write.read) == (NO_IO, NO_IO)
        assert (step.measurement.read, step.measurement.write) == (read.read, write.write)
        assert [str(stream.workload) for stream in step.workload.together] == [
            "RND 4k R/W 100/0 TC1/QD1",
            "SEQ 4k R/W 0/100 TC1/QD4",
        ]
    (outcome,) = test.outcomes
    assert outcome.window == (1, 2, 3, 4, 5)
    assert outcome.verdict is not None
    assert (outcome.verdict.tracking, outcome.verdict.average) == ("IOPS of all streams", 1203)


def test_a_run_file_keeps_the_streams(tmp_path: Path) -> None:
    """A run file contains each stream and the total of an imported combination. The label of each stream names the
    other loads that ran at the same time.
    """
    run = imported(tmp_path, together(1, load("randread", 1000), load("write", 200)))
    (section,) = run.tests[0].sections
    assert [(str(cell.workload), cell.value(IOPS)) for cell in section.cells] == [
        ("randread + write, together", 1200),
        ("randread: RND 4k R/W 100/0 TC1/QD1, together with write", 1000),
        ("write: SEQ 4k R/W 0/100 TC1/QD1, together with randread", 200),
    ]


def test_streams_have_different_names() -> None:
    """Jobs with the same name and different options are different streams. No stream has the name "all", which is the
    name of the total.
    """
    jobs = [load("randread", 100 * each, name="a", options={"iodepth": str(each)}) for each in (1, 2)]
    (step,) = run_of(together(1, *jobs, load("write", 300, name="all"))).tests[0].steps
    assert streams_of(step) == {"a": 100, "a (2)": 200, "all (2)": 300}


def test_a_stream_never_has_a_longer_name_than_a_load() -> None:
    """The name of a stream has at most as many characters as the name of a load in a workload file, even with the
    number that distinguishes two streams of the same name.
    """
    jobs = [load("randread", 100 * each, name="x" * 70, options={"iodepth": str(each)}) for each in (1, 2)]
    (step,) = run_of(together(1, *jobs)).tests[0].steps
    first, second = streams_of(step)
    assert (first, len(first)) == ("x" * 64, LONGEST_LOAD_NAME)
    assert second.endswith("x (2)")
    assert len(second) <= LONGEST_LOAD_NAME


def test_loads_of_several_drives_are_never_added() -> None:
    """If two drives have two loads each, the result is two combinations. Each combination names the loads of the other
    drive. The rates of different drives are never added.
    """
    loads = [
        load(rw, iops, name=rw, options={"filename": f"/dev/sd{drive}"})
        for drive, factor in (("a", 1), ("b", 2))
        for rw, iops in (("randread", 100 * factor), ("write", 10 * factor))
    ]
    (test,) = run_of(together(1, *loads)).tests
    assert {step.section: streams_of(step) for step in test.steps} == {
        f"fio randread + write, filename=/dev/sd{drive}, at once with RND 4k reads TC1/QD1 on /dev/sd{other} + "
        f"SEQ 4k writes TC1/QD1 on /dev/sd{other}": {"randread": 100 * factor, "write": 10 * factor}
        for drive, other, factor in (("a", "b", 1), ("b", "a", 2))
    }
    assert test.plan is not None
    assert all(section.cautions == (LoadCaution.SHARED_LOAD,) for section in test.plan.sections)


def test_combinations_of_the_same_names_are_different_series() -> None:
    """If combinations have streams with the same names but different loads, each combination has a section with a name
    that contains the loads.
    """
    files = [
        together(each, load("randread", 1000), load("write", 200, options={"iodepth": str(each)})) for each in (1, 2)
    ]
    assert list(rounds_of(run_of(*files))) == [
        f"fio randread + write, RND 4k reads TC1/QD1 + SEQ 4k writes TC1/QD{each}" for each in (1, 2)
    ]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({}, {"runtime_ms": 10_200}),
        ({}, {"options": {"startdelay": "2"}}),
        ({}, {"options": {"ramp_time": "2"}}),
        ({}, {"options": {"filename": "/dev/sda"}}),
        ({"options": {"filename": "/dev/sda:/dev/sdb"}}, {"options": {"filename": "/dev/sda:/dev/sdb"}}),
        ({"options": {"directory": "/a"}}, {"options": {"directory": "/b"}}),
        ({"name": "/dev/sda"}, {"name": "/dev/sdb"}),
        ({}, {"error": 5}),
        ({"job options": {}}, {"job options": {}}),
        ({}, {"name": "precondition"}),
    ],
)
def test_loads_without_one_drive_and_duration_remain_apart(first: dict[str, Any], second: dict[str, Any]) -> None:
    """Loads are a combination only if they ran on the same drive for the same duration, and if the import contains all
    of them. Otherwise each load has a separate section, because a total would be wrong.
    """
    run = run_of(together(1, load("randread", 1000, **first), load("write", 200, **second)))
    (test,) = run.tests
    assert not any(step.measurement.streams for step in test.steps)
    assert test.plan is not None
    assert all(section.cautions == (LoadCaution.SHARED_LOAD,) for section in test.plan.sections)
    assert all("at once with" in step.section for step in test.steps)


def test_groups_that_overlap_in_part_are_no_combination() -> None:
    """With the start times of fio 3.36 and newer, jobs of two groups are a combination only if they began together."""
    for late_ms, is_combination in ((0, True), (3000, False)):
        jobs = [load(rw, version="3.42", group=at) for at, rw in enumerate(("randread", "write"))]
        found = document(*jobs, version="3.42")
        jobs[1]["job_start"] = FIRST_MS + late_ms
        steps = run_of(("a.json", json.dumps(found))).tests[0].steps
        assert [bool(step.measurement.streams) for step in steps] == ([True] if is_combination else [False, False])


def test_a_total_has_percentiles_only_if_all_streams_have_them() -> None:
    """A total has percentiles only if all streams have histograms, and a mean only if all streams have a mean."""
    for mean_us in (55.0, 0.0):
        jobs = load("randread", bins=True), load("write", mean_us=mean_us)
        (step,) = run_of(together(1, *jobs)).tests[0].steps
        assert step.measurement.of_stream("randread").read.histogram.total == 1000
        assert step.measurement.both.histogram.total == 0
        assert (step.measurement.latency_mean_us is None) == (mean_us == 0)


def test_options_of_a_stream_have_its_name() -> None:
    """The section name states to which stream a rate limit belongs. Options that all streams share appear without the
    name of a stream.
    """
    shared = {"filename": "/dev/sda", "direct": "0"}
    jobs = load("randread", options=shared), load("write", options=shared | {"rate_iops": "100"})
    assert list(rounds_of(run_of(together(1, *jobs)))) == ["fio randread + write, buffered I/O, write: rate_iops=100"]


def test_fio_itself_writes_combinations() -> None:
    """A real result of fio 3.33 contains two jobs on one file, followed by two jobs on each of two files. This result
    is imported as three combinations. Each total contains the I/Os and bytes of its two jobs, and each stream contains
    the numbers of its job.
    """
    text = lzma.decompress((GOLDEN / "fio-3.33-together.json.xz").read_bytes()).decode()
    jobs = {each["jobname"]: each for each in json.loads(text)["jobs"]}
    (test,) = run_of(("a.json", text)).tests
    assert [tuple(part.name for part in step.measurement.streams) for step in test.steps] == [
        ("reader", "writer"),
        ("reader-a", "writer-a"),
        ("reader-b", "writer-b"),
    ]
    for step in test.steps:
        reader, writer = (jobs[part.name] for part in step.measurement.streams)
        measured = step.measurement
        assert (measured.read.ios, measured.write.ios) == (reader["read"]["total_ios"], writer["write"]["total_ios"])
        assert measured.bytes == reader["read"]["io_bytes"] + writer["write"]["io_bytes"]
        assert measured.both.histogram.total == measured.ios
        for name, job_of, side in zip(streams_of(step), (reader, writer), ("read", "write"), strict=True):
            assert streams_of(step)[name] == pytest.approx(job_of[side]["iops"], rel=0.01)
            assert measured.of_stream(name).latency_mean_us == pytest.approx(job_of[side]["lat_ns"]["mean"] / 1000)
    assert ["at once with" in step.section for step in test.steps] == [False, True, True]
