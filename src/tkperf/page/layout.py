"""Layout of results as tables: workloads in rows and columns, by the axes in which they differ."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tkperf.analysis.axes import AXES, BLOCKS, MIX, Order, WorkloadAxis, find_axes
from tkperf.model.workload import Workload


def listing_axes(workloads: Iterable[Workload]) -> tuple[WorkloadAxis, ...]:
    """Return the fields that a list shows for each workload: block size and mix always, others if they differ."""
    varying = find_axes(workloads)
    return tuple(axis for axis in AXES if axis in varying or axis in (BLOCKS, MIX))


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Workloads in rows and columns; ``at`` has None where the workload was not measured.

    Attributes:
        row_axes: the fields of the rows; a row shows the text of each.
        column_axis: the field of the columns.
        rows, columns: one workload for each, which represents the row's or column's values.
    """

    row_axes: tuple[WorkloadAxis, ...]
    column_axis: WorkloadAxis
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
