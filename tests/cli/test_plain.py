"""Plain lines: a line alone says what was measured, and under what."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.runfile.runs import a_step
from tkperf.cli.plain import PlainLines
from tkperf.events import StepEnded
from tkperf.record import StepKind


def line_of(**changes: object) -> str:
    stream = io.StringIO()
    step = a_step(3, **changes)
    PlainLines(stream, every_s=1)(
        StepEnded(test="iops", record=step), datetime(2026, 1, 2, tzinfo=UTC)
    )
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
    """Steps that differ in threads and depth alone, as in a grid, are told apart."""
    deeper = replace(a_step().workload, jobs=2, io_depth=16)
    assert line_of(kind=kind, workload=deeper) == (
        f"2026-01-02T00:00:00Z iops: IOPS, {place}, RND 4k R/W 0/100 TC2/QD16: 2 IOPS, 0.0 MB/s, "
        "mean 1.5 us\n"
    )
