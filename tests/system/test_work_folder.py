"""The working folder. If a folder is lost, tkperf uses another one. tkperf removes the folders that killed runs left
behind.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tkperf.model.errors import EngineError
from tkperf.system import work_folder
from tkperf.system.work_folder import OWNER_LOCK, WorkFolder, private_folder, remove_dead


def write(folder: Path) -> Path:
    path = folder / "job.fio"
    path.write_text("x")
    return path


@pytest.fixture
def places(tmp_path: Path) -> list[Path]:
    made = [tmp_path / "memory", tmp_path / "disk"]
    for place in made:
        place.mkdir()
    return made


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_folder, "PLACE_WAIT_S", 60.0)
    monkeypatch.setattr(work_folder, "TRY_EVERY_S", 0.05)


def test_a_removed_folder_is_made_again(places: list[Path]) -> None:
    """A working folder that was removed during a run is created again."""
    folder = WorkFolder(places)
    first = folder.write(write)
    subprocess.run(["rm", "-r", first.parent], check=True)
    second = folder.write(write)
    assert second.parent.parent == places[0]
    folder.close()
    assert not any(place.iterdir() for place in places if list(place.iterdir()))


def test_a_full_place_is_left_for_another(places: list[Path]) -> None:
    """A folder on a full disk is not used until the disk has free space again."""
    folder = WorkFolder(places)
    full = True

    def make(within: Path) -> Path:
        if full and within.parent == places[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(within)

    assert folder.write(make).parent.parent == places[1]
    full = False
    assert folder.write(make).parent.parent == places[0]
    folder.close()


def test_no_place_at_all_is_waited_for_and_then_told(places: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """If no folder has free space, tkperf waits, so a short lack of space does not end the run. After a time limit, the
    run ends with an error that names the folders.
    """
    folder = WorkFolder(places)
    tries = 0

    def make(within: Path) -> Path:
        nonlocal tries
        tries += 1
        if tries < 4:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(within)

    assert folder.write(make).exists()
    monkeypatch.setattr(work_folder, "PLACE_WAIT_S", 0.3)
    tries = -1000
    with pytest.raises(EngineError, match="No space left on device") as raised:
        folder.write(make)
    assert str(places[1]) in str(raised.value)
    folder.close()


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (errno.EMFILE, "ulimit -n"),
        (errno.ENFILE, "fs.file-max"),
        (errno.ENOMEM, "free memory"),
        (errno.EROFS, "mount it for writing"),
        (errno.EIO, "kernel log"),
        (errno.EACCES, "Permission denied"),
        (errno.EMLINK, "no more links"),
        (errno.ENODEV, "No such device"),
    ],
)
def test_only_a_full_disk_or_quota_is_waited_for(
    number: int, says: str, places: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """tkperf waits only if the disk or the quota is full. Any other failure ends the run immediately, and the message
    tells the user what to do.
    """
    monkeypatch.setattr(work_folder, "PLACE_WAIT_S", 300.0)
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("waited"))
    folder = WorkFolder(places)

    def make(_: Path) -> None:
        raise OSError(number, os.strerror(number))

    with pytest.raises(EngineError) as raised:
        folder.write(make)
    assert says in str(raised.value)
    assert os.strerror(number) in str(raised.value)
    folder.close()
    assert not [entry for place in places for entry in place.iterdir()]


def test_a_full_quota_is_waited_for(places: list[Path]) -> None:
    """If the quota of one folder is full, tkperf waits, even if the other folder cannot be written to at all."""
    folder = WorkFolder(places)
    numbers = [errno.EDQUOT, errno.EROFS, errno.EDQUOT, errno.EROFS]

    def make(within: Path) -> Path:
        if numbers:
            number = numbers.pop(0)
            raise OSError(number, os.strerror(number))
        return write(within)

    assert folder.write(make).exists()
    folder.close()


@pytest.mark.parametrize("free", range(8))
def test_a_lack_of_descriptors_leaves_no_folder(free: int, places: list[Path]) -> None:
    """If a folder cannot be created, or if file descriptors run out after it was created, no folder remains."""
    code = (
        "import os, resource, sys; from pathlib import Path\n"
        "from tkperf.model.errors import EngineError\n"
        "from tkperf.system.work_folder import WorkFolder\n"
        "import tempfile, shutil, fcntl\n"
        "places, free = [Path(sys.argv[1]), Path(sys.argv[2])], int(sys.argv[3])\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (3 + free, 3 + free))\n"
        "folder = WorkFolder(places)\n"
        "try:\n"
        "    folder.write(lambda within: [os.open(within / str(n), os.O_CREAT | os.O_RDWR) for n in range(99)])\n"
        "except EngineError as error:\n"
        "    print(error)\n"
        "folder.close()\n"
    )
    run = subprocess.run([sys.executable, "-c", code, *places, str(free)], capture_output=True, text=True, check=True)
    assert "Too many open files (raise the limit of this shell: ulimit -n)" in run.stdout
    assert not [entry for place in places for entry in place.iterdir()]


def test_a_folder_whose_maker_was_killed_before_it_had_its_name_goes_later(places: list[Path]) -> None:
    """If a process is killed while it creates a folder and before the folder has its final name, the folder is removed
    only later, because another process may be about to lock it.

    A folder with content that was never locked is never removed.
    """
    place = places[0]
    empty, locked, fresh, foreign = (place / f".tkperf-{name}" for name in ("a", "b", "c", "d"))
    for folder in (empty, locked, fresh, foreign):
        folder.mkdir()
    (locked / OWNER_LOCK).touch()
    (foreign / "file").touch()
    for folder in (empty, locked, foreign):
        os.utime(folder, (0, 0))
    remove_dead(place)
    assert sorted(place.iterdir()) == [fresh, foreign]


def test_a_private_folder_is_gone_afterwards(tmp_path: Path) -> None:
    """A private folder is removed after its use, even after an error. Private folders that a killed process left in the
    same parent folder are also removed.
    """
    left = killed_run(tmp_path)

    def fail() -> None:
        with private_folder(tmp_path) as folder:
            (folder / "file").touch()
            assert folder.stat().st_mode & 0o777 == 0o700
            assert not left.exists()
            raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        fail()
    assert not [*tmp_path.iterdir()]


def killed_run(place: Path) -> Path:
    """Return the working folder that a run left behind when SIGKILL ended it."""
    code = (
        "import sys, os, signal; from pathlib import Path\n"
        "from tkperf.system.work_folder import WorkFolder\n"
        "WorkFolder([Path(sys.argv[1])]).write(lambda f: (f / 'x').mkdir() or (f / 'x/y').touch())\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    before = set(place.iterdir())
    run = subprocess.run([sys.executable, "-c", code, place], check=False)
    assert run.returncode == -signal.SIGKILL
    (left,) = set(place.iterdir()) - before
    return left


def test_what_a_killed_run_left_goes_at_the_next_start(places: list[Path]) -> None:
    """The folder of a killed run is removed at the next start, because the kernel has released its lock."""
    left = killed_run(places[0])
    WorkFolder(places).close()
    assert not left.exists()


def test_what_somebody_lives_in_or_nobody_can_tell_stays(places: list[Path], tmp_path: Path) -> None:
    """Folders of running runs, folders without a lock, folders with other names and the targets of links are not
    removed.
    """
    place = places[0]
    living = WorkFolder(places)
    kept = [living.write(write)]
    for name in ("tkperf-old", "other"):
        (place / name).mkdir()
        kept.append(place / name / "file")
    (place / "other" / OWNER_LOCK).touch()
    precious = tmp_path / "tkperf-precious"
    precious.mkdir()
    (precious / OWNER_LOCK).touch()
    (place / "tkperf-link").symlink_to(precious)
    (place / "tkperf-within").mkdir()
    (place / "tkperf-within" / OWNER_LOCK).symlink_to(precious / OWNER_LOCK)
    kept += [precious / OWNER_LOCK, place / "tkperf-link", place / "tkperf-within"]
    for path in kept:
        if not path.exists():
            path.touch()
    remove_dead(place)
    assert all(path.exists() for path in kept)
    living.close()


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make another user's folder")
def test_what_belongs_to_another_user_stays(places: list[Path]) -> None:
    """A folder of another user is not removed, even if its run was killed. The next run of that user removes it."""
    left = killed_run(places[0])
    os.chown(left, 65534, 65534)
    remove_dead(places[0])
    assert left.exists()


def test_files_within_a_dead_folder_that_are_links_are_not_followed(places: list[Path], tmp_path: Path) -> None:
    """If the folder of a killed run contains links, tkperf removes the links but not their targets."""
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").touch()
    left = killed_run(places[0])
    (left / "link").symlink_to(precious)
    remove_dead(places[0])
    assert not left.exists()
    assert (precious / "file").exists()
