"""TKperf's XML: real files of TKperf 2.2, our own exports, and what strangers may send."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import tkperf
from tests.builders import run_info, simulate
from tkperf.analysis.export_tkperf import render_tkperf_xml
from tkperf.analysis.results import CellResult, SectionResult
from tkperf.cli.main import cli
from tkperf.errors import RunFileError, UsageError
from tkperf.importers.tkperf_xml import parse_tkperf_xml
from tkperf.profiles import load_profile
from tkperf.units import KIB
from tkperf.workload import Cell

GOLDEN = Path(__file__).parents[1] / "golden"


def elements(path: Path) -> dict[str, Any]:
    """The decoded elements of the file's only test."""
    (test,) = (element for element in ET.parse(path).getroot() if len(element))
    return {element.tag: json.loads(element.text or "null") for element in test}


def imported(tmp_path: Path, file: Path) -> Any:
    ran = CliRunner().invoke(cli, ["import", str(file), "--output", str(tmp_path)])
    assert ran.exit_code == 0, ran.exception
    return tkperf.load(ran.stdout.strip())


def test_a_real_latency_file(tmp_path: Path) -> None:
    """Window, average and fit are TKperf's own; rates, which it did not keep, are not measured."""
    file = GOLDEN / "tkperf-2.2-lat.xml"
    theirs, run = elements(file), imported(tmp_path, file)
    (section,) = run.tests[0].sections
    verdict = section.verdict
    assert verdict is not None
    assert verdict.reached is theirs["reachstdystate"]
    assert [number - 1 for number in verdict.rounds] == theirs["stdyrounds"]
    assert verdict.values == pytest.approx(theirs["stdyvalues"])
    assert math.isclose(verdict.average, theirs["stdyavg"])
    assert verdict.fit is not None
    assert math.isclose(verdict.fit.slope, theirs["stdyslope"][0], rel_tol=1e-6)
    for cell in section.cells:
        assert cell.iops is None
        assert cell.megabytes_per_s is None
        assert cell.ios is None
        assert cell.percentiles_us["p99"] is None
        assert cell.latency_mean_us is not None
    assert any("IMPORTED" in notice for notice in run.info.notices)
    assert run.warnings == ()


def test_a_real_throughput_file(tmp_path: Path) -> None:
    """KiB/s become MB/s of 10^6 bytes; each block size has its own verdict."""
    file = GOLDEN / "tkperf-2.2-tp.xml"
    theirs, run = elements(file), imported(tmp_path, file)
    sections = run.tests[0].sections
    assert [section.name.split()[-1] for section in sections] == ["1024k", "64k", "8k", "4k", "512"]
    first = sections[0].verdict
    assert first is not None
    assert first.average == pytest.approx(theirs["stdyavg"] * KIB / 1e6)
    reads = sections[1].rounds[0].cells[0].megabytes_per_s
    assert reads == pytest.approx(theirs["roundmat"][1][0][0] * KIB / 1e6)
    assert run.info.profile["demand"]["jobs"] == theirs["numjobs"]


def cells_of(section: SectionResult) -> list[CellResult]:
    """Every cell of every round, or of every slice."""
    in_rounds = [cell for each in section.rounds for cell in each.cells]
    return in_rounds or [each.values for each in section.slices]


def test_our_own_xml_comes_back_the_same(tmp_path: Path) -> None:
    """A run exported and imported: the same rates, extremes and means in every round."""
    (tmp_path / "own").mkdir()
    profile = load_profile("tkperf-2.2").as_plain_data()
    own = simulate(tmp_path / "own", run_info(profile=profile), profile="tkperf-2.2")
    file = tmp_path / "own.xml"
    file.write_text(render_tkperf_xml(own).text, encoding="utf-8")
    back = imported(tmp_path, file)
    assert [test.name for test in back.tests] == ["iops", "lat", "tp", "writesat"]
    for test, other in zip(own.tests, back.tests, strict=True):
        for section, again in zip(test.sections, other.sections, strict=True):
            assert again.name == section.name
            cells = cells_of(section)
            assert len(cells) == len(cells_of(again))
            for cell, copy in zip(cells, cells_of(again), strict=True):
                assert cell.cell == copy.cell
                if copy.iops is not None:
                    assert copy.iops == pytest.approx(cell.iops, rel=1e-9)
                if copy.latency_mean_us is not None:
                    assert copy.latency_mean_us == pytest.approx(cell.latency_mean_us)
                    assert copy.latency_max_us == pytest.approx(cell.latency_max_us)
    iops = back.tests[0].sections[0].cell(Cell(0, 4 * KIB))
    assert iops is not None


BOMB = b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><x><iops><roundmat>&b;</roundmat></iops></x>'
EXTERNAL = b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "not XML"),
        (b"<x>", "not XML"),
        (b"<x/>", "no result of TKperf"),
        (BOMB, "refused, it declares document types"),
        (EXTERNAL, "refused, it declares document types"),
        (b"<x><iops><roundmat>[[</roundmat></iops></x>", "iops/roundmat: not JSON"),
        (b"<x><iops/></x>", "not the lists of numbers"),
        (b"<x><iops><roundmat>[[[1]]]</roundmat></iops></x>", "is not 7 mixes of 8 block sizes"),
        (b"<x><lat><roundmat>[]</roundmat></lat></x>", "no rounds"),
        (b"<x><tp><roundmat>[[[1],[1,2]]]</roundmat></tp></x>", "equal length"),
        (b"<x><writesat><roundmat>[[1],[]]</roundmat></writesat></x>", "equal length"),
        (b"<x><writesat><roundmat>[[1],[[3,2,1]]]</roundmat></writesat></x>", "not minimum"),
        (b"<x><writesat><numjobs>0</numjobs><iodepth>-3</iodepth><roundmat>[[1],[[1,3,2]]]"
         b"</roundmat></writesat></x>", "must be 1 or more"),
    ],
)  # fmt: skip
def test_files_that_are_none_of_tkperfs(text: bytes, says: str) -> None:
    """A clear error with file and place, never a traceback, never an entity expanded."""
    with pytest.raises(UsageError, match=says) as raised:
        parse_tkperf_xml(text, file="old.xml")
    assert "old.xml" in str(raised.value)


@given(st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=9), max_leaves=40,
), st.sampled_from(["iops", "lat", "tp", "writesat"]))  # fmt: skip
def test_any_json_is_a_run_or_our_error(matrix: object, test: str) -> None:
    """Whatever stands in roundmat."""
    root = ET.Element("x")
    ET.SubElement(ET.SubElement(root, test), "roundmat").text = json.dumps(matrix)
    try:
        text = ET.tostring(root)
        run = parse_tkperf_xml(text, file="x")
    except UsageError:
        return
    assert run.tests[0].steps or test == "writesat"


def test_a_verdict_that_differs_is_a_warning(tmp_path: Path) -> None:
    """TKperf stores a set that becomes steady in the last round as not steady."""
    text = (GOLDEN / "tkperf-2.2-lat.xml").read_bytes()
    changed = text.replace(
        b"<reachstdystate>true</reachstdystate>", b"<reachstdystate>false</reachstdystate>"
    )
    run = parse_tkperf_xml(changed, file="x")
    (warning,) = run.warnings
    assert warning.code == "verdict-differs"
    assert "rounds 14-18" in warning.text


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """The second import of a name is refused."""
    file = GOLDEN / "tkperf-2.2-lat.xml"
    imported(tmp_path, file)
    again = CliRunner().invoke(cli, ["import", str(file), "--output", str(tmp_path)])
    assert isinstance(again.exception, RunFileError)


def test_an_import_reports_and_compares(tmp_path: Path) -> None:
    """The usual commands take it."""
    imported(tmp_path, GOLDEN / "tkperf-2.2-lat.xml")
    path = str(tmp_path / "testlat.tkperf")
    page = tmp_path / "testlat.html"
    assert CliRunner().invoke(cli, ["report", path]).exit_code == 0
    assert "IMPORTED" in page.read_text(encoding="utf-8")
    assert CliRunner().invoke(cli, ["report", path, "--csv", str(tmp_path)]).exit_code == 0
    assert CliRunner().invoke(cli, ["compare", path, path]).exit_code == 0
