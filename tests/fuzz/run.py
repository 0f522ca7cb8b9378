"""Read mutated input files of every kind. Each file must lead to a value or to an error of tkperf, within limits of
time and memory.

    python -m tests.fuzz.run --mutations 20000 --seed 7 --kind run-file
    python -m tests.fuzz.run --seed 7 --kind run-file --only 1234     one case, with its traceback
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.fuzz.kinds import KINDS
from tkperf.model.errors import TkperfError

MUTATIONS, SEED = 400, 1
# The time limit for a case counts CPU time, so that a busy machine does not cause a timeout.
MOST_CPU_S = 10.0
# The limit for memory in addition to the memory that Python and its libraries have already mapped.
MOST_BYTES = 1 << 30
MOST_SHOWN = 5


class TooSlowError(Exception):
    """An error that states that a case exceeded its time limit."""


def find_failures(kind: str, numbers: Sequence[int], seed: int) -> list[str]:
    """Return the text of each failure. The cases run in a child process, which may exhaust its memory or crash."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        code = 1
        try:
            with open(writing, "w", encoding="utf-8", errors="backslashreplace") as told:
                _limit_memory()
                _try_all(kind, numbers, seed, told)
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with open(reading, encoding="utf-8") as told:
        failures = [each for each in told.read().split("\0") if each]
    _, status = os.waitpid(child, 0)
    if status:
        failures.append(f"{kind}: the process ended with status {status}")
    return failures


def run_limited(act: Callable[[], str]) -> str:
    """Return the result of ``act`` under the limits of a case. If ``act`` fails, return its traceback, or the status
    with which its process ended.
    """

    def too_slow(*_: object) -> None:
        raise TooSlowError

    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            with open(writing, "w", encoding="utf-8", errors="backslashreplace") as told:
                _limit_memory()
                signal.signal(signal.SIGVTALRM, too_slow)
                _limit_time()
                try:
                    told.write(act())
                except BaseException:
                    told.write(traceback.format_exc())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as told:
        said = told.read()
    _, status = os.waitpid(child, 0)
    return said or f"the process ended with status {status}"


def _limit_time() -> None:
    """Limit the CPU time of Python code with a signal. If library code does not return, the kernel ends the process."""
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_CPU_S)
    used_s = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    resource.setrlimit(resource.RLIMIT_CPU, (int(used_s + 3 * MOST_CPU_S) + 1, resource.RLIM_INFINITY))


def _limit_memory() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MOST_BYTES, used + MOST_BYTES))


def _try_all(kind: str, numbers: Sequence[int], seed: int, told) -> None:  # type: ignore[no-untyped-def]
    def too_slow(*_: object) -> None:
        raise TooSlowError

    signal.signal(signal.SIGVTALRM, too_slow)
    for number in numbers:
        rng = random.Random(f"{seed}/{kind}/{number}")
        _limit_time()
        try:
            KINDS[kind].try_case(rng, number)
        except TkperfError:
            pass
        except BaseException:
            told.write(f"{kind}, seed {seed}, case {number}:\n{traceback.format_exc()}\0")
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutations", type=int, default=MUTATIONS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--kind", choices=list(KINDS), action="append")
    parser.add_argument("--only", type=int, help="the number of one case")
    asked = parser.parse_args()
    numbers = range(asked.mutations) if asked.only is None else [asked.only]
    count = 0
    for kind in asked.kind or KINDS:
        failures = find_failures(kind, numbers, asked.seed)
        count += len(failures)
        print(f"{kind}: {len(numbers)} cases, {len(failures)} failures")
        for failure in failures[:MOST_SHOWN]:
            print(failure)
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
