"""Measure how much tkperf slows the load down.

In alternating pairs, the script compares a step of tkperf with plain calls of fio that run the same job.

fio uses direct I/O on a file in memory (tmpfs). The two jobs of the load use up two CPUs, so any other work on these
CPUs affects the latencies.

One half of each pair is a step that tkperf's engine runs, while tkperf also reads the counters of a device, as in a
run. The other half consists of two plain calls, ``fio --output-format=json+`` with the same job file: one before the
step and one after the step. A change in the speed of the machine therefore affects both halves equally. The two plain
calls show how much such calls differ even without tkperf. A further call with ``--status-interval=1`` shows the effect
of the report that fio writes every second. tkperf makes its samples from these reports.

The script prints the medians of the pairs' ratios, their 95 % intervals (ranks of the sorted ratios according to the
binomial distribution) and the spread of the ratios. It also prints the number of times that fio's job threads lost
their CPUs, the CPU time of tkperf itself, and the load of the host. With --json, the script writes the same data as
JSON. The exit status is 1 if a median is beyond its limit. The script needs root, because it reads the counters of a
loop device.

    python bench/against_fio.py [--pairs 30] [--step-s 4] [--jobs 2] [--depth 16] [--folder /dev/shm] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from handover_gap import loop_device

from tkperf.device.identity import read_identity
from tkperf.device.kernel_watch import LOOK_EVERY_S, MOST_SELDOM_S, watching
from tkperf.device.permit import ErasePermit, grant_permit, hold_target
from tkperf.engine import ChosenEngine
from tkperf.engine.device_engine import PermittedDevice
from tkperf.engine.device_jobs import DeviceJobs, Seeds
from tkperf.engine.fio import FioEngine
from tkperf.engine.fio_job import FioTarget, render_step_job
from tkperf.engine.fio_output import DocumentSplitter, parse_document
from tkperf.model.disturbance.io import Counters
from tkperf.model.measurement import Measurement, Sample
from tkperf.model.record import StepKind
from tkperf.model.workload import Access, ActiveRange, Step, Workload
from tkperf.runner.run_watch import RunWatch
from tkperf.system.process import require_program

SIZE_BYTES = 256 << 20
IOENGINE = "libaio"
RANGE = ActiveRange(offset_bytes=0, length_bytes=SIZE_BYTES)
HAND, REPORTS, AGAIN, TKPERF = "by hand", "by hand with reports", "by hand again", "tkperf"
# The page docs/explanation/accuracy.md also states these limits.
IOPS_RATIOS = (0.99, 1.01)
MEAN_LATENCY_RATIOS = (0.99, 1.01)
MOST_P999_RATIO = 1.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Figures of one call of fio. ``switches_per_s`` is the number of context switches per second, voluntary and
    involuntary, of all job threads.
    """

    iops: float
    mean_us: float
    p999_us: float
    switches_per_s: float


NAMES = {"iops": "IOPS", "mean_us": "mean latency", "p999_us": "p99.9 latency", "switches_per_s": "context switches"}


def figures_of(measurement: Measurement, document: bytes) -> Figures:
    percentile_ns = measurement.both.histogram.percentile_ns(99.9)
    assert measurement.latency_mean_us is not None
    assert percentile_ns is not None
    switches = sum(job["ctx"] for job in json.loads(document)["jobs"])
    return Figures(
        iops=measurement.iops,
        mean_us=measurement.latency_mean_us,
        p999_us=percentile_ns / 1000,
        switches_per_s=switches / measurement.duration_s,
    )


def by_hand(job: Path, *options: str) -> Figures:
    output = subprocess.check_output([require_program("fio"), "--output-format=json+", "--eta=never", *options, job])
    *_, document = DocumentSplitter().feed(output)
    last = parse_document(document)
    measurement = Measurement(duration_s=last.elapsed_s, read=last.read, write=last.write, samples=())
    return figures_of(measurement, document)


def by_tkperf(permit: ErasePermit, step: Step, counters: Counters) -> tuple[Figures, float]:
    """Return the figures of a step. Also return the share of CPU time that tkperf itself used between the first and the
    last sample of the step.
    """
    jobs = DeviceJobs(PermittedDevice(permit=permit, ioengine=ChosenEngine(name=IOENGINE), active_range=RANGE))
    engine = FioEngine(jobs, version="", cpus=2, seeds=Seeds(1))
    watch = RunWatch(0.0, counters)
    watch.step_begins(StepKind.ROUND, time.monotonic(), step.duration_s)
    cpu_s: list[float] = []

    def on_sample(sample: Sample, arrived_s: float | None) -> None:
        watch.sample(sample, time.monotonic() if arrived_s is None else arrived_s)
        cpu_s.append(time.process_time())

    try:
        execution = engine.measure(step, then=None, on_sample=on_sample)
    finally:
        engine.close()
    measurement = execution.measurement
    # The last report of fio arrives when fio ends, and does not cover a whole second.
    samples_s = sum(sample.duration_s for sample in measurement.samples[1 : len(cpu_s)])
    share = (cpu_s[-1] - cpu_s[0]) / samples_s if samples_s else float("nan")
    return figures_of(measurement, execution.output), share


def ratios(rounds: list[dict[str, Figures]], which: str, figure: str) -> dict[str, float]:
    """Return the median, the 95 % interval and the extremes of the ratios of one figure.

    ``which`` selects a kind of call. The ratio of a call of this kind is the figure of the call divided by the
    geometric mean of the figures of the plain calls before and after it. The ratio of the second plain call is its
    figure divided by the figure of the first plain call.
    """

    def plain(one: dict[str, Figures]) -> float:
        first: float = getattr(one[HAND], figure)
        again: float = getattr(one[AGAIN], figure)
        return first if which == AGAIN else math.sqrt(first * again)

    found = sorted(getattr(one[which], figure) / plain(one) for one in rounds)
    low, high = find_ranks(len(found))
    return {
        "median": statistics.median(found),
        "low_95": found[low],
        "high_95": found[high],
        "least": found[0],
        "most": found[-1],
    }


def find_ranks(count: int) -> tuple[int, int]:
    """Return the indices of the two sorted values between which the median lies with a probability of 95 %. With few
    values, return the first and the last index.
    """
    below, rank = 0.0, 0
    while rank < count // 2 and below + math.comb(count, rank) / 2**count <= 0.025:
        below += math.comb(count, rank) / 2**count
        rank += 1
    return max(rank - 1, 0), count - max(rank, 1)


def find_beyond(result: dict[str, dict[str, dict[str, float]]]) -> list[str]:
    """Return the figures that exceed their limits."""
    medians = {figure: result[TKPERF][figure]["median"] for figure in NAMES}
    within = {
        "iops": IOPS_RATIOS[0] <= medians["iops"] <= IOPS_RATIOS[1],
        "mean_us": MEAN_LATENCY_RATIOS[0] <= medians["mean_us"] <= MEAN_LATENCY_RATIOS[1],
        "p999_us": medians["p999_us"] <= MOST_P999_RATIO,
    }
    return [NAMES[figure] for figure, is_within in within.items() if not is_within]


def read_options(doc: str) -> tuple[argparse.Namespace, Step]:
    """Return the options for a comparison of pairs of steps, and the step that these options describe. ``doc`` is the
    docstring of the script.
    """
    parser = argparse.ArgumentParser(description=doc.split("\n", maxsplit=1)[0])
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--step-s", type=float, default=4.0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--depth", type=int, default=16)
    parser.add_argument("--folder", default="/dev/shm", help="on tmpfs")
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    options = parser.parse_args()
    workload = Workload(
        access=Access.RANDOM, read_percent=100, block_size_bytes=4096, jobs=options.jobs, io_depth=options.depth
    )
    return options, Step(workload=workload, duration_s=options.step_s)


def main() -> int:
    options, step = read_options(__doc__)
    rounds: list[dict[str, Figures]] = []
    shares: list[float] = []
    with tempfile.TemporaryDirectory(dir=options.folder) as name, loop_device(Path(name)) as device:
        file, job = Path(name) / "file", Path(name) / "job.fio"
        with file.open("wb") as target:
            for _ in range(SIZE_BYTES >> 20):
                target.write(os.urandom(1 << 20))
        job.write_text(render_step_job(step, FioTarget(path=str(file), ioengine=IOENGINE, active_range=RANGE)))
        permit = grant_permit(hold_target(read_identity(file)), confirmed_id=str(file)).redeem()
        for number in range(options.pairs):
            calls: dict[str, Figures] = {}
            order = (TKPERF, REPORTS)[:: 1 if number % 2 else -1]
            for which in (HAND, *order, AGAIN):
                if which == TKPERF:
                    with watching(read_identity(device)) as counters:
                        calls[which], share = by_tkperf(permit, step, counters)
                    shares.append(share)
                else:
                    calls[which] = by_hand(job, *(["--status-interval=1"] if which == REPORTS else []))
            rounds.append(calls)
        permit.release()
    result = {which: {figure: ratios(rounds, which, figure) for figure in NAMES} for which in (TKPERF, REPORTS, AGAIN)}
    cpu_percent = 100 * statistics.median(shares)
    load = os.getloadavg()[0]
    print(
        f"{step.workload}, {IOENGINE}, {options.pairs} pairs of {options.step_s:g} s; looks every "
        f"{LOOK_EVERY_S:g} s at the ends of a step, at most every {MOST_SELDOM_S:g} s within"
    )
    for which, figures in result.items():
        for figure, found in figures.items():
            print(
                f"{which + ' to by hand:':32} {NAMES[figure]:16} {found['median']:.3f} "
                f"(95 %: {found['low_95']:.3f} to {found['high_95']:.3f}; {found['least']:.3f} to {found['most']:.3f})"
            )
    print(f"tkperf's own CPU time in steps this short: {cpu_percent:.2f} % of a CPU (median)")
    print(f"load of the host: {load:.1f}")
    if options.json:
        document = {
            "workload": str(step.workload),
            "pairs": options.pairs,
            "step_s": options.step_s,
            "ratios_to_by_hand": result,
            "cpu_percent": cpu_percent,
            "load": load,
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        options.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    beyond = find_beyond(result)
    if beyond:
        print(f"beyond the limits: {', '.join(beyond)}")
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
