"""Describe the check of claims on a run."""

from __future__ import annotations

from collections.abc import Iterator

from tkperf.analysis.claim_findings import Checked
from tkperf.model.units import format_count
from tkperf.page.words.conditions import find_cut_short, find_differences, find_remarks


def find_check_warnings(checked: Checked) -> Iterator[str]:
    """Yield the facts that a reader of the findings must know: parts cut short, and differences to the baseline."""
    yield from find_cut_short("run", checked.result)
    if checked.baseline is None:
        return
    for group in find_differences(("baseline", "run"), (checked.baseline, checked.result)):
        yield from group.texts
    yield from find_remarks("baseline", checked.baseline)
    if checked.not_checked:
        yield f"baseline: {format_count(checked.not_checked, 'result')} without a value, so not checked"
