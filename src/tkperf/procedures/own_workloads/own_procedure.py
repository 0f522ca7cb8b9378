"""The procedure of a workload file on a device, phase by phase."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import nan

from tkperf.model.errors import InputFileError
from tkperf.model.measurement import Measurement
from tkperf.model.phases import (
    Fill,
    Idle,
    PhaseSequence,
    Procedure,
    Purge,
    Reply,
    Round,
    RoundAnswer,
    SectionOutcome,
    Yielded,
)
from tkperf.model.quantity import QUANTITIES, Quantity, Window
from tkperf.model.units import format_count, format_duration
from tkperf.model.workload import Workload, key_of_stream
from tkperf.procedures.building_blocks import (
    KEPT_UP_PERCENT,
    Stream,
    Tracked,
    describe_enough,
    describe_missed,
    expect_answers,
    expect_measurement,
    expect_round,
    keeps_up,
    rounds_until_steady,
    slices_of,
    stream_outcome,
    stream_until,
    unjudged,
    why_not_steady,
    workload_independent_preconditioning,
)
from tkperf.procedures.own_workloads.parts import (
    FillPhase,
    IdlePhase,
    Load,
    PurgePhase,
    RoundsPhase,
    StreamPhase,
    combination_of,
    region_of,
    steps_of,
    tracked_load,
    workload_of,
)
from tkperf.procedures.own_workloads.workload_file import OwnWorkloadTable
from tkperf.procedures.profiles import Profile
from tkperf.procedures.profiles.profile_tables import SteadyStateTable


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setting:
    """The values that all phases of a workload file use."""

    test: str
    loads: Mapping[str, Load]
    rules: SteadyStateTable
    profile: Profile
    active_range_bytes: int

    def workload(self, load: Load) -> Workload:
        return workload_of(load, self.profile, self.active_range_bytes)

    def together(self, names: Sequence[str]) -> Workload:
        return combination_of(names, self.loads, self.profile, self.active_range_bytes)

    def of_stream(self, phase: StreamPhase) -> Workload:
        return self.together(phase.together) if phase.load is None else self.workload(self.loads[phase.load])

    def require_regions(self) -> None:
        """Check, before the first phase, that the part of the range that each load uses fits into the active range.

        Raises:
            InputFileError: a part is empty, or lies beyond the end of the active range.
        """
        for name, load in self.loads.items():
            try:
                region_of(load, self.active_range_bytes)
            except InputFileError as error:
                raise InputFileError(f"workload file of the test {self.test}, load {name}: {error}") from None


def course(type_: type[OwnWorkloadTable], profile: Profile, active_range_bytes: int) -> Procedure:
    """Yield the phases of the file in order."""
    table = profile.table(type_)
    setting = _Setting(
        test=table.name,
        loads=table.loads,
        rules=table.rules(profile),
        profile=profile,
        active_range_bytes=active_range_bytes,
    )
    setting.require_regions()
    for phase, section in table.in_sections:
        match phase:
            case PurgePhase():
                yield Purge(section=section)
            case FillPhase():
                yield _fill(section, phase, setting)
            case IdlePhase():
                yield Idle(section=section, duration_s=phase.idle_s)
            case RoundsPhase():
                yield (yield from _rounds(phase, setting))
            case StreamPhase():
                yield (yield from _stream(phase, setting))


def _fill(section: str, phase: FillPhase, setting: _Setting) -> Fill:
    workload = None if phase.load is None else setting.workload(setting.loads[phase.load])
    fill = workload_independent_preconditioning(setting.profile, section, workload)
    return fill if phase.passes is None else replace(fill, passes=phase.passes)


def _rounds(phase: RoundsPhase, setting: _Setting) -> Generator[Yielded, Reply, SectionOutcome]:
    """Run warm-up rounds. Then run rounds until all tracking variables are steady, or run the given number of
    rounds.
    """
    steps = steps_of(phase, setting.loads, setting.profile, setting.active_range_bytes)
    warm_up = Round(section=phase.section, number=1, steps=steps, warm_up=True)
    if phase.warm_up_rounds:
        numbers = range(1, phase.warm_up_rounds + 1)
        yield PhaseSequence(phases=tuple(replace(warm_up, number=number) for number in numbers))
    results: list[RoundAnswer] = []
    if phase.rounds is None:
        outcome = yield from rounds_until_steady(
            phase.section,
            steps,
            setting.rules,
            _tracked(phase, setting),
            before_each=None if phase.idle_s is None else lambda _: _idle(phase),
            results=results,
        )
    else:
        results += yield from _so_many_rounds(phase, replace(warm_up, warm_up=False), phase.rounds)
        because = f"ran its {format_count(phase.rounds, 'round')}"
        outcome = unjudged(phase.section, because, range(1, phase.rounds + 1))
    window = [results[number - 1] for number in outcome.window]
    measured = {step.workload: [result[step.workload] for result in window] for step in steps}
    return _with_missed_rates(outcome, measured)


def _idle(phase: RoundsPhase) -> Idle:
    assert phase.idle_s is not None, "there is a pause"
    return Idle(section=phase.section, duration_s=phase.idle_s)


def _so_many_rounds(phase: RoundsPhase, first: Round, count: int) -> Generator[Yielded, Reply, Iterator[RoundAnswer]]:
    phases = tuple(
        part
        for number in range(1, count + 1)
        for part in (*(() if phase.idle_s is None else (_idle(phase),)), replace(first, number=number))
    )
    answers = expect_answers((yield PhaseSequence(phases=phases)))
    return (expect_round(answer) for part, answer in zip(phases, answers, strict=True) if isinstance(part, Round))


def _tracked(phase: RoundsPhase, setting: _Setting) -> list[Tracked]:
    if phase.together:
        combination = setting.together(phase.together)
        return [_track_stream(variable.quantity, combination, variable.load) for variable in phase.tracked]
    return [
        _track(variable.quantity, setting.workload(tracked_load(variable, phase, setting.loads)))
        for variable in phase.tracked
    ]


def _track(key: str, workload: Workload) -> Tracked:
    quantity = QUANTITIES[key]
    return Tracked(
        tracking=f"{workload} {quantity.label}",
        unit=quantity.unit_in_data,
        workload=workload,
        value=partial(_value, quantity, workload),
    )


def _track_stream(key: str, combination: Workload, name: str | None) -> Tracked:
    """Return a tracking variable for a stream of a combination. If ``name`` is None, the variable is the total of all
    streams.
    """
    if name is None:
        return _track(key, combination)
    own = _track(key, key_of_stream(combination, name))
    return replace(
        own,
        tracking=f"{QUANTITIES[key].label} of {name}",
        workload=combination,
        value=lambda measured: own.value(measured.of_stream(name)),
    )


def _value(quantity: Quantity, workload: Workload, measured: Measurement) -> float:
    """Return the value of a quantity in one measurement. If the quantity was not measured, return NaN, which is never
    steady.
    """
    value = quantity.combine(Window(rounds=(measured,), workload=workload))
    return nan if value is None else value


def _stream(phase: StreamPhase, setting: _Setting) -> Generator[Yielded, Reply, SectionOutcome]:
    """Run one load until it is steady, has written the given amount, or has run for the maximum time."""
    workload = setting.of_stream(phase)
    if phase.tracked is None and phase.written_multiple is None:
        return (yield from _whole_stream(phase, workload))
    enough_bytes = (phase.written_multiple or float("inf")) * setting.active_range_bytes
    slices: list[Measurement] = []
    stream = yield from stream_until(
        phase.section,
        _track(phase.tracked or "iops", workload),
        slice_s=phase.slice_s,
        max_slices=phase.slices,
        rules=setting.rules,
        judge_every=None if phase.tracked is None else phase.judged_every,
        enough_bytes=enough_bytes,
        warm_up_slices=phase.warm_up_slices,
        results=slices,
    )
    outcome = stream_outcome(phase.section, stream, _why_ended(phase, stream, enough_bytes))
    return _with_missed_rates(outcome, {workload: slices})


def _why_ended(phase: StreamPhase, stream: Stream, enough_bytes: float) -> str:
    """Return a text that explains why a stream ended without steady state."""
    if stream.written_bytes >= enough_bytes:
        assert phase.written_multiple is not None, "without it nothing is enough"
        return describe_enough(stream, phase.written_multiple)
    return _ran_its_time(phase) if stream.verdict is None else why_not_steady(stream)


def _ran_its_time(phase: StreamPhase) -> str:
    return f"ran its full time of {format_duration(phase.slices * phase.slice_s)}"


def _whole_stream(phase: StreamPhase, workload: Workload) -> Generator[Yielded, Reply, SectionOutcome]:
    """Run a stream whose end does not depend on measurements. All slices of such a stream are known in advance."""
    warm_ups, count = phase.warm_up_slices, phase.slices
    phases = tuple(slices_of(phase.section, workload, phase.slice_s, count, warm_ups=warm_ups))
    answers = expect_answers((yield PhaseSequence(phases=phases)))
    outcome = unjudged(phase.section, _ran_its_time(phase))
    slices = [expect_measurement(answer) for answer in answers[warm_ups:]]
    return _with_missed_rates(outcome, {workload: slices})


def _with_missed_rates(outcome: SectionOutcome, measured: Mapping[Workload, Sequence[Measurement]]) -> SectionOutcome:
    """Return the outcome with a text about each load whose offered rate the device did not reach."""
    by_stream = {
        key_of_stream(workload, stream.name): [one.of_stream(stream.name) for one in values]
        for workload, values in measured.items()
        if workload.is_combination
        for stream in workload.together
    }
    missed = [
        f"did not keep up with {workload.stream or workload}: {describe_missed(workload, values)}"
        for workload, values in (*measured.items(), *by_stream.items())
        if workload.offered_iops is not None and not keeps_up(workload, values, KEPT_UP_PERCENT)
    ]
    return replace(outcome, ended_because="; ".join((outcome.ended_because, *missed)))
