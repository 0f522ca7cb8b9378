"""Build texts about the verdict on the measurement of a run. Every output about a run begins with this verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from tkperf.analysis.claim_results import Checked, ClaimKind
from tkperf.analysis.results import RunResult
from tkperf.analysis.verdict import NO_PURGE, Judgement, ReasonCode, VerdictReason, VerdictState, judge_run
from tkperf.model.disturbance.io import WORDS, DisturbanceCode
from tkperf.model.figures import CAUTION_WORDS, LoadCaution
from tkperf.model.units import capital, format_count


class NoteLevel(StrEnum):
    """The severity of a remark. The values are in ascending order of severity. An output shows each severity with a
    colour and a sign.
    """

    INFORMATION = "information"
    CAUTION = "caution"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A verdict in words.

    Attributes:
        title: the state, such as ``Valid with cautions``. ``SIMULATED`` precedes the state if tkperf measured a model.
        reasons: sentences without full stops, the most severe first.
        judged: the verdict that the text describes.
        texts: a text for each reason of ``judged``.
    """

    level: NoteLevel
    title: str
    reasons: tuple[str, ...]
    judged: Judgement[Any]
    texts: tuple[str, ...]

    @property
    def text(self) -> str:
        """Return the verdict on one line: ``Valid with cautions: Latency did not reach steady state``."""
        return f"{self.title}: {'; '.join(self.reasons)}" if self.reasons else self.title


_LEVELS: dict[VerdictState | None, NoteLevel] = {
    **dict.fromkeys(
        (
            VerdictState.CAN_RUN_WITH_CAUTIONS,
            VerdictState.CAN_BE_TESTED_WITH_CAUTIONS,
            VerdictState.CAN_MEASURE_WITH_CAUTIONS,
            VerdictState.TUNED_IN_PART,
            VerdictState.PUT_BACK_IN_PART,
            VerdictState.COMPARABLE_WITH_CAUTIONS,
            VerdictState.CAUTIONS,
        ),
        NoteLevel.CAUTION,
    ),
    **dict.fromkeys(
        (
            VerdictState.REFUSED,
            VerdictState.CANNOT_BE_TESTED,
            VerdictState.CANNOT_MEASURE,
            VerdictState.NOT_PUT_BACK,
            VerdictState.NOT_COMPARABLE,
            VerdictState.FAIL,
            VerdictState.NOT_VALID,
        ),
        NoteLevel.FAILURE,
    ),
}
CLAIM_LEVELS = {ClaimKind.FAILED: NoteLevel.FAILURE, ClaimKind.NOT_JUDGED: NoteLevel.CAUTION}
_SIMULATED = "SIMULATED. "
# The greatest number of names in a reason. More names would not make a reason clearer.
_MOST_NAMED = 3


def word_verdict(
    judged: Judgement[Any], texts: Iterable[str], *, title: str | None = None, reasons: Iterable[str] | None = None
) -> Verdict:
    """Return a verdict in words.

    Args:
        texts: a text for each reason.
        title: a title that replaces the words for the state.
        reasons: the sentences that a page shows. None means that the page shows ``texts``.
    """
    said = tuple(texts)
    return Verdict(
        level=level_of(judged.state),
        title=name_verdict(judged.state, simulated=judged.simulated) if title is None else title,
        reasons=said if reasons is None else tuple(reasons),
        judged=judged,
        texts=said,
    )


def split_simulated(verdict: Verdict) -> tuple[str, Verdict]:
    """Return two texts: the keyword SIMULATED, and the verdict without this keyword. A page with a matrix shows the
    keyword before its title.

    The first text is empty if the verdict does not begin with the keyword.
    """
    if not verdict.title.startswith(_SIMULATED):
        return "", verdict
    return _SIMULATED.rstrip(". "), replace(verdict, title=verdict.title.removeprefix(_SIMULATED))


def name_verdict(state: VerdictState, *, simulated: bool) -> str:
    """Return the title of a verdict: ``Valid with cautions``, ``SIMULATED. Valid``."""
    return f"{_SIMULATED if simulated else ''}{capital(state.value)}"


def level_of(state: VerdictState | None) -> NoteLevel:
    return _LEVELS.get(state, NoteLevel.INFORMATION)


def find_gravest(levels: Iterable[NoteLevel]) -> NoteLevel:
    """Return the most severe of the levels. If there are no levels, return ``INFORMATION``."""
    return max(levels, key=tuple(NoteLevel).index, default=NoteLevel.INFORMATION)


def describe_verdict(result: RunResult, checked: Checked | None = None, not_passed: Sequence[str] = ()) -> Verdict:
    """Return the verdict on the measurement of a run in words, with the number of claims that pass.

    Args:
        not_passed: sentences about the claims that do not pass.
    """
    judged = judge_run(result)
    verdict = word_verdict(judged, (describe_reason(reason, result) for reason in judged.reasons))
    if checked is None:
        return verdict
    kinds = {checked.judge(finding) for finding in checked.claim_results}
    return replace(
        verdict,
        level=find_gravest((verdict.level, *(CLAIM_LEVELS.get(kind, NoteLevel.INFORMATION) for kind in kinds))),
        title=f"{verdict.title}; {count_passed(checked)}",
        reasons=(*not_passed, *verdict.reasons),
    )


def count_passed(checked: Checked) -> str:
    """Return the number of claims that pass: ``3 of 4 claims pass``."""
    claims = format_count(len(checked.claim_results), "claim")
    verb = "passes" if len(checked.claim_results) == 1 else "pass"
    return f"{len(checked.claim_results) - len(checked.not_passed)} of {claims} {verb}"


def describe_reason(reason: VerdictReason, result: RunResult) -> str:
    """Return a reason in words, with its tests or sections: ``Latency did not reach steady state``."""
    return _WORDS[reason.code](reason, result)


def _ended(result: RunResult) -> str:
    return (result.ended_because or "the reason is not known").rstrip(".")


def _names(reason: VerdictReason) -> str:
    """Return the names of the sections in a reason. If a name contains a comma, it is quoted, because commas also
    separate the names.
    """
    return _name_some([f"'{name}'" if "," in name else name for name in reason.sections])


def _name_some(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    if more < 2:
        return ", ".join(names)
    return f"{', '.join(names[:_MOST_NAMED])} and {more} more"


def _word_caution(caution: LoadCaution, reason: VerdictReason) -> str:
    """Return a caution in words: ``buffered I/O in Latency: the host's memory answered some of it``."""
    what, colon, why = CAUTION_WORDS[caution].partition(":")
    return f"{what}{_in(reason)}{colon}{why}"


def _in(reason: VerdictReason) -> str:
    return f" in {_names(reason)}" if reason.sections else ""


_WORDS: dict[ReasonCode, Callable[[VerdictReason, RunResult], str]] = {
    ReasonCode.FAILED: lambda _, result: f"the run failed: {_ended(result)}",
    ReasonCode.NOTHING_MEASURED: lambda *_: "the run has no result",
    ReasonCode.RUNNING: lambda *_: "figures so far",
    ReasonCode.INTERRUPTED: lambda _, result: _ended(result),
    ReasonCode.IMPORTED: lambda *_: "another tool measured; tkperf did not see how",
    ReasonCode.SHORT_PROFILE: lambda *_: "the profile quick is too short to judge a drive",
    ReasonCode.NOT_STEADY: lambda reason, _: f"{_names(reason)} did not reach steady state",
    ReasonCode.STEADY_STATE_NOT_JUDGED: lambda reason, _: (
        f"{_names(reason)} {'have' if len(reason.sections) > 1 else 'has'} too few rounds to judge steady state"
    ),
    ReasonCode.DISTURBED: lambda reason, _: f"{format_count(reason.count or 0, 'step')} disturbed{_in(reason)}",
    ReasonCode.HOST_LIMITED: lambda reason, _: (
        f"{format_count(reason.count or 0, 'figure')} limited by the host's CPUs{_in(reason)}"
    ),
    ReasonCode.THROTTLED: lambda reason, _: f"{WORDS[DisturbanceCode.THROTTLED]}{_in(reason)}",
    ReasonCode.MEDIA_ERRORS: lambda reason, _: f"the drive logged {format_count(reason.count or 0, 'media error')}",
    ReasonCode.NO_DEVICE: lambda reason, _: _word_caution(LoadCaution.NO_DEVICE, reason),
    ReasonCode.BUFFERED: lambda reason, _: _word_caution(LoadCaution.BUFFERED, reason),
    ReasonCode.RATE_LIMITED: lambda reason, _: _word_caution(LoadCaution.RATE_LIMITED, reason),
    ReasonCode.SHARED_LOAD: lambda reason, _: _word_caution(LoadCaution.SHARED_LOAD, reason),
    ReasonCode.ENDED_EARLY: lambda reason, _: f"a load ended before its runtime{_in(reason)}",
    ReasonCode.NOT_PURGED: lambda reason, _: f"no purge{_in(reason)}",
    ReasonCode.ALTERED: lambda _, result: (
        f"altered from {result.info.profile.get('title') or 'the specification'}: "
        f"{_name_some([text for text in result.info.alterations if text != NO_PURGE])}"
    ),
    ReasonCode.SPANS_INTERRUPTION: lambda reason, _: f"results span an interruption{_in(reason)}",
    ReasonCode.DAMAGED: lambda reason, _: f"{format_count(reason.count or 0, 'part')} of the run file cannot be read",
    ReasonCode.FILE_TARGET: lambda *_: "a file was measured, not a device",
}
