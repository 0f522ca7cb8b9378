"""The text of the question that tkperf asks before it erases the drives of a batch, and the check of the answer."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tkperf.analysis.estimates import RunEstimate
from tkperf.batch.drive_processes import Held
from tkperf.batch.request import BatchDrive
from tkperf.device.identity import TargetKind
from tkperf.host.paths import read_path
from tkperf.model.batch_state import DriveShown
from tkperf.model.errors import RefusedError, guess
from tkperf.model.input_files import SETTINGS_BYTES, read_text_input
from tkperf.model.units import drop_controls, format_count, on_one_line
from tkperf.pipeline.consent import Question, ask_again
from tkperf.pipeline.run_plan import RunPlan
from tkperf.pipeline.run_to_file import find_file_bytes
from tkperf.runfile.writers import require_own_input

# The largest number of warnings from another process in a message, and the largest length of such a text.
_MOST_WARNINGS, _LONGEST_TEXT = 20, 1_000


def show_drive(
    number: int,
    drive: BatchDrive,
    plan: RunPlan,
    estimate: RunEstimate,
    *,
    question: Question | None = None,
    resumed: str = "",
) -> Held:
    """Return the facts about a drive that are known before consent.

    Args:
        number: the number of the drive in the batch.
        question: the question that is asked before the data of the drive is lost. None means that no data is lost, or
            that no question is necessary yet.
        resumed: a text about how the run continues. It is empty for a new run.
    """
    identity, facts = plan.dut.identity, plan.dut.facts.values
    way = msgspec.structs.replace(read_path(identity), drive=drive.name)
    return Held(
        shown=DriveShown(
            number=number,
            name=drive.name,
            path=identity.path,
            capacity_bytes=identity.capacity_bytes,
            slot=drive.slot or way.slot,
            model=short(identity.model) or None,
            serial=short(identity.serial) or None,
            wwn=short(identity.wwn) or None,
            firmware=short(identity.firmware) or None,
            link=short(str(facts.get("link") or "")) or None,
            data=tuple(map(short, question.data)) if question is not None else (),
            is_file=identity.kind is TargetKind.FILE,
            confirm_id=None if question is None else question.expected,
        ),
        shortest_s=estimate.shortest_s,
        longest_s=estimate.longest_s,
        file_bytes=find_file_bytes(plan.fitted),
        jobs=max(load.jobs for test in plan.tests for load in test.workloads),
        way=way,
        resumed=short(resumed),
        warnings=tuple(short(one.text) for one in plan.warnings[:_MOST_WARNINGS]),
    )


def short(text: str | None) -> str:
    """Return a text from another source in the form that messages require: one line without control characters."""
    return on_one_line(text or "")[:_LONGEST_TEXT]


_LONGEST_QUOTED = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchQuestion:
    """The question whether drives of the batch ``name`` may lose their data.

    Attributes:
        shown: all drives of the batch, as they were found. The table before the question contains all these drives.
    """

    name: str
    shown: Sequence[DriveShown]

    @property
    def erased(self) -> list[DriveShown]:
        """The drives that lose data."""
        return [drive for drive in self.shown if drive.confirm_id is not None]

    @property
    def count(self) -> int:
        return len(self.erased)

    @property
    def expected(self) -> str:
        """The answer that confirms the erasure. This answer differs from the answer for another batch, and from the
        answer for this batch with more or fewer drives.
        """
        return f"{self.name} {self.count}"

    @property
    def text(self) -> str:
        return (
            f"ALL DATA on {self._drives} will be destroyed{self._names}. Type the batch's name and the number of "
            f"erased drives ({self.expected}) to continue"
        )

    @property
    def _drives(self) -> str:
        if self.count < len(self.shown):
            return f"{self.count:,} of {len(self.shown):,} drives"
        return "this drive" if self.count == 1 else f"these {self.count:,} drives"

    @property
    def _names(self) -> str:
        """Return the names of the drives that lose data. If all drives lose data, return an empty text."""
        others = [drive for drive in self.shown if drive.confirm_id is None]
        if not others:
            return ""
        simulated = sum(drive.is_simulated for drive in others)
        counts = ((simulated, "simulated drive"), (len(others) - simulated, "new file"))
        rest = ", ".join(format_count(count, noun) for count, noun in counts if count)
        return f": {', '.join(map(_name, self.erased))}. The others ({rest}) lose none"

    def is_confirmed_by(self, answer: str) -> bool:
        return answer.split() == self.expected.split()

    def ask_again(self, answer: str) -> str:
        """Return the question that is asked after an answer that does not confirm the erasure."""
        return ask_again(self.expected, answer)

    def refuse(self, answer: str) -> RefusedError:
        """Return the error with which tkperf refuses the batch after the last wrong answer."""
        return RefusedError(
            f"the answer '{answer[:_LONGEST_QUOTED]}' does not confirm the batch. The expected answer is "
            f"'{self.expected}'. Nothing was touched"
        )

    def refuse_without_terminal(self) -> RefusedError:
        """Return the error with which tkperf refuses a call if no user can answer the question."""
        return RefusedError(
            f"tkperf would destroy all data on {self._drives}{self._names}. tkperf cannot ask for consent, because "
            f"there is no terminal. Confirm with {OPTION} FILE. The file must contain one line for each drive: the "
            "serial number of the drive, or the path if the drive has no serial number. Nothing was touched"
        )


def _name(drive: DriveShown) -> str:
    """Return the name of a drive with the text that confirms its erasure, such as ``/dev/sdb PHYH850500YA``. For a
    file, the text begins with the word ``file``.
    """
    serial = "" if drive.confirm_id == drive.path else f" {drive.confirm_id}"
    return drop_controls(f"{'file ' * drive.is_file}{drive.path}{serial}")


OPTION = "--yes-destroy-file"
_LONGEST_QUOTED_LINE = 80


def confirm_by_file(path: Path, shown: Sequence[DriveShown]) -> None:
    """Check that the file contains a line for each drive that loses data, and no other line.

    Args:
        shown: the drives that lose data, as they were found.

    Raises:
        InputFileError: the file cannot be read.
        RefusedError: another user may have written the file, or its lines do not match the drives.
    """

    def require_trusted(status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise RefusedError(f"{path} is not a regular file, so tkperf does not use it. Nothing was touched")
        require_own_input(path, status)

    text = read_text_input(path, what=OPTION, limit_bytes=SETTINGS_BYTES, check=require_trusted)
    faults = tuple(find_faults(text.removeprefix("\ufeff"), shown))
    if faults:
        raise RefusedError(f"the file {path} does not confirm the erasure: {'; '.join(faults)}. Nothing was touched")


def find_faults(text: str, shown: Sequence[DriveShown]) -> Iterator[str]:
    """Yield the faulty lines of a consent file, each with its number, and then the drives without a line."""
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
    """Return a line without its comment. A comment begins at the start of the line or after a space."""
    words = f" {line}".replace("\t", " ").partition(" #")[0]
    return words.strip()


def _hint(words: str, shown: Sequence[DriveShown]) -> str:
    """Return a hint if a line contains the path of a drive, although only the serial number confirms this drive."""
    serials = (drive.confirm_id for drive in shown if words == drive.path)
    return next((f"; it is confirmed by its serial number, {serial}" for serial in serials), "")


def _quote(words: str) -> str:
    return on_one_line(words)[:_LONGEST_QUOTED_LINE]
