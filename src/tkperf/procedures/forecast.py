"""The loop that runs a procedure, and the forecast, which runs the same procedures with imagined answers.

The forecast needs no separate description of a test. To find the length and the next phases of a run, this module sends
the answers so far to a new generator. The module then sends imagined answers. In the best case, all values are
constant, so the test is steady as soon as possible. In the worst case, the values jump, so the test is never steady.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from functools import lru_cache, partial
from itertools import islice

from tkperf.model.errors import UsageError
from tkperf.model.measurement import NO_IO, IoStats, Measurement, StreamPart
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
from tkperf.model.units import format_block_size_kib
from tkperf.model.workload import Step, Workload
from tkperf.procedures.descriptor import Test
from tkperf.procedures.profiles import Profile
from tkperf.procedures.profiles.profile_tables import find_fault

# A function that answers a phase. The second argument contains up to two phases that certainly follow.
Answering = Callable[[Phase, Sequence[Phase]], Answer]


def drive(procedure: Procedure, answer: Answering) -> Iterator[Phase | Statement]:
    """Run a procedure to its end, and yield every phase and statement. ``answer`` is called after each yielded
    phase.
    """
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


# The assumed rate of a fill that was not measured yet. This rate is about that of a SATA SSD.
ASSUMED_FILL_BYTES_PER_S = 500e6
ASSUMED_LATENCY_NS = 1e5
# The number of imagined answers that are stored at the same time. A test of many areas has thousands of loads.
MOST_ANSWERS = 200


# A function that returns the rate of a workload in bytes per second, for reads and writes together. None means that the
# rate is not known.
Pace = Callable[[Workload], float | None]


class Case(Enum):
    BEST = "best"
    WORST = "worst"
    # No value is ever steady, but streams reach their planned amounts at the given rates.
    UNSTEADY = "unsteady"


def phases_of(procedure: Procedure, answer: Callable[[Phase], Answer]) -> Iterator[Phase]:
    """Run a procedure with the given answers, and yield all phases. Verdicts and outcomes are omitted."""
    asked = drive(procedure, lambda phase, _: answer(phase))
    return (each for each in asked if not isinstance(each, Statement))


def forecast(procedure: Procedure, answers: Sequence[Answer], case: Case, *, active_range_bytes: int) -> list[float]:
    """Return the durations, in seconds, of the phases that remain after ``answers`` in the given case.

    The duration of a purge cannot be predicted, and counts as 0.

    Args:
        procedure: a new generator of phases.
        answers: the answers to the phases so far.
    """
    imagine = _Imagination(case, active_range_bytes)
    phases = phases_of(procedure, _replay(answers, imagine))
    return [imagine.duration_s(phase) for phase in islice(phases, len(answers), None)]


def section_names(procedure: Procedure, *, active_range_bytes: int) -> tuple[str, ...]:
    """Return the names of the sections of a procedure, in the order of the worst case."""
    phases = longest_phases(procedure, active_range_bytes=active_range_bytes)
    return tuple(dict.fromkeys(phase.section for phase in phases))


def greatest_numbers(
    procedure: Procedure, answers: Sequence[Answer] = (), *, active_range_bytes: int
) -> dict[object, int]:
    """Return the greatest numbers of rounds, areas and slices, in the worst case after ``answers``.

    The keys are the results of ``series_of``.
    """
    imagine = _Imagination(Case.WORST, active_range_bytes)
    phases = phases_of(procedure, _replay(answers, imagine))
    numbered = (phase for phase in phases if isinstance(phase, Round | Continuous))
    # The numbers increase within a series, so the last number is the greatest.
    return {series_of(phase): phase.number for phase in numbered}


def series_of(phase: Phase) -> object:
    """Return a key for the series in which a phase is counted: the rounds, the slices or the warm-ups of a section."""
    return phase.section, type(phase), getattr(phase, "warm_up", False)


def longest_phases(procedure: Procedure, *, active_range_bytes: int) -> Iterator[Phase]:
    """Yield all phases of a procedure in the worst case. In this case, the test is never steady and reaches no
    amount.
    """
    return phases_of(procedure, _Imagination(Case.WORST, active_range_bytes))


def phases_ahead(
    procedure: Procedure, case: Case, *, active_range_bytes: int, pace: Pace | None = None
) -> Iterator[tuple[Phase, float]]:
    """Yield every phase of a new procedure in the given case, with its duration in seconds.

    Args:
        pace: the function that returns the rates of workloads. The rates determine the length of fills. In the best
            case and in the unsteady case, the rates also determine when amounts are reached.
    """
    imagine = _Imagination(case, active_range_bytes, pace)
    return ((phase, imagine.duration_s(phase)) for phase in phases_of(procedure, imagine))


def upcoming_phase(procedure: Procedure, answers: Sequence[Answer]) -> Phase | None:
    """Return the next phase of a new procedure after these answers. None means that the procedure has ended."""
    given = iter(answers)
    return next(islice(phases_of(procedure, lambda _: next(given)), len(answers), None), None)


def following_phases(
    fresh_procedure: Callable[[], Procedure], answers: Sequence[Answer], *, active_range_bytes: int
) -> tuple[Phase | None, ...]:
    """Return the phases that may follow the current phase: the phase of the worst case, and the phase of the best case
    if that phase differs.

    If the result contains a single phase, this phase is certain, and can begin before the answer to the current phase
    is known. None means that the test ends.
    """

    def following(case: Case) -> Phase | None:
        imagine = _Imagination(case, active_range_bytes)
        phases = phases_of(fresh_procedure(), _replay(answers, imagine))
        return next(islice(phases, len(answers) + 1, None), None)

    return tuple(dict.fromkeys((following(Case.WORST), following(Case.BEST))))


def possible_ends(so_far: Measurement, planned_s: float) -> tuple[Measurement, ...]:
    """Return the possible measurements of a load of which only a part was measured. The load may continue as before, or
    very differently.

    In the remaining time, the load may issue no I/O at all, continue as before, or issue I/Os at twice the rate. The
    number of outstanding I/Os is constant, so the sum of the latencies in the remaining time is the same at any rate.
    """
    left = planned_s / so_far.duration_s - 1
    if left <= 0:
        return (so_far,)

    def end(pace: float, stats: IoStats) -> IoStats:
        return replace(
            stats,
            ios=stats.ios + round(pace * left * stats.ios),
            bytes=stats.bytes + round(pace * left * stats.bytes),
            latency_ios=stats.latency_ios + round(pace * left * stats.latency_ios),
            latency_sum_ns=stats.latency_sum_ns + round(left * stats.latency_sum_ns),
        )

    return tuple(replace(so_far.changed(partial(end, pace)), duration_s=planned_s) for pace in (0.0, 1.0, 2.0))


def _replay(answers: Sequence[Answer], imagine: _Imagination) -> Callable[[Phase], Answer]:
    """Return a function that returns the known answers in order. After the known answers, this returned function
    returns imagined answers.
    """
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
        # A key consists of the kind of the phase and the id of the load. The value also contains the load, so that no
        # other object can receive the same id.
        self._learned: dict[tuple[type[Phase], int], tuple[object, Answer]] = {}
        # A key consists of the kind and the duration of the phase, the id of the load, and the factor. The value also
        # contains the load.
        self._answers: dict[tuple[type[Phase], int, float, float], tuple[object, Answer]] = {}
        self._timed: tuple[object, float] = (None, 0.0)

    def learn(self, phase: Phase, answer: Answer) -> None:
        """Store the real answer to a phase."""
        load = load_of(phase)
        if not isinstance(answer, Interruption):
            self._learned[type(phase), id(load)] = load, answer
            self._answers.clear()

    def __call__(self, phase: Phase) -> Answer:
        # In the worst case, the factors are seven powers of two, which repeat in the same order. Because 30 is not a
        # multiple of 7, the values of every 30th slice also differ. With such values, no window of the PTS is steady.
        self._calls += 1
        factor = 1.0 if self._case is Case.BEST else 2.0 ** (self._calls % 7)
        # The rounds of a test, or the slices of a stream, differ only in their number, and thousands of phases may
        # follow. Each answer is therefore created only once.
        load = load_of(phase)
        key = type(phase), id(load), self.duration_s(phase), factor
        found = self._answers.get(key)
        if found is None:
            if len(self._answers) >= MOST_ANSWERS:
                self._answers.clear()
            found = self._answers[key] = load, self._imagine(phase, factor)
        return found[1]

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
    """Return the expected length of a phase in s. The length of a fill follows from ``pace``, in bytes per second, or
    from an assumed rate. For a purge, the result is 0, because the length of a purge is not known.
    """
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


def load_of(phase: Phase) -> object:
    """Return the steps of a round, or the workload of a fill or slice. The object is the same for all equal phases of a
    series. None means that the phase has no load.
    """
    match phase:
        case Round():
            return phase.steps
        case Fill() | Continuous():
            return phase.workload
        case Purge() | Idle():
            return None


def _imagined(workload: Workload, duration_s: float, factor: float) -> Measurement:
    guessed = _guessed(workload.block_size_bytes, workload.reads, duration_s, factor)
    return _with_streams(guessed, workload)


def _with_streams(measurement: Measurement, workload: Workload) -> Measurement:
    """Return an imagined measurement in which each stream of a combination has all I/Os of the combination."""
    if not workload.is_combination:
        return measurement
    parts = (
        StreamPart(name=stream.name, read=measurement.read, write=measurement.write) for stream in workload.together
    )
    return replace(measurement, streams=tuple(parts))


@lru_cache(maxsize=1000)
def _guessed(block_size_bytes: int, reads: bool, duration_s: float, factor: float) -> Measurement:
    """Return an assumed measurement. The result is cached, because a disk with a hundred areas needs a million answers,
    of which only a few differ.
    """
    stats = _io_stats(round(10_000 * factor), block_size_bytes, ASSUMED_LATENCY_NS * factor)
    if reads:
        return Measurement(duration_s=duration_s, read=stats, write=NO_IO)
    return Measurement(duration_s=duration_s, read=NO_IO, write=stats)


def _at_offered_rate(step: Step, *, kept_up: bool) -> Measurement:
    """Return an imagined measurement at an offered rate. With ``kept_up``, all offered I/Os are completed, so that a
    test with rising rates continues. Otherwise, almost no I/Os are completed.
    """
    assert step.workload.offered_iops is not None
    due = step.workload.offered_iops * step.duration_s
    imagined = _imagined(step.workload, step.duration_s, 1.0)
    return _scaled(imagined, (due if kept_up else 1.0) / imagined.ios)


def _at_pace(phase: Continuous, bytes_per_s: float) -> Measurement:
    """Return an imagined slice at this rate, with reads and writes in the proportion of the workload's mix."""

    def side(share: float) -> IoStats:
        block_size_bytes = phase.workload.block_size_bytes
        ios = round(share * bytes_per_s * phase.duration_s / block_size_bytes)
        return _io_stats(ios, block_size_bytes, ASSUMED_LATENCY_NS)

    reads = phase.workload.read_percent / 100
    at_pace = Measurement(duration_s=phase.duration_s, read=side(reads), write=side(1 - reads))
    return _with_streams(at_pace, phase.workload)


def _io_stats(ios: int, block_size_bytes: int, latency_ns: float) -> IoStats:
    return IoStats(ios=ios, bytes=ios * block_size_bytes, latency_ios=ios, latency_sum_ns=round(latency_ns * ios))


def _scaled(measurement: Measurement, factor: float) -> Measurement:
    """Return the measurement with rate and latency multiplied by the same factor. The factor changes every tracking
    variable.
    """

    def scale(stats: IoStats) -> IoStats:
        return replace(
            stats,
            ios=round(stats.ios * factor),
            bytes=round(stats.bytes * factor),
            latency_ios=round(stats.latency_ios * factor),
            latency_sum_ns=round(stats.latency_sum_ns * factor**2),
        )

    return _undisturbed(measurement.changed(scale))


def _undisturbed(measurement: Measurement) -> Measurement:
    """Return the measurement without disturbances, because the next round may have no disturbance."""
    return replace(measurement, host_limited=False, disturbed_by=())


def _with_bytes(measurement: Measurement, read_bytes: int, write_bytes: int) -> Measurement:
    """Return a measurement with the same rates but other amounts. With 0 bytes, a stream never reaches its amount."""
    return replace(
        measurement,
        read=replace(measurement.read, bytes=read_bytes),
        write=replace(measurement.write, bytes=write_bytes),
    )


MOST_STEPS = 200_000  # the limit for one test, with all its rounds or areas
LONGEST_STREAM_S = 366 * 86400
# Profiles are checked before the device is known, so this length of the device is assumed. It is large enough for all
# parts of a range that are given in bytes.
_ANY_DEVICE_BYTES = 1 << 60


def walk(test: Test, profile: Profile, active_range_bytes: int) -> Iterator[Phase]:
    """Yield all phases of a test in the worst case, which needs the most time."""
    procedure = test.procedure(profile, active_range_bytes)
    return longest_phases(procedure, active_range_bytes=active_range_bytes)


def find_workloads(test: Test, profile: Profile, active_range_bytes: int) -> tuple[Workload, ...]:
    """Return every workload of a test once, including the workloads of fills. The workloads are in the order of their
    first steps.
    """
    workloads: dict[Workload, None] = {}
    last: object = None
    for phase in walk(test, profile, active_range_bytes):
        match phase:
            case Round() if phase.steps is not last:
                last = phase.steps
                workloads |= dict.fromkeys(step.workload for step in phase.steps)
            case Fill() | Continuous() if phase.workload is not last:
                last = phase.workload
                workloads[phase.workload] = None
            case _:
                pass
    return tuple(workloads)


def first_rounds(test: Test, profile: Profile, active_range_bytes: int) -> dict[str, Round]:
    """Return the first round of each section that has rounds."""
    rounds: dict[str, Round] = {}
    for phase in walk(test, profile, active_range_bytes):
        if isinstance(phase, Round):
            rounds.setdefault(phase.section, phase)
    return rounds


def find_excess(tests: Iterable[Test], profile: Profile) -> str | None:
    """Return, as ``table: reason``, the first limit that the tests of a profile exceed, such as the limit for the
    number of steps.
    """
    for test in tests:
        if test.is_in(profile):
            try:
                fault = _find_excess(walk(test, profile, _ANY_DEVICE_BYTES))
            except (UsageError, ValueError) as error:
                fault = str(error)
            if fault:
                return f"{test.table.key if test.table else test.name}: {fault}"
    return None


def _find_excess(phases: Iterable[Phase]) -> str | None:
    steps, before = 0, tuple[Step, ...]()
    for phase in phases:
        match phase:
            case Round():
                steps += len(phase.steps)
                if steps > MOST_STEPS:
                    return f"more than {MOST_STEPS:,} steps in all, which is the most that can be run"
                if phase.steps is not before and (twice := _find_twice(phase.steps)):
                    return f"{twice} is measured twice in a round"
                before = phase.steps
            case Continuous() if phase.longest_s > LONGEST_STREAM_S:
                return f"a stream of {phase.longest_s:,.0f} s is longer than a year"
            case _:
                pass
    return None


def _find_twice(steps: Sequence[Step]) -> Workload | None:
    earlier: set[Workload] = set()
    for step in steps:
        if step.workload in earlier:
            return step.workload
        earlier.add(step.workload)
    return None


def fit_to_sector(profile: Profile, logical_block_bytes: int, tests: Sequence[Test]) -> tuple[Profile, dict[str, str]]:
    """Return the profile without the block sizes that the device cannot address, with a warning for each test.

    On a 4Kn device, blocks of 0.5 KiB are omitted. The tracking variable stays the same, because it is identified by
    the block size, and not by the place in the list.

    Returns:
        The fitted profile, and a warning for each test from which a block size was omitted.

    Raises:
        UsageError: a selected test needs a block size that is not a multiple of the sector size. The message lists the
            tests that can run.
    """
    tables = {table for test in tests for table in test.tables}
    fitted = profile.with_tables(*(profile.table(table).fitted(logical_block_bytes) for table in tables))
    warnings = {}
    for test in tests:
        left = None if find_fault(fitted) else _block_sizes(test, fitted)
        unfit = [size for size in left or () if size % logical_block_bytes]
        if left is None or unfit:
            needed = ", ".join(format_block_size_kib(size) for size in unfit)
            what = f"its blocks of {needed} KiB are" if unfit else "its tracked block size is"
            raise UsageError(
                f"test {test.name} of profile {profile.name} cannot run, because {what} not a multiple of the "
                f"device's logical sector of {logical_block_bytes} "
                f"bytes{_way_out(profile, logical_block_bytes, tests)}"
            )
        dropped = [size for size in _block_sizes(test, profile) if size not in left]
        if dropped:
            sizes = ", ".join(format_block_size_kib(size) for size in dropped)
            warnings[test.name] = (
                f"{test.name}: block size {sizes} KiB left out, the device's logical sector is "
                f"{logical_block_bytes} bytes"
            )
    return fitted, warnings


def _way_out(profile: Profile, logical_block_bytes: int, tests: Sequence[Test]) -> str:
    """Return the option that selects the tests that fit the sector. If no test fits, the result is empty."""
    fitting = []
    for test in tests if len(tests) > 1 else ():
        with suppress(UsageError):
            fit_to_sector(profile, logical_block_bytes, (test,))
            fitting += [] if test.finds_demand else [test.name]
    return f". Select other tests with --test {','.join(fitting)}" if fitting else ""


def _block_sizes(test: Test, profile: Profile) -> tuple[int, ...]:
    """Return the block sizes, in bytes, of all I/Os of a test. The sizes are in the order of their first steps."""
    sizes: dict[int, None] = {}
    for workload in find_workloads(test, profile, _ANY_DEVICE_BYTES):
        mixed = (share.block_size_bytes for share in workload.block_mix)
        sizes |= dict.fromkeys(mixed if workload.block_mix else (workload.block_size_bytes,))
    return tuple(sizes)
