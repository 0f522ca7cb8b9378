"""Measure how much time, memory and disk space a run of three days needs.

The run contains 72 hours of one stream, with a sample for every second. The script also measures all commands that read
this run.

It runs `tkperf ssd` in a separate process on a simulated drive, on which time passes faster. There are three loads:
random writes, a mix of reads and writes, and four streams that run together (a reader, a writer, a log with flushes and
a trimmer, 12 threads). All runs store their histograms, and their profile disables all conditions that would end the
test earlier. During a run, the script measures the memory of the run, and the time that a reader needs to find the
progress of the run. Afterwards, it measures the run file, `tkperf show`, `tkperf report`, the replay with which
`resume` begins, and the page in Chromium. Sizes and memory are exact. Times depend on this machine and on its other
work.

    python bench/three_days.py [--hours 72] [--preset sata-ssd] [--loads 0 65 together] [--times 5] [--folder FOLDER]
    python bench/three_days.py --files RUN_FILE... [--times 5]

The exit status is 1 if a run file needs more than 10 MB for 24 hours of writes, 15 MB for a mix, or 50 MB for the
streams. It is also 1 if the report of the streams takes more than twice as long as the report of the writes. The
measurement of the page needs playwright and /usr/bin/chromium.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

from tkperf.analysis.over_seconds import with_seconds
from tkperf.analysis.run_results import analyse
from tkperf.procedures import find_test, load_profile
from tkperf.runfile.reader import RunFile
from tkperf.runner.replay import replay

TKPERF = [sys.executable, "-m", "tkperf"]
NAME = 'name = "pts-e-1.1"\ntitle = "SNIA PTS-E 1.1 (2013)"'
ENDS = "read_percent = 0\nslice_s = 60\nmax_slices = 1440\ncapacity_multiple = 4\nround_every_slices = 30"
WRITES, TOGETHER = "0", "together"
# Limits for the size of 24 hours of a stream of writes, of a mix with a histogram for each direction, and of the four
# streams. The four streams also have histograms for trims and flushes.
LIMITS_MB = {WRITES: 10.0, "65": 15.0, TOGETHER: 50.0}
MOST_REPORT_RATIO = 2.0
STREAMS = """
format = 1
name = "days"
title = "Days of four streams"
[loads.reader]
access = "random"
read_percent = 100
block_size_kib = 4
jobs = 4
io_depth = 4
[loads.writer]
access = "random"
read_percent = 0
block_size_kib = 4
jobs = 4
io_depth = 1
offered_iops = 5000
[loads.log]
access = "sequential"
read_percent = 0
block_size_kib = 4
jobs = 2
flush_every = 4
[loads.trimmer]
access = "random"
read_percent = 0
trims = true
block_size_kib = 1024
jobs = 2
offered_iops = 100
[[phases]]
kind = "purge"
[[phases]]
kind = "stream"
section = "Streams"
together = ["reader", "writer", "log", "trimmer"]
slice_s = 60
"""
CHROMIUM = "/usr/bin/chromium"


def write_profile(folder: Path, hours: float, read_percent: int = 0, *, slice_s: float = 60.0) -> Path:
    """Write a copy of pts-e-1.1 in which write saturation always lasts for this time."""
    text = (files("tkperf.procedures.profiles") / "pts-e-1.1.toml").read_text(encoding="utf-8")
    ends = (
        f"read_percent = {read_percent}\nslice_s = {slice_s:g}\n"
        f"max_slices = {round(hours * 3600 / slice_s)}\n"
        "capacity_multiple = 100000\nround_every_slices = 0"
    )
    named = 'name = "days"\ntitle = "Days of one stream"'
    for before, after in ((NAME, named), (ENDS, ends)):
        if text.count(before) != 1:
            raise SystemExit(f"pts-e-1.1.toml has not once: {before}")
        text = text.replace(before, after)
    path = folder / f"days-{read_percent}.toml"
    path.write_text(text, encoding="utf-8")
    return path


def write_streams(folder: Path, hours: float) -> Path:
    """Write a workload file with streams that run together for this number of hours."""
    path = folder / "streams.toml"
    path.write_text(f"{STREAMS}longest_s = {hours * 3600:g}\n", encoding="utf-8")
    return path


def run(path: Path, options: Sequence[str], preset: str, hours: float) -> None:
    """Start the measurement, and watch it from this process."""
    argv = [*TKPERF, "ssd", path.stem, f"sim:{preset}", "-q", "--no-report", "--output", str(path.parent), *options]
    began_s = time.monotonic()
    marks = [mark for mark in (1, 6, 24, 48, 71.9) if mark < hours]
    longest_look_s = 0.0
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            look_s = time.monotonic()
            passed_h = hours_done(path)
            longest_look_s = max(longest_look_s, time.monotonic() - look_s)
            while marks and passed_h >= marks[0]:
                print(f"  memory of tkperf at {marks.pop(0):>4g} h: {memory_mb(process.pid):.1f} MB", flush=True)
            time.sleep(0.2)
    if process.returncode:
        raise SystemExit(process.returncode)
    print(
        f"  simulated in {time.monotonic() - began_s:.0f} s; longest look at how far it is: "
        f"{longest_look_s * 1000:.0f} ms"
    )


def hours_done(path: Path) -> float:
    """Return the time in hours from the start of a running test to the start of its newest stored step. The function
    reads the run file while another process writes to it.
    """
    try:
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5)
        (done_s,) = db.execute("SELECT max(started_s) FROM step").fetchone()
        db.close()
    except sqlite3.OperationalError:  # the run file does not exist yet
        return 0.0
    return (done_s or 0.0) / 3600


def memory_mb(pid: int) -> float:
    """Return the resident memory of a process at this moment, in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def measure(what: str, argv: Sequence[str], times: int = 1) -> float:
    """Run a command several times. Print its elapsed time, its CPU time including child processes, and its peak memory.
    Return the median CPU time in s.
    """
    took_s, cpu_s, most_mb, failed = [], [], 0.0, False
    for _ in range(times):
        began_s = time.monotonic()
        process = subprocess.Popen([*TKPERF, *argv], stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        took_s.append(time.monotonic() - began_s)
        cpu_s.append(used.ru_utime + used.ru_stime)
        most_mb, failed = max(most_mb, used.ru_maxrss / 1000), failed or process.returncode != 0
    of = f", {min(took_s):.2f} to {max(took_s):.2f} s of {times}" if times > 1 else ""
    print(
        f"  {what}: {statistics.median(took_s):.2f} s{of} ({statistics.median(cpu_s):.1f} s of CPU), "
        f"at most {most_mb:.0f} MB{' FAILED' if failed else ''}",
        flush=True,
    )
    return statistics.median(cpu_s)


def measure_parts(path: Path) -> None:
    """Print the CPU time of each part of the work that is needed until the first part of a report is ready."""
    with RunFile(path) as opened:
        laps = [time.process_time()]
        record = opened.record()
        laps.append(time.process_time())
        result = analyse(record)
        laps.append(time.process_time())
        for test in record.tests:
            opened.seconds(test)
        laps.append(time.process_time())
        with_seconds(result, record, opened.seconds)
        laps.append(time.process_time())
    steps, analysis, seconds, timelines = (after - before for before, after in pairwise(laps))
    print(
        f"  of it, in CPU time: steps {steps:.2f} s, analysis {analysis:.2f} s, seconds {seconds:.2f} s, "
        f"what they show {timelines:.2f} s",
        flush=True,
    )


def measure_reading(path: Path, folder: Path, times: int) -> float:
    """Make all files from a run file, in a folder. Return the CPU time of the HTML report in s."""
    measure("tkperf show", ["show", str(path)])
    page, printed = folder / f"{path.stem}.html", folder / f"{path.stem}.pdf"
    report_s = measure("tkperf report, HTML", ["report", str(path), "-o", str(page)], times)
    report = ["report", str(path), "-o", str(page), "--pdf", str(printed)]
    measure("tkperf report, HTML and PDF", report, times)
    measure_parts(path)
    measure_page(page)
    return report_s


def measure_replay(path: Path, profile: Path) -> None:
    """Do the same work as `resume` does before it continues a run. The last hour is treated as missing."""
    with RunFile(path) as run_file:
        record = run_file.record()
        log = run_file.log()[:-60]
    length_bytes = record.info.active_range_length_bytes
    assert length_bytes is not None
    test = find_test("ssd", "writesat")
    assert test is not None
    procedure = test.procedure(load_profile(str(profile)), length_bytes)
    began_s = time.monotonic()
    replayed = replay(procedure, log, accept=True)
    took_s = time.monotonic() - began_s
    print(f"  replay of {len(log):,} rows of its log: {took_s:.2f} s, {len(replayed.answers):,} answers")


def measure_page(page: Path) -> None:
    """Print the times until the page shows the first text, the first chart, all charts, and the seconds of a cell."""
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415 - may be missing
    except ImportError:
        print("  page: not measured, playwright is not installed")
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        view = browser.new_page(viewport={"width": 1300, "height": 1000})
        view.goto("about:blank")
        began_s = time.monotonic()
        view.goto(page.absolute().as_uri(), wait_until="commit")
        view.wait_for_selector("figure svg", state="visible", timeout=60_000)
        first_s = time.monotonic() - began_s
        view.wait_for_selector("body[data-drawn]", timeout=60_000)
        all_s = time.monotonic() - began_s
        (painted,) = view.evaluate("performance.getEntriesByName('first-contentful-paint')")
        began_s = time.monotonic()
        view.locator("button[data-cell]").first.click()
        view.wait_for_selector("dialog[open] svg", state="visible", timeout=60_000)
        opened_s = time.monotonic() - began_s
        browser.close()
    print(
        f"  page of {page.stat().st_size / 1e6:.1f} MB: something to read after {painted['startTime'] / 1000:.2f} s, "
        f"first chart after {first_s:.2f} s, all after "
        f"{all_s:.2f} s, the seconds of the stream {opened_s:.2f} s after a click"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--preset", default="sata-ssd")
    parser.add_argument("--hours", type=float, default=72.0)
    parser.add_argument("--loads", nargs="+", default=list(LIMITS_MB), help="percent of reads, or together")
    parser.add_argument("--files", type=Path, nargs="+", default=[], help="read these instead")
    parser.add_argument("--times", type=int, default=5, help="reports of each")
    parser.add_argument("--folder", type=Path)
    wanted = parser.parse_args()
    is_beyond = False
    reports_s: dict[str, float] = {}
    with tempfile.TemporaryDirectory(dir=wanted.folder) as name:
        for load in [] if wanted.files else wanted.loads:
            path = Path(name) / f"load-{load}.tkperf"
            if load == TOGETHER:
                print(f"{wanted.hours:g} h of sim:{wanted.preset}, four streams together")
                options = ["--test", str(write_streams(path.parent, wanted.hours))]
            else:
                print(f"{wanted.hours:g} h of sim:{wanted.preset}, random 4 KiB, {load} % reads")
                profile = write_profile(path.parent, wanted.hours, int(load))
                options = ["-ssdt", "writesat", "--profile", str(profile)]
            run(path, options, wanted.preset, wanted.hours)
            size_mb = path.stat().st_size / 1e6
            a_day_mb = size_mb / wanted.hours * 24
            is_beyond |= a_day_mb > LIMITS_MB.get(load, max(LIMITS_MB.values()))
            print(f"  run file: {size_mb:.1f} MB, {a_day_mb:.1f} MB for 24 h", flush=True)
            if load != TOGETHER:
                measure_replay(path, profile)
            reports_s[load] = measure_reading(path, path.parent, wanted.times)
        if {WRITES, TOGETHER} <= reports_s.keys():
            ratio = reports_s[TOGETHER] / reports_s[WRITES]
            is_beyond |= ratio > MOST_REPORT_RATIO
            print(f"the report of the streams takes {ratio:.2f} times the CPU time of that of the writes")
        for path in wanted.files:
            print(path)
            measure_reading(path, Path(name), wanted.times)
    return int(is_beyond)


if __name__ == "__main__":
    sys.exit(main())
