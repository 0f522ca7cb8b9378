"""No output contains control characters from texts that tkperf did not write. Only line ends that belong to the output
format remain.
"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from rich.console import Console

from tests.builders import run_info, simulate
from tkperf.analysis.results import RunResult
from tkperf.cli.lines import JsonLines
from tkperf.model.record import RunNote
from tkperf.model.telemetry.drive_reading import Reading
from tkperf.model.units import CONTROLS, escape_controls
from tkperf.page.view import build_view
from tkperf.render.export_json import encode_json, render_json
from tkperf.render.export_markdown import render_markdown
from tkperf.render.export_series import SeriesPoint, render_line_protocol, render_openmetrics
from tkperf.render.export_tables import DataTable, build_tables, render_csv
from tkperf.render.export_tkperf import render_tkperf_xml
from tkperf.render.html import render_view
from tkperf.render.terminal.page_text import print_page
from tkperf.runner.events import Warned

HOSTILE = '\x00\x07\x1b[2J\r\n\t\x7f\x85\x9b\u061c\u2028\u2029\u202e\u2066\ud800\udcff,"\\={}=1+1'
TEXTS = st.text(st.one_of(st.sampled_from(HOSTILE), st.characters()), max_size=20)


def hidden_in(text: str) -> list[str]:
    return sorted(set(CONTROLS.findall(text)))


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    return simulate(tmp_path_factory.mktemp("controls"), run_info())


def with_text(result: RunResult, text: str) -> RunResult:
    """Return a result that contains the given text in every field that a run file, a device or a host can fill."""
    device = dict(result.info.device) | {"model": text, "serial": text, "firmware": text}
    info = replace(result.info, name=f"n{text}", device=device, command_line=("tkperf", text))
    warning = RunNote(code="x", text=text, test="iops")
    return replace(result, info=info, warnings=(*result.warnings, warning))


@settings(max_examples=200, deadline=None)
@given(text=TEXTS)
def test_fields_of_csv(text: str) -> None:
    """Each row of a CSV file is one line, and a CSV reader finds as many fields as there are columns (RFC 4180)."""
    rows = [(text, 1.5), (text, None)]
    written = "".join(render_csv(DataTable(name="t", types={"a": str, "b": str}, rows=rows)))
    assert not hidden_in(written)
    assert written.count("\n") == 3
    assert "\t" not in written
    assert [len(row) for row in csv.reader(io.StringIO(written))] == [2, 2, 2]


@settings(max_examples=200, deadline=None)
@given(text=TEXTS)
def test_labels_of_openmetrics_and_tags_of_line_protocol(text: str) -> None:
    """Each sample is written on one line, and an independent parser reads the original label."""
    point = SeriesPoint(1.0, {"run": text, "test": "t"}, {"tkperf_read_iops": 1.0})
    metrics = "".join(render_openmetrics([point]))
    assert not hidden_in(metrics)
    assert "\t" not in metrics
    assert metrics.count("\n") == 4
    (family,) = text_string_to_metric_families(metrics)  # type: ignore[no-untyped-call]
    assert not hidden_in(family.samples[0].labels["run"])
    line = "".join(render_line_protocol([point]))
    assert not hidden_in(line)
    assert "\t" not in line
    assert line.count("\n") == 1
    assert ",run= " not in line
    assert ",run=," not in line


@settings(max_examples=200, deadline=None)
@given(text=TEXTS)
def test_json_keeps_the_value_and_escapes_its_controls(text: str) -> None:
    """A JSON text escapes control characters and halves of surrogate pairs, as RFC 8259 permits. The decoded value does
    not change.
    """
    written = encode_json({"a": text})
    assert not hidden_in(written)
    assert "\n" not in written
    assert json.loads(written) == {"a": text}
    assert json.loads(escape_controls(json.dumps(text, ensure_ascii=False))) == text


@pytest.mark.parametrize("text", ["a\x1bb", "a\rb", HOSTILE], ids=["escape", "return", "all"])
def test_every_export_of_a_run(result: RunResult, text: str) -> None:
    """No export of a run contains control characters. The test puts them into the names of the run, device, host and
    file, and into the texts of warnings.
    """
    odd = with_text(result, text)
    view = build_view(odd)
    reading = Reading(at_s=1.0, drive=text, source="nvme", temperature_c=30.0)
    screen, lines = io.StringIO(), io.StringIO()
    print_page(view, Console(file=screen, width=160))
    JsonLines(lines)(Warned(warning=odd.warnings[-1]), datetime(2026, 1, 1, tzinfo=UTC))
    tables = build_tables(odd, [], lambda *_: (), [("iops", reading)])
    written = {
        "json": render_json(odd),
        "progress": lines.getvalue(),
        "csv": "".join(piece for table in tables for piece in render_csv(table)),
        "xml": render_tkperf_xml(odd).text,
        "markdown": render_markdown(view),
        "html": render_view(view),
        "terminal": screen.getvalue(),
    }
    assert {name: hidden_in(text) for name, text in written.items() if hidden_in(text)} == {}
    ET.fromstring(written["xml"])
    json.loads(written["json"])
