"""Each option of fio is converted, has no effect, is left out, or is refused."""

from __future__ import annotations

import re
import subprocess
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.interop.fio_jobfile.job_files import JOBS, NAMES, convert, convert_file
from tkperf.interop.fio_jobfile.convert import OptionsRefusedError
from tkperf.interop.fio_jobfile.job_load import Wishes
from tkperf.interop.fio_jobfile.job_options import CARRIED_OVER, LEFT_OUT, REFUSED, WITHOUT_EFFECT
from tkperf.interop.fio_jobfile.job_sections import ALIASES

TIMED = "direct=1\nioengine=libaio\ntime_based\nruntime=60\n"


def load_of(options: str) -> dict[str, Any]:
    """Return the load that a job with these options is converted to."""
    written, _ = convert(f"[a]\n{TIMED}{options}\n")
    load = tomllib.loads(written)["loads"]["a"]
    assert isinstance(load, dict)
    return load


def refusals_of(text: str) -> list[str]:
    with pytest.raises(OptionsRefusedError) as raised:
        convert(text)
    return [str(refusal) for refusal in raised.value.refusals]


@pytest.mark.parametrize(
    ("options", "key", "value"),
    [
        ("rw=randrw", "read_percent", 50),
        ("rw=randrw\nrwmixwrite=30", "read_percent", 70),
        ("rw=write\nrwmixread=30", "read_percent", 0),
        ("rw=rw", "access", "sequential"),
        ("bs=512", "block_size_kib", 0.5),
        ("bs=1m", "block_size_kib", 1024),
        ("bs=4k,8k\nrw=randwrite", "block_size_kib", 8),
        ("bs=4kib\nkb_base=1000", "block_size_kib", 4),
        ("bsrange=16k-16k", "block_size_kib", 16),
        ("bssplit=4k/50:8k/", "block_shares", [[4, 50], [8, 50]]),
        ("rw=randread\nrandom_distribution=zoned:50/5:30/15:20/", "zone_shares", [[50, 5], [30, 15], [20, 80]]),
        ("iodepth=7", "io_depth", 7),
        ("ioengine=sync\niodepth=7", "io_depth", 1),
        ("rw=randread\nnumjobs=3", "jobs", 3),
        ("rw=randread\nnumjobs=3\nrate_iops=100", "offered_iops", 300),
        ("rw=randrw\nrate_iops=100", "offered_iops", 200),
        ("rw=read\nrate_iops=100,50", "offered_iops", 100),
        ("rate_iops=100\nrate_process=poisson", "arrival", "poisson"),
        ("rw=write\nbuffer_compress_percentage=30", "compressible_percent", 30),
        ("offset=25%\nsize=50%", "range_begin_percent", 25),
        ("offset=25%\nsize=50%", "range_end_percent", 75),
        ("offset=50%\nsize=200%", "range_begin_percent", 50),
        ("offset=1g\nsize=1m", "range_begin_mib", 1024),
        ("offset=1g\nsize=1m", "range_end_mib", 1025),
        ("offset=1g\nsize=256k", "range_end_mib", 1024.25),
        ("offset=0m\nsize=10g", "range_end_mib", 10240),
        ("filesize=128m", "range_end_mib", 128),
        ("rw=randtrim", "trims", True),
        ("rw=trim\nbs=2g", "block_size_kib", 2 << 20),
        ("rw=trim\niodepth=10", "io_depth", 1),
        ("rw=trim\nbssplit=4k,8k,16k/50:64m/50", "block_shares", [[16, 50], [65536, 50]]),
        ("rw=randread\nbssplit=4k", "block_size_kib", 4),
        ("rw=randread\nbssplit=,64k/50:8k/50", "block_size_kib", 4),
        ("rw=randread\nbssplit=4k/33:8k/33:16k/33", "block_shares", [[4, 33], [8, 33], [16, 34]]),
        ("rw=randread\nbssplit=4k/60:8k/60", "block_shares", [[4, 60], [8, 40]]),
        ("rw=randread\nbssplit=4k/0:8k/30:16k/30", "block_shares", [[4, 40], [8, 30], [16, 30]]),
        ("rw=randwrite\npercentage_random=0,25,", "random_percent", 25),
        ("rw=randwrite\npercentage_random=30", "random_percent", 30),
        ("rw=randtrim\npercentage_random=0,25,7", "random_percent", 7),
        ("rw=randread\nthinktime=1500", "burst_pause_s", 0.0015),
        ("rw=randread\nthinktime=30s", "burst_pause_s", 30),
        ("rw=randread\nthinktime=1500", "burst_ios", 1),
        ("rw=randread\nthinktime=1ms\nthinktime_blocks=32", "burst_ios", 32),
        ("rw=write\nfsync=8", "flush_every", 8),
        ("rw=randrw\nfdatasync=8", "flush_every", 8),
        ("ioengine=psync\nrw=write\nfsync=1\niodepth=8", "io_depth", 1),
        ("rw=randread\nrate=50m,", "offered_megabytes_per_s", 52.4288),
        ("rw=randread\nnumjobs=4\nrate=1m", "offered_megabytes_per_s", 4.194304),
        ("rw=trim\nrate=,,1m", "offered_megabytes_per_s", 1.048576),
        ("rw=randrw\nrwmixread=75\nrate=3m,1m", "offered_megabytes_per_s", 4.194304),
        ("rw=randread\nrate_iops=2k,", "offered_iops", 2048),
    ],
)
def test_what_is_kept(options: str, key: str, value: object) -> None:
    """Each option that is converted is stored under its key, with the same meaning as in fio."""
    assert load_of(options)[key] == value


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        (
            "verify=crc32c",
            "to check data, fio would need additional time, and the additional reads would be part of the load",
        ),
        ("sync=1", "the option makes the device do work other than the I/Os that tkperf counts"),
        (
            "io_submit_mode=offload",
            "with offload, fio submits the I/Os in other threads, and does not wait for outstanding I/Os before a "
            "pause",
        ),
        ("no_such_option=1", "tkperf does not know this option; remove the option if the load is the same without it"),
        (
            "exec_prerun=touch x",
            "fio would execute a command, a trace or a built-in program. However, tkperf executes nothing from a job "
            "file",
        ),
        ("rate=1k", "0.25 I/Os a second of a thread; tkperf offers one at least"),
        ("rw=randtrimwrite", "trims and writes are never mixed in one load; write two jobs, rw=trim and rw=write"),
        ("rw=read:8k", "addresses of tkperf are random or sequential; it skips none"),
        ("rw=sideways", "it is one of read, write, randread, randwrite, trim, randtrim, rw, readwrite, randrw"),
        ("bs=4q", "it is a size such as 4k, 1m or 4096"),
        ("bs=4.5k", "it is a size such as 4k, 1m or 4096"),
        ("bs=1000", "a block size is a multiple of 512 bytes, 16 MiB at most"),
        ("bssplit=4k/60:8k/60:16k", "its percentages are more than 100 without the sizes that have none"),
        ("bssplit=4k/50:20k-28k/50", "fio takes 20k-28k as 20k: write that, or a share for each size"),
        ("thinktime=61s", "a pause of tkperf is 60 s at most: fio reports nothing meanwhile"),
        ("thinktime_blocks_type=issue", "tkperf supports pauses only with thinktime and thinktime_blocks"),
        ("bsrange=4k-64k", "tkperf draws no sizes from a range; write the sizes as bssplit=4k/50:8k/50"),
        ("bs=٤k", "it is a size such as 4k, 1m or 4096"),
        ("iodepth=٣", "it is a whole number from 1 to 65,536"),
        ("runtime=٦٠", "it is a time such as 60, 90s, 5m or 1h"),
        ("iodepth=0", "it is a whole number from 1 to 65,536"),
        ("ioengine=mmap", "tkperf uses io_uring or libaio"),
        ("size=1000", "in tkperf it is whole 4 KiB"),
        ("offset=100%", "100 % is the end of the device, or beyond it"),
        ("runtime=1h30m", "it is a time such as 60, 90s, 5m or 1h"),
        ("time_based=yes", "it is 1 or 0"),
        ("filename=/dev/sda:/dev/sdb", "it names several files; tkperf measures one DEVICE"),
    ],
)
def test_what_is_refused(option: str, reason: str) -> None:
    """An option that cannot be converted is refused. The refusal is one line that names the file, the line, the job,
    the option and the reason.
    """
    assert refusals_of(f"[a]\n{TIMED}{option}\n") == [f"a.fio, line 6, [a], {option}: {reason}"]


@pytest.mark.parametrize(
    ("text", "given", "reason"),
    [
        (
            "[a]\nruntime=1\nrw=read\n",
            "direct=0 (fio's default)",
            "buffered I/O measures the memory of the host, and the I/O of tkperf is always direct: write direct=1 in "
            "the job file, or pass --direct",
        ),
        (
            f"[a]\n{TIMED}rw=randread\nbssplit=8k/50:64k/50\n",
            "blockalign=8k (fio's default)",
            "I/Os begin at multiples of 8k, those of tkperf at multiples of 4k: write blockalign=4k, or "
            "pass --align-4k",
        ),
        (
            "[a]\ndirect=1\nrw=randwrite\n",
            "no runtime",
            "a load of tkperf runs for a time, unless it writes all of the range in order: pass --runtime TIME, such "
            "as --runtime 60",
        ),
        (
            "[a]\ndirect=1\nrw=write\n",
            "no runtime",
            "it only fills the range, and nothing is measured after it: pass --runtime TIME, such as --runtime 60",
        ),
    ],
)
def test_a_default_of_fios_is_refused_like_an_option(text: str, given: str, reason: str) -> None:
    """If a job omits an option and fio's default for it cannot be converted, the default is refused in the same manner
    as an option.
    """
    assert refusals_of(text) == [f"a.fio, line 1, [a], {given}: {reason}"]


def document_of(text: str, wishes: Wishes | None = None) -> dict[str, Any]:
    return tomllib.loads(convert(text, wishes=wishes)[0])


GLOBAL = f"[global]\n{TIMED}filename=/dev/x\nrw=randread\n"


def test_jobs_at_the_same_time_are_loads_that_run_together() -> None:
    """Jobs between two stonewalls form one phase. Each job becomes a load with the name of the job, even if two jobs
    have the same options.
    """
    document = document_of(f"{GLOBAL}[a]\n[b]\n[c]\nstonewall\n[d]\nstonewall\n[d]\nbs=8k\n")
    assert [(phase.get("together"), phase.get("load")) for phase in document["phases"]] == [
        (["a", "b"], None),
        (None, "c"),
        (["d", "d (2)"], None),
    ]
    assert document["phases"][0]["section"] == "a + b"
    assert document["loads"]["a"] == document["loads"]["b"]


def test_a_load_never_has_the_name_of_another_row_of_results() -> None:
    """In the results, the total of loads that run together has the name ``all``, and the flushes of a load have the
    name ``NAME, flushes``. No converted load receives such a name.
    """
    document = document_of(f"{GLOBAL}[all]\n[a, flushes]\n[all]\nstonewall\n")
    assert [(phase.get("together"), phase.get("load")) for phase in document["phases"]] == [
        (["all (2)", "a, flushes (2)"], None),
        (None, "all"),
    ]


def test_jobs_that_wait_for_the_one_before_them_follow_it() -> None:
    """If no other job is running, wait_for is converted as a stonewall. Otherwise wait_for is refused, because the
    other jobs would continue to run.
    """
    chain = document_of(f"{GLOBAL}[a]\n[b]\nwait_for=a\n[c]\nwait_for=b\n")
    assert [phase["load"] for phase in chain["phases"]] == ["a", "b", "c"]
    (refusal,) = refusals_of(f"{GLOBAL}[a]\n[b]\n[c]\nwait_for=a\n")
    assert "wait_for=a: other jobs run on meanwhile" in refusal


def test_loads_that_run_together_have_one_runtime() -> None:
    """All loads that run together must have the same runtime. A job with a different runtime is refused, because the
    longer job would run alone for a time.
    """
    (refusal,) = refusals_of(f"{GLOBAL}[a]\n[b]\nruntime=30\n")
    assert "runtime=30: 30 s, and [a] has 60 s: loads that run at the same time have one runtime" in refusal


def test_more_than_16_equal_loads_become_threads_of_one() -> None:
    """If more than 16 loads run together, equal random loads become threads of one load with the sum of their rates.
    For each load that is merged in this way, a line of the output names the load that contains its threads.
    """
    jobs = "".join(f"[job{number}]\n" for number in range(20))
    written, options = convert(f"{GLOBAL}rate_iops=100\nnumjobs=2\n{jobs}[w]\nrw=randwrite\n")
    document = tomllib.loads(written)
    assert document["phases"][0]["together"] == ["job0", "w"]
    assert (document["loads"]["job0"]["jobs"], document["loads"]["job0"]["offered_iops"]) == (40, 4000)
    assert any(line.startswith("assumed: its threads are threads of load job0, which is equal") for line in options)


def test_more_than_can_run_together_is_refused() -> None:
    """At most 16 different loads and 256 threads can run at the same time. A job file with more loads or threads is
    refused.
    """
    jobs = "".join(f"[job{number}]\nbs={number + 1}k\n" for number in range(17))
    assert "17 different loads run at the same time, and tkperf runs 16 at most" in refusals_of(GLOBAL + jobs)[0]
    (refusal,) = refusals_of(f"{GLOBAL}[a]\nnumjobs=200\n[b]\nnumjobs=100\n")
    assert "300 threads run at the same time, and tkperf runs 256 at most" in refusal


def test_sequential_threads_over_the_same_addresses_are_loads_of_their_own() -> None:
    """If several sequential threads use the same addresses, each thread becomes a separate load, because each thread of
    a single load would use a separate part of the range. If the offset_increment of a job gives each thread such a
    separate part, the threads remain one load. Random threads share their range in both programs.
    """
    document = document_of(f"{GLOBAL}[a]\nrw=read\nnumjobs=3\n[b]\nnumjobs=3\n")
    assert document["phases"][0]["together"] == ["a 1", "a 2", "a 3", "b"]
    assert {load["jobs"] for name, load in document["loads"].items() if name != "b"} == {1}
    parts = document_of(f"{GLOBAL}[a]\nrw=read\nnumjobs=4\nsize=10g\noffset=1g\noffset_increment=10g\n")
    load = parts["loads"]["a"]
    assert (load["jobs"], load["range_begin_mib"], load["range_end_mib"]) == (4, 1024, 41 * 1024)
    apart = document_of(f"{GLOBAL}[a]\nnumjobs=2\nsize=20%\noffset=0%\noffset_increment=50%\n")
    assert [(load.get("range_begin_percent", 0), load["range_end_percent"]) for load in apart["loads"].values()] == [
        (0, 20),
        (50, 70),
    ]


def test_jobs_with_files_of_their_own_have_parts_of_the_range() -> None:
    """If jobs have no filename, each fio thread has a separate file, so each thread receives a separate part of the
    range.
    """
    document = document_of(f"[global]\n{TIMED}rw=randread\nsize=64m\n[a]\nnumjobs=2\n[b]\n[c]\nstonewall\n")
    parts = [(load.get("range_begin_mib", 0), load["range_end_mib"]) for load in document["loads"].values()]
    assert parts == [(0, 64), (64, 128), (128, 192), (0, 64)]
    shared = document_of(f"{GLOBAL}size=64m\n[a]\nnumjobs=2\n[b]\n")
    assert {load["range_end_mib"] for load in shared["loads"].values()} == {64}


def test_a_file_of_one_job_beside_the_device_of_another_is_refused() -> None:
    """A job without a filename is refused if another job names a device. fio would give this job a separate file, but
    tkperf could place the job only on the range of the other job.
    """
    (refusal,) = refusals_of(f"[global]\n{TIMED}rw=randread\nsize=64m\n[a]\nfilename=/dev/x\n[b]\n")
    assert "[b], no filename: another job uses /dev/x" in refusal


def test_a_load_that_begins_late_has_slices_of_twice_its_delay() -> None:
    """If a load begins late, the slices are at least twice as long as the delay. The first slice then contains seconds
    in which all loads run. The warm-up is rounded to whole slices, and a line of the output reports the rounding.
    """
    written, options = convert(f"{GLOBAL}runtime=600\nramp_time=30\n[a]\nstartdelay=2\n[b]\nstartdelay=32\n")
    document = tomllib.loads(written)
    assert [load.get("delay_s", 0) for load in document["loads"].values()] == [0, 30]
    (phase,) = document["phases"]
    assert (phase["slice_s"], phase["warm_up_s"], phase["longest_s"]) == (60, 60, 600)
    assert any("ramp_time=30 -> warm_up_s = 60: whole slices" in line for line in options)


@pytest.mark.parametrize(
    ("jobs", "reason"),
    [
        ("[a]\n[b]\nstartdelay=61\n", "a load of tkperf begins 60 s later at most"),
        ("[a]\n[b]\nstartdelay=40\n", "the loads run together for a part of 60 s only"),
        ("[a]\n[b]\nstonewall\n[c]\nstartdelay=70\n", "it counts from the start of fio; tkperf's from that of the"),
    ],
)
def test_late_starts_that_tkperf_cannot_make_are_refused(jobs: str, reason: str) -> None:
    """A late start is refused if the delay exceeds 60 s or half the runtime, or if the delays of two jobs count from
    different start times.
    """
    assert reason in refusals_of(GLOBAL + jobs)[0]


def test_a_delay_of_all_or_before_a_stonewall_delays_nothing() -> None:
    """tkperf omits a delay if no other load begins before the delayed load, or if the delay ends before the group of
    the load starts. A line of the output contains the reason.
    """
    _, alone = convert(f"{GLOBAL}[a]\nstartdelay=5\n")
    assert "not carried over: startdelay=5: no other load begins before it ([a])" in alone
    _, later = convert(f"{GLOBAL}[a]\n[b]\nstonewall\nstartdelay=5\n[c]\n")
    assert "not carried over: startdelay=5: it counts from the start of fio, long before this job ([b])" in later


def test_flushes_from_a_queue_are_carried_over_with_what_they_need() -> None:
    """Flushes at a queue depth above 1 are converted with a note about the required version of fio. Only newer versions
    flush as requested at such a depth, and the file does not show which version will run.
    """
    written, report = convert(f"[a]\n{TIMED}rw=write\niodepth=4\nfsync=8\n")
    load = tomllib.loads(written)["loads"]["a"]
    assert (load["io_depth"], load["flush_every"]) == (4, 8)
    assert any("flush_every, which needs fio 3.38 or newer at a queue depth of 4" in line for line in report)


def test_flushes_between_reads_are_carried_over_with_what_they_need() -> None:
    """A job that reads, writes and flushes is converted with a note about the required version of fio. Older versions
    flush again after each read.
    """
    _, report = convert(f"[a]\n{TIMED}rw=randrw\nfsync=8\n")
    assert any("flush_every, which needs fio 3.38 or newer in a load that also reads" in line for line in report)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("rw=write\nfsync=8\nfdatasync=8", "on a block device it is the same flush as fsync: leave one out"),
        ("rw=randrw\npercentage_random=10,20", "reads and writes of a load have the same share of random addresses"),
        ("rw=randrw\nrate=1m,3m", "1,048,576 of reads and 3,145,728 of writes are not 50 % reads"),
        ("rw=randrw\nrate=1m,", "1,048,576 of reads and 0 of writes are not 50 % reads"),
        ("rate=1m\nrate_iops=5", "fio takes rate or rate_iops, not both"),
        ("rw=trim\nbs=2300m", "a block size is a multiple of 512 bytes, 2 GiB at most"),
        ("bs=32m", "a block size is a multiple of 512 bytes, 16 MiB at most"),
        ("offset=1g\nsize=50%", "the offset has another unit: write both in percent, or both in bytes"),
        ("rw=randread\nrate=1m\nrate_process=poisson\nbssplit=4k/50:8k/50", "random arrivals of the smallest block's"),
    ],
)
def test_combinations_that_no_load_has_are_refused(options: str, reason: str) -> None:
    """If a load of tkperf cannot combine some options, these options are refused, and the message states what the user
    can do.
    """
    assert reason in refusals_of(f"[a]\n{TIMED}{options}\n")[0]


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ("rw=write\npercentage_random=50", "percentage_random=50: fio takes it for random jobs only"),
        ("rw=randread\nrate=,5m", "rate=,5m: it limits no I/Os of this job"),
        ("rw=read\nfsync=8", "fsync=8: fio flushes after writes, and the job has none"),
        ("rw=read\nba=8k", "ba=8k: fio aligns random I/Os only"),
        ("thinktime_blocks=8", "thinktime_blocks=8: without thinktime nothing pauses"),
        ("loops=500000", "loops=500000: the runtime ends the load"),
        ("ss=iops:5%", "ss=iops:5%: fio would end the load when it is steady, but tkperf runs it for the whole"),
        ("bs=4k\nblocksize=8k", "bs=4k: a later bs counts"),
        ("ioengine=rbd", "ioengine=rbd: tkperf does the same I/Os on the DEVICE of the run"),
    ],
)
def test_what_is_left_out_has_a_reason(options: str, line: str) -> None:
    """An option that has no use in its job is left out, and the output contains the reason."""
    _, options_of_it = convert(f"[a]\n{TIMED}{options}\n")
    assert any(each.startswith(f"not carried over: {line}") for each in options_of_it)


def test_addresses_that_fio_would_not_repeat_are_said() -> None:
    """Without norandommap, fio uses each block once before it uses a block again. tkperf draws every address
    independently, and a line of the output reports this difference. The line is missing if the job has norandommap or
    zones.
    """
    said = "assumed: norandommap: every address is drawn anew, where fio takes each block once before any again ([a])"
    zones = "random_distribution=zoned:50/5:50/95"
    for options, is_said in (("", True), ("norandommap=0", True), ("norandommap", False), (zones, False)):
        _, lines = convert(f"[a]\n{TIMED}rw=randwrite\n{options}\n")
        assert (said in lines) is is_said


def test_what_the_user_asks_for_beyond_the_file_is_said() -> None:
    """The output lists the changes that --direct, --align-4k and --runtime made. Each of these three options changes a
    job only if the job file contains a different value or no value.
    """
    text = "[a]\nioengine=libaio\nbuffered=1\nrw=write\n[b]\nstonewall\ndirect=1\nnorandommap\n"
    text += "rw=randread\nbssplit=8k/50:16k/50\n"
    wishes = Wishes(direct=True, align_4k=True, runtime_s=20.0)
    written, options = convert(text, wishes=wishes)
    fill, stream = tomllib.loads(written)["phases"]
    assert (fill["kind"], stream["kind"], stream["longest_s"]) == ("fill", "stream", 20)
    assert [line for line in options if line.startswith("assumed: ")] == [
        "assumed: direct=1 in place of buffered I/O (--direct) ([a])",
        "assumed: blockalign=4k in place of 8k, the default of fio (--align-4k) ([b])",
        "assumed: runtime=20 (--runtime) ([b])",
    ]
    small = "[a]\ndirect=1\nrw=randread\nbs=4k\nba=8k\nruntime=9\n"
    with pytest.raises(OptionsRefusedError):
        convert(small, wishes=wishes)


def test_all_refusals_are_found_at_once() -> None:
    """All refusals of a job file are reported at once, and the message states what the user can do."""
    with pytest.raises(OptionsRefusedError) as raised:
        convert("[a]\nruntime=1\nverify=md5\nnrfiles=2\n[b]\nstonewall\nruntime=1\nsync=1\n")
    assert str(raised.value) == (
        "a.fio: 5 options cannot be kept, so tkperf wrote no workload file. Change, add or remove the options in the "
        "job file, or pass the option of from-fio that the line of the refusal names"
    )


def test_streams_are_cut_into_slices_without_a_rest() -> None:
    """The warm-up and the stream each last a whole number of slices, even if the job file specifies other lengths."""
    for runtime, ramp, slice_s in (
        ("60", "0", 10),
        ("2h", "10m", 60),
        ("3", "1", 1),
        ("90", "5", 5),
        ("500ms", "0", 0.5),
        ("7", "0", 1),
        ("1300ms", "0", 0.1),
    ):
        text = f"[a]\n{TIMED}runtime={runtime}\nramp_time={ramp}\n"
        (phase,) = tomllib.loads(convert(text)[0])["phases"]
        assert phase["slice_s"] == slice_s


def test_a_fill_precedes_what_is_measured() -> None:
    """A fill precedes the measured stream. The fill's option ``loops`` becomes its number of passes."""
    fill, stream = tomllib.loads(convert_file("fill-then-random")[0])["phases"]
    assert fill == {"kind": "fill", "load": "precondition", "passes": 2}
    assert (stream["kind"], stream["longest_s"]) == ("stream", 1800)


def test_odd_names_stay_text() -> None:
    """Unusual names in a job file become only comments and strings of the workload file, so the file remains valid
    TOML.
    """
    name = 'a"\\ \x1b[2J é]\t'
    text = f"[{name}]\n{TIMED}description=\x07x\n"
    document = tomllib.loads(convert(text, file='b"\n.fio')[0])
    assert list(document["loads"]) == ['a"\\ [2J é]']
    assert document["title"] == 'fio job file b" .fio'


def test_any_other_option_is_named() -> None:
    """The output names every option that was not converted, and contains the reason. This includes options without an
    effect.
    """
    text = f"[global]\n{TIMED}rw=randread\nnorandommap\n[a]\nverify=0\nrwmixread=70\n[b]\nstonewall\n"
    written, options = convert(text)
    left = [line for line in options if not line.startswith("carried over: ")]
    assert left == [
        "not carried over: ioengine=libaio: tkperf uses io_uring or libaio (all jobs)",
        "not carried over: rwmixread=70: the job does not mix reads and writes ([a])",
        "without effect: direct=1: the I/O of tkperf is always direct (all jobs)",
        "without effect: time_based: every load of tkperf lasts its whole time (all jobs)",
        "without effect: norandommap: tkperf draws random addresses independently, from its own random sequence (all "
        "jobs)",
        "without effect: verify=0: this value asks for nothing ([a])",
        "missing: the workload has no purge and no fill before its first reads, and a drive answers for addresses "
        "that were never written faster than for data. To prepare the drive, remove the # from the phases of the "
        "kinds purge and fill in the workload file",
    ]
    assert set(options) <= {line[2:] for line in written.splitlines()}


def test_a_waiting_engine_has_no_queue() -> None:
    """If the I/O engine waits for each I/O, iodepth is not converted. The output states why the queue depth is 1."""
    _, options = convert(f"[a]\n{TIMED}iodepth=32\nioengine=sync\n")
    assert "not carried over: iodepth=32: sync waits for each I/O ([a])" in options
    assert "carried over: ioengine=sync -> io_depth, which is 1 because the engine waits for each I/O ([a])" in options


@pytest.mark.parametrize("name", NAMES)
def test_every_option_is_accounted_for(name: str) -> None:
    """The output of the conversion names every option of a job file."""
    named = {line.partition(": ")[2].partition("=")[0].partition(" ")[0].rstrip(":") for line in convert_file(name)[1]}
    text = (JOBS / f"{name}.fio").read_text()
    given = set(re.findall(r"^\s*(?!include)([a-z_]+)", text, re.MULTILINE))
    assert given <= named


def test_no_option_has_two_fates() -> None:
    """An option is either converted, left out, without effect or refused. Each of these four cases has a table of
    options, and no option is in two tables.
    """
    tables = (CARRIED_OVER, LEFT_OUT, WITHOUT_EFFECT, REFUSED)
    assert sum(map(len, tables)) == len({name for table in tables for name in table})


# These options belong to I/O engines that Debian's fio lacks, are not listed by --enghelp of io_uring and libaio, or
# belong to a profile of fio.
OF_OTHER_ENGINES = {
    "threads",
    "apptag",
    "apptag_mask",
    "busy_poll",
    "clientname",
    "clustername",
    "cont",
    "libblkio_driver",
    "libblkio_path",
    "md_per_io_size",
    "namenode",
    "nfs_url",
    "pi_act",
    "pi_chk",
    "pool",
    "rbdname",
    "uri",
}
# These options exist in fio 3.42 but not in fio 3.33, or were renamed between these versions. The old name of a renamed
# option became an alias.
NEWER = {
    "comm",
    "dataplacement",
    "dp_scheme",
    "end_syncfs",
    "fdp",
    "job_start_clock_id",
    "libaio_vectored",
    "log_issue_time",
    "log_window_value",
    "num_range",
    "plid_select",
    "plids",
    "priohint",
    "ramp_size",
    "readfua",
    "spr_cs",
    "spr_num_regions",
    "spr_op",
    "sprandom",
    "steadystate_check_interval",
    "thinkcycles",
    "uncached",
    "verify_async_cpus",
    "verify_header_seed",
    "verify_pattern_interval",
    "verify_write_sequence",
    "verifysort",
    "verifysort_nr",
    "write_mode",
    "writefua",
}
RENAMED = {
    "dataplacement",
    "log_alternate_epoch",
    "log_window_value",
    "plid_select",
    "plids",
    "randrepeat",
    "steadystate_check_interval",
}


@pytest.mark.fio
def test_the_tables_have_the_names_of_fio(tmp_path: Path) -> None:
    """The tables contain all option names of fio and of the engines that tkperf uses, and all aliases."""

    def ask(*words: str) -> str:
        done = subprocess.run(["fio", *words], check=True, capture_output=True, text=True, cwd=tmp_path)
        return done.stdout

    listed = ask("--cmdhelp=all") + ask("--enghelp=io_uring") + ask("--enghelp=libaio")
    known = set(re.findall(r"^ *([a-z][\w-]*) *: ", listed, re.MULTILINE))
    tables = CARRIED_OVER.keys() | LEFT_OUT.keys() | WITHOUT_EFFECT.keys() | REFUSED.keys()
    version = tuple(map(int, re.findall(r"\d+", ask("--version"))[:2]))
    # fio supports these options, but does not list them.
    tables -= OF_OTHER_ENGINES
    assert version > (3, 42) or known <= tables | ALIASES.keys()
    assert tables - known <= {"bs_is_seq_rand"} | (NEWER if version < (3, 42) else set())
    names = sorted(tables & known)
    with ThreadPoolExecutor(8) as pool:  # each call mostly waits and needs little CPU time
        helps = pool.map(lambda name: ask(f"--cmdhelp={name}"), names)
        found = {name: re.findall(r"^ +alias: (\w+)$", text, re.M) for name, text in zip(names, helps, strict=True)}
    aliases = {alias: name for name, of_name in found.items() for alias in of_name}
    assert aliases.items() <= ALIASES.items()
    assert {ALIASES[alias] for alias in ALIASES.keys() - aliases.keys()} <= (RENAMED if version < (3, 42) else set())


@pytest.mark.fio
@pytest.mark.parametrize(
    "line",
    [
        "bs=0",
        "bs=(2*2k)",
        "rw=rand",
        "rw=randreadx",
        "iodepth=0",
        "rwmixread=101",
        "random_distribution=zoned:50/5:40/95",
        "direct=2",
        "direct=yes",
        "direct",
        "stonewall=abc",
        "kb_base=1001",
        "runtime=",
        "rate_process=x",
        "buffer_compress_percentage=101",
    ],
)
def test_what_fio_refuses_is_refused(line: str, tmp_path: Path) -> None:
    """tkperf refuses a value that fio itself refuses."""
    rw = "rw=randwrite\n"
    file = tmp_path / "a.fio"
    file.write_text(f"[a]\n{rw}size=1m\nfilename=x\n{line}\n")
    done = subprocess.run(["fio", "--parse-only", file], check=False, capture_output=True, cwd=tmp_path)
    assert done.returncode != 0
    assert any(f", {line}: " in refusal for refusal in refusals_of(f"[a]\n{TIMED}{rw}{line}\n"))
