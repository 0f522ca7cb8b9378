"""Converter from the text of a job file to the text of a workload file."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from textwrap import wrap
from typing import TypeAlias, TypeVar

import msgspec

from tkperf.interop.fio_jobfile.job_sections import (
    DEFAULT_BLOCKS,
    Blocks,
    Job,
    JobOptions,
    Refusal,
    list_outcomes,
    list_refusals,
    parse_rates,
    read_arrival,
    read_blocks,
    read_jobs,
    read_needed_flag,
    read_share,
    read_sizes_bytes,
    read_time_s,
    read_zones,
)
from tkperf.model.choices import DEEPEST_QUEUE, MOST_JOBS
from tkperf.model.errors import InputFileError
from tkperf.model.units import KIB, format_block_size, format_count, on_one_line
from tkperf.model.workload import MIX_ALIGNMENT_BYTES, Access, Arrival, Zone
from tkperf.procedures import load_profile, with_workload
from tkperf.procedures.own_workloads import parse_workload_file
from tkperf.procedures.own_workloads.parts import LONGEST_LOAD_NAME, LONGEST_TITLE, FillPhase, Load, StreamPhase
from tkperf.procedures.profiles.profile_tables import LARGEST_BLOCK_KIB, LONGEST_S, MOST_PASSES

# fio's default on Linux. Engines that wait for each I/O have a queue depth of 1, whatever iodepth says.
DEFAULT_IOENGINE = "psync"
WAITING_IOENGINES = ("psync", "sync", "vsync", "pvsync", "pvsync2")
QUEUEING_IOENGINES = ("io_uring", "libaio", "posixaio", "windowsaio", "solarisaio")
READ_PERCENT = {"read": 100, "write": 0, "randread": 100, "randwrite": 0}
MIXED = ("rw", "readwrite", "randrw")
# fio's default for a mix.
DEFAULT_READ_PERCENT = 50

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLoad:
    """The load of a job, and its length.

    Attributes:
        runtime_s: the runtime; None if the load ends after an amount.
        passes: number of passes over the range, if there is no runtime.
        stonewall: whether the load begins after the end of all earlier loads.
    """

    options: JobOptions
    load: Load
    runtime_s: float | None
    ramp_s: float
    passes: int
    stonewall: bool


def read_load(options: JobOptions) -> JobLoad:
    """Return the load of a job; ``options`` records the outcome of each option."""
    _check_direct(options)
    access, read_percent = _read_pattern(options)
    blocks = _read_blocks(options, access, read_percent)
    shares = tuple((size_bytes / KIB, percent) for size_bytes, percent in blocks)
    threads = options.count("numjobs", 1, least=1, most=MOST_JOBS)
    rate_iops = _read_rate(options, read_percent)
    arrival = options.value("rate_process", read_arrival, Arrival.LINEAR)
    if not rate_iops:
        options.leave_out("rate_process")
    zones: tuple[Zone, ...] = ()
    if access is Access.RANDOM:
        zones = options.value("random_distribution", read_zones, zones)
    else:
        options.leave_out("random_distribution")
    begin, end = _read_range(options)
    load = Load(
        access=access,
        read_percent=read_percent,
        block_size_kib=shares[0][0] if len(shares) == 1 else None,
        block_shares=shares if len(shares) > 1 else (),
        zone_shares=tuple((*zone,) for zone in zones),
        jobs=threads,
        io_depth=_read_io_depth(options),
        offered_iops=rate_iops * threads if rate_iops else None,
        arrival=arrival if rate_iops else Arrival.LINEAR,
        compressible_percent=_read_compressible(options, read_percent),
        range_begin_percent=begin,
        range_end_percent=end,
    )
    runtime_s, ramp_s = _read_times(options)
    return JobLoad(
        options=options,
        load=_set_apart(options, load),
        runtime_s=runtime_s,
        ramp_s=ramp_s,
        passes=options.count("loops", 1, least=1, most=MOST_PASSES),
        stonewall=options.flag("stonewall"),
    )


def _check_direct(options: JobOptions) -> None:
    """Refuse I/O through the page cache. Of ``direct`` and ``buffered``, the later one counts."""
    given = options.given("direct", "buffered")
    is_direct = False
    for name in given:
        is_on = options.value(name, read_needed_flag, name == "buffered")
        is_direct = is_on is (name == "direct")
    if not is_direct:
        options.refuse(
            given[-1] if given else "direct",
            "buffered I/O measures the host's memory, tkperf's is always direct: write direct=1 if that is meant",
            default="direct=0 (fio's default)",
        )


def _read_pattern(options: JobOptions) -> tuple[Access, int]:
    """Return the access, and the percentage of reads."""
    name, colon, _ = (options.text("rw") or "read").partition(":")
    if "trim" in name:
        options.refuse("rw", "tkperf's loads read and write; they do not trim")
    elif name not in (*READ_PERCENT, *MIXED):
        options.refuse("rw", f"it is one of {', '.join((*READ_PERCENT, *MIXED))}")
    elif colon:
        options.refuse("rw", "addresses of tkperf are random or sequential; it skips none")
    access = Access.RANDOM if name.startswith("rand") else Access.SEQUENTIAL
    mix_percent = _read_mix(options, is_mixed=name in MIXED)
    return access, mix_percent if name in MIXED else READ_PERCENT.get(name, 100)


def _read_mix(options: JobOptions, *, is_mixed: bool) -> int:
    names = options.given("rwmixread", "rwmixwrite")
    percents = [options.count(name, 50, least=0, most=100) for name in names]
    if not is_mixed:
        options.leave_out(*names)
    elif len(percents) == 2 and sum(percents) != 100:
        options.refuse("rwmixwrite", "it and rwmixread do not add up to 100: leave one out")
    if not names:
        return DEFAULT_READ_PERCENT
    return percents[-1] if names[-1] == "rwmixread" else 100 - percents[-1]


def _read_blocks(options: JobOptions, access: Access, read_percent: int) -> Blocks:
    """Return the sizes and shares of the used directions, which must be equal.

    The later one of ``bs`` and ``bsrange`` counts, and ``bssplit`` overrides both, as in fio.
    """
    names = [*options.given("bs", "bsrange"), *options.given("bssplit")]
    name = names[-1] if names else "bs"
    options.leave_out(*names[:-1])
    default = DEFAULT_BLOCKS
    sides = options.value(name, lambda text: read_blocks(name, text, options.kb_base), (default, default))
    blocks, *others = _used(sides, read_percent)
    if any(other != blocks for other in others):
        options.refuse(name, "reads and writes of a load have the same block sizes in tkperf")
    if any(size % 512 or size > LARGEST_BLOCK_KIB * KIB for size, _ in blocks):
        options.refuse(name, "a block size is a multiple of 512 bytes, 16 MiB at most")
        blocks = default
    _check_alignment(options, access, blocks, read_percent)
    return blocks


def _check_alignment(options: JobOptions, access: Access, blocks: Blocks, read_percent: int) -> None:
    """Refuse a different alignment, because fio begins I/Os at multiples of the smallest block.

    tkperf aligns the I/Os of a random mix to 4 KiB if it has blocks of that size or more.
    """
    sizes = [size_bytes for size_bytes, _ in blocks]
    default = min(sizes)
    sides = options.value("ba", lambda text: read_sizes_bytes(text, options.kb_base), (default, default))
    aligned = set(_used(sides, read_percent))
    is_random_mix = len(sizes) > 1 and access is Access.RANDOM
    ours = MIX_ALIGNMENT_BYTES if is_random_mix and max(sizes) >= MIX_ALIGNMENT_BYTES else default
    if aligned != {ours}:
        options.refuse(
            "ba",
            f"I/Os begin at multiples of {format_block_size(max(aligned))}, those of tkperf at multiples "
            f"of {format_block_size(ours)}: write blockalign={format_block_size(ours)}",
            default=f"blockalign={format_block_size(default)} (fio's default)",
        )


def _used(sides: tuple[T, T], read_percent: int) -> list[T]:
    """Return the values of the directions that a mix uses."""
    shares = (read_percent, 100 - read_percent)
    return [side for side, share in zip(sides, shares, strict=True) if share]


def _read_io_depth(options: JobOptions) -> int:
    depth = options.count("iodepth", 1, least=1, most=DEEPEST_QUEUE)
    engine = options.text("ioengine") or DEFAULT_IOENGINE
    if engine in WAITING_IOENGINES:
        options.leave_out("iodepth")
        return 1
    if engine not in QUEUEING_IOENGINES:
        options.refuse("ioengine", "tkperf uses io_uring or libaio")
    options.leave_out("ioengine")
    return depth


def _read_rate(options: JobOptions, read_percent: int) -> int:
    """Return the I/Os per second of one thread, reads and writes together; 0: as fast as the device answers."""
    rates = options.value("rate_iops", parse_rates, (0, 0))
    used = _used(rates, read_percent)
    if len(used) == 2 and rates[0] * 100 != read_percent * sum(rates):
        options.refuse(
            "rate_iops",
            f"{rates[0]} reads and {rates[1]} writes a second are not {read_percent} % reads, as the mix has it",
        )
        return 0
    return sum(used)


def _read_compressible(options: JobOptions, read_percent: int) -> int:
    percent = options.count("buffer_compress_percentage", 0, least=0, most=100)
    if read_percent == 100:
        options.leave_out("buffer_compress_percentage")
        return 0
    return percent


def _read_range(options: JobOptions) -> tuple[int, int]:
    """Return begin and end in percent of the device."""
    begin = options.value("offset", read_share, 0)
    end = begin + options.value("size", read_share, 100 - begin)
    if end > 100 or begin >= end:
        options.refuse("size", "with its offset it is nothing, or beyond the device's end")
        return 0, 100
    return begin, end


def _set_apart(options: JobOptions, load: Load) -> Load:
    """Give sequential threads separate parts, as fio does with a matching ``offset_increment``."""
    name, jobs = "offset_increment", load.jobs or 1
    text = options.text(name)
    is_random = load.access is Access.RANDOM
    part = f"{100 / jobs:g}%"
    if text in (None, "0", "0%") and (jobs == 1 or is_random):
        options.leave_out(name)
    elif is_random:
        options.refuse(name, "random threads of tkperf share one range")
    elif text == part == options.text("size") and not load.range_begin_percent:
        return msgspec.structs.replace(load, range_end_percent=100)
    else:
        options.refuse(
            name,
            f"{jobs} sequential threads of tkperf have a part of the range each; fio's have with "
            f"size={part} and offset_increment={part}",
            default="offset_increment=0 (fio's default: all threads go over the same addresses)",
        )
    return load


def _read_times(options: JobOptions) -> tuple[float | None, float]:
    """Return the runtime in s (None if an amount ends the load), and the warm-up in s."""
    times = []
    for name in ("runtime", "ramp_time"):
        time_s = options.value(name, read_time_s, 0.0)
        if round(time_s * 1000) % 100 or time_s > LONGEST_S:
            options.refuse(name, "tkperf's times are multiples of 0.1 s, 30 days at most")
            time_s = 0.0
        times.append(time_s)
    runtime_s, ramp_s = times
    options.flag("time_based")
    if not runtime_s:
        options.leave_out("ramp_time")
        return None, 0.0
    options.leave_out("loops")
    return runtime_s, ramp_s


ANY_PROFILE, ANY_SUITE = "pts-e-1.1", "ssd"
WIDTH = 100
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
# Lengths of the slices of a stream in s, the longest first, and the smallest number of slices. fio reports once a
# second.
SLICE_LENGTHS = ((60, 5), (30, 5), (10, 5), (5, 5), (2, 5), (1, 1), (0.5, 1), (0.2, 1), (0.1, 1))


# By the name of the load.
Phases: TypeAlias = dict[str, tuple[StreamPhase | FillPhase, JobLoad]]


def build_phases(jobs: Sequence[JobOptions]) -> Phases:
    """Return the phases of a job file in order, each with its load. Refused options are noted in ``jobs``."""
    _check_one_device(jobs)
    phases: Phases = {}
    for options in jobs:
        job_load = read_load(options)
        if phases and not job_load.stonewall:
            options.refuse(
                "stonewall",
                f"it runs at the same time as [{next(reversed(phases))}], and tkperf runs one load at a "
                "time: write stonewall into it if it is to follow, or numjobs into one if both are the "
                "same load",
                default="no stonewall",
            )
        name = _new_name(options.job.name, phases)
        phases[name] = _build_phase(name, job_load), job_load
    if phases and job_load.runtime_s is None:
        _refuse_no_runtime(
            job_load,
            "it only fills the range, and nothing is measured after it: write runtime=.. and "
            "time_based=1 if it is to be measured",
        )
    return phases


def _build_phase(name: str, job_load: JobLoad) -> StreamPhase | FillPhase:
    if job_load.runtime_s is None:
        if not job_load.load.can_fill:
            _refuse_no_runtime(
                job_load,
                "a load of tkperf runs for a time, unless it writes all of the range in order: write "
                "runtime=.. and time_based=1",
            )
        return FillPhase(load=name, passes=job_load.passes)
    return StreamPhase(
        section=name,
        load=name,
        slice_s=_slice_s(job_load.runtime_s, job_load.ramp_s),
        longest_s=job_load.runtime_s,
        warm_up_s=job_load.ramp_s or None,
    )


def _refuse_no_runtime(job_load: JobLoad, why: str) -> None:
    job_load.options.refuse("runtime", why, default="no runtime")


def _slice_s(runtime_s: float, ramp_s: float) -> float:
    """Return the longest slice that divides both times and gives a few slices."""
    return next(
        slice_s
        for slice_s, fewest in SLICE_LENGTHS
        if runtime_s >= fewest * slice_s
        and not any(round(10 * time_s) % round(10 * slice_s) for time_s in (runtime_s, ramp_s))
    )


def _new_name(job: str, taken: Collection[str]) -> str:
    """Return a heading and load name that no other phase has."""
    plain = on_one_line(job)[:LONGEST_LOAD_NAME] or "job"
    room = LONGEST_LOAD_NAME - len(" (999)")
    numbered = (f"{plain[:room]} ({number})" for number in count(2))
    return next(name for name in chain([plain], numbered) if name not in taken)


def _check_one_device(jobs: Sequence[JobOptions]) -> None:
    named: str | None = None
    for options in jobs:
        file = options.text("filename")
        if file is None:
            continue
        if ":" in file.replace("\\:", ""):
            options.refuse("filename", "it names several files; tkperf measures one DEVICE")
        elif named is not None and file != named:
            options.refuse("filename", f"another job has {named}; tkperf measures one DEVICE")
        named = named or file


class OptionsRefusedError(InputFileError):
    """A job file has options that a workload file cannot express."""

    def __init__(self, file: str, refusals: tuple[Refusal, ...]) -> None:
        count = format_count(len(refusals), "option")
        super().__init__(
            f"{file}: {count} cannot be kept, nothing was written: change them in the job file, or take them out"
        )
        self.refusals = refusals


def convert_job_file(text: str, *, file: str, name: str) -> tuple[str, tuple[str, ...]]:
    """Return the workload file of a job file, and a line for each option: carried over, or not carried over.

    Args:
        text: the job file.
        file: name of the job file.
        name: name of the test.

    Raises:
        OptionsRefusedError: the job file has options that cannot be kept.
        UsageError: the text is not a job file, or a value is impossible.
    """
    jobs = [JobOptions(job) for job in read_jobs(file, text)]
    phases = build_phases(jobs)
    if refusals := list_refusals(jobs):
        raise OptionsRefusedError(file, refusals)
    options = list_outcomes(jobs)
    written = _render_toml(name, on_one_line(file), phases, options)
    # The workload file is checked as in a run, with the numbers of a profile for missing values.
    table = parse_workload_file(written, file=f"of {file}")
    with_workload(load_profile(ANY_PROFILE), ANY_SUITE, table, file=f"of {file}")
    return written, options


def name_of_test(stem: str, taken: Sequence[str]) -> str:
    """Return the name of the test, from the name of the job file."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-._")[:56] or "job"
    return f"{name}-fio" if name in taken else name


def _render_toml(name: str, file: str, phases: Phases, options: Sequence[str]) -> str:
    base = file.rpartition("/")[2]
    source = f"fio's job file {base}, converted by tkperf workload from-fio"
    lines = [
        *_comment(f"From fio's job file {file}, by tkperf workload from-fio. Its options:"),
        "#",
        *(f"# {line}" for line in options),
        "",
        "format = 1",
        f"name = {_string(name)}",
        f"title = {_string(f'fio job file {base}'[:LONGEST_TITLE])}",
        f"source = {_string(source)}",
    ]
    for load, (_, job_load) in phases.items():
        lines += ["", *_comment(_origin(job_load.options.job)), f"[loads.{_key(load)}]"]
        lines += _pairs(job_load.load)
    for phase, _ in phases.values():
        lines += ["", "[[phases]]", f'kind = "{phase.__struct_config__.tag}"']
        lines += _pairs(phase)
    return "\n".join(lines) + "\n"


def _origin(job: Job) -> str:
    return f"From [{on_one_line(job.name)}] of line {job.line}"


def _comment(text: str) -> Iterator[str]:
    return (f"# {line}" for line in wrap(text, WIDTH))


def _pairs(part: msgspec.Struct) -> Iterator[str]:
    for key, value in msgspec.to_builtins(part).items():
        if key != "kind":
            yield f"{key} = {_value(value)}"


def _value(value: object) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _string(text: str) -> str:
    # The remaining characters are the same in TOML and JSON.
    return json.dumps(on_one_line(text), ensure_ascii=False)


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _string(name)
