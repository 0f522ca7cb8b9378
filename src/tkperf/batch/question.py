"""The one question before the drives of a batch are erased, in words, and the judgement of its answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tkperf.batch.consent_file import OPTION
from tkperf.model.batch_state import DriveShown
from tkperf.model.errors import RefusedError
from tkperf.model.units import drop_controls, format_count
from tkperf.pipeline.consent import ask_again

_LONGEST_QUOTED = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchQuestion:
    """The question whether drives of the batch ``name`` may lose their data.

    Attributes:
        shown: all drives of the batch, as they were found; the table before the question has them.
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
        """The answer that confirms: no other batch's, and no batch's with more or fewer drives."""
        return f"{self.name} {self.count}"

    @property
    def text(self) -> str:
        return (
            f"ALL DATA on {self._loss}. Type the batch's name and the number of erased "
            f"drives ({self.expected}) to continue"
        )

    @property
    def _loss(self) -> str:
        these = "this drive" if self.count == 1 else f"these {self.count:,} drives"
        others = [drive for drive in self.shown if drive.confirm_id is None]
        if not others:
            return f"{these} will be destroyed"
        simulated = sum(drive.is_simulated for drive in others)
        counts = ((simulated, "simulated drive"), (len(others) - simulated, "new file"))
        rest = ", ".join(format_count(count, noun) for count, noun in counts if count)
        return (
            f"{self.count:,} of {len(self.shown):,} drives will be destroyed: "
            f"{', '.join(map(_name, self.erased))}. The others ({rest}) lose none"
        )

    def is_confirmed_by(self, answer: str) -> bool:
        return answer.split() == self.expected.split()

    def ask_again(self, answer: str) -> str:
        """Return the question after an answer that does not confirm."""
        return ask_again(self.expected, answer)

    def refuse(self, answer: str) -> RefusedError:
        """Return the refusal after the last answer."""
        return RefusedError(
            f"'{answer[:_LONGEST_QUOTED]}' does not confirm: expected '{self.expected}'. Nothing was touched"
        )

    def refuse_without_terminal(self) -> RefusedError:
        """Return the refusal where there is no user to ask."""
        return RefusedError(
            f"all data on {self._loss}. There is no terminal to ask on: confirm with {OPTION} FILE, a file with a line "
            "for each drive: its serial number, or "
            "its path where it has none. Nothing was touched"
        )


def _name(drive: DriveShown) -> str:
    """Return a drive with what confirms it: ``/dev/sdb PHYH850500YA``; a file says so."""
    serial = "" if drive.confirm_id == drive.path else f" {drive.confirm_id}"
    return drop_controls(f"{'file ' * drive.is_file}{drive.path}{serial}")
