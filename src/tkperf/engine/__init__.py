"""Load generators with a common interface: fio for real devices, and a simulated drive for rehearsals and tests.

An engine executes a phase and returns the measurement. It never decides which phase is next. ``registry.py`` lists the
engines for real devices. Other packages receive such an engine from the registry, and import no module of the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from tkperf.model.measurement import Measurement, Sample
from tkperf.model.phases import Continuous, Fill
from tkperf.model.plausibility import Evidence
from tkperf.model.workload import Step

# A function that receives a sample and the time, on the engine's clock, at which the engine read the sample. If the
# time is None, the current time is used.
OnSample = Callable[[Sample, float | None], None]
# A load that can be prepared in advance: a step, or the stream that begins with a slice.
EngineLoad = Step | Continuous
# The duration, in seconds, of the test read that determines the read speed of a device.
PROBE_S = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """The record of an executed phase. Times are seconds on the engine's monotonic clock.

    Attributes:
        job_file: the fio job in a form that a user can run again.
        output: fio's last JSON document.
        evidence: facts that show whether the measurement can be true.
        handed_over_s: the time at which the engine released the next load. None means that no load was released yet.
        earliest_s: the earliest possible time of an I/O of this phase. None means ``started_s``.
        whole: the measurement from ``started_s`` to ``ended_s``, including the time before all streams of a combination
            ran. This measurement is compared with the device's own counters. None means that all streams ran from the
            beginning.
    """

    measurement: Measurement
    started_s: float
    ended_s: float
    job_file: str
    output: bytes = field(default=b"", repr=False)
    evidence: Evidence = field(default_factory=Evidence, repr=False)
    handed_over_s: float | None = None
    earliest_s: float | None = None
    whole: Measurement | None = field(default=None, repr=False)

    @property
    def lead_in_s(self) -> float:
        """Return the time in seconds from the first I/O to the first I/O that belongs to the measurement."""
        return 0.0 if self.whole is None else self.whole.duration_s - self.measurement.duration_s

    @property
    def with_lead_in(self) -> Measurement:
        return self.measurement if self.whole is None else self.whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """The loads that may follow the current load.

    Attributes:
        loads: the loads that the engine prepares during the current load. At the end, the engine releases one of them.
        choose: a function that receives the measurement so far and returns the load that follows. The function returns
            None if the choice is not possible yet, or if none of the loads follows. The engine calls the function
            shortly before the planned end of the current load, and again with the totals.
        certain: whether the same load follows regardless of the measurement. ``loads`` then contains only one load.
        afterwards: for each load in ``loads``, the loads that may follow this load, as far as tkperf can foresee them.
    """

    loads: tuple[EngineLoad, ...]
    choose: Callable[[Measurement], EngineLoad | None]
    certain: bool
    afterwards: Mapping[EngineLoad, tuple[EngineLoad, ...]] = field(default_factory=dict)

    @classmethod
    def for_certain(cls, load: EngineLoad, afterwards: tuple[EngineLoad, ...] = ()) -> Next:
        return cls(loads=(load,), choose=lambda _: load, certain=True, afterwards={load: afterwards})


class Engine(Protocol):
    """A load generator. Every method raises EngineError or DeviceError if the load could not be measured.

    After StepFailedError, a second attempt may succeed. For this attempt, call ``rest``, and then measure the same step
    again. tests/engine/test_conformance.py contains the requirements for every engine.

    Attributes:
        io_clock: the description of the clock from which the times of I/Os are read. None means that the clock is not
            known.
    """

    name: str
    version: str | None
    io_clock: str | None

    def fill(self, phase: Fill, *, then: Next | None, on_sample: OnSample) -> Execution:
        """Write the active range exactly as many times as the ``passes`` of the phase."""
        ...

    def measure(self, step: Step, *, then: Next | None, on_sample: OnSample) -> Execution:
        """Run one step and return its record."""
        ...

    def measure_slice(self, phase: Continuous, *, then: Next | None, on_sample: OnSample) -> Execution:
        """Measure the next slice of a stream. If the stream is not running yet, start it first.

        Args:
            then: the loads that may follow the stream after this slice. None means that no load follows.
        """
        ...

    def idle(self, duration_s: float, *, then: Next | None) -> None:
        """Issue no I/O until ``duration_s`` after the end of the last I/O. Then release the next load, if it is certain
        which load follows.
        """
        ...

    def start_next(self, load: EngineLoad) -> None:
        """Start a prepared load, unless it has already started. After this call, it is certain that this load
        follows.
        """
        ...

    def rest(self) -> None:
        """Stop all I/O and all prepared loads before a purge, or at the end of a test."""
        ...

    def close(self) -> None:
        """Stop all loads that still run. The method may be called at any time, and more than once."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenEngine:
    """The interface to the kernel that a device engine uses on a device, such as ``io_uring``.

    ``instead_of`` contains the name of the interface that was tried first, and the reason why that interface failed.
    """

    name: str
    instead_of: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredIo:
    """The properties of all loads of a run that an interface to the kernel must support.

    Attributes:
        jobs, io_depth: the load with the most outstanding I/Os.
        io_depths: the queue depths of all loads. The engine must use exactly these depths.
        flushes_from_queue: whether a load flushes while its other I/Os are outstanding.
        flushes_between_reads: whether a load flushes after its writes, and also reads.
        random_arrivals_iops: the rates of all random arrivals, for each thread and direction.
    """

    jobs: int = 1
    io_depth: int = 1
    io_depths: frozenset[int] = frozenset()
    flushes_from_queue: bool = False
    flushes_between_reads: bool = False
    random_arrivals_iops: frozenset[float] = frozenset()


class RunSeeds(Protocol):
    """The seeds of an engine's random numbers in a run. All seeds are derived from ``run_seed``."""

    run_seed: int

    def go_on(self, run_seed: int, *, resumptions: int) -> None:
        """Use the ``run_seed`` of a run that is resumed, but draw random numbers that differ from those before the
        interruption.
        """
        ...
