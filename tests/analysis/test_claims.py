"""Claims: met, not met, not measured, with the right margin; mistakes name their key."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner
from rich.console import Console

from tests.builders import run_info, simulate
from tkperf.analysis.claims import State, check_claims, parse_claims
from tkperf.analysis.results import RunResult
from tkperf.cli.check import print_findings
from tkperf.cli.main import cli
from tkperf.errors import ClaimsNotMetError, UsageError
from tkperf.workload import Cell

CLAIM = """
[[claim]]
test = "iops"
metric = "{metric}"
read_percent = {read_percent}
block_size = "4k"
{limit}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


@pytest.fixture(scope="module")
def result(folder: Path) -> RunResult:
    return simulate(folder, run_info())


def claim(limit: str, metric: str = "iops", read_percent: int = 100) -> str:
    return CLAIM.format(limit=limit, metric=metric, read_percent=read_percent)


def never(_path: Path) -> RunResult:
    raise AssertionError("no baseline is named")


def test_limits_are_inclusive_and_margins_signed(result: RunResult) -> None:
    """At the limit is met with margin 0; beyond it on the wrong side is not, and says by how much."""
    cell = result.tests[0].sections[0].cell(Cell(100, 4096))
    assert cell is not None
    value = cell.iops
    assert value is not None
    assert cell.latency_mean_us is not None
    text = "".join(
        (
            claim(f"at_least = {value!r}"),
            claim(f"at_least = {2 * value!r}"),
            claim(f"at_least = {value / 2!r}"),
            claim(f"at_most = {cell.latency_mean_us / 2!r}", metric="latency_mean_us"),
        )
    )
    found = check_claims(parse_claims(text, file="c"), result, load=never, folder=Path())
    assert [each.state for each in found] == [
        State.MET, State.NOT_MET, State.MET, State.NOT_MET,
    ]  # fmt: skip
    assert [each.margin_percent for each in found] == pytest.approx([0, -50, 100, -100])


def test_what_was_not_measured_is_never_met(result: RunResult) -> None:
    """A cell that is not in the profile, and a percentile with too few I/Os behind it."""
    text = claim("at_least = 0", read_percent=70) + claim("at_most = 1e9", metric="p99.999_us")
    found = check_claims(parse_claims(text, file="c"), result, load=never, folder=Path())
    cell = result.tests[0].sections[0].cell(Cell(100, 4096))
    assert cell is not None
    expected = State.NOT_MEASURED if cell.percentiles_us["p99.999"] is None else State.MET
    assert [each.state for each in found] == [State.NOT_MEASURED, expected]
    assert found[0].value is None


def test_steady_state_not_reached_is_noted(result: RunResult) -> None:
    """The number is judged, but the reader is told."""
    test = result.tests[0]
    section = replace(test.sections[0], steady=False)
    unsteady = replace(result, tests=(replace(test, sections=(section,)),))
    claims = parse_claims(claim("at_least = 1"), file="c")
    (found,) = check_claims(claims, unsteady, load=never, folder=Path())
    assert found.note == "steady state was not reached"


def test_a_run_meets_itself_as_baseline(result: RunResult, folder: Path) -> None:
    """Every cell of the earlier run becomes a claim; the same run has margin 5 % everywhere."""
    text = '[baseline]\nrun = "run.tkperf"\nwithin_percent = 5\n'
    seen: list[Path] = []

    def load(path: Path) -> RunResult:
        seen.append(path)
        return result

    found = check_claims(parse_claims(text, file="c"), result, load=load, folder=folder)
    assert seen == [folder / "run.tkperf"]
    cells = sum(len(section.cells) for test in result.tests for section in test.sections)
    assert len(found) == cells
    assert {each.state for each in found} == {State.MET}
    assert all(4.7 < (each.margin_percent or 0) < 5.3 for each in found)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", r"holds no \[\[claim\]\]"),
        ("[[claim]]\ntest = 1", r"key claim\[0\].test"),
        (claim("at_least = 1\nat_most = 2"), "either at_least or at_most"),
        (claim(""), "either at_least or at_most"),
        (claim("at_least = 1", metric="speed"), "key metric: 'speed' is not one of"),
        (claim("at_least = 1").replace('"4k"', '"big"'), "key block_size"),
        (claim("at_leest = 1"), "at_leest"),
        ("[baseline]\nrun = 'x'\nwithin_percent = 0", "within_percent"),
        ("= broken", "not valid TOML"),
    ],
)
def test_mistakes_name_file_and_key(text: str, says: str) -> None:
    """Bad claims are an error of the user's, with the place."""
    with pytest.raises(UsageError, match=says) as raised:
        parse_claims(text, file="claims.toml")
    assert "claims.toml" in str(raised.value)


def test_the_command(result: RunResult, folder: Path, tmp_path: Path) -> None:
    """Table, JSON and JUnit tell the same; the exit code is 1 unless all is met."""
    claims = tmp_path / "claims.toml"
    claims.write_text(claim("at_least = 1") + claim("at_least = 1e12"))
    arguments = ["check", str(folder / "run.tkperf"), str(claims)]
    junit = tmp_path / "junit.xml"
    ran = CliRunner().invoke(cli, [*arguments, "--json", "--junit", str(junit)])
    assert isinstance(ran.exception, ClaimsNotMetError)
    assert ran.exception.exit_code == 1
    assert [each["state"] for each in json.loads(ran.stdout)] == ["met", "not met"]
    suite = ET.parse(junit).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    claims.write_text(claim("at_least = 1"))
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    missing = CliRunner().invoke(cli, [*arguments[:2], str(tmp_path / "none.toml")])
    assert isinstance(missing.exception, UsageError)


def test_text_from_outside_is_text(result: RunResult, folder: Path, tmp_path: Path) -> None:
    """A source with markup and escape sequences is shown as it is, without what is not printable."""
    claims = tmp_path / "claims.toml"
    source = "see [/b] \\u001b[2J\\u202e"
    claims.write_text(claim("at_least = 1") + f'source = "{source}"\n')
    ran = CliRunner().invoke(cli, ["check", str(folder / "run.tkperf"), str(claims)])
    assert ran.exit_code == 0, ran.exception
    assert "see [/b]" in ran.stdout
    assert "\x1b" not in ran.stdout
    hostile = replace(result, info=replace(result.info, notices=("[/b]\x1b[2J",)))
    file = io.StringIO()
    found = check_claims(
        parse_claims(claim("at_least = 1"), file="c"), result, load=never, folder=Path()
    )
    print_findings(found, hostile, Console(file=file))
    assert file.getvalue().startswith("[/b][2J\n")


def test_a_section_of_the_report(result: RunResult, folder: Path, tmp_path: Path) -> None:
    """The HTML has the claims with their state and margin; without claims, no such section."""
    claims, page = tmp_path / "claims.toml", tmp_path / "page.html"
    claims.write_text(claim("at_least = 1e12"))
    arguments = ["report", str(folder / "run.tkperf"), "-o", str(page)]
    assert CliRunner().invoke(cli, [*arguments, "--claims", str(claims)]).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert 'id="claims"' in text
    assert "not met" in text
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    assert 'id="claims"' not in page.read_text(encoding="utf-8")
