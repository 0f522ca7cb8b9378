"""The write saturation test of the PTS: how a purged device changes during uninterrupted writes."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar, Self

import msgspec

from tkperf.model.figures import (
    TAIL,
    WINDOW,
    Figure,
    FigureKind,
    SectionPlan,
    asking,
    distributed,
    drawn,
    plan_histogram_run,
    stream_latencies,
)
from tkperf.model.phases import Procedure, Purge
from tkperf.model.units import format_count, format_duration
from tkperf.model.workload import Access, Workload
from tkperf.procedures import building_blocks
from tkperf.procedures.building_blocks import (
    HISTOGRAM_SECTION,
    Stream,
    describe_enough,
    response_time_histogram,
    stream_outcome,
    stream_until,
    track_iops,
)
from tkperf.procedures.descriptor import Circumstances, Test
from tkperf.procedures.profiles import Profile
from tkperf.procedures.profiles.profile_tables import (
    LONGEST_S,
    MOST_SLICES,
    SLICE_LENGTH,
    BlockSizeKib,
    Depth,
    Jobs,
    Percent,
    Seconds,
    Slices,
    SteadyStateTable,
    TestTable,
    means,
)

SECTION = "Write Saturation"


class WriteSaturationTable(TestTable, frozen=True, kw_only=True):
    """The stream and its end conditions. If ``round_every_slices`` is 0, there is no steady-state rule, and the stream
    ends at its amount or its longest time.

    If ``histogram_s`` is 0, no run for a histogram follows. ``histogram_jobs`` and ``histogram_io_depth`` are the
    demand of the run for the histogram, if this demand differs from the demand of the stream.
    """

    key: ClassVar[str] = "write_saturation"

    block_size_kib: Annotated[BlockSizeKib, means("block size of the stream, in KiB")]
    read_percent: Annotated[Percent, means("R/W mix of the stream (share of reads, in %)")]
    slice_s: Annotated[Seconds, SLICE_LENGTH]
    max_slices: Annotated[Slices, means("maximum number of slices")]
    capacity_multiple: Annotated[
        float,
        msgspec.Meta(ge=1e-6, le=1e6),
        means("amount of written data at which the stream ends, as a multiple of the active range"),
    ]
    round_every_slices: Annotated[
        int,
        msgspec.Meta(ge=0, le=MOST_SLICES),
        means(
            "number n: tkperf judges steady state from every n-th slice, starting with the first; 0 means that "
            "tkperf does not judge steady state"
        ),
    ]
    access: Annotated[Access, means("order of addresses; default: random")] = Access.RANDOM
    histogram_s: Annotated[
        float,
        msgspec.Meta(ge=0, le=LONGEST_S),
        means("length of the histogram run after the stream, in s; default: 0, which means no histogram run"),
    ] = 0
    histogram_jobs: Annotated[
        Jobs | None, means("thread count (TC) of the histogram run; default: the value for the stream")
    ] = None
    histogram_io_depth: Annotated[
        Depth | None, means("queue depth of each thread (QD) of the histogram run; default: the value for the stream")
    ] = None

    def fault(self, profile: Profile) -> str | None:
        for name in ("histogram_jobs", "histogram_io_depth"):
            if getattr(self, name) is not None and not self.histogram_s:
                return f"{name}: without histogram_s there is no histogram run"
        return None

    def scaled(self, step_s: float) -> Self:
        """Return the table with a different duration of the slices. The longest time of the stream and the time between
        judged slices do not change.

        If a stream would have more slices than tkperf can plan, the stream ends earlier.
        """

        def as_many(slices: int) -> int:
            return min(MOST_SLICES, max(1, round(slices * self.slice_s / step_s)))

        every = self.round_every_slices
        return msgspec.structs.replace(
            self, slice_s=step_s, max_slices=as_many(self.max_slices), round_every_slices=every and as_many(every)
        )


def section_plan(name: str) -> SectionPlan:
    """Return the display plan of a section: the stream, or the run for the histogram."""
    if name == HISTOGRAM_SECTION:
        return plan_histogram_run(name)
    return SectionPlan(
        name=name,
        quantities=("iops", "latency_mean_us", TAIL),
        figures=(
            *asking(
                "How do IOPS change while the device is written?",
                *_over(FigureKind.OVER_TIME, "time"),
                drawn(FigureKind.SECONDS, "iops", view=("every second", "linear")),
                *_over(FigureKind.OVER_WRITTEN, "total written"),
                *_over(FigureKind.OVER_FILLS, "drive fills"),
            ),
            *stream_latencies("How long does an I/O take while the device is written?"),
            *WINDOW,
            *distributed(),
        ),
    )


def _over(kind: FigureKind, name: str) -> tuple[Figure, Figure]:
    """Return a linear and a logarithmic view of the IOPS. For the chart over drive fills, PTS 2.0 does not require both
    scales.
    """
    also = kind is not FigureKind.OVER_FILLS
    return (
        drawn(kind, "iops", view=(name, "linear"), printed=True),
        drawn(kind, "iops", log=True, view=(name, "logarithmic"), printed=also),
    )


def write_saturation(profile: Profile, active_range_bytes: int) -> Procedure:
    """Purge the drive, run one stream that is recorded in slices, and then record a histogram.

    The stream ends as soon as the multiple of the capacity is written, the longest time has passed, or the judged
    slices are steady. One slice in ``round_every_slices`` is judged (PTS-E 1.1: minutes 1, 31, 61 ...).
    """
    table = profile.table(WriteSaturationTable)
    workload = profile.workload(table.access, table.read_percent, table.block_size_kib)
    yield Purge(section=SECTION)
    stream = yield from stream_until(
        SECTION,
        track_iops(workload, str(workload)),
        slice_s=table.slice_s,
        max_slices=table.max_slices,
        rules=profile.steady_state,
        judge_every=table.round_every_slices or None,
        enough_bytes=table.capacity_multiple * active_range_bytes,
    )
    yield stream_outcome(SECTION, stream, _why_not_steady(stream, table, active_range_bytes))
    if table.histogram_s:
        histogram = yield from response_time_histogram(
            _of_histogram(table, workload), table.histogram_s, steady=stream.is_steady
        )
        yield histogram


def _of_histogram(table: WriteSaturationTable, workload: Workload) -> Workload:
    """Return the load of the stream, at the demand of the run for the histogram."""
    return replace(
        workload, jobs=table.histogram_jobs or workload.jobs, io_depth=table.histogram_io_depth or workload.io_depth
    )


def _why_not_steady(stream: Stream, table: WriteSaturationTable, active_range_bytes: int) -> str:
    if stream.written_bytes >= table.capacity_multiple * active_range_bytes:
        return describe_enough(stream, table.capacity_multiple)
    return f"longest time of {format_count(table.max_slices, 'slice')}"


def describe(profile: Profile, circumstances: Circumstances) -> tuple[str, ...]:
    table = profile.table(WriteSaturationTable)
    longest = format_duration(table.max_slices * table.slice_s)
    written = f"{table.capacity_multiple:g} × the active range is written"
    note = _compare_with_capacity(profile, table)
    workload = profile.workload(table.access, table.read_percent, table.block_size_kib)
    after = f"Then {_of_histogram(table, workload)} for {table.histogram_s:g} s: response time histogram"
    histogram = (after,) if table.histogram_s else ()
    stream = (
        f"    {workload.access.order} {table.block_size_kib:g} KiB, {table.read_percent} % reads, "
        f"{building_blocks.demand(profile)}, one unbroken stream, recorded in slices of {table.slice_s:g} s"
    )
    if not table.round_every_slices:
        ends = f"Until {written} or {longest} have passed:"
        return (*building_blocks.purge(circumstances), ends, stream, *note, *histogram)
    judged = building_blocks.judged_slices(table.slice_s, table.round_every_slices)
    return (
        *building_blocks.purge(circumstances),
        f"Until {written}, {longest} have passed, or steady state of {judged}:",
        stream,
        *note,
        f"Tracking variable: IOPS of {judged}",
        building_blocks.steady_state(profile),
        *histogram,
    )


def _compare_with_capacity(profile: Profile, table: WriteSaturationTable) -> tuple[str, ...]:
    """Return a comparison of the amount with the amount in the PTS, which is a multiple of the user capacity. If both
    amounts are equal, the result is empty.
    """
    used = profile.active_range
    if used.amount is not None or not used.length.endswith("%"):
        return ("    In the PTS, the amount refers to the user capacity, not to the active range",)
    capacities = table.capacity_multiple * float(used.length.removesuffix("%")) / 100
    if capacities == table.capacity_multiple:
        return ()
    return (
        f"    The PTS requires {table.capacity_multiple:g} × the user capacity, and this profile writes "
        f"{capacities:g} × the user capacity",
    )


TEST = Test(
    name="writesat",
    title="Write Saturation",
    source="PTS-E 1.1, write saturation test",
    suites=("ssd", "raid"),
    table=WriteSaturationTable,
    procedure=write_saturation,
    describe=describe,
    section_plan=section_plan,
    # The test needs no figures of the whole test, because it contains only the stream, and the charts of the stream
    # already show values over time.
    whole_test=lambda _sections: (),
    shared=(SteadyStateTable,),
    tracked=("iops",),
)
