"""The values of one run from which the fixed figures of a comparison are chosen.

tkperf searches for a value by workload. The test that measured the workload does not matter. A comparison or a ranking
chooses among these values. These values depend on one run only, so tkperf can store them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from tkperf.analysis.characteristics import FRESH
from tkperf.analysis.comparing.compared_rows import (
    LAST_PART,
    STEADY_PART,
    Entry,
    find_last_quarter,
    find_levels,
    is_stream,
    make_entry_builder,
    phase_entry,
)
from tkperf.analysis.comparing.decision import Unranked, Use
from tkperf.analysis.comparing.measured_conditions import find_value_conditions
from tkperf.analysis.results import RunResult, SectionResult
from tkperf.analysis.uncertainty.estimate import build_ratio
from tkperf.analysis.verdict import VerdictState, judge_run
from tkperf.analysis.workload_axes import find_axes
from tkperf.model.disturbance.io import OF_HISTORY, DisturbanceCode
from tkperf.model.quantity import IOPS, LATENCY_MEAN, THROUGHPUT, Better, Measure, Quantity, percentile
from tkperf.model.run_info import FORM_FACTOR, NO_USER_FACTS
from tkperf.model.units import KIB, MIB, on_one_line
from tkperf.model.workload import Access, Workload

KEPT_RATE = Measure(key="kept_rate_percent", label="kept rate", unit="%", better=Better.HIGHER)
"""The rate in the last quarter of a stream of writes, in percent of the rate fresh out of the box."""
_IsWanted = Callable[[Workload], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedFigure:
    """A figure that every comparison shows if the runs have values for the figure.

    Attributes:
        loads: the loads to which the figure can apply. A comparison uses the first load for which two runs have values.
    """

    key: str
    use: Use | None
    measure: Quantity
    loads: tuple[_IsWanted, ...]


def _is_of(work: Workload, access: Access, read_percent: int, block_size_bytes: int, single: bool | None) -> bool:
    """Return whether a workload has this access, mix and block size, and no other special property. If ``single`` is
    True, the load must have exactly one outstanding I/O. If ``single`` is False, the load must have several outstanding
    I/Os. If ``single`` is None, any number is accepted.
    """
    return (
        (work.access, work.read_percent, work.block_size_bytes) == (access, read_percent, block_size_bytes)
        and work.offered_iops is None
        and work.is_plain
        and not (work.block_mix or work.zones or work.region or work.compressible_percent)
        and (single is None or (work.total_outstanding_ios == 1) is single)
    )


def _random(*read_percents: int, single: bool | None) -> tuple[_IsWanted, ...]:
    """Return functions that recognise random 4 KiB loads with these mixes. If ``single`` is None, loads with several
    outstanding I/Os precede loads with a single outstanding I/O.
    """
    return tuple(
        partial(
            _is_of, access=Access.RANDOM, read_percent=read_percent, block_size_bytes=4 * KIB, single=bool(of_single)
        )
        for read_percent in read_percents
        for of_single in ((False, True) if single is None else (single,))
    )


def _sequential(read_percent: int) -> tuple[_IsWanted, ...]:
    return tuple(
        partial(_is_of, access=Access.SEQUENTIAL, read_percent=read_percent, block_size_bytes=size, single=None)
        for size in (MIB, 512 * KIB, 256 * KIB, 128 * KIB)
    )


# The figures are in the order of the matrix. The mixes are those of the PTS and of data sheets.
FIXED = (
    FixedFigure(key="random_read", use=Use.READS, measure=IOPS, loads=_random(100, single=None)),
    FixedFigure(key="random_write", use=Use.WRITES, measure=IOPS, loads=_random(0, single=None)),
    FixedFigure(key="random_mix", use=None, measure=IOPS, loads=_random(65, 70, 50, single=None)),
    FixedFigure(key="large_read", use=Use.LARGE_FILES, measure=THROUGHPUT, loads=_sequential(100)),
    FixedFigure(key="large_write", use=Use.LARGE_FILES, measure=THROUGHPUT, loads=_sequential(0)),
    FixedFigure(key="single_read", use=Use.SINGLE_READS, measure=LATENCY_MEAN, loads=_random(100, single=True)),
    FixedFigure(key="single_write", use=Use.LOG_WRITES, measure=percentile(99.9), loads=_random(0, single=True)),
)
KEPT_RATE_KEY = "kept_rate"
STREAM = -1
"""Index that marks a value as the rate of a stream. Such a value is used only if no test measured any of the loads of
the figure.
"""
MEASURES: dict[str, Measure] = {**{fixed.key: fixed.measure for fixed in FIXED}, KEPT_RATE_KEY: KEPT_RATE}
"""The measure of each figure, in the order of the matrix. The keys are those of the figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureValue:
    """A value of a run that a figure may use.

    Attributes:
        key: key of the figure.
        load: index of the workload among the loads of the figure, or ``STREAM``. The preferred load has the index 0.
        varying: keys of the axes in which the workloads of the section differ.
        cautions: cautions about the load, from the plan of the section.
        unranked: the reason why the value must not be ranked, or None if the value may be ranked.
        fills: for the kept rate of a stream (``KEPT_RATE``), the number of times that the stream filled the active
            range. None means that the number is not known, or that the value belongs to another figure.
    """

    key: str
    load: int
    test: str
    section: str
    part: str
    workload: Workload
    entry: Entry
    unranked: Unranked | None
    varying: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    fills: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigures:
    """The part of the results of a run that a ranking needs.

    Attributes:
        device: facts about the drive, keyed by the names in the run file.
        conditions: for each test and section with values, the conditions that must be equal before values are ranked.
        is_valid: whether the verdict on the run allows comparisons.
    """

    name: str
    uuid: str | None
    suite: str
    profile_name: str
    started_utc: str | None
    host: str | None
    device: Mapping[str, str | int | bool | None]
    is_simulated: bool
    is_valid: bool
    values: tuple[FigureValue, ...]
    conditions: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)

    def conditions_of(self, value: FigureValue) -> Mapping[str, str | None]:
        """Return the conditions of a value, including the load."""
        load = {"load": str(value.workload), "part": value.part or None, "cautions": ", ".join(value.cautions) or None}
        return {**self.conditions.get(join_place(value.test, value.section), {}), **load}


# Facts about the drive that a ranking or a list shows, or that distinguish drives.
_DEVICE = (
    *("kind", "model", "serial", "firmware", "capacity_bytes", "interface"),
    *("unit", "partition", "partition_start_bytes"),
)
_LONGEST = 200
_MOST_DEMANDS = 1000


def build_run_figures(result: RunResult) -> RunFigures:
    """Return the part of the results of a run that a ranking needs."""
    info = result.info
    values = tuple(find_values(result))
    facts = {name: _plain(info.device.get(name)) for name in _DEVICE}
    facts["form_factor"] = NO_USER_FACTS.with_those_of(info).of(FORM_FACTOR)
    used = {(value.test, value.section) for value in values}
    return RunFigures(
        name=info.name,
        uuid=info.uuid,
        suite=info.suite,
        profile_name=info.profile_name,
        started_utc=info.started_utc,
        host=_text(info.host.get("hostname")),
        device=facts,
        is_simulated=info.is_simulated,
        is_valid=is_comparable(result),
        values=values,
        conditions={
            join_place(test.name, section.name): find_value_conditions(result, test.name, section)
            for test in result.tests
            for section in test.sections
            if (test.name, section.name) in used
        },
    )


def is_comparable(result: RunResult) -> bool:
    """Return whether the verdict on a run allows a comparison of its values."""
    return judge_run(result).state is not VerdictState.NOT_VALID


def join_place(test: str, section: str) -> str:
    """Return the key with which the conditions of a section are stored in the conditions of a run."""
    return f"{test}\n{section}"


def _plain(value: object) -> str | int | bool | None:
    return value if isinstance(value, int) else _text(value)


def _text(value: object) -> str | None:
    return None if value is None else on_one_line(str(value))[:_LONGEST]


def find_values(result: RunResult) -> Iterator[FigureValue]:
    """Yield the values of a run that the figures may use, in the order of the sections."""
    length_bytes = result.info.active_range_length_bytes
    for test in result.tests:
        for section in test.sections:
            if not section.plan.prepares:
                yield from _of_cells(test.name, section)
                yield from _of_stream(test.name, section)
                yield from _of_kept_rate(test.name, section, length_bytes)


def _of_cells(test: str, section: SectionResult) -> Iterator[FigureValue]:
    if section.slices:
        return
    build = make_entry_builder(section)
    varying = tuple(axis.key for axis in find_axes(cell.workload for cell in section.cells))
    for fixed in FIXED:
        for load, is_wanted in enumerate(fixed.loads):
            wanted = dict.fromkeys(cell.workload for cell in section.cells if is_wanted(cell.workload))
            # The limit exceeds the number of workloads in any sweep. A limit is necessary, because the run file of
            # another user can contain any number.
            for workload in islice(wanted, _MOST_DEMANDS):
                entry = build(workload, fixed.measure)
                if entry.value is not None:
                    yield FigureValue(
                        key=fixed.key,
                        load=load,
                        test=test,
                        section=section.name,
                        part="",
                        workload=workload,
                        entry=entry,
                        unranked=find_reason(section, entry, steady=section.steady_of(workload)),
                        varying=varying,
                        cautions=section.plan.cautions,
                    )


def _of_stream(test: str, section: SectionResult) -> Iterator[FigureValue]:
    """Yield the rate of the steady level of a stream of writes. If the stream reached no steady level, yield the rate
    of the last quarter.
    """
    fixed = next(fixed for fixed in FIXED if fixed.use is Use.WRITES)
    workload = _find_workload(section)
    if workload is None or not fixed.loads[0](workload):
        return
    levels = dict(find_levels(section))
    phase = levels.get(STEADY_PART, find_last_quarter(section))
    entry = phase_entry(STEADY_PART if STEADY_PART in levels else LAST_PART, phase, IOPS)
    steady = STEADY_PART in levels or bool(section.steady)
    yield FigureValue(
        key=fixed.key,
        load=STREAM,
        test=test,
        section=section.name,
        part=LAST_PART,
        workload=workload,
        entry=entry,
        unranked=find_reason(section, entry, steady=steady),
    )


def _of_kept_rate(test: str, section: SectionResult, length_bytes: int | None) -> Iterator[FigureValue]:
    """Yield the rate in the last quarter of a stream of random writes, in percent of the rate fresh out of the box."""
    workload = _find_workload(section)
    if workload is None or not any(is_wanted(workload) for is_wanted in _random(0, single=None)):
        return
    fresh = next((found for found in section.characteristics if found.key == FRESH.key and found.value), None)
    last = phase_entry(LAST_PART, find_last_quarter(section), IOPS)
    if fresh is None or not fresh.value or last.value is None:
        return
    percent = 100 / fresh.value
    entry = Entry(
        value=percent * last.value,
        low=None if last.low is None else percent * last.low,
        high=None if last.high is None else percent * last.high,
        span=last.span,
        uncertainty=build_ratio(last.value, last.uncertainty, fresh.value, fresh.uncertainty, times=100),
        host_limited=last.host_limited,
        disturbances=last.disturbances,
    )
    written = section.slices[-1].total_written_bytes
    yield FigureValue(
        key=KEPT_RATE_KEY,
        load=0,
        test=test,
        section=section.name,
        part=LAST_PART,
        workload=workload,
        entry=entry,
        unranked=find_reason(section, entry, steady=None),
        fills=written / length_bytes if written and length_bytes else None,
    )


def _find_workload(section: SectionResult) -> Workload | None:
    """Return the workload of a stream. None means that the section is not a stream, or that it has too few slices."""
    return section.slices[0].values.workload if is_stream(section) else None


def find_reason(section: SectionResult, entry: Entry, *, steady: bool | None) -> Unranked | None:
    """Return the reason why a value must not be ranked, or None if the value may be ranked. ``steady`` is None if
    steady state was not judged.
    """
    if entry.value is None:
        return Unranked.NOT_MEASURED
    codes = set(entry.disturbances or ()) - set(OF_HISTORY)
    reasons = {
        Unranked.NOT_COMPLETE: not section.complete,
        Unranked.NOT_STEADY: steady is False,
        Unranked.DISTURBED: bool(codes - {DisturbanceCode.THROTTLED}),
        Unranked.THROTTLED: DisturbanceCode.THROTTLED in codes,
        Unranked.HOST_LIMITED: bool(entry.host_limited),
    }
    return next((reason for reason, applies in reasons.items() if applies), None)
