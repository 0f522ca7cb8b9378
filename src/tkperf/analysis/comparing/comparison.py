"""A comparison as data."""

from __future__ import annotations

from dataclasses import dataclass

from tkperf.analysis.comparing.arrangement import Arrangement
from tkperf.analysis.comparing.cohort import Cohort
from tkperf.analysis.comparing.entries import ComparedRow
from tkperf.analysis.comparing.headlines import ComparedHeadline
from tkperf.analysis.comparing.history import History
from tkperf.analysis.results import RunResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A comparison of runs.

    Attributes:
        names: distinct names of the runs, in the order of ``results``.
        headlines: a few rows of each test.
        cohort, history: set in these arrangements only.
    """

    names: tuple[str, ...]
    results: tuple[RunResult, ...]
    arrangement: Arrangement
    rows: tuple[ComparedRow, ...]
    headlines: tuple[ComparedHeadline, ...]
    cohort: Cohort | None = None
    history: History | None = None
