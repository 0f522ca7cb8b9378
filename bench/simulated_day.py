"""How long does a simulated day take? 24 hours of write saturation with every second kept.

A run as the command line makes it, with its run file, on a simulated drive; what would end the test
earlier (steady state, four capacities of writes) is switched off in a profile of its own. Prints seconds of
real and of CPU time and the size of the run file; exit status 1 if it took longer than the limit.

    python bench/simulated_day.py [--preset sata-ssd] [--hours 24] [--limit-s 60] [--profile-to FILE]
"""

from __future__ import annotations

import argparse
import cProfile
import sys
import tempfile
import time
from importlib.resources import files
from pathlib import Path

import tkperf

NAME = 'name = "pts-e-1.1"\ntitle = "SNIA PTS-E 1.1 (2013)"'
ENDS = "max_slices = 1440\ncapacity_multiple = 4\nround_every_slices = 30"


def write_profile(folder: Path, hours: float) -> Path:
    """pts-e-1.1 with write saturation that lasts for so long, whatever happens."""
    text = (files("tkperf.profiles") / "pts-e-1.1.toml").read_text(encoding="utf-8")
    ends = f"max_slices = {round(hours * 60)}\ncapacity_multiple = 1000\nround_every_slices = 0"
    for before, after in ((NAME, 'name = "a-day"\ntitle = "A day of writes"'), (ENDS, ends)):
        if text.count(before) != 1:
            raise SystemExit(f"pts-e-1.1.toml has not once: {before}")
        text = text.replace(before, after)
    path = folder / "a-day.toml"
    path.write_text(text, encoding="utf-8")
    return path


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--preset", default="sata-ssd")
    options.add_argument("--hours", type=float, default=24.0)
    options.add_argument("--limit-s", type=float, default=60.0)
    options.add_argument("--profile-to")
    wanted = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plan = tkperf.make_plan(
            "ssd",
            f"sim:{wanted.preset}",
            profile=str(write_profile(folder, wanted.hours)),
            tests=["writesat"],
        )
        began_s, began_cpu_s = time.monotonic(), time.process_time()
        profiler = cProfile.Profile()
        if wanted.profile_to:
            profiler.enable()
        result = tkperf.run(plan, "day", folder=folder)
        if wanted.profile_to:
            profiler.disable()
            profiler.dump_stats(wanted.profile_to)
        took_s, cpu_s = time.monotonic() - began_s, time.process_time() - began_cpu_s
        minutes = sum(len(section.slices) for section in result.tests[0].sections)
        size_bytes = (folder / "day.tkperf").stat().st_size
    print(
        f"{minutes / 60:g} h of sim:{wanted.preset}: {took_s:.1f} s ({cpu_s:.1f} s of CPU), "
        f"run file {size_bytes / 1e6:.1f} MB"
    )
    return 0 if took_s <= wanted.limit_s else 1


if __name__ == "__main__":
    sys.exit(main())
