"""Numbers against a device that is known: null_blk answers after a time that is set."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.cases.conftest import shell, tkperf

ANSWER_US = 5000


@pytest.fixture
def slow_device() -> Iterator[Path]:
    """128 MiB in memory, every I/O answered after 5 ms by a timer."""
    shell("modprobe configfs; mount -t configfs none /sys/kernel/config; "
          "modprobe null_blk nr_devices=0")  # fmt: skip
    shell(
        "cd /sys/kernel/config/nullb && mkdir labnull && cd labnull && echo 128 >size && "
        "echo 1 >memory_backed && echo 1 >discard && echo 2 >irqmode && "
        f"echo {ANSWER_US * 1000} >completion_nsec && echo 64 >hw_queue_depth && echo 1 >power && "
        "udevadm settle"
    )
    yield Path("/dev/labnull")
    shell("udevadm settle; rmdir /sys/kernel/config/nullb/labnull; modprobe -r null_blk")


@pytest.mark.core
def test_latency_and_rate_of_a_known_device(slow_device: Path, tmp_path: Path) -> None:
    """One I/O at a time: no latency below 5 ms, a mean just above, and so below 200 IOPS.

    The upper limits are wide, as an emulated CPU takes its time.
    """
    ended = tkperf(
        "ssd", "case", slow_device, "--profile", Path(__file__).parent / "lab.toml",
        "--output", tmp_path, "--yes-destroy", slow_device, "-ssdt", "lat", "-rt", 2,
        "--active-range", "1MiB",
    )  # fmt: skip
    assert ended.status == 0, ended.stderr
    results = json.loads(tkperf("show", "--json", tmp_path / "case.tkperf").stdout)
    section = results["tests"][0]["sections"][0]
    for cell in (each["all"] for each in section["cells"]):
        assert cell["latency_min_us"] >= ANSWER_US * 0.99
        assert ANSWER_US <= cell["latency_mean_us"] <= 2 * ANSWER_US
        assert cell["p50_us"] >= ANSWER_US * 0.97
        assert 100 <= cell["iops"] <= 1e6 / ANSWER_US
        assert cell["iops"] * cell["latency_mean_us"] / 1e6 == pytest.approx(1, abs=0.1)
