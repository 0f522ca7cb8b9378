"""Measure how much the reading of a drive's log slows the load down.

The script compares the same reads with and without telemetry, in alternating pairs.

In one half of each pair, fio reads at random without telemetry. In the other half, fio reads in the same manner while
the script reads the telemetry of the drive. Telemetry is read more often than in a run, so that every second contains
readings. A third part, again without telemetry, shows how much two parts without telemetry differ. The script prints
the duration and the CPU time of a reading, and the medians of the pairs' ratios. The script only reads from DEVICE. It
needs root.

    python bench/telemetry.py DEVICE [--pairs 10] [--seconds 20] [--log-every 1] [--temperature-every 0.2]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tkperf.device.drive_log import UnreadError
from tkperf.device.identity import DeviceIdentity, read_identity
from tkperf.device.telemetry_watch import LOG_EVERY_S, TEMPERATURE_EVERY_S, TelemetryWatch, open_logs

LOADS = {"1 outstanding": (1, 1), "32 outstanding": (1, 32)}
READINGS = 20
NAMES = ("IOPS", "mean latency", "p99 latency", "p99.9 latency", "longest latency")


def measure(device: str, jobs: int, depth: int, seconds: float) -> tuple[float, ...]:
    """Return the IOPS, and then the mean, p99, p99.9 and greatest latency in µs."""
    output = subprocess.check_output(
        [
            "fio",
            "--name=reads",
            f"--filename={device}",
            "--readonly",
            "--rw=randread",
            "--bs=4k",
            "--direct=1",
            "--ioengine=libaio",
            f"--numjobs={jobs}",
            f"--iodepth={depth}",
            "--time_based",
            f"--runtime={seconds}",
            "--group_reporting",
            "--norandommap",
            "--allow_file_create=0",
            "--output-format=json",
        ]
    )
    read = json.loads(output)["jobs"][0]["read"]
    latency = read["clat_ns"]
    percentiles = latency["percentile"]
    return (
        read["iops"],
        latency["mean"] / 1000,
        percentiles["99.000000"] / 1000,
        percentiles["99.900000"] / 1000,
        latency["max"] / 1000,
    )


@contextmanager
def telemetry(identity: DeviceIdentity, log_every_s: float, temperature_every_s: float) -> Iterator[TelemetryWatch]:
    watch = TelemetryWatch(open_logs(identity), log_every_s=log_every_s, temperature_every_s=temperature_every_s)
    watch.take()
    try:
        yield watch
    finally:
        watch.close()


def describe_readings(identity: DeviceIdentity) -> bool:
    """Print how long readings take while the drive is idle. Return whether the drive has a log."""
    (drive,) = open_logs(identity)
    try:
        drive.look_first(time.monotonic)
    except UnreadError as error:
        print(f"log: {error}")
    print(f"{drive.name}: {', '.join(drive.facts.sources) or 'none'}; {'; '.join(drive.facts.gaps)}")
    if drive.has_log:
        before, began_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        for _ in range(READINGS):
            drive.read(time.monotonic)
        took_s = (time.monotonic() - began_s) / READINGS
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / READINGS
        print(f"a reading of the log: {1000 * took_s:.1f} ms, of that {1000 * cpu_s:.1f} ms of CPU time")
    if drive.read_temperature(time.monotonic) is not None:
        began_s = time.monotonic()
        for _ in range(READINGS):
            drive.read_temperature(time.monotonic)
        print(f"a temperature by hwmon: {1e6 * (time.monotonic() - began_s) / READINGS:.0f} us")
    return not drive.is_silent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("device")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--log-every", type=float, default=1.0)
    parser.add_argument("--temperature-every", type=float, default=0.2)
    options = parser.parse_args()
    identity = read_identity(options.device)
    if not describe_readings(identity):
        return
    print(
        f"steps of {options.seconds:g} s; log every {options.log_every:g} s (in a run {LOG_EVERY_S:g} s), "
        f"temperature every {options.temperature_every:g} s (in a run {TEMPERATURE_EVERY_S:g} s)"
    )
    for name, (jobs, depth) in LOADS.items():
        pairs: dict[str, list[tuple[tuple[float, ...], tuple[float, ...]]]] = {"with": [], "again": []}
        readings = 0
        for number in range(options.pairs):
            halves: dict[str, tuple[float, ...]] = {}
            for which in ("without", "with", "again")[:: 1 if number % 2 else -1]:
                if which == "with":
                    with telemetry(identity, options.log_every, options.temperature_every) as watch:
                        halves[which] = measure(options.device, jobs, depth, options.seconds)
                        readings += len(watch.take())
                else:
                    halves[which] = measure(options.device, jobs, depth, options.seconds)
            for which, found in pairs.items():
                found.append((halves[which], halves["without"]))
        print(f"{name}: {readings} readings in {options.pairs} steps")
        for position, what in enumerate(NAMES):
            texts = []
            for which, found in pairs.items():
                ratios = sorted(one[position] / other[position] for one, other in found)
                texts.append(f"{which} {statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})")
            print(f"  {what:15} ratio to without: {', '.join(texts)}")
    print(f"load of the host: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
