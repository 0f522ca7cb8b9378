"""What becomes of each of fio's options: kept, implied by tkperf, without effect, or refused, and why.

The names are those of ``fio --cmdhelp=all`` (3.33 to 3.40) and of the options of io_uring and libaio; a
test compares. An option that is in none of these tables is none of fio's, or too new.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

ALIASES = {
    "readwrite": "rw", "blocksize": "bs", "blockalign": "ba", "blocksize_range": "bsrange",
    "blocksize_unaligned": "bs_unaligned", "iodepth_batch_submit": "iodepth_batch",
    "iodepth_batch_complete": "iodepth_batch_complete_min", "io_limit": "io_size",
    "fill_fs": "fill_device", "fileoffset": "offset", "nr_files": "nrfiles", "timeout": "runtime",
    "iomem": "mem", "ratemin": "rate_min", "ratecycle": "rate_cycle", "wait_for_previous": "stonewall",
    "disable_bw": "disable_bw_measurement", "ss": "steadystate", "ss_dur": "steadystate_duration",
    "ss_ramp": "steadystate_ramp_time",
}  # fmt: skip


class Fate(StrEnum):
    """What becomes of an option."""

    KEPT = "kept"
    IMPLIED = "implied"
    DROPPED = "dropped"
    GIVEN_UP = "given up"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The fate of an option whatever else the job says, unless its value does nothing."""

    fate: Fate
    why: str
    harmless: frozenset[str] = frozenset()


# Looked at one by one, with what else the job says.
KEPT = frozenset({
    "rw", "bs", "bsrange", "bssplit", "rwmixread", "rwmixwrite", "numjobs", "iodepth", "runtime", "ramp_time",
    "time_based", "size", "offset", "offset_increment", "loops", "stonewall", "rate_iops", "rate_process",
    "random_distribution", "buffer_compress_percentage", "ioengine", "direct", "buffered", "ba", "filename",
    "kb_base",
})  # fmt: skip

_IMPLIED = {
    "every load goes on for its whole time; results are of all its jobs together": ("group_reporting",),
    "tkperf runs fio's jobs as threads": ("thread",),
    "addresses are drawn independently, by a new sequence in every step": (
        "norandommap", "random_generator", "randrepeat", "randseed", "allrandrepeat",
    ),
    "every write carries new random data": ("refill_buffers", "scramble_buffers"),
    "nothing is cached with direct I/O": ("invalidate",),
    "tkperf ends when fio reports an error": ("exitall_on_error", "error_dump"),
    "a device is never created as a file": ("allow_file_create",),
    "tkperf keeps whole histograms of the latency from submission to completion": (
        "clat_percentiles", "lat_percentiles", "slat_percentiles", "percentile_list", "disable_lat",
        "disable_clat", "disable_slat", "gtod_reduce", "log_hist_msec", "log_hist_coarseness",
        "write_hist_log",
    ),
    "tkperf keeps every second of a run": (
        "write_bw_log", "write_lat_log", "write_iops_log", "bwavgtime", "iopsavgtime", "log_avg_msec",
        "log_entries", "log_max_value", "log_offset", "log_prio", "log_compression", "log_compression_cpus",
        "log_store_compressed", "log_unix_epoch", "log_alternate_epoch", "log_alternate_epoch_clock_id",
        "per_job_logs", "log_window_value", "log_issue_time", "disable_bw_measurement",
    ),
}  # fmt: skip

_DROPPED = {
    "words only": ("name", "description"),
    "only how fio reports": (
        "new_group", "significant_figures", "disk_util", "unified_rw_reporting", "unit_base",
        "block_error_percentiles",
    ),
    "only which clock fio reads": ("clocksource", "gtod_cpu"),
    "about files; tkperf measures the DEVICE of its command line": (
        "directory", "filename_format", "unique_filename", "lockfile", "file_service_type", "openfiles",
        "fallocate", "fadvise_hint", "overwrite", "create_serialize", "create_fsync", "create_on_open",
        "unlink", "unlink_each_loop",
    ),
    "each load ends by its own time": ("exitall", "exit_what"),
    "tkperf checks the device itself before it writes": ("allow_mounted_write",),
}  # fmt: skip

# Options that do nothing unless another one is given, which decides about both.
_COMPANIONS = {
    "verify": (
        "do_verify", "verify_interval", "verify_offset", "verify_pattern", "verify_fatal", "verify_dump",
        "verify_async", "verify_async_cpus", "verify_backlog", "verify_backlog_batch", "verify_state_load",
        "verify_state_save", "verify_header_seed", "verify_write_sequence", "experimental_verify",
        "trim_verify_zero", "trim_backlog", "trim_backlog_batch",
    ),
    "rw": ("rw_sequencer",),
    "thinktime": (
        "thinktime_spin", "thinktime_blocks", "thinktime_blocks_type", "thinktime_iotime",
        "rate_ignore_thinktime",
    ),
    "rate_min": ("rate_cycle",),
    "latency_target": ("latency_window", "latency_percentile", "latency_run"),
    "read_iolog": (
        "read_iolog_chunked", "replay_no_stall", "replay_redirect", "replay_scale", "replay_align",
        "replay_time_scale", "replay_skip", "merge_blktrace_file", "merge_blktrace_scalars",
        "merge_blktrace_iters",
    ),
    "zonemode": (
        "zonesize", "zonecapacity", "zonerange", "zoneskip", "read_beyond_wp", "max_open_zones",
        "job_max_open_zones", "ignore_zone_limits", "zone_reset_threshold", "zone_reset_frequency",
        "recover_zbd_write_error",
    ),
    "dedupe_percentage": ("dedupe_mode", "dedupe_working_set_percentage", "dedupe_global"),
    "cpus_allowed": ("cpus_allowed_policy",),
    "cgroup": ("cgroup_nodelete", "cgroup_weight"),
    "mem": ("hugepage-size",),
    "flow": ("flow_id", "flow_sleep", "flow_watermark"),
    "steadystate": (
        "steadystate_duration", "steadystate_ramp_time", "steadystate_check_interval",
    ),
    "cmdprio_percentage": ("cmdprio", "cmdprio_class", "cmdprio_hint"),
    "sqthread_poll": ("sqthread_poll_cpu",),
    "fdp": ("fdp_pli", "fdp_pli_select", "dp_scheme", "plids", "plid_select", "dataplacement"),
    "md_per_io_size": ("pi_act", "pi_chk", "apptag", "apptag_mask"),
}  # fmt: skip

_ZERO = frozenset({"0"})
_ONE = frozenset({"1"})
_NEVER: frozenset[str] = frozenset()
_EXTRA_WORK = "it makes the device do other work than the reads and writes that tkperf counts"
_OTHER_DATA = "tkperf writes new random data, compressible by a percentage at most"
_HOST = "it changes the host's part; tkperf leaves threads and CPUs as they are"
_SUBMISSION = "tkperf submits and reaps I/Os one by one, a queue is always full"
_FILES = "tkperf measures one device, not a set of files"

_REFUSED = (
    (_EXTRA_WORK, _ZERO, (
        "fsync", "fdatasync", "write_barrier", "end_fsync", "fsync_on_close", "pre_read",
        "trim_percentage",
    )),
    (_EXTRA_WORK, frozenset({"0", "none"}), ("sync", "sync_file_range", "atomic")),
    ("checking data takes time and reads that would count as load", frozenset({"0", "none"}), (
        "verify",
    )),
    ("it verifies only, which is no load", _ZERO, ("verify_only",)),
    ("it runs a command; tkperf runs nothing from a job file", _NEVER, (
        "exec_prerun", "exec_postrun",
    )),
    ("writing a log of every I/O holds the load back", _NEVER, ("write_iolog",)),
    ("it replays a trace, which is no load that tkperf knows", _NEVER, ("read_iolog",)),
    ("it is a program of its own in fio", _NEVER, ("profile",)),
    (_OTHER_DATA, _ZERO, ("zero_buffers", "dedupe_percentage")),
    (_OTHER_DATA, _NEVER, ("buffer_pattern",)),
    ("tkperf's chunk is 512 bytes, fio's default", frozenset({"512"}), ("buffer_compress_chunk",)),
    ("the device would wait between I/Os by fio's rules; offer a rate with rate_iops", _ZERO, (
        "thinktime",
    )),
    ("offered rates are in IOPS: divide by the block size and write rate_iops", _ZERO, ("rate",)),
    ("a load does not end because it is slow; tkperf says what rate was reached", _ZERO, (
        "rate_min", "rate_iops_min",
    )),
    ("a load does not end because an I/O was slow; the longest latency is in every result", _ZERO, (
        "max_latency",
    )),
    ("it changes the queue depth during the load", _ZERO, ("latency_target",)),
    ("it ties the speed of one job to another's", _NEVER, ("flow",)),
    ("the end by steady state is tkperf's own: write a rule of steady state into the TOML", _NEVER, (
        "steadystate",
    )),
    (_SUBMISSION, _ONE, ("iodepth_batch", "iodepth_batch_complete_min", "iodepth_batch_complete_max")),
    (_SUBMISSION, _NEVER, ("iodepth_low",)),
    (_SUBMISSION, frozenset({"inline"}), ("io_submit_mode",)),
    (_SUBMISSION, _ZERO, ("serialize_overlap", "force_async", "nowait", "uncached")),
    ("an I/O engine's own mode changes latency; tkperf uses io_uring or libaio as they are", _ZERO, (
        "hipri", "fixedbufs", "registerfiles", "sqthread_poll", "userspace_reap", "nonvectored",
        "cmdprio_percentage", "md_per_io_size", "fdp", "readfua", "writefua", "deac", "verify_mode",
        "write_mode",
    )),
    ("an I/O engine's own mode changes latency; tkperf uses io_uring or libaio as they are", _NEVER, (
        "cmdprio_bssplit", "cmd_type",
    )),
    (_HOST, _ZERO, ("nice", "lockmem")),
    (_HOST, frozenset({"malloc"}), ("mem",)),
    (_HOST, _NEVER, (
        "prio", "prioclass", "priohint", "cpumask", "cpus_allowed", "numa_cpu_nodes", "numa_mem_policy", "cgroup", "uid", "gid",
        "ioscheduler", "comm",
    )),
    ("tkperf has no zones of a zoned device and skips no addresses", frozenset({"none"}), ("zonemode",)),
    ("it asks the device to treat the data in another way", frozenset({"none"}), ("write_hint",)),
    (_FILES, _ONE, ("nrfiles",)),
    (_FILES, _NEVER, ("opendir", "filesize", "filetype")),
    (_FILES, _ZERO, ("file_append", "fill_device", "create_only")),
    ("a load goes on for a time, not for an amount or a number of I/Os", _NEVER, (
        "io_size", "number_ios", "num_range",
    )),
    ("a load begins when the one before it ends", _ZERO, ("startdelay",)),
    ("jobs follow each other by stonewall only", _NEVER, ("wait_for",)),
    ("addresses are either random or sequential", _NEVER, ("percentage_random",)),
    ("I/Os begin at multiples of the block size", _ZERO, (
        "bs_unaligned", "offset_align", "bs_is_seq_rand",
    )),
    ("errors end a measurement; what they would mean for the numbers is not known", _NEVER, (
        "continue_on_error", "ignore_error",
    )),
    ("tkperf needs fio's statistics", _ONE, ("stats",)),
)  # fmt: skip


def _build_rules() -> dict[str, Rule]:
    rules: dict[str, Rule] = {}
    for fate, table in ((Fate.IMPLIED, _IMPLIED), (Fate.DROPPED, _DROPPED)):
        for why, names in table.items():
            rules |= dict.fromkeys(names, Rule(fate=fate, why=why))
    for leader, names in _COMPANIONS.items():
        why = f"it does nothing without {leader}, which decides"
        rules |= dict.fromkeys(names, Rule(fate=Fate.DROPPED, why=why))
    for why, harmless, names in _REFUSED:
        rules |= dict.fromkeys(names, Rule(fate=Fate.REFUSED, why=why, harmless=harmless))
    return rules


RULES = _build_rules()
KNOWN = KEPT | RULES.keys()
