"""The pages quote results that tkperf computes for the simulated drives named in README."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import tkperf
from tkperf.analysis.results import RunResult
from tkperf.cli.main import cli
from tkperf.page.findings import findings, headlines

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs/examples"


def read(page: str) -> str:
    """Return a page as one line with single blanks, so that a search finds a sentence that spans
    several lines.
    """
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs of the pages: ``rehearsal`` of sim:sata-ssd, and ``nvme`` of sim:nvme-4kn."""
    made = tmp_path_factory.mktemp("quoted")
    for name, device in (("rehearsal", "sim:sata-ssd"), ("nvme", "sim:nvme-4kn")):
        tkperf.run(tkperf.make_plan("ssd", device), name, folder=made)
    return made


@pytest.fixture(scope="module")
def rehearsal(folder: Path) -> RunResult:
    return tkperf.load(folder / "rehearsal.tkperf")


def call(*words: str | Path) -> str:
    """Return the output of a command as one line with single blanks."""
    done = CliRunner().invoke(cli, [str(word) for word in words], standalone_mode=False)
    assert done.exception is None, done.exception
    return " ".join(done.output.split())


def test_readme_has_the_headline_figures_of_its_simulated_drive(rehearsal: RunResult) -> None:
    """README shows the six headline figures below the verdict."""
    readme = read("README.md")
    shown = headlines(rehearsal)
    assert len(shown) == 6
    for line in shown:
        assert " ".join(f"{line.label} {line.text} {line.sure} {line.verdict}".split()) in readme
    assert "ends with: SIMULATED. Valid 4 KiB random write" in readme


def test_a_rehearsal_is_eight_hours_long(rehearsal: RunResult) -> None:
    """README: "shows what an SSD does in 8 hours in half a minute"."""
    duration_s = sum(test.duration_s or 0.0 for test in rehearsal.tests)
    (hours,) = re.findall(r"what an SSD does in (\d+) hours", read("README.md"))
    assert round(duration_s / 3600) == int(hours)


def test_the_finding_on_write_saturation_is_that_of_the_program(rehearsal: RunResult) -> None:
    """The tutorial quotes the beginning of the sentence, and the page on reports the whole
    sentence.
    """
    (said,) = [finding.text for finding in findings(rehearsal) if finding.test == "writesat"][:1]
    (quoted,) = re.findall(r"`(Random 4 KiB writes run at [^`]*)`", read("docs/reference/reports.md"))
    assert quoted.rstrip(".") == said
    (begun,) = re.findall(
        r"Its finding on write saturation: (.*?) Because of that fall", read("docs/tutorial/first-report.md")
    )
    assert said.startswith(begun)


def test_the_course_of_a_stream_is_described_as_the_page_on_reports_says(folder: Path) -> None:
    first, *_ = re.findall(r"- `(Fresh out of box [^`]*)`", read("docs/reference/reports.md"))
    assert first in call("show", folder / "rehearsal.tkperf")


@pytest.mark.parametrize(("page", "first"), [("README.md", "rehearsal"), ("docs/how-to/comparing.md", "sata")])
def test_the_comparison_says_what_the_pages_quote(folder: Path, page: str, first: str) -> None:
    """The page quotes the title, lines of the decision, and the verdict."""
    said = call("compare", folder / "rehearsal.tkperf", folder / "nvme.tkperf").replace("rehearsal", first)
    text = read(page)
    (title,) = re.findall(rf"nvme is better at \d of \d figures, {first} at \d", text)
    assert title in said
    lines = re.findall(r"(?:Random reads|Sustained random writes): nvme \([^()]*\), then [^()]*\([^()]*\)", text)
    assert lines
    for line in lines:
        assert line in said
    for quoted in re.findall(r"SIMULATED\. (Comparable[\w ]*: .*?) nvme: (better at .*?), \.\.\.", text):
        for part in quoted:
            assert part in said


def test_the_check_passes_as_readme_says(folder: Path) -> None:
    """tkperf judges each claim of the example file."""
    (quoted, count) = re.findall(r"(SIMULATED\. Pass: \d+ of (\d+) claims pass)", read("README.md"))[0]
    assert quoted in call("check", folder / "rehearsal.tkperf", EXAMPLES / "claims.toml")
    claims = (EXAMPLES / "claims.toml").read_text(encoding="utf-8")
    assert claims.count("[[claim]]") == int(count)


def test_the_sample_report_has_the_words_of_the_program(rehearsal: RunResult) -> None:
    """If this fails, run scripts/sample_report.py: it makes the page and its pictures again."""
    page = html.unescape((EXAMPLES / "sample-report.html").read_text(encoding="utf-8"))
    text = " ".join(re.sub(r"<[^>]+>", "", page).split())
    for line in headlines(rehearsal):
        assert line.text in text, line.label
    for finding in findings(rehearsal):
        assert " ".join(finding.text.split()) in text
