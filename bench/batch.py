"""Measure the CPU time and memory of a batch, and find out whether the drives of the batch wait for each other.

The script also measures the gaps between steps and the time to make the page of the batch.

The script has three parts. Each part runs a batch from the command line:

- ``supervisor`` measures simulated drives in one batch. It measures the CPU time of the batch process from the start of
  the first drive to the end of the last drive, as a share of the elapsed time and as CPU time for each step. It also
  measures the memory of the batch process, and the memory of each drive's process shortly before this process ends.
  Simulated steps take a thousandth of their planned time, so the batch process uses a far larger share of a CPU than
  with real steps. ``gaps`` measures real steps.
- ``gaps`` needs root. It measures the gaps between steps of one loop device and of several loop devices at the same
  time, alternately. The gaps are measured with the kernel's counters and with ``gap_s`` in the run files. The script
  creates the images of the loop devices. fio offers --iops I/Os per second to each device, so CPUs remain free. The gap
  after a fill is not counted. This part also measures the share of a CPU that the batch process uses during such steps.
  Each value of --stagger is a separate case.
- ``page`` measures the seconds that ``tkperf report NAME.batch`` needs for many simulated drives, without and with
  cached results of the runs.

    python bench/batch.py [--part supervisor gaps page] [--drives 24] [--loop 4] [--stagger 0 ...] [--repeats 2] [--json
    FILE]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import pty
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from multiprocessing.synchronize import Event as StopEvent
from pathlib import Path

import numpy as np
from wall_time import TIMED, cpu_s

from tkperf.model.record import RunRecord
from tkperf.runfile.reader import read_run

TKPERF = Path(sys.executable).parent / "tkperf"
PARTS = ("supervisor", "gaps", "page")
LOOK_EVERY_S = 0.1
SAMPLE_EVERY_S = 0.0005
# A burst of I/Os of one kind that is shorter than this time is not a step.
APART_S = 1.0
MANY = 100
IMAGE_BYTES = 256 << 20
# The limits of the results. If a result exceeds its limit, the exit status is 1. On a busy machine, some results exceed
# their limits.
MOST_SUPERVISOR_PERCENT = 1.0
MOST_MIB = 80.0
MOST_PAGE_S = 5.0
REAL_STEP_S = 60.0
WORKLOAD = """
format = 1
name = "steps"
title = "steps of one rate"
source = "bench"

[loads.reads]
access = "random"
read_percent = 100
block_size_kib = 4
jobs = 2
io_depth = 8
offered_iops = {iops}

[loads.writes]
access = "random"
read_percent = 0
block_size_kib = 4
jobs = 2
io_depth = 8
offered_iops = {iops}

[[phases]]
kind = "fill"

[[phases]]
kind = "rounds"
section = "Steps"
loads = ["reads", "writes"]
step_s = {step_s:g}
rounds = {rounds}
"""


def memory_mib(pid: int) -> tuple[float, float]:
    """Return the RSS and the PSS of a process in MiB. The RSS counts all pages of the process. The PSS counts shared
    pages in proportion.
    """
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    kib = dict(line.split()[:2] for line in text.splitlines()[1:])
    return int(kib["Rss:"]) / 1024, int(kib["Pss:"]) / 1024


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@dataclass(slots=True)
class Costs:
    """The figures of one batch, from the start of its first drive to the end of its last drive. ``drives_mib`` contains
    the last observed PSS of each drive's process.
    """

    cpu_s: float = 0.0
    wall_s: float = 0.0
    steps: int = 0
    rss_mib: float = 0.0
    pss_mib: float = 0.0
    drives_mib: dict[int, float] = field(default_factory=dict)
    most_mib: float = 0.0

    @property
    def percent(self) -> float:
        return 100 * self.cpu_s / self.wall_s


def count_ends(ledger_path: Path) -> int:
    return ledger_path.read_text().count('"type":"ended"') if ledger_path.exists() else 0


def observe(process: subprocess.Popen[bytes], ledger_path: Path, drives: int) -> Costs:
    """Watch a batch until its last drive has ended. The report that the batch then writes does not count towards the
    figures of the batch.
    """
    costs = Costs()
    began: tuple[float, float] | None = None
    while process.poll() is None and count_ends(ledger_path) < drives:
        with suppress(OSError, KeyError, IndexError):  # the process may have ended in the meantime
            now = time.monotonic(), cpu_s(process.pid)
            if began is None and ledger_path.exists() and '"type":"began"' in ledger_path.read_text():
                began = now
            if began is not None:
                costs.wall_s, costs.cpu_s = now[0] - began[0], now[1] - began[1]
                rss_mib, pss_mib = memory_mib(process.pid)
                costs.rss_mib, costs.pss_mib = (max(costs.rss_mib, rss_mib), max(costs.pss_mib, pss_mib))
                together_mib = 0.0
                for pid in children(process.pid):
                    with suppress(OSError, KeyError):
                        mib = costs.drives_mib[pid] = memory_mib(pid)[1]
                        together_mib += mib
                costs.most_mib = max(costs.most_mib, together_mib)
        time.sleep(LOOK_EVERY_S)
    return costs


@contextmanager
def terminal(view: str) -> Iterator[int]:
    """Yield the stream for the output of a batch. The stream is either the null device or a terminal that the script
    provides. The script discards all text that it reads from this terminal.
    """
    if view == "none":
        yield subprocess.DEVNULL
        return
    ours, theirs = pty.openpty()

    def drain() -> None:
        with suppress(OSError):
            while os.read(ours, 1 << 16):
                pass

    threading.Thread(target=drain, daemon=True).start()
    yield theirs
    os.close(theirs)


def run_batch(
    folder: Path, name: str, drives: Sequence[str], keys: str, *options: str | Path, view: str = "none"
) -> tuple[Costs, list[RunRecord]]:
    """Run a batch from a batch file. Return its figures and its runs."""
    file = folder / f"{name}.toml"
    names = ", ".join(json.dumps(drive) for drive in drives)
    file.write_text(f'suite = "ssd"\ndrives = [{names}]\n{keys}', encoding="utf-8")
    command = [TKPERF, "batch", name, file, "--output", folder, "--no-report", *options]
    with terminal(view) as stream:
        environment = {**os.environ, "TERM": "xterm"}
        process = subprocess.Popen(command, stdin=stream, stdout=stream, stderr=stream, env=environment)
        costs = observe(process, folder / f"{name}.batch", len(drives))
        if process.wait():
            raise SystemExit(f"the batch ended with status {process.returncode}: {command}")
    runs = [read_run(path) for path in sorted(folder.glob(f"{name}-*.tkperf"))]
    costs.steps = sum(len(test.steps) for run in runs for test in run.tests)
    return costs, runs


def measure_supervisor(drives: int, profile: str, view: str) -> dict[str, float]:
    """Measure a batch of simulated drives that run at the same time."""
    with tempfile.TemporaryDirectory() as name:
        keys = f'tests = ["iops"]\nprofile = "{profile}"\nparallel = "all"\n'
        costs, _ = run_batch(Path(name), "sim", ["sim:sata-ssd"] * drives, keys, view=view)
    steps = costs.steps
    each_mib = list(costs.drives_mib.values())
    step_ms = 1000 * costs.cpu_s / steps
    print(
        f"{drives} simulated drives, view {view}: {steps:,} steps in {costs.wall_s:.1f} s. The batch's process used "
        f"{costs.cpu_s:.2f} s of a CPU, {costs.percent:.1f} %: {step_ms:.2f} ms a step, so at most "
        f"{step_ms * drives / REAL_STEP_S / 10:.3f} % of a CPU with steps of a minute, and looking in addition; "
        f"RSS {costs.rss_mib:.0f} MiB, PSS {costs.pss_mib:.0f} MiB"
    )
    print(
        f"processes of {len(each_mib)} drives, PSS at their ends: median {statistics.median(each_mib):.1f} MiB, "
        f"greatest {max(each_mib):.1f} MiB; of all together at most {costs.most_mib:.0f} MiB"
    )
    return {
        "drives": drives,
        "steps": steps,
        "wall_s": costs.wall_s,
        "cpu_s": costs.cpu_s,
        "cpu_ms_per_step": step_ms,
        "rss_mib": costs.rss_mib,
        "pss_mib": costs.pss_mib,
        "drive_pss_mib": max(each_mib),
        "drives_pss_mib": costs.most_mib,
    }


def recorded_gaps_ms(runs: Sequence[RunRecord]) -> list[float]:
    """Return the gaps from each timed step to the next, as the run files record them."""
    return [
        1000 * after.gap_s
        for run in runs
        for test in run.tests
        for before, after in pairwise(test.steps)
        if before.kind in TIMED and after.kind in TIMED and after.gap_s is not None
    ]


def sample_counters(devices: Sequence[str], path: str, stop: StopEvent) -> None:
    """Write the time and the number of completed reads and writes of each device repeatedly, until the event is set."""
    rows = []
    with ExitStack() as stack:
        files = [stack.enter_context(open(f"/sys/block/{Path(device).name}/stat", "rb")) for device in devices]
        while not stop.is_set():
            row = [time.monotonic()]
            for file in files:
                file.seek(0)
                fields = file.read().split()
                row += (int(fields[0]), int(fields[4]))
            rows.append(row)
            time.sleep(SAMPLE_EVERY_S)
    np.save(path, np.array(rows))


@contextmanager
def sampled(devices: Sequence[str], path: Path) -> Iterator[None]:
    stop = multiprocessing.Event()
    sampler = multiprocessing.Process(target=sample_counters, args=(devices, str(path), stop))
    sampler.start()
    try:
        yield
    finally:
        stop.set()
        sampler.join()


def idle_gaps_ms(samples: np.ndarray, devices: int, steps: int) -> list[float]:
    """Return the gaps from the last I/O of one kind to the first I/O of the other kind, for each device. The steps of
    the batch alternate between reads and writes.
    """
    gaps = []
    for device in range(devices):
        bursts = []
        for side in (1, 2):
            at_s = samples[1:, 0][np.diff(samples[:, 2 * device + side]) > 0]
            for burst in np.split(at_s, np.flatnonzero(np.diff(at_s) > APART_S) + 1):
                if len(burst) > MANY:  # shorter bursts are caused by other programs that read the device
                    bursts.append((float(burst[0]), float(burst[-1]), side))
        bursts = sorted(bursts)[-steps:]  # leave out the fill and earlier reads of the device
        gaps += [max(0.0, 1000 * (after[0] - before[1])) for before, after in pairwise(bursts) if before[2] != after[2]]
    return gaps


@contextmanager
def loop_devices(folder: Path, count: int) -> Iterator[list[str]]:
    with ExitStack() as stack:
        devices = []
        for number in range(count):
            image = folder / f"image-{number}"
            with image.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, IMAGE_BYTES)
            device = subprocess.check_output(
                ["losetup", "--find", "--show", "--direct-io=on", image], text=True
            ).strip()
            stack.callback(subprocess.run, ["losetup", "--detach", device], check=True)
            devices.append(device)
        yield devices


def describe(name: str, found: Sequence[float], costs: Sequence[Costs]) -> dict[str, float]:
    wall_s = sum(one.wall_s for one in costs)
    share = 100 * sum(one.cpu_s for one in costs) / wall_s
    most_mib = max(mib for one in costs for mib in one.drives_mib.values())
    p95 = float(np.percentile(found, 95))
    print(
        f"{name:32} {len(found):4} gaps: median {statistics.median(found):6.1f} ms, mean {statistics.mean(found):6.1f} "
        "ms, "
        f"95 % {p95:6.1f} ms, worst {max(found):6.1f} ms; the batch's process used {share:.2f} % of a CPU, "
        f"a drive's at most {most_mib:.0f} MiB (PSS)"
    )
    return {
        "gaps": len(found),
        "median_ms": statistics.median(found),
        "mean_ms": statistics.mean(found),
        "p95_ms": p95,
        "worst_ms": max(found),
        "cpu_percent": share,
        "steps_per_s": sum(one.steps for one in costs) / wall_s,
        "drive_pss_mib": most_mib,
    }


def extrapolate(one: dict[str, float], several: dict[str, float], drives: int) -> None:
    """Print the share of a CPU that a batch would use with steps of one minute each. One part of this share is
    constant: the CPU time for watching the drives. The other part is the CPU time for each step.
    """
    per_step = (several["cpu_percent"] - one["cpu_percent"]) / (several["steps_per_s"] - one["steps_per_s"])
    looking = one["cpu_percent"] - per_step * one["steps_per_s"]
    share = looking + per_step * drives / REAL_STEP_S
    print(
        f"the batch's process: {looking:.2f} % of a CPU for looking and {10 * per_step:.1f} ms a step, which makes "
        f"{share:.2f} % "
        f"with {drives} drives and steps of a minute"
    )


def measure_gaps(options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Measure batches of one loop device and of several loop devices, alternately."""
    count: int = options.loop
    cases = [("1 loop device", 1, 0.0)] + [
        (f"{count} loop devices, stagger {stagger:g} s", count, stagger) for stagger in options.stagger
    ]
    found: dict[str, list[float]] = {name: [] for name, _, _ in cases}
    recorded: dict[str, list[float]] = {name: [] for name, _, _ in cases}
    costs: dict[str, list[Costs]] = {name: [] for name, _, _ in cases}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.folder)))
        devices = stack.enter_context(loop_devices(folder, count))
        workload = folder / "steps.toml"
        workload.write_text(
            WORKLOAD.format(iops=options.iops, step_s=options.step_s, rounds=options.rounds), encoding="utf-8"
        )
        for repeat in range(options.repeats):
            for number, (case, several, stagger) in enumerate(cases):
                consent = folder / "consent.txt"
                consent.write_text("\n".join(devices[:several]) + "\n", encoding="utf-8")
                keys = (
                    f'tests = ["{workload}"]\nprofile = "quick"\nparallel = "all"\nstagger = {stagger}\n'
                    "compare_reads = false\n[options]\nno_purge = true\n"
                )
                samples = folder / "samples.npy"
                with sampled(devices[:several], samples):
                    cost, runs = run_batch(
                        folder,
                        f"gaps-{repeat}-{number}",
                        devices[:several],
                        keys,
                        "--yes-destroy-file",
                        consent,
                        view=options.view,
                    )
                found[case] += idle_gaps_ms(np.load(samples), several, 2 * options.rounds)
                recorded[case] += recorded_gaps_ms(runs)
                costs[case].append(cost)
    figures = {case: describe(case, found[case], costs[case]) for case in found}
    for case, gaps in recorded.items():
        print(f"{case}, in run files: median {statistics.median(gaps):.1f} ms, worst {max(gaps):.1f} ms")
        figures[case] |= {"recorded_median_ms": statistics.median(gaps)}
        figures[case] |= {"recorded_worst_ms": max(gaps)}
    one, *others = figures.values()
    extrapolate(one, others[0], options.drives)
    for case, other in zip(list(figures)[1:], others, strict=True):
        times = ", ".join(
            f"{other[f'{name}_ms'] / one[f'{name}_ms']:.2f} times the {name}"
            for name in ("median", "mean", "worst")
            if one[f"{name}_ms"]
        )
        print(f"{case}: {times} of one")
    return figures


def measure_page(drives: int, tests: str) -> dict[str, float]:
    """Measure the report of many simulated drives in a separate process, without cached results and with them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cache = folder / "cache"
        os.environ["XDG_CACHE_HOME"] = str(cache)
        keys = f'tests = {json.dumps(tests.split(","))}\nprofile = "quick"\nparallel = 24\n'
        run_batch(folder, "many", ["sim:sata-ssd"] * drives, keys)
        ledger_path, page = folder / "many.batch", folder / "page.html"

        def report() -> tuple[float, float]:
            before, began_s = os.times(), time.monotonic()
            subprocess.run([TKPERF, "report", ledger_path, "-o", page], check=True, stdout=subprocess.DEVNULL)
            after = os.times()
            used_s = after.children_user - before.children_user + after.children_system - before.children_system
            return time.monotonic() - began_s, used_s

        report()  # this call also fills the cache with the libraries of pages
        shutil.rmtree(cache / "tkperf/results")
        first_s, first_cpu_s = report()
        content = page.read_bytes()
        took_s, used_s = (statistics.median(each) for each in zip(*(report() for _ in range(3)), strict=True))
        if page.read_bytes() != content:
            raise SystemExit("the page by kept results differs")
        kept_mb = sum(one.stat().st_size for one in (cache / "tkperf/results").iterdir()) / 1e6
        size_mb = page.stat().st_size / 1e6
    print(
        f"page of {drives} runs of {tests}: first {first_s:.2f} s, {first_cpu_s:.2f} s of a CPU; by kept results "
        f"{took_s:.2f} s, "
        f"{used_s:.2f} s of a CPU; {kept_mb:.1f} MB kept; HTML of {size_mb:.2f} MB"
    )
    return {
        "runs": drives,
        "first_wall_s": first_s,
        "first_cpu_s": first_cpu_s,
        "wall_s": took_s,
        "cpu_s": used_s,
        "kept_mb": kept_mb,
        "html_mb": size_mb,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--part", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--drives", type=int, default=24, help="simulated ones")
    parser.add_argument("--profile", default="quick", help="of simulated drives")
    parser.add_argument("--view", choices=("none", "live"), default="none")
    parser.add_argument("--loop", type=int, default=4, help="loop devices at once")
    parser.add_argument("--iops", type=int, default=500, help="offered to each of them")
    parser.add_argument("--step-s", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument(
        "--stagger",
        type=float,
        nargs="+",
        default=[0.0],
        help="s between beginnings; drives begin a little apart in any case",
    )
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--runs", type=int, default=100, help="on the page")
    parser.add_argument("--tests", default="iops,writesat", help="of these runs")
    parser.add_argument("--folder", default="/var/tmp")
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    options = parser.parse_args()
    figures: dict[str, object] = {}
    beyond = False
    if "supervisor" in options.part:
        found = measure_supervisor(options.drives, options.profile, options.view)
        figures["supervisor"] = found
        beyond |= max(found["rss_mib"], found["drive_pss_mib"]) > MOST_MIB
    if "gaps" in options.part:
        cases = measure_gaps(options)
        figures["gaps"] = cases
        beyond |= any(one["cpu_percent"] > MOST_SUPERVISOR_PERCENT for one in cases.values())
    if "page" in options.part:
        page = measure_page(options.runs, options.tests)
        figures["page"] = page
        beyond |= page["wall_s"] > MOST_PAGE_S
    load = os.getloadavg()[0]
    print(f"load of the host: {load:.1f}")
    if options.json:
        options.json.write_text(json.dumps({**figures, "load": load}, indent=2) + "\n", encoding="utf-8")
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
