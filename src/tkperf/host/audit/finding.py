"""What the audit says of one subject: how it is, whether it matters, why, and what changes it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum

from tkperf.model.units import drop_controls

# Longer is no setting but rubbish: what is shown of it is its beginning.
_LONGEST = 300


class Level(StrEnum):
    """How much a finding matters to a run."""

    OK = "ok"
    # Disclosed, because another value would give other numbers.
    NOTE = "note"
    # May cost precision; better changed before a run.
    ADVICE = "advice"
    # Numbers of a run would be wrong, or those of something else.
    DISTURBS = "would disturb"
    NOT_KNOWN = "not known"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """``found`` has its units; ``why`` is a sentence.

    Attributes:
        command: what changes it, as a shell takes it; None where no command can.
        otherwise: what to do about it instead.
        device: which drive it is of; None: of the host.
        is_setting: it stays as it is until somebody changes it, unlike load of the moment.
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
        """Subject, and the drive it is of."""
        return self.subject if self.device is None else f"{self.subject} of {self.device}"

    @property
    def remedy(self) -> str:
        """The command, or what else can be done, for people; empty where nothing needs doing."""
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
    """All findings, in the order in which they are shown."""

    findings: tuple[Finding, ...] = ()

    def of(self, *levels: Level) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.level in levels)

    def plain(self) -> list[dict[str, object]]:
        """For the run file and for programs."""
        return [asdict(finding) | {"level": finding.level.value} for finding in self.findings]


def not_known(subject: str, because: str, why: str) -> Finding:
    """What nobody could find out is never ok."""
    return Finding(subject=subject, level=Level.NOT_KNOWN, found=f"not known: {because}", why=why)
