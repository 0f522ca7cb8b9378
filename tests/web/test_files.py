"""The server follows no link when it reads files of the library. It reads only the files that it found."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.runfile.runs import a_run
from tkperf.model.errors import InputFileError, RunFileError
from tkperf.model.input_files import confine, read_input
from tkperf.runfile.reader import RunFile
from tkperf.runfile.writers import state_of
from tkperf.web.files import KnownFile, look_again, reach


@pytest.fixture
def known(tmp_path: Path) -> KnownFile:
    path = tmp_path / "served/rack/run.tkperf"
    path.parent.mkdir(parents=True)
    path.write_text("a run")
    return KnownFile(folder=tmp_path / "served", place="rack/run.tkperf", stamp=state_of(path.stat()))


@pytest.fixture
def confined(known: KnownFile) -> Iterator[None]:
    confine([known.folder])
    yield
    confine([])


def path_of(known: KnownFile) -> Path:
    return known.folder / known.place


def test_the_file_that_was_found_is_reached(known: KnownFile) -> None:
    assert reach(known) == path_of(known)


def test_a_file_that_grew_is_the_same(known: KnownFile) -> None:
    path_of(known).write_text("a longer run")
    assert look_again(known).stamp == state_of(path_of(known).stat())


def test_a_link_in_its_place_is_refused(known: KnownFile, tmp_path: Path) -> None:
    """If a link replaces a known file, the link is refused even if it leads to the same file, because the target of the
    link may change at any moment.
    """
    moved = path_of(known).rename(tmp_path / "elsewhere")
    path_of(known).symlink_to(moved)
    with pytest.raises(RunFileError, match="no longer the file"):
        reach(known)


def test_a_link_with_the_inode_of_the_file_is_refused(known: KnownFile, tmp_path: Path) -> None:
    """If a link has the inode number of the removed file, the link is refused. A file system may reuse the inode number
    of a removed file for the next file.
    """
    path_of(known).unlink()
    path_of(known).symlink_to(tmp_path)
    with pytest.raises(RunFileError, match="no longer the file"):
        reach(replace(known, stamp=state_of(path_of(known).lstat())))


def test_a_link_in_place_of_its_folder_is_refused(known: KnownFile, tmp_path: Path) -> None:
    moved = path_of(known).parent.rename(tmp_path / "elsewhere")
    path_of(known).parent.symlink_to(moved)
    with pytest.raises(RunFileError, match="no longer the file"):
        reach(known)


def test_another_file_in_its_place_is_refused(known: KnownFile, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("another run")
    other.replace(path_of(known))
    with pytest.raises(RunFileError, match="no longer the file"):
        reach(known)


def test_a_file_that_has_gone_is_refused(known: KnownFile) -> None:
    path_of(known).unlink()
    with pytest.raises(RunFileError, match="no longer the file"):
        reach(known)


def count_descriptors(path: Path) -> int:
    """Return how many descriptors of this process refer to the file."""
    descriptors = Path("/proc/self/fd").iterdir()
    return [os.path.realpath(each) for each in descriptors].count(os.path.realpath(path))


@pytest.mark.usefixtures("confined")
@pytest.mark.parametrize("briefly", [False, True])
def test_a_link_that_appears_after_the_look_is_refused(known: KnownFile, tmp_path: Path, briefly: bool) -> None:
    """If a link replaces a file for a moment, the server does not read the target of the link. This applies even if the
    checks before and afterwards find the original file. The target does not remain open.
    """
    outside, writer = a_run(tmp_path, 1)
    path = reach(known)
    path.unlink()
    path.symlink_to(outside)
    of_writer = count_descriptors(outside)
    with pytest.raises(RunFileError, match="leads to a place outside the served folders") as refused:
        RunFile(path, briefly=briefly)
    assert count_descriptors(outside) == of_writer, refused.value
    writer.close()
    with pytest.raises(InputFileError, match="leads to a place outside the served folders"):
        read_input(path, what="batch", limit_bytes=1 << 30)
    path.unlink()
    shutil.copy(outside, path)
    with RunFile(path, briefly=briefly) as opened:
        assert opened.record().tests
    path.write_text("a batch")
    assert read_input(path, what="batch", limit_bytes=1 << 30) == b"a batch"
