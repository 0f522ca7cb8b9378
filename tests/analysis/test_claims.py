"""A claim is met, not met or not measured, and its margin is correct. An error about a mistake in a claim names the
key.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner
from rich.console import Console

from tests.analysis.made_up import made_up_run, made_up_section
from tests.builders import at, run_info, simulate, work
from tkperf.analysis.claim_results import Checked, ClaimState
from tkperf.analysis.claims import check_claims
from tkperf.analysis.claims_file import parse_claims
from tkperf.analysis.results import RunResult
from tkperf.cli.main import cli
from tkperf.model.errors import ClaimsNotMetError, RunFileError, UsageError
from tkperf.model.quantity import IOPS, IOS, LATENCY_MEAN
from tkperf.model.record import RunStatus
from tkperf.model.workload import Access, Zone
from tkperf.page.check import build_claims_page, find_check_warnings
from tkperf.page.view import build_view
from tkperf.pipeline.api import read_and_check
from tkperf.render.export_check import render_check_json, render_junit
from tkperf.render.terminal.page_text import print_check
from tkperf.runfile.writer import RunFileWriter
from tkperf.runner.events import RunStarted

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
    """A value at its limit meets the claim with a margin of 0. A value beyond the limit does not meet the claim and has
    a negative margin.
    """
    cell = at(result.tests[0].sections[0], 100, 4096)
    assert cell is not None
    value, mean_us = cell.value(IOPS), cell.value(LATENCY_MEAN)
    assert value is not None
    assert mean_us is not None
    text = "".join(
        (
            claim(f"at_least = {value!r}"),
            claim(f"at_least = {2 * value!r}"),
            claim(f"at_least = {value / 2!r}"),
            claim(f"at_most = {mean_us / 2!r}", metric="latency_mean_us"),
        )
    )
    found = check_claims(parse_claims(text, file="c"), result, load=never, folder=Path()).claim_results
    assert [each.state for each in found] == [ClaimState.MET, ClaimState.NOT_MET, ClaimState.MET, ClaimState.NOT_MET]
    assert [each.margin_percent for each in found] == pytest.approx([0, -50, 100, -100])


def test_what_was_not_measured_is_never_met(result: RunResult) -> None:
    """A claim is never met if the profile does not measure the cell of the claim, or if fewer than ten I/Os lie beyond
    the percentile of the claim.
    """
    cell = at(result.tests[0].sections[0], 100, 4096)
    # so only one to nine I/Os are expected beyond the 99.999th percentile
    assert 100_000 < (cell.value(IOS) or 0) < 1_000_000
    rare = claim("at_most = 1e9", metric="p99.999_us") + claim("at_least = 0", metric="p99.999_us")
    text = claim("at_least = 0", read_percent=70) + rare + claim("at_most = 1e9", metric="p99_us")
    found = check_claims(parse_claims(text, file="c"), result, load=never, folder=Path()).claim_results
    assert [each.state for each in found] == [*[ClaimState.NOT_MEASURED] * 3, ClaimState.MET]
    assert [each.value for each in found[:3]] == [None] * 3
    too_few = "fewer than 10 I/Os expected beyond that percentile"
    assert [each.note for each in found[1:]] == [too_few, too_few, None]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"iops"', '"tp"', "the run has no test tp; it has iops"),
        ('block_size = "4k"', 'block_size = "4k"\nsection = "X"', "no section of iops has that name"),
        ("read_percent = 100", "read_percent = 70", "that mix and block size was not run there, but "),
        ('metric = "iops"', 'metric = "no_backlog_iops"', "tkperf did not look for it there"),
    ],
)
def test_what_was_not_measured_says_why(result: RunResult, old: str, new: str, reason: str) -> None:
    """If a claim was not measured, the note of the claim names the first condition that the run does not meet. The note
    also states what the run contains instead.
    """
    text = claim("at_least = 1").replace(old, new, 1)
    alone = replace(result, tests=result.tests[:1])
    (found,) = check_claims(parse_claims(text, file="c"), alone, load=never, folder=Path()).claim_results
    assert found.state is ClaimState.NOT_MEASURED
    assert found.note is not None
    assert found.note.startswith(reason)


def test_steady_state_not_reached_is_noted(result: RunResult) -> None:
    """A claim on a section without steady state is judged, and a note states that steady state was not reached."""
    test = result.tests[0]
    section = replace(test.sections[0], steady=False)
    unsteady = replace(result, tests=(replace(test, sections=(section,)),))
    claims = parse_claims(claim("at_least = 1"), file="c")
    (found,) = check_claims(claims, unsteady, load=never, folder=Path()).claim_results
    assert found.note == "steady state was not reached"


def test_a_run_meets_itself_as_baseline(result: RunResult, folder: Path) -> None:
    """Every cell of a baseline run becomes a claim. A run that is its own baseline meets all these claims with a margin
    of 5 %.
    """
    text = '[baseline]\nrun = "run.tkperf"\nwithin_percent = 5\n'
    seen: list[Path] = []

    def load(path: Path) -> RunResult:
        seen.append(path)
        return result

    found = check_claims(parse_claims(text, file="c"), result, load=load, folder=folder).claim_results
    assert seen == [folder / "run.tkperf"]
    cells = sum(len(section.cells) for test in result.tests for section in test.sections)
    assert len(found) == cells
    assert {each.state for each in found} == {ClaimState.MET}
    assert all(4.7 < (each.margin_percent or 0) < 5.3 for each in found)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", r"contains no \[\[claim\]\]"),
        ("[[claim]]\ntest = 1", r"claim 1, key test: 1 is not allowed"),
        (claim("at_least = 1\nat_most = 2"), "either at_least or at_most"),
        (claim(""), "either at_least or at_most"),
        (claim("at_least = 1", metric="speed"), "key metric: 'speed' is not the name of a metric"),
        (claim("at_least = 1").replace('"4k"', '"big"'), "key block_size"),
        (claim("at_leest = 1"), "at_leest"),
        ("[baseline]\nrun = 'x'\nwithin_percent = 0", "within_percent"),
        ("[baseline]\nrun = 'x'\nwithin_percent = 100", "within_percent"),
        ("[baseline]\nrun = 'x'\nwithin_percent = nan", "within_percent"),
        ("[baseline]\nrun = 'x'\nwithin_percent = inf", "within_percent"),
        (
            claim("at_least = nan"),
            "claim 1, key at_least: the limit must be a finite number of 0 or more, but it is nan",
        ),
        (claim("at_least = inf"), "key at_least: the limit must be a finite number of 0 or more, but it is inf"),
        (claim("at_most = inf"), "key at_most: the limit must be a finite number of 0 or more, but it is inf"),
        (claim("at_least = -1"), "key at_least: the limit must be a finite number of 0 or more"),
        ("= broken", "not valid TOML"),
        ("a = " + "[" * 5000, "nested too deeply"),
        ("a = " + "{a = " * 5000, "nested too deeply"),
        (claim("at_least = " + "9" * 5000), "not valid TOML: Exceeds the limit"),
        (claim("at_least = 1").replace('"4k"', "0x" + "f" * 20_000), r"claim 1, key block_size: a number that large"),
        (claim("at_least = 1").replace("4k", "9" * 1_000_002), "key block_size: .* not a size"),
    ],
)
def test_mistakes_name_file_and_key(text: str, says: str) -> None:
    """A mistake in a claims file is a usage error that names the file and the key."""
    with pytest.raises(UsageError, match=says) as raised:
        parse_claims(text, file="claims.toml")
    assert "claims.toml" in str(raised.value)


def test_a_baseline_of_an_impossible_name_is_a_clear_error(result: RunResult, tmp_path: Path) -> None:
    """A baseline name that is too long for a file causes an error about the file, not a traceback."""
    claims = tmp_path / "claims.toml"
    claims.write_text(f'[baseline]\nrun = "{"a" * 5000}"\nwithin_percent = 5\n')
    with pytest.raises(RunFileError, match=r"cannot read .*: File name too long"):
        read_and_check(claims, result)


def test_the_command(result: RunResult, folder: Path, tmp_path: Path) -> None:
    """The table, JSON and JUnit output of ``tkperf check`` agree. The exit code is 1 unless all claims are met."""
    claims = tmp_path / "claims.toml"
    claims.write_text(claim("at_least = 1") + claim("at_least = 1e12"))
    arguments = ["check", str(folder / "run.tkperf"), str(claims)]
    junit = tmp_path / "junit.xml"
    ran = CliRunner().invoke(cli, [*arguments, "--json", "--junit", str(junit)])
    assert isinstance(ran.exception, ClaimsNotMetError)
    assert ran.exception.exit_code == 1
    found = json.loads(ran.stdout)["findings"]
    assert [each["state"] for each in found] == ["met", "not met"]
    suite = ET.parse(junit).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    claims.write_text(claim("at_least = 1"))
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    empty = tmp_path / "empty.tkperf"
    writer = RunFileWriter(empty)
    writer(RunStarted(info=run_info(name="empty"), tests=("iops",)))
    writer.close()
    claims.write_text('[baseline]\nrun = "empty.tkperf"\nwithin_percent = 5\n')
    nothing = CliRunner().invoke(cli, arguments)
    assert isinstance(nothing.exception, UsageError)
    assert "nothing could be checked" in str(nothing.exception)
    missing = CliRunner().invoke(cli, [*arguments[:2], str(tmp_path / "none.toml")])
    assert isinstance(missing.exception, UsageError)


def test_text_from_outside_is_text(result: RunResult, folder: Path, tmp_path: Path) -> None:
    """If the source of a claim contains markup and escape sequences, the source is shown as plain text, without
    unprintable characters.
    """
    claims = tmp_path / "claims.toml"
    source = "see [/b] \\u001b[2J\\u202e"
    claims.write_text(claim("at_least = 1") + f'source = "{source}"\n')
    ran = CliRunner().invoke(cli, ["check", str(folder / "run.tkperf"), str(claims)])
    assert ran.exit_code == 0, ran.exception
    assert "see [/b]" in ran.stdout
    assert "\x1b" not in ran.stdout
    hostile = replace(result, info=replace(result.info, notices=("[/b]\x1b[2J",)))
    file = io.StringIO()
    checked = check_claims(parse_claims(claim("at_least = 1"), file="c"), result, load=never, folder=Path())
    print_check(build_claims_page(replace(checked, result=hostile)), Console(file=file))
    assert "\n[/b][2J\n" in file.getvalue()


BASELINE = '[baseline]\nrun = "earlier.tkperf"\nwithin_percent = 10\n'


def check_against(earlier: RunResult, result: RunResult) -> Checked:
    claims = parse_claims(BASELINE, file="c")
    return check_claims(claims, result, load=lambda _: earlier, folder=Path("here"))


def one_test(test: str, values: Sequence[float | None], **section: Any) -> dict[str, Any]:
    return {test: [made_up_section("S", {work(0, 4096): values}, **section)]}


@pytest.mark.parametrize(
    ("test", "seen", "state", "margin"),
    [
        # The baseline of 100 and the tolerance of 10 % allow rates of at least 90 and latencies of at most 110.
        ("iops", 89, ClaimState.NOT_MET, -100 / 90),
        ("iops", 90, ClaimState.MET, 0),
        ("iops", 117, ClaimState.MET, 30),
        ("tp", 89, ClaimState.NOT_MET, -100 / 90),
        ("lat", 111, ClaimState.NOT_MET, -100 / 110),
        ("lat", 55, ClaimState.MET, 50),
        ("fio", 89, ClaimState.NOT_MET, -100 / 90),
        ("fio", 90, ClaimState.MET, 0),
    ],
)
def test_a_baseline_allows_what_it_says(test: str, seen: float, state: ClaimState, margin: float) -> None:
    """A baseline of 100 with a tolerance of 10 % allows rates of at least 90 and latencies of at most 110. This rule
    also applies to imports of fio's results. The expected margins were calculated by hand.
    """
    earlier = made_up_run("old", one_test(test, (100.0, 100.0)))
    (found,) = check_against(earlier, made_up_run("new", one_test(test, (seen, seen)))).claim_results
    assert found.state is state
    assert found.margin_percent == pytest.approx(margin)
    assert found.source == "old within 10 %"


@pytest.mark.parametrize("tests", [{}, {"iops": []}, one_test("iops", (None, None))])
def test_a_baseline_without_results_is_a_mistake(tests: dict[str, Any]) -> None:
    """A baseline without results is refused, even if other claims are met, because a claim that was not checked is not
    a success.
    """
    empty = made_up_run("old", tests)
    with pytest.raises(UsageError, match=r"here/earlier.tkperf: nothing could be checked"):
        check_against(empty, made_up_run("new", one_test("iops", (100.0,))))
    with_claim = parse_claims(claim("at_least = 0", read_percent=0) + BASELINE, file="c")
    with pytest.raises(UsageError, match="nothing could be checked"):
        check_claims(with_claim, made_up_run("new", one_test("iops", (100.0,))), load=lambda _: empty, folder=Path())


@pytest.mark.parametrize(("earlier", "now"), [("fio", "iops"), ("tp", "fio")])
def test_a_baseline_of_the_other_kind_is_a_mistake(earlier: str, now: str) -> None:
    """If the baseline is of another kind than the run, tkperf refuses it with this reason and does not list missing
    values. An example is a run of tkperf with a baseline that was imported from fio's files.
    """
    runs = [made_up_run(test, one_test(test, (100.0,))) for test in (earlier, now)]
    with pytest.raises(UsageError, match=r"here/earlier.tkperf: .* files of fio can be compared only with each"):
        check_against(runs[0], runs[1])


def test_a_baseline_of_other_conditions_is_said() -> None:
    """A baseline is used even if it was not steady, had another profile, was interrupted or lacks values. The notes of
    the results mention each of these conditions.
    """
    cells = {work(0, 4096): (100.0, 100.0), work(100, 4096): (None, None)}
    earlier = made_up_run(
        "old",
        {"iops": [made_up_section("S", cells, steady=False)]},
        status=RunStatus.INTERRUPTED,
        profile_name="tkperf-2.2",
        profile={"iops": {"step_s": 60}},
        notices=("FILE TARGET",),
    )
    later = made_up_run(
        "new", one_test("iops", (100.0, 100.0), host_limited=True, steady=False), profile={"iops": {"step_s": 1}}
    )
    checked = check_against(earlier, later)
    assert [(each.state, each.note) for each in checked.claim_results] == [
        (ClaimState.MET, "the baseline was not steady; steady state was not reached; limited by the host's CPUs")
    ]
    assert tuple(find_check_warnings(checked)) == (
        "profile differs (baseline: tkperf-2.2, run: quick)",
        "numbers of the profiles differ: iops.step_s (baseline: 60, run: 1)",
        "baseline: FILE TARGET",
        "baseline: the run is interrupted",
        "baseline: S did not reach steady state",
        "baseline: 1 result without a value, so not checked",
    )
    same = check_against(later, replace(later, status=RunStatus.FAILED))
    assert next(find_check_warnings(same)) == "run: the run is failed"


def test_the_report_has_the_warnings_below_its_claims(result: RunResult) -> None:
    """The report contains the same remarks about a baseline as the output in the terminal."""
    earlier = replace(result, info=replace(result.info, profile_name="other"))
    view = build_view(result, check_against(earlier, result))
    assert view.claims is not None
    assert "profile differs (baseline: other, run: quick)" in view.claims.notes
    assert build_view(result).claims is None


def test_documents_say_what_the_run_says(result: RunResult) -> None:
    """The JSON and JUnit documents of a check contain the notice SIMULATED. A name that XML cannot represent does not
    damage the JUnit document.
    """
    notice = "SIMULATED: <model> \x1b[2J\ud800"
    info = replace(result.info, name="x\0<y>", notices=(notice,))
    earlier = replace(result, info=replace(info, fio_version="fio-3.1"))
    checked = check_against(earlier, replace(result, info=info))
    document = json.loads(render_check_json(checked))
    assert document["schema"] == "tkperf-check/1"
    assert document["run"] == info.name
    assert document["notices"] == [notice]
    assert document["warnings"] == list(find_check_warnings(checked))
    assert len(document["findings"]) == len(checked.claim_results)
    suite = ET.fromstring(render_junit(checked))
    assert suite.get("name") == "tkperf check x<y>"
    said = [(each.get("name"), each.get("value")) for each in suite.iterfind("properties/property")]
    assert said[0] == ("notice", "SIMULATED: <model> [2J")
    assert said[1][0] == "warning"
    assert "fio is not known of every run (baseline: fio-3.1" in str(said[1][1])
    assert suite[0].tag == "properties"


def test_a_section_of_the_report(result: RunResult, folder: Path, tmp_path: Path) -> None:
    """A report with claims contains a section with the claims, their states and their margins. A report without claims
    has no such section.
    """
    claims, page = tmp_path / "claims.toml", tmp_path / "page.html"
    claims.write_text(claim("at_least = 1e12"))
    arguments = ["report", str(folder / "run.tkperf"), "-o", str(page)]
    assert CliRunner().invoke(cli, [*arguments, "--claims", str(claims)]).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert 'id="claims"' in text
    assert "not met" in text
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    assert 'id="claims"' not in page.read_text(encoding="utf-8")


def test_a_claim_on_a_whole_stream_says_so(result: RunResult, tmp_path: Path) -> None:
    """The result of a claim on a stream without a steady-state window has a note, because the values include the fresh
    part at the beginning of the stream.
    """
    claims = tmp_path / "claims.toml"
    claims.write_text(
        '[[claim]]\ntest = "writesat"\nmetric = "iops"\nread_percent = 0\nblock_size = "4k"\nat_least = 1\n'
    )
    (section,) = result.tests[3].sections
    assert not section.window
    (finding,) = read_and_check(claims, result).claim_results
    assert finding.note is not None
    assert "whole stream" in finding.note


def test_what_was_not_measured_fails_in_junit(result: RunResult, tmp_path: Path) -> None:
    """In JUnit, a claim about a value that was not measured is an error, because the exit code also counts an unchecked
    claim as not met.
    """
    claims = tmp_path / "claims.toml"
    claims.write_text('[[claim]]\ntest = "iops"\nmetric = "iops"\nread_percent = 1\nblock_size = "4k"\nat_least = 1\n')
    suite = ET.fromstring(render_junit(read_and_check(claims, result)))
    assert (suite.get("errors"), suite.get("skipped")) == ("1", "0")
    assert suite.find("testcase/error") is not None


def test_a_claim_may_be_of_any_test_that_somebody_knows(result: RunResult) -> None:
    """A claim may name a test that the run contains, a test of tkperf, or a test of an import. Any other name is
    refused as a typing error.
    """
    text = claim("at_least = 1")
    newer = replace(result, tests=(replace(result.tests[0], name="xyz"),))
    for test, run, state in (
        ("iops", result, ClaimState.MET),
        ("xyz", newer, ClaimState.MET),
        ("iops", newer, ClaimState.NOT_MEASURED),
        ("fio", result, ClaimState.NOT_MEASURED),
    ):
        claims = parse_claims(text.replace('"iops"', f'"{test}"', 1), file="c.toml")
        (finding,) = check_claims(claims, run, load=never, folder=Path()).claim_results
        assert finding.state is state
    claims = parse_claims(text.replace('"iops"', '"iosp"', 1), file="c.toml")
    with pytest.raises(
        UsageError, match=r"claim 1, key test: 'iosp' is not the name of a test\. Choose one of .*iops, lat"
    ):
        check_claims(claims, result, load=never, folder=Path())


QUANTILES = """
[[claim]]
test = "iops"
metric = "iops"
read_percent = 0
block_size = "4k"
at_least = 1

[[quantiles]]
test = "lat"
read_percent = 0
block_size = "4k"
within_us = { "99.9" = 1000, "50" = 100 }
source = "data sheet"
"""


def test_quantiles_are_a_claim_for_each_percent() -> None:
    """A table of quantiles becomes one claim for each percentage. These claims follow the other claims and are in
    ascending order. Each of them states an upper limit for a latency.
    """
    claims = parse_claims(QUANTILES, file="c.toml").claim
    assert [(each.metric, each.at_most, each.source) for each in claims] == [
        ("iops", None, None),
        ("p50_us", 100, "data sheet"),
        ("p99.9_us", 1000, "data sheet"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (
            '"50" = 100',
            '"51" = 100',
            "quantiles 1, key within_us: '51' is not a supported percentage. Choose one of 50, 90, 95, 99",
        ),
        (
            '"50" = 100',
            '"50" = -1',
            "quantiles 1, key within_us, 50 %: the limit must be a finite number of 0 or more, but it is -1.0",
        ),
        ("within_us", "at_most", "quantiles 1, key at_most"),
        ('{ "99.9" = 1000, "50" = 100 }', "{}", "within_us"),
    ],
)
def test_a_mistake_in_quantiles_is_named(old: str, new: str, reason: str) -> None:
    """A mistake in a table of quantiles is refused with the file, the key and the reason."""
    assert old in QUANTILES
    with pytest.raises(UsageError) as caught:
        parse_claims(QUANTILES.replace(old, new), file="c.toml")
    assert "c.toml" in str(caught.value)
    assert reason in str(caught.value)


BESIDE = {
    'access = "sequential"': replace(work(), access=Access.SEQUENTIAL),
    'zones = "50/10 50/90"': replace(work(), zones=(Zone(50, 10), Zone(50, 90))),
    "compressible_percent = 50": replace(work(), compressible_percent=50),
    "offered_iops = 2000": replace(work(), offered_iops=2000.0),
    "jobs = 2": work(jobs=2),
    "io_depth = 8": work(io_depth=8),
}


@pytest.mark.parametrize("condition", BESIDE)
def test_a_claim_names_what_tells_workloads_apart(condition: str) -> None:
    """A claim can name the condition that distinguishes two workloads with the same mix and block size. A claim that
    does not name the condition is not judged.
    """
    named_one = BESIDE[condition]
    other = replace(work(), offered_iops=1000.0) if named_one.offered_iops else work()
    cells = {other: (10.0,), named_one: (70.0,)}
    result = made_up_run("r", {"iops": [made_up_section("S", cells)]})
    text = claim("at_least = 60", read_percent=0)
    claims = parse_claims(f"{text}{condition}\n{text}", file="c")
    named, open_ = check_claims(claims, result, load=never, folder=Path()).claim_results
    assert (named.state, named.value) == (ClaimState.MET, 70.0)
    assert (open_.state, open_.note) == (
        ClaimState.NOT_MEASURED,
        f"measured of several workloads: name {condition.split(maxsplit=1)[0]}",
    )
    for finding in check_against(result, result).claim_results:
        assert finding.margin_percent == pytest.approx(100 / 9)
