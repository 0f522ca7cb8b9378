"""Short remarks that a reader of a run must know with its figures: badges, and warnings in groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from tkperf.analysis.results import RunResult
from tkperf.analysis.verdict import ReasonCode, judge_run
from tkperf.model.disturbance.codes import DisturbanceCode
from tkperf.model.record import RunStatus, RunWarning
from tkperf.model.units import format_count
from tkperf.page.words.flags import count_disturbed
from tkperf.page.words.run import find_notices, find_warnings

# Codes of warnings that appear in findings or in the facts of their test.
_TOLD_ELSEWHERE = ("resumed", "unfinished-test")
# Most texts of each group; the JSON has all.
MOST_OF_A_GROUP = 10
_HOST = "host"
_STEPS = "disturbances"
_MISSING = "missing"
_BEFORE = "before the run"
_REST = "run"
_GROUPS = {
    **dict.fromkeys(("host-disturbs", "tuning-left-behind", "ioengine", "host-limited", "users-not-visible"), _HOST),
    **dict.fromkeys((*DisturbanceCode, "io-not-counted", "window-disturbed"), _STEPS),
    **dict.fromkeys(
        ("left-out", "not-begun", "unfinished-step", "job-left-out", "file-left-out", "more",
         "demand-missing", "runtime-missing"),
        _MISSING,
    ),
    **dict.fromkeys(("preparation", "no-room", "not-as-new", "never-written", "would-be-refused"), _BEFORE),
}  # fmt: skip

BADGES = {
    **{code: f"RUN {code.value.upper()}" for code in (ReasonCode.FAILED, ReasonCode.INTERRUPTED, ReasonCode.RUNNING)},
    ReasonCode.SHORT_PROFILE: "QUICK PROFILE",
    ReasonCode.DISTURBED: "DISTURBED",
    ReasonCode.THROTTLED: "THROTTLED",
    ReasonCode.MEDIA_ERRORS: "MEDIA ERRORS",
    ReasonCode.NOT_PURGED: "NOT PURGED",
    ReasonCode.ALTERED: "ALTERED",
    ReasonCode.DAMAGED: "DAMAGED",
    ReasonCode.FILE_TARGET: "FILE TARGET",
}  # fmt: skip
"""Keywords of badges that say the same as a reason of the verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WarningGroup:
    """Warnings of one kind; ``count`` includes repeated texts and texts beyond the limit."""

    title: str
    count: int
    texts: tuple[str, ...]


def find_badges(result: RunResult) -> tuple[str, ...]:
    """Return the facts that every reader of a figure must know, each as ``KEYWORD: sentence``."""
    badges = list(find_notices(result))
    if result.status is not RunStatus.COMPLETE:
        ended = result.ended_because or "going on"
        badges.insert(0, f"RUN {result.status.value.upper()}: {ended}")
    if steps := count_disturbed(step for test in result.tests for step in test.steps):
        badges.append(f"DISTURBED: others had a part in {steps}, marked ! where they count")
    return tuple(badges)


def find_banners(result: RunResult) -> tuple[str, ...]:
    """Return the badges that the verdict does not say."""
    verdict = judge_run(result)
    said = {BADGES[reason.code] for reason in verdict.reasons if reason.code in BADGES}
    return leave_out_said(find_badges(result), said, simulated=verdict.simulated)


def leave_out_said(
    banners: Sequence[str], said: Collection[str] = (), *, simulated: bool
) -> tuple[str, ...]:
    """Return the banners that a verdict does not say: others than these keywords, and than that of a model."""
    keywords = {*said, *(["SIMULATED"] if simulated else [])}
    return tuple(banner for banner in banners if banner.split(":")[0] not in keywords)


def group_warnings(result: RunResult) -> tuple[WarningGroup, ...]:
    """Group the run's warnings by subject, equal texts once."""
    by_group: dict[str, list[RunWarning]] = {}
    for warning in find_warnings(result):
        if warning.code not in _TOLD_ELSEWHERE:
            by_group.setdefault(_GROUPS.get(warning.code, _REST), []).append(warning)
    return tuple(
        WarningGroup(title=title, count=len(warnings), texts=tuple(_texts(warnings)))
        for title, warnings in by_group.items()
    )


def _texts(warnings: Sequence[RunWarning]) -> Iterator[str]:
    times = Counter(warning.text for warning in warnings)
    for number, (text, often) in enumerate(times.items()):
        if number == MOST_OF_A_GROUP:
            yield f"... and {format_count(len(times) - number, 'more warning')}, which the JSON has"
            return
        yield text if often == 1 else f"{text} ({often} times)"


def summarise_warnings(groups: Sequence[WarningGroup]) -> str:
    """Summarise the groups: ``7 warnings: host (3), disturbed steps (4)``; empty if there is none.

    A warning may be about several steps, so their number may be larger.
    """
    if not groups:
        return ""
    count = format_count(sum(group.count for group in groups), "warning")
    return f"{count}: {', '.join(f'{group.title} ({group.count:,})' for group in groups)}"
