"""``tkperf plan`` accepts the options of a run and prints the estimate of the run. It has no effect on devices and
files.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.cli.test_bad_input import assert_clear, tkperf


@pytest.mark.parametrize("suite", ["ssd", "hdd"])
def test_a_plan_tells_time_amount_and_life_and_leaves_nothing(suite: str, tmp_path: Path) -> None:
    """The plan of a run on a file with data contains the time, the written amount and the used share of the drive's
    life. ``tkperf plan`` needs no consent and leaves no file behind.
    """
    device = tmp_path / "scratch.img"
    device.write_bytes(os.urandom(64 << 20))
    before = device.read_bytes()
    done = tkperf(
        "plan", suite, "n", device, "--profile", "quick", "--rate", "400MB/s", "--rated", "1DWPD", "--output", tmp_path
    )
    assert done.returncode == 0, done.stderr
    for words in ("ends ", "writes ", "drive fills", "400.0 MB/s, given by --rate", "1DWPD over 5"):
        assert words in done.stdout
    assert "nothing was run, written or asked" in done.stderr
    assert device.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["scratch.img"]


def test_a_plan_opens_with_its_answer() -> None:
    """The plan begins with its verdict. If the sectors of a drive are larger than a block size, the measurement omits
    this block size. The plan lists the omission among the conditions, and not among the cautions.
    """
    done = tkperf("plan", "ssd", "n", "sim:nvme-4kn", "--test", "iops")
    assert done.stdout.startswith("SIMULATED. Can run: 1 test, ")
    assert " below" not in done.stdout
    assert re.search(r"note +iops: block size 0.5 KiB left out", done.stdout)


def test_a_plan_as_json_adds_up(tmp_path: Path) -> None:
    """The written amount and the longest time in the JSON plan are sums over the stages of the plan."""
    done = tkperf("plan", "ssd", "n", "sim:sata-ssd", "-ssdt", "iops", "tp", "--rated", "20TBW", "--json")
    told = json.loads(done.stdout)
    assert (told["schema"], told["rate_source"]) == ("tkperf-plan/1", "assumed")
    assert told["verdict"]["state"] == "can run with cautions"
    assert told["most_written_bytes"] == sum(each["most_bytes"] for each in told["stages"])
    assert told["longest_s"] == sum(each["longest_s"] for each in told["stages"])
    assert told["most_share_of_rating"] == pytest.approx(told["most_written_bytes"] / 20e12)
    assert {each["test"] for each in told["stages"]} == {"IOPS", "Throughput"}


def test_the_same_stands_before_a_run(tmp_path: Path) -> None:
    """tkperf prints the estimate before a run starts. If the run uses up more than a twentieth of the drive's life,
    tkperf also prints a warning.
    """
    done = tkperf(
        "ssd",
        "n",
        "sim:sata-ssd",
        "--profile",
        "quick",
        "-ssdt",
        "lat",
        "--output",
        tmp_path,
        "--rated",
        "0.3TBW",
        "--progress",
        "plain",
    )
    assert done.returncode == 0, done.stderr
    for words in ("of simulated time", "writes ", "of its rating (0.3TBW", "more than 5 %"):
        assert words in " ".join(done.stderr.split())


def test_a_quiet_run_warns_of_its_cost_alone(tmp_path: Path) -> None:
    """If a call contains ``--quiet`` and an option that gives the consent, tkperf warns only of the share of the
    drive's life that the run uses up. The warning announces neither a question nor further warnings.
    """
    target = tmp_path / "target.img"
    target.write_bytes(b"x" * (64 << 20))
    done = tkperf(
        "ssd",
        "n",
        target,
        "--profile",
        "quick",
        "-ssdt",
        "tp",
        "--output",
        tmp_path,
        "--quiet",
        "--rated",
        "0.01TBW",
        "--yes-destroy",
        "another",
    )
    assert done.returncode == 3, done.stderr
    assert "warning  the run may write " in done.stderr
    assert " of the rated endurance (0.01TBW, 10.0 GB), more than 5 %" in done.stderr
    assert "you confirm" not in done.stderr
    assert "below" not in done.stderr


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--rate", "0"], "--rate '0'"),
        (["--rated", "0TBW"], "--rated '0TBW'"),
        (["--rated", "0.1TBW"], "impossible for a drive of 240.1 GB"),
        (["--warranty-years", "3"], "Also pass --rated with such a rating"),
        (["--rate", "1MB/s", "--like", "x"], "--rate and --like exclude each other"),
    ],
)
def test_what_cannot_be_is_one_line(argv: list[str], says: str) -> None:
    """Impossible or contradictory options lead to a one-line error with exit code 2, for a plan as for a run."""
    assert_clear(tkperf("plan", "ssd", "n", "sim:sata-ssd", *argv), 2, says)


def test_a_run_that_cannot_be_read_tells_no_rate() -> None:
    """If the run file that --like names cannot be read, the plan ends with an error and exit code 6, as other commands
    do.
    """
    done = tkperf("plan", "ssd", "n", "sim:sata-ssd", "--like", "nowhere.tkperf")
    assert_clear(done, 6, "--like: there is no run file nowhere.tkperf")
