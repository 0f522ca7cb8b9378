#!/usr/bin/env python3
"""A scripted fio. It waits at the gate in the same manner as the real fio, and then plays a scenario.

The scenario is JSON in $FAKE_FIO. For each block size (or "*") it contains a list of plays: the first play is for the
first fio with this block size, the second play for the second fio, and so on. The last play is repeated. A play is a
list of acts:

    ["status", {"elapsed_s": 1.0, "job 1 write total_ios": 0}]  a document, honest except for the changes
    ["run"]                     honest documents for the job's runtime, then the last document
    ["sleep", s]  ["raw", text]  ["flood", "stdout"|"stderr", bytes]  ["ignore signals"]
    ["comes late", s]           reach the gate later
    ["begins late", s]          begin later after the gate was opened
    ["is fio 3.36"]             or newer: each job reports when it began (job_start)
    ["exit", status]  ["kill self"]
    ["do not come"]             some threads never reach the gate
    ["helpers' ends wake job 2"]  if the ends of helpers may wake fio, job 2 ends with a queue of I/Os and no time,
                                as fio 3.33 does with io_uring; otherwise the document is honest
    ["jobs end"]                the threads of the jobs end, as fio's threads do some time before the last document

Without a play, the scripted fio is honest. An honest job completes 2,000 I/Os a second, exactly at its queue depth. On
SIGUSR1, the job reports the I/Os that it has completed so far, unless $FAKE_FIO_DEAF is set. After an interrupt, it
ends.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

IOPS_A_JOB = 2000


def read_job(text: str) -> dict[str, object]:
    found = dict(re.findall(r"^(\w+)=(.*)$", text, re.M))
    sections = len(re.findall(r"^\[(?!global)", text, re.M))
    return {
        "prerun": found.get("exec_prerun"),
        "jobs": int(found.get("numjobs", "1")) * sections,
        "runtime_s": int(found.get("runtime", "0ms").removesuffix("ms")) / 1000,
        "block": int(found["bs"]),
        "depth": int(found["iodepth"]),
        "rw": found["rw"],
        "amounts": [int(amount) for amount in re.findall(r"^io_size=(\d+)$", text, re.M)],
    }


def bucket_middle(ns: int) -> int:
    if ns < 128:
        return ns
    shift = ns.bit_length() - 7
    return ((ns >> shift) << shift) + (1 << shift) // 2


def direction(ios: int, block: int, elapsed_s: float, latency_ns: int) -> dict[str, object]:
    latency: dict[str, object] = {"min": 0, "max": 0, "mean": 0.0, "N": 0}
    if ios:
        latency = {
            "min": latency_ns,
            "max": latency_ns,
            "mean": float(latency_ns),
            "N": ios,
            "bins": {str(bucket_middle(latency_ns)): ios},
        }
    runtime = round(elapsed_s * 1000) if ios else 0
    return {"io_bytes": ios * block, "total_ios": ios, "runtime": runtime, "lat_ns": latency}


def document(job: dict[str, object], elapsed_s: float) -> dict[str, object]:
    ios = round(IOPS_A_JOB * elapsed_s)
    reads = "read" in str(job["rw"])
    latency_ns = job["depth"] * 10**9 // IOPS_A_JOB  # type: ignore[operator]
    each = []
    for number in range(job["jobs"]):  # type: ignore[call-overload]
        block = job["block"]
        count = job["amounts"][number] // block if job["amounts"] else ios  # type: ignore[index]
        busy = direction(count, block, elapsed_s, latency_ns)  # type: ignore[arg-type]
        idle = direction(0, block, elapsed_s, latency_ns)  # type: ignore[arg-type]
        each.append(
            {
                "jobname": f"step{number}",
                "error": 0,
                "read": busy if reads else idle,
                "write": idle if reads else busy,
                "usr_cpu": 1.0,
                "sys_cpu": 2.0,
                **({"job_start": BEGAN_MS[0]} if BEGAN_MS else {}),
            }
        )
    return {"timestamp_ms": round(time.time() * 1000), "jobs": each}


def change(status: dict[str, object], name: str, value: object) -> None:
    """Change a value in a document. ``job 1 write total_ios`` names a value of one job, ``write total_ios`` the value
    of all jobs, and ``jobs`` a value at the top.
    """
    *path, key = name.split()
    if path[:1] == ["job"]:
        places = [status["jobs"][int(path[1]) - 1]]  # type: ignore[index]
        path = path[2:]
    elif name in status:
        places = [status]
    else:
        places = status["jobs"]  # type: ignore[assignment]
    for place in places:
        found = place
        for step in path:
            found = found[step]
        if value is None:
            del found[key]
        else:
            found[key] = value


def woken(job: dict[str, object]) -> dict[str, object]:
    """Return fio's report about a job that was woken from its first wait. In this report, I/Os were issued, but none of
    them is known to be completed.
    """
    if signal.SIGCHLD in signal.pthread_sigmask(signal.SIG_BLOCK, ()):
        return {}
    return {"job 2 write": {"io_bytes": 0, "total_ios": job["depth"], "runtime": 0, "lat_ns": {}}}


def show(job: dict[str, object], elapsed_s: float, changes: dict[str, object]) -> None:
    status = document(job, elapsed_s)
    for name, value in changes.items():
        change(status, name, value)
    text = json.dumps(status, indent=1).replace("\n ", "\n  ")
    print(text, flush=True)


JOBS_END = threading.Event()
# The times at which the jobs passed their gate, according to the wall clock. Without an entry, this fio does not report
# the time.
BEGAN_MS: list[int] = []
# The time from the end of fio's jobs to its last document.
LAST_WORDS_S = float(os.environ.get("FAKE_FIO_LAST_WORDS_S", "0.02"))
# The time that an honest fill takes.
FILL_S = 0.5


def report_when_told(job: dict[str, object]) -> None:
    """Report on SIGUSR1, as the real fio does. The report contains the I/Os that were completed since the gate
    opened.
    """
    began_s = time.monotonic()

    def report(*_: object) -> None:
        elapsed_s = time.monotonic() - began_s
        length_s = float(job["runtime_s"])  # type: ignore[arg-type]
        show(job, min(elapsed_s, length_s) if length_s else elapsed_s, {})

    signal.signal(signal.SIGUSR1, signal.SIG_IGN if "FAKE_FIO_DEAF" in os.environ else report)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])


def run(job: dict[str, object], changes: dict[str, object]) -> None:
    began_s, length_s = time.monotonic(), float(job["runtime_s"])  # type: ignore[arg-type]
    length_s = length_s or FILL_S
    while (elapsed_s := time.monotonic() - began_s) < length_s - 0.1:
        time.sleep(max(0.0, min(1.0, length_s - elapsed_s)))
        if time.monotonic() - began_s < length_s - 0.1:
            show(job, time.monotonic() - began_s, changes)
    time.sleep(max(0.0, began_s + length_s - time.monotonic()))
    JOBS_END.set()
    time.sleep(LAST_WORDS_S)
    show(job, length_s, changes)


def flood(where: str, amount: int) -> None:
    stream = sys.stdout.buffer if where == "stdout" else sys.stderr.buffer
    piece = (b"x" * 99 + b"\n") * 10000
    while amount > 0:
        stream.write(piece)
        amount -= len(piece)
    stream.flush()


def play(acts: list[list[object]], job: dict[str, object]) -> None:
    for what, *how in acts:
        if what == "status":
            changes = dict(how[0])  # type: ignore[call-overload]
            show(job, changes.pop("elapsed_s"), changes)
        elif what == "run":
            run(job, how[0] if how else {})  # type: ignore[arg-type]
        elif what == "helpers' ends wake job 2":
            run(job, woken(job))
        elif what == "sleep":
            time.sleep(how[0])  # type: ignore[arg-type]
        elif what == "raw":
            print(how[0], flush=True)
        elif what == "flood":
            flood(how[0], how[1])  # type: ignore[arg-type]
        elif what == "jobs end":
            JOBS_END.set()
            time.sleep(LAST_WORDS_S)
        elif what == "ignore signals":
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
        elif what == "exit":
            sys.exit(how[0])  # type: ignore[arg-type]
        elif what == "kill self":
            os.kill(os.getpid(), signal.SIGKILL)


def acts_for(job: dict[str, object]) -> list[list[object]]:
    scenario = json.loads(Path(os.environ["FAKE_FIO"]).read_text())
    key = str(job["block"]) if str(job["block"]) in scenario else "*"
    count = Path(os.environ["FAKE_FIO"] + f".{key}.count")
    with count.open("a") as file:
        file.write(".")
    plays = scenario.get(key, [[["run"]]])
    return plays[min(count.stat().st_size, len(plays)) - 1]  # type: ignore[no-any-return]


def main() -> None:
    if "--version" in sys.argv:
        print("fio-3.33")
        return
    # If the request to report arrives before the first report is possible, this fio reports as soon as possible.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    job = read_job(Path(sys.argv[-1]).read_text())
    acts = acts_for(job)
    come = int(job["jobs"])  # type: ignore[call-overload]
    late_s, says_beginning = 0.0, False
    while acts and acts[0][0] in (
        "comes late",
        "begins late",
        "is fio 3.36",
        "do not come",
        "exit at once",
        "killed at the gate",
    ):
        (what, *how), *acts = acts
        if what == "comes late":
            time.sleep(how[0])  # type: ignore[arg-type]
        elif what == "begins late":
            late_s = float(how[0])  # type: ignore[arg-type]
        elif what == "is fio 3.36":
            says_beginning = True
        elif what == "do not come":
            come -= 1
        elif what == "exit at once":
            print("fio: engine nonesuch not loadable", file=sys.stderr)
            sys.exit(1)
        else:
            signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
            signal.alarm(1)
    for _ in range(int(job["jobs"])):  # type: ignore[call-overload]
        threading.Thread(target=JOBS_END.wait, daemon=True).start()
    threading.Thread(target=threading.Event().wait, daemon=True).start()  # the real fio also has a helper thread
    signal.signal(signal.SIGINT, lambda *_: os._exit(128))
    if job["prerun"]:
        helpers = [subprocess.Popen(["sh", "-c", f"{job['prerun']} > step.prerun.txt 2>&1"]) for _ in range(come)]
        if max(helper.wait() for helper in helpers):
            return
        if come < int(job["jobs"]):  # type: ignore[call-overload]
            time.sleep(60)
    time.sleep(late_s)
    if says_beginning:
        BEGAN_MS.append(int(time.time() * 1000))
    report_when_told(job)
    play(acts, job)


if __name__ == "__main__":
    try:
        main()
        status = 0
    except SystemExit as ended:
        status = int(ended.code or 0)
    # Python removes its signal handlers before it ends, and SIGUSR1 would then kill this process. fio keeps its
    # handlers until its end.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
