"""The library of tkperf serve. The tests check the files in its list, their ids, and the cases in which a file is read
again.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

from tests.builders import run_info, simulate
from tests.runfile.runs import a_run
from tests.web.listed import a_batch, a_row, list_rows
from tkperf.model.errors import LockedRunFileError
from tkperf.model.run_info import find_run_id
from tkperf.procedures.iops import TEST as IOPS
from tkperf.procedures.write_saturation import TEST as WRITE_SATURATION
from tkperf.runfile.reader import RunFile
from tkperf.runfile.writers import state_of
from tkperf.web import library as module
from tkperf.web.bounds import AGAIN_AFTER_LATE_S, LISTED_WITHIN_S
from tkperf.web.files import KnownFile
from tkperf.web.index import Index, RunRow, find_index_path
from tkperf.web.jobs import make_row, read_run_row
from tkperf.web.library import Library, describe_difference, find_files
from tkperf.web.library_page import render_library
from tkperf.web.library_search import Query
from tkperf.web.pages import encode_json
from tkperf.web.workers import BusyError, FileError, LateError, LockedError

ID = "1".zfill(32)


def places(folders: Sequence[Path]) -> list[str]:
    return sorted(known.place for known in find_files(folders).files)


def test_no_link_is_followed(tmp_path: Path) -> None:
    """The library follows no link to a file or a folder. The target of the link does not matter. Files that are not
    results are left out.
    """
    served, outside = tmp_path / "served", tmp_path / "outside"
    (served / "below").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret.tkperf").touch()
    for name in ("a.tkperf", "below/b.tkperf", "c.batch", "d.html"):
        (served / name).touch()
    (served / "link.tkperf").symlink_to(outside / "secret.tkperf")
    (served / "folder").symlink_to(outside)
    (served / "e.tkperf").mkdir()
    assert places([served]) == ["a.tkperf", "below/b.tkperf", "c.batch"]
    # If a file is reachable through two served folders, it is listed once.
    assert len(find_files([served, served / "below"]).files) == 3


def test_too_many_files_are_cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a folder contains too many files, the search stops early. If a user serves a home directory by mistake, the
    search therefore needs neither the memory nor the hours that a search of all files would need.
    """
    for number in range(4):
        (tmp_path / f"{number}.tkperf").touch()
    monkeypatch.setattr(module, "MOST_FILES", 3)
    found = find_files([tmp_path])
    assert (len(found.files), found.cut_short) == (3, True)


def test_copies_are_one_run() -> None:
    """Copies of a run file are listed as one run. The id of any copy leads to the run, even after the other copies were
    removed.
    """
    listing = list_rows({"a": a_row(), "b": a_row(), "c": a_row()})
    (run,) = listing.runs.values()
    assert (run.run_id, run.known.place, run.differs) == (ID, "a", 0)
    assert [known.place for known in run.copies] == ["b", "c"]
    assert len(listing.run_aliases) == 3
    assert {listing.find_run(run_id) for run_id in listing.run_aliases} == {run}


@pytest.mark.parametrize(
    "changes",
    [
        {"entries": 9, "digest": b"one more row"},
        {"entries": 7, "digest": b"one row less"},
        {"digest": b"another value in a row"},
        {"digest": b"further", "state": "running"},
        {"digest": b"other facts", "model": "another", "started_utc": "2027-01-01T00:00:00+00:00"},
    ],
)
def test_a_copy_never_hides_the_original_that_it_differs_from(changes: dict[str, Any]) -> None:
    """If two files of a run differ in any value, the list contains both files, and each file has its own id.

    The id that both files share leads to neither of them.
    """
    listing = list_rows({"original": a_row(), "copy": a_row(**changes), "same": a_row()})
    by_place = {run.known.place: run for run in listing.runs.values()}
    assert set(by_place) == {"original", "copy"}
    for run in by_place.values():
        assert run.run_id.startswith(f"{ID}-")
        assert listing.find_run(run.run_id) is run
        assert f"Another file of this run differs from this one. This file is {run.known.place}" in (
            describe_difference(run)
        )
    assert len({run.run_id for run in by_place.values()}) == 2
    assert listing.ambiguous_runs == {ID: 2}
    assert listing.find_run(ID) is None
    page = bytes(render_library(listing, Query(words=ID)).body).decode()
    assert page.count("DIFFERS") == 2
    for run in by_place.values():
        assert f'href="/runs/{run.run_id}"' in page


def test_the_id_of_a_file_that_differs_stays() -> None:
    """If two files of a run differ, the id of each file does not change when the content of the file changes or when
    the other file is removed.
    """
    rows = {"a": a_row(), "b": a_row(digest=b"b")}
    ids = {run.known.place: run.run_id for run in list_rows(dict(rows)).runs.values()}
    grown = list_rows({**rows, "b": a_row(entries=9, digest=b"grown")})
    assert {run.known.place: run.run_id for run in grown.runs.values()} == ids
    alone = list_rows({"b": rows["b"]})
    assert list(alone.runs) == [ID]
    found = alone.find_run(ids["b"])
    assert found is not None
    assert found.run_id == ID


def test_many_files_of_one_run_are_listed_with_few_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a run has many files, the work to list them grows in proportion to their number, because the id of each file
    is computed a fixed number of times.
    """
    calls = 0
    id_of = module._id_of

    def count(shared_id: str, known: KnownFile) -> str:
        nonlocal calls
        calls += 1
        return id_of(shared_id, known)

    monkeypatch.setattr(module, "_id_of", count)
    files = 300
    listing = list_rows({str(number): a_row(digest=b"%d" % number) for number in range(files)})
    assert len(listing.runs) == files
    assert calls == 2 * files


def test_a_batch_has_its_own_run_files_also_if_they_are_copies() -> None:
    """A batch consists of the run files in its folder, even if the list shows another copy of such a run.

    A copy that differs from the run in the batch's folder does not belong to the batch.
    """
    listing = list_rows(
        {
            "a/a.tkperf": a_row(1),
            "x/rack7.batch": a_batch("a.tkperf", "b.tkperf"),
            "x/a.tkperf": a_row(1),
            "a/b.tkperf": a_row(2, digest=b"other"),
            "x/b.tkperf": a_row(2),
        }
    )
    (batch,) = listing.batches.values()
    assert {name: run.known.place for name, run in batch.runs.items()} == {
        "a.tkperf": "x/a.tkperf",
        "b.tkperf": "x/b.tkperf",
    }
    assert {run.known.place for run in listing.runs.values() if run.batch_ids} == {"x/a.tkperf", "x/b.tkperf"}


def test_a_copy_of_a_batch_never_hides_the_batch_that_it_differs_from() -> None:
    """If a copy of a batch contains a changed text, it is listed as a separate batch. An unchanged copy is not listed
    separately.
    """
    listing = list_rows(
        {
            "x/rack7.batch": a_batch("a.tkperf"),
            "y/rack7.batch": a_batch("a.tkperf"),
            "z/rack7.batch": a_batch("a.tkperf", digest=b"changed"),
            "x/a.tkperf": a_row(1),
            "z/a.tkperf": a_row(1),
        }
    )
    places = {batch.known.place: batch for batch in listing.batches.values()}
    assert set(places) == {"x/rack7.batch", "z/rack7.batch"}
    assert listing.ambiguous_batches == {"b" * 32: 2}
    assert [known.place for known in places["x/rack7.batch"].copies] == ["y/rack7.batch"]
    assert places["x/rack7.batch"].runs["a.tkperf"].known.place == "x/a.tkperf"
    assert places["z/rack7.batch"].runs["a.tkperf"].known.place == "z/a.tkperf"
    (run,) = listing.runs.values()
    assert set(run.batch_ids) == set(listing.batches)
    page = bytes(render_library(listing, Query()).body).decode()
    assert page.count("DIFFERS") == 2


def test_runs_of_a_batch_lie_next_to_it() -> None:
    """The runs of a batch are the run files in its folder. A run file with the same name in another folder does not
    belong to the batch.
    """
    listing = list_rows({"x/rack7.batch": a_batch("a.tkperf"), "x/a.tkperf": a_row(1), "y/a.tkperf": a_row(2)})
    assert [run.batch_ids for run in listing.runs.values()] == [("b" * 32,), ()]


def test_an_id_is_never_a_text_of_the_file() -> None:
    """The id of a run is a UUID or a digest. The id is never a text from the file, because a file may contain any
    text.
    """
    ids = {
        find_run_id(run_info(uuid=uuid, name=name))
        for uuid in (None, "../../etc/passwd", "x" * 10_000)
        for name in ("a", "b")
    }
    assert all(set(one) <= set("0123456789abcdef") and len(one) == 32 for one in ids)
    assert len(ids) == 2
    assert find_run_id(run_info(uuid="6FA459EA-EE8A-3CA4-894E-DB77E160355E")).startswith("6fa459ea")


@dataclass
class Reader:
    """A reader that does not read files. It returns the row that the test assigned to each file."""

    rows: dict[str, RunRow] = field(default_factory=dict)
    read: list[str] = field(default_factory=list)
    error: Exception | None = None

    async def __call__(self, known: KnownFile) -> RunRow:
        self.read.append(known.place)
        if self.error is not None:
            raise self.error
        return self.rows[known.place]


_OPENED: list[Index] = []


def open_index(path: Path | None) -> Index:
    """Open an index that is closed after the test."""
    index = Index(path)
    _OPENED.append(index)
    return index


@pytest.fixture(autouse=True)
def _close_indexes() -> Iterator[None]:
    yield
    while _OPENED:
        _OPENED.pop().close()


async def read_all(library: Library) -> None:
    await library.look()
    while await library.read_next():
        pass


def start(folder: Path, reader: Reader, index: Path | None = None) -> Library:
    return Library([folder], open_index(index), reader)


def test_a_file_is_read_once_for_each_state(tmp_path: Path) -> None:
    """A file is read once for each of its states. After a restart, the server reads no file that it already knows, and
    a deleted file is no longer listed.
    """
    reader = Reader({"a.tkperf": a_row(1), "b.tkperf": a_row(2)})
    path = tmp_path / "index.sqlite"
    served = tmp_path / "served"
    served.mkdir()
    for name in reader.rows:
        (served / name).write_text("x")

    asyncio.run(read_all(start(served, reader, path)))
    assert sorted(reader.read) == ["a.tkperf", "b.tkperf"]
    reader.read.clear()
    (served / "b.tkperf").write_text("longer")
    library = start(served, reader, path)
    asyncio.run(read_all(library))
    assert reader.read == ["b.tkperf"]
    (served / "a.tkperf").unlink()
    asyncio.run(read_all(library))
    assert list(library.listing.runs) == ["2".zfill(32)]
    assert len(open_index(path).rows) == 1


def test_a_damaged_index_is_made_again(tmp_path: Path) -> None:
    """If the database, a row or the folder of the index is damaged, the index is created again."""
    path = tmp_path / "index.sqlite"
    path.write_bytes(b"no database" * 1000)
    index = open_index(path)
    index.put((1, 2, 3, 4), a_row())
    index.close()
    assert open_index(path).find((1, 2, 3, 4)) == a_row()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE file SET row = x'00'")
    assert open_index(path).rows == {}
    nowhere = open_index(tmp_path / "index.sqlite" / "below")
    nowhere.put((1, 2, 3, 4), a_row())
    assert nowhere.find((1, 2, 3, 4)) == a_row()


def test_an_index_belongs_to_its_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each set of folders has its own index. The order of the folders does not matter."""
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    one, other = Path("/a"), Path("/b")
    assert find_index_path([one, other]) == find_index_path([other, one]) != find_index_path([one])


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """If a file cannot be read, it is listed with the reason, and the reason is stored for the next start. If the
    server was only busy, no reason is stored.
    """
    (tmp_path / "a.tkperf").touch()
    path = tmp_path / "index.sqlite"
    for error, kept in ((BusyError("busy"), 0), (FileError("damaged"), 1)):
        library = start(tmp_path, Reader(error=error), path)
        asyncio.run(read_all(library))
        ((known, reason),) = library.listing.unreadable
        assert (known.place, reason) == ("a.tkperf", str(error))
        long = start(tmp_path, Reader(error=FileError("x\n" * 10_000)))
        asyncio.run(read_all(long))
        assert len(long.listing.unreadable[0][1]) <= 500
        assert len(open_index(path).rows) == kept
    assert open_index(path).find_earlier(known.stamp) == "damaged"


@pytest.mark.parametrize("error", [msgspec.DecodeError("cut"), ValueError("embedded null byte")])
def test_no_file_ends_the_reading_of_others(tmp_path: Path, error: Exception) -> None:
    """If the row of one file cannot be read, the library continues to read the other files."""
    (tmp_path / "a.tkperf").touch()
    library = start(tmp_path, Reader(error=error))
    asyncio.run(read_all(library))
    assert library.listing.unreadable[0][1] == str(error)


def test_a_name_in_a_batch_ends_no_listing() -> None:
    """If a batch contains a name that is not a file name, no run is found under this name, and the listing
    continues.
    """
    names = ("", ".", "..", "/", "a/b", "\0", "x" * 10_000, "a.tkperf")
    listing = list_rows({"x/rack7.batch": a_batch(*names), "x/a.tkperf": a_row(1)})
    (batch,) = listing.batches.values()
    assert list(batch.runs) == ["a.tkperf"]


def test_a_file_that_may_be_read_later_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a file cannot be read for a temporary reason, the library tries again. If the user may not open the file, if
    the file is locked, or if the server was busy, the library tries once a minute. If reading took too long, the
    library tries less often.

    A damaged file is not tried again.
    """
    (tmp_path / "a.tkperf").touch()
    for error, opened, tries in (
        (BusyError("busy"), True, 2),
        (FileError("Permission denied"), False, 2),
        (LockedError("database is locked"), True, 2),
        (FileError("damaged"), True, 1),
        (LateError("it takes longer than 60 s"), True, 2),
    ):
        monkeypatch.setattr("os.access", lambda *_, opened=opened: opened)
        reader = Reader({"a.tkperf": a_row()}, error=error)
        library = start(tmp_path, reader)
        asyncio.run(read_all(library))
        asyncio.run(read_all(library))
        assert len(reader.read) == 1
        reader.error = None
        library._read_s.clear()  # now the library behaves as if a minute had passed
        asyncio.run(read_all(library))
        assert len(reader.read) == tries
        assert len(library.listing.runs) == tries - 1


def test_the_library_hardly_waits_for_a_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library waits only briefly for a locked file, because other files also have to be read. It tries the locked
    file again a minute later.
    """
    assert LISTED_WITHIN_S <= 1
    monkeypatch.setattr("tkperf.runfile.limits.LOCKED_S", 3600.0)
    monkeypatch.setattr("tkperf.web.jobs.LISTED_WITHIN_S", 0.0)
    path, writer = a_run(tmp_path)
    writer.close()
    known = KnownFile(folder=tmp_path, place=path.name, stamp=state_of(path.stat()))
    with closing(sqlite3.connect(path)) as db:
        db.execute("BEGIN EXCLUSIVE")
        with pytest.raises(LockedRunFileError):
            make_row(known)
    assert make_row(known)


def test_a_file_that_takes_too_long_is_tried_ever_more_seldom(tmp_path: Path) -> None:
    """If reading a file takes too long, the pause before the next attempt doubles each time. The cause can be a busy
    host or the file itself, which must not occupy a worker continuously.
    """
    (tmp_path / "a.tkperf").touch()
    reader = Reader({"a.tkperf": a_row()}, error=LateError("it takes longer than 60 s"))
    library = start(tmp_path, reader)
    asyncio.run(read_all(library))
    for pause_s in (AGAIN_AFTER_LATE_S, 2 * AGAIN_AFTER_LATE_S, 4 * AGAIN_AFTER_LATE_S):
        (key,) = library._read_s
        tries = len(reader.read)
        library._read_s[key] -= pause_s - 30
        asyncio.run(read_all(library))
        assert len(reader.read) == tries
        library._read_s[key] -= 30
        asyncio.run(read_all(library))
        assert len(reader.read) == tries + 1


def test_a_folder_that_has_gone_is_named(tmp_path: Path) -> None:
    """If a folder has disappeared, the page names it. The rows of its files are kept until the folder exists again."""
    served, reader = tmp_path / "served", Reader({"a.tkperf": a_row()})
    served.mkdir()
    (served / "a.tkperf").touch()
    library = start(served, reader)
    asyncio.run(read_all(library))
    served.rename(tmp_path / "gone")
    asyncio.run(read_all(library))
    page = page_of(library)
    assert f"The folder {served} cannot be read: No such file or directory" in page
    assert "have no run file" not in page
    (tmp_path / "gone").rename(served)
    asyncio.run(read_all(library))
    assert "cannot be read" not in page_of(library)
    assert len(library.listing.runs) == len(reader.read) == 1


def test_a_run_that_was_killed_is_read_again(tmp_path: Path) -> None:
    """If a run was killed, its file is read again although it is unchanged, because no process writes to it any longer.
    A running run is read once a minute.
    """
    path, writer = a_run(tmp_path)
    reader = Reader({path.name: a_row(state="running")})
    library = start(tmp_path, reader)
    asyncio.run(read_all(library))
    path.touch()
    asyncio.run(read_all(library))
    assert len(reader.read) == 1
    writer.close()
    library._read_s.clear()  # now the library behaves as if a minute had passed
    asyncio.run(library.look())
    assert asyncio.run(library.read_next())


def test_a_slow_folder_keeps_nobody_waiting(tmp_path: Path) -> None:
    """While a folder is still being searched, the page states this without waiting. The page of an empty folder states
    that the folder has no run file.
    """
    library = start(tmp_path, Reader())
    asyncio.run(library.wait_for_look(0.0))
    assert "are being looked through" in page_of(library)
    asyncio.run(library.look())
    assert "The served folders have no run file" in page_of(library)


def page_of(library: Library) -> str:
    return bytes(render_library(library.listing, Query()).body).decode()


def test_a_name_that_is_no_text_stops_nothing(tmp_path: Path) -> None:
    """A file with a name that is not UTF-8 is listed among the files that cannot be read, and does not stop the
    library.
    """
    (tmp_path / os.fsdecode(b"\xff.tkperf")).touch()
    library = start(tmp_path, Reader(error=UnicodeEncodeError("utf-8", "", 0, 1, "")))
    asyncio.run(read_all(library))
    ((_, reason),) = library.listing.unreadable
    assert "UTF-8" in reason
    assert json.loads(encode_json({"file": library.listing.unreadable[0][0].place}))


def test_the_row_of_a_run_has_what_its_report_says(tmp_path: Path) -> None:
    """The row of a run contains the drive, the verdict, the figures and the curve of write saturation from the run's
    report. A copy of the file has the same row.
    """
    suite = {test.name: test for test in (IOPS, WRITE_SATURATION)}
    simulate(tmp_path, run_info(uuid=str(UUID(int=1)), device={"model": "M\u202e 1"}), suite=suite)
    path = tmp_path / "run.tkperf"
    with RunFile(path) as opened:
        row = read_run_row(opened)
    assert (row.run_id, row.model) == (ID, "M 1")
    assert row.simulated
    assert row.tests == ("IOPS", "Write Saturation")
    assert row.figures
    assert row.spark is not None
    assert row.entries > 20
    with RunFile(Path(shutil.copy(path, tmp_path / "copy.tkperf"))) as opened:
        assert read_run_row(opened) == row
    with closing(sqlite3.connect(tmp_path / "copy.tkperf")) as db, db:
        db.execute("VACUUM")
    with RunFile(tmp_path / "copy.tkperf") as opened:
        assert read_run_row(opened) == row


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO warning (code, text) VALUES ('x', 'x')",
        "UPDATE step SET duration_s = duration_s + 0.001 WHERE sequence = (SELECT max(sequence) FROM step)",
        "UPDATE step SET fio_json = x'00' WHERE sequence = (SELECT min(sequence) FROM step)",
        "UPDATE run SET value = '\"other\"' WHERE key = 'profile_name'",
        "DELETE FROM verdict",
        "CREATE TABLE more (id INTEGER PRIMARY KEY)",
    ],
)
def test_each_difference_in_content_is_another_digest(tmp_path: Path, change: str) -> None:
    """If the contents of two files differ, their digests differ, even if only a warning, a fact, or a figure outside
    the log is different.
    """
    simulate(tmp_path, run_info(uuid=str(UUID(int=1))), suite={"iops": IOPS})
    path = tmp_path / "run.tkperf"
    with RunFile(path) as opened:
        digest = opened.digest()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(change)
    with RunFile(path) as opened:
        assert opened.digest() != digest


def test_a_file_with_the_same_size_and_time_of_writing_is_read_again(tmp_path: Path) -> None:
    """A file is read again if its content changed but its size and modification time did not. A program can set the
    modification time (mtime), but not the change time (ctime).
    """
    path = tmp_path / "a.tkperf"
    path.write_text("one")
    status = path.stat()
    reader = Reader({"a.tkperf": a_row()})
    library = start(tmp_path, reader)
    asyncio.run(read_all(library))
    path.write_text("two")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    asyncio.run(read_all(library))
    assert len(reader.read) == 2


def test_a_file_with_several_names_is_read_once(tmp_path: Path) -> None:
    """A file with several hard links is read once, and its other names are listed as copies."""
    reader = Reader({"a.tkperf": a_row(), "b.tkperf": a_row()})
    (tmp_path / "a.tkperf").write_text("one")
    (tmp_path / "b.tkperf").hardlink_to(tmp_path / "a.tkperf")
    library = start(tmp_path, reader)
    asyncio.run(read_all(library))
    assert len(reader.read) == 1
    (run,) = library.listing.runs.values()
    assert len(run.copies) == 1
