"""The engine with the real fio. A disturbance of fio's processes never leads to a wrong number."""

from __future__ import annotations

import os
import re
import shutil
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tests.conftest import until
from tests.engine.conftest import workload
from tkperf.device.identity import read_identity
from tkperf.device.permit import grant_permit, hold_target
from tkperf.engine import Execution, Next
from tkperf.engine.device_jobs import DeviceJobs
from tkperf.engine.fio import FioEngine
from tkperf.engine.fio_process import FioProcess
from tkperf.engine.gate import Gate
from tkperf.model.errors import StepFailedError
from tkperf.model.phases import Continuous, Fill
from tkperf.model.plausibility import SILENT_JOB_ROUNDS, RequestedLoad, why_implausible
from tkperf.model.workload import Access, BlockShare, Step

pytestmark = pytest.mark.fio
MakeEngine = Callable[..., FioEngine]


def measure(
    engine: FioEngine, *, io_depth: int = 4, read_percent: int = 0, duration_s: float = 1.0
) -> tuple[Execution, RequestedLoad]:
    step = Step(workload=workload(io_depth=io_depth, read_percent=read_percent), duration_s=duration_s)
    execution = engine.measure(step, then=None, on_sample=lambda *_: None)
    return execution, RequestedLoad(workload=step.workload, duration_s=duration_s)


def judge(execution: Execution, plan: RequestedLoad) -> str | None:
    return why_implausible(execution.measurement, plan, execution.evidence)


def wait_for(engine: FioEngine, step: Step) -> FioProcess:
    """Return the fio that was prepared for a step."""
    engine._waiting.prepare(step)
    return engine._waiting._prepared[step]


def waiting(gate: Gate) -> list[int]:
    return gate._arrived()


def test_a_fill_of_its_own_range_writes_that_and_nothing_beyond(make_engine: MakeEngine, scratch: Path) -> None:
    """A fill with its own length writes every block of this length, and writes no block beyond this length. A fill
    without a length writes the whole active range.
    """
    with scratch.open("r+b") as out:
        size = out.seek(0, os.SEEK_END)
        out.truncate(0)
        out.truncate(size)
    filled = size // 2 + 4096
    load = workload(access=Access.SEQUENTIAL, block_size_bytes=128 * 1024)
    fill = Fill(section="s", workload=load, passes=2, length_bytes=filled)
    engine = make_engine()
    done = engine.fill(fill, then=None, on_sample=lambda *_: None)
    assert done.measurement.write.bytes == 2 * filled
    data = scratch.read_bytes()
    assert all(any(data[at : at + 4096]) for at in range(0, filled, 4096))
    assert not any(data[filled:])
    done = engine.fill(replace(fill, length_bytes=None), then=None, on_sample=lambda *_: None)
    assert done.measurement.write.bytes == 2 * size


def test_a_drive_is_filled_and_what_is_mapped_of_it_measured(
    make_engine: MakeEngine, scratch: Path, tmp_path: Path
) -> None:
    """If segments are mapped, the fill writes to the drive and the step measures the mapping, each with its own permit.
    The fio job of the step names the mapping, and the fio job of the fill names the drive.
    """
    drive = tmp_path / "drive"
    drive.write_bytes(bytes(8 << 20))
    permit = grant_permit(hold_target(read_identity(drive)), confirmed_id=str(drive)).redeem()
    engine = make_engine(drive_permit=permit, shown_path="/dev/mapper/tkperf-segments-sdx")
    load = workload(access=Access.SEQUENTIAL, block_size_bytes=128 * 1024)
    fill = Fill(section="s", workload=load, passes=2, length_bytes=6 << 20)
    step = Step(workload=workload(), duration_s=1.0)
    filled = engine.fill(fill, then=Next.for_certain(step), on_sample=lambda *_: None)
    assert filled.measurement.write.bytes == 12 << 20
    assert f"filename={drive}\n" in filled.job_file
    data = drive.read_bytes()
    assert all(any(data[at : at + 4096]) for at in range(0, 6 << 20, 4096))
    assert not any(data[6 << 20 :])
    measured = engine.measure(step, then=None, on_sample=lambda *_: None)
    # On a busy host, fio may exit before tkperf notices the end of the fill. The step then begins when it is requested.
    assert filled.handed_over_s in (None, measured.earliest_s)
    assert measured.measurement.write.bytes > 0
    assert "filename=/dev/mapper/tkperf-segments-sdx\n" in measured.job_file
    assert drive.read_bytes() == data
    engine.close()
    permit.release()


@pytest.mark.parametrize("io_depth", [1, 16])
@pytest.mark.parametrize("read_percent", [0, 65, 100])
def test_honest_steps_are_believed(make_engine: MakeEngine, io_depth: int, read_percent: int) -> None:
    """A correct step is accepted for each mix and each queue depth."""
    seen = measure(make_engine(), io_depth=io_depth, read_percent=read_percent)
    assert judge(*seen) is None


def test_a_mix_of_block_sizes_is_offered_at_its_rate(make_engine: MakeEngine) -> None:
    """A mix of block sizes runs at its offered rate. If tkperf used ``rate_iops``, fio before 3.42 would offer an
    eighth of the rate, and the drive would seem too slow.
    """
    blocks = (BlockShare(4096, 50), BlockShare(65536, 50))
    load = workload(jobs=1, block_size_bytes=65536, read_percent=100)
    step = Step(workload=replace(load, block_mix=blocks, offered_iops=100.0), duration_s=2.0)
    execution = make_engine().measure(step, then=None, on_sample=lambda *_: None)
    assert judge(execution, RequestedLoad(workload=step.workload, duration_s=2.0)) is None
    chance = 4 * step.workload.arrivals_deviation(200)
    assert 100 < execution.measurement.ios <= 200 + chance  # a busy host may delay I/Os


def test_a_fill_is_believed(make_engine: MakeEngine) -> None:
    """A fill in which each job wrote exactly its part is accepted."""
    fill = Fill(section="S", workload=workload(access=Access.SEQUENTIAL), passes=2)
    execution = make_engine().fill(fill, then=None, on_sample=lambda *_: None)
    assert judge(execution, RequestedLoad(workload=fill.workload, duration_s=None)) is None
    assert execution.evidence.jobs is not None
    assert [job.planned_bytes for job in execution.evidence.jobs] == [64 << 20] * 2


@pytest.mark.parametrize("victims", [1, 2])
def test_a_job_whose_helper_dies_as_the_gate_opens_is_missed(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch, victims: int
) -> None:
    """If the helper process of a job dies while the gate opens, the engine detects that the job issued no I/O. fio
    itself exits with status 0 and reports all jobs.
    """
    opened = Gate.open

    def kill_and_open(gate: Gate) -> None:
        for pid in waiting(gate)[:victims]:
            os.kill(pid, signal.SIGKILL)
        opened(gate)

    monkeypatch.setattr(Gate, "open", kill_and_open)
    if victims == 2:
        with pytest.raises(StepFailedError, match="no runtime"):
            measure(make_engine())
    else:
        assert "did no I/O" in (judge(*measure(make_engine())) or "")


def test_a_stream_with_a_dead_job_is_not_believed(make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a job of a stream was killed, a slice that is long enough to show the missing I/O is rejected. Shorter slices
    are not judged, because a busy host can distort them.
    """
    opened = Gate.open

    def kill_and_open(gate: Gate) -> None:
        os.kill(waiting(gate)[0], signal.SIGKILL)
        opened(gate)

    monkeypatch.setattr(Gate, "open", kill_and_open)
    phase = Continuous(section="S", number=1, workload=workload(), duration_s=2.0, longest_s=60.0)
    plan = RequestedLoad(workload=phase.workload, duration_s=2.0, running=True)
    engine = make_engine()
    for _ in range(25):
        execution = engine.measure_slice(phase, then=None, on_sample=lambda *_: None)
        if (said := judge(execution, plan)) is not None:
            break
        ios = execution.measurement.ios / phase.workload.jobs
        assert ios < SILENT_JOB_ROUNDS * phase.workload.io_depth  # the slice was too short to show the dead job
    assert "did no I/O ever" in (said or "")


def test_honest_slices_are_believed(make_engine: MakeEngine) -> None:
    """A correct slice is accepted although the counters of a running fio do not increase at the same moment."""
    phase = Continuous(section="S", number=1, workload=workload(), duration_s=1.0, longest_s=5.0)
    plan = RequestedLoad(workload=phase.workload, duration_s=1.0, running=True)
    engine = make_engine()
    for _ in range(4):
        execution = engine.measure_slice(phase, then=None, on_sample=lambda *_: None)
        assert judge(execution, plan) is None


def test_a_step_whose_fio_is_asked_to_end_is_a_failed_step(make_engine: MakeEngine) -> None:
    """If fio receives SIGTERM during a step, the step fails, although fio ends without an error."""
    engine = make_engine()
    asked: list[int] = []

    def terminate(*_: object) -> None:
        assert engine._current is not None
        if not asked:
            asked.append(engine._current._process.pid)
            os.kill(asked[0], signal.SIGTERM)

    step = Step(workload=workload(), duration_s=30.0)
    with pytest.raises(StepFailedError, match="was killed by a signal"):
        engine.measure(step, then=None, on_sample=terminate)
    assert asked


def test_slices_shorter_than_fios_reports_are_one_stream(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slices that are shorter than the interval between fio's reports form one stream without gaps. In this test, one
    fio runs ten slices in 3 s. On a busy host, some slices are longer.
    """
    started: list[Step] = []
    start_step = DeviceJobs.start_step

    def start(jobs: DeviceJobs, step: Step, *given: Any, **wait: Any) -> FioProcess:
        started.append(step)
        return start_step(jobs, step, *given, **wait)

    monkeypatch.setattr(DeviceJobs, "start_step", start)
    phase = Continuous(section="S", number=1, workload=workload(), duration_s=0.3, longest_s=30.0)
    engine = make_engine()
    slices = [engine.measure_slice(phase, then=None, on_sample=lambda *_: None) for _ in range(10)]
    assert len(started) == 1
    lengths_s = [each.measurement.duration_s for each in slices]
    assert sum(lengths_s) >= 2.8
    assert median(lengths_s) < 0.9
    for before, after in pairwise(slices):
        assert after.started_s == pytest.approx(before.ended_s, abs=0.002)


def test_no_thread_of_fio_is_woken_by_the_end_of_a_helper(make_engine: MakeEngine) -> None:
    """Every thread of fio blocks SIGCHLD, so that the end of a helper does not end a job that waits for its
    first I/O.
    """
    process = wait_for(make_engine(), Step(workload=workload(), duration_s=1.0))
    process.come_to_gate()
    statuses = [path.read_text() for path in Path(f"/proc/{process._process.pid}/task").glob("*/status")]
    assert len(statuses) > 2  # the main thread and the two jobs
    for status in statuses:
        (blocked,) = re.findall(r"^SigBlk:\s*(\w+)$", status, re.M)
        assert int(blocked, 16) & 1 << signal.SIGCHLD - 1


@pytest.mark.parametrize("doom", ["a helper", "fio", "the folder"])
def test_what_dies_at_the_gate_is_started_again(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch, doom: str
) -> None:
    """If a helper process or fio itself dies, or if the folder of a step disappears, while fio waits at the gate, the
    step is started again and measured, because no I/O has been issued yet.
    """
    engine = make_engine()
    prepared = wait_for(engine, Step(workload=workload(), duration_s=1.0))
    until(lambda: prepared.at_gate)
    if doom == "a helper":
        os.kill(waiting(prepared._gate)[0], signal.SIGKILL)
    elif doom == "fio":
        os.kill(prepared._process.pid, signal.SIGKILL)
    else:
        shutil.rmtree(prepared._folder.parent)
    until(lambda: prepared.lost_at_gate)
    assert judge(*measure(engine)) is None


def test_no_helper_of_a_killed_fio_keeps_the_device_open(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If fio is killed at the gate, its helpers have ended when the engine rests, so that no helper is mistaken for
    another user of the device.
    """
    monkeypatch.setattr("tkperf.engine.fio_process.LONGEST_END_OF_HELPERS_S", 60.0)
    engine = make_engine()
    prepared = wait_for(engine, Step(workload=workload(jobs=16), duration_s=1.0))
    until(lambda: prepared.at_gate)
    helpers = waiting(prepared._gate)
    os.kill(prepared._process.pid, signal.SIGKILL)
    prepared._process.wait()
    engine.rest()
    assert not [pid for pid in helpers if Path(f"/proc/{pid}").exists()]


@pytest.mark.parametrize("stopped_s", [0.2, 6.0])
def test_a_stopped_fio_is_not_believed(make_engine: MakeEngine, stopped_s: float) -> None:
    """A step is rejected if fio was stopped by SIGSTOP during the step. The counters of fio remain consistent, but the
    kernel reports the stop.
    """
    engine = make_engine()
    process = wait_for(engine, Step(workload=workload(), duration_s=4.0))

    def stop_for_a_while() -> None:
        until(lambda: process.last.moved_bytes > 0)
        os.kill(process._process.pid, signal.SIGSTOP)
        time.sleep(stopped_s)
        os.kill(process._process.pid, signal.SIGCONT)

    thread = threading.Thread(target=stop_for_a_while)
    thread.start()
    try:
        seen = measure(engine, duration_s=4.0)
    finally:
        thread.join()
    assert "stopped by a signal" in (judge(*seen) or "")


def test_a_fio_that_writes_its_last_report_is_not_asked_for_another(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the helper thread of fio has ended, tkperf sends no signal to fio, because the signal would kill this fio. On
    a busy host, tkperf may notice only then that the jobs have ended.
    """
    engine = make_engine()
    process = wait_for(engine, Step(workload=workload(), duration_s=3.0))
    process.come_to_gate()
    process.release()
    others = process._other_tasks
    assert others is not None
    sent: list[int] = []
    monkeypatch.setattr(process._process, "send_signal", sent.append)
    process.report_now(time.monotonic(), lambda _: None)
    assert sent == [signal.SIGUSR1]
    while process._count_tasks() >= others:
        time.sleep(0.0005)
    process.report_now(time.monotonic() + 0.05, lambda _: None)
    assert sent == [signal.SIGUSR1]
    process.read_to_end(lambda _: None)


def test_nothing_of_a_step_that_ended_lies_around(make_engine: MakeEngine) -> None:
    """A step that has ended leaves no files. The job files are stored in memory, which a run of several days must not
    fill.
    """
    engine = make_engine()
    measure(engine)
    (folder,) = engine._jobs._folder._made
    assert [path.name for path in folder.path.iterdir()] == ["owner.lock"]
    engine.close()
    assert not folder.path.exists()
