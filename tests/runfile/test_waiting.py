"""If a run file cannot be written for a time, the run continues and no data are lost."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest

from tests.builders import io_stats, run_info
from tests.conftest import loop_numbers
from tests.runfile.runs import a_run, a_step
from tkperf.analysis.run_results import analyse
from tkperf.model.errors import RunFileError
from tkperf.model.measurement import NO_IO, Sample
from tkperf.model.record import GoesOn, Resumption, RunStatus, StepKind
from tkperf.model.telemetry.drive_reading import Reading
from tkperf.model.workload import Access, Workload
from tkperf.page.words.run import describe_step_under_way, find_warnings
from tkperf.runfile import backlog
from tkperf.runfile.backlog import Backlog, BacklogEntry
from tkperf.runfile.reader import read_run
from tkperf.runfile.writer import RunFileWriter
from tkperf.runner.events import (
    Event,
    RunEnded,
    RunResumed,
    RunStarted,
    SampleSeen,
    StepEnded,
    StepStarted,
    TelemetrySeen,
    TestEnded,
    TestStarted,
    Warned,
)

COMPLETE = RunEnded(status=RunStatus.COMPLETE, because=None, ended_utc="u")


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every event retry the write, give each retry unlimited time, and limit the waiting time at the end of the
    run to one second.
    """
    monkeypatch.setattr(backlog, "REWRITE_EVERY_S", 0.01)
    monkeypatch.setattr(backlog, "REWRITE_TAKES_S", 600.0)
    monkeypatch.setattr(backlog, "RESCUE_AFTER_S", 0.2)
    monkeypatch.setattr(backlog, "LAST_WAIT_S", 1.0)


@pytest.fixture
def rescues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which tkperf saves a run if its file cannot be written."""
    folder = tmp_path / "rescues"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    return folder


def numbers(path: Path) -> list[int]:
    return [step.number for step in read_run(path).tests[0].steps]


class Trouble:
    """While an error is set, every write fails with this error, as it fails in SQLite. ``attempts`` is the number of
    writes that failed.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.error: Exception | None = None
        self.attempts = 0
        execute = backlog.run_statements

        def fail(db: sqlite3.Connection, statements: Iterable[backlog.SqlStatement]) -> None:
            if self.error is not None:
                self.attempts += 1
                # When a disk is full, SQLite itself rolls back the whole transaction.
                db.execute("ROLLBACK")
                raise self.error
            execute(db, statements)

        monkeypatch.setattr(backlog, "run_statements", fail)


@pytest.fixture
def trouble(monkeypatch: pytest.MonkeyPatch) -> Trouble:
    return Trouble(monkeypatch)


@pytest.mark.parametrize(
    "error",
    [
        sqlite3.OperationalError("database or disk is full"),
        sqlite3.OperationalError("disk I/O error"),
        sqlite3.OperationalError("attempt to write a readonly database"),
        OSError(122, "Disk quota exceeded"),
    ],
)
@pytest.mark.usefixtures("at_once")
def test_trouble_that_ends_costs_nothing(tmp_path: Path, trouble: Trouble, error: Exception) -> None:
    """If two steps wait in memory while the file cannot be written, they are stored in order, together with the third
    step. The failure and its end are reported.
    """
    told: list[Event] = []
    path = tmp_path / "a.tkperf"
    writer = RunFileWriter(path, observer=told.append)
    writer(RunStarted(info=run_info(), tests=("iops",)))
    writer(TestStarted(test="iops", at_s=0))
    writer(StepEnded(test="iops", record=a_step(1)))
    trouble.error = error
    for number in (2, 3):
        writer(StepEnded(test="iops", record=a_step(number)))
    assert numbers(path) == [1]
    trouble.error = None
    wait_for_retry()
    writer(StepEnded(test="iops", record=a_step(4)))
    assert numbers(path) == [1, 2, 3, 4]
    writer(COMPLETE)
    writer.close()
    record = read_run(path)
    assert record.status is RunStatus.COMPLETE
    assert [note.code for note in record.notes] == ["run-file-waited"]
    texts = [event.warning.text for event in told if isinstance(event, Warned)]
    assert len(texts) == 2
    assert (getattr(error, "strerror", None) or str(error)) in texts[0]
    assert "nothing is lost" in texts[1]


class InterruptedCommit:
    """A database that raises KeyboardInterrupt directly after the first COMMIT, as if the user pressed Ctrl-C."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._is_interrupted = False

    def __getattr__(self, name: str) -> object:
        return getattr(self._db, name)

    def execute(self, sql: str) -> None:
        self._db.execute(sql)
        if sql == "COMMIT" and not self._is_interrupted:
            self._is_interrupted = True
            raise KeyboardInterrupt


def test_ctrl_c_just_after_a_commit_keeps_no_entry_twice() -> None:
    """If Ctrl-C is pressed directly after a commit, no entry is stored twice. The file contains the entries of the
    transaction, so the next attempt writes only the later entries.
    """
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.execute("CREATE TABLE kept (number)")
        entries = Backlog(
            cast(sqlite3.Connection, InterruptedCommit(db)), Path("a.tkperf"), build=lambda _: (), report=print
        )
        entries.put(BacklogEntry(statements=(("INSERT INTO kept VALUES (?)", [(1,)]),)))
        with pytest.raises(KeyboardInterrupt):
            entries.write()
        entries.put(BacklogEntry(statements=(("INSERT INTO kept VALUES (?)", [(2,)]),)))
        entries.write()
        assert entries.is_empty
        assert db.execute("SELECT number FROM kept ORDER BY rowid").fetchall() == [(1,), (2,)]


def test_each_commit_survives_a_power_cut(tmp_path: Path) -> None:
    """Each commit survives a power failure, because SQLite also syncs the folder after each commit (EXTRA, value 3).
    Otherwise the journal could reappear.
    """
    program = (
        "import sys; from pathlib import Path; from tkperf.runfile.writer import create_run_file\n"
        "_, db = create_run_file(Path(sys.argv[1]))\n"
        "print(*(db.execute(f'PRAGMA {name}').fetchone()[0] for name in ('synchronous', 'journal_mode')))"
    )
    # The program runs in a new process, because tests change the setting in this process.
    words = [sys.executable, "-c", program, str(tmp_path / "a.tkperf")]
    assert subprocess.run(words, check=True, capture_output=True, text=True).stdout == "3 delete\n"


def wait_for_retry() -> None:
    time.sleep(0.05)


def test_it_is_not_tried_again_with_every_event(
    tmp_path: Path, trouble: Trouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the file cannot be written, tkperf does not retry with every event. A hundred events before the next
    attempt is due lead to one attempt and one warning.
    """
    monkeypatch.setattr(backlog, "REWRITE_EVERY_S", 3600.0)
    told: list[Event] = []
    writer = RunFileWriter(tmp_path / "a.tkperf", observer=told.append)
    writer(RunStarted(info=run_info(), tests=("iops",)))
    writer(TestStarted(test="iops", at_s=0))
    trouble.error = OSError(28, "No space left on device")
    for number in range(1, 101):
        writer(StepEnded(test="iops", record=a_step(number)))
    assert len(told) == 1
    assert trouble.attempts == 1
    trouble.error = None
    writer(COMPLETE)
    writer.close()
    assert numbers(tmp_path / "a.tkperf") == list(range(1, 101))


@pytest.mark.parametrize(("limit", "value"), [("MOST_WAITING_BYTES", 10_000), ("LONGEST_BACKLOG_S", -1.0)])
@pytest.mark.usefixtures("at_once", "rescues")
def test_waiting_has_limits(
    tmp_path: Path, trouble: Trouble, monkeypatch: pytest.MonkeyPatch, limit: str, value: float
) -> None:
    """Waiting for a file that cannot be written is limited. The memory therefore does not fill up, and no run continues
    forever without a file.
    """
    monkeypatch.setattr(backlog, limit, value)
    _, writer = a_run(tmp_path, steps=1)
    trouble.error = OSError(28, "No space left on device")
    with pytest.raises(RunFileError, match="No space left"):  # noqa: PT012
        for number in range(2, 40):
            wait_for_retry()
            writer(StepEnded(test="iops", record=a_step(number)))
    writer.close()


@pytest.mark.usefixtures("at_once")
def test_a_run_that_cannot_be_kept_is_saved_elsewhere(
    tmp_path: Path, rescues: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a run cannot be stored, the whole run is saved in another folder: the stored steps and the steps that waited.
    The error names the new file.
    """
    path, writer = a_run(tmp_path, steps=2)
    writer._db.execute("PRAGMA max_page_count = 1")  # this setting has the same effect as a full disk
    large = a_step(3, engine_output=os.urandom(100_000))
    writer(StepEnded(test="iops", record=large))
    with pytest.raises(RunFileError, match=r"full; the last 2 entries .* saved as") as raised:
        writer(COMPLETE)
    writer(RunEnded(status=RunStatus.FAILED, because="x", ended_utc="u"))  # the runner acts in the same manner
    writer.close()
    assert numbers(path) == [1, 2]
    (saved,) = rescues.glob("*/a.tkperf")
    assert str(saved) in str(raised.value) == writer.lost
    assert numbers(saved) == [1, 2, 3]
    assert read_run(saved).status is RunStatus.COMPLETE
    assert saved.parent.stat().st_mode & 0o077 == 0


@pytest.mark.usefixtures("at_once")
def test_even_a_file_that_cannot_be_read_any_more_leaves_the_rest(
    tmp_path: Path, rescues: Path, trouble: Trouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the run file becomes unreadable, for instance because its disk failed, the events in memory are saved as a
    separate run. This run has the facts of the original run.
    """
    _, writer = a_run(tmp_path, steps=2)
    trouble.error = sqlite3.OperationalError("disk I/O error")
    writer(StepEnded(test="iops", record=a_step(3)))

    class Dead:
        in_transaction = False

        def execute(self, *_: object) -> None:
            raise sqlite3.OperationalError("disk I/O error")

        backup = execute

    real = writer._db
    writer._backlog._db = Dead()  # type: ignore[assignment]
    saving = backlog.write_rescue

    def save(*given: object) -> Path | None:
        trouble.error = None
        return saving(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(backlog, "write_rescue", save)
    with pytest.raises(RunFileError, match="disk I/O error"):
        writer(COMPLETE)
    real.close()
    (saved,) = rescues.glob("*/a.tkperf")
    assert numbers(saved) == [3]
    assert read_run(saved).info.name == run_info().name


@pytest.mark.usefixtures("at_once")
def test_room_made_at_the_last_moment_leaves_no_copies(
    tmp_path: Path, rescues: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a run file can be written again at the end of the run, no copy remains in another folder."""
    monkeypatch.setattr(backlog, "LAST_WAIT_S", 600.0)
    path, writer = a_run(tmp_path, steps=1)
    writer._db.execute("PRAGMA max_page_count = 1")
    writer(StepEnded(test="iops", record=a_step(2, engine_output=os.urandom(100_000))))

    def make_room(event: Event) -> None:
        assert list(rescues.glob("*/a.tkperf"))
        writer._db.execute("PRAGMA max_page_count = 1000000")

    writer._observer = make_room
    writer(COMPLETE)
    writer.close()
    assert numbers(path) == [1, 2]
    assert list(rescues.iterdir()) == []


READS_FOR_LONG = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN"); db.execute("SELECT * FROM step").fetchall()
print("reads", flush=True); sys.stdin.readline()
"""


@pytest.fixture
def other_reader(tmp_path: Path) -> Iterator[Callable[[Path], subprocess.Popen[str]]]:
    """Return a function that starts a process. The process holds a transaction on a run file open until a line arrives
    on its standard input.
    """
    started: list[subprocess.Popen[str]] = []

    def start(path: Path) -> subprocess.Popen[str]:
        reader = subprocess.Popen(
            [sys.executable, "-c", READS_FOR_LONG, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(reader)
        assert reader.stdout is not None
        assert reader.stdout.readline() == "reads\n"
        return reader

    yield start
    for reader in started:
        reader.kill()
        reader.communicate()


@pytest.mark.usefixtures("rescues")
def test_a_reader_that_stays_at_the_end_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other_reader: Callable[[Path], subprocess.Popen[str]]
) -> None:
    """At the end of a run, tkperf waits for another process that reads the file. When the reader has ended, the file
    contains all measurements.
    """
    monkeypatch.setattr(backlog, "REWRITE_EVERY_S", 0.01)
    monkeypatch.setattr(backlog, "RESCUE_AFTER_S", 0.1)
    monkeypatch.setattr(backlog, "READER_WAIT_S", 0.05)
    path, writer = a_run(tmp_path, steps=1)
    reader = other_reader(path)
    writer(StepEnded(test="iops", record=a_step(2)))
    said: list[Event] = []

    def leave(event: Event) -> None:
        said.append(event)
        reader.communicate("\n")

    writer._observer = leave
    writer(COMPLETE)
    writer.close()
    assert "another program keeps it locked" in str(said[0])
    assert numbers(path) == [1, 2]
    assert read_run(path).status is RunStatus.COMPLETE


@pytest.mark.usefixtures("at_once")
def test_a_reader_that_never_leaves_is_named(
    tmp_path: Path,
    rescues: Path,
    monkeypatch: pytest.MonkeyPatch,
    other_reader: Callable[[Path], subprocess.Popen[str]],
) -> None:
    """If a reader never ends, the error names this reader. The whole run is then saved in another file."""
    monkeypatch.setattr(backlog, "READER_WAIT_S", 0.05)
    path, writer = a_run(tmp_path, steps=1)
    other_reader(path)
    writer(StepEnded(test="iops", record=a_step(2)))
    with pytest.raises(RunFileError, match="another program keeps it locked"):
        writer(COMPLETE)
    writer.close()
    (saved,) = rescues.glob("*/a.tkperf")
    assert numbers(saved) == [1, 2]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Create a file system of 2 MiB, which is ext4 on a loop device."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a file system")
    folder, image = tmp_path / "disk", tmp_path / "image"
    folder.mkdir()
    image.write_bytes(bytes(2 << 20))
    make = ["mkfs.ext4", "-q", "-O", "^has_journal", "-m", "0", str(image)]
    mount = ["mount", "-o", "loop", str(image), str(folder)]
    for command in (make, mount):
        with loop_numbers():
            done = subprocess.run(command, check=False, capture_output=True)
        if done.returncode:
            pytest.skip(f"cannot {command[0]} here")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def fill(folder: Path) -> Path:
    """Fill all free space of the file system."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1024))
        except OSError:
            return ballast


@pytest.mark.root
@pytest.mark.usefixtures("at_once")
def test_a_disk_really_full_for_a_while(small_disk: Path) -> None:
    """If steps did not fit on a full disk, they are written as soon as space is free. The file then contains all steps,
    in order.
    """
    path, writer = a_run(small_disk, steps=2)
    ballast = fill(small_disk)
    for number in (3, 4):
        writer(StepEnded(test="iops", record=a_step(number, engine_output=os.urandom(50_000))))
    assert numbers(path) == [1, 2]
    ballast.unlink()
    wait_for_retry()
    writer(StepEnded(test="iops", record=a_step(5)))
    writer(COMPLETE)
    writer.close()
    assert numbers(path) == [1, 2, 3, 4, 5]
    assert read_run(path).status is RunStatus.COMPLETE
    assert {each.name for each in small_disk.iterdir()} == {"a.tkperf", "lost+found"}


@pytest.mark.root
@pytest.mark.usefixtures("at_once")
def test_a_disk_really_full_to_the_end(small_disk: Path, rescues: Path) -> None:
    """If a disk remains full, the run ends with an error, but no data are lost. The stored steps remain, and the whole
    run is saved in another folder.
    """
    path, writer = a_run(small_disk, steps=2)
    fill(small_disk)
    large = a_step(3, engine_output=os.urandom(200_000))
    writer(StepEnded(test="iops", record=large))
    with pytest.raises(RunFileError, match="saved as"):
        writer(COMPLETE)
    writer.close()
    assert numbers(path) == [1, 2]
    (saved,) = rescues.glob("*/a.tkperf")
    assert numbers(saved) == [1, 2, 3]


# The workload of the unfinished step.

FILL = Workload(access=Access.SEQUENTIAL, read_percent=0, block_size_bytes=131072, jobs=1, io_depth=1)


def begun(at_s: float = 10.0, *, planned_s: float | None = None, planned_bytes: int = 960 * 10**9) -> StepStarted:
    kind = StepKind.FILL if planned_s is None else StepKind.ROUND
    return StepStarted(
        test="iops",
        section="IOPS",
        kind=kind,
        number=1,
        position=0,
        steps=1,
        workload=FILL,
        planned_s=planned_s,
        planned_bytes=planned_bytes,
        at_s=at_s,
    )


def second(number: int) -> SampleSeen:
    seen = Sample(start_s=number, duration_s=1, read=NO_IO, write=io_stats([1000] * 8, 131072))
    return SampleSeen(test="iops", sample=seen, at_s=11.0 + number)


def test_a_fill_that_is_killed_leaves_what_it_wrote(tmp_path: Path) -> None:
    """If a fill was killed after two and a half minutes, the file contains at least the amount that was written up to
    the end of the last whole minute. No result counts the fill as a step.
    """
    path, writer = a_run(tmp_path)
    writer(begun())
    for number in range(150):
        writer(second(number))
    going_on = read_run(path)
    writer.close()  # as after a kill, no further data are written
    for record, state in ((going_on, "still going on"), (read_run(path), "cut off")):
        (test,) = record.tests
        assert test.steps == ()
        found = test.under_way
        assert found is not None
        assert 60 <= found.measured_so_far.duration_s <= 150
        assert found.measured_so_far.write.bytes == found.measured_so_far.duration_s * 8 * 131072
        assert (found.kind, found.planned_bytes) == (StepKind.FILL, 960 * 10**9)
        result = analyse(record).tests[0]
        assert result.written_bytes == 0
        under_way = describe_step_under_way(result, record.status)
        assert under_way is not None
        assert "of 960.0 GB written" in under_way
        assert state in under_way
    (said,) = [each.text for each in find_warnings(analyse(record)) if each.code == "unfinished-step"]
    assert "cut off" in said


@pytest.mark.parametrize("status", [RunStatus.INTERRUPTED, RunStatus.FAILED])
def test_a_step_that_was_cut_off_keeps_all_its_seconds(tmp_path: Path, status: RunStatus) -> None:
    """If a step was interrupted with Ctrl-C or ended by an error, all its seconds are kept, including those after the
    last whole minute.
    """
    path, writer = a_run(tmp_path)
    writer(begun())
    for number in range(95):
        writer(second(number))
    writer(TestEnded(test="iops", status=status, at_s=200))
    writer(RunEnded(status=status, because="x", ended_utc="u"))
    writer.close()
    found = read_run(path).tests[0].under_way
    assert found is not None
    assert found.measured_so_far.duration_s == 95


def test_a_step_that_was_cut_off_is_no_longer_under_way_when_the_run_continues(tmp_path: Path) -> None:
    """A resumption removes the parts of the step that was cut off, because this step is measured again. Otherwise the
    old step would be shown as running, and its writes would count twice.
    """
    path, writer = a_run(tmp_path)
    writer(begun())
    for number in range(95):
        writer(second(number))
    writer(TestEnded(test="iops", status=RunStatus.INTERRUPTED, at_s=200))
    writer(RunEnded(status=RunStatus.INTERRUPTED, because="x", ended_utc="u"))
    writer.close()
    assert read_run(path).tests[0].under_way is not None
    resumption = Resumption(
        resumed_utc="u",
        stopped_s=200.0,
        resumed_s=300.0,
        status=RunStatus.INTERRUPTED,
        because="x",
        goes_on=GoesOn.PURGE,
        test="iops",
        test_id=1,
        section="IOPS",
    )
    resumed = RunFileWriter(path, appends=True)
    resumed(RunResumed(info=run_info(), tests=("iops",), resumption=resumption))
    resumed.close()
    assert read_run(path).tests[0].under_way is None


def test_a_step_that_ended_is_no_longer_under_way(tmp_path: Path) -> None:
    """If a step has ended, the file contains no parts of it. A repeated step is therefore not mixed with its first
    attempt.
    """
    path, writer = a_run(tmp_path)
    for attempt in (begun(), begun(500.0)):
        writer(attempt)
        for number in range(70):
            writer(second(number + int(attempt.at_s) - 10))
    database = sqlite3.connect(path)
    assert database.execute("SELECT started_s FROM under_way").fetchall() == [(500.0,)]
    writer(StepEnded(test="iops", record=a_step(1, kind=StepKind.FILL)))
    for table in ("under_way", "under_way_part"):
        assert database.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
    database.close()
    writer.close()
    assert read_run(path).tests[0].under_way is None


def test_nothing_is_written_shortly_before_a_hand_over(tmp_path: Path) -> None:
    """Shortly before a hand-over, no data are written, because a slow disk must not delay the release of the
    next step.
    """
    path, writer = a_run(tmp_path)
    writer(begun(planned_s=62.0))
    for number in range(62):
        writer(second(number))
    assert read_run(path).tests[0].under_way is None
    writer.close()


def test_nothing_is_written_shortly_before_the_end_of_a_fill(tmp_path: Path) -> None:
    """Shortly before the end of a fill, no data are written, because the next step then begins. The end is predicted
    from the written amount.
    """
    path, writer = a_run(tmp_path)
    writer(begun(planned_bytes=62 * 8 * 131072))
    for number in range(61):
        writer(second(number))
    assert read_run(path).tests[0].under_way is None
    writer.close()


def test_what_a_drive_told_during_a_step_outlives_the_parts_of_it(
    tmp_path: Path, at_once: None, trouble: Trouble
) -> None:
    """The readings of a drive during a step are kept. They are kept even if the parts of the step are dropped because
    the file cannot be written.
    """
    path, writer = a_run(tmp_path)
    writer(begun())
    trouble.error = sqlite3.OperationalError("database or disk is full")
    reading = Reading(at_s=505.0, drive="/dev/x", source="nvme", temperature_c=40.0)
    writer(TelemetrySeen(reading=reading))
    for number in range(130):
        writer(second(number))
    writer(StepEnded(test="iops", record=a_step()))
    trouble.error = None
    writer(COMPLETE)
    writer.close()
    record = read_run(path)
    assert record.telemetry == (reading,)
    assert len(record.tests[0].steps) == 1
