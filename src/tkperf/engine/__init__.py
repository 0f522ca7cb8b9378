"""Load generators behind one narrow seam: fio for real devices, a simulation for tests.

An engine executes what a phase asks for and returns what was measured. It never decides what
comes next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from tkperf.model.measurement import Measurement, Sample
from tkperf.model.phases import Continuous, Fill
from tkperf.model.plausibility import Witness
from tkperf.model.workload import Step

OnSample = Callable[[Sample], None]
# What can be made ready beforehand: a step, or the stream that begins with a slice.
Load = Step | Continuous


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """What an engine did. Times are seconds on the engine's monotonic clock.

    ``job_file`` is the fio job as anyone can run it again; ``output`` fio's last JSON document;
    ``witness`` what helps to judge whether the measurement can be true. ``handed_over_s`` is when what
    follows was let go, None if it was not yet. ``earliest_s``: none of its I/O can have been done before; None:
    that is ``started_s``.
    """

    measurement: Measurement
    started_s: float
    ended_s: float
    job_file: str
    output: bytes = field(default=b"", repr=False)
    witness: Witness = field(default_factory=Witness, repr=False)
    handed_over_s: float | None = None
    earliest_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """What may follow what is under way: ``loads`` are made ready meanwhile, to be let go at its end.

    ``choose`` tells which of them it is, given what was measured so far, None while nobody can know or
    where none of them follows. Engines ask it shortly before the planned end, and again when the
    totals are known. ``certain``: there is only one, whatever is measured. ``afterwards``: what may
    follow each of the loads in turn, as far as that is known.
    """

    loads: tuple[Load, ...]
    choose: Callable[[Measurement], Load | None]
    certain: bool
    afterwards: Mapping[Load, tuple[Load, ...]] = field(default_factory=dict)

    @classmethod
    def for_certain(cls, load: Load, afterwards: tuple[Load, ...] = ()) -> Next:
        return cls(
            loads=(load,), choose=lambda _: load, certain=True, afterwards={load: afterwards}
        )


class Engine(Protocol):
    """Every method raises EngineError or DeviceError when the load could not be measured.

    With StepFailedError trying again may help: after ``rest`` the same step can be measured anew.
    tests/engine/test_conformance.py has what every engine must do. ``io_clock``: by which clock I/Os are stamped,
    in words; None is not known.
    """

    name: str
    version: str | None
    io_clock: str | None

    def fill(self, phase: Fill, *, then: Next | None, on_sample: OnSample) -> Execution:
        """Write the active range ``passes`` times, exactly."""
        ...

    def measure(self, step: Step, *, then: Next | None, on_sample: OnSample) -> Execution:
        """Run one step."""
        ...

    def measure_slice(
        self, phase: Continuous, *, then: Next | None, on_sample: OnSample
    ) -> Execution:
        """The next slice of a stream, started if it is not the one running.

        Args:
            then: what may follow the stream after this slice, if anything may.
        """
        ...

    def idle(self, duration_s: float, *, then: Next | None) -> None:
        """No I/O until ``duration_s`` after the end of the last I/O, then let go what is certain."""
        ...

    def start_next(self, load: Load) -> None:
        """Let something that was made ready start now, if it has not: it is decided to be next."""
        ...

    def rest(self) -> None:
        """Stop all I/O, also what was made ready: a purge or the end of a test follows."""
        ...

    def close(self) -> None:
        """Stop everything that still runs. Safe to call at any time, more than once."""
        ...
