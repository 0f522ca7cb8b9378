"""Figures against devices of known rate, and against the kernel's own trace of the same I/Os.

docs/explanation/accuracy.md states the limits; what was measured is left in /lab/accuracy.json (.lab/last).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.lab.block_trace import compare, find_beyond, traced_reads
from tests.lab.cases.conftest import Drive, Monitor, shell, tkperf
from tests.lab.cases.test_numbers import null_device

PROFILE = Path(__file__).parent / "accuracy.toml"
FIGURES = Path("/lab/accuracy.json")
MOST_RATE_ERROR = 0.01
# What fio and the emulated CPU add to each I/O outside the kernel's trace: stated, and no more than this.
MOST_OVERHEAD_US = 3000.0
# Outstanding I/Os by IOPS. The I/Os of the step before are ahead in the queue at the beginning. With these numbers
# they take a fiftieth of a second of the ten.
THROTTLED = {200: 4, 1000: 16}
# The answer is so slow that an emulated CPU adds less than the allowed hundredth.
ANSWER_US, OUTSTANDING = 500_000, 16
# scsi_debug answers each command after a new random time, uniformly distributed between 0 and this value.
LONGEST_ANSWER_US = 100_000


def keep(name: str, figures: object) -> None:
    """Add what was measured to what this boot leaves behind."""
    kept = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    FIGURES.write_text(json.dumps(kept | {name: figures}, indent=2) + "\n")


def measured(folder: Path, device: Path, consent: object, *options: object) -> dict[str, Any]:
    """The one cell of a run: 4 KiB random reads, both rounds."""
    ended = tkperf(
        "ssd",
        "case",
        device,
        "--profile",
        PROFILE,
        "--output",
        folder,
        "--test",
        "iops",
        "--no-purge",
        "--yes-destroy",
        consent,
        "--progress",
        "plain",
        *options,
    )
    assert ended.status == 0, ended.stderr
    results = json.loads(tkperf("show", "--json", folder / "case.tkperf").stdout)
    (cell,) = results["tests"][0]["sections"][0]["cells"]
    assert isinstance(cell["all"], dict)
    return cell["all"]


@pytest.mark.parametrize("known_iops", THROTTLED)
def test_iops_of_a_throttled_drive(scsi: Drive, monitor: Monitor, tmp_path: Path, known_iops: int) -> None:
    """QEMU lets so many I/Os a second through, and a tenth of a second's worth at once.

    That burst went to preconditioning, which the first round follows without a pause.
    """
    with monitor.throttled(scsi.serial, iops=known_iops):
        cell = measured(tmp_path, scsi.path, scsi.serial, "--iodepth", THROTTLED[known_iops])
    keep(f"throttled to {known_iops} IOPS", {"known": known_iops, "measured": cell["iops"]})
    assert cell["iops"] == pytest.approx(known_iops, rel=MOST_RATE_ERROR)


def test_iops_of_a_drive_of_known_answer_time(tmp_path: Path) -> None:
    """The IOPS of a null_blk with more places than outstanding I/Os are the number of outstanding I/Os over the answer
    time.
    """
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
    shell(f"modprobe scsi_debug dev_size_mb=32 lbpu=0 ndelay={LONGEST_ANSWER_US * 1000} random=1 && udevadm settle")
    try:
        path = shell("lsblk -nrdo PATH,MODEL | awk '$2 ~ /scsi_debug/ {print $1}'").strip()
        yield Path(path)
    finally:
        shell("udevadm settle; modprobe -r scsi_debug")


def test_latencies_against_the_kernels_trace(tmp_path: Path) -> None:
    """The window contains as many I/Os as the kernel's trace. The percentiles agree within 2 % and
    the stated overhead.
    """
    with drive_of_random_answers() as device:
        consent = json.loads(tkperf("doctor", device, "--json").stdout)["confirm_id"]
        with traced_reads(device) as latencies:
            cell = measured(
                tmp_path, device, consent, "--numjobs", 2, "--iodepth", 16, "--engine", "libaio", "--runtime", 15
            )
    figures = compare(cell, latencies)
    keep("against the kernel's trace", figures)
    # Sixteen at once are late where the emulated CPU stands still once: that is the host's, beyond p99.
    figures.pop("p99.9_us", None)
    assert "p99_us" in figures
    assert find_beyond(figures, MOST_OVERHEAD_US, MOST_OVERHEAD_US) == []
