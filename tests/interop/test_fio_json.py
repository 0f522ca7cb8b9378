"""Imports of fio's JSON. The tests use a real json+ stream of fio 3.33, the layout of fio 2.x, and unusual or invalid
content.
"""

from __future__ import annotations

import json
import lzma
import math
import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import tkperf
from tests.builders import view_of
from tests.fleets import vary_run_file
from tests.interop.fio_files import parse_fio_json
from tkperf.cli.main import cli
from tkperf.interop.fio_documents import Documents
from tkperf.model.errors import UsageError
from tkperf.model.quantity import IOPS, IOS
from tkperf.page.view import build_view
from tkperf.render.export_json import render_json
from tkperf.render.export_markdown import render_markdown
from tkperf.render.html import render_view

GOLDEN = Path(__file__).parents[1] / "golden"


def result(iops: int, *, old: bool = False, **options: object) -> str:
    """Return a document of one job that wrote for ten seconds."""
    ios = iops * 10
    latency = {"min": 10, "max": 900, "mean": 50.5}
    write: dict[str, Any] = {"total_ios": ios, "runtime": 10_000, "iops": iops}
    if old:
        write |= {"io_bytes": ios * 4, "lat": latency, "clat": {"percentile": {"99.0": 1}}}
    else:
        write |= {"io_bytes": ios * 4096, "lat_ns": {key: int(value * 1000) for key, value in latency.items()}}
    job: dict[str, Any] = {
        "jobname": "w",
        "error": 0,
        "read": {"total_ios": 0, "io_bytes": 0, "runtime": 0},
        "write": write,
    }
    if options or not old:
        job["job options"] = {"rw": "randwrite", "bs": "4k", "iodepth": "8", "direct": "1", **options}
    version = "fio-2.2.10" if old else "fio-3.36"
    return json.dumps({"fio version": version, "jobs": [job]})


@pytest.mark.parametrize("version", ["3.33", "3.39", "3.42"])
def test_a_real_stream_counts_once(version: str) -> None:
    """A stream of status documents counts as one result. The last document contains the result, which includes a
    histogram.
    """
    text = lzma.decompress((GOLDEN / f"fio-{version}-randrw-2jobs.txt.xz").read_bytes()).decode()
    run = parse_fio_json([("stream.txt", text)], name="stream")
    steps = run.tests[0].steps
    assert {step.number for step in steps} == {1}
    documents = [line for line in text.splitlines() if line == "{"]
    assert len(documents) > 1
    (last,) = [json.loads("{" + text.rpartition("\n{")[2])]
    ios = sum(job[side]["total_ios"] for job in last["jobs"] for side in ("read", "write"))
    assert sum(step.measurement.ios for step in steps) == ios
    assert steps[0].measurement.both.percentile_ns(50) is not None
    assert run.fio_version == f"fio-{version}"


@pytest.mark.parametrize("old", [False, True])
def test_units_of_both_generations(old: bool) -> None:
    """A result of fio 2.x in KiB and us leads to the same measurement as a result of fio 3.x in bytes and ns."""
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
    """Files with the same load are rounds of one series, and tkperf judges whether the series reaches steady state.
    Five files with a constant rate are in steady state. Five files whose rate changes abruptly are not.
    """
    steady = [(f"r{number}.json", result(1000 + number)) for number in range(5)]
    run = parse_fio_json(steady, name="x")
    (section,) = run.tests[0].outcomes
    assert section.verdict is not None
    assert section.verdict.reached
    assert section.verdict.values == (1000, 1001, 1002, 1003, 1004)
    jumping = parse_fio_json([*steady[:4], ("r5.json", result(3000))], name="x")
    verdict = jumping.tests[0].outcomes[0].verdict
    assert verdict is not None
    assert not verdict.reached


def test_why_nothing_was_judged_is_said_once(tmp_path: Path) -> None:
    """The reason why steady state was not judged appears once in a list of findings and once at the section."""
    (tmp_path / "a.json").write_text(result(100))
    words = [str(tmp_path / "a.json"), "--output", str(tmp_path)]
    assert CliRunner().invoke(cli, ["import", *words]).exit_code == 0
    path = tmp_path / "a.tkperf"
    ((section,),) = (test.sections for test in view_of(path).tests)
    assert section.summary == "1 round in the imported files; 1 of the 5 rounds a window needs"
    shown = CliRunner().invoke(cli, ["show", "--full", str(path)]).stdout
    # The output contains the reason twice: among the findings and at the section.
    assert " ".join(shown.split()).count("rounds a window needs") == 2
    assert render_markdown(build_view(tkperf.load(path))).count("rounds a window needs") == 2


def test_several_documents_and_text_around(tmp_path: Path) -> None:
    """A file with two results, fio's warnings and lines of a script is read as two rounds."""
    text = f"fio: warning {{x}}\n{result(10)}\n# next\n{result(20)}\nbye"
    run = parse_fio_json([("all.txt", text)], name="x")
    assert [(step.number, step.measurement.iops) for step in run.tests[0].steps] == [(1, 10), (2, 20)]


def test_json_as_a_shell_of_windows_redirects_it(tmp_path: Path) -> None:
    """JSON in UTF-16 with a byte order mark is read. A shell of Windows writes this encoding if output is
    redirected.
    """
    (tmp_path / "a.json").write_text(result(100), encoding="utf-16")
    words = [str(tmp_path / "a.json"), "--output", str(tmp_path)]
    assert CliRunner().invoke(cli, ["import", *words]).exit_code == 0


def with_sides(document: str, **sides: Any) -> str:
    """Return the document with other directions in its only job. The values of each direction are derived from the
    writes of the job.
    """
    changed = json.loads(document)
    (job,) = changed["jobs"]
    wrote = job.pop("write")
    job.pop("read")
    job.update({side: wrote | of_side for side, of_side in sides.items()})
    return json.dumps(changed)


MIX = {"read": {}, "write": {"io_bytes": 10_000 * 8192}}
SPLIT = {"write": {"io_bytes": 10_000 * 6144}}


@pytest.mark.parametrize(
    ("options", "sides", "says"),
    [
        ({"rw": "randrw", "bs": "4k,8k"}, MIX, "reads and writes are of different sizes (4k and 8k)"),
        ({"rw": "randrw", "bs": ",8k"}, MIX, "different sizes (4k and 8k)"),
        ({"bssplit": "4k/50:8k/50"}, SPLIT, "bssplit=4k/50:8k/50 is I/Os of several sizes"),
        ({"bsrange": "4k-8k"}, SPLIT, "bsrange=4k-8k is I/Os of several sizes"),
        ({}, SPLIT, "its I/Os are not of 4k as its options say"),
        ({"bs": "3000x"}, {"write": {"io_bytes": 10_000 * 3000}}, "of 3,000 bytes, no multiple of 512"),
        ({"rw": "randrw"}, {"mixed": {}}, "unified_rw_reporting counted its reads and writes"),
        ({"rw": "write"}, {"read": {}, "write": {}}, "fio shows several jobs as one"),
        ({"rw": "randread"}, {"read": {}, "write": {}}, "run fio without group_reporting"),
    ],
)
def test_a_job_of_no_one_cell_is_left_out(options: dict[str, Any], sides: dict[str, Any], says: str) -> None:
    """A job that has more than one mix or more than one block size is left out, and a warning names the job. The other
    jobs are imported.
    """
    odd = with_sides(result(1000, **options), **sides)
    with pytest.raises(UsageError) as raised:
        parse_fio_json([("odd.json", odd)], name="x")
    assert says in str(raised.value)
    assert "job w" in str(raised.value)
    run = parse_fio_json([("good.json", result(7)), ("odd.json", odd)], name="x")
    assert [step.measurement.iops for step in run.tests[0].steps] == [7]
    (warning,) = (each for each in run.warnings if each.code != "no-time-stamps")
    assert warning.code == "job-left-out"
    assert warning.text.startswith("job w is left out (first in odd.json): ")
    assert says in warning.text


def test_a_list_of_block_sizes_is_one_for_each_direction() -> None:
    """In a list of block sizes, the first size is for reads and the second size is for writes. A missing size is fio's
    default, 4 KiB.
    """
    for sizes, side, expected in (
        ("4k,8k", "write", 8192),
        ("8k,4k", "read", 8192),
        ("8k", "write", 8192),
        (",8k", "read", 4096),
        ("8k,,", "write", 4096),
    ):
        document = with_sides(result(10, bs=sizes), **{side: {"io_bytes": 100 * expected}})
        (step,) = parse_fio_json([("a", document)], name="x").tests[0].steps
        assert step.workload.block_size_bytes == expected


def test_the_nominal_mix_by_either_share() -> None:
    """The options rwmixread and rwmixwrite can describe the same mix. Without either option, the mix is fio's default
    of 50 %.
    """
    shares: list[tuple[dict[str, Any], int]] = [
        ({"rwmixwrite": "30"}, 70),
        ({"rwmixread": "30"}, 30),
        ({}, 50),
        ({"rwmixread": "30", "rwmixwrite": "40"}, 60),
    ]
    for share, reads in shares:
        document = with_sides(result(10, rw="randrw", **share), read={}, write={})
        (step,) = parse_fio_json([("a", document)], name="x").tests[0].steps
        assert step.workload.read_percent == reads


@pytest.mark.parametrize(("pattern", "reads"), [("randread", 100), ("write:8", 0)])
def test_unified_results_of_one_direction_are_that_direction(pattern: str, reads: int) -> None:
    """If a job only reads or only writes, its unified results count as results of that direction. Several reports of
    one fio count once.
    """
    reports = [
        with_sides(result(10, rw=pattern), mixed=mixed)
        for mixed in ({"runtime": 5000, "total_ios": 50, "io_bytes": 50 * 4096}, {})
    ]
    (step,) = parse_fio_json([("a", "\n".join(reports))], name="x").tests[0].steps
    assert (step.workload.read_percent, step.measurement.iops) == (reads, 10)


def of_groups(*jobs: tuple[str, int | None, dict[str, str]]) -> str:
    """Return a document of jobs. Each job is given with its name, group and further options."""
    document = json.loads(result(10))
    (job,) = document["jobs"]
    document["jobs"] = [
        job
        | {"jobname": name, "job options": job["job options"] | options}
        | ({} if group is None else {"groupid": group})
        for name, group, options in jobs
    ]
    return json.dumps(document)


def test_jobs_at_once_are_a_notice() -> None:
    """Jobs that ran at the same time lead to a notice, because it is not known how these jobs shared the drive."""
    document = of_groups(("a", 0, {}), ("b", 0, {"bs": "4096"}), ("c", 1, {}))
    (notice,) = parse_fio_json([("x.json", result(5)), ("y.json", document)], name="x").notices
    assert notice.startswith("SHARED LOAD: jobs of one fio ran at the same time (a, b; first in y.json)")


@pytest.mark.parametrize(
    "document",
    [
        of_groups(("a", 0, {}), ("b", 1, {})),
        of_groups(("a", None, {}), ("b", None, {"stonewall": "1"})),
        of_groups(("a", 0, {}), ("b", 0, {"wait_for": "a"})),
        of_groups(("a", 0, {"numjobs": "2"}), ("a", 0, {"numjobs": "2"})),
    ],
)
def test_jobs_that_wait_share_nothing(document: str) -> None:
    """Jobs that run one after the other do not lead to a notice about a shared load. Such jobs are in separate groups,
    or use stonewall or wait_for. Clones of one job do not lead to this notice either.
    """
    assert parse_fio_json([("x.json", document)], name="x").notices == ()


@pytest.mark.parametrize(
    ("stamps", "day"),
    [
        ([{"timestamp": 1795214790}, {"timestamp_ms": 1795128390356}], "2026-11-19"),
        ([{}, {"timestamp": 1795214790, "timestamp_ms": 1795214790356}], "2026-11-20"),
        ([{"timestamp": 1e17}], None),
        ([{"timestamp": "yesterday"}], None),
        ([{"timestamp": 0}], None),
    ],
)
def test_the_day_is_that_of_the_first_result(tmp_path: Path, stamps: list[dict[str, Any]], day: str | None) -> None:
    """After an import, only the day of the first result is known. fio records when it wrote a result, but does not
    record when the run began.
    """
    files = []
    for number, stamp in enumerate(stamps):
        files.append(tmp_path / f"{number}.json")
        files[-1].write_text(json.dumps(json.loads(result(100)) | stamp))
    words = [*map(str, files), "--output", str(tmp_path)]
    assert CliRunner().invoke(cli, ["import", *words]).exit_code == 0
    run = tkperf.load(tmp_path / "0.tkperf")
    assert (run.info.started_utc, run.ended_utc) == (day, None)


def test_options_that_are_not_there_are_a_warning() -> None:
    """Missing job options, as in output of fio 2.1, lead to a warning. The block size is then computed from the
    result.
    """
    run = parse_fio_json([("old.json", result(10, old=True))], name="x")
    (warning,) = run.warnings
    assert warning.code == "job-options-missing"
    assert run.tests[0].steps[0].workload.block_size_bytes == 4096


def test_clones_of_a_job_count_together() -> None:
    """The rates of a job's clones are added up. fio reports clones with numjobs and without group_reporting."""
    document = json.loads(result(100, numjobs="2"))
    document["jobs"] = document["jobs"] * 2
    run = parse_fio_json([("a", json.dumps(document))], name="x")
    (step,) = run.tests[0].steps
    assert step.measurement.iops == 200
    assert step.workload.jobs == 2


def test_jobs_one_after_the_other_are_rounds() -> None:
    """Two jobs with the same name are rounds if the second job waits behind a stonewall, because each job used the
    drive alone.
    """
    run = parse_fio_json([("a", of_groups(("a", 0, {}), ("a", 1, {})))], name="x")
    assert [step.measurement.iops for step in run.tests[0].steps] == [10, 10]


def test_two_jobs_of_one_name_at_once_are_two_threads() -> None:
    run = parse_fio_json([("a", of_groups(("a", 0, {}), ("a", 0, {})))], name="x")
    (step,) = run.tests[0].steps
    assert (step.workload.jobs, step.measurement.iops) == (2, 20)


def test_jobs_at_once_with_one_workload_are_no_rounds() -> None:
    """Five jobs that ran at the same time are a combination of loads and not five rounds, because the jobs shared the
    drive. If a job used several files, the jobs are left out.
    """
    together: list[tuple[str, int | None, dict[str, str]]] = [(name, 0, {}) for name in "abcde"]
    (step,) = parse_fio_json([("x.json", of_groups(*together))], name="x").tests[0].steps
    assert (step.measurement.iops, len(step.measurement.streams)) == (50, 5)
    document = json.loads(of_groups(*together, ("f", 1, {})))
    for job in document["jobs"][:5]:
        job["job options"]["filename"] = "/dev/sda:/dev/sdb"
    run = parse_fio_json([("x.json", json.dumps(document))], name="x")
    assert [step.measurement.iops for step in run.tests[0].steps] == [10]
    (warning,) = run.warnings
    assert warning.text.startswith("5 results of jobs a, b, c, d, e are left out (first in x.json)")
    assert "ran at the same time as other jobs" in warning.text


def status(at_s: float, *jobs: tuple[str, int, int], options: bool = True) -> str:
    """Return a status report. Each job is given with its name, its run time in ms and its I/Os."""
    return json.dumps(
        {
            "fio version": "fio-3.36",
            **({"timestamp_ms": round(1.7e12 + at_s * 1000)} if options else {}),
            "jobs": [
                {
                    "jobname": name,
                    "groupid": group,
                    "job options": {"rw": "write" if "seq" in name else "randwrite", "bs": "4k"},
                    "write": {
                        "total_ios": ios,
                        "io_bytes": ios * 4096,
                        "runtime": runtime_ms,
                        "lat_ns": {"min": 10, "max": 900, "mean": 50},
                    },
                }
                for group, (name, runtime_ms, ios) in enumerate(jobs)
            ],
        }
    )


def rounds_of(*documents: str) -> list[tuple[str, int, int]]:
    """Return the section, the number and the I/Os of every step. One file contains all documents."""
    run = parse_fio_json([("x.json", "\n".join(documents))], name="x")
    return [(step.section[:7], step.number, step.measurement.ios) for step in run.tests[0].steps]


@pytest.mark.parametrize("timed", [True, False])
def test_jobs_that_wait_for_each_other_count_once(timed: bool) -> None:
    """Jobs that run one after the other because of stonewall count once, although status reports repeat their results
    every 5 s.
    """
    reports = [
        status(5, ("rnd", 5000, 500), ("seq", 0, 0), options=timed),
        status(10, ("rnd", 10_000, 1000), ("seq", 0, 0), options=timed),
        status(15, ("rnd", 10_000, 1000), ("seq", 4900, 70), options=timed),
        status(20, ("rnd", 10_000, 1000), ("seq", 9900, 150), options=timed),
        status(20.2, ("rnd", 10_000, 1000), ("seq", 10_000, 151), options=timed),
    ]
    assert rounds_of(*reports) == [("fio RND", 1, 1000), ("fio SEQ", 1, 151)]


def test_a_report_after_a_long_time_is_of_the_same_fio() -> None:
    """A report that arrives after a long time still belongs to the same fio process. A job that began and ended between
    two reports does not become a second round of the first job.
    """
    reports = [
        status(20, ("rnd", 10_000, 1000), ("seq", 9900, 150), ("rnd2", 0, 0)),
        status(80, ("rnd", 10_000, 1000), ("seq", 30_000, 500), ("rnd2", 39_800, 4000)),
    ]
    assert sorted(rounds_of(*reports)) == [("fio RND", 1, 1000), ("fio RND", 1, 4000), ("fio SEQ", 1, 500)]


@pytest.mark.parametrize("runtime_ms", [60_000, 60_001, 60_900])
def test_a_second_run_is_a_round_though_it_counted_more(runtime_ms: int) -> None:
    """If the same jobs run a second time in one file, they are a second round, even if all counters are slightly
    higher.
    """
    first = status(60, ("rnd", 60_000, 1000))
    second = status(121, ("rnd", runtime_ms, 1001))
    assert rounds_of(first, second) == [("fio RND", 1, 1000), ("fio RND", 2, 1001)]


def test_short_runs_are_rounds() -> None:
    """Five runs of fio of one second each are five rounds."""
    documents = [status(1.2 * each, ("rnd", 1000, 100 + each)) for each in range(5)]
    assert [number for _, number, _ in rounds_of(*documents)] == [1, 2, 3, 4, 5]


def test_a_cell_measured_less_often_is_shown(tmp_path: Path) -> None:
    """A cell that was measured less often than the other cells has its own results. For example, with ten rounds of
    writes and one round of reads, the reads are also shown.
    """
    for number in range(10):
        (tmp_path / f"w{number}.json").write_text(result(1000 + number))
    read = json.loads(result(2000, rw="randread"))
    job = read["jobs"][0]
    job["read"], job["write"] = job["write"], job["read"]
    (tmp_path / "r.json").write_text(json.dumps(read))
    files = [str(tmp_path / name) for name in ("r.json", *(f"w{each}.json" for each in range(10)))]
    ran = CliRunner().invoke(cli, ["import", *files, "--name", "x", "--output", str(tmp_path)])
    assert ran.exit_code == 0, ran.exception
    sections = tkperf.load(tmp_path / "x.tkperf").tests[0].sections
    writes, reads = sections
    assert (writes.name, writes.window) == ("fio RND TC1/QD8", (5, 6, 7, 8, 9))
    assert [each.number for each in writes.rounds] == list(range(10))
    assert (reads.name, reads.window) == ("fio RND TC1/QD8, round 1", (1,))
    cells = [(cell.value(IOPS), cell.rounds) for section in sections for cell in section.cells]
    assert cells == [(1007, 5), (2000, 1)]
    path = str(tmp_path / "x.tkperf")
    assert CliRunner().invoke(cli, ["report", path, "--csv", str(tmp_path)]).exit_code == 0
    assert "2000.0" in (tmp_path / "cells.csv").read_text(encoding="utf-8")


def test_the_cell_that_fills_the_window_is_tracked() -> None:
    """The verdict on steady state uses the cell that has enough rounds for the window. If a series contains six rounds
    of reads and a single round of writes, the writes are shown, but are not used for the verdict.
    """
    reads = []
    for number in range(6):
        document = json.loads(result(100 + number, rw="randread"))
        job = document["jobs"][0]
        job["read"], job["write"] = job["write"], job["read"]
        reads.append(("r.json", json.dumps(document)))
    run = parse_fio_json([("w.json", result(7)), *reads], name="x")
    section, of_the_write = run.tests[0].outcomes
    assert of_the_write.window == (1,)
    assert section.window == (2, 3, 4, 5, 6)
    assert section.verdict is not None
    assert section.verdict.reached
    assert "100/0" in section.verdict.tracking


def test_charts_are_called_by_their_workload(tmp_path: Path) -> None:
    """The title of a chart names the workload of the chart, so the title of a chart of sequential reads does not
    mention random writes. Each mix has a convergence chart.
    """
    files = []
    for number in range(2):
        document = json.loads(result(100 + number, rw="read"))
        job = document["jobs"][0]
        job["read"], job["write"] = job["write"], job["read"]
        files.append(tmp_path / f"{number}.json")
        files[-1].write_text(json.dumps(document))
    words = [str(file) for file in files]
    assert CliRunner().invoke(cli, ["import", *words, "--output", str(tmp_path)]).exit_code == 0
    (test,) = view_of(tmp_path / "0.tkperf").tests
    views = [view for chart in test.sections[0].charts for view in chart.views]
    titles = [view.chart.title for view in views]
    assert any("Steady state convergence: SEQ reads" in title for title in titles)
    assert not [title for title in titles if "RND" in title or "writes" in title]


def test_only_what_is_known_is_told(tmp_path: Path) -> None:
    """The report of an import contains only facts that fio's results contain, such as threads and queue depth. Facts
    that exist only for tkperf's own tests, such as the purge method, are listed as not known.
    """
    (tmp_path / "a.json").write_text(result(100))
    words = [str(tmp_path / "a.json"), "--output", str(tmp_path)]
    assert CliRunner().invoke(cli, ["import", *words]).exit_code == 0
    path = tmp_path / "a.tkperf"
    info = tkperf.load(path).info
    assert info.profile == {"title": "fio results", "demand": {"jobs": 1, "io_depth": 8}}
    assert info.started_utc is None
    view = view_of(path)
    facts = dict(pair for _, block in view.disclosure for pair in block)
    assert (facts["Profile"], facts["Specification"]) == ("fio", "fio results")
    assert facts["Test software"] == f"fio 3.36, imported by tkperf {tkperf.__version__}"
    assert facts["Load generator"] == "fio-3.36"
    unknown = dict(view.disclosure)["Not known"][0][1].split(", ")
    assert {"Purge method", "Data pattern", "Precondition 1"} <= set(unknown)
    assert view.tests[0].procedure == ""
    (cell,) = tkperf.load(path).tests[0].sections[0].cells
    assert (cell.value(IOS), cell.host_limited) == (1000, None)
    exported = CliRunner().invoke(cli, ["report", str(path), "--xml", str(tmp_path / "a.xml")])
    assert isinstance(exported.exception, UsageError)
    shown = CliRunner().invoke(cli, ["show", "--full", str(path)])
    assert "Test run date" in " ".join(shown.stdout.split("Not known")[-1].split())


def test_demand_that_differs_is_told_by_the_sections() -> None:
    """If the demands differ, the run has no common thread count and queue depth. The names of the sections contain the
    demands.
    """
    files = [("a", result(100)), ("b", result(100, iodepth="4"))]
    assert "demand" not in parse_fio_json(files, name="x").profile


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"8"', "Infinity", "iodepth=inf is not a number from 1 to 65,536"),
        ('"8"', "1" + "0" * 30, "iodepth"),
        ('"8"', "null", "iodepth"),
        ('"4k"', '"' + "9" * 400 + '"', "job w"),
        ('"4k"', '"2097152g"', "more than any block"),
        ('"runtime": 10000', '"runtime": Infinity', "write/runtime: not a number from 0 to 1e+12 (inf)"),
        ('"runtime": 10000', '"runtime": -1', "write/runtime"),
        ('"total_ios": 1000', '"total_ios": NaN', "write/total_ios: not a number from 0 to 1e+14 (nan)"),
        ('"total_ios": 1000', '"total_ios": 1e15', "write/total_ios"),
        ('"total_ios": 1000', '"total_ios": "many"', "write/total_ios"),
        ('"io_bytes": 4096000', '"io_bytes": 1e30', "write/io_bytes"),
        ('"mean": 50500', '"mean": 1e15', "longer than a run file can hold"),
        ('"mean": 50500', '"mean": 1e300', "write/lat_ns/mean"),
        ('"max": 900000', '"max": Infinity', "write/lat_ns/max"),
        ('"mean": 50500', '"mean": 50500, "bins": {"1": Infinity}', "write/lat_ns/bins"),
        ('"mean": 50500', '"mean": 50500, "bins": {"1": 1e15}', "write/lat_ns/bins"),
        (
            '"mean": 50500',
            f'"mean": 50500, "bins": {json.dumps(dict.fromkeys(map(str, range(20_000)), 0))}',
            "write/lat_ns/bins: 20,000 latency bins, fio has 1,856 at most",
        ),
    ],
)
def test_numbers_that_nothing_can_be(tmp_path: Path, old: str, new: str, says: str) -> None:
    """Infinite, extremely large or invalid numbers lead to an error that names the file, the job and the key. No run
    file remains.
    """
    file, text = tmp_path / "a.json", result(100)
    assert old in text
    file.write_text(
        text.replace(old, new)
        .replace('"total_ios": 1000,', '"total_ios": 100000000,')
        .replace('"iops": 100}', '"iops": 10000000}')
        .replace('"iops": 100,', '"iops": 10000000,')
        .replace('"io_bytes": 4096000,', '"io_bytes": 409600000000,')
        if "hold" in says
        else text.replace(old, new)
    )
    ran = CliRunner().invoke(cli, ["import", str(file), "--output", str(tmp_path)])
    assert isinstance(ran.exception, UsageError)
    assert str(file) in str(ran.exception)
    assert says in str(ran.exception)
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("one", [r"\qq", r"\ud800", r"\na"])
def test_text_that_has_to_be_mended_takes_little_memory(one: str) -> None:
    """If a backslash makes the JSON of a file invalid, tkperf searches the file for documents. The search never needs
    more memory than 13 times the size of the file.
    """
    text = f'{{"x":"{one * 100_000}{chr(92)}q{one}"}}'
    tracemalloc.start()
    try:
        assert not list(Documents(text)._search())
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 13 * len(text)


odd_values: st.SearchStrategy[Any] = st.sampled_from(
    [
        math.inf,
        -math.inf,
        math.nan,
        1e308,
        1e14,
        1e15,
        10**30,
        -1,
        0,
        1,
        2.5,
        65536,
        None,
        True,
        "x",
        "4k",
        [],
        {},
        "9" * 400,
        "\ud800\0",
    ]
)


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "total_ios",
                "io_bytes",
                "runtime",
                "min",
                "max",
                "mean",
                "bin",
                "bs",
                "rw",
                "numjobs",
                "iodepth",
                "jobname",
                "fio version",
                "timestamp_ms",
            ]
        ),
        odd_values,
        max_size=2,
    )
)
def test_whatever_is_taken_is_a_run_file_that_reports(odd: dict[str, Any]) -> None:
    """A file with unusual values is either refused or becomes a run file. The results of such a run file can be
    exported and drawn.
    """
    document = json.loads(result(100))
    job = document["jobs"][0]
    job["write"]["lat_ns"]["bins"] = {"50000": 1000}
    homes = {"jobname": job, "fio version": document, "timestamp_ms": document}
    homes |= dict.fromkeys(("total_ios", "io_bytes", "runtime"), job["write"])
    homes |= dict.fromkeys(("min", "max", "mean"), job["write"]["lat_ns"])
    for name, value in odd.items():
        if name == "bin":
            job["write"]["lat_ns"]["bins"]["50000"] = value
        else:
            homes.get(name, job["job options"])[name] = value
    with TemporaryDirectory() as folder:
        files = [Path(folder) / f"{number}.json" for number in range(3)]
        for file in files:
            file.write_text(json.dumps(document))
        words = [*(str(file) for file in files), "--name", "x", "--output", folder]
        ran = CliRunner().invoke(cli, ["import", *words])
        if ran.exit_code:
            assert isinstance(ran.exception, UsageError)
            assert sorted(Path(folder).iterdir()) == files
            return
        path = Path(folder) / "x.tkperf"
        run = tkperf.load(path)
        render_json(run).encode()
        render_markdown(build_view(run)).encode()
        render_view(view_of(path)).encode()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "nothing could be imported: a.json is left out: it is empty"),
        (" \n", "a.json is left out: it is empty"),
        ("{" * 300_000, "a.json is left out: more than 1,000 braces"),
        ("{" * 2_000_000, "a.json is left out: .* memory"),
        ("{}", "holds no JSON result of fio"),
        ('{"jobs": [1]}', "is not an object"),
        ('{"jobs": []}', "no job of it moved data"),
        (result(10).replace('"error": 0', '"error": 5'), "failed with an error of fio's: 5"),
        (result(10, bs="x"), "bs=x is not a size"),
        (result(10, iodepth="many"), "job w"),
    ],
)
def test_files_that_cannot_be_taken(text: str, says: str) -> None:
    """A file that cannot be imported leads to a clear error with the name of the file."""
    with pytest.raises(UsageError, match=says):
        parse_fio_json([("a.json", text)], name="x")


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "jobs",
                    "read",
                    "write",
                    "total_ios",
                    "runtime",
                    "lat_ns",
                    "mean",
                    "bins",
                    "io_bytes",
                    "job options",
                    "bs",
                    "rw",
                    "timestamp_ms",
                ]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=30,
)


@given(st.lists(json_values, max_size=3))
def test_any_json_is_a_run_or_our_error(jobs: list[object]) -> None:
    """Any JSON document leads either to a run with steps or to a UsageError."""
    try:
        run = parse_fio_json([("x", json.dumps({"jobs": jobs}))], name="x")
    except UsageError:
        return
    assert run.tests[0].steps


def test_the_command(tmp_path: Path) -> None:
    """``tkperf import`` creates one run with the given name from many files. Reports and comparisons accept
    this run.
    """
    for number in range(5):
        (tmp_path / f"r{number}.json").write_text(result(1000 + number))
    files = [str(tmp_path / f"r{number}.json") for number in range(5)]
    ran = CliRunner().invoke(cli, ["import", *files, "--name", "mine", "--output", str(tmp_path)])
    assert ran.exit_code == 0, ran.exception
    path = tmp_path / "mine.tkperf"
    run = tkperf.load(path)
    assert run.tests[0].sections[0].name == "fio RND TC1/QD8"
    assert run.tests[0].sections[0].cells[0].value(IOPS) == 1002
    assert any("IMPORTED from 5 files of fio" in notice for notice in run.info.notices)
    other = vary_run_file(path, tmp_path / "other.tkperf", device={}, uuid="another")
    for command in (["show", str(path)], ["report", str(path)], ["compare", str(path), str(other)]):
        done = CliRunner().invoke(cli, command)
        assert done.exit_code == 0, done.exception
