"""Check whether tkperf's latencies agree with those of the kernel.

The script compares a run on a loop device with the kernel's trace of every I/O.

The run consists of two rounds of 4 KiB random reads with one outstanding I/O. With one outstanding I/O, fio processes
each I/O as soon as it completes. No other I/O delays fio. The trace contains the times at which each I/O was queued,
passed to the driver and completed. The script prints the mean and the percentiles according to tkperf and according to
the trace. The times in the trace are exact and not rounded to buckets. With --json, the script writes the same data as
JSON. The exit status is 1 if a difference is beyond its limit. The script needs root (loop device, tracefs).

    python bench/against_trace.py [--folder /var/tmp] [--step-s 10] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from handover_gap import loop_device

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT))

from tests.lab.block_trace import compare, find_beyond, traced_reads  # noqa: E402

PROFILE = CHECKOUT / "tests/lab/cases/accuracy.toml"
# The page docs/explanation/accuracy.md also states this limit.
MOST_OVERHEAD_US, MOST_TAIL_OVERHEAD_US = 40.0, 100.0
# The buffer can hold twice the number of events that two rounds of 10 s produce at 100,000 IOPS.
BUFFER_KB = 1 << 18


def measure(folder: Path, device: str, step_s: int) -> dict[str, Any]:
    """Run the measurement and return the only cell of the run."""
    tool = str(Path(sys.executable).parent / "tkperf")
    subprocess.run(
        [
            tool,
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
            "--no-report",
            "--yes-destroy",
            device,
            "--progress",
            "plain",
            "--numjobs",
            "1",
            "--iodepth",
            "1",
            "--engine",
            "libaio",
            "--runtime",
            str(step_s),
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    shown = subprocess.check_output([tool, "show", "--json", folder / "case.tkperf"])
    (cell,) = json.loads(shown)["tests"][0]["sections"][0]["cells"]
    assert isinstance(cell["all"], dict)
    return cell["all"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", default="/var/tmp")
    parser.add_argument("--step-s", type=int, default=10)
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name, loop_device(Path(name)) as device:
        with traced_reads(Path(device), BUFFER_KB) as latencies:
            cell = measure(Path(name), device, options.step_s)
        figures = compare(cell, latencies)
    for what, by in figures.items():
        print(f"{what:16} " + ", ".join(f"{which} {value:,.1f}" for which, value in by.items()))
    beyond = find_beyond(figures, MOST_OVERHEAD_US, MOST_TAIL_OVERHEAD_US)
    load = os.getloadavg()[0]
    print(f"load of the host: {load:.1f}")
    if options.json:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        document = {"figures": figures, "beyond": beyond, "load": load, "at": at}
        options.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    for what in beyond:
        print(f"beyond the limit: {what}")
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
