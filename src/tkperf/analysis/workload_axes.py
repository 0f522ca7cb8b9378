"""Axes of results: the fields in which workloads differ.

The measured workloads determine the axes, so a test does not declare axes. A matrix of mixes and block sizes, a grid of
threads and queue depths, and a curve over offered rates therefore have the same structure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tkperf.model.units import NOT_MEASURED, format_block_size_kib, format_mix
from tkperf.model.workload import NAME_OF_TOTAL, SUFFIX_OF_FLUSHES, Workload

Order = tuple[float, str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WorkloadAxis:
    """A field of workloads.

    Attributes:
        key: the name of the field in JSON and links.
        title: the table heading of the field, with the unit.
        text: the function that returns the value of the field for a workload, as text.
        order: the function that returns a sort key for the value of a workload.
        words: the function that returns the value in words that are clear without a table heading, such as ``TC4``.
    """

    key: str
    title: str
    text: Callable[[Workload], str]
    order: Callable[[Workload], Order]
    words: Callable[[Workload], str]


def _blocks(work: Workload) -> str:
    return work.blocks_name if work.block_mix else format_block_size_kib(work.block_size_bytes)


def _offered(work: Workload) -> str:
    return NOT_MEASURED if work.offered_iops is None else f"{work.offered_iops:,.6g}"


def _compressible(work: Workload) -> str:
    return "0" if work.compressible_percent is None else str(work.compressible_percent)


def _mix(work: Workload) -> str:
    if work.flushes:
        return "flushes"
    return "trims" if work.trims else format_mix(work.read_percent)


def _arrival(work: Workload) -> str:
    return NOT_MEASURED if work.together and work.offered_iops is None else work.arrival.value


def _burst(work: Workload) -> str:
    return "none" if work.burst is None else f"{work.burst.pause_s:g} s after {work.burst.ios:,}"


def name_stream(work: Workload) -> str:
    """Return the name of a stream of a combination. The result is ``all`` for the combination itself, and a dash for a
    single load.
    """
    if not work.together:
        return NOT_MEASURED
    return NAME_OF_TOTAL if work.is_combination else f"{work.stream}{SUFFIX_OF_FLUSHES if work.flushes else ''}"


STREAM = WorkloadAxis(
    key="stream", title="Stream", text=name_stream, order=lambda work: (0, name_stream(work)), words=name_stream
)


def _name_others(work: Workload) -> str:
    """Return the names of all streams of the combination. For a single load, return a dash."""
    return " + ".join(stream.name for stream in work.together) or NOT_MEASURED


COMBINATION = WorkloadAxis(
    key="together",
    title="Together",
    text=_name_others,
    order=lambda work: (len(work.together), _name_others(work) if work.together else ""),
    words=_name_others,
)
MIX = WorkloadAxis(
    key="read_percent",
    title="R/W %",
    text=_mix,
    order=lambda work: (-work.read_percent, _mix(work) if work.trims or work.flushes else ""),
    words=lambda work: _mix(work) if work.trims or work.flushes else f"R/W {_mix(work)}",
)
BLOCKS = WorkloadAxis(
    key="block_size",
    title="Block size (KiB)",
    text=_blocks,
    order=lambda work: (work.mean_block_bytes, work.blocks_text),
    words=lambda work: work.blocks_name,
)
ACCESS = WorkloadAxis(
    key="access",
    title="Access",
    text=lambda work: work.access.order,
    order=lambda work: (0, work.access),
    words=lambda work: work.access.order,
)
ZONES = WorkloadAxis(
    key="zones",
    title="Zones (accesses/range, %)",
    text=lambda work: work.zones_text or "even",
    order=lambda work: (len(work.zones), work.zones_text),
    words=lambda work: f"zones {work.zones_text or 'even'}",
)
JOBS = WorkloadAxis(
    key="jobs",
    title="TC",
    text=lambda work: str(work.jobs),
    order=lambda work: (work.jobs, ""),
    words=lambda work: f"TC{work.jobs}",
)
DEPTH = WorkloadAxis(
    key="io_depth",
    title="QD",
    text=lambda work: str(work.io_depth),
    order=lambda work: (work.io_depth, ""),
    words=lambda work: f"QD{work.io_depth}",
)
OFFERED = WorkloadAxis(
    key="offered_iops",
    title="Offered IOPS",
    text=_offered,
    order=lambda work: (work.offered_iops or float("inf"), work.arrival),
    words=lambda work: f"{_offered(work)} IOPS offered",
)
ARRIVAL = WorkloadAxis(
    key="arrival",
    title="Arrival",
    text=_arrival,
    order=lambda work: (0, work.arrival),
    words=lambda work: work.arrival.value,
)
COMPRESSIBLE = WorkloadAxis(
    key="compressible_percent",
    title="Compressible (%)",
    text=_compressible,
    order=lambda work: (work.compressible_percent or 0, ""),
    words=lambda work: f"{_compressible(work)} % compressible",
)
RANDOM_SHARE = WorkloadAxis(
    key="random_percent",
    title="Random (%)",
    text=lambda work: NOT_MEASURED if work.random_percent is None else str(work.random_percent),
    order=lambda work: (100 if work.random_percent is None else work.random_percent, ""),
    words=lambda work: "" if work.random_percent is None else f"{work.random_percent} % random",
)
BURST = WorkloadAxis(
    key="burst",
    title="Pause (after I/Os)",
    text=_burst,
    order=lambda work: (work.burst.ios if work.burst else 0, _burst(work)),
    words=lambda work: f"pauses {_burst(work)}",
)
FLUSH = WorkloadAxis(
    key="flush_every",
    title="Flush after writes",
    text=lambda work: NOT_MEASURED if work.flush_every is None else str(work.flush_every),
    order=lambda work: (work.flush_every or 0, ""),
    words=lambda work: "no flushes" if work.flush_every is None else f"a flush after {work.flush_every:,}",
)
REGION = WorkloadAxis(
    key="region",
    title="Region",
    text=lambda work: str(work.region or "all"),
    order=lambda work: (work.region.offset_bytes if work.region else -1, str(work.region)),
    words=lambda work: f"within {work.region}" if work.region else "all of the range",
)

# The axes are in the order in which a table shows them.
AXES = (
    COMBINATION,
    STREAM,
    ACCESS,
    BLOCKS,
    MIX,
    ZONES,
    RANDOM_SHARE,
    COMPRESSIBLE,
    REGION,
    OFFERED,
    ARRIVAL,
    BURST,
    FLUSH,
    JOBS,
    DEPTH,
)
DEMAND_AXES = (OFFERED, ARRIVAL, JOBS, DEPTH)


def find_axes(workloads: Iterable[Workload]) -> tuple[WorkloadAxis, ...]:
    """Return the fields in which these workloads differ."""
    several = list(workloads)
    if any(work.together for work in several):
        combinations = (COMBINATION,) if _differs(COMBINATION, several) else ()
        streams = [work for work in several if work.stream]
        others = (axis for axis in AXES if axis not in (COMBINATION, STREAM) and _differs(axis, streams))
        return (*combinations, STREAM, *others)
    return tuple(axis for axis in AXES if _differs(axis, several))


def _differs(axis: WorkloadAxis, works: Sequence[Workload]) -> bool:
    return len({axis.order(work) for work in works}) > 1


def text_on(axis: WorkloadAxis, work: Workload) -> str:
    """Return the value of a field for a table. For a combination, the result is a dash unless the field describes the
    combination itself.
    """
    return NOT_MEASURED if work.is_combination and axis not in (COMBINATION, STREAM) else axis.text(work)


def comparable_axes(sections: Iterable[Iterable[Workload]]) -> tuple[WorkloadAxis, ...]:
    """Return the fields that identify corresponding workloads in the sections of several runs.

    Corresponding workloads have the same kind of load. The demand of these workloads must be the same only if a section
    has several demands. Two runs with different thread counts can be compared, with a warning. The part of the range
    that a load uses must also be the same only if a section has several such parts, because the same share of two
    drives of different sizes is a different number of bytes. Streams are identified by their names.
    """
    several = [list(section) for section in sections]
    varying = {axis for section in several for axis in find_axes(section) if axis is not REGION}
    if any(_differs(REGION, [work for work in section if not work.together]) for section in several):
        varying.add(REGION)
    return tuple(axis for axis in AXES if axis in varying or axis not in (*DEMAND_AXES, REGION))


def place_of(workload: Workload, axes: Sequence[WorkloadAxis]) -> tuple[Order, ...]:
    """Return the values of a workload on these axes as a key, which is used for sorting and comparison."""
    return tuple(axis.order(workload) for axis in axes)
