"""Load generators behind one narrow interface: fio for real devices, and a simulation for rehearsals and tests.

An engine executes a phase and returns the measurement. It never decides which phase is next. ``registry.py`` lists the
engines for real devices. Other rooms receive such an engine from the registry, and import no module of the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from tkperf.model.measurement import Measurement, Sample
from tkperf.model.phases import Continuous, Fill
from tkperf.model.plausibility import Evidence
from tkperf.model.workload import Step

# A function that receives a sample, and the time at which the engine read the sample, on the engine's clock; None: the
# current time.
OnSample = Callable[[Sample, float | None], None]
# A load that can be prepared in advance: a step, or the stream that begins with a slice.
EngineLoad = Step | Continuous
# Duration of a test read, in seconds, to find the read speed of a device.
PROBE_S = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """The record of an executed phase. Times are seconds on the engine's monotonic clock.

    Attributes:
        job_file: the fio job in a form that anyone can run again.
        output: fio's last JSON document.
        evidence: facts to judge whether the measurement can be true.
        handed_over_s: time at which the next load was released; None: it was not released yet.
        earliest_s: the earliest possible time of an I/O of this phase; None: ``started_s``.
        whole: the measurement with the lead-in of a combination, from ``started_s`` to ``ended_s``, to compare with
            the device's own counters; None: there was no lead-in.
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
        """Return the time from the first I/O to the first I/O that counts."""
        return 0.0 if self.whole is None else self.whole.duration_s - self.measurement.duration_s

    @property
    def with_lead_in(self) -> Measurement:
        return self.measurement if self.whole is None else self.whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """The loads that may follow the current one.

    Attributes:
        loads: the engine prepares these loads in the meantime, and releases one of them at the end.
        choose: returns the load that follows, given the measurement so far; None if this cannot be decided yet, or if
            none of the loads follows. Engines call this function shortly before the planned end, and again with the
            totals.
        certain: whether the load is the same for all measurements. There is then only one load.
        afterwards: the loads that may follow each of the loads in turn, as far as they can be foreseen.
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

    After StepFailedError, a second attempt may succeed: call ``rest``, then measure the same step again.
    tests/engine/test_conformance.py contains the requirements for every engine.

    Attributes:
        io_clock: the clock that gives the times of I/Os, in words; None: not known.
    """

    name: str
    version: str | None
    io_clock: str | None

    def fill(self, phase: Fill, *, then: Next | None, on_sample: OnSample) -> Execution:
        """Write the active range exactly ``passes`` times."""
        ...

    def measure(self, step: Step, *, then: Next | None, on_sample: OnSample) -> Execution:
        """Run one step."""
        ...

    def measure_slice(self, phase: Continuous, *, then: Next | None, on_sample: OnSample) -> Execution:
        """Measure the next slice of a stream. Start the stream if it does not run yet.

        Args:
            then: the loads that may follow the stream after this slice, if any.
        """
        ...

    def idle(self, duration_s: float, *, then: Next | None) -> None:
        """Do no I/O until ``duration_s`` after the end of the last I/O, then release a load that is certain."""
        ...

    def start_next(self, load: EngineLoad) -> None:
        """Start a load that was prepared, unless it has started. The load is now certain."""
        ...

    def rest(self) -> None:
        """Stop all I/O and all prepared loads, because a purge or the end of a test follows."""
        ...

    def close(self) -> None:
        """Stop everything that still runs. The method may be called at any time, and more than once."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenEngine:
    """The interface to the kernel that a device engine uses on a device, such as ``io_uring``.

    ``instead_of`` names the interface that was tried first, with the reason why it does not work here.
    """

    name: str
    instead_of: str | None = None


class RunSeeds(Protocol):
    """The seeds of an engine's random numbers in a run. ``run_seed`` determines all of them."""

    run_seed: int

    def go_on(self, run_seed: int, *, resumptions: int) -> None:
        """Use the seed of a run that is resumed, but with other random numbers than before."""
        ...
