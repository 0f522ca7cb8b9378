"""Kill a run with ``kill -9`` at random moments, resume it, and check that the file contains every step exactly once.

In each trial, real fio measures a scratch file with the short profile. The run is killed at a random moment between the
creation of its run file and the end of the run. The run is then resumed. In every third trial, the resumed run is
killed and resumed again. tkperf stores a step before a JSON event reports the end of the step, so the run file must
contain all reported steps. The file must be readable, and no fio process may still be running. At the end,
``tests/resuming.py`` checks the file with SQL: the run must be complete, and no step may be lost or counted twice.

    python -m bench.kills [--kills 95] [--folder /var/tmp]
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from tests.resuming import find_faults
from tkperf.model.errors import EngineError, RunFileError
from tkperf.model.record import RunStatus
from tkperf.runfile.reader import read_run

PROFILE = Path(__file__).parents[1] / "tests" / "short.toml"
LENGTH_S = 17.0  # duration of a run with the profile short.toml, in s
MOST_ATTEMPTS = 3
TKPERF: list[str | Path] = [sys.executable, "-m", "tkperf"]


class Killed:
    """A tkperf process that is killed after some seconds, with the number of steps that it had reported as ended before
    it was killed.
    """

    def __init__(self, argv: list[str | Path], run_file: Path, after_s: float) -> None:
        before = run_file.stat().st_mtime_ns if run_file.exists() else None
        run = subprocess.Popen(
            [*TKPERF, *argv, "--no-report", "--progress", "json"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        lines: list[bytes] = []
        assert run.stdout is not None
        reader = threading.Thread(target=lambda: lines.extend(run.stdout or ()))
        reader.start()
        while run.poll() is None and not _is_written(run_file, before):
            time.sleep(0.01)
        time.sleep(after_s)
        run.kill()
        run.wait()
        reader.join()
        run.stdout.close()
        self.ended = sum(json.loads(line)["event"] == "StepEnded" for line in lines if line.endswith(b"}\n"))
        time.sleep(1)  # between fork and exec, a child process also holds the lock of the file


def _is_written(run_file: Path, before: int | None) -> bool:
    return run_file.exists() and run_file.stat().st_mtime_ns != before


def kill_one(folder: Path, chance: random.Random) -> tuple[str, str]:
    """Return which part of the run was interrupted, and the faults that were found in the run file afterwards. The
    second text is empty if no fault was found.
    """
    run_file, scratch = folder / "run.tkperf", folder / "scratch"
    killed = Killed(
        ["ssd", "run", scratch, "--size", "64MiB", "--profile", PROFILE, "-ssdt", "lat,writesat", "--output", folder],
        run_file,
        chance.uniform(0, LENGTH_S),
    )
    argv: list[str | Path] = ["resume", run_file, "--yes-destroy", scratch.resolve()]
    moment, fault = _look(run_file, killed.ended)
    if fault or moment in ("complete", "not begun"):
        return moment, fault
    before = Path(shutil.copy(run_file, folder / "before.tkperf"))
    if chance.random() < 1 / 3:
        # The report of a resumed run is added at the end of the report of the earlier run.
        kept = _kept(run_file)
        killed = Killed(argv, run_file, chance.uniform(0, LENGTH_S / 2))
        again, fault = _look(run_file, kept + killed.ended)
        moment = f"{moment}, then {again}"
        if fault or again == "complete":
            return moment, fault
        before = Path(shutil.copy(run_file, folder / "before.tkperf"))
    for attempt in range(1, MOST_ATTEMPTS + 1):
        done = subprocess.run(
            [*TKPERF, *argv, "--no-report", "--quiet"],
            check=False,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        if not done.returncode:
            break
        # On a busy host, fio can report impossible figures for a second. Such figures end a run.
        said = f"resume ended with {done.returncode}: {done.stderr.strip()}"
        if done.returncode != EngineError.exit_code or attempt == MOST_ATTEMPTS:
            return moment, said
        moment = f"{moment}, then {said}"
    return moment, "; ".join(find_faults(run_file, before))


def _kept(run_file: Path) -> int:
    record = read_run(run_file)
    return sum(len(test.steps) + len(test.set_aside) for test in record.tests)


def _look(run_file: Path, ended: int) -> tuple[str, str]:
    """Return which part of the run the file records as interrupted, and the faults that the file contains."""
    try:
        record = read_run(run_file)
    except RunFileError as error:
        empty = ended == 0 and "it is empty" in str(error)
        return "not begun", "" if empty else f"NOT READABLE: {error}"
    if record.left_out:
        return "?", f"LEFT OUT: {record.left_out[0]}"
    if (kept := _kept(run_file)) < ended:
        return "?", f"{ended} steps ended, {kept} kept"
    if record.status is RunStatus.COMPLETE:
        return "complete", ""
    if record.status is not RunStatus.INTERRUPTED:
        return "?", f"the run is {record.status.value}"
    if not record.planned:
        return "not begun", ""
    if not record.tests:
        return "before the tests", ""
    test = record.tests[-1]
    if test.status is RunStatus.COMPLETE:
        return f"after {test.name}", ""
    if not test.steps:
        return f"{test.name}: {'fill' if test.purges and test.name == 'lat' else 'beginning'}", ""
    return f"{test.name}: {test.steps[-1].kind.value}", ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=95)
    parser.add_argument("--folder", default="/var/tmp")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance, good, moments = random.Random(options.seed), 0, Counter[str]()
    for number in range(1, options.kills + 1):
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            moment, fault = kill_one(Path(name), chance)
        good += not fault
        moments[moment.split(",", maxsplit=1)[0]] += 1
        print(f"{number}: {moment}{': ' * bool(fault)}{fault}", flush=True)
    print(f"{good} of {options.kills} runs lost nothing and came out whole; cut off in:")
    for moment, count in moments.most_common():
        print(f"    {count:3} {moment}")


if __name__ == "__main__":
    main()
