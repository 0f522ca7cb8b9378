"""tkperf determines which results of fio are rounds of one workload, and in which order. Warnings report the results
that are left out.
"""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

import tkperf
from tests.interop.fio_files import VERSIONS, document, job, parse_fio_json, written
from tkperf.analysis.comparing.compared_rows import Span
from tkperf.analysis.comparing.comparison import compare
from tkperf.cli.main import cli
from tkperf.interop.fio_json import MOST_SECTIONS
from tkperf.interop.imported import ImportedRun
from tkperf.model.errors import InputFileError, RunFileError, UsageError
from tkperf.model.figures import FigureKind
from tkperf.model.quantity import IOPS
from tkperf.runfile import limits
from tkperf.runfile.writer import connect_to_write

Files = Sequence[tuple[str, str]]


def run_of(*files: tuple[str, str]) -> ImportedRun:
    return parse_fio_json(files, name="x")


def rounds_of(run: ImportedRun) -> dict[str, list[float]]:
    """Return the IOPS of the rounds of each section, in the order of the rounds."""
    found: dict[str, list[float]] = {}
    for step in run.tests[0].steps:
        found.setdefault(step.section, []).append(round(step.measurement.iops, 3))
    return found


def said(run: ImportedRun) -> dict[str, str]:
    return {warning.code: warning.text for warning in run.warnings}


def numbered(count: int, **more: Any) -> list[tuple[str, str]]:
    """Return files r1, r2 ... with ascending rates, written one after the other."""
    return [(f"r{each}.json", written(1000 + each, 60.0 * each, **more)) for each in range(1, count + 1)]


def import_files(tmp_path: Path, *files: Path) -> Result:
    words = [*map(str, files), "--name", "x", "--output", str(tmp_path / "out")]
    return CliRunner().invoke(cli, ["import", *words])


# Order


def test_rounds_are_in_the_order_of_their_times() -> None:
    """Rounds are in the order of their times. The shell's order of file names (r1, r10, r11, r2) does not matter. No
    warning is printed.
    """
    in_shells_order = sorted(numbered(12))
    assert in_shells_order[1][0] == "r10.json"
    run = run_of(*in_shells_order)
    assert rounds_of(run) == {"fio RND TC1/QD1": [1000 + each for each in range(1, 13)]}
    assert run.warnings == ()
    (section,) = run.tests[0].outcomes
    assert section.verdict is not None
    assert section.verdict.values == (1008, 1009, 1010, 1011, 1012)


def test_names_that_contradict_the_times_are_told() -> None:
    """If the times of the results contradict the numbers in the names of the files, the numbers decide the order, and a
    warning reports the contradiction.
    """
    files = [("r1.json", written(2, 120)), ("r2.json", written(1, 60)), ("r3.json", written(3, 180))]
    run = run_of(*files)
    assert rounds_of(run) == {"fio RND TC1/QD1": [2, 1, 3]}
    assert "r2.json: the numbers in the names are not in the order of the times" in said(run)["order-conflict"]


@pytest.mark.parametrize("stamps", ["timestamp_ms", "timestamp", "time"])
def test_any_time_that_fio_wrote_orders(stamps: str) -> None:
    """Rounds are ordered by their times in ms. If such times are missing, times in seconds determine the order. If
    times in seconds are also missing, the date in words determines the order.

    The process ids in the file names do not matter.
    """
    words = ["Wed Nov 15 09:00:00 2023", "Wed Nov 15 10:30:00 2023", "Fri Dec  1 00:00:00 2023"]
    files = []
    for number in (2, 0, 1):
        of_file = json.loads(written(10 + number, 3600.0 * number))
        only = {"timestamp_ms": 0, "timestamp": 0, "time": words[number]}
        only |= {name: of_file[name] for name in ("timestamp_ms", "timestamp") if name == stamps}
        files.append((f"fio.{(31_000, 700, 9_000)[number]}.json", json.dumps(of_file | only)))
    assert rounds_of(run_of(*files)) == {"fio RND TC1/QD1": [10, 11, 12]}


def test_without_times_names_order_and_numbers_count() -> None:
    """If results contain no times, as with fio 2.1, they are ordered by the numbers in their file names (r2 before
    r10). A warning reports this order.
    """
    files = [(f"r{each}.json", written(100 + each, version="2.1.11")) for each in range(1, 12)]
    run = run_of(*sorted(files))
    assert rounds_of(run) == {"fio RND TC1/QD1": [100 + each for each in range(1, 12)]}
    assert "rounds are in the order of the files' names" in said(run)["no-time-stamps"]


# ---- Which results are rounds of one series


def section_names(run: ImportedRun) -> list[str]:
    return list(rounds_of(run))


@pytest.mark.parametrize(
    ("other", "options", "tells"),
    [
        ({"name": "mixed"}, {}, "job mixed"),
        ({}, {"runtime": "10"}, "runtime 10 s"),
        ({}, {"filename": "/dev/sdb"}, "filename=/dev/sdb"),
        ({"name": "precondition"}, {}, "precondition"),
        ({"name": "pre-fill"}, {}, "fill"),
        ({"name": "warmup"}, {}, "warm-up"),
        ({"name": "purge"}, {}, "purge"),
        ({}, {"rate_iops": "900"}, "rate_iops=900"),
        ({}, {"random_distribution": "zipf:1.2"}, "random_distribution=zipf:1.2"),
    ],
)
def test_what_differs_is_no_round(other: dict[str, Any], options: dict[str, str], tells: str) -> None:
    """If a result differs from the other results in job, runtime, device, purpose or load, the result is not a round of
    their series. The result becomes a separate section with a name that contains the difference.
    """
    odd = ("zz.json", written(7, 1e6, options=options, **other))
    run = run_of(*numbered(5), odd)
    rounds = rounds_of(run)
    assert [1001, 1002, 1003, 1004, 1005] in rounds.values()
    assert [7] in rounds.values()
    assert any(tells in name for name in rounds)


def test_a_file_named_by_its_purpose_is_no_round() -> None:
    """A file named precondition is not a round, although its job has the same name as the other jobs. A file named
    preconditioned is a round.
    """
    run = run_of(("precondition_1.json", written(5, 1)), ("preconditioned_1.json", written(6, 2)))
    assert rounds_of(run) == {"fio RND TC1/QD1": [6], "fio RND TC1/QD1, precondition": [5]}


def test_files_of_several_folders_are_several_series() -> None:
    """Files of two folders with the same job are two series, because each folder may belong to another drive. Folders
    that differ only in a number are rounds.
    """
    of_drives = [
        (f"{drive}/r{each}.json", written(each * 10 + at, 60 * each + at))
        for each in (1, 2)
        for at, drive in enumerate(("intel", "samsung"))
    ]
    assert rounds_of(run_of(*of_drives)) == {
        "fio RND TC1/QD1, in intel": [10, 20],
        "fio RND TC1/QD1, in samsung": [11, 21],
    }
    counted = [(f"pass{each}/result.json", written(each, 60 * each)) for each in (1, 2, 10)]
    assert rounds_of(run_of(*counted)) == {"fio RND TC1/QD1": [1, 2, 10]}


def test_jobs_of_different_names_are_no_rounds() -> None:
    """Jobs whose names differ in a number are not rounds of one series. Such a number may count rounds, drives or other
    objects.
    """
    files = [(f"r{each}.json", written(each, 60 * each, name=f"x{each}-4k")) for each in (1, 2)]
    assert rounds_of(run_of(*files)) == {"fio RND TC1/QD1, job x1-4k": [1], "fio RND TC1/QD1, job x2-4k": [2]}


def test_rounds_that_ran_at_the_same_time_are_told() -> None:
    """Results of two fio processes that ran at the same time are not rounds, because the files do not show whether the
    processes used one drive or two drives.

    Results of consecutive processes remain rounds of one series.
    """
    run = run_of(("r1.json", written(10, 60)), ("r2.json", written(11, 61)))
    assert "measured at the same time" in said(run)["rounds-overlap"]
    assert rounds_of(run) == {
        "fio RND TC1/QD1, at once with another file, file r1.json": [10],
        "fio RND TC1/QD1, at once with another file, file r2.json": [11],
    }
    plan = run.tests[0].plan
    assert plan is not None
    assert all("shared-load" in section.cautions for section in plan.sections)
    assert not any(outcome.verdict and outcome.verdict.judged for outcome in run.tests[0].outcomes)


def test_five_drives_at_once_are_never_five_rounds() -> None:
    """If five equal drives ran at the same time, their results are not five rounds of one steady drive. Only the
    results before that time are rounds.
    """
    before = [(f"r{each}.json", written(100, 60 * each)) for each in range(1, 6)]
    at_once = [(f"r{each}.json", written(100 + each, 1000)) for each in range(6, 11)]
    found = rounds_of(run_of(*before, *at_once))
    assert found.pop("fio RND TC1/QD1") == [100] * 5
    assert sorted(found.values()) == [[106], [107], [108], [109], [110]]


@pytest.mark.parametrize("how", ["same path", "hard link", "copy", "other line ends"])
def test_a_file_given_twice_counts_once(tmp_path: Path, how: str) -> None:
    """A copy of a file counts once, even under another name, because tkperf compares the content. A warning names the
    file that counts.
    """
    for each in (1, 2):
        (tmp_path / f"r{each}.json").write_text(written(each, 60 * each))
    again = tmp_path / "r3.json"
    first = tmp_path / "r1.json"
    if how == "same path":
        again = first
    elif how == "hard link":
        os.link(first, again)
    elif how == "copy":
        again.write_bytes(first.read_bytes())
    else:
        again.write_bytes(first.read_bytes().replace(b"\n", b"\r\n"))
    ran = import_files(tmp_path, again, first, tmp_path / "r2.json")
    assert ran.exit_code == 0, ran.exception
    assert "counts once" in ran.stderr
    (section,) = tkperf.load(tmp_path / "out/x.tkperf").tests[0].sections
    assert [one.cells[0].value(IOPS) for one in section.rounds] == [1, 2]


# Verdicts


def test_each_cell_is_judged_by_its_own_rounds() -> None:
    """Each cell is judged by its own rounds. If only the writes are steady, the reads do not count as steady."""
    reads = [("read", each, 400 if each % 2 else 900) for each in range(1, 6)]
    files = [
        (
            f"{kind}{each}.json",
            json.dumps(document(job(reads=rate * 10, options={"rw": "randread", "bs": "4k"}), at_s=each * 60)),
        )
        for kind, each, rate in reads
    ]
    run = run_of(*numbered(5), *files)
    (section,) = run.tests[0].outcomes
    assert section.verdict is not None
    assert section.verdict.reached
    assert "by their own rounds 0 of 1 other cells are steady, not 100/0 4k" in section.ended_because
    finals = {each.verdict.tracking: each.verdict.reached for each in run.tests[0].verdicts}
    assert finals == {"0/100 4k IOPS": True, "100/0 4k IOPS": False}


def test_noise_is_that_of_the_cell(tmp_path: Path) -> None:
    """If a cell was not steady, a comparison does not describe a difference in this cell as noise."""
    for each in range(1, 6):
        (tmp_path / f"w{each}.json").write_text(written(1000 + each, 60 * each))
        rate = 400 if each % 2 else 900
        read = job(reads=rate * 10, options={"rw": "randread", "bs": "4k"})
        (tmp_path / f"r{each}.json").write_text(json.dumps(document(read, at_s=60 * each + 30)))
    assert import_files(tmp_path, *sorted(tmp_path.glob("*.json"))).exit_code == 0
    run = tkperf.load(tmp_path / "out/x.tkperf")
    spans = {
        row.workload.read_percent: row.entries[1].span
        for row in compare([run, run]).rows
        if row.quantity.label == "IOPS"
    }
    assert spans == {0: Span.WINDOW, 100: Span.UNSTEADY}


# Clones


def test_clones_of_different_times_are_told() -> None:
    """Clones with different runtimes lead to one result. Its I/Os are divided by the longest runtime, as fio does for a
    group. A warning contains the runtimes.
    """
    known = {"rw": "randwrite", "bs": "4k", "numjobs": "2"}
    clones = [
        job(writes=60_000, runtime_ms=60_000, options=known),
        job(writes=30_000, runtime_ms=30_000, options=known),
    ]
    run = run_of(("a.json", json.dumps(document(*clones))))
    assert rounds_of(run) == {"fio RND TC2/QD1": [1500]}
    assert "2 clones, from 30.0 s to 60.0 s" in said(run)["clones-of-different-times"]


def test_a_clone_that_did_nothing_spoils_the_load() -> None:
    """If one of a job's clones did no I/O, the job is left out, because fewer threads ran than the options request."""
    known = {"rw": "randwrite", "bs": "4k", "numjobs": "2"}
    clones = [job(writes=60_000, options=known), job(writes=0, options=known)]
    files = [("a.json", json.dumps(document(*clones))), ("b.json", written(5))]
    run = run_of(*files)
    assert rounds_of(run) == {"fio RND TC1/QD1": [5]}
    assert "one of its clones did nothing: 1 of 2" in said(run)["job-left-out"]


def test_threads_of_a_group_are_counted_where_fio_does_not_tell_them() -> None:
    """If fio lists no numjobs for a result with group_reporting, tkperf computes the number of threads in the group
    from their total runtime.
    """
    of_group = job(writes=10_000, options={"rw": "randwrite", "bs": "4k"}, clones_ran=16)
    run = run_of(("a.json", json.dumps(document(of_group))))
    assert section_names(run) == ["fio RND TC16/QD1"]
    assert "(16)" in said(run)["threads-counted"]


# ---- Results that were stopped, failed or truncated


def test_a_job_that_ended_early_stands_apart() -> None:
    """A job that ended early is not a round in the series of the complete jobs. For example, a job that ran for 5 s of
    a planned runtime of 60 s becomes a separate section.
    """
    known = {"runtime": "60"}
    files = [(f"r{each}.json", written(each, 90 * each, runtime_ms=60_000, options=known)) for each in range(1, 6)]
    short = ("r6.json", written(999, 900, runtime_ms=5_000, options=known))
    run = run_of(*files, short)
    assert rounds_of(run) == {"fio RND TC1/QD1": [1, 2, 3, 4, 5], "fio RND TC1/QD1, ended early": [999]}
    assert "(5.0 s of 60 s)" in said(run)["ended-early"]


def test_a_job_that_did_its_amount_is_whole() -> None:
    """If a job reached its size before its runtime ended, the job is complete."""
    text = written(1000, runtime_ms=5_000, options={"runtime": "60", "size": str(5000 * 4096)})
    assert section_names(run_of(("a.json", text))) == ["fio RND TC1/QD1"]


CUT_SHORT: dict[str, dict[str, str]] = {
    "time_based": {"size": str(5000 * 4096), "time_based": ""},
    "time_based, number_ios": {"number_ios": "5000", "time_based": "1"},
    "more than its amount": {"size": str(1000 * 4096)},
    "less than its loops": {"size": str(5000 * 4096), "loops": "3"},
}


@pytest.mark.parametrize("how", CUT_SHORT)
def test_an_amount_ends_no_job_that_is_time_based(how: str) -> None:
    """A job with time_based that ran for 5 s of 60 s ended early. The amount of data does not matter. fio lists
    time_based only if the option has a value.
    """
    text = written(1000, runtime_ms=5_000, options={"runtime": "60"} | CUT_SHORT[how])
    assert section_names(run_of(("a.json", text))) == ["fio RND TC1/QD1, ended early"]


@pytest.mark.parametrize("amount", [{"size": str(2500 * 4096), "loops": "2"}, {"number_ios": "5000"}])
def test_an_amount_that_was_done_ends_a_job(amount: dict[str, str]) -> None:
    text = written(1000, runtime_ms=5_000, options={"runtime": "60"} | amount)
    assert section_names(run_of(("a.json", text))) == ["fio RND TC1/QD1"]


@pytest.mark.parametrize("name", ["n" * 127, "nightly," + "x" * 119, "\u00e9" * 63 + "n"])
def test_a_name_that_fio_cut_is_that_of_its_job(name: str) -> None:
    """If a jobname of 127 bytes is the beginning of the name in the options, both names belong to the same job. fio
    truncates jobname to 127 bytes, but lists the option completely (FIO_JOBNAME_SIZE in stat.h).
    """
    known = {"rw": "randwrite", "bs": "4k", "name": name + "more", "group_reporting": ""}
    cut = job(name=name, writes=50_000, options=known)
    cut["job options"]["name"] = name + "more"
    assert section_names(run_of(("a.json", json.dumps(document(cut))))) == ["fio RND TC1/QD1"]


def test_a_short_name_that_differs_is_of_another_job() -> None:
    """A result whose short jobname differs from the name in its options is refused, because fio then shows several jobs
    as one.
    """
    merged = job(name="a", writes=50_000, options={"rw": "randwrite", "bs": "4k"})
    merged["job options"]["name"] = "ab"
    with pytest.raises(UsageError, match="several jobs as one"):
        run_of(("a.json", json.dumps(document(merged))))


def test_a_result_that_fio_was_stopped_in_is_left_out() -> None:
    """A result during which fio was stopped by a signal is left out. The other results of the text are imported."""
    text = f"{written(5, 1)}\n\nfio: terminating on signal 2\n{written(6, 90)}\n{written(7, 180)}"
    run = run_of(("all.txt", text))
    assert rounds_of(run) == {"fio RND TC1/QD1": [5, 7]}
    assert "fio was stopped by a signal" in said(run)["job-left-out"]


@pytest.mark.parametrize("cut", [0.3, 0.6, 0.95])
def test_a_cut_off_file_is_called_so(cut: float) -> None:
    whole = written(7)
    part = whole[: round(len(whole) * cut)]
    run = run_of(("r1.json", written(5, 60)), ("r2.json", part), ("r3.json", written(6, 120) + part))
    assert [step.measurement.iops for step in run.tests[0].steps] == [5, 6]
    assert [step.number for step in run.tests[0].steps] == [1, 3]
    assert said(run)["file-left-out"] == "r2.json is left out: its JSON is cut off or damaged"
    assert said(run)["cut-off"].startswith("r3.json: is cut off")


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("odd", ["no jobs", "jobs of numbers", "clients without results", "cut off"])
def test_an_odd_document_costs_itself_only(place: int, odd: str) -> None:
    """If a file contains an invalid document, only this document is lost. The position of the document in the file does
    not matter.
    """
    texts = [written(5, 60), written(6, 120)]
    texts.insert(
        place,
        {
            "no jobs": '{"fio version": "fio-3.1", "jobs": []}',
            "jobs of numbers": '{"fio version": "fio-3.1", "jobs": [1, 2]}',
            "clients without results": '{"fio version": "fio-3.1", "client_stats": []}',
            "cut off": written(9, 30)[:300],
        }[odd],
    )
    run = run_of(("all.txt", "\n".join(texts)))
    assert [step.measurement.iops for step in run.tests[0].steps] == [5, 6]
    assert "all.txt" in said(run)["cut-off" if odd == "cut off" else "read-in-part"]


@pytest.mark.parametrize("name", ["a.json", "a.xml", "a.txt"])
@pytest.mark.parametrize("before", ["<vm> Starting 1 process\n", "<a.home> error: {x}\n\n", "\n<1>\n"])
def test_text_before_json_may_begin_with_a_bracket(tmp_path: Path, name: str, before: str) -> None:
    """JSON may follow a bracket at the beginning of a line. fio's client writes the name of the server in angle
    brackets before each line of the server.
    """
    (tmp_path / name).write_text(before + written(5))
    ran = import_files(tmp_path, tmp_path / name)
    assert ran.exit_code == 0, ran.exception


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("x: (groupid=0, jobs=1): err= 0: pid=7: Sat Nov 28 10:30:29 2026\n  read: IOPS=256k\n", "text"),
        ("<host> x: (groupid=0, jobs=1): err= 0: pid=7: Sat Nov 28 10:30:29 2026\n", "text"),
        ("3;fio-3.33;x;0;0;1024;1024000;256000;1;0;0;0.0\n", "terse"),
    ],
)
def test_other_outputs_of_fio_are_refused_in_one_line(tmp_path: Path, text: str, form: str) -> None:
    """Other output formats of fio are refused with a one-line message that names the option for JSON (forms of fio
    3.33).
    """
    (tmp_path / "a.json").write_text(text)
    ran = import_files(tmp_path, tmp_path / "a.json")
    assert isinstance(ran.exception, InputFileError)
    assert f"it is fio's {form} output" in str(ran.exception)
    assert "--output-format=json+" in str(ran.exception)
    assert "\n" not in str(ran.exception)


@pytest.mark.parametrize("name", ["r1.json.gz", "r1.json"])
def test_a_compressed_file_is_called_so(tmp_path: Path, name: str) -> None:
    """A compressed file is refused, and the message advises the user to unpack it. If other files are given too, the
    compressed file is left out for the same reason.
    """
    (tmp_path / name).write_bytes(gzip.compress(written(5).encode()))
    ran = import_files(tmp_path, tmp_path / name)
    assert isinstance(ran.exception, UsageError)
    assert f"{name}: the file is compressed (gzip). Unpack the file" in str(ran.exception)
    (tmp_path / "r2.json").write_text(written(6, 60))
    ran = import_files(tmp_path, tmp_path / name, tmp_path / "r2.json")
    assert ran.exception is None
    assert f"{name} is left out: the file is compressed (gzip)" in ran.output


def clients(total_ios: int, mean_us: float) -> str:
    """Return the result of two servers with 1,000 and 1,200 IOPS for ten seconds. The result also contains fio's row
    "All clients" with the given I/Os and mean latency.
    """
    known = {"rw": "randread", "bs": "4k"}
    rows = [
        job(reads=ios, mean_us=mean, options=known, hostname=host, port=8765)
        for host, ios, mean in (("h1", 10_000, 900.0), ("h2", 12_000, 800.0))
    ]
    total = job(name="All clients", reads=total_ios, mean_us=mean_us)
    del total["job options"]
    found = document(at_s=0.0)
    del found["jobs"]
    return json.dumps(found | {"client_stats": [*rows, total]})


def test_a_sum_over_clients_agrees_with_them_or_is_no_result() -> None:
    """A sum over clients is imported only if it agrees with the results of its clients. In fio 3.33, the sum sometimes
    contains only the first second, or only some of the servers.
    """
    right = run_of(("a.json", clients(22_000, 845.0)))
    assert rounds_of(right)["fio RND TC2/QD1, all clients"] == [2200]
    assert "sum-contradicts" not in said(right)
    for wrong in (24_000, 20_000, 2_200):
        run = run_of(("a.json", clients(wrong, 845.0)))
        assert sorted(rounds_of(run).values()) == [[1000], [1200]]
        assert f"in I/Os: {wrong:,} instead of 22,000" in said(run)["job-left-out"]
    odd = run_of(("a.json", clients(22_000, 400.0)))
    assert "not between those of its hosts" in said(odd)["sum-contradicts"]


ODD: dict[str, str] = {
    "empty": "",
    "text": "no such file\n",
    "json of others": '{"version": 3, "results": [1, 2, {"a": "b"}]}',
    "braces": "{" * 5000,
    "a failed job": json.dumps(document(job(writes=5, options={"rw": "write"}, error=5))),
    "negative": written(9).replace('"runtime": 10000', '"runtime": -10000'),
    "infinite": written(9).replace('"runtime": 10000', '"runtime": Infinity'),
    "jobs of numbers": '{"fio version": "fio-3.1", "jobs": [1, 2]}',
    "no jobs": '{"fio version": "fio-3.1", "jobs": []}',
    "nothing moved": json.dumps(document(job(options={"rw": "randread"}))),
    "trims": json.dumps(document(job(options={"rw": "randtrim"}, trim={"total_ios": 9, "io_bytes": 9}))),
    "trimwrite": written(9, options={"rw": "trimwrite"}),
    "verify": json.dumps(document(job(reads=9, writes=9, options={"rw": "write", "verify": "crc32c"}))),
    "several as one": json.dumps(document(job(writes=9) | {"job options": {"name": "other"}})),
    "contradiction": written(9).replace('"iops": 9.0', '"iops": 90.0'),
    "wrong mix": json.dumps(document(job(reads=9000, writes=1000, options={"rw": "randrw", "bs": "4k"}))),
    "failed I/Os": json.dumps(document(job(writes=9, options={"rw": "randwrite", "bs": "4k"}, total_err=3))),
    "long latency": written(10**6, mean_us=1e9),
}


@pytest.mark.parametrize("odd", ODD)
def test_one_odd_file_is_left_out_and_ends_nothing(tmp_path: Path, odd: str) -> None:
    """If one file is invalid, it is left out, and a warning contains its name and the reason. The numbers of the other
    files do not change.
    """
    names = [tmp_path / name for name, text in numbered(5) if (tmp_path / name).write_text(text)]
    (tmp_path / "odd.json").write_text(ODD[odd])
    ran = import_files(tmp_path, names[0], tmp_path / "odd.json", *names[1:])
    assert ran.exit_code == 0, ran.exception
    assert "odd.json" in ran.stderr
    assert "left out" in ran.stderr
    run = tkperf.load(tmp_path / "out/x.tkperf")
    assert any("odd.json" in warning.text for warning in run.warnings)
    (section,) = run.tests[0].sections
    assert [one.cells[0].value(IOPS) for one in section.rounds] == [1001, 1002, 1003, 1004, 1005]
    alone = CliRunner().invoke(cli, ["import", str(tmp_path / "odd.json"), "--output", str(tmp_path)])
    assert isinstance(alone.exception, UsageError)


def test_files_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "good.json").write_text(written(5))
    (tmp_path / "folder.json").mkdir()
    ran = import_files(tmp_path, tmp_path / "missing.json", tmp_path / "good.json", tmp_path / "folder.json")
    assert ran.exit_code == 0, ran.exception
    assert "missing.json" in ran.stderr
    assert "folder.json" in ran.stderr
    assert ran.stdout == f"{tmp_path / 'out/x.tkperf'}\n"


def test_what_is_said_of_a_thousand_files_is_short(tmp_path: Path) -> None:
    """Warnings about a thousand files contain each reason once, with the number of files."""
    files = [(f"bad{each}.json", f"no json {each}") for each in range(500)]
    files += [(f"v{each}.json", written(each, each, options={"rw": "trimwrite"})) for each in range(500)]
    run = run_of(*files, ("good.json", written(5)))
    texts = [warning.text for warning in run.warnings]
    assert len(texts) == 2
    assert any(text.startswith("500 files (bad0.json, bad1.json, bad2.json") for text in texts)
    assert any(text.startswith("500 results of job job are left out (first in v0.json)") for text in texts)
    assert sum(map(len, texts)) < 600
    # The number of warnings is limited, even if every file is invalid for a different reason.
    odd = [(f"o{each}.json", written(5, each, options={"bs": f"{each}q"})) for each in range(1, 400)]
    many = run_of(*odd, ("good.json", written(5, 1e6)))
    assert len(many.warnings) <= 51


# Laws


@st.composite
def some_files(draw: st.DrawFn) -> list[tuple[str, str]]:
    """Generate files of several workloads, jobs and versions, some of them without times."""
    files = []
    for number in range(draw(st.integers(2, 8))):
        version = draw(st.sampled_from(VERSIONS))
        size = draw(st.sampled_from([4096, 131_072]))
        text = written(
            draw(st.integers(20, 40)),
            draw(st.integers(0, 4)) * 60.0,
            version=version,
            block_bytes=size,
            name=draw(st.sampled_from(["w", "w2", "warmup"])),
            options={"bs": str(size)},
        )
        files.append((f"{draw(st.sampled_from('ab'))}{number}.json", text))
    return files


@given(some_files(), st.randoms(use_true_random=False))
def test_the_order_of_files_changes_nothing(files: list[tuple[str, str]], chance: Any) -> None:
    """The order in which files are given does not change the sections, rounds, numbers, verdicts or warnings."""
    shuffled = list(files)
    chance.shuffle(shuffled)
    one, other = run_of(*files), run_of(*shuffled)
    assert one.tests == other.tests
    assert one.warnings == other.warnings
    assert (one.notices, one.profile, one.tool) == (other.notices, other.profile, other.tool)


@given(some_files(), st.sampled_from(sorted(ODD)), st.integers(0, 8))
def test_an_odd_file_changes_no_number(files: list[tuple[str, str]], odd: str, at: int) -> None:
    with_odd = [*files[:at], ("odd.json", ODD[odd]), *files[at:]]
    assert run_of(*with_odd).tests == run_of(*files).tests


# Thousands of files


def test_memory_does_not_grow_with_the_files(tmp_path: Path) -> None:
    """An import keeps the results of a file and not its text, so the import of 40 files of 0.5 MB needs less than 10 MB
    of memory.
    """
    padding = {"disk_util": [{"name": "x" * 500_000}]}
    for number in range(40):
        text = json.dumps(json.loads(written(1000 + number, 60.0 * number)) | padding)
        (tmp_path / f"{number}.json").write_text(text)
    files = sorted(tmp_path.glob("*.json"))
    (tmp_path / "first").mkdir()
    # load the modules that are otherwise loaded on first use
    assert import_files(tmp_path / "first", files[0]).exit_code == 0
    tracemalloc.start()
    try:
        assert import_files(tmp_path, *files).exit_code == 0
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 10_000_000


def many_demands(count: int) -> str:
    """Return results of ``count`` queue depths in one text. Each queue depth becomes a section."""
    return "\n".join(written(1000 + each, 60.0 * each, options={"iodepth": str(each)}) for each in range(1, count + 1))


def test_as_many_sections_as_a_run_file_holds_can_be_read(tmp_path: Path) -> None:
    """If an import has the greatest number of sections that a run file may contain, the run file can be read. Each
    section has a plan and a name.
    """
    (tmp_path / "all.json").write_text(many_demands(1000))
    ran = import_files(tmp_path, tmp_path / "all.json")
    assert ran.exit_code == 0, ran.exception
    run = tkperf.load(tmp_path / "out/x.tkperf")
    assert (len(run.tests[0].sections), run.left_out) == (1000, ())


def test_more_sections_are_refused_with_the_way_to_split_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """An import with more sections than a run file may contain is refused and leaves no run file. The error lists the
    folders of the files, so that the user can import them separately.
    """
    assert MOST_SECTIONS == limits.MOST_SECTIONS
    monkeypatch.setattr("tkperf.interop.fio_json.MOST_SECTIONS", 10)
    texts = many_demands(11).split("\n{")
    halves = "\n{".join(texts[:6]), "{" + "\n{".join(texts[6:])
    files = [(f"in/{name}/all.json", text) for name, text in zip("ab", halves, strict=True)]
    with pytest.raises(InputFileError, match=r"11 sections.* contain only 10\. .* in/a \(6\), in/b \(5\)"):
        run_of(*files)


def test_a_run_file_that_could_not_be_read_is_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the new run file cannot be read, the import fails and leaves no run file. The error states what the user can
    do.
    """
    (tmp_path / "a.json").write_text(written(5))

    def refuse(path: Path) -> None:
        raise RunFileError(f"cannot read {path}: it is too large")

    monkeypatch.setattr("tkperf.pipeline.importing.read_run", refuse)
    ran = import_files(tmp_path, tmp_path / "a.json")
    assert isinstance(ran.exception, InputFileError)
    assert "one folder at a time" in str(ran.exception)
    assert list((tmp_path / "out").iterdir()) == []


def test_an_import_is_few_transactions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An import needs at most three transactions for any number of files, because each transaction syncs the disk."""
    statements: list[str] = []

    def open_traced(path: Path, prepare: Any) -> sqlite3.Connection:
        db = connect_to_write(path, prepare)
        db.set_trace_callback(statements.append)
        return db

    monkeypatch.setattr("tkperf.runfile.writer.connect_to_write", open_traced)
    for name, text in numbered(40):
        (tmp_path / name).write_text(text)
    assert import_files(tmp_path, *tmp_path.glob("*.json")).exit_code == 0
    assert len([each for each in statements if each.startswith("INSERT INTO step")]) == 40
    assert statements.count("COMMIT") <= 3


def test_what_is_shown_of_the_results_is_data() -> None:
    """The plan of an import lists its figures: rates and latencies of each section, and a convergence chart for each
    mix of a section.
    """
    plan = run_of(*numbered(5)).tests[0].plan
    assert plan is not None
    assert plan.title == "Results of fio"
    (section,) = plan.sections
    assert section.name == "fio RND TC1/QD1"
    assert section.quantities[0] == "iops"
    matrices = [each.quantities for each in section.figures if each.kind is FigureKind.MATRIX]
    assert matrices == [("iops",), ("megabytes_per_s",), ("latency_mean_us",)]
    rounds = [each for each in section.figures if each.kind is FigureKind.OVER_ROUNDS]
    assert [each.read_percents for each in rounds] == [
        (step.workload.read_percent,) for step in run_of(*numbered(1)).tests[0].steps
    ]


def test_status_reports_of_hosts_count_once_in_any_order() -> None:
    """If several status reports contain the results of the same hosts, each host counts once. fio's client writes the
    hosts in the order in which their reports arrive, and this order may change from report to report.
    """

    def report(hosts: str, seconds: int) -> str:
        jobs = [
            {
                **job(writes=1000 * seconds, runtime_ms=1000 * seconds, options={"rw": "randwrite", "bs": "4k"}),
                "hostname": host,
            }
            for host in hosts
        ]
        found = document(*jobs, at_s=float(seconds))
        return json.dumps({"client_stats": found.pop("jobs"), **found})

    text = "\n".join(report(hosts, 10 * at) for at, hosts in enumerate(("ab", "ba", "ab"), start=1))
    steps = parse_fio_json([("r1.json", text)], name="x").tests[0].steps
    assert [step.measurement.write.ios for step in steps] == [30_000, 30_000]


def test_bins_that_contradict_the_count_give_no_percentiles() -> None:
    """If the histogram contradicts the number of I/Os, the result has no percentiles. Bins with a hundred I/Os do not
    describe a job of ten thousand I/Os. The rest of the result is imported.
    """
    of_job = job(writes=10_000, options={"rw": "randwrite", "bs": "4k"}, bins=True)
    whole = parse_fio_json([("r1.json", json.dumps(document(of_job)))], name="x")
    assert whole.tests[0].steps[0].measurement.write.histogram.total == 10_000
    of_job["write"]["lat_ns"]["bins"] = {"50000": 100}
    run = parse_fio_json([("r1.json", json.dumps(document(of_job)))], name="x")
    (step,) = run.tests[0].steps
    assert (step.measurement.write.ios, step.measurement.write.histogram.total) == (10_000, 0)
    assert [warning.code for warning in run.warnings] == ["percentiles-left-out"]


def test_a_name_with_line_feeds_stays_on_the_line_of_its_warning() -> None:
    """A line feed in the name of a file or job does not split a warning into two lines. Otherwise the second part of
    the name could look like a message of tkperf.
    """
    files = [
        (f"{place}\nwarning: all is well.json", written(10 + at, at_s, name="a\nb", error=at % 2))
        for at, (place, at_s) in enumerate((("r1", 0), ("r2", 60), ("r3", 1)))
    ]
    run = run_of(("empty\nr5.json", ""), *files)
    assert {"file-left-out", "job-left-out"} <= said(run).keys()
    assert not any("\n" in warning.text for warning in run.warnings)


def test_results_of_two_runs_at_once_in_one_file_are_both_kept() -> None:
    """If one file contains the results of two fio processes that ran at the same time, both results are kept. Both
    results have the same runtime, whereas a later status report of one fio would have a longer runtime. The order of
    the results does not matter.
    """
    slow, fast = written(1000, 60.0), written(1100, 60.4)
    for text in (f"{slow}\n{fast}", f"{fast}\n{slow}"):
        steps = run_of(("both.json", text)).tests[0].steps
        assert sorted(step.measurement.write.ios for step in steps) == [10_000, 11_000]
