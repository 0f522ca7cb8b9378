"""Arrangements of runs: each against the first, drives of one model, or one drive over time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from tkperf.analysis.results import RunResult
from tkperf.model.errors import UsageError

# Always UTC. An imported run may give the day alone.
_DATE = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d)?(?!\d)", re.ASCII)
FEWEST_TOGETHER = 3
"""Fewest runs of a cohort or a history: two are a pair."""


class Arrangement(StrEnum):
    RUNS = "runs"
    """Each run against the first."""
    COHORT = "cohort"
    """Drives of one model: the distribution of each figure over them."""
    HISTORY = "history"
    """One drive: the course of each figure over time."""


def find_day(result: RunResult) -> float | None:
    """Return the start of a run in days since 1970; None if it is not known."""
    text = result.info.started_utc
    if not text:
        return None
    # numpy accepts "now" and "NaT" as dates, too.
    written = _DATE.match(text)
    if written is None:
        return None
    try:
        moment = np.datetime64(written[0])
    except ValueError:
        return None
    return float(moment.astype("datetime64[s]").astype(np.int64)) / 86_400


def arrange_runs(
    results: Sequence[RunResult], wanted: Arrangement | None = None
) -> tuple[Arrangement, tuple[RunResult, ...]]:
    """Return the arrangement, and the runs in its order.

    Without ``wanted`` the drives' models and serial numbers decide.

    Raises:
        UsageError: ``wanted`` is impossible with these runs.
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
    """Choose by the drives; a model or serial number that is not known equals no other."""
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
