"""A run file contains exactly the data that were written. Reading does not change the file."""

from __future__ import annotations

import math
import os
import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.builders import io_stats, latency_lists, run_info
from tests.runfile.runs import a_run, a_step
from tkperf.analysis.run_results import analyse
from tkperf.model.disturbance.io import Disturbance, DisturbanceCode
from tkperf.model.histogram import coarsen
from tkperf.model.measurement import NO_IO, CpuUse, Measurement, Sample, Seconds
from tkperf.model.phases import Demand, SectionOutcome
from tkperf.model.record import (
    GoesOn,
    PurgeRecord,
    Resumption,
    RunNote,
    RunRecord,
    RunStatus,
    StepKind,
    StepRecord,
    TestRecord,
    VerdictRecord,
)
from tkperf.model.steady_state import judge
from tkperf.model.workload import Access, Workload
from tkperf.page.words.uncertainty import describe_counts
from tkperf.runfile.reader import RunFile, read_run
from tkperf.runfile.writer import RunFileWriter
from tkperf.runner.events import (
    Event,
    Judged,
    PurgeEnded,
    RunEnded,
    RunResumed,
    RunStarted,
    SectionEnded,
    StepEnded,
    TestEnded,
    TestStarted,
    Warned,
)

seconds = st.integers(min_value=0, max_value=10**9).map(lambda us: us / 1e6)


stats = st.one_of(st.just(NO_IO), latency_lists.map(io_stats))


samples = st.lists(
    st.builds(Sample, start_s=seconds, duration_s=seconds.filter(lambda s: s > 0), read=stats, write=stats), max_size=5
)


steps = st.builds(
    StepRecord,
    section=st.sampled_from(["IOPS", "Throughput 4k", "Ünïcode ''\"; --"]),
    kind=st.sampled_from(StepKind),
    number=st.integers(min_value=1, max_value=2000),
    position=st.integers(min_value=0, max_value=60),
    workload=st.builds(
        Workload,
        access=st.sampled_from(Access),
        read_percent=st.integers(min_value=0, max_value=100),
        block_size_bytes=st.integers(min_value=1, max_value=2048).map(lambda n: n * 512),
        jobs=st.integers(min_value=1, max_value=64),
        io_depth=st.integers(min_value=1, max_value=256),
    ),
    planned_s=st.none() | seconds,
    started_s=seconds,
    gap_s=st.none() | seconds,
    planned_pause=st.booleans(),
    foreign_read_bytes=st.none() | st.integers(min_value=0, max_value=2**50),
    foreign_write_bytes=st.none() | st.integers(min_value=0, max_value=2**50),
    disturbances=st.none()
    | st.lists(
        st.builds(
            Disturbance,
            code=st.sampled_from(DisturbanceCode),
            text=st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=40),
            started_s=seconds,
            duration_s=seconds,
            share=st.none() | seconds,
        ),
        max_size=3,
    ).map(tuple),
    measurement=st.builds(
        Measurement,
        duration_s=seconds.filter(lambda s: s > 0),
        read=stats,
        write=stats,
        samples=samples.map(tuple),
        cpu=st.none() | st.builds(CpuUse, busiest_thread_percent=seconds, all_threads_percent=seconds),
        host_limited=st.booleans(),
    ),
    job_file=st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=200),
    engine_output=st.binary(max_size=500),
)


def coarse(sample: Sample) -> Sample:
    """Return a sample in the form in which the run file stores it."""
    read = replace(sample.read, histogram=coarsen(sample.read.histogram))
    write = replace(sample.write, histogram=coarsen(sample.write.histogram))
    return replace(sample, read=read, write=write)


text = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=40)


number = st.floats(allow_nan=False, allow_infinity=False, width=32)


verdicts = st.lists(number, min_size=1, max_size=7).map(
    lambda values: judge(range(1, len(values) + 1), values, tracking="t", unit="u")
)


purges = st.builds(PurgeRecord, section=text, started_s=seconds, duration_s=seconds, method=text, note=st.none() | text)


outcomes = st.builds(
    SectionOutcome,
    section=text,
    window=st.lists(st.integers(min_value=1, max_value=99), max_size=5, unique=True).map(sorted).map(tuple),
    verdict=st.none() | verdicts,
    verdicts=st.lists(verdicts, max_size=2).map(tuple),
    ended_because=text,
    demand=st.none() | st.just(Demand(jobs=3, io_depth=7)),
)


test_events = st.lists(
    st.one_of(
        steps.map(lambda step: StepEnded(test="", record=step)),
        purges.map(lambda purge: PurgeEnded(test="", record=purge)),
        outcomes.map(lambda outcome: SectionEnded(test="", outcome=outcome)),
        st.builds(
            Judged, test=st.just(""), section=text, number=st.integers(min_value=1, max_value=99), verdict=verdicts
        ),
    ),
    max_size=6,
)


warnings = st.builds(RunNote, code=text, text=text, test=st.none() | text, at_s=st.none() | seconds)


def record_of(events: list[Event], status: RunStatus) -> TestRecord:
    """Return the record that the file must contain after these events of a test."""
    kept = [each.record for each in events if isinstance(each, StepEnded)]
    return TestRecord(
        name="iops",
        status=status,
        started_s=0.25,
        ended_s=9.0,
        outcomes=tuple(each.outcome for each in events if isinstance(each, SectionEnded)),
        purges=tuple(each.record for each in events if isinstance(each, PurgeEnded)),
        steps=tuple(
            replace(step, engine_output=b"", measurement=replace(step.measurement, samples=())) for step in kept
        ),
        verdicts=tuple(
            VerdictRecord(section=each.section, number=each.number, verdict=each.verdict)
            for each in events
            if isinstance(each, Judged)
        ),
    )


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    log=test_events,
    said=st.lists(warnings, max_size=3),
    status=st.sampled_from([RunStatus.COMPLETE, RunStatus.INTERRUPTED, RunStatus.FAILED]),
    because=st.none() | text,
)
def test_a_run_is_read_back_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory,
    log: list[Event],
    said: list[RunNote],
    status: RunStatus,
    because: str | None,
) -> None:
    """Any run is read back unchanged, and its log has the order in which the events occurred."""
    path = tmp_path_factory.mktemp("run") / "a.tkperf"
    info = run_info(notices=("SIMULATED",), device={"model": "\x00<b>", "nothing": None})
    writer = RunFileWriter(path)
    writer(RunStarted(info=info, tests=("iops",)))
    writer(TestStarted(test="iops", at_s=0.25))
    for event in (*log, *(Warned(warning=each) for each in said)):
        writer(event)
    writer(TestEnded(test="iops", status=status, at_s=9.0))
    writer(RunEnded(status=status, because=because, ended_utc="u"))
    writer.close()

    record = read_run(path)
    assert record == RunRecord(
        info=info,
        status=status,
        ended_utc="u",
        ended_because=because,
        tests=(replace(record_of(log, status), id=1),),
        planned=("iops",),
        warnings=tuple(said),
    )
    with closing(sqlite3.connect(path)) as database, database:
        order = database.execute(
            "SELECT 'StepEnded', sequence FROM step UNION SELECT 'PurgeEnded', sequence FROM purge "
            "UNION SELECT 'Judged', sequence FROM verdict "
            "UNION SELECT 'SectionEnded', sequence FROM outcome ORDER BY 2"
        ).fetchall()
    database.close()
    assert [kind for kind, _ in order] == [type(event).__name__ for event in log]


def test_each_fill_of_a_section_has_its_own_seconds_and_output(tmp_path: Path) -> None:
    """Each fill of a section has its own seconds and output. A workload file may contain several fills before one
    section. Only the times of these fills distinguish them.
    """
    path, writer = a_run(tmp_path)
    fills = [
        a_step(
            kind=StepKind.FILL,
            started_s=float(at_s),
            engine_output=b'{"at": %d}' % at_s,
            measurement=Measurement(
                duration_s=1.0,
                read=NO_IO,
                write=io_stats([1000] * ios),
                samples=(Sample(start_s=0, duration_s=1, read=NO_IO, write=io_stats([1000] * ios)),),
            ),
        )
        for at_s, ios in ((1, 3), (5, 7))
    ]
    for fill in fills:
        writer(StepEnded(test="iops", record=fill))
    writer.close()
    with RunFile(path) as run_file:
        (test,) = run_file.record().tests
        for step, columns, fill in zip(test.steps, run_file.seconds(test), fills, strict=True):
            written = fill.measurement.samples[0].write.ios
            # The sample lasts one second, so its IOPS equal its number of I/Os.
            assert columns.iops.tolist() == [written]
            assert [sample.write.ios for sample in run_file.samples("iops", step)] == [written]
            assert run_file.engine_output("iops", step) == fill.engine_output


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(step=steps)
def test_samples_and_output_of_a_step_are_read_back(tmp_path_factory: pytest.TempPathFactory, step: StepRecord) -> None:
    """Every second is read back unchanged, except that its histogram becomes coarser. The output of fio is read back
    byte for byte.
    """
    path = tmp_path_factory.mktemp("run") / "a.tkperf"
    writer = RunFileWriter(path)
    writer(RunStarted(info=run_info(), tests=("iops",)))
    writer(TestStarted(test="iops", at_s=0.0))
    writer(StepEnded(test="iops", record=step))
    writer.close()
    with RunFile(path) as run_file:
        (test,) = run_file.record().tests
        (found,) = test.steps
        assert run_file.engine_output("iops", found) == step.engine_output
        kept = tuple(coarse(sample) for sample in step.measurement.samples)
        assert run_file.samples("iops", found) == kept
        (columns,) = run_file.seconds(test)
    assert_same(columns, kept)


def assert_same(columns: Seconds, samples: tuple[Sample, ...]) -> None:
    """Require that the columns contain the values of the samples, with NaN for None."""

    def us(values_ns: Iterable[float | None]) -> list[float]:
        return [math.nan if value is None else value / 1000 for value in values_ns]

    both = [sample.both for sample in samples]
    expected: dict[str, list[float]] = {
        "start_s": [sample.start_s for sample in samples],
        "duration_s": [sample.duration_s for sample in samples],
        "iops": [sample.iops for sample in samples],
        "megabytes_per_s": [sample.bytes_per_s / 1e6 for sample in samples],
        "latency_mean_us": us(stats.latency_mean_ns for stats in both),
        "latency_max_us": us(stats.latency_max_ns for stats in both),
    }
    for name, values in expected.items():
        np.testing.assert_allclose(getattr(columns, name), values, rtol=1e-12, err_msg=name)


@given(latencies=latency_lists)
def test_coarse_buckets_are_at_most_a_sixteenth_wide(latencies: list[int]) -> None:
    """The width of coarse buckets is at most a sixteenth of their latency. No I/O moves by more than 1/16 of its
    latency, and no I/O is lost.
    """
    for latency_ns in latencies:
        fine = io_stats([latency_ns]).histogram
        (before,), (after,) = fine.buckets(), coarsen(fine).buckets()
        assert abs(after[0] - before[0]) <= latency_ns / 16
        assert coarsen(coarsen(fine)) == coarsen(fine)
    assert coarsen(io_stats(latencies).histogram).total == len(latencies)


def test_what_was_not_measured_is_null(tmp_path: Path) -> None:
    """A value that was not measured is stored as null. A verdict with NaN is stored as JSON that SQLite can read, and
    the value is NaN again after it is read back.
    """
    path, writer = a_run(tmp_path)
    verdict = judge([1, 2], [5.0, math.nan], tracking="t", unit="u")
    writer(Judged(test="iops", section="IOPS", number=2, verdict=verdict))
    writer.close()
    with closing(sqlite3.connect(path)) as database, database:
        query = "SELECT json_extract(verdict, '$.average'), json_valid(verdict) FROM verdict"
        assert database.execute(query).fetchall() == [(None, 1)]
    database.close()
    found = read_run(path).tests[0].verdicts[0].verdict
    assert found.values[0] == 5.0
    assert math.isnan(found.values[1])
    assert math.isnan(found.average)
    assert not found.reached


def test_text_that_is_not_unicode_does_not_end_a_run(tmp_path: Path) -> None:
    """Text that is not valid Unicode, such as a path with invalid bytes, is written with escapes. Such text does not
    end a run.
    """
    path, writer = a_run(tmp_path)
    odd = os.fsdecode(b"/x/\xff")
    writer(Warned(warning=RunNote(code="c", text=odd)))
    writer(StepEnded(test="iops", record=a_step(1, job_file=odd)))
    writer.close()
    record = read_run(path)
    assert record.warnings[0].text == record.tests[0].steps[0].job_file == "/x/\\udcff"


def test_a_stream_keeps_only_its_newest_document(tmp_path: Path) -> None:
    """A stream stores only its newest output of fio, because this output is cumulative. The outputs of the 1,440
    minutes of a day would need 1,440 times the space.
    """
    path = tmp_path / "a.tkperf"
    writer = RunFileWriter(path)
    writer(RunStarted(info=run_info(), tests=("writesat",)))
    writer(TestStarted(test="writesat", at_s=0))
    for number in (1, 2, 3):
        record = a_step(number, kind=StepKind.CONTINUOUS, engine_output=b"document %d" % number)
        writer(StepEnded(test="writesat", record=record))
    writer.close()
    with RunFile(path) as run_file:
        slices = run_file.record().tests[0].steps
        outputs = [run_file.engine_output("writesat", each) for each in slices]
    assert outputs == [b"", b"", b"document 3"]


def test_a_run_is_readable_while_it_is_written(tmp_path: Path) -> None:
    """A run file can be read while it is written, so ``tkperf show`` works during a run."""
    path = tmp_path / "a.tkperf"
    writer = RunFileWriter(path)
    writer(RunStarted(info=run_info(), tests=("iops",)))
    writer(TestStarted(test="iops", at_s=0))
    writer(StepEnded(test="iops", record=a_step(1)))
    assert len(read_run(path).tests[0].steps) == 1
    writer(StepEnded(test="iops", record=a_step(2)))
    assert len(read_run(path).tests[0].steps) == 2
    writer.close()


def test_an_import_was_not_watched(tmp_path: Path) -> None:
    """If a run was imported, its disturbances are not known, because tkperf did not watch the run. Every output states
    that the disturbances are not known, and never that no disturbances occurred.
    """
    path, writer = a_run(tmp_path, steps=2)
    writer.close()
    for step in read_run(path).tests[0].steps:
        assert (step.foreign_read_bytes, step.foreign_write_bytes) == (None, None)
        assert (step.planned_pause, step.disturbances, step.host) == (False, None, None)
    (test,) = analyse(read_run(path)).tests
    assert (test.disturbed_steps, test.not_compared_steps) == (None, None)
    (section,) = test.sections
    assert [cell.disturbances for each in section.rounds for cell in each.cells] == [None, None]
    assert describe_counts(test.disturbed_steps, test.not_compared_steps) == "not watched"


def test_a_finished_file_is_mailed_alone(tmp_path: Path) -> None:
    """A read-only copy of the finished file in another folder contains the whole run. No other file is needed."""
    path, writer = a_run(tmp_path, steps=2)
    writer(RunEnded(status=RunStatus.COMPLETE, because=None, ended_utc="u"))
    writer.close()
    assert [each.name for each in tmp_path.iterdir()] == ["a.tkperf"]
    (tmp_path / "elsewhere").mkdir()
    copy = Path(shutil.copy(path, tmp_path / "elsewhere" / "b.tkperf"))
    copy.chmod(0o444)
    assert read_run(copy) == read_run(path)


def test_a_resumption_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    """A resumption is read back as it was written. The steps that it replaced are in the log, but in no test."""
    path = tmp_path / "a.tkperf"
    purges = [PurgeRecord(section="IOPS", started_s=at_s, duration_s=1.0, method="m") for at_s in (1.0, 7.0)]
    resumption = Resumption(
        resumed_utc="u",
        stopped_s=2.0,
        resumed_s=6.5,
        status=RunStatus.INTERRUPTED,
        because="killed",
        goes_on=GoesOn.PURGE,
        test="iops",
        test_id=1,
        section="IOPS",
        set_aside_from=1,
        set_aside_to=1,
        again="all",
        cut_off="a fill",
        cut_off_written_bytes=7,
        added=("lat",),
        changes=("kernel",),
        command_line=("tkperf", "resume"),
    )
    writer = RunFileWriter(path)
    writer(RunStarted(info=run_info(), tests=("iops",)))
    writer(TestStarted(test="iops", at_s=0.25))
    writer(PurgeEnded(test="iops", record=purges[0]))
    writer.close()
    writer = RunFileWriter(path, appends=True)
    writer(RunResumed(info=run_info(), tests=("iops", "lat"), resumption=resumption))
    writer(TestStarted(test="iops", at_s=6.75, goes_on=True))
    writer(PurgeEnded(test="iops", record=purges[1]))
    writer.close()
    with RunFile(path) as run_file:
        record, log = run_file.record(), run_file.log()
    assert record.resumptions == (resumption,)
    assert record.planned == ("iops", "lat")
    (test,) = record.tests
    assert (test.id, test.started_s, test.purges) == (1, 0.25, (purges[1],))
    assert [(entry.sequence, entry.record, entry.set_aside) for entry in log] == [
        (1, purges[0], True),
        (2, purges[1], False),
    ]
