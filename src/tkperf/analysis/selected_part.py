"""Find the part of a run for which a user requests a histogram: a round, a level of an offered rate, or a range of
seconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tkperf.analysis.details import CellDetail, TimedStep
from tkperf.analysis.results import RunResult
from tkperf.analysis.workload_axes import AXES
from tkperf.model.errors import UsageError
from tkperf.model.measurement import Measurement, Sample, add_all
from tkperf.model.record import StepRecord
from tkperf.model.units import format_window
from tkperf.model.workload import Workload

FORM = (
    "NAME[,NAME ...][:PART], where a NAME is that of a test, a section or a workload such as '0/100 4k', "
    "and PART a round (28), rounds (3-7), seconds (12-40s) or a level (70000iops)"
)
_PART = re.compile(
    r"(?P<from_s>\d+(\.\d+)?)-(?P<to_s>\d+(\.\d+)?)s|(?P<level>\d+(\.\d+)?)iops"
    r"|(?P<first>\d+)(-(?P<last>\d+))?",
    re.IGNORECASE,
)
_MOST_NAMED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class PartSelection:
    """The part of a cell that a user selected. If ``rounds``, ``seconds`` and ``level`` are None, the whole cell is
    selected.

    Attributes:
        text: the selection as the user wrote it.
        names: names of the test, the section or the workload. The cell must match all names.
        rounds: the first and the last round, slice or area.
        seconds: start and end on the time axis of the charts that show every second.
        level: offered rate in IOPS.
    """

    text: str
    names: tuple[str, ...]
    rounds: tuple[int, int] | None = None
    seconds: tuple[float, float] | None = None
    level: float | None = None

    @property
    def words(self) -> str:
        """Return the selected part in words, such as ``round 28``, ``seconds 12–40`` or ``70,000 IOPS offered``."""
        if self.rounds is not None:
            return format_window(range(self.rounds[0], self.rounds[1] + 1))
        if self.seconds is not None:
            return f"seconds {self.seconds[0]:g}\N{EN DASH}{self.seconds[1]:g}"
        return "all of it" if self.level is None else f"{self.level:,.6g} IOPS offered"


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedPart:
    """A part of a cell that matches a selection.

    ``coarse`` means that the part is a range of seconds. The histogram of a second has buckets with a width of up to
    1/16 of their value.
    """

    test: str
    section: str
    workload: Workload
    words: str
    measurement: Measurement
    coarse: bool


Samples = Callable[[str, StepRecord], Sequence[Sample]]


def parse_selection(text: str) -> PartSelection:
    """Parse the value of ``--histogram``.

    Raises:
        UsageError: the form of the text is not valid, or the part ends before it begins.
    """
    before, colon, after = text.rpartition(":")
    named = before if colon else after
    names = tuple(word.strip() for word in named.split(",") if word.strip())
    match = _PART.fullmatch(after.strip().replace(" ", "")) if colon else None
    if not names or (colon and match is None):
        raise UsageError(f"--histogram '{text}': give {FORM}")
    if match is None:
        return PartSelection(text=text, names=names)
    groups = match.groupdict()
    if groups["level"]:
        return PartSelection(text=text, names=names, level=float(groups["level"]))
    low, high = (groups["from_s"], groups["to_s"]) if groups["to_s"] else (groups["first"], groups["last"])
    if high is not None and float(high) < float(low) + bool(groups["to_s"]) * 1e-9:
        raise UsageError(
            f"--histogram '{text}': the range {after.strip()} ends before it begins. Write the smaller number first"
        )
    if groups["to_s"]:
        return PartSelection(text=text, names=names, seconds=(float(low), float(high)))
    return PartSelection(text=text, names=names, rounds=(int(low), int(high or low)))


def find_selected_parts(
    selections: Sequence[PartSelection], result: RunResult, details: Sequence[CellDetail], samples: Samples
) -> tuple[SelectedPart, ...]:
    """Return the parts that the user selected.

    Args:
        samples: the function that returns the samples of a step. The arguments of the function are the name of the test
            and the step.

    Raises:
        UsageError: a selection matches no workload, or more than one workload.
    """
    return tuple(_find(selection, result, details, samples) for selection in selections)


def _find(asked: PartSelection, result: RunResult, details: Sequence[CellDetail], samples: Samples) -> SelectedPart:
    titles = {test.name: test.title for test in result.tests}
    wanted = {name.casefold() for name in asked.names}
    named = [detail for detail in details if wanted <= _names_of(detail, titles[detail.test])]
    if not named:
        sections = dict.fromkeys(f"{detail.test}, {detail.section}" for detail in details)
        raise UsageError(
            f"--histogram '{asked.text}': no part of the run has this name. The names are "
            f"{_list(sections) or 'no results'}"
        )
    having = _prefer_whole([detail for detail in named if _has_part(detail, asked)])
    if not having:
        raise UsageError(f"--histogram '{asked.text}': the run does not contain this part. {_reach(named, asked)}")
    if len(having) > 1:
        several = [f"'{detail.section}, {detail.workload.mix_and_size}'" for detail in having]
        if len(set(several)) < len(several):
            several = [f"'{detail.section}, {_last_words(detail)}'" for detail in having]
        raise UsageError(
            f"--histogram '{asked.text}': several workloads contain this part. Add the name of one of "
            f"these workloads, such as {_list(several)}"
        )
    (detail,) = having
    return SelectedPart(
        test=detail.test,
        section=detail.section,
        workload=detail.workload,
        words=asked.words,
        measurement=_measured(asked, detail, samples),
        coarse=asked.seconds is not None,
    )


def _prefer_whole(details: Sequence[CellDetail]) -> list[CellDetail]:
    """Return the preferred details. The details of whole loads are preferred to the details of streams. Among details
    of the same kind, the details of I/Os are preferred to the details of flushes.
    """
    ranks = [(detail.workload.stream is not None, detail.workload.flushes) for detail in details]
    return [detail for detail, rank in zip(details, ranks, strict=True) if rank == min(ranks)]


def _reach(named: Sequence[CellDetail], asked: PartSelection) -> str:
    """Return a sentence about the parts that exist: the lowest, the highest and the nearest level if a level was
    requested, otherwise the last round and the last second.
    """
    levels = sorted({level for detail in named if (level := detail.workload.offered_iops) is not None})
    asked_level = asked.level
    if asked_level is not None:
        if not levels:
            return "The run has no offered rate"
        nearest = min(levels, key=lambda level: abs(level - asked_level))
        return f"The levels are {levels[0]:.10g} to {levels[-1]:.10g}iops; the nearest is {nearest:.10g}iops"
    reach = max((part.number for detail in named for part in detail.parts), default=0)
    end_s = max((detail.seconds.end_s for detail in named), default=0.0)
    return f"The last round is {reach}, and the last second is {end_s:.0f}"


def _names_of(detail: CellDetail, title: str) -> set[str]:
    work = detail.workload
    # The user separates names with commas, so a number within a name must not contain a thousands separator.
    names = (
        detail.test,
        title,
        detail.section,
        work.mix_and_size,
        work.stream or "",
        _last_words(detail),
        *(axis.words(work).replace(",", "") for axis in AXES),
    )
    return {name.casefold() for name in names}


def _last_words(detail: CellDetail) -> str:
    return str(detail.workload).replace(",", "")


def _list(words: Iterator[str] | Sequence[str] | dict[str, None]) -> str:
    several = list(words)
    more = len(several) - _MOST_NAMED
    return "; ".join(several[:_MOST_NAMED]) + (f"; and {more} more" if more > 0 else "")


def _has_part(detail: CellDetail, asked: PartSelection) -> bool:
    if asked.level is not None:
        return detail.workload.offered_iops == asked.level
    if asked.seconds is not None:
        return any(_overlaps(part, asked.seconds) for part in detail.parts)
    return asked.rounds is None or bool(_rounds(detail, asked.rounds))


def _rounds(detail: CellDetail, rounds: tuple[int, int]) -> list[TimedStep]:
    first, last = rounds
    within = [part for part in detail.parts if first <= part.number <= last]
    return within if {first, last} <= {part.number for part in within} else []


def _overlaps(part: TimedStep, seconds: tuple[float, float]) -> bool:
    return part.start_s < seconds[1] and part.end_s > seconds[0]


def _measured(asked: PartSelection, detail: CellDetail, samples: Samples) -> Measurement:
    pieces: Sequence[Measurement | Sample]
    if asked.seconds is None:
        parts = detail.parts if asked.rounds is None else _rounds(detail, asked.rounds)
        pieces = [part.measurement for part in parts]
    else:
        from_s, to_s = asked.seconds
        pieces = [
            sample
            for part in detail.parts
            if _overlaps(part, asked.seconds)
            for sample in samples(detail.test, part.step)
            if from_s <= part.start_s + sample.start_s < to_s
        ]
    if not pieces:
        raise UsageError(
            f"--histogram '{asked.text}': the run file contains no samples of these seconds. Choose other seconds"
        )
    return Measurement(
        duration_s=sum(piece.duration_s for piece in pieces),
        read=add_all(piece.read for piece in pieces),
        write=add_all(piece.write for piece in pieces),
        trim=add_all(piece.trim for piece in pieces),
    )
