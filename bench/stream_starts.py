"""Measure how far apart in time the threads of a combination start.

The script also measures the time between the last I/O of the preceding step and the first I/O of each thread.

Three streams (a reader, a writer, and a log with flushes) with 4, 16 and 64 threads in total run step after step on a
loop device. tkperf's runner runs them and writes a run file. The kernel's trace contains the times at which each thread
submitted its first I/O, and at which the last I/O of the preceding step completed. Each thread has a small offered
rate. A thread therefore starts late only because of the gate, and not because it waits for a CPU. For each number of
threads, the script prints two times: from the first I/O of the first thread to the first I/O of the last thread, and
from the last completion of the preceding step to the first I/O of the last thread. The exit status is 1 if a figure is
beyond its limit. The gap includes the time between two I/Os of a thread, so gaps are shorter at a higher rate (--iops).
The script needs root (loop device, tracefs).

    python bench/stream_starts.py [--steps 16] [--step-s 2] [--threads 4 16 64] [--iops 100]
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path

from handover_gap import loop_device, run_tkperf

from tkperf.engine.fio import FioEngine
from tkperf.model.phases import Procedure, Round, SectionOutcome
from tkperf.model.workload import Access, Step, Stream, Workload, combine

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT))

from tests.lab.block_trace import TRACED, traced  # noqa: E402

IOPS_OF_A_THREAD = 100.0
THREAD = re.compile(r"-(\d+) +\[\d+\]")
# The page docs/explanation/accuracy.md also states these limits.
MOST_SPREAD_MS = {16: 10.0, 64: 30.0}
MOST_MEDIAN_GAP_MS = {16: 5.0}


@dataclass(slots=True)
class Trace:
    """Times at which each thread of fio submitted its first I/O and completed its last I/O, in s on the monotonic
    clock.
    """

    first_s: dict[str, float] = field(default_factory=dict)
    last_s: dict[str, float] = field(default_factory=dict)

    def parse(self, lines: Iterable[str]) -> None:
        thread_of: dict[str, str] = {}
        for line in lines:
            event, thread = TRACED.search(line), THREAD.search(line)
            if event is None or thread is None:
                continue
            text_s, what, _, sector, _, by = event.groups()
            if what == "bio_queue" and by.startswith("fio"):
                self.first_s.setdefault(thread[1], float(text_s))
                thread_of[sector] = thread[1]
            elif what == "rq_complete" and sector in thread_of:
                self.last_s[thread_of.pop(sector)] = float(text_s)


def build_step(threads: int, step_s: float, iops_of_a_thread: float) -> Step:
    shares = {"reader": threads // 2, "writer": threads // 4, "log": threads // 4}
    streams = [
        Stream(
            name=name,
            workload=Workload(
                access=Access.SEQUENTIAL if name == "log" else Access.RANDOM,
                read_percent=100 if name == "reader" else 0,
                block_size_bytes=4096,
                jobs=jobs,
                io_depth=1,
                offered_iops=jobs * iops_of_a_thread,
                flush_every=4 if name == "log" else None,
            ),
        )
        for name, jobs in shares.items()
    ]
    return Step(workload=combine(streams), duration_s=step_s)


def build_procedure(step: Step, steps: int) -> Procedure:
    for number in range(1, steps + 1):
        yield Round(section="together", number=number, steps=(step,))
    yield SectionOutcome(section="together", window=(1,), verdict=None, ended_because="done")


def measure(device: str, folder: Path, step: Step, steps: int) -> tuple[list[float], list[float]]:
    """Run the steps. Return the spreads and the gaps in ms, one for each step except the first."""
    trace = Trace()
    with traced(Path(device), trace.parse):
        run_tkperf(device, folder, partial(build_procedure, step, steps), FioEngine, ())
    # The threads of a step start within a short time, and the next step begins much later. If the kernel dropped
    # events, the trace may not contain all threads of a step. Such a step is left out.
    of_a_step = step.workload.jobs
    groups: list[list[str]] = []
    for thread in sorted(trace.first_s, key=lambda thread: trace.first_s[thread]):
        if not groups or trace.first_s[thread] - trace.first_s[groups[-1][0]] > step.duration_s / 2:
            groups.append([])
        groups[-1].append(thread)
    pairs = [pair for pair in pairwise(groups) if all(len(group) == of_a_step for group in pair)]
    assert len(pairs) >= steps // 3, f"the trace shows {len(pairs)} pairs of complete steps of {steps}"
    spreads_ms, gaps_ms = [], []
    for before, after in pairs:
        starts_s = [trace.first_s[thread] for thread in after]
        ended_s = max(trace.last_s[thread] for thread in before)
        spreads_ms.append(1000 * (max(starts_s) - min(starts_s)))
        gaps_ms.append(1000 * max(0.0, max(starts_s) - ended_s))
    return spreads_ms, gaps_ms


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--step-s", type=float, default=2.0)
    parser.add_argument("--threads", type=int, nargs="+", default=[4, 16, 64])
    parser.add_argument("--iops", type=float, default=IOPS_OF_A_THREAD, help="offered by each thread")
    parser.add_argument("--folder", default="/dev/shm")
    options = parser.parse_args()
    beyond = []
    with tempfile.TemporaryDirectory(dir=options.folder) as name, loop_device(Path(name)) as device:
        for threads in options.threads:
            folder = Path(name) / str(threads)
            folder.mkdir()
            spreads_ms, gaps_ms = measure(
                device, folder, build_step(threads, options.step_s, options.iops), options.steps
            )
            for what, found_ms in (("spread of the starts", spreads_ms), ("gap to the last start", gaps_ms)):
                print(
                    f"{threads:3} threads, {what:22} median {statistics.median(found_ms):6.1f} ms, "
                    f"worst {max(found_ms):6.1f} ms of {len(found_ms)}"
                )
            most_spread_ms = min((most for limit, most in MOST_SPREAD_MS.items() if threads <= limit), default=None)
            most_gap_ms = min((most for limit, most in MOST_MEDIAN_GAP_MS.items() if threads <= limit), default=None)
            if most_spread_ms is not None and statistics.median(spreads_ms) > most_spread_ms:
                beyond.append(f"spread of {threads} threads")
            if most_gap_ms is not None and statistics.median(gaps_ms) > most_gap_ms:
                beyond.append(f"gap of {threads} threads")
    print(f"load of the host: {os.getloadavg()[0]:.1f}")
    if beyond:
        print(f"beyond the limits: {', '.join(beyond)}")
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
