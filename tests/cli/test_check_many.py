"""``tkperf check`` of many runs prints a matrix. A cell passes only if its value certainly meets the claim."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

import tkperf
from tests.builders import run_info, simulate
from tkperf.analysis.claim_results import CheckedFile, ClaimKind, ClaimState, fold_copies
from tkperf.analysis.claims import check_claims
from tkperf.analysis.claims_file import parse_claims
from tkperf.analysis.results import RunResult
from tkperf.cli.main import cli
from tkperf.model.errors import ClaimsNotMetError, ExitCode
from tkperf.model.record import LeftOut, RunStatus
from tkperf.page.check import build_check_page
from tkperf.page.claim_texts import describe_cells, name_columns
from tkperf.page.marking import list_badges
from tkperf.page.verdict_texts import NoteLevel
from tkperf.render.terminal.page_text import print_check

CLAIMS = """
[[claim]]
test = "iops"
metric = "iops"
read_percent = 100
block_size = "4k"
at_least = {limit}
"""
NOTICE = "SIMULATED: no device was measured"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("runs")
    for name, preset in (("good", "sata-ssd"), ("slow", "unsteady")):
        place = made / name
        place.mkdir()
        simulate(place, run_info(name=name, notices=(NOTICE,)), preset)
        shutil.move(place / "run.tkperf", made / f"{name}.tkperf")
    (made / "bad.tkperf").write_text("no run file")
    (made / "low.toml").write_text(CLAIMS.format(limit=1))
    (made / "high.toml").write_text(CLAIMS.format(limit=1_000_000))
    return made


@pytest.fixture(scope="module")
def good(folder: Path) -> RunResult:
    return tkperf.load(folder / "good.tkperf")


def check(folder: Path, *arguments: str) -> Result:
    paths = [str(folder / word) if word.endswith((".tkperf", ".toml")) else word for word in arguments]
    return CliRunner().invoke(cli, ["check", *paths])


def judge(results: Iterable[RunResult], *claims: str) -> tuple[CheckedFile, ...]:
    read = parse_claims("".join(claims) or CLAIMS.format(limit=1), file="c")
    return tuple(
        CheckedFile(file=f"{number}.tkperf", checked=check_claims(read, result, load=tkperf.load, folder=Path()))
        for number, result in enumerate(results)
    )


def test_the_answer_comes_first_and_a_failure_is_the_exit_code(folder: Path) -> None:
    """The verdict names the drive that fails and the claim that it misses. A drive whose value cannot be judged does
    not count as a failure.
    """
    done = check(folder, "good.tkperf", "slow.tkperf", "high.toml")
    assert isinstance(done.exception, ClaimsNotMetError)
    assert done.stdout.startswith(
        "SIMULATED. Fail: 0 of 2 pass; good misses 1 claim (4 KiB random read IOPS ≥ 1,000,000); "
        "slow: 4 KiB random read IOPS ≥ 1,000,000 not judged (not steady)"
    )


def test_a_report_names_the_claims_that_fail_in_its_verdict(folder: Path) -> None:
    """The verdict of a report names the claims that fail, so that the reader does not have to search the table of
    claims.
    """
    page = folder / "claimed.md"
    claims = ["--claims", str(folder / "high.toml"), "--markdown", str(page)]
    done = CliRunner().invoke(cli, ["report", str(folder / "good.tkperf"), *claims])
    assert done.exit_code == 0
    text = page.read_text().replace("\\", "")
    assert "0 of 1 claim passes" in text
    assert "misses 1 claim (4 KiB random read IOPS ≥ 1,000,000)" in text


def test_what_is_not_steady_does_not_pass_though_its_value_is_good(folder: Path) -> None:
    done = check(folder, "good.tkperf", "slow.tkperf", "low.toml", "--json")
    assert isinstance(done.exception, ClaimsNotMetError)
    document = json.loads(done.stdout)
    good, slow = (run["cells"][0] for run in document["runs"])
    assert (good["passes"], good["kind"]) == (True, "met")
    assert (slow["passes"], slow["kind"]) == (False, "not judged")
    assert slow["text"].startswith("not steady, met ")
    assert document["verdict"]["state"] == "not judged"
    (reason,) = document["verdict"]["reasons"]
    assert (reason["code"], reason["doubts"]) == ("claim-not-judged", ["not steady"])
    assert document["claims"] == ["iops 100/0 4k iops >= 1 IOPS"]


def test_only_a_missed_claim_is_a_failure(good: RunResult) -> None:
    """A claim about a doubtful value is neither met nor missed. Only a missed claim is a failure."""
    doubtful = (
        replace(good, status=RunStatus.RUNNING),
        replace(good, left_out=(LeftOut(what="a step", reason="damaged"),)),
        replace(good, tests=()),
    )
    files = judge((good, *doubtful), CLAIMS.format(limit=10**6))
    texts, kinds = zip(*(describe_cells(one.checked)[0] for one in files), strict=True)
    assert kinds == (ClaimKind.FAILED, *(ClaimKind.NOT_JUDGED,) * len(doubtful))
    assert [text.split(",")[0] for text in texts[1:]] == ["under way", "damaged", "not measured"]
    assert not any(one.passes for one in files)
    (table,) = build_check_page(files).tables
    caution, failure = NoteLevel.CAUTION, NoteLevel.FAILURE
    assert table.levels == ((failure, failure), *((caution, caution),) * len(doubtful))


def test_a_file_that_cannot_be_read_is_a_row_that_does_not_pass(folder: Path, tmp_path: Path) -> None:
    """A file that cannot be read is shown as a row that does not pass. Every output format contains the reason, and the
    notices of all runs.
    """
    page, words, suites = (tmp_path / name for name in ("c.html", "c.md", "c.xml"))
    done = check(
        folder,
        "good.tkperf",
        "bad.tkperf",
        "low.toml",
        "--html",
        str(page),
        "--markdown",
        str(words),
        "--junit",
        str(suites),
    )
    assert isinstance(done.exception, ClaimsNotMetError)
    assert done.stdout.startswith("SIMULATED. Not judged: 1 of 2 pass; ")
    assert "<td>could not be checked" in page.read_text().replace(' class="caution"', "")
    for text in (done.stdout, page.read_text(), words.read_text()):
        assert "bad.tkperf is not a run file" in text
        assert "SIMULATED" in text
    first, second = ET.parse(suites).getroot()
    assert (first.get("errors"), second.get("errors")) == ("0", "1")


def test_runs_that_fail_come_first_and_runs_alike_share_their_lines(good: RunResult) -> None:
    """Runs that fail or cannot be judged are in the first rows, regardless of their names. The first screen for 24
    drives therefore shows these runs.
    """
    doubtful = (replace(good, tests=()), replace(good, tests=()))
    results = [
        replace(one, info=replace(one.info, name=f"d{number}")) for number, one in enumerate((good, *doubtful, good))
    ]
    *files, last = judge(results)
    assert last.checked is not None
    (finding,) = last.checked.claim_results
    failing = replace(last.checked, claim_results=(replace(finding, state=ClaimState.NOT_MET),))
    page = build_check_page((*files, replace(last, checked=failing)))
    (table,) = page.tables
    assert [row[0] for row in table.rows] == ["d3", "d1", "d2", "d0"]
    console = Console(width=30, file=StringIO())
    silent = replace(page.verdict, title="", reasons=())
    print_check(replace(page, verdict=silent), console, brief=True)
    assert isinstance(console.file, StringIO)
    lines = console.file.getvalue().splitlines()
    starts = [line for line in lines if re.match(r"d\d[:, ]", line)]
    assert [line.split(":")[0] for line in starts[:2]] == ["d3", "d1, d2"]
    assert starts[-1].startswith("d0 passes by")


def test_junit_has_no_value_that_is_not_judged_as_passed(folder: Path) -> None:
    done = check(folder, "good.tkperf", "slow.tkperf", "low.toml", "--junit", "-")
    good, slow = ET.fromstring(done.stdout)
    assert (good.get("failures"), good.get("errors")) == ("0", "0")
    assert (slow.get("failures"), slow.get("errors")) == ("0", "1")


def test_files_of_one_run_count_once(folder: Path, tmp_path: Path) -> None:
    """A run and its copy count as one run, and so does a file that was given twice. A note names the files."""
    copy = tmp_path / "copy.tkperf"
    shutil.copy(folder / "good.tkperf", copy)
    done = check(folder, "good.tkperf", str(copy), "good.tkperf", "low.toml", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["banner"] == "1 of 1 pass"
    assert len(document["runs"]) == 1
    assert f"good.tkperf, {copy}: one run, given 3 times, counts once" in document["notes"][-1]


def test_the_fullest_file_of_a_run_is_shown(good: RunResult) -> None:
    """A copy from the middle of a run counts as the same run, and the file with more results is shown. If two files
    contain no seed, they count as the same run only if the values in both files are equal.
    """
    (test, *_) = good.tests
    early = replace(good, tests=(replace(test, steps=test.steps[:1]),))
    seeded = [replace(one, info=replace(one.info, seed=7)) for one in (early, good)]
    (one,) = fold_copies(judge(seeded))
    assert (one.file, one.copies) == ("1.tkperf", ("0.tkperf",))
    assert len(fold_copies(judge((early, good)))) == 2
    other = replace(good, info=replace(good.info, seed=8))
    assert len(fold_copies(judge((seeded[1], other)))) == 2


def test_runs_of_one_name_are_told_apart(good: RunResult) -> None:
    other = replace(good, info=replace(good.info, seed=8))
    (table,) = build_check_page(judge((good, other))).tables
    assert [row[0] for row in table.rows] == ["good (0.tkperf)", "good (1.tkperf)"]


def test_columns_are_in_words(good: RunResult) -> None:
    """A column title describes its claim in words. If two claims have the same words, their titles also name the tests.
    If no run measured the value of a claim, the title omits the facts that only a run contains.
    """
    alike = CLAIMS.format(limit=1)
    unknown = alike.replace("4k", "3k").replace("= 100", "= 65")
    latency = alike.replace('metric = "iops"', 'metric = "p99_us"').replace("at_least", "at_most")
    twice = latency.replace('test = "iops"', 'test = "lat"')
    files = judge((good,), alike, unknown, latency, twice)
    assert tuple(name_columns(files).values()) == (
        "4 KiB random read IOPS ≥ 1",
        "3 KiB, 65 % reads, IOPS ≥ 1",
        "4 KiB random read p99 latency (iops) ≤ 1 µs",
        "4 KiB random read p99 latency (lat) ≤ 1 µs",
    )


def test_a_single_run_has_a_row_for_each_claim(folder: Path, tmp_path: Path) -> None:
    """A single run has a row for each claim. As in a check of many runs, a doubtful value is not judged, so its claim
    does not pass.
    """
    page, words = tmp_path / "c.html", tmp_path / "c.md"
    done = check(folder, "slow.tkperf", "low.toml", "--html", str(page), "--markdown", str(words))
    assert done.exit_code == ExitCode.CLAIMS_NOT_MET, done.output
    answer = "0 of 1 claim passes; 1 claim not judged (not steady)"
    verdict = f"SIMULATED. Not judged: {answer}"
    assert done.stdout.startswith(verdict)
    assert str(done.exception).endswith(answer)
    assert f"\n**{verdict}**\n" in words.read_text()
    for text in (done.stdout, words.read_text(), page.read_text()):
        assert "4 KiB random read IOPS" in text
        assert "SIMULATED" in text


def test_a_report_with_claims_counts_them_in_its_verdict(folder: Path, tmp_path: Path) -> None:
    page, words = tmp_path / "r.html", tmp_path / "r.md"
    arguments = ["report", str(folder / "good.tkperf"), "--claims", str(folder / "high.toml")]
    outputs = ["-o", str(page), "--markdown", str(words)]
    done = CliRunner().invoke(cli, [*arguments, *outputs])
    assert done.exit_code == 0, done.output
    assert "; 0 of 1 claim passes</strong>" in page.read_text()
    assert "; 0 of 1 claim passes" in words.read_text().split("\n\n")[3]
    assert "| 4 KiB random read IOPS | **not met** |" in words.read_text()


def test_a_notice_of_several_runs_is_one_badge(good: RunResult) -> None:
    """If several runs have a notice of the same kind, these notices are printed as one banner with the names of the
    runs.
    """
    infos = [replace(good.info, name=name, notices=(f"DAMAGED: {name}",)) for name in ("A", "B")]
    page = build_check_page(judge(replace(good, info=info) for info in infos))
    assert page.banners == ("DAMAGED: A: A; B: B",)
    assert [badge.text for badge in list_badges(page.banners)] == ["DAMAGED"]
