"""Result files in the form of each version of fio, generated from a few numbers. The files contain no real measurement.

- fio up to 2.1: no time of day, no options, no count of I/Os, whole IOPS, KiB and us;
- fio 2.2: seconds since 1970 and a count of I/Os; 2.10: options;
- fio 2.21: ``io_bytes`` in bytes, with ``io_kbytes``; still us;
- fio from 2.99: ns, ``bw_bytes``, ms since 1970; later ``job_runtime``, ``job_start``, ``N``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from tkperf.interop.fio_json import FioResults
from tkperf.interop.imported import ImportedRun, natural_key

VERSIONS = ("2.0.14", "2.1.11", "2.2.10", "2.10", "2.21", "2.99", "3.33", "3.42")
# The time in ms since 1970 at which fio writes the first result, unless a test specifies another time.
FIRST_MS = 1_700_000_000_000
_LEVELS = ("1", "2", "4", "8", "16", "32", ">=64")


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def direction(
    version: str, ios: int, runtime_ms: int, block_bytes: int, mean_us: float, bins: bool = False
) -> dict[str, Any]:
    """Return the result of a job in one direction. The result reports this number of I/Os."""
    of = _version(version)
    moved, runtime_s = ios * block_bytes, max(runtime_ms, 1) / 1000
    found: dict[str, Any] = {"io_bytes": moved if of >= (2, 21) else moved // 1024}
    if of >= (2, 21):
        found["io_kbytes"] = moved // 1024
    if of >= (2, 99):
        found["bw_bytes"] = round(moved / runtime_s)
    found["bw"] = int(moved / 1024 / runtime_s)
    found["iops"] = ios / runtime_s if of >= (2, 2) else int(ios / runtime_s)
    found["runtime"] = runtime_ms if ios else 0
    if of >= (2, 2):
        found |= {"total_ios": ios, "short_ios": 0, "drop_ios": 0}
    scale, suffix = (1000, "_ns") if of >= (2, 99) else (1, "")
    mean = mean_us * scale if ios else 0
    shape = {"min": int(mean / 2), "max": int(mean * 9), "mean": mean, "stddev": mean / 5}
    if of >= (3, 0):
        shape["N"] = ios
    for name in ("slat", "clat", "lat"):
        found[name + suffix] = dict(shape)
    if bins and ios:
        found["lat_ns"]["bins"] = {"50000": ios // 2, "60000": ios - ios // 2}
    return found


def job(
    *,
    version: str = "3.33",
    name: str = "job",
    reads: int = 0,
    writes: int = 0,
    runtime_ms: int = 10_000,
    block_bytes: int = 4096,
    mean_us: float = 55.0,
    depth: int = 1,
    group: int = 0,
    options: dict[str, str] | None = None,
    bins: bool = False,
    clones_ran: int = 1,
    **more: object,
) -> dict[str, Any]:
    """Return a job. ``options`` contains texts, as fio writes them. ``clones_ran`` is the number of clones that fio
    reports as one group.
    """
    of = _version(version)
    found: dict[str, Any] = {"jobname": name, "groupid": group, "error": 0}
    if of >= (2, 2):
        found |= {"eta": 0, "elapsed": runtime_ms // 1000 + 1}
    if of >= (3, 36):
        found["job_start"] = FIRST_MS
    if of >= (2, 10):
        found["job options"] = {"name": name, "direct": "1", **(options or {})}
    found["read"] = direction(version, reads, runtime_ms, block_bytes, mean_us, bins)
    found["write"] = direction(version, writes, runtime_ms, block_bytes, mean_us, bins)
    found["trim"] = direction(version, 0, 0, block_bytes, 0)
    if of >= (3, 0):
        found["sync"] = {"total_ios": 0, "lat_ns": {"min": 0, "max": 0, "mean": 0, "stddev": 0}}
        found["job_runtime"] = runtime_ms * clones_ran
    level = str(depth) if depth < 64 else ">=64"
    found |= {"usr_cpu": 3.5, "sys_cpu": 20.1, "ctx": 1000, "majf": 0, "minf": 9}
    found["iodepth_level"] = {each: 99.9 if each == level else 0.1 for each in _LEVELS}
    found["latency_us"] = {"100": 99.0, "250": 1.0}
    return found | more


def document(*jobs: dict[str, Any], version: str = "3.33", at_s: float | None = 0.0, **more: Any) -> dict[str, Any]:
    """Return the document that fio writes for some jobs, ``at_s`` seconds after the first document. If ``at_s`` is
    None, the document contains no time.
    """
    of = _version(version)
    found: dict[str, Any] = {"fio version": f"fio-{version}"}
    if at_s is not None and of >= (2, 2):
        found["timestamp"] = int(FIRST_MS / 1000 + at_s)
        if of >= (2, 18):
            found["timestamp_ms"] = round(FIRST_MS + at_s * 1000)
        found["time"] = "Tue Nov 14 22:13:20 2023"
    _set_times(jobs)
    found |= {"jobs": list(jobs), "disk_util": [{"name": "sda", "util": 99.1}]}
    return found | more


def _set_times(jobs: Iterable[dict[str, Any]]) -> None:
    """Set the start of each job, and fio's total time, as if the groups of jobs ran one after the other (stonewall)."""
    longest_ms: dict[object, int] = {}
    for one in jobs:
        ran_ms = max(one[side]["runtime"] for side in ("read", "write"))
        group = one["groupid"]
        longest_ms[group] = max(longest_ms.get(group, 0), ran_ms)
    starts_ms: dict[object, int] = {}
    for group in longest_ms:
        starts_ms[group] = FIRST_MS + sum(longest_ms[before] for before in starts_ms)
    for one in jobs:
        if "job_start" in one:
            one["job_start"] = starts_ms[one["groupid"]]
        if "elapsed" in one:
            one["elapsed"] = sum(longest_ms.values()) // 1000 + 1


def written(
    iops: int,
    at_s: float | None = 0.0,
    *,
    version: str = "3.33",
    runtime_ms: int = 10_000,
    options: dict[str, str] | None = None,
    **more: Any,
) -> str:
    """Return the text of a result file with one job of random 4 KiB writes."""
    known = {"rw": "randwrite", "bs": "4k"} | (options or {})
    of_job = job(version=version, writes=iops * runtime_ms // 1000, runtime_ms=runtime_ms, options=known, **more)
    return json.dumps(document(of_job, version=version, at_s=at_s), indent=1)


def parse_fio_json(files: Iterable[tuple[str, str]], *, name: str) -> ImportedRun:
    """Return the run that consists of the given files. Each file is a pair of a name and a text. The order of the files
    does not matter.
    """
    results = FioResults()
    for file, text in sorted(files, key=lambda entry: natural_key(entry[0])):
        results.add(file, text)
    return results.build_run(name)
