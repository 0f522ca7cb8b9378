"""Figures against devices of known rate, and against the kernel's own trace of the same I/Os.

docs/accuracy.md states the limits; what was measured is left in /lab/accuracy.json (.lab/last).
"""

from __future__ import annotations

import json
import math
import os
import re
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.lab.cases.conftest import Drive, Monitor, shell, tkperf
from tests.lab.cases.test_numbers import null_device

PROFILE = Path(__file__).parent / "accuracy.toml"
TRACING = Path("/sys/kernel/tracing")
FIGURES = Path("/lab/accuracy.json")
MOST_RATE_ERROR = 0.01
MOST_PERCENTILE_ERROR = 0.02
# What fio and the emulated CPU add to each I/O outside the kernel's trace: stated, and no more than this.
MOST_OVERHEAD_US = 3000.0
PERCENTILES = {"p50_us": 50.0, "p90_us": 90.0, "p99_us": 99.0, "p99.9_us": 99.9}
# With so many outstanding that those of the step before, which are ahead in the queue at its beginning, are
# a fiftieth of a second of the ten.
THROTTLED = {200: 4, 1000: 16}
# So slow that what an emulated CPU adds to it is less than the hundredth that is allowed.
ANSWER_US, OUTSTANDING = 100_000, 16
# scsi_debug answers each command after a time that is drawn anew, evenly up to this.
LONGEST_ANSWER_US = 100_000
# fio-412 [001] ..... 12.345678: block_bio_queue: 8,0 R 2048 + 8 [fio]
TRACED = re.compile(
    r" (\d+\.\d+): block_(bio_queue|rq_issue|rq_complete): \d+,\d+ (\w+) (?:\d+ )?(?:\(.*?\) )?"
    r"(\d+) \+ (\d+) \[(.*)\]"
)


def keep(name: str, figures: object) -> None:
    """Add what was measured to what this boot leaves behind."""
    kept = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    FIGURES.write_text(json.dumps(kept | {name: figures}, indent=2) + "\n")


def measured(folder: Path, device: Path, consent: object, *options: object) -> dict[str, Any]:
    """The one cell of a run: 4 KiB random reads, both rounds."""
    ended = tkperf(
        "ssd", "case", device, "--profile", PROFILE, "--output", folder, "--test", "iops",
        "--no-purge", "--yes-destroy", consent, "--progress", "plain", *options,
    )  # fmt: skip
    assert ended.status == 0, ended.stderr
    results = json.loads(tkperf("show", "--json", folder / "case.tkperf").stdout)
    (cell,) = results["tests"][0]["sections"][0]["cells"]
    assert isinstance(cell["all"], dict)
    return cell["all"]


@pytest.mark.parametrize("known_iops", THROTTLED)
def test_iops_of_a_throttled_drive(
    scsi: Drive, monitor: Monitor, tmp_path: Path, known_iops: int
) -> None:
    """QEMU lets so many I/Os a second through, and a tenth of a second's worth at once.

    That burst went to preconditioning, which the first round follows without a pause.
    """
    limits = dict.fromkeys(("bps", "bps_rd", "bps_wr", "iops_rd", "iops_wr"), 0)
    monitor("block_set_io_throttle", id=scsi.serial, iops=known_iops, **limits)
    try:
        cell = measured(tmp_path, scsi.path, scsi.serial, "--iodepth", THROTTLED[known_iops])
    finally:
        monitor("block_set_io_throttle", id=scsi.serial, iops=0, **limits)
    keep(f"throttled to {known_iops} IOPS", {"known": known_iops, "measured": cell["iops"]})
    assert cell["iops"] == pytest.approx(known_iops, rel=MOST_RATE_ERROR)


def test_iops_of_a_drive_of_known_answer_time(tmp_path: Path) -> None:
    """null_blk with more places than I/Os outstanding: their number over the answer time."""
    known_iops = OUTSTANDING / (ANSWER_US / 1e6)
    with null_device(ANSWER_US, places=4 * OUTSTANDING) as device:
        cell = measured(tmp_path, device, device)
    keep(
        f"null_blk, {ANSWER_US / 1000:.0f} ms",
        {"known": known_iops, "measured": cell["iops"], "latency_mean_us": cell["latency_mean_us"]},
    )
    assert cell["iops"] == pytest.approx(known_iops, rel=MOST_RATE_ERROR)


@contextmanager
def drive_of_random_answers() -> Iterator[Path]:
    shell(
        f"modprobe scsi_debug dev_size_mb=32 lbpu=0 ndelay={LONGEST_ANSWER_US * 1000} random=1 && "
        "udevadm settle"
    )
    try:
        path = shell("lsblk -nrdo PATH,MODEL | awk '$2 ~ /scsi_debug/ {print $1}'").strip()
        yield Path(path)
    finally:
        shell("udevadm settle; modprobe -r scsi_debug")


@contextmanager
def traced_reads(device: Path) -> Iterator[dict[str, list[float]]]:
    """Latencies in us of fio's reads of 4 KiB: ``Q2C`` from the kernel's taking them in, ``D2C`` from the driver's.

    To be read after the block.
    """
    number = os.stat(device).st_rdev
    found: dict[str, list[float]] = {"Q2C": [], "D2C": []}
    shell(f"mountpoint -q {TRACING} || mount -t tracefs tracefs {TRACING}; cd {TRACING}; "
          "echo mono >trace_clock; echo 65536 >buffer_size_kb; echo >trace")  # fmt: skip
    events = [TRACING / "events/block" / f"block_{name}"
              for name in ("bio_queue", "rq_issue", "rq_complete")]  # fmt: skip
    for event in events:
        # As the kernel packs device numbers for itself.
        (event / "filter").write_text(f"dev == {os.major(number) << 20 | os.minor(number)}")
        (event / "enable").write_text("1")
    try:
        yield found
        for event in events:
            (event / "enable").write_text("0")
        for cpu in TRACING.glob("per_cpu/cpu*/stats"):
            assert "overrun: 0" in cpu.read_text()
        trace = (TRACING / "trace").read_text()
        # The buffers of the CPUs are merged by time, but for events of the same microsecond.
        lines = sorted(TRACED.finditer(trace), key=lambda line: float(line[1]))
        _pair(lines, found)
    finally:
        for event in events:
            (event / "enable").write_text("0")
            (event / "filter").write_text("0")
        shell(f"cd {TRACING}; echo >trace; echo 1000 >buffer_size_kb")


def _pair(lines: Sequence[re.Match[str]], found: dict[str, list[float]]) -> None:
    """Set each completion beside the oldest open read of its place."""
    queued: dict[str, deque[float]] = defaultdict(deque)
    issued: dict[str, deque[float]] = defaultdict(deque)
    for line in lines:
        at_s, what, kind, sector, sectors, by = line.groups()
        if not kind.startswith("R") or sectors != "8":
            continue
        if what == "bio_queue" and by.startswith("fio"):
            queued[sector].append(float(at_s))
        elif what == "rq_issue" and queued[sector]:
            issued[sector].append(float(at_s))
        elif what == "rq_complete" and queued[sector] and issued[sector]:
            found["Q2C"].append(1e6 * (float(at_s) - queued[sector].popleft()))
            found["D2C"].append(1e6 * (float(at_s) - issued[sector].popleft()))


def percentile(ascending: Sequence[float], percent: float) -> float:
    """The latency of rank ceil(N p / 100): the rule of docs/method.md, without buckets."""
    return ascending[math.ceil(round(len(ascending) * percent / 100, 6)) - 1]


def test_latencies_against_the_kernels_trace(tmp_path: Path) -> None:
    """Of every single I/O of the window: as many, and their percentiles within 2 % and the overhead.

    The overhead is by how much tkperf's mean is above the trace's.
    """
    with drive_of_random_answers() as device:
        consent = json.loads(tkperf("doctor", device, "--json").stdout)["confirm_id"]
        with traced_reads(device) as latencies:
            cell = measured(
                tmp_path, device, consent, "--numjobs", 2, "--iodepth", 16, "--engine", "libaio"
            )
    figures: dict[str, Any] = {"ios": cell["ios"], "mean_us": {"tkperf": cell["latency_mean_us"]}}
    for which, times_us in latencies.items():
        ascending = sorted(times_us)
        figures[f"{which} ios"] = len(ascending)
        figures["mean_us"][which] = math.fsum(ascending) / len(ascending)
        for name, percent in PERCENTILES.items():
            figures.setdefault(name, {"tkperf": cell[name]})
            figures[name][which] = percentile(ascending, percent)
    keep("against the kernel's trace", figures)
    assert len(latencies["Q2C"]) == len(latencies["D2C"]) == cell["ios"]
    for which in ("Q2C", "D2C"):
        overhead_us = figures["mean_us"]["tkperf"] - figures["mean_us"][which]
        assert 0 <= overhead_us <= MOST_OVERHEAD_US
        for name in PERCENTILES:
            true_us = figures[name][which]
            off_us = abs(figures[name]["tkperf"] - true_us)
            assert off_us <= MOST_PERCENTILE_ERROR * true_us + overhead_us, (which, name, figures)
