"""Build texts about the course of a run: notices and warnings, progress, resumptions, and unreadable parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tkperf.analysis.results import ReplacedTest, ResumptionResult, RunResult, SectionResult, TestResult
from tkperf.analysis.verdict import ReasonCode, judge_run
from tkperf.model.batch_state import BatchPlace
from tkperf.model.disturbance.io import DisturbanceCode
from tkperf.model.record import GoesOn, LeftOut, RunNote, RunStatus
from tkperf.model.sharing import SharingState
from tkperf.model.units import (
    format_capacity,
    format_count,
    format_duration,
    format_number,
    format_window,
    list_names,
    unit_for_people,
)
from tkperf.page.words.uncertainty import count_disturbed
from tkperf.runner.run_log import describe_under_way

# The greatest number of unreadable rows for which tkperf prints a separate warning.
_MOST_NAMED = 20


def find_notices(result: RunResult) -> tuple[str, ...]:
    """Return the notices that every page of a result shows. Each notice has the form ``KEYWORD: sentence``."""
    return (
        *result.info.notices,
        *_of_resumptions(result.resumptions),
        *_of_drives(result),
        *_of_damage(result.left_out),
    )


def find_shared_notices(results: Mapping[str, RunResult]) -> tuple[str, ...]:
    """Return the notices of several runs, each notice once. If a notice applies only to some runs, it contains the
    names of these runs: ``NOT PURGED (B): ...``.
    """
    return name_notices([(name, find_notices(result)) for name, result in results.items()])


_SHARING = {
    SharingState.NOT_SLOWED: "reads alone and together do not differ",
    SharingState.SLOWED: "reads were slower together than alone",
    SharingState.WITHIN_BUDGET: "within the budgets of the links that they share",
    SharingState.OVER_BUDGET: "over the budget of a link that they share",
    SharingState.NOT_KNOWN: "not known whether they slow each other down",
    SharingState.ALONE: "alone",
}


def describe_sharing(sharing: SharingState) -> str:
    """Return a text about whether drives that were measured at the same time influenced each other. The text contains
    only facts that are known.
    """
    return _SHARING[sharing]


def describe_place(place: BatchPlace) -> str:
    """Return the place of a run in a batch: ``drive 7 of batch rack7 (slot 12), measured with up to 11 others at once;
    within the budgets of ...``.
    """
    slot = f" (slot {place.slot})" if place.slot else ""
    text = f"drive {place.number} of batch {place.name}{slot}, "
    if not place.others:
        return f"{text}measured alone"
    judged = describe_sharing(place.sharing)
    own = "CPUs of its own" if place.cpus else "CPUs shared with them"
    return f"{text}measured with up to {format_count(place.others, 'other')} at once; {judged}; {own}"


def find_warnings(result: RunResult) -> tuple[RunNote, ...]:
    """Return the warnings of the run. They include warnings about unfinished parts, resumptions and damage."""
    return (*result.warnings, *_of_the_end(result), *_warn_of_resumptions(result), *_warn_of_damage(result.left_out))


def describe_progress(test: TestResult) -> str | None:
    """Return the progress of a test that is not complete: ``interrupted; complete: Throughput 1024k; cut off, figures
    so far: ...``.

    Return None if the test is complete.
    """
    if test.status is RunStatus.COMPLETE:
        return None
    going_on = test.status is RunStatus.RUNNING
    parts = (
        ("complete", [each.name for each in test.sections if each.complete]),
        (
            "under way, figures so far" if going_on else "cut off, figures so far",
            [each.name for each in test.sections if not each.complete],
        ),
        ("not measured yet" if going_on else "not measured", test.not_measured),
    )
    described = (f"{what}: {', '.join(names)}" for what, names in parts if names)
    return "; ".join((test.status.value, *described))


def describe_step_under_way(test: TestResult, status: RunStatus) -> str | None:
    """Return a text about the unfinished step of a test. Return None if there is no such step."""
    return None if test.under_way is None else describe_under_way(test.under_way, status)


def describe_stream(section: SectionResult) -> str:
    """Return the length of a stream in words: ``62 slices, 1 h 02 min, 514.8 GB written``."""
    last = section.slices[-1]
    text = f"{format_count(len(section.slices), 'slice')}, "
    text += format_duration(last.end_s)
    if last.total_written_bytes is None:
        return text
    return f"{text}, {format_capacity(last.total_written_bytes)} written"


def describe_resumptions(result: RunResult, test: TestResult) -> tuple[str, ...]:
    """Return a text about each resumption that concerns the test."""
    return tuple(describe_resumption(one) for one in result.resumptions if one.concerns(test.name))


def describe_resumption(one: ResumptionResult) -> str:
    """Return a text about a resumption. The text states why the run stopped, which parts were measured again, which
    parts were added, and what changed since the run stopped.
    """
    parts = [*(_of_interruption(one) if one.interrupted else ()), *(_of_repetition(test, one) for test in one.replaced)]
    if one.added:
        parts.append(f"{', '.join(one.added)} added {one.resumed_utc}")
    if one.changes:
        parts.append(f"different since then: {', '.join(one.changes)}")
    return "; ".join(parts)


def _of_interruption(one: ResumptionResult) -> Iterator[str]:
    stopped = (one.because or "not known why").rstrip(".")
    paused = "" if one.pause_s <= 0 else f" after up to {format_duration(one.pause_s)}"
    yield f"stopped ({stopped}) and continued {one.resumed_utc}{paused}"
    if one.cut_off is not None:
        yield one.cut_off
    if not one.again:
        yield "nothing had to be measured again"
        return
    kept = ""
    if one.set_aside_steps or one.set_aside_written_bytes:
        kept = (
            f" ({format_count(one.set_aside_steps, 'step')} set aside, "
            f"{format_capacity(one.set_aside_written_bytes)} written in what is in no result)"
        )
    yield f"measured again: {one.again}{kept}"
    if one.goes_on is GoesOn.ROUND:
        yield "no steady-state window spans it"
    if one.accepted:
        yield "results continue across it, as the user accepted"


def _of_repetition(test: ReplacedTest, one: ResumptionResult) -> str:
    before = [f"it had {'ended' if test.complete else 'not ended'}"]
    for outcome in test.outcomes:
        text = f"{outcome.section}: {outcome.ended_because}"
        if (verdict := outcome.verdict) is not None:
            average = f"{format_number(verdict.average)} {unit_for_people(verdict.unit)}"
            text += f", {verdict.tracking} {average} in {format_window(verdict.rounds)}"
        before.append(text)
    return (
        f"{test.name} measured again {one.resumed_utc} on request; before, kept and in no "
        f"result: {'; '.join(before)}; {format_capacity(test.written_bytes)} written"
    )


def _of_resumptions(resumptions: Sequence[ResumptionResult]) -> Iterator[str]:
    cuts = [one for one in resumptions if one.interrupted]
    if cuts:
        stopped_s = sum(cut.pause_s for cut in cuts)
        often, in_all = ("once", "") if len(cuts) == 1 else (f"{len(cuts)} times", " together")
        paused = f", for up to {format_duration(stopped_s)}{in_all}," if stopped_s > 0 else ""
        spans = " RESULTS SPAN IT where marked;" if any(cut.accepted for cut in cuts) else ""
        yield (
            f"INTERRUPTED: the run stopped {often}{paused} and continued;"
            f"{spans} repeated measurements are listed with their test"
        )
    repeated = [name for one in resumptions for name in one.repeated]
    added = [name for one in resumptions for name in one.added]
    for names, what in (
        (repeated, "REPEATED: measured again on request"),
        (added, "ADDED: measured after the run had ended"),
    ):
        if names:
            yield f"{what}: {', '.join(dict.fromkeys(names))}"


def _of_drives(result: RunResult) -> Iterator[str]:
    """Yield a notice if a drive was throttled, and a notice if a drive failed to read or keep data."""
    throttled_s = {test.title: sum(drive.throttled_s or 0.0 for drive in test.telemetry) for test in result.tests}
    hot = [f"{title} ({format_duration(for_s)})" for title, for_s in throttled_s.items() if for_s]
    if hot:
        yield (
            "THROTTLED: by its own log a drive slowed down for heat, or exceeded a temperature limit, "
            f"in {', '.join(hot)}; such steps are marked"
        )
    if result.media_errors:
        yield (
            "MEDIA ERRORS: by its own log a drive could not read or keep data, "
            f"{result.media_errors:,} times during the run"
        )


def _of_damage(left_out: Sequence[LeftOut]) -> Iterator[str]:
    if left_out:
        yield (
            f"DAMAGED: {format_count(len(left_out), 'part')} of the run file cannot be read; "
            "the warnings list the missing parts, which are in no figure"
        )


def _of_the_end(result: RunResult) -> Iterator[RunNote]:
    """Yield a warning for each part that did not end or did not begin. While the run is in progress, yield nothing."""
    if result.status is RunStatus.RUNNING:
        return
    for test in result.tests:
        for code, what in (
            ("unfinished-test", describe_progress(test)),
            ("unfinished-step", describe_step_under_way(test, result.status)),
        ):
            if what is not None:
                yield RunNote(code=code, text=f"{test.title}: {what}", test=test.name)
    if result.not_begun:
        yield RunNote(code="not-begun", text=f"not begun: {', '.join(result.not_begun)}")


def _warn_of_resumptions(result: RunResult) -> Iterator[RunNote]:
    titles: dict[str | None, str] = {test.name: test.title for test in result.tests}
    for one in result.resumptions:
        text = f"{titles.get(one.test, 'the run')}: {describe_resumption(one)}"
        yield RunNote(code="resumed", text=text, test=one.test, at_s=one.resumed_s)


def _warn_of_damage(left_out: Sequence[LeftOut]) -> Iterator[RunNote]:
    """Yield a separate warning for each unreadable row, up to a limit. If there are more unreadable rows, yield one
    warning for the remaining rows.
    """
    for row in left_out[:_MOST_NAMED]:
        yield RunNote(code="left-out", text=f"left out: {row}")
    more = len(left_out) - _MOST_NAMED
    if more > 0:
        text = f"left out: {format_count(more, 'more row')} of the run file"
        yield RunNote(code="left-out", text=text)


# Codes of warnings that the page shows elsewhere, among the findings or among the facts about the test.
_TOLD_ELSEWHERE = ("resumed", "unfinished-test")
# The greatest number of texts for each group on a page. The JSON export contains all texts.
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
        (
            "left-out",
            "not-begun",
            "unfinished-step",
            "job-left-out",
            "file-left-out",
            "more",
            "demand-missing",
            "runtime-missing",
        ),
        _MISSING,
    ),
    **dict.fromkeys(
        ("preparation", "no-room", "not-as-new", "never-written", "reads-trimmed", "would-be-refused"), _BEFORE
    ),
}

# The greatest number of runs that fit into a badge.
_MOST_IN_BADGE = 2
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
}
"""Keywords of the badges that repeat a reason of the verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WarningGroup:
    """The warnings of one kind. ``count`` also counts repeated texts, and texts that a page omits."""

    title: str
    count: int
    texts: tuple[str, ...]


def find_badges(result: RunResult) -> tuple[str, ...]:
    """Return the facts that every reader of a figure must know. Each fact has the form ``KEYWORD: sentence``."""
    badges = list(find_notices(result))
    if result.status is not RunStatus.COMPLETE:
        ended = result.ended_because or "under way"
        badges.insert(0, f"RUN {result.status.value.upper()}: {ended}")
    if steps := count_disturbed(step for test in result.tests for step in test.steps):
        badges.append(f"DISTURBED: others influenced {steps}, marked ! where they count")
    return tuple(badges)


def find_banners(result: RunResult) -> tuple[str, ...]:
    """Return the badges that are not already part of the verdict."""
    verdict = judge_run(result)
    said = {BADGES[reason.code] for reason in verdict.reasons if reason.code in BADGES}
    return leave_out_said(find_badges(result), said, simulated=verdict.simulated)


def leave_out_said(banners: Sequence[str], said: Collection[str] = (), *, simulated: bool) -> tuple[str, ...]:
    """Return the banners that are not already part of a verdict.

    Args:
        said: the keywords that the verdict contains.
        simulated: whether the verdict states that tkperf measured a model.
    """
    keywords = {*said, *(["SIMULATED"] if simulated else [])}
    return tuple(banner for banner in banners if banner.split(":")[0] not in keywords)


def name_notices(of_runs: Sequence[tuple[str, Sequence[str]]]) -> tuple[str, ...]:
    """Return the notices of several runs, each notice once. If a notice applies only to some runs, it contains the
    names of these runs after its keyword: ``THROTTLED (A, B): ...``, ``THROTTLED (5 of 12 runs): ...``.

    Args:
        of_runs: the name of each run with its notices.
    """
    runs_of: dict[str, dict[str, None]] = {}
    texts: dict[str, dict[str, list[str]]] = {}
    for name, notices in of_runs:
        for notice in notices:
            keyword, _, text = notice.partition(": ")
            runs_of.setdefault(keyword, {})[name] = None
            texts.setdefault(keyword, {}).setdefault(text, []).append(name)
    banners = []
    for keyword, by_text in texts.items():
        names, said = list(runs_of[keyword]), next(iter(by_text))
        who = ""
        if len(names) < len(of_runs):
            of_some = ", ".join(names) if len(names) <= _MOST_IN_BADGE else f"{len(names)} of {len(of_runs)} runs"
            who = f" ({of_some})"
        if len(by_text) > 1 or (who and len(names) > _MOST_IN_BADGE):
            said = "; ".join(": ".join(filter(None, (list_names(of_text), text))) for text, of_text in by_text.items())
        banners.append(": ".join(filter(None, (f"{keyword}{who}", said))))
    return tuple(banners)


def group_warnings(result: RunResult) -> tuple[WarningGroup, ...]:
    """Return the warnings of the run in groups with the same subject. Equal texts are included once."""
    by_group: dict[str, list[RunNote]] = {}
    for warning in find_warnings(result):
        if warning.code not in _TOLD_ELSEWHERE:
            by_group.setdefault(_GROUPS.get(warning.code, _REST), []).append(warning)
    return tuple(
        WarningGroup(title=title, count=len(warnings), texts=tuple(_texts(warnings)))
        for title, warnings in by_group.items()
    )


def _texts(warnings: Sequence[RunNote]) -> Iterator[str]:
    times = Counter(warning.text for warning in warnings)
    for number, (text, often) in enumerate(times.items()):
        if number == MOST_OF_A_GROUP:
            yield f"... and {format_count(len(times) - number, 'more warning')}, which the JSON has"
            return
        yield text if often == 1 else f"{text} ({often} times)"


def summarise_warnings(groups: Sequence[WarningGroup]) -> str:
    """Return a summary of the groups: ``7 warnings: host (3), disturbed steps (4)``. The text is empty if there are no
    groups.

    A warning may concern several steps, so the number of steps can be larger than the number of warnings.
    """
    if not groups:
        return ""
    count = format_count(sum(group.count for group in groups), "warning")
    return f"{count}: {', '.join(f'{group.title} ({group.count:,})' for group in groups)}"
