"""How runs are set beside each other: against the first, as drives of one model, or as one drive over time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from tkperf.analysis.results import RunResult
from tkperf.model.errors import UsageError

# Always UTC; of imported runs the day alone may be known.
_DATE = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d)?(?!\d)", re.ASCII)
FEWEST_TOGETHER = 3
"""Runs of a cohort or a history: two are a pair."""


class Arrangement(StrEnum):
    RUNS = "runs"
    """Each against the first."""
    COHORT = "cohort"
    """Drives of one model: how a figure is distributed over them."""
    HISTORY = "history"
    """One drive: how a figure goes with time."""


def find_day(result: RunResult) -> float | None:
    """When a run began, in days since 1970; None: not known."""
    text = result.info.started_utc
    if not text:
        return None
    # numpy takes "now" and "NaT" for dates, too.
    written = _DATE.match(text)
    if written is None:
        return None
    try:
        moment = np.datetime64(written[0])
    except ValueError:
        return None
    return float(moment.astype("datetime64[s]").astype(np.int64)) / 86_400


def arrange(
    results: Sequence[RunResult], wanted: Arrangement | None = None
) -> tuple[Arrangement, tuple[RunResult, ...]]:
    """The arrangement, from the drives' models and serial numbers unless one is wanted, and the runs in its order.

    Raises:
        UsageError: the wanted one is impossible with these runs.
    """
    chosen = wanted or _choose(results)
    if chosen is Arrangement.RUNS:
        return chosen, tuple(results)
    if len(results) < FEWEST_TOGETHER:
        raise UsageError(
            f"a {chosen} takes {FEWEST_TOGETHER} runs or more, these are {len(results)}: "
            "leave --as out to set them beside each other"
        )
    if chosen is Arrangement.COHORT:
        return chosen, tuple(results)
    days = [find_day(result) for result in results]
    unknown = [result.info.name for result, day in zip(results, days, strict=True) if day is None]
    if unknown:
        raise UsageError(
            f"a history is over dates, and nobody knows when {', '.join(unknown)} began: "
            "leave these runs out, or give --as runs"
        )
    ordered = sorted(zip(days, results, strict=True), key=lambda pair: pair[0] or 0.0)
    return chosen, tuple(result for _, result in ordered)


def _choose(results: Sequence[RunResult]) -> Arrangement:
    """By what is known of every drive; a model's and serial number that is not known is like no other."""
    models = {(result.info.device.get("kind"), result.info.device.get("model"),
               result.info.device.get("capacity_bytes")) for result in results}  # fmt: skip
    serials = [result.info.device.get("serial") for result in results]
    one_model = len(models) == 1 and all(result.info.device.get("model") for result in results)
    if len(results) < FEWEST_TOGETHER or not one_model or not all(serials):
        return Arrangement.RUNS
    if len(set(serials)) == len(serials):
        return Arrangement.COHORT
    days = [find_day(result) for result in results]
    dated = None not in days and len(set(days)) == len(days)
    return Arrangement.HISTORY if len(set(serials)) == 1 and dated else Arrangement.RUNS
