"""The step under way, kept while it runs: a fill takes hours, and a kill must not cost them.

Its samples are gathered from the events and handed out about a minute at a time, never shortly
before a hand-over, which writing to a slow disk could delay.
"""

from __future__ import annotations

import math

from tkperf.model.measurement import Sample
from tkperf.model.record import RunStatus
from tkperf.runner.events import Event, SampleSeen, StepEnded, StepStarted, TestEnded

PART_S = 60.0
# fio of the next step starts some seconds before the end; by then nothing may be written.
BEFORE_HANDOVER_S = 8.0


class StepUnderWay:
    """The step that has begun and not ended, with its samples."""

    def __init__(self) -> None:
        self.begun: StepStarted | None = None
        self._samples: list[Sample] = []
        self._taken_at_s = 0.0
        self._moved_bytes = 0

    def see(self, event: Event) -> None:
        match event:
            case StepStarted():
                self.begun, self._samples, self._taken_at_s = event, [], event.at_s
                self._moved_bytes = 0
            case SampleSeen() if self.begun is not None:
                self._samples.append(event.sample)
                self._moved_bytes += event.sample.read.bytes + event.sample.write.bytes
            case StepEnded():
                self.begun, self._samples = None, []

    def is_quiet_after(self, event: Event) -> bool:
        """Return whether writing for some seconds now would not make the device wait."""
        if not isinstance(event, SampleSeen):
            return True
        return self._left_s(event.at_s) > BEFORE_HANDOVER_S

    def _left_s(self, now_s: float) -> float:
        """Return the time left in s; for a fill, at its rate so far."""
        begun = self.begun
        if begun is None:
            return math.inf
        done_s = now_s - begun.at_s
        if begun.planned_s is not None:
            return begun.planned_s - done_s
        if begun.planned_bytes is None or not self._moved_bytes:
            return math.inf
        return (begun.planned_bytes - self._moved_bytes) * done_s / self._moved_bytes

    def take_part(self, event: Event) -> tuple[Sample, ...]:
        """Return the seconds since the part before, if it is time to keep them; else none."""
        cut_off = isinstance(event, TestEnded) and event.status is not RunStatus.COMPLETE
        due = (
            isinstance(event, SampleSeen)
            and event.at_s - self._taken_at_s >= PART_S
            and self.is_quiet_after(event)
        )
        if self.begun is None or not (cut_off or due):
            return ()
        samples, self._samples = tuple(self._samples), []
        if isinstance(event, SampleSeen):
            self._taken_at_s = event.at_s
        return samples
