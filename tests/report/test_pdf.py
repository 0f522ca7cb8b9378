"""The PDF: the run file's figures on it, the header on every page, the same bytes each time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import unicodedata
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest
from click.testing import CliRunner

import tkperf
from tests.builders import run_info, simulate, view_of
from tkperf import process
from tkperf.analysis.export_tkperf import render_tkperf_xml
from tkperf.analysis.results import RunResult
from tkperf.cli.main import cli
from tkperf.quantity import IOPS, LATENCY_MEAN, THROUGHPUT
from tkperf.report import drawing
from tkperf.report.drawing import Drawer
from tkperf.report.page import ChartView, ReportView
from tkperf.report.pdf import print_run
from tkperf.report.view import build_view

HOSTILE = '#eval("1") $x$ *b* </script>\u202eRTL\0\x1b[31m' + "W" * 10_000
DEVICE = {
    "model": "Model 9000",
    "serial": "SERIAL42",
    "kind": "simulated drive",
    "capacity_bytes": 240_057_409_536,
}


@pytest.fixture(scope="module")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    profile = {"demand": {"jobs": 2, "io_depth": 16}, "latency": {"jobs": 1, "io_depth": 1}}
    simulate(folder, run_info(device=DEVICE, profile=profile, notices=("SIMULATED: a model",)))
    return folder / "run.tkperf"


@pytest.fixture(scope="module")
def result(run_file: Path) -> RunResult:
    return tkperf.load(run_file)


@pytest.fixture(scope="module")
def printed(run_file: Path) -> bytes:
    return render_pdf(run_file)


def render_pdf(run_file: Path) -> bytes:
    with Drawer() as drawer:
        return print_run(view_of(run_file), tkperf.load(run_file), drawer).render()


def charts_of(view: ReportView) -> list[ChartView]:
    sections = (section for test in view.tests for section in test.sections)
    of_tests = [chart for test in view.tests for chart in test.charts]
    return of_tests + [chart for section in sections for chart in section.charts]


@pytest.fixture(scope="module")
def pages(printed: bytes, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return text_of(printed, tmp_path_factory.mktemp("pdf"))


def text_of(printed: bytes, folder: Path) -> list[str]:
    """The text of each page."""
    if shutil.which("pdftotext") is None:
        pytest.skip("needs pdftotext (poppler-utils)")
    path = folder / "report.pdf"
    path.write_bytes(printed)
    done = subprocess.run(
        ["pdftotext", "-layout", path, "-"], capture_output=True, check=True, text=True
    )
    return done.stdout.split("\f")[:-1]


@pytest.mark.parametrize("fonts", ["the system's", "none"])
def test_the_same_run_gives_the_same_bytes(
    run_file: Path, printed: bytes, tmp_path: Path, fonts: str
) -> None:
    """No clock, no chance, no machine in it; nor the fonts installed, for scripts typst has."""
    variables = dict(os.environ)
    if fonts == "none":
        variables["FONTCONFIG_FILE"] = str(
            resources.files("tkperf.report") / "templates/no-system-fonts.conf"
        )
    path = tmp_path / "report.pdf"
    subprocess.run(
        [Path(sys.executable).parent / "tkperf", "report", run_file, "--pdf", path],
        check=True,
        env=variables,
    )
    assert path.read_bytes() == printed


def test_a_page_says_how_its_own_test_loaded_the_device(pages: list[str]) -> None:
    """The latency test has one I/O outstanding, the others the profile's demand."""
    demands: dict[str, list[str]] = {}
    for page in pages[2:]:
        lines = page.splitlines()
        (line,) = (line for line in lines if "Threads / queue depth" in line)
        demands.setdefault(line.split("Threads / queue depth")[1].strip(), []).append(lines[0])
    assert set(demands) == {"TC 2 / QD 16", "TC 1 / QD 1"}
    for head in demands["TC 1 / QD 1"]:
        assert "Latency" in head or "Response time histogram" in head
    assert not any("Latency" in head for head in demands["TC 2 / QD 16"])
    assert "differs by test" in pages[0]


def test_amounts_of_a_test_are_said_once(result: RunResult, pages: list[str]) -> None:
    """Its duration and what it wrote are not those of each section, so nobody adds them up."""
    facts = [line for page in pages for line in page.splitlines() if "Status: complete" in line]
    assert len(facts) == len(result.tests)
    assert any(line.strip().startswith("Whole test: ") for line in facts)


def test_long_notices_leave_the_header_whole(result: RunResult, tmp_path: Path) -> None:
    """However much there is to say, each page has its title and number, the first every word."""
    notices = tuple(f"NOTICE {number}: " + "many words " * 40 + "end" for number in range(4))
    told = replace(result, info=replace(result.info, notices=notices))
    with Drawer() as drawer:
        found = text_of(print_run(build_view(told), told, drawer).render(), tmp_path)
    for number, page in enumerate(found, start=1):
        assert f"page {number} of {len(found)}" in page
        assert page.count("NOTICE") >= 4
    assert found[0].count("many words") > 4 * 40


def test_what_a_process_fails_to_draw_is_drawn_all_the_same(
    run_file: Path, monkeypatch: pytest.MonkeyPatch, pages: list[str], tmp_path: Path
) -> None:
    """Processes that cannot start, or end at once, cost time and nothing else."""
    dead = [None, process.start_module("tkperf.no_such_module")]
    monkeypatch.setattr(drawing, "_start_helper", dead.pop)
    found = text_of(render_pdf(run_file), tmp_path)
    assert not dead
    # Other fonts are known here, so labels may move.
    titles = [chart.spec["title"] for chart in charts_of(view_of(run_file))]
    assert len(found) == len(pages)
    for title in titles:
        assert isinstance(title, dict)
        assert title["text"] in "".join(found)


def test_a_test_without_a_step_has_its_page(result: RunResult, tmp_path: Path) -> None:
    """A run that was cut off says of each test that was begun how far it came."""
    cut = replace(result, tests=(replace(result.tests[1], sections=()),))
    with Drawer() as drawer:
        found = text_of(print_run(build_view(cut), cut, drawer).render(), tmp_path)
    assert "No step was finished." in found[-1]
    assert "Latency" in found[-1]


def test_every_page_says_what_it_is(pages: list[str]) -> None:
    """The PTS's header: device, set-up, page n of m; and that the numbers are simulated."""
    assert len(pages) > 8
    for number, page in enumerate(pages, start=1):
        assert f"page {number} of {len(pages)}" in page
        for fact in ("Model 9000", "SERIAL42", "240.1 GB", "SIMULATED: a model", "Test run date"):
            assert fact in page
    assert "not known" in pages[0]  # facts that nobody has are said to be so


def test_every_figure_is_the_run_files(result: RunResult, pages: list[str]) -> None:
    """All cells of all tables, window averages, and what each section ended with."""
    text = " ".join(" ".join(pages).split())
    for test in result.tests:
        for section in test.sections:
            assert section.ended_because in text
            if section.verdict is not None:
                assert f"{section.verdict.average:,.1f}" in text
            for cell in section.cells:
                if test.name == "iops":
                    assert f"{cell.value(IOPS):,.1f}" in text
                if test.name == "tp":
                    assert f"{cell.value(THROUGHPUT):,.1f}" in text
                if test.name == "lat":
                    assert f"{cell.value(LATENCY_MEAN):,.1f}" in text


def test_every_table_is_printed_whole(run_file: Path, pages: list[str]) -> None:
    """Titles, cards, and each cell of each table, as the page in the browser has them."""
    text = " ".join(" ".join(pages).split())
    view = view_of(run_file)
    sections = [section for test in view.tests for section in test.sections]
    tables = [table for section in sections for table in section.tables]
    tables += [section.determination for section in sections if section.determination]
    assert len(tables) >= 15
    for table in tables:
        assert " ".join(table.title.split()[:3]) in text  # a long title may go over two lines
        for row in table.rows:
            for cell in row:
                assert " ".join(cell.split()[:4]) in text, (table.title, cell)
    for card in view.cards:
        for name, value in card.figures:
            assert name in text
            assert value in text
    for chart in (chart for section in sections for chart in section.charts):
        assert " ".join(chart.text.split()[:6]) in text


def test_each_section_has_a_page_of_its_name(result: RunResult, pages: list[str]) -> None:
    """The header names the section and whether steady state was reached."""
    for test in result.tests:
        for section in test.sections:
            heads = [page.splitlines()[0] for page in pages if page.strip()]
            assert any(section.name in head and "steady state" in head for head in heads)


def test_hostile_text_is_text(tmp_path: Path) -> None:
    """No markup of typst's, no control characters, no endless line breaks the page."""
    info = run_info(
        name="hostile", device={"model": HOSTILE, "serial": HOSTILE}, device_description=HOSTILE
    )
    simulate(tmp_path, info)
    found = text_of(render_pdf(tmp_path / "run.tkperf"), tmp_path)
    text = "".join(found)
    for piece in ('#eval("1")', "$x$", "*b*", "RTL[31m"):
        assert piece in text
    controls = {each for each in text if unicodedata.category(each) in ("Cc", "Cf")}
    assert controls <= {"\n", "\u200b", "\u2060"}  # where words may break, and where not
    assert max(len(line) for line in text.splitlines()) < 400
    for number, page in enumerate(found, start=1):
        assert f"page {number} of {len(found)}" in page


def test_fonts_are_embedded(printed: bytes, tmp_path: Path) -> None:
    """It prints the same everywhere."""
    if shutil.which("pdffonts") is None:
        pytest.skip("needs pdffonts (poppler-utils)")
    path = tmp_path / "report.pdf"
    path.write_bytes(printed)
    listed = subprocess.run(["pdffonts", path], capture_output=True, check=True, text=True)
    fonts = listed.stdout.splitlines()[2:]
    assert fonts
    for font in fonts:
        assert font.split()[-5] == "yes", font


def test_what_another_tool_did_not_keep_has_no_chart(result: RunResult, tmp_path: Path) -> None:
    """TKperf's XML has no percentiles: an empty chart would have no size, and end the report."""
    file = tmp_path / "theirs.xml"
    file.write_text(render_tkperf_xml(result).text, encoding="utf-8")
    ran = CliRunner().invoke(cli, ["import", str(file), "--output", str(tmp_path)])
    assert ran.exit_code == 0, ran.output
    path = Path(ran.stdout.strip())
    found = "".join(text_of(render_pdf(path), tmp_path))
    assert "IOPS over time" in found
    assert "Latency over time" in found
    assert "Latency percentiles over time" not in found
