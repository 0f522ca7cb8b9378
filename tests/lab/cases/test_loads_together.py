"""Loads that run at the same time on devices with known rates. The cases measure rates, flushes and trims.

The run file contains the exact counts of each stream (docs/reference/run-file.md). The kernel publishes the counts of
the device (``/sys/block/X/stat``).
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.lab.cases.conftest import Drive, Monitor, run_without_purge, shell, tkperf
from tests.lab.cases.test_numbers import null_device

PROFILE = Path(__file__).parent / "lab.toml"
MIB = 1 << 20
MOST_RATE_ERROR = 0.01
# A short pause of the emulated CPU is more than 1 % of a short step.
MOST_RATE_ERROR_OF_A_SHORT_STEP = 0.05
MOST_FLUSH_ERROR = 0.05
# All rates are so low that an emulated CPU reaches them on a busy host.
READER_IOPS, WRITER_IOPS, LOG_IOPS = 40, 20, 10
THROTTLED_IOPS, RATED_IOPS = 150, 50
# The emulated CPU adds about 10 ms to each flush, so the delay must be much longer.
FLUSH_DELAY_MS = 2000
CACHE_MIB = 16
# The loads of all workload files. Each workload file contains only the loads that it uses.
LOADS = {
    "reader": f"""
        access = "random"
        read_percent = 100
        block_size_kib = 4
        jobs = 1
        io_depth = 16
        offered_iops = {READER_IOPS}
    """,
    "writer": f"""
        access = "random"
        read_percent = 0
        block_size_kib = 4
        jobs = 1
        io_depth = 16
        offered_iops = {WRITER_IOPS}
    """,
    # The queue of this load is short. A step lasts until all I/Os are completed, and rates are calculated over this
    # whole time.
    "greedy": """
        access = "random"
        read_percent = 100
        block_size_kib = 4
        jobs = 1
        io_depth = 4
    """,
    "rated": f"""
        access = "random"
        read_percent = 100
        block_size_kib = 4
        jobs = 1
        io_depth = 16
        offered_iops = {RATED_IOPS}
    """,
    "log": f"""
        access = "sequential"
        read_percent = 0
        block_size_kib = 4
        jobs = 1
        flush_every = 4
        offered_iops = {LOG_IOPS}
    """,
    "log in turn": """
        access = "sequential"
        read_percent = 0
        block_size_kib = 4
        jobs = 1
        flush_every = 4
    """,
    "low reader": """
        access = "random"
        read_percent = 100
        block_size_kib = 4
        jobs = 1
        io_depth = 2
        offered_iops = 20
        range_end_percent = 50
    """,
    "trimmer": """
        access = "sequential"
        read_percent = 0
        trims = true
        block_size_kib = 1024
        jobs = 1
        offered_iops = 20
        range_begin_percent = 50
    """,
}


@dataclass(frozen=True, slots=True)
class Counted:
    """The counts of a stream over all its steps, and the duration of these steps."""

    duration_s: float
    ios: int
    flushes: int
    flush_sum_ns: int
    trim_bytes: int

    @property
    def iops(self) -> float:
        return self.ios / self.duration_s

    @property
    def flush_mean_ms(self) -> float:
        return self.flush_sum_ns / self.flushes / 1e6


def run_together(
    folder: Path,
    device: Path,
    consent: object,
    *streams: str,
    step_s: float,
    rounds: int = 1,
    more: tuple[str, ...] = (),
) -> dict[str, Counted]:
    """Run rounds in which these loads run at the same time. Return the counts of each stream."""
    loads = "\n".join(f'[loads."{name}"]\n{LOADS[name]}' for name in streams)
    names = ", ".join(f'"{name}"' for name in streams)
    (folder / "own.toml").write_text(
        f'format = 1\nname = "own"\ntitle = "Own"\n{loads}\n'
        f'[[phases]]\nkind = "rounds"\nsection = "Together"\ntogether = [{names}]\n'
        f"step_s = {step_s}\nrounds = {rounds}\n"
    )
    run_file = run_without_purge(folder, device, consent, folder / "own.toml", *more, profile=PROFILE)
    with closing(sqlite3.connect(run_file)) as db:
        rows = db.execute(
            "SELECT name, sum(duration_s), sum(stream.read_ios + stream.write_ios), sum(flush_ios), "
            "sum(flush_latency_sum_ns), sum(trim_bytes) "
            "FROM stream JOIN step ON step_sequence = sequence GROUP BY name"
        ).fetchall()
    counted = {name: Counted(*numbers) for name, *numbers in rows}
    assert set(counted) == set(streams)
    return counted


def read_stat(device: Path) -> list[int]:
    """Return the kernel's counters of a disk. Linux describes them in Documentation/block/stat.rst."""
    return [int(field) for field in Path(f"/sys/block/{device.name}/stat").read_text().split()]


def discarded_bytes(device: Path) -> int:
    return read_stat(device)[13] * 512


@contextmanager
def counted_flushes(device: Path) -> Iterator[Callable[[], int]]:
    """Yield a function that returns the number of flushes of a disk since its first write.

    Before the first write, tkperf itself flushes the device, because it checks whether the device contains data.
    """
    stop = threading.Event()
    # The kernel counts a flush as a write, but does not add it to the number of written sectors.
    written, flushes = read_stat(device)[6], [read_stat(device)[15]]

    def look() -> None:
        while not stop.is_set() and (stat := read_stat(device))[6] == written:
            flushes[0] = stat[15]
            time.sleep(0.005)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield lambda: read_stat(device)[15] - flushes[0]
    finally:
        stop.set()
        looking.join()


def test_streams_reach_their_rates_and_the_device_counts_their_flushes(tmp_path: Path) -> None:
    """If the rates are below the limit of the device, each stream reaches its offered rate. The device counts exactly
    the flushes that the log stream issued. The log stream issues one flush after every fourth write.
    """
    with null_device(1000, places=64, cache_mib=CACHE_MIB) as device, counted_flushes(device) as device_flushes:
        counted = run_together(tmp_path, device, device, "reader", "log", step_s=3)
        done = device_flushes()
    assert counted["reader"].iops == pytest.approx(READER_IOPS, rel=MOST_RATE_ERROR_OF_A_SHORT_STEP)
    assert counted["log"].iops == pytest.approx(LOG_IOPS, rel=MOST_RATE_ERROR_OF_A_SHORT_STEP)
    assert done == counted["log"].flushes
    assert counted["log"].flushes in (counted["log"].ios // 4, counted["log"].ios // 4 - 1)


def test_a_drive_counts_the_flushes_of_one_thread(nvme: Drive, tmp_path: Path) -> None:
    """The driver of an NVMe drive counts the same number of flushes as tkperf. The duration of a flush depends on the
    disk of the host.
    """
    with counted_flushes(nvme.path) as device_flushes:
        # With the write cache off, each write would become a flush of the host's disk.
        counted = run_together(
            tmp_path, nvme.path, nvme.serial, "reader", "log in turn", step_s=20, more=("--write-cache", "keep")
        )
        done = device_flushes()
    assert done == counted["log in turn"].flushes > 0


def test_offered_rates_on_a_device_of_known_answer_time(tmp_path: Path) -> None:
    """Three streams below the limit of a null_blk device, which completes each I/O after 2 ms, reach their offered
    rates.
    """
    with null_device(2000, places=64) as device:
        counted = run_together(tmp_path, device, device, "reader", "writer", "log", step_s=40)
    for name, known_iops in (("reader", READER_IOPS), ("writer", WRITER_IOPS), ("log", LOG_IOPS)):
        assert counted[name].iops == pytest.approx(known_iops, rel=MOST_RATE_ERROR)


def test_the_sum_of_streams_on_a_throttled_drive(nvme: Drive, monitor: Monitor, tmp_path: Path) -> None:
    """QEMU admits 150 IOPS. A stream with an offered rate reaches this rate, and a stream without an offered rate
    receives the remaining IOPS.
    """
    with monitor.throttled(f"{nvme.serial}-1", iops=THROTTLED_IOPS):
        counted = run_together(tmp_path, nvme.path, nvme.serial, "greedy", "rated", step_s=60)
    rest_iops = THROTTLED_IOPS - RATED_IOPS
    assert counted["rated"].iops == pytest.approx(RATED_IOPS, rel=MOST_RATE_ERROR)
    # QEMU admits the I/Os of a tenth of a second as a burst.
    assert counted["greedy"].iops == pytest.approx(rest_iops, abs=MOST_RATE_ERROR * THROTTLED_IOPS)


@contextmanager
def slow_flushes(device: Path, size_bytes: int) -> Iterator[Path]:
    """Yield a mapping over a device. The mapping delays flushes, but neither reads nor writes."""
    shell("modprobe dm-delay && udevadm settle")
    table = f"0 {size_bytes // 512} delay {device} 0 0 {device} 0 0 {device} 0 {FLUSH_DELAY_MS}"
    shell(f"dmsetup create labflush --table '{table}' && udevadm settle")
    try:
        yield Path("/dev/mapper/labflush").resolve()
    finally:
        shell("udevadm settle; dmsetup remove --retry labflush")


def mean_flush_ms(device: Path, count: int) -> float:
    """Return the mean time in ms of flushes that this process issues. The time includes the delay that the emulated CPU
    adds.
    """
    opened = os.open(device, os.O_WRONLY)
    began_s = time.monotonic()
    for _ in range(count):
        os.fsync(opened)
    took_s = time.monotonic() - began_s
    os.close(opened)
    return 1000 * took_s / count


def test_the_latency_of_flushes(tmp_path: Path) -> None:
    """If the flushes of a device take 2 s, tkperf measures this flush latency, and the reads do not wait for the
    flushes. The device below counts the same number of flushes.
    """
    with null_device(1000, places=64, cache_mib=CACHE_MIB) as below, slow_flushes(below, 128 * MIB) as device:
        known_ms = mean_flush_ms(device, count=5)
        with counted_flushes(below) as device_flushes:
            counted = run_together(tmp_path, device, device, "reader", "log in turn", step_s=30)
            done = device_flushes()
    log = counted["log in turn"]
    assert known_ms >= FLUSH_DELAY_MS
    assert log.flush_mean_ms >= FLUSH_DELAY_MS
    assert log.flush_mean_ms == pytest.approx(known_ms, rel=MOST_FLUSH_ERROR)
    assert done == log.flushes
    # A step ends when the last flush is completed, up to two seconds after the last read.
    assert counted["reader"].iops == pytest.approx(READER_IOPS, rel=0.1)


def assert_trims_arrive(folder: Path, drive: Drive, consent: object) -> None:
    """Trim the upper half of the active range of 64 MiB, and compare the result with the device's counters and
    content.
    """
    drive.write_pattern()
    content = drive.path.read_bytes()
    before = discarded_bytes(drive.path)
    counted = run_together(folder, drive.path, consent, "low reader", "trimmer", step_s=3, rounds=2)
    after = discarded_bytes(drive.path)
    trimmed_bytes = counted["trimmer"].trim_bytes
    assert after - before == trimmed_bytes
    assert trimmed_bytes >= 32 * MIB
    shell(f"blockdev --flushbufs {drive.path}")
    now = drive.path.read_bytes()
    assert now[32 * MIB : 64 * MIB] == bytes(32 * MIB)
    assert now[: 32 * MIB] == content[: 32 * MIB]
    assert now[64 * MIB :] == content[64 * MIB :]


def test_trims_arrive_at_a_nvme_drive(nvme: Drive, tmp_path: Path) -> None:
    """An NVMe drive discards exactly the bytes that the trimming stream trimmed. The trimmed bytes read as zeros, and
    all other bytes are unchanged.
    """
    assert_trims_arrive(tmp_path, nvme, nvme.serial)


def test_trims_arrive_at_null_blk(tmp_path: Path) -> None:
    """A null_blk device discards exactly the bytes that the trimming stream trimmed."""
    with null_device(1000, places=64) as device:
        assert_trims_arrive(tmp_path, Drive("labnull", device), device)


def test_no_flush_is_sent_to_a_cache_that_writes_through(scsi: Drive, tmp_path: Path) -> None:
    """If the write cache of a drive writes through, the kernel sends no flushes to the drive, and the report states
    this.
    """
    (cache_type,) = Path(f"/sys/block/{scsi.name}/device/scsi_disk").glob("*/cache_type")
    cache_type.write_text("write through")
    try:
        before = read_stat(scsi.path)[15]
        counted = run_together(
            tmp_path, scsi.path, scsi.serial, "reader", "log", step_s=5, more=("--write-cache", "keep")
        )
        after = read_stat(scsi.path)[15]
    finally:
        cache_type.write_text("write back")
    assert counted["log"].flushes > 0
    assert after == before
    page = tkperf("show", tmp_path / "case.tkperf").stdout
    assert "NO FLUSHES SENT" in page
