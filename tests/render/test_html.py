"""The HTML report is a single file, shows hostile text as plain text, and is drawn without errors."""

from __future__ import annotations

import json
import math
import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

import tkperf
from tests.builders import run_info, simulate, view_of
from tests.render.visits import find_specs, unpack_spec
from tkperf.model.run_info import RunInfo
from tkperf.model.steady_state import judge
from tkperf.page.facts import typeset
from tkperf.page.view import build_view
from tkperf.render.charts.draw import draw
from tkperf.render.export_json import render_json
from tkperf.render.export_markdown import render_markdown
from tkperf.render.html import pack_json, render_view

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u202eRTL\0\x1b[31m\x9b"


@pytest.fixture(scope="module")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    simulate(folder, run_info(notices=("SIMULATED: a model",)))
    return folder / "run.tkperf"


@pytest.fixture(scope="module")
def page_text(run_file: Path) -> str:
    return render_view(view_of(run_file))


def render_run(folder: Path, info: RunInfo, preset: str = "sata-ssd") -> str:
    simulate(folder, info, preset=preset)
    return render_view(view_of(folder / "run.tkperf"))


def test_the_page_needs_no_network(page_text: str) -> None:
    """The page loads no other address. It contains its scripts and styles, and a content security policy forbids all
    other sources.
    """
    page = page_text
    # The bundled library is excluded, because it contains addresses as texts but never loads them.
    ours = page[: page.index('<script type="module">')]
    addresses = set(re.findall(r"https?://[^\"'\s<]+", ours))
    assert addresses <= {"https://vega.github.io/schema/vega-lite/v6.json"}
    assert "default-src 'none'" in page
    assert not re.search(r"<(link|img|iframe)\b", ours)


def test_simulated_results_say_so_in_bold_place(page_text: str) -> None:
    """The verdict on simulated results begins with the word SIMULATED, which appears there only once. The running
    header and the dialog of a cell repeat the word.
    """
    top = page_text[page_text.index("<header>") : page_text.index("<nav")]
    assert top.count("SIMULATED") == 1
    assert "<strong>SIMULATED. Not judged</strong>" in top
    assert '<span class="running">SIMULATED</span>' in page_text
    assert '<span class="badge information">SIMULATED</span>' in page_text


def test_simulated_is_said_in_every_chart(run_file: Path) -> None:
    """Every chart contains the word SIMULATED, even the charts of a cell, because a reader may save a single chart."""
    view = view_of(run_file)
    charts = [c for test in view.tests for c in (*test.charts, *test.events.charts)]
    charts += [chart for test in view.tests for each in test.sections for chart in each.charts]
    drawn = [each.chart for chart in charts for each in chart.views]
    assert len(drawn) > len(charts) > 10
    for chart in (*drawn, *(view.cell_charts or {}).values()):
        title = draw(chart)["title"]
        assert isinstance(title, dict)
        assert title["subtitle"] == "SIMULATED"


def test_rounds_in_which_nothing_was_measured_are_dashes(run_file: Path) -> None:
    """If rounds contain no measurement, they are shown as dashes. The verdict on such rounds contains NaN, but no form
    of the report prints NaN.
    """
    result = tkperf.load(run_file)
    test = result.tests[1]
    (section, *others) = test.sections
    assert section.verdict is not None
    verdict = judge([1, 2, 3, 4, 5], [1.0, math.nan, 1.0, 1.0, 1.0], tracking="t", unit="us")
    section = replace(section, verdict=verdict, verdicts=(verdict,), window_verdicts=(verdict,))
    test = replace(test, sections=(section, *others))
    result = replace(result, tests=(result.tests[0], test, *result.tests[2:]))
    view = build_view(result)
    determination = view.tests[1].sections[0].determination
    assert determination is not None
    facts = {row[0]: row[1] for row in determination.rows}
    assert facts["Values"] == "1, -, 1, 1, 1"
    assert facts["Average"] == "-"
    for each in view.tests[1].sections[0].charts:
        for shown in each.views:
            json.dumps(draw(shown.chart), allow_nan=False)
    assert ">nan<" not in render_view(view)
    json.loads(render_json(result), parse_constant=pytest.fail)
    assert "nan" not in render_markdown(build_view(result))


def test_hostile_text_is_inert(tmp_path: Path) -> None:
    """Model names, notes and command lines from outside tkperf are shown as text and are never executed."""
    info = run_info(
        name="x",
        device={"model": HOSTILE, "serial": HOSTILE, "capacity_bytes": 1},
        device_description=HOSTILE * 100,
        feature_matrix="\x00" + HOSTILE,
        notices=(HOSTILE,),
        command_line=("tkperf", HOSTILE),
    )
    page = render_run(tmp_path, info)
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "&lt;script&gt;alert" in page
    assert not set(page) & {"\u202e", "\0", "\x1b", "\x9b"}


def test_half_a_surrogate_ends_no_page(run_file: Path, tmp_path: Path) -> None:
    """Half of a surrogate pair does not prevent the creation of a page. JSON from another program can contain such a
    half, but UTF-8 cannot, so tkperf replaces the half when it reads the JSON. In this test, the half is in the title
    of every chart.
    """
    path = Path(shutil.copy(run_file, tmp_path))
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE run SET value = ? WHERE key = 'notices'", (r'["SIM\ud800: x\u202eRTL"]',))
    page = render_view(view_of(path))
    specs = json.dumps(find_specs(page), ensure_ascii=False)
    assert "SIM?" in specs
    assert "RTL" in page
    for text in (page, specs, json.dumps(unpack_spec(pack_json({"title": "x\u202eRTL"})), ensure_ascii=False)):
        # the page must not contain the character in its JSON escape form either
        assert not re.search("\u202e|\\\\u202e", text)


def test_numbers_of_charts_have_six_digits(run_file: Path) -> None:
    """The charts of the HTML page contain the rows of the view. Numbers are rounded to six digits, but texts and times
    are unchanged.
    """
    specs = find_specs(render_view(view_of(run_file)))
    assert len(specs) > 20
    every = [row for spec in specs for rows in spec["datasets"].values() for row in rows]
    written = [value for row in every for value in row.values() if isinstance(value, float)]
    assert len(written) > 1000
    assert all(number == float(f"{number:.6g}") for number in written)
    view = view_of(run_file)
    drawn = [draw(each.chart) for chart in view.tests[0].sections[0].charts for each in chart.views]
    for expected in drawn:
        same = (one for one in specs if (one["title"], one["layer"]) == (expected["title"], expected["layer"]))
        spec = next(same)
        for name, rows in json.loads(json.dumps(expected["datasets"])).items():
            for row, other in zip(spec["datasets"][name], rows, strict=True):
                numbers = {key for key, value in other.items() if isinstance(value, float)}
                assert {key: row[key] for key in numbers} == pytest.approx(
                    {key: other[key] for key in numbers}, rel=1e-5
                )
                assert {**other, **{key: row[key] for key in numbers}} == row


class Tables(HTMLParser):
    """The tables of a page, parsed from HTML: each caption with its rows of texts."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[list[str], list[list[str]]]] = []
        self._into: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag == "table":
            self.found.append(([], []))
        elif tag == "caption":
            self._into = self.found[-1][0]
            self._into.append("")
        elif tag == "tr" and self.found:
            self.found[-1][1].append([])
        elif tag in ("td", "th") and self.found:
            self._into = self.found[-1][1][-1]
            self._into.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th", "caption"):
            self._into = None

    def handle_data(self, data: str) -> None:
        if self._into is not None:
            self._into[-1] += data


def test_every_table_of_the_page_is_the_views(run_file: Path, page_text: str) -> None:
    """Every table in the HTML equals a table of the view in each row. test_view.py compares the view with the
    run file.
    """
    parser = Tables()
    parser.feed(page_text)
    there = [(caption[0], [row for row in rows if any(row)]) for caption, rows in parser.found if caption]
    expected = []
    for test in view_of(run_file).tests:
        tables = list(test.tables)
        for section in test.sections:
            tables += (
                *(table for table in section.tables if not table.folded),
                *((section.determination,) if section.determination else ()),
                *(table for table in section.tables if table.folded),
            )
        tables += test.events.tables
        for table in tables:
            head = [list(table.columns)] if any(table.columns) else []
            expected.append((table.title, [*head, *([*map(typeset, row)] for row in table.rows)]))
    assert [(title, [[text.strip() for text in row] for row in rows]) for title, rows in there] == (expected)


def test_unknown_facts_are_said_to_be_unknown(page_text: str) -> None:
    """Facts that are not known are listed by name in one line. None of them is shown as an empty field or as zero."""
    (line,) = re.findall(r"<h3>Not known</h3>\s*<dl>\s*<dt>\d+ facts</dt><dd>([^<]*)</dd>", page_text)
    assert {"Serial number", "NAND type", "Test sponsor"} <= set(line.split(", "))
    assert "<dt>Serial number</dt>" not in page_text


def test_an_unsteady_run_says_so(tmp_path: Path) -> None:
    """The page of an unsteady run states that steady state was not reached, both in the findings and in the
    determination block.
    """
    page = render_run(tmp_path, run_info(), "unsteady")
    assert "NOT reached" in page
    assert re.search(r'<p class="bad">[^<]* did not reach steady state: (range|slope) ', page)


def test_set_up_is_folded_after_the_tests(page_text: str) -> None:
    """On the page, the description of the set-up is folded and is placed after the tests."""
    order = [page_text.index(f'<section id="{key}">') for key in ("overview", "iops", "words", "disclosure")]
    assert order == sorted(order)
    assert page_text.count('<details class="folded chapter">') == 2


def test_json_has_no_nan_and_a_schema(run_file: Path) -> None:
    """The JSON document is strict JSON without NaN and names its schema."""
    text = render_json(tkperf.load(run_file))
    assert '"schema": "tkperf-results/2"' in text
    assert "NaN" not in text
