"""Tables in the terminal contain the same figures as all other outputs, and no word is broken."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from tests.builders import run_info, simulate
from tkperf.analysis.claim_results import Checked, ClaimResult, ClaimState
from tkperf.analysis.claims_file import Claim
from tkperf.analysis.comparing.comparison import Comparison, compare
from tkperf.analysis.results import RunResult
from tkperf.analysis.run_results import analyse
from tkperf.model.disturbance.io import Disturbance, DisturbanceCode
from tkperf.model.figures import matrix_keys
from tkperf.model.quantity import PERCENTILES, QUANTITIES
from tkperf.page.check import build_claims_page
from tkperf.page.facts import typeset
from tkperf.page.view import build_view
from tkperf.page.words.conditions import ConditionGroup, find_conditions
from tkperf.page.words.uncertainty import describe_disturbances, mark
from tkperf.render.export_json import render_json
from tkperf.render.export_markdown import render_markdown
from tkperf.render.export_tables import build_tables
from tkperf.render.terminal.page_text import print_check, print_page
from tkperf.runfile.reader import read_run


def conditions_of(comparison: Comparison) -> tuple[ConditionGroup, ...]:
    return find_conditions(comparison.names, comparison.results)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    return simulate(tmp_path_factory.mktemp("run"), run_info())


def shown(result: RunResult, width: int = 200) -> str:
    file = io.StringIO()
    print_page(build_view(result), Console(file=file, width=width))
    return file.getvalue()


def test_every_output_has_the_facts_tables_and_sentences_of_the_page(result: RunResult) -> None:
    """The terminal and Markdown contain every fact, table and sentence of the report page, in the same words."""
    view = build_view(result)
    for text in (shown(result), render_markdown(view).replace("\\", "")):
        said = " ".join(text.replace("|", " ").split())
        sections = [section for test in view.tests for section in test.sections]
        tables = [table for section in sections for table in section.tables]
        tables += [section.determination for section in sections if section.determination]
        tables += [table for test in view.tests for table in (*test.tables, *test.events.tables)]
        cells = [cell for table in tables for row in table.rows[:10] for cell in row]
        notes = [note for table in tables for note in table.notes]
        facts = [fact for _, block in view.disclosure for pair in block for fact in pair]
        facts += [fact for test in view.tests for _, fact in test.facts]
        sentences = [text for found in view.findings for text, _ in found.sentences]
        sentences += [sentence for section in sections for sentence in section.over_time]
        headlines = [each.text for each in view.headlines]
        for each in (view.verdict.text, *view.banners, *headlines, *sentences, *cells, *notes, *facts):
            assert " ".join(typeset(each).split()) in typeset(said)
        assert "e+" not in said


FOOTNOTE = "fewer than 10 I/Os expected beyond that percentile"


def test_a_percentile_left_out_is_explained_where_its_dash_is(result: RunResult) -> None:
    """The terminal, Markdown and the report print a footnote below each table in which a percentile is left out. Other
    tables have no such footnote.
    """
    latency = result.tests[1].sections[0]
    shown_of = [QUANTITIES[key] for key in matrix_keys(latency.plan) if key.startswith("p")]
    known = [[cell.value(each) is not None for cell in latency.cells] for each in shown_of]
    partly = [each for each in known if any(each) and not all(each)]
    streams = [test.sections[-1] for test in (result.tests[1], result.tests[3])]
    dashed = [
        each
        for each in streams
        if any(
            cell.value(one) is None
            for cell in (each.slices[0].values, each.slices[-1].values, *each.cells)
            for one in PERCENTILES
        )
    ]
    assert dashed
    lines = shown(result).splitlines()
    assert lines.count(f"- {FOOTNOTE}") == len(partly) + len(dashed)
    assert f"\n\\- {FOOTNOTE}\n" in render_markdown(build_view(result))
    tables = [t for test in build_view(result).tests for each in test.sections for t in each.tables]
    noted = [table for table in tables if f"- {FOOTNOTE}" in table.notes]
    assert [t for t in noted if not any("-" in row for row in t.rows)] == []
    assert len(noted) >= len(dashed)
    whole = replace(latency, cells=tuple(replace(cell, all=dict.fromkeys(cell.all, 1.0)) for cell in latency.cells))
    given = replace(result, tests=(replace(result.tests[1], sections=(whole,)),))
    assert f"- {FOOTNOTE}" not in shown(given) + render_markdown(build_view(given))


def test_one_of_anything_is_singular(result: RunResult) -> None:
    """Nouns after the number 1 are singular. For example, a run that was stopped early has one round and one slice."""
    test, stream = result.tests[0], result.tests[3]
    section = replace(test.sections[0], window=(1,))
    slices = replace(stream.sections[0], slices=stream.sections[0].slices[:1])
    short = replace(result, tests=(replace(test, sections=(section,)), replace(stream, sections=(slices,))))
    assert "R/W mix, mean of round 1\n" in shown(short)
    for text in (shown(short), render_markdown(build_view(short))):
        assert "1 slice, " in text
        assert "1 slices" not in text


FINDING = ClaimResult(
    claim="tp 100/0 1024k megabytes_per_s",
    source="data sheet",
    state=ClaimState.MET,
    limit=">= 0.01 MB/s",
    value=512.3,
    unit="MB/s",
    margin_percent=8882057.7,
    note="steady state was not reached",
    about=Claim(test="tp", metric="megabytes_per_s", read_percent=100, block_size="1024k", at_least=0.01),
)


@pytest.mark.parametrize("width", [50, 80, 200])
def test_claims_are_legible_at_any_width(result: RunResult, width: int) -> None:
    """Claims fit a terminal of any width. No line is wider than the terminal, and no word is broken."""
    file = io.StringIO()
    quiet = replace(result, info=replace(result.info, notices=()))
    view = build_claims_page(Checked(claim_results=(FINDING,), result=quiet))
    print_check(view, Console(file=file, width=width))
    text = file.getvalue()
    assert all(len(line) <= width for line in text.splitlines())
    for word in ("throughput", "+100,000 % met", "512", "reached", "sheet"):
        assert word in text
    assert ("───" in text) == (width == 200)


def test_the_number_of_claims_not_met_is_said(tmp_path: Path) -> None:
    """The error states how many claims pass, with a singular noun for a single claim."""
    from click.testing import CliRunner

    from tkperf.cli.main import cli

    simulate(tmp_path, run_info())
    claims = tmp_path / "claims.toml"
    claims.write_text("[[claim]]\ntest='iops'\nmetric='iops'\nread_percent=0\nblock_size='4k'\nat_least=1e12")
    done = CliRunner().invoke(cli, ["check", str(tmp_path / "run.tkperf"), str(claims)])
    assert "0 of 1 claim passes; " in str(done.exception)


def test_disturbed_figures_are_marked_everywhere(tmp_path: Path) -> None:
    """The terminal, Markdown, HTML, CSV and JSON mark disturbed figures, and state the kind of disturbance and the
    number of disturbed steps.
    """
    simulate(tmp_path, run_info())
    record = read_run(tmp_path / "run.tkperf")
    test = record.tests[0]
    foreign = Disturbance(code=DisturbanceCode.FOREIGN_IO, text="t", started_s=1.0, duration_s=1.0, share=0.1)
    last = replace(test.steps[-1], disturbances=(foreign,), foreign_write_bytes=7, foreign_read_bytes=0)
    disturbed = replace(record, tests=(replace(test, steps=(*test.steps[:-1], last)),))
    result = analyse(disturbed)
    for text in (shown(result), render_markdown(build_view(result)).replace("\\", "")):
        assert "! disturbed: other I/O on the device" in text
        assert "1 step of the window disturbed" in text
        assert "1 step with other I/O on the device" in text
        assert len(re.findall(r"\d!", text)) == 1
    view = build_view(result)
    (table, *_) = view.tests[0].sections[0].tables
    assert table.notes == ("! disturbed: other I/O on the device",)
    assert sum(field.endswith("!") for row in table.rows for field in row) == 1
    facts = dict(view.tests[0].facts)
    assert facts["Disturbed"] == "1 step with other I/O on the device, fills included"
    assert "1 step of the window disturbed" in view.tests[0].sections[0].summary
    document = json.loads(render_json(result))["tests"][0]
    assert document["disturbed_steps"] == {"foreign-io": 1}
    assert [cell["disturbances"] for cell in document["sections"][0]["cells"]].count(["foreign-io"]) == 1
    cells, *_ = build_tables(result, (), lambda *_: ())
    (row,) = [row for row in cells.rows if dict(zip(cells.columns, row, strict=True))["disturbances"]]
    assert dict(zip(cells.columns, row, strict=True))["disturbances"] == "foreign-io"
    beside = compare([analyse(record), result])
    said = [text for group in conditions_of(beside) for text in group.texts]
    assert any("disturbed: other I/O on the device" in text for text in said)
    assert "!" in "".join(mark(entry) for row in beside.rows for entry in row.entries)


def test_the_longest_gap_is_between_any_two_steps(tmp_path: Path) -> None:
    """The longest gap is the longest time between two consecutive steps. Planned pauses do not count as gaps. Gaps
    above the limit are counted.
    """
    simulate(tmp_path, run_info())
    record = read_run(tmp_path / "run.tkperf")
    test = record.tests[0]
    idle = Disturbance(code=DisturbanceCode.IDLE_BEFORE, text="t", started_s=1.0, duration_s=4.0)
    late = replace(test.steps[3], gap_s=4.0, disturbances=(idle,))
    purged = replace(test.steps[0], gap_s=60.0, planned_pause=True)
    steps = (purged, *test.steps[1:3], late, *test.steps[4:])
    result = analyse(replace(record, tests=(replace(test, steps=steps),)))
    assert result.tests[0].longest_gap_s == 4.0
    assert "by tkperf's clock: 4000.0 ms, 1 too long" in shown(result)


def test_steps_that_overlap_have_no_gap(tmp_path: Path) -> None:
    """If each step begins a moment before the previous step ends, the longest gap is 0, and not negative."""
    simulate(tmp_path, run_info())
    record = read_run(tmp_path / "run.tkperf")
    test = record.tests[0]
    steps = tuple(replace(step, gap_s=-0.0002) for step in test.steps)
    result = analyse(replace(record, tests=(replace(test, steps=steps),)))
    assert result.tests[0].longest_gap_s == 0.0


@pytest.mark.parametrize(
    ("gap_s", "said"), [(2.5, "2500.0 ms, none flagged"), (0.02, "20.0 ms, none flagged"), (0.0, "none")]
)
def test_a_gap_is_called_too_long_only_where_it_was(tmp_path: Path, gap_s: float, said: str) -> None:
    """A gap counts as too long only if it exceeds the limit for its kind. The kinds have different limits, because the
    start of the first fio may take longer than a hand-over from one fio to the next. The terminal and the report print
    the same words.
    """
    simulate(tmp_path, run_info())
    record = read_run(tmp_path / "run.tkperf")
    test = record.tests[0]
    steps = tuple(replace(step, gap_s=0.0) for step in test.steps)
    steps = (*steps[:3], replace(steps[3], gap_s=gap_s), *steps[4:])
    result = analyse(replace(record, tests=(replace(test, steps=steps),)))
    assert f"by tkperf's clock: {said}\n" in shown(result)
    (fact,) = [value for name, value in build_view(result).tests[0].facts if "gap" in name]
    assert fact == said


def test_a_run_whose_other_io_nobody_could_tell_does_not_pass_for_undisturbed(tmp_path: Path) -> None:
    """A run on a file is not described as undisturbed, because a file has no counters with which tkperf could compare
    the I/O of fio. A run on a simulated drive is described as undisturbed, because such a drive has no other users.
    """
    simulate(tmp_path, run_info())
    record = read_run(tmp_path / "run.tkperf")
    assert analyse(record).tests[0].not_compared_steps == 0
    result = analyse(replace(record, info=replace(record.info, ioengine="io_uring")))
    test = result.tests[0]
    steps = test.not_compared_steps
    assert test.disturbed_steps == {}
    assert steps
    said = f"no; I/O of others not compared in {steps} steps"
    assert f"Disturbed: {said}" in shown(result)
    assert f"Disturbed: {said}" in render_markdown(build_view(result)).replace("\\", "")
    assert ("Disturbed", said) in build_view(result).tests[0].facts
    cell = test.sections[0].cells[0]
    assert describe_disturbances(cell, cell.foreign_bytes) == "no; I/O of others not compared"
    assert describe_disturbances(cell, 0) == "no"
    unwatched = replace(cell, disturbances=None)
    assert describe_disturbances(unwatched, None) == "not watched"


def test_reads_and_writes_that_nobody_told_apart_have_no_table(result: RunResult) -> None:
    """If reads and writes of mixed workloads were not recorded separately, as in TKperf's files, the table that
    separates reads and writes is left out. A table of dashes would look like lost data.
    """
    test = result.tests[0]
    section = test.sections[0]
    cells = tuple(replace(cell, read=None, write=None) for cell in section.cells)
    together = replace(test, sections=(replace(section, cells=cells),))
    heading = "IOPS of mixed workloads, reads and writes apart"
    assert heading in shown(replace(result, tests=(test,)))
    assert heading not in shown(replace(result, tests=(together,)))


def test_an_unknown_load_generator_is_called_so(result: RunResult) -> None:
    info = replace(result.info, fio_version=None, ioengine="not known")
    unknown = shown(replace(result, info=info)).split("\nNot known\n")[-1]
    assert "Load generator" in unknown


def test_figures_are_not_broken_in_80_columns(result: RunResult) -> None:
    """In a terminal of 80 columns, no figure in a table with seven mixes is broken."""
    section = result.tests[0].sections[0]
    mixes = (100, 95, 65, 50, 35, 5, 0)
    cells = tuple(
        replace(
            section.cells[0],
            workload=replace(section.cells[0].workload, read_percent=mix, block_size_bytes=size),
            all={**section.cells[0].all, "iops": 93_883.4},
        )
        for mix in mixes
        for size in (4096, 512)
    )
    wide = replace(section, cells=cells)
    lines = shown(replace(result, tests=(replace(result.tests[0], sections=(wide,)),)), 80)
    rows = [line.split() for line in lines.splitlines() if line.split()[:2] == ["4", "93,900"]]
    assert ["4", *["93,900"] * 7] in rows
