"""Demands chosen from the measurements of a grid; pure arithmetic on the window's means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tkperf.model.phases import RoundAnswer
from tkperf.model.quantity import IOPS, LATENCY_MEAN, Window
from tkperf.model.units import format_number
from tkperf.model.workload import Workload


class DemandPoint(StrEnum):
    """Demands for the response time histograms of the PTS, in its order."""

    MAXIMUM = "Maximum"
    MIDDLE = "Middle"
    MINIMUM = "Minimum"


@dataclass(frozen=True, slots=True, kw_only=True)
class CellMeans:
    """A workload with the means of the window's rounds, as a report's cell shows them.

    ``latency_mean_us`` is None if no I/O completed.
    """

    workload: Workload
    iops: float
    latency_mean_us: float | None

    def __str__(self) -> str:
        """Return ``TC 4 / QD 16: 123,456 IOPS, mean 1,036 µs``."""
        work, mean = self.workload, format_number(self.latency_mean_us)
        return f"TC {work.jobs} / QD {work.io_depth}: {format_number(self.iops)} IOPS, mean {mean} µs"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandPoints:
    """The chosen points; ``all_above_ceiling``: no cell was below the latency ceiling, so it had no effect."""

    at: Mapping[DemandPoint, CellMeans]
    all_above_ceiling: bool

    def __str__(self) -> str:
        points = "; ".join(f"{point.lower()} at {cell}" for point, cell in self.at.items())
        return f"{points}{'; every cell above the ceiling' if self.all_above_ceiling else ''}"


def window_means(rounds: Sequence[RoundAnswer]) -> tuple[CellMeans, ...]:
    """Return each workload's means over the rounds of a window, in the order of a round.

    Raises:
        ValueError: there is no round.
    """
    if not rounds:
        raise ValueError("a demand is chosen from measured rounds")
    return tuple(
        CellMeans(workload=workload, iops=IOPS.combine(window) or 0.0, latency_mean_us=LATENCY_MEAN.combine(window))
        for workload in rounds[0]
        for measured in (tuple(result[workload] for result in rounds),)
        for window in (Window(rounds=measured, workload=workload),)
    )


def choose_points(cells: Sequence[CellMeans], ceiling_us: float) -> DemandPoints:
    """Choose the points of DIRTH and CBW.

    Only cells with a mean latency below the ceiling count; if there are none, all cells count. Minimum is the
    least demand of all cells. Maximum is the counting cell with the highest IOPS. Middle is the counting cell
    with the IOPS nearest to half-way between maximum and minimum. Of equal cells the least demand is chosen.

    Raises:
        ValueError: there is no cell.
    """
    if not cells:
        raise ValueError("points are chosen from measured cells")
    ordered = sorted(cells, key=_demand)
    below = [cell for cell in ordered if cell.latency_mean_us is not None and cell.latency_mean_us < ceiling_us]
    considered = below or ordered
    minimum = ordered[0]
    maximum = max(considered, key=lambda cell: cell.iops)
    half_way = (maximum.iops + minimum.iops) / 2
    middle = min(considered, key=lambda cell: abs(cell.iops - half_way))
    at = {DemandPoint.MAXIMUM: maximum, DemandPoint.MIDDLE: middle, DemandPoint.MINIMUM: minimum}
    return DemandPoints(at=at, all_above_ceiling=not below)


def choose_saturating(cells: Sequence[CellMeans], within_percent: float) -> tuple[CellMeans, CellMeans]:
    """Return the least demand with IOPS within so many percent of the best, and the best.

    The least demand has the fewest outstanding I/Os; of equal ones, the fewest threads.

    Raises:
        ValueError: there is no cell.
    """
    if not cells:
        raise ValueError("a demand is chosen from measured cells")
    ordered = sorted(cells, key=_demand)
    best = max(ordered, key=lambda cell: cell.iops)
    enough = best.iops * (1 - within_percent / 100)
    return next(cell for cell in ordered if cell.iops >= enough), best


def _demand(cell: CellMeans) -> tuple[int, int]:
    return cell.workload.total_outstanding_ios, cell.workload.jobs
