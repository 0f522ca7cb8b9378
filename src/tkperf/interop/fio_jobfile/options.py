"""Options of a job, and tables of their outcomes: carried over, without effect, refused.

All others are listed as not carried over. The names are from ``fio --cmdhelp=all`` (3.33) and from the
engines io_uring and libaio.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tkperf.interop.fio_jobfile.reading import Job, shown
from tkperf.interop.fio_jobfile.values import Unclear, read_count, read_flag, read_kb_base
from tkperf.model.units import on_one_line

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
WITHOUT_EFFECT = frozenset({
    "direct", "buffered", "ba", "invalidate", "thread", "group_reporting", "time_based", "name",
    "description", "norandommap", "random_generator", "randrepeat", "allrandrepeat", "randseed",
    "refill_buffers", "scramble_buffers", "clat_percentiles", "lat_percentiles",
    "slat_percentiles", "percentile_list", "disable_lat", "disable_clat", "disable_slat",
    "gtod_reduce", "write_bw_log", "write_lat_log", "write_iops_log", "write_hist_log",
    "per_job_logs", "log_avg_msec", "log_hist_msec", "log_max_value", "log_offset",
    "log_unix_epoch",
})  # fmt: skip

# Options that would change the measurement, by the reason; a value given here is harmless.
_REFUSED = {
    "it makes the device do other work than the reads and writes that tkperf counts": """
        fsync=0 fdatasync=0 write_barrier=0 end_fsync=0 fsync_on_close=0 sync=0 sync=none
        sync_file_range atomic=0 pre_read=0 trim_percentage=0
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
        thinktime=0
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
        cmdprio_percentage=0 cmdprio_bssplit
    """,
    "it changes the host's part; tkperf leaves threads and CPUs as they are": """
        nice=0 mem=malloc prio prioclass cpumask cpus_allowed numa_cpu_nodes numa_mem_policy
        cgroup ioscheduler
    """,
    "addresses are random or sequential, at multiples of the block size, without zones or gaps": """
        zonemode=none bs_unaligned=0 offset_align=0 bs_is_seq_rand=0 percentage_random
    """,
    "it asks the device to treat the data in another way": "write_hint=none",
    "tkperf measures one device, not a set of files": """
        nrfiles=1 file_append=0 fill_device=0 create_only=0 opendir filesize
    """,
    "a load goes on for a time, not for an amount or a number of I/Os": "io_size number_ios",
    "a load begins when the one before it ends: jobs follow each other by stonewall only": """
        startdelay=0 wait_for
    """,
    "errors end a measurement; what they would mean for the numbers is not known": """
        continue_on_error ignore_error
    """,
}
REFUSED = {word.partition("=")[0]: why for why, words in _REFUSED.items() for word in words.split()}
_HARMLESS = {word for words in _REFUSED.values() for word in words.split() if "=" in word}
# Options that --without may name.
WAIVABLE = (
    frozenset({"filename", "direct", "buffered", "ba"}) | CARRIED_OVER.keys() | REFUSED.keys()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One option that cannot be kept, as given; ``option`` is None if the user cannot give it up."""

    place: str
    job: str
    given: str
    why: str
    option: str | None

    def __str__(self) -> str:
        return f"{self.place}, [{shown(self.job)}], {self.given}: {self.why}"


class JobOptions:
    """Options of one job, and their outcomes.

    Attributes:
        refusals: options that cannot be kept. An option that the user gives up counts as fio's default.
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

    def refuse(
        self, name: str, why: str, *, default: str | None = None, for_good: bool = False
    ) -> None:
        """Refuse an option.

        Args:
            name: the option.
            why: the reason.
            default: text for fio's default if the job does not give the option.
            for_good: nothing would remain without it, so the user cannot give it up.
        """
        option = self.job.options.get(name)
        refusal = Refusal(
            place=option.place if option else self.job.place,
            job=self.job.name,
            given=str(option) if option else default or name,
            why=why,
            option=None if for_good else name,
        )
        self.refusals.append(refusal)

    def outcomes(self) -> Iterator[str]:
        """Yield each option that needs a line, as given, with its key or the reason for the refusal."""
        refused = {refusal.option: refusal for refusal in reversed(self.refusals)}
        for name, option in self.job.options.items():
            if name in refused or name in self._silent:
                continue
            if name in CARRIED_OVER and name not in self._unused:
                yield f"carried over: {option} -> {CARRIED_OVER[name]}"
            else:
                yield f"not carried over: {option}"
        for refusal in reversed(refused.values()):
            yield f"given up: {refusal.given}: {refusal.why}"


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
            names.setdefault(line, []).append(f"[{shown(on_one_line(options.job.name))}]")
    return tuple(
        f"{on_one_line(line)} ({'all jobs' if len(of) == len(jobs) > 1 else ', '.join(of)})"
        for line, of in sorted(names.items(), key=lambda item: item[0].partition(":")[0])
    )
