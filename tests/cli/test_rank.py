"""``tkperf rank`` lists the run files of folders in the order of one figure, and reads each file once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.builders import run_info, simulate
from tests.fleets import vary_run_file
from tkperf.cli.main import cli
from tkperf.model.errors import RunFileError, UsageError
from tkperf.pipeline import result_cache
from tkperf.procedures import SSD_TESTS


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder. It contains the runs of two drives in two folders, the run of a simulated drive, a file that is
    not a run file, and a link to a run file.
    """
    folder = tmp_path_factory.mktemp("library")
    source = folder / "source"
    below = folder / "runs/below"
    for each in (source, below):
        each.mkdir(parents=True)
    drive = {"kind": "block device", "interface": "NVMe"}
    suite = {name: SSD_TESTS[name] for name in ("iops", "lat")}
    for name, preset, place in (("fast", "client-tlc", below), ("slow", "sata-ssd", below.parent)):
        simulate(source, run_info(name=name, ioengine="io_uring"), preset, suite=suite)
        facts = {**drive, "model": f"Model {name}", "serial": name, "capacity_bytes": 960_197_124_096}
        vary_run_file(source / "run.tkperf", place / f"{name}.tkperf", device=facts)
        (source / "run.tkperf").unlink()
    simulate(source, run_info(name="model"), "client-tlc", suite=suite)
    (source / "run.tkperf").rename(below / "model.tkperf")
    (below / "bad.tkperf").write_text("no run file")
    (below / "link.tkperf").symlink_to("fast.tkperf")
    return folder / "runs"


def call(*words: object) -> Result:
    return CliRunner().invoke(cli, ["rank", *map(str, words)])


def test_folders_are_looked_through(library: Path) -> None:
    """tkperf follows no link in a folder. It names each file that cannot be read, and ranks the other runs."""
    result = call(library)
    assert result.exception is None
    assert "fast is the best of 2 drives at random reads" in result.stdout
    assert "2 of 3 runs ranked: 1 SIMULATED" in result.stdout
    assert "left out" in result.stderr
    assert "bad.tkperf" in result.stderr
    lines = [line for line in result.stdout.splitlines() if line.startswith(("1. ", "2. ", "model"))]
    assert [line.split()[:2] for line in lines[:2]] == [["1.", "fast"], ["2.", "slow"]]
    assert "SIMULATED" in lines[2]


def test_a_second_call_analyses_nothing(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The figures of unchanged files are cached. A second call therefore analyses no run, even if it ranks by another
    figure.
    """
    first = json.loads(call(library, "--json").stdout)

    def fail(*_: object) -> object:
        raise AssertionError("a file was analysed again")

    monkeypatch.setattr(result_cache, "read_results", fail)
    files = [library / "below/fast.tkperf", library / "slow.tkperf"]
    again = json.loads(call(*files, "--json").stdout)
    assert again["ranked"] == first["ranked"]
    assert call(*files, "--by", "single-write").exception is None


def test_json_has_the_reasons(library: Path) -> None:
    """The JSON contains the reason for each run that is not ranked."""
    document = json.loads(call(library, "--json", "--by", "random-write").stdout)
    assert (document["schema"], document["figure"], document["simulated"]) == (
        "tkperf-ranking/1",
        "random_write",
        False,
    )
    assert [run["place"] for run in document["ranked"]] == [1, 2]
    (model,) = document["not_ranked"]
    assert model["simulated"]
    assert model["not_ranked"].startswith("SIMULATED")


@pytest.mark.parametrize("fact", ["model=model FAST", "capacity=960gb", "interface=NVMe", "form=not known"])
def test_only_drives_with_a_fact(library: Path, fact: str) -> None:
    """``--only`` selects the runs whose drive has the given fact. Spaces and capital letters do not matter."""
    document = json.loads(call(library, "--json", "--only", fact).stdout)
    names = {run["run"] for run in (*document["ranked"], *document["not_ranked"])}
    assert "fast" in names
    assert ("slow" in names) == (not fact.startswith("model"))
    assert ("model" in names) == fact.startswith("form")


def test_files_hold_the_same(library: Path, tmp_path: Path) -> None:
    """The HTML, CSV and Markdown files contain all runs of the ranking."""
    files = [tmp_path / f"ranking.{kind}" for kind in ("html", "csv", "md")]
    result = call(library, *sum(zip(("--html", "--csv", "--markdown"), map(str, files), strict=True), ()))
    assert result.exception is None
    for file in files:
        text = file.read_text()
        assert all(name in text for name in ("fast", "slow", "SIMULATED"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ("--only", "modl=x"),
            "NAME is one of model, firmware, capacity, interface, form, profile; did you mean model?",
        ),
        (("--only", "model=x"), "none of these 3 runs has model=x: model is M, Model fast, Model slow"),
        (("--json", "--csv", "-"), "--json also writes to stdout"),
    ],
)
def test_wrong_calls(library: Path, words: tuple[str, ...], says: str) -> None:
    error = call(library, *words).exception
    assert isinstance(error, UsageError)
    assert says in str(error)


def test_nothing_to_read(tmp_path: Path) -> None:
    """A folder without run files, and a folder without any readable run file, lead to an error."""
    error = call(tmp_path).exception
    assert isinstance(error, UsageError)
    assert "there is no run file (NAME.tkperf)" in str(error)
    (tmp_path / "bad.tkperf").write_text("no run file")
    assert isinstance(call(tmp_path).exception, RunFileError)
