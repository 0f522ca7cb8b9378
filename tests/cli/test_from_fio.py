"""``tkperf workload from-fio`` either converts a whole job file of fio to a workload file, or writes no file."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from tests.cli.test_bad_input import assert_clear, tkperf

GOOD = """[global]
direct=1
ioengine=libaio
iodepth=4
time_based
[reads]
rw=randread
bs=4k
runtime=2
[writes]
stonewall
rw=randwrite
bs=16k
runtime=2
ramp_time=1
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    path = tmp_path / "drive.fio"
    path.write_text(GOOD)
    return path


def test_the_account_stands_on_the_terminal_and_in_the_file(job: Path, tmp_path: Path) -> None:
    """The list of converted and omitted options is printed and is also part of the workload file. Without ``-o``,
    stdout contains only the workload file.
    """
    output = tmp_path / "drive.toml"
    done = tkperf("workload", "from-fio", job, "-o", output)
    assert done.returncode == 0, done.stderr
    for line in (
        "carried over: iodepth=4 -> io_depth (all jobs)",
        "not carried over: ioengine=libaio: tkperf uses io_uring or libaio (all jobs)",
    ):
        assert line in done.stdout.splitlines()
        assert f"# {line}" in output.read_text().splitlines()
    alone = tkperf("workload", "from-fio", job)
    assert (alone.stdout, alone.stderr) == (output.read_text(), "")


def test_a_missing_purge_and_fill_are_reported(job: Path, tmp_path: Path) -> None:
    """If a job file begins with reads, the output and the head of the workload file state that purge and fill are
    missing. The workload file contains both phases as comments. If the user removes the comment signs, both phases
    precede the phases of the job file.
    """
    output = tmp_path / "drive.toml"
    done = tkperf("workload", "from-fio", job, "-o", output)
    (said,) = [line for line in done.stdout.splitlines() if line.startswith("missing: ")]
    assert said.startswith("missing: the workload has no purge and no fill before its first reads")
    text = output.read_text()
    assert f"# {said}" in text.splitlines()
    assert [phase["kind"] for phase in tomllib.loads(text)["phases"]] == ["stream", "stream"]
    for line in ("[[phases]]", 'kind = "purge"', 'kind = "fill"'):
        text = text.replace(f"# {line}", line)
    output.write_text(text)
    assert [phase["kind"] for phase in tomllib.loads(text)["phases"]] == ["purge", "fill", "stream", "stream"]
    assert tkperf("workload", "show", output).returncode == 0


@pytest.mark.parametrize(
    ("jobs", "words"),
    [
        ("[a]\nrw=randwrite\nruntime=2\n", "no purge and no fill, so the test begins in the state in which the drive"),
        ("[a]\nrw=write\n[b]\nstonewall\nrw=randread\nruntime=2\n", "no purge, so the fill begins in the state"),
    ],
)
def test_a_job_file_that_writes_first_has_no_commented_phases(jobs: str, words: str, job: Path) -> None:
    """If a job file begins with writes, the output states which preparation is missing, and the workload file contains
    no phases as comments.
    """
    job.write_text(f"[global]\ndirect=1\n{jobs}")
    text = tkperf("workload", "from-fio", job).stdout
    assert f"# missing: the workload has {words}" in text
    assert "# [[phases]]" not in text


def test_a_job_file_in_place_of_a_workload_file_is_recognised(job: Path) -> None:
    """If the user passes a job file of fio in place of a workload file, the error names the command that converts the
    file.
    """
    done = tkperf("workload", "show", job)
    assert_clear(done, 2, "not valid TOML", f"tkperf workload from-fio {job} -o FILE.toml")


def test_nothing_is_overwritten_without_force(job: Path, tmp_path: Path) -> None:
    """An existing workload file is replaced only with ``--force``. The job file of the call is never overwritten."""
    output = tmp_path / "mine.toml"
    output.write_text("precious")
    assert_clear(tkperf("workload", "from-fio", job, "-o", output), 2, "Pass --force to replace the file")
    assert output.read_text() == "precious"
    assert tkperf("workload", "from-fio", job, "-o", output, "--force").returncode == 0
    assert "[loads.reads]" in output.read_text()
    assert_clear(tkperf("workload", "from-fio", job, "-o", job, "--force"), 2, "is an input of this")
    assert job.read_text() == GOOD


def test_refused_options_are_a_line_each(job: Path, tmp_path: Path) -> None:
    """For each refused option, one line names the file, the line, the job, the option and the reason. The last line
    contains the remedy.
    """
    job.write_text(GOOD + "verify=md5\nexec_prerun=touch ran\nsync=1\n")
    output = tmp_path / "drive.toml"
    done = tkperf("workload", "from-fio", job, "-o", output)
    assert_clear(done, 2, "3 options cannot be kept", "Change, add or remove the options in the job file")
    refused = done.stderr.splitlines()[:-1]
    assert [line.partition(", [writes], ")[2].partition(":")[0] for line in refused] == [
        "verify=md5",
        "exec_prerun=touch ran",
        "sync=1",
    ]
    assert f"{job}, line 16, [writes], verify=md5: to check data, fio would need additional time" in refused[0]
    assert not output.exists()
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\x7fELF\0\0\xff", "cannot read job file"),
        (b"\0\0\0\0", "contains binary data"),
        (b"x" * 300_000, "it is larger than 262.1 kB"),
        (b"", "the file contains no job"),
        (b"Dear fio,\n", "is it a job file?"),
        (b"{}", "is it a job file?"),
        (b"[a]\ninclude drive.fio\n", "tkperf reads one file"),
    ],
)
def test_no_job_file(content: bytes, reason: str, job: Path, tmp_path: Path) -> None:
    """If the file is not a job file of fio, tkperf prints one clear line and writes nothing."""
    job.write_bytes(content)
    output = tmp_path / "drive.toml"
    done = tkperf("workload", "from-fio", job, "-o", output)
    assert_clear(done, 2, reason)
    assert len(done.stderr.splitlines()) == 1
    assert not output.exists()


TEMPLATE = """[global]
filename=${DEV}
rw=randread
bs=${BS}k
rate=${RATE}m,
"""


def test_what_the_file_leaves_open_is_asked_for_and_said(job: Path) -> None:
    """The options ``--set``, ``--direct`` and ``--runtime`` supply values that the job file lacks. The workload file
    lists the values that the options supplied. If a value is missing, the error names the option to add.
    """
    job.write_text(TEMPLATE)
    assert_clear(tkperf("workload", "from-fio", job), 2, "Add --set DEV=.. --set BS=.. --set RATE=..")
    given = ("--set", "DEV=/dev/nvme9n1", "--set", "BS=4", "--set", "RATE=5")
    missing = tkperf("workload", "from-fio", job, *given)
    assert_clear(missing, 2, "2 options cannot be kept")
    assert "write direct=1 in the job file, or pass --direct" in missing.stderr
    assert "pass --runtime TIME, such as --runtime 60" in missing.stderr
    done = tkperf("workload", "from-fio", job, *given, "--direct", "--runtime", "2m")
    assert done.returncode == 0, done.stderr
    assert {
        "# assumed: one job with the options of [global], because the file contains no job ([drive])",
        "# assumed: direct=1 in place of the default of fio, direct=0 (--direct) ([drive])",
        "# assumed: runtime=120 (--runtime) ([drive])",
        "# assumed: RATE=5 (--set)",
        "longest_s = 120",
        "offered_megabytes_per_s = 5.24288",
    } <= set(done.stdout.splitlines())


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (("--set", "TIME"), "does not have the form NAME=VALUE. Write, for example, --set TIME=60"),
        (("--set", "A=1", "--set", "A=2"), "--set A: the name has two values, 1 and 2"),
        (("--set", "A=1\nB=2"), "does not have the form NAME=VALUE"),
        (("--runtime", "soon"), "--runtime 'soon' is not a valid time. Write, for example, 60, 90s, 5m or 1h"),
        (("--runtime", "0"), "is not a valid time"),
    ],
)
def test_impossible_values_are_named(job: Path, wrong: tuple[str, ...], reason: str) -> None:
    """If an option of the call has an impossible value, tkperf prints one clear line."""
    assert_clear(tkperf("workload", "from-fio", job, *wrong), 2, reason)


def test_a_name_of_its_own(job: Path) -> None:
    """If a job file has the name of a built-in test, the workload receives another name. With ``--name``, an impossible
    name and the name of a built-in test are refused.
    """
    iops = job.with_name("iops.fio")
    iops.write_text(GOOD)
    assert 'name = "iops-fio"' in tkperf("workload", "from-fio", iops).stdout
    assert_clear(tkperf("workload", "from-fio", job, "--name", "a b"), 2, "key name")
    assert_clear(tkperf("workload", "from-fio", job, "--name", "iops"), 2, "another test")


def test_it_runs_and_reports_where_it_comes_from(job: Path, tmp_path: Path) -> None:
    """A converted job file runs on a simulated drive, and the report names the job file from which the test was
    converted.
    """
    output = tmp_path / "drive.toml"
    assert tkperf("workload", "from-fio", job, "-o", output).returncode == 0
    run = tkperf(
        "ssd", "r", "sim:sata-ssd", "--test", output, "--profile", "quick", "--no-report", "--output", tmp_path
    )
    assert run.returncode == 0, run.stderr
    page = tmp_path / "r.html"
    done = tkperf("report", tmp_path / "r.tkperf", "-o", page, "--json", tmp_path / "r.json")
    assert done.returncode == 0, done.stderr
    assert "job file drive.fio, converted by tkperf workload from-fio" in page.read_text()
    test = json.loads((tmp_path / "r.json").read_text())["tests"][0]
    assert [section["name"] for section in test["sections"]] == ["reads", "writes"]
