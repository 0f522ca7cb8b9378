"""Consent for all drives of a batch beforehand, by a file with a line for each: its serial number, or its path."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from tkperf.model.batch_state import DriveShown
from tkperf.model.errors import RefusedError, guess
from tkperf.model.input_files import SETTINGS_BYTES, read_text_input
from tkperf.model.units import on_one_line
from tkperf.runfile.writers import require_own_input

OPTION = "--yes-destroy-file"
_LONGEST_QUOTED = 80


def confirm_by_file(path: Path, shown: Sequence[DriveShown]) -> None:
    """Require a line for each drive that loses data, and no other line.

    Args:
        shown: the drives that lose data, as they were found.

    Raises:
        InputFileError: the file cannot be read.
        RefusedError: another user can have written it, or its lines are not those of the drives.
    """

    def require_trusted(status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise RefusedError(f"{path} is not used: it is no regular file. Nothing was touched")
        require_own_input(path, status)

    text = read_text_input(path, what=OPTION, limit_bytes=SETTINGS_BYTES, check=require_trusted)
    faults = tuple(find_faults(text.removeprefix("\ufeff"), shown))
    if faults:
        raise RefusedError(f"{path} does not confirm the erasure: {'; '.join(faults)}. Nothing was touched")


def find_faults(text: str, shown: Sequence[DriveShown]) -> Iterator[str]:
    """Yield what is wrong with the lines of a consent file, each with its number, then the drives without a line."""
    missing: dict[str, DriveShown] = {}
    for drive in shown:
        other = missing.setdefault(drive.confirm_id or drive.path, drive)
        if other is not drive:
            yield f"drives {other.number} and {drive.number} both report {drive.confirm_id}: no line distinguishes them"
    known = tuple(missing)
    confirmed_in: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.strip()
        if words not in known:
            words = _without_comment(words)
        if not words:
            continue
        if words in confirmed_in:
            yield f"line {number}: '{_quote(words)}' is in line {confirmed_in[words]} already"
        elif words in missing:
            confirmed_in[words] = number
            del missing[words]
        else:
            hint = _hint(words, shown) or guess(words, known)
            yield f"line {number}: '{_quote(words)}' is none of the {len(known)} drives that are erased{hint}"
    for confirm_id, drive in missing.items():
        path = "" if confirm_id == drive.path else f", {drive.path}"
        yield f"no line for drive {drive.number}{path}: {confirm_id}"


def _without_comment(line: str) -> str:
    """Return a line without a comment, which begins the line or follows a space."""
    words = f" {line}".replace("\t", " ").partition(" #")[0]
    return words.strip()


def _hint(words: str, shown: Sequence[DriveShown]) -> str:
    """Return the way out if a line has the path of a drive that its serial number confirms."""
    serials = (drive.confirm_id for drive in shown if words == drive.path)
    return next((f"; it is confirmed by its serial number, {serial}" for serial in serials), "")


def _quote(words: str) -> str:
    return on_one_line(words)[:_LONGEST_QUOTED]
