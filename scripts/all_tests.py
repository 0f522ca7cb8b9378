"""Run the core cases of the lab and, at the same time, first lint and then pytest. scripts/test.sh calls this script.

pytest mostly waits for fio, and the lab uses one CPU. Both together therefore take only slightly longer than the slower
of the two. The output of lint and pytest appears immediately. The output of the lab is stored in .lab/core.txt and
printed at the end. If lint, pytest or the lab fails, the exit status is 1. If lint fails, the script ends all other
programs. Ctrl-C and SIGTERM also end all programs.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
LAB_SAID = CHECKOUT / ".lab" / "core.txt"
LINT = ("sh", "scripts/lint.sh")
# Distribute the tests by file, in the order that tests/conftest.py defines.
PYTEST = (sys.executable, "-m", "pytest", "-n", "4", "--dist", "loadfile", "--no-loadscope-reorder")
# All workers of pytest start at the same time. In a clean checkout, each worker would compile all test files with their
# assertions, which takes as much CPU time as the collection itself. One earlier collection stores the compiled files.
COMPILE = (sys.executable, "-m", "pytest", "--collect-only", "-qq")
# The emulated machine uses the clock of the host. If the machine receives only a small share of a CPU, its cases exceed
# their time limits. Root can give the machine a higher priority. For other users, nice prints a warning and starts the
# lab with normal priority. The machine has a single CPU and leaves the other CPUs to pytest.
LAB = ("nice", "-n", "-5", sys.executable, "-u", "-m", "tests.lab.run", "core")
ENDS_WITHIN_S = 60.0
# If this variable were set, each worker of pytest would compile all test files with their assertions again.
VARIABLES = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    LAB_SAID.parent.mkdir(exist_ok=True)
    print(f"The lab runs meanwhile; what it says is in {LAB_SAID.relative_to(CHECKOUT)} and follows.", flush=True)
    with LAB_SAID.open("wb") as said:
        lab = subprocess.Popen(LAB, cwd=CHECKOUT, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    started = [lab]
    try:
        lint = subprocess.Popen(LINT, cwd=CHECKOUT)
        started.append(lint)
        # The workers report errors that occur during the collection, so the output and the status of this call are not
        # used.
        compiling = subprocess.Popen(
            COMPILE, cwd=CHECKOUT, env=VARIABLES, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        started.append(compiling)
        if lint.wait() != 0:
            _end(started)
            print("lint failed", file=sys.stderr)
            return 1
        compiling.wait()
        tests = subprocess.Popen(PYTEST, cwd=CHECKOUT, env=VARIABLES)
        started.append(tests)
        failed = [name for name, process in (("pytest", tests), ("the lab", lab)) if process.wait() != 0]
    except (KeyboardInterrupt, SystemExit) as stopped:
        _end(started)
        return 130 if isinstance(stopped, KeyboardInterrupt) else 128 + signal.SIGTERM
    finally:
        print(LAB_SAID.read_text(errors="replace"), flush=True)
    for name in failed:
        print(f"{name} failed", file=sys.stderr)
    return 1 if failed else 0


def _end(started: list[subprocess.Popen[bytes]]) -> None:
    """End all programs that are still running. SIGTERM may have reached only this process."""
    for process in started:
        if process.poll() is None:
            process.terminate()
    for process in started:
        try:
            process.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()


if __name__ == "__main__":
    sys.exit(main())
