"""Measure ``tkperf serve`` with many run files: the time of the first index and of a later start, the response times of
pages, and the memory of the server.

    .venv/bin/python bench/serve.py [--files 1000] [--source RUN.tkperf]

The files are copies of one run with other UUIDs, names, drives and dates. Without a source, the script simulates the
run. The script needs the packages for ``tkperf serve``, and enough free space for the copies in the temporary folder.
It removes the copies at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

TKPERF = (sys.executable, "-m", "tkperf")
MODELS = ("INTEL SSDSC2KB480G8", "SAMSUNG MZQL23T8HCLS", "Micron_7450_MTFDKCC1T9TFR", "KIOXIA KCD81RUG3T84")
FIRMWARES = ("XCV10132", "GDC5602Q", "E2MU200", "1UET7104", "XCV10165")
ASKED = {
    "library": "/",
    "library, narrow": "/?model=KIOXIA+KCD81RUG3T84&test=IOPS",
    "library, words": "/?q=kioxia+run-7",
    "library, last page": "/?sort=drive&page=20",
    "list for programs": "/api/runs",
    "metrics": "/metrics",
}
COMPARED = 2, 50, 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--source", type=Path)
    parser.add_argument("--keep", type=Path, help="make the files in this new folder, and keep them")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.keep or Path(scratch) / "runs"
        source = asked.source or simulate(Path(scratch))
        size_mb = make_files(source, folder, asked.files) / 1e6
        print(f"{asked.files} files, {size_mb:,.0f} MB")
        if asked.keep is None:
            measure(folder, Path(scratch) / "cache")


def simulate(folder: Path) -> Path:
    command = (*TKPERF, "ssd", "source", "sim:sata-ssd", "--progress", "plain")
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / "source.tkperf"


def make_files(source: Path, folder: Path, count: int) -> int:
    """Copy a run file many times, with different facts in each copy. Return the total size of the copies in bytes."""
    begin = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
    size_bytes = 0
    for number in range(count):
        place = folder / f"rack-{number % 7}"
        place.mkdir(parents=True, exist_ok=True)
        path = Path(shutil.copy(source, place / f"run-{number:04d}.tkperf"))
        with sqlite3.connect(path) as db:
            facts = {key: json.loads(value) for key, value in db.execute("SELECT key, value FROM run")}
            device = facts["device"] | {
                "model": MODELS[number % len(MODELS)],
                "firmware": FIRMWARES[number % len(FIRMWARES)],
                "serial": f"PHYF{number * 7919 % 100_000:05d}",
                "kind": "block device",
            }
            changed = {
                "uuid": str(UUID(int=(number + 1) << 64)),
                "name": path.stem,
                "device": device,
                "started_utc": (begin + timedelta(hours=7.3 * number)).isoformat(timespec="seconds"),
                "ioengine": "simulated" if number % 10 == 3 else "io_uring",
            }
            if number % 17 == 5:
                changed |= {"status": "failed", "ended_because": "the drive reported a media error"}
            for key, value in changed.items():
                db.execute("INSERT OR REPLACE INTO run VALUES (?, ?)", (key, json.dumps(value)))
            host = json.dumps({"hostname": f"bench{number % 3 + 1}"})
            db.execute("UPDATE host SET facts = ?", (host,))
        db.close()
        size_bytes += path.stat().st_size
    return size_bytes


def measure(folder: Path, cache: Path) -> None:
    with served(folder, cache) as (address, begun_s, pid):
        print(f"first start to the first page: {begun_s:.2f} s")
        start_s = time.monotonic()
        while (left := count_waiting(fetch(address + "/")[1])) > 0:
            print(f"  {time.monotonic() - start_s:5.0f} s: {left} files to read", flush=True)
            time.sleep(10.0)
        print(f"first index: {time.monotonic() - start_s:.0f} s, {memory_mb(pid):.0f} MB of memory")
    with served(folder, cache) as (address, begun_s, pid):
        print(f"later start to the first page: {begun_s:.2f} s")
        for title, path in ASKED.items():
            times_ms = [1e3 * fetch(address + path)[0] for _ in range(30)]
            print(f"{title}: median {statistics.median(times_ms):.0f} ms, longest {max(times_ms):.0f} ms")
        measure_runs(address)
        print(f"memory of the server: {memory_mb(pid):.0f} MB")


def measure_runs(address: str) -> None:
    """Measure the response times for the pages of some runs: for a first request, for a request that is answered from
    the cache, and for the PDF. Also measure comparisons of several runs, and the list of runs while the server creates
    reports.
    """
    runs = json.loads(fetch(address + "/api/runs")[1])["runs"]
    ids = [run["id"] for run in runs[:10]]
    for title in ("run, first", "run, kept"):
        times_ms = [1e3 * fetch(f"{address}/runs/{run_id}")[0] for run_id in ids]
        print(f"{title}: median {statistics.median(times_ms):.0f} ms, longest {max(times_ms):.0f} ms")
    start_s = time.monotonic()
    with urllib.request.urlopen(f"{address}/runs/{ids[0]}/pdf", timeout=300) as answer:
        answer.read()
    print(f"PDF: {time.monotonic() - start_s:.1f} s")
    for count in COMPARED:
        if count <= len(runs):
            address_of_all = f"{address}/compare?" + "&".join(f"run={run['id']}" for run in runs[:count])
            print(f"comparison of {count} runs: {fetch(address_of_all)[0]:.1f} s")
    if beside := [run["id"] for run in runs[10:40]]:
        measure_list_beside(address, beside)


def measure_list_beside(address: str, ids: Sequence[str]) -> None:
    """Measure the response time of the list of runs while other browsers wait for reports that the server still has to
    create.
    """
    with ThreadPoolExecutor(len(ids)) as browsers:
        reports = [browsers.submit(fetch, f"{address}/runs/{run_id}") for run_id in ids]
        times_ms: list[float] = []
        while not all(report.done() for report in reports):
            times_ms.append(1e3 * fetch(f"{address}/?q={len(times_ms)}")[0])
            time.sleep(0.05)
    if times_ms:
        print(
            f"library, while {len(ids)} reports are made: median {statistics.median(times_ms):.0f} ms, "
            f"longest {max(times_ms):.0f} ms"
        )


@contextmanager
def served(folder: Path, cache: Path) -> Iterator[tuple[str, float, int]]:
    """Serve a folder. Yield the address, the seconds until the first page, and the process id of the server."""
    start_s = time.monotonic()
    process = subprocess.Popen(
        [*TKPERF, "serve", str(folder), "--port", "0", "--allow-root"],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"XDG_CACHE_HOME": str(cache)},
    )
    try:
        assert process.stdout is not None
        address = next(found[0] for line in process.stdout if (found := re.search(r"http://[^/\s]+", line)))
        fetch(address + "/")
        yield address, time.monotonic() - start_s, process.pid
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)


def fetch(address: str) -> tuple[float, str]:
    """Return the number of seconds until a page has arrived, and the text of the page."""
    start_s = time.monotonic()
    with urllib.request.urlopen(address, timeout=60) as answer:
        page = answer.read().decode(errors="replace")
    return time.monotonic() - start_s, page


def count_waiting(page: str) -> int:
    found = re.search(r"([\d,]+) more files? (?:is|are) being read", page)
    return int(found[1].replace(",", "")) if found else 0


def memory_mb(pid: int) -> float:
    """Return the resident memory of the server without its workers, in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024 / 1e6


if __name__ == "__main__":
    main()
