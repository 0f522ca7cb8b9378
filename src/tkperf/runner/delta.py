"""What a run file has gained between two looks at it; what it is about, looked at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tkperf.model.measurement import Sample
from tkperf.model.record import LogEntry, RunRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """The whole run, and of its log the new rows.

    Attributes:
        record: the whole run, but of its steps, purges and verdicts the new ones alone.
        log: the new ones in their order.
        sequence, part, begun_s: how far this look came: in the log, and in the step under way.
        seconds: those of the new steps, by their sequence; of a first look those of the last alone.
        seconds_under_way: the new ones of the step under way.
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
    """How a run stands, found without reading its steps, of which there may be thousands.

    Attributes:
        record: the whole run, but none of its log: no steps, purges, verdicts.
        disturbed_steps: how many steps that count something disturbed; None: nobody looked.
    """

    record: RunRecord
    disturbed_steps: int | None
