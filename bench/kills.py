"""Kill a run with -9 at random moments: is every step that was committed still there?

Each time a run of the short profile on a scratch file, with real fio, is killed at a moment
drawn from its whole length, counted from when its file is there. Steps that its JSON events have named as ended were committed before;
all must be in the run file, which must be readable and say what happened, and no fio may go on.

    python bench/kills.py [--kills 95] [--folder /var/tmp]
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
from pathlib import Path

from tkperf.errors import RunFileError
from tkperf.record import RunStatus
from tkperf.runfile.reader import read_run

PROFILE = Path(__file__).parents[1] / "tests" / "short.toml"
LENGTH_S = 9.0  # of such a run


def kill_one(folder: Path, after_s: float) -> tuple[int, int, str]:
    """Steps acknowledged, steps kept, and what the file says."""
    argv: list[str | Path] = [
        sys.executable, "-m", "tkperf", "ssd", "run", folder / "scratch", "--size", "64MiB",
        "--profile", PROFILE, "-ssdt", "lat", "--progress", "json", "--output", folder,
    ]  # fmt: skip
    run = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    lines: list[bytes] = []
    assert run.stdout is not None
    reader = threading.Thread(target=lambda: lines.extend(run.stdout or ()))
    reader.start()
    path = folder / "run.tkperf"
    while not path.exists() and run.poll() is None:
        time.sleep(0.01)
    time.sleep(after_s)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    reader.join()
    run.stdout.close()
    time.sleep(1)  # a child on its way from fork to exec holds the file's lock until it dies, too
    ended = sum(json.loads(line)["event"] == "StepEnded" for line in lines if line.endswith(b"}\n"))
    try:
        record = read_run(path)
    except RunFileError as error:
        return ended, 0, f"NOT READABLE: {error}"
    if record.left_out:
        return ended, 0, f"LEFT OUT: {record.left_out[0]}"
    kept = sum(len(test.steps) for test in record.tests)
    return ended, kept, record.status.value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=95)
    parser.add_argument("--folder", default="/var/tmp")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance, good, steps = random.Random(options.seed), 0, 0
    for number in range(1, options.kills + 1):
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            after_s = chance.uniform(0, LENGTH_S)
            ended, kept, says = kill_one(Path(name), after_s)
        # One more may have been committed than anybody was told of.
        fine = (ended <= kept and says in (
            RunStatus.INTERRUPTED, RunStatus.COMPLETE, "killed before there was a run file",
        )) or (ended == kept == 0 and "it is empty" in says)  # fmt: skip
        good += fine
        steps += ended
        if not fine or number % 10 == 0:
            print(f"{number}: after {after_s:.1f} s {ended} ended, {kept} kept: {says}", flush=True)
    print(f"{good} of {options.kills} kills kept every committed step ({steps} steps in all)")


if __name__ == "__main__":
    main()
