"""Options of a job with their outcomes: kept, without effect, left out, or refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tkperf.interop.fio_jobfile.job_sections import Job, Unclear, read_count, read_flag, read_kb_base, shorten_text
from tkperf.interop.fio_jobfile.option_fates import CARRIED_OVER, HARMLESS, LEFT_OUT, REFUSED, UNKNOWN, WITHOUT_EFFECT
from tkperf.model.units import on_one_line

T = TypeVar("T")
_DEFAULT_VALUE = "this value asks for nothing"
_ORDER = ("carried over", "assumed", "not carried over", "without effect")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An option that cannot be kept, in the form of the file."""

    place: str
    job: str
    given: str
    why: str

    def __str__(self) -> str:
        return f"{self.place}, [{shorten_text(self.job)}], {self.given}: {self.why}"


class JobOptions:
    """Options of one job, and their outcomes.

    Attributes:
        refusals: options that cannot be kept. They count as fio's default, so that one pass finds all.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.refusals: list[Refusal] = []
        self._kept: dict[str, str] = dict(CARRIED_OVER)
        self._without_effect: dict[str, str] = dict(WITHOUT_EFFECT)
        self._left_out: dict[str, str] = dict(LEFT_OUT)
        self._assumed: list[str] = []
        self.kb_base = self.value("kb_base", read_kb_base, 1024)
        for name, option in job.options.items():
            value = "1" if option.value is None else option.value
            if f"{name}={value}" in HARMLESS:
                self._without_effect[name] = _DEFAULT_VALUE
            elif name in REFUSED:
                self.refuse(name, REFUSED[name])
            elif not any(name in known for known in (self._kept, self._without_effect, self._left_out)):
                self.refuse(name, UNKNOWN)
        if job.is_only_global:
            self.assume("one job with the options of [global], as the file has no job")

    def given(self, *names: str) -> list[str]:
        """Return the names of the job's options in the order of the file, because the last one counts in fio."""
        return [name for name in self.job.options if name in names]

    def text(self, name: str) -> str | None:
        """Return the value of an option as given; None if the option is not given."""
        option = self.job.options.get(name)
        return None if option is None else option.value or ""

    def value(self, name: str, read: Callable[[str | None], T], default: T) -> T:
        """Return the value of an option, read by ``read``. An unclear value is refused, and counts as the default."""
        option = self.job.options.get(name)
        if option is None:
            return default
        try:
            return read(option.value)
        except Unclear as unclear:
            self.refuse(name, str(unclear))
            return default

    def count(self, name: str, default: int, *, least: int, most: int) -> int:
        """Return the value of an option that is a whole number."""
        return self.value(name, lambda text: read_count(text, least, most), default)

    def flag(self, name: str) -> bool:
        """Return the state of a switch. A missing switch is off."""
        return self.value(name, read_flag, False)

    def keep(self, name: str, key: str) -> None:
        """Note the key of an option where it is not the usual one."""
        self._kept[name] = key

    def leave_out(self, *names: str, why: str) -> None:
        """Note options that have no use in this job, although other jobs carry them over."""
        self._left_out.update(dict.fromkeys(names, why))

    def assume(self, what: str) -> None:
        """Note what holds for the job although the file does not say so."""
        self._assumed.append(what)

    def refuse(self, name: str, why: str, *, default: str | None = None) -> None:
        """Refuse an option.

        Args:
            name: the option.
            why: the reason.
            default: text for fio's default if the job does not give the option.
        """
        option = self.job.options.get(name)
        refusal = Refusal(
            place=option.place if option else self.job.place,
            job=self.job.name,
            given=str(option) if option else default or name,
            why=why,
        )
        self.refusals.append(refusal)

    def outcomes(self) -> Iterator[tuple[str, str]]:
        """Yield the outcome of each option and a line about it, with the key or the reason."""
        for what in self._assumed:
            yield "assumed", what
        for option in self.job.overridden:
            yield "not carried over", f"{option}: a later {option.name} counts"
        for name, option in self.job.options.items():
            if name in self._left_out:
                yield "not carried over", f"{option}: {self._left_out[name]}"
            elif name in self._without_effect:
                yield "without effect", f"{option}: {self._without_effect[name]}"
            else:
                yield "carried over", f"{option} -> {self._kept[name]}"


def list_refusals(jobs: Sequence[JobOptions]) -> tuple[Refusal, ...]:
    """List the refusals of all jobs. An option of a global section counts once."""
    first: dict[tuple[str, str], Refusal] = {}
    for options in jobs:
        for refusal in options.refusals:
            first.setdefault((refusal.place, refusal.given), refusal)
    return tuple(first.values())


def list_outcomes(jobs: Sequence[JobOptions]) -> tuple[str, ...]:
    """List lines such as ``carried over: iodepth=4 -> io_depth (all jobs)``. Equal lines of several jobs become one."""
    names: dict[tuple[str, str], list[str]] = {}
    for options in jobs:
        for line in dict.fromkeys(options.outcomes()):
            names.setdefault(line, []).append(f"[{shorten_text(on_one_line(options.job.name))}]")
    return tuple(
        f"{outcome}: {on_one_line(what)} ({'all jobs' if len(of) == len(jobs) > 1 else ', '.join(of)})"
        for (outcome, what), of in sorted(names.items(), key=lambda item: _ORDER.index(item[0][0]))
    )
