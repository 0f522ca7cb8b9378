"""How large is the run file of 24 hours at one sample a second?

Measures a write-saturation stream with real fio on a scratch file for a minute or so, then writes
that minute's slices again and again, shifted at random, until the file holds 24 hours. Prints the
size, the bytes of a sample, and what full-resolution sample histograms would take instead.

    python bench/run_file_size.py [--measure-s 120] [--folder /var/tmp]
"""

from __future__ import annotations

import argparse
import random
import tempfile
from dataclasses import replace
from pathlib import Path

from tkperf.engine.fio import FioEngine
from tkperf.engine.fio_job import FioTarget
from tkperf.engine.fio_setup import choose_ioengine, find_fio_version
from tkperf.events import RunStarted, StepEnded, TestStarted
from tkperf.histogram import Histogram
from tkperf.measurement import Measurement, Sample
from tkperf.phases import Continuous
from tkperf.record import RunInfo, StepKind, StepRecord
from tkperf.runfile.writer import RunFileWriter
from tkperf.workload import Access, ActiveRange, Workload

SIZE_BYTES = 1 << 30
DAY_S = 86_400
WORKLOAD = Workload(
    access=Access.RANDOM, read_percent=0, block_size_bytes=4096, jobs=4, io_depth=32
)


def measure(folder: Path, seconds: int) -> tuple[list[Sample], Measurement, bytes]:
    """Real samples of one stream."""
    scratch = folder / "scratch"
    with scratch.open("wb") as file:
        file.truncate(SIZE_BYTES)
    engine = FioEngine(
        FioTarget(
            path=str(scratch),
            ioengine=choose_ioengine(str(scratch), 512, None, jobs=4, io_depth=32),
            active_range=ActiveRange(offset_bytes=0, length_bytes=SIZE_BYTES),
        ),
        version=find_fio_version(),
        device=str(scratch),
        cpus=2,
    )
    phase = Continuous(
        section="s", number=1, workload=WORKLOAD, duration_s=seconds, longest_s=seconds
    )
    try:
        execution = engine.measure_slice(phase, on_sample=lambda _: None)
    finally:
        engine.close()
    # The first seconds allocate the scratch file's blocks.
    return list(execution.measurement.samples[5:]), execution.measurement, execution.output


def write_day(
    path: Path, samples: list[Sample], measured: Measurement, output: bytes, *, full: bool
) -> int:
    """Bytes of a run file with 1,440 slices of 60 resampled seconds each."""
    chance = random.Random(1)
    original = Histogram.coarsened
    if full:
        Histogram.coarsened = lambda self: self  # type: ignore[method-assign]
    try:
        writer = RunFileWriter(path)
        writer(RunStarted(info=_info(), tests=("writesat",)))
        writer(TestStarted(test="writesat", at_s=0.0))
        for number in range(DAY_S // 60):
            seconds = tuple(
                replace(chance.choice(samples), start_s=second + 0.001) for second in range(60)
            )
            record = StepRecord(
                section="Write Saturation",
                kind=StepKind.CONTINUOUS,
                number=number + 1,
                position=0,
                workload=WORKLOAD,
                planned_s=60.0,
                started_s=60.0 * number,
                gap_s=0.0,
                measurement=replace(measured, samples=seconds),
                job_file="[global]\n",
                engine_output=output,
            )
            writer(StepEnded(test="writesat", record=record))
        writer.close()
    finally:
        Histogram.coarsened = original  # type: ignore[method-assign]
    return path.stat().st_size


def _info() -> RunInfo:
    return RunInfo(
        name="bench",
        suite="bench",
        tkperf_version="",
        fio_version=None,
        engine="",
        command_line=(),
        started_utc="",
        profile_name="",
        profile={},
        options={},
        device={},
        host={},
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
        samples, measured, output = measure(folder, options.measure_s)
        buckets = sum(sample.write.histogram.indices.size for sample in samples) / len(samples)
        print(
            f"{len(samples)} real seconds of {WORKLOAD}: {measured.iops:,.0f} IOPS, "
            f"{buckets:.0f} filled buckets a second"
        )
        kept = write_day(folder / "day.tkperf", samples, measured, output, full=False)
        full = write_day(folder / "full.tkperf", samples, measured, output, full=True)
    print(
        f"24 h as kept:                    {kept / 1e6:5.1f} MB, {kept / DAY_S:4.0f} bytes a sample"
    )
    print(
        f"24 h with full sample histograms: {full / 1e6:4.1f} MB, {full / DAY_S:4.0f} bytes a sample"
    )


if __name__ == "__main__":
    main()
