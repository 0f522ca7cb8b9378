"""fio's JSON: a real json+ stream of fio 3.33, the layout of fio 2.x, and what else may come."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import tkperf
from tkperf.cli.main import cli
from tkperf.errors import UsageError
from tkperf.importers.fio_json import parse_fio_json

GOLDEN = Path(__file__).parents[1] / "golden/fio-3.33-randrw-2jobs.txt.xz"


def result(iops: int, *, old: bool = False, **options: object) -> str:
    """A document of one job that wrote for ten seconds."""
    ios = iops * 10
    latency = {"min": 10, "max": 900, "mean": 50.5}
    write: dict[str, Any] = {"total_ios": ios, "runtime": 10_000, "iops": iops}
    if old:
        write |= {"io_bytes": ios * 4, "lat": latency, "clat": {"percentile": {"99.0": 1}}}
    else:
        write |= {
            "io_bytes": ios * 4096,
            "lat_ns": {key: int(value * 1000) for key, value in latency.items()},
        }
    job: dict[str, Any] = {
        "jobname": "w", "error": 0, "read": {"total_ios": 0, "io_bytes": 0, "runtime": 0},
        "write": write,
    }  # fmt: skip
    if options or not old:
        job["job options"] = {"rw": "randwrite", "bs": "4k", "iodepth": "8", **options}
    version = "fio-2.2.10" if old else "fio-3.36"
    return json.dumps({"fio version": version, "jobs": [job]})


def test_a_real_stream_counts_once(tmp_path: Path) -> None:
    """Text, then a status document each second: the last one is the result, with its histogram."""
    text = lzma.decompress(GOLDEN.read_bytes()).decode()
    run = parse_fio_json([("stream.txt", text)], name="stream")
    steps = run.tests[0].steps
    assert {step.number for step in steps} == {1}
    documents = [line for line in text.splitlines() if line == "{"]
    assert len(documents) > 1
    (last,) = [json.loads("{" + text.rpartition("\n{")[2])]
    ios = sum(job[side]["total_ios"] for job in last["jobs"] for side in ("read", "write"))
    assert sum(step.measurement.ios for step in steps) == ios
    assert steps[0].measurement.both.percentile_ns(50) is not None
    assert run.fio_version == "fio-3.33"


@pytest.mark.parametrize("old", [False, True])
def test_units_of_both_generations(old: bool) -> None:
    """KiB and us of fio 2.x, bytes and ns of fio 3.x: the same measurement."""
    options = {"rw": "randwrite", "bs": "4k", "iodepth": "8"} if old else {}
    run = parse_fio_json([("a", result(1000, old=old, **options))], name="x")
    (step,) = run.tests[0].steps
    assert step.measurement.iops == 1000
    assert step.measurement.megabytes_per_s == pytest.approx(4.096)
    assert step.measurement.latency_mean_us == pytest.approx(50.5)
    assert step.measurement.both.latency_max_ns == 900_000
    assert step.workload.io_depth == 8
    assert step.measurement.both.percentile_ns(99) is None


def test_files_are_rounds_and_are_judged() -> None:
    """Five files of a steady rate: steady; with a jump: not, and the values say why."""
    steady = [(f"r{number}.json", result(1000 + number)) for number in range(5)]
    run = parse_fio_json(steady, name="x")
    assert run.tests[0].outcome is not None
    (section,) = run.tests[0].outcome.sections
    assert section.verdict is not None
    assert section.verdict.reached
    assert section.verdict.values == (1000, 1001, 1002, 1003, 1004)
    jumping = parse_fio_json([*steady[:4], ("r5.json", result(3000))], name="x")
    assert jumping.tests[0].outcome is not None
    verdict = jumping.tests[0].outcome.sections[0].verdict
    assert verdict is not None
    assert not verdict.reached


def test_several_documents_and_text_around(tmp_path: Path) -> None:
    """fio's warnings, two results, and a line of a script in one file: two rounds."""
    text = f"fio: warning {{x}}\n{result(10)}\n# next\n{result(20)}\nbye"
    run = parse_fio_json([("all.txt", text)], name="x")
    assert [(step.number, step.measurement.iops) for step in run.tests[0].steps] == [
        (1, 10),
        (2, 20),
    ]


def test_options_that_are_not_there_are_a_warning() -> None:
    """fio 2.1 wrote none: the block size as it came out, and the reader is told."""
    run = parse_fio_json([("old.json", result(10, old=True))], name="x")
    (warning,) = run.warnings
    assert warning.code == "job-options-missing"
    assert run.tests[0].steps[0].workload.block_size_bytes == 4096


def test_clones_of_a_job_count_together() -> None:
    """numjobs without group_reporting: the rates add up."""
    document = json.loads(result(100, numjobs="2"))
    document["jobs"] = document["jobs"] * 2
    run = parse_fio_json([("a", json.dumps(document))], name="x")
    (step,) = run.tests[0].steps
    assert step.measurement.iops == 200
    assert step.workload.jobs == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "holds no JSON result of fio"),
        ("{}", "holds no JSON result of fio"),
        ('{"jobs": [1]}', "is not an object"),
        ('{"jobs": []}', "no job of it moved data"),
        (result(10).replace('"error": 0', '"error": 5'), "failed with error 5"),
        (result(10, bs="3000x"), "not a size"),
        (result(10, iodepth="many"), "job w"),
    ],
)
def test_files_that_cannot_be_taken(text: str, says: str) -> None:
    """A clear error with the file's name."""
    with pytest.raises(UsageError, match=says):
        parse_fio_json([("a.json", text)], name="x")


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["jobs", "read", "write", "total_ios", "runtime", "lat_ns", "mean", "bins",
             "io_bytes", "job options", "bs", "rw", "timestamp_ms"]
        ),
        inner, max_size=6,
    ),
    max_leaves=30,
)  # fmt: skip


@given(st.lists(json_values, max_size=3))
def test_any_json_is_a_run_or_our_error(jobs: list[object]) -> None:
    """Whatever the documents hold."""
    try:
        run = parse_fio_json([("x", json.dumps({"jobs": jobs}))], name="x")
    except UsageError:
        return
    assert run.tests[0].steps


def test_the_command(tmp_path: Path) -> None:
    """Many files become one run of the name given; reports and comparisons take it."""
    for number in range(5):
        (tmp_path / f"r{number}.json").write_text(result(1000 + number))
    files = [str(tmp_path / f"r{number}.json") for number in range(5)]
    ran = CliRunner().invoke(cli, ["import", *files, "--name", "mine", "--output", str(tmp_path)])
    assert ran.exit_code == 0, ran.exception
    path = tmp_path / "mine.tkperf"
    run = tkperf.load(path)
    assert run.tests[0].sections[0].name == "fio RND TC1/QD8"
    assert run.tests[0].sections[0].cells[0].iops == 1002
    assert any("IMPORTED from 5 files of fio" in notice for notice in run.info.notices)
    for command in (["show", str(path)], ["report", str(path)], ["compare", str(path), str(path)]):
        done = CliRunner().invoke(cli, command)
        assert done.exit_code == 0, done.exception
