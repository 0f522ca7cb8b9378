"""Workloads as fio job files. The functions return text and have no side effects, so every job can be shown and run
again.

The following choices apply to every job:

- ``direct=1``: there is no file system or page cache between fio and the device (PTS User Guide, section 4).
- ``randseed`` with a 64-bit generator: each step, and each thread of a step, uses a different uniform sequence
  (docs/explanation/method.md). Without ``randrepeat=0``, fio would derive some random numbers from a constant.
- ``norandommap``: addresses are drawn independently, even if more than the whole range is written.
- ``refill_buffers``: every write contains new random data (PTS User Guide, section 7).
- ``invalidate=0``: direct I/O caches nothing, and invalidating the cache would delay the start.
- Sequential jobs use separate regions of the active range. Each job continues where it stopped, as far as fio
  can do that (``SequentialCursors``).
- ``blockalign`` aligns a mix of block sizes to 4 KiB. fio would align the mix to its smallest block size. Nearly every
  4 KiB write would then touch two of the units that a drive stores together.
- ``clocksource=cpu`` is set if fio would choose this clock anyway. fio then skips a test at each start, which would run
  a thread on every CPU during the preceding step (``fio_setup.py``).
- ``allow_file_create=0``: if the device disappears, fio must not create and measure a file with the device's name.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from tkperf.model.errors import UsageError
from tkperf.model.units import format_block_size, format_capacity, format_count
from tkperf.model.workload import (
    MIX_ALIGNMENT_BYTES,
    Access,
    ActiveRange,
    Arrival,
    Step,
    Stream,
    Workload,
    key_of_stream,
    name_section,
    split_regions,
)

# A step may be faster than the preceding step. If the step is faster than this factor allows, fio accesses a part of
# the region a second time, which is harmless.
SPEED_MARGIN = 1.1


@dataclass(frozen=True, slots=True, kw_only=True)
class FioTarget:
    """A target of fio's I/O, with the settings for access to it. If ``clocksource`` is None, fio chooses the clock."""

    path: str
    ioengine: str
    active_range: ActiveRange
    clocksource: str | None = None


def render_step_job(
    step: Step,
    target: FioTarget,
    *,
    starts_bytes: Sequence[int] = (),
    prerun: str | None = None,
    seed: int | None = None,
) -> str:
    """Return the job file of a timed step.

    Args:
        seed: the seed of the random numbers. None means that fio uses another seed each time that the job is run.
        starts_bytes: for sequential workloads, the start of each job within its region, in bytes.
        prerun: the command that each thread of fio executes before its first I/O. The thread waits until the command
            ends.
    """
    workload = step.workload
    if workload.is_combination:
        lines = _global_lines(target, prerun, seed, ())
        # If one stream failed or ended, the other streams would run alone, and would measure another load.
        lines += ["exit_what=all", "time_based=1"]
        starts = iter(starts_bytes)
        for stream in workload.together:
            own_starts = tuple(islice(starts, stream.workload.jobs)) if _is_in_order(stream.workload) else ()
            lines += _section_lines(stream, target.active_range, step.duration_s, own_starts, prerun)
        return _text(lines)
    lines = _global_lines(target, prerun, seed, (workload,))
    lines += ["time_based=1", _runtime_line(step.duration_s)]
    span = _span_of(workload, target.active_range)
    if workload.access is Access.RANDOM:
        return _text([*lines, *_random_lines(workload, span), "", "[step]"])
    for job, place in enumerate(_places_in_order(workload, span, starts_bytes)):
        lines += ["", f"[step{job}]", *place]
    return _text(lines)


def _section_lines(
    stream: Stream, active: ActiveRange, duration_s: float, starts_bytes: Sequence[int], prerun: str | None
) -> list[str]:
    """Return the sections of a stream: one section for all its threads, or one section for each sequential thread.

    The runtime of a section counts from the end of the section's delay, so that all streams end together. fio's own
    delay (``startdelay``) counts from the start of fio. If threads execute ``prerun``, a delay after ``prerun``
    therefore replaces fio's own delay.
    """
    workload, span, section = stream.workload, _span_of(stream.workload, active), f"[{name_section(stream.name)}]"
    lines = [*_pattern_lines(workload), *_pace_lines(workload), _runtime_line(duration_s - stream.delay_s)]
    if stream.delay_s:
        delay = f"{stream.delay_s:.3f}"
        lines.append(f"exec_prerun={prerun} && sleep {delay}" if prerun else f"startdelay={delay}s")
    if not _is_in_order(workload):
        return ["", section, *lines, *_random_lines(workload, span)]
    places = _places_in_order(workload, span, starts_bytes)
    return [line for place in places for line in ("", section, *lines, *place)]


def _is_in_order(workload: Workload) -> bool:
    """Return whether each thread accesses its own region in sequence, from the start of the region."""
    return workload.access is Access.SEQUENTIAL


def _runtime_line(duration_s: float) -> str:
    return f"runtime={round(duration_s * 1000)}ms"


def _span_of(workload: Workload, active: ActiveRange) -> ActiveRange:
    return active if workload.region is None else workload.region.within(active)


def _random_lines(workload: Workload, span: ActiveRange) -> list[str]:
    random = [] if workload.random_percent is None else [f"percentage_random={workload.random_percent}"]
    return [
        f"offset={span.offset_bytes}",
        f"size={_whole_blocks(span, workload.block_size_bytes)}",
        "norandommap=1",
        "random_generator=tausworthe64",
        f"numjobs={workload.jobs}",
        *random,
        *_zone_lines(workload),
    ]


def _places_in_order(workload: Workload, span: ActiveRange, starts_bytes: Sequence[int]) -> Iterator[list[str]]:
    """Yield the option lines that define the region of each sequential thread."""
    for job, region in enumerate(split_regions(span, workload.jobs, workload.block_size_bytes)):
        start_bytes = starts_bytes[job] if starts_bytes else 0
        yield [f"offset={region.offset_bytes + start_bytes}", f"size={region.length_bytes - start_bytes}"]


def render_fill_job(
    workload: Workload, passes: int, targets: Sequence[FioTarget], *, prerun: str | None = None, seed: int | None = None
) -> str:
    """Return the job file that writes the active range exactly ``passes`` times, for any number of jobs.

    The range is divided among the jobs. If a remainder is smaller than a block, a separate job writes this remainder,
    so that every byte of the range is written. Several targets are written at the same time, each with the same
    number of jobs.
    """
    lines = _global_lines(targets[0], prerun, seed, (workload,))
    # A job writes to the files that its section and [global] name. A single file is therefore named in [global], and
    # several files are named in their sections.
    lines = [line for line in lines if len(targets) == 1 or not line.startswith("filename=")]
    for target in targets:
        name = "" if len(targets) == 1 else f"-{target.path.rpartition('/')[2]}"
        file = [] if len(targets) == 1 else [filename_option(target.path)]
        active, block = target.active_range, workload.block_size_bytes
        jobs = min(workload.jobs, active.length_bytes // block)
        regions = split_regions(active, jobs, block) if jobs else ()
        for job, region in enumerate(regions):
            lines += ["", f"[fill{job}{name}]", *file, *_fill_lines(region, passes)]
        rest = active.length_bytes % block
        if rest:
            region = ActiveRange(offset_bytes=active.offset_bytes + active.length_bytes - rest, length_bytes=rest)
            lines += ["", f"[rest{name}]", f"bs={rest}", *file, *_fill_lines(region, passes)]
    return _text(lines)


def count_threads(job_text: str) -> int:
    """Return the number of threads that fio starts for a job file that this module has built."""
    shared, *sections = job_text.split("\n[")
    default = _numjobs(shared, 1)
    return sum(_numjobs(section, default) for section in sections)


def _numjobs(section: str, default: int) -> int:
    options = dict(line.split("=", 1) for line in section.splitlines() if "=" in line)
    return int(options.get("numjobs", default))


def planned_bytes(job_text: str) -> tuple[int, ...]:
    """Return the number of bytes that each job of a fill should write."""
    words = (line.partition("=") for line in job_text.splitlines())
    return tuple(int(value) for key, _, value in words if key == "io_size")


def _fill_lines(region: ActiveRange, passes: int) -> list[str]:
    return [f"offset={region.offset_bytes}", f"size={region.length_bytes}", f"io_size={region.length_bytes * passes}"]


def _global_lines(target: FioTarget, prerun: str | None, seed: int | None, loads: Sequence[Workload]) -> list[str]:
    """Return the options that apply to all sections. If one load runs alone, add the options of this load."""
    lines = [
        "[global]",
        filename_option(target.path),
        f"ioengine={target.ioengine}",
        "direct=1",
        "thread=1",
        *(line for load in loads for line in _pattern_lines(load)),
        "randrepeat=0",
        *([] if seed is None else [f"randseed={seed}"]),
        "refill_buffers=1",
        "invalidate=0",
        "allow_file_create=0",
        "exitall_on_error=1",
        "lat_percentiles=1",
        "clat_percentiles=0",
        "slat_percentiles=0",
        *(line for load in loads for line in _pace_lines(load)),
    ]
    if target.clocksource:
        lines.append(f"clocksource={target.clocksource}")
    if prerun:
        lines.append(f"exec_prerun={prerun}")
    return lines


def _pattern_lines(workload: Workload) -> list[str]:
    return [f"rw={_rw(workload)}", *_block_lines(workload), f"iodepth={workload.io_depth}"]


def _pace_lines(workload: Workload) -> list[str]:
    """Return the options for the mix, the data, the pauses, the flushes and the rate of a load."""
    lines = []
    if workload.is_mixed:
        lines.append(f"rwmixread={workload.read_percent}")
    if workload.compressible_percent is not None:
        lines.append(f"buffer_compress_percentage={workload.compressible_percent}")
    if workload.burst is not None:
        pause_us = round(workload.burst.pause_s * 1e6)
        lines += [f"thinktime={pause_us}us", f"thinktime_blocks={workload.burst.ios}"]
    if workload.flush_every is not None:
        lines.append(f"fsync={workload.flush_every}")
    return lines + _rate_lines(workload)


def _block_lines(workload: Workload) -> list[str]:
    if not workload.block_mix:
        return [f"bs={workload.block_size_bytes}"]
    shares = (f"{share.block_size_bytes}/{share.percent}" for share in workload.block_mix)
    lines = [f"bssplit={':'.join(shares)}"]
    if workload.access is Access.RANDOM and workload.block_size_bytes >= MIX_ALIGNMENT_BYTES:
        lines.append(f"blockalign={MIX_ALIGNMENT_BYTES}")
    return lines


def _zone_lines(workload: Workload) -> list[str]:
    if not workload.zones:
        return []
    zones = (f"{zone.access_percent}/{zone.range_percent}" for zone in workload.zones)
    return [f"random_distribution=zoned:{':'.join(zones)}"]


def _rate_lines(workload: Workload) -> list[str]:
    """Return the options for the offered rate, in fio's form for each job and direction.

    For evenly spaced I/Os, the options use bytes per second. ``rate_iops`` accepts only whole I/Os, so the rate of each
    job would be wrong by up to half an I/O per second. For a mix of block sizes, fio before 3.42 converts ``rate_iops``
    to bytes with the smallest block size. The rate is then far too low (commit 3a0e8ddf). Random arrivals need
    ``rate_iops``, because fio derives their times from whole I/Os per second.
    """
    if workload.offered_iops is None:
        return []
    of_job = workload.offered_iops / workload.jobs
    shares = (workload.read_percent / 100, 1 - workload.read_percent / 100)
    rates = [of_job * share for share in shares]
    if any(share and rate < 1 for share, rate in zip(shares, rates, strict=True)):
        raise UsageError(
            f"the offered rate of {workload.offered_iops:g} IOPS is too low: in each of "
            f"{format_count(workload.jobs, 'job')}, the rate of the reads or of the writes would be "
            "below one I/O per second. Increase the rate, or use fewer jobs"
        )
    if workload.arrival is Arrival.POISSON:
        option, whole = "rate_iops", [rate and find_poisson_setting(rate) for rate in rates]
    else:
        option, whole = "rate", [round(rate * workload.mean_block_bytes) for rate in rates]
    spelled = ",".join(str(rate) if rate else "" for rate in whole)
    return [f"{option}={spelled}", f"rate_process={workload.arrival.value}"]


def find_poisson_setting(iops: float) -> int:
    """Return the value of ``rate_iops`` with which the mean rate of a job's random arrivals is closest to ``iops``."""
    near = round(iops)
    # If the times between I/Os are short, many settings differ only in a fraction of a µs, which fio truncates.
    gap_us = round(1e6 / iops + 0.5)
    choices = {near, near + 1, *(1_000_000 // us for us in (gap_us - 1, gap_us, gap_us + 1) if us)}
    return min(
        (choice for choice in choices if 1 <= choice <= 1_000_000), key=lambda choice: abs(poisson_iops(choice) - iops)
    )


def poisson_iops(setting: int) -> float:
    """Return the mean rate, in I/Os per second, of the random arrivals that fio generates for a ``rate_iops``.

    fio divides a second by ``rate_iops`` and truncates the result to whole µs. fio then draws an exponentially
    distributed time with this mean and truncates it to whole µs (``usec_for_io`` in fio's ``backend.c``).
    """
    return 1e6 * math.expm1(1 / (1_000_000 // setting))


def filename_option(path: str) -> str:
    """Return fio's option for a path. Colons are escaped, because fio uses colons to separate file names."""
    return f"filename={path.replace(':', chr(92) + ':')}"


def _rw(workload: Workload) -> str:
    direction = "trim" if workload.trims else {0: "write", 100: "read"}.get(workload.read_percent, "rw")
    return f"rand{direction}" if workload.access is Access.RANDOM else direction


def _whole_blocks(active_range: ActiveRange, block_size_bytes: int) -> int:
    length_bytes = active_range.length_bytes - active_range.length_bytes % block_size_bytes
    if not length_bytes:
        raise UsageError(
            f"the active range of {format_capacity(active_range.length_bytes)} is smaller than one block of "
            f"{format_block_size(block_size_bytes)}. Choose a larger range or a smaller block size"
        )
    return length_bytes


def _text(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


@dataclass(slots=True)
class _Cursor:
    next_bytes: tuple[int, ...]
    bytes_per_s: float


class SequentialCursors:
    """The positions of all sequential streams of a device. Each stream continues from step to step instead of
    restarting.

    fio can start a job anywhere in its region. At the end of the region, however, fio continues at the address where
    the job started, and not at the beginning of the region (observed with fio 3.33; zonemode and several files do not
    change this). A step therefore continues where the stream stopped if the rest of the region is large enough for the
    last measured speed. Otherwise the step starts at the beginning of the region, and the rest of the region is not
    accessed. If a stream accesses more than about half of its region in a step, each of its steps begins at the
    beginning of the region. Only in this case does fio access the whole region repeatedly.

    Each stream is identified by its workload. In a combination, the name also identifies the stream. Loads within an
    area begin at the start of the area, because each area is measured once.
    """

    def __init__(self, active_range: ActiveRange) -> None:
        self._active_range = active_range
        self._cursors: dict[Workload, _Cursor] = {}

    def starts_bytes(self, step: Step) -> tuple[int, ...]:
        """Return the start of each sequential job within its region, in bytes. The result is empty if no job is
        sequential.
        """
        keys = (key for key in _keys_of(step.workload) if _is_in_order(key))
        return tuple(start for key in keys for start in self._starts_of(key, step.duration_s))

    def _starts_of(self, key: Workload, duration_s: float) -> tuple[int, ...]:
        cursor = self._cursors.get(key)
        if cursor is None:
            return (0,) * key.jobs
        needed_bytes = SPEED_MARGIN * cursor.bytes_per_s * duration_s / key.jobs
        return tuple(
            position if region.length_bytes - position >= needed_bytes else 0
            for region, position in zip(self._regions(key), cursor.next_bytes, strict=True)
        )

    def advance(self, step: Step, starts_bytes: Sequence[int], job_bytes: Sequence[int]) -> None:
        """Record how many bytes each job accessed in a step that began at ``starts_bytes`` for each sequential job."""
        starts, moved = iter(starts_bytes), iter(job_bytes)
        for key in _keys_of(step.workload):
            of_jobs = tuple(islice(moved, key.jobs))
            if not _is_in_order(key):
                continue
            began = tuple(islice(starts, key.jobs))
            if key.region is None or key.stream is not None:
                self._advance_one(key, step.duration_s, began, of_jobs)

    def _advance_one(
        self, key: Workload, duration_s: float, starts_bytes: Sequence[int], job_bytes: Sequence[int]
    ) -> None:
        positions = []
        for region, start, moved in zip(self._regions(key), starts_bytes, job_bytes, strict=True):
            # After fio has returned to the start of the job, the position counts from this start.
            position = start + moved % (region.length_bytes - start)
            positions.append(position if position < region.length_bytes else 0)
        self._cursors[key] = _Cursor(next_bytes=tuple(positions), bytes_per_s=sum(job_bytes) / duration_s)

    def _regions(self, key: Workload) -> tuple[ActiveRange, ...]:
        return split_regions(_span_of(key, self._active_range), key.jobs, key.block_size_bytes)


def _keys_of(workload: Workload) -> tuple[Workload, ...]:
    """Return the workload of each stream of a combination, with the stream's name. For a load that runs alone, return
    the load.
    """
    if not workload.is_combination:
        return (workload,)
    return tuple(key_of_stream(workload, stream.name) for stream in workload.together)
