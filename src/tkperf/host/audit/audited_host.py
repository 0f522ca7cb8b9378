"""The audited host with its drives, and the findings about it.

A finding consists of the observed state, a severity, a reason and a remedy.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path

from tkperf.device.sysfs import find_disk, find_node, find_nvme_controller, text
from tkperf.model.units import drop_controls
from tkperf.system.process import Completed, run_command

# A longer value is probably not a setting, so only its beginning is shown.
_LONGEST = 300
USB_HUB_CLASS = "09"


class AuditLevel(StrEnum):
    """The severity of a finding for a run."""

    OK = "ok"
    # The level of a value that is only reported. A different value would lead to different results.
    NOTE = "note"
    # The level of a value that may reduce the precision. It is better to change the value before a run.
    ADVICE = "advice"
    # The level of a value with which the numbers of a run would be wrong, or with which the run would measure something
    # else.
    DISTURBS = "would disturb"
    NOT_KNOWN = "not known"


# The levels of findings that contain a remedy.
MATTERS = (AuditLevel.ADVICE, AuditLevel.DISTURBS)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """A finding on one subject. ``found`` is the observed value with its units. ``why`` is a sentence.

    Attributes:
        command: the shell command that changes the setting. None means that no command can change it.
        otherwise: the remedy if there is no command.
        device: the drive that the finding is about. None means that the finding is about the host.
        is_setting: whether the finding is about a setting, which stays until a user changes it. Otherwise the finding
            is about the current load.
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
        # Names of files and units may contain characters that are not allowed in a file, a terminal or a shell.
        for name in ("found", "command"):
            words = getattr(self, name)
            if words is not None:
                words = drop_controls(" ".join(words.split()))[:_LONGEST]
                object.__setattr__(self, name, words)

    @property
    def title(self) -> str:
        """Return the subject of the finding. If the finding is about a drive, the text contains the name of the
        drive.
        """
        return self.subject if self.device is None else f"{self.subject} of {self.device}"

    @property
    def remedy(self) -> str:
        """Return the command or another remedy for users. An empty text means that no change is necessary."""
        remedy = self.command if self.command is not None else self.otherwise
        if remedy is not None:
            return remedy
        return "no command changes it" if self.level in MATTERS else ""

    def __str__(self) -> str:
        return f"{self.title}: {self.found}" + (f" ({self.remedy})" if self.remedy else "")


@dataclass(frozen=True, slots=True)
class Topic:
    """A subject of the audit, and why it is important. The methods return findings on the subject."""

    name: str
    why: str
    is_setting: bool = True

    def find(
        self, level: AuditLevel, found: str, *, command: str | None = None, otherwise: str | None = None
    ) -> AuditResult:
        """Return a finding. The finding contains the remedy only if its level requires a remedy."""
        matters = level in MATTERS
        return AuditResult(
            subject=self.name,
            level=level,
            found=found,
            why=self.why,
            command=command if matters else None,
            otherwise=otherwise if matters else None,
            is_setting=self.is_setting,
        )

    def advise(
        self, is_needed: bool, found: str, *, command: str | None = None, otherwise: str | None = None
    ) -> AuditResult:
        """Return advice with its remedy if a change is needed. Otherwise return a finding with the level "ok"."""
        level = AuditLevel.ADVICE if is_needed else AuditLevel.OK
        return self.find(level, found, command=command, otherwise=otherwise)

    def ok(self, found: str) -> AuditResult:
        return self.find(AuditLevel.OK, found)

    def note(self, found: str) -> AuditResult:
        return self.find(AuditLevel.NOTE, found)

    def not_known(self, because: str = "the kernel does not show it") -> AuditResult:
        """Return the finding that the state could not be read. A state that is not known never counts as ok."""
        return AuditResult(subject=self.name, level=AuditLevel.NOT_KNOWN, found=f"not known: {because}", why=self.why)


@dataclass(frozen=True, slots=True)
class Audit:
    """All findings of an audit in the order of display."""

    findings: tuple[AuditResult, ...] = ()

    def at_levels(self, *levels: AuditLevel) -> tuple[AuditResult, ...]:
        return tuple(finding for finding in self.findings if finding.level in levels)

    def as_plain_data(self) -> list[dict[str, object]]:
        """Return the findings as plain data, for the run file and for programs."""
        return [asdict(finding) | {"level": finding.level.value} for finding in self.findings]


# The longest time in seconds that a tool may take if its answer is only advice.
ADVICE_LIMIT_S = 2.0
DAY_S = 86_400.0


@dataclass(frozen=True, kw_only=True)
class AuditedHost:
    """A host for the audit. In tests, ``root`` is another folder.

    Attributes:
        cpus: the numbers of the CPUs on which tkperf and the engine may run.
        lasts_s: the longest time in seconds that the run may take. Only timers that are due within this time are
            reported.
        outstanding: the number of outstanding I/Os of the heaviest load. None means that the value is not known.
        is_root: whether tkperf runs as root.
        engine: the name of the engine that issues the I/O.
        ioengines: the interfaces to the kernel that the engine can use, with the preferred interface first.
        ioengine: the interface that a run would use, according to a trial. None means that the engine could not try any
            interface.
        instead_of: the preferred interface that does not work on this host, with the reason.
        rounding: the engine's version, if no run is planned and this version rounds queue depths up with io_uring.
        now_s: seconds since 1970.
    """

    engine: str
    ioengines: tuple[str, ...]
    root: Path = Path("/")
    cpus: frozenset[int] = frozenset()
    lasts_s: float = DAY_S
    outstanding: int | None = None
    is_root: bool = True
    ioengine: str | None = None
    instead_of: str | None = None
    rounding: str | None = None
    now_s: float = field(default_factory=time.time)
    run: Callable[..., Completed] = run_command

    @property
    def sys(self) -> Path:
        return self.root / "sys"

    @property
    def proc(self) -> Path:
        return self.root / "proc"

    @property
    def cpu_folder(self) -> Path:
        return self.sys / "devices/system/cpu"

    @cached_property
    def processes(self) -> frozenset[str] | None:
        """Return the names of all running programs, which the kernel shortens to 15 characters. None means that the
        names are not known.
        """
        names = {text(process / "comm") for process in self.proc.glob("[0-9]*")}
        found = frozenset(name for name in names if name)
        return found or None


@dataclass(frozen=True, kw_only=True)
class AuditedDrive:
    """A drive that a run would load: its name, and the folder of the whole disk in sysfs.

    ``is_file`` means that the run measures a file whose file system is on this drive.
    """

    name: str
    disk: Path
    is_file: bool = False

    @property
    def major_minor(self) -> str | None:
        return text(self.disk / "dev")

    @property
    def is_nvme(self) -> bool:
        return find_nvme_controller(self.disk) is not None

    @property
    def hardware_queues(self) -> int:
        return len(list((self.disk / "mq").glob("[0-9]*")))

    @property
    def rotates(self) -> bool:
        return text(self.disk / "queue/rotational") == "1"


def find_drive(name: str, major_minor: str | None, sys_root: Path, *, is_file: bool = False) -> AuditedDrive | None:
    """Return the drive with this device number. None means that the kernel does not report such a drive."""
    if major_minor is None:
        return None
    node = find_node(major_minor, sys_root)
    if not node.exists():
        return None
    return AuditedDrive(name=name, disk=find_disk(node), is_file=is_file)


def find_place_on_bus(disk: Path) -> Path:
    """Return the folder of a disk in the kernel's device tree. For an NVMe drive, return the folder of its
    controller.
    """
    return find_nvme_controller(disk) or disk.resolve()


def read_nodes(sys_root: Path) -> dict[int, frozenset[int]]:
    """Return the CPUs of each NUMA node. The result is empty if the kernel shows no nodes."""
    return {
        int(node.name.removeprefix("node")): parse_list(text(node / "cpulist"))
        for node in (sys_root / "devices/system/node").glob("node[0-9]*")
    }


def parse_list(words: str | None) -> frozenset[int]:
    """Return the numbers of a list in the kernel's form, such as ``0-3,8``. If there is no list, the result is
    empty.
    """
    numbers: set[int] = set()
    for word in (words or "").split(","):
        first, _, last = word.strip().partition("-")
        if first:
            numbers.update(range(int(first), int(last or first) + 1))
    return frozenset(numbers)
