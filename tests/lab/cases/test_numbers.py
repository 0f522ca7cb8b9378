"""Comparison of tkperf's figures with a null_blk device that completes each I/O after a known time."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.lab.cases.conftest import Drive, shell, tkperf

# The emulated CPU adds some time to each I/O. Even on a busy host, the added time is only a small share of this long
# response time.
ANSWER_US = 50_000
THROTTLED_ANSWER_US = 20_000
PROFILE = Path(__file__).parent / "lab.toml"
TRACING = Path("/sys/kernel/tracing")
TRACED_WRITE = re.compile(r" (\d+\.\d+): block_rq_(issue|complete): \S+ W\S* [^\n]*\+ (\d+) \[", re.M)
# In this time after the beginning of a load, the last I/Os of the preceding load may still complete.
OVERLAP_S = 1.0
# With an emulated CPU, gaps from 0.06 s to 0.19 s were observed. The longest gap occurred on a busy host.
LONGEST_CHANGE_S = 0.3


@dataclass(frozen=True, slots=True)
class Traced:
    """A write that the kernel sent to the drive, or that the drive completed."""

    at_s: float
    issued: bool
    size_bytes: int


@pytest.fixture
def slow_device() -> Iterator[Path]:
    """Yield a device of 128 MiB in memory. A timer of the device completes every I/O after 50 ms."""
    with null_device(ANSWER_US, places=64) as path:
        yield path


@pytest.fixture
def throttled_device() -> Iterator[Path]:
    """Yield a null_blk device that completes I/Os slowly and handles one I/O at a time. The device reaches at most 50
    IOPS, regardless of the offered rate.
    """
    with null_device(THROTTLED_ANSWER_US, places=1) as path:
        yield path


@contextmanager
def null_device(answer_us: int, *, places: int, cache_mib: int = 0) -> Iterator[Path]:
    """Yield a device of 128 MiB in memory. The device completes each I/O after the given time and handles ``places``
    I/Os at the same time. If the device has a cache, the kernel sends flushes.
    """
    shell("modprobe configfs; mount -t configfs none /sys/kernel/config; modprobe null_blk nr_devices=0")
    shell(
        "cd /sys/kernel/config/nullb && mkdir labnull && cd labnull && echo 128 >size && "
        "echo 1 >memory_backed && echo 1 >discard && echo 2 >irqmode && "
        f"echo {cache_mib} >cache_size && "
        f"echo {answer_us * 1000} >completion_nsec && echo {places} >hw_queue_depth && echo 1 >power && "
        "udevadm settle"
    )
    yield Path("/dev/labnull")
    shell("udevadm settle; rmdir /sys/kernel/config/nullb/labnull; modprobe -r null_blk")


@pytest.mark.core
def test_latency_and_rate_of_a_known_device(slow_device: Path, tmp_path: Path) -> None:
    """If a device completes each I/O after 50 ms, tkperf measures no latency below 50 ms, a mean just above 50 ms, and
    less than 20 IOPS. The upper limits are wide, because an emulated CPU is slow.
    """
    ended = tkperf(
        "ssd",
        "case",
        slow_device,
        "--profile",
        PROFILE,
        "--output",
        tmp_path,
        "--yes-destroy",
        slow_device,
        "-ssdt",
        "lat",
        "-rt",
        2,
        "--active-range",
        "1MiB",
    )
    assert ended.status == 0, ended.stderr
    results = json.loads(tkperf("show", "--json", tmp_path / "case.tkperf").stdout)
    section = results["tests"][0]["sections"][0]
    for cell in (each["all"] for each in section["cells"]):
        assert cell["latency_min_us"] >= ANSWER_US * 0.99
        assert ANSWER_US <= cell["latency_mean_us"] <= 2 * ANSWER_US
        assert cell["p50_us"] >= ANSWER_US * 0.97
        assert 0.5e6 / ANSWER_US <= cell["iops"] <= 1e6 / ANSWER_US
        # One I/O is outstanding, except between the completion of an I/O and the next I/O. On a busy host, these pauses
        # took 10 % of the time.
        assert 0.7 <= cell["iops"] * cell["latency_mean_us"] / 1e6 <= 1.02


def _run(folder: Path, device: Path, test: str, consent: object, *options: object) -> dict[str, Any]:
    """Run a test of the lab's profile on a device, and return the results."""
    ended = tkperf(
        "ssd",
        test,
        device,
        "--profile",
        PROFILE,
        "--output",
        folder,
        "--test",
        test,
        "--yes-destroy",
        consent,
        *options,
    )
    assert ended.status == 0, ended.stderr
    result = json.loads(tkperf("show", "--json", folder / f"{test}.tkperf").stdout)
    assert isinstance(result, dict)
    return result


def test_the_limit_of_a_throttled_device(throttled_device: Path, tmp_path: Path) -> None:
    """On a device of at most 50 IOPS, the last level without a backlog is within one level (10 IOPS) of this limit."""
    result = _run(tmp_path, throttled_device, "demand", throttled_device, "--active-range", "8MiB")
    found = {
        each["key"]: each["value"] for section in result["tests"][0]["sections"] for each in section["characteristics"]
    }
    for key in ("no_backlog_iops", "saturated_iops"):
        assert abs(found[key] - 1e6 / THROTTLED_ANSWER_US) <= 10


@contextmanager
def _idle_stretches(drive: Drive, longest_s: float) -> Iterator[Callable[[], list[float]]]:
    """Yield a function that returns those idle times of the drive that lasted at least ``longest_s``. The idle times
    are found in the drive's counters.
    """
    found: list[float] = []
    stop = threading.Event()

    def look() -> None:
        before, since_s = drive.sysfs("stat"), time.monotonic()
        while not stop.is_set():
            time.sleep(0.02)
            now, now_s = drive.sysfs("stat"), time.monotonic()
            if now != before:
                if now_s - since_s >= longest_s:
                    found.append(now_s - since_s)
                before, since_s = now, now_s

    watching = threading.Thread(target=look)
    watching.start()
    try:
        yield lambda: list(found)
    finally:
        stop.set()
        watching.join()


@contextmanager
def _traced_writes() -> Iterator[list[Traced]]:
    """Yield the list of all writes that the kernel sends to drives, in order of time. The list is complete when the
    ``with`` statement ends.
    """
    writes: list[Traced] = []
    shell(
        f"mountpoint -q {TRACING} || mount -t tracefs nodev {TRACING}; cd {TRACING}; "
        "echo mono >trace_clock; echo 60000 >buffer_size_kb; echo >trace; "
        "echo 1 >events/block/block_rq_issue/enable; echo 1 >events/block/block_rq_complete/enable"
    )
    try:
        yield writes
        for event in TRACED_WRITE.finditer((TRACING / "trace").read_text()):
            at_s, what, sectors = event.groups()
            writes.append(Traced(float(at_s), what == "issue", int(sectors) * 512))
        writes.sort(key=lambda write: write.at_s)
    finally:
        shell(f"cd {TRACING}; echo 0 >events/block/enable; echo >trace; echo 1000 >buffer_size_kb")


def _gaps_at_changes_s(writes: list[Traced], sizes: tuple[int, ...]) -> list[float]:
    """Return the gaps at changes of the block size. A gap lasts from the last completion before a change to the issue
    of the first I/O after this change.
    """
    gaps = []
    for before, after in pairwise(sizes):
        first_s = next(write.at_s for write in writes if write.issued and write.size_bytes == after)
        old = [write.at_s for write in writes if not write.issued and write.size_bytes == before]
        gaps.append(first_s - max(at_s for at_s in old if at_s < first_s + OVERLAP_S))
        writes = [write for write in writes if write.at_s >= first_s]
    return gaps


def test_planned_idle_times_and_changes_of_load(nvme: Drive, tmp_path: Path) -> None:
    """A planned idle time is as long as requested, and a change of load leaves the drive idle for at most 0.3 s.

    The evidence is the kernel's own trace of the I/Os that it sent to the drive. No program is started at a change of
    load. At a change, tkperf wakes up and opens the gate, flock and its shell end, and a thread of fio continues. At
    the same time, the old fio writes its report. An emulated CPU needs at least ten times as long for these actions as
    a real CPU. If tkperf started the next fio only after the old fio had ended, the drive would be idle for 3 s to 4 s.
    """
    with _idle_stretches(nvme, 4.0) as seen:
        result = _run(tmp_path, nvme.path, "hir", nvme.serial)
    # After the last burst, the test plans no idle time.
    pauses = [each for each in seen() if each < 8]
    assert len(pauses) >= 1
    assert all(4.8 <= each <= 5.5 for each in pauses)
    assert result["status"] == "complete"
    with _traced_writes() as writes:
        result = _run(tmp_path, nvme.path, "xsr", nvme.serial)
    assert result["status"] == "complete"
    gaps_s = _gaps_at_changes_s(writes, (128 << 10, 8 << 10, 128 << 10))
    assert len(gaps_s) == 2
    assert max(gaps_s) <= LONGEST_CHANGE_S, gaps_s
