"""Options of a job, and the outcome of each option. tkperf keeps an option under a key of the workload file, ignores it
because it has no effect, leaves it out, or refuses it with the reason.

Options have the meaning that fio 3.33 defines (HOWTO and source). Options that fio 3.33 does not contain have the
meaning that fio 3.42 defines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tkperf.interop.fio_jobfile.job_sections import Job, Unclear, read_count, read_flag, read_kb_base, shorten_text
from tkperf.model.units import on_one_line

# Options of fio, each with its key in a workload file. If tkperf cannot execute the value of such an option, the option
# is refused.
CARRIED_OVER = {
    "rw": "access, read_percent, trims",
    "rwmixread": "read_percent",
    "rwmixwrite": "read_percent",
    "bs": "block_size_kib",
    "bsrange": "block_size_kib",
    "bssplit": "block_shares or, for a single size, block_size_kib",
    "ba": "no key, because tkperf always uses this alignment",
    "random_distribution": "zone_shares; for the value random, no key is needed",
    "percentage_random": "random_percent; for the value 100, no key is needed",
    "numjobs": "jobs",
    "iodepth": "io_depth",
    "ioengine": "io_depth, which is 1 if the engine waits for each I/O. tkperf does not carry over the engine itself",
    "rate": "offered_megabytes_per_s, the sum over all threads",
    "rate_iops": "offered_iops, the sum over all threads",
    "rate_process": "arrival",
    "thinktime": "burst_pause_s",
    "thinktime_blocks": "burst_ios",
    "fsync": "flush_every",
    "fdatasync": "flush_every. On a block device, fdatasync causes the same flush as fsync",
    "startdelay": "delay_s, the time from the start of the load that begins first",
    "buffer_compress_percentage": "compressible_percent",
    "offset": "range_begin_percent, rounded to 1 MiB, or range_begin_mib",
    "size": "range_end_percent, rounded to 1 MiB, or range_end_mib",
    "filesize": "range_end_mib",
    "offset_increment": "the range of each thread",
    "runtime": "longest_s",
    "ramp_time": "warm_up_s",
    "loops": "passes",
    "stonewall": "the order of phases",
    "wait_for": "the order of phases",
    "kb_base": "the units of this job file",
}

_WITHOUT_EFFECT = {
    "the I/O of tkperf is always direct": "direct buffered invalidate fadvise_hint",
    "tkperf draws random addresses independently, from its own random sequence": """
        norandommap random_generator randrepeat randseed
    """,
    "every write of tkperf contains new random data": "refill_buffers scramble_buffers",
    "every load of tkperf lasts its whole time": "time_based exitall exit_what exitall_on_error",
    "tkperf records every second and every latency of every load": """
        clat_percentiles lat_percentiles slat_percentiles percentile_list disable_lat disable_clat disable_slat
        disable_bw_measurement gtod_reduce bwavgtime iopsavgtime block_error_percentiles disk_util stats
        significant_figures unit_base unified_rw_reporting group_reporting new_group clocksource error_dump
        write_bw_log write_lat_log write_iops_log write_hist_log per_job_logs log_avg_msec log_hist_msec
        log_hist_coarseness log_window_value log_offset log_prio log_alternate_epoch log_alternate_epoch_clock_id
        log_issue_time log_compression log_compression_cpus log_store_compressed log_entries job_start_clock_id
    """,
    "the I/O does not depend on whether fio uses a thread or a process": "thread",
    "a device has no files to create, open or delete": """
        create_on_open create_serialize create_fsync unlink unlink_each_loop overwrite fallocate openfiles
        file_service_type unique_filename allow_file_create
    """,
    "the safeguards of tkperf decide whether a mounted device may be used": "allow_mounted_write",
    "the option is only a name, which does not change the load": "name description comm",
    # Options that have an effect only together with another option. tkperf refuses or leaves out this other option.
    "the option has an effect only together with verify": """
        do_verify verify_async verify_async_cpus verify_backlog verify_backlog_batch verify_dump verify_fatal
        verify_interval verify_offset verify_pattern verify_state_load verify_state_save experimental_verify
        verify_write_sequence verify_header_seed verify_pattern_interval verifysort verifysort_nr
    """,
    "the option has an effect only together with trim_percentage": "trim_backlog trim_backlog_batch trim_verify_zero",
    "the option has an effect only together with dedupe_percentage": """
        dedupe_global dedupe_mode dedupe_working_set_percentage
    """,
    "the option has an effect only together with flow": "flow_id flow_sleep",
    "the option has an effect only together with latency_target": "latency_percentile latency_run latency_window",
    "the option has an effect only together with rate_min": "rate_cycle",
    "the option has an effect only together with steadystate": "steadystate_duration steadystate_ramp_time "
    "steadystate_check_interval",
    "the option has an effect only together with zonemode": """
        ignore_zone_limits job_max_open_zones max_open_zones read_beyond_wp zone_reset_frequency zone_reset_threshold
        zonecapacity zonerange
    """,
    "the option has an effect only together with read_iolog": """
        read_iolog_chunked replay_align replay_no_stall replay_redirect replay_scale replay_skip replay_time_scale
        merge_blktrace_file merge_blktrace_iters merge_blktrace_scalars
    """,
    "the option has an effect only together with cpus_allowed": "cpus_allowed_policy",
    "the option has an effect only together with cgroup": "cgroup_weight cgroup_nodelete",
    "the option has an effect only together with mem=mmaphuge or mem=shmhuge": "hugepage-size",
    "the option has an effect only together with sprandom": "spr_op spr_num_regions spr_cs",
    "the option has an effect only together with an offset in rw": "rw_sequencer",
    "the option has an effect only together with sqthread_poll": "sqthread_poll_cpu",
    "the option has an effect only together with profile=tiobench": "threads",
    "the option has an effect only together with cmdprio_percentage or cmdprio_bssplit": "cmdprio cmdprio_class",
}
WITHOUT_EFFECT = {name: why for why, names in _WITHOUT_EFFECT.items() for name in names.split()}

_LEFT_OUT = {
    "the DEVICE of the run replaces the target that the option names": """
        filename directory filename_format uri pool cont rbdname clientname clustername nfs_url namenode
        libblkio_driver libblkio_path
    """,
    "fio would end the load when it is steady, but tkperf runs it for the whole runtime and shows every slice": """
        steadystate
    """,
    "in tkperf, a range in percent begins at a multiple of 1 MiB": "offset_align",
}
LEFT_OUT = {name: why for why, names in _LEFT_OUT.items() for name in names.split()}

# Options that would change the measurement, grouped by the reason for the refusal. An option is not refused if it has
# the value in this table, because this value has no effect.
_REFUSED = {
    "the option makes the device do work other than the I/Os that tkperf counts": """
        write_barrier=0 end_fsync=0 end_syncfs=0 fsync_on_close=0 sync=0 sync=none
        sync_file_range atomic=0 pre_read=0 trim_percentage=0 num_range=1 readfua=0 writefua=0 write_mode=write
        sprandom=0
    """,
    "to check data, fio would need additional time, and the additional reads would be part of the load": """
        verify=0 verify=none verify_only=0
    """,
    "fio would execute a command, a trace or a built-in program. However, tkperf executes nothing from a job file": """
        exec_prerun exec_postrun read_iolog write_iolog profile
    """,
    "tkperf writes only new random data, with a compressible share if you set one": """
        buffer_pattern zero_buffers=0 dedupe_percentage=0 buffer_compress_chunk=512
    """,
    "tkperf supports pauses only with thinktime and thinktime_blocks": """
        thinkcycles=0 thinktime_spin=0 thinktime_blocks_type=complete thinktime_iotime=0 rate_ignore_thinktime=0
    """,
    "fio would adapt the load to the measured values. In contrast, a load of tkperf does not change": """
        rate_min=0 rate_iops_min=0 max_latency=0 latency_target=0 flow
    """,
    "tkperf submits and collects I/Os one by one, so that the queue is always full": """
        iodepth_batch=1 iodepth_batch_complete_min=1 iodepth_batch_complete_max=1 iodepth_low
        serialize_overlap=0 force_async=0 nowait=0 uncached=0
    """,
    "with offload, fio submits the I/Os in other threads, and does not wait for outstanding I/Os before a pause": """
        io_submit_mode=inline
    """,
    "special modes of an I/O engine change the latency, so tkperf uses io_uring or libaio without such modes": """
        hipri=0 fixedbufs=0 registerfiles=0 sqthread_poll=0 userspace_reap=0 nonvectored=0
        cmdprio_percentage=0 cmdprio_bssplit libaio_vectored=0 busy_poll=0 cmd_type
    """,
    "the option changes how the host issues the I/O. tkperf does not change settings of threads, memory and CPUs": """
        nice=0 mem=malloc prio prioclass priohint cpumask cpus_allowed numa_cpu_nodes numa_mem_policy
        cgroup ioscheduler lockmem=0 lockfile=none gtod_cpu uid gid
    """,
    "in tkperf, addresses are random or sequential, at multiples of the block size, without zones or gaps": """
        zonemode=none zonesize=0 zoneskip=0 bs_unaligned=0 bs_is_seq_rand=0
    """,
    "the option asks the device to treat the data differently": """
        write_hint=none fdp=0 dataplacement=none plids plid_select dp_scheme md_per_io_size=0 pi_act pi_chk apptag
        apptag_mask
    """,
    "tkperf measures one device, not a set of files": """
        nrfiles=1 file_append=0 fill_device=0 create_only=0 opendir
    """,
    "a load of tkperf runs for a given time, not for an amount of data or a number of I/Os": "io_size number_ios "
    "ramp_size",
    "an error ends a measurement, because the effect of the error on the figures is not known": """
        continue_on_error=none ignore_error
    """,
}
REFUSED = {word.partition("=")[0]: why for why, words in _REFUSED.items() for word in words.split()}
HARMLESS = {word for words in _REFUSED.values() for word in words.split() if "=" in word}
UNKNOWN = "tkperf does not know this option; remove the option if the load is the same without it"


T = TypeVar("T")
_DEFAULT_VALUE = "this value asks for nothing"
_ORDER = ("carried over", "assumed", "not carried over", "without effect")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An option that cannot be kept, in the spelling of the job file, with the reason."""

    place: str
    job: str
    given: str
    why: str

    def __str__(self) -> str:
        return f"{self.place}, [{shorten_text(self.job)}], {self.given}: {self.why}"


class JobOptions:
    """The options of one job, and their outcomes.

    Attributes:
        refusals: options that cannot be kept. For each of these options, tkperf continues with fio's default value, so
            that one pass finds all of them.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.refusals: list[Refusal] = []
        self._kept: dict[str, str] = dict(CARRIED_OVER)
        self._without_effect: dict[str, str] = dict(WITHOUT_EFFECT)
        self._left_out: dict[str, str] = dict(LEFT_OUT)
        self._assumed: list[str] = []
        self.kb_base = self.value("kb_base", read_kb_base, 1024)
        for name, option in job.options.items():
            value = "1" if option.value is None else option.value
            if f"{name}={value}" in HARMLESS:
                self._without_effect[name] = _DEFAULT_VALUE
            elif name in REFUSED:
                self.refuse(name, REFUSED[name])
            elif not any(name in known for known in (self._kept, self._without_effect, self._left_out)):
                self.refuse(name, UNKNOWN)
        if job.is_only_global:
            self.assume("one job with the options of [global], because the file contains no job")

    def given(self, *names: str) -> list[str]:
        """Return the names of the options that the job contains, in the order of the file. The order is important,
        because fio uses the last occurrence of an option.
        """
        return [name for name in self.job.options if name in names]

    def text(self, name: str) -> str | None:
        """Return the value of an option as given. None means that the option is not given."""
        option = self.job.options.get(name)
        return None if option is None else option.value or ""

    def value(self, name: str, read: Callable[[str | None], T], default: T) -> T:
        """Return the value of an option, decoded by ``read``. A value that ``read`` cannot decode is refused, and the
        default is returned.
        """
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
        """Return the state of a switch. A missing switch is off."""
        return self.value(name, read_flag, False)

    def keep(self, name: str, key: str) -> None:
        """Record the key of an option if this job needs a key other than the usual key."""
        self._kept[name] = key

    def leave_out(self, *names: str, why: str) -> None:
        """Record options that have no effect in this job, although they are carried over for other jobs."""
        self._left_out.update(dict.fromkeys(names, why))

    def assume(self, what: str) -> None:
        """Record a setting that applies to the job although the job file does not contain it."""
        self._assumed.append(what)

    def refuse(self, name: str, why: str, *, default: str | None = None) -> None:
        """Refuse an option.

        Args:
            name: the option.
            why: the reason.
            default: a text that describes fio's default, if the job does not contain the option.
        """
        option = self.job.options.get(name)
        refusal = Refusal(
            place=option.place if option else self.job.place,
            job=self.job.name,
            given=str(option) if option else default or name,
            why=why,
        )
        self.refusals.append(refusal)

    def outcomes(self) -> Iterator[tuple[str, str]]:
        """Yield the outcome of each option, with a line that contains the key or the reason."""
        for what in self._assumed:
            yield "assumed", what
        for option in self.job.overridden:
            yield "not carried over", f"{option}: a later {option.name} counts"
        for name, option in self.job.options.items():
            if name in self._left_out:
                yield "not carried over", f"{option}: {self._left_out[name]}"
            elif name in self._without_effect:
                yield "without effect", f"{option}: {self._without_effect[name]}"
            else:
                yield "carried over", f"{option} -> {self._kept[name]}"


def list_refusals(jobs: Sequence[JobOptions]) -> tuple[Refusal, ...]:
    """Return the refusals of all jobs. An option of a global section counts once."""
    first: dict[tuple[str, str], Refusal] = {}
    for options in jobs:
        for refusal in options.refusals:
            first.setdefault((refusal.place, refusal.given), refusal)
    return tuple(first.values())


def list_outcomes(jobs: Sequence[JobOptions]) -> tuple[str, ...]:
    """Return lines such as ``carried over: iodepth=4 -> io_depth (all jobs)``. Equal lines of several jobs become one
    line.
    """
    names: dict[tuple[str, str], list[str]] = {}
    for options in jobs:
        for line in dict.fromkeys(options.outcomes()):
            names.setdefault(line, []).append(f"[{shorten_text(on_one_line(options.job.name))}]")
    return tuple(
        f"{outcome}: {on_one_line(what)} ({'all jobs' if len(of) == len(jobs) > 1 else ', '.join(of)})"
        for (outcome, what), of in sorted(names.items(), key=lambda item: _ORDER.index(item[0][0]))
    )
