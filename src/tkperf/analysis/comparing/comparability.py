"""Judge a comparison: whether the runs' figures can be set against each other, with which cautions, or not.

The verdict is about how the runs were measured, not about which drive is better. docs/method.md has the table of
severities.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tkperf.analysis.comparing.comparison import Comparison
from tkperf.analysis.verdict import Judgement, VerdictCode, VerdictReason, VerdictState, judge_by_gravest, judge_run


class ComparisonCode(VerdictCode):
    """Reasons for the verdict on a comparison."""

    MODEL_AND_DEVICE = "model-and-device", VerdictState.NOT_COMPARABLE
    RUN_NOT_VALID = "run-not-valid", VerdictState.NOT_COMPARABLE
    CONDITIONS_DIFFER = "conditions-differ", VerdictState.COMPARABLE_WITH_CAUTIONS
    CONDITIONS_NOT_KNOWN = "conditions-not-known", VerdictState.COMPARABLE_WITH_CAUTIONS
    RUN_NOT_JUDGED = "run-not-judged", VerdictState.COMPARABLE_WITH_CAUTIONS
    RUN_WITH_CAUTIONS = "run-with-cautions", VerdictState.COMPARABLE_WITH_CAUTIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonReason:
    """A reason for a verdict on a comparison.

    Attributes:
        names: the conditions, or the runs, that it is about.
        of_run: the gravest reason of the run's own verdict; None: the reason is not about a single run.
    """

    code: ComparisonCode
    names: tuple[str, ...]
    of_run: VerdictReason | None = None


def judge_comparison(
    comparison: Comparison, differing: Sequence[str], not_known: Sequence[str]
) -> Judgement[ComparisonReason]:
    """Return the verdict on a comparison.

    Args:
        differing: names of the conditions that differ.
        not_known: names of those that may differ, because they are not known of every run.
    """
    reasons = _reasons(comparison, tuple(differing), tuple(not_known))
    simulated = any(result.info.is_simulated for result in comparison.results)
    return judge_by_gravest(reasons, VerdictState.COMPARABLE, simulated=simulated)


def _reasons(
    comparison: Comparison, differing: tuple[str, ...], not_known: tuple[str, ...]
) -> Iterator[ComparisonReason]:
    runs = list(zip(comparison.names, comparison.results, strict=True))
    simulated = tuple(name for name, result in runs if result.info.is_simulated)
    if 0 < len(simulated) < len(runs):
        yield ComparisonReason(code=ComparisonCode.MODEL_AND_DEVICE, names=simulated)
    if differing:
        yield ComparisonReason(code=ComparisonCode.CONDITIONS_DIFFER, names=differing)
    if not_known:
        yield ComparisonReason(code=ComparisonCode.CONDITIONS_NOT_KNOWN, names=not_known)
    for name, result in runs:
        verdict = judge_run(result)
        if verdict.reasons:
            code = _CODES.get(verdict.state, ComparisonCode.RUN_NOT_JUDGED)
            yield ComparisonReason(code=code, names=(name,), of_run=verdict.reasons[0])


_CODES = {VerdictState.NOT_VALID: ComparisonCode.RUN_NOT_VALID, VerdictState.CAUTIONS: ComparisonCode.RUN_WITH_CAUTIONS}
