"""Plain progress. Each line can be understood without the other lines: it contains the result, the workload and the
position of the step.
"""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.builders import io_stats
from tests.runfile.runs import a_step
from tkperf.cli.lines import PlainLines
from tkperf.model.measurement import NO_IO, Sample
from tkperf.model.phases import Phase, Purge, Round
from tkperf.model.record import StepKind
from tkperf.model.steady_state import judge
from tkperf.model.workload import Access, Step, Stream, Workload, combine
from tkperf.procedures.building_blocks import after_lead_in
from tkperf.runner.events import Event, Judged, PhaseStarted, SampleSeen, StepEnded, StepStarted


def line_of(**changes: object) -> str:
    stream = io.StringIO()
    step = a_step(3, **changes)
    PlainLines(stream, every_s=1)(StepEnded(test="iops", record=step), datetime(2026, 1, 2, tzinfo=UTC))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        (StepKind.ROUND, "round 3"),
        (StepKind.CONTINUOUS, "slice 3"),
        (StepKind.AREA, "area 3"),
        (StepKind.WARM_UP, "warm-up 3"),
    ],
)
def test_a_step_is_named_by_its_place_and_its_whole_workload(kind: StepKind, place: str) -> None:
    """A line about a step contains the position of the step and the whole workload. Steps of a grid that differ only in
    threads and queue depth can therefore be distinguished.
    """
    deeper = replace(a_step().workload, jobs=2, io_depth=16)
    assert line_of(kind=kind, workload=deeper) == (
        f"2026-01-02T00:00:00Z iops: IOPS, {place}, RND 4k R/W 0/100 TC2/QD16: 2.00 IOPS, 0.00819 MB/s, mean 1.500 µs\n"
    )


def lines_of(*events: Event, every_s: float | None = None) -> list[str]:
    stream = io.StringIO()
    view = PlainLines(stream, every_s=every_s)
    for event in events:
        view(event, datetime(2026, 1, 2, tzinfo=UTC))
    return [line.partition("Z ")[2] for line in stream.getvalue().splitlines()]


def second(at_s: float) -> SampleSeen:
    stats = io_stats([1000] * 7)
    sample = Sample(start_s=at_s, duration_s=1.0, read=NO_IO, write=stats)
    return SampleSeen(test="iops", sample=sample, at_s=at_s)


def test_seconds_are_told_only_to_who_asks_for_them() -> None:
    """Plain progress prints no values of single seconds. With -v it prints each second, and the log contains one line
    for each minute.
    """
    seconds = [second(float(number)) for number in range(1, 131)]
    assert lines_of(*seconds) == []
    assert lines_of(*seconds, every_s=0.0) == ["iops: 7.00 IOPS, 0.0287 MB/s"] * 130
    assert lines_of(*seconds, every_s=60.0) == ["iops: 7.00 IOPS, 0.0287 MB/s"] * 2


def begins(phase: Phase, at_most: int | None = None) -> PhaseStarted:
    return PhaseStarted(test="iops", phase=phase, at_s=0, shortest_s=60, longest_s=7200, at_most=at_most)


def test_rounds_purges_and_fills_are_told_when_they_begin() -> None:
    """Rounds, purges and fills are reported when they begin, because each of them may take hours."""
    workload = a_step().workload
    steps = (Step(workload=workload, duration_s=60),) * 2

    fill = StepStarted(
        test="iops",
        section="IOPS",
        kind=StepKind.FILL,
        number=1,
        position=0,
        steps=1,
        workload=workload,
        planned_s=None,
        planned_bytes=960 * 10**9,
        at_s=0,
    )
    assert lines_of(begins(Purge(section="IOPS")), fill, begins(Round(section="IOPS", number=3, steps=steps), 25)) == [
        "iops: IOPS, purging; remaining 1 min 00 s to 2 h 00 min",
        "iops: IOPS, preconditioning with 960.0 GB",
        "iops: IOPS, round 3 of at most 25; remaining 1 min 00 s to 2 h 00 min",
    ]


def test_a_cell_of_a_grid_is_named_with_its_rates() -> None:
    """In a grid of offered rates, the lines count the cells, whose number is known, and name the rates of each cell. A
    single measurement has no number of rounds.
    """
    reads = Workload(
        access=Access.RANDOM, read_percent=100, block_size_bytes=4096, jobs=1, io_depth=1, offered_iops=2300
    )
    writes = replace(reads, read_percent=0, offered_iops=400)
    both = combine((Stream(name="reader", workload=reads), Stream(name="writer", workload=writes)))
    lead_in, cell = after_lead_in("Grid", 7, both, lead_in_s=5, duration_s=60, cells=120)
    _, alone = after_lead_in("Grid", 8, writes, lead_in_s=5, duration_s=60, cells=120)
    _, single = after_lead_in("Alone", 1, writes, lead_in_s=5, duration_s=60)
    left = "remaining 1 min 00 s to 2 h 00 min"
    assert lines_of(begins(lead_in, 120), begins(cell, 120), begins(alone, 120), begins(single, None)) == [
        f"iops: Grid, lead-in of cell 7 of 120: reads at 2,300 IOPS, writes at 400 IOPS; {left}",
        f"iops: Grid, cell 7 of 120: reads at 2,300 IOPS, writes at 400 IOPS; {left}",
        f"iops: Grid, cell 8 of 120: writes at 400 IOPS; {left}",
        f"iops: Alone, round 1; {left}",
    ]


def test_a_verdict_names_its_variable() -> None:
    """If a test has several tracking variables, each has a verdict line with the name of the variable."""
    assert lines_of(
        *(
            Judged(test="mini", section="mini", number=7, verdict=judge([6, 7], [1.0, 2.0], tracking=name, unit="IOPS"))
            for name in ("RND 4k IOPS", "SEQ 1m MB/s")
        )
    ) == [
        f"mini: round 7 not steady: {name}: 2 of the 5 rounds a window needs" for name in ("RND 4k IOPS", "SEQ 1m MB/s")
    ]
