"""Counters that the kernel publishes in sysfs for a device. Some tests read a fake sysfs. Others use a loop device."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from tests.conftest import until
from tkperf.device.identity import read_identity
from tkperf.device.kernel_watch import LOOK_EVERY_S, CountingFiles, DeviceCounters, StatFiles, seldom_every_s, watching
from tkperf.model.disturbance.io import Counts

# the columns: reads, merged, sectors, ms, writes, merged, sectors, ms, in flight, ms, ms, discards, merged, sectors,
# ms, flushes, ms
DISK = "10 1 800 5 20 2 1600 9 3 7 14 4 0 4000 1 1 0"
PART = "6 0 300 5 20 2 1600 9 1 7 14 0 0 0 0 0 0"


@pytest.fixture
def made_up_sysfs(tmp_path: Path) -> Path:
    """Return a fake sysfs with a disk 8:0 that has a partition 8:1, and a disk 8:16."""
    for place, stat in (("sda", DISK), ("sda/sda1", PART), ("sdb", DISK)):
        (tmp_path / "block" / place).mkdir(parents=True)
        (tmp_path / "block" / place / "stat").write_text(f"  {stat}\n")
    (tmp_path / "block/sda/sda1/partition").write_text("1")
    (tmp_path / "dev/block").mkdir(parents=True)
    for number, place in (("8:0", "sda"), ("8:1", "sda/sda1"), ("8:16", "sdb")):
        (tmp_path / "dev/block" / number).symlink_to(tmp_path / "block" / place)
    return tmp_path


def read_counts(majors_minors: Sequence[str], sys_root: Path) -> Counts | None:
    files = StatFiles(majors_minors, sys_root)
    try:
        return files.counts(files.read())
    finally:
        files.close()


def test_sectors_are_512_bytes_and_merged_ios_count(made_up_sysfs: Path) -> None:
    """One sector in sysfs is always 512 bytes. The sector size of the device does not matter. Merged I/Os are included
    in the number of I/Os.
    """
    counts = read_counts(["8:0"], made_up_sysfs)
    assert counts is not None
    assert (counts.read_bytes, counts.write_bytes) == (800 * 512, 1600 * 512)
    assert (counts.discard_bytes, counts.ios, counts.in_flight) == (4000 * 512, 33, 3)
    assert (counts.flushes, counts.others_bytes) == (1, None)


def test_of_a_partition_the_rest_of_its_disk_is_known(made_up_sysfs: Path) -> None:
    """fio's bytes are compared with the counters of the partition. The I/O of the disk outside this partition counts as
    I/O of other programs.
    """
    counts = read_counts(["8:1"], made_up_sysfs)
    assert counts is not None
    assert counts.read_bytes == 300 * 512
    assert counts.others_bytes == 500 * 512


def test_members_of_a_set_are_added_up(made_up_sysfs: Path) -> None:
    """The counters of all members of a set are added, because a single fio preconditions all members at the
    same time.
    """
    counts = read_counts(["8:0", "8:16"], made_up_sysfs)
    assert counts is not None
    assert (counts.write_bytes, counts.in_flight) == (2 * 1600 * 512, 6)


def test_whether_the_kernel_is_to_count_is_said_by_the_disk(made_up_sysfs: Path) -> None:
    """For a partition, tkperf reads whether the kernel counts the I/Os of its disk. For a set, the result is True only
    if the kernel counts the I/Os of all members. If a device is missing or has no such setting, the result is None.
    """
    for disk, asked in (("sda", "1"), ("sdb", "0")):
        (made_up_sysfs / "block" / disk / "queue").mkdir()
        (made_up_sysfs / "block" / disk / "queue/iostats").write_text(f"{asked}\n")
    assert CountingFiles(["8:0"], made_up_sysfs).read() is True
    assert CountingFiles(["8:1"], made_up_sysfs).read() is True
    assert CountingFiles(["8:0", "8:16"], made_up_sysfs).read() is False
    assert CountingFiles(["8:0", "9:9"], made_up_sysfs).read() is None
    assert CountingFiles([], made_up_sysfs).read() is None


def test_what_is_not_there_is_not_counted(made_up_sysfs: Path) -> None:
    """A device that is missing has no counts. tkperf does not use zeros in place of missing counts."""
    assert read_counts(["8:0", "9:9"], made_up_sysfs) is None
    assert read_counts([], made_up_sysfs) is None


def test_a_set_made_anew_is_counted_again(made_up_sysfs: Path) -> None:
    """A set that was removed and created again is counted again. While the set does not exist, a reading contains no
    counts.
    """
    files = StatFiles(["8:16"], made_up_sysfs)
    node = made_up_sysfs / "dev/block/8:16"
    assert files.counts(files.read()) is not None
    files.close()  # the result is the same as after the kernel's error "no such device"
    node.rename(node.with_name("gone"))
    assert files.read() == ()
    node.symlink_to(made_up_sysfs / "block/sda/sda1")
    counts = files.counts(files.read())
    assert counts is not None
    assert counts.read_bytes == 300 * 512
    files.close()


def test_a_file_is_looked_at_for_the_time_only(tmp_path: Path) -> None:
    """For a file target, each reading has a time but no counts. The times show whether tkperf was paused."""
    path = tmp_path / "file"
    path.write_bytes(b"x" * 4096)
    with watching(read_identity(path)) as counters:
        device_looks = counters.take()
    assert device_looks
    assert {device_look.counts for device_look in device_looks} == {None}


def test_glances_come_all_the_time_and_in_order(made_up_sysfs: Path) -> None:
    """Readings of the counters between two calls of take() remain in the order of their times. The last reading is made
    during the second call.
    """
    counters = DeviceCounters(["8:0"], made_up_sysfs)
    try:
        while len(device_looks := counters.take()) < 2:
            time.sleep(0.1)
        before_s = time.monotonic()
        device_looks = [*device_looks, *counters.take()]
    finally:
        counters.close()
    times = [device_look.at_s for device_look in device_looks]
    assert times == sorted(times)
    assert times[-1] >= before_s
    assert all(device_look.counts for device_look in device_looks)


class QuickTime:
    """A stand-in for the module ``time``. Each call of ``sleep`` returns almost immediately and advances the clock by
    the requested time. The first call returns only when the test allows it.
    """

    CLOCK_BOOTTIME = time.CLOCK_BOOTTIME

    def __init__(self) -> None:
        self.now_s = 100.0
        self.may_go_on = threading.Event()

    def monotonic(self) -> float:
        return self.now_s

    def clock_gettime(self, _: int) -> float:
        return self.now_s

    def sleep(self, duration_s: float) -> None:
        self.may_go_on.wait(600)
        time.sleep(0.001)
        self.now_s += duration_s


def times_of(counters: DeviceCounters) -> list[float]:
    return [device_look.at_s for device_look in counters.take()]


def test_a_look_within_a_step_is_a_fiftieth_of_it_away() -> None:
    """During a step, the counters are read at equal intervals. An interval is a fiftieth of the duration of the step,
    but never shorter than 0.1 s and never longer than 0.2 s.
    """
    assert [round(seldom_every_s(10.0, 10.0 + inside_s), 3) for inside_s in (1, 5, 8, 58)] == [0.1, 0.1, 0.16, 0.2]


def test_within_a_step_ten_looks_a_second_will_do(made_up_sysfs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The counters are read up to ten times a second within a step. After the step, tkperf reads them more often."""
    clock = QuickTime()
    monkeypatch.setattr("tkperf.device.kernel_watch.time", clock)
    counters = DeviceCounters(["8:0"], made_up_sysfs)
    try:
        counters.look_seldom(100.0, 101.0)
        clock.may_go_on.set()
        until(lambda: clock.now_s > 102)
        times = times_of(counters)
    finally:
        clock.may_go_on.set()
        counters.close()
    # The step was announced during the first pause. The last reading was made by times_of.
    pauses = {early: round(late - early, 3) for early, late in pairwise(times[1:-1])}
    assert {pause for at_s, pause in pauses.items() if at_s < 100.85} == {0.1}
    assert {pause for at_s, pause in pauses.items() if at_s > 101} == {LOOK_EVERY_S}


@pytest.mark.root
def test_a_loop_device_counts_what_anybody_writes(loop_device: Callable[..., Path]) -> None:
    """The counters of a loop device include the I/O of other processes."""
    device = loop_device()
    with watching(read_identity(device)) as counters:
        before = counters.take()[-1].counts
        descriptor = os.open(device, os.O_WRONLY)
        try:
            os.write(descriptor, b"z" * (8 << 20))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        assert before is not None
        until_s, written_bytes = time.monotonic() + 60, 0
        while written_bytes < 8 << 20 and time.monotonic() < until_s:
            after = counters.take()[-1].counts
            assert after is not None
            written_bytes = after.write_bytes - before.write_bytes
    assert written_bytes == 8 << 20
