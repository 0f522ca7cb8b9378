"""A comparison as data: the one source of every output."""

from __future__ import annotations

from dataclasses import dataclass

from tkperf.analysis.comparing.arrangement import Arrangement
from tkperf.analysis.comparing.cohort import Cohort
from tkperf.analysis.comparing.entries import ComparedRow
from tkperf.analysis.comparing.headlines import Headline
from tkperf.analysis.comparing.history import History
from tkperf.analysis.comparing.telemetry import TelemetryDifference
from tkperf.analysis.conditions import ConditionGroup
from tkperf.analysis.results import RunResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Everything that any output of a comparison says.

    Attributes:
        names: distinct names of the runs, in the order of ``results``.
        findings: sentences, the answer first.
        headlines: a few rows of each test.
        conditions: differing and missing conditions, and the conditions that the runs state themselves.
        cohort, history: set in these arrangements only.
    """

    names: tuple[str, ...]
    results: tuple[RunResult, ...]
    arrangement: Arrangement
    rows: tuple[ComparedRow, ...]
    headlines: tuple[Headline, ...]
    conditions: tuple[ConditionGroup, ...]
    telemetry: tuple[TelemetryDifference, ...]
    cohort: Cohort | None = None
    history: History | None = None
    findings: tuple[str, ...] = ()

    @property
    def notices(self) -> tuple[str, ...]:
        """Notices of all runs, each once, such as SIMULATED."""
        notices = (notice for result in self.results for notice in result.info.notices)
        return tuple(dict.fromkeys(notices))
