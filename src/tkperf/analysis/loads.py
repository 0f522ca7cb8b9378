"""Place every load of a test by its recorded start time, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tkperf.model.disturbance.codes import DisturbanceCode, find_codes
from tkperf.model.disturbance.pauses import COLD_START_LIMIT_S
from tkperf.model.quantity import Quantity, Window
from tkperf.model.record import RunRecord, StepKind, StepRecord
from tkperf.model.seconds import Seconds

# Longest gap between two loads that are back to back; in a longer one the device was left alone.
BACK_TO_BACK_S = COLD_START_LIMIT_S


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedLoad:
    """One step of a test. ``start_s`` counts from the test's first I/O, ``seconds`` from the step's own."""

    step: StepRecord
    start_s: float
    seconds: Seconds

    @property
    def end_s(self) -> float:
        return self.start_s + self.step.measurement.duration_s

    @property
    def host_limited(self) -> bool | None:
        return self.step.measurement.host_limited

    @property
    def disturbances(self) -> tuple[DisturbanceCode, ...] | None:
        """Return the kinds of disturbance; None: the step was not watched."""
        found = self.step.disturbances
        return None if found is None else find_codes(disturbance.code for disturbance in found)

    @property
    def is_fill(self) -> bool:
        return self.step.kind is StepKind.FILL

    def value(self, quantity: Quantity) -> float | None:
        """Return a quantity of the whole step; None: not measured."""
        return quantity.combine(
            Window(rounds=(self.step.measurement,), workload=self.step.workload)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadsOfTest:
    """Loads of a test, in the order in which they began."""

    loads: tuple[TimedLoad, ...]

    def of_sections(self, names: Sequence[str]) -> LoadsOfTest:
        """Return only the loads of these sections, without fills."""
        return LoadsOfTest(
            loads=tuple(
                load for load in self.loads if load.step.section in names and not load.is_fill
            )
        )

    def fills(self) -> LoadsOfTest:
        return LoadsOfTest(loads=tuple(load for load in self.loads if load.is_fill))

    def stretches(self) -> Iterator[tuple[TimedLoad, ...]]:
        """Yield the loads that follow each other in one section; a fill is separate from the loads that it prepares."""
        return _split(self.loads, lambda before, after: _name(before) != _name(after))

    def without_gaps(self, longest_s: float) -> Iterator[tuple[TimedLoad, ...]]:
        """Yield the loads that follow each other, cut where nothing was measured for longer than ``longest_s``."""
        return _split(self.loads, lambda before, after: after.start_s - before.end_s > longest_s)

    def changes(self) -> Iterator[tuple[tuple[TimedLoad, ...], tuple[TimedLoad, ...]]]:
        """Yield the loads before and after each change of load between two sections, back to back."""
        for before, after in pairwise(self.stretches()):
            loads = before[-1].step.workload, after[0].step.workload
            gap_s = after[0].start_s - before[-1].end_s
            if loads[0] != loads[1] and not before[-1].is_fill and gap_s <= BACK_TO_BACK_S:
                yield before, after


def _split(
    loads: Iterable[TimedLoad], parts: Callable[[TimedLoad, TimedLoad], bool]
) -> Iterator[tuple[TimedLoad, ...]]:
    """Yield the loads in order, cut wherever ``parts`` separates two neighbours."""
    stretch: list[TimedLoad] = []
    for load in loads:
        if stretch and parts(stretch[-1], load):
            yield tuple(stretch)
            stretch = []
        stretch.append(load)
    if stretch:
        yield tuple(stretch)


def _name(load: TimedLoad) -> tuple[str, bool]:
    return load.step.section, load.is_fill


def loads_by_test(
    record: RunRecord, seconds: Mapping[str, Sequence[Seconds]]
) -> dict[str, LoadsOfTest]:
    """Return the loads of each test by its name; a test without recorded start times is left out.

    Args:
        seconds: the samples of each step of each test, in their order.
    """
    loads_of_tests = {}
    for test in record.tests:
        samples = seconds.get(test.name) or [Seconds()] * len(test.steps)
        starts_s = [step.started_s for step in test.steps]
        # Imported steps all begin at 0.
        if starts_s and (len(starts_s) == 1 or starts_s[0] < starts_s[-1]):
            loads_of_tests[test.name] = LoadsOfTest(
                loads=tuple(
                    TimedLoad(step=step, start_s=step.started_s - starts_s[0], seconds=of_step)
                    for step, of_step in zip(test.steps, samples, strict=True)
                )
            )
    return loads_of_tests
