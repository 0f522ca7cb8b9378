"""The loads that wait at their gates, and the evidence that each job of a stream is active."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from tests.engine.conftest import Scenario, workload
from tkperf.engine import EngineLoad, Next
from tkperf.engine.device_jobs import StreamWatch
from tkperf.engine.fio import FioEngine
from tkperf.engine.fio_output import FioReading, JobReading
from tkperf.engine.fio_process import FioProcess
from tkperf.engine.waiting import Waiting
from tkperf.model.workload import Access, Step

FIRST = Step(workload=workload(), duration_s=1.0)
SECOND = Step(workload=workload(block_size_bytes=8192), duration_s=1.0)


class PreparedProcess:
    """The process of a load. All its threads wait at the gate."""

    at_gate = True
    lost_at_gate = False
    start_took_s = 0.1

    def __init__(self) -> None:
        self.released_s: float | None = None
        self.stopped = False

    def release(self) -> None:
        self.released_s = 5.0

    def stop(self) -> None:
        self.stopped = True


def test_a_load_that_was_released_by_a_wrong_prediction_is_started_again() -> None:
    """If a load was released because of a wrong prediction, its process is stopped and no longer counts as prepared. If
    the load is requested later, a new process is started, because a stopped process measures nothing. The other
    processes continue to wait.
    """
    made: list[PreparedProcess] = []

    def start(_: EngineLoad) -> FioProcess:
        made.append(PreparedProcess())
        return cast("FioProcess", made[-1])

    waiting = Waiting(start)
    waiting.prepare(FIRST)
    waiting.prepare(SECOND)
    waiting.let_go(FIRST, lambda _: True)
    assert waiting.let_go_load == FIRST
    waiting.stop_io()
    assert [process.stopped for process in made] == [True, False]
    assert FIRST not in waiting
    assert SECOND in waiting
    assert waiting.let_go_load is None
    waiting.prepare(FIRST)
    assert waiting.take(FIRST) is cast("FioProcess", made[2])


def test_a_job_is_silent_since_its_last_io() -> None:
    """The evidence of a slice states for each job how long the job has completed no I/O. This time begins at
    the last I/O of the job, even if this I/O belongs to an earlier slice. If a job never completed an I/O, this time is
    infinite.
    """
    watch, process = StreamWatch(), SimpleNamespace(last=FioReading(), last_at_s=0.0, released_s=0.0)
    process.released_wall_clock_s, process.was_stopped = 0.0, lambda: False
    found: list[list[float]] = []
    for elapsed_s, ios in ((10.0, (100, 100, 0)), (20.0, (200, 100, 0)), (30.0, (300, 100, 0)), (40.0, (400, 101, 0))):
        origin = process.last
        jobs = tuple(JobReading(ios=each, bytes=each * 4096, elapsed_s=elapsed_s, depth_percents={}) for each in ios)
        process.last, process.last_at_s = FioReading(elapsed_s=elapsed_s, jobs=jobs), elapsed_s
        evidence = watch.slice_evidence(cast("Any", process), origin)
        assert evidence.jobs is not None
        found.append([job.silent_s for job in evidence.jobs])
    assert found == [[0.0, 0.0, math.inf], [0.0, 10.0, math.inf], [0.0, 20.0, math.inf], [0.0, 0.0, math.inf]]


def test_only_a_load_whose_address_is_known_is_prepared(
    fake_fio: Callable[[Scenario], None], make_engine: Callable[[], FioEngine]
) -> None:
    """A sequential step that follows itself begins at the address where the preceding step stops, so its process is
    started only when this address is known. A random step that follows itself is prepared in time.
    """
    for access, is_prepared in ((Access.SEQUENTIAL, False), (Access.RANDOM, True)):
        engine = make_engine()
        step = Step(workload=workload(access=access), duration_s=1.0)
        first = engine.measure(step, then=Next.for_certain(step), on_sample=lambda *_: None)
        assert (step in engine._waiting) is is_prepared
        second = engine.measure(step, then=None, on_sample=lambda *_: None)
        offsets = [
            [line for line in each.job_file.splitlines() if line.startswith("offset=")] for each in (first, second)
        ]
        assert (offsets[0] != offsets[1]) is not is_prepared
