"""Sequential streams continue from step to step (docs/explanation/method.md)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tkperf.engine.fio_job import SequentialCursors
from tkperf.model.workload import Access, ActiveRange, Step, Workload

REGION = 1 << 30
RANGE = ActiveRange(offset_bytes=0, length_bytes=2 * REGION)
BLOCK = 1 << 20


def step(read_percent: int, access: Access = Access.SEQUENTIAL) -> Step:
    workload = Workload(access=access, read_percent=read_percent, block_size_bytes=BLOCK, jobs=2, io_depth=4)
    return Step(workload=workload, duration_s=1.0)


def test_each_stream_goes_on_where_it_stopped() -> None:
    """Reads and writes are separate sequential streams. Each stream continues where its last step ended."""
    cursors = SequentialCursors(RANGE)
    assert cursors.starts_bytes(step(0)) == (0, 0)
    cursors.advance(step(0), (0, 0), (10 * BLOCK, 12 * BLOCK))
    cursors.advance(step(100), (0, 0), (3 * BLOCK, 3 * BLOCK))
    assert cursors.starts_bytes(step(0)) == (10 * BLOCK, 12 * BLOCK)
    assert cursors.starts_bytes(step(100)) == (3 * BLOCK, 3 * BLOCK)


def test_a_rest_too_short_for_a_step_starts_over() -> None:
    """If the rest of the region is too short for a step, the step begins at the start of the region. Otherwise fio
    would reach the end of the region and continue at the address where the step began.
    """
    cursors = SequentialCursors(RANGE)
    cursors.advance(step(0), (0, 0), (900 * BLOCK, 100 * BLOCK))
    assert cursors.starts_bytes(step(0)) == (0, 100 * BLOCK)


def test_a_step_that_takes_nearly_half_of_its_region_goes_on() -> None:
    """If a step used nearly half of its region, the next step begins where this step ended. The rest of the region is
    skipped only if this rest is too short for the next step.
    """
    cursors = SequentialCursors(RANGE)
    cursors.advance(step(0), (0, 0), (480 * BLOCK, 480 * BLOCK))
    assert cursors.starts_bytes(step(0)) == (480 * BLOCK, 480 * BLOCK)
    cursors.advance(step(0), (480 * BLOCK, 480 * BLOCK), (480 * BLOCK, 480 * BLOCK))
    assert cursors.starts_bytes(step(0)) == (0, 0)


def test_a_step_that_takes_most_of_its_region_starts_over() -> None:
    """A step that uses most of its region begins at the start of the region. If the step continued from the end of the
    previous step, fio would write the short rest repeatedly.
    """
    cursors = SequentialCursors(RANGE)
    for _ in range(3):
        cursors.advance(step(0), cursors.starts_bytes(step(0)), (700 * BLOCK, 700 * BLOCK))
        assert cursors.starts_bytes(step(0)) == (0, 0)


def test_a_step_that_wrapped_does_not_go_on_at_a_place_that_fio_never_reached() -> None:
    """If a step reached the end of its region, the next step begins at the start of the region, because after the end
    of the region, fio itself continues at the address where the step began.
    """
    cursors = SequentialCursors(RANGE)
    cursors.advance(step(0), (960 * BLOCK, 0), (100 * BLOCK, 100 * BLOCK))
    assert cursors.starts_bytes(step(0)) == (0, 100 * BLOCK)


def test_random_workloads_have_no_position() -> None:
    """A random workload has no position. Only sequential streams continue where they ended."""
    assert SequentialCursors(RANGE).starts_bytes(step(0, Access.RANDOM)) == ()


@given(st.lists(st.tuples(*[st.integers(min_value=1, max_value=5000)] * 2), max_size=30))
def test_a_position_is_always_a_block_within_the_region(moved: list[tuple[int, int]]) -> None:
    """The next start is always the address of a whole block inside the job's own region. The transferred amount does
    not matter.
    """
    cursors = SequentialCursors(RANGE)
    for blocks in moved:
        starts = cursors.starts_bytes(step(0))
        assert all(0 <= start < REGION and start % BLOCK == 0 for start in starts)
        cursors.advance(step(0), starts, [count * BLOCK for count in blocks])
