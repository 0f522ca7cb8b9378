"""The step under way, kept as it goes: a fill takes hours, and a kill must not cost them.

Its samples are gathered from the events and handed out about a minute at a time, never shortly
before a hand-over, which writing to a slow disk could delay.
"""

from __future__ import annotations

from tkperf.events import Event, SampleSeen, StepEnded, StepStarted, TestEnded
from tkperf.measurement import Sample
from tkperf.record import RunStatus, StepKind

PART_S = 60.0
# fio of the next step is started some seconds before the end; by then all must be quiet.
BEFORE_HANDOVER_S = 8.0


class StepUnderWay:
    """What is known of the step that has begun and not ended."""

    def __init__(self) -> None:
        self.begun: StepStarted | None = None
        self._samples: list[Sample] = []
        self._taken_at_s = 0.0

    def see(self, event: Event) -> None:
        match event:
            case StepStarted():
                self.begun, self._samples, self._taken_at_s = event, [], event.at_s
            case SampleSeen() if self.begun is not None:
                self._samples.append(event.sample)
            case StepEnded():
                self.begun, self._samples = None, []

    def is_quiet_after(self, event: Event) -> bool:
        """Whether the device would not wait if writing took some seconds now."""
        if not isinstance(event, SampleSeen):
            return True
        begun = self.begun
        if begun is None or begun.planned_s is None or begun.kind is StepKind.CONTINUOUS:
            return True
        return event.at_s - begun.at_s < begun.planned_s - BEFORE_HANDOVER_S

    def take_part(self, event: Event) -> tuple[Sample, ...]:
        """The seconds since the part before, when it is time to keep them; else none."""
        cut_off = isinstance(event, TestEnded) and event.status is not RunStatus.COMPLETE
        due = (
            isinstance(event, SampleSeen)
            and event.at_s - self._taken_at_s >= PART_S
            and self.is_quiet_after(event)
        )
        if self.begun is None or not (cut_off or due):
            return ()
        part, self._samples = tuple(self._samples), []
        if isinstance(event, SampleSeen):
            self._taken_at_s = event.at_s
        return part
