"""Measure all figures of docs/explanation/accuracy.md with one command.

All measurements together take 75 minutes on a machine that runs no other programs.

The script runs each of the commands below. It writes the output of a command to FOLDER/NAME.txt, and the figures of the
command to FOLDER/NAME.json. It prints which commands stayed within their limits. If a command exceeds its limit, the
script ends with exit status 1. The script needs root and QEMU.

    python bench/accuracy.py [--folder accuracy] [--only NAME ...]
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
LAB_FIGURES = CHECKOUT / ".lab/last/accuracy.json"
# The script replaces {json} with the path of the file to which the command writes its figures. The page
# docs/explanation/accuracy.md contains the same list of commands, and a test compares both lists.
COMMANDS = {
    "one-job": "python bench/against_fio.py --jobs 1 --json {json}",
    "two-jobs": "python bench/against_fio.py --jobs 2 --step-s 12 --pairs 14 --json {json}",
    "trace": "python bench/against_trace.py --json {json}",
    "wall-device": "python bench/wall_time.py --json {json}",
    "wall-file": "python bench/wall_time.py --file --long-step-s 0 --json {json}",
    "hand-over": "python bench/handover_gap.py",
    "streams": "python bench/streams_against_fio.py --json {json}",
    "starts": "python bench/stream_starts.py",
    "lab": "python -m tests.lab.run full -k test_accuracy",
}


def run(name: str, folder: Path) -> int:
    """Run a command, and print and store its output. Return its exit status."""
    command = COMMANDS[name].format(json=folder / f"{name}.json").split()
    print(f"== {' '.join(command)}", flush=True)
    process = subprocess.Popen(
        [sys.executable, *command[1:]], cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    with (folder / f"{name}.txt").open("w", encoding="utf-8") as kept:
        for line in process.stdout:
            sys.stdout.write(line)
            kept.write(line)
    if name == "lab" and LAB_FIGURES.exists():
        shutil.copy(LAB_FIGURES, folder / "lab.json")
    return process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path("accuracy"))
    parser.add_argument("--only", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    options = parser.parse_args()
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    LAB_FIGURES.unlink(missing_ok=True)
    if os.getloadavg()[0] > 0.5:
        print(f"this machine has other work (load {os.getloadavg()[0]:.1f}): what follows is no proof")
    statuses = {name: run(name, folder) for name in options.only}
    for name, status in statuses.items():
        print(f"{name:12} {'within its limits' if status == 0 else 'NOT within its limits'}")
    return 1 if any(statuses.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
