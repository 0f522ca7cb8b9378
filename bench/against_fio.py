"""What does tkperf cost the load? Its steps against the same fio job by hand, in pairs, interleaved.

On a file in memory (tmpfs) that fio reaches with direct I/O: the two jobs of the load use up two CPUs,
so that whatever else runs shows in the latencies. Of each pair, in turns, one half is a step by tkperf's
engine with a device's counters looked at beside it as in a run, the other the very same job file by
``fio --output-format=json+``. A third half, by hand again, tells how far two such calls differ by
themselves. Prints the medians of the pairs' ratios, their spread, tkperf's own CPU time, and the
load of the host. Needs root (a loop device, whose counters are looked at).

    python bench/against_fio.py [--pairs 10] [--step-s 10] [--jobs 2] [--depth 16] [--folder /dev/shm]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from handover_gap import loop_device

from tkperf.device.counters import LOOK_EVERY_S, watching
from tkperf.device.identity import read_identity
from tkperf.device.permit import ErasePermit, grant_permit, hold_target
from tkperf.disturbance.io import Counters
from tkperf.engine.fio import FioEngine
from tkperf.engine.fio_job import FioTarget, render_step_job
from tkperf.engine.fio_output import DocumentSplitter, parse_document
from tkperf.measurement import Measurement
from tkperf.record import StepKind
from tkperf.run_watch import RunWatch
from tkperf.workload import Access, ActiveRange, Step, Workload

SIZE_BYTES = 256 << 20
IOENGINE = "libaio"
RANGE = ActiveRange(offset_bytes=0, length_bytes=SIZE_BYTES)
Figures = tuple[float, float, float]


def figures_of(measurement: Measurement) -> Figures:
    """IOPS, mean and 99.9th percentile of the latency in us."""
    percentile_ns = measurement.both.histogram.percentile_ns(99.9)
    assert measurement.latency_mean_us is not None
    assert percentile_ns is not None
    return measurement.iops, measurement.latency_mean_us, percentile_ns / 1000


def by_hand(job: Path) -> Figures:
    output = subprocess.check_output(["fio", "--output-format=json+", "--eta=never", job])
    *_, document = DocumentSplitter().feed(output)
    last = parse_document(document)
    return figures_of(
        Measurement(duration_s=last.elapsed_s, read=last.read, write=last.write, samples=())
    )


def by_tkperf(permit: ErasePermit, step: Step, counters: Counters) -> tuple[Figures, float]:
    """The figures, and tkperf's own CPU time from the step's first I/O to its last, in s."""
    engine = FioEngine(permit, ioengine=IOENGINE, active_range=RANGE, version="", cpus=2)
    watch = RunWatch(0.0, counters)
    watch.step_begins(StepKind.ROUND, time.monotonic(), step.duration_s)
    cpu_s: list[float] = []

    def on_sample(sample: object) -> None:
        watch.sample(sample, time.monotonic())  # type: ignore[arg-type]
        cpu_s.append(time.process_time())

    try:
        measurement = engine.measure(step, then=None, on_sample=on_sample).measurement
    finally:
        engine.close()
    samples_s = sum(sample.duration_s for sample in measurement.samples[1:])
    share = (cpu_s[-1] - cpu_s[0]) / samples_s if samples_s else float("nan")
    return figures_of(measurement), share


def describe(name: str, pairs: list[tuple[Figures, Figures]]) -> None:
    for what, position in (("IOPS", 0), ("mean latency", 1), ("p99.9 latency", 2)):
        ratios = sorted(one[position] / other[position] for one, other in pairs)
        print(
            f"{name}: {what:13} ratio, median of {len(ratios)} pairs {statistics.median(ratios):.3f}, "
            f"from {ratios[0]:.3f} to {ratios[-1]:.3f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--step-s", type=float, default=10.0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--depth", type=int, default=16)
    parser.add_argument("--folder", default="/dev/shm", help="on tmpfs")
    options = parser.parse_args()
    workload = Workload(
        access=Access.RANDOM,
        read_percent=100,
        block_size_bytes=4096,
        jobs=options.jobs,
        io_depth=options.depth,
    )
    step = Step(workload=workload, duration_s=options.step_s)
    measured: list[tuple[Figures, Figures]] = []
    again: list[tuple[Figures, Figures]] = []
    shares: list[float] = []
    with tempfile.TemporaryDirectory(dir=options.folder) as name, loop_device(Path(name)) as device:
        file, job = Path(name) / "file", Path(name) / "job.fio"
        with file.open("wb") as target:
            for _ in range(SIZE_BYTES >> 20):
                target.write(os.urandom(1 << 20))
        job.write_text(
            render_step_job(step, FioTarget(path=str(file), ioengine=IOENGINE, active_range=RANGE))
        )
        permit = grant_permit(hold_target(read_identity(file)), confirmed_id=str(file)).redeem()
        for number in range(options.pairs):
            halves: dict[str, Figures] = {}
            for which in ("hand", "tkperf", "again")[:: 1 if number % 2 else -1]:
                if which == "tkperf":
                    with watching(read_identity(device)) as counters:
                        halves[which], share = by_tkperf(permit, step, counters)
                    shares.append(share)
                else:
                    halves[which] = by_hand(job)
            measured.append((halves["tkperf"], halves["hand"]))
            again.append((halves["again"], halves["hand"]))
        permit.release()
    print(f"{workload}, {IOENGINE}, steps of {options.step_s:g} s; looks every {LOOK_EVERY_S:g} s")
    describe("tkperf to fio by hand", measured)
    describe("fio by hand to itself", again)
    print(f"tkperf's own CPU time: {100 * statistics.median(shares):.2f} % of a CPU (median)")
    print(f"load of the host: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
