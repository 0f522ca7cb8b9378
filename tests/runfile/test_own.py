"""If another user could have written a run file, tkperf shows it, but performs no action that its content requests."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.runfile.runs import a_run
from tests.runfile.test_failures import half_written
from tkperf.model.errors import RefusedError, RunFileError
from tkperf.runfile.reader import RunFile, read_run
from tkperf.runfile.writer import require_resumable

__all__ = ["half_written"]  # contains a fixture
NOBODY = 65534
Change = Callable[[Path], object]
root = pytest.mark.root


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a run file in a folder in another folder. No other user can write to the file or to the two folders."""
    folder = tmp_path / "upper/folder"
    folder.mkdir(parents=True)
    path, writer = a_run(folder, 1)
    writer.close()
    for one in (path, folder, folder.parent):
        one.chmod(0o755)
    return path


def give_away(path: Path) -> None:
    os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def lay(ending: str, mode: int, *, nobodys: bool) -> Change:
    """Return a function that creates a file in the folder of the run file."""

    def change(path: Path) -> None:
        beside = path.with_name(path.name + ending)
        beside.touch()
        beside.chmod(mode)
        if nobodys:
            give_away(beside)

    return change


def lay_link(path: Path) -> None:
    beside = path.with_name(f"{path.name}-journal")
    beside.symlink_to("/dev/null")
    give_away(beside)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        pytest.param(give_away, "belongs to uid 65534", marks=root),
        (lambda path: path.chmod(0o664), r"others can write to .*a\.tkperf\. Run"),
        (lambda path: path.chmod(0o646), r"others can write to .*a\.tkperf\. Run"),
        (lambda path: path.parent.chmod(0o777), r"write to the folder .*/upper/folder\. Run"),
        (lambda path: path.parent.chmod(0o775), r"write to the folder .*/upper/folder\. Run"),
        (lambda path: path.parent.parent.chmod(0o777), r"write to the folder .*/upper\. Run"),
        pytest.param(lay("-journal", 0o644, nobodys=True), "-journal belongs to uid 65534", marks=root),
        pytest.param(lay_link, "-journal belongs to uid 65534", marks=root),
        (lay("-journal", 0o666, nobodys=False), "others can write to .*-journal"),
        (lay("-wal", 0o666, nobodys=False), "others can write to .*-wal"),
    ],
)
def test_a_strangers_file_is_not_resumed(
    change: Change, says: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If another user can change a run file, the run is not resumed. This rule also applies to the user who called
    sudo, because root has more rights than this user.
    """
    with RunFile(path, own=True):
        pass  # opening the file is the check
    require_resumable(path)
    monkeypatch.setenv("SUDO_UID", str(NOBODY))
    change(path)
    with pytest.raises(RefusedError, match=says):
        RunFile(path, own=True)
    with pytest.raises(RefusedError, match=says):
        require_resumable(path)


@root
def test_a_strangers_file_is_shown(path: Path) -> None:
    """A run file of another user is shown. Showing it changes neither the file nor its owner."""
    give_away(path)
    path.chmod(0o666)
    path.parent.chmod(0o777)
    before = (path.read_bytes(), path.stat())
    assert len(read_run(path).tests) == 1
    assert (path.read_bytes(), path.stat().st_uid) == (before[0], before[1].st_uid)


def test_a_link_leads_to_where_the_file_lies(path: Path, tmp_path: Path) -> None:
    """If the user specifies the run file by a link, tkperf checks the folders of the file itself."""
    link = tmp_path / "link.tkperf"
    link.symlink_to(path)
    with RunFile(link, own=True):
        pass
    path.parent.chmod(0o777)
    with pytest.raises(RefusedError, match=r"write to the folder .*/upper/folder\. Run"):
        RunFile(link, own=True)


@pytest.mark.parametrize(
    "change", [lambda path: path.parent.chmod(0o1777), pytest.param(lambda path: give_away(path.parent), marks=root)]
)
def test_a_folder_in_which_nobody_can_exchange_content_is_taken(change: Change, path: Path) -> None:
    """A run file is accepted in a folder in which no other user can replace its content. Examples are /tmp and the home
    folder of the user who called sudo.
    """
    change(path)
    with RunFile(path, own=True) as run_file:
        assert len(run_file.record().tests) == 1
    require_resumable(path)


def test_what_was_checked_is_what_is_read(path: Path) -> None:
    """tkperf reads the same file that it checked, even if another file receives the name of this file afterwards."""
    with RunFile(path, own=True) as run_file:
        path.unlink()
        path.with_name(f"{path.name}-journal").write_bytes(os.urandom(4096))
        path.write_bytes(b"")
        assert len(run_file.record().tests) == 1


@pytest.mark.parametrize("change", [lambda _: None, pytest.param(lambda path: give_away(path.parent), marks=root)])
def test_a_step_half_written_is_taken_back_by_our_own_journal(change: Change, half_written: Path) -> None:
    """A partly written step is rolled back with the user's own journal before the content is read. The rollback also
    works in the home folder of the user who called sudo.
    """
    change(half_written)
    half_written.chmod(0o644)
    with RunFile(half_written, own=True) as run_file:
        assert [step.number for step in run_file.record().tests[0].steps] == [1, 2, 3]
    assert [path.name for path in half_written.parent.iterdir()] == ["a.tkperf"]


@root
@pytest.mark.parametrize(
    "change", [lambda path: give_away(path.with_name(f"{path.name}-journal")), lambda path: path.parent.chmod(0o777)]
)
def test_a_journal_that_others_can_have_laid_is_not_played_back(change: Change, half_written: Path) -> None:
    """If another user may have created a journal, a reader does not play it back. The file and the owner of the journal
    do not change.
    """
    change(half_written)
    before = half_written.read_bytes()
    journal = half_written.with_name(f"{half_written.name}-journal")
    status, content = journal.stat(), journal.read_bytes()
    owned = status.st_uid, status.st_mode, status.st_ctime_ns
    with pytest.raises(RunFileError, match="copy them to"):
        read_run(half_written)
    assert half_written.read_bytes() == before
    after = journal.stat()
    assert (after.st_uid, after.st_mode, after.st_ctime_ns) == owned
    assert journal.read_bytes() == content


@pytest.mark.parametrize("ending", ["-wal", "-shm"])
def test_a_log_of_sqlite_is_not_taken_for_content(ending: str, path: Path) -> None:
    """An SQLite log in the folder of the file is not accepted as content, because tkperf never writes such a log."""
    beside = path.with_name(path.name + ending)
    beside.write_bytes(bytes(64))
    beside.chmod(0o644)
    with pytest.raises(RunFileError, match=f"{ending} does not belong to tkperf. Move this file away"):
        read_run(path)
    with pytest.raises(RunFileError, match=f"{ending} does not belong to tkperf. Move this file away"):
        RunFile(path, own=True)
    assert beside.exists()


def test_a_database_in_wal_mode_is_refused_untouched(path: Path) -> None:
    """A database in WAL mode is refused without a change. Even if SQLite only reads such a database, it creates files
    in the same folder and leaves them there. The message tells the user how to make the file readable.
    """
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
    before = sorted(path.parent.iterdir()), path.read_bytes()
    with pytest.raises(RunFileError, match=r"WAL mode.*PRAGMA journal_mode=DELETE"):
        read_run(path)
    assert (sorted(path.parent.iterdir()), path.read_bytes()) == before
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode=DELETE")
    assert read_run(path).tests
