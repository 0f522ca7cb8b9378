"""Series of fio's results as the rounds of a test. tkperf judges each cell by the rounds of this cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tkperf.interop.fio_series import CellSeries, Result
from tkperf.interop.imported import MOST_LISTED, describe_rounds, imported_test, readable
from tkperf.model.disturbance.io import Disturbance, DisturbanceCode
from tkperf.model.figures import (
    CONVERGENCE,
    HOW_MANY_IOPS,
    SETTLED,
    TAIL,
    WINDOW,
    FigureKind,
    LoadCaution,
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
from tkperf.model.units import KIB, format_count, format_mix, format_window
from tkperf.model.workload import Access, Workload
from tkperf.procedures import load_profile

LARGE_BLOCK_BYTES = 128 * KIB
_LONGEST_STATE = 120  # the limit for the line of a headline, in characters


def build_test(name: str, series: Sequence[CellSeries], files: Sequence[str]) -> TestRecord:
    """Return all series as one test. Cells with different measurement windows have separate sections."""
    criteria = load_profile("pts-e-1.1").steady_state.criteria
    steps: list[StepRecord] = []
    verdicts: list[VerdictRecord] = []
    sections: list[SectionOutcome] = []
    plans: list[SectionPlan] = []
    for section, cells in _divide_by_window(series, criteria):
        steps += _steps(section, cells, files)
        judged, ended = _judge(section, cells, criteria)
        verdicts += judged
        sections.append(ended)
        plans.append(_plan(section, cells))
    plan = TestPlan(title="Results of fio", sections=tuple(plans))
    return imported_test(name, steps, verdicts, sections, plan)


def _divide_by_window(series: Sequence[CellSeries], criteria: Criteria) -> Iterator[tuple[str, list[CellSeries]]]:
    """Yield the sections with their cells, in order.

    All cells of a section have the same window. If the rounds of a cell differ from the rounds of the tracked cell, the
    cell has its own section, and the name of this section contains the rounds.
    """
    by_section: dict[str, list[CellSeries]] = {}
    for cell in series:
        by_section.setdefault(cell.section, []).append(cell)
    for section, cells in by_section.items():
        if cells[0].series_key.prepares:
            yield section, cells
            continue
        window = find_window(_track(cells, criteria).numbers, criteria)
        by_window: dict[tuple[int, ...], list[CellSeries]] = {window: []}
        for cell in cells:
            by_window.setdefault(find_window(cell.numbers, criteria), []).append(cell)
        for other, alike in by_window.items():
            yield section if other == window else f"{section}, {format_window(other)}", alike


def find_window(numbers: Sequence[int], criteria: Criteria) -> tuple[int, ...]:
    """Return the rounds of the window. The window lies at the end of the longest sequence of consecutive rounds,
    because a window has no gap.

    If several sequences fill a window, or if they are equally long, the last of these sequences is used.
    """
    return max(
        (_window_until(numbers, at, criteria) for at in range(len(numbers))),
        key=lambda window: (len(window), window[-1]),
    )


def _window_until(numbers: Sequence[int], at: int, criteria: Criteria) -> tuple[int, ...]:
    """Return consecutive rounds that end with the round at the index ``at``. The result contains no more rounds than a
    window.
    """
    first = at
    while first > 0 and numbers[first - 1] == numbers[first] - 1 and at - first + 1 < criteria.window_rounds:
        first -= 1
    return tuple(numbers[first : at + 1])


def _track(cells: Sequence[CellSeries], criteria: Criteria) -> CellSeries:
    """Return the tracked cell. Among the cells with the most writes, it is the cell whose block size is nearest to 4
    KiB.

    A cell that fills the window is preferred to a cell with fewer consecutive rounds.
    """
    return min(
        cells,
        key=lambda cell: (
            -len(find_window(cell.numbers, criteria)),
            cell.workload.read_percent,
            abs(cell.workload.block_size_bytes - 4 * KIB),
        ),
    )


def _plan(section: str, cells: Sequence[CellSeries]) -> SectionPlan:
    """Return a plan that shows rates and latencies of any workloads.

    Its first rate is the rate that tkperf's tests of such workloads report.
    """
    workloads = [cell.workload for cell in cells]
    if workloads[0].is_combination:
        return _plan_combination(section, cells[0])
    order = workloads[0].access.order
    return SectionPlan(
        name=section,
        quantities=(*_rates(workloads), "latency_mean_us", TAIL),
        figures=(
            *matrices("iops", "megabytes_per_s", "latency_mean_us"),
            *asking(
                HOW_MANY_IOPS,
                drawn(FigureKind.OVER_AXIS, "iops", log=True, view=("curves",), printed=True),
                drawn(FigureKind.BARS_3D, "iops", view=("3-D bars",), printed=True),
            ),
            *asking(
                SETTLED,
                *(
                    over_rounds(
                        "iops",
                        f"{CONVERGENCE}: {order} {_words(mix)}",
                        mix,
                        log=True,
                        view=(_words(mix),),
                        printed=True,
                    )
                    for mix in sorted({workload.read_percent for workload in workloads})
                ),
            ),
            *WINDOW,
        ),
        prepares=cells[0].series_key.prepares,
        state=_name_state(section),
        cautions=tuple(
            caution for caution in LoadCaution if any(caution in cell.series_key.cautions for cell in cells)
        ),
    )


def _plan_combination(section: str, cell: CellSeries) -> SectionPlan:
    """Return a plan that shows the rates and latencies of each stream, in every round."""
    return SectionPlan(
        name=section,
        quantities=("iops", "latency_mean_us", TAIL, "megabytes_per_s", "p99_us"),
        figures=(
            drawn(FigureKind.LISTING, "iops", "megabytes_per_s", "latency_mean_us", TAIL, title="Every round"),
            *asking(SETTLED, over_rounds("iops", "IOPS over rounds", view=("IOPS",), printed=True)),
            *WINDOW,
        ),
        prepares=cell.series_key.prepares,
        # The results of a stream are valid only while the other streams run, so the text of the state names these
        # streams.
        state=_shorten_state(f"in {section.removeprefix('fio ')}"),
        cautions=cell.series_key.cautions,
    )


def _name_state(section: str) -> str:
    """Return the last part of the section's name, which distinguishes the section from other sections with the same
    load and demand.
    """
    return _shorten_state(section.partition(", ")[2])


def _shorten_state(state: str) -> str:
    return state if len(state) <= _LONGEST_STATE else f"{state[: _LONGEST_STATE - 3].rstrip(', ')}..."


def _rates(workloads: Sequence[Workload]) -> tuple[str, str]:
    """Return the rates in the order of a report. For large sequential blocks, throughput is first, as in the throughput
    test. For other workloads, IOPS is first.
    """
    sizes = {workload.block_size_bytes for workload in workloads}
    large = max(sizes) >= LARGE_BLOCK_BYTES and 4 * KIB not in sizes
    sequential = workloads[0].access is Access.SEQUENTIAL
    return ("megabytes_per_s", "iops") if large and sequential else ("iops", "megabytes_per_s")


def _words(read_percent: int) -> str:
    return {0: "writes", 100: "reads"}.get(read_percent, f"R/W {format_mix(read_percent)}")


def _steps(section: str, cells: Sequence[CellSeries], files: Sequence[str]) -> list[StepRecord]:
    numbered = [cell.numbered for cell in cells]
    return [
        _step(section, number, position, result, files[result.source])
        for number in sorted({number for cell in cells for number in cell.numbers})
        for position, result in enumerate(of[number] for of in numbered if number in of)
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
    """Return a disturbance if the clones ended at different times. None means that the clones ended together. tkperf
    did not observe the run, so other disturbances are not known.
    """
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


def _judge(section: str, cells: Sequence[CellSeries], criteria: Criteria) -> tuple[list[VerdictRecord], SectionOutcome]:
    """Return a verdict for each cell, and the outcome of the section. The verdict of the tracked cell is the verdict of
    the section.
    """
    if cells[0].series_key.prepares:
        numbers = sorted({number for cell in cells for number in cell.numbers})
        because = (
            f"{format_count(len(numbers), 'round')} in the imported files; the section prepares "
            "the drive and is not judged"
        )
        return [], SectionOutcome(
            section=section, window=tuple(numbers)[-criteria.window_rounds :], verdict=None, ended_because=because
        )
    tracked = _track(cells, criteria)
    records, finals = [], {}
    for cell in cells:
        window = find_window(cell.numbers, criteria)
        for at, number in enumerate(cell.numbers):
            # For other cells, only the verdict of their window is needed.
            if cell is tracked or number == window[-1]:
                verdict = _verdict(cell, at, criteria)
                records.append(VerdictRecord(section=section, number=number, verdict=verdict))
                if number == window[-1]:
                    finals[cell.workload] = verdict
    final = finals.pop(tracked.workload)
    because = describe_rounds(len(tracked.rounds), "files", final)
    return records, SectionOutcome(
        section=section,
        window=final.rounds,
        verdict=final,
        ended_because=because + _describe_gaps(tracked) + _describe_others(finals),
    )


def _verdict(cell: CellSeries, at: int, criteria: Criteria) -> SteadyStateVerdict:
    rounds = _window_until(cell.numbers, at, criteria)
    return judge(
        rounds,
        [result.measurement.iops for result in cell.rounds[at - len(rounds) + 1 : at + 1]],
        tracking="IOPS of all streams" if cell.workload.is_combination else f"{cell.workload.mix_and_size} IOPS",
        unit="IOPS",
        criteria=criteria,
    )


def _describe_gaps(cell: CellSeries) -> str:
    """Return a text that names the rounds that are missing between the first and the last round."""
    missing = sorted(set(range(cell.numbers[0], cell.numbers[-1])) - set(cell.numbers))
    if not missing:
        return ""
    named = ", ".join(map(str, missing[:MOST_LISTED]))
    more = len(missing) - MOST_LISTED
    others = f" and {more:,} more" if more > 0 else ""
    rounds = f"rounds {named}{others} are" if len(missing) > 1 else f"round {named} is"
    return f"; {rounds} missing, and a window needs consecutive rounds"


def _describe_others(finals: dict[Workload, SteadyStateVerdict]) -> str:
    """Return a text about the verdicts on the other cells. Each verdict is based on the rounds of its own cell."""
    judged = {cell: verdict for cell, verdict in finals.items() if verdict.judged}
    if not judged:
        return ""
    unsteady = [cell.mix_and_size for cell, verdict in judged.items() if not verdict.reached]
    clause = f"; by their own rounds {len(judged) - len(unsteady)} of {len(judged)} other cells are steady"
    if unsteady:
        more = len(unsteady) - MOST_LISTED
        clause += f", not {', '.join(unsteady[:MOST_LISTED])}" + (f" and {more} more" if more > 0 else "")
    return clause
