"""Damaged, edited and invented run files. tkperf shows the readable parts, names the missing parts, and shows no wrong
values.
"""

from __future__ import annotations

import json
import lzma
import sqlite3
import tracemalloc
import zlib
from contextlib import closing
from pathlib import Path

import pytest

from tests.builders import io_stats, run_info
from tests.runfile.runs import a_run, a_step
from tkperf import load
from tkperf.analysis.run_results import analyse
from tkperf.model.errors import RunFileError
from tkperf.model.measurement import NO_IO, Measurement, Sample
from tkperf.model.phases import SectionOutcome
from tkperf.model.record import PurgeRecord, RunStatus
from tkperf.model.steady_state import SteadyStateVerdict, judge
from tkperf.page.words.run import find_notices, find_warnings
from tkperf.render.export_json import render_json
from tkperf.runfile.columns import SECOND_COLUMNS, pack_integers, unpack_integers
from tkperf.runfile.reader import RunFile, read_run
from tkperf.runner.events import Judged, PurgeEnded, SectionEnded, StepEnded, TestEnded, TestStarted

LATENCIES_NS = [190_000, 200_000, 220_000]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a run with every kind of row and with a step of five seconds."""
    path, writer = a_run(tmp_path)
    stats = io_stats(LATENCIES_NS)
    samples = tuple(Sample(start_s=second, duration_s=1, read=NO_IO, write=stats) for second in range(5))
    seen = Measurement(duration_s=5.0, read=NO_IO, write=stats, samples=samples)
    verdict = judge([1, 2], [5.0, 6.0], tracking="t", unit="u")
    ended = SectionOutcome(section="IOPS", window=(1,), verdict=verdict, ended_because="")
    purge = PurgeRecord(section="IOPS", started_s=0, duration_s=0, method="m")
    writer(PurgeEnded(test="iops", record=purge))
    writer(StepEnded(test="iops", record=a_step(1, measurement=seen)))
    writer(Judged(test="iops", section="IOPS", number=1, verdict=verdict))
    writer(SectionEnded(test="iops", outcome=ended))
    writer(TestEnded(test="iops", status=RunStatus.COMPLETE, at_s=9))
    writer(TestStarted(test="lat", at_s=9))
    writer.close()
    return path


def change(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        assert database.execute(statement, values).rowcount > 0, statement


def read_all(path: Path, *, output: bool = True) -> str:
    """Read all parts of a run file. Return a line for each part that was left out."""
    with RunFile(path) as run_file:
        record = run_file.record()
        for test in record.tests:
            run_file.seconds(test)
            for step in test.steps:
                run_file.samples_left(test.name, step)
                if output:
                    run_file.engine_output(test.name, step)
        return "\n".join(str(each) for each in run_file.left_out)


def test_undamaged_it_is_read(path: Path) -> None:
    """The undamaged run file of these tests is readable."""
    assert read_all(path) == ""


@pytest.mark.parametrize(
    ("table", "column", "says"),
    [
        ("run", "value", "fact name of the run: it is not text in UTF-8, from byte 2 on"),
        ("step", "section", "step 2 of iops"),
        ("job", "text", "fio job 1"),
        ("test", "plan", "plan of test iops"),
        ("verdict", "verdict", "verdict 3 of iops"),
        ("outcome", "outcome", "outcome"),
    ],
)
def test_what_is_no_text_costs_its_row_alone(path: Path, table: str, column: str, says: str) -> None:
    """If a text is not valid UTF-8, only its own row is unreadable. With sqlite3 alone, the remaining rows would also
    be unreadable.
    """
    where = "key = 'name'" if table == "run" else "true"
    change(path, f"UPDATE {table} SET {column} = CAST(x'5b22ff225d' AS TEXT) WHERE {where}")
    assert says in read_all(path)


def test_a_file_that_sqlite_cannot_read_says_what_may_save_it(path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:1024] + bytes(len(whole) - 1024))
    with pytest.raises(RunFileError, match=r"it is damaged \(.*\); sqlite3 .* \.recover"):
        read_all(path)


def test_results_name_seconds_that_cannot_be_read(path: Path) -> None:
    """If seconds cannot be read, the results of the run contain a warning, because the uncertainty of a figure is
    computed from the seconds.
    """
    assert not [each for each in find_warnings(load(path)) if each.code == "left-out"]
    change(path, "UPDATE step SET seconds = substr(seconds, 1, length(seconds) / 2)")
    result = load(path)
    assert any(notice.startswith("DAMAGED: ") for notice in find_notices(result))
    told = [each.text for each in find_warnings(result) if each.code == "left-out"]
    assert any("the seconds of step 1 of round 1 of iops" in text for text in told)


def change_second(path: Path, column: str, value: int) -> None:
    """Replace one number in the record of second number 2."""
    with closing(sqlite3.connect(path)) as database:
        ((blob,),) = database.execute("SELECT seconds FROM step").fetchall()
    table = unpack_integers(blob, 1000).reshape(len(SECOND_COLUMNS), -1)
    table[SECOND_COLUMNS.index(column), 1] = value
    change(path, "UPDATE step SET seconds = ?", pack_integers(table))


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("duration_us", 0, "the record of one second contains an impossible time or count"),
        ("duration_us", -1, "the record of one second contains an impossible time or count"),
        ("start_us", -1, "the record of one second contains an impossible time or count"),
        ("write_bytes", -1, "the record of one second contains an impossible time or count"),
        ("write_latency_max_ns", -2, "the record of one second contains an impossible time or count"),
        # In each second, nearly every I/O has a recorded latency.
        ("write_latency_ios", 1_000_000, "histograms do not fit their seconds"),
    ],
)
def test_a_second_that_cannot_be_is_refused(path: Path, column: str, value: int, says: str) -> None:
    """An impossible second is refused together with all seconds of its step. If only this second were left out, the
    following seconds would be read as wrong values.
    """
    change_second(path, column, value)
    assert says in read_all(path)


def test_latency_counts_that_trail_are_kept(tmp_path: Path) -> None:
    """Latency counts that differ from the I/O count are kept, because fio does not read both counts of a second at the
    same time.
    """
    path, writer = a_run(tmp_path)
    whole = io_stats(LATENCIES_NS * 100)
    trailing = type(whole)(ios=310, bytes=1, latency_ios=290, latency_sum_ns=1, histogram=whole.histogram)
    sample = Sample(start_s=0, duration_s=1, read=NO_IO, write=trailing)
    seen = Measurement(duration_s=1.0, read=NO_IO, write=whole, samples=(sample,))
    writer(StepEnded(test="iops", record=a_step(1, measurement=seen)))
    writer.close()
    with RunFile(path) as run_file:
        (step,) = run_file.record().tests[0].steps
        (found,) = run_file.samples("iops", step)
    assert (found.write.ios, found.write.latency_ios) == (310, 290)


def test_the_shortest_sample_has_a_length(tmp_path: Path) -> None:
    """The shortest sample lasts at least one microsecond. Otherwise the rest of a step of 1.0000001 s would be rounded
    to 0.
    """
    path, writer = a_run(tmp_path)
    rest = Sample(start_s=1, duration_s=1e-7, read=NO_IO, write=io_stats([1000]))
    seen = Measurement(duration_s=1e-7, read=NO_IO, write=io_stats([1000]), samples=(rest,))
    writer(StepEnded(test="iops", record=a_step(1, measurement=seen)))
    writer.close()
    assert read_all(path) == ""


MIB = 1 << 20


@pytest.mark.parametrize(
    ("column", "most_bytes"),
    [("write_histogram", MIB), ("seconds", 150 * MIB), ("second_histograms", 2 * MIB), ("fio_json", 600 * MIB)],
)
def test_a_blob_that_unpacks_without_end_is_refused(path: Path, column: str, most_bytes: int) -> None:
    """A blob is refused if it would decompress to far more bytes than a step can have. Otherwise a few hundred kB of
    zeros would fill the memory.
    """
    packer, zeroes = lzma.LZMACompressor(preset=0), bytes(8 * MIB)
    bomb = zlib.compress(bytes(300 * MIB))
    if column == "fio_json":
        bomb = b"".join(packer.compress(zeroes) for _ in range(36)) + packer.flush()
    change(path, f"UPDATE step SET {column} = ?", bomb)
    tracemalloc.start()
    try:
        said = read_all(path, output=column == "fio_json")
    except RunFileError as error:  # the error is raised, not returned, when the output of fio is read
        said = str(error)
    assert "larger than the limit for this column" in said
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < most_bytes


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (bytes(8 * 1856 + 1), "larger than the limit for this column"),
        (bytes(8 * 1856 - 1), "does not end where it should"),
        (bytes(8 * 1855), "the number of buckets of a histogram differs from fio's number"),
        (b"\xff" * 8 * 1856, "counts must be positive"),
    ],
)
def test_impossible_histograms_are_refused(path: Path, data: bytes, says: str) -> None:
    """A histogram is refused if the number of its I/O counts differs from the number of fio's buckets, or if a count is
    negative.
    """
    change(path, "UPDATE step SET write_histogram = ?", zlib.compress(data))
    said = read_all(path)
    assert "write_histogram of step" in said
    assert says in said


@pytest.mark.parametrize("cut", [b"", b"x", b"\x00" * 4])
def test_a_blob_is_one_whole_stream(path: Path, cut: bytes) -> None:
    """A blob that is truncated, or that has bytes after its end, is refused."""
    with closing(sqlite3.connect(path)) as database:
        ((blob,),) = database.execute("SELECT write_histogram FROM step").fetchall()
    change(path, "UPDATE step SET write_histogram = ?", blob + cut if cut else blob[:-1])
    assert "it does not end where it should" in read_all(path)


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        (
            "UPDATE step SET duration_s = 0",
            "table step, key duration_s: 0 is not allowed, it takes a number, more than 0",
        ),
        ("UPDATE step SET duration_s = -1", "key duration_s"),
        ("UPDATE step SET duration_s = 9e999", "key duration_s"),
        ("UPDATE step SET planned_s = -1", "planned_s of step 2 of iops"),
        ("UPDATE step SET started_s = 9e999", "key started_s"),
        ("UPDATE step SET write_ios = 'x'", 'table step, write, key ios: "x" is not allowed, it takes a whole number'),
        ("UPDATE step SET write_ios = 1.5", "table step, write, key ios: 1.5 is not allowed, it takes a whole number"),
        ("UPDATE step SET write_ios = -5", "table step, write, key ios: -5 is not allowed, it takes a whole number"),
        ("UPDATE step SET read_bytes = -5", "table step, read, key bytes"),
        ("UPDATE step SET write_latency_ios = -1", "write, key latency_ios"),
        ("UPDATE step SET write_latency_max_ns = -1", "write_latency_max_ns of step 2 of iops"),
        ("UPDATE step SET write_histogram = 'text'", "write_histogram of step"),
        ("UPDATE step SET number = -1", "key number"),
        ("UPDATE step SET jobs = 'x'", "key jobs"),
        ("UPDATE step SET host_limited = 7", "key host_limited"),
        ("UPDATE step SET job_id = 77", "fio job 77"),
        ("UPDATE purge SET duration_s = -1", "table purge, key duration_s"),
        ("UPDATE test SET name = 'iops'", "two tests of one name"),
        ("UPDATE test SET ended_s = -1", "test iops ends before it starts"),
        ("UPDATE outcome SET outcome = '{\"section\": 5}'", "how IOPS of test iops ended"),
        ("UPDATE outcome SET section = 'other'", "table outcome: the outcome belongs to another section, IOPS"),
        (
            "UPDATE outcome SET outcome = json_set(outcome, '$.verdict.values', json('[1]'))",
            "a verdict needs one value for each round",
        ),
        (
            "UPDATE verdict SET verdict = json_set(verdict, '$.rounds', json('[]'))",
            "a verdict needs one value for each round",
        ),
        (
            "UPDATE verdict SET verdict = json_set(verdict, '$.values', json('[1]'))",
            "a verdict needs one value for each round",
        ),
        ("UPDATE verdict SET number = -1", "table verdict, key number"),
        ("UPDATE run SET value = '5' WHERE key = 'status'", "table run, key status"),
        ("UPDATE run SET value = '5' WHERE key = 'ended_utc'", "table run, key ended_utc"),
    ],
)
def test_what_tkperf_never_writes_is_refused(path: Path, statement: str, says: str) -> None:
    """A value that tkperf never writes is refused, and the error names the file, the table and the key."""
    change(path, statement)
    assert says in read_all(path)
    with RunFile(path) as run_file:
        record = run_file.record()
        assert (record.info.name, record.tests[0].name) == (run_info().name, "iops")
        result = analyse(record)
    assert any(notice.startswith("DAMAGED: ") for notice in find_notices(result))
    render_json(result)


def nested(depth: int) -> str:
    return '{"a": ' * depth + "1" + "}" * depth


@pytest.mark.parametrize(
    ("fact", "value", "says"),
    [
        ("profile", "[" * 100_000, "while decoding a JSON array"),
        ("profile", nested(900), "key"),
        ("device", json.dumps({"members": ["x"]}), "device.members 1: "),
        ("device", json.dumps({"members": 5}), "key device.members"),
        (
            "device",
            '{"members": [{"capacity_bytes": NaN}]}',
            "device.members 1, key capacity_bytes: nan is not allowed",
        ),
        ("device", '{"capacity_bytes": 1e999}', "key device.capacity_bytes"),
        ("device", '{"capacity_bytes": true}', "key device.capacity_bytes"),
        ("device", '{"model": ["a", "b"]}', "key device.model"),
        ("device", '{"serial": {"a": 1}}', "key device.serial"),
        ("active_range_length_bytes", "-5", "key active_range_length_bytes"),
        ("active_range_length_bytes", "0", "key active_range_length_bytes"),
        ("active_range_offset_bytes", "-5", "key active_range_offset_bytes"),
    ],
)
def test_facts_that_are_reckoned_with_are_checked(path: Path, fact: str, value: str, says: str) -> None:
    """Facts that tkperf uses in computations are checked. All other facts may have any value, unless they are nested
    without limit.
    """
    change(path, "UPDATE run SET value = ? WHERE key = ?", value, fact)
    assert says in read_all(path)
    with RunFile(path) as run_file:
        record = run_file.record()
    assert record.info.name == run_info().name
    assert len(record.tests[0].steps) == 1


def test_facts_of_a_host_are_checked_too(path: Path) -> None:
    """Damaged facts about a host are detected, and all other facts remain readable."""
    change(path, "UPDATE host SET facts = ?", nested(900))
    assert read_all(path)
    with RunFile(path) as run_file:
        assert run_file.record().info.name == run_info().name


def test_facts_of_every_depth_that_is_written_are_read(path: Path) -> None:
    """Nested facts that tkperf writes are read back unchanged. Examples are members of a set with sources and gaps, and
    infinite limits.
    """
    member = {"capacity_bytes": 5, "sources": {"model": "smartctl"}, "gaps": ["none"]}
    device: dict[str, object] = {"capacity_bytes": None, "members": [member], "sources": {}, "gaps": []}
    profile = {"steady_state": {"max_slope_excursion_percent": float("inf")}, "hard_disk": None}
    for fact, value in (("device", device), ("profile", profile)):
        change(path, "UPDATE run SET value = ? WHERE key = ?", json.dumps(value), fact)
    with RunFile(path) as run_file:
        info = run_file.record().info
    assert (info.device, info.profile) == (device, profile)
    assert info.name == run_info().name


def test_a_verdict_has_a_value_for_each_round() -> None:
    """A verdict cannot be constructed without a value for each round, so charts and texts do not need to check this."""
    verdict = judge([1, 2], [5.0, 6.0], tracking="t", unit="u")
    facts = {name: getattr(verdict, name) for name in SteadyStateVerdict.__dataclass_fields__}
    for changed in ({"rounds": ()}, {"values": (1.0,)}, {"rounds": (), "values": ()}):
        with pytest.raises(ValueError, match="one value for each round"):
            SteadyStateVerdict(**(facts | changed))


@pytest.mark.parametrize("window", [[1, 1], [2, 1]])
def test_a_window_whose_rounds_do_not_ascend_is_left_out(path: Path, window: list[int]) -> None:
    """A window whose round numbers do not ascend is left out. Only a file that another program changed can contain such
    a window.
    """
    change(path, "UPDATE outcome SET outcome = json_set(outcome, '$.window', json(?))", str(window))
    assert "outcome" in read_all(path)
    analyse(read_run(path))
