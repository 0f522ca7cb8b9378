"""What became of every option of a job file: the account that the user gets, and the TOML carries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tkperf.interop.fio_jobfile.notation import Unclear, read_flag
from tkperf.interop.fio_jobfile.reading import Job, shown
from tkperf.interop.fio_jobfile.rules import Fate
from tkperf.model.units import on_one_line

MOST_JOBS_NAMED = 4

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One option of one or more jobs: ``given`` as it stood there, or fio's default."""

    fate: Fate
    given: str
    why: str
    jobs: str

    def __str__(self) -> str:
        words = " -> " if self.fate is Fate.KEPT else ": "
        return f"{self.fate.value}: {on_one_line(self.given)}{words}{self.why} ({self.jobs})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One option that cannot be kept; ``option`` is None where it cannot be given up either."""

    place: str
    job: str
    given: str
    why: str
    option: str | None

    def __str__(self) -> str:
        return f"{self.place}, [{shown(self.job)}], {self.given}: {self.why}"


@dataclass(slots=True)
class Account:
    """Filled while jobs are looked at.

    Attributes:
        waived: options that the user gives up (``--without``), by fio's own name.
        given_up: those of them that were there to be given up, as they stood there.
        jobs: all that the file has.
    """

    waived: Collection[str] = ()
    refusals: list[Refusal] = field(default_factory=list)
    given_up: dict[str, str] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)
    _entries: dict[tuple[Fate, str, str], list[Job]] = field(default_factory=dict)

    def say(self, fate: Fate, job: Job, given: str, why: str) -> None:
        """An option's fate; the same of several jobs is one entry."""
        jobs = self._entries.setdefault((fate, given, why), [])
        if job not in jobs:
            jobs.append(job)

    def entries(self) -> Iterator[Entry]:
        """In the order kept, implied, dropped, given up."""
        for fate in Fate:
            for (of, given, why), jobs in self._entries.items():
                if of is fate:
                    yield Entry(fate=fate, given=given, why=why, jobs=self._words(jobs))

    def _words(self, jobs: Sequence[Job]) -> str:
        """``[a], [b]``, or all of them in a word."""
        if len(jobs) == len(self.jobs) > 1:
            return "all jobs"
        more = len(jobs) - MOST_JOBS_NAMED
        named = ", ".join(f"[{shown(on_one_line(job.name))}]" for job in jobs[:MOST_JOBS_NAMED])
        return f"{named} and {more} more" if more > 0 else named


class JobOptions:
    """The options of one job, and what becomes of each."""

    def __init__(self, job: Job, account: Account) -> None:
        self.job = job
        self._account = account
        self._settled: set[str] = set()
        self.kb_base = 1000 if self.text("kb_base") == "1000" else 1024

    def __contains__(self, name: str) -> bool:
        return name in self.job.options

    def given(self, *names: str) -> list[str]:
        """Those of some options that the job has, the one that counts in fio last."""
        return [name for name in self.job.options if name in names]

    def text(self, name: str) -> str | None:
        """The value as it stands there; None where the option is not given."""
        option = self.job.options.get(name)
        return None if option is None else option.value or ""

    def value(self, name: str, read: Callable[[str | None], T], default: T) -> T:
        """The value as ``read`` has it; an unclear one is refused and counts as the default."""
        option = self.job.options.get(name)
        if option is None:
            return default
        try:
            return read(option.value)
        except Unclear as unclear:
            self.refuse(name, str(unclear))
            return default

    def flag(self, name: str) -> bool:
        """Whether a switch is on."""
        return name in self and self.value(name, read_flag, False)

    def keep(self, *names: str, key: str) -> None:
        """They stand in the workload file, under a key."""
        self.say(Fate.KEPT, names, key)

    def imply(self, *names: str, why: str) -> None:
        """tkperf does that anyway."""
        self.say(Fate.IMPLIED, names, why)

    def drop(self, *names: str, why: str) -> None:
        """They have no effect on the numbers."""
        self.say(Fate.DROPPED, names, why)

    def say(self, fate: Fate, names: Collection[str], why: str) -> None:
        """The fate of those of some options that the job has and that are not refused."""
        for name in names:
            if name in self and name not in self._settled:
                self._account.say(fate, self.job, str(self.job.options[name]), why)

    def note(self, given: str, why: str) -> None:
        """What tkperf does where the job leaves it to fio's default."""
        self._account.say(Fate.IMPLIED, self.job, given, why)

    def refuse(
        self, name: str, why: str, *, default: str | None = None, for_good: bool = False
    ) -> None:
        """An option cannot be kept, unless the user gives it up.

        Args:
            default: as what it counts where the job does not give it.
            for_good: without it there would be nothing to do, so that it cannot be given up.
        """
        option = self.job.options.get(name)
        given = str(option) if option is not None else default or name
        self._settled.add(name)
        if name in self._account.waived and not for_good:
            self._account.given_up.setdefault(name, given)
            self._account.say(Fate.GIVEN_UP, self.job, given, why)
            return
        place = option.place if option is not None else f"{self.job.file}, line {self.job.line}"
        refusal = Refusal(
            place=place,
            job=self.job.name,
            given=given,
            why=why,
            option=None if for_good else name,
        )
        if all((other.place, other.given) != (place, given) for other in self._account.refusals):
            self._account.refusals.append(refusal)
