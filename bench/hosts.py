"""Measure the CPU time, memory and delays of a batch over several hosts.

Call: python bench/hosts.py [--part follow|delay|snapshot]

The hosts are network namespaces, and a real sshd runs in each of them. They share the CPUs of this machine with the
batch, so CPU times are more meaningful than elapsed times. The script needs root.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.hosts import Lab, make_lab
from tkperf.runfile.schema import create_tables
from tkperf.runfile.snapshot import take_snapshot

HOSTS, DRIVES = 10, 100
MB = 10**6
_TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=("follow", "delay", "snapshot"))
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    parts = {"snapshot": snapshot, "delay": delay, "follow": follow}
    for name, part in parts.items():
        if given.part in (None, name):
            part(given.seconds)


SHORT = f'tests = ["lat"]\nprofile = "{Path(__file__).parents[1] / "tests/short.toml"}"\n'


def write_batch(lab: Lab, folder: Path, drives: list[str], options: str = "", measured: str = "") -> None:
    (folder / "b.toml").write_text(
        f'suite = "ssd"\n{measured}'
        f'tkperf = "{lab.tkperf}"\ncompare_reads = false\nown_cpus = false\nparallel = "all"\n'
        f"drives = [\n{''.join(f'  {{ {drive} }},{chr(10)}' for drive in drives)}]\n{options}"
    )


def follow(seconds: float) -> None:
    """Measure the CPU time and memory on this machine while 100 drives on 10 hosts each run one step per minute."""
    with make_lab([f"lab{number}" for number in range(1, HOSTS + 1)]) as lab:
        drives = [f'drive = "sim:sata-ssd", host = "{lab.hosts[number % HOSTS].user}"' for number in range(DRIVES)]
        write_batch(lab, lab.folder, drives)
        log = lab.folder / "log"
        words = ("batch", "b", "b.toml", "--no-report", "--progress", "json")
        batch = lab.start(*words, cwd=lab.folder, log=log)
        try:
            # Simulated runs would end quickly. The script therefore stops all of them and lets each run continue for a
            # moment in turn.
            drives_there = freeze_drives(lab, DRIVES)
            for one in drives_there * 6:  # six turns, so that each run has finished its creation, purge and fill
                thaw(*one)
            time.sleep(20)  # wait until all hosts are connected and have sent their first messages
            before_s, began_s, steps = cpu_of(batch.pid), time.monotonic(), count_steps(log)
            peak = 0.0
            for turn in range(int(seconds * DRIVES / 60)):
                thaw(*drives_there[turn % len(drives_there)])
                peak = max(peak, memory_of(batch.pid))
                time.sleep(max(0.0, began_s + turn * 60 / DRIVES - time.monotonic()))
            used_s, passed_s = cpu_of(batch.pid) - before_s, time.monotonic() - began_s
            rate = (count_steps(log) - steps) / passed_s
            print(
                f"follow: {len(drives_there)} drives on {HOSTS} hosts, {rate:.1f} steps a second: "
                f"{used_s / passed_s:.2%} of a CPU with ssh, PSS {peak:.0f} MiB"
            )
        finally:
            batch.kill()
            batch.wait()


def count_steps(log: Path) -> int:
    return log.read_text().count('"event":"StepEnded"')


def thaw(pid: int, folder: Path) -> None:
    """Let a simulated drive measure until a run file in its folder has changed. During this time, the other drives on
    the host are stopped.
    """
    before, until_s = newest(folder), time.monotonic() + 5
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)
        while newest(folder) == before and time.monotonic() < until_s:
            time.sleep(0.01)
        os.kill(pid, signal.SIGSTOP)


def newest(folder: Path) -> int:
    """Return the time of the last change to any run file in a folder, in ns."""
    return max((path.stat().st_mtime_ns for path in folder.glob("*.tkperf")), default=0)


def freeze_drives(lab: Lab, count: int) -> list[tuple[int, Path]]:
    """Stop each process that measures a drive as soon as the ledger of its host contains the process.

    Return the processes that still exist, with their folders.
    """
    until_s = time.monotonic() + 600
    frozen: dict[int, Path] = {}
    while time.monotonic() < until_s and len(frozen) < count:
        for host in lab.hosts:
            ledger_path = host.batches / "b/b.batch"
            for line in ledger_path.read_bytes().splitlines() if ledger_path.exists() else []:
                if line.startswith(b'{"type":"began"') and (pid := json.loads(line)["pid"]) not in frozen:
                    frozen[pid] = ledger_path.parent
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.05)
    return [(pid, folder) for pid, folder in frozen.items() if Path(f"/proc/{pid}").exists()]


def tree_of(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    below = [
        int(word) for task in Path(f"/proc/{pid}/task").iterdir() for word in (task / "children").read_text().split()
    ]
    return [pid, *below] if children.exists() else [pid]


def cpu_of(pid: int) -> float:
    """Return the CPU time of a process and its ssh processes, in seconds."""
    total = 0
    for one in tree_of(pid):
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / _TICKS


def memory_of(pid: int) -> float:
    """Return the PSS of a process and its ssh processes, in MiB."""
    return sum(
        int(line.split()[1]) / 1024
        for one in tree_of(pid)
        for line in Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
        if line.startswith("Pss:")
    )


def delay(_seconds: float) -> None:
    """Measure the delay from the commit of a step in a run file on a host until the event about the step arrives on
    this machine.
    """
    with make_lab(["lab1"]) as lab:
        (host,) = lab.hosts
        drive = f'drive = "{lab.folder}/a.img", host = "{host.user}", size = "16MiB"'
        write_batch(lab, lab.folder, [drive], "[options]\nstep_s = 3\n", SHORT)
        batch = subprocess.Popen(
            lab.call("batch", "b", "b.toml", "--no-report", "--progress", "json", cwd=lab.folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        commits: list[float] = []
        ended = threading.Event()

        def watch() -> None:
            path, last = host.batches / "b/b-01.tkperf", 0.0
            while not ended.wait(0.005):
                if path.exists() and (at_s := path.stat().st_mtime) != last:
                    last = at_s
                    commits.append(at_s)

        threading.Thread(target=watch, daemon=True).start()
        delays = []
        assert batch.stdout is not None
        for line in batch.stdout:
            now_s = time.time()
            if json.loads(line)["event"] == "StepEnded":
                delays.append(now_s - max(at_s for at_s in commits if at_s <= now_s))
        ended.set()
        batch.wait()
        print(f"delay: {len(delays)} events: median {statistics.median(delays):.2f} s, longest {max(delays):.2f} s")


_WRITER = """
import sqlite3, sys, time, fcntl, os
path, ends = sys.argv[1], time.monotonic() + float(sys.argv[2])
lock = os.open(path, os.O_RDWR); fcntl.flock(lock, fcntl.LOCK_EX)
db = sqlite3.connect(path, isolation_level=None, timeout=30)
db.execute("PRAGMA journal_mode = DELETE"); db.execute("PRAGMA synchronous = EXTRA")
while time.monotonic() < ends:
    began = time.perf_counter()
    db.execute("INSERT INTO note (code, text) VALUES ('x', ?)", ("y" * 2000,))
    print(time.perf_counter() - began, flush=True)
    time.sleep(0.5)
"""


def snapshot(seconds: float) -> None:
    """Measure how long a commit takes, with and without continuous snapshots of a 100 MB file. A commit happens every
    half second.
    """
    with tempfile.TemporaryDirectory(dir="/var/tmp") as temporary:
        path = Path(temporary) / "run.tkperf"
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("PRAGMA page_size = 4096")
            create_tables(db)
            db.execute("INSERT INTO host VALUES (1, '{}')")
            for _ in range(100):
                db.execute("INSERT INTO note (code, text) VALUES ('x', ?)", ("z" * MB,))
        for taken in (False, True, False, True):
            writer = subprocess.Popen(
                [sys.executable, "-c", _WRITER, path, str(seconds / 4)], stdout=subprocess.PIPE, text=True
            )
            took = []
            while taken and writer.poll() is None:
                began_s = time.perf_counter()
                copy = path.with_name("copy")
                copy.unlink(missing_ok=True)
                take_snapshot(path, copy, host="lab1", utc="", ahead_s=0.0)
                took.append(time.perf_counter() - began_s)
            commits = sorted(map(float, writer.communicate()[0].split()))
            made = f", {len(took)} snapshots of {statistics.median(took):.1f} s" if took else ""
            print(
                f"snapshot: {len(commits)} commits: median {1000 * statistics.median(commits):.1f} ms, "
                f"longest {1000 * commits[-1]:.0f} ms{made}"
            )


if __name__ == "__main__":
    main()
