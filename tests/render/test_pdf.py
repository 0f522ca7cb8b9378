"""The PDF report contains the figures of the run file and has a header on every page. The same run produces identical
bytes.
"""

from __future__ import annotations

import os
import pickle
import re
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
from tkperf.analysis.comparing.comparison import compare
from tkperf.analysis.results import RunResult
from tkperf.cli.main import cli
from tkperf.model.quantity import IOPS, LATENCY_MEAN, THROUGHPUT
from tkperf.model.run_info import UserFacts
from tkperf.model.units import format_number
from tkperf.page.chart import Axis, Chart, Curve, Point
from tkperf.page.comparison.build_page import build_comparison_page
from tkperf.page.facts import typeset
from tkperf.page.page import ChartView, ReportView, TableView
from tkperf.page.view import build_view
from tkperf.page.words.time_course import format_verdict_value
from tkperf.procedures import SSD_TESTS
from tkperf.render.document import _lay_out, compose
from tkperf.render.export_tkperf import render_tkperf_xml
from tkperf.render.paper import FAMILY
from tkperf.render.pdf import set_document
from tkperf.render.reports import Printer

HOSTILE = '#eval("1") $x$ *b* </script>\u202eRTL\0\x1b[31m' + "W" * 10_000
DEVICE = {
    "model": "Model 9000",
    "serial": "SERIAL42",
    "firmware": "1−2≤3→4",  # noqa: RUF001 - typographic characters
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
def small_run_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a run with one test. Tests use this file for rules that apply to a document of any size."""
    folder = tmp_path_factory.mktemp("small")
    simulate(folder, run_info(device=DEVICE, notices=("SIMULATED: a model",)), suite={"iops": SSD_TESTS["iops"]})
    return folder / "run.tkperf"


@pytest.fixture(scope="module")
def result(run_file: Path) -> RunResult:
    return tkperf.load(run_file)


@pytest.fixture(scope="module")
def printed(run_file: Path) -> bytes:
    return render_pdf(run_file)


@pytest.fixture(scope="module")
def small_printed(small_run_file: Path) -> bytes:
    return render_pdf(small_run_file)


def render_pdf(run_file: Path) -> bytes:
    view = view_of(run_file, UserFacts(report_date="2026-01-02"))
    return set_document(compose(view))


def charts_of(view: ReportView) -> list[ChartView]:
    sections = (section for test in view.tests for section in test.sections)
    of_tests = [chart for test in view.tests for chart in (*test.charts, *test.events.charts)]
    shown = of_tests + [chart for section in sections for chart in section.charts]
    return [view for chart in shown for view in chart.on_paper]


@pytest.fixture(scope="module")
def pages(printed: bytes, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return text_of(printed, tmp_path_factory.mktemp("pdf"))


def text_of(printed: bytes, folder: Path, order: str = "-layout") -> list[str]:
    """Return the text of each page. The text keeps its printed layout."""
    if shutil.which("pdftotext") is None:
        pytest.skip("needs pdftotext (poppler-utils)")
    path = folder / "report.pdf"
    path.write_bytes(printed)
    done = subprocess.run(["pdftotext", order, path, "-"], capture_output=True, check=True, text=True)
    return done.stdout.split("\f")[:-1]


def flow_of(printed: bytes, folder: Path) -> str:
    """Return all text of the PDF in the order of the content stream, one column after the other."""
    return " ".join(" ".join(text_of(printed, folder, "-raw")).split())


@pytest.fixture(scope="module")
def flow(printed: bytes, tmp_path_factory: pytest.TempPathFactory) -> str:
    return flow_of(printed, tmp_path_factory.mktemp("flow"))


@pytest.mark.parametrize("fonts", ["the system's", "none"])
def test_the_same_run_gives_the_same_bytes(
    small_run_file: Path, small_printed: bytes, tmp_path: Path, fonts: str
) -> None:
    """The same run produces identical bytes on every machine and with any installed fonts. The PDF contains no random
    data, and no time except the day.
    """
    variables = os.environ | {"SOURCE_DATE_EPOCH": "1767312000"}
    if fonts == "none":
        variables["FONTCONFIG_FILE"] = str(resources.files("tkperf.render") / "templates/no-system-fonts.conf")
    path = tmp_path / "report.pdf"
    subprocess.run(
        [Path(sys.executable).parent / "tkperf", "report", small_run_file, "--pdf", path], check=True, env=variables
    )
    assert path.read_bytes() == small_printed


def test_a_test_begins_with_how_it_loaded_the_device(result: RunResult, flow: str) -> None:
    """In the PDF, each test begins with its demand. The latency test has one outstanding I/O, and all other tests have
    the demand of the profile.
    """
    headers = re.findall(r"Test parameters (.*?) (?:Whole test: )?Status: complete", flow)
    assert len(headers) == len(result.tests)
    for test, header in zip(result.tests, headers, strict=True):
        demands = set(re.findall(r"TC / QD (TC \d+ / QD \d+)", header))
        assert demands == {"TC 1 / QD 1" if test.name == "lat" else "TC 2 / QD 16"}, test.name


def test_amounts_of_a_test_are_said_once(result: RunResult, pages: list[str]) -> None:
    """The duration and the written amount of a test are printed once, and not for each section. Otherwise readers might
    add them.
    """
    facts = [line for page in pages for line in page.splitlines() if "Status: complete" in line]
    assert len(facts) == len(result.tests)
    assert any(line.strip().startswith("Whole test: ") for line in facts)


def test_long_notices_leave_the_header_whole(result: RunResult, tmp_path: Path) -> None:
    """Even if notices are long, each page contains its title and its number. The first page contains every word of the
    notices.
    """
    notices = tuple(f"NOTICE {number}: " + "many words " * 40 + "end" for number in range(4))
    told = replace(result, info=replace(result.info, notices=notices))
    found = text_of(set_document(compose(build_view(told))), tmp_path)
    for number, page in enumerate(found, start=1):
        assert f"page {number} of {len(found)}" in page
        assert page.count("NOTICE") >= 4
    assert " ".join(found[0].split()).count("many words") == 4 * 40


def test_what_a_process_fails_to_make_is_made_all_the_same(
    failing_workers: None, small_run_file: Path, small_printed: bytes
) -> None:
    """If the process that makes documents fails, tkperf makes the document without this process and produces identical
    bytes.
    """
    view = view_of(small_run_file, UserFacts(report_date="2026-01-02"))
    with Printer() as printer:
        printer.start(compose(view))
        assert printer.finish() == small_printed


PRINTED_ALONE = """
import runpy, sys
runpy.run_module("tkperf.render.pdf", run_name="__main__")
print(*sys.modules, file=sys.stderr)
"""


def test_the_process_makes_all_of_it_and_loads_no_more_than_it_needs(
    small_run_file: Path, small_printed: bytes
) -> None:
    """The process that makes documents makes the whole document from plain data. It does not load the modules that
    compute results, because loading them would take several times as long.
    """
    view = view_of(small_run_file, UserFacts(report_date="2026-01-02"))
    done = subprocess.run(
        [sys.executable, "-P", "-c", PRINTED_ALONE],
        input=pickle.dumps(compose(view)),
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == small_printed
    loaded = set(done.stderr.decode().split())
    assert "typst" in loaded
    assert not loaded & {"numpy", "jinja2", "tkperf.analysis", "tkperf.page.page"}


def test_a_test_without_a_step_has_its_page(result: RunResult, tmp_path: Path) -> None:
    """If a test has begun but has not finished a step, it still has a page. The page states that no step was
    finished.
    """
    cut = replace(result, tests=(replace(result.tests[1], sections=()),))
    found = text_of(set_document(compose(build_view(cut))), tmp_path)
    (page,) = (each for each in found if "No step was finished." in each)
    assert "Latency" in page.splitlines()[0]


def test_every_page_says_what_it_is(result: RunResult, pages: list[str]) -> None:
    """Every page has the header of the PTS with the device, the dates and the page number, and states that the numbers
    are simulated. Each test has all four blocks.
    """
    assert len(pages) > 6
    for number, page in enumerate(pages, start=1):
        assert f"page {number} of {len(pages)}" in page.splitlines()[0]
        band = " ".join(page.splitlines()[:5])
        for fact in ("Manufacturer not known", "Model 9000", "SERIAL42", "240.1 GB", "SIMULATED", "Test run date"):
            assert fact in band
    assert "SIMULATED. Not judged" in pages[0]
    text = "\n".join(pages)
    for block in ("Test platform", "Device under test", "Set-up parameters", "Test parameters", "Test ID"):
        assert text.count(block) >= len(result.tests), block
    # Facts that are not known are listed only once, in the last chapter.
    assert ["Not known" in page for page in pages].count(True) == 1


def test_every_figure_is_the_run_files(result: RunResult, flow: str) -> None:
    """The PDF contains every figure of the run file. The test checks all cells of all tables, the averages of the
    windows, and the reason why each section ended.
    """
    text = flow
    for test in result.tests:
        for section in test.sections:
            assert section.ended_because.removeprefix("steady state ") in text
            if section.verdict is not None and section.verdict.judged:
                assert format_verdict_value(section.verdict, section.verdict.average) in text
            for cell in section.cells:
                if test.name == "iops":
                    assert format_number(cell.value(IOPS)) in text
                if test.name == "tp":
                    assert format_number(cell.value(THROUGHPUT)) in text
                if test.name == "lat":
                    assert format_number(cell.value(LATENCY_MEAN)) in text


def test_every_table_is_printed(run_file: Path, flow: str) -> None:
    """The PDF contains the figures and sentences of its first page, the titles of all tables, and each cell in the
    first rows of the tables.
    """
    text = flow
    view = view_of(run_file)
    sections = [section for test in view.tests for section in test.sections]
    tables = [table for test in view.tests for table in test.tables]
    tables += [table for section in sections for table in section.tables]
    tables += [section.determination for section in sections if section.determination]
    assert len(tables) >= 15
    for table in (table for table in tables if not table.folded):
        assert " ".join(table.title.split()[:3]) in text  # a long title may need two lines
        printed = table.on_paper
        for row in printed.rows:
            for cell in row:
                assert " ".join(typeset(cell).split()[:4]) in text, (table.title, cell)
        assert all(note in text for note in set(printed.notes) - set(table.notes))
    for headline in view.headlines:
        assert headline.label in text
        assert headline.text in text
    for found in view.findings:
        for sentence, _ in found.sentences:
            assert f"{typeset(sentence)}." in text
    for chart in charts_of(view):
        assert " ".join(chart.caption.split()[:6]) in text


def test_pages_say_of_which_test_they_are(result: RunResult, pages: list[str]) -> None:
    """The header of each page names the test and states whether steady state was reached. The names of the sections are
    printed below the header.
    """
    for test in result.tests:
        own = [page for page in pages if test.title in page.splitlines()[0]]
        assert own
        assert all("steady state" in page.splitlines()[0] for page in own)
        for section in test.sections:
            assert section.name in "".join(own)
    assert "IOPS – block size × R/W mix matrix · steady state" in "".join(pages)


def test_figures_stand_with_their_titles_two_to_a_row(run_file: Path, pages: list[str]) -> None:
    """The figures are printed with their titles, two in a row. No page of a test contains only a title."""
    view = view_of(run_file)
    titles = [chart.chart.title for chart in charts_of(view)]
    lines = [line for page in pages for line in page.splitlines()]
    beside = [line for line in lines if sum(title[:25] in line for title in titles) >= 2]
    assert len(beside) >= 3
    assert len(pages) <= len(view.tests) * 3


def test_facts_and_titles_never_stand_alone(run_file: Path, tmp_path: Path) -> None:
    """The log of the drive is on the same page as the figures above it. A title of the set-up is on the same page as
    its table.
    """
    view = view_of(run_file)
    rows = tuple((f"Fact {number}", str(number)) for number in range(60))
    facts = TableView(title="Drive told", columns=("", ""), rows=rows)
    tests = tuple(replace(test, events=replace(test.events, tables=(facts,))) for test in view.tests)
    printed = set_document(compose(replace(view, tests=tests)))
    pages = text_of(printed, tmp_path)
    told = [page for page in pages if "Drive told" in page]
    assert len(told) == len(tests)
    titles = [chart.chart.title for test in tests for chart in test.events.charts]
    alone = [page for page in told if not any(title in page for title in titles)]
    assert len(alone) == sum(not test.events.charts for test in tests)
    for page in pages:
        *_, last, _footer = [line.strip() for line in page.splitlines() if line.strip()]
        assert last not in {"Not known", "Command line", "Kernel command line"}


def test_long_amounts_cover_no_names(small_run_file: Path, tmp_path: Path) -> None:
    """Long amounts, for instance after days of writes, never cover a name. If amounts are long, the table of the
    drive's log has fewer columns.
    """
    view = view_of(small_run_file)
    name = "Written by the host, as the drive counts (GB)"
    for value, columns in (("963.194", 3), ("50,833.613", 2), ("1" * 40, 1)):
        rows = tuple((name, value) for _ in range(9))
        facts = TableView(title="Drive told", columns=("", ""), rows=rows)
        tests = tuple(replace(test, events=replace(test.events, tables=(facts,))) for test in view.tests)
        told = replace(view, tests=tests)
        pages = text_of(set_document(compose(told)), tmp_path)
        lines = [line for page in pages for line in page.splitlines() if name in line]
        assert lines
        assert len(re.findall(rf"{value}(?=\s|$)", "\n".join(lines))) == 9 * len(view.tests)
        assert max(line.count(name) for line in lines) <= columns


def test_what_shares_a_time_axis_stands_below_its_own() -> None:
    """A chart that shares its time axis with a view is placed directly below this view, even if the view is not the
    last one. All other charts are placed in pairs.
    """

    def chart(key: str, *, below: bool = False, aligned: bool = False) -> ChartView:
        axis = Axis(title="X")
        curve = Curve(points=(Point(0.0, 1.0), Point(1.0, 2.0)))
        drawn = Chart(title=key, x=axis, y=axis, curves=(curve,), aligned=aligned)
        return ChartView(key=key, text=key, chart=drawn, below=below)

    charts = [
        chart("time", aligned=True),
        chart("tgbw"),
        chart("fills"),
        chart("warm", below=True),
        chart("wear", below=True),
        chart("rth"),
        chart("seconds"),
        chart("odd"),
    ]
    rows = _lay_out(charts)
    assert [[each["title"] for each in row] for row in rows] == [
        ["time", "warm", "wear"],
        ["tgbw", "fills"],
        ["rth", "seconds"],
        ["odd"],
    ]
    assert [[each["wide"] for each in row] for row in rows] == [
        [True, False, False],
        [False, False],
        [False, False],
        [True],
    ]


def test_a_comparison_opens_with_its_decision(result: RunResult, tmp_path: Path) -> None:
    """The first page of a comparison contains the title, a line for each kind of load, the matrix, and two charts next
    to each other.
    """
    page = build_comparison_page(compare([result, result]))
    document = compose(page)
    assert [[chart["title"] for chart in row] for row in document["lead_charts"]] == [
        ["4 KiB random write: IOPS from fresh to full", "Random reads over block size"]
    ]
    text = text_of(set_document(document), tmp_path)[0]
    for words in (page.title, "Random writes", "Random read", "Write latency", "within noise or 3 % of the best"):
        assert words in " ".join(text.split())


def test_hostile_text_is_text(tmp_path: Path) -> None:
    """In the PDF, hostile text remains text. Typst markup, control characters and an endless line do not damage the
    page.
    """
    info = run_info(name="hostile", device={"model": HOSTILE, "serial": HOSTILE}, device_description=HOSTILE)
    simulate(tmp_path, info, suite={"iops": SSD_TESTS["iops"]})
    found = text_of(render_pdf(tmp_path / "run.tkperf"), tmp_path)
    text = "".join(found)
    for piece in ('#eval("1")', "$x$", "*b*", "RTL[31m"):
        assert piece in text
    controls = {each for each in text if unicodedata.category(each) in ("Cc", "Cf")}
    # the zero-width characters mark positions at which words may or may not be broken
    assert controls <= {"\n", "\u200b", "\u2060"}
    assert max(len(line) for line in text.splitlines()) < 400
    for number, page in enumerate(found, start=1):
        assert f"page {number} of {len(found)}" in page


def test_fonts_are_embedded(printed: bytes, tmp_path: Path) -> None:
    """The PDF embeds its fonts, so that every printer produces the same pages."""
    if shutil.which("pdffonts") is None:
        pytest.skip("needs pdffonts (poppler-utils)")
    path = tmp_path / "report.pdf"
    path.write_bytes(printed)
    listed = subprocess.run(["pdffonts", path], capture_output=True, check=True, text=True)
    fonts = listed.stdout.splitlines()[2:]
    assert fonts
    for font in fonts:
        assert font.split()[-5] == "yes", font
    families = {font.split()[0].split("+")[-1].split("-")[0] for font in fonts}
    assert families == {FAMILY, "DejaVuSansMono"}, "the page's and, of job files, a monospaced one"


def test_what_another_tool_did_not_keep_has_no_chart(result: RunResult, tmp_path: Path) -> None:
    """If another tool did not record the data of a chart, the chart is omitted. TKperf's XML contains no percentiles. A
    chart without data would have no size, and the creation of the report would fail.
    """
    file = tmp_path / "theirs.xml"
    file.write_text(render_tkperf_xml(result).text, encoding="utf-8")
    ran = CliRunner().invoke(cli, ["import", str(file), "--output", str(tmp_path)])
    assert ran.exit_code == 0, ran.output
    path = Path(ran.stdout.strip())
    found = "".join(text_of(render_pdf(path), tmp_path))
    assert "IOPS over time" in found
    assert "Latency over time" in found
    assert "Latency percentiles over time" not in found
