"""The loop that drives a procedure, and looking ahead: the same procedures fed with imagined answers.

No test writes its course down a second time. To find the length of a run and its next phases, this module
replays the answers so far into a fresh generator. It then answers with the best case (all values constant:
steady at once) or the worst case (values that jump).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from itertools import islice

from tkperf.model.measurement import NO_IO, IoStats, Measurement
from tkperf.model.phases import (
    Answer,
    Continuous,
    Fill,
    Idle,
    Interruption,
    Phase,
    PhaseSequence,
    Procedure,
    Purge,
    Reply,
    Round,
    Statement,
)
from tkperf.model.workload import Step, Workload

# Answers a phase. The other argument has the phases that follow it whatever it measures: the rest of its
# course, at most two of them.
Answering = Callable[[Phase, Sequence[Phase]], Answer]


def drive(procedure: Procedure, answer: Answering) -> Iterator[Phase | Statement]:
    """Yield every phase and statement of a procedure to its end; ``answer`` is called after each phase is yielded."""
    reply: Reply = None
    while True:
        try:
            asked = procedure.send(reply)
        except StopIteration:
            return
        if isinstance(asked, Statement):
            yield asked
            reply = None
        elif isinstance(asked, PhaseSequence):
            answers = []
            for position, phase in enumerate(asked.phases):
                yield phase
                answers.append(answer(phase, asked.phases[position + 1 : position + 3]))
            reply = tuple(answers)
        else:
            yield asked
            reply = answer(asked, ())


# Rate of a fill before it is measured: a guess, about the rate of a SATA SSD.
ASSUMED_FILL_BYTES_PER_S = 500e6
ASSUMED_LATENCY_NS = 1e5


# Bytes a second of a workload, reads and writes together; None if unknown.
Pace = Callable[[Workload], float | None]


class Case(Enum):
    BEST = "best"
    WORST = "worst"
    # No value is ever steady, but amounts are reached at the given pace.
    UNSTEADY = "unsteady"


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Forecast of a procedure; ``duration_s`` excludes purges, whose time is unknown beforehand."""

    duration_s: float
    phases: int


def phases_of(procedure: Procedure, answer: Callable[[Phase], Answer]) -> Iterator[Phase]:
    """Yield all phases of a procedure under the given answers. Skips its verdicts and outcomes."""
    asked = drive(procedure, lambda phase, _: answer(phase))
    return (each for each in asked if not isinstance(each, Statement))


def forecast(procedure: Procedure, answers: Sequence[Answer], case: Case, *, active_range_bytes: int) -> Forecast:
    """Forecast the rest of a procedure after ``answers``, in the given case.

    Args:
        procedure: a fresh generator.
        answers: the answers to its phases so far.
    """
    imagine = _Imagination(case, active_range_bytes)
    phases = phases_of(procedure, _replay(answers, imagine))
    remaining = [imagine.duration_s(phase) for phase in islice(phases, len(answers), None)]
    return Forecast(duration_s=sum(remaining), phases=len(remaining))


def section_names(procedure: Procedure, *, active_range_bytes: int) -> tuple[str, ...]:
    """Return the sections of a procedure in the order of its worst case."""
    phases = longest_phases(procedure, active_range_bytes=active_range_bytes)
    return tuple(dict.fromkeys(phase.section for phase in phases))


def greatest_numbers(
    procedure: Procedure, answers: Sequence[Answer] = (), *, active_range_bytes: int
) -> dict[object, int]:
    """Return the greatest numbers of rounds, areas and slices, in the worst case after ``answers``.

    The keys are those of ``series_of``.
    """
    imagine = _Imagination(Case.WORST, active_range_bytes)
    phases = phases_of(procedure, _replay(answers, imagine))
    numbered = (phase for phase in phases if isinstance(phase, Round | Continuous))
    # The numbers rise within a series, so the last is the greatest.
    return {series_of(phase): phase.number for phase in numbered}


def series_of(phase: Phase) -> object:
    """Return the series that counts a phase: its section's rounds, slices, or warm-ups."""
    return phase.section, type(phase), getattr(phase, "warm_up", False)


def longest_phases(procedure: Procedure, *, active_range_bytes: int) -> Iterator[Phase]:
    """Yield all phases of a procedure in the worst case: never steady, no amount reached."""
    return phases_of(procedure, _Imagination(Case.WORST, active_range_bytes))


def phases_ahead(
    procedure: Procedure, case: Case, *, active_range_bytes: int, pace: Pace | None = None
) -> Iterator[tuple[Phase, float]]:
    """Yield every phase of a fresh procedure in a case, with its duration in seconds.

    Args:
        pace: rates of workloads. They determine the length of fills, and in the best and the unsteady case the
            time at which amounts are reached.
    """
    imagine = _Imagination(case, active_range_bytes, pace)
    return ((phase, imagine.duration_s(phase)) for phase in phases_of(procedure, imagine))


def upcoming_phase(procedure: Procedure, answers: Sequence[Answer]) -> Phase | None:
    """Return the next phase of a fresh procedure after these answers; None if it has ended."""
    given = iter(answers)
    return next(islice(phases_of(procedure, lambda _: next(given)), len(answers), None), None)


def following_phases(
    fresh_procedure: Callable[[], Procedure], answers: Sequence[Answer], *, active_range_bytes: int
) -> tuple[Phase | None, ...]:
    """Return the phases that may follow the phase under way: in the worst case, then in the best if it differs.

    A single phase is certain, so it may begin before the answer is known. None: the test ends.
    """

    def following(case: Case) -> Phase | None:
        imagine = _Imagination(case, active_range_bytes)
        phases = phases_of(fresh_procedure(), _replay(answers, imagine))
        return next(islice(phases, len(answers) + 1, None), None)

    return tuple(dict.fromkeys((following(Case.WORST), following(Case.BEST))))


def possible_ends(so_far: Measurement, planned_s: float) -> tuple[Measurement, ...]:
    """Return the possible ends of a partly measured load: as it went on so far, or very differently.

    In the time left it may do no I/O at all, go on as before, or do I/Os at twice the rate. The number of I/Os
    under way is constant, so the latencies in the time left add up to the same sum at any pace.
    """
    left = planned_s / so_far.duration_s - 1
    if left <= 0:
        return (so_far,)

    def end(stats: IoStats, pace: float) -> IoStats:
        return replace(
            stats,
            ios=stats.ios + round(pace * left * stats.ios),
            bytes=stats.bytes + round(pace * left * stats.bytes),
            latency_ios=stats.latency_ios + round(pace * left * stats.latency_ios),
            latency_sum_ns=stats.latency_sum_ns + round(left * stats.latency_sum_ns),
        )

    return tuple(
        replace(so_far, duration_s=planned_s, read=end(so_far.read, pace), write=end(so_far.write, pace))
        for pace in (0.0, 1.0, 2.0)
    )


def _replay(answers: Sequence[Answer], imagine: _Imagination) -> Callable[[Phase], Answer]:
    """Return a function that gives the known answers in order, then imagined ones."""
    given = iter(answers)

    def answer(phase: Phase) -> Answer:
        try:
            replayed = next(given)
        except StopIteration:
            return imagine(phase)
        imagine.learn(phase, replayed)
        return replayed

    return answer


class _Imagination:
    """Imagined answers to phases in the best or the worst case, based on measurements of the same load."""

    def __init__(self, case: Case, active_range_bytes: int, pace: Pace | None = None) -> None:
        self._case = case
        self._pace: Pace = pace or (lambda _: None)
        self._active_range_bytes = active_range_bytes
        self._calls = 0
        # Keys are the kind of phase and the id of its load; keeping the load keeps its id unique.
        self._learned: dict[tuple[type[Phase], int], tuple[object, Answer]] = {}
        self._like: tuple[type[Phase], object] = (Idle, None)
        self._answers: dict[float, Answer] = {}
        self._timed: tuple[object, float] = (None, 0.0)

    def learn(self, phase: Phase, answer: Answer) -> None:
        """Remember the real answer to a phase."""
        load = _load_of(phase)
        if not isinstance(answer, Interruption):
            self._learned[type(phase), id(load)] = load, answer

    def __call__(self, phase: Phase) -> Answer:
        # The worst case jumps by powers of two in a cycle of seven. Seven is prime, so values sampled every
        # 30th slice jump as well; no window of the PTS is steady with that.
        self._calls += 1
        factor = 1.0 if self._case is Case.BEST else 2.0 ** (self._calls % 7)
        # Rounds of a test, or slices of a stream, differ only in their number, and thousands may follow:
        # each answer is made once.
        load = _load_of(phase)
        if self._like[0] is not type(phase) or self._like[1] is not load:
            self._like, self._answers = (type(phase), load), {}
        if factor not in self._answers:
            self._answers[factor] = self._imagine(phase, factor)
        return self._answers[factor]

    def _imagine(self, phase: Phase, factor: float) -> Answer:
        match phase:
            case Purge() | Idle():
                return None
            case Fill():
                return _imagined(phase.workload, self.duration_s(phase), factor)
            case Continuous() if self._pace(phase.workload) is not None:
                even = _at_pace(phase, self._pace(phase.workload) or 0.0)
                match self._case:
                    case Case.BEST:
                        return even
                    case Case.WORST:
                        return _with_bytes(_scaled(even, factor), 0, 0)
                    case Case.UNSTEADY:
                        return _with_bytes(_scaled(even, factor), even.read.bytes, even.write.bytes)
            case Continuous():
                measured = self._learned.get((Continuous, id(phase.workload)), (None, None))[1]
                if not isinstance(measured, Measurement):
                    measured = _imagined(phase.workload, phase.duration_s, factor)
                elif self._case is Case.BEST:
                    return _undisturbed(measured)
                return _with_bytes(_scaled(measured, factor), 0, 0)
            case Round():
                last = self._learned.get((Round, id(phase.steps)), (None, None))[1]
                learned = last if isinstance(last, Mapping) else {}
                return {step.workload: self._step(step, learned.get(step.workload), factor) for step in phase.steps}

    def _step(self, step: Step, measured: Measurement | None, factor: float) -> Measurement:
        if step.workload.offered_iops is not None:
            return _at_offered_rate(step, kept_up=self._case is Case.WORST)
        if measured is not None:
            return _scaled(measured, factor)
        return _imagined(step.workload, step.duration_s, factor)

    def duration_s(self, phase: Phase) -> float:
        if not isinstance(phase, Round):
            return expected_s(phase, self._active_range_bytes, self._pace)
        if self._timed[0] is not phase.steps:
            self._timed = phase.steps, expected_s(phase, self._active_range_bytes)
        return self._timed[1]


def expected_s(phase: Phase, active_range_bytes: int, pace: Pace = lambda _: None) -> float:
    """Return the length of a phase in s: of a fill by its pace in bytes/s, or a guess; 0 for a purge (unknown)."""
    match phase:
        case Purge():
            return 0.0
        case Fill():
            length_bytes = phase.length_bytes or active_range_bytes
            return phase.passes * length_bytes / (pace(phase.workload) or ASSUMED_FILL_BYTES_PER_S)
        case Round():
            return sum(step.duration_s for step in phase.steps)
        case Continuous() | Idle():
            return phase.duration_s


def _load_of(phase: Phase) -> object:
    match phase:
        case Round():
            return phase.steps
        case Fill() | Continuous():
            return phase.workload
        case Purge() | Idle():
            return None


def _imagined(workload: Workload, duration_s: float, factor: float) -> Measurement:
    reads = workload.read_percent > 0
    return _guessed(workload.block_size_bytes, reads, duration_s, factor)


@lru_cache(maxsize=1000)
def _guessed(block_size_bytes: int, reads: bool, duration_s: float, factor: float) -> Measurement:
    """Return a guess. Cached: a disk of a hundred areas asks for a million guesses, few of them different."""
    stats = _io_stats(round(10_000 * factor), block_size_bytes, ASSUMED_LATENCY_NS * factor)
    if reads:
        return Measurement(duration_s=duration_s, read=stats, write=NO_IO)
    return Measurement(duration_s=duration_s, read=NO_IO, write=stats)


def _at_offered_rate(step: Step, *, kept_up: bool) -> Measurement:
    """Return all I/Os offered, so that a rising rate rises on, or next to none."""
    assert step.workload.offered_iops is not None
    due = step.workload.offered_iops * step.duration_s
    imagined = _imagined(step.workload, step.duration_s, 1.0)
    return _scaled(imagined, (due if kept_up else 1.0) / imagined.ios)


def _at_pace(phase: Continuous, bytes_per_s: float) -> Measurement:
    """Return a slice at this pace, with reads and writes by the workload's mix."""

    def side(share: float) -> IoStats:
        block_size_bytes = phase.workload.block_size_bytes
        ios = round(share * bytes_per_s * phase.duration_s / block_size_bytes)
        return _io_stats(ios, block_size_bytes, ASSUMED_LATENCY_NS)

    reads = phase.workload.read_percent / 100
    return Measurement(duration_s=phase.duration_s, read=side(reads), write=side(1 - reads))


def _io_stats(ios: int, block_size_bytes: int, latency_ns: float) -> IoStats:
    return IoStats(ios=ios, bytes=ios * block_size_bytes, latency_ios=ios, latency_sum_ns=round(latency_ns * ios))


def _scaled(measurement: Measurement, factor: float) -> Measurement:
    """Scale rate and latency by the same factor, so that any tracking variable changes."""

    def scale(stats: IoStats) -> IoStats:
        return replace(
            stats,
            ios=round(stats.ios * factor),
            bytes=round(stats.bytes * factor),
            latency_ios=round(stats.latency_ios * factor),
            latency_sum_ns=round(stats.latency_sum_ns * factor**2),
        )

    scaled = replace(measurement, read=scale(measurement.read), write=scale(measurement.write))
    return _undisturbed(scaled)


def _undisturbed(measurement: Measurement) -> Measurement:
    """Remove disturbances: a disturbance of one round need not occur in the next."""
    return replace(measurement, host_limited=False, disturbed_by=())


def _with_bytes(measurement: Measurement, read_bytes: int, write_bytes: int) -> Measurement:
    """Return the same rates with other amounts; with 0 bytes no amount is ever reached."""
    return replace(
        measurement,
        read=replace(measurement.read, bytes=read_bytes),
        write=replace(measurement.write, bytes=write_bytes),
    )
