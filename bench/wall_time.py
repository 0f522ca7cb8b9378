"""Measure how much longer a test takes than its steps, and how much CPU time tkperf itself uses.

The script performs whole runs from the command line, on a loop device (as root) or, with --file, on a scratch file.
First, the tests ``iops`` and ``lat`` run with the profile quick, which has steps of one second. Then a few steps of a
minute run. On the loop device, four streams with 12 threads then run together, in slices of a minute.

"Wall over prescribed" is the time from the beginning of the first timed step of a test to the end of its last timed
step, without the fills and purges between them. The ratio divides this time by the sum of the planned times of the
steps. The script prints this ratio and the worst gaps, and with --json writes them as JSON. The exit status is 1 if a
ratio, or tkperf's CPU time in steps of a minute, is beyond its limit.

    python bench/wall_time.py [--folder /var/tmp] [--file] [--long-step-s 60] [--json FILE]

The CPU time of tkperf is the CPU time of its process, without fio. The script reads this time while the run prints its
progress as plain lines. The limit applies to the CPU time within steps, from some seconds after the beginning of a step
to some seconds before its end. The script also prints the CPU time from the first step to the end of the last step,
which includes the work between the steps.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
from handover_gap import SIZE_BYTES, loop_device
from three_days import write_streams

from tkperf.model.record import RunRecord, StepKind, StepRecord
from tkperf.runfile.reader import read_run

# The page docs/explanation/accuracy.md also states these limits.
MOST_AT_ONE_SECOND = 1.03
MOST_AT_ONE_MINUTE = 1.002
# The share of one CPU in steps of a minute, in percent. One limit applies to a single load, and the other to streams
# with up to 12 threads.
MOST_CPU_PERCENT = {"long": 0.3, "together": 0.6}
TOGETHER_SLICES = 3
# The script leaves out the times at the ends of a step, in which tkperf reads the drive often and prepares the next
# step.
EDGE_S = 5.0
LOOK_EVERY_S = 0.5
TIMED = (StepKind.ROUND, StepKind.CONTINUOUS)
LONG_PROFILE = """name = "long-steps"
title = "a few steps of a minute"
notice = "BENCH PROFILE"

[steady_state]
source = "bench: two rounds"
window_rounds = 2
max_data_excursion_percent = 1000
max_slope_excursion_percent = 1000
max_rounds = 2

[demand]
source = "bench"
jobs = 2
io_depth = 16

[active_range]
source = "bench"
length = "1GiB"

[preconditioning]
source = "bench"
block_size_kib = 128
passes = 1

[iops]
source = "bench: large and small, read and written"
read_percents = [100, 0]
block_sizes_kib = [1024, 4]
step_s = {step_s:g}
tracking_read_percent = 0
tracking_block_size_kib = 4

[write_cache]
source = "bench"
setting = "keep"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wall:
    """The planned time and the real time of one test."""

    test: str
    steps: int
    prescribed_s: float
    took_s: float
    worst_gap_s: float

    @property
    def ratio(self) -> float:
        return self.took_s / self.prescribed_s


def stretches(steps: Sequence[StepRecord]) -> list[list[StepRecord]]:
    """Return the sequences of consecutive timed steps. A step that is not timed, for example a fill, ends a
    sequence.
    """
    found: list[list[StepRecord]] = [[]]
    for step in steps:
        if step.kind in TIMED and step.planned_s is not None:
            found[-1].append(step)
        elif found[-1]:
            found.append([])
    return [stretch for stretch in found if stretch]


def walls(run: RunRecord) -> list[Wall]:
    found = []
    for test in run.tests:
        took_s = prescribed_s = worst_s = 0.0
        count = 0
        for stretch in stretches(test.steps):
            last = stretch[-1]
            took_s += last.started_s + last.measurement.duration_s - stretch[0].started_s
            prescribed_s += sum(step.planned_s or 0.0 for step in stretch)
            count += len(stretch)
            worst_s = max([worst_s, *(step.gap_s or 0.0 for step in stretch[1:])])
        found.append(Wall(test=test.name, steps=count, prescribed_s=prescribed_s, took_s=took_s, worst_gap_s=worst_s))
    return found


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process and its threads, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class CpuUse:
    """The share of a CPU that tkperf uses, in percent: once from the first step of the run to the end of the last step,
    and once within timed steps.
    """

    percent: float
    within_percent: float


def find_use(looks: Sequence[tuple[float, float]], record: RunRecord) -> CpuUse:
    """Return the CPU use. ``looks`` contains pairs: a time in s since 1970, and the CPU time in s that tkperf had used
    until then.
    """
    at_s, used_s = (np.array(values) for values in zip(*looks, strict=True))
    assert record.info.started_utc is not None
    began_s = datetime.fromisoformat(record.info.started_utc).timestamp()

    def share(spans: Sequence[tuple[float, float]]) -> float:
        used = sum(np.interp(end, at_s, used_s) - np.interp(start, at_s, used_s) for start, end in spans)
        lasted = sum(end - start for start, end in spans)
        return float(100 * used / lasted) if lasted else float("nan")

    spans = [
        (start := began_s + step.started_s, start + step.measurement.duration_s, step.kind)
        for test in record.tests
        for step in test.steps
    ]
    inner = [(start + EDGE_S, end - EDGE_S) for start, end, kind in spans if kind in TIMED and end - start > 2 * EDGE_S]
    return CpuUse(percent=share([(spans[0][0], spans[-1][1])]), within_percent=share(inner))


def run(folder: Path, device: str, name: str, *options: str) -> tuple[list[Wall], CpuUse]:
    """Make a run. Return its tests, and the CPU time that tkperf used."""
    command = [
        str(Path(sys.executable).parent / "tkperf"),
        "ssd",
        name,
        device,
        "--output",
        str(folder),
        "--force",
        "--yes-destroy",
        device,
        "--no-purge",
        "--no-report",
        *options,
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    looks = []
    while process.poll() is None:
        looks.append((time.time(), cpu_s(process.pid)))
        time.sleep(LOOK_EVERY_S)
    if process.returncode:
        raise SystemExit(f"tkperf ended with status {process.returncode}: {' '.join(command)}")
    record = read_run(folder / f"{name}.tkperf")
    return walls(record), find_use(looks, record)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", default="/var/tmp")
    parser.add_argument("--file", action="store_true", help="a scratch file, no loop device")
    parser.add_argument("--long-step-s", type=float, default=60.0, help="0: leave those out")
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    options = parser.parse_args()
    figures, beyond = [], False
    with tempfile.TemporaryDirectory(dir=options.folder) as name, ExitStack() as stack:
        folder = Path(name)
        if options.file:
            device = str(folder / "scratch.img")
            with open(device, "wb") as scratch:
                scratch.truncate(SIZE_BYTES)
            subprocess.run(["fallocate", "-l", str(SIZE_BYTES), device], check=True)
        else:
            device = stack.enter_context(loop_device(folder))
        long_profile = folder / "long.toml"
        long_profile.write_text(LONG_PROFILE.format(step_s=options.long_step_s), encoding="utf-8")
        kinds: list[tuple[str, float, tuple[str, ...]]] = [
            ("short", MOST_AT_ONE_SECOND, ("--profile", "quick", "--test", "iops,lat"))
        ]
        if options.long_step_s:
            kinds.append(("long", MOST_AT_ONE_MINUTE, ("--profile", str(long_profile), "--test", "iops")))
            if not options.file:
                streams = write_streams(folder, hours=TOGETHER_SLICES / 60)
                kinds.append(("together", MOST_AT_ONE_MINUTE, ("--profile", "quick", "--test", str(streams))))
        for kind, most, arguments in kinds:
            found, used = run(folder, device, kind, *arguments)
            for wall in found:
                beyond |= wall.ratio > most
                beyond |= kind in MOST_CPU_PERCENT and used.within_percent > MOST_CPU_PERCENT[kind]
                figures.append(
                    {
                        "kind": kind,
                        "test": wall.test,
                        "steps": wall.steps,
                        "limit": most,
                        "wall_over_prescribed": wall.ratio,
                        "worst_gap_s": wall.worst_gap_s,
                        "cpu_percent": used.percent,
                        "cpu_within_steps_percent": used.within_percent,
                    }
                )
                print(
                    f"{kind} steps, {wall.test}: {wall.steps} steps of {wall.prescribed_s:.0f} s took "
                    f"{wall.took_s:.2f} s: {wall.ratio:.4f} (limit {most}), longest gap "
                    f"{1000 * wall.worst_gap_s:.0f} ms; tkperf used {used.percent:.2f} % of a CPU in the run"
                    + (f", {used.within_percent:.2f} % within steps" if kind in MOST_CPU_PERCENT else "")
                )
    load = os.getloadavg()[0]
    print(f"load of the host: {load:.1f}")
    if options.json:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        document = {"device": "file" if options.file else "loop", "runs": figures, "load": load, "at": at}
        options.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
