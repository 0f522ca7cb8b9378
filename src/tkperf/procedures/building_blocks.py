"""Functions that several tests use: preconditioning, steps, rounds and streams that run until steady state, and offered
rates.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from tkperf.model.measurement import Measurement
from tkperf.model.phases import (
    Answer,
    Continuous,
    Fill,
    Interruption,
    Phase,
    Reply,
    Round,
    RoundAnswer,
    SectionOutcome,
    Yielded,
)
from tkperf.model.quantity import BACKLOG, Window
from tkperf.model.steady_state import SteadyStateVerdict, judge
from tkperf.model.units import KIB, format_capacity, format_count, format_mix, format_window
from tkperf.model.workload import Access, Arrival, Step, Workload
from tkperf.procedures.descriptor import Circumstances
from tkperf.procedures.profiles import Profile
from tkperf.procedures.profiles.profile_tables import SteadyStateTable

HISTOGRAM_SECTION = "Response time histogram"
ARRIVALS_SPREAD = 3.0  # limit for the missing I/Os, in standard deviations of the due I/Os
# This limit, in %, is the same as in the Myce/OakGate tests. If a load completed less than this share of the offered
# I/Os, the device did not keep up with the offered rate.
KEPT_UP_PERCENT = 99
NOT_OF_PTS = "Not a test of the PTS, but purge, preconditioning and steady state follow the rules of the PTS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracked:
    """A tracking variable: the name and the unit that outputs show, the workload whose steps have this variable, and
    the function that computes the value.
    """

    tracking: str
    unit: str
    workload: Workload
    value: Callable[[Measurement], float]


def track_iops(workload: Workload, name: str) -> Tracked:
    """Return a tracking variable for the IOPS of one workload of a round. ``name`` describes the workload in the name
    of the variable.
    """
    return Tracked(tracking=f"{name} IOPS", unit="IOPS", workload=workload, value=lambda measured: measured.iops)


def at_each_demand(
    workload: Workload, jobs: Sequence[int], io_depths: Sequence[int], step_s: float
) -> tuple[Step, ...]:
    """Return the steps of a round, in which a workload runs at each thread count (outer loop) and each queue depth
    (inner loop).
    """
    return tuple(
        Step(workload=replace(workload, jobs=threads, io_depth=depth), duration_s=step_s)
        for threads in jobs
        for depth in io_depths
    )


def at_each_mix_and_size(
    profile: Profile,
    access: Access,
    read_percents: Sequence[int],
    block_sizes_kib: Sequence[float],
    step_s: float,
    jobs: int | None = None,
    io_depth: int | None = None,
) -> tuple[Step, ...]:
    """Return the steps of a round: one step for each R/W mix (outer loop) and each block size (inner loop)."""
    return tuple(
        Step(workload=profile.workload(access, read_percent, block_size_kib, jobs, io_depth), duration_s=step_s)
        for read_percent in read_percents
        for block_size_kib in block_sizes_kib
    )


def unjudged(section: str, because: str, window: Iterable[int] = ()) -> SectionOutcome:
    """Return the outcome of a section to which the steady-state rule was not applied. ``because`` is the reason why the
    section ended.
    """
    return SectionOutcome(section=section, window=tuple(window), verdict=None, ended_because=because)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """The outcome of a stream. ``verdict`` is the last verdict. None means that no slice was judged."""

    slices: int
    written_bytes: int
    verdict: SteadyStateVerdict | None

    @property
    def is_steady(self) -> bool:
        return self.verdict is not None and self.verdict.reached


def workload_independent_preconditioning(profile: Profile, section: str, workload: Workload | None = None) -> Fill:
    """Return the phase of workload-independent preconditioning (WIPC), which writes sequentially to the range that is
    preconditioned. The PTS prescribes two passes.

    Args:
        workload: the writes, if they differ from those in the table of the profile.
    """
    table = profile.preconditioning
    return Fill(
        section=section,
        workload=workload or profile.workload(Access.SEQUENTIAL, 0, table.block_size_kib),
        passes=table.passes,
        length_bytes=table.length_bytes,
    )


def rounds_until_steady(
    section: str,
    steps: tuple[Step, ...],
    rules: SteadyStateTable,
    tracked: Sequence[Tracked],
    *,
    before_each: Callable[[int], Phase] | None = None,
    results: list[RoundAnswer] | None = None,
) -> Generator[Yielded, Reply, SectionOutcome]:
    """Run rounds of the same steps until all tracking variables are steady in the same window, or until the largest
    number of rounds is reached.

    The rounds are also the workload-dependent preconditioning (PTS-E 1.1, IOPS, step 3). The rule judges each tracking
    variable, and the function yields each verdict. If steady state is not reached, the window consists of the last
    rounds, and the outcome states this fact. After an interruption, the window and the count of rounds start again,
    because a window never spans an interruption (docs/adr/0028).

    Args:
        before_each: a function that returns a phase to run before each round. Its argument is the number of the round.
            This phase is not part of the round.
        results: a list to which the measurements of each round are added.
    """
    series = [_Series(variable=variable, rules=rules) for variable in tracked]
    number = 1
    while True:
        answer = None if before_each is None else (yield before_each(number))
        if not isinstance(answer, Interruption):
            answer = yield Round(section=section, number=number, steps=steps, repeatable=True)
        if isinstance(answer, Interruption):
            series = [_Series(variable=variable, rules=rules) for variable in tracked]
            continue
        result = expect_round(answer)
        if results is not None:
            results.append(result)
        verdicts = []
        for so_far in series:
            verdict = so_far.judge(number, result[so_far.variable.workload])
            yield verdict
            verdicts.append(verdict)
        number += 1
        decided_by, rounds = find_decisive(verdicts), len(series[0].numbers)
        if decided_by.reached or rounds >= rules.max_rounds:
            break
    return SectionOutcome(
        section=section,
        window=decided_by.rounds,
        verdict=decided_by,
        ended_because=_why_ended(decided_by, series[0].numbers, named=len(verdicts) > 1),
        verdicts=tuple(verdicts),
    )


@dataclass(slots=True, kw_only=True)
class _Series:
    """The values of a tracking variable so far. Each value is stored with a text about influences other than the
    device.
    """

    variable: Tracked
    rules: SteadyStateTable
    numbers: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    doubts: list[str | None] = field(default_factory=list)

    def judge(self, number: int, measured: Measurement) -> SteadyStateVerdict:
        """Add the value of a round or slice, and return the verdict."""
        self.numbers.append(number)
        self.values.append(self.variable.value(measured))
        self.doubts.append(measured.doubt)
        return judge(
            self.numbers,
            self.values,
            tracking=self.variable.tracking,
            unit=self.variable.unit,
            criteria=self.rules.criteria,
            doubts=self.doubts,
        )


def as_many_rounds_as(
    first: SectionOutcome, section: str, steps: tuple[Step, ...]
) -> Generator[Yielded, Reply, SectionOutcome]:
    """Run the same number of rounds as another section, with the same window. These rounds are not judged."""
    last_round = first.window[-1]
    for number in range(1, last_round + 1):
        yield Round(section=section, number=number, steps=steps)
    because = f"{format_count(last_round, 'round')}, as many as {first.section}"
    return unjudged(section, because, first.window)


def find_tracked(steps: Sequence[Step], read_percent: int, block_size_kib: float) -> Workload:
    """Return the workload among the steps of a round that decides steady state."""
    block_size_bytes = round(block_size_kib * KIB)
    return next(
        step.workload
        for step in steps
        if (step.workload.read_percent, step.workload.block_size_bytes) == (read_percent, block_size_bytes)
    )


def find_decisive(verdicts: Sequence[SteadyStateVerdict]) -> SteadyStateVerdict:
    """Return the first verdict according to which the window is not steady. If the window is steady according to all
    verdicts, return the first verdict.
    """
    if not verdicts:
        raise ValueError("the judgement of steady state needs at least one tracking variable")
    return next((verdict for verdict in verdicts if not verdict.reached), verdicts[0])


def _why_ended(verdict: SteadyStateVerdict, rounds: Sequence[int], *, named: bool) -> str:
    if verdict.reached:
        return f"steady state in {format_window(verdict.rounds)}"
    of = f"{verdict.tracking}: " if named else ""
    counted = format_count(len(rounds), "round")
    since = f", {format_window(rounds)} since an interruption" if rounds[0] > 1 else ""
    return f"no steady state in {counted}{since}: {of}{verdict.reason}"


def stream_until(
    section: str,
    tracked: Tracked,
    *,
    slice_s: float,
    max_slices: int,
    rules: SteadyStateTable,
    judge_every: int | None = 1,
    enough_bytes: float = float("inf"),
    warm_up_slices: int = 0,
    results: list[Measurement] | None = None,
) -> Generator[Yielded, Reply, Stream]:
    """Run the tracked workload as a stream until the workload is steady, has written enough, or reaches the largest
    number of slices.

    Args:
        judge_every: the interval n of judged slices. The slices 1, 1 + n, 1 + 2n ... are judged. None means that no
            slice is judged.
        enough_bytes: the stream ends after the slice that reaches this amount of writes.
        warm_up_slices: number of slices at the beginning from which no result is computed. The numbers of the other
            slices begin with 1.
        results: a list to which the measurement of each slice after the warm-up is added.
    """
    written_bytes = 0
    judged = _Series(variable=tracked, rules=rules)
    verdict: SteadyStateVerdict | None = None
    for phase in slices_of(section, tracked.workload, slice_s, max_slices, warm_ups=warm_up_slices):
        measured = expect_measurement((yield phase))
        written_bytes += measured.write.bytes
        if results is not None and not phase.warm_up:
            results.append(measured)
        if not phase.warm_up and judge_every and (phase.number - 1) % judge_every == 0:
            verdict = judged.judge(phase.number, measured)
            yield verdict
        steady = verdict is not None and verdict.reached
        if not phase.warm_up and (steady or written_bytes >= enough_bytes):
            break
    return Stream(slices=phase.number, written_bytes=written_bytes, verdict=verdict)


def stream_outcome(section: str, stream: Stream, otherwise: str) -> SectionOutcome:
    """Return the outcome of a stream. If the stream was not steady, the outcome contains ``otherwise`` as the reason
    why the stream ended.
    """
    verdict = stream.verdict
    if verdict is None or not verdict.reached:
        return SectionOutcome(section=section, window=(), verdict=verdict, ended_because=otherwise)
    return SectionOutcome(
        section=section,
        window=verdict.rounds,
        verdict=verdict,
        ended_because=f"steady state in slices {', '.join(map(str, verdict.rounds))}",
    )


def write_until_steady(
    profile: Profile,
    section: str,
    workload: Workload,
    name: str,
    *,
    slice_s: float,
    every: int,
    results: list[Measurement] | None = None,
) -> Generator[Yielded, Reply, SectionOutcome]:
    """Run one stream until the IOPS are steady. The number of judged slices is limited to the largest number of rounds
    in the rule of the profile.

    Args:
        name: the name of the workload in the name of the tracking variable.
        every: the interval n of judged slices. The slices 1, 1 + n, 1 + 2n ... are judged.
        results: a list to which the measurement of each slice is added.
    """
    stream = yield from stream_until(
        section,
        track_iops(workload, name),
        slice_s=slice_s,
        max_slices=1 + every * (profile.steady_state.max_rounds - 1),
        rules=profile.steady_state,
        judge_every=every,
        results=results,
    )
    return stream_outcome(section, stream, why_not_steady(stream))


def why_not_steady(stream: Stream) -> str:
    """Return a text that explains why a judged stream was not steady when it reached the largest number of slices."""
    assert stream.verdict is not None, "the first slice is judged"
    return f"no steady state in {format_count(stream.slices, 'slice')}: {stream.verdict.reason}"


def describe_enough(stream: Stream, multiple: float) -> str:
    """Return a text that explains that a stream ended at an amount of writes, such as ``4 × the active range written
    (4.6 GB)``.
    """
    return f"{multiple:g} × the active range written ({format_capacity(stream.written_bytes)})"


def slices_of(
    section: str, workload: Workload, slice_s: float, count: int, *, warm_ups: int = 0
) -> Iterator[Continuous]:
    """Yield the slices of one stream: first the warm-up slices, and then ``count`` slices. The number of slices does
    not depend on measurements.
    """
    for place in range(1, warm_ups + count + 1):
        yield Continuous(
            section=section,
            number=place if place <= warm_ups else place - warm_ups,
            workload=workload,
            duration_s=slice_s,
            longest_s=slice_s * (warm_ups + count),
            warm_up=place <= warm_ups,
        )


def after_lead_in(
    section: str, number: int, workload: Workload, *, lead_in_s: float, duration_s: float, cells: int | None = None
) -> tuple[Round, Round]:
    """Return two rounds with the same workload. No result is computed from the first round, which is a warm-up. The
    second round is measured.

    ``cells`` is the number of cells if the workload is one cell of a grid.
    """
    lead_in, measured = (Step(workload=workload, duration_s=length_s) for length_s in (lead_in_s, duration_s))
    return (
        Round(section=section, number=number, steps=(lead_in,), cells=cells, warm_up=True),
        Round(section=section, number=number, steps=(measured,), cells=cells),
    )


def find_rate_alone(
    section: str, workload: Workload, *, lead_in_s: float, duration_s: float
) -> Generator[Yielded, Reply, float]:
    """Run a workload as a separate section, first as a warm-up and then measured. Return the measured IOPS."""
    lead_in, measured = after_lead_in(section, 1, workload, lead_in_s=lead_in_s, duration_s=duration_s)
    yield lead_in
    answer = expect_round((yield measured))
    yield unjudged(section, f"ran for {duration_s:g} s", (1,))
    return answer[workload].iops


def place_by_seed(seed: int, *numbers: int) -> bytes:
    """Return a key that sorts numbered items. The resulting order depends only on the seed, and is the same on every
    host.
    """
    return sha256(" ".join(map(str, (seed, *numbers))).encode()).digest()


def response_time_histogram(
    workload: Workload,
    duration_s: float,
    *,
    steady: bool,
    section: str = HISTOGRAM_SECTION,
    ran: str = "ran its full time",
) -> Generator[Yielded, Reply, SectionOutcome]:
    """Run the load of a test once more to record the distribution of the response times.

    Args:
        steady: whether the preceding test was steady. If not, the outcome states this fact.
        ran: the reason why the load ended, in words.
    """
    yield from slices_of(section, workload, duration_s, 1)
    return unjudged(section, ran + ("" if steady else ", NOT after steady state"), (1,))


def expect_round(answer: Reply) -> RoundAnswer:
    """Return the answer to a Round phase, after a check of the answer's type."""
    if answer is None or isinstance(answer, Measurement | Interruption | tuple):
        raise TypeError("the answer to a Round phase must be a measurement of each workload")
    return answer


def expect_measurement(answer: Reply) -> Measurement:
    """Return the answer to a Fill or Continuous phase, after a check of the answer's type."""
    if not isinstance(answer, Measurement):
        raise TypeError("the answer to a Fill or Continuous phase must be a measurement")
    return answer


def expect_answers(answer: Reply) -> tuple[Answer, ...]:
    """Return the answers to the phases of a sequence, in their order, after a check of their types."""
    if not isinstance(answer, tuple):
        raise TypeError("the answer to a PhaseSequence must contain the answers to all its phases")
    return answer


def mean_latency_us(measurement: Measurement) -> float:
    """Return the mean response time over all I/Os in µs. If the response time was not measured, return NaN, which is
    never steady.
    """
    mean_us = measurement.latency_mean_us
    return float("nan") if mean_us is None else mean_us


def keeps_up(workload: Workload, measured: Sequence[Measurement], kept_up_percent: float) -> bool:
    """Return whether the device completed at least ``kept_up_percent`` of the offered I/Os."""
    assert workload.offered_iops is not None
    due = workload.offered_iops * sum(step.duration_s for step in measured)
    return did_offered(workload, sum(step.ios for step in measured), due, kept_up_percent)


def did_offered(workload: Workload, ios: float, due_ios: float, kept_up_percent: float) -> bool:
    """Return whether ``ios`` is at least ``kept_up_percent`` of ``due_ios``.

    The function allows for random arrivals and random block sizes, because fewer I/Os may then be due by chance.
    """
    fewer = ARRIVALS_SPREAD * workload.arrivals_deviation(due_ios)
    return ios >= due_ios * kept_up_percent / 100 - fewer


def describe_missed(workload: Workload, measured: Sequence[Measurement]) -> str:
    """Return a text about an offered rate that was not reached, such as
    ``of 4,000 it did 3,000 (75.0 %) and was 60,000 I/Os behind after 60 s``. The text states the longest backlog.
    """
    assert workload.offered_iops is not None
    iops = sum(step.ios for step in measured) / sum(step.duration_s for step in measured)
    backlog_ios = BACKLOG.combine(Window(rounds=measured, workload=workload)) or 0.0
    return (
        f"of {workload.offered_iops:,.0f} it did {iops:,.0f} "
        f"({100 * iops / workload.offered_iops:.1f} %) and was {backlog_ios:,.0f} I/Os behind after "
        f"{max(step.duration_s for step in measured):.0f} s"
    )


def purge(circumstances: Circumstances) -> tuple[str, ...]:
    return () if circumstances.purge is None else (circumstances.purge,)


def preconditioning(
    profile: Profile, circumstances: Circumstances, load: str | None = None, *, passes: int | None = None
) -> str:
    """Return a description of the preconditioning. ``load`` and ``passes`` describe the writes if they differ from the
    table of the profile.
    """
    table = profile.preconditioning
    load = load or f"SEQ {table.block_size_kib:g} KiB writes, {demand(profile)}"
    if circumstances.describe_fill is None:
        filled = f"{passes or table.passes} × {table.range_text}, {load}"
    else:
        filled = circumstances.describe_fill(load, passes)
    return f"Workload-independent preconditioning: {filled}"


def at_most_rounds(profile: Profile) -> str:
    return f"Until steady state, at most {profile.steady_state.max_rounds} rounds:"


def steady_state(profile: Profile) -> str:
    table = profile.steady_state
    return (
        f"Steady state: over {table.window_rounds} rounds, range <= "
        f"{table.max_data_excursion_percent:g} % and best linear fit <= "
        f"{table.max_slope_excursion_percent:g} % of the average"
        + ("; disturbed rounds count, too" if table.accept_disturbed else "")
    )


def until_steady(
    profile: Profile, circumstances: Circumstances, loops: Sequence[tuple[str, str]], step: str, tracking: str
) -> tuple[str, ...]:
    """Return a description of a test, line by line: purge, preconditioning, and rounds of nested loops until steady
    state.

    Args:
        loops: the name and the values of each loop, the outermost first.
        step: a description of the step in the innermost loop.
    """
    indented = [f"{'    ' * level}For {name} {values}:" for level, (name, values) in enumerate(loops, 1)]
    return (
        *purge(circumstances),
        preconditioning(profile, circumstances),
        at_most_rounds(profile),
        *indented,
        f"{'    ' * (1 + len(loops))}{step}",
        tracking,
        steady_state(profile),
    )


def mixes_and_sizes(read_percents: Sequence[int], block_sizes_kib: Sequence[float]) -> tuple[tuple[str, str], ...]:
    """Return, in words, the names and values of the loops over R/W mixes and block sizes."""
    return ("R/W mix", mixes(read_percents)), ("block size", f"{numbers(block_sizes_kib)} KiB")


def describe_arrival(arrival: Arrival) -> str:
    return "evenly spaced" if arrival is Arrival.LINEAR else "at random times (Poisson process)"


def demand(profile: Profile, jobs: int | None = None, io_depth: int | None = None) -> str:
    """Return the demand in words: the demand of the profile, or the demand of the test."""
    if profile.demand.searched and not (jobs and io_depth):
        return "TC and QD as the demand search found them"
    return f"TC {jobs or profile.demand.jobs} / QD {io_depth or profile.demand.io_depth}"


def judged_slices(slice_s: float, every: int, other_slices: str = "slices") -> str:
    """Return the judged slices in words, such as ``minutes 1, 31, 61 ...``. If a slice is not a minute long,
    ``other_slices`` replaces the word "minutes".
    """
    numbers = ", ".join(str(1 + index * every) for index in range(3))
    return f"{'minutes' if slice_s == 60 else other_slices} {numbers} ..."


def mixes(read_percents: Sequence[int]) -> str:
    return ", ".join(format_mix(percent) for percent in read_percents)


def numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)
