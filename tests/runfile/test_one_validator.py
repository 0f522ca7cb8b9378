"""The writer and the reader of a run file share one validator. The writer does not write a value that a reader would
refuse, and it reports such a value.
"""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import io_stats, run_info, simulate
from tests.runfile.runs import a_run, a_step
from tkperf.analysis.results import RunResult, SectionResult
from tkperf.analysis.run_results import analyse
from tkperf.model.measurement import NO_IO, CpuUse, IoStats, Measurement, Sample
from tkperf.model.quantity import PERCENTILES
from tkperf.model.record import RunStatus, StepRecord
from tkperf.page.words.run import find_notices, find_warnings
from tkperf.runfile.reader import RunFile, read_run
from tkperf.runfile.writer import RunFileWriter
from tkperf.runner.events import Event, RunEnded, RunStarted, StepEnded, TestStarted, Warned

SEEN = a_step().measurement


def write(folder: Path, *steps: StepRecord) -> tuple[Path, list[str]]:
    """Write a run with these steps. Return its path and the warnings of its writer."""
    said: list[Event] = []
    path = folder / "a.tkperf"
    writer = RunFileWriter(path, observer=said.append)
    writer(RunStarted(info=run_info(), tests=("iops",)))
    writer(TestStarted(test="iops", at_s=0))
    for step in steps:
        writer(StepEnded(test="iops", record=step))
    writer(RunEnded(status=RunStatus.COMPLETE, because=None, ended_utc="u"))
    writer.close()
    return path, [event.warning.text for event in said if isinstance(event, Warned)]


def test_negative_cpu_use_costs_only_itself(tmp_path: Path) -> None:
    """If fio reports a negative usr_cpu, the step is stored without its CPU time."""
    odd = replace(SEEN, cpu=CpuUse(busiest_thread_percent=-3.5, all_threads_percent=40.0))
    path, said = write(tmp_path, a_step(1), a_step(2, measurement=odd))
    record = read_run(path)
    first, second = record.tests[0].steps
    assert second.measurement == replace(first.measurement, cpu=None)
    assert record.left_out == ()
    assert len(said) == 1
    assert "cpu_busiest_thread_percent -3.5" in said[0]
    assert [warning.code for warning in record.warnings] == ["not-measured"]


@pytest.mark.parametrize("value", [-5, -1, 2**63, -(2**70)])
def test_impossible_extremes_cost_only_themselves(tmp_path: Path, value: int) -> None:
    """If a step contains an impossible extreme, such as a negative lat_ns.min, only this value is dropped. All other
    values of the step are kept.
    """
    stats = replace(io_stats([1000, 2000]), latency_min_ns=value)
    second = Sample(start_s=0, duration_s=1, read=NO_IO, write=stats)
    odd = replace(SEEN, write=stats, samples=(second,))
    path, said = write(tmp_path, a_step(1, measurement=odd))
    with RunFile(path) as run_file:
        (step,) = run_file.record().tests[0].steps
        (sample,) = run_file.samples("iops", step)
    for found in (step.measurement.write, sample.write):
        assert found.latency_min_ns is None
        assert (found.ios, found.latency_max_ns) == (2, 2000)
    assert len(said) == 2


def test_a_step_that_cannot_be_is_said_not_to_be_kept(tmp_path: Path) -> None:
    """An impossible step is not stored, and a warning reports this. The round then lacks this step, but the preceding
    and the following steps are kept.
    """
    odd = replace(SEEN, write=replace(SEEN.write, ios=-7))
    path, said = write(tmp_path, a_step(1), a_step(2, measurement=odd), a_step(3))
    record = read_run(path)
    assert [step.number for step in record.tests[0].steps] == [1, 3]
    assert record.left_out == ()
    assert [(w.code, w.text) for w in record.warnings] == [("not-kept", said[0])]
    assert "step 1 of round 2 of iops" in said[0]
    assert "key ios" in said[0]


def test_the_same_oddity_is_said_once(tmp_path: Path) -> None:
    """If the same invalid value occurs in many steps, such as a negative CPU time, only one warning is reported."""
    odd = replace(SEEN, cpu=CpuUse(busiest_thread_percent=-1, all_threads_percent=-1))
    path, said = write(tmp_path, *(a_step(number, measurement=odd) for number in range(1, 9)))
    assert len(said) == 1
    assert len(read_run(path).tests[0].steps) == 8


numbers: st.SearchStrategy[Any] = st.one_of(
    st.integers(min_value=-(2**70), max_value=2**70),
    st.floats(),
    st.sampled_from([0, 1, -1, 2**63 - 1, 2**63, math.nan, math.inf]),
)
whole = st.one_of(st.integers(min_value=-(2**70), max_value=2**70), st.sampled_from([0, 1, 2**63 - 1]))
odd_stats = st.builds(
    IoStats,
    ios=whole,
    bytes=whole,
    latency_ios=whole,
    latency_sum_ns=whole,
    latency_min_ns=st.none() | whole,
    latency_max_ns=st.none() | whole,
    histogram=st.sampled_from([NO_IO.histogram, io_stats([1000] * 3).histogram]),
)
mostly = st.one_of(st.just(io_stats([1000, 2000])), odd_stats)
odd_steps = st.builds(
    a_step,
    number=st.integers(min_value=-1, max_value=3),
    planned_s=st.none() | numbers,
    started_s=st.just(0.5) | numbers,
    gap_s=st.none() | numbers,
    measurement=st.builds(
        Measurement,
        duration_s=st.just(1.0) | numbers,
        read=st.just(NO_IO) | odd_stats,
        write=mostly,
        cpu=st.none() | st.builds(CpuUse, busiest_thread_percent=numbers, all_threads_percent=numbers),
        samples=st.lists(
            st.builds(
                Sample,
                start_s=st.just(0.0) | numbers,
                duration_s=st.just(1.0) | numbers,
                read=st.just(NO_IO) | odd_stats,
                write=mostly,
            ),
            max_size=3,
        ).map(tuple),
    ),
)


@given(steps=st.lists(odd_steps, max_size=3))
def test_whatever_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, steps: list[StepRecord]) -> None:
    """For any values of a step, the reader never has to leave out a part of the file that the writer wrote."""
    path, said = write(tmp_path_factory.mktemp("run"), *steps)
    with RunFile(path) as run_file:
        record = run_file.record()
        found = record.tests[0].steps
        for step in found:
            run_file.samples("iops", step)
        run_file.seconds(record.tests[0])
        assert run_file.left_out == ()
    missing = len(steps) - len(found)
    assert sum("is not kept" in text for text in said) == missing
    analyse(record)


@pytest.mark.parametrize("value", [2**63, 2**70, 1e300])
def test_numbers_wider_than_a_column_end_no_run(tmp_path: Path, value: float) -> None:
    """A number that exceeds the width of a column does not end a run. SQLite refuses such a number with an error, and
    waiting would not help.
    """
    cpu = CpuUse(busiest_thread_percent=0, all_threads_percent=value)
    second = Sample(start_s=value, duration_s=1, read=NO_IO, write=SEEN.write)
    odd = replace(SEEN, cpu=cpu, samples=(*SEEN.samples, second))
    path, said = write(tmp_path, a_step(1, measurement=odd))
    with RunFile(path) as run_file:
        (step,) = run_file.record().tests[0].steps
        assert len(run_file.samples("iops", step)) == 1
        assert run_file.left_out == ()
    assert "1 of 2 seconds" in said[0]


def test_facts_that_no_reader_takes_are_not_kept(tmp_path: Path) -> None:
    """Facts that no reader would accept are not stored. All other facts are stored, including other facts about the
    same device.
    """
    path = tmp_path / "a.tkperf"
    writer = RunFileWriter(path)
    device = {"model": "M", "capacity_bytes": -5}
    writer(RunStarted(info=run_info(device=device), tests=("iops",)))
    writer.close()
    record = read_run(path)
    assert record.info.device == {"model": "M"}
    assert record.left_out == ()
    assert "device.capacity_bytes" in record.warnings[0].text


def test_a_run_cut_off_before_its_first_record_is_shown(tmp_path: Path) -> None:
    """A run that was interrupted before its first record is shown as an empty run."""
    path = tmp_path / "early.tkperf"
    writer = RunFileWriter(path)
    assert read_run(path).status is RunStatus.RUNNING
    writer.close()
    record = read_run(path)
    assert (record.info.name, record.status, record.tests) == ("early", RunStatus.INTERRUPTED, ())
    assert record.ended_because is not None
    assert "stopped before it began" in record.ended_because
    analyse(record)


# Values that were left out are not part of any figure, and each affected figure shows this.


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    simulate(folder, run_info())
    return folder / "run.tkperf"


def damaged(path: Path, folder: Path, statement: str) -> tuple[RunResult, RunResult]:
    """Return the results from before and after an SQL statement damages the file."""
    copy = folder / "run.tkperf"
    copy.write_bytes(path.read_bytes())
    with closing(sqlite3.connect(copy)) as database, database:
        assert database.execute(statement).rowcount == 1
    return analyse(read_run(path)), analyse(read_run(copy))


def section(result: RunResult, test: str) -> SectionResult:
    return next(each for each in result.tests if each.name == test).sections[0]


STEP_OF = (
    "(SELECT sequence FROM step JOIN test ON test.id = test_id WHERE test.name = '{}' "
    "AND kind = '{}' AND number = {} ORDER BY sequence LIMIT 1 OFFSET {})"
)


@pytest.mark.parametrize("change", ["write_ios = -1", "duration_s = 'x'", "number = -3"])
def test_a_cell_that_lacks_a_round_has_no_mean(whole_run: Path, tmp_path: Path, change: str) -> None:
    """A cell that lacks a value in one round has no mean. A mean over four rounds would be mistaken for a mean over
    five rounds. Cells with values in all rounds do not change.
    """
    window = section(analyse(read_run(whole_run)), "iops").window
    where = STEP_OF.format("iops", "round", window[1], 2)
    before, after = damaged(whole_run, tmp_path, f"UPDATE step SET {change} WHERE sequence = {where}")
    old, new = section(before, "iops"), section(after, "iops")
    assert new.window == old.window
    lost = {cell.workload for cell in old.cells} - {cell.workload for cell in new.cells}
    assert len(lost) == 1
    assert all(old.cell(cell.workload) == cell for cell in new.cells)
    complete = {each.number for each in new.rounds if each.complete}
    assert complete == {each.number for each in old.rounds if each.complete} - {window[1]}
    assert any(notice.startswith("DAMAGED: ") for notice in find_notices(after))
    assert not any(notice.startswith("DAMAGED: ") for notice in find_notices(before))
    (said,) = [warning.text for warning in find_warnings(after) if warning.code == "left-out"]
    assert said.startswith("left out: step ")
    assert "of iops" in said
    others = [test for test in after.tests if test.name != "iops"]
    assert others == [test for test in before.tests if test.name != "iops"]
    assert after.tests[0].written_bytes is None


def test_a_stream_that_lacks_a_slice_has_no_whole(whole_run: Path, tmp_path: Path) -> None:
    """If a stream lacks one of its slices, it has no total, because the written amount and the percentiles need every
    slice.
    """
    where = STEP_OF.format("writesat", "continuous", 2, 0)
    before, after = damaged(whole_run, tmp_path, f"UPDATE step SET write_bytes = -1 WHERE sequence = {where}")
    old, new = section(before, "writesat"), section(after, "writesat")
    assert old.cells
    assert (new.cells, new.histogram_us) == ((), ())
    assert [each.number for each in new.slices] == [each.number for each in old.slices if each.number != 2]
    assert {each.total_written_bytes for each in new.slices} == {None}
    starts = {each.number: each.start_s for each in old.slices}
    assert all(each.start_s == pytest.approx(starts[each.number], abs=1) for each in new.slices)


def test_a_percentile_of_some_rounds_is_none(whole_run: Path, tmp_path: Path) -> None:
    """If the histogram of one round is unreadable, only the percentiles of its cell are missing."""
    window = section(analyse(read_run(whole_run)), "lat").window
    where = STEP_OF.format("lat", "round", window[0], 0)
    before, after = damaged(
        whole_run, tmp_path, f"UPDATE step SET read_histogram = x'00', write_histogram = x'00' WHERE sequence = {where}"
    )
    old, new = section(before, "lat"), section(after, "lat")
    changed = [(a, b) for a, b in zip(old.cells, new.cells, strict=True) if a != b]
    ((was, is_now),) = changed
    lost = {each.key for each in PERCENTILES}
    assert {is_now.all[key] for key in lost} == {None}
    assert {key: value for key, value in is_now.all.items() if key not in lost} == {
        key: value for key, value in was.all.items() if key not in lost
    }


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("UPDATE outcome SET outcome = '5' WHERE test_id = 1", "how IOPS of test iops ended"),
        ("UPDATE purge SET method = x'00' WHERE test_id = 1", "purge"),
        ("UPDATE host SET facts = '{'", "facts of host 1"),
        ("UPDATE run SET value = '[1]' WHERE key = 'status'", "how the run ended"),
        ("DELETE FROM run WHERE key = 'profile_name'", "fact profile_name of the run"),
    ],
)
def test_each_row_is_left_out_alone(whole_run: Path, tmp_path: Path, statement: str, says: str) -> None:
    """If a row is damaged, only this row is left out. All other cells and rounds of its test remain."""
    before, after = damaged(whole_run, tmp_path, statement)
    assert any(says in warning.text for warning in find_warnings(after))
    for old, new in zip(before.tests, after.tests, strict=True):
        for one, other in zip(old.sections, new.sections, strict=True):
            assert [each.cells for each in one.rounds] == [each.cells for each in other.rounds]
            assert one.slices == other.slices


@pytest.mark.parametrize("table", ["warning", "note"])
def test_a_bad_text_hides_no_other(tmp_path: Path, table: str) -> None:
    path, writer = a_run(tmp_path, steps=1)
    writer.close()
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"INSERT INTO {table} (code, text) VALUES ('a', x'00'), ('b', 'good')")
    record = read_run(path)
    kept = record.warnings if table == "warning" else record.notes
    assert [each.text for each in kept] == ["good"]
    assert [each.what for each in record.left_out] == [f"{table} 1"]
