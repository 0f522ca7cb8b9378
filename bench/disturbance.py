"""Count the disturbances that tkperf finds, and those that it reports although they did not happen.

tkperf runs on a loop device. In randomly selected steps, the script causes a disturbance for part of the step: a
foreign fio reads or writes the device, programs use up the CPUs, tkperf's cgroup receives less CPU time, or a signal
stops fio or tkperf.

The script then reads the run file. It counts how many of the affected steps are marked, and how many of the undisturbed
steps are marked. A step counts as affected if its result differs by more than 5 % from the median of the same cell in
undisturbed steps. The difference must also exceed the scatter of these steps. With a CPU limit, the kernel must also
have counted that the process was throttled. With a foreign fio, a step counts as affected only if this fio transferred
more than 5 % of the bytes that the step transferred. A step during which tkperf was stopped always counts as affected.
The script needs root. It prints a table, and lists each step that is marked wrongly.

    python bench/disturbance.py [--kinds foreign,burners,quota,stop-fio,stop-tkperf] [--runs 4]
        [--quiet-runs 4] [--step-s 10] [--folder /var/tmp] [--seed 1]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from tkperf.model.record import StepKind, StepRecord
from tkperf.runfile.reader import read_run

SIZE_BYTES = 512 << 20
DISTURBED_SHARE = 1 / 4
COUNTS = 0.05
SHORT = Path(__file__).parents[1] / "tests" / "short.toml"
RATES = ("2m", "10m", "30m", "100m", "0")
BLOCKS = ("4k", "128k", "1m")
# The name of the cgroup in which tkperf runs during disturbances of the kind "quota".
GROUP = "tkperf-bench"

Key = tuple[int, int]


@dataclass
class Act:
    """A disturbance during a step.

    ``end`` waits for the end of the disturbance and returns the number of bytes that a foreign fio transferred, or None
    for other kinds. After the step, ``took_hold`` returns whether the kernel recorded any effect of the disturbance.
    """

    words: str
    end: Callable[[], int | None] = lambda: None
    took_hold: Callable[[], bool] = lambda: True


@dataclass
class Found:
    """The numbers of steps for one kind of disturbance."""

    strong: int = 0
    strong_marked: int = 0
    weak: int = 0
    weak_marked: int = 0
    undisturbed: int = 0
    undisturbed_marked: int = 0
    codes: Counter[str] = field(default_factory=Counter)


@contextmanager
def loop_device(folder: Path) -> Iterator[str]:
    image = folder / "image"
    subprocess.run(["fallocate", "-l", str(SIZE_BYTES), image], check=True)
    device = subprocess.check_output(["losetup", "--find", "--show", "--direct-io=on", image], text=True).strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)
        image.unlink()


def stretch(step_s: float, chance: random.Random) -> tuple[float, float]:
    """Return the start and the length of a disturbance within a step, in seconds."""
    return chance.uniform(0, 0.3) * step_s, chance.uniform(0.2, 0.6) * step_s


def foreign(device: str, _pid: int, step_s: float, chance: random.Random) -> Act:
    access = chance.choice(("randread", "randwrite", "read", "write"))
    block, rate = chance.choice(BLOCKS), chance.choice(RATES)
    wait_s, lasting_s = stretch(step_s, chance)
    argv = [
        "fio",
        "--name=foreign",
        f"--filename={device}",
        "--direct=1",
        f"--rw={access}",
        f"--bs={block}",
        f"--size={SIZE_BYTES}",
        "--time_based",
        f"--runtime={lasting_s * 1000:.0f}ms",
        f"--startdelay={wait_s * 1000:.0f}ms",
        "--ioengine=psync",
        "--output-format=json",
    ]
    if rate != "0":
        argv.append(f"--rate={rate}")
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)

    def moved_bytes() -> int:
        out, _ = process.communicate(timeout=60)
        (job,) = json.loads(out[out.index("{") :])["jobs"]
        return int(job["read"]["io_bytes"] + job["write"]["io_bytes"])

    return Act(f"{access} {block}, rate {rate}, {lasting_s:.1f} s", moved_bytes)


def burners(_device: str, _pid: int, step_s: float, chance: random.Random) -> Act:
    """Run programs that use up CPU time in user mode or in the kernel. The priority of these programs is lower than the
    priority of fio, or equal to it. The number of programs is at most twice the number of CPUs.
    """
    count = chance.randint(1, 2 * len(os.sched_getaffinity(0)))
    wait_s, lasting_s = stretch(step_s, chance)
    body = chance.choice(("while :; do :; done", "exec dd if=/dev/zero of=/dev/null bs=1M"))
    nice = chance.choice((0, 0, 10))
    command = f"sleep {wait_s:.2f}; exec timeout {lasting_s:.2f} nice -n {nice} sh -c '{body}'"
    processes = [subprocess.Popen(["sh", "-c", command], stderr=subprocess.DEVNULL) for _ in range(count)]

    def end() -> None:
        for process in processes:
            process.wait(timeout=60)

    return Act(f"{count} x {body.split()[0]} at nice {nice}, {lasting_s:.1f} s", end)


def later(wait_s: float, lasting_s: float, do: Callable[[], object], undo: Callable[[], object]) -> Callable[[], None]:
    def act() -> None:
        time.sleep(wait_s)
        do()
        time.sleep(lasting_s)
        undo()

    thread = threading.Thread(target=act)
    thread.start()
    return thread.join


def group_folder() -> Path:
    version1 = Path("/sys/fs/cgroup/cpu")
    return (version1 if version1.is_dir() else Path("/sys/fs/cgroup")) / GROUP


def limit(cpus: float | None) -> None:
    folder = group_folder()
    if (folder / "cpu.max").exists():
        (folder / "cpu.max").write_text("max" if cpus is None else f"{round(cpus * 1e5)} 100000")
    else:
        quota = -1 if cpus is None else round(cpus * 1e5)
        (folder / "cpu.cfs_quota_us").write_text(str(quota))


def throttled_times() -> int:
    """Return how often, according to the kernel's counter, the control group used up its CPU time."""
    lines = (group_folder() / "cpu.stat").read_text().splitlines()
    return int(dict(line.split() for line in lines)["nr_throttled"])


def quota(_device: str, _pid: int, step_s: float, chance: random.Random) -> Act:
    """Limit the CPU time of tkperf. If the limit exceeds the CPU time that the load needs, the kernel never throttles a
    process, so the steps do not count as affected.
    """
    wait_s, lasting_s = stretch(step_s, chance)
    cpus = chance.choice((0.1, 0.3, 0.6, 1.0))
    times: list[int] = []

    def begin() -> None:
        times.append(throttled_times())
        limit(cpus)

    def end() -> None:
        limit(None)
        times.append(throttled_times())

    words = f"{cpus:g} CPUs, {lasting_s:.1f} s"
    return Act(words, later(wait_s, lasting_s, begin, end), lambda: times[1] > times[0])


def stop(pids: Callable[[], list[int]], step_s: float, chance: random.Random) -> Act:
    wait_s, lasting_s = stretch(step_s, chance)
    stopped: list[int] = []

    def send(number: signal.Signals) -> None:
        for pid in stopped or pids():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue
            if number is signal.SIGSTOP:
                stopped.append(pid)

    end = later(wait_s, lasting_s, lambda: send(signal.SIGSTOP), lambda: send(signal.SIGCONT))
    return Act(f"stopped for {lasting_s:.1f} s", end)


def stop_tkperf(_device: str, pid: int, step_s: float, chance: random.Random) -> Act:
    return stop(lambda: [pid], step_s, chance)


def stop_fio(_device: str, pid: int, step_s: float, chance: random.Random) -> Act:
    def children() -> list[int]:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        return [int(word) for word in text.split()]

    return stop(children, step_s, chance)


KINDS: dict[str, Callable[[str, int, float, random.Random], Act]] = {
    "foreign": foreign,
    "burners": burners,
    "quota": quota,
    "stop-fio": stop_fio,
    "stop-tkperf": stop_tkperf,
}


def run(
    device: str, folder: Path, name: str, step_s: float, chance: random.Random, kind: str | None
) -> tuple[list[StepRecord], dict[Key, Act]]:
    profile = folder / "profile.toml"
    profile.write_text(SHORT.read_text().replace("step_s = 1\n", f"step_s = {step_s:g}\n"))
    done: dict[Key, Act] = {}
    within = ["sh", "-c", f'echo $$ > {group_folder()}/cgroup.procs && exec "$@"', "sh"]
    with subprocess.Popen(
        [
            *(within if kind == "quota" else ()),
            sys.executable,
            "-m",
            "tkperf",
            "ssd",
            name,
            device,
            "--profile",
            str(profile),
            "-ssdt",
            "iops",
            "--yes-destroy",
            device,
            "--output",
            str(folder),
            "--progress",
            "json",
            "--no-report",
        ],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] != "StepStarted" or event["kind"] != StepKind.ROUND:
                continue
            if kind is not None and chance.random() < DISTURBED_SHARE:
                # tkperf announces a step only after it has stored the preceding step. The announcement can therefore
                # arrive a third of a second after the beginning of the step.
                key = (event["number"], event["position"])
                done[key] = KINDS[kind](device, process.pid, step_s, chance)
    record = read_run(folder / f"{name}.tkperf")
    steps = [step for test in record.tests for step in test.steps if step.kind is StepKind.ROUND]
    return steps, done


def scatter(usual: list[float] | None) -> float:
    """Return how much an undisturbed result may differ by chance from the median of its cell, as a share of this
    median. The share is three robust standard deviations.
    """
    if not usual:
        return 0.0
    middle = median(usual)
    return 3 * 1.4826 * median(abs(each - middle) for each in usual) / middle


def judge(steps: list[StepRecord], done: dict[Key, Act], kind: str | None, found: Found) -> None:
    """Count the steps of one run. Steps directly after a disturbed step are left out, because the disturbance may have
    continued into them.
    """
    undisturbed: dict[int, list[float]] = {}
    late = False
    for step in steps:
        if (step.number, step.position) not in done and not late:
            undisturbed.setdefault(step.position, []).append(step.measurement.iops)
        late = (step.number, step.position) in done
    late = False
    for step in steps:
        marked = {each.code.value: each.text for each in step.disturbances or ()}
        act = done.get((step.number, step.position))
        words = f"{step.number}.{step.position} {step.workload}: {marked}"
        if act is None and not late:
            found.undisturbed += 1
            found.undisturbed_marked += bool(marked)
            found.codes.update(marked.keys())
            if marked:
                print("undisturbed but marked:", words)
        if act is not None:
            moved = act.end()
            usual = undisturbed.get(step.position)
            lost = 0.0 if not usual else abs(1 - step.measurement.iops / median(usual))
            # A step during which tkperf was stopped always counts as affected, because the stop does not necessarily
            # change the result of the step.
            strong = lost > max(COUNTS, scatter(usual)) or kind == "stop-tkperf"
            if moved is not None:
                strong = moved / step.measurement.bytes > COUNTS
            strong = strong and act.took_hold()
            if strong:
                found.strong += 1
                found.strong_marked += bool(marked)
                if not marked:
                    print(f"missed: {words}: {act.words}, result moved by {lost:.1%}")
            else:
                found.weak += 1
                found.weak_marked += bool(marked)
        late = act is not None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--quiet-runs", type=int, default=4)
    parser.add_argument("--step-s", type=float, default=10.0)
    parser.add_argument("--folder", default="/var/tmp")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    kinds = options.kinds.split(",")
    found = {kind: Found() for kind in (*kinds, "nobody")}
    group_folder().mkdir(exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=options.folder) as made, loop_device(Path(made)) as device:
            for kind in (*kinds, "nobody"):
                for number in range(options.quiet_runs if kind == "nobody" else options.runs):
                    acts = None if kind == "nobody" else kind
                    name = f"{kind}{number}"
                    steps, done = run(device, Path(made), name, options.step_s, chance, acts)
                    judge(steps, done, acts, found[kind])
                    print(f"{kind}, run {number + 1} done", flush=True)
    finally:
        group_folder().rmdir()
    print(f"\nsteps of {options.step_s:g} s; marked of all:\n")
    print(f"| disturbed by | over {COUNTS:.0%} of the result | below | undisturbed steps of these runs |")
    print("|---|---|---|---|")
    for kind, each in found.items():
        codes = ", ".join(f"{count} {code}" for code, count in each.codes.items())
        print(
            f"| {kind} | {each.strong_marked} of {each.strong} | {each.weak_marked} of {each.weak} | "
            f"{each.undisturbed_marked} of {each.undisturbed}{f' ({codes})' if codes else ''} |"
        )


if __name__ == "__main__":
    main()
