"""Findings of the audit on one topic each: its state, its weight, the reason, and a remedy."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum

from tkperf.model.units import drop_controls

# A longer value is no setting but rubbish: only its beginning is shown.
_LONGEST = 300


class AuditLevel(StrEnum):
    """The weight of a finding for a run."""

    OK = "ok"
    # Disclosed, because another value would give other numbers.
    NOTE = "note"
    # May cost precision; better changed before a run.
    ADVICE = "advice"
    # The numbers of a run would be wrong, or would measure something else.
    DISTURBS = "would disturb"
    NOT_KNOWN = "not known"


# Levels of findings that have a remedy.
MATTERS = (AuditLevel.ADVICE, AuditLevel.DISTURBS)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFinding:
    """A finding on one subject. ``found`` has its units; ``why`` is a sentence.

    Attributes:
        command: the shell command that changes it; None where no command can.
        otherwise: the remedy where there is no command.
        device: the drive that the finding is about; None: the host.
        is_setting: it stays as it is until someone changes it, unlike load of the moment.
    """

    subject: str
    level: AuditLevel
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
        remedy = self.command if self.command is not None else self.otherwise
        if remedy is not None:
            return remedy
        return "no command changes it" if self.level in MATTERS else ""

    def __str__(self) -> str:
        return f"{self.title}: {self.found}" + (f" ({self.remedy})" if self.remedy else "")


@dataclass(frozen=True, slots=True)
class Topic:
    """A subject of the audit and why it matters; its methods make the findings on it."""

    name: str
    why: str
    is_setting: bool = True

    def find(
        self,
        level: AuditLevel,
        found: str,
        *,
        command: str | None = None,
        otherwise: str | None = None,
    ) -> AuditFinding:
        """Return a finding; it keeps its remedy only at a level that matters."""
        matters = level in MATTERS
        return AuditFinding(
            subject=self.name,
            level=level,
            found=found,
            why=self.why,
            command=command if matters else None,
            otherwise=otherwise if matters else None,
            is_setting=self.is_setting,
        )

    def advise(
        self,
        is_needed: bool,
        found: str,
        *,
        command: str | None = None,
        otherwise: str | None = None,
    ) -> AuditFinding:
        """Return advice with its remedy if it is needed, else ok."""
        level = AuditLevel.ADVICE if is_needed else AuditLevel.OK
        return self.find(level, found, command=command, otherwise=otherwise)

    def ok(self, found: str) -> AuditFinding:
        return self.find(AuditLevel.OK, found)

    def note(self, found: str) -> AuditFinding:
        return self.find(AuditLevel.NOTE, found)

    def not_known(self, because: str) -> AuditFinding:
        """Return a finding that the topic could not be read: unknown is never ok."""
        return AuditFinding(
            subject=self.name,
            level=AuditLevel.NOT_KNOWN,
            found=f"not known: {because}",
            why=self.why,
        )


@dataclass(frozen=True, slots=True)
class Audit:
    """All findings, in the order of the display."""

    findings: tuple[AuditFinding, ...] = ()

    def of(self, *levels: AuditLevel) -> tuple[AuditFinding, ...]:
        return tuple(finding for finding in self.findings if finding.level in levels)

    def plain(self) -> list[dict[str, object]]:
        """Return the findings as plain data, for the run file and for programs."""
        return [asdict(finding) | {"level": finding.level.value} for finding in self.findings]
