"""Descriptions of a workload file in words, and the display plans of its sections."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from tkperf.model.choices import prepares
from tkperf.model.figures import (
    SETTLED,
    TAIL,
    WINDOW,
    Figure,
    FigureKind,
    SectionPlan,
    asking,
    distributed,
    drawn,
    generic_section,
    matrices,
    over_rounds,
    percentile_keys,
    stream_latencies,
)
from tkperf.model.quantity import QUANTITIES
from tkperf.model.reported_percentiles import PercentileUse
from tkperf.model.units import capital, format_count, format_duration, format_mix
from tkperf.procedures import building_blocks
from tkperf.procedures.descriptor import Circumstances
from tkperf.procedures.own_workloads.parts import (
    FillPhase,
    IdlePhase,
    Load,
    PurgePhase,
    RoundsPhase,
    StreamPhase,
    workload_of,
)
from tkperf.procedures.own_workloads.workload_file import OwnWorkloadTable
from tkperf.procedures.profiles import Profile

_LATENCIES = ("latency_mean_us", *percentile_keys(PercentileUse.STEPS), "latency_max_us")
_BEHIND = ("backlog_ios", "behind_us", "latency_with_wait_us")
_LOOPS = {
    "read_percent": "R/W mix",
    "block_size_kib": "block size in KiB",
    "jobs": "TC",
    "io_depth": "QD",
    "offered_iops": "IOPS offered",
    "compressible_percent": "compressible share of the data in %",
}
# The names of the axes in results, for the keys of loads that have other names.
_AXES = {"block_size_kib": "block_size"}


def describe(table: OwnWorkloadTable, profile: Profile, circumstances: Circumstances) -> tuple[str, ...]:
    """Return a description of the test, phase by phase."""
    rules = profile.with_tables(table.rules(profile))
    lines = [f"Not a test of a specification, but the user's own: {table.source}"]
    judged = False
    for phase in table.phases:
        match phase:
            case PurgePhase():
                lines += building_blocks.purge(circumstances)
            case FillPhase():
                lines.append(_describe_fill(phase, table, profile, circumstances))
            case IdlePhase():
                lines.append(f"No I/O for {format_duration(phase.idle_s)}")
            case RoundsPhase():
                lines += _describe_rounds(phase, table, rules)
                judged = judged or bool(phase.tracked)
            case StreamPhase():
                lines += _describe_stream(phase, table, rules)
                judged = judged or phase.tracked is not None
    return (*lines, building_blocks.steady_state(rules)) if judged else tuple(lines)


def _describe_fill(phase: FillPhase, table: OwnWorkloadTable, profile: Profile, circumstances: Circumstances) -> str:
    load = None
    if phase.load is not None:
        given = table.loads[phase.load]
        load = f"SEQ {given.block_size_kib:g} KiB writes, {building_blocks.demand(profile, given.jobs, given.io_depth)}"
        if given.compressible_percent:
            load += f", {given.compressible_percent} % compressible"
    return building_blocks.preconditioning(profile, circumstances, load, passes=phase.passes)


def _describe_rounds(phase: RoundsPhase, table: OwnWorkloadTable, profile: Profile) -> Iterator[str]:
    yield f"{phase.section}:"
    if phase.warm_up_rounds:
        yield f"    {format_count(phase.warm_up_rounds, 'warm-up round')}, kept apart, then"
    yield f"    {_how_many(phase, profile)}:"
    if phase.idle_s is not None:
        yield f"        No I/O for {phase.idle_s:g} s"
    for level, loop in enumerate(phase.loops, start=2):
        values = ", ".join(_value_words(loop.key, value) for value in loop.values)
        yield f"{'    ' * level}For {_LOOPS[loop.key]} {values}:"
    looped = {loop.key for loop in phase.loops}
    if phase.together:
        yield f"        At the same time, {phase.step_s:g} s:"
        yield from _describe_together(phase.together, table, profile, "            ")
    for name in phase.loads:
        words = describe_load(table.loads[name], profile, looped)
        yield f"{'    ' * (2 + len(phase.loops))}{name}: {words}, {phase.step_s:g} s"
    for tracked in phase.tracked:
        at = ", ".join(f"{_LOOPS[key]} {_value_words(key, value)}" for key, value in tracked.at.items())
        alone = phase.loads[0] if phase.loads else "all streams"
        of = f"{tracked.load or alone}{f' at {at}' if at else ''}"
        yield f"    Tracking variable: {QUANTITIES[tracked.quantity].title} of {of}"


def _describe_together(names: Sequence[str], table: OwnWorkloadTable, profile: Profile, indent: str) -> Iterator[str]:
    for name in names:
        load = table.loads[name]
        delay = f", begins after {load.delay_s:g} s" if load.delay_s else ""
        yield f"{indent}{name}: {describe_load(load, profile)}{delay}"


def _value_words(key: str, value: float) -> str:
    return format_mix(round(value)) if key == "read_percent" else f"{value:g}"


def _how_many(phase: RoundsPhase, profile: Profile) -> str:
    if phase.rounds is not None:
        return format_count(phase.rounds, "round")
    return building_blocks.at_most_rounds(profile).removesuffix(":")


def _describe_stream(phase: StreamPhase, table: OwnWorkloadTable, profile: Profile) -> Iterator[str]:
    ends = [f"{format_duration(phase.slices * phase.slice_s)} have passed"]
    if phase.written_multiple is not None:
        ends.insert(0, f"{phase.written_multiple:g} × the active range is written")
    judged = building_blocks.judged_slices(phase.slice_s, phase.judged_every)
    if phase.tracked is not None:
        ends.append(f"steady state of {judged}")
    yield f"{phase.section}, until {' or '.join(ends)}:"
    recorded = f"recorded in slices of {phase.slice_s:g} s"
    if phase.warm_up_slices:
        warm_up = format_duration(phase.warm_up_slices * phase.slice_s)
        recorded += f", the first {warm_up} kept apart as warm-up"
    if phase.load is None:
        yield f"    At the same time, one unbroken stream, {recorded}:"
        yield from _describe_together(phase.together, table, profile, "        ")
    else:
        words = describe_load(table.loads[phase.load], profile)
        yield f"    {phase.load}: {words}, one unbroken stream, {recorded}"
    if phase.tracked is not None:
        yield f"    Tracking variable: {QUANTITIES[phase.tracked].title} of {judged}"


def describe_load(load: Load, profile: Profile, looped: Collection[str] = ()) -> str:
    """Return a description of a load, such as ``RND 8k 90 % + 64k 10 %, R/W 70/30, TC 4 / QD 32``. The keys in
    ``looped`` are omitted, because loops change their values.
    """
    any_range_bytes = 1 << 60
    workload = workload_of(load, profile, any_range_bytes)
    words = [workload.access.order if "block_size_kib" in looped else f"{workload.access.order} {workload.blocks_text}"]
    if load.trims:
        words.append("trims")
    elif "read_percent" not in looped:
        words.append(f"R/W {format_mix(load.read_percent)}")
    words += _describe_demand(load, profile, looped)
    if load.zone_shares:
        words.append(f"accesses/range in % {workload.zones_text}")
    if load.range_text:
        words.append(f"within {load.range_text} of the range")
    if load.offered_iops is not None and "offered_iops" not in looped:
        arrival = building_blocks.describe_arrival(load.arrival)
        words.append(f"{load.offered_iops:,.6g} IOPS offered {arrival}")
    if load.offered_megabytes_per_s is not None:
        words.append(f"{load.offered_megabytes_per_s:g} MB/s offered")
    words += workload.kind_texts
    if load.compressible_percent and "compressible_percent" not in looped:
        words.append(f"{load.compressible_percent} % compressible")
    return ", ".join(words)


def _describe_demand(load: Load, profile: Profile, looped: Collection[str]) -> Iterator[str]:
    if "jobs" in looped or "io_depth" in looped:
        if "jobs" not in looped:
            yield f"TC {load.jobs or profile.demand.jobs}"
        if "io_depth" not in looped:
            yield f"QD {load.io_depth or profile.demand.io_depth}"
    else:
        depth = (load.io_depth or 1) if load.trims or load.flush_every else load.io_depth
        yield building_blocks.demand(profile, load.jobs, depth)


def plan_section(table: OwnWorkloadTable, name: str) -> SectionPlan:
    """Return the display plan of a section. If the file does not contain the section, the plan shows the
    recorded data.
    """
    phase = next((phase for phase in table.measuring if phase.section == name), None)
    match phase:
        case RoundsPhase():
            return _plan_rounds(phase, table)
        case StreamPhase():
            return _plan_stream(phase, table)
        case None:
            return generic_section(name)


def _plan_rounds(phase: RoundsPhase, table: OwnWorkloadTable) -> SectionPlan:
    tracked = tuple(dict.fromkeys(variable.quantity for variable in phase.tracked))
    offered = any(loop.key == "offered_iops" for loop in phase.loops) or any(
        _is_offered(table.loads[name]) for name in (*phase.loads, *phase.together)
    )
    behind = _BEHIND if offered else ()
    figures: list[Figure] = []
    if phase.loops:
        figures += matrices("iops", "megabytes_per_s", "latency_mean_us", TAIL, *behind)
    listed = ("iops", "megabytes_per_s", *behind, *_LATENCIES)
    figures.append(drawn(FigureKind.LISTING, *listed, title="Every step"))
    figures += asking("What is the effect of each loop?", *_over_loops(phase))
    figures += asking(
        SETTLED,
        *(
            over_rounds(
                key,
                f"{capital(QUANTITIES[key].label)} over rounds",
                log=bool(phase.loops),
                view=(QUANTITIES[key].label,),
                printed=True,
            )
            for key in (tracked or ("iops",))
        ),
    )
    figures += WINDOW if tracked else ()
    quantities = dict.fromkeys((*tracked, "iops", "latency_mean_us", TAIL, *(_OF_STREAMS if phase.together else ())))
    return SectionPlan(
        name=phase.section, quantities=tuple(quantities), figures=tuple(figures), prepares=prepares(phase.section)
    )


# Quantities that reports and comparisons show for each stream in addition to the main quantity.
_OF_STREAMS = ("megabytes_per_s", "p99_us")


def _is_offered(load: Load) -> bool:
    return load.offered_iops is not None or load.offered_megabytes_per_s is not None


def _over_loops(phase: RoundsPhase) -> Iterator[Figure]:
    """Yield figures of IOPS and mean latency over the key of each loop."""
    for loop in phase.loops:
        axis, over = _AXES.get(loop.key, loop.key), f"over {loop.key.replace('_', ' ')}"
        yield drawn(FigureKind.OVER_AXIS, "iops", axis=axis, view=("IOPS", over), printed=True)
        yield drawn(FigureKind.OVER_AXIS, "latency_mean_us", axis=axis, log=True, view=("latency", over), printed=True)


def _plan_stream(phase: StreamPhase, table: OwnWorkloadTable) -> SectionPlan:
    loads = [table.loads[name] for name in (phase.together if phase.load is None else (phase.load,))]
    behind = _BEHIND if any(map(_is_offered, loads)) else ()
    first = phase.tracked or "iops"
    rates = [
        drawn(FigureKind.OVER_TIME, key, view=(f"{QUANTITIES[key].label} over time",), printed=True)
        for key in dict.fromkeys((first, "iops"))
    ]
    if any(load.read_percent < 100 and not load.trims for load in loads):
        over = f"{QUANTITIES[first].label} over total written"
        rates.append(drawn(FigureKind.OVER_WRITTEN, first, view=(over,)))
    quantities = dict.fromkeys((first, "iops", "latency_mean_us", TAIL, *(_OF_STREAMS if phase.together else ())))
    return SectionPlan(
        name=phase.section,
        quantities=tuple(quantities),
        figures=(
            drawn(FigureKind.LISTING, "iops", "megabytes_per_s", *behind, *_LATENCIES, title="The stream"),
            *asking(
                "How does the stream change?", *rates, drawn(FigureKind.SECONDS, "iops", view=("IOPS of every second",))
            ),
            *stream_latencies("How long does an I/O take over time?"),
            *(WINDOW if phase.tracked is not None else ()),
            *distributed(),
        ),
        prepares=prepares(phase.section),
    )
