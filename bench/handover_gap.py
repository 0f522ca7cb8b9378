"""How long does the device stand idle between steps? tkperf against plain consecutive fio calls.

The device's own I/O counters (/sys/block/LOOP/stat) are sampled every 0.5 ms by a process of its
own while the same steps run twice on a loop device: as rounds of tkperf's runner, with its run
file and all, and as one fio call after another. An idle gap is a stretch of samples in which no
I/O completed. Needs root (loop device). Prints both, and their ratio.

    python bench/handover_gap.py [--rounds 7] [--step-s 2] [--folder /var/tmp] [--view live]

With --view live the live view is drawn meanwhile, on a terminal of the bench's own.
"""

from __future__ import annotations

import argparse
import itertools
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
from multiprocessing.synchronize import Event as StopEvent
from pathlib import Path
from typing import TextIO, TypeVar, cast

import msgspec
import numpy as np

from tkperf.cli.background import DirectText, InBackground
from tkperf.cli.console import OutputConsole
from tkperf.cli.live import LiveView
from tkperf.cli.progress import SWITCH_INTERVAL_S
from tkperf.device.identity import read_identity
from tkperf.device.permit import grant_permit, hold_target
from tkperf.device.target import DriveTarget
from tkperf.device.write_cache import WriteCache
from tkperf.engine import Execution, Next, OnSample
from tkperf.engine.fio import FioEngine
from tkperf.engine.fio_job import FioTarget, render_step_job
from tkperf.engine.fio_setup import find_fio_version
from tkperf.events import Event, Observer, StepEnded
from tkperf.phases import Outcome, Procedure, SectionOutcome
from tkperf.procedures import SSD_TESTS, load_profile
from tkperf.procedures.parts import rounds_until_steady
from tkperf.profiles import Profile
from tkperf.record import RunInfo, StepRecord
from tkperf.runfile.writer import RunFileWriter
from tkperf.runner import Run, execute
from tkperf.workload import Access, ActiveRange, Step, Workload

T = TypeVar("T")
SIZE_BYTES = 1 << 30
SAMPLE_EVERY_S = 0.0005


def sample_counters(disk: str, path: str, stop: StopEvent) -> None:
    """Write (monotonic s, I/Os completed) pairs until told to stop."""
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
    device = subprocess.check_output(
        ["losetup", "--find", "--show", "--direct-io=on", image], text=True
    ).strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


def idle_gaps_ms(samples: np.ndarray, boundaries_s: Sequence[float]) -> list[float]:
    """The longest stretch without a completed I/O within half a second of each boundary."""
    times, counts = samples[:, 0], samples[:, 1]
    gaps = []
    for boundary_s in boundaries_s:
        near = (times > boundary_s - 0.5) & (times < boundary_s + 0.5)
        t, c = times[near], counts[near]
        longest_s, since_s = 0.0, t[0]
        for i in range(1, len(t)):
            if c[i] != c[i - 1]:
                since_s = t[i]
            longest_s = max(longest_s, t[i] - since_s)
        gaps.append(longest_s * 1000)
    return gaps


def build_steps(step_s: float) -> tuple[Step, ...]:
    return tuple(
        Step(
            workload=Workload(
                access=Access.RANDOM,
                read_percent=read_percent,
                block_size_bytes=block_size_bytes,
                jobs=2,
                io_depth=8,
            ),
            duration_s=step_s,
        )
        for read_percent in (100, 65, 0)
        for block_size_bytes in (65536, 16384, 4096)
    )


class DecidingEngine(FioEngine):
    """Has to wait for the verdict at every end of a round, as a real run has from round 5 on."""

    def measure(self, step: Step, *, then: Next | None, on_sample: OnSample) -> Execution:
        if then is not None and then.step == self.first_step:
            then = Next(step=then.step, certain=False)
        return super().measure(step, then=then, on_sample=on_sample)

    first_step: Step


@contextmanager
def live_view() -> Iterator[Observer]:
    """The live view as a run has it, on a terminal whose other end is read and thrown away."""
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
    device: str, folder: Path, steps: tuple[Step, ...], rounds: int, views: Sequence[Observer]
) -> tuple[list[float], list[float]]:
    """Boundaries within rounds and between rounds, in seconds on the monotonic clock."""
    seen: list[StepRecord] = []

    def note(event: Event) -> None:
        if isinstance(event, StepEnded):
            seen.append(event.record)

    def procedure(profile: Profile, _active_range_bytes: int) -> Procedure:
        jumps = itertools.count()
        section: SectionOutcome = yield from rounds_until_steady(
            "bench",
            steps,
            msgspec.structs.replace(profile.steady_state, max_rounds=rounds),
            tracking="none",
            unit="",
            tracked_value=lambda _: 2.0 ** next(jumps),  # never steady
        )
        return Outcome(sections=(section,))

    permit = grant_permit(hold_target(read_identity(device)), confirmed_id=device).redeem()
    active = ActiveRange(offset_bytes=0, length_bytes=SIZE_BYTES)
    engine = DecidingEngine(
        permit,
        ioengine="io_uring",
        active_range=active,
        version=find_fio_version(),
        cpus=2,
    )
    engine.first_step = steps[0]
    writer = RunFileWriter(folder / "bench.tkperf")
    info = RunInfo(
        name="bench", suite="bench", tkperf_version="", fio_version=engine.version, engine="io_uring",
        command_line=(), started_utc="", profile_name="", profile={}, options={}, device={}, host={},
        active_range_offset_bytes=0, active_range_length_bytes=SIZE_BYTES,
    )  # fmt: skip
    origin_s = time.monotonic()
    execute(
        Run(
            info=info,
            tests=(replace(SSD_TESTS["iops"], name="bench", title="bench", procedure=procedure),),
            profile=load_profile("quick"),
            engine=engine,
            target=DriveTarget(permit, None, WriteCache(permit, "keep")),
            observers=(writer, note, *views),
            clock=time.monotonic,
        )
    )
    writer.close()
    permit.release()
    inside = [origin_s + step.started_s for step in seen if step.position > 0]
    between = [origin_s + s.started_s for s in seen if s.position == 0 and s.number > 1]
    return inside, between


def run_plain(device: str, folder: Path, steps: tuple[Step, ...], rounds: int) -> list[float]:
    """The same steps as one fio call after another; boundaries on the monotonic clock."""
    target = FioTarget(
        path=device,
        ioengine="io_uring",
        active_range=ActiveRange(offset_bytes=0, length_bytes=SIZE_BYTES),
    )
    boundaries = []
    for _ in range(rounds):
        for step in steps:
            job = folder / "plain.fio"
            job.write_text(render_step_job(step, target))
            subprocess.run(
                ["fio", "--output-format=json", job], check=True, stdout=subprocess.DEVNULL
            )
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
    ordered = sorted(gaps_ms)
    print(
        f"{name:34} {len(gaps_ms):4} gaps: median {statistics.median(gaps_ms):7.1f} ms, "
        f"95 % {ordered[int(0.95 * (len(ordered) - 1))]:7.1f} ms, worst {ordered[-1]:7.1f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--step-s", type=float, default=2.0)
    parser.add_argument("--folder", default="/var/tmp")
    parser.add_argument("--view", choices=("none", "live"), default="none")
    options = parser.parse_args()
    steps = build_steps(options.step_s)
    with tempfile.TemporaryDirectory(dir=options.folder) as name, loop_device(Path(name)) as device:
        folder = Path(name)
        with ExitStack() as stack:
            views = [stack.enter_context(live_view())] if options.view == "live" else []
            (inside, between), samples = watched(
                device, folder, lambda: run_tkperf(device, folder, steps, options.rounds, views)
            )
        tkperf_ms = idle_gaps_ms(samples, inside)
        round_end_ms = idle_gaps_ms(samples, between)
        plain, samples = watched(device, folder, lambda: run_plain(device, folder, steps, 2))
        plain_ms = idle_gaps_ms(samples, plain)
    describe("tkperf, between steps of a round", tkperf_ms)
    describe("tkperf, at a round's end", round_end_ms)
    describe("consecutive fio calls", plain_ms)
    ratio = statistics.median(plain_ms) / max(statistics.median(tkperf_ms), SAMPLE_EVERY_S * 1000)
    print(f"consecutive fio calls leave the device idle {ratio:.0f} times as long (medians)")


if __name__ == "__main__":
    main()
