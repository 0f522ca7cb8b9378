"""The uncertainty of every figure of a section's cells, from the steps that they are of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tkperf.analysis.cell_results import find_window_steps, is_whole_stream
from tkperf.analysis.results import CellResult, CellUncertainty, SectionResult
from tkperf.analysis.uncertainty.estimate import (
    COUNT,
    EXTREME,
    Basis,
    Uncertainties,
    Uncertainty,
)
from tkperf.analysis.uncertainty.means import (
    latencies_within,
    rates_within,
    uncertainty_of_mean,
)
from tkperf.analysis.uncertainty.percentiles import uncertainties_of_percentiles
from tkperf.analysis.uncertainty.series import Spread
from tkperf.measurement import Measurement
from tkperf.quantity import (
    CPU,
    IOPS,
    IOS,
    LATENCY_MEAN,
    PERCENTILES,
    QUANTITIES,
    THROUGHPUT,
    Direction,
    Quantity,
    Window,
)
from tkperf.record import StepRecord
from tkperf.seconds import Seconds, join
from tkperf.workload import Workload

NOT_LEVEL = "the rate was not level over the whole stream: a mean of phases, not of chance"
DIRECTION_ONCE = "measured once: of seconds reads and writes are not looked at apart"
_LATENCY_STEP_US = 0.001  # fio's clock


def with_uncertainty(
    section: SectionResult, steps: Sequence[StepRecord], seconds: Mapping[int, Seconds]
) -> SectionResult:
    """The section, each of its cells with the uncertainties of its figures.

    Args:
        steps: of the section.
        seconds: of each step, by its ``id``; of those not kept there are none.
    """
    of_cells = find_window_steps(steps, section.window)
    whole = is_whole_stream(steps, section.window)
    return replace(
        section,
        cells=tuple(
            replace(
                cell,
                uncertainty=_of_cell(section, cell, of_cells[cell.workload], seconds, whole=whole),
            )
            if cell.workload in of_cells
            else cell
            for cell in section.cells
        ),
    )


def _of_cell(
    section: SectionResult,
    cell: CellResult,
    steps: Sequence[StepRecord],
    seconds: Mapping[int, Seconds],
    *,
    whole: bool,
) -> CellUncertainty:
    kept = [seconds[id(step)] for step in steps if len(seconds.get(id(step), ()))]
    pieces = kept if len(kept) == len(steps) else []
    if whole and pieces:
        pieces = [join(pieces, [0.0] * len(pieces))]
    level = not (whole and _changes(section, cell.workload))
    within = _within(pieces) if level else {}
    measurements = [step.measurement for step in steps]
    mixed = 0 < cell.workload.read_percent < 100

    def of(direction: Direction) -> Uncertainties:
        window = Window(rounds=measurements, workload=cell.workload, direction=direction)
        apart = mixed and direction is not Direction.ALL
        return dict(
            _of_figures(
                cell,
                window,
                {} if apart else within,
                whole=whole,
                level=level,
                areas=section.areas is not None,
            )
        )

    return CellUncertainty(
        all=of(Direction.ALL),
        read=of(Direction.READ) if mixed else None,
        write=of(Direction.WRITE) if mixed else None,
    )


def _changes(section: SectionResult, workload: Workload) -> bool:
    return any(timeline.changes for timeline in section.timelines if timeline.workload == workload)


def _within(pieces: Sequence[Seconds]) -> dict[str, Spread | None]:
    """By what the seconds of each round do; none where a round has no seconds."""
    if not pieces:
        return {}
    return {
        IOPS.key: rates_within(pieces, IOPS.key),
        THROUGHPUT.key: rates_within(pieces, THROUGHPUT.key),
        LATENCY_MEAN.key: latencies_within(pieces),
    }


def _of_figures(
    cell: CellResult,
    window: Window,
    within: Mapping[str, Spread | None],
    *,
    whole: bool,
    level: bool,
    areas: bool,
) -> Iterator[tuple[str, Uncertainty]]:
    direction = window.direction
    percentiles: dict[Quantity, Uncertainty | None] = {}
    if any(cell.value(quantity, direction) is not None for quantity in PERCENTILES):
        histograms = [] if areas else [stats.histogram for stats in window.stats]
        basis = Basis.SLICES if whole else Basis.ROUNDS
        found = uncertainties_of_percentiles(window.merged, histograms, basis)
        percentiles = dict(zip(PERCENTILES, found, strict=True))
    for quantity in QUANTITIES.values():
        value = cell.value(quantity, direction)
        if value is None:
            continue
        if not level:
            known = Uncertainty(reason=NOT_LEVEL)
        elif quantity in percentiles:
            known = percentiles[quantity] or Uncertainty(reason=EXTREME)
        elif quantity.of_rounds is not None:
            rounds = [] if whole else quantity.of_rounds(window)
            known = uncertainty_of_mean(
                value,
                rounds,
                within.get(quantity.key),
                _step(quantity, window, whole),
                alike=not areas,
            )
            if not known.known and direction is not Direction.ALL:
                known = Uncertainty(reason=DIRECTION_ONCE)
        else:
            known = Uncertainty(reason=COUNT if quantity is IOS else EXTREME)
        yield quantity.key, known


def _step(quantity: Quantity, window: Window, whole: bool) -> float:
    """What the mean is resolved to: of rates one I/O more or less in each round."""
    if quantity is LATENCY_MEAN:
        return _LATENCY_STEP_US
    if quantity is CPU:
        return 0.0
    rounds: Sequence[Measurement] = window.rounds
    total_s = sum(measurement.duration_s for measurement in rounds)
    one = 1.0 if quantity is IOPS else window.workload.block_size_bytes / 1e6
    return one / total_s * (1 if whole else len(rounds) ** 0.5)
