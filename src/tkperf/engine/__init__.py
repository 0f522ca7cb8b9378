"""Load generators behind one narrow seam: fio for real devices, a simulation for tests.

An engine executes what a phase asks for and returns what was measured. It never decides what
comes next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from tkperf.measurement import Measurement, Sample
from tkperf.phases import Continuous, Fill
from tkperf.plausibility import Witness
from tkperf.workload import Step

OnSample = Callable[[Sample], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """What an engine did. Times are seconds on the engine's monotonic clock.

    ``job_file`` is the fio job as anyone can run it again; ``output`` fio's last JSON document;
    ``witness`` what helps to judge whether the measurement can be true.
    """

    measurement: Measurement
    started_s: float
    ended_s: float
    job_file: str
    output: bytes = field(default=b"", repr=False)
    witness: Witness = field(default_factory=Witness, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """What follows the step under way. ``certain``: it may start without waiting for results."""

    step: Step
    certain: bool


class Engine(Protocol):
    """Every method raises EngineError or DeviceError when the load could not be measured.

    With StepFailedError trying again may help: after ``rest`` the same step can be measured anew.
    """

    name: str
    version: str | None

    def fill(self, phase: Fill, *, then: Next | None, on_sample: OnSample) -> Execution:
        """Write the active range ``passes`` times, exactly."""
        ...

    def measure(self, step: Step, *, then: Next | None, on_sample: OnSample) -> Execution:
        """Run one step; make ``then`` ready meanwhile, so that no idle time lies between."""
        ...

    def start_next(self) -> None:
        """Let the uncertain step that was made ready start now: it is decided to be next."""
        ...

    def measure_slice(self, phase: Continuous, *, on_sample: OnSample) -> Execution:
        """The next slice of a stream, started if it is not the one running."""
        ...

    def rest(self) -> None:
        """Stop all I/O, also what was made ready: a purge or the end of a test follows."""
        ...

    def close(self) -> None:
        """Stop everything that still runs. Safe to call at any time, more than once."""
        ...
