"""The one question before the drives of a batch are erased, in words, and the judgement of its answers."""

from __future__ import annotations

from dataclasses import dataclass

from tkperf.model.errors import RefusedError
from tkperf.model.units import format_count
from tkperf.pipeline.batch.consent_file import OPTION
from tkperf.pipeline.consent import ask_again

_LONGEST_QUOTED = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchQuestion:
    """The question whether ``count`` drives of the batch ``name`` may lose their data; the table before it has them."""

    name: str
    count: int

    @property
    def expected(self) -> str:
        """The answer that confirms: no other batch's, and no batch's with more or fewer drives."""
        return f"{self.name} {self.count}"

    @property
    def text(self) -> str:
        these = "this drive" if self.count == 1 else f"these {self.count:,} drives"
        return (
            f"ALL DATA on {these} will be destroyed. Type the batch's name and the number of "
            f"drives ({self.expected}) to go on"
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
            f"all data on {format_count(self.count, 'drive')} will be destroyed, and there is no terminal to ask "
            f"on: confirm with {OPTION} FILE, a file with a line for each drive: its serial number, or "
            "its path where it has none. Nothing was touched"
        )
