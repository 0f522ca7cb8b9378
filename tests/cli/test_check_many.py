"""``tkperf check`` of many runs: a matrix whose cells pass only if nothing speaks against them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result

from tests.builders import run_info, simulate
from tkperf.cli.main import cli
from tkperf.model.errors import ClaimsNotMetError, UsageError

CLAIMS = """
[[claim]]
test = "iops"
metric = "iops"
read_percent = 100
block_size = "4k"
at_least = {limit}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("runs")
    for name, preset in (("good", "sata-ssd"), ("slow", "unsteady")):
        place = made / name
        place.mkdir()
        simulate(place, run_info(name=name), preset)
        shutil.move(place / "run.tkperf", made / f"{name}.tkperf")
    (made / "bad.tkperf").write_text("no run file")
    (made / "low.toml").write_text(CLAIMS.format(limit=1))
    (made / "high.toml").write_text(CLAIMS.format(limit=50_000))
    return made


def check(folder: Path, *arguments: str) -> Result:
    paths = [
        str(folder / word) if word.endswith((".tkperf", ".toml")) else word for word in arguments
    ]
    return CliRunner().invoke(cli, ["check", *paths])


def test_the_answer_comes_first_and_a_failure_is_the_exit_code(folder: Path) -> None:
    done = check(folder, "good.tkperf", "slow.tkperf", "high.toml")
    assert isinstance(done.exception, ClaimsNotMetError)
    assert done.stdout.splitlines()[0] == "1 of 2 pass; slow fails 1 claim"


def test_what_is_not_steady_does_not_pass_though_its_value_is_good(folder: Path) -> None:
    done = check(folder, "good.tkperf", "slow.tkperf", "low.toml", "--json")
    assert isinstance(done.exception, ClaimsNotMetError)
    document = json.loads(done.stdout)
    good, slow = (run["cells"][0] for run in document["runs"])
    assert good["passes"]
    assert not slow["passes"]
    assert slow["text"].startswith("not steady, met ")


def test_a_file_that_cannot_be_read_is_a_row_that_fails(folder: Path, tmp_path: Path) -> None:
    page, words, suites = (str(tmp_path / name) for name in ("c.html", "c.md", "c.xml"))
    done = check(
        folder, "good.tkperf", "bad.tkperf", "low.toml", "--html", page, "--markdown", words, "--junit", suites
    )  # fmt: skip
    assert isinstance(done.exception, ClaimsNotMetError)
    assert done.stdout.startswith("1 of 2 pass; ")
    assert 'class="failed"' in Path(page).read_text()
    assert "**could not be checked**" in Path(words).read_text()
    first, second = ET.parse(suites).getroot()
    assert (first.get("errors"), second.get("errors")) == ("0", "1")


def test_all_pass(folder: Path, tmp_path: Path) -> None:
    """A copy is another run of the drive, and is named."""
    copy = tmp_path / "copy.tkperf"
    shutil.copy(folder / "good.tkperf", copy)
    done = check(folder, "good.tkperf", str(copy), "low.toml")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("2 of 2 pass\n")


def test_a_page_of_one_run_is_the_reports(folder: Path) -> None:
    done = check(folder, "good.tkperf", "low.toml", "--html", "x.html")
    assert isinstance(done.exception, UsageError)
