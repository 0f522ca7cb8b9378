"""Reader of fio's job files: jobs with their options, in fio's dialect.

The dialect (fio's HOWTO, "Job file format", and tests with fio 3.33) differs from INI files, so
configparser cannot read it: sections of the same name are different jobs, each ``[global]`` applies only
to the jobs below it, every section whose name begins with ``global`` is one, indented lines are
options, not continuations, and ``;`` and ``#`` end a line anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tkperf.interop.fio_options import DEFAULT_BLOCK_BYTES, parse_number, parse_time_s
from tkperf.model.errors import InputFileError
from tkperf.model.units import on_one_line
from tkperf.model.workload import Arrival, BlockShare, Zone

# Aliases of the options that are carried over or refused.
ALIASES = {
    "readwrite": "rw",
    "blocksize": "bs",
    "blockalign": "ba",
    "blocksize_range": "bsrange",
    "blocksize_unaligned": "bs_unaligned",
    "iodepth_batch_submit": "iodepth_batch",
    "iodepth_batch_complete": "iodepth_batch_complete_min",
    "io_limit": "io_size",
    "fill_fs": "fill_device",
    "fileoffset": "offset",
    "nr_files": "nrfiles",
    "timeout": "runtime",
    "iomem": "mem",
    "ratemin": "rate_min",
    "wait_for_previous": "stonewall",
    "ss": "steadystate",
    # Names that are new in fio 3.39. Before, these were separate options.
    "allrandrepeat": "randrepeat",
    "log_max_value": "log_window_value",
    "log_unix_epoch": "log_alternate_epoch",
    "data_placement": "dataplacement",
    "fdp_pli": "plids",
    "fdp_pli_select": "plid_select",
}
MOST_SECTIONS = 256
LONGEST_SHOWN = 60
_KEYWORD = re.compile(r"\$(?:\{[^}]*\}|mb_memory|ncpus|pagesize)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option of a file; ``value`` is None without a ``=``.

    ``name`` is fio's own name; ``spelled`` may be an alias.
    """

    name: str
    spelled: str
    value: str | None
    place: str

    def __str__(self) -> str:
        """Return ``bs=4k``, shortened."""
        return shorten_text(self.spelled if self.value is None else f"{self.spelled}={self.value}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A section that is a job, with the options of the global sections above it.

    ``options`` have fio's own names, in the order of the file; the last of repeated ones counts.
    """

    name: str
    place: str
    line: int
    options: Mapping[str, Option]


@dataclass(frozen=True, slots=True)
class _Line:
    file: str
    number: int
    text: str

    @property
    def place(self) -> str:
        return f"{self.file}, line {self.number}"

    def error(self, reason: str) -> InputFileError:
        return InputFileError(f"{self.place}: {reason}")


def read_jobs(file: str, text: str) -> tuple[Job, ...]:
    """Return the jobs of a file, in order, by its name and its text."""
    jobs: list[Job] = []
    shared: dict[str, Option] = {}
    options: dict[str, Option] | None = None
    for line in _lines(file, text):
        if line.text.startswith("["):
            name = _section_name(line)
            options = shared
            if not name.startswith("global"):
                options = dict(shared)
                jobs.append(Job(name=name, place=line.place, line=line.number, options=options))
        elif re.match(r"include\b", line.text):
            raise line.error(f"'{shorten_text(line.text)}': tkperf reads one file: write its lines here instead")
        elif options is None:
            raise line.error(
                f"'{shorten_text(line.text)}' is above the first [section], which fio refuses; is it a job file?"
            )
        else:
            option = _option(line)
            options.pop(option.name, None)
            options[option.name] = option
        if len(jobs) > MOST_SECTIONS:
            raise InputFileError(f"{file}: more than {MOST_SECTIONS} jobs; a test cannot have so many")
    if not jobs:
        raise InputFileError(f"{file}: the file has no job: a job is a section such as [randread]")
    return tuple(jobs)


def shorten_text(text: str) -> str:
    """Return text of a file for a message, shortened."""
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."


def _section_name(line: _Line) -> str:
    if not line.text.endswith("]") or not line.text[1:-1].strip():
        raise line.error(f"'{shorten_text(line.text)}' is no section: it is [name]")
    return line.text[1:-1]


def _option(line: _Line) -> Option:
    name, equals, value = line.text.partition("=")
    name = name.strip()
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        raise line.error(f"'{shorten_text(line.text)}' is neither an option nor a section; is it a job file?")
    found = _KEYWORD.search(value)
    if found:
        raise line.error(
            f"{name}: {shorten_text(found[0])} is filled in by fio from the environment or the host, so that "
            "the load would not be known: write its value"
        )
    return Option(name=ALIASES.get(name, name), spelled=name, value=value.strip() if equals else None, place=line.place)


def _lines(file: str, text: str) -> Iterator[_Line]:
    """Yield lines without comments, except empty ones."""
    if "\0" in text:
        raise InputFileError(f"{file}: the file contains binary data, so it is not a job file")
    for number, line in enumerate(text.split("\n"), 1):
        left = re.split("[;#]", line, maxsplit=1)[0].strip()
        if left:
            yield _Line(file, number, left)


Blocks = tuple[BlockShare, ...]
DEFAULT_BLOCKS: Blocks = (BlockShare(DEFAULT_BLOCK_BYTES, 100),)
_MOST_BYTES = 1 << 50


class Unclear(Exception):  # noqa: N818 - what a value is, not what went wrong
    """A value that fio refuses, or that fio understands differently from a reader. The message describes
    a valid value.
    """


def read_flag(value: str | None) -> bool:
    """Return the state of a switch: ``stonewall`` and ``stonewall=1`` are on, ``stonewall=0`` is off."""
    if value in (None, "1", "0"):
        return value != "0"
    raise Unclear("it is 1 or 0")


def read_needed_flag(value: str | None) -> bool:
    """Return the state of a switch that needs a value in fio, such as ``direct=1``."""
    if value is None:
        raise Unclear("it needs a value, 1 or 0, which fio insists on")
    return read_flag(value)


def read_count(value: str | None, least: int, most: int) -> int:
    """Return a whole number without unit."""
    if value is None or not re.fullmatch(r"[0-9]{1,12}", value) or not least <= int(value) <= most:
        raise Unclear(f"it is a whole number from {least} to {most:,}")
    return int(value)


def read_share(value: str | None) -> int:
    """Return a part of the range in percent: ``25%``, or ``0``."""
    text = value or ""
    if not text.endswith("%") and text != "0":
        raise Unclear(
            "a workload file has parts of the range in percent: write ..%, or take it out, and give "
            "the range itself to the run with --active-range"
        )
    return read_count(text.removesuffix("%").strip(), 0, 100)


def read_arrival(value: str | None) -> Arrival:
    """Return the spacing of the I/Os of an offered rate."""
    if value not in tuple(Arrival):
        raise Unclear(f"it is {' or '.join(Arrival)}")
    return Arrival(value)


def read_kb_base(value: str | None) -> int:
    """Return the base of ``k`` and larger units in sizes."""
    if value not in ("1000", "1024"):
        raise Unclear("it is 1000 or 1024")
    return int(value)


def read_time_s(value: str | None) -> float:
    """Return a time in s, 0 included."""
    text = value or ""
    time_s = parse_time_s(text)
    if time_s is None and not re.fullmatch(r"0+\s*[a-z]*", text):
        raise Unclear("it is a time such as 60, 90s, 5m or 1h")
    return time_s or 0.0


def parse_rates(value: str | None) -> tuple[int, int]:
    """Return the rates of reads and of writes in ``rate_iops``; a missing one is 0, no limit."""
    read, write = _for_sides(value, "0")
    return read_count(read, 0, 10**9), read_count(write, 0, 10**9)


def read_sizes_bytes(value: str | None, kb_base: int) -> tuple[int, int]:
    """Return the sizes of reads and of writes in bytes, in the notation of ``bs``."""
    read, write = _for_sides(value, str(DEFAULT_BLOCK_BYTES))
    return _size_bytes(read, kb_base), _size_bytes(write, kb_base)


def read_blocks(name: str, value: str | None, kb_base: int) -> tuple[Blocks, Blocks]:
    """Return sizes of reads and of writes with their percentages, from ``bs``, ``bsrange`` or ``bssplit``."""
    if name == "bs":
        read, write = read_sizes_bytes(value, kb_base)
        return (BlockShare(read, 100),), (BlockShare(write, 100),)
    parse = _parse_split if name == "bssplit" else _parse_range
    of_reads, of_writes = _for_sides(value, "")
    return parse(of_reads, kb_base), parse(of_writes, kb_base)


def read_zones(value: str | None) -> tuple[Zone, ...]:
    """Return the zones of ``zoned:50/5:30/15:20/`` (a missing number is the rest); none for ``random``."""
    kind, _, zones = (value or "").partition(":")
    if value == "random":
        return ()
    if kind != "zoned":
        raise Unclear("tkperf spreads addresses evenly, or by random_distribution=zoned")
    rows = [entry.partition("/")[::2] for entry in zones.split(":")]
    accesses = _percentages([access for access, _ in rows])
    ranges = _percentages([share for _, share in rows])
    return tuple(
        Zone(access_percent=access, range_percent=share) for access, share in zip(accesses, ranges, strict=True)
    )


def _for_sides(value: str | None, default: str) -> tuple[str, str]:
    """Return the values of reads and of writes in ``read,write,trim``; one value applies to all."""
    sides = [part.strip() or default for part in (value or "").split(",")]
    if len(sides) > 3:
        raise Unclear("it is one value, or those of reads, writes and trims")
    return sides[0], sides[min(1, len(sides) - 1)]


def _size_bytes(text: str, kb_base: int) -> int:
    """Return a size such as ``4k``, ``4KiB``, ``4096``, in bytes."""
    if not re.fullmatch(r"[0-9]{1,15} ?(?:[kmgtp](?:i?b)?|b)?", text, re.IGNORECASE):
        raise Unclear("it is a size such as 4k, 1m or 4096")
    size_bytes = parse_number(text.replace(" ", ""), kb_base)
    if size_bytes is None or not 0 < size_bytes <= _MOST_BYTES:
        raise Unclear("it is a size of 1 byte or more, and no more than any drive's")
    return size_bytes


def _parse_range(text: str, kb_base: int) -> Blocks:
    low, dash, high = text.replace(":", "-").partition("-")
    if not dash or _size_bytes(low, kb_base) != _size_bytes(high, kb_base):
        raise Unclear("tkperf draws no sizes from a range; write the sizes as bssplit=4k/50:8k/50")
    return (BlockShare(_size_bytes(low, kb_base), 100),)


def _parse_split(text: str, kb_base: int) -> Blocks:
    rows = [entry.partition("/")[::2] for entry in text.split(":") if entry.strip()]
    sizes = [_size_bytes(size.strip(), kb_base) for size, _ in rows]
    percentages = _percentages([share for _, share in rows])
    if len(set(sizes)) < len(sizes):
        raise Unclear("it has a size twice")
    shares = zip(sizes, percentages, strict=True)
    return tuple(BlockShare(size, percent) for size, percent in shares if percent)


def _percentages(texts: Sequence[str]) -> list[int]:
    """Return whole percentages with the sum 100; missing ones share the rest equally."""
    given = [read_count(text.strip(), 0, 100) if text.strip() else None for text in texts]
    left, blank = 100 - sum(number or 0 for number in given), given.count(None)
    if left < 0 or (left and not blank) or (blank and left % blank):
        raise Unclear("its percentages do not add up to 100")
    return [left // blank if number is None else number for number in given]


T = TypeVar("T")

# Options with their key in a workload file. A value that tkperf cannot run is refused.
CARRIED_OVER = {
    "rw": "access, read_percent",
    "rwmixread": "read_percent",
    "rwmixwrite": "read_percent",
    "bs": "block_size_kib",
    "bsrange": "block_size_kib",
    "bssplit": "block_shares, or block_size_kib of a single size",
    "random_distribution": "zone_shares; none if it is random",
    "numjobs": "jobs",
    "iodepth": "io_depth",
    "ioengine": "io_depth, which is 1 as this engine waits for each I/O",
    "rate_iops": "offered_iops, of all threads together",
    "rate_process": "arrival",
    "buffer_compress_percentage": "compressible_percent",
    "offset": "range_begin_percent, to 1 MiB",
    "size": "range_end_percent, to 1 MiB, or the part of each of the jobs",
    "offset_increment": "jobs, each of which has a part of its own",
    "runtime": "longest_s",
    "ramp_time": "warm_up_s",
    "loops": "passes",
    "stonewall": "the order of phases",
    "kb_base": "the units of this job file",
}

# tkperf does so anyway, or has no use for them: I/O is always direct, every load lasts its whole time,
# addresses are drawn independently, every write has new random data, every second is recorded.
WITHOUT_EFFECT = frozenset(
    {
        "direct",
        "buffered",
        "ba",
        "invalidate",
        "thread",
        "group_reporting",
        "time_based",
        "name",
        "description",
        "norandommap",
        "random_generator",
        "randrepeat",
        "randseed",
        "refill_buffers",
        "scramble_buffers",
        "clat_percentiles",
        "lat_percentiles",
        "slat_percentiles",
        "percentile_list",
        "disable_lat",
        "disable_clat",
        "disable_slat",
        "gtod_reduce",
        "write_bw_log",
        "write_lat_log",
        "write_iops_log",
        "write_hist_log",
        "per_job_logs",
        "log_avg_msec",
        "log_hist_msec",
        "log_window_value",
        "log_offset",
        "log_alternate_epoch",
        "log_issue_time",
        "job_start_clock_id",
        "comm",
    }
)

# Options that would change the measurement, by the reason; a value given here is harmless.
_REFUSED = {
    "it makes the device do other work than the reads and writes that tkperf counts": """
        fsync=0 fdatasync=0 write_barrier=0 end_fsync=0 end_syncfs=0 fsync_on_close=0 sync=0 sync=none
        sync_file_range atomic=0 pre_read=0 trim_percentage=0 num_range=1 readfua=0 writefua=0 write_mode=write
        sprandom=0
    """,
    "checking data takes time and reads that would count as load": """
        verify=0 verify=none verify_only=0
    """,
    "fio would run a command, a trace or a program of its own; tkperf runs none of a job file": """
        exec_prerun exec_postrun read_iolog write_iolog profile
    """,
    "tkperf writes new random data, compressible by a percentage at most": """
        buffer_pattern zero_buffers=0 dedupe_percentage=0 buffer_compress_chunk=512
    """,
    "the device would wait between I/Os by fio's rules; offer a rate with rate_iops": """
        thinktime=0 thinkcycles=0
    """,
    "offered rates are in IOPS: divide by the block size and write rate_iops": "rate=0",
    "fio would pace or end the load by what it measures; tkperf's loads stay the same": """
        rate_min=0 rate_iops_min=0 max_latency=0 latency_target=0 flow steadystate
    """,
    "tkperf submits and reaps I/Os one by one, a queue is always full": """
        iodepth_batch=1 iodepth_batch_complete_min=1 iodepth_batch_complete_max=1 iodepth_low
        io_submit_mode=inline serialize_overlap=0 force_async=0 nowait=0 uncached=0
    """,
    "an I/O engine's own mode changes latency; tkperf uses io_uring or libaio as they are": """
        hipri=0 fixedbufs=0 registerfiles=0 sqthread_poll=0 userspace_reap=0 nonvectored=0
        cmdprio_percentage=0 cmdprio_bssplit libaio_vectored=0
    """,
    "it changes the host's part; tkperf leaves threads and CPUs as they are": """
        nice=0 mem=malloc prio prioclass priohint cpumask cpus_allowed numa_cpu_nodes numa_mem_policy
        cgroup ioscheduler
    """,
    "addresses are random or sequential, at multiples of the block size, without zones or gaps": """
        zonemode=none bs_unaligned=0 offset_align=0 bs_is_seq_rand=0 percentage_random
    """,
    "it asks the device to treat the data in another way": """
        write_hint=none fdp=0 dataplacement=none plids plid_select dp_scheme
    """,
    "tkperf measures one device, not a set of files": """
        nrfiles=1 file_append=0 fill_device=0 create_only=0 opendir filesize
    """,
    "a load runs for a set time, not for an amount of data or a number of I/Os": "io_size number_ios ramp_size",
    "a load begins when the one before it ends: jobs follow each other by stonewall only": """
        startdelay=0 wait_for
    """,
    "errors end a measurement; what they would mean for the numbers is not known": """
        continue_on_error ignore_error
    """,
}
REFUSED = {word.partition("=")[0]: why for why, words in _REFUSED.items() for word in words.split()}
_HARMLESS = {word for words in _REFUSED.values() for word in words.split() if "=" in word}


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An option that cannot be kept, as given."""

    place: str
    job: str
    given: str
    why: str

    def __str__(self) -> str:
        return f"{self.place}, [{shorten_text(self.job)}], {self.given}: {self.why}"


class JobOptions:
    """Options of one job, and their outcomes.

    Attributes:
        refusals: options that cannot be kept. They count as fio's default, so that one pass finds all.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.refusals: list[Refusal] = []
        self._silent = set(WITHOUT_EFFECT)
        self._unused: set[str] = set()
        self.kb_base = self.value("kb_base", read_kb_base, 1024)
        for name, option in job.options.items():
            value = "1" if option.value is None else option.value
            if f"{name}={value}" in _HARMLESS:
                self._silent.add(name)
            elif name in REFUSED:
                self.refuse(name, REFUSED[name])

    def given(self, *names: str) -> list[str]:
        """Return the names that the job has, in the order of the file: the last one counts in fio."""
        return [name for name in self.job.options if name in names]

    def text(self, name: str) -> str | None:
        """Return the value of an option as given; None if it is not given."""
        option = self.job.options.get(name)
        return None if option is None else option.value or ""

    def value(self, name: str, read: Callable[[str | None], T], default: T) -> T:
        """Return the value of an option by ``read``; an unclear one is refused and counts as the default."""
        option = self.job.options.get(name)
        if option is None:
            return default
        try:
            return read(option.value)
        except Unclear as unclear:
            self.refuse(name, str(unclear))
            return default

    def count(self, name: str, default: int, *, least: int, most: int) -> int:
        """Return the value of an option that is a whole number."""
        return self.value(name, lambda text: read_count(text, least, most), default)

    def flag(self, name: str) -> bool:
        """Return the state of a switch; a missing switch is off."""
        return self.value(name, read_flag, False)

    def leave_out(self, *names: str) -> None:
        """Note options without use in this job, though others carry them over."""
        self._unused.update(names)

    def refuse(self, name: str, why: str, *, default: str | None = None) -> None:
        """Refuse an option.

        Args:
            name: the option.
            why: the reason.
            default: text for fio's default if the job does not give the option.
        """
        option = self.job.options.get(name)
        refusal = Refusal(
            place=option.place if option else self.job.place,
            job=self.job.name,
            given=str(option) if option else default or name,
            why=why,
        )
        self.refusals.append(refusal)

    def outcomes(self) -> Iterator[str]:
        """Yield each option that needs a line, as given, with its key if it is carried over."""
        for name, option in self.job.options.items():
            if name in self._silent:
                continue
            if name in CARRIED_OVER and name not in self._unused:
                yield f"carried over: {option} -> {CARRIED_OVER[name]}"
            else:
                yield f"not carried over: {option}"


def list_refusals(jobs: Sequence[JobOptions]) -> tuple[Refusal, ...]:
    """List the refusals of all jobs; an option of a global section counts once."""
    first: dict[tuple[str, str], Refusal] = {}
    for options in jobs:
        for refusal in options.refusals:
            first.setdefault((refusal.place, refusal.given), refusal)
    return tuple(first.values())


def list_outcomes(jobs: Sequence[JobOptions]) -> tuple[str, ...]:
    """List lines such as ``carried over: iodepth=4 -> io_depth (all jobs)``; equal lines of jobs become one."""
    names: dict[str, list[str]] = {}
    for options in jobs:
        for line in options.outcomes():
            names.setdefault(line, []).append(f"[{shorten_text(on_one_line(options.job.name))}]")
    return tuple(
        f"{on_one_line(line)} ({'all jobs' if len(of) == len(jobs) > 1 else ', '.join(of)})"
        for line, of in sorted(names.items(), key=lambda item: item[0].partition(":")[0])
    )
