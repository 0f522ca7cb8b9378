"""All drives of a batch are confirmed together. The user either passes a file that contains a line for each drive, or
types the name of the batch and the number of its drives.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tkperf.batch.question import BatchQuestion, confirm_by_file, find_faults
from tkperf.model.batch_state import DriveShown
from tkperf.model.errors import InputFileError, RefusedError

SHOWN = tuple(
    DriveShown(number=number, name=f"lab-{number}", path=path, capacity_bytes=1 << 30, confirm_id=confirm_id)
    for number, path, confirm_id in (
        (1, "/dev/sda", "PHYH850500YA"),
        (2, "/dev/sdb", "PHYH850500YB"),
        (4, "/dev/loop3", "/dev/loop3"),
        (5, "/srv/a #1.img", "/srv/a #1.img"),
    )
)
LINES = tuple(drive.confirm_id or "" for drive in SHOWN)


def write(folder: Path, *lines: str) -> Path:
    path = folder / "yes.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@given(
    st.permutations(LINES),
    st.lists(st.sampled_from(["", "  ", "# bay 3", "\t#", " # PHYH850500YX"]), max_size=4),
    st.sampled_from(["", "  # bay 7", "\t# first"]),
)
def test_a_line_for_each(lines: list[str], others: list[str], ending: str) -> None:
    """A file that contains a line for each drive confirms the drives. The lines may be in any order. Comments, blank
    lines and surrounding spaces are permitted.
    """
    first, *rest = lines
    # A path may contain the character that begins a comment.
    after = "" if "#" in first else ending
    text = "\n".join([*others, f"  {first}{after}  ", *rest, *others])
    assert not list(find_faults(text, SHOWN))


@given(st.sets(st.sampled_from(LINES)), st.lists(st.sampled_from(LINES), max_size=3))
def test_nothing_else_confirms(lines: set[str], more: list[str]) -> None:
    """The file confirms the drives only if it names exactly the drives that the batch would erase, and names each of
    these drives once.
    """
    text = "\n".join([*sorted(lines), *more])
    sound = sorted([*lines, *more]) == sorted(LINES)
    assert sound is not any(find_faults(text, SHOWN))


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ((), "no line for drive 1, /dev/sda: PHYH850500YA; no line for drive 2, "),
        (LINES[:2] + LINES[3:], "no line for drive 4: /dev/loop3"),
        ((*LINES, "PHYH850500YC"), "line 5: 'PHYH850500YC' is none of the 4 drives that are erased; did you mean"),
        ((*LINES, "", LINES[0]), "line 6: 'PHYH850500YA' is in line 1 already"),
        (
            ("/dev/sda", *LINES[1:]),
            "line 1: '/dev/sda' is none of the 4 drives that are erased; it is confirmed by "
            "its serial number, PHYH850500YA; no line for drive 1, /dev/sda: PHYH850500YA",
        ),
        (("PHYH850500YA PHYH850500YB", *LINES[2:]), "line 1: 'PHYH850500YA PHYH850500YB' is none"),
        (("#PHYH850500YA", *LINES[1:]), "no line for drive 1"),
        ((*LINES, "yes"), "line 5: 'yes' is none"),
        ((*LINES, "*"), "line 5: '*' is none"),
    ],
)
def test_lines_that_do_not_confirm(tmp_path: Path, lines: tuple[str, ...], says: str) -> None:
    with pytest.raises(RefusedError) as caught:
        confirm_by_file(write(tmp_path, *lines), SHOWN)
    assert says in str(caught.value)
    assert str(caught.value).endswith("Nothing was touched")


def test_a_file_of_the_user(tmp_path: Path) -> None:
    confirm_by_file(write(tmp_path, *LINES), SHOWN)


def test_drives_that_cannot_be_told_apart(tmp_path: Path) -> None:
    """A single line does not confirm two drives that cannot be distinguished."""
    twin = msgspec.structs.replace(SHOWN[1], number=7, path="/dev/sdx")
    with pytest.raises(RefusedError, match="drives 2 and 7 both report PHYH850500YB"):
        confirm_by_file(write(tmp_path, *LINES), (*SHOWN, twin))


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_can_write(tmp_path: Path, mode: int) -> None:
    """A file that other users can write to is refused, because its lines may have been written by another user."""
    path = write(tmp_path, *LINES)
    path.chmod(mode)
    with pytest.raises(
        RefusedError, match=r"yes.txt is not used, because another user may have written the file: others can write to"
    ):
        confirm_by_file(path, SHOWN)


def test_a_folder_that_others_can_write_to(tmp_path: Path) -> None:
    """A file is refused if its folder is writable for other users, because these users could replace the file. The file
    is also refused if the caller names it through a link.
    """
    folder = tmp_path / "shared"
    folder.mkdir()
    path = write(folder, *LINES)
    connection = tmp_path / "link"
    connection.symlink_to(path)
    folder.chmod(0o777)
    for one in (path, connection):
        with pytest.raises(RefusedError, match="others can write to the folder"):
            confirm_by_file(one, SHOWN)


@pytest.mark.root
def test_a_file_of_another_user(tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("needs root to give a file away")
    path = write(tmp_path, *LINES)
    os.chown(path, 12345, 12345)
    with pytest.raises(RefusedError, match="belongs to uid 12345"):
        confirm_by_file(path, SHOWN)


def test_no_regular_file(tmp_path: Path) -> None:
    """Only a regular file confirms drives, because tkperf cannot know which user writes to a pipe."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)
    with pytest.raises(RefusedError, match="not a regular file"):
        confirm_by_file(pipe, SHOWN)
    for path in (tmp_path, tmp_path / "none", Path("/dev/zero")):
        with pytest.raises(InputFileError, match="cannot read --yes-destroy-file"):
            confirm_by_file(path, SHOWN)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(InputFileError, match="not text in UTF-8"):
        confirm_by_file(tmp_path / "bytes", SHOWN)


@pytest.mark.parametrize(
    ("answer", "confirms"),
    [
        ("lab 24", True),
        ("  lab   24 ", True),
        ("", False),
        ("lab", False),
        ("24", False),
        ("lab 23", False),
        ("Lab 24", False),
        ("lab24", False),
        ("lab 24 yes", False),
        ("y", False),
        ("yes", False),
    ],
)
def test_the_typed_answer(answer: str, confirms: bool) -> None:
    drives = [msgspec.structs.replace(SHOWN[0], number=number) for number in range(1, 25)]
    question = BatchQuestion(name="lab", shown=drives)
    assert question.is_confirmed_by(answer) is confirms
    assert "(lab 24)" in question.text
    assert "these 24 drives" in question.text
    assert "lab 24" in question.ask_again(answer)
    assert str(question.refuse(answer)).endswith("Nothing was touched")
    assert "--yes-destroy-file" in str(question.refuse_without_terminal())


def test_the_question_of_a_mixed_batch_names_what_is_erased() -> None:
    file = msgspec.structs.replace(SHOWN[3], is_file=True)
    new = msgspec.structs.replace(file, number=6, confirm_id=None)
    simulated = DriveShown(number=7, name="lab-7", path="sim:sata-ssd", capacity_bytes=1)
    question = BatchQuestion(name="lab", shown=(SHOWN[0], file, new, simulated, simulated))
    assert question.text.startswith(
        "ALL DATA on 2 of 5 drives will be destroyed: /dev/sda PHYH850500YA, file /srv/a #1.img. The others "
        "(2 simulated drives, 1 new file) lose none. Type"
    )
    assert "(lab 2)" in question.text
