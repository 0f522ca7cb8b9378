"""Measure whether readers of a run in progress delay the run.

The script measures how long the steps of a run wait for their commits, with and without browsers.

    .venv/bin/python bench/serve_readers.py [--browsers 50] [--steps 40] [--pace-s 1.0]

The script simulates a write saturation test of 11 h. The first ten hours are simulated as fast as possible. From then
on, a step runs every ``--pace-s`` seconds. For half of these steps, ``tkperf serve`` does not run. For the other half,
``tkperf serve`` shows the run to browsers, which the script imitates with connections that read events. The script
measures three figures in each half: the duration of commits (a call returns when the step is stored permanently), the
locks of other processes on the file (read from ``/proc/locks`` every millisecond), and the time from the end of a
commit to the event in each browser.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.request import urlopen

import tkperf
from tkperf.runfile.writer import RunFileWriter
from tkperf.runner.events import Event, StepEnded

TKPERF = (sys.executable, "-m", "tkperf")
# A simulated client drive is full after about this number of minutes.
SLICES = 640
MOST_LOCKED_MS, MOST_EVENT_S = 50.0, 1.0


class Watch:
    """A record of the commits, the locks of readers, and the events in browsers, each with its time."""

    def __init__(self) -> None:
        self.commits: list[tuple[float, float]] = []
        self.locks_ms: list[tuple[float, float]] = []
        self.events: list[float] = []
        self.served_from = float("inf")

    def watch_locks(self, path: Path, stop: threading.Event) -> None:
        inode, own = str(path.stat().st_ino), str(os.getpid())
        since: dict[str, float] = {}
        while not stop.wait(0.001):
            now = time.monotonic()
            held = set()
            for line in Path("/proc/locks").read_text().splitlines():
                fields = line.split()
                if fields[1] == "POSIX" and fields[4] != own and fields[5].endswith(f":{inode}"):
                    held.add(fields[4])
            for pid in held - since.keys():
                since[pid] = now
            for pid in since.keys() - held:
                began = since.pop(pid)
                self.locks_ms.append((began, 1000 * (now - began)))


def read_events(address: str, path: str, watch: Watch, stop: threading.Event) -> None:
    """Act as a browser and record the time of each event that contains new data."""
    host, port = address.split("/")[2].split(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        connection.settimeout(1.0)
        before = b""
        while not stop.is_set():
            try:
                piece = connection.recv(1 << 16)
            except TimeoutError:
                continue
            if not piece:
                return
            # Ignore lines that only show that the server is still running.
            if b"\n\n" in (before[-1:] + piece).replace(b":\n\n", b""):
                watch.events.append(time.monotonic())
            before = piece


def describe(name: str, values: Sequence[float], unit: str) -> float:
    if not values:
        print(f"{name:52} none")
        return 0.0
    ordered = sorted(values)
    at = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    print(
        f"{name:52} median {statistics.median(values):7.2f} {unit}, 95 % {at:7.2f}, most {ordered[-1]:7.2f}, of "
        f"{len(values)}"
    )
    return ordered[-1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--browsers", type=int, default=50)
    parser.add_argument("--steps", type=int, default=40, help="of each half")
    parser.add_argument("--pace-s", type=float, default=1.0)
    asked = parser.parse_args()
    watch, stop = Watch(), threading.Event()
    server: list[subprocess.Popen[str]] = []
    steps = 0

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run_file = folder / "day.tkperf"

        def serve() -> None:
            process = subprocess.Popen(
                [*TKPERF, "serve", str(folder), "--port", "0", "--allow-root"],
                stdout=subprocess.PIPE,
                text=True,
                env=os.environ | {"XDG_CACHE_HOME": str(folder / "cache")},
            )
            server.append(process)
            assert process.stdout is not None
            address = next(found[0] for line in process.stdout if (found := re.search(r"http://[^/\s]+/", line)))
            while not (found := re.search(r"/runs/[0-9a-f]{32}", urlopen(address).read().decode())):
                time.sleep(0.5)
            for _ in range(asked.browsers):
                threading.Thread(
                    target=read_events, args=(address, f"{found[0]}/live", watch, stop), daemon=True
                ).start()
            time.sleep(5)
            watch.served_from = time.monotonic()

        keep = RunFileWriter.__call__

        def timed(self: RunFileWriter, event: Event) -> None:
            nonlocal steps
            began = time.monotonic()
            keep(self, event)
            ended = time.monotonic()
            if not isinstance(event, StepEnded):
                return
            steps += 1
            if steps > SLICES - 2 * asked.steps:
                watch.commits.append((ended, 1000 * (ended - began)))
                time.sleep(asked.pace_s)
            if steps == SLICES - 2 * asked.steps:
                threading.Thread(target=watch.watch_locks, args=(run_file, stop), daemon=True).start()
            if steps == SLICES - asked.steps:
                serve()

        RunFileWriter.__call__ = timed  # type: ignore[method-assign]
        plan = tkperf.make_plan("ssd", "sim:client-qlc", tests=("writesat",))
        tkperf.run(plan, "day", folder=folder)
        stop.set()
        size_mb = run_file.stat().st_size / 1e6
        for process in server:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=60)

    print(f"run file of {size_mb:.1f} MB, {asked.browsers} browsers, load {os.getloadavg()[0]:.1f}")
    served = [pair for pair in watch.commits if pair[0] > watch.served_from]
    alone = watch.commits[: asked.steps]
    describe("commit of a step, nobody reads", [ms for _, ms in alone], "ms")
    describe("commit of a step, with browsers", [ms for _, ms in served], "ms")
    locked = describe("lock of a reader", [ms for at, ms in watch.locks_ms if at > watch.served_from], "ms")
    late = [
        min(event - at for event in watch.events if event > at)
        for at, _ in served
        if any(event > at for event in watch.events)
    ]
    last = [
        max(event for event in watch.events if at < event < at + asked.pace_s) - at
        for at, _ in served
        if any(at < event < at + asked.pace_s for event in watch.events)
    ]
    describe("from the commit to the first browser", late, "s")
    slowest = describe("from the commit to the last browser", last, "s")
    return 1 if locked > MOST_LOCKED_MS or slowest > MOST_EVENT_S else 0


if __name__ == "__main__":
    sys.exit(main())
