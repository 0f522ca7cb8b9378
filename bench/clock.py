"""Measure how much the clock test of the next fio process disturbs the running step.

The script compares steps with and without this test, in alternating pairs.

If fio selects its clock itself, it tests the clock when it starts, with a thread on every CPU. tkperf starts the fio
for the next step while the preceding step is still running. In this script, two jobs use up two CPUs on a file in
memory (tmpfs). Near the end of each step, tkperf's engine prepares the next step: once with ``clocksource=cpu``, which
omits the test, and twice without this option. The two steps without the option show how much steps with the same
settings differ from each other.

The script prints the medians of the pairs' ratios of p99.9 latency, longest latency and IOPS, with their 95 % intervals
(ranks of the sorted ratios according to the binomial distribution). For each figure, it also prints in how many pairs
the figure was lower than in the step with the test. The script does not need root.

    python bench/clock.py [--pairs 30] [--step-s 4] [--jobs 2] [--depth 16] [--folder /dev/shm] [--json FILE]
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from against_fio import IOENGINE, RANGE, SIZE_BYTES, find_ranks, read_options

from tkperf.device.identity import read_identity
from tkperf.device.permit import ErasePermit, grant_permit, hold_target
from tkperf.engine import ChosenEngine, Next
from tkperf.engine.device_engine import PermittedDevice
from tkperf.engine.device_jobs import DeviceJobs, Seeds
from tkperf.engine.fio import FioEngine
from tkperf.engine.fio_setup import choose_clock, find_fio_version
from tkperf.model.measurement import Measurement
from tkperf.model.workload import Step

WITHOUT, TESTED, AGAIN = "without the test", "with the test", "with the test again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The figures of one step during which the next step was prepared."""

    iops: float
    p999_us: float
    longest_us: float


NAMES = {"iops": "IOPS", "p999_us": "p99.9 latency", "longest_us": "longest latency"}


def figures_of(measurement: Measurement) -> Figures:
    percentile_ns = measurement.both.histogram.percentile_ns(99.9)
    longest_ns = measurement.both.latency_max_ns
    assert percentile_ns is not None
    assert longest_ns is not None
    return Figures(iops=measurement.iops, p999_us=percentile_ns / 1000, longest_us=longest_ns / 1000)


def measure(permit: ErasePermit, step: Step, clocksource: str | None) -> Figures:
    """Run a step while the next step is prepared, as in a run. The next step is never released."""
    device = PermittedDevice(permit=permit, ioengine=ChosenEngine(name=IOENGINE), active_range=RANGE)
    jobs = DeviceJobs(device, clocksource=clocksource)
    engine = FioEngine(jobs, version="", cpus=len(os.sched_getaffinity(0)), seeds=Seeds(1))
    follower = Next(loads=(step,), choose=lambda _: None, certain=False)
    try:
        execution = engine.measure(step, then=follower, on_sample=lambda *_: None)
    finally:
        engine.close()
    return figures_of(execution.measurement)


def ratios(rounds: list[dict[str, Figures]], which: str, figure: str) -> dict[str, float]:
    """Return the median, the bounds and the extremes of the ratios of one figure, and the number of ratios below 1.

    ``which`` selects a kind of step. Each ratio is the figure of a step of this kind divided by the figure of the step
    with the clock test in the same element of ``rounds``.
    """
    found = sorted(getattr(one[which], figure) / getattr(one[TESTED], figure) for one in rounds)
    low, high = find_ranks(len(found))
    return {
        "median": statistics.median(found),
        "low_95": found[low],
        "high_95": found[high],
        "least": found[0],
        "most": found[-1],
        "lower": sum(ratio < 1 for ratio in found),
    }


def main() -> None:
    options, step = read_options(__doc__)
    rounds: list[dict[str, Figures]] = []
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        file = Path(name) / "file"
        with file.open("wb") as target:
            for _ in range(SIZE_BYTES >> 20):
                target.write(os.urandom(1 << 20))
        permit = grant_permit(hold_target(read_identity(file)), confirmed_id=str(file)).redeem()
        for number in range(options.pairs):
            kinds = ((TESTED, None), (WITHOUT, "cpu"), (AGAIN, None))
            # The three kinds of steps rotate: each kind is the first in every third pair.
            turn = number % len(kinds)
            rounds.append(
                {which: measure(permit, step, clocksource) for which, clocksource in (*kinds[turn:], *kinds[:turn])}
            )
        permit.release()
    result = {which: {key: ratios(rounds, which, key) for key in NAMES} for which in (WITHOUT, AGAIN)}
    load = os.getloadavg()[0]
    clock = choose_clock()
    print(
        f"{find_fio_version()}, {step.workload}, {IOENGINE}, {options.pairs} pairs of {options.step_s:g} s; "
        f"fio's clock here: {clock.words}"
    )
    for which, figures in result.items():
        for key, found in figures.items():
            print(
                f"{which + ' to ' + TESTED + ':':42} {NAMES[key]:16} {found['median']:.3f} "
                f"(95 %: {found['low_95']:.3f} to {found['high_95']:.3f}; {found['least']:.3f} to "
                f"{found['most']:.3f}), lower in {found['lower']:.0f} of {len(rounds)}"
            )
    print(f"load of the host: {load:.1f}")
    if options.json:
        document = {
            "workload": str(step.workload),
            "pairs": options.pairs,
            "step_s": options.step_s,
            "ratios_to_with_the_test": result,
            "load": load,
            "steps": [{which: asdict(one) for which, one in each.items()} for each in rounds],
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        options.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
