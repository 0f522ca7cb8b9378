"""Series of fio's results as the rounds of a test; each cell is judged by its own rounds."""

from __future__ import annotations

from collections.abc import Sequence

from tkperf.interop.fio_series import CellSeries, Result
from tkperf.interop.imported import MOST_LISTED, describe_rounds, imported_test, readable
from tkperf.model.disturbance.codes import Disturbance, DisturbanceCode
from tkperf.model.figures import (
    SETTLED,
    WINDOW,
    FigureKind,
    SectionPlan,
    TestPlan,
    asking,
    drawn,
    matrices,
    over_rounds,
)
from tkperf.model.phases import SectionOutcome
from tkperf.model.record import StepKind, StepRecord, TestRecord, VerdictRecord
from tkperf.model.steady_state import Criteria, SteadyStateVerdict, judge
from tkperf.model.units import KIB, format_count, format_mix
from tkperf.model.workload import Access, Workload
from tkperf.procedures import load_profile

LARGE_BLOCK_BYTES = 128 * KIB


def build_test(name: str, series: Sequence[CellSeries], files: Sequence[str]) -> TestRecord:
    """Return all series as one test.

    The numbers of rounds put every cell's last result in the last round: a cell with fewer results has none
    in the first rounds, and its last ones are in the window.
    """
    criteria = load_profile("pts-e-1.1").steady_state.criteria
    steps: list[StepRecord] = []
    verdicts: list[VerdictRecord] = []
    sections: list[SectionOutcome] = []
    plans: list[SectionPlan] = []
    for section in dict.fromkeys(cell.section for cell in series):
        cells = [cell for cell in series if cell.section == section]
        steps += _steps(cells, files)
        judged, ended = _judge(section, cells, criteria)
        verdicts += judged
        sections.append(ended)
        plans.append(_plan(section, cells))
    plan = TestPlan(title="Results of fio", sections=tuple(plans))
    return imported_test(name, steps, verdicts, sections, plan)


def _plan(section: str, cells: Sequence[CellSeries]) -> SectionPlan:
    """Return a plan with rates and latencies for any workloads; the first rate is the one that tests of them report."""
    workloads = [cell.workload for cell in cells]
    order = workloads[0].access.order
    return SectionPlan(
        name=section,
        quantities=(*_rates(workloads), "latency_mean_us", "p99.9_us"),
        figures=(
            *matrices("iops", "megabytes_per_s", "latency_mean_us"),
            *asking(
                "How many IOPS were there?",
                drawn(FigureKind.OVER_AXIS, "iops", log=True, view=("curves",), printed=True),
                drawn(FigureKind.BARS_3D, "iops", view=("3-D bars",), printed=True),
            ),
            *asking(
                SETTLED,
                *(
                    over_rounds(
                        "iops", f"Steady state convergence: {order} {_words(mix)}", mix, log=True,
                        view=(_words(mix),), printed=True,
                    )
                    for mix in sorted({workload.read_percent for workload in workloads})
                ),
            ),
            *WINDOW,
        ),
        prepares=cells[0].series_key.prepares,
    )  # fmt: skip


def _rates(workloads: Sequence[Workload]) -> tuple[str, str]:
    """Return throughput first for large sequential blocks, as in the throughput test; with 4 KiB IOPS come first."""
    sizes = {workload.block_size_bytes for workload in workloads}
    large = max(sizes) >= LARGE_BLOCK_BYTES and 4 * KIB not in sizes
    sequential = workloads[0].access is Access.SEQUENTIAL
    return ("megabytes_per_s", "iops") if large and sequential else ("iops", "megabytes_per_s")


def _words(read_percent: int) -> str:
    return {0: "writes", 100: "reads"}.get(read_percent, f"R/W {format_mix(read_percent)}")


def _steps(cells: Sequence[CellSeries], files: Sequence[str]) -> list[StepRecord]:
    last = max(len(cell.rounds) for cell in cells)
    return [
        _step(cells[0].section, number, position, result, files[result.source])
        for number in range(1, last + 1)
        for position, result in enumerate(
            cell.rounds[number - last - 1] for cell in cells if len(cell.rounds) > last - number
        )
    ]


def _step(section: str, number: int, position: int, result: Result, file: str) -> StepRecord:
    name = file.replace("\\", "/").rpartition("/")[2]
    return StepRecord(
        section=section,
        kind=StepKind.ROUND,
        number=number,
        position=position,
        workload=result.workload,
        planned_s=None,
        started_s=0.0,
        gap_s=None,
        measurement=result.measurement,
        job_file=f"; imported from {readable(name)}\n{result.job_text}",
        disturbances=_disturbances(result),
    )


def _disturbances(result: Result) -> tuple[Disturbance, ...] | None:
    """Return clones that ended at different times, by fio's own times; None: other disturbances were not sought."""
    if result.uneven is None:
        return None
    return (
        Disturbance(
            code=DisturbanceCode.UNEVEN_CLONES,
            text=f"clones that ended at different times: {result.uneven}",
            started_s=0.0,
            duration_s=result.measurement.duration_s,
        ),
    )


def _numbers(cell: CellSeries, cells: Sequence[CellSeries]) -> range:
    last = max(len(other.rounds) for other in cells)
    return range(last - len(cell.rounds) + 1, last + 1)


def _judge(
    section: str, cells: Sequence[CellSeries], criteria: Criteria
) -> tuple[list[VerdictRecord], SectionOutcome]:
    """Return a verdict for each cell, and the section's: the verdict of the cell that tests track.

    The tracked cell has the most writes, and is nearest to 4 KiB; a cell that fills the window precedes one
    with fewer measurements.
    """
    if cells[0].series_key.prepares:
        last = max(len(cell.rounds) for cell in cells)
        window = tuple(range(1, last + 1))[-criteria.window_rounds :]
        because = (
            f"{format_count(last, 'round')} in the imported files; it prepares and is not judged"
        )
        return [], SectionOutcome(
            section=section, window=window, verdict=None, ended_because=because
        )
    tracked = min(
        cells,
        key=lambda cell: (
            -min(len(cell.rounds), criteria.window_rounds),
            cell.workload.read_percent,
            abs(cell.workload.block_size_bytes - 4 * KIB),
        ),
    )
    records, finals = [], {}
    for cell in cells:
        numbers = _numbers(cell, cells)
        # Other cells need only their last verdict.
        first = 1 if cell is tracked else len(cell.rounds)
        for last in range(first, len(cell.rounds) + 1):
            verdict = _verdict(cell, numbers, last, criteria)
            records.append(
                VerdictRecord(section=section, number=numbers[last - 1], verdict=verdict)
            )
            finals[cell.workload] = verdict
    final = finals.pop(tracked.workload)
    because = describe_rounds(len(tracked.rounds), "files", final)
    return records, SectionOutcome(
        section=section,
        window=final.rounds,
        verdict=final,
        ended_because=because + _describe_others(finals),
    )


def _verdict(
    cell: CellSeries, numbers: Sequence[int], last: int, criteria: Criteria
) -> SteadyStateVerdict:
    window = slice(max(0, last - criteria.window_rounds), last)
    return judge(
        numbers[window],
        [result.measurement.iops for result in cell.rounds[window]],
        tracking=f"{cell.workload.mix_and_size} IOPS",
        unit="IOPS",
        criteria=criteria,
    )


def _describe_others(finals: dict[Workload, SteadyStateVerdict]) -> str:
    """Describe the verdicts of the other cells on their own rounds."""
    judged = {cell: verdict for cell, verdict in finals.items() if verdict.judged}
    if not judged:
        return ""
    unsteady = [cell.mix_and_size for cell, verdict in judged.items() if not verdict.reached]
    clause = f"; by their own rounds {len(judged) - len(unsteady)} of {len(judged)} other cells are steady"
    if unsteady:
        more = len(unsteady) - MOST_LISTED
        clause += f", not {', '.join(unsteady[:MOST_LISTED])}" + (
            f" and {more} more" if more > 0 else ""
        )
    return clause
