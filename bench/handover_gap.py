"""Measure how long the device is idle between two loads.

The script compares tkperf with consecutive calls of fio.

A separate process reads the I/O counters of the device (/sys/block/LOOP/stat) every 0.5 ms. Meanwhile, tkperf's runner
runs a test with all kinds of phases on a loop device and writes its run file. Afterwards, the same steps run as
consecutive calls of fio. An idle gap is a sequence of readings in which no I/O completed. The script needs root (loop
device). It prints the gaps for each kind of hand-over:

- step to step, within a round
- round to round, chosen before: the verdict decides whether another round follows, and was known shortly before the
  planned end of the round
- round to round, by the totals: the verdict decides whether another round follows, and was known only after the last
  I/Os
- fill to round, round to stream, stream to stream, section to section (from a stream or a round to a round)
- the difference between a planned idle time and its real length

    python bench/handover_gap.py [--cycles 4] [--step-s 2] [--folder /var/tmp] [--view live]

With --view live, tkperf also draws the live view, on a terminal that the script provides.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import pty
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise
from multiprocessing.synchronize import Event as StopEvent
from pathlib import Path
from typing import TextIO, TypeVar, cast

import numpy as np

from tkperf.cli.run_views import SWITCH_INTERVAL_S, DirectText, InBackground, LiveView
from tkperf.device.identity import read_identity
from tkperf.device.permit import grant_permit, hold_target
from tkperf.device.targets import DriveTarget
from tkperf.device.write_cache import WriteCache
from tkperf.engine import ChosenEngine, EngineLoad, Execution, Next, OnSample
from tkperf.engine.device_engine import PermittedDevice
from tkperf.engine.device_jobs import DeviceJobs, Seeds
from tkperf.engine.fio import FioEngine
from tkperf.engine.fio_job import FioTarget, render_step_job
from tkperf.engine.fio_setup import find_fio_version
from tkperf.model.figures import generic_section
from tkperf.model.measurement import Measurement
from tkperf.model.phases import Continuous, Fill, Idle, Procedure, Purge, Round, SectionOutcome
from tkperf.model.record import StepKind, StepRecord
from tkperf.model.run_info import RunInfo
from tkperf.model.workload import Access, ActiveRange, Step, Workload
from tkperf.procedures import Test, load_profile
from tkperf.procedures.building_blocks import expect_round
from tkperf.procedures.profiles import Profile
from tkperf.render.terminal.console import OutputConsole
from tkperf.runfile.writer import RunFileWriter
from tkperf.runner.events import Event, Observer, StepEnded
from tkperf.runner.runner import RunParts, execute_run
from tkperf.system.process import require_program

T = TypeVar("T")
SIZE_BYTES = 1 << 30
SAMPLE_EVERY_S = 0.0005
IDLE_S = 1.0
PLANNED = "planned idle time, off by"


def sample_counters(disk: str, path: str, stop: StopEvent) -> None:
    """Write the monotonic time in s and the number of completed I/Os repeatedly, until the event is set."""
    rows = []
    with open(f"/sys/block/{disk}/stat", "rb") as stat:
        while not stop.is_set():
            stat.seek(0)
            fields = stat.read().split()
            rows.append((time.monotonic(), int(fields[0]) + int(fields[4])))
            time.sleep(SAMPLE_EVERY_S)
    np.save(path, np.array(rows))


@contextmanager
def loop_device(folder: Path) -> Iterator[str]:
    image = folder / "image"
    with image.open("wb") as file:
        file.truncate(SIZE_BYTES)
    subprocess.run(["fallocate", "-l", str(SIZE_BYTES), image], check=True)
    device = subprocess.check_output(["losetup", "--find", "--show", "--direct-io=on", image], text=True).strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


def idle_gaps_ms(samples: np.ndarray, boundaries_s: Sequence[float], *, within_s: float = 0.1) -> list[float]:
    """Return the longest period without a completed I/O near each boundary, in ms."""
    times, counts = samples[:, 0], samples[:, 1]
    moved = np.flatnonzero(np.diff(counts)) + 1
    begins, ends = times[moved[:-1]], times[moved[1:]]
    gaps = []
    for boundary_s in boundaries_s:
        near = (ends > boundary_s - within_s) & (begins < boundary_s + within_s)
        gaps.append(float((ends - begins)[near].max(initial=0.0)) * 1000)
    return gaps


def build_steps(step_s: float) -> tuple[Step, ...]:
    return tuple(
        Step(
            workload=Workload(
                access=Access.RANDOM, read_percent=read_percent, block_size_bytes=block_size_bytes, jobs=2, io_depth=8
            ),
            duration_s=step_s,
        )
        for read_percent in (100, 0)
        for block_size_bytes in (65536, 4096)
    )


def build_procedure(steps: tuple[Step, ...], cycles: int, rounds: int) -> Procedure:
    """Yield the phases of several cycles. Each cycle consists of a fill, a number of rounds that depends on a verdict,
    two streams, further rounds with an idle time, and a purge. A cycle in which the verdict ends the rounds early has
    no streams.
    """
    tracked, stream_s = steps[-1].workload, 3.0
    for cycle in range(cycles):
        first, second = f"first {cycle}", f"second {cycle}"
        yield Fill(section=first, workload=replace(tracked, access=Access.SEQUENTIAL), passes=1)
        usual_iops = 0.0
        for number in range(1, rounds + 1):
            answer = expect_round((yield Round(section=first, number=number, steps=steps)))
            iops = answer[tracked].iops
            # The forecast allows for at most twice the rate. Whether the test continues therefore depends on the
            # measurement.
            usual_iops = usual_iops or iops
            if iops > 1.7 * usual_iops:
                break
        else:
            for name, load in (("A", steps[0]), ("B", steps[1])):
                yield Continuous(
                    section=f"stream {name} {cycle}",
                    number=1,
                    workload=load.workload,
                    duration_s=stream_s,
                    longest_s=stream_s,
                )
        yield Round(section=second, number=1, steps=steps)
        yield Idle(section=second, duration_s=IDLE_S)
        yield Round(section=second, number=2, steps=steps)
        yield Round(section=f"third {cycle}", number=1, steps=steps)
        yield Purge(section=f"third {cycle}")
    yield SectionOutcome(section="first 0", window=(1,), verdict=None, ended_because="done")


class TotalsEngine(FioEngine):
    """An engine for a procedure that cannot determine the next phase before the end of a round, for example because the
    verdict is narrow.
    """

    def measure(self, step: Step, *, then: Next | None, on_sample: OnSample) -> Execution:
        if then is not None and not then.certain:
            asked = then

            def choose(so_far: Measurement) -> EngineLoad | None:
                return asked.choose(so_far) if so_far.duration_s >= 0.99 * step.duration_s else None

            then = replace(then, choose=choose)
        return super().measure(step, then=then, on_sample=on_sample)


@contextmanager
def live_view() -> Iterator[Observer]:
    """Yield the live view of a run. The view is drawn on a terminal that the script provides, and the script discards
    all text that it reads from this terminal.
    """
    terminal, ours = pty.openpty()
    reader = multiprocessing.Process(target=read_for_ever, args=(terminal,), daemon=True)
    reader.start()
    console = OutputConsole(file=cast(TextIO, DirectText(ours)), force_terminal=True)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    observer = InBackground(partial(LiveView, console), name="the live view")
    try:
        yield observer
    finally:
        observer.close()
        reader.kill()


def read_for_ever(terminal: int) -> None:
    while os.read(terminal, 65536):
        pass


def run_tkperf(
    device: str,
    folder: Path,
    procedure: Callable[[], Procedure],
    engine_type: type[FioEngine],
    views: Sequence[Observer],
) -> tuple[list[StepRecord], float]:
    """Run the test. Return all its steps, and the start of the run in seconds on the monotonic clock."""
    seen: list[StepRecord] = []

    def note(event: Event) -> None:
        if isinstance(event, StepEnded):
            seen.append(event.record)

    def bench(_profile: Profile, _active_range_bytes: int) -> Procedure:
        return procedure()

    permit = grant_permit(hold_target(read_identity(device)), confirmed_id=device).redeem()
    active = ActiveRange(offset_bytes=0, length_bytes=SIZE_BYTES)
    permitted = PermittedDevice(permit=permit, ioengine=ChosenEngine(name="io_uring"), active_range=active)
    jobs = DeviceJobs(permitted)
    engine = engine_type(jobs, version=find_fio_version(), cpus=2, seeds=Seeds(1))
    run_file = folder / f"{engine_type.__name__}.tkperf"
    writer = RunFileWriter(run_file)
    info = RunInfo(
        name="bench",
        suite="bench",
        tkperf_version="",
        fio_version=engine.version,
        ioengine="io_uring",
        command_line=(),
        started_utc="",
        profile_name="",
        profile={},
        options={},
        device={},
        hosts=(),
        active_range_offset_bytes=0,
        active_range_length_bytes=SIZE_BYTES,
    )
    run = RunParts(
        info=info,
        tests=(Test(name="bench", title="bench", procedure=bench, section_plan=generic_section),),
        profile=load_profile("quick"),
        engine=engine,
        target=DriveTarget(permit, None, WriteCache(permit, "keep")),
        observers=(writer, note, *views),
        clock=time.monotonic,
    )
    origin_s = time.monotonic()
    execute_run(run)
    writer.close()
    permit.release()
    return seen, origin_s


def name_kind(before: StepRecord, after: StepRecord, round_end: str) -> str | None:
    """Return the kind of hand-over from one step to the next. Return None if the second step is a fill."""
    stream = StepKind.CONTINUOUS
    if after.kind is StepKind.FILL:
        return None
    if after.planned_pause:
        return PLANNED
    if before.kind is StepKind.FILL:
        return "fill to round"
    if after.kind is stream:
        return "round to stream" if before.kind is not stream else "stream to stream"
    if before.section != after.section:
        return "section to section"
    return "step to step" if before.number == after.number else round_end


def run_plain(device: str, folder: Path, steps: tuple[Step, ...], rounds: int) -> list[float]:
    """Run the same steps as consecutive calls of fio. Return the times of the boundaries between the steps, in
    seconds on the monotonic clock.
    """
    target = FioTarget(
        path=device, ioengine="io_uring", active_range=ActiveRange(offset_bytes=0, length_bytes=SIZE_BYTES)
    )
    boundaries = []
    for _ in range(rounds):
        for step in steps:
            job = folder / "plain.fio"
            job.write_text(render_step_job(step, target))
            subprocess.run([require_program("fio"), "--output-format=json", job], check=True, stdout=subprocess.DEVNULL)
            boundaries.append(time.monotonic())
    return boundaries[:-1]


def watched(device: str, folder: Path, work: Callable[[], T]) -> tuple[T, np.ndarray]:
    stop = multiprocessing.Event()
    path = str(folder / "samples.npy")
    sampler = multiprocessing.Process(target=sample_counters, args=(Path(device).name, path, stop))
    sampler.start()
    time.sleep(0.2)
    try:
        result = work()
    finally:
        stop.set()
        sampler.join()
    return result, np.load(path)


def describe(name: str, gaps_ms: list[float]) -> None:
    print(
        f"{name:34} {len(gaps_ms):4} gaps: median {statistics.median(gaps_ms):7.1f} ms, "
        f"95 % {np.percentile(gaps_ms, 95):7.1f} ms, worst {max(gaps_ms):7.1f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cycles", type=int, default=4)
    parser.add_argument("--step-s", type=float, default=2.0)
    parser.add_argument("--folder", default="/var/tmp")
    parser.add_argument("--view", choices=("none", "live"), default="none")
    options = parser.parse_args()
    steps = build_steps(options.step_s)
    gaps_ms: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as name, loop_device(Path(name)) as device:
        folder = Path(name)
        for engine_type, round_end, cycles, rounds in (
            (FioEngine, "round to round, chosen before", options.cycles, 4),
            (TotalsEngine, "round to round, by the totals", max(1, options.cycles // 2), 6),
        ):
            procedure = partial(build_procedure, steps, cycles, rounds)
            with ExitStack() as stack:
                views = [stack.enter_context(live_view())] if options.view == "live" else []
                run = partial(run_tkperf, device, folder, procedure, engine_type, views)
                (seen, origin_s), samples = watched(device, folder, run)
            for before, after in pairwise(seen):
                kind = name_kind(before, after, round_end)
                if kind == PLANNED:
                    off_s = (after.gap_s or 0.0) - IDLE_S
                    gaps_ms.setdefault(PLANNED, []).append(abs(off_s) * 1000)
                elif kind:
                    gaps_ms.setdefault(kind, []).extend(idle_gaps_ms(samples, [origin_s + after.started_s]))
        plain, samples = watched(device, folder, lambda: run_plain(device, folder, steps, 3))
        plain_ms = idle_gaps_ms(samples, plain, within_s=0.5)
    for kind, found_ms in gaps_ms.items():
        describe(kind, found_ms)
    describe("consecutive fio calls", plain_ms)
    median_ms = statistics.median(gaps_ms["step to step"])
    ratio = statistics.median(plain_ms) / max(median_ms, SAMPLE_EVERY_S * 1000)
    print(f"consecutive fio calls leave the device idle {ratio:.0f} times as long (medians)")


if __name__ == "__main__":
    main()
