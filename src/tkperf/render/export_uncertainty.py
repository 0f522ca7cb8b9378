"""Uncertainties as columns and rows of tables: half the interval next to each figure, all details in own rows."""

from __future__ import annotations

from collections.abc import Iterator

from tkperf.analysis.results import CellResult, SectionResult
from tkperf.analysis.uncertainty.estimate import Uncertainty
from tkperf.model.quantity import IOS, QUANTITIES, Direction, Measure
from tkperf.model.workload import Workload
from tkperf.render.export_workload import WORKLOAD, Row, workload_row

_UNCERTAIN = tuple(quantity for quantity in QUANTITIES.values() if quantity is not IOS)
# Half the width of the interval of 95 %, in the unit at the end of the name.
U95 = tuple(f"u95_{quantity.key}" for quantity in _UNCERTAIN)
UNCERTAINTY = (
    *WORKLOAD, "direction", "measure", "key", "unit", "value", "standard_uncertainty", "low_95", "high_95",
    "degrees_of_freedom", "basis", "lower_limit", "reason",
)  # fmt: skip


def u95_row(cell: CellResult, direction: Direction) -> Row:
    """Return half the interval of each quantity but the count; None: no interval, or one without an upper end."""
    of_cell = (cell.uncertainty_of(quantity, direction) for quantity in _UNCERTAIN)
    return tuple(None if known is None else known.expanded for known in of_cell)


def uncertainty_rows(section: SectionResult) -> Iterator[Row]:
    """Yield a row for each figure that has an uncertainty, or a reason to have none."""
    for cell in section.cells:
        mixed = 0 < cell.workload.read_percent < 100
        for direction in Direction if mixed else (Direction.ALL,):
            for quantity in QUANTITIES.values():
                known = cell.uncertainty_of(quantity, direction)
                if known is not None:
                    value = cell.value(quantity, direction)
                    yield _row(cell.workload, direction, quantity, value, known)
    for found in section.characteristics:
        if found.uncertainty is not None:
            yield _row(found.workload, Direction.ALL, found.measure, found.value, found.uncertainty)


def _row(
    workload: Workload,
    direction: Direction,
    measure: Measure,
    value: float | None,
    known: Uncertainty,
) -> Row:
    return (
        *workload_row(workload), direction.value, measure.label, measure.key, measure.unit_in_data, value,
        known.standard, known.low, known.high, known.degrees_of_freedom,
        known.basis and known.basis.value, known.at_least if known.known else None, known.reason,
    )  # fmt: skip
