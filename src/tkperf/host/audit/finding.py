"""Findings of the audit on one subject each: its state, its weight, the reason, and a remedy."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum

from tkperf.model.units import drop_controls

# A longer value is no setting but rubbish: only its beginning is shown.
_LONGEST = 300


class Level(StrEnum):
    """The weight of a finding for a run."""

    OK = "ok"
    # Disclosed, because another value would give other numbers.
    NOTE = "note"
    # May cost precision; better changed before a run.
    ADVICE = "advice"
    # The numbers of a run would be wrong, or would measure something else.
    DISTURBS = "would disturb"
    NOT_KNOWN = "not known"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A finding on one subject. ``found`` has its units; ``why`` is a sentence.

    Attributes:
        command: the shell command that changes it; None where no command can.
        otherwise: the remedy where there is no command.
        device: the drive that the finding is about; None: the host.
        is_setting: it stays as it is until someone changes it, unlike load of the moment.
    """

    subject: str
    level: Level
    found: str
    why: str
    command: str | None = None
    otherwise: str | None = None
    device: str | None = None
    is_setting: bool = True

    def __post_init__(self) -> None:
        # Names of files and units may hold what no file, terminal or shell takes.
        for name in ("found", "command"):
            words = getattr(self, name)
            if words is not None:
                words = drop_controls(" ".join(words.split()))[:_LONGEST]
                object.__setattr__(self, name, words)

    @property
    def title(self) -> str:
        """Return the subject, with its drive if it has one."""
        return self.subject if self.device is None else f"{self.subject} of {self.device}"

    @property
    def remedy(self) -> str:
        """Return the command or another remedy, for people; empty where nothing needs doing."""
        if self.command is not None:
            return self.command
        if self.otherwise is not None:
            return self.otherwise
        matters = self.level in (Level.ADVICE, Level.DISTURBS)
        return "no command changes it" if matters else ""

    def __str__(self) -> str:
        return f"{self.title}: {self.found}" + (f" ({self.remedy})" if self.remedy else "")


@dataclass(frozen=True, slots=True)
class Audit:
    """All findings, in the order of the display."""

    findings: tuple[Finding, ...] = ()

    def of(self, *levels: Level) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.level in levels)

    def plain(self) -> list[dict[str, object]]:
        """Return the findings as plain data, for the run file and for programs."""
        return [asdict(finding) | {"level": finding.level.value} for finding in self.findings]


def not_known(subject: str, because: str, why: str) -> Finding:
    """Return a finding on a subject that the audit could not read: unknown is never ok."""
    return Finding(subject=subject, level=Level.NOT_KNOWN, found=f"not known: {because}", why=why)
