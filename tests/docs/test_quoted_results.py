"""The pages quote the results that tkperf computes for the simulated drives in README."""

from __future__ import annotations

import html
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

import tkperf
from tkperf.analysis.results import RunResult
from tkperf.cli.main import cli
from tkperf.model.run_info import SIMULATED_NOTICE
from tkperf.page.findings import findings, headlines

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs/examples"


def read(page: str) -> str:
    """Return a page as one line with single spaces, so that a search finds a sentence that spans several lines."""
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


@dataclass(frozen=True, slots=True)
class Shown:
    """A command on a page, with the output that the page shows below the command."""

    command: str
    lines: list[str]


def shown_commands(page: str) -> list[Shown]:
    """Return the commands in those code blocks of a page that also show output. In such a block, ``$`` precedes each
    command.
    """
    shown: list[Shown] = []
    for block in re.findall(
        r"^```console\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    ):
        for line in block.splitlines():
            if line.startswith("$ "):
                shown.append(Shown(line.removeprefix("$ "), []))
            elif line and line != "...":
                shown[-1].lines.append(" ".join(line.split()))
    return shown


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the output of each command in README. The commands run one after the other in one folder.

    The runs in README are ``rehearsal`` on sim:sata-ssd, and ``nvme`` on sim:nvme-4kn.
    """
    made = tmp_path_factory.mktemp("quoted")
    (made / "docs").symlink_to(ROOT / "docs")
    outputs = {"": str(made)}
    with pytest.MonkeyPatch.context() as changed:
        changed.chdir(made)
        for shown in shown_commands("README.md"):
            words = shlex.split(shown.command)[1:]
            more = ["--no-report"] if words[0] == "ssd" else []
            outputs[shown.command] = call(*words, *more)
    return outputs


@pytest.fixture(scope="module")
def folder(outputs: dict[str, str]) -> Path:
    """Return the folder with the runs in README."""
    return Path(outputs[""])


@pytest.fixture(scope="module")
def rehearsal(folder: Path) -> RunResult:
    return tkperf.load(folder / "rehearsal.tkperf")


def call(*words: str | Path) -> str:
    """Return the output of a command as one line with single spaces."""
    done = CliRunner().invoke(cli, [str(word) for word in words], standalone_mode=False)
    assert done.exception is None, done.exception
    return " ".join(done.output.split())


@pytest.mark.parametrize("shown", shown_commands("README.md"), ids=lambda shown: shown.command)
def test_readme_shows_the_output_of_its_commands(outputs: dict[str, str], shown: Shown) -> None:
    """README shows the real output of its commands. Each line below a command is in the output, in the same order."""
    rest = outputs[shown.command]
    for line in shown.lines:
        assert line in rest
        rest = rest[rest.index(line) + len(line) :]


def test_a_rehearsal_is_eight_hours_long(rehearsal: RunResult) -> None:
    """The simulated duration of the rehearsal agrees with the number of hours in README."""
    duration_s = sum(test.duration_s or 0.0 for test in rehearsal.tests)
    assert f" {duration_s / 3600:.0f} hours" in read("README.md")


def test_the_finding_on_write_saturation_is_that_of_the_program(rehearsal: RunResult) -> None:
    """The finding about write saturation is quoted correctly. The tutorial quotes the beginning of the finding, and the
    page about reports quotes the whole sentence.
    """
    (said,) = [finding.text for finding in findings(rehearsal) if finding.test == "writesat"][:1]
    (quoted,) = re.findall(r"`(Random 4 KiB writes run at [^`]*)`", read("docs/reference/reports.md"))
    assert quoted.rstrip(".") == said
    (begun,) = re.findall(
        r"finding about write saturation: (.*?) The rate falls when", read("docs/tutorial/first-report.md")
    )
    assert said.startswith(begun)


def test_the_page_of_four_tests_can_be_mailed(folder: Path, tmp_path: Path) -> None:
    """The page of the four PTS tests contains every second in its charts and cells. The page is smaller than 3 MB, so
    that it can be sent by mail.
    """
    call("report", folder / "rehearsal.tkperf", "-o", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_bytes()
    assert page.count(b'data-key="') > 60
    assert len(page) < 3_000_000


def test_the_course_of_a_stream_is_described_as_the_page_on_reports_says(folder: Path) -> None:
    first, *_ = re.findall(r"- `(Fresh out of box [^`]*)`", read("docs/reference/reports.md"))
    assert first in call("show", "--full", folder / "rehearsal.tkperf")


def test_the_comparison_says_what_its_page_quotes(folder: Path) -> None:
    """The page about comparing quotes the command's output: the title, the number of runs, the verdict, the line of
    each run, and the lines of the decision.
    """
    said = call("compare", folder / "rehearsal.tkperf", folder / "nvme.tkperf").replace("rehearsal", "sata")
    text = read("docs/how-to/comparing.md")
    (title,) = re.findall(r"nvme is better at \d of \d figures, sata at \d", text)
    assert title in said
    lines = re.findall(r"(?:Random reads|Sustained random writes): nvme \([^()]*\), then [^()]*\([^()]*\)", text)
    assert lines
    for line in lines:
        assert line in said
    (quoted,) = re.findall(
        r"sata at \d (2 runs, .*?) (SIMULATED\. Comparable[\w ]*: .*?) (sata: .*?) (nvme: better at .*?), \.\.\.", text
    )
    assert " ".join(quoted) in said


@pytest.fixture(scope="module")
def settled(folder: Path) -> RunResult:
    """Return the run of the sample report. Its profile allows more time for write saturation."""
    plan = tkperf.make_plan("ssd", "sim:sata-ssd", profile=str(EXAMPLES / "long-saturation.toml"))
    return tkperf.run(plan, "settled", folder=folder)


def test_the_sample_report_has_the_words_of_the_program(settled: RunResult) -> None:
    """The sample report contains the headlines and findings that the program computes. If this test fails, run
    scripts/sample_report.py, which creates the page and its pictures again.
    """
    page = html.unescape((EXAMPLES / "sample-report.html").read_text(encoding="utf-8"))
    text = " ".join(re.sub(r"<[^>]+>", "", page).split())
    for line in headlines(settled):
        assert line.text in text, line.label
    for finding in findings(settled):
        assert " ".join(finding.text.split()) in text
    assert any("settle after" in each.text for each in findings(settled))


def test_the_live_view_of_readme_has_the_words_of_the_program() -> None:
    """The live view in README contains the words that the program prints. If this test fails, run
    scripts/sample_report.py.
    """
    drawn = (ROOT / "docs/live-view.svg").read_text(encoding="utf-8")
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", "", drawn)).split())
    for words in ("test 1 of 4:", "IOPS, round by round; Block size (KiB) down, R/W % across", SIMULATED_NOTICE):
        assert words in text
