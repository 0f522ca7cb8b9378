"""How many disturbances are found, and how many are told that were none?

tkperf runs on a loop device; in some steps, drawn at random, a foreign fio reads or writes the device
beside it, with a drawn block size and rate, for a part of the step. From the run file: of the steps
whose foreign bytes, by that fio's own word, were more than 5 % of the step's, how many are marked as
foreign-io, and how many of the others are. Needs root. Prints figures and each step that was wrong.

    python bench/disturbance.py [--runs 4] [--step-s 4] [--folder /var/tmp] [--seed 1] [--quiet-runs 2]
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tkperf.disturbance import DisturbanceCode
from tkperf.record import StepKind, StepRecord
from tkperf.runfile.reader import read_run

SIZE_BYTES = 512 << 20
DISTURBED_SHARE = 1 / 3
COUNTS = 0.05
SHORT = Path(__file__).parents[1] / "tests" / "short.toml"
RATES = ("2m", "10m", "30m", "100m", "0")
BLOCKS = ("4k", "128k", "1m")

Key = tuple[int, int]


@dataclass
class Foreign:
    """What was done beside a step."""

    words: str
    process: subprocess.Popen[str]

    def moved_bytes(self) -> int:
        out, _ = self.process.communicate(timeout=60)
        (job,) = json.loads(out[out.index("{") :])["jobs"]
        return int(job["read"]["io_bytes"] + job["write"]["io_bytes"])


@contextmanager
def loop_device(folder: Path) -> Iterator[str]:
    image = folder / "image"
    subprocess.run(["fallocate", "-l", str(SIZE_BYTES), image], check=True)
    device = subprocess.check_output(
        ["losetup", "--find", "--show", "--direct-io=on", image], text=True
    ).strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)
        image.unlink()


def begin_foreign(device: str, step_s: float, chance: random.Random) -> Foreign:
    access = chance.choice(("randread", "randwrite", "read", "write"))
    block, rate = chance.choice(BLOCKS), chance.choice(RATES)
    wait_s, lasting_s = chance.uniform(0, 0.3) * step_s, chance.uniform(0.2, 0.6) * step_s
    argv = [
        "fio", "--name=foreign", f"--filename={device}", "--direct=1", f"--rw={access}",
        f"--bs={block}", f"--size={SIZE_BYTES}", "--time_based", f"--runtime={lasting_s * 1000:.0f}ms",
        f"--startdelay={wait_s * 1000:.0f}ms", "--ioengine=psync", "--output-format=json",
    ]  # fmt: skip
    if rate != "0":
        argv.append(f"--rate={rate}")
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    return Foreign(f"{access} {block}, rate {rate}, {lasting_s:.1f} s", process)


def run(
    device: str, folder: Path, name: str, step_s: float, chance: random.Random, disturb: bool
) -> tuple[list[StepRecord], dict[Key, Foreign]]:
    profile = folder / "profile.toml"
    profile.write_text(SHORT.read_text().replace("step_s = 1\n", f"step_s = {step_s:g}\n"))
    done: dict[Key, Foreign] = {}
    with subprocess.Popen(
        [
            sys.executable, "-m", "tkperf", "ssd", name, device, "--profile", str(profile), "-ssdt",
            "iops", "--yes-destroy", device, "--output", str(folder), "--progress", "json",
        ],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] != "StepStarted" or event["kind"] != StepKind.ROUND:
                continue
            if disturb and chance.random() < DISTURBED_SHARE:
                key = (event["number"], event["position"])
                # The step is announced when the one before has been written down, up to a third
                # of a second after it began.
                done[key] = begin_foreign(device, step_s, chance)
    record = read_run(folder / f"{name}.tkperf")
    steps = [step for test in record.tests for step in test.steps if step.kind is StepKind.ROUND]
    return steps, done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--quiet-runs", type=int, default=2)
    parser.add_argument("--step-s", type=float, default=4.0)
    parser.add_argument("--folder", default="/var/tmp")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    found = missed = false = undisturbed = small = small_found = others = reached = 0
    with tempfile.TemporaryDirectory(dir=options.folder) as made, loop_device(Path(made)) as device:
        for number in range(options.runs + options.quiet_runs):
            disturb = number < options.runs
            steps, foreign = run(
                device, Path(made), f"run{number}", options.step_s, chance, disturb
            )
            before: Foreign | None = None
            for step in steps:
                marked = {each.code: each.text for each in step.disturbances or ()}
                is_marked = DisturbanceCode.FOREIGN_IO in marked
                beside = foreign.get((step.number, step.position))
                late = before is not None
                before = beside
                moved = beside.moved_bytes() if beside else 0
                share = moved / step.measurement.bytes
                seen = (step.foreign_read_bytes, step.foreign_write_bytes)
                words = f"{step.number}.{step.position} {step.workload}: {share:.1%} seen {seen} {marked}"
                if beside is None and late:
                    reached += is_marked  # a foreign fio that a busy host let begin late
                elif beside is None:
                    undisturbed += 1
                    false += is_marked
                    others += bool(marked) and not is_marked
                    if marked:
                        print("undisturbed but marked:", words)
                elif share > COUNTS:
                    found += is_marked
                    missed += not is_marked
                    if not is_marked:
                        print("missed:", words, beside.words)
                else:
                    small += 1
                    small_found += is_marked
            print(f"run {number + 1} done", flush=True)
    print(f"steps of {options.step_s:g} s")
    print(f"foreign bytes above {COUNTS:.0%}: {found} of {found + missed} marked")
    print(f"foreign bytes below: {small_found} of {small} marked")
    print(f"steps after a disturbed one: {reached} marked, which it may have reached into")
    print(
        f"undisturbed: {false} of {undisturbed} marked as foreign-io, {others} with something else"
    )


if __name__ == "__main__":
    main()
