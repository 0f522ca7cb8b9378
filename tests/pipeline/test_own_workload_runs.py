"""User-defined tests from the command line. They run with real fio and appear in every output, and every possible
mistake in them is reported.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import tkperf
from tests.procedures.test_own_workloads import EVERYTHING
from tkperf.analysis.comparing.comparison import compare
from tkperf.cli.main import cli
from tkperf.model.errors import UsageError
from tkperf.model.record import RunStatus, StepKind
from tkperf.page.findings.headlines import build_headlines
from tkperf.page.findings.whole_test_findings import build_findings
from tkperf.pipeline.run_plan import plan_run
from tkperf.pipeline.run_request import RunRequest
from tkperf.procedures.own_workloads.workload_file import TABLES_BY_PLACE
from tkperf.runfile.reader import read_run

SHORT = Path(__file__).parents[1] / "short.toml"
SMALL = """
format = 1
name = "small"
title = "Small"
[loads.mixed]
access = "random"
read_percent = 50
block_shares = [[4, 50], [16, 50]]
range_begin_percent = 25
range_end_percent = 75
[loads.paced]
access = "random"
read_percent = 0
block_size_kib = 4
offered_iops = 1e8
[[phases]]
kind = "purge"
[[phases]]
kind = "fill"
passes = 1
[[phases]]
kind = "rounds"
section = "Rounds"
loads = ["mixed"]
loops = [{ key = "io_depth", values = [4, 1] }]
step_s = 1
rounds = 2
warm_up_rounds = 1
[[phases]]
kind = "idle"
idle_s = 1
[[phases]]
kind = "stream"
section = "Stream"
load = "paced"
slice_s = 1
longest_s = 2
"""


def call(*argv: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in argv])


@pytest.mark.fio
def test_fio_does_what_the_file_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """fio's jobs contain the phases, regions, mixes and loops of the workload file in order. If the device did not
    reach an offered rate, the run reports this.
    """
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(SMALL)
    done = call(
        "ssd",
        "run",
        "scratch.img",
        "--size",
        "96MiB",
        "--test",
        "./small.toml",
        "--profile",
        SHORT,
        "--force",
        "--progress",
        "plain",
    )
    assert done.exit_code == 0, (done.output, done.exception)
    test = read_run(Path("run.tkperf")).tests[0]
    jobs = [step.job_file for step in test.steps]
    kinds = [(step.kind, step.section, step.workload.io_depth) for step in test.steps]
    assert kinds == [
        (StepKind.FILL, "Rounds", 4),
        *[(StepKind.WARM_UP, "Rounds", depth) for depth in (4, 1)],
        *[(StepKind.ROUND, "Rounds", depth) for depth in (4, 1)] * 2,
        *[(StepKind.CONTINUOUS, "Stream", 4)] * 2,
    ]
    assert test.status is RunStatus.COMPLETE
    assert test.steps[0].measurement.write.bytes == 96 << 20
    assert f"offset={24 << 20}\nsize={48 << 20}\n" in jobs[1]
    assert "bssplit=4096/50:16384/50\n" in jobs[1]
    rounds, stream = test.outcomes
    assert (rounds.window, rounds.ended_because) == ((1, 2), "ran its 2 rounds")
    assert stream.ended_because.startswith(
        "ran its full time of 2 s; did not keep up with RND 4k R/W 0/100 TC2/QD4, 1e+08 IOPS offered"
    )
    gap_s = test.steps[7].started_s - test.steps[6].started_s - test.steps[6].measurement.duration_s
    assert 0.95 < gap_s < 31  # a busy host may begin the next load late


PRECONDITIONED = """
format = 1
name = "preconditioned"
title = "Preconditioned"
[loads.blocks]
access = "sequential"
read_percent = 0
block_size_kib = 128
[loads.pages]
access = "random"
read_percent = 0
block_size_kib = 4
[[phases]]
kind = "fill"
passes = 1
[[phases]]
kind = "stream"
section = "Preconditioning by blocks"
load = "blocks"
slice_s = 1
longest_s = 2
[[phases]]
kind = "rounds"
section = "Pre-condition in rounds"
loads = ["blocks"]
step_s = 1
rounds = 2
[[phases]]
kind = "rounds"
section = "Pages"
loads = ["pages"]
step_s = 1
rounds = 2
"""


def test_sections_that_prepare_are_no_headline(tmp_path: Path) -> None:
    """A section that only prepares the drive leads to neither a headline nor a finding, even if it is much faster. The
    rule applies to a run and to a comparison. The figures of the section are still shown.
    """
    file = tmp_path / "own.toml"
    file.write_text(PRECONDITIONED)
    done = call("ssd", "x", "sim:sata-ssd", "--test", file, "--output", tmp_path, "-q", "--no-report")
    assert done.exit_code == 0, (done.output, done.exception)
    run = tkperf.load(tmp_path / "x.tkperf")
    assert {one.section for one in build_headlines(run.tests)} == {"Pages"}
    assert {one.section for one in build_findings(run.tests)} == {"Pages"}
    assert {one.section for one in compare([run, run]).headlines} == {"Pages"}
    assert all(section.cells for section in run.tests[0].sections)


FLUSHED = """
format = 1
name = "flushed"
title = "Flushed"
[loads.log]
access = "random"
read_percent = 0
block_size_kib = 4
jobs = 1
io_depth = 1
flush_every = 1
[[phases]]
kind = "rounds"
section = "Flushed"
loads = ["log"]
step_s = 60
rounds = 31
"""


def test_a_single_load_that_flushes_is_shown_over_time(tmp_path: Path) -> None:
    """A load with flushes can also run alone, and for so long that its figures over time have names."""
    own = tmp_path / "flushed.toml"
    own.write_text(FLUSHED)
    done = call("ssd", "log", "sim:sata-ssd", "--test", own, "--output", tmp_path, "--no-report")
    assert done.exit_code == 0, done.output
    assert "a flush after 1 write" in call("show", "--full", tmp_path / "log.tkperf").output


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two runs on simulated drives. The workload file of the runs no longer exists."""
    folder = tmp_path_factory.mktemp("own")
    file = folder / "own.toml"
    for name, rate in (("a", 900), ("b", 1200)):
        file.write_text(EVERYTHING.replace("offered_iops = 900", f"offered_iops = {rate}"))
        done = call("ssd", name, "sim:sata-ssd", "--test", file, "--output", folder, "-q", "--no-report")
        assert done.exit_code == 0, (done.output, done.exception)
        file.unlink()
    return folder


def test_every_output_has_it_without_its_file(two_runs: Path, tmp_path: Path) -> None:
    """The terminal, HTML, PDF, Markdown, JSON and CSV show a user-defined test without the workload file."""
    run = two_runs / "a.tkperf"
    shown = call("show", "--full", run)
    assert "Every kind of phase" in shown.output
    assert "Until written" in shown.output
    made = call(
        "report",
        run,
        "-o",
        tmp_path / "x.html",
        "--pdf",
        tmp_path / "x.pdf",
        "--markdown",
        tmp_path / "x.md",
        "--json",
        tmp_path / "x.json",
        "--csv",
        tmp_path / "csv",
    )
    assert made.exit_code == 0, (made.output, made.exception)
    assert (tmp_path / "x.pdf").read_bytes().startswith(b"%PDF")
    for name in ("x.html", "x.md"):
        text = (tmp_path / name).read_text()
        assert "OWN WORKLOAD: Every kind of phase is a test of a workload file" in text
        assert "900 IOPS offered" in text
    (test,) = json.loads((tmp_path / "x.json").read_text())["tests"]
    sections = {section["name"]: section for section in test["sections"]}
    assert list(sections) == ["Loops", "Two rounds", "Until steady", "Until written", "Its time"]
    assert len(sections["Loops"]["cells"]) == 8
    cells = (tmp_path / "csv/cells.csv").read_text().splitlines()
    assert sum("Two rounds" in line for line in cells) >= 1


def test_runs_of_one_file_compare_and_the_difference_of_two_is_named(two_runs: Path) -> None:
    """Two runs of different workload files can be compared. The comparison names each key that differs, as it does for
    profiles.
    """
    done = call("compare", two_runs / "a.tkperf", two_runs / "b.tkperf", "--full")
    assert done.exit_code == 0, (done.output, done.exception)
    said = " ".join(done.output.split())
    assert "own_workload.everything.loads.paced.offered_iops (a: 900, b: 1200)" in said
    assert "Until steady" in said


def test_claims_and_baselines_hold_for_it(two_runs: Path, tmp_path: Path) -> None:
    """Claims and baselines also apply to a user-defined test. Claims and baselines name the test, its sections and its
    loads.
    """
    claims = tmp_path / "claims.toml"
    claim = (
        "[[claim]]\ntest = 'everything'\nsection = 'Two rounds'\nmetric = 'iops'\nread_percent = 0\nblock_size = '4k'\n"
    )
    claims.write_text(f"{claim}at_least = 850\n")
    assert call("check", two_runs / "a.tkperf", claims).exit_code == 0
    claims.write_text(f"{claim}at_least = 950\n")
    assert call("check", two_runs / "a.tkperf", claims).exit_code == 1
    claims.write_text(claim.replace("everything", "evrything") + "at_least = 1\n")
    failed = call("check", two_runs / "a.tkperf", claims)
    assert "'evrything' is not the name of a test" in str(failed.exception)


@pytest.mark.parametrize(
    ("suite", "content", "found"),
    [
        ("ssd", EVERYTHING.replace("step_s = 5", "steps_s = 5"), "did you mean step_s?"),
        ("ssd", EVERYTHING.replace("[64, 40]", "[64, 30]"), "add up to 90, not to 100"),
        ("hdd", EVERYTHING, "tkperf does not purge hard disks"),
        ("ssd", "\0", "not valid TOML"),
        ("ssd", None, "it does not exist"),
    ],
)
def test_a_mistake_leaves_nothing_behind(tmp_path: Path, suite: str, content: str | None, found: str) -> None:
    """If a workload file contains a mistake, tkperf ends with exit code 2 and leaves no scratch file, no folder and no
    run file.
    """
    file = tmp_path / "own.toml"
    if content is not None:
        file.write_text(content)
    before = set(tmp_path.iterdir())
    for command in ((suite,), ("plan", suite)):
        done = call(
            *command,
            "n",
            tmp_path / "new.img",
            "--size",
            "64MiB",
            "--test",
            file,
            "--output",
            tmp_path / "new",
            "--force",
        )
        assert isinstance(done.exception, UsageError), done.output
        assert done.exception.exit_code == 2
        assert f"workload file {file}" in str(done.exception)
        assert found in str(done.exception)
    assert set(tmp_path.iterdir()) == before


def test_a_name_that_is_neither_test_nor_file_is_a_typo() -> None:
    """If a name after --test is neither a test nor a file, the name is refused, and the message proposes the closest
    test.
    """
    done = call("ssd", "n", "sim:sata-ssd", "--test", "ipos")
    assert "did you mean iops?" in str(done.exception)


def test_files_may_follow_ssdt_as_names_do(tmp_path: Path) -> None:
    """Several workload files may follow ``-ssdt`` without commas, as several test names may."""
    (tmp_path / "own.toml").write_text(EVERYTHING)
    done = call("plan", "ssd", "n", "sim:sata-ssd", "-ssdt", "lat", f"{tmp_path}/own.toml", "--json")
    assert done.exit_code == 0, (done.output, done.exception)
    tests = dict.fromkeys(stage["test"] for stage in json.loads(done.output)["stages"])
    assert list(tests) == ["Latency", "Every kind of phase"]


def test_the_course_stands_before_the_question(tmp_path: Path) -> None:
    """The procedure of a user-defined test is printed before the consent question, because the user cannot look it up
    elsewhere.
    """
    (tmp_path / "own.toml").write_text(EVERYTHING)
    for command in (("ssd", "n", "sim:sata-ssd", "--output", tmp_path), ("plan", "ssd", "n", "sim:sata-ssd")):
        done = call(*command, "--test", tmp_path / "own.toml")
        assert done.exit_code == 0, (done.output, done.exception)
        assert "3 × the active range, SEQ 256 KiB writes, TC 2 / QD 32" in done.output
        assert "For R/W mix 100/0, 0/100:" in done.output


def test_every_key_of_a_file_is_listed() -> None:
    """The command ``tkperf workload keys`` lists every key of a workload file. A reference in the docs folder would not
    be enough, because an installed tkperf has no docs folder.
    """
    listed = CliRunner().invoke(cli, ["workload", "keys"]).output
    for table in TABLES_BY_PLACE.values():
        assert all(field in listed for field in table.__struct_fields__)


def test_show_explains_a_file(tmp_path: Path) -> None:
    """The command ``tkperf workload show`` describes a workload file in words and as JSON."""
    file = tmp_path / "own.toml"
    file.write_text(EVERYTHING)
    assert "Until steady state, at most 4 rounds:" in call("workload", "show", file).output
    shown = json.loads(call("workload", "show", file, "--json", "--profile", "quick").output)
    assert (shown["name"], shown["profile"]) == ("everything", "quick")
    assert shown["workload"]["loads"]["paced"]["offered_iops"] == 900


ORDER = """
format = 1
name = "order"
title = "Fills before and after a purge"
[loads.wide]
access = "sequential"
read_percent = 0
block_size_kib = 64
compressible_percent = 50
[loads.mixed]
access = "random"
read_percent = 50
block_size_kib = 4
[[phases]]
kind = "fill"
load = "wide"
passes = 3
[[phases]]
kind = "purge"
[[phases]]
kind = "fill"
load = "wide"
passes = 1
[[phases]]
kind = "fill"
passes = 1
[[phases]]
kind = "fill"
passes = 1
[[phases]]
kind = "rounds"
section = "Filled"
loads = ["mixed"]
step_s = 1
rounds = 1
[[phases]]
kind = "fill"
passes = 1
[[phases]]
kind = "purge"
[[phases]]
kind = "idle"
idle_s = 1
[[phases]]
kind = "rounds"
section = "As new"
loads = ["mixed"]
step_s = 1
rounds = 1
"""


def test_what_was_written_before_a_purge_preconditions_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The preparation of a section is the last load that wrote to the drive after the last purge. Loads before this
    purge do not count.
    """
    monkeypatch.chdir(tmp_path)
    Path("order.toml").write_text(ORDER)
    assert call("ssd", "run", "sim:sata-ssd", "--test", "./order.toml").exit_code == 0
    assert call("report", "run.tkperf", "--json", "run.json").exit_code == 0
    results = json.loads(Path("run.json").read_text())
    filled, as_new = results["tests"][0]["sections"]
    length_bytes = results["info"]["active_range_length_bytes"]
    assert filled["filled_bytes"] == 2 * length_bytes
    assert filled["fill_workload"]["block_size_bytes"] == 128 << 10
    assert as_new["filled_bytes"] is None
    assert as_new["purge"]["started_s"] > filled["purge"]["started_s"]


def test_a_pause_after_a_purge_leaves_it_as_purged(tmp_path: Path) -> None:
    """A pause after a purge does not change the state of the drive, which is still purged. The description of a fill
    states which share of its data is compressible.
    """
    file = tmp_path / "order.toml"
    file.write_text(ORDER)
    request = RunRequest(suite="ssd", device="sim:sata-ssd", tests=(str(file),))
    (test,) = plan_run(request).tests
    assert test.starts_as_purged
    shown = call("workload", "show", file).output
    assert "3 × the active range, SEQ 64 KiB writes, TC 4 / QD 32, 50 % compressible" in shown
