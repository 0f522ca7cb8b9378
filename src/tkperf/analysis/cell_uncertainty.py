"""Uncertainty of every figure in the cells of a section, computed from the steps of the cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tkperf.analysis.results import CellResult, CellUncertainty, SectionResult
from tkperf.analysis.section_results import find_window_steps, is_whole_stream
from tkperf.analysis.timeline.series import has_idle
from tkperf.analysis.uncertainty.estimate import COUNT, EXTREME, Basis, Uncertainties, Uncertainty
from tkperf.analysis.uncertainty.means import latencies_within, rates_within, uncertainty_of_mean
from tkperf.analysis.uncertainty.percentiles import uncertainties_of_percentiles
from tkperf.analysis.uncertainty.spread import Spread
from tkperf.model.histogram import Histogram
from tkperf.model.measurement import Seconds, join
from tkperf.model.quantity import (
    CPU,
    IOPS,
    IOS,
    LATENCY_MEAN,
    LATENCY_WITH_WAIT,
    PERCENTILES,
    QUANTITIES,
    THROUGHPUT,
    Direction,
    Quantity,
    Window,
)
from tkperf.model.record import StepPlace, StepRecord
from tkperf.model.workload import Workload

NOT_LEVEL = "the rate changed during the stream, so the mean is one of several phases"
DIRECTION_ONCE = "measured once, and seconds do not keep reads and writes apart"
_LATENCY_STEP_US = 0.001  # resolution of the latencies that fio reports, in µs
_WHY_NONE = {IOS: COUNT, LATENCY_WITH_WAIT: "found from counts of each second, not I/O by I/O"}

SecondsOfSteps = Mapping[StepPlace, Seconds]


def find_seconds(step: StepRecord, seconds: SecondsOfSteps) -> Seconds:
    """Return the one-second samples of a step, or of a part of a step. If the samples were not stored, the result is
    empty.
    """
    return seconds.get(step.place, Seconds()).of(step.workload)


def needs_seconds(section: SectionResult, steps: Sequence[StepRecord]) -> bool:
    """Return whether tkperf needs the one-second samples to compute the uncertainty of a figure. The samples are needed
    for a cell with a single step, a whole stream, areas of a disk, or a load with an offered rate.
    """
    of_cells = find_window_steps(steps, section.window)
    once = any(len(of_cell) == 1 or workload.offered_iops is not None for workload, of_cell in of_cells.items())
    return once or section.areas is not None or _is_one(section, steps)


def _is_one(section: SectionResult, steps: Sequence[StepRecord]) -> bool:
    """Return whether the slices are parts of one measurement. If the device was idle between the slices, each slice is
    a separate measurement.
    """
    return is_whole_stream(steps, section.window) and not has_idle(
        [one.start_s for one in section.slices], [one.duration_s for one in section.slices]
    )


def with_uncertainty(section: SectionResult, steps: Sequence[StepRecord], seconds: SecondsOfSteps) -> SectionResult:
    """Return the section with the uncertainties of the figures of each measured cell.

    Args:
        section: the section.
        steps: steps of the section.
        seconds: the one-second samples of each step. The key is the position of the step in its test (``StepPlace``).
            The mapping does not contain steps without stored samples.
    """
    of_cells = find_window_steps(steps, section.window)
    whole = _is_one(section, steps)
    before = rounds_before(section.window)
    earlier = find_window_steps(steps, before) if before else {}
    return replace(
        section,
        cells=tuple(
            replace(
                cell,
                uncertainty=_of_cell(
                    section, cell, of_cells[cell.workload], earlier.get(cell.workload, ()), seconds, whole=whole
                ),
            )
            if cell.workload in of_cells
            else cell
            for cell in section.cells
        ),
    )


def rounds_before(window: Sequence[int]) -> tuple[int, ...]:
    """Return the numbers of the rounds before a window. The result contains up to as many rounds as the window. The
    distance between neighbouring rounds is the same as in the window.

    In a stream, only some slices count as rounds, so this distance may be greater than 1.
    """
    if len(window) < 2:
        return ()
    apart = window[1] - window[0]
    first = window[0] - len(window) * apart
    return tuple(number for number in range(first, window[0], apart) if number > 0)


def _of_cell(
    section: SectionResult,
    cell: CellResult,
    steps: Sequence[StepRecord],
    earlier: Sequence[StepRecord],
    seconds: SecondsOfSteps,
    *,
    whole: bool,
) -> CellUncertainty:
    # The areas of a disk differ systematically, and the slices of a stream follow each other without a pause. Their
    # differences therefore do not show the spread of repeated rounds.
    apart = whole or section.areas is not None
    within: dict[str, Spread | None] = {}
    if apart or len(steps) == 1:
        within = _within([find_seconds(step, seconds) for step in steps], as_one=whole)
    directions = Direction if cell.workload.is_mixed else (Direction.ALL,)
    level = not (whole and _changes(section, cell.workload))
    found: dict[str, Uncertainties] = {}
    for direction in directions:
        window = Window(rounds=[step.measurement for step in steps], workload=cell.workload, direction=direction)
        before = replace(window, rounds=[step.measurement for step in earlier])
        means = _of_means(cell, window, before, within, apart=apart)
        if direction is not Direction.ALL and (apart or len(steps) == 1):
            means = dict.fromkeys(means, Uncertainty(reason=DIRECTION_ONCE))
        histograms = [] if section.areas else [stats.histogram for stats in window.stats]
        basis = Basis.SLICES if whole else Basis.ROUNDS
        of_chance = {**means, **_of_percentiles(cell, window, histograms, basis)}
        if not level:
            of_chance = dict.fromkeys(of_chance, Uncertainty(reason=NOT_LEVEL))
        if section.steady_of(cell.workload) is False:  # a figure that is not in steady state has no level
            of_chance = {key: replace(one, level=None) for key, one in of_chance.items()}
        found[direction.value] = {**_of_others(cell, window), **of_chance}
    return CellUncertainty(**found)


def _changes(section: SectionResult, workload: Workload) -> bool:
    return any(timeline.changes for timeline in section.timelines if timeline.workload == workload)


def _within(pieces: Sequence[Seconds], *, as_one: bool) -> dict[str, Spread | None]:
    """Return the spread of each mean, computed from the one-second samples of each step. If a step has no samples, the
    result is empty.
    """
    if not all(len(piece) for piece in pieces):
        return {}
    if as_one:
        pieces = [join(pieces, [0.0] * len(pieces))]
    return {
        IOPS.key: rates_within(pieces, IOPS.key),
        THROUGHPUT.key: rates_within(pieces, THROUGHPUT.key),
        LATENCY_MEAN.key: latencies_within(pieces),
    }


def _of_means(
    cell: CellResult, window: Window, before: Window, within: Mapping[str, Spread | None], *, apart: bool
) -> dict[str, Uncertainty]:
    return {
        quantity.key: uncertainty_of_mean(
            value,
            [] if apart else quantity.of_rounds(window),
            within.get(quantity.key),
            _step(quantity, window),
            earlier=quantity.of_rounds(before),
        )
        for quantity in QUANTITIES.values()
        if quantity.of_rounds is not None and (value := cell.value(quantity, window.direction)) is not None
    }


def _of_percentiles(
    cell: CellResult, window: Window, histograms: Sequence[Histogram], basis: Basis
) -> dict[str, Uncertainty]:
    if all(cell.value(quantity, window.direction) is None for quantity in PERCENTILES):
        return {}
    found = uncertainties_of_percentiles(window.merged, histograms, basis)
    return {quantity.key: known for quantity, known in zip(PERCENTILES, found, strict=True) if known is not None}


def _of_others(cell: CellResult, window: Window) -> dict[str, Uncertainty]:
    """For each minimum, maximum and count, return an entry without an uncertainty. The entry contains the reason why no
    uncertainty is computed.
    """
    return {
        quantity.key: Uncertainty(reason=_WHY_NONE.get(quantity, EXTREME))
        for quantity in QUANTITIES.values()
        if cell.value(quantity, window.direction) is not None
    }


def _step(quantity: Quantity, window: Window) -> float:
    """Return the resolution of a mean. The resolution of a rate is one I/O divided by the whole time."""
    if quantity is LATENCY_MEAN:
        return _LATENCY_STEP_US
    if quantity is CPU:
        return 0.0
    one = 1.0 if quantity is IOPS else window.workload.block_size_bytes / 1e6
    return one / sum(measurement.duration_s for measurement in window.rounds)
