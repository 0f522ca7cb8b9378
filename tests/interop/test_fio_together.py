"""Loads of fio that ran at the same time. The key of each result contains the other loads."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.interop.fio_files import FIRST_MS, document, job
from tests.interop.test_fio_rounds import rounds_of, run_of
from tkperf.interop.fio_together import group_jobs


def load(rw: str, iops: int = 100, **more: Any) -> dict[str, Any]:
    """Return a job of ten seconds; ``options`` are added to ``rw`` and ``bs``."""
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
    """A reader that ran beside five different writers gives five series. tkperf never averages over
    these conditions.
    """
    files = [
        together(
            each,
            load("randread", 1000),
            load("write", options={key: value.format(each) for key, value in other.items()}),
        )
        for each in (1, 2, 4, 8, 16)
    ]
    reads = [values for name, values in rounds_of(run_of(*files)).items() if values == [1000]]
    assert len(reads) == 5


def test_rounds_beside_the_same_loads_are_one_series() -> None:
    """Rounds beside the same loads are one series, even if the other load continues where it ended, or if its name
    counts rounds. The section names that load.
    """
    files = [
        together(
            each,
            load("randread", 1000 + each),
            load("write", name=f"writer-round{each}", options={"offset": str(each << 30), "iodepth": "4"}),
        )
        for each in range(1, 6)
    ]
    found = rounds_of(run_of(*files))
    assert found["fio RND TC1/QD1, at once with SEQ 4k writes TC1/QD4"] == [1000 + each for each in range(1, 6)]


def test_a_load_that_is_left_out_ran_beside_others_nevertheless() -> None:
    """Trims are not imported, but the reads were measured while the trims ran."""
    trims = job(name="t", options={"rw": "randtrim", "bs": "32k"}, trim={"total_ios": 9, "runtime": 10_000})
    assert list(rounds_of(run_of(together(1, load("randread"), trims)))) == [
        "fio RND TC1/QD1, at once with RND 32k trims TC1/QD1"
    ]


def test_drives_at_once_have_a_section_each() -> None:
    """The same load runs on two files.

    The filename distinguishes them, and each section names the other load.
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
    """Groups run one after the other, as with stonewall, so each load ran alone."""
    files = [
        together(each, load("randread", 1000), load("write", group=1, options={"iodepth": str(each)}))
        for each in range(1, 6)
    ]
    assert rounds_of(run_of(*files))["fio RND TC1/QD1"] == [1000] * 5


@pytest.mark.parametrize("version", ["3.33", "3.42"])
def test_new_groups_without_waiting_ran_together(version: str) -> None:
    """``new_group`` begins a new group as ``stonewall`` does, but does not wait. Only the times
    show the difference (fio 3.33, 3.42).
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
    """fio's total time covers groups that run one after the other. If the total time is even a
    little too short, two groups overlapped.
    """
    found = document(load("randread", runtime_ms=600_000), load("write", runtime_ms=10_000, group=1))
    assert len(group_jobs(found)) == 2
    for one in found["jobs"]:
        one["elapsed"] = 601
    assert len(group_jobs(found)) == 1


def test_only_the_job_that_waits_begins_later() -> None:
    """Only a job with ``wait_for`` begins later. The other jobs of its group began with the first one, and jobs that
    wait for the same job began together.
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
    """One server runs at the same time as another server, which does different work in each round.
    The section names show the difference.
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
    """A job that began after the end of another one did not run at the same time. Its times show ``startdelay``, or
    before fio 3.36 its options. A range of delays does not tell the beginning.
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
    """With numjobs and without group_reporting, two entries of one name do not count as loads at
    the same time.
    """
    clones = [load("randread", options={"numjobs": "2"}) for _ in range(2)]
    assert list(rounds_of(run_of(together(1, *clones)))) == ["fio RND TC2/QD1"]
    beside = rounds_of(run_of(together(1, load("write"), *clones)))
    assert "fio SEQ TC1/QD1, at once with RND 4k reads TC2/QD1" in beside
