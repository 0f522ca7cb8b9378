"""Comparison of tkperf's figures with the known rates of devices, and with the kernel's own trace of the same I/Os.

docs/explanation/accuracy.md contains the limits. The measured figures are written to /lab/accuracy.json (.lab/last).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.lab.block_trace import compare, find_beyond, traced_reads
from tests.lab.cases.conftest import Drive, Monitor, add_figures, run_without_purge, shell, tkperf
from tests.lab.cases.test_numbers import null_device

PROFILE = Path(__file__).parent / "accuracy.toml"
FIGURES = Path("/lab/accuracy.json")
MOST_RATE_ERROR = 0.01
# The limit for the time that fio and the emulated CPU add to each I/O outside the kernel's trace.
MOST_OVERHEAD_US = 3000.0
# The key is the IOPS of the throttled drive, and the value is the number of outstanding I/Os. At the beginning of a
# step, the queue still contains the I/Os of the previous step. These numbers are chosen so that the old I/Os take only
# 0.02 s of the ten seconds.
THROTTLED = {200: 4, 1000: 16}
# This response time is so long that the emulated CPU adds less than the permitted 1 %.
ANSWER_US, OUTSTANDING = 500_000, 16
# scsi_debug completes each command after a new random time, which is uniformly distributed between 0 and this value.
LONGEST_ANSWER_US = 100_000


def measured(folder: Path, device: Path, consent: object, *options: object) -> dict[str, Any]:
    """Return the only cell of a run: 4 KiB random reads in both rounds."""
    run_file = run_without_purge(folder, device, consent, "iops", *options, profile=PROFILE)
    results = json.loads(tkperf("show", "--json", run_file).stdout)
    (cell,) = results["tests"][0]["sections"][0]["cells"]
    assert isinstance(cell["all"], dict)
    return cell["all"]


@pytest.mark.parametrize("known_iops", THROTTLED)
def test_iops_of_a_throttled_drive(scsi: Drive, monitor: Monitor, tmp_path: Path, known_iops: int) -> None:
    """If QEMU throttles a drive, the measured IOPS equal the limit. QEMU also admits a burst, which contains as many
    I/Os as the limit permits in a tenth of a second.

    The preconditioning uses up this burst, because the first round follows it without a pause.
    """
    with monitor.throttled(scsi.serial, iops=known_iops):
        cell = measured(tmp_path, scsi.path, scsi.serial, "--iodepth", THROTTLED[known_iops])
    add_figures(FIGURES, f"throttled to {known_iops} IOPS", {"known": known_iops, "measured": cell["iops"]})
    assert cell["iops"] == pytest.approx(known_iops, rel=MOST_RATE_ERROR)


def test_iops_of_a_drive_of_known_answer_time(tmp_path: Path) -> None:
    """The measured IOPS of a null_blk device equal the number of outstanding I/Os divided by the response time. The
    queue of the device is larger than the number of outstanding I/Os.
    """
    known_iops = OUTSTANDING / (ANSWER_US / 1e6)
    with null_device(ANSWER_US, places=4 * OUTSTANDING) as device:
        cell = measured(tmp_path, device, device)
    add_figures(
        FIGURES,
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
    """The window contains as many I/Os as the kernel's trace. The percentiles according to tkperf and according to the
    trace agree within 2 % plus the stated overhead.
    """
    with drive_of_random_answers() as device:
        consent = json.loads(tkperf("doctor", device, "--json").stdout)["confirm_id"]
        with traced_reads(device) as latencies:
            cell = measured(
                tmp_path, device, consent, "--numjobs", 2, "--iodepth", 16, "--engine", "libaio", "--runtime", 15
            )
    figures = compare(cell, latencies)
    add_figures(FIGURES, "against the kernel's trace", figures)
    # If the emulated CPU pauses once, sixteen I/Os are late at the same time. The host causes this pause, which affects
    # only percentiles beyond p99.
    figures.pop("p99.9_us", None)
    assert "p99_us" in figures
    assert find_beyond(figures, MOST_OVERHEAD_US, MOST_OVERHEAD_US) == []
