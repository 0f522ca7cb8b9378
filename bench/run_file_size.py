"""Measure the size of a run file that contains one sample per second for 24 hours.

The script measures a write saturation stream with real fio on a scratch file. It then writes these seconds repeatedly,
minute by minute from a random start, until the file contains 24 hours. The size of a second depends on the number of
its I/Os, because the counts in a second are mostly noise, which cannot be compressed. The script therefore writes the
same seconds a second time and leaves out I/Os at random, down to the rate of a slower drive. It prints the sizes, the
bytes per sample, and the space that sample histograms in full resolution would need.

    python bench/run_file_size.py [--measure-s 120] [--folder /var/tmp]
"""

from __future__ import annotations

import argparse
import random
import tempfile
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np

from tkperf.device.identity import read_identity
from tkperf.device.permit import grant_permit, hold_target
from tkperf.engine import RequiredIo
from tkperf.engine.device_engine import PermittedDevice
from tkperf.engine.device_jobs import DeviceJobs, Seeds
from tkperf.engine.fio import FioEngine
from tkperf.engine.fio_setup import choose_ioengine, find_fio_version
from tkperf.model.histogram import Histogram
from tkperf.model.measurement import NO_IO, IoStats, Measurement, Sample
from tkperf.model.phases import Continuous
from tkperf.model.record import RunStatus, StepKind, StepRecord
from tkperf.model.run_info import RunInfo
from tkperf.model.workload import Access, ActiveRange, Workload
from tkperf.runfile import columns
from tkperf.runfile.writer import RunFileWriter
from tkperf.runner.events import RunEnded, RunStarted, StepEnded, TestStarted

SIZE_BYTES = 1 << 30
DAY_S = 86_400
SLICE_S = 60
# The rate of a slower SATA drive, and the rate of a slow SATA drive or of a hard disk with a cache.
SLOWER_IOPS = (20_000, 2_000)
WORKLOAD = Workload(access=Access.RANDOM, read_percent=0, block_size_bytes=4096, jobs=4, io_depth=32)


def measure(folder: Path, seconds: int) -> tuple[list[Sample], bytes]:
    """Return the real samples of one stream, and the last report of fio."""
    scratch = folder / "scratch"
    with scratch.open("wb") as file:
        file.truncate(SIZE_BYTES)
    permit = grant_permit(hold_target(read_identity(scratch)), confirmed_id=str(scratch.resolve())).redeem()
    device = PermittedDevice(
        permit=permit,
        ioengine=choose_ioengine(str(scratch), 512, None, RequiredIo(jobs=4, io_depth=32)),
        active_range=ActiveRange(offset_bytes=0, length_bytes=SIZE_BYTES),
    )
    jobs = DeviceJobs(device)
    engine = FioEngine(jobs, version=find_fio_version(), cpus=2, seeds=Seeds(1))
    phase = Continuous(section="s", number=1, workload=WORKLOAD, duration_s=seconds, longest_s=seconds)
    try:
        execution = engine.measure_slice(phase, then=None, on_sample=lambda *_: None)
    finally:
        engine.close()
    # During the first seconds, the file system allocates the blocks of the scratch file.
    return list(execution.measurement.samples[5:]), execution.output


def thin(sample: Sample, share: float, chance: np.random.Generator) -> Sample:
    """Return a second with this share of its I/Os. Each I/O is kept or left out at random."""
    write = sample.write
    kept = Histogram.from_dense(chance.binomial(write.histogram.dense(), share))
    ios = kept.total
    mean_ns = write.latency_mean_ns or 0.0
    return replace(
        sample,
        write=IoStats(
            ios=ios,
            bytes=ios * WORKLOAD.block_size_bytes,
            latency_ios=ios,
            latency_sum_ns=int(ios * mean_ns) + int(chance.integers(1000)),
            latency_min_ns=kept.lowest_ns,
            latency_max_ns=kept.highest_ns,
            histogram=kept,
        ),
    )


def write_day(path: Path, samples: list[Sample], output: bytes, *, full: bool = False) -> int:
    """Write a run file with 1,440 slices of 60 consecutive seconds each. Return its size in bytes."""
    chance = random.Random(1)
    finest = mock.patch.object(columns, "coarsen", lambda histogram: histogram)
    with finest if full else nullcontext():
        writer = RunFileWriter(path)
        writer(RunStarted(info=_info(), tests=("writesat",)))
        writer(TestStarted(test="writesat", at_s=0.0))
        for number in range(DAY_S // SLICE_S):
            first = chance.randrange(len(samples))
            seconds = [samples[(first + second) % len(samples)] for second in range(SLICE_S)]
            writer(StepEnded(test="writesat", record=_slice(number, seconds, output)))
        writer(RunEnded(status=RunStatus.COMPLETE, because=None, ended_utc=""))
        writer.close()
    return path.stat().st_size


def _slice(number: int, seconds: list[Sample], output: bytes) -> StepRecord:
    """Return a slice of one minute with the totals of its seconds, as in a run."""
    placed, start_s, total = [], 0.0, NO_IO
    for second in seconds:
        placed.append(replace(second, start_s=start_s))
        start_s += second.duration_s
        total += second.write
    return StepRecord(
        section="Write Saturation",
        kind=StepKind.CONTINUOUS,
        number=number + 1,
        position=0,
        workload=WORKLOAD,
        planned_s=float(SLICE_S),
        started_s=float(SLICE_S * number),
        gap_s=0.0,
        measurement=Measurement(duration_s=start_s, read=NO_IO, write=total, samples=tuple(placed)),
        job_file="[global]\n",
        engine_output=output,
    )


def _info() -> RunInfo:
    return RunInfo(
        name="bench",
        suite="bench",
        tkperf_version="",
        fio_version=None,
        ioengine="",
        command_line=(),
        started_utc="",
        profile_name="",
        profile={},
        options={},
        device={},
        hosts=(),
        active_range_offset_bytes=0,
        active_range_length_bytes=SIZE_BYTES,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--measure-s", type=int, default=120)
    parser.add_argument("--folder", default="/var/tmp")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        samples, output = measure(folder, options.measure_s)
        chance = np.random.default_rng(1)
        measured_iops = sum(sample.iops for sample in samples) / len(samples)
        print(f"{len(samples)} real seconds of {WORKLOAD}")
        for iops in (measured_iops, *(rate for rate in SLOWER_IOPS if rate < measured_iops)):
            slower = iops < measured_iops
            seconds = [thin(each, iops / measured_iops, chance) if slower else each for each in samples]
            buckets = sum(each.write.histogram.indices.size for each in seconds) / len(seconds)
            print(
                f"{iops:,.0f} IOPS{' (I/Os left out at random)' if slower else ' (as measured)'}, "
                f"{buckets:.0f} filled buckets a second"
            )
            for label, full in (("as kept", False), ("with full sample histograms", True)):
                if full and slower:
                    continue
                size = write_day(folder / f"{iops:.0f}-{full}.tkperf", seconds, output, full=full)
                print(f"    24 h {label + ':':30s}{size / 1e6:5.1f} MB, {size / DAY_S:4.0f} bytes a sample", flush=True)


if __name__ == "__main__":
    main()
