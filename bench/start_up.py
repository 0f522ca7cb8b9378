"""Measure how long calls of tkperf take, and how much of this time the loading of modules takes.

The calls are help, shell completion, an invalid call, a small `show`, and a `status` of long runs.

Each call is a new process. The script prints the median of n calls with the least and the greatest value. It also
prints the median CPU time, which is more meaningful on a machine with other users. For comparison, it prints two lower
limits: the times of a Python that does nothing, and the times of a Python that only loads click. Finally, it prints how
much time each package needs to load its modules, according to `python -X importtime`, which slightly slows the loading
of each module.

With --status, the script measures only `tkperf status` in a folder with eight ended runs of all tests. The first call
has an empty cache and judges every run. Each later call reads the verdicts from the cache.

    python bench/start_up.py [--times 31] [--run FILE.tkperf]
    python bench/start_up.py --status [--times 5] [--run FILE.tkperf]
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

TKPERF = Path(sys.executable).parent / "tkperf"
ROWS = 12
RUNS = 8
"""The number of run files in the folder of ``tkperf status``."""
_ASKED = {"_TKPERF_COMPLETE": "bash_complete"}
# The cases. Each case contains the words of a call, or the command line at the end of which the user presses Tab.
CALLS: dict[str, tuple[tuple[str, ...], str | None]] = {
    "--version": (("--version",), None),
    "--help": (("--help",), None),
    "ssd --help": (("ssd", "--help"), None),
    "report --help": (("report", "--help"), None),
    "wrong call": (("ssd", "n", "x", "--sise", "3"), None),
    "Tab: command": ((), "tkperf s"),
    "Tab: test": ((), "tkperf ssd n x --test la"),
    "Tab: preset": ((), "tkperf ssd n sim:"),
    "Tab: profile": ((), "tkperf ssd n x --profile "),
    "Tab: run file": ((), "tkperf show "),
}


Took = tuple[float, float]
"""The elapsed time and the CPU time of a call, in milliseconds."""


def take_time(argv: Sequence[str | Path], environment: Mapping[str, str]) -> Took:
    """Run a process to its end and return the time that it took."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(argv, env={**os.environ, **environment}, capture_output=True, check=False)
    took_s = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return took_s * 1000, cpu_s * 1000


def measure(argv: Sequence[str | Path], line: str | None, times: int) -> list[Took]:
    """Return the times of n processes. An additional first process compiles the modules and fills the cache. Its time
    does not count.
    """
    environment = {} if line is None else {**_ASKED, "COMP_LINE": line}
    return [take_time(argv, environment) for _ in range(times + 1)][1:]


def print_row(what: str, measured: Sequence[Took]) -> None:
    clock, cpu = zip(*measured, strict=True)
    numbers = (statistics.median(clock), min(clock), max(clock), statistics.median(cpu))
    print(f"{what:<22}", *(f"{number:>7.0f}" for number in numbers))


def break_down(words: Sequence[str | Path]) -> dict[str, float]:
    """Return the number of milliseconds that each package needs to load its own modules. The loading time of modules
    that these modules import does not count.
    """
    argv = [sys.executable, "-X", "importtime", "-m", "tkperf", *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    packages: dict[str, float] = {}
    for own_us, name in re.findall(r"import time: +(\d+) \| +\d+ \| +(\S+)", done.stderr):
        package = name.partition(".")[0]
        if package in sys.stdlib_module_names:
            package = "Python's own"
        packages[package] = packages.get(package, 0.0) + int(own_us) / 1000
    return dict(sorted(packages.items(), key=lambda item: -item[1]))


def measure_status(folder: Path, run: Path | None, times: int) -> None:
    """Print how long the first call and later calls of ``tkperf status`` take. Each call lists copies of a finished
    run.
    """
    if run is None:
        run = folder / "made/run.tkperf"
        made = ("ssd", "run", "sim:sata-ssd", "--test", "all", "-q", "--no-report")
        subprocess.run([TKPERF, *made, "--output", run.parent], check=True, capture_output=True)
    runs = folder / "runs"
    runs.mkdir()
    for number in range(RUNS):
        shutil.copy(run, runs / f"run-{number}.tkperf")
    os.chdir(runs)
    print(f"{RUNS} run files of {run.stat().st_size / 1e6:.1f} MB each; {times} first and {times} later calls")
    print(f"\n{'milliseconds':<22} {'median':>7} {'least':>7} {'most':>7} {'CPU':>7}")
    first: list[Took] = []
    later: list[Took] = []
    for number in range(times + 1):
        cache = {"XDG_CACHE_HOME": str(folder / f"cache-{number}")}
        first.append(take_time([TKPERF, "status"], cache))
        later.append(take_time([TKPERF, "status"], cache))
    print_row("first status", first[1:])
    print_row("later status", later[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--times", type=int, default=31)
    parser.add_argument("--run", type=Path, help="run file to show; else a simulated one is made")
    parser.add_argument("--status", action="store_true", help="measure only 'tkperf status'")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if args.status:
            measure_status(Path(name), args.run and args.run.resolve(), args.times)
            return
        run = args.run or Path(name) / "small.tkperf"
        if args.run is None:
            made = ("ssd", "small", "sim:sata-ssd", "--profile", "quick", "-ssdt", "iops", "-q")
            subprocess.run([TKPERF, *made, "--output", name], check=True, capture_output=True)
        os.chdir(run.parent)
        load = os.getloadavg()[0]
        print(f"Python {platform.python_version()}, {os.cpu_count()} CPUs, load {load:.2f} before")
        print(f"run file of {run.stat().st_size / 1000:.0f} kB; medians of {args.times} processes")
        print(f"\n{'milliseconds':<22} {'median':>7} {'least':>7} {'most':>7} {'CPU':>7}")
        print_row("Python, nothing", measure([sys.executable, "-c", "pass"], None, args.times))
        print_row("Python, click", measure([sys.executable, "-c", "import click"], None, args.times))
        for what, (words, line) in CALLS.items():
            print_row(what, measure([TKPERF, *words], line, args.times))
        print_row("show", measure([TKPERF, "show", run], None, args.times))
        print_row("show --json", measure([TKPERF, "show", run, "--json"], None, args.times))
        loading: tuple[tuple[str | Path, ...], ...] = (("--help",), ("ssd", "--help"), ("show", run))
        for called in loading:
            print(f"\nloading for '{' '.join(map(str, called))}', by package:")
            packages = break_down(called)
            for package, took_ms in list(packages.items())[:ROWS]:
                print(f"{package:<22} {took_ms:>7.1f}")
            print(f"{'all':<22} {sum(packages.values()):>7.1f}")


if __name__ == "__main__":
    main()
