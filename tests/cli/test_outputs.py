"""Several outputs of one command. No output overwrites another output, and a foreseeable error is reported before any
output is written.
"""

from __future__ import annotations

import json
import sys
import zipfile
from importlib import metadata
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result

import tkperf
from tests.builders import forget_renderers, run_info, simulate
from tests.fleets import vary_run_file
from tkperf.cli.main import cli
from tkperf.model.errors import UsageError
from tkperf.render.packages import packages_of

PLOTS = {"compIOPSPlt.png", "compLATPlt.png", "compTPPlt.png", "compWriteSatIOPSPlt.png"}
CLAIMS = "[[claim]]\ntest='iops'\nmetric='iops'\nread_percent=0\nblock_size='4k'\nat_least=1\n"


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    simulate(folder, run_info())
    return folder / "run.tkperf"


@pytest.fixture
def here(simulated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder that contains two run files and a claims file, and return the folder."""
    for name in ("a", "b"):
        vary_run_file(simulated, tmp_path / f"{name}.tkperf", device={})
    (tmp_path / "claims.toml").write_text(CLAIMS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(command: str) -> Result:
    return CliRunner().invoke(cli, command.split())


def made(folder: Path) -> set[str]:
    given = {"a.tkperf", "b.tkperf", "claims.toml"}
    return {path.name for path in folder.iterdir()} - given


def test_a_report_has_series_for_other_tools(here: Path) -> None:
    """If a report is written in OpenMetrics and in line protocol, both files contain every second of the run. No other
    file is created.
    """
    run_of = run("report a.tkperf --openmetrics a.om --line-protocol a.lp")
    assert (run_of.exit_code, made(here)) == (0, {"a.om", "a.lp"})
    lines = (here / "a.lp").read_text().splitlines()
    seconds = [line for line in lines if line.startswith("tkperf_second,")]
    text = (here / "a.om").read_text()
    assert text.endswith("# EOF\n")
    points = [line for line in text.splitlines() if line.startswith("tkperf_write_iops{")]
    assert len(points) == len(seconds) > 100
    # Both files contain the time of the same second, one in s and the other in ns.
    assert float(points[0].split()[-1]) == pytest.approx(int(seconds[0].split()[-1]) / 1e9)


@pytest.mark.parametrize(
    "command",
    [
        "report a.tkperf --openmetrics x --line-protocol x",
        "report a.tkperf --json x --xml x",
        "report a.tkperf --json x --xml ./y/../x",
        "report a.tkperf --json - --markdown -",
        "report a.tkperf --csv x --json x",
        "report a.tkperf --csv x --json x/cells.csv",
        "report a.tkperf --csv x --parquet x/cells.csv",
        "report a.tkperf --json x --csv -",
        "report a.tkperf --json x --markdown b.tkperf",
        "report a.tkperf --json x --xml x/y",
        "compare a.tkperf b.tkperf --csv x --html x",
        "compare a.tkperf b.tkperf -f x --csv x/comparison.csv",
        "compare a.tkperf b.tkperf -f x --csv x",
        "compare a.tkperf b.tkperf -z -f x --csv x/comparison.zip",
        "compare a.tkperf b.tkperf -f -",
        "check a.tkperf claims.toml --json --junit -",
    ],
)
def test_outputs_in_each_others_way_are_refused(here: Path, command: str) -> None:
    """Two outputs with the same destination are refused before either is written, even if their paths differ."""
    done = run(command)
    assert isinstance(done.exception, UsageError), done.output
    assert made(here) == set()


def test_a_link_to_another_output_is_the_same_place(here: Path) -> None:
    (here / "link").symlink_to(here / "x")
    assert isinstance(run("report a.tkperf --json x --xml link").exception, UsageError)
    assert not (here / "x").exists()


@pytest.mark.parametrize(
    ("option", "missing"), [("--parquet tables", "pyarrow"), ("-o x.html", "jinja2"), ("--pdf x.pdf", "typst")]
)
def test_a_missing_package_is_found_before_anything_is_written(
    here: Path, monkeypatch: pytest.MonkeyPatch, option: str, missing: str
) -> None:
    """A missing package is found before any output is written. The error contains the name of the package."""
    monkeypatch.setitem(sys.modules, missing, None)
    forget_renderers(monkeypatch)
    done = run(f"report a.tkperf --csv csv --json x.json {option}")
    assert isinstance(done.exception, UsageError), done.output
    assert f"({missing}" in str(done.exception)
    assert made(here) == set()


def test_charts_that_could_not_be_drawn_are_found_before_anything_is_written(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing Vega package is found before any output is written. Few reports need Vega, and tkperf loads Vega late
    for these reports. tkperf therefore checks beforehand whether Vega is installed.
    """

    def version(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", version)
    monkeypatch.delitem(sys.modules, "tkperf.render.html", raising=False)
    done = run("report a.tkperf --csv csv --json x.json -o x.html")
    assert isinstance(done.exception, UsageError), done.output
    assert "(vl-convert-python is missing)" in str(done.exception)
    assert made(here) == set()


def test_how_to_install_fits_the_set_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The command that installs a missing package depends on how tkperf was installed. The command never installs
    tkperf from a package index, because another project may have the name tkperf in the index.
    """
    checkout = Path(tkperf.__file__).parents[2]

    def said(extra: str = "parquet") -> str:
        with pytest.raises(UsageError) as raised, packages_of(extra, whose="it needs"):
            raise ImportError(name="pyarrow")
        return str(raised.value)

    monkeypatch.setattr(sys, "prefix", str(checkout / ".venv"))
    assert said().endswith(f"(pyarrow is missing): sh {checkout}/scripts/setup.sh parquet")
    monkeypatch.setattr(sys, "prefix", "/usr")
    wheel = f"tkperf-{tkperf.__version__}-py3-none-any.whl"
    assert said().endswith(f"install tkperf's wheel again as '{wheel}[report,parquet]'")
    assert said("report").endswith(f"as '{wheel}[report]'")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    (tmp_path / "more-packages.txt").write_text("make install EXTRAS='report {extra}'\n")
    assert said().endswith("(pyarrow is missing): make install EXTRAS='report parquet'")


def test_an_impossible_xml_says_that_nothing_was_written(here: Path) -> None:
    """If a run cannot be expressed in TKperf's XML format, ``report --xml`` is refused, and the other outputs are not
    written either.
    """
    (here / "a.tkperf").unlink()
    simulate(here, run_info(suite="hdd"))
    (here / "run.tkperf").rename(here / "a.tkperf")
    done = run("report a.tkperf --json x.json --xml x.xml")
    assert "wrote none of the outputs" in str(done.exception)
    assert made(here) == set()


def test_a_dash_is_stdout(here: Path) -> None:
    """If the name of an output is a dash, only the document is written to standard output, and no file is created."""
    assert json.loads(run("report a.tkperf --json -").stdout)["schema"]
    assert run("report a.tkperf --markdown - --xml x.xml").stdout.startswith("# ")
    assert run("report a.tkperf -o -").stdout.startswith("<!DOCTYPE html>")
    assert CliRunner().invoke(cli, ["report", "a.tkperf", "--pdf", "-"]).stdout_bytes[:4] == b"%PDF"
    assert run("compare a.tkperf b.tkperf --csv -").stdout.startswith("run,target,")
    assert ET.fromstring(run("check a.tkperf claims.toml --junit -").stdout).tag == "testsuite"
    assert made(here) == {"x.xml"}


def test_a_comparisons_folder_holds_all_of_it(here: Path) -> None:
    """The folder of the option ``-f`` contains the comparison in every format, even if the call also requests other
    outputs. The zip file contains the same files.
    """
    done = run("compare a.tkperf b.tkperf -f all -z --csv one.csv --html one.html")
    assert done.exit_code == 0, done.output
    kinds = ("html", "pdf", "csv", "json", "md")
    expected = {*(f"comparison.{kind}" for kind in kinds), *PLOTS}
    assert made(here) == {"all", "one.csv", "one.html"}
    assert made(here / "all") == {*expected, "comparison.zip"}
    with zipfile.ZipFile(here / "all/comparison.zip") as packed:
        assert set(packed.namelist()) == expected
    assert (here / "one.csv").read_text() == (here / "all/comparison.csv").read_text()
