"""What a run file gains between two looks at it, and its outline at one look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tkperf.model.measurement import Sample
from tkperf.model.record import LogEntry, RunRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """The whole run, with the new rows of its log.

    Attributes:
        record: the whole run, but only its new steps, purges and verdicts.
        log: the new rows in their order.
        sequence, part, begun_s: the place that this look reached: in the log, and in the current step.
        seconds: the seconds of the new steps, by sequence; a first look has only the last step's.
        seconds_under_way: the new seconds of the current step.
    """

    record: RunRecord
    log: tuple[LogEntry, ...]
    sequence: int
    part: int
    begun_s: float | None
    seconds: Mapping[int, tuple[Sample, ...]]
    seconds_under_way: tuple[Sample, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """The state of a run, found without reading its steps, of which there may be thousands.

    Attributes:
        record: the whole run without its log: no steps, purges, verdicts.
        disturbed_steps: the number of disturbed steps that count; None: the run was not watched.
    """

    record: RunRecord
    disturbed_steps: int | None
