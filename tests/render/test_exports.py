"""Exports contain the figures of the result unchanged and the notice SIMULATED. They contain no active content from
outside.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
import pytest

import tkperf
from tests.builders import at, run_info, simulate
from tkperf.analysis.results import RunResult
from tkperf.model.errors import UsageError
from tkperf.model.quantity import IOPS, LATENCY_MAX, THROUGHPUT, Direction, percentile
from tkperf.model.run_info import IMPORTED
from tkperf.model.units import KIB, format_number
from tkperf.page.view import build_view
from tkperf.procedures import SSD_TESTS, load_profile
from tkperf.render.export_json import drop_unused, finite, render_json
from tkperf.render.export_markdown import render_markdown
from tkperf.render.export_tables import DataTable, build_tables, render_csv
from tkperf.render.export_tkperf import render_tkperf_xml
from tkperf.render.parquet import render_parquet
from tkperf.runfile.reader import RunFile

HOSTILE = (
    '=HYPERLINK("x") http://a.example www.a.example @b</root><script>alert(1)</script>|`\u202e'
    + "A" * 10_000
    + "\0\x1b[31m"
)


@pytest.fixture(scope="module")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    simulate(folder, run_info(profile=quick()))
    return folder / "run.tkperf"


@pytest.fixture(scope="module")
def result(run_file: Path) -> RunResult:
    return tkperf.load(run_file)


def quick() -> dict[str, object]:
    return {
        "title": "quick",
        "demand": {"jobs": 2, "io_depth": 16},
        "latency": {"jobs": 1, "io_depth": 1, "step_s": 1},
        "iops": {"step_s": 1},
    }


def tables_of(result: RunResult, run_file: Path | None = None) -> dict[str, DataTable]:
    """Return the tables by name. If no run file is given, the table of seconds has only its header."""
    if run_file is None:
        return {table.name: table for table in build_tables(result, (), lambda *_: ())}
    with RunFile(run_file) as opened:
        steps = [(test.name, step) for test in opened.record().tests for step in test.steps]
        found = {each.name: each for each in build_tables(result, steps, opened.samples)}
        return {name: replace(each, rows=list(each.rows)) for name, each in found.items()}


def rows(table: DataTable) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO("".join(render_csv(table)))))


def test_csv_has_every_cell(result: RunResult) -> None:
    """The CSV export has a row for each cell, round and slice of the result. A program that reads the CSV file finds
    each number unchanged.
    """
    tables = tables_of(result)
    sections = [section for test in result.tests for section in test.sections]
    cells = [cell for section in sections for cell in section.cells]
    every = rows(tables["cells"])
    found = [row for row in every if row["direction"] == "all"]
    assert len(found) == len(cells)
    for row, cell in zip(found, cells, strict=True):
        assert float(row["iops"]) == cell.value(IOPS)
        assert float(row["latency_max_us"]) == cell.value(LATENCY_MAX)
        rare = cell.value(percentile(99.999))
        assert row["p99.999_us"] == ("" if rare is None else str(rare))
    in_rounds = [cell for each in sections for one in each.rounds for cell in one.cells]
    whole = [row for row in rows(tables["rounds"]) if row["direction"] == "all"]
    assert [float(row["iops"]) for row in whole] == [cell.value(IOPS) for cell in in_rounds]
    apart = [row for row in every if row["direction"] != "all"]
    mixed = [cell for cell in cells if cell.workload.read_percent not in (0, 100)]
    assert [float(row["iops"]) for row in apart] == [
        cell.value(IOPS, side) for cell in mixed for side in (Direction.READ, Direction.WRITE)
    ]
    assert len(rows(tables["slices"])) == sum(len(section.slices) for section in sections)
    assert len(rows(tables["verdicts"])) == sum(len(section.verdicts) for section in sections)


def test_a_verdict_can_be_computed_again_from_its_tables(result: RunResult) -> None:
    """A verdict can be computed again from the exported tables. The tables contain the window, the values of the window
    and the required number of rounds.
    """
    tables = tables_of(result)
    values = rows(tables["verdict_values"])
    verdicts = rows(tables["verdicts"])
    assert verdicts
    for verdict in verdicts:
        window = [row for row in values if all(row[key] == verdict[key] for key in ("test", "section", "last_round"))]
        seen = [float(row["value"]) for row in window]
        assert len(seen) == int(verdict["window_rounds"])
        assert int(verdict["needed_rounds"]) == 5
        assert window[-1]["round"] == verdict["last_round"]
        assert sum(seen) / len(seen) == pytest.approx(float(verdict["average"]))
        assert max(seen) - min(seen) == pytest.approx(float(verdict["data_excursion"]))
        for row in window if verdict["slope"] else ():
            line = float(verdict["slope"]) * int(row["round"]) + float(verdict["intercept"])
            assert float(row["fitted"]) == pytest.approx(line)


def test_csv_has_every_second(result: RunResult, run_file: Path) -> None:
    """The sum of the I/Os of all exported seconds equals the totals of the steps."""
    with RunFile(run_file) as opened:
        steps = [step for test in opened.record().tests for step in test.steps]
    ios = sum(
        (float(row["read_iops"]) + float(row["write_iops"])) * float(row["duration_s"])
        for row in rows(tables_of(result, run_file)["samples"])
    )
    total = sum(step.measurement.read.ios + step.measurement.write.ios for step in steps)
    assert ios == pytest.approx(total)


def test_parquet_has_the_tables_with_their_types(result: RunResult, run_file: Path) -> None:
    """The Parquet export contains every value of every table with its type. A value that was not measured is null."""
    parquet = pytest.importorskip("pyarrow.parquet")
    for name, table in tables_of(result, run_file).items():
        read = parquet.read_table(io.BytesIO(render_parquet(table, "1" * 32)))
        assert tuple(read.column_names) == table.columns
        # The table of resumptions is empty if the run was never resumed, and the table of telemetry is empty if the
        # drive reported no values.
        assert table.rows or name in ("resumptions", "telemetry"), name
        assert [tuple(row.values()) for row in read.to_pylist()] == [tuple(row) for row in table.rows]


def tkperf_xml(result: RunResult) -> tuple[ET.Element, dict[str, dict[str, Any]]]:
    """Return the root of the document, and the content of each test's elements, decoded from JSON."""
    root = ET.fromstring(render_tkperf_xml(result).text)
    tests = {
        test.tag: {element.tag: json.loads(element.text or "null") for element in test} for test in root if len(test)
    }
    return root, tests


def test_xml_is_tkperfs(tmp_path: Path) -> None:
    """The XML export has the structure and the units of files that TKperf 2.2 wrote. Rounds are counted from 0."""
    profile = load_profile("tkperf-2.2").as_plain_data()
    result = simulate(tmp_path, run_info(profile=profile), profile="tkperf-2.2")
    root, tests = tkperf_xml(result)
    assert root.tag == "test"
    header = [element.tag for element in root if not len(element)]
    assert header == ["testdate", "devinfo", "kernel", "lsb", "ioperfversion", "cmdline"]
    assert all(json.loads(root.findtext(tag) or "") is not False for tag in header)
    assert list(tests) == ["iops", "lat", "tp", "writesat"]
    by_name = {test.name: test for test in result.tests}

    iops = by_name["iops"].sections[0]
    matrix = tests["iops"]["roundmat"]
    assert len(matrix) == len(iops.rounds)
    assert [len(workload) for workload in matrix[0]] == [8] * 7
    last = iops.rounds[-1]
    assert matrix[-1][6][6] == at(last, 0, 4 * KIB).value(IOPS)
    assert matrix[-1][1][7] == at(last, 95, 512).value(IOPS)
    assert tests["iops"]["stdyrounds"] == [number - 1 for number in iops.window]
    slope, intercept = tests["iops"]["stdyslope"]
    assert iops.verdict is not None
    assert iops.verdict.fit is not None
    for number in iops.window:
        expected = iops.verdict.fit.at(number)
        assert math.isclose(slope * (number - 1) + intercept, expected)
    assert tests["lat"]["numjobs"] == tests["lat"]["iodepth"] == 1

    low, high, mean = tests["lat"]["roundmat"][0][0][0]
    assert low <= mean <= high
    reads, writes = tests["tp"]["roundmat"][0]
    throughput = by_name["tp"].sections[0]
    assert reads[0] * KIB / 1e6 == pytest.approx(throughput.rounds[0].cells[0].value(THROUGHPUT))
    assert len(reads) == len(writes) == tests["tp"]["rndnr"] + 1
    per_minute, latencies = tests["writesat"]["roundmat"]
    assert len(per_minute) == len(latencies) == len(by_name["writesat"].sections[0].slices)


@pytest.mark.parametrize("name", ["1st", "a+b", "x.y-z"])
def test_xml_of_names_that_are_no_elements(result: RunResult, name: str) -> None:
    """The XML export remains well-formed if the run has a name that is not a valid element name."""
    root, _ = tkperf_xml(replace(result, info=replace(result.info, name=name)))
    assert root.tag == {"1st": "_1st", "a+b": "a_b", "x.y-z": "x.y-z"}[name]


def test_xml_says_what_it_leaves_out(result: RunResult, tmp_path: Path) -> None:
    """The XML export names the values that it leaves out. TKperf identifies block sizes by their position. A block size
    that TKperf does not measure is therefore never written to one of these positions.
    """
    profile = load_profile("pts-e-1.1").as_plain_data()
    suite = {name: SSD_TESTS[name] for name in ("lat", "tp")}
    pts = render_tkperf_xml(simulate(tmp_path, run_info(profile=profile), profile="pts-e-1.1", suite=suite))
    assert pts.left_out == ("lat: Response time histogram has no place there", "tp: Throughput 128k has no place there")
    throughput = json.loads(ET.fromstring(pts.text).findtext("tp/roundmat") or "")
    assert len(throughput) == 1
    quick_xml = render_tkperf_xml(result)
    assert quick_xml.left_out[0] == "iops: its cells are not those that TKperf measures"
    assert "<iops>" not in quick_xml.text


def test_xml_of_hard_disks_is_refused(result: RunResult) -> None:
    """The XML export refuses runs of hard disks, because the layout of TKperf's XML for hard disks is not
    documented.
    """
    with pytest.raises(UsageError, match="not documented"):
        render_tkperf_xml(replace(result, info=replace(result.info, suite="hdd")))


def test_hostile_text_is_inert(tmp_path: Path) -> None:
    """In no export do names and descriptions from drives and users become formulas, markup or control characters."""
    info = run_info(device={"model": HOSTILE, "kind": HOSTILE}, device_description=HOSTILE)
    result = simulate(tmp_path, info)
    for row in rows(tables_of(result)["cells"]):
        assert row["target"].startswith("'=")
    root, _ = tkperf_xml(result)
    assert json.loads(root.findtext("devinfo") or "") == HOSTILE
    markdown = render_markdown(build_view(result))
    assert "<script" not in markdown
    assert "\0" not in markdown
    assert "\x1b" not in markdown
    assert not re.search(r"://[^\u2060]|@\w|www\.\w", markdown)
    assert "\u202e" not in markdown


def test_markdown_has_the_tables(result: RunResult) -> None:
    """The Markdown export contains each cell as it is shown in the terminal. A missing value is shown as a dash."""
    text = render_markdown(build_view(result))
    cell = result.tests[0].sections[0].cells[-2]
    assert format_number(cell.value(IOPS)) in text
    assert "| - |" in text


def test_markdown_discloses_how_it_was_measured(result: RunResult) -> None:
    """The Markdown export contains the demand, the purge and the preconditioning of each test."""
    text = render_markdown(build_view(result))
    assert "| Purge method | test |" in text
    blocks = dict(re.findall(r"### Parameters: (.*)\n((?:.+\n|\n(?!#))*)", text))
    assert "| TC / QD | TC 1 / QD 1 |" in blocks["Latency"]
    assert "| TC / QD | TC 2 / QD 16 |" in blocks["Throughput"]
    filled = "2 × the active range, SEQ 128 KiB writes, TC 2 / QD 16"
    assert f"| Precondition 1 | {filled} |" in blocks["IOPS"]
    assert "| Precondition 1 | none |" in blocks["Write Saturation"]
    without = replace(
        result,
        info=run_info(device={"kind": IMPORTED}),
        tests=tuple(
            replace(test, sections=(replace(test.sections[0], purge=None, filled_bytes=None),)) for test in result.tests
        ),
    )
    text = render_markdown(build_view(without))
    (unknown,) = re.findall(r"\| \d+ facts \| (.*) \|", text)
    assert {"Purge method", "Precondition 1"} <= set(unknown.split(", "))


def test_xml_has_a_command_line_that_can_be_used_again(result: RunResult) -> None:
    """The command line in the XML export is quoted so that a shell accepts it again. The command line of an imported
    run is plain text and is not quoted.
    """

    def told(**changes: Any) -> object:
        info = run_info(**changes)
        root = ET.fromstring(render_tkperf_xml(replace(result, info=info)).text)
        return json.loads(root.findtext("cmdline") or "")

    words = ("tkperf", "ssd", "n", "/dev/sdx", "--purge-command", "tool --erase {device}")
    assert shlex.split(str(told(command_line=words))) == list(words)
    text = "tkperf ssd 'a b'"
    assert told(command_line=(text,), device={"kind": IMPORTED}) == text


def test_simulated_is_said_everywhere(tmp_path: Path) -> None:
    """The Markdown, XML and CSV exports of a simulated run contain the notice SIMULATED."""
    notice = "SIMULATED: no device"
    info = run_info(notices=(notice,), device={"kind": "simulated drive"})
    result = simulate(tmp_path, info)
    assert "**SIMULATED. Not judged: " in render_markdown(build_view(result))
    assert notice in json.loads(ET.fromstring(render_tkperf_xml(result).text).findtext("devinfo") or "")
    assert all(row["target"] == "simulated drive" for row in rows(tables_of(result)["cells"]))


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("x;=cmd|'/c calc'!A1", "x;'=cmd|'/c calc'!A1"),
        ("=1+1", "'=1+1"),
        (" =1", "' =1"),
        ("INTEL SSDSC2KB; 2.5 in", "INTEL SSDSC2KB; 2.5 in"),
    ],
)
def test_a_name_is_no_formula_however_a_spreadsheet_divides_fields(text: str, field: str) -> None:
    """No field of the CSV export begins with a formula, even if a spreadsheet with decimal commas splits the fields at
    semicolons.
    """
    table = DataTable(name="t", types={"a": str}, rows=((text,),))
    (row,) = list(csv.reader("".join(render_csv(table)).splitlines()))[1:]
    assert row == [field]


def test_lists_of_the_json_document_are_written_one_element_at_a_time(result: RunResult) -> None:
    """The JSON document is written element by element. Its text equals the text that json.dumps writes for the whole
    document.
    """
    text = render_json(result)
    document = json.loads(text)
    assert text == json.dumps(document, indent=2, allow_nan=False)
    for test, of_test in zip(result.tests, document["tests"], strict=True):
        assert of_test["steps"] == finite(drop_unused(msgspec.to_builtins(test.steps)))
        for section, of_section in zip(test.sections, of_test["sections"], strict=True):
            for key in ("verdicts", "cells", "rounds", "slices", "timelines", "characteristics"):
                plain = drop_unused(msgspec.to_builtins(getattr(section, key)))
                assert of_section[key] == finite(plain), key
