"""Lay out results: the fields in which their workloads differ are the axes of tables.

Axes are found in the measured workloads, never declared: a matrix of mixes and block sizes, a grid of
threads and queue depths and a curve over offered rates are all the same structure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tkperf.model.units import NOT_MEASURED, format_block_size_kib, format_mix
from tkperf.model.workload import Access, Workload

Order = tuple[float, str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Axis:
    """A field of workloads.

    Attributes:
        key: its name in JSON and links.
        title: its head in a table, with the unit.
        text: returns its value for a workload.
        order: returns a key that sorts its values.
        words: returns its value in words that need no head, such as ``TC4``.
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


MIX = Axis(
    key="read_percent", title="R/W %",
    text=lambda work: format_mix(work.read_percent),
    order=lambda work: (-work.read_percent, ""),
    words=lambda work: f"R/W {format_mix(work.read_percent)}",
)  # fmt: skip
BLOCKS = Axis(
    key="block_size", title="Block size (KiB)", text=_blocks,
    order=lambda work: (work.mean_block_bytes, work.blocks_text),
    words=lambda work: work.blocks_name,
)  # fmt: skip
ACCESS = Axis(
    key="access", title="Access", text=lambda work: work.access.order,
    order=lambda work: (0, work.access), words=lambda work: work.access.order,
)  # fmt: skip
ZONES = Axis(
    key="zones", title="Zones (accesses/range, %)",
    text=lambda work: work.zones_text or "even",
    order=lambda work: (len(work.zones), work.zones_text),
    words=lambda work: f"zones {work.zones_text or 'even'}",
)  # fmt: skip
JOBS = Axis(
    key="jobs", title="TC", text=lambda work: str(work.jobs),
    order=lambda work: (work.jobs, ""), words=lambda work: f"TC{work.jobs}",
)  # fmt: skip
DEPTH = Axis(
    key="io_depth", title="QD", text=lambda work: str(work.io_depth),
    order=lambda work: (work.io_depth, ""), words=lambda work: f"QD{work.io_depth}",
)  # fmt: skip
OFFERED = Axis(
    key="offered_iops", title="Offered IOPS", text=_offered,
    order=lambda work: (work.offered_iops or float("inf"), work.arrival),
    words=lambda work: f"{_offered(work)} IOPS offered",
)  # fmt: skip
ARRIVAL = Axis(
    key="arrival", title="Arrival", text=lambda work: work.arrival.value,
    order=lambda work: (0, work.arrival), words=lambda work: work.arrival.value,
)  # fmt: skip
COMPRESSIBLE = Axis(
    key="compressible_percent", title="Compressible (%)", text=_compressible,
    order=lambda work: (work.compressible_percent or 0, ""),
    words=lambda work: f"{_compressible(work)} % compressible",
)  # fmt: skip
REGION = Axis(
    key="region", title="Region", text=lambda work: str(work.region or "all"),
    order=lambda work: (work.region.offset_bytes if work.region else -1, str(work.region)),
    words=lambda work: f"within {work.region}" if work.region else "all of the range",
)  # fmt: skip

# In the order in which a table's rows show them.
AXES = (
    ACCESS, BLOCKS, MIX, ZONES, COMPRESSIBLE, REGION, OFFERED, ARRIVAL, JOBS, DEPTH,
)  # fmt: skip
DEMAND_AXES = (OFFERED, ARRIVAL, JOBS, DEPTH)


def find_axes(workloads: Iterable[Workload]) -> tuple[Axis, ...]:
    """Return the fields in which these workloads differ."""
    several = list(workloads)
    return tuple(axis for axis in AXES if len({axis.order(work) for work in several}) > 1)


def listing_axes(workloads: Iterable[Workload]) -> tuple[Axis, ...]:
    """Return the fields that a list shows for each workload: block size and mix always, others if they differ."""
    varying = find_axes(workloads)
    return tuple(axis for axis in AXES if axis in varying or axis in (BLOCKS, MIX))


def comparable_axes(sections: Iterable[Iterable[Workload]]) -> tuple[Axis, ...]:
    """Return the fields that identify a workload's counterpart in another run's section.

    The kind of load must be the same. The demand must be the same only where a section has several
    demands: two runs with other thread counts can be compared, with a warning.
    """
    varying = {axis for section in sections for axis in find_axes(section)}
    return tuple(axis for axis in AXES if axis in varying or axis not in DEMAND_AXES)


def place_of(workload: Workload, axes: Sequence[Axis]) -> tuple[Order, ...]:
    """Return the position of a workload on these axes."""
    return tuple(axis.order(workload) for axis in axes)


def name_within(workload: Workload, axes: Sequence[Axis]) -> str:
    """Name a workload by the fields that distinguish it from the others of its section."""
    named = [axis for axis in axes if axis not in (MIX, BLOCKS)]
    # Mix and block size have the same form in tables and tracking variables.
    words = [workload.mix_and_size] if len(named) < len(axes) or not axes else []
    return " ".join((*words, *(axis.words(workload) for axis in named)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Workloads in rows and columns; ``at`` has None where the workload was not measured.

    Attributes:
        row_axes: the fields of the rows; a row shows the text of each.
        column_axis: the field of the columns.
        rows, columns: one workload for each, which represents the row's or column's values.
    """

    row_axes: tuple[Axis, ...]
    column_axis: Axis
    rows: tuple[Workload, ...]
    columns: tuple[Workload, ...]
    at: tuple[tuple[Workload | None, ...], ...]

    def row_text(self, workload: Workload) -> tuple[str, ...]:
        return tuple(axis.text(workload) for axis in self.row_axes)

    @property
    def row_titles(self) -> tuple[str, ...]:
        return tuple(axis.title for axis in self.row_axes)


def arrange(workloads: Iterable[Workload]) -> Layout:
    """Arrange workloads as a table, with mixes across and all other fields down.

    If the mixes do not differ and several fields do, the last of these is across, such as the queue depth.
    """
    several = list(dict.fromkeys(workloads))
    axes = find_axes(several)
    column = MIX
    if MIX not in axes and len(axes) > 1:
        column = axes[-1]
    row_axes = tuple(axis for axis in axes if axis is not column) or (BLOCKS,)

    def row_key(work: Workload) -> tuple[Order, ...]:
        return tuple(axis.order(work) for axis in row_axes)

    rows = {row_key(work): work for work in reversed(several)}
    columns = {column.order(work): work for work in reversed(several)}
    # Mixes keep the order in which they ran, because the specification has its own order for them.
    ordered = list(dict.fromkeys(column.order(work) for work in several))
    if column is not MIX:
        ordered.sort()
    by_keys = {(row_key(work), column.order(work)): work for work in several}
    return Layout(
        row_axes=row_axes,
        column_axis=column,
        rows=tuple(rows[key] for key in sorted(rows)),
        columns=tuple(columns[key] for key in ordered),
        at=tuple(
            tuple(by_keys.get((row, column_key)) for column_key in ordered) for row in sorted(rows)
        ),
    )


ORDERS = {Access.RANDOM: "random", Access.SEQUENTIAL: "sequential"}


def name_blocks(workload: Workload) -> str:
    """Return ``4 KiB``, ``12 block sizes``."""
    if workload.block_mix:
        return f"{len(workload.block_mix)} block sizes"
    return f"{format_block_size_kib(workload.block_size_bytes)} KiB"


def name_figure(workload: Workload) -> str:
    """Return ``4 KiB random write``: the label of a figure."""
    direction = {100: " read", 0: " write"}.get(
        workload.read_percent, f", {workload.read_percent} % reads"
    )
    of_sizes = "," if workload.block_mix else ""
    return f"{name_blocks(workload)}{of_sizes} {ORDERS[workload.access]}{direction}"
