"""Explain why a run has no value for a claim, and name its contents, so that the claim can be corrected."""

from __future__ import annotations

from collections.abc import Iterable

from tkperf.analysis.characteristics import CHARACTERISTICS
from tkperf.analysis.claims_file import Claim
from tkperf.analysis.results import RunResult
from tkperf.model.record import RunStatus
from tkperf.model.workload import Workload

_MOST_NAMED = 8
_ENDED = {
    RunStatus.RUNNING: "goes on, it is",
    RunStatus.INTERRUPTED: "was interrupted",
    RunStatus.FAILED: "failed",
    RunStatus.COMPLETE: "ended",
}


def explain_not_measured(claim: Claim, result: RunResult) -> str | None:
    """Name the first of test, section, mix and size that the run lacks; None: the run has all of them."""
    tests = [test for test in result.tests if test.name == claim.test]
    if claim.test in result.not_begun:
        return f"the run {_ENDED[result.status]} before test {claim.test}"
    if not tests:
        return f"the run has no test {claim.test}, but {_list(t.name for t in result.tests)}"
    sections = [section for test in tests for section in test.sections]
    meant = [section for section in sections if claim.section in (None, section.name)]
    if not meant and any(claim.section in test.not_measured for test in tests):
        return f"the run {_ENDED[result.status]} before {claim.section}"
    if not meant:
        names = _list(section.name for section in sections)
        return f"no section of {claim.test} has that name; there are {names}"
    works, prepared = (
        [
            cell.workload
            for section in meant
            if section.plan.prepares is prepares
            for cell in section.cells
        ]
        for prepares in (False, True)
    )
    if not _has_alike(claim, works):
        if _has_alike(claim, prepared) or (prepared and not works):
            return "preconditioning, not judged"
        measured = _list(work.mix_and_size for work in works)
        return f"that mix and block size was not run there, but {measured}"
    if claim.metric in CHARACTERISTICS:
        return "nothing there was looked at for it"
    return None


def _has_alike(claim: Claim, works: Iterable[Workload]) -> bool:
    size_bytes = claim.size_bytes()
    return any(
        claim.read_percent in (None, work.read_percent)
        and size_bytes in (None, work.block_size_bytes)
        for work in works
    )


def _list(names: Iterable[str]) -> str:
    several = list(dict.fromkeys(names))
    more = len(several) - _MOST_NAMED
    return (", ".join(several[:_MOST_NAMED]) or "none") + (f" and {more} more" if more > 0 else "")
