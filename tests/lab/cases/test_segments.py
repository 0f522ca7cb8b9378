"""Segments: every I/O of a test falls into them, wherever on the drive they are, and nothing else does.

The kernel's own trace of what it gave to the drive (block:block_rq_issue) is the witness.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.lab.cases.conftest import Drive, shell, tkperf
from tkperf.segments import Segments, draw_segments

PROFILE = Path(__file__).parent / "segments.toml"
TRACING = Path("/sys/kernel/tracing")
# nvme-12 [000] 1.5: block_rq_issue: 259,0 WS 4096 () 2048 + 8 [fio]
ISSUED = re.compile(r"block_rq_issue: (\d+),(\d+) (\w+) \d+ \(.*?\) (\d+) \+ (\d+) \[(.*)\]")
MIB = 1 << 20


@dataclass(frozen=True)
class Issued:
    """One request to the drive, in bytes."""

    kind: str
    start: int
    length: int
    by: str


@contextmanager
def traced(drive: Drive) -> Iterator[list[Issued]]:
    """All requests to a drive, in their order."""
    shell(f"mountpoint -q {TRACING} || mount -t tracefs tracefs {TRACING}")
    number = os.stat(drive.path).st_rdev
    (TRACING / "trace").write_text("")
    (TRACING / "buffer_size_kb").write_text("65536")
    event = TRACING / "events/block/block_rq_issue"
    # As the kernel packs device numbers for itself.
    (event / "filter").write_text(f"dev == {os.major(number) << 20 | os.minor(number)}")
    (event / "enable").write_text("1")
    requests: list[Issued] = []
    try:
        yield requests
    finally:
        (event / "enable").write_text("0")
        for line in (TRACING / "trace").read_text().splitlines():
            if found := ISSUED.search(line):
                _, _, kind, start, length, by = found.groups()
                requests.append(Issued(kind, 512 * int(start), 512 * int(length), by))
        lost = (TRACING / "per_cpu/cpu0/stats").read_text()
        assert "overrun: 0" in lost, lost


def start(folder: Path, drive: Drive, *arguments: object) -> subprocess.Popen[bytes]:
    command = ["tkperf", "ssd", "case", drive.path, "--profile", PROFILE, "--output", folder,
               "--yes-destroy", drive.serial, "--progress", "plain", "--test", "iops", *arguments]  # fmt: skip
    with (folder / "log.txt").open("wb") as log:
        return subprocess.Popen(
            list(map(str, command)), stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )


@pytest.fixture(autouse=True, scope="module")
def device_mapper() -> None:
    """Most distributions load it when they start, for LVM or encryption."""
    shell("modprobe dm-mod && udevadm settle")


def layout(facts: dict[str, int]) -> Segments:
    """Drawn again from what the run file keeps."""
    return draw_segments(
        count=facts["count"],
        amount_bytes=facts["count"] * facts["length_bytes"],
        within_bytes=facts["within_bytes"],
        seed=facts["seed"],
    )


@pytest.mark.core
def test_every_io_of_a_test_is_inside_and_each_segment_alike(nvme: Drive, tmp_path: Path) -> None:
    """Fills go to 80 % of the drive; what follows to the segments drawn from the seed, uniformly."""
    with traced(nvme) as requests:
        process = start(tmp_path, nvme)
        assert process.wait(300) == 0, (tmp_path / "log.txt").read_text()
    shown = json.loads(tkperf("show", "--json", tmp_path / "case.tkperf").stdout)
    device = shown["info"]["device"]
    segments = layout(device["segments"])
    assert device["serial"] == nvme.serial
    assert device["layer"] == "device-mapper (linear)"
    assert device["segments"]["sha256"] == segments.check_sum
    assert len(segments.starts_bytes) == 2048
    written = [each for each in requests if "W" in each.kind and each.by.startswith("fio")]
    fills = [each for each in written if each.length > 8192]
    within = nvme.size_bytes * 8 // 10 // 512 * 512
    assert sum(each.length for each in fills) == pytest.approx(2 * within, abs=2 * 128 * 1024)
    assert max(each.start + each.length for each in written) <= within
    last_fill = max(number for number, each in enumerate(requests) if each in fills)
    tested = [each for each in requests[last_fill + 1 :] if each.by != "(udev-worker)"]
    hits: Counter[int] = Counter()
    outside = []
    for each in tested:
        number = bisect_right(segments.starts_bytes, each.start) - 1
        end = segments.starts_bytes[number] + segments.length_bytes
        if number < 0 or each.start + each.length > end:
            outside.append(each)
        else:
            hits[number] += 1
    assert not outside, (len(outside), len(tested), outside[:20])
    # Chi-squared of a uniform choice has the mean 2,047 and the standard deviation 64.
    expected = len(tested) / 2048
    assert expected >= 5, len(tested)
    chi_squared = sum((hits[number] - expected) ** 2 / expected for number in range(2048))
    print(f"{len(tested)} requests, {expected:.1f} a segment, chi-squared {chi_squared:.0f}")
    assert abs(chi_squared - 2047) < 6 * 64
    issued = sum(each.length for each in tested)
    steps = [step for test in shown["tests"] for step in test.get("steps", [])]
    print(f"issued {issued}", steps[:1])
    assert not [warning for warning in shown["warnings"] if "disturb" in warning["code"]], shown[
        "warnings"
    ]
    assert not list(Path(nvme.path and f"/sys/block/{nvme.name}/holders").iterdir())
