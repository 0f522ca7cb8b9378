"""Check whether streams that run together have the same figures under tkperf as under a fio that is started by hand.

The script compares both in interleaved pairs.

A reader, a writer and a log with flushes run together on a loop device over a file in memory (tmpfs). Each stream has
an offered rate with linear arrivals. One half of each pair is a step that tkperf's engine runs, while tkperf reads the
counters of the device, as in a run. The other half is plain fio with the job file that tkperf shows. For each stream,
the script prints the medians of the pairs' ratios of IOPS and p99.9 latency, with their 95 % intervals (ranks of the
sorted ratios). It also prints the same ratios for consecutive plain calls of fio. These ratios show how much such calls
differ even without tkperf. The exit status is 1 if a median is beyond its limit. The script needs root (loop device).
20 pairs of 20 s take 14 minutes.

    python bench/streams_against_fio.py [--pairs 20] [--step-s 20] [--reader-iops 4000] [--folder /dev/shm]

With --reader-iops 0, the reader has no offered rate and uses the CPU time that remains.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from against_fio import find_ranks
from handover_gap import SIZE_BYTES, loop_device

from tkperf.device.identity import read_identity
from tkperf.device.kernel_watch import watching
from tkperf.device.permit import ErasePermit, grant_permit, hold_target
from tkperf.engine import ChosenEngine
from tkperf.engine.device_engine import PermittedDevice
from tkperf.engine.device_jobs import DeviceJobs, Seeds
from tkperf.engine.fio import FioEngine
from tkperf.engine.fio_job import FioTarget, render_step_job
from tkperf.engine.fio_output import DocumentSplitter, parse_document
from tkperf.model.measurement import IoStats, Sample, StreamPart
from tkperf.model.record import StepKind
from tkperf.model.workload import Access, ActiveRange, Step, Stream, Workload, combine
from tkperf.runner.run_watch import RunWatch
from tkperf.system.process import require_program

IOENGINE = "io_uring"
RANGE = ActiveRange(offset_bytes=0, length_bytes=SIZE_BYTES)
# The page docs/explanation/accuracy.md also states these limits.
IOPS, P999 = "IOPS", "p99.9 latency"
LIMITS = {IOPS: (0.99, 1.01), P999: (0.95, 1.05)}

# The figures of one call. The first key is the name of the stream, and the second key is the name of the figure.
# Flushes are separate streams.
Figures = Mapping[str, Mapping[str, float]]


def build_step(duration_s: float, reader_iops: float | None) -> Step:
    """Return a step in which the three streams run. Each of them uses a separate part of the device."""
    parts = [ActiveRange(offset_bytes=third * (320 << 20), length_bytes=320 << 20) for third in range(3)]
    reader = Workload(
        access=Access.RANDOM,
        read_percent=100,
        block_size_bytes=4096,
        jobs=1,
        io_depth=4,
        offered_iops=reader_iops,
        region=parts[0],
    )
    writer = replace(reader, read_percent=0, offered_iops=2000.0, region=parts[1])
    log = replace(writer, access=Access.SEQUENTIAL, io_depth=1, offered_iops=1200.0, flush_every=2, region=parts[2])
    loads = {"reader": reader, "writer": writer, "log": log}
    return Step(
        workload=combine([Stream(name=name, workload=load) for name, load in loads.items()]), duration_s=duration_s
    )


def figures_of(parts: Sequence[StreamPart], duration_s: float) -> Figures:
    return {name: _figures(stats, duration_s) for name, stats in _sides(parts)}


def _sides(parts: Sequence[StreamPart]) -> Iterator[tuple[str, IoStats]]:
    for part in parts:
        yield part.name, part.read if part.read.ios else part.write
        if part.flush.ios:
            yield f"flushes of {part.name}", part.flush


def _figures(stats: IoStats, duration_s: float) -> dict[str, float]:
    percentile_ns = stats.histogram.percentile_ns(99.9)
    # A short step has too few flushes for this percentile.
    tail = {} if percentile_ns is None else {P999: percentile_ns / 1000}
    return {IOPS: stats.ios / duration_s, **tail}


def by_hand(job: Path, step: Step) -> Figures:
    output = subprocess.check_output([require_program("fio"), "--output-format=json+", "--eta=never", job])
    *_, document = DocumentSplitter().feed(output)
    last = parse_document(document, load=step.workload)
    return figures_of(last.streams, last.elapsed_s)


def by_tkperf(permit: ErasePermit, step: Step, device: str) -> Figures:
    jobs = DeviceJobs(PermittedDevice(permit=permit, ioengine=ChosenEngine(name=IOENGINE), active_range=RANGE))
    engine = FioEngine(jobs, version="", cpus=2, seeds=Seeds(1))
    with watching(read_identity(device)) as counters:
        watch = RunWatch(0.0, counters)
        watch.step_begins(StepKind.ROUND, time.monotonic(), step.duration_s)

        def on_sample(sample: Sample, arrived_s: float | None) -> None:
            watch.sample(sample, time.monotonic() if arrived_s is None else arrived_s)

        try:
            measurement = engine.measure(step, then=None, on_sample=on_sample).measurement
        finally:
            engine.close()
    return figures_of(measurement.streams, measurement.duration_s)


def fill(device: str) -> None:
    """Write the loop device once, so that no step has to allocate memory for the file below the device."""
    command = ["dd", "if=/dev/urandom", f"of={device}", "bs=1M", f"count={SIZE_BYTES >> 20}", "oflag=direct"]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


def describe(ratios: Sequence[float]) -> dict[str, float]:
    """Return the median of the ratios, and the two ends of the 95 % interval of this median."""
    ascending = sorted(ratios)
    low, high = find_ranks(len(ascending))
    return {"median": statistics.median(ascending), "low_95": ascending[low], "high_95": ascending[high]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--step-s", type=float, default=20.0)
    parser.add_argument("--reader-iops", type=float, default=4000.0, help="offered rate of the reader; 0: none")
    parser.add_argument("--folder", default="/dev/shm", help="on tmpfs")
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    options = parser.parse_args()
    step = build_step(options.step_s, options.reader_iops or None)
    pairs: list[tuple[Figures, Figures]] = []
    with tempfile.TemporaryDirectory(dir=options.folder) as name, loop_device(Path(name)) as device:
        fill(device)
        job = Path(name) / "job.fio"
        job.write_text(render_step_job(step, FioTarget(path=device, ioengine=IOENGINE, active_range=RANGE)))
        permit = grant_permit(hold_target(read_identity(device)), confirmed_id=device).redeem()
        for number in range(options.pairs):
            if number % 2:
                hand = by_hand(job, step)
                tkperf = by_tkperf(permit, step, device)
            else:
                tkperf = by_tkperf(permit, step, device)
                hand = by_hand(job, step)
            pairs.append((tkperf, hand))
        permit.release()
    result: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    beyond = []
    for stream in pairs[0][0]:
        for figure, (least, most) in LIMITS.items():
            if not all(figure in call[stream] for pair in pairs for call in pair):
                continue
            to_hand = describe([tkperf[stream][figure] / hand[stream][figure] for tkperf, hand in pairs])
            own = describe(
                [after[stream][figure] / before[stream][figure] for (_, before), (_, after) in pairwise(pairs)]
            )
            result.setdefault(stream, {})[figure] = {"tkperf to by hand": to_hand, "by hand to by hand before": own}
            by_hand_value = statistics.median(hand[stream][figure] for _, hand in pairs)
            for which, found in result[stream][figure].items():
                print(
                    f"{stream:16} {figure:14} {which + ':':26} {found['median']:.3f} "
                    f"(95 %: {found['low_95']:.3f} to {found['high_95']:.3f}), by hand {by_hand_value:,.1f}"
                )
            if not least <= to_hand["median"] <= most:
                beyond.append(f"{figure} of {stream}")
    load = os.getloadavg()[0]
    print(f"{step.workload}, {options.pairs} pairs of {options.step_s:g} s; load of the host: {load:.1f}")
    if options.json:
        document = {
            "pairs": options.pairs,
            "step_s": options.step_s,
            "ratios": result,
            "load": load,
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        options.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    if beyond:
        print(f"beyond the limits: {', '.join(beyond)}")
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
