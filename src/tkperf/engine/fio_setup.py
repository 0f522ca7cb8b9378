"""The choice of a usable fio, of the clock that this fio uses, and of an I/O engine that works on a device. The module
also measures the read rate of the device.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tkperf.engine import PROBE_S, ChosenEngine, RequiredIo
from tkperf.engine.fio_job import filename_option, find_poisson_setting, poisson_iops
from tkperf.model.choices import FIO_IO_ENGINES
from tkperf.model.decoding import decode_json
from tkperf.model.errors import EngineError, UsageError
from tkperf.system.process import Completed, run_command

# The JSON histograms (json+), exec_prerun and io_uring were tested with this version.
OLDEST_FIO = (3, 33)
# With io_uring, older versions round the queue depth up to a power of two. For a depth of 20, they
# keep 32 I/Os outstanding (engines/io_uring.c, commit af0ad0fa).
EXACT_URING_DEPTH = (3, 39)
# With io_uring, older versions flush too often while other I/Os are outstanding. At a depth of 8, they flushed 20,927
# times where 5,656 flushes were due. With every engine, they also repeat the flush after each read until the next
# write. With 90 % reads, they flushed 554 times where 63 flushes were due (io_u.c, commit 704a8cfe).
EXACT_FLUSHES = (3, 38)
# The results of older versions do not contain job_start.
JOB_START = (3, 36)
_LIMITS = (
    (
        EXACT_URING_DEPTH,
        "with io_uring, it rounds a queue depth up to a power of two: a run with another queue depth (the tests cbw "
        "and dirth contain 6) uses libaio. fio 3.39 and newer keep every queue depth",
    ),
    (
        EXACT_FLUSHES,
        "it flushes too often with io_uring at a queue depth above 1, and in a load that reads and writes: tkperf "
        "refuses a workload that flushes in these cases. fio 3.38 and newer flush as requested",
    ),
    (
        JOB_START,
        "it does not report when its jobs began: in a step that is shorter than about a second, tkperf does not notice "
        "that a busy host delayed the jobs. fio 3.36 and newer report it",
    ),
)
# The largest permitted error of the rate of random arrivals, as a share. A drive that completes this share less than
# the offered rate still counts as keeping up (KEPT_UP_PERCENT in procedures/building_blocks.py).
MOST_ARRIVAL_ERROR = 0.01
_PROBE_BLOCK_BYTES = 128 * 1024
_PROBE_IO_DEPTH = 32


def find_fio_version() -> str:
    """Return the version of the installed fio, such as ``fio-3.33``."""
    return _read_version()[0]


def _read_version() -> tuple[str, tuple[int, int]]:
    """Return the version in the form that fio prints, and as two numbers. Raise the same errors as
    ``find_fio_version``.
    """
    answer = run_command(["fio", "--version"], timeout_s=30)
    match = re.match(r"fio-(\d+)\.(\d+)", answer.stdout)
    if answer.exit_status != 0 or match is None:
        output = (answer.stdout or answer.stderr).strip()[:200]
        raise EngineError(
            f"'fio --version' did not print a version of fio, but {output!r}. Check that the program that tkperf "
            "finds (through TKPERF_FIO or PATH) is really fio"
        )
    numbers = int(match[1]), int(match[2])
    if numbers < OLDEST_FIO:
        oldest = ".".join(str(number) for number in OLDEST_FIO)
        raise EngineError(
            f"{answer.stdout.strip()} is too old. tkperf needs fio {oldest} or newer, which Debian 12, Ubuntu 24.04 "
            "and later releases contain"
        )
    return answer.stdout.strip(), numbers


def find_limits() -> tuple[str, ...]:
    """Return sentences about the functions that the installed fio lacks. Each sentence contains the first version with
    the function.

    Raises:
        EngineError: the same errors as in ``find_fio_version``.
    """
    _, numbers = _read_version()
    return tuple(sentence for since, sentence in _LIMITS if numbers < since)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenClock:
    """The clock from which fio reads the times of its I/Os.

    Attributes:
        words: the description of the clock for users.
        clocksource: the value of fio's option ``clocksource``. None means that fio chooses the clock.
    """

    words: str
    clocksource: str | None = None


def choose_clock(root: Path = Path("/")) -> ChosenClock:
    """Return the CPU's clock (TSC) as the clock of fio, unless there is a reason not to use this clock. If fio's option
    ``clocksource`` is set, fio does not test the clock at each start.

    fio itself chooses this clock if its threads on all CPUs read equal times at the same moment. fio's test would run
    during the preceding step. tkperf replaces the test with two checks: the kernel uses the TSC only as long as the TSC
    is reliable, and tkperf runs fio's test once before the run.
    """
    source_file = root / "sys/devices/system/clocksource/clocksource0/current_clocksource"
    try:
        source = source_file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        source = "not known"
    try:
        answer = run_command(["fio", "--cpuclock-test"], timeout_s=30)
    except EngineError:
        return ChosenClock(words="chosen by fio at each start")
    if answer.exit_status != 0 or "reliable_tsc: yes" not in answer.stdout:
        return ChosenClock(words="clock_gettime, because fio finds the CPU's clock unreliable")
    if source != "tsc":
        return ChosenClock(words=f"the CPU's, tested by fio at each start, as the kernel's is {source}")
    return ChosenClock(words="the CPU's (TSC), tested before the run", clocksource="cpu")


class _ProbeRead(msgspec.Struct, frozen=True):
    io_bytes: int = 0
    runtime: int = 0


class _ProbeJob(msgspec.Struct):
    error: int
    read: _ProbeRead = _ProbeRead()


class _Probe(msgspec.Struct):
    jobs: list[_ProbeJob]


def choose_ioengine(
    path: str,
    block_bytes: int,
    wanted: str | None,
    io: RequiredIo,
    *,
    shown_path: str | None = None,
    direct: bool = True,
) -> ChosenEngine:
    """Return the first I/O engine with which fio can read the device. io_uring is tried before libaio.

    The test uses the jobs and the queue depth of the run, because limits on locked memory or on asynchronous I/O take
    effect only with the full load.

    Args:
        shown_path: the name of the device in messages. None means ``path``.
        direct: whether to bypass the page cache, as runs do. Some files do not allow direct I/O.

    Raises:
        UsageError: ``wanted`` is not the name of one of these engines.
        EngineError: no engine works. The message contains fio's reason.
    """
    reasons: list[str] = []
    for ioengine, obstacle in _find_obstacles(wanted, io).items():
        reason = obstacle or _why_not(path, block_bytes, ioengine, io, direct)
        if reason is None:
            return ChosenEngine(name=ioengine, instead_of="; ".join(reasons) or None)
        reasons.append(f"{ioengine}: {reason}")
    shown = shown_path or path
    words = "; ".join(reasons).replace(path, shown)
    raise EngineError(f"fio has no I/O engine that can perform the I/O of this run on {shown} ({words})")


def refuse_io(wanted: str | None, io: RequiredIo) -> None:
    """Check whether the installed version of fio can do the I/O. The check needs no device.

    Raises:
        UsageError: ``wanted`` is not the name of one of these engines.
        EngineError: this version cannot do the I/O on any device. The message contains the reasons.
    """
    obstacles = _find_obstacles(wanted, io)
    if all(obstacles.values()):
        reasons = "; ".join(f"{ioengine}: {reason}" for ioengine, reason in obstacles.items())
        raise EngineError(f"fio has no I/O engine that can perform the I/O of this run ({reasons})")


def _find_obstacles(wanted: str | None, io: RequiredIo) -> dict[str, str | None]:
    """Return the I/O engines to choose from, each with the reason why the installed version of fio cannot do the I/O
    with this engine on any device. None means that this version can do the I/O.
    """
    if wanted is not None and wanted not in FIO_IO_ENGINES:
        raise UsageError(f"--engine {wanted}: choose {' or '.join(FIO_IO_ENGINES)}")
    if io.flushes_between_reads and (reason := _why_no_flushes_between_reads()):
        raise EngineError(f"fio cannot perform the I/O of this run: {reason}")
    if reason := _why_not_these_arrivals(io.random_arrivals_iops):
        raise EngineError(f"fio cannot perform the I/O of this run: {reason}")
    obstacles: dict[str, str | None] = {}
    for ioengine in (wanted,) if wanted else FIO_IO_ENGINES:
        reason = _why_not_exact(ioengine, {io.io_depth, *io.io_depths})
        if reason is None and io.flushes_from_queue:
            reason = _why_no_queued_flushes(ioengine)
        obstacles[ioengine] = reason
    return obstacles


def _why_not_these_arrivals(rates_iops: Collection[float]) -> str | None:
    """Return why fio cannot offer random arrivals at these rates. None means that the error of each rate is small.

    If fio offered fewer I/Os than tkperf assumes, the missing I/Os would look like a slow drive.
    """
    for iops in sorted(rates_iops):
        nearest_iops = poisson_iops(find_poisson_setting(iops))
        if abs(nearest_iops - iops) > MOST_ARRIVAL_ERROR * iops:
            return (
                f"random arrivals (poisson) at {iops:,.4g} IOPS in each thread and direction would become "
                f'{nearest_iops:,.4g} IOPS. Choose arrival = "linear", or another number of jobs, so that each thread '
                "offers a whole number of IOPS or at least 50 IOPS, and at most 20,000 IOPS"
            )
    return None


def _why_not_exact(ioengine: str, io_depths: Collection[int]) -> str | None:
    """Return why this fio does not use exactly the requested queue depths. None means that fio uses these depths."""
    rounded = sorted(depth for depth in io_depths if depth & (depth - 1))
    if ioengine != "io_uring" or not rounded:
        return None
    version = find_rounding()
    if version is None:
        return None
    asked, kept = rounded[0], 1 << rounded[0].bit_length()
    return f"{version} would keep {kept} I/Os outstanding at a queue depth of {asked}; fio 3.39 and newer keep {asked}"


def _why_no_queued_flushes(ioengine: str) -> str | None:
    """Return why this fio does not flush as requested while other I/Os are queued. None means that fio flushes as
    requested.
    """
    if ioengine != "io_uring":
        return "it does not complete other I/Os of a thread during a flush: write io_depth = 1 for loads that flush"
    version, numbers = _read_version()
    if numbers >= EXACT_FLUSHES:
        return None
    return (
        f"{version} would flush too often at a queue depth above 1 (fio 3.38 and newer flush as requested): "
        "write io_depth = 1 for loads that flush, and more jobs for more load"
    )


def _why_no_flushes_between_reads() -> str | None:
    """Return why this fio would not flush as requested if a thread reads and writes. None means that this fio flushes
    as requested.
    """
    version, numbers = _read_version()
    if numbers >= EXACT_FLUSHES:
        return None
    return (
        f"{version} would flush again after each read of a load that reads and writes (fio 3.38 and newer flush as "
        "requested): write one load for the reads and one load with flush_every for the writes, and run them together"
    )


def find_rounding() -> str | None:
    """Return the version of fio if this version rounds queue depths up with io_uring. None means that fio does not
    round.

    Raises:
        EngineError: the same errors as in ``find_fio_version``.
    """
    version, numbers = _read_version()
    return version if numbers < EXACT_URING_DEPTH else None


def _why_not(path: str, block_bytes: int, ioengine: str, io: RequiredIo, direct: bool) -> str | None:
    """Read a few blocks with fio, and return the reason if the read fails. None means that the read succeeded."""
    answer, job = _read(
        path,
        f"--ioengine={ioengine}",
        f"--bs={block_bytes}",
        f"--size={8 * block_bytes}",
        f"--numjobs={io.jobs}",
        f"--iodepth={io.io_depth}",
        direct=direct,
        timeout_s=60,
    )
    error = None if job is None else job.error
    if answer.exit_status == 0 and error == 0:
        return None
    words = _find_words(answer)
    reason = os.strerror(abs(error)) if error and abs(error) < 4096 else ""
    if not (words or reason):
        reason = f"exit status {answer.exit_status}" if answer.exit_status else "it printed no result"
    return ": ".join(phrase for phrase in (reason, words) if phrase)


def read_bytes_per_s(path: str, capacity_bytes: int, *, seconds: int = PROBE_S) -> float:
    """Return the rate of sequential reads from the start of the device over some seconds, in bytes per second.

    Raises:
        EngineError: fio is missing or cannot read the device. The message contains the reason.
    """
    answer, job = _read(
        path,
        "--ioengine=libaio",
        f"--bs={min(_PROBE_BLOCK_BYTES, capacity_bytes)}",
        f"--iodepth={_PROBE_IO_DEPTH}",
        f"--runtime={seconds}",
        "--time_based",
        timeout_s=seconds + 60,
    )
    if answer.exit_status == 0 and job and not job.error and job.read.io_bytes and job.read.runtime:
        return job.read.io_bytes / (job.read.runtime / 1000)
    raise EngineError(f"fio cannot read {path}: {_find_words(answer) or 'it says nothing'}")


def _read(path: str, *options: str, timeout_s: float, direct: bool = True) -> tuple[Completed, _ProbeJob | None]:
    """Read from a device. The caller needs no erase permit.

    Return fio's answer and the result of a failed job, or the result of any job if no job failed. The options prevent
    fio from writing to the device. They also prevent fio from flushing other programs' cached data, which fio would
    otherwise do before it opens a device.
    """
    answer = run_command(
        [
            "fio",
            "--name=probe",
            f"--{filename_option(path)}",
            "--rw=read",
            *options,
            f"--direct={int(direct)}",
            "--thread=1",
            "--readonly",
            "--allow_file_create=0",
            "--invalidate=0",
            "--output-format=json",
        ],
        timeout_s=timeout_s,
    )
    _, brace, document = answer.stdout.partition("{")
    try:
        jobs = decode_json(brace + document, _Probe).jobs
    except msgspec.DecodeError:
        jobs = []
    failed = [job for job in jobs if job.error]
    return answer, next(iter((*failed, *jobs)), None)


def _find_words(answer: Completed) -> str:
    """Return the first line of fio's output that is not JSON. Lines of the error output are searched first.

    Lines such as ``fio: pid=1, err=12/file:...`` are skipped. They only repeat a job's error, with a process id that
    differs each time.
    """
    lines = [line.strip() for line in f"{answer.stderr}\n{answer.stdout.partition('{')[0]}".splitlines()]
    told = [line for line in lines if not re.match(r"fio: pid=\d+, err=", line)]
    return next((line for line in told if any(map(str.isalpha, line))), "")[:200]
