"""Checks whether a measurement can be true. Every engine uses these checks before a measurement is stored.

A load generator prints numbers even if a signal stopped it, if a thread ended early, if a clock was wrong, or if the
generator counted I/Os that never happened. Some checks follow from physics and arithmetic. Every correct run passes
these checks, even on the busiest host. All other checks have a tolerance, and a comment next to the tolerance gives the
reason.

Two values cannot be checked with the counters of a load generator. One is the depth of the queue at the device. The
other is the mean number of outstanding I/Os at a queue depth of 1, because the time that the host needs between two
I/Os has no upper limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from tkperf.model.errors import StepFailedError
from tkperf.model.histogram import BUCKET_LOWER_NS, BUCKET_UPPER_NS, BUCKETS, bucket_of_ns
from tkperf.model.measurement import IoStats, Measurement
from tkperf.model.units import format_block_size, format_count
from tkperf.model.workload import Workload

# A timed job reads its clock before each I/O, so the job never ends early. The reported duration may be slightly too
# short, because fio rounds down to milliseconds and does not count the moments between two passes over a small region.
SHORTEST_SHARE, SHORTEST_SLACK_S = 0.95, 0.05
# A timed job ends when its last I/O completes. The job may therefore exceed its time by the longest latency, plus the
# time for which a thread waits for a CPU.
LATE_SHARE, LATE_SLACK_S = 0.1, 5.0
# No job can run for longer than the time since its start. Two clocks may differ by a few thousandths, because one clock
# follows CPU counters and the other clock follows NTP. The remaining tolerance allows for the milliseconds between the
# release of fio and the reading of the clock.
CLOCK_SHARE, CLOCK_SLACK_S = 0.01, 0.25
# A job also cannot run for a much shorter time than the time since its start. A host that swaps may need seconds
# between the release of fio and the first I/O, and between the last I/O and the report. The report of a running job
# waits for the threads of the job. A device that does not answer delays the report for as long as the engine waits (120
# s).
LAG_SHARE, LAG_SLACK_S, RUNNING_LAG_SLACK_S = 0.1, 30.0, 130.0
# Mean latency x IOPS is the mean number of outstanding I/Os (Little's law) and cannot exceed threads x depth. The
# results of fio obey this law within one percent. The tolerance is larger, because the seconds of a simulated drive are
# random values.
MOST_OUTSTANDING = 1.25
# fio processes completions one after the other and submits a new I/O after each completion. A queue with a depth of 2
# or more is therefore always full, except for one place. The limit is much lower than this rule requires: the mean may
# be halved while threads end, and halved again on a host without free CPUs.
LEAST_OUTSTANDING = 0.25
# A job with fewer I/Os than this number times the queue depth may end before the queue was ever full.
FULL_QUEUE_ROUNDS = 4
# fio meets an offered rate within one percent, because it issues a whole number of I/Os in a second and rounds random
# times to whole µs. The standard deviation of the number of random arrivals in a step is the square root of this
# number.
OFFERED_SHARE = 0.05
RANDOM_ARRIVALS_SPREAD = 6.0
# For each I/O, on any device, a thread of fio enters the kernel twice, reads the clock and updates counters. The
# highest known rates of fio, with polling and registered buffers, are near 2 million I/Os per second and thread.
MOST_IOPS_OF_A_JOB = 2.5e6
# Because fio resubmits incomplete I/Os, the number of bytes must agree with the number of I/Os. If an NVMe drive was
# removed, fio counts I/Os of 0 bytes and ends with exit status 0.
BYTES_TOLERANCE = 0.01
# Random values, such as the sizes of a mix, lie within this number of standard deviations.
CHANCE_DEVIATIONS = 6.0
# While a job runs, fio reads its counters one after the other. On a host without a free CPU, half a second can pass
# between the readings of two counters.
RUNNING_TRAIL_S = 0.5
RUNNING_TRAIL_IOS = 64
# In a slice, a job counts as silent only if two conditions are fulfilled. The first condition is that the jobs
# completed, on average, this number of I/Os for each place in the queue.
SILENT_JOB_ROUNDS = 100
# The second condition is that the job has completed no I/O for this time in s. A disk that cannot read a sector repeats
# its attempts for a shorter time.
SILENT_JOB_S = 30.0
# The mean of fewer I/Os than this number is not reliable: when fio prints a document, some I/Os are counted only in
# part.
FEW_IOS = 1000
# A thread cannot use more than 100 % of a CPU. In short steps, the kernel may count one clock tick too much.
MOST_CPU_PERCENT = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedLoad:
    """A requested load. ``duration_s`` is None for a load that ends after a number of bytes. ``running`` means that the
    load is a slice of a stream that continues.
    """

    workload: Workload
    duration_s: float | None
    running: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSeen:
    """One thread of the load generator.

    ``reached_depth`` states whether the thread ever had the whole queue depth outstanding. None means that the value is
    not known. ``planned_bytes`` is None if no number of bytes is planned. ``silent_s`` is the time since the last I/O
    of the thread. ``silent_s`` is infinite if the thread never completed an I/O.
    """

    ios: int
    bytes: int
    elapsed_s: float
    reached_depth: bool | None = None
    planned_bytes: int | None = None
    silent_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Facts that an engine knows in addition to its counters. None means that the value is not known.

    ``own_clock_s`` is the time from the release of the load generator to the arrival of the last report, according to
    the monotonic clock of tkperf. The load cannot have run for longer. ``wall_clock_s`` is the time from the release to
    the time stamp that the engine wrote into that report. ``stopped`` means that a signal stopped the load generator
    during the step.
    """

    jobs: tuple[JobSeen, ...] | None = None
    own_clock_s: float | None = None
    wall_clock_s: float | None = None
    stopped: bool = False


Check = Callable[[Measurement, RequestedLoad, Evidence], str | None]


def why_implausible(measurement: Measurement, requested: RequestedLoad, evidence: Evidence) -> str | None:
    """Return, in words, the reason why a measurement cannot be true. None means that no fact contradicts the
    measurement.

    Each stream of a combination is judged separately.
    """
    if requested.workload.is_combination:
        return _why_combination_implausible(measurement, requested, evidence)
    return _first_reason(_CHECKS, measurement, requested, evidence)


def _first_reason(
    checks: Sequence[Check], measurement: Measurement, requested: RequestedLoad, evidence: Evidence
) -> str | None:
    for check in checks:
        if reason := check(measurement, requested, evidence):
            return reason
    return None


def _why_combination_implausible(measurement: Measurement, requested: RequestedLoad, evidence: Evidence) -> str | None:
    if reason := _first_reason((_stopped, _duration), measurement, requested, evidence):
        return reason
    streams = requested.workload.together
    if [part.name for part in measurement.streams] != [stream.name for stream in streams]:
        return "it does not have the streams that were asked for"
    jobs = iter(evidence.jobs or ())
    for stream in streams:
        own_jobs = None if evidence.jobs is None else tuple(islice(jobs, stream.workload.jobs))
        planned_s = requested.duration_s
        own_s = None if planned_s is None else planned_s - stream.delay_s
        reason = _first_reason(
            _CHECKS_OF_A_STREAM,
            measurement.of_stream(stream.name),
            replace(requested, workload=stream.workload, duration_s=own_s),
            replace(evidence, jobs=own_jobs),
        )
        if reason:
            return f"{stream.name}: {reason}"
    return None


def require_plausible(
    measurement: Measurement, requested: RequestedLoad, evidence: Evidence, *, device: object
) -> None:
    """Check that a measurement is plausible. Every measurement must pass this check before a part of it is stored.

    Raises:
        StepFailedError: the measurement cannot be true.
    """
    reason = why_implausible(measurement, requested, evidence)
    if reason is not None:
        raise StepFailedError(f"{requested.workload} on {device} cannot be believed: {reason}")


def _stopped(_measurement: Measurement, _requested: RequestedLoad, evidence: Evidence) -> str | None:
    return "fio was stopped by a signal while it measured" if evidence.stopped else None


def _numbers(measurement: Measurement, requested: RequestedLoad, _evidence: Evidence) -> str | None:
    duration_s = measurement.duration_s
    if not (math.isfinite(duration_s) and duration_s > 0):
        return f"it lasted {duration_s} s"
    for stats in _sides(measurement):
        if min(stats.ios, stats.bytes, stats.latency_ios, stats.latency_sum_ns) < 0:
            return "a count is negative"
        low, high = stats.latency_min_ns, stats.latency_max_ns
        if low is not None and high is not None and not 0 <= low <= high:
            return f"latencies lie between {low} and {high} ns"
    cpu = measurement.cpu
    if cpu and not all(
        math.isfinite(percent) and percent >= 0 for percent in (cpu.busiest_thread_percent, cpu.all_threads_percent)
    ):
        return "the CPU time is negative or no number"
    workload = requested.workload
    unasked = (
        (workload.read_percent == 0, measurement.read),
        (workload.read_percent == 100 or workload.trims, measurement.write),
        (not workload.trims, measurement.trim),
        (workload.flush_every is None, measurement.flush),
    )
    if any(is_unasked and stats.ios for is_unasked, stats in unasked):
        return "there were I/Os of a direction that was not asked for"
    return None


def _sides(measurement: Measurement) -> tuple[IoStats, ...]:
    return (measurement.read, measurement.write, measurement.trim, measurement.flush)


def _flushes(measurement: Measurement, requested: RequestedLoad, _evidence: Evidence) -> str | None:
    """Check the number of flushes, because each thread flushes after every ``flush_every`` of its own writes."""
    every = requested.workload.flush_every
    if every is None:
        return None
    due, done = measurement.write.ios / every, measurement.flush.ios
    off = requested.workload.jobs + 1.0
    if requested.running:
        off += _trailing_ios(measurement.write.ios, measurement, requested) / every
    return None if abs(done - due) <= off else f"{done} flushes were done where {due:.0f} were due"


def _duration(measurement: Measurement, requested: RequestedLoad, evidence: Evidence) -> str | None:
    duration_s, planned_s = measurement.duration_s, requested.duration_s
    own_s, wall_s = evidence.own_clock_s, evidence.wall_clock_s
    if own_s is not None:
        if duration_s > own_s * (1 + CLOCK_SHARE) + CLOCK_SLACK_S:
            return f"it reports {duration_s:g} s, only {own_s:.2f} s after its start"
        # A report is late only if both clocks show a long time. If the wall clock was set, only one of the clocks shows
        # a long time.
        since_s = own_s if wall_s is None else min(own_s, wall_s)
        slack_s = RUNNING_LAG_SLACK_S if requested.running else LAG_SLACK_S
        if duration_s < since_s * (1 - LAG_SHARE) - slack_s:
            return f"it reports {duration_s:g} s, {since_s:.0f} s after its start"
    if planned_s is None or requested.running:
        return None
    if duration_s < planned_s * SHORTEST_SHARE - SHORTEST_SLACK_S:
        return f"it lasted {duration_s:g} s instead of {planned_s:g} s"
    longest_ns = measurement.both.latency_max_ns or 0
    if duration_s > planned_s * (1 + LATE_SHARE) + LATE_SLACK_S + longest_ns / 1e9:
        return (
            f"it lasted {duration_s:g} s instead of {planned_s:g} s, and no I/O took longer than "
            f"{longest_ns / 1e9:.3f} s"
        )
    return None


def _activity(measurement: Measurement, requested: RequestedLoad, evidence: Evidence) -> str | None:
    if requested.running:
        return _silence(requested.workload, evidence)
    if not measurement.ios:
        return "no I/O was done"
    for number, job in enumerate(evidence.jobs or (), start=1):
        which = f"job {number} of {len(evidence.jobs or ())}"
        if not job.ios:
            return f"{which} did no I/O"
        if job.planned_bytes is not None and job.bytes != job.planned_bytes:
            return f"{which} moved {job.bytes} bytes where exactly {job.planned_bytes} were asked"
        planned_s = requested.duration_s
        if planned_s and job.elapsed_s < planned_s * SHORTEST_SHARE - SHORTEST_SLACK_S:
            return f"{which} ran for {job.elapsed_s:g} s instead of {planned_s:g} s"
    return None


def _silence(workload: Workload, evidence: Evidence) -> str | None:
    jobs = evidence.jobs or ()
    mean_ios = sum(job.ios for job in jobs) / len(jobs) if jobs else 0.0
    if mean_ios < SILENT_JOB_ROUNDS * workload.io_depth:
        return None
    for number, job in enumerate(jobs, start=1):
        if not job.ios and job.silent_s >= SILENT_JOB_S:
            since = "ever" if math.isinf(job.silent_s) else f"for {job.silent_s:.0f} s"
            return f"job {number} of {len(jobs)} did no I/O {since}"
    return None


def _trailing_ios(ios: int, measurement: Measurement, requested: RequestedLoad) -> float:
    """Return the number of I/Os by which two counters of a running job may differ."""
    share = min(1.0, RUNNING_TRAIL_S / measurement.duration_s)
    return share * ios + RUNNING_TRAIL_IOS + requested.workload.total_outstanding_ios


def _bytes(measurement: Measurement, requested: RequestedLoad, evidence: Evidence) -> str | None:
    if any(job.planned_bytes is not None for job in evidence.jobs or ()):
        return None  # each job has a planned amount, and some jobs have another block size
    ios, block_bytes = measurement.ios, requested.workload.mean_block_bytes
    off_ios = BYTES_TOLERANCE * ios + _chance_ios(requested.workload, ios)
    if requested.running:
        off_ios += _trailing_ios(ios, measurement, requested)
    elif requested.duration_s is None:
        off_ios += 1  # the last I/O of a fill may be smaller
    if abs(measurement.bytes / block_bytes - ios) <= off_ios:
        return None
    fewer = measurement.bytes < ios * block_bytes
    return (
        f"{measurement.bytes / ios if ios else measurement.bytes:.0f} bytes an I/O were moved where "
        f"blocks of {_blocks(requested.workload)} were asked"
        + (": the device has failed or was removed; check the kernel log" if fewer else "")
    )


def _chance_ios(load: Workload, ios: int) -> float:
    """For a mix of block sizes, return by how many bytes the sum of all I/Os can differ from its expected value by
    chance. The result is expressed as a number of I/Os of mean size.
    """
    mean_bytes = load.mean_block_bytes
    variance = sum(share.percent / 100 * (share.block_size_bytes - mean_bytes) ** 2 for share in load.block_mix)
    return CHANCE_DEVIATIONS * math.sqrt(ios * variance) / mean_bytes


def _blocks(load: Workload) -> str:
    if load.block_mix:
        return f"{load.mean_block_bytes:.0f} bytes on average"
    return format_block_size(load.block_size_bytes)


def _latencies(measurement: Measurement, requested: RequestedLoad, _evidence: Evidence) -> str | None:
    for stats in _sides(measurement):
        reason = _running_latencies(stats, measurement, requested) if requested.running else _exact_latencies(stats)
        if reason:
            return reason
    return None


def _exact_latencies(stats: IoStats) -> str | None:
    """Check the latencies of a finished step. Every I/O must have a latency, and the histogram, the mean and the
    extremes must agree.
    """
    histogram = stats.histogram
    if not stats.ios == stats.latency_ios == histogram.total:
        return (
            f"of {format_count(stats.ios, 'I/O')}, {stats.latency_ios} have a latency and "
            f"{histogram.total} are in the histogram"
        )
    if not stats.ios:
        return None
    low, high = stats.latency_min_ns, stats.latency_max_ns
    if low is None or high is None:
        return "extremes of the latency are missing"
    mean_ns = stats.latency_sum_ns / stats.ios
    if not low - 1 <= mean_ns <= high + 1:
        return f"a mean latency of {mean_ns:.0f} ns does not lie between {low} and {high} ns"
    first, last = int(histogram.indices[0]), int(histogram.indices[-1])
    if (bucket_of_ns(low), bucket_of_ns(high)) != (first, last):
        return (
            f"latencies from {low} to {high} ns are not those of the histogram, which begins at "
            f"{histogram.lowest_ns} and ends at {histogram.highest_ns} ns"
        )
    least = np.dot(histogram.counts.astype(float), BUCKET_LOWER_NS[histogram.indices])
    most = np.dot(histogram.counts.astype(float), BUCKET_UPPER_NS[histogram.indices])
    # fio prints means with six digits after the decimal point. The relative error of a sum of floats is about 10^-9.
    slack = stats.ios + 1e-6 * most
    if stats.latency_sum_ns < least - slack or (last < BUCKETS - 1 and stats.latency_sum_ns > most + slack):
        return f"a mean latency of {mean_ns:.0f} ns is not that of the histogram"
    return None


def _running_latencies(stats: IoStats, measurement: Measurement, requested: RequestedLoad) -> str | None:
    trailing = _trailing_ios(stats.ios, measurement, requested)
    for count in (stats.latency_ios, stats.histogram.total):
        if abs(stats.ios - count) > BYTES_TOLERANCE * stats.ios + trailing:
            return f"of {format_count(stats.ios, 'I/O')}, {count} have a latency"
    low, high, mean_ns = stats.latency_min_ns, stats.latency_max_ns, stats.latency_mean_ns
    if stats.latency_ios < FEW_IOS or low is None or high is None or mean_ns is None:
        return None
    if not 0.9 * low <= mean_ns <= 1.1 * high:
        return f"a mean latency of {mean_ns:.0f} ns does not lie between {low} and {high} ns"
    return None


def _outstanding(measurement: Measurement, requested: RequestedLoad, evidence: Evidence) -> str | None:
    workload, duration_s = requested.workload, measurement.duration_s
    jobs = workload.jobs if evidence.jobs is None else len(evidence.jobs)
    most = jobs * workload.io_depth
    both = measurement.both
    busy_s = both.latency_sum_ns / 1e9
    # I/Os that end in a slice may have begun before the slice.
    within_s = duration_s + ((both.latency_max_ns or 0) / 1e9 if requested.running else 0.0)
    if busy_s > MOST_OUTSTANDING * most * within_s:
        return (
            f"{measurement.iops:.0f} IOPS at a mean latency of {measurement.latency_mean_us:.1f} µs "
            f"would be {busy_s / duration_s:.0f} I/Os outstanding, where {most} are the most"
        )
    if measurement.iops > MOST_IOPS_OF_A_JOB * jobs:
        return f"{measurement.iops:.0f} IOPS are more than {format_count(jobs, 'thread')} can do"
    full = evidence.jobs is not None and all(job.reached_depth for job in evidence.jobs)
    if requested.running or requested.duration_s is None or workload.io_depth < 2 or not full:
        return None
    if workload.offered_iops is not None or workload.burst is not None:
        return None  # the load decides how many I/Os are outstanding, and often no I/O is outstanding
    if busy_s < LEAST_OUTSTANDING * most * min(duration_s, requested.duration_s):
        return (
            f"{measurement.iops:.0f} IOPS at a mean latency of {measurement.latency_mean_us:.1f} µs "
            f"are {busy_s / duration_s:.1f} I/Os outstanding on average, where {most} were asked"
        )
    return None


def _offered(measurement: Measurement, requested: RequestedLoad, _evidence: Evidence) -> str | None:
    """Check that the I/Os do not exceed the offered rate. A load generator that exceeds the rate measures another
    workload.
    """
    offered_iops = requested.workload.offered_iops
    if offered_iops is None:
        return None
    due = offered_iops * measurement.duration_s
    # The limit allows for outstanding I/Os and for the random variation of the number of arrivals.
    spread = max(math.sqrt(due), requested.workload.arrivals_deviation(due))
    late = requested.workload.total_outstanding_ios + RANDOM_ARRIVALS_SPREAD * spread
    if requested.running or measurement.ios <= due * (1 + OFFERED_SHARE) + late:
        return None
    return f"{measurement.iops:,.0f} IOPS were done where {offered_iops:,.6g} were offered"


def _depth(_measurement: Measurement, requested: RequestedLoad, evidence: Evidence) -> str | None:
    if requested.workload.offered_iops is not None or requested.workload.burst is not None:
        return None  # an offered rate or a short burst need not fill the queue
    enough = FULL_QUEUE_ROUNDS * requested.workload.io_depth
    for number, job in enumerate(evidence.jobs or (), start=1):
        if job.reached_depth is False and job.ios >= enough:
            return (
                f"job {number} of {len(evidence.jobs or ())} never had {requested.workload.io_depth} I/Os outstanding"
            )
    return None


_CHECKS: tuple[Check, ...] = (
    _stopped,
    _numbers,
    _duration,
    _activity,
    _bytes,
    _depth,
    _offered,
    _latencies,
    _outstanding,
    _flushes,
)
_CHECKS_OF_A_STREAM = tuple(check for check in _CHECKS if check not in (_stopped, _duration))
