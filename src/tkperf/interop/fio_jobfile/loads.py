"""One job as a load of a workload file, option by option.

What cannot be kept goes into the account; a load comes out all the same, with fio's defaults in those
places, so that everything wrong with a file is found at once. The defaults are those of fio 3.33.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

from tkperf.interop.fio_jobfile import notation
from tkperf.interop.fio_jobfile.account import Account, JobOptions
from tkperf.interop.fio_jobfile.blocks import read_blocks, read_zones
from tkperf.interop.fio_jobfile.extent import read_passes, read_range, read_times, set_apart
from tkperf.interop.fio_jobfile.reading import Job
from tkperf.interop.fio_jobfile.rules import ALIASES, KEPT, KNOWN, RULES, Fate
from tkperf.model.choices import DEEPEST_QUEUE, MOST_JOBS
from tkperf.model.units import KIB
from tkperf.model.workload import Access, Arrival
from tkperf.procedures.own_workloads.parts import Load

# fio's default on Linux. These wait for each I/O: their queue depth is 1, whatever iodepth says.
DEFAULT_IOENGINE = "psync"
WAITING_IOENGINES = ("psync", "sync", "vsync", "pvsync", "pvsync2")
QUEUEING_IOENGINES = ("io_uring", "libaio", "posixaio", "windowsaio", "solarisaio")
READ_PERCENT = {"read": 100, "write": 0, "randread": 100, "randwrite": 0}
MIXED = ("rw", "readwrite", "randrw")
# Of a mix that says no more.
DEFAULT_READ_PERCENT = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLoad:
    """What one job does, and for how long.

    Attributes:
        runtime_s: None where it ends with its amount.
        passes: so often it goes over its range, where there is no runtime.
        stonewall: it begins when all before it have ended.
    """

    job: Job
    load: Load
    runtime_s: float | None
    ramp_s: float
    passes: int
    stonewall: bool


def read_load(job: Job, account: Account) -> JobLoad:
    """What a job does; what becomes of its options is said in the account."""
    options = JobOptions(job, account)
    _follow_rules(options, account)
    _check_direct(options)
    access, read_percent = _read_pattern(options)
    _note_defaults(options, access, read_percent)
    blocks = read_blocks(options, access, read_percent)
    shares = tuple((size_bytes / KIB, percent) for size_bytes, percent in blocks)
    threads = options.value("numjobs", lambda text: notation.read_count(text, 1, MOST_JOBS), 1)
    options.keep("numjobs", key="jobs")
    rate_iops = _read_rate(options, read_percent)
    begin, end = read_range(options)
    load = Load(
        access=access,
        read_percent=read_percent,
        block_size_kib=shares[0][0] if len(shares) == 1 else None,
        block_shares=shares if len(shares) > 1 else (),
        zone_shares=tuple((*zone,) for zone in read_zones(options, access)),
        jobs=threads,
        io_depth=_read_io_depth(options),
        offered_iops=rate_iops * threads if rate_iops else None,
        arrival=_read_arrival(options, rate_iops),
        compressible_percent=_read_compressible(options, read_percent),
        range_begin_percent=begin,
        range_end_percent=end,
    )
    runtime_s, ramp_s = read_times(options)
    stonewall = options.flag("stonewall")
    options.keep("stonewall", key="the order of phases")
    return JobLoad(
        job=job,
        load=set_apart(options, load),
        runtime_s=runtime_s,
        ramp_s=ramp_s,
        passes=read_passes(options, is_timed=runtime_s is not None),
        stonewall=stonewall,
    )


def _follow_rules(options: JobOptions, account: Account) -> None:
    """Options whose fate hangs on nothing else."""
    for option in options.job.overridden:
        account.say(
            Fate.DROPPED, options.job, str(option), "given again below it, which counts in fio"
        )
    for name, option in options.job.options.items():
        if name not in KNOWN:
            closest = get_close_matches(name, [*KNOWN, *ALIASES], n=1)
            guess = f"; did you mean {closest[0]}?" if closest else ""
            options.refuse(name, f"fio has no such option{guess}", for_good=True)
        elif name not in KEPT:
            rule = RULES[name]
            value = "1" if option.value is None else option.value
            if value in rule.harmless:
                options.drop(name, why="fio's default, which does nothing")
            elif rule.fate is Fate.REFUSED:
                options.refuse(name, rule.why)
            else:
                options.say(rule.fate, [name], rule.why)
    options.drop("filename", why="tkperf measures the DEVICE of its command line")
    if options.text("kb_base") not in (None, "1000", "1024"):
        options.refuse("kb_base", "it is 1000 or 1024")
    options.drop("kb_base", why="the units of this job file; a workload file has KiB")


def _check_direct(options: JobOptions) -> None:
    """Whether the page cache is left out, by what is given last."""
    given = options.given("direct", "buffered")
    is_direct = False
    for name in given:
        is_direct = options.value(name, notation.read_needed_flag, name == "buffered") is (
            name == "direct"
        )
    if is_direct:
        options.imply(*given, why="tkperf's I/O is always direct")
        return
    options.refuse(
        given[-1] if given else "direct",
        "buffered I/O measures the host's memory, tkperf's is always direct: write direct=1 if that is meant",
        default="direct=0 (fio's default)",
    )


def _note_defaults(options: JobOptions, access: Access, read_percent: int) -> None:
    """In what tkperf's loads differ from those that fio makes of nothing."""
    if access is Access.RANDOM and "norandommap" not in options:
        options.note(
            "no norandommap",
            "addresses are drawn independently; fio would come to each before it came to one again",
        )
    if read_percent < 100 and "refill_buffers" not in options:
        options.note(
            "no refill_buffers",
            "every write carries new random data; fio would change little of what it wrote before",
        )


def _read_pattern(options: JobOptions) -> tuple[Access, int]:
    """Random or sequential, and the percentage of reads."""
    name, colon, _ = (options.text("rw") or "read").partition(":")
    if "trim" in name:
        options.refuse("rw", "tkperf's loads read and write; they do not trim")
    elif name not in (*READ_PERCENT, *MIXED):
        options.refuse("rw", f"it is one of {', '.join((*READ_PERCENT, *MIXED))}")
    elif colon:
        options.refuse("rw", "addresses of tkperf are random or sequential; it skips none")
    options.keep("rw", key="access, read_percent")
    access = Access.RANDOM if name.startswith("rand") else Access.SEQUENTIAL
    mix_percent = _read_mix(options, is_mixed=name in MIXED)
    return access, mix_percent if name in MIXED else READ_PERCENT.get(name, 100)


def _read_mix(options: JobOptions, *, is_mixed: bool) -> int:
    """The percentage of reads of a mix."""
    names = options.given("rwmixread", "rwmixwrite")
    reads = {}
    for mix in names:
        percent = options.value(mix, lambda text: notation.read_count(text, 0, 100), 50)
        reads[mix] = percent if mix == "rwmixread" else 100 - percent
    if not is_mixed:
        options.drop(*names, why="it does nothing without rw=rw or randrw")
    elif len(set(reads.values())) > 1:
        options.refuse("rwmixwrite", "it and rwmixread do not add up to 100: leave one out")
    options.keep(*names, key="read_percent")
    return reads[names[-1]] if names else DEFAULT_READ_PERCENT


def _read_io_depth(options: JobOptions) -> int:
    depth = options.value("iodepth", lambda text: notation.read_count(text, 1, DEEPEST_QUEUE), 1)
    engine = options.text("ioengine") or DEFAULT_IOENGINE
    if engine in WAITING_IOENGINES:
        why = "it waits for each I/O, so io_depth is 1; tkperf uses io_uring, else libaio"
        if "ioengine" in options:
            options.imply("ioengine", why=why)
        else:
            options.note(f"ioengine={engine} (fio's default)", why)
        options.drop("iodepth", why=f"fio's {engine} does not heed it: io_depth is 1")
        return 1
    if engine not in QUEUEING_IOENGINES:
        options.refuse("ioengine", "tkperf uses io_uring or libaio")
    options.imply(
        "ioengine", why="tkperf uses io_uring, else libaio; --engine of the run chooses one"
    )
    options.keep("iodepth", key="io_depth")
    return depth


def _read_rate(options: JobOptions, read_percent: int) -> int:
    """I/Os a second of one thread, reads and writes together; 0: as fast as the device answers."""
    rates = options.value("rate_iops", notation.read_rates, (0, 0))
    shares = (read_percent, 100 - read_percent)
    used = [(rate, share) for rate, share in zip(rates, shares, strict=True) if share]
    total = sum(rate for rate, _ in used)
    if total and any(rate * 100 != share * total for rate, share in used):
        options.refuse(
            "rate_iops",
            f"{rates[0]} reads and {rates[1]} writes a second are not {read_percent} % reads, as the mix has it",
        )
        return 0
    options.keep("rate_iops", key="offered_iops, of all threads together")
    return total


def _read_arrival(options: JobOptions, rate_iops: int) -> Arrival:
    name = "rate_process"
    text = options.text(name)
    if text not in (None, *Arrival):
        options.refuse(name, f"it is {' or '.join(Arrival)}")
        return Arrival.LINEAR
    if not rate_iops:
        options.drop(name, why="it does nothing without rate_iops")
        return Arrival.LINEAR
    options.keep(name, key="arrival")
    return Arrival(text or Arrival.LINEAR)


def _read_compressible(options: JobOptions, read_percent: int) -> int:
    name = "buffer_compress_percentage"
    percent = options.value(name, lambda text: notation.read_count(text, 0, 100), 0)
    if read_percent == 100:
        options.drop(name, why="nothing is written")
        return 0
    options.keep(name, key="compressible_percent")
    return percent
