"""Numbers in fio's results. The tests cover sizes in fio's notation, bytes and I/Os of every version, and results of a
real fio.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.interop.fio_files import VERSIONS, direction, document, job, parse_fio_json, written
from tkperf.interop.fio_options import block_sizes_of, parse_number, parse_time_s
from tkperf.interop.imported import ImportedRun
from tkperf.model.errors import UsageError
from tkperf.model.record import StepRecord
from tkperf.model.workload import Access


def run_of(text: str) -> ImportedRun:
    return parse_fio_json([("a.json", text)], name="x")


def step_of(text: str) -> StepRecord:
    (step,) = run_of(text).tests[0].steps
    return step


# fio's notation

# Each entry contains a text, its bytes with kb_base=1024, and its bytes with kb_base=1000. fio 3.33 used these values
# in an experiment.
SIZES = [
    ("4096", 4096, 4096),
    ("4k", 4096, 4000),
    ("4K", 4096, 4000),
    ("4kb", 4096, 4000),
    ("4KB", 4096, 4000),
    ("4KiB", 4000, 4096),
    ("4kib", 4000, 4096),
    ("4ki", 4096, 4000),
    ("4096b", 4096, 4096),
    ("4b", 4, 4),
    ("1m", 1048576, 1000000),
    ("1MB", 1048576, 1000000),
    ("1MiB", 1000000, 1048576),
    ("0x1000", 4096, 4096),
    ("0X1000", 4096, 4096),
    ("010k", 10240, 10000),
    ("4 k", 4, 4),
    ("4kk", 4096, 4000),
    ("4.5k", 4, 4),
    ("1e3", 1, 1),
    ("0x1000b", 65547, 65547),
    ("0x4k", 4, 4),
]


@pytest.mark.parametrize(("text", "binary", "decimal"), SIZES)
def test_sizes_as_fio_reads_them(text: str, binary: int, decimal: int) -> None:
    """Sizes have the same value as in fio. With kb_base=1024, kB means 1,024 bytes and KiB means 1,000 bytes. With
    kb_base=1000, kB means 1,000 bytes and KiB means 1,024 bytes (fio HOWTO, and an experiment).
    """
    assert (parse_number(text, 1024), parse_number(text, 1000)) == (binary, decimal)


@pytest.mark.fio
@pytest.mark.parametrize("kb_base", [1024, 1000])
def test_fio_itself_reads_sizes_so(tmp_path: Path, kb_base: int) -> None:
    """The installed fio interprets the sizes in the same manner. Each of its I/Os has the expected number of bytes."""
    for text, binary, decimal in SIZES:
        size = binary if kb_base == 1024 else decimal
        if size < 512:
            continue
        words = ["--ioengine=null", "--size=64m", "--number_ios=5", "--rw=write", f"--bs={text}"]
        of_job = fio(tmp_path, f"--kb_base={kb_base}", *words)["jobs"][0]
        assert of_job["write"]["io_bytes"] == size * of_job["write"]["total_ios"], text


@given(st.text(max_size=12))
def test_any_text_is_a_number_or_none(text: str) -> None:
    for parsed in (parse_number(text), parse_time_s(text)):
        assert parsed is None or parsed >= 0
    for side in ("read", "write"):
        for name in ("bs", "bsrange", "bssplit"):
            sizes = block_sizes_of({name: text}, side, 1024)
            assert all(size is None or size >= 0 for size in sizes)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("60", 60), ("60s", 60), ("1m", 60), ("2h", 7200), ("500ms", 0.5), ("0", None), ("soon", None)],
)
def test_times_as_fio_reads_them(text: str, seconds: float | None) -> None:
    assert parse_time_s(text) == seconds


@pytest.mark.parametrize(
    ("options", "block_bytes"),
    [
        ({"bs": "4KB"}, 4096),
        ({"bs": "4kb"}, 4096),
        ({"bs": "0x1000"}, 4096),
        ({"bs": "1MB"}, 1 << 20),
        ({"bs": "4KiB", "kb_base": "1000"}, 4096),
        ({"bs": "4k-4k"}, 4096),
        ({"bs": "8k,4k,16k"}, 4096),
        ({"blocksize": "16k"}, 16_384),
        ({"bssplit": "4k/100"}, 4096),
        ({"bssplit": "8k/40:8k/60"}, 8192),
        ({"bssplit": "8k/100:4k/0"}, 8192),
        ({"bssplit": "4k/50:8k/50,16k/100"}, 16_384),
        ({"bsrange": "4k-4k"}, 4096),
        ({"bsrange": "4k-4k,8k-8k"}, 8192),
        ({"bs": "16k", "blocksize_range": "4k-4k"}, 4096),
        ({}, 4096),
    ],
)
def test_one_size_however_it_is_given(options: dict[str, str], block_bytes: int) -> None:
    """The block size is found in every form of the option. If the option is missing, the block size is fio's default of
    4 KiB. For writes, tkperf uses the size for writes.
    """
    known = {"rw": "randwrite"} | options
    text = json.dumps(document(job(writes=1000, block_bytes=block_bytes, options=known)))
    step = step_of(text)
    assert step.workload.block_size_bytes == block_bytes
    assert step.measurement.bytes == 1000 * block_bytes


def test_a_size_that_was_another_is_taken_as_measured() -> None:
    """If bs is 4KiB and the I/Os have 4,096 bytes, the measured size is imported with a warning. According to fio's
    documentation, 4KiB means 4,000 bytes.
    """
    text = json.dumps(document(job(writes=1000, options={"rw": "randwrite", "bs": "4KiB"})))
    run = run_of(text)
    assert run.tests[0].steps[0].workload.block_size_bytes == 4096
    (warning,) = run.warnings
    assert warning.code == "block-size-measured"
    assert "bs=4KiB is 4,000 bytes by fio's documentation" in warning.text


@pytest.mark.parametrize(
    ("options", "block_bytes", "says"),
    [
        ({"bs": "4KiB"}, 4000, "I/Os are of 4,000 bytes, no multiple of 512 (bs=4KiB; with kb_base=1024"),
        ({"bs": "8k"}, 6144, "its I/Os are not of 8k as its options say"),
        ({"bssplit": "4k/50:8k/50"}, 6144, "bssplit=4k/50:8k/50 is I/Os of several sizes"),
        ({"bsrange": "4k-8k"}, 6144, "bsrange=4k-8k is I/Os of several sizes"),
    ],
)
def test_sizes_that_are_no_cell(options: dict[str, str], block_bytes: int, says: str) -> None:
    known = {"rw": "randwrite"} | options
    text = json.dumps(document(job(writes=1000, block_bytes=block_bytes, options=known)))
    with pytest.raises(UsageError) as raised:
        run_of(text)
    assert says in str(raised.value)


# Versions


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("block_bytes", [512, 4096, 131_072])
def test_every_version_gives_the_same_numbers(version: str, block_bytes: int) -> None:
    """The results of every version of fio lead to the same numbers for 5,280 I/Os in 10 s. The results may contain KiB
    or bytes, us or ns, and an I/O count or no I/O count.
    """
    known = {"rw": "randwrite", "bs": str(block_bytes), "iodepth": "8"}
    text = json.dumps(
        document(job(version=version, writes=5280, block_bytes=block_bytes, depth=8, options=known), version=version)
    )
    seen, workload = step_of(text).measurement, step_of(text).workload
    assert (seen.ios, seen.iops) == (5280, 528)
    assert seen.bytes == 5280 * block_bytes
    assert seen.latency_mean_us == pytest.approx(55)
    assert (workload.block_size_bytes, workload.io_depth) == (block_bytes, 8)


def test_a_rate_cut_off_to_whole_ios_is_not_the_count() -> None:
    """The I/O count of a fio 2.1 result is computed from its bytes. The rate cannot be used for this purpose, because
    fio 2.1 truncates the rate to whole I/Os per second, such as 5 for 5.9.
    """
    text = json.dumps(document(job(version="2.1.11", writes=59), version="2.1.11"))
    assert step_of(text).measurement.ios == 59


@pytest.mark.parametrize("is_kib", [True, False])
def test_the_bandwidth_tells_the_unit_of_bytes(is_kib: bool) -> None:
    """tkperf uses the bandwidth to decide whether the field io_bytes contains KiB or bytes, because development
    versions between two releases had changed the unit of only one of these fields.
    """
    of_job = job(version="2.10", writes=100_000, options={"rw": "randwrite", "bs": "4k"})
    if not is_kib:
        of_job["write"]["io_bytes"] *= 1024
    text = json.dumps(document(of_job, version="2.10"))
    assert step_of(text).measurement.bytes == 100_000 * 4096


def test_bytes_that_nothing_explains_are_left_out() -> None:
    of_job = job(writes=100_000, options={"rw": "randwrite", "bs": "4k"})
    of_job["write"]["io_bytes"] *= 30
    with pytest.raises(UsageError, match="bytes, bandwidth and runtime contradict"):
        run_of(json.dumps(document(of_job)))


@pytest.mark.parametrize("reads", [9487, 9512, 9460])
def test_a_mix_that_came_out_is_the_usual_one_near_it(reads: int) -> None:
    """Without options, a measured mix near a usual mix counts as the usual mix. Otherwise, random variation would
    divide 95/5 into several cells.
    """
    text = json.dumps(document(job(version="2.2.10", reads=reads, writes=10_000 - reads), version="2.2.10"))
    assert step_of(text).workload.read_percent == 95


def test_queue_depths_of_old_results_are_told_apart() -> None:
    """Results without options are separated by their queue depth. Otherwise, QD1 and QD32 would be rounds of one
    workload.
    """
    files = [
        (f"pass={number}_oio={depth}.json", written(100 * depth + number, 60.0 * number, version="2.2.10", depth=depth))
        for number in range(1, 6)
        for depth in (1, 32)
    ]
    run = parse_fio_json(files, name="x")
    rounds: dict[str, list[float]] = {}
    for step in run.tests[0].steps:
        rounds.setdefault(step.section, []).append(step.measurement.iops)
    assert rounds == {"fio RND TC1/QD1": [101, 102, 103, 104, 105], "fio RND TC1/QD32": [3201, 3202, 3203, 3204, 3205]}


def test_numbers_that_c_prints_of_none() -> None:
    """Numbers such as -nan, which old versions of fio print, are skipped, and the rest of the result is read."""
    text = written(7).replace('"stddev": 0.0', '"stddev": -nan').replace('"ctx": 1000', '"ctx": nan')
    assert "nan" in text
    assert step_of(text).measurement.iops == 7


def test_paths_of_windows_that_nobody_escaped() -> None:
    """If a Windows path contains backslashes that fio did not escape, the backslashes are read as characters of the
    path.
    """
    text = written(7, options={"filename": "PATH"}).replace("PATH", r"\\.\PhysicalDrive1\user")
    assert step_of(text).measurement.iops == 7
    assert r"\.\PhysicalDrive1\user" in step_of(text).job_file


def test_a_job_of_some_ms_is_told() -> None:
    (warning,) = run_of(written(10_000, runtime_ms=16)).warnings
    assert warning.code == "very-short"
    assert "(16 ms)" in warning.text


@pytest.mark.parametrize("wrap", ["[{}]", '{{"host": "a", "fio": {}}}', "a\n{}\nb", '{{"runs": [1, {}]}}'])
def test_documents_within_others(wrap: str) -> None:
    """fio's documents are found within a list, an object or a log, as other tools store them."""
    assert step_of(wrap.format(written(7))).measurement.iops == 7


# Client and server


def of_clients(*rows: dict[str, Any]) -> str:
    return json.dumps(
        {
            "fio version": "fio-3.33",
            "timestamp": 1_700_000_000,
            "global options": {"rw": "randwrite", "bs": "4k", "iodepth": "4", "direct": "1"},
            "client_stats": list(rows),
            "disk_util": [],
        }
    )


def row(host: str, ios: int, name: str = "a", **more: Any) -> dict[str, Any]:
    found = job(name=name, writes=ios, hostname=host, port=8765, **more)
    if name == "All clients":
        del found["job options"]
    else:
        found["job options"] = {"numjobs": "2"} | more.get("options", {})
    return found


def test_client_results_are_each_hosts_and_all_of_them() -> None:
    """In a result of fio's client, the rows of a host are added, in any order. fio's row "All clients" is a separate
    section.
    """
    text = of_clients(row("one", 100), row("two", 300), row("one", 200), row("two", 400), row("x", 1000, "All clients"))
    found = {step.section: step.measurement.ios for step in run_of(text).tests[0].steps}
    assert found == {
        "fio RND TC2/QD4, host one": 300,
        "fio RND TC2/QD4, host two": 700,
        "fio RND TC4/QD4, all clients": 1000,
    }


def test_a_sum_of_several_workloads_is_left_out() -> None:
    text = of_clients(
        row("one", 100),
        row("one", 200, "b", group=1, options={"rw": "write"}),
        row("two", 300),
        row("two", 400, "b", group=1, options={"rw": "write"}),
        row("two", 1000, "All clients", group=1),
    )
    run = run_of(text)
    assert len(run.tests[0].steps) == 4
    assert any("sum over all clients is one of several workloads" in each.text for each in run.warnings)


SERVERS = [("one", {"bs": "4k", "rw": "randwrite"}), ("two", {"bs": "8k", "rw": "write", "rate_iops": "200"})]


def of_servers(entries: list[Any], *rows: dict[str, Any]) -> str:
    """Return the output of fio's client with several servers, in the form that fio uses since version 3.39."""
    return json.dumps(
        {
            "fio version": "fio-3.42",
            "timestamp": 1_700_000_000,
            "global options": entries,
            "client_stats": list(rows),
            "disk_util": [],
        }
    )


def entry(host: str, **options: str) -> dict[str, Any]:
    known = {"ioengine": "libaio", "direct": "1", "iodepth": "4"}
    return {"hostname": host, "port": 8765} | known | options


def own_row(host: str, block_bytes: int, **more: Any) -> dict[str, Any]:
    """Return a job whose own options do not describe its load."""
    return row(host, 100, block_bytes=block_bytes, **more) | {"job options": {"filename": "/x"}}


def test_each_server_has_its_own_global_options() -> None:
    """Since fio 3.39, the global options can be a list with an entry for each server. Each job then uses the entry of
    its server.

    The host and port in an entry are not options.
    """
    entries = [entry(host, **options) for host, options in SERVERS]
    run = run_of(of_servers(entries, own_row("two", 8192), own_row("one", 4096)))
    found = {step.section: step.workload.block_size_bytes for step in run.tests[0].steps}
    assert found == {"fio RND TC1/QD4": 4096, "fio SEQ TC1/QD4, rate_iops=200": 8192}
    assert not any("hostname" in step.job_file for step in run.tests[0].steps)


def test_a_sum_over_servers_with_different_limits_is_left_out() -> None:
    """If servers have different rate limits, the sum over the servers is left out, because it does not describe a
    single load. The sum is left out even if block size, threads and queue depth are equal.
    """
    entries = [entry("one", rw="write", rate_iops="100"), entry("two", rw="write", rate_iops="200")]
    total = row("x", 200, "All clients")
    run = run_of(of_servers(entries, own_row("one", 4096), own_row("two", 4096), total))
    assert len(run.tests[0].steps) == 2
    assert any("one of several workloads" in each.text for each in run.warnings)


@pytest.mark.parametrize(
    ("entries", "hosts", "why"),
    [
        ([entry("one", rw="write"), entry("one", rw="read")], ["one"], "two different entries for one server"),
        ([entry("one", rw="write"), {"rw": "write"}], ["one"], "names no server"),
        ([entry("one", rw="write"), "rw=write"], ["one"], "names no server"),
        ([entry("one", rw="write")], ["one", None], "one of its jobs names no server"),
        ([entry("one", rw="write")], ["two"], "none of its options is rw"),
        ([], ["one"], "none of its options is rw"),
    ],
)
def test_options_that_no_server_is_known_for_are_no_workload(
    entries: list[Any], hosts: list[str | None], why: str
) -> None:
    """If the options of a job's server are not known, the job is refused. Without these options, a sequential load
    would be interpreted as random I/O at queue depth 1.
    """
    rows = [own_row(host or "", 4096) for host in hosts]
    for each, host in zip(rows, hosts, strict=True):
        if host is None:
            del each["hostname"]
    with pytest.raises(UsageError, match=why):
        run_of(of_servers(entries, *rows))


def test_a_job_without_rw_reads_sequentially_or_is_left_out() -> None:
    """A job that lacks the option rw and that only read data is sequential, because ``rw=read`` is fio's default. A job
    that lacks the option rw and that wrote data is refused, because its options are incomplete.
    """
    options = {"name": "job", "bs": "4k", "iodepth": "4"}
    run = run_of(json.dumps(document(job(reads=100, options=options))))
    assert [step.workload.access for step in run.tests[0].steps] == [Access.SEQUENTIAL]
    with pytest.raises(UsageError, match="none of its options is rw"):
        run_of(json.dumps(document(job(writes=100, options=options))))
    with pytest.raises(UsageError, match="replays"):
        run_of(json.dumps(document(job(reads=100, options=options | {"read_iolog": "trace"}))))


@pytest.mark.parametrize(
    ("version", "ioengine", "iodepth", "rounded"),
    [
        ("3.33", "io_uring", "20", True),
        ("3.33", "io_uring", "32", False),
        ("3.33", "libaio", "20", False),
        ("3.42", "io_uring", "20", False),
    ],
)
def test_a_depth_that_fio_rounded_up_is_told(version: str, ioengine: str, iodepth: str, rounded: bool) -> None:
    """If fio rounded the queue depth up, a warning reports this. For example, fio before 3.39 with io_uring kept 32
    I/Os outstanding for a depth of 20.
    """
    text = written(100, version=version, options={"ioengine": ioengine, "iodepth": iodepth})
    found = {warning.code for warning in run_of(text).warnings}
    assert ("depth-rounded" in found) is rounded


@pytest.mark.parametrize(
    ("version", "options", "reads", "writes", "flushes", "told"),
    [
        # Numbers of flushes that fio 3.33 reported. With libaio, this version does not count the flushes of fdatasync.
        ("3.33", {"fsync": "16", "ioengine": "psync"}, 9005, 995, 597, "fsync=16, 597 flushes for 995 writes"),
        ("3.33", {"fdatasync": "4", "ioengine": "libaio", "iodepth": "4"}, 4970, 5030, 0, "(fdatasync=4)"),
        ("3.33", {"fsync": "4", "ioengine": "io_uring", "iodepth": "8"}, 0, 10000, 5735, "5,735 flushes"),
        ("3.33", {"fsync": "4", "ioengine": "libaio", "iodepth": "8"}, 0, 10000, 2499, None),
        ("3.33", {"fsync": "4", "ioengine": "io_uring", "iodepth": "1"}, 0, 10000, 2499, None),
        ("3.33", {"fsync": "0", "ioengine": "psync"}, 9005, 995, 0, None),
        ("3.38", {"fsync": "16", "ioengine": "psync"}, 9005, 995, 62, None),
        # In this job, no read follows the last of the 16 writes.
        ("3.33", {"fsync": "16", "ioengine": "psync"}, 15, 985, 61, None),
    ],
)
def test_flushes_that_no_option_asked_for_are_told(
    version: str, options: dict[str, str], reads: int, writes: int, flushes: int, told: str | None
) -> None:
    """If fio flushed more often than ``fsync`` or ``fdatasync`` requests, a warning reports this. Versions of fio
    before 3.38 flushed again after each read until the next write. They also flushed too often with io_uring at a queue
    depth above 1.
    """
    pattern = "randrw" if reads else "randwrite"
    own = {"rw": pattern, "rwmixread": str(round(100 * reads / (reads + writes))), "bs": "4k", **options}
    flushed = job(reads=reads, writes=writes, options=own) | {"sync": {"total_ios": flushes}}
    warnings = run_of(json.dumps(document(flushed, version=version))).warnings
    texts = [warning.text for warning in warnings if warning.code == "flushed-too-often"]
    assert len(texts) == (told is not None)
    if told is not None:
        assert told in texts[0]


def test_an_empty_job_is_left_out_with_a_clear_name() -> None:
    """An empty job next to the sum of its group (``group_reporting``) is left out, and changes no number of the sum.
    The warning never calls the job None.
    """
    summed = job(reads=1000, options={"rw": "randread", "bs": "4k", "group_reporting": ""})
    result = document(summed)
    run = run_of(json.dumps(result | {"jobs": [{}, *result["jobs"]]}))
    (step,) = run.tests[0].steps
    assert (step.workload.jobs, step.measurement.read.ios) == (1, 1000)
    (warning,) = (one for one in run.warnings if one.code == "job-left-out")
    assert "(no name)" in warning.text
    assert "None" not in warning.text
    with pytest.raises(UsageError, match=r"job \(no name\) is left out .* it moved no data"):
        run_of(json.dumps(result | {"jobs": [{}]}))


# Real fio


def fio(folder: Path, *words: str, name: str = "job") -> dict[str, Any]:
    """Run the installed fio once on a scratch file, and return its document."""
    path = folder / "out.json"
    path.unlink(missing_ok=True)
    common = ["--directory", str(folder), "--filename=scratch", "--output-format=json+", "--output", str(path)]
    subprocess.run(
        ["fio", f"--name={name}", *common, *words],
        check=True,
        capture_output=True,
        timeout=60,
        cwd=folder,  # fio creates files in the folder in which it is started
    )
    document: dict[str, Any] = json.loads(path.read_text())
    return document


@pytest.mark.fio
@pytest.mark.parametrize(
    "words",
    [
        ["--rw=randwrite", "--bs=4k"],
        ["--rw=randread", "--bs=8k", "--numjobs=2", "--group_reporting", "--thread"],
        ["--rw=randrw", "--rwmixread=65", "--bs=4KB", "--numjobs=2", "--thread"],
        ["--rw=write", "--bssplit=64k/100"],
        ["--rw=randrw", "--rwmixwrite=100", "--bs=4k-4k", "--unified_rw_reporting=both"],
    ],
    ids=" ".join,
)
def test_real_results_are_what_fio_says(tmp_path: Path, words: list[str]) -> None:
    """The imported I/Os, bytes, rates, mean latency and percentiles equal the numbers that fio reports."""
    found = fio(tmp_path, "--size=16m", "--time_based", "--runtime=1", "--lat_percentiles=1", *words)
    step = step_of(json.dumps(found))
    listed = [(of_job, side) for of_job in found["jobs"] for side in ("read", "write") if of_job[side]["total_ios"]]
    of_fio = [of_job[side] for of_job, side in listed]
    seen = step.measurement
    assert seen.ios == sum(each["total_ios"] for each in of_fio)
    assert seen.bytes == sum(each["io_bytes"] for each in of_fio)
    longest_s = max(each["runtime"] for each in of_fio) / 1000
    assert seen.iops == pytest.approx(seen.ios / longest_s, rel=0.01)
    mean_ns = sum(each["lat_ns"]["mean"] * each["total_ios"] for each in of_fio) / seen.ios
    assert seen.both.latency_mean_ns == pytest.approx(mean_ns, rel=1e-6)
    assert seen.both.latency_max_ns == max(each["lat_ns"]["max"] for each in of_fio)
    if len(of_fio) == 1:
        assert seen.iops == pytest.approx(of_fio[0]["iops"], rel=0.01)
        percentiles = of_fio[0]["lat_ns"]["percentile"]
        ours = {percent: seen.both.histogram.percentile_ns(float(percent)) for percent in percentiles}
        known = {percent: value_ns for percent, value_ns in ours.items() if value_ns is not None}
        assert known
        assert known == {percent: pytest.approx(percentiles[percent], rel=1 / 32) for percent in known}


@pytest.mark.fio
def test_what_real_fio_verifies_or_reports_as_one_is_no_result(tmp_path: Path) -> None:
    """A job that verifies the data that it reads is refused. If group_reporting shows two jobs as one, these jobs are
    also refused.
    """
    verified = fio(tmp_path, "--size=1m", "--rw=write", "--bs=4k", "--verify=crc32c")
    with pytest.raises(UsageError, match="it verifies what it reads"):
        run_of(json.dumps(verified))
    plain = fio(tmp_path, "--size=1m", "--rw=write", "--bs=4k", "--verify=crc32c", "--do_verify=0")
    assert step_of(json.dumps(plain)).workload.read_percent == 0
    second = ["--name=b", "--rw=randread", "--size=1m", "--group_reporting"]
    as_one = fio(tmp_path, "--size=1m", "--rw=write", "--group_reporting", *second)
    with pytest.raises(UsageError, match="fio shows several jobs as one"):
        run_of(json.dumps(as_one))


def test_shapes_are_those_of_the_versions() -> None:
    """The generated files contain the keys of each version of fio. For example, io_kbytes exists since 2.21, and ns
    since 2.99.
    """
    has = {version: set(direction(version, 10, 1000, 4096, 5.0)) for version in VERSIONS}
    assert "io_kbytes" not in has["2.10"]
    assert "io_kbytes" in has["2.21"]
    assert "lat" in has["2.21"]
    assert "lat_ns" in has["2.99"]
    assert "total_ios" not in has["2.1.11"]
