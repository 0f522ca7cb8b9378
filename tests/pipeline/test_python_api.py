"""The Python API. The documented examples are executed unchanged."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

import tkperf
from tests.builders import run_info, simulate
from tkperf.analysis.over_seconds import with_seconds
from tkperf.analysis.results import RunResult
from tkperf.analysis.run_results import analyse
from tkperf.model.errors import DeviceError, RefusedError, RunFileError, UsageError
from tkperf.pipeline.estimate_run import estimate_run, parse_rate
from tkperf.procedures import load_profile
from tkperf.procedures.profiles import Profile

DOCUMENT = Path(__file__).parents[2] / "docs/reference/python-api.md"


def test_load_is_the_analysis(tmp_path: Path) -> None:
    """The function ``load`` accepts a string or a Path, and returns the results from which every report is made."""
    simulate(tmp_path, run_info())
    with tkperf.open_run(tmp_path / "run.tkperf") as run_file:
        record = run_file.record()
        result = with_seconds(analyse(record), record, run_file.seconds)
    assert tkperf.load(tmp_path / "run.tkperf") == result
    assert tkperf.load(str(tmp_path / "run.tkperf")) == result


def test_facts_of_the_operator_are_part_of_a_request(tmp_path: Path) -> None:
    """The facts that an operator states, such as the form factor, are part of a request under the names that reports
    use. Wrong facts are refused in the same manner as on the command line.
    """
    facts = {"nand type": " 3D\nTLC"}
    plan = tkperf.make_plan("ssd", "sim:sata-ssd", profile="quick", tests=("tp",), facts=facts)
    result = tkperf.run(plan, "run", folder=tmp_path)
    assert result.info.options["facts"] == {"NAND type": "3D TLC"}
    for wrong, says in (
        ({"Serial number": "1"}, "facts: there is no fact with the name 'Serial number'"),
        ({"Note": 7}, "facts: the text of Note has 0 characters"),
        ("Note=x", "facts: 'Note=x' is not of type dict"),
        ({7: "x"}, "facts: there is no fact with the name '7'"),
    ):
        with pytest.raises(UsageError, match=says):
            tkperf.make_plan("ssd", "sim:sata-ssd", facts=wrong)


def examples(heading: str) -> list[str]:
    """Return the code blocks below a heading of the document."""
    parts = re.split(r"^## (.*)$", DOCUMENT.read_text(encoding="utf-8"), flags=re.MULTILINE)
    (text,) = [text for name, text in zip(parts[1::2], parts[2::2], strict=True) if name == heading]
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def load_short_profile(name: str) -> Profile:
    profile = load_profile(name)
    if name != "quick":
        return profile
    steady_state = msgspec.structs.replace(profile.steady_state, window_rounds=2, max_rounds=2)
    return replace(profile, tables={**profile.tables, "steady_state": steady_state})


def run_examples(blocks: list[str]) -> dict[str, object]:
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(DOCUMENT), "exec"), names)
    return names


def test_the_documented_examples_of_reading_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every documented example about reading is executed on a run with the documented name. The code blocks are
    executed in order.
    """
    simulate(tmp_path, run_info())
    (tmp_path / "run.tkperf").rename(tmp_path / "D3-S4510.tkperf")
    monkeypatch.chdir(tmp_path)
    blocks = examples("Reading")
    assert len(blocks) == 4
    assert run_examples(blocks)["cell"] is not None


@pytest.mark.fio
def test_the_documented_examples_of_measuring_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The documented examples about measuring can be executed: fio measures a scratch file, a run is rehearsed on a
    simulated drive, and a RAID set that is not possible causes the documented error.
    """
    monkeypatch.chdir(tmp_path)
    # For this test, two rounds of the quick profile are as good as all six.
    monkeypatch.setattr("tkperf.pipeline.fitted_profile.load_profile", load_short_profile)
    blocks = examples("Measuring")
    assert len(blocks) == 4
    names = run_examples(blocks)
    said = capsys.readouterr().out
    result, rehearsed = names["result"], names["rehearsed"]
    assert isinstance(result, RunResult)
    assert isinstance(rehearsed, RunResult)
    assert (result.status, rehearsed.status) == ("complete", "complete")
    assert "runtime 1 s -> 2 s" in result.info.alterations
    assert result == tkperf.load("results/look.tkperf")
    assert "'runtime 1 s -> 2 s'" in said
    assert "SEQ 1024k R/W 0/100 TC2/QD16" in said
    assert "there is no device or file /dev/sdy" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results", "scratch.img"]


def test_a_plan_changes_nothing(tmp_path: Path) -> None:
    """A plan can be made without creating a file. The plan contains the amounts and times of the run."""
    plan = tkperf.make_plan("ssd", tmp_path / "scratch", size="64MiB", profile="quick")
    assert plan.active_range.length_bytes == 64 << 20
    assert plan.filled_bytes == 4 * 2 * (64 << 20)
    assert 0 < plan.shortest_s < plan.longest_s
    (tp,) = (test for test in plan.tests if test.test.name == "tp")
    assert tp.starts_as_purged is False
    estimate = estimate_run(plan, parse_rate("1MB/s"))
    assert plan.filled_bytes == estimate.least_bytes < estimate.most_bytes
    assert [test.test.name for test in plan.tests] == ["iops", "lat", "tp", "writesat"]
    with pytest.raises(UsageError, match=r"scratch: .* too small for 2 jobs"):
        tkperf.make_plan("ssd", tmp_path / "scratch", size="1MiB", profile="quick")
    with pytest.raises(DeviceError, match="scratch cannot be created"):
        tkperf.make_plan("ssd", tmp_path / "no/scratch", size="64MiB")
    assert list(tmp_path.iterdir()) == []


def test_nothing_runs_without_consent(scratch: Path, tmp_path: Path) -> None:
    """An existing file is measured only if the user confirms its path. Otherwise the file remains unchanged, and no run
    file is created.
    """
    plan = tkperf.make_plan("ssd", scratch, profile="quick", tests=["lat"])
    with pytest.raises(RefusedError, match=rf"Confirm with confirm='{scratch}'"):
        tkperf.run(plan, "n", folder=tmp_path)
    with pytest.raises(RefusedError, match="does not confirm"):
        tkperf.run(plan, "n", folder=tmp_path, ask=lambda question: question.what)
    assert set(scratch.read_bytes()) == {0xA5}
    assert [path.name for path in tmp_path.iterdir()] == ["scratch.img"]


def test_a_name_that_is_taken_or_impossible(tmp_path: Path) -> None:
    """A run name that is already used or that is not possible as a file name is refused before the device is opened."""
    plan = tkperf.make_plan("ssd", "sim:sata-ssd", profile="quick", tests=["lat"])
    tkperf.run(plan, "once", folder=tmp_path)
    with pytest.raises(RunFileError, match="not overwritten"):
        tkperf.run(plan, "once", folder=tmp_path)
    with pytest.raises(UsageError, match="becomes a file name"):
        tkperf.run(plan, "../once", folder=tmp_path)


def test_a_missing_file_is_our_error(tmp_path: Path) -> None:
    """A missing run file causes an error of tkperf and not an exception of SQLite."""
    with pytest.raises(RunFileError, match="there is no run file"):
        tkperf.load(tmp_path / "none.tkperf")


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"jobs": "4"}, "jobs: '4' is not of type int"),
        ({"jobs": 2.5}, "jobs: '2.5' is not of type int"),
        ({"jobs": True}, "jobs: 'True' is not of type int"),
        ({"step_s": "5"}, "step_s: '5' is not of type int or float"),
        ({"tests": "tp"}, "tests: 'tp' is a single text. Pass a list of names"),
        ({"tests": None}, "tests: 'None' is not of type tuple"),
        ({"active_range": 5}, "active_range: '5' is not of type str"),
        ({"size": 1 << 30}, "size: '1073741824' is not of type str"),
        ({"profile": 5}, "profile: '5' is not of type str or Profile"),
        ({"profile": ""}, "the name of the profile is empty. Omit the profile, or pass its name"),
        ({"no_purge": "no"}, "no_purge: 'no' is not of type bool"),
        ({"raid": "x"}, "raid: 'x' is not of type RaidConfig"),
    ],
)
def test_a_wish_of_another_type_is_named(wish: dict[str, object], message: str) -> None:
    """An argument of the wrong type causes one clear error before tkperf accesses the device."""
    with pytest.raises(UsageError) as caught:
        tkperf.make_plan("ssd", "sim:sata-ssd", **wish)
    assert str(caught.value) == message


def test_a_path_with_a_zero_byte_is_no_device() -> None:
    """A path with a zero byte is refused as a device, because no system call accepts such a path."""
    with pytest.raises(UsageError, match="a path cannot contain a zero byte"):
        tkperf.make_plan("ssd", "a\0b")


def test_a_profile_may_be_given_as_a_path(tmp_path: Path) -> None:
    """A profile that is given as a Path is read from this file, even if the file has the name of a shipped profile."""
    path = tmp_path / "quick"
    path.write_text((Path(__file__).parents[1] / "short.toml").read_text())
    assert tkperf.make_plan("ssd", "sim:sata-ssd", profile=path).profile.name == "short"
