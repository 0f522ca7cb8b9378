"""Imports of TKperf's XML: real files of TKperf 2.2, exports of tkperf, and invalid or hostile files."""

from __future__ import annotations

import csv
import json
import math
import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import tkperf
from tests.builders import at, run_info, simulate, view_of
from tests.fleets import vary_run_file
from tkperf.analysis.results import CellResult, SectionResult
from tkperf.cli.main import cli
from tkperf.interop.tkperf_xml import parse_tkperf_xml
from tkperf.model.errors import RunFileError, UsageError
from tkperf.model.quantity import IOPS, IOS, LATENCY_MAX, LATENCY_MEAN, THROUGHPUT, percentile
from tkperf.model.run_info import NO_USER_FACTS, SIMULATED_NOTICE
from tkperf.model.units import KIB
from tkperf.page.disclosure import build_page_header
from tkperf.page.page import FactBlocks, ReportView
from tkperf.page.view import build_view
from tkperf.pipeline.run_disclosure import FILE_NOTICE, NO_PURGE_NOTICE
from tkperf.procedures import SSD_TESTS, load_profile
from tkperf.render.export_json import render_json
from tkperf.render.export_markdown import render_markdown
from tkperf.render.export_tkperf import render_tkperf_xml
from tkperf.render.html import render_view
from tkperf.runfile import backlog
from tkperf.runfile.reader import read_run

GOLDEN = Path(__file__).parents[1] / "golden"


def elements(path: Path) -> dict[str, Any]:
    """Return the decoded elements of the only test in a file."""
    (test,) = (element for element in ET.parse(path).getroot() if len(element))
    return {element.tag: json.loads(element.text or "null") for element in test}


def imported(tmp_path: Path, file: Path) -> Any:
    ran = CliRunner().invoke(cli, ["import", str(file), "--output", str(tmp_path)])
    assert ran.exit_code == 0, ran.exception
    return tkperf.load(ran.stdout.strip())


def test_a_real_latency_file(tmp_path: Path) -> None:
    """An imported latency file of TKperf 2.2 leads to the window, the average and the fitted line that TKperf computed.
    Rates are not known, because TKperf did not record them.
    """
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
        assert cell.value(IOPS) is None
        assert cell.value(THROUGHPUT) is None
        assert cell.value(IOS) is None
        assert cell.value(percentile(99)) is None
        assert cell.value(LATENCY_MEAN) is not None
    assert any("IMPORTED" in notice for notice in run.info.notices)
    assert run.warnings == ()


def test_a_real_throughput_file(tmp_path: Path) -> None:
    """In an imported throughput file of TKperf 2.2, rates in KiB/s are converted to MB/s (10^6 bytes per second). Each
    block size has its own verdict.
    """
    file = GOLDEN / "tkperf-2.2-tp.xml"
    theirs, run = elements(file), imported(tmp_path, file)
    sections = run.tests[0].sections
    assert [section.name.split()[-1] for section in sections] == ["1024k", "64k", "8k", "4k", "512"]
    first = sections[0].verdict
    assert first is not None
    assert first.average == pytest.approx(theirs["stdyavg"] * KIB / 1e6)
    reads = sections[1].rounds[0].cells[0].value(THROUGHPUT)
    assert reads == pytest.approx(theirs["roundmat"][1][0][0] * KIB / 1e6)
    assert run.info.profile["demand"]["jobs"] == theirs["numjobs"]


def cells_of(section: SectionResult) -> list[CellResult]:
    """Return every cell of every round, or of every slice."""
    in_rounds = [cell for each in section.rounds for cell in each.cells]
    return in_rounds or [each.values for each in section.slices]


def test_our_own_xml_comes_back_the_same(tmp_path: Path) -> None:
    """A run that is exported as XML and imported again has the same rates, extremes and means in every round."""
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
                assert cell.workload.mix_and_size == copy.workload.mix_and_size
                if copy.value(IOPS) is not None:
                    assert copy.value(IOPS) == pytest.approx(cell.value(IOPS), rel=1e-9)
                if copy.value(LATENCY_MEAN) is not None:
                    assert copy.value(LATENCY_MEAN) == pytest.approx(cell.value(LATENCY_MEAN))
                    assert copy.value(LATENCY_MAX) == pytest.approx(cell.value(LATENCY_MAX))
    iops = at(back.tests[0].sections[0], 0, 4 * KIB)
    assert iops is not None


def test_a_stream_has_the_mean_of_its_ios(tmp_path: Path) -> None:
    """In an imported stream, each slice is weighted with the number of its I/Os. Even if the drive becomes slower
    during the stream, the mean of the stream therefore equals the mean in the exported run.
    """
    (tmp_path / "own").mkdir()
    suite = {"writesat": SSD_TESTS["writesat"]}
    own = simulate(tmp_path / "own", run_info(), preset="unsteady", suite=suite)
    file = tmp_path / "own.xml"
    file.write_text(render_tkperf_xml(own).text, encoding="utf-8")
    ((whole,), (copy,)) = (run.tests[0].sections[0].cells for run in (own, imported(tmp_path, file)))
    assert copy.value(LATENCY_MEAN) == pytest.approx(whole.value(LATENCY_MEAN), rel=1e-4)
    assert copy.value(IOPS) == pytest.approx(whole.value(IOPS), rel=1e-4)
    slices = [each.values.value(LATENCY_MEAN) or 0.0 for each in own.tests[0].sections[0].slices]
    assert abs(sum(slices) / len(slices) / (whole.value(LATENCY_MEAN) or 1.0) - 1) > 0.1


BOMB = b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><x><iops><roundmat>&b;</roundmat></iops></x>'
EXTERNAL = b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "not XML"),
        (b"<x>", "not XML"),
        (b"<x/>", "not a result of TKperf"),
        (BOMB, "because it declares document types"),
        (EXTERNAL, "because it declares document types"),
        (b"<x><iops><roundmat>[[</roundmat></iops></x>", "iops/roundmat: "),
        (b"<x><iops/></x>", "iops/roundmat: it is missing"),
        (b"<x><iops><roundmat>[[[1]]]</roundmat></iops></x>", "iops/roundmat: Expected `array` of length >= 7"),
        (b"<x><lat><roundmat>[]</roundmat></lat></x>", "no rounds"),
        (b"<x><tp><roundmat>[[[1],[1,2]]]</roundmat></tp></x>", "equal length"),
        (b"<x><writesat><roundmat>[[1],[]]</roundmat></writesat></x>", "equal length"),
        (b"<x><writesat><roundmat>[[1],[[3,2,1]]]</roundmat></writesat></x>", "not minimum"),
        (b"<x><lat><roundmat>[]</roundmat></lat><lat/></x>", "contains the same test twice"),
        (b"<x><writesat><roundmat>[[],[]]</roundmat></writesat></x>", "no rounds"),
        (b'<?xml version="1.0" encoding="utf-32"?><x/>', "not XML"),
        (
            b"<x><writesat><numjobs>0</numjobs><iodepth>-3</iodepth><roundmat>[[1],[[1,3,2]]]"
            b"</roundmat></writesat></x>",
            "writesat/numjobs: Expected `int` >= 1",
        ),
    ],
)
def test_files_that_are_none_of_tkperfs(text: bytes, says: str) -> None:
    """A file that was not written by TKperf is refused, and the error names the file and the reason. tkperf expands no
    entity of the file.
    """
    with pytest.raises(UsageError, match=says) as raised:
        parse_tkperf_xml(text, file="old.xml")
    assert "old.xml" in str(raised.value)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=9),
        max_leaves=40,
    ),
    st.sampled_from(["iops", "lat", "tp", "writesat"]),
)
def test_any_json_is_a_run_or_our_error(matrix: object, test: str) -> None:
    """Any JSON document in roundmat leads to a run with steps or to a UsageError."""
    root = ET.Element("x")
    ET.SubElement(ET.SubElement(root, test), "roundmat").text = json.dumps(matrix)
    try:
        text = ET.tostring(root)
        run = parse_tkperf_xml(text, file="x")
    except UsageError:
        return
    assert run.tests[0].steps


STREAM = "[[1000, 1000], [[1, 3, 2], [1, 3, 2]]]"


def document(matrix: str = STREAM, test: str = "writesat", head: str = "", **of_test: str) -> bytes:
    """Return a result file with one test. The elements of the test are given as JSON."""
    elements = {"numjobs": "2", "iodepth": "16", "runtime": "60", **of_test, "roundmat": matrix}
    inner = "".join(f"<{name}>{text}</{name}>" for name, text in elements.items())
    return f"<x>{head}<{test}>{inner}</{test}></x>".encode()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (document(numjobs="Infinity"), "writesat/numjobs"),
        (document(numjobs="NaN"), "writesat/numjobs"),
        (document(numjobs="1.5"), "writesat/numjobs"),
        (document(numjobs="true"), "writesat/numjobs"),
        (document(numjobs="1" + "0" * 30), "writesat/numjobs"),
        (document(iodepth="65537"), "writesat/iodepth"),
        (document(iodepth='"16"'), "writesat/iodepth"),
        (document(runtime="Infinity"), "writesat/runtime"),
        (document(runtime="0"), "writesat/runtime"),
        (document(runtime="1e300"), "writesat/runtime"),
        (document("[[1e15], [[1, 3, 2]]]"), "writesat/roundmat"),
        (document("[[1" + "0" * 400 + "], [[1, 3, 2]]]"), "writesat/roundmat"),
        (document("[[1], [[1, 1e15, 2]]]"), "writesat/roundmat"),
        (document("[[1e10], [[1, 3, 2]]]", runtime="1e7"), "writesat/roundmat"),
        (document("[[[1e300],[1]]]", test="tp"), "tp/roundmat"),
    ],
)
def test_numbers_that_nothing_can_be(text: bytes, place: str, tmp_path: Path) -> None:
    """Infinite, extremely large or invalid numbers lead to an error that names the file and the element. No run file
    remains.
    """
    file = tmp_path / "old.xml"
    file.write_bytes(text)
    ran = CliRunner().invoke(cli, ["import", str(file), "--output", str(tmp_path / "out")])
    assert isinstance(ran.exception, UsageError)
    assert f"{file}, {place}" in str(ran.exception)
    assert not list(tmp_path.glob("out/*"))


numbers = st.sampled_from(
    [
        "Infinity",
        "-Infinity",
        "NaN",
        "1e308",
        "1e15",
        "9" * 30,
        "-1",
        "0",
        "1",
        "2.5",
        "65536",
        "5e-324",
        "null",
        "true",
        '"x"',
        "[]",
        "1e10",
        "3.6e9",
    ]
)
texts = st.text(st.characters(exclude_categories=()), max_size=20)


@given(st.integers(0, 5), numbers, texts)
def test_whatever_is_taken_is_a_run_file_that_reports(place: int, odd: str, text: str) -> None:
    """A file with an unusual number or text is either refused or becomes a run file that can be exported and drawn."""
    values = ["65536", "16", "60", "1e10", "1e6", "2.5"]
    values[place] = odd
    jobs, depth, runtime, iops, longest, mean = values
    head = "".join(
        f"<{name}>{json.dumps(text).replace('<', ' ').replace('&', ' ')}</{name}>"
        for name in ("devinfo", "testdate", "ioperfversion", "cmdline", "kernel")
    )
    content = document(
        f"[[{iops}, 7], [[0, {longest}, {mean}], [1, 3, 2]]]", head=head, numjobs=jobs, iodepth=depth, runtime=runtime
    )
    with TemporaryDirectory() as name:
        file, path = Path(name) / "x.xml", Path(name) / "x.tkperf"
        file.write_bytes(content)
        ran = CliRunner().invoke(cli, ["import", str(file), "--output", name])
        if ran.exit_code:
            assert isinstance(ran.exception, UsageError)
            assert list(Path(name).iterdir()) == [file]
            return
        result = tkperf.load(path)
        render_json(result).encode()
        render_markdown(build_view(result)).encode()
        render_view(view_of(path)).encode()
        again = parse_tkperf_xml(render_tkperf_xml(result).text.encode(), file="again.xml")
        assert again.notices == result.info.notices


def test_text_that_is_no_text_is_replaced(tmp_path: Path) -> None:
    """A lone surrogate and control characters in a text are replaced, so that the report can be written. Line ends
    remain.
    """
    file = tmp_path / "odd.xml"
    file.write_bytes(document(head='<devinfo>"a\\ud800b\\u0000c\\r\\nd"</devinfo>'))
    run = imported(tmp_path, file)
    assert run.info.device_description == "a\ufffdb\ufffdc\nd"
    assert CliRunner().invoke(cli, ["report", str(tmp_path / "x.tkperf")]).exit_code == 0


def test_a_failed_import_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed import leaves no file behind, even if the disk becomes full during the import."""
    file = GOLDEN / "tkperf-2.2-lat.xml"

    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(backlog, "run_statements", full)
        ran = CliRunner().invoke(cli, ["import", str(file), "--output", str(tmp_path)])
    assert isinstance(ran.exception, RunFileError)
    assert not list(tmp_path.iterdir())
    imported(tmp_path, file)
    assert [path.name for path in tmp_path.iterdir()] == ["testlat.tkperf"]


def test_one_bad_file_of_several_is_left_out(tmp_path: Path) -> None:
    """If one of several files cannot be imported, a warning names this file and the reason, and tkperf imports the
    other files.
    """
    bad = tmp_path / "bad.xml"
    bad.write_text("<x/>")
    files = [str(GOLDEN / "tkperf-2.2-lat.xml"), str(bad)]
    ran = CliRunner().invoke(cli, ["import", *files, "--output", str(tmp_path / "out")])
    assert ran.exit_code == 0, ran.exception
    assert str(bad) in ran.stderr
    assert "left out" in ran.stderr
    assert len(list((tmp_path / "out").iterdir())) == 1
    alone = CliRunner().invoke(cli, ["import", str(bad), str(bad), "--output", str(tmp_path / "no")])
    assert isinstance(alone.exception, UsageError)
    assert not (tmp_path / "no").exists()


def invoke_import(folder: Path, *words: object) -> Any:
    """Return the result of ``tkperf import`` into a folder."""
    return CliRunner().invoke(cli, ["import", *map(str, words), "--output", str(folder)])


def test_a_file_in_the_way_of_one_keeps_all_away(tmp_path: Path) -> None:
    """An import of several files creates either all run files or none of them. If one run file already exists, none is
    created.
    """
    files = [GOLDEN / f"tkperf-2.2-{name}.xml" for name in ("lat", "tp")]
    (tmp_path / "testtp.tkperf").write_text("mine")
    ran = invoke_import(tmp_path, *files)
    assert isinstance(ran.exception, RunFileError)
    assert [path.name for path in tmp_path.iterdir()] == ["testtp.tkperf"]
    assert (tmp_path / "testtp.tkperf").read_text() == "mine"
    assert ran.stdout == ""


def test_two_files_of_one_name(tmp_path: Path) -> None:
    """If two files would become run files with the same name, the import is refused before anything is written. The
    error names both files.
    """
    for name in ("a", "b"):
        (tmp_path / f"{name}.xml").write_bytes(document())
    out = tmp_path / "out"
    ran = invoke_import(out, tmp_path / "a.xml", tmp_path / "b.xml")
    assert isinstance(ran.exception, UsageError)
    assert "a.xml and b.xml would both be" in str(ran.exception)
    assert not out.exists()


def test_a_name_is_that_of_one_run(tmp_path: Path) -> None:
    """``--name`` gives a name to the single run of an XML file. The option is refused if the import creates several
    runs.
    """
    file = GOLDEN / "tkperf-2.2-lat.xml"
    ran = invoke_import(tmp_path, file, GOLDEN / "tkperf-2.2-tp.xml", "--name", "foo")
    assert isinstance(ran.exception, UsageError)
    assert "--name can name only one run, but 2 runs would be created from these files" in str(ran.exception)
    assert not list(tmp_path.iterdir())
    assert invoke_import(tmp_path, file, "--name", "foo").exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["foo.tkperf"]
    assert tkperf.load(tmp_path / "foo.tkperf").info.name == "foo"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_xml_with_a_byte_order_mark(tmp_path: Path, encoding: str) -> None:
    """XML with a byte order mark, as Windows editors write it, is read. The name of the file does not matter."""
    file = tmp_path / "old.txt"
    file.write_bytes(document().decode().encode(encoding))
    assert imported(tmp_path, file).tests[0].name == "writesat"


@pytest.mark.parametrize("content", [b"", b"  \n", "\ufeff".encode("utf-16-le"), b"text"])
def test_an_xml_file_without_xml(tmp_path: Path, content: bytes) -> None:
    """If a file with the suffix .XML contains no XML, the error states that the file is not XML."""
    file = tmp_path / "old.XML"
    file.write_bytes(content)
    ran = invoke_import(tmp_path, file)
    assert isinstance(ran.exception, UsageError)
    assert str(ran.exception).startswith(f"{file}: not XML")


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    """If a file has the name of the output folder, the import ends with a clear error."""
    (tmp_path / "file").write_text("")
    file = str(GOLDEN / "tkperf-2.2-lat.xml")
    ran = CliRunner().invoke(cli, ["import", file, "--output", str(tmp_path / "file/below")])
    assert isinstance(ran.exception, RunFileError)


def facts_of(view: ReportView) -> dict[str, str]:
    return facts_in(view.disclosure)


def facts_in(blocks: FactBlocks) -> dict[str, str]:
    return dict(pair for _, facts in blocks for pair in facts)


@pytest.mark.parametrize("name", ["lat", "tp"])
def test_what_nobody_recorded_is_not_known(tmp_path: Path, name: str) -> None:
    """The report of an import contains no invented facts. If purge, preconditioning, data pattern or end of the run
    were not recorded, the report lists them as not known.
    """
    run = imported(tmp_path, GOLDEN / f"tkperf-2.2-{name}.xml")
    view = view_of(tmp_path / f"test{name}.tkperf")
    facts = facts_of(view)
    unknown = dict(view.disclosure)["Not known"][0][1].split(", ")
    for fact in ("Purge method", "Data pattern", "Precondition 1", "Ended"):
        assert fact not in facts
        assert fact in unknown
    assert facts["Profile"] == "TKperf XML"
    assert facts["Specification"] == "TKperf 2.2 result XML"
    header = facts_in(build_page_header(run, NO_USER_FACTS, run.tests[0]))
    assert header["Purge method"] == "not known"
    assert header["Data pattern"] == header["Precondition 1"] == "not known"
    (test,) = view.tests
    assert test.procedure == ""
    assert dict(test.facts) == {"Status": "complete", "Duration": "-", "Written": "-", "Disturbed": "not watched"}
    assert {dict(cell.scopes[0].facts)["Limited by the host's CPUs"] for cell in view.cells} == {"not known"}
    record = read_run(tmp_path / f"test{name}.tkperf")
    assert (record.ended_utc, record.tests[0].ended_s) == (None, None)
    data = json.loads(render_json(run))
    assert data["ended_utc"] is None
    (test_data,) = data["tests"]
    assert (test_data["duration_s"], test_data["written_bytes"]) == (None, None)
    for section in test_data["sections"]:
        for cell in section["cells"] + section["rounds"][0]["cells"]:
            assert (cell["host_limited"], cell["all"]["ios"]) == (None, None)
    assert set(data["info"]["profile"]) <= {"title", "demand", "latency", "throughput"}


def test_the_tool_is_named_by_its_own_name(tmp_path: Path) -> None:
    """The test software of an import is the tool that measured, followed by the tkperf that imported the file. This
    remains true after another export.
    """
    run = imported(tmp_path, GOLDEN / "tkperf-2.2-lat.xml")
    said = f"TKperf 2.2, imported by tkperf {tkperf.__version__}"
    assert facts_of(view_of(tmp_path / "testlat.tkperf"))["Test software"] == said
    assert facts_in(build_page_header(run, NO_USER_FACTS, run.tests[0]))["Test software"] == said
    again = parse_tkperf_xml(render_tkperf_xml(run).text.encode(), file="again.xml")
    assert again.tool == said
    own = simulate(tmp_path, run_info())
    assert facts_in(build_page_header(own, NO_USER_FACTS, own.tests[0]))["Test software"] == "tkperf 0"


def test_what_a_stream_wrote_is_not_known(tmp_path: Path) -> None:
    """The amount that an imported stream wrote is not known, because TKperf recorded only rates. No chart uses this
    amount.
    """
    (tmp_path / "y.xml").write_bytes(document())
    run = imported(tmp_path, tmp_path / "y.xml")
    (section,) = run.tests[0].sections
    assert [each.total_written_bytes for each in section.slices] == [None, None]
    assert [each.values.value(IOPS) for each in section.slices] == [1000, 1000]
    assert [each.values.value(THROUGHPUT) for each in section.slices] == [4.096, 4.096]
    view = view_of(tmp_path / "x.tkperf")
    (test,) = view.tests
    keys = [view.key for chart in test.sections[0].charts for view in chart.views]
    # These keys belong to the charts of IOPS (linear and logarithmic) and of latencies. TKperf records no percentiles,
    # so the key of their chart is missing.
    assert keys == [f"writesat0time{number}" for number in ("", "2", "3")]
    assert test.sections[0].tables[0].title.endswith("2 slices, 2 min 00 s")
    shown = CliRunner().invoke(cli, ["show", "--full", str(tmp_path / "x.tkperf")]).stdout
    assert "2 slices, 2 min 00 s" in shown
    assert "written;" not in shown + render_markdown(build_view(run))


def test_what_the_file_says_is_known(tmp_path: Path) -> None:
    """Threads, queue depth and the duration of a step are imported if the file contains them."""
    run = imported(tmp_path, GOLDEN / "tkperf-2.2-tp.xml")
    assert run.info.profile == {
        "title": "TKperf 2.2 result XML",
        "demand": {"jobs": 2, "io_depth": 16},
        "throughput": {"step_s": 1.0},
    }
    facts = facts_of(view_of(tmp_path / "testtp.tkperf"))
    assert facts["TC / QD"] == "TC 2 / QD 16"
    (tmp_path / "lat").mkdir()
    imported(tmp_path / "lat", GOLDEN / "tkperf-2.2-lat.xml")
    facts = facts_of(view_of(tmp_path / "lat/testlat.tkperf"))
    assert facts["TC / QD"] == "TC 1 / QD 1"


def test_what_the_file_lacks_is_a_warning() -> None:
    """If a file lacks the duration of the steps or the demand, a warning reports each missing fact."""
    text = f"<x><writesat><roundmat>{STREAM}</roundmat></writesat></x>".encode()
    run = parse_tkperf_xml(text, file="x")
    assert run.profile == {"title": "TKperf result XML"}
    assert [warning.code for warning in run.warnings] == ["demand-missing", "runtime-missing"]


def test_every_command_takes_a_run_of_which_little_is_known(tmp_path: Path) -> None:
    """Every command accepts an imported run with few known facts. The run may be a stream or contain rounds. The test
    covers each output and a comparison.
    """
    text = document().replace(b"<x>", b"<y>").replace(b"</x>", b"</y>")
    (tmp_path / "y.xml").write_bytes(text)
    for file in (tmp_path / "y.xml", GOLDEN / "tkperf-2.2-tp.xml", GOLDEN / "tkperf-2.2-lat.xml"):
        imported(tmp_path, file)
    for name in ("y", "testtp", "testlat"):
        path, out = str(tmp_path / f"{name}.tkperf"), tmp_path / name
        outputs = ["--csv", f"{out}", "--parquet", f"{out}", "--json", f"{out}.json"]
        texts = ["--markdown", f"{out}.md", "--xml", f"{out}.out.xml", "-o", f"{out}.html"]
        texts += ["--pdf", f"{out}.pdf"]
        other = vary_run_file(Path(path), tmp_path / f"{name}2.tkperf", device={}, uuid="another")
        commands = (["show", path], ["report", path, *outputs, *texts], ["compare", path, str(other)])
        for command in commands:
            done = CliRunner().invoke(cli, command)
            assert done.exit_code == 0, done.exception
            assert "None" not in done.stdout
        assert "None" not in Path(f"{out}.md").read_text(encoding="utf-8")
        with (out / "cells.csv").open(encoding="utf-8") as table:
            for row in csv.DictReader(table):
                assert (row["host_limited"], row["ios"]) == ("", "")


@pytest.mark.parametrize("described", ["Intel S4510\nserial 1", None])
def test_notices_of_an_export_come_back(tmp_path: Path, described: str | None) -> None:
    """A simulated run that was exported and imported again has its SIMULATED notice in addition to the IMPORTED
    notice.
    """
    (tmp_path / "own").mkdir()
    notices = (SIMULATED_NOTICE, FILE_NOTICE, load_profile("quick").notice, NO_PURGE_NOTICE)
    info = run_info(notices=notices, device_description=described)
    own = simulate(tmp_path / "own", info, suite={"writesat": SSD_TESTS["writesat"]})
    file = tmp_path / "own.xml"
    file.write_text(render_tkperf_xml(own).text, encoding="utf-8")
    back = imported(tmp_path, file)
    assert back.info.notices[0].startswith("IMPORTED from own.xml")
    assert back.info.notices[1:] == notices
    assert back.info.device_description == (described or "M")
    banners = view_of(tmp_path / "test.tkperf").banners
    assert SIMULATED_NOTICE in banners
    # A second import neither loses nor duplicates the notices.
    file.write_text(render_tkperf_xml(back).text.replace("<test>", "<t2>").replace("</test>", "</t2>"))
    twice = imported(tmp_path, file).info
    assert twice.notices[1:] == back.info.notices
    assert twice.device_description == back.info.device_description


def test_a_verdict_that_differs_is_a_warning(tmp_path: Path) -> None:
    """If tkperf's verdict differs from the recorded verdict, a warning names the rounds. TKperf records a run that
    becomes steady in the last round as not steady.
    """
    text = (GOLDEN / "tkperf-2.2-lat.xml").read_bytes()
    changed = text.replace(b"<reachstdystate>true</reachstdystate>", b"<reachstdystate>false</reachstdystate>")
    run = parse_tkperf_xml(changed, file="x")
    (warning,) = run.warnings
    assert warning.code == "verdict-differs"
    assert "rounds 14–18" in warning.text


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """An import does not overwrite the run file of an earlier import with the same name."""
    file = GOLDEN / "tkperf-2.2-lat.xml"
    imported(tmp_path, file)
    again = CliRunner().invoke(cli, ["import", str(file), "--output", str(tmp_path)])
    assert isinstance(again.exception, RunFileError)


def test_an_import_reports_and_compares(tmp_path: Path) -> None:
    """Reports and comparisons accept an imported run."""
    imported(tmp_path, GOLDEN / "tkperf-2.2-lat.xml")
    path = str(tmp_path / "testlat.tkperf")
    page = tmp_path / "testlat.html"
    assert CliRunner().invoke(cli, ["report", path]).exit_code == 0
    assert "IMPORTED" in page.read_text(encoding="utf-8")
    assert CliRunner().invoke(cli, ["report", path, "--csv", str(tmp_path)]).exit_code == 0
    other = vary_run_file(Path(path), tmp_path / "other.tkperf", device={}, uuid="another")
    assert CliRunner().invoke(cli, ["compare", path, str(other)]).exit_code == 0
